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
class SentText:
    """A statement of the window that makes a routine or view, as a lane sends it."""

    sql: str
    definer: str
    """``user@host``, as ``account_of`` compares it."""
    security: str
    """DEFINER or INVOKER."""

    def has_made(self, program: Program) -> bool:
        """Whether a routine is this one: the statement ends with its body. Of a view, whose query the server prints in
        its own words, its definer and its privileges alone are compared: another query is one of the same account."""
        if (self.definer, self.security) != (account_of(program.facts.get(DEFINER, "")), program.facts.get(SECURITY)):
            return False
        return program.kind == "view" or program.text is None or _trimmed(self.sql).endswith(_trimmed(program.text))


def _trimmed(text: str) -> str:
    return text.rstrip("; \t\r\n\0")


def account_of(name: str) -> str:
    """``user@host`` in a spelling that is the same in a statement and in a catalogue: MariaDB's roles have no host."""
    user, _, host = name.rpartition("@")
    return f"{user}@{host.lower() or '%'}"


@dataclass(frozen=True, slots=True)
class ProgramMark:
    """A routine or view of the target that the window's statements reach."""

    kind: str
    """As ``Program``'s."""
    key: TableKey
    digest: str = ""
    """Of what it does, and with whose privileges; "" for one that the window itself makes, and for one whose text the
    server has not shown."""
    sent: tuple[SentText, ...] = ()
    """The window's own statements that make it, or make another one of it."""

    @property
    def is_compared(self) -> bool:
        """Whether anything is known of what it has to be."""
        return bool(self.digest or self.sent)

    def is_of(self, program: Program) -> bool:
        """Whether a program is as it was, or as the window makes it."""
        found = mark_of(program)
        # of a view whose tables are missing just now MariaDB shows no query
        if not found.digest and program.kind == "view":
            return True
        return (bool(self.digest) and found.digest == self.digest) or any(one.has_made(program) for one in self.sent)

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
    """The marks of those that are not as they were, nor as the window makes them; one that is gone is none: no
    statement runs it."""
    there = {(each.kind, each.key): each for each in now}
    found = ((mark, there.get((mark.kind, mark.key))) for mark in marks if mark.is_compared)
    return [mark for mark, each in found if each is not None and not mark.is_of(each)]
