"""Statements whose text names other tables under another sql_mode than the one that is logged with it.

A session can PREPARE a text in one sql_mode and EXECUTE it in another. The server has read it by the first, the log has
the second, and whoever reads the log reads the text by that one, a replica of the server too. ANSI_QUOTES and
NO_BACKSLASH_ESCAPES decide where a literal ends: a user who may write one table of the source could have another one
written on the target. So a text with a quotation mark or a backslash is read by the other modes as well.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from binlane.model import Flavor, SessionContext
from binlane.plan.transaction.decode import statement_facts
from binlane.precheck.finding import Finding
from binlane.precheck.situation import Situation
from binlane.schema.compare import Severity
from binlane.sql.charset import MODES_OF_TEXT
from binlane.sql.logged_statement import shown
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.work.logged_statements import LaneStatement

_MOST_FINDINGS: Final = 20
_READ_OTHERWISE: Final = re.compile(rb'["\\]')
_MARKS: Final = ((b'"', MODES_OF_TEXT["ANSI_QUOTES"]), (b"\\", MODES_OF_TEXT["NO_BACKSLASH_ESCAPES"]))
"""What a mode reads in another way, and its bit of ``sql_mode``."""
_NAMES: Final = {bit: name for name, bit in MODES_OF_TEXT.items()}
_EXPECTED: Final = "a text about the same tables whatever the session's sql_mode"
_TODO: Final = (
    "a session may have prepared it in the one and executed it in the other, so the log does not tell what the source "
    "did: log such statements as rows (binlog_format=ROW), or compare the tables and skip the transaction "
    "(docs/control.md)"
)


def check_other_modes(situation: Situation) -> Iterator[Finding]:
    """Statements that another sql_mode of their session makes ones about other tables."""
    yield from islice(_all(situation), _MOST_FINDINGS)


def _all(situation: Situation) -> Iterator[Finding]:
    flavor, seen = situation.plan.flavor, set[Hashable]()
    for logged, _ in situation.transactions_with(_READ_OTHERWISE) if situation.needs.statements else ():
        item = logged.item
        context = item.context or SessionContext()
        if (named := (item.payload, context.database, context.sql_mode, context.charset_client)) in seen:
            continue
        seen.add(named)
        if (modes := read_otherwise(item.payload, context, flavor)) is not None:
            yield _finding(logged, modes)


def read_otherwise(sql: bytes, context: SessionContext, flavor: Flavor) -> str | None:
    """The modes that a text has to be read without, or with, to be one about other tables; None if there are none.

    A reading that is no statement counts for nothing: most escaped quotation marks are noise in the other mode.
    """
    logged = _about(statement_facts(sql, context, flavor))
    bits = [bit for mark, bit in _MARKS if mark in sql]
    for changed in _subsets(bits):
        other = replace(context, sql_mode=(context.sql_mode or 0) ^ sum(changed))
        facts = statement_facts(sql, other, flavor)
        if facts.kind is not StatementKind.UNKNOWN and _about(facts) != logged:
            return ", ".join(f"{_NAMES[bit]} {'on' if (other.sql_mode or 0) & bit else 'off'}" for bit in changed)
    return None


def _about(facts: StatementFacts) -> tuple[object, ...]:
    return facts.kind, facts.tables, facts.written, facts.databases


def _subsets(bits: list[int]) -> Iterator[tuple[int, ...]]:
    yield from ((bit,) for bit in bits)
    if len(bits) > 1:
        yield tuple(bits)


def _finding(logged: LaneStatement, modes: str) -> Finding:
    header = logged.header
    where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
    return Finding(Severity.FATAL, where, _EXPECTED, f"other tables with {modes}", _TODO, header.first_seqno)
