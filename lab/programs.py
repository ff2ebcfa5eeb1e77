"""Which server programs this machine has: the system's, and those that lab/server_programs.sh has unpacked."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import IO, Final

from binlane.model import Flavor

VARIABLES: Final = {Flavor.MARIADB: "BINLANE_MARIADBD", Flavor.MYSQL: "BINLANE_MYSQLD"}
"""Environment variables that name a family's server program; they come before anything that is found."""
OTHERS: Final = "BINLANE_OTHER_MARIADBDS"
"""Environment variable: further ``mariadbd`` programs, separated as in PATH."""
WITHOUT_MYSQL: Final = "no MySQL server to test with: lab/server_programs.sh mysql"
"""Why a test is skipped, with the command that brings the program."""

_NAMES: Final = {Flavor.MARIADB: "mariadbd", Flavor.MYSQL: "mysqld"}
_FOLDERS: Final = ("/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/libexec")


class LabError(RuntimeError):
    """A private server cannot be created or started; the message has the reason and the next step."""


def server_binary(flavor: Flavor) -> Path:
    """The server's program: the one that the environment variable names, the unpacked one (MySQL), or the system's.

    :raises LabError: there is none; the message names the command that installs one.
    """
    variable = VARIABLES[flavor]
    named = os.environ.get(variable)
    if named is not None:
        program = Path(named).expanduser()
        if not program.exists():
            raise LabError(f"{variable} names {program}, which does not exist")
        return program
    found = _unpacked_mysql() if flavor is Flavor.MYSQL else None
    found = found or _of_the_system(flavor)
    if found is None and flavor is Flavor.MYSQL:
        raise LabError(f"no mysqld: run lab/server_programs.sh mysql, or let {variable} name one")
    if found is None:
        raise LabError("mariadbd is neither on PATH nor in /usr/sbin: install mariadb-server")
    return found


def has_mysql() -> bool:
    """Whether this machine has a MySQL server; one that the environment variable names counts though it is missing."""
    try:
        server_binary(Flavor.MYSQL)
    except LabError:
        return VARIABLES[Flavor.MYSQL] in os.environ
    return True


def other_programs() -> dict[str, Path]:
    """Further ``mariadbd`` programs by series: those of BINLANE_OTHER_MARIADBDS, or the unpacked ones."""
    named = os.environ.get(OTHERS)
    if named is None:
        programs = sorted(_unpacked().glob("mariadb-*/bin/mariadbd"))
    else:
        programs = [Path(name).expanduser() for name in named.split(os.pathsep) if name]
    return {series_of(program): program for program in programs}


def series_of(program: Path) -> str:
    """The first two numbers of a server program's version: ``11.8``."""
    return ".".join(version_of(program).split(".")[:2])


def version_of(program: Path) -> str:
    """A server program's version as it prints it: ``11.8.2-MariaDB``."""
    return run([str(program), *no_defaults(program), "--version"]).split(" Ver ")[-1].split()[0]


def no_defaults(program: Path) -> list[str]:
    """The option against the machine's option files; servers refuse it if it is given twice."""
    with program.open("rb") as file:
        # a script around an unpacked server passes it already
        return [] if file.read(2) == b"#!" else ["--no-defaults"]


def run(command: list[str], stdin: IO[str] | int = subprocess.DEVNULL) -> str:
    """The output of a program.

    :raises LabError: it failed; the message has the end of what it printed.
    """
    done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise LabError(f"{Path(command[0]).name} ended with {done.returncode}:\n{said}")
    return done.stdout


def _unpacked() -> Path:
    """Where lab/server_programs.sh unpacks."""
    return Path("~/.cache/binlane").expanduser()


def _unpacked_mysql() -> Path | None:
    program = _unpacked() / "mysql" / "bin" / "mysqld"
    return program if program.exists() else None


@functools.cache
def _of_the_system(flavor: Flavor) -> Path | None:
    found = shutil.which(_NAMES[flavor], path=os.pathsep.join([os.environ.get("PATH", ""), *_FOLDERS]))
    # MariaDB's packages have a mysqld, too
    if found is None or (flavor is Flavor.MYSQL and "MariaDB" in version_of(Path(found))):
        return None
    return Path(found)
