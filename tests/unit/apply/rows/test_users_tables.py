"""Rows of a lane file are of users' tables: for BINLOG no server asks which tables the account may change.

Attacker: whoever runs the plan job, as Spark's driver does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, cast

import pytest

from binlane.apply.rows import table_guard
from binlane.apply.rows.binlog import BinlogRows
from binlane.apply.rows.table_guard import TableGuard, users_tables
from binlane.apply.session.connection import LaneSession
from binlane.errors import PlanError
from binlane.model import Flavor, Item, ItemKind, RowCounts, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Selection
from tests.unit.binlog.test_rows_payload import event, rows


def payload(database: bytes, table: bytes = b"global_priv") -> bytes:
    names = bytes([len(database)]) + database + b"\0" + bytes([len(table)]) + table + b"\0"
    return event(19, 1, 0, names + b"\x01\x03\0\0") + rows(1)


@pytest.mark.parametrize(
    "database", [b"mysql", b"MySQL", b"sys", b"performance_schema", b"binlane", b"BINLANE", "b\u0130nlane".encode()]
)
def test_rows_of_a_server_s_own_tables_and_of_the_state_are_refused(database: bytes) -> None:
    with pytest.raises(PlanError, match=rf"found rows of {database.decode()}\.global_priv"):
        users_tables(payload(database), None)


@pytest.mark.parametrize(
    ("database", "table", "said"),
    [
        (b"#mysql50#mysql", b"global_priv", "begins with #mysql50#"),
        (b"#MYSQL50#binlane", b"channels", "begins with #mysql50#"),
        (b"app", b"#mysql50#secret", "begins with #mysql50#"),
        # where a server reads a name up to its NUL
        (b"mysql\0x", b"global_priv", "has a NUL"),
        (b"app", b"secret\0", "has a NUL"),
        (b"mysql ", b"global_priv", "a space at its end"),
        (b"a" * 65, b"t", "a name of 65 characters"),
        (b"mysql\xff", b"global_priv", "is not UTF-8"),
    ],
)
def test_rows_under_another_name_of_a_table_are_refused(database: bytes, table: bytes, said: str) -> None:
    with pytest.raises(PlanError, match=rf"{said}.*it was not sent"):
        users_tables(payload(database, table), None)


def test_rows_of_users_are_written() -> None:
    assert users_tables(payload(b"mysql_2"), None) == {TableKey("mysql_2", "global_priv")}


RULES: Final = ChannelRules(
    Selection(exclude_databases=("hidden*",), exclude_tables=("app.secret",)), Renaming((("shop", "market"),))
)


@pytest.mark.parametrize(
    ("database", "table", "rule"),
    [
        (b"hidden_1", b"t", 'exclude_databases "hidden*"'),
        (b"app", b"secret", 'exclude_tables "app.secret"'),
        (b"shop", b"t", "no database of the source becomes this one by [rename]"),
        (b"app", b"t", None),
        (b"market", b"t", None),
    ],
)
def test_rows_that_the_channel_leaves_out_are_refused_by_its_rules(
    database: bytes, table: bytes, rule: str | None
) -> None:
    guard = TableGuard(Alterations(), Flavor.MARIADB, lambda _: None, left_out=RULES.left_out)
    item = Item(ItemKind.ROWS, payload(database, table), RowCounts(1))
    if rule is None:
        users_tables(item.payload, guard)
        return
    with pytest.raises(PlanError) as raised:
        BinlogRows(cast("LaneSession", Session()), guard).write(iter((item,)), 1)
    assert f"found rows of {database.decode()}.{table.decode()}, left out ({rule})" in str(raised.value)


class Session:
    """A target that takes no row."""

    flavor = Flavor.MARIADB

    def rows(self, _: str) -> list[tuple[str, int]]:
        return [(f"Handler_{kind}", 0) for kind in ("write", "update", "delete")]

    def binlog(self, _: bytes) -> None:
        raise AssertionError("rows were sent")


def test_they_are_refused_before_a_row_is_sent() -> None:
    item = Item(ItemKind.ROWS, payload(b"mysql"), RowCounts(1))
    with pytest.raises(PlanError, match=r"rows of mysql\.global_priv"):
        BinlogRows(cast("LaneSession", Session())).write(iter((item,)), 1)


def test_no_row_writer_has_another_door() -> None:
    folder = Path(table_guard.__file__).parent
    asking = [path.name for path in folder.glob("*.py") if "check_self_contained" in path.read_text()]
    assert asking == ["table_guard.py"]
