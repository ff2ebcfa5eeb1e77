"""The smallest part of ``make cluster-test``: two Celery workers with folders of their own, a work folder on S3.

A worker that is killed in a lane loses nothing: the other worker's lanes and the next tries end the window.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from binlane.model import Flavor
from lab.airflow import PROJECT, processes_of
from lab.cluster.breaks import in_lanes, kill_celery_worker
from lab.cluster.processes import missing_programs
from lab.cluster.site import new_cluster

pytestmark = pytest.mark.trial

SPARK_SUBMIT = f"""#!{sys.executable}
import re, sys
from pathlib import Path
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from binlane.work.plan_job.made import TOKEN, answer
work, properties = (sys.argv[sys.argv.index(name) + 1] for name in ("--work", "--properties-file"))
run_plan_job(WorkFolder(work), InProcess())
answer(work, re.search(re.escape(TOKEN) + "=(.*)", Path(properties).read_text())[1])
"""
"""Stands for Spark, whose cluster `make cluster-test` starts."""
MISSING = missing_programs()


@pytest.mark.timeout(900)
@pytest.mark.skipif(MISSING != "", reason=f"no cluster to test with: {MISSING}")
def test_a_killed_celery_worker_s_lanes_are_ended_by_others_and_nothing_of_the_cluster_lives_on() -> None:
    with new_cluster([Flavor.MARIADB], SPARK_SUBMIT) as cluster:
        cluster.binlane("init", "mariadb", "--start", "oldest")
        cluster.write(Flavor.MARIADB, 400)
        cluster.binlane("run", "mariadb")
        cluster.write(Flavor.MARIADB, 400)
        assert in_lanes(cluster, Flavor.MARIADB, kill_celery_worker) > 1
        assert cluster.equal(Flavor.MARIADB) > 6
        airflows = (cluster.airflow, *cluster.workers)
    assert [processes_of(airflow.home, airflow.leaders) for airflow in airflows] == [set()] * 3
    assert not cluster.folder.exists()


def test_when_a_site_s_script_is_gone_its_guard_ends_every_airflow_and_removes_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    homes = [folder / "airflow", folder / "celery-worker-1"]
    for home in homes:
        home.mkdir(parents=True)
    (folder / "postgresql.log").touch()
    services = [subprocess.Popen(["sleep", "600"], env={**os.environ, "AIRFLOW_HOME": str(home)}) for home in homes]
    guard = subprocess.Popen(
        [sys.executable, "-m", "lab.cluster.guard", str(folder)], stdin=subprocess.PIPE, cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": f"{PROJECT / 'plugins'}{os.pathsep}{PROJECT}"},
    )  # fmt: skip
    assert [service.poll() for service in services] == [None, None]
    # as the end of the script does it, whatever ends it
    guard.communicate(timeout=60)
    assert [service.wait(timeout=60) for service in services] == [-15, -15]
    assert not folder.exists()
