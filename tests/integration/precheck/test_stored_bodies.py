"""Bodies of routines and triggers are read as the server executes them, whatever is inside of their literals."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import pymysql
import pytest
from sqlalchemy import Connection

from binlane.bootstrap.sessions import Session
from binlane.model import Flavor, TableKey
from binlane.precheck.situation.facts import Target
from binlane.servers.programs import read_named_programs, read_programs, read_triggers
from binlane.sql.parse.lexer import UNDECODED
from binlane.sql.programs.marks import mark_of
from binlane.sql.temporary_routines import tokens_of
from lab.servers import PrivateServer
from tests.integration.precheck.helpers import connected
from tests.integration.window.conftest import run_on

BODIES: Final = (
    ("", r"BEGIN SET @x = 'a\\'; SET @z = 1; SET @y = ' OR 1 #'" + "\n; END"),
    ("", "BEGIN SET @x = 'a''b', @q = \"c\"\"d\"; SET @z = 1; SET @y = 'e\\'f'; END"),
    ("", "BEGIN DECLARE `a``b` INT; SET `a``b` = 1; END"),
    ("", "BEGIN SET @x = _latin1'\u00e9\\\\', @y = N'a', @z = '\U0001f600', @w = x'41'; END"),
    ("", "BEGIN /* it's */ SET @x = 1; -- it's\n SET @y = 'z'; END"),
    ("", "label: BEGIN SET @x = '%s :name', @y = '%'; LEAVE label; END"),
    ("ANSI_QUOTES", 'BEGIN DECLARE "a""b" INT; SET "a""b" = 1, @x = \'c\\\\\'; END'),
    ("NO_BACKSLASH_ESCAPES", "BEGIN SET @x = 'a\\', @y = '\\''b'; END"),
)
"""sql_mode and text."""
HEADS: Final = (
    "FUNCTION test_bodies.{name}() RETURNS INT {what} {function}",
    "FUNCTION test_bodies.{name}(a ENUM('x\n''y', ')'), b INT) RETURNS ENUM('u\n''v', '(') CHARSET latin1 {function}",
    "PROCEDURE test_bodies.{name}(IN a INT, /* ( */ OUT `b``(` INT) NO SQL SQL SECURITY INVOKER COMMENT '''\n' {body}",
    "PROCEDURE test_bodies.{name}() COMMENT 'BEGIN END \\\\' {body}",
    "TRIGGER test_bodies.{name} BEFORE INSERT ON test_bodies.t FOR EACH ROW {body}",
    "TRIGGER test_bodies.{name} AFTER INSERT ON test_bodies.`FOR EACH ROW` FOR EACH ROW {body}",
)


UNCERTAIN: Final = (
    ("swe7", b"BEGIN SET @x = '\\'a'; SET @z = 1; SET @y = '\\'a'; RETURN 1; END"),
    ("sjis", b"BEGIN SET @x = '\x81\x5f'; SET @z = 1; SET @y = '\x81\x5f'; RETURN 1; END"),
    ("ujis", b"BEGIN SET @x = '\xa1\xc0'; SET @z = 1; SET @y = '\xa1\xc0'; RETURN 1; END"),
    ("armscii8", b"BEGIN SET @x = '\xff'; SET @z = 1; SET @y = '\xff'; RETURN 1; END"),
)
"""Client character sets, and texts whose code a connection cannot tell from literals and comments."""
NO_UTF8: Final = (("binary", b"'\xff'"), ("utf8mb4", b"_latin1'\xff'"), ("utf8mb4", b"_binary'\xe3\x27"))
"""Client character sets, and literals."""
PACKAGE: Final = "AS FUNCTION f() RETURN INT; END"
PACKAGE_BODY: Final = r"AS FUNCTION f() RETURN INT AS BEGIN SET @x = 'a\\'; SET @y = ' OR '; RETURN 1; END; END"


@pytest.fixture
def connection(server: PrivateServer) -> Iterator[Connection]:
    run_on(
        server,
        "SET GLOBAL log_bin_trust_function_creators = ON",
        "CREATE DATABASE test_bodies",
        "CREATE TABLE test_bodies.t (n INT)",
        "CREATE TABLE test_bodies.`FOR EACH ROW` (n INT)",
        log=False,
    )
    with connected(server) as opened:
        yield opened
    run_on(server, "DROP DATABASE test_bodies", log=False)


def _texts(connection: Connection) -> dict[str, str | None]:
    programs = (*read_programs(connection), *read_triggers(connection))
    return {each.name or each.key.table: each.text for each in programs if each.key.database == "test_bodies"}


def test_each_body_is_read_as_it_was_made(server: PrivateServer, connection: Connection) -> None:
    made = dict[str, str]()
    for mode, body in BODIES:
        for head in HEADS:
            name, is_function = f"p{len(made)}", head.startswith("FUNCTION")
            text = body.removesuffix("END") + "RETURN 1; END" if is_function and body.startswith("BEGIN") else body
            if is_function and text == body:
                continue
            created = head.format(name=name, body=text, function=text, what="DETERMINISTIC SQL SECURITY INVOKER")
            run_on(server, f"SET NAMES utf8mb4, sql_mode = '{mode}'", f"CREATE {created}", log=False)
            made[name] = text
    assert _texts(connection) == made


def test_some_programs_have_the_marks_that_they_have_among_all(server: PrivateServer, connection: Connection) -> None:
    function = "CREATE FUNCTION test_bodies.{}() RETURNS VARCHAR(9) DETERMINISTIC RETURN 'it''s'"
    view = "CREATE VIEW test_bodies.{} (a, `b``c`) AS SELECT n + 1, n FROM test_bodies.t"
    run_on(
        server,
        *(function.format(name) for name in ("f", "g", "`é`")),
        *(view.format(name) for name in ("v", "w")),
        "CREATE PROCEDURE test_bodies.f() SET @x = 'a\\\\'",
        log=False,
    )
    every = {(each.kind, each.key.table): mark_of(each) for each in read_programs(connection)}
    wanted = {False: ["f", "é"], True: ["v"]}
    names = {is_view: [TableKey("test_bodies", name) for name in found] for is_view, found in wanted.items()}
    found = {(each.kind, each.key.table): mark_of(each) for each in read_named_programs(connection, names)}
    assert sorted(found) == [("function", "f"), ("function", "é"), ("procedure", "f"), ("view", "v")]
    assert all(mark == every[name] and mark.digest for name, mark in found.items())


def test_bodies_of_sql_mode_oracle_are_read_as_they_were_made(server: PrivateServer, connection: Connection) -> None:
    if server.flavor is not Flavor.MARIADB:
        with pytest.raises(pymysql.err.MySQLError, match="sql_mode"):
            run_on(server, "SET sql_mode = 'ORACLE'")
        return
    function = r"AS BEGIN SET @x = 'a\\'; SET @y = ' OR '; RETURN 1; END"
    run_on(
        server,
        "SET sql_mode = 'ORACLE'",
        f"CREATE FUNCTION test_bodies.f(a INT) RETURN INT DETERMINISTIC {function}",
        f"CREATE PACKAGE test_bodies.p COMMENT 'x''y' {PACKAGE}",
        f"CREATE PACKAGE BODY test_bodies.p SQL SECURITY INVOKER COMMENT 'x\\\\' {PACKAGE_BODY}",
        log=False,
    )
    found = {each.kind: each.text for each in read_programs(connection) if each.key.database == "test_bodies"}
    assert found == {"function": function, "package": PACKAGE, "package body": PACKAGE_BODY}


@pytest.mark.parametrize(("charset", "body"), UNCERTAIN)
def test_a_text_that_a_connection_cannot_be_sure_of_has_no_tokens(
    server: PrivateServer, connection: Connection, charset: str, body: bytes
) -> None:
    with contextlib.closing(Session(server.connect(autocommit=True), server.flavor, None)) as session:
        session.execute(f"SET character_set_client = {charset}")
        session.execute(b"CREATE FUNCTION test_bodies.f() RETURNS INT DETERMINISTIC " + body)
    [text] = _texts(connection).values()
    assert text is not None
    assert text.startswith(UNDECODED)
    assert tokens_of(text, server.flavor) is None


def _makes_temporary_tables(connection: Connection) -> bool:
    with Target(connection.engine) as target:
        return target.makes_temporary_tables


@pytest.mark.parametrize("nul", ["/* \0 */", "SET @a = '\0';"])
@pytest.mark.parametrize("head", ["PROCEDURE p()", "TRIGGER p BEFORE INSERT ON t FOR EACH ROW"])
def test_no_temporary_table_hides_behind_a_nul(
    server: PrivateServer, connection: Connection, head: str, nul: str
) -> None:
    """MySQL ends the text of a routine there, and cannot run it then."""
    body = f"BEGIN {nul} CREATE TEMPORARY TABLE x (n INT); END"
    assert not _makes_temporary_tables(connection)
    run_on(server, "USE test_bodies", f"CREATE {head} {body}", log=False)
    if _makes_temporary_tables(connection):
        return
    assert (server.flavor, head) == (Flavor.MYSQL, "PROCEDURE p()")
    with pytest.raises(pymysql.err.MySQLError, match="Failed to load routine"):
        server.query("CALL test_bodies.p()")


@pytest.mark.parametrize(("charset", "text"), NO_UTF8)
def test_bytes_that_are_no_utf8_end_no_connection(
    server: PrivateServer, connection: Connection, charset: str, text: bytes
) -> None:
    with contextlib.closing(Session(server.connect(autocommit=True), server.flavor, None)) as session:
        session.execute(f"SET character_set_client = {charset}")
        session.execute(b"CREATE PROCEDURE test_bodies.p(a INT) BEGIN SET @x = " + text + b"; SET @z = 'a\\\\'; END")
    expected = f"BEGIN SET @x = {text.decode(errors='replace')}; SET @z = 'a\\\\'; END"
    assert _texts(connection) == {"p": expected}
    assert tokens_of(expected, server.flavor) is not None
    assert connection.exec_driver_sql("SELECT 'a'").scalar() == "a"


def test_a_text_that_the_server_cannot_read_has_no_tokens(server: PrivateServer, connection: Connection) -> None:
    """As behind an upgrade. MySQL has no table in which one could be written."""
    if server.flavor is not Flavor.MARIADB:
        with pytest.raises(pymysql.err.MySQLError, match=r"mysql\.proc"):
            server.query("SELECT body FROM mysql.proc")
        return
    run_on(
        server,
        "CREATE FUNCTION test_bodies.f() RETURNS INT DETERMINISTIC RETURN 'x'",
        "UPDATE mysql.proc SET body = 'RETURN x ''y'' z', body_utf8 = 'RETURN x ''y'' z' WHERE db = 'test_bodies'",
        log=False,
    )
    assert _texts(connection) == {"f": f"{UNDECODED} RETURN x 'y' z"}


def test_no_other_character_set_makes_signs_of_letters(server: PrivateServer) -> None:
    """Each character of one and of two bytes, as the server converts it."""
    names = [name for (name,) in server.query("SELECT character_set_name FROM information_schema.character_sets")]
    signs = {*map(chr, range(0x20, 0x7F))}
    found = set[str]()
    for name in names:
        if name in ("ucs2", "utf16", "utf16le", "utf32", "binary"):
            continue  # no server takes one of the first for its client's; the last has no letters
        ((size,),) = server.query(
            f"SELECT maxlen FROM information_schema.character_sets WHERE character_set_name = '{name}'"
        )
        singles = [bytes([byte]) for byte in (*range(0x20, 0x7F), *(range(0x80, 0x100) if size == 1 else ()))]
        doubles = [bytes([first, second]) for first in range(0x80, 0x100) for second in range(0x40, 0x100)]
        characters = [*singles, *(doubles if size > 1 else ())]
        for at in range(0, len(characters), 4000):
            batch = characters[at : at + 4000]
            columns = (f"CONVERT(CONVERT(x'{one.hex()}' USING {name}) USING utf8mb4)" for one in batch)
            [row] = server.query(f"SELECT {', '.join(columns)}")
            for one, text in zip(batch, row, strict=True):
                is_sign = text in signs and text != "?"
                if one.decode("latin-1") != text if one.isascii() else is_sign:
                    found.add(name)
    assert found == {"swe7", "sjis", "ujis", "armscii8"}


def test_the_names_of_a_view_s_list_are_in_its_query(connection: Connection, server: PrivateServer) -> None:
    """MySQL's catalogue has them beside it."""
    run_on(server, "CREATE VIEW test_bodies.listed (one, other) AS SELECT 1, 2", log=False)
    [view] = (each for each in read_programs(connection) if each.key.table == "listed")
    assert view.text is not None
    assert "AS `one`" in view.text
    assert "AS `other`" in view.text
