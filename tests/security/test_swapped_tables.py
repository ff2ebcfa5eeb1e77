"""A table that becomes a view while its rows are read runs nothing: no session of binlane's reads a view in its place.

Attacker: whoever owns one database of the target or of the source. A function with its invoker's privileges, in a view
that has taken the table's place, would run as binlane's account.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pymysql.cursors import SSCursor

from binlane.apply.rows.named_objects import NamedObjects
from binlane.bootstrap.computed_columns import RowCopy
from binlane.bootstrap.row_copy import Chunk, Copier, RemainingTable, copy_chunk, in_transaction
from binlane.bootstrap.sessions import Session, read_session, write_session
from binlane.driver.connection import Connection
from binlane.errors import BinlaneError, ConfigError, TableMismatchError
from binlane.model import Item, ItemKind, SessionContext, TableKey, version_number
from binlane.orchestration.commands.copies import recopy, restore
from binlane.orchestration.commands.copies.missing_tables import MissingTable, fill_empty
from binlane.orchestration.commands.repair import apply_plan, make_plan
from binlane.orchestration.commands.verify import verify
from binlane.orchestration.terminal import Terminal
from binlane.precheck.results import checked_of
from binlane.precheck.situation.parser import StatementJudge
from binlane.repair.plan import Action
from binlane.restore.dump_folder import DumpFolder
from binlane.restore.dump_load import DumpLoad
from binlane.schema.binding import bind
from binlane.schema.model import Schema
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_at, engine_of
from binlane.sessions.pins import SessionKind
from binlane.state.records.repairs import begin_repair
from binlane.state.records.verifications import begin_verification
from binlane.verify.outcome import Options
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, ChannelOf, run_on

FAMILIES: Final = ("mariadb", pytest.param("mysql", marks=requires_mysql))
TABLE: Final = "CREATE TABLE app.t (n INT PRIMARY KEY)"
EVIL: Final = (
    "SET GLOBAL log_bin_trust_function_creators = ON",
    "CREATE DATABASE victim",
    "CREATE TABLE victim.t (n INT)",
    "CREATE FUNCTION app.f() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER "
    "BEGIN DO GET_LOCK('seen', 0); INSERT INTO victim.t VALUES (1); RETURN 1; END",
)
CHECKED: Final = (
    "CREATE SQL SECURITY INVOKER VIEW app.t AS SELECT n FROM app.b WHERE app.f() = 1 WITH CASCADED CHECK OPTION"
)
RENAMED: Final = (
    "RENAME TABLE app.t TO app.b",
    "CREATE SQL SECURITY INVOKER VIEW app.t AS SELECT b.* FROM app.b WHERE app.f() = 1",
)
SEEN: Final = "SELECT IS_FREE_LOCK('seen')"
SWAP: Final = ("DROP TABLE app.t", "CREATE SQL SECURITY INVOKER VIEW app.t AS SELECT app.f() + 0 AS n")


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_comparison_of_rows_calls_no_function_that_changes_anything(
    family: str, side: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = channel_of(family, family)
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)
    channel.on_both("CREATE DATABASE app", TABLE, "INSERT INTO app.t VALUES (1)", *EVIL)
    server: PrivateServer = getattr(channel, side)

    def begun(*arguments: Any, **named: Any) -> Any:
        run_on(server, *SWAP, log=False)
        return begin_verification(*arguments, **named)

    monkeypatch.setattr("binlane.verify.verification.begin_verification", begun)
    with pytest.raises(BinlaneError, match="expected a table, found a view"):
        verify(CHANNEL, channel.channels, Options(full=True))
    assert server.query("SELECT n FROM victim.t") == []
    assert server.query(SEEN) == [(1,)], "nor a function that changes no table"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_repair_calls_no_function_that_changes_anything(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view shows the row that the plan wants, so the repair would commit what its function has done."""
    channel = channel_of(family, family)
    channel.on_both("CREATE DATABASE app", TABLE, *EVIL)
    run_on(channel.source, "INSERT INTO app.t VALUES (1)", log=False)
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)
    _, stored = make_plan(CHANNEL, channel.channels, Options(full=True))
    assert [row.action for row in stored.plan.rows] == [Action.INSERT]

    def begun(*arguments: Any, **named: Any) -> Any:
        run_on(channel.target, *SWAP, log=False)
        return begin_repair(*arguments, **named)

    monkeypatch.setattr("binlane.repair.execution.begin_repair", begun)
    with pytest.raises(BinlaneError, match="found a view"):
        apply_plan(CHANNEL, channel.channels, stored)
    assert channel.target.query("SELECT n FROM victim.t") == []


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_that_are_written_by_sql_call_no_function_that_changes_anything(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the lane's look at the table, in front of its first statement."""
    channel = channel_of(family, family)
    channel.on_both("CREATE DATABASE app", TABLE, "CREATE TABLE app.b (n INT PRIMARY KEY)", *EVIL)
    channel.write_channel('writer = "sql"\n')
    run_on(channel.source, "INSERT INTO app.t VALUES (1)")

    def bound(*arguments: Any) -> Any:
        run_on(channel.target, SWAP[0], CHECKED, log=False)
        return bind(*arguments)

    monkeypatch.setattr("binlane.apply.rows.sql.bind", bound)
    with pytest.raises(BinlaneError, match="expected a table, found a view"):
        channel.run()
    assert channel.target.query("SELECT n FROM victim.t") == []


BEHIND: Final = (
    "RENAME TABLE app.b TO app.c",
    "CREATE SQL SECURITY INVOKER VIEW app.b AS SELECT n FROM app.c WHERE app.f() = 1",
)
PREPARED: Final = (
    "UPDATE app.t SET n = n + 1",
    "DELETE FROM app.t WHERE n = 1",
    "INSERT INTO app.t SELECT n FROM app.t",
    "CREATE TABLE app.n AS SELECT n FROM app.t",
    "CREATE VIEW app.n AS SELECT n FROM app.t",
    "INSERT INTO app.b VALUES (ROUND(1.5, app.f()))",
    "INSERT INTO app.b VALUES (ROUND(1.5, app.g()))",
    "SET STATEMENT max_statement_time = 1 FOR UPDATE app.t SET n = n + 1",
    "LOAD DATA LOCAL INFILE 'x' INTO TABLE app.t",
    f"UPDATE app.t SET n = {'(' * 101}1{')' * 101}",
    f"CREATE TABLE app.n AS SELECT n FROM app.t WHERE {'(' * 101}1{')' * 101}",
    f"CREATE VIEW app.n AS SELECT n FROM app.t WHERE {'(' * 101}1{')' * 101}",
    # and that reach none
    "CREATE VIEW app.n AS SELECT ROUND(1.5, app.f()) AS n",
    "CREATE VIEW app.n AS WITH t AS (SELECT 1 AS n) SELECT ROUND(n, app.f()) AS n FROM t",
    "CREATE VIEW app.n AS SELECT ROUND(1.5, app.f()) AS n FROM information_schema.schemata",
    f"CREATE VIEW app.n AS SELECT ROUND(1.5, app.f()) AS n WHERE {'(' * 101}1{')' * 101}",
    "SELECT ROUND(1.5, app.f())",
    "WITH t AS (SELECT 1 AS n) SELECT ROUND(n, app.f()) FROM t",
    "VALUES (ROUND(1.5, app.f()))",
    "DO ROUND(1.5, app.f())",
    "CALL app.p(ROUND(1.5, app.f()))",
    "SET @n = ROUND(1.5, app.f())",
    "SET GLOBAL max_connections = ROUND(1.5, app.f())",
)
"""Statements for which MariaDB opens tables, or calls a function, when it prepares them."""


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_statement_that_the_parser_is_asked_about_calls_a_function(
    family: str, holds: bool, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the beginning of the precheck's session: MariaDB calls a function in ROUND when it opens the view.
    ``holds``: whether the account may lock a table."""
    if not holds:
        monkeypatch.setattr("binlane.precheck.situation.parser._HELD", ("binlane.nowhere",))
    server = channel_of(family, family).target
    # one that needs no table is called also where no other table is to be opened
    evil = (
        "CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC SQL SECURITY INVOKER "
        "BEGIN DO GET_LOCK('seen', 0); RETURN 1; END"
    )
    run_on(server, "CREATE DATABASE app", TABLE, "CREATE TABLE app.b (n INT)", EVIL[0], evil, log=False)
    engine = engine_at(server.url())
    with contextlib.closing(StatementJudge.open(engine)) as judge:
        assert judge._opens_nothing is (holds and family == "mariadb")
        view = "CREATE SQL SECURITY INVOKER VIEW app.t AS SELECT n FROM app.b WHERE ROUND(1.5, app.f()) > 0"
        opens = "CREATE FUNCTION app.g() RETURNS INT SQL SECURITY INVOKER RETURN (SELECT MAX(n) FROM app.t)"
        run_on(server, "DROP TABLE app.t", view, opens, log=False)
        for statement in PREPARED:
            item = Item(ItemKind.STATEMENT, statement.encode(), context=SessionContext(database="app"))
            for kind in (ItemKind.STATEMENT, ItemKind.DDL):
                verdict = judge.judge(replace(item, kind=kind))
                assert verdict is None or family == "mysql"  # which has no SET STATEMENT, and no VALUES (..)
            assert server.query(SEEN) == [(1,)]
        view_text = b"CREATE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW `app`.`n` AS SELECT `n` FROM `app`.`t`"
        assert judge.judge_definition("app", "", view_text, ()) is None
        assert server.query(SEEN) == [(1,)]
    engine.dispose()


STATEMENTS: Final = {
    "a view in the table's place": (RENAMED, "expected a table, found a view"),
    "a view in the place of a table that the window alters": (RENAMED, "expected a table, found a view"),
    "a view in the place of a table behind a view": (BEHIND, r"app\.b: expected no view"),
    "a view in the place of a table behind a routine": (BEHIND, r"app\.b: expected no view"),
    "another view": (
        ("CREATE OR REPLACE SQL SECURITY INVOKER VIEW app.v AS SELECT b.* FROM app.b WHERE app.f() = 1",),
        "view app.v: expected what the precheck",
    ),
    "another routine": (
        (
            "DROP FUNCTION app.g",
            "CREATE FUNCTION app.g() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER "
            "BEGIN INSERT INTO victim.t VALUES (1); RETURN 1; END",
        ),
        "function app.g: expected what the precheck",
    ),
}
LOGGED: Final = {
    "a view in the place of a table that the window alters": "UPDATE app.t SET n = n + 1",
    "a view in the place of a table behind a view": "UPDATE app.v SET n = n + 1",
    "a view in the place of a table behind a routine": "INSERT INTO app.t VALUES (app.h())",
    "a view in the table's place": "UPDATE app.t SET n = n + 1",
    "another view": "UPDATE app.v SET n = n + 1",
    "another routine": "UPDATE app.b SET n = n + app.g()",
}


@pytest.mark.parametrize(
    ("what", "moment"), [*((what, "in front") for what in STATEMENTS), ("another routine", "between")]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_logged_statement_calls_no_function_that_the_precheck_has_not_seen(
    family: str, what: str, moment: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the precheck and the lane, and between the lane's look and the statement, which is rolled back."""
    channel = channel_of(family, family)
    swap, refused = STATEMENTS[what]
    channel.on_both(
        "CREATE DATABASE app",
        TABLE,
        *EVIL,
        "CREATE FUNCTION app.g() RETURNS INT DETERMINISTIC NO SQL RETURN 1",
    )
    of_t = LOGGED[what].startswith("UPDATE app.t")
    if not of_t:
        channel.on_both("CREATE TABLE app.b (n INT PRIMARY KEY)", "CREATE VIEW app.v AS SELECT n FROM app.b")
        channel.on_both(
            "CREATE FUNCTION app.h() RETURNS INT DETERMINISTIC READS SQL DATA SQL SECURITY INVOKER "
            "RETURN (SELECT MAX(n) FROM app.b)"
        )
    table = "app.t" if of_t else "app.b"
    channel.on_both(f"INSERT INTO {table} VALUES (1)")
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", LOGGED[what])
    if "that the window alters" in what:
        run_on(channel.source, "ALTER TABLE app.t ADD m INT")

    if moment == "in front":
        # where a rollback takes nothing back
        run_on(channel.target, "ALTER TABLE victim.t ENGINE = MyISAM", log=False)

    def checked(*arguments: Any, **named: Any) -> Any:
        run_on(channel.target, *swap, log=False)
        return checked_of(*arguments, **named)

    def held(objects: NamedObjects, *arguments: Any) -> None:
        hold(objects, *arguments)
        run_on(channel.target, *swap, log=False)

    if moment == "between":
        hold = NamedObjects.hold
        monkeypatch.setattr(NamedObjects, "hold", held)
    else:
        monkeypatch.setattr("binlane.orchestration.steps.checked_of", checked)
    with pytest.raises(BinlaneError, match=refused):
        channel.run()
    assert channel.target.query("SELECT n FROM victim.t") == []
    kept = "app.c" if "behind a" in what else "app.b"
    assert channel.target.query(f"SELECT n FROM {kept}") == [(1,)]


MADE: Final = {
    "g": ("DROP FUNCTION app.g", "CREATE FUNCTION app.g() RETURNS INT DETERMINISTIC NO SQL RETURN 2"),
    "new": ("CREATE FUNCTION app.new(a INT) RETURNS INT DETERMINISTIC NO SQL BEGIN DECLARE n INT; RETURN 2; END",),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_routine_that_the_window_makes_itself_is_the_one_that_a_lane_has_sent(
    family: str, name: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exchanged between the lane's DDL and the statement that calls it."""
    channel = channel_of(family, family)
    channel.on_both(
        "CREATE DATABASE app", TABLE, *EVIL, "CREATE FUNCTION app.g() RETURNS INT DETERMINISTIC NO SQL RETURN 1"
    )
    parameters, argument = ("a INT", "1") if name == "new" else ("", "")
    run_on(channel.source, *MADE[name], "SET SESSION binlog_format = STATEMENT")
    run_on(
        channel.source, "SET SESSION binlog_format = STATEMENT", f"INSERT INTO app.t VALUES (app.{name}({argument}))"
    )
    swap = (
        f"DROP FUNCTION app.{name}",
        f"CREATE FUNCTION app.{name}({parameters}) RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER "
        "BEGIN INSERT INTO victim.t VALUES (1); RETURN 1; END",
    )
    hold = NamedObjects.hold

    def held(objects: NamedObjects, execute: Any, facts: Any, names: Any) -> None:
        if facts.written:
            run_on(channel.target, *swap, log=False)
        hold(objects, execute, facts, names)

    with monkeypatch.context() as patched:
        patched.setattr(NamedObjects, "hold", held)
        with pytest.raises(BinlaneError, match=rf"function app\.{name}: expected what the precheck"):
            channel.run()
    assert channel.target.query("SELECT n FROM victim.t") == []
    assert channel.target.query("SELECT n FROM app.t") == []
    # the way on that the message names
    run_on(channel.target, f"DROP FUNCTION app.{name}", MADE[name][-1], log=False)
    assert channel.run() is not None
    assert channel.target.query("SELECT n FROM app.t") == [(2,)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_routine_that_is_taken_as_it_is_now_is_looked_at_again(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write to the work folder removes the file, and has a routine of his own on the target."""
    channel = channel_of(family, family)
    channel.on_both(
        "CREATE DATABASE app", TABLE, *EVIL, "CREATE FUNCTION app.g() RETURNS INT DETERMINISTIC NO SQL RETURN 1"
    )
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", "INSERT INTO app.t VALUES (app.g())")
    swap = (
        "DROP FUNCTION app.g",
        "CREATE FUNCTION app.g() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER "
        "BEGIN UPDATE mysql.user SET account_locked = 'N'; INSERT INTO victim.t VALUES (1); RETURN 1; END",
    )

    def checked(*arguments: Any, **named: Any) -> Any:
        run_on(channel.target, *swap, log=False)
        return checked_of(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr("binlane.orchestration.steps.checked_of", checked)
        with pytest.raises(BinlaneError, match=r"function app\.g: expected what the precheck") as refused:
            channel.run()
    (file,) = set(re.findall(r"if it was mended, remove (\S+) and run again", str(refused.value)))
    Path(file).unlink()
    with pytest.raises(BinlaneError, match=r"\[account-programs\]|\[unsafe-bodies\]"):
        channel.run()
    assert channel.target.query("SELECT n FROM victim.t") == []


@pytest.mark.parametrize("family", FAMILIES)
def test_what_was_mended_behind_the_precheck_is_taken_when_its_file_is_removed(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = channel_of(family, family)
    function = "CREATE FUNCTION app.g() RETURNS INT DETERMINISTIC NO SQL {}RETURN 1"
    channel.on_both("CREATE DATABASE app", TABLE, function.format(""))
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", "INSERT INTO app.t VALUES (app.g())")
    mended = ("DROP FUNCTION app.g", function.format("SQL SECURITY INVOKER "))

    def checked(*arguments: Any, **named: Any) -> Any:
        run_on(channel.target, *mended, log=False)
        return checked_of(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr("binlane.orchestration.steps.checked_of", checked)
        with pytest.raises(BinlaneError, match=r"function app\.g: expected what the precheck") as refused:
            channel.run()
    with pytest.raises(BinlaneError, match=r"function app\.g: expected what the precheck"):
        channel.run()
    (file,) = set(re.findall(r"if it was mended, remove (\S+) and run again", str(refused.value)))
    Path(file).unlink()
    assert channel.run() is not None
    assert channel.target.query("SELECT n FROM app.t") == [(1,)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_table_that_is_copied_again_calls_no_function_that_changes_anything(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copied rows are equal behind the view, so the copy would commit what its function has done."""
    channel = channel_of(family, family)
    channel.on_both("CREATE DATABASE app", TABLE, "CREATE TABLE app.b (n INT PRIMARY KEY)", *EVIL)
    run_on(channel.source, "INSERT INTO app.t VALUES (1)", log=False)
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)

    def begun(*arguments: Any, **named: Any) -> Any:
        run_on(channel.target, SWAP[0], CHECKED, log=False)
        return begin_repair(*arguments, **named)

    monkeypatch.setattr("binlane.repair.recopy.begin_repair", begun)
    with pytest.raises(BinlaneError, match="expected a table, found a view"):
        recopy.recopy(CHANNEL, channel.channels, recopy.Options(("app.t",), "local"), Terminal())
    assert channel.target.query("SELECT n FROM victim.t") == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_first_copy_calls_no_function_of_the_target_that_changes_anything(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    source, target = channel.endpoints.source, channel.endpoints.target
    assert source is not None
    run_on(channel.source, "CREATE DATABASE app", TABLE, "INSERT INTO app.t VALUES (1)", log=False)
    run_on(channel.target, "CREATE DATABASE app", "CREATE TABLE app.b (n INT PRIMARY KEY)", *EVIL, CHECKED, log=False)
    with engine_of(source).connect() as connection:
        table = read_schema(connection, ["app"]).tables[TableKey("app", "t")]
    with (
        contextlib.closing(read_session(source)) as reader,
        contextlib.closing(write_session(target)) as writer,
        pytest.raises(BinlaneError, match="expected a table, found a view"),
    ):
        copy_chunk(reader, writer, Chunk(table, None, None), 1 << 20)
    assert channel.target.query("SELECT n FROM victim.t") == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_dump_that_is_loaded_calls_no_function_that_changes_anything(family: str, channel_of: ChannelOf) -> None:
    """Between its definition of a table and the table's rows."""
    channel = channel_of(family, family)
    run_on(channel.target, "CREATE DATABASE app", "CREATE TABLE app.b (n INT PRIMARY KEY)", *EVIL, log=False)
    rows = b"INSERT INTO `t` VALUES (1)"

    def dump() -> Iterator[bytes]:
        yield from (b"SET TIME_ZONE='+00:00'", b"USE `shop`", b"CREATE TABLE `t` (n INT PRIMARY KEY)", rows)
        assert channel.target.query("SELECT n FROM app.t") == [(1,)]
        run_on(channel.target, SWAP[0], CHECKED, log=False)
        yield rows

    with contextlib.closing(write_session(channel.endpoints.target)) as session:
        [(version,)] = session.texts("SELECT VERSION()")
        load = DumpLoad(session, version_number(version), "dump.sql", {"shop": "app"}, ())
        with pytest.raises(BinlaneError, match="expected a table, found a view"):
            load.run(dump())
    assert channel.target.query("SELECT n FROM victim.t") == []


READS: Final[Mapping[str, Callable[[Session, str], object]]] = {
    "all at once": Session.rows,
    "one by one": lambda session, query: list(session.each_row(query)),
    "as packets": Session.begin_stream,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_copy_of_rows_calls_no_function_that_changes_anything(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE app", *EVIL, SWAP[1], log=False)
    source = channel.endpoints.source
    assert source is not None
    with contextlib.closing(read_session(source)) as session:
        for read in READS.values():
            with pytest.raises(BinlaneError, match="expected a table, found a view"):
                read(session, "SELECT n FROM `app`.`t`")
            # the session goes on
            assert session.texts("SELECT 1") == [("1",)]
            assert channel.source.query(SEEN) == [(1,)]
    assert channel.source.query("SELECT n FROM victim.t") == []


@contextlib.contextmanager
def copying(channel_of: ChannelOf, family: str, table: str) -> Iterator[tuple[Any, Schema, Session, Session]]:
    """The channel, the source's definitions, and sessions of a copy: the source has a row, the target none yet."""
    channel = channel_of(family, family)
    source, target = channel.endpoints.source, channel.endpoints.target
    assert source is not None
    channel.on_both("CREATE DATABASE app", table, *EVIL)
    run_on(channel.source, "INSERT INTO app.t (n) VALUES (1)", log=False)
    with engine_of(source).connect() as connection:
        schema = read_schema(connection, ["app"])
    with contextlib.closing(read_session(source)) as reader, contextlib.closing(write_session(target)) as writer:
        yield channel, schema, reader, writer


@pytest.mark.parametrize("family", FAMILIES)
def test_the_rows_of_a_first_copy_are_counted_in_tables_alone(family: str, channel_of: ChannelOf) -> None:
    """A RENAME TABLE that has waited for the copy's transaction comes in front of the count."""
    with copying(channel_of, family, TABLE) as (channel, schema, reader, writer):

        class Swapping:
            """A diary, behind whose first COMMIT the view comes."""

            def written(self, *_: object) -> None: ...
            def committed(self, *_: object) -> None:
                run_on(channel.target, *RENAMED, log=False)

            def emptied(self, *_: object) -> None: ...
            def finished(self, *_: object) -> None: ...

        source = channel.endpoints.source
        with (
            contextlib.closing(read_session(source)) as second,
            contextlib.closing(read_session(source)) as third,
            contextlib.closing(write_session(channel.endpoints.target)) as counter,
        ):
            copier = Copier((reader, second), (writer,), (third, counter), 1000, Swapping())
            with pytest.raises(BinlaneError, match="expected a table, found a view"):
                copier.copy([RemainingTable(schema.tables[TableKey("app", "t")])])
        assert channel.target.query("SELECT n FROM victim.t") == []


@pytest.mark.parametrize("family", FAMILIES)
def test_computed_columns_of_a_first_copy_are_compared_in_tables_alone(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the last COMMIT of a table without a key."""
    without_key = "CREATE TABLE app.t (n INT, m INT AS (n + 1) STORED)"
    with copying(channel_of, family, without_key) as (channel, schema, reader, writer):

        def swapped(*arguments: Any) -> Any:
            run_on(channel.target, *RENAMED, log=False)
            return RowCopy(*arguments)

        monkeypatch.setattr("binlane.bootstrap.row_copy.RowCopy", swapped)
        with pytest.raises(BinlaneError, match="expected a table, found a view"):
            copy_chunk(reader, writer, Chunk(schema.tables[TableKey("app", "t")], None, None), 1 << 20)
        assert channel.target.query("SELECT n FROM victim.t") == []


@pytest.mark.parametrize("moment", ["before it is looked at", "before its rows"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_lost_table_is_filled_as_a_table_alone(
    family: str, moment: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = "CREATE TABLE app.c (n INT PRIMARY KEY, FOREIGN KEY (n) REFERENCES app.t (n))"
    with copying(channel_of, family, TABLE) as (channel, _, reader, _):
        run_on(channel.source, child, log=False)
        with engine_of(channel.endpoints.source).connect() as connection:
            schema = read_schema(connection, ["app"])

        def swap() -> None:
            run_on(channel.target, "RENAME TABLE app.t TO app.b", CHECKED, log=False)

        if moment == "before it is looked at":
            swap()
        else:

            def swapped(*arguments: Any) -> Any:
                swap()
                return in_transaction(*arguments)

            monkeypatch.setattr("binlane.orchestration.commands.copies.missing_tables.in_transaction", swapped)
        missing = [MissingTable(TableKey("app", "t"), TableKey("app", "t"))]
        with pytest.raises(BinlaneError, match="expected a table, found a view"):
            fill_empty(channel.endpoints, reader, missing, schema)
        assert channel.target.query("SELECT n FROM victim.t") == []


BODY: Final = "CREATE DEFINER=`a`@`%` FUNCTION `f`() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER"
HARMLESS: Final = "CREATE DEFINER=`a`@`%` FUNCTION `f`() RETURNS INT SQL SECURITY INVOKER RETURN 1;\n"
FOLDER: Final = {
    "shop-schema-create.sql": "CREATE DATABASE `shop`;\n",
    "shop.t-schema.sql": "CREATE TABLE `t` (`n` int);\n",
    "shop.t.sql": "SET TIME_ZONE='+00:00';\nINSERT INTO `t` VALUES (1);\n",
    "shop.v.00001.sql": "SET TIME_ZONE='+00:00';\n",
    # made harmless first: a view over what changes something is not made
    "shop.v-schema-view.sql": f"{HARMLESS}CREATE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW `v` AS SELECT n FROM t "
    f"WHERE f() = 1;\nDROP FUNCTION IF EXISTS `f`;\n{BODY} BEGIN INSERT INTO victim.t VALUES (1); RETURN 1; END;\n",
    "metadata": "[`shop`.`t`]\nrows = 1\n[`shop`.`v`]\nrows = 1\n# Finished dump at: 2026-01-01 00:00:00\n",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_view_of_a_dump_is_not_counted(family: str, channel_of: ChannelOf, tmp_path: Path) -> None:
    """The dump's own record of its rows names a view, whose function has the privileges of who counts."""
    channel = channel_of(family, family)
    run_on(channel.target, *EVIL[:3], log=False)
    for name, text in FOLDER.items():
        (tmp_path / name).write_text(text)
    dump = DumpFolder(tmp_path, frozenset({"shop"}))
    with contextlib.closing(write_session(channel.endpoints.target)) as session:
        [(version,)] = session.texts("SELECT VERSION()")
        load = DumpLoad(session, version_number(version), str(tmp_path), {"shop": "app"}, dump.place().definers)
        load.run(dump.statements(""))
        with pytest.raises(ConfigError, match=r"expected a table shop\.v, .* found a view"):
            restore._require_counts(session, dump, {"shop": "app"}, ())
    assert channel.target.query("SELECT n FROM victim.t") == []


@pytest.mark.parametrize("kind", SessionKind)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_session_reads_a_view_in_a_tables_place(family: str, kind: SessionKind, channel_of: ChannelOf) -> None:
    """Whatever a command asks: a name that is spelled as binlane spells those of users."""
    channel = channel_of(family, family)
    run_on(channel.target, "CREATE DATABASE app", "CREATE TABLE app.`a``b` (n INT)", *EVIL, SWAP[1], log=False)
    arguments = channel.endpoints.target.pymysql_arguments()
    with (
        contextlib.closing(Connection(**arguments, kind=kind, autocommit=True)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT COUNT(*) FROM `app`.`a``b` WHERE n <> 'FROM `app`.`t`'")
        with pytest.raises(TableMismatchError, match="found a view"):
            cursor.execute("SELECT COUNT(*) FROM `app`.`t` WHERE n > 0")
        with pytest.raises(TableMismatchError, match="found a view"), connection.cursor(SSCursor) as streamed:
            streamed.execute("SELECT n FROM `app`.`t`")
        assert channel.target.query(SEEN) == [(1,)]
    assert channel.target.query("SELECT n FROM victim.t") == []
