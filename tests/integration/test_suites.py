"""The verdict on a test of the servers' own suites, on real servers: source, target and the server's own replica."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pymysql.err import MySQLError

from binlane.model import Flavor
from lab.programs import server_binary
from lab.servers import PrivateServer, private_server
from lab.suites.judging import Question, judge
from lab.suites.servers import ServersBeside, source_at
from lab.suites.verdict import Outcome

RUN = """
CREATE DATABASE a;
CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO a.t VALUES (1, 'one'), (2, 'two');
CREATE EVENT a.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM a.t;
"""


def written(source: PrivateServer, *statements: str) -> None:
    """Empty the source with its log, and write."""
    with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in ("SET sql_log_bin = 0", "DROP DATABASE IF EXISTS a", "RESET MASTER", "SET sql_log_bin = 1"):
            cursor.execute(statement)
        for statement in statements:
            cursor.execute(statement)


def question(source: PrivateServer, data: Path, folder: Path) -> Question:
    program = server_binary(Flavor.MARIADB)
    return Question(Flavor.MARIADB, "suite.test", source.port, program, data, folder / "verdict")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a driver's data folder: root needs no password."""
    place = tmp_path_factory.mktemp("driver") / "data"
    with private_server(place, log_bin=False, durable=False) as server:
        for host in ("127.0.0.1", "::1", "localhost"):
            server.query(f"SET PASSWORD FOR 'root'@'{host}' = ''")
        server.stop()
    return place


@pytest.fixture(scope="module")
def source_server(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """A source as a driver starts it."""
    place = tmp_path_factory.mktemp("source") / "data"
    shutil.copytree(data, place)
    with private_server(place, durable=False) as server:
        yield server


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServersBeside]:
    """Kept from test to test, as in a trial."""
    found = ServersBeside(tmp_path_factory.mktemp("beside"))
    yield found
    found.close()


@pytest.mark.parametrize(
    ("last", "outcome", "named"),
    [
        ("DROP EVENT a.e", Outcome.EQUAL, ""),
        # both replicas are without a row that is in no log
        ("SET sql_log_bin = 0; INSERT INTO a.t VALUES (3, 'three')", Outcome.NATIVE, "data of a.t"),
        # its next change stops both
        (
            "SET sql_log_bin = 0; INSERT INTO a.t VALUES (3, ''); SET sql_log_bin = 1; DELETE FROM a.t WHERE id = 3",
            Outcome.NATIVE,
            "1032",
        ),
        # a replica replaces a table that is in the way (slave_ddl_exec_mode)
        (
            "SET sql_log_bin = 0; DROP TABLE a.t; SET sql_log_bin = 1; CREATE TABLE a.t (id INT)",
            Outcome.FAILED,
            "1050",
        ),
    ],
)
def test_a_verdict(
    source_server: PrivateServer,
    data: Path,
    servers: ServersBeside,
    tmp_path: Path,
    last: str,
    outcome: Outcome,
    named: str,
) -> None:
    written(source_server, *[each for each in f"{RUN};{last}".split(";") if each.strip()])
    verdict = judge(question(source_server, data, tmp_path), servers)
    assert (verdict.outcome, verdict.binlog_format) == (outcome, "ROW"), verdict
    assert named in verdict.reason
    assert (verdict.native != "") == (outcome is Outcome.NATIVE)
    assert not (tmp_path / "verdict").exists()


def test_a_temporary_table_that_is_open_at_the_log_s_end_ends_with_its_connection(
    source_server: PrivateServer, data: Path, servers: ServersBeside, tmp_path: Path
) -> None:
    written(source_server, *[each for each in RUN.split(";") if each.strip()])
    with source_server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET binlog_format = STATEMENT")
        cursor.execute("CREATE TEMPORARY TABLE a.kept (id INT)")
        assert judge(question(source_server, data, tmp_path), servers).outcome is Outcome.EQUAL
        with pytest.raises(MySQLError):
            cursor.execute("SELECT 1")


def test_a_server_is_kept_for_the_next_test_unless_something_is_left_in_it(
    source_server: PrivateServer, data: Path, servers: ServersBeside
) -> None:
    program, seen = server_binary(Flavor.MARIADB), []
    source = source_at(Flavor.MARIADB, source_server.port)
    for left in ("CREATE DATABASE b", "CREATE USER b", "SET GLOBAL max_error_count = 7", "SELECT 1"):
        with servers.server("kept", source, program, data) as server:
            seen.append(server.port)
            asked = "SELECT 1 FROM information_schema.schemata WHERE schema_name = 'b' OR @@GLOBAL.max_error_count = 7"
            assert server.query(asked) == []
            server.query(left)
    assert seen[0] == seen[1] == seen[2] != seen[3]


def test_a_source_that_is_gone_is_not_comparable(servers: ServersBeside, tmp_path: Path) -> None:
    program = server_binary(Flavor.MARIADB)
    asked = Question(Flavor.MARIADB, "suite.test", 1, program, tmp_path, tmp_path / "verdict")
    assert judge(asked, servers).outcome is Outcome.INCOMPARABLE
