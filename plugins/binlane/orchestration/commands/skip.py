"""``binlane skip`` and ``replay-skipped``: skip transactions, show skipped ones, apply them later."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binlane.apply.lane.replay_skipped import replay_skipped
from binlane.apply.refusals import driver_errors
from binlane.apply.target_state import target_state
from binlane.apply.temporary_copies import as_a_whole
from binlane.config import ChannelConfig
from binlane.errors import ConfigError, PlanError, PositionError
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.orchestration.audited import audited, whoami
from binlane.orchestration.commands.channel import load
from binlane.orchestration.effective_rules import rules_of
from binlane.orchestration.lane_options import apply_options
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.report import moment
from binlane.orchestration.terminal import Grid, View
from binlane.plan.segment.pieces import NOTHING
from binlane.precheck.account.row_writer import chosen_writer
from binlane.safe_text import one_line
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_of
from binlane.state.orders.skips import ALL_LANES, Skip, SkipRequest, cancel_skip, read_skip, read_skips, request_skips
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import Window, read_open_window
from binlane.work.files import WorkFolder, private_file
from binlane.work.lookup import FoundTransaction, find_gtid, find_seqnos
from binlane.work.plan_inputs import read_inputs
from binlane.work.planned import PlannedLanes

if TYPE_CHECKING:
    from binlane.connections import Endpoints, Resolver

_RANGE: Final = re.compile(r"(\d{1,18})-(\d{1,18})")
_MOST: Final = 10_000
"""Maximum of transactions in one order."""
_MOST_BYTES: Final = 256 << 20
"""Maximum bytes of events in one order, which are stored in one transaction on the target; a single transaction may be
larger."""


@dataclass(frozen=True, slots=True)
class Which:
    """The transactions of an order: exactly one field is set."""

    seqno: int | None = None
    gtid: str | None = None
    range: str | None = None

    def __post_init__(self) -> None:
        """Raises ConfigError unless exactly one field is set."""
        given = [each for each in (self.seqno, self.gtid, self.range) if each is not None]
        if len(given) != 1:
            raise ConfigError(f"skip: expected one of --seqno, --gtid and --range, got {len(given)} of them")
        if self.range is not None and _RANGE.fullmatch(self.range) is None:
            raise ConfigError(f"--range: expected FIRST-LAST, such as 17-19, got {self.range!r}")

    def seqnos(self, folder: WorkFolder) -> tuple[int, int]:
        """The first and the last seqno. Raises PlanError if they are not in the window."""
        if self.gtid is not None:
            seqno = find_gtid(folder, self.gtid)
            return seqno, seqno
        if self.seqno is not None:
            return self.seqno, self.seqno
        match = _RANGE.fullmatch(self.range or "")
        assert match is not None
        first, last = int(match[1]), int(match[2])
        if not first <= last < first + _MOST:
            raise ConfigError(f"--range: expected 1 to {_MOST:,} transactions, got {self.range}")
        return first, last


def skip(
    name: str,
    folder: Path,
    which: Which,
    reason: str,
    *,
    by: str | None = None,
    resolve: Resolver | None = None,
) -> str:
    """Order to skip transactions of the open window. Raises PositionError for applied transactions, and for those that
    are applied as a whole with others.

    ``by``: the author, if not the account of this process; ``resolve``: resolves connections, if not from the
    environment.
    """
    if not reason.strip():
        raise ConfigError(
            "--reason: expected the reason why the transaction is skipped, got nothing; the reason is stored with it"
        )
    channel, endpoints = load(name, folder, resolve)
    given = {"--seqno": which.seqno, "--gtid": which.gtid, "--range": which.range}
    with target_state(endpoints.target) as engine, audited(endpoints.target, name, "skip", given, by):
        work, window, lanes = _open_window(endpoints, channel)
        first, last = which.seqnos(work)
        found = _events(work, first, last)
        if (whole := lanes.plan.indivisible(first, last)) is not None:
            raise PositionError(f"channel {name}: {as_a_whole(whole)}; nothing is recorded")
        changing = lanes.lanes_of(first, last)
        requests = [
            SkipRequest(
                *(each.seqno, each.lane, at.gtid, at.source, at.commit_time, each.summary, at.log),
                lanes=changing[each.seqno],
                is_shared=len(lanes.sharing(each.lane)) > 1,
            )
            for each in lanes.describe(first, last)
            for at in (found[each.seqno],)
        ]
        if nothing := [each.seqno for each in requests if each.summary == NOTHING]:
            raise PositionError(f"channel {name}: seqnos {nothing} contain no changes, so there is nothing to skip")
        new = request_skips(engine, window, requests, reason=reason.strip(), by=whoami() if by is None else by)
    lines = [
        f"seqno {each.seqno:,}, GTID {each.gtid or '-'}, lane {each.lane}: {one_line(each.summary)}"
        for each in requests
    ]
    return "\n".join(
        [
            f"channel {name}: {plural(len(new), 'transaction')} will be skipped ({len(requests) - len(new)} "
            "recorded before); run the channel to continue",
            *lines,
        ]
    )


def _events(work: WorkFolder, first: int, last: int) -> dict[int, FoundTransaction]:
    """The transactions' events by seqno. Raises ConfigError for more than ``_MOST_BYTES``."""
    found, size = dict[int, FoundTransaction](), 0
    for each in find_seqnos(work, first, last):
        size += len(each.log)
        if found and size > _MOST_BYTES:
            raise ConfigError(
                f"--range: expected at most {_MOST_BYTES:,} bytes of events, the transactions {first} to "
                f"{each.seqno} have {size:,}; skip {first}-{each.seqno - 1} first, then the rest"
            )
        found[each.seqno] = each
    return found


def cancel(name: str, folder: Path, which: Which, *, by: str | None = None, resolve: Resolver | None = None) -> str:
    """Cancel orders that are not carried out yet."""
    if which.seqno is None:
        raise ConfigError("--cancel: expected --seqno; `--list` shows the seqnos")
    _, endpoints = load(name, folder, resolve)
    with (
        target_state(endpoints.target) as engine,
        audited(endpoints.target, name, "skip --cancel", {"--seqno": which.seqno}, by),
    ):
        cancel_skip(engine, name, which.seqno)
    return f"channel {name}: seqno {which.seqno:,} will be applied"


def skips(name: str, folder: Path) -> View:
    """All orders of a channel."""
    _, endpoints = load(name, folder)
    with target_state(endpoints.target) as engine, engine.connect() as connection:
        found = read_skips(connection, name)
    if not found:
        return f"channel {name}: nothing was skipped"
    grid = Grid(f"skipped transactions of {name}").columns("seqno", justify="right")
    grid.columns("GTID", "state", "by, at (UTC)", "reason", "changes")
    for each in found:
        row = (each.gtid or "-", each.state, f"{each.by}, {each.at[:19]}", each.reason, each.summary[:200])
        grid.row(f"{each.seqno:,}", *row)
    return grid


def show(name: str, folder: Path, seqno: int, write_to: Path | None) -> View:
    """One order with all its details; ``write_to``: a binlog file to write its events to."""
    _, endpoints = load(name, folder)
    with target_state(endpoints.target) as engine, engine.connect() as connection:
        found, log = read_skip(connection, name, seqno)
    if write_to is not None:
        with private_file(write_to) as file:
            file.write(log)
    return _details(found, write_to)


def replay(name: str, folder: Path, seqno: int, *, is_confirmed: bool = False) -> str:
    """Apply a skipped transaction after all, once. ``is_confirmed``: also where only a person can tell that the target
    lacks its changes."""
    channel, endpoints = load(name, folder)
    with (
        target_state(endpoints.target) as engine,
        driver_errors(),
        audited(endpoints.target, name, "replay-skipped", {"seqno": seqno, "--yes": is_confirmed}),
    ):
        with engine.connect() as connection:
            # only for the setting that decides whether the case of names counts
            schema = read_schema(connection, ())
            writer = chosen_writer(connection, channel.apply.writer)
        options = replace(apply_options(channel), writer=writer)
        rows = replay_skipped(engine, name, seqno, rules_of(channel, schema), options, is_confirmed=is_confirmed)
    return f"channel {name}: seqno {seqno:,} was replayed: {rows} by its rows, and its statements"


def _open_window(endpoints: Endpoints, channel: ChannelConfig) -> tuple[WorkFolder, Window, PlannedLanes]:
    name = channel.name
    with engine_of(endpoints.target).connect() as connection:
        window = read_open_window(connection, name)
    if window is None:
        raise PositionError(
            f"channel {name}: no window is open. Applied transactions cannot be skipped, and later ones have no "
            "seqno yet; run the channel first"
        )
    if window.plan_digest is None:
        raise PlanError(
            f"channel {name}: window {window.bounds.window_id} has no plan yet, so none of its transactions can "
            "be skipped; run the channel first, or, if the window is refused before its first write, see `A "
            "transaction that is refused before the first write` in docs/control.md"
        )
    work = WindowFolders(channel.work.uri, name).of(window.bounds.window_id, window.bounds.work)
    plans = work.plans(read_inputs(work).key)
    plan = read_plan(plans)
    if plan.digest != window.plan_digest:
        raise PlanError(
            f"{plans.uri}: expected the plan {window.plan_digest}, which is stored on the target, found "
            f"{plan.digest}; put shard list and channel file back as they were, and run the channel"
        )
    return work, window, PlannedLanes(plans, plan)


def _details(found: Skip, write_to: Path | None) -> Grid:
    grid = Grid.of_facts(f"seqno {found.seqno:,}")
    for key, value in (
        ("GTID", found.gtid or "-"),
        ("window, lane", f"{found.window_id}, {'all' if found.lane == ALL_LANES else found.lane}"),
        ("source", f"{found.source}, {moment(found.commit_time)}"),
        ("state", f"{found.state} since {found.state_at} UTC"),
        ("reason", found.reason),
        ("by", f"{found.by}, {found.at} UTC"),
        ("changes", found.summary),
        ("events", f"{found.bytes:,} bytes as a binlog file, SHA-256 {found.sha256}"),
        ("written to", "-" if write_to is None else str(write_to)),
    ):
        grid.row(key, one_line(value))
    return grid
