"""What a note of a DDL proves on the server that has shown it, and on one that has the note by replication."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from unittest.mock import Mock

import pymysql
import pytest

from binlane.apply.ddl.fingerprint import Fingerprint, _definition
from binlane.apply.ddl.outcome import DdlPlace, after_crash, left_to_run
from binlane.errors import UndecidableError
from binlane.model import Flavor, Item
from binlane.state.positions import PlanKey
from binlane.state.records.ddl_intents import INTENT, DdlIntent
from tests.integration.apply.capture import ddl_item

_PLACE: Final = DdlPlace(PlanKey("orders", "w", "d"), "00000000-0000-0000-0000-000000000000", 0, 7)
_BEFORE: Final = Fingerprint("a" * 32, 2, "1" * 16, "5" * 12, "10.11.6-MariaDB", is_whole=True, unreadable=False)
_SWAP: Final = "RENAME TABLE d.live TO d.old, d.next TO d.live, d.old TO d.next"
_EXCHANGE: Final = "ALTER TABLE d.t EXCHANGE PARTITION p WITH TABLE d.u"
_COLUMNS: Final = "ALTER TABLE d.t CHANGE a b INT AFTER b, CHANGE b a INT FIRST"
_FLAVORS: Final = pytest.mark.parametrize("flavor", [Flavor.MARIADB, Flavor.MYSQL])


@_FLAVORS
@pytest.mark.parametrize("sql", [_SWAP, _EXCHANGE, _COLUMNS, "ALTER TABLE d.t ADD KEY (a)", "DROP TABLE d.t"])
def test_table_ids_of_another_server_prove_nothing(sql: str, flavor: Flavor) -> None:
    """A promoted replica has InnoDB ids of its own, and the note of the server that was lost."""
    moved = replace(_BEFORE, ids="2" * 16)
    assert _left(sql, moved, flavor) is None
    promoted = replace(moved, server="6" * 12)
    with pytest.raises(UndecidableError, match="have not changed since, which proves neither outcome"):
        _left(sql, promoted, flavor)


@_FLAVORS
def test_equal_ids_of_another_server_prove_nothing_either(flavor: Flavor) -> None:
    assert _left(_SWAP, _BEFORE, flavor) is not None
    with pytest.raises(UndecidableError):
        _left(_SWAP, replace(_BEFORE, server="6" * 12), flavor)


@pytest.mark.parametrize("sql", [_COLUMNS, "ALTER TABLE d.t DROP COLUMN a, CHANGE b a INT, ADD b INT"])
def test_no_table_id_proves_that_columns_have_not_moved(sql: str) -> None:
    """An instant ALTER TABLE keeps the table's id, and the definition is the same before and after."""
    with pytest.raises(UndecidableError, match="have not changed since, which proves neither outcome"):
        _left(sql, _BEFORE, Flavor.MARIADB)


@pytest.mark.parametrize("tables", [1, 2])
def test_definitions_of_another_server_may_have_differed_before(tables: int) -> None:
    """A replica may have another engine, a further index, or lack a table; definitions that are equal have not
    changed on it."""
    sql = "ALTER TABLE d.t ADD KEY (a)"
    item, note = ddl_item(sql, "d"), _note(sql)
    changed = replace(_BEFORE, digest="b" * 32)
    assert after_crash(_session(Flavor.MARIADB), item, note, changed, _PLACE) is None
    promoted = replace(changed, server="6" * 12, tables=tables)
    with pytest.raises(UndecidableError, match="were noted on another server, and differ from this one's, which"):
        after_crash(_session(Flavor.MARIADB), item, note, promoted, _PLACE)
    assert after_crash(_session(Flavor.MARIADB), item, note, replace(_BEFORE, server="6" * 12), _PLACE) is not None


@_FLAVORS
@pytest.mark.parametrize("sql", ["CREATE UNIQUE INDEX i ON d.t (a)", "DROP INDEX i ON d.t", "RENAME TABLE d.t TO d.u"])
def test_a_table_that_cannot_be_opened_proves_nothing(sql: str, flavor: Flavor) -> None:
    """A kill marks a MyISAM table as crashed, whatever was running."""
    crashed = replace(_BEFORE, digest="b" * 32, unreadable=True)
    with pytest.raises(UndecidableError, match="have changed since, which proves neither outcome"):
        _left(sql, crashed, flavor)
    with pytest.raises(UndecidableError, match="have changed since, which proves neither outcome"):
        after_crash(_session(flavor), ddl_item(sql, "d"), _note(sql), crashed, _PLACE)


@pytest.mark.parametrize("decide", [after_crash, left_to_run])
@pytest.mark.parametrize("front", ["", "SET STATEMENT foreign_key_checks = 0 FOR "])
@pytest.mark.parametrize("condition", ["", "IF NOT EXISTS "])
def test_a_table_that_mariadb_may_not_have_filled_is_made_again_if_it_is_new(
    condition: str, front: str, decide: Callable[..., Item | None]
) -> None:
    sql = f"{front}CREATE TABLE {condition}d.made (a INT) SELECT a FROM d.t"
    session, item, note = _session(Flavor.MARIADB, (10, 5, 27)), ddl_item(sql, "d"), _note(sql)
    made = replace(_BEFORE, digest="b" * 32, tables=3)
    found = decide(session, item, note, made, _PLACE)
    assert found is not None
    assert found.payload == f"{front}CREATE OR REPLACE TABLE d.made (a INT) SELECT a FROM d.t".encode()
    assert decide(session, item, note, _BEFORE, _PLACE) == item
    # no table has come: something else has changed; and a note of another version cannot be compared
    for unclear in (replace(made, tables=2), replace(made, version="10.5.28-MariaDB")):
        with pytest.raises(UndecidableError):
            decide(session, item, note, unclear, _PLACE)
    if not condition:
        assert decide(_session(Flavor.MARIADB, (10, 6, 1)), item, note, made, _PLACE) is None


@pytest.mark.parametrize("decide", [after_crash, left_to_run])
@pytest.mark.parametrize(
    ("head", "rest"),
    [
        ("CREATE TABLE", "`made` AS SELECT 1 AS a"),
        ("CREATE TABLE ", "made VALUES (1), (2)"),
        ("CREATE TABLE ", "made AS VALUES (1)"),
        ("CREATE TABLE IF NOT EXISTS", "`made` SELECT 1"),
        ("create\ttable if not exists ", "made (a INT) WITH c AS (SELECT 1 AS a) SELECT a FROM c"),
        # may fill it: not read
        ("CREATE TABLE ", "made SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY a) OVER (PARTITION BY b) FROM t"),
    ],
)
def test_each_spelling_of_such_a_table_is_made_again(head: str, rest: str, decide: Callable[..., Item | None]) -> None:
    session, item, note = _session(Flavor.MARIADB, (10, 5, 27)), ddl_item(head + rest, "d"), _note(head + rest)
    made = replace(_BEFORE, digest="b" * 32, tables=3)
    found = decide(session, item, note, made, _PLACE)
    assert found is not None
    assert found.payload == f"CREATE OR REPLACE TABLE {rest}".encode()
    with pytest.raises(UndecidableError):
        decide(session, item, note, replace(made, tables=2), _PLACE)


@pytest.mark.parametrize("decide", [after_crash, left_to_run])
def test_a_table_whose_comment_has_the_word_is_made_once(decide: Callable[..., Item | None]) -> None:
    sql = "CREATE TABLE made (a INT COMMENT 'of SELECT a') COMMENT 'SELECT'"
    session, item, note = _session(Flavor.MARIADB, (10, 5, 27)), ddl_item(sql, "d"), _note(sql)
    assert decide(session, item, note, replace(_BEFORE, digest="b" * 32, tables=3), _PLACE) is None


@pytest.mark.parametrize("code", [1205, 1317, 2013])
def test_an_error_of_the_moment_is_no_definition(code: int) -> None:
    """Somebody holds the table, or has ended the query: the next attempt asks again."""
    session = Mock(rows=Mock(side_effect=pymysql.err.OperationalError(code, "words")))
    with pytest.raises(pymysql.err.OperationalError, match=str(code)):
        _definition(session, "d", "t")


def test_an_error_that_stays_is_what_a_table_shows() -> None:
    session = Mock(rows=Mock(side_effect=pymysql.err.OperationalError(1194, "crashed")))
    assert _definition(session, "d", "t") == 1194


def _left(sql: str, now: Fingerprint, flavor: Flavor) -> object:
    return left_to_run(_session(flavor), ddl_item(sql, "d"), _note(sql), now, _PLACE)


def _note(sql: str) -> DdlIntent:
    return DdlIntent(7, 0, sql, _BEFORE.stored, INTENT)


def _session(flavor: Flavor, version: tuple[int, int, int] = (10, 11, 6)) -> Any:
    return Mock(flavor=flavor, version=version)
