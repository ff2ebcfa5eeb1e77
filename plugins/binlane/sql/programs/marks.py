"""What a lane has to know of a routine or view that the precheck has looked at, to see that it is still the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.programs import DEFINER, MODE, SECURITY, Program
from binlane.sql.programs.reach import Reach, folded, routine_key


@dataclass(frozen=True, slots=True)
class ProgramMark:
    """A routine or view of the target that the window's statements reach."""

    kind: str
    """As ``Program``'s."""
    key: TableKey
    digest: str = ""
    """Of what it does, and with whose privileges; "" for one that the window itself makes, changes or drops, and for
    one whose text the server has not shown: it is not compared."""

    @property
    def name(self) -> TableKey:
        """What statements reach it by."""
        return folded(self.key) if self.kind == "view" else routine_key(self.key.database, self.key.table)


@dataclass(frozen=True, slots=True)
class ReachedPrograms:
    """reached.json: the target's routines and views that the window's statements reach, and what leads to them."""

    programs: tuple[ProgramMark, ...] = ()
    behind: Mapping[TableKey, frozenset[TableKey]] = field(default_factory=dict)
    """As ``Reach``'s, of what leads to one of them, and of all that is behind them: a table there may become a view."""
    unread: frozenset[TableKey] = frozenset()
    """As ``Reach``'s."""
    views: frozenset[TableKey] = frozenset()
    """Names, folded, of which the window itself makes views."""

    @classmethod
    def of(
        cls, programs: Iterable[ProgramMark], reach: Reach, views: frozenset[TableKey] = frozenset()
    ) -> ReachedPrograms:
        """``reach``: of the window."""
        found = tuple(programs)
        names = {each.name for each in found}
        behind = {name: reach.next_to(name) for name in reach.leading_to(names) | reach.of(names)} if found else {}
        return cls(
            found,
            {name: each for name, each in behind.items() if each},
            reach.unread if found else frozenset(),
            views,
        )

    @property
    def reach(self) -> Reach:
        """What statements reach, as far as it is one of these."""
        return Reach(self.behind, self.unread)


def mark_of(program: Program) -> ProgramMark:
    """The mark of what the catalogue shows."""
    if program.text is None:
        return ProgramMark(program.kind, program.key)
    # while a view cannot be opened MySQL does not know its columns
    text = program.printed or program.text
    facts = (program.facts.get(name, "") for name in (DEFINER, SECURITY, MODE))
    digest = hashlib.sha256("\0".join((text, *facts)).encode("utf-8", "surrogatepass")).hexdigest()
    return ProgramMark(program.kind, program.key, digest)


def changed(marks: Iterable[ProgramMark], now: Iterable[Program]) -> list[ProgramMark]:
    """The marks of those that are not as they were; one that is gone is none: no statement runs it."""
    # of a view whose tables are missing just now MariaDB shows no query
    shown = (each for each in map(mark_of, now) if each.digest or each.kind != "view")
    there = {(each.kind, each.key): each for each in shown}
    found = ((mark, there.get((mark.kind, mark.key))) for mark in marks if mark.digest)
    return [mark for mark, each in found if each is not None and each != mark]
