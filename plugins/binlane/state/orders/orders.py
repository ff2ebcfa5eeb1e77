"""The orders that a block reads before it may commit: the seqno to stop at, and the transactions to skip.

Read inside the block's transaction, after the compare-and-set. An order is written with all position rows locked, so a
block has either committed before the order or sees it. So a lane never passes a stop, and an applied transaction is
never recorded as skipped (docs/invariants.md, 11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from binlane.lazy_dataclass import dataclass
from binlane.sessions.state_guard import NO_LIMIT, TRIGGER_OF, trigger_of

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    from binlane.state.positions import PlanKey

NOW: Final = 0
"""Value of ``stop_at``: every lane stops at its position."""
_READ: Final = (
    "SELECT t.name, w.stop_at, s.seqno FROM ({look}) AS t "
    "LEFT JOIN binlane.windows AS w ON w.channel = %s AND w.window_id = %s LEFT JOIN binlane.skips AS s "
    f"ON s.channel = w.channel AND s.seqno BETWEEN %s AND %s AND s.state <> 'replayed' {{held}}{NO_LIMIT}"
)
_LOOK: Final = f"SELECT MIN(CONCAT(event_object_table, _ascii' ', trigger_name)) AS name {TRIGGER_OF}"
_OF_ROWS: Final = _READ.format(look=f"{_LOOK}'positions'", held="")
_OF_DDL: Final = _READ.format(
    look=f"SELECT MIN(u.name) AS name FROM ({_LOOK}'positions' UNION ALL {_LOOK}'ddl') AS u",
    # held from this statement on, which is also that of the look
    held="LEFT JOIN binlane.ddl AS d ON FALSE ",
)


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders that concern a range of seqnos."""

    stop_at: int | None = None
    """The last seqno that lanes may apply; ``NOW``: no further block may commit."""
    skipped: frozenset[int] = frozenset()
    """Seqnos to skip."""

    def forbids(self, seqno: int) -> bool:
        """Whether a lane must not move to ``seqno``."""
        return self.stop_at is not None and seqno > self.stop_at


def read_orders(cursor: Cursor, key: PlanKey, first: int, last: int, *, ends_ddl: bool = False) -> Orders:
    """The orders for seqnos ``first`` to ``last`` of the window; on the lane's connection, after the compare-and-set.

    ``ends_ddl``: the transaction removes the note of a DDL. Raises StateSchemaError for a trigger of the positions,
    which the compare-and-set has fired, or of the notes."""
    cursor.execute(_OF_DDL if ends_ddl else _OF_ROWS, (key.channel, key.window_id, first, last))
    rows = cursor.fetchall()
    trigger, stop_at, _ = rows[0]
    if trigger is not None:
        table, _, name = str(trigger).partition(" ")
        raise trigger_of(table, name)
    return Orders(
        None if stop_at is None else int(stop_at), frozenset(int(seqno) for _, _, seqno in rows if seqno is not None)
    )


def begin_ddl(cursor: Cursor, key: PlanKey, lanes: tuple[int, ...], expected: int, seqno: int) -> bool:
    """Record that the DDL ``seqno`` is about to run, so that later orders count it as reached.

    In a transaction of its own, before the DDL. False if the lanes are not at ``expected``.
    """
    marks = ", ".join(str(int(lane)) for lane in lanes)
    found = cursor.execute(
        f"UPDATE binlane.positions SET begun = %s WHERE channel = %s AND lane IN ({marks}) AND seqno = %s "
        "AND window_id = %s AND digest = %s ORDER BY lane",
        (seqno, key.channel, expected, key.window_id, key.digest),
    )
    return found == len(lanes)


def has_begun(cursor: Cursor, key: PlanKey, lane: int, seqno: int) -> bool:
    """Whether an earlier attempt has recorded that the DDL ``seqno`` is about to run."""
    cursor.execute(
        "SELECT 1 FROM binlane.positions WHERE channel = %s AND lane = %s AND begun = %s", (key.channel, lane, seqno)
    )
    return cursor.fetchone() is not None


def end_ddl(cursor: Cursor, key: PlanKey, lanes: tuple[int, ...], seqno: int) -> None:
    """Clear the record of ``begin_ddl`` after the server refused the DDL, so that an order may stop before it."""
    marks = ", ".join(str(int(lane)) for lane in lanes)
    cursor.execute(
        f"UPDATE binlane.positions SET begun = 0 WHERE channel = %s AND lane IN ({marks}) AND begun = %s "
        "AND window_id = %s AND digest = %s ORDER BY lane",
        (key.channel, seqno, key.window_id, key.digest),
    )
