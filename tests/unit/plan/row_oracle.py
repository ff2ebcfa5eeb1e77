"""Tables in memory that take row events one row after the other and hold to their keys, as a server does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from binlane.binlog.wire import HEADER, EventType
from binlane.model import TableKey
from binlane.plan.block.reducible_tables import TableRule
from tests.unit.binlog.row_events import Column

Row = dict[int, bytes | None]
"""Values by column; of a partial image only some."""
_INSERTS = (EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS_V2)
_UPDATES = (EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS_V2)


@dataclass(frozen=True)
class Design:
    """A table's columns and how it is folded; ``keys``: its unique keys, the primary one first."""

    columns: tuple[Column, ...]
    rule: TableRule
    keys: tuple[tuple[int, ...], ...]


@dataclass
class Server:
    """Takes payloads. An AssertionError is the server's 1062 or 1032."""

    designs: dict[TableKey, Design]
    rows: dict[TableKey, list[Row]] = field(default_factory=dict)
    next_id: dict[TableKey, int] = field(default_factory=dict)
    changes: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Rows inserted, updated and deleted."""

    def take(self, payload: bytes) -> None:
        maps: dict[bytes, TableKey] = {}
        for code, body in events_of(payload):
            if code == EventType.TABLE_MAP:
                end = 9 + body[8]
                name = body[end + 2 : end + 2 + body[end + 1]]
                maps[body[:6]] = TableKey(body[9:end].decode(), name.decode())
                continue
            key = maps[body[:6]]
            for before, after in changes_of(code, body, self.designs[key].columns):
                self.change(key, before, after)
            if body[6] & 1:
                maps.clear()

    def change(self, key: TableKey, before: Row | None, after: Row | None) -> None:
        design, rows = self.designs[key], self.rows.setdefault(key, [])
        old: Row | None = None
        if before is not None:
            primary = {column: before[column] for column in design.keys[0]}
            found = [row for row in rows if primary.items() <= row.items()]
            assert len(found) == 1, f"1032: {key} {before}"
            old = found[0]
            rows.remove(old)
        if after is not None:
            new = (old or dict.fromkeys(range(len(design.columns)))) | after
            for columns in design.keys:
                values = [new[column] for column in columns]
                taken = any([row[column] for column in columns] == values for row in rows)
                assert None in values or not taken, f"1062: {key} {columns} {new}"
            rows.append(new)
            self._count_on(key, old, new)
        self.changes[(before is not None) + (before is not None and after is None)] += 1

    def _count_on(self, key: TableKey, old: Row | None, new: Row) -> None:
        rule = self.designs[key].rule
        value = None if rule.counter is None else new[rule.counter]
        if value is not None and (old is None or old[rule.counter or 0] != value):
            number = int.from_bytes(value, "little", signed=rule.counter_signed)
            self.next_id[key] = max(self.next_id.get(key, 1), number + 1)

    def state(self) -> object:
        """What two servers are compared by."""
        return {key: sorted(map(repr, rows)) for key, rows in self.rows.items() if rows}, {
            key: number for key, number in self.next_id.items() if number > 1
        }


def events_of(payload: bytes) -> Iterator[tuple[int, bytes]]:
    """Type code and body of each event."""
    at = 0
    while at < len(payload):
        _, code, _, size, _, _ = HEADER.unpack_from(payload, at)
        yield code, payload[at + HEADER.size : at + size]
        at += size


def changes_of(code: int, body: bytes, columns: Sequence[Column]) -> Iterator[tuple[Row | None, Row | None]]:
    """The rows of one event: before and after the change."""
    at = 8 if code < EventType.WRITE_ROWS_V2 else 10
    at += 1 if body[at] < 251 else 3
    length = (len(columns) + 7) // 8
    masks = [body[at : at + length]]
    at += length
    if code in _UPDATES:
        masks.append(body[at : at + length])
        at += length
    while at < len(body):
        images = []
        for mask in masks:
            row, at = _image(body, at, mask, columns)
            images.append(row)
        yield (None, images[0]) if code in _INSERTS else (images[0], images[1] if code in _UPDATES else None)


def _image(body: bytes, at: int, mask: bytes, columns: Sequence[Column]) -> tuple[Row, int]:
    present = [number for number in range(len(columns)) if mask[number >> 3] >> (number & 7) & 1]
    nulls, row = at, Row()
    at += (len(present) + 7) // 8
    for place, number in enumerate(present):
        row[number] = None
        if not body[nulls + (place >> 3)] >> (place & 7) & 1:
            prefix, fixed = columns[number].length
            size = int.from_bytes(body[at : at + prefix], "little") if prefix else fixed
            row[number] = body[at + prefix : at + prefix + size]
            at += prefix + size
    return row, at
