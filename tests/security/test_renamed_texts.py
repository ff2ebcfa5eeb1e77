"""Under ``[rename]`` no text that a server stores reaches another database than the source's.

Attackers: whoever may write a trigger, a routine or a view of one database of the source, which came to the target
under another name and with its text unchanged (a dump that was loaded there), and whoever owns the database there. The
target has a database of the source's name that is not the channel's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from binlane.errors import BinlaneError
from binlane.orchestration.commands.verify import verify
from binlane.verify.outcome import Options
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

FAMILIES: Final = ("mariadb", pytest.param("mysql", marks=requires_mysql))
RENAMES: Final = '[rename]\napp = "copy"\n'
_FUNCTION: Final = (
    "CREATE FUNCTION {own}.f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA {{}} BEGIN {body}; RETURN 1; END"
)
_WRITES: Final = "INSERT INTO {named}.log VALUES (7)"
PROGRAMS: Final[Mapping[str, tuple[str, str]]] = {
    "a trigger": (
        "CREATE TRIGGER {own}.x BEFORE INSERT ON {own}.t FOR EACH ROW INSERT INTO {named}.log VALUES (NEW.n)",
        "INSERT INTO app.t VALUES (1)",
    ),
    "a name in backticks": (
        "CREATE TRIGGER {own}.x BEFORE INSERT ON {own}.t FOR EACH ROW INSERT INTO `{named}` . log VALUES (NEW.n)",
        "INSERT INTO app.t VALUES (1)",
    ),
    "a function": (
        "CREATE FUNCTION {own}.f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA "
        "BEGIN INSERT INTO {named}.log VALUES (7); RETURN 1; END",
        "INSERT INTO app.t VALUES (app.f())",
    ),
    "a function with its invoker's privileges": (
        "CREATE FUNCTION {own}.f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER "
        "BEGIN INSERT INTO {named}.log VALUES (7); RETURN 1; END",
        "INSERT INTO app.t VALUES (app.f())",
    ),
    "a view": ("CREATE VIEW {own}.v AS SELECT n FROM {named}.log", "INSERT INTO app.v VALUES (1)"),
}
"""What is made in a database that has the name ``own``, about one that has the name ``named``, and a statement that
reaches it. A line more is an attack more."""


def _prepared(channel_of: ChannelOf, family: str, settings: str = "") -> Channel:
    channel = channel_of(family, family)
    channel.write_channel(settings + RENAMES)
    for server, databases in ((channel.source, ("app",)), (channel.target, ("app", "copy"))):
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
        for name in databases:
            tables = (f"CREATE TABLE {name}.t (n INT PRIMARY KEY)", f"CREATE TABLE {name}.log (n INT PRIMARY KEY)")
            run_on(server, f"CREATE DATABASE {name}", *tables, log=False)
    return channel


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_names_another_database_on_the_target_is_refused(
    family: str, program: str, channel_of: ChannelOf
) -> None:
    channel = _prepared(channel_of, family)
    made, statement = PROGRAMS[program]
    run_on(channel.source, made.format(own="app", named="app"), log=False)
    run_on(channel.target, made.format(own="copy", named="app"), log=False)
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", statement)

    with pytest.raises(BinlaneError, match=r"expected the source's, .*found another (?:body|query)"):
        channel.run()

    _assert_unwritten(channel)


def _assert_unwritten(channel: Channel) -> None:
    assert [channel.target.query(f"SELECT n FROM {table}") for table in ("app.log", "copy.log", "copy.t")] == [[]] * 3


@pytest.mark.parametrize("family", FAMILIES)
def test_a_program_with_the_target_s_names_runs(family: str, channel_of: ChannelOf) -> None:
    channel = _prepared(channel_of, family)
    made, statement = PROGRAMS["a function"]
    run_on(channel.source, made.format(own="app", named="app"), log=False)
    run_on(channel.target, made.format(own="copy", named="copy"), log=False)
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", statement)
    assert channel.run() is not None
    assert channel.target.query("SELECT n FROM copy.log") == [(7,)]


@requires_mysql
@pytest.mark.parametrize("program", ["a function", "a function with its invoker's privileges", "a view"])
def test_a_database_that_is_not_the_channel_s_is_left_out_by_its_filter(program: str, channel_of: ChannelOf) -> None:
    """Also where the channel allows what is unsafe. (MariaDB's filter refuses each call and each view.)"""
    channel = _prepared(channel_of, "mysql", 'allow_unsafe = true\n[filter]\ninclude_databases = ["app"]\n')
    made, statement = PROGRAMS[program]
    run_on(channel.source, made.format(own="app", named="app"), log=False)
    run_on(channel.target, made.format(own="copy", named="app"), log=False)
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", statement)

    with pytest.raises(BinlaneError, match=r"found a table of app; .*\[account-programs\]"):
        channel.run()

    _assert_unwritten(channel)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("body", ["INSERT INTO copy.log VALUES (NEW.n)", "INSERT INTO `copy`.`log` VALUES (NEW.n)"])
def test_a_logged_program_names_no_other_database_s_new_name(family: str, body: str, channel_of: ChannelOf) -> None:
    """Attacker: who may write a trigger of one database of the source, where ``copy`` is his own or is not there."""
    channel = _prepared(channel_of, family)
    run_on(channel.source, "CREATE DATABASE own", "CREATE TABLE own.t (n INT)")
    run_on(channel.source, f"CREATE TRIGGER own.x BEFORE INSERT ON own.t FOR EACH ROW {body}")

    with pytest.raises(BinlaneError, match="names copy, a name that the channel gives to another database"):
        channel.run()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_verification_tells_a_definition_that_means_another_database(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = _prepared(channel_of, family)
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)
    child = "CREATE TABLE {own}.child (n INT PRIMARY KEY, FOREIGN KEY (n) REFERENCES {named}.t (n))"
    for text in (PROGRAMS["a trigger"][0], PROGRAMS["a view"][0], child):
        run_on(channel.source, text.format(own="app", named="app"), log=False)
        run_on(channel.target, text.format(own="copy", named="app"), log=False)

    outcome = verify(CHANNEL, channel.channels, Options(full=True))

    assert {one.table.table for one in outcome.suspects} == {"child", "v", "x"}
