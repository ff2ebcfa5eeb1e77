"""Copies whole tables again: in one transaction, their rows on the target are replaced by those of a source's snapshot.

The target is at the watermark to which the snapshot belongs, and the transaction holds the channel's row: no window is
open or can open before it ends, so each later change of the tables is in a later window. No DDL, no trigger's or
foreign key's action and no other table takes part; a process that is killed leaves nothing behind, because the target
rolls back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, Engine

from binlane.apply.session.held_table import hold_table
from binlane.binlog.types.literals import identifier
from binlane.bootstrap.row_copy import Chunk, count_rows, insert_rows
from binlane.bootstrap.sessions import Session
from binlane.bootstrap.snapshot import Snapshot
from binlane.errors import ConfigError, DriftError, PositionError
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey, plural
from binlane.repair.fence import bytes_as_sent, lock_at_watermark, writing
from binlane.repair.plan import obstacle
from binlane.schema.model import Schema, Table
from binlane.state.channels import Channel
from binlane.state.records.repairs import begin_repair, forget_table, save_repair
from binlane.verify.rows.column_text import ComparedTable, Key
from binlane.verify.rows.pairing import ONLY_ON_TARGET, Tables
from binlane.verify.rows.sides import Pair, Side

_SHOWN: Final = 10
_IN_RANGE: Final = 10_000
"""Rows of a range that is compared."""


@dataclass(frozen=True, slots=True)
class RecopyResult:
    """The result for one table."""

    table: TableKey
    """The target's name."""
    deleted: int
    inserted: int


@dataclass(frozen=True, slots=True)
class Recopier:
    """Replaces the rows of ``tables`` by those of ``snapshot``."""

    channel: Channel
    """At the watermark of the snapshot."""
    engine: Engine
    """The target's engine."""
    snapshot: Snapshot
    """With two readers: the second one counts the rows that the first one has copied."""
    target: Schema
    tables: Sequence[ComparedTable]
    by: str

    def run(self) -> tuple[RecopyResult, ...]:
        """Copy all tables, or none. Raises WindowBusyError if a window is open, PositionError if the watermark has
        moved; SourceError, ApplyError, DriftError, and the target's driver errors unchanged."""
        names = "recopy " + ", ".join(str(table.target) for table in self.tables)
        name, seqno = self.channel.name, self.channel.watermark.seqno
        digest = hashlib.sha256(names.encode()).hexdigest()
        with self.engine.begin() as connection:
            number = begin_repair(connection, name, digest, names, seqno, self.by)
        with self.engine.begin() as connection:
            mark = (self.channel.uuid, seqno)
            lock_at_watermark(connection, self.engine, name, mark, self._moved)
            with writing(connection, self.target.flavor) as session:
                copied = tuple(self._replace(connection, session, table) for table in self.tables)
            counts = {
                "inserted": sum(one.inserted for one in copied), "deleted": sum(one.deleted for one in copied)
            }  # fmt: skip
            self.snapshot.require_held()
            save_repair(connection, number, counts, done=True)
        return copied

    def _moved(self, found: Channel) -> PositionError:
        ours = self.channel
        return PositionError(
            f"channel {ours.name}: expected {ours.uuid} at seqno {ours.watermark.seqno:,}, the place of the source's "
            f"snapshot, found {found.uuid} at seqno {found.watermark.seqno:,}: another run has applied a window; "
            "nothing was written, run the command again"
        )

    def _replace(self, connection: Connection, session: Session, table: ComparedTable) -> RecopyResult:
        with bytes_as_sent(session):
            copied = self._copied(session, table)
        forget_table(connection, self.channel.name, table.target)
        return copied

    def _copied(self, session: Session, table: ComparedTable) -> RecopyResult:
        """Delete a table's rows, insert the snapshot's, and compare both servers' rows."""
        [(packet,)] = session.texts("SELECT @@max_allowed_packet")
        reader, counter = self.snapshot.readers
        found = self.target.table(table.target)
        assert found is not None
        hold_table(session.execute, table.target)
        deleted = session.execute(f"DELETE FROM {identifier(table.target.database)}.{identifier(table.target.table)}")
        # the target's columns under the source's name
        whole = Chunk(replace(found, key=table.source), None, None)
        inserted = insert_rows(reader, session, whole, int(packet), table.target)
        pair = Pair(_side(reader, is_source=True), _side(session, is_source=False))
        rows, differing = compared_rows(pair, table, inserted)
        counted = count_rows(counter, table.source)
        if counted != inserted:
            raise DriftError(
                f"{table.target}: the source has {plural(counted, 'row')} in the snapshot, counted by a session that "
                f"has copied nothing, and {inserted:,} were copied: a limit or a setting of the source's sessions "
                "hides rows; all tables of this command were rolled back"
            )
        if differing or rows != inserted:
            raise DriftError(
                f"{table.target}: expected the source's {plural(inserted, 'row')} behind the copy, found "
                f"{plural(rows, 'row')}, of which {differing:,} differ: a trigger or a setting of the "
                "target changes the written values; "
                "all tables of this command were rolled back"
            )
        return RecopyResult(table.target, deleted, inserted)


def compared_rows(pair: Pair, table: ComparedTable, inserted: int) -> tuple[int, int]:
    """The number of the target's rows behind a copy of ``inserted`` rows, and of those that differ.

    Texts of one JSON value differ between the families, so that both servers' rows are read, whatever their hashes:
    range by range where the table has ranges, and as a whole where these do not show all rows alike.
    """
    if table.by_value and table.has_ranges:
        rows, differing = 0, 0
        after: Key | None = None
        while True:
            end = pair.end_of_chunk(table, after, _IN_RANGE)
            shown, differences = pair.in_range(table, after, end)
            rows, differing, after = rows + shown, differing + len(differences), end
            if end is None:
                break
        if not differing and rows == inserted:
            return rows, 0
    rows, differences = pair.whole(table)
    return rows, len(differences)


def named_tables(names: Sequence[str], tables: Tables) -> tuple[TableKey, ...]:
    """The tables that somebody has typed as the target's ``database.table``, with or without backticks. Raises
    ConfigError for a name that none or several tables of the channel have."""
    return tuple(dict.fromkeys(_named(name, tables) for name in names))


def _named(name: str, tables: Tables) -> TableKey:
    named = [key for key in (*tables.compared, *tables.not_comparable) if name in (str(key), _quoted(key))]
    if len(named) != 1:
        known = ", ".join(_quoted(key) for key in named[:_SHOWN])
        found = f"several: {known}" if named else "no such table in the channel's databases"
        raise ConfigError(
            f"--table: expected one table of the channel by its name on the target, got {name!r}: {found}"
        )
    return named[0]


def chosen_tables(
    keys: Sequence[TableKey],
    tables: Tables,
    schemas: tuple[Schema, Schema],
    sequences: Collection[TableKey],
    with_triggers: Collection[str],
    asked: Collection[TableKey],
) -> tuple[ComparedTable, ...]:
    """The tables of these names on the target. Raises ConfigError for one that no statements can copy exactly.
    ``sequences``: the source's. ``asked``: those that somebody has typed; the others refer to tables that the target
    lacks."""
    return tuple(_chosen(key, tables, schemas, sequences, with_triggers, asked) for key in keys)


def _chosen(
    key: TableKey,
    tables: Tables,
    schemas: tuple[Schema, Schema],
    sequences: Collection[TableKey],
    with_triggers: Collection[str],
    asked: Collection[TableKey],
) -> ComparedTable:
    source, target = schemas
    why = tables.not_comparable.get(key, "")
    is_made_anew = why != ONLY_ON_TARGET and source.flavor is target.flavor
    if why and is_made_anew and target.table(key) is not None:
        why += f"; or drop it there (DROP TABLE {_quoted(key)}): then this command makes it by the source's definition"
    if not why:
        ours, theirs = source.table(tables.compared[key].source), target.table(key)
        assert ours is not None
        why = _why_not(ours, theirs, with_triggers)
        if tables.compared[key].source in sequences:
            why = "it is a sequence: set it by SELECT SETVAL(...) on the target"
    if why:
        also = "" if key in asked else ", which refers to a table that the target lacks,"
        raise ConfigError(f"--table {key}:{also} cannot be copied again: {why}")
    return tables.compared[key]


def _why_not(source: Table, target: Table | None, with_triggers: Collection[str]) -> str:
    for table, server in ((source, "source"), (target, "target")):
        if table is not None and not table.transactional:
            return (
                f"its engine on the {server} is {table.engine}: neither a snapshot nor a transaction includes its rows"
            )
    return obstacle(target, with_triggers)


def _quoted(key: TableKey) -> str:
    return f"{identifier(key.database)}.{identifier(key.table)}"


def _side(session: Session, *, is_source: bool) -> Side:
    return Side(session.rows, session.each_row, lambda sql: [tuple(row) for row in session.texts(sql)], is_source)
