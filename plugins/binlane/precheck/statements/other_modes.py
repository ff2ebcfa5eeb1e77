"""Statements that are others in another client character set than the one logged with them.

A session can PREPARE a text in one client character set and EXECUTE it in another. The server has read the names by the
first, the log has the second. Where the two split the text otherwise, an account statement and the like are refused
when the log is read (``sql.other_readings``). A statement about tables is refused here, unless the source's own parser
takes none of its other readings for a statement; and so is one of whose names the bytes are letters of another name.
Of an archive the target's parser is asked, if it is of the series that has written the log: another one may lack what
the source could read.
"""

from __future__ import annotations

import functools
import re
from base64 import b64decode
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from typing import Final

from binlane.model import Flavor, SessionContext, TableKey, version_number
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.precheck.situation.syntax import SyntaxParser
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.letter_case import lower
from binlane.sql.charset import MODES_OF_TEXT, decoded
from binlane.sql.other_readings import SETS, WAY_ON
from binlane.sql.parse.lexer import TokenKind, Unreadable
from binlane.sql.words import words_of
from binlane.work.logged_statements import LaneStatement

_MOST_FINDINGS: Final = 20
_LETTERS: Final = re.compile(rb"[\x80-\xff]")
_SET_OF: Final = {collation: name for name, collation in SETS.items()}
_BLANK: Final = re.compile("[\u00a0\ufffd]")
"""What may be a blank in another set: it ends a name without quotes."""
_EXPECTED: Final = "the same statement whatever the session's client character set"


def check_other_modes(situation: Situation) -> Iterator[Finding]:
    """Statements that another client character set of their session makes other ones."""
    yield from islice(_all(situation), _MOST_FINDINGS)


def _all(situation: Situation) -> Iterator[Finding]:
    if not (situation.needs.statements or situation.needs.ddl):
        return
    with ExitStack() as stack:
        yield from _each(situation, functools.cache(lambda: _parser(situation, stack)))


def _each(situation: Situation, parser: Callable[[], SyntaxParser | None]) -> Iterator[Finding]:
    # the names are read, and a parser is asked for, where there are such statements alone
    seen, flavor, tables = set[Hashable](), situation.plan.flavor, frozenset[TableKey]()
    for logged, _ in situation.transactions_with(_LETTERS):
        tables = tables or _tables(situation)
        item, context = logged.item, logged.item.context or SessionContext()
        if (named := (item.payload, context.logged_text, context.sql_mode, context.charset_client)) in seen:
            continue
        seen.add(named)
        found = read_in_another_set(item.payload, context, flavor, _names(tables))
        if found is None and context.other_readings:
            found = split_in_another_set(context, parser())
        if found is not None:
            yield _finding(logged, found)


def _tables(situation: Situation) -> frozenset[TableKey]:
    """The tables that the source may have had, in lower case; a database alone has no table."""
    made = (key for text in situation.every_text for key in text.facts.tables)
    alone = (TableKey(name, "") for text in situation.every_text for name in text.facts.databases)
    return frozenset(map(_lower_case, (*situation.planned.tables, *situation.planned.views, *made, *alone)))


def _lower_case(key: TableKey) -> TableKey:
    return TableKey(lower(key.database), lower(key.table))


@functools.lru_cache(maxsize=1)
def _names(tables: frozenset[TableKey]) -> frozenset[str]:
    """Their names that are not ASCII."""
    return frozenset(name for key in tables for name in (key.database, key.table) if not name.isascii())


def _parser(situation: Situation, stack: ExitStack) -> SyntaxParser | None:
    """Who can say whether a text is a statement to the source: its own parser, or for an archive the target's, if it
    has the same grammar."""
    if situation.source is not None:
        return stack.enter_context(situation.source.syntax_parser())
    target = situation.target
    series = {version_number(each)[:2] for each in situation.logged_by}
    is_alike = target.flavor is situation.plan.flavor and series == {target.number[:2]}
    return stack.enter_context(target.syntax_parser()) if is_alike else None


def split_in_another_set(context: SessionContext, parser: SyntaxParser | None) -> str | None:
    """The client character set, and the modes, in which a logged text ends its names and literals elsewhere and may be
    another statement; None if there are none. Without a parser each of the plan's readings may be one."""
    text = b64decode(context.logged_text or "")
    for collation, mode in context.other_readings:
        name = _SET_OF[collation]
        if parser is None or parser.takes(text, name, mode):
            modes = ", ".join(each for each, bit in MODES_OF_TEXT.items() if mode & bit)
            return f"another statement with character_set_client {name}{', ' if modes else ''}{modes}"
    return None


def read_in_another_set(sql: bytes, context: SessionContext, flavor: Flavor, known: Collection[str]) -> str | None:
    """The client character set in which a text has another name that is ``known``; None if there is none: the source
    has executed the text about the tables that it had."""
    try:
        words = words_of(sql, context, flavor)
    except Unreadable as unreadable:
        return f"a text with {unreadable}"
    for at, token in enumerate(words.tokens):
        written = words.bytes_of(at)
        if token.kind not in (TokenKind.WORD, TokenKind.NAME) or written.isascii():
            continue
        if token.kind is TokenKind.NAME:
            quote = written[:1]
            written = written[1:-1].replace(quote * 2, quote)
        # the lexer's text has letters alone in their places
        own = decoded(written, context)
        for name, number in SETS.items():
            other = decoded(written, replace(context, charset_client=number))
            parts = (other,) if token.kind is TokenKind.NAME else _BLANK.split(other)
            if any(lower(part) in known and part != own for part in parts):
                return f"other tables with character_set_client {name}"
    return None


def _finding(logged: LaneStatement, found: str) -> Finding:
    header = logged.header
    where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
    todo = f"{WAY_ON} (docs/control.md)"
    return Finding(Severity.FATAL, where, _EXPECTED, found, todo, header.first_seqno)
