"""Tables without transactions on a MySQL target that insists on GTIDs: each change by itself, once, or refused."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator

import pymysql
import pytest

from binlane.errors import DriftError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, in_database, run_on

pytestmark = requires_mysql
ALLOWED = "allow_nontransactional = true\n"
BY_STATEMENT = "SET SESSION binlog_format = STATEMENT"
TABLES = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.kept (id INT PRIMARY KEY, n INT, s VARCHAR(60)) ENGINE=MyISAM",
    "CREATE TABLE tenant_1.journal (s VARCHAR(60), n INT) ENGINE=MyISAM",
    "CREATE TABLE tenant_1.i (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(60)) ENGINE=InnoDB",
)


@pytest.fixture
def channel(channel_of: ChannelOf) -> Channel:
    """From MySQL to MySQL, with GTIDs on both sides."""
    return channel_of("mysql", "mysql")


def changes(word: str) -> Iterator[tuple[str, ...]]:
    """Rows and statements of both kinds of tables, tables made, changed, renamed: each group a session."""
    yield (
        f"INSERT INTO tenant_1.i (s) VALUES ('{word}')",
        f"INSERT INTO tenant_1.kept SELECT 1 + COALESCE(MAX(id), 0), 0, '{word}' FROM tenant_1.kept",
        f"INSERT INTO tenant_1.journal VALUES ('{word}', 1), ('{word}', 2)",
        "UPDATE tenant_1.kept SET n = n + 1",
        f"INSERT INTO tenant_1.i (s) VALUES ('{word}'), ('{word}')",
        "UPDATE tenant_1.i SET s = CONCAT(s, '+') WHERE id % 2 = 0",
    )
    yield (
        BY_STATEMENT,
        f"INSERT INTO tenant_1.journal VALUES ('{word} statement', 1)",
        "UPDATE tenant_1.kept SET n = n + 1",
        f"INSERT INTO tenant_1.i (s) VALUES ('{word} statement')",
        "UPDATE tenant_1.kept SET n = n + 1 WHERE id > 1",
    )
    yield (
        "CREATE TABLE tenant_1.made (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(40)) ENGINE=MyISAM",
        f"INSERT INTO tenant_1.made (s) VALUES ('{word}'), ('two')",
        "CREATE TABLE tenant_1.likeness LIKE tenant_1.made",
        "INSERT INTO tenant_1.likeness SELECT * FROM tenant_1.made ORDER BY 1",
        "ALTER TABLE tenant_1.i ENGINE=MyISAM",
        f"INSERT INTO tenant_1.i (s) VALUES ('{word} in MyISAM')",
        "ALTER TABLE tenant_1.i ENGINE=InnoDB",
        f"INSERT INTO tenant_1.i (s) VALUES ('{word} in InnoDB')",
        "RENAME TABLE tenant_1.made TO tenant_1.renamed",
        "UPDATE tenant_1.renamed SET s = CONCAT(s, '!')",
        "DROP TABLE tenant_1.renamed, tenant_1.likeness",
    )


def run_changes(channel: Channel, word: str) -> None:
    for group in changes(word):
        run_on(channel.source, *group)


def test_tables_without_transactions_are_written_beside_others(channel: Channel) -> None:
    channel.write_channel(ALLOWED)
    run_on(channel.source, *TABLES)
    run_changes(channel, "one")
    assert channel.run() is not None
    channel.assert_equal()
    run_changes(channel, "two")
    finished = channel.run()
    assert finished is not None
    channel.assert_equal()
    assert channel.run() is None


def test_a_target_that_begins_a_binlog_file_behind_a_change_counts_its_own_rows_as_well(channel: Channel) -> None:
    """The session that fills the file saves the file's GTIDs, as rows of mysql.gtid_executed."""
    channel.write_channel(ALLOWED)
    ((before,),) = channel.target.query("SELECT @@GLOBAL.max_binlog_size")
    channel.target.query("SET GLOBAL max_binlog_size = 4096")
    try:
        rows = (f"INSERT INTO tenant_1.kept VALUES ({key}, 0, REPEAT('x', 60))" for key in range(40))
        run_on(
            channel.source, *TABLES, *rows, "UPDATE tenant_1.kept SET n = 1", "DELETE FROM tenant_1.kept WHERE id < 9"
        )
        assert channel.run() is not None
    finally:
        channel.target.query(f"SET GLOBAL max_binlog_size = {before}")
    channel.assert_equal()


@pytest.mark.trial
def test_runs_that_are_killed_between_the_changes_lose_and_double_nothing(channel: Channel) -> None:
    chance = random.Random(3)
    channel.write_channel(ALLOWED)
    run_on(channel.source, *TABLES)
    run_changes(channel, "undisturbed")
    began = time.monotonic()
    assert channel.run() is not None
    seconds = time.monotonic() - began
    for round_ in range(2):
        run_changes(channel, f"round {round_}")
        for _ in range(2):
            channel.run_and_kill(chance.uniform(0.2, 1.0) * seconds)
        channel.run()
        channel.assert_equal()


@pytest.mark.trial
def test_runs_that_are_killed_between_statements_that_fail_as_on_the_source_double_nothing(channel: Channel) -> None:
    """What a function has counted would be there twice: its table has no key."""
    chance = random.Random(7)
    channel.write_channel(ALLOWED)
    run_on(
        channel.source,
        *TABLES,
        "CREATE TABLE tenant_1.counted (n INT) ENGINE=MyISAM",
        "CREATE FUNCTION tenant_1.count_up (n INT) RETURNS INT DETERMINISTIC "
        "BEGIN INSERT INTO tenant_1.counted VALUES (n); RETURN n; END",
    )
    assert channel.run() is not None
    for round_ in range(2):
        with channel.source.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(BY_STATEMENT)
            for number in range(1 + 40 * round_, 41 + 40 * round_):
                rows = f"({number}, tenant_1.count_up({number}), 'once'), ({number}, tenant_1.count_up(0), 'never')"
                with pytest.raises(pymysql.err.IntegrityError):
                    cursor.execute(f"INSERT INTO tenant_1.kept VALUES {rows}")
        for _ in range(3):
            channel.run_and_kill(chance.uniform(1.0, 3.0))
        channel.run()
        channel.assert_equal()
    counted = channel.target.query("SELECT n, COUNT(*) FROM tenant_1.counted GROUP BY n ORDER BY n")
    assert counted == [(0, 80), *((number, 1) for number in range(1, 81))]


MAKING = (
    "CREATE TABLE tenant_1.numbered (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE=MyISAM",
    "CREATE TABLE tenant_1.triggering (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE=MyISAM",
    "CREATE FUNCTION tenant_1.counted (n INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN "
    "CREATE TEMPORARY TABLE tenant_1.counting (n INT); INSERT INTO tenant_1.counting VALUES (n), (n); "
    "SET n = (SELECT SUM(n) FROM tenant_1.counting); DROP TEMPORARY TABLE tenant_1.counting; RETURN n; END",
    "CREATE TRIGGER tenant_1.counts BEFORE INSERT ON tenant_1.triggering FOR EACH ROW SET NEW.n = counted(NEW.n)",
)


@pytest.mark.trial
def test_runs_that_are_killed_between_statements_that_make_temporary_tables_lose_and_double_nothing(
    channel: Channel,
) -> None:
    """In a routine or a trigger; without a transaction around the statement its GTID would be used up inside it."""
    chance = random.Random(11)
    # rows of a table that the body itself makes: nothing proves that their order is not felt
    channel.write_channel(f"{ALLOWED}allow_unsafe = true\n")
    run_on(channel.source, *TABLES, *MAKING)
    assert channel.run() is not None
    for round_ in range(2):
        calls = (
            f"INSERT INTO tenant_1.{table} (n) VALUES (tenant_1.counted({number})), ({number})"
            for number in range(20)
            for table in ("numbered", "triggering")
        )
        run_on(
            channel.source,
            BY_STATEMENT,
            f"SET insert_id = {1000 * round_ + 500}",
            *calls,
            "UPDATE tenant_1.numbered SET n = tenant_1.counted(n) WHERE id < 0",
            "DO tenant_1.counted(1)",
        )
        for _ in range(2):
            channel.run_and_kill(chance.uniform(0.5, 2.0))
        channel.run()
        channel.assert_equal()


def test_a_mixed_transaction_of_a_source_without_gtids_is_done_once_part_by_part(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mysql")
    channel.write_channel(ALLOWED)
    run_on(channel.source, *TABLES)
    for way in ("SET SESSION binlog_format = ROW", BY_STATEMENT):
        run_on(
            channel.source,
            way,
            "BEGIN",
            "INSERT INTO tenant_1.i (s) VALUES ('one')",
            "UPDATE tenant_1.kept SET n = n + 1",
            "INSERT INTO tenant_1.kept SELECT 1 + MAX(id), 0, 'mixed' FROM tenant_1.i",
            "SAVEPOINT here",
            "INSERT INTO tenant_1.i (s) SELECT s FROM tenant_1.kept ORDER BY id",
            "COMMIT",
            "UPDATE tenant_1.i JOIN tenant_1.kept USING (id) SET i.s = 'joined'",
        )
    assert channel.run() is not None
    assert channel.rows_of(channel.target) == channel.rows_of(channel.source)
    assert len(channel.target.query("SELECT * FROM tenant_1.kept")) == 2


def test_a_statement_that_fails_half_way_is_never_taken_for_one_that_has_run(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.write_channel(ALLOWED)
    run_on(channel.source, *TABLES)
    assert channel.run() is not None
    run_on(channel.target, "INSERT INTO tenant_1.kept VALUES (2, 0, 'drift')", log=False)
    run_on(channel.source, "INSERT INTO tenant_1.kept VALUES (1, 0, 'a'), (2, 0, 'b'), (3, 0, 'c')")
    assert channel.cli("run", CHANNEL) == 1
    assert "1062" in capsys.readouterr().err
    assert channel.target.query("SELECT id FROM tenant_1.kept ORDER BY id") == [(1,), (2,)]
    assert channel.cli("run", CHANNEL) == 1
    said = capsys.readouterr().err
    assert "UndecidableError" in said
    [seqno] = [intent.seqno for intent in channel.status.undecided]
    assert f"binlane decide {CHANNEL} {seqno} --ran" in said
    assert channel.cli("decide", CHANNEL, str(seqno), "--not-ran") == 1
    assert "cannot be rolled back" in capsys.readouterr().err
    run_on(channel.target, "UPDATE tenant_1.kept SET s = 'b' WHERE id = 2", log=False)
    run_on(channel.target, "INSERT INTO tenant_1.kept VALUES (3, 0, 'c')", log=False)
    assert channel.cli("decide", CHANNEL, str(seqno), "--ran") == 0
    assert channel.run() is not None
    channel.assert_equal()


def test_looking_for_the_transaction_that_fails_changes_no_table_without_transactions(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mariadb")
    channel.write_channel(ALLOWED)
    run_on(channel.source, *TABLES)
    assert channel.run() is not None
    run_on(channel.target, "INSERT INTO tenant_1.i VALUES (7, 'drift')", log=False)
    for way in ("SET SESSION binlog_format = ROW", BY_STATEMENT):
        run_on(channel.source, way, "INSERT INTO tenant_1.journal VALUES ('once', 1)")
    run_on(channel.source, "INSERT INTO tenant_1.i VALUES (7, 'a')")
    for _ in range(2):
        with pytest.raises(DriftError, match="1062"):
            channel.run()
        # each has committed with its position before, and is not written once more
        assert channel.target.query("SELECT COUNT(*) FROM tenant_1.journal") == [(2,)]


@pytest.mark.parametrize("answer", ["--ran", "--not-ran"])
def test_a_transaction_that_the_target_keeps_a_part_of_is_a_question(
    channel_of: ChannelOf, capsys: pytest.CaptureFixture[str], answer: str
) -> None:
    """On a target that takes such changes beside others."""
    channel = channel_of("mariadb", "mariadb")
    channel.write_channel(ALLOWED)
    run_on(channel.source, *TABLES)
    assert channel.run() is not None
    run_on(channel.target, "INSERT INTO tenant_1.i VALUES (7, 'drift')", log=False)
    run_on(
        channel.source,
        "INSERT INTO tenant_1.journal VALUES ('before', 1)",
        # in row format such changes would be a transaction of their own
        BY_STATEMENT,
        "BEGIN",
        "INSERT INTO tenant_1.i VALUES (6, 'a')",
        "INSERT INTO tenant_1.journal VALUES ('once', 1)",
        "INSERT INTO tenant_1.i VALUES (7, 'a')",
        "COMMIT",
        "INSERT INTO tenant_1.journal VALUES ('behind', 1)",
    )
    assert channel.cli("run", CHANNEL) == 1
    assert "1062" in capsys.readouterr().err
    for _ in range(2):
        assert channel.cli("run", CHANNEL) == 1
        said = capsys.readouterr().err
        assert "UndecidableError" in said
        assert "INSERT INTO tenant_1.journal VALUES ('once', 1); INSERT INTO tenant_1.i VALUES (7" in said
        [asked] = channel.status.undecided
        assert f"binlane decide {CHANNEL} {asked.seqno} {answer}" in said
    [(before,), (once,)] = channel.target.query("SELECT s FROM tenant_1.journal")
    assert (before, once) == ("before", "once")
    run_on(channel.target, "DELETE FROM tenant_1.i WHERE id = 7", log=False)
    by_hand = {
        "--ran": "INSERT INTO tenant_1.i VALUES (6, 'a'), (7, 'a')",
        "--not-ran": "DELETE FROM tenant_1.journal WHERE s = 'once'",
    }
    run_on(channel.target, by_hand[answer], log=False)
    assert channel.cli("decide", CHANNEL, str(asked.seqno), answer) == 0
    assert channel.run() is not None
    assert channel.rows_of(channel.target) == channel.rows_of(channel.source)
    assert len(channel.target.query("SELECT * FROM tenant_1.journal")) == 3
    assert channel.target.query("SELECT * FROM binlane.ddl") == []


def test_a_stretch_of_open_temporary_tables_that_the_target_keeps_a_part_of_is_a_question(
    channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is one transaction of the target, and without running it the temporary tables would not be there."""
    channel = channel_of("mariadb", "mariadb")
    channel.write_channel(ALLOWED)
    run_on(channel.source, *TABLES)
    assert channel.run() is not None
    stretch = (
        BY_STATEMENT,
        "CREATE TEMPORARY TABLE tenant_1.tmp (id INT)",
        "INSERT INTO tenant_1.tmp VALUES ({0})",
        "INSERT INTO tenant_1.journal SELECT 'once', id FROM tenant_1.tmp",
        "INSERT INTO tenant_1.i SELECT id, 'a' FROM tenant_1.tmp ORDER BY 1",
        "DROP TEMPORARY TABLE tenant_1.tmp",
    )
    run_on(channel.source, *(each.format(6) for each in stretch))
    assert channel.run() is not None
    channel.assert_equal()
    run_on(channel.target, "INSERT INTO tenant_1.i VALUES (7, 'drift')", log=False)
    run_on(channel.source, *(each.format(7) for each in stretch))
    assert channel.cli("run", CHANNEL) == 1
    assert "1062" in capsys.readouterr().err
    run_on(channel.target, "DELETE FROM tenant_1.i WHERE id = 7", log=False)
    for answer in ("--ran", "--not-ran"):
        assert channel.cli("run", CHANNEL) == 1
        said = capsys.readouterr().err
        assert "UndecidableError" in said, (answer, channel.target.query("SELECT * FROM binlane.ddl"))
        [asked] = channel.status.undecided
        assert f"binlane decide {CHANNEL} {asked.seqno} --not-ran" in said
        assert "--ran" not in said
        assert channel.target.query("SELECT n FROM tenant_1.journal ORDER BY n") == [(6,), (7,)]
        assert channel.cli("decide", CHANNEL, str(asked.seqno), answer) == (answer == "--ran")
        assert ("cannot count as applied" in capsys.readouterr().err) == (answer == "--ran")
    run_on(channel.target, "DELETE FROM tenant_1.journal WHERE n = 7", log=False)
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT * FROM binlane.ddl") == []


def test_a_killed_connection_is_no_question_if_only_tables_with_transactions_were_changed(
    channel_of: ChannelOf,
) -> None:
    """Statements, too: only what may be there twice needs a person."""
    chance = random.Random(13)
    channel = channel_of("mariadb", "mariadb")
    channel.write_channel(ALLOWED)
    run_on(channel.source, *TABLES, "INSERT INTO tenant_1.kept VALUES (1, 1, 'x')")
    assert channel.run() is not None
    for word in "abc":
        changes = (
            f"INSERT INTO tenant_1.i (s) SELECT CONCAT('{word}', {n}) FROM tenant_1.kept ORDER BY 1" for n in range(60)
        )
        run_on(channel.source, BY_STATEMENT, *changes)
        channel.run_and_kill(chance.uniform(0.3, 1.2))
    # the first only ends the window that the first kill has left, where that has come before the next changes
    while channel.run() is not None:
        pass
    channel.assert_equal()


def test_the_transaction_that_fails_is_named_beside_tables_without_transactions(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mariadb")
    channel.write_channel(ALLOWED)
    run_on(channel.source, *TABLES)
    assert channel.run() is not None
    run_on(channel.target, "INSERT INTO tenant_1.i VALUES (7, 'drift')", log=False)
    run_on(channel.source, "INSERT INTO tenant_1.i VALUES (6, 'a')", "INSERT INTO tenant_1.i VALUES (7, 'a')")
    with pytest.raises(DriftError, match=r"row 1 of the event: .*tenant_1"):
        channel.run()


REFUSED: dict[str, list[tuple[str, ...]]] = {
    "tenant_1.made": [
        ("CREATE TABLE tenant_1.made (id INT) ENGINE=MyISAM", "INSERT INTO tenant_1.made VALUES (1)"),
        ("CREATE TABLE tenant_1.made LIKE tenant_1.kept", "INSERT INTO tenant_1.made VALUES (1, 2, 'x')"),
        ("RENAME TABLE tenant_1.kept TO tenant_1.made", "INSERT INTO tenant_1.made VALUES (1, 2, 'x')"),
        ("ALTER TABLE tenant_1.kept RENAME TO tenant_1.made", "INSERT INTO tenant_1.made VALUES (1, 2, 'x')"),
        (
            *(BY_STATEMENT, "CREATE TABLE tenant_1.between_them LIKE tenant_1.kept", "USE tenant_1"),
            *("CREATE TABLE made LIKE between_them", "INSERT INTO tenant_1.made VALUES (1, 2, 'x')"),
        ),
    ],
    "tenant_1.kept": [("ALTER TABLE tenant_1.kept ADD c INT", "INSERT INTO tenant_1.kept VALUES (1, 2, 'x', 3)")],
    "tenant_1.i": [("ALTER TABLE tenant_1.i ENGINE=MyISAM", "INSERT INTO tenant_1.i VALUES (1, 'x')")],
}


def test_changes_of_nontransactional_tables_are_refused_before_the_first_write(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each case in a database of its own, all in one window."""
    cases = [
        (re.sub("tenant_1", f"tenant_{number}", name), in_database(f"tenant_{number}", *each))
        for number, (name, each) in enumerate(
            ((name, each) for name, several in REFUSED.items() for each in several), 2
        )
    ]
    for number, (_, statements) in enumerate(cases, 2):
        channel.on_both(*in_database(f"tenant_{number}", *TABLES))
        run_on(channel.source, *statements)
    before = channel.rows_of(channel.target)
    assert channel.cli("run", CHANNEL) == 1
    said = capsys.readouterr().err
    assert said.startswith("PrecheckError: ")
    for name, statements in cases:
        lines = [line for line in said.splitlines() if name in line]
        assert any("without transactions" in line or "transactional one" in line for line in lines), (statements, said)
        assert any("allow" in line for line in lines), (statements, said)
    assert channel.rows_of(channel.target) == before


def fresh(channel: Channel) -> None:
    """Both servers with the tables, and a channel that begins behind them."""
    for server in (channel.source, channel.target):
        run_on(server, "DROP DATABASE IF EXISTS tenant_1", *TABLES, log=False)
    run_on(channel.target, "DROP DATABASE IF EXISTS binlane", log=False)
    channel.init()


def test_ddl_on_unused_nontransactional_tables_and_rows_after_a_change_to_innodb_are_applied(channel: Channel) -> None:
    """DDL on such tables that nothing writes to, and rows once InnoDB has them."""
    fresh(channel)
    run_on(
        channel.source,
        "ALTER TABLE tenant_1.journal COMMENT 'of old'",
        "ALTER TABLE tenant_1.kept ENGINE=InnoDB",
        "CREATE TABLE tenant_1.more LIKE tenant_1.kept",
        "INSERT INTO tenant_1.more VALUES (1, 2, 'x')",
        "DROP TABLE tenant_1.journal",
        "CREATE TABLE tenant_1.checked (s VARCHAR(60), kept VARCHAR(60), CHECK (s NOT LIKE kept))",
        "INSERT INTO tenant_1.checked VALUES ('a', 'b')",
    )
    assert channel.run() is not None
    channel.assert_equal()
