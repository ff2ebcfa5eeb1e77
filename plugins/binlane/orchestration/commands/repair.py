"""``binlane verify --repair``: makes, stores, shows and applies a repair plan."""

from __future__ import annotations

import contextlib
import posixpath
from pathlib import Path
from typing import Final

from binlane.apply.refusals import driver_errors
from binlane.apply.target_state import target_state
from binlane.bootstrap.sessions import Session, read_session, write_session
from binlane.choices import FilterKind, FilterPolicy
from binlane.config import ChannelConfig
from binlane.connections import Endpoint, Endpoints, Resolver
from binlane.errors import ConfigError, PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.orchestration.audited import audited, whoami
from binlane.orchestration.commands.channel import load
from binlane.orchestration.commands.verify import ComparedServers, compared_servers, verify_channel
from binlane.orchestration.effective_rules import rules_of, selection_of
from binlane.orchestration.extraction.window_reading import source_of
from binlane.repair.definitions import DefinitionRepairer
from binlane.repair.execution import Repairer, RepairResult
from binlane.repair.plan import Action, RepairPlan, RowRepair, plan_repair
from binlane.safe_text import one_line
from binlane.schema.model import Schema
from binlane.servers.engines import engine_of
from binlane.source.proved import prove_log
from binlane.state.channels import read_channel
from binlane.state.records.repairs import is_made, note_plan
from binlane.state.records.verifications import DRIFT
from binlane.verify.definitions.comparison import Definitions
from binlane.verify.outcome import Options, Outcome
from binlane.verify.rows.pairing import pair
from binlane.verify.rows.row_text import shown, words
from binlane.work.files import WorkFolder, room_needed

FOLDER: Final = "repairs"
"""Folder of plans in the channel's work folder."""
_SHOWN: Final = 20
"""Rows of a table that are shown."""


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan and its file."""

    plan: RepairPlan
    place: str


def make_plan(
    name: str, folder: Path, options: Options, *, resolve: Resolver | None = None
) -> tuple[Outcome, StoredPlan]:
    """Verify, and store a plan to correct the drift. Only the verification's state and the plan's digest are written to
    the target."""
    channel, endpoints = load(name, folder, resolve)
    outcome = verify_channel(channel, endpoints, options)
    with target_state(endpoints.target) as engine, engine.connect() as connection:
        found = read_channel(connection, channel.name)
    drift = outcome.of_state(DRIFT)
    # all rows of an outcome were compared at one watermark
    seqno = drift[0].seqno if drift else found.watermark.seqno
    plan = plan_repair(
        channel.name, found.uuid, seqno, drift, outcome.target, channel.apply.allow_triggers,
        keeps_rows=_keeps_rows(channel, outcome.target), differences=outcome.differences,
    )  # fmt: skip
    place = WorkFolder(channel.work.uri).child(channel.name).child(FOLDER)
    file = f"{plan.seqno:012d}-{plan.digest[:8]}.json"
    with room_needed(channel.work.uri):
        place.write_once(file, plan.to_json())
    stored = StoredPlan(plan, f"{place.uri}/{file}")
    if plan.is_needed:
        with target_state(endpoints.target) as engine, engine.begin() as connection:
            note_plan(connection, channel.name, plan.digest, stored.place, plan.seqno, whoami())
    return outcome, stored


def _keeps_rows(channel: ChannelConfig, target: Schema) -> bool:
    """Whether the filter ignores deletions, so that rows that exist only on the target are intended."""
    selection = selection_of(channel, target)
    return any(selection.policy(kind) == FilterPolicy.IGNORE for kind in (FilterKind.DELETE, FilterKind.TRUNCATE))


def read_stored(name: str, place: str) -> StoredPlan:
    """A stored plan. Raises PlanError for a plan of another channel or a damaged one; ``apply_plan`` asks the target
    whether it was made."""
    parent, file = posixpath.split(place)
    work = WorkFolder(parent or ".")
    if not work.exists(file):
        raise ConfigError(f"--plan: expected a file that `binlane verify --repair` has written, found no file {place}")
    plan = RepairPlan.from_json(work.read(file), place)
    if plan.channel != name:
        raise PlanError(f"{place}: expected a plan of the channel {name}, found one of {plan.channel}")
    return StoredPlan(plan, place)


def apply_plan(name: str, folder: Path, stored: StoredPlan, *, resolve: Resolver | None = None) -> RepairResult:
    """Repair the target by a plan. Raises as ``Repairer.run``; the target's errors become TargetError."""
    channel, endpoints = load(name, folder, resolve)
    if endpoints.source is None:
        raise ConfigError(f"{channel.file}: source: expected a live server to repair from, the channel has an archive")
    digest = stored.plan.digest
    with (
        target_state(endpoints.target),
        audited(endpoints.target, name, "verify --repair", digest=digest),
        driver_errors(),
        contextlib.ExitStack() as stack,
    ):
        _require_made(endpoints.target, stored)
        found = stack.enter_context(compared_servers(channel, endpoints))
        proven = found.endpoints.source
        assert proven is not None
        source = stack.enter_context(contextlib.closing(read_session(proven)))
        target = stack.enter_context(contextlib.closing(write_session(endpoints.target)))
        prove_log(source_of(channel, found.endpoints), found.start)
        return _repair(channel, endpoints, stored, found, source, target)


def _require_made(target: Endpoint, stored: StoredPlan) -> None:
    """Who can write to the work folder must not choose what a repair deletes, nor the statements that it runs."""
    plan = stored.plan
    with engine_of(target).connect() as connection:
        if is_made(connection, plan.channel, plan.digest):
            return
    raise PlanError(
        f"{stored.place}: expected a plan that `binlane verify --repair` has made for this target, found the digest "
        f"{plan.digest}, which binlane.repairs does not have: its making was interrupted, another program has written "
        "or changed the file, or the plan is another target's or an old one's; nothing was repaired. Make a new plan "
        f"with `binlane verify {plan.channel} --repair`"
    )


def _repair(
    channel: ChannelConfig,
    endpoints: Endpoints,
    stored: StoredPlan,
    found: ComparedServers,
    source: Session,
    target: Session,
) -> RepairResult:
    ours, theirs = found.schemas
    deletions = sum(row.action is Action.DELETE for row in stored.plan.rows)
    if deletions and _keeps_rows(channel, theirs):
        raise PlanError(
            f"{stored.place}: the plan deletes {plural(deletions, 'row')} of the target, and the channel's "
            "filter now keeps rows that the source has deleted; nothing was written. Run verify with --repair "
            "again: the new plan keeps these rows"
        )
    rules = rules_of(channel, theirs)
    target.execute(f"SET SESSION lock_wait_timeout = {channel.apply.lock_wait_timeout}")
    definitions = Definitions(found.pair, found.schemas, rules, found.visibility)
    return Repairer(
        plan=stored.plan,
        place=stored.place,
        by=whoami(),
        engine=engine_of(endpoints.target),
        source=source,
        target=theirs,
        tables=pair(ours, theirs, rules),
        definitions=DefinitionRepairer(definitions, source, target),
        with_triggers=frozenset(channel.apply.allow_triggers),
    ).run()


def plan_text(stored: StoredPlan) -> str:
    """The plan as text, shown before the confirmation."""
    plan = stored.plan
    lines = [f"repair of {plan.channel} at seqno {plan.seqno:,}, plan {stored.place} ({plan.digest[:12]}):"]
    by_table: dict[str, list[RowRepair]] = {}
    for row in plan.rows:
        by_table.setdefault(str(row.table), []).append(row)
    for table, rows in by_table.items():
        counts = ", ".join(f"{sum(row.action is each for row in rows):,} to {each}" for each in Action)
        lines.append(f"{one_line(table)}: {counts}")
        lines += [f"  {one_line(_row_text(row))}" for row in rows[:_SHOWN]]
        if len(rows) > _SHOWN:
            lines.append(f"  and {len(rows) - _SHOWN:,} more, in the plan")
    lines += [one_line(str(each)) for each in plan.definitions]
    lines += _left_lines(plan)
    if not plan.is_needed:
        lines.append("nothing to repair")
    return "\n".join(lines)


def left_text(plan: RepairPlan) -> str:
    """The drift that a plan leaves, and why: shown once more when all else is repaired."""
    return "\n".join(("still drifted:", *(f"  {line}" for line in _left_lines(plan))))


def _left_lines(plan: RepairPlan) -> list[str]:
    named = ((f"{each.table}: " if each.table.database else "", each.why) for each in plan.left)
    return [one_line(f"{name}not repaired: {why}") for name, why in named]


def _row_text(row: RowRepair) -> str:
    if not row.changes:  # the table has no other columns, or was altered since it was compared
        return f"{row.action} {row.key_text}" + (f": {', '.join(row.columns)}" if row.columns else "")
    match row.action:
        case Action.INSERT:
            changed = words((column, source) for column, _, source in row.changes)
        case Action.DELETE:
            changed = words((column, target) for column, target, _ in row.changes)
        case Action.UPDATE:
            each = (f"{column}={shown(target)} becomes {shown(source)}" for column, target, source in row.changes)
            changed = "; ".join(each)
    return f"{row.action} {row.key_text}: {changed}"


def repaired_text(name: str, repaired: RepairResult) -> str:
    """The result as text."""
    corrected = f", {plural(repaired.definitions, 'definition')} corrected" if repaired.definitions else ""
    text = (
        f"channel {name}: {plural(repaired.inserted, 'row')} inserted, {repaired.updated:,} updated, "
        f"{repaired.deleted:,} deleted on the target{corrected}; {repaired.equal_rows:,} were already right"
    )
    if repaired.changed_rows:
        text += (
            f"; {repaired.changed_rows:,} not repaired, because the source has changed them since: verify again "
            "after the next window"
        )
    return text
