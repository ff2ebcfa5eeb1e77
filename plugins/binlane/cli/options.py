"""What the modules of the command line share: the terminals, and the arguments that name channels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from binlane.cli.airflow_folder import IN_CHECKOUT, default_channels, distrusted
from binlane.orchestration.terminal import Terminal

out = Terminal()
err = Terminal(stderr=True)


def _trusted(context: typer.Context, option: typer.CallbackParam, folder: Path) -> Path:
    """The folder of the channel files. Raises BadParameter for that of the current folder, unless somebody has named
    it or it is this account's."""
    source = context.get_parameter_source(option.name or "")
    is_named = source is not None and source.name != "DEFAULT"
    if not is_named and folder == IN_CHECKOUT and folder.is_dir() and (why := distrusted()) is not None:
        raise typer.BadParameter(why)
    return folder


ChannelName = Annotated[
    str, typer.Argument(help="Name of the channel: its file in the channels folder, without .toml.")
]
ChannelFolder = Annotated[
    Path,
    typer.Option("--channels", help="Folder of the channel files.", envvar="BINLANE_CHANNELS", callback=_trusted),
]
DEFAULT_CHANNELS = default_channels(os.environ)
MaybeChannel = Annotated[
    str | None, typer.Argument(metavar="[CHANNEL]", help="Name of the channel, unless --tag names several.")
]
Tag = Annotated[str | None, typer.Option(help="All channels with this tag (tags in the channel file).")]
EngineName = Annotated[
    str,
    typer.Option(
        help="Engine of the plan job: local (processes), spark (SPARK_REMOTE, or spark-submit), auto (by the "
        "window's size), or package.module:function."
    ),
]
