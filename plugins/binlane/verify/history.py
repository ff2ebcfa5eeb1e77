"""The history of system-versioned tables: rows that an UPDATE or a DELETE has left behind.

They have no key, and a server sets their periods itself, so both servers count and hash all of them, without periods.
Only rows count whose period has ended before the second up to which the target has the source's changes: later ones it
need not have. The target's own periods do not tell it: a repair or a copy has set some of them to its own time.
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
    """How the history differs; None if it is equal, or if not both servers keep one. ``seconds``: the source's time up
    to which the target has its changes, 0 before the first transaction."""
    source, target = schemas[0].table(table.source), schemas[1].table(table.target)
    if source is None or target is None or not (source.system_versioned and target.system_versioned):
        return None
    ends = next((one for one in target.columns if one.generated is Generated.ROW_END), None)
    name = identifier("row_end" if ends is None else ends.name)
    if ends is not None and not ends.data_type.startswith("timestamp"):
        # by transaction ids, which are each server's own
        where = f"{name} < 18446744073709551615"
    else:
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
