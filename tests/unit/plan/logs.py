"""Whole logs of small transactions, for what looks at segments: framed as MariaDB does, rows of one INT column."""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from blake3 import blake3

from binlane.binlog.gtids import MariadbGtidFlag
from binlane.binlog.wire import MAGIC, ChecksumAlgorithm, EventFlag, EventType
from binlane.choices import Reduce
from binlane.model import BlockHeader, Epoch, Flavor, Item, LogPosition, RowCounts, TableKey
from binlane.plan.barriers import LaneEdges
from binlane.plan.block.reduce import Reducer
from binlane.plan.consistency import EpochStarts
from binlane.plan.critical_databases import critical_databases
from binlane.plan.manifest import Manifest, Segment, TemporaryDrop
from binlane.plan.routing import Routing
from binlane.plan.segment.map import MapSummary
from binlane.plan.segment.map import map_segment as columnar_map
from binlane.plan.segment.map import scan_segment as columnar_scan
from binlane.plan.settings import PlanSettings
from binlane.plan.window.mapped import MappedWindow
from binlane.plan.window.merge import make_plan, merge_window
from binlane.plan.window.reduce import FoldedLane, LaneFolder
from binlane.plan.window_plan import Block, LaneFile, WindowPlan
from binlane.schema.model import Schema
from binlane.work.prepared_groups import SegmentGroups
from tests.unit.binlog.cases import MARIADB as FORMAT
from tests.unit.binlog.cases import crc, format_event, mariadb_gtid, query, wire
from tests.unit.binlog.row_events import EVERY_COLUMN, Column, rows_body, table_map_body
from tests.unit.plan.segment.plain_map import map_segment, scan_segment

T = EventType
COLUMNS = (EVERY_COLUMN["long"],)
HEAD = MAGIC + format_event(replace(FORMAT, checksum=ChecksumAlgorithm.CRC32))
XID = wire(T.XID, b"\x2a" + bytes(7))
IN_TRANSACTION = int(MariadbGtidFlag.TRANSACTIONAL)
STANDALONE = int(MariadbGtidFlag.STANDALONE)


def table_map(table_id: int, database: str = "a", columns: Sequence[Column] = COLUMNS) -> bytes:
    return wire(T.TABLE_MAP, table_map_body(table_id, columns, database))


def insert(table_id: int, values: Sequence[int], *, ends: bool = True) -> bytes:
    images = b"".join(b"\0" + struct.pack("<i", value) for value in values)
    return wire(T.WRITE_ROWS_V1, rows_body(T.WRITE_ROWS_V1, table_id, 1, [b"\1"], images, ends=ends))


def rows(seqno: int, *databases: str, count: int = 1) -> tuple[bytes, ...]:
    """A transaction that inserts ``count`` rows into a table of each database."""
    changes = (part for n, name in enumerate(databases, 1) for part in (table_map(n, name), insert(n, range(count))))
    return (mariadb_gtid(seqno, IN_TRANSACTION), *changes, XID)


def alone(seqno: int, sql: str, database: str = "a") -> tuple[bytes, ...]:
    """A statement that commits by itself."""
    return (mariadb_gtid(seqno, STANDALONE), query(sql.encode(), database=database.encode()))


def statements(seqno: int, *texts: str, database: str = "a") -> tuple[bytes, ...]:
    """A transaction of statements."""
    return (
        mariadb_gtid(seqno, IN_TRANSACTION),
        *(query(text.encode(), database=database.encode()) for text in texts),
        XID,
    )


def prepare(seqno: int, xid: str, *databases: str, count: int = 1) -> tuple[bytes, ...]:
    """The first half of an XA transaction; ``xid`` is its gtrid, the format id is 1."""
    name = struct.pack("<BIII", 0, 1, len(xid), 0) + xid.encode()
    return (*rows(seqno, *databases, count=count)[:-1], wire(T.XA_PREPARE, name))


def ends(seqno: int, what: str, xid: str) -> tuple[bytes, ...]:
    """The second half: ``what`` is COMMIT or ROLLBACK."""
    return alone(seqno, f"XA {what} X'{xid.encode().hex()}',X'',1")


def bound(
    seqno: int, *texts: str, thread: int = 6, alone: bool = False, error: int = 0, marked: bool = True
) -> tuple[bytes, ...]:
    """Statements of a connection that has temporary tables, as the servers mark them; ``error``: what each met."""
    flag = int(EventFlag.THREAD_SPECIFIC) if marked else 0
    events = [query(text.encode(), flags=flag) for text in texts]
    # a QUERY's body begins with thread_id, exec_time, the length of the database's name, error_code
    events = [
        each[:19] + struct.pack("<I", thread) + each[23:28] + struct.pack("<H", error) + each[30:] for each in events
    ]
    return (mariadb_gtid(seqno, STANDALONE if alone else IN_TRANSACTION), *events, *(() if alone else (XID,)))


def segment_of(
    transactions: Sequence[Sequence[bytes]], first_seqno: int = 1, start: int = len(HEAD)
) -> tuple[bytes, Segment]:
    """One segment as extraction would write it, and its entry in the manifest."""
    body = b"".join(crc(event) for events in transactions for event in events)
    data = HEAD + body
    return data, Segment(
        name=f"segments/{first_seqno:06d}.binlog",
        bytes=len(data),
        blake3=blake3(data).hexdigest(),
        flavor=Flavor.MARIADB,
        server_version=FORMAT.server_version,
        checksum="CRC32",
        first_seqno=first_seqno,
        last_seqno=first_seqno + len(transactions) - 1,
        transactions=len(transactions),
        source_file="binlog.000007",
        start_offset=start,
        end_offset=start + len(body),
        first_time=1_700_000_000.0,
        last_time=1_700_000_000.0,
        first_gtid="",
        last_gtid="",
    )


def settings(**changes: object) -> PlanSettings:
    values: dict[str, object] = {
        "channel": "orders", "window": "w1", "lanes": 3, "shard_list": "", "shard_list_path": "shard_list/orders.list",
        "assigner": "database", "consistency": "eventual", "epoch_seconds": 60, "fold_gap": 0,
        "block_transactions": 4, "block_bytes": 1 << 20, "block_seconds": 0,
        "payload_bytes": 1 << 16, "largest_bytes": 1 << 16, "target": "mariadb", "target_version": "10.11",
        "reduce": "off", "window_bytes": 1 << 22,
        "not_reduced": [],
    }  # fmt: skip
    return PlanSettings(**{**values, **changes})  # type: ignore[arg-type]


EMPTY_SCHEMA = Schema(flavor=Flavor.MARIADB, version="10.11.19-MariaDB")


@dataclass(slots=True)
class MemorySink:
    """A lane's blocks in memory."""

    lane: int
    format_event: bytes
    blocks: list[tuple[BlockHeader, tuple[Item, ...]]] = field(default_factory=list)

    def add(self, header: BlockHeader, items: Iterable[Item]) -> None:
        earlier = self.blocks.pop()[1] if self.blocks and self.blocks[-1][0] == header else ()
        self.blocks.append((header, (*earlier, *items)))

    def close(self) -> LaneFile:
        headers = [header for header, _ in self.blocks]
        digest = hashlib.sha256(repr(self.blocks).encode()).hexdigest()
        transactions = sum(header.transactions for header in headers)
        return LaneFile(
            f"lanes/{self.lane:04d}/000000.parquet",
            headers[0].first_seqno,
            headers[-1].last_seqno,
            len(headers),
            transactions,
            0,
            digest,
        )


@dataclass(frozen=True, slots=True)
class Filtered:
    """What the filter makes of a window."""

    routing: Routing
    plan: WindowPlan
    lanes: dict[int, list[tuple[BlockHeader, tuple[Item, ...]]]]

    def seqnos(self, lane: int) -> list[tuple[int, int]]:
        """First and last seqno of each of a lane's blocks."""
        return [(header.first_seqno, header.last_seqno) for header, _ in self.lanes.get(lane, [])]

    def barriers(self) -> list[tuple[int, int, int, tuple[int, ...], dict[str, int]]]:
        return [(b.first, b.last, b.owner, b.participants, dict(b.causes)) for b in self.routing.barriers]


def _cut(transactions: Sequence[Sequence[bytes]], cuts: Sequence[int]) -> list[tuple[bytes, Segment]]:
    parts, start = list[tuple[bytes, Segment]](), len(HEAD)
    for first, last in itertools.pairwise([0, *cuts, len(transactions)]):
        if first < last:
            parts.append(segment_of(transactions[first:last], first + 1, start))
            start = parts[-1][1].end_offset
    return parts


def epochs_of(transactions: Sequence[Sequence[bytes]], chosen: PlanSettings) -> Iterator[Epoch]:
    """The epochs that extraction finds in the log; each transaction is as old as its first event says."""
    starts = EpochStarts(chosen.level, chosen.epoch_transactions)
    times = [float(int.from_bytes(events[0][:4], "little")) for events in transactions]
    for seqno, time in enumerate(times, 1):
        if starts.first_in(seqno, [time]) == 0:
            starts.begin(seqno, time)
            if seqno > 1:
                yield Epoch(seqno - 1, LogPosition("binlog.000007", seqno), f"0-1-{seqno - 1}", times[seqno - 2])


def filtered(
    transactions: Sequence[Sequence[bytes]],
    chosen: PlanSettings | None = None,
    *,
    cuts: Sequence[int] = (),
    schema: Schema = EMPTY_SCHEMA,
    columnar: bool = False,
    reducer: Reducer | None = None,
    carried: Sequence[Sequence[bytes]] = (),
    done: Sequence[str] = (),
    restarts: Sequence[int] = (),
    older_sessions: int = 0,
    restarted: int | None = None,
    later_drops: Sequence[TemporaryDrop] = (),
    absent: Sequence[TableKey] = (),
) -> Filtered:
    """Scan, fold and map a window whose segments end before the transactions ``cuts`` (0-based).

    ``carried``: XA transactions that earlier windows have prepared; they have seqnos from 1001 on.
    """
    chosen, parts = settings() if chosen is None else chosen, _cut(transactions, cuts)
    before = [segment_of([each], 1001 + number) for number, each in enumerate(carried)]
    manifest = replace(
        manifest_of([segment for _, segment in parts]),
        carried=tuple(segment for _, segment in before),
        done=tuple(done),
        restarts=tuple(restarts),
        older_sessions=older_sessions,
        restarted=restarted,
        later_drops=tuple(later_drops),
        absent=tuple(absent),
        epochs=tuple(epochs_of(transactions, chosen)),
    )
    is_critical = critical_databases(chosen, schema)
    scan, map_one = (columnar_scan, columnar_map) if columnar else (scan_segment, map_segment)
    scans = [scan(data, segment, chosen, is_critical) for data, segment in parts]
    earlier = [scan(data, segment, chosen, is_critical) for data, segment in before]
    routing, of_one_kind = merge_window(manifest, scans, chosen, schema, earlier)
    chosen = chosen.chosen(routing.size)
    files = {segment.name: (data, segment) for data, segment in (*parts, *before)}
    lanes: dict[int, list[tuple[BlockHeader, tuple[Item, ...]]]] = {}
    summaries: list[MapSummary] = []
    for data, segment in parts:
        sinks: list[MemorySink] = []

        def open_sink(lane: int, format_event: bytes, sinks: list[MemorySink] = sinks) -> MemorySink:
            sinks.append(MemorySink(lane, format_event))
            return sinks[-1]

        shipped = Routing.from_json(routing.to_json(), "context")
        groups = SegmentGroups(
            shipped,
            FORMAT,
            Flavor.MARIADB,
            lambda name: files[name][1],
            lambda entry: nullcontext(files[entry.name][0]),
            chosen.rules,
        )
        summaries.append(map_one(data, segment, shipped, chosen, open_sink, reducer, groups))
        for sink in sinks:
            lanes.setdefault(sink.lane, []).extend(sink.blocks)
    whole = None
    if chosen.reduce == Reduce.WINDOW:
        assert reducer is not None
        folded = [fold_lane(lane, blocks, routing, chosen, reducer) for lane, blocks in lanes.items()]
        lanes, whole = {each.lane: blocks for each, blocks in folded}, [each for each, _ in folded]
    unsealed = make_plan(manifest, routing, MappedWindow.of(summaries), whole, chosen.renaming, of_one_kind=of_one_kind)
    return Filtered(routing, unsealed.sealed()[0], lanes)


Blocks = list[tuple[BlockHeader, tuple[Item, ...]]]


def fold_lane(
    lane: int, blocks: Blocks, routing: Routing, chosen: PlanSettings, reducer: Reducer, format_event: bytes = b""
) -> tuple[FoldedLane, Blocks]:
    """A lane's blocks folded over segments, and what the plan job's task says of it."""
    stretch = LaneEdges(routing.by_lane[lane]).stretch
    folding = LaneFolder(reducer, chosen.limits, chosen.window_bytes, stretch)
    sink = MemorySink(lane, format_event)
    for _, block in folding.fold(Block(header, format_event, iter(items)) for header, items in blocks):
        sink.add(block.header, block.items)
    rows = sum((item.rows for _, items in sink.blocks for item in items), RowCounts())
    return FoldedLane(lane, (sink.close(),), rows, folding.saved), sink.blocks


def manifest_of(segments: Sequence[Segment]) -> Manifest:
    last = segments[-1]
    return Manifest(
        channel="orders",
        window="w1",
        first_seqno=segments[0].first_seqno,
        last_seqno=last.last_seqno,
        start=LogPosition(last.source_file, segments[0].start_offset),
        end=LogPosition(last.source_file, last.end_offset),
        gtid_set="",
        end_time=1_700_000_000.0,
        identity="mariadb server_id 7",
        fingerprint="",
        segments=tuple(segments),
    )
