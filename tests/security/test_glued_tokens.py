"""Where a number, a variable or a literal ends and the next word begins: a keyword or a dot that binlane does not see
would hide a table from the filter, from a statement's lane and from every check of its kind.

Each text is asked of a real server. If it reads rows of the other database, binlane must have named that table, or
have refused to read the text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from binlane.binlog.types.collations import collation_id
from binlane.model import Flavor, SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.sql.parse.lexer import AMBIGUOUS
from lab.servers import PrivateServer
from tests.conftest import requires_mysql

_SECRET = TableKey("secret", "t")
_ROWS = 3
_NUMBERS = (
    *("1", "12e", "1e0", "1E5", "1e+0", "1e-", "1.", "1.5", ".5", "1.e", "1.E", "1.5e", "1.5e3", "1.e+", ".5e", "1..5"),
    *("0x41", "0X41", "0b01", "0B01", "0x", "0b01e5", "\\N", "٣", "1٣", "1.٣", "1e٣"),
    *(
        "'x'",
        "N'x'",
        "x'41'",
        "_latin1'x'",
        "@a",
        "@`a`",
        "@'a'",
        "@@version",
        "`b`",
        "NULL",
        "-1.e",
        "\u017f",
        "1\u00a0",
        "\u3000",
    ),
)
_TEXTS = (
    "SELECT {}FROM secret.t",
    "SELECT {} FROM secret.t",
    "SELECT a FROM secret {}.t",
    "SELECT a FROM secret{}.t",
    "SELECT a FROM secret.{}t",
    "SELECT x.a FROM app.t x {},secret.t",
    "SELECT x.a FROM app.t x,{}secret.t",
    "SELECT a FROM app.t WHERE {}UNION ALL SELECT a FROM secret.t",
    "SELECT a FROM app.t WHERE a IN ({}) UNION ALL TABLE secret.t",
    "SELECT 1 IN ({}(SELECT a FROM secret.t)) FROM secret.t",
    "SELECT a FROM app.t LIMIT 0{}UNION ALL SELECT a FROM secret.t",
)


@pytest.fixture
def session(request: pytest.FixtureRequest, flavor: Flavor) -> Iterator[pymysql.Connection[Any]]:
    server: PrivateServer = request.getfixturevalue(f"{flavor}_source")
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for database, rows in (("app", 1), ("secret", _ROWS)):
            cursor.execute(f"CREATE DATABASE {database}")
            cursor.execute(f"CREATE TABLE {database}.t (a INT)")
            cursor.execute(f"INSERT INTO {database}.t VALUES {', '.join(['(7)'] * rows)}")
        cursor.execute("USE app")
        yield connection
        cursor.execute("SET NAMES utf8mb4")
        for database in ("app", "secret"):
            cursor.execute(f"DROP DATABASE {database}")


_FLAVORS = pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])


def _reads_secret(connection: pymysql.Connection[Any], sql: bytes) -> bool:
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql)
        except pymysql.err.MySQLError:
            return False
        return len(cursor.fetchall()) >= _ROWS


def _is_seen(sql: bytes, context: SessionContext, flavor: Flavor) -> bool:
    facts = statement_facts(sql, context, flavor)
    return _SECRET in facts.tables or facts.reason in AMBIGUOUS


@_FLAVORS
def test_what_stands_behind_a_number_is_seen(session: pymysql.Connection[Any], flavor: Flavor) -> None:
    context, hidden, read = SessionContext(database="app"), [], 0
    for text, number, blank in itertools.product(_TEXTS, _NUMBERS, ("", " ")):
        sql = text.format(blank + number).encode()
        if _reads_secret(session, sql):
            read += 1
            if not _is_seen(sql, context, flavor):
                hidden.append(sql.decode())
    assert hidden == []
    assert read > len(_NUMBERS)


@_FLAVORS
def test_bytes_that_are_blanks_in_a_character_set_hide_nothing(
    session: pymysql.Connection[Any], flavor: Flavor
) -> None:
    with session.cursor() as cursor:
        cursor.execute("SELECT character_set_name, default_collate_name FROM information_schema.character_sets")
        sets = cursor.fetchall()
    hidden, read = [], set()
    for charset, collation in sets:
        with session.cursor() as cursor:
            try:
                cursor.execute(f"SET character_set_client = {charset}")
            except pymysql.err.MySQLError:
                continue
        context = SessionContext(database="app", charset_client=collation_id(collation, flavor))
        for byte, text in itertools.product(
            range(0x80, 0x100), (b"SELECT a FROM%csecret.t", b"SELECT @a%cFROM secret.t")
        ):
            sql = text % byte
            if _reads_secret(session, sql):
                read.add(charset)
                if not _is_seen(sql, context, flavor):
                    hidden.append((charset, sql))
    assert hidden == []
    assert {"latin1", "cp866"} <= read
