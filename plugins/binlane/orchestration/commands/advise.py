"""``binlane advise``: counts of a window, or of an archive, and the settings that they speak for. Writes nothing."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from binlane.apply.target_state import knowing_target
from binlane.config import ChannelConfig, DeclaredChannel, find_channel, load_channel
from binlane.config.node import Node
from binlane.connections import environment_resolver, resolve_endpoints
from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.model import plural, size_text
from binlane.orchestration import steps
from binlane.orchestration.inputs import settings_of
from binlane.orchestration.request import NOW, WindowRequest
from binlane.orchestration.terminal import Grid, View
from binlane.plan.advice.counts import Counts, WindowCounter
from binlane.plan.advice.settings import Suggestion, suggestions, too_few
from binlane.plan.consistency import EpochStarts, level_of
from binlane.plan.manifest import Manifest
from binlane.plan.segment.load import Load
from binlane.plan.settings import PlanSettings
from binlane.plan.window_facts import serialization
from binlane.schema.model import Schema
from binlane.source.archive import ArchiveSource
from binlane.source.end_position import UntilLogEnd
from binlane.source.segments import extract
from binlane.source.start_position import OLDEST, begin
from binlane.work import files
from binlane.work.files import WorkFolder, room_needed
from binlane.work.plan_inputs import Inputs, read_inputs, segment_bytes

LAST: Final = "last"
"""In place of a window's name: the last one that the work folder keeps."""
_TOP: Final = 12
"""Rows of a list; the rest is summed up in one row."""


@dataclass(frozen=True, slots=True)
class AdviceRequest:
    """The arguments of ``advise``."""

    channel: str | None
    folder: Path
    archive: str | None = None
    window: str | None = None
    until: str | None = None
    lanes: int | None = None

    def __post_init__(self) -> None:
        """Raises ConfigError for arguments that do not go together."""
        if self.channel is None and self.archive is None:
            raise ConfigError("advise: expected a channel, or --archive, got neither")
        given = [name for name, value in (("--window", self.window), ("--until", self.until)) if value is not None]
        if self.archive is not None and given:
            raise ConfigError(f"advise: expected --archive without {given[0]}: all files of the archive are counted")
        if len(given) > 1:
            raise ConfigError("advise: expected one of --window and --until: a window that is kept has its end")


def advise(asked: AdviceRequest, *, as_json: bool) -> View:
    """Count and advise. Raises ConfigError, SourceError, BinlogError, TargetError; PlanError for a damaged window."""
    found: Counts | None
    if asked.archive is not None:
        found, source = _of_archive(asked, asked.archive), f"the archive {asked.archive}"
    elif asked.window is not None:
        found, source = _of_kept_window(asked, asked.window)
    else:
        found, source = _of_next_window(asked), f"the next window of {asked.channel}"
    if found is None:
        return f"{source}: nothing to count; `--window {LAST}` counts the last window that the work folder keeps"
    advice = suggestions(found)
    return json.dumps(as_object(source, found, advice), indent=1) if as_json else advice_view(source, found, advice)


def _of_next_window(asked: AdviceRequest) -> Counts | None:
    """The window that `binlane plan` would show."""
    assert asked.channel is not None
    channel = load_channel(find_channel(asked.channel, asked.folder))
    endpoints = knowing_target(resolve_endpoints(channel, environment_resolver()))
    window = steps.extract(channel, endpoints, WindowRequest(asked.until or NOW, None, True, asked.lanes, None))
    if window["work"] is None:
        return None
    work = WorkFolder.of_window(window["work"], window["inputs"])
    try:
        return _of_folder(read_inputs(work), work)
    finally:
        work.remove()


def _of_kept_window(asked: AdviceRequest, window: str) -> tuple[Counts, str]:
    """A window whose files the work folder keeps, with the settings that it was planned with. No server is asked."""
    assert asked.channel is not None
    channel = load_channel(find_channel(asked.channel, asked.folder))
    kept = WorkFolder(channel.work.uri).child(channel.name)
    names = [name for name in kept.children() if kept.child(name).exists(files.MANIFEST)]
    name = names[-1] if window == LAST and names else window
    if name not in names:
        raise ConfigError(
            f"--window: expected {LAST} or a window that {kept.uri} keeps, got {window!r}; "
            f"it keeps {', '.join(names[-_TOP:]) or 'none'}"
        )
    work = kept.child(name)
    inputs = read_inputs(work, {channel.lanes.consistency, channel.lanes.assigner})
    return _of_folder(inputs, work, asked.lanes), f"window {name} of {channel.name}"


def _of_folder(inputs: Inputs, work: WorkFolder, lanes: int | None = None) -> Counts:
    settings = inputs.settings if lanes is None else replace(inputs.settings, lanes=lanes)
    return _counted(work, inputs.manifest, settings, inputs.schema)


def _of_archive(asked: AdviceRequest, uri: str) -> Counts | None:
    """All files of an archive, without any server: the target's keys are not known."""
    channel = _channel(asked, uri)
    source = ArchiveSource(uri, channel.source.event_bytes)
    work = WorkFolder(channel.work.uri).child(f"advise-{uuid.uuid4().hex[:8]}")
    lanes = channel.lanes
    epochs = EpochStarts(level_of(lanes.consistency, lanes.epoch_seconds), lanes.epoch_transactions or None)
    try:
        with room_needed(work.uri):
            manifest = extract(
                source, begin(source, OLDEST), UntilLogEnd(), work, channel=channel.name, window="advise",
                segment_bytes=channel.segments.bytes, epochs=epochs,
            )  # fmt: skip
        if not manifest.transactions:
            return None
        flavor, version = manifest.segments[-1].flavor, manifest.segments[-1].server_version
        request = WindowRequest(NOW, None, True, asked.lanes, None)
        settings = settings_of(channel, request, manifest.window, {flavor}, Schema(flavor, version), [], by_sql=False)
        return _counted(work, manifest, settings, None)
    finally:
        work.remove()


def _channel(asked: AdviceRequest, uri: str) -> ChannelConfig:
    """The channel, or one with every key's default."""
    if asked.channel is not None:
        return load_channel(find_channel(asked.channel, asked.folder))
    file = asked.folder / "archive.toml"
    values = {"source": {"archive": uri}, "target": {"connection": "none"}}
    return load_channel(DeclaredChannel(file.stem, file, node=Node(values, str(file))))


def _counted(work: WorkFolder, manifest: Manifest, settings: PlanSettings, schema: Schema | None) -> Counts:
    counting = WindowCounter(settings, schema, manifest.first_seqno)
    for segment in manifest.segments:
        with segment_bytes(work, segment) as data:
            counting.add(data, segment)
    for segment in manifest.carried:
        with segment_bytes(work, segment) as data:
            counting.add_carried(data, segment)
    return counting.finish(manifest)


def as_object(source: str, counts: Counts, advice: Sequence[Suggestion]) -> dict[str, Any]:
    """Counts and settings as one JSON object. Shares are fractions of 1."""
    divided = counts.divided
    return {
        "source": source,
        "keys": "target" if counts.has_schema else "log",
        "transactions": counts.transactions,
        "rows": counts.total.rows,
        "bytes": counts.total.bytes,
        "shards": [{"name": shard.name, "lane": shard.lane, **asdict(shard.load)} for shard in counts.shards],
        "lanes": {
            name: {**asdict(lanes), "busiest": lanes.busiest}
            for name, lanes in (("as_set", counts.as_set), ("by_load", counts.by_load))
        },
        "tenants": None if counts.tenants is None else asdict(counts.tenants),
        "divided": None if divided is None else asdict(divided),
        "divided_together": None if counts.together is None else asdict(counts.together),
        "why_not_divided": counts.why_not_divided or None,
        "blocks_in_a_row": [asdict(each) for each in counts.blocks],
        "hot_keys": [asdict(each) for each in counts.hot_keys],
        "hot_keys_missed": counts.missed,
        "tables_without_known_key": counts.unkeyed,
        "tables_with_unknown_keys": counts.unknown,
        "settings": [asdict(each) for each in advice],
        "no_settings_because": None if advice else too_few(counts),
    }


def advice_view(source: str, counts: Counts, advice: Sequence[Suggestion]) -> list[Grid]:
    """Counts and settings as tables."""
    parts = (_shards, _lanes, _barriers, _hot_keys, _tables, _blocks)
    found = (grid for part in parts if (grid := part(counts)) is not None)
    return [_head(source, counts), *found, _settings(counts, advice)]


def _head(source: str, counts: Counts) -> Grid:
    grid = Grid.of_facts(f"advice from {source}")
    grid.row("transactions", f"{counts.transactions:,}")
    grid.row("row changes", f"{counts.total.rows:,}")
    grid.row("log", size_text(counts.total.bytes))
    known = "all unique keys and foreign keys of the target" if counts.has_schema else "those that the log has"
    grid.row("keys", f"{known}; text is compared as bytes, not by its collation")
    if not counts.has_schema:
        grid.row("", "other unique keys and foreign keys are not in a log: fewer blocks share no key than told below")
    for names, what in (
        (counts.unkeyed, "compared as whole rows, since no key of them is known"),
        (counts.unknown, "whose keys are not all known or not in the log"),
    ):
        if names:
            more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
            grid.row("", f"{plural(len(names), 'table')} {what}: {', '.join(names[:3])}{more}")
    return grid


def _shards(counts: Counts) -> Grid:
    grid = Grid("shards").columns("shard")
    grid.columns("lane", "transactions", "row changes", "bytes", "share", justify="right", no_wrap=True)
    total = max(counts.total.bytes, 1)
    for shard in counts.shards[:_TOP]:
        lane = "serialized" if shard.lane == counts.settings.lanes else str(shard.lane)
        grid.row(shard.name, lane, *_numbers(shard.load, total))
    rest = sum((shard.load for shard in counts.shards[_TOP:]), Load())
    if rest.transactions:
        grid.row(f"{len(counts.shards) - _TOP:,} more", "", *_numbers(rest, total))
    return grid


def _numbers(load: Load, total: int) -> tuple[str, ...]:
    return f"{load.transactions:,}", f"{load.rows:,}", f"{load.bytes:,}", f"{load.bytes / total:.0%}"


def _lanes(counts: Counts) -> Grid:
    grid = Grid("bytes of each lane").columns("lane").columns("as it is", "by load", justify="right")
    total = max(counts.total.bytes, 1)
    pairs = list(zip(counts.as_set.bytes, counts.by_load.bytes, strict=True))
    for lane, both in enumerate(pairs):
        name = f"lane {lane}" if lane < counts.settings.lanes else "serialized lane"
        grid.row(name, *(f"{size / total:.0%}" for size in both))
    return grid


def _barriers(counts: Counts) -> Grid | None:
    found = counts.as_set
    if not found.barriers:
        return None
    held = f"{plural(found.barriers, 'barrier')} over {plural(found.serialized, 'seqno')}"
    title = f"{held}; the transactions that need one, by cause"
    grid = Grid(title).columns("cause").columns("transactions", justify="right")
    for cause, count in found.causes.items():
        grid.row(cause, f"{count:,}")
    grid.caption = serialization(counts.total.transactions, found.serialized, found.causes) or ""
    return grid


def _tables(counts: Counts) -> Grid | None:
    found = counts.divided
    if found is None:
        return None
    grid = Grid(f"row changes of {found.shard} by placement, if it is divided").columns("table")
    grid.columns("lane", "row changes", justify="right").columns("because")
    for table in found.tables[:_TOP]:
        grid.row(table.table, "by key" if table.lane is None else str(table.lane), f"{table.rows:,}", table.reason)
    if len(found.tables) > _TOP:
        rest = sum(table.rows for table in found.tables[_TOP:])
        grid.row(f"{len(found.tables) - _TOP:,} more", "", f"{rest:,}", "")
    return grid


def _blocks(counts: Counts) -> Grid:
    """Blocks by size: shared keys, folding, tables."""
    numbers_of = ("in a row", "blocks", "free", "shared", "not told", "chain", "left", "tables")
    grid = Grid("transactions in a row").columns(*numbers_of, justify="right", no_wrap=True)
    for each in counts.blocks:
        numbers = (each.size, each.blocks, each.free, each.shared, each.unknown)
        chain = f"{each.chain:,.1f}" if each.blocks else "-"
        left = f"{each.left / each.rows:.0%}" if each.rows else "-"
        tables = f"{each.opened / each.blocks:,.1f}" if each.blocks else "-"
        grid.row(*(f"{number:,}" for number in numbers), chain, left, tables)
    grid.caption = (
        "free: no two transactions of the block share a key. not told: statements, or rows whose keys are not all in "
        "the log. chain: transactions that have to follow one another, since each shares a key with the one before; "
        "at least. left: so many of the row changes are of different rows. tables: that a block opens"
    )
    return grid


def _hot_keys(counts: Counts) -> Grid | None:
    if not counts.hot_keys:
        return None
    grid = Grid("hot keys").columns("table", "primary key").columns("row changes", "share", justify="right")
    total = max(counts.total.rows, 1)
    for each in counts.hot_keys:
        grid.row(each.table, each.key, f"{each.changes:,}", f"{each.changes / total:.1%}")
    if counts.missed:
        grid.caption = f"at least; up to {counts.missed:,} more changes of each key were not counted"
    return grid


def _settings(counts: Counts, advice: Sequence[Suggestion]) -> Grid:
    grid = Grid.of_facts("settings")
    if not advice:
        grid.row("none", too_few(counts))
    for each in advice:
        grid.row(each.file, f"{each.line}    {'# a change' if each.changes else '# as it is'}")
        grid.row("", f"because: {each.because}")
        grid.row("", f"promises: {each.promises}")
        grid.row("", f"costs: {each.costs}")
    return grid
