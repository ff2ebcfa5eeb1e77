"""Windows: one open window a channel, guarded by compare-and-set on the target.

A window is opened with its end (docs/invariants.md, 7), gets its plan's digest before the first block, and is finished
by moving the watermark to its end when every lane with work is at its last seqno and the row counts agree (4, 5). A
graceful stop moves the watermark once more, before that, into the window (stops.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Engine, Row, case, delete, func, insert, literal_column, select, update

from binlane.errors import PlanError, PositionError, SourceIdentityError, StopRequestedError, WindowBusyError
from binlane.lazy_dataclass import dataclass
from binlane.model import CLOCKS_DIFFER, FolderRecord, LogPosition, RowCounts, plural
from binlane.plan.manifest import Manifest
from binlane.plan.window_facts import WindowFacts, facts_of
from binlane.plan.window_plan import WindowPlan
from binlane.sessions.server_proof import is_another_source
from binlane.state.channels import NO_SESSIONS, Channel, Watermark, is_table, read_channel, watermark_values
from binlane.state.json_columns import optional_value_of, text_of, value_of
from binlane.state.positions import LanePosition, lane_positions, place_lanes
from binlane.state.splits import Split, read_splits
from binlane.state.tables import NOW, channels, windows

OPEN: Final = "open"
FINISHED: Final = "finished"


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """A window as extraction found it; stored by compare-and-set before the plan is made."""

    channel: str
    window_id: str
    source_identity: str
    first_seqno: int
    last_seqno: int
    end: LogPosition
    end_gtid_set: str
    end_time: float
    end_fingerprint: str
    work: FolderRecord
    """Where the window's folder was when the window was opened."""

    @classmethod
    def of(cls, manifest: Manifest, work: str, digests: Mapping[str, str] | None = None) -> WindowBounds:
        """The bounds of an extracted window whose files are in the folder ``work``, and have these digests."""
        return cls(
            channel=manifest.channel,
            window_id=manifest.window,
            source_identity=manifest.identity,
            first_seqno=manifest.first_seqno,
            last_seqno=manifest.last_seqno,
            end=manifest.end,
            end_gtid_set=manifest.gtid_set,
            end_time=manifest.end_time,
            end_fingerprint=manifest.fingerprint,
            work=FolderRecord(work, digests),
        )


@dataclass(frozen=True, slots=True)
class Window:
    """A window's row."""

    bounds: WindowBounds
    number: int
    state: str
    lanes: int | None
    plan_digest: str | None
    totals: RowCounts | None
    stop_at: int | None
    summary: str | None
    start: Watermark
    """The watermark at the window's beginning."""
    reached: int
    """The watermark's seqno; smaller than the window's first seqno unless a stop has moved it into the window."""
    block_transactions: int | None = None
    """Source transactions a block in the plan; None before there is a plan."""
    facts: str | None = None
    """The plan's ``WindowFacts`` as JSON; None before there is a plan."""

    @property
    def lanes_with_work(self) -> tuple[int, ...]:
        """The lanes that have a position while the window is open. Raises PlanError for facts of another version."""
        assert self.lanes is not None, "a window with a digest has lanes"
        if self.facts is None:
            return tuple(range(self.lanes + 1))
        return WindowFacts.from_json(self.facts).lanes_with_work

    @property
    def is_finished(self) -> bool:
        """Whether the watermark is at the window's end."""
        return self.state == FINISHED


def open_window(engine: Engine, bounds: WindowBounds, begin: LogPosition | None = None) -> Window:
    """Store a window's bounds as the channel's open window. If the same window exists, open or finished, return it.

    ``begin``: the place from which the log was read; None: not checked. A window whose files are lost is read again
    from the watermark, and from another place, even an equivalent one, its segments would be others.

    Raises WindowBusyError if another window is open or this one has different bounds, SourceIdentityError if the source
    is not the channel's, PositionError if the window does not begin at the watermark.
    """
    with engine.begin() as connection:
        # the lock on the channel's row guarantees one open window a channel
        channel = read_channel(connection, bounds.channel, for_update=True)
        raise_if_stopped(channel)
        found = read_window(connection, bounds.channel, bounds.window_id)
        if found is not None and found.is_finished:
            return found
        current = read_open_window(connection, bounds.channel)
        if current is not None:
            return _same_window(current, bounds)
        _check_begin(channel, bounds, begin)
        connection.execute(
            insert(windows).values(
                **_bounds_values(bounds),
                start=text_of(channel.watermark),
                reached=channel.watermark.seqno,
                number=channel.windows + 1,
                state=OPEN,
                created_at=NOW,
            )
        )
        connection.execute(
            update(channels)
            .where(channels.c.channel == bounds.channel)
            .values(windows=channels.c.windows + 1, source_identity=bounds.source_identity, updated_at=NOW)
        )
        return required_window(connection, bounds.channel, bounds.window_id)


def note_empty(engine: Engine, mark: Watermark, read: Manifest, through: float | None, *, moves: bool) -> None:
    """A run has read the log behind the watermark ``mark`` and found no transaction. If it has reached a newer file,
    the watermark ``moves`` there: a source that writes nothing for long may purge the files before.

    Nothing that the source committed before ``through`` (seconds since the epoch) is missing; None: the run cannot
    tell. Nothing happens if another run has moved the watermark or opened a window since.
    """
    values: dict[str, Any] = {"complete_at": NOW}
    if through is not None:
        # a later run may ask for an earlier end; a time beyond the clock is from a clock that was wrong
        known = func.coalesce(channels.c.complete_through, 0.0)
        # a thread of MariaDB that has written rows of the future stays there with NOW()
        latest = func.unix_timestamp(literal_column("SYSDATE(6)")) + CLOCKS_DIFFER
        credible = case((known > latest, 0.0), else_=known)
        values["complete_through"] = func.greatest(credible, func.least(through, latest))
    if moves and read.end.file != mark.source.file:
        values |= watermark_values(replace(mark, source=read.end, gtid_set=read.gtid_set, fingerprint=read.fingerprint))
        if read.restarted is not None:
            # no later window reads the place of the restart
            values |= NO_SESSIONS
    with engine.begin() as connection:
        channel = read_channel(connection, read.channel, for_update=True)
        if channel.watermark == mark and read_open_window(connection, channel.name) is None:
            connection.execute(update(channels).where(channels.c.channel == channel.name).values(**values))


def drop_unplanned(engine: Engine, window: Window) -> bool:
    """Delete an open window that has no plan, and therefore no change on the target. False if it is gone or another run
    has planned it since."""
    name = window.bounds.channel
    with engine.begin() as connection:
        read_channel(connection, name, for_update=True)
        return forget_unplanned(connection, name, window.bounds.window_id)


def forget_unplanned(connection: Connection, channel: str, window_id: str | None = None) -> bool:
    """The same in the caller's transaction, which has locked the channel's row; without ``window_id`` whichever window
    is open."""
    is_unplanned = (windows.c.channel == channel, windows.c.state == OPEN, windows.c.plan_digest.is_(None))
    is_this = () if window_id is None else (windows.c.window_id == window_id,)
    gone = connection.execute(delete(windows).where(*is_unplanned, *is_this))
    if gone.rowcount == 1:
        connection.execute(update(channels).where(channels.c.channel == channel).values(windows=channels.c.windows - 1))
    return gone.rowcount == 1


def raise_if_stopped(channel: Channel) -> None:
    """Raises StopRequestedError if the channel was asked to stop."""
    if channel.stopped is not None:
        raise StopRequestedError(
            f"channel {channel.name}: was asked to stop {channel.stopped}; `binlane resume {channel.name}` cancels the "
            "stop, then run the channel again"
        )


def _same_window(current: Window, bounds: WindowBounds) -> Window:
    if _content(current.bounds) == _content(bounds):
        return current
    raise WindowBusyError(
        f"channel {bounds.channel}: window {current.bounds.window_id} (seqnos {current.bounds.first_seqno}.."
        f"{current.bounds.last_seqno}, end {current.bounds.end}) is open; got window {bounds.window_id} (seqnos "
        f"{bounds.first_seqno}..{bounds.last_seqno}, end {bounds.end}); finish the open window first"
    )


def _content(bounds: WindowBounds) -> tuple[object, ...]:
    return (
        bounds.window_id,
        bounds.source_identity,
        bounds.first_seqno,
        bounds.last_seqno,
        bounds.end,
        bounds.end_gtid_set,
        bounds.end_fingerprint,
    )


def _check_begin(channel: Channel, bounds: WindowBounds, begin: LogPosition | None) -> None:
    if is_another_source(channel.source_identity, bounds.source_identity):
        raise SourceIdentityError(
            f"channel {channel.name}: its watermark belongs to source {channel.source_identity}, "
            f"the window was read from {bounds.source_identity}; nothing was stored"
        )
    if bounds.first_seqno != channel.watermark.seqno + 1 or bounds.last_seqno < bounds.first_seqno - 1:
        raise PositionError(
            f"channel {channel.name}: window {bounds.window_id} has seqnos {bounds.first_seqno}..{bounds.last_seqno}, "
            f"expected to begin at {channel.watermark.seqno + 1}, behind the watermark; extract the window again"
        )
    if begin not in (None, channel.watermark.source):
        raise PositionError(
            f"channel {channel.name}: window {bounds.window_id} was read from {begin}, and an empty run has moved the "
            f"watermark to {channel.watermark.source} since; extract the window again"
        )


def set_plan(
    engine: Engine,
    plan: WindowPlan,
    block_transactions: int | None = None,
    records: Sequence[Callable[[Connection, Window], None]] = (),
    plan_engine: str = "",
    folder: str = "the window's folder",
    digests: Mapping[str, str] | None = None,
    before: Mapping[str, str] | None = None,
) -> Window:
    """Store the plan's digest with the open window and set its lanes before its first seqno. Repeated: a no-op.

    Each of ``records`` is called once in that transaction, if the window had no plan. ``plan_engine``: what made the
    plan, for people; ``folder``: where the window's files are, for them, too; ``digests``: of all files that its lanes
    and the next window read; ``before``: those that were recorded when the plan was read, None if they are not known.

    Raises PlanError if the window has another plan or other bounds, PositionError if there is no such window,
    WindowBusyError if the plan is of other files than the window's.
    """
    with engine.begin() as connection:
        window = required_window(connection, plan.channel, plan.window_id, for_update=True)
        if (window.bounds.first_seqno, window.bounds.last_seqno) != (plan.first_seqno, plan.last_seqno):
            raise PlanError(
                f"channel {plan.channel}, window {plan.window_id}: stored with seqnos {window.bounds.first_seqno}.."
                f"{window.bounds.last_seqno}, the plan has {plan.first_seqno}..{plan.last_seqno}; run the plan "
                "job again"
            )
        if window.plan_digest is None and window.bounds.work.digests != before is not None:
            raise _was_faster(plan.channel, plan.window_id, "has written its files anew")
        moved = connection.execute(
            update(windows)
            .where(
                windows.c.channel == plan.channel,
                windows.c.window_id == plan.window_id,
                windows.c.state == OPEN,
                windows.c.plan_digest.is_(None),
            )
            .values(
                plan_digest=plan.digest,
                lanes=plan.lanes,
                totals=text_of(plan.rows),
                facts=facts_of(plan, plan_engine).to_json(),
                block_transactions=block_transactions,
            )
        )
        if moved.rowcount == 1:
            place_lanes(connection, plan)
            for each in records:
                each(connection, window)
        elif window.plan_digest != plan.digest:
            raise PlanError(
                f"channel {plan.channel}, window {plan.window_id}: has the plan {window.plan_digest}, got "
                f"{plan.digest}: a window keeps its plan until it is finished; put shard list, filter and settings "
                f"back as they were, remove {folder}, and run again: the same stretch of the log is read once more"
            )
        if digests is not None and digests != window.bounds.work.digests:
            _record_files(connection, plan.channel, plan.window_id, digests)
        return required_window(connection, plan.channel, plan.window_id)


def record_files(
    engine: Engine,
    channel: str,
    window_id: str,
    digests: Mapping[str, str],
    before: Mapping[str, str] | None,
    *,
    only_unplanned: bool = False,
) -> None:
    """Record the digests of an open window's files; no others are read from now on. ``before``: those that this run
    has found.

    Raises WindowBusyError if another run has recorded others, has ended the window or, with ``only_unplanned``, has
    planned it since.
    """
    with engine.begin() as connection:
        window = read_window(connection, channel, window_id, for_update=True)
        is_open = window is not None and not window.is_finished
        if window is None or not is_open or window.bounds.work.digests not in (before, digests):
            raise _was_faster(channel, window_id, "has ended it or has written its files anew")
        if only_unplanned and window.plan_digest is not None:
            raise _was_faster(channel, window_id, "has planned it")
        _record_files(connection, channel, window_id, digests)


def _was_faster(channel: str, window_id: str, what: str) -> WindowBusyError:
    return WindowBusyError(
        f"channel {channel}, window {window_id}: another run of this channel {what} meanwhile; run again"
    )


def _record_files(connection: Connection, channel: str, window_id: str, digests: Mapping[str, str]) -> None:
    connection.execute(
        update(windows)
        .where(windows.c.channel == channel, windows.c.window_id == window_id, windows.c.state == OPEN)
        .values(files=text_of(dict(digests)))
    )


def read_window(connection: Connection, channel: str, window_id: str, *, for_update: bool = False) -> Window | None:
    """A window's row; None if there is none."""
    query = select(windows).where(windows.c.channel == channel, windows.c.window_id == window_id)
    row = connection.execute(query.with_for_update() if for_update else query).one_or_none()
    return None if row is None else _window(row)


def read_open_window(connection: Connection, channel: str, *, for_update: bool = False) -> Window | None:
    """The channel's open window; None if it has none. There is at most one."""
    query = select(windows).where(windows.c.channel == channel, windows.c.state == OPEN)
    row = connection.execute(query.with_for_update() if for_update else query).one_or_none()
    return None if row is None else _window(row)


def latest_time(connection: Connection, channel: Channel) -> float:
    """The source's latest time of the watermark's way up to here, seconds since the epoch: the watermark's own is what
    one session said, and may be long past (SET TIMESTAMP, a clock that was set back)."""
    # a time beyond the clock is such a session's, too
    is_credible = windows.c.end_time <= func.unix_timestamp(literal_column("SYSDATE(6)")) + CLOCKS_DIFFER
    is_behind = windows.c.last_seqno <= channel.watermark.seqno
    query = select(func.max(windows.c.end_time)).where(windows.c.channel == channel.name, is_behind, is_credible)
    return max(channel.watermark.source_time, connection.execute(query).scalar() or 0.0)


def applied_by_former(connection: Connection, name: str) -> tuple[str, ...]:
    """The channels without a row, ``name`` among them, of which this target has applied windows, or a part of one; it
    need not have the schema."""
    if not (is_table(channels, connection) and is_table(windows, connection)):
        return ()
    is_planned = windows.c.plan_digest.is_not(None) & (windows.c.last_seqno >= windows.c.first_seqno)
    living = select(channels.c.channel).where(channels.c.channel != name)
    query = select(windows.c.channel).where(is_planned, windows.c.channel.not_in(living)).distinct()
    return tuple(sorted(connection.execute(query).scalars()))


def forgetting_windows(names: Sequence[str]) -> str:
    """The statement by which an operator says that the windows of ``applied_by_former`` are of before a copy."""
    listed = ", ".join(f"'{name}'" for name in names)
    return f"DELETE FROM binlane.windows WHERE channel IN ({listed})"


def finish_window(
    engine: Engine,
    channel: str,
    window_id: str,
    digest: str,
    summary: str | None = None,
    settle: Sequence[Callable[[Connection], None]] = (),
) -> Watermark:
    """Move the watermark to the window's end and close the window, in one transaction. Repeated: a no-op.

    Each of ``settle`` is called once in that transaction, if the watermark moves.

    Raises PositionError if a lane is missing or has not reached the last seqno, if the lanes' counters differ from the
    plan's totals (invariant 5) or if the watermark is not at the window's beginning; PlanError if the window has
    another plan.
    """
    with engine.begin() as connection:
        mark = read_channel(connection, channel, for_update=True)
        window = required_window(connection, channel, window_id, for_update=True)
        if window.plan_digest != digest:
            raise PlanError(f"channel {channel}, window {window_id}: has the plan {window.plan_digest}, got {digest}")
        if window.is_finished:
            return mark.watermark
        where = f"channel {channel}, window {window_id}"
        bounds = window.bounds
        lanes = lane_positions(connection, channel, for_update=True)
        check_lanes(window, lanes, bounds.last_seqno, where)
        _check_accounts(window, lanes, read_splits(connection, channel, window_id), where)
        reached = Watermark(bounds.last_seqno, bounds.end, bounds.end_gtid_set, bounds.end_time, bounds.end_fingerprint)
        move_watermark(connection, window, mark.watermark, reached)
        for each in settle:
            each(connection)
        connection.execute(
            update(windows)
            .where(windows.c.channel == channel, windows.c.window_id == window_id)
            .values(state=FINISHED, finished_at=NOW, stop_at=None, summary=summary)
        )
        return reached


def move_watermark(connection: Connection, window: Window, before: Watermark, after: Watermark) -> None:
    """Move the channel's watermark inside or to the end of ``window``, by compare-and-set (invariant 4).

    Raises PositionError if the channel's watermark is not the one stored with the window.
    """
    moved = connection.execute(
        update(channels)
        .where(channels.c.channel == window.bounds.channel, channels.c.watermark_seqno == window.reached)
        .values(**watermark_values(after), updated_at=NOW)
    )
    if moved.rowcount != 1 or after.seqno < window.reached:
        raise PositionError(
            f"channel {window.bounds.channel}, window {window.bounds.window_id}: the watermark is {before.seqno}, "
            f"expected {window.reached}, to go to {after.seqno}: another run has moved it, or it was changed by hand; "
            f"look at `binlane status {window.bounds.channel}`, then run the step again"
        )
    connection.execute(
        update(windows)
        .where(windows.c.channel == window.bounds.channel, windows.c.window_id == window.bounds.window_id)
        .values(reached=after.seqno)
    )


def check_lanes(window: Window, lanes: tuple[LanePosition, ...], seqno: int, where: str) -> None:
    """Raises PositionError unless every lane with work of the window's plan is at ``seqno``."""
    expected, found = list(window.lanes_with_work), [lane.lane for lane in lanes]
    assert window.lanes is not None, "a window with a digest has lanes"
    if {*expected} != {*found}:
        raise PositionError(f"{where}: positions of lanes {found}, expected {expected}")
    for lane in lanes:
        if (lane.window_id, lane.digest) != (window.bounds.window_id, window.plan_digest):
            raise PositionError(f"{where}: lane {lane.lane} belongs to window {lane.window_id}, plan {lane.digest}")
    behind = [f"lane {lane.lane} at {lane.seqno}" for lane in lanes if lane.seqno != seqno]
    if behind:
        raise PositionError(
            f"{where}: {', '.join(behind)}; expected every lane at {seqno}; run their apply tasks again (lanes end at "
            "a stop also if it is cancelled then)"
        )


def _check_accounts(window: Window, lanes: tuple[LanePosition, ...], splits: tuple[Split, ...], where: str) -> None:
    """Invariant 5: the lanes' counters equal the plan's totals, corrected by the split blocks."""
    written = sum((lane.rows for lane in lanes), RowCounts())
    planned = sum((split.planned for split in splits), written)
    instead = sum((split.written for split in splits), window.totals or RowCounts())
    if planned != instead:
        raise PositionError(
            f"{where}: the row counts do not agree: the plan writes {window.totals}, the target counted {written}, "
            f"with {plural(len(splits), 'block')} applied transaction by transaction (invariant 5)"
        )
    for split in splits:
        if split.done != split.transactions:
            raise PositionError(
                f"{where}: the row counts do not agree: of the block of seqnos {split.first_seqno}..{split.last_seqno} "
                f"in lane {split.lane}, {split.done} of {plural(split.transactions, 'transaction')} done (invariant 5)"
            )


def required_window(connection: Connection, channel: str, window_id: str, *, for_update: bool = False) -> Window:
    """A window's row. Raises PositionError if there is none."""
    window = read_window(connection, channel, window_id, for_update=for_update)
    if window is None:
        raise PositionError(f"channel {channel}: no window {window_id} on this target; run the extract step first")
    return window


def folder_record(work: str, digests: str | None) -> FolderRecord:
    """The columns ``work`` and ``files`` of a window's row."""
    return FolderRecord(work, optional_value_of(dict[str, str], digests, windows.c.files))


def _window(row: Row[Any]) -> Window:
    bounds = WindowBounds(
        channel=row.channel,
        window_id=row.window_id,
        source_identity=row.source_identity,
        first_seqno=row.first_seqno,
        last_seqno=row.last_seqno,
        end=LogPosition(row.end_file, row.end_offset),
        end_gtid_set=row.end_gtid_set,
        end_time=row.end_time,
        end_fingerprint=row.end_fingerprint,
        work=folder_record(row.work, row.files),
    )
    return Window(
        bounds,
        row.number,
        row.state,
        row.lanes,
        row.plan_digest,
        optional_value_of(RowCounts, row.totals, windows.c.totals),
        row.stop_at,
        row.summary,
        value_of(Watermark, row.start, windows.c.start),
        row.reached,
        row.block_transactions,
        row.facts,
    )


def _bounds_values(bounds: WindowBounds) -> dict[str, object]:
    return {
        "channel": bounds.channel,
        "window_id": bounds.window_id,
        "source_identity": bounds.source_identity,
        "first_seqno": bounds.first_seqno,
        "last_seqno": bounds.last_seqno,
        "end_file": bounds.end.file,
        "end_offset": bounds.end.offset,
        "end_gtid_set": bounds.end_gtid_set,
        "end_time": bounds.end_time,
        "end_fingerprint": bounds.end_fingerprint,
        "work": bounds.work.uri,
        "files": None if bounds.work.digests is None else text_of(dict(bounds.work.digests)),
    }
