"""The commands that apply windows: init, plan, run, follow. ``cli`` registers them."""

from __future__ import annotations

from typing import Annotated

import typer

from binlane.cli_options import DEFAULT_CHANNELS, ChannelFolder, ChannelName, EngineName, out

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
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Create the channel and the state tables on the target, or upgrade the tables of an older binlane."""
    from binlane.orchestration.commands import run as commands

    out.print(commands.init(channel, channels, start))


def plan(
    channel: ChannelName,
    until: Until = None,
    lanes: Lanes = None,
    block_size: BlockSize = None,
    engine: EngineName = "local",
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Show the next window: lanes, blocks, barriers, tables and the result of the precheck. Writes nothing."""
    from binlane.orchestration.commands import run as commands

    out.print(commands.plan(commands.Call(channel, channels, until, lanes, block_size, engine), out))


def run(
    channel: ChannelName,
    until: Until = None,
    lanes: Lanes = None,
    block_size: BlockSize = None,
    engine: EngineName = "local",
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Apply one window: the unfinished one if there is one, otherwise the log from the watermark to --until."""
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
    from binlane.health.durations import seconds_of
    from binlane.orchestration.commands import follow as following
    from binlane.orchestration.commands import run as commands

    call = commands.Call(channel, channels, None, lanes, block_size, engine)
    seconds = None if for_ is None else seconds_of("--for", for_)
    out.print(following.follow(call, following.Pace(pause, seconds), out))
