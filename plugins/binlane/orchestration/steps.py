"""The steps of a window, one function each, called by Airflow's tasks and by the command line.

Each step can be repeated at any time: the target's state, not the files, decides what is already done.

A window's beginning waits for this module's imports: what it does not need is imported by the step that does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from binlane.activity import Activity, doing
from binlane.apply.target_state import target_state
from binlane.config import ChannelConfig
from binlane.connections import Endpoint, Endpoints
from binlane.errors import ConfigError, PlanError, PositionError, WindowBusyError
from binlane.garbage import uncollected
from binlane.model import CLOCKS_DIFFER, plural, size_text
from binlane.orchestration import report, step_progress
from binlane.orchestration.effective_rules import leaves_out, selection_of
from binlane.orchestration.extraction.window_reading import WindowReading, source_of
from binlane.orchestration.inputs import settings_before, target_has_changed, write_inputs, write_kept
from binlane.orchestration.lane_options import apply_options
from binlane.orchestration.plan_file import read_own_plan, said_by_manifest, said_by_target
from binlane.orchestration.request import HIGHEST, WindowRequest
from binlane.orchestration.retention import remove_folders, remove_old
from binlane.orchestration.stop import check_stopped, is_stopped_inside, seqno_of, settle
from binlane.orchestration.terminal import as_text
from binlane.orchestration.unplanned_window import is_forgotten
from binlane.orchestration.window_refusal import recorded_refusal
from binlane.plan.database_activity import WindowActivity
from binlane.plan.manifest import Manifest, Segment
from binlane.plan.settings import PlanSettings
from binlane.plan.window_facts import facts_of, lane_name
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.account.row_writer import chosen_writer
from binlane.precheck.results import checked_of
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_of, kept_connections
from binlane.shards.selection import EVERYTHING, Selection
from binlane.source.crashes import SourceCrashes
from binlane.source.end_position import Until, UntilGtid, UntilLogEnd, UntilPosition, UntilTime
from binlane.source.older_sessions import highest_older_session
from binlane.state.carried.files import Settlement
from binlane.state.carried.kept_inputs import InputsToKeep, KeptInputs
from binlane.state.carried.older_sessions import settle_sessions
from binlane.state.channels import Channel, keep_synced, note_selection, read_channel
from binlane.state.leases import held_by, holder, lease_name, recopy_lease
from binlane.state.orders.orders import NOW as STOP_NOW
from binlane.state.orders.stops import clear_stop, request_stop
from binlane.state.positions import lane_positions
from binlane.state.records.conflicts import count_conflicts
from binlane.state.records.coverage import forget_compared, note_crash
from binlane.state.records.databases import recorder
from binlane.state.records.history import clock_of
from binlane.state.records.progress import RunStep, begin_step
from binlane.state.records.restores import has_restore
from binlane.state.target_record import record_target
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import (
    Window,
    WindowBounds,
    finish_window,
    note_empty,
    open_window,
    read_open_window,
    read_window,
    record_files,
    set_plan,
)
from binlane.work import files
from binlane.work.files import Digests, WorkFolder, digests_in, room_needed
from binlane.work.plan_inputs import INPUTS, read_inputs, require_no_code
from binlane.work.plan_job.made import forget_made, made_here
from binlane.work.planned import PlannedLanes
from binlane.work.replaced_tables import replaced_tables

log = logging.getLogger(__name__)

Answer = dict[str, Any]
"""The result of a step for the next ones: small JSON values."""

Scan = Callable[[Callable[[Segment], PlanSettings], WorkFolder, Segment], None]
"""Called with each segment that is complete, its window's folder, and the settings as far as they are known."""

Step = TypeVar("Step", bound=Callable[..., Any])


def _step(step: Step) -> Step:
    """Around a step: check the schema ``binlane``, turn the drivers' errors into binlane's, share a connection a
    server."""

    @functools.wraps(step)
    def run(channel: ChannelConfig, endpoints: Endpoints, *arguments: Any, **named: Any) -> Any:
        with kept_connections(), target_state(endpoints.target):
            return step(channel, endpoints, *arguments, **named)

    return cast(Step, run)


def extract(
    channel: ChannelConfig,
    endpoints: Endpoints,
    request: WindowRequest,
    told: step_progress.Told | None = None,
    scan: Scan | None = None,
) -> Answer:
    """Read the window's log into segments and open the window on the target; resume the unfinished one if there is one.

    ``told`` gets the bytes that are read, ``scan`` every segment that is complete.

    Raises SourceError, BinlogError, PositionError, WorkError. A dry run opens no window; any other run first upgrades
    the schema of an older binlane.
    """
    target = target_state(endpoints.target, brings_up=None if request.dry_run else channel.work.uri)
    with kept_connections(), target, room_needed(channel.work.uri), doing("extract") as activity:
        told = _telling(activity, told)
        if not request.dry_run:
            # here too, because an earlier run may have been killed during the removal, and this one may apply no window
            remove_old(channel, endpoints)
        try:
            return _extract(channel, endpoints, request, told, scan)
        except (WindowBusyError, PositionError) as exc:
            log.info("another run was faster, checking again: %s", exc)
            return _extract(channel, endpoints, request, told, scan)


def _telling(activity: Activity, told: step_progress.Told | None) -> step_progress.Told:
    def tell(done: int, total: int) -> None:
        activity.text = f"extract: {size_text(done)} of {size_text(total)} of the log" if total else "extract"
        if told is not None:
            told(done, total)

    return tell


def _extract(
    channel: ChannelConfig,
    endpoints: Endpoints,
    request: WindowRequest,
    told: step_progress.Told | None,
    scan: Scan | None,
) -> Answer:
    engine = engine_of(endpoints.target)
    if request.resume_before is not None and not request.dry_run:
        from binlane.orchestration.audited import audited

        with audited(endpoints.target, channel.name, "resume", by=request.by):
            clear_stop(engine, channel.name, request.resume_before)
    folders = _folders(channel)
    with engine.connect() as connection:
        state = read_channel(connection, channel.name)
        unfinished = read_open_window(connection, channel.name)
        is_restore = has_restore(connection, channel.name)
    if is_restore and not request.of_restore and not request.dry_run:
        raise ConfigError(
            f"channel {channel.name}: is a restore, which a window up to another place would take away from its end; "
            f"`binlane restore --continue {channel.name}` goes on to its end, `--extend` to a later one"
        )
    endpoints = endpoints.proving(state.proof)
    if not request.dry_run:
        # a run that was killed has moved the watermark, and left the record behind
        record_target(channel.work.uri, state)
        check_stopped(endpoints, state, unfinished)
    if (
        unfinished is not None
        and not request.dry_run
        and not is_forgotten(channel, endpoints, request, unfinished, folders)
    ):
        return _adopt_unfinished(channel, endpoints, request, state, unfinished, told)
    if request.is_before(state.watermark.source_time) and not _is_ahead(endpoints, state.watermark.source_time):
        return _answer(state, finished=True)
    if not request.of_recopy:
        _require_no_recopy(endpoints, state)
    if state.watermark.seqno == 0 and not request.dry_run:
        from binlane.orchestration.readiness import require_ready_to_begin

        # before the log is read and filtered, which may take an hour; reading it asks the source by itself
        require_ready_to_begin(channel, Endpoints(None, endpoints.target), source_of(channel, endpoints))
    return _extract_next(channel, endpoints, request, state, told, scan)


def _extract_next(
    channel: ChannelConfig,
    endpoints: Endpoints,
    request: WindowRequest,
    state: Channel,
    told: step_progress.Told | None,
    scan: Scan | None,
) -> Answer:
    """Read the log of a new window, behind the watermark, and open it."""
    engine = engine_of(endpoints.target)
    through = _complete_through(channel, endpoints, request)
    selection = _followed(channel, endpoints)
    state = _with_older_sessions(channel, endpoints, request, state, selection)
    reading = WindowReading.of_next(channel, endpoints, state, selection)
    window, folder = reading.window, reading.folder
    if scan is not None:
        settings = functools.partial(_settings_before, channel, endpoints, request, window)
        reading = dataclasses.replace(reading, told=functools.partial(scan, settings))
    if not request.dry_run:
        keep, tell = (functools.partial(each, channel, endpoints) for each in (_keep_synced, _note_crash))
        reading = dataclasses.replace(reading, crashes=SourceCrashes(state.synced_since, keep, tell))
    shown = step_progress.extraction(endpoints.target, channel.name, window, told, is_dry=request.dry_run)
    # an archive gets its files later than they are written: the end of an interval is the latest end of its window
    is_of_interval = channel.source.connection is None and request.until is None
    reached = list[float]()
    with _kept_if_whole(folder), shown as progress:
        manifest = reading.log(_until(request, reached.append if is_of_interval else None), progress)
        if manifest.transactions > 0:
            with doing("extract: the definitions of the target's tables"):
                digests = write_inputs(channel, endpoints, request, folder, manifest)
            if not request.dry_run:
                open_window(engine, WindowBounds.of(manifest, folder.uri, digests), manifest.start)
    if reached:
        through = None
        log.warning(
            "the archive reaches to %s, the interval to %s: what is between comes with a later run",
            dt.datetime.fromtimestamp(reached[0], dt.UTC).isoformat(timespec="seconds"), request.until_time,
        )  # fmt: skip
    if manifest.transactions == 0:
        folder.remove()
        if not request.dry_run:
            # an older file of an archive may still be on its way
            note_empty(engine, state.watermark, manifest, through, moves=channel.source.connection is not None)
        return _answer(state)
    transactions, segments = plural(manifest.transactions, "transaction"), plural(len(manifest.segments), "segment")
    log.info("window %s: %s in %s", window, transactions, segments)
    if not request.dry_run:
        begin_step(engine, channel.name, RunStep.PLAN, window, total=len(manifest.segments))
    return _answer(state, folder=folder, manifest=manifest, inputs=digests, dry_run=request.dry_run)


def _keep_synced(channel: ChannelConfig, endpoints: Endpoints, since: float | None) -> None:
    with engine_of(endpoints.target).begin() as connection:
        keep_synced(connection, channel.name, since)


def _note_crash(channel: ChannelConfig, endpoints: Endpoints, file: str) -> None:
    """The source has crashed in a file of its log, and may have rows that the log lacks: until all rows are compared,
    the channel's health says so."""
    log.warning(
        "the source crashed in %s, and its sync_binlog is not 1, or is not known to have been 1 then: its log may lack "
        "the last transactions of before the crash, which it may have: `binlane verify %s --full` compares all rows",
        *(file, channel.name),
    )
    with engine_of(endpoints.target).begin() as connection:
        note_crash(connection, channel.name, file)


def _followed(channel: ChannelConfig, endpoints: Endpoints) -> Selection:
    """What the channel takes, for the temporary tables that extraction follows."""
    rules = channel.filter
    lists = rules.include_databases, rules.exclude_databases, rules.include_tables, rules.exclude_tables
    if not any(lists) and not rules.kinds:
        return EVERYTHING
    with engine_of(endpoints.target).connect() as connection:
        return selection_of(channel, read_schema(connection, ()))


def _with_older_sessions(
    channel: ChannelConfig, endpoints: Endpoints, request: WindowRequest, state: Channel, selection: Selection
) -> Channel:
    """The channel before a window under this filter. What a changed filter takes anew begins at the watermark, as a
    channel does: no window has the CREATE of a temporary table that was left out until now and is open there."""
    if selection.to_values() == state.selection:
        return state
    older = state.older_sessions
    if state.selection is not None and selection.takes_more_than(Selection.of(state.selection)):
        older = max(older, highest_older_session(source_of(channel, endpoints), state.watermark.source))
    if request.dry_run:
        return dataclasses.replace(state, older_sessions=older)
    return note_selection(engine_of(endpoints.target), state, selection.to_values(), older)


@contextlib.contextmanager
def _kept_if_whole(folder: WorkFolder) -> Iterator[None]:
    """Remove a window's folder after an error, because the target does not refer to it and no later step would
    remove it."""
    try:
        yield
    except BaseException:
        folder.remove()
        raise


@_step
def inputs_folder(channel: ChannelConfig, endpoints: Endpoints, window: Answer) -> WorkFolder:
    """The folder of a window that ``extract`` has answered, for the plan job: with the digests that the target has
    recorded of its files, and of a dry run, which the target does not know, those of the answer."""
    # a run of before an upgrade has kept an answer without digests
    folder = _folders(channel).at(window["work"])
    with engine_of(endpoints.target).connect() as connection:
        found = read_window(connection, channel.name, folder.name)
    if found is None or found.bounds.work.digests is None:
        return _as_answered(channel, folder, window.get("inputs"))
    return dataclasses.replace(folder, digests=found.bounds.work.digests)


@_step
@uncollected()
def adopt_plan(
    channel: ChannelConfig,
    endpoints: Endpoints,
    work: str,
    stop_at: str | None = None,
    plan_engine: str = "",
    made: Digests | None = None,
    by: str | None = None,
) -> Answer:
    """Check the plan against source and target, store its digest, and return the lanes.

    A dry run shows the plan and returns no lanes. There is none either if the window is finished and its files are
    removed, or if another run has read it anew and finished it. Raises PrecheckError before the first write, and
    PlanError for files that the plan job has not made.
    ``stop_at``: a seqno, GTID or time inside the window at which the channel is to stop; ``highest``: the highest
    position of its lanes. ``plan_engine``: what made the plan, for people. ``made``: what another process's plan
    job has read and made (``work.plan_job.made``). ``by``: who asks for the stop; None: nobody knows.
    """
    from binlane.precheck.checks import check_window

    folder = _folders(channel).at(work, functools.partial(_is_finished, channel, endpoints))
    if _is_done_without(channel, endpoints, folder):
        log.info(
            "the window, or another run that has read its part of the log anew, is finished: nothing is left to do"
        )
        return {"plan": None, "lanes": []}
    folder = _as_made(channel, endpoints, folder, made)
    inputs = read_inputs(folder)
    plans = folder.plans(inputs.key)
    plan = read_own_plan(plans, channel.name, said_by_manifest(inputs.manifest))
    # spelling it is a part of a small window's time
    if log.isEnabledFor(logging.INFO):
        log.info("the plan\n%s", as_text(report.plan_view(plan, plan_engine, by_load=inputs.settings.places_by_load)))
    engine = engine_of(endpoints.target)
    with recorded_refusal(endpoints.target, channel.name, plan.window_id):
        left = check_window(channel, endpoints, plan, inputs, plans, selection_of(channel, inputs.schema))
    with engine.connect() as connection:
        window = read_window(connection, channel.name, plan.window_id)
    if window is None:
        log.info("a dry run: nothing was written; the window's files stay in %s", work)
        return {"plan": None, "lanes": []}
    found = WindowActivity.from_json(plans.read(files.DATABASES), plans.uri)
    digests = None if folder.digests is None else {**folder.digests, **left}
    blocks = inputs.settings.block_transactions
    records = [recorder(found)]
    if window.plan_digest is None:
        # a window has its first plan only once
        with engine.connect() as connection:
            records.append(InputsToKeep.of(connection, folder, inputs).store)
    window = set_plan(engine, plan, blocks, records, plan_engine, folder.uri, digests, folder.digests)
    forget_made(folder.uri)
    # the order is for this window: a cleared run of a finished one gives none to the next
    if stop_at is not None and not window.is_finished:
        place = stop_at.strip()
        at = None if place == HIGHEST else seqno_of(window, place, _folders(channel))
        from binlane.orchestration.audited import audited

        author = by or "a run of the DAG"
        with audited(endpoints.target, channel.name, "stop", {"place": place}, author):
            request_stop(engine, channel.name, by=author, at=at, window_id=plan.window_id)
    with engine.connect() as connection:
        placed = [each for each in lane_positions(connection, channel.name) if each.window_id == plan.window_id]
    total = plan.last_seqno - plan.first_seqno + 1
    done = sum(each.transactions for each in placed)
    begin_step(engine, channel.name, RunStep.APPLY, plan.window_id, done=done, total=total)
    lanes = [{"lane": lane, "name": lane_name(plan, lane)} for lane in sorted(plan.lanes_to_run)]
    return {"plan": plans.uri, "lanes": lanes}


@_step
def apply_lane(
    channel: ChannelConfig,
    endpoints: Endpoints,
    plan_uri: str,
    lane: int,
    interrupted: threading.Event | None = None,
) -> Answer:
    """Apply one lane to the window's end, or to a requested stop. Returns at once if the lane is already there.

    ``interrupted``: once set, the lane ends at its next block boundary with StopRequestedError.
    """
    # a command applies its lanes in other processes
    from binlane.apply.lane.runner import run_lane

    engine = engine_of(endpoints.target)
    folder, window = _recorded(channel, endpoints, plan_uri)
    if _is_over(window, folder):
        return {"lane": lane, "seqno": window.bounds.last_seqno, "blocks": 0, "transactions": 0, "stopped": False}
    plan = _own_plan(channel, folder, window)
    with engine.connect() as connection:
        writer = chosen_writer(connection, channel.apply.writer)
        uuid = read_channel(connection, channel.name).uuid
    options = dataclasses.replace(apply_options(channel, plan), interrupted=interrupted, writer=writer)
    checked = checked_of(folder, selects=leaves_out(channel))
    leases = [lease_name(uuid, each) for each in plan.all_lanes]
    with _giving_way(channel, endpoints.target, lane, leases, interrupted) as gives_way:
        options, told = dataclasses.replace(options, gives_way=gives_way), step_progress.LaneLog()
        result = run_lane(engine, plan, lane, PlannedLanes(folder, plan), options, told, checked)
    return {
        "lane": lane,
        "seqno": result.seqno,
        "blocks": result.blocks,
        "transactions": result.transactions,
        "stopped": result.stopped,
    }


@contextlib.contextmanager
def _giving_way(
    channel: ChannelConfig, target: Endpoint, lane: int, leases: Sequence[str], interrupted: threading.Event | None
) -> Iterator[Callable[[Callable[[], None]], bool] | None]:
    """``ApplyOptions.gives_way`` of a lane; None if the channel does not ask for it."""
    if not channel.apply.max_threads_running:
        yield None
        return
    # most lanes do not wait
    from binlane.orchestration.target_load import TargetLoad

    def tell(reason: str) -> None:
        log.info("lane %d %s", lane, reason or "goes on")

    most = channel.apply.max_threads_running
    with contextlib.closing(TargetLoad(target, most, tell, interrupted, leases)) as load:
        yield load.wait


@_step
def advance(channel: ChannelConfig, endpoints: Endpoints, plan_uri: str) -> Answer:
    """Move the watermark to the window's end, and remove the files of old windows.

    If the channel was asked to stop inside the window, the watermark goes there, and the window stays open.
    """
    engine = engine_of(endpoints.target)
    folder, window = _recorded(channel, endpoints, plan_uri)
    if _is_over(window, folder):
        with engine.connect() as connection:
            return _advanced(window, count_conflicts(connection, channel.name, window.bounds.window_id))
    plan = _own_plan(channel, folder, window)
    if is_stopped_inside(window):
        answer = settle(endpoints, window, _folders(channel))
        with engine.connect() as connection:
            stopped = read_channel(connection, channel.name).watermark
        return {**answer, "gtid": stopped.gtid_set, "time": stopped.source_time}
    with engine.connect() as connection:
        met = count_conflicts(connection, channel.name, plan.window_id)
    note = report.summary_note(plan, met)
    compared = functools.partial(forget_compared, channel=channel.name, is_replaced=replaced_tables(folder, plan).names)
    older = functools.partial(settle_sessions, channel=channel.name, folder=folder.window)
    closing = (Settlement(plan, folder.window), older, compared)
    mark = finish_window(engine, channel.name, plan.window_id, plan.digest, note, closing)
    with engine.connect() as connection:
        record_target(channel.work.uri, read_channel(connection, channel.name))
    remove_folders(channel, endpoints)
    facts = facts_of(plan)
    return {
        "window": plan.window_id,
        "seqno": mark.seqno,
        "gtid": mark.gtid_set,
        "time": mark.source_time,
        "source": str(mark.source),
        "transactions": facts.transactions,
        "read": facts.read,
        "rows": facts.written,
        "conflicts": met,
        "note": note,
    }


def lanes_behind(channel: ChannelConfig, endpoints: Endpoints, plan_uri: str) -> Mapping[int, int]:
    """The seqnos of the window's lanes that have ended without an error, and are to go on: the stop at which they have
    ended was cancelled, or asked for again at a later seqno. A position that is none of the window's is not among
    them."""
    _, window = _recorded(channel, endpoints, plan_uri)
    if window.is_finished or window.plan_digest is None or window.stop_at == STOP_NOW:
        return {}
    goal = window.bounds.last_seqno if window.stop_at is None else min(window.stop_at, window.bounds.last_seqno)
    with engine_of(endpoints.target).connect() as connection:
        placed = lane_positions(connection, channel.name)
    plan, lanes = (window.bounds.window_id, window.plan_digest), window.lanes_with_work
    return {
        each.lane: each.seqno
        for each in placed
        if each.lane in lanes and (each.window_id, each.digest) == plan and each.seqno < goal
    }


def _advanced(window: Window, conflicts: dict[str, int]) -> Answer:
    """The summary of a finished window, from its row on the target alone, which does not have the changes folded
    away."""
    bounds, rows = window.bounds, 0 if window.totals is None else window.totals.total
    return {
        "window": bounds.window_id,
        "seqno": bounds.last_seqno,
        "gtid": bounds.end_gtid_set,
        "time": bounds.end_time,
        "source": str(bounds.end),
        "transactions": bounds.last_seqno - bounds.first_seqno + 1,
        "read": rows,
        "rows": rows,
        "conflicts": conflicts,
        "note": window.summary or "",
    }


def _recorded(channel: ChannelConfig, endpoints: Endpoints, plan_uri: str) -> tuple[WorkFolder, Window]:
    """A plan's folder, with the digests that the target has recorded of its window's files; and the window. Raises
    PlanError for a window that the target does not have: nobody knows its files."""
    named = _folders(channel).plans_at(plan_uri, functools.partial(_is_finished, channel, endpoints))
    with engine_of(endpoints.target).connect() as connection:
        window = read_window(connection, channel.name, named.window.name)
    if window is None:
        raise PlanError(
            f"{plan_uri}: expected the plan of a window of channel {channel.name}, found none of the name "
            f"{named.window.name} on the target: it was removed, or this is a dry run's; begin with extract_segments "
            "again"
        )
    return dataclasses.replace(named, digests=window.bounds.work.digests), window


def _own_plan(channel: ChannelConfig, plans: WorkFolder, window: Window) -> WindowPlan:
    return read_own_plan(plans, channel.name, said_by_target(window.bounds))


def _is_over(window: Window, plans: WorkFolder) -> bool:
    """Whether the window of the plan's folder ``plans`` is finished, so that its files may be removed, and they are."""
    return window.is_finished and not plans.exists(files.PLAN)


def _is_finished(channel: ChannelConfig, endpoints: Endpoints, name: str) -> bool:
    """Whether the target has finished the channel's window of that name."""
    with engine_of(endpoints.target).connect() as connection:
        window = read_window(connection, channel.name, name)
    return window is not None and window.is_finished


def _is_done_without(channel: ChannelConfig, endpoints: Endpoints, folder: WorkFolder) -> bool:
    """Whether a window whose files are not there is finished; or was, without a plan, forgotten (``unplanned_window``),
    and the watermark has passed its begin."""
    if folder.exists(files.MANIFEST):
        return False
    first = folder.name.partition("-")[0]
    with engine_of(endpoints.target).connect() as connection:
        window = read_window(connection, channel.name, folder.name)
        watermark = read_channel(connection, channel.name).watermark
    if window is not None:
        return window.is_finished
    return first.isascii() and first.isdigit() and int(first) <= watermark.seqno


def _as_made(channel: ChannelConfig, endpoints: Endpoints, folder: WorkFolder, made: Digests | None) -> WorkFolder:
    """A window's folder, with the digests of what its plan job has made, which the target has recorded then.

    Raises PlanError if the job has read other inputs than the extraction has written, or is not known.
    """
    engine = engine_of(endpoints.target)
    made = made_here(folder.uri) if made is None else digests_in(made, folder.uri)
    with engine.connect() as connection:
        window = read_window(connection, channel.name, folder.name)
    if window is None or (recorded := window.bounds.work.digests) is None:
        # a dry run, or digests that are not known
        return _as_answered(channel, folder, made)
    if window.is_finished:
        # perhaps extracted and planned again since this task's plan job, by who has finished it
        if _is_planned(recorded):
            return dataclasses.replace(folder, digests=recorded)
        return _as_answered(channel, folder, made)
    if made is None:
        if not _is_planned(recorded):
            raise PlanError(
                f"{folder.uri}: expected a plan whose job has said which files it has made, found none: run the plan "
                "job again, it writes the same files; an engine of your own calls work.plan_job.job.run_plan_job in "
                "the process that calls it"
            )
        return dataclasses.replace(folder, digests=recorded)
    inputs = {name: digest for name, digest in made.items() if "/" not in name}
    if changed := sorted(name for name, digest in inputs.items() if recorded.get(name) != digest):
        raise PlanError(
            f"{folder.uri}/{changed[0]}: expected SHA-256 {recorded.get(changed[0])}, as the target has recorded of "
            "the window's files, found another read by the plan job: another program has changed it; "
            f"find out who can write to the work folder, remove {folder.uri}, and run again: the same part of the log "
            "is read"
        )
    digests = {**recorded, **made}
    if digests != recorded:
        # before the precheck, which may refuse the plan: the next run need not make it again
        record_files(engine, channel.name, folder.name, digests, recorded)
    return dataclasses.replace(folder, digests=digests)


def _as_answered(channel: ChannelConfig, folder: WorkFolder, answer: object) -> WorkFolder:
    """A window's folder, with the digests of an answer that the target does not know; None: there are none. Raises
    PlanError for code that its settings name and the channel's file does not."""
    if answer is None:
        return folder
    found = dataclasses.replace(folder, digests=digests_in(answer, folder.uri))
    require_no_code(found, {channel.lanes.consistency, channel.lanes.assigner})
    return found


def _is_planned(recorded: Digests) -> bool:
    """Whether the target knows the plan that the window's folder is expected to have."""
    return any(name.endswith(f"/{files.PLAN}") for name in recorded)


def _require_no_recopy(endpoints: Endpoints, state: Channel) -> None:
    """Raises WindowBusyError while `binlane recopy` decides where windows end."""
    with engine_of(endpoints.target).connect() as connection:
        if (number := holder(connection, recopy_lease(state.uuid))) is not None:
            raise WindowBusyError(
                f"channel {state.name}: `binlane recopy` is applying windows up to a snapshot of the source, or "
                f"copies tables from it (watermark: seqno {state.watermark.seqno:,}); no other run can open a window "
                f"before it has ended: {held_by(number)}"
            )


def _is_ahead(endpoints: Endpoints, stored: float) -> bool:
    """Whether a stored time is from a clock that was ahead: nothing is known to be applied up to it."""
    with engine_of(endpoints.target).connect() as connection:
        return stored > min(clock_of(connection), time.time()) + CLOCKS_DIFFER


def _complete_through(channel: ChannelConfig, endpoints: Endpoints, request: WindowRequest) -> float | None:
    """The source's time up to which an empty window proves that nothing is missing; None: it proves nothing.

    To be asked before the log is read. An archive's end may lack files that are still to come.
    """
    if request.until_time is not None:
        return request.until_time.timestamp()
    if not request.until_now or channel.source.connection is None:
        return None
    with engine_of(endpoints.target).connect() as connection:
        # a clock that is ahead proves nothing of the time that is still to come
        return min(clock_of(connection), time.time() + CLOCKS_DIFFER)


def _until(request: WindowRequest, if_early: Callable[[float], None] | None) -> Until:
    if request.until_position is not None:
        return UntilPosition(request.until_position)
    if request.until_gtid is not None:
        return UntilGtid(request.until_gtid, inclusive=False)
    if request.until_time is not None:
        return UntilTime(request.until_time.timestamp(), if_early)
    return UntilLogEnd()


def _settings_before(
    channel: ChannelConfig, endpoints: Endpoints, request: WindowRequest, window: str, segment: Segment
) -> PlanSettings:
    return settings_before(channel, endpoints, request, window, segment.flavor)


def _folders(channel: ChannelConfig) -> WindowFolders:
    return WindowFolders(channel.work.uri, channel.name)


def _as_planned(window: Window, request: WindowRequest) -> WindowRequest:
    """A planned window keeps its number of lanes and its block size, whatever the run requests."""
    if window.lanes is None:
        return request
    return dataclasses.replace(request, lanes=window.lanes, block_transactions=window.block_transactions)


def _adopt_unfinished(
    channel: ChannelConfig,
    endpoints: Endpoints,
    request: WindowRequest,
    state: Channel,
    window: Window,
    told: step_progress.Told | None,
) -> Answer:
    """Resume an earlier run's unfinished window, with the same end and the same plan (invariant 7)."""
    log.info("resuming window %s, which an earlier run has left unfinished", window.bounds.window_id)
    folder = _folders(channel).of(window.bounds.window_id, window.bounds.work)
    if folder.digests is not None and not folder.has(files.MANIFEST):
        # an attempt has ended before it wrote the files anew
        folder.remove()
    if not folder.exists(files.MANIFEST):
        log.warning("its files are gone from %s: reading the same part of the log again", folder.uri)
        bounds = window.bounds
        name = bounds.window_id
        reading = WindowReading(
            channel, endpoints, state.source_identity, window.start, name, folder, None, state.older_sessions,
            _followed(channel, endpoints), state.lost_sessions,
        )  # fmt: skip
        with step_progress.extraction(endpoints.target, channel.name, name, told, is_dry=False) as progress:
            manifest = reading.log(UntilPosition(bounds.end), progress)
        _require_end(bounds, manifest, folder)
        # it may be read from an archive of the server's log now, or the other way round
        manifest = dataclasses.replace(manifest, identity=bounds.source_identity)
        # an attempt that ends before its manifest is made again
        record = _recording(channel, endpoints, folder)
        kept = _kept_inputs(endpoints, window)
        if kept is not None:
            digests = write_kept(channel, endpoints, folder, kept, manifest, record)
        else:
            digests = write_inputs(channel, endpoints, _as_planned(window, request), folder, manifest, record)
        folder = dataclasses.replace(folder, digests=digests)
    elif window.plan_digest is None and target_has_changed(endpoints, folder):
        folder = _with_inputs_of_now(channel, endpoints, _as_planned(window, request), folder)
    inputs = read_inputs(folder)
    plans = folder.plans(inputs.key)
    # a plan that the target does not know is made again: nobody tells whose it is
    planned = plans.has(files.PLAN) and plans.exists(files.PLAN)
    if not planned:
        total, named = len(inputs.manifest.segments), window.bounds.window_id
        begin_step(engine_of(endpoints.target), channel.name, RunStep.PLAN, named, total=total)
    made = plans.uri if planned else None
    return _answer(state, folder=folder, manifest=inputs.manifest, inputs=inputs.digests, plan=made, resumed=True)


def _kept_inputs(endpoints: Endpoints, window: Window) -> KeptInputs | None:
    """What a window's plan was made from, as the target has kept it."""
    with engine_of(endpoints.target).connect() as connection:
        return KeptInputs.read(connection, window.bounds.channel, window.bounds.window_id)


def _require_end(bounds: WindowBounds, manifest: Manifest, folder: WorkFolder) -> None:
    """Raises PlanError unless the log of a planned window was read again up to the window's end; the files of another
    end are removed."""
    if (bounds.last_seqno, bounds.end_gtid_set) == (manifest.last_seqno, manifest.gtid_set):
        return
    folder.remove()
    raise PlanError(
        f"channel {bounds.channel}, window {bounds.window_id}: its files are gone, and its log was read again: "
        f"expected it to end at {bounds.end}, seqno {bounds.last_seqno:,}, found {manifest.end}, seqno "
        f"{manifest.last_seqno:,}; nothing was written. Put [filter] and source.ended_sessions of the channel's file "
        "back as they were when the window was opened, and run again; if the source has lost its last transactions in "
        "a crash, it counts as replaced (docs/recovery.md, `The source was replaced`)"
    )


def _with_inputs_of_now(
    channel: ChannelConfig, endpoints: Endpoints, request: WindowRequest, folder: WorkFolder
) -> WorkFolder:
    """The folder of a window that has no plan yet, with what its plan needs to know of the target as it is now: an
    order of rows that fits the foreign keys of then may not fit those of now."""
    log.info("the target's tables or limits have changed, and the window has no plan yet: it is planned for them")
    manifest = read_inputs(folder).manifest
    folder = _to_be_written_anew(channel, endpoints, folder)
    # without its manifest a folder is read again
    for name in (files.MANIFEST, files.SCHEMA, files.CHANNEL):
        folder.remove_file(name)
    record = _recording(channel, endpoints, folder)
    return dataclasses.replace(folder, digests=write_inputs(channel, endpoints, request, folder, manifest, record))


def _to_be_written_anew(channel: ChannelConfig, endpoints: Endpoints, folder: WorkFolder) -> WorkFolder:
    """The folder of a window without a plan, before its files are touched: from now on the target takes no plan that
    another run has made from them. Raises WindowBusyError if it has one."""
    record_files(engine_of(endpoints.target), channel.name, folder.name, {}, folder.digests, only_unplanned=True)
    return dataclasses.replace(folder, digests={})


def _recording(channel: ChannelConfig, endpoints: Endpoints, folder: WorkFolder) -> Callable[[Digests], None]:
    """Records the digests of files that take the place of the folder's."""
    engine = engine_of(endpoints.target)
    return functools.partial(record_files, engine, channel.name, folder.name, before=folder.digests)


def _answer(
    state: Channel,
    *,
    folder: WorkFolder | None = None,
    manifest: Manifest | None = None,
    inputs: Digests | None = None,
    plan: str | None = None,
    finished: bool = False,
    dry_run: bool = False,
    resumed: bool = False,
) -> Answer:
    """The result of extraction for the next steps and the log. ``resumed``: the window was open before, and ends where
    it did then, whatever the end of the run."""
    return {
        "window": None if manifest is None else manifest.window,
        "work": None if folder is None else folder.uri,
        "inputs": None if inputs is None else {name: inputs[name] for name in INPUTS},
        "segments": 0 if manifest is None else len(manifest.segments),
        "transactions": 0 if manifest is None else manifest.transactions,
        "watermark": state.watermark.seqno,
        "empty": manifest is None and not finished,
        "finished": finished,
        "dry_run": dry_run,
        "resumed": resumed,
        "plan": plan,
    }
