"""``on_conflict = "overwrite"``: a block that met drift is rolled back and applied again, row by row.

Still one block, one transaction, the compare-and-set first. What was set right is recorded in that transaction. The
block's transactions are built anew from the segment, not folded: rows are met in the log's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from binlane.apply.block import Applied, BlockPlace, rewrite_block
from binlane.apply.overwriting_rows import OverwritingRows
from binlane.apply.transient import Verdict, judge
from binlane.errors import DriftError
from binlane.model import Item, ItemKind, RowCounts
from binlane.state.conflicts import record_conflicts

if TYPE_CHECKING:
    from binlane.apply.course import Course, Links
    from binlane.plan.window_plan import Block
    from binlane.state.orders import Orders


class Counting:
    """A block's items, and the row changes of all of them, whether they were consumed or not."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._rows = RowCounts()

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            self._rows += item.rows
            yield item

    def total(self) -> RowCounts:
        """Consume what is left: the next block can be asked for then."""
        for _ in self:
            pass
        return self._rows


def is_drift(error: BaseException) -> bool:
    """Whether a block's error says that rows are not as the log expects."""
    return isinstance(error, DriftError) or judge(error) is Verdict.DRIFT


def overwrite(
    course: Course,
    links: Links,
    place: BlockPlace,
    block: Block,
    end: Callable[[], int],
    planned: RowCounts,
    cause: Exception,
) -> Applied | Orders | None:
    """Apply a block again that ``cause`` has rolled back; answers as ``apply_block``'s.

    Raises ``cause`` for a block of a DDL, and where a count was wrong and no row explains it; DriftError, with the
    table, for what must not be overwritten, and the errors of any block.
    """
    session = links.session
    guard = links.writer.guard
    rows = OverwritingRows(session, guard, fires_triggers=course.options.writer == "sql")
    writer = links.writer.with_rows(rows)

    def pieces() -> Iterator[Block]:
        for piece in course.source.pieces(place.lane, block.header if block.planned is None else block.planned):
            if block.header.first_seqno <= piece.header.first_seqno <= block.header.last_seqno:
                yield piece

    def write() -> RowCounts:
        written = RowCounts()
        for piece in pieces():
            items = tuple(piece.items)
            if any(item.kind is ItemKind.DDL for item in items):
                raise cause
            # for errors: this very transaction
            course.current = (place.lane, piece.header, place.expected)
            written += writer.write(items, piece.header.last_seqno)
        if not rows.conflicts and isinstance(cause, DriftError):
            raise cause
        session.own_clock()
        record_conflicts(session.cursor, course.key, place.lane, rows.conflicts)
        return written

    items = (item for piece in pieces() for item in piece.items)
    return rewrite_block(session, writer, place, replace(block, items=items), end, planned, write)
