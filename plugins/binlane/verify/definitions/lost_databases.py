"""Databases of the channel that the source has no more and the target still has: they are compared like the others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from binlane.choices import FilterKind, FilterPolicy
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.schema.model import Schema


def with_lost_databases(
    source: Schema, target: Schema, rules: ChannelRules, known: Collection[str], others: Collection[str]
) -> Schema:
    """The source's definitions, and among its databases the names of those that it has lost.

    ``known``: the databases that the channel has written or copied, by the target's names; ``others``: those of them
    that other channels write, which say what belongs there. None where the filter ignores DROP DATABASE.
    """
    if rules.selection.policy(FilterKind.DROP_DATABASE) == FilterPolicy.IGNORE:
        return source
    renaming, name_on_target = rules.renaming, target.letter_case.name
    there = set(map(name_on_target, target.databases))
    there -= {name_on_target(renaming.target(name)) for name in source.databases}
    there.difference_update(map(name_on_target, others))
    lost = (renaming.source(name) for name in known if name_on_target(name) in there)
    return replace(source, databases=source.databases | {name for name in lost if name is not None})
