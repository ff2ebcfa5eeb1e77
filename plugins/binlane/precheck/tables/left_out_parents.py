"""Foreign keys of the target to tables that the channel's filter leaves out, whose rows no window brings."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.types.literals import identifier
from binlane.model import TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity
from binlane.schema.model import ForeignKey, Table

_MISSING: Final = frozenset({1049, 1146})
_HIDDEN: Final = frozenset({1044, 1142, 1143})
"""Errors of an account that may not read the table: whether it has rows is not known."""
_LEAVING: Final = frozenset({"RESTRICT"})
"""What a foreign key does without changing the child; check ``filtered-parents`` names the others."""


def check_left_out_parents(situation: Situation) -> Iterator[Finding]:
    """Tables with rows of the window whose foreign key on the target leads to one that the filter leaves out and that
    has no row there: the target refuses the first of them, unless all are NULL in the key, leave it as it is, or were
    written without checks of foreign keys. Fatal where rows are inserted that cannot be NULL there; of the others one
    finding for each parent."""
    # thousands of tenants have keys to one parent
    is_kept = functools.cache(lambda parent: situation.target.ask(has_rows, parent))
    told = set[TableKey]()
    for key in sorted(_filled(situation), key=str):
        counts = situation.plan.tables.get(key)
        table = situation.tables.table(key)
        # which keys it has behind a statement of the window is not looked for
        if table is None or situation.plan.altered.names(table.key):
            continue
        for foreign in table.foreign_keys:
            rule = _rule(situation, foreign.parent)
            if rule is None or not {foreign.on_update, foreign.on_delete} <= _LEAVING:
                continue
            is_fatal = counts is not None and counts.written.inserts > 0 and _asks_always(table, foreign)
            if (is_fatal or foreign.parent not in told) and not is_kept(foreign.parent):
                told.add(foreign.parent)
                name = f"{identifier(table.key.database)}.{identifier(table.key.table)}"
                yield Finding(
                    Severity.FATAL if is_fatal else Severity.INFO,
                    f"{table.key}: foreign key {foreign.name}",
                    "a parent whose rows are on the target, or none",
                    f"{foreign.parent}, left out ({rule}), without a row there",
                    f"ALTER TABLE {name} DROP FOREIGN KEY {identifier(foreign.name)} on the target, where the source "
                    "has checked each row by it already, or take both tables: docs/filters.md",
                )


def _asks_always(table: Table, foreign: ForeignKey) -> bool:
    """Whether no row can be without a parent."""
    return not any(column.nullable for column in table.columns if column.name in foreign.columns)


def _filled(situation: Situation) -> frozenset[TableKey]:
    """The tables that get rows, or other values of them, by the window."""
    plan = situation.plan
    filled = {key for key, counts in plan.tables.items() if counts.written.inserts or counts.written.updates}
    return frozenset({*filled, *plan.loaded, *situation.written_tables})


def _rule(situation: Situation, parent: TableKey) -> str | None:
    """The rule that leaves out what a table of the target is on the source; None if it is taken, or nothing there."""
    database = situation.renaming.source(parent.database)
    return None if database is None else situation.selection.table(TableKey(database, parent.table))


def has_rows(connection: Connection, key: TableKey) -> bool:
    """Whether a table is there and has a row; True for one that the account may not read."""
    query = f"SELECT 1 FROM {identifier(key.database)}.{identifier(key.table)} LIMIT 1".replace("%", "%%")
    try:
        return connection.exec_driver_sql(query, ()).first() is not None
    except DBAPIError as exc:
        if (code := error_code(exc)) in _MISSING or code in _HIDDEN:
            return code in _HIDDEN
        raise
