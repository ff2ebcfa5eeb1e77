"""Reduced blocks against the source's own state: generated workloads that fight over keys, on real servers.

Whatever the source makes of a workload, the target must hold the same, AUTO_INCREMENT included.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest

from binlane.choices import Reduce
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import read_inputs
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, fresh_channel
from tests.one_runner import apply_alone

SCHEMA = (
    "CREATE TABLE {db}.u (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(20) UNIQUE, n INT UNIQUE, note TEXT)",
    "CREATE TABLE {db}.c (k VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT)",
    "CREATE TABLE {db}.x (a INT, b INT)",
    "CREATE TABLE {db}.two (a INT, b VARCHAR(10), c INT, PRIMARY KEY (a, b), UNIQUE (c))",
    "CREATE TABLE {db}.bits (id BIGINT UNSIGNED PRIMARY KEY, b BIT(9), e ENUM('x','y','z'), d DECIMAL(9,3), "
    "t DATETIME(3), g INT AS (id % 10) STORED, f DOUBLE, UNIQUE (e, d))",
    "CREATE TABLE {db}.parent (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE {db}.child (id INT PRIMARY KEY, p INT, "
    "FOREIGN KEY (p) REFERENCES {db}.parent (id) ON DELETE CASCADE)",
    "CREATE TABLE {db}.auto (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, v INT)",
)
REFUSALS = (1062, 1264, 1451, 1452)
WORDS = ("a", "A", "á", "b", "B ", "b ", "c", "ß", "ss", "")
MAYBE = (None, 0, 1, 2, 3, 4, 5)


def change(draw: random.Random, db: str) -> tuple[str, tuple[object, ...]]:
    """One statement that may well be refused: what the source takes, counts."""
    word, other, n, m = draw.choice(WORDS), draw.choice(WORDS), draw.choice(MAYBE), draw.randrange(6)
    return draw.choice(
        [
            (f"INSERT INTO {db}.u (email, n, note) VALUES (%s, %s, REPEAT('n', %s))", (word, n, draw.randrange(300))),
            (f"UPDATE {db}.u SET email = %s WHERE id %% 7 = %s LIMIT 1", (draw.choice([None, word]), m)),
            (f"UPDATE {db}.u SET n = n + 10 WHERE n = %s", (n,)),
            (f"UPDATE {db}.u SET n = n - 10 WHERE n >= 10 LIMIT 1", ()),
            (f"UPDATE {db}.u SET id = id + 1000 WHERE id %% 9 = %s LIMIT 1", (m,)),
            (f"DELETE FROM {db}.u WHERE id %% 5 = %s LIMIT 2", (m,)),
            (f"INSERT INTO {db}.c VALUES (%s, 1)", (word,)),
            (f"UPDATE {db}.c SET k = %s WHERE k = %s", (word, other)),
            (f"UPDATE {db}.c SET v = v + 1 WHERE k = %s", (word,)),
            (f"DELETE FROM {db}.c WHERE k = %s", (word,)),
            (f"REPLACE INTO {db}.c VALUES (%s, %s)", (word, n)),
            (f"INSERT INTO {db}.x VALUES (%s, %s)", (m, m)),
            (f"UPDATE {db}.x SET b = b + 1 WHERE a = %s LIMIT 1", (m,)),
            (f"DELETE FROM {db}.x WHERE a = %s LIMIT 1", (m,)),
            (f"INSERT INTO {db}.two VALUES (%s, %s, %s)", (m, word, n)),
            (f"UPDATE {db}.two SET a = %s, c = %s WHERE a = %s LIMIT 1", (m, n, draw.randrange(6))),
            (f"DELETE FROM {db}.two WHERE b = %s LIMIT 1", (word,)),
            (f"INSERT INTO {db}.bits (id, b, e, d, t, f) VALUES (%s, %s, %s, %s, '2026-01-02 03:04:05.678', %s)",
             (draw.randrange(30), m, draw.choice("xyz"), m / 8, draw.choice([0.0, -0.0, 1.5]))),
            (f"UPDATE {db}.bits SET e = %s, d = d + %s WHERE id = %s", (draw.choice("xyz"), m, draw.randrange(30))),
            (f"DELETE FROM {db}.bits WHERE id = %s", (draw.randrange(30),)),
            (f"INSERT INTO {db}.parent VALUES (%s, 1)", (m,)),
            (f"INSERT INTO {db}.child VALUES (%s, %s)", (draw.randrange(20), n)),
            (f"DELETE FROM {db}.parent WHERE id = %s", (m,)),
            (f"INSERT INTO {db}.auto (v) VALUES (%s)", (m,)),
            (f"DELETE FROM {db}.auto ORDER BY id DESC LIMIT 1", ()),
        ]
    )  # fmt: skip


def drive(server: PrivateServer, seed: int, transactions: int) -> int:
    """Run a seeded workload; how many statements the server took."""
    draw, taken = random.Random(seed), 0
    connection = server.connect()
    try:
        cursor = connection.cursor()
        for _ in range(transactions):
            db = draw.choice(("d1", "d2"))
            if draw.random() < 0.02:
                image = draw.choice(("FULL", "MINIMAL", "NOBLOB"))
                cursor.execute(f"SET SESSION binlog_row_image = '{image}'")
            for _ in range(draw.randint(1, 4)):
                statement, arguments = change(draw, db)
                try:
                    cursor.execute(statement, arguments)
                    taken += 1
                except pymysql.err.MySQLError as exc:
                    if exc.args[0] not in REFUSALS:
                        raise
            if draw.random() < 0.9:
                connection.commit()
            else:
                connection.rollback()
    finally:
        connection.close()
    return taken


def counters(server: PrivateServer) -> list[tuple[object, ...]]:
    """The next AUTO_INCREMENT value of each table that has one."""
    server.query("ANALYZE TABLE d1.u, d2.u, d1.auto, d2.auto")
    return server.query(
        "SELECT table_schema, table_name, auto_increment FROM information_schema.tables "
        "WHERE table_schema IN ('d1', 'd2') AND auto_increment IS NOT NULL ORDER BY 1, 2"
    )


def contents(server: PrivateServer) -> dict[str, list[str]]:
    """All rows of all tables, as often as they are there."""
    names = [f"{db}.{definition.split('.')[1].split()[0]}" for db in ("d1", "d2") for definition in SCHEMA]
    found = {name: sorted(map(str, server.query(f"SELECT * FROM {name}"))) for name in names}
    assert sum(map(len, found.values())) > 50, "an empty comparison proves nothing"
    return found


def check(channel: Channel, seeds: range, reduce: str) -> None:
    channel.write_channel(blocks=f'reduce = "{reduce}"\n')
    text = (channel.channels / "orders.toml").read_text().replace("transactions = 20\n", "transactions = 150\n")
    (channel.channels / "orders.toml").write_text(text)
    for db in ("d1", "d2"):
        channel.source.query(f"CREATE DATABASE {db} CHARACTER SET utf8mb4")
        for definition in SCHEMA:
            channel.source.query(definition.format(db=db))
    assert channel.run() is not None
    for seed in seeds:
        assert drive(channel.source, seed, 400) > 300
        assert channel.run() is not None
        # row by row: CHECKSUM TABLE of MariaDB is not the same twice for a table with a BIT column
        assert contents(channel.target) == contents(channel.source)
        # the source counts on after a rollback as well, which its log does not say
        for ours, theirs in zip(counters(channel.source), counters(channel.target), strict=True):
            assert theirs[:2] == ours[:2]
            assert theirs[2] <= ours[2]  # type: ignore[operator]


REDUCE = pytest.mark.parametrize("reduce", ["block", "window"])


@REDUCE
def test_reduced_windows_equal_the_source_on_mariadb(channel: Channel, reduce: str) -> None:
    check(channel, range(4), reduce)


@requires_mysql
@REDUCE
def test_reduced_windows_equal_the_source_on_mysql(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None], reduce: str
) -> None:
    servers = (request.getfixturevalue("mysql_source"), request.getfixturevalue("mysql_target"))
    check(fresh_channel(*servers, tmp_path, clean_servers), range(3), reduce)


def test_what_is_chosen_for_a_window_is_applied_and_chosen_again_when_its_files_are_lost(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("binlane.plan.window.size_choice.FEWEST_TRANSACTIONS", 1)
    channel.write_channel()
    file = channel.channels / "orders.toml"
    file.write_text(file.read_text().replace("transactions = 20\n", ""))
    for db in ("d1", "d2"):
        channel.source.query(f"CREATE DATABASE {db} CHARACTER SET utf8mb4")
        for definition in SCHEMA:
            channel.source.query(definition.format(db=db))
    assert channel.run() is not None
    drive(channel.source, 1, 400)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    plan = run_plan_job(WorkFolder(window["work"]), InProcess())
    assert plan.size is not None
    assert plan.size.reduce is Reduce.WINDOW
    # the third pass has run
    assert WorkFolder(window["work"]).child(read_inputs(WorkFolder(window["work"])).key).exists("parts")
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    assert adopted["plan"] is not None
    apply_alone(channel.config, channel.endpoints, adopted["plan"], 0)
    shutil.rmtree(window["work"])
    again = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert run_plan_job(WorkFolder(again["work"]), InProcess()).digest == plan.digest
    channel.go_on(again)
    assert contents(channel.target) == contents(channel.source)


def test_auto_increment_ends_where_the_sources_does(channel: Channel) -> None:
    channel.write_channel(blocks='reduce = "block"\n')
    channel.source.query("CREATE DATABASE d1 CHARACTER SET utf8mb4")
    channel.source.query("CREATE DATABASE d2 CHARACTER SET utf8mb4")
    for definition in (SCHEMA[0], SCHEMA[-1]):
        for db in ("d1", "d2"):
            channel.source.query(definition.format(db=db))
    assert channel.run() is not None
    for statement in (
        "INSERT INTO d1.auto (v) VALUES (1), (2), (3)",
        "DELETE FROM d1.auto WHERE id >= 2",
        "INSERT INTO d1.u (email, n) VALUES ('a', 1), ('b', 2)",
        "DELETE FROM d1.u WHERE n = 2",
        # the value of the row that came and went goes to another one
        "UPDATE d1.u SET n = 2",
        "INSERT INTO d2.auto (v) VALUES (1)",
        "DELETE FROM d2.auto",
    ):
        channel.source.query(statement)
    assert channel.run() is not None
    channel.assert_equal()
    assert counters(channel.target) == counters(channel.source)
