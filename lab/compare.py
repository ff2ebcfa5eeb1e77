"""Compares two servers: tables' checksums and definitions, views, routines, triggers, accounts."""

from __future__ import annotations

import hashlib
import re
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pymysql.err import OperationalError

from binlane.model import Flavor, plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pymysql.cursors import Cursor

    from lab.servers import PrivateServer

_OWN_SCHEMAS: Final = ("mysql", "information_schema", "performance_schema", "sys", "binlane")
_NO_SUCH_ACCOUNT: Final = 1133
_NEXT_ID: Final = re.compile(r" AUTO_INCREMENT=\d+")
_VIEWS: Final = "SELECT table_schema, table_name FROM information_schema.views WHERE table_schema"
_ROUTINES: Final = "SELECT routine_schema, routine_name FROM information_schema.routines WHERE routine_type"
_TRIGGERS: Final = "SELECT trigger_schema, trigger_name FROM information_schema.triggers WHERE trigger_schema"
_TABLES: Final = (
    "SELECT table_schema, table_name FROM information_schema.tables "
    "WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND table_schema"
)
_UNSTEADY: Final = (
    # MariaDB 10.11 gives tables with such columns several checksums for the same rows
    "SELECT DISTINCT table_schema, table_name FROM information_schema.columns "
    "WHERE (data_type = 'bit' OR extra LIKE '%GENERATED%') AND table_schema"
)
_MULTI_VALUED: Final = re.compile(r" array\)\)")
"""Tables with keys that give a different checksum for every copy on MySQL 9.7."""
_DATABASES: Final = (
    "SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata "
    "WHERE schema_name"
)
_CREATES: Final = (
    # kind, query of database and name, column of the definition in SHOW CREATE's row
    ("view", _VIEWS, 1),
    ("procedure", f"{_ROUTINES} = 'PROCEDURE' AND routine_schema", 2),
    ("function", f"{_ROUTINES} = 'FUNCTION' AND routine_schema", 2),
    ("trigger", _TRIGGERS, 2),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The numbers of compared objects, and the differences; equal if ``differences`` is empty."""

    tables: int
    rows: int
    """Rows of all tables of the first server."""
    others: int
    """Databases, views, routines, triggers and accounts."""
    differences: tuple[str, ...]


def compare(source: PrivateServer, target: PrivateServer) -> Comparison:
    """Compare everything that a log can change. Neither server may be written meanwhile."""
    left, right = contents(source), contents(target)
    differences = tuple(
        f"{name}: {_short(left.get(name))} on the source, {_short(right.get(name))} on the target"
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    )
    tables = sum(name.startswith("table ") for name in left)
    rows = sum(int(text.split()[0].replace(",", "")) for name, text in left.items() if name.startswith("data of "))
    return Comparison(tables, rows, len(left) - 2 * tables, differences)


def contents(server: PrivateServer) -> Mapping[str, str]:
    """Everything that is compared: name -> definition, or a table's number of rows and checksum."""
    with closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        found = dict(_tables(cursor))
        found |= _databases(cursor)
        found |= _created(cursor)
        found |= _accounts(cursor, server.flavor)
    return found


def data_of(server: PrivateServer, database: str) -> Mapping[str, str]:
    """The content of a database's tables: name -> number of rows and a reproducible checksum."""
    with closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        unsteady = set(_rows(cursor, _foreign(_UNSTEADY)))
        tables = [table for found, table in _rows(cursor, _foreign(_TABLES)) if found == database]
        return {table: _data(cursor, unsteady, database, table) for table in tables}


def _rows(cursor: Cursor, statement: str) -> list[tuple[Any, ...]]:
    cursor.execute(statement)
    return list(cursor.fetchall())


def _foreign(column_query: str) -> str:
    return f"{column_query} NOT IN ({', '.join(repr(name) for name in _OWN_SCHEMAS)}) ORDER BY 1, 2"


def _quoted(*names: str) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def _tables(cursor: Cursor) -> Iterator[tuple[str, str]]:
    unsteady = set(_rows(cursor, _foreign(_UNSTEADY)))
    for database, table in _rows(cursor, _foreign(_TABLES)):
        ((_, definition),) = _rows(cursor, f"SHOW CREATE TABLE {_quoted(database, table)}")
        if _MULTI_VALUED.search(definition) is not None:
            unsteady.add((database, table))
        yield f"data of {database}.{table}", _data(cursor, unsteady, database, table)
        # where folding has left out a row, the next id may differ
        yield f"table {database}.{table}", _NEXT_ID.sub("", definition)


def _data(cursor: Cursor, unsteady: Collection[tuple[Any, ...]], database: str, table: str) -> str:
    name = _quoted(database, table)
    checksum = _digest(cursor, name) if (database, table) in unsteady else _checksum(cursor, name)
    ((count,),) = _rows(cursor, f"SELECT COUNT(*) FROM {name}")
    return f"{plural(count, 'row')}, {checksum}"


def _checksum(cursor: Cursor, name: str) -> str:
    ((_, checksum),) = _rows(cursor, f"CHECKSUM TABLE {name}")
    return f"checksum {checksum}"


def _digest(cursor: Cursor, name: str) -> str:
    """SHA-256 of all rows as the server sends them, independent of their order."""
    connection: Any = cursor.connection
    plain = connection.use_unicode, connection.decoders
    connection.use_unicode, connection.decoders = False, {}
    try:
        rows = sorted(map(repr, _rows(cursor, f"SELECT * FROM {name}")))
    finally:
        connection.use_unicode, connection.decoders = plain
    return f"SHA-256 {hashlib.sha256(chr(10).join(rows).encode()).hexdigest()[:16]}"


def _databases(cursor: Cursor) -> dict[str, str]:
    return {
        f"database {name}": f"{charset}, {collation}"
        for name, charset, collation in _rows(cursor, _foreign(_DATABASES))
    }


def _created(cursor: Cursor) -> dict[str, str]:
    found = {}
    for kind, query, column in _CREATES:
        for database, name in _rows(cursor, _foreign(query)):
            (row,) = _rows(cursor, f"SHOW CREATE {kind} {_quoted(database, name)}")
            found[f"{kind} {database}.{name}"] = str(row[column])
    return found


def _accounts(cursor: Cursor, flavor: Flavor) -> dict[str, str]:
    found = {}
    roles = " WHERE is_role = 'N'" if flavor is Flavor.MARIADB else ""
    for user, host in _rows(cursor, f"SELECT user, host FROM mysql.user{roles} ORDER BY 1, 2"):
        account = f"{_text(user)}@{_text(host)}"
        try:
            lines = [*_rows(cursor, f"SHOW CREATE USER {account}"), *_rows(cursor, f"SHOW GRANTS FOR {account}")]
        except OperationalError as exc:
            # with skip_name_resolve the server does not know accounts of host names, which it has itself installed
            if exc.args[0] != _NO_SUCH_ACCOUNT:
                raise
            lines = [("of a host name",)]
        # series of MariaDB quote the names of PROXY's grants in two ways
        texts = (str(line[0]).replace("'", "`") if "GRANT PROXY" in line[0] else str(line[0]) for line in lines)
        found[f"account {account}"] = "; ".join(texts)
    return found


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _short(text: str | None) -> str:
    if text is None:
        return "missing"
    return text if len(text) <= 120 else text[:117] + "..."
