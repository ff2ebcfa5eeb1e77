"""Rows that stay pending although one verification follows another, because no log shows what changes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from binlane.model import plural
from binlane.state.records.verifications import BY_FOREIGN_KEYS, BY_STATEMENTS, Unshown

_SHOWN: Final = 3
"""Tables that are named."""
_CAUSES: Final[Mapping[str, tuple[str, str]]] = {
    BY_STATEMENTS: (
        "statements change",
        "log rows instead (binlog_format = ROW on the source), or verify while they pause",
    ),
    BY_FOREIGN_KEYS: ("foreign keys change", "verify while no parent row is deleted or gets another key"),
}


def told(rows: Sequence[Unshown]) -> tuple[str, ...]:
    """For each cause a line: how many rows of which tables are pending again, why, and what to do."""
    return tuple(_line(note, [each for each in rows if each.note == note]) for note in dict.fromkeys(_notes(rows)))


def _notes(rows: Sequence[Unshown]) -> list[str]:
    return [each.note for each in rows]


def _line(note: str, rows: Sequence[Unshown]) -> str:
    cause, way_out = _CAUSES[note]
    count, since = sum(each.rows for each in rows), min(each.since for each in rows).partition(".")[0]
    return (
        f"{plural(count, 'row')} pending since {since} UTC in {names(rows)}, which {cause} without showing the rows in "
        f"the log: pending for as long as this goes on behind every watermark; {way_out}"
    )


def names(rows: Sequence[Unshown]) -> str:
    """The tables with the most rows."""
    tables = list(dict.fromkeys(str(each.table) for each in rows))
    more = f" and {plural(len(tables) - _SHOWN, 'other table')}" if len(tables) > _SHOWN else ""
    return f"{', '.join(tables[:_SHOWN])}{more}"


def ways_out(rows: Sequence[Unshown]) -> str:
    """What to do, for all causes."""
    found = (_CAUSES[note][1] for note in dict.fromkeys(_notes(rows)))
    return "; ".join(f"{each[:1].upper()}{each[1:]}" for each in found)
