"""What bodies leave that run once for each row of a statement, where two servers may take the rows in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from binlane.model import TableKey
from binlane.precheck.statements.body_parts import Body, BodyPart
from binlane.schema.derived_tables import DERIVED
from binlane.schema.letter_case import ANY_CASE
from binlane.schema.model import Column as Definition
from binlane.schema.model import Key, Table
from binlane.sql.parse.lexer import Token
from binlane.sql.parse.query_blocks import Column, columns_in, plain_column
from binlane.sql.parse.row_effects import (
    FIRING,
    Assignment,
    Change,
    Upsert,
    added,
    assignments,
    has_row_beside,
    reads,
    upserts,
    writes,
)
from binlane.sql.programs.of_server import catches_errors

_FLOATS: Final = ("float", "double")


def effects_in_turn(
    body: Body, table_of: Callable[[TableKey], Table | None], beside: Iterable[TableKey]
) -> Iterator[BodyPart]:
    """What of a body shows the order of rows. ``beside``: tables that other triggers of the same table change."""

    def written(key: TableKey) -> Table | None:
        table = table_of(key)
        # a view may show other columns than those of the keys that rows meet on
        return None if table is None or table.engine == DERIVED else table

    fired = table_of(body.difference.key) if body.events else None
    yield from _assigned(body, fired, written)
    for upsert in upserts(body.tokens, body.database):
        if not _leaves_the_same(upsert, fired, written(upsert.key)):
            yield _part(f"{upsert.what} into {upsert.key}, in which the first row or the last one remains,")
    # at worst two tables are taken for one
    compared = ANY_CASE.table
    read, changed_here = set(map(compared, reads(body.tokens, body.database))), writes(body.tokens, body.database)
    if changed_here and catches_errors(body.tokens):
        yield _part("a handler of errors that depend on the rows before")
    felt = read & {*map(compared, changed_here), *map(compared, beside)}
    if body.events:
        felt |= read & {compared(body.difference.key)}
    if felt:
        yield _part(f"a query of {min(map(str, felt))}, which the rows before have changed,")
    elif read and not body.events:
        what = f"a query of {min(map(str, read))}, which the rows before may have changed,"
        yield BodyPart(what, needs_rows=True, reads=frozenset(read))


def _assigned(body: Body, fired: Table | None, written: Callable[[TableKey], Table | None]) -> Iterator[BodyPart]:
    """What the UPDATEs of a body leave otherwise in another order."""
    every = list(assignments(body.tokens, body.database, is_trigger=bool(body.events)))
    shared = [each for each in every if fired is None or not finds_one_each(fired, each.found_by)]
    for each in shared:
        changed = None if each.table is None else written(each.table)
        same = [other for other in shared if (other.table, other.column) == (each.table, each.column)]
        is_one = all(other.constant == each.constant != () for other in same) or len(same) == 1
        is_repeated = bool(body.events) and has_row_beside(body.tokens, each.table)
        if (is_one or is_repeated) and not _differs_by_row(each, every):
            continue
        kinds = {other.change for other in same}
        if Change.OTHER in kinds or len(kinds) > 1 or any(_may_be_of(name, changed) for name in each.added):
            yield _part(f"an UPDATE of {each.table or 'a query'} in which the last row remains")
        elif _type_of(changed, each.column) in _FLOATS:
            yield _part(f"a sum of floating-point numbers in {each.table}")


def _differs_by_row(assignment: Assignment, every: Iterable[Assignment]) -> bool:
    """Whether the value depends on the row at hand, or on a column that the body changes."""
    tables = (assignment.table, None)
    changed = {each.column for each in every if assignment.table is None or each.table in tables}
    return assignment.is_fired or not changed.isdisjoint(assignment.read)


def _may_be_of(name: Column, changed: Table | None) -> bool:
    """Whether a name may be a column of the table that is changed, whose value the rows before may have changed."""
    return bool(name.qualifier) or changed is None or _column(changed, name.name) is not None


def finds_one_each(fired: Table, columns: frozenset[str]) -> bool:
    """Whether each row of a table has values of its own in these columns."""
    return any(
        key.unique and all(part.name is not None and part.name.lower() in columns for part in key.columns)
        for key in fired.keys
    )


def _part(what: str) -> BodyPart:
    return BodyPart(what, needs_rows=True)


def _leaves_the_same(upsert: Upsert, fired: Table | None, written: Table | None) -> bool:
    """Whether no two rows meet on a key, or leave the same whichever comes first."""
    if upsert.values is None or written is None:
        return False
    columns = upsert.columns or tuple(each.name.lower() for each in written.columns)
    if len(columns) != len(upsert.values):
        return False
    given = dict(zip(columns, upsert.values, strict=True))
    unique = [key for key in written.keys if key.unique]
    if all(_tells_apart(key, given, fired) for key in unique):
        return True
    if len(unique) != 1 or any(_takes_for_equal(written, part.name) for part in unique[0].columns):
        return False
    in_key = {(part.name or "").lower() for part in unique[0].columns}
    others = {name: value for name, value in given.items() if name not in in_key}
    if not upsert.updates:
        return not any(True for value in others.values() for _ in columns_in(value))
    return _adds_up(upsert, others, written)


def _tells_apart(key: Key, given: Mapping[str, Sequence[Token]], fired: Table | None) -> bool:
    """Whether no two rows have the same values in a key."""
    if fired is None:
        return False
    found = [plain_column(given.get((part.name or "").lower(), ()) or ()) for part in key.columns]
    return any(
        finds_one_each(
            fired, frozenset(each.name for each in found if each is not None and each.qualifier == qualifier)
        )
        for qualifier in FIRING
    )


def _adds_up(upsert: Upsert, others: Mapping[str, Sequence[Token]], written: Table) -> bool:
    """Whether ON DUPLICATE KEY UPDATE adds to each column what the first row has inserted."""
    updates = dict(upsert.updates)
    if not updates.keys() <= others.keys():
        return False
    for name, value in others.items():
        if name not in updates:
            if any(True for _ in columns_in(value)):
                return False
            continue
        if _texts(updates[name]) == _texts(value) and not any(True for _ in columns_in(value)):
            continue
        rest = added(name, updates[name])
        texts = [] if rest is None else _texts(rest)
        texts = texts[1:] if texts[:1] == ["+"] else texts
        is_same = texts in (_texts(value), ["values", "(", name, ")"])
        if not is_same or _type_of(written, name) in _FLOATS:
            return False
    return True


def _texts(tokens: Sequence[Token]) -> list[str]:
    return [token.text.lower() for token in tokens]


def _column(table: Table | None, name: str | None) -> Definition | None:
    columns = () if table is None else table.columns
    return next((each for each in columns if each.name.lower() == (name or "").lower()), None)


def _type_of(table: Table | None, name: str) -> str | None:
    column = _column(table, name)
    return None if column is None else column.data_type


def _takes_for_equal(table: Table, name: str | None) -> bool:
    """Whether a column is a text of which different values are one to a key, or is not known."""
    column = _column(table, name)
    return column is None or (column.charset is not None and not (column.collation or "").endswith("_bin"))
