"""kill -9 of the target at a file operation of a DDL: whatever its recovery makes of it, the lane ends as the source.

Invariant 2. MariaDB finishes some statements when it starts again and logs them under GTIDs of its own, undoes others,
and logs some before they are durable. ``strace`` kills the server at its n-th operation on files, so that every place
can be tried, and again. Without strace there are the seams of ``integration/apply/test_ddl_killed.py``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.model import Flavor
from binlane.state.migrations.upgrade import create
from lab.servers import PrivateServer, private_server
from tests.chaos.faults import plain_engine
from tests.chaos.rounds import some, survived
from tests.chaos.server_kill import run_and_kill
from tests.emptied import empty_target
from tests.integration.apply.capture import Recorder, Window
from tests.integration.apply.conftest import CREATED, DATABASE

_OPERATION_NUMBERS: Final = {"mariadb": range(3, 45), "mysql": range(1, 22)}
"""Which operation of any thread of the server is its last one: statements end after 10 to 50, or 10 to 20."""
_SETUP: Final = (
    "CREATE TABLE wide (id INT PRIMARY KEY, note VARCHAR(10), memo VARCHAR(10)) ENGINE=InnoDB",
    "INSERT INTO wide VALUES (1, 'x', 'X'), (2, 'y', 'Y')",
    "CREATE TABLE a (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE b (id INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO a VALUES (1)",
    "CREATE TABLE parts (id INT PRIMARY KEY) ENGINE=InnoDB PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE TABLE part (id INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO parts VALUES (2), (3), (4)",
    "INSERT INTO part VALUES (6)",
    "CREATE VIEW v AS SELECT id FROM part",
    "CREATE PROCEDURE old() SELECT 1",
    "CREATE TRIGGER before_a BEFORE INSERT ON a FOR EACH ROW SET @seen = 1",
)
_ACCOUNT: Final = "binlane_killed"
_STATEMENTS: Final = (
    "ALTER TABLE wide ADD KEY (note)",
    "ALTER TABLE wide MODIFY note VARCHAR(300) NOT NULL, ADD KEY (note), ALGORITHM=COPY",
    "ALTER TABLE wide CHANGE note memo VARCHAR(10), CHANGE memo note VARCHAR(10)",
    "CREATE INDEX named ON wide (memo)",
    "ALTER TABLE parts ADD PARTITION PARTITIONS 1",
    "ALTER TABLE parts COALESCE PARTITION 1",
    "ALTER TABLE parts EXCHANGE PARTITION p0 WITH TABLE part",
    "RENAME TABLE a TO x, b TO a, x TO b",
    "ALTER TABLE wide RENAME TO wider",
    "TRUNCATE TABLE wide",
    "DROP TABLE a, b",
    "CREATE TABLE made (id INT PRIMARY KEY, KEY (id))",
    "CREATE TABLE made (id INT PRIMARY KEY) ENGINE=InnoDB SELECT id FROM part",
    "CREATE VIEW made AS SELECT id FROM part",
    "ALTER VIEW v AS SELECT id + 1 AS id FROM a",
    "CREATE TRIGGER made BEFORE INSERT ON wide FOR EACH ROW SET @seen = 2",
    "DROP TRIGGER before_a",
    "CREATE PROCEDURE made() SELECT 2",
    "DROP PROCEDURE old",
    f"CREATE DATABASE {CREATED} CHARACTER SET latin1",
    f"ALTER DATABASE {DATABASE} CHARACTER SET latin1",
    f"CREATE USER {_ACCOUNT}@localhost",
    f"GRANT SELECT ON {DATABASE}.* TO {_ACCOUNT}_2@localhost",
    f"DROP USER {_ACCOUNT}_2@localhost",
)
_SHOWN: Final = (
    "SELECT schema_name, default_character_set_name FROM information_schema.schemata "
    f"WHERE schema_name IN ('{DATABASE}', '{CREATED}') ORDER BY 1",
    f"SELECT routine_name, routine_definition FROM information_schema.routines WHERE routine_schema = '{DATABASE}' "
    "ORDER BY 1",
    f"SELECT trigger_name, action_statement FROM information_schema.triggers WHERE trigger_schema = '{DATABASE}' "
    "ORDER BY 1",
    f"SELECT user FROM mysql.user WHERE user LIKE '{_ACCOUNT}%' ORDER BY 1",
    "SELECT table_schema, privilege_type, grantee FROM information_schema.schema_privileges "
    f"WHERE grantee LIKE '%{_ACCOUNT}%' ORDER BY 1, 2, 3",
)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed: apt install strace")
@pytest.mark.parametrize(
    ("family", "log_bin", "sample"),
    [
        pytest.param("mariadb", True, 10, id="mariadb"),
        pytest.param("mariadb", False, 5, id="mariadb without a log"),
        pytest.param("mysql", True, 4, id="mysql"),
    ],
)
@pytest.mark.trial
def test_kill_9_of_the_target_at_a_file_operation_of_a_ddl(
    family: str, log_bin: bool, sample: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source = request.getfixturevalue(f"{family}_source")
    points = [(statement, number) for statement in _STATEMENTS for number in _OPERATION_NUMBERS[family]]
    windows: dict[str, tuple[Window, list[object]]] = {}
    name = f"killed_{family}"
    with private_server(tmp_path / "data", Flavor(family), name=name, log_bin=log_bin, durable=True) as target:
        for statement, number in some(points, request.node.name, sample=sample, share=0.15):
            if statement not in windows:
                _lay(source)
                recorder = Recorder(source, DATABASE, setup=("SET SESSION binlog_format = 'STATEMENT'",))
                window = Window(recorder.format)
                window.add(0, recorder.ddl(statement))
                windows[statement] = window, list(_contents(source))
            window, expected = windows[statement]
            if not empty_target(target):
                create(plain_engine(target.url()))
            _lay(target)
            killed = run_and_kill(target, window, number)
            assert list(_contents(target)) == expected, f"{statement}: killed at file operation {number}"
            assert target.query("SELECT * FROM binlane.ddl") == []
            survived[f"{family} killed inside a DDL"] += killed


def _lay(server: PrivateServer) -> None:
    statements = (
        f"DROP DATABASE IF EXISTS {CREATED}",
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"DROP USER IF EXISTS {_ACCOUNT}@localhost, {_ACCOUNT}_2@localhost",
        f"CREATE USER {_ACCOUNT}_2@localhost",
        f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        f"USE {DATABASE}",
        *_SETUP,
    )
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _contents(server: PrivateServer) -> Iterator[object]:
    tables = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{DATABASE}' ORDER BY 1"
    for (table,) in server.query(tables):
        rows = server.query(f"SELECT * FROM {DATABASE}.{table}")
        yield server.query(f"SHOW CREATE TABLE {DATABASE}.{table}"), sorted(map(repr, rows))
    yield from (server.query(query) for query in _SHOWN)
