"""The parts of a decoded transaction (``decode``): row events and statements, in order."""

from __future__ import annotations

from binlane.binlog.query import Query
from binlane.binlog.table_map import TableMap
from binlane.lazy_dataclass import dataclass
from binlane.model import RowCounts, SessionContext, TableKey
from binlane.sql.parse.facts import StatementFacts


@dataclass(frozen=True, slots=True)
class MapPart:
    """A TABLE_MAP, checksum stripped."""

    table: TableMap
    event: bytes
    sql_mode: int | None = None
    """MySQL: the session's, in which a replica computes the columns of the rows; None if the log does not have it."""
    time_zone: str | None = None
    """The same: logged with a statement that has used it."""
    lc_time_names: int | None = None
    """The same: None for en_US."""

    @property
    def key(self) -> TableKey:
        """The table that the event describes."""
        return TableKey(self.table.database, self.table.table)


@dataclass(frozen=True, slots=True)
class RowsPart:
    """A ROWS event, checksum stripped, with the number of its rows."""

    table: MapPart
    event: bytes
    counts: RowCounts


@dataclass(frozen=True, slots=True)
class StatementPart:
    """A statement with the session it was logged in."""

    sql: bytes
    context: SessionContext
    facts: StatementFacts
    query: Query
    file: tuple[memoryview, ...] | None = None
    """The pieces of the file that a LOAD DATA reads; None for any other statement."""
    session: tuple[int, int] | None = None
    """Server id and thread id, if the statement depends on its connection: temporary tables, CONNECTION_ID()."""
    is_marked: bool = True
    """Whether its server has marked it as one that does."""


@dataclass(frozen=True, slots=True)
class FilteredPart:
    """A statement or row changes that the filter leaves out: counted, never written. Comes behind all other parts."""

    rule: str
    """The rule of the filter."""
    table: TableKey | None
    """The table of row changes; None for a statement."""
    counts: RowCounts


Part = MapPart | RowsPart | StatementPart | FilteredPart
