"""Which way a block takes, and after which end of which way which other way follows: all of it is in ``TABLE``.

A block that was read begins as ``Way.NEW``. What the table says behind it lasts for the run (``RunState.ways``), over
new connections, except of ROW_BY_ROW, which takes the failed block's own items. A way that no rule follows has ended:
its outcome counts, and its error is the lane's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from binlane.apply.block import Applied, Obstacle, Outcome
from binlane.apply.lane.ways.barrier import WholeBarrier
from binlane.apply.lane.ways.nontransactional import Nontransactional
from binlane.apply.lane.ways.row_by_row import RowByRow
from binlane.apply.lane.ways.transaction import Transaction
from binlane.apply.lane.ways.way import Way
from binlane.apply.nontransactional import is_refused
from binlane.apply.session.retry_verdicts import DEFINITION_CHANGED, LOCKED, error_code, is_drift
from binlane.apply.session.rollback import nothing_stayed
from binlane.apply.session.unlogged_null import UnloggedNullError
from binlane.lazy_dataclass import dataclass
from binlane.state.orders.orders import Orders

if TYPE_CHECKING:
    from binlane.apply.lane.ways.task import BlockTask


class Read(Enum):
    """In place of an outcome: no way has been taken yet."""

    BLOCK = "the block is the lane's next one"


Ending: TypeAlias = Outcome | Exception | Read
"""How a way has ended: its outcome or its error."""


class BlockWay(Protocol):
    """A way to apply a block. It keeps nothing from one block to the next."""

    def apply(self, task: BlockTask) -> Outcome:
        """Apply the block in a transaction of its own, as ``apply_block`` says."""
        ...


CLASSES: Final[Mapping[Way, BlockWay]] = {
    Way.TRANSACTION: Transaction(),
    Way.TRANSACTION_NULL_NOW: Transaction(null_is_now=True),
    Way.NONTRANSACTIONAL: Nontransactional(),
    Way.NONTRANSACTIONAL_NULL_NOW: Nontransactional(null_is_now=True),
    Way.ROW_BY_ROW: RowByRow(),
    Way.ROW_BY_ROW_NULL_NOW: RowByRow(null_is_now=True),
    Way.BARRIER: WholeBarrier(),
    Way.BARRIER_NOTE: WholeBarrier(has_note=True),
}
"""The other two give blocks: ``Pieces`` those of one lane, ``SharesAlone`` those of all lanes."""


def _is_barrier(task: BlockTask, ending: Ending) -> bool:
    return ending is Read.BLOCK and task.barrier is not None


def _is_barrier_with_note(task: BlockTask, ending: Ending) -> bool:
    return _is_barrier(task, ending) and _has_note(task, ending)


def _has_order_inside(task: BlockTask, ending: Ending) -> bool:
    """The lane stands inside the block, or a stop is inside it."""
    header = task.block.header
    return (
        ending is Read.BLOCK
        and task.barrier is None
        and task.block.planned is None
        and (task.place.expected >= header.first_seqno or task.lane.needs_pieces(header))
    )


def _has_note(task: BlockTask, ending: Ending) -> bool:
    """An earlier attempt has begun to change tables without transactions."""
    header, barrier = task.block.header, task.barrier
    first, last = (header.first_seqno, header.last_seqno) if barrier is None else (barrier.last, barrier.last)
    return ending is Read.BLOCK and task.lane.has_note(task.place.lane, first, last)


def _is_read(_: BlockTask, ending: Ending) -> bool:
    return ending is Read.BLOCK


def _needs_note(_: BlockTask, ending: Ending) -> bool:
    """An item may change a table without transactions, and its transaction has no note."""
    return ending is Obstacle.NOTE


def _is_refused(task: BlockTask, ending: Ending) -> bool:
    """The target takes a change of a table without transactions only by itself (1785)."""
    return isinstance(ending, Exception) and task.lane.allows_nontransactional and is_refused(ending, task.lane.session)


def _has_new_definition(task: BlockTask, ending: Ending) -> bool:
    """One of the block's transactions has added a partition, which those behind it cannot read in one with it."""
    several = task.block.header.transactions > 1
    return several and isinstance(ending, Exception) and error_code(ending) == DEFINITION_CHANGED


def _null_was_now(task: BlockTask, ending: Ending) -> bool:
    """The target refuses a NULL that was the current time on the source, and nothing of the block has stayed."""
    header = task.block.header
    return (
        isinstance(ending, UnloggedNullError)
        and nothing_stayed(task.lane.session)
        and task.lane.source.makes_null_now(header.first_seqno, header.last_seqno)
    )


def _rows_differ(task: BlockTask, ending: Ending) -> bool:
    """Rows of the target differ from those that the log expects, and the channel's policy writes them again."""
    return isinstance(ending, Exception) and task.lane.rewrites and is_drift(ending)


def _is_skipped_in_part(task: BlockTask, ending: Ending) -> bool:
    """Some of the block's transactions are to be skipped."""
    return isinstance(ending, Orders) and bool(ending.skipped) and not ending.forbids(task.block.header.last_seqno)


def _meets_lock(task: BlockTask, ending: Ending) -> bool:
    """A share that was to commit with the others met a lock, which perhaps a lane has that waits for this one."""
    return task.place.agree is not None and isinstance(ending, Exception) and error_code(ending) in LOCKED


def _is_withdrawn(_: BlockTask, ending: Ending) -> bool:
    """The other lanes have not come to commit with this one."""
    return ending is Obstacle.AGREEMENT


@dataclass(frozen=True, slots=True)
class Rule:
    """If one of ``ways`` ends as ``when`` says, this way follows."""

    ways: frozenset[Way]
    when: Callable[[BlockTask, Ending], bool]
    several: Way
    """For a block of several transactions."""
    single: Way
    """For a block of one."""


def _rule(ways: Way | tuple[Way, ...], when: Callable[[BlockTask, Ending], bool], several: Way, single: Way) -> Rule:
    return Rule(frozenset((ways,) if isinstance(ways, Way) else ways), when, several, single)


_START: Final = (Way.NEW, Way.PIECES, Way.SHARES_ALONE)
"""A share that was to be applied alone is a block again once another lane has committed its own."""
_PLAIN: Final = (Way.TRANSACTION, Way.ROW_BY_ROW)
_PLAIN_NULL_NOW: Final = (Way.TRANSACTION_NULL_NOW, Way.ROW_BY_ROW_NULL_NOW)
_ONE: Final = (*_PLAIN, *_PLAIN_NULL_NOW)
"""The ways whose rollback undoes everything."""
_ANY: Final = tuple(Way)

# fmt: off

TABLE: Final[tuple[Rule, ...]] = (
    #     the way before             has ended so           several transactions:     one transaction:
    _rule(_START,                    _is_barrier_with_note, Way.BARRIER_NOTE,         Way.BARRIER_NOTE),
    _rule(_START,                    _is_barrier,           Way.BARRIER,              Way.BARRIER),
    _rule(_ANY,                      _has_order_inside,     Way.PIECES,               Way.PIECES),
    _rule(_START,                    _has_note,             Way.PIECES,               Way.NONTRANSACTIONAL),
    _rule(Way.TRANSACTION_NULL_NOW,  _has_note,             Way.PIECES,               Way.NONTRANSACTIONAL_NULL_NOW),
    _rule(_START,                    _is_read,              Way.TRANSACTION,          Way.TRANSACTION),
    _rule(Way.BARRIER,               _needs_note,           Way.BARRIER_NOTE,         Way.BARRIER_NOTE),
    _rule(_PLAIN,                    _needs_note,           Way.PIECES,               Way.NONTRANSACTIONAL),
    _rule(_PLAIN_NULL_NOW,           _needs_note,           Way.PIECES,               Way.NONTRANSACTIONAL_NULL_NOW),
    _rule(Way.TRANSACTION,           _is_refused,           Way.PIECES,               Way.NONTRANSACTIONAL),
    _rule(Way.TRANSACTION_NULL_NOW,  _is_refused,           Way.PIECES,               Way.NONTRANSACTIONAL_NULL_NOW),
    _rule(_ONE,                      _has_new_definition,   Way.PIECES,               Way.PIECES),
    _rule(Way.TRANSACTION,           _null_was_now,         Way.PIECES,               Way.TRANSACTION_NULL_NOW),
    _rule(Way.NONTRANSACTIONAL,      _null_was_now,         Way.PIECES,               Way.NONTRANSACTIONAL_NULL_NOW),
    _rule(Way.TRANSACTION,           _rows_differ,          Way.ROW_BY_ROW,           Way.ROW_BY_ROW),
    _rule(Way.TRANSACTION_NULL_NOW,  _rows_differ,          Way.ROW_BY_ROW_NULL_NOW,  Way.ROW_BY_ROW_NULL_NOW),
    _rule((*_ONE, Way.SHARES_ALONE), _is_skipped_in_part,   Way.PIECES,               Way.PIECES),
    _rule(_ONE,                      _meets_lock,           Way.SHARES_ALONE,         Way.SHARES_ALONE),
    _rule(_ONE,                      _is_withdrawn,         Way.NEW,                  Way.NEW),
)
# fmt: on
"""Read from top to bottom: the first rule that holds counts."""


def following(task: BlockTask, ending: Ending) -> Way | None:
    """The way that follows the task's; None if that one has ended for good."""
    if isinstance(ending, Applied):
        return None
    for rule in TABLE:
        if task.way in rule.ways and rule.when(task, ending):
            return rule.several if task.block.header.transactions > 1 else rule.single
    return None
