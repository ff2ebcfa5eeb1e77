"""A view in the place of a table of the schema ``binlane`` runs nothing, and a trigger there is refused by its name.

Attacker: who may DROP and CREATE there (``GRANT ALL ON binlane.*``). A function with its invoker's privileges, in a
view that has taken a table's place, would run as binlane's account, whose privileges reach every database.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from binlane.apply.target_state import target_state
from binlane.connections import environment_resolver
from binlane.health.look import look_at
from binlane.state.tables import metadata
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

FAMILIES: Final = ("mariadb", pytest.param("mysql", marks=requires_mysql))
MADE: Final = (
    "SET GLOBAL log_bin_trust_function_creators = ON",
    "CREATE DATABASE victim",
    # a ROLLBACK does not take its rows back, as little as those of MariaDB's mysql.global_priv
    "CREATE TABLE victim.t (n INT) ENGINE = MyISAM",
    "CREATE FUNCTION victim.f() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER "
    "BEGIN INSERT INTO victim.t VALUES (1); RETURN 1; END",
)
COMMANDS: Final = (
    ("status", CHANNEL, "--json"),
    ("status", "--all", "--json"),
    ("check", CHANNEL),
    ("run", CHANNEL),
    ("plan", CHANNEL),
    ("verify", CHANNEL),
    ("doctor", CHANNEL),
    ("find", "*"),
    ("audit", CHANNEL),
    ("conflicts", CHANNEL),
    ("skip", CHANNEL, "--list"),
    ("drill", CHANNEL, "--list"),
    ("stop", CHANNEL),
    ("resume", CHANNEL),
    ("init", CHANNEL),
    ("bootstrap", CHANNEL, "--databases", "app"),
    ("adopt-target", CHANNEL, "--yes"),
)
"""Each opens the target. A command more is an attack more."""
TABLES: Final = ("channels", "migrations", "positions", "restores", "bootstraps")
"""Those that are read by themselves, before or beside the check of the whole schema."""


def in_place_of(table: str) -> tuple[str, ...]:
    columns = ", ".join(f"`{column.name}`" for column in metadata.tables[f"binlane.{table}"].c)
    return (
        f"RENAME TABLE binlane.{table} TO binlane.kept",
        f"CREATE SQL SECURITY INVOKER VIEW binlane.{table} AS SELECT {columns} FROM binlane.kept "
        "WHERE victim.f() = 1 WITH CASCADED CHECK OPTION",
    )


def put_back(table: str) -> tuple[str, ...]:
    return (f"DROP VIEW binlane.{table}", f"RENAME TABLE binlane.kept TO binlane.{table}")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_view_in_the_place_of_a_table_runs_nothing(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel, reached = attacked(channel_of, family), list[object]()
    for table in TABLES:
        run_on(channel.target, *in_place_of(table), log=False)
        for command in COMMANDS:
            code = channel.cli(*command)
            said = "".join(capsys.readouterr())
            if runs_of(channel.target) or f"binlane.{table}: expected a table, found a view" not in said:
                reached.append((table, command, code, said[-200:]))
            run_on(channel.target, "TRUNCATE TABLE victim.t", log=False)
        run_on(channel.target, *put_back(table), log=False)
    assert reached == []
    assert channel.cli("status", CHANNEL) == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_who_only_looks_changes_nothing_by_a_view_that_comes_later(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the check of the schema."""
    channel = attacked(channel_of, family)

    def checked(*arguments: Any, **named: Any) -> Any:
        context = target_state(*arguments, **named)

        class Later:
            def __enter__(self) -> Any:
                engine = context.__enter__()
                run_on(channel.target, *in_place_of("channels"), log=False)
                return engine

            def __exit__(self, *exc: Any) -> Any:
                run_on(channel.target, *put_back("channels"), log=False)
                return context.__exit__(*exc)

        return Later()

    monkeypatch.setattr("binlane.health.look.target_state", checked)
    found = look_at(channel.config, environment_resolver(channel.environment))
    assert "binlane.channels: expected a table, found a view" in str(found.health)
    assert runs_of(channel.target) == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_a_trigger_of_the_state_is_refused_by_its_name(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = attacked(channel_of, family)
    run_on(
        channel.target,
        "CREATE TRIGGER binlane.`t``x` BEFORE UPDATE ON binlane.channels FOR EACH ROW "
        "BEGIN SET SESSION sql_mode = ''; INSERT INTO victim.t VALUES (RELEASE_LOCK('x')); END",
        log=False,
    )
    for command in ("stop", "run", "status"):
        assert channel.cli(command, CHANNEL) != 0
        said = "".join(capsys.readouterr())
        assert "expected a table without triggers" in said
        assert "DROP TRIGGER binlane.`t``x`" in said
    assert runs_of(channel.target) == 0
    run_on(channel.target, "DROP TRIGGER binlane.`t``x`", log=False)
    assert channel.cli("status", CHANNEL) == 0


def attacked(channel_of: ChannelOf, family: str) -> Channel:
    channel = channel_of(family, family)
    run_on(channel.target, *MADE, log=False)
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (n INT PRIMARY KEY)")
    channel.run()
    return channel


def runs_of(server: PrivateServer) -> int:
    [(count,)] = server.query("SELECT COUNT(*) FROM victim.t")
    return int(count)
