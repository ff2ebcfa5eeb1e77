"""Temporary tables that were open where the channel begins: no window has their CREATE, and no copy of the source has
them.

Such a table may hide a permanent one of its name, and the log has its later statements as it has those of the permanent
one. Servers mark each statement that uses a temporary table of its connection, except RENAME TABLE, and few others:
those that ask for their connection (CONNECTION_ID(), also behind a trigger, a view or a default), a DELETE of several
tables, CREATE OR REPLACE and each DROP. In a procedure each statement behind such a one is marked, too, and the log
shows no procedures. (Tried on MariaDB 10.11 and MySQL 9.7.) So the statements of a connection that may be older than
the channel (``Manifest.older_sessions``) are judged here:

- one that changes nothing but such a table is left out: nothing permanent depends on it;
- one that reads such a table and changes another cannot be repeated, and one of which nobody can tell is named, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import RowCounts, TableKey
from binlane.plan.transaction.parts import FilteredPart, Part
from binlane.plan.transaction.temporary_tables import (
    OpenTables,
    Session,
    TemporaryStep,
    in_prepared,
    which_are_temporary,
)

UNSEEN_RULE: Final = "temporary tables of before the channel"
"""What a plan counts the statements under that are left out."""
UNSEEN: Final = "a temporary table of before the channel's beginning, of the connection"
"""Beginning of the name of an unsafe part: its statement is left out."""
UNSURE: Final = "what may be a temporary table of before the channel's beginning, of the connection"
"""The same, of a statement that may as well ask for its connection, or that makes a table: it is applied as it is
logged."""


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


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What is known of the tables of the window."""

    exists: Callable[[TableKey], bool]
    """Whether a permanent table of that name may exist on the target."""
    asks: Callable[[TableKey], bool]
    """Whether a statement that names the table may ask for its connection by a trigger, a view or a default."""
    opens_asking: Callable[[TableKey], bool]
    """The same by a default alone, which also a definition of the table reads."""
    has_routines: bool
    """Whether a procedure may have run the statements."""


def judge(
    steps: Iterable[TemporaryStep], older_sessions: int, restarted: int | None, known: TableFacts
) -> tuple[list[TemporaryStep], UnseenTables]:
    """The steps of a window without those that are left out, and what is to be done. ``older_sessions`` and
    ``restarted``: see ``Manifest``.

    Raises UnsupportedEventError for a prepared XA transaction that uses such a table.
    """
    ordered = sorted(steps, key=lambda step: (step.seqno, step.part))
    if not older_sessions:
        return ordered, UnseenTables()
    window = _Window(older_sessions, restarted, known, {table for step in ordered for table in step.names.asking})
    stay = [step for step in ordered if not window.leaves_out(step)]
    return stay, UnseenTables(tuple(window.left_out), window.unsafe)


@dataclass(slots=True)
class _Window:
    older_sessions: int
    restarted: int | None
    known: TableFacts
    asking: set[TableKey]
    left_out: list[tuple[int, int]] = field(default_factory=list)
    unsafe: dict[str, int] = field(default_factory=dict)
    _seen: OpenTables = field(default_factory=OpenTables)
    """Whose CREATE is in the window."""
    _unseen: dict[Session, set[str]] = field(default_factory=dict)
    """The names, in lower case, that have turned out to be those of unseen tables."""
    _callers: set[Session] = field(default_factory=set)

    def leaves_out(self, step: TemporaryStep) -> bool:
        if not self._may_be_older(step):
            self._seen.take(step)
            return False
        unseen = self._unseen.setdefault(step.session, set())
        if step.makes_or_drops:
            return self._takes_definition(step, unseen)
        leaves = self._judge(step, unseen)
        if step.calls:
            self._callers.add(step.session)
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

    def _takes_definition(self, step: TemporaryStep, unseen: set[str]) -> bool:
        """CREATE and DROP TEMPORARY: whether it drops nothing but unseen tables."""
        if step.opened is not None:
            unseen.discard(_any_case(step.opened))
            self._seen.take(step)
            return False
        unseen.difference_update(map(_any_case, step.closed))
        is_seen = any(self._seen.find(step.session, table) is not None for table in step.closed)
        self._seen.take(step)
        if is_seen or step.if_exists or step.session in self._callers:
            return False
        self.left_out.append((step.seqno, step.part))
        return True

    def _judge(self, step: TemporaryStep, unseen: set[str]) -> bool:
        if step.renamed and not step.names.is_marked:
            return self._renames(step, unseen)
        exists = self.known.exists if step.names.is_marked else lambda _: True
        tables = {table for table in step.names.tables if self._seen.find(step.session, table) is None}
        sure = {table for table in tables if _any_case(table) in unseen or not exists(table)}
        if step.session in self._callers or step.calls:
            # a routine may have made them: ``lives`` and the precheck follow those
            sure = {table for table in tables if _any_case(table) in unseen}
        elif step.names.is_plain and len(tables) == 1 and not self.known.has_routines:
            asks = self._asks if step.ddl is None else self._opens_asking
            sure = sure if any(map(asks, tables)) else tables
        if sure and step.names.makes:
            self._name(UNSURE, step, sure)
            return False
        if sure:
            unseen.update(map(_any_case, sure))
            for before, after in step.renamed:
                if before in sure:
                    unseen.discard(_any_case(before))
                    unseen.add(_any_case(after))
            if not step.names.written <= sure:
                self._name(UNSEEN, step, sure)
            return True
        # one that uses a table whose CREATE was seen is marked for that
        if tables and tables == step.names.tables and step.names.is_marked:
            self._name(UNSURE, step, tables)
        return False

    def _asks(self, table: TableKey) -> bool:
        return table in self.asking or self.known.asks(table)

    def _opens_asking(self, table: TableKey) -> bool:
        return table in self.asking or self.known.opens_asking(table)

    def _renames(self, step: TemporaryStep, unseen: set[str]) -> bool:
        """RENAME TABLE, which MariaDB does not mark: of tables that have turned out to be unseen ones."""
        found = which_are_temporary(step.renamed, lambda table: _any_case(table) in unseen)
        if not any(found):
            return False
        if not all(found):
            self._name(
                UNSEEN, step, {before for (before, _), is_unseen in zip(step.renamed, found, strict=True) if is_unseen}
            )
        for before, after in step.renamed:
            unseen.discard(_any_case(before))
            unseen.add(_any_case(after))
        return True

    def _name(self, what: str, step: TemporaryStep, tables: Iterable[TableKey]) -> None:
        name = f"{what} {step.session[1]}: {', '.join(sorted(map(str, tables)))}"
        self.unsafe.setdefault(name, step.seqno)


def _any_case(table: TableKey) -> str:
    return str(table).casefold()
