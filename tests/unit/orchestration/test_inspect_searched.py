"""``binlane inspect --database``, ``--table``: the same transactions with an index, which only saves reading."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from binlane.binlog.row_values import Change
from binlane.binlog.rows import RowsKind
from binlane.binlog.types.columns import Column
from binlane.binlog.types.type_codes import ColumnType
from binlane.binlog.wire import MAGIC, ChecksumAlgorithm, EventType
from binlane.errors import BinlogError, ConfigError, SourceError
from binlane.model import TableKey, plural
from binlane.orchestration.commands.inspection import events, passed_runs
from binlane.orchestration.commands.inspection.events import Detail, files_of, inspect_files
from binlane.orchestration.commands.inspection.rows import LoggedTable
from binlane.orchestration.commands.inspection.searched import Searched
from binlane.orchestration.terminal import Terminal
from binlane.restore import file_keys
from binlane.restore.archive_index import folder_of, name_of, parquet_of, read_facts
from binlane.restore.file_content import FileContent
from binlane.restore.indexing import make_index
from binlane.work.plan_job.job import InProcess
from tests.unit.binlog.cases import MYSQL, crc, format_event, payload, query, wire
from tests.unit.plan.logs import XID, alone, ends, insert, prepare, rows, segment_of, statements, table_map
from tests.unit.source.archives import archive, log_file

DATABASES = ("a", "shop", "b", "shop", "a")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An archive of five files, of one database each."""
    before = 0
    files = []
    for number, database in enumerate(DATABASES, 1):
        seqnos = range(before + 1, before + 1 + number)
        files.append(log_file(number, seqnos, before=[(7, before)] if before else (), database=database))
        before = seqnos[-1]
    archive(tmp_path / "binlog", *files)
    return tmp_path / "binlog"


def shown(site: Path, *databases: str, tables: tuple[str, ...] = ()) -> tuple[list[dict[str, Any]], str]:
    """The transactions, and what is said beside them."""
    out, err = io.StringIO(), io.StringIO()
    files = sorted(each for each in site.iterdir() if each.is_file())
    searched = Searched.of(databases, tables)
    inspect_files(files, as_json=True, out=Terminal(file=out), err=Terminal(file=err, width=1000), searched=searched)
    return [json.loads(line) for line in out.getvalue().splitlines()], err.getvalue()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read."""
    names, contents = list[str](), events._contents

    def told(path: Path, most: int) -> Any:
        names.append(path.name[-1])
        return contents(path, most)

    monkeypatch.setattr(events, "_contents", told)
    return names


@pytest.mark.parametrize(
    ("databases", "tables", "seqnos", "read"),
    [
        (("shop",), (), [2, 3, 7, 8, 9, 10], "245"),
        (("SH*",), (), [2, 3, 7, 8, 9, 10], "245"),
        ((), ("b.t",), [4, 5, 6], "35"),
        (("b",), ("shop.nothing",), [4, 5, 6], "2345"),
        (("none",), (), [], "5"),
    ],
)
def test_the_index_saves_reading_and_changes_nothing(
    databases: tuple[str, ...], tables: tuple[str, ...], seqnos: list[int], read: str, site: Path, opened: list[str]
) -> None:
    without, said = shown(site, *databases, tables=tables)
    assert ([line["seqno"] for line in without], opened, said) == (seqnos, list("12345"), "")
    assert len([*make_index(str(site), InProcess())]) == 4
    opened.clear()
    found, said = shown(site, *databases, tables=tables)
    assert (found, opened) == (without, list(read))
    assert f"not read, by the archive's index: {plural(5 - len(read), 'file')} (binlog.000001" in said


@pytest.mark.parametrize(
    ("where", "tables", "seqnos", "read"),
    [
        (("@1=0",), ("shop.t",), [2, 3, 7, 8, 9, 10], "245"),
        (("@1=1000",), ("shop.t",), [], "5"),
        (("@1=1000",), ("s*.t",), [], "245"),
        (("@1=1000", "@1=0"), ("shop.t",), [], "5"),
    ],
)
def test_the_filter_of_keys_saves_reading_and_changes_nothing(
    where: tuple[str, ...], tables: tuple[str, ...], seqnos: list[int], read: str, site: Path, opened: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(file_keys, "_SHARE", 1)
    assert len([*make_index(str(site), InProcess())]) == 4
    files = sorted(each for each in site.iterdir() if each.is_file())
    for is_indexed in (True, False):
        opened.clear()
        out, err = io.StringIO(), Terminal(file=io.StringIO())
        inspect_files(files, as_json=True, out=Terminal(file=out), err=err, searched=Searched.of((), tables, where))
        assert [json.loads(line)["seqno"] for line in out.getvalue().splitlines()] == seqnos
        assert opened == list(read if is_indexed else "12345")
        for file in folder_of(str(site)).names():
            folder_of(str(site)).remove_file(file)


@pytest.mark.parametrize(
    ("databases", "where", "seqnos"),
    [((), "@1=1000", [4]), (("b",), "@1=1000", [4]), (("b",), "@1=0", [1, 2, 3, 4, 5, 6])],
)
def test_the_filter_of_keys_leaves_out_no_statement_and_no_other_database(
    databases: tuple[str, ...], where: str, seqnos: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_keys, "_SHARE", 1)
    end = crc(wire(EventType.ROTATE, struct.pack("<Q", 4) + b"binlog.000002"))
    ddl = b"".join(map(crc, alone(4, "ALTER TABLE shop.t ADD j INT")))
    files = [
        log_file(1, (1, 2, 3), database="shop", end=None) + ddl + end,
        log_file(2, (5, 6), before=[(7, 4)], database="b"),
        log_file(3, (), before=[(7, 6)]),
    ]
    archive(tmp_path / "log", *files)
    for is_indexed in (False, True):
        if is_indexed:
            assert [each.fault for each in make_index(str(tmp_path / "log"), InProcess())] == ["", ""]
        found, *_ = _listed(tmp_path / "log", searched=Searched.of(databases, ("shop.t",), (where,)))
        assert [line["seqno"] for line in found] == seqnos


def test_a_folder_stands_for_its_files_in_the_log_s_order(site: Path, tmp_path: Path) -> None:
    names = [each.name for each in site.iterdir()]
    assert files_of([tmp_path / "other", site]) == [tmp_path / "other", *(site / name for name in sorted(names))]
    (site / "binlog.000002.gz").write_bytes(b"")
    assert [each.name for each in files_of([site])] == sorted(names)
    (site / "binlog.000010").write_bytes(b"")
    (site / "note.txt").write_bytes(b"")
    assert [each.name for each in files_of([site])] == [*sorted(names), "binlog.000010"]
    with pytest.raises(SourceError, match=r"expected binlog files such as binlog\.000001, found none"):
        files_of([tmp_path])


def _flipped(site: Path) -> None:
    file = site / "binlog.000001"
    size = file.stat().st_size
    file.write_bytes(log_file(1, (1,), database="b"))
    assert file.stat().st_size == size


def _lying(site: Path) -> None:
    folder = folder_of(str(site))
    facts = read_facts(folder, "binlog.000003")
    folder.replace(name_of("binlog.000003"), parquet_of(replace(facts, databases=()), FileContent("")))


def _damaged(site: Path) -> None:
    folder = folder_of(str(site))
    folder.replace(name_of("binlog.000003"), folder.read(name_of("binlog.000003"))[:-3])


@pytest.mark.parametrize("change", [_flipped, _lying, _damaged])
def test_an_index_that_is_not_of_the_file_is_not_used(change: Callable[[Path], None], site: Path) -> None:
    assert len([*make_index(str(site), InProcess())]) == 4
    change(site)
    found, _ = shown(site, "b")
    for file in folder_of(str(site)).names():
        folder_of(str(site)).remove_file(file)
    assert (found, "") == shown(site, "b")
    assert [line["databases"] for line in found] == [["b"]] * (4 if change is _flipped else 3)


def _texts(*texts: str) -> bytes:
    return segment_of([alone(number, text) for number, text in enumerate(texts, 1)])[0]


@pytest.mark.parametrize(
    ("log", "seqnos"),
    [
        (_texts("ALTER TABLE shop.orders ADD j INT", "ALTER TABLE shop.items ADD j INT", "DROP DATABASE shop"), [1, 3]),
        (_texts("CREATE USER u", "this is no statement", "DROP TABLE b.t"), [1, 2]),
        (segment_of([statements(1, "UPDATE shop.orders SET i = 1"), statements(2, "DELETE FROM b.t")])[0], [1]),
        (segment_of([rows(1, "shop"), rows(2, "b")])[0], []),
    ],
)
def test_a_statement_counts_for_what_it_names_and_one_that_is_not_read_for_all(
    log: bytes, seqnos: list[int], tmp_path: Path
) -> None:
    (tmp_path / "log").write_bytes(log)
    assert [line["seqno"] for line in shown(tmp_path, tables=("shop.orders",))[0]] == seqnos


@pytest.mark.parametrize(
    ("where", "seqnos", "values"),
    [
        (("@1=0",), [1, 3, 4, 5], [0, 0, 0]),
        (("@1=3",), [3, 5], [3]),
        (("@1=77",), [5], []),
        (("@1=3", "@1=4"), [5], []),
    ],
)
def test_where_prints_the_history_of_a_row_and_statements_that_may_be_of_it(
    where: tuple[str, ...], seqnos: list[int], values: list[int], tmp_path: Path
) -> None:
    log = [
        rows(1, "shop", count=2), rows(2, "b", count=9), rows(3, "b", "shop", count=4), rows(4, "shop"),
        statements(5, "UPDATE shop.t SET i = 1"),
    ]  # fmt: skip
    (tmp_path / "log").write_bytes(segment_of(log)[0])
    searched = Searched.of((), ("shop.t",), where)
    found, *_ = _listed(tmp_path, searched=searched, detail=Detail(rows=True, sql=True))
    assert [line["seqno"] for line in found] == seqnos
    shown = [change["after"]["@1"] for line in found for change in line["changes"] if "after" in change]
    assert shown == values
    assert all(len(line["changes"]) == len(line["sql"]) for line in found)


@pytest.mark.parametrize(
    ("tables", "where", "said"),
    [
        (("shop.t",), "id=3", "expected the column 'id' in shop.t, found @1 in log: rows of this table were not"),
        (("s*.t",), "id=3", "expected the column 'id' in shop.t, found @1 in log"),
        (("shop.t",), "@2=3", "expected the column '@2' in shop.t"),
        (("shop.none",), "id=3", ""),
        (("shop.t",), "@1=3", ""),
    ],
)
def test_a_column_that_rows_do_not_have_is_an_error_behind_the_last_file(
    tables: tuple[str, ...], where: str, said: str, tmp_path: Path
) -> None:
    log = [rows(1, "shop", count=2), statements(2, "UPDATE shop.t SET i = 1"), rows(3, "shop")]
    (tmp_path / "log").write_bytes(segment_of(log)[0])
    searched = Searched.of((), tables, (where,))
    with pytest.raises(ConfigError, match=re.escape(said)) if said else contextlib.nullcontext():
        _listed(tmp_path, searched=searched)


def table_of(name: str, *columns: str | None) -> LoggedTable:
    known: Any = SimpleNamespace(
        table=SimpleNamespace(database="shop", table=name),
        columns=tuple(
            Column(number, each, ColumnType.LONG, 0, nullable=False) for number, each in enumerate(columns, 1)
        ),
        decoder=None,
    )
    return LoggedTable(known.table, known.columns, known.decoder)


@pytest.mark.parametrize(
    ("tables", "where", "logged", "said"),
    [
        ("shop.*", "id=3", [table_of("a", "id"), table_of("b", "number")], ""),
        ("shop.*", "idd=3", [table_of("a", "id"), table_of("b", "number")], "expected the column 'idd' in shop.a"),
        ("shop.*", "id=3", [table_of("a", "id"), table_of("b", None)], "expected the column 'id' in shop.b, found @1"),
        ("shop.a", "id=3", [table_of("a", "id"), table_of("a", None)], "expected the column 'id' in shop.a, found @1"),
        # a table that gets a column, and one that loses it
        ("shop.a", "v=3", [table_of("a", "id"), table_of("a", "id", "v"), table_of("a", "id")], ""),
        ("shop.a", "@2=3", [table_of("a", "id"), table_of("a", "id", "v")], ""),
        ("shop.a", "@3=3", [table_of("a", "id"), table_of("a", "id", "v")], "expected the column '@3' in shop.a"),
        ("shop.a", "idd=3", [table_of("a", *map(str, range(20)))], "0, 1, 2, 3, 4, 5, 6, 7 .. (20 columns) in f"),
    ],
)
def test_of_several_tables_each_may_have_other_columns_if_their_names_are_known(
    tables: str, where: str, logged: list[LoggedTable], said: str
) -> None:
    searched = Searched.of((), (tables,), (where,))
    assert searched is not None
    for table in logged:
        searched._is_asked_for((table, Change(RowsKind.INSERT, None, (1,) * len(table.columns))), "f")
    with pytest.raises(ConfigError, match=re.escape(said)) if said else contextlib.nullcontext():
        searched.require_columns()


@pytest.mark.parametrize(
    ("pattern", "database", "table"),
    [
        ("example.com.orders", "example.com", "orders"),
        ("example.com.orders", "example", "com.orders"),
        ("*.com.orders", "example.com", "orders"),
        ("e*.*s", "example.com", "orders"),
        ("e*m.orders", "e", "com.orders"),
        ("example.co?.o*", "Example.com", "orders"),
        ("example.[a-c]om.orders", "example.com", "orders"),
    ],
)
def test_a_database_whose_name_has_a_dot_is_asked_for_as_its_tables_are(
    pattern: str, database: str, table: str
) -> None:
    searched = Searched.of((), (pattern,))
    assert searched is not None
    assert searched.has_table(TableKey(database, table))
    assert searched._has_database(database)


@pytest.mark.parametrize("pattern", ["example.com.orders", "exampl*m.orders", "example.co?.o*"])
def test_other_databases_are_not_asked_for_by_a_pattern_with_dots(pattern: str) -> None:
    searched = Searched.of((), (pattern,))
    assert searched is not None
    assert not any(map(searched._has_database, ("shop", "exam", "com", "orders")))


def test_an_index_rules_out_no_file_of_a_database_with_a_dot(tmp_path: Path) -> None:
    files = [
        log_file(1, (1, 2), database="example.com"),
        log_file(2, (3,), before=[(7, 2)], database="b"),
        log_file(3, (), before=[(7, 3)]),
    ]
    archive(tmp_path / "log", *files)
    assert [each.fault for each in make_index(str(tmp_path / "log"), InProcess())] == ["", ""]
    found, said = shown(tmp_path / "log", tables=("example.com.t",))
    assert [line["seqno"] for line in found] == [1, 2]
    assert "not read, by the archive's index: 1 file (binlog.000002)" in said


@pytest.mark.parametrize(
    ("tables", "where", "said"),
    [
        (("shop.t",), ("id",), "--where: expected column=value, such as id=42, got 'id'"),
        (("shop.t",), ("=1",), "--where: expected column=value"),
        ((), ("id=1",), "--where: expected --table with it"),
    ],
)
def test_a_value_without_a_column_or_a_table_is_refused(
    tables: tuple[str, ...], where: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        Searched.of((), tables, where)


def test_a_table_without_its_database_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--table: expected database\.table, got 'orders'"):
        Searched.of((), ("orders",))


def _listed(folder: Path, **searched: Any) -> tuple[list[dict[str, Any]], str, str]:
    """The transactions of every file, what is said beside them, and the error."""
    out, err, error = io.StringIO(), io.StringIO(), ""
    files = sorted(each for each in folder.iterdir() if each.is_file())
    try:
        inspect_files(files, as_json=True, out=Terminal(file=out), err=Terminal(file=err, width=1000), **searched)
    except BinlogError as exc:
        error = str(exc)
    return [json.loads(line) for line in out.getvalue().splitlines()], err.getvalue(), error


def _mixture(seed: int) -> bytes:
    """Transactions of every kind, most of them of rows of other databases."""
    choose, events = random.Random(seed), list[tuple[bytes, ...]]()
    kinds: tuple[Callable[[int], tuple[bytes, ...]], ...] = (
        *6 * (lambda n: rows(n, "b", count=3),),
        lambda n: rows(n, "a", "b"),
        lambda n: rows(n, "shop"),
        lambda n: rows(n, "b", "shop"),
        lambda n: statements(n, "UPDATE shop.t SET i = 1"),
        lambda n: alone(n, "CREATE TABLE b.t (i INT)"),
        lambda n: (*rows(n, "b")[:-1], query(b"COMMIT")),
        lambda n: (payload(query(b"BEGIN"), table_map(1, "shop"), insert(1, [n]), XID),),
        lambda n: prepare(n, "x", "shop"),
        lambda n: ends(n, "COMMIT", "x"),
    )
    for number in range(1, 200):
        events.append(choose.choice(kinds)(number))
    return segment_of(events)[0]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_passed_is_what_concerns_others_alone(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").write_bytes(_mixture(seed))
    whole, *_ = _listed(tmp_path)
    expected = [line for line in whole if "shop" in line["databases"] or line["refused"]]
    assert 20 < len(expected) < len(whole) == 199
    for stretch in (30, 200, 1000, 1 << 24):
        monkeypatch.setattr(passed_runs, "_STRETCH", stretch)
        searched = Searched.of(("shop",), ())
        found, *_ = _listed(tmp_path, searched=searched)
        assert found == expected


def test_a_compressed_transaction_is_looked_into(tmp_path: Path) -> None:
    head = MAGIC + format_event(replace(MYSQL, checksum=ChecksumAlgorithm.CRC32))
    anonymous = wire(EventType.ANONYMOUS_GTID, b"\0" + bytes(16) + struct.pack("<qBqq", 0, 2, 5, 6))
    events = [
        part
        for name in ("b", "b", "shop", "b", "shop")
        for part in (anonymous, payload(query(b"BEGIN"), table_map(1, name), insert(1, [1]), XID))
    ]
    (tmp_path / "log").write_bytes(head + b"".join(map(crc, events)))
    found, *_ = _listed(tmp_path, searched=Searched.of(("shop",), ()))
    assert [line["seqno"] for line in found] == [3, 5]


def test_what_is_passed_in_a_file_is_not_passed_in_the_next_one(tmp_path: Path) -> None:
    files = [
        log_file(number, range(9 * number, 9 * number + 5), database=name)
        for number, name in ((1, "bbbb"), (2, "shop"))
    ]
    archive(tmp_path / "log", *files)
    found, *_ = _listed(tmp_path / "log", searched=Searched.of(("shop",), ()))
    assert [line["seqno"] for line in found] == [6, 7, 8, 9, 10]


def _with_a_gap(files: list[bytes]) -> list[bytes]:
    return [files[0], log_file(2, range(150, 200), before=[(7, 149)], database="b"), files[2]]


def _damaged_inside(files: list[bytes]) -> list[bytes]:
    half = len(files[1]) // 2
    return [files[0], files[1][:half] + bytes([files[1][half] ^ 1]) + files[1][half + 1 :], files[2]]


def _cut_short(files: list[bytes]) -> list[bytes]:
    return [*files[:2], files[2][:-100]]


@pytest.mark.parametrize("change", [list, _with_a_gap, _damaged_inside, _cut_short])
def test_what_is_passed_is_compared_with_its_neighbours_and_damage_is_named(
    change: Callable[[list[bytes]], list[bytes]], tmp_path: Path
) -> None:
    ranges = (range(1, 100), range(100, 200), range(200, 300))
    files = [
        log_file(number, seqnos, before=[(7, seqnos[0] - 1)] if number > 1 else (), database="b")
        for number, seqnos in enumerate(ranges, 1)
    ]
    archive(tmp_path / "log", *change(files))
    whole, *expected = _listed(tmp_path / "log")
    found, *said = _listed(tmp_path / "log", searched=Searched.of(("none",), ()))
    assert (found, said) == ([], expected)
    assert (expected == ["", ""]) is (change is list)
    assert len(whole) > 100
