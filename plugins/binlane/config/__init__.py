"""A channel's file, ``dags/channels/<channel>.toml``: each key declared once, for reading, errors and docs."""

from binlane.config.keys import LAG_CALLBACK, ChannelConfig, number
from binlane.config.load import channel_files, find_channel, load_channel, require_channel_name

__all__ = [
    "LAG_CALLBACK",
    "ChannelConfig",
    "channel_files",
    "find_channel",
    "load_channel",
    "number",
    "require_channel_name",
]
