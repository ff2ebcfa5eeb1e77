"""Brings the rows that an earlier attempt has copied to the present snapshot.

The log between the two snapshots names the changed rows: they are deleted on the target and read again from the
present snapshot. Rows that it does not name are equal in both. So after a kill in the middle the next attempt does the
same from the first snapshot on, with more keys: docs/decisions/0009-a-first-copy-continues-inside-a-table.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Final

from binlane.apply.session.held_table import hold_table
from binlane.bootstrap.computed_columns import RowCopy
from binlane.bootstrap.row_copy import by_key, in_transaction, max_packet, name_of, rows_of
from binlane.bootstrap.sessions import Session
from binlane.errors import MissingLogError, SourceIdentityError
from binlane.lazy_dataclass import dataclass
from binlane.model import SchemaObject, TableKey
from binlane.schema.model import Schema, Table
from binlane.source.identity import Start
from binlane.source.protocol import EventSource
from binlane.source.proved import prove_log
from binlane.state.records.bootstraps import DONE, TABLE, Bootstrap, ObjectProgress, count_rows
from binlane.state.stored_values import unexpected
from binlane.verify.log_reader import ChangeReader
from binlane.verify.rows.column_text import ComparedTable, Key, behind, is_key, one_of

_BATCH: Final = 500
"""Keys in a statement and a transaction."""


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """What is left of an earlier attempt, at the present snapshot."""

    finished: frozenset[TableKey] = frozenset()
    partial: Mapping[TableKey, Key] = field(default_factory=dict)
    """Tables that are complete up to a key."""
    rows: int = 0
    """Rows that were read again."""
    notes: tuple[str, ...] = ()

    @property
    def tables(self) -> frozenset[TableKey]:
        """All tables that stay on the target."""
        return self.finished | self.partial.keys()


@dataclass(slots=True)
class CatchUp:
    """One attempt's catching up. No trigger of the tables is on the target."""

    channel: str
    before: Bootstrap
    schemas: tuple[Schema, Schema]
    """The tables to copy, as source and target have them now."""
    everything: Schema
    """All of the source: a view or a trigger of another database changes these tables, too."""
    readers: Sequence[Session]
    """Of the present snapshot."""
    writers: Sequence[Session]
    _tables: dict[TableKey, tuple[Table, ComparedTable, ObjectProgress]] = field(init=False)
    _packet: int = field(init=False)
    _rows: int = 0

    def run(self, log: EventSource) -> EarlierAttempt:
        """Bring the rows to the snapshot; what can be kept. Raises SourceError, BinlogError, and driver errors."""
        mark = self.before.snapshot
        self._packet = max_packet(self.writers[0])
        self._tables = self._candidates()
        if not self._tables:
            return EarlierAttempt()
        start = Start(0, mark.source, mark.gtid_set, mark.source_time, self.before.source_identity, mark.fingerprint)
        keyed = {key: compared for key, (_, compared, _) in self._tables.items() if compared.key}
        try:
            prove_log(log, start)
            self._trim()
            reader = ChangeReader(self.everything, self.everything, keyed)
            changed = reader.read_source(log, start, spill=self._read_again)
        except (MissingLogError, SourceIdentityError) as exc:
            return EarlierAttempt(notes=(f"no table of an earlier attempt was kept: {exc}",))
        self._tables = {key: found for key, found in self._tables.items() if not changed.covers_table(key)}
        self._read_again(changed.keys)
        return self._kept()

    def _candidates(self) -> dict[TableKey, tuple[Table, ComparedTable, ObjectProgress]]:
        """Tables with rows of the earlier attempt that can be kept, unless the log says otherwise."""
        source, target = self.schemas
        found = {}
        for obj, copying in self.before.made.items():
            key = TableKey(obj.database, obj.name)
            table, made = source.tables.get(key), target.tables.get(key)
            if obj.kind != TABLE or table is None or made is None or _shape(table) != _shape(made):
                continue
            compared = by_key(table, self.readers[0])
            if copying.state == DONE or (copying.reached is not None and compared.keys_are_logged):
                if copying.reached is not None and not is_key(compared, copying.reached):
                    where, expected = "binlane.bootstrap_objects.reached", f"the primary key of a row of {key}"
                    raise unexpected(where, expected, copying.reached)
                found[key] = (table, compared, copying)
        return found

    def _trim(self) -> None:
        """Delete the rows behind the key up to which a table is complete."""
        for key, (_, compared, copying) in list(self._tables.items()):
            if copying.state == DONE or copying.reached is None:
                continue
            surplus, writer = copying.rows - copying.reached_rows, self.writers[0]
            where = behind(compared, copying.reached, writer.flavor)
            writer.execute("BEGIN")
            hold_table(writer.execute, key)
            if writer.execute(f"DELETE FROM {name_of(key)} WHERE {where}") == surplus:
                count_rows(writer.execute, self.channel, SchemaObject(TABLE, key.database, key.table), -surplus)
                writer.execute("COMMIT")
            else:
                # the target orders the keys in another way than the source, or another program has written
                writer.execute("ROLLBACK")
                del self._tables[key]

    def _read_again(self, keys: Mapping[TableKey, Collection[Key]]) -> None:
        batches = [
            (table, ordered[at : at + _BATCH])
            for table, found in keys.items()
            if table in self._tables
            for ordered in [sorted(found)]
            for at in range(0, len(ordered), _BATCH)
        ]
        lines = list(zip(self.readers, self.writers, strict=False))

        def work(number: int) -> int:
            return sum(self._batch(*lines[number], *each) for each in batches[number :: len(lines)])

        with ThreadPoolExecutor(len(lines)) as pool:
            self._rows += sum(pool.map(work, range(len(lines))))

    def _batch(self, reader: Session, writer: Session, key: TableKey, keys: Sequence[Key]) -> int:
        table, compared, copying = self._tables[key]
        ours, theirs = (f"({one_of(compared, keys, each.flavor)})" for each in (reader, writer))
        if copying.state != DONE and copying.reached is not None:
            ours += f" AND {behind(compared, copying.reached, reader.flavor, up_to=True)}"

        def work() -> int:
            removed = writer.execute(f"DELETE FROM {name_of(key)} WHERE {theirs}")
            # a row that is not read again yet may have a unique key's value that one of these rows has now
            added = rows_of(RowCopy(reader, writer, table, ours, theirs, compared.key), self._packet, verb="REPLACE")
            obj = SchemaObject(TABLE, key.database, key.table)
            count_rows(writer.execute, self.channel, obj, added - removed, are_reached=True)
            return added

        return in_transaction(writer, key, work, reader)

    def _kept(self) -> EarlierAttempt:
        finished = {key for key, (_, _, copying) in self._tables.items() if copying.state == DONE}
        reached = {key: copying.reached for key, (_, _, copying) in self._tables.items() if key not in finished}
        partial = {key: found for key, found in reached.items() if found is not None}
        return EarlierAttempt(frozenset(finished), partial, self._rows)


def _shape(table: Table) -> tuple[object, ...]:
    return table.columns, table.primary_key
