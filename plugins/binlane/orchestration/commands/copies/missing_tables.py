"""Tables that a recopy makes because the target does not have them.

Windows up to the source's snapshot are applied without their rows, as if the filter left them out: what the log changes
of them is in the snapshot. There they are made by the source's definition, and the recopy fills them. So are the tables
that refer to them by foreign keys, at any distance: what a server does there with a row of the missing table is in no
log. In between all of them are known drift, so that a process that is killed leaves nothing that looks complete.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from binlane.binlog.types.literals import identifier
from binlane.bootstrap.definition_copy import make, make_database, read_definition
from binlane.bootstrap.row_copy import Chunk, in_transaction, insert_rows
from binlane.bootstrap.sessions import Session, write_session
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import BinlaneError, ConfigError, UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import SchemaObject, TableKey
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.schema.model import Schema, Table
from binlane.shards.selection import pattern_of
from binlane.state.channels import Channel, read_channel
from binlane.state.records.verifications import (
    BEING_COPIED,
    DRIFT,
    Suspect,
    read_tables_being_copied,
    replace_suspects,
)


@dataclass(frozen=True, slots=True)
class MissingTable:
    """A table of the source, and its name on the target, which lacks it, or has it and not the rows of its snapshot."""

    source: TableKey
    target: TableKey
    is_made: bool = False


def missing_tables(
    channel: ChannelConfig,
    engine: Any,
    asked: Collection[TableKey],
    schemas: tuple[Schema, Schema],
    rules: ChannelRules,
) -> tuple[MissingTable, ...]:
    """Those of the tables in ``asked``, which has names on the target, and all that refer to them by foreign keys.
    If it lacks one, so do all: statements over several of them are left out with them, and cannot be without.

    Raises ConfigError for one that cannot be made."""
    source, target = schemas
    with engine.connect() as connection:
        noted = read_tables_being_copied(connection, channel.name)
    taken = {key: rules.renaming.table(key) for key in source.tables if rules.selection.table(key) is None}
    there = {key: target.table(named) for key, named in taken.items()}
    named = {key: taken[key] if table is None else table.key for key, table in there.items()}
    chosen = {key for key in taken if named[key] in asked}
    is_lost = any(there[key] is None or named[key] in noted for key in chosen)
    lacking = set(chosen) if is_lost else set()
    while more := {
        key for key in taken.keys() - lacking
        if any(foreign.parent in lacking for foreign in source.tables[key].foreign_keys)
    }:  # fmt: skip
        lacking |= more
    found = []
    for key in sorted(lacking, key=str):
        is_made = there[key] is not None
        if not is_made:
            _require_makeable(source.tables[key], taken[key], schemas)
        found.append(MissingTable(key, named[key], is_made))
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
    patterns = tuple(pattern_of(each.source) for each in missing)
    rules = replace(channel.filter, exclude_tables=(*channel.filter.exclude_tables, *patterns))
    return replace(channel, filter=rules) if patterns else channel


@contextlib.contextmanager
def going_on(channel: str, names: Sequence[str], missing: Sequence[MissingTable]) -> Iterator[None]:
    """Errors of the windows before a copy name the command that goes on: of tables that the target lacks no other run
    takes the rows."""
    try:
        yield
    except BinlaneError as exc:
        tables = " ".join(f"--table {shlex.quote(name)}" for name in names)
        again = f"`binlane recopy {channel} "
        said = str(exc) if again in str(exc) else f"{exc}; then the copy itself: {again}{tables}` again"
        if missing and isinstance(exc, UnsupportedEventError):
            lacking = ", ".join(str(each.target) for each in missing)
            said = (
                f"{exc}; up to the copy this command leaves out {lacking}, whose rows the target lacks. If the "
                "statement is about tables, copy those that it changes again, too: name each with --table. If it is "
                "about a view, leave the view out, too ([filter] exclude_tables), `binlane recopy "
                f"{channel} {tables}` again, take the view in again, and `binlane verify {channel} --full --repair` "
                "makes it"
            )
        exc.args = (said, *exc.args[1:])
        raise


def note_missing(engine: Any, at: Channel, missing: Sequence[MissingTable]) -> None:
    """Store the tables as known drift, before a window leaves out their rows."""
    if missing:
        found = [Suspect(each.target, (), DRIFT, at.watermark.seqno, (), None, None, BEING_COPIED) for each in missing]
        with engine.begin() as connection:
            # as a verification does that stores what it has found
            read_channel(connection, at.name, for_update=True)
            replace_suspects(connection, at.name, (), found)


def make_missing(endpoints: Endpoints, reader: Session, missing: Sequence[MissingTable]) -> None:
    """Make the tables, empty, by the definitions that the snapshot's source has."""
    lacking = [each for each in missing if not each.is_made]
    if not lacking:
        return
    with contextlib.closing(write_session(endpoints.target)) as writer:
        present = [name for (name,) in writer.texts("SELECT schema_name FROM information_schema.schemata")]
        for database in sorted({each.source.database for each in lacking} - {*present}):
            make_database(writer, read_definition(reader, SchemaObject("database", database, "")), present)
        for each in lacking:
            make(writer, read_definition(reader, SchemaObject("table", each.source.database, each.source.table)))


def fill_empty(endpoints: Endpoints, reader: Session, missing: Sequence[MissingTable], source: Schema) -> None:
    """Give the tables that are empty, and to which others refer, the snapshot's rows, each table in one transaction.

    A window that has begun before a table was lost goes on with them: rows that refer to the table find it filled.
    They are later rows than the window's, so the window overwrites them, and they stay known drift. All other tables
    stay empty: a statement of the window would find its own rows there.
    """
    parents = {foreign.parent for table in source.tables.values() for foreign in table.foreign_keys}
    with contextlib.closing(write_session(endpoints.target)) as writer:
        [(packet,)] = writer.texts("SELECT @@max_allowed_packet")
        for each in missing:
            if each.source not in parents:
                continue
            name = f"{identifier(each.target.database)}.{identifier(each.target.table)}"
            if not writer.texts(f"SELECT 1 FROM {name} LIMIT 1"):
                chunk = Chunk(source.tables[each.source], None, None)
                fill = partial(insert_rows, reader, writer, chunk, int(packet), each.target)
                in_transaction(writer, each.target, fill, reader)
