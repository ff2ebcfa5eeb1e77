"""Privileges and settings of a real target: each thing that is missing is named."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql
import pytest
import sqlalchemy
from sqlalchemy.exc import OperationalError

from binlane.errors import PrecheckError
from binlane.model import Flavor, TableKey
from binlane.precheck.account.privileges import DDL, STATE, STATEMENTS, VISIBILITY, global_needs
from binlane.precheck.checks import TARGET_CHECKS, run_checks
from binlane.precheck.situation.facts import Target
from binlane.precheck.situation.finding import Finding, raise_if_fatal
from binlane.precheck.situation.situation import Needs, TargetSituation
from binlane.schema.compare import Severity
from binlane.servers.account_fingerprints import read_accounts
from binlane.servers.variables import version_number
from lab.servers import PrivateServer, private_server
from tests.integration.precheck.helpers import asked, connected, run, schema_of, setting
from tests.unit.precheck.situations import PLAN, findings, situation

USER = "binlane_lane"
SHOP = frozenset({"shop"})


def found(target: Target, needs: Needs) -> tuple[Finding, ...]:
    return run_checks(TargetSituation(target, needs), TARGET_CHECKS)


def fatal(server: PrivateServer, needs: Needs, user: str | None = None) -> dict[str, str]:
    with asked(server, user) as target:
        stopping = [one for one in found(target, needs) if one.severity is Severity.FATAL]
    return {one.where.removeprefix("target: "): str(one) for one in stopping}


@contextlib.contextmanager
def account(server: PrivateServer, *grants: str) -> Iterator[None]:
    run(server, f"CREATE USER {USER} IDENTIFIED BY '{server.password}'", *(f"GRANT {one} TO {USER}" for one in grants))
    try:
        yield
    finally:
        run(server, f"DROP USER {USER}")


def server_needs(server: PrivateServer) -> list[str]:
    number = version_number(server.query("SELECT VERSION()")[0][0])
    return [need.name for need in global_needs(server.flavor, number)]


def test_the_all_powerful_user_of_a_fresh_server_finds_nothing_fatal(server: PrivateServer) -> None:
    everything = Needs(SHOP, statements=True, ddl=True, accounts=True, time_zones=frozenset({"SYSTEM", "+02:00"}))

    assert fatal(server, everything) == {}


def test_an_account_without_privileges_gets_each_missing_one_by_name(server: PrivateServer) -> None:
    names = {*server_needs(server), *STATE, *VISIBILITY, *STATEMENTS, *DDL, "CREATE USER", "GRANT OPTION"}
    with account(server):
        found = fatal(server, Needs(SHOP, statements=True, ddl=True, accounts=True), USER)

    assert set(found) == {f"privilege {name}" for name in names}
    assert all("GRANT " in text for text in found.values())


def test_the_named_privileges_are_enough(server: PrivateServer) -> None:
    grants = [
        *(f"{name} ON *.*" for name in server_needs(server)),
        f"{', '.join(STATE)} ON binlane.*",
        f"{', '.join((*VISIBILITY, *DDL))} ON `sh%`.*",
    ]
    with account(server, *grants):
        assert fatal(server, Needs(SHOP, statements=True, ddl=True), USER) == {}


def test_each_privilege_is_needed_by_itself(server: PrivateServer) -> None:
    every = server_needs(server)
    for left_out in every if len(every) > 1 else []:
        others = [f"{name} ON *.*" for name in every if name != left_out]
        with account(server, *others, f"{', '.join(STATE)} ON binlane.*"):
            assert list(fatal(server, Needs(), USER)) == [f"privilege {left_out}"]


def test_super_stands_for_a_privilege_only_where_the_server_takes_it(server: PrivateServer) -> None:
    """MySQL 9.7 takes it for most variables of a session; ``max_error_count``, which each lane sets, is none."""
    with account(server, "SUPER ON *.*", f"{', '.join(STATE)} ON binlane.*"):
        found = list(fatal(server, Needs(), USER))
        connection = server.connect(user=USER)
        with contextlib.closing(connection), connection.cursor() as cursor:
            taken = True
            try:
                cursor.execute("SET SESSION max_error_count = 65535")
            except pymysql.err.OperationalError:
                taken = False
    assert ("privilege SESSION_VARIABLES_ADMIN" in found) is not taken


def test_the_state_schema_has_needs_of_its_own(server: PrivateServer) -> None:
    with account(server, *(f"{name} ON *.*" for name in server_needs(server))):
        found = fatal(server, Needs(), USER)

    assert set(found) == {f"privilege {name}" for name in STATE}
    assert all("`binlane`.*" in text for text in found.values())


def test_many_databases_share_one_line_a_privilege(server: PrivateServer) -> None:
    many = frozenset(f"d{number:03}" for number in range(300))
    with account(server):
        found = fatal(server, Needs(many), USER)

    assert "`d000`.*, `d001`.*, `d002`.* and 297 more databases" in found["privilege TRIGGER"]


def test_a_biggest_item_that_cannot_be_sent_is_fatal(server: PrivateServer) -> None:
    packet = int(server.query("SELECT @@GLOBAL.max_allowed_packet")[0][0])

    assert fatal(server, Needs(biggest_item=packet * 3 // 4 - 1024)) == {}
    assert list(fatal(server, Needs(biggest_item=packet * 3 // 4))) == ["max_allowed_packet"]
    assert "no server takes" in fatal(server, Needs(biggest_item=1 << 30))["max_allowed_packet"]


def test_named_time_zones_need_the_time_zone_tables(server: PrivateServer) -> None:
    known, unknown = Needs(time_zones=frozenset({"+05:30"})), Needs(time_zones=frozenset({"Europe/Paris"}))

    assert fatal(server, known) == {}
    [(where, text)] = fatal(server, unknown).items()
    assert (where, text.rpartition(" ")[2]) == ("time zone Europe/Paris", "[time-zones]")


def test_enabled_events_in_replicated_databases_are_fatal(server: PrivateServer) -> None:
    run(server, "CREATE DATABASE shop", "CREATE EVENT shop.nightly ON SCHEDULE EVERY 1 DAY DO SELECT 1")
    with setting(server, "event_scheduler", "'ON'"):
        [(where, text)] = fatal(server, Needs(SHOP)).items()
        assert (where, text.rpartition(" ")[2]) == ("event shop.nightly", "[events]")
        assert fatal(server, Needs(SHOP, allow_events=True)) == {}
        assert fatal(server, Needs(frozenset({"crm"}))) == {}
    with setting(server, "event_scheduler", "'OFF'"):
        assert fatal(server, Needs(SHOP)) == {}


def test_read_only_is_fatal_for_an_account_that_it_holds(server: PrivateServer) -> None:
    grants = [f"{name} ON *.*" for name in server_needs(server)]
    with account(server, *grants, f"{', '.join(STATE)} ON binlane.*"), setting(server, "read_only", "1"):
        assert list(fatal(server, Needs(), USER)) == ["read_only"]
        assert fatal(server, Needs()) == {}


def test_too_few_connections_are_fatal(server: PrivateServer) -> None:
    [(name, said)] = fatal(server, Needs(connections=2_000)).items()
    assert name == "max_connections"
    [(limit,)] = server.query("SELECT @@GLOBAL.max_connections")
    # others go on to use what they have
    assert re.search(rf"SET (GLOBAL|PERSIST) max_connections = {limit + 2_000} on the target, or", said), said


def test_an_account_that_may_have_few_connections_is_named_with_its_limit(server: PrivateServer) -> None:
    grants = [f"{name} ON *.*" for name in server_needs(server)]
    with account(server, *grants, f"{', '.join(STATE)} ON binlane.*"):
        server.query(f"ALTER USER {USER} WITH MAX_USER_CONNECTIONS 3")
        [(name, said)] = fatal(server, Needs(connections=12), USER).items()
    assert name == f"MAX_USER_CONNECTIONS of {USER}@%"
    assert f"ALTER USER '{USER}'@'%' WITH MAX_USER_CONNECTIONS 15 on the target, or" in said


def test_statement_format_on_the_target_is_fatal_on_mysql_only(server: PrivateServer) -> None:
    with setting(server, "binlog_format", "'STATEMENT'"):
        assert list(fatal(server, Needs())) == (["binlog_format"] if server.flavor is Flavor.MYSQL else [])


def test_super_read_only_holds_everybody(mysql_target: PrivateServer) -> None:
    with setting(mysql_target, "super_read_only", "1"):
        found = fatal(mysql_target, Needs())
    run(mysql_target, "SET GLOBAL read_only = 0")

    assert list(found) == ["super_read_only"]


@contextlib.contextmanager
def answering(server: PrivateServer, question: str, instead: str) -> Iterator[Target]:
    """A target that gives to one question another question's answer."""
    with asked(server) as target:

        @sqlalchemy.event.listens_for(target.engine, "before_cursor_execute", retval=True)
        def rewrite(_c: Any, _k: Any, statement: str, parameters: Any, _x: Any, _m: Any) -> tuple[str, Any]:
            return statement.replace(question, instead), parameters

        yield target


@pytest.mark.parametrize(
    ("question", "instead", "where", "check"),
    [
        ("0 + CONNECTION_ID()", "UUID_SHORT()", "target: CONNECTION_ID()", "proxy"),
        ("VERSION()", "'10.2.44-MariaDB'", "target: version", "target-version"),
        ("VERSION()", "'8.0.25-log'", "target: version", "target-version"),
    ],
)
def test_a_server_that_cannot_be_a_target_is_refused(
    mariadb_target: PrivateServer, question: str, instead: str, where: str, check: str
) -> None:
    with answering(mariadb_target, question, instead) as target:
        stopping = [one for one in found(target, Needs()) if one.severity is Severity.FATAL]

    assert [(one.where, one.check) for one in stopping] == [(where, check)]


def test_a_server_without_log_and_with_fixed_clock_is_named_where_it_matters(tmp_path: Path) -> None:
    with private_server(tmp_path / "data", options=["--secure-timestamp=YES"], log_bin=False) as server:
        assert fatal(server, Needs()) == {}
        assert list(fatal(server, Needs(statements=True))) == ["secure_timestamp"]
        with asked(server) as target:
            infos = [one.where for one in found(target, Needs(ddl=True)) if one.check == "ddl-settings"]

    assert {"target: log_bin", "target: innodb_strict_mode"} <= set(infos)


def test_settings_that_only_deserve_a_word_are_no_reason_to_stop(server: PrivateServer) -> None:
    with setting(server, "slave_type_conversions", "'ALL_LOSSY'"), asked(server) as target:
        words = [one.severity for one in found(target, Needs()) if one.check == "type-conversions"]

    assert words == [Severity.INFO]


def test_all_fatal_findings_come_at_once_one_a_line(server: PrivateServer) -> None:
    run(server, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=MyISAM")
    schema = schema_of(server)
    plan = replace(PLAN, loaded=frozenset({TableKey("shop", "t"), TableKey("shop", "absent")}))
    with asked(server) as target:
        all_found = (
            *found(target, Needs(biggest_item=1 << 30, connections=1_000_000)),
            *findings(situation(target, plan, schema, source=schema), "table-definitions"),
        )

    with pytest.raises(PrecheckError) as error:
        raise_if_fatal(all_found)

    lines = str(error.value).splitlines()
    assert lines[0] == "precheck failed: 4 findings; nothing was written:"
    assert [line.split(": expected")[0] for line in lines[1:]] == [
        "target: max_allowed_packet",
        "target: max_connections",
        "shop.absent: table",
        "shop.t: engine",
    ]
    names = ["max-allowed-packet", "connections", "table-definitions", "table-definitions"]
    assert [line.rpartition(" ")[2] for line in lines[1:]] == [f"[{name}]" for name in names]


def test_advice_alone_raises_no_error(server: PrivateServer) -> None:
    with asked(server) as target:
        told = found(target, Needs(tables=1_000_000))
    raise_if_fatal(told)
    assert {one.severity for one in told} == {Severity.INFO}


def test_accounts_made_alike_look_alike_and_any_change_shows(server: PrivateServer) -> None:
    def look() -> str | None:
        with connected(server) as connection:
            return read_accounts(connection).get(f"{USER}@%")

    assert look() is None
    with account(server):
        before = look()
        run(server, f"GRANT INSERT ON shop.* TO {USER}")
        granted = look()
        run(server, f"REVOKE INSERT ON shop.* FROM {USER}")
        revoked = look()

    assert before is not None
    assert before == revoked != granted


@pytest.mark.parametrize("name", ["table_open_cache", "table_definition_cache"])
def test_a_cache_for_fewer_tables_than_the_window_writes_is_advice(server: PrivateServer, name: str) -> None:
    with setting(server, name, "500"), asked(server) as target:
        shown = [
            [str(one) for one in found(target, Needs(tables=tables)) if name in one.where] for tables in (500, 501)
        ]
    (said,) = shown[1]
    assert not shown[0]
    assert f"target: {name}: expected 501 or more, found 500" in said
    assert f"SET GLOBAL {name}" in said
    assert said.endswith("[table-caches]")


def test_a_connection_that_is_lost_is_no_server_without_roles(mariadb_target: PrivateServer) -> None:
    with asked(mariadb_target) as target:
        assert target.flavor is Flavor.MARIADB
        [(number,)] = target.rows("SELECT CONNECTION_ID()")
        mariadb_target.query(f"KILL CONNECTION {number}")
        with pytest.raises(OperationalError):
            target.roles  # noqa: B018
