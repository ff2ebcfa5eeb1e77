"""The history of system-versioned tables: rows that an UPDATE or a DELETE has left behind.

They have no key, and a server sets their periods itself, so both servers count and hash all of them, without periods.
Only rows count whose period has ended before the second of the watermark, or before the last change that the target
itself has of the table: later ones it need not have. The watermark's time is what the last transaction's session said,
and may be long past (SET TIMESTAMP, a clock that was set back).
"""

from __future__ import annotations

from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.model import plural
from binlane.schema.model import Generated, Schema
from binlane.verify.rows.column_text import ComparedTable
from binlane.verify.rows.sides import Difference, Pair

HISTORY: Final = "history: "
"""The beginning of the note of a difference in a table's history."""


def history_difference(
    pair: Pair, table: ComparedTable, schemas: tuple[Schema, Schema], seconds: float
) -> Difference | None:
    """How the history differs; None if it is equal, or if not both servers keep one. ``seconds``: the source's time at
    the watermark, 0 before the first transaction."""
    source, target = schemas[0].table(table.source), schemas[1].table(table.target)
    if source is None or target is None or not (source.system_versioned and target.system_versioned):
        return None
    ends = next((one for one in target.columns if one.generated is Generated.ROW_END), None)
    begins = next((one for one in target.columns if one.generated is Generated.ROW_START), None)
    name = identifier("row_end" if ends is None else ends.name)
    if ends is not None and not ends.data_type.startswith("timestamp"):
        # by transaction ids, which are each server's own
        where = f"{name} < 18446744073709551615"
    else:
        if seconds:
            seconds = max(
                seconds, _last_change(pair, table, identifier("row_start" if begins is None else begins.name), name)
            )
        where = f"{name} < FROM_UNIXTIME({int(seconds)})" if seconds else f"{name} < NOW(6)"
    ours, theirs = pair.history(table, where)
    if ours == theirs:
        return None
    other = "" if ours[0] != theirs[0] else ", with other values"
    note = (
        f"{HISTORY}{plural(ours[0], 'row')} on the source, {theirs[0]:,} on the target{other}: no statement writes "
        "history; load the table from a physical backup of the source"
    )
    return Difference(table.target, (), None, None, note=note, is_of_history=True)


def _last_change(pair: Pair, table: ComparedTable, begins: str, ends: str) -> float:
    """The time of the target's last change of a table that is not in the future: a version's end, or the beginning of
    one that has not ended. ``begins``, ``ends``: the quoted columns of the period."""
    target = pair.sides[1]
    last = f"UNIX_TIMESTAMP(MAX(IF({ends} < NOW(6), {ends}, {begins})))"
    rows = f"{target.name(table)} FOR SYSTEM_TIME ALL WHERE {begins} < NOW(6)"
    [(found,)] = target.texts(f"SELECT {last} FROM {rows}")
    return 0.0 if found is None else float(found)
