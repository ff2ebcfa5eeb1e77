"""What MariaDB servers of two series answer otherwise, in statements, bodies behind them and computed columns.

The log has the statement alone, so the target would write what its own series answers, or refuse it in the middle of a
window. The list is of what a text shows by its literals (tried on MariaDB 10.5, 10.11 and 11.8).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, product
from typing import Final, NamedTuple

from binlane.model import Flavor, ItemKind, TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.precheck.statements.body_parts import Body, BodyPart, reaching, runs_bodies
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.model import Generated
from binlane.sql.charset import dialect_in, dialect_of
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import called_name, is_symbol
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex
from binlane.sql.parse.query_blocks import items
from binlane.sql.programs.comparison import as_difference


class _Part(NamedTuple):
    """A part of a text that older series answer otherwise."""

    what: str
    since: tuple[int, int, int]
    """The first version that answers as today."""
    is_in: Callable[[Sequence[Token]], bool]
    """Whether tokens, with the texts of their literals, have it."""
    column_type: str = ""
    """It is one only where a table that the statement names has a column of this type, or the text names the type."""


_MAY_HAVE: Final = re.compile(
    rb"\bJSON_|\bFROM_UNIXTIME|\bUNIX_TIMESTAMP|\bCONVERT_TZ|\bDATE_FORMAT|['\"]\d{1,3}(?:\.\d{1,3}){3}['\"]|\bINET4",
    re.I,
)
"""Without it a text has none of the parts."""
_PATH: Final = re.compile(r"\s*\$.*\[\s*(?:-\s*\d|last\b|\d+\s+to\s)", re.I | re.S)
_YEAR_BEHIND: Final = re.compile(r"\s*(?:20(?:3[89]|[4-9]\d)|2[1-9]\d\d|[3-9]\d{3})(?:\D|\d{4})")
_IPV4: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_LAST_OF_32_BITS: Final = 2_100_000_000
"""In front of the last second of 32 bits."""
_Arguments = Sequence[Sequence[Token]]


def _calls(tokens: Sequence[Token], is_name: Callable[[str], bool]) -> Iterator[_Arguments]:
    """The arguments of each call of a function."""
    for at in range(len(tokens)):
        if (name := called_name(tokens, at)) and is_name(name):
            end, depth = at + 1, 0
            for end in range(at + 1, len(tokens)):
                depth += is_symbol(tokens[end], "(") - is_symbol(tokens[end], ")")
                if depth == 0:
                    break
            yield tuple(items(tokens[at + 2 : end]))


def _has_path(tokens: Sequence[Token]) -> bool:
    return any(
        token.kind is TokenKind.STRING and _PATH.match(token.text) is not None
        for arguments in _calls(tokens, lambda name: name.startswith("JSON_"))
        for token in chain.from_iterable(arguments)
    )


def _has_late_time(tokens: Sequence[Token]) -> bool:
    for arguments in _calls(tokens, "FROM_UNIXTIME".__eq__):
        first = arguments[0][0] if arguments else None
        if first is not None and first.kind in _LITERALS and _number(first.text) >= _LAST_OF_32_BITS:
            return True
    for arguments in _calls(tokens, frozenset({"UNIX_TIMESTAMP", "CONVERT_TZ"}).__contains__):
        # TIMESTAMP'..' is such a literal, too
        words = [token for token in (arguments[0] if arguments else ()) if token.upper not in ("TIMESTAMP", "DATE")]
        if words and words[0].kind in _LITERALS and _YEAR_BEHIND.match(words[0].text) is not None:
            return True
    return False


def _has_zone_format(tokens: Sequence[Token]) -> bool:
    return any(
        token.kind is TokenKind.STRING and "%z" in token.text.lower()
        for arguments in _calls(tokens, "DATE_FORMAT".__eq__)
        for token in (arguments[1] if len(arguments) > 1 else ())
    )


def _has_ipv4(tokens: Sequence[Token]) -> bool:
    return any(
        token.upper == "INET4" or (token.kind is TokenKind.STRING and _IPV4.fullmatch(token.text) is not None)
        for token in tokens
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0


_LITERALS: Final = (TokenKind.STRING, TokenKind.NUMBER)
PARTS: Final = (
    _Part("a JSON path with an index from the end, or with a range", (10, 9, 0), _has_path),
    _Part("a Unix time behind 2036", (11, 5, 0), _has_late_time),
    _Part("DATE_FORMAT() with %z or %Z", (11, 3, 0), _has_zone_format),
    _Part("an IPv4 address for an INET6", (11, 3, 0), _has_ipv4, "inet6"),
)


def with_literals(sql: str, dialect: Dialect) -> Sequence[Token]:
    """The tokens of a text, with the texts of their literals, without quotes; none if nobody can read it."""
    tokens, places = list[Token](), list[tuple[int, int]]()
    try:
        lex(sql, dialect, tokens, places)
    except Unreadable:
        return ()
    texts = (sql[begin:end].strip("'\"") for begin, end in places)
    return [
        token._replace(text=text) if token.kind in _LITERALS else token
        for token, text in zip(tokens, texts, strict=True)
    ]


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
    parts = () if situation.channel.apply.allow_unsafe else _parts_between(situation)
    if parts:
        found = (*_of_texts(situation, parts), *_of_bodies(situation, parts), *_of_columns(situation, parts))
        yield from islice(found, _MOST_FINDINGS)


def _parts_between(situation: Situation) -> Sequence[_Part]:
    """The parts that were answered otherwise by a server that has written the log."""
    if {situation.plan.flavor, situation.target.flavor} != {Flavor.MARIADB}:
        return ()
    numbers = situation.logged_versions.values()
    is_new = situation.target.number.__ge__
    return tuple(part for part in PARTS if any((each >= part.since) != is_new(part.since) for each in numbers))


def _of_texts(situation: Situation, parts: Sequence[_Part]) -> Iterator[Finding]:
    for logged, _ in situation.transactions_with(_MAY_HAVE):
        header = logged.header
        text = LoggedText.of(header.first_seqno, header.source, logged.item, situation.plan.flavor)
        if text is None or (logged.item.kind is ItemKind.DDL and not runs_bodies(text)):
            continue
        tables, tokens = text.facts.tables, with_literals(text.sql, dialect_of(text.context, text.flavor))
        for part in parts:
            if part.is_in(tokens) and _has_type(situation, part, text.sql, tables):
                where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
                yield _finding(situation, where, part, "", _TODO, header.first_seqno)


def _of_bodies(situation: Situation, parts: Sequence[_Part]) -> Iterator[Finding]:
    marked = dict[tuple[TableKey, str], _Part]()
    for side in (*situation.stored_triggers, *situation.stored_programs) if situation.needs.statements else ():
        for each in side:
            tokens = _of_stored(each.text or "", each.sql_mode)
            for part in parts:
                # the types of a body's columns are not looked for
                if not part.column_type and part.is_in(tokens):
                    marked[as_difference(each).key, each.name] = part
    for text in situation.every_text if situation.needs.statements else ():
        made = (*text.facts.triggered, *text.facts.views)
        tokens = with_literals(text.sql, dialect_of(text.context, text.flavor)) if made else ()
        for key, part in product(made, parts):
            if not part.column_type and part.is_in(tokens):
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
                tokens = _of_stored(text or "")
                for part in parts:
                    if not part.column_type and part.is_in(tokens):
                        yield _finding(situation, f"{key}.{column.name}", part, "", _TODO_COLUMN, plan.first_seqno)


def _of_stored(text: str, sql_mode: str = "") -> Sequence[Token]:
    is_one = _MAY_HAVE.search(text.encode()) is not None
    return with_literals(text, dialect_in(sql_mode, Flavor.MARIADB)) if is_one else ()


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
