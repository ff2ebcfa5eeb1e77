"""Parts of routines, views and triggers behind the statements of a window, each with the statements that reach it."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

from binlane.model import ItemKind, SessionContext, TableKey
from binlane.precheck.situation.situation import Situation, programs_made_by
from binlane.precheck.statements.window_statements import ReachingStatement, reaching_statements
from binlane.schema.programs import PARAMETERS, SECURITY, Program
from binlane.sql.charset import dialect_in
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.lexer import Token
from binlane.sql.programs.changes import object_at
from binlane.sql.programs.comparison import Difference, as_difference
from binlane.sql.programs.reach import EVENTS, Reach, folded
from binlane.work.logged_statements import LaneStatement

_INVOKER: Final = "INVOKER"
_BEFORE: Final = "BEFORE"
_FULL_GROUP_BY: Final = "ONLY_FULL_GROUP_BY"
_FULL_GROUP_BY_BIT: Final = 1 << 5
"""Its bit in ``sql_mode``, on both families."""
_EVERY_EVENT: Final = frozenset(EVENTS)
_WORD: Final = re.compile(r"\w+")
_CONDITION: Final = ("IF", "NOT", "EXISTS")


class BodyPart(NamedTuple):
    """What stands against a body."""

    what: str
    needs_rows: bool
    """It matters only for statements that take many rows in an order of the server's own."""
    reads: frozenset[TableKey] | None = None
    """It matters only for statements that change one of these tables."""
    numbers: bool = False
    """It matters only for statements that take a number of an AUTO_INCREMENT."""
    among: TableKey | None = None
    """It matters only for statements that may go on where two of their rows have one key of this table."""
    by_own_mode: bool = False
    """It matters only for statements without ONLY_FULL_GROUP_BY in their ``sql_mode``."""


class Body(NamedTuple):
    """A text behind a name."""

    difference: Difference
    database: str
    tokens: Sequence[Token]
    """With the texts of numbers."""
    by_definer: bool
    """It runs with its definer's privileges."""
    events: frozenset[str] = frozenset()
    """Of a trigger: INSERT, UPDATE, DELETE. MariaDB's may have several since 12.0."""
    is_unread: bool = False
    """It cannot be split into tokens, of which it has none."""
    name: str = ""
    """Of a trigger, or of what is called, without its database."""
    is_before: bool = False
    """It is a trigger that runs before the row is there."""
    full_group_by: bool | None = None
    """Whether its ``sql_mode`` has ONLY_FULL_GROUP_BY; None for a view, which has that of the statement."""
    parameters: Sequence[Token] = ()
    """Of a routine whose text is the body alone, with the texts of numbers: ``IN x int, IN y int``."""
    oracle: bool = False
    """It is of MariaDB's sql_mode ORACLE."""


Find: TypeAlias = Callable[[Body], Iterator[BodyPart]]
_Found = TypeVar("_Found")


def reaching(
    situation: Situation, find: Find, *, by_definitions: bool = False, every: Sequence[Body] | None = None
) -> Iterator[tuple[LoggedText | None, LaneStatement, str, BodyPart]]:
    """Each statement that reaches a body in which ``find`` finds parts: its text, and the body's name.

    ``by_definitions``: also definitions of views, for which a MariaDB server calls their functions. ``every``: all
    bodies, if they are known already.
    """
    found = [(body, part) for body in (bodies(situation) if every is None else every) for part in find(body)]
    of_bodies = [body for body, _ in found]
    for text, logged, places in running_statements(situation, of_bodies, by_definitions=by_definitions):
        for at in places:
            body, part = found[at]
            yield text, logged, body.difference.where, part


def running_statements(
    situation: Situation, every: Sequence[Body], *, by_definitions: bool = False
) -> Iterator[tuple[LoggedText | None, LaneStatement, Sequence[int]]]:
    """Each statement that may run some of the bodies, with the places of these in the sequence."""
    if not every:
        return
    reach = situation.reach
    runs = running(reach)
    places = dict[TableKey, list[int]]()
    for at, body in enumerate(every):
        places.setdefault(body.difference.key, []).append(at)
    wanted = [body.difference for body in every]
    for statement in reaching_statements(situation, reach, wanted, by_definitions=by_definitions):
        text, logged = statement.text, statement.logged
        if logged.item.kind is ItemKind.DDL and text is not None and not runs_bodies(text):
            continue
        # not all bodies of all databases for each statement
        named = sorted({at for key in statement.reached for at in places.get(key, ())})
        if found := [at for at in named if runs(statement, every[at])]:
            yield text, logged, found


def once_for_each(find: Callable[[Body], _Found]) -> Callable[[Body], _Found]:
    """The same function, which looks at each body once."""
    # with the body, whose number no other one gets so
    known = dict[int, tuple[Body, _Found]]()

    def found(body: Body) -> _Found:
        if id(body) not in known:
            known[id(body)] = body, find(body)
        return known[id(body)][1]

    return found


def may_have_behind(situation: Situation, *words: str) -> bool:
    """Whether the text of a routine, view or trigger has one of these words, in capitals: to split all of them takes
    much longer. Raises SourceError."""
    called = situation.stored_programs if situation.may_reach_programs else ()
    stored = (each for side in (*situation.stored_triggers, *called) for each in side)
    texts = itertools.chain((each.text or "" for each in stored), (each.sql for each in situation.every_text))
    return any(word in text for text in map(str.upper, texts) for word in words)


def runs_bodies(text: LoggedText) -> bool:
    """Whether a statement that commits by itself has a query that runs bodies, or one that a view is made of."""
    return text.facts.create_select or bool(text.facts.views) or text.facts.kind not in _WITHOUT_ROWS


_WITHOUT_ROWS: Final = (StatementKind.DDL, StatementKind.GLOBAL)


def running(reach: Reach) -> Callable[[ReachingStatement, Body], bool]:
    """Whether a statement may run a body: one that it reaches, and of a trigger one that its own verb fires, or a text
    or a foreign key behind it."""
    fires_behind = functools.cache(reach.fires)

    def runs(statement: ReachingStatement, body: Body) -> bool:
        key, text = body.difference.key, statement.text
        if key not in statement.reached:
            return False
        if not body.events or text is None:
            return True
        fires = any(not EVENTS[event].isdisjoint(text.words) for event in body.events)
        return fires or fires_behind(folded(key), body.events, statement.names)

    return runs


def bodies(situation: Situation) -> Iterator[Body]:
    """Of both servers, as far as the window may reach them, and of the window itself; each text once."""
    # few windows need it
    from binlane.sql.temporary_routines import tokens_of

    flavor, seen = situation.plan.flavor, set[tuple[object, ...]]()
    called = situation.stored_programs if situation.may_reach_programs else ()
    for side in (*situation.stored_triggers, *called):
        for each in side:
            marks = (each.key, each.kind, each.name, each.text, each.sql_mode)
            if each.text is None or marks in seen:
                continue
            seen.add(marks)
            tokens = tokens_of(each.text, flavor, each.sql_mode, has_numbers=True)
            parameters = tokens_of(each.facts.get(PARAMETERS), flavor, has_numbers=True)
            difference, by_definer = as_difference(each), _runs_as_definer(each)
            is_before = _BEFORE in each.time.upper()
            is_full = None if each.kind == "view" else _FULL_GROUP_BY in each.sql_mode.upper().split(",")
            yield Body(
                difference,
                each.key.database,
                tokens or (),
                by_definer,
                events_of(each),
                tokens is None,
                each.name,
                is_before,
                is_full,
                parameters or (),
                dialect_in(each.sql_mode, flavor).oracle,
            )
    for text in situation.every_text:
        for key, database in programs_made_by(text):
            is_trigger = key in text.facts.triggered
            name, is_before, events = _made_trigger(text) if is_trigger else ("", False, frozenset[str]())
            difference = Difference(key, text.where, "", "", is_trigger=is_trigger)
            by_definer = _INVOKER not in text.words
            yield Body(
                difference,
                database,
                text.tokens_with_numbers,
                by_definer,
                events,
                name=name,
                is_before=is_before,
                full_group_by=None if key in text.facts.views else has_full_group_by(text.context),
                oracle=text.dialect.oracle,
            )


def has_full_group_by(context: SessionContext) -> bool:
    """Whether a session's ``sql_mode`` takes no columns beside a GROUP BY."""
    return bool((context.sql_mode or 0) & _FULL_GROUP_BY_BIT)


def _made_trigger(text: LoggedText) -> tuple[str, bool, frozenset[str]]:
    """Of the trigger that a statement makes: its name, without its database, whether it runs before the row is there,
    and its events. Words in front of these may be names."""
    tokens, words = text.tokens, text.words
    at = (object_at(tokens) or 0) + 1
    if words[at : at + 3] == _CONDITION:
        at += 3
    if len(tokens) > at + 2 and is_symbol(tokens[at + 1], "."):
        at += 2
    events = words[at + 2 : words.index("ON", at + 2)] if "ON" in words[at + 2 :] else ()
    return tokens[at].text, words[at + 1 : at + 2] == (_BEFORE,), _EVERY_EVENT.intersection(events) or _EVERY_EVENT


def _runs_as_definer(program: Program) -> bool:
    return program.kind == "trigger" or program.facts.get(SECURITY) != _INVOKER


def events_of(program: Program) -> frozenset[str]:
    """The events of a trigger; none of anything else. One with an event that is not known has all."""
    if program.kind != "trigger":
        return frozenset()
    events = frozenset(_WORD.findall(program.time.upper())[1:])
    return events if events and events <= _EVERY_EVENT else _EVERY_EVENT
