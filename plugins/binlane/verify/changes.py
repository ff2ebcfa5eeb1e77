"""Changes in a range of a log: keys of changed rows, and tables with changes that row events do not show.

Such changes come from statements and DDL; from foreign keys, whose cascades the servers do not log; from rows of
another shape than the table has now. If a statement's changes cannot be determined, everything counts as changed.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from binlane.binlog.events import FormatDescription, parse_body
from binlane.binlog.payload import unpack
from binlane.binlog.query import Query
from binlane.binlog.reader import LogReader
from binlane.binlog.row_values import Absent, Image, RowDecoder
from binlane.binlog.rows import ROWS_KINDS, RowsEvent, RowsKind
from binlane.binlog.table_map import TableMap
from binlane.binlog.vector.frames import frame
from binlane.binlog.wire import HEADER, BufferOffset, EventHeader, EventType, RawEvent
from binlane.errors import TableMismatchError, UnsupportedEventError
from binlane.model import Flavor, LogPosition, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.schema.binding import BoundTable, bind
from binlane.schema.model import Schema
from binlane.shards.renaming import AS_THEY_ARE, Renaming
from binlane.source.identity import described
from binlane.source.protocol import LOG_START, EventSource
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.verify.column_text import Compared, Key, key_text
from binlane.work.files import WorkFolder
from binlane.work.lookup import read_manifest
from binlane.work.plan_inputs import segment_bytes

_SPILLED: Final = 200_000
"""Keys, about 200 bytes each."""
_FRAMES: Final = (b"BEGIN", b"COMMIT", b"ROLLBACK")
_T = EventType
_DEFINES_NOTHING: Final = re.compile(
    rb"\s*\(*\s*(?:INSERT|REPLACE|UPDATE|DELETE|SELECT|WITH|LOAD|DO|CALL|VALUES)\b", re.IGNORECASE
)
_MAKES_DATABASE: Final = re.compile(rb"\b(?:DROP|REPLACE)\s+(?:/\*.*?\*/\s*)?(?:DATABASE|SCHEMA)\b", re.IGNORECASE)
_KEEPS_CHILDREN: Final = frozenset({"RESTRICT", "NO ACTION"})


@dataclass(slots=True)
class Changes:
    """The changes of a log, by the target's names."""

    keys: dict[TableKey, set[Key]] = field(default_factory=lambda: defaultdict(set))
    tables: set[TableKey] = field(default_factory=set)
    """Tables in which any row may have changed."""
    databases: set[str] = field(default_factory=set)
    everything: bool = False
    defined: set[TableKey] = field(default_factory=set)
    """Tables and views that a DDL names, and the children of such tables."""
    defined_in: set[str] = field(default_factory=set)
    """Databases in which a DDL concerns another object: a routine, an event, the database itself."""
    made: set[str] = field(default_factory=set)
    """Databases that may have been dropped and created again."""
    all_defined: bool = False

    def covers(self, table: TableKey, key: Key) -> bool:
        """Whether the row may have changed; with an empty key: anything of the table."""
        if self.covers_table(table):
            return True
        return bool(self.keys.get(table)) if key == () else key in self.keys.get(table, ())

    def covers_definition(self, name: TableKey, *, is_named: bool) -> bool:
        """Whether an object's definition may have changed; ``is_named``: DDL names it, as tables and views."""
        if self.all_defined or name in self.defined or name.database in self.made:
            return True
        return not is_named and name.database in self.defined_in

    def covers_table(self, table: TableKey) -> bool:
        """Whether any row of the table may have changed."""
        return self.everything or table in self.tables or table.database in self.databases


@dataclass(slots=True)
class ChangeReader:
    """Collects the changes of a log. ``compared``: the tables whose keys are collected, by the target's names."""

    source: Schema
    """With the target's names."""
    target: Schema
    compared: dict[TableKey, Compared]
    renaming: Renaming = AS_THEY_ARE
    """Names of the log's databases on the target."""
    found: Changes = field(default_factory=Changes)
    _maps: dict[int, tuple[BoundTable, RowDecoder] | TableKey] = field(default_factory=dict)
    _parents: set[TableKey] = field(default_factory=set)

    def read_source(
        self,
        source: EventSource,
        start: LogPosition,
        gtid_set: str,
        spill: Callable[[dict[TableKey, set[Key]]], None] | None = None,
    ) -> Changes:
        """The changes from ``start`` to the log's present end. Raises SourceError, BinlogError.

        ``spill`` takes the keys whenever there are many, so that memory is bounded; the result has those after its last
        call.
        """
        log_format = FormatDescription("")
        with contextlib.closing(source.read(start, gtid_set)) as chunks:
            for chunk in chunks:
                name = f"{source.name}/{chunk.file}"
                if chunk.offset == LOG_START:
                    log_format = described(chunk.data, name)
                    continue
                frames = frame(chunk.data, 0, log_format.checksum.length, log_format.header_length)
                frames.check(name)
                for index, at in enumerate(frames.offset.tolist()):
                    header = EventHeader._make(HEADER.unpack_from(chunk.data, at))
                    self._take(RawEvent(BufferOffset(chunk.offset + at), header, frames.body(index)), log_format, name)
                if spill is not None and sum(map(len, self.found.keys.values())) >= _SPILLED:
                    spill(self.found.keys)
                    self.found.keys.clear()
        return self._with_cascades()

    def read_window(self, folder: WorkFolder) -> Changes:
        """A window's changes; everything if it ends earlier windows' XA transactions. PlanError if files are gone."""
        manifest = read_manifest(folder)
        # XA transactions of earlier windows are not in the segments
        self.found.everything = bool(manifest.carried)
        for segment in manifest.segments:
            with segment_bytes(folder, segment) as data:
                reader = LogReader(data, segment.source_file)
                for event in reader.events():
                    self._take(event, reader.format, segment.source_file)
                    del event
                del reader
        return self._with_cascades()

    def _take(self, event: RawEvent, log_format: FormatDescription, name: str) -> None:
        code = event.header.type_code
        if code == _T.TABLE_MAP:
            self._map(event, log_format.flavor, name)
        elif code in ROWS_KINDS:
            self._rows(event, name)
        elif code in (_T.QUERY, _T.QUERY_COMPRESSED):
            query = parse_body(event, log_format, name)
            assert isinstance(query, Query)
            if query.sql not in _FRAMES:
                facts = statement_facts(query.sql, query.session(event.header), log_format.flavor)
                self._statement(self.renaming.facts(facts), query.sql)
        elif code == _T.TRANSACTION_PAYLOAD:
            for inner in unpack(event, name):
                self._take(inner, log_format, name)
        elif code in (_T.EXECUTE_LOAD_QUERY, _T.INCIDENT):
            self.found.everything = True

    def _map(self, event: RawEvent, flavor: Flavor, name: str) -> None:
        logged = TableMap.parse(event.body, name, flavor)
        if self.renaming.refusal(logged.database) is not None:
            # the filter leaves it out: on the target its name belongs to another database
            self._maps[logged.table_id] = TableKey("", logged.table)
            return
        key = self.renaming.table(TableKey(logged.database, logged.table))
        table = self.target.table(key)
        if table is None:
            self._maps[logged.table_id] = key
            return
        try:
            bound = bind(logged, flavor, table)
            decoder = RowDecoder(logged, bound.columns, text=False, where=name)
        except TableMismatchError:
            self._maps[logged.table_id] = table.key
        else:
            self._maps[logged.table_id] = (bound, decoder)

    def _rows(self, event: RawEvent, name: str) -> None:
        rows = RowsEvent.parse(event.header.type_code, event.body, name)
        at = self._maps[rows.table_id]
        if isinstance(at, TableKey):
            self.found.tables.add(at)
            return
        bound, decoder = at
        if rows.kind is not RowsKind.INSERT:
            self._parents.add(bound.key)
        compared = self.compared.get(bound.key)
        if compared is None or not compared.keys_are_logged:
            self.found.tables.add(bound.key)
            return
        keys = self.found.keys[bound.key]
        try:
            for change in decoder.changes(rows, name):
                for image in (change.before, change.after):
                    if image is not None:
                        keys.add(_key(compared, bound, image, change.before))
        except UnsupportedEventError:
            self.found.tables.add(bound.key)

    def _statement(self, facts: StatementFacts, sql: bytes) -> None:
        if facts.kind in (StatementKind.TRANSACTION, StatementKind.GLOBAL):
            return
        self._definition(facts, sql)
        hidden = {*self.source.views, *self.target.views, *self.source.tables_with_triggers}
        names = {self._name(key) for key in facts.tables}
        if facts.kind is StatementKind.UNKNOWN or facts.routines_used or not hidden.isdisjoint(facts.tables):
            self.found.everything = True
        elif names:
            self.found.tables |= names
            self._parents |= names
        else:
            self.found.databases |= facts.databases

    def _definition(self, facts: StatementFacts, sql: bytes) -> None:
        if facts.kind is StatementKind.DDL:
            named = facts.tables | facts.triggered | facts.views
            self.found.defined |= {self._name(key) for key in named}
            self.found.defined_in |= facts.databases if not named else facts.routine_databases
            self.found.made |= facts.databases if _MAKES_DATABASE.search(sql) is not None else set()
        elif facts.kind is StatementKind.UNKNOWN and _DEFINES_NOTHING.match(sql) is None:
            self.found.all_defined = True

    def _name(self, key: TableKey) -> TableKey:
        table = self.target.table(key)
        return key if table is None else table.key

    def _with_cascades(self) -> Changes:
        """The changes, with the children of changed parents and their children: foreign keys may change them, and the
        log does not show it."""
        links = {
            (self._name(foreign.parent), self._name(table.key))
            for schema in (self.source, self.target)
            for table in schema.tables.values()
            for foreign in table.foreign_keys
            if not {foreign.on_update, foreign.on_delete} <= _KEEPS_CHILDREN
        }
        # a child's definition has the names of its parent and of the parent's columns, which a DDL may change
        pairs = {*self.source.references, *self.target.references}
        self.found.defined |= {self._name(child) for child, parent in pairs if self._name(parent) in self.found.defined}
        left = set(self._parents)
        while left:
            parent = left.pop()
            for child in {child for above, child in links if above == parent} - self.found.tables:
                self.found.tables.add(child)
                left.add(child)
        return self.found


def _key(compared: Compared, bound: BoundTable, image: Image, before: Image | None) -> Key:
    """The key of an image; columns that a partial after-image leaves out keep the value of the before-image."""
    places = {column.name: number for number, column in enumerate(bound.columns)}
    values = []
    for column in compared.key:
        value = image[places[column.name]]
        if isinstance(value, Absent):
            assert before is not None
            value = before[places[column.name]]
            assert not isinstance(value, Absent)
        values.append(key_text(column, value))
    return tuple(values)
