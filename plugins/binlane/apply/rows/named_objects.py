"""What stands behind the names of a logged statement is what the precheck has looked at.

A session of the target may put a view in a table's place, or exchange a routine or view, at any moment. A function with
its invoker's privileges would run as binlane's account, and what it changes would be committed. So a lane holds each
table that a statement names, in the statement's own transaction, and a view must be one that the precheck has looked
at. The routines and views that a statement reaches are compared with what the precheck has seen: in front of the first
statement of a transaction that may run them, so that another one does not run, and behind the last, while the server
keeps what has run against DDL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.session.held_table import hold_table
from binlane.apply.session.retry_verdicts import error_code
from binlane.errors import TableMismatchError
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.rename_rules import is_system
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.programs.marks import ProgramMark, ReachedPrograms, changed
from binlane.sql.programs.reach import folded

if TYPE_CHECKING:
    from binlane.schema.programs import Program

_MISSING: Final = frozenset({1049, 1146})
"""No such database or table: the statement's own error."""


@dataclass(slots=True)
class NamedObjects:
    """The names of the statements of one transaction."""

    read: Callable[[Mapping[bool, Sequence[TableKey]]], Iterable[Program]]
    """Reads routines and views of the server, as ``read_named_programs`` does, on another connection."""
    reached: ReachedPrograms | None
    """By the window's statements; None if no precheck has left them: then views are not looked at."""
    is_altered: Callable[[TableKey], bool]
    """Whether the window itself makes or changes a table or view."""
    file: str = ""
    """Where these stand: the next precheck of a window without it takes what it finds."""
    _held: set[TableKey] = field(default_factory=set)
    _views: frozenset[TableKey] = frozenset()
    _marks: dict[TableKey, list[ProgramMark]] = field(default_factory=dict)
    _called: set[ProgramMark] = field(default_factory=set)

    def __post_init__(self) -> None:
        programs = () if self.reached is None else self.reached.programs
        self._views = frozenset(folded(each.key) for each in programs if each.kind == "view")
        for each in programs:
            self._marks.setdefault(each.name, []).append(each)

    def begin(self) -> None:
        """A transaction begins, in which nothing is held."""
        self._held.clear()
        self._called.clear()

    def hold(
        self,
        execute: Callable[[str], object],
        facts: StatementFacts,
        names: Callable[[], Iterable[TableKey] | None],
    ) -> None:
        """In front of a statement of these facts. ``execute``: runs a statement in its transaction; ``names``: all
        names in its text, as ``names_in`` finds them, None if nobody can read it.

        Raises TableMismatchError for a view or routine that is not what the precheck has seen.
        """
        if facts.kind is StatementKind.TRANSACTION:
            self._held.clear()  # ROLLBACK TO SAVEPOINT gives up what was taken behind it
            return
        calls = facts.routines_used or bool(facts.functions) or facts.kind is StatementKind.UNKNOWN
        for key in sorted(facts.tables - _own_temporary(facts) - self._held, key=str):
            if not is_system(key.database):
                calls |= self._is_view(execute, key)
        if calls and self._marks and (more := self._by(names()) - self._called):
            self._compare(more, "nothing of it was written")
            self._called |= more

    def end(self) -> None:
        """Behind the transaction's last statement, in front of its COMMIT. Raises as ``hold``."""
        if self._called:
            self._compare(self._called, "its transaction was rolled back")

    def _by(self, names: Iterable[TableKey] | None) -> set[ProgramMark]:
        """The marks that a statement with these names reaches and that can be compared."""
        reached: Collection[TableKey] = self._marks
        if names is not None and self.reached is not None:
            reached = self.reached.reach.reached(names, self._marks)
        return {each for name in reached for each in self._marks[name] if each.digest}

    def _is_view(self, execute: Callable[[str], object], key: TableKey) -> bool:
        try:
            hold_table(execute, key)
        except TableMismatchError:
            if self.reached is not None and folded(key) not in self._views and not self.is_altered(key):
                raise
            return True
        except pymysql.err.MySQLError as exc:
            if error_code(exc) not in _MISSING:
                raise
            return False
        self._held.add(key)
        return False

    def _compare(self, called: Iterable[ProgramMark], what: str) -> None:
        marks = sorted(called, key=lambda each: (each.kind, str(each.key)))
        found = changed(marks, self.read(_names(marks)))
        if found:
            raise TableMismatchError(
                f"{found[0].kind} {found[0].key}: expected what the precheck has looked at, found another definition, "
                f"which another session of the target has given it since; {what}: find out who, put it back, then run "
                f"again; or, if it was mended, remove {self.file} and run again, which checks it as it is now"
            )


def _own_temporary(facts: StatementFacts) -> frozenset[TableKey]:
    """Temporary tables that a statement makes or drops: no view is taken for one, and where there is none the account
    needs no privilege on what has the name."""
    if facts.created_temporary is not None:
        return frozenset({facts.created_temporary})
    return facts.dropped if facts.temporary else frozenset()


def _names(marks: Iterable[ProgramMark]) -> dict[bool, list[TableKey]]:
    """Their names, by whether they are views."""
    names: dict[bool, list[TableKey]] = {True: [], False: []}
    for each in marks:
        names[each.kind == "view"].append(each.key)
    return names
