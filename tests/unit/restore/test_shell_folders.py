"""Dump folders of MySQL Shell: what they record, their statements in the order of a load, and what is refused."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import zstandard

from binlane.bootstrap.sessions import Session as Connected
from binlane.errors import ConfigError
from binlane.model import Flavor
from binlane.restore import shell_metadata, shell_rows
from binlane.restore.definers import OWN_ACCOUNT
from binlane.restore.dump import dump_of
from binlane.restore.dump_load import DumpLoad
from binlane.restore.shell_folder import ShellFolder
from binlane.restore.shell_rows import DECODERS, RowsOfTable
from binlane.source.copy_times import CopyTimes
from tests.shell_dump import DumpedDatabase, DumpedTable, Session, ShellDump, encoded, line_of

T: Final = DumpedTable(
    "t",
    "CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `b` blob,\n  `v` varchar(9),\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB",
    ("id", "b", "v"),
    [(b"1", b"\0\xff'", b"a\tb"), (b"2", None, b"it's"), (b"3", b"", b"\\N")],
    {"b": "FROM_BASE64"},
    {"tr": ("CREATE DEFINER=`a`@`%` TRIGGER `tr` BEFORE INSERT ON `t` FOR EACH ROW BEGIN SET @a=1; DO ';'; END",
            Session())},
)  # fmt: skip
P: Final = DumpedTable(
    "p", "CREATE TABLE `p` (`n` int)\n/*!50100 PARTITION BY HASH (`n`)\nPARTITIONS 2 */", ("n",), [],
    partitions={"p0": [(b"2",)], "p1": [(b"1",), (b"3",), (b"5",)]},
)  # fmt: skip
SHOP: Final = DumpedDatabase(
    "shop",
    "CREATE DATABASE `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */",
    (T, P, DumpedTable("empty", "CREATE TABLE `empty` (\n  `f` float\n)", ("f",), [])),
    {"v": ("CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW `v` AS select 1 AS `x`", ("x", "y"))},
    {
        ("FUNCTION", "f"): ("CREATE DEFINER=`f`@`%` FUNCTION `f`() RETURNS int\nRETURN 1", Session()),
        ("PROCEDURE", "p"): ("CREATE DEFINER=`f`@`%` PROCEDURE `p`()\nBEGIN SELECT 1; SELECT ';'; END", Session()),
    },
    {"e": ("CREATE DEFINER=`e`@`%` EVENT `e` ON SCHEDULE EVERY 1 DAY DO DELETE FROM t", Session(mode="ANSI_QUOTES"))},
)
CRM: Final = DumpedDatabase(
    "crm", "CREATE DATABASE `crm`", (DumpedTable("u", "CREATE TABLE `u` (`a` int)", ("a",), []),)
)
ODD: Final = "sh`op.1/ü"


_MADE: Final = re.compile(r"\b(DATABASE|TABLE|VIEW|TRIGGER|FUNCTION|PROCEDURE|EVENT|INTO) (?:IF NOT EXISTS )?`(\w+)`")


def folder_of(path: Path, *databases: DumpedDatabase, **changes: Any) -> ShellFolder:
    found = dump_of(ShellDump(path, databases or (SHOP, CRM), **changes).write(), ["shop"])
    assert isinstance(found, ShellFolder)
    return found


def change(file: Path, *path: str, value: object = None) -> None:
    """Set a value of a JSON file, or take it out."""
    text = json.loads(file.read_text())
    place = text
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    file.write_text(json.dumps(text))


def sent_by(found: ShellFolder, name: str = "shop") -> list[str]:
    """What a load sends of it, without what it sets."""
    place = found.place()
    load = DumpLoad(Connected(None, Flavor.MYSQL, None), (8, 4, 8), str(found.path), {name: "back"}, place.definers)
    made = [load.statement(each) for each in found.statements("")]
    return [each.decode() for each in made if each is not None and not each.startswith(b"SET ")]


@pytest.mark.parametrize("compression", ["zstd", "none"])
@pytest.mark.parametrize("chunk", [0, 1, 2, 9])
@pytest.mark.parametrize("is_multifile", [False, True])
def test_a_database_is_loaded_in_an_order_that_runs_no_trigger(
    is_multifile: bool, chunk: int, compression: str, tmp_path: Path
) -> None:
    found = folder_of(tmp_path, chunk=chunk, compression=compression, is_multifile=is_multifile)
    sent = [each for each in sent_by(found) if not each.startswith(("USE", "DROP"))]
    rows = [each for each in sent if each.startswith("INSERT")]
    assert "".join(each.partition("VALUES\n")[2] for each in rows if "`t`" in each).replace(")(", "),(") == (
        "('1',X'00ff27','a\\tb'),('2',NULL,'it\\'s'),('3',X'','\\\\N')"
    )
    assert "".join(each.partition("VALUES\n")[2] for each in rows if "`p`" in each).replace(")(", "),(") == (
        "('2'),('1'),('3'),('5')"
    )
    assert {each.partition(" VALUES")[0] for each in rows} == {
        "INSERT INTO `t` (`id`,`b`,`v`)", "INSERT INTO `p` (`n`)",
    }  # fmt: skip
    made = [match for each in sent if (match := _MADE.search(each)) is not None]
    names = [f"{each[1]} {each[2]}" for each in made]
    programs = {"FUNCTION f", "PROCEDURE p", "EVENT e"}
    assert programs < {*names}
    assert list(dict.fromkeys(name for name in names if name not in programs)) == [
        "DATABASE back", "TABLE t", "TABLE p", "TABLE empty", "VIEW v", "INTO t", "INTO p", "TRIGGER tr",
    ]  # fmt: skip
    views = [at for at, name in enumerate(names) if name == "VIEW v"]
    rows_at = [at for at, name in enumerate(names) if name.startswith("INTO")]
    assert views[0] < rows_at[0] < rows_at[-1] < views[1]
    assert "1 AS `x`,\n 1 AS `y`" in made[views[0]].string
    assert all("DISABLE" in each for each in sent if "EVENT" in each)


def test_the_folder_says_what_it_is_of(tmp_path: Path) -> None:
    gtids = "u:1-5,\nv:1-7"
    place = folder_of(tmp_path, root={"gtidExecuted": gtids}).place()
    assert (place.position, place.gtid_set) == ("binlog.000007:4711", "u:1-5,v:1-7")
    assert place.databases == {"shop", "crm"}
    assert place.definers == {"a@%", "f@%", "e@%"}
    assert [str(each) for each in place.inexact] == ["shop.empty (f FLOAT)"]
    assert place.times == CopyTimes(1_795_136_400.0, 1_795_140_000.0)
    assert place.beliefs == ()
    rows = sum(len(line_of(row, ["", "FROM_BASE64", ""])) for row in T.rows)
    scripts = [*tmp_path.glob("shop*.sql")]
    assert place.size == rows + 2 * 4 + sum(file.stat().st_size for file in scripts)


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ({"binlogFile": "", "binlogPosition": 0, "gtidExecuted": "u:1"}, ("", "u:1")),
        ({"binlogFile": None, "binlogPosition": None}, ("", "")),
    ],
    ids=["without a log", "8.0.22"],
)
def test_a_place_that_is_not_recorded_is_empty(
    root: Mapping[str, Any], expected: tuple[str, str], tmp_path: Path
) -> None:
    place = folder_of(tmp_path, root=root).place()
    assert (place.position, place.gtid_set) == expected


def test_rows_are_counted_where_the_dump_has_their_number(tmp_path: Path) -> None:
    found = folder_of(tmp_path)
    assert found.row_counts() == {("shop", "t"): 3, ("shop", "p"): 4, ("shop", "empty"): 0}
    assert (found.server(), found.counted_in) == ("8.4.8", "@.done.json")
    change(tmp_path / "@.done.json", "tableRows")
    assert found.row_counts() == {}


def test_files_have_the_names_that_the_folder_tells(tmp_path: Path) -> None:
    assert encoded(ODD) == "sh%60op.1%2Fü"
    odd = dataclasses.replace(SHOP, name=ODD, definition="CREATE DATABASE `sh``op.1/ü`")
    ShellDump(tmp_path, [odd]).write()
    found = ShellFolder(tmp_path, frozenset({ODD}))
    assert found.place().databases == {ODD}
    assert "USE `back`" in sent_by(found, ODD)
    base = encoded(ODD)
    for file in tmp_path.glob(f"{base}*"):  # long names are cut, and numbered
        file.rename(file.with_name(file.name.replace(base, "cut0")))
    for file in tmp_path.glob("*.json"):
        file.write_text(file.read_text().replace(json.dumps(base)[1:-1], "cut0"))
    assert (tmp_path / "cut0@t.json").exists()
    assert "USE `back`" in sent_by(found, ODD)


def test_older_versions_write_one_file_of_a_table_without_rows(tmp_path: Path) -> None:
    found = folder_of(tmp_path)
    (tmp_path / "shop@empty@@0.tsv.zst").rename(tmp_path / "shop@empty.tsv.zst")
    done = tmp_path / "@.done.json"
    done.write_text(done.read_text().replace("shop@empty@@0.tsv.zst", "shop@empty.tsv.zst"))
    assert len(sent_by(found)) > 0


def test_another_dump_has_another_digest(tmp_path: Path) -> None:
    found = folder_of(tmp_path)
    first = found.digest
    assert first == folder_of(tmp_path).digest
    assert found.digest != folder_of(tmp_path, root={"begin": "2026-11-20 01:00:01"}).digest
    folder_of(tmp_path)
    (tmp_path / "shop@t@0.tsv.zst").write_bytes(b"")
    assert found.digest != first


BELIEFS: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "tables": ({"options": {"excludeTables": ["shop.logs", "crm.u"]}}, "excludeTables: shop.logs\\)"),
    "quoted": ({"options": {"includeTables": ["`shop`.`a.b`"]}}, "includeTables: `shop`.`a.b`\\)"),
    "a trigger": ({"options": {"excludeTriggers": ["shop.t.tr"]}}, "excludeTriggers: shop.t.tr\\)"),
    "no programs": ({"options": {"triggers": False, "events": False}}, r"triggers: false; events: false\)"),
    "tables alone": ({"origin": "dumpTables"}, r"util\.dumpTables, of single tables\)"),
    "definers": ({"compatibilityOptions": ["strip_definers"]}, "have lost their DEFINER .* dump without compatib"),
    "engines": ({"compatibilityOptions": ["force_innodb"]}, "tables of other engines have become InnoDB's"),
    "a managed service": ({"mdsCompatibility": True}, "that a managed service does not take are left out"),
    "not checked": ({"options": {"skipConsistencyChecks": True}}, "made with skipConsistencyChecks"),
}


@pytest.mark.parametrize("case", BELIEFS)
def test_what_the_dump_has_left_out_or_changed_is_named(case: str, tmp_path: Path) -> None:
    root, said = BELIEFS[case]
    found = folder_of(tmp_path, root=root)
    [belief] = found.beliefs()
    assert found.place().beliefs == (belief,)
    assert re.search(said, belief) is not None, belief


@pytest.mark.parametrize(
    "root",
    [
        {"options": {"excludeTables": ["crm.logs"], "excludeSchemas": ["x"], "threads": 4, "ocimds": False}},
        {"compatibilityOptions": ["create_invisible_pks", "skip_invalid_accounts"]},
        {"capabilities": [{"id": "partition_awareness", "description": "", "versionRequired": "8.0.27"}]},
    ],
)
def test_what_concerns_no_restored_database_is_not_named(root: Mapping[str, Any], tmp_path: Path) -> None:
    assert folder_of(tmp_path, root=root).place().beliefs == ()


def test_a_program_without_its_definer_is_that_of_binlane_s_own_account(tmp_path: Path) -> None:
    view = {"v": ("CREATE ALGORITHM=UNDEFINED SQL SECURITY INVOKER VIEW `v` AS select 1 AS `x`", ("x",))}
    place = folder_of(tmp_path, dataclasses.replace(SHOP, views=view)).place()
    assert place.definers == {OWN_ACCOUNT, "a@%", "f@%", "e@%"}


def _gone(name: str) -> Callable[[Path], object]:
    return lambda path: (path / name).unlink()


def _changed(name: str, *keys: str, value: object = None) -> Callable[[Path], object]:
    return lambda path: change(path / name, *keys, value=value)


def _root(**values: object) -> Callable[[Path], object]:
    def changed(path: Path) -> None:
        for key, value in values.items():
            change(path / "@.json", key, value=value)

    return changed


def _rows(name: str, data: bytes, *, is_listed: bool = False) -> Callable[[Path], object]:
    def written(path: Path) -> None:
        (path / name).write_bytes(zstandard.compress(data))
        if is_listed:
            (path / f"{name}.idx").unlink()
            table = json.loads((path / "@.done.json").read_text())["chunkFileBytes"]
            other = sum(size for file, size in table.items() if file.startswith("shop@t@") and file != name)
            change(path / "@.done.json", "chunkFileBytes", name, value=len(data))
            change(path / "@.done.json", "tableDataBytes", "shop", "t", value=other + len(data))

    return written


_FIRST: Final = "shop@t@0.tsv.zst"
_LAST: Final = "shop@t@@1.tsv.zst"
_COMPARED: Final = {
    "id": "dump_dir_redirection",
    "description": "Dump directory redirection",
    "versionRequired": "9.4.0",
}
WRONG: Final[Mapping[str, tuple[Callable[[Path], object], str]]] = {
    "unfinished": (_gone("@.done.json"), r"expected its file @\.done\.json, .* the dump was cut, or is being made"),
    "no list of files": (_changed("@.done.json", "chunkFileBytes"), "dump with MySQL Shell 8.0.22 or newer"),
    "several moments": (_root(consistent=False), "tables may be of different ones .*dump with consistent: true"),
    "not said": (_changed("@.json", "consistent"), "dump with consistent: true"),
    "GTIDs of another moment": (_root(gtidExecutedInconsistent=True), "an account with RELOAD and BACKUP_ADMIN"),
    "local times": (_root(tzUtc=False), r"unknown time zone \(tzUtc: false\)"),
    "a later form": (_root(version="3.0.0"), "'version': expected 1 or 2 as the first number"),
    "what nobody knows here": (
        _root(capabilities=[_COMPARED]),
        "without dump_dir_redirection, found one that needs it",
    ),
    "definitions alone": (_changed("shop.json", "includesData", value=False), r"found no rows \(ddlOnly\)"),
    "rows alone": (_changed("shop.json", "includesDdl", value=False), r"found no definitions \(dataOnly\)"),
    "a table without rows": (_changed("shop@t.json", "includesData", value=False), r"found no rows \(ddlOnly\)"),
    "some rows": (_changed("shop@t.json", "where", value="id > 1"), r"some of them \(where\).*dump without where"),
    "some partitions": (
        _root(options={"partitions": {"shop.p": ["p0"]}}),
        r"shop\.p, found some of them \(partitions\)",
    ),
    "some quoted ones": (_root(options={"partitions": {"`shop`.`p`": ["p0"]}}), "dump without partitions"),
    "csv": (
        _changed("shop@t.json", "options", "fieldsTerminatedBy", value=","),
        "found another form; dump without dia",
    ),
    "latin1": (_changed("shop@t.json", "options", "defaultCharacterSet", value="latin1"), "expected rows in utf8mb4"),
    "another function": (
        _changed("shop@t.json", "options", "decodeColumns", "b", value="LOAD_FILE"),
        "UNHEX or FROM_BASE64, found another",
    ),
    "another table": (
        _changed("shop@t.json", "options", "table", value="u"),
        "expected t, by whose name .* found another",
    ),
    "another database": (_changed("shop.json", "schema", value="crm"), "expected shop, by whose name"),
    "a library": (
        _changed("shop.json", "libraries", value=["l"]),
        "expected a database without libraries.*found l; dump",
    ),
    "no definition": (_gone("shop@t.sql"), r"expected the file shop@t\.sql, found none: the folder is not whole"),
    "no database": (_gone("shop.json"), r"expected the file shop\.json, found none"),
    "no triggers": (_gone("shop@t.triggers.sql"), r"expected the file shop@t\.triggers\.sql, found none"),
    "no stand-in": (_gone("shop@v.pre.sql"), r"expected the file shop@v\.pre\.sql, found none"),
    "a chunk is gone": (_gone(_FIRST), "expected the file shop@t@0.tsv.zst, found none"),
    "a chunk of a partition is gone": (_gone("shop@p@p1@@1.tsv.zst"), "expected the file shop@p@p1@@1.tsv.zst"),
    "a chunk is not listed": (_changed("@.done.json", "chunkFileBytes", _FIRST), "expected the file shop@t@@N.tsv.zst"),
    "the last chunk is not listed": (_changed("@.done.json", "chunkFileBytes", _LAST), "the file shop@t@@N.tsv.zst"),
    "a partition is not listed": (_changed("shop@p.json", "basenames", "p1"), "as tableDataBytes of .* found 2 in"),
    "an index of another file": (
        lambda path: (path / f"{_FIRST}.idx").write_bytes((7).to_bytes(8, "big")),
        r"as chunkFileBytes .* says, found 7:",
    ),
    "an index that was cut": (
        lambda path: (path / f"{_FIRST}.idx").write_bytes(b""),
        "says, found 0: the file was cut",
    ),
    "rows that were cut": (
        _rows(_FIRST, b"1\t\\N\ta\n"),
        r"shop@t@0\.tsv\.zst: expected .* found 7 bytes: the file was cut",
    ),
    "more rows": (_rows(_FIRST, b"1\t\\N\ta\n" * 9), "found more than"),
    "no file of zstd": (lambda path: (path / _FIRST).write_bytes(b"12345"), "cannot be read"),
    "a row without an end": (_rows(_FIRST, b"1\t\\N\ta", is_listed=True), "found a row without an end"),
    "a value too many": (_rows(_FIRST, b"1\t\\N\ta\tb\n", is_listed=True), "line 1: expected 3 values, .* found 4"),
    "a value too few": (_rows(_FIRST, b"1\t\\N\ta\n1\n", is_listed=True), "line 2: expected 3 values, .* found 1"),
    "no base64": (
        _rows(_FIRST, b"1\t*\ta\n", is_listed=True),
        "column 'b': expected bytes in hexadecimal digits or base64",
    ),
    "an unknown escape": (_rows(_FIRST, b"1\t\\N\ta\\x\n", is_listed=True), "line 1: expected the escapes"),
    "an escape at the end": (_rows(_FIRST, b"1\t\\N\t\\\n", is_listed=True), "line 1: expected the escapes"),
    "NULL in a value": (_rows(_FIRST, b"1\t\\N\ta\\N\n", is_listed=True), "line 1: expected the escapes"),
    "no JSON": (lambda path: (path / "@.json").write_text("{"), r"@\.json: expected a JSON object, found none"),
    "no object": (lambda path: (path / "shop.json").write_text("[]"), "expected a JSON object, found none"),
    "nested JSON": (
        lambda path: (path / "@.done.json").write_text("[" * 100_000),
        "expected a JSON object, found none",
    ),
    "no columns": (_changed("shop@t.json", "options", "columns", value=[]), "'columns': expected the table's columns"),
    "a value of another type": (_root(schemas="shop"), "'schemas': expected a list of texts, found str"),
    "other values": (_root(schemas=[1]), "'schemas': expected a list of texts, found other values"),
    "other objects": (_root(capabilities=[1]), "'capabilities': expected a list of objects, found other values"),
    "a flag of another type": (_root(consistent="true"), "'consistent': expected true or false, found str"),
    "half a character": (_root(binlogFile="\ud800"), "'binlogFile': expected a text in UTF-8"),
    "less than nothing": (
        _changed("@.done.json", "chunkFileBytes", _FIRST, value=-1),
        "expected a number of bytes or rows",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_folder_that_is_not_whole_is_refused(case: str, tmp_path: Path) -> None:
    make, said = WRONG[case]
    found = folder_of(tmp_path)
    make(tmp_path)
    with pytest.raises(ConfigError, match=said) as caught:
        list(map(len, [*sent_by(found)]))
    assert str(caught.value).startswith(f"--from {tmp_path}")


def test_faults_of_a_database_that_is_not_restored_do_not_matter(tmp_path: Path) -> None:
    found = folder_of(tmp_path, root={"options": {"partitions": {"crm.u": ["p0"]}}})
    (tmp_path / "crm.json").unlink()
    assert len(sent_by(found)) > 0


@pytest.mark.parametrize("piece", [1, 2, 7, 1 << 20])
def test_rows_are_divided_wherever_the_pieces_end(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[b"1", bytes(range(256)), None], [b"2", None, b"5"], [None, b"", b"\0\r\n\t\b\x1a\\'\"%_"]]
    functions = ["", "UNHEX", ""]
    data = b"".join(line_of(row, [each or None for each in functions]) for row in rows)
    table = RowsOfTable("a`b", ["x", "y`", "z"], [(1, DECODERS["UNHEX"])])
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    [whole] = table.statements(iter(pieces), "file", len(data))
    assert whole == (
        b"INSERT INTO `a``b` (`x`,`y```,`z`) VALUES\n('1',X'" + bytes(range(256)).hex().upper().encode() + b"',NULL),"
        rb"""('2',NULL,'5'),(NULL,X'','\0\r\n\t\b\Z\\\'"%_')"""
    )
    monkeypatch.setattr(shell_rows, "_STATEMENT", 1)
    assert len([*table.statements(iter(pieces), "file", len(data))]) == len(rows)


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        ("UNHEX", b"5", b"05"),  # HEX() of a BIT
        ("UNHEX", b"fF00", b"fF00"),
        ("FROM_BASE64", b"AAEC\\nAwQ=", b"0001020304"),
        ("FROM_BASE64", b"", b""),
    ],
)
def test_bytes_are_those_that_the_server_would_decode(function: str, value: bytes, expected: bytes) -> None:
    assert DECODERS[function](value) == expected


def test_a_row_without_an_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_rows, "_LARGEST", 100)
    table = RowsOfTable("t", ["a"], [])
    with pytest.raises(ConfigError, match="expected rows of at most 100 bytes"):
        list(table.statements((b"x" * 10 for _ in range(1 << 10)), "file", 1 << 60))


def test_what_a_file_has_beyond_its_size_is_not_read() -> None:
    read = (b"x\n" for _ in range(1 << 10))
    with pytest.raises(ConfigError, match=r"expected 20 bytes of rows, .* found more than 20"):
        list(RowsOfTable("t", ["a"], []).statements(read, "file", 20))
    assert sum(map(len, read)) == 2 * ((1 << 10) - 11)


@pytest.mark.parametrize(("function", "value"), [("UNHEX", b"0g"), ("UNHEX", b"0'"), ("FROM_BASE64", b"A'==")])
def test_what_spells_no_bytes_is_refused(function: str, value: bytes) -> None:
    with pytest.raises(ValueError, match=r"digit|base64|padding"):
        DECODERS[function](value)


def test_metadata_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = folder_of(tmp_path)
    monkeypatch.setattr(shell_metadata, "_LARGEST", 100)
    with pytest.raises(
        ConfigError, match=r"@\.json: expected at most 100 bytes, found more; take a dump of fewer tables"
    ):
        found.place()


def test_a_folder_of_gzip_is_read(tmp_path: Path) -> None:
    found = folder_of(tmp_path)
    for file in tmp_path.glob("*.tsv.zst"):
        (tmp_path / file.name.replace(".zst", ".gz")).write_bytes(
            gzip.compress(zstandard.decompress(file.read_bytes()))
        )
        file.unlink()
    for file in tmp_path.glob("*.json"):
        file.write_text(file.read_text().replace(".tsv.zst", ".tsv.gz").replace('"tsv.zst"', '"tsv.gz"'))
    assert any("'it\\'s'" in each for each in sent_by(found))


def test_metadata_has_a_largest_number_of_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_metadata, "_MOST_VALUES", 100)
    (tmp_path / "@.json").write_text(json.dumps({"schemas": [[]] * 60}))
    with pytest.raises(ConfigError, match=r"@\.json: expected at most 100 values, found more"):
        shell_metadata.Metadata.read(tmp_path / "@.json", "")


@pytest.mark.parametrize(
    ("file", "keys", "value"),
    [
        ("@.json", ("schemas",), ["shop", "shop"]),
        ("shop.json", ("tables",), ["t", "p", "t"]),
        ("shop.json", ("views",), ["v", "v"]),
        ("shop@p.json", ("basenames",), {"p0": "shop@p@p0", "p1": "shop@p@p0"}),
    ],
)
def test_nothing_of_a_folder_is_read_twice(file: str, keys: tuple[str, ...], value: object, tmp_path: Path) -> None:
    """Files of rows once for each partition: 35 kB of JSON made a list of 1,440,000 files."""
    found = folder_of(tmp_path)
    change(tmp_path / file, *keys, value=value)
    with pytest.raises(ConfigError, match=r"expected (each name once|a name of files for each partition)"):
        sent_by(found)


def test_a_line_of_tabs_takes_no_memory_for_each() -> None:
    tracemalloc.start()
    try:
        size = 1 << 20
        with pytest.raises(
            ConfigError, match="expected 1 values, as the table's metadata has columns, found 1,048,576"
        ):
            list(RowsOfTable("t", ["a"], []).statements(iter([b"\t" * (size - 1) + b"\n"]), "x", size))
        assert tracemalloc.get_traced_memory()[1] < 5 * size
    finally:
        tracemalloc.stop()
