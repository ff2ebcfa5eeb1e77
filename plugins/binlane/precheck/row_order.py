"""Statements that number rows in the order in which a server happens to take them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from binlane.model import SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.precheck.finding import Finding
from binlane.precheck.situation import Situation
from binlane.schema.compare import Severity
from binlane.sql.charset import decoded, dialect_of
from binlane.sql.logged_statement import shown
from binlane.sql.parse.unsafe import numbers_open_rows

_QUERIES: Final = re.compile(rb"\b(?:INSERT|REPLACE)\b.*\b(?:SELECT|TABLE)\b", re.IGNORECASE | re.DOTALL)
_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "each server takes the rows in an order of its own: give the query an ORDER BY, log it as rows "
    "(binlog_format=MIXED), or set allow_unsafe in the channel's file, and copy the table again behind the window "
    "(`binlane recopy CHANNEL --table ...`)"
)


def check_row_order(situation: Situation) -> Iterator[Finding]:
    """INSERT ... SELECT without ORDER BY into a table with an AUTO_INCREMENT column, in a log of statements."""
    if situation.begun or situation.channel.apply.allow_unsafe or not situation.needs.statements:
        return
    numbered = frozenset(_numbered(situation))
    if not numbered.isdisjoint(situation.plan.written):
        yield from islice(_findings(situation, numbered), _MOST_FINDINGS)


def _numbered(situation: Situation) -> Iterator[TableKey]:
    """The tables with an AUTO_INCREMENT column, on the target or by the window's own definitions."""
    yield from (key for key, table in situation.tables.tables.items() if table.auto_increment is not None)
    if situation.plan.altered.tables:
        for text in situation.every_text:
            if "AUTO_INCREMENT" in text.words:
                yield from text.facts.tables


def _findings(situation: Situation, numbered: frozenset[TableKey]) -> Iterator[Finding]:
    flavor = situation.plan.flavor
    for logged, _ in situation.transactions_with(_QUERIES):
        context, sql = logged.item.context or SessionContext(), logged.item.payload
        facts = statement_facts(sql, context, flavor)
        tables = facts.written & numbered
        if tables and numbers_open_rows(decoded(sql, context), facts, dialect_of(context, flavor)):
            header = logged.header
            yield Finding(
                Severity.FATAL,
                f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}",
                "rows in the order of its text",
                f"an AUTO_INCREMENT of {min(map(str, tables))} for the rows of a query without ORDER BY",
                _TODO,
                header.first_seqno,
            )
