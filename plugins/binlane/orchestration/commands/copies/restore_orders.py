"""What the form of a restore orders: a restore, a later end of a complete one, or the removal of one.

Each is planned first, and carried out with the digest of the plan that was approved, or not at all.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from binlane.lazy_dataclass import dataclass
from binlane.orchestration.commands.copies import restore as restoring
from binlane.orchestration.commands.copies import restore_plan
from binlane.orchestration.commands.copies.restore_digest import PlanFacts, digest_of
from binlane.orchestration.commands.copies.restore_form import (
    RestoreForm,
    log_of,
    request_of,
    require_allowed,
    require_own,
    shown_facts,
)
from binlane.orchestration.terminal import Grid, Terminal, View
from binlane.state.records.restores import EXTENDING

if TYPE_CHECKING:
    from binlane.config import ChannelConfig
    from binlane.connections import Resolver


@dataclass(frozen=True, slots=True)
class Order:
    """A plan for a person to approve."""

    subject: str
    """In a line."""
    view: list[Grid]
    facts: PlanFacts


def plan_order(form: RestoreForm, channel: ChannelConfig, resolve: Resolver) -> Order:
    """Plan what the form asks for; nothing is written. Raises ConfigError for what the channel's file does not allow,
    and as the commands do."""
    folder = Path(channel.file).parent
    if form.drop is not None:
        return _drop(form.drop, channel, folder, resolve)
    if form.extend is not None:
        require_own(form.extend, channel, restore_plan.folder_of(folder))
        log = log_of(form, channel)
        plan = restoring.plan_later_end(form.extend, _ends(form), log, folder, resolve)
        subject = f"Extend {plan.name}: {shown_facts(plan.facts)}"
    else:
        plan = restore_plan.plan_restore(request_of(form, channel), folder, resolve)
        subject = f"Restore {shown_facts(plan.facts)}"
    require_allowed(channel, plan.definition)
    return Order(subject, restore_plan.plan_view(plan), plan.facts)


def _ends(form: RestoreForm) -> restore_plan.EndRequest:
    return restore_plan.EndRequest(form.until, form.before)


def _drop(name: str, channel: ChannelConfig, folder: Path, resolve: Resolver) -> Order:
    require_own(name, channel, restore_plan.folder_of(folder))
    facts, found = restoring.plan_drop(name, folder, resolve)
    if found is not None:
        require_allowed(channel, found.definition)
    grid = Grid.of_facts(f"drop restore {name}: nothing is done yet")
    grid.row("stage", facts["stage"])
    grid.row("drops", facts["drops"] or "no database: its record and its files alone")
    if facts["keeps"]:
        grid.row("keeps", f"{facts['keeps']}; they can be extended no more")
    if found is not None and found.stage == EXTENDING:
        grid.row("then", "they are at no moment of the log if the interrupted extension has applied a part of it")
    grid.row("target", facts["target"])
    grid.row("digest", digest_of(facts))
    dropped = facts["drops"] or "no database"
    return Order(f"Drop restore {name}, which is {facts['stage']}, with {dropped}, on {facts['target']}", [grid], facts)


def carry_out(
    form: RestoreForm, channel: ChannelConfig, approved: PlanFacts, console: Terminal, by: str | None, resolve: Resolver
) -> View:
    """Carry out the plan with these facts, or go on with it; a retry of what is done says so. Raises PlanError for
    another plan."""
    folder = Path(channel.file).parent
    allowed = partial(require_allowed, channel)
    if form.drop is not None:
        if not (restore_plan.folder_of(folder) / f"{form.drop}.toml").exists():
            return f"restore {form.drop}: it has no file any more: it was dropped since the plan"
        require_own(form.drop, channel, restore_plan.folder_of(folder))
        return restoring.drop_restore(form.drop, folder, console, approved=approved, by=by, resolve=resolve)
    if form.extend is not None:
        require_own(form.extend, channel, restore_plan.folder_of(folder))
        return restoring.extend_approved(
            form.extend, _ends(form), log_of(form, channel), approved, folder, console, require_allowed=allowed, by=by,
            resolve=resolve,
        )  # fmt: skip
    return restoring.restore_approved(
        request_of(form, channel), approved, folder, console, require_allowed=allowed, by=by, resolve=resolve
    )
