"""What two servers of one family and of other versions answer otherwise, in statements, bodies behind them and computed
columns.

The log has the statement alone, so the target would write what its own version answers, or refuse it in the middle of a
window. The list is of what a text shows by its literals and names (tried on MariaDB 10.5, 10.11 and 11.8; of MySQL as
its manual tells it, and as 9.7 answers).
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, product
from typing import Final, NamedTuple

from binlane.model import Flavor, ItemKind, TableKey
from binlane.precheck.bodies.body_parts import Body, BodyPart, reaching, runs_bodies
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.model import Generated
from binlane.sql.charset import dialect_in, dialect_of
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import called_name, is_symbol
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, every_string, lex
from binlane.sql.parse.query_blocks import items
from binlane.sql.programs.comparison import as_difference


class _Part(NamedTuple):
    """A part of a text that older servers answer otherwise."""

    what: str
    since: tuple[int, int, int]
    """The first version that answers as today."""
    is_in: Callable[[Sequence[Token]], bool]
    """Whether tokens, with the texts of their literals, have it."""
    column_type: str = ""
    """It is one only where a table that the statement names has a column of such a type (words, with blanks between
    them), or the text names the type."""
    beside: Callable[[Sequence[Token]], Collection[str]] | None = None
    """The names, in lower case, of which one must be such a column's; a type that the text names is none then."""
    is_of_few_values: bool = False
    """Only values that are rare are answered otherwise, and no text shows which there are."""


_MAY_HAVE: Final = {
    Flavor.MARIADB: re.compile(
        rb"\bJSON_|\bFROM_UNIXTIME|\bUNIX_TIMESTAMP|\bCONVERT_TZ|\bDATE_FORMAT|['\"]\d{1,3}(?:\.\d{1,3}){3}['\"]|"
        rb"\bINET4",
        re.I,
    ),
    Flavor.MYSQL: re.compile(
        rb"\bFROM_UNIXTIME|\bUNIX_TIMESTAMP|\bCONVERT_TZ|\{|\bST_|\bMBR|\b(?:REGEXP|RLIKE)\b|[|&^~]|<<|>>|\bBIT_COUNT|"
        rb"[-+]\d\d:\d\d['\"]",
        re.I,
    ),
}
"""Without it a text has none of the family's parts."""
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
_BIT_OPERATORS: Final = ("|", "&", "^", "~", "<<", ">>")
_OFFSET: Final = re.compile(r"[nN]?['\"]?\s*\d[\dT :./-]{7,}[-+]\d\d:\d\d")
_WITH_SRID: Final = re.compile(
    r"ST_(?:GEOM|GEOMETRY|POINT|LINE|LINESTRING|POLY|POLYGON|M\w+|GEOMCOLL|GEOMETRYCOLLECTION)FROM(?:TEXT|TXT|WKB)"
)
"""Functions that make a geometry, with its SRID as their second argument; without one it is 0, everywhere."""
_OF_PARTS: Final = """
ST_DIMENSION ST_ENDPOINT ST_EXTERIORRING ST_GEOMETRYN ST_INTERIORRINGN ST_NUMGEOMETRIES ST_NUMINTERIORRING
ST_NUMINTERIORRINGS ST_NUMPOINTS ST_POINTN ST_SRID ST_STARTPOINT
"""
_WITHOUT_AXES: Final = frozenset(_OF_PARTS.split())
"""Functions that count a geometry's parts or take one out, whatever its SRID is."""


def _has_double_key(tokens: Sequence[Token]) -> bool:
    """Whether a text is a JSON document of which an object has a key twice."""
    return any(token.kind is TokenKind.STRING and _is_double(token.text) for token in tokens)


def _is_double(text: str) -> bool:
    if text.count(":") < 2:
        return False
    found = list[bool]()

    def members(pairs: list[tuple[str, object]]) -> None:
        found.append(len({key for key, _ in pairs}) < len(pairs))

    # a backslash escapes the quotes of a text in double quotes
    for spelled in (text, text.replace('\\"', '"')):
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(spelled, object_pairs_hook=members)
            return any(found)
    return False


def _has_geography(tokens: Sequence[Token]) -> bool:
    """Whether the axes or the units of a geometry's SRID may decide a value."""
    for at in range(len(tokens)):
        name = called_name(tokens, at)
        is_spatial = name.startswith(("ST_", "MBR")) and name not in _WITHOUT_AXES
        if is_spatial and _WITH_SRID.fullmatch(name) is None:
            return True
    return any(
        len(arguments) > 1 and not (len(arguments[1]) == 1 and arguments[1][0].text == "0")
        for arguments in _calls(tokens, lambda name: _WITH_SRID.fullmatch(name) is not None)
    )


def _has_regexp(tokens: Sequence[Token]) -> bool:
    return any(token.upper in ("REGEXP", "RLIKE") for token in tokens)


def _has_bits(tokens: Sequence[Token]) -> bool:
    return any(is_symbol(token, *_BIT_OPERATORS) or token.upper == "BIT_COUNT" for token in tokens)


def _of_bits(tokens: Sequence[Token]) -> Collection[str]:
    """The names beside bit operators."""
    found = set[str]()
    for at, token in enumerate(tokens):
        if is_symbol(token, *_BIT_OPERATORS):
            found |= {each.text.lower() for each in (*tokens[max(at - 1, 0) : at], *tokens[at + 1 : at + 4])}
        elif token.upper == "BIT_COUNT":
            found |= {each.text.lower() for each in tokens[at + 1 : at + 5]}
    return found


def _has_offset(tokens: Sequence[Token]) -> bool:
    return any(token.kind is TokenKind.STRING and _OFFSET.fullmatch(token.text) is not None for token in tokens)


_OF_MARIADB: Final = (
    _Part("a JSON path with an index from the end, or with a range", (10, 9, 0), _has_path),
    _Part("a Unix time behind 2036", (11, 5, 0), _has_late_time),
    _Part("DATE_FORMAT() with %z or %Z", (11, 3, 0), _has_zone_format),
    _Part("an IPv4 address for an INET6", (11, 3, 0), _has_ipv4, "inet6"),
)
_BINARY: Final = "binary varbinary tinyblob blob mediumblob longblob"
_OF_MYSQL: Final = (
    _Part("a JSON document with a key twice", (8, 0, 3), _has_double_key, "json"),
    # an older server stores SRID 0 as a rule, of which both compute alike
    _Part("a geometry's function, which may go by its SRID", (8, 0, 0), _has_geography, is_of_few_values=True),
    _Part("a regular expression", (8, 0, 4), _has_regexp),
    _Part("a bit operation with a binary column", (8, 0, 1), _has_bits, _BINARY, _of_bits),
    _Part("a Unix time behind 2036", (8, 0, 28), _has_late_time),
    _Part("a time with an offset", (8, 0, 19), _has_offset, "datetime timestamp"),
)
PARTS: Final[Mapping[Flavor, Sequence[_Part]]] = {Flavor.MARIADB: _OF_MARIADB, Flavor.MYSQL: _OF_MYSQL}


def with_literals(sql: str, dialect: Dialect) -> Sequence[Token]:
    """The tokens of a text, with the texts of their literals, without quotes; none if nobody can read it. Behind them
    the texts of literal rows, which give no tokens."""
    tokens, places = list[Token](), list[tuple[int, int]]()
    try:
        lex(sql, dialect, tokens, places)
    except Unreadable:
        return ()
    texts = (sql[begin:end].strip("'\"") for begin, end in places)
    found = [
        token._replace(text=text) if token.kind in _LITERALS else token
        for token, text in zip(tokens, texts, strict=True)
    ]
    if any(token.omits for token in tokens):
        found += (Token(TokenKind.STRING, each.strip("'\"")) for each in every_string(sql, dialect))
    return found


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
    """What servers of the two versions answer otherwise, in statements, bodies behind them and columns."""
    parts = () if situation.channel.apply.allow_unsafe else _parts_between(situation)
    if parts:
        found = (*_of_texts(situation, parts), *_of_bodies(situation, parts), *_of_columns(situation, parts))
        yield from islice(found, _MOST_FINDINGS)


def _parts_between(situation: Situation) -> Sequence[_Part]:
    """The parts that were answered otherwise by a server that has written the log."""
    flavor = situation.plan.flavor
    if flavor is not situation.target.flavor:
        return ()
    numbers = situation.logged_versions.values()
    is_new = situation.target.number.__ge__
    return tuple(part for part in PARTS[flavor] if any((each >= part.since) != is_new(part.since) for each in numbers))


def _of_texts(situation: Situation, parts: Sequence[_Part]) -> Iterator[Finding]:
    for logged, _ in situation.transactions_with(_MAY_HAVE[situation.plan.flavor]):
        header = logged.header
        text = LoggedText.of(header.first_seqno, header.source, logged.item, situation.plan.flavor)
        if text is None or (logged.item.kind is ItemKind.DDL and not runs_bodies(text)):
            continue
        tables, tokens = text.facts.tables, with_literals(text.sql, dialect_of(text.context, text.flavor))
        for part in parts:
            if part.is_in(tokens) and _has_type(situation, part, text.sql, tokens, tables):
                where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
                yield _finding(situation, where, part, "", _TODO, header.first_seqno)


def _of_bodies(situation: Situation, parts: Sequence[_Part]) -> Iterator[Finding]:
    marked = dict[tuple[TableKey, str], _Part]()
    for side in (*situation.stored_triggers, *situation.stored_programs) if situation.needs.statements else ():
        for each in side:
            tokens = _of_stored(each.text or "", situation.plan.flavor, each.sql_mode)
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
                tokens = _of_stored(text or "", plan.flavor)
                for part in parts:
                    if not part.column_type and part.is_in(tokens):
                        found = _finding(situation, f"{key}.{column.name}", part, "", _TODO_COLUMN, plan.first_seqno)
                        # behind rows alone nothing is written by it: it is for readers, as a view is
                        is_advice = part.is_of_few_values and not situation.needs.statements
                        yield replace(found, severity=Severity.INFO) if is_advice else found


def _of_stored(text: str, flavor: Flavor, sql_mode: str = "") -> Sequence[Token]:
    is_one = _MAY_HAVE[flavor].search(text.encode()) is not None
    return with_literals(text, dialect_in(sql_mode, flavor)) if is_one else ()


def _has_type(
    situation: Situation, part: _Part, sql: str, tokens: Sequence[Token], tables: frozenset[TableKey]
) -> bool:
    types = part.column_type.split()
    if not types or (part.beside is None and any(each in sql.lower() for each in types)):
        return True
    sides = (situation.tables, situation.source_tables)
    found = [table for side in sides if side is not None for key in tables if (table := side.table(key)) is not None]
    columns = {column.name.lower() for table in found for column in table.columns if column.data_type in types}
    return bool(columns) if part.beside is None else not columns.isdisjoint(part.beside(tokens))


def _finding(situation: Situation, where: str, part: _Part, place: str, todo: str, seqno: int) -> Finding:
    is_mariadb = situation.plan.flavor is Flavor.MARIADB
    family = "MariaDB" if is_mariadb else "MySQL"
    since = ".".join(map(str, part.since[: 2 if is_mariadb else 3]))
    versions = ", ".join(sorted(situation.logged_by))
    expected = "what both servers answer alike"
    found = (
        f"{part.what}{place}, which {family} answers otherwise from {since} on (source {versions}, target "
        f"{situation.target.version})"
    )
    return Finding(Severity.FATAL, where, expected, found, todo, seqno)
