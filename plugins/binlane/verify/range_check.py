"""Whether the ranges of a key, as conditions, show every row that a table has.

Of a partitioned table a server reads only the partitions in which the rows of a range belong. ALTER TABLE ... EXCHANGE
PARTITION ... WITHOUT VALIDATION puts rows elsewhere: no range shows them, and a scan without a condition does. The
number of the ranges' rows is compared with that of a scan, both in one snapshot.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.servers.names import other_than
from binlane.verify.rows.column_text import ComparedTable, Key, in_range
from binlane.verify.rows.keys import in_order
from binlane.verify.rows.sides import Difference, Pair, Side, rows_of
from binlane.verify.throttle import Throttle

_PARTITIONED: Final = (
    "SELECT table_schema, table_name FROM information_schema.tables WHERE create_options LIKE '%partitioned%' AND "
    + other_than("table_schema", "('mysql', 'information_schema', 'performance_schema', 'sys')")
)
_SNAPSHOT: Final = (
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)
_LIVE: Final = ("COMMIT", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
"""The sessions of a comparison otherwise see each row as it is."""


@dataclass
class RangeCheck:
    """Checks the chunks of tables, on both servers."""

    # no slots: cached_property keeps what the servers have said

    pair: Pair
    throttle: Throttle
    chunk_rows: int

    def is_partitioned(self, table: ComparedTable) -> bool:
        """Whether either server may leave out partitions when it reads a range of the table."""
        ours, theirs = self._partitioned
        return table.source in ours or table.target in theirs

    def ends(self, table: ComparedTable, begin: Key | None) -> dict[Key | None, Key]:
        """The ends of all chunks behind a key, each by the end before it."""
        ends: dict[Key | None, Key] = {}
        after = begin
        while (end := self.pair.end_of_chunk(table, after, self.chunk_rows)) is not None:
            ends[after] = after = end
        return ends

    def show_all(self, table: ComparedTable, begin: Key | None, ends: Mapping[Key | None, Key]) -> bool:
        """Whether the chunks of a table have all of its rows: by their numbers in a snapshot of each server."""
        walked = [*([] if begin is None else [begin]), *ends.values()]
        # a single chunk is a scan
        return not walked or all(self._show_all(side, table, walked) for side in self.pair.sides)

    def have_shown_all(
        self, table: ComparedTable, begin: Key | None, walked: Sequence[Key], counts: Sequence[int]
    ) -> bool:
        """Whether chunks that were compared, ``counts`` rows on source and target, have had all rows of the table.

        Where the servers' own numbers are others, as they are while rows are written, the chunks are counted again.
        """
        if begin is None and not walked:
            return True
        if begin is None and [_count(side, table) for side in self.pair.sides] == list(counts):
            return True
        return self.show_all(table, begin, dict(zip((begin, *walked), walked, strict=False)))

    def is_found(self, table: ComparedTable, differing: Iterable[Difference]) -> bool:
        """Whether conditions on the key show the rows that a scan of the table has shown, on each server."""
        rows = [(one.key, (one.source, one.target)) for one in differing if one.key]
        for number, side in enumerate(self.pair.sides):
            keys = in_order(table, [key for key, states in rows if states[number] is not None])
            if len(rows_of(side, table, keys)) < len(keys):
                return False
        return True

    @cached_property
    def _partitioned(self) -> tuple[frozenset[TableKey], ...]:
        found = (side.texts(_PARTITIONED) for side in self.pair.sides)
        return tuple(frozenset(TableKey(schema or "", name or "") for schema, name in rows) for rows in found)

    def _show_all(self, side: Side, table: ComparedTable, ends: Sequence[Key]) -> bool:
        with _snapshot(side):
            left = _count(side, table)
            for after, end in zip((None, *ends), (*ends, None), strict=True):
                self.throttle.begin()
                found = _count(side, table, in_range(table, after, end, side.flavor(table)))
                self.throttle.end(found)
                left -= found
        return left == 0


def _count(side: Side, table: ComparedTable, condition: str = "") -> int:
    """The number of a table's rows; without a condition by a scan."""
    query = f"SELECT COUNT(*) FROM {side.name(table)}{f' WHERE {condition}' if condition else ''}"
    return int(side.execute(query)[0][0])


@contextlib.contextmanager
def _snapshot(side: Side) -> Iterator[None]:
    try:
        for statement in _SNAPSHOT:
            side.execute(statement)
        yield
    finally:
        for statement in _LIVE:
            side.execute(statement)
