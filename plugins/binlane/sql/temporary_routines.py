"""Temporary tables behind stored routines, views and triggers: what the texts of their bodies make, use and drop.

MySQL's log of statements holds the call alone. Such a table lives in one connection of the target as long as it lives
in one of the source, but a lane may have another connection for the next block. So what a call leaves is there only for
later statements of the same transaction of the target. Bodies are read as words, in the order of their text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum, auto
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.schema.letter_case import lower
from binlane.sql.charset import dialect_in
from binlane.sql.parse.lexer import Token, TokenKind, Unreadable, lex, with_numbers
from binlane.sql.program_names import folded_name

_Place = TypeVar("_Place")
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_BLOCKS: Final = frozenset({"IF", "CASE", "LOOP", "REPEAT", "WHILE"})
_NAMED_BEHIND: Final = frozenset({"FROM", "JOIN", "INTO", "UPDATE", "TABLE", "TRUNCATE"})
"""Words behind which a table's name stands in statements of any kind."""
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
    UNREAD = auto()
    """The account may not read the body: it may do anything."""


class Deed(NamedTuple):
    """An act of a body."""

    table: TableKey
    """In lower case. For ``UNREAD`` the routine or view."""
    act: Act
    is_certain: bool
    """It is neither in a branch nor in a loop."""


class Body(NamedTuple):
    """The text of a routine, view or trigger."""

    since: int
    """The seqno of the statement that defines it; 0 for what is there before the window."""
    database: str
    """Of names without one."""
    tokens: Sequence[Token] | None
    """None: the account may not read it."""
    calls_bare: bool = False
    """Procedures may be called without CALL and parentheses (``sql_mode`` ORACLE)."""


def defined(tokens: Sequence[Token]) -> str:
    """FUNCTION, TRIGGER and so on, of a statement that makes such an object, or gives a view another query; "" for any
    other statement."""
    found = next((token.upper for token in tokens if token.upper in _OBJECTS), "")
    verb = tokens[0].upper if tokens else ""
    return found if verb == "CREATE" or (verb, found) == ("ALTER", "VIEW") else ""


def tokens_of(
    text: str | None, flavor: Flavor, sql_mode: str = "", *, has_numbers: bool = False
) -> Sequence[Token] | None:
    """The tokens of a body; None if nobody can read them. ``sql_mode``: of who made it. ``has_numbers``: with the text
    of all numbers."""
    if text is None:
        return None
    found, places = list[Token](), list[tuple[int, int]]()
    try:
        lex(text, dialect_in(sql_mode, flavor), found, places if has_numbers else None)
    except Unreadable:
        return None
    return with_numbers(text, found, places) if has_numbers else found


@dataclass(slots=True)
class Bodies:
    """Routines, views and triggers by name, in lower case, with all their definitions in order."""

    routines: dict[TableKey, list[Body]] = field(default_factory=dict)
    triggers: dict[TableKey, list[Body]] = field(default_factory=dict)
    """By table."""
    views: dict[TableKey, list[Body]] = field(default_factory=dict)
    _tables: set[str] = field(default_factory=set)
    """Names of the temporary tables."""

    def add_routine(self, database: str, name: str, body: Body) -> None:
        """A definition, behind those that are there."""
        self._add(self.routines, database, name, body)

    def add_trigger(self, database: str, table: str, body: Body) -> None:
        """A definition of a trigger of a table."""
        self._add(self.triggers, database, table, body)

    def add_view(self, database: str, name: str, body: Body) -> None:
        """A query of a view."""
        self._add(self.views, database, name, body)

    def _add(self, kind: dict[TableKey, list[Body]], database: str, name: str, body: Body) -> None:
        kind.setdefault(_key(database, name, is_routine=kind is self.routines), []).append(body)
        found = _made_or_dropped(body.tokens or (), body.database)
        self._tables.update(table.table for _, _, tables, _ in found for table in tables)

    def add_statement(self, tokens: Sequence[Token], database: str, seqno: int, *, calls_bare: bool = False) -> None:
        """The routine, view or trigger that a logged statement defines, if it defines one. ``calls_bare``: as that of
        a ``Body``."""
        words, kind = [token.upper for token in tokens], defined(tokens)
        if kind not in (*_DEFINED, "TRIGGER", "VIEW"):
            return
        at = words.index(kind) + 1
        while at < len(words) and words[at] in _CONDITION:
            at += 1
        owner, name, at = _named(tokens, at, database)
        body = Body(seqno, owner, tokens[at:], calls_bare)
        if kind in _DEFINED:
            self.add_routine(owner, name, body)
        elif kind == "VIEW":
            self.add_view(owner, name, body._replace(database=database))
        elif "ON" in words[at:]:
            _, table, _ = _named(tokens, words.index("ON", at) + 1, owner)
            self.add_trigger(owner, table, body)

    @property
    def concerned(self) -> frozenset[str]:
        """The names of routines and views that make, use or drop temporary tables, themselves or by others, or may do
        so, and of tables with such triggers."""
        return frozenset(key.table for key, body in self._every() if any(True for _ in self._all_deeds(key, body)))

    @property
    def leaving(self) -> frozenset[TableKey]:
        """The temporary tables that a body leaves, or may leave, of those that are there before the window."""
        found = set[TableKey]()
        for key, body in self._every():
            deeds = list(self._all_deeds(key, body)) if body.since == 0 else []
            tables = {deed.table for deed in deeds if deed.act in (Act.MAKES, Act.MAKES_IF_MISSING)}
            found.update(table for table in tables if _leaves([deed for deed in deeds if deed.table == table]))
        return frozenset(found)

    def _every(self) -> Iterator[tuple[TableKey, Body]]:
        for kind in (self.routines, self.triggers, self.views):
            for key, bodies in kind.items():
                yield from ((key, body) for body in bodies)

    def _all_deeds(self, key: TableKey, body: Body) -> Iterator[Deed]:
        return self._deeds(key, body, None, {key})

    @property
    def temporary(self) -> frozenset[str]:
        """The names of the temporary tables."""
        return frozenset(self._tables)

    def own(self, tokens: Sequence[Token], database: str) -> Iterator[Deed]:
        """The deeds of a statement itself, not of its routines and triggers."""
        for _, act, tables, _ in _made_or_dropped(tokens, database):
            yield from (Deed(table, act, True) for table in tables)
        places = self._places(tokens, database)
        for at in range(len(tokens)):
            yield from self._used(tokens, at, database, places)

    def behind(self, tokens: Sequence[Token], database: str, seqno: int) -> Iterator[Deed]:
        """The deeds of the routines and triggers of a statement, without those of the statement itself."""
        yield from self._called(tokens, database, seqno, set())

    def _deeds(self, name: TableKey, body: Body, seqno: int | None, seen: set[TableKey]) -> Iterator[Deed]:
        """In the order of the text."""
        if body.tokens is None:
            yield Deed(name, Act.UNREAD, False)
            return
        tokens, database = body.tokens, body.database
        found, made = list[tuple[int, list[Deed]]](), dict[int, list[Deed]]()
        branches, handlers = _branches(tokens), _handlers(tokens)
        for at, act, tables, _ in _made_or_dropped(tokens, database):
            made[at] = [Deed(table, act, True) for table in tables]
        places = self._places(tokens, database)
        for at in range(len(tokens)):
            deeds = (
                made.get(at)
                or self._used(tokens, at, database, places)
                or self._at(tokens, at, database, seqno, seen, places, calls_bare=body.calls_bare)
            )
            if deeds and not any(at in each for each in handlers):
                found.append((at, deeds))
        # the table may be missing then
        is_lenient = any(tokens[each.start - 1].upper == "CONTINUE" for each in handlers)
        for at, deeds in found:
            for each in deeds:
                act = Act.DROPS_IF_THERE if is_lenient and each.act is Act.DROPS else each.act
                yield Deed(each.table, act, each.is_certain and at not in branches)

    def _called(self, tokens: Sequence[Token], database: str, seqno: int, seen: set[TableKey]) -> Iterator[Deed]:
        places = self._places(tokens, database)
        for at in range(len(tokens)):
            yield from self._at(tokens, at, database, seqno, seen, places)

    def _places(self, tokens: Sequence[Token], database: str) -> _Places:
        """Where the names of tables stand that are temporary or have triggers."""
        names = self._tables | {key.table for key in self.triggers}
        if not any(token.kind in _NAMES and lower(token.text) in names for token in tokens):
            return _NO_PLACES
        return _places_of(tokens, database)

    def _used(self, tokens: Sequence[Token], at: int, database: str, places: _Places) -> list[Deed]:
        is_behind = at > 0 and tokens[at - 1].upper in _NAMED_BEHIND
        if tokens[at].kind not in _NAMES or not (is_behind or at in places.read or at in places.written):
            return []
        owner, name, behind = _named(tokens, at, database)
        if lower(name) not in self._tables:
            return []
        is_whole = behind >= len(tokens) or tokens[behind].text == ";" or tokens[behind].upper == "END"
        empties = at > 1 and tokens[at - 2].upper == "DELETE" and is_whole
        return [Deed(_key(owner, name), Act.EMPTIES if empties else Act.USES, True)]

    def _at(
        self,
        tokens: Sequence[Token],
        at: int,
        database: str,
        seqno: int | None,
        seen: set[TableKey],
        places: _Places,
        *,
        calls_bare: bool = False,
    ) -> list[Deed]:
        """The deeds of the routine that is called at a token, or of the view that is named, or of the triggers of the
        table that is written there."""
        if tokens[at].kind not in _NAMES or (at > 0 and tokens[at - 1].text == "."):
            return []
        owner, name, behind = _named(tokens, at, database)
        key, before = _key(owner, name), tokens[at - 1].upper if at else ""
        if key in seen:
            return []
        called = list[Body]()
        if before == "CALL" or _is(tokens, behind, "(") or (calls_bare and _is(tokens, behind, ";")):
            called = self.routines.get(_key(owner, name, is_routine=True), [])
        called = called or self.views.get(key, [])
        bodies = [each for each in called if seqno is None or each.since <= seqno][-1:]
        deeds = [deed for body in bodies for deed in self._deeds(key, body, seqno, {*seen, key})]
        if (is_alone := places.written.get(at, before == "INTO" or None)) is not None:
            for body in (each for each in self.triggers.get(key, []) if seqno is None or each.since <= seqno):
                fired = self._deeds(key, body, seqno, {*seen, key})
                # of several tables of an UPDATE or DELETE, some are read alone
                deeds += (each._replace(is_certain=each.is_certain and is_alone) for each in fired)
        return deeds


class _Places(NamedTuple):
    """Where names of tables begin among the tokens of a text."""

    read: frozenset[int]
    written: Mapping[int, bool]
    """Of an INSERT, UPDATE or DELETE; False for one of several tables, of which some may be read alone."""


_NO_PLACES: Final = _Places(frozenset(), {})


def _places_of(tokens: Sequence[Token], database: str) -> _Places:
    # few windows need them
    from binlane.sql.parse.query_blocks import blocks
    from binlane.sql.parse.row_order import inserted_in

    ends = {id(token): at for at, token in enumerate(tokens)}
    read, written = set[int](), dict[int, bool]()
    for block in blocks(tokens, database):
        found = [ends[id(each.name)] for each in block.sources if each.name is not None and id(each.name) in ends]
        begins = (at - 2 if at > 1 and _is(tokens, at - 1, ".") else at for at in found)
        if block.verb == "SELECT":
            read.update(begins)
        else:
            written.update(dict.fromkeys(begins, len(block.sources) == 1))
    for each in inserted_in(tokens, database):
        at = each.behind - 1
        written[at - 2 if _is(tokens, at - 1, ".") else at] = True
    return _Places(frozenset(read), written)


def _is(tokens: Sequence[Token], at: int, text: str) -> bool:
    return at < len(tokens) and tokens[at].text == text and tokens[at].kind is TokenKind.SYMBOL


def _key(database: str, name: str, *, is_routine: bool = False) -> TableKey:
    fold = folded_name if is_routine else lower
    return TableKey(fold(database), fold(name))


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
    """The call that has left the table; None for none of this window, but perhaps of an earlier one."""
    fails: bool
    """It needs the table, which another connection of the target does not have; otherwise it may find another one."""


def doubts(
    calls: Iterable[Call[_Place]],
    is_permanent: Callable[[TableKey], bool],
    leaving: Collection[TableKey] = (),
) -> Iterator[Doubt[_Place]]:
    """The calls, in the log's order, whose temporary tables depend on what an earlier call has left.

    ``is_permanent``: whether a table of that name may exist that is not temporary. ``leaving``: tables that a call of
    an earlier window may have left; no log tells whether it has.
    """
    known = _SessionTables[_Place](is_permanent, leaving)
    for call in calls:
        for deed in call.own:
            yield from known.own(call, deed)
        for table in dict.fromkeys(deed.table for deed in call.behind):
            yield from known.behind(call, table, [deed for deed in call.behind if deed.table == table])


_Temporary: TypeAlias = tuple[int | None, TableKey]
"""A session, and the name of one of its tables."""


@dataclass(slots=True)
class _SessionTables(Generic[_Place]):
    """What the calls so far tell of the temporary tables of their sessions."""

    is_permanent: Callable[[TableKey], bool]
    leaving: Collection[TableKey]
    left: dict[_Temporary, Call[_Place]] = field(default_factory=dict)
    """By calls."""
    followed: set[_Temporary] = field(default_factory=set)
    """Made by statements: the plan keeps these together."""
    gone: set[_Temporary] = field(default_factory=set)
    """Surely not there."""

    def own(self, call: Call[_Place], deed: Deed) -> Iterator[Doubt[_Place]]:
        """A deed of the statement itself."""
        key = call.session, deed.table
        if deed.act in (Act.USES, Act.EMPTIES):
            before = self.left.get(key)
            # one that is temporary alone has been refused by the plan
            if (before is not None or self._may_be_older(key)) and self.is_permanent(deed.table):
                yield Doubt(call.place, deed.table, None if before is None else before.place, False)
            return
        self.left.pop(key, None)
        if deed.act in (Act.MAKES, Act.MAKES_IF_MISSING):
            self.followed.add(key)
        else:
            self.followed.discard(key)
            self.gone.add(key)

    def behind(self, call: Call[_Place], table: TableKey, deeds: Sequence[Deed]) -> Iterator[Doubt[_Place]]:
        """The deeds of its routines and triggers on one table."""
        key = call.session, table
        if key in self.followed:
            return
        before = self.left.get(key)
        is_there = before is not None and before.together == call.together
        fails = _fails(deeds, is_left=before is not None, is_there=is_there, is_permanent=self.is_permanent)
        depends = before is not None or self._may_be_older(key)
        if fails or (depends and _may_differ(deeds, is_there=is_there)):
            yield Doubt(call.place, table, None if before is None else before.place, fails)
        last = _last_change(deeds)
        if _leaves(deeds):
            self.left[key] = call
        elif last is not None and last.act in (Act.DROPS, Act.DROPS_IF_THERE):
            self.left.pop(key, None)
            if last.is_certain:
                self.gone.add(key)

    def _may_be_older(self, key: _Temporary) -> bool:
        return key[1] in self.leaving and not (key in self.left or key in self.followed or key in self.gone)


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
    last = _last_change(deeds)
    if last is None or not any(deed.act in (Act.MAKES, Act.MAKES_IF_MISSING) for deed in deeds):
        return False
    changes = [each for each in deeds if each.act not in (Act.USES, Act.EMPTIES)]
    return last.act in (Act.MAKES, Act.MAKES_IF_MISSING) or not all(each.is_certain for each in changes)


def _last_change(deeds: Sequence[Deed]) -> Deed | None:
    return next((each for each in reversed(deeds) if each.act not in (Act.USES, Act.EMPTIES)), None)
