"""A private copy of a family's test suites beside the installed server, in the layout that its driver needs.

The drivers (``mariadb-test-run.pl``, ``mysql-test-run.pl``) expect one base folder of a whole installation: bin/,
share/, lib/, mysql-test/. Debian spreads that over packages, and the lab's MySQL runs by its own loader.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.model import Flavor
from lab.programs import LabError, server_binary
from lab.suites.requirements import unmet
from lab.suites.rewriting import with_kept_tables, with_question, with_verdict

FOLDERS: Final = "BINLANE_SUITES"
"""Environment variable: an existing folder of unpacked suites (``provide.sh`` describes its content)."""
SUITES: Final[Mapping[Flavor, tuple[str, ...]]] = {
    Flavor.MARIADB: ("rpl", "binlog"),
    Flavor.MYSQL: ("rpl", "binlog", "rpl_gtid", "rpl_nogtid", "binlog_gtid", "binlog_nogtid"),
}
"""MySQL has moved the tests of one GTID mode out of ``rpl`` and ``binlog`` into suites of their own."""

_TESTS: Final = {Flavor.MARIADB: "usr/share/mysql/mysql-test", Flavor.MYSQL: "usr/lib/mysql-test"}
_DRIVERS: Final = {Flavor.MARIADB: "mariadb-test-run.pl", Flavor.MYSQL: "mysql-test-run.pl"}
_ENDS: Final = ("rpl_end.inc", "rpl/deinit.inc")
"""Files in include/ that end replication in a test, in MariaDB and in MySQL."""
_SHARED: Final = ("extra", "common", "include")
"""Folders of files that tests include, besides their suite's own."""
_STUBS: Final = (
    *("myisamlog", "myisamchk", "myisampack", "myisam_ftdump", "aria_chk", "aria_pack", "aria_read_log"),
    *("aria_dump_log", "aria_ftdump", "innochecksum", "mysqlhotcopy", "wsrep_sst_rsync"),
)
"""Programs that MariaDB's driver requires at its start, from packages that are not needed otherwise."""


_FIRST: Final = """first=
while :; do case "$1" in --defaults-*|--no-defaults) first="$first $1"; shift;; *) break;; esac; done
"""
"""Beginning of a script around mysqld: these options must come before the script's own."""


@dataclass(frozen=True, slots=True)
class Installation:
    """A family's driver, ready to run on a copy of its suites."""

    flavor: Flavor
    base: Path
    program: Path
    """The server program that the driver starts."""
    environment: Mapping[str, str]
    """Environment variables of the driver, its servers and its client."""

    @property
    def tests(self) -> Path:
        """The folder that the driver runs in."""
        return self.base / "mysql-test"

    @property
    def driver(self) -> Path:
        """The driver's program."""
        return self.tests / _DRIVERS[self.flavor]

    def names(self, suites: tuple[str, ...]) -> list[str]:
        """Every test of ``suites``, as ``suite.test``, sorted."""
        return [
            f"{suite}.{file.stem}" for suite in suites for file in sorted(_suite(self.tests, suite).glob("t/*.test"))
        ]

    def unmet(self, test: str, binlog_format: str) -> str | None:
        """Why ``suite.test`` cannot run on these servers in this format; None if it may."""
        suite, _, name = test.partition(".")
        return unmet(_suite(self.tests, suite) / "t" / f"{name}.test", self.tests, binlog_format)


def suites_folder() -> Path:
    """The unpacked suites: BINLANE_SUITES, else what ``provide.sh`` makes. Raises LabError if there are none."""
    named = os.environ.get(FOLDERS)
    command = [str(Path(__file__).parent / "provide.sh"), *([named] if named else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise LabError("the servers' test suites are not there; name a folder of them by BINLANE_SUITES")
    return Path(done.stdout.strip().splitlines()[-1])


def install(flavor: Flavor, suites: Path, base: Path) -> Installation:
    """Create the layout in ``base``. Raises LabError if the family's suites or its server are missing."""
    origin = suites / flavor.value / _TESTS[flavor]
    if not origin.is_dir():
        raise LabError(f"{origin} is not there: no suites of {flavor.value}")
    shutil.rmtree(base, ignore_errors=True)
    (base / "bin").mkdir(parents=True)
    (base / "lib" / "mysql" / "plugin").mkdir(parents=True)
    libraries = suites / "libraries" / "usr" / "lib"
    unpacked = suites / flavor.value / "usr"
    if flavor is Flavor.MARIADB:
        program = _lay_out_mariadb(base, unpacked)
        environment = {"LD_LIBRARY_PATH": os.pathsep.join(str(each) for each in sorted(libraries.glob("*-linux-*")))}
    else:
        program, environment = _lay_out_mysql(base, unpacked), {}
    # links for unchanged files: the driver writes only into the suites' own folders
    shutil.copytree(origin, base / "mysql-test", symlinks=True, copy_function=_link, ignore=_not_run)
    _prepare(flavor, base / "mysql-test")
    faster = next(libraries.glob("*-linux-*/libeatmydata.so"), None)
    return Installation(flavor, base, program, environment | ({"LD_PRELOAD": str(faster)} if faster else {}))


def _lay_out_mariadb(base: Path, unpacked: Path) -> Path:
    server = server_binary(Flavor.MARIADB)
    (base / "sbin").mkdir()
    (base / "sbin" / "mariadbd").symlink_to(server)
    (base / "share").symlink_to(_share_of(server))
    clients = Path(shutil.which("mariadb") or "/usr/bin/mariadb").parent
    for program in [
        *clients.glob("mariadb*"),
        *(clients / name for name in ("my_print_defaults", "perror", "replace")),
    ]:
        if program.exists():
            (base / "bin" / program.name).symlink_to(program)
    for program in (unpacked / "bin").iterdir():
        _replace(base / "bin" / program.name).symlink_to(program)
    for name in _STUBS:
        if not (base / "bin" / name).exists():
            _script(base / "bin" / name, "exit 0")
    plugins = [*(unpacked / "lib" / "mysql" / "plugin").glob("*.so"), *Path("/usr/lib/mysql/plugin").glob("*.so")]
    _link_all(plugins, base / "lib" / "mysql" / "plugin")
    return base / "sbin" / "mariadbd"


def _lay_out_mysql(base: Path, unpacked: Path) -> Path:
    """The server is ``bin/mysqld`` beside ``root/``, an unpacked copy whose loader runs the clients too."""
    root = server_binary(Flavor.MYSQL).resolve().parent.parent / "root"
    loader = next(root.glob("usr/lib64/ld-linux*"), None) or next(root.glob("usr/lib/ld-linux*"), None)
    if loader is None:
        raise LabError(f"suites of MySQL: expected an unpacked copy with its own loader in {root}, found none")
    libraries = os.pathsep.join(str(each) for each in sorted((root / "usr" / "lib").glob("*-linux-gnu")))
    run = f"exec {loader} --library-path {libraries}"
    for folder in (unpacked / "bin", unpacked / "lib" / "mysql-test" / "bin", root / "usr" / "bin"):
        for program in folder.iterdir():
            # links lead to the server's own programs, which the last folder holds
            if not program.is_symlink() and program.is_file():
                _script(base / "bin" / program.name, f'{run} {program} "$@"')
    (base / "share").symlink_to(root / "usr" / "share" / "mysql")
    plugins = base / "lib" / "mysql" / "plugin"
    _link_all([*(root / "usr/lib/mysql/plugin").iterdir(), *(unpacked / "lib/mysql/plugin").iterdir()], plugins)
    _script(base / "bin" / "mysqld", f'{_FIRST}{run} {root}/usr/sbin/mysqld $first --plugin-dir={plugins} "$@"')
    return base / "bin" / "mysqld"


def _share_of(server: Path) -> Path:
    candidates = [
        folder / name
        for folder in (server.resolve().parent.parent / "share", Path("/usr/share"))
        for name in ("mariadb", "mysql")
    ]
    found = next((folder for folder in candidates if (folder / "charsets").is_dir()), None)
    if found is None:
        raise LabError(f"no folder with charsets/ beside {server}: install mariadb-server-core")
    return found


def _prepare(flavor: Flavor, tests: Path) -> None:
    """Rewrite the test files and their includes, so that tests keep dropped tables and ask for a verdict."""
    suites = SUITES[flavor]
    for end in _ENDS:
        file = tests / "include" / end
        if file.exists():
            _rewrite(file, with_question(_text(file)))
    for suite in suites:
        for file in sorted(_suite(tests, suite).glob("t/*.test")):
            name = f"{suite}.{file.stem}"
            ends = any(end in _whole(file, tests) for end in _ENDS)
            text = with_kept_tables(_text(file), _prefix(name))
            _rewrite(file, with_verdict(text, name, ends_by_itself=ends))
    for file in _included(tests, suites):
        _rewrite(file, with_kept_tables(_text(file), _prefix(file.name)))


def _included(tests: Path, suites: tuple[str, ...]) -> Iterator[Path]:
    folders = [tests / name for name in _SHARED if name != "include"]
    folders += [_suite(tests, suite) / "include" for suite in suites]
    for folder in folders:
        yield from (file for file in sorted(folder.rglob("*")) if file.suffix in (".inc", ".test") and file.is_file())
    # the drivers' own checks stand there too; only what tests take their statements from
    for name in ("commit.inc", "ctype_common.inc", "rpl_row_img_general_loop.inc"):
        if (tests / "include" / name).exists():
            yield tests / "include" / name


def _whole(file: Path, tests: Path) -> str:
    """A test's text together with the test files that it includes completely."""
    text = _text(file)
    lines = [line for line in text.splitlines() if "source " in line and ".test" in line]
    parts = [line.split("source", 1)[1].strip(" ;") for line in lines]
    files = [tests / part for part in parts] + [file.parent / part for part in parts]
    return text + "".join(_text(each) for each in files if each.is_file())


def _prefix(name: str) -> str:
    return "".join(character if character.isalnum() else "_" for character in name)[-16:] + "_"


def _suite(tests: Path, suite: str) -> Path:
    return tests / "suite" / suite


def _not_run(folder: str, names: list[str]) -> list[str]:
    """An ``ignore`` function for ``copytree``: MySQL's largest suites, which are not run."""
    return [name for name in names if name in ("ndb", "group_replication")] if folder.endswith("/suite") else []


def _text(file: Path) -> str:
    return file.read_bytes().decode("latin-1")


def _rewrite(file: Path, text: str) -> None:
    # not in place: the file may be a hard link to the unpacked suites
    file.unlink()
    file.write_bytes(text.encode("latin-1"))


def _link(source: str, target: str) -> None:
    if "/r/" in source or source.endswith(".result"):
        # a copy, because the driver overwrites it
        shutil.copy2(source, target)
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _link_all(files: list[Path], folder: Path) -> None:
    for file in files:
        _replace(folder / file.name).symlink_to(file)


def _replace(path: Path) -> Path:
    path.unlink(missing_ok=True)
    return path


def _script(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
