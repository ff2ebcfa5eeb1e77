"""binlane's side of a benchmark: a channel between two private servers, and one window through all of its steps."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from binlane.choices import Reduce
from binlane.config import ChannelConfig, load_channel
from binlane.connections import Endpoint, Endpoints, Tls
from binlane.orchestration import steps
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.request import NOW, WindowRequest
from binlane.servers.engines import engine_of
from binlane.source.start_position import OLDEST, begin
from binlane.state.channels import Watermark, create_channel
from binlane.state.migrations.upgrade import create
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import LocalProcesses, run_plan_job

if TYPE_CHECKING:
    from lab.servers import PrivateServer

ApplyLanes: TypeAlias = Callable[[ChannelConfig, Endpoints, str, list[int]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Channel:
    """What differs between the channels of a benchmark."""

    name: str
    lanes: int
    block: int
    """Transactions a block; not said with "auto"."""
    reduce: str = "block"
    shard_list: str = ""
    fold_gap: int | None = None
    """None: the product's default."""
    writer: str = "binlog"
    """``apply.writer``."""
    divide: str | None = None
    """``lanes.divide`` of a channel that divides its databases; None: none is divided."""
    divided: str = "*"
    """The databases that it divides, as in a shard list."""
    commit: str = "alone"
    """``lanes.commit`` of such a channel."""
    row_images: str = "auto"
    """``apply.row_images``."""


def file_of(choice: Channel, folder: Path) -> Path:
    """The channel's file below ``folder``."""
    return folder / "dags" / "channels" / f"{choice.name}.toml"


def endpoints_of(source: PrivateServer, target: PrivateServer) -> Endpoints:
    """The servers, as a channel reaches them."""
    return Endpoints(_endpoint("source", source), _endpoint("target", target))


def open_channel(
    choice: Channel, source: PrivateServer, target: PrivateServer, folder: Path
) -> tuple[ChannelConfig, Endpoints]:
    """Write the channel's file below ``folder``, and its row on the target: it begins with the source's oldest file."""
    file = file_of(choice, folder)
    file.parent.mkdir(parents=True)
    consistency = "any_time" if choice.lanes == 1 else "eventual"
    divide = (
        "" if choice.divide is None else f'divide = "{choice.divide}"\nallow_torn = true\ncommit = "{choice.commit}"\n'
    )
    shard_list = choice.shard_list if choice.divide is None else f"{choice.shard_list}(divided)={choice.divided}\n"
    gap = "" if choice.fold_gap is None else f"fold_gap = {choice.fold_gap}\n"
    # a number of transactions asks for blocks of that size, so nothing would be chosen
    size = "" if choice.reduce == Reduce.AUTO else f"transactions = {choice.block}\n"
    file.write_text(
        f'[source]\nconnection = "source"\n[target]\nconnection = "target"\n[window]\nschedule = "none"\n'
        f'[lanes]\ncount = {choice.lanes}\nconsistency = "{consistency}"\n{gap}{divide}'
        f'[blocks]\nreduce = "{choice.reduce}"\n{size}'
        f'[apply]\nwriter = "{choice.writer}"\nrow_images = "{choice.row_images}"\n'
        f'[work]\nuri = "{folder / "work"}"\n',
        "utf-8",
    )
    channel = load_channel(file)
    if shard_list:
        channel.shard_list_file.parent.mkdir(parents=True)
        channel.shard_list_file.write_text(shard_list, "utf-8")
    endpoints = endpoints_of(source, target)
    begin_at_oldest(channel, endpoints)
    return channel, endpoints


def begin_at_oldest(channel: ChannelConfig, endpoints: Endpoints) -> None:
    """Create the channel's row on the target: it begins with the source's oldest file."""
    engine = engine_of(endpoints.target)
    create(engine)
    found = begin(source_of(channel, endpoints), OLDEST)
    mark = Watermark(found.seqno, found.position, found.gtid_set, found.time, found.fingerprint)
    create_channel(engine, channel.name, found.identity, mark)


def run_window(
    choice: Channel, source: PrivateServer, target: PrivateServer, folder: Path, apply_lanes: ApplyLanes
) -> dict[str, Any]:
    """Extract, filter, check, apply and advance one window; seconds of each, and what the plan says."""
    channel, endpoints = open_channel(choice, source, target, folder)
    spent: dict[str, Any] = {"consistency": channel.lanes.consistency, "block": choice.block, "reduce": choice.reduce}
    clock = _Clock(spent)
    window = steps.extract(channel, endpoints, WindowRequest(NOW))
    clock.lap("extract_seconds")
    plan = run_plan_job(WorkFolder(window["work"]), LocalProcesses(os.cpu_count() or 1))
    clock.lap("filter_seconds")
    adopted = steps.adopt_plan(channel, endpoints, window["work"])
    clock.lap("check_seconds")
    spent |= apply_lanes(channel, endpoints, adopted["plan"], [each["lane"] for each in adopted["lanes"]])
    clock = _Clock(spent)
    steps.advance(channel, endpoints, adopted["plan"])
    clock.lap("advance_seconds")
    rows = [counts.read.total for counts in plan.tables.values()]
    spent |= {
        "transactions": window["transactions"],
        "rows_read": sum(rows),
        "rows_written": sum(counts.written.total for counts in plan.tables.values()),
        "barriers": len(plan.barriers),
        "segments": window["segments"],
    }
    return spent


def _endpoint(name: str, server: PrivateServer) -> Endpoint:
    return Endpoint(name, server.host, server.port, server.user, server.password, Tls("disabled", get_public_key=True))


class _Clock:
    def __init__(self, spent: dict[str, Any]) -> None:
        self._spent, self._since = spent, time.monotonic()

    def lap(self, name: str) -> None:
        """Store the seconds since the last lap."""
        now = time.monotonic()
        self._spent[name], self._since = round(now - self._since, 3), now
