"""What statements reach: routines, views and tables with triggers, by their texts and those behind them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from itertools import chain
from typing import Final, NamedTuple

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.letter_case import lower
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.program_names import folded_name

_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_CALL: Final = "()"
_DUALITY: Final = f"json_duality_object{_CALL}"
"""What is called in a view of MySQL 9 that makes an INSERT or a DELETE of an UPDATE."""
_QUOTES: Final = frozenset('`"')
_ACCOUNT: Final = frozenset(
    {"CURRENT_USER", "CURRENT_ROLE", "INFORMATION_SCHEMA", "LOAD_FILE", "ROLES_GRAPHML", "HANDLER"}
)
"""Words of texts whose result depends on the account that runs them, without an error: its name and roles, what it sees
of other objects, NULL instead of a file, and errors for lack of a privilege that a handler takes."""

EVENTS: Final = {
    "INSERT": frozenset({"INSERT", "REPLACE", "LOAD", "PORTION"}),
    "UPDATE": frozenset({"UPDATE"}),
    "DELETE": frozenset({"DELETE", "REPLACE"}),
}
"""Words of statements that fire a table's triggers themselves, by the triggers' events. What is left of a row by
MariaDB's FOR PORTION OF is inserted."""
_DYNAMIC: Final = frozenset({"PREPARE", "EXECUTE"})
"""Words of texts that may run any other one."""


class Text(NamedTuple):
    """The text behind a name."""

    name: TableKey
    """Of a table with a trigger, a view, or a routine as ``routine_key`` writes it."""
    database: str
    """Of names without one."""
    tokens: Sequence[Token] | None
    """None if nobody can read them."""
    calls_bare: bool
    """Routines may be called without CALL and parentheses (``sql_mode`` ORACLE)."""


@dataclass(slots=True)
class Reach:
    """What statements reach.

    Names are compared as those of routines (``program_names``), and in lower case, and each that may mean an object
    does: at worst one too many is found.
    """

    behind: Mapping[TableKey, Collection[TableKey]]
    """By name: the names in the texts behind it."""
    unread: frozenset[TableKey] = frozenset()
    """Names of which the account may not read a text: they may reach everything."""
    cascades: Mapping[TableKey, frozenset[TableKey]] = field(default_factory=dict)
    """Children whose triggers fire with changes of their parents."""
    called: frozenset[TableKey] = frozenset()
    """Routines and views."""
    by_account: frozenset[TableKey] = frozenset()
    """Names with a text whose result may depend on the account that runs it."""
    executed: Mapping[TableKey, frozenset[TableKey]] = field(default_factory=dict)
    """By name: those of ``behind`` that texts name which are executed; of a trigger without its own table, which no
    trigger may write."""
    meant: Mapping[TableKey, frozenset[TableKey]] = field(default_factory=dict)
    """By name: those of ``behind`` that a statement means itself: the names in a view's query, and the other name of
    what the window renames."""
    events: Mapping[TableKey, frozenset[str]] = field(default_factory=dict)
    """By name: the events of triggers that its texts may fire by their own words, a subset of ``EVENTS``."""
    _meaning: dict[TableKey, frozenset[TableKey]] = field(default_factory=dict, compare=False, repr=False)
    """The names by which a text may write a table: its own, and those that mean it."""
    _meant_by: Mapping[TableKey, Collection[TableKey]] | None = field(default=None, compare=False, repr=False)
    """The names of ``meant`` by each name that they mean, as soon as somebody has asked for them."""

    def of(self, names: Iterable[TableKey]) -> frozenset[TableKey]:
        """All objects that a statement with these names may reach."""
        found, left = set[TableKey](), set(names)
        while left:
            key = left.pop()
            if key in found:
                continue
            found.add(key)
            left |= self.cascades.get(key, frozenset())
            left.update(self.behind.get(key, ()))
        return frozenset(found)

    def reached(self, names: Iterable[TableKey], wanted: Collection[TableKey]) -> Collection[TableKey]:
        """Those of ``wanted`` that a statement with these names may reach: all, if behind one is what nobody can
        read."""
        found = self.of(names)
        return wanted if not self.unread.isdisjoint(found) else found.intersection(wanted)

    def next_to(self, name: TableKey) -> frozenset[TableKey]:
        """The names in the text behind a name, and children whose triggers fire with its rows."""
        return frozenset(chain(self.behind.get(name, ()), self.cascades.get(name, ())))

    def fires(self, wanted: TableKey, events: Set[str], names: Iterable[TableKey]) -> bool:
        """Whether what is behind these names of a statement may fire a trigger of a table: a text that names it, itself
        or by views, and writes as an event of the trigger does, or a foreign key."""
        if wanted not in self._meaning:
            self._meant_by = _inverse(self.meant) if self._meant_by is None else self._meant_by
            self._meaning[wanted] = _closure(self._meant_by, (wanted,))
        meaning = self._meaning[wanted]
        found, left = set[TableKey](), set(names)
        while left:
            key = left.pop()
            if key in found:
                continue
            found.add(key)
            meant, children = self.meant.get(key, frozenset()), self.cascades.get(key, frozenset())
            executed = self.executed.get(key, frozenset())
            written = self.events.get(key, frozenset())
            if not meaning.isdisjoint(children if written.isdisjoint(events) else executed | children):
                return True
            # of tables that are only read no trigger fires
            left |= meant | children | (executed if written else executed & self.called)
        return not self.unread.isdisjoint(found)

    def leading_to(self, wanted: Collection[TableKey]) -> frozenset[TableKey]:
        """The objects behind which one of ``wanted`` is, with these: whoever names none of them reaches none."""
        before = _inverse(self.behind)
        for parent, children in self.cascades.items():
            for child in children:
                before[child].add(parent)
        return _closure(before, (*wanted, *self.unread))

    def asks_for_account(self, name: TableKey) -> bool:
        """Whether the account that runs a program may decide what it, or one behind it, does."""
        found = self.of((name,))
        return not (self.by_account.isdisjoint(found) and self.unread.isdisjoint(found))


def reach_of(
    triggers: Iterable[Text],
    called: Iterable[Text],
    cascades: Iterable[tuple[TableKey, TableKey]] = (),
    renames: Iterable[tuple[TableKey, TableKey]] = (),
) -> Reach:
    """``triggers``: by their tables; ``called``: routines and views; all of both servers and of the window.
    ``cascades``: child and parent of foreign keys whose children's triggers fire. ``renames``: names of tables and
    views of the window, each of which may mean what the other does: a catalogue has one of them."""
    called = tuple(called)
    executed: dict[TableKey, set[TableKey]] = defaultdict(set)
    meant: dict[TableKey, set[TableKey]] = defaultdict(set)
    events: dict[TableKey, set[str]] = defaultdict(set)
    unread, by_account = set[TableKey](), set[TableKey]()
    every = chain(((text, False) for text in triggers), ((text, not is_routine(text.name)) for text in called))
    for text, is_view in every:
        name = folded(text.name)
        if text.tokens is None:
            unread.add(name)
            continue
        named = frozenset(names_in(text.tokens, text.database, calls_bare=text.calls_bare))
        is_plain = is_view and all(key.table != _DUALITY for key in named)
        if not (is_view or is_routine(text.name) or _names_another(text)):
            named -= {name}
        (meant if is_plain else executed)[name].update(named)
        if not is_plain:
            events[name].update(EVENTS if is_view else _events_in(text.tokens))
        if not _ACCOUNT.isdisjoint(token.text.upper() for token in text.tokens if token.kind in _NAMES):
            by_account.add(name)
    children: dict[TableKey, set[TableKey]] = defaultdict(set)
    for child, parent in cascades:
        children[folded(parent)].add(folded(child))
    unread -= meant.keys() | executed.keys()
    names = {folded(text.name) for text in called}
    pairs = [(folded(one), folded(other)) for pair in renames for one, other in (pair, pair[::-1])]
    for one, other in pairs:
        meant[one].add(other)
    while more := {other for one, other in pairs if one in names} - names:
        names |= more
    return Reach(
        {key: executed.get(key, set()) | meant.get(key, set()) for key in (*executed, *meant)},
        frozenset(unread),
        {key: frozenset(each) for key, each in children.items()},
        frozenset(names),
        frozenset(by_account),
        {key: frozenset(each) for key, each in executed.items()},
        {key: frozenset(each) for key, each in meant.items()},
        {key: frozenset(each) for key, each in events.items()},
    )


def _names_another(trigger: Text) -> bool:
    """Whether a trigger's text may name another table that is the same folded: ``T``, or one with an accent."""
    own = trigger.name.table
    texts = (token.text for token in trigger.tokens or () if token.kind in _NAMES)
    return any(text != own and folded(TableKey("", text)) == folded(TableKey("", own)) for text in texts)


def _events_in(tokens: Sequence[Token]) -> Iterable[str]:
    words = {token.upper for token in tokens}
    return EVENTS if words & _DYNAMIC else [event for event, ours in EVENTS.items() if words & ours]


def _inverse(edges: Mapping[TableKey, Collection[TableKey]]) -> dict[TableKey, set[TableKey]]:
    found: dict[TableKey, set[TableKey]] = defaultdict(set)
    for key, names in edges.items():
        for name in names:
            found[name].add(key)
    return found


def _closure(edges: Mapping[TableKey, Collection[TableKey]], names: Iterable[TableKey]) -> frozenset[TableKey]:
    """The names, and all to which edges lead from them."""
    found, left = set[TableKey](), set(names)
    while left:
        key = left.pop()
        if key not in found:
            found.add(key)
            left.update(edges.get(key, ()))
    return frozenset(found)


def names_in(tokens: Sequence[Token], database: str, *, calls_bare: bool = False) -> Iterator[TableKey]:
    """Each name of a text that may be a table's, a view's or, where it is called, a routine's, with its database."""
    for at, token in enumerate(tokens):
        if token.kind not in _NAMES or (at > 0 and _is(tokens, at - 1, ".")):
            continue
        chain = [token.text]
        behind = at + 1
        while behind + 1 < len(tokens) and _is(tokens, behind, ".") and len(chain) < 3:
            chain.append(tokens[behind + 1].text)
            behind += 2
        yield _key(database, chain[0])
        if len(chain) > 1:
            yield _key(chain[0], chain[1])
        if calls_bare or _is(tokens, behind, "(") or (at > 0 and tokens[at - 1].upper == "CALL"):
            # of a package the first name, or the first two, are its own
            yield routine_key(database, chain[0])
            if len(chain) > 1:
                yield routine_key(chain[0], chain[1])


def routine_key(database: str, name: str) -> TableKey:
    """A routine, as it is told from a table or a column of that name."""
    return _key(database, f"{name}{_CALL}")


def is_routine(key: TableKey) -> bool:
    """Whether the key is one of ``routine_key``."""
    return key.table.endswith(_CALL)


def plain_name(key: TableKey) -> str:
    """The name of an object without its database, as statements spell it."""
    return key.table.removesuffix(_CALL)


def naming(names: Iterable[str]) -> re.Pattern[bytes]:
    """Finds texts that may have one of the names, in whatever character set and quotes; a routine's also with other
    letters than ASCII."""
    wanted = sorted(set(names))
    plain = [re.escape(name.encode()) for name in wanted if name.isascii() and not _QUOTES.intersection(name)]
    quoted = [rb"[`\x22]{2}"] if len(plain) < len(wanted) else []
    return re.compile(b"|".join([*plain, *quoted, rb"[\x80-\xff]"] if wanted else [rb"(?!)"]), re.I)


def _is(tokens: Sequence[Token], at: int, text: str) -> bool:
    return at < len(tokens) and tokens[at].text == text and tokens[at].kind is TokenKind.SYMBOL


def folded(key: TableKey) -> TableKey:
    """The name as those of routines are compared, and those of tables where letter case does not count."""
    return _key(key.database, key.table)


def _key(database: str, name: str) -> TableKey:
    return TableKey(*(folded_name(lower(each)) for each in (database, name)))
