"""Removes old work folders: after each window, and at the start of each run, because a run can be killed during the
removal. Old rows of the state are removed at the start of each run alone, because a run that applies no window adds
some, too.

Folders of unfinished windows are kept: the rows on the target decide which windows are finished and old.
"""

from __future__ import annotations

import logging

from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.model import FolderRecord, plural
from binlane.safe_text import one_line
from binlane.servers.engines import engine_of
from binlane.state.channels import read_channel
from binlane.state.records.retention import finished_work, forget_history, forget_work, windows_with_work
from binlane.state.window_folders import WindowFolders, first_seqno_in

_log = logging.getLogger(__name__)


def remove_old(channel: ChannelConfig, endpoints: Endpoints) -> None:
    """``remove_folders``, and remove the rows of the state beyond ``work.keep_history``."""
    remove_folders(channel, endpoints)
    gone = forget_history(engine_of(endpoints.target), channel.name, keep=channel.work.keep_history)
    if gone:
        _log.info("removing the rows of %s from the state on the target", plural(gone, "old window"))


def remove_folders(channel: ChannelConfig, endpoints: Endpoints) -> None:
    """Remove the folders of finished windows beyond the newest ``work.keep_windows``, and folders of killed extractions
    and dry runs whose first seqno the watermark has passed: no run can use them."""
    engine = engine_of(endpoints.target)
    with engine.connect() as connection:
        old = finished_work(connection, channel.name, keep=channel.work.keep_windows)
        watermark = read_channel(connection, channel.name).watermark.seqno
        known = windows_with_work(connection, channel.name)
    folders = WindowFolders(channel.work.uri, channel.name)
    for window, record in old:
        _remove(folders, window, record)
        # after the removal, so that a later run repeats an interrupted one
        with engine.begin() as connection:
            forget_work(connection, channel.name, window)
    for name in folders.all.children():
        first = first_seqno_in(name)
        if first is not None and first <= watermark and name not in known:
            _log.info("removing %s, which belongs to no window on the target", folders.all.child(name).uri)
            folders.all.child(name).remove()


def _remove(folders: WindowFolders, window: str, record: FolderRecord) -> None:
    """Remove a finished window's folder, where the channel file says that it is. What is recorded of it on the target
    could have been changed there, so another place is left alone."""
    folder = folders.named(window)
    if first_seqno_in(window) is not None:
        folder.remove()
    if record.uri != folder.uri:
        _log.warning(
            "window %s is finished and old, and its files are recorded in %s, not in %s: removed at the second place "
            "alone; if the work folder was moved, remove the first by hand",
            *(window, one_line(record.uri), folder.uri),
        )
