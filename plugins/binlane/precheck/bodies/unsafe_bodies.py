"""Routines, views, triggers and column defaults behind a window's statements that give other values on another server.

The source warns of a statement that reaches one (1592), and logs rows for it in MIXED format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from binlane.model import Flavor, TableKey
from binlane.precheck.bodies.body_parts import Body, BodyPart, reaching
from binlane.precheck.bodies.row_order import takes_rows
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.model import Table
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.other_answers import other_answer
from binlane.sql.parse.row_order import inserted_in
from binlane.sql.parse.unsafe import (
    fills_by_default,
    limits_examined,
    of_server,
    unlogged_variable,
    unordered_limit,
)
from binlane.sql.programs.of_server import never_in_lane, value_of_server
from binlane.work.logged_statements import LaneStatement

_MOST_FINDINGS: Final = 20
_EXPECTED: Final = "what every server answers alike"
_TODO: Final = (
    "the target would write other values than the source did: log such statements as rows (binlog_format=ROW), or "
    "set allow_unsafe in the channel's file, and copy the tables that they change again behind the window (`binlane "
    "recopy CHANNEL --table ...`)"
)
_EXPECTED_IN_LANES: Final = "nothing that changes the server, or gives up what the session of a lane holds"
_TODO_IN_LANES: Final = (
    "the lane runs it in its own session, also with allow_unsafe: take it out of the body on both servers (make a text "
    "of the character sets armscii8, sjis, swe7 and ujis anew behind SET NAMES utf8mb4), or log such "
    "statements as rows (binlog_format=ROW), or skip the transaction (docs/control.md) and make its changes on the "
    "target by hand"
)
_UNREAD: Final = "a text that cannot be split into words"
_CALLING: Final = frozenset("(@")
"""What a default has that is no literal: a call, or a variable."""
_LITERAL: Final = re.compile(r"'(?:[^']|'')*'", re.DOTALL)
_FILLING: Final = re.compile(rb"\b(?:INSERT|REPLACE|LOAD|DEFAULT)\b", re.IGNORECASE)


def check_unsafe_bodies(situation: Situation) -> Iterator[Finding]:
    """Routines, views, triggers and column defaults behind the window's statements whose result differs from server to
    server; also with ``allow_unsafe``, those that would change the server or end what a lane's session holds."""
    needs = situation.needs
    runs = needs.statements or needs.loads
    makes_views = (
        needs.ddl
        and situation.target.flavor is Flavor.MARIADB
        and any(text.facts.views for text in situation.every_text)
    )
    if not (runs or makes_views):
        return
    is_allowed = situation.channel.apply.allow_unsafe or not runs
    defaults = () if is_allowed else _defaults(situation)
    yield from islice((*_bodies(situation, is_allowed=is_allowed), *defaults), _MOST_FINDINGS)


def _bodies(situation: Situation, *, is_allowed: bool) -> Iterator[Finding]:
    flavor, seen, never = situation.plan.flavor, set[str](), set[str]()
    # what a LIMIT leaves out is settled by the tables' keys where the order of rows is looked at
    limit_of = limits_examined if takes_rows(situation) else unordered_limit

    def find(body: Body) -> Iterator[BodyPart]:
        if (what := _UNREAD if body.is_unread else never_in_lane(body.tokens)) is not None:
            never.add(what)
            yield BodyPart(what, needs_rows=False)
            return
        if is_allowed:
            return
        what = value_of_server(body.tokens, flavor, by_definer=body.by_definer, oracle=body.oracle)
        what = what or limit_of(body.tokens)
        if what is None and situation.target.flavor is not flavor:
            what = other_answer(body.tokens)
        if what is not None:
            yield BodyPart(what, needs_rows=False)
        for each in _defaults_behind(situation, body):
            yield BodyPart(each, needs_rows=False)

    opens_views = situation.target.flavor is Flavor.MARIADB
    for _, logged, program, part in reaching(situation, find, by_definitions=opens_views):
        if program not in seen:
            seen.add(program)
            found = _finding(logged, f"{part.what} of {program}")
            yield replace(found, expected=_EXPECTED_IN_LANES, todo=_TODO_IN_LANES) if part.what in never else found


def _defaults(situation: Situation) -> Iterator[Finding]:
    """Statements that leave a column to such a default."""
    unsafe = dict(_unsafe_defaults(situation))
    if not unsafe:
        return
    for logged, _ in situation.transactions_with(_FILLING):
        header = logged.header
        text = LoggedText.of(header.first_seqno, header.source, logged.item, situation.plan.flavor)
        if text is None:
            continue
        for key in text.facts.written:
            for column, what in unsafe.get(situation.compared(key), {}).items():
                if fills_by_default(text.tokens, text.sql, column):
                    yield _finding(logged, f"{what} as the default of {key}.{column}")


def _defaults_behind(situation: Situation, body: Body) -> Iterator[str]:
    """Such defaults of the tables that a body fills."""
    for each in inserted_in(body.tokens, body.database):
        tokens = body.tokens[each.begin : each.end]
        for column, what in _unsafe_of(situation, each.key).items():
            if fills_by_default(tokens, " ".join(token.text for token in tokens), column):
                yield f"{what} as the default of {each.key}.{column},"


def _unsafe_defaults(situation: Situation) -> Iterator[tuple[TableKey, Mapping[str, str]]]:
    """By table, as the target compares it, the columns with such a default."""
    for key in sorted({*situation.plan.written, *situation.plan.loaded}, key=str):
        if found := _unsafe_of(situation, key):
            yield situation.compared(key), found


def _unsafe_of(situation: Situation, key: TableKey) -> Mapping[str, str]:
    found = dict[str, str]()
    for side in (situation.every_table, situation.source_tables):
        table = None if side is None else side.table(key)
        if table is not None and side is not None:
            differs = situation.target.flavor is not situation.plan.flavor
            found |= _of_table(table, side.flavor, differs=differs)
    return found


def _of_table(table: Table, flavor: Flavor, *, differs: bool) -> Mapping[str, str]:
    """``flavor``: of the server that has this definition; ``differs``: the target is of the other family."""
    from binlane.sql.temporary_routines import tokens_of

    found = dict[str, str]()
    for column in table.columns:
        if column.default is None or _LITERAL.fullmatch(column.default) or _CALLING.isdisjoint(column.default):
            continue
        tokens = tokens_of(column.default, flavor)
        if tokens is None:
            found[column.name] = _UNREAD
            continue
        every = ((of_server(tokens, at, flavor), unlogged_variable(token)) for at, token in enumerate(tokens))
        what = next((what for both in every for what in both if what is not None), None)
        if what is None and differs:
            what = other_answer(tokens)
        if what is not None:
            found[column.name] = what
    return found


def _finding(logged: LaneStatement, what: str) -> Finding:
    header = logged.header
    where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
    return Finding(Severity.FATAL, where, _EXPECTED, what, _TODO, header.first_seqno)
