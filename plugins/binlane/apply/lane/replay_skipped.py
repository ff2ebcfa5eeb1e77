"""Applies a skipped transaction after all: once, in one transaction with its record."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from binlane.apply.lane.block_writers import Checked, LogFacts, block_writer
from binlane.apply.lane.options import ApplyOptions
from binlane.apply.lane.replayed_items import require_plain
from binlane.apply.nontransactional_tables import NontransactionalTables
from binlane.apply.rows.conflict_detect import RowComparison, row_key
from binlane.apply.rows.sql import KnownTable, SqlRows
from binlane.apply.rows.target_row import is_full
from binlane.apply.rows.writers import sends_row_events
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.rollback import undo
from binlane.binlog.reader import LogReader
from binlane.binlog.row_values import Absent, Image
from binlane.binlog.rows import RowsEvent, RowsFlag, RowsKind
from binlane.binlog.rows_payload import payload_limit
from binlane.errors import ApplyError, DriftError, PositionError
from binlane.model import Item, ItemKind, RowCounts
from binlane.plan.block.builder import BlockLimits
from binlane.plan.segment.pieces import alone
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.schema.model import Column, Generated
from binlane.sql.programs.marks import ReachedPrograms
from binlane.state.orders.skips import ALL_LANES, SKIPPED, mark_replayed, read_skip
from binlane.state.records.conflicts import Conflict
from binlane.state.records.repairs import read_repairs
from binlane.state.windows import read_window

if TYPE_CHECKING:
    from sqlalchemy import Engine

_PAYLOAD = 1 << 20
_USUAL: Final = ApplyOptions()
_BY_REPAIR: Final = "a repair has written the source's rows since ({})"


def replay_skipped(
    engine: Engine,
    channel: str,
    seqno: int,
    rules: ChannelRules = AS_LOGGED,
    options: ApplyOptions = _USUAL,
    *,
    is_confirmed: bool = False,
) -> RowCounts:
    """Apply the recorded events of a skipped transaction; returns the row changes made.

    ``rules``: the channel's filter, renames and collations. ``options``: how its lanes write.
    ``is_confirmed``: somebody has looked whether the target lacks the changes, where no comparison shows it.

    Raises PositionError if the transaction is not a skipped one, was replayed already, or needs to be confirmed;
    ApplyError for a DDL, for a table without transactions, and for more than changes of rows;
    DriftError for a row that is another one than before the change; it and the driver's errors if the target refuses
    the transaction. Nothing has changed then.
    """
    with engine.connect() as connection:
        skip, log = read_skip(connection, channel, seqno)
        newest = read_repairs(connection, channel, limit=1)
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
        plain = NontransactionalTables(catalog, source, fires_triggers=not sends_row_events(options.writer))
        if any(map(plain.may_change, items)):
            raise ApplyError(
                f"channel {channel}, seqno {seqno}: it may change a table without transactions, which keeps the "
                "changes of a replay that fails and is not recorded: make its changes on the target by hand "
                f"(`binlane skip {channel} --show {seqno} --write FILE`, `binlane inspect --sql FILE`)"
            )
        # no precheck has looked at a view
        facts = LogFacts(source, last_seqno=seqno, complete_images=False, checked=Checked(reached=ReachedPrograms()))
        writer = block_writer(session, catalog, options, facts)
        tables = SqlRows(session, writer.guard)
        writer.comparison = RowComparison(tables, _refuse, lambda _: iter(()))
        writer.begin_block(block.format)
        session.begin()
        try:
            if not mark_replayed(session.cursor, channel, seqno):
                raise PositionError(
                    f"channel {channel}, seqno {seqno}: another session is replaying the transaction or has replayed it"
                )
            if not is_confirmed:
                since = (each.plan for each in newest if each.seqno >= seqno)
                _require_missing((*map(_BY_REPAIR.format, since), *_unproved(items, tables, seqno)), channel, seqno)
            rows = writer.write(items, seqno)
        except BaseException:
            undo(session)
            raise
        session.commit()
        return rows


def _require_missing(unknown: Sequence[str], channel: str, seqno: int) -> None:
    if unknown:
        raise PositionError(
            f"channel {channel}, seqno {seqno}: expected a transaction whose changes the target lacks, found one whose "
            f"changes may be there: {'; '.join(dict.fromkeys(unknown))}; nothing was written: look at the changes "
            f"(`binlane skip {channel} --show {seqno} --write FILE`, `binlane inspect --sql FILE`) and at the target's "
            f"rows; if these lack them, `binlane replay-skipped {channel} {seqno} --yes`"
        )


def _unproved(items: Sequence[Item], tables: SqlRows, seqno: int) -> Iterator[str]:
    """Why the target's rows do not show that they lack the changes."""
    for item in items:
        if item.kind is not ItemKind.ROWS:
            yield "a statement changes the rows that it finds now"
            continue
        for table, event, _ in tables.events(item.payload, seqno):
            key = table.bound.key
            if event.kind is RowsKind.INSERT:
                if not _refuses_again(table, event):
                    yield f"a row is inserted into {key} that no unique key would refuse the second time"
            elif not row_key(table):
                yield f"rows of {key} are changed, and have no key by which they could be compared"
            elif not all(each.before and is_full(table, each.before) for each in table.decoder.changes(event)):
                yield f"the log has only some columns of a row of {key} before their change"


def _refuses_again(table: KnownTable, event: RowsEvent) -> bool:
    """Whether a unique key of the table refuses each row of an INSERT that is there already."""
    if table.target.primary_key is not None:
        return True
    if event.flags & RowsFlag.RELAXED_UNIQUE_CHECKS:
        # InnoDB need not look at secondary keys then
        return False
    columns: dict[str | None, tuple[int, Column]] = {
        column.name: (number, column) for number, column in enumerate(table.target.columns)
    }
    # an expression may be NULL
    unique = [key for key in table.target.keys if key.unique and all(part.name in columns for part in key.columns)]
    keys = [[columns[part.name] for part in key.columns] for key in unique]
    images = (change.after for change in table.decoder.changes(event))
    return all(any(all(_has_value(column, image, n) for n, column in key) for key in keys) for image in images)


def _has_value(column: Column, image: Image | None, number: int) -> bool:
    """Whether the row cannot have NULL there, of which a unique key takes any number of rows."""
    if not column.nullable:
        return True
    if image is None or column.generated not in (None, Generated.STORED):
        return False
    return image[number] is not None and not isinstance(image[number], Absent)


def _refuse(conflict: Conflict) -> None:
    raise DriftError(
        f"{conflict.table}: expected the row {dict(conflict.key)} as the log has it before its {conflict.change}, "
        "found other values: it has the change, or a later one; nothing was written: make what is missing by hand"
    )
