"""What MariaDB servers of two series answer otherwise, in statements, bodies behind them and computed columns.

The log has the statement alone, so the target would write what its own series answers, or refuse it in the middle of a
window. The list is of what a text shows by its literals (tried on MariaDB 10.5, 10.11 and 11.8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from binlane.model import Flavor, ItemKind, TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.precheck.statements.body_parts import Body, BodyPart, reaching, runs_bodies
from binlane.schema.compare import Severity
from binlane.schema.model import Generated
from binlane.sql.logged_statement import LoggedText, shown
from binlane.sql.programs.comparison import as_difference


class _Part(NamedTuple):
    """A part of a text that older series answer otherwise."""

    what: str
    since: tuple[int, int, int]
    """The first version that answers as today."""
    pattern: re.Pattern[bytes]
    column_type: str = ""
    """It is one only where a table that the statement names has a column of this type, or the text names the type."""


_PARTS: Final = (
    _Part(
        "a JSON path with an index from the end, or with a range",
        (10, 9, 0),
        re.compile(rb"\bJSON_\w+\s*\(.*\$[^',]*\[\s*(?:-\s*\d|last\b|\d+\s+to\s)", re.I | re.S),
    ),
    # from 2,100,000,000 on, in front of the last second of 32 bits
    _Part(
        "a Unix time behind 2036",
        (11, 5, 0),
        re.compile(
            rb"\bFROM_UNIXTIME\s*\(\s*(?:\d{11}|[3-9]\d{9}|2[1-9]\d{8}|[\d.]+e)"
            rb"|\b(?:UNIX_TIMESTAMP|CONVERT_TZ)\s*\(\s*(?:TIMESTAMP\s*)?['\"]?"
            rb"(?:20(?:3[89]|[4-9]\d)|2[1-9]\d\d|[3-9]\d{3})\D?\d",
            re.I,
        ),
    ),
    _Part("DATE_FORMAT() with %z or %Z", (11, 3, 0), re.compile(rb"\bDATE_FORMAT\s*\(.*%z", re.I | re.S)),
    _Part(
        "an IPv4 address for an INET6",
        (11, 3, 0),
        re.compile(rb"['\"]\d{1,3}(?:\.\d{1,3}){3}['\"]|\bINET4\b", re.I),
        "inet6",
    ),
)
_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "log such statements as rows (binlog_format=ROW), or upgrade the older server, or set allow_unsafe in the "
    "channel's file, and copy the tables that they change again behind the window (`binlane recopy CHANNEL "
    "--table ...`)"
)
_TODO_COLUMN: Final = (
    "upgrade the older server, or leave the table out (docs/filters.md), or set allow_unsafe in the channel's file if "
    "its values may differ"
)


def check_other_versions(situation: Situation) -> Iterator[Finding]:
    """What MariaDB servers of the two series answer otherwise, in statements, bodies behind them and columns."""
    parts = () if situation.begun or situation.channel.apply.allow_unsafe else _parts_between(situation)
    if parts:
        found = (*_of_texts(situation, parts), *_of_bodies(situation, parts), *_of_columns(situation, parts))
        yield from islice(found, _MOST_FINDINGS)


def _parts_between(situation: Situation) -> Sequence[_Part]:
    """The parts that were answered otherwise by a server that has written the log."""
    if {situation.plan.flavor, situation.target.flavor} != {Flavor.MARIADB}:
        return ()
    numbers = situation.logged_versions.values()
    is_new = situation.target.number.__ge__
    return tuple(part for part in _PARTS if any((each >= part.since) != is_new(part.since) for each in numbers))


def _of_texts(situation: Situation, parts: Sequence[_Part]) -> Iterator[Finding]:
    either = re.compile(b"|".join(part.pattern.pattern for part in parts), re.I | re.S)
    for logged, _ in situation.transactions_with(either):
        header = logged.header
        text = LoggedText.of(header.first_seqno, header.source, logged.item, situation.plan.flavor)
        if text is None or (logged.item.kind is ItemKind.DDL and not runs_bodies(text)):
            continue
        tables = text.facts.tables
        for part in parts:
            if part.pattern.search(logged.item.payload) is not None and _has_type(situation, part, text.sql, tables):
                where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
                yield _finding(situation, where, part, "", _TODO, header.first_seqno)


def _of_bodies(situation: Situation, parts: Sequence[_Part]) -> Iterator[Finding]:
    marked = dict[tuple[TableKey, str], _Part]()
    for side in (*situation.stored_triggers, *situation.stored_programs) if situation.needs.statements else ():
        for each in side:
            for part in parts:
                # the types of a body's columns are not looked for
                if not part.column_type and part.pattern.search((each.text or "").encode()) is not None:
                    marked[as_difference(each).key, each.name] = part
    for text in situation.every_text if situation.needs.statements else ():
        for key in (*text.facts.triggered, *text.facts.views):
            for part in parts:
                if not part.column_type and part.pattern.search(text.sql.encode()) is not None:
                    marked[key, ""] = part

    def find(body: Body) -> Iterator[BodyPart]:
        part = marked.get((body.difference.key, body.name))
        if part is not None:
            yield BodyPart(part.what, needs_rows=False)

    named = {part.what: part for part in parts}
    for _, logged, program, found in reaching(situation, find) if marked else ():
        header = logged.header
        where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
        yield _finding(situation, where, named[found.what], f" in {program}", _TODO, header.first_seqno)


def _of_columns(situation: Situation, parts: Sequence[_Part]) -> Iterator[Finding]:
    plan = situation.plan
    for key in sorted({*plan.applied_tables, *plan.written}, key=str):
        table = situation.tables.table(key)
        for column in () if table is None else table.columns:
            is_computed = column.generated is Generated.VIRTUAL or key in plan.written
            for text in (column.expression, column.default) if is_computed else ():
                for part in parts:
                    if not part.column_type and part.pattern.search((text or "").encode()) is not None:
                        yield _finding(situation, f"{key}.{column.name}", part, "", _TODO_COLUMN, plan.first_seqno)


def _has_type(situation: Situation, part: _Part, sql: str, tables: frozenset[TableKey]) -> bool:
    if not part.column_type or part.column_type in sql.lower():
        return True
    found = (situation.tables.table(key) for key in tables)
    return any(column.data_type == part.column_type for table in found if table for column in table.columns)


def _finding(situation: Situation, where: str, part: _Part, place: str, todo: str, seqno: int) -> Finding:
    series = ".".join(map(str, part.since[:2]))
    versions = ", ".join(sorted(situation.logged_by))
    expected = "what both servers answer alike"
    found = (
        f"{part.what}{place}, which MariaDB answers otherwise from {series} on (source {versions}, target "
        f"{situation.target.version})"
    )
    return Finding(Severity.FATAL, where, expected, found, todo, seqno)
