"""What the replay of a skipped transaction may do: change rows, by events or by statements of tables alone.

Its events come from the target's state, and no window's precheck looks at them: servers do not check the account's
privileges for tables of BINLOG, and what stands behind a statement may run as the lane's account.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from binlane.binlog.rows_payload import table_maps_of
from binlane.binlog.table_map import TableMap
from binlane.errors import ApplyError
from binlane.model import Flavor, Item, ItemKind, SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.rename_rules import is_system, lower
from binlane.servers.programs import read_tables_with_programs
from binlane.sql.parse.facts import StatementKind

if TYPE_CHECKING:
    from sqlalchemy import Connection

_CHANGES: Final = frozenset({StatementKind.DML, StatementKind.LOAD_DATA, StatementKind.TRANSACTION})


def require_plain(items: Sequence[Item], catalog: Connection, source: Flavor, target: Flavor, where: str) -> None:
    """Raise ApplyError for an item that changes a table of the server's own, or behind which a routine, a view or a
    trigger may run. ``source``: the family of row events."""
    tables = set[TableKey]()
    for item in items:
        if item.kind is ItemKind.ROWS:
            maps = (TableMap.parse(memoryview(body), where, source) for body in table_maps_of(item.payload))
            _require_users({TableKey(each.database, each.table) for each in maps}, where)
        elif item.kind in (ItemKind.STATEMENT, ItemKind.LOAD):
            facts = statement_facts(item.payload, item.context or SessionContext(), target)
            if facts.kind not in _CHANGES or facts.reason is not None or facts.routines_used or facts.functions:
                raise _refused(where, facts.reason or "a statement that calls a routine, or changes more than rows")
            _require_users(facts.tables, where)
            tables |= facts.tables
    if tables:
        behind = read_tables_with_programs(catalog, {key.database for key in tables})
        there = {_lower(key) for key in behind}
        if found := sorted(str(key) for key in tables if _lower(key) in there):
            raise _refused(where, f"a statement on {found[0]}, which is a view or has triggers")


def _require_users(tables: set[TableKey] | frozenset[TableKey], where: str) -> None:
    if own := sorted(str(key) for key in tables if is_system(key.database)):
        raise _refused(where, f"a change of {own[0]}, a table of the server's own")


def _lower(key: TableKey) -> tuple[str, str]:
    return lower(key.database), lower(key.table)


def _refused(where: str, found: str) -> ApplyError:
    return ApplyError(
        f"{where}: expected changes of rows alone, since no precheck looks at a replay, found {found}; look at the "
        "transaction (`binlane skip CHANNEL --show SEQNO --write FILE`, `binlane inspect --sql FILE`), and make its "
        "changes on the target by hand"
    )
