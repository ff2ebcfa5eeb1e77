"""The facts that a channel's health is judged by, from its state on the target."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from binlane.config import load_channel
from binlane.health.channel_facts import HEARTBEAT_SECONDS, facts_of
from binlane.health.progress import stage_of
from binlane.model import FolderRecord, LogPosition, RowCounts
from binlane.state.channels import Channel, Watermark
from binlane.state.leases import Heartbeat
from binlane.state.positions import LanePosition
from binlane.state.records.history import PastWindow, Snapshot
from binlane.state.records.journal import ChannelStatus, LaneError
from binlane.state.records.progress import RunStep, StepRow
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import Window, WindowBounds

CONFIG: Final = load_channel(Path(__file__).parents[3] / "dags" / "channels" / "demo.toml", {})
PLACE: Final = LogPosition("binlog.000001", 4)
MARK: Final = Watermark(10, PLACE, "", 0.0, "")
BEGAN: Final = 1_000_000.0


def at(seconds: float) -> str:
    """A time of the state's tables, so many seconds after the window was opened."""
    return datetime.fromtimestamp(BEGAN + seconds, UTC).replace(tzinfo=None).isoformat()


def snapshot(error_at: float, beat_at: float | None) -> Snapshot:
    """Of an open window, a minute old: lane 1 has failed, and has shown a sign of life at ``beat_at``."""
    bounds = WindowBounds("c", "w1", "s", 11, 20, PLACE, "", 0.0, "", FolderRecord(""))
    window = Window(bounds, 1, "applying", 2, "d", None, None, None, MARK, 10)
    error = LaneError(1, "w1", 1, 12, "", PLACE, 1205, "Lock wait timeout exceeded", at(error_at))
    beats = () if beat_at is None else (Heartbeat(1, "host", 7, at(beat_at)),)
    past = PastWindow(
        "w1", 1, "applying", 11, 20, PLACE, "", 0.0, BEGAN, None, 2, "d", None, None, FolderRecord(""), None
    )
    status = ChannelStatus(Channel("c", "u", "s", MARK, 1), window, (), beats, (error,), ())
    return Snapshot(BEGAN + 60, BEGAN, None, None, status, (past,), standing_error=error)


@pytest.mark.parametrize(
    ("error_at", "beat_at", "is_retried"),
    [
        pytest.param(20, 20 + HEARTBEAT_SECONDS + 1, True, id="alive again for longer than a heartbeat"),
        pytest.param(20, 20 + HEARTBEAT_SECONDS, False, id="the heartbeat of the attempt that failed may be as young"),
        pytest.param(20, 10, False, id="silent since the error"),
        pytest.param(20, None, False, id="no sign of life"),
        pytest.param(20, -30, False, id="a sign of life in the window before"),
    ],
)
def test_an_error_is_retried_once_its_lane_has_a_younger_heartbeat(
    error_at: float, beat_at: float | None, is_retried: bool
) -> None:
    facts = facts_of(snapshot(error_at, beat_at), CONFIG, None)

    assert facts.error is not None
    assert (facts.error.lane, facts.error.seqno, facts.error.is_retried) == (1, 12, is_retried)
    assert facts_of(replace(snapshot(error_at, beat_at), standing_error=None), CONFIG, None).error is None


@pytest.mark.parametrize(("holders", "left"), [({1: 7}, 60.0), ({}, None), ({0: 8}, None)])
def test_the_time_that_is_left_is_known_while_a_lane_works(holders: dict[int, int], left: float | None) -> None:
    found = snapshot(20, 55)
    positions = tuple(LanePosition(lane, 12, "w1", "d", RowCounts(), 1, 5) for lane in (0, 1))
    step = StepRow(RunStep.APPLY, "w1", 0, 20, at(0), at(0))
    changed = replace(found, status=replace(found.status, positions=positions, holders=holders), step=step)
    stage = stage_of(changed, WindowFolders("/work", "c"))

    assert stage is not None
    assert (stage.text, stage.left) == ("10 of 20 transactions applied", left)
