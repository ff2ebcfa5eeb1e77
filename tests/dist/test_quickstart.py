"""The shell's part of docs/quickstart.md: typed as it stands there, from the wheel, and what it prints is compared."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.model import Flavor
from lab import wheel
from lab.compare import compare
from lab.servers import PrivateServer, private_server
from lab.traffic import run_traffic
from tests.dist.test_wheel import environment

PAGE: Final = (wheel.PROJECT / "docs" / "quickstart.md").read_text("utf-8")
SHELL: Final = PAGE.partition("## From a shell\n")[2].partition("### By a schedule")[0]
_BLOCK: Final = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INSTALL: Final = "pip install "
_NEXT_WINDOW: Final = "binlane run shop"
_MARK: Final = "== typed"
_VARYING: Final = re.compile(r"\d[\d,:.-]*|(?<=\d )(\w+?)s?\b")
"""Numbers, and the nouns that a number may put into the plural."""


def commands_of(part: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a part of a page, each with the lines that it is said to print."""
    for block in _BLOCK.findall(part):
        for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = each.splitlines()
            yield command, lines


def alike(line: str) -> str:
    return _VARYING.sub(lambda found: found[1] or "N", line).rstrip()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> wheel.Built:
    return wheel.build(tmp_path_factory.mktemp("dist"))


@pytest.mark.parametrize("family", list(Flavor))
def test_two_servers_are_equal_behind_the_page_and_it_shows_what_is_printed(
    built: wheel.Built, family: Flavor, tmp_path: Path
) -> None:
    commands = dict(commands_of(SHELL))
    (installation, *others) = commands
    assert installation.startswith(_INSTALL)
    programs = environment(built.wheel, tmp_path / "environment")
    folder = tmp_path / "site"
    folder.mkdir()
    with (
        private_server(tmp_path / "source", family, name="source", durable=False) as source,
        private_server(tmp_path / "target", family, name="target", durable=False) as target,
    ):
        run_traffic(source.connect, tenants=4, transactions=400, threads=2)
        before, after = others[: others.index(_NEXT_WINDOW)], others[others.index(_NEXT_WINDOW) :]
        exports = [command for command in before if command.startswith("export ")]
        printed = shell(before, folder, programs, source, target)
        run_traffic(source.connect, tenants=4, transactions=100, threads=1, seed=2)
        printed |= shell([*exports, *after], folder, programs, source, target)
        # each server has an account of its own for the channel
        differences = [each for each in compare(source, target).differences if "replicator" not in each]
        assert differences == []
    for command, lines in commands.items():
        found = {alike(line) for line in printed.get(command, "").splitlines()}
        assert [line for line in lines if alike(line) not in found] == [], (command, printed.get(command))


def shell(
    commands: list[str], folder: Path, programs: Path, source: PrivateServer, target: PrivateServer
) -> dict[str, str]:
    """Type the commands, one after the other, in one shell; what each printed. One that fails ends the test."""
    lines = ["set -eu -o pipefail", "exec 2>&1"]
    for number, command in enumerate(commands):
        lines += [f"echo '{_MARK} {number}'", on(command, source, target)]
    ours = ("AIRFLOW", "BINLANE", "PYTHON", "SPARK")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    given = {**inherited, "PATH": f"{programs}{os.pathsep}{inherited['PATH']}", "COLUMNS": "200"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], cwd=folder, env=given, capture_output=True, text=True, check=False
    )
    parts = re.split(rf"^{_MARK} \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert done.returncode == 0, done.stdout
    return dict(zip(commands, parts, strict=True))


def on(command: str, source: PrivateServer, target: PrivateServer) -> str:
    """The command for private servers, whose ports and administrators are others than the page's."""
    for name, server in (("db1.example.com", source), ("db2.example.com", target)):
        client = f"mariadb --no-defaults --skip-ssl -h {server.host} -P {server.port} -u {server.user}"
        command = command.replace(f"{name}:3306", f"{server.host}:{server.port}")
        command = command.replace(f"mysql -h {name} -u root -p", f"{client} -p{shlex.quote(server.password)}")
    if "//binlane:" in command or "CREATE USER" in command:
        # the administrators of private servers have the page's name
        command = command.replace("//binlane:", "//replicator:").replace("USER binlane", "USER replicator")
    assert "example.com" not in command
    return command
