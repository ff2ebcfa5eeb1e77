"""The key of a row that is stored and read again is a value of its column, and no SQL.

Attackers: whoever can write to the schema ``binlane`` on the target, or to the plan of a repair in the work folder.
Conditions on keys run on the target and on the source, as binlane's accounts.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.bootstrap import row_copy
from binlane.config.rules_digest import rules_digest
from binlane.errors import PlanError, StateSchemaError
from binlane.orchestration.commands.repair import StoredPlan, apply_plan, make_plan, read_stored
from binlane.orchestration.commands.verify import verify
from binlane.repair.plan import DefinitionRepair, RepairPlan
from binlane.servers.engines import engine_of
from binlane.state.records.repairs import note_plan
from binlane.verify.outcome import Options
from tests.conftest import requires_mysql
from tests.integration.bootstrap.conftest import either  # noqa: F401
from tests.integration.bootstrap.test_bootstrap import bootstrap
from tests.integration.bootstrap.test_resumed import copy_until, die
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

FAMILIES: Final = ("mariadb", pytest.param("mysql", marks=requires_mysql))
CALL: Final = "(SELECT evil.f())"
ATTACKS: Final[Mapping[str, tuple[str, str, str]]] = {
    "an integer": ("INT", "7", f"7) AND {CALL} = 1 AND id IN (7"),
    "an integer's digits of another script": ("BIGINT", "7", "\u0667"),
    "an integer with a line break": ("SMALLINT", "7", "7\n"),
    "a number with a point": ("DECIMAL(9,2)", "7.00", f"7 + {CALL}"),
    "a float": ("DOUBLE", "7", f"7e0 + {CALL}"),
    "a member": ("ENUM('x', 'y')", "1", f"1 + {CALL}"),
    "bits": ("BIT(8)", "7", f"7 + {CALL}"),
    "a year": ("YEAR", "2001", f"2001 + {CALL}"),
    "a text": ("VARCHAR(20)", "'7'", f"37') AND {CALL} = 1 AND id IN ('7"),
    "bytes": ("VARBINARY(20)", "'7'", f"37') AND {CALL} = 1 AND id IN (X'37"),
    "two values": ("TINYINT", "7", "7|7"),
}
"""A column of a primary key, the value of its row, and the text that is stored as its key (more than one: with bars in
between). A line more is an attack more, on every place."""
FUNCTION: Final = (
    "CREATE FUNCTION evil.f() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER "
    "BEGIN INSERT INTO evil.calls VALUES (1); RETURN 1; END"
)


def _prepare(channel: Channel, *, log: bool = False) -> None:
    """A function that leaves a trace, and a table for each attack."""
    tables = [
        statement
        for at, (kind, value, _) in enumerate(ATTACKS.values())
        for statement in (
            f"CREATE TABLE app.t{at} (id {kind} NOT NULL PRIMARY KEY, n INT)",
            f"INSERT INTO app.t{at} VALUES ({value}, 0)",
        )
    ]
    for server in (channel.source, channel.target):
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    evil = ("CREATE DATABASE evil", "CREATE TABLE evil.calls (n INT)", FUNCTION)
    channel.on_both(*evil, "CREATE DATABASE app", *tables)


def _calls(channel: Channel) -> list[Any]:
    return [server.query("SELECT * FROM evil.calls") for server in (channel.source, channel.target)]


@pytest.fixture
def attacked(channel_of: ChannelOf, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Channel:
    channel = channel_of(request.param, request.param)
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)
    _prepare(channel)
    return channel


@pytest.mark.parametrize("attacked", FAMILIES, indirect=True)
def test_a_stored_row_is_looked_for_by_a_key_and_nothing_else(attacked: Channel) -> None:
    _each(attacked, "row_key", lambda: verify(CHANNEL, attacked.channels, Options()))


@pytest.mark.parametrize("attacked", FAMILIES, indirect=True)
def test_a_full_verification_goes_on_behind_a_key_and_nothing_else(attacked: Channel) -> None:
    _each(attacked, "progress", lambda: verify(CHANNEL, attacked.channels, Options(full=True)))


def _each(channel: Channel, column: str, run: Callable[[], object]) -> None:
    """With each attack stored in a column."""
    for at, (what, (_, _, text)) in enumerate(ATTACKS.items()):
        [shape] = channel.target.query(
            "SELECT CONCAT_WS(' ', 'id', data_type, character_set_name, collation_name) FROM "
            f"information_schema.columns WHERE table_schema = 'app' AND table_name = 't{at}' AND column_name = 'id'"
        )
        with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("DELETE FROM binlane.suspects")
            cursor.execute("DELETE FROM binlane.verifications")
            if column == "row_key":
                cursor.execute(
                    "INSERT INTO binlane.suspects (channel, table_schema, table_name, row_key, state, seqno, "
                    "column_names, note, at, key_shape) VALUES (%s, 'app', %s, %s, 'drift', 1, '[]', '', NOW(), %s)",
                    (CHANNEL, f"t{at}", json.dumps(text.split("|")), *shape),
                )
            else:
                progress = json.dumps([f"app.t{at}", text.split("|")])
                cursor.execute(
                    "INSERT INTO binlane.verifications (channel, kind, window_id, through_seqno, state, started_at, "
                    "tables, chunks, compared_rows, drift, pending, progress, progress_key, rules) VALUES "
                    "(%s, 'full', '', 1, 'running', NOW(), 0, 0, 0, 0, 0, %s, %s, %s)",
                    (CHANNEL, progress, *shape, rules_digest(channel.config)),
                )
        if column == "progress" and what == "a float":
            # it is not read in ranges of its key, and compared as a whole
            run()
        else:
            with pytest.raises(StateSchemaError, match=rf"{column}: expected the primary key of a row of app\.t{at}, "):
                run()
        assert _calls(channel) == [[], []], what


def _written(channel: Channel, stored: StoredPlan, **changes: Any) -> RepairPlan:
    """Another plan in the plan's file, with a digest of its own."""
    plan = replace(stored.plan, **changes)
    Path(stored.place).write_bytes(plan.to_json())
    return plan


def _repair(channel: Channel, stored: StoredPlan) -> None:
    apply_plan(CHANNEL, channel.channels, read_stored(CHANNEL, stored.place))


@pytest.mark.parametrize("attacked", ["mariadb"], indirect=True)
def test_a_repair_runs_no_plan_that_was_not_made(attacked: Channel) -> None:
    """Attacker: whoever can write to the work folder; the digest in the file is made anew."""
    run_on(attacked.target, "DELETE FROM app.t0 WHERE id = 7", "INSERT INTO app.t0 VALUES (8, 0)", log=False)
    attacked.write_channel('[filter.kinds]\ndelete = "ignore"\n')
    _, stored = make_plan(CHANNEL, attacked.channels, Options(full=True))
    [inserted] = stored.plan.rows
    # a row that the filter keeps, and a statement that a repair leaves to an operator
    for changes in (
        {"rows": (inserted, replace(inserted, key=("8",), source=None))},
        {"definitions": (DefinitionRepair("table", "app", "t0", ("index `k`",), ("ALTER TABLE app.t0 DROP n",)),)},
    ):
        _written(attacked, stored, **changes)
        with pytest.raises(PlanError, match=r"which binlane\.repairs does not have.* nothing was repaired"):
            _repair(attacked, stored)
        assert attacked.target.query("SELECT id, n FROM app.t0") == [(8, 0)]
    _written(attacked, stored)
    _repair(attacked, stored)
    assert attacked.target.query("SELECT id FROM app.t0 ORDER BY id") == [(7,), (8,)]


@pytest.mark.parametrize("attacked", FAMILIES, indirect=True)
def test_a_repair_writes_the_rows_of_keys_and_nothing_else(attacked: Channel) -> None:
    """Attacker: whoever can write to the work folder, and to the schema ``binlane`` as well."""
    run_on(attacked.target, *(f"UPDATE app.t{at} SET n = 1" for at in range(len(ATTACKS))), log=False)
    _, stored = make_plan(CHANNEL, attacked.channels, Options(full=True))
    assert len(stored.plan.rows) == len(ATTACKS)
    for at, (what, (_, _, text)) in enumerate(ATTACKS.items()):
        [row] = (each for each in stored.plan.rows if each.table.table == f"t{at}")
        plan = _written(attacked, stored, rows=(replace(row, key=tuple(text.split("|"))),))
        with engine_of(attacked.endpoints.target).begin() as connection:
            note_plan(connection, CHANNEL, plan.digest, stored.place, plan.seqno, "attacker")

        with pytest.raises(PlanError, match=rf"app\.t{at}: the primary key or the plan has changed: .* nothing was re"):
            _repair(attacked, stored)

        assert _calls(attacked) == [[], []], what


def test_a_first_copy_goes_on_behind_a_key_and_nothing_else(
    either: Channel,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Behind the key rows are deleted on the target, and read on the source."""
    values = ", ".join(f"({number}, 0)" for number in range(500))
    run_on(either.source, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    run_on(
        either.source,
        *("CREATE DATABASE shop", "CREATE TABLE shop.big (id INT PRIMARY KEY, n INT)"),
        *(f"INSERT INTO shop.big VALUES {values}", "CREATE DATABASE evil", "CREATE TABLE evil.calls (n INT)"),
        FUNCTION,
    )
    assert copy_until(either, row_copy, "copy_chunk", 6, die) == -signal.SIGKILL
    text = json.dumps([f"99 + {CALL}"])
    reached = f"UPDATE binlane.bootstrap_objects SET reached = '{text}' WHERE object_name = 'big'"
    run_on(either.target, reached, log=False)
    [(rows,)] = either.target.query("SELECT COUNT(*) FROM shop.big")
    capsys.readouterr()

    assert bootstrap(either, "--jobs", "2", "--chunk-rows", "50") == 1

    assert "bootstrap_objects.reached: expected the primary key of a row of shop.big" in capsys.readouterr().err
    assert either.source.query("SELECT * FROM evil.calls") == []
    assert either.target.query("SELECT COUNT(*) FROM shop.big") == [(rows,)]
