"""The commands about windows, and between them: init, plan, advise, run, follow, read-at. ``cli`` registers them."""

from __future__ import annotations

from typing import Annotated

import typer

from binlane.blas_threads import one_blas_thread
from binlane.cli.options import DEFAULT_CHANNELS, ChannelFolder, ChannelName, EngineName, err, out
from binlane.garbage import kept_imports

Until = Annotated[
    str | None,
    typer.Option(help='Where the window ends: "now" (the default), a time, or a GTID, before which it ends.'),
]
Lanes = Annotated[int | None, typer.Option(min=1, max=256, help="Number of parallel lanes, instead of the channel's.")]
BlockSize = Annotated[int | None, typer.Option(min=1, help="Source transactions per block, instead of the channel's.")]


def init(
    channel: ChannelName,
    start: Annotated[
        str,
        typer.Option(
            "--start", help='Where the first window begins: "oldest", "now", FILE:OFFSET, or the GTID set of a backup.'
        ),
    ] = "oldest",
    after: Annotated[
        str | None,
        typer.Option("--after", help="Go on where this channel ended, on the server that has replaced its source."),
    ] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Create the channel and the state tables on the target, or upgrade the tables of an older binlane."""
    from binlane.orchestration.commands import run as commands

    out.print(commands.init(channel, channels, start, after))


def adopt_target(
    channel: ChannelName,
    yes: Annotated[bool, typer.Option("--yes", help="Take the server; without it, only show what it has.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Make the server to which the target's connection leads the channel's target, behind a failover or a restore."""
    from binlane.orchestration.commands import adopt_target as adopting

    out.print(adopting.adopt_target(channel, channels, yes=yes))


def plan(
    channel: ChannelName,
    until: Until = None,
    lanes: Lanes = None,
    block_size: BlockSize = None,
    engine: EngineName = "local",
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Show the next window: lanes, blocks, barriers, tables and the result of the precheck. Writes nothing."""
    with kept_imports(), one_blas_thread():
        from binlane.orchestration.commands import run as commands

    out.print(commands.plan(commands.Call(channel, channels, until, lanes, block_size, engine), out))


def advise(
    channel: Annotated[
        str | None, typer.Argument(metavar="[CHANNEL]", help="Name of the channel; optional with --archive.")
    ] = None,
    archive: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Count the binlog files of this folder or URI, without any server."),
    ] = None,
    window: Annotated[
        str | None, typer.Option(help='Count a window that the work folder keeps: its name, or "last". No server.')
    ] = None,
    until: Until = None,
    lanes: Lanes = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Count the next window, or other logs, and print the settings that the counts speak for. Writes nothing."""
    from binlane.orchestration.commands import advise as advising

    out.print(
        advising.advise(advising.AdviceRequest(channel, channels, archive, window, until, lanes), as_json=as_json)
    )


def run(
    channel: ChannelName,
    until: Until = None,
    lanes: Lanes = None,
    block_size: BlockSize = None,
    engine: EngineName = "local",
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Apply one window: the unfinished one if there is one, otherwise the log from the watermark to --until."""
    with kept_imports(), one_blas_thread():
        from binlane.orchestration.commands import run as commands

    out.print(commands.run(commands.Call(channel, channels, until, lanes, block_size, engine), out))


def follow(
    channel: ChannelName,
    pause: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds between a window's end and the next look at the source.")
    ] = 1.0,
    for_: Annotated[
        str | None,
        typer.Option("--for", help="End with the first window that is finished after 90s, 15m, 2h, 7d."),
    ] = None,
    lanes: Lanes = None,
    block_size: BlockSize = None,
    engine: EngineName = "local",
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Apply one window behind another until SIGINT or SIGTERM: the target stays seconds behind the source."""
    with kept_imports(), one_blas_thread():
        from binlane.health.durations import seconds_of
        from binlane.orchestration.commands import follow as following
        from binlane.orchestration.commands import run as commands
        from binlane.orchestration.commands.windows_in_turn import Pace

    call = commands.Call(channel, channels, None, lanes, block_size, engine)
    seconds = None if for_ is None else seconds_of("--for", for_)
    out.print(following.follow(call, Pace(pause, seconds), out))


def read_at(
    channel: ChannelName,
    command: Annotated[str, typer.Option(help="A shell command that reads the target in one snapshot, as a backup.")],
    until_output: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The command's error output has this text when it has its snapshot."),
    ] = None,
    wait: Annotated[str, typer.Option(help="Longest wait for a place at which the target rests: 90s, 15m, 2h.")] = "1h",
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Run a command whose snapshot of the target is one state of the source, and print that place of the log."""
    from binlane.health.durations import seconds_of
    from binlane.orchestration.commands import read_at as reading

    asked = reading.ReadRequest(command, until_output, seconds_of("--wait", wait))
    raise typer.Exit(reading.read_at(channel, channels, asked, err))
