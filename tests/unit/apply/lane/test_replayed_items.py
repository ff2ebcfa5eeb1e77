"""A replay finds the table that a statement means, in whatever letters it names it."""

from __future__ import annotations

from typing import Any

import pytest

from binlane.apply.lane.replayed_items import require_plain
from binlane.errors import ApplyError, BinlaneError
from binlane.model import Flavor, Item, ItemKind, RowCounts, SessionContext, TableKey
from tests.unit.apply.rows.test_users_tables import payload


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("INSERT INTO `app`.`I` VALUES (1)", "a view or has triggers"),
        # what a target with lower_case_table_names = 1 takes for an i
        ("INSERT INTO `app`.`\u0130` VALUES (1)", "a view or has triggers"),
        ("INSERT INTO `b\u0130nlane`.`channels` VALUES (1)", "a table of the server's own"),
    ],
)
def test_a_table_is_found_in_all_its_spellings(statement: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog: Any = None
    behind = "binlane.apply.lane.replayed_items.read_tables_with_programs"
    monkeypatch.setattr(behind, lambda *_: frozenset({TableKey("app", "i")}))
    item = Item(ItemKind.STATEMENT, statement.encode(), RowCounts(), SessionContext())
    with pytest.raises(ApplyError, match=said):
        require_plain([item], catalog, Flavor.MARIADB, Flavor.MARIADB, "seqno 1")


@pytest.mark.parametrize(
    ("database", "table"), [(b"#mysql50#mysql", b"db"), (b"#MySQL50#hidden", b"t"), (b"app", b"#mysql50#secret")]
)
def test_rows_are_of_no_table_that_has_two_names(database: bytes, table: bytes) -> None:
    catalog: Any = None
    item = Item(ItemKind.ROWS, payload(database, table), RowCounts(1))
    with pytest.raises(BinlaneError, match="begins with #mysql50#"):
        require_plain([item], catalog, Flavor.MARIADB, Flavor.MARIADB, "seqno 1")
