"""Data folders to copy, because initializing one takes seconds."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from binlane.model import Flavor
from lab.programs import LabError, no_defaults, run, version_of

USER: Final = "binlane"
PASSWORD: Final = "binlane-lab"
"""The password of all private servers, which listen on 127.0.0.1 only and have generated data only."""

_ACCOUNTS: Final = "".join(
    f"CREATE USER '{USER}'@'{host}' IDENTIFIED BY '{PASSWORD}';\n"
    f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'{host}' WITH GRANT OPTION;\n"
    for host in ("%", "localhost")
)
_DATA: Final = "data"
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


def data_template(flavor: Flavor, program: Path, options: Sequence[str] = ()) -> Path:
    """An initialized data folder with the lab's account, created once for each server version and then copied.

    ``options``: of the server that will use it; a MySQL data folder is bound to one ``lower_case_table_names``.
    """
    kept = tuple(each for each in options if each.startswith(_MADE_FOR) and flavor is Flavor.MYSQL)
    home = Path(tempfile.gettempdir()) / f"binlane-lab-{os.getuid()}"
    home.mkdir(mode=0o700, exist_ok=True)
    if home.stat().st_uid != os.getuid():
        raise LabError(f"{home} belongs to another user: remove it or set TMPDIR")
    template = home / "-".join((flavor.value, version_of(program), *(each.strip("-") for each in kept)))
    with home.joinpath(f"{template.name}.lock").open("w") as lock:
        # several processes of tests need it at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            with tempfile.TemporaryDirectory(dir=home) as building:
                _INITIALIZERS[flavor](program, Path(building), kept)
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
    accounts.write_text("FLUSH PRIVILEGES;\n" + _ACCOUNTS)
    with accounts.open() as statements:
        run([str(program), *no_defaults(program), *options, "--bootstrap"], statements)


def _initialize_mysql(program: Path, folder: Path, kept: tuple[str, ...]) -> None:
    accounts = folder / "accounts.sql"
    accounts.write_text(_ACCOUNTS)
    options = [*no_defaults(program), f"--datadir={folder / _DATA}", *kept, *_as_root()]
    run([str(program), *options, "--initialize-insecure", f"--init-file={accounts}", "--innodb-redo-log-capacity=100M"])


_INITIALIZERS: Final = {Flavor.MARIADB: _initialize_mariadb, Flavor.MYSQL: _initialize_mysql}


def _as_root() -> list[str]:
    return ["--user=root"] if os.getuid() == 0 else []
