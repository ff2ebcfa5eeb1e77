"""``binlane bootstrap``: the first copy of a channel, for a person."""

from __future__ import annotations

import threading
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from binlane.apply.refusals import target_errors
from binlane.bootstrap.run import FirstCopy, Options, Outcome
from binlane.connections import Resolver
from binlane.errors import ConfigError
from binlane.model import TableKey
from binlane.orchestration.commands import load
from binlane.orchestration.selecting import selection_of
from binlane.orchestration.steps import source_of
from binlane.state.catalog import read_schema
from binlane.state.engines import engine_of


def bootstrap(
    name: str, folder: Path, options: Options, console: Console, *, resolve: Resolver | None = None
) -> Outcome:
    """Copy a channel's databases and create the channel. Raises ConfigError for a channel that reads an archive."""
    channel, endpoints = load(name, folder, resolve)
    if endpoints.source is None:
        raise ConfigError(f"{channel.file}: source: expected a live server to copy from, the channel has an archive")
    if channel.rename:
        raise ConfigError(
            f"{channel.file}: rename: expected no [rename] for a first copy, which keeps all names; copy the "
            "databases under their new names by other means and begin the channel there: docs/renames.md#the-first-copy"
        )
    engines = engine_of(endpoints.source), engine_of(endpoints.target)
    with target_errors(str(endpoints.target)), Bar(console) as bar:
        source = source_of(channel, endpoints)
        with engines[1].connect() as connection:
            # nothing of it but whether letters' case counts
            selection = selection_of(channel, read_schema(connection, ()))
        return FirstCopy(channel, endpoints.source, endpoints.target, source, engines, options, bar, selection).run()


def outcome_text(outcome: Outcome) -> str:
    """What a person reads."""
    kept = f" ({outcome.kept:,} kept from an earlier attempt)" if outcome.kept else ""
    accounts = f", {outcome.accounts:,} accounts" if outcome.accounts else ""
    lines = [
        f"channel {outcome.channel}: {outcome.databases:,} databases, {outcome.tables:,} tables{kept}, "
        f"{outcome.rows:,} rows, {outcome.others:,} views, routines, triggers, events and sequences{accounts}; "
        f"watermark at seqno 0, {outcome.position}"
    ]
    return "\n".join((*lines, *outcome.notes))


class Bar:
    """A bar over all rows, by the source's estimate of them; empty where nothing is a terminal."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]} rows"))
        self._progress = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True)
        self._task: TaskID | None = None
        self._tables = self._finished = self._rows = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begins(self, tables: int, rows: int) -> None:
        """See ``bootstrap.run.Progress``."""
        self._tables = tables
        self._task = self._progress.add_task(f"0 of {tables:,} tables", total=max(rows, 1), rows="0")

    def copied(self, rows: int) -> None:
        """See ``bootstrap.run.Progress``."""
        with self._lock:
            self._rows += rows
            self._show()

    def finished(self, table: TableKey) -> None:
        """See ``bootstrap.run.Progress``."""
        with self._lock:
            self._finished += 1
            self._show()

    def _show(self) -> None:
        if self._task is not None:
            text = f"{self._finished:,} of {self._tables:,} tables"
            self._progress.update(self._task, completed=self._rows, description=text, rows=f"{self._rows:,}")
