"""Reads the changes of a log: a window's segments, or the source's log from the watermark to its end."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np

from binlane.binlog.events import FormatDescription, parse_body
from binlane.binlog.payload import unpack
from binlane.binlog.query import ExecuteLoadQuery, Query
from binlane.binlog.reader import LogReader
from binlane.binlog.row_values import Change, RowDecoder
from binlane.binlog.rows import ROWS_KINDS, RowsEvent, RowsFlag, RowsKind
from binlane.binlog.table_map import TableMap
from binlane.binlog.vector.frames import Frames, frame, index_rows, table_maps
from binlane.binlog.wire import LOG_BEGIN, Buffer, EventType, RawEvent
from binlane.errors import TableMismatchError, UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition, TableKey
from binlane.plan.transaction.decode import is_marked, statement_facts
from binlane.schema.binding import BoundTable, bind
from binlane.schema.letter_case import LetterCase
from binlane.schema.model import ForeignKey, Schema
from binlane.shards.renaming import AS_THEY_ARE, Renaming
from binlane.source.identity import Start, described
from binlane.source.protocol import LOG_START, EventSource
from binlane.source.proved import proved
from binlane.sql.logged_query import logged_query
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.plain_statement import parted
from binlane.verify.changes import Changes
from binlane.verify.rows.column_text import ComparedTable, Key
from binlane.verify.rows.row_states import ImageTexts, Recorder
from binlane.verify.segment_keys import KeyColumns, can_read, distinct_keys, statements
from binlane.work.files import WorkFolder
from binlane.work.lookup import StoredSegment, stored_segments
from binlane.work.read_ahead import made_ahead

_SPILLED: Final = 200_000
"""Keys, about 200 bytes each."""
_SIDE_BY_SIDE: Final = 2
"""Segments whose keys are found at a time: each takes some 150 MB."""
_FRAMES: Final = (b"BEGIN", b"COMMIT", b"ROLLBACK")
_T = EventType
_ROWS: Final = np.isin(np.arange(256), list(ROWS_KINDS))
_DEFINES_NOTHING: Final = re.compile(
    rb"[\s(]*(?:INSERT|REPLACE|UPDATE|DELETE|SELECT|WITH|LOAD|DO|CALL|VALUES)\b", re.IGNORECASE
)
_MAKES_TABLE: Final = re.compile(
    rb"CREATE\s++(?P<replaces>OR\s++REPLACE\s++)?TABLE\s++(?!IF\b)(?=[\w$`\"\x80-\xff])", re.IGNORECASE
)
"""Whatever is there: IF NOT EXISTS, which may stand behind something else than a name, makes nothing where there is
one."""
_MAKES_DATABASE: Final = re.compile(rb"\b(?:DROP|REPLACE)\s+(?:DATABASE|SCHEMA)\b", re.IGNORECASE)
_DEFINES_NO_TABLE: Final = re.compile(
    rb"\s*(?:CREATE|ALTER|DROP)\b(?!.*\b(?:TABLE|DATABASE|SCHEMA|SEQUENCE|INDEX|TABLESPACE)\b)",
    re.IGNORECASE | re.DOTALL,
)
"""Statements that are not read, and that define what has no rows."""
_KEEPS_ROWS: Final = re.compile(rb"\s*(?:ANALYZE|CHECK|OPTIMIZE|CACHE)\b", re.IGNORECASE)
_OF_ONE_TABLE: Final = re.compile(rb"\s*(?:CREATE|ALTER)\b", re.IGNORECASE)
_KEEPS_CHILDREN: Final = frozenset({"RESTRICT", "NO ACTION"})


@dataclass(frozen=True, slots=True)
class _Link:
    """A foreign key that changes its child's rows, by the target's names."""

    parent: TableKey
    child: TableKey
    foreign: ForeignKey


@dataclass(frozen=True, slots=True)
class _LoggedTable:
    """A TABLE_MAP whose rows can be decoded."""

    bound: BoundTable
    decoder: RowDecoder
    texts: ImageTexts | None
    """None: the keys of the table are not needed, or not known from the log."""
    on_delete: bool
    """Whether children follow a deleted row."""
    referenced: tuple[int, ...]
    """Columns whose new values children take over."""

    @property
    def key_columns(self) -> KeyColumns | None:
        """The primary key's columns; None if it is not known from the log."""
        if self.texts is None:
            return None
        places = self.texts.key_places
        logged = tuple(self.bound.columns[place] for place in places)
        readers = tuple(self.decoder.readers[place] for place in places)
        return KeyColumns(self.texts.compared.key, logged, readers, places, tuple(self.decoder.rules))

    @property
    def is_followed(self) -> bool:
        """Whether children may follow changes of its rows."""
        return self.on_delete or bool(self.referenced)

    def moves_children(self, change: Change) -> bool:
        """Whether a foreign key may change rows of a child."""
        if change.before is None:
            return False
        if change.after is None:
            return self.on_delete
        return any(change.before[number] != change.after[number] for number in self.referenced)


@dataclass(frozen=True, slots=True)
class _SegmentKeys:
    """What a segment changes, where all its row images are in the log as they are."""

    name: str
    log_format: FormatDescription
    frames: Frames
    keys: list[tuple[TableKey, Collection[Key]]]
    others: set[tuple[TableKey, RowsKind, bool]]
    """Tables whose keys are not known from the log, how their rows are changed, and whether the log shows what foreign
    keys change then."""
    told: list[int]
    """The events that may tell of changes besides rows events."""


@dataclass(slots=True)
class _NamedTables:
    """What statements have named and the log has not made, by its present name. If it goes, nobody can ask any more
    whether it was a view or a table with triggers, through which such a statement has changed other tables."""

    names: set[TableKey] = field(default_factory=set)
    _bare: set[TableKey] = field(default_factory=set)
    """Tables that the log has made, without a trigger until now."""

    def take(self, tables: frozenset[TableKey]) -> None:
        """A statement that is no DDL names them."""
        self.names |= tables - self._bare

    def loses(self, facts: StatementFacts, sql: bytes) -> bool:
        """Take a DDL; whether something of this is gone by it."""
        made = _MAKES_TABLE.match(sql)
        dropped = facts.dropped
        if made is not None and made["replaces"] and facts.first is not None:
            dropped |= {facts.first}
        databases = {key.database for key in facts.dropped_triggers}
        if not facts.tables and _MAKES_DATABASE.search(sql) is not None:
            databases |= facts.databases
        is_lost = not self.names.isdisjoint(dropped) or any(key.database in databases for key in self.names)
        self._bare -= facts.triggered | dropped
        self._bare = {key for key in self._bare if key.database not in databases}
        for old, new in facts.renames:
            for tables in (self.names, self._bare):
                if old in tables:
                    tables.remove(old)
                    tables.add(new)
        if made is not None and facts.first is not None:
            self._bare.add(facts.first)
        return is_lost


@dataclass(slots=True)
class ChangeReader:
    """Collects the changes of a log. ``compared``: the tables whose keys are collected, by the target's names."""

    source: Schema
    """With the target's names."""
    target: Schema
    compared: dict[TableKey, ComparedTable]
    renaming: Renaming = AS_THEY_ARE
    """Names of the log's databases on the target."""
    recorder: Recorder | None = None
    """Gets the row changes of the tables that it wants, instead of ``found.keys``."""
    found: Changes = field(init=False)
    reached: LogPosition | None = None
    """The end of the source's log, as far as it was read."""
    _maps: dict[int, _LoggedTable | TableKey] = field(default_factory=dict)
    _parents: set[TableKey] = field(default_factory=set)
    """Tables of which children may have followed changes."""
    _links: tuple[_Link, ...] = field(init=False)
    _hidden: frozenset[TableKey] = field(init=False)
    """Views and tables with triggers: a statement that names one may change any table."""
    _named: _NamedTables = field(default_factory=_NamedTables)

    def __post_init__(self) -> None:
        self.found = Changes(LetterCase(self.source.folds_names or self.target.folds_names))
        hidden = self.source.views | self.target.views | self.source.tables_with_triggers
        self._hidden = self.found.letter_case.tables(hidden)
        self._links = tuple(
            _Link(self._name(foreign.parent), self._name(table.key), foreign)
            for schema in (self.source, self.target)
            for table in schema.tables.values()
            for foreign in table.foreign_keys
            if not {foreign.on_update, foreign.on_delete} <= _KEEPS_CHILDREN
        )

    def read_source(
        self,
        source: EventSource,
        start: Start,
        prepared: Iterable[tuple[str, bytes]] = (),
        spill: Callable[[Mapping[TableKey, Collection[Key]]], None] | None = None,
    ) -> Changes:
        """The changes from ``start`` to the log's present end. Raises SourceError, BinlogError, as
        ``source.proved`` does.

        ``prepared``: the files (name, content) of the XA transactions that are prepared at ``start``. Their rows change
        behind it, and they hold the rows' locks, so nothing else in the log changes these rows earlier.

        ``spill`` takes the keys whenever there are many, so that memory is bounded; the result has those after its last
        call.
        """
        for name, data in prepared:
            self._read_file(data, name)
        self.reached, log_format = start.position, FormatDescription("")
        with contextlib.closing(proved(source, start)) as chunks:
            for chunk in chunks:
                name = f"{source.name}/{chunk.file}"
                if chunk.offset == LOG_START:
                    log_format = described(chunk.data, name)
                    continue
                frames = frame(chunk.data, 0, log_format.checksum.length)
                frames.check(name)
                for index in range(frames.offset.size):
                    self._take(frames.raw(index, chunk.offset), log_format, name)
                if spill is not None and sum(map(len, self.found.keys.values())) >= _SPILLED:
                    spill(self.found.keys)
                    self.found.keys.clear()
                self.reached = LogPosition(chunk.file, chunk.offset + len(chunk.data))
        return self._with_cascades()

    def read_windows(self, folders: Sequence[WorkFolder]) -> Changes:
        """The changes of windows, oldest first. PlanError if files are gone."""
        stored = [each for folder in folders for each in stored_segments(folder)]
        # machine code runs without the interpreter's lock: that of the next segment while a segment's keys are taken
        found = made_ahead(self._keys_of, stored, _SIDE_BY_SIDE) if self.recorder is None else itertools.repeat(None)
        for segment, keys in zip(stored, found, strict=False):
            if keys is None:
                with segment.opened() as data:
                    self._read_file(data, segment.source_file)
            else:
                self._take_keys(keys)
        return self._with_cascades()

    def _keys_of(self, segment: StoredSegment) -> _SegmentKeys | None:
        """The keys of a segment; None if its rows have to be read one by one. Changes nothing here."""
        name = segment.source_file
        # the arrays keep the pages
        with segment.opened() as data:
            log_format = LogReader(data, name, verify=False).format
            frames = frame(data, LOG_BEGIN, log_format.checksum.length)
        frames.check(name)
        if not can_read(frames):
            return None
        index = index_rows(frames, name)
        maps = table_maps(frames, index, name, log_format.flavor)
        tables = [self._logged(each, log_format.flavor, name) for each in maps]
        rows = np.flatnonzero(_ROWS[frames.type_code])
        # a source that logs what foreign keys change shows their rows
        unshown = rows[~frames.have_flag(rows, RowsFlag.CASCADES_LOGGED)]
        followed = [n for n, each in enumerate(tables) if isinstance(each, _LoggedTable) and each.is_followed]
        if np.isin(index.number[unshown], followed).any():
            return None
        keyed = [each.key_columns if isinstance(each, _LoggedTable) else None for each in tables]
        found = distinct_keys(frames, index, maps, keyed, name)
        if found is None:
            return None
        names = [each.bound.key if isinstance(each, _LoggedTable) else each for each in tables]
        unkeyed = np.array([number for number, each in enumerate(keyed) if each is None], np.int32)
        rows = rows[np.isin(index.number[rows], unkeyed)]
        others = {
            (names[number], ROWS_KINDS[code], is_shown)
            for number, code, is_shown in zip(
                index.number[rows].tolist(),
                frames.type_code[rows].tolist(),
                frames.have_flag(rows, RowsFlag.CASCADES_LOGGED).tolist(),
                strict=True,
            )
        }
        told = statements(frames, log_format.post_header_length(_T.QUERY))
        return _SegmentKeys(
            name, log_format, frames, [(names[number], keys) for number, keys in found.items()], others, told.tolist()
        )

    def _take_keys(self, segment: _SegmentKeys) -> None:
        for table, keys in segment.keys:
            self.found.touched.add(table)
            self.found.keys[table].update(keys)
        for table, kind, shows_children in segment.others:
            self.found.touched.add(table)
            self._cover(table, kind, shows_children=shows_children)
        frames = segment.frames
        for event in segment.told:
            self._take(frames.raw(event), segment.log_format, segment.name)

    def _read_file(self, data: Buffer, name: str) -> None:
        reader = LogReader(data, name)
        for event in reader.events():
            self._take(event, reader.format, name)
            del event
        del reader

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
                self._query(query, event, log_format)
        elif code == _T.TRANSACTION_PAYLOAD:
            for inner in unpack(event, name):
                self._take(inner, log_format, name)
        elif code == _T.XA_PREPARE:
            self.found.prepares = True
        elif code == _T.EXECUTE_LOAD_QUERY:
            load = parse_body(event, log_format, name)
            assert isinstance(load, ExecuteLoadQuery)
            self._query(load.query, event, log_format)
        elif code == _T.INCIDENT:
            self.found.everything = True

    def _query(self, query: Query, event: RawEvent, log_format: FormatDescription) -> None:
        executed = logged_query(query, log_format)
        if executed is None:
            self._take_unread()
            self.found.all_defined = True
            return
        flavor = log_format.flavor
        _, statement = parted(executed.sql, executed.context, flavor)
        facts = statement_facts(executed.sql, executed.session(event.header, statement), flavor)
        facts = self.found.letter_case.facts(self.renaming.facts(facts))
        self._statement(facts, statement, is_temporary=facts.temporary or is_marked(event))

    def _take_unread(self) -> None:
        """A statement may have changed anything."""
        self.found.everything = self.found.stated_anywhere = True

    def _map(self, event: RawEvent, flavor: Flavor, name: str) -> None:
        logged = TableMap.parse(event.body, name, flavor)
        self._maps[logged.table_id] = self._logged(logged, flavor, name)

    def _logged(self, logged: TableMap, flavor: Flavor, name: str) -> _LoggedTable | TableKey:
        """The table of a TABLE_MAP; its name alone if its rows cannot be decoded."""
        if self.renaming.refusal(logged.database) is not None:
            # the filter leaves it out: on the target its name belongs to another database
            return TableKey("", logged.table)
        key = self.renaming.table(TableKey(logged.database, logged.table))
        table = self.target.table(key)
        if table is None:
            return key
        try:
            bound = bind(logged, flavor, table)
            decoder = RowDecoder(logged, bound.columns, text=False, where=name)
        except TableMismatchError:
            return table.key
        compared = self.compared.get(table.key)
        is_wanted = self.recorder is not None and self.recorder.wants(table.key)
        is_recorded = compared is not None and (compared.keys_are_logged or (not compared.key and is_wanted))
        texts = ImageTexts.of(compared, bound) if compared is not None and is_recorded else None
        followed = [link.foreign for link in self._links if link.parent == self._name(table.key)]
        names = {name for each in followed if each.on_update not in _KEEPS_CHILDREN for name in each.parent_columns}
        return _LoggedTable(
            bound,
            decoder,
            texts,
            any(each.on_delete not in _KEEPS_CHILDREN for each in followed),
            tuple(number for number, column in enumerate(bound.columns) if column.name in names),
        )

    def _rows(self, event: RawEvent, name: str) -> None:
        rows = RowsEvent.parse(event.header.type_code, event.body, name)
        logged = self._maps[rows.table_id]
        self.found.touched.add(logged if isinstance(logged, TableKey) else logged.bound.key)
        # MySQL 9.6 and newer say with each event that rows which foreign keys change have events of their own
        shows_children = bool(rows.flags & RowsFlag.CASCADES_LOGGED)
        if isinstance(logged, TableKey):
            self._cover(logged, rows.kind, shows_children=shows_children)
            return
        table, texts = logged.bound.key, logged.texts
        # a covered table may have been altered, and its rows have other columns than here; and what its images show is
        # not what the rows were where reading began
        if self.found.covers_table(table) or texts is None:
            self._cover(table, rows.kind, shows_children=shows_children)
            return
        is_followed = logged.is_followed and not shows_children
        if self.recorder is not None and not self.recorder.wants(table) and not is_followed:
            return
        keys = self.found.keys[table]
        try:
            for change in logged.decoder.changes(rows, name):
                if is_followed and logged.moves_children(change):
                    self._parents.add(self._name(table))
                before = None if change.before is None else texts.key(change.before, None)
                after = None if change.after is None else texts.key(change.after, change.before)
                if self.recorder is None:
                    keys.update(key for key in (before, after) if key is not None)
                else:
                    self.recorder.take(texts, change, before, after)
        except UnsupportedEventError:
            self._cover(table, rows.kind, shows_children=shows_children)

    def _cover(self, table: TableKey, kind: RowsKind, *, shows_children: bool) -> None:
        """Any row of the table may have changed."""
        self.found.tables.add(self._name(table))
        if kind is not RowsKind.INSERT and not shows_children:
            self._parents.add(self._name(table))

    def _statement(self, facts: StatementFacts, sql: bytes, *, is_temporary: bool) -> None:
        self.found.accounts |= facts.kind is StatementKind.GLOBAL
        if facts.kind in (StatementKind.TRANSACTION, StatementKind.GLOBAL):
            return
        self._definition(facts, sql, is_temporary=is_temporary)
        if facts.kind is StatementKind.DDL:
            self._ddl(facts, sql)
            return
        names = facts.written or facts.tables
        if facts.kind is StatementKind.UNKNOWN and _DEFINES_NO_TABLE.match(sql) is not None:
            return
        self._named.take(facts.tables)
        if facts.kind is StatementKind.UNKNOWN or facts.routines_used or not self._hidden.isdisjoint(facts.tables):
            self._take_unread()
        elif names:
            self.found.tables |= names
            self.found.stated |= names
            self._parents |= names
        else:
            self.found.databases |= facts.databases
            self.found.stated_in |= facts.databases

    def _ddl(self, facts: StatementFacts, sql: bytes) -> None:
        """A definition changes the rows of the tables that it is about: not of those that it reads, copies or refers
        to. That of a view or a program changes none, whatever its text names."""
        if facts.create_select and facts.routines_used:
            # a function that a query calls may write
            self.found.everything = True
        elif facts.views or facts.triggered or facts.dropped_triggers or facts.routine_databases or facts.temporary:
            return
        elif facts.tables and _KEEPS_ROWS.match(sql) is None:
            about = facts.tables
            if facts.first is not None and _OF_ONE_TABLE.match(sql) is not None:
                about = frozenset({facts.first, *(key for pair in facts.moves for key in pair)})
            self.found.tables |= about
        elif not facts.tables and _MAKES_DATABASE.search(sql) is not None:
            self.found.databases |= facts.databases

    def _definition(self, facts: StatementFacts, sql: bytes, *, is_temporary: bool) -> None:
        if facts.kind is StatementKind.DDL:
            named = facts.tables | facts.triggered | facts.views
            self.found.defined |= named
            self.found.defined_in |= facts.databases if not named else facts.routine_databases
            self.found.made |= facts.databases if _MAKES_DATABASE.search(sql) is not None else set()
            if not is_temporary and self._named.loses(facts, sql):
                self._take_unread()
        elif facts.kind is StatementKind.UNKNOWN and _DEFINES_NOTHING.match(sql) is None:
            self.found.all_defined = True

    def _name(self, key: TableKey) -> TableKey:
        return self.found.letter_case.table(key)

    def _with_cascades(self) -> Changes:
        """The changes, with the children of changed parents and their children: foreign keys may change them, and the
        log does not show it."""
        if not self._named.names.isdisjoint(self._hidden):
            self._take_unread()
        # a child's definition has the names of its parent and of the parent's columns, which a DDL may change
        pairs = {*self.source.references, *self.target.references}
        self.found.defined |= {self._name(child) for child, parent in pairs if self._name(parent) in self.found.defined}
        left = set(self._parents)
        while left:
            parent = left.pop()
            for child in {link.child for link in self._links if link.parent == parent} - self.found.followed:
                self.found.followed.add(child)
                left.add(child)
        self.found.tables |= self.found.followed
        return self.found
