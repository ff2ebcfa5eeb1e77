"""The facts of one statement, read from its text: returned by ``statements.analyze``, used for routing and filters."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey

EMPTY: Final = "an empty statement"
"""The reason of a text without a word, such as a comment alone: no server executes anything of it."""
UNREAD: Final = "UNREAD"
"""The name of all statements that are not read to their end, in ``filter.allow_statements``."""
LOADABLE_OR_STORED: Final = "DROP FUNCTION without a database, which may mean a loadable function"
"""The reason of a statement that is read and serialized: which of the two the source has dropped no text tells."""


class StatementKind(StrEnum):
    """The kinds of statements that ordering distinguishes."""

    DML = "dml"
    DDL = "ddl"
    GLOBAL = "global"
    """Server-wide: accounts, FLUSH, SET GLOBAL, plugins, servers, tablespaces."""
    TRANSACTION = "transaction"
    """BEGIN, COMMIT, ROLLBACK, SAVEPOINT, XA: names no database."""
    LOAD_DATA = "load_data"
    UNKNOWN = "unknown"
    """The statement was not read exactly; ``reason`` says why."""


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """Facts of a statement's text. Objects that views, triggers and routines use are not among them: see
    SchemaFacts."""

    kind: StatementKind
    databases: frozenset[str] = frozenset()
    """Every database read or written, the default database for unqualified names. Empty if the kind is UNKNOWN, as is
    all else."""
    tables: frozenset[TableKey] = frozenset()
    """Every table, view and sequence named, read or written."""
    defines: frozenset[TableKey] = frozenset()
    """Tables, views and sequences whose definition or existence a DDL may change, triggers included; a part of
    ``tables``. Not those that it only reads, copies, refers to, empties, maintains or locks."""
    first: TableKey | None = None
    """The first table named: the one that CREATE TABLE or ALTER TABLE is about."""
    written: frozenset[TableKey] = frozenset()
    """The tables whose rows an INSERT, REPLACE, UPDATE, DELETE or LOAD changes; a part of ``tables``."""
    references: frozenset[str] = frozenset()
    """Databases named in REFERENCES clauses; also in ``databases``."""
    routines_used: bool = False
    """The statement calls a procedure or a function that is not built in. Its database is in ``databases``."""
    functions: frozenset[str] = frozenset()
    """Functions that are called without a database and are not built in: stored ones, or loadable ones."""
    temporary: bool = False
    """CREATE or DROP TEMPORARY. The text alone does not show that a statement *uses* a temporary table."""
    created_temporary: TableKey | None = None
    """The tables that CREATE TEMPORARY creates."""
    create_select: bool = False
    """CREATE TABLE that fills the table: by a query, or by the row events that follow (``START TRANSACTION``)."""
    rows_follow: bool = False
    """CREATE TABLE ... START TRANSACTION: the table's rows are in the events that follow."""
    commits_implicitly: bool = False
    """The statement has an implicit commit. For UNKNOWN: whether statements with the same first word have one."""
    reason: str | None = None
    """Why the kind is UNKNOWN, or why the statement is serialized although it is read: a short text without names, so
    that it can be counted."""
    views: frozenset[TableKey] = frozenset()
    """Views created or altered."""
    triggered: frozenset[TableKey] = frozenset()
    """Tables that get a trigger."""
    dropped_triggers: frozenset[TableKey] = frozenset()
    """Triggers that are dropped, by database and name: the statement does not name their tables."""
    dropped: frozenset[TableKey] = frozenset()
    """Tables, views and sequences that are dropped."""
    replaced: frozenset[TableKey] = frozenset()
    """The table of CREATE OR REPLACE TABLE: one of its name may go, with its triggers."""
    dropped_in: frozenset[str] = frozenset()
    """Databases that are dropped or replaced, or of which a routine or a trigger is dropped."""
    routine_databases: frozenset[str] = frozenset()
    """Databases that get a procedure, function or package."""
    defines_programs: bool = False
    """It makes, alters or drops views or routines, or drops a database with all of its own."""
    default_database: str | None = None
    """The session's default database, if a statement that changes rows asks for it by ``DATABASE()``: it must exist."""
    renames: tuple[tuple[TableKey, TableKey], ...] = ()
    """Old and new name of tables and views, in order."""
    exchanges: tuple[tuple[TableKey, TableKey], ...] = ()
    """Tables between which a partition's rows move, from and to: EXCHANGE PARTITION, both ways, and CONVERT. Names,
    definitions and triggers stay."""
    ends_or_begins: bool = False
    """TRANSACTION: the statement begins or ends a transaction (not SAVEPOINT, RELEASE, ROLLBACK TO)."""
    drops_if_exists: bool = False
    """DROP TABLE or TRIGGER ... IF EXISTS: harmless where the table or trigger does not exist."""
    unsafe: str | None = None
    """A part that is unsafe for statement-based replication, such as ``UUID()``; None if none was found."""
    copies: tuple[tuple[TableKey, TableKey], ...] = ()
    """CREATE TABLE ... LIKE: the copied table and the new one. The UNION of a MERGE table is copied, too."""
    union: frozenset[TableKey] = frozenset()
    """The tables in the UNION of a MERGE table."""

    @property
    def is_read(self) -> bool:
        """Whether the statement was read to its end, so that the facts hold all that its text tells."""
        return self.kind is not StatementKind.UNKNOWN or self.reason == EMPTY

    @property
    def moves(self) -> tuple[tuple[TableKey, TableKey], ...]:
        """Between which names rows move: ``renames`` and ``exchanges``."""
        return self.renames + self.exchanges

    @property
    def may_change_rows(self) -> bool:
        """Whether the statement itself may change rows, or runs what its text calls: not one that defines something
        alone. One that is not read may, unless statements with its first word define something."""
        if self.kind is StatementKind.UNKNOWN:
            return not self.commits_implicitly
        is_filled = self.create_select and not self.rows_follow
        return self.kind in (StatementKind.DML, StatementKind.LOAD_DATA) or is_filled

    @property
    def may_define_any(self) -> bool:
        """Whether the statement could not be read and may change the definition of any table."""
        return self.kind is StatementKind.UNKNOWN and self.commits_implicitly
