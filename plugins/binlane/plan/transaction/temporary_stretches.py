"""A life of temporary tables that something commits in: several transactions, with copies of the tables between them.

What commits by itself (a DDL of any connection, an account statement) cannot be part of a transaction on the target. So
the statements of a life that use its tables become stretches, each one transaction, cut where such a statement stands.
With the position at the end of a stretch commits a copy of each table that is open there, in the schema of the state: a
connection that has lost the tables makes them again from it (``apply.temporary_copies``). What stands between two
stretches is applied as anywhere else. docs/decisions/0005 says what was tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from binlane.errors import UnsupportedEventError
from binlane.model import TableKey, TemporaryCopies
from binlane.plan.transaction.temporary_tables import Leftover, Life, OpenTables, Session, TemporaryStep


@dataclass(frozen=True, slots=True)
class Stretch:
    """Seqnos of the serialized lane."""

    first: int
    last: int
    together: bool
    """One transaction; else one statement that commits by itself."""
    copies: TemporaryCopies | None
    """None: the stretch is a whole life."""
    leftovers: tuple[Leftover, ...] = ()


def stretches(life: Life, steps: Iterable[TemporaryStep], commits: Iterable[int]) -> Iterator[Stretch]:
    """The stretches of a life, ascending. ``steps``: the window's; ``commits``: seqnos that commit by themselves.

    Raises UnsupportedEventError for what no copy can hold, and for a statement that changes temporary tables of which
    it cannot be told, or others beside them.
    """
    inside = [seqno for seqno in commits if life.first <= seqno <= life.last]
    if not inside:
        yield Stretch(life.first, life.last, True, None, life.leftovers)
        return
    found = list(_Cut(life, tuple(steps), inside).stretches())
    *before, last = found
    yield from before
    if last.copies is not None and (last.together or last.copies.kept is not None):
        # else what the source has lost with its connection goes when the lane's session meets another life
        last = replace(last, copies=TemporaryCopies(last.copies.since, ()), leftovers=life.leftovers)
    yield last


@dataclass(slots=True)
class _Cut:
    life: Life
    steps: Sequence[TemporaryStep]
    commits: Sequence[int]
    _tables: OpenTables = field(default_factory=OpenTables)
    _not_copied: dict[tuple[Session, TableKey], str] = field(default_factory=dict)
    _since: int | None = None

    def stretches(self) -> Iterator[Stretch]:
        if self.life.by_routine:
            raise self._refused(self.life.where, "a routine created it, and the log does not contain its definition")
        own = [step for step in self.steps if self.life.first <= step.seqno <= self.life.last]
        own.sort(key=lambda step: step.seqno)
        for _, group in groupby(own, key=self._group):
            yield from self._stretch(tuple(group))

    def _group(self, step: TemporaryStep) -> tuple[int, bool]:
        """Steps between two statements that commit by themselves, or those of one."""
        return sum(seqno < step.seqno for seqno in self.commits), step.seqno in self.commits

    def _follow(self, group: Sequence[TemporaryStep]) -> bool:
        """Take the group's steps; whether tables are others, or hold something else, behind it."""
        changes = False
        for step in group:
            changes = changes or step.ddl is None or self._changes(step)
            self._tables.take(step)
            if step.opened is not None and step.not_copied is not None:
                self._not_copied[step.session, step.opened] = step.not_copied
        return changes

    def _changes(self, step: TemporaryStep) -> bool:
        """Whether a statement that commits by itself changes its connection's temporary tables."""
        assert step.ddl is not None
        if not self._tables.has(step.session):
            return False
        if step.ddl.reason is not None:
            raise self._refused(step.where, f"a statement of its connection cannot be parsed ({step.ddl.reason})")
        made = {after for _, after in step.renamed}
        temporary = {table for table in step.ddl.tables if self._tables.find(step.session, table) is not None}
        if step.ddl.only_reads or not temporary:
            return False
        if others := step.ddl.tables - temporary - made:
            what = f"one statement changes both it and {min(map(str, others))}, which is not a temporary table"
            raise self._refused(step.where, what)
        return True

    def _stretch(self, group: Sequence[TemporaryStep]) -> Iterator[Stretch]:
        first, last, since = group[0].seqno, group[-1].seqno, self._since
        alone = first in self.commits
        concerned = any(self._tables.has(step.session) for step in group)
        changes = self._follow(group)
        if alone and not concerned:
            # it depends on its connection by something else
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
            f"{where}: a temporary table of a statement log lives from seqno {self.life.first} to "
            f"{self.life.last}, where seqno {self.commits[0]} commits implicitly, so that copies have to be kept "
            f"of it: {why}; nothing of the window was written; binlog_format = ROW on the source keeps temporary "
            "tables out of its log from then on"
        )
