"""What the precheck leaves beside the plan for the lanes: a task each, on any machine."""

from __future__ import annotations

import json
from collections.abc import Iterable

from binlane.apply.lane.run_state import Checked
from binlane.errors import PlanError
from binlane.model import TableKey
from binlane.schema.canonical import canonical_json
from binlane.schema.codec import schema_from_json, schema_to_json
from binlane.schema.model import Schema
from binlane.work import files
from binlane.work.files import WorkFolder


def keep_definitions(plans: WorkFolder, known: Schema) -> None:
    """The source's tables that the window alters; what an earlier check has left, stays."""
    if known.tables and not plans.exists(files.SOURCE_TABLES):
        plans.write_once(files.SOURCE_TABLES, schema_to_json(known))


def keep_partitioned(plans: WorkFolder, tables: Iterable[TableKey]) -> None:
    """The target's partitioned tables; what an earlier check has left, stays: a lane that finds otherwise asks."""
    if not plans.exists(files.PARTITIONED):
        names = sorted([key.database, key.table] for key in tables)
        plans.write_once(files.PARTITIONED, canonical_json({"partitioned": names}))


def checked_of(plans: WorkFolder) -> Checked:
    """What was left. Raises PlanError for a damaged file."""
    definitions = partitioned = None
    if plans.exists(files.SOURCE_TABLES):
        definitions = schema_from_json(plans.read(files.SOURCE_TABLES), plans.path(files.SOURCE_TABLES))
    if plans.exists(files.PARTITIONED):
        try:
            names = json.loads(plans.read(files.PARTITIONED))["partitioned"]
            partitioned = frozenset(TableKey(database, table) for database, table in names)
        except (ValueError, KeyError, TypeError) as exc:
            where = plans.path(files.PARTITIONED)
            raise PlanError(
                f"{where}: not what the check writes: {exc}; remove the file and run the task again"
            ) from exc
    return Checked(definitions, partitioned)
