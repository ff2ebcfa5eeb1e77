"""Targets of every kind, and the score at the end of the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from binlane.model import Flavor
from lab.programs import WITHOUT_MYSQL, has_mysql
from lab.servers import PrivateServer, private_server
from tests.chaos import rounds
from tests.integration.window.conftest import channel, channel_of, clean_servers  # noqa: F401

_NO_GTIDS = ("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of several (pytest-xdist) hands its score over."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["survived"] = dict(rounds.survived)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The first process adds the scores of the others."""
    rounds.survived.update(getattr(node, "workeroutput", {}).get("survived", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was survived, in numbers."""
    if rounds.survived:
        terminalreporter.section("chaos")
        for line in rounds.summary():
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def mariadb_without_binlog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """A target whose DDL leaves no GTID."""
    folder = tmp_path_factory.mktemp("mariadb_plain")
    with private_server(folder / "data", name="mariadb_plain", log_bin=False, durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def mysql_without_binlog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """MySQL with neither binlog nor GTIDs."""
    yield from _mysql(tmp_path_factory, "mysql_plain", log_bin=False)


@pytest.fixture(scope="session")
def mysql_without_gtids(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """MySQL with a binlog and anonymous transactions."""
    yield from _mysql(tmp_path_factory, "mysql_anonymous", *_NO_GTIDS)


def _mysql(factory: pytest.TempPathFactory, name: str, *options: str, log_bin: bool = True) -> Iterator[PrivateServer]:
    if not has_mysql():
        pytest.skip(WITHOUT_MYSQL)
    folder = factory.mktemp(name)
    with private_server(folder / "data", Flavor.MYSQL, options, name=name, log_bin=log_bin, durable=False) as server:
        yield server
