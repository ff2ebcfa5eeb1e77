"""The channel that a command names. Imports nothing that only windows need: commands that read or order start fast."""

from __future__ import annotations

from pathlib import Path

from binlane.apply.target_state import knowing_target, target_state
from binlane.config import ChannelConfig, DeclaredChannel, find_channel, load_channel
from binlane.connections import Endpoints, Resolver, environment_resolver, resolve_endpoints
from binlane.state.channels import Channel
from binlane.state.records.journal import ChannelStatus, read_status


def load(
    named: str | DeclaredChannel, folder: Path, resolve: Resolver | None = None, *, waits: bool = True
) -> tuple[ChannelConfig, Endpoints]:
    """A channel and its servers. ``named``: a channel of ``folder`` by name, or one that is found already;
    ``resolve``: resolves connections, if not from the environment; ``waits``: see ``target_state``. Raises
    ConfigError."""
    channel = load_channel(find_channel(named, folder) if isinstance(named, str) else named)
    endpoints = resolve_endpoints(channel, environment_resolver() if resolve is None else resolve)
    return channel, knowing_target(endpoints, waits=waits)


def proven(endpoints: Endpoints, channel: Channel) -> Endpoints:
    """The endpoints of a channel that has a watermark: each connection to the source asks whether it is the channel's
    server, and has executed everything up to the watermark."""
    return endpoints.proving(channel.proof)


def read_channel_status(endpoints: Endpoints, name: str) -> ChannelStatus:
    """The state of a channel on the target. Raises TargetError."""
    with target_state(endpoints.target) as engine:
        return read_status(engine, name)
