"""Values of a dump that its target would store otherwise."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import pytest

from binlane.bootstrap.sessions import Session, write_session
from binlane.connections import Endpoint, Tls
from binlane.errors import ApplyError
from binlane.model import Flavor, version_number
from binlane.restore.dump_load import DumpLoad
from lab.servers import PrivateServer
from tests.conftest import requires_mysql

TABLE: Final = (
    b"CREATE TABLE `t` (`id` int PRIMARY KEY, `e` enum('a'), `b` blob, `v` varchar(3), `l` varchar(3) CHARACTER SET"
    b" latin1, `d` decimal(5,2), `at` timestamp NULL)"
)
HEAD: Final = (b"SET NAMES utf8mb4", b"SET TIME_ZONE='+00:00', SQL_NOTES=0", b"SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO'")


@pytest.fixture(scope="module", params=["mariadb_target", pytest.param("mysql_target", marks=requires_mysql)])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    server: PrivateServer = request.getfixturevalue(request.param)
    endpoint = Endpoint("server", server.host, server.port, server.user, server.password, Tls("preferred"))
    with contextlib.closing(write_session(endpoint)) as found:
        found.execute("CREATE DATABASE back")
        yield found


def load(session: Session, values: bytes) -> None:
    session.execute("DROP TABLE IF EXISTS back.t")
    [(version,)] = session.texts("SELECT VERSION()")
    loading = DumpLoad(session, version_number(version), "dump.sql", {"shop": "back"}, ())
    loading.run(iter((*HEAD, b"USE `shop`", TABLE, b"INSERT INTO `t` VALUES (1,'a',NULL,'a','a',1.25,NULL)," + values)))


@pytest.mark.parametrize(
    ("values", "column"),
    [
        (b"(2,'a',NULL,'a','a',1.25,'2200-01-01 00:00:00')", "at"),
        (b"(2,'a',NULL,'abcd','a',1.25,NULL)", "v"),
        ("(2,'a',NULL,'a','\N{GREEK SMALL LETTER OMEGA}',1.25,NULL)".encode(), "l"),
        (b"(2,'a',NULL,'a','a',1000,NULL)", "d"),
        (b"(2,'a',NULL,'a','a','1.255',NULL)", "d"),
    ],
    ids=["moment", "length", "character", "range", "digits, a note"],
)
def test_a_value_that_the_target_would_change_is_refused_by_table_and_column(
    session: Session, values: bytes, column: str
) -> None:
    with pytest.raises(ApplyError, match=rf"^back\.t: the target would not store .* column .*{column}\W"):
        load(session, values)
    session.execute("ROLLBACK")
    assert session.texts("SELECT COUNT(*) FROM back.t") == [("0",)]


def test_what_a_dump_has_of_unchanged_values_is_no_refusal(session: Session) -> None:
    """The error value of an ENUM, and bytes that are no text, of a program that writes no _binary in front of them."""
    load(session, b"(2,'','\xff\xfe',_utf8mb3'abc','\xc3\xa4',1.2,'0000-00-00 00:00:00')")
    assert session.rows("SELECT e + 0, HEX(b), HEX(l), at FROM back.t WHERE id = 2") == [
        (b"0", b"FFFE", b"E4", b"0000-00-00 00:00:00")
    ]


@pytest.mark.parametrize("version", ["5.7.44-log", "8.4.3", ""])
def test_a_character_set_alone_means_what_it_meant_to_the_server_that_was_dumped(
    session: Session, version: str
) -> None:
    session.execute("DROP DATABASE back")
    [(now,)] = session.texts("SELECT VERSION()")
    loading = DumpLoad(session, version_number(now), "dump.sql", {"shop": "back"}, (), server=version)
    table = b"CREATE TABLE `u` (`s` varchar(9)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
    database = b"CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */"
    loading.run(iter((database, b"USE `shop`", table)))
    session.execute("CREATE TABLE back.of_database (s VARCHAR(9))")
    if session.flavor is Flavor.MYSQL:
        expected = "utf8mb4_general_ci" if version.startswith("5.7") else "utf8mb4_0900_ai_ci"
        found = session.texts(
            "SELECT DISTINCT table_collation FROM information_schema.tables WHERE table_schema = 'back'"
        )
        assert found == [(expected,)]
        session.execute("SET SESSION default_collation_for_utf8mb4 = DEFAULT")
