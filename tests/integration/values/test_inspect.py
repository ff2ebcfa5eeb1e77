"""``binlane inspect --rows`` and ``--sql`` over logs of real servers."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

from rich.console import Console

from binlane.binlog.reader import LogReader
from binlane.orchestration.inspection import Detail, inspect_files
from lab.compare import data_of
from lab.servers import PrivateServer
from tests.integration.values.test_values import SESSION, logged, tables
from tests.integration.values.test_values import server as server  # a fixture
from tests.integration.values.types import OPAQUE, TYPES, Type


def inspected(data: bytes, folder: Path, *, as_json: bool = False, rows: bool = False, sql: bool = False) -> str:
    path = folder / "binlog.000001"
    path.write_bytes(data)
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    inspect_files([path], as_json=as_json, out=console, err=console, detail=Detail(rows=rows, sql=sql))
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


def test_the_statements_make_the_same_tables_again(server: PrivateServer, tmp_path: Path) -> None:
    """Not those that readable SQL cannot say: member number 0 has no name, JSON text has no dates."""
    types: list[Type] = [
        one
        for one in TYPES
        if server.flavor in one.servers and "ENUM(''" not in one.definition and one.values != OPAQUE
    ]
    changes = [f"UPDATE t{number} SET id = id + 100 WHERE id = 1" for number in range(len(types))]
    data = logged(server, *tables(types), *changes, "DELETE FROM t0 WHERE id = 2")
    before = data_of(server, "v")
    assert len(before) == len(types)
    server.query("DROP DATABASE v")
    sql = inspected(data, tmp_path, sql=True)

    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(SESSION)
        cursor.execute("SET SESSION foreign_key_checks = 0")
        for statement in statements(sql):
            cursor.execute(statement)
    after = data_of(server, "v")
    different = [types[int(name[1:])].definition for name, data in before.items() if after.get(name) != data]
    assert not different
    assert LogReader(data, "log").format.flavor is server.flavor


def statements(sql: str) -> list[str]:
    """Lines that begin with a keyword; a value's own line feeds are escaped in it."""
    keywords = ("INSERT ", "UPDATE ", "DELETE ", "CREATE ", "USE ")
    return [line.removesuffix(";") for line in sql.split("\n") if line.startswith(keywords)]
