"""CPU of what plan workers are forked from, and of a worker's first segment: ``python -m benchmarks.worker_start``.

Called by ``benchmarks.filter`` in a new interpreter, whose arguments are a window's folder, the plan's key and a
segment. Prints both numbers of seconds.
"""

from __future__ import annotations

import os
import sys
import time


def main(uri: str, key: str, name: str) -> None:
    """Prints the CPU seconds until all modules are imported, and those that a forked
    worker's first segment takes more than its next."""
    began = time.process_time()
    # the imports are what is measured
    from binlane.work.files import CONTEXT, WorkFolder
    from binlane.work.plan_inputs import WorkerInputs
    from binlane.work.plan_job.tasks import map_task, scan_task

    ready = time.process_time() - began
    work = WorkFolder(uri)
    planning = WorkerInputs.of(work, key, work.child(key).read(CONTEXT))

    def once() -> float:
        before = time.process_time()
        scan_task(uri, key, name)
        map_task(planning, name)
        return time.process_time() - before

    if os.fork() == 0:
        first = once()
        print("seconds", ready, max(first - min(once(), once()), 0.0), flush=True)
        os._exit(0)
    os.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
