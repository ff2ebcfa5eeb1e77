"""``binlane inspect --rows`` and ``--sql`` over logs of real servers."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import Final

from binlane.binlog.reader import LogReader
from binlane.model import Flavor
from binlane.orchestration.commands.inspection.events import Detail, inspect_files
from binlane.orchestration.terminal import Terminal
from lab.compare import data_of
from lab.servers import PrivateServer
from tests.integration.values.test_values import SESSION, logged, tables
from tests.integration.values.test_values import server as server  # a fixture
from tests.integration.values.types import TYPES, Type


def inspected(data: bytes, folder: Path, *, as_json: bool = False, rows: bool = False, sql: bool = False) -> str:
    path = folder / "binlog.000001"
    path.write_bytes(data)
    shown = io.StringIO()
    # the file has another name than the server gave it, which is said beside the lines
    out, err = Terminal(file=shown, width=200), Terminal(file=io.StringIO())
    inspect_files([path], as_json=as_json, out=out, err=err, detail=Detail(rows=rows, sql=sql))
    return shown.getvalue()


def test_rows_show_what_changed(server: PrivateServer, tmp_path: Path) -> None:
    data = logged(
        server,
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), paid DECIMAL(8,2), raw VARBINARY(4)) ENGINE=InnoDB",
        "INSERT INTO t VALUES (1, 'it''s', 1.50, X'00ff'), (2, NULL, -0.05, '')",
        "UPDATE t SET paid = 2 WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
    )
    lines = [line.strip() for line in inspected(data, tmp_path, rows=True).splitlines() if line.startswith("  " * 4)]
    assert [line for line in lines if line.startswith("v.t ")] == [
        "v.t insert id=1 name='it''s' paid=1.50 raw=X'00ff'",
        "v.t insert id=2 name=NULL paid=-0.05 raw=X''",
        "v.t update id=1 name='it''s' paid=1.50 raw=X'00ff' -> id=1 name='it''s' paid=2.00 raw=X'00ff'",
        "v.t delete id=2 name=NULL paid=-0.05 raw=X''",
    ]
    objects = [json.loads(line) for line in inspected(data, tmp_path, as_json=True, rows=True, sql=True).splitlines()]
    assert objects[2]["changes"][0] == {
        "table": "v.t",
        "kind": "insert",
        "after": {"id": 1, "name": "it's", "paid": "1.50", "raw": {"hex": "00ff"}},
    }
    assert objects[4]["sql"] == ["DELETE FROM `v`.`t` WHERE `id` = 2 LIMIT 1;"]


KEYLESS: Final = (
    "CREATE TABLE texts (l VARCHAR(9) CHARACTER SET latin1, j VARCHAR(9) CHARACTER SET sjis, u VARCHAR(9) CHARACTER SET"
    " ucs2, c CHAR(5) COLLATE utf8mb4_general_ci, r VARBINARY(9), a VARCHAR(9) CHARACTER SET armscii8, n INT)",
    "INSERT INTO texts VALUES ('é', _sjis X'955c', '日', 'a', 'a', X'2ca9', 1),"
    " ('É', _sjis X'815f', '日 ', 'A', 'a ', '', 1),"
    " ('e', _sjis X'5c', _ucs2 X'd800', 'á', '', X'a92c', 1), ('e ', 'a', '', NULL, NULL, NULL, 1)",
    "UPDATE texts SET n = 2 WHERE CAST(c AS BINARY) = 'A'",
    "UPDATE texts SET n = 3 WHERE CAST(j AS BINARY) = X'5c'",
    "UPDATE texts SET n = 4 WHERE c IS NULL",
    "DELETE FROM texts WHERE n = 3",
    "CREATE TABLE sets (e ENUM('', 'a'), s SET('a', 'é') CHARACTER SET latin1, k ENUM('', 'a') PRIMARY KEY, n INT)",
    "INSERT INTO sets VALUES ('', 'a,é', 0, 1), (0, '', '', 1), (1, 'é', 'a', 1)",
    "UPDATE sets SET n = 2 WHERE k + 0 = 1",
    "DELETE FROM sets WHERE k + 0 = 0",
    "CREATE TABLE members (e ENUM('', 'a'), n INT)",
    "INSERT INTO members VALUES (0, 1), ('', 1), ('a', 1)",
    "UPDATE members SET n = 2 WHERE e + 0 = 1",
    "DELETE FROM members WHERE e + 0 = 0",
    "CREATE TABLE others (f FLOAT, d DOUBLE, b BIT(5), t DATETIME(6), x DECIMAL(5,2), g POINT, y YEAR, n INT)",
    "INSERT INTO others VALUES (0.1, 0.1, 3, '2024-01-02 03:04:05.678901', -1.5, ST_GeomFromText('POINT(1 2)'), 1999, 1"
    "), (16777217, 1e300, 0, '0000-00-00', 0, NULL, 0, 1), (0.3, -0.1, 31, NULL, NULL, NULL, NULL, 1)",
    "UPDATE others SET n = 2 WHERE b = 3",
    "DELETE FROM others WHERE b = 0",
    "CREATE TABLE floats (f FLOAT PRIMARY KEY, n INT)",
    "INSERT INTO floats VALUES (0.1, 1), (0.2, 2)",
    "UPDATE floats SET n = 9 WHERE n = 1",
    "DELETE FROM floats WHERE n = 2",
    "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END -- at the end",
)  # fmt: skip
"""Rows that only their exact bytes tell from others, and a statement with semicolons of its own."""
KEYLESS_OF: Final = {
    Flavor.MARIADB: (
        "CREATE TABLE own (u UUID, i INET6, j INET4, c VARCHAR(100) COMPRESSED, n INT)",
        "INSERT INTO own VALUES ('123e4567-e89b-12d3-a456-426655440000', '::1', '10.0.0.0', REPEAT('a', 90), 1),"
        " ('00000000-0000-0000-0000-000000000000', '::', '0.0.0.0', 'x', 1), (NULL, '2001:db8::', NULL, 'X', 1)",
        "UPDATE own SET n = 2 WHERE i = '::'",
        "DELETE FROM own WHERE i = '::1'",
        "CREATE TABLE dynamic (id INT PRIMARY KEY, b BLOB)",
        "INSERT INTO dynamic VALUES (1, COLUMN_CREATE('a', 1, 'b', 'x'))",
        "UPDATE dynamic SET b = COLUMN_ADD(b, 'c', 2.5)",
    ),
    Flavor.MYSQL: (
        "CREATE TABLE own (j JSON, v VECTOR(2), n INT, t VARCHAR(9) CHARACTER SET latin1,"
        " c CHAR(3) CHARACTER SET cp1251)",
        "INSERT INTO own VALUES ('1', TO_VECTOR('[1,2]'), 1, 'é', 'Ж'), ('1.0', NULL, 1, 'ü', NULL),"
        " (CAST(CAST('1.0' AS DECIMAL(3,1)) AS JSON), NULL, 1, NULL, 'Ы')",
        "UPDATE own SET n = 2 WHERE JSON_TYPE(j) = 'DOUBLE'",
        "DELETE FROM own WHERE v IS NOT NULL",
        "SET SESSION binlog_row_value_options = PARTIAL_JSON",
        "CREATE TABLE parts (id INT PRIMARY KEY, j JSON)",
        """INSERT INTO parts VALUES (1, '{"k": [1, 2, 3], "long": "xxxxxxxxxxxxxxxxxxx", "n": 22222222}')""",
        "UPDATE parts SET j = JSON_REPLACE(j, '$.n', CAST('2.50' AS DECIMAL(5,2)))",
        "UPDATE parts SET j = JSON_REMOVE(JSON_SET(j, '$.k[1]', 'new'), '$.k[0]')",
        "UPDATE parts SET j = JSON_SET(j, '$.q', CAST('2024-01-01' AS DATE))",
        "CREATE TABLE minimal (id INT PRIMARY KEY, j JSON, a INT DEFAULT 7)",
        "SET SESSION binlog_row_image = MINIMAL",
        "INSERT INTO minimal (id, j) VALUES (1, JSON_OBJECT('a', 1, 'long', REPEAT('x', 50))), (2, NULL)",
        "UPDATE minimal SET j = JSON_REPLACE(j, '$.a', 2)",
        "INSERT INTO minimal (id, a) VALUES (3, NULL)",
        "DELETE FROM minimal WHERE id = 2",
    ),
}


def test_the_statements_make_the_same_tables_again(server: PrivateServer, tmp_path: Path) -> None:
    types: list[Type] = [one for one in TYPES if server.flavor in one.servers]
    changes = [f"UPDATE t{number} SET id = id + 100 WHERE id = 1" for number in range(len(types))]
    data = logged(server, *tables(types), *changes, "DELETE FROM t0 WHERE id = 2", *KEYLESS, *KEYLESS_OF[server.flavor])
    before = data_of(server, "v")
    assert len(before) > len(types) + 5
    server.query("DROP DATABASE v")
    sql = inspected(data, tmp_path, rows=True, sql=True)

    piped(server, f"SET NAMES utf8mb4, {SESSION.removeprefix('SET SESSION ')};\n{sql}")
    after = data_of(server, "v")
    different = [
        types[int(name[1:])].definition if name[1:].isdigit() else name
        for name, data in before.items()
        if after.get(name) != data
    ]
    assert not different
    ((routine,),) = server.query(
        "SELECT routine_definition FROM information_schema.routines WHERE routine_schema = 'v'"
    )
    assert routine.startswith("BEGIN SELECT 1; SELECT 2; END")
    assert LogReader(data, "log").format.flavor is server.flavor


def test_decimals_are_spelled_as_the_server_does_and_loaded_files_are_named(
    server: PrivateServer, tmp_path: Path
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("7,7\n")
    file.chmod(0o644)
    data = logged(
        server,
        "CREATE TABLE t (id INT PRIMARY KEY, x DECIMAL(30,10))",
        "INSERT INTO t VALUES (1, 0), (2, 1e-10), (3, -12345678901234567890)",
        "SET SESSION binlog_format = STATEMENT",
        f"LOAD DATA INFILE '{file}' INTO TABLE t FIELDS TERMINATED BY ','",
    )
    by_server = [row[0] for row in server.query("SELECT CAST(x AS CHAR) FROM v.t WHERE id < 4 ORDER BY id")]
    assert by_server == ["0.0000000000", "0.0000000001", "-12345678901234567890.0000000000"]
    objects = [json.loads(line) for line in inspected(data, tmp_path, as_json=True, rows=True).splitlines()]
    changes = [change for each in objects for change in each["changes"]]
    assert [change["after"]["x"] for change in changes if "after" in change] == by_server
    text = inspected(data, tmp_path, rows=True)
    assert all(value in text for value in by_server)
    assert f"LOAD DATA INFILE '{file}'" in text


def piped(server: PrivateServer, sql: str) -> None:
    """Through the server's own client, as a person does it."""
    login = (f"--socket={server.socket}", f"--user={server.user}", f"--password={server.password}")
    done = subprocess.run(
        [str(server.tool("client")), "--no-defaults", *login], input=sql.encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
