"""Tables that a recopy makes because the target does not have them.

Windows up to the source's snapshot are applied without their rows, as if the filter left them out: what the log changes
of them is in the snapshot. There they are made by the source's definition, and the recopy fills them. In between they
are known drift, so that a process that is killed leaves nothing that looks complete.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from binlane.bootstrap.definition_copy import make, make_database, read_definition
from binlane.bootstrap.sessions import Session, write_session
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import ConfigError, WindowBusyError
from binlane.model import SchemaObject, TableKey
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.schema.model import Schema, Table
from binlane.state.channels import Channel
from binlane.state.records.verifications import DRIFT, Suspect, read_suspects, replace_suspects
from binlane.state.windows import Window

_NOTE: Final = "binlane recopy has made the table, and has not copied its rows: run it again"
_SPECIAL: Final = re.compile(r"([*?\[])")


@dataclass(frozen=True, slots=True)
class MissingTable:
    """A table of the source, and its name on the target, which lacks it or has it without its rows."""

    source: TableKey
    target: TableKey
    is_made: bool = False


def missing_tables(
    channel: ChannelConfig, engine: Any, names: Sequence[str], schemas: tuple[Schema, Schema], rules: ChannelRules
) -> tuple[MissingTable, ...]:
    """Those of the tables of these names, as the target has them. Raises ConfigError for one that cannot be made."""
    source, target = schemas
    with engine.connect() as connection:
        made = {one.table for one in read_suspects(connection, channel.name) if one.note == _NOTE}
    found = []
    for table in source.tables.values():
        named = rules.renaming.table(table.key)
        if str(named) not in names or rules.selection.table(table.key) is not None:
            continue
        if target.table(named) is None:
            _require_makeable(table, named, schemas)
            found.append(MissingTable(table.key, named))
        elif named in made:
            found.append(MissingTable(table.key, named, is_made=True))
    return tuple(found)


def _require_makeable(table: Table, named: TableKey, schemas: tuple[Schema, Schema]) -> None:
    source, target = schemas
    why = ""
    if named.database != table.key.database:
        why = "its database has another name there"
    elif source.flavor is not target.flavor:
        why = "the servers are of two families, which spell definitions differently"
    elif not table.transactional or table.system_versioned or table.without_overlaps:
        why = "no snapshot or statement has its rows exactly"
    if why:
        raise ConfigError(
            f"--table {named}: the target does not have it, and binlane cannot make it: {why}; load it from a backup "
            "of the source, or create it empty there by SHOW CREATE TABLE of the source and run the command again"
        )


def without(channel: ChannelConfig, missing: Sequence[MissingTable]) -> ChannelConfig:
    """The channel as if its filter left these tables out."""
    patterns = tuple(_SPECIAL.sub(r"[\1]", str(each.source)) for each in missing)
    rules = replace(channel.filter, exclude_tables=(*channel.filter.exclude_tables, *patterns))
    return replace(channel, filter=rules) if patterns else channel


def require_no_begun_window(name: str, window: Window | None, missing: Sequence[MissingTable]) -> None:
    """Raises WindowBusyError for a window that has begun to write: it keeps its plan, with the tables' rows."""
    if missing and window is not None and window.plan_digest is not None:
        tables = ", ".join(str(each.target) for each in missing)
        raise WindowBusyError(
            f"channel {name}: window {window.bounds.window_id} has begun, and its plan has rows of {tables}, which the "
            "target lacks: create each empty on the target by SHOW CREATE TABLE of the source, set apply.on_conflict = "
            f'"overwrite", finish the window (`binlane run {name}`), set it back, and run this command again'
        )


def make_missing(
    endpoints: Endpoints, engine: Any, at: Channel, reader: Session, missing: Sequence[MissingTable]
) -> None:
    """Make the tables, empty, by the definitions that the snapshot's source has."""
    lacking = [each for each in missing if not each.is_made]
    if not lacking:
        return
    found = [Suspect(each.target, (), DRIFT, at.watermark.seqno, (), None, None, _NOTE) for each in lacking]
    with engine.begin() as connection:
        replace_suspects(connection, at.name, (), found)
    with contextlib.closing(write_session(endpoints.target)) as writer:
        present = [name for (name,) in writer.texts("SELECT schema_name FROM information_schema.schemata")]
        for database in sorted({each.source.database for each in lacking} - {*present}):
            make_database(writer, read_definition(reader, SchemaObject("database", database, "")), present)
        for each in lacking:
            make(writer, read_definition(reader, SchemaObject("table", each.source.database, each.source.table)))
