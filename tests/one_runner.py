"""Lanes one after another, with nobody else to run them: a lane that is missing at a barrier is adopted at once.

By itself a lane waits five seconds for the others' runners to come, in each window again.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from binlane.apply.lane.options import ApplyOptions
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.orchestration import steps
from binlane.orchestration.lane_options import apply_options
from binlane.plan.window_plan import WindowPlan


def apply_alone(config: ChannelConfig, endpoints: Endpoints, plan: str, lane: int) -> dict[str, Any]:
    """``steps.apply_lane`` of the only runner there is; not for lanes side by side."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "apply_options", _without_waits)
        return steps.apply_lane(config, endpoints, plan, lane)


def _without_waits(channel: ChannelConfig, plan: WindowPlan) -> ApplyOptions:
    return dataclasses.replace(apply_options(channel, plan), grace=0.0, poll_interval=0.0)
