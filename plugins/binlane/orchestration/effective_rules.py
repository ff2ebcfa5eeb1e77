"""The channel's filter, renames and collations, as given by its file and the target's settings."""

from __future__ import annotations

import logging

from binlane.config import ChannelConfig
from binlane.errors import ConfigError
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.collations import Collations
from binlane.schema.model import Schema
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Selection
from binlane.sql.logged_kinds import NOT_LOGGED
from binlane.state.windows import Window
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import read_inputs

log = logging.getLogger(__name__)


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


def renaming_of(channel: ChannelConfig, schema: Schema) -> Renaming:
    """The channel's renames. ``schema``: of the target, whose setting decides whether the case of names counts."""
    return Renaming(channel.rename, bool(channel.rename) and schema.folds_names)


def rules_of(channel: ChannelConfig, schema: Schema) -> ChannelRules:
    """Filter, renames and collations of the channel. ``schema``: as for ``selection_of``."""
    return ChannelRules(selection_of(channel, schema), renaming_of(channel, schema), Collations(channel.collations))


def forget_if_filter_has_changed(channel: ChannelConfig, window: Window, folder: WorkFolder) -> None:
    """Remove a window's files if it has no plan and was extracted under other rules than the channel's present ones.

    It is then extracted again under the new rules; a planned window keeps its rules (invariant 7).
    """
    if window.plan_digest is not None or not folder.exists(files.MANIFEST):
        return
    inputs = read_inputs(folder)
    rules, settings = rules_of(channel, inputs.schema), inputs.settings
    if rules.selection.to_values() != settings.filters or (rules.renaming, rules.collations) != (
        settings.renaming,
        settings.rules.collations,
    ):
        log.info(
            "the channel's [filter], [rename] or [collations] have changed, and the window has no plan yet: it "
            "is extracted again under the new rules"
        )
        folder.remove()
