"""Rows of a catalogue view, packed by the server into one text for each table.

A server of 2,000 tenants has 10,000 tables with 54,000 columns, and most of the time of reading them is this program's:
it goes into rows and values. Tenants have the same tables, so of 10,000 texts a handful differ, and only these are
unpacked. A text holds everything that the rows do: equal texts are equal definitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, text

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.servers.variables import session_variable

_END: Final = ";"
_NULL: Final = "-"
_LONGEST: Final = 0xFFFF_FFFF
"""Of ``group_concat_max_len``, MariaDB's maximum. ``max_allowed_packet`` limits a text, too, hence ``_is_whole``."""

PackedRow = Mapping[str, str | None]
"""The values of a row by name, as text."""


@dataclass(frozen=True, slots=True)
class PackedView:
    """A catalogue view with several rows a table."""

    view: str
    fields: Mapping[str, str]
    """The expression of each value, by the name that it gets."""
    order: str
    """Orders the rows of a table."""
    database: str = "table_schema"
    """The view's column with the database name."""
    table: str = "table_name"

    def read(self, condition: str, ask: Callable[[str], Iterable[Sequence[Any]]]) -> dict[TableKey, str]:
        """The rows of each table, packed. ``ask`` runs a query, within ``whole_texts``."""
        packed = ", ',', ".join(
            # CONCAT makes numbers texts: HEX of a number is the number in another base
            f"IFNULL(HEX(CONCAT({expression})), '{_NULL}')"
            for expression in self.fields.values()
        )
        # HEX: names that differ in their letter case alone are equal in these views, and would be one group
        names = f"HEX({self.database}), HEX({self.table})"
        found = list(
            ask(
                f"SELECT {names}, COUNT(*), GROUP_CONCAT({packed}, '{_END}' ORDER BY {self.order} SEPARATOR '') "
                f"FROM information_schema.{self.view} WHERE {condition} GROUP BY 1, 2"
            )
        )
        if all(_is_whole(str(rows), int(count)) for _, _, count, rows in found):
            return {_key(database, name): str(rows) for database, name, _, rows in found}
        one_by_one: dict[TableKey, list[str]] = defaultdict(list)
        rows_of = ask(
            f"SELECT {names}, CONCAT({packed}, '{_END}') FROM information_schema.{self.view} WHERE {condition} "
            f"ORDER BY {self.database}, {self.table}, {self.order}"
        )
        for database, name, row in rows_of:
            one_by_one[_key(database, name)].append(str(row))
        return {key: "".join(rows) for key, rows in one_by_one.items()}

    def unpacked(self, rows: str) -> list[PackedRow]:
        """The rows of a table."""
        return [dict(zip(self.fields, map(_value, row.split(",")), strict=True)) for row in rows.split(_END)[:-1]]


def read_names(connection: Connection, view: str, column: str) -> list[str]:
    """A column of names without a semicolon, such as a server's collations: MariaDB 11 has 1,242, MySQL 9 286.

    A session's usual ``group_concat_max_len`` (``pins``) has room for them, and a cut answer is asked for anew.
    """
    return ask_names(view, column, lambda query: connection.execute(text(query)))


def ask_names(view: str, column: str, ask: Callable[[str], Iterable[Sequence[Any]]]) -> list[str]:
    """``read_names``, if ``ask`` runs a query. Without ``whole_texts`` a server may have to be asked twice."""
    source = f"FROM information_schema.{view}"
    [[count, names]] = ask(f"SELECT COUNT({column}), GROUP_CONCAT({column}, '{_END}' SEPARATOR '') {source}")
    if _is_whole(str(names), int(count)):
        return str(names).split(_END)[:-1]
    return [str(name) for (name,) in ask(f"SELECT {column} {source}") if name is not None]


@contextmanager
def whole_texts(connection: Connection) -> Iterator[None]:
    """The server returns texts of any length while the context lasts; others may use the connection afterwards."""
    [[before]] = connection.execute(text("SELECT @@SESSION.group_concat_max_len"))
    with session_variable(connection, "group_concat_max_len", _LONGEST, int(before)):
        yield


def _is_whole(rows: str, count: int) -> bool:
    """Whether the server has not cut the text of so many rows."""
    return rows.endswith(_END) and rows.count(_END) == count


def _key(database: Any, name: Any) -> TableKey:
    return TableKey(bytes.fromhex(str(database)).decode(), bytes.fromhex(str(name)).decode())


def _value(packed: str) -> str | None:
    return None if packed == _NULL else bytes.fromhex(packed).decode()
