"""Applies a skipped transaction after all: once, in one transaction with its record."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from binlane.apply.lane.block_writers import LogFacts, block_writer
from binlane.apply.lane.options import ApplyOptions
from binlane.apply.lane.replayed_items import require_plain
from binlane.apply.nontransactional_tables import NontransactionalTables
from binlane.apply.rows.writers import sends_row_events
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.rollback import undo
from binlane.binlog.reader import LogReader
from binlane.binlog.rows_payload import payload_limit
from binlane.errors import ApplyError, PositionError
from binlane.model import ItemKind
from binlane.plan.block.builder import BlockLimits
from binlane.plan.segment.pieces import alone
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.state.orders.skips import ALL_LANES, SKIPPED, mark_replayed, read_skip
from binlane.state.windows import read_window

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from binlane.model import RowCounts

_PAYLOAD = 1 << 20
_USUAL: Final = ApplyOptions()


def replay_skipped(
    engine: Engine, channel: str, seqno: int, rules: ChannelRules = AS_LOGGED, options: ApplyOptions = _USUAL
) -> RowCounts:
    """Apply the recorded events of a skipped transaction; returns the row changes made.

    ``rules``: the channel's filter, renames and collations. ``options``: how its lanes write.

    Raises PositionError if the transaction is not a skipped one or was replayed already; ApplyError for a DDL,
    for a table without transactions, and for more than changes of rows;
    DriftError and the driver's errors if the target refuses the transaction, and then nothing has changed.
    """
    with engine.connect() as connection:
        skip, log = read_skip(connection, channel, seqno)
        window = read_window(connection, channel, skip.window_id) if skip.lane == ALL_LANES else None
    if window is not None and not window.is_finished:
        raise PositionError(
            f"channel {channel}, seqno {seqno}: its shard is divided, and lanes that have not come to it yet would "
            f"apply their share of it once more; finish the window {skip.window_id} first"
        )
    if skip.state != SKIPPED:
        raise PositionError(
            f"channel {channel}, seqno {seqno}: expected a skipped transaction, found one that is {skip.state}"
        )
    session = LaneSession.open(engine, options.limits)
    with contextlib.ExitStack() as stack:
        stack.callback(session.close)
        largest = payload_limit(session.max_allowed_packet)
        limits = BlockLimits(1, largest, min(_PAYLOAD, largest), largest)
        version = str(session.value("SELECT VERSION()"))
        block = alone(memoryview(log), skip.source.file, session.flavor, version, limits, rules)
        items = tuple(block.items)
        if any(item.kind is ItemKind.DDL for item in items):
            raise ApplyError(
                f"channel {channel}, seqno {seqno}: a DDL commits implicitly, so its replay cannot be recorded "
                f"in the same transaction: run the DDL on the target by hand: {skip.summary}"
            )
        catalog = stack.enter_context(engine.connect()).execution_options(isolation_level="AUTOCOMMIT")
        source = LogReader(memoryview(log), skip.source.file).format.flavor
        require_plain(items, catalog, source, session.flavor, f"channel {channel}, seqno {seqno}")
        tables = NontransactionalTables(catalog, source, fires_triggers=not sends_row_events(options.writer))
        if any(map(tables.may_change, items)):
            raise ApplyError(
                f"channel {channel}, seqno {seqno}: it may change a table without transactions, which keeps the "
                "changes of a replay that fails and is not recorded: make its changes on the target by hand "
                f"(`binlane skip {channel} --show {seqno} --write FILE`, `binlane inspect --sql FILE`)"
            )
        writer = block_writer(session, catalog, options, LogFacts(source, last_seqno=seqno, complete_images=False))
        writer.begin_block(block.format)
        session.begin()
        try:
            if not mark_replayed(session.cursor, channel, seqno):
                raise PositionError(
                    f"channel {channel}, seqno {seqno}: another session is replaying the transaction or has replayed it"
                )
            rows = writer.write(items, seqno)
        except BaseException:
            undo(session)
            raise
        session.commit()
        return rows
