"""How a channel's lanes write, wait and retry, from its file."""

from __future__ import annotations

from typing import Final

from binlane.apply.lane.options import ApplyOptions
from binlane.apply.session.connection import SessionLimits
from binlane.config import ChannelConfig
from binlane.plan.transaction.collations import Collations
from binlane.plan.window_plan import WindowPlan

BEATS_IN_A_LEASE: Final = 5
"""Heartbeats of a lane in its lease time: one that comes late on a busy machine does not cost the lane its lease."""


def apply_options(channel: ChannelConfig, plan: WindowPlan | None = None) -> ApplyOptions:
    """The options of the plan's lanes: how they write, wait and retry; without a plan, those of a lane alone.

    In a window with divided shards ``check_division`` holds, also if the channel file was changed since.
    """
    apply = channel.apply
    division = None if plan is None else plan.division
    whole = division is None
    return ApplyOptions(
        barrier_timeout=apply.barrier_timeout,
        lease_time=apply.lease_seconds,
        heartbeat_interval=min(ApplyOptions().heartbeat_interval, apply.lease_seconds / BEATS_IN_A_LEASE),
        commits_together=division is not None and division.commits_together,
        reader_wait=channel.lanes.reader_wait,
        retries=apply.retries,
        ddl_lock_wait_timeout=apply.lock_wait_timeout,
        allow_nontransactional=apply.allow_nontransactional and whole,
        allow_unsafe=apply.allow_unsafe,
        collations=Collations(channel.collations).given,
        allow_triggers=frozenset(apply.allow_triggers if whole else ()),
        on_conflict=apply.on_conflict,
        row_images=apply.row_images,
        limits=SessionLimits(
            lock_wait_timeout=apply.lock_wait_timeout, innodb_lock_wait_timeout=apply.lock_wait_timeout
        ),
    )
