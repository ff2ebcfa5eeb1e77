"""How far restores are: the stage, the step that takes time with its progress, and an interrupted one's error."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from binlane.health.progress import Stage, load_stage, stage_of
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition, TableKey
from binlane.shards.selection import Extent, Selection
from binlane.state.channels import has_channel, read_channel
from binlane.state.leases import bootstrap_lease, holder, load_lease
from binlane.state.records.audit import author_of
from binlane.state.records.history import clock_of, read_snapshot
from binlane.state.records.progress import RunStep, read_step
from binlane.state.records.restores import COMPLETE, Restore
from binlane.state.window_folders import WindowFolders

if TYPE_CHECKING:
    from binlane.config import ChannelConfig


@dataclass(frozen=True, slots=True)
class RestoreStanding:
    """How far a restore is."""

    found: Restore
    by: str
    """Who began it; empty if the audit does not say."""
    reached: LogPosition | None
    """The place of the log up to which everything is applied; None until the base is loaded."""
    is_running: bool = False
    """Whether a process works on it."""
    step: Stage | None = None
    """What takes time now; None also where nobody knows."""
    error: str = ""
    """At which the window of an interrupted one stands."""

    @property
    def state(self) -> str:
        """complete, running or interrupted."""
        if self.found.stage == COMPLETE:
            return COMPLETE
        return "running" if self.is_running else "interrupted"


def restore_standing(engine: Any, found: Restore, folders: WindowFolders) -> RestoreStanding:
    """``engine``: of the target that has the restore; ``folders``: of its windows."""
    name = found.name
    with engine.connect() as connection:
        by = author_of(connection, name, "restore")
        is_running = any(holder(connection, lease) is not None for lease in (bootstrap_lease(name), load_lease(name)))
        if not has_channel(connection, name):
            row = read_step(connection, name) if is_running else None
            step = load_stage(row, clock_of(connection)) if row is not None and row.step is RunStep.LOAD else None
            return RestoreStanding(found, by, None, is_running, step)
        if found.stage == COMPLETE:
            return RestoreStanding(found, by, read_channel(connection, name).watermark.source)
    snapshot = read_snapshot(engine, name, last_windows=2)
    step = stage_of(snapshot, folders) if is_running else None
    error = "" if snapshot.standing_error is None else snapshot.standing_error.text
    return RestoreStanding(found, by, snapshot.status.channel.watermark.source, is_running, step, error)


def left_out(channel: ChannelConfig, databases: Iterable[str], tables: Collection[str]) -> tuple[str, str] | None:
    """The first of these databases of the log that the channel does not copy as a whole, and the rule of its filter
    that leaves it out; None if there is none. ``tables``: only these of the database have to be copied; empty: all."""
    rules = channel.filter
    # whether the case of names counts is the target's to say: a name has to pass either way
    selections = [
        Selection(rules.include_databases, rules.exclude_databases, rules.include_tables, rules.exclude_tables, folds)
        for folds in (False, True)
    ]
    for name in databases:
        for selection in selections:
            extent, rule = selection.database(name)
            if tables and extent is not Extent.NONE:
                rule = next((out for table in tables if (out := selection.table(TableKey(name, table)))), None)
                extent = Extent.ALL if rule is None else Extent.SOME
            if extent is not Extent.ALL:
                return name, str(rule)
    return None
