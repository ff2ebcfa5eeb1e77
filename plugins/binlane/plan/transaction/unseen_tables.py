"""Temporary tables that were open where the channel begins: no window has their CREATE, and no copy of the source has
them.

Such a table may hide a permanent one of its name, and the log has its later statements as it has those of the permanent
one. Servers mark each statement that uses a temporary table of its connection, except RENAME TABLE, and few others:
those that ask for their connection (CONNECTION_ID(), also behind a trigger, a view or a default), a DELETE of several
tables, CREATE OR REPLACE and each DROP. In a body (of a procedure, of an event, of MariaDB's BEGIN NOT ATOMIC) each
statement behind such a one is marked, too, and the log does not show bodies. (Tried on MariaDB 10.11 and MySQL 9.7.)

So a mark proves nothing. What proves that a name is that of a temporary table:

- there is no permanent table of that name: not on the target, nor on the source (``Manifest.absent``), which is asked
  because a target may have lost one;
- the connection drops a temporary table of that name later, without a CREATE, a rename
  or a call of a routine in between. A server logs the
  DROP of each table that is open when its connection ends, and no DROP of a table that is not there (tried on MariaDB
  10.5, 10.11 and 11.8, and on MySQL 9.7). Extraction looks behind the window's end for it (``Manifest.later_drops``).

The marked statements of a connection that may be older than the channel (``Manifest.older_sessions``) are judged by
that:

- one that changes nothing but proved temporary tables is left out: nothing permanent depends on it;
- one that reads such a table and changes another cannot be repeated, and one of which nothing is proved is named, too;
- one that uses a table that the target lacks, of which the source says nothing, is left out and named.

A name proves nothing for another spelling of it, because a source may have ``Orders`` beside a temporary ``orders``; it
makes the other one doubtful, because a server that does not distinguish letters has one table of both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import field
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import RowCounts, TableKey
from binlane.plan.transaction.parts import FilteredPart, Part
from binlane.plan.transaction.temporary_tables import OpenTables, Session, TemporaryStep, alike, in_prepared
from binlane.schema.letter_case import LetterCase

UNSEEN_RULE: Final = "temporary tables of before the channel"
"""What a plan counts the statements under that are left out."""
UNSEEN: Final = "a temporary table of before the channel's beginning, of the connection"
"""Beginning of the name of an unsafe part: its statement is left out."""
UNSURE: Final = "what may be a temporary table of before the channel's beginning, of the connection"
"""The same, of a statement whose tables are not proved to be temporary, or that makes a table: it is applied as it is
logged."""
LACKING: Final = (
    "a table that the target lacks, perhaps a temporary one of before the channel's beginning, of connection"
)
"""The same, where only the target is known to have no such table: its statement is left out."""


@dataclass(frozen=True, slots=True)
class UnseenTables:
    """What is to be done about the statements of a window."""

    left_out: tuple[tuple[int, int], ...] = ()
    """Statements that are not applied: seqno, and number among the parts of the transaction."""
    unsafe: Mapping[str, int] = field(default_factory=dict)
    """What stands against others, with the first seqno of each."""

    @property
    def by_seqno(self) -> dict[int, set[int]]:
        """The statements that are left out of each transaction."""
        found: dict[int, set[int]] = {}
        for seqno, part in self.left_out:
            found.setdefault(seqno, set()).add(part)
        return found


def without(parts: Sequence[Part], numbers: Collection[int]) -> tuple[Part, ...]:
    """The parts of a transaction without the statements of these numbers, which are counted."""
    stay = [part for number, part in enumerate(parts) if number not in numbers]
    return (*stay, *(FilteredPart(UNSEEN_RULE, None, RowCounts()) for _ in numbers))


def judge(
    steps: Iterable[TemporaryStep],
    older_sessions: int,
    restarted: int | None,
    exists: Callable[[TableKey], bool],
    letters: LetterCase,
    later_drops: Iterable[tuple[Session, TableKey]] = (),
    absent: Set[TableKey] = frozenset(),
) -> tuple[list[TemporaryStep], UnseenTables]:
    """The steps of a window without those that are left out, and what is to be done.

    ``older_sessions``, ``restarted``, ``later_drops`` and ``absent``: see ``Manifest``. ``exists``: whether a permanent
    table of that name may exist on the target; ``letters``: the target's. Raises UnsupportedEventError for a prepared
    XA transaction that uses such a table.
    """
    ordered = sorted(steps, key=lambda step: (step.seqno, step.part))
    if not older_sessions:
        return ordered, UnseenTables()
    window = _Window(older_sessions, restarted, exists, absent, OpenTables(letters))
    proved = window.drops_behind(ordered, later_drops)
    stay = [step for step, names in zip(ordered, proved, strict=True) if not window.leaves_out(step, names)]
    return stay, UnseenTables(tuple(window.left_out), window.unsafe)


@dataclass(slots=True)
class _Window:
    older_sessions: int
    restarted: int | None
    exists: Callable[[TableKey], bool]
    absent: Set[TableKey]
    _seen: OpenTables
    """Whose CREATE is in the window."""
    left_out: list[tuple[int, int]] = field(default_factory=list)
    unsafe: dict[str, int] = field(default_factory=dict)
    _unseen: dict[Session, set[TableKey]] = field(default_factory=dict)
    """The names that have turned out to be those of unseen tables."""
    _callers: set[Session] = field(default_factory=set)

    def drops_behind(
        self, ordered: Sequence[TemporaryStep], later_drops: Iterable[tuple[Session, TableKey]]
    ) -> list[Set[TableKey]]:
        """For each step, the names like those of its tables (of a rename, old and new ones) that its connection drops
        later as temporary ones: no CREATE, no rename and no call of a routine lies in between."""
        dropped: dict[Session, set[TableKey]] = {}
        if self.restarted is None:
            for session, name in later_drops:
                dropped.setdefault(session, set()).add(name)
        found: list[Set[TableKey]] = []
        for step in reversed(ordered):
            if not self._may_be_older(step):
                found.append(frozenset())
                continue
            names = dropped.setdefault(step.session, set())
            if step.calls:
                # a routine may have made what is dropped behind it
                names.clear()
            if step.opened is not None:
                names -= alike([step.opened], names)
            names.update(step.closed)
            renamed = {name for pair in step.renamed for name in pair}
            found.append(alike(renamed or step.names.tables, names))
            # the table of before may have been another one, beside the temporary one that is dropped
            names -= alike(renamed, names)
        found.reverse()
        return found

    def leaves_out(self, step: TemporaryStep, dropped: Set[TableKey]) -> bool:
        """``dropped``: the names like those of its tables that are dropped later as temporary ones."""
        if not self._may_be_older(step):
            self._seen.take(step)
            return False
        unseen = self._unseen.setdefault(step.session, set())
        # a CREATE TEMPORARY reads, too
        leaves = not step.closed and self._judge(step, unseen, dropped)
        if step.calls:
            self._callers.add(step.session)
        if step.makes_or_drops:
            return self._takes_definition(step, unseen)
        if not leaves:
            self._seen.take(step)
            return False
        if step.in_xa:
            raise in_prepared(step.where)
        self.left_out.append((step.seqno, step.part))
        return True

    def _may_be_older(self, step: TemporaryStep) -> bool:
        if self.restarted is not None and step.seqno >= self.restarted:
            return False
        return step.session[1] <= self.older_sessions

    def _takes_definition(self, step: TemporaryStep, unseen: set[TableKey]) -> bool:
        """CREATE and DROP TEMPORARY: whether it drops nothing but unseen tables."""
        if step.opened is not None:
            unseen -= alike([step.opened], unseen)
            self._seen.take(step)
            return False
        unseen -= alike(step.closed, unseen)
        is_seen = any(self._seen.find(step.session, table) is not None for table in step.closed)
        self._seen.take(step)
        if is_seen or step.if_exists or step.session in self._callers:
            return False
        self.left_out.append((step.seqno, step.part))
        return True

    def _judge(self, step: TemporaryStep, unseen: set[TableKey], dropped: Set[TableKey]) -> bool:
        if step.renamed:
            return self._renames(step, unseen | dropped)
        tables = {table for table in step.names.tables if self._seen.find(step.session, table) is None}
        names = unseen | dropped
        sure, lacking = tables & names, set[TableKey]()
        is_marked = step.names.is_marked or step.opened is not None
        if is_marked and not step.calls and step.session not in self._callers:
            # a routine may have made it: ``lives`` and the precheck follow those
            lacking = {table for table in tables - sure if not self.exists(table)}
            sure |= lacking & self.absent
            lacking -= self.absent
        doubtful = {table for table in tables - sure if alike([table], names)}
        if step.names.makes and (sure or lacking or doubtful):
            self._name(UNSURE, step, sure | lacking | doubtful)
            return False
        if sure or lacking:
            unseen |= sure
            if lacking:
                self._name(LACKING, step, lacking)
            elif not step.names.written <= sure:
                self._name(UNSEEN, step, sure)
            return True
        # one that uses a table whose CREATE was seen is marked for that
        if doubtful or (tables and tables == step.names.tables and step.names.is_marked):
            self._name(UNSURE, step, tables)
        return False

    def _renames(self, step: TemporaryStep, temporary: Set[TableKey]) -> bool:
        """A rename of a temporary table is not told from one of a permanent table: MariaDB does not even mark RENAME
        TABLE. ``temporary``: names of the connection's temporary tables before or behind it."""
        tables = {name for pair in step.renamed for name in pair}
        if step.names.is_marked or alike(tables, temporary):
            self._name(UNSURE, step, tables)
        return False

    def _name(self, what: str, step: TemporaryStep, tables: Iterable[TableKey]) -> None:
        name = f"{what} {step.session[1]}: {', '.join(sorted(map(str, tables)))}"
        self.unsafe.setdefault(name, step.seqno)
