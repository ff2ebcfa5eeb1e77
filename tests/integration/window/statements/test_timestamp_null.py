"""NULL for a TIMESTAMP that must not be NULL: MySQL logs what it means with definitions, and not with the statement."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from binlane.errors import ApplyError, PrecheckError, UndecidableError
from binlane.health.ways_out import way_out
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.compare import compare
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import (
    CHANNEL,
    Channel,
    ChannelOf,
    database_of,
    fresh_channel,
    in_database,
    run_on,
)

pytestmark = requires_mysql

BY_STATEMENT = "SET SESSION binlog_format = STATEMENT"
OFF = "SET SESSION explicit_defaults_for_timestamp = OFF"
ON = "SET SESSION explicit_defaults_for_timestamp = ON"
TABLE = (
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, may TIMESTAMP NULL)"
)
AT = 1_700_000_000
REFUSED = "1048 Column 'at' cannot be null"


def at(seconds: int) -> str:
    return f"SET SESSION timestamp = {seconds}"


def rows(channel: Channel, database: str = "tenant_1") -> list[tuple[object, ...]]:
    return channel.target.query(f"SELECT id, UNIX_TIMESTAMP(at), UNIX_TIMESTAMP(may) FROM {database}.t ORDER BY id")


def test_a_session_that_has_logged_off_makes_it_the_current_time(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.other (id INT PRIMARY KEY)")
    with (
        contextlib.closing(channel.source.connect(autocommit=True)) as off,
        contextlib.closing(channel.source.connect(autocommit=True)) as on,
    ):
        for connection, statements in (
            (off, (BY_STATEMENT, OFF, TABLE, "CREATE TABLE tenant_1.implied (id INT PRIMARY KEY, at TIMESTAMP)")),
            (on, (BY_STATEMENT, "INSERT INTO tenant_1.t VALUES (1, FROM_UNIXTIME(1600000000), NULL)")),
            (off, (at(AT), "INSERT INTO tenant_1.t VALUES (2, NULL, NULL), (3, NULL, NULL)")),
            # a table's definition of another session that has it ON: its own NULLs stay impossible
            (on, ("CREATE TABLE tenant_1.explicit (id INT PRIMARY KEY, at TIMESTAMP)",)),
            (on, ("INSERT INTO tenant_1.explicit VALUES (1, NULL)", "INSERT INTO tenant_1.other VALUES (1)")),
            (off, (at(AT + 1), "UPDATE tenant_1.t SET at = NULL WHERE id = 1")),
            (off, ("SET SESSION sql_mode = ''", at(AT + 2), "INSERT INTO tenant_1.implied VALUES (1, NULL)")),
            # two statements of one transaction, in other modes: the first one proves what the second one means
            (off, ("BEGIN", at(AT + 3), "INSERT INTO tenant_1.t VALUES (4, NULL, NULL)")),
            (off, ("INSERT IGNORE INTO tenant_1.t VALUES (5, NULL, NULL)", "COMMIT")),
            (on, ("INSERT INTO tenant_1.other VALUES (2)",)),
        ):
            for statement in statements:
                with connection.cursor() as cursor:
                    cursor.execute(statement)
    assert channel.run() is not None
    channel.assert_equal()
    assert rows(channel) == [
        *((1, AT + 1, None), (2, AT, None), (3, AT, None)),
        *((4, AT + 3, None), (5, AT + 3, None)),
    ]
    assert channel.target.query("SELECT at FROM tenant_1.explicit") == [(None,)]
    assert channel.target.query("SELECT @@global.explicit_defaults_for_timestamp") == [(1,)]


def test_a_session_that_the_log_last_shows_with_on_stops_the_window(channel_of: ChannelOf) -> None:
    """Nothing but the statement's own success speaks for OFF, and the target's column might be another one."""
    channel = channel_of("mysql", "mysql")
    run_on(
        channel.source,
        *("CREATE DATABASE tenant_1", BY_STATEMENT, OFF, TABLE, ON, "CREATE TABLE tenant_1.u (at TIMESTAMP)"),
        *(OFF, "INSERT INTO tenant_1.t VALUES (1, NULL, NULL)"),
    )
    with pytest.raises(ApplyError, match=REFUSED):
        channel.run()
    assert rows(channel) == []


def test_a_session_of_which_nothing_is_logged_is_applied_in_the_way_that_is_said(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(channel.source, "CREATE DATABASE tenant_1", OFF, TABLE)
    run_on(channel.source, BY_STATEMENT, OFF, at(AT), "INSERT INTO tenant_1.t VALUES (1, NULL, NULL)")
    with pytest.raises(ApplyError, match=REFUSED):
        channel.run()
    assert "SET GLOBAL explicit_defaults_for_timestamp = OFF on the target" in way_out(1048)
    channel.target.query("SET GLOBAL explicit_defaults_for_timestamp = OFF")
    try:
        assert channel.run() is not None
    finally:
        channel.target.query("SET GLOBAL explicit_defaults_for_timestamp = ON")
    channel.assert_equal()
    assert rows(channel) == [(1, AT, None)]


def test_a_null_that_is_wrong_under_off_too_stops_the_window(channel_of: ChannelOf) -> None:
    """A column that is NOT NULL on the target alone, in a session that has logged OFF."""
    channel = channel_of("mysql", "mysql")
    channel.on_both("CREATE DATABASE tenant_1", TABLE.replace("may TIMESTAMP NULL", "may INT NULL"))
    channel.target.query("ALTER TABLE tenant_1.t MODIFY may INT NOT NULL")
    run_on(
        channel.source,
        # the definition of a table that the window alters is not compared before it
        *(BY_STATEMENT, OFF, "CREATE TABLE tenant_1.x (at TIMESTAMP)", "ALTER TABLE tenant_1.t COMMENT 'altered'"),
        *("INSERT INTO tenant_1.t VALUES (1, NULL, NULL)",),
    )
    with pytest.raises(ApplyError, match="1048 Column 'may' cannot be null"):
        channel.run()
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.t") == [(0,)]


def test_a_table_without_transactions_gets_it_too(channel_of: ChannelOf) -> None:
    """With GTIDs each of its statements commits by itself; what has run before the refused one does not run again."""
    channel = channel_of("mysql", "mysql")
    channel.write_channel("allow_nontransactional = true\n")
    run_on(
        channel.source,
        *("CREATE DATABASE tenant_1", BY_STATEMENT, OFF, f"{TABLE} ENGINE=MyISAM", at(AT)),
        *("CREATE TABLE tenant_1.n (id INT) ENGINE=MyISAM", "INSERT INTO tenant_1.n VALUES (1)"),
        *(
            "INSERT INTO tenant_1.t VALUES (1, NULL, NULL)",
            "INSERT INTO tenant_1.t VALUES (2, NULL, NULL), (3, NULL, NULL)",
        ),
        "INSERT INTO tenant_1.n VALUES (2)",
    )
    assert channel.run() is not None
    channel.assert_equal()
    assert [found for _, found, _ in rows(channel)] == [AT] * 3
    assert channel.target.query("SELECT id FROM tenant_1.n ORDER BY id") == [(1,), (2,)]


@pytest.mark.parametrize("change", ["many rows", "a file"])
def test_a_table_without_transactions_keeps_no_doubtful_null_in_silence(
    channel_of: ChannelOf, change: str, tmp_path: Path
) -> None:
    """Its statement commits by itself under a GTID: what follows it replaces its warnings on the server."""
    channel = channel_of("mysql", "mysql")
    channel.write_channel("allow_nontransactional = true\n")
    (tmp_path / "file").write_text("5\n6\n")
    text = DOUBTFUL[change].format(file=tmp_path / "file")
    for server in (channel.source, channel.target):
        server.query("SET GLOBAL local_infile = ON")
    try:
        with contextlib.closing(channel.source.connect(autocommit=True, local_infile=True)) as connection:
            definition = f"{TABLE} ENGINE=MyISAM"
            for each in ("CREATE DATABASE tenant_1", BY_STATEMENT, OFF, definition, "SET SESSION sql_mode = ''", text):
                with connection.cursor() as cursor:
                    cursor.execute(each)
        with pytest.raises(ApplyError, match="NULL for the TIMESTAMP column at"):
            channel.run()
        with pytest.raises(UndecidableError, match="a statement of this transaction failed on the target"):
            channel.run()
    finally:
        for server in (channel.source, channel.target):
            server.query("SET GLOBAL local_infile = OFF")


def test_a_lax_session_that_has_logged_off_may_have_it_on_again(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(
        channel.source,
        *("CREATE DATABASE tenant_1", BY_STATEMENT, OFF, TABLE, ON, "SET SESSION sql_mode = ''"),
        "INSERT INTO tenant_1.t VALUES (1, NULL, NULL), (2, NULL, NULL)",
    )
    with pytest.raises(ApplyError, match="NULL for the TIMESTAMP column at"):
        channel.run()


def test_a_session_behind_one_that_has_logged_off_is_judged_by_itself(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(
        channel.source,
        *(
            "CREATE DATABASE tenant_1",
            BY_STATEMENT,
            OFF,
            TABLE,
            at(AT),
            "INSERT INTO tenant_1.t VALUES (1, NULL, NULL)",
        ),
    )
    lax = "INSERT INTO tenant_1.t VALUES (2, NULL, NULL), (3, NULL, NULL)"
    run_on(channel.source, BY_STATEMENT, "SET SESSION sql_mode = ''", lax)
    with pytest.raises(ApplyError, match="NULL for the TIMESTAMP column at"):
        channel.run()
    assert rows(channel) == [(1, AT, None)]


def test_an_xa_transaction_stops_the_window(channel_of: ChannelOf) -> None:
    """Its changes are applied at its XA COMMIT, which another session may have run."""
    channel = channel_of("mysql", "mysql")
    run_on(
        channel.source,
        *("CREATE DATABASE tenant_1", BY_STATEMENT, OFF, TABLE),
        *("XA START 'x'", "INSERT INTO tenant_1.t VALUES (1, NULL, NULL)", "XA END 'x'", "XA PREPARE 'x'"),
        "XA COMMIT 'x'",
    )
    with pytest.raises(ApplyError, match=REFUSED):
        channel.run()


DOUBTFUL = {
    "many rows": "INSERT INTO tenant_1.t VALUES (2, NULL, NULL), (3, NULL, NULL)",
    "an update": "UPDATE tenant_1.t SET at = NULL",
    "a view": "INSERT INTO tenant_1.v VALUES (2, NULL), (3, NULL)",
    "a file": "LOAD DATA LOCAL INFILE '{file}' INTO TABLE tenant_1.t (id) SET at = NULL",
    "behind many warnings": "INSERT INTO tenant_1.t SELECT n + 10, IF(n > 1500, NULL, '0:0:0'), 'no' FROM tenant_1.n "
    "ORDER BY n",
    "behind too many": "INSERT INTO tenant_1.t SELECT n + 10, IF(n > 69990, NULL, '0:0:0'), 'no' FROM tenant_1.n "
    "ORDER BY n",
}

NUMBERS = {"behind many warnings": 2_000, "behind too many": 70_000}
"""Rows of the table n: MySQL counts 1,024 warnings by default, and keeps at most 65,535."""


@dataclass(frozen=True, slots=True)
class Lax:
    """A window of all doubtful statements, each in a lane of its own: how the lanes ended, by lane, and, when what the
    messages say was done, the times on the target, by database, and what differs."""

    errors: Sequence[str]
    times: Mapping[str, set[object]]
    differences: Sequence[str]


@pytest.fixture(scope="module")
def lax_window(shared_channel_of: ChannelOf, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Lax]:
    """By the session's setting."""

    @functools.cache
    def window(value: str) -> Lax:
        channel, file = shared_channel_of("mysql", "mysql"), tmp_path_factory.mktemp("lax") / "file"
        file.write_text("2\n3\n")
        databases = {case: database_of(case) for case in DOUBTFUL}
        toml = channel.channels / f"{CHANNEL}.toml"
        toml.write_text(toml.read_text().replace("count = 3\n", f"count = {len(databases)}\n"))
        channel.write_shard_list("".join(f"{name}={lane}\n" for lane, name in enumerate(databases.values())))
        numbers = "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < {}) SELECT n FROM r"
        many = ("SET SESSION cte_max_recursion_depth = 70000", f"CREATE TABLE tenant_1.n (n INT PRIMARY KEY) {numbers}")
        for case, name in databases.items():
            made = (
                *("CREATE DATABASE tenant_1", TABLE, "CREATE VIEW tenant_1.v AS SELECT id, at FROM tenant_1.t"),
                *(each.format(NUMBERS[case]) for each in many if case in NUMBERS),
                "INSERT INTO tenant_1.t VALUES (1, FROM_UNIXTIME(1600000000), NULL)",
            )
            channel.on_both(*in_database(name, *made))
        for server in (channel.source, channel.target):
            server.query("SET GLOBAL local_infile = ON")
        try:
            for case, name in databases.items():
                [text] = in_database(name, DOUBTFUL[case].format(file=file))
                with contextlib.closing(channel.source.connect(autocommit=True, local_infile=True)) as connection:
                    for each in (BY_STATEMENT, value, "SET SESSION sql_mode = ''", at(AT), text):
                        with connection.cursor() as cursor:
                            cursor.execute(each)
            errors = ends_of_lanes(channel)
            # what the message says
            if value == OFF:
                channel.target.query("SET GLOBAL explicit_defaults_for_timestamp = OFF")
            else:
                toml.write_text(f"{toml.read_text()}allow_unsafe = true\n")
            assert channel.run() is not None
        finally:
            channel.target.query("SET GLOBAL explicit_defaults_for_timestamp = ON")
            for server in (channel.source, channel.target):
                server.query("SET GLOBAL local_infile = OFF")
        times = {name: {when for _, when, _ in rows(channel, name)} for name in databases.values()}
        return Lax(errors, times, compare(channel.source, channel.target).differences)

    return window


def ends_of_lanes(channel: Channel) -> list[str]:
    """Run a window as far as its lanes come: each one's error, "" for none."""
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])

    def end(lane: int) -> str:
        try:
            steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], lane)
        except ApplyError as exc:
            return str(exc)
        return ""

    with ThreadPoolExecutor(len(adopted["lanes"])) as pool:
        return list(pool.map(end, sorted(each["lane"] for each in adopted["lanes"])))


@pytest.mark.parametrize("case", DOUBTFUL)
@pytest.mark.parametrize("value", [ON, OFF], ids=["ON", "OFF"])
def test_a_null_that_a_lax_session_has_stored_either_way_is_named(
    lax_window: Callable[[str], Lax], case: str, value: str
) -> None:
    window = lax_window(value)
    error = window.errors[list(DOUBTFUL).index(case)]
    assert "NULL for the TIMESTAMP column at, which must not be NULL" in error
    assert window.differences == ()
    assert (AT in window.times[database_of(case)]) == (value == OFF)


def test_other_nulls_of_a_lax_session_are_what_they_are_everywhere(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(
        channel.source,
        *("CREATE DATABASE tenant_1", TABLE, BY_STATEMENT, "SET SESSION sql_mode = ''", at(AT)),
        "CREATE TABLE tenant_1.d (id INT NOT NULL, at DATETIME NOT NULL)",
        "INSERT INTO tenant_1.t VALUES (1, '2038-99-99', NULL), (2, DEFAULT, NULL)",
        "INSERT INTO tenant_1.d SELECT NULL, may FROM tenant_1.t",
        "INSERT INTO tenant_1.d VALUES (NULL, NULL), (1, NULL)",
    )
    assert channel.run() is not None
    channel.assert_equal()


def test_what_a_rollback_has_left_is_not_written_twice(
    anonymous_mysql: tuple[PrivateServer, PrivateServer], tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> None:
    channel = fresh_channel(*anonymous_mysql, tmp_path, clean_servers)
    channel.write_channel("allow_nontransactional = true\n")
    run_on(
        channel.source,
        *("CREATE DATABASE tenant_1", BY_STATEMENT, OFF, TABLE, "CREATE TABLE tenant_1.m (id INT) ENGINE=MyISAM"),
        # behind a change that can be rolled back it is logged with this transaction, not by itself
        *("BEGIN", "INSERT INTO tenant_1.t (id) VALUES (1)", "INSERT INTO tenant_1.m VALUES (1)"),
        *("INSERT INTO tenant_1.t VALUES (2, NULL, NULL)", "COMMIT"),
    )
    with pytest.raises(ApplyError, match=REFUSED):
        channel.run()
    assert channel.target.query("SELECT id FROM tenant_1.m") == [(1,)]


NOW = 20231114221320
NULLS = "INSERT INTO tenant_1.t VALUES (1, NULL, NULL)"


def test_of_mariadb_it_is_the_current_time_whatever_the_variable_says(channel_of: ChannelOf) -> None:
    """The server does not ask the variable, which it logs with each statement: MySQL has to work with OFF."""
    channel = channel_of("mariadb", "mysql")
    channel.on_both("CREATE DATABASE tenant_1 CHARACTER SET latin1", "CREATE TABLE tenant_1.other (id INT PRIMARY KEY)")
    assert channel.source.query("SELECT @@global.explicit_defaults_for_timestamp") == [(1,)]
    for value in (ON, OFF):
        run_on(
            channel.source,
            *(value, BY_STATEMENT, "DROP TABLE IF EXISTS tenant_1.t", TABLE, at(AT), NULLS),
            *("INSERT INTO tenant_1.t VALUES (2, NULL, NULL), (3, 0, NULL), (4, 0, NULL)", "SET SESSION sql_mode = ''"),
            *(at(AT + 1), "INSERT IGNORE INTO tenant_1.t VALUES (5, NULL, NULL), (6, NULL, NULL)"),
            *("BEGIN", "INSERT INTO tenant_1.other VALUES (1)", "UPDATE tenant_1.t SET at = NULL WHERE id = 3"),
            *("DELETE FROM tenant_1.other", "COMMIT", "SET SESSION binlog_format = ROW"),
            "UPDATE tenant_1.t SET may = at WHERE id = 3",
            *(BY_STATEMENT, at(AT + 2), "UPDATE tenant_1.t SET at = NULL WHERE id = 4"),
        )
        assert channel.run() is not None
        times = [(1, AT), (2, AT), (3, AT + 1), (4, AT + 2), (5, AT + 1), (6, AT + 1)]
        assert [(number, when) for number, when, _ in rows(channel)] == times
        assert channel.source.query("SELECT id, UNIX_TIMESTAMP(at) FROM tenant_1.t ORDER BY id") == times


def test_of_mariadb_a_temporary_table_has_the_columns_that_its_definition_means(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mysql")
    copy = "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, a DATETIME, b DATETIME, c DATETIME)"
    channel.on_both("CREATE DATABASE tenant_1", copy)
    made = (
        "CREATE TEMPORARY TABLE tenant_1.x (id INT, a TIMESTAMP(6), b TIMESTAMP DEFAULT CURRENT_TIMESTAMP, "
        "c TIMESTAMP NOT NULL)"
    )
    for number, value in enumerate((ON, OFF)):
        run_on(
            channel.source,
            *(value, BY_STATEMENT, "SET SESSION time_zone = '+00:00'", "SET SESSION sql_mode = ''", at(AT)),
            *(f"INSERT INTO tenant_1.u (id) VALUES ({number})", made, "INSERT INTO tenant_1.x (id) VALUES (10)"),
            "INSERT INTO tenant_1.x VALUES (20, NULL, NULL, NULL)",
            f"INSERT INTO tenant_1.u SELECT {number} + id, a, b, c FROM tenant_1.x ORDER BY id",
            "DROP TEMPORARY TABLE tenant_1.x",
        )
    run_on(
        channel.source,
        *(ON, BY_STATEMENT, "SET SESSION time_zone = '+00:00'", "SET SESSION sql_mode = 'TRADITIONAL'", at(AT)),
        "CREATE TEMPORARY TABLE tenant_1.k (ts TIMESTAMP PRIMARY KEY, v TIMESTAMP NOT NULL)",
        "INSERT INTO tenant_1.k VALUES ('2020-01-01', NULL)",
        "INSERT INTO tenant_1.u SELECT 2, ts, v, NULL FROM tenant_1.k",
        "DROP TEMPORARY TABLE tenant_1.k",
    )
    assert channel.run() is not None
    query = "SELECT id, a IS NULL, b IS NULL, 0 + c FROM tenant_1.u WHERE id > 9 ORDER BY id"
    found = channel.source.query(query)
    assert found == [(10, 1, 0, 0), (11, 0, 0, 0), (20, 1, 1, NOW), (21, 0, 0, NOW)]
    assert channel.target.query(query) == found
    whole = "SELECT * FROM tenant_1.u ORDER BY id"
    assert channel.target.query(whole) == channel.source.query(whole)


LAX = "SET SESSION sql_mode = ''"
ZEROED = {
    "IGNORE": ("INSERT IGNORE INTO tenant_1.t (id, at) VALUES (1, NULL)",),
    "IGNORE of all columns": ("INSERT IGNORE INTO tenant_1.t VALUES (1, NULL, NULL)",),
    "IGNORE, SET": ("INSERT IGNORE INTO tenant_1.t SET id = 1, at = NULL",),
    "many rows": (LAX, "INSERT INTO tenant_1.t VALUES (1, NOW(), NULL), (2, NULLIF(1, 1), NULL)"),
    "an update": (LAX, "INSERT INTO tenant_1.t VALUES (1, NOW(), NULL)", "UPDATE tenant_1.t SET at = may"),
    "a duplicate": (
        *(LAX, "INSERT INTO tenant_1.t VALUES (1, NOW(), NULL)"),
        "INSERT INTO tenant_1.t (id) VALUES (1), (2) ON DUPLICATE KEY UPDATE at = NULL",
    ),
    "a query": (LAX, "INSERT INTO tenant_1.t (id, at) SELECT 1, NULL"),
    "a renamed table": (LAX, "RENAME TABLE tenant_1.t TO tenant_1.u", "UPDATE tenant_1.u SET at = NULL"),
}
STORED = (
    "INSERT IGNORE INTO tenant_1.t VALUES (1, NOW(), NULL), (2, '2020-01-01', NULL), (3, DEFAULT, NULL)",
    *("INSERT IGNORE INTO tenant_1.t (id, may) VALUES (4, NULL)", LAX, "UPDATE tenant_1.t SET may = NULL, at = at"),
    "INSERT INTO tenant_1.t (id, at, may) SELECT 5, at, NULL FROM tenant_1.t WHERE id = 1 ORDER BY id",
    "INSERT INTO tenant_1.t VALUES (5, NOW(), NULL) ON DUPLICATE KEY UPDATE at = VALUES(at), may = NULL",
    *("UPDATE tenant_1.t SET at = CURRENT_TIMESTAMP WHERE id = 4", "SET SESSION sql_mode = DEFAULT"),
    "UPDATE tenant_1.t SET at = may WHERE id = 9",
)


@pytest.mark.parametrize("case", ZEROED)
def test_a_null_that_mysql_has_made_0_is_named_for_mariadb(channel_of: ChannelOf, case: str) -> None:
    """MariaDB stores the current time for it, without a warning."""
    channel = channel_of("mysql", "mariadb")
    channel.on_both("CREATE DATABASE tenant_1 CHARACTER SET latin1", TABLE)
    run_on(channel.source, BY_STATEMENT, *ZEROED[case])
    with pytest.raises(PrecheckError, match=r"found tenant_1\.[tu]\.at; MySQL has stored 0 .* \[session-variables\]"):
        channel.run()
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    last = "u" if case == "a renamed table" else "t"
    found = channel.source.query(f"SELECT at + 0 FROM tenant_1.{last} ORDER BY at LIMIT 1")
    assert found in ([], [(0,)])


def test_what_is_never_null_goes_to_mariadb(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mariadb")
    channel.on_both("CREATE DATABASE tenant_1 CHARACTER SET latin1", TABLE)
    run_on(channel.source, BY_STATEMENT, at(AT), *STORED)
    assert channel.run() is not None
    found = channel.source.query("SELECT id, UNIX_TIMESTAMP(at) FROM tenant_1.t ORDER BY id")
    assert [(number, when) for number, when, _ in rows(channel)] == found
    assert len(found) == 5


def test_with_off_both_families_store_the_current_time(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mariadb")
    channel.on_both("CREATE DATABASE tenant_1 CHARACTER SET latin1", TABLE)
    channel.source.query("SET GLOBAL explicit_defaults_for_timestamp = OFF")
    try:
        run_on(
            channel.source, BY_STATEMENT, LAX, at(AT), "INSERT INTO tenant_1.t VALUES (1, NULL, NULL), (2, NULL, NULL)"
        )
        assert channel.run() is not None
    finally:
        channel.source.query("SET GLOBAL explicit_defaults_for_timestamp = ON")
    assert [(number, when) for number, when, _ in rows(channel)] == [(1, AT), (2, AT)]
