"""Copies rows from the snapshot to the target: ranges of a table's primary key, a transaction each, in parallel."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Final

import pymysql

from binlane.apply.session.retry_verdicts import Verdict, judge
from binlane.binlog.types.literals import identifier
from binlane.binlog.types.sql_types import sql_type
from binlane.binlog.types.sql_values import FLOAT
from binlane.bootstrap.sessions import Session
from binlane.bootstrap.values import faithful, selected
from binlane.errors import ApplyError
from binlane.model import Flavor, TableKey, plural
from binlane.schema.model import Column, Generated, Table
from binlane.verify.column_text import Compared, Key, behind, compared

_STATEMENT_BYTES: Final = 1 << 20
_TRIES: Final = 10
_TRUNCATED: Final = 1265
_COMPUTED: Final = frozenset({Generated.VIRTUAL, Generated.STORED})
_END: Final = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a table behind ``after``, up to ``end``; None: from the first row, to the last."""

    table: Table
    after: Key | None
    end: Key | None


@dataclass(slots=True)
class Copier:
    """Copies tables. ``readers`` share a snapshot; the first one determines the chunks."""

    readers: Sequence[Session]
    writers: Sequence[Session]
    chunk_rows: int
    table_done: Callable[[TableKey, int], None]
    """Called with the table and its number of rows, by one thread at a time."""
    rows_done: Callable[[int], None]
    _chunks: queue.Queue[Chunk | None] = field(default_factory=lambda: queue.Queue(maxsize=64))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _open: dict[TableKey, int] = field(default_factory=dict)
    _rows: dict[TableKey, int] = field(default_factory=dict)
    _failed: threading.Event = field(default_factory=threading.Event)

    def copy(self, tables: Sequence[Table]) -> None:
        """Copy all rows of ``tables``. Raises the first error, after all threads have stopped."""
        packet = int(self.writers[0].texts("SELECT @@max_allowed_packet")[0][0])
        pairs = list(zip(self.readers[1:], self.writers, strict=True))
        with ThreadPoolExecutor(len(pairs) + 1) as pool:
            running = [pool.submit(self._guarded, self._plan, tables, len(pairs))]
            running += [pool.submit(self._guarded, self._work, *pair, packet) for pair in pairs]
            try:
                wait(running)
            except BaseException:
                self._failed.set()
                raise
        for future in running:
            future.result()

    def _guarded(self, work: Callable[..., None], *arguments: object) -> None:
        try:
            work(*arguments)
        except BaseException:
            self._failed.set()
            raise

    def _plan(self, tables: Sequence[Table], workers: int) -> None:
        for table in tables:
            # one more than the chunks: the table is not done before its last chunk is known
            self._count(table.key, +1, 0)
            for chunk in chunks_of(self.readers[0], table, self.chunk_rows):
                self._count(table.key, +1, 0)
                if not self._put(chunk):
                    return
            self._count(table.key, -1, 0)
        for _ in range(workers):
            self._put(_END)

    def _put(self, chunk: Chunk | None) -> bool:
        while not self._failed.is_set():
            try:
                self._chunks.put(chunk, timeout=0.5)
            except queue.Full:
                continue
            return True
        return False

    def _work(self, reader: Session, writer: Session, packet: int) -> None:
        while not self._failed.is_set():
            try:
                chunk = self._chunks.get(timeout=0.5)
            except queue.Empty:
                continue
            if chunk is _END:
                return
            rows = copy_chunk(reader, writer, chunk, packet)
            self.rows_done(rows)
            self._count(chunk.table.key, -1, rows)

    def _count(self, table: TableKey, chunks: int, rows: int) -> None:
        with self._lock:
            self._open[table] = self._open.get(table, 0) + chunks
            self._rows[table] = self._rows.get(table, 0) + rows
            if not self._open[table]:
                self.table_done(table, self._rows[table])


def chunks_of(reader: Session, table: Table, rows: int) -> Iterator[Chunk]:
    """The table's chunks; a single one without primary key, or with FLOAT or DOUBLE in the key."""
    keyed = _compared_by_key(table, reader)
    after: Key | None = None
    while keyed.key:
        where = "" if after is None else f" WHERE {behind(keyed, after, reader.flavor)}"
        order = ", ".join(identifier(column.name) for column in keyed.key)
        found = reader.texts(
            f"SELECT {', '.join(keyed.key_expressions)} FROM {_name(table.key)}{where} "
            f"ORDER BY {order} LIMIT 1 OFFSET {rows - 1}"
        )
        if not found:
            break
        yield Chunk(table, after, found[0])
        after = found[0]
    yield Chunk(table, after, None)


def copy_chunk(reader: Session, writer: Session, chunk: Chunk, packet: int) -> int:
    """Copy a chunk in one transaction, again after a deadlock or a lock timeout; returns the number of rows."""
    for attempt in range(1, _TRIES + 1):
        writer.execute("BEGIN")
        try:
            rows = insert_rows(reader, writer, chunk, packet, chunk.table.key)
            writer.execute("COMMIT")
        except pymysql.err.MySQLError as exc:
            if exc.args[0] not in (1205, 1213) or judge(exc) is not Verdict.RETRY or attempt == _TRIES:
                raise
            writer.execute("ROLLBACK")
        else:
            return rows
    raise AssertionError("unreachable")


def insert_rows(reader: Session, writer: Session, chunk: Chunk, packet: int, into: TableKey) -> int:
    """Insert a chunk's rows into the target's table ``into``, inside the writer's transaction; their number."""
    table = chunk.table
    columns = [column for column in table.columns if column.generated not in _COMPUTED]
    names, literals = zip(*(selected(table.key, column) for column in columns), strict=True)
    head = f"INSERT INTO {_name(into)} ({', '.join(identifier(one.name) for one in columns)}) VALUES ".encode()
    # a MariaDB source has no JSON values of MySQL's kind to check
    asked = faithful(columns) if reader.flavor is Flavor.MYSQL else "1"
    query = f"SELECT {asked}, {', '.join(names)} FROM {_name(table.key)}{_where(reader, chunk)}"
    total, size = 0, len(head)
    pending: list[bytes] = []
    # closed at once if the target refuses, so that the next attempt can read again
    with contextlib.closing(reader.stream(query)) as rows:
        for is_faithful, *row in rows:
            _require_faithful(table, is_faithful)
            values = (b"NULL" if value is None else spell(value) for spell, value in zip(literals, row, strict=True))
            text = b"(" + b",".join(values) + b")"
            if pending and size + len(text) + 1 > min(_STATEMENT_BYTES, packet - 1):
                total += _send(writer, table, columns, head, pending)
                pending, size = [], len(head)
            pending.append(text)
            size += len(text) + 1
            if size >= packet:
                raise ApplyError(
                    f"{table.key}: a row needs a statement of {size:,} bytes, the target has max_allowed_packet "
                    f"= {packet:,}: SET GLOBAL max_allowed_packet above it there (1073741824 at most), then run "
                    "again"
                )
    return total + (_send(writer, table, columns, head, pending) if pending else 0)


def _require_faithful(table: Table, answer: bytes | None) -> None:
    if answer != b"1":
        raise ApplyError(
            f"{table.key}: a JSON document contains SQL values (dates, times, bytes, long decimals) that its "
            "text does not preserve, so no statement can store it unchanged; leave its database out with "
            "--databases, and load a physical backup of the server instead (MySQL's CLONE)"
        )


def _send(writer: Session, table: Table, columns: Sequence[Column], head: bytes, rows: Sequence[bytes]) -> int:
    stored = writer.execute(head + b",".join(rows))
    if stored != len(rows):
        raise ApplyError(f"{table.key}: {plural(len(rows), 'row')} sent, but the target has stored {stored:,}")
    if writer.warnings:
        # an ENUM's error value is stored unchanged, with a warning
        enums = tuple(f"'{column.name}'" for column in columns if column.data_type == "enum")
        shown = writer.rows("SHOW WARNINGS")
        for _level, code, message in shown:
            text = message.decode(errors="replace")
            if int(code) != _TRUNCATED or not any(name in text for name in enums):
                raise ApplyError(
                    f"{table.key}: the target would not store the source's value unchanged: {text} "
                    f"({int(code)}); the source's row is damaged, or the target's definitions and settings "
                    "differ from the source's"
                )
    return stored


def _where(reader: Session, chunk: Chunk) -> str:
    keyed = _compared_by_key(chunk.table, reader)
    parts = [] if chunk.after is None else [behind(keyed, chunk.after, reader.flavor)]
    parts += [] if chunk.end is None else [behind(keyed, chunk.end, reader.flavor, up_to=True)]
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _compared_by_key(table: Table, reader: Session) -> Compared:
    found = compared(table, table, (reader.flavor, reader.flavor), by_key=True)
    # FLOAT and DOUBLE: ranges between texts of such values are not proven exact on either family; one range is
    inexact = any(sql_type(column.data_type).values is FLOAT for column in found.key)
    return replace(found, key=()) if inexact else found


def _name(table: TableKey) -> str:
    return f"{identifier(table.database)}.{identifier(table.table)}"
