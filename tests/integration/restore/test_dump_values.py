"""Values of a dump that its target would store otherwise."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.bootstrap.sessions import Session, write_session
from binlane.connections import Endpoint, Tls
from binlane.errors import ApplyError
from binlane.model import Flavor, version_number
from binlane.restore.dump_file import DumpFile
from binlane.restore.dump_load import DumpLoad
from lab.servers import PrivateServer
from tests.conftest import requires_mysql

TABLE: Final = (
    b"CREATE TABLE `t` (`id` int PRIMARY KEY, `e` enum('a'), `b` blob, `v` varchar(3), `l` varchar(3) CHARACTER SET"
    b" latin1, `d` decimal(5,2), `at` timestamp NULL)"
)
HEAD: Final = (b"SET NAMES utf8mb4", b"SET TIME_ZONE='+00:00', SQL_NOTES=0", b"SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO'")


@pytest.fixture(scope="module", params=["mariadb_target", pytest.param("mysql_target", marks=requires_mysql)])
def server(request: pytest.FixtureRequest) -> PrivateServer:
    found: PrivateServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def session(server: PrivateServer) -> Iterator[Session]:
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


LETTERS: Final = (
    "CREATE DATABASE letters CHARACTER SET utf8mb4",
    "CREATE TABLE letters.face (id INT PRIMARY KEY, v VARCHAR(9), e ENUM('it''s', 'b') COMMENT ') CHARSET=latin1', "
    "l TEXT CHARACTER SET latin1, c CHAR(9) CHARACTER SET cp1251 COLLATE cp1251_bin)",
    "INSERT INTO letters.face VALUES (1, '\N{GRINNING FACE}', 'b', '\N{EURO SIGN}', '\N{CYRILLIC SMALL LETTER ZHE}')",
    "CREATE TABLE letters.plain (id INT PRIMARY KEY, v VARCHAR(9))",
    "INSERT INTO letters.plain VALUES (1, 'abc')",
)


@pytest.mark.parametrize(
    ("client", "lost", "expected"),
    [
        ("utf8mb4", [], ("\N{GRINNING FACE}", "\N{EURO SIGN}", "\N{CYRILLIC SMALL LETTER ZHE}")),
        ("utf8mb3", ["v", "e"], ("?", "\N{EURO SIGN}", "\N{CYRILLIC SMALL LETTER ZHE}")),
        ("latin1", ["v", "e", "c"], ("?", "\N{EURO SIGN}", "?")),
    ],
)
def test_columns_are_named_in_whose_letters_a_dump_program_has_written_question_marks(
    server: PrivateServer, session: Session, client: str, lost: list[str], expected: tuple[str, ...], tmp_path: Path
) -> None:
    for statement in ("DROP DATABASE IF EXISTS back", "DROP DATABASE IF EXISTS letters", *LETTERS):
        session.execute(statement)
    account = [f"--host={server.host}", f"--port={server.port}", f"--user={server.user}"]
    account.append(f"--password={server.password}")
    of_dump = [f"--default-character-set={client}", "--single-transaction", "--databases", "letters"]
    command = [str(server.tool("dump")), "--no-defaults", *account, *of_dump]
    file = tmp_path / "dump.sql"
    file.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    dump = DumpFile(file)
    found = dump.place().inexact
    assert [column.split()[0] for each in found for column in each.columns] == lost
    assert {each.table for each in found} <= {"face"}, "the other one has no letter that was lost"
    [(version,)] = session.texts("SELECT VERSION()")
    loading = DumpLoad(session, version_number(version), "dump.sql", {"letters": "back"}, (), server=dump.server())
    loading.run(dump.statements(""))
    session.execute("SET NAMES utf8mb4")
    assert (*loading.inexact,) == found
    assert session.texts("SELECT v, l, c FROM back.face") == [expected]
