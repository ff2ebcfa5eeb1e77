"""A QUERY event's statement as its source has executed it: the one door from a log to what a statement is about.

Whoever reads a log asks here. A reader of its own would take a comment for words, or words for a comment, that the
source has read the other way, and see the change of another table.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.query import Query
from binlane.model import Flavor
from binlane.sql.analyzed_statement import executed
from binlane.sql.other_readings import require_one_reading
from binlane.sql.plain_statement import plain
from binlane.sql.server_composed import in_its_charset
from binlane.sql.shared_reading import AmbiguousTextError, Reader, as_read_by_source


def executed_query(query: Query, source: Reader, target: Flavor) -> Query:
    """The plain statement that the source has executed and that a target of that family reads as it did. Raises
    AmbiguousTextError."""
    context = in_its_charset(query.sql, query.context, source.flavor, source.version)
    # with its comments: what the log's reading takes for one may be what the source has executed
    readings = require_one_reading(query.sql, context, source)
    if readings:
        context = replace(context, logged_text=b64encode(query.sql).decode(), other_readings=readings)
    sql = as_read_by_source(query.sql, context, source, target)
    sql = plain(executed(sql, context, source.flavor), context, source.flavor)
    return replace(query, sql=sql, context=context)


def logged_query(query: Query, log_format: FormatDescription) -> Query | None:
    """The plain statement that the source has executed; None if nobody can tell."""
    flavor = log_format.flavor
    try:
        return executed_query(query, Reader(flavor, log_format.version), flavor)
    except AmbiguousTextError:
        return None
