"""Rows that stay pending from verification to verification: no log shows what changes them, or which rows they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from binlane.model import plural
from binlane.schema.shell_names import shell_name
from binlane.state.records.verifications import BY_FOREIGN_KEYS, BY_STATEMENTS, WITHOUT_KEY, Unshown

_SHOWN: Final = 3
"""Tables that are named."""
_AS_LONG: Final = (
    "change without showing the rows in the log: pending for as long as this goes on behind every watermark"
)
_CAUSES: Final[Mapping[str, tuple[str, str]]] = {
    BY_STATEMENTS: (
        f"which statements {_AS_LONG}",
        "log rows instead (binlog_format = ROW on the source), or verify while they pause",
    ),
    BY_FOREIGN_KEYS: (
        f"which foreign keys {_AS_LONG}",
        "verify while no parent row is deleted or gets another key",
    ),
    WITHOUT_KEY: (
        "without a primary key that both servers order alike: the source goes on adding or removing equal rows, which "
        "only their values tell apart",
        "verify them while they are quiet (`binlane verify {channel} --full {tables}`), or copy them again (`binlane "
        "recopy {channel} {tables}`)",
    ),
}


def told(rows: Sequence[Unshown], channel: str) -> tuple[str, ...]:
    """For each cause a line, that of the oldest row first: how many rows of which tables are pending, why, and what to
    do."""
    return tuple(_line(note, _of(note, rows), channel) for note in _notes(rows))


def _notes(rows: Sequence[Unshown]) -> Iterable[str]:
    return dict.fromkeys(each.note for each in sorted(rows, key=lambda each: (each.since == "", each.since)))


def _of(note: str, rows: Sequence[Unshown]) -> list[Unshown]:
    return [each for each in rows if each.note == note]


def _way_out(note: str, rows: Sequence[Unshown], channel: str) -> str:
    # those that the line names; the next verification names others
    tables = list(dict.fromkeys(shell_name(each.table) for each in rows))[:_SHOWN]
    return _CAUSES[note][1].format(channel=channel, tables=" ".join(f"--table {each}" for each in tables))


def _line(note: str, rows: Sequence[Unshown], channel: str) -> str:
    cause, way_out = _CAUSES[note][0], _way_out(note, rows, channel)
    since = min((each.since for each in rows if each.since), default="").partition(".")[0]
    pending = f"{plural(sum(each.rows for each in rows), 'row')} pending{f' since {since} UTC' if since else ''}"
    return f"{pending} in {names(rows)}, {cause}; {way_out}"


def names(rows: Sequence[Unshown]) -> str:
    """The tables with the most rows."""
    tables = list(dict.fromkeys(str(each.table) for each in rows))
    more = f" and {plural(len(tables) - _SHOWN, 'other table')}" if len(tables) > _SHOWN else ""
    return f"{', '.join(tables[:_SHOWN])}{more}"


def ways_out(rows: Sequence[Unshown], channel: str) -> str:
    """What to do, for all causes."""
    found = (_way_out(note, _of(note, rows), channel) for note in _notes(rows))
    return "; ".join(f"{each[:1].upper()}{each[1:]}" for each in found)
