"""A window takes the definitions that the window before has read, unless a server may have changed one since."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Connection

from binlane.errors import PrecheckError
from binlane.formats import FORMATS_FILE
from binlane.model import TableKey
from binlane.precheck.account.privileges import Grants, read_grants
from binlane.precheck.definitions import kept
from binlane.precheck.definitions import noted as definitions
from binlane.schema.model import Schema
from binlane.servers import statement_counts
from binlane.servers.catalog import read_partitioned, read_schema
from binlane.work import files
from binlane.work.files import WorkFolder
from tests.integration.window.conftest import Channel, ChannelOf, run_on
from tests.integration.window.ddl.test_read_once import CHANGES, altering, extracted, pair, with_one_row

__all__ = ["pair"]
Read = list[tuple[int, frozenset[str]]]
"""Port of the server and databases, of each reading of definitions."""
_PROCESS: Final = frozenset({"PROCESS"})


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    found: Read = []

    def noted(connection: Connection, databases: frozenset[str]) -> Schema:
        found.append((int(connection.engine.url.port or 0), frozenset(databases)))
        return read_schema(connection, databases)

    monkeypatch.setattr(definitions, "read_schema", noted)
    monkeypatch.setattr(kept, "read_schema", noted)
    return found


@pytest.fixture
def mariadb_pair(channel_of: ChannelOf) -> Channel:
    return with_one_row(channel_of("mariadb", "mariadb"))


def servers(channel: Channel, read: Read) -> list[str]:
    """Which servers were read since the last time this was asked."""
    ports = {channel.source.port: "source", channel.target.port: "target"}
    found = sorted(ports[port] for port, _ in read)
    read.clear()
    return found


def window_of(channel: Channel, row: int) -> WorkFolder:
    """Log a row and apply the window; its folder."""
    run_on(channel.source, f"INSERT INTO tenant_1.t VALUES ({row}, 2, 3)")
    window = extracted(channel)
    channel.go_on(window)
    channel.assert_equal()
    return WorkFolder(str(window["work"]))


def test_the_next_windows_read_no_definitions(pair: Channel, read: Read) -> None:
    window_of(pair, 2)
    assert servers(pair, read) == ["source", "target"]
    for row in (3, 4):
        window_of(pair, row)
        assert servers(pair, read) == []


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.paired
def test_a_definition_that_is_changed_between_windows_without_a_log_stops_the_next(
    pair: Channel, side: str, change: str, read: Read
) -> None:
    window_of(pair, 2)
    servers(pair, read)
    before = pair.status.positions
    run_on(pair.source if side == "source" else pair.target, change, log=False)
    run_on(pair.source, "INSERT INTO tenant_1.t (id) VALUES (3)")
    window = extracted(pair)
    assert servers(pair, read) == [side]
    with pytest.raises(PrecheckError, match=r"tenant_1\.t\.[ab]: "):
        pair.go_on(window)
    assert pair.status.positions == before


def test_a_definition_that_the_log_changes_is_read_from_both(pair: Channel, read: Read) -> None:
    window_of(pair, 2)
    run_on(pair.source, "ALTER TABLE tenant_1.other ADD c INT", "INSERT INTO tenant_1.other VALUES (1, 2, 3, 4)")
    window_of(pair, 3)
    servers(pair, read)
    # the source's was read behind its ALTER, and the target's before
    window_of(pair, 4)
    assert servers(pair, read) == ["target"]
    window_of(pair, 5)
    assert servers(pair, read) == []


def test_a_statement_that_ran_on_the_source_while_it_was_read_makes_the_next_window_read_it_again(
    pair: Channel, read: Read
) -> None:
    """The source had counted the statement before, and had not executed it."""
    run_on(pair.source, "INSERT INTO tenant_1.t VALUES (2, 2, 3)")
    with altering(pair.source, CHANGES["columns-swapped"]):
        window = extracted(pair)
        pair.go_on(window)
    servers(pair, read)
    run_on(pair.source, "INSERT INTO tenant_1.t (id) VALUES (3)")
    window = extracted(pair)
    assert servers(pair, read) == ["source"]
    with pytest.raises(PrecheckError, match=r"tenant_1\.t\.[ab]: "):
        pair.go_on(window)


def without_process(connection: Connection) -> Grants:
    is_source = connection.engine.url.port == without_process.port  # type: ignore[attr-defined]
    return Grants(()) if is_source else read_grants(connection)


def test_without_process_the_source_is_read_in_each_window(
    pair: Channel, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_process.port = pair.source.port  # type: ignore[attr-defined]
    monkeypatch.setattr(definitions, "read_grants", without_process)
    window_of(pair, 2)
    servers(pair, read)
    window_of(pair, 3)
    assert servers(pair, read) == ["source"]


def _removed(folder: WorkFolder) -> None:
    shutil.rmtree(folder.uri)


def _of_another_release(folder: WorkFolder) -> None:
    path = Path(folder.path(FORMATS_FILE))
    path.write_text(json.dumps({**json.loads(path.read_text()), "binlane": "0.0.1"}))


def _damaged_notes(folder: WorkFolder) -> None:
    Path(folder.path(files.DEFINITIONS)).write_text("{")


def _damaged_definitions(folder: WorkFolder) -> None:
    for name in (files.SCHEMA, files.SOURCE_SCHEMA):
        Path(folder.path(name)).write_bytes(b"{}")


@pytest.mark.parametrize("lose", [_removed, _of_another_release, _damaged_notes, _damaged_definitions])
def test_definitions_are_read_where_the_window_before_tells_nothing(
    pair: Channel, read: Read, lose: Callable[[WorkFolder], None]
) -> None:
    lose(window_of(pair, 2))
    servers(pair, read)
    window_of(pair, 3)
    assert servers(pair, read) == ["source", "target"]


def test_another_account_reads_for_itself(pair: Channel, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may see other objects."""
    window_of(pair, 2)
    servers(pair, read)
    asked = statement_counts._WHO.replace("CURRENT_USER()", "'another@localhost'")
    monkeypatch.setattr(statement_counts, "_WHO", asked)
    window_of(pair, 3)
    assert servers(pair, read) == ["source", "target"]


def test_a_database_that_is_new_on_both_servers_is_read(pair: Channel, read: Read) -> None:
    window_of(pair, 2)
    for server in (pair.source, pair.target):
        run_on(server, "CREATE DATABASE tenant_2", "CREATE TABLE tenant_2.t (id INT PRIMARY KEY)", log=False)
    run_on(pair.source, "INSERT INTO tenant_2.t VALUES (1)")
    servers(pair, read)
    window_of(pair, 3)
    assert servers(pair, read) == ["source", "target"]


def test_a_database_that_is_new_on_the_target_alone_is_read_from_both(pair: Channel, read: Read) -> None:
    tenant = ("CREATE DATABASE tenant_2", "CREATE TABLE tenant_2.t (id INT PRIMARY KEY)")
    run_on(pair.source, *tenant, "INSERT INTO tenant_1.t VALUES (2, 2, 3)", log=False)
    run_on(pair.target, "INSERT INTO tenant_1.t VALUES (2, 2, 3)", log=False)
    run_on(pair.source, "DELETE FROM tenant_1.t WHERE id = 2")
    pair.go_on(extracted(pair))
    servers(pair, read)
    run_on(pair.target, *tenant, log=False)
    window_of(pair, 3)
    assert servers(pair, read) == ["source", "target"]


def test_partitioned_tables_are_kept_as_long_as_the_definitions(
    mariadb_pair: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB counts the rows of these tables twice, so a lane that does not know of one stops."""
    asked: list[frozenset[str]] = []

    def noted(connection: Connection, databases: frozenset[str]) -> frozenset[TableKey]:
        asked.append(databases)
        return read_partitioned(connection, databases)

    monkeypatch.setattr(kept, "read_partitioned", noted)
    monkeypatch.setattr(definitions, "read_partitioned", noted)
    window_of(mariadb_pair, 2)
    window_of(mariadb_pair, 3)
    assert len(asked) == 1
    for server in (mariadb_pair.source, mariadb_pair.target):
        run_on(server, "ALTER TABLE tenant_1.t PARTITION BY HASH (id) PARTITIONS 2", log=False)
    folder = window_of(mariadb_pair, 4)
    assert len(asked) == 2
    run_on(mariadb_pair.source, "INSERT INTO tenant_1.t VALUES (5, 2, 3)")
    window = extracted(mariadb_pair)
    run_on(mariadb_pair.target, "ALTER TABLE tenant_1.t REMOVE PARTITIONING", log=False)
    mariadb_pair.go_on(window)
    assert len(asked) == 3
    plans = [folder.child(name) for name in folder.children() if folder.child(name).exists(files.PARTITIONED)]
    assert [json.loads(plan.read(files.PARTITIONED)) for plan in plans] == [{"partitioned": [["tenant_1", "t"]]}]


def test_settings_are_those_of_the_window(pair: Channel, read: Read) -> None:
    """SET GLOBAL counts as no change of a definition."""
    window_of(pair, 2)
    servers(pair, read)
    pair.target.query("SET GLOBAL max_allowed_packet = 33554432")
    folder = window_of(pair, 3)
    assert servers(pair, read) == []
    assert b"33554432" in folder.read(files.SCHEMA)
