"""Transactions that an operator ordered to skip: recorded with who, when, why, and their events.

An order is written with all positions locked, as a stop is (orders.py). The events are kept as a small binlog file, so
that a skipped transaction can be read (``mysqlbinlog``) and replayed after its window's files are removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Engine, Row, delete, insert, select

from binlane.errors import PositionError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.state.channels import read_channel
from binlane.state.orders.giving import giving_order
from binlane.state.positions import LanePosition, lane_positions
from binlane.state.tables import NOW, UTC_NOW, skipped_events, skips
from binlane.state.windows import Window, required_window

if TYPE_CHECKING:
    from typing import Any

    from pymysql.cursors import Cursor

REQUESTED: Final = "requested"
SKIPPED: Final = "skipped"
REPLAYED: Final = "replayed"
ALL_LANES: Final = -1
"""The recorded lane of a transaction in a block that all parallel lanes share: each of them skips it."""
_PART: Final = 512 << 10
"""Bytes of events in one row: far below every max_allowed_packet."""
_PARTS: Final = 32
"""Rows of events that are read at once."""


@dataclass(frozen=True, slots=True)
class SkipRequest:
    """A transaction to skip."""

    seqno: int
    lane: int
    gtid: str
    source: LogPosition
    commit_time: float
    summary: str
    """A description of its changes."""
    log: bytes
    """Its events, as a binlog file."""
    lanes: tuple[int, ...]
    """The lanes that apply its changes, ascending; at least one."""
    is_shared: bool
    """All parallel lanes share its block, so each of them skips it."""


@dataclass(frozen=True, slots=True)
class Skip:
    """A recorded order."""

    seqno: int
    window_id: str
    lane: int
    """``ALL_LANES`` if all parallel lanes share its block."""
    gtid: str
    source: LogPosition
    commit_time: float
    summary: str
    bytes: int
    sha256: str
    reason: str
    by: str
    at: str
    """UTC, by the target's clock."""
    state: str
    state_at: str


def mark_skipped(cursor: Cursor, channel: str, seqno: int, *, has_changes: bool) -> None:
    """Record that the transaction was skipped, in the transaction that moves the position past it.

    ``has_changes``: of the lane that skips it. Of a transaction that lanes share, a lane without changes proves nothing
    for the others: until the first lane with changes has skipped it, the order can be cancelled.
    """
    cursor.execute(
        f"UPDATE binlane.skips SET state = 'skipped', state_at = {UTC_NOW} WHERE channel = %s AND seqno = %s "
        "AND (lane <> %s OR %s)",
        (channel, seqno, ALL_LANES, has_changes),
    )


def mark_replayed(cursor: Cursor, channel: str, seqno: int) -> bool:
    """Record that the transaction is replayed, in the transaction that replays it. False if it was not skipped."""
    return (
        cursor.execute(
            f"UPDATE binlane.skips SET state = 'replayed', state_at = {UTC_NOW} "
            "WHERE channel = %s AND seqno = %s AND state = 'skipped'",
            (channel, seqno),
        )
        == 1
    )


def request_skips(
    engine: Engine, window: Window, requests: Sequence[SkipRequest], *, reason: str, by: str
) -> tuple[int, ...]:
    """Record all orders or none; returns the seqnos that had no order before. An existing order stays unchanged.

    Raises PositionError if the window is no longer open, or for a transaction that is applied or may be running.
    """
    channel = window.bounds.channel
    with giving_order(engine, channel) as connection:
        read_channel(connection, channel, for_update=True)
        current = required_window(connection, channel, window.bounds.window_id, for_update=True)
        _check_ahead(lane_positions(connection, channel, for_update=True), current, requests)
        known = {skip.seqno for skip in read_skips(connection, channel)}
        new = [request for request in requests if request.seqno not in known]
        for request in new:
            connection.execute(insert(skips).values(_values(current, request, reason, by)))
            for part, begin in enumerate(range(0, len(request.log), _PART)):
                data = request.log[begin : begin + _PART]
                connection.execute(
                    insert(skipped_events).values(channel=channel, seqno=request.seqno, part=part, data=data)
                )
        return tuple(request.seqno for request in new)


def _check_ahead(lanes: Sequence[LanePosition], window: Window, requests: Sequence[SkipRequest]) -> None:
    channel = window.bounds.channel
    at, begun = {lane.lane: lane.seqno for lane in lanes}, {lane.lane: lane.begun for lane in lanes}
    for request in requests:
        where = f"channel {channel}, window {window.bounds.window_id}, lane {request.lane}, seqno {request.seqno}"
        passed = [lane for lane in request.lanes if window.is_finished or at.get(lane, request.seqno) >= request.seqno]
        if passed == list(request.lanes):
            raise PositionError(
                f"{where}: it is applied already (the lane stands at {at.get(passed[0])}), so it cannot be "
                "skipped; undo it on the target by hand if it must not be there"
            )
        if passed:
            raise PositionError(
                f"{where}: its shard is divided, and lanes {passed} have applied their share of it already, so it "
                "cannot be skipped as a whole; correct the row that stops the other lanes on the target by hand, and "
                "run the channel again"
            )
        if any(begun.get(lane) == request.seqno for lane in request.lanes):
            raise PositionError(
                f"{where}: it is a DDL that runs now, or whose worker died while it ran, so it cannot be skipped: look "
                f"on the target whether it has run, and answer with `binlane decide {channel} {request.seqno}` if the "
                "channel asks"
            )


def has_skips(connection: Connection, channel: str) -> bool:
    """Whether an operator has ever ordered to skip a transaction, and not cancelled it."""
    return connection.execute(select(skips.c.seqno).where(skips.c.channel == channel).limit(1)).first() is not None


def cancel_skip(engine: Engine, channel: str, seqno: int) -> None:
    """Cancel an order. Raises PositionError if there is none, or the transaction has been skipped already."""
    with giving_order(engine, channel) as connection:
        read_channel(connection, channel, for_update=True)
        lane_positions(connection, channel, for_update=True)
        gone = connection.execute(
            delete(skips).where(skips.c.channel == channel, skips.c.seqno == seqno, skips.c.state == REQUESTED)
        )
        if gone.rowcount != 1:
            raise PositionError(
                f"channel {channel}, seqno {seqno}: expected an order to skip it that was not carried out yet, found "
                f"none; `binlane skip {channel} --list` shows all orders"
            )
        connection.execute(
            delete(skipped_events).where(skipped_events.c.channel == channel, skipped_events.c.seqno == seqno)
        )


def read_skips(connection: Connection, channel: str) -> tuple[Skip, ...]:
    """All orders of the channel, by seqno."""
    rows = connection.execute(select(skips).where(skips.c.channel == channel).order_by(skips.c.seqno))
    return tuple(map(_skip, rows))


def read_newest_skips(connection: Connection, channel: str, limit: int) -> tuple[Skip, ...]:
    """The orders of the channel's newest transactions, the newest first."""
    rows = connection.execute(
        select(skips).where(skips.c.channel == channel).order_by(skips.c.seqno.desc()).limit(limit)
    )
    return tuple(map(_skip, rows))


def read_skip(connection: Connection, channel: str, seqno: int) -> tuple[Skip, bytes]:
    """An order and its events as a binlog file. Raises PositionError if there is no order or the events are damaged."""
    row = connection.execute(select(skips).where(skips.c.channel == channel, skips.c.seqno == seqno)).one_or_none()
    if row is None:
        raise PositionError(f"channel {channel}: seqno {seqno} was never skipped; `binlane skip {channel} --list`")
    log = b"".join(_parts(connection, channel, seqno))
    if hashlib.sha256(log).hexdigest() != row.sha256:
        raise PositionError(f"channel {channel}, seqno {seqno}: its recorded events were changed or are incomplete")
    return _skip(row), log


def _parts(connection: Connection, channel: str, seqno: int) -> Iterator[bytes]:
    """The events of an order, some parts by each statement: an answer to who only looks has a limit."""
    column, begin = skipped_events.c.part, 0
    of_order = select(skipped_events.c.data).where(skipped_events.c.channel == channel, skipped_events.c.seqno == seqno)
    while True:
        several = of_order.where(column >= begin, column < begin + _PARTS).order_by(column)
        found = connection.execute(several).scalars().all()
        yield from found
        if len(found) < _PARTS:
            return
        begin += _PARTS


def _values(window: Window, request: SkipRequest, reason: str, by: str) -> dict[str, object]:
    return {
        "channel": window.bounds.channel,
        "seqno": request.seqno,
        "window_id": window.bounds.window_id,
        "lane": ALL_LANES if request.is_shared else request.lane,
        "gtid": request.gtid,
        "source_file": request.source.file,
        "source_offset": request.source.offset,
        "commit_time": request.commit_time,
        "summary": request.summary,
        "bytes": len(request.log),
        "sha256": hashlib.sha256(request.log).hexdigest(),
        "reason": reason,
        "by_whom": by[:255],
        "at": NOW,
        "state": REQUESTED,
        "state_at": NOW,
    }


def _skip(row: Row[Any]) -> Skip:
    return Skip(
        seqno=row.seqno,
        window_id=row.window_id,
        lane=row.lane,
        gtid=row.gtid,
        source=LogPosition(row.source_file, row.source_offset),
        commit_time=row.commit_time,
        summary=row.summary,
        bytes=row.bytes,
        sha256=row.sha256,
        reason=row.reason,
        by=row.by_whom,
        at=str(row.at),
        state=row.state,
        state_at=str(row.state_at),
    )
