"""Rows of a table that one change of a body finds, and that others of it have inserted, set or deleted for the rows
before: in another order of these it finds others.

A change for one row at hand and a change for another one leave the same in both orders if

- each change of the table finds its rows by one unique key of the firing table (``own_keys``),
- or the body does the same for rows at hand with equal values, and each change of the table finds its rows by these,
- or what an INSERT makes fulfils no condition by which the other one finds its rows,
- or a DELETE that is the same for each row at hand comes behind each INSERT,
- or the columns by which one finds its rows are not those that the other one sets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Final, NamedTuple

from binlane.model import TableKey, number_of
from binlane.precheck.bodies.body_parts import Body
from binlane.precheck.bodies.own_keys import (
    Pairs,
    column_of,
    definitions,
    given_columns,
    given_to,
    meet_nowhere,
    names_of,
    ways_of,
)
from binlane.precheck.bodies.row_values import declared
from binlane.schema.common_values import are_alike, compared_text, differs
from binlane.schema.kept_values import holds, keeps
from binlane.schema.letter_case import ANY_CASE
from binlane.schema.model import Column as Definition
from binlane.schema.model import Table
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.query_blocks import Column, call_end, conditions, items, plain_column
from binlane.sql.parse.row_changes import INSERTED, INSERTS, READS, SET, RowChange, branches_before, row_changes
from binlane.sql.parse.row_effects import (
    IGNORING,
    PLAIN,
    Assignment,
    Upsert,
    assignments,
    has_row_beside,
    inserts,
    may_set_of_row,
    row_words,
    types_of_variables,
)
from binlane.sql.parse.row_variables import with_row_values

_SHOWN: Final = {"UPDATE": "an UPDATE of", "DELETE": "a DELETE from"}
_MOMENTS: Final = ("NOW()", "CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP()")
_TODAYS: Final = ("CURDATE()", "CURRENT_DATE", "CURRENT_DATE()")
_WHOLE_DAYS: Final = frozenset({"DAY", "WEEK", "MONTH", "QUARTER", "YEAR"})
_WHOLE_UNITS: Final = _WHOLE_DAYS | {"MINUTE", "HOUR"}
"""Units that are longer than what a column without fractions of a second leaves out."""
WHOLE_NUMBERS: Final = ("tinyint", "smallint", "mediumint", "int", "bigint")
"""Types of which equal values are one value."""
_EARLIER_BY: Final = {"DATE_SUB": "", "SUBDATE": "", "DATE_ADD": "-", "ADDDATE": "-"}
"""Functions that give an earlier time, with the sign of the interval that does."""
_MADE_ONCE: Final = (PLAIN, "REPLACE")
"""INSERTs that leave their row whatever has been there."""


def changes_of(body: Body) -> Sequence[RowChange]:
    """The changes of tables by a body."""
    variables = types_of_variables(body.tokens, body.parameters)
    return tuple(row_changes(body.tokens, body.database, variables))


def assignments_of(body: Body) -> Sequence[Assignment]:
    """What the UPDATEs of a body set."""
    variables = types_of_variables(body.tokens, body.parameters)
    return tuple(assignments(body.tokens, body.database, is_trigger=bool(body.events), variables=variables))


def upserts_of(body: Body) -> Sequence[Upsert]:
    """The INSERTs and REPLACEs of a body."""
    return tuple(each for _, each in inserts(body.tokens, body.database))


def has_same_rows(body: Body, other: Body) -> bool:
    """Whether two bodies are triggers of one table."""
    return bool(body.events and other.events) and other.difference.key == body.difference.key


def told_of(body: Body, other: Body, told: Table | None) -> Table | None:
    """The firing table of ``body`` with the keys that tell its rows apart, ``told``, for what another body does for the
    same rows; None if that has other rows at hand, or has them before they have their keys."""
    if other is body:
        return told
    if not has_same_rows(body, other):
        return None
    # the keys of a row that is not there yet may be others in front of its INSERT
    return None if not body.is_before and other.is_before and "INSERT" in other.events else told


class SetBefore(NamedTuple):
    """What the BEFORE INSERT and BEFORE UPDATE triggers of a table make of the rows that bodies give it."""

    columns: frozenset[str] | None = frozenset()
    """Those that they may set, in lower case; None: any."""
    is_varied: bool = False
    """They may set values that depend on the row, or on what it was before."""

    def may_set(self, names: Collection[str]) -> bool:
        """Whether the text of a change need not say what one of these columns gets."""
        return bool(names) if self.columns is None else not self.columns.isdisjoint(names)

    def kept(self, pairs: Pairs) -> Pairs:
        """Without the columns that may have another value than the text gives them."""
        return [each for each in pairs if not self.may_set((each[0].name.lower(),))]

    def by(self, names: Collection[TableKey], base: TableKey) -> SetBefore:
        """The same for changes by these names, as ``ANY_CASE`` has them: a view may have other names for columns."""
        return self if self == SetBefore() or all(each == base for each in names) else ANY_SET_BEFORE


ANY_SET_BEFORE: Final = SetBefore(None, is_varied=True)


class Beside(NamedTuple):
    """What is done for each row besides a body."""

    changed: Collection[TableKey] = ()
    """Tables that other bodies change."""
    bodies: Sequence[Body] = ()
    """Other bodies that the same statement runs, and that change a table of its own: triggers, also those behind the
    changes of others, and routines."""
    bases_of: Callable[[TableKey], Collection[TableKey]] = lambda key: (ANY_CASE.table(key),)
    """The tables, as ``ANY_CASE`` has them, of which a name shows rows: of a view those of its query. At worst two
    tables are taken for one."""
    changes_of: Callable[[Body], Sequence[RowChange]] = changes_of
    assignments_of: Callable[[Body], Sequence[Assignment]] = assignments_of
    upserts_of: Callable[[Body], Sequence[Upsert]] = upserts_of
    set_before: Callable[[TableKey], SetBefore] = lambda key: SetBefore()
    """Of a table, as ``ANY_CASE`` has it: no text of a change says what its BEFORE triggers make of the row."""


NOTHING_BESIDE: Final = Beside()


class _Placed(NamedTuple):
    """A change of a table, by a body."""

    change: RowChange
    body: Body
    written: Table | None
    """The table, if it is known and is named itself; a view may show other columns, under other names."""
    set_before: frozenset[str] | None
    """Columns of the row at hand to which the body may give another value; None: any."""
    changed_before: SetBefore
    """What the table's own triggers make of the rows that it gets."""

    @property
    def pairs(self) -> Pairs:
        """The columns by which rows are found, or with which they are made."""
        inserted = self.change.inserted
        if inserted is not None:
            found = given_columns(inserted, self.written)
        else:
            found = definitions(self.change.found_by, self.written)
        return self._kept(found)

    def _kept(self, pairs: Pairs) -> Pairs:
        """Without the columns to which the body, or a trigger of the table, may have given another value."""
        kept, pairs = self.set_before, self.changed_before.kept(pairs)
        return [each for each in pairs if each[1].qualifier == "old" or (kept is not None and each[1].name not in kept)]

    @property
    def either(self) -> Iterator[Pairs]:
        """For each column in which rows have the old value of the row at hand or its new one: both."""
        return (self._kept(definitions(both, self.written)) for both in self.change.found_by_either)

    def agree(self, column: Definition, own: Definition) -> bool:
        """Whether different values of the row at hand find, or make, different rows."""
        return (are_alike if self.change.inserted is None else keeps)(column, own)


class RowsMet:
    """What a body does to each table, and whether the rows that one change finds depend on the order of rows."""

    def __init__(
        self,
        body: Body,
        beside: Beside,
        fired: Table | None,
        told: Table | None,
        written: Callable[[TableKey], Table | None],
    ) -> None:
        """``told``: the firing table with the keys that tell its rows apart; None: none does."""
        self.body = body._replace(tokens=_with_row_values(body, fired)) if body.events else body
        self.beside = beside
        self.fired = fired
        self.told = told
        self.written = written

    def parts(self) -> Iterator[str]:
        """Each UPDATE and DELETE that finds other rows of a table behind what is done for the rows before."""
        for every in self._groups.values():
            # what another body finds is a part of its own
            own = [each for each in every if each.body is self.body]
            found = [(each.change, what) for each in own if (what := self._met_by(each, every))]
            if found and not self._is_by_key(every) and not self._is_by_values(every):
                yield from (
                    f"{_SHOWN[change.verb]} {change.key}, which finds what the rows before have {what},"
                    for change, what in found
                )

    def settled_reads(self) -> frozenset[TableKey]:
        """The tables, as ``ANY_CASE`` has them, of which the queries of a trigger see the same whichever rows come
        before: rows of their own, or those that rows at hand with equal values have changed, who do all the same."""
        return frozenset(
            base for base, every in self._groups.items() if self._is_by_key(every) or self._is_one_by_values(every)
        )

    @cached_property
    def _groups(self) -> Mapping[TableKey, Sequence[_Placed]]:
        """What is done to each table."""
        groups = dict[TableKey, list[_Placed]]()
        for body in (self.body, *self.beside.bodies):
            set_before = may_set_of_row(body.tokens) if body.is_before else frozenset[str]()
            for change in self.beside.changes_of(body):
                for base in self.beside.bases_of(change.key):
                    changed_before = self.beside.set_before(base).by((ANY_CASE.table(change.key),), base)
                    placed = _Placed(change, body, self.written(change.key), set_before, changed_before)
                    groups.setdefault(base, []).append(placed)
        return groups

    def _met_by(self, found: _Placed, every: Sequence[_Placed]) -> str:
        """What one of the changes has done to the rows of ``found`` for the rows before; empty if nothing."""
        if found.change.verb in (INSERTS, READS):
            return ""
        if self._is_there(found, every):
            every = [each for each in every if each.change.verb != INSERTS]
        return next(filter(None, (self._met(found, other) for other in every)), "")

    def _is_by_key(self, every: Sequence[_Placed]) -> bool:
        """Whether each change finds or makes its rows by one unique key of the row at hand."""
        pairs = [[each.pairs, *each.either] for each in every]
        common = frozenset.intersection(
            *(frozenset(column.name for one in some for column, _ in one) for some in pairs)
        )
        return meet_nowhere(
            frozenset[frozenset[tuple[str, str]]]().union(
                *(
                    ways_of(
                        told_of(self.body, each.body, self.told),
                        [pair for pair in one if pair[0].name in common],
                        each.agree,
                    )
                    for one in some
                )
            )
            for some, each in zip(pairs, every, strict=True)
        )

    def _is_by_values(self, every: Sequence[_Placed]) -> bool:
        """Whether the body does the same for rows at hand that have some values in common, and finds other rows of the
        table for others."""
        if not self.body.events or any(each.body is not self.body for each in every):
            return False
        values = [frozenset(self._identified(each)) for each in every]
        known = {value for _, value in frozenset.intersection(*values)}
        return has_row_beside(self.body.tokens, {each.change.key for each in every}, known)

    def _is_one_by_values(self, every: Sequence[_Placed]) -> bool:
        """The same for all that the body does: it has no word of the row but those values."""
        if not self.body.events or any(each.body is not self.body for each in every):
            return False
        values = [frozenset(self._identified(each)) for each in every]
        known = {value for _, value in frozenset.intersection(*values)}
        return row_words(self.body.tokens, ()) <= known

    def _is_there(self, found: _Placed, every: Sequence[_Placed]) -> bool:
        """Whether the row that an UPDATE finds by the one unique key of its table has been made in front of it,
        whatever way the body goes, if it was not there: ``INSERT IGNORE INTO c (k, n) VALUES (NEW.k, 0)``."""
        change, written = found.change, found.written
        keys = [] if written is None else [key for key in written.keys if key.unique]
        if change.verb != "UPDATE" or len(keys) != 1 or not change.asked <= names_of(keys[0]):
            return False
        row = frozenset((column.name.lower(), value) for column, value in found.pairs if self._is_kept(column, value))
        return {name for name, _ in row} == names_of(keys[0]) and any(
            each.change.inserted is not None
            and each.change.inserted.what == IGNORING
            and each.body is found.body
            and self._is_always_before(each.change.end, change.begin)
            and row <= {(column.name.lower(), value) for column, value in each.pairs}
            for each in every
        )

    def _is_always_before(self, end: int, begin: int) -> bool:
        """Whether the body gets to a statement only through another one, by the end and the beginning of both."""
        is_straight = end <= begin and self._branches[end] == self._branches[begin]
        return is_straight and not any(token.upper == "END" for token in self.body.tokens[end:begin])

    def _is_kept(self, column: Definition, value: Column) -> bool:
        own = column_of(self.fired, value.name)
        return own is not None and keeps(column, own) and are_alike(column, own)

    def _identified(self, placed: _Placed) -> Iterator[tuple[str, Column]]:
        """The columns by which rows are found or made, whose values are equal only if they are the same."""
        for column, value in placed.pairs:
            own = column_of(self.fired, value.name)
            if own is not None and placed.agree(column, own) and not (differs(own) or differs(column)):
                yield column.name, value

    def _met(self, found: _Placed, other: _Placed) -> str:
        change = other.change
        if change.key != found.change.key and ANY_CASE.table(change.key) != ANY_CASE.table(found.change.key):
            # a view may have other names for the columns
            change = change._replace(assigned=found.change.asked)
        what = found.change.meets(change)
        if change.verb == "UPDATE" and found.changed_before.may_set(found.change.asked):
            # also by the same UPDATE for another row at hand
            what = SET
        if what == INSERTED and (self._comes_behind(found, other) or _leaves_out(found, other)):
            return ""
        return what

    def _comes_behind(self, found: _Placed, inserted: _Placed) -> bool:
        """Whether a DELETE that is the same for each row at hand comes behind an INSERT, whatever way the body goes: in
        the end no row is there that it finds, and all others are."""
        change, before = found.change, inserted.change
        is_same = change.verb == "DELETE" and change.is_constant and not change.is_limited
        if not is_same or inserted.body is not found.body or before.inserted is None or before.inserted.what != PLAIN:
            return False
        return before.end <= change.begin and self._branches[before.end] == self._branches[change.begin]

    @cached_property
    def _branches(self) -> Sequence[int]:
        return branches_before(self.body.tokens)


def _with_row_values(body: Body, fired: Table | None) -> Sequence[Token]:
    """A trigger's tokens with the row's whole numbers in place of variables that have them."""

    def holds(name: str, type_tokens: Sequence[Token]) -> bool:
        own, words = column_of(fired, name), {token.upper for token in type_tokens}
        is_same = own is not None and own.data_type in WHOLE_NUMBERS and bool(type_tokens)
        if own is None or not is_same or "ZEROFILL" in words:
            return False
        return declared(name, type_tokens).data_type == own.data_type and ("UNSIGNED" in words) == own.unsigned

    return with_row_values(body.tokens, types_of_variables(body.tokens), holds)


def _leaves_out(found: _Placed, inserted: _Placed) -> bool:
    """Whether a condition of a change is not true for the row of an INSERT, by a literal number, or by a time before
    that of the statement."""
    upsert, written = inserted.change.inserted, inserted.written
    given = None if upsert is None else given_to(upsert, written)
    if upsert is None or given is None or upsert.what not in _MADE_ONCE or found.written is None:
        return False
    if inserted.changed_before.may_set(found.change.asked):
        return False
    return any(_is_untrue(part, given, found.written) for part in conditions(found.change.condition))


def _is_untrue(part: Sequence[Token], given: Mapping[str, Sequence[Token]], written: Table) -> bool:
    middle = next((at for at, token in enumerate(part) if is_symbol(token, "=", "<", "<=", ">", ">=")), len(part))
    if not 0 < middle < len(part) - 1:
        return False
    lower, higher = part[:middle], part[middle + 1 :]
    if is_symbol(part[middle], "="):
        name = plain_column(lower)
        column = None if name is None else column_of(written, name.name)
        value = () if name is None else given.get(name.name, ())
        one, another = literal_in(column, value), literal_in(column, higher)
        return one is not None and another is not None and one != another
    if is_symbol(part[middle], ">", ">="):
        lower, higher = higher, lower
    if (units := _units_of_now(lower, given, written)) is not None:
        return _is_before_now(higher, units)
    # no days are between the statement's time and the one of its row
    between = (
        list(items(higher[2:-1])) if _text(higher[:2]) == "DATEDIFF(" and call_end(higher, 1) + 1 == len(higher) else []
    )
    is_of_row = len(between) == 2 and _units_of_now(between[1], given, written) is not None
    return is_of_row and _text(between[0]) in (*_MOMENTS, *_TODAYS) and _is_positive(lower)


def _units_of_now(
    tokens: Sequence[Token], given: Mapping[str, Sequence[Token]], written: Table
) -> Collection[str] | None:
    """Of a column in which the row gets the time of the statement, the units that are not shorter than what it leaves
    out of that; None of anything else."""
    name = plain_column(tokens) if tokens else None
    column = None if name is None else column_of(written, name.name)
    if column is None or name is None:
        return None
    value = given.get(name.name)
    # the tokens of a moment, or the column's default
    moment = _text(value) if value is not None else (column.default or "").upper().partition("(")[0]
    if column.data_type == "date":
        return _WHOLE_DAYS if moment in (*_MOMENTS, *_TODAYS) else None
    return _WHOLE_UNITS if column.data_type in ("datetime", "timestamp") and moment in _MOMENTS else None


def _is_before_now(value: Sequence[Token], units: Collection[str]) -> bool:
    """Whether a value is an earlier time than that of the statement, by one of the units at least:
    ``NOW() - INTERVAL 1 DAY``, ``DATE_SUB(NOW(), INTERVAL 1 DAY)``, ``SUBDATE(CURDATE(), 1)``."""
    sign = _EARLIER_BY.get(value[0].upper) if value else None
    if sign is not None and len(value) > 1 and is_symbol(value[1], "(") and call_end(value, 1) + 1 == len(value):
        moment, *by = items(value[2:-1])
        if len(by) != 1 or _text(moment) not in (*_MOMENTS, *_TODAYS):
            return False
        if value[0].upper == "SUBDATE" and len(by[0]) == 1:
            return _is_positive(by[0])
        return _is_interval(by[0], sign, units)
    minus = next((at for at, token in enumerate(value) if is_symbol(token, "-")), len(value))
    return _text(value[:minus]) in (*_MOMENTS, *_TODAYS) and _is_interval(value[minus + 1 :], "", units)


def _is_interval(tokens: Sequence[Token], sign: str, units: Collection[str]) -> bool:
    """``INTERVAL 1 DAY``, with this sign in front of the number."""
    if len(tokens) != 3 + len(sign) or tokens[0].upper != "INTERVAL" or tokens[-1].upper not in units:
        return False
    return _text(tokens[1:-2]) == sign and _is_positive(tokens[-2:-1])


def _is_positive(tokens: Sequence[Token]) -> bool:
    """Whether the tokens are one whole number above 0."""
    return (
        len(tokens) == 1
        and tokens[0].kind is TokenKind.NUMBER
        and tokens[0].text.isdecimal()
        and bool(tokens[0].text.strip("0"))
    )


def _date(text: str) -> str | None:
    """A date as it is written, if a DATE has it so whatever its ``sql_mode``."""
    try:
        return text if date.fromisoformat(text).isoformat() == text else None
    except ValueError:
        return None


def _text(tokens: Sequence[Token]) -> str:
    return "".join(token.upper or token.text for token in tokens)


def inner_text(literal: Token) -> str:
    """What stands between the quotes of a literal text; empty for numbers that are written so: ``x'41'``."""
    return literal.literal[1:-1] if literal.literal[:1] in ("'", '"') else ""


def literal_in(column: Definition | None, value: Sequence[Token]) -> int | str | None:
    """The whole number that a row gets, or the text as its column compares it, if no other literal becomes the same
    one."""
    if column is None or len(value) != 1:
        return None
    if value[0].kind is TokenKind.STRING:
        text = inner_text(value[0])
        return _date(text) if column.data_type == "date" else compared_text(column, text)
    if value[0].kind is not TokenKind.NUMBER or not value[0].text.isdecimal():
        return None
    number = number_of(value[0].text)
    # 0 is the next number of an AUTO_INCREMENT
    return number if holds(column, number) and (number or not column.auto_increment) else None
