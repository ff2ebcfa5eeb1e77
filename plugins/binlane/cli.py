"""``binlane``: the DAG's steps without Airflow. Exit codes: 0 done, 1 failed, 2 bad input or configuration; those of
``check`` are a monitoring plugin's."""

from __future__ import annotations

import contextlib
import sys
import traceback
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from binlane import cli_fleet, cli_windows
from binlane.cli_fleet import of_each
from binlane.cli_options import DEFAULT_CHANNELS, ChannelFolder, ChannelName, EngineName, MaybeChannel, Tag, err, out
from binlane.errors import BinlaneError, ConfigError
from binlane.model import plural
from binlane.orchestration.terminal import escape_unencodable, flushed, unexpected

if TYPE_CHECKING:
    from binlane.config import Declared
    from binlane.verify.run import Options

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    # rich markup is off, because errors repeat the user's input
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Applies MySQL and MariaDB binary logs to another server: in parallel, in windows, each change exactly once.",
)
_INTERRUPTED = 130
_PLUGIN_UNKNOWN = 3


for _module, _names in (
    (cli_windows, ("init", "plan", "run", "follow")),
    (cli_fleet, ("config", "status", "find", "stop", "resume")),
):
    for _name in _names:
        app.command()(getattr(_module, _name))


@app.command()
def inspect(
    files: Annotated[list[Path], typer.Argument(help="Binlog files, also compressed as .gz or .zst.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    rows: Annotated[bool, typer.Option("--rows", help="Print every row change with its values.")] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Print every row change and statement as SQL.")] = False,
    event_bytes: Annotated[
        int, typer.Option("--event-bytes", help="Limit of bytes that a compressed transaction may inflate to.", min=1)
    ] = 1 << 30,
) -> None:
    """Print one line per transaction: seqno, place, GTID, time, databases, statements, rows."""
    from binlane.orchestration.commands.inspection.events import Detail, inspect_files

    inspect_files(files, as_json=as_json, out=out, err=err, detail=Detail(rows=rows, sql=sql, event_bytes=event_bytes))


@app.command()
def show(
    channel: ChannelName,
    seqno: Annotated[int, typer.Argument(help="Seqno of a transaction of the open window, as in error messages.")],
    sql: Annotated[bool, typer.Option("--sql", help="Print SQL statements instead of rows with their values.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Show one transaction of the open window from the source's log: statements, and rows with both images."""
    from binlane.orchestration.commands.inspection import events as inspection

    inspection.show(channel, channels, seqno, out, err, inspection.Detail(rows=not sql, sql=sql))


@app.command()
def check(
    channel: ChannelName,
    max_lag: Annotated[
        str | None,
        typer.Option(help="Accepted age of the last applied commit: 90s, 15m, 2h, 7d, 0 for any. Else alert.max_age."),
    ] = None,
    max_unverified: Annotated[
        str | None,
        typer.Option(help="Accepted time of a change that is not verified. Else alert.max_unverified."),
    ] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Monitoring plugin: one line with performance data; exit code 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN."""
    from binlane.orchestration.commands import check as checking

    line, severity = checking.check(channel, channels, max_lag, max_unverified)
    out.print(line)
    raise typer.Exit(severity)


@app.command()
def decide(
    channel: ChannelName,
    seqno: Annotated[int, typer.Argument(help="Seqno of the DDL, as in the error message and `binlane status`.")],
    ran: Annotated[
        bool, typer.Option("--ran/--not-ran", help="The DDL has run, or has not run, on the target: look there first.")
    ],
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Record whether a DDL with an unknown outcome has run on the target."""
    from binlane.orchestration.commands import operate

    out.print(operate.decide(channel, channels, seqno, ran=ran))


@app.command()
def xa(
    channel: ChannelName,
    done: Annotated[
        str | None,
        typer.Option(
            metavar="XID",
            help="Record that the target has the changes of this XA transaction, prepared before the channel began.",
        ),
    ] = None,
    forget: Annotated[
        str | None,
        typer.Option(metavar="XID", help="Record that the source has lost this prepared XA transaction in a crash."),
    ] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """List the XA transactions that are prepared and not ended at the watermark, or record the end of one."""
    from binlane.orchestration.commands import operate

    out.print(operate.xa(channel, channels, done=done, forget=forget))


@app.command()
def skip(
    channel: ChannelName,
    seqno: Annotated[int | None, typer.Option(min=1, help="Seqno of the transaction in the open window.")] = None,
    gtid: Annotated[str | None, typer.Option(help="GTID of the transaction, instead of its seqno.")] = None,
    range_: Annotated[str | None, typer.Option("--range", help="Several transactions, as FIRST-LAST seqno.")] = None,
    reason: Annotated[str, typer.Option(help="Why the transaction is skipped; stored with it.")] = "",
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel the skip, if the transaction is not skipped yet.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List all skipped transactions.")] = False,
    show: Annotated[int | None, typer.Option(help="Show the skipped transaction with this seqno.")] = None,
    write: Annotated[Path | None, typer.Option(help="With --show: write its events into this binlog file.")] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Skip a transaction of the open window and store its content; or list and show skipped transactions."""
    from binlane.orchestration.commands import skip as skipping

    if list_:
        out.print(skipping.skips(channel, channels))
    elif show is not None:
        out.print(skipping.show(channel, channels, show, write))
    elif cancel:
        out.print(skipping.cancel(channel, channels, skipping.Which(seqno, gtid, range_)))
    else:
        out.print(skipping.skip(channel, channels, skipping.Which(seqno, gtid, range_), reason))


@app.command()
def replay_skipped(
    channel: ChannelName,
    seqno: Annotated[int, typer.Argument(help="Seqno of the skipped transaction.")],
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Apply a skipped transaction now, as it was recorded, once."""
    from binlane.orchestration.commands import skip as skipping

    out.print(skipping.replay(channel, channels, seqno))


@app.command()
def conflicts(
    channel: ChannelName,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """List the drifted rows that windows have corrected (apply.on_conflict = "overwrite"), newest first."""
    from binlane.orchestration.commands import conflicts

    if as_json:
        for line in conflicts.as_json(channel, channels):
            out.print(line)
    else:
        out.print(conflicts.view(channel, channels))


@app.command()
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
    budget: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="With --full: stop after 90s, 15m, 2h ...; the next run continues."),
    ] = None,
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
    """Compare source and target: the rows that windows have touched since, or all rows. Exit code 1 on drift."""
    from binlane.health.durations import seconds_of
    from binlane.orchestration.commands import verify as verification
    from binlane.verify.run import Options
    from binlane.verify.scope import Scope

    if (accounts or budget is not None) and not full:
        raise ConfigError("--accounts, --for: expected only together with --full")
    seconds = None if budget is None else seconds_of("--for", budget)
    scope = Scope(tuple(database or ()), tuple(table or ()), tuple(shard or ()))
    options = Options(full, chunk_rows, rows_per_second, seconds, max_threads_running, scope, accounts=accounts)
    if repair or plan is not None or yes:
        if channel is None or tag is not None:
            raise ConfigError("--repair: expected one channel, for its plan is shown and confirmed")
        _repair(channel, channels, options, plan, repair=repair, yes=yes)
        return
    drifted: list[str] = []

    def compare(one: Declared) -> str:
        outcome = verification.verify(one, channels, options)
        if outcome.of_state("drift"):
            drifted.append(one.name)
        return verification.outcome_text(outcome)

    of_each(channel, tag, channels, compare)
    if drifted:
        raise typer.Exit(1)


def _repair(channel: str, channels: Path, options: Options, plan: str | None, *, repair: bool, yes: bool) -> None:
    """Exit code 0 if no drifted row is left."""
    from binlane.orchestration.commands import repair as repairing
    from binlane.orchestration.commands import verify as verification

    if not repair:
        raise ConfigError("--plan, --yes: expected only together with --repair")
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
    if stored.plan.left:
        raise typer.Exit(1)


@app.command()
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
        typer.confirm(f"Replace all rows of {', '.join(table)} on the target?", abort=True)
    out.print(recopying.recopy(channel, channels, recopying.Options(tuple(table), engine, lock_seconds), out))


@app.command()
def bootstrap(
    channel: ChannelName,
    databases: Annotated[
        str, typer.Option(help="Databases to copy: names or patterns such as tenant_*, separated by commas.")
    ] = "*",
    users: Annotated[bool, typer.Option("--users", help="Also copy accounts and roles with their privileges.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="DROP these databases on the target first, with everything in them.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Ranges of rows that are copied in parallel.")] = 4,
    chunk_rows: Annotated[int, typer.Option(min=1, max=1_000_000, help="Rows per range.")] = 20_000,
    lock_seconds: Annotated[int, typer.Option(min=1, help="Seconds to wait for each lock on the source.")] = 30,
    rows_per_second: Annotated[int, typer.Option(min=0, help="Copy at most this many rows per second; 0: all.")] = 0,
    mib_per_second: Annotated[int, typer.Option(min=0, help="Copy at most this many MiB per second; 0: all.")] = 0,
    max_threads_running: Annotated[
        int, typer.Option(min=0, help="Wait while the source's Threads_running is higher; 0: never.")
    ] = 0,
    max_source_lag: Annotated[
        int, typer.Option(min=0, help="Wait while the source, a replica, is more seconds behind; 0: never.")
    ] = 0,
    from_clone: Annotated[
        bool, typer.Option("--from-clone", help="Copy nothing: MySQL's CLONE has filled the target; begin there.")
    ] = False,
    from_backup: Annotated[
        Path | None,
        typer.Option(help="Copy nothing: the target was restored from the backup in this folder; begin there."),
    ] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Copy databases from the live source to an empty target, and create the channel at the place of the copy."""
    from binlane.bootstrap.run import Options
    from binlane.bootstrap.throttle import Limits
    from binlane.orchestration.commands.copies import bootstrap as bootstrapping
    from binlane.orchestration.commands.copies.physical import begin_at_copy

    if from_clone or from_backup is not None:
        if (from_clone and from_backup is not None) or users or replace or databases != "*":
            raise ConfigError(
                "--from-clone, --from-backup: expected one of them alone: the copy has all databases and accounts"
            )
        out.print(begin_at_copy(channel, channels, from_backup))
        return
    limits = Limits(rows_per_second, mib_per_second, max_threads_running, max_source_lag)
    options = Options(bootstrapping.patterns_of(databases), users, replace, jobs, chunk_rows, lock_seconds, limits)
    outcome = bootstrapping.bootstrap(channel, channels, options, out)
    out.print(bootstrapping.outcome_text(outcome))


@app.command()
def grants(
    channel: ChannelName,
    accounts: Annotated[
        bool, typer.Option("--accounts", help="Also for `verify --full --accounts`, which compares accounts.")
    ] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Print the GRANT statements that the channel's accounts need on source and target. Writes nothing."""
    from binlane.orchestration.commands import grants as granting

    out.print(granting.grants(channel, channels, compares_accounts=accounts))


@app.command()
def spark_job() -> None:
    """Show the path of the filter job's file, for a spark-submit of your own."""
    from binlane.orchestration.spark import FILTER_JOB

    out.print(str(FILTER_JOB))


@app.command()
def new(
    channel: ChannelName,
    source: Annotated[str, typer.Option(help="Airflow connection of the source server.")],
    target: Annotated[str, typer.Option(help="Airflow connection of the target server.")],
    spark: Annotated[str, typer.Option(help="Airflow connection of the Spark master.")] = "spark_default",
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Write the file of a new channel, whose first window survives an old log. Never overwrites a file."""
    from binlane.orchestration.commands import new as creating

    out.print(creating.new(channel, channels, source, target, spark))


@app.command()
def doctor(channel: ChannelName, channels: ChannelFolder = DEFAULT_CHANNELS) -> None:
    """Check servers, accounts, settings, disks and clocks before the first write. Exit code 1 if one check fails."""
    from binlane.orchestration.commands import doctor as readiness

    if not readiness.doctor(channel, channels, out):
        raise typer.Exit(1)


@app.command()
def version() -> None:
    """Show the version."""
    out.print(f"binlane {metadata.version('binlane')}")


def main() -> None:
    """The entry point: an error becomes one message and an exit code."""
    if sys.argv[1:2] == ["check"]:
        _monitoring_plugin()
    try:
        app()
    except BinlaneError as exc:
        err.message((type(exc).__name__, "bold red"), (f": {exc}", ""))
        sys.exit(exc.exit_code)
    except SystemExit as exc:
        if exc.code == _INTERRUPTED:  # typer's exit code for SIGINT, without a message
            err.message(
                ("interrupted", "bold red"), (": committed blocks stay; run the same command again to continue", "")
            )
        raise
    except Exception:
        unexpected(traceback.format_exc())
        sys.exit(1)


def _monitoring_plugin() -> NoReturn:
    """``check``: only its own answer is an exit code of 0, 1 or 2. Wrong arguments, an output that is closed or full,
    and every other error are UNKNOWN, because 1 is WARNING and 2 is CRITICAL."""
    code: str | int | None = _PLUGIN_UNKNOWN
    # a monitoring system's locale may lack a character of the line
    escape_unencodable()
    try:
        app()
    except SystemExit as exc:
        if isinstance(exc.__context__, typer.Exit):
            code = exc.code
    except Exception:
        with contextlib.suppress(OSError):
            unexpected(traceback.format_exc())
    sys.exit(code if flushed() else _PLUGIN_UNKNOWN)
