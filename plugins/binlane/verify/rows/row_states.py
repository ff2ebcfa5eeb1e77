"""What a log says of single rows, column by column: as they were before its first change, or after its last.

An image in the log need not have every column (``binlog_row_image`` MINIMAL and NOBLOB, diffs of JSON documents). A
column that the log does not change has the value that it had; one that it changes without showing the value is lost.
Values are spelled as a server returns them for ``column_text.ComparedTable.row_expressions``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Set
from dataclasses import field
from enum import Enum
from typing import Final, Protocol

from binlane.binlog.row_values import Absent, Change, Image
from binlane.binlog.types.json_binary import JsonDiffs, JsonDocument, json_text
from binlane.binlog.types.json_equality import spelled_by_value
from binlane.binlog.types.json_typed import spelled_with_types
from binlane.binlog.types.readers import Value
from binlane.binlog.types.sql_types import sql_type
from binlane.binlog.types.sql_values import FLOAT, JSON, LARGE, NOT_COPIED, OPAQUE, ValueKind
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.schema.binding import BoundTable
from binlane.schema.model import Column
from binlane.verify.rows.column_text import ComparedTable, Key, key_text


class Unknown(Enum):
    """A column whose value the log does not tell."""

    UNCHANGED = "not changed by the log"
    LOST = "changed by the log, which does not have the value"


Cell = str | None | Unknown
Cells = tuple[Cell, ...]
"""One entry for each compared column."""
RowState = Cells | None
"""None: there is no such row."""
Keys = Mapping[TableKey, Set[Key] | None]
"""Keys by table; None: all keys of the table. Tables without an entry are of no interest."""


@dataclass(frozen=True, slots=True)
class ImageTexts:
    """The images of one TABLE_MAP as keys and texts."""

    compared: ComparedTable
    places: tuple[int, ...]
    """The compared columns' places in an image."""
    key_places: tuple[int, ...]

    @classmethod
    def of(cls, compared: ComparedTable, bound: BoundTable) -> ImageTexts:
        """Of a table as it is logged."""
        place = {column.name: number for number, column in enumerate(bound.columns)}
        return cls(
            compared,
            tuple(place[column.name] for column in compared.columns),
            tuple(place[column.name] for column in compared.key),
        )

    def key(self, image: Image, before: Image | None) -> Key:
        """The key of an image; columns that a partial after-image leaves out keep the value of the before-image."""
        values = []
        for column, place in zip(self.compared.key, self.key_places, strict=True):
            value = image[place]
            if isinstance(value, Absent):
                assert before is not None
                value = before[place]
                assert not isinstance(value, Absent)
            values.append(key_text(column, value))
        return tuple(values)

    def cells(self, image: Image) -> Cells:
        """The compared columns; UNCHANGED for those that the image does not have."""
        return tuple(
            Unknown.UNCHANGED if isinstance(value := image[place], Absent) else _cell(column, value, self.compared)
            for column, place in zip(self.compared.columns, self.places, strict=True)
        )


class Recorder(Protocol):
    """Keeps what a log says of rows while it is read."""

    def wants(self, table: TableKey) -> bool:
        """Whether changes of the table's rows are of interest."""

    def take(self, texts: ImageTexts, change: Change, before: Key | None, after: Key | None) -> None:
        """One row change, in the log's order; the keys are those of its images."""


@dataclass(frozen=True, slots=True)
class FirstStates:
    """Rows as they were where reading began: the source's rows at the watermark, as its own log shows them."""

    wanted: Keys
    rows: dict[TableKey, dict[Key, RowState]] = field(default_factory=dict)

    def wants(self, table: TableKey) -> bool:
        """See ``Recorder``."""
        return table in self.wanted

    def take(self, texts: ImageTexts, change: Change, before: Key | None, after: Key | None) -> None:
        """See ``Recorder``."""
        table = texts.compared.target
        if table not in self.wanted:
            return
        wanted, rows = self.wanted[table], self.rows.setdefault(table, {})
        stays = before == after
        if before is not None and (wanted is None or before in wanted):
            known = rows.get(before, (Unknown.UNCHANGED,) * len(texts.places))
            if known is not None and Unknown.UNCHANGED in known:
                assert change.before is not None
                new = texts.cells(change.after) if stays and change.after is not None else None
                rows[before] = _first(known, texts.cells(change.before), new)
        if after is not None and not stays and after not in rows and (wanted is None or after in wanted):
            rows[after] = None


def _first(known: Cells, old: Cells, new: Cells | None) -> Cells:
    """What is known of a row's first values after one more change. ``new``: None if the row is gone."""
    cells = []
    for number, (cell, before) in enumerate(zip(known, old, strict=True)):
        if cell is Unknown.UNCHANGED:
            cell = before
            if cell is Unknown.UNCHANGED and (new is None or new[number] is not Unknown.UNCHANGED):
                cell = Unknown.LOST
        cells.append(cell)
    return tuple(cells)


@dataclass(frozen=True, slots=True)
class LastStates:
    """Rows as the log leaves them."""

    wanted: Keys
    rows: dict[TableKey, dict[Key, RowState]] = field(default_factory=dict)

    def wants(self, table: TableKey) -> bool:
        """See ``Recorder``."""
        return table in self.wanted

    def take(self, texts: ImageTexts, change: Change, before: Key | None, after: Key | None) -> None:
        """See ``Recorder``."""
        table = texts.compared.target
        if table not in self.wanted:
            return
        wanted, rows = self.wanted[table], self.rows.setdefault(table, {})
        known: RowState = None
        if before is not None and (wanted is None or before in wanted):
            known = rows.get(before)
            rows[before] = None
        if after is not None and (wanted is None or after in wanted):
            assert change.after is not None
            new = texts.cells(change.after)
            old = None if change.before is None else texts.cells(change.before)
            rows[after] = _last(known, old, new)


def _last(known: RowState, old: Cells | None, new: Cells) -> Cells:
    sides = [new, *(side for side in (old, known) if side is not None)]
    return tuple(
        next((cell for cell in cells if cell is not Unknown.UNCHANGED), Unknown.LOST)
        for cells in zip(*sides, strict=True)
    )


def same_cell(column: Column, logged: Cell, text: str | None) -> bool:
    """Whether a known cell is the value whose text a server has returned."""
    if logged == text:
        return True
    if not isinstance(logged, str) or text is None:
        return False
    return sql_type(column.data_type).values is FLOAT and double_of(logged) == double_of(text)


def double_of(text: str) -> str:
    """One spelling of a floating number, which a log and a server spell differently. Zero keeps its sign: where a
    server does not show it, ``ImageTexts`` has none."""
    return float(text).hex()


def _cell(column: Column, value: Value, compared: ComparedTable) -> Cell:
    if value is None:
        return None
    kind = sql_type(column.data_type).values
    if isinstance(value, JsonDiffs) or kind is NOT_COPIED:
        return Unknown.LOST
    return _SPELLED.get(kind, _as_key)(column, value, compared)


def _as_key(column: Column, value: Value, _compared: ComparedTable) -> str:
    return key_text(column, value)


def _hashed(data: bytes) -> str:
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()}"


def _json(_column: Column, value: Value, compared: ComparedTable) -> str:
    if compared.types_json and isinstance(value, JsonDocument):
        return spelled_with_types(value.root)
    text = json_text(value.root).encode() if isinstance(value, JsonDocument) else _bytes(value)
    if compared.by_value:
        return spelled_by_value(text.decode("utf-8", "surrogateescape"))
    return _hashed(text)


def _large(_column: Column, value: Value, _compared: ComparedTable) -> str:
    return _hashed(_bytes(value))


def _opaque(_column: Column, value: Value, _compared: ComparedTable) -> str:
    return _hashed(_bytes(value).hex().upper().encode())


def _float(_column: Column, value: Value, compared: ComparedTable) -> str:
    assert isinstance(value, float)
    # MariaDB shows -0 as 0, and between the families MySQL is asked for that, too
    return repr(value if set(compared.flavors) == {Flavor.MYSQL} else value + 0.0)


def _bytes(value: Value) -> bytes:
    assert isinstance(value, bytes)
    return value


_SPELLED: Final[Mapping[ValueKind, Callable[[Column, Value, ComparedTable], str]]] = {
    JSON: _json,
    LARGE: _large,
    OPAQUE: _opaque,
    FLOAT: _float,
}
