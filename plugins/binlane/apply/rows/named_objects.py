"""What stands behind the names of a logged statement is what the precheck has looked at.

A session of the target may put a view in a table's place, or exchange a routine or view, at any moment. A function with
its invoker's privileges would run as binlane's account, and what it changes would be committed. So a lane holds each
table that a statement names, in the statement's own transaction, and a view must be one that the precheck has looked
at, or that the window itself makes. The routines and views that a statement reaches are compared with what the precheck
has seen, or with the window's own statements that make them, and behind them, too, no other name may be a view: in
front of the first statement of a transaction that may run them, so that another one does not run, and behind the last,
while the server keeps what has run against DDL. The same is asked for each name of a text that is not read exactly, and
for one of which there was no table to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
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
from binlane.sql.programs.reach import Reach, folded, is_routine

if TYPE_CHECKING:
    from binlane.schema.programs import Program

_MISSING: Final = frozenset({1049, 1146})
"""No such database or table: the statement's own error."""


class _Kind(Enum):
    """What stands behind a name, when a statement is about to use it."""

    TABLE = "table"
    VIEW = "view"
    NOTHING = "nothing"


@dataclass(slots=True)
class NamedObjects:
    """The names of the statements of one transaction."""

    read: Callable[[Mapping[bool, Sequence[TableKey]]], Iterable[Program]]
    """Reads routines and views of the server, as ``read_named_programs`` does, on another connection."""
    reached: ReachedPrograms | None
    """By the window's statements; None if no precheck has left them: then views are not looked at."""
    read_views: Callable[[Callable[[str], bool], Collection[str] | None], Iterable[TableKey]]
    """Reads the names of views, as ``read_views`` does, on another connection."""
    file: str = ""
    """Where these stand: the next precheck of a window without it takes what it finds."""
    _held: set[TableKey] = field(default_factory=set)
    _views: frozenset[TableKey] = frozenset()
    _marks: dict[TableKey, list[ProgramMark]] = field(default_factory=dict)
    _called: set[ProgramMark] = field(default_factory=set)
    _looked: set[TableKey] | None = field(default_factory=set)
    """Names, folded, that may mean a table which is not held; None: any."""

    def __post_init__(self) -> None:
        if self.reached is None:
            return
        programs = self.reached.programs
        self._views = self.reached.views.union(folded(each.key) for each in programs if each.kind == "view")
        for each in programs:
            self._marks.setdefault(each.name, []).append(each)

    def begin(self) -> None:
        """A transaction begins, in which nothing is held."""
        self._held.clear()
        self._called.clear()
        self._looked = set()

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
        calls, missing = facts.routines_used or bool(facts.functions), set[TableKey]()
        for key in sorted(facts.tables - _own_temporary(facts) - self._held, key=str):
            if not is_system(key.database):
                found = self._kind_of(execute, key)
                calls |= found is _Kind.VIEW
                missing.update({folded(key)} if found is _Kind.NOTHING else ())
        if self.reached is not None and (calls or missing):
            self._look(self.reached.reach, names if calls else frozenset, missing)

    def end(self) -> None:
        """Behind the transaction's last statement, in front of its COMMIT. Raises as ``hold``."""
        what = "its transaction was rolled back"
        self._compare(self._called, what)
        self._require_no_view(self._looked, what)

    def _look(
        self,
        reach: Reach,
        names: Callable[[], Iterable[TableKey] | None],
        missing: Collection[TableKey],
    ) -> None:
        """In front of a statement: the marks that it reaches, and the names that may mean a table which is not held."""
        named = names()
        reached = None if named is None else reach.of(named)
        marks, more = {*self._marks}, None
        if reached is not None and reach.unread.isdisjoint(reached):
            marks = {name for name in marks if name in reached}
            more = {*reach.of(marks), *missing}
        what = "nothing of it was written"
        called = {each for name in marks for each in self._marks[name] if each.is_compared} - self._called
        self._compare(called, what)
        self._called |= called
        looked = more if more is None or self._looked is None else more - self._looked
        self._require_no_view(looked, what)
        self._looked = None if looked is None or self._looked is None else self._looked | looked

    def _kind_of(self, execute: Callable[[str], object], key: TableKey) -> _Kind:
        try:
            hold_table(execute, key)
        except TableMismatchError:
            if self.reached is not None and folded(key) not in self._views:
                raise
            return _Kind.VIEW
        except pymysql.err.MySQLError as exc:
            if error_code(exc) not in _MISSING:
                raise
            return _Kind.NOTHING
        self._held.add(key)
        return _Kind.TABLE

    def _compare(self, called: Iterable[ProgramMark], what: str) -> None:
        marks = sorted(called, key=lambda each: (each.kind, str(each.key)))
        found = changed(marks, self.read(_names(marks))) if marks else []
        if found:
            raise TableMismatchError(
                f"{found[0].kind} {found[0].key}: expected what the precheck has looked at, found another definition, "
                f"which another session of the target has given it since; {what}: find out who, put it back, then run "
                f"again; or, if it was mended, remove {self.file} and run again, which checks it as it is now"
            )

    def _require_no_view(self, names: Collection[TableKey] | None, what: str) -> None:
        """``names``: folded; None: all."""
        wanted = None if names is None else {each for each in names if not is_routine(each)} - self._views
        if wanted is not None and not wanted:
            return
        databases = None if wanted is None else {each.database for each in wanted}
        views = self.read_views(
            lambda name: databases is None or folded(TableKey(name, "")).database in databases,
            None if wanted is None else {each.table for each in wanted},
        )
        found = sorted((key for key in views if self._is_another(folded(key), wanted)), key=str)
        if found:
            raise TableMismatchError(
                f"{found[0]}: expected no view, as the precheck has found, found one, which another session of the "
                f"target has made since, and which a logged statement may read or write; {what}: find out who, and "
                f"drop it, then run again; or, if it belongs there, remove {self.file} and run again, which checks it"
            )

    def _is_another(self, view: TableKey, wanted: Collection[TableKey] | None) -> bool:
        return view not in self._views if wanted is None else view in wanted


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
