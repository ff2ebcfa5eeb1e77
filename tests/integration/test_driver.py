"""Connections are encrypted where the server can, and building one costs no reading of certificate authorities."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from binlane.connections import Endpoint, Tls
from binlane.driver import Connection
from binlane.state.engines import engine_of
from lab.servers import PrivateServer
from tests.conftest import requires_mysql


def endpoint(server: PrivateServer, mode: str = "preferred") -> Endpoint:
    return Endpoint("server", server.host, server.port, server.user, server.password, Tls(mode))


def cipher(connection: Any) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        return str(cursor.fetchone()[1])


@requires_mysql
@pytest.mark.parametrize(("mode", "encrypted"), [("preferred", True), ("required", True), ("disabled", False)])
def test_a_server_with_tls_is_talked_to_as_the_mode_says(
    mysql_source: PrivateServer, mode: str, encrypted: bool
) -> None:
    server = endpoint(mysql_source, mode)
    with contextlib.closing(Connection(**server.pymysql_arguments())) as connection:
        assert bool(cipher(connection)) == encrypted
    with contextlib.closing(engine_of(server).raw_connection()) as pooled:
        assert isinstance(pooled.driver_connection, Connection)
        assert bool(cipher(pooled)) == encrypted


def test_a_server_without_tls_is_talked_to_in_clear(mariadb_source: PrivateServer) -> None:
    if mariadb_source.query("SELECT @@have_ssl") == [("YES",)]:
        pytest.skip("this MariaDB makes a certificate of its own")
    with contextlib.closing(Connection(**endpoint(mariadb_source).pymysql_arguments())) as connection:
        assert not cipher(connection)


def test_tls_that_verifies_nothing_has_one_context(mariadb_source: PrivateServer) -> None:
    arguments = endpoint(mariadb_source).pymysql_arguments()
    with (
        contextlib.closing(Connection(**arguments)) as one,
        contextlib.closing(Connection(**arguments)) as other,
    ):
        assert vars(one)["ctx"] is vars(other)["ctx"]
