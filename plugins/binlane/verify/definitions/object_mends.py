"""Statements that create the source's databases, tables, views, routines, triggers and events on the target."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from binlane.binlog.types.literals import identifier, quoted
from binlane.errors import SourceError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SchemaObject
from binlane.schema.normalize import NEAREST_COLLATION, SAME_COLLATION
from binlane.servers.stored_bodies import is_gone
from binlane.servers.variables import version_number
from binlane.sessions.view_guard import REFUSED, WHY
from binlane.sql.charset import dialect_in
from binlane.sql.scheduled_event import disabled
from binlane.sql.shared_reading import Reader, definition_as_read
from binlane.sql.sql_modes import alike_modes, modes_there
from binlane.verify.definitions.mend import Mend, nothing, one
from binlane.verify.definitions.table_mends import OTHER_FAMILY, lacking_collation
from binlane.verify.rows.sides import Side


class _ShowCreateColumns(NamedTuple):
    """The columns of SHOW CREATE; None: it does not have them."""

    text: int = 1
    client: int | None = None
    """The character set of the client that created the object; its collation follows, and of a program the default of
    its database when it was made."""
    sql_mode: int | None = None
    time_zone: int | None = None


_ROUTINE: Final = _ShowCreateColumns(2, 3, 1)
_SHOWN: Final = {
    "database": _ShowCreateColumns(),
    "table": _ShowCreateColumns(),
    "sequence": _ShowCreateColumns(),
    "view": _ShowCreateColumns(1, 2),
    "event": _ShowCreateColumns(3, 4, 1, 2),
}
"""Routines and triggers: ``_ROUTINE``."""
_UNREPLACED: Final = frozenset({"database", "table", "sequence"})
"""Kinds that are created only where they are missing."""


@dataclass(frozen=True)
class Creation:
    """Creates the source's objects on the target. Names are the same on both servers."""

    source: Side
    flavors: tuple[Flavor, Flavor]
    """Of source and target."""
    collations: Collection[str]
    """The target's."""

    def of(self, objects: Sequence[SchemaObject]) -> Mend:
        """Create ``objects`` anew, in their order, with the session state that they were created with. An operator
        decides on the text of another family."""
        statements: list[str] = []
        for obj in objects:
            made, why = self._statements(obj)
            if why:
                return nothing(why)
            statements += made
        return Mend(tuple(statements), OTHER_FAMILY if self._is_across else "", tuple(objects))

    @property
    def _is_across(self) -> bool:
        return self.flavors[0] is not self.flavors[1]

    def _statements(self, obj: SchemaObject) -> tuple[list[str], str]:
        """The statements; or why there are none."""
        shown, target = _SHOWN.get(obj.kind, _ROUTINE), self.flavors[1]
        statement = f"SHOW CREATE {_kind(obj)} {_name(obj)}"
        try:
            [row] = self.source.texts(statement)
        except SourceError as exc:
            if is_gone(exc):
                return [], "the source has dropped it meanwhile"
            if exc.__cause__ is None or exc.__cause__.args[:1] != (REFUSED,):
                raise
            return [], f"{WHY}: see {statement} on the source"
        text = row[shown.text]
        if text is None:
            return [], f"the source does not show its definition to this account: see {statement} there"
        try:
            # the session's, by which the text is read
            mode = "" if shown.sql_mode is None else self._mode(row[shown.sql_mode] or "")
            text = definition_as_read(text, mode, self._reader, target)
        except ValueError as strange:
            return [], f"{strange}: see {statement} on the source"
        if self._is_across and (lacking := lacking_collation(text, self.collations)):
            return [], f"the target has no collation {lacking}: see {statement} on the source"
        if obj.kind == "event":
            text = disabled(text.encode(), "utf8mb4", dialect_in(mode, target)).decode()
        state = [] if shown.sql_mode is None else [f"sql_mode = {quoted(mode)}"]
        if shown.client is not None:
            collation = self._collation(row[shown.client + 1] or "")
            state += [f"character_set_client = {row[shown.client]}", *collation]
        if shown.time_zone is not None:
            state.append(f"time_zone = {quoted(row[shown.time_zone] or '')}")
        if obj.kind == "table":
            state.append("foreign_key_checks = 0")
        made = [statement.decode() for statement in replacing(obj, text.encode(), target)]
        if shown.client is not None and shown.sql_mode is not None:
            made = self._under_default(obj, row[shown.client + 2] or "", made)
        return [
            *([] if obj.kind == "database" else [f"USE {identifier(obj.database)}"]),
            *([f"SET SESSION {', '.join(state)}"] if state else []),
            *made,
        ], ""

    def _under_default(self, obj: SchemaObject, wanted: str, made: list[str]) -> list[str]:
        """The statements that make a program, under the default that its database had when it was made."""
        query = (
            "SELECT default_collation_name FROM information_schema.schemata "
            f"WHERE CAST(schema_name AS BINARY) = CAST({quoted(obj.database)} AS BINARY)"
        )
        [(present,)] = self.source.texts(query) or [(None,)]
        before, after = (self._named(each or "") for each in (wanted, present))
        if not before or not after or before == after:
            return made
        alter = f"ALTER DATABASE {identifier(obj.database)} COLLATE"
        return [f"{alter} {before}", *made, f"{alter} {after}"]

    @cached_property
    def _reader(self) -> Reader:
        [(version,)] = self.source.texts("SELECT VERSION()")
        return Reader(self.flavors[0], version_number(str(version)))

    def _mode(self, mode: str) -> str:
        alike = ",".join(alike_modes(mode, self.flavors[0])) if self._is_across else mode
        return modes_there(alike, self.flavors[1])

    def _collation(self, name: str) -> list[str]:
        """The assignment, if the target has the collation, or that of its own family."""
        named = self._named(name)
        return [f"collation_connection = {named}"] if named else []

    def _named(self, name: str) -> str:
        """The collation, or that of the target's own family; empty if the target has neither."""
        if self._is_across and name not in self.collations:
            name = SAME_COLLATION.get(name, NEAREST_COLLATION.get(name, ""))
        return name if name in self.collations or not self._is_across else ""


def removal(obj: SchemaObject) -> Mend:
    """Drop an object."""
    return one(f"DROP {_kind(obj)} {_name(obj)}", "only the target has it")


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
