"""Compares the version and tables of the schema ``binlane`` on a target with those of this build, by a few queries.

Every command and task runs this check before it reads or writes the schema.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from sqlalchemy import Column, Connection, Dialect, Table, select, text
from sqlalchemy.schema import CreateColumn
from sqlalchemy.types import TypeEngine

from binlane.errors import StateSchemaError
from binlane.lazy_dataclass import dataclass
from binlane.servers.packed import PackedRow, PackedView
from binlane.sessions.state_guard import trigger_of, view_in_place
from binlane.state.carried.temporary_tables import is_copy
from binlane.state.consistent_view import CONSISTENT, CONSISTENT_COLUMNS
from binlane.state.tables import SCHEMA, VERSION, channels, metadata

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

OWN: Final[Mapping[str, Table]] = {table.name: table for table in metadata.sorted_tables}
"""binlane's tables by name."""
_UPGRADING: Final = "`Upgrading` in docs/operations.md"
_LOST: Final = "`The schema binlane is lost` in docs/recovery.md"
_VERSION: Final = f"SELECT MAX(version) FROM {SCHEMA}.migrations"
# two queries, because MariaDB needs ten times as long for a join of the two views; by trigger_schema, which is the
# same, it would open every table of every database
_TABLES: Final = text(
    "SELECT table_name, engine, table_type FROM information_schema.tables WHERE table_schema = :schema UNION ALL "
    "SELECT event_object_table, trigger_name, 'TRIGGER' FROM information_schema.triggers "
    "WHERE event_object_schema = :schema"
)
# packed: the driver needs more time for some hundred rows than the server to make one text of them
_COLUMNS: Final = PackedView(
    "columns",
    {
        "name": "column_name",
        "type": "column_type",
        "nullable": "is_nullable",
        "key": "column_key",
        "collation": "collation_name",
    },
    "ordinal_position",
)
_WHOLE: Final = text("SET SESSION group_concat_max_len = 1048576")
"""Longer than any table's text; the servers' default is 1 KiB. A text that is cut all the same is noticed."""
_OLD_FORMAT: Final = " /* mariadb-5.3 */"
"""Behind the type of a DATETIME that MariaDB has made with mysql56_temporal_format=OFF: it holds the same values."""
_DISPLAY_WIDTH: Final = re.compile(r"^((?:big|medium|small|tiny)?int)\(\d+\)")
"""MariaDB and MySQL before 8.0.19 print a display width, which does not affect values."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A column as information_schema shows it."""

    type: str
    collation: str | None
    is_nullable: bool
    key: str
    """PRI, UNI, MUL or empty."""

    def __str__(self) -> str:
        parts = (self.type, self.collation, "NULL" if self.is_nullable else "NOT NULL", self.key and f"key {self.key}")
        return " ".join(part for part in parts if part)

    def serves_as(self, expected: Shape) -> bool:
        """Whether the column is as expected; an additional index on it is allowed."""
        own = (self.type, self.collation, self.is_nullable)
        return own == (expected.type, expected.collation, expected.is_nullable) and expected.key in ("", self.key)


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """The schema as found on the target."""

    version: int
    """The highest version; 0 for a schema that is not complete, or has lost it."""
    engines: Mapping[str, str | None]
    """Engine by table, for binlane's tables; None: one that the server cannot open."""
    columns: Mapping[tuple[str, str], Shape]
    """Columns by table and column name."""
    views: Mapping[str, tuple[str, ...]]
    """binlane's view, if it is there, with its columns in order."""
    others: tuple[str, ...]
    """Tables that are not binlane's; copies of temporary tables are left out."""


def require_current(connection: Connection) -> None:
    """Raises StateSchemaError unless the schema is exactly that of this build; the driver's error if there is none."""
    refuse_unless_current(connection, read_found(connection))


def refuse_unless_current(connection: Connection, found: StoredSchema) -> None:
    """As ``require_current``, for a schema that was read already."""
    refuse_other_program(found)
    if not found.engines:
        # the server's own error distinguishes a missing schema from a missing privilege
        connection.execute(select(channels.c.channel).limit(1))
    refuse_newer(found.version)
    if found.version < VERSION:
        raise StateSchemaError(
            f"target: the schema {SCHEMA} has version {found.version}, this binlane needs {VERSION}: stop all tasks "
            f"and commands of the older binlane, then run `binlane init CHANNEL`, which upgrades the "
            f"schema; see {_UPGRADING}"
        )
    refuse_problems(problems(found, connection.dialect))


def require_version(cursor: Cursor) -> None:
    """Check the version on a lane's own connection once it holds its lease. Migrations hold every lease, so the version
    cannot change while the lane keeps its own. Raises StateSchemaError."""
    cursor.execute(_VERSION)
    row = cursor.fetchone()
    version = 0 if row is None or row[0] is None else int(row[0])
    refuse_newer(version)
    if version < VERSION:
        raise StateSchemaError(
            f"target: the schema {SCHEMA} has version {version}, expected {VERSION}: it was changed while the lane "
            f"waited for its lease; see {_UPGRADING}"
        )


def read_found(connection: Connection) -> StoredSchema:
    """The schema's version, tables and columns; in autocommit or at the beginning of a transaction.

    Raises StateSchemaError, before a table is read, for one that is a view or has a trigger: their functions and bodies
    would run in binlane's session."""
    engines: dict[str, str | None] = {}
    for table, name, kind in connection.execute(_TABLES, {"schema": SCHEMA}):
        if kind == "TRIGGER" and (table in OWN or is_copy(table)):
            raise trigger_of(str(table), str(name))
        if kind == "VIEW" and table in OWN:
            raise view_in_place(str(table))
        if kind != "TRIGGER":
            engines[str(table)] = name
    known = {*OWN, CONSISTENT}
    others = tuple(sorted(table for table in engines if table not in known and not is_copy(table)))
    columns: dict[tuple[str, str], Shape] = {}
    views: dict[str, tuple[str, ...]] = {}
    connection.execute(_WHOLE)
    packed = _COLUMNS.read(f"table_schema = '{SCHEMA}'", lambda query: connection.execute(text(query)))
    for key, rows in packed.items():
        table = key.table
        if table in OWN:
            columns |= {(table, name): shape for name, shape in _columns_of(rows).items()}
        elif table == CONSISTENT and engines.get(table) is None:
            views[table] = tuple(str(row["name"]) for row in _COLUMNS.unpacked(rows))
    version = 0
    if ("migrations", "version") in columns:
        version = int(connection.execute(text(_VERSION)).scalar_one() or 0)
    return StoredSchema(version, {table: engines[table] for table in engines if table in OWN}, columns, views, others)


@functools.lru_cache(maxsize=64)
def _columns_of(rows: str) -> Mapping[str, Shape]:
    """The columns in a table's packed text: the same text in each step of a process."""
    return {str(row["name"]): _shape(row) for row in _COLUMNS.unpacked(rows)}


def _shape(row: PackedRow) -> Shape:
    kind = str(row["type"]).lower().replace(_OLD_FORMAT, "")
    return Shape(_DISPLAY_WIDTH.sub(r"\1", kind), row["collation"], row["nullable"] == "YES", str(row["key"]))


def refuse_newer(version: int) -> None:
    """Raises StateSchemaError for a version newer than this build's."""
    if version > VERSION:
        raise StateSchemaError(
            f"target: the schema {SCHEMA} has version {version}, this binlane knows versions up to {VERSION}: a newer "
            f"binlane has upgraded it, and a downgrade is not possible: use the newer binlane for every command and "
            f"task; see {_UPGRADING}"
        )


def refuse_other_program(found: StoredSchema) -> None:
    """Raises StateSchemaError for a schema of this name with tables, none of which is binlane's."""
    if found.others and not found.engines:
        raise StateSchemaError(
            f"target: the schema {SCHEMA} holds tables of another program ({', '.join(found.others[:5])}), expected "
            f"binlane's own or none: binlane keeps its positions in the schema {SCHEMA} and in no other; move that "
            "program's tables, or use another server as the target"
        )


def refuse_problems(found: Collection[str]) -> None:
    """Raises StateSchemaError with all problems, if there are any."""
    if found:
        raise StateSchemaError("target: " + "; ".join(found))


def problems(found: StoredSchema, dialect: Dialect, coming: Collection[str] = ()) -> tuple[str, ...]:
    """The differences from the tables of ``tables.py``, each with the next step.

    ``coming``: the tables (``skips``) and columns (``skips.sha256``) that pending migration steps create or change.
    """
    in_tables = (each for table in OWN.values() for each in _table_problems(found, table, dialect, coming))
    return (*in_tables, *_view_problems(found, coming))


def shape_of(column: Column[object], dialect: Dialect) -> Shape:
    """A column of ``tables.py`` as information_schema shows it."""
    kind = _spelled(column.type, dialect)
    key = "PRI" if column.primary_key else "UNI" if column.unique else "MUL" if column.index else ""
    collation = "utf8mb4_bin" if kind.startswith(("varchar", "mediumtext")) else None
    return Shape(kind.replace("integer", "int"), collation, bool(column.nullable), key)


@functools.lru_cache(maxsize=1024)
def _spelled(kind: TypeEngine[object], dialect: Dialect) -> str:
    """A type in SQL. Columns share type objects, and SQLAlchemy's compiler is most of what the check costs a lane."""
    return kind.compile(dialect=dialect).lower().partition(" character set ")[0]


@functools.lru_cache(maxsize=64)
def _expected(table: Table, dialect: Dialect) -> Mapping[str, Shape]:
    """The columns of a table of ``tables.py``: asked again by each step of a process."""
    return {column.name: shape_of(column, dialect) for column in table.columns}


def _table_problems(found: StoredSchema, table: Table, dialect: Dialect, coming: Collection[str]) -> Iterator[str]:
    name = f"{SCHEMA}.{table.name}"
    if table.name not in found.engines:
        if table.name not in coming:
            yield f"the table {name} is missing, and with it what it held: see {_LOST}"
        return
    engine = found.engines[table.name]
    if engine is None or engine.lower() != "innodb":
        yield (
            f"{name} is {'broken' if engine is None else engine}, expected InnoDB: positions must roll back with their "
            f"block; ALTER TABLE {name} ENGINE=InnoDB while nothing runs, `binlane verify CHANNEL --full` if a window "
            "has run since it was changed, and check enforce_storage_engine"
        )
    expected_columns = _expected(table, dialect)
    for column in table.columns:
        if f"{table.name}.{column.name}" in coming:
            continue
        expected, has = expected_columns[column.name], found.columns.get((table.name, column.name))
        if has is None:
            yield f"{name} has no column {column.name}, expected {expected}: it was dropped by hand; see {_LOST}"
        elif not has.serves_as(expected):
            yield f"{name}.{column.name} is {has}, expected {expected}: {_way_back(column, has, expected, dialect)}"
    for of, column_name in found.columns:
        if of == table.name and column_name not in expected_columns and f"{of}.{column_name}" not in coming:
            yield (
                f"{name} has a column {column_name}, which this version of the schema does not have: it was added by "
                f"hand; ALTER TABLE {name} DROP COLUMN {column_name}, if nothing of yours needs it"
            )


def _view_problems(found: StoredSchema, coming: Collection[str]) -> Iterator[str]:
    if CONSISTENT in coming or found.views.get(CONSISTENT) == CONSISTENT_COLUMNS:
        return
    has = f"with the columns {', '.join(found.views[CONSISTENT])}" if CONSISTENT in found.views else "no such view"
    yield (
        f"{SCHEMA}.{CONSISTENT}: expected a view with the columns {', '.join(CONSISTENT_COLUMNS)}, found {has}: it was "
        "changed by hand, and holds no data; run `binlane init CHANNEL`, which creates it again"
    )


def _way_back(column: Column[object], has: Shape, expected: Shape, dialect: Dialect) -> str:
    name = f"{SCHEMA}.{column.table.name}"
    if expected.key not in ("", has.key):
        kind = {"PRI": "the primary key", "UNI": "a unique key"}.get(expected.key, "an index")
        return f"{kind} was dropped by hand: add it again while nothing runs"
    spec = str(CreateColumn(column).compile(dialect=dialect)).strip()
    return f"ALTER TABLE {name} MODIFY {spec} while nothing runs"
