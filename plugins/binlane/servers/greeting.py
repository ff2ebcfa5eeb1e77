"""What a server says of itself before it lets an account in, and whether it does."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

import pymysql

from binlane.connections import Endpoint
from binlane.driver import Connection
from binlane.model import Flavor
from binlane.servers.variables import version_number

_REFUSED: Final = frozenset({1044, 1045, 1130, 1698, 3118, 3955, 4151})
"""No such account, another password, another host, a locked account."""

_OLD: Final = "5.5.5-"
"""MariaDB before 11 puts it in front, for replicas of other versions."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """A server that answers."""

    flavor: Flavor
    version: str
    account: str | None
    """``user@host`` of the account that the login has found; None if it was refused."""
    refusal: str = ""

    @property
    def number(self) -> tuple[int, int, int]:
        """The version's numbers."""
        return version_number(self.version)


def greet(endpoint: Endpoint) -> Greeting:
    """Log in. A refused account is an answer, too. Raises PyMySQL's errors for a server that cannot be reached."""
    connection = Connection(**endpoint.pymysql_arguments(), defer_connect=True, connect_timeout=10)
    account, refusal = None, ""
    try:
        connection.connect()
    except pymysql.err.OperationalError as exc:
        # a host that may not connect at all gets no greeting
        if exc.args[0] not in _REFUSED or getattr(connection, "server_version", None) is None:
            raise
        refusal = str(exc.args[1])
    else:
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute("SELECT CURRENT_USER()")
            [(account,)] = cursor.fetchall()
    version = str(connection.get_server_info()).removeprefix(_OLD)  # type: ignore[no-untyped-call]
    return Greeting(Flavor.MARIADB if "mariadb" in version.lower() else Flavor.MYSQL, version, account, refusal)
