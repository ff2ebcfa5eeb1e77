"""The tables that the source has altered after a position in its log: their present definitions differ from those at
that position."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator
from typing import Final

import numpy as np

from binlane.binlog.events import parse_body
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.query import Query
from binlane.binlog.vector.frames import frame
from binlane.binlog.wire import EventType, RawEvent
from binlane.errors import BinlogError
from binlane.model import Item, ItemKind, LogPosition, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.decode import statement_facts
from binlane.plan.transaction.temporary_tables import named_engine
from binlane.schema.letter_case import LetterCase
from binlane.source.identity import Start, described
from binlane.source.protocol import LOG_START, EventSource
from binlane.source.proved import proved
from binlane.sql.logged_query import logged_query
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.plain_statement import parted

_FRAMES = (b"BEGIN", b"COMMIT", b"ROLLBACK")
_KEEPS_ENGINE: Final = re.compile(
    rb"\s*(?:ALTER|TRUNCATE|ANALYZE|OPTIMIZE|REPAIR|(?:CREATE|DROP)\s+(?:OR\s+REPLACE\s+)?"
    rb"(?:UNIQUE\s+|FULLTEXT\s+|SPATIAL\s+)?(?:INDEX|TRIGGER|VIEW|PROCEDURE|FUNCTION|EVENT))\b",
    re.I,
)
"""Statements that leave each table its engine, unless they name one or rename a table."""
_DEFINES: Final = re.compile(rb"\b(?:CREATE|ALTER|DROP|RENAME)\b", re.I)
_NOTHING: Final = StatementFacts(StatementKind.TRANSACTION)
_STATEMENTS = (int(EventType.QUERY), int(EventType.QUERY_COMPRESSED))


def altered_behind(
    source: EventSource, start: Start, limit: int | None = None, *, engines: bool = False
) -> Alterations | None:
    """The tables whose definition statements from ``start`` to the log's present end may change, and the triggers that
    they drop; with ``engines`` only those that may have got another engine.

    None if that part of the log has more than ``limit`` bytes. The seqnos of the result have no meaning. Raises
    SourceError, BinlogError.
    """
    tables, unread = set[TableKey](), False
    for found in _statements(source, start, limit):
        if found is None:
            return None
        named = _tables(*_read(source, found), engines=engines)
        unread = unread or named is None
        tables |= named or frozenset()
    return Alterations(dict.fromkeys(tables, (0,)), (0,) if unread else ())


def untouched_behind(source: EventSource, start: Start, tables: Collection[TableKey]) -> frozenset[TableKey]:
    """Those of the tables that no statement from ``start`` to the log's present end makes, alters or takes away. Raises
    SourceError, BinlogError."""
    left, letters = {*tables}, LetterCase(folds=True)
    for found in _statements(source, start):
        if not left:
            break
        if found is None:
            continue
        facts, statement = _read(source, found)
        named = _tables(facts, statement, engines=False)
        if facts is None or named is None:
            return frozenset()
        touched, databases = letters.tables(named), letters.names(facts.dropped_in)
        left -= {key for key in left if letters.table(key) in touched or letters.name(key.database) in databases}
    return frozenset(left)


def definitions_behind(source: EventSource, start: Start) -> Iterator[LoggedText]:
    """The statements from ``start`` to the log's present end that may define or rename something, as far as they can be
    read. Their seqnos have no meaning. Raises SourceError, BinlogError."""
    for found in _statements(source, start):
        if found is None:
            continue
        event, log_format, file = found
        query = parse_body(event, log_format, f"{source.name}/{file}")
        assert isinstance(query, Query)
        executed = logged_query(query, log_format) if _DEFINES.search(query.sql) else None
        if executed is not None:
            query = executed
            statement = parted(query.sql, query.context, log_format.flavor)[1]
            item = Item(ItemKind.DDL, query.sql, context=query.session(event.header, statement))
            text = LoggedText.of(0, LogPosition(file, event.offset), item, log_format.flavor)
            if text is not None:
                yield text


def _statements(
    source: EventSource, start: Start, limit: int | None = None
) -> Iterator[tuple[RawEvent, FormatDescription, str] | None]:
    """Each logged statement with the format of its log and its file; None at the end if the log goes on behind
    ``limit`` bytes."""
    log_format, read = FormatDescription(""), 0
    with contextlib.closing(proved(source, start)) as chunks:
        for chunk in chunks:
            name = f"{source.name}/{chunk.file}"
            if chunk.offset == LOG_START:
                log_format = described(chunk.data, name)
                continue
            read += len(chunk.data)
            if limit is not None and read > limit:
                yield None
                return
            frames = frame(chunk.data, 0, log_format.checksum.length)
            frames.check(name)
            for index in np.flatnonzero(np.isin(frames.type_code, _STATEMENTS)).tolist():
                yield frames.raw(index, chunk.offset), log_format, chunk.file


def _read(source: EventSource, found: tuple[RawEvent, FormatDescription, str]) -> tuple[StatementFacts | None, bytes]:
    """The facts of a statement and its text without variables in front; None if it cannot be parsed."""
    event, log_format, file = found
    try:
        query = parse_body(event, log_format, f"{source.name}/{file}")
    except BinlogError:
        return None, b""
    assert isinstance(query, Query)
    if query.sql in _FRAMES:
        return _NOTHING, query.sql
    executed = logged_query(query, log_format)
    if executed is None:
        return None, b""
    query = executed
    _, statement = parted(query.sql, query.context, log_format.flavor)
    context = query.session(event.header, statement)
    return statement_facts(query.sql, context, log_format.flavor), statement


def _tables(facts: StatementFacts | None, statement: bytes, *, engines: bool) -> frozenset[TableKey] | None:
    """The tables that a statement may alter, and triggers that it drops; None if the statement cannot be parsed."""
    if facts is None:
        return None
    if not (facts.commits_implicitly or facts.create_select):
        return frozenset()
    if engines and _KEEPS_ENGINE.match(statement) and not facts.moves and named_engine(statement) is None:
        return frozenset()
    return None if facts.may_define_any else facts.defines | facts.dropped_triggers
