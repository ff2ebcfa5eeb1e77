"""Runs one lane in a process of its own, to be killed or stopped from outside."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection

from sqlalchemy import NullPool

from binlane.apply.lane.options import ApplyOptions, Progress
from binlane.apply.lane.runner import run_lane
from binlane.plan.window_plan import WindowPlan
from binlane.servers.engines import engine_at
from tests.integration.apply.capture import MemorySource


def run(
    url: str, plan: WindowPlan, lane: int, source: MemorySource, options: ApplyOptions, pause: float, told: Connection
) -> None:
    """Tell the seqno of each block that is applied, and pause behind it."""

    def tell(done: Progress) -> None:
        told.send(done.seqno)
        time.sleep(pause)

    run_lane(engine_at(url, poolclass=NullPool), plan, lane, source, options, tell)
