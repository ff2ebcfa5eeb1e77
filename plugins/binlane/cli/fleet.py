"""The commands that take one channel or several: status, find, config, stop, resume. ``cli`` registers them."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from binlane.cli.options import DEFAULT_CHANNELS, ChannelFolder, ChannelName, MaybeChannel, Tag, err, out
from binlane.errors import BinlaneError, ConfigError, naming
from binlane.orchestration.terminal import unexpected

if TYPE_CHECKING:
    from binlane.config import DeclaredChannel


def config(channel: ChannelName, channels: ChannelFolder = DEFAULT_CHANNELS) -> None:
    """Print every key of a channel with its value: its own, from its template's variables, or the default."""
    from binlane.orchestration.commands.setup import config as expanding

    out.print(expanding.config(channel, channels))


def status(
    channel: Annotated[
        str | None, typer.Argument(metavar="[CHANNEL]", help="Name of the channel, unless --all or --tag.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="One line for each channel, the most serious first.")] = False,
    tag: Annotated[str | None, typer.Option(help="One line for each channel with this tag.")] = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Of one channel: also its last errors that are solved.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: an object, or a list for several.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Show health, watermark, lag, the open window, each lane's position, gap and holder, and its errors."""
    from binlane.orchestration.commands import fleet, operate

    if (channel is not None) == (all_ or tag is not None):
        raise ConfigError(
            f"status: expected either a channel, or --all or --tag, got {'both' if channel else 'neither'}"
        )
    if errors and channel is None:
        raise ConfigError("status: --errors is for one channel, got several; `binlane status CHANNEL --errors`")
    out.print(
        operate.status(channel, channels, as_json=as_json, errors=errors)
        if channel is not None
        else fleet.status_all(channels, tag, as_json=as_json)
    )


def find(
    pattern: Annotated[str, typer.Argument(help="Name of a database, or a pattern such as 'tenant_2*'.")] = "*",
    channel: Annotated[str | None, typer.Option(help="Only in this channel; default: in all.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only in channels with this tag.")] = None,
    lane: Annotated[int | None, typer.Option(min=0, help="Only databases of this lane.")] = None,
    drifted: Annotated[bool, typer.Option("--drifted", help="Only databases that are known to differ.")] = False,
    sort: Annotated[str, typer.Option(help="name, rows (row changes), applied (last transaction) or lane.")] = "name",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Databases of each channel, at most.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Find databases: channel, lane, last applied transaction, verification, row changes in the last windows."""
    from binlane.config import declared_channels
    from binlane.orchestration.commands import find as finding
    from binlane.orchestration.commands.fleet import chosen
    from binlane.state.records.databases import Order, Search

    asked = declared_channels(channels) if channel is None and tag is None else chosen(channel, tag, channels)
    if sort not in list(Order):
        raise ConfigError(f"--sort: expected one of {', '.join(Order)}, got {sort!r}")
    search = Search(pattern, lane, drifted, Order(sort))
    view, problems = finding.find(asked, search, limit, as_json=as_json)
    out.print(view)
    for problem in problems:
        err.message((problem, ""))
    if problems:
        raise typer.Exit(1)


def stop(
    channel: MaybeChannel = None,
    tag: Tag = None,
    now: Annotated[bool, typer.Option("--now", help="Stop each lane at its next block, at different seqnos.")] = False,
    at_seqno: Annotated[int | None, typer.Option(min=1, help="Stop after this seqno of the open window.")] = None,
    at_gtid: Annotated[str | None, typer.Option(help="Stop after the transaction with this GTID.")] = None,
    at_time: Annotated[
        str | None, typer.Option(help="Stop before the first transaction of this time or later.")
    ] = None,
    channels: ChannelFolder = DEFAULT_CHANNELS,
) -> None:
    """Stop the channel: all lanes end at the highest position that any of them has, until `binlane resume`."""
    from binlane.orchestration.commands import operate

    places = {
        "--at-seqno": None if at_seqno is None else str(at_seqno),
        "--at-gtid": at_gtid,
        "--at-time": at_time,
    }
    if tag is not None and any(places.values()):
        raise ConfigError(f"--tag: expected none of {', '.join(places)}: they name a place of one channel's log")
    of_each(channel, tag, channels, lambda one: operate.stop(one, channels, now=now, places=places))


def resume(channel: MaybeChannel = None, tag: Tag = None, channels: ChannelFolder = DEFAULT_CHANNELS) -> None:
    """Cancel a stop request, so that the next run continues the channel."""
    from binlane.orchestration.commands import operate

    of_each(channel, tag, channels, lambda one: operate.resume(one, channels))


def of_each(channel: str | None, tag: str | None, channels: Path, act: Callable[[DeclaredChannel], str]) -> None:
    """Print the result of an action on each chosen channel. An error of one of several, expected or not, is printed,
    the others follow, and the highest exit code of all is the command's."""
    from binlane.orchestration.commands.fleet import chosen

    code, asked = 0, chosen(channel, tag, channels)
    for one in asked:
        try:
            with naming(one.name):
                out.print(act(one))
        except Exception as exc:
            if len(asked) == 1:
                raise
            if not isinstance(exc, BinlaneError):
                unexpected(traceback.format_exc())
            err.message((f"{one.name}: {type(exc).__name__}", "bold red"), (f": {exc}", ""))
            code = max(code, exc.exit_code if isinstance(exc, BinlaneError) else 1)
    if code:
        raise typer.Exit(code)
