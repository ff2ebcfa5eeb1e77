"""Definitions that a window's extraction has read, taken again by its precheck, and by later windows, while no server
has changed one since.

Counts of statements (``schema.statement_counts``) are noted before the definitions are read. The precheck compares them
with the counts of then, and reads everything anew if one differs, or if it cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from functools import cached_property
from typing import Final, TypeVar

from sqlalchemy import Connection

from binlane.apply.refusals import driver_errors
from binlane.connections import Endpoint
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.plan.transaction.rename import namesakes
from binlane.precheck.account.privileges import read_grants
from binlane.schema.canonical import canonical_json
from binlane.schema.codec import schema_from_json, schema_to_json
from binlane.schema.model import ForeignKey, Schema
from binlane.schema.statement_counts import StatementCounts
from binlane.servers.catalog import read_databases, read_foreign_keys, read_partitioned, read_schema, read_settings
from binlane.servers.engines import engine_of
from binlane.servers.statement_counts import may_be_changing, read_statement_counts
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Extent, Selection
from binlane.source.server import translated
from binlane.work import files
from binlane.work.files import Digests, WorkFolder

_Answer = TypeVar("_Answer")
_OWN_ENGINES: Final = frozenset(
    {"innodb", "myisam", "aria", "memory", "csv", "mrg_myisam", "blackhole", "archive", "rocksdb"}
)
"""Engines whose definitions are this server's alone: no other server and no file from elsewhere changes them."""


@dataclass(frozen=True, slots=True)
class ReadDefinitions:
    """definitions.json: when a window's definitions were read, in the servers' own counts."""

    target: StatementCounts | None = None
    """None: nothing tells whether they are still those that schema.json has."""
    source: StatementCounts | None = None
    """The same for source_schema.json; None also if the source was not asked."""
    asked: frozenset[str] = frozenset()
    """The databases that source_schema.json is about, by the source's names."""
    is_settled: bool = False
    """No statement that may change a definition was running on the source when source_schema.json was read, so that it
    holds for later windows as long as the counts do."""
    partitioned: frozenset[TableKey] | None = None
    """The target's partitioned tables, as of ``target``; None if they were not read."""


FILE: Final = Codec("remove the file and run the task again", rows=frozenset({TableKey}))


def counts_of_target(connection: Connection) -> StatementCounts | None:
    """The target's counts, before its definitions are read; None if a definition may change without a later count.

    A statement is counted when it begins. One that began earlier is seen among the running ones, if the account has
    PROCESS.
    """
    counts = read_statement_counts(connection)
    unseen = counts is None or read_grants(connection).missing(("PROCESS",)) or may_be_changing(connection)
    return None if unseen else counts


def counts_of_source(connection: Connection) -> tuple[StatementCounts | None, bool]:
    """The source's counts, before its definitions are read, and whether they tell of every change from now on.

    A statement that is running by now changes nothing about the window's rows: their log was read before. Of a later
    window's rows it may, and only an account with PROCESS sees it.
    """
    counts = read_statement_counts(connection)
    is_settled = not read_grants(connection).missing(("PROCESS",)) and not may_be_changing(connection)
    return counts, is_settled


def note_definitions(folder: WorkFolder, found: ReadDefinitions, target: Schema, source: Schema | None) -> Digests:
    """Write into a window's folder what its precheck may take again; the digests. ``source``: in its own names."""
    known = replace(
        found,
        target=found.target if _is_own(target) else None,
        source=found.source if source is not None and _is_own(source) else None,
    )
    written = dict[str, str]()
    # the counts of a second attempt in the same folder are others, and none of the two decides about the plan
    if source is not None and known.source is not None:
        written |= folder.replace(files.SOURCE_SCHEMA, schema_to_json(source))
    return written | folder.replace(files.DEFINITIONS, canonical_json(FILE.dump(known)))


def read_definitions(folder: WorkFolder) -> ReadDefinitions:
    """What was noted; nothing in a window's folder that has no definitions. Raises PlanError for a damaged file."""
    if not folder.has(files.DEFINITIONS):
        return ReadDefinitions()
    return FILE.read(ReadDefinitions, folder.read(files.DEFINITIONS), folder.path(files.DEFINITIONS))


def target_as_it_is(
    connection: Connection, databases: Set[str], counts: StatementCounts | None, read_then: Schema
) -> Schema:
    """The target's definitions of these databases: ``read_then`` if nothing has changed one since ``counts``."""
    if counts is None or not counts.hold_until(read_statement_counts(connection)):
        return read_schema(connection, databases)
    return with_settings_of_now(connection, read_then.of(databases))


def partitioned_as_it_is(connection: Connection, databases: Set[str], known: ReadDefinitions) -> frozenset[TableKey]:
    """The target's partitioned tables of these databases: those of then if nothing has changed one since."""
    counts = known.target
    if known.partitioned is None or counts is None or not counts.hold_until(read_statement_counts(connection)):
        return read_partitioned(connection, databases)
    return frozenset(key for key in known.partitioned if key.database in databases)


@dataclass(frozen=True)
class NotedDefinitions:
    """What a window's folder has of both servers' definitions. Each file is read once: the source's may have 80,000
    tables. Raises PlanError for a damaged file."""

    # no slots: cached_property keeps what was read

    folder: WorkFolder

    @cached_property
    def known(self) -> ReadDefinitions:
        """definitions.json."""
        return read_definitions(self.folder)

    @cached_property
    def source(self) -> Schema:
        """source_schema.json, if ``known`` has the source's counts."""
        return schema_from_json(self.folder.read(files.SOURCE_SCHEMA), self.folder.path(files.SOURCE_SCHEMA))


def source_as_it_is(connection: Connection, databases: Set[str], noted: NotedDefinitions) -> Schema:
    """The source's definitions of these databases: what the window's folder has if nothing has changed since."""
    counts = noted.known.source
    if counts is None or not counts.hold_until(read_statement_counts(connection)):
        return read_schema(connection, databases)
    # those that the target did not have were not asked for, as it would get them by the window's own statements
    if not databases & read_databases(connection) <= noted.known.asked:
        return read_schema(connection, databases)
    return with_settings_of_now(connection, noted.source.of(databases))


def foreign_keys_as_they_are(
    connection: Connection, selection: Selection, noted: NotedDefinitions
) -> Mapping[TableKey, tuple[ForeignKey, ...]]:
    """The foreign keys of the source's tables in databases that the filter takes, by table: what the window's folder
    has if nothing has changed since."""
    present = read_databases(connection)
    taken = frozenset(name for name in present if selection.database(name)[0] is not Extent.NONE)
    counts = noted.known.source
    if counts is None or not taken <= noted.known.asked or not counts.hold_until(read_statement_counts(connection)):
        return read_foreign_keys(connection, taken)
    tables = noted.source.of(taken).tables.items()
    return {key: table.foreign_keys for key, table in tables if table.foreign_keys}


def with_settings_of_now(connection: Connection, known: Schema) -> Schema:
    """The definitions, of a server whose counts hold, with its present settings: SET GLOBAL is not counted as a change
    of definitions. Its version and its collations are those with which it was started, before the counts of then."""
    return replace(known, settings=read_settings(connection))


def _is_own(schema: Schema) -> bool:
    return all(engine.lower() in _OWN_ENGINES for engine in {table.engine for table in schema.tables.values()})


def source_schema_of(
    endpoint: Endpoint,
    databases: frozenset[str],
    renaming: Renaming,
    read: Callable[[Connection, frozenset[str]], _Answer],
) -> _Answer:
    """What ``read`` says of the source's databases, by its own names. ``databases``: the target's names."""
    with translated(str(endpoint)), driver_errors(), engine_of(endpoint).connect() as connection:
        # with those that stand under the new names: they would be one with the renamed
        named = namesakes(renaming, read_databases(connection), databases) if renaming else frozenset()
        return read(connection, databases | named)
