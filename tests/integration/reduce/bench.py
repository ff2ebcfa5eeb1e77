"""What a source logged, filtered with and without reduction, and written to a target block by block."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from blake3 import blake3
from sqlalchemy import NullPool

from binlane.apply.rows.table_guard import TableGuard
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.connection import LaneSession, SessionLimits
from binlane.apply.session.context import ContextSetter
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.binlog.wire import MAGIC
from binlane.model import BlockHeader, Flavor, Item, ItemKind, RowCounts
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import table_rules, why_not_folded
from binlane.plan.critical_databases import critical_databases
from binlane.plan.manifest import Manifest, Segment
from binlane.plan.segment import map as columnar
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.window.mapped import MappedWindow
from binlane.plan.window.merge import make_plan, merge_scans
from binlane.plan.window_plan import WindowPlan
from binlane.schema.compare import compare_schemas, not_reduced, rules_for
from binlane.schema.model import Schema
from binlane.servers.catalog import TableReader, read_schema
from binlane.servers.engines import engine_at
from lab.servers import PrivateServer
from tests.integration.apply.capture import frames
from tests.unit.plan.logs import MemorySink, fold_lane, manifest_of, settings
from tests.unit.plan.segment import plain_map

DATABASE = "shop"
Block = tuple[bytes, BlockHeader, tuple[Item, ...]]


@dataclass(frozen=True, slots=True)
class Written:
    """A target's tables after the window: their rows, and the next AUTO_INCREMENT value of each."""

    rows: dict[str, list[tuple[object, ...]]]
    next_ids: dict[str, int | None]


@dataclass(frozen=True, slots=True)
class Filtered:
    """What the filter made of the window."""

    blocks: tuple[Block, ...]
    """All lanes' blocks in the source's order, each with its FORMAT_DESCRIPTION."""
    plan: WindowPlan
    kept_in_order: dict[str, str]
    """Tables that are not folded at all, with the reason."""

    @property
    def written(self) -> RowCounts:
        return sum((item.rows for _, _, items in self.blocks for item in items), RowCounts())


def end_of_log(source: PrivateServer) -> tuple[str, int]:
    """File and offset behind the last event."""
    statement = "SHOW MASTER STATUS" if source.flavor is Flavor.MARIADB else "SHOW BINARY LOG STATUS"
    row = source.query(statement)[0]
    return str(row[0]), int(row[1])


def schema_of(server: PrivateServer) -> Schema:
    engine = engine_at(server.url(), poolclass=NullPool)
    with engine.connect() as connection:
        return read_schema(connection, {DATABASE})


def run(server: PrivateServer, statements: Sequence[str], *, logged: bool = True) -> None:
    """On one connection, in autocommit mode, in the database; ``-`` before a statement: its error is of no matter."""
    connection = server.connect(autocommit=True, database=DATABASE)
    with contextlib.closing(connection), connection.cursor() as cursor:
        if not logged:
            cursor.execute("SET SESSION sql_log_bin = 0")
        for statement in statements:
            with contextlib.suppress(*((Exception,) if statement.startswith("-") else ())):
                cursor.execute(statement.removeprefix("-"))


def fresh(server: PrivateServer, tables: Sequence[str]) -> None:
    """The database anew, with these tables."""
    server.query(f"DROP DATABASE IF EXISTS {DATABASE}")
    server.query(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    run(server, tables)


def captured(source: PrivateServer, start: tuple[str, int]) -> tuple[bytes, Segment]:
    """All that was logged behind ``start`` as one segment; the source must not have rotated its log."""
    file, end = end_of_log(source)
    assert file == start[0]
    data = (source.datadir / file).read_bytes()[:end]
    head = MAGIC + next(frames(data, len(MAGIC)))
    body = head + data[start[1] :]
    reader = LogReader(body, file, verify=False)
    count = len(list(transactions(reader)))
    return body, Segment(
        name="segments/000001.binlog", bytes=len(body), blake3=blake3(body).hexdigest(), flavor=source.flavor,
        server_version=reader.format.server_version, checksum="CRC32", first_seqno=1, last_seqno=count,
        transactions=count, source_file=file, start_offset=start[1], end_offset=end, first_time=0.0, last_time=0.0,
        first_gtid="", last_gtid="",
    )  # fmt: skip


def filtered(
    captured_log: tuple[bytes, Segment], source: Schema, target: Schema, *, reduce: str, version: str = "columnar",
    **changes: object,
) -> Filtered:  # fmt: skip
    """The plan job in this process. ``reduce``: off, block or window; ``version``: columnar or plain."""
    data, segment = captured_log
    differences = compare_schemas(source, target, list(target.tables), rules_for(source, target))
    others = sorted([key.database, key.table] for key in not_reduced(differences))
    # one lane, so that the blocks' order is the source's
    usual = {"lanes": 1, "block_transactions": 50, "payload_bytes": 1 << 20, "largest_bytes": 8 << 20}
    chosen = settings(
        target=target.flavor.value,
        target_version=target.version,
        not_reduced=others,
        reduce=reduce,
        **{**usual, **changes},
    )
    functions = columnar if version == "columnar" else plain_map
    manifest: Manifest = manifest_of([segment])
    scan = functions.scan_segment(data, segment, chosen, critical_databases(chosen, target))
    routing = merge_scans(manifest, [scan], chosen, target)
    rules = table_rules(target, routing.excluded)
    reducer = None if reduce == "off" else Reducer(rules, chosen.payload_bytes, chosen.largest_bytes)
    sinks: list[MemorySink] = []

    def open_sink(lane: int, format_event: bytes) -> MemorySink:
        sinks.append(MemorySink(lane, format_event))
        return sinks[-1]

    summary = functions.map_segment(data, segment, routing, chosen, open_sink, reducer)
    folded = None
    if reduce == "window":
        assert reducer is not None
        found = [
            (fold_lane(sink.lane, sink.blocks, routing, chosen, reducer, sink.format_event), sink) for sink in sinks
        ]
        folded = [lane for (lane, _), _ in found]
        for (_, made), sink in found:
            sink.blocks = made
    blocks = [(sink.format_event, header, items) for sink in sinks for header, items in sink.blocks]
    reasons = {key.table: why_not_folded(target, routing.excluded, key) for key in target.tables}
    return Filtered(
        tuple(sorted(blocks, key=lambda block: block[1].first_seqno)),
        make_plan(manifest, routing, MappedWindow.of([summary]), folded).sealed()[0],
        {table: reason for table, reason in reasons.items() if reason is not None},
    )


def write(target: PrivateServer, blocks: Sequence[Block], by: str = "binlog") -> RowCounts:
    """Apply blocks one after the other, as a lane does; the row changes that the target counted. ``by``: the row
    writer."""
    engine = engine_at(target.url(), poolclass=NullPool)
    session = LaneSession.open(engine, SessionLimits())
    written = RowCounts()
    with contextlib.closing(session), engine.connect() as poll:
        auto = poll.execution_options(isolation_level="AUTOCOMMIT")
        reader = TableReader(auto)
        guard = TableGuard(Alterations({}), target.flavor, reader.read, reader.read_database)
        writer = BlockWriter(session, ContextSetter(session), None if by == "binlog" else guard, by)
        for format_event, _, items in blocks:
            session.use_format(format_event)
            if any(item.kind is ItemKind.DDL for item in items):
                for item in items:
                    writer.run(item, writer.prepare(item))
                writer.forget_tables()
                writer.context.leave()
                continue
            session.begin()
            written += writer.write(items, 1)
            session.commit()
    return written


def state_of(server: PrivateServer) -> Written:
    """What the database holds now, bytes as they are stored."""
    rows, next_ids = {}, {}
    connection = server.connect(autocommit=True, database=DATABASE)
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute("SET SESSION time_zone = '+00:00'")
        if server.flavor is Flavor.MYSQL:
            cursor.execute("SET SESSION information_schema_stats_expiry = 0")
        cursor.execute(
            "SELECT table_name, auto_increment FROM information_schema.tables WHERE table_schema = %s "
            "AND table_type = 'BASE TABLE'",
            (DATABASE,),
        )
        next_ids = {str(name): value for name, value in cursor.fetchall()}
        for name in next_ids:
            cursor.execute(f"SELECT * FROM `{name}`")
            rows[name] = sorted(cursor.fetchall(), key=repr)
    return Written(rows, next_ids)
