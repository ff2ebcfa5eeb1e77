"""The databases that the shard list calls critical."""

from __future__ import annotations

from collections.abc import Callable

from binlane.plan.settings import PlanSettings
from binlane.schema.model import Schema
from binlane.shards.shard_list import parse_shard_list


def critical_databases(settings: PlanSettings, schema: Schema) -> Callable[[str], bool]:
    """Predicate for databases whose every transaction needs a barrier: the shard list's critical databases, and those
    that foreign keys join to them. The scan lists each of their transactions."""
    shard_list = parse_shard_list(settings.shard_list, settings.shard_list_path, lanes=settings.lanes)
    known = schema.known()
    joined = {known.group_of(settings.renaming.target(name)) for name in shard_list.critical}
    return lambda database: known.group_of(database) in joined
