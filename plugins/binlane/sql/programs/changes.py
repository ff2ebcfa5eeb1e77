"""What the statements of a log do to routines, views and triggers: made, dropped, renamed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition, TableKey
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.facts import StatementFacts
from binlane.sql.parse.lexer import Token
from binlane.sql.programs.reach import folded, routine_key

_OBJECTS: Final = (
    *("TRIGGER", "TABLE", "TABLES", "VIEW", "PROCEDURE", "FUNCTION", "PACKAGE", "EVENT", "DATABASE", "SCHEMA"),
    *("INDEX", "USER"),
)
_ROUTINES: Final = ("FUNCTION", "PROCEDURE", "PACKAGE")
_FOLLOWED: Final = ("TRIGGER", "VIEW", *_ROUTINES)
_BEFORE_OBJECT: Final = 20
"""CREATE OR REPLACE ALGORITHM = UNDEFINED DEFINER = `u` @ `h` SQL SECURITY DEFINER are 14 tokens."""
BEHIND: Final = sys.maxsize
_CONDITION: Final = frozenset({"IF", "NOT", "EXISTS"})


class ProgramChange(NamedTuple):
    """What a statement of the log does to routines, views and triggers."""

    kind: str = ""
    """``trigger``, ``view``, ``function``, ``procedure``, ``package`` or ``package body``."""
    name: TableKey | None = None
    """Database and name of what it makes or drops."""
    makes: bool = False
    is_certain: bool = True
    """Without IF (NOT) EXISTS and OR REPLACE: it tells whether the object was there."""
    renames: tuple[tuple[TableKey, TableKey], ...] = ()
    replaced: frozenset[TableKey] = frozenset()
    """Tables that it makes or drops; a whole database without a table's name."""
    settles: bool = True
    """Behind it both servers have the same, or none: not behind CREATE .. IF NOT EXISTS."""
    seqno: int = BEHIND
    """Of the statement in the window; ``BEHIND`` it, more than any."""
    at: LogPosition | None = None
    """Of the statement in the source's log."""

    def renamed(self, name: Callable[[TableKey], TableKey]) -> ProgramChange:
        """The same with other names of databases."""
        return self._replace(
            name=None if self.name is None else folded(name(self.name)),
            renames=tuple((name(old), name(new)) for old, new in self.renames),
            replaced=frozenset(map(name, self.replaced)),
        )


class Then(Enum):
    """What the log tells of an object at the window's beginning."""

    AS_NOW = auto()
    THERE = auto()
    MISSING = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Since:
    """What was done to objects since the window's beginning; all names are the target's."""

    changes: Sequence[ProgramChange]
    """Of the window and of the log behind it, in their order."""
    fold: Callable[[TableKey], TableKey]
    """The name as both servers compare it."""

    def name_then(self, table: TableKey) -> TableKey | None:
        """A table's, or view's, name at the window's beginning; None for one that the log makes."""
        for change in reversed(self.changes):
            if change.makes and change.kind == "view" and change.name == folded(table):
                return None
            for old, new in reversed(change.renames):
                if self.fold(new) == table:
                    table = self.fold(old)
            if self._is_replaced(table, change):
                return None
        return table

    def then(self, kind: str, name: TableKey, table: TableKey) -> Then:
        """``table``: what may be renamed, by its name at the window's beginning; a trigger's table, a view itself."""
        for change, is_replaced in self._of(kind, name, table):
            if is_replaced or not change.is_certain:
                return Then.UNKNOWN
            return Then.MISSING if change.makes else Then.THERE
        return Then.AS_NOW

    def until(self, kind: str, name: TableKey, table: TableKey) -> int:
        """The seqno up to which statements find what each server has had for itself."""
        settling = (change for change, is_replaced in self._of(kind, name, table) if is_replaced or change.settles)
        return next((change.seqno for change in settling), BEHIND)

    def first_at(self, kind: str, name: TableKey, table: TableKey) -> LogPosition | None:
        """Where the log first does something to an object."""
        return next((change.at for change, _ in self._of(kind, name, table)), None)

    def _of(self, kind: str, name: TableKey, table: TableKey) -> Iterator[tuple[ProgramChange, bool]]:
        """What was done to an object, and whether a table that it is of, or that has its name, was made or dropped."""
        wanted = folded(name)
        for change in self.changes:
            if change.kind == kind and change.name == wanted:
                yield change, False
            for old, new in change.renames:
                if self.fold(old) == table:
                    table = self.fold(new)
                    wanted = folded(table) if kind == "view" else wanted
            if self._is_replaced(table, change):
                yield change, True

    def _is_replaced(self, table: TableKey, change: ProgramChange) -> bool:
        replaced = {self.fold(each) for each in change.replaced}
        return not replaced.isdisjoint({table, TableKey(table.database, "")})


def program_changes(tokens: Sequence[Token], facts: StatementFacts, database: str) -> Iterator[ProgramChange]:
    """What a statement that commits by itself does to routines, views and triggers; most do nothing."""
    at = object_at(tokens)
    verb, what = ("", "") if at is None else (tokens[0].upper, tokens[at].upper)
    words = {token.upper for token in tokens[: (at or 0) + 5]}
    if at is not None and what in _FOLLOWED and verb in ("CREATE", "DROP", "ALTER"):
        is_certain, settles = words.isdisjoint({*_CONDITION, "REPLACE"}), verb != "CREATE" or "EXISTS" not in words
        for change in _of_program(tokens, at, database, is_certain=is_certain):
            yield change._replace(settles=settles)
    elif facts.renames:
        yield ProgramChange(renames=facts.renames)
    elif facts.exchanges:
        # EXCHANGE leaves both tables as they are, CONVERT makes or drops the other one
        new_tables = {new for old, new in facts.exchanges if new != facts.first and (new, old) not in facts.exchanges}
        if replaced := facts.dropped | new_tables:
            yield ProgramChange(replaced=replaced)
    elif at is None or facts.temporary:
        return
    elif verb == "DROP" and what in ("TABLE", "TABLES"):
        yield ProgramChange(replaced=facts.tables)
    elif (verb, what) == ("CREATE", "TABLE") and "EXISTS" not in words:
        made = _named(tokens, at + 1, database)
        yield ProgramChange(replaced=frozenset(() if made is None else (made,)))
    elif verb == "DROP" and what in ("DATABASE", "SCHEMA"):
        yield ProgramChange(replaced=frozenset(TableKey(each, "") for each in facts.databases))


def _of_program(tokens: Sequence[Token], at: int, database: str, *, is_certain: bool) -> Iterator[ProgramChange]:
    verb, kind = tokens[0].upper, tokens[at].upper.lower()
    if verb == "ALTER" and kind != "view":
        return  # a comment, or characteristics: the body stays
    if kind == "package" and tokens[at + 1].upper == "BODY":
        kind, at = "package body", at + 1
    if kind == "function" and any(token.upper == "SONAME" for token in tokens):
        return  # a loadable one
    at += 1
    while True:
        name = _named(tokens, at, database)
        if name is None:
            return
        # a view that is altered was there, with another query
        yield ProgramChange(kind, folded(name), verb == "CREATE", is_certain)
        if kind == "package":  # its body goes with it
            yield ProgramChange("package body", folded(name), is_certain=False)
        while at < len(tokens) and tokens[at].text != ",":
            at += 1
        at += 1
        if verb != "DROP" or kind != "view":
            return


def made_program(tokens: Sequence[Token], facts: StatementFacts, database: str) -> tuple[str, TableKey] | None:
    """Kind and name, as it is spelled, of the routine or view that a statement makes, or makes another one of; None for
    any other statement."""
    at = object_at(tokens)
    change = next(program_changes(tokens, facts, database), None)
    if at is None or change is None or change.kind in ("", "trigger") or tokens[0].upper == "DROP":
        return None
    name = _named(tokens, at + 1 + (change.kind == "package body"), database)
    return None if name is None else (change.kind, name)


def defined_keys(tokens: Sequence[Token], facts: StatementFacts, database: str) -> Iterator[tuple[TableKey, str]]:
    """What a statement makes, as ``Reach`` names it, with the database of names without one in its text: a routine, a
    view, or the table that gets its trigger."""
    at = object_at(tokens)
    if at is not None and tokens[0].upper in ("CREATE", "ALTER") and tokens[at].upper in _ROUTINES:
        name = _named(tokens, at + 1 + (tokens[at].upper == "PACKAGE" and tokens[at + 1].upper == "BODY"), database)
        if name is not None:
            yield routine_key(name.database, name.table), name.database
        return
    yield from ((key, database) for key in facts.views)
    yield from ((key, key.database) for key in facts.triggered)


def object_at(tokens: Sequence[Token]) -> int | None:
    """Where a statement says what kind of object it makes, alters or drops."""
    words = enumerate(tokens[:_BEFORE_OBJECT])
    # DEFINER = view @ localhost is an account
    return next((at for at, each in words if each.upper in _OBJECTS and not is_symbol(tokens[at - 1], "=")), None)


def object_of(tokens: Sequence[Token]) -> str:
    """The kind of object that a statement makes, alters or drops, in capitals; "" for other statements."""
    at = object_at(tokens)
    return "" if at is None else tokens[at].upper


def _named(tokens: Sequence[Token], at: int, database: str) -> TableKey | None:
    # behind a dot each of these words is a name
    condition = tuple(token.upper for token in tokens[at : at + 3])
    at += 3 if condition == ("IF", "NOT", "EXISTS") else 2 if condition[:2] == ("IF", "EXISTS") else 0
    rest = tokens[at : at + 3]
    if len(rest) > 2 and rest[1].text == ".":
        return TableKey(rest[0].text, rest[2].text)
    return TableKey(database, rest[0].text) if rest else None


def dropped_unmade(changes: Iterable[tuple[int, ProgramChange]]) -> Iterator[tuple[TableKey, int]]:
    """Triggers that a log drops and that it has not made: database and name, and the number beside the change."""
    seen = set[TableKey]()
    for number, change in changes:
        if change.kind != "trigger" or change.name is None or change.name in seen:
            continue
        seen.add(change.name)
        if not change.makes and change.is_certain:
            yield change.name, number
