"""The definitions of both servers for a new window: read, or those of the window before while nothing has changed one.

A fleet's tables take longer to read than a small window's log. Both servers count the statements that may change a
definition (``noted``), so what an earlier window has read can be taken again, window after window, until
a count differs (docs/decisions/0022-definitions-are-kept-from-one-window-to-the-next.md).
"""

from __future__ import annotations

import logging
from functools import partial

from sqlalchemy import Connection

from binlane.apply.refusals import driver_errors
from binlane.choices import Reduce
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import PlanError, WorkError
from binlane.formats import OF_WINDOW, written_formats
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.plan.transaction.rename import sources_of
from binlane.precheck.definitions.noted import (
    ReadDefinitions,
    counts_of_source,
    counts_of_target,
    read_definitions,
    with_settings_of_now,
)
from binlane.schema.codec import schema_from_json
from binlane.schema.model import Schema
from binlane.schema.statement_counts import StatementCounts
from binlane.servers.catalog import read_databases, read_partitioned, read_schema
from binlane.servers.engines import engine_of, in_background
from binlane.shards.renaming import Renaming
from binlane.source.server import translated
from binlane.state.records.retention import newest_finished_work
from binlane.state.window_folders import WindowFolders
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.folder_formats import read_formats

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WindowDefinitions:
    """What a window begins with."""

    target: Schema
    source: Schema | None
    """In its own names; None if nothing is reduced, or for an archive, whose source cannot be asked: then the target's
    keys are taken for the source's."""
    read: ReadDefinitions
    """When, for ``note_definitions``."""


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The newest finished window's folder, as far as it tells of definitions."""

    folder: WorkFolder
    read: ReadDefinitions

    @classmethod
    def of(cls, connection: Connection, folders: WindowFolders) -> _Earlier | None:
        """None if the window's files are removed, lost, damaged or another release's."""
        newest = newest_finished_work(connection, folders.channel)
        try:
            folder = None if newest is None else folders.found(*newest)
            if folder is None:
                return None
            if read_formats(folder) != written_formats(OF_WINDOW):
                return None
            return cls(folder, read_definitions(folder))
        except (PlanError, WorkError) as exc:
            _log.warning("the definitions are read anew: %s", exc)
            return None

    def target(self, connection: Connection, databases: frozenset[str], now: StatementCounts | None) -> Schema | None:
        """The target's definitions of these databases; None if one may have changed by ``now``."""
        if self.read.target is None or not self.read.target.hold_until(now):
            return None
        return self._schema(connection, files.SCHEMA, databases)

    def source(self, connection: Connection, databases: frozenset[str], now: StatementCounts | None) -> Schema | None:
        """The same of the source, by its own names."""
        read = self.read
        if read.source is None or not read.is_settled or not databases <= read.asked or not read.source.hold_until(now):
            return None
        return self._schema(connection, files.SOURCE_SCHEMA, databases)

    def _schema(self, connection: Connection, name: str, databases: frozenset[str]) -> Schema | None:
        try:
            found = schema_from_json(self.folder.read(name), self.folder.path(name))
        except (PlanError, WorkError) as exc:
            _log.warning("the definitions are read anew: %s", exc)
            return None
        return with_settings_of_now(connection, found.of(databases))


def definitions_for(
    channel: ChannelConfig, endpoints: Endpoints, connection: Connection, renaming: Renaming
) -> WindowDefinitions:
    """The definitions of all databases of the target, which ``connection`` is to, and of the same on the source."""
    counts = counts_of_target(connection)
    databases = read_databases(connection)
    earlier = _Earlier.of(connection, WindowFolders(channel.work.uri, channel.name))
    asked = sources_of(renaming, databases)
    with in_background(partial(_of_source, channel, endpoints, asked, earlier)) as source:
        target, partitioned = _of_target(connection, databases, counts, earlier)
        theirs, source_counts, is_settled = source()
    return WindowDefinitions(target, theirs, ReadDefinitions(counts, source_counts, asked, is_settled, partitioned))


def _of_target(
    connection: Connection, databases: frozenset[str], counts: StatementCounts | None, earlier: _Earlier | None
) -> tuple[Schema, frozenset[TableKey] | None]:
    """The target's definitions, and its partitioned tables if the precheck will need them and can take them again."""
    kept = None if earlier is None else earlier.target(connection, databases, counts)
    if kept is not None and earlier is not None:
        return kept, earlier.read.partitioned
    found = read_schema(connection, databases)
    is_asked_for = counts is not None and found.flavor is Flavor.MARIADB
    return found, read_partitioned(connection, databases) if is_asked_for else None


def _of_source(
    channel: ChannelConfig, endpoints: Endpoints, asked: frozenset[str], earlier: _Earlier | None
) -> tuple[Schema | None, StatementCounts | None, bool]:
    if endpoints.source is None or channel.blocks.reduce == Reduce.OFF:
        return None, None, False
    with translated(str(endpoints.source)), driver_errors(), engine_of(endpoints.source).connect() as connection:
        counts, is_settled = counts_of_source(connection)
        found = None if earlier is None else earlier.source(connection, asked, counts)
        return read_schema(connection, asked) if found is None else found, counts, is_settled
