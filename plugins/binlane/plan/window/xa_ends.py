"""A window's XA transactions: what is applied at each XA PREPARE, XA COMMIT and XA ROLLBACK.

From XA PREPARE to its end a prepared transaction holds the locks of the rows that it has changed, so rows may be
applied at the XA COMMIT, which may be in a later window. Its statements may not: MariaDB gives up the locks of what
they have only read and, when the connection ends, those of definitions, so that other transactions change rows that an
INSERT ... SELECT has read, or make a trigger (tried on 10.11; MySQL 9.7 keeps both, but not over a restart). No server
has locks on tables without transactions and on temporary tables, which statements change at once. So a transaction
with statements is applied at its XA PREPARE, as the servers' replicas do, and by what its end says: at an XA ROLLBACK
the statements run and are rolled back, as in any other rolled-back transaction of the log (``error_outcome.undone``);
if all tables are transactional on the target, and by the log on the source (``xa.AtOnce``), nothing is applied. Both
halves must be in one window for that: extraction ends a window before such a transaction that has not ended
(``source.xa_statements``).

Rows are written under the name that their table had at the XA PREPARE. No server of today lets another transaction
rename or drop the table before the end; MariaDB before 10.6.9 does when the connection has ended, and MySQL 5.7 behind
a restart.

The source's engines decide what a statement has changed at once, and the merge of scans knows the target's alone: where
it matters, and the log does not tell, it names the tables, which must be of one kind on both servers
(``precheck.storage_engines``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from binlane.errors import UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import ANY_TABLE, TableKey
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.transaction.temporary_tables import with_prepared
from binlane.plan.transaction.xa import NOTHING, AtOnce, Pairs, PreparedGroup, XaPrepareScan
from binlane.plan.window.scanned import ScannedWindow
from binlane.schema.model import Schema
from binlane.sql.parse.facts import StatementFacts, StatementKind


@dataclass(frozen=True, slots=True)
class XaEnds:
    """What is applied of XA transactions, and where."""

    groups: Mapping[int, PreparedGroup | None]
    """What each XA COMMIT applies, by its seqno: None if it is nothing."""
    at_prepare: Mapping[int, bool]
    """What is applied at the XA PREPARE, by its seqno: whether it is committed."""
    classes: Mapping[int, TransactionClass]
    """The class that decides the route, by the seqnos of both."""
    of_one_kind: frozenset[TableKey]
    """Tables that must be transactional on both servers or on neither, as ``error_outcome.tables_of_one_kind``: of
    statements that may have taken effect in spite of an XA ROLLBACK."""


def settle(window: ScannedWindow, pairs: Pairs, schema: Schema) -> XaEnds:
    """What is applied at the halves of XA transactions; tells their temporary tables. ``schema``: the target's.

    Raises UnsupportedEventError for changes that an XA ROLLBACK leaves and that are unknown.
    """
    ends = pairs.ends
    window.temporary, with_tables = with_prepared(window.temporary, ends, schema.letter_case)
    engines = _Engines.of(schema, window)
    groups: dict[int, PreparedGroup | None] = {
        seqno: None if each is None else each.group for seqno, each in pairs.commits.items()
    }
    classes = {seqno: NOTHING if each is None else each.described for seqno, each in pairs.commits.items()}
    at_prepare: dict[int, bool] = {}
    of_one_kind: set[TableKey] = set()
    for begin, (end, prepared) in ends.items():
        if not prepared.described.statements:
            continue
        if end in pairs.commits:
            groups[end], classes[end] = None, NOTHING
            at_prepare[begin], classes[begin] = True, prepared.described
            continue
        decided = frozenset(engines.decide(prepared))
        of_one_kind |= decided
        if begin in with_tables or decided or not engines.undo(prepared):
            if prepared.hidden is not None:
                raise _refused(prepared, prepared.hidden)
            at_prepare[begin], classes[begin] = False, prepared.undone
    return XaEnds(groups, at_prepare, classes, frozenset(of_one_kind))


def check_halves(window: ScannedWindow, pairs: Pairs) -> None:
    """Raises UnsupportedEventError for a transaction with statements whose other half is in another window, which
    extraction prevents."""
    here = {each.group.seqno for each in window.prepared}
    earlier = [each for begin, (_, each) in pairs.ends.items() if begin not in here]
    for prepared in (*pairs.carried_out, *earlier):
        if prepared.described.statements:
            raise _refused(
                prepared,
                "a prepared XA transaction with statements, whose end is in another window,",
                "if [filter] left the statements out when it was prepared, put it back until this window is finished; ",
            )


def check_names(window: ScannedWindow, pairs: Pairs, schema: Schema) -> None:
    """Raises UnsupportedEventError for rows of a table that a DDL of the window renames, drops or exchanges between the
    XA PREPARE and the end: on the source they are in the table that has another name by then."""
    waiting: list[tuple[int | None, XaPrepareScan]] = [
        (end, each) for end, each in pairs.commits.items() if each is not None
    ]
    waiting += [(None, each) for each in pairs.carried_out]
    if not any(each.tables for _, each in waiting):
        return
    table, here = schema.letter_case.table, {each.group.seqno for each in window.prepared}
    moving = {
        described: _moved(described, schema)
        for described in window.classes
        if any(statement.facts.commits_implicitly for statement in described.statements)
    }
    seqnos, places = window.transactions(moving)
    by_place = list(moving.values())
    moves = [(seqno, by_place[place]) for seqno, place in zip(seqnos.tolist(), places.tolist(), strict=True)]
    for end, prepared in waiting:
        names = {table(each): each for each in prepared.tables}
        begin = prepared.group.seqno if prepared.group.seqno in here else 0
        for seqno, moved in moves:
            if seqno < begin or (end is not None and seqno > end):
                continue
            found = sorted(str(names[key]) for key in moved & names.keys())
            if found:
                raise _refused(
                    prepared,
                    f"rows of {', '.join(found)}, which the DDL of seqno {seqno} renames, drops or exchanges before "
                    "the transaction ends,",
                    "begin the channel again behind it, see `Begin a channel again` in docs/recovery.md; ",
                )


def _moved(described: TransactionClass, schema: Schema) -> frozenset[TableKey]:
    """The names that mean another table, or none, behind the statements, as ``schema.letter_case`` compares them."""
    facts = [statement.facts for statement in described.statements]
    renamed = (key for each in facts for pair in each.moves for key in pair)
    return frozenset(
        map(schema.letter_case.table, (*renamed, *(k for each in facts for k in each.dropped | each.replaced)))
    )


def _refused(prepared: XaPrepareScan, what: str, advice: str = "") -> UnsupportedEventError:
    group = prepared.group
    before = f" up to it: `binlane run CHANNEL --until {group.gtid}`" if group.gtid else " before it"
    return UnsupportedEventError(
        f"{group.source}: XA PREPARE of {group.xid}: {what} cannot be applied by this version; nothing of the window "
        f"was written; {advice}a window may end{before}; see docs/conformance.md for what to do"
    )


@dataclass(frozen=True)
class _Engines:
    """What a ROLLBACK undoes, by the target's schema at the window's start and the window's definitions."""

    schema: Schema
    defined: frozenset[TableKey]
    """Tables that a DDL of the window names, whose engine it may change, as ``schema.letter_case`` compares them."""

    @classmethod
    def of(cls, schema: Schema, window: ScannedWindow) -> _Engines:
        """The engines of all tables at any time of the window."""
        facts = [statement.facts for described in window.classes for statement in described.statements]
        return cls(
            schema,
            frozenset(
                schema.letter_case.table(table) for each in facts if each.commits_implicitly for table in each.tables
            ),
        )

    def undo(self, prepared: XaPrepareScan) -> bool:
        """Whether all tables that the transaction's statements change are known to be transactional."""
        return all(
            not (facts.routines_used or facts.kind is StatementKind.UNKNOWN)
            and all(self._is_undone(table) for table in facts.written)
            for facts in (statement.facts for statement in prepared.described.statements)
        )

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

    def _touches_one(self, facts: StatementFacts) -> bool:
        """Whether the statement touches one table, known as transactional, and no other."""
        return len(facts.tables) == 1 and all(map(self._is_undone, facts.tables))

    def _is_undone(self, key: TableKey) -> bool:
        table = self.schema.table(key)
        # a trigger may change other tables
        is_defined = self.schema.letter_case.table(key) in self.defined
        return table is not None and table.transactional and not table.triggers and not is_defined
