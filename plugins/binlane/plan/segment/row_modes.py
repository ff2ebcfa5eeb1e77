"""Modes, time zones and locales of MySQL's sessions in which a replica computes generated columns of their rows.

The BEGIN of a transaction of rows holds the session's ``sql_mode``, its time zone if the first statement has used it,
and its ``lc_time_names`` unless they are en_US. Of plain transactions it is read here, many at a
time; ``decode`` reads it of all others. The modes are noted for the precheck as well: not every way of writing rows can
keep to them (``precheck.generated_columns``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from binlane.binlog.events import Query, parse_body
from binlane.binlog.vector.arrays import Ints, distinct
from binlane.binlog.wire import HEADER, EventType
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.plan.block.computed_modes import LOCALE, ZONE, ModeRules, Session
from binlane.plan.segment.columns import INSERT, Run, SegmentColumns
from binlane.plan.segment.lane_writer import sees_modes
from binlane.plan.transaction.parts import Part, RowsPart
from binlane.sql.requirements import COMPUTED_LOCALE, COMPUTED_MODE, COMPUTED_ZONE, Requirement
from binlane.sql.sql_modes import evaluated

_OTHERS: Final = ZONE | LOCALE
_OTHERS_AT: Final = 48
"""The bit at which the place of a time zone and a locale begins."""
_Others = tuple[tuple[str | None, int | None], ...]
_NO_OTHERS: Final[_Others] = ((None, None),)
NO_MODE: Final = -1
"""In place of a transaction's modes: its rows see none."""
_POST_HEADER: Final = 13
"""Bytes of QUERY's post-header since MySQL 5.0; before, there are no status variables."""
_FLAGS2, _SQL_MODE = 0, 1
_HEAD: Final = 6
"""Bytes of the status variables before the value of sql_mode: the code and 4 bytes of flags2, the code of sql_mode."""


@dataclass(frozen=True, slots=True)
class RowModes:
    """The modes of the transactions of a segment."""

    rules: ModeRules
    seeing: Ints
    """How many events with rows that see a mode are before each event; one entry more than there are events."""
    events: Ints
    """The QUERY events, ascending."""
    bits: Ints
    """The modes of each; above them the place of its time zone and locale in ``others``."""
    others: _Others = _NO_OTHERS

    @classmethod
    def of(cls, columns: SegmentColumns, rules: ModeRules) -> RowModes | None:
        """None if the log's rows have no modes, or none of its tables sees any."""
        if columns.log.format.flavor is not Flavor.MYSQL:
            return None
        sees = np.array([rules.sees(TableKey(table.database, table.table)) for table in columns.tables], np.bool_)
        if not sees.any():
            return None
        rows = np.flatnonzero(columns.role >= INSERT)
        is_seeing = np.zeros(columns.role.size, np.int64)
        is_seeing[rows] = sees[columns.number[rows]]
        events, bits = _found(columns, rules.bits)
        others = _NO_OTHERS
        if rules.bits & _OTHERS:
            others, places = _others(columns, events, np.flatnonzero(is_seeing))
            bits = bits | places << _OTHERS_AT
        return cls(rules, np.concatenate(([0], np.cumsum(is_seeing))), events, bits, others)

    def seen(self, mode: int) -> int:
        """What ``Session.seen`` gives for a number of ``of_events``."""
        return Session(mode & (1 << _OTHERS_AT) - 1, *self.others[mode >> _OTHERS_AT]).seen(self.rules.bits)

    def of_events(self, first: Ints, end: Ints) -> Ints:
        """The modes of plain transactions with the events [first, end), or ``NO_MODE``."""
        at = np.searchsorted(self.events, first)
        is_seeing = (self.seeing[end] > self.seeing[first]) & (at < self.events.size)
        modes = np.full(first.size, NO_MODE, np.int64)
        places = at[is_seeing]
        # each has one QUERY, its BEGIN
        modes[is_seeing] = np.where(self.events[places] < end[is_seeing], self.bits[places], NO_MODE)
        return modes

    def asked_by(self, run: Run) -> Iterator[tuple[Requirement, int]]:
        """What the rows of a run ask for, each with its first seqno."""
        modes, first = np.unique(self.of_events(run.first, run.end), return_index=True)
        for mode, place in zip(modes.tolist(), first.tolist(), strict=True):
            if mode != NO_MODE:
                yield from ((each, run.seqno + place) for each in _asked(self.seen(mode)))


def asked(parts: Iterable[Part], rules: ModeRules) -> Iterator[Requirement]:
    """What the rows of a decoded transaction ask for."""
    parts = tuple(parts)
    if sees_modes(parts, rules):
        tables = [part.table for part in parts if isinstance(part, RowsPart)]
        for mode, zone, locale in {(each.sql_mode, each.time_zone, each.lc_time_names) for each in tables}:
            if mode is not None:
                yield from _asked(Session(mode, zone, locale).seen(rules.bits))


def _asked(seen: int) -> Iterator[Requirement]:
    session = Session.of(seen)
    yield Requirement(COMPUTED_MODE, "session", ",".join(evaluated(session.mode)))
    if seen & ZONE:
        yield Requirement(COMPUTED_ZONE, "session", session.zone or "")
    if session.locale is not None:
        yield Requirement(COMPUTED_LOCALE, "session", str(session.locale))


def _others(columns: SegmentColumns, events: Ints, seeing: Ints) -> tuple[_Others, Ints]:
    """The time zones and locales that are logged for rows that see one, and the place of that of each QUERY event;
    ``seeing``: the events with such rows."""
    frames, log_format = columns.frames, columns.reader.format
    places, others = np.zeros(events.size, np.int64), dict[tuple[str | None, int | None], int]({(None, None): 0})
    begins = np.searchsorted(events, seeing) - 1
    for place in distinct(begins[begins >= 0]).tolist():
        query = parse_body(frames.raw(int(events[place])), log_format, columns.reader.name)
        assert isinstance(query, Query)
        other = query.context.time_zone, query.context.lc_time_names
        places[place] = others.setdefault(other, len(others))
    return tuple(others), places


def _found(columns: SegmentColumns, wanted: int) -> tuple[Ints, Ints]:
    """The QUERY events, ascending, and the ``wanted`` bits of each one's mode."""
    frames, nothing = columns.frames, np.empty(0, np.int64)
    head = columns.reader.format.post_header_length(EventType.QUERY)
    if head < _POST_HEADER:
        return nothing, nothing
    events = np.flatnonzero(frames.type_code == EventType.QUERY)
    at = frames.offset[events] + HEADER.size + head
    fits = at + _HEAD + 8 <= frames.offset[events] + frames.size[events]
    events, at = events[fits], at[fits]
    data = frames.data
    leads = (data[at] == _FLAGS2) & (data[at + _HEAD - 1] == _SQL_MODE)
    events, at = events[leads], at[leads]
    bits = np.zeros(events.size, np.int64)
    for place in range(5):
        bits |= data[at + _HEAD + place].astype(np.int64) << (8 * place)
    return events, bits & wanted
