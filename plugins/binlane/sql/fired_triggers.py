"""The triggers that statements fire: which of them differ between source and target, and which statements reach them.

A logged statement fires the triggers of the server that executes it, so the source's have to be there as they were at
the window's beginning. The catalogue tells what they are now; what has changed them since is in the log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from binlane.model import TableKey
from binlane.schema.model import StoredTrigger
from binlane.sql.parse.facts import StatementFacts
from binlane.sql.parse.lexer import Token, TokenKind

_OBJECTS: Final = (
    "TRIGGER",
    "TABLE",
    "TABLES",
    "VIEW",
    "PROCEDURE",
    "FUNCTION",
    "EVENT",
    "DATABASE",
    "SCHEMA",
    "INDEX",
    "USER",
)
_CONDITION: Final = frozenset({"IF", "NOT", "EXISTS"})
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)


class TriggerChange(NamedTuple):
    """What a statement of the log does to triggers."""

    trigger: TableKey | None = None
    """Database and name of the trigger that it makes or drops."""
    makes: bool = False
    is_certain: bool = True
    """Without IF (NOT) EXISTS and OR REPLACE: it tells whether the trigger was there."""
    renames: tuple[tuple[TableKey, TableKey], ...] = ()
    replaced: frozenset[TableKey] = frozenset()
    """Tables that it makes or drops; a whole database without a table's name."""

    def renamed(self, name: Callable[[TableKey], TableKey]) -> TriggerChange:
        """The same with other names of databases."""
        return self._replace(
            trigger=None if self.trigger is None else folded(name(self.trigger)),
            renames=tuple((name(old), name(new)) for old, new in self.renames),
            replaced=frozenset(map(name, self.replaced)),
        )


def named_trigger(tokens: Sequence[Token], database: str) -> TableKey | None:
    """Database and name, in lower case, of the trigger that a statement makes or drops."""
    at = _object(tokens)
    if at is None or tokens[at].upper != "TRIGGER" or tokens[0].upper not in ("CREATE", "DROP"):
        return None
    name = _named(tokens, at + 1, database)
    return None if name is None else folded(name)


def trigger_changes(tokens: Sequence[Token], facts: StatementFacts, database: str) -> Iterator[TriggerChange]:
    """What a statement that commits by itself does to triggers; most do nothing."""
    at, name = _object(tokens), named_trigger(tokens, database)
    verb, what = ("", "") if at is None else (tokens[0].upper, tokens[at].upper)
    words = {token.upper for token in tokens[: (at or 0) + 4]}
    if name is not None:
        yield TriggerChange(name, verb == "CREATE", words.isdisjoint({*_CONDITION, "REPLACE"}))
    elif facts.renames:
        yield TriggerChange(renames=facts.renames)
    elif at is None or facts.temporary:
        return
    elif verb == "DROP" and what in ("TABLE", "TABLES"):
        yield TriggerChange(replaced=facts.tables)
    elif (verb, what) == ("CREATE", "TABLE") and "EXISTS" not in words:
        made = _named(tokens, at + 1, database)
        yield TriggerChange(replaced=frozenset(() if made is None else (made,)))
    elif verb == "DROP" and what in ("DATABASE", "SCHEMA"):
        yield TriggerChange(replaced=frozenset(TableKey(each, "") for each in facts.databases))


def defined_names(tokens: Sequence[Token], facts: StatementFacts, database: str) -> frozenset[TableKey]:
    """The routine or view that a statement makes, or the table that gets its trigger."""
    at = _object(tokens)
    if at is not None and tokens[0].upper in ("CREATE", "ALTER") and tokens[at].upper in ("FUNCTION", "PROCEDURE"):
        name = _named(tokens, at + 1, database)
        return frozenset(() if name is None else (name,))
    return facts.views | facts.triggered


def _object(tokens: Sequence[Token]) -> int | None:
    """Where a statement says what kind of object it makes, alters or drops."""
    return next((at for at, token in enumerate(tokens[:14]) if token.upper in _OBJECTS), None)


def _named(tokens: Sequence[Token], at: int, database: str) -> TableKey | None:
    rest = [token for token in tokens[at : at + 6] if token.upper not in _CONDITION]
    if len(rest) > 2 and rest[1].text == ".":
        return TableKey(rest[0].text, rest[2].text)
    return TableKey(database, rest[0].text) if rest else None


class _Then(Enum):
    """What the log tells of a trigger at the window's beginning."""

    AS_NOW = auto()
    THERE = auto()
    MISSING = auto()
    UNKNOWN = auto()


class TriggerDifference(NamedTuple):
    """A trigger that one server has and the other does not, or not alike."""

    table: TableKey
    """At the window's beginning, by the target's names."""
    name: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class TriggerComparison:
    """Compares triggers; all names are the target's."""

    changes: Sequence[TriggerChange]
    """Of the window and of the log behind it, in their order."""
    same_body: Callable[[str, str], bool]
    same_modes: Callable[[str, str], bool]
    fold: Callable[[TableKey], TableKey]
    """The name as both servers compare it."""

    def differences(
        self, source: Iterable[StoredTrigger], target: Iterable[StoredTrigger]
    ) -> Iterator[TriggerDifference]:
        """By table, as far as the log does not explain them."""
        ours, theirs = self._by_table(source, self._table_then), self._by_table(target, lambda key: key)
        for table in sorted(ours.keys() | theirs.keys(), key=str):
            yield from self._of_table(table, ours.get(table, {}), theirs.get(table, {}))

    def _of_table(
        self, table: TableKey, ours: Mapping[str, StoredTrigger], theirs: Mapping[str, StoredTrigger]
    ) -> Iterator[TriggerDifference]:
        unchanged = True
        for name in sorted(ours.keys() | theirs.keys()):
            then = self._then(table, name)
            source, target = ours.get(name), theirs.get(name)
            unchanged = unchanged and then is _Then.AS_NOW and source is not None and target is not None
            if then is _Then.UNKNOWN:
                continue
            there = "none" if target is None else target.time
            if then is not _Then.AS_NOW:
                if (then is _Then.THERE) != (target is not None):
                    then_there = "none, as on the source then" if target is not None else "one, as on the source then"
                    yield TriggerDifference(table, name, then_there, there)
            elif source is None or target is None:
                ours_now = "none" if source is None else source.time
                yield TriggerDifference(table, name, f"{ours_now}, as on the source", there)
            elif (what := self._differs(source, target)) is not None:
                yield TriggerDifference(table, name, f"the source's, {source.time}", f"another {what}")
        if unchanged and (orders := _order(ours.values(), theirs.values())) is not None:
            first, expected, found = orders
            yield TriggerDifference(table, first, f"the source's order, {expected}", found)

    def _differs(self, source: StoredTrigger, target: StoredTrigger) -> str | None:
        if source.time != target.time:
            return f"time, {target.time}"
        if not self.same_body(source.body, target.body):
            return "body"
        return None if self.same_modes(source.sql_mode, target.sql_mode) else f"sql_mode, {target.sql_mode}"

    def _by_table(
        self, triggers: Iterable[StoredTrigger], named: Callable[[TableKey], TableKey | None]
    ) -> dict[TableKey, dict[str, StoredTrigger]]:
        found: dict[TableKey, dict[str, StoredTrigger]] = defaultdict(dict)
        for each in triggers:
            table = named(self.fold(each.table))
            if table is not None:
                found[table][each.name.casefold()] = each
        return found

    def _table_then(self, table: TableKey) -> TableKey | None:
        """A table's name at the window's beginning; None for one that the log makes, which had no triggers then."""
        for change in reversed(self.changes):
            for old, new in reversed(change.renames):
                if self.fold(new) == table:
                    table = self.fold(old)
            if self._is_replaced(table, change):
                return None
        return table

    def _is_replaced(self, table: TableKey, change: TriggerChange) -> bool:
        replaced = {self.fold(each) for each in change.replaced}
        return not replaced.isdisjoint({table, TableKey(table.database, "")})

    def _then(self, table: TableKey, name: str) -> _Then:
        """``table``: its name at the window's beginning."""
        wanted = _key(table.database, name)
        for change in self.changes:
            if change.trigger == wanted:
                if not change.is_certain:
                    return _Then.UNKNOWN
                return _Then.MISSING if change.makes else _Then.THERE
            for old, new in change.renames:
                if self.fold(old) == table:
                    table = self.fold(new)
            if self._is_replaced(table, change):
                return _Then.UNKNOWN
        return _Then.AS_NOW


def _order(ours: Collection[StoredTrigger], theirs: Collection[StoredTrigger]) -> tuple[str, str, str] | None:
    """The first trigger of a time at which the two servers fire them in another order, and both orders."""
    for time in sorted({each.time for each in ours}):
        found = []
        for side in (ours, theirs):
            of_time = sorted((each for each in side if each.time == time), key=lambda each: each.order)
            if len({each.order for each in of_time}) < len(of_time):
                break  # an old server does not tell it
            found.append([each.name.casefold() for each in of_time])
        if len(found) == 2 and found[0] != found[1]:
            return found[0][0], ", ".join(found[0]), ", ".join(found[1])
    return None


def dropped_unmade(changes: Iterable[tuple[int, TriggerChange]]) -> Iterator[tuple[TableKey, int]]:
    """Triggers that a log drops and that it has not made: database and name, and the number beside the change."""
    seen = set[TableKey]()
    for number, change in changes:
        if change.trigger is None or change.trigger in seen:
            continue
        seen.add(change.trigger)
        if not change.makes and change.is_certain:
            yield change.trigger, number


@dataclass(slots=True)
class Reach:
    """What statements reach: tables with triggers, by their texts and those of routines, views and other triggers.

    Names are compared without regard to case, and each that may mean an object does: at worst one too many is found.
    """

    programs: Mapping[TableKey, list[tuple[str, Sequence[Token]]]]
    """By name: the texts behind it, each with its database."""
    unread: frozenset[TableKey] = frozenset()
    """Names of which the account may not read a text: they may reach everything."""
    cascades: Mapping[TableKey, frozenset[TableKey]] = field(default_factory=dict)
    """Children whose triggers fire with changes of their parents."""
    called: frozenset[TableKey] = frozenset()
    """Routines and views."""

    def of(self, names: Iterable[TableKey]) -> frozenset[TableKey]:
        """All objects that a statement with these names may reach."""
        found, left = set[TableKey](), set(names)
        while left:
            key = left.pop()
            if key in found:
                continue
            found.add(key)
            left |= self.cascades.get(key, frozenset())
            for owner, text in self.programs.get(key, ()):
                left.update(names_in(text, owner))
        return frozenset(found)

    def leading_to(self, wanted: Collection[TableKey]) -> frozenset[TableKey]:
        """The objects behind which one of ``wanted`` is, with these: whoever names none of them reaches none."""
        behind: dict[TableKey, set[TableKey]] = defaultdict(set)
        for key, texts in self.programs.items():
            for owner, text in texts:
                for name in names_in(text, owner):
                    behind[name].add(key)
        for parent, children in self.cascades.items():
            for child in children:
                behind[child].add(parent)
        found, left = set[TableKey](), {*wanted, *self.unread}
        while left:
            key = left.pop()
            if key not in found:
                found.add(key)
                left |= behind[key]
        return frozenset(found)


Text: TypeAlias = tuple[TableKey, str, Sequence[Token] | None]
"""A name, the database of names without one in the text behind it, and that text, None if nobody can read it."""


def reach_of(
    triggers: Iterable[Text], called: Iterable[Text], cascades: Iterable[tuple[TableKey, TableKey]] = ()
) -> Reach:
    """``triggers``: by their tables; ``called``: routines and views; all of both servers and of the window.
    ``cascades``: child and parent of foreign keys whose children's triggers fire."""
    called = tuple(called)
    texts: dict[TableKey, list[tuple[str, Sequence[Token]]]] = defaultdict(list)
    unread = set[TableKey]()
    for name, database, tokens in (*triggers, *called):
        if tokens is None:
            unread.add(folded(name))
        else:
            texts[folded(name)].append((database, tokens))
    children: dict[TableKey, set[TableKey]] = defaultdict(set)
    for child, parent in cascades:
        children[folded(parent)].add(folded(child))
    return Reach(
        texts,
        frozenset(unread - texts.keys()),
        {key: frozenset(each) for key, each in children.items()},
        frozenset(folded(name) for name, _, _ in called),
    )


def names_in(tokens: Sequence[Token], database: str) -> Iterator[TableKey]:
    """Each name of a text that may be an object's, with its database."""
    for at, token in enumerate(tokens):
        if token.kind not in _NAMES or (at > 0 and _is_dot(tokens[at - 1])):
            continue
        yield _key(database, token.text)
        if at + 2 < len(tokens) and _is_dot(tokens[at + 1]):
            yield _key(token.text, tokens[at + 2].text)


def _is_dot(token: Token) -> bool:
    return token.text == "." and token.kind is TokenKind.SYMBOL


def folded(key: TableKey) -> TableKey:
    """The name without regard to case."""
    return _key(key.database, key.table)


def _key(database: str, name: str) -> TableKey:
    return TableKey(database.casefold(), name.casefold())
