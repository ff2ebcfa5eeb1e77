"""Errors of lanes, and the whole state of a channel in one value, for status and board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from sqlalchemy import Connection, Engine, Row, Select, and_, delete, func, insert, select

from binlane.lazy_dataclass import dataclass
from binlane.model import BlockHeader, LogPosition, plural
from binlane.state.carried.prepared import OpenXa, read_open_xa
from binlane.state.channels import Channel, read_channel
from binlane.state.leases import Heartbeat, holder, lease_name, read_heartbeats
from binlane.state.orders.skips import REQUESTED, Skip, read_skips
from binlane.state.positions import LanePosition, PlanKey, lane_positions
from binlane.state.records.conflicts import count_conflicts
from binlane.state.records.coverage import CoverageRow, read_covered
from binlane.state.records.ddl_intents import DdlIntent, read_undecided
from binlane.state.records.verifications import (
    Unshown,
    count_drifted,
    count_suspects,
    last_ended,
    oldest_pending,
    unshown_rows,
    verified_through,
)
from binlane.state.tables import NOW, errors, positions
from binlane.state.windows import Window, read_open_window

WHOLE_WINDOW: Final = -1
"""In place of a lane."""


@dataclass(frozen=True, slots=True)
class LaneError:
    """An error that stopped a lane; its row stops all other lanes of the window."""

    id: int
    window_id: str
    lane: int
    """``WHOLE_WINDOW``: the window was refused before it had a plan."""
    seqno: int
    gtid: str
    source: LogPosition
    code: int
    """The server's error number; 0 for binlane's own errors."""
    text: str
    at: str
    """UTC, by the target's clock."""


@dataclass(frozen=True, slots=True)
class ChannelStatus:
    """The state of a channel on the target."""

    channel: Channel
    window: Window | None
    """The open window; None if there is none."""
    positions: tuple[LanePosition, ...]
    heartbeats: tuple[Heartbeat, ...]
    errors: tuple[LaneError, ...]
    """The latest errors, newest first."""
    undecided: tuple[DdlIntent, ...]
    prepared: tuple[OpenXa, ...] = ()
    """XA transactions that are prepared at the watermark."""
    holders: Mapping[int, int] = field(default_factory=dict)
    """The connection that holds each lane's lease; no entry for a free lease."""
    skips: tuple[Skip, ...] = ()
    """Orders to skip that are not carried out yet."""
    conflicts: Mapping[str, int] = field(default_factory=dict)
    """Conflicts by kind, of all windows of the channel."""
    verified: Mapping[str, int] = field(default_factory=dict)
    """By kind of verification, the highest seqno up to which both servers were found equal."""
    suspects: Mapping[str, int] = field(default_factory=dict)
    """Rows that a verification found different, by state."""
    drifted: int = 0
    """Those that were drift once and have not been found equal since."""
    covered: CoverageRow = field(default_factory=CoverageRow)
    """What verifications have compared."""
    equal_rows: int = 0
    """Rows that the last verification has proved equal."""
    pending_since: str | None = None
    """When the oldest pending row was first found different; UTC, by the target's clock."""
    unshown: tuple[Unshown, ...] = ()
    """Those of the pending rows that a later verification may find pending again."""
    unsolved: frozenset[int] = frozenset()
    """The ids of the errors that the open window still has (``standing_error``)."""

    @property
    def low_water(self) -> int:
        """The target holds every transaction up to this seqno."""
        marks = [lane.seqno for lane in self.positions] if self.window is not None else []
        return min(marks, default=self.channel.watermark.seqno)

    @property
    def high_water(self) -> int:
        """The target holds no transaction after this seqno."""
        marks = [lane.seqno for lane in self.positions] if self.window is not None else []
        return max(marks, default=self.channel.watermark.seqno)


def standing(status: ChannelStatus, window: Window) -> str:
    """Whether an open window is being applied, as text, with the next step if it is not."""
    name = f"window {window.bounds.window_id}"
    if status.holders:
        return f"{name} is being applied (by {plural(len(status.holders), 'lane')})"
    return f"{name} is unfinished, and nobody applies it now: `binlane run {status.channel.name}` finishes it"


def read_status(engine: Engine, channel: str, rules: str = "", *, last_errors: int = 10) -> ChannelStatus:
    """The channel's status, read in one consistent snapshot; ``rules``: see ``read_covered``. Raises PositionError if
    there is no such channel."""
    with engine.begin() as connection:
        beats = read_heartbeats(connection, channel)
        found = read_channel(connection, channel)
        lanes = lane_positions(connection, channel)
        window = read_open_window(connection, channel)
        errors_found = read_errors(connection, channel, limit=last_errors)
        held = {lane.lane: holder(connection, lease_name(found.uuid, lane.lane)) for lane in lanes}
        return ChannelStatus(
            channel=found,
            window=window,
            positions=lanes,
            heartbeats=tuple(beats[lane] for lane in sorted(beats)),
            errors=errors_found,
            unsolved=_unsolved(connection, channel, window) if window is not None and errors_found else frozenset(),
            undecided=read_undecided(connection, channel),
            prepared=read_open_xa(connection, channel),
            holders={lane: connection_id for lane, connection_id in held.items() if connection_id is not None},
            skips=tuple(skip for skip in read_skips(connection, channel) if skip.state == REQUESTED),
            conflicts=count_conflicts(connection, channel),
            verified=verified_through(connection, channel),
            suspects=count_suspects(connection, channel),
            drifted=count_drifted(connection, channel),
            covered=read_covered(connection, channel, rules),
            equal_rows=0 if (last := last_ended(connection, channel)) is None else last.equal + last.logged,
            pending_since=oldest_pending(connection, channel),
            unshown=unshown_rows(connection, channel),
        )


def record_error(
    connection: Connection, key: PlanKey, lane: int, header: BlockHeader | None, code: int, message: str
) -> None:
    """Store the error that stopped a lane; the other lanes see the row and stop at their next block boundary."""
    source = LogPosition("", 0) if header is None else header.source
    stands_at = select(positions.c.seqno).where(
        positions.c.channel == key.channel, positions.c.lane == lane, positions.c.window_id == key.window_id
    )
    connection.execute(
        insert(errors).values(
            channel=key.channel,
            window_id=key.window_id,
            lane=lane,
            seqno=0 if header is None else header.first_seqno,
            reached=func.coalesce(stands_at.scalar_subquery(), 0),
            gtid="" if header is None else header.gtid,
            source_file=source.file,
            source_offset=source.offset,
            code=code,
            text=message,
            at=NOW,
        )
    )


def forget_refusals(connection: Connection, channel: str, window_id: str) -> None:
    """Delete what ``WHOLE_WINDOW`` errors say of a window: only the last one counts."""
    of_window = errors.c.channel == channel, errors.c.window_id == window_id
    connection.execute(delete(errors).where(*of_window, errors.c.lane == WHOLE_WINDOW))


def last_error_id(connection: Connection, channel: str) -> int:
    """The id of the channel's newest error, 0 if it has none."""
    newest = connection.execute(select(func.max(errors.c.id)).where(errors.c.channel == channel)).scalar_one()
    return 0 if newest is None else int(newest)


def standing_error(connection: Connection, channel: str, window: Window) -> LaneError | None:
    """The newest error of a window that its lane has not passed since: the lane has not moved, or is still before it;
    of the window as a whole, if it has no plan since.

    A block's error names the block's first seqno, and a stop or a skip can leave a lane inside the block: only a
    later move of the position says that the lane has passed it.
    """
    query = _standing(select(errors), channel, window).order_by(errors.c.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else _error(row)


def _unsolved(connection: Connection, channel: str, window: Window) -> frozenset[int]:
    return frozenset(connection.execute(_standing(select(errors.c.id), channel, window)).scalars())


def _standing(query: Select[Any], channel: str, window: Window) -> Select[Any]:
    has_passed = select(positions.c.lane).where(
        positions.c.channel == errors.c.channel,
        positions.c.lane == errors.c.lane,
        positions.c.window_id == errors.c.window_id,
        positions.c.seqno >= errors.c.seqno,
        positions.c.seqno > errors.c.reached,
    )
    stands = ~has_passed.exists()
    if window.plan_digest is not None:
        stands = and_(stands, errors.c.lane != WHOLE_WINDOW)
    return query.where(errors.c.channel == channel, errors.c.window_id == window.bounds.window_id, stands)


def read_errors(connection: Connection, channel: str, *, after: int = 0, limit: int = 10) -> tuple[LaneError, ...]:
    """Errors with an id greater than ``after``, newest first."""
    rows = connection.execute(
        select(errors).where(errors.c.channel == channel, errors.c.id > after).order_by(errors.c.id.desc()).limit(limit)
    )
    return tuple(map(_error, rows))


def _error(row: Row[Any]) -> LaneError:
    return LaneError(
        id=row.id,
        window_id=row.window_id,
        lane=row.lane,
        seqno=row.seqno,
        gtid=row.gtid,
        source=LogPosition(row.source_file, row.source_offset),
        code=row.code,
        text=row.text,
        at=str(row.at),
    )
