"""What one statement tells about itself: the values that ``statements.analyze`` gives and the filter decides by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from binlane.model import TableKey


class StatementKind(StrEnum):
    """What a statement is, as far as its place in the order goes."""

    DML = "dml"
    DDL = "ddl"
    GLOBAL = "global"
    """Server-wide: accounts, FLUSH, SET GLOBAL, plugins, servers, tablespaces."""
    TRANSACTION = "transaction"
    """BEGIN, COMMIT, ROLLBACK, SAVEPOINT, XA: says nothing about databases."""
    LOAD_DATA = "load_data"
    UNKNOWN = "unknown"
    """Not read exactly; ``reason`` says why."""


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """What a statement's text says. Views, triggers and routines behind its names are not in it: see SchemaFacts."""

    kind: StatementKind
    databases: frozenset[str] = frozenset()
    """Every database read or written, the default database for unqualified names. Empty if the kind is UNKNOWN."""
    tables: frozenset[TableKey] = frozenset()
    """Every table, view and sequence named, read or written."""
    written: frozenset[TableKey] = frozenset()
    """Those of ``tables`` whose rows an INSERT, REPLACE, UPDATE, DELETE or LOAD changes."""
    references: frozenset[str] = frozenset()
    """Databases named in REFERENCES clauses (they are in ``databases``, too)."""
    routines_used: bool = False
    """Calls a procedure, or a function that is not one of the server's own. Its database is in ``databases``."""
    temporary: bool = False
    """CREATE or DROP TEMPORARY. That a statement *uses* a temporary table cannot be told from its text."""
    created_temporary: TableKey | None = None
    """What CREATE TEMPORARY makes."""
    create_select: bool = False
    """CREATE TABLE that fills the table: by a query, or by the row events that follow (``START TRANSACTION``)."""
    commits_implicitly: bool = False
    """The statement commits by itself. For UNKNOWN: whether statements with its first word do."""
    reason: str | None = None
    """Why the kind is UNKNOWN: a short text without names, so that it can be counted."""
    views: frozenset[TableKey] = frozenset()
    """Views created or altered."""
    triggered: frozenset[TableKey] = frozenset()
    """Tables that get a trigger."""
    routine_databases: frozenset[str] = frozenset()
    """Databases that get a procedure, function or package."""
    renames: tuple[tuple[TableKey, TableKey], ...] = ()
    """Old and new name, in order; a table exchanged with a partition is a rename both ways."""
    ends_or_begins: bool = False
    """TRANSACTION: begins or ends one (not SAVEPOINT, RELEASE, ROLLBACK TO)."""
    drops_if_exists: bool = False
    """DROP TABLE ... IF EXISTS: harmless where the table does not exist."""
    unsafe: str | None = None
    """A part that another server answers differently, such as ``UUID()``; None where none was seen."""
    copies: tuple[tuple[TableKey, TableKey], ...] = ()
    """CREATE TABLE ... LIKE: the table that is copied and the new one. A MERGE table's UNION goes along."""
    union: frozenset[TableKey] = frozenset()
    """The tables that a MERGE table gets in its UNION."""
