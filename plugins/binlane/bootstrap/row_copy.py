"""Copies rows from the snapshot to the target: ranges of a table's primary key, a transaction each, in parallel.

A table's *frontier* is the key up to which every range is committed. The state on the target has it, written by the
transactions of later ranges, so it may lag and never leads: rows up to it are complete, rows after it may be.

A range may lack rows that the table has: of a partitioned table the servers read the partitions alone in which the rows
of a range belong, and ALTER TABLE ... EXCHANGE PARTITION ... WITHOUT VALIDATION puts rows elsewhere. So two sessions
that copy nothing count the rows of each table: one in the snapshot, one on the target. Where the numbers differ, the
table is copied once more, by one scan without any condition.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import field, replace
from functools import partial
from typing import Final, Protocol

import pymysql

from binlane.apply.session.held_table import hold_table
from binlane.apply.session.retry_verdicts import NO_GEOMETRY, Verdict, error_code, judge
from binlane.binlog.types.literals import identifier
from binlane.bootstrap.computed_columns import RowCopy, has_stored, not_computed, written_exactly
from binlane.bootstrap.row_stream import RowStream, UnfaithfulRowError
from binlane.bootstrap.sessions import Session
from binlane.bootstrap.value_warnings import require_unchanged, value_warnings
from binlane.bootstrap.values import FAITHFUL, faithfulness, selected
from binlane.errors import ApplyError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey, plural
from binlane.schema.model import Column, Generated, Table
from binlane.verify.rows.column_text import ComparedTable, Key, behind, compared, in_range

STATEMENT_BYTES: Final = 1 << 20
_TRIES: Final = 10
_DUPLICATE: Final = 1062
_COMPUTED: Final = frozenset({Generated.VIRTUAL, Generated.STORED})
_END: Final = None
_WHOLE_STATEMENTS: Final = 16
"""Statements in a transaction of a table that cannot be divided into ranges."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a table behind ``after``, up to ``end``; None: from the first row, to the last."""

    table: Table
    after: Key | None
    end: Key | None
    number: int = 0
    """Among the chunks of its table, in the order of the key."""
    is_copied: bool = False
    """The target has its rows already."""


@dataclass(frozen=True, slots=True)
class RemainingTable:
    """A table to copy; the target has its rows up to ``after``, ``rows`` of them."""

    table: Table
    after: Key | None = None
    rows: int = 0
    is_complete: bool = False
    """The target has all rows; only their number is checked."""


class Diary(Protocol):
    """Where a copy writes how far it has come."""

    def written(self, writer: Session, table: TableKey, rows: int, frontier: tuple[Key, int] | None) -> None:
        """Called in the writer's open transaction, before COMMIT. ``frontier``: its key, and the number of rows up to
        it."""

    def committed(self, table: TableKey, rows: int) -> None:
        """Called after COMMIT."""

    def emptied(self, table: TableKey) -> None:
        """Called before the table is emptied, to be copied once more."""

    def finished(self, writer: Session, table: TableKey) -> None:
        """All rows of the table are committed. ``writer`` has no open transaction."""


@dataclass(slots=True)
class _Frontier:
    key: Key | None
    rows: int
    number: int = 0
    """Of the chunk behind the frontier."""
    later: dict[int, tuple[Key | None, int]] = field(default_factory=dict)
    """Committed chunks behind it: end and rows, by number."""
    open: int = 0
    """Known chunks that are not committed."""
    is_whole: bool = False
    """Whether the last chunk is known."""

    def commit(self, chunk: Chunk, rows: int) -> None:
        self.later[chunk.number] = (chunk.end, rows)
        self.open -= 1
        while (found := self.later.pop(self.number, None)) is not None:
            self.key, self.rows, self.number = found[0], self.rows + found[1], self.number + 1

    @property
    def found(self) -> tuple[Key, int] | None:
        return None if self.key is None else (self.key, self.rows)


@dataclass(slots=True)
class Copier:
    """Copies tables. ``readers`` share a snapshot; the first one determines the chunks."""

    readers: Sequence[Session]
    writers: Sequence[Session]
    counters: tuple[Session, Session]
    """They count the rows of each table: one of the same snapshot, and one on the target."""
    chunk_rows: int
    diary: Diary
    pace: Callable[[int, int], None] = lambda rows, size: None
    """Called with the rows and bytes of each statement, before it is sent; may wait."""
    failed: threading.Event = field(default_factory=threading.Event)
    """Set when a thread has failed: the others end as soon as they can."""
    _chunks: queue.Queue[Chunk | None] = field(default_factory=lambda: queue.Queue(maxsize=64))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _counting: threading.Lock = field(default_factory=threading.Lock)
    _frontiers: dict[TableKey, _Frontier] = field(default_factory=dict)
    _error: BaseException | None = None
    """The first."""

    def copy(self, tables: Sequence[RemainingTable]) -> None:
        """Copy all rows of ``tables``. Raises the first error, after all threads have stopped."""
        packet = max_packet(self.writers[0])
        pairs = list(zip(self.readers[1:], self.writers, strict=True))
        with ThreadPoolExecutor(len(pairs) + 1) as pool:
            running = [pool.submit(self._guarded, self._plan, tables, len(pairs))]
            running += [pool.submit(self._guarded, self._work, *pair, packet) for pair in pairs]
            try:
                wait(running)
            except BaseException:
                self.failed.set()
                raise
        if self._error is not None:
            raise self._error

    def _guarded(self, work: Callable[..., None], *arguments: object) -> None:
        try:
            work(*arguments)
        except BaseException as exc:
            with self._lock:
                self._error = self._error or exc
            self.failed.set()

    def _plan(self, tables: Sequence[RemainingTable], workers: int) -> None:
        for left in tables:
            key = left.table.key
            frontier = self._frontiers[key] = _Frontier(left.after, left.rows)
            copied = iter((Chunk(left.table, None, None, is_copied=True),))
            chunks = chunks_of(self.readers[0], left.table, self.chunk_rows, left.after)
            for chunk in copied if left.is_complete else chunks:
                with self._lock:
                    frontier.open += 1
                    frontier.is_whole = chunk.end is None
                if not self._put(chunk):
                    return
        for _ in range(workers):
            self._put(_END)

    def _put(self, chunk: Chunk | None) -> bool:
        while not self.failed.is_set():
            try:
                self._chunks.put(chunk, timeout=0.5)
            except queue.Full:
                continue
            return True
        return False

    def _work(self, reader: Session, writer: Session, packet: int) -> None:
        while not self.failed.is_set():
            try:
                chunk = self._chunks.get(timeout=0.5)
            except queue.Empty:
                continue
            if chunk is _END:
                return
            key = chunk.table.key
            rows = 0 if chunk.is_copied else copy_chunk(reader, writer, chunk, packet, self._written, self.pace)
            with self._lock:
                frontier = self._frontiers[key]
                frontier.commit(chunk, rows)
                is_finished = frontier.is_whole and not frontier.open
            self.diary.committed(key, rows)
            if is_finished:
                self._complete(reader, writer, chunk.table, packet)
                self.diary.finished(writer, key)

    def _complete(self, reader: Session, writer: Session, table: Table, packet: int) -> None:
        """Count the rows of a table whose chunks are committed; copy it once more, without ranges, if any lacks."""
        ours, theirs = self._counted(table.key)
        if ours == theirs:
            return
        self.diary.emptied(table.key)
        writer.execute(f"TRUNCATE TABLE {name_of(table.key)}")
        with self._lock:
            self._frontiers[table.key] = _Frontier(None, 0)
        try:
            rows = copy_whole(reader, writer, table, packet, self._written, self.pace)
        except pymysql.err.IntegrityError as exc:
            if exc.args[0] != _DUPLICATE:
                raise
            raise ApplyError(
                f"{table.key}: the source has two rows of one unique key, one of them in a partition where it does not "
                f"belong ({exc.args[1]}); ALTER TABLE {name_of(table.key)} REPAIR PARTITION ALL on the source "
                "puts rows where they belong; remove one of the two, then run the copy again"
            ) from exc
        self.diary.committed(table.key, rows)
        ours, theirs = self._counted(table.key)
        if ours != theirs:
            raise ApplyError(
                f"{table.key}: the source has {plural(ours, 'row')} in the snapshot, counted by a session that has "
                f"copied nothing, and the target has {theirs:,} behind the copy: a limit or a setting of the source's "
                "sessions hides rows, or another program writes to the target; find it, then run the copy again"
            )

    def _counted(self, table: TableKey) -> tuple[int, int]:
        """The numbers of the source's rows in the snapshot and of the target's."""
        with self._counting:
            source, target = (count_rows(each, table) for each in self.counters)
        return source, target

    def _written(self, writer: Session, table: TableKey, rows: int) -> None:
        with self._lock:
            frontier = self._frontiers[table].found
        self.diary.written(writer, table, rows, frontier)


def chunks_of(reader: Session, table: Table, rows: int, after: Key | None = None) -> Iterator[Chunk]:
    """The table's chunks behind ``after``; a single one without a key whose order is proven (``has_ranges``)."""
    keyed = by_key(table, reader)
    number = 0
    while keyed.key:
        where = "" if after is None else f" WHERE {behind(keyed, after, reader.flavor)}"
        order = ", ".join(identifier(column.name) for column in keyed.key)
        found = reader.texts(
            f"SELECT {', '.join(keyed.key_expressions)} FROM {name_of(table.key)}{where} "
            f"ORDER BY {order} LIMIT 1 OFFSET {rows - 1}"
        )
        if not found:
            break
        yield Chunk(table, after, found[0], number)
        after, number = found[0], number + 1
    yield Chunk(table, after, None, number)


def copy_chunk(
    reader: Session,
    writer: Session,
    chunk: Chunk,
    packet: int,
    written: Callable[[Session, TableKey, int], None] = lambda writer, table, rows: None,
    pace: Callable[[int, int], None] = lambda rows, size: None,
) -> int:
    """Copy a chunk in one transaction, again after a deadlock or a lock timeout; returns the number of rows.

    ``written`` is called with the number of rows before COMMIT, ``pace`` before each statement. A table that has one
    chunk only is copied in several transactions.
    """
    key, keyed = chunk.table.key, by_key(chunk.table, reader)
    if keyed.key:
        where = _where(reader, chunk)

        def insert() -> int:
            rows = rows_of(RowCopy(reader, writer, chunk.table, where, where, keyed.key), packet, pace=pace)
            written(writer, key, rows)
            return rows

        return in_transaction(writer, key, insert, reader)
    return copy_whole(reader, writer, chunk.table, packet, written, pace)


def copy_whole(
    reader: Session,
    writer: Session,
    table: Table,
    packet: int,
    written: Callable[[Session, TableKey, int], None],
    pace: Callable[[int, int], None],
) -> int:
    """Copy a table by one scan of it, in several transactions; the number of rows. See ``copy_chunk``."""
    key, total, warnings = table.key, 0, list[str]()
    doubts = warnings if has_stored(table) else None
    with contextlib.closing(inserted(reader, writer, table, "", packet, pace=pace, doubts=doubts)) as statements:
        while True:
            writer.execute("BEGIN")
            hold_table(writer.execute, key)
            sent = list(itertools.islice(statements, _WHOLE_STATEMENTS))
            written(writer, key, sum(sent))
            writer.execute("COMMIT")
            total += sum(sent)
            if len(sent) < _WHOLE_STATEMENTS:
                break
    rows = RowCopy(reader, writer, table, "", "")
    if doubts is not None and (differing := rows.differing(whole=bool(warnings))):
        raise not_computed(table, differing, warnings)
    return total


def rows_of(
    rows: RowCopy, packet: int, *, verb: str = "INSERT", pace: Callable[[int, int], None] = lambda rows, size: None
) -> int:
    """Write rows inside the writer's transaction, as ``inserted`` does; by how many the table has become longer."""

    def write(doubts: list[str] | None) -> int:
        statements = inserted(
            rows.reader, rows.writer, rows.table, rows.ours, packet, verb=verb, pace=pace, doubts=doubts
        )
        return sum(statements)

    return written_exactly(rows, write) if has_stored(rows.table) else write(None)


def insert_rows(reader: Session, writer: Session, chunk: Chunk, packet: int, into: TableKey) -> int:
    """Insert a chunk's rows into the target's table ``into``, inside the writer's transaction; their number."""
    return sum(inserted(reader, writer, chunk.table, _where(reader, chunk), packet, into=into))


def _where(reader: Session, chunk: Chunk) -> str:
    return in_range(by_key(chunk.table, reader), chunk.after, chunk.end, reader.flavor)


def in_transaction(writer: Session, table: TableKey, work: Callable[[], int], reader: Session | None = None) -> int:
    """Do the work, which writes into the table, in one transaction that holds it, again after a deadlock or a lock
    timeout; its result. ``reader``: what it reads with; if that was closed, since much was left to read, the error is
    raised. Raises TableMismatchError for a view."""
    for attempt in range(1, _TRIES + 1):
        writer.execute("BEGIN")
        try:
            hold_table(writer.execute, table)
            found = work()
            writer.execute("COMMIT")
        except pymysql.err.MySQLError as exc:
            is_last = attempt == _TRIES or not (reader is None or reader.is_open)
            if exc.args[0] not in (1205, 1213) or judge(exc) is not Verdict.RETRY or is_last:
                raise
            writer.execute("ROLLBACK")
        else:
            return found
    raise AssertionError("unreachable")


def inserted(
    reader: Session,
    writer: Session,
    table: Table,
    where: str,
    packet: int,
    *,
    into: TableKey | None = None,
    verb: str = "INSERT",
    pace: Callable[[int, int], None] = lambda rows, size: None,
    doubts: list[str] | None = None,
) -> Generator[int, None, None]:
    """Write the source's rows that fulfil ``where`` (empty: all); by how many rows each statement has made the table
    longer. ``into``: the target's table, if it has another name. The verb REPLACE removes rows with the same unique
    keys.

    Raises ApplyError for rows that the target would not store unchanged. With ``doubts`` its warnings are put there
    instead, for a caller that compares all columns then: expressions cause warnings, too.
    """
    columns = [column for column in table.columns if column.generated not in _COMPUTED]
    names, literals = zip(*(selected(table.key, column) for column in columns), strict=True)
    # a MariaDB source has no JSON values of MySQL's kind to check
    check = faithfulness(columns) if reader.flavor is Flavor.MYSQL else FAITHFUL.decode()
    is_checked = check != FAITHFUL.decode()
    asked = (check, *names) if is_checked else names
    query = f"SELECT {', '.join(asked)} FROM {name_of(table.key)}{f' WHERE {where}' if where else ''}"
    stored = ", ".join(identifier(column.name) for column in columns)
    head = f"{verb} INTO {name_of(into or table.key)} ({stored}) VALUES ".encode()
    stream = RowStream(reader, literals, checked=is_checked)
    limit = min(STATEMENT_BYTES, packet - 1)
    try:
        # closed at once if the target refuses, so that the next attempt can read again
        with contextlib.closing(stream.statements(query, head, limit)) as statements:
            for statement, rows in statements:
                if len(statement) >= packet:
                    raise ApplyError(
                        f"{table.key}: a row needs a statement of {len(statement):,} bytes, the target has "
                        f"max_allowed_packet = {packet:,}: SET GLOBAL max_allowed_packet above it there (1073741824 at "
                        "most), then run again"
                    )
                pace(rows, len(statement))
                yield _send(writer, table, columns, statement, rows, verb, doubts)
    except UnfaithfulRowError:
        raise ApplyError(
            f"{table.key}: a JSON document contains SQL values (dates, times, bytes; before MySQL 8.0.14 long "
            "decimals, too) that its text does not preserve, so no statement can store it unchanged; leave its "
            "database out with --databases, and load a physical backup of the server instead (MySQL's CLONE)"
        ) from None


def _send(
    writer: Session,
    table: Table,
    columns: Sequence[Column],
    statement: memoryview,
    rows: int,
    verb: str,
    doubts: list[str] | None,
) -> int:
    try:
        stored = writer.execute(statement)
    except pymysql.err.MySQLError as exc:
        if error_code(exc) != NO_GEOMETRY:
            raise
        raise ApplyError(
            f"{table.key}: a row has a geometry that is no geometry, such as an empty one (LENGTH() = 0), which a "
            "server stores where a row has no value for it and no statement can write: give it a value on the source, "
            "or leave its database out with --databases, and load it from a physical backup"
        ) from exc
    if stored != rows and not (verb == "REPLACE" and stored > rows):
        raise ApplyError(f"{table.key}: {plural(rows, 'row')} sent, but the target has stored {stored:,}")
    enums = partial(_enums, columns)
    if doubts is None:
        require_unchanged(writer, table.key, enums)
    else:
        doubts += [text for _, text in value_warnings(writer, enums)]
    return 2 * rows - stored  # a row that REPLACE has removed counts as a stored one


def _enums(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns if column.data_type == "enum"]


def by_key(table: Table, reader: Session) -> ComparedTable:
    """The table with the key by which it is divided; without one if it cannot be."""
    found = compared(table, table, (reader.flavor, reader.flavor), by_key=True)
    return found if found.has_ranges else replace(found, key=())


def count_rows(session: Session, table: TableKey) -> int:
    """The number of a table's rows by the server's own scan, which needs no condition."""
    return int(session.texts(f"SELECT COUNT(*) FROM {name_of(table)}")[0][0])


def max_packet(writer: Session) -> int:
    """The largest statement that the server takes, in bytes."""
    return int(writer.texts("SELECT @@max_allowed_packet")[0][0])


def name_of(table: TableKey) -> str:
    """The table's name in backticks."""
    return f"{identifier(table.database)}.{identifier(table.table)}"
