"""A database with all kinds of objects, its dump by the server's own program, changes, and its end."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import zstandard

from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, run_on
from tests.shell_dump import DumpedDatabase, DumpedTable, Session, ShellDump

DATABASE: Final = "store_042"
OTHER: Final = "store_043"
MADE: Final = (
    "CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50), b BLOB, at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)",
    "CREATE TABLE c (id INT PRIMARY KEY, a_id INT, FOREIGN KEY (a_id) REFERENCES a (id) ON DELETE CASCADE)",
    "INSERT INTO a (v, b) VALUES ('x;y', X'00FF27225C0A'), ('z''\\\\', NULL), ('Zürich', NULL)",
    "INSERT INTO c VALUES (1, 1), (2, 2)",
    "CREATE VIEW w AS SELECT v FROM a WHERE v <> ';'",
    "CREATE TRIGGER tr BEFORE INSERT ON a FOR EACH ROW BEGIN SET NEW.v = CONCAT(NEW.v, ';;'); END",
    "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT ';'; END",
    "CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x + 1",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM a WHERE id < 0",
)
KINDS: Final = (
    "CREATE TABLE kinds (id INT PRIMARY KEY, bits BIT(13), g GEOMETRY, f BINARY(4), y YEAR, n DECIMAL(20,5), d DOUBLE, "
    "t TIME(3), dt DATETIME(6), e ENUM('a', '1', ''), s SET('x', 'y'), j JSON, big MEDIUMBLOB, u BIGINT UNSIGNED, "
    "l VARCHAR(20) CHARACTER SET latin1, `a``b` TEXT, twice INT GENERATED ALWAYS AS (id * 2) STORED)",
    "INSERT INTO kinds (id, bits, g, f, y, n, d, t, dt, e, s, j, big, u, l, `a``b`) VALUES "
    "(0, B'1010000000101', ST_GeomFromText('POINT(1 2)'), X'00FF', 0, -1.5, 1e-300, '-12:00:00.123', "
    "'2026-01-31 12:00:00.000001', '1', 'x,y', '{\"a\": [1, \"b\\\\\\\\\"]}', X'000D0A091A5C27', "
    "18446744073709551615, 'Zürich', X'61096208005C4E0A0D1A'), "
    "(1, B'0', NULL, X'', NULL, NULL, NULL, NULL, NULL, '', '', NULL, REPEAT(X'5C', 200), NULL, '', X'5C4E')",
    "INSERT INTO kinds (id) VALUES (7)",
    "CREATE TABLE parts (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
    "INSERT INTO parts VALUES (1), (2), (3), (4), (5)",
    "CREATE TABLE nothing (id INT)",
)
"""Every kind of value that a dump of MySQL Shell spells in a way of its own."""
BYTES: Final = frozenset({"bit", "geometry"})
CHANGES: Final = (
    *(f"INSERT INTO a (v) VALUES ('r{number}')" for number in range(6)),
    "UPDATE a SET v = 'u' WHERE id IN (1, 4)",
    "DELETE FROM a WHERE id = 2",
    "ALTER TABLE a ADD COLUMN n INT DEFAULT 3",
    "CREATE TABLE late (id INT PRIMARY KEY)",
    "INSERT INTO late VALUES (1), (2)",
    "CREATE VIEW wl AS SELECT id FROM late",
    "DROP PROCEDURE p",
    "INSERT INTO a (v) VALUES ('last')",
)


@dataclass(slots=True)
class Scene:
    """The source's history, and what the database held directly before it was dropped."""

    channel: Channel
    start: str
    """Where the log begins, as ``file:offset``."""
    dumped: str
    """Where it was when the dumps were taken."""
    expected: dict[str, Any]

    @property
    def source(self) -> PrivateServer:
        return self.channel.source

    def dump(self, name: str) -> Path:
        """The file with that name."""
        return self.channel.project / name

    def restore(self, *arguments: str, base: str = "log", end: Sequence[str] = ()) -> int:
        """``binlane restore`` with the source's live log, onto the target."""
        return self.channel.cli(*self.command(base, end), *arguments)

    def command(self, base: str, end: Sequence[str] = ()) -> tuple[str, ...]:
        """That command's arguments."""
        end = end or ("--before", f"DROP DATABASE {DATABASE}")
        given = base if base == FROM_LOG else str(self.dump(base))
        return (
            *("restore", "--from", given, "--log", "source_server", "--database", DATABASE, "--as", "back", *end),
            *("--onto", "target_server"),
        )

    def databases(self) -> set[str]:
        """Those of the target that a restore may have made."""
        return {name for (name,) in self.channel.target.query("SHOW DATABASES") if name.startswith(("back", "store"))}


FROM_LOG: Final = "log"


def scene_of(
    channel: Channel, dumps: Sequence[str] = ("one.sql",), *, files: bool = False, also: Sequence[str] = ()
) -> Scene:
    """Play the history. ``dumps``: names of the dumps to take; ``all`` in the name: of all databases; without a dot: a
    folder of mydumper, or as MySQL Shell writes one, if its name begins so. ``files``: the changes of the other
    database have two files of the log for themselves. ``also``: further statements that fill both databases."""
    source = channel.source
    if source.flavor is Flavor.MYSQL:
        # a set with tags has several spellings
        run_on(source, "SET SESSION gtid_next = 'AUTOMATIC:restored'", "DROP DATABASE IF EXISTS restored")
    run_on(source, "FLUSH BINARY LOGS")
    start = _place_of(source)
    for database in (DATABASE, OTHER):
        run_on(source, f"CREATE DATABASE {database}", f"USE {database}", *MADE, *also)
    for name in dumps:
        take = take_dump if "." in name else take_shell_folder if name.startswith("shell") else take_folder
        take(source, channel.project / name)
    dumped = _place_of(source)
    for database in (OTHER, DATABASE):
        if files:
            run_on(source, "FLUSH BINARY LOGS")
        run_on(source, f"USE {database}", *CHANGES)
        if files and database == OTHER:
            run_on(source, "FLUSH BINARY LOGS", f"USE {database}", "DELETE FROM a WHERE id > 5")
    expected = contents(source, DATABASE)
    run_on(source, f"DROP DATABASE {DATABASE}", f"USE {OTHER}", "INSERT INTO a (v) VALUES ('after')")
    return Scene(channel, start, dumped, expected)


def _place_of(server: PrivateServer) -> str:
    [(file, offset, *_)] = server.query(
        "SHOW BINARY LOG STATUS" if server.flavor is Flavor.MYSQL else "SHOW MASTER STATUS"
    )
    return f"{file}:{offset}"


def take_folder(server: PrivateServer, folder: Path) -> None:
    """By mydumper, of both databases."""
    account = [
        f"--host={server.host}",
        f"--port={server.port}",
        f"--user={server.user}",
        f"--password={server.password}",
    ]
    kinds = ["--triggers", "--routines", "--events"]
    command = ["mydumper", *account, *kinds, "--regex", rf"^({DATABASE}|{OTHER})\.", f"--outputdir={folder}"]
    subprocess.run(command, check=True, capture_output=True)
    if server.flavor is Flavor.MYSQL:
        [(at,)] = server.query(f"SELECT CAST(at AS CHAR) FROM {DATABASE}.a WHERE id = 3")
        folder.with_suffix(".at").write_text(at)
        # Debian's is older than MySQL 8, and takes other columns of SHOW CREATE for these
        for file in (*folder.glob("*-post.sql"), *folder.glob("*-triggers.sql")):
            text = re.sub(r"(SET character_set_(?:client|results) = )(?!@)\S*;", r"\1utf8mb4;", file.read_text())
            file.write_text(re.sub(r"(SET collation_connection = )(?!@)\S*;", r"\1utf8mb4_0900_ai_ci;", text))


def take_shell_folder(server: PrivateServer, folder: Path) -> None:
    """Of both databases, as MySQL Shell writes them."""
    begun = time.strftime("%Y-%m-%d %H:%M:%S")
    file, _, offset = _place_of(server).partition(":")
    is_mysql = server.flavor is Flavor.MYSQL
    [(version, gtids)] = server.query(f"SELECT VERSION(), {'@@GLOBAL.gtid_executed' if is_mysql else repr('')}")
    root = {"binlogFile": file, "binlogPosition": int(offset), "gtidExecuted": gtids, "serverVersion": version}
    with contextlib.closing(server.connect(conv={}, autocommit=True)) as connection, connection.cursor() as cursor:

        def ask(statement: str) -> list[tuple[Any, ...]]:
            cursor.execute(statement)
            return list(cursor.fetchall())

        ask("SET sql_mode = '', time_zone = '+00:00'")
        databases = [_dumped_database(ask, database) for database in (DATABASE, OTHER)]
    ended = time.strftime("%Y-%m-%d %H:%M:%S")
    ShellDump(folder, databases, root, times=(begun, ended), is_multifile=is_mysql).write()


def _dumped_database(ask: Callable[[str], list[tuple[Any, ...]]], database: str) -> DumpedDatabase:
    ask(f"USE {database}")
    kinds = dict(ask(f"SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = '{database}'"))
    triggers: dict[str, dict[str, tuple[str, Session]]] = {}
    for name, table in ask(
        f"SELECT trigger_name, event_object_table FROM information_schema.triggers WHERE trigger_schema = '{database}'"
    ):
        [(_, mode, text, charset, collation, *_)] = ask(f"SHOW CREATE TRIGGER {name}")
        triggers.setdefault(table, {})[name] = text, Session(mode, charset, collation)
    tables, views = list[DumpedTable](), dict[str, tuple[str, Sequence[str]]]()
    for name, kind in kinds.items():
        [(_, definition, *_)] = ask(f"SHOW CREATE TABLE {name}")
        columns = [
            (column, data)
            for column, data, extra in ask(
                "SELECT column_name, data_type, extra FROM information_schema.columns WHERE table_schema = "
                f"'{database}' AND table_name = '{name}' ORDER BY ordinal_position"
            )
            if " GENERATED" not in extra
        ]
        names = [column for column, _ in columns]
        selected = ", ".join(f"`{column.replace('`', '``')}`" for column in names)
        if kind == "VIEW":
            views[name] = definition, names
            continue
        decoded = {
            column: "FROM_BASE64" for column, data in columns if data in BYTES or data.endswith(("blob", "binary"))
        }
        parts = ask(
            "SELECT partition_name FROM information_schema.partitions WHERE partition_name IS NOT NULL AND "
            f"table_schema = '{database}' AND table_name = '{name}'"
        )
        rows = {
            part: [
                [value.encode() if isinstance(value, str) else value for value in row]
                for row in ask(f"SELECT {selected} FROM {name} {part and f'PARTITION ({part})'} ORDER BY 1")
            ]
            for part in [part for (part,) in parts] or [""]
        }
        whole = rows.pop("", [])
        tables.append(DumpedTable(name, definition, names, whole, decoded, triggers.get(name, {}), rows))
    routines, events = dict[tuple[str, str], tuple[str, Session]](), dict[str, tuple[str, Session]]()
    for name, kind in ask(
        f"SELECT routine_name, routine_type FROM information_schema.routines WHERE routine_schema = '{database}'"
    ):
        [(_, mode, text, charset, collation, *_)] = ask(f"SHOW CREATE {kind} {name}")
        routines[kind, name] = text, Session(mode, charset, collation)
    for (name,) in ask(f"SELECT event_name FROM information_schema.events WHERE event_schema = '{database}'"):
        [(_, mode, zone, text, charset, collation, *_)] = ask(f"SHOW CREATE EVENT {name}")
        events[name] = text, Session(mode, charset, collation, zone)
    [(_, definition)] = ask(f"SHOW CREATE DATABASE {database}")
    return DumpedDatabase(database, definition, tables, views, routines, events)


def add_times(folder: Path) -> None:
    """Add the column that Debian's mydumper leaves out on MySQL."""
    at = folder.with_suffix(".at").read_text()
    for file in folder.glob("*.a.sql"):
        text = file.read_bytes().replace(b"INTO `a` (", b"INTO `a` (`at`,")
        file.write_bytes(re.sub(rb"^\(", f'("{at}",'.encode(), text, flags=re.MULTILINE))


def take_dump(server: PrivateServer, file: Path) -> None:
    """By the server's own program. ``all`` in the file's name: of all databases, ``both``: of those two; ``alone``:
    without the place, so that MySQL's has its GTIDs alone; ``untriggered``: without triggers."""
    place = ["--master-data=2", "--gtid"] if server.flavor is Flavor.MARIADB else ["--source-data=2"]
    place = ([] if "alone" in file.name else place) + (["--skip-triggers"] if "untriggered" in file.name else [])
    both = [OTHER] if "both" in file.name else []
    whole = ["--all-databases"] if "all" in file.name else ["--databases", DATABASE, *both]
    account = [
        f"--host={server.host}",
        f"--port={server.port}",
        f"--user={server.user}",
        f"--password={server.password}",
    ]
    command = [str(server.tool("dump")), "--no-defaults", *account, *place, "--single-transaction", "--routines"]
    text = subprocess.run([*command, "--events", *whole], check=True, capture_output=True).stdout
    file.parent.mkdir(parents=True, exist_ok=True)
    packed = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}.get(file.suffix, bytes)
    file.write_bytes(packed(text))


def contents(server: PrivateServer, database: str) -> dict[str, Any]:
    """Rows and definitions of a database, without its name."""
    tables = server.query(
        "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = %s ORDER BY 1", (database,)
    )
    found: dict[str, Any] = {"tables": tables}
    for name, kind in tables:
        found[f"rows of {name}"] = sorted(map(repr, server.query(f"SELECT * FROM {database}.{name}")))
        shown = server.query(f"SHOW CREATE {'VIEW' if kind == 'VIEW' else 'TABLE'} {database}.{name}")[0][1]
        found[f"definition of {name}"] = shown.replace(f"`{database}`.", "")
    for what, names in {
        "triggers": "trigger_name, action_statement, sql_mode FROM information_schema.triggers WHERE trigger_schema",
        "routines": "routine_name, routine_definition, sql_mode FROM information_schema.routines WHERE routine_schema",
        "events": "event_name, event_definition, sql_mode FROM information_schema.events WHERE event_schema",
    }.items():
        found[what] = server.query(f"SELECT {names} = %s ORDER BY 1", (database,))
    return found


def answer(capsys: pytest.CaptureFixture[str]) -> Any:
    """What ``--json`` has printed, behind what the channel's own commands have said."""
    said = capsys.readouterr().out
    found = re.search(r"^[\[{]", said, re.MULTILINE)
    assert found is not None, said
    return json.loads(said[found.start() :])


def archive_of(server: PrivateServer, folder: Path, first: str) -> Path:
    """A copy of the server's log from a file on, closed."""
    run_on(server, "FLUSH BINARY LOGS")
    folder.mkdir(parents=True)
    files = sorted(each for each in server.datadir.glob("binlog.[0-9]*") if first <= each.name)
    for file in files[:-1]:
        shutil.copy(file, folder / file.name)
    return folder
