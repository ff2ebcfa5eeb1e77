"""What is known of a window's tables, for those that may be temporary: on the target before it, and by its own text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set

from binlane.model import TableKey
from binlane.plan.transaction.unseen_tables import TableFacts
from binlane.plan.window.scanned import ScannedWindow
from binlane.schema.dependencies import SchemaFacts
from binlane.schema.model import Schema, Table
from binlane.sql.parse.facts import StatementKind

_ASKS = "connection_id"


def known_tables(scans: ScannedWindow, schema: Schema, facts: SchemaFacts) -> TableFacts:
    """``schema``: the target's at the window's start; ``facts``: of any time of the window."""
    there = permanent_names(scans, schema)
    # a cascade opens the tables of the other rows; a table keeps its defaults under another name, and gives them a copy
    pairs = [frozenset(map(_any_case, pair)) for pair in (*facts.foreign_keys, *facts.renames, *facts.copies)]
    opening = _joined({_any_case(key) for key, table in schema.tables.items() if _asks(table)}, pairs)
    asking = opening.union(_any_case(key) for key in (*facts.views, *facts.triggered_tables))
    return TableFacts(
        lambda table: _any_case(table) in there,
        lambda table: _any_case(table) in asking,
        lambda table: _any_case(table) in opening,
        has_routines=bool(facts.routine_databases),
    )


def _joined(names: Set[str], pairs: Collection[Set[str]]) -> frozenset[str]:
    """The names, and those that pairs join to them."""
    found = frozenset(names)
    while more := frozenset(each for pair in pairs if not found.isdisjoint(pair) for each in pair) - found:
        found |= more
    return found


def permanent_names(scans: ScannedWindow, schema: Schema) -> frozenset[str]:
    """Tables and views that are on the target, or that a DDL of the window names, in lower case."""
    return frozenset(map(_any_case, (*schema.tables, *schema.views, *_defined(scans))))


def _defined(scans: ScannedWindow) -> Iterator[TableKey]:
    for described in scans.classes:
        for statement in described.statements:
            if statement.facts.kind is not StatementKind.DML and not statement.facts.temporary:
                yield from statement.facts.tables | statement.facts.views


def _asks(table: Table) -> bool:
    texts = (text for column in table.columns for text in (column.default, column.expression))
    return any(text is not None and _ASKS in text.lower() for text in texts)


def _any_case(table: TableKey) -> str:
    return str(table).casefold()
