"""The ends of a window's XA transactions: what is applied at each XA COMMIT and XA ROLLBACK.

A server changes temporary tables and tables without transactions when a statement runs, before XA PREPARE, and no XA
ROLLBACK undoes it. (In row format such changes are not logged in the XA transaction.) A prepared transaction is applied
at its end, all in one: exact for temporary tables, which nobody else uses, and for other tables without transactions if
nothing is applied between XA PREPARE and end. At an XA ROLLBACK its statements run and are rolled back, as in any
other rolled-back transaction of the log (``error_outcome.undone``); if all its tables are transactional on the target,
and by the log on the source (``xa.AtOnce``), nothing is applied.

The source's engines decide what a statement has changed at once, and the merge of scans knows the target's alone: where
it matters, and the log does not tell, it names the tables, which must be of one kind on both servers
(``precheck.storage_engines``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from binlane.errors import UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import ANY_TABLE, TableKey
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.transaction.temporary_tables import where_they_end
from binlane.plan.transaction.xa import NOTHING, AtOnce, Pairs, PreparedGroup, XaPrepareScan
from binlane.plan.window.scanned import ScannedWindow
from binlane.schema.model import Schema
from binlane.sql.parse.facts import StatementFacts, StatementKind


@dataclass(frozen=True, slots=True)
class XaEnds:
    """What is applied where XA transactions end, by the seqno of the end."""

    groups: Mapping[int, PreparedGroup | None]
    """Every XA COMMIT, with None if the target has its changes, and every XA ROLLBACK that leaves changes."""
    classes: Mapping[int, TransactionClass]
    """The class that decides the route, by the same seqnos."""
    of_one_kind: frozenset[TableKey]
    """Tables that must be transactional on both servers or on neither, as ``error_outcome.tables_of_one_kind``: of
    statements that may have taken effect before the end, or in spite of an XA ROLLBACK."""


def settle(window: ScannedWindow, pairs: Pairs, restarts: Sequence[int], schema: Schema) -> XaEnds:
    """What is applied at the ends of XA transactions; moves their temporary tables there. ``schema``: the target's.

    Raises UnsupportedEventError for changes that would be applied too late, or that an XA ROLLBACK leaves and that are
    unknown.
    """
    ends = {begin: end for begin, (end, _) in pairs.ends.items()}
    window.temporary, with_tables = where_they_end(window.temporary, ends, restarts)
    engines = _Engines.of(schema, window)
    prepares = {each.group.seqno for each in window.prepared}
    groups: dict[int, PreparedGroup | None] = {
        seqno: None if each is None else each.group for seqno, each in pairs.commits.items()
    }
    classes = {seqno: NOTHING if each is None else each.described for seqno, each in pairs.commits.items()}
    of_one_kind: set[TableKey] = set()
    for begin, (end, prepared) in pairs.ends.items():
        is_late = not all(seqno in prepares for seqno in range(begin + 1, end))
        if is_late:
            _check(prepared, engines, "other transactions lie between its XA PREPARE and its end")
        decided = frozenset(engines.decide(prepared))
        if is_late or end in pairs.rollbacks:
            of_one_kind |= decided
        if end in pairs.rollbacks and (end in with_tables or decided or not engines.undo(prepared)):
            if prepared.hidden is not None:
                raise _refused(prepared, prepared.hidden)
            groups[end], classes[end] = prepared.group, prepared.undone
    for prepared in pairs.carried_out:
        _check(prepared, engines, "it has not ended in this window")
        of_one_kind.update(engines.decide(prepared))
    return XaEnds(groups, classes, frozenset(of_one_kind))


def _check(prepared: XaPrepareScan, engines: _Engines, why: str) -> None:
    kept = min(map(str, engines.kept(prepared)), default=None)
    if kept is not None:
        what = f"a prepared XA transaction that has changed {kept}, a table without transactions, before its end"
        raise _refused(prepared, f"{what}, and {why},")
    if engines.hide(prepared):
        what = "a prepared XA transaction that may have changed a table without transactions before its end, behind a"
        raise _refused(prepared, f"{what} routine, trigger or view, and {why},")


def _refused(prepared: XaPrepareScan, what: str) -> UnsupportedEventError:
    group = prepared.group
    before = f" up to it: `binlane run CHANNEL --until {group.gtid}`" if group.gtid else " before it"
    return UnsupportedEventError(
        f"{group.source}: XA PREPARE of {group.xid}: {what} cannot be applied by this version; nothing of the window "
        f"was written; a window may end{before}; see docs/conformance.md for what to do"
    )


@dataclass(frozen=True)
class _Engines:
    """What a ROLLBACK undoes, by the target's schema at the window's start and the window's definitions."""

    schema: Schema
    defined: frozenset[str]
    """Tables that a DDL of the window names, whose engine it may change."""
    without: frozenset[str]
    """Tables that the window makes, and that have no transactions."""

    @classmethod
    def of(cls, schema: Schema, window: ScannedWindow) -> _Engines:
        """The engines of all tables at any time of the window."""
        facts = [statement.facts for described in window.classes for statement in described.statements]
        definitions = [each for each in facts if each.commits_implicitly]
        defined = frozenset(_any_case(table) for each in definitions for table in each.tables)
        pairs = {(_any_case(old), _any_case(new)) for each in definitions for old, new in (*each.renames, *each.copies)}
        without = (
            {_any_case(key) for key, table in schema.tables.items() if not table.transactional} if pairs else set()
        )
        without |= {_any_case(table) for table in window.kept}
        while more := {new for old, new in pairs if old in without} - without:
            without |= more
        return cls(schema, defined, frozenset(without))

    def undo(self, prepared: XaPrepareScan) -> bool:
        """Whether all tables that the transaction's statements change are known to be transactional."""
        return all(
            not (facts.routines_used or facts.kind is StatementKind.UNKNOWN)
            and all(self._is_undone(table) for table in facts.written)
            for facts in (statement.facts for statement in prepared.described.statements)
        )

    def kept(self, prepared: XaPrepareScan) -> Iterator[TableKey]:
        """The tables without transactions that the statements change."""
        for statement in prepared.described.statements:
            for key in statement.facts.written:
                table = self.schema.table(key)
                if _any_case(key) in self.without or (table is not None and not table.transactional):
                    yield key

    def decide(self, prepared: XaPrepareScan) -> Iterator[TableKey]:
        """The tables whose engines on the source decide what the statements have changed at once; ``ANY_TABLE`` stands
        for those that a statement does not name."""
        if prepared.at_once is AtOnce.NOTHING:
            return
        for statement in prepared.described.statements:
            facts = statement.facts
            if facts.routines_used or facts.kind is StatementKind.UNKNOWN:
                yield ANY_TABLE
            if prepared.at_once is AtOnce.ANYTHING or not self._touches_one(facts):
                yield from facts.written

    def hide(self, prepared: XaPrepareScan) -> bool:
        """Whether the statements may have changed tables without transactions that they do not name."""
        if prepared.at_once is AtOnce.NOTHING or not self._some_without:
            return False
        return any(self._reaches_further(statement.facts) for statement in prepared.described.statements)

    def _reaches_further(self, facts: StatementFacts) -> bool:
        if facts.routines_used or facts.kind is StatementKind.UNKNOWN:
            return True
        folded = {_any_case(key) for key in facts.written}
        return bool(folded & self._with_hidden)

    def _touches_one(self, facts: StatementFacts) -> bool:
        """Whether the statement touches one table, known as transactional, and no other."""
        return len(facts.tables) == 1 and all(map(self._is_undone, facts.tables))

    @cached_property
    def _with_hidden(self) -> frozenset[str]:
        """Views, and tables with triggers."""
        return frozenset(map(_any_case, (*self.schema.views, *self.schema.tables_with_triggers)))

    @cached_property
    def _some_without(self) -> bool:
        return bool(self.without) or any(not table.transactional for table in self.schema.tables.values())

    def _is_undone(self, key: TableKey) -> bool:
        table = self.schema.table(key)
        # a trigger may change other tables
        return table is not None and table.transactional and not table.triggers and _any_case(key) not in self.defined


def _any_case(table: TableKey) -> str:
    return str(table).casefold()
