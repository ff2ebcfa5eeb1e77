"""Reads how a server divides the rows of one table over partitions."""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy import Connection, text

from binlane.binlog.types.literals import identifier
from binlane.model import TableKey
from binlane.schema.partitions import Partition, Partitioning
from binlane.servers.catalog import TableReader
from binlane.servers.catalog_queries import PARTITIONS

_ALGORITHM: Final = re.compile(r"\bALGORITHM\s*=\s*(\w+)")
_BY: Final = re.compile(r"\bPARTITION BY\b")


def read_partitioning(connection: Connection, key: TableKey) -> Partitioning | None:
    """The partitions of a table, by the server's own name of it; None if there is no such table."""
    table = TableReader(connection).read(key)
    if table is None:
        return None
    rows = connection.execute(text(PARTITIONS.over(key)), {"database": key.database, "table": key.table})
    partitions = [Partition(*("" if value is None else str(value) for value in row[2:])) for row in rows]
    by_key = any("KEY" in (*each.method.split(), *each.sub_method.split()) for each in partitions)
    return Partitioning.of(table, partitions, _algorithm(connection, key) if by_key else "")


def _algorithm(connection: Connection, key: TableKey) -> str:
    """What SHOW CREATE TABLE says of the function of KEY, which no catalogue has; "" for the server's default."""
    query = f"SHOW CREATE TABLE {identifier(key.database)}.{identifier(key.table)}".replace("%", "%%")
    behind = _BY.split(str(connection.exec_driver_sql(query, ()).one()[1]))[-1]
    found = _ALGORITHM.search(behind)
    return "" if found is None else f"ALGORITHM = {found[1]}"
