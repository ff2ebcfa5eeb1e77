"""What bodies leave that run once for each row of a statement, where two servers may take the rows in another order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from binlane.model import TableKey
from binlane.precheck.bodies.body_parts import Body, BodyPart
from binlane.precheck.bodies.own_keys import (
    column_of,
    definitions,
    given_to,
    in_key_of,
    meet_nowhere,
    names_of,
    ways_of,
)
from binlane.precheck.bodies.row_values import TypeOf, declared, leaves_one
from binlane.precheck.bodies.rows_met import (
    NOTHING_BESIDE,
    Beside,
    RowsMet,
    SetBefore,
    has_same_rows,
    inner_text,
    literal_in,
    told_of,
)
from binlane.schema.common_values import are_alike, compared_text, differs
from binlane.schema.derived_tables import DERIVED
from binlane.schema.kept_values import keeps, scale_of
from binlane.schema.letter_case import ANY_CASE
from binlane.schema.model import ENGINES_WITHOUT_KEYS, Key, KeyColumn, Table
from binlane.schema.model import Column as Definition
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.own_upserts import with_upserts
from binlane.sql.parse.query_blocks import Column, columns_in, plain_column
from binlane.sql.parse.row_effects import (
    FIRING,
    PLAIN,
    Assignment,
    Change,
    Upsert,
    added,
    change_by,
    change_of,
    has_row_beside,
    reads,
    types_of_variables,
    writes,
)
from binlane.sql.programs.of_server import catches_errors


def effects_in_turn(
    body: Body,
    table_of: Callable[[TableKey], Table | None],
    beside: Beside = NOTHING_BESIDE,
    set_before: Collection[str] | None = None,
) -> Iterator[BodyPart]:
    """What of a body shows the order of rows. ``beside``: what else is done for each row. ``set_before``: the columns,
    in lower case, that the triggers in front of an INSERT into the body's table may set; None: any."""

    def written(key: TableKey) -> Table | None:
        table = table_of(key)
        # a view may show other columns than those of the keys that rows meet on
        return None if table is None or table.engine == DERIVED else table

    def is_key(key: TableKey, names: frozenset[str]) -> bool:
        table = written(key)
        unique = [] if table is None else [each for each in table.keys if each.unique]
        return len(unique) == 1 and names_of(unique[0]) == names

    if body.events and (tokens := with_upserts(body.tokens, body.database, is_key)) is not body.tokens:
        body = body._replace(tokens=tokens)
    fired = table_of(body.difference.key) if body.events else None
    told = None if fired is None or fired.engine.lower() in ENGINES_WITHOUT_KEYS else fired
    if body.is_before and "INSERT" in body.events:
        # of a row that is not there yet: an AUTO_INCREMENT is 0, and no key has told its values apart
        found = _Rows(body, fired, None, written, beside).parts()
        given = None if told is None else _with_given_keys(told, set_before)
        apart = frozenset(_Rows(body, fired, given, written, beside).parts())
        yield from (part if part in apart else part._replace(among=body.difference.key) for part in found)
        told = None
    else:
        yield from _Rows(body, fired, told, written, beside).parts()

    def bases(keys: Iterable[TableKey]) -> set[TableKey]:
        return {base for key in keys for base in beside.bases_of(key)}

    read, changed_here = bases(reads(body.tokens, body.database)), bases(writes(body.tokens, body.database))
    if changed_here and catches_errors(body.tokens):
        yield _part("a handler of errors that depend on the rows before")
    felt = read & (changed_here | bases(beside.changed))
    if felt:
        felt -= RowsMet(body, beside, fired, told, written).settled_reads()
    if body.events:
        felt |= read & {ANY_CASE.table(body.difference.key)}
    if felt:
        yield _part(f"a query of {min(map(str, felt))}, which the rows before have changed,")
    elif read and not body.events:
        what = f"a query of {min(map(str, read))}, which the rows before may have changed,"
        yield BodyPart(what, needs_rows=True, reads=frozenset(read))


_IN_TURN: Final = {
    Change.SUM: "a sum that may be rounded at each row",
    Change.GREATEST: "GREATEST() of equal values that may differ",
    Change.LEAST: "LEAST() of equal values that may differ",
}


class _Rows:
    """The rows that fire a trigger, or are at hand in a routine, and what the body makes of them."""

    def __init__(
        self,
        body: Body,
        fired: Table | None,
        told: Table | None,
        written: Callable[[TableKey], Table | None],
        beside: Beside,
    ) -> None:
        """``told``: the firing table with the keys that tell its rows apart; None: none does."""
        self.body = body
        self.fired = fired
        self.told = told
        self.written = written
        self.beside = beside
        self.variables = types_of_variables(body.tokens, body.parameters)

    def parts(self) -> Iterator[BodyPart]:
        """What they leave otherwise in another order."""
        yield from self.assigned()
        yield from self.upserted()
        yield from map(_part, RowsMet(self.body, self.beside, self.fired, self.told, self.written).parts())

    def assigned(self) -> Iterator[BodyPart]:
        """What the UPDATEs leave otherwise in another order."""
        body = self.body
        groups = dict[tuple[TableKey | None, str], list[tuple[Assignment, Body]]]()
        columns, names = dict[TableKey | None, set[str]](), dict[TableKey, set[TableKey]]()
        for of in (body, *self.beside.bodies):
            for each in self.beside.assignments_of(of):
                for table in self._bases(each.table):
                    groups.setdefault((table, each.column), []).append((each, of))
                    columns.setdefault(table, set()).add(each.column)
                    if table is not None and each.table is not None:
                        names.setdefault(table, set()).add(ANY_CASE.table(each.table))
        # an UPDATE of several tables may be one of any
        felt = {table: of_one | columns.get(None, set()) for table, of_one in columns.items()}
        felt[None] = set[str]().union(*columns.values())
        has_beside = cache(
            lambda table: bool(body.events) and has_row_beside(body.tokens, () if table is None else (table,))
        )
        for (base, column), same in groups.items():
            own = [each for each, of in same if of is body]
            before = self._set_before(base, names.get(base, ()) if base is not None else ())
            # a trigger of the table may set one column by another one
            meeting = itertools.chain(*(some for (key, _), some in groups.items() if key == base))
            if not own or self._has_rows_of_their_own(list(meeting) if before.is_varied else same):
                continue
            table = own[0].table
            changed = None if table is None else self.written(table)
            kinds, constants = {each.change for each, _ in same}, {each.constant for each, _ in same}
            # a view may have other names for the columns
            is_known = base is None or len(names[base]) == 1
            is_one = is_known and ((len(constants) == 1 and () not in constants) or len(same) == 1)
            is_one = is_one and not (before.is_varied and len(columns[base]) > 1)
            for each in own:
                # whether the value depends on the row at hand, or on a column that the body changes
                is_by_row = each.is_fired or not felt[base].isdisjoint(each.read) or before.may_set(each.read)
                if not is_by_row and (is_one or (is_known and has_beside(table))):
                    continue
                is_other = Change.OTHER in kinds or len(kinds) > 1 or not is_known
                is_other = is_other or before.is_varied or before.may_set((column,))
                if is_other or any(_may_be_of(name, changed) for name in each.added):
                    yield _part(f"an UPDATE of {table or 'a query'} in which the last row remains")
                elif not leaves_one(each.change, column_of(changed, column), each.value, self._type_in(changed)):
                    yield _part(f"{_IN_TURN[each.change]} in {table}")

    def _bases(self, key: TableKey | None) -> Iterable[TableKey | None]:
        return (None,) if key is None else self.beside.bases_of(key)

    def _set_before(self, base: TableKey | None, names: Collection[TableKey]) -> SetBefore:
        """What triggers make of the rows of a table that is changed by these names."""
        # an UPDATE of several tables is a query of what it changes, too
        return SetBefore() if base is None else self.beside.set_before(base).by(names, base)

    def _has_rows_of_their_own(self, same: Sequence[tuple[Assignment, Body]]) -> bool:
        """Whether the UPDATEs find rows of their own for each row at hand."""
        found = ((each.found_by, each.table, told_of(self.body, of, self.told)) for each, of in same)
        return meet_nowhere(
            ways_of(told, definitions(found_by, None if table is None else self.written(table)), are_alike)
            for found_by, table, told in found
        )

    def upserted(self) -> Iterator[BodyPart]:
        """The INSERTs and REPLACEs of which rows meet on a key, and leave otherwise in another order."""
        groups = dict[TableKey, list[tuple[Upsert, Body]]]()
        for of in (self.body, *self.beside.bodies):
            for each in self.beside.upserts_of(of):
                for table in self.beside.bases_of(each.key):
                    groups.setdefault(table, []).append((each, of))
        for base, every in groups.items():
            own = [each for each, of in every if of is self.body]
            if not own or all(each.what == PLAIN for each, _ in every):
                # rows that meet on a key end the statement
                continue
            names = {ANY_CASE.table(each.key) for each, _ in every}
            before = self._set_before(base, names)
            found = list(self._felt(every, self.written(own[0].key), before)) if len(names) == 1 else own
            # what another body inserts is a part of its own
            for each in (each for each in found if any(each is one for one in own)):
                yield _part(f"{each.what} into {each.key}, in which the first row or the last one remains,")

    def _felt(self, every: Sequence[tuple[Upsert, Body]], written: Table | None, before: SetBefore) -> Iterator[Upsert]:
        """Those of the upserts into one table that leave another row in another order."""
        upserts = [each for each, _ in every]
        if written is None:
            yield from upserts
            return
        unique = [key for key in written.keys if key.unique]
        if all(
            meet_nowhere(
                ways_of(told_of(self.body, of, self.told), before.kept(in_key_of(key, each, written)), keeps)
                for each, of in every
            )
            for key in unique
        ):
            yield from (each for each in upserts if given_to(each, written) is None)
            return
        if before.is_varied or any(before.may_set(_touched(each, written, unique)) for each in upserts):
            yield from upserts
            return
        if len(unique) != 1 or any(
            _takes_for_equal(written, part) and not self._has_other_texts(every, written, part)
            for part in unique[0].columns
        ):
            yield from upserts
            return
        in_key = {(part.name or "").lower() for part in unique[0].columns}
        for same in _meeting(upserts, written, unique[0]):
            is_one_kind = len({_fixed(each, written, in_key) for each in same}) == 1
            yield from (each for each in same if not (is_one_kind and self._leaves_the_same(each, written, in_key)))

    def _has_other_texts(self, every: Sequence[tuple[Upsert, Body]], written: Table, part: KeyColumn) -> bool:
        """Whether a key takes none of the texts that upserts give its column for another one of them: literals, and the
        members of an ENUM of the row at hand."""
        column, texts = column_of(written, part.name), set[str]()
        for each, of in every:
            value = (given_to(each, written) or {}).get((part.name or "").lower()) or ()
            name, fired = plain_column(value), self.fired if has_same_rows(self.body, of) else None
            own = column_of(fired, name.name) if name is not None and name.qualifier in FIRING else None
            if len(value) == 1 and value[0].kind is TokenKind.STRING:
                texts.add(inner_text(value[0]))
            elif own is not None and own.data_type == "enum":
                texts.update(own.members)
            else:
                return False
        compared = (
            set() if column is None or part.prefix is not None else {compared_text(column, text) for text in texts}
        )
        return None not in compared and len(compared) == len(texts)

    def _leaves_the_same(self, upsert: Upsert, written: Table, in_key: Collection[str]) -> bool:
        """Whether rows that meet leave the same in all columns but those of the key, whichever comes first."""
        given = given_to(upsert, written)
        if given is None:
            return False
        others = {name: value for name, value in given.items() if name not in in_key}
        updates = _updates(upsert, given, written, in_key)
        if not updates:
            return not any(True for value in others.values() for _ in columns_in(value))
        return self._add_up(updates, others, written)

    def _add_up(
        self, updates: Mapping[str, Sequence[Token]], others: Mapping[str, Sequence[Token]], written: Table
    ) -> bool:
        """Whether ON DUPLICATE KEY UPDATE adds to each column what the first row has inserted."""
        if not updates.keys() <= others.keys():
            return False
        for name, value in others.items():
            if name not in updates:
                if any(True for _ in columns_in(value)):
                    return False
                continue
            update = updates[name]
            if _texts(update) == _texts(value) and not any(True for _ in columns_in(value)):
                continue
            rest = added(name, update)
            texts = [] if rest is None else _texts(rest)
            texts = texts[1:] if texts[:1] == ["+"] else texts
            is_inserted = texts == ["values", "(", name, ")"]
            if not is_inserted and texts != _texts(value):
                return False
            change = change_by(update) if is_inserted else change_of(name, update)
            if not leaves_one(change, column_of(written, name), update, self._type_in(written)):
                return False
        return True

    def _type_in(self, changed: Table | None) -> TypeOf:
        """What names in a value stand for, of a column of a table."""

        def found(name: Column) -> Definition | None:
            if name.qualifier in FIRING:
                return column_of(self.fired, name.name)
            if not name.qualifier and name.name in self.variables:
                return declared(name.name, self.variables[name.name])
            return column_of(changed, name.name)

        return found


def _with_given_keys(fired: Table, set_before: Collection[str] | None) -> Table:
    """The table with those of its unique keys whose values a row has in front of its INSERT as it has them then. Where
    two rows have one value, it ends with 1062."""
    columns = {each.name.lower(): each for each in fired.columns}

    def is_given(key: Key, part: KeyColumn) -> bool:
        column = columns.get((part.name or "").lower())
        if column is None or set_before is None or (part.name or "").lower() in set_before:
            return False
        is_plain = column.generated is None and not column.auto_increment
        is_literal = column.default is None or column.default.startswith("'")
        return is_plain and is_literal and (key.primary or not column.nullable)

    keys = (key for key in fired.keys if key.unique and all(is_given(key, part) for part in key.columns))
    return replace(fired, keys=tuple(keys))


def _touched(upsert: Upsert, written: Table, unique: Sequence[Key]) -> Collection[str]:
    """The columns that an upsert gives values, or adds to, and those by which its row meets others."""
    of_keys = ((part.name or "").lower() for key in unique for part in key.columns)
    given = upsert.columns or (each.name.lower() for each in written.columns)
    return {*of_keys, *given, *(name for name, _ in upsert.updates)}


def _updates(
    upsert: Upsert, given: Mapping[str, Sequence[Token]], written: Table, in_key: Collection[str]
) -> Mapping[str, Sequence[Token]]:
    """What ON DUPLICATE KEY UPDATE changes, with the row's own value for ``VALUES(x)`` alone: not by ``x = x``, nor a
    column of the key, which has that value."""
    found = dict[str, Sequence[Token]]()
    for name, value in upsert.updates:
        is_of_row = _texts(value) == ["values", "(", name, ")"] and name in given
        update, itself = given[name] if is_of_row else value, plain_column(value)
        is_same = (
            itself is not None and itself.name == name and itself.qualifier in ("", ANY_CASE.table(written.key).table)
        )
        column = column_of(written, name)
        is_of_key = is_of_row and name in in_key and column is not None and not differs(column)
        if not (is_same or is_of_key):
            found[name] = update
    return found


def _fixed(upsert: Upsert, written: Table, in_key: Collection[str]) -> Hashable:
    """What upserts into one table have in common if none of them leaves another row than the others would: how values
    are added up, and those that are not."""
    given = given_to(upsert, written) or {}
    updates = _updates(upsert, given, written, in_key)
    fixed = dict[str, Hashable]()
    for column in written.columns:
        name = column.name.lower()
        value, update = given.get(name), updates.get(name)
        if name in in_key:
            continue
        is_number = scale_of(column) is not None
        if value is None:
            fixed[name] = Change.SUM if is_number and _is_zero(column.default or "") else None
        elif update and _texts(update) != _texts(value):
            fixed[name] = change_by(update)
        elif update is None and is_number and len(value) == 1 and _is_zero_literal(value[0]):
            # what a sum begins with
            fixed[name] = Change.SUM
        else:
            fixed[name] = tuple(_texts(value))
    return bool(updates), frozenset(fixed.items())


def _is_zero_literal(token: Token) -> bool:
    return token.kind is TokenKind.NUMBER and _is_zero(token.text)


def _is_zero(text: str) -> bool:
    return "0" in text and not text.strip("'0.")


def _meeting(every: Sequence[Upsert], written: Table, key: Key) -> Iterable[Sequence[Upsert]]:
    """The upserts into a table, those apart that have other literal numbers in a column of its key."""
    for part in key.columns:
        column = column_of(written, part.name)
        groups = dict[int | str | None, list[Upsert]]()
        for each in every:
            value = (given_to(each, written) or {}).get((part.name or "").lower()) or ()
            groups.setdefault(literal_in(column, value), []).append(each)
        if None not in groups:
            return groups.values()
    return [every]


def _may_be_of(name: Column, changed: Table | None) -> bool:
    """Whether a name may be a column of the table that is changed, whose value the rows before may have changed."""
    return bool(name.qualifier) or changed is None or column_of(changed, name.name) is not None


def _part(what: str) -> BodyPart:
    return BodyPart(what, needs_rows=True)


def _texts(tokens: Sequence[Token]) -> list[str]:
    return [token.text.lower() or token.literal for token in tokens]


def _takes_for_equal(table: Table, part: KeyColumn) -> bool:
    """Whether different values of a column are one to a key, or it is not known."""
    column = column_of(table, part.name)
    return column is None or part.prefix is not None or differs(column)
