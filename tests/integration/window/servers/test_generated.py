"""Random schemas, rows and statements on a real source, the whole pipeline, then equality: what nobody thought of."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pymysql
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, fresh_channel, run_on

EXAMPLES: Final = int(os.environ.get("BINLANE_EXAMPLES", "6"))
NUMBERS: Final = st.one_of(st.sampled_from([0, 1, -1, 127, 255, 32767, 2**31 - 1, -(2**31)]), st.integers(0, 9)).map(
    str
)
TEXTS: Final = st.one_of(
    st.sampled_from(["''", "'a'", "'A'", "'ä'", "'a '", "'\\'`\"'", "X'00ff5c27'", "'💡 x'", "REPEAT('z', 300)"]),
    st.text("abÄ\\'%", max_size=6).map(lambda text: "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"),
)
TIMES: Final = st.sampled_from(
    [
        "'2026-01-31 23:59:59.987654'",
        "'1999-12-31 00:00:00'",
        "'2024-02-29 12:00:00.5'",
        "NOW(6)",
        "'2038-01-19 03:14:07'",
    ]
)
TYPES: Final = {
    "INT": NUMBERS,
    "BIGINT UNSIGNED": NUMBERS,
    "TINYINT": NUMBERS,
    "DECIMAL(20,6)": NUMBERS,
    "DOUBLE": st.sampled_from(["0.1", "1e300", "-0.0", "1/3", "12345678901234567890"]),
    "VARCHAR(40) CHARACTER SET utf8mb4": TEXTS,
    "VARCHAR(40) CHARACTER SET latin1": TEXTS,
    "CHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": TEXTS,
    "VARBINARY(40)": TEXTS,
    "BINARY(6)": TEXTS,
    "TEXT": TEXTS,
    "BLOB": TEXTS,
    "DATETIME(6)": TIMES,
    "DATETIME": TIMES,
    "TIMESTAMP(3) NULL": TIMES,
    "TIME(2)": st.sampled_from(["'-838:59:59'", "'12:34:56.78'", "'-00:00:00.01'"]),
    "DATE": st.sampled_from(["'2026-01-01'", "'1000-01-01'", "CURDATE()"]),
    "YEAR": st.sampled_from(["2026", "1901", "0"]),
    "BIT(10)": st.sampled_from(["b'1'", "b'1111111111'", "0"]),
    "ENUM('x','y','ä')": st.sampled_from(["'x'", "'ä'", "2"]),
    "SET('p','q','r')": st.sampled_from(["'p'", "'p,r'", "''", "7"]),
    "JSON": st.sampled_from(['\'{"a": [1, null, "ü"]}\'', "'[]'", "'1.50'", "'\"x\"'"]),
}
FORMATS: Final = ("ROW", "ROW", "ROW", "MIXED", "STATEMENT")


@dataclass(frozen=True)
class Table:
    """A table by its number; the first column is its key, if it has one."""

    name: str
    types: tuple[str, ...]
    has_key: bool
    unique: int | None

    def definition(self) -> str:
        columns = ["id INT NOT NULL" + (" PRIMARY KEY" if self.has_key else "")]
        columns += [f"c{number} {kind}" for number, kind in enumerate(self.types)]
        if self.unique is not None and not any(kind in self.types[self.unique] for kind in ("TEXT", "BLOB", "JSON")):
            columns.append(f"UNIQUE KEY u (c{self.unique})")
        return f"CREATE TABLE {self.name} ({', '.join(columns)})"


@st.composite
def tables(draw: st.DrawFn, name: str) -> Table:
    types = tuple(draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=5)))
    unique = draw(st.one_of(st.none(), st.integers(0, len(types) - 1)))
    return Table(name, types, draw(st.integers(0, 5)) > 0, unique)


@st.composite
def statements(draw: st.DrawFn, known: Sequence[Table]) -> str:
    """One statement; it may fail on the source, as statements do."""
    table = draw(st.sampled_from(list(known)))
    values = [draw(st.one_of(st.just("NULL"), TYPES[kind])) for kind in table.types]
    key, column = draw(st.integers(1, 12)), draw(st.integers(0, len(table.types) - 1))
    where = draw(st.sampled_from([f"id = {key}", f"id % 3 = {key % 3}", "1 = 1"]))
    ordered = "ORDER BY id LIMIT 2" if table.has_key else ""
    rows = ", ".join(f"({key + more}, {', '.join(values)})" for more in range(draw(st.integers(1, 3))))
    other = draw(st.sampled_from(list(known)))
    return draw(
        st.sampled_from(
            [
                f"INSERT INTO {table.name} VALUES {rows}",
                f"REPLACE INTO {table.name} VALUES {rows}",
                f"INSERT IGNORE INTO {table.name} VALUES {rows}",
                f"UPDATE {table.name} SET c{column} = {values[column]} WHERE {where}",
                f"UPDATE {table.name} SET id = id + 20 WHERE id = {key}",
                f"DELETE FROM {table.name} WHERE {where} {ordered}",
                f"INSERT INTO {table.name} (id) SELECT id + 40 FROM {other.name} ORDER BY id LIMIT 1",
                f"UPDATE {table.name} t, {other.name} o SET t.id = t.id + 100 WHERE t.id = o.id AND t.id = {key}",
            ]
        )
    )


@st.composite
def definitions(draw: st.DrawFn, known: Sequence[Table]) -> str:
    """A DDL that leaves the columns that other statements name."""
    table = draw(st.sampled_from(list(known)))
    number = draw(st.integers(0, 99))
    return draw(
        st.sampled_from(
            [
                f"TRUNCATE TABLE {table.name}",
                f"ALTER TABLE {table.name} ADD COLUMN x{number} INT",
                f"ALTER TABLE {table.name} ADD KEY k{number} (id)",
                f"ALTER TABLE {table.name} COMMENT = 'number {number}'",
                f"CREATE TABLE copy_{number} LIKE {table.name}",
                f"CREATE OR REPLACE VIEW v AS SELECT id FROM {table.name}",
                f"RENAME TABLE {table.name} TO swap, {table.name}_other TO {table.name}, swap TO {table.name}_other",
            ]
        )
    )


@st.composite
def scripts(draw: st.DrawFn) -> tuple[list[Table], list[str]]:
    """Tables in two databases, and a session's statements: transactions, DDL, formats, savepoints, rollbacks."""
    known = [draw(tables(f"{database}.t{number}")) for database in ("tenant_one", "tenant_two") for number in range(2)]
    script: list[str] = []
    for _ in range(draw(st.integers(3, 14))):
        kind = draw(st.integers(0, 9))
        if kind == 0:
            script.append(draw(definitions(known)))
        elif kind == 1:
            script.append(f"SET SESSION binlog_format = {draw(st.sampled_from(FORMATS))}")
        elif kind == 2:
            script.append(f"SET SESSION binlog_row_image = {draw(st.sampled_from(['FULL', 'MINIMAL', 'NOBLOB']))}")
        else:
            inside = draw(st.lists(statements(known), min_size=1, max_size=4))
            if draw(st.booleans()):
                inside = [inside[0], "SAVEPOINT s", *inside[1:], "ROLLBACK TO SAVEPOINT s"]
            script += ["BEGIN", *inside, draw(st.sampled_from(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]))]
    return known, script


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def begin(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> Callable[[], Channel]:
    """A function that begins a channel anew between two empty servers: an example that failed leaves nothing behind."""
    source, target = (request.getfixturevalue(f"{request.param}_{role}") for role in ("source", "target"))
    numbers = itertools.count(1)

    def fresh() -> Channel:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return fresh_channel(source, target, folder, clean_servers)

    return fresh


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink) if "BINLANE_EXAMPLES" in os.environ else (Phase.generate,),
    suppress_health_check=list(HealthCheck),
    derandomize="BINLANE_EXAMPLES" not in os.environ,
    report_multiple_bugs=False,
)
@given(script=scripts(), reduce=st.sampled_from(["off", "block", "window"]), are_there=st.booleans())
def test_generated_sessions_leave_equal_data_on_the_target(
    begin: Callable[[], Channel], script: tuple[list[Table], list[str]], reduce: str, are_there: bool
) -> None:
    """``are_there``: the tables are on both servers before the window: rows of those that it makes are not folded."""
    channel, (known, todo) = begin(), script
    channel.write_channel(blocks=f'reduce = "{reduce}"\n')
    with contextlib.closing(channel.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        made = [f"CREATE DATABASE {name} CHARACTER SET utf8mb4" for name in ("tenant_one", "tenant_two")]
        for table in known:
            made += [table.definition(), f"CREATE TABLE {table.name}_other LIKE {table.name}"]
        for server in (channel.source, channel.target)[: 2 if are_there else 1]:
            run_on(server, *made, log=not are_there)
        cursor.execute("USE tenant_one")
        # what is refused under a strict mode is taken, or mended, under this one
        cursor.execute("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'")
        for statement in todo:
            # a statement that the source refuses is no concern of the log, or is in it as what it left behind
            with contextlib.suppress(pymysql.err.MySQLError):
                cursor.execute(statement)
    # every statement may have been refused, and the tables be there: then no window is needed
    channel.run()
    channel.assert_equal()
