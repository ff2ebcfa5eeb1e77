"""What is known of a window's tables, for those that may be temporary: on the target before it, and by its own text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from binlane.model import TableKey
from binlane.plan.window.scanned import ScannedWindow
from binlane.schema.model import Schema
from binlane.sql.parse.facts import StatementKind


def may_be_permanent(scans: ScannedWindow, schema: Schema) -> Callable[[TableKey], bool]:
    """Whether a permanent table of a name may exist; ``schema``: the target's at the window's start."""
    there = permanent_names(scans, schema)
    return lambda table: _any_case(table) in there


def permanent_names(scans: ScannedWindow, schema: Schema) -> frozenset[str]:
    """Tables and views that are on the target, or that a DDL of the window names, in lower case."""
    return frozenset(map(_any_case, (*schema.tables, *schema.views, *_defined(scans))))


def _defined(scans: ScannedWindow) -> Iterator[TableKey]:
    for described in scans.classes:
        for statement in described.statements:
            if statement.facts.kind is not StatementKind.DML and not statement.facts.temporary:
                yield from statement.facts.tables | statement.facts.views


def _any_case(table: TableKey) -> str:
    return str(table).casefold()
