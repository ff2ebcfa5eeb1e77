"""Temporary tables behind stored routines and triggers: what the texts of their bodies make, use and drop.

MySQL's log of statements holds the call alone. Such a table lives in one connection of the target as long as it lives
in one of the source, but a lane may have another connection for the next block. So what a call leaves is there only for
later statements of the same transaction of the target. Bodies are read as words, in the order of their text.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Generic, NamedTuple, TypeVar

from binlane.model import TableKey
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex

_Place = TypeVar("_Place")
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_BLOCKS: Final = frozenset({"IF", "CASE", "LOOP", "REPEAT", "WHILE"})
_NAMED_BEHIND: Final = frozenset({"FROM", "JOIN", "INTO", "UPDATE"})
_DEFINED: Final = frozenset({"FUNCTION", "PROCEDURE"})
_OBJECTS: Final = (*_DEFINED, "TRIGGER", "EVENT", "VIEW", "TABLE")
_CONDITION: Final = frozenset({"IF", "NOT", "EXISTS"})


class Act(Enum):
    """What a body does to a temporary table."""

    MAKES = auto()
    MAKES_IF_MISSING = auto()
    DROPS = auto()
    DROPS_IF_THERE = auto()
    EMPTIES = auto()
    USES = auto()


class Deed(NamedTuple):
    """An act of a body."""

    table: TableKey
    """In lower case."""
    act: Act
    is_certain: bool
    """It is neither in a branch nor in a loop."""


class Body(NamedTuple):
    """The text of a routine or trigger."""

    since: int
    """The seqno of the statement that defines it; 0 for what is there before the window."""
    database: str
    tokens: Sequence[Token]


def defined(tokens: Sequence[Token]) -> str:
    """FUNCTION, TRIGGER and so on, of a statement that makes such an object; "" for any other statement."""
    words = (token.upper for token in tokens)
    return next((word for word in words if word in _OBJECTS), "") if tokens and tokens[0].upper == "CREATE" else ""


def tokens_of(text: str, dialect: Dialect) -> Sequence[Token]:
    """The tokens; those in front of what the lexer cannot read."""
    found = list[Token]()
    try:
        lex(text, dialect, found)
    except Unreadable:
        return found
    return found


@dataclass(slots=True)
class Bodies:
    """Routines and triggers by name, in lower case, with all their definitions in order."""

    routines: dict[TableKey, list[Body]] = field(default_factory=dict)
    triggers: dict[TableKey, list[Body]] = field(default_factory=dict)
    """By table."""
    _tables: set[str] = field(default_factory=set)
    """Names of the temporary tables."""

    def add_routine(self, database: str, name: str, body: Body) -> None:
        """A definition, behind those that are there."""
        self._add(self.routines, database, name, body)

    def add_trigger(self, database: str, table: str, body: Body) -> None:
        """A definition of a trigger of a table."""
        self._add(self.triggers, database, table, body)

    def _add(self, kind: dict[TableKey, list[Body]], database: str, name: str, body: Body) -> None:
        kind.setdefault(_key(database, name), []).append(body)
        found = _made_or_dropped(body.tokens, body.database)
        self._tables.update(table.table for _, _, tables, _ in found for table in tables)

    def add_statement(self, tokens: Sequence[Token], database: str, seqno: int) -> None:
        """The routine or trigger that a logged statement defines, if it defines one."""
        words, kind = [token.upper for token in tokens], defined(tokens)
        if kind not in (*_DEFINED, "TRIGGER"):
            return
        at = words.index(kind) + 1
        while at < len(words) and words[at] in _CONDITION:
            at += 1
        owner, name, at = _named(tokens, at, database)
        body = Body(seqno, owner, tokens[at:])
        if kind in _DEFINED:
            self.add_routine(owner, name, body)
        elif "ON" in words[at:]:
            _, table, _ = _named(tokens, words.index("ON", at) + 1, owner)
            self.add_trigger(owner, table, body)

    @property
    def concerned(self) -> frozenset[str]:
        """The names of routines that make, use or drop temporary tables, themselves or by others, and of tables with
        such triggers."""
        kinds = (self.routines, self.triggers)
        return frozenset(
            key.table
            for kind in kinds
            for key, bodies in kind.items()
            if any(next(self._deeds(body, body.database, None, {key}), None) for body in bodies)
        )

    @property
    def temporary(self) -> frozenset[str]:
        """The names of the temporary tables."""
        return frozenset(self._tables)

    def own(self, tokens: Sequence[Token], database: str) -> Iterator[Deed]:
        """The deeds of a statement itself, not of its routines and triggers."""
        for _, act, tables, _ in _made_or_dropped(tokens, database):
            yield from (Deed(table, act, True) for table in tables)
        for at in range(len(tokens)):
            yield from self._used(tokens, at, database)

    def behind(self, tokens: Sequence[Token], database: str, seqno: int) -> Iterator[Deed]:
        """The deeds of the routines and triggers of a statement, without those of the statement itself."""
        yield from self._called(tokens, database, seqno, set())

    def _deeds(self, body: Body, database: str, seqno: int | None, seen: set[TableKey]) -> Iterator[Deed]:
        """In the order of the text."""
        tokens, found, made = body.tokens, list[tuple[int, list[Deed]]](), dict[int, list[Deed]]()
        branches, handlers = _branches(tokens), _handlers(tokens)
        for at, act, tables, _ in _made_or_dropped(tokens, database):
            made[at] = [Deed(table, act, True) for table in tables]
        for at in range(len(tokens)):
            deeds = made.get(at) or self._used(tokens, at, database) or self._at(tokens, at, database, seqno, seen)
            if deeds and not any(at in each for each in handlers):
                found.append((at, deeds))
        # the table may be missing then
        is_lenient = any(tokens[each.start - 1].upper == "CONTINUE" for each in handlers)
        for at, deeds in found:
            for each in deeds:
                act = Act.DROPS_IF_THERE if is_lenient and each.act is Act.DROPS else each.act
                yield Deed(each.table, act, each.is_certain and at not in branches)

    def _called(self, tokens: Sequence[Token], database: str, seqno: int, seen: set[TableKey]) -> Iterator[Deed]:
        for at in range(len(tokens)):
            yield from self._at(tokens, at, database, seqno, seen)

    def _used(self, tokens: Sequence[Token], at: int, database: str) -> list[Deed]:
        if at == 0 or tokens[at - 1].upper not in _NAMED_BEHIND or tokens[at].kind not in _NAMES:
            return []
        owner, name, behind = _named(tokens, at, database)
        if name.casefold() not in self._tables:
            return []
        is_whole = behind >= len(tokens) or tokens[behind].text == ";" or tokens[behind].upper == "END"
        empties = at > 1 and tokens[at - 2].upper == "DELETE" and is_whole
        return [Deed(_key(owner, name), Act.EMPTIES if empties else Act.USES, True)]

    def _at(
        self, tokens: Sequence[Token], at: int, database: str, seqno: int | None, seen: set[TableKey]
    ) -> list[Deed]:
        """The deeds of the routine that is called at a token, or of the triggers of the table that is written there."""
        if tokens[at].kind not in _NAMES or (at > 0 and tokens[at - 1].text == "."):
            return []
        owner, name, behind = _named(tokens, at, database)
        key, before = _key(owner, name), tokens[at - 1].upper if at else ""
        if key in seen:
            return []
        called = self.routines.get(key, []) if before == "CALL" or _is(tokens, behind, "(") else []
        bodies = [each for each in called if seqno is None or each.since <= seqno][-1:]
        if before in ("INTO", "UPDATE") or (before == "FROM" and at > 1 and tokens[at - 2].upper == "DELETE"):
            bodies += [each for each in self.triggers.get(key, []) if seqno is None or each.since <= seqno]
        return [deed for body in bodies for deed in self._deeds(body, body.database, seqno, {*seen, key})]


def _is(tokens: Sequence[Token], at: int, text: str) -> bool:
    return at < len(tokens) and tokens[at].text == text and tokens[at].kind is TokenKind.SYMBOL


def _key(database: str, name: str) -> TableKey:
    return TableKey(database.casefold(), name.casefold())


def _named(tokens: Sequence[Token], at: int, database: str) -> tuple[str, str, int]:
    """Database and name at a token, and the index behind them."""
    if at >= len(tokens):
        return database, "", at
    if _is(tokens, at + 1, ".") and at + 2 < len(tokens):
        return tokens[at].text, tokens[at + 2].text, at + 3
    return database, tokens[at].text, at + 1


def _made_or_dropped(tokens: Sequence[Token], database: str) -> Iterator[tuple[int, Act, tuple[TableKey, ...], int]]:
    """Each CREATE and DROP TEMPORARY TABLE: its index, what it does, its tables, the index behind."""
    for at in range(len(tokens) - 3):
        verb, *rest = (token.upper for token in tokens[at : at + 3])
        if verb not in ("CREATE", "DROP") or rest != ["TEMPORARY", "TABLE"]:
            continue
        behind, tables = at + 3, list[TableKey]()
        while behind < len(tokens) and tokens[behind].upper in _CONDITION:
            behind += 1
        has_condition = behind > at + 3
        while behind < len(tokens):
            owner, name, behind = _named(tokens, behind, database)
            tables.append(_key(owner, name))
            if verb == "CREATE" or not _is(tokens, behind, ","):
                break
            behind += 1
        plain, conditional = (Act.MAKES, Act.MAKES_IF_MISSING) if verb == "CREATE" else (Act.DROPS, Act.DROPS_IF_THERE)
        yield at, conditional if has_condition else plain, tuple(tables), behind


def _branches(tokens: Sequence[Token]) -> range:
    """From the first branch or loop to the end of the last one."""
    words = [token.upper for token in tokens]
    ends = [at for at in range(1, len(words)) if words[at] in _BLOCKS and words[at - 1] == "END"]
    begins = (
        at
        for at, word in enumerate(words)
        if word in ("THEN", "ELSE", "LOOP", "WHILE") or (word == "REPEAT" and not _is(tokens, at + 1, "("))
    )
    begin = next(begins, None)
    return range(begin, ends[-1]) if begin is not None and ends else range(0)


def _handlers(tokens: Sequence[Token]) -> list[range]:
    """The statements of error handlers, which run behind an error alone."""
    words, found = [token.upper for token in tokens], list[range]()
    for at, word in enumerate(words):
        if word != "HANDLER":
            continue
        behind, depth = at, 0
        while behind < len(words):
            depth += words[behind] == "BEGIN"
            depth -= words[behind] == "END" and words[behind + 1 : behind + 2] not in [[each] for each in _BLOCKS]
            if depth == 0 and _is(tokens, behind, ";"):
                break
            behind += 1
        found.append(range(at, behind))
    return found


@dataclass(frozen=True, slots=True)
class Call(Generic[_Place]):
    """A statement with temporary tables."""

    place: _Place
    session: int | None
    together: Hashable
    """The same for calls of one transaction of the target."""
    own: Sequence[Deed]
    """Of the statement itself, which the plan follows."""
    behind: Sequence[Deed]
    """Of its routines and triggers."""


class Doubt(NamedTuple, Generic[_Place]):
    """A call for which the table may not be on the target what it was on the source."""

    place: _Place
    table: TableKey
    before: _Place | None
    """The call that has left the table; None for none of this window."""
    fails: bool
    """It needs the table, which another connection of the target does not have; otherwise it may find another one."""


def doubts(calls: Iterable[Call[_Place]], is_permanent: Callable[[TableKey], bool]) -> Iterator[Doubt[_Place]]:
    """The calls, in the log's order, whose temporary tables depend on what an earlier call has left.

    ``is_permanent``: whether a table of that name may exist that is not temporary.
    """
    left: dict[tuple[int | None, TableKey], Call[_Place]] = {}
    followed: set[tuple[int | None, TableKey]] = set()
    for call in calls:
        for deed in call.own:
            key = call.session, deed.table
            if deed.act in (Act.USES, Act.EMPTIES):
                # one that is temporary alone has been refused by the plan
                if key in left and is_permanent(deed.table):
                    yield Doubt(call.place, deed.table, left[key].place, False)
                continue
            left.pop(key, None)
            if deed.act in (Act.MAKES, Act.MAKES_IF_MISSING):
                followed.add(key)
            else:
                followed.discard(key)
        for table in dict.fromkeys(deed.table for deed in call.behind):
            key, deeds = (call.session, table), [deed for deed in call.behind if deed.table == table]
            if key in followed:
                continue
            before = left.get(key)
            is_there = before is not None and before.together == call.together
            fails = _fails(deeds, is_left=before is not None, is_there=is_there, is_permanent=is_permanent)
            if fails or (before is not None and _may_differ(deeds, is_there=is_there)):
                yield Doubt(call.place, table, None if before is None else before.place, fails)
            if _leaves(deeds):
                left[key] = call
            elif any(deed.act in (Act.DROPS, Act.DROPS_IF_THERE) for deed in deeds):
                left.pop(key, None)


def _fails(deeds: Sequence[Deed], *, is_left: bool, is_there: bool, is_permanent: Callable[[TableKey], bool]) -> bool:
    """Whether it needs the table and is not in the transaction of the target that has made it; or makes a table that
    is there. The source has dropped that since: MySQL does not log the DROP of a table that a routine has made."""
    first = deeds[0]
    if not first.is_certain:
        return False
    if first.act is Act.MAKES:
        return is_left
    needs = first.act is Act.DROPS or (first.act in (Act.USES, Act.EMPTIES) and not is_permanent(first.table))
    return needs and not is_there


def _may_differ(deeds: Sequence[Deed], *, is_there: bool) -> bool:
    """Whether it matters that the table is there, and what it holds."""
    acts = [deed.act for deed in deeds]
    if not all(deed.is_certain for deed in deeds if deed.act is not Act.USES):
        return True
    if acts[0] in (Act.USES, Act.EMPTIES):
        return not is_there
    return acts[0] is Act.MAKES_IF_MISSING and acts[1:2] != [Act.EMPTIES]


def _leaves(deeds: Sequence[Deed]) -> bool:
    made = [deed.act in (Act.MAKES, Act.MAKES_IF_MISSING) for deed in deeds]
    changes = [each for each in deeds if each.act not in (Act.USES, Act.EMPTIES)]
    if not any(made):
        return False
    return changes[-1].act in (Act.MAKES, Act.MAKES_IF_MISSING) or not all(each.is_certain for each in changes)
