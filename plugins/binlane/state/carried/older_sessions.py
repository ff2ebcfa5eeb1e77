"""Connections of the source that may be older than the channel: forgotten behind a restart of the source's server."""

from __future__ import annotations

from sqlalchemy import Connection

from binlane.plan.manifest import Manifest
from binlane.state.channels import forget_older_sessions, read_channel
from binlane.work import files
from binlane.work.files import WorkFolder


def settle_older_sessions(connection: Connection, channel: str, folder: WorkFolder) -> None:
    """To be called when the watermark moves. ``folder``: the window's."""
    if not read_channel(connection, channel).older_sessions:
        return
    manifest = Manifest.from_json(folder.read(files.MANIFEST), f"{folder.uri}/{files.MANIFEST}")
    if manifest.restarted is not None:
        forget_older_sessions(connection, channel)
