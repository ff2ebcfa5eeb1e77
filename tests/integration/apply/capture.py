"""Blocks made of what a private source really wrote into its binlog."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from binlane.model import Barrier, BlockHeader, Epoch, Flavor, Item, ItemKind, LogPosition, RowCounts, SessionContext
from binlane.plan.window_plan import Block, LaneFile, WindowPlan
from binlane.sql.plain_statement import plain
from lab.servers import PrivateServer

HEADER = struct.Struct("<IBIIIH")
ROWS_TYPES = frozenset({19, 23, 24, 25, 30, 31, 32})
_VERBS = {"insert": 0, "replace": 0, "update": 1, "delete": 2}


@dataclass(frozen=True, slots=True)
class Captured:
    """One transaction of the source."""

    items: tuple[Item, ...]
    position: LogPosition
    gtid: str = ""
    time: float = 0.0


@dataclass(slots=True)
class Recorder:
    """Runs statements on a source and gives what it logged."""

    source: PrivateServer
    database: str
    format: bytes = b""
    setup: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        file, _ = self._end()
        data = (self.source.datadir / file).read_bytes()
        self.format = without_algorithm(next(frames(data, 4)))

    def run(self, *statements: str, context: SessionContext | None = None) -> Captured:
        """One transaction of row changes (or statements, under ``SET binlog_format=STATEMENT`` in ``setup``)."""
        file, start = self._end()
        connection = self.source.connect(autocommit=True, database=self.database)
        changes = [0, 0, 0]
        with connection, connection.cursor() as cursor:
            for statement in self.setup:
                cursor.execute(statement)
            cursor.execute("BEGIN")
            for statement in statements:
                count = cursor.execute(statement)
                verb = _VERBS.get(statement.split()[0].lower())
                if verb is not None:
                    changes[verb] += count
            cursor.execute("COMMIT")
        events = self._events(file, start)
        rows = [strip(event) for event in events if event[4] in ROWS_TYPES]
        if rows:
            return Captured((Item(ItemKind.ROWS, b"".join(rows), RowCounts(*changes)),), LogPosition(file, start))
        return Captured(tuple(self._statements(events, context)), LogPosition(file, start))

    def ddl(self, statement: str, context: SessionContext | None = None) -> Captured:
        """A statement that commits by itself: run on the source and taken as a plan has it, without its comments."""
        file, start = self._end()
        with self.source.connect(autocommit=True, database=self.database) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
        seen = SessionContext(database=self.database, sql_mode=0) if context is None else context
        item = ddl_item(plain(statement.encode(), seen, self.source.flavor).decode(), self.database, seen)
        return Captured((item,), LogPosition(file, start))

    def _statements(self, events: Iterable[bytes], context: SessionContext | None) -> Iterator[Item]:
        insert_id = None
        for event in events:
            if event[4] == 5 and event[19] == 2:
                insert_id = int.from_bytes(event[20:28], "little")
            if event[4] == 2:
                text = query_text(event)
                if text not in (b"BEGIN", b"COMMIT"):
                    seen = SessionContext(
                        database=self.database, timestamp=float(HEADER.unpack_from(event)[0]), insert_id=insert_id
                    )
                    yield Item(ItemKind.STATEMENT, text, context=seen if context is None else context)
                    insert_id = None

    def _end(self) -> tuple[str, int]:
        mariadb = self.source.flavor is Flavor.MARIADB
        row = self.source.query("SHOW MASTER STATUS" if mariadb else "SHOW BINARY LOG STATUS")[0]
        return str(row[0]), int(row[1])

    def _events(self, file: str, start: int) -> list[bytes]:
        return list(frames((self.source.datadir / file).read_bytes(), start))


def ddl_item(statement: str, database: str | None, context: SessionContext | None = None) -> Item:
    seen = SessionContext(database=database, sql_mode=0) if context is None else context
    return Item(ItemKind.DDL, statement.encode(), context=seen)


def frames(data: bytes, at: int) -> Iterator[bytes]:
    while at < len(data):
        size = HEADER.unpack_from(data, at)[3]
        yield data[at : at + size]
        at += size


def strip(event: bytes) -> bytes:
    """The event without its checksum."""
    body = bytearray(event[:-4])
    struct.pack_into("<I", body, 9, len(body))
    return bytes(body)


def stamped(payload: bytes, seconds: int) -> bytes:
    """Events with another time in their headers."""
    return b"".join(struct.pack("<I", seconds) + event[4:] for event in frames(payload, 0))


def without_algorithm(event: bytes) -> bytes:
    """A FORMAT_DESCRIPTION that announces events without checksums."""
    body = bytearray(event)
    body[-5] = 0
    body[-4:] = struct.pack("<I", zlib.crc32(bytes(body[:-4])))
    return bytes(body)


def query_text(event: bytes) -> bytes:
    database_length, _, status_length = struct.unpack_from("<BHH", event, 19 + 8)
    return event[19 + 13 + status_length + database_length + 1 : -4]


@dataclass(slots=True)
class Window:
    """Builds a plan and its lanes' blocks out of captured transactions."""

    format: bytes
    lanes: int = 2
    channel: str = "orders"
    window_id: str = "w1"
    digest: str = "d1"
    first_seqno: int = 1
    barriers: list[Barrier] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    _blocks: dict[int, list[Block]] = field(default_factory=dict)
    _pieces: dict[BlockHeader, tuple[Block, ...]] = field(default_factory=dict)
    _seqno: int = 0

    def __post_init__(self) -> None:
        self._seqno = self.first_seqno - 1

    def add(self, lane: int, *captured: Captured) -> Block:
        """One block of these transactions, numbered behind everything added so far."""
        first = self._seqno + 1
        self._seqno += len(captured)
        block = Block(
            BlockHeader(first, self._seqno, len(captured), captured[0].position, f"0-1-{self._seqno}", 1.0),
            self.format,
            tuple(item for transaction in captured for item in transaction.items),
        )
        self._blocks.setdefault(lane, []).append(block)
        self._pieces[block.header] = tuple(
            Block(
                BlockHeader(seqno, seqno, 1, transaction.position, f"0-1-{seqno}", 1.0),
                self.format,
                transaction.items,
                block.header,
            )
            for seqno, transaction in enumerate(captured, first)
        )
        return block

    def meet(self, owner: int, participants: Sequence[int], *captured: Captured) -> Barrier:
        """A barrier of one block a transaction."""
        first = self._seqno + 1
        for transaction in captured:
            self.add(owner, transaction)
        barrier = Barrier(first, self._seqno, owner, tuple(sorted(participants)), {"test": len(captured)})
        self.barriers.append(barrier)
        return barrier

    def end_epoch(self) -> None:
        """Here; a barrier of all lanes follows."""
        end = LogPosition("binlog.000001", 100 * self._seqno)
        self.epochs.append(Epoch(self._seqno, end, f"0-1-{self._seqno}", 1.0))

    def skip(self, transactions: int = 1) -> None:
        """Seqnos that no lane has a block for: filtered away."""
        self._seqno += transactions

    @property
    def source(self) -> MemorySource:
        return MemorySource({lane: tuple(blocks) for lane, blocks in self._blocks.items()}, self._pieces)

    @property
    def plan(self) -> WindowPlan:
        rows = [RowCounts() for _ in range(self.lanes + 1)]
        for lane, blocks in self._blocks.items():
            rows[lane] = sum((item.rows for block in blocks for item in block.items), RowCounts())
        return WindowPlan(
            channel=self.channel,
            window_id=self.window_id,
            digest=self.digest,
            first_seqno=self.first_seqno,
            last_seqno=self._seqno,
            lanes=self.lanes,
            barriers=tuple(self.barriers),
            source="source-1",
            end=LogPosition("binlog.000001", 4000),
            end_gtid_set=f"0-1-{self._seqno}",
            end_time=1.0,
            lane_rows=tuple(rows),
            files=tuple(self._file(lane) for lane in range(self.lanes + 1)),
            epochs=tuple(self.epochs),
        )

    def _file(self, lane: int) -> tuple[LaneFile, ...]:
        """What the plan says of a lane's blocks, which are in memory."""
        headers = [block.header for block in self._blocks.get(lane, ())]
        if not headers:
            return ()
        transactions = sum(header.transactions for header in headers)
        return (LaneFile("", headers[0].first_seqno, headers[-1].last_seqno, len(headers), transactions, 0, ""),)


@dataclass(frozen=True, slots=True)
class MemorySource:
    """A LaneSource over blocks in memory; streams them as the real one does."""

    by_lane: dict[int, tuple[Block, ...]]
    by_block: dict[BlockHeader, tuple[Block, ...]] = field(default_factory=dict)

    def pieces(self, lane: int, block: BlockHeader) -> Iterator[Block]:
        return iter(self.by_block[block])

    def makes_null_now(self, first: int, last: int) -> bool:
        return False

    def blocks(self, lane: int, after: int) -> Iterator[Block]:
        for block in self.by_lane.get(lane, ()):
            if block.header.last_seqno > after:
                # consumed once, and an error if the next block is asked for too early
                items = list(block.items)
                yield replace(block, items=_draining(items))
                assert not items, "the next block was asked for before this one's items were consumed"


def _draining(items: list[Item]) -> Iterator[Item]:
    while items:
        yield items.pop(0)
