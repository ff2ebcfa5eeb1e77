"""``binlane bootstrap``: the first copy of a channel, for the command line and for its DAG."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from binlane.activity import Activity, doing
from binlane.apply.refusals import target_errors
from binlane.apply.target_state import require_own_target
from binlane.bootstrap.copy_progress import CopyState, Progress
from binlane.bootstrap.first_copy import FirstCopy, Options, Outcome
from binlane.bootstrap.sessions import answering
from binlane.config import ChannelConfig
from binlane.connections import Endpoints, Resolver
from binlane.errors import ConfigError
from binlane.health.first_copy import standing_text
from binlane.model import plural
from binlane.orchestration.audited import audited
from binlane.orchestration.commands.channel import load
from binlane.orchestration.effective_rules import selection_of
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.readiness import require_ready
from binlane.orchestration.terminal import Bars, Terminal
from binlane.readiness.situation import ReadinessRequest
from binlane.safe_text import one_line
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_of
from binlane.state.migrations.upgrade import create

log = logging.getLogger(__name__)

_LOG_SECONDS: Final = 5.0
_MORE_CONNECTIONS: Final = 2
"""On the target, beside one for each job."""


def bootstrap(
    name: str, folder: Path, options: Options, console: Terminal, *, resolve: Resolver | None = None
) -> Outcome:
    """Copy a channel's databases and create the channel, with a progress bar. Raises as ``first_copy``."""
    channel, endpoints = load(name, folder, resolve)
    with console.bars(seconds_left=True) as bars, doing("first copy") as activity:
        return first_copy(channel, endpoints, options, Bar(bars, activity))


def first_copy(
    channel: ChannelConfig, endpoints: Endpoints, options: Options, told: Progress, *, by: str | None = None
) -> Outcome:
    """Copy a channel's databases and create the channel. Raises ConfigError for a channel that reads an archive or has
    ``[rename]``. ``by``: the author, if not the account of this process."""
    if endpoints.source is None:
        raise ConfigError(f"{channel.file}: source: expected a live server to copy from, the channel has an archive")
    if channel.rename:
        raise ConfigError(
            f"{channel.file}: rename: expected no [rename] for a first copy, which keeps all names; copy the "
            "databases under their new names by other means and begin the channel at the place of that copy: "
            "docs/renames.md#the-first-copy"
        )
    source = source_of(channel, endpoints)
    with target_errors(str(endpoints.target)):
        require_own_target(endpoints.target, engine_of(endpoints.target))
    asked = ReadinessRequest(
        windows=False, users=options.users, databases=options.databases, connections=options.jobs + _MORE_CONNECTIONS,
        replaces=options.replace,
    )  # fmt: skip
    require_ready(channel, endpoints, source, asked)
    one = replace(endpoints, source=answering(endpoints.source))
    assert one.source is not None
    source = source_of(channel, one)
    engines = engine_of(one.source), engine_of(one.target)
    with target_errors(str(endpoints.target)):
        with engines[1].connect() as connection:
            # only for the setting that decides whether the case of names counts
            selection = selection_of(channel, read_schema(connection, ()))
        create(engines[1], channel.work.uri)
        command = "bootstrap --replace" if options.replace else "bootstrap"
        given = {"--databases": ",".join(options.databases), "--users": options.users}
        with audited(one.target, channel.name, command, given, by):
            return FirstCopy(channel, one.source, one.target, source, engines, options, told, selection).run()


def patterns_of(databases: str) -> tuple[str, ...]:
    """Names or patterns of databases from a text that separates them by commas."""
    return tuple(part.strip() for part in databases.split(",") if part.strip())


def summary_of(outcome: Outcome) -> dict[str, Any]:
    """The task's result, as small JSON values; keys of the watermark as in a window's summary."""
    result = outcome.result
    return {
        "seqno": 0,
        "gtid": outcome.mark.gtid_set,
        "time": outcome.mark.source_time,
        "source": str(outcome.mark.source),
        "databases": result.databases,
        "tables": result.tables,
        "kept": result.kept,
        "rows": result.rows,
        "accounts": result.accounts,
        "attempts": result.attempts,
    }


def outcome_text(outcome: Outcome) -> str:
    """The result as text."""
    result = outcome.result
    earlier = [f"{count:,} {what}" for count, what in ((result.kept, "kept"), (result.resumed, "continued")) if count]
    kept = f" ({', '.join(earlier)} from an earlier attempt)" if earlier else ""
    accounts = f", {plural(result.accounts, 'account')}" if result.accounts else ""
    kinds = ("view, routine, trigger, event or sequence", "views, routines, triggers, events and sequences")
    others = plural(result.others, *kinds)
    lines = [
        f"channel {outcome.channel}: {plural(result.databases, 'database')}, {plural(result.tables, 'table')}{kept}, "
        f"{plural(result.rows, 'row')}, {others}{accounts}; "
        f"watermark at seqno 0, {outcome.mark.source}"
    ]
    return "\n".join((*lines, *map(one_line, result.notes)))


class LogLines:
    """Progress for a task's log: one line every few seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = time.monotonic()

    def phase(self, name: str) -> None:
        """See ``bootstrap.copy_progress.Progress``."""
        log.info("%s", name)

    def show(self, standing: CopyState) -> None:
        """See ``bootstrap.copy_progress.Progress``."""
        with self._lock:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + _LOG_SECONDS
        log.info("%s; %s copied", standing_text(standing), plural(standing.rows, "row"))


class Bar:
    """A progress bar over the bytes of all tables, shown on a terminal only; elsewhere what the command is doing."""

    def __init__(self, bars: Bars, activity: Activity) -> None:
        self._bars, self._activity = bars, activity
        self._bar = bars.add("begins", 1)

    def phase(self, name: str) -> None:
        """See ``bootstrap.copy_progress.Progress``."""
        self._bars.show(self._bar, 0, name)
        self._activity.text = f"first copy: {name}"

    def show(self, standing: CopyState) -> None:
        """See ``bootstrap.copy_progress.Progress``."""
        rows = plural(standing.rows, "row")
        self._activity.text = f"first copy: {standing_text(standing)}; {rows}"
        self._bars.show(self._bar, standing.bytes, standing_text(standing), rows, max(standing.all_bytes, 1))
