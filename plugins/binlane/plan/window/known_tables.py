"""What is known of a window's tables, for those that may be temporary: on the target before it, and by its own text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from binlane.model import TableKey
from binlane.plan.window.scanned import ScannedWindow
from binlane.schema.model import Schema
from binlane.sql.parse.facts import StatementKind


def may_be_permanent(scans: ScannedWindow, schema: Schema) -> Callable[[TableKey], bool]:
    """Whether a permanent table or view of a name may exist: it is on the target, or a DDL of the window names it.

    ``schema``: the target's at the window's start.
    """
    compared = schema.letter_case.table
    there = frozenset(map(compared, (*schema.tables, *schema.views, *_defined(scans))))
    return lambda table: compared(table) in there


def _defined(scans: ScannedWindow) -> Iterator[TableKey]:
    for described in scans.classes:
        for statement in described.statements:
            if statement.facts.kind is not StatementKind.DML and not statement.facts.temporary:
                yield from statement.facts.tables | statement.facts.views
