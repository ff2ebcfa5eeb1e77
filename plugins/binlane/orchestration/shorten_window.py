"""Shortens an open window without a plan, so that it ends before a transaction that the filter or the precheck
refuses."""

from __future__ import annotations

import logging

from binlane.connections import Endpoints
from binlane.errors import PlanError
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import Window, drop_unplanned
from binlane.work import files
from binlane.work.lookup import find_gtid

log = logging.getLogger(__name__)


def is_forgotten(endpoints: Endpoints, request: WindowRequest, window: Window, folders: WindowFolders) -> bool:
    """Delete the open window if it has no plan and the run is to end at the GTID of one of its transactions, so that a
    shorter window can be extracted.

    A window without a plan has changed nothing on the target; if another run plans it meanwhile, it stays (invariant
    7).
    """
    if request.until_gtid is None or window.plan_digest is not None:
        return False
    folder = folders.of(window.bounds.window_id, window.bounds.work)
    if not folder.exists(files.MANIFEST):
        return False
    try:
        seqno = find_gtid(folder, request.until_gtid)
    except PlanError:
        return False
    if not drop_unplanned(engine_of(endpoints.target), window):
        return False
    log.info("window %s has no plan yet: it is read again, up to seqno %d", window.bounds.window_id, seqno - 1)
    folder.remove()
    return True
