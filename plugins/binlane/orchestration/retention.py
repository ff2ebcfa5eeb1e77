"""Removes old work folders: after each window, and at the start of each run, because a run can be killed during the
removal.

Folders of unfinished windows are kept: the rows on the target decide which windows are finished and old.
"""

from __future__ import annotations

import logging
import re
from typing import Final

from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.model import plural
from binlane.servers.engines import engine_of
from binlane.state.channels import read_channel
from binlane.state.records.retention import finished_work, forget_history, forget_work, windows_with_work
from binlane.work.files import WorkFolder

_log = logging.getLogger(__name__)
_WINDOW: Final = re.compile(r"(\d{12,})-[0-9a-f]{8}")
"""The name of a window's folder: its first seqno and a random part."""


def remove_old(channel: ChannelConfig, endpoints: Endpoints) -> None:
    """Remove the folders of finished windows beyond the newest ``work.keep_windows``, unusable folders, and the rows of
    the state beyond ``work.keep_history``."""
    engine = engine_of(endpoints.target)
    with engine.connect() as connection:
        old = finished_work(connection, channel.name, keep=channel.work.keep_windows)
    for work in old:
        WorkFolder(work).remove()
        # after the removal, so that a later run repeats an interrupted one
        with engine.begin() as connection:
            forget_work(connection, channel.name, work)
    _sweep(channel, endpoints)
    gone = forget_history(engine, channel.name, keep=channel.work.keep_history)
    if gone:
        _log.info("removing the rows of %s from the state on the target", plural(gone, "old window"))


def _sweep(channel: ChannelConfig, endpoints: Endpoints) -> None:
    """Remove folders of killed extractions and dry runs whose first seqno the watermark has passed: no run can use
    them."""
    folder = WorkFolder(channel.work.uri).child(channel.name)
    with engine_of(endpoints.target).connect() as connection:
        watermark = read_channel(connection, channel.name).watermark.seqno
        known = windows_with_work(connection, channel.name)
    for name in folder.children():
        first = _WINDOW.fullmatch(name)
        if first is not None and int(first[1]) <= watermark and name not in known:
            _log.info("removing %s, which belongs to no window on the target", folder.child(name).uri)
            folder.child(name).remove()
