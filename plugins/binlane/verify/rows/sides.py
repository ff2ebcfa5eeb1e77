"""Rows of the two servers: counted and hashed by the servers, read only if the hashes differ."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import field
from hashlib import blake2b
from typing import Any, Final, TypeAlias, TypeVar

from sqlalchemy import Engine, PoolProxiedConnection
from sqlalchemy.exc import DBAPIError

from binlane.binlog.types.json_equality import spelled_by_value
from binlane.binlog.types.literals import identifier
from binlane.binlog.types.sql_types import sql_type
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.servers.streamed_rows import streamed_rows
from binlane.sessions.pins import SessionKind
from binlane.source.server import translated
from binlane.verify.rows.column_text import ComparedTable, Key, Row, behind, in_range, one_of
from binlane.verify.rows.keys import in_order

T = TypeVar("T")

BATCH: Final = 900
"""Keys in a statement; MariaDB makes a derived table of 1,000 (``in_predicate_conversion_threshold``)."""
_EVERY: Final = "LIMIT 18446744073709551615"
"""Of a query whose rows the server makes before it takes their aggregate."""
Conditions: TypeAlias = Mapping[Flavor, str]
"""A condition as each of the two servers reads it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that differs between the servers; ``None``: the row is absent there."""

    table: TableKey
    """The target's name."""
    key: Key
    """Empty for a table without a usable primary key, and for the table itself."""
    source: Row | None
    target: Row | None
    columns: tuple[str, ...] = ()
    """Names of the differing columns, if both servers have the row."""
    note: str = ""
    """The difference, if it is not of a row."""

    is_of_history: bool = False
    """Whether it is the difference of rows that an UPDATE or a DELETE of a system-versioned table has left behind."""

    @property
    def is_row(self) -> bool:
        """Whether it is the difference of a row, and not of a table."""
        return self.source is not None or self.target is not None


@dataclass(frozen=True, slots=True)
class Side:
    """One server."""

    execute: Callable[[str], Sequence[Sequence[Any]]]
    """Runs a statement and returns all rows."""
    stream: Callable[[str], Iterator[Sequence[Any]]]
    """Runs a query and gives its rows one by one, to be read to the end: a whole table fits no memory."""
    texts: Callable[[str], list[tuple[str | None, ...]]]
    """``execute`` with every value as text, whatever bytes a definition contains."""
    is_source: bool

    def name(self, table: ComparedTable) -> str:
        """The table's quoted name there."""
        key = table.source if self.is_source else table.target
        return f"{identifier(key.database)}.{identifier(key.table)}"

    def flavor(self, table: ComparedTable) -> Flavor:
        """The server's family."""
        return table.flavors[0 if self.is_source else 1]


@contextlib.contextmanager
def source_side(engine: Engine, name: str) -> Iterator[Side]:
    """A session on the source, whose errors name it. Raises SourceError."""
    with translated(name):
        raw = _raw(engine)
    # statements of several threads: one after the other
    lock = threading.Lock()
    try:

        def execute(sql: str) -> Sequence[Sequence[Any]]:
            with translated(name), lock:
                return _execute(raw, sql)

        def texts(sql: str) -> list[tuple[str | None, ...]]:
            with translated(name), lock:
                return _texts(raw, sql)

        def stream(sql: str) -> Iterator[Sequence[Any]]:
            with translated(name), lock:
                yield from streamed_rows(raw, sql)

        yield Side(execute, stream, texts, is_source=True)
    finally:
        raw.close()


@contextlib.contextmanager
def target_side(engine: Engine) -> Iterator[Side]:
    """A session on the target; raises the driver's errors unchanged."""
    raw, lock = _raw(engine), threading.Lock()
    try:

        def execute(sql: str) -> Sequence[Sequence[Any]]:
            with lock:
                return _execute(raw, sql)

        def texts(sql: str) -> list[tuple[str | None, ...]]:
            with lock:
                return _texts(raw, sql)

        def stream(sql: str) -> Iterator[Sequence[Any]]:
            with lock:
                yield from streamed_rows(raw, sql)

        yield Side(execute, stream, texts, is_source=False)
    finally:
        raw.close()


def _raw(engine: Engine) -> PoolProxiedConnection:
    try:
        raw = engine.raw_connection()
    except DBAPIError as exc:
        raise exc.orig or exc from exc
    # it ends with its settings, of which the transactions of others know nothing
    raw.detach()
    driver: Any = raw.dbapi_connection
    driver.use_as(SessionKind.COMPARE)
    driver.autocommit(True)
    return raw


def _execute(raw: PoolProxiedConnection, sql: str) -> Sequence[Sequence[Any]]:
    with contextlib.closing(raw.cursor()) as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def _texts(raw: PoolProxiedConnection, sql: str) -> list[tuple[str | None, ...]]:
    """Rows as text. The driver's decoding would fail for a default or an ENUM member in another character set."""
    connection: Any = raw.dbapi_connection
    plain = connection.use_unicode, connection.decoders
    connection.use_unicode, connection.decoders = False, {}
    try:
        rows = _execute(raw, sql)
    finally:
        connection.use_unicode, connection.decoders = plain
    return [tuple(None if one is None else one.decode("utf-8", "backslashreplace") for one in row) for row in rows]


@dataclass(frozen=True, slots=True)
class PendingHashes:
    """Rows that both servers are hashing."""

    pair: Pair
    table: ComparedTable
    conditions: Conditions
    hashes: tuple[Future[tuple[int, ...]], Future[tuple[int, ...]]]

    def is_equal(self) -> bool:
        """Wait for both. Whether no row differs."""
        wait(self.hashes)
        source, target = (each.result() for each in self.hashes)
        return source == target

    def answer(self) -> tuple[int, list[Difference]]:
        """Wait for both. The number of the target's rows, and the rows that differ."""
        found = [] if self.is_equal() else self.pair.differences(self.table, self.conditions)
        return self.hashes[1].result()[0], found


@dataclass(frozen=True, slots=True)
class Pair:
    """Both servers."""

    source: Side
    target: Side
    _threads: tuple[ThreadPoolExecutor, ThreadPoolExecutor] = field(
        default_factory=lambda: (ThreadPoolExecutor(1, "binlane-source"), ThreadPoolExecutor(1, "binlane-target")),
        repr=False,
    )

    def end_of_chunk(self, table: ComparedTable, after: Key | None, rows: int) -> Key | None:
        """The key of the target's last row of a chunk of ``rows``; None for the last chunk, which has no end."""
        flavor = self.target.flavor(table)
        where = "" if after is None else f" WHERE {behind(table, after, flavor)}"
        order = ", ".join(identifier(column.name) for column in table.key)
        found = self.target.execute(
            f"SELECT {', '.join(table.key_expressions)} FROM {self.target.name(table)}{where} "
            f"ORDER BY {order} LIMIT 1 OFFSET {rows - 1}"
        )
        return _key(found[0]) if found else None

    def in_range(self, table: ComparedTable, after: Key | None, end: Key | None) -> tuple[int, list[Difference]]:
        """The number of the target's rows in a chunk, and the rows that differ."""
        where = {flavor: in_range(table, after, end, flavor) or "1 = 1" for flavor in set(table.flavors)}
        return self.ask(table, where).answer()

    def of_keys(self, table: ComparedTable, keys: Sequence[Key]) -> tuple[int, list[Difference]]:
        """``in_range`` for rows with one of the keys: at most ``BATCH``, ``in_order``."""
        return self.ask(table, conditions_of(table, keys)).answer()

    def ask(self, table: ComparedTable, conditions: Conditions) -> PendingHashes:
        """Let both servers begin with rows, after what each was asked before."""
        source, target = (
            thread.submit(_checksum, each, table, conditions[each.flavor(table)])
            for thread, each in zip(self._threads, self.sides, strict=True)
        )
        return PendingHashes(self, table, conditions, (source, target))

    def differences(self, table: ComparedTable, conditions: Conditions) -> list[Difference]:
        """The rows that differ, read from both servers."""
        return _differences(table, *self._both(lambda each: _by_key(each, table, conditions[each.flavor(table)])))

    def by_their_keys(self, table: ComparedTable, found: Sequence[Difference]) -> list[Difference]:
        """The differences of a range, of which rows that it shows on one server alone are read by their keys: servers
        whose orders of the keys differ have a row in another range. The names of types and collations do not show
        each such order (a UUID of an older MariaDB), a row that both servers have equal is no difference."""
        alone = in_order(table, [one.key for one in found if one.source is None or one.target is None])
        differing = [one for one in found if one.source is not None and one.target is not None]
        for at in range(0, len(alone), BATCH):
            differing += self.differences(table, conditions_of(table, alone[at : at + BATCH]))
        return differing

    def whole(self, table: ComparedTable) -> tuple[int, list[Difference]]:
        """Compare a table without a usable key: by sums instead of XOR, so that equal rows do not cancel each other.

        The rows are read where the sums differ, as they do for equal texts of JSON of two families. What both servers
        have is forgotten as soon as both have sent it, and the rows that differ are read once more.
        """
        hashes = self._both(lambda each: _checksum(each, table, "1 = 1", how="SUM"))
        if hashes[0] == hashes[1]:
            return hashes[1][0], []
        unmatched, lock = Counter[bytes](), threading.Lock()
        self._both(lambda each: _match(each, table, unmatched, lock))
        missing, extra = self._both(lambda each: _those_of(each, table, unmatched)) if unmatched else ([], [])
        return hashes[1][0], [
            *(Difference(table.target, (), row, None) for row in missing),
            *(Difference(table.target, (), None, row) for row in extra),
        ]

    def history(self, table: ComparedTable, where: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The number of a versioned table's past rows that fulfil a condition and the sum of their hashes, on both
        servers."""
        return self._both(lambda each: _checksum(each, table, where, how="SUM", of="FOR SYSTEM_TIME ALL"))

    def target_rows(self, table: ComparedTable, keys: Sequence[Key]) -> dict[Key, Row]:
        """The target's rows with one of the keys, which are ``in_order``."""
        return rows_of(self.target, table, keys)

    def _both(self, ask: Callable[[Side], T]) -> tuple[T, T]:
        """The answers of source and target, which work at the same time."""
        source = self._threads[0].submit(ask, self.source)
        try:
            target = ask(self.target)
        finally:
            wait([source])
        return source.result(), target

    @property
    def sides(self) -> tuple[Side, Side]:
        """Source and target."""
        return self.source, self.target


def rows_of(each: Side, table: ComparedTable, keys: Sequence[Key]) -> dict[Key, Row]:
    """A server's rows with one of the keys, which are ``in_order``."""
    found: dict[Key, Row] = {}
    for at in range(0, len(keys), BATCH):
        found |= _by_key(each, table, one_of(table, keys[at : at + BATCH], each.flavor(table), ranges=True))
    return found


def conditions_of(table: ComparedTable, keys: Sequence[Key]) -> Conditions:
    """The rows with one of the keys, which are ``in_order``."""
    return {flavor: one_of(table, keys, flavor, ranges=True) for flavor in set(table.flavors)}


def _checksum(each: Side, table: ComparedTable, where: str, how: str = "BIT_XOR", of: str = "") -> tuple[int, ...]:
    """Number of rows, and an aggregate of the first 64 bits of every row's SHA-256. A server that is asked for a second
    aggregate computes every hash twice. ``of``: the versions of the rows, if not the present ones."""
    values = ", ".join(f"IFNULL({one}, 'NULL')" for one in table.expressions)
    number = f"CAST(CONV(LEFT(SHA2(CONCAT_WS(',', {values}), 256), 16), 16, 10) AS UNSIGNED)"
    rows, hashed = f"FROM {each.name(table)} {of} WHERE {where}", number
    if each.flavor(table) is Flavor.MYSQL and any(
        sql_type(one.data_type).logged == "geometry" for one in table.columns
    ):
        # beside an aggregate MySQL copies columns, and refuses to copy an empty geometry (1416)
        rows, hashed = f"FROM (SELECT {number} AS hashed {rows} {_EVERY}) AS one", "hashed"
    [found] = each.execute(f"SELECT COUNT(*), COALESCE({how}({hashed}), 0) {rows}")
    return tuple(int(value) for value in found)


def _rows(each: Side, table: ComparedTable) -> Iterator[tuple[bytes, Row]]:
    """Every row, with a digest of it."""
    for values in each.stream(f"SELECT {', '.join(table.row_expressions)} FROM {each.name(table)}"):
        row = _row(table, values)
        yield blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=16).digest(), row


def _match(each: Side, table: ComparedTable, unmatched: Counter[bytes], lock: threading.Lock) -> None:
    """Count the rows of a server against those of the other one, which is read at the same time: how many more the
    source has, by their digests."""
    step = 1 if each.is_source else -1
    for digest, _ in _rows(each, table):
        with lock:
            unmatched[digest] += step
            if not unmatched[digest]:
                del unmatched[digest]


def _those_of(each: Side, table: ComparedTable, unmatched: Mapping[bytes, int]) -> list[Row]:
    """The rows that this server has and the other one has not."""
    step, found = 1 if each.is_source else -1, list[Row]()
    left = {digest: step * count for digest, count in unmatched.items() if step * count > 0}
    for digest, row in _rows(each, table):
        if left.get(digest):
            left[digest] -= 1
            found.append(row)
    return found


def _by_key(each: Side, table: ComparedTable, where: str) -> dict[Key, Row]:
    rows = each.execute(
        f"SELECT {', '.join((*table.key_expressions, *table.row_expressions))} FROM {each.name(table)} WHERE {where}"
    )
    return dict(row_of(table, values) for values in rows)


def row_of(table: ComparedTable, values: Sequence[Any]) -> tuple[Key, Row]:
    """Key and row of the values of ``key_expressions`` and ``row_expressions``."""
    width = len(table.key)
    return _key(values[:width]), _row(table, values[width:])


def _differences(table: ComparedTable, source: dict[Key, Row], target: dict[Key, Row]) -> list[Difference]:
    found = []
    for key in sorted(source.keys() | target.keys()):
        ours, theirs = source.get(key), target.get(key)
        if ours == theirs:
            continue
        names: tuple[str, ...] = ()
        if ours is not None and theirs is not None:
            names = tuple(c.name for c, a, b in zip(table.columns, ours, theirs, strict=True) if a != b)
        found.append(Difference(table.target, key, ours, theirs, names))
    return found


def _key(values: Sequence[Any]) -> Key:
    return tuple(str(_text(value)) for value in values)


def _row(table: ComparedTable, values: Sequence[Any]) -> Row:
    texts, by_value = [_text(value) for value in values], table.by_value
    return tuple(
        spelled_by_value(text) if number in by_value and text is not None else text for number, text in enumerate(texts)
    )


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else None if value is None else str(value)
