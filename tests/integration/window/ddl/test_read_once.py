"""A window reads definitions once, and again where a server may have changed one since, logged or not."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection

from binlane.errors import PrecheckError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.precheck.account.privileges import Grants
from binlane.precheck.definitions import noted as definitions
from binlane.schema.model import Schema
from binlane.servers.catalog import read_schema
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, ChannelOf, run_on

SHOP = ("CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, a INT, b INT) ENGINE = InnoDB")
CHANGES = {
    "columns-swapped": "ALTER TABLE tenant_1.t MODIFY COLUMN b INT AFTER id",
    "unsigned": "ALTER TABLE tenant_1.t MODIFY COLUMN a INT UNSIGNED",
    "another-table": "RENAME TABLE tenant_1.t TO tenant_1.u, tenant_1.other TO tenant_1.t",
}


@pytest.fixture(params=["mariadb", "mysql"])
def pair(request: pytest.FixtureRequest, channel_of: ChannelOf) -> Channel:
    """A channel whose two servers have the same tables; one row is logged."""
    return with_one_row(channel_of(request.param, request.param))


def with_one_row(channel: Channel) -> Channel:
    for server in (channel.source, channel.target):
        run_on(server, *SHOP, "CREATE TABLE tenant_1.other (id INT PRIMARY KEY, b INT, a INT)", log=False)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (1, 2, 3)")
    # a server's clock counts whole seconds: the counts must have begun in an earlier one
    time.sleep(1.1)
    return channel


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[str]]:
    """The databases whose definitions the precheck has read, by reading."""
    found: list[frozenset[str]] = []

    def noted(connection: Connection, databases: frozenset[str]) -> Schema:
        found.append(frozenset(databases))
        return read_schema(connection, databases)

    monkeypatch.setattr(definitions, "read_schema", noted)
    return found


def extracted(channel: Channel) -> dict[str, object]:
    return steps.extract(channel.config, channel.endpoints, WindowRequest("now"))


def test_a_window_reads_definitions_once(pair: Channel, read: list[frozenset[str]]) -> None:
    pair.go_on(extracted(pair))
    assert read == []
    pair.assert_equal()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.paired
def test_a_definition_that_is_changed_behind_extraction_without_a_log_stops_the_window(
    pair: Channel, side: str, change: str, read: list[frozenset[str]]
) -> None:
    window = extracted(pair)
    run_on(pair.source if side == "source" else pair.target, change, log=False)
    with pytest.raises(PrecheckError, match=r"tenant_1\.t\.[ab]: "):
        pair.go_on(window)
    assert len(read) == 1
    assert pair.status.positions == ()


def test_a_definition_that_was_being_changed_during_extraction_stops_the_window(pair: Channel) -> None:
    """The target had counted the statement before, and had not executed it."""
    with altering(pair.target, CHANGES["columns-swapped"]):
        window = extracted(pair)
    with pytest.raises(PrecheckError, match=r"tenant_1\.t\.b: "):
        pair.go_on(window)


@contextlib.contextmanager
def altering(server: PrivateServer, statement: str) -> Iterator[None]:
    """The statement waits for a lock until the end of the block."""
    with contextlib.closing(server.connect()) as holder, ThreadPoolExecutor(1) as pool:
        holder.query("SELECT * FROM tenant_1.t")
        running = pool.submit(run_on, server, statement, log=False)
        while not any(statement in str(row) for row in server.query("SHOW FULL PROCESSLIST")):
            time.sleep(0.01)
        try:
            yield
        finally:
            holder.rollback()
            running.result()


def test_a_database_that_the_target_did_not_have_is_read_from_the_source(
    pair: Channel, read: list[frozenset[str]]
) -> None:
    run_on(pair.source, "CREATE DATABASE tenant_2", "CREATE TABLE tenant_2.t (id INT PRIMARY KEY)")
    run_on(pair.source, "INSERT INTO tenant_2.t VALUES (1)")
    pair.go_on(extracted(pair))
    assert [databases & {"tenant_2"} for databases in read] == [{"tenant_2"}]
    pair.assert_equal()


def test_definitions_are_read_again_where_nothing_tells_whether_they_changed(
    pair: Channel, read: list[frozenset[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target's account lacks PROCESS."""
    with monkeypatch.context() as patched:
        patched.setattr(definitions, "read_grants", lambda _: Grants(()))
        window = extracted(pair)
    pair.go_on(window)
    assert len(read) == 1


def test_definitions_of_an_engine_that_others_change_are_read_again(
    pair: Channel, read: list[frozenset[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "_OWN_ENGINES", frozenset({"myisam"}))
    pair.go_on(extracted(pair))
    assert len(read) == 2
