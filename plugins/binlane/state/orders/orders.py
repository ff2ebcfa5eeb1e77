"""What a block must know of a person's orders before it may commit: where to stop, which transactions to leave out.

Read inside the block's transaction, behind the compare-and-set. Whoever gives an order holds the rows of all
positions meanwhile: a block has committed before it, or sees it. So a lane never passes a stop, and what was applied
is never skipped (docs/invariants.md, 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    from binlane.state.positions import PlanKey

NOW: Final = 0
"""As a stop's seqno: stop where you stand."""
_READ: Final = (
    "SELECT w.stop_at, s.seqno FROM binlane.windows w LEFT JOIN binlane.skips s "
    "ON s.channel = w.channel AND s.seqno BETWEEN %s AND %s AND s.state <> 'replayed' "
    "WHERE w.channel = %s AND w.window_id = %s"
)


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders that concern a range of seqnos."""

    stop_at: int | None = None
    """No lane goes behind it; ``NOW``: no block commits any more."""
    skipped: frozenset[int] = frozenset()
    """Seqnos to leave out."""

    def forbids(self, seqno: int) -> bool:
        """Whether a lane must not go to ``seqno``."""
        return self.stop_at is not None and seqno > self.stop_at


def read_orders(cursor: Cursor, key: PlanKey, first: int, last: int) -> Orders:
    """The orders for seqnos ``first`` to ``last`` of the window; on the lane's connection, behind the
    compare-and-set."""
    cursor.execute(_READ, (first, last, key.channel, key.window_id))
    rows = cursor.fetchall()
    stop_at = rows[0][0] if rows else None
    return Orders(
        None if stop_at is None else int(stop_at), frozenset(int(seqno) for _, seqno in rows if seqno is not None)
    )


def begin_ddl(cursor: Cursor, key: PlanKey, lanes: tuple[int, ...], expected: int, seqno: int) -> bool:
    """Note that the DDL ``seqno`` is about to run, so that an order given from here on counts it as reached.

    In a transaction of its own, before the DDL. False if the lanes do not stand at ``expected``.
    """
    marks = ", ".join(str(int(lane)) for lane in lanes)
    found = cursor.execute(
        f"UPDATE binlane.positions SET begun = %s WHERE channel = %s AND lane IN ({marks}) AND seqno = %s "
        "AND window_id = %s AND digest = %s ORDER BY lane",
        (seqno, key.channel, expected, key.window_id, key.digest),
    )
    return found == len(lanes)


def end_ddl(cursor: Cursor, key: PlanKey, lanes: tuple[int, ...], seqno: int) -> None:
    """The DDL has not run, and the server says so: an order may stop before it again."""
    marks = ", ".join(str(int(lane)) for lane in lanes)
    cursor.execute(
        f"UPDATE binlane.positions SET begun = 0 WHERE channel = %s AND lane IN ({marks}) AND begun = %s "
        "AND window_id = %s AND digest = %s ORDER BY lane",
        (key.channel, seqno, key.window_id, key.digest),
    )
