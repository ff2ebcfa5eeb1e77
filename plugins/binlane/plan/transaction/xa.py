"""XA transactions in two halves: their changes are logged at XA PREPARE and take effect at XA COMMIT.

A prepared transaction of rows is applied at the seqno of its XA COMMIT, as if it had been logged there: until then its
locks kept other transactions from its rows. One with statements is applied at its XA PREPARE, by what its end says:
from then on other transactions may change what its statements have read (``plan.window.xa_ends``). The XID joins the
two halves, across segments and, through the ``binlane`` schema of the target, across windows. The scan lists both
halves, the merge of scans pairs them, and the map of a segment reads the rows of an XA COMMIT from the segment that
holds the XA PREPARE.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Final, Protocol

from binlane.binlog.gtids import MariadbGtidFlag, XaName
from binlane.binlog.transactions import Ending, Transaction
from binlane.binlog.wire import SegmentOffset
from binlane.errors import PlanError, UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition, TableKey
from binlane.plan.transaction import error_outcome
from binlane.plan.transaction.decode import LogFormat, Part, RowsPart, dissect
from binlane.plan.transaction.parts import FilteredPart, MapPart
from binlane.plan.transaction.route_key import TransactionClass, classify
from binlane.plan.transaction.temporary_tables import TemporaryStep, steps


@dataclass(frozen=True, slots=True)
class PreparedGroup:
    """The first half of an XA transaction: its XID, and where its events are."""

    xid: str
    """The XID as servers log it: ``X'6731',X'62',7``."""
    seqno: int
    gtid: str
    source: LogPosition
    """Its begin in the source's log."""
    rows: int
    """Row changes of the transaction."""
    file: str
    """The segment that holds it: path in the window's folder."""
    start: SegmentOffset
    end: SegmentOffset
    """Offsets in that file as it is stored, not in its decompressed form."""


class AtOnce(StrEnum):
    """What of a prepared transaction's statements may have taken effect when they ran, by the log: changes of tables
    without transactions. (Tried on MariaDB 10.5, 10.11 and 11.8 and on MySQL 9.7.)"""

    NOTHING = "nothing"
    """MySQL with GTIDs refuses them (error 1785)."""
    BESIDE_OTHERS = "beside others"
    """Only of statements that also touch other tables. MariaDB marks the transaction as one that can be rolled back,
    and this mark overlooks them with ``binlog_direct_non_transactional_updates``, which has all other statements that
    change a table without transactions logged in front of the transaction."""
    ANYTHING = "anything"


@dataclass(frozen=True, slots=True)
class XaPrepareScan:
    """An XA PREPARE, found by the scan."""

    name: XaName
    group: PreparedGroup
    described: TransactionClass
    """Decides the route if it is committed."""
    undone: TransactionClass
    """Decides the route if an XA ROLLBACK leaves changes."""
    hidden: str | None = None
    """Why it is unknown what an XA ROLLBACK leaves."""
    at_once: AtOnce = AtOnce.ANYTHING
    tables: frozenset[TableKey] = frozenset()
    """Of its row events."""


@dataclass(frozen=True, slots=True)
class XaEnd:
    """An XA COMMIT or XA ROLLBACK, found by the scan."""

    name: XaName
    seqno: int
    commits: bool
    source: LogPosition


@dataclass(slots=True)
class Halves:
    """Collects what a segment holds of XA transactions and temporary tables, which may reach into other segments."""

    prepared: list[XaPrepareScan] = field(default_factory=list)
    resolved: list[XaEnd] = field(default_factory=list)
    temporary: list[TemporaryStep] = field(default_factory=list)

    def classify(
        self, seqno: int, transaction: Transaction, log: LogFormat, file: str
    ) -> tuple[TransactionClass, bool]:
        """The class of a transaction of the segment ``file``; False with it if only the other half has the class.

        Raises UnsupportedEventError for anything that cannot be applied exactly, in a prepared transaction as well.
        """
        parts = dissect(transaction, log)
        described = classify(parts)
        found = steps(seqno, parts, str(log.position(transaction)))
        if transaction.ending is Ending.XA_PREPARE:
            # a server also marks statements that only might use a temporary table
            found = [replace(step, prepared=True, in_xa=True) for step in found]
        self.temporary += found
        if transaction.ending not in _HALVES or (transaction.ending is Ending.XA_ROLLBACK and parts):
            return described, True
        name = transaction.xa
        if name is None:
            raise UnsupportedEventError(
                f"{log.position(transaction)}: {transaction.ending}: expected an XID, found none; the log is damaged"
            )
        if transaction.ending is Ending.XA_PREPARE:
            rows = sum(part.counts.total for part in parts if isinstance(part, RowsPart))
            group = PreparedGroup(
                str(name), seqno, transaction.gtid, log.position(transaction), rows,
                file, log.segment_offset(transaction.start), log.segment_offset(transaction.end),
            )  # fmt: skip
            at_once = _at_once(transaction, log)
            undone, hidden = rolled_back(parts, keeps_engines_apart=at_once is AtOnce.NOTHING)
            tables = frozenset(
                TableKey(part.table.database, part.table.table) for part in parts if isinstance(part, MapPart)
            )
            self.prepared.append(XaPrepareScan(name, group, described, classify(undone), hidden, at_once, tables))
            return NOTHING, True
        commits = transaction.ending is Ending.XA_COMMIT
        self.resolved.append(XaEnd(name, seqno, commits, log.position(transaction)))
        return NOTHING, not commits


def _at_once(transaction: Transaction, log: LogFormat) -> AtOnce:
    if log.format.flavor is Flavor.MYSQL:
        return AtOnce.ANYTHING if transaction.gtid == "" else AtOnce.NOTHING
    can_be_undone = transaction.group_flags & MariadbGtidFlag.TRANSACTIONAL
    return AtOnce.BESIDE_OTHERS if can_be_undone else AtOnce.ANYTHING


class Groups(Protocol):
    """The parts of prepared transactions, which other segments may hold."""

    def parts(self, seqno: int) -> tuple[Part, ...]:
        """The changes that the XA COMMIT at ``seqno`` commits."""
        ...

    def is_committed(self, seqno: int) -> bool | None:
        """Of an XA transaction that is applied at its XA PREPARE, whether it is committed; None for any other."""
        ...


class NoGroups:
    """For logs without XA transactions."""

    def parts(self, seqno: int) -> tuple[Part, ...]:
        """Raises PlanError: the scan has seen no XA COMMIT."""
        raise PlanError(f"seqno {seqno}: an XA COMMIT that the scan did not see; run the plan job again")

    def is_committed(self, seqno: int) -> bool | None:
        """None: no XA PREPARE is applied."""
        return None


def rolled_back(parts: tuple[Part, ...], *, keeps_engines_apart: bool) -> tuple[tuple[Part, ...], str | None]:
    """The parts of a prepared transaction and what undoes them, as ``error_outcome.undone``."""
    changes = [part for part in parts if not isinstance(part, FilteredPart)]
    undone, hidden = error_outcome.undone(changes, keeps_engines_apart=keeps_engines_apart)
    return (*undone, *(part for part in parts if isinstance(part, FilteredPart))), hidden


def parts_at(seqno: int, transaction: Transaction, log: LogFormat, groups: Groups) -> tuple[Part, ...]:
    """The parts to apply at ``seqno``: a prepared transaction's at its XA PREPARE or at its end.

    Raises UnsupportedEventError, as ``decode.dissect``.
    """
    match transaction.ending:
        case Ending.XA_PREPARE:
            match groups.is_committed(seqno):
                case None:
                    return ()
                case True:
                    return dissect(transaction, log)
                case False:
                    # the scan has found no reason to refuse it
                    return rolled_back(dissect(transaction, log), keeps_engines_apart=False)[0]
        case Ending.XA_COMMIT:
            return groups.parts(seqno)
        case _:
            # an XA ROLLBACK without XA PREPARE has its own changes
            return dissect(transaction, log)


@dataclass(frozen=True, slots=True)
class Pairs:
    """All halves of a window, paired."""

    commits: Mapping[int, XaPrepareScan | None]
    """What each XA COMMIT commits, by its seqno; None if an operator has declared that the target has the changes."""
    rollbacks: Mapping[int, XaPrepareScan]
    """What each XA ROLLBACK undoes, by its seqno."""
    carried_in: tuple[PreparedGroup, ...]
    """Prepared in earlier windows and ended in this one; with seqno 0 if the target had the changes already."""
    carried_out: tuple[XaPrepareScan, ...]
    """Prepared in this window and not ended in it."""

    @property
    def ends(self) -> dict[int, tuple[int, XaPrepareScan]]:
        """The transactions whose ends are in this window: seqno of the end, by that of the XA PREPARE."""
        ended = ((seqno, each) for seqno, each in (*self.commits.items(), *self.rollbacks.items()) if each is not None)
        return {each.group.seqno: (seqno, each) for seqno, each in ended}


def pair(
    prepared: Iterable[XaPrepareScan], resolved: Iterable[XaEnd], carried: Iterable[XaPrepareScan], done: Iterable[str]
) -> Pairs:
    """Pair a window's halves. ``carried``: prepared in earlier windows; ``done``: XIDs whose changes the target has.

    Raises UnsupportedEventError for an XA COMMIT of a transaction that was prepared before the channel began, and for
    an XID that is prepared twice.
    """
    earlier = list(carried)
    open_: dict[XaName, XaPrepareScan | None] = {each.name: each for each in earlier}
    open_ |= {_name(text): None for text in done}
    commits: dict[int, XaPrepareScan | None] = {}
    rollbacks: dict[int, XaPrepareScan] = {}
    ended: list[PreparedGroup] = []
    steps: list[XaPrepareScan | XaEnd] = [*prepared, *resolved]
    for step in sorted(steps, key=_seqno):
        if isinstance(step, XaPrepareScan):
            check_new(step.name, open_, str(step.group.source))
            open_[step.name] = step
            continue
        key = find(step.name, open_)
        if key is None:
            # a rollback needs no first half: its changes were never on the target
            if step.commits:
                raise unknown(step.name, str(step.source))
            continue
        group = open_.pop(key)
        if group is None:
            nowhere = SegmentOffset(0)
            ended.append(PreparedGroup(str(key), 0, "", LogPosition("", 0), 0, "", nowhere, nowhere))
        elif group in earlier:
            ended.append(group.group)
        if step.commits:
            commits[step.seqno] = group
        elif group is not None:
            rollbacks[step.seqno] = group
    left = (each for each in open_.values() if each is not None and each not in earlier)
    return Pairs(commits, rollbacks, tuple(ended), tuple(left))


def _seqno(step: XaPrepareScan | XaEnd) -> int:
    return step.group.seqno if isinstance(step, XaPrepareScan) else step.seqno


def xa_name(text: str) -> XaName | None:
    """The XID of a text in the servers' own form; None for any other text."""
    given = text.strip().upper()
    name = XaName.of_statement(given.encode())
    return name if name is not None and str(name).upper() == given else None


def _name(text: str) -> XaName:
    name = xa_name(text)
    if name is None:
        raise PlanError(f"{text!r} is not an XID; expected the form X'6731',X'62',7")
    return name


def find(name: XaName, known: Iterable[XaName]) -> XaName | None:
    """The open XID that a statement means. MariaDB, and MySQL 5.7 and older, compare XIDs without their format id; no
    server has two that differ in it alone (tried on MariaDB 10.11 and MySQL 9.7)."""
    names = list(known)
    if name in names:
        return name
    loose = [each for each in names if (each.gtrid, each.bqual) == (name.gtrid, name.bqual)]
    return loose[0] if len(loose) == 1 else None


def check_new(name: XaName, known: Iterable[XaName], where: str) -> None:
    """Raises UnsupportedEventError if the XID is open already."""
    if name in known:
        raise UnsupportedEventError(
            f"{where}: XA PREPARE of {name}, which is prepared already and has not ended: the source has "
            "lost the first one in a crash that its log does not show; nothing of the window was written; if the "
            f'first one was prepared in an earlier window, `binlane xa CHANNEL --forget "{name}"` removes it; '
            "otherwise begin a new channel after it"
        )


def unknown(name: XaName, where: str) -> UnsupportedEventError:
    """The error for an XA COMMIT without an XA PREPARE."""
    return UnsupportedEventError(
        f"{where}: XA COMMIT of {name}: its XA PREPARE is before the place where the channel begins, so its "
        "changes are unknown; nothing of the window was written; begin a channel before the XA PREPARE, or bring "
        f'the changes to the target and record that: `binlane xa CHANNEL --done "{name}"`'
    )


_HALVES: Final = frozenset({Ending.XA_PREPARE, Ending.XA_COMMIT, Ending.XA_ROLLBACK})
NOTHING: Final = TransactionClass(frozenset(), ())
"""The class of a transaction without changes."""
