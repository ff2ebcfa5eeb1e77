"""What is killed or stopped in the middle of a step. Each leaves the site as it was, but for the killed step."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from lab.cluster.processes import executors, wait_until
from lab.cluster.site import start_worker
from lab.programs import LabError

if TYPE_CHECKING:
    from binlane.model import Flavor
    from lab.airflow import PrivateAirflow
    from lab.cluster.site import Cluster

AWAY_SECONDS: Final = 20.0
"""So long a server is away that comes back."""
Break = Callable[["Cluster", "Flavor"], None]


def undisturbed(cluster: Cluster, family: Flavor) -> int:
    """Run a window; the most tries that a task had. Raises LabError."""
    return cluster.ended(family, cluster.trigger(family))


def in_lanes(cluster: Cluster, family: Flavor, broken: Break) -> int:
    """Run a window in whose lanes ``broken`` happens; the most tries that a task had. Raises LabError."""
    with cluster.held(family):
        run_id = cluster.trigger(family)
        wait_until(lambda: bool(cluster.lane_processes(family)), "no lane waits for a row")
        broken(cluster, family)
    return cluster.ended(family, run_id)


def in_map(cluster: Cluster, family: Flavor, broken: Break) -> int:
    """Run a window in whose map ``broken`` happens; the most tries that a task had. Raises LabError."""
    earlier = cluster.objects(family)
    run_id = cluster.trigger(family)
    wait_until(lambda: cluster.is_mapped(family, earlier), "the plan job has written no lane file")
    broken(cluster, family)
    return cluster.ended(family, run_id)


def kill_celery_worker(cluster: Cluster, family: Flavor) -> None:
    """With all its tasks, like the loss of its machine; another worker takes its place."""
    worker = _worker_with_a_lane(cluster, family)
    worker.kill("celery", and_its_tasks=True)
    start_worker(worker)


def kill_celery_parent(cluster: Cluster, family: Flavor) -> None:
    """The worker's first process alone: its tasks outlive it for a moment."""
    worker = _worker_with_a_lane(cluster, family)
    worker.kill("celery", and_its_tasks=False)
    start_worker(worker)


def kill_scheduler(cluster: Cluster, family: Flavor) -> None:
    """Its tasks are on the workers, and go on."""
    cluster.airflow.kill("scheduler", and_its_tasks=True)
    cluster.airflow.launch("scheduler")


def metadata_away(cluster: Cluster, family: Flavor) -> None:
    """PostgreSQL is killed, and started again later."""
    cluster.metadata.kill()
    time.sleep(AWAY_SECONDS)
    cluster.metadata.start()


def store_away(cluster: Cluster, family: Flavor) -> None:
    """The S3 server cuts its connections and refuses new ones for a while."""
    cluster.store.stop()
    time.sleep(AWAY_SECONDS)
    cluster.store.start()


def kill_executor(cluster: Cluster, family: Flavor) -> None:
    """One of Spark's two, in a task."""
    found = [pid for worker in cluster.spark_workers for pid in executors(worker)]
    if not found:
        raise LabError("Spark's workers have no executor: the map has ended too early to kill one")
    os.kill(found[0], signal.SIGKILL)


def kill_master(cluster: Cluster, family: Flavor) -> None:
    """Spark's master; the next one does not know the application."""
    assert cluster.master is not None
    cluster.master.kill()
    cluster.master.start()


IN_LANES: Final[Mapping[str, Break]] = {
    "a Celery worker killed with its lanes": kill_celery_worker,
    "a Celery worker's first process killed": kill_celery_parent,
    "the scheduler killed, lanes running": kill_scheduler,
    f"PostgreSQL away for {AWAY_SECONDS:.0f} s, lanes running": metadata_away,
    f"S3 away for {AWAY_SECONDS:.0f} s, lanes running": store_away,
}
IN_MAP: Final[Mapping[str, Break]] = {
    "a Spark executor killed in the map": kill_executor,
    "Spark's master killed in the map": kill_master,
    f"S3 away for {AWAY_SECONDS:.0f} s in the map": store_away,
}


def _worker_with_a_lane(cluster: Cluster, family: Flavor) -> PrivateAirflow:
    worker = cluster.worker_of(cluster.lane_processes(family))
    if worker is None:
        raise LabError("no Celery worker runs a lane that waits")
    return worker
