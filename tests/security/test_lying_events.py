"""Events of an archive that say something else than their text, or than any server writes: what the filter leaves out
is not reached by them.

Attacker: whoever can write to the archive, and, where a test says so, a user of the source.
"""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pymysql
import pytest
from sqlalchemy import NullPool

from binlane.apply.session.connection import LaneSession, SessionLimits
from binlane.apply.session.context import ContextSetter
from binlane.binlog.wire import MAGIC, SUPPRESS_USE, ChecksumAlgorithm
from binlane.errors import BinlaneError, PlanError
from binlane.model import Flavor, SessionContext
from binlane.servers.engines import engine_at
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.unit.binlog.cases import MARIADB, MYSQL, T, crc, format_event, mariadb_gtid, mysql_gtid, query, wire

EXCLUDED: Final = '[filter]\nexclude_databases = ["other"]\n'
_STANDALONE, _IN_TRANSACTION = 1, 4
_TYPE_AT: Final = 4
_INSERT: Final = "INSERT INTO victim VALUES (42)"
_FUNCTION: Final = (
    "CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN {}; RETURN 1; END",
    "INSERT INTO app.t VALUES (app.f())",
)
_WRITES: Final = "INSERT INTO other.victim VALUES (42)"

DATABASES: Final[Mapping[str, tuple[str, bytes]]] = {
    "a NUL behind another name": ("mysql", b"other\0app"),
    "a NUL at the end": ("mariadb", b"other\0"),
    "a NUL behind the state's": ("mysql", b"binlane\0app"),
    "a folder": ("mariadb", b"#mysql50#other"),
    "a folder in capitals": ("mariadb", b"#MYSQL50#other"),
    "the folder of the state": ("mariadb", b"#mysql50#binlane"),
    "a blank behind it": ("mysql", b"other "),
    "a name that is too long": ("mysql", b"o" * 65),
}
"""What the event of ``_INSERT`` has for its default database, by the family of both servers. A line more is an attack
more."""

LISTED: Final[Mapping[str, Sequence[str]]] = {
    "a function": (_FUNCTION[0].format(_WRITES), _FUNCTION[1]),
    "a function that calls a procedure": (
        f"CREATE PROCEDURE app.p() MODIFIES SQL DATA BEGIN {_WRITES}; END",
        _FUNCTION[0].format("CALL app.p()"),
        _FUNCTION[1],
    ),
    "a view that calls a function": (
        _FUNCTION[0].format(_WRITES),
        "CREATE VIEW app.v AS SELECT app.f() AS a",
        "INSERT INTO app.t SELECT a FROM app.v",
    ),
    "a view of another database": ("CREATE VIEW app.v AS SELECT * FROM other.victim", "INSERT INTO app.v VALUES (42)"),
}
"""Statements, with which MySQL's log lists the databases that they change. A line more is an attack more."""

DEEP: Final[Mapping[bytes, str]] = {
    b"app": "DELETE FROM other.victim WHERE {}",
    b"other": "DELETE FROM victim WHERE {}",
    b"": "UPDATE app.t JOIN `other` . victim SET victim.a = 1 WHERE {}",
}
"""Statements that are nested too deeply to be read, by their default databases. A line more is an attack more."""

_OTHERS: Final = b"\5other\0\6victim\0\1\3\0\1"
_TABLE: Final = (7).to_bytes(6, "little") + b"\1\0\3app\0\1t\0\1\3\0\1\x63" + bytes((len(_OTHERS),)) + _OTHERS
"""A TABLE_MAP of app.t, whose optional metadata of an unknown kind is the rest of another TABLE_MAP."""
_ROW: Final = {
    T.WRITE_ROWS_V1: (7).to_bytes(6, "little") + b"\1\0\1\xff\xfe\x2a\0\0\0",
    T.WRITE_ROWS_V2: (7).to_bytes(6, "little") + b"\1\0\2\0\1\xff\xfe\x2a\0\0\0",
}
HEADS: Final[Mapping[str, tuple[int, int]]] = {
    "the names behind another table's": (T.TABLE_MAP, _TABLE.index(_OTHERS)),
    "table ids of four bytes": (T.TABLE_MAP, 6),
    "rows of a pre-release": (T.WRITE_ROWS_V1, 6),
    "rows with a longer head": (T.WRITE_ROWS_V2, 12),
}
"""The length that FORMAT_DESCRIPTION tells of the head of a type's events. A line more is an attack more."""

_NAMED: Final = b"INSERT INTO app.t VALUES (1)"
_NAMELESS: Final = b"INSERT INTO nameless VALUES (42)"
NAMELESS: Final[Mapping[str, Sequence[tuple[bytes, bytes, int]]]] = {
    "of the server's own database": (
        (b"INSERT INTO app.t VALUES (1)", b"mysql", 0),
        (_NAMELESS, b"mysql", SUPPRESS_USE),
    ),
    "of the state": ((b"INSERT INTO app.t VALUES (1)", b"binlane", 0), (_NAMELESS, b"binlane", SUPPRESS_USE)),
    "of another event's database": ((b"INSERT INTO app.t VALUES (1)", b"mysql", 0), (_NAMELESS, b"", 0)),
}
"""Statements of a transaction, each with its default database and the flags of its event. A line more is an attack
more."""
_GBK: Final = b"\x04" + struct.pack("<HHH", 28, 28, 28)
"""The status variable of a client of gbk, in which no character has the bytes of the name ``_UNREAD``."""
_UNREAD: Final = b"`\x81\x7f`"
_CALL: Final = b"INSERT INTO app.t VALUES (app.f())"
_MADE: Final = (
    b"CREATE FUNCTION app.f() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER BEGIN DECLARE "
    + _UNREAD
    + b" INT; SET GLOBAL max_connections = 77; RETURN 1; END"
)
UNREAD: Final[Mapping[str, Sequence[bytes]]] = {
    "a function": (_MADE, _CALL),
    "a trigger": (
        b"CREATE TRIGGER app.x BEFORE INSERT ON app.t FOR EACH ROW BEGIN DECLARE "
        + _UNREAD
        + b" INT; SET GLOBAL max_connections = 77; END",
        b"INSERT INTO app.t VALUES (1)",
    ),
    "a statement": (b"INSERT INTO app.t SELECT a FROM (SELECT RELEASE_ALL_LOCKS() AS a) AS " + _UNREAD,),
    "a library": (b"CREATE FUNCTION " + _UNREAD + b" RETURNS STRING SONAME 'evil.so'", b"INSERT INTO app.t VALUES (1)"),
    "accounts": (b"GRANT ALL ON *.* TO test_evil, " + _UNREAD, b"INSERT INTO app.t VALUES (1)"),
}
"""Definitions and a statement with a name that has no certain characters. A line more is an attack more."""


@pytest.mark.parametrize(
    "database",
    [pytest.param(each, marks=requires_mysql if of == "mysql" else ()) for each, (of, _) in DATABASES.items()],
)
def test_a_default_database_is_no_other_name_of_one_that_is_left_out(
    database: str, channel_of: ChannelOf, tmp_path: Path
) -> None:
    family, name = DATABASES[database]
    channel = channel_of(family, family)
    insert = query(_INSERT.encode(), database=name)
    _read_from(channel, tmp_path, _log(family, [], insert))

    with pytest.raises(BinlaneError, match=r"is no name of a database|a name of 65 characters|begins with #mysql50#"):
        channel.run()

    assert channel.target.query("SELECT * FROM other.victim") == []


@requires_mysql
@pytest.mark.parametrize("statements", LISTED)
def test_a_list_of_databases_is_no_proof_of_what_a_routine_changes(
    statements: str, channel_of: ChannelOf, tmp_path: Path
) -> None:
    channel = channel_of("mysql", "mysql")
    *definitions, last = LISTED[statements]
    listed = b"\x0c\1app\0"
    last_event = query(last.encode(), database=b"app", status=listed)
    _read_from(channel, tmp_path, _log("mysql", definitions, last_event, status=listed))

    with pytest.raises(BinlaneError, match=r"no table that the filter leaves out|which it leaves out"):
        channel.run()

    assert channel.target.query("SELECT * FROM other.victim") == []


@requires_mysql
def test_a_list_of_databases_is_no_proof_of_what_is_not_read(channel_of: ChannelOf, tmp_path: Path) -> None:
    channel = channel_of("mysql", "mysql")
    for number, (database, text) in enumerate(DEEP.items()):
        last = query(text.format("(" * 101 + "1" + ")" * 101).encode(), database=database, status=b"\x0c\1app\0")
        _read_from(channel, tmp_path / str(number), _log("mysql", (), last, status=b"\x0c\1app\0"))
        run_on(channel.target, "INSERT INTO other.victim VALUES (7)", log=False)

        with pytest.raises(BinlaneError, match="reads to its end"):
            channel.run()

        assert channel.target.query("SELECT * FROM other.victim") == [(7,)]
        run_on(channel.target, "DROP DATABASE other", log=False)


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_statement_of_which_a_name_is_not_read_does_not_run(
    family: str, channel_of: ChannelOf, tmp_path: Path
) -> None:
    """What stands behind the name was not looked at; also where the channel allows what is unsafe."""
    channel = channel_of(family, family)
    before = channel.target.query("SELECT @@max_connections")
    for number, (*definitions, last) in enumerate(UNREAD.values()):
        log = _log(family, definitions, query(last, database=b"app", status=_GBK), status=_GBK)
        _read_from(channel, tmp_path / str(number), log, rules="allow_unsafe = true\n")

        with pytest.raises(BinlaneError, match=r"no certain characters of its character set|account statement, which"):
            channel.run()

        run_on(channel.target, "DROP DATABASE other", log=False)
    assert channel.target.query("SELECT @@max_connections") == before


@requires_mysql
def test_a_user_s_statement_of_which_a_name_is_not_read_does_not_run(channel_of: ChannelOf) -> None:
    """MySQL takes such names (MariaDB does not): the checks of what is unsafe saw the text in front of it alone."""
    channel = channel_of("mysql", "mysql")
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (a CHAR(36))")
    assert channel.run() is not None
    with channel.source.connect(autocommit=True) as connection:
        connection.query("SET NAMES gbk")
        connection.query("SET SESSION binlog_format = STATEMENT")
        connection.query(b"INSERT INTO app.t SELECT a FROM (SELECT UUID() AS a) AS " + _UNREAD)

    with pytest.raises(BinlaneError, match="no certain characters of its character set"):
        channel.run()

    assert channel.target.query("SELECT * FROM app.t") == []


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.parametrize("statements", NAMELESS)
def test_a_statement_without_a_default_database_has_none_of_another_s(
    statements: str, family: str, channel_of: ChannelOf, tmp_path: Path
) -> None:
    channel = channel_of(family, family)
    *before, last = (query(sql, database=name, flags=flags) for sql, name, flags in NAMELESS[statements])
    _read_from(channel, tmp_path, _log(family, [], last, before=before), rules="")

    with pytest.raises(BinlaneError, match="a name without a database, and no default database, which no server logs"):
        channel.run()


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_lane_s_session_keeps_no_default_database(family: str, channel_of: ChannelOf) -> None:
    """Whatever a statement is, it runs in its own default database, or in one without tables of users."""
    target = channel_of(family, family).target
    run_on(target, "CREATE DATABASE other", "CREATE TABLE other.nameless (a INT)", log=False)
    session = LaneSession.open(engine_at(target.url(), poolclass=NullPool), SessionLimits())
    with contextlib.closing(session):
        setter = ContextSetter(session)
        for database, statement in ((None, _NAMELESS), ("gone", b"ALTER DATABASE CHARACTER SET latin1")):
            setter.enter(SessionContext(database="other"), _NAMED)
            setter.enter(SessionContext(database=database), statement)
            assert session.value("SELECT DATABASE()") == "information_schema"
            with pytest.raises(pymysql.err.MySQLError):
                session.execute(statement.decode())

    assert target.query("SELECT * FROM other.nameless") == []


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.parametrize("text", ["VALUES (DATABASE())", "SELECT schema( /* of no database */ )"])
def test_a_user_s_question_for_no_database_is_refused(text: str, family: str, channel_of: ChannelOf) -> None:
    """On the source the answer is NULL; on the target a session has had a default database before."""
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (a VARCHAR(64))")
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", f"INSERT INTO app.t {text}")
    assert channel.source.query("SELECT * FROM app.t") == [(None,)]

    with pytest.raises(BinlaneError, match=r"DATABASE\(\) in a session without a default database"):
        channel.run()


def test_the_database_of_a_session_has_one_name(channel: Channel) -> None:
    """A user of a MariaDB source, with rights on the database there."""
    for server in (channel.source, channel.target):
        run_on(server, "CREATE DATABASE other", "CREATE TABLE other.victim (n INT)", log=False)
    channel.write_channel(EXCLUDED)
    use = "USE `#mysql50#other`"
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", use, _INSERT, "CREATE TABLE made (n INT)")
    assert channel.source.query("SELECT * FROM other.victim") == [(42,)]

    with pytest.raises(BinlaneError, match="begins with #mysql50#"):
        channel.run()

    assert channel.target.query("SELECT * FROM other.victim") == []
    # the server keeps the tables open under the other name, and drops no database of which one is open (1205)
    run_on(channel.source, "FLUSH TABLES")


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.parametrize("head", HEADS)
def test_rows_are_of_the_table_that_the_filter_has_seen(
    head: str, family: str, channel_of: ChannelOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server reads a TABLE_MAP by the lengths in FORMAT_DESCRIPTION, and binlane by those that servers write."""
    channel = channel_of(family, family)
    _archive_of(channel, tmp_path, MAGIC + _format(family, *HEADS[head]) + b"".join(map(crc, _rows_of(family))))

    assert channel.cli("init", CHANNEL, "--start", "binlog.000001:4") != 0

    assert re.search(r"FORMAT_DESCRIPTION: \w+ with a head of \d+ bytes", capsys.readouterr().err)
    assert channel.target.query("SELECT * FROM other.victim") == []


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_lane_file_s_format_moves_no_row(family: str, channel_of: ChannelOf) -> None:
    """Attacker: Spark, which makes the lane files."""
    target = channel_of(family, family).target
    run_on(target, *(f"CREATE DATABASE {name}" for name in ("app", "other")), log=False)
    run_on(target, "CREATE TABLE app.t (a INT)", "CREATE TABLE other.victim (a INT)", log=False)
    session = LaneSession.open(engine_at(target.url(), poolclass=NullPool), SessionLimits())
    with contextlib.closing(session):
        session.execute("SET SESSION sql_log_bin = 0")
        for code, length in HEADS.values():
            session.use_format(_format(family, code, length))
            session.binlog(b"".join(each for each in _rows_of(family) if each[_TYPE_AT] in (T.TABLE_MAP, *_ROW)))
        with pytest.raises(PlanError, match="the FORMAT_DESCRIPTION of a lane file cannot be read"):
            session.use_format(_format(family, T.TABLE_MAP, 8)[:60])

    assert target.query("SELECT * FROM other.victim") == []
    assert target.query("SELECT * FROM app.t") == [(42,)] * len(HEADS)


def _format(family: str, code: int, length: int) -> bytes:
    told = replace(MARIADB if family == Flavor.MARIADB else MYSQL, checksum=ChecksumAlgorithm.CRC32)
    lengths = bytearray(told.post_header_lengths)
    lengths[code - 1] = length
    return format_event(replace(told, post_header_lengths=bytes(lengths)))


def _rows_of(family: str) -> Sequence[bytes]:
    """A transaction with one row of app.t."""
    is_mariadb = family == Flavor.MARIADB
    begin = [mariadb_gtid(1, _IN_TRANSACTION)] if is_mariadb else [mysql_gtid(1), query(b"BEGIN")]
    code = T.WRITE_ROWS_V1 if is_mariadb else T.WRITE_ROWS_V2
    return [*begin, wire(T.TABLE_MAP, _TABLE), wire(code, _ROW[code]), wire(T.XID, struct.pack("<Q", 42))]


def _log(
    family: str, definitions: Sequence[str | bytes], last: bytes, status: bytes = b"", before: Sequence[bytes] = ()
) -> bytes:
    """An archive's file: the database app with a table, definitions, and a transaction of one statement, and of those
    before it."""
    made = ("CREATE DATABASE app", "CREATE TABLE app.t (a INT)", *definitions)
    is_mariadb = family == Flavor.MARIADB
    events = [format_event(replace(MARIADB if is_mariadb else MYSQL, checksum=ChecksumAlgorithm.CRC32))]
    for number, statement in enumerate(made, 1):
        gtid = mariadb_gtid(number, _STANDALONE) if is_mariadb else mysql_gtid(number)
        sql = statement if isinstance(statement, bytes) else statement.encode()
        events += [crc(gtid), crc(query(sql, database=b"app", status=status))]
    number = len(made) + 1
    begin = [mariadb_gtid(number, _IN_TRANSACTION)] if is_mariadb else [mysql_gtid(number), query(b"BEGIN")]
    return MAGIC + b"".join([*events, *map(crc, (*begin, *before, last, wire(T.XID, struct.pack("<Q", 42))))])


def _read_from(channel: Channel, folder: Path, log: bytes, rules: str = EXCLUDED) -> None:
    """Let the channel begin with this log."""
    _archive_of(channel, folder, log, rules)
    channel.init("binlog.000001:4")


def _archive_of(channel: Channel, folder: Path, log: bytes, rules: str = EXCLUDED) -> None:
    """Make this log the channel's, and a database on the target that the filter leaves out."""
    archive = folder / "archive"
    archive.mkdir(parents=True)
    (archive / "binlog.000001").write_bytes(log)
    channel.write_channel(rules)
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace('connection = "source_server"', f'archive = "{archive}"'))
    run_on(channel.target, "DROP DATABASE binlane", "CREATE DATABASE other", "CREATE TABLE other.victim (n INT)")
