"""Lane positions: the last seqno applied by each lane, moved by compare-and-set inside the block's transaction.

``move_position`` and ``settle`` take a PyMySQL cursor of the lane's connection, so they cannot commit: the block's
transaction has one owner (docs/invariants.md, 2 and 8). The other functions use SQLAlchemy connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, delete, func, insert, select

from binlane.errors import PositionError
from binlane.lazy_dataclass import dataclass
from binlane.model import RowCounts
from binlane.plan.window_plan import WindowPlan
from binlane.state.tables import NOW, UTC_NOW, ddl, positions

if TYPE_CHECKING:
    from pymysql.cursors import Cursor


@dataclass(frozen=True, slots=True)
class LanePosition:
    """A lane's row: the target holds all of the lane's transactions up to ``seqno``."""

    lane: int
    seqno: int
    window_id: str
    digest: str
    rows: RowCounts
    """Row changes written in this window, by the target's own Handler counters."""
    blocks: int
    transactions: int
    begun: int = 0
    """The DDL that the lane has begun last (``orders.begin_ddl``); 0: none, or none any more. An order that waits for
    the lanes takes it from their locked rows: a plain SELECT would answer as of before it waited."""


@dataclass(frozen=True, slots=True)
class PlanKey:
    """Channel, window and plan, which every block checks together with its position (invariant 7)."""

    channel: str
    window_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class Counted:
    """A block's increments of its lane's counters."""

    rows: RowCounts
    blocks: int
    transactions: int


# ascending lanes, so that two runners that move several positions cannot deadlock
_MOVE: Final = (
    f"UPDATE binlane.positions SET seqno = %s, updated_at = {UTC_NOW} "
    "WHERE channel = %s AND lane IN ({lanes}) AND seqno = %s AND window_id = %s AND digest = %s ORDER BY lane"
)
_SETTLE: Final = (
    "UPDATE binlane.positions SET seqno = %s, "
    "inserts = inserts + IF(lane = %s, %s, 0), updates = updates + IF(lane = %s, %s, 0), "
    "deletes = deletes + IF(lane = %s, %s, 0), blocks = blocks + IF(lane = %s, %s, 0), "
    "transactions = transactions + IF(lane = %s, %s, 0) "
    "WHERE channel = %s AND lane IN ({lanes}) AND seqno = %s AND window_id = %s AND digest = %s ORDER BY lane"
)


def move_position(cursor: Cursor, key: PlanKey, lanes: tuple[int, ...], expected: int, seqno: int) -> bool:
    """Move ``lanes`` together from ``expected`` to ``seqno``; False if a lane's position is not ``expected``.

    The first statement of a block's transaction: its row locks keep every other runner out until COMMIT. After False
    the caller must ROLLBACK, since some lanes may have moved. Raises PositionError for a move backwards.
    """
    if seqno <= expected:
        raise PositionError(f"channel {key.channel}, lanes {lanes}: a move from {expected} to {seqno} is not forward")
    statement = _MOVE.format(lanes=", ".join(str(int(lane)) for lane in lanes))
    moved = cursor.execute(statement, (seqno, key.channel, expected, key.window_id, key.digest))
    return moved == len(lanes)


def settle(
    cursor: Cursor, key: PlanKey, lanes: tuple[int, ...], lane: int, moved: int, seqno: int, counted: Counted
) -> None:
    """End a block: move the positions from ``moved`` (see ``move_position``) to ``seqno``, and add ``counted`` to
    ``lane``.

    ``seqno`` is ``moved`` or, for the last block before a barrier or the window's end, greater. Raises PositionError if
    the rows, which this transaction has locked, are not found.
    """
    if seqno < moved:
        raise PositionError(f"channel {key.channel}, lanes {lanes}: a move from {moved} to {seqno} is not forward")
    statement = _SETTLE.format(lanes=", ".join(str(int(each)) for each in lanes))
    amounts = (counted.rows.inserts, counted.rows.updates, counted.rows.deletes, counted.blocks, counted.transactions)
    values = [value for amount in amounts for value in (lane, amount)]
    # SQLAlchemy connects with CLIENT.FOUND_ROWS: rows that match count, changed or not
    found = cursor.execute(statement, (seqno, *values, key.channel, moved, key.window_id, key.digest))
    if found != len(lanes):
        raise PositionError(f"channel {key.channel}, lanes {lanes}: {found} of their positions stand at {moved}")


def read_positions(cursor: Cursor, key: PlanKey) -> dict[int, int]:
    """Seqno by lane, for the plan's lanes; read on the lane's own connection, outside a transaction."""
    cursor.execute(
        "SELECT lane, seqno FROM binlane.positions WHERE channel = %s AND window_id = %s AND digest = %s",
        (key.channel, key.window_id, key.digest),
    )
    return {int(lane): int(seqno) for lane, seqno in cursor.fetchall()}


def lock_position(cursor: Cursor, channel: str, lane: int) -> int | None:
    """The lane's seqno, None if it has no row; locks the row until the cursor's transaction ends."""
    cursor.execute("SELECT seqno FROM binlane.positions WHERE channel = %s AND lane = %s FOR UPDATE", (channel, lane))
    row = cursor.fetchone()
    return None if row is None else int(row[0])


def lane_seqnos(connection: Connection, key: PlanKey) -> dict[int, int]:
    """The plan's lanes with their seqnos alone: what a lane asks again and again at a barrier."""
    c = positions.c
    of_plan = (c.channel == key.channel, c.window_id == key.window_id, c.digest == key.digest)
    query = select(c.lane, c.seqno).where(*of_plan)
    return {row.lane: row.seqno for row in connection.execute(query)}


def begun_seqno(connection: Connection, channel: str) -> int:
    """The highest seqno of which anything may have run: a lane stands there, or a statement of it has begun."""
    highest = 0
    for column in (positions.c.seqno, positions.c.begun, ddl.c.seqno):
        query = select(func.max(column)).where(column.table.c.channel == channel)
        highest = max(highest, connection.execute(query).scalar_one() or 0)
    return highest


def lane_positions(connection: Connection, channel: str, *, for_update: bool = False) -> tuple[LanePosition, ...]:
    """The channel's positions, ascending by lane."""
    query = select(positions).where(positions.c.channel == channel).order_by(positions.c.lane)
    rows = connection.execute(query.with_for_update() if for_update else query)
    return tuple(
        LanePosition(
            lane=row.lane,
            seqno=row.seqno,
            window_id=row.window_id,
            digest=row.digest,
            rows=RowCounts(row.inserts, row.updates, row.deletes),
            blocks=row.blocks,
            transactions=row.transactions,
            begun=row.begun,
        )
        for row in rows
    )


def place_lanes(connection: Connection, plan: WindowPlan) -> None:
    """Set every lane with work of a new plan to the seqno before the window.

    Raises PositionError if a position would go back.
    """
    start = plan.first_seqno - 1
    ahead = [lane for lane in lane_positions(connection, plan.channel, for_update=True) if lane.seqno > start]
    if ahead:
        raise PositionError(
            f"channel {plan.channel}, window {plan.window_id}: lanes {[lane.lane for lane in ahead]} stand behind "
            f"seqno {start} "
            "already; positions never move back"
        )
    connection.execute(delete(positions).where(positions.c.channel == plan.channel))
    connection.execute(
        insert(positions),
        [
            {
                "channel": plan.channel,
                "lane": lane,
                "seqno": start,
                "begun": 0,
                "window_id": plan.window_id,
                "digest": plan.digest,
                "inserts": 0,
                "updates": 0,
                "deletes": 0,
                "blocks": 0,
                "transactions": 0,
                "updated_at": connection.execute(select(NOW)).scalar_one(),
            }
            for lane in plan.lanes_with_work
        ],
    )
