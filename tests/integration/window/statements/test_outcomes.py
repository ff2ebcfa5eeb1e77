"""Statements that ended with an error, transactions rolled back, ALTERs in two phases: from server to server."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlane.errors import PrecheckError
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

ALLOWED = "allow_nontransactional = true\n"
TABLES = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.kept (id INT PRIMARY KEY, s VARCHAR(20)) ENGINE=MyISAM",
    "CREATE TABLE tenant_1.undone (id INT PRIMARY KEY, s VARCHAR(20)) ENGINE=InnoDB",
)
BY_STATEMENT = "SET SESSION binlog_format = STATEMENT"
MIXED = (
    (BY_STATEMENT, "INSERT INTO tenant_1.kept VALUES (1, 'a'), (2, 'b'), (1, 'twice'), (3, 'never')"),
    (
        *(BY_STATEMENT, "BEGIN", "INSERT INTO tenant_1.undone VALUES (10, 'never')"),
        *("INSERT INTO tenant_1.kept VALUES (10, 'stays')", "ROLLBACK"),
    ),
    (
        *(BY_STATEMENT, "BEGIN", "INSERT INTO tenant_1.undone VALUES (11, 'a')", "SAVEPOINT sp"),
        *("INSERT INTO tenant_1.undone VALUES (12, 'never')", "INSERT INTO tenant_1.kept VALUES (12, 'stays')"),
        *("ROLLBACK TO sp", "INSERT INTO tenant_1.undone VALUES (13, 'b')", "COMMIT"),
    ),
    (
        # a user's savepoint with the name of binlane's own
        *(BY_STATEMENT, "BEGIN", "INSERT INTO tenant_1.undone VALUES (16, 'never')"),
        *("INSERT INTO tenant_1.kept VALUES (16, 'stays')", "SAVEPOINT `binlane: rolled back on the source`"),
        *("INSERT INTO tenant_1.undone VALUES (17, 'never')", "ROLLBACK"),
    ),
    ("BEGIN", "INSERT INTO tenant_1.undone VALUES (14, 'c')", "SAVEPOINT sp",
     "INSERT INTO tenant_1.undone VALUES (15, 'never')", "ROLLBACK TO sp", "COMMIT"),
)  # fmt: skip
KEPT = [(1, "a"), (2, "b"), (10, "stays"), (12, "stays"), (16, "stays")]
UNDONE = [(11, "a"), (13, "b"), (14, "c")]


def sessions(server: PrivateServer, *groups: tuple[str, ...]) -> None:
    """Each group in a session of its own; what a statement's error leaves behind is what the log is about."""
    for group in groups:
        with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for statement in group:
                with contextlib.suppress(pymysql.err.IntegrityError, pymysql.err.OperationalError):
                    cursor.execute(statement)


def mixed(channel: Channel) -> list[tuple[Any, ...]]:
    """What both tables hold on each server behind the windows."""
    channel.write_channel(ALLOWED)
    channel.on_both(*TABLES)
    sessions(channel.source, *MIXED)
    assert channel.run() is not None
    return [
        tuple(sorted(server.query(f"SELECT * FROM tenant_1.{table}")) for table in ("kept", "undone"))
        for server in (channel.source, channel.target)
    ]


def test_errors_and_rollbacks_leave_the_same_rows_on_mariadb(channel: Channel) -> None:
    assert mixed(channel) == [(KEPT, UNDONE), (KEPT, UNDONE)]


def test_a_rolled_back_transaction_may_make_and_drop_temporary_tables(channel: Channel) -> None:
    """No server has them before the window, so no definition of theirs is asked for."""
    channel.write_channel(ALLOWED)
    channel.on_both(*TABLES)
    tables = ("tenant_1.own", "tenant_1.kept")
    group = [BY_STATEMENT, "BEGIN"]
    for number, table in enumerate(tables):
        # the second has the name of a table that is there
        group += [
            f"CREATE TEMPORARY TABLE {table} (id INT, s VARCHAR(20)) ENGINE=InnoDB",
            f"INSERT INTO {table} VALUES ({number}, 'own')",
            f"INSERT INTO tenant_1.undone SELECT id + 20, s FROM {table}",
            f"DROP TEMPORARY TABLE {table}",
            f"INSERT INTO tenant_1.kept VALUES ({number}, 'stays')",
        ]
    sessions(channel.source, (*group, "ROLLBACK"))
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT * FROM tenant_1.kept ORDER BY id") == [(0, "stays"), (1, "stays")]


BEHIND = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.kept (id INT PRIMARY KEY, s VARCHAR(20)) ENGINE=MyISAM",
    "CREATE TABLE tenant_1.journal (id INT PRIMARY KEY, s VARCHAR(20)) ENGINE=MyISAM",
    "CREATE TABLE tenant_1.undone (id INT PRIMARY KEY, s VARCHAR(20)) ENGINE=InnoDB",
    "CREATE FUNCTION tenant_1.noted (n INT) RETURNS VARCHAR(20) DETERMINISTIC "
    "BEGIN INSERT INTO tenant_1.journal VALUES (n, 'noted'); RETURN 'by noted'; END",
    "CREATE TRIGGER tenant_1.follow AFTER INSERT ON tenant_1.undone FOR EACH ROW "
    "INSERT INTO tenant_1.journal VALUES (NEW.id, 'follows')",
)
"""Tables without transactions that statements change behind a function and behind a trigger."""
HALF_WAY = (
    # its third row is there already
    (BY_STATEMENT, "INSERT INTO tenant_1.kept VALUES (1, tenant_1.noted(1)), (2, tenant_1.noted(2)), (1, 'never')"),
    # the function itself fails, after it has changed a row
    (BY_STATEMENT, "INSERT INTO tenant_1.kept VALUES (3, tenant_1.noted(3)), (4, tenant_1.noted(3))"),
    (BY_STATEMENT, "INSERT INTO tenant_1.undone VALUES (10, 'never'), (11, 'never'), (10, 'never')"),
    (
        *(BY_STATEMENT, "BEGIN", "INSERT INTO tenant_1.undone VALUES (20, tenant_1.noted(21))"),
        *("INSERT INTO tenant_1.undone VALUES (22, 'never'), (20, 'never')", "ROLLBACK"),
    ),
    (
        *(BY_STATEMENT, "BEGIN", "INSERT INTO tenant_1.undone VALUES (30, 'stays')"),
        *("INSERT INTO tenant_1.undone VALUES (31, tenant_1.noted(32)), (30, 'never')", "COMMIT"),
    ),
)
"""On MySQL with GTIDs, which lets nobody mix engines, the last three do nothing."""


def half_way(channel: Channel, *altered: str) -> None:
    """The tables on both servers, then ``altered`` on the target alone, then the statements on the source."""
    channel.write_channel(ALLOWED)
    channel.on_both(*BEHIND)
    run_on(channel.target, *altered, log=False)
    sessions(channel.source, *HALF_WAY)


def rows_behind(server: PrivateServer) -> dict[str, list[tuple[Any, ...]]]:
    tables = ("kept", "journal", "undone")
    return {table: sorted(server.query(f"SELECT * FROM tenant_1.{table}")) for table in tables}


LEFT = {
    "kept": [(1, "by noted"), (2, "by noted"), (3, "by noted")],
    "journal": [
        *((n, "noted") for n in (1, 2, 3)), (10, "follows"), (11, "follows"), (20, "follows"), (21, "noted"),
        (22, "follows"), (30, "follows"), (31, "follows"), (32, "noted"),
    ],
    "undone": [(30, "stays")],
}  # fmt: skip


def test_what_a_failed_statement_changed_behind_a_function_or_trigger_stays_on_mariadb(channel: Channel) -> None:
    half_way(channel)
    assert channel.run() is not None
    assert (rows_behind(channel.source), rows_behind(channel.target)) == (LEFT, LEFT)


@requires_mysql
def test_what_a_failed_statement_changed_behind_a_function_or_trigger_stays_on_mysql(
    anonymous_mysql: tuple[PrivateServer, PrivateServer], tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> None:
    channel = fresh_channel(*anonymous_mysql, tmp_path, clean_servers)
    half_way(channel)
    assert channel.run() is not None
    assert (rows_behind(channel.source), rows_behind(channel.target)) == (LEFT, LEFT)


@requires_mysql
def test_what_a_failed_statement_changed_behind_a_function_stays_on_a_target_with_gtids(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    half_way(channel)
    assert channel.run() is not None
    left = {"kept": LEFT["kept"], "journal": LEFT["journal"][:3], "undone": []}
    assert (rows_behind(channel.source), rows_behind(channel.target)) == (left, left)


def test_another_kind_of_engine_behind_a_function_or_trigger_is_named_before_anything_is_written(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """The statements do not name the journal, and those of the second window no function either."""
    half_way(channel, "ALTER TABLE tenant_1.journal ENGINE=InnoDB")
    before = rows_behind(channel.target)
    assert channel.cli("run", CHANNEL) == 1
    assert "tenant_1.journal: engine: expected a kind as on the source (MyISAM)" in capsys.readouterr().err
    assert rows_behind(channel.target) == before
    channel.target.query("ALTER TABLE tenant_1.journal ENGINE=MyISAM")
    assert channel.run() is not None
    channel.target.query("ALTER TABLE tenant_1.journal ENGINE=InnoDB")
    sessions(channel.source, (BY_STATEMENT, "INSERT INTO tenant_1.undone VALUES (40, 'never'), (40, 'never')"))
    assert channel.cli("run", CHANNEL) == 1
    assert "tenant_1.journal: engine: expected a kind as on the source (MyISAM)" in capsys.readouterr().err


def test_another_outcome_of_a_failed_statement_stops_the_lane_and_names_both(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "CREATE OR REPLACE FUNCTION tenant_1.noted (n INT) RETURNS VARCHAR(20) DETERMINISTIC RETURN 'other'"
    half_way(channel, other)
    assert channel.cli("run", CHANNEL) == 1
    assert "function tenant_1.noted: expected the source's, found another body" in capsys.readouterr().err
    channel.write_channel(f"{ALLOWED}allow_unsafe = true\n")
    assert channel.cli("run", CHANNEL) == 1
    said = capsys.readouterr().err
    assert "ended with error 1062 on the source, and without an error on the target" in said, said


def test_which_rows_a_failed_statement_took_first_is_the_source_s_own(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """The servers have the same rows, stored in another order: each fails behind other rows."""
    channel.write_channel(ALLOWED)
    tables = ("CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.read_from (id INT) ENGINE=MyISAM", TABLES[1])
    channel.on_both(*tables, "INSERT INTO tenant_1.kept VALUES (2, 'there')")
    for server, order in ((channel.source, "(1), (2), (3)"), (channel.target, "(3), (2), (1)")):
        run_on(server, f"INSERT INTO tenant_1.read_from VALUES {order}", log=False)
    sessions(channel.source, (BY_STATEMENT, "INSERT INTO tenant_1.kept SELECT id, 'read' FROM tenant_1.read_from"))
    assert channel.cli("run", CHANNEL) == 1
    assert "expected what every server answers alike, found an error after rows in" in capsys.readouterr().err
    assert channel.target.query("SELECT id FROM tenant_1.kept") == [(2,)]
    channel.write_channel(f"{ALLOWED}allow_unsafe = true\n")
    assert channel.run() is not None
    found = [sorted(each.query("SELECT id FROM tenant_1.kept")) for each in (channel.source, channel.target)]
    assert found == [[(1,), (2,)], [(2,), (3,)]]


@requires_mysql
def test_errors_and_rollbacks_leave_the_same_rows_on_mysql(
    anonymous_mysql: tuple[PrivateServer, PrivateServer], tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> None:
    assert mixed(fresh_channel(*anonymous_mysql, tmp_path, clean_servers)) == [(KEPT, UNDONE), (KEPT, UNDONE)]


def test_another_kind_of_engine_on_the_target_is_named_before_anything_is_written(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """The statement's error would undo all of it there: two rows would be lost without a word."""
    channel.write_channel(ALLOWED)
    channel.on_both(*TABLES)
    channel.target.query("ALTER TABLE tenant_1.kept ENGINE=InnoDB")
    sessions(channel.source, MIXED[0])
    assert channel.cli("run", CHANNEL) == 1
    said = capsys.readouterr().err
    assert "tenant_1.kept: engine: expected a kind as on the source (MyISAM), found InnoDB" in said
    assert channel.target.query("SELECT * FROM tenant_1.kept") == []


@requires_mysql
def test_a_target_with_gtids_keeps_what_a_statement_without_transactions_had_done_when_it_failed(
    channel_of: ChannelOf,
) -> None:
    channel = channel_of("mysql", "mysql")
    channel.write_channel(ALLOWED)
    channel.on_both(*TABLES)
    sessions(channel.source, MIXED[0])
    assert channel.run() is not None
    for server in (channel.source, channel.target):
        assert server.query("SELECT id, s FROM tenant_1.kept ORDER BY id") == KEPT[:2]


def test_an_alter_in_two_phases_is_done_once_and_one_taken_back_is_not_done(channel: Channel) -> None:
    two_phase = "SET SESSION binlog_alter_two_phase = 1"
    table = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, s INT)"
    sessions(
        channel.source,
        ("CREATE DATABASE tenant_1", table, "INSERT INTO tenant_1.t VALUES (1, 7), (2, 7)"),
        (two_phase, "ALTER TABLE tenant_1.t ADD COLUMN once INT NOT NULL DEFAULT 4, ALGORITHM=COPY"),
        (two_phase, "ALTER TABLE tenant_1.t ADD UNIQUE KEY never (s), ALGORITHM=COPY"),
        ("INSERT INTO tenant_1.t VALUES (3, 8, 9)",),
    )
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT * FROM tenant_1.t ORDER BY id") == [(1, 7, 4), (2, 7, 4), (3, 8, 9)]


def test_a_drop_of_which_some_tables_were_missing_drops_the_others(channel: Channel) -> None:
    table = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)"
    sessions(channel.source, ("CREATE DATABASE tenant_1", table, "DROP TABLE tenant_1.t, tenant_1.missing"))
    assert channel.run() is not None
    assert channel.target.query("SELECT table_name FROM information_schema.tables WHERE table_schema='tenant_1'") == []


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_default_database_that_is_gone_or_left_out_is_none_where_every_name_is_whole(
    family: str, channel_of: ChannelOf
) -> None:
    """The source's session is still in it, and logs its name; a replica does not look for it."""
    channel = channel_of(family, family)
    channel.write_channel("[filter]\nexclude_databases = ['office']\n")
    table = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(20))"
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE DATABASE tenant_2", "CREATE DATABASE office", table)
    for database in ("tenant_2", "office"):
        with contextlib.closing(channel.source.connect(autocommit=True, database=database)) as connection:
            if database == "tenant_2":
                channel.source.query("DROP DATABASE tenant_2")
            for statement in (
                BY_STATEMENT,
                f"INSERT INTO tenant_1.t (s) VALUES ('{database}')",
                "UPDATE tenant_1.t SET s = CONCAT(s, '+')",
                f"CREATE TABLE tenant_1.of_{database} (id INT)",
                f"CREATE VIEW tenant_1.seen_{database} AS SELECT id FROM tenant_1.t",
            ):
                with connection.cursor() as cursor:
                    cursor.execute(statement)
    assert channel.run() is not None
    for query in ("SELECT * FROM tenant_1.t ORDER BY id", "SHOW TABLES FROM tenant_1"):
        assert channel.target.query(query) == channel.source.query(query)
    assert channel.target.query("SELECT s FROM tenant_1.t ORDER BY id") == [("tenant_2++",), ("office+",)]


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_statement_that_asks_for_a_default_database_that_is_left_out_is_named_before_the_window(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    channel.write_channel("[filter]\nexclude_databases = ['office']\n")
    table = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, s VARCHAR(20))"
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE DATABASE office", table)
    sessions(channel.source, ("USE office", BY_STATEMENT, "INSERT INTO tenant_1.t VALUES (1, DATABASE())"))
    assert channel.cli("run", CHANNEL) == 1
    said = capsys.readouterr().err
    assert "[default-databases]" in said
    assert "found office, which the target does not have and the filter leaves out" in said
    assert channel.target.query("SHOW DATABASES LIKE 'tenant_1'") == []
    [way_out] = re.findall(r"(CREATE DATABASE `office`) on the target", said)
    channel.target.query(way_out)
    assert channel.run() is not None
    assert channel.target.query("SELECT * FROM tenant_1.t") == [(1, "office")]


def test_a_drop_in_a_default_database_that_the_target_does_not_have_drops_nothing(channel_of: ChannelOf) -> None:
    """MariaDB logs it for the tables that a failed DROP DATABASE has dropped; its replica drops nothing."""
    channel = channel_of("mariadb", "mariadb")
    run_on(channel.source, "CREATE DATABASE gone", log=False)
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT)")
    with contextlib.closing(channel.source.connect(autocommit=True, database="gone")) as connection:
        for statement in ("DROP TABLE IF EXISTS t, `t 2`", "INSERT INTO tenant_1.t VALUES (1)"):
            with connection.cursor() as cursor:
                cursor.execute(statement)
    run_on(channel.source, "DROP DATABASE gone", log=False)
    assert channel.run() is not None
    channel.assert_equal()


def test_an_unsafe_statement_stops_the_window_unless_the_channel_allows_it(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    table = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, s VARCHAR(36))"
    channel.on_both("CREATE DATABASE tenant_1", table)
    sessions(channel.source, (BY_STATEMENT, "INSERT INTO tenant_1.t VALUES (1, UUID())"))
    assert channel.cli("run", CHANNEL) == 1
    assert "expected what every server answers alike, found UUID()" in capsys.readouterr().err
    assert channel.target.query("SELECT id FROM tenant_1.t") == []
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    assert channel.target.query("SELECT id FROM tenant_1.t") == [(1,)]


def function_of(default: str) -> str:
    """What a finding names of it."""
    return default.strip("(").partition("(")[0]


DEFAULTS = {"uuid": "UUID()", "rand": "(RAND() + 1)", "nextval": "NEXTVAL(tenant_nextval.s)"}


@pytest.fixture(scope="module")
def defaults_named(shared_channel_of: ChannelOf) -> list[str]:
    """The lines of the refusal of a window that adds a column with each of the defaults."""
    channel = shared_channel_of("mariadb", "mariadb")
    for case, default in DEFAULTS.items():
        run_on(
            channel.source,
            f"CREATE DATABASE {database_of(case)}",
            f"CREATE SEQUENCE {database_of(case)}.s",
            f"CREATE TABLE {database_of(case)}.t (id INT PRIMARY KEY, c VARCHAR(40) DEFAULT {default})",
            f"INSERT INTO {database_of(case)}.t (id) VALUES (1)",
        )
    assert channel.run() is not None
    channel.assert_equal()
    for case, default in DEFAULTS.items():
        run_on(channel.source, f"ALTER TABLE {database_of(case)}.t ADD d VARCHAR(40) DEFAULT {default}")
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    return str(refused.value).splitlines()


@pytest.mark.parametrize("case", DEFAULTS)
def test_a_new_column_whose_default_differs_from_server_to_server_stops_the_window(
    defaults_named: list[str], case: str
) -> None:
    """MySQL refuses it itself (1674); of a new row the log has the value."""
    said = (
        rf"found {function_of(DEFAULTS[case])}\(\) as the default of a new column; each server fills .*`binlane recopy"
    )
    assert [line for line in defaults_named if re.search(said, line)], "\n".join(defaults_named)


REFUSED = {"uuid": "UUID()", "rand": "RAND()", "encrypted": "AES_ENCRYPT('a', 'key')"}
TAKEN = {"connection": "CONNECTION_ID()", "pi": "PI()"}
ONE_TABLE = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)"


@dataclass(frozen=True, slots=True)
class Defaults:
    """What windows with new columns of all cases have said, and which columns the target has got, by case."""

    lines: list[str]
    columns: Mapping[str, object]


@pytest.fixture(scope="module")
def defaults_refused(shared_channel_of: ChannelOf) -> Defaults:
    channel = shared_channel_of("mysql", "mysql")
    channel.write_channel("allow_unsafe = true\n")
    for case, default in REFUSED.items():
        channel.on_both(*in_database(database_of(case), "CREATE DATABASE tenant_1", ONE_TABLE))
        altered = f"ALTER TABLE {database_of(case)}.t ADD c VARBINARY(99) DEFAULT ({default})"
        sessions(channel.source, (BY_STATEMENT, altered))
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    columns = {each: channel.target.query(f"SHOW COLUMNS FROM {database_of(each)}.t LIKE 'c'") for each in REFUSED}
    return Defaults(str(refused.value).splitlines(), columns)


@requires_mysql
@pytest.mark.parametrize("case", REFUSED)
def test_a_new_column_that_a_mysql_target_refuses_is_named_whatever_the_channel_allows(
    defaults_refused: Defaults, case: str
) -> None:
    """A source with binlog_format = STATEMENT alone has logged it; lanes of a target with a log never have that."""
    named = rf"found {function_of(REFUSED[case])}\(\) as the default of a new column; "
    said = rf"{named}a MySQL target .* \(1674\), with allow"
    assert [line for line in defaults_refused.lines if re.search(said, line)], "\n".join(defaults_refused.lines)
    assert defaults_refused.columns[case] == []


@requires_mysql
def test_a_new_column_that_a_mysql_target_takes_is_named_unless_every_server_fills_it_alike(
    channel_of: ChannelOf,
) -> None:
    channel = channel_of("mysql", "mysql")
    channel.write_channel("allow_unsafe = true\n")
    altered = "ALTER TABLE {}.t ADD {} VARBINARY(99) DEFAULT ({})"
    for case, default in TAKEN.items():
        channel.on_both(*in_database(database_of(case), "CREATE DATABASE tenant_1", ONE_TABLE))
        sessions(channel.source, (BY_STATEMENT, altered.format(database_of(case), "c", default)))
    assert channel.run() is not None
    channel.assert_equal()
    channel.write_channel("allow_unsafe = false\n")
    sessions(channel.source, (BY_STATEMENT, altered.format(database_of("pi"), "d", TAKEN["pi"])))
    assert channel.run() is not None
    sessions(channel.source, (BY_STATEMENT, altered.format(database_of("connection"), "d", TAKEN["connection"])))
    with pytest.raises(PrecheckError, match="as the default of a new column; each server fills"):
        channel.run()


@pytest.mark.parametrize("flavor", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_tables_without_transactions_that_only_statements_write_are_named(
    capsys: pytest.CaptureFixture[str], flavor: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(flavor, flavor)
    for server, engine in ((channel.source, "InnoDB"), (channel.target, "MyISAM")):
        tables = (f"CREATE TABLE tenant_1.{name} (id INT PRIMARY KEY, n INT) ENGINE={engine}" for name in "wra")
        rows = (f"INSERT INTO tenant_1.{name} VALUES (1, 1), (2, 2)" for name in "wra")
        run_on(server, "CREATE DATABASE tenant_1", *tables, *rows, log=False)
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "UPDATE tenant_1.w JOIN tenant_1.r USING (id) SET w.n = r.n + 1",
        # hides the other one from this session, and perhaps from no other
        "CREATE TEMPORARY TABLE tenant_1.a (id INT)",
        "INSERT INTO tenant_1.a VALUES (3)",
        "DROP TEMPORARY TABLE tenant_1.a",
    )

    assert channel.cli("run", CHANNEL) == 1
    said = capsys.readouterr().err
    assert "tenant_1.w: engine: expected a transactional one, found MyISAM" in said
    assert "tenant_1.r: engine" not in said
    assert "tenant_1.a: engine" in said

    if flavor == "mariadb":
        channel.write_channel(ALLOWED)
        assert channel.run() is not None
        assert channel.target.query("SELECT n FROM tenant_1.w ORDER BY id") == [(2,), (3,)]
