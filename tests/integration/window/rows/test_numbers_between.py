"""Numbers of AUTO_INCREMENT columns that other sessions take in the middle of a statement (statement format).

The log has the first number of a statement alone. Behind a trigger or function, and on MySQL for the rows of a query,
other sessions take numbers between those of one statement, and the target would give others than the source did.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, fresh_channel, run_on

BY_STATEMENT = "SET SESSION binlog_format = STATEMENT"
TABLES = (
    "CREATE DATABASE app",
    "CREATE TABLE app.numbered (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9))",
    "CREATE TABLE app.given (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9))",
    "CREATE TABLE app.source (id INT PRIMARY KEY, v VARCHAR(9))",
    "INSERT INTO app.source VALUES (1, 'a'), (2, 'b')",
    "CREATE TABLE app.logged (id INT PRIMARY KEY, v VARCHAR(9))",
    "CREATE TABLE app.copied (id INT PRIMARY KEY, v VARCHAR(9))",
    "CREATE TABLE app.own (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9))",
    "CREATE TABLE app.outer_one (id INT PRIMARY KEY)",
    "CREATE VIEW app.seen AS SELECT * FROM app.numbered",
    "CREATE TRIGGER app.log_it AFTER INSERT ON app.logged FOR EACH ROW INSERT INTO numbered (v) VALUES (NEW.v)",
    "CREATE TRIGGER app.log_more AFTER UPDATE ON app.logged FOR EACH ROW"
    " BEGIN IF NEW.v > 'm' THEN INSERT INTO numbered SET v = NEW.v; END IF; END",
    "CREATE TRIGGER app.log_gone AFTER DELETE ON app.logged FOR EACH ROW INSERT INTO seen (v) VALUES (OLD.v)",
    "CREATE TRIGGER app.copy_it AFTER INSERT ON app.copied FOR EACH ROW INSERT INTO given (id, v) VALUES (NEW.id, 'c')",
    "CREATE TRIGGER app.log_own AFTER INSERT ON app.own FOR EACH ROW INSERT INTO numbered (v) VALUES (NEW.v)",
    "CREATE TABLE app.original (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9))",
    "CREATE TABLE app.shadow (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9))",
    "CREATE TRIGGER app.shadow_it AFTER INSERT ON app.original FOR EACH ROW"
    " REPLACE INTO app.shadow (id, v) VALUES (NEW.id, NEW.v)",
    "CREATE TABLE app.late (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9))",
    "CREATE TRIGGER app.shadow_late BEFORE INSERT ON app.late FOR EACH ROW"
    " INSERT INTO app.shadow (v, id) VALUES (NEW.v, NEW.id)",
    "CREATE TABLE app.nulls (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9))",
    "CREATE TRIGGER app.shadow_null AFTER INSERT ON app.nulls FOR EACH ROW INSERT INTO app.shadow VALUES (NULL, NEW.v)",
    "CREATE TABLE app.fading (id INT PRIMARY KEY, v INT UNIQUE)",
    "INSERT INTO app.fading VALUES (1, 1), (2, 2)",
    "CREATE TRIGGER app.log_faded AFTER DELETE ON app.fading FOR EACH ROW INSERT INTO numbered (v) VALUES ('f')",
    "CREATE TRIGGER app.twice AFTER INSERT ON app.outer_one FOR EACH ROW"
    " BEGIN INSERT INTO logged VALUES (NEW.id, 'a'); INSERT INTO logged VALUES (NEW.id + 1, 'b'); END",
    "CREATE FUNCTION app.taken(v VARCHAR(9)) RETURNS INT DETERMINISTIC MODIFIES SQL DATA"
    " BEGIN INSERT INTO numbered (v) VALUES (v); RETURN LAST_INSERT_ID(); END",
    "INSERT INTO app.logged VALUES (101, 'a'), (102, 'b')",
    "DELETE FROM app.numbered",
)
CLEARED = "DELETE FROM app.logged WHERE id = 1"
BEHIND = {
    "several rows": "INSERT INTO app.logged VALUES (1, 'a'), (2, 'b')",
    "several rows of calls": "INSERT INTO app.logged VALUES (LEAST(1, 2), 'a'), (2, 'b')",
    "rows of a query": "INSERT INTO app.logged SELECT id, v FROM app.source ORDER BY id",
    "beside its own": "INSERT INTO app.own (v) VALUES ('a')",
    "a number that is not there yet": "INSERT INTO app.late (v) VALUES ('a')",
    "a NULL in place of a number": "INSERT INTO app.nulls (v) VALUES ('a')",
    "an update of rows": "UPDATE app.logged SET v = 'z' WHERE id > 1 ORDER BY id",
    "through a view": "DELETE FROM app.logged WHERE id > 100 ORDER BY id",
    "by two triggers": "INSERT INTO app.logged VALUES (101, 'z') ON DUPLICATE KEY UPDATE v = 'z'",
    "a row in place of another": "REPLACE INTO app.logged VALUES (101, 'z')",
    "a row in place of two": "REPLACE INTO app.fading VALUES (1, 2)",
    "a trigger of a trigger": "INSERT INTO app.outer_one VALUES (5)",
    "two calls": "INSERT INTO app.source VALUES (app.taken('a') + 100, app.taken('b'))",
    "a call for each row": "UPDATE app.source SET v = app.taken('a') WHERE id > 0 ORDER BY id",
}
EXACT = {
    "one row": "INSERT INTO app.logged VALUES (1, 'a')",
    "one row of SET": "INSERT INTO app.logged SET id = 1, v = 'a'",
    "one row of a query": "INSERT INTO app.logged SELECT id, v FROM app.source WHERE id = 2",
    "an update of one row": "UPDATE app.logged SET v = 'z' WHERE id = 101",
    "an update that takes none": "UPDATE app.logged SET v = 'c' WHERE id > 1 ORDER BY id",
    "a DELETE of one row": "DELETE FROM app.logged WHERE id = 102",
    "given numbers": "INSERT INTO app.copied VALUES (1, 'a'), (2, 'b')",
    "a copy of a table": "INSERT INTO app.original (v) VALUES ('a'), ('b')",
    "values": "INSERT INTO app.numbered (v) VALUES ('a'), ('b')",
    "a call": "SELECT app.taken('a')",
    "two calls, each of which the log has": "SELECT app.taken('a') + app.taken('b')",
    "a call for a value": "INSERT INTO app.source VALUES (7, app.taken('a'))",
    "for its own one row": "INSERT INTO app.numbered (v) SELECT v FROM app.source WHERE id = 2",
    "for its own an aggregate": "INSERT INTO app.numbered (v) SELECT MAX(v) FROM app.source",
    "numbers of a query": "INSERT INTO app.numbered SELECT id + 5, v FROM app.source ORDER BY id",
    "numbers that are not higher": "INSERT INTO app.numbered VALUES (NULL, 'a'), (5, 'b'), (NULL, 'c')",
    "numbers in front": "INSERT INTO app.numbered VALUES (500, 'b'), (NULL, 'a'), (DEFAULT, 'c')",
    "a table that it makes": "CREATE TABLE app.made (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9))"
    " SELECT v FROM app.source ORDER BY id",
}


OWN_ROWS = (
    "CREATE TEMPORARY TABLE app.own_rows (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9))",
    "INSERT INTO app.own_rows (v) SELECT v FROM app.source ORDER BY id",
    "INSERT INTO app.given SELECT id, v FROM app.own_rows ORDER BY id",
    "DROP TEMPORARY TABLE app.own_rows",
)
"""Of a temporary table, which other sessions do not see."""
OF_LOCKED_TABLES = (
    "CREATE TABLE app.locked (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9)) ENGINE = MyISAM",
    "INSERT INTO app.locked (v) SELECT v FROM app.source ORDER BY id",
)
"""Of a table that is made before the window, and a statement that locks it as a whole."""
SINGLE_ROWS = tuple(statement for name, statement in EXACT.items() if name.startswith("for its own"))


def run(channel: Channel, *statements: str) -> None:
    channel.on_both(*TABLES)
    number_from_77(channel)
    by_statement(channel, *statements)


def number_from_77(channel: Channel) -> None:
    run_on(channel.source, "ALTER TABLE app.numbered AUTO_INCREMENT = 77", log=False)


def by_statement(channel: Channel, *statements: str) -> None:
    with contextlib.closing(channel.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(BY_STATEMENT)
        for statement in statements:
            cursor.execute(statement)


def assert_same(channel: Channel) -> None:
    for table in ("numbered", "given", "logged", "copied", "source", "original", "shadow"):
        query = f"SELECT * FROM app.{table} ORDER BY id"
        assert channel.target.query(query) == channel.source.query(query)


FAMILIES = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])


def named(channel: Channel) -> list[str]:
    """The refused statements of the next window, each by its name in BEHIND."""
    with pytest.raises(PrecheckError, match=r"found an AUTO_INCREMENT of app\.\w+ of (trigger|function) ") as caught:
        channel.run()
    findings = [line for line in str(caught.value).splitlines() if "[numbers-between]" in line]
    return [name for line in findings for name, statement in BEHIND.items() if statement in line]


@FAMILIES
def test_numbers_behind_statements_are_named(channel_of: ChannelOf, family: str) -> None:
    channel = channel_of(family, family)
    cleared = ("SET sql_log_bin = 0", "DELETE FROM app.logged WHERE id < 100", "SET sql_log_bin = 1")
    run(channel, *(each for statement in BEHIND.values() for each in (*cleared, statement)))
    assert sorted(named(channel)) == sorted(BEHIND)
    assert channel.target.query("SELECT * FROM app.numbered") == []


@FAMILIES
def test_numbers_that_follow_from_the_log_are_applied(channel_of: ChannelOf, family: str) -> None:
    channel = channel_of(family, family)
    channel.on_both(*TABLES)
    with contextlib.closing(channel.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(BY_STATEMENT)
        for number, statement in enumerate(EXACT.values()):
            # others have taken numbers that were rolled back
            cursor.execute("SET sql_log_bin = 0")
            cursor.execute(f"ALTER TABLE app.numbered AUTO_INCREMENT = {1000 * (number + 1)}")
            cursor.execute("SET sql_log_bin = 1")
            cursor.execute(statement)
            cursor.execute(CLEARED)
    assert channel.run() is not None
    assert len(channel.target.query("SELECT * FROM app.numbered")) > len(EXACT)
    assert_same(channel)


ROWS_OF_A_QUERY = "INSERT INTO app.numbered (v) SELECT v FROM app.source ORDER BY id"


@FAMILIES
def test_numbers_that_the_source_gives_under_a_lock_are_applied(channel_of: ChannelOf, family: str) -> None:
    channel = channel_of(family, family)
    assert channel.source.query("SELECT @@innodb_autoinc_lock_mode") == [(1,)]
    run(channel, ROWS_OF_A_QUERY)
    assert channel.run() is not None
    assert_same(channel)


@FAMILIES
def test_numbers_without_a_lock_are_named_unless_no_other_session_can_take_some(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None], family: str
) -> None:
    """For the rows of queries and files, with the default of MySQL 8.0 and newer."""
    target = request.getfixturevalue(f"{family}_target")
    file = tmp_path / "rows.csv"
    file.write_text("a\nb\n")
    options = ("--innodb-autoinc-lock-mode=2", "--local-infile=1")
    with private_server(tmp_path / "data", Flavor(family), options, durable=False) as source:

        def clean(server: PrivateServer) -> None:
            if server is not source:
                clean_servers(server)

        channel = fresh_channel(source, target, tmp_path, clean)
        target.query("SET GLOBAL local_infile = 1")
        channel.write_channel("allow_nontransactional = true\n")
        channel.on_both("CREATE DATABASE app", OF_LOCKED_TABLES[0], "ALTER TABLE app.locked AUTO_INCREMENT = 9")
        channel.on_both(*(each for each in TABLES if not each.startswith("CREATE DATABASE")))
        number_from_77(channel)
        by_statement(channel, *OWN_ROWS, *SINGLE_ROWS, OF_LOCKED_TABLES[1])
        assert channel.run() is not None
        numbers = "SELECT id FROM app.locked ORDER BY id"
        assert channel.target.query(numbers) == channel.source.query(numbers) == [(9,), (10,)]
        assert_same(channel)
        commented = ROWS_OF_A_QUERY.replace(" SELECT", " /* VALUES ( */ SELECT")
        taken = [ROWS_OF_A_QUERY, commented, f"{ROWS_OF_A_QUERY} ON DUPLICATE KEY UPDATE v = VALUES(v)"]
        with source.connect(local_infile=True, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in (BY_STATEMENT, *taken, f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE app.numbered (v)"):
                cursor.execute(statement)
        with pytest.raises(
            PrecheckError, match=r"app\.numbered for the rows of a query or file, .*_lock_mode = 2"
        ) as at:
            channel.run()
        assert str(at.value).count("[numbers-between]") == 4


@FAMILIES
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO app.numbered VALUES (NULL, 'a'), (900, 'b'), (NULL, 'c')",
        "INSERT INTO app.numbered (v, id) VALUES ('a', DEFAULT), ('b),(', 900), ('c', 0)",
        "INSERT INTO app.numbered VALUES /* rows */ (NULL, 'a'), (900, 'b'), (NULL, 'c')",
        "INSERT INTO app.numbered VALUES (NULL, 'a') -- it's\n, (900, 'b') # '(\n, (NULL, 'c')",
        "INSERT /* SELECT ' */ INTO app.numbered VALUES (NULL, 'a'), (900, 'b'), (NULL, 'c')",
    ],
)
def test_a_number_behind_a_higher_one_is_named(channel_of: ChannelOf, family: str, statement: str) -> None:
    channel = channel_of(family, family)
    run(channel, statement)
    with pytest.raises(PrecheckError, match=r"found rows that take an AUTO_INCREMENT of app\.numbered behind one"):
        channel.run()


@FAMILIES
def test_an_archive_does_not_tell_whether_others_take_numbers_between(
    channel_of: ChannelOf, family: str, tmp_path: Path
) -> None:
    channel = channel_of(family, family)
    channel.on_both(*TABLES)
    archive = tmp_path / "archive"
    archive.mkdir()
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace('connection = "source_server"', f'archive = "{archive}"'))
    run_on(channel.target, "DROP DATABASE binlane", log=False)
    copy_log(channel.source, archive)
    channel.init()
    run_on(channel.source, BY_STATEMENT, "INSERT INTO app.numbered (v) SELECT v FROM app.source ORDER BY id")
    copy_log(channel.source, archive)
    with pytest.raises(PrecheckError, match="an archive does not tell"):
        channel.run()


def copy_log(server: PrivateServer, folder: Path) -> None:
    server.query("FLUSH BINARY LOGS")
    for name, *_ in server.query("SHOW BINARY LOGS"):
        shutil.copy(server.datadir / str(name), folder)


@requires_mysql
def test_rows_that_a_cascade_deletes_in_the_same_table_take_numbers_too(channel_of: ChannelOf) -> None:
    """Where the triggers of a cascade fire, which MySQL 9.6 and newer let a session choose, and log."""
    channel = channel_of("mysql", "mysql")
    channel.on_both(
        "CREATE DATABASE app",
        "CREATE TABLE app.numbered (id INT PRIMARY KEY AUTO_INCREMENT, v INT)",
        "CREATE TABLE app.tree (id INT PRIMARY KEY, up INT, "
        "FOREIGN KEY (up) REFERENCES app.tree (id) ON DELETE CASCADE)",
        "INSERT INTO app.tree VALUES (1, NULL), (2, 1), (3, 2), (7, NULL)",
        "CREATE TRIGGER app.gone AFTER DELETE ON app.tree FOR EACH ROW INSERT INTO app.numbered (v) VALUES (OLD.id)",
    )
    by_statement(channel, "SET SESSION enable_cascade_triggers = ON", "DELETE FROM app.tree WHERE id = 1")
    assert len(channel.source.query("SELECT * FROM app.numbered")) == 3
    with pytest.raises(PrecheckError, match=r"found an AUTO_INCREMENT of app\.numbered of trigger "):
        channel.run()
