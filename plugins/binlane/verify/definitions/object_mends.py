"""Statements that create the source's databases, tables, views, routines, triggers and events on the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from binlane.binlog.types.literals import identifier, quoted
from binlane.model import Flavor, SchemaObject
from binlane.sql.scheduled_event import disabled
from binlane.verify.definitions.mend import Mend, nothing, one
from binlane.verify.rows.sides import Side


class _Shown(NamedTuple):
    """The columns of SHOW CREATE; None: it does not have them."""

    text: int = 1
    client: int | None = None
    """The character set of the client that created the object; its collation follows."""
    sql_mode: int | None = None
    time_zone: int | None = None


_ROUTINE: Final = _Shown(2, 3, 1)
_SHOWN: Final = {
    "database": _Shown(),
    "table": _Shown(),
    "sequence": _Shown(),
    "view": _Shown(1, 2),
    "event": _Shown(3, 4, 1, 2),
}
"""Routines and triggers: ``_ROUTINE``."""
_UNREPLACED: Final = frozenset({"database", "table", "sequence"})
"""Kinds that are created only where they are missing."""


def creation(source: Side, flavor: Flavor, objects: Sequence[SchemaObject]) -> Mend:
    """Create ``objects`` anew, in their order, with the session state that they were created with. Names are the same
    on both servers."""
    statements: list[str] = []
    for obj in objects:
        made = _statements(source, flavor, obj)
        if not made:
            return nothing(f"the source does not show its definition to this account: see SHOW CREATE {_kind(obj)}")
        statements += made
    return Mend(tuple(statements), "", tuple(objects))


def removal(obj: SchemaObject) -> Mend:
    """Drop an object."""
    return one(f"DROP {_kind(obj)} {_name(obj)}", "only the target has it")


def _statements(source: Side, flavor: Flavor, obj: SchemaObject) -> list[str]:
    shown = _SHOWN.get(obj.kind, _ROUTINE)
    [row] = source.texts(f"SHOW CREATE {_kind(obj)} {_name(obj)}")
    text = row[shown.text]
    if text is None:
        return []
    if obj.kind == "event":
        text = disabled(text.encode(), "utf8mb4", flavor).decode()
    state = [] if shown.sql_mode is None else [f"sql_mode = {quoted(row[shown.sql_mode] or '')}"]
    if shown.client is not None:
        state += [f"character_set_client = {row[shown.client]}", f"collation_connection = {row[shown.client + 1]}"]
    if shown.time_zone is not None:
        state.append(f"time_zone = {quoted(row[shown.time_zone] or '')}")
    if obj.kind == "table":
        state.append("foreign_key_checks = 0")
    return [
        *([] if obj.kind == "database" else [f"USE {identifier(obj.database)}"]),
        *([f"SET SESSION {', '.join(state)}"] if state else []),
        *(statement.decode() for statement in replacing(obj, text.encode(), flavor)),
    ]


def replacing(obj: SchemaObject, text: bytes, flavor: Flavor) -> list[bytes]:
    """The statements that create an object from its SHOW CREATE and replace the one that is there.

    MySQL has OR REPLACE for views only: between DROP and CREATE the object is missing.
    """
    if obj.kind in _UNREPLACED:
        return [text]
    if flavor is Flavor.MARIADB or obj.kind == "view":
        return [b"CREATE OR REPLACE " + text.removeprefix(b"CREATE ")]
    return [f"DROP {_kind(obj)} IF EXISTS {_name(obj)}".encode(), text]


def _kind(obj: SchemaObject) -> str:
    return obj.kind.upper()


def _name(obj: SchemaObject) -> str:
    return identifier(obj.database) + (f".{identifier(obj.name)}" if obj.name else "")
