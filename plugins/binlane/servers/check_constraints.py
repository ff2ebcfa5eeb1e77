"""The CHECKs of tables: MariaDB's catalogue has them by table, MySQL's by name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, text

from binlane.model import Flavor, TableKey
from binlane.schema.normalize import expression_sql
from binlane.servers.catalog_queries import Databases, Query
from binlane.servers.names import values_of
from binlane.servers.variables import server_version, version_number

NOT_ENFORCED: Final = " NOT ENFORCED"
"""The end of a clause that refuses no row."""
_SINCE: Final = (8, 0, 16)
"""Of MySQL; older servers read a CHECK and forget it."""
_OF_JSON: Final = re.compile(r"json_valid\(`(?:[^`]|``)+`\)", re.IGNORECASE)
_CLAUSES: Final = {
    Flavor.MARIADB: Query(
        "SELECT constraint_schema, table_name, check_clause FROM information_schema.check_constraints "
        "WHERE {scope} ORDER BY constraint_name",
        database="constraint_schema",
    ),
    Flavor.MYSQL: Query(
        "SELECT one.table_schema, one.table_name, "
        f"CONCAT(other.check_clause, IF(one.enforced = 'NO', '{NOT_ENFORCED}', '')) "
        "FROM information_schema.table_constraints AS one JOIN information_schema.check_constraints AS other "
        "ON one.constraint_schema = other.constraint_schema AND one.constraint_name = other.constraint_name "
        "WHERE one.constraint_type = 'CHECK' AND {scope} ORDER BY other.constraint_name",
        database="one.constraint_schema",
        table="one.table_name",
    ),
}


def query_of_clauses(flavor: Flavor, version: str) -> Query | None:
    """For database, table and clause of a server's CHECKs; None for one that has none."""
    is_without = flavor is Flavor.MYSQL and version_number(version) < _SINCE
    return None if is_without else _CLAUSES[flavor]


def is_of_json(clause: str) -> bool:
    """Whether it is the CHECK that MariaDB adds to a JSON column."""
    return _OF_JSON.fullmatch(clause) is not None


def read_checks(connection: Connection, databases: Collection[str]) -> Mapping[TableKey, Sequence[str]]:
    """The clauses that rows of the tables of some databases must fulfil, as SQL, by table; without those of MariaDB's
    JSON columns."""
    flavor, version = server_version(connection)
    found = defaultdict[TableKey, list[str]](list)
    if (query := query_of_clauses(flavor, version)) is not None:
        scope = text(query.over(Databases(frozenset(databases)))).bindparams(bindparam("databases", expanding=True))
        for database, table, clause in connection.execute(scope, {"databases": values_of(databases)}):
            if not (str(clause).endswith(NOT_ENFORCED) or is_of_json(str(clause))):
                found[TableKey(str(database), str(table))].append(expression_sql(str(clause), flavor))
    return found
