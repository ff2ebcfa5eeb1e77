"""Forgets an open window without a plan that has to be read again: its files are gone, the channel's file has changed,
it is to end before a transaction that the filter or the precheck refuses, or the log may have now what it waits for.

The next window is extracted in its place. It need not end where this one did: where a window can end depends on the
filter, and on who is connected to the source.
"""

from __future__ import annotations

import logging

from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import PlanError, WindowBusyError
from binlane.orchestration.effective_rules import changed_settings
from binlane.orchestration.request import WindowRequest
from binlane.plan.manifest import Manifest
from binlane.servers.engines import engine_of
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import Window, drop_unplanned
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.lookup import find_gtid

log = logging.getLogger(__name__)


def is_forgotten(
    channel: ChannelConfig, endpoints: Endpoints, request: WindowRequest, window: Window, folders: WindowFolders
) -> bool:
    """Delete the open window if it has no plan and is to be read again.

    A window without a plan has changed nothing on the target. Raises WindowBusyError if another run has planned or
    ended it meanwhile (invariant 7).
    """
    if window.plan_digest is not None:
        return False
    folder = folders.of(window.bounds.window_id, window.bounds.work)
    if not (why := _why_again(channel, folder, request)):
        return False
    if not drop_unplanned(engine_of(endpoints.target), window):
        raise WindowBusyError(
            f"channel {channel.name}, window {window.bounds.window_id}: another run of this channel has planned or "
            "ended it meanwhile; run again"
        )
    log.info("window %s has no plan yet: it is read again, %s", window.bounds.window_id, why)
    folder.remove()
    return True


def _why_again(channel: ChannelConfig, folder: WorkFolder, request: WindowRequest) -> str:
    """Why a window is read again, for the log; empty if it is not."""
    if not folder.exists(files.MANIFEST) or (folder.digests is not None and not folder.has(files.MANIFEST)):
        return f"because its files are gone from {folder.uri}"
    if changed := changed_settings(channel, folder):
        return f"because {changed} of the channel have changed"
    if request.until_gtid is not None:
        try:
            return f"up to seqno {find_gtid(folder, request.until_gtid) - 1}"
        except PlanError:
            # the transaction is not in the window
            pass
    manifest = Manifest.from_json(folder.read(files.MANIFEST), f"{folder.uri}/{files.MANIFEST}")
    return "with the DROPs of temporary tables that the log has now" if manifest.waits_for_drops else ""
