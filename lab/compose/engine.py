"""Docker and Compose as commands, and the images that docker-compose.yml needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab.programs import LabError

PROJECT: Final = Path(__file__).parents[2]
_STAND_IN: Final = Path(__file__).parent / "stand_in.sh"


def compose_command() -> list[str] | None:
    """The words that start Compose (v2 or v1), or None if this machine has none or no engine that answers."""
    if shutil.which("docker") is None or _fails(["docker", "info"]):
        return None
    for words in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(words[0]) and not _fails([*words, "version"]):
            return words
    return None


@dataclass(frozen=True, slots=True)
class Site:
    """A Compose project of the checkout's docker-compose.yml."""

    command: list[str]
    name: str
    environment: Mapping[str, str]
    """The variables that the file asks for."""

    def compose(self, *words: str, timeout: float = 900) -> str:
        """Run a Compose command; its standard output. Raises LabError."""
        return run([*self.command, "--project-name", self.name, *words], timeout, self.environment)

    def container(self, service: str) -> str:
        """The id of a service's container, running or not."""
        found = self.compose("ps", "--quiet", service).split()
        if not found:
            raise LabError(f"docker-compose.yml: the service {service} has no container")
        return found[0]

    def kill(self, service: str) -> None:
        """SIGKILL to everything in a service's container, and a new start of it."""
        run(["docker", "restart", "--time", "0", self.container(service)])

    def sql(self, service: str, text: str, timeout: float = 300) -> list[list[str]]:
        """Rows of the last statements that root executes on a MySQL service, as text."""
        password = f"MYSQL_PWD={self.environment['MYSQL_ROOT_PASSWORD']}"
        command = [
            "docker",
            "exec",
            "--interactive",
            "--env",
            password,
            self.container(service),
            "mysql",
            "--user=root",
        ]
        done = run([*command, "--batch", "--skip-column-names"], timeout, stdin=text)
        return [line.split("\t") for line in done.splitlines()]


def images() -> Mapping[str, str]:
    """The images of others in docker-compose.yml and the Dockerfile, by the variable that names another one."""
    compose = re.findall(r"image: \$\{(\w+):-(\S+)\}", (PROJECT / "docker-compose.yml").read_text("utf-8"))
    bases = re.findall(r"^ARG (\w+_IMAGE)=(\S+)", (PROJECT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    return dict([*compose, *bases])


@contextmanager
def provided_images() -> Iterator[Mapping[str, str]]:
    """Pull the images of others; by variable, the stand-ins that were made of those that cannot be pulled.

    :raises LabError: an image can neither be pulled nor made.
    """
    made: dict[str, str] = {}
    try:
        for variable, name in images().items():
            if _fails(["docker", "image", "inspect", name]) and _fails(["docker", "pull", "--quiet", name]):
                stand_in = f"binlane-stand-in:{variable.lower()}"
                run([str(_STAND_IN), name, stand_in])
                made[variable] = stand_in
        yield made
    finally:
        for stand_in in made.values():
            run(["docker", "image", "rm", "--force", stand_in])


def run(command: list[str], timeout: float = 900, environment: Mapping[str, str] | None = None, stdin: str = "") -> str:
    """A command's standard output. Raises LabError with the end of what it printed if it fails or takes too long."""
    try:
        done = subprocess.run(
            command,
            cwd=PROJECT,
            env=os.environ | dict(environment or {}),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise LabError(f"{' '.join(command[:6])}: no end after {timeout:.0f} s") from exc
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise LabError(f"{' '.join(command[:6])} ended with {done.returncode}:\n{said}")
    return done.stdout


def _fails(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode != 0
