"""Data folders ready to be copied: initializing one takes seconds, copying one does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from binlane.model import Flavor

USER: Final = "binlane"
PASSWORD: Final = "binlane-lab"
"""Of servers that listen on 127.0.0.1 only and hold made-up data only."""

_ACCOUNTS: Final = "".join(
    f"CREATE USER '{USER}'@'{host}' IDENTIFIED BY '{PASSWORD}';\n"
    f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'{host}' WITH GRANT OPTION;\n"
    for host in ("%", "localhost")
)
_FOLDERS: Final = ("/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/libexec")


class LabError(RuntimeError):
    """A private server cannot be made or started; the message says why and what to do."""


def server_binary(flavor: Flavor) -> Path:
    """The server's program: mariadbd on PATH or in the system folders; MySQL's by BINLANE_MYSQLD."""
    if flavor is Flavor.MYSQL:
        named = os.environ.get("BINLANE_MYSQLD")
        if named is None:
            raise LabError("BINLANE_MYSQLD is not set: it names the mysqld program to use")
        program = Path(named).expanduser()
        if not program.exists():
            raise LabError(f"BINLANE_MYSQLD names {program}, which does not exist")
        return program
    found = shutil.which("mariadbd", path=os.pathsep.join([os.environ.get("PATH", ""), *_FOLDERS]))
    if found is None:
        raise LabError("mariadbd is neither on PATH nor in /usr/sbin: install the package mariadb-server")
    return Path(found)


def common_options(flavor: Flavor) -> list[str]:
    """What every private server of ``flavor`` is started with; ``--no-defaults`` has to come first."""
    options = [
        *_no_defaults(flavor),
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


def data_template(flavor: Flavor) -> Path:
    """A freshly initialized data folder with the lab's account; made once a server version, then only copied from."""
    binary = server_binary(flavor)
    home = Path(tempfile.gettempdir()) / f"binlane-lab-{os.getuid()}"
    home.mkdir(mode=0o700, exist_ok=True)
    if home.stat().st_uid != os.getuid():
        raise LabError(f"{home} belongs to another user: remove it or set TMPDIR")
    version = _run([str(binary), *_no_defaults(flavor), "--version"]).split(" Ver ")[-1].split()[0]
    template = home / f"{flavor.value}-{version}"
    if not template.exists():
        with tempfile.TemporaryDirectory(dir=home) as building:
            fresh = Path(building) / "data"
            accounts = Path(building) / "accounts.sql"
            _INITIALIZERS[flavor](binary, fresh, accounts)
            try:
                fresh.rename(template)
            except OSError:
                # another process was faster; its template is as good
                if not template.exists():
                    raise
    return template


def _initialize_mariadb(binary: Path, datadir: Path, accounts: Path) -> None:
    beside = binary.parent.parent / "bin" / "mariadb-install-db"
    program = shutil.which("mariadb-install-db") or (str(beside) if beside.exists() else None)
    if program is None:
        raise LabError("mariadb-install-db is not on PATH: install the package mariadb-server")
    # the bootstrap server runs without grant tables until it is told to read them
    accounts.write_text("FLUSH PRIVILEGES;\n" + _ACCOUNTS)
    options = ["--no-defaults", f"--datadir={datadir}", "--innodb-log-file-size=48M", *_as_root()]
    extra = ["--auth-root-authentication-method=normal", "--skip-test-db", f"--extra-file={accounts}"]
    _run([program, *options, *extra])


def _initialize_mysql(binary: Path, datadir: Path, accounts: Path) -> None:
    accounts.write_text(_ACCOUNTS)
    options = [*_no_defaults(Flavor.MYSQL), f"--datadir={datadir}", *_as_root()]
    _run([str(binary), *options, "--initialize-insecure", f"--init-file={accounts}", "--innodb-redo-log-capacity=100M"])


_INITIALIZERS: Final = {Flavor.MARIADB: _initialize_mariadb, Flavor.MYSQL: _initialize_mysql}


def _no_defaults(flavor: Flavor) -> list[str]:
    """The option that keeps a server from the machine's option files; the servers refuse to see it twice."""
    with server_binary(flavor).open("rb") as program:
        # a script around an unpacked server has to pass it first, by itself
        return [] if program.read(2) == b"#!" else ["--no-defaults"]


def _as_root() -> list[str]:
    return ["--user=root"] if os.getuid() == 0 else []


def _run(command: list[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise LabError(f"{Path(command[0]).name} ended with {done.returncode}:\n{said}")
    return done.stdout
