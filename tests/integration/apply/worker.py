"""Runs one lane in a process of its own, to be killed or stopped from outside. The lane's work comes pickled on
stdin."""

from __future__ import annotations

import pickle
import sys
import time

from sqlalchemy import NullPool, create_engine

from binlane.apply.lane import run_lane
from binlane.apply.options import ApplyOptions, Progress
from binlane.plan.window_plan import WindowPlan
from tests.integration.apply.capture import MemorySource


def main() -> None:
    url: str
    plan: WindowPlan
    lane: int
    source: MemorySource
    options: ApplyOptions
    pause: float
    url, plan, lane, source, options, pause = pickle.load(sys.stdin.buffer)

    def tell(done: Progress) -> None:
        sys.stdout.write(f"{done.lane} {done.seqno}\n")
        sys.stdout.flush()
        time.sleep(pause)

    run_lane(create_engine(url, poolclass=NullPool), plan, lane, source, options, tell)


if __name__ == "__main__":
    main()
