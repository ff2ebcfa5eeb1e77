"""``binlane init``, ``plan`` and ``run``: the steps of a window without Airflow, lanes as processes of this machine."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binlane.activity import doing
from binlane.apply.refusals import target_errors
from binlane.apply.target_state import require_own_target
from binlane.choices import PlanEngine
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import ConfigError, PositionError, WindowBusyError
from binlane.lazy_dataclass import dataclass
from binlane.model import plural, size_text
from binlane.orchestration import report, step_progress, steps
from binlane.orchestration.announcing.announce import announce, announce_missed
from binlane.orchestration.commands.channel import load, read_channel_status
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.lane_processes import LaneProcesses
from binlane.orchestration.plan_file import read_own_plan, said_by_manifest
from binlane.orchestration.plan_job.engines import (
    begin_processes,
    early_scans,
    plan_here,
    require_engine,
    runner_of,
)
from binlane.orchestration.plan_job.window_engine import engine_for
from binlane.orchestration.request import NOW, WindowRequest
from binlane.orchestration.terminal import Bars, Terminal, View
from binlane.orchestration.window_refusal import recorded_refusal
from binlane.plan.window_plan import WindowPlan
from binlane.servers.engines import engine_of
from binlane.servers.variables import executed_gtids, server_version
from binlane.source.loaded_dumps import loaded_dumps
from binlane.source.older_sessions import highest_older_session
from binlane.source.start_position import OLDEST, begin
from binlane.state.channels import Channel, Watermark, create_channel, forgetting_channel, has_channel, read_channel
from binlane.state.leases import beginning
from binlane.state.migrations.upgrade import create
from binlane.state.target_record import record_target
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import read_inputs
from binlane.work.plan_job.early_scans import EarlyScans
from binlane.work.plan_job.job_progress import plan_progress
from binlane.work.plan_job.made import made_here

if TYPE_CHECKING:
    from binlane.source.protocol import EventSource

_POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of ``plan`` and ``run``."""

    channel: str
    folder: Path
    until: str | None
    lanes: int | None
    block_size: int | None
    engine: str

    def __post_init__(self) -> None:
        """Raises ConfigError for an engine that does not exist."""
        require_engine(self.engine, "--engine")

    def request(self, *, dry_run: bool = False) -> WindowRequest:
        """The request for ``steps.extract``."""
        return WindowRequest(self.until or NOW, None, dry_run, self.lanes, self.block_size)


def init(name: str, folder: Path, start: str, after: str | None = None) -> str:
    """Create state tables and channel, or upgrade the tables. An existing channel is not changed. Returns a message
    with its watermark.

    ``after``: the channel that this one goes on for, at its watermark's GTID set, which the new source's log has, too;
    or at ``start``, if it is another place than OLDEST: where the new log goes on behind that watermark. Raises
    ConfigError if both channels are there: nothing is handed over to one that has begun elsewhere.
    """
    from binlane.orchestration.audited import audited
    from binlane.state.records.successor import hand_over

    channel, endpoints = load(name, folder)
    engine = engine_of(endpoints.target)
    with target_errors(str(endpoints.target)):
        require_own_target(endpoints.target, engine)
        with engine.connect() as connection:
            is_new = not has_channel(connection, name)
        if after is not None and not is_new:
            _require_handed_over(endpoints, name, after)
        former = _former(endpoints, name, after, start) if after is not None and is_new else None
    place = start
    if former is not None and start == OLDEST:
        place = former.watermark.gtid_set
    if is_new:
        from binlane.orchestration.readiness import require_ready_to_begin

        require_ready_to_begin(channel, endpoints, source_of(channel, endpoints))
    if endpoints.source is not None:
        from binlane.bootstrap.sessions import answering

        endpoints = replace(endpoints, source=answering(endpoints.source))
    source = source_of(channel, endpoints)
    if is_new and place == NOW:
        loaded_dumps(source, source.state())
    found = begin(source, place, _loaded_gtids(endpoints, source) if place != NOW else None)
    with target_errors(str(endpoints.target)):
        create(engine, channel.work.uri)
        seqno = found.seqno if former is None else former.watermark.seqno
        takes_over = None if former is None else partial(hand_over, former=former, name=name)
        mark = Watermark(seqno, found.position, found.gtid_set, found.time, found.fingerprint)
        older = highest_older_session(source, found.position) if is_new else 0
        begun = beginning(engine, name) if is_new else contextlib.nullcontext()
        with begun, audited(endpoints.target, name, "init", {"--start": start, "--after": after}):
            state = create_channel(
                engine, channel.name, found.identity, mark, older_sessions=older, takes_over=takes_over
            )
        if is_new:
            record_target(channel.work.uri, state)
    mark = state.watermark
    return f"channel {name}: watermark at seqno {mark.seqno:,}, {mark.source} of {state.source_identity}"


def _require_handed_over(endpoints: Endpoints, name: str, after: str) -> None:
    """The former channel ends in the transaction that makes its successor: if it is there, this one is none."""
    if after == name:
        raise ConfigError(f"--after {after}: expected another channel than the one that goes on, whose name is new")
    with engine_of(endpoints.target).connect() as connection:
        begun = read_channel(connection, name) if has_channel(connection, after) else None
    if begun is not None:
        raise ConfigError(
            f"--after {after}: expected no channel {name} yet, found it at seqno {begun.watermark.seqno:,}, "
            f"{begun.watermark.source}, and {after} as well: nothing of {after} was handed over to it, and nothing was "
            f"changed. If {name} has applied nothing: {forgetting_channel(name)} on the target, then this command "
            "again; otherwise choose another name, and compare all rows behind it (`binlane verify --full`)"
        )


def _former(endpoints: Endpoints, name: str, after: str, start: str) -> Channel:
    """The channel that a new one goes on for. Raises ConfigError, and PositionError if the target does not have it."""
    from binlane.state.records.restores import has_restore

    if start == NOW:
        raise ConfigError(
            f"--after {after}: expected no --start beside it, or the place where the new log goes on behind that "
            f"channel's watermark, got {start}: what lies between would be left out"
        )
    with engine_of(endpoints.target).connect() as connection:
        if has_restore(connection, after):
            raise ConfigError(f"--after {after}: expected a channel, found a restore, which ends by itself")
        former = read_channel(connection, after)
    if start == OLDEST and not former.watermark.gtid_set:
        raise ConfigError(
            f"--after {after}: expected a watermark with a GTID set, found {former.watermark.source} alone: the place "
            f"in another server's log is not known; find it there: `binlane init {name} --after {after} --start "
            "FILE:OFFSET` (docs/recovery.md, The source was replaced)"
        )
    return former


def _loaded_gtids(endpoints: Endpoints, source: EventSource) -> str:
    """The source's transactions that a target of its family says to have, by the backup that was loaded into it."""
    with target_errors(str(endpoints.target)), engine_of(endpoints.target).connect() as connection:
        flavor, _ = server_version(connection)
        return executed_gtids(connection, flavor) if flavor is source.state().flavor else ""


def plan(call: Call, console: Terminal) -> View:
    """Show the plan of the next window, then run the precheck: raises PrecheckError for its findings.

    The target's data and state stay as they are, and so does the work directory.
    """
    channel, endpoints = load(call.channel, call.folder)
    window = steps.extract(channel, endpoints, call.request(dry_run=True))
    if window["work"] is None:
        return f"channel {call.channel}: nothing to apply, the watermark is at seqno {window['watermark']:,}"
    work = WorkFolder.of_window(window["work"], window["inputs"])
    try:
        with doing("plan job"):
            engine, _ = _filter(channel, call.engine, work, window["segments"])
        inputs = read_inputs(work)
        plans = replace(work, digests=made_here(work.uri)).plans(inputs.key)
        found = read_own_plan(plans, channel.name, said_by_manifest(inputs.manifest))
        console.print(report.plan_view(found, engine, by_load=inputs.settings.places_by_load))
        begun = read_channel_status(endpoints, call.channel).window
        if begun is not None and begun.plan_digest is not None:
            return f"precheck: not run, because window {begun.bounds.window_id} has already changed the target"
        # the window was never opened: only the precheck runs
        steps.adopt_plan(channel, endpoints, window["work"])
        return "precheck: passed"
    finally:
        work.remove()


def run(call: Call, console: Terminal) -> View:
    """Apply one window; the one that an earlier run has left open comes first. Returns the last one's summary;
    prints that of an earlier one when it is applied."""
    channel, endpoints = load(call.channel, call.folder)
    seconds: dict[str, float] = {}
    done = announced_window(channel, endpoints, call.request(), call.engine, console, seconds)
    while "note" in done and done["resumed"] and not done.get("is_open"):
        # it ends where the earlier run wanted it to
        console.print(_summary(done, seconds))
        seconds = {}
        done = announced_window(channel, endpoints, call.request(), call.engine, console, seconds)
    if "note" not in done:
        return f"channel {call.channel}: nothing to apply, the watermark is at seqno {done['watermark']:,}"
    return _summary(done, seconds)


def _summary(done: steps.Answer, seconds: dict[str, float]) -> str:
    times = ", ".join(f"{step} {spent:.1f} s" for step, spent in seconds.items())
    return f"{done['note']}\n{times}"


def announced_window(
    channel: ChannelConfig,
    endpoints: Endpoints,
    request: WindowRequest,
    engine: str,
    console: Terminal,
    seconds: dict[str, float] | None = None,
) -> steps.Answer:
    """Apply one window, and announce its watermark; if there is nothing to apply, that of an earlier run that could
    not. See ``apply_window``, and ``announce`` for its errors."""
    with LaneProcesses() as lanes:
        done = apply_window(channel, endpoints, request, engine, console, {} if seconds is None else seconds, lanes)
    if "note" in done:
        announce(channel, done)
    else:
        announce_missed(channel, endpoints)
    return done


def apply_window(
    channel: ChannelConfig,
    endpoints: Endpoints,
    request: WindowRequest,
    engine: str,
    console: Terminal,
    seconds: dict[str, float],
    lanes: LaneProcesses,
) -> steps.Answer:
    """Apply one window; the answer of ``steps.advance``, and whether the window was open before, or that of
    ``steps.extract`` if there is nothing to apply.

    ``seconds``: gets the duration of each step.
    """
    begin_processes(engine)
    plan_engine, plan = "", None
    with early_scans(engine, channel) as early:
        with _timed(seconds, "extract", console), console.bars(seconds_left=True) as bars:
            window = steps.extract(channel, endpoints, request, _read_bytes(bars), early.told)
        if window["work"] is None:
            return window
        if window["plan"] is None:
            with _timed(seconds, "plan", console), _counted_segments(window, console):
                work = steps.inputs_folder(channel, endpoints, window)
                with recorded_refusal(endpoints.target, channel.name, window["window"]):
                    plan_engine, plan = _filter(channel, engine, work, window["segments"], early)
    # while the check waits for the servers
    at_work = None if plan is None else len(plan.lanes_to_run)
    lanes.begin(channel.name, endpoints.target, request.lanes or channel.lanes.count, at_work)
    with _timed(seconds, "check", console):
        adopted = steps.adopt_plan(channel, endpoints, window["work"], plan_engine=plan_engine)
    if adopted["plan"] is None:
        raise WindowBusyError(
            f"channel {channel.name}: expected the window {window['window']} on the target, found none: another run "
            "has dropped it, to read a shorter one; run again"
        )
    before: Mapping[int, int] = {}
    while True:
        with _timed(seconds, "apply", console):
            lanes.apply(channel, endpoints, adopted["plan"], [each["lane"] for each in adopted["lanes"]], console)
        with _timed(seconds, "advance", console):
            try:
                return {**steps.advance(channel, endpoints, adopted["plan"]), "resumed": window["resumed"]}
            except PositionError:
                behind = steps.lanes_behind(channel, endpoints, adopted["plan"])
                # lanes that have not moved will not
                if not behind or behind == before:
                    raise
                before = behind


def _read_bytes(bars: Bars) -> step_progress.Told:
    """Shows the log's bytes in a bar of their own."""
    bar: list[int] = []

    def told(done: int, total: int) -> None:
        if total:
            bar[:] = bar or [bars.add("log", total)]
            bars.show(bar[0], min(done, total), said=f"{size_text(done)} of {size_text(total)}")

    return told


@contextmanager
def _counted_segments(window: steps.Answer, console: Terminal) -> Iterator[None]:
    """Around the plan job: shows its segments in a bar, on a terminal alone."""
    if not console.is_terminal:
        yield
        return
    ended = threading.Event()
    with console.bars(seconds_left=True) as bars:
        bar = bars.add("plan job", 1_000)

        def count() -> None:
            while not ended.wait(_POLL_SECONDS):
                # a figure that cannot be read now is no error of the job
                with suppress(Exception):
                    found = plan_progress(WorkFolder.of_window(window["work"]), window["segments"])
                    if found is None:
                        continue
                    what = f"{found.built:,} of {found.segments:,} built" if found.is_scanned else "scanning"
                    bars.show(bar, int(1_000 * found.share), said=f"{plural(found.segments, 'segment')}: {what}")

        thread = threading.Thread(target=count, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _filter(
    channel: ChannelConfig, engine: str, work: WorkFolder, segments: int, early: EarlyScans | None = None
) -> tuple[str, WindowPlan | None]:
    """Run the plan job; the engine that ran it, for people, and the plan if the engine has it."""
    found = engine_for(channel, engine, segments)
    if found.word == PlanEngine.LOCAL and early is not None:
        return str(found), plan_here(channel, work, early.rows)
    return str(found), runner_of(found.word, "--engine")(channel, work)


class _timed:  # noqa: N801 -- reads as a statement
    """Measures the seconds of a step, and shows its name while it runs."""

    def __init__(self, seconds: dict[str, float], step: str, console: Terminal) -> None:
        self._seconds, self._step, self._console = seconds, step, console
        self._activity = doing(step)

    def __enter__(self) -> None:
        self._start = time.monotonic()
        self._activity.__enter__()

    def __exit__(self, kind: object, *_: object) -> None:
        self._activity.__exit__(None, None, None)
        self._seconds[self._step] = time.monotonic() - self._start
        if kind is None:
            self._console.line(("✓", "green"), (f" {self._step} ", ""), (f"{self._seconds[self._step]:.1f} s", "dim"))
