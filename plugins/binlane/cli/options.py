"""What the modules of the command line share: the terminals, and the arguments that name channels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from binlane.cli.airflow_folder import default_channels
from binlane.orchestration.terminal import Terminal

out = Terminal()
err = Terminal(stderr=True)

ChannelName = Annotated[
    str, typer.Argument(help="Name of the channel: its file in the channels folder, without .toml.")
]
ChannelFolder = Annotated[
    Path, typer.Option("--channels", help="Folder of the channel files.", envvar="BINLANE_CHANNELS")
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
