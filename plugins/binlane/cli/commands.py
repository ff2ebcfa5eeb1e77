"""``binlane``: the DAG's steps without Airflow. Exit codes: 0 done, 1 failed, 2 bad input or configuration; those of
``check`` are a monitoring plugin's."""

from __future__ import annotations

import contextlib
import functools
import sys
import traceback
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from binlane.answers import unusable
from binlane.choices import ArchiveAction, Compressed, Part
from binlane.cli import fleet, restore, verify, windows
from binlane.cli.options import DEFAULT_CHANNELS, ChannelFolder, ChannelName, err, out
from binlane.connections import also_by
from binlane.errors import BinlaneError, ConfigError, naming
from binlane.orchestration.terminal import escape_unencodable, flushed, unexpected

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typer.models import CommandInfo

    from binlane.connections import AskStores, Endpoint

PURPOSES: Final[Mapping[str, tuple[str, ...]]] = {
    "Begin a channel": ("new", "grants", "doctor", "bootstrap", "init"),
    "Apply windows": ("plan", "run", "follow", "stop", "resume", "read-at", "advise"),
    "Look at channels": ("status", "find", "check", "config", "audit"),
    "Compare and correct": ("verify", "recopy", "conflicts"),
    "Restore": ("restore", "drill"),
    "Read a log": ("inspect", "show", "archive"),
    "Decide where a window cannot": ("skip", "replay-skipped", "decide", "xa", "adopt-target"),
    "The program": ("spark-job", "spark-archive", "version"),
}
"""The list of commands in ``binlane --help``: by what they are for, in the order in which a newcomer needs them."""
_WIDTH: Final = 120
"""Of the help, on a terminal that is as wide."""
_WHOLE: Final = 1000
"""Characters of a command's first sentence: none is cut, long ones are wrapped."""


class _Commands(TyperGroup):
    """The program, whose help lists its commands by purpose."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Called by the library for the help, behind the options."""
        widest = max(map(len, self.commands))
        for purpose, names in PURPOSES.items():
            with formatter.section(purpose):
                rows = [(name, self.commands[name].get_short_help_str(_WHOLE)) for name in names]
                # one column for all sections
                formatter.write_dl([(name.ljust(widest), told) for name, told in rows])


app = typer.Typer(
    cls=_Commands,
    context_settings={"max_content_width": _WIDTH},
    no_args_is_help=True,
    add_completion=False,
    # rich markup is off, because errors repeat the user's input
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Applies MySQL and MariaDB binary logs to another server: in parallel, in windows, each change exactly once.",
)
ForUsers = Annotated[bool, typer.Option("--users", help="Also for `bootstrap --users`, which copies accounts.")]
_INTERRUPTED = 130
_PLUGIN_UNKNOWN = 3


for _module, _names in (
    (windows, ("init", "adopt_target", "plan", "advise", "run", "follow", "read_at")),
    (fleet, ("config", "status", "find", "stop", "resume")),
    (verify, ("verify", "recopy")),
    (restore, ("restore", "drill")),
):
    for _name in _names:
        app.command()(getattr(_module, _name))


@app.command()
def inspect(
    files: Annotated[
        list[Path], typer.Argument(help="Binlog files, also compressed as .gz or .zst, or a folder of them.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    rows: Annotated[bool, typer.Option("--rows", help="Print every row change with its values.")] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Print every row change and statement as SQL.")] = False,
    event_bytes: Annotated[
        int, typer.Option("--event-bytes", help="Limit of bytes that a compressed transaction may inflate to.", min=1)
    ] = 1 << 30,
    channel: Annotated[
        str | None, typer.Option(help="Name columns by the target of this channel, where the log has no names.")
    ] = None,
    database: Annotated[
        list[str] | None, typer.Option(help="Transactions of these databases only; * and ? as in a shell.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option(help="Transactions of these tables only: database.table, * and ? as in a shell.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="With --table: transactions that change a row with this value: column=value, or @1=value."),
    ] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Print one line per transaction: seqno, place, GTID, time, databases, statements, rows."""
    from binlane.orchestration.commands.inspection.events import Detail, files_of, inspect_files, target_now
    from binlane.orchestration.commands.inspection.searched import Searched

    searched = Searched.of(database or (), table or (), where or ())
    detail = Detail(rows=rows, sql=sql, event_bytes=event_bytes)
    known = None if channel is None else target_now(channel, channels)
    paths = files_of(files)
    inspect_files(paths, as_json=as_json, out=out, err=err, detail=detail, known=known, searched=searched)


@app.command()
def archive(
    action: Annotated[
        ArchiveAction,
        typer.Argument(
            help="check: read all of it, and say what is wrong with it. index: write beside it what each file holds."
        ),
    ],
    uri: Annotated[str, typer.Argument(help="Folder or URI of binlog files, plain or compressed as .gz or .zst.")],
    engine: Annotated[
        str, typer.Option(help="Who indexes: local (processes), or spark (SPARK_REMOTE, or spark-submit).")
    ] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check an archive (missing, doubled, cut, damaged and foreign files), or index it. Exit code 1: faults."""
    if action is ArchiveAction.INDEX:
        from binlane.orchestration.commands.inspection.archive_index import index

        view, is_whole = index(uri, engine, as_json=as_json)
    else:
        from binlane.orchestration.commands.inspection.archive import check

        view, is_whole = check(uri, as_json=as_json)
    out.print(view)
    if not is_whole:
        raise typer.Exit(1)


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
    yes: Annotated[
        bool, typer.Option("--yes", help="Also where only a person can tell that the target lacks its changes.")
    ] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Apply a skipped transaction now, as it was recorded, once."""
    from binlane.orchestration.commands import skip as skipping

    out.print(skipping.replay(channel, channels, seqno, is_confirmed=yes))


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
def audit(
    channel: ChannelName,
    all_: Annotated[bool, typer.Option("--all", help="Of every channel and restore of the channel's target.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line, all that are kept.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """List the commands that have changed data or decisions: when, by whom, with which result; newest first."""
    from binlane.orchestration.commands import audit

    if as_json:
        for line in audit.as_json(channel, channels, of_all=all_):
            out.print(line)
    else:
        out.print(audit.view(channel, channels, of_all=all_))


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
    compress: Annotated[
        Compressed, typer.Option(help="The servers whose connections carry the rows compressed by zlib.")
    ] = Compressed.NONE,
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
    from binlane.bootstrap.first_copy import Options
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
    options = Options(
        bootstrapping.patterns_of(databases), users, replace, jobs, chunk_rows, lock_seconds, limits, compress
    )
    outcome = bootstrapping.bootstrap(channel, channels, options, out)
    out.print(bootstrapping.outcome_text(outcome))


@app.command()
def grants(
    channel: ChannelName,
    accounts: Annotated[
        bool, typer.Option("--accounts", help="Also for `verify --full --accounts`, which compares accounts.")
    ] = False,
    users: ForUsers = False,
    on: Annotated[
        Part | None, typer.Option(help="Of this server alone, to be piped into its client. Default: of both.")
    ] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Print the GRANT statements that the channel's accounts need on source and target. Writes nothing."""
    from binlane.orchestration.commands.setup import grants as granting

    out.print(granting.grants(channel, channels, compares_accounts=accounts, copies_users=users, on=on))


@app.command()
def spark_job(
    index: Annotated[bool, typer.Option("--index", help="Of the job that indexes an archive.")] = False,
) -> None:
    """Show the path of the plan job's file, for a spark-submit of your own."""
    from binlane.orchestration.plan_job.spark_submit import INDEX_JOB, PLAN_JOB

    out.print(str(INDEX_JOB if index else PLAN_JOB))


@app.command()
def spark_archive() -> None:
    """Write an archive of the classes that Spark loads: from then on a spark-submit of this account starts faster."""
    from binlane.orchestration.plan_job.jvm_options import write_class_archive

    out.print(str(write_class_archive()))


@app.command()
def new(
    channel: ChannelName,
    source: Annotated[
        str | None, typer.Option(help="Airflow connection of the source server. Default: NAME_source.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Airflow connection of the target server. Default: NAME_target.")
    ] = None,
    spark: Annotated[str, typer.Option(help="Airflow connection of the Spark master.")] = "spark_default",
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Write the file of a new channel; a file that exists stays as it is."""
    from binlane.orchestration.commands.setup import new as creating

    out.print(creating.new(channel, channels, source or f"{channel}_source", target or f"{channel}_target", spark))


@app.command()
def doctor(
    channel: ChannelName,
    users: ForUsers = False,
    airflow: Annotated[
        bool | None,
        typer.Option(
            help="Take the connections that this machine's Airflow has, not only this shell's. Default: if Airflow is "
            "configured here."
        ),
    ] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Check servers, accounts, settings, disks and clocks before the first write. Exit code 1 if one check fails."""
    from binlane.orchestration.commands.setup import doctor as readiness

    if not readiness.doctor(channel, channels, out, _stores, copies_users=users, asks_airflow=airflow):
        raise typer.Exit(1)


@functools.cache
def _stores() -> AskStores:
    # imports Airflow
    from binlane.orchestration.airflow.site_connections import stores_of_site

    return stores_of_site()


def _of_airflow(connection_id: str) -> Endpoint | None:
    from binlane.orchestration.commands.setup.connections_held import held_by_airflow

    return held_by_airflow(connection_id, _stores)


@app.command()
def version() -> None:
    """Show the version."""
    out.print(f"binlane {metadata.version('binlane')}")


def _naming_the_channel(run: Callable[..., object]) -> Callable[..., object]:
    """The command, whose errors name the channel that it was asked for."""

    @functools.wraps(run)
    def named(*arguments: Any, **options: Any) -> object:
        channel = options.get("channel")
        with contextlib.nullcontext() if channel is None else naming(channel):
            return run(*arguments, **options)

    return named


for _command in app.registered_commands:
    assert _command.callback is not None
    _command.callback = _naming_the_channel(_command.callback)


@functools.cache
def _program(word: str) -> Callable[[], object]:
    """The program as its first argument needs it: with one command, if the argument names one, else with all. To build
    all of them takes 20 ms of each start."""
    asked = [command for command in app.registered_commands if _name_of(command) == word]
    if not asked:
        return typer.main.get_command(app)
    alone = typer.Typer(
        context_settings={"max_content_width": _WIDTH},
        rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False,
    )  # fmt: skip
    alone.registered_commands = asked
    # a Typer of one command without a callback takes no command's name
    alone.callback()(_nothing)
    return typer.main.get_command(alone)


def _name_of(command: CommandInfo) -> str:
    assert command.callback is not None
    return command.name or command.callback.__name__.lower().replace("_", "-")


def _nothing() -> None: ...


def main() -> None:
    """The entry point: an error becomes one message and an exit code."""
    also_by(_of_airflow)
    if sys.argv[1:2] == ["check"]:
        _monitoring_plugin()
    try:
        _program(sys.argv[1] if len(sys.argv) > 1 else "")()
    except BinlaneError as exc:
        err.message((type(exc).__name__, "bold red"), (f": {exc}", ""))
        sys.exit(exc.exit_code)
    except SystemExit as exc:
        if exc.code == _INTERRUPTED:  # typer's exit code for SIGINT, without a message
            err.message(
                ("interrupted", "bold red"), (": committed blocks stay; run the same command again to continue", "")
            )
        raise
    except Exception as exc:
        answer = unusable(exc)
        if answer is None:
            unexpected(traceback.format_exc())
            sys.exit(1)
        err.message((type(answer).__name__, "bold red"), (f": {answer}", ""))
        sys.exit(answer.exit_code)


def _monitoring_plugin() -> NoReturn:
    """``check``: only its own answer is an exit code of 0, 1 or 2. Wrong arguments, an output that is closed or full,
    and every other error are UNKNOWN, because 1 is WARNING and 2 is CRITICAL."""
    code: str | int | None = _PLUGIN_UNKNOWN
    # a monitoring system's locale may lack a character of the line
    escape_unencodable()
    try:
        _program("check")()
    except SystemExit as exc:
        if isinstance(exc.__context__, typer.Exit):
            code = exc.code
        elif (message := getattr(exc.__context__, "format_message", None)) is not None:
            # wrong arguments: the usage is on the other output, which a monitoring system may not show
            from binlane.orchestration.commands.check import wrong_arguments

            out.print(wrong_arguments(message()))
    except Exception:
        with contextlib.suppress(OSError):
            unexpected(traceback.format_exc())
    sys.exit(code if flushed() else _PLUGIN_UNKNOWN)
