"""The channel's filter, renames, collations and shard list, as given by its files and the target's settings."""

from __future__ import annotations

import contextlib
from typing import Final

from binlane.choices import Commit
from binlane.config import ChannelConfig
from binlane.errors import ConfigError
from binlane.plan.settings import PlanSettings
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.collations import Collations
from binlane.regular_files import open_regular
from binlane.schema.model import Schema
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Selection
from binlane.shards.shard_list import parse_shard_list
from binlane.sql.logged_kinds import ALLOWABLE
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import read_inputs

_MOST_BYTES: Final = 16 << 20
"""Of a shard list: a hundred thousand names of databases have half of it."""


def selection_of(channel: ChannelConfig, schema: Schema) -> Selection:
    """The channel's filter. ``schema``: of the target, whose setting decides whether the case of names counts.

    Raises ConfigError for an unknown kind of statements in ``allow_statements``.
    """
    rules = channel.filter
    for kind in rules.allow_statements:
        if kind not in ALLOWABLE:
            known = ", ".join(ALLOWABLE)
            raise ConfigError(f"{channel.file}: filter.allow_statements: expected kinds of {known}, got {kind!r}")
    return Selection(
        include_databases=rules.include_databases,
        exclude_databases=rules.exclude_databases,
        include_tables=rules.include_tables,
        exclude_tables=rules.exclude_tables,
        folds_names=schema.folds_names,
        kinds=tuple(sorted(rules.kinds.items())),
        allowed=tuple(sorted(rules.allow_statements)),
    )


def leaves_out(channel: ChannelConfig) -> bool:
    """Whether some tables of the source, or of the target, are not the channel's by its file."""
    rules = channel.filter
    lists = rules.include_databases, rules.exclude_databases, rules.include_tables, rules.exclude_tables
    return any(lists) or bool(channel.rename)


def renaming_of(channel: ChannelConfig, schema: Schema) -> Renaming:
    """The channel's renames. ``schema``: of the target, whose setting decides whether the case of names counts."""
    return Renaming(channel.rename, bool(channel.rename) and schema.folds_names)


def rules_of(channel: ChannelConfig, schema: Schema) -> ChannelRules:
    """Filter, renames and collations of the channel. ``schema``: as for ``selection_of``."""
    return ChannelRules(selection_of(channel, schema), renaming_of(channel, schema), Collations(channel.collations))


def shard_list_text(channel: ChannelConfig) -> str:
    """The channel's shard list; empty if there is no file, so that shards are placed by hash."""
    path = channel.shard_list_file
    try:
        with open_regular(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{path}: expected a shard list of at most {_MOST_BYTES:,} bytes, found more")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ConfigError(
            f"{path}: expected UTF-8, found byte 0x{exc.object[exc.start]:02x} at offset {exc.start}; save it as UTF-8"
        ) from exc


def changed_settings(channel: ChannelConfig, folder: WorkFolder) -> str:
    """What a window was extracted under that the channel's file says otherwise now; empty if there is nothing.

    A window without a plan is then extracted again; a planned window keeps its settings (invariant 7). What the next
    window takes as well as this one, the lanes of shards, changes nothing, and neither does what a run may choose, the
    number of lanes and of transactions in a block.
    """
    inputs = read_inputs(folder)
    settings = inputs.settings
    if changed := changed_rules(channel, settings, inputs.schema):
        return changed
    if _divides_otherwise(channel, settings):
        return "lanes.divide, lanes.commit or the (divided) shards of the shard list"
    lanes, blocks = channel.lanes, channel.blocks
    of_file = {
        "lanes.epoch_transactions": (lanes.epoch_transactions or None, settings.epoch_transactions),
        "lanes.fold_gap": (lanes.fold_gap, settings.fold_gap),
        "blocks.bytes": (blocks.bytes, settings.block_bytes),
        "blocks.seconds": (blocks.seconds, settings.block_seconds),
        "blocks.window_bytes": (blocks.window_bytes, settings.window_bytes),
        "blocks.reduce": (blocks.reduce, settings.reduce),
    }
    return ", ".join(key for key, (now, then) in of_file.items() if now != then)


def changed_rules(channel: ChannelConfig, settings: PlanSettings, schema: Schema) -> str:
    """Those of the settings that decide what is written where, or name code to call, and that the channel's file says
    otherwise; empty if there is none. ``schema``: of the target."""
    by_file = (
        selection_of(channel, schema).to_values(),
        [list(rule) for rule in channel.rename],
        [list(rule) for rule in channel.collations],
        schema.folds_names,
    )
    if by_file != (settings.filters, settings.renames, settings.collations, settings.folds_names):
        return "[filter], [rename] or [collations]"
    lanes = channel.lanes
    of_file = {
        "lanes.assigner": (lanes.assigner, settings.assigner),
        "lanes.consistency": (lanes.consistency, settings.consistency),
        "lanes.epoch_seconds": (lanes.epoch_seconds, settings.epoch_seconds),
    }
    return ", ".join(key for key, (now, then) in of_file.items() if now != then)


def _divides_otherwise(channel: ChannelConfig, settings: PlanSettings) -> bool:
    """Whether the channel divides other shards, or divides them in another way. A list that cannot be read changes
    nothing: the next window's extraction says what is wrong with it."""
    lists = []
    with contextlib.suppress(ConfigError):
        for text in (settings.shard_list, shard_list_text(channel)):
            lists.append(parse_shard_list(text, settings.shard_list_path, lanes=settings.lanes).divided)
        before, now = lists
        commits_together = channel.lanes.commit == Commit.TOGETHER
        ways = (channel.lanes.divide, commits_together), (settings.divide, settings.commits_together)
        return before != now or (bool(now) and ways[0] != ways[1])
    return False
