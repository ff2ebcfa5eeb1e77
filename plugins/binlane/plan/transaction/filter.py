"""The channel's filter over the parts of a transaction.

Rows are left out event by event. The rest of a source statement still ends with STMT_END_F: without it, the server
would add the next statement's TABLE_MAPs to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from binlane.binlog.query import Query
from binlane.binlog.rows import ROWS_KINDS, RowsKind
from binlane.binlog.rows_payload import ending_statement, ends_statement
from binlane.model import Flavor, RowCounts, SessionContext, TableKey
from binlane.plan.transaction.own_state import drops_no_trigger, own_schema, replica_state
from binlane.plan.transaction.parts import FilteredPart, MapPart, Part, RowsPart, StatementPart
from binlane.schema.letter_case import LetterCase
from binlane.shards.selection import Extent, Selection
from binlane.sql.charset import decoded, dialect_of
from binlane.sql.grant_scope import GrantScope, scope_of_statement
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.parse.lexer import Dialect, Token, Unreadable, lex
from binlane.sql.statement_kinds import kinds_of

_TYPE_AT: Final = 4


def decide(
    selection: Selection, query: Query, facts: StatementFacts, context: SessionContext, flavor: Flavor
) -> str | None:
    """The rule that leaves out a statement of a ``flavor`` server; None if the statement is taken. Raises Undecided."""
    listed = query.updated_databases if flavor is Flavor.MYSQL and not query.too_many_databases else None
    if (rule := own_schema(selection, query.sql, facts, listed, context, flavor)) is not None:
        return rule
    if (rule := replica_state(facts, flavor, LetterCase(selection.folds_names))) is not None:
        return rule
    # a statement of too many databases is none that drops one trigger
    if not query.too_many_databases and (rule := drops_no_trigger(facts, flavor, listed)) is not None:
        return rule
    if not selection.looks_at_statements:
        return None
    text, dialect = decoded(query.sql, context), dialect_of(context, flavor)
    if (
        facts.kind is StatementKind.GLOBAL
        and (rule := _of_scope(selection, text, context.database, dialect)) is not None
    ):
        return rule
    return selection.statement(facts, listed, kinds_of(text, facts, dialect))


def _of_scope(selection: Selection, text: str, database: str | None, dialect: Dialect) -> str | None:
    """The rule that leaves out a GRANT or REVOKE on a table, its columns or a routine: the target need not have the
    object, and refuses to grant on what it lacks. None for any other statement, and for privileges on a database, which
    need not be there."""
    tokens: list[Token] = []
    try:
        lex(text, dialect, tokens)
    except Unreadable:
        return None
    scope, is_routine = scope_of_statement(tokens, database) or (GrantScope(), False)
    if not scope.table:
        return None
    if is_routine:
        extent, rule = selection.database(scope.database)
        return rule if extent is Extent.NONE else None
    return selection.table(TableKey(scope.database, scope.table))


def without_filtered(
    parts: tuple[Part, ...], selection: Selection
) -> tuple[tuple[Part, ...], tuple[FilteredPart, ...]]:
    """The parts that the filter takes, and those that it leaves out, with rows summed by rule and table."""
    if not selection.looks_at_statements and not any(_is_out(part, selection) for part in parts):
        return parts, ()
    kept: list[Part] = []
    statements: list[FilteredPart] = []
    rows: dict[tuple[str, TableKey], RowCounts] = {}
    for group in _statements(parts):
        first = group[0]
        if isinstance(first, FilteredPart):
            statements.append(first)
        elif isinstance(first, StatementPart):
            kept.append(first)
        else:
            kept += _taken_rows(group, selection, rows)
    filtered = (*statements, *(FilteredPart(rule, table, counts) for (rule, table), counts in rows.items()))
    if filtered and not any(_changes(part) for part in kept):
        kept.clear()
    return tuple(kept), filtered


def _is_out(part: Part, selection: Selection) -> bool:
    return isinstance(part, FilteredPart) or (isinstance(part, MapPart) and selection.table(part.key) is not None)


def _changes(part: Part) -> bool:
    """Whether the part is more than a SAVEPOINT."""
    return not isinstance(part, StatementPart) or part.facts.kind is not StatementKind.TRANSACTION


def _statements(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Groups of parts: the row events of one source statement together, any other part alone."""
    group: list[Part] = []
    for part in parts:
        if isinstance(part, MapPart | RowsPart):
            group.append(part)
            if isinstance(part, MapPart) or not ends_statement(part.event):
                continue
        if group:
            yield group
            group = []
        if not isinstance(part, MapPart | RowsPart):
            yield [part]
    if group:
        yield group


def _taken_rows(
    group: Sequence[Part], selection: Selection, rows: dict[tuple[str, TableKey], RowCounts]
) -> Sequence[Part]:
    """The row events of one statement that the filter takes; rows that it leaves out are added to ``rows``."""
    kept: list[Part] = []
    last = -1
    for part in group:
        if isinstance(part, MapPart):
            if selection.table(part.key) is None:
                kept.append(part)
        elif isinstance(part, RowsPart):
            key = part.table.key
            rule = selection.rows(key, is_delete=_is_delete(part))
            if rule is None:
                last = len(kept)
                kept.append(part)
            else:
                rows[rule, key] = rows.get((rule, key), RowCounts()) + part.counts
    if len(kept) == len(group):
        return group
    kept = kept[: last + 1]
    if kept and isinstance(final := kept[-1], RowsPart) and not ends_statement(final.event):
        kept[-1] = replace(final, event=ending_statement(final.event))
    return kept


def _is_delete(part: RowsPart) -> bool:
    return ROWS_KINDS[part.event[_TYPE_AT]] is RowsKind.DELETE
