"""``binlane``: the DAG's steps without Airflow. Exit codes: 0 done, 1 failed, 2 bad input or configuration."""

from __future__ import annotations

import sys
import traceback
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from binlane.errors import BinlaneError, ConfigError
from binlane.model import plural
from binlane.orchestration.terminal import Terminal, unexpected

if TYPE_CHECKING:
    from binlane.verify.run import Options

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    # no markup of rich, neither in help nor in errors, which repeat what was typed
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Rolls MySQL and MariaDB binary logs forward onto another server: in parallel, in windows, exactly once.",
)
_INTERRUPTED = 130
out = Terminal()
err = Terminal(stderr=True)

ChannelName = Annotated[
    str, typer.Argument(help="A channel: the name of a file in the channels folder, without .toml.")
]
ChannelFolder = Annotated[
    Path, typer.Option("--channels", help="Folder of the channel files.", envvar="BINLANE_CHANNELS")
]
DEFAULT_CHANNELS = Path("dags/channels")
Until = Annotated[str | None, typer.Option(help='Where the window ends: "now", a time or a GTID. Default: now.')]
Lanes = Annotated[int | None, typer.Option(min=1, max=256, help="Parallel lanes, instead of the channel's.")]
BlockSize = Annotated[int | None, typer.Option(min=1, help="Source transactions a block, instead of the channel's.")]
EngineName = Annotated[str, typer.Option(help="What runs the filter job: local (processes) or spark (spark-submit).")]


@app.command()
def init(
    channel: ChannelName,
    start: Annotated[
        str,
        typer.Option(
            "--start", help='Where the first window begins: "oldest", "now", FILE:OFFSET or a GTID set (of the backup).'
        ),
    ] = "oldest",
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Create the state tables on the target and the channel in them. Again: a no-op."""
    from binlane.orchestration.commands import run as commands

    out.print(commands.init(channel, channels, start))


@app.command()
def inspect(
    files: Annotated[list[Path], typer.Argument(help="Binlog files; .gz and .zst are read, too.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    rows: Annotated[bool, typer.Option("--rows", help="Every row change with its values.")] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Every row change and statement as SQL.")] = False,
    event_bytes: Annotated[
        int, typer.Option("--event-bytes", help="Bytes that a compressed transaction may inflate to.", min=1)
    ] = 1 << 30,
) -> None:
    """Show a line a transaction: seqno, place, GTID, time, databases, statements, rows."""
    from binlane.orchestration.commands.inspect import Detail, inspect_files

    inspect_files(files, as_json=as_json, out=out, err=err, detail=Detail(rows=rows, sql=sql, event_bytes=event_bytes))


@app.command()
def show(
    channel: ChannelName,
    seqno: Annotated[int, typer.Argument(help="A transaction of the open window, as errors name it.")],
    sql: Annotated[bool, typer.Option("--sql", help="As statements, instead of rows with their values.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Show one transaction of the open window as the source's log has it: statements, and rows with both images."""
    from binlane.orchestration.commands import inspect as inspection

    inspection.show(channel, channels, seqno, out, err, inspection.Detail(rows=not sql, sql=sql))


@app.command()
def plan(
    channel: ChannelName,
    until: Until = None,
    lanes: Lanes = None,
    block_size: BlockSize = None,
    engine: EngineName = "local",
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Show what the next window would write, by whom and in what order, and what stands in its way. Writes nothing."""
    from binlane.orchestration.commands import run as commands

    out.print(commands.plan(commands.Call(channel, channels, until, lanes, block_size, engine), out))


@app.command()
def run(
    channel: ChannelName,
    until: Until = None,
    lanes: Lanes = None,
    block_size: BlockSize = None,
    engine: EngineName = "local",
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Apply one window: the unfinished one if there is one, else the log from the watermark to --until."""
    from binlane.orchestration.commands import run as commands

    out.print(commands.run(commands.Call(channel, channels, until, lanes, block_size, engine), out))


@app.command()
def status(
    channel: ChannelName,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Show the watermark, its lag, the open window, each lane's position, gap and holder, and the last errors."""
    from binlane.orchestration.commands import operate

    out.print(operate.status(channel, channels, as_json=as_json))


@app.command()
def stop(
    channel: ChannelName,
    now: Annotated[bool, typer.Option("--now", help="At each lane's next block, wherever the others are.")] = False,
    at_seqno: Annotated[int | None, typer.Option(min=1, help="Behind this seqno of the open window.")] = None,
    at_gtid: Annotated[str | None, typer.Option(help="Behind the transaction that has this GTID.")] = None,
    at_time: Annotated[str | None, typer.Option(help="Before the first transaction of this time or later.")] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Ask the channel to stop: all lanes at the highest position that any of them has. Resuming goes on from there."""
    from binlane.orchestration.commands import operate

    places = {
        "--at-seqno": None if at_seqno is None else str(at_seqno),
        "--at-gtid": at_gtid,
        "--at-time": at_time,
    }
    out.print(operate.stop(channel, channels, now=now, places=places))


@app.command()
def resume(channel: ChannelName, channels: ChannelFolder = DEFAULT_CHANNELS) -> None:
    """Take a stop request back, so that the next run goes on."""
    from binlane.orchestration.commands import operate

    out.print(operate.resume(channel, channels))


@app.command()
def decide(
    channel: ChannelName,
    seqno: Annotated[int, typer.Argument(help="The DDL's seqno, as the error and `binlane status` name it.")],
    ran: Annotated[bool, typer.Option("--ran/--not-ran", help="Whether it has run on the target: look there first.")],
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Say whether a DDL has run that binlane cannot tell of by itself."""
    from binlane.orchestration.commands import operate

    out.print(operate.decide(channel, channels, seqno, ran=ran))


@app.command()
def xa(
    channel: ChannelName,
    done: Annotated[
        str | None,
        typer.Option(
            metavar="XID",
            help="The target has the changes of this XA transaction, which was prepared before the channel began.",
        ),
    ] = None,
    forget: Annotated[
        str | None,
        typer.Option(metavar="XID", help="The source has lost this prepared XA transaction in a crash."),
    ] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """List the XA transactions that are prepared and not ended at the watermark, or say what is true of one."""
    from binlane.orchestration.commands import operate

    out.print(operate.xa(channel, channels, done=done, forget=forget))


@app.command()
def skip(
    channel: ChannelName,
    seqno: Annotated[int | None, typer.Option(min=1, help="The transaction's seqno in the open window.")] = None,
    gtid: Annotated[str | None, typer.Option(help="Its GTID.")] = None,
    range_: Annotated[str | None, typer.Option("--range", help="Several, as FIRST-LAST seqno.")] = None,
    reason: Annotated[str, typer.Option(help="Why it is left out; kept with it.")] = "",
    cancel: Annotated[bool, typer.Option("--cancel", help="Take the order back, if it has not been followed.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Show all transactions that were skipped.")] = False,
    show: Annotated[int | None, typer.Option(help="Show the skipped transaction of this seqno.")] = None,
    write: Annotated[Path | None, typer.Option(help="With --show: write its events into this binlog file.")] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Leave a transaction of the open window out, recorded with its content; or show what was left out."""
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
    seqno: Annotated[int, typer.Argument(help="The skipped transaction's seqno.")],
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Apply a skipped transaction after all, as it was recorded, once."""
    from binlane.orchestration.commands import skip as skipping

    out.print(skipping.replay(channel, channels, seqno))


@app.command()
def conflicts(
    channel: ChannelName,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """List the rows that had drifted and were set right (apply.on_conflict = "overwrite"), newest first."""
    from binlane.orchestration.commands import conflicts

    if as_json:
        for line in conflicts.as_json(channel, channels):
            out.print(line)
    else:
        out.print(conflicts.view(channel, channels))


@app.command()
def verify(
    channel: ChannelName,
    full: Annotated[
        bool, typer.Option("--full", help="Every row of every table; goes on where one was ended.")
    ] = False,
    chunk_rows: Annotated[int, typer.Option(min=1, max=1_000_000, help="Rows that are compared at once.")] = 5_000,
    rows_per_second: Annotated[int | None, typer.Option(min=1, help="Read no faster than this.")] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Then set drifted rows of the target right: by a plan, when confirmed.")
    ] = False,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="FILE", help="With --repair: this plan, without verifying again.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --repair: do not ask.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Compare source and target: the rows that the last window touched, or all. Exit code 1 if rows have drifted."""
    from binlane.orchestration.commands import verify as verification
    from binlane.verify.run import Options

    if repair or plan is not None or yes:
        _repair(channel, channels, Options(full, chunk_rows, rows_per_second), plan, repair=repair, yes=yes)
        return
    outcome = verification.verify(channel, channels, Options(full, chunk_rows, rows_per_second))
    out.print(verification.outcome_text(outcome))
    if outcome.of_state("drift"):
        raise typer.Exit(1)


def _repair(channel: str, channels: Path, options: Options, plan: str | None, *, repair: bool, yes: bool) -> None:
    """Exit code 0 if no row is left that has drifted."""
    from binlane.orchestration.commands import repair as repairing
    from binlane.orchestration.commands import verify as verification

    if not repair:
        raise ConfigError("--plan, --yes: expected with --repair alone")
    if plan is None:
        outcome, stored = repairing.make_plan(channel, channels, options)
        out.print(verification.outcome_text(outcome))
    else:
        stored = repairing.read_stored(channel, plan)
    out.print(repairing.plan_text(stored))
    rows = len(stored.plan.rows)
    if rows:
        try:
            sure = yes or typer.confirm(f"Write {plural(rows, 'row')} on the target?")
        except typer.Abort:
            sure = False
        if not sure:
            again = f"binlane verify {channel} --repair --plan {stored.place}"
            out.print(f"nothing was repaired; `{again}` does it")
            raise typer.Exit(1)
        repaired = repairing.apply_plan(channel, channels, stored)
        text = repairing.repaired_text(channel, repaired)
        out.print(text)
    if stored.plan.left:
        raise typer.Exit(1)


@app.command()
def bootstrap(
    channel: ChannelName,
    databases: Annotated[
        str, typer.Option(help="Databases to copy: names or patterns such as tenant_*, separated by commas.")
    ] = "*",
    users: Annotated[bool, typer.Option("--users", help="Accounts and roles with their privileges, too.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="DROP these databases on the target first, whatever they hold.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Ranges of rows that are copied side by side.")] = 4,
    chunk_rows: Annotated[int, typer.Option(min=1, max=1_000_000, help="Rows a range.")] = 20_000,
    lock_seconds: Annotated[int, typer.Option(min=1, help="How long to wait for each lock on the source.")] = 30,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Copy databases from the live source to an empty target, and create the channel at exactly that place."""
    from binlane.bootstrap.run import Options
    from binlane.orchestration.commands import bootstrap as bootstrapping

    options = Options(bootstrapping.patterns_of(databases), users, replace, jobs, chunk_rows, lock_seconds)
    outcome = bootstrapping.bootstrap(channel, channels, options, out)
    out.print(bootstrapping.outcome_text(outcome))


@app.command()
def version() -> None:
    """Show the version."""
    out.print(f"binlane {metadata.version('binlane')}")


def main() -> None:
    """Entry point: errors become one message and an exit code."""
    try:
        app()
    except BinlaneError as exc:
        err.message((type(exc).__name__, "bold red"), (f": {exc}", ""))
        sys.exit(exc.exit_code)
    except SystemExit as exc:
        if exc.code == _INTERRUPTED:  # typer has made it of SIGINT, and says nothing
            err.message(
                ("interrupted", "bold red"), (": what is committed stays; the same command goes on from there", "")
            )
        raise
    except Exception:
        unexpected(traceback.format_exc())
        sys.exit(1)
