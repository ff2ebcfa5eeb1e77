"""Drift of definitions: named as statements, of which a repair runs the harmless ones; all of them mend the target."""

from __future__ import annotations

import os
import signal
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import TargetError
from binlane.orchestration.commands import repair
from binlane.orchestration.commands.verify import verify_channel
from binlane.verify.definitions.comparison import DefinitionDifference
from binlane.verify.outcome import Options, Outcome
from tests.conftest import requires_mysql
from tests.forked import process
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]

BOTH: Final = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
DATABASE: Final = "`te;n``t 'a`"
MADE: Final = (
    f"CREATE DATABASE {DATABASE} CHARACTER SET latin1",
    "CREATE DATABASE tenant_2 CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    f"USE {DATABASE}",
    "CREATE TABLE `p;``a` (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 5, s VARCHAR(9) DEFAULT 'it''s; `x`', "
    "later TIMESTAMP NULL DEFAULT NULL, text VARCHAR(9), KEY `by;``n` (n), UNIQUE KEY u (s), "
    "CONSTRAINT less CHECK (n < 99)) "
    "COMMENT 'te;n`t ''a.x' DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE TABLE c (id INT PRIMARY KEY, p INT, KEY (p), "
    "CONSTRAINT `f;``k` FOREIGN KEY (p) REFERENCES `p;``a` (id) ON DELETE CASCADE)",
    "CREATE TABLE parts (id INT PRIMARY KEY) PARTITION BY RANGE (id) "
    "(PARTITION `a` VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)",
    "CREATE TABLE gone (id INT PRIMARY KEY, s VARCHAR(9) DEFAULT 'é') COMMENT 'é'",
    "CREATE VIEW `v;``w` AS SELECT id, n, 'é;' AS e FROM `p;``a` WHERE n > 1 WITH CHECK OPTION",
    "CREATE VIEW a_view AS SELECT id FROM `v;``w`",
    "SET SESSION sql_mode = 'ANSI_QUOTES,STRICT_TRANS_TABLES'",
    """CREATE TRIGGER `t;1` BEFORE INSERT ON `p;``a` FOR EACH ROW SET NEW.s = 'é"; DROP'""",
    "SET SESSION sql_mode = 'STRICT_TRANS_TABLES'",
    "CREATE TRIGGER t2 BEFORE INSERT ON `p;``a` FOR EACH ROW SET NEW.n = NEW.n",
    "CREATE TRIGGER t3 BEFORE INSERT ON `p;``a` FOR EACH ROW SET NEW.n = NEW.n + 0",
    "CREATE DEFINER = 'nobody; x'@'%' FUNCTION `f;``x`(a VARCHAR(9), b INT) RETURNS INT DETERMINISTIC "
    "COMMENT 'é;' RETURN b + 1",
    "CREATE PROCEDURE pr(INOUT x INT) SQL SECURITY INVOKER BEGIN SET x = x + 1; SET x = x; END",
    "SET SESSION time_zone = '+03:00'",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2037-01-02 03:04:05' DO SET @a = 'é'",
    "CREATE EVENT `en;able` ON SCHEDULE AT '2037-01-02 03:04:05' ON COMPLETION PRESERVE DO SET @a = 1",
)
OF_MARIADB: Final = (
    "CREATE SEQUENCE `s;``q` INCREMENT BY 3 CACHE 7",
    "CREATE SEQUENCE lost START WITH 100",
)
WRONG: Final = (
    f"USE {DATABASE}",
    f"ALTER DATABASE {DATABASE} CHARACTER SET utf8mb4",
    "DROP DATABASE tenant_2",
    "ALTER TABLE `p;``a` DROP KEY `by;``n`, ADD KEY `by;``n` (n, id), ALTER n SET DEFAULT 6, "
    "ALTER s SET DEFAULT NULL, COMMENT 'mine', DEFAULT CHARACTER SET latin1",
    "DROP TABLE gone",
    "CREATE OR REPLACE VIEW `v;``w` AS SELECT id, n, 'x' AS e FROM `p;``a`",
    "DROP VIEW a_view",
    "DROP TRIGGER `t;1`",
    "DROP FUNCTION `f;``x`",
    "DROP PROCEDURE pr",
    "CREATE PROCEDURE pr(INOUT x BIGINT) SET x = x + 2",
    "DROP EVENT e",
    "CREATE EVENT e ON SCHEDULE EVERY 2 DAY DO SET @a = 'x'",
    "DROP EVENT `en;able`",
)
WRONG_OF_MARIADB: Final = ("ALTER SEQUENCE `s;``q` INCREMENT BY 5", "DROP SEQUENCE lost")
LEFT: Final = (
    f"USE {DATABASE}",
    "ALTER TABLE `p;``a` DROP KEY u, ADD KEY mine (id, n), MODIFY later DATETIME DEFAULT NULL",
    "ALTER TABLE `p;``a` DROP CONSTRAINT less, ADD CONSTRAINT less CHECK (n < 88)",
    "ALTER TABLE c DROP FOREIGN KEY `f;``k`",
    "ALTER TABLE c ADD CONSTRAINT `f;``k` FOREIGN KEY (p) REFERENCES `p;``a` (id)",
    "ALTER TABLE parts PARTITION BY HASH (id) PARTITIONS 2",
    "CREATE VIEW mine AS SELECT 1 AS a",
    "CREATE PROCEDURE `mi;ne`() SET @a = 1",
)


def prepared(channel: Channel, *wrong: str) -> Channel:
    mariadb = channel.source.flavor == "mariadb"
    run_on(channel.source, *MADE, *(OF_MARIADB if mariadb else ()))
    assert channel.run() is not None
    assert full(channel).state == "clean"
    run_on(channel.target, *wrong, *(WRONG_OF_MARIADB if mariadb and wrong == WRONG else ()), log=False)
    return channel


def full(channel: Channel) -> Outcome:
    return verify_channel(channel.config, channel.endpoints, Options(full=True))


def named(differences: tuple[DefinitionDifference, ...]) -> set[str]:
    return {str(one.schema_object).replace("te;n`t 'a.", "") for one in differences}


@BOTH
def test_a_repair_runs_harmless_statements_and_everything_is_equal_again(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = prepared(channel_of(family, family), *WRONG)
    found = full(channel).differences
    expected = {
        *("database te;n`t 'a", "database tenant_2", "table p;`a", "table gone", "view v;`w", "view a_view"),
        *("trigger t;1", "trigger t2", "trigger t3", "function f;`x", "procedure pr", "event e", "event en;able"),
        *(("sequence s;`q", "sequence lost") if family == "mariadb" else ()),
    }
    assert named(found) == expected
    assert all(one.mend.is_run for one in found)
    # only its table's default collation has changed
    assert "column `text`" not in {one.what for one in found}
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1  # the new table was not compared
    said = capsys.readouterr().out
    assert "trigger te;n`t 'a.t;1: USE `te;n``t 'a`; SET SESSION sql_mode = " in said
    planned = {(one.schema_object, one.mend.statements) for one in found}
    # of three triggers in a row, the first one's statements have created the others anew
    assert f"{len(planned) - 2} definitions corrected; 2 were already right" in said
    # health has no drift left but the new table's rows, before the next verification; sequences have their values
    assert channel.target.query("SELECT DISTINCT table_name FROM binlane.suspects") == [("gone",)]
    assert said.rpartition("still drifted:\n")[2].count("\n") == 1
    outcome = full(channel)
    assert (outcome.state, outcome.suspects) == ("clean", ())
    state = channel.target.query("SELECT state, definitions, changed_rows FROM binlane.repairs")
    assert state == [("done", len(planned) - 2, 0)]


@BOTH
@pytest.mark.parametrize("by_hand", [False, True])
def test_programs_keep_the_default_that_their_database_had_when_they_were_made(
    family: str, channel_of: ChannelOf, *, by_hand: bool
) -> None:
    channel = channel_of(family, family)
    programs = (
        "CREATE FUNCTION app.f(a VARCHAR(20)) RETURNS VARCHAR(20) DETERMINISTIC RETURN CHARSET(a)",
        "CREATE TRIGGER app.fires BEFORE INSERT ON app.t FOR EACH ROW SET NEW.a = 7",
        "CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
    )
    made = "CREATE DATABASE app CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    table = "CREATE TABLE app.t (a VARCHAR(20) PRIMARY KEY)"
    # MySQL gives a parameter the default of the session's database
    run_on(channel.source, made, "USE app", table, log=False)
    run_on(channel.target, made, "USE app", table, *programs, log=False)
    then, now = (f"ALTER DATABASE app COLLATE {name}" for name in ("latin1_bin", "utf8mb4_bin"))
    run_on(channel.source, "USE app", then, *programs, now, log=False)
    found = full(channel).differences
    assert {one.what for one in found} >= {"collation of the database"}
    if by_hand:
        for statements in dict.fromkeys(one.mend.statements for one in found):
            run_on(channel.target, *statements, log=False)
    else:
        assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    assert full(channel).differences == ()
    assert channel.target.query("SELECT app.f('a')") == [("latin1",)]
    default = "SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = 'app'"
    assert channel.target.query(default) == [("utf8mb4_bin",)]


@BOTH
def test_the_statements_of_a_repair_can_be_run_by_hand(family: str, channel_of: ChannelOf) -> None:
    channel = prepared(channel_of(family, family), *WRONG)
    for one in full(channel).differences:
        run_on(channel.target, *one.mend.statements, log=False)
    outcome = full(channel)
    assert [one.note for one in outcome.suspects] == []


@BOTH
def test_what_a_repair_leaves_is_mended_by_the_statements_that_it_names(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = prepared(channel_of(family, family), *LEFT)
    found = full(channel).differences
    assert {(str(one.schema_object), one.what) for one in found if one.mend.is_run} == set()
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1
    said = capsys.readouterr().out
    assert "DROP INDEX `mine`; not run, because only the target has it" in said
    assert "nothing to repair" in said
    assert full(channel).differences == found
    for one in found:
        assert one.mend.statements, str(one)
        run_on(channel.target, *one.mend.statements, log=False)
    outcome = full(channel)
    assert (outcome.state, outcome.suspects) == ("clean", ())


@pytest.mark.parametrize("drifted", ["SELECT NEXTVAL(seq)", "ALTER SEQUENCE seq RESTART 3"])
def test_a_sequence_with_another_next_value_is_set_by_the_statement_that_is_named(
    channel_of: ChannelOf, capsys: pytest.CaptureFixture[str], drifted: str
) -> None:
    channel = channel_of("mariadb", "mariadb")
    made = "CREATE SEQUENCE seq START WITH 5 INCREMENT BY 2 NOCACHE"
    run_on(channel.source, "CREATE DATABASE tenant_1", "USE tenant_1", made)
    assert channel.run() is not None
    run_on(channel.target, "USE tenant_1", "ALTER SEQUENCE seq INCREMENT BY 9 MINVALUE 1", drifted, log=False)
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1
    [left] = capsys.readouterr().out.rpartition("still drifted:\n")[2].splitlines()
    _, named, statement = left.partition("whose next value is 5 on the source: ")
    assert named, left
    assert channel.target.query("SELECT COUNT(*) > 0 FROM binlane.suspects") == [(1,)]
    run_on(channel.target, statement, log=False)
    assert full(channel).state == "clean"


KILLED: Final = (
    # module, function, which call, behind it; on MySQL some are between a DROP and its CREATE
    ("repair.definitions", "make", 1, True),
    ("repair.definitions", "replacing", 2, True),
    ("repair.execution", "save_repair", 3, True),
    *(("repair.definitions", "make", 2, True),) * 3,
)


@BOTH
def test_a_repair_that_was_killed_is_continued_with_the_same_plan(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = prepared(channel_of(family, family), *WRONG)
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)
    stored = repair.make_plan(CHANNEL, channel.channels, Options(full=True))[1]
    for at in KILLED:
        with process(killed, channel.channels, channel.environment, stored.place, *at) as running:
            running.join()
            assert running.exitcode == -signal.SIGKILL
    run_on(channel.source, "CREATE OR REPLACE VIEW tenant_2.v AS SELECT 1 AS a")
    repaired = repair.apply_plan(CHANNEL, channel.channels, repair.read_stored(CHANNEL, stored.place))
    assert repaired.definitions > 0
    assert repaired.equal_rows > 5
    assert channel.run() is not None
    assert full(channel).state == "clean"


@pytest.mark.parametrize(
    ("family", "call"),
    [("mariadb", 1), ("mariadb", 2), *(pytest.param("mysql", call, marks=requires_mysql) for call in (1, 2, 3, 5))],
)
@pytest.mark.trial
def test_a_repair_that_was_killed_between_the_triggers_of_a_group_finishes_the_group(
    family: str, call: int, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "CREATE TRIGGER `t;1` BEFORE INSERT ON `p;``a` FOR EACH ROW PRECEDES t2 SET NEW.s = 'x'"
    channel = prepared(channel_of(family, family), f"USE {DATABASE}", "DROP TRIGGER `t;1`", other)
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)
    stored = repair.make_plan(CHANNEL, channel.channels, Options(full=True))[1]
    assert [len(one.group) for one in stored.plan.definitions] == [3]
    at = ("repair.definitions", "make", call, True)
    with process(killed, channel.channels, channel.environment, stored.place, *at) as running:
        running.join()
        assert running.exitcode == -signal.SIGKILL
    assert full(channel).state == "drift"
    repaired = repair.apply_plan(CHANNEL, channel.channels, repair.read_stored(CHANNEL, stored.place))
    assert (repaired.definitions, repaired.equal_rows, repaired.changed_rows) == (1, 0, 0)
    assert full(channel).state == "clean"


def killed(
    folder: Path, environment: dict[str, str], place: str, module: str, name: str, call: int, behind: bool
) -> None:
    """A repair that kills itself at, or behind, a call of one of its functions."""
    os.environ.update(environment)
    calls: list[object] = []
    real = getattr(import_module(f"binlane.{module}"), name)

    def once(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        if len(calls) == call and not behind:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **options)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"binlane.{module}.{name}", once)
        repair.apply_plan(CHANNEL, folder, repair.read_stored(CHANNEL, place))


def test_a_definition_that_has_changed_since_is_left_alone(
    channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = prepared(channel_of("mariadb", "mariadb"), f"DROP VIEW {DATABASE}.a_view", f"DROP TRIGGER {DATABASE}.t3")
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)
    stored = repair.make_plan(CHANNEL, channel.channels, Options(full=True))[1]
    assert [one.kind for one in stored.plan.definitions] == ["view", "trigger"]
    run_on(channel.source, f"CREATE OR REPLACE VIEW {DATABASE}.a_view AS SELECT 7 AS seven")
    repaired = repair.apply_plan(CHANNEL, channel.channels, stored)
    assert (repaired.definitions, repaired.changed_rows) == (1, 1)
    assert channel.target.query("SELECT table_name FROM information_schema.views WHERE table_name = 'a_view'") == []


def test_a_statement_that_the_target_refuses_does_not_keep_others_from_running(
    channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = f"CREATE TABLE {DATABASE}.a_view (id INT)"
    channel = prepared(
        channel_of("mariadb", "mariadb"), f"DROP VIEW {DATABASE}.a_view", in_the_way, f"DROP TRIGGER {DATABASE}.t3"
    )
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)
    stored = repair.make_plan(CHANNEL, channel.channels, Options(full=True))[1]
    assert [one.kind for one in stored.plan.definitions] == ["view", "trigger"]
    with pytest.raises(TargetError, match=r"view te;n`t 'a\.a_view: .*is not of type 'VIEW'"):
        repair.apply_plan(CHANNEL, channel.channels, stored)
    assert channel.target.query("SELECT state, definitions FROM binlane.repairs") == [("running", 1)]
    assert [str(one.schema_object) for one in full(channel).differences] == ["view te;n`t 'a.a_view"]
