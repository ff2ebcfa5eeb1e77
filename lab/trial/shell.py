"""The user's shell: `binlane` with the site's connections, its output kept for the documentation."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_PROGRAM: Final = (sys.executable, "-c", "from binlane.cli import program; program()")
_WIDTH: Final = "127"
_SECONDS: Final = 300.0
_QUESTION: Final = "[y/N]: "
_OPERATOR: Final = "anna@ops1"
"""Stands for the account and the host that a trial runs on."""


class TrialError(Exception):
    """A command has not done what the documentation says."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    command: str
    code: int
    output: str

    def says(self, *texts: str) -> Done:
        """Raises TrialError if the output has not all of these texts."""
        flat = " ".join(self.output.split())
        if lacking := [text for text in texts if text not in flat]:
            raise TrialError(f"$ {self.command}\n{self.output}\nexpected {lacking}")
        return self


@dataclass(slots=True)
class Shell:
    """Runs the commands of one trial in its folder."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    family: str = ""
    """Of the servers: the samples' names begin with it."""
    shown: dict[str, str] = field(default_factory=dict)
    """Commands and their output that the documentation may show, by the sample's name."""

    def __call__(self, command: str, expected: int = 0, answer: str = "") -> Done:
        """Run a command; ``answer``: to its question. Raises TrialError for another exit code."""
        process = self.start(command)
        output, _ = process.communicate(f"{answer}\n", timeout=_SECONDS)
        # a terminal would show what was typed
        done = Done(command, process.returncode, self._clean(output.replace(_QUESTION, f"{_QUESTION}{answer}\n")))
        sys.stdout.write(f"$ {command}\n{done.output}[{done.code}]\n\n")
        sys.stdout.flush()
        if done.code != expected:
            raise TrialError(f"$ {command}\n{done.output}\nexpected exit code {expected}, found {done.code}")
        return done

    def start(self, command: str) -> subprocess.Popen[str]:
        """Start a command, with both of its outputs in one pipe."""
        name, *arguments = shlex.split(command)
        assert name == "binlane"
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "BINLANE"))}
        places = {"COLUMNS": _WIDTH, "AIRFLOW_HOME": str(self.folder / "airflow")}
        return subprocess.Popen(
            [*_PROGRAM, *arguments],
            cwd=self.folder, env={**outer, **places, **self.environment}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def kill_when(self, command: str, reached: Callable[[], bool]) -> None:
        """Start a command, and SIGKILL it as soon as it has reached something. Raises TrialError if it ends before."""
        process = self.start(command)
        while not reached():
            if process.poll() is not None:
                raise TrialError(f"$ {command}\n{process.communicate()[0]}\nexpected to be killed before its end")
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        sys.stdout.write(f"$ {command}\n[killed]\n\n")

    def show(self, name: str, *done: Done, only: Sequence[str] = ()) -> None:
        """Keep the output of commands as a sample. ``only``: patterns of the lines to keep; the others become "..."."""
        text = "".join(f"$ {each.command}\n{_some(each.output, only)}" for each in done)
        self.shown[f"{self.family}-{name}"] = text

    def _clean(self, output: str) -> str:
        """Without colours, and without the names of the machine that the trial runs on."""
        text = output.replace(str(self.folder), "/srv/binlane")
        text = text.replace(f"{getpass.getuser()}@{socket.gethostname()}", _OPERATOR)
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _some(output: str, only: Sequence[str]) -> str:
    """The lines that match a pattern; the others as one line of dots each run."""
    if not only:
        return output
    wanted, kept = re.compile("|".join(only)), list[str]()
    for line in output.splitlines():
        if wanted.search(line):
            kept.append(line)
        elif not kept or kept[-1] != "...":
            kept.append("...")
    return "".join(f"{line}\n" for line in kept)
