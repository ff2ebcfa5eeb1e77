"""The channel's filter, renames, collations and shard list, as given by its files and the target's settings."""

from __future__ import annotations

import contextlib
import logging
from typing import Final

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
from binlane.sql.logged_kinds import NOT_LOGGED
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import read_inputs

log = logging.getLogger(__name__)

_MOST_BYTES: Final = 16 << 20
"""Of a shard list: a hundred thousand names of databases have half of it."""


def selection_of(channel: ChannelConfig, schema: Schema) -> Selection:
    """The channel's filter. ``schema``: of the target, whose setting decides whether the case of names counts.

    Raises ConfigError for an unknown kind of statements in ``allow_statements``.
    """
    rules = channel.filter
    for kind in rules.allow_statements:
        if kind not in NOT_LOGGED:
            known = ", ".join(NOT_LOGGED)
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


def have_rules_changed(channel: ChannelConfig, folder: WorkFolder) -> bool:
    """Whether a window was extracted under other rules than the channel's present ones.

    If it has no plan, it is then extracted again; a planned window keeps its rules (invariant 7).
    """
    if not folder.exists(files.MANIFEST):
        return False
    inputs = read_inputs(folder)
    rules, settings = rules_of(channel, inputs.schema), inputs.settings
    if rules.selection.to_values() != settings.filters or (rules.renaming, rules.collations) != (
        settings.renaming,
        settings.rules.collations,
    ):
        changed = "[filter], [rename] or [collations]"
    elif _divides_otherwise(channel, settings):
        changed = "lanes.divide or the (divided) shards of its shard list"
    else:
        return False
    log.info("the channel's %s have changed, and the window has no plan yet: it is extracted again", changed)
    return True


def _divides_otherwise(channel: ChannelConfig, settings: PlanSettings) -> bool:
    """Whether the channel divides other shards, or divides them in another way. A list that cannot be read changes
    nothing: the next window's extraction says what is wrong with it."""
    lists = []
    with contextlib.suppress(ConfigError):
        for text in (settings.shard_list, shard_list_text(channel)):
            lists.append(parse_shard_list(text, settings.shard_list_path, lanes=settings.lanes).divided)
        before, now = lists
        return before != now or (bool(now) and channel.lanes.divide != settings.divide)
    return False
