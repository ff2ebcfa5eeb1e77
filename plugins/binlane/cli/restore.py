"""The commands ``restore`` and ``drill``. ``cli.commands`` registers them."""

from __future__ import annotations

from typing import Annotated

import typer

from binlane.blas_threads import one_blas_thread
from binlane.cli.options import DEFAULT_CHANNELS, ChannelFolder, ChannelName, out
from binlane.errors import ConfigError
from binlane.garbage import kept_imports


def drill(
    channel: ChannelName,
    tenants: Annotated[
        int | None, typer.Option(min=1, help="Random databases that are restored; default: tenants of [drill].")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--from", metavar="DUMP", help="The dump to restore from; default: base of [drill]."),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            help="Folder or URI of the binlog files (with a slash), or the connection of a live server; default: log "
            "of [drill]."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Choose the databases and moments of the drill with this seed again.")
    ] = None,
    clean: Annotated[bool, typer.Option("--clean", help="Only remove what a drill that was killed has left.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the newest drills.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Restore random databases to random moments, compare them with the live copy, and remove them."""
    with kept_imports(), one_blas_thread():
        from binlane.orchestration.commands.copies import drill as drilling

    if list_:
        out.print(drilling.drills(channel, channels, as_json=as_json))
        return
    if clean:
        out.print(drilling.clean(channel, channels, out))
        return
    request = drilling.DrillRequest(tenants, base, log, seed)
    view, is_good = drilling.drill(channel, request, channels, out, as_json=as_json)
    out.print(view)
    if not is_good:
        raise typer.Exit(1)


def restore(
    name: Annotated[str | None, typer.Argument(help="Name of the restore; default: made from the database's.")] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DUMP",
            help="A dump of mariadb-dump or mysqldump, plain, .gz or .zst, or a folder of mydumper or MySQL Shell; "
            '"log": the log has the CREATE DATABASE.',
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(help="Folder or URI of the binlog files (with a slash), or the connection of a live server."),
    ] = None,
    databases: Annotated[
        list[str] | None,
        typer.Option(
            "--database",
            help="A database to restore, by its name in the log, or a pattern of those of the dump; repeatable.",
        ),
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option("--table", help="Of the one database, only this table and its triggers; repeatable."),
    ] = None,
    final: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Its name on the target; % stands for its own.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(help='The end: a time, before which it ends; a GTID or FILE:OFFSET, behind which it ends; "now".'),
    ] = None,
    before: Annotated[
        str | None, typer.Option(help="The end, instead: a GTID or a statement, before which it ends.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:OFFSET|GTIDS", help="The dump's place in the log, if it has recorded none that is known."
        ),
    ] = None,
    onto: Annotated[str | None, typer.Option(help="Airflow connection of the target.")] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace a database of that name; the former one is kept under another name."),
    ] = False,
    max_threads_running: Annotated[
        int, typer.Option(min=0, help="Wait while the target's Threads_running is higher; 0: never.")
    ] = 0,
    yes: Annotated[bool, typer.Option("--yes", help="Restore; without it, only show the plan.")] = False,
    digest: Annotated[
        str | None,
        typer.Option(help="With --yes: restore only if the plan has this digest, as --json and the plan show it."),
    ] = None,
    continue_: Annotated[
        str | None, typer.Option("--continue", metavar="NAME", help="Go on with a restore that was interrupted.")
    ] = None,
    extend: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Go on with a complete restore to a later end, --until or --before."),
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Remove an unfinished restore and its databases, or forget a complete one."),
    ] = None,
    drop_replaced: Annotated[
        str | None,
        typer.Option(
            "--drop-replaced", metavar="NAME", help="Drop the databases that a complete restore has replaced."
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the restores.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Restore databases to a moment of the log, under names of their own: a plan first, and with --yes the restore."""
    with kept_imports(), one_blas_thread():
        from binlane.orchestration.commands.copies import restore as restoring
        from binlane.orchestration.commands.copies.restore_list import restores
        from binlane.orchestration.commands.copies.restore_plan import EndRequest, RestoreRequest

    if digest is not None and not yes:
        raise ConfigError("--digest: expected --yes with it, or neither: without --yes the plan is only shown")
    if list_:
        out.print(restores(channels, as_json=as_json))
    elif drop is not None:
        forgotten = None if onto is None else restoring.forget_lost(drop, onto, channels)
        out.print(restoring.drop_restore(drop, channels, out) if forgotten is None else forgotten)
    elif drop_replaced is not None:
        out.print(restoring.drop_replaced(drop_replaced, channels, out))
    elif continue_ is not None:
        out.print(restoring.proceed(continue_, channels, out, as_json=as_json))
    elif extend is not None:
        out.print(
            restoring.extend(extend, EndRequest(until, before), log, channels, out, carries_out=yes, as_json=as_json,
                             digest=digest)
        )  # fmt: skip
    elif base is None or log is None or onto is None:
        lacks = [word for word, value in (("--from", base), ("--log", log), ("--onto", onto)) if value is None]
        raise ConfigError(
            f"{', '.join(lacks)}: expected a value; or --list, --continue NAME, --extend NAME, --drop NAME, "
            "--drop-replaced NAME"
        )
    else:
        ends, chosen = EndRequest(until, before), (tuple(databases or ()), tuple(tables or ()))
        request = RestoreRequest(name, base, log, *chosen, final, ends, at, onto, replace, None, max_threads_running)
        out.print(restoring.restore(request, channels, out, carries_out=yes, as_json=as_json, digest=digest))
