"""Compares the target's rows with before images: the target itself compares, value by value.

Rows are found by their key and locked; every column of the before image is compared, except generated ones. Strings are
compared as bytes, FLOAT and DOUBLE as the stored number, ENUM and SET by their numbers, JSON by the server's text and
by the types of its values; between MySQL and MariaDB, whose texts of one JSON value differ, by value.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from binlane.apply.rows.statements import MAX_BYTES, MAX_ROWS, StatementBuilder, hashed, same_document
from binlane.binlog.row_values import Absent, Image
from binlane.binlog.types.column_types import AS_BYTES, AS_DIGITS, LOGGED_TYPES
from binlane.binlog.types.columns import Column
from binlane.binlog.types.json_binary import JsonDiffs, JsonDocument, json_text
from binlane.binlog.types.json_equality import spelled_by_value
from binlane.binlog.types.literals import identifier
from binlane.binlog.types.readers import Value
from binlane.errors import ApplyError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_HASHED: Final = 255
"""Longer strings, in bytes, are compared by length and SHA-256: as text an image may be longer than a statement."""
_TYPED: Final = 65_536
"""JSON text of at most this many bytes is also compared by the types of its values: a date and its text look alike."""


@dataclass(frozen=True, slots=True)
class BeforeImages:
    """Compares rows of one table with before images, in the session that writes them. Images hold the row's key."""

    session: LaneSession
    builder: StatementBuilder

    def differing(self, images: Iterable[Image]) -> Iterator[Image]:
        """The images whose row exists with other values. Raises ApplyError if a statement would be too long."""
        group: list[tuple[Image, str]] = []
        size, room = 0, min(MAX_BYTES, self.session.max_allowed_packet // 2)
        for image in images:
            condition = self._differs(image, by_text=True)
            if group and (len(group) == MAX_ROWS or size + len(condition) > room):
                yield from self._of_group(group)
                group, size = [], 0
            group.append((image, condition))
            size += len(condition) + 6
        yield from self._of_group(group)

    def has_other_than(self, before: Image, after: Image | None, number: int) -> bool:
        """Whether the row with the key of ``before`` has, in a column, neither the value before the change nor the one
        after it; ``after`` is None for a deletion. A value that the log does not have before the change is not
        compared; a generated column counts as another one."""
        if isinstance(before[number], Absent):
            return False
        if number not in self.builder.table.written:
            return True
        values = (before[number],) if after is None else (before[number], after[number])
        known = (value for value in values if not isinstance(value, Absent | JsonDiffs))
        other = (f"({self._same(number, value)}) IS NOT TRUE" for value in known)
        return self._count(" AND ".join((self.builder.condition(before)[0], *other))) > 0

    def has_equal_row(self, image: Image, key: Iterable[int]) -> bool:
        """Whether a row with exactly the image's values exists. ``key``: columns of a unique key to find it by."""
        held, columns = dict(self._held(image)), self.builder.table.columns
        found = [f"{identifier(columns[n].label)} = {self.builder.literal(columns[n], held[n])}" for n in key]
        return self._count(" AND ".join((*found, *(self._same(number, value) for number, value in held.items())))) > 0

    def _of_group(self, group: Sequence[tuple[Image, str]]) -> Iterator[Image]:
        if not group or self._count(" OR ".join(condition for _, condition in group)) == 0:
            return
        for image, condition in group:
            if self._count(condition) and (self._count(self._differs(image, by_text=False)) or self._other_json(image)):
                yield image

    def _count(self, condition: str) -> int:
        sql = f"SELECT COUNT(*) FROM {self.builder.name} WHERE {condition} FOR UPDATE"
        if len(sql) + 1 > self.session.max_allowed_packet:
            raise ApplyError(
                f"{self.builder.table.key}: comparing a row needs a statement of {len(sql):,} bytes, the target "
                f"has max_allowed_packet = {self.session.max_allowed_packet:,}: raise it"
            )
        return int(self.session.value(sql))

    def _differs(self, image: Image, *, by_text: bool) -> str:
        """A condition: the row with the image's key has other values. ``by_text``: compare MySQL's JSON too."""
        held = [(number, value) for number, value in self._held(image) if by_text or not self._is_by_value(value)]
        same = " AND ".join(self._same(number, value) for number, value in held) or "TRUE"
        return f"({self.builder.condition(image)[0]} AND ({same}) IS NOT TRUE)"

    def _held(self, image: Image) -> Iterator[tuple[int, Value]]:
        for number, value in enumerate(image):
            if number in self.builder.table.written and not isinstance(value, Absent):
                yield number, value

    def _is_by_value(self, value: Value) -> bool:
        return isinstance(value, JsonDocument) and self.builder.flavor is Flavor.MARIADB

    def _other_json(self, image: Image) -> bool:
        """Whether MariaDB's JSON text has another value than MySQL's document."""
        wanted = {number: value for number, value in self._held(image) if self._is_by_value(value)}
        if not wanted:
            return False
        names = (identifier(self.builder.table.columns[number].label) for number in wanted)
        texts = ", ".join(f"CAST({name} AS CHAR CHARACTER SET utf8mb4)" for name in names)
        [row] = self.session.rows(
            f"SELECT {texts} FROM {self.builder.name} WHERE {self.builder.condition(image)[0]} FOR UPDATE"
        )
        return any(
            text is None
            or not isinstance(value, JsonDocument)
            or spelled_by_value(text) != spelled_by_value(json_text(value.root))
            for text, value in zip(row, wanted.values(), strict=True)
        )

    def _same(self, number: int, value: Value) -> str:
        """A condition: the column has exactly this value. It may be NULL if the column has another value."""
        builder, column = self.builder, self.builder.table.columns[number]
        name = identifier(column.label)
        if isinstance(value, JsonDocument):
            return self._same_json(column, name, value)
        is_text = column.data_type != "json" or builder.flavor is Flavor.MARIADB
        compared = LOGGED_TYPES[column.type_code].compared
        if isinstance(value, bytes) and len(value) > _HASHED and compared == AS_BYTES and is_text:
            return hashed(compared.format(name), value)
        if isinstance(value, bytes) and compared == AS_DIGITS:
            return hashed(compared.format(name), value.hex().upper().encode())
        return builder.same(column, value)

    def _same_json(self, column: Column, name: str, value: JsonDocument) -> str:
        text = json_text(value.root).encode()
        if self.builder.flavor is Flavor.MARIADB:
            return hashed(f"CAST({name} AS BINARY)", text)
        if len(text) <= _TYPED:
            with contextlib.suppress(ValueError):  # bits and similar values in a document have no expression
                return self.builder.same(column, value)
        return same_document(column, value)
