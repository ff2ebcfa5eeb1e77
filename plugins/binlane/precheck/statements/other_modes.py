"""Statements whose text names other tables under another sql_mode or client character set than those logged with it.

A session can PREPARE a text in one sql_mode and character set and EXECUTE it in another. The server has read it by the
first, the log has the second, and whoever reads the log reads the text by that one, a replica of the server too.
ANSI_QUOTES, NO_BACKSLASH_ESCAPES and a character whose last byte is a backslash or a backquote decide where a literal
or a name ends: a user who may write one table of the source could have another one written on the target. So a text
with such bytes is read in the other ways as well.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from binlane.model import Flavor, SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.letter_case import lower
from binlane.sql.charset import MODES_OF_TEXT
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.work.logged_statements import LaneStatement

_MOST_FINDINGS: Final = 20
_READ_OTHERWISE: Final = re.compile(rb'["\\]|[\x80-\xff]`')
_WITH_NAMES: Final = re.compile(rb'["\\\x80-\xff]')
"""The same where the target has tables whose names are not ASCII: their bytes are other names in another set."""
_HIDES: Final = re.compile(rb"[\x80-\xff][\\`]")
_MARKS: Final = ((b'"', MODES_OF_TEXT["ANSI_QUOTES"]), (b"\\", MODES_OF_TEXT["NO_BACKSLASH_ESCAPES"]))
"""What a mode reads in another way, and its bit of ``sql_mode``."""
_NAMES: Final = {bit: name for name, bit in MODES_OF_TEXT.items()}
_SETS: Final = {"latin1": 8, "utf8mb4": 45, "gbk": 28, "sjis": 13, "big5": 1}
"""Character sets of a client, by the number of a collation: the others end characters at the same bytes as one of
these (gb18030 as gbk, cp932 as sjis, all others as latin1)."""
_EXPECTED: Final = "a text about the same tables whatever the session's sql_mode and client character set"
_TODO: Final = (
    "a session may have prepared it in the one and executed it in the other, so the log does not tell what the source "
    "did: log such statements as rows (binlog_format=ROW), or compare the tables and skip the transaction "
    "(docs/control.md)"
)


def check_other_modes(situation: Situation) -> Iterator[Finding]:
    """Statements that another sql_mode, or client character set, of their session makes ones about other tables."""
    yield from islice(_all(situation), _MOST_FINDINGS)


def _all(situation: Situation) -> Iterator[Finding]:
    if not (situation.needs.statements or situation.needs.ddl):
        return
    flavor, seen, known = situation.plan.flavor, set[Hashable](), _known(situation)
    has_names = any(not (key.database + key.table).isascii() for key in known)
    for logged, _ in situation.transactions_with(_WITH_NAMES if has_names else _READ_OTHERWISE):
        item = logged.item
        context = item.context or SessionContext()
        if (named := (item.payload, context.database, context.sql_mode, context.charset_client)) in seen:
            continue
        seen.add(named)
        found = read_otherwise(item.payload, context, flavor)
        if found is None and (has_names or _HIDES.search(item.payload) is not None):
            found = read_in_another_set(item.payload, context, flavor, known)
        if found is not None:
            yield _finding(logged, found)


def _known(situation: Situation) -> frozenset[TableKey]:
    """The tables that a statement of the window may have been about, in lower case; a database alone has no table."""
    made = (key for text in situation.every_text for key in text.facts.tables)
    alone = (TableKey(name, "") for text in situation.every_text for name in text.facts.databases)
    return frozenset(map(_lower_case, (*situation.planned.tables, *situation.planned.views, *made, *alone)))


def _lower_case(key: TableKey) -> TableKey:
    return TableKey(lower(key.database), lower(key.table))


def read_otherwise(sql: bytes, context: SessionContext, flavor: Flavor) -> str | None:
    """The modes that a text has to be read without, or with, to be one about other tables; None if there are none.

    A reading that is no statement counts for nothing: most escaped quotation marks are noise in the other mode.
    """
    logged = _about(statement_facts(sql, context, flavor))
    for other, modes in _in_other_modes(sql, context):
        facts = statement_facts(sql, other, flavor)
        if facts.kind is not StatementKind.UNKNOWN and _about(facts) != logged:
            return modes
    return None


def read_in_another_set(sql: bytes, context: SessionContext, flavor: Flavor, known: Collection[TableKey]) -> str | None:
    """The client character set, and the modes, in which a text is one about other tables that are ``known``; None if
    there are none: the source has executed the text about the tables that it had."""
    logged = _about(statement_facts(sql, context, flavor))
    databases = {key.database for key in known}
    for name, number in _SETS.items():
        session = replace(context, charset_client=number)
        for other, modes in ((session, ""), *_in_other_modes(sql, session)):
            facts = statement_facts(sql, other, flavor)
            if facts.kind is StatementKind.UNKNOWN or _about(facts) == logged:
                continue
            are_known = all(_lower_case(key) in known for key in facts.tables)
            if are_known and all(lower(name) in databases for name in facts.databases):
                return f"character_set_client {name}{', ' if modes else ''}{modes}"
    return None


def _in_other_modes(sql: bytes, context: SessionContext) -> Iterator[tuple[SessionContext, str]]:
    for changed in _subsets([bit for mark, bit in _MARKS if mark in sql]):
        mode = (context.sql_mode or 0) ^ sum(changed)
        said = ", ".join(f"{_NAMES[bit]} {'on' if mode & bit else 'off'}" for bit in changed)
        yield replace(context, sql_mode=mode), said


def _about(facts: StatementFacts) -> tuple[object, ...]:
    return facts.kind, facts.tables, facts.written, facts.databases


def _subsets(bits: list[int]) -> Iterator[tuple[int, ...]]:
    yield from ((bit,) for bit in bits)
    if len(bits) > 1:
        yield tuple(bits)


def _finding(logged: LaneStatement, found: str) -> Finding:
    header = logged.header
    where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
    return Finding(Severity.FATAL, where, _EXPECTED, f"other tables with {found}", _TODO, header.first_seqno)
