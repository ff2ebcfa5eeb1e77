"""Which row images are sent shorter: key-only before an update or a deletion, and the changed columns after an update.

A BINLOG statement with whole images carries each wide row twice, as base64. Both servers find a row by its primary key
alone and complete a short image from the row that they find, so the target ends with the same rows and logs the same
images. Experiments (docs/decisions/0017) have turned over where this does not hold, or held on some servers only:
tables of these kinds keep whole images.

The target's definition decides, since its own primary key is the one that finds a row.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from binlane.binlog.rows_payload import DEFINITION
from binlane.binlog.table_map import TableMap
from binlane.binlog.vector.frames import Frames, TableIndex, frame, index_rows, table_layouts
from binlane.binlog.vector.narrow_rows import narrowed
from binlane.binlog.wire import HEADER
from binlane.lazy_dataclass import dataclass
from binlane.model import RowCounts, TableKey
from binlane.schema.model import REDUCIBLE_ENGINES, Table

if TYPE_CHECKING:
    from binlane.apply.rows.table_guard import TableGuard

_WIDE: Final = 256
"""Average bytes of a payload's images below which they stay whole: the server's time for a row hardly depends on
them."""
_WORTH_READING: Final = 4 << 20
"""Bytes of payloads with tables that are not known yet, before definitions are read, of all of them together: reading
costs the target as much as short images of so many bytes save."""
_NAME: Final = "block"
_BTREE: Final = "BTREE"


@dataclass(slots=True)
class ShortImages:
    """Shortens the images of payloads for one target."""

    guard: TableGuard
    _known: dict[bytes, tuple[TableMap, tuple[int, ...]]] = field(default_factory=dict)
    """By TABLE_MAP without its table id: the parsed event, and the columns of the key; none: images stay whole."""
    _seen: dict[bytes, TableMap] = field(default_factory=dict)
    """Tables whose definitions are not read yet."""
    _unread: int = 0
    """Bytes of payloads with such tables, since definitions were read."""

    def forget_tables(self) -> None:
        """Read the tables anew, after a DDL."""
        self.guard.forget_tables()
        self._known.clear()

    def of(self, payload: bytes, rows: RowCounts) -> bytes:
        """A self-contained payload with shorter images where that is exact and worth it; else the payload itself.

        ``rows``: the payload's row changes. Raises BinlogError for a damaged payload.
        """
        images = 2 * rows.updates + rows.deletes
        if images == 0 or len(payload) < _WIDE * (images + rows.inserts):
            return payload
        frames = frame(payload, 0, 0)
        frames.check(_NAME)
        index = index_rows(frames, _NAME)
        tables = self._tables(frames, index)
        keys = [key for _, key in tables]
        if not any(keys):
            return payload
        return narrowed(frames, index.number, table_layouts([table for table, _ in tables]), keys)

    def _tables(self, frames: Frames, index: TableIndex) -> list[tuple[TableMap, tuple[int, ...]]]:
        """Each table of a payload, and the key that is sent."""
        bodies = [bytes(frames.body(event)) for event in index.first.tolist()]
        definitions = [body[DEFINITION.start - HEADER.size :] for body in bodies]
        is_new = False
        for definition, body in zip(definitions, bodies, strict=True):
            if definition not in self._known:
                is_new = True
                if definition not in self._seen:
                    self._seen[definition] = TableMap.parse(memoryview(body), flavor=self.guard.source)
        if is_new:
            self._unread += frames.data.size
            if self._unread >= _WORTH_READING:
                self._read()
        return [self._known.get(definition) or (self._seen[definition], ()) for definition in definitions]

    def _read(self) -> None:
        """Read the definitions of all tables that were seen."""
        self.guard.read_together({table.database for table in self._seen.values()})
        self._known |= {definition: (table, self._key(table)) for definition, table in self._seen.items()}
        self._seen.clear()
        self._unread = 0

    def _key(self, table: TableMap) -> tuple[int, ...]:
        """The columns of the key that is sent; none for a table whose images stay whole."""
        name = TableKey(table.database, table.table)
        # a table that this window alters: the definition that is read may not be the one that the rows meet
        if self.guard.altered.names(name):
            return ()
        target = self.guard.target(name)
        if target is None or len(target.columns) != table.width:
            return ()
        return key_of_short_images(target)


def key_of_short_images(target: Table) -> tuple[int, ...]:
    """The columns of a table's primary key, from 0 and ascending, if short images have the same effect as whole ones;
    else none.

    None for tables without a primary key over whole columns, in other engines than InnoDB, with system versioning
    (short images let the server write history of its own), with periods or triggers, with generated columns, with
    columns of a length that the log does not tell, or with a key that is no B-tree of plain columns: MariaDB 10.5
    without a log of its own leaves old entries in indexes over virtual columns, MySQL 9.7 logs such columns as NULL.
    """
    primary = target.primary_key
    if (
        primary is None
        or target.engine.lower() not in REDUCIBLE_ENGINES
        or target.system_versioned
        or target.without_overlaps
        or target.triggers
        or any(column.generated is not None or column.has_unlogged_length for column in target.columns)
        or any(key.kind != _BTREE or any(part.name is None for part in key.columns) for key in target.keys)
        or any(part.prefix is not None for part in primary.columns)
    ):
        return ()
    place = {column.name.lower(): number for number, column in enumerate(target.columns)}
    return tuple(sorted(place[part.name.lower()] for part in primary.columns if part.name is not None))
