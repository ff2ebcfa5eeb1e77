"""Short row images leave the target's tables, counters and log exactly as whole ones do, on each server."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from sqlalchemy import NullPool

from binlane.apply.rows import row_images
from binlane.apply.rows.binlog import BinlogRows
from binlane.apply.rows.cross_family import rows_events
from binlane.apply.rows.row_images import ShortImages
from binlane.apply.rows.table_guard import TableGuard
from binlane.apply.session.connection import LaneSession
from binlane.binlog.rows_payload import events_of, is_table_map
from binlane.errors import DriftError
from binlane.model import Flavor, Item, ItemKind, RowCounts, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.servers.catalog import TableReader
from binlane.servers.engines import engine_at
from lab.servers import PrivateServer
from tests.integration.apply.capture import Recorder
from tests.integration.apply.conftest import DATABASE, QUICK, Pair

LONG = "REPEAT('x', 3000)"
SOME, OTHER = "REPEAT('x', 400)", "REPEAT('o', 400)"
"""Of which a server logs several rows in one event."""
COLUMNS = "w1 VARCHAR(200), w2 TEXT, n INT"
FILL = f"INSERT INTO t (id, w1, w2, n) VALUES (1, 'a', {LONG}, 1), (2, 'b', {LONG}, 2), (3, NULL, NULL, 3)"
CHANGES = ("UPDATE t SET n = n + 10", "UPDATE t SET w1 = NULL, w2 = 's' WHERE id = 2", "DELETE FROM t WHERE id = 3")


@dataclass(frozen=True, slots=True)
class Case:
    """A table's definition and the changes to it."""

    ddl: Sequence[str]
    work: Sequence[str]
    target: Sequence[str] = ()
    """DDL of the target alone."""
    only: Flavor | None = None
    is_short: bool = True
    """Whether the table gets short images."""
    has_foreign_keys: bool = False
    several: bool = False
    """Whether events of updates are sent as several."""


def table(definition: str, *work: str, **options: object) -> Case:
    return Case([f"CREATE TABLE t {definition}"], work, **options)  # type: ignore[arg-type]


CASES = {
    "plain": table(
        f"(id INT PRIMARY KEY, {COLUMNS})",
        FILL,
        *CHANGES,
        "UPDATE t SET id = 9, w2 = REPEAT('q', 900) WHERE id = 1",
        "UPDATE t SET id = id + 100 ORDER BY id DESC",
    ),
    "values-of-every-length": table(
        "(id INT PRIMARY KEY, a TINYBLOB, b BLOB, c MEDIUMBLOB, d LONGTEXT, j JSON, g POINT, f FLOAT, "
        "x DECIMAL(30,10), bt BIT(13), s SET('a','b','c'), y YEAR)",
        f"INSERT INTO t VALUES (1, 'a', {LONG}, REPEAT('c', 70000), {LONG}, '{{\"a\":1}}', "
        "ST_GeomFromText('POINT(1 2)'), 1.5, 2.5, b'101', 'a,c', 2001), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "UPDATE t SET a = 'zz' WHERE id = 1",
        "UPDATE t SET c = REPEAT('e', 90000), bt = b'1'",
        "UPDATE t SET b = NULL, d = '', j = '[1]', g = ST_GeomFromText('POINT(3 4)'), f = -0.0, s = 'b', y = 2020",
        "UPDATE t SET x = -1, y = NULL",
        "DELETE FROM t WHERE id = 2",
    ),
    "defaults": table(
        "(id INT PRIMARY KEY, w1 VARCHAR(200) NOT NULL, w2 TEXT NOT NULL, n INT NOT NULL DEFAULT 77, "
        "d DATETIME NOT NULL DEFAULT '2020-01-01' ON UPDATE CURRENT_TIMESTAMP, "
        "ts TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), "
        "e ENUM('a','b') NOT NULL)",
        f"INSERT INTO t (id, w1, w2, n, e) VALUES (1, 'a', {LONG}, 1, 'b'), (2, 'b', 'y', 2, 'a')",
        "UPDATE t SET w2 = 'q', ts = ts, d = d WHERE id = 1",
        "UPDATE t SET n = n + 1",
        "UPDATE t SET ts = '2000-01-01', w1 = '' WHERE id = 2",
        "DELETE FROM t WHERE id = 2",
    ),
    "unique-keys": table(
        f"(id INT PRIMARY KEY, {COLUMNS}, u INT UNIQUE, UNIQUE (w1, n), KEY (w2(700)))",
        f"INSERT INTO t VALUES (1, 'a', {LONG}, 1, 1), (2, 'b', {LONG}, 2, 2), (3, 'c', 'z', 3, NULL)",
        "UPDATE t SET u = 10 WHERE id = 1",
        "UPDATE t SET u = 1 WHERE id = 2",
        "UPDATE t SET w2 = 'm'",
        "DELETE FROM t WHERE u = 10",
    ),
    "updates-of-other-columns": table(
        f"(id INT PRIMARY KEY, {COLUMNS}, x LONGTEXT, u INT UNIQUE, v INT, UNIQUE (v, w1))",
        f"INSERT INTO t VALUES (1, 'a', {SOME}, 1, {SOME}, 1, 1), (2, 'b', {SOME}, 2, {SOME}, 2, 1), "
        f"(3, 'c', {SOME}, 3, NULL, 3, 1), (4, 'd', NULL, 4, {SOME}, NULL, 1)",
        # each row's long columns in another event
        f"UPDATE t SET w2 = IF(id IN (1, 4), {OTHER}, w2), x = IF(id IN (2, 3), {OTHER}, x), n = n + 1 ORDER BY id",
        f"UPDATE t SET w2 = IF(id = 2, {OTHER}, w2), x = IF(id = 1, NULL, x) ORDER BY id DESC",
        # values of unique keys that one row hands to another, in the order of the log
        f"UPDATE t SET u = IFNULL(u, 4) + 1, x = IF(id = 2, {SOME}, x) ORDER BY u DESC",
        "UPDATE t SET id = id + 1, w2 = IF(id = 3, NULL, w2), x = IF(id = 4, 'x', x) ORDER BY id DESC",
        f"UPDATE t SET v = id, w1 = 'same', w2 = IF(id = 4, {SOME}, w2) ORDER BY id",
        several=True,
    ),
    "updates-of-other-columns-with-partitions": table(
        f"(id INT, p INT, {COLUMNS}, x LONGTEXT, PRIMARY KEY (p, id)) PARTITION BY HASH (p) PARTITIONS 4",
        f"INSERT INTO t VALUES (1, 1, 'a', {SOME}, 1, {SOME}), (2, 1, 'b', {SOME}, 2, {SOME}), "
        f"(3, 2, 'c', {SOME}, 2, {SOME})",
        f"UPDATE t SET w2 = IF(id = 1, {OTHER}, w2), x = IF(id = 2, {OTHER}, x), n = n + 1",
        f"UPDATE t SET p = p + 1, w2 = IF(id = 3, {OTHER}, w2), x = IF(id = 2, 'x', x)",
        several=True,
    ),
    "foreign-keys": Case(
        [
            f"CREATE TABLE p (id INT PRIMARY KEY, {COLUMNS}, UNIQUE (n))",
            "CREATE TABLE t (c INT PRIMARY KEY, w TEXT, pn INT, pid INT, "
            "FOREIGN KEY (pn) REFERENCES p (n) ON UPDATE CASCADE ON DELETE CASCADE, "
            "FOREIGN KEY (pid) REFERENCES p (id) ON UPDATE CASCADE ON DELETE SET NULL)",
        ],
        [
            f"INSERT INTO p VALUES (1, 'a', {LONG}, 1), (2, 'b', {LONG}, 2), (3, 'c', 'y', 3)",
            f"INSERT INTO t VALUES (1, {LONG}, 1, 2), (2, {LONG}, 2, 3), (3, 'm', 3, 1)",
            "UPDATE p SET n = n + 100 WHERE id < 3",
            "UPDATE p SET id = id + 100 WHERE id = 1",
            "UPDATE p SET w2 = 'z'",
            "UPDATE t SET pn = 3 WHERE c = 1",
            "DELETE FROM p WHERE id = 2",
            "DELETE FROM p WHERE id = 3",
        ],
        has_foreign_keys=True,
    ),
    "keys-equal-by-collation": table(
        "(id VARCHAR(20) COLLATE utf8mb4_general_ci, k CHAR(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci, "
        f"b BINARY(4), f DOUBLE, {COLUMNS}, PRIMARY KEY (b, id, k, f))",
        f"INSERT INTO t VALUES ('Abc', 'K', 'a', 0.1, 'a', {LONG}, 1), ('pad ', 'z', '', '-0.0', 'a', {LONG}, 1)",
        "UPDATE t SET id = 'aBC', n = 2 WHERE id = 'abc'",
        "UPDATE t SET k = 'k' WHERE id = 'ABC'",
        "UPDATE t SET id = 'pad' WHERE id = 'pad'",
        "UPDATE t SET w2 = 'u'",
        "DELETE FROM t WHERE k = 'Z'",
    ),
    "partitions": table(
        f"(id INT, p INT, {COLUMNS}, PRIMARY KEY (p, id)) PARTITION BY HASH (p) PARTITIONS 4",
        f"INSERT INTO t VALUES (1, 1, 'a', {LONG}, 1), (2, 2, 'b', {LONG}, 2)",
        "UPDATE t SET n = n + 1",
        "UPDATE t SET p = 3 WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
    ),
    "partitions-of-the-target-alone": table(
        f"(id INT, p INT, {COLUMNS}, PRIMARY KEY (p, id))",
        f"INSERT INTO t VALUES (1, 1, 'a', {LONG}, 1), (2, 2, 'b', {LONG}, 2)",
        "UPDATE t SET n = n + 1",
        "UPDATE t SET p = 3 WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        target=[
            "ALTER TABLE t PARTITION BY RANGE (p) "
            "(PARTITION a VALUES LESS THAN (2), PARTITION b VALUES LESS THAN MAXVALUE)"
        ],
    ),
    "another-primary-key-on-the-target": table(
        "(id INT PRIMARY KEY, w1 VARCHAR(200), w2 TEXT, n INT NOT NULL)",
        FILL,
        *CHANGES,
        target=["ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (n), ADD UNIQUE (id)"],
    ),
    "a-primary-key-of-the-target-alone": table(
        "(id INT NOT NULL, w1 VARCHAR(200), w2 TEXT, n INT)",
        FILL,
        *CHANGES,
        target=["ALTER TABLE t ADD PRIMARY KEY (id)"],
    ),
    "columns-that-queries-do-not-see": table(
        "(id INT PRIMARY KEY, w1 VARCHAR(200), w2 TEXT INVISIBLE, n INT INVISIBLE DEFAULT 5)", FILL, *CHANGES
    ),
    "columns-added-in-place": Case(
        [
            "CREATE TABLE t (id INT PRIMARY KEY, w1 VARCHAR(200), w2 TEXT)",
            "INSERT INTO t VALUES (11, 'a', 'b')",
            "ALTER TABLE t ADD n INT NOT NULL DEFAULT 9, ALGORITHM=INSTANT",
        ],
        ["UPDATE t SET w2 = REPEAT('z', 2000) WHERE id = 11", FILL, *CHANGES, "UPDATE t SET w1 = 'k'"],
    ),
    "checks": table(f"(id INT PRIMARY KEY, {COLUMNS}, CHECK (n > 0 AND (w1 IS NULL OR w1 <> '')))", FILL, *CHANGES),
    "descending-key": table(
        f"(id INT, k INT DEFAULT 4, {COLUMNS}, PRIMARY KEY (k DESC, id))", FILL, *CHANGES, "UPDATE t SET k = k + 1"
    ),
    # of these the images stay whole
    "triggers": table(
        f"(id INT PRIMARY KEY, {COLUMNS})",
        FILL,
        *CHANGES,
        target=["CREATE TRIGGER tu BEFORE UPDATE ON t FOR EACH ROW SET NEW.w1 = CONCAT('T', IFNULL(OLD.w2, '-'))"],
        is_short=False,
    ),
    "virtual-columns-with-indexes": table(
        f"(id INT PRIMARY KEY, {COLUMNS}, g INT AS (n * 2) VIRTUAL, h VARCHAR(300) AS (CONCAT(w1, '!')) VIRTUAL, "
        "KEY (g), UNIQUE (h))",
        FILL,
        *CHANGES,
        is_short=False,
    ),
    "stored-generated-columns": table(
        f"(id INT PRIMARY KEY, {COLUMNS}, g INT AS (n * 2) STORED, KEY (g))", FILL, *CHANGES, is_short=False
    ),
    "versions": table(
        f"(id INT PRIMARY KEY, {COLUMNS}) WITH SYSTEM VERSIONING", FILL, *CHANGES, only=Flavor.MARIADB, is_short=False,
    ),
    "no-primary-key": table(
        "(id INT NOT NULL UNIQUE, w1 VARCHAR(200), w2 TEXT, n INT)", FILL, *CHANGES, is_short=False,
    ),
    "a-primary-key-over-a-prefix": table(
        f"(id INT, k VARCHAR(90) DEFAULT 'long', {COLUMNS}, PRIMARY KEY (id, k(3)))", FILL, *CHANGES, is_short=False
    ),
    "another-engine": table(f"(id INT PRIMARY KEY, {COLUMNS}) ENGINE=MyISAM", FILL, *CHANGES, is_short=False),
    "words": table(f"(id INT PRIMARY KEY, {COLUMNS}, FULLTEXT (w2))", FILL, *CHANGES, is_short=False),
    "expressions": table(
        f"(id INT PRIMARY KEY, {COLUMNS}, KEY ((n + 1)))", FILL, *CHANGES, only=Flavor.MYSQL, is_short=False
    ),
    "hashes": table(f"(id INT PRIMARY KEY, {COLUMNS}, UNIQUE (w2))",
                    "INSERT INTO t VALUES (1, 'a', REPEAT('y', 3000), 1), (3, 'b', 'z', 2)",
                    *CHANGES, only=Flavor.MARIADB, is_short=False),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _every_row_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_WIDE", "_WORTH_READING"):
        monkeypatch.setattr(row_images, limit, 0)


@pytest.mark.parametrize("name", CASES)
def test_short_images_have_the_effect_of_whole_ones(pair: Pair, name: str) -> None:
    case = CASES[name]
    if case.only not in (None, pair.target.flavor):
        pytest.skip(f"only {case.only} has such tables")
    for statement in case.ddl:
        pair.both(statement)
    recorder = pair.recorder()
    items = recorded(recorder, case)
    found = [applied(pair.target, case, recorder, items, short=short) for short in (False, True)]
    assert found[0].tables == found[1].tables
    assert found[0].log == found[1].log
    assert all(("OK" in line or "status" not in line) for line in found[1].checked), found[1].checked
    assert (found[1].sent < found[0].sent) == case.is_short
    assert (found[1].events > found[0].events) == case.several
    if not case.target or case.is_short:
        source = contents(pair.source)
        assert {table: rows for table, rows in found[1].tables.items() if "/" not in table} == {
            table: rows for table, rows in source.items() if "/" not in table
        }


def test_only_whole_images_write_columns_that_an_update_does_not_change(pair: Pair) -> None:
    """A drifted row: the servers find it by its key and compare nothing else."""
    case = table(f"(id INT PRIMARY KEY, {COLUMNS})", FILL, "UPDATE t SET n = n + 10 WHERE id = 1")
    pair.both(*case.ddl)
    recorder = pair.recorder()
    items = recorded(recorder, case)
    drift = ["UPDATE t SET w1 = 'drifted' WHERE id = 1"]
    for short, expected in ((False, "a"), (True, "drifted")):
        applied(pair.target, case, recorder, items, short=short, drift=drift)
        assert pair.rows("SELECT w1, n FROM shop.t WHERE id = 1") == [(expected, 11)]


@pytest.mark.parametrize("change", ["UPDATE t SET n = n + 10 WHERE id = 2", "DELETE FROM t WHERE id = 2"])
def test_a_row_that_is_missing_is_an_error(pair: Pair, change: str) -> None:
    case = table(f"(id INT PRIMARY KEY, {COLUMNS})", FILL, change)
    pair.both(*case.ddl)
    recorder = pair.recorder()
    items = recorded(recorder, case)
    for short in (False, True):
        with pytest.raises(Exception, match="1032"):
            applied(pair.target, case, recorder, items, short=short, drift=["DELETE FROM t WHERE id = 2"])


def test_a_count_other_than_the_handlers_is_noticed(pair: Pair) -> None:
    case = table(f"(id INT PRIMARY KEY, {COLUMNS})", FILL, "UPDATE t SET n = n + 10")
    pair.both(*case.ddl)
    recorder = pair.recorder()
    [fill, update] = recorded(recorder, case)
    wrong = Item(update.kind, update.payload, RowCounts(updates=2))
    with pytest.raises(DriftError, match="3 updates"):
        applied(pair.target, case, recorder, [fill, wrong], short=True)


def test_rows_of_a_table_that_the_window_alters_keep_whole_images(pair: Pair) -> None:
    pair.both(f"CREATE TABLE t (id INT PRIMARY KEY, {COLUMNS})")
    recorder = pair.recorder()
    recorder.run(FILL)
    [item] = recorder.run("UPDATE t SET n = n + 1").items
    key = TableKey(DATABASE, "t")
    with reader(pair.target) as tables:
        for altered, is_short in ((Alterations(), True), (Alterations({key: (3,)}), False)):
            guard = TableGuard(altered, pair.source.flavor, tables.read)
            assert (ShortImages(guard).of(item.payload, item.rows) != item.payload) == is_short


@dataclass(frozen=True, slots=True)
class Applied:
    """A target after the changes."""

    tables: dict[str, list[str]]
    log: list[str]
    """Row changes in the target's own log."""
    checked: list[str]
    sent: int
    """Bytes of events."""
    events: int
    """Rows events."""


def applied(
    target: PrivateServer,
    case: Case,
    recorder: Recorder,
    items: Sequence[Item],
    *,
    short: bool,
    drift: Sequence[str] = (),
) -> Applied:
    """Apply items to fresh tables. ``drift``: statements on the target behind the first item."""
    target.query(f"DROP DATABASE IF EXISTS {DATABASE}")
    target.query(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    run(target, *case.ddl, *case.target)
    file, position = end(target)
    engine = engine_at(target.url(), poolclass=NullPool)
    session = LaneSession.open(engine, QUICK.limits)
    sent = events = 0
    with contextlib.closing(session), reader(target) as tables:
        guard = TableGuard(Alterations(), target.flavor, tables.read)
        images = ShortImages(guard) if short else None
        writer = BinlogRows(session, guard, images)
        writer.prepare(recorder.format)
        for number, item in enumerate(items):
            payload = item.payload if images is None else images.of(item.payload, item.rows)
            sent, events = sent + len(payload), events + sum(not is_table_map(each) for each in events_of(payload))
            session.begin()
            writer.write(iter((item,)), 1)
            session.commit()
            if number == 0:
                run(target, *drift)
    engine.dispose()
    return Applied(contents(target), logged(target, file, position), checked(target), sent, events)


def recorded(recorder: Recorder, case: Case) -> list[Item]:
    """What the source logs, with all of its row changes: MySQL 9.7 logs those of foreign keys, too."""
    payloads = [item.payload for work in case.work for item in recorder.run(work).items]
    counts = [[rows for _, rows in rows_events(payload, recorder.source.flavor)] for payload in payloads]
    return [
        Item(ItemKind.ROWS, payload, sum(rows, RowCounts())) for payload, rows in zip(payloads, counts, strict=True)
    ]


@contextlib.contextmanager
def reader(server: PrivateServer) -> Iterator[TableReader]:
    engine = engine_at(server.url(), poolclass=NullPool)
    with engine.connect() as connection:
        yield TableReader(connection)
    engine.dispose()


def run(server: PrivateServer, *statements: str) -> None:
    with server.connect(autocommit=True, database=DATABASE) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def contents(server: PrivateServer) -> dict[str, list[str]]:
    """Every table's rows as bytes, and through each index the number of rows."""
    found = {}
    for name in tables_of(server):
        columns = server.query(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
            "ORDER BY ordinal_position", (DATABASE, name),
        )  # fmt: skip
        values = ", ".join(f"HEX(`{column}`)" for (column,) in columns)
        found[name] = sorted(str(row) for row in server.query(f"SELECT {values} FROM {DATABASE}.`{name}`"))
        for index in {row[2] for row in server.query(f"SHOW INDEX FROM {DATABASE}.`{name}`") if row[10] == "BTREE"}:
            counted = server.query(f"SELECT COUNT(*) FROM {DATABASE}.`{name}` FORCE INDEX (`{index}`)")
            found[f"{name}/{index}"] = [str(counted)]
    return found


def checked(server: PrivateServer) -> list[str]:
    return [str(row) for name in tables_of(server) for row in server.query(f"CHECK TABLE {DATABASE}.`{name}` EXTENDED")]


def tables_of(server: PrivateServer) -> list[str]:
    rows = server.query("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (DATABASE,))
    return [str(name) for (name,) in rows]


def end(server: PrivateServer) -> tuple[str, int]:
    row = server.query("SHOW MASTER STATUS" if server.flavor is Flavor.MARIADB else "SHOW BINARY LOG STATUS")[0]
    return str(row[0]), int(row[1])


def logged(server: PrivateServer, file: str, position: int) -> list[str]:
    command = [str(server.tool("binlog")), "-v", "--base64-output=DECODE-ROWS", f"--start-position={position}"]
    done = subprocess.run([*command, str(server.datadir / file)], capture_output=True, check=True)
    return [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.startswith("###")]
