"""Temporary tables in statement-based logs: one target transaction from CREATE to DROP.

A temporary table belongs to a connection and is in no redo log: with half of its life committed on the target, a lost
connection could not be repaired, because the tables that it was filled from have changed since. So everything that the
source did while a temporary table was open (a *life*; overlapping lives are one) is one stretch of the serialized lane
and one transaction: it is on the target completely, or starts again on a new connection. Implicit commits inside a life
cut it into several transactions: ``temporary_stretches``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import field, replace
from typing import Final

from binlane.errors import UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext, TableKey
from binlane.plan.transaction.parts import Part, StatementPart
from binlane.schema.letter_case import ANY_CASE, AS_TYPED, LetterCase
from binlane.sql.charset import decoded, dialect_of
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.parse.lexer import Token, Unreadable, lex
from binlane.sql.parse.table_calls import in_no_copy
from binlane.sql.plain_statement import parted

Session = tuple[int, int]
"""Server id and thread id: each connection has its own names of temporary tables."""

_TEMPORARY: Final = re.compile(rb"\bTEMPORARY\b", re.IGNORECASE)
_RENAME: Final = re.compile(rb"\bRENAME\b", re.IGNORECASE)
_RENAME_TABLE: Final = re.compile(rb"\s*RENAME\s+TABLES?\b(?P<condition>\s*IF\b)?", re.IGNORECASE)
_MAKES: Final = re.compile(rb"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:TABLE|VIEW)\b", re.IGNORECASE)
_SEQUENCE: Final = re.compile(rb"\s*CREATE\s+(?:OR\s+REPLACE\s+)?TEMPORARY\s+SEQUENCE\b", re.IGNORECASE)
_ENGINE: Final = re.compile(rb"\bENGINE\s*+(?:=\s*+)?[`'\"]?(?P<name>\w+)", re.IGNORECASE)
_COMPUTES: Final = re.compile(rb"\b(?:DEFAULT|AS|CHECK)\s*(?:\(|(?:NEXT|PREVIOUS)\s|[\w.`]{1,129}\s*\()", re.IGNORECASE)
"""A quick check. What it overlooks the lane finds, in the server's own text."""
_REPLACES: Final = re.compile(rb"\s*CREATE\s+OR\s+REPLACE\b", re.IGNORECASE)
_DROP: Final = re.compile(rb"\s*DROP\s", re.IGNORECASE)
_DROPS_INDEX: Final = re.compile(rb"DROP\s+INDEX\b", re.IGNORECASE)
_COPIED_ENGINES: Final = frozenset({b"INNODB", b"MYISAM", b"MEMORY", b"HEAP", b"ARIA", b"CSV"})
"""Engines whose tables hold nothing but their own rows, so they can be copied."""
_FOLDING: Final = LetterCase(folds=True)


@dataclass(frozen=True, slots=True)
class Ddl:
    """A statement that commits implicitly and uses a temporary table of its connection."""

    tables: frozenset[TableKey]
    """All tables that it names."""
    only_reads: bool
    """It makes another table or view from them and does not change them."""
    reason: str | None = None
    """Why it could not be parsed."""
    in_turn: bool = True
    """Its renames take place one after the other; False for an exchange of tables."""
    can_be_divided: bool = False
    """It is a RENAME TABLE: a replica may run its temporary tables and the others one after the other."""

    @classmethod
    def of(cls, facts: StatementFacts, sql: bytes, error_code: int = 0) -> Ddl:
        """``facts`` and ``sql`` of a statement that commits implicitly."""
        in_turn = len(facts.moves) < 2 or _RENAME_TABLE.match(sql) is not None
        can_be_divided = error_code == 0 and is_rename_table(sql) and are_plain(facts.moves)
        return cls(facts.tables, _MAKES.match(sql) is not None, facts.reason, in_turn, can_be_divided)


@dataclass(frozen=True, slots=True)
class NamedTables:
    """The tables of a statement's text that may be temporary ones of its connection, and what it tells of them."""

    tables: frozenset[TableKey] = frozenset()
    """Without those that it makes."""
    written: frozenset[TableKey] = frozenset()
    """Those that it changes: of a definition, all of them."""
    makes: bool = False
    """It makes a table or view of them."""
    is_marked: bool = True
    """The server has marked it for what it names. RENAME TABLE has no mark, and CREATE OR REPLACE always has one."""

    @classmethod
    def of(cls, facts: StatementFacts, sql: bytes, *, is_marked: bool) -> NamedTables:
        """Of a statement that neither creates nor drops temporary tables; ``is_marked``: by its server."""
        if _DROP.match(sql) is not None and _DROPS_INDEX.match(sql) is None:
            # each of a temporary table says TEMPORARY
            return cls()
        makes = _MAKES.match(sql) is not None
        tables = facts.tables - {after for _, after in (*facts.moves, *facts.copies)}
        if makes and (facts.views or not facts.create_select) and not facts.copies:
            # the definition is in the text; a view of temporary tables does not exist
            return cls()
        return cls(
            tables,
            tables if facts.commits_implicitly else facts.written,
            makes,
            is_marked and not is_rename_table(sql) and _REPLACES.match(sql) is None,
        )

    @classmethod
    def read_into(cls, opened: TableKey, facts: StatementFacts) -> NamedTables:
        """Of a CREATE TEMPORARY, which is marked for the table that it makes, whatever it reads or copies."""
        return cls(facts.tables - {opened}, makes=True, is_marked=False)


@dataclass(frozen=True, slots=True)
class TemporaryStep:
    """A statement of a connection that may have temporary tables: the log marks each that uses or makes one."""

    seqno: int
    session: Session
    where: str
    opened: TableKey | None = None
    closed: tuple[TableKey, ...] = ()
    if_exists: bool = False
    used: tuple[TableKey, ...] = ()
    """The tables that a DML statement names."""
    calls: bool = False
    """It calls a routine, which may have created a temporary table: the log does not show what routines do."""
    ddl: Ddl | None = None
    """Set for a statement that commits implicitly."""
    renamed: tuple[tuple[TableKey, TableKey], ...] = ()
    """Old and new names."""
    not_copied: str | None = None
    """Why the created table cannot be copied."""
    prepared: bool = False
    """It is in a prepared XA transaction that has not ended in the window."""
    in_xa: bool = False
    """It is in one, wherever that ends."""
    part: int = 0
    """Its number among the parts of its transaction."""
    names: NamedTables = field(default_factory=NamedTables)

    @property
    def makes_or_drops(self) -> bool:
        """Whether it is a CREATE or DROP TEMPORARY."""
        return self.opened is not None or bool(self.closed)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A temporary table that the source has lost with its connection; the target must drop it."""

    thread_id: int
    table: TableKey


@dataclass(frozen=True, slots=True)
class Life:
    """The seqnos from a CREATE to the DROP after which no temporary table is open."""

    first: int
    last: int
    where: str
    """Position of the CREATE."""
    leftovers: tuple[Leftover, ...] = ()
    by_routine: bool = False
    """A routine has created one of its tables: the log shows the DROP only."""


def steps(seqno: int, parts: Iterable[Part], where: str) -> list[TemporaryStep]:
    """The steps of one transaction. Raises UnsupportedEventError for a possible step that cannot be parsed."""
    found = []
    for number, part in enumerate(parts):
        if isinstance(part, StatementPart) and part.session is not None:
            facts = part.facts
            if facts.temporary:
                opened, closed, if_exists = opened_and_closed(facts, part.query.error_code)
                why = None if opened is None else _why_not_copied(part.sql, part.context)
                found.append(
                    TemporaryStep(
                        seqno, part.session, where, opened, closed, if_exists, calls=_may_call(facts), not_copied=why,
                        part=number, names=NamedTables() if opened is None else NamedTables.read_into(opened, facts),
                    )
                )  # fmt: skip
            elif facts.reason is not None and is_about_one(part.sql):
                raise UnsupportedEventError(
                    f"{where}: a statement that creates or drops a temporary table and cannot be parsed "
                    f"({facts.reason}); nothing of the window was written; see docs/conformance.md"
                )
            else:
                used = tuple(sorted(facts.tables, key=str)) if facts.kind is StatementKind.DML else ()
                calls = _may_call(facts)
                # MySQL's texts have no variables in front
                _, sql = parted(part.sql, part.context, Flavor.MARIADB)
                ddl = Ddl.of(facts, sql, part.query.error_code) if facts.commits_implicitly else None
                renamed = () if ddl is None else facts.moves
                named = NamedTables.of(facts, sql, is_marked=part.is_marked)
                found.append(
                    TemporaryStep(
                        seqno, part.session, where, used=used, calls=calls, ddl=ddl, renamed=renamed, part=number,
                        names=named,
                    )
                )  # fmt: skip
    return found


def _may_call(facts: StatementFacts) -> bool:
    return facts.routines_used or facts.kind is StatementKind.UNKNOWN


def opened_and_closed(facts: StatementFacts, error_code: int) -> tuple[TableKey | None, tuple[TableKey, ...], bool]:
    """The temporary table that a statement creates, those that it drops, and whether they may be missing.

    MariaDB logs a failed CREATE OR REPLACE behind its DROP, with the error: the table is gone.
    """
    made = facts.created_temporary
    if made is None:
        return None, tuple(sorted(facts.tables, key=str)), facts.drops_if_exists
    return (made, (), facts.drops_if_exists) if error_code == 0 else (None, (made,), True)


def _why_not_copied(sql: bytes, context: SessionContext) -> str | None:
    if _SEQUENCE.match(sql):
        return "it is a sequence"
    engine = named_engine(sql)
    if engine is not None and engine.upper() not in _COPIED_ENGINES:
        return f"its engine is {engine.decode('utf-8', 'replace')}"
    if _COMPUTES.search(sql):
        tokens = list[Token]()
        with suppress(Unreadable):
            # MySQL has neither sequences nor functions of libraries there
            lex(decoded(sql, context), dialect_of(context, Flavor.MARIADB), tokens)
        if (found := in_no_copy(tokens)) is not None:
            return f"its columns compute with {found}"
    return None


def named_engine(sql: bytes) -> bytes | None:
    """The first engine that the statement names."""
    engine = _ENGINE.search(sql)
    return None if engine is None else engine["name"]


def may_rename(sql: bytes | memoryview) -> bool:
    """Whether a statement may rename a table: a quick check."""
    return _RENAME.search(sql) is not None


def is_rename_table(sql: bytes | memoryview) -> bool:
    """Whether a statement is a RENAME TABLE, which alone may rename temporary tables and others at once; without IF
    EXISTS."""
    match = _RENAME_TABLE.match(sql)
    return match is not None and match["condition"] is None


def are_plain(renames: Sequence[tuple[TableKey, TableKey]]) -> bool:
    """Whether the names can be written anew in any character set, and no two of them differ in letters' case alone."""
    names = {name for pair in renames for name in pair}
    return all(str(name).isascii() for name in names) and len({ANY_CASE.table(name) for name in names}) == len(names)


def which_are_temporary(
    renames: Sequence[tuple[TableKey, TableKey]], is_open: Callable[[TableKey], bool], letters: LetterCase
) -> tuple[bool, ...]:
    """Whether each rename of a statement is that of a temporary table of its connection.

    ``is_open``: of the tables before the statement; ``letters``: the server's. MariaDB decides it by the names alone
    before it renames anything (its ``find_temporary_table_for_rename``): a name is that of the last table that an
    earlier rename has given it, and one that an earlier rename has taken away is that of another, permanent table.
    """
    found: list[bool] = []
    for name, _ in renames:
        is_temporary: bool | None = None
        for (before, after), earlier in zip(renames, found, strict=False):
            is_temporary = False if letters.table(before) == letters.table(name) else is_temporary
            is_temporary = earlier if letters.table(after) == letters.table(name) else is_temporary
        found.append(is_open(name) if is_temporary is None else is_temporary)
    return tuple(found)


def alike(tables: Iterable[TableKey], names: Set[TableKey]) -> set[TableKey]:
    """The names that a server which does not distinguish letters takes for those of the tables."""
    folded = set(map(_FOLDING.table, tables))
    return {name for name in names if _FOLDING.table(name) in folded}


def is_about_one(sql: bytes | memoryview) -> bool:
    """Whether a statement may create or drop a temporary table: a quick check."""
    return _TEMPORARY.search(sql) is not None


@dataclass(slots=True)
class OpenTables:
    """The open temporary tables, followed from a window's start, where none is open."""

    letters: LetterCase = AS_TYPED
    """How the target compares names: servers that do not compare them alike are refused where it matters."""
    tables: dict[tuple[Session, TableKey], str] = field(default_factory=dict)
    """Table -> position of its CREATE."""

    def has(self, session: Session) -> bool:
        """Whether the connection has an open temporary table."""
        return any(owner == session for owner, _ in self.tables)

    def take(self, step: TemporaryStep) -> tuple[TableKey, ...]:
        """Apply the step; returns the tables that it drops and that were not open."""
        self.tables = self._behind(step)[0]
        if step.opened is not None:
            self.tables.setdefault((step.session, step.opened), step.where)
        unknown = []
        for table in step.closed:
            key = self.find(step.session, table)
            if key is not None:
                del self.tables[key]
            else:
                unknown.append(table)
        return tuple(unknown)

    def renamed(self, step: TemporaryStep) -> tuple[bool, frozenset[TableKey]]:
        """Whether the step renames temporary tables of its connection, and the other tables that it renames."""
        others = self._behind(step)[1]
        return len(others) < len(step.renamed), others

    def _behind(self, step: TemporaryStep) -> tuple[dict[tuple[Session, TableKey], str], frozenset[TableKey]]:
        """The open tables behind the step's renames, which take place one after the other; the other tables renamed."""
        behind, others = OpenTables(self.letters, dict(self.tables)), set[TableKey]()
        temporary = which_are_temporary(
            step.renamed, lambda name: self.find(step.session, name) is not None, self.letters
        )
        for (before, after), is_temporary in zip(step.renamed, temporary, strict=True):
            key = behind.find(step.session, before) if is_temporary else None
            if key is None:
                others.add(before)
            else:
                behind.tables[step.session, after] = behind.tables.pop(key)
        return behind.tables, frozenset(others)

    def find(self, session: Session, table: TableKey) -> tuple[Session, TableKey] | None:
        """The key of a connection's open table; None if it has no table of that name."""
        if (session, table) in self.tables:
            return session, table
        if not self.letters.folds:
            return None
        name = self.letters.table(table)
        return next((key for key in self.tables if key[0] == session and self.letters.table(key[1]) == name), None)


def with_prepared(
    found: Iterable[TemporaryStep], ended: Container[int], letters: LetterCase
) -> tuple[list[TemporaryStep], set[int]]:
    """The steps in order, and the seqnos of the prepared XA transactions whose connection has temporary tables.

    ``ended``: the seqnos of the XA PREPAREs whose transactions end in the window, by commit or rollback. They are
    applied there: a rollback undoes neither CREATE and DROP TEMPORARY nor changes of tables without transactions.
    ``lives`` refuses the others. ``letters``: the target's.
    """
    ordered = sorted(found, key=lambda each: each.seqno)
    steps = [replace(step, prepared=step.prepared and step.seqno not in ended) for step in ordered]
    in_xa = {step.seqno for step in steps if step.in_xa}
    return steps, in_xa.intersection(_with_tables(steps, letters))


def _with_tables(steps: Iterable[TemporaryStep], letters: LetterCase) -> Iterator[int]:
    """The seqnos of steps whose connection has temporary tables in the log."""
    tables = OpenTables(letters)
    for step in steps:
        if step.makes_or_drops or tables.has(step.session):
            yield step.seqno
        tables.take(step)


@dataclass(slots=True)
class _Calls:
    """A connection's calls of routines, which may have created temporary tables, and the statements that use these."""

    first: int
    where: str
    used: list[TemporaryStep] = field(default_factory=list)


def lives(
    found: Iterable[TemporaryStep], restarts: Sequence[int], is_known: Callable[[TableKey], bool], letters: LetterCase
) -> tuple[Life, ...]:
    """The lives of a window, ascending. ``restarts``: first seqnos after a restart of the source's server.

    ``is_known`` is True for tables that may exist on the target; ``letters``: the target's. Raises
    UnsupportedEventError for a life that began before the channel, and for one that is open at the window's end, which
    extraction prevents.
    """
    done: list[Life] = []
    tables, calls = OpenTables(letters), dict[Session, _Calls]()
    first, where = 0, ""
    starts = sorted(restarts)
    for step in sorted(found, key=lambda each: each.seqno):
        while starts and starts[0] <= step.seqno:
            done += _lost(tables, first, starts.pop(0), where)
            _check_dropped(calls)
        was_open = bool(tables.tables)
        if step.prepared and (
            step.makes_or_drops or step.calls or tables.has(step.session) or not all(map(is_known, step.used))
        ):
            raise in_prepared(step.where)
        if not tables.has(step.session):
            _check_known(step, is_known, calls)
        hidden = _made_by_call(step, tables.take(step), is_known, calls)
        if not was_open and step.opened is not None:
            first, where = step.seqno, step.where
        if was_open and not tables.tables:
            done.append(Life(first, step.seqno, where))
        if hidden is not None:
            done.append(Life(hidden.first, step.seqno, hidden.where, by_routine=True))
        if step.calls:
            calls.setdefault(step.session, _Calls(step.seqno, step.where))
    for start in starts:
        done += _lost(tables, first, start, where)
    if tables.tables:
        raise UnsupportedEventError(
            f"{where}: {open_text(tables)}; the window cannot end while a temporary table is open"
        )
    _check_dropped(calls)
    return _joined(done)


def _made_by_call(
    step: TemporaryStep, unknown: Sequence[TableKey], is_known: Callable[[TableKey], bool], calls: dict[Session, _Calls]
) -> _Calls | None:
    """The call that may have created the ``unknown`` tables that the step drops; None if none is needed.

    A DROP without a call in this window means a table from before the window. No other table has its name: any use of
    it would have been refused. Raises UnsupportedEventError if statements may have meant either.
    """
    called = calls.get(step.session)
    if called is not None and (called.used or not step.if_exists) and unknown:
        return calls.pop(step.session)
    for table in unknown:
        if not step.if_exists and is_known(table):
            raise UnsupportedEventError(
                f"{step.where}: DROP of the temporary table {table} of connection {step.session[1]}, which was "
                "created before the channel began; nothing of the window was written; begin the channel after "
                "this statement"
            )
    return None


def _check_known(step: TemporaryStep, is_known: Callable[[TableKey], bool], calls: dict[Session, _Calls]) -> None:
    for table in step.used:
        if not is_known(table):
            if step.session not in calls:
                raise _unknown(step, table)
            calls[step.session].used.append(step)


def _check_dropped(calls: dict[Session, _Calls]) -> None:
    """Raises UnsupportedEventError for a table that only a routine can have created and that was not dropped."""
    for called in calls.values():
        for step in called.used:
            raise _unknown(step, step.used[0])
    calls.clear()


def _unknown(step: TemporaryStep, table: TableKey) -> UnsupportedEventError:
    return UnsupportedEventError(
        f"{step.where}: a statement of connection {step.session[1]} uses {table}, which does not exist on the "
        "target and is not created in this window: a temporary table that was created before the channel began, "
        "or by a routine and not dropped in this window; nothing of the window was written; begin the channel "
        "after this statement, or with a backup from before the table"
    )


def in_prepared(where: str) -> UnsupportedEventError:
    """The error for a prepared XA transaction that uses temporary tables."""
    return UnsupportedEventError(
        f"{where}: a prepared XA transaction with a statement that depends on its connection (a temporary table); "
        "nothing of the window was written; see docs/conformance.md"
    )


def open_text(tables: OpenTables) -> str:
    """The first open table, for a message."""
    (session, table), _ = next(iter(tables.tables.items()))
    return f"the temporary table {table} of connection {session[1]} is created here and has not been dropped"


def _lost(tables: OpenTables, first: int, restart: int, where: str) -> list[Life]:
    if not tables.tables:
        return []
    leftovers = tuple(Leftover(session[1], table) for session, table in tables.tables)
    tables.tables.clear()
    return [Life(first, restart - 1, where, leftovers)]


def _joined(found: list[Life]) -> tuple[Life, ...]:
    """Join overlapping lives: a transaction may end one and hold another, and a routine's table is seen at its DROP."""
    joined: list[Life] = []
    for life in sorted(found, key=lambda each: (each.first, each.last)):
        if joined and life.first <= joined[-1].last:
            before = joined.pop()
            leftovers, by_routine = before.leftovers + life.leftovers, before.by_routine or life.by_routine
            life = Life(before.first, max(before.last, life.last), before.where, leftovers, by_routine)
        joined.append(life)
    return tuple(joined)
