"""Real servers for the tests: private, started once a session, stopped with it."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from binlane.model import Flavor
from binlane.orchestration.plan_job.jvm_options import OPTIONS, with_jvm_options
from binlane.precheck.situation import finding
from binlane.work.plan_job import fork_server
from lab.programs import WITHOUT_MYSQL, has_mysql, other_programs, series_of, server_binary
from lab.servers import PrivateServer, private_server
from tests import forked
from tests.emptied import Origin, drop_databases
from tests.server_folders import has_memory, memory_folder

pytest_plugins = ("tests.tiers",)

# a test's Spark lives for seconds: the second compiler and the usual collector's threads cost more than they bring
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
os.environ[OPTIONS] = with_jvm_options(os.environ)[OPTIONS]

# a process that is started in another folder would not find a relative one, and run the code of the installed checkout
if _places := os.environ.get("PYTHONPATH"):
    os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, _places.split(os.pathsep)))

_origins: dict[Path, Origin] = {}
"""Of the session's servers, by data folder."""

requires_mysql = pytest.mark.skipif(not has_mysql(), reason=WITHOUT_MYSQL)


class Started(Protocol):
    """Gives the session's server of a name, started when it is asked for first; of another program or with options of
    its own, if they are given."""

    def __call__(
        self, flavor: Flavor, name: str, program: Path | None = None, options: tuple[str, ...] = (), /
    ) -> PrivateServer: ...


def pytest_configure() -> None:
    """A shell starts programs in the background with SIGINT ignored; those that tests interrupt would inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Each worker makes 15,000 tests that stay: the collector would look at them again and again, for a quarter of the
    time that it takes."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What was imported and collected stays for good: the collector passes over it, here and in forked processes, which
    would copy each page that it touches."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """The last lines: why tests were skipped, one line per reason with the command that brings what is missing."""
    yield
    reasons = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")


@pytest.fixture(scope="session", autouse=True)
def whole_findings() -> Iterator[None]:
    """A test of one finding reads it as a whole, whatever else one step mends: see ``finding.TOGETHER``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finding, "TOGETHER", sys.maxsize)
        yield


@pytest.fixture(scope="session", autouse=True)
def whole_fork_server() -> Iterator[None]:
    """A session has one fork server, and chance decides which test starts it: each process of another kind would import
    for half a second to seconds what it lacks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fork_server, "WORKERS", (*fork_server.WORKERS, *forked.PRELOADED))
        yield


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """A function that gives the session's server of a name, started when it is asked for first."""
    with contextlib.ExitStack() as stack:
        memory = stack.enter_context(memory_folder()) if has_memory() else None

        @functools.cache
        def start(
            flavor: Flavor, name: str, program: Path | None = None, options: tuple[str, ...] = (), /
        ) -> PrivateServer:
            folder = tmp_path_factory.mktemp(name) if memory is None or not has_memory() else memory / name
            server = stack.enter_context(
                private_server(folder / "data", flavor, options, name=name, durable=False, program=program)
            )
            _origins[server.datadir] = Origin.of(server)
            return server

        yield start


# A server is the session's, what it holds is the module's: which modules came before is chance.


@pytest.fixture(scope="module")
def mariadb_source(started: Started) -> PrivateServer:
    """A MariaDB server with a binlog, for the source's part."""
    return _emptied(started(Flavor.MARIADB, "mariadb_source"))


@pytest.fixture(scope="module")
def mariadb_target(started: Started) -> PrivateServer:
    """Another MariaDB server with a binlog of its own, for the target's part."""
    return _emptied(started(Flavor.MARIADB, "mariadb_target"))


@pytest.fixture(scope="module")
def mysql_source(started: Started) -> PrivateServer:
    """A MySQL server with GTIDs and a binlog; the test is skipped where this machine has none."""
    return _mysql(started, "mysql_source")


@pytest.fixture(scope="module")
def mysql_target(started: Started) -> PrivateServer:
    """Another MySQL server with GTIDs; the test is skipped where this machine has none."""
    return _mysql(started, "mysql_target")


@pytest.fixture(scope="module")
def anonymous_mysql(started: Started) -> tuple[PrivateServer, PrivateServer]:
    """A MySQL source and a target without GTIDs: with them MySQL lets nobody mix engines in a transaction."""
    options = ("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")
    source, target = (_mysql(started, f"anonymous_{part}", options) for part in ("source", "target"))
    return source, target


@pytest.fixture(scope="module")
def server_of(started: Started) -> Callable[[str, str], PrivateServer]:
    """A function that gives the server of a series of MariaDB (``11.8``), or of ``mysql``, for a part (``source``).

    The test is skipped where this machine has no such server: lab/server_programs.sh brings some.
    """

    @functools.cache
    def start(version: str, part: str) -> PrivateServer:
        if version == "mysql":
            return _mysql(started, f"mysql_{part}")
        usual = server_binary(Flavor.MARIADB)
        if version == series_of(usual):
            return _emptied(started(Flavor.MARIADB, f"mariadb_{part}"))
        program = other_programs().get(version)
        if program is None:
            pytest.skip(f"no MariaDB {version} to test with: lab/server_programs.sh")
        return _emptied(started(Flavor.MARIADB, f"mariadb_{version}_{part}", program))

    return start


@pytest.fixture
def clean_databases() -> Callable[[PrivateServer], None]:
    """A function that drops every database of tests from a server. The next one to use it drops what this one makes."""
    return drop_databases


def _mysql(started: Started, name: str, options: tuple[str, ...] = ()) -> PrivateServer:
    if not has_mysql():
        pytest.skip(WITHOUT_MYSQL)
    return _emptied(started(Flavor.MYSQL, name, None, options))


def _emptied(server: PrivateServer) -> PrivateServer:
    _origins[server.datadir].restore(server)
    return server
