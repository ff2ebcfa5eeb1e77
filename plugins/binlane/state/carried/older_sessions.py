"""Connections of the source that may be older than the channel, or that have ended unseen: forgotten behind a restart
of the source's server."""

from __future__ import annotations

from sqlalchemy import Connection

from binlane.plan.manifest import Manifest
from binlane.state.channels import keep_sessions, read_channel
from binlane.work import files
from binlane.work.files import WorkFolder


def settle_sessions(connection: Connection, channel: str, folder: WorkFolder) -> None:
    """To be called when the watermark moves. ``folder``: the window's."""
    manifest = Manifest.from_json(folder.read(files.MANIFEST), f"{folder.uri}/{files.MANIFEST}")
    if manifest.restarted is not None or manifest.lost_sessions:
        state = read_channel(connection, channel)
        keep_sessions(connection, state, manifest.lost_sessions, is_restarted=manifest.restarted is not None)
