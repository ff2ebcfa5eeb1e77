"""Connections are encrypted where the server can, and building one costs no reading of certificate authorities."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pymysql import err
from sqlalchemy import Engine, text

from binlane.bootstrap.sessions import read_session
from binlane.connections import Endpoint, Tls
from binlane.driver.connection import Connection
from binlane.errors import ConfigError
from binlane.model import Flavor
from binlane.servers.engines import engine_of, kept_connections
from binlane.sessions.pins import SessionKind
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.waiting import wait_until


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


def test_a_step_s_uses_of_a_server_share_a_connection_that_is_rolled_back_and_made_anew(
    mariadb_source: PrivateServer,
) -> None:
    server = endpoint(mariadb_source)

    def used() -> int:
        with engine_of(server).connect() as connection:
            return int(connection.execute(text("SELECT CONNECTION_ID()")).scalar_one())

    def there() -> set[int]:
        return {number for (number,) in mariadb_source.query("SELECT id FROM information_schema.processlist")}

    with kept_connections():
        first = used()
        assert used() == first
        with engine_of(server).connect() as connection:
            connection.execute(text("CREATE TEMPORARY TABLE mysql.kept (id INT) ENGINE = InnoDB"))
            connection.execute(text("INSERT INTO mysql.kept VALUES (1)"))
        with engine_of(server).connect() as connection:
            assert connection.execute(text("SELECT COUNT(*) FROM mysql.kept")).scalar_one() == 0
            beside = used()
        assert first != beside
        # the server ends the other a moment later
        wait_until(lambda: len({first, beside} & there()) == 1)
        # a task that counts on answers in time does not take one whose limits are others
        with engine_of(server, timeout=5).connect() as connection:
            assert connection.execute(text("SELECT CONNECTION_ID()")).scalar_one() not in (first, beside)
        kept = used()
        assert kept in (first, beside)
        mariadb_source.query(f"KILL {kept}")
        anew = used()
        assert anew != kept
        assert anew == used()
        assert anew in there()
    # the server hears of it a moment later
    while anew in there():
        time.sleep(0.01)
    assert used() != used(), "outside a step each use has one of its own"


@pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])
def test_between_two_uses_of_a_kept_connection_nothing_is_sent(flavor: Flavor, request: pytest.FixtureRequest) -> None:
    """Each answer of a distant server is waited for: a session behind its COMMIT has nothing to roll back, and whether
    it is there is seen on its socket."""
    server = endpoint(request.getfixturevalue(f"{flavor}_source"))
    asks = "SHOW SESSION STATUS LIKE 'Bytes_received'"

    def received() -> int:
        with engine_of(server).begin() as connection:
            return int(connection.exec_driver_sql(asks).one()[1])

    header = len(b"\x00\x00\x00\x00") + len(b"\x03")
    with kept_connections():
        received()
        before = received()
        assert received() - before == len("COMMIT") + header + len(asks) + header


def test_a_later_step_knows_the_server_and_has_none_of_the_sessions_before(mariadb_source: PrivateServer) -> None:
    server = endpoint(mariadb_source)

    def packed() -> int:
        with engine_of(server).connect() as connection:
            return int(connection.execute(text("SELECT @@SESSION.group_concat_max_len")).scalar_one())

    def engine_of_a_step() -> Engine:
        with kept_connections():
            return engine_of(server)

    with kept_connections():
        first, usual = engine_of(server), packed()
        with first.connect() as connection:
            connection.execute(text("SET SESSION group_concat_max_len = 777"))
        assert packed() == 777
        assert engine_of_a_step() is not first
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(engine_of_a_step).result() is not first
        assert packed() == 777
    with kept_connections():
        assert (engine_of(server), packed()) == (first, usual)


@pytest.mark.parametrize("mode", ["disabled", "preferred"])
@pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])
def test_a_compressed_connection_carries_the_same_bytes_in_fewer(
    request: pytest.FixtureRequest, flavor: Flavor, mode: str
) -> None:
    server: PrivateServer = request.getfixturevalue(f"{flavor}_source")
    [(allowed,)] = server.query("SELECT @@GLOBAL.max_allowed_packet")
    server.query(f"SET GLOBAL max_allowed_packet = {64 << 20}")
    # packets of one frame, of several, with what zlib cannot shorten, and a statement and a row of two packets
    noise = random.Random(7).randbytes(9 << 20).hex()
    try:
        session = read_session(endpoint(server, mode), compresses=True)
        with contextlib.closing(session):
            assert session.texts("SHOW SESSION STATUS LIKE 'Compression'") == [("Compression", "ON")]
            for value in ("", "a" * 40, "a" * 5_000, noise[:70_000], "b" * (17 << 20), noise):
                query = f"SELECT '{value}', SHA2('{value[:1000]}', 256)" if len(value) > 1_000 else f"SELECT '{value}'"
                assert session.texts(query)[0][0] == value
            many = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, "
            before = sent(session)
            assert session.texts(f"{many}REPEAT('x', 10000) FROM n") == [(str(n), "x" * 10_000) for n in range(1, 901)]
            assert sent(session) - before < 1 << 20
    finally:
        server.query(f"SET GLOBAL max_allowed_packet = {allowed}")


def sent(session: Any) -> int:
    """Bytes that the server has sent to this session."""
    return int(session.texts("SHOW SESSION STATUS LIKE 'Bytes_sent'")[0][1])


@requires_mysql
def test_a_server_that_does_not_compress_is_refused_with_the_statement_that_mends_it(
    mysql_source: PrivateServer,
) -> None:
    [(offered,)] = mysql_source.query("SELECT @@GLOBAL.protocol_compression_algorithms")
    mysql_source.query("SET GLOBAL protocol_compression_algorithms = 'uncompressed'")
    try:
        with pytest.raises(ConfigError, match="SET GLOBAL protocol_compression_algorithms = 'zlib,uncompressed'"):
            Connection(**endpoint(mysql_source).pymysql_arguments(), compresses=True)
    finally:
        mysql_source.query(f"SET GLOBAL protocol_compression_algorithms = '{offered}'")


def test_a_statement_that_opens_views_runs_beside_the_transaction_of_its_session(mariadb_source: PrivateServer) -> None:
    own_tables = "SELECT COUNT(*) FROM information_schema.tables WHERE CONNECTION_ID() = %s"
    with (
        contextlib.closing(Connection(**endpoint(mariadb_source).pymysql_arguments())) as connection,
        connection.cursor() as cursor,
    ):

        def value(statement: str, *arguments: object) -> int:
            cursor.execute(statement, arguments or None)
            [(found,)] = cursor.fetchall()
            return int(found)

        number = value("SELECT CONNECTION_ID()")
        assert value(own_tables, number) > 0
        connection.query("START TRANSACTION")
        assert value("SELECT @@in_transaction") == 1
        assert value(own_tables, number) == 0
        cursor.execute("SHOW WARNINGS")
        assert (value("SELECT CONNECTION_ID()"), value("SELECT @@in_transaction")) == (number, 1)
        with pytest.raises(err.ProgrammingError, match=r"opens views while a transaction is open.*connection\.cursor"):
            connection.query("SHOW TABLES FROM mysql")
        connection.rollback()
        assert value(own_tables, number) > 0


def test_every_session_finds_that_its_peer_is_gone(mariadb_source: PrivateServer) -> None:
    with contextlib.closing(Connection(**endpoint(mariadb_source).pymysql_arguments())) as connection:
        assert connection._sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert connection._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15


def test_a_lane_asks_for_tables_alone_in_its_transaction(
    mariadb_source: PrivateServer, clean_databases: Callable[[PrivateServer], None]
) -> None:
    clean_databases(mariadb_source)
    for statement in (
        "SET GLOBAL log_bin_trust_function_creators = ON",
        "CREATE DATABASE app",
        "CREATE TABLE app.t (n INT)",
        "CREATE TABLE app.s (n INT)",
        "CREATE TABLE app.plain (n INT) ENGINE=MyISAM",
        "CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC RETURN 1",
        "CREATE SQL SECURITY INVOKER VIEW app.`v``v` AS SELECT ROUND(1.5, app.f()) AS x FROM app.t",
        "DROP FUNCTION app.f",
        "CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER "
        "BEGIN INSERT INTO app.plain VALUES (1); RETURN 1; END",
    ):
        mariadb_source.query(statement)
    with (
        contextlib.closing(
            Connection(**endpoint(mariadb_source).pymysql_arguments(), autocommit=True, kind=SessionKind.LANE)
        ) as connection,
        connection.cursor() as cursor,
    ):

        def rows(statement: str) -> list[tuple[object, ...]]:
            cursor.execute(statement)
            return list(cursor.fetchall())

        cursor.execute("CREATE TEMPORARY TABLE app.t (own INT)")
        connection.query("BEGIN")
        cursor.execute("INSERT INTO app.t VALUES (1)")
        assert "`own` int" in str(rows("SHOW CREATE TABLE `app`.`t`"))
        assert [name for name, *_ in rows("SHOW FULL COLUMNS FROM `app`.`t`")] == ["own"]
        rows("DROP TEMPORARY TABLE app.t")
        cursor.execute("INSERT INTO app.s VALUES (1)")
        columns = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'app' AND table_name = "
        assert rows(f"{columns}'t'") == [("n",)]
        rows(f"{columns}'v`v'")
        assert rows(f"{columns}'none'") == []
        with contextlib.suppress(err.MySQLError):
            rows("SHOW FULL COLUMNS FROM `app`.`v``v`")
        with pytest.raises(err.OperationalError, match="the view has a stored function that changes data"):
            rows("SHOW CREATE TABLE `app`.`v``v`")
        with pytest.raises(err.ProgrammingError, match="doesn't exist"):
            rows("SHOW CREATE TABLE `app`.`none`")
        assert rows("SELECT @@in_transaction") == [(1,)]
        for collation in ("latin1_swedish_ci", "utf8mb4_bin", "utf16_bin", "utf8mb4_german2_ci"):
            cursor.execute(f"SET collation_connection = {collation}")
            assert rows(f"{columns}'s'") == [("n",)]
        assert rows("SELECT n FROM app.s") == [(1,)]
        connection.commit()
    assert mariadb_source.query("SELECT n FROM app.plain") == []
