"""Segments that are scanned while the log behind them is read: the plan is that of the plan job alone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.plan.manifest import Segment
from binlane.plan.settings import PlanSettings
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import read_inputs
from binlane.work.plan_job import early_scans, job, tasks
from binlane.work.plan_job.early_scans import EarlyScans
from binlane.work.plan_job.job import InProcess, Scanned, run_plan_job
from tests.integration.window.conftest import Channel, run_on
from tests.waiting import wait_until

NOW = WindowRequest("now")


@pytest.fixture
def busy(channel: Channel) -> Channel:
    """A channel without critical shards, whose next window has several segments."""
    channel.write_shard_list("")
    channel.traffic(400)
    return channel


def extracted(channel: Channel, early: EarlyScans) -> WorkFolder:
    window = steps.extract(channel.config, channel.endpoints, NOW, scan=early.told)
    assert window["segments"] > 3
    return WorkFolder(window["work"])


def settings_of(work: WorkFolder) -> PlanSettings:
    return read_inputs(work).settings


def plan_of(work: WorkFolder, scanned: Scanned | None = None) -> bytes:
    run_plan_job(work, InProcess(), scanned)
    return work.child(read_inputs(work).key).read(files.PLAN)


def test_the_plan_is_the_same_and_only_the_rest_is_scanned_by_the_job(
    busy: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[str] = []
    scan_task = tasks.scan_task

    def counted(uri: str, key: str, name: str) -> bytes:
        scans.append(name)
        return scan_task(uri, key, name)

    monkeypatch.setattr(job, "scan_task", counted)
    with EarlyScans(1) as early:
        work = extracted(busy, early)
        # what waits for a process when the log has been read is left to the job
        taken = {segment.name for segment in early.rows(settings_of(work))}
        assert taken
        names = [segment.name for segment in read_inputs(work).manifest.segments]
        wait_until(lambda: all(future.done() for future in early._futures.values()), 60)
        plan = plan_of(work, early.rows)
    assert scans == [name for name in names if name not in taken]
    # the last one is never scanned early
    assert scans[-1] == names[-1]
    scans.clear()
    work.child(read_inputs(work).key).remove()
    assert plan_of(work) == plan
    assert scans == names


def test_scans_by_other_settings_are_not_used(busy: Channel) -> None:
    with EarlyScans(1) as early:
        work = extracted(busy, early)
        settings = settings_of(work)
        wait_until(lambda: all(future.done() for future in early._futures.values()), 60)
        assert early.rows(replace(settings, lanes=settings.lanes + 1)) == {}
        # what the source's definitions say is read behind the log, and no scan asks for it
        assert early.rows(replace(settings, not_reduced=[["tenant_1", "t"]])) == early.rows(settings) != {}


def test_scans_of_another_window_are_not_used(busy: Channel) -> None:
    with EarlyScans(1) as early:
        window = steps.extract(busy.config, busy.endpoints, NOW, scan=early.told)
        of_first = set(early.rows(settings_of(WorkFolder(window["work"]))))
        busy.go_on(window)
        inserts = (f"INSERT INTO tenant_x.t VALUES ({key}, REPEAT('x', 50000))" for key in range(10))
        run_on(
            busy.source, "CREATE DATABASE tenant_x", "CREATE TABLE tenant_x.t (id INT PRIMARY KEY, c TEXT)", *inserts
        )
        second = extracted(busy, early)
        rows = early.rows(settings_of(second))
        assert of_first
        assert not of_first & set(rows)
        assert set(rows) <= set(read_inputs(second).manifest.segments)
        assert rows


def test_a_segment_that_is_changed_is_scanned_by_the_job_which_names_it(busy: Channel) -> None:
    with EarlyScans(1) as early:

        def damaged(settings_now: Any, folder: WorkFolder, segment: Segment) -> None:
            file = Path(folder.uri.removeprefix("file://")) / segment.name
            data = bytearray(file.read_bytes())
            data[-1] ^= 1
            file.write_bytes(data)
            early.told(settings_now, folder, segment)

        window = steps.extract(busy.config, busy.endpoints, NOW, scan=damaged)
        assert early.rows(settings_of(WorkFolder(window["work"]))) == {}


def test_a_channel_with_critical_shards_is_scanned_by_the_job(busy: Channel) -> None:
    busy.write_shard_list("(critical)=reference\n")
    with EarlyScans(1) as early:
        work = extracted(busy, early)
        assert early.rows(settings_of(work)) == {}


@pytest.mark.parametrize(("most", "found"), [(0, 0), (2, 2)])
def test_no_more_segments_are_scanned_than_asked_for(busy: Channel, most: int, found: int) -> None:
    with EarlyScans(1, most) as early:
        extracted(busy, early)
        assert len(early._futures) + len(early._waiting) == found


def test_a_worker_that_is_killed_costs_its_scans_alone(busy: Channel) -> None:
    with EarlyScans(1) as early:
        work = extracted(busy, early)
        for process in early._context._begun:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
        rows: list[Mapping[Segment, bytes]] = []

        def scanned(settings: PlanSettings) -> Mapping[Segment, bytes]:
            rows.append(early.rows(settings))
            return rows[-1]

        plan = plan_of(work, scanned)
        assert len(rows) == 1
    work.child(read_inputs(work).key).remove()
    assert plan_of(work) == plan


def rest(*_: object) -> None:
    time.sleep(600)


def test_its_processes_end_with_it_whatever_they_do(busy: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_scans, "early_scan", rest)
    with EarlyScans(1) as early:
        extracted(busy, early)
        begun = list(early._context._begun)
        assert begun
    wait_until(lambda: not any(process.is_alive() for process in begun), 30)
