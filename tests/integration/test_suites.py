"""The verdict on a test of the servers' own suites, on real servers: source, target and the server's own replica."""

from __future__ import annotations

from pathlib import Path

import pytest
from pymysql.err import MySQLError

from binlane.model import Flavor
from lab.servers import PrivateServer
from lab.suites.judging import Question, judge
from lab.suites.verdict import Outcome
from lab.templates import data_template, server_binary

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


def question(source: PrivateServer, folder: Path) -> Question:
    program = server_binary(Flavor.MARIADB)
    return Question(
        Flavor.MARIADB, "suite.test", source.port, program, data_template(Flavor.MARIADB, program), folder / "verdict"
    )


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
def test_a_verdict(mariadb_source: PrivateServer, tmp_path: Path, last: str, outcome: Outcome, named: str) -> None:
    written(mariadb_source, *[each for each in f"{RUN};{last}".split(";") if each.strip()])
    verdict = judge(question(mariadb_source, tmp_path))
    assert (verdict.outcome, verdict.binlog_format) == (outcome, "ROW"), verdict
    assert named in verdict.reason
    assert (verdict.native != "") == (outcome is Outcome.NATIVE)
    assert not (tmp_path / "verdict").exists()


def test_a_temporary_table_that_is_open_at_the_log_s_end_ends_with_its_connection(
    mariadb_source: PrivateServer, tmp_path: Path
) -> None:
    written(mariadb_source, *[each for each in RUN.split(";") if each.strip()])
    with mariadb_source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET binlog_format = STATEMENT")
        cursor.execute("CREATE TEMPORARY TABLE a.kept (id INT)")
        assert judge(question(mariadb_source, tmp_path)).outcome is Outcome.EQUAL
        with pytest.raises(MySQLError):
            cursor.execute("SELECT 1")


def test_a_source_that_is_gone_is_not_comparable(tmp_path: Path) -> None:
    program = server_binary(Flavor.MARIADB)
    asked = Question(Flavor.MARIADB, "suite.test", 1, program, tmp_path, tmp_path / "verdict")
    assert judge(asked).outcome is Outcome.INCOMPARABLE
