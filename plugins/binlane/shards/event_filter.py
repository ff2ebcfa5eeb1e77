"""The shards of a whole transaction, and the reason if it needs a barrier.

Row events name their tables, so their databases are exact. A statement's databases are those that MySQL logged with it
(``Q_UPDATED_DB_NAMES``), those named in its text, and the default database, if it asks for that. MySQL's list includes
tables behind views, triggers and routines, but neither foreign key parents nor the tables that a new view selects from,
nor the databases of the views and routines themselves: where a window has statements, their definitions are serialized.
MariaDB logs no list: there, a statement that changes rows is known only if it names tables of one database, without
views, routines and triggers. Every other statement is ``#UNKNOWN`` and serialized (docs/invariants.md, 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import GLOBAL_SHARD, UNKNOWN_SHARD, Flavor, TableKey
from binlane.schema.dependencies import SchemaFacts
from binlane.sql.parse.facts import StatementFacts, StatementKind

GLOBAL_CAUSE: Final = "global"
CROSS_DATABASE: Final = "cross-database"
CROSS_DATABASE_DDL: Final = "ddl"
"""A DDL over several databases: RENAME into another database, CREATE ... LIKE, a foreign key."""
UNKNOWN_CAUSE: Final = "unknown: "
"""Prefix of the cause; the reason follows."""


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A statement's facts, and the list of databases that MySQL logged with it."""

    facts: StatementFacts
    updated_databases: tuple[str, ...] | None = None
    """MySQL's list of the databases that the statement reads or writes; None if the log has no list."""
    too_many_databases: bool = False
    """The list has the count 254, which stands for more than 16 databases."""


@dataclass(frozen=True, slots=True)
class TransactionShards:
    """The shards of a transaction."""

    shards: frozenset[str]
    """Those of its databases; or only ``#GLOBAL``, or only ``#UNKNOWN``. Empty
    for a transaction without changes."""
    cause: str | None = None
    """Why the transaction may need a barrier; None for a transaction of one shard."""


class EventMetadataFilter:
    """Decides the shards of whole transactions of one source."""

    def __init__(self, flavor: Flavor, schema: SchemaFacts, shard_of: Callable[[str], str] = str) -> None:
        """``flavor``: of the source. ``schema``: the facts that hold for the transactions to be assigned. ``shard_of``:
        the shard of a foreign key group (``assigners.Shards``); without it each group is a shard."""
        self._shard_of = shard_of
        self._lists_databases = flavor is Flavor.MYSQL
        self._schema = schema

    def shard_of(self, database: str) -> str:
        """The shard of a database's row changes."""
        return self._shard_of(self._schema.group_of(database))

    def assign(self, row_databases: Iterable[str], statements: Sequence[LoggedStatement]) -> TransactionShards:
        """The shards of a transaction: the databases of its TABLE_MAPs, and its statements in order."""
        shards = {self.shard_of(database) for database in row_databases}
        cause, unknown = CROSS_DATABASE, None
        for statement in map(self._as_compared, statements):
            kind = statement.facts.kind
            if kind is StatementKind.GLOBAL:
                return TransactionShards(frozenset({GLOBAL_SHARD}), GLOBAL_CAUSE)
            if kind is StatementKind.TRANSACTION:
                continue
            reason = self._unknown(statement)
            if reason is not None:
                unknown = reason if unknown is None else unknown
                continue
            named = self._shards(statement)
            if kind is StatementKind.DDL and len(named) > 1:
                cause = CROSS_DATABASE_DDL
            shards |= named
        if unknown is not None:
            return TransactionShards(frozenset({UNKNOWN_SHARD}), UNKNOWN_CAUSE + unknown)
        return TransactionShards(frozenset(shards), cause if len(shards) > 1 else None)

    def _as_compared(self, statement: LoggedStatement) -> LoggedStatement:
        """The statement with its names in the letter case of the schema's facts."""
        letter_case, listed = self._schema.letter_case, statement.updated_databases
        if not letter_case.folds:
            return statement
        names = None if listed is None else tuple(map(letter_case.name, listed))
        return LoggedStatement(letter_case.facts(statement.facts), names, statement.too_many_databases)

    def _listed(self, statement: LoggedStatement) -> frozenset[str]:
        """The databases that the source logged with the statement, without empty names."""
        listed = statement.updated_databases if self._lists_databases else None
        return frozenset(listed or ()) - {""}

    def _shards(self, statement: LoggedStatement) -> set[str]:
        facts = statement.facts
        names = facts.databases | self._listed(statement) | ({facts.default_database} - {None})
        return {self.shard_of(name) for name in names if name is not None}

    def _unknown(self, statement: LoggedStatement) -> str | None:
        """Why the statement's databases are not known; None if they are."""
        facts = statement.facts
        if self._lists_databases and statement.too_many_databases:
            return "more than 16 databases"
        if facts.kind is StatementKind.DDL and facts.reason is not None:
            return facts.reason
        if facts.defines_programs and self._lists_databases and self._schema.changes_by_statements:
            return "a view or routine that statements may reach without naming it"
        listed = bool(self._listed(statement))
        reads = facts.tables - facts.views
        if facts.kind is StatementKind.UNKNOWN and (facts.commits_implicitly or not listed):
            return facts.reason  # the list lacks the tables inside a definition
        if facts.views or (facts.create_select and not listed):  # the list lacks the tables that a view selects from
            return self._hidden(facts, reads)
        if listed:
            return None
        if facts.kind is StatementKind.DDL:
            return None
        if not facts.databases:
            return "names no database"
        if len(self._shards(statement)) > 1:
            return "a second database, and no list of databases"
        return self._hidden(facts, reads)

    def _hidden(self, facts: StatementFacts, reads: frozenset[TableKey]) -> str | None:
        """The view, trigger or routine by which the statement may change other databases; None if there is none."""
        schema = self._schema
        if schema.uncertain:
            return "a statement after one that could not be read"
        # before what the schema has: it may be of a time at which the window has dropped it
        if reads & schema.dropped:
            return "a table or view that the window drops"
        uses = {key.database for key in reads} | (facts.databases if facts.routines_used else frozenset())
        if uses & schema.dropped_in:
            return "a database of which the window drops something"
        if reads & schema.views:
            return "a view"
        if facts.kind is not StatementKind.DDL and reads & schema.triggered_tables:
            return "a table with triggers"
        if facts.routines_used and facts.databases & schema.routine_databases:
            return "a routine"
        return None
