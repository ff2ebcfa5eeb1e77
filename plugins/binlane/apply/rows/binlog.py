"""Writes rows by BINLOG statements: the source's own row events, which the target executes as a replica would.

MariaDB silently ignores a rows event without its TABLE_MAP in the same BINLOG statement, MySQL 9.7 crashes, and BINLOG
reports 0 affected rows. So payloads are checked before they are sent, and Handler counters afterwards (invariant 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.rows.row_images import ShortImages
from binlane.apply.rows.sequences import with_whole_sequences
from binlane.apply.rows.table_guard import users_tables
from binlane.apply.session.retry_verdicts import NO_GEOMETRY, error_code
from binlane.binlog.rows_payload import with_changes_apart, without_second_cascades
from binlane.errors import DriftError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, RowCounts, TableKey

if TYPE_CHECKING:
    from binlane.apply.rows.table_guard import TableGuard
    from binlane.apply.session.connection import LaneSession

_HANDLERS: Final = "SHOW SESSION STATUS WHERE variable_name IN ('Handler_write', 'Handler_update', 'Handler_delete')"


@dataclass(slots=True)
class BinlogRows:
    """Sends payloads as they are, or with shorter images of wide rows; with the flags that keep the target's foreign
    keys from cascading again what the log has as rows."""

    session: LaneSession
    guard: TableGuard | None = None
    short_images: ShortImages | None = None
    """Shortens the images of wide rows; None: all images are sent whole."""
    _partitioned: dict[TableKey, bool] = field(default_factory=dict)
    _plain: set[TableKey] = field(default_factory=set)
    """Tables that are known not to be partitioned: nearly all tables of every block."""
    _trusts_precheck: bool = True
    """Use the precheck's list of partitioned tables, until counters contradict it: it saves a query for each table."""

    def prepare(self, format_event: bytes) -> None:
        """Send the FORMAT_DESCRIPTION of the next block's events; outside of a transaction."""
        self.session.use_format(format_event)

    def forget_tables(self) -> None:
        """Read the properties of tables anew."""
        self._partitioned.clear()
        self._plain.clear()
        if self.short_images is not None:
            self.short_images.forget_tables()

    def write(self, items: Iterator[Item], seqno: int) -> RowCounts:
        """Send ROWS items; returns their row changes, which the target's Handler counters must confirm."""
        before = self._handler_counts()
        expected, tables = RowCounts(), set[TableKey]()
        for item in items:
            tables |= users_tables(item.payload, self.guard)
            if self.guard is not None:
                self.guard.check(item.payload, seqno)
            for events in without_second_cascades(with_whole_sequences(self.session, self._with_short_images(item))):
                for part in with_changes_apart(events) if self.session.flavor is Flavor.MARIADB else (events,):
                    self._send(part)
            expected += item.rows
        after = self._handler_counts()
        counted = RowCounts(
            after.inserts - before.inserts, after.updates - before.updates, after.deletes - before.deletes
        )
        if not (
            self._is_accounted_for(expected, counted, tables)
            or self._is_accounted_for_anew(expected, counted, tables)
            or self._with_graphs(expected, counted, tables)
            or self._with_saved_gtids(expected, counted, tables)
        ):
            names = ", ".join(sorted(map(str, tables))[:5])
            raise DriftError(f"the target counted {counted}, the block holds {expected}, in {names}")
        return expected

    def _send(self, part: bytes) -> None:
        try:
            self.session.binlog(part)
        except pymysql.err.MySQLError as exc:
            if error_code(exc) != NO_GEOMETRY or self.guard is None or self.session.flavor is not Flavor.MYSQL:
                raise
            # few windows need it
            from binlane.apply.rows.empty_geometries import explains_error

            if not explains_error(self.session, part, self.guard.source):
                raise

    def _with_short_images(self, item: Item) -> bytes:
        return item.payload if self.short_images is None else self.short_images.of(item.payload, item.rows)

    def _handler_counts(self) -> RowCounts:
        found = {name.lower(): int(value) for name, value in self.session.rows(_HANDLERS)}
        return RowCounts(found["handler_write"], found["handler_update"], found["handler_delete"])

    def _is_accounted_for(self, expected: RowCounts, counted: RowCounts, tables: set[TableKey]) -> bool:
        """Whether the counters show exactly the expected row changes, in the way that partitioned tables count them.

        MySQL counts an update that moves a row to another partition as a delete and an insert. MariaDB counts every row
        twice, for the table and for the partition; for a moved row, the partition counts a delete and an insert.
        """
        if tables <= self._plain:
            return counted == expected
        if self.session.flavor is Flavor.MYSQL:
            return counted == expected or (
                any(map(self._is_partitioned, tables)) and _with_moves(expected, counted, times=1)
            )
        partitioned = [self._is_partitioned(table) for table in sorted(tables, key=str)]
        if not any(partitioned):
            return counted == expected
        if all(partitioned):
            return _with_moves(expected, counted, times=2)
        # with partitioned and other tables together, only bounds are known
        return (
            expected.inserts <= counted.inserts <= 2 * expected.inserts + expected.updates
            and expected.updates <= counted.updates <= 2 * expected.updates
            and expected.deletes <= counted.deletes <= 2 * expected.deletes + expected.updates
        )

    def _is_accounted_for_anew(self, expected: RowCounts, counted: RowCounts, tables: set[TableKey]) -> bool:
        """``_is_accounted_for`` with tables read anew: a DDL of another lane may have partitioned one."""
        self.forget_tables()
        self._trusts_precheck = False
        return self._is_accounted_for(expected, counted, tables)

    def _with_graphs(self, expected: RowCounts, counted: RowCounts, tables: set[TableKey]) -> bool:
        """Whether the surplus may come from MariaDB's VECTOR keys (11.7 and newer).

        The graph of such a key is a hidden table of its own, whose rows are counted too. The number of its changed rows
        is unpredictable, so the counters only have to reach the block's own changes.
        """
        enough = (
            counted.inserts >= expected.inserts
            and counted.updates >= expected.updates
            and counted.deletes >= expected.deletes
        )
        return enough and self.session.flavor is Flavor.MARIADB and any(map(self._has_vector_key, tables))

    def _with_saved_gtids(self, expected: RowCounts, counted: RowCounts, tables: set[TableKey]) -> bool:
        """Whether the surplus may be GTIDs that MySQL has saved while the block was written.

        A change of a table without transactions commits at once. If the target's binlog reaches ``max_binlog_size``
        then, this session begins the next file, and its rows of ``mysql.gtid_executed`` are counted with the block's.
        """
        is_surplus = counted == RowCounts(max(counted.inserts, expected.inserts), expected.updates, expected.deletes)
        return is_surplus and self.session.flavor is Flavor.MYSQL and any(map(self._commits_at_once, tables))

    def _commits_at_once(self, table: TableKey) -> bool:
        query = (
            "SELECT e.transactions FROM information_schema.tables t JOIN information_schema.engines e "
            "ON e.engine = t.engine WHERE t.table_schema = %s AND t.table_name = %s"
        )
        return str(self.session.value(query, (table.database, table.table))).upper() == "NO"

    def _has_vector_key(self, table: TableKey) -> bool:
        query = (
            "SELECT COUNT(*) FROM information_schema.statistics "
            "WHERE table_schema = %s AND table_name = %s AND index_type = 'VECTOR'"
        )
        return bool(self.session.value(query, (table.database, table.table)))

    def _is_partitioned(self, table: TableKey) -> bool:
        if table not in self._partitioned:
            seen = self.guard.is_partitioned(table) if self.guard is not None and self._trusts_precheck else None
            self._partitioned[table] = self._asked_whether_partitioned(table) if seen is None else seen
            if not self._partitioned[table]:
                self._plain.add(table)
        return self._partitioned[table]

    def _asked_whether_partitioned(self, table: TableKey) -> bool:
        query = "SELECT create_options FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
        return "partitioned" in str(self.session.value(query, (table.database, table.table))).lower()


def _with_moves(expected: RowCounts, counted: RowCounts, times: int) -> bool:
    """Whether ``counted`` is ``times`` the expected changes, some updates counted as delete and insert."""
    moves = times * expected.updates - counted.updates
    exact = RowCounts(times * expected.inserts + moves, counted.updates, times * expected.deletes + moves)
    return 0 <= moves <= expected.updates and counted == exact
