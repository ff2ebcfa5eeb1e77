"""One definition, created on the target."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import pytest

from binlane.bootstrap import broken_views
from binlane.bootstrap.broken_views import StandIns, ViewText
from binlane.bootstrap.definition_copy import Definition, make, make_behind_rows, read_programs, read_tables
from binlane.bootstrap.sessions import Session, definition_session, read_session, write_session
from binlane.errors import PrecheckError, SourceError, TargetError, TargetUnavailableError
from binlane.model import TableKey
from binlane.restore import final_names
from binlane.restore.final_names import move, read_final_programs
from binlane.sessions.pins import WRITE_MODE
from binlane.state.records.restores import RestorePrograms
from tests.integration.bootstrap.conftest import either
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers", "either"]


def of(statement: str) -> Definition:
    statement = statement.replace("CREATE ", "CREATE DEFINER=`a`@`%` ", 1)
    return Definition("VIEW", "app", "v", statement.encode(), "latin1", "latin1_swedish_ci")


VIEWS = (
    "CREATE DATABASE app",
    "CREATE DATABASE other",
    "CREATE DATABASE left_out",
    "CREATE TABLE app.t (id INT PRIMARY KEY, a INT, b VARCHAR(20))",
    "INSERT INTO app.t VALUES (1, 2, 'x')",
    "CREATE TABLE app.u (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE other.x (id INT PRIMARY KEY)",
    "CREATE TABLE left_out.z (id INT PRIMARY KEY)",
    "CREATE FUNCTION app.f(a INT, b INT) RETURNS INT DETERMINISTIC NO SQL RETURN a + b",
    "CREATE VIEW app.of_table AS SELECT x.id AS i, u.id FROM app.u AS x JOIN app.u ON x.id = u.id",
    "CREATE VIEW app.above AS SELECT * FROM app.of_table",
    "CREATE VIEW app.of_column (p, q) AS SELECT id, a FROM app.t WHERE b COLLATE utf8mb4_bin = 'x' WITH CHECK OPTION",
    "CREATE VIEW app.of_function AS SELECT app.f(a, app.f(a, 2)) AS q FROM app.t",
    "CREATE VIEW app.of_database AS SELECT * FROM other.x",
    "CREATE VIEW app.of_left_out AS SELECT * FROM left_out.z",
    "CREATE VIEW app.above_it AS SELECT * FROM app.of_left_out",
    "CREATE VIEW app.whole AS SELECT id FROM app.t",
    "CREATE PROCEDURE app.of_table() SELECT 1",
    "CREATE TRIGGER app.fires BEFORE INSERT ON app.t FOR EACH ROW SET NEW.a = 7",
    "DROP TABLE app.u",
    "ALTER TABLE app.t DROP COLUMN b",
    "DROP FUNCTION app.f",
    "DROP DATABASE other",
)
LATER = (
    "CREATE USER test_reader",
    "GRANT SELECT ON app.of_table TO test_reader",
    "RENAME TABLE app.of_column TO app.of_gone_column",
    "ALTER VIEW app.of_function AS SELECT 1 AS q",
    "CREATE OR REPLACE VIEW app.of_database AS SELECT 2 AS q",
    "DROP VIEW app.of_gone_column, app.of_left_out",
    "CREATE TABLE app.u (id INT PRIMARY KEY)",
    "INSERT INTO app.u VALUES (1), (2)",
)


def test_broken_views_are_copied_and_later_statements_find_them(either: Channel) -> None:
    """What is gone: a table, a column, a function, a database; one is left out; and views above such views."""
    run_on(either.source, *VIEWS)
    assert either.cli("doctor", CHANNEL) == 0
    assert either.cli("bootstrap", CHANNEL, "--databases", "app") == 0
    views = "SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = 'app' ORDER BY 1"
    assert either.target.query(views) == either.source.query(views)
    tables = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_name IN ('t', 'u', 'x', 'z')"
    assert either.target.query(tables) == [("app", "t")]
    assert either.target.query("SELECT * FROM app.t") == [(1, 2)]
    made = "SELECT routine_name FROM information_schema.routines WHERE routine_schema = 'app'"
    assert either.target.query(made) == [("of_table",)]
    run_on(either.source, *LATER)
    either.run()
    assert either.target.query(views) == either.source.query(views)
    assert either.target.query("SELECT * FROM app.above") == [(1, 1), (2, 2)]


def test_stand_ins_of_a_killed_copy_are_dropped(either: Channel) -> None:
    run_on(either.source, *VIEWS)
    run_on(either.target, "CREATE DATABASE app")
    session = write_session(either.endpoints.target)
    stand_ins = StandIns(session, "another", ("id",), ("app",))
    definition = of("CREATE VIEW `app`.`v` AS select `app`.`u`.`id` AS `id`,`f`(1) AS `q` from `app`.`u`")
    stand_ins.make(ViewText.of(definition, session.flavor), ())
    session.close()
    assert either.target.query("SHOW TABLES FROM app") == [("u",)]
    assert either.cli("bootstrap", CHANNEL, "--databases", "app") == 0
    assert either.target.query("SHOW FULL TABLES FROM app WHERE table_type <> 'VIEW'") == [("t", "BASE TABLE")]


@pytest.mark.parametrize("moment", ["before", "meanwhile"])
def test_what_takes_the_place_of_a_stand_in_is_not_dropped(
    either: Channel, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_on(either.target, "CREATE DATABASE app")
    session = write_session(either.endpoints.target)
    stand_ins = StandIns(session, "another", ("id",), ("app",))
    definition = of("CREATE VIEW `app`.`v` AS select `app`.`u`.`id` AS `id`,`f`(1) AS `q` from `app`.`u`,`app`.`w`")
    stand_ins.make(ViewText.of(definition, session.flavor), ())

    def swap() -> None:
        run_on(
            either.target, "CREATE TABLE app.n (n INT) COMMENT 'mine'", "RENAME TABLE app.u TO app.o, app.n TO app.u"
        )

    def locked(*arguments: Any) -> bool:
        if moment == "meanwhile" and "`u`" in arguments[1]:
            swap()
        return lock(*arguments)

    lock = broken_views._lock
    monkeypatch.setattr(broken_views, "_lock", locked)
    if moment == "before":
        swap()
        run_on(either.target, "DROP FUNCTION app.f", "CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC RETURN 2")
    stand_ins.drop()
    session.close()
    assert either.target.query("SHOW TABLES FROM app") == [("o",), ("u",)]
    assert either.target.query("SELECT * FROM app.u") == []
    routines = "SELECT routine_name FROM information_schema.routines WHERE routine_schema = 'app'"
    assert either.target.query(routines) == ([("f",)] if moment == "before" else [])


def test_a_view_that_needs_a_database_which_the_target_lacks_is_named(either: Channel) -> None:
    either.target.query("CREATE DATABASE app")
    session = write_session(either.endpoints.target)
    [note] = make_behind_rows(session, [of("CREATE VIEW app.v AS SELECT id FROM nowhere.t")])
    assert note.startswith("view app.v: was not created, because an object that it needs was not copied: ")
    session.close()


def test_a_connection_that_is_lost_with_a_definition_is_named_as_lost(either: Channel) -> None:
    either.target.query("CREATE DATABASE app")
    session = write_session(either.endpoints.target)
    number = session.texts("SELECT CONNECTION_ID()")[0][0]
    either.target.query(f"KILL CONNECTION {number}")
    with pytest.raises(TargetUnavailableError, match=r"procedure app\.p: the server says: "):
        make(
            session,
            Definition(
                "PROCEDURE", "app", "p", b"CREATE DEFINER=`a`@`%` PROCEDURE p() SELECT 1", "latin1", "latin1_bin"
            ),
        )
    session.close()


def test_a_definition_that_is_refused_leaves_the_session_as_it_was(either: Channel) -> None:
    either.target.query("CREATE DATABASE app")
    session = write_session(either.endpoints.target)
    with pytest.raises(TargetError, match=r"view app\.v: the server says: .*app\.no_table"):
        make(session, of("CREATE VIEW app.v AS SELECT * FROM app.no_table"))
    [(client, mode)] = session.texts("SELECT @@character_set_client, @@sql_mode")
    assert client == "utf8mb4"
    assert {*WRITE_MODE.split(",")} <= {*mode.split(",")}
    session.close()


OBJECTS = {
    "table": "CREATE TABLE app.t (id INT PRIMARY KEY)",
    "view": "CREATE VIEW app.v AS SELECT 1 AS x",
    "view above": "CREATE VIEW app.w AS SELECT x FROM app.v",
    "function": "CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC NO SQL RETURN 1",
    "procedure": "CREATE PROCEDURE app.p() SELECT 1",
    "trigger": "CREATE TRIGGER app.r BEFORE INSERT ON app.t FOR EACH ROW SET NEW.id = 7",
    "event": "CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
}
"""What a database may have."""
DROPS = (
    "DROP DATABASE app",
    "DROP TABLE app.t",
    "DROP VIEW app.v",
    "DROP FUNCTION app.f",
    "DROP PROCEDURE app.p",
    "DROP TRIGGER app.r",
    "DROP EVENT app.e",
)


class DroppingSession(Session):
    """A DROP of another session runs once a definition of its kind is asked for, behind the names."""

    drop: tuple[Channel, str] | None = None

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        kind = "" if self.drop is None else self.drop[1].split()[1].replace("DATABASE", "")
        if self.drop is not None and statement.startswith(f"SHOW CREATE {kind}"):
            (channel, drop), self.drop = self.drop, None
            run_on(channel.source, drop)
        return super().rows(statement)


def read(channel: Channel, drop: str, *, may_go: bool) -> set[str]:
    """The kinds and names of what is read while ``drop`` runs."""
    found = read_session(channel.endpoints.source)  # type: ignore[arg-type]
    names, tables = ("app",), {TableKey("app", "t")}
    programs = DroppingSession(found.connection, found.flavor, found.source)
    programs.drop = (channel, drop)
    with contextlib.closing(found):
        if drop == "DROP TABLE app.t":
            made = read_tables(programs, names, tables, may_go=may_go)
        else:
            made = read_programs(programs, names, tables, may_go=may_go)
        return {f"{each.kind} {each.name}" for each in made}


@pytest.mark.parametrize("drop", DROPS)
def test_what_is_dropped_while_definitions_are_read_is_left_out_where_it_may_go(either: Channel, drop: str) -> None:
    run_on(either.source, "CREATE DATABASE app", *OBJECTS.values())
    everything = {"TABLE t"} if drop == "DROP TABLE app.t" else read(either, "DO 1", may_go=False)
    left = read(either, drop, may_go=True)
    assert left < everything
    if drop != "DROP DATABASE app":
        assert len(left) == len(everything) - 1
    run_on(either.source, "DROP DATABASE IF EXISTS app", "CREATE DATABASE app", *OBJECTS.values())
    with pytest.raises(SourceError):
        read(either, drop, may_go=False)


def test_programs_keep_the_default_of_their_database_by_which_they_are_read(either: Channel) -> None:
    run_on(
        either.source,
        "CREATE DATABASE app CHARACTER SET latin1",
        "CREATE TABLE app.t (a VARCHAR(20) PRIMARY KEY) CHARACTER SET utf8mb4",
        "CREATE FUNCTION app.f(a VARCHAR(20)) RETURNS VARCHAR(20) DETERMINISTIC RETURN CHARSET(a)",
        "CREATE TRIGGER app.fires BEFORE INSERT ON app.t FOR EACH ROW SET NEW.a = 7",
        "CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        "ALTER DATABASE app CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "CREATE PROCEDURE app.p(a VARCHAR(20)) SELECT a",
    )
    run_on(either.target, "CREATE DATABASE app CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", log=False)
    run_on(either.target, "CREATE TABLE app.t (a VARCHAR(20) PRIMARY KEY) CHARACTER SET utf8mb4", log=False)
    assert either.endpoints.source is not None
    source, target = read_session(either.endpoints.source), write_session(either.endpoints.target)
    assert make_behind_rows(target, read_programs(source, ["app"], [TableKey("app", "t")])) == []
    for kind in ("routine", "trigger", "event"):
        place = f"information_schema.{kind}s WHERE {kind}_schema = 'app'"
        query = f"SELECT {kind}_name, database_collation FROM {place} ORDER BY 1"
        assert either.target.query(query) == either.source.query(query)
    assert either.target.query("SELECT app.f('a')") == [("latin1",)]
    default = "SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = 'app'"
    assert either.target.query(default) == [("utf8mb4_bin",)]


def test_programs_keep_a_default_that_newer_servers_show_under_a_short_name(channel_of: ChannelOf) -> None:
    """MariaDB's SHOW COLLATION has uca1400_ai_ci for utf8mb4_uca1400_ai_ci."""
    found = channel_of("11.8", "11.8")
    run_on(
        found.source,
        "CREATE DATABASE app CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_ai_ci",
        "CREATE FUNCTION app.f(a VARCHAR(20)) RETURNS VARCHAR(40) DETERMINISTIC RETURN COLLATION(a)",
        "ALTER DATABASE app COLLATE utf8mb4_general_ci",
    )
    run_on(found.target, "CREATE DATABASE app CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", log=False)
    assert found.endpoints.source is not None
    source, target = read_session(found.endpoints.source), write_session(found.endpoints.target)
    assert make_behind_rows(target, read_programs(source, ["app"], [])) == []
    query = "SELECT database_collation FROM information_schema.routines WHERE routine_schema = 'app'"
    assert found.target.query(query) == found.source.query(query) == [("utf8mb4_uca1400_ai_ci",)]
    assert found.target.query("SELECT app.f('a')") == [("utf8mb4_uca1400_ai_ci",)]


def test_the_default_that_a_killed_move_has_left_is_corrected_by_the_next_one(either: Channel) -> None:
    run_on(
        either.target,
        "CREATE DATABASE hidden CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "CREATE TABLE hidden.t (id INT PRIMARY KEY)",
        # killed between the program and what gives the default back
        "CREATE DATABASE app CHARACTER SET latin1",
        log=False,
    )
    session = write_session(either.endpoints.target)
    reader = partial(definition_session, either.endpoints.target)
    assert move(session, reader, {"hidden": "app"}, (), RestorePrograms((), (), ()), "again") == []
    default = "SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = 'app'"
    assert either.target.query(default) == [("utf8mb4_bin",)]
    assert either.target.query("SHOW TABLES FROM app") == [("t",)]


def test_what_somebody_has_made_under_the_final_name_of_a_database_without_tables_stays(either: Channel) -> None:
    """No table tells there whether an attempt that was killed has come further: its programs do."""
    run_on(
        either.target,
        "CREATE DATABASE hidden",
        "CREATE VIEW hidden.v AS SELECT 1 AS a",
        "CREATE PROCEDURE hidden.p() SELECT 'restored', ';'",
        "CREATE FUNCTION hidden.f(x INT) RETURNS INT DETERMINISTIC RETURN x + 1",
        "CREATE EVENT hidden.e ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
        "CREATE DATABASE app",
        log=False,
    )
    session, reader = write_session(either.endpoints.target), partial(definition_session, either.endpoints.target)
    programs = RestorePrograms(read_final_programs(reader, {"hidden": "app"}, only_triggers=False), (), ())
    assert len(programs.texts) == 4
    theirs = {
        "CREATE PROCEDURE app.p() SELECT 'theirs'": "procedure app.p",
        "CREATE FUNCTION app.p(x INT) RETURNS INT DETERMINISTIC RETURN x": "function app.p",
        "CREATE VIEW app.p AS SELECT 3 AS a": "view app.p",
    }
    for made, said in theirs.items():
        run_on(either.target, made, log=False)
        with pytest.raises(PrecheckError, match=f"found {said}: somebody has made it"):
            move(session, reader, {"hidden": "app"}, (), programs, "again")
        run_on(either.target, f"DROP {said}", log=False)
    with pytest.MonkeyPatch.context() as patch:
        # killed behind the programs: they are this restore's
        patch.setattr(final_names, "give_options", None)
        with pytest.raises(TypeError):
            move(session, reader, {"hidden": "app"}, (), programs, "again")
    assert either.target.query("SELECT app.f(1)") == [(2,)]
    assert move(session, reader, {"hidden": "app"}, (), programs, "again") == []
    assert either.target.query("SELECT app.f(1)") == [(2,)]
    assert either.target.query("SHOW DATABASES LIKE 'hidden'") == []
