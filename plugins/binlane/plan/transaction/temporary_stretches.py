"""Temporary tables with an implicit commit in their life: several transactions, with copies of the tables in between.

A statement that commits implicitly (a DDL of any connection, an account statement) cannot be part of a target
transaction. So the statements of a life that use its tables are cut into stretches at such statements, one transaction
each. With the position at a stretch's end commits a copy of each open table, in the schema of the state: a connection
that has lost the tables makes them again from the copies (``apply.temporary_copies``). Transactions between two
stretches are applied as usual. docs/decisions/0005 has the alternatives that were tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import groupby

from binlane.errors import UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey, TemporaryCopies
from binlane.plan.transaction.temporary_tables import Leftover, Life, OpenTables, Session, TemporaryStep
from binlane.schema.letter_case import LetterCase


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of seqnos of the serialized lane."""

    first: int
    last: int
    together: bool
    """One transaction; False for a single statement that commits implicitly."""
    copies: TemporaryCopies | None
    """None if the stretch is a whole life."""
    leftovers: tuple[Leftover, ...] = ()


def stretches(
    life: Life, steps: Iterable[TemporaryStep], commits: Iterable[int], letters: LetterCase
) -> Iterator[Stretch]:
    """The stretches of a life, ascending. ``steps``: the window's; ``commits``: seqnos that commit implicitly;
    ``letters``: the target's.

    Raises UnsupportedEventError for tables that cannot be copied, and for a statement of which it is unknown whether it
    changes temporary tables, or that changes other tables as well.
    """
    inside = [seqno for seqno in commits if life.first <= seqno <= life.last]
    if not inside:
        yield Stretch(life.first, life.last, True, None, life.leftovers)
        return
    found = list(_Cut(life, tuple(steps), inside, OpenTables(letters)).stretches())
    *before, last = found
    yield from before
    if last.copies is not None and (last.together or last.copies.kept is not None):
        # otherwise the lane's session drops the tables that the source has lost when it reaches the next life
        last = replace(last, copies=TemporaryCopies(last.copies.since, ()), leftovers=life.leftovers)
    yield last


@dataclass(slots=True)
class _Cut:
    life: Life
    steps: Sequence[TemporaryStep]
    commits: Sequence[int]
    _tables: OpenTables
    _not_copied: dict[tuple[Session, TableKey], str] = field(default_factory=dict)
    _since: int | None = None

    def stretches(self) -> Iterator[Stretch]:
        if self.life.by_routine:
            raise self._refused(self.life.where, "a routine created it, and the log does not contain its definition")
        # one that has not ended is applied in another window
        steps = (step for step in self.steps if not step.prepared)
        own = [step for step in steps if self.life.first <= step.seqno <= self.life.last]
        own.sort(key=lambda step: step.seqno)
        for _, group in groupby(own, key=self._group):
            yield from self._stretch(tuple(group))

    def _group(self, step: TemporaryStep) -> tuple[int, bool]:
        """Group key: one group between two implicit commits, and one for each implicit commit."""
        return sum(seqno < step.seqno for seqno in self.commits), step.seqno in self.commits

    def _follow(self, group: Sequence[TemporaryStep]) -> bool:
        """Take the group's steps; returns whether temporary tables or their rows differ afterwards."""
        changes = False
        for step in group:
            changes = changes or step.ddl is None or self._changes(step)
            self._tables.take(step)
            if step.opened is not None and step.not_copied is not None:
                self._not_copied[step.session, step.opened] = step.not_copied
        return changes

    def _changes(self, step: TemporaryStep) -> bool:
        """Whether a statement that commits implicitly changes its connection's temporary tables."""
        assert step.ddl is not None
        if not self._tables.has(step.session):
            return False
        if step.ddl.reason is not None:
            raise self._refused(step.where, f"a statement of its connection cannot be parsed ({step.ddl.reason})")
        temporary = {table for table in step.ddl.tables if self._tables.find(step.session, table) is not None}
        if step.ddl.only_reads or not temporary:
            return False
        renames, permanent = self._tables.renamed(step)
        if not renames and step.renamed and step.ddl.in_turn:
            return False
        exact = {table for owner, table in self._tables.tables if owner == step.session}
        if step.ddl.can_be_divided and temporary <= exact:
            # the lane runs it as two statements (``apply.divided_rename``)
            return True
        if others := permanent | (step.ddl.tables - temporary - {name for pair in step.renamed for name in pair}):
            what = f"one statement changes both it and {min(map(str, others))}, which is not a temporary table"
            raise self._refused(step.where, what)
        return True

    def _stretch(self, group: Sequence[TemporaryStep]) -> Iterator[Stretch]:
        first, last, since = group[0].seqno, group[-1].seqno, self._since
        alone = first in self.commits
        concerned = any(self._tables.has(step.session) for step in group)
        changes = self._follow(group)
        if alone and not concerned:
            # the statement depends on its connection, but not by a temporary table
            return
        kept: tuple[tuple[int, str, str], ...] | None = None
        if changes:
            for key, why in self._not_copied.items():
                if key in self._tables.tables:
                    raise self._refused(self._tables.tables[key], f"no copy can hold {key[1]}: {why}")
            open_now = sorted((session[1], table.database, table.table) for session, table in self._tables.tables)
            kept, self._since = tuple(open_now), last
        yield Stretch(first, last, not alone, TemporaryCopies(since, kept))

    def _refused(self, where: str, why: str) -> UnsupportedEventError:
        return UnsupportedEventError(
            f"{where}: a temporary table in a statement-based log is open from seqno {self.life.first} to "
            f"{self.life.last}, and seqno {self.commits[0]} commits implicitly, so copies of the table are needed: "
            f"{why}; nothing of the window was written; binlog_format = ROW on the source keeps temporary tables "
            "out of its log from then on"
        )
