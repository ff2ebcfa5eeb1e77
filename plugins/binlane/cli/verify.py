"""The commands that compare and correct rows: verify, recopy. ``cli`` registers them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from binlane.blas_threads import one_blas_thread
from binlane.cli.fleet import of_each
from binlane.cli.options import DEFAULT_CHANNELS, ChannelFolder, ChannelName, EngineName, MaybeChannel, Tag, out
from binlane.errors import ConfigError
from binlane.garbage import kept_imports
from binlane.model import plural
from binlane.safe_text import one_line

if TYPE_CHECKING:
    from binlane.config import DeclaredChannel
    from binlane.verify.outcome import Options

Budget = Annotated[
    str | None,
    typer.Option("--for", metavar="TIME", help="With --full: stop after 90s, 15m, 2h ...; the next run continues."),
]
Anew = Annotated[
    bool,
    typer.Option("--anew", help="With --full: begin with the first table, instead of where the last one ended."),
]


def verify(
    channel: MaybeChannel = None,
    tag: Tag = None,
    full: Annotated[
        bool, typer.Option("--full", help="Compare every row of every table; resumes an interrupted run.")
    ] = False,
    accounts: Annotated[
        bool, typer.Option("--accounts", help="With --full: compare accounts, roles and privileges, too.")
    ] = False,
    chunk_rows: Annotated[int, typer.Option(min=1, max=1_000_000, help="Rows that are compared at once.")] = 5_000,
    rows_per_second: Annotated[
        int | None, typer.Option(min=1, help="Highest rate of rows read from the target.")
    ] = None,
    max_threads_running: Annotated[
        int | None, typer.Option(min=1, help="Wait while a server has more threads running.")
    ] = None,
    budget: Budget = None,
    anew: Anew = False,
    database: Annotated[
        list[str] | None, typer.Option(help="Compare tables of these databases only; * and ? as in a shell.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option(help="Compare these tables only: database.table, * and ? as in a shell.")
    ] = None,
    shard: Annotated[
        list[str] | None, typer.Option(help="Compare tables of these shards only; * and ? as in a shell.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Then correct drift of the target, by a plan that is shown first.")
    ] = False,
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="FILE", help="With --repair: use this plan, without verifying again."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --repair: do not ask for confirmation.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Compare source and target: the rows that windows have touched since, or all rows. Exit code 1 on drift, and where
    an account does not see what was to be compared."""
    from binlane.health.durations import seconds_of
    from binlane.verify.outcome import Options
    from binlane.verify.scope import Scope

    if (accounts or anew or budget is not None) and not full:
        raise ConfigError("--accounts, --anew, --for: expected only together with --full")
    seconds = None if budget is None else seconds_of("--for", budget)
    scope = Scope(tuple(database or ()), tuple(table or ()), tuple(shard or ()))
    options = Options(
        full, chunk_rows, rows_per_second, seconds, max_threads_running, scope, accounts=accounts, anew=anew
    )
    if plan is not None and (full or scope.words):
        raise ConfigError("--plan: expected without --full, --database, --table and --shard: the plan names its rows")
    if not (repair or plan is not None or yes):
        _compare(channel, tag, channels, options)
    elif channel is None or tag is not None:
        raise ConfigError("--repair: expected one channel, for its plan is shown and confirmed")
    else:
        _repair(channel, channels, options, plan, repair=repair, yes=yes)


def _compare(channel: str | None, tag: str | None, channels: Path, options: Options) -> None:
    """Exit code 1 if a channel has drift, or was not compared as a whole."""
    with kept_imports(), one_blas_thread():
        from binlane.orchestration.commands import verify as verification

    drifted: list[str] = []

    def compare(one: DeclaredChannel) -> str:
        outcome = verification.verify(one, channels, options)
        if outcome.of_state("drift") or not outcome.is_complete:
            drifted.append(one.name)
        return verification.outcome_text(outcome)

    of_each(channel, tag, channels, compare)
    if drifted:
        raise typer.Exit(1)


def _repair(channel: str, channels: Path, options: Options, plan: str | None, *, repair: bool, yes: bool) -> None:
    """Exit code 0 if no drifted row is left, and everything was compared or the plan was made before."""
    from binlane.orchestration.commands import repair as repairing
    from binlane.orchestration.commands import verify as verification

    if not repair:
        raise ConfigError("--plan, --yes: expected only together with --repair")
    outcome = None
    if plan is None:
        outcome, stored = repairing.make_plan(channel, channels, options)
        out.print(verification.outcome_text(outcome))
    else:
        stored = repairing.read_stored(channel, plan)
    out.print(repairing.plan_text(stored))
    if stored.plan.is_needed:
        rows, definitions = plural(len(stored.plan.rows), "row"), plural(len(stored.plan.definitions), "definition")
        try:
            sure = yes or typer.confirm(f"Write {rows} and correct {definitions} on the target?")
        except typer.Abort:
            sure = False
        if not sure:
            again = f"binlane verify {channel} --repair --plan {stored.place}"
            out.print(f"nothing was repaired; to apply this plan: `{again}`")
            raise typer.Exit(1)
        repaired = repairing.apply_plan(channel, channels, stored)
        text = repairing.repaired_text(channel, repaired)
        out.print(text)
        if repaired.changed_rows and not stored.plan.left:
            # drift that is still there: a script that goes by the exit code must not take the target for right
            raise typer.Exit(1)
    if stored.plan.left:
        if stored.plan.is_needed:
            out.print(repairing.left_text(stored.plan))
        raise typer.Exit(1)
    if outcome is not None and not outcome.is_complete:
        raise typer.Exit(1)


def recopy(
    channel: ChannelName,
    table: Annotated[
        list[str], typer.Option("--table", help="database.table by its name on the target; can be repeated.")
    ],
    engine: EngineName = "local",
    lock_seconds: Annotated[int, typer.Option(min=1, help="Seconds to wait for each lock on the source.")] = 30,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Replace all rows of tables on the target by the source's, at the watermark; applies the windows up to there."""
    from binlane.orchestration.commands.copies import recopy as recopying

    if not yes:
        typer.confirm(f"Replace all rows of {one_line(', '.join(table))} on the target?", abort=True)
    out.print(recopying.recopy(channel, channels, recopying.Options(tuple(table), engine, lock_seconds), out))
