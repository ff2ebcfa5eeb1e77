"""The channel's filter, as its file and the target's settings make it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from binlane.apply.finding import Finding
from binlane.config import ChannelConfig
from binlane.plan.schema import Schema
from binlane.plan.schema_compare import Severity
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Selection
from binlane.state.windows import Window
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.inputs import read_inputs

log = logging.getLogger(__name__)

_LEAVING: Final = frozenset({"RESTRICT"})
"""What a foreign key does without changing the child."""


def selection_of(channel: ChannelConfig, schema: Schema) -> Selection:
    """What the channel takes. ``schema``: of the target, which says whether letters' case counts."""
    rules = channel.filter
    return Selection(
        include_databases=rules.include_databases,
        exclude_databases=rules.exclude_databases,
        include_tables=rules.include_tables,
        exclude_tables=rules.exclude_tables,
        folds_names=schema.folds_names,
        kinds=tuple(sorted(rules.kinds.items())),
    )


def renaming_of(channel: ChannelConfig, schema: Schema) -> Renaming:
    """What the channel's databases are called on the target, whose ``schema`` says whether letters' case counts."""
    return Renaming(channel.rename, bool(channel.rename) and schema.folds_names)


def severed(selection: Selection, schema: Schema) -> Iterator[Finding]:
    """Foreign keys that change rows which are taken when rows change that are left out: no log tells of it.

    ``schema``: the source's, or for an archive the target's; in the source's names.
    """
    for child, table in sorted(schema.tables.items(), key=lambda found: str(found[0])):
        if selection.table(child) is not None:
            continue
        for key in table.foreign_keys:
            rule = selection.table(key.parent)
            if rule is not None and not {key.on_update, key.on_delete} <= _LEAVING:
                yield Finding(
                    Severity.FATAL,
                    f"{child}: foreign key {key.name}",
                    "a parent that the filter takes, since servers do not log what they change by a foreign key",
                    f"{key.parent}, left out ({rule}), ON DELETE {key.on_delete} ON UPDATE {key.on_update}",
                    "take both tables or none: docs/filters.md",
                )


def forget_if_filter_has_changed(channel: ChannelConfig, window: Window, folder: WorkFolder) -> None:
    """Remove a window's files if it was extracted under other rules than the channel's and is not planned yet.

    Then it is read again, under the new rules; a planned window keeps its own (invariant 7).
    """
    if window.plan_digest is not None or not folder.exists(files.MANIFEST):
        return
    inputs = read_inputs(folder)
    selection, renaming = selection_of(channel, inputs.schema), renaming_of(channel, inputs.schema)
    if selection.to_values() != inputs.settings.filters or renaming != inputs.settings.renaming:
        log.info(
            "the channel's filter or its names have changed, and the window is not planned yet: it gets the new ones"
        )
        folder.remove()
