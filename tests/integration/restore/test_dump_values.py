"""Values of a dump that its target would store otherwise."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import pytest

from binlane.bootstrap.sessions import Session, write_session
from binlane.connections import Endpoint, Tls
from binlane.errors import ApplyError
from binlane.model import version_number
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
