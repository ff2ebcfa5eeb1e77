"""What differs between two real servers is found by its key, and told apart from what the source has changed since."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from binlane.errors import DriftError, WindowBusyError
from binlane.model import TableKey
from binlane.orchestration import steps
from binlane.orchestration.commands.verify import verify_after, verify_channel
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.state.records.verifications import Counts, save_progress, verified_through
from binlane.verify import verification as run_module
from binlane.verify.outcome import Options, Outcome
from binlane.verify.rows.column_text import as_text
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer
from tests.integration.verify.scene import ONE_OF_EACH, found
from tests.integration.window.conftest import (
    CHANNEL,
    Channel,
    ChannelOf,
    channel,
    channel_of,
    clean_servers,
    fresh_channel,
    run_on,
)

__all__ = ["channel", "channel_of", "clean_servers"]

TABLES = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, note VARCHAR(40), f FLOAT, d DECIMAL(9,2), at TIMESTAMP(3) NULL, "
    "b BLOB, e ENUM('x', 'y', 'zz'), v INT AS (id + 1) VIRTUAL)",
    "CREATE TABLE tenant_1.two (a VARCHAR(20) CHARACTER SET latin1, b BIGINT UNSIGNED, c TEXT, PRIMARY KEY (a, b))",
    "CREATE TABLE tenant_1.bare (a INT, b VARCHAR(20))",
)
ROWS = (
    "INSERT INTO tenant_1.t (id, note, f, d, at, b, e) VALUES "
    + ", ".join(
        f"({n}, 'note {n}', {n} / 3, {n} / 7, '2026-01-02 03:04:05.678', X'00FF{n:02x}', {n % 3 + 1})"
        for n in range(1, 41)
    ),
    "INSERT INTO tenant_1.two VALUES ('a', 1, 'x'), ('B', 2, NULL), ('c,d', 18446744073709551615, '')",
    "INSERT INTO tenant_1.bare VALUES (1, 'same'), (1, 'same'), (2, NULL)",
)


@pytest.fixture
def filled(channel: Channel) -> Channel:
    return fill(channel)


def fill(channel: Channel) -> Channel:
    for server in (channel.source, channel.target):
        run_on(server, *TABLES, log=False)
    run_on(channel.source, *ROWS)
    assert channel.run() is not None
    return channel


def verify(channel: Channel, *, full: bool = True, chunk_rows: int = 7) -> Outcome:
    return verify_channel(channel.config, channel.endpoints, Options(full, chunk_rows))


@pytest.mark.parametrize("full", [True, False])
def test_equal_servers_are_clean(filled: Channel, full: bool, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = verify(filled, full=full)
    counts = outcome.counts
    assert (outcome.state, outcome.suspects, counts.rows, counts.tables, counts.equal) == ("clean", (), 46, 3, 46)
    with engine_of(filled.endpoints.target).connect() as connection:
        assert verified_through(connection, CHANNEL) == {"full" if full else "window": outcome.through_seqno}
    assert filled.cli("status", CHANNEL) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"compared through seqno {outcome.through_seqno:,}, 46 rows equal in the last verification" in said
    assert ("all tables through" in said) is full


@pytest.mark.parametrize("full", [True, False], ids=["full", "window"])
@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_rows_whose_key_is_a_large_set_are_compared(
    families: tuple[str, str], full: bool, channel_of: ChannelOf
) -> None:
    """Servers find no row by the number of a SET with its 64th member."""
    channel = channel_of(*families)
    members = ", ".join(f"'m{number}'" for number in range(64))
    made = ("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.s (a SET({members}) PRIMARY KEY, n INT)")
    for server in (channel.source, channel.target):
        run_on(server, *made, log=False)
    run_on(channel.source, f"INSERT INTO tenant_1.s VALUES {', '.join(f'({(1 << 64) - n}, {n})' for n in range(1, 9))}")
    assert channel.run() is not None
    assert verify(channel, full=full, chunk_rows=2).state == "clean"
    run_on(channel.target, "UPDATE tenant_1.s SET n = 0 WHERE n = 3", log=False)
    outcome = verify(channel, full=full, chunk_rows=2)
    assert (outcome.state, outcome.counts.rows) == ("drift", 8)


@pytest.mark.parametrize("full", [True, False])
def test_a_changed_a_missing_and_an_extra_row_are_found_by_their_keys(filled: Channel, full: bool) -> None:
    run_on(
        filled.target,
        "UPDATE tenant_1.t SET f = f + 0.0001 WHERE id = 20",
        "DELETE FROM tenant_1.t WHERE id = 33",
        "INSERT INTO tenant_1.t (id) VALUES (1000)",
        "UPDATE tenant_1.two SET c = 'y' WHERE b = 1",
        "DELETE FROM tenant_1.bare WHERE a = 1 LIMIT 1",
        log=False,
    )
    outcome = verify(filled, full=full)
    expected = {("drift", "t", ("20",)), ("drift", "t", ("33",)), ("drift", "two", ("61", "1")), ("drift", "bare", ())}
    # nothing in the window's log leads to a row that only the target has
    assert found(outcome) == expected | ({("drift", "t", ("1000",))} if full else set())
    [changed] = [one for one in outcome.suspects if one.key == ("20",)]
    assert changed.columns == ("f",)
    with pytest.raises(
        DriftError, match=r"(?s)[45] drift: .*t, primary key id=33: missing on the target.*The window stays applied"
    ):
        verify_after(filled.config, filled.endpoints, "window")


@pytest.mark.parametrize("full", [True, False])
def test_definitions_of_before_a_window_say_nothing_of_its_watermark(
    filled: Channel, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    run_verification = run_module.Verifier.run

    def behind_a_window(verifier: run_module.Verifier) -> Outcome:
        run_on(
            filled.source,
            "ALTER TABLE tenant_1.t ADD later INT DEFAULT 7",
            "CREATE TABLE tenant_1.later (id INT PRIMARY KEY)",
            "INSERT INTO tenant_1.later VALUES (1)",
        )
        assert filled.run() is not None
        return run_verification(verifier)

    with monkeypatch.context() as patch:
        patch.setattr(run_module.Verifier, "run", behind_a_window)
        with pytest.raises(WindowBusyError, match="verify again when the window is finished"):
            verify(filled, full=full)
    assert verify(filled, full=full).state == "clean"


def test_what_no_image_shows_is_pending_until_the_next_window(
    filled: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table without a primary key; rows with one are compared with the source's images of them before the change."""
    run_on(
        filled.source,
        "UPDATE tenant_1.t SET note = 'later' WHERE id = 5",
        "DELETE FROM tenant_1.two WHERE b = 18446744073709551615",
        "INSERT INTO tenant_1.bare VALUES (3, 'new')",
    )
    run_on(filled.target, "UPDATE tenant_1.t SET note = 'mine' WHERE id = 6", log=False)
    assert found(verify(filled)) == {("pending", "bare", ()), ("drift", "t", ("6",))}
    assert filled.cli("verify", CHANNEL) == 1
    assert "tenant_1.t, primary key id=6: source note='note 6', target note='mine'\n" in capsys.readouterr().out
    stands = told(filled, capsys)
    assert stands["suspects"] == {"drift": 1, "pending": 1}
    assert stands["verified_through"] == {"full": None, "window": None}
    run_on(filled.target, "UPDATE tenant_1.t SET note = 'note 6' WHERE id = 6", log=False)
    assert filled.run() is not None
    assert filled.cli("verify", CHANNEL) == 0
    assert found(verify(filled)) == set()
    stands = told(filled, capsys)
    assert stands["suspects"] == {"drift": 0, "pending": 0}
    assert set(stands["verified_through"].values()) == {stands["watermark"]["seqno"]}


def told(channel: Channel, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What ``binlane status --json`` says."""
    capsys.readouterr()
    assert channel.cli("status", CHANNEL, "--json") == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def test_children_of_a_parent_deleted_since_are_pending(channel: Channel) -> None:
    """No log of row events names them."""
    for server in (channel.source, channel.target):
        run_on(
            server,
            "CREATE DATABASE tenant_1",
            "CREATE TABLE tenant_1.p (id INT PRIMARY KEY)",
            "CREATE TABLE tenant_1.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
            "INSERT INTO tenant_1.p VALUES (1), (2)",
            "INSERT INTO tenant_1.c VALUES (10, 1), (20, 2)",
            log=False,
        )
    run_on(channel.source, "DELETE FROM tenant_1.p WHERE id = 1")
    assert found(verify(channel)) == {("pending", "c", ("10",))}


def test_a_table_created_since_is_pending_and_one_that_is_lacking_is_drift(filled: Channel) -> None:
    run_on(filled.source, "CREATE TABLE tenant_1.new (id INT PRIMARY KEY)")
    run_on(filled.target, "DROP TABLE tenant_1.two", log=False)
    # the definition, which a repair creates, and the rows, which nothing has compared then
    assert found(verify(filled)) == {
        (state, table, key) for state, table in (("pending", "new"), ("drift", "two")) for key in (("table",), ())
    }


def test_an_ended_full_verification_goes_on_and_loses_nothing(filled: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    run_on(filled.target, "UPDATE tenant_1.t SET note = 'mine' WHERE id IN (2, 39)", log=False)
    steps_done: list[Counts] = []
    original = save_progress

    def dies(*arguments: Any) -> None:
        if len(steps_done) == 4:
            monkeypatch.setattr(run_module, "save_progress", original)
            raise KeyboardInterrupt
        original(*arguments)
        steps_done.append(arguments[2])

    monkeypatch.setattr(run_module, "save_progress", dies)
    options = Options(True, 7, step_seconds=0)
    with pytest.raises(KeyboardInterrupt):
        verify_channel(filled.config, filled.endpoints, options)
    assert filled.target.query("SELECT row_key, state FROM binlane.suspects") == [('["2"]', "drift")]
    outcome = verify_channel(filled.config, filled.endpoints, options)
    assert found(outcome) == {("drift", "t", ("2",)), ("drift", "t", ("39",))}
    assert (outcome.counts.rows, outcome.counts.tables) == (46, 3)  # what was stored was not read again
    assert outcome.counts.equal == 44


@pytest.mark.parametrize("families", [("mysql", "mysql"), ("mariadb", "mysql")], ids="-".join)
def test_the_longest_doubles_and_impossible_dates(
    families: tuple[str, str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    servers = (request.getfixturevalue(f"{families[0]}_source"), request.getfixturevalue(f"{families[1]}_target"))
    channel = fresh_channel(*servers, tmp_path, clean_servers)
    doubles = (
        "-1.7976931348623157e308",
        "-2.2250738585072014e-308",
        "-1.2345678901234567e-9",
        "3.936145966292681e-8",
        "-956285771493234e0",
        "1e22",
        "0.30000000000000004",
        "-0e0",
    )
    days = ("0000-00-00", "2020-00-00", "2020-02-30", "2020-02-31", "2021-01-01")
    for server in servers:
        run_on(
            server,
            "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'",
            "CREATE DATABASE tenant_1 CHARACTER SET latin1",
            "CREATE TABLE tenant_1.f (k DOUBLE PRIMARY KEY, d DOUBLE, f FLOAT)",
            "INSERT INTO tenant_1.f VALUES (0.5, NULL, NULL), "
            + ", ".join(f"({one}, {one}, {n / 3!r})" for n, one in enumerate(doubles)),
            "CREATE TABLE tenant_1.day (k DATE, at DATETIME, n INT, PRIMARY KEY (k, at))",
            "INSERT INTO tenant_1.day VALUES " + ", ".join(f"('{day}', '{day}', 1)" for day in days),
            log=False,
        )
    assert found(verify(channel, chunk_rows=1)) == set()
    run_on(
        channel.target,
        "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'",
        "UPDATE tenant_1.f SET d = -1.7976931348623155e308 WHERE k = -1.7976931348623157e308",
        "UPDATE tenant_1.day SET n = 2 WHERE k = '2020-02-30'",
        log=False,
    )
    assert found(verify(channel, chunk_rows=1)) == {
        ("drift", "f", ("-1.7976931348623157e308",)),
        ("drift", "day", ("2020-02-30", "2020-02-30 00:00:00")),
    }


def test_a_window_refuses_once_it_has_a_plan(filled: Channel) -> None:
    """Before that it has written nothing, and may have been refused."""
    run_on(filled.source, "UPDATE tenant_1.t SET note = 'later' WHERE id = 5")
    window = steps.extract(filled.config, filled.endpoints, WindowRequest("now"))
    assert found(verify(filled)) == set()
    run_on(filled.target, "UPDATE tenant_1.t SET d = 0 WHERE id = 20", log=False)
    assert filled.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    assert found(verify(filled)) == set()
    run_plan_job(WorkFolder(window["work"]), InProcess())
    steps.adopt_plan(filled.config, filled.endpoints, window["work"])
    with pytest.raises(
        WindowBusyError, match="is unfinished, and nobody applies it now: `binlane run orders` finishes it"
    ):
        verify(filled)


def test_mysql(
    mysql_source: PrivateServer,
    mysql_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    channel = fill(fresh_channel(mysql_source, mysql_target, tmp_path, clean_servers))
    assert verify(channel).state == "clean"
    run_on(channel.target, "UPDATE tenant_1.t SET d = 0 WHERE id = 20", log=False)
    run_on(channel.source, "UPDATE tenant_1.t SET d = 0 WHERE id = 21")
    assert found(verify(channel)) == {("drift", "t", ("20",))}


def test_json_values_of_other_types_with_the_same_text_differ(
    mysql_source: PrivateServer,
    mysql_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    channel = fresh_channel(mysql_source, mysql_target, tmp_path, clean_servers)
    day, deep = "CAST('2026-01-02' AS DATE)", f"'{'[' * 98}'2026-01-02'{']' * 98}'".replace("'2026-01-02'", '"x"')
    for server in (channel.source, channel.target):
        run_on(
            server,
            "CREATE DATABASE tenant_1",
            "CREATE TABLE tenant_1.j (id INT PRIMARY KEY, v JSON, n JSON)",
            f"INSERT INTO tenant_1.j VALUES (1, JSON_OBJECT('a', {day}, 'b', '2026-01-02'), NULL), "
            f"(2, JSON_ARRAY('2026-01-02 00:00:00.000000', {day}, X'00ff', b'101', TIME'10:00:00'), {deep}), "
            f"""(3, '{{"a": "2026-01-02"}}', '[1.5, 7, null, true]'), """
            f"(4, JSON_ARRAY(1.123456789012345678901234567890), JSON_ARRAY({deep}, {day})), (5, NULL, NULL), "
            f"(6, JSON_OBJECT('z', JSON_ARRAY(1, JSON_OBJECT('k', {day}, 'a', JSON_ARRAY('x', X'00', {day}))), "
            f"'a', JSON_OBJECT('b', {day}, 'c', JSON_ARRAY(JSON_ARRAY(), {day}))), NULL)",
            log=False,
        )
    assert found(verify(channel)) == set()
    run_on(channel.source, "UPDATE tenant_1.j SET n = JSON_ARRAY(id) WHERE id <> 4")
    assert found(verify(channel)) == set(), "the log's images before the change have the types, too"
    assert channel.run() is not None
    run_on(
        channel.target,
        f"UPDATE tenant_1.j SET v = JSON_OBJECT('a', '2026-01-02', 'b', {day}) WHERE id = 1",
        "UPDATE tenant_1.j SET v = JSON_SET(v, '$[0]', CAST('2026-01-02' AS DATETIME)) WHERE id = 2",
        f"UPDATE tenant_1.j SET v = JSON_SET(v, '$.a', {day}) WHERE id = 3",
        log=False,
    )
    assert found(verify(channel, full=False)) == {("drift", "j", (key,)) for key in "123"}
    run_on(channel.source, "UPDATE tenant_1.j SET v = '[]' WHERE id IN (2, 3)")
    outcome = verify(channel)
    assert found(outcome) == {("drift", "j", (key,)) for key in "123"}
    shown = as_text(outcome.target.tables[TableKey("tenant_1", "j")].columns[1], (outcome.suspects[0].target or ())[1])
    assert "with SQL values" in str(shown)
    assert channel.run() is not None
    run_on(channel.target, "UPDATE tenant_1.j SET v = JSON_OBJECT('a', '2026-01-02', 'b', '2026-01-02') WHERE id = 1")
    run_on(channel.source, "UPDATE tenant_1.j SET v = JSON_OBJECT('a', '2026-01-02', 'b', '2026-01-02') WHERE id = 4")
    assert found(verify(channel)) == {("drift", "j", ("1",))}
