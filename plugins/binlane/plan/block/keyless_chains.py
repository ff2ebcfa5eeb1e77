"""Changes of a table without a key of which one meets what an earlier one of the same event has left: A -> B, B -> C.

MySQL has the changes of an event in a hash and reads the table once (HASH_SCAN): it comes to B before or after it has
made it, and then fails with 1032 or changes another row, while nothing has drifted. In events of their own, changes are
made one after another, as on the source. MariaDB makes them so in any case.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from binlane.binlog.rows import PLAIN_TYPES, ROWS_KINDS, RowsEvent, RowsFlag, RowsKind, image_ranges
from binlane.binlog.rows_payload import events_of, is_table_map, parse_rows, parse_table_map, with_body
from binlane.binlog.table_map import FLAGS_IN_BODY, TableMap
from binlane.binlog.wire import HEADER
from binlane.model import Flavor, TableKey
from binlane.plan.block.reducible_tables import Exclusions
from binlane.schema.model import Key, Schema, Table

_TYPE_AT: Final = 4
_TABLE_ID: Final = slice(HEADER.size, HEADER.size + FLAGS_IN_BODY)
_NOT_LAST: Final = 0xFF ^ int(RowsFlag.STMT_END)


class ChainRules(Protocol):
    """The tables of which a server finds rows without a key."""

    source: Flavor
    """The log's."""

    def may_lack_key(self, key: TableKey) -> bool:
        """Whether the target may have no key that finds the table's rows."""
        ...


class AnyTable:
    """Nothing is known of the target's tables."""

    def __init__(self, source: Flavor) -> None:
        self.source = source

    def may_lack_key(self, key: TableKey) -> bool:
        """Any table may."""
        del key
        return True


class KeylessTables:
    """By the target's schema at the window's start. A table that the window changes may have become one."""

    def __init__(self, source: Flavor, schema: Schema, excluded: Exclusions) -> None:
        self.source, self._schema, self._changed = source, schema, excluded.reasons()
        self._known: dict[TableKey, bool] = {}

    def may_lack_key(self, key: TableKey) -> bool:
        """Whether the target may have no key that finds the table's rows."""
        if key not in self._known:
            table = self._schema.table(key)
            self._known[key] = table is None or self._changed.of(key) is not None or not _has_key(table)
        return self._known[key]


def _has_key(table: Table) -> bool:
    nullable = {column.name for column in table.columns if column.nullable}

    def finds_rows(key: Key) -> bool:
        return key.unique and all(part.name is not None and part.name not in nullable for part in key.columns)

    return any(map(finds_rows, table.keys))


def with_chains_apart(payload: bytes, rules: ChainRules) -> bytes:
    """A self-contained payload in which no update meets what an earlier one of its event has left."""
    tables: dict[bytes, TableMap] = {}
    made: list[bytes] = []
    for event in events_of(payload):
        if is_table_map(event):
            tables[event[_TABLE_ID]] = parse_table_map(event, rules.source)
            made.append(event)
            continue
        table = tables[event[_TABLE_ID]]
        is_update = ROWS_KINDS[event[_TYPE_AT]] is RowsKind.UPDATE
        if is_update and rules.may_lack_key(TableKey(table.database, table.table)):
            made.extend(_links(event, table))
        else:
            made.append(event)
    return b"".join(made)


def _links(event: bytes, table: TableMap) -> Iterator[bytes]:
    """The event's changes, in as many events as there are links."""
    parsed = parse_rows(event)
    whole = (1 << parsed.width) - 1
    if parsed.columns_before is None or int.from_bytes(parsed.columns_before, "little") & whole != whole:
        # the source had a key
        yield event
        return
    rows = bytes(parsed.rows)
    groups = list(_groups(parsed, table, rows))
    if len(groups) < 2:
        yield event
        return
    head = bytearray(event[HEADER.size : HEADER.size + parsed.images_at])
    ends = head[FLAGS_IN_BODY]
    for number, (begin, end) in enumerate(groups, 1):
        head[FLAGS_IN_BODY] = ends if number == len(groups) else ends & _NOT_LAST
        code = PLAIN_TYPES.get(event[_TYPE_AT], event[_TYPE_AT])
        yield with_body(event, bytes(head) + rows[begin:end], int(code))


def _groups(parsed: RowsEvent, table: TableMap, rows: bytes) -> Iterator[tuple[int, int]]:
    """Where the rows lie that may be changed together. After-images that are not whole rows cannot be compared."""
    are_whole = not parsed.partial and parsed.columns_before == parsed.columns_after
    left = set[bytes]()
    begin = end = 0
    for before, after in image_ranges(parsed, table):
        assert before is not None
        assert after is not None
        if end > begin and (not are_whole or rows[before[0] : before[1]] in left):
            yield begin, end
            begin, left = before[0], set()
        left.add(rows[after[0] : after[1]])
        end = after[1]
    yield begin, end
