"""MySQL's spatial reference systems: what a number in a column, or in a value, means on source and target.

A server has more than 5,000, and anybody with SUPER can add some, or give one another definition: no table has them, so
no first copy copies them, and what a spatial function computes depends on them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from binlane.binlog.types.literals import identifier, quoted
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.precheck.situation.facts import Server
from binlane.servers.names import among, literals

_DEFINITIONS: Final = (
    "SELECT srs_id, srs_name, organization, organization_coordsys_id, definition, description "
    "FROM information_schema.st_spatial_reference_systems"
)
_COLUMNS: Final = (
    "SELECT table_schema, table_name, column_name, srs_id FROM information_schema.st_geometry_columns WHERE "
)
_PLANE: Final = 0
"""The number of no system at all."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A system of the source that the target lacks, or has with another definition."""

    number: int
    place: str
    """A column that uses it."""
    is_missing: bool
    statement: str
    """What makes it."""


_System = tuple[object, ...]


def lacking_references(source: Server, target: Server, tables: Collection[TableKey]) -> Iterator[Reference]:
    """Those that columns and values of the tables use. Values are read only if the servers differ at all."""
    if source.flavor is not Flavor.MYSQL or not tables:
        return
    databases = literals(sorted({key.database for key in tables}))
    found = source.rows(_COLUMNS + among("table_schema", databases))
    columns = [(TableKey(str(row[0]), str(row[1])), str(row[2]), row[3]) for row in found]
    columns = [each for each in columns if each[0] in tables]
    if not columns:
        return
    ours, theirs = _systems(source), _systems(target)
    differ = {number for number, system in ours.items() if theirs.get(number) != system}
    used: dict[int, str] = {}
    for key, name, declared in columns if differ else ():
        of_column = _numbers(source, key, name) if declared is None else [int(str(declared))]
        for number in of_column:
            used.setdefault(number, f"{key}.{name}")
    for number in sorted(differ & used.keys()):
        yield Reference(number, used[number], number not in theirs, _statement(number, ours[number]))


def _systems(server: Server) -> Mapping[int, _System]:
    return {int(str(row[0])): tuple(row[1:]) for row in server.rows(_DEFINITIONS)}


def _numbers(source: Server, key: TableKey, column: str) -> list[int]:
    """Of the values of a column that takes any."""
    name = identifier(column).replace(":", "\\:")
    table = f"{identifier(key.database)}.{identifier(key.table)}".replace(":", "\\:")
    rows = source.rows(f"SELECT DISTINCT ST_SRID({name}) FROM {table} WHERE {name} IS NOT NULL")
    return [number for row in rows if (number := int(str(row[0]))) != _PLANE]


def _statement(number: int, system: _System) -> str:
    name, organization, identified, definition, description = system
    parts = [f"NAME {quoted(str(name))}"]
    if organization is not None:
        parts.append(f"ORGANIZATION {quoted(str(organization))} IDENTIFIED BY {identified}")
    parts.append(f"DEFINITION {quoted(str(definition))}")
    if description is not None:
        parts.append(f"DESCRIPTION {quoted(str(description))}")
    return f"CREATE OR REPLACE SPATIAL REFERENCE SYSTEM {number} {' '.join(parts)}"
