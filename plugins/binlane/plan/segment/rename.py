"""``[rename]`` over a segment's tables; ``transaction.rename`` does the same part by part."""

from __future__ import annotations

from collections.abc import Sequence

from binlane.binlog.rows_payload import DEFINITION
from binlane.binlog.table_map import FLAGS_IN_BODY, TABLE_ID_AND_FLAGS, TableMap
from binlane.binlog.vector.frames import Frames, TableIndex
from binlane.binlog.wire import HEADER
from binlane.plan.segment.filter import TableVerdicts
from binlane.plan.transaction.decode import LogFormat, not_renamed
from binlane.plan.transaction.rename import renamed_map, renamed_table


def renamed_tables(
    log: LogFormat, frames: Frames, index: TableIndex, logged: Sequence[TableMap], verdicts: TableVerdicts
) -> Sequence[TableMap]:
    """The tables with their names on the target; tables that the filter leaves out keep the source's names.

    Raises UnsupportedEventError for a database without a valid name of its own on the target.
    """
    if not log.renaming:
        return logged
    found = []
    for number, table in enumerate(logged):
        if verdicts.all_rows[number] is not None:
            found.append(table)
            continue
        if (why := log.renaming.refusal(table.database)) is not None:
            raise not_renamed(log, frames.raw(int(index.first[number])), why)
        found.append(renamed_table(table, log.renaming))
    return found


def definition(frames: Frames, event: int, table: TableMap) -> bytes:
    """The body of a TABLE_MAP behind its table id, with the database name of ``table``."""
    body = bytes(frames.body(event))
    length = body[TABLE_ID_AND_FLAGS]
    if body[TABLE_ID_AND_FLAGS + 1 :][:length] == table.raw_database:
        return body[FLAGS_IN_BODY:]
    return renamed_map(bytes(HEADER.size) + body, table.raw_database)[DEFINITION]
