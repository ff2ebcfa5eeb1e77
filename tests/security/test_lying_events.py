"""Events of an archive that say something else than their text, or than any server writes: what the filter leaves out
is not reached by them.

Attacker: whoever can write to the archive, and, where a test says so, a user of the source.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from binlane.binlog.wire import MAGIC, ChecksumAlgorithm
from binlane.errors import BinlaneError
from binlane.model import Flavor
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.unit.binlog.cases import MARIADB, MYSQL, T, crc, format_event, mariadb_gtid, mysql_gtid, query, wire

EXCLUDED: Final = '[filter]\nexclude_databases = ["other"]\n'
_STANDALONE, _IN_TRANSACTION = 1, 4
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


def _log(family: str, definitions: Sequence[str], last: bytes, status: bytes = b"") -> bytes:
    """An archive's file: the database app with a table, definitions, and a transaction of one statement."""
    made = ("CREATE DATABASE app", "CREATE TABLE app.t (a INT)", *definitions)
    is_mariadb = family == Flavor.MARIADB
    events = [format_event(replace(MARIADB if is_mariadb else MYSQL, checksum=ChecksumAlgorithm.CRC32))]
    for number, statement in enumerate(made, 1):
        gtid = mariadb_gtid(number, _STANDALONE) if is_mariadb else mysql_gtid(number)
        events += [crc(gtid), crc(query(statement.encode(), database=b"app", status=status))]
    number = len(made) + 1
    begin = [mariadb_gtid(number, _IN_TRANSACTION)] if is_mariadb else [mysql_gtid(number), query(b"BEGIN")]
    return MAGIC + b"".join([*events, *map(crc, (*begin, last, wire(T.XID, struct.pack("<Q", 42))))])


def _read_from(channel: Channel, folder: Path, log: bytes) -> None:
    """Let the channel begin with this log, on a target that has a database which the filter leaves out."""
    archive = folder / "archive"
    archive.mkdir()
    (archive / "binlog.000001").write_bytes(log)
    channel.write_channel(EXCLUDED)
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace('connection = "source_server"', f'archive = "{archive}"'))
    run_on(channel.target, "DROP DATABASE binlane", "CREATE DATABASE other", "CREATE TABLE other.victim (n INT)")
    channel.init("binlog.000001:4")
