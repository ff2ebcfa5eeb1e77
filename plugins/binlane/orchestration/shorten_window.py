"""Shortens an open window without a plan, so that it ends before a transaction that the filter or the precheck
refuses."""

from __future__ import annotations

import logging

from binlane.connections import Endpoints
from binlane.errors import PlanError
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.state.windows import Window, drop_unplanned
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.lookup import find_gtid

log = logging.getLogger(__name__)


def is_forgotten(endpoints: Endpoints, request: WindowRequest, window: Window) -> bool:
    """Forget the open window if the run is to end at the GTID of one of its transactions and it has no plan: a shorter
    one can be read then.

    Nothing of a window without a plan is on the target, and whoever plans it meanwhile keeps it (invariant 7).
    """
    folder = WorkFolder(window.bounds.work)
    if request.until_gtid is None or window.plan_digest is not None or not folder.exists(files.MANIFEST):
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
