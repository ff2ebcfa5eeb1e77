"""A database with all kinds of objects, its dump by the server's own program, changes, and its end."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import zstandard

from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, run_on

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


def scene_of(channel: Channel, dumps: Sequence[str] = ("one.sql",), *, files: bool = False) -> Scene:
    """Play the history. ``dumps``: names of the dumps to take; ``all`` in the name: of all databases; without a dot: a
    folder of mydumper. ``files``: the changes of the other database have two files of the log for themselves."""
    source = channel.source
    if source.flavor is Flavor.MYSQL:
        # a set with tags has several spellings
        run_on(source, "SET SESSION gtid_next = 'AUTOMATIC:restored'", "DROP DATABASE IF EXISTS restored")
    run_on(source, "FLUSH BINARY LOGS")
    start = _place_of(source)
    for database in (DATABASE, OTHER):
        run_on(source, f"CREATE DATABASE {database}", f"USE {database}", *MADE)
    for name in dumps:
        (take_dump if "." in name else take_folder)(source, channel.project / name)
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


def add_times(folder: Path) -> None:
    """Add the column that Debian's mydumper leaves out on MySQL."""
    at = folder.with_suffix(".at").read_text()
    for file in folder.glob("*.a.sql"):
        text = file.read_bytes().replace(b"INTO `a` (", b"INTO `a` (`at`,")
        file.write_bytes(re.sub(rb"^\(", f'("{at}",'.encode(), text, flags=re.MULTILINE))


def take_dump(server: PrivateServer, file: Path) -> None:
    """By the server's own program. ``all`` in the file's name: of all databases, ``both``: of those two."""
    place = ["--master-data=2", "--gtid"] if server.flavor is Flavor.MARIADB else ["--source-data=2"]
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
