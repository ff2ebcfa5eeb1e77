"""The channel's filter, as its file and the target's settings make it."""

from __future__ import annotations

import logging

from binlane.config import ChannelConfig
from binlane.plan.schema import Schema
from binlane.shards.selection import Selection
from binlane.state.windows import Window
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.filter_job import read_inputs

log = logging.getLogger(__name__)


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


def forget_if_filter_has_changed(channel: ChannelConfig, window: Window, folder: WorkFolder) -> None:
    """Remove a window's files if it was extracted under another filter than the channel's and is not planned yet.

    Then it is read again, under the new filter; a planned window keeps its own (invariant 7).
    """
    if window.plan_digest is not None or not folder.exists(files.MANIFEST):
        return
    inputs = read_inputs(folder)
    if selection_of(channel, inputs.schema).to_values() != inputs.settings.filters:
        log.info("the channel's filter has changed, and the window is not planned yet: it gets the new one")
        folder.remove()
