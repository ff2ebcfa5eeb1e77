"""Texts with comments, quotes and characters of every kind, and what two real servers read in them.

A text is a SELECT of literals, so a server's answer tells how it has read it. Whatever the source answers, the text as
binlane sends it must answer the same on the source and on the target: or binlane must refuse it by name.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Any, Final

import pymysql

from binlane.binlog.types.collations import collation_id
from binlane.model import Flavor, SessionContext
from binlane.servers.variables import version_number
from binlane.sql.charset import decoded, dialect_of
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, Unreadable, lex
from binlane.sql.shared_reading import AmbiguousTextError, Reader, as_read_by_source
from lab.servers import PrivateServer

MODES: Final = {
    "": 0,
    "ANSI_QUOTES": 0x4,
    "NO_BACKSLASH_ESCAPES": 0x100000,
    "ANSI_QUOTES,NO_BACKSLASH_ESCAPES": 0x100004,
    "PIPES_AS_CONCAT": 0x2,
}
_VERSIONS: Final = (
    *("", "", "", "00000", "40000", "50000", "50699", "50700", "50799", "50999", "51000", "80000", "80023"),
    *("90000", "90704", "99999", "050000", "080000", "100000", "100500", "101100", "110000", "110800", "999999"),
    *("1234", "500001"),
)
_PIECES: Final = (
    # literals and names
    *(b" ", b"\n", b" ", b",1", b",2", b",'a'", b",'it''s'", b",''", b',"d"', b",N'n'", b",hex(x'41')"),
    *(b",hex(b'01')", b",1.5e3", b",.5", b",1.", b",hex(0x41)", b",@a", b",@`/*`", b",@'--'", b",{x 3}"),
    *(b",'/* no */'", b",'-- no'", b",'# no'", b",'*/'", b",'/*!'", b",'/*M! '", b",3 as `/*`", b",3 as `a``b`"),
    *(b",_utf8'u'", b",_latin1'l'", b",_gbk x'bf5c'", b",_binary'b'", b",@@session.sql_mode like 'x'", b",1 as `\\`"),
    # comments
    *(b" /* c */ ", b"/**/", b" /* /* c */ ", b" /*M c */ ", b" /*m! ,9 */ ", b" -- c\n", b" --\t/*! \n", b"#c\n"),
    *(b" # /*\n", b" /*/ c */ ", b" /* ' */ ", b' /* " ` */ ', b" -- ' \n", b"# `\n", b"*/", b" */", b"/*"),
    b" /*+ SET_VAR(max_length_for_sort_data=8) */ ",
    # operators
    *(b"+1", b"-1", b"- -1", b"--1", b"--\xa0 1\n", b"--\xff1\n", b"*2", b"*/* c */2", b"/2", b" || 'x'", b"%2"),
    *(b"<=>1", b"\\N", b"\x00", b"$$"),
    # quotes
    *(b",'\\''", b",'\\\\'", b",'a\\", b"'", b",'", b'"', b"`", b",`1`"),
    # bytes that are a part of a character in one character set, and a backslash or a quote in another
    *(
        b",'\xbf\x5c'",
        b",'\xbf\x27'",
        b",'\xbf\x5c\x27'",
        b",'\x81\x5c'",
        b",'\xa1\x5c\xa1\x5c'",
        b",'\\\xbf\x5c'",
        b",'\\\xc3\xa9\x5c'",
    ),
    *(b",'\xe9'", b",'\xe2\x80\x98'", b",5 as \xbf\x60", b",5 as `\xbf\x60`"),
)
_MOST: Final = 12
_EVERY_BYTE: Final = "koi8_r"
"""A character set of the driver in which every byte is a character, so that it sends and gives bytes as they are."""


def text(chance: random.Random) -> bytes:
    """A text."""
    return b"SELECT 7" + b"".join(_piece(chance, 2) for _ in range(chance.randrange(1, _MOST)))


def _piece(chance: random.Random, depth: int) -> bytes:
    if depth and chance.random() < 0.3:
        inside = b"".join(_piece(chance, depth - 1) for _ in range(chance.randrange(1, 4)))
        marker = chance.choice((b"/*!", b"/*!", b"/*M!", b"/* "))
        number = chance.choice(_VERSIONS).encode()
        return (
            marker + number + chance.choice((b" ", b" ", b"\n", b"")) + inside + chance.choice((b"*/", b" */", b" */ "))
        )
    return chance.choice(_PIECES)


@dataclass
class Tally:
    """What came of a sweep."""

    read: int = 0
    resolved: int = 0
    ambiguous: int = 0
    wrong: list[tuple[str, str, bytes, bytes, Any, Any]] = field(default_factory=list)


class Asker:
    """A session of a server."""

    def __init__(self, server: PrivateServer) -> None:
        self.connection = server.connect(charset=_EVERY_BYTE.replace("_", ""))
        [(version,)] = server.query("SELECT VERSION()")
        self.reader = Reader(server.flavor, version_number(version))

    def enter(self, client: str, mode: str) -> None:
        """Take a client's character set and a sql_mode."""
        with self.connection.cursor() as cursor:
            cursor.execute(f"SET sql_mode = '{mode}', character_set_client = {client}, character_set_results = binary")

    def answer(self, sql: bytes) -> tuple[tuple[Any, ...], ...] | None:
        """The rows; None for an error of the server."""
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(sql.decode(_EVERY_BYTE))
            except pymysql.err.MySQLError:
                return None
            return tuple(cursor.fetchall())


def sweep(source: PrivateServer, targets: list[PrivateServer], seed: int, texts: int) -> Tally:
    """Read ``texts`` texts on a source and, as they are sent, on it and on targets."""
    chance, tally = random.Random(seed), Tally()
    ours, theirs = Asker(source), [Asker(target) for target in targets]
    per_session = 50
    for _ in range(0, texts, per_session):
        client, mode = chance.choice(CLIENTS), chance.choice(tuple(MODES))
        context = SessionContext(sql_mode=MODES[mode], charset_client=collation_id(_COLLATIONS[client], Flavor.MYSQL))
        for asker in (ours, *theirs):
            asker.enter(client, mode)
        for _ in range(per_session):
            sql = text(chance)
            expected = ours.answer(sql)
            if expected is not None:
                _compare(tally, (client, mode), sql, expected, ours, theirs, context)
    return tally


def _compare(
    tally: Tally,
    session: tuple[str, str],
    sql: bytes,
    expected: tuple[tuple[Any, ...], ...],
    ours: Asker,
    theirs: list[Asker],
    context: SessionContext,
) -> None:
    tally.read += 1
    for asker in theirs:
        try:
            sent = as_read_by_source(sql, context, ours.reader, asker.reader.flavor)
        except AmbiguousTextError:
            tally.ambiguous += 1
            continue
        tally.resolved += sent != sql
        columns = _columns(sent, context, asker.reader.flavor)
        if columns not in (None, len(expected[0])):
            tally.wrong.append((*session, sql, sent, len(expected[0]), columns))
        for each in (ours, asker):
            found = each.answer(sent)
            # a target may refuse a text: then nothing is silent
            if (found is None and each is ours) or (found is not None and not _are_alike(found, expected)):
                tally.wrong.append((*session, sql, sent, expected, found))


def _columns(sql: bytes, context: SessionContext, flavor: Flavor) -> int | None:
    """The number of the query's columns by binlane's own lexer; None if it does not read the text."""
    tokens: list[Token] = []
    try:
        lex(decoded(sql, context), dialect_of(context, flavor), tokens)
    except Unreadable:
        return None
    return 1 + sum(is_symbol(token, ",") for token in tokens)


def _are_alike(ours: tuple[tuple[Any, ...], ...], theirs: tuple[tuple[Any, ...], ...]) -> bool:
    """Whether two answers tell of the same pieces of the text. Bytes that are no character in the client's character
    set have another replacement on each server."""
    pairs = [(_text(one), _text(other)) for one, other in zip(ours[0], theirs[0], strict=False)]
    return len(ours[0]) == len(theirs[0]) and all(
        one == other or _UNCERTAIN.search(one + other) is not None for one, other in pairs
    )


def _text(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


_UNCERTAIN: Final = re.compile(rb"[?\x80-\xff]")
_COLLATIONS: Final = {
    "utf8mb4": "utf8mb4_general_ci",
    "latin1": "latin1_swedish_ci",
    "gbk": "gbk_chinese_ci",
    "sjis": "sjis_japanese_ci",
    "cp932": "cp932_japanese_ci",
    "big5": "big5_chinese_ci",
    "euckr": "euckr_korean_ci",
    "swe7": "swe7_swedish_ci",
    "cp850": "cp850_general_ci",
    "hebrew": "hebrew_general_ci",
    "binary": "binary",
}
CLIENTS: Final = tuple(_COLLATIONS)
