"""The command ``restore``. ``cli.commands`` registers it."""

from __future__ import annotations

from typing import Annotated

import typer

from binlane.blas_threads import one_blas_thread
from binlane.cli.options import DEFAULT_CHANNELS, ChannelFolder, out
from binlane.errors import ConfigError
from binlane.garbage import kept_imports


def restore(
    name: Annotated[str | None, typer.Argument(help="Name of the restore; default: made from the database's.")] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DUMP",
            help='A dump of mariadb-dump or mysqldump, plain, .gz or .zst; "log": the log has the CREATE DATABASE.',
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(help="Folder or URI of the binlog files (with a slash), or the connection of a live server."),
    ] = None,
    databases: Annotated[
        list[str] | None, typer.Option("--database", help="A database to restore, by its name in the log; repeatable.")
    ] = None,
    final: Annotated[str | None, typer.Option("--as", metavar="NAME", help="Its name on the target.")] = None,
    until: Annotated[
        str | None,
        typer.Option(help='The end: a time, before which it ends; a GTID or FILE:OFFSET, behind which it ends; "now".'),
    ] = None,
    before: Annotated[
        str | None, typer.Option(help="The end, instead: a GTID or a statement, before which it ends.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="FILE:OFFSET", help="The dump's place in the log, if it has recorded none.")
    ] = None,
    onto: Annotated[str | None, typer.Option(help="Airflow connection of the target.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Restore; without it, only show the plan.")] = False,
    continue_: Annotated[
        str | None, typer.Option("--continue", metavar="NAME", help="Go on with a restore that was interrupted.")
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Remove an unfinished restore and its databases, or forget a complete one."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the restores.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Restore databases to a moment of the log, under names of their own: a plan first, and with --yes the restore."""
    with kept_imports(), one_blas_thread():
        from binlane.orchestration.commands.copies import restore as restoring
        from binlane.orchestration.commands.copies.restore_plan import RestoreRequest

    if list_:
        out.print(restoring.restores(channels, as_json=as_json))
    elif drop is not None:
        out.print(restoring.drop_restore(drop, channels, out))
    elif continue_ is not None:
        out.print(restoring.proceed(continue_, channels, out, as_json=as_json))
    elif base is None or log is None or onto is None:
        lacks = [word for word, value in (("--from", base), ("--log", log), ("--onto", onto)) if value is None]
        raise ConfigError(f"{', '.join(lacks)}: expected a value; or --list, --continue NAME, --drop NAME")
    else:
        request = RestoreRequest(name, base, log, tuple(databases or ()), final, until, before, at, onto)
        out.print(restoring.restore(request, channels, out, carries_out=yes, as_json=as_json))
