"""A server's family, version and variables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection, bindparam, text

from binlane.model import Flavor
from binlane.model import version_number as version_number
from binlane.schema.model import Schema


def server_version(connection: Connection) -> tuple[Flavor, str]:
    """The server's family, and its version as ``VERSION()`` prints it. Raises ValueError for a text without one."""
    version = with_number(str(connection.execute(text("SELECT VERSION()")).scalar_one()))
    return (Flavor.MARIADB if "mariadb" in version.lower() else Flavor.MYSQL), version


def with_number(version: str) -> str:
    """A version, which lane files and rules about servers take for one. Raises ValueError for a text without one."""
    if version_number(version) == (0, 0, 0):
        raise ValueError(f"{version!r} is no version of a MySQL or MariaDB server")
    return version


def gtids_are_on(connection: Connection, schema: Schema) -> bool:
    """Whether the server is MySQL with gtid_mode=ON, where a session can set the GTID of a transaction."""
    if schema.flavor is not Flavor.MYSQL:
        return False
    return bool(connection.execute(text("SELECT @@gtid_mode")).scalar_one() == "ON")


def executed_gtids(connection: Connection, flavor: Flavor) -> str:
    """The transactions of other servers that this one has executed, as a replica or because a dump has put them in."""
    variable = "gtid_executed" if flavor is Flavor.MYSQL else "gtid_slave_pos"
    return "".join(str(connection.execute(text(f"SELECT @@GLOBAL.{variable}")).scalar_one()).split())


def global_variables(connection: Connection, names: Collection[str]) -> Mapping[str, str]:
    """The global values of the variables ``names``; those that the server does not have are left out."""
    query = text("SHOW GLOBAL VARIABLES WHERE variable_name IN :names").bindparams(bindparam("names", expanding=True))
    rows = connection.execute(query, {"names": sorted(names)})
    return {str(name).lower(): str(value) for name, value in sorted(tuple(row) for row in rows)}


def all_global_variables(connection: Connection) -> Mapping[str, str]:
    """The global values of all variables, by name in lower case."""
    return {str(name).lower(): str(value) for name, value in connection.execute(text("SHOW GLOBAL VARIABLES"))}


@contextmanager
def session_variable(connection: Connection, name: str, value: object, afterwards: object) -> Iterator[None]:
    """The session's variable has another value while the context lasts; others may use the connection afterwards."""
    connection.exec_driver_sql(f"SET SESSION {name} = {value}")
    try:
        yield
    finally:
        # on a connection that an error has closed, SQLAlchemy would raise an error of its own in the place of that one
        if not connection.invalidated and not connection.closed:
            connection.exec_driver_sql(f"SET SESSION {name} = {afterwards}")
