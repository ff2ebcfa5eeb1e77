"""Forgets an open window without a plan that has to be read again: to end before a transaction that the filter or the
precheck refuses, or because the log may have now what the window waits for."""

from __future__ import annotations

import logging

from binlane.connections import Endpoints
from binlane.errors import PlanError
from binlane.orchestration.request import WindowRequest
from binlane.plan.manifest import Manifest
from binlane.servers.engines import engine_of
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import Window, drop_unplanned
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.lookup import find_gtid

log = logging.getLogger(__name__)


def is_forgotten(endpoints: Endpoints, request: WindowRequest, window: Window, folders: WindowFolders) -> bool:
    """Delete the open window if it has no plan and is to be read again.

    That is so if the run is to end at the GTID of one of its transactions: a shorter window can be extracted; and if
    the window waits for DROPs that the log did not have. A window without a plan has changed nothing on the target; if
    another run plans it meanwhile, it stays (invariant 7).
    """
    if window.plan_digest is not None:
        return False
    folder = folders.of(window.bounds.window_id, window.bounds.work)
    if not folder.exists(files.MANIFEST) or not (why := _why_again(folder, request)):
        return False
    if not drop_unplanned(engine_of(endpoints.target), window):
        return False
    log.info("window %s has no plan yet: it is read again, %s", window.bounds.window_id, why)
    folder.remove()
    return True


def _why_again(folder: WorkFolder, request: WindowRequest) -> str:
    """Why a window is read again, for the log; empty if it is not."""
    if request.until_gtid is not None:
        try:
            return f"up to seqno {find_gtid(folder, request.until_gtid) - 1}"
        except PlanError:
            # the transaction is not in the window
            pass
    manifest = Manifest.from_json(folder.read(files.MANIFEST), f"{folder.uri}/{files.MANIFEST}")
    return "with the DROPs of temporary tables that the log has now" if manifest.waits_for_drops else ""
