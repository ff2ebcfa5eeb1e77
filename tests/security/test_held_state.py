"""A table of the schema ``binlane`` stays a table without triggers in each transaction of a command that touches it.

Attacker: who may DROP and CREATE there, or CREATE TRIGGER (as accounts of backups may), and does it while a command
runs: behind the check with which it begins (``test_replaced_state``), between two of its transactions.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pymysql
import pytest
from sqlalchemy import Connection, Table, delete, insert, select, text, update
from sqlalchemy.dialects import mysql

from binlane.apply import target_state
from binlane.apply.session.connection import LaneSession
from binlane.bootstrap.sessions import write_session
from binlane.driver import connection as driver
from binlane.errors import StateSchemaError
from binlane.model import Flavor, SchemaObject
from binlane.sessions.state_guard import TABLES, Touched, hinted, hold
from binlane.state.consistent_view import CONSISTENT_VIEW
from binlane.state.records.bootstraps import count_rows
from binlane.state.tables import metadata
from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.security.test_replaced_state import COMMANDS, FAMILIES, attacked, in_place_of, put_back, runs_of

_TOUCHED: Final = re.compile(rf"binlane\.`?({'|'.join(table.name for table in metadata.sorted_tables)})\b`?(?!\.)")
_HINTED: Final = re.compile(rf"{_TOUCHED.pattern}(?: AS \w+)? USE INDEX FOR GROUP BY \(PRIMARY\)")
_ROWS: Final = ("SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH")
_WAITED: Final = 1205
Swap = Callable[[], None]


def test_the_door_knows_each_table_of_the_state() -> None:
    assert {table.name for table in metadata.sorted_tables} == TABLES


@pytest.mark.parametrize("family", FAMILIES)
def test_no_statement_touches_a_table_of_the_state_that_is_not_held(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, free, seen = attacked(channel_of, family), list[object](), set[str]()
    sends = driver.Connection._query

    def query(self: driver.Connection, sql: str | bytes, unbuffered: bool = False) -> int:
        statement = sql if isinstance(sql, str) else bytes(sql[:4000]).decode("latin-1")
        if self.port == channel.target.port and statement.startswith(_ROWS) and "USE INDEX ()" not in statement:
            touched = set(_TOUCHED.findall(statement))
            seen.update(touched)
            rest = _TOUCHED.findall(_HINTED.sub("", statement))
            free.extend((statement[:200], table) for table in rest if not is_locked(channel.target, self, table))
        return sends(self, sql, unbuffered)

    monkeypatch.setattr(driver.Connection, "_query", query)
    for at, command in enumerate(COMMANDS):
        run_on(channel.source, f"INSERT INTO app.t VALUES ({at})")
        channel.cli(*command)
    assert free == []
    assert seen >= {"channels", "positions", "windows", "skips", "errors", "audit", "verifications", "migrations"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_view_that_comes_behind_the_check_of_a_command_runs_nothing(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = attacked(channel_of, family)
    checked = target_state._refuse_another
    for command in (("run", CHANNEL), ("status", CHANNEL), ("stop", CHANNEL), ("verify", CHANNEL)):
        with swapped(channel, "channels") as swap:

            def later(*arguments: Any, swap: Swap = swap, **named: Any) -> None:
                checked(*arguments, **named)
                swap()

            monkeypatch.setattr(target_state, "_refuse_another", later)
            channel.cli(*command)
            assert "binlane.channels: expected a table, found a view" in "".join(capsys.readouterr()), command
            assert runs_of(channel.target) == 0, command
        monkeypatch.undo()
    assert channel.cli("status", CHANNEL) == 0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("table", ["positions", "windows"])
def test_a_view_that_comes_while_lanes_apply_runs_nothing(
    family: str, table: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = attacked(channel_of, family)
    run_on(channel.source, "INSERT INTO app.t VALUES (1), (2)")
    begins = LaneSession.begin
    with swapped(channel, table) as swap:

        def begin(self: LaneSession) -> None:
            swap()
            begins(self)

        monkeypatch.setattr(LaneSession, "begin", begin)
        assert channel.cli("run", CHANNEL) != 0
        assert f"binlane.{table}: expected a table, found a view" in "".join(capsys.readouterr())
        assert runs_of(channel.target) == 0
    monkeypatch.undo()
    assert channel.cli("run", CHANNEL) == 0
    assert channel.target.query("SELECT n FROM app.t ORDER BY n") == [(1,), (2,)]


SESSION: Final = "SET SESSION time_zone = '+05:00', sql_select_limit = 0; SET @binlane_1 = 'x'"
"""What a trigger could leave in the session: other times in the rows behind it, no rows in what is read."""


def write(connection: Connection, statement: str) -> None:
    connection.execute(text(statement))
    connection.commit()


def with_trigger(table: str, kind: str = "UPDATE") -> str:
    return f"CREATE TRIGGER binlane.later BEFORE {kind} ON binlane.{table} FOR EACH ROW BEGIN {SESSION}; END"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_trigger_that_comes_while_lanes_apply_changes_no_row(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    channel, begins = attacked(channel_of, family), LaneSession.begin
    run_on(channel.source, "INSERT INTO app.t VALUES (1), (2)")
    made = list[str]()

    def begin(self: LaneSession) -> None:
        if not made:
            made.append("positions")
            run_on(channel.target, with_trigger("positions"), log=False)
        begins(self)

    monkeypatch.setattr(LaneSession, "begin", begin)
    assert channel.cli("run", CHANNEL) != 0
    assert "binlane.positions: expected a table without triggers, found one of the name 'later'" in "".join(
        capsys.readouterr()
    )
    assert channel.target.query("SELECT n FROM app.t") == []
    run_on(channel.target, "DROP TRIGGER binlane.later", log=False)
    assert channel.cli("run", CHANNEL) == 0
    assert channel.target.query("SELECT n FROM app.t ORDER BY n") == [(1,), (2,)]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_transaction_commits_behind_a_trigger_of_what_it_has_written(family: str, channel_of: ChannelOf) -> None:
    """Whatever the transaction has seen before, which on MySQL decides what it sees of the catalogue."""
    channel = attacked(channel_of, family)
    engine, before = driver_engine(channel), channel.target.query("SELECT * FROM binlane.channels")
    cases = {
        ("channels", "UPDATE"): "UPDATE binlane.channels SET stopped = 'x'",
        ("progress", "INSERT"): "INSERT INTO binlane.progress (channel, step, window_id, done, total, begun_at, "
        "updated_at) VALUES ('x', 'plan', 'x', 0, 0, NOW(), NOW())",
        ("windows", "DELETE"): "DELETE FROM binlane.windows",
        ("copies_1_2", "INSERT"): "INSERT INTO binlane.`copies_1_2` (c0) VALUES (1)",
    }
    run_on(channel.target, "CREATE TABLE binlane.copies_1_2 (n BIGINT AUTO_INCREMENT PRIMARY KEY, c0 INT)", log=False)
    for (table, kind), statement in cases.items():
        for reads in (False, True):
            for commits_itself in (False, True):
                level = {"isolation_level": "AUTOCOMMIT"} if commits_itself else {}
                with engine.connect().execution_options(**level) as connection:
                    if reads:
                        connection.execute(text("SELECT * FROM binlane.migrations")).all()
                    run_on(channel.target, with_trigger(table, kind), log=False)
                    with pytest.raises(StateSchemaError, match=f"binlane.{table}: expected a table without triggers"):
                        write(connection, statement)
                run_on(channel.target, "DROP TRIGGER binlane.later", log=False)
    assert channel.target.query("SELECT * FROM binlane.channels") == before
    assert channel.target.query("SELECT * FROM binlane.progress WHERE channel = 'x'") == []
    with engine.connect() as connection:
        # no session is used again that a trigger has changed
        assert connection.execute(text("SELECT @@time_zone, @binlane_1")).one() == ("+00:00", None)
    run_on(channel.target, "DROP TABLE binlane.copies_1_2", log=False)
    with contextlib.closing(write_session(channel.endpoints.target)) as writer:
        for key in (None, ("5",)):
            writer.execute("BEGIN")
            run_on(channel.target, with_trigger("bootstrap_objects"), log=False)
            reached = None if key is None else (key, 1)
            count_rows(writer.execute, "x", SchemaObject("table", "app", "t"), 1, reached=reached)
            with pytest.raises(StateSchemaError, match=r"binlane\.bootstrap_objects: .* of the name 'later'"):
                writer.execute("COMMIT")
            run_on(channel.target, "DROP TRIGGER binlane.later", log=False)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_statement_that_holds_opens_no_snapshot(family: str, channel_of: ChannelOf) -> None:
    """A lane reads its orders behind the lock of its position: it must see those that were given while it waited."""
    channel = attacked(channel_of, family)
    for locks in (False, True):
        with channel.target.connect(autocommit=False) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute(hold(Touched(frozenset({"windows", "positions", "skips"}), locks=locks)))
            run_on(channel.target, f"UPDATE binlane.windows SET stop_at = {7 + locks}")
            cursor.execute("SELECT MAX(stop_at) FROM binlane.windows")
            assert cursor.fetchall() == ((7 + locks,),)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_view_for_readers_is_none_that_binlane_reads(family: str, channel_of: ChannelOf) -> None:
    """Somebody may put another one in its place, whose function is quiet where a server looks at the view alone."""
    channel = attacked(channel_of, family)
    reads_only = "tx_read_only" if channel.target.flavor is Flavor.MARIADB else "transaction_read_only"
    run_on(
        channel.target,
        "CREATE FUNCTION victim.g() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER "
        f"BEGIN IF @@{reads_only} = 0 THEN INSERT INTO victim.t VALUES (1); END IF; RETURN 1; END",
        "CREATE OR REPLACE SQL SECURITY INVOKER VIEW binlane.consistent AS SELECT c.channel, 1 AS seqno, "
        "c.source_identity, c.source_file, c.source_offset, c.gtid_set, c.source_time, 0 AS skipped "
        "FROM binlane.channels AS c WHERE victim.g() = 1",
        log=False,
    )
    # MariaDB looks into the function where binlane looks at the view, which is refused then
    assert channel.cli("read-at", CHANNEL, "--command", "true") == (channel.target.flavor is Flavor.MARIADB)
    assert runs_of(channel.target) == 0
    run_on(channel.target, f"CREATE OR REPLACE {CONSISTENT_VIEW}", log=False)


HINT: Final = "USE INDEX FOR GROUP BY (PRIMARY)"
WRITES_DDL: Final = Touched(frozenset({"ddl"}), locks=True, written=frozenset({"ddl"}))


@pytest.mark.parametrize(
    ("statement", "sent", "touched"),
    [
        (
            "SELECT binlane.channels.uuid \nFROM binlane.channels \nWHERE binlane.channels.channel = %(a)s",
            f"SELECT binlane.channels.uuid \nFROM binlane.channels {HINT} \nWHERE binlane.channels.channel = %(a)s",
            Touched(frozenset({"channels"}), is_hinted=True),
        ),
        (
            "SELECT 'binlane.skips', w.a FROM binlane.windows AS w, `binlane.ddl` WHERE w.b = 'x' FOR UPDATE",
            f"SELECT 'binlane.skips', w.a FROM binlane.windows AS w {HINT}, `binlane.ddl` WHERE w.b = 'x' FOR UPDATE",
            Touched(frozenset({"windows"}), is_hinted=True),
        ),
        (
            "UPDATE binlane.positions SET seqno = 1",
            f"UPDATE binlane.positions {HINT} SET seqno = 1",
            Touched(frozenset({"positions"}), is_hinted=True, written=frozenset({"positions"})),
        ),
        # a text whose end depends on the sql_mode, and rows of a user's: nothing is written into them
        ("SELECT '\\' FROM binlane.ddl -- '", None, Touched(frozenset({"ddl"}))),
        ('SELECT "\'", a FROM binlane.ddl -- "', None, Touched(frozenset({"ddl"}))),
        ("UPDATE app.t SET a = 'binlane.ddl'", None, WRITES_DDL),
        ("SELECT 1 FROM app.t WHERE a = 'binlane.ddl'", None, Touched(is_hinted=True)),
        (
            "SELECT 'binlane.`databases`' FROM binlane.`databases`",
            f"SELECT 'binlane.`databases`' FROM binlane.databases {HINT}",
            Touched(frozenset({"databases"}), is_hinted=True),
        ),
        (
            "INSERT INTO app.t VALUES ('binlane.`databases`')",
            None,
            Touched(frozenset({"databases"}), locks=True, written=frozenset({"databases"})),
        ),
        ("INSERT INTO app.t VALUES ('binlane.nowhere')", None, Touched(locks=True)),
        ("DELETE FROM binlane.ddl", None, WRITES_DDL),
        (
            "INSERT INTO binlane.`copies_1_2` (c0) SELECT a FROM app.t",
            None,
            Touched(locks=True, written=frozenset({"copies_1_2"})),
        ),
        ("DROP TABLE binlane.positions", None, Touched()),
        ("INSERT INTO app.t VALUES (1)", None, Touched()),
    ],
)
def test_a_hint_stands_behind_a_table_of_the_state_alone(statement: str, sent: str | None, touched: Touched) -> None:
    assert hinted(statement) == (statement if sent is None else sent, touched)


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_each_table_is_known_in_each_statement_of_sqlalchemy(table: Table) -> None:
    column = table.columns.values()[0]
    reads, updates = select(table).where(column == 1), update(table).values({column: 1}).where(column == 1)
    for statement in (
        reads,
        updates,
        insert(table).values(dict.fromkeys(table.columns, 1)),
        delete(table).where(column == 1),
    ):
        sent, touched = hinted(str(statement.compile(dialect=mysql.dialect())))
        assert touched.tables == {table.name}
        assert touched.is_hinted == (f"binlane.{table.name} {HINT}" in sent) == (statement in (reads, updates))


@pytest.mark.parametrize("family", FAMILIES)
def test_each_table_can_be_held(family: str, channel_of: ChannelOf) -> None:
    channel = attacked(channel_of, family)
    with driver_engine(channel).begin() as connection:
        for table in metadata.sorted_tables:
            connection.execute(select(table).limit(0))
            connection.execute(delete(table).where(table.columns.values()[0].is_(None)))
        session = connection.connection.driver_connection
        assert [
            table.name for table in metadata.sorted_tables if not is_locked(channel.target, session, table.name)
        ] == []


def test_a_long_statement_gets_its_hint_in_front() -> None:
    statement = "SELECT 1 FROM binlane.ddl" + " " * 10_000
    assert hinted(statement) == (statement, Touched(frozenset({"ddl"})))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_held_statement_in_autocommit_ends_its_transaction(family: str, channel_of: ChannelOf) -> None:
    channel = attacked(channel_of, family)
    engine = driver_engine(channel)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM binlane.channels")).scalar_one() == 1
        run_on(channel.target, *in_place_of("channels"), *put_back("channels"), log=False)
        changed = connection.execute(text("UPDATE binlane.channels SET stopped = 'x'"))
        assert changed.rowcount == 1
        assert channel.target.query("SELECT stopped FROM binlane.channels") == [("x",)]
        with pytest.raises(Exception, match="Unknown column"):
            connection.execute(text("SELECT nothing FROM binlane.channels"))
        run_on(channel.target, *in_place_of("channels"), *put_back("channels"), log=False)


def driver_engine(channel: Channel) -> Any:
    from binlane.servers.engines import engine_of

    return engine_of(channel.endpoints.target)


@contextlib.contextmanager
def swapped(channel: Channel, table: str) -> Iterator[Swap]:
    """A function that puts a view in the table's place, once; the table is back behind the context."""
    done = list[bool]()

    def swap() -> None:
        if not done:
            done.append(True)
            run_on(channel.target, *in_place_of(table), log=False)

    yield swap
    assert done
    run_on(channel.target, *put_back(table), log=False)


def is_locked(server: PrivateServer, session: driver.Connection, table: str) -> bool:
    """Whether a session keeps a table from being renamed."""
    if server.flavor is Flavor.MYSQL:
        locks = server.query(
            "SELECT 1 FROM performance_schema.metadata_locks AS l JOIN performance_schema.threads AS t "
            "ON t.thread_id = l.owner_thread_id WHERE l.object_schema = 'binlane' AND l.lock_status = 'GRANTED' "
            f"AND l.object_name = '{table}' AND t.processlist_id = {int(session.thread_id())}"  # type: ignore[no-untyped-call]
        )
        return bool(locks)
    try:
        run_on(server, "SET lock_wait_timeout = 0", f"RENAME TABLE binlane.{table} TO binlane.gone", log=False)
    except pymysql.err.OperationalError as exc:
        return bool(exc.args[0] == _WAITED)
    run_on(server, f"RENAME TABLE binlane.gone TO binlane.{table}", log=False)
    return False
