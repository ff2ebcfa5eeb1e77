"""Data folders to copy, because initializing one takes seconds."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from binlane.model import Flavor

USER: Final = "binlane"
PASSWORD: Final = "binlane-lab"
"""The password of all private servers, which listen on 127.0.0.1 only and have generated data only."""

_ACCOUNTS: Final = "".join(
    f"CREATE USER '{USER}'@'{host}' IDENTIFIED BY '{PASSWORD}';\n"
    f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'{host}' WITH GRANT OPTION;\n"
    for host in ("%", "localhost")
)
_VARIABLES: Final = {Flavor.MARIADB: "BINLANE_MARIADBD", Flavor.MYSQL: "BINLANE_MYSQLD"}
_MADE_FOR: Final = "--lower-case-table-names="
_FOLDERS: Final = ("/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/libexec")


class LabError(RuntimeError):
    """A private server cannot be created or started; the message has the reason and the next step."""


def server_binary(flavor: Flavor) -> Path:
    """The server's program: BINLANE_MYSQLD's; BINLANE_MARIADBD's, or mariadbd on PATH or in the system folders."""
    variable = _VARIABLES[flavor]
    named = os.environ.get(variable)
    if named is not None:
        program = Path(named).expanduser()
        if not program.exists():
            raise LabError(f"{variable} names {program}, which does not exist")
        return program
    if flavor is Flavor.MYSQL:
        raise LabError(f"{variable} is not set: it names the mysqld program to use")
    found = shutil.which("mariadbd", path=os.pathsep.join([os.environ.get("PATH", ""), *_FOLDERS]))
    if found is None:
        raise LabError("mariadbd is neither on PATH nor in /usr/sbin: install mariadb-server")
    return Path(found)


def series_of(program: Path) -> str:
    """The first two numbers of a server program's version: ``11.8``."""
    return ".".join(_version(program).split(".")[:2])


def other_programs() -> dict[str, Path]:
    """Further ``mariadbd`` programs by series, from BINLANE_OTHER_MARIADBDS (separated as in PATH)."""
    named = os.environ.get("BINLANE_OTHER_MARIADBDS", "").split(os.pathsep)
    return {series_of(program): program for program in (Path(name).expanduser() for name in named if name)}


def common_options(flavor: Flavor, program: Path) -> list[str]:
    """The options of every private server of ``flavor``; ``--no-defaults`` must come first."""
    options = [
        *_no_defaults(program),
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--character-set-server=utf8mb4",
        "--innodb-buffer-pool-size=128M",
        "--max-connections=200",
        "--max-allowed-packet=64M",
        *_as_root(),
    ]
    if flavor is Flavor.MYSQL:
        options += ["--mysqlx=OFF", "--innodb-redo-log-capacity=100M"]
    else:
        options += ["--innodb-log-file-size=48M", "--collation-server=utf8mb4_general_ci"]
    return options


def data_template(flavor: Flavor, program: Path, options: Sequence[str] = ()) -> Path:
    """An initialized data folder with the lab's account, created once for each server version and then copied.

    ``options``: of the server that will use it; a MySQL data folder is bound to one ``lower_case_table_names``.
    """
    kept = tuple(each for each in options if each.startswith(_MADE_FOR) and flavor is Flavor.MYSQL)
    home = Path(tempfile.gettempdir()) / f"binlane-lab-{os.getuid()}"
    home.mkdir(mode=0o700, exist_ok=True)
    if home.stat().st_uid != os.getuid():
        raise LabError(f"{home} belongs to another user: remove it or set TMPDIR")
    template = home / "-".join((flavor.value, _version(program), *(each.strip("-") for each in kept)))
    if not template.exists():
        with tempfile.TemporaryDirectory(dir=home) as building:
            fresh = Path(building) / "data"
            accounts = Path(building) / "accounts.sql"
            _INITIALIZERS[flavor](program, fresh, accounts, kept)
            try:
                fresh.rename(template)
            except OSError:
                # another process was faster; its template is the same
                if not template.exists():
                    raise
    return template


def _initialize_mariadb(program: Path, datadir: Path, accounts: Path, kept: tuple[str, ...]) -> None:
    # first the installer beside the server: each creates the system tables of its own version
    beside = os.pathsep.join([str(program.parent), str(program.parent.parent / "bin"), os.environ.get("PATH", "")])
    installer = shutil.which("mariadb-install-db", path=beside)
    if installer is None:
        raise LabError(
            f"mariadb-install-db is neither beside {program} nor on PATH: install the package mariadb-server"
        )
    options = [f"--datadir={datadir}", "--innodb-log-file-size=48M", *_as_root()]
    _run([installer, "--no-defaults", *options, "--auth-root-authentication-method=normal", "--skip-test-db"])
    # before 10.6 the installer takes no statements, so a server without grant tables executes them
    accounts.write_text("FLUSH PRIVILEGES;\n" + _ACCOUNTS)
    with accounts.open() as statements:
        _run([str(program), *_no_defaults(program), *options, "--bootstrap"], statements)


def _initialize_mysql(program: Path, datadir: Path, accounts: Path, kept: tuple[str, ...]) -> None:
    accounts.write_text(_ACCOUNTS)
    options = [*_no_defaults(program), f"--datadir={datadir}", *kept, *_as_root()]
    _run(
        [str(program), *options, "--initialize-insecure", f"--init-file={accounts}", "--innodb-redo-log-capacity=100M"]
    )


_INITIALIZERS: Final = {Flavor.MARIADB: _initialize_mariadb, Flavor.MYSQL: _initialize_mysql}


def _version(program: Path) -> str:
    return _run([str(program), *_no_defaults(program), "--version"]).split(" Ver ")[-1].split()[0]


def _no_defaults(program: Path) -> list[str]:
    """The option against the machine's option files; servers refuse it if it is given twice."""
    with program.open("rb") as file:
        # a script around an unpacked server passes it already
        return [] if file.read(2) == b"#!" else ["--no-defaults"]


def _as_root() -> list[str]:
    return ["--user=root"] if os.getuid() == 0 else []


def _run(command: list[str], stdin: IO[str] | int = subprocess.DEVNULL) -> str:
    done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise LabError(f"{Path(command[0]).name} ended with {done.returncode}:\n{said}")
    return done.stdout
