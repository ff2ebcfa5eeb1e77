"""A channel's file, ``dags/channels/<channel>.toml``: each key declared once, for reading, errors and docs."""

from binlane.config.by_name import number
from binlane.config.declared import DeclaredChannel, declared_channels, find_channel, require_channel_name
from binlane.config.keys import LAG_CALLBACK, ChannelConfig
from binlane.config.load import load_channel, tables_of

__all__ = [
    "LAG_CALLBACK",
    "ChannelConfig",
    "DeclaredChannel",
    "declared_channels",
    "find_channel",
    "load_channel",
    "number",
    "require_channel_name",
    "tables_of",
]
