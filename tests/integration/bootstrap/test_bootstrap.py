"""A first copy from a live source: to the byte, at one place of the log, and nothing on the target is lost."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest
from pymysql.constants import COMMAND

from binlane.activity import newest
from binlane.binlog.types.sql_values import Literal
from binlane.bootstrap.copy_progress import CopyState
from binlane.bootstrap.definition_copy import Definition, make_behind_rows, read_definitions
from binlane.bootstrap.first_copy import Options
from binlane.bootstrap.sessions import Session
from binlane.bootstrap.throttle import Limits
from binlane.bootstrap.values import selected
from binlane.errors import PrecheckError
from binlane.model import Flavor, TableKey
from binlane.orchestration.commands.copies.bootstrap import LogLines, first_copy
from binlane.schema.model import Column
from binlane.state.leases import bootstrap_lease
from binlane.state.records.databases import forgetting
from lab.servers import PrivateServer
from tests.emptied import empty_target
from tests.integration.values.test_values import SESSION, tables
from tests.integration.values.types import OPAQUE, SCHEMA_TYPES, TYPES
from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.waiting import wait_until

OBJECTS = (
    "CREATE DATABASE shop CHARACTER SET latin1",
    "CREATE DATABASE `od-d` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "USE shop",
    "CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) UNIQUE) AUTO_INCREMENT = 500",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT, n INT DEFAULT 0, CONSTRAINT `f;``k` FOREIGN KEY (p) "
    "REFERENCES parent (id))",
    "CREATE TABLE gen (id INT PRIMARY KEY, a INT, v INT AS (a + 1) VIRTUAL, s INT AS (a * 2) STORED, KEY (s), "
    "h INT DEFAULT 7 INVISIBLE)",
    "CREATE TABLE bare (a INT, b VARCHAR(10))",
    "CREATE TABLE parts (id INT PRIMARY KEY, n INT) PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE TABLE `we``ird tablé` (`k``ey` VARCHAR(20) CHARACTER SET latin1, `sélect` INT, PRIMARY KEY (`k``ey`, "
    "`sélect`))",
    "INSERT INTO parent (name) VALUES ('one'), ('two')",
    "INSERT INTO parent (id, name) VALUES (3, 'three')",
    "INSERT INTO child (id, p) VALUES (1, 500), (2, 501), (3, NULL)",
    "SET foreign_key_checks = 0",
    "INSERT INTO child (id, p) VALUES (4, 4711)",
    "SET foreign_key_checks = 1, sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
    "INSERT INTO parent (id, name) VALUES (0, 'zero')",
    "INSERT INTO gen (id, a, h) VALUES (1, 10, 1), (2, NULL, NULL)",
    "INSERT INTO bare VALUES (1, 'same'), (1, 'same'), (NULL, NULL)",
    "INSERT INTO parts VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    "INSERT INTO `we``ird tablé` VALUES ('a', 1), ('B', 1), ('b', 2), ('é', 3), ('c,d''\\\\', 4)",
    # a view before the one that it needs, by name; one over another database; one that calls a function
    "CREATE VIEW z AS SELECT id FROM parent",
    "CREATE VIEW a AS SELECT id FROM z",
    "CREATE TABLE `od-d`.t (id INT PRIMARY KEY)",
    "CREATE VIEW other AS SELECT id FROM `od-d`.t",
    "CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC NO SQL RETURN n * 2",
    "CREATE VIEW called AS SELECT twice(id) AS t FROM parent",
    "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'",
    'CREATE PROCEDURE "proc"() SELECT \'é\' || "id" FROM "parent"',
    "SET sql_mode = ''",
    "CREATE TRIGGER first_one BEFORE INSERT ON child FOR EACH ROW SET NEW.n = NEW.n + 1",
    "CREATE TRIGGER then_two BEFORE INSERT ON child FOR EACH ROW FOLLOWS first_one SET NEW.n = NEW.n * 10",
    "CREATE TRIGGER between_them BEFORE INSERT ON child FOR EACH ROW PRECEDES then_two SET NEW.n = NEW.n + 5",
    "CREATE EVENT ev ON SCHEDULE EVERY 1 DAY COMMENT 'daily' DO DELETE FROM bare WHERE a = 9",
)


def bootstrap(channel: Channel, *options: str) -> int:
    return channel.cli("bootstrap", CHANNEL, "--lock-seconds", "60", *options)


def make_objects(channel: Channel) -> None:
    run_on(channel.source, "SET NAMES utf8mb4", *OBJECTS)


@pytest.mark.parametrize("compressed", ["source", "target", "both"])
def test_rows_travel_compressed_to_and_from_the_servers_that_are_named(either: Channel, compressed: str) -> None:
    make_objects(either)
    many = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
    run_on(
        either.source,
        "CREATE TABLE shop.long_ones (id INT PRIMARY KEY, text TEXT)",
        f"INSERT INTO shop.long_ones {many}SELECT i, REPEAT('x', 5000) FROM n",
        # the log's last file is read, too, to find the GTID set of the copy's place
        "FLUSH BINARY LOGS",
    )
    servers = {"source": (either.source, "Bytes_sent"), "target": (either.target, "Bytes_received")}
    before = {part: counted(*asked) for part, asked in servers.items()}
    assert bootstrap(either, "--compress", compressed) == 0
    few = {part for part, asked in servers.items() if counted(*asked) - before[part] < 4_000_000}
    either.assert_equal()
    assert few == ({"source", "target"} if compressed == "both" else {compressed})


def counted(server: PrivateServer, name: str) -> int:
    return int(server.query(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1])


def test_every_kind_of_object_arrives_and_the_next_window_goes_on(either: Channel) -> None:
    make_objects(either)
    assert bootstrap(either, "--chunk-rows", "2", "--jobs", "2") == 0
    either.assert_equal()
    status = either.target.query("SELECT status FROM information_schema.events WHERE event_name = 'ev'")
    assert status[0][0] in ("SLAVESIDE_DISABLED", "REPLICA_SIDE_DISABLED")
    assert either.run() is None  # nothing twice
    run_on(
        either.source,
        "INSERT INTO shop.parent (name) VALUES ('new')",
        "INSERT INTO shop.child (id, p) VALUES (5, 3)",
        "DELETE FROM shop.bare WHERE a = 1 LIMIT 1",
    )
    assert either.run() is not None
    either.assert_equal()


def test_every_type_and_value_is_the_same_to_the_byte(either: Channel) -> None:
    flavor = either.source.flavor
    types = [one for one in (*TYPES, *SCHEMA_TYPES) if flavor in one.servers and one.values != OPAQUE]
    run_on(either.source, "CREATE DATABASE v CHARACTER SET utf8mb4", "USE v", SESSION, *tables(types))
    nulls = [f"INSERT INTO v.t{number} (c) VALUES (NULL)" for number in range(len(types))]
    run_on(either.source, SESSION, *nulls)
    assert bootstrap(either, "--chunk-rows", "2") == 0
    either.assert_equal()


def test_keys_of_every_type_are_cut_into_ranges_without_a_gap(either: Channel) -> None:
    flavor = either.source.flavor
    types = [one for one in (*TYPES, *SCHEMA_TYPES) if flavor in one.servers and can_be_key(one.definition)]
    statements = ["CREATE DATABASE v CHARACTER SET utf8mb4", "USE v", SESSION]
    for number, one in enumerate(types):
        statements.append(f"CREATE TABLE t{number} (c {one.definition} NOT NULL, n INT NOT NULL, PRIMARY KEY (c, n))")
        statements += [f"INSERT INTO t{number} VALUES ({value}, {n})" for n, value in enumerate(one.values)]
    run_on(either.source, *statements)
    assert bootstrap(either, "--chunk-rows", "1") == 0
    either.assert_equal()


def can_be_key(definition: str) -> bool:
    words = ("TEXT", "BLOB", "GEOMETRY", "POINT", "JSON", "VECTOR", "COMPRESSED", "VARCHAR(1000)", " NULL")
    return not any(word in definition for word in words)


def test_rows_whose_key_is_a_large_set_are_copied(either: Channel) -> None:
    """No server finds them by ranges of numbers."""
    members = ", ".join(f"'m{number}'" for number in range(64))
    run_on(
        either.source,
        "CREATE DATABASE shop",
        f"CREATE TABLE shop.sets (a SET({members}) PRIMARY KEY, n INT)",
        f"INSERT INTO shop.sets VALUES {', '.join(f'({(1 << 64) - n}, {n})' for n in range(1, 90))}",
    )
    first_copy(either.config, either.endpoints, Options(chunk_rows=10), LogLines())
    assert either.target.query("SELECT COUNT(*), SUM(n) FROM shop.sets") == [(89, 4005)]


def test_under_traffic_with_ddl_and_accounts_no_row_is_lost_or_twice(either: Channel) -> None:
    either.traffic(transactions=120, creates=True)
    failures: list[BaseException] = []

    def write() -> None:
        try:
            either.traffic(transactions=250, seed=2, creates=True)
        except BaseException as exc:
            failures.append(exc)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert bootstrap(either, "--users", "--chunk-rows", "50", "--jobs", "3") == 0
    finally:
        writer.join()
    assert failures == []
    either.run()
    either.assert_equal()


def test_a_ddl_waits_for_the_copy_and_is_of_the_next_window(either: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    make_objects(either)
    waited: list[str] = []

    def swap(*arguments: object) -> object:
        with closing(either.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION lock_wait_timeout = 1")
            with pytest.raises(Exception, match="Lock wait timeout"):
                cursor.execute("RENAME TABLE shop.bare TO shop.x, shop.parts TO shop.bare")
            waited.append("yes")
        return read_definitions(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("binlane.bootstrap.first_copy.read_definitions", swap)
    assert bootstrap(either) == 0
    assert waited == ["yes"]
    run_on(either.source, "ALTER TABLE shop.bare ADD COLUMN c INT")  # the lock is gone
    either.run()
    either.assert_equal()


def test_a_target_that_holds_anything_of_the_databases_is_refused_by_name(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    make_objects(mariadb)
    run_on(mariadb.target, "CREATE DATABASE shop", "CREATE PROCEDURE shop.mine() SELECT 1")
    assert bootstrap(mariadb) == 1
    assert "procedure shop.mine" in capsys.readouterr().err
    assert mariadb.target.query("SHOW TABLES FROM shop") == []
    assert bootstrap(mariadb, "--databases", "od*") == 0
    assert mariadb.target.query("SELECT routine_name FROM information_schema.routines WHERE routine_schema = 'shop'")
    assert bootstrap(mariadb) == 1
    assert "expected a channel without a watermark" in capsys.readouterr().err


def test_a_first_copy_leaves_out_filtered_tables_and_ends_under_its_lease_alone(
    mariadb: Channel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_objects(mariadb)
    mariadb.write_channel('[filter]\nexclude_databases = ["od-*"]\nexclude_tables = ["shop.bare", "shop.child"]\n')

    def lost(writer: Session, programs: Sequence[Definition]) -> list[str]:
        writer.execute(f"DO RELEASE_LOCK('{bootstrap_lease(CHANNEL)}')")
        return make_behind_rows(writer, programs)

    with monkeypatch.context() as patch:
        patch.setattr("binlane.bootstrap.first_copy.make_behind_rows", lost)
        assert bootstrap(mariadb) != 0
    assert f"channel {CHANNEL}: lost the lease of its first copy" in capsys.readouterr().err
    assert mariadb.target.query("SELECT 1 FROM binlane.channels WHERE channel = %s", (CHANNEL,)) == []
    assert bootstrap(mariadb) == 0
    tables = {name for (name,) in mariadb.target.query("SHOW TABLES FROM shop")}
    assert tables == {"parent", "gen", "parts", "we`ird tablé", "a", "z", "called", "other"}
    # the view `other` shows a table of it, and is broken
    assert mariadb.target.query("SHOW DATABASES LIKE 'od%%'") == []
    run_on(mariadb.source, "INSERT INTO shop.bare VALUES (7, 'x')", "INSERT INTO shop.parts VALUES (9, 9)")
    assert mariadb.run() is not None
    assert mariadb.target.query("SELECT MAX(id) FROM shop.parts") == [(9,)]


def test_a_first_copy_names_foreign_keys_to_filtered_tables(
    either: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its next step leads to windows, and no verification takes the missing key for drift."""
    run_on(
        either.source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.parent (id INT PRIMARY KEY)",
        "CREATE TABLE shop.child (id INT PRIMARY KEY, p INT NOT NULL, CONSTRAINT k FOREIGN KEY (p) "
        "REFERENCES shop.parent (id))",
        "INSERT INTO shop.parent VALUES (1)",
        "INSERT INTO shop.child VALUES (1, 1)",
    )
    either.write_channel('[filter]\nexclude_tables = ["shop.parent"]\n')
    assert bootstrap(either) == 0
    assert (
        "shop.parent: 1 foreign key of copied tables to it, and the channel's filter leaves" in capsys.readouterr().out
    )
    run_on(either.source, "INSERT INTO shop.parent VALUES (2)", "INSERT INTO shop.child VALUES (2, 2)")
    with pytest.raises(PrecheckError, match=r"shop\.child: foreign key k: .*shop\.parent, left out"):
        either.run()
    run_on(either.target, "ALTER TABLE shop.child DROP FOREIGN KEY k", log=False)
    assert either.run() is not None
    assert either.target.query("SELECT MAX(id) FROM shop.child") == [(2,)]
    assert either.cli("verify", CHANNEL, "--full", "--anew") == 0


def test_databases_whose_names_differ_in_letters_that_a_collation_takes_for_one_are_all_copied(either: Channel) -> None:
    names = ("Shop", "shop", "SHÖP")
    for number, name in enumerate(names):
        either.source.query(f"CREATE DATABASE `{name}`")
        for statement in (
            f"CREATE TABLE t (id INT PRIMARY KEY, only_{number} INT, KEY k_{number} (only_{number}))",
            f"INSERT INTO t VALUES (1, {number})",
            f"CREATE PROCEDURE p_{number} () SELECT 1",
            f"CREATE VIEW v_{number} AS SELECT only_{number} FROM t",
            f"CREATE EVENT e_{number} ON SCHEDULE EVERY 9 YEAR DISABLE DO SELECT 1",
        ):
            with closing(either.source.connect(database=name, autocommit=True)) as connection:
                connection.cursor().execute(statement)
    assert bootstrap(either, "--databases", "shop") == 0
    assert either.target.query("SHOW DATABASES LIKE 'sh%%'") == [("shop",)]
    assert either.target.query("SELECT * FROM shop.v_1") == [(1,)]
    empty_target(either.target)
    assert bootstrap(either) == 0
    for number, name in enumerate(names):
        assert either.target.query(f"SELECT * FROM `{name}`.v_{number}") == [(number,)]
        either.source.query(f"INSERT INTO `{name}`.t VALUES (2, {number})")
        either.source.query(f"ALTER TABLE `{name}`.t ADD COLUMN more INT DEFAULT {number}")
        either.source.query(f"INSERT INTO `{name}`.t VALUES (3, {number}, 3)")
    assert either.run() is not None
    either.assert_equal()
    assert either.cli("verify", CHANNEL, "--full") == 0
    either.target.query("UPDATE shop.t SET only_1 = 7 WHERE id = 2")
    either.target.query("ALTER TABLE Shop.t DROP KEY k_0")
    assert either.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    either.assert_equal()


def test_replace_drops_the_chosen_databases_alone(mariadb: Channel) -> None:
    make_objects(mariadb)
    run_on(
        mariadb.target,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.mine (id INT)",
        "CREATE DATABASE elsewhere",
        "CREATE TABLE elsewhere.t (id INT)",
    )
    assert bootstrap(mariadb, "--replace") == 0
    assert mariadb.target.query("SHOW TABLES FROM elsewhere") == [("t",)]
    run_on(mariadb.target, "DROP DATABASE elsewhere", log=False)
    mariadb.assert_equal()


def test_replace_drops_no_database_that_another_channel_writes(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    make_objects(mariadb)
    assert bootstrap(mariadb) == 0
    (mariadb.channels / "other.toml").write_text((mariadb.channels / f"{CHANNEL}.toml").read_text())
    before = mariadb.target.query("SELECT * FROM shop.parent ORDER BY 1")
    for database in ("od-d", "shop"):
        capsys.readouterr()
        assert mariadb.cli("bootstrap", "other", "--replace") == 1
        said = " ".join(capsys.readouterr().err.split())
        assert f"database {database}: expected no channel that writes it, found channel {CHANNEL}" in said
        for statement in forgetting(CHANNEL, f"'{database}'").split("; "):
            mariadb.target.query(statement)
    assert mariadb.target.query("SELECT * FROM shop.parent ORDER BY 1") == before
    assert mariadb.cli("bootstrap", "other", "--replace") == 0, capsys.readouterr().err


def test_objects_that_a_first_copy_cannot_copy_are_named_before_the_first_write(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(
        mariadb.source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.isam (id INT) ENGINE=MyISAM",
        "CREATE TABLE shop.old (id INT) WITH SYSTEM VERSIONING",
    )
    assert bootstrap(mariadb) == 1
    said = capsys.readouterr().err
    assert "shop.isam: engine MyISAM" in said
    assert "shop.old: system-versioned" in said
    assert mariadb.target.query("SHOW DATABASES LIKE 'shop'") == []
    run_on(mariadb.target, "CREATE DATABASE shop", "CREATE TABLE shop.mine (id INT)")
    assert bootstrap(mariadb, "--replace") == 1
    assert mariadb.target.query("SHOW TABLES FROM shop") == [("mine",)]


def test_a_prepared_xa_transaction_is_refused(mariadb: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    make_objects(mariadb)
    with closing(mariadb.source.connect()) as connection, connection.cursor() as cursor:
        for statement in ("XA START 'x'", "INSERT INTO shop.parent (name) VALUES ('xa')", "XA END 'x'"):
            cursor.execute(statement)
        cursor.execute("XA PREPARE 'x'")
        assert bootstrap(mariadb) == 1
        assert "XA transactions are prepared" in capsys.readouterr().err
        cursor.execute("XA ROLLBACK 'x'")
    assert bootstrap(mariadb) == 0


def test_json_of_sql_values_is_refused_by_name(either: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    if either.source.flavor is Flavor.MARIADB:
        pytest.skip("MariaDB's JSON is text")
    run_on(
        either.source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.j (id INT PRIMARY KEY, doc JSON)",
        "INSERT INTO shop.j VALUES (1, JSON_OBJECT('at', CAST('2024-02-29' AS DATE)))",
    )
    assert bootstrap(either) == 1
    assert "shop.j: a JSON document contains SQL values" in capsys.readouterr().err


NUMBERS = (
    "JSON_OBJECT('price', CAST('19.90' AS DECIMAL(10,2)), 'at', '2024-02-29', 'n', NULL)",
    "JSON_ARRAY(1.123456789012345678901234567890, CAST('0.00' AS DECIMAL(5,2)), -0e0, 'a\\\\b\\'c')",
    "JSON_ARRAY(9088544342.689999e0, 1e300, 5e-324, 18446744073709551615, -9223372036854775808)",
    "JSON_EXTRACT(JSON_ARRAY(CAST('-7.50' AS DECIMAL(3,2))), '$[0]')",
    "'{}'",
)
"""Documents whose numbers a server parses from their text as other ones, between others."""


def test_documents_are_copied_and_repaired_with_the_types_of_their_numbers(either: Channel) -> None:
    if either.source.flavor is Flavor.MARIADB:
        pytest.skip("MariaDB's JSON is text")
    run_on(
        either.source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.j (id INT PRIMARY KEY, doc JSON, other JSON)",
        *(
            f"INSERT INTO shop.j VALUES ({number}, {document}, '[1]'), ({number + 50}, '[1.5]', {document})"
            for number, document in enumerate(NUMBERS)
        ),
    )
    query = "SELECT id, CAST(doc AS CHAR), CAST(other AS CHAR), JSON_TYPE(JSON_EXTRACT(doc, '$[0]')) FROM shop.j"
    assert bootstrap(either) == 0
    assert either.target.query(query) == either.source.query(query)
    run_on(either.target, "UPDATE shop.j SET doc = '0', other = '0' WHERE id IN (0, 1, 51)", log=False)
    assert either.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    assert either.target.query(query) == either.source.query(query)
    assert either.cli("recopy", CHANNEL, "--table", "shop.j", "--yes") == 0
    assert either.target.query(query) == either.source.query(query)


def test_a_row_that_the_target_would_change_fails_by_name(
    mariadb: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_objects(mariadb)

    def damaged(table: TableKey, column: Column) -> tuple[str, Literal]:
        expression, spell = selected(table, column)
        return expression, Literal(b"'x", b"'") if column.name == "a" else spell

    monkeypatch.setattr("binlane.bootstrap.row_copy.selected", damaged)
    assert bootstrap(mariadb) == 1
    assert "the target would not store the source's value unchanged" in capsys.readouterr().err


def test_an_account_without_the_locks_privilege_is_told_which(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    make_objects(mariadb)
    run_on(
        mariadb.source,
        f"CREATE USER test_reader IDENTIFIED BY '{mariadb.source.password}'",
        "GRANT SELECT, TRIGGER, SHOW VIEW ON *.* TO test_reader",
    )
    mariadb.connect("source_server", mariadb.source, "test_reader")
    assert bootstrap(mariadb) == 1
    said = capsys.readouterr().err
    assert "EXECUTE, PROCESS, RELOAD ON *.* TO 'test_reader'@'%';  -- on the source, source_server" in said
    assert mariadb.target.query("SHOW DATABASES LIKE 'binlane'") == []


def test_the_copy_waits_while_the_source_is_busy(either: Channel) -> None:
    make_objects(either)
    told: list[CopyState] = []
    running = int(either.source.query("SHOW GLOBAL STATUS LIKE 'Threads_running'")[0][1])
    with ExitStack() as stack:
        busy = [stack.enter_context(either.source.connect()) for _ in range(6)]
        numbers = [each.thread_id() for each in busy]  # type: ignore[no-untyped-call]
        for each in busy:
            # nobody waits for the answer
            each._execute_command(COMMAND.COM_QUERY, "SELECT SLEEP(600)")  # type: ignore[attr-defined]

        class Told(LogLines):
            def show(self, standing: CopyState) -> None:
                told.append(standing)
                while standing.waits and numbers:
                    either.source.query(f"KILL {numbers.pop()}")

        options = Options(jobs=1, limits=Limits(threads_running=running + 4, source_lag=10))
        first_copy(either.config, either.endpoints, options, Told())
    [waits] = {each.waits for each in told if each.waits}
    assert re.fullmatch(rf"waits: \d+ threads running on the source, limit {running + 4}", waits)
    assert told[-1].waits == ""
    assert (told[-1].finished, told[-1].rows, told[-1].bytes) == (7, 22, told[-1].all_bytes)
    either.assert_equal()


def test_a_job_that_fails_ends_the_waits_of_the_others(mariadb: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    run_on(
        mariadb.source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, b LONGBLOB)",
        "INSERT INTO shop.t SELECT seq, 'x' FROM mysql.seq_1_to_40000",
        "INSERT INTO shop.t VALUES (40001, REPEAT('x', 3000000))",
    )
    packet = mariadb.target.query("SELECT @@GLOBAL.max_allowed_packet")[0][0]
    mariadb.target.query("SET GLOBAL max_allowed_packet = 1048576")
    try:
        # the second range would wait for hours behind the first
        assert bootstrap(mariadb, "--rows-per-second", "1", "--chunk-rows", "20000", "--jobs", "2") == 1
    finally:
        mariadb.target.query(f"SET GLOBAL max_allowed_packet = {packet}")
    assert "shop.t: a row needs a statement of " in capsys.readouterr().err


def test_a_lock_that_another_session_holds_is_waited_for_by_name(
    either: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    make_objects(either)
    with either.source.connect() as holder, holder.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        cursor.execute("LOCK TABLES shop.parent WRITE")
        copy = pool.submit(either.cli, "bootstrap", CHANNEL, "--lock-seconds", "3")
        wait_until(lambda: str(newest()).startswith("waiting for the source's lock, "))
        assert copy.result() == 1
    assert "expected the lock within --lock-seconds" in capsys.readouterr().err
