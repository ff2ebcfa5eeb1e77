"""Statements and rows of sessions in several time zones, and in the zone SYSTEM of another machine."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from lab.programs import has_mysql
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, fresh_channel, run_on
from tests.integration.window.statements.test_session_variables import MADE, STATEMENTS, global_value


@pytest.mark.parametrize("flavor", [pytest.param("mysql", marks=requires_mysql), "mariadb"])
@pytest.mark.parametrize("text", ["", 'writer = "sql"\n'])
@pytest.mark.parametrize("reduce", ["off", "block", "window"])
def test_two_zones_in_one_transaction_are_those_of_their_statements_and_no_row_s(
    channel_of: ChannelOf, flavor: str, text: str, reduce: str
) -> None:
    channel = channel_of(flavor, flavor)
    channel.write_channel(text, f'reduce = "{reduce}"\n')
    zoned = "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, at TIMESTAMP(3) NULL, d DATETIME NULL, KEY (at))"
    run_on(channel.source, *MADE, zoned)
    plain = "INSERT INTO tenant_1.u VALUES ({}, '2024-03-31 02:30:00', NOW())"
    unsafe = "INSERT INTO tenant_1.u SELECT {}, '2024-03-31 02:30:00', NOW() + INTERVAL LENGTH(UUID()) SECOND"
    # MIXED logs the unsafe ones as rows
    for number, (wanted, first, second) in enumerate(
        (("ROW", plain, plain), ("STATEMENT", plain, plain), ("MIXED", plain, unsafe), ("MIXED", unsafe, plain))
    ):
        run_on(
            channel.source,
            f"SET SESSION binlog_format = {wanted}, time_zone = '+05:00'",
            "BEGIN",
            first.format(2 * number),
            "SET SESSION time_zone = '-03:00'",
            second.format(2 * number + 1),
            "UPDATE tenant_1.u SET at = at + INTERVAL 1 HOUR, d = d + INTERVAL 1 DAY WHERE at > '2024-03-31'",
            "COMMIT",
        )
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT COUNT(DISTINCT at) FROM tenant_1.u")[0][0] > 2


@pytest.fixture(scope="module", params=[Flavor.MARIADB, Flavor.MYSQL])
def berlin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """A source whose machine is in another zone than the target's."""
    flavor: Flavor = request.param
    if flavor is Flavor.MYSQL and not has_mysql():
        pytest.skip("no MySQL")
    with contextlib.ExitStack() as stack:
        # a target that the test starts has the machine's own
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TZ", "Europe/Berlin" if os.environ.get("TZ") != "Europe/Berlin" else "UTC")
            folder = tmp_path_factory.mktemp("berlin") / "data"
            server = stack.enter_context(private_server(folder, flavor, name="berlin", durable=False))
        yield server


def test_the_zone_system_of_another_machine_is_named(
    berlin: PrivateServer,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    target = request.getfixturevalue(f"{berlin.flavor}_target")
    channel = fresh_channel(berlin, target, tmp_path, clean_servers)
    insert = "INSERT INTO tenant_1.u VALUES ({}, '2024-01-01 00:00:00')"
    run_on(berlin, STATEMENTS, *MADE, "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, at TIMESTAMP NULL)")
    run_on(berlin, "CREATE TABLE tenant_1.texts (id INT PRIMARY KEY, at DATETIME)")
    run_on(berlin, STATEMENTS, "SET SESSION time_zone = '+05:00'", insert.format(1))
    run_on(berlin, "SET SESSION binlog_format = ROW", insert.format(2))
    assert channel.run() is not None
    # MySQL logs the zone with these, too
    event = "CREATE EVENT tenant_1.e ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1"
    run_on(berlin, STATEMENTS, "INSERT INTO tenant_1.texts VALUES (1, '2024-01-01 00:00:00')", event)
    assert channel.run() is not None
    utc = "SELECT id, UNIX_TIMESTAMP(at) FROM tenant_1.u ORDER BY id"
    assert berlin.query(utc) == target.query(utc)
    run_on(berlin, STATEMENTS, insert.format(3))
    with pytest.raises(
        PrecheckError, match=r"time zone SYSTEM of the target: expected 2000-01-01 0[01]:00:00, as on the"
    ):
        channel.run()
    assert target.query("SELECT COUNT(*) FROM tenant_1.u") == [(2,)]
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tenant_1.t SET s = NOW()",
        "INSERT INTO tenant_1.made (id) VALUES (1)",
        "INSERT INTO tenant_1.fires (id) VALUES (1)",
        "ALTER TABLE tenant_1.t ADD COLUMN a DATETIME DEFAULT CURRENT_TIMESTAMP",
        "ALTER TABLE tenant_1.t ADD COLUMN a TIMESTAMP NULL; INSERT INTO tenant_1.t (id, a) VALUES (9, '2024-01-01')",
    ],
)
def test_each_way_to_ask_for_a_time_in_the_zone_system_is_named(
    berlin: PrivateServer,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    statement: str,
) -> None:
    target = request.getfixturevalue(f"{berlin.flavor}_target")
    channel = fresh_channel(berlin, target, tmp_path, clean_servers)
    made = (
        "CREATE TABLE tenant_1.made (id INT PRIMARY KEY, a DATETIME DEFAULT CURRENT_TIMESTAMP)",
        "CREATE TABLE tenant_1.fires (id INT PRIMARY KEY, a DATETIME)",
        "CREATE TRIGGER tenant_1.x BEFORE INSERT ON tenant_1.fires FOR EACH ROW SET NEW.a = NOW()",
    )
    channel.on_both(*MADE, *made)
    run_on(berlin, STATEMENTS, *statement.split("; "))
    with pytest.raises(PrecheckError, match="time zone SYSTEM of the target"):
        channel.run()


@requires_mysql
@pytest.mark.parametrize("berlin", [Flavor.MYSQL], indirect=True)
@pytest.mark.parametrize("made", [False, True])
def test_rows_that_the_target_would_compute_in_its_own_zone_system_are_named(
    berlin: PrivateServer,
    mysql_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    made: bool,
) -> None:
    channel = fresh_channel(berlin, mysql_target, tmp_path, clean_servers)
    zoned = "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, at TIMESTAMP NULL, day DATE AS (DATE(at)) STORED)"
    channel.on_both(*MADE, *(() if made else (zoned,)))
    run_on(berlin, *((zoned,) if made else ()), "INSERT INTO tenant_1.u (id, at) VALUES (1, '2024-01-01 00:00:00')")
    with pytest.raises(PrecheckError, match=r"tenant_1\.u, with an expression .*: time zone SYSTEM of the target"):
        channel.run()


@requires_mysql
def test_columns_of_rows_without_a_logged_zone_are_computed_in_the_target_s_own(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    zoned = "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, at TIMESTAMP NULL, day DATE AS (DATE(at)) STORED)"
    channel.on_both(*MADE, zoned)
    # BEGIN has no zone if the first statement has not used it
    rows = ("BEGIN", "UPDATE tenant_1.t SET n = 1", "INSERT INTO tenant_1.u (id, at) VALUES (1, '2024-01-01 01:00:00')")
    with global_value(channel.source, "time_zone", "'+05:00'"):
        run_on(channel.source, *rows, "COMMIT")
        with pytest.raises(
            PrecheckError, match=r"tenant_1.u: time_zone of the target: expected \+05:00, as on the source"
        ):
            channel.run()
        with global_value(channel.target, "time_zone", "'+05:00'"):
            assert channel.run() is not None
    channel.assert_equal()


ZONE_TABLES = (
    "INSERT INTO mysql.time_zone (time_zone_id, use_leap_seconds) VALUES ({number}, 'N')",
    "INSERT INTO mysql.time_zone_name (name, time_zone_id) VALUES ('{name}', {number})",
    "INSERT INTO mysql.time_zone_transition_type (time_zone_id, transition_type_id, `offset`, is_dst, abbreviation) "
    "VALUES ({number}, 0, {offset}, 0, 'X')",
    "INSERT INTO mysql.time_zone_transition (time_zone_id, transition_time, transition_type_id) "
    "VALUES ({number}, -2147483648, 0)",
)
NUMBERS = itertools.count(5000)
"""Servers keep a zone that they have read until they end, so each test has one of its own."""


def load_zone(server: PrivateServer, number: int, offset: int) -> str:
    """Its name."""
    name = f"Test/Zone_{number}"
    run_on(server, *(each.format(number=number, name=name, offset=offset) for each in ZONE_TABLES), log=False)
    return name


CONVERTED = "CONVERT_TZ('2024-01-01 10:00:00', {zone}, '+00:00')"
TEXTS = {
    "a statement": ((), ("UPDATE tenant_1.t SET s = {call}",)),
    "a zone in a column": (
        ("ALTER TABLE tenant_1.t ADD zone VARCHAR(50)", "UPDATE tenant_1.t SET zone = '{zone}'"),
        ("UPDATE tenant_1.t SET s = CONVERT_TZ('2024-01-01', zone, '+00:00') WHERE zone = '{zone}'",),
    ),
    "a trigger": (
        ("CREATE TRIGGER tenant_1.x BEFORE UPDATE ON tenant_1.t FOR EACH ROW SET NEW.s = {call}",),
        ("UPDATE tenant_1.t SET n = n + 1",),
    ),
    "a new trigger": (
        (),
        (
            "CREATE TRIGGER tenant_1.x BEFORE UPDATE ON tenant_1.t FOR EACH ROW SET NEW.s = {call}",
            "UPDATE tenant_1.t SET n = n + 1",
        ),
    ),
    "a view": (
        ("CREATE VIEW tenant_1.x AS SELECT {call} AS at",),
        ("UPDATE tenant_1.t SET s = (SELECT at FROM tenant_1.x)",),
    ),
    "a session": (
        ("CREATE TABLE tenant_1.u (id INT PRIMARY KEY, at TIMESTAMP NULL)",),
        ("SET SESSION time_zone = '{zone}'", "INSERT INTO tenant_1.u VALUES (1, '2024-01-01 10:00:00')"),
    ),
}
"""What is on both servers, and what the source logs."""


@pytest.mark.paired
@pytest.mark.parametrize("flavor", [pytest.param("mysql", marks=requires_mysql), "mariadb"])
@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("case", TEXTS)
def test_a_zone_that_the_target_has_not_loaded_or_has_in_another_edition_is_named(
    channel_of: ChannelOf, flavor: str, is_loaded: bool, case: str
) -> None:
    """CONVERT_TZ() is NULL there, or another time, without an error."""
    channel, number = channel_of(flavor, flavor), next(NUMBERS)
    zone = load_zone(channel.source, number, 3600)
    if is_loaded:
        load_zone(channel.target, number, 7200)
    there, logged = (
        tuple(each.format(zone=zone, call=CONVERTED.format(zone=f"'{zone}'")) for each in texts)
        for texts in TEXTS[case]
    )
    channel.on_both(*MADE, *there)
    run_on(channel.source, STATEMENTS, *logged)
    with pytest.raises(PrecheckError, match=rf"time zone {zone}"):
        channel.run()
    if is_loaded:
        return
    load_zone(channel.target, number, 3600)
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
def test_a_generated_column_that_converts_to_another_edition_of_a_zone_is_named(channel_of: ChannelOf) -> None:
    channel, number = channel_of("mysql", "mysql"), next(NUMBERS)
    zone = load_zone(channel.source, number, 3600)
    table = f"(id INT PRIMARY KEY, d DATETIME, e DATETIME AS (CONVERT_TZ(d, '{zone}', '+00:00')) STORED)"
    channel.on_both(*MADE, f"CREATE TABLE tenant_1.u {table}")
    run_on(channel.source, "INSERT INTO tenant_1.u (id, d) VALUES (1, '2024-01-01 10:00:00')")
    with pytest.raises(PrecheckError, match=rf"tenant_1\.u, with an expression .*: time zone {zone} .* \[zones\]"):
        channel.run()


def test_zones_that_the_target_has_like_the_source_or_no_text_names_stop_nothing(channel_of: ChannelOf) -> None:
    channel, numbers = channel_of("mariadb", "mariadb"), (next(NUMBERS), next(NUMBERS))
    zone = load_zone(channel.source, numbers[0], 3600)
    load_zone(channel.target, numbers[0], 3600)
    load_zone(channel.source, numbers[1], 3600)
    channel.on_both(*MADE)
    run_on(
        channel.source,
        STATEMENTS,
        f"UPDATE tenant_1.t SET s = {CONVERTED.format(zone=repr(zone))}",
        "UPDATE tenant_1.t SET s = CONVERT_TZ('2024-01-01 10:00:00', s, '+00:00') WHERE id = 1",
        f"SET SESSION time_zone = '{zone}'",
        "UPDATE tenant_1.t SET s = NOW() WHERE id = 2",
    )
    assert channel.run() is not None
    channel.assert_equal()


@pytest.mark.parametrize("call", ["CONVERT_TZ", "`convert_tz`"])
def test_all_zones_are_asked_for_by_few_queries_and_only_where_a_statement_reaches_them(
    channel_of: ChannelOf, call: str
) -> None:
    channel = channel_of("mariadb", "mariadb")
    zoned = f"CREATE VIEW tenant_1.x AS SELECT id, {call}('2024-01-01', '+00:00', s) AS at FROM tenant_1.t"
    channel.on_both(*MADE, "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, at DATETIME)", zoned)
    queries = (
        "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE '%CRC32(CONCAT(at, CONVERT_TZ%' "
        "AND argument NOT LIKE '%general_log%'"
    )
    run_on(channel.source, "SET GLOBAL log_output = 'TABLE'", "TRUNCATE mysql.general_log", log=False)
    run_on(channel.source, "SET GLOBAL general_log = ON", log=False)
    try:
        run_on(channel.source, STATEMENTS, "UPDATE tenant_1.t SET n = n + 1 WHERE id = 1")
        assert channel.run() is not None
        assert channel.source.query(queries) == [(0,)]
        run_on(channel.source, STATEMENTS, "INSERT INTO tenant_1.u SELECT id, at FROM tenant_1.x")
        assert channel.run() is not None
        assert 0 < channel.source.query(queries)[0][0] < 20
    finally:
        run_on(channel.source, "SET GLOBAL general_log = OFF", "SET GLOBAL log_output = 'FILE'", log=False)
    channel.assert_equal()
