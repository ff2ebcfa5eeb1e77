"""Dump folders as MySQL Shell writes them, for tests: no package of it is in the archives that the tests use.

After its source (mysql/mysql-shell, 8.4 and 9.6: modules/util/dump/dumper.cc, schema_dumper.cc,
dialect_dump_writer.h, modules/util/common/dump/utils.cc).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import zstandard

_RESERVED: Final = frozenset(range(128)) - frozenset(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~"
)
_ESCAPES: Final = {0: b"0", 8: b"b", 9: b"t", 10: b"n", 13: b"r", 26: b"Z", 92: b"\\"}
_CHARACTERS: Final = (
    "/*!50003 SET @saved_cs_client      = @@character_set_client */ {0}\n"
    "/*!50003 SET @saved_cs_results     = @@character_set_results */ {0}\n"
    "/*!50003 SET @saved_col_connection = @@collation_connection */ {0}\n"
    "/*!50003 SET character_set_client  = {1} */ {0}\n"
    "/*!50003 SET character_set_results = {1} */ {0}\n"
    "/*!50003 SET collation_connection  = {2} */ {0}\n"
    "/*!50003 SET @saved_sql_mode       = @@sql_mode */ {0}\n"
    "/*!50003 SET sql_mode              = '{3}' */ {0}\n"
)
_RESTORED: Final = (
    "/*!50003 SET sql_mode              = @saved_sql_mode */ {0}\n"
    "/*!50003 SET character_set_client  = @saved_cs_client */ {0}\n"
    "/*!50003 SET character_set_results = @saved_cs_results */ {0}\n"
    "/*!50003 SET collation_connection  = @saved_col_connection */ {0}\n"
)


@dataclass(frozen=True)
class Session:
    """In which a program was made."""

    mode: str = ""
    charset: str = "utf8mb4"
    collation: str = "utf8mb4_general_ci"
    zone: str = "SYSTEM"


@dataclass(frozen=True)
class DumpedTable:
    """A table with its rows; a value is the text of the server's answer, or the bytes of a column with a function in
    ``decoded``."""

    name: str
    definition: str
    """As SHOW CREATE TABLE has it."""
    columns: Sequence[str]
    rows: Sequence[Sequence[bytes | None]]
    decoded: Mapping[str, str] = field(default_factory=dict)
    triggers: Mapping[str, tuple[str, Session]] = field(default_factory=dict)
    partitions: Mapping[str, Sequence[Sequence[bytes | None]]] = field(default_factory=dict)
    """Rows of each partition, in place of ``rows``."""


@dataclass(frozen=True)
class DumpedDatabase:
    """A database; definitions are as SHOW CREATE has them."""

    name: str
    definition: str
    tables: Sequence[DumpedTable]
    views: Mapping[str, tuple[str, Sequence[str]]] = field(default_factory=dict)
    """Of each its definition and its columns."""
    routines: Mapping[tuple[str, str], tuple[str, Session]] = field(default_factory=dict)
    """By FUNCTION or PROCEDURE, and name."""
    events: Mapping[str, tuple[str, Session]] = field(default_factory=dict)


def encoded(name: str) -> str:
    """A name as a part of a file's name."""
    return "".join(f"%{ord(each):02X}" if ord(each) in _RESERVED else each for each in name)


def line_of(row: Sequence[bytes | None], decoders: Sequence[str | None]) -> bytes:
    """A row of a file."""
    return b"\t".join(_value(*each) for each in zip(row, decoders, strict=True)) + b"\n"


def _value(value: bytes | None, decoder: str | None) -> bytes:
    if value is None:
        return rb"\N"
    if decoder == "UNHEX":
        return value.hex().upper().encode()
    if decoder == "FROM_BASE64":
        return base64.b64encode(value)
    return b"".join(b"\\" + _ESCAPES[each] if each in _ESCAPES else bytes([each]) for each in value)


@dataclass
class ShellDump:
    """Writes one folder."""

    path: Path
    databases: Sequence[DumpedDatabase]
    root: Mapping[str, Any] = field(default_factory=dict)
    """Keys of @.json other than those of a usual dump."""
    chunk: int = 2
    """Rows of a file; 0: tables are not divided."""
    compression: str = "zstd"
    """Or ``none``."""
    is_multifile: bool = False
    """Routines and events have files of their own (9.2 and newer)."""
    times: tuple[str, str] = ("2026-11-20 01:00:00", "2026-11-20 02:00:00")
    """When the dump was begun and complete."""
    sizes: dict[str, int] = field(default_factory=dict)
    counts: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    """Bytes and rows, by database and table."""

    def write(self) -> Path:
        self.path.mkdir(parents=True, exist_ok=True)
        self._json("@.json", {**self._usual(), **self.root})
        for name in ("@.sql", "@.post.sql"):
            self._text(name, "-- MySQLShell dump 2.0.1  Distrib Ver 8.4.8\n--\n")
        for database in self.databases:
            self._database(database)
        self._json(
            "@.done.json",
            {
                "end": self.times[1],
                "dataBytes": sum(self.sizes.values()),
                "tableDataBytes": {name: {each: n for each, (n, _) in of.items()} for name, of in self.counts.items()},
                "tableRows": {name: {each: n for each, (_, n) in of.items()} for name, of in self.counts.items()},
                "chunkFileBytes": self.sizes,
            },
        )
        return self.path

    def _usual(self) -> dict[str, Any]:
        return {
            "dumper": "mysqlsh Ver 8.4.8 for Linux on x86_64", "version": "2.0.1", "origin": "dumpSchemas",
            "options": {}, "schemas": [each.name for each in self.databases],
            "basenames": {each.name: encoded(each.name) for each in self.databases},
            "defaultCharacterSet": "utf8mb4", "tzUtc": True, "bytesPerChunk": 64000000, "user": "root",
            "hostname": "h", "server": "h", "serverVersion": "8.4.8", "binlogFile": "binlog.000007",
            "binlogPosition": 4711, "gtidExecuted": "", "gtidExecutedInconsistent": False, "consistent": True,
            "targetVersion": "8.4.8", "partialRevokes": False, "compatibilityOptions": [], "capabilities": [],
            "checksum": False, "begin": self.times[0],
        }  # fmt: skip

    def _database(self, database: DumpedDatabase) -> None:
        base = encoded(database.name)
        routines = "".join(_routine(database.name, *each) for each in database.routines.items())
        events = _events(database)
        made = (
            f"-- Current Database: `{database.name}`\n--\n\n{database.definition};\n\nUSE {_quoted(database.name)};\n"
        )
        if self.is_multifile:
            self._text(f"{base}.sql", made)
            for kind, text in (("events", events), ("libraries", ""), ("routines", routines)):
                self._text(f"{base}.{kind}.sql", text)
        else:
            self._text(f"{base}.sql", made + events + routines)
        kinds = {
            f"{kind.lower()}s": [name for each, name in database.routines if each == kind]
            for kind in ("FUNCTION", "PROCEDURE")
        }
        self._json(
            f"{base}.json",
            {
                "schema": database.name, "includesDdl": True, "includesViewsDdl": True, "includesData": True,
                **({"multifileDdl": True} if self.is_multifile else {}),
                "tables": [each.name for each in database.tables], "views": [*database.views],
                "events": [*database.events], **kinds,
                "basenames": {
                    name: f"{base}@{encoded(name)}"
                    for name in (*(each.name for each in database.tables), *database.views)
                },
            },
        )  # fmt: skip
        for table in database.tables:
            self._table(database.name, table, f"{base}@{encoded(table.name)}")
        for name, (definition, columns) in database.views.items():
            self._text(f"{base}@{encoded(name)}.pre.sql", _stand_in(name, columns))
            self._text(f"{base}@{encoded(name)}.sql", _view(name, definition))

    def _table(self, database: str, table: DumpedTable, base: str) -> None:
        made = table.definition.replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1)
        self._text(
            f"{base}.sql",
            f"\n--\n-- Table structure for table {_quoted(table.name)}\n--\n\n"
            "/*!40101 SET @saved_cs_client     = @@character_set_client */;\n"
            "/*!50503 SET character_set_client = utf8mb4 */;\n"
            f"{made};\n"
            "/*!40101 SET character_set_client = @saved_cs_client */;\n",
        )
        if table.triggers:
            self._text(f"{base}.triggers.sql", "".join(_trigger(*each) for each in table.triggers.items()))
        end = {"zstd": "tsv.zst", "none": "tsv"}[self.compression]
        partitions = {name: f"{base}@{encoded(name)}" for name in table.partitions}
        decoders = {each: table.decoded[each] for each in table.columns if each in table.decoded}
        self._json(
            f"{base}.json",
            {
                "options": {
                    "schema": database, "table": table.name, "columns": [*table.columns],
                    **({"decodeColumns": decoders} if decoders else {}),
                    "defaultCharacterSet": "utf8mb4", "fieldsTerminatedBy": "\t", "fieldsEnclosedBy": "",
                    "fieldsOptionallyEnclosed": False, "fieldsEscapedBy": "\\", "linesTerminatedBy": "\n",
                },
                "triggers": [*table.triggers], "includesData": True, "includesDdl": True, "extension": end,
                "chunking": bool(self.chunk), "compression": self.compression, "primaryIndex": [],
                "partitions": [*table.partitions], "basenames": partitions,
            },
        )  # fmt: skip
        for name, rows in table.partitions.items() if table.partitions else [("", table.rows)]:
            lines = [line_of(row, [table.decoded.get(each) for each in table.columns]) for row in rows]
            for file, data in self._chunks(partitions.get(name, base), end, lines):
                self._rows(file, data)
                size, count = self.counts.setdefault(database, {}).get(table.name, (0, 0))
                self.counts[database][table.name] = size + len(data), count + data.count(b"\n")

    def _chunks(self, base: str, end: str, lines: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
        if not self.chunk:
            yield f"{base}.{end}", b"".join(lines)
            return
        begins = [*range(0, len(lines), self.chunk)] or [0]
        for number, begin in enumerate(begins):
            last = "@" * (begin == begins[-1])
            yield f"{base}@{last}{number}.{end}", b"".join(lines[begin : begin + self.chunk])

    def _rows(self, name: str, data: bytes) -> None:
        (self.path / name).write_bytes(zstandard.compress(data) if self.compression == "zstd" else data)
        (self.path / f"{name}.idx").write_bytes(len(data).to_bytes(8, "big"))
        self.sizes[name] = len(data)

    def _json(self, name: str, value: Mapping[str, Any]) -> None:
        self._text(name, json.dumps(value, indent=4))

    def _text(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _routine(database: str, what: tuple[str, str], made: tuple[str, Session]) -> str:
    (kind, name), (definition, session) = what, made
    return (
        f"-- begin {kind.lower()} `{database}`.{_quoted(name)}\n"
        f"/*!50003 DROP {kind} IF EXISTS {_quoted(name)} */;\n"
        + _CHARACTERS.format(";", session.charset, session.collation, session.mode)
        + f"DELIMITER ;;\n{definition} ;;\nDELIMITER ;\n"
        + _RESTORED.format(";")
        + f"-- end {kind.lower()} `{database}`.{_quoted(name)}\n\n"
    )


def _events(database: DumpedDatabase) -> str:
    text = f"\n--\n-- Dumping events for database '{database.name}'\n--\n"
    if not database.events:
        return text
    text += "/*!50106 SET @save_time_zone= @@TIME_ZONE */ ;\n\n"
    end = ";"
    for name, (definition, session) in database.events.items():
        text += (
            f"-- begin event `{database.name}`.{_quoted(name)}\n/*!50106 DROP EVENT IF EXISTS {_quoted(name)} */{end}\n"
        )
        end = ";;"
        text += f"DELIMITER {end}\n" + _CHARACTERS.format(end, session.charset, session.collation, session.mode)
        text += (
            f"/*!50003 SET @saved_time_zone      = @@time_zone */ {end}\n"
            f"/*!50003 SET time_zone             = '{session.zone}' */ {end}\n"
            f"/*!50106 {definition.replace(' EVENT ', ' EVENT IF NOT EXISTS ', 1)} */ {end}\n"
            f"/*!50003 SET time_zone             = @saved_time_zone */ {end}\n"
        )
        text += _RESTORED.format(end) + f"-- end event `{database.name}`.{_quoted(name)}\n\n"
    return text + "DELIMITER ;\n/*!50106 SET TIME_ZONE= @save_time_zone */ ;\n"


def _trigger(name: str, made: tuple[str, Session]) -> str:
    definition, session = made
    return (
        _CHARACTERS.format(";", session.charset, session.collation, session.mode)
        + f"/*!50032 DROP TRIGGER IF EXISTS {_quoted(name)} */;\n"
        + f"DELIMITER ;;\n/*!50003 {definition} */;;\nDELIMITER ;\n"
        + _RESTORED.format(";")
    )


def _stand_in(name: str, columns: Sequence[str]) -> str:
    listed = ",\n".join(f" 1 AS {_quoted(each)}" for each in columns)
    return (
        f"\n--\n-- Temporary view structure for view {_quoted(name)}\n--\n\n"
        f"DROP TABLE IF EXISTS {_quoted(name)};\n/*!50001 DROP VIEW IF EXISTS {_quoted(name)}*/;\n"
        "SET @saved_cs_client     = @@character_set_client;\n/*!50503 SET character_set_client = utf8mb4 */;\n"
        f"/*!50001 CREATE VIEW {_quoted(name)} AS SELECT\n{listed} */;\n"
        "SET character_set_client = @saved_cs_client;\n"
    )


def _view(name: str, definition: str) -> str:
    return (
        f"\n--\n-- Final view structure for view {_quoted(name)}\n--\n\n"
        f"/*!50001 DROP VIEW IF EXISTS {_quoted(name)}*/;\n"
        "/*!50001 SET @saved_cs_client          = @@character_set_client */;\n"
        "/*!50001 SET @saved_cs_results         = @@character_set_results */;\n"
        "/*!50001 SET @saved_col_connection     = @@collation_connection */;\n"
        "/*!50001 SET character_set_client      = utf8mb4 */;\n"
        "/*!50001 SET character_set_results     = utf8mb4 */;\n"
        "/*!50001 SET collation_connection      = utf8mb4_general_ci */;\n"
        f"/*!50001 {definition} */;\n"
        "/*!50001 SET character_set_client      = @saved_cs_client */;\n"
        "/*!50001 SET character_set_results     = @saved_cs_results */;\n"
        "/*!50001 SET collation_connection      = @saved_col_connection */;\n"
    )
