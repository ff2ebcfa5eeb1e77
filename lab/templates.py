"""Data folders to copy, because initializing one takes seconds."""

from __future__ import annotations

import fcntl
import functools
import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from binlane.model import Flavor
from lab.private_files import write_private
from lab.programs import LabError, no_defaults, run, version_of

USER: Final = "binlane"
_PASSWORD: Final = "password"
_OF_DATA: Final = "binlane-password"
"""In a data folder, which outlives the templates: the password of its account."""
_DATA: Final = "data"
_LOOPBACK: Final = ("127.0.0.1", "::1")
_MADE_FOR: Final = "--lower-case-table-names="
_SMALL_MYSQL: Final = (
    *("--innodb-log-buffer-size=8M", "--table-open-cache=400", "--table-definition-cache=400"),
    *("--performance-schema-digests-size=0", "--performance-schema-events-statements-history-long-size=0"),
    *("--performance-schema-error-size=0", "--performance-schema-max-memory-classes=0"),
    *("--innodb-log-writer-threads=OFF", "--innodb-use-native-aio=OFF"),
)
"""270 instead of 540 MB of memory for an idle MySQL 9.7: tests run several servers at a time. Without the parts of the
performance schema that binlane does not read, and without threads that wait in a loop for a log to write: they take a
sixth of what statements cost on two cores, and as much again while the server has nothing to do."""


def common_options(flavor: Flavor, program: Path) -> list[str]:
    """The options of every private server of ``flavor``; ``--no-defaults`` must come first."""
    options = [
        *no_defaults(program),
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--character-set-server=utf8mb4",
        "--innodb-buffer-pool-size=128M",
        "--max-connections=200",
        "--max-allowed-packet=64M",
        *_as_root(),
    ]
    if flavor is Flavor.MYSQL:
        options += ["--mysqlx=OFF", "--innodb-redo-log-capacity=100M", *_SMALL_MYSQL]
    else:
        options += ["--innodb-log-file-size=48M", "--collation-server=utf8mb4_general_ci"]
    return options


def _home() -> Path:
    """The folder of the templates, which this account alone may enter. Raises LabError for another account's."""
    home = Path(tempfile.gettempdir()) / f"binlane-servers-{os.getuid()}"
    home.mkdir(mode=0o700, exist_ok=True)
    found = home.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise LabError(f"{home} belongs to another user, or others may enter it: remove it or set TMPDIR")
    return home


@functools.cache
def private_password() -> str:
    """The password of all private servers with data from this account's templates.

    Every account of the machine reaches 127.0.0.1, and the server's account may write files and run with this process's
    rights: so nobody else may know it.
    """
    file = _home() / _PASSWORD
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            write_private(file.with_suffix(".new"), secrets.token_urlsafe(18))
            file.with_suffix(".new").rename(file)
    return file.read_text()


def password_in(datadir: Path) -> str | None:
    """The password of the accounts in a data folder that was copied from a template; None for another folder."""
    file = datadir / _OF_DATA
    return file.read_text() if file.exists() else None


def _accounts(flavor: Flavor) -> str:
    """One statement a line."""
    password = private_password()
    # MariaDB's installer gives root no password, and accounts for TCP
    hosts = (*_LOOPBACK, "localhost") if flavor is Flavor.MARIADB else ()
    root = (f"ALTER USER IF EXISTS 'root'@'{host}' IDENTIFIED BY '{password}';\n" for host in hosts)
    own = (
        f"CREATE USER '{USER}'@'{host}' IDENTIFIED BY '{password}';\n"
        f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'{host}' WITH GRANT OPTION;\n"
        for host in ("%", "localhost")
    )
    return "".join((*own, *root))


def data_template(flavor: Flavor, program: Path, options: Sequence[str] = ()) -> Path:
    """An initialized data folder with the lab's account, created once for each server version and then copied.

    ``options``: of the server that will use it; a MySQL data folder is bound to one ``lower_case_table_names``.
    """
    kept = tuple(each for each in options if each.startswith(_MADE_FOR) and flavor is Flavor.MYSQL)
    home = _home()
    template = home / "-".join((flavor.value, version_of(program), *(each.strip("-") for each in kept)))
    with home.joinpath(f"{template.name}.lock").open("w") as lock:
        # several processes of tests need it at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            with tempfile.TemporaryDirectory(dir=home) as building:
                _INITIALIZERS[flavor](program, Path(building), kept)
                write_private(Path(building) / _DATA / _OF_DATA, private_password())
                (Path(building) / _DATA).rename(template)
    return template


def _initialize_mariadb(program: Path, folder: Path, kept: tuple[str, ...]) -> None:
    # first the installer beside the server: each creates the system tables of its own version
    beside = os.pathsep.join([str(program.parent), str(program.parent.parent / "bin"), os.environ.get("PATH", "")])
    installer = shutil.which("mariadb-install-db", path=beside)
    if installer is None:
        raise LabError(
            f"mariadb-install-db is neither beside {program} nor on PATH: install the package mariadb-server"
        )
    # a tmpdir of its own: a server that starts removes the temporary tables of all others from a shared one
    own = [f"--{name}={folder / path}" for name, path in (("datadir", _DATA), ("tmpdir", "tmp"))]
    (folder / "tmp").mkdir()
    options = [*own, "--innodb-log-file-size=48M", *_as_root()]
    run([installer, "--no-defaults", *options, "--auth-root-authentication-method=normal", "--skip-test-db"])
    # before 10.6 the installer takes no statements, so a server without grant tables executes them
    accounts = folder / "accounts.sql"
    accounts.write_text("FLUSH PRIVILEGES;\n" + _accounts(Flavor.MARIADB))
    with accounts.open() as statements:
        run([str(program), *no_defaults(program), *options, "--bootstrap"], statements)


def _initialize_mysql(program: Path, folder: Path, kept: tuple[str, ...]) -> None:
    accounts = folder / "accounts.sql"
    accounts.write_text(_accounts(Flavor.MYSQL))
    options = [*no_defaults(program), f"--datadir={folder / _DATA}", *kept, *_as_root()]
    run([str(program), *options, "--initialize-insecure", f"--init-file={accounts}", "--innodb-redo-log-capacity=100M"])


_INITIALIZERS: Final = {Flavor.MARIADB: _initialize_mariadb, Flavor.MYSQL: _initialize_mysql}


def _as_root() -> list[str]:
    return ["--user=root"] if os.getuid() == 0 else []
