"""A server's handshake: family and version, sent before the login, and whether the login succeeds."""

from __future__ import annotations

import contextlib
from typing import Final

import pymysql

from binlane.binlog.types.literals import quoted
from binlane.connections import Endpoint, login_advice
from binlane.driver.connection import Connection
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.servers.variables import version_number

_REFUSED: Final = frozenset({1044, 1045, 1130, 1698, 3118, 3955, 4151})
"""Errors of a refused login: unknown account, wrong password, host not allowed, account locked."""

_OLD: Final = "5.5.5-"
"""The version prefix of MariaDB before 11, for compatibility with old replicas."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """The handshake of a reachable server."""

    flavor: Flavor
    version: str
    account: str | None
    """``user@host`` of the account that matched the login; None if the login was refused."""
    refusal: str = ""
    lacks_account: bool = False
    """The login was refused, and CREATE USER may be the way out; not of an account that is locked."""
    has_patterns: bool = True
    """A GRANT may name databases by a pattern: not with ``partial_revokes``. Unknown, and so True, without a login."""

    @property
    def number(self) -> tuple[int, int, int]:
        """The version's numbers."""
        return version_number(self.version)


def other_account(endpoint: Endpoint, account: str) -> tuple[str, str] | None:
    """What a server was expected to say of the account that is logged in, and what it has said, for errors; None if it
    has the login's name.

    ``account``: of CURRENT_USER(). Statements with it are for an administrator to run, and what poses as the server
    chooses it.
    """
    user, _, host = account.rpartition("@")
    if user == endpoint.user:
        return None
    return (
        f"CURRENT_USER() with the name of the login, {quoted(endpoint.user)}",
        f"{quoted(user)}@{quoted(host)}, an anonymous or a proxied account, or an answer of another program",
    )


def greet(endpoint: Endpoint) -> Greeting:
    """Log in; a refused login is a result, too. Raises PyMySQL's errors if the server cannot be reached."""
    connection = Connection(**endpoint.pymysql_arguments(), defer_connect=True, connect_timeout=10)
    account, refusal, lacks_account, has_patterns = None, "", False, True
    try:
        connection.connect()
    except pymysql.err.OperationalError as exc:
        # a host that may not connect gets no handshake
        if exc.args[0] not in _REFUSED or getattr(connection, "server_version", None) is None:
            raise
        refusal = str(exc.args[1])
        lacks_account = not login_advice(exc.args[0], refusal)
    else:
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute("SELECT CURRENT_USER()")
            [(account,)] = cursor.fetchall()
            cursor.execute("SHOW GLOBAL VARIABLES LIKE 'partial\\_revokes'")
            has_patterns = ("partial_revokes", "ON") not in cursor.fetchall()
    version = str(connection.get_server_info()).removeprefix(_OLD)  # type: ignore[no-untyped-call]
    flavor = Flavor.MARIADB if "mariadb" in version.lower() else Flavor.MYSQL
    return Greeting(flavor, version, account, refusal, lacks_account, has_patterns)
