"""``binlane inspect --database``, ``--table``: the same transactions with an index, which only saves reading."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.errors import ConfigError
from binlane.model import plural
from binlane.orchestration.commands.inspection import events
from binlane.orchestration.commands.inspection.events import inspect_files
from binlane.orchestration.commands.inspection.searched import Searched
from binlane.orchestration.terminal import Terminal
from binlane.restore.archive_index import folder_of, name_of, parquet_of, read_facts
from binlane.restore.file_content import FileContent
from binlane.restore.indexing import make_index
from tests.unit.plan.logs import alone, rows, segment_of, statements
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
    assert len([*make_index(str(site), processes=1)]) == 4
    opened.clear()
    found, said = shown(site, *databases, tables=tables)
    assert (found, opened) == (without, list(read))
    assert f"not read, by the archive's index: {plural(5 - len(read), 'file')} (binlog.000001" in said


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
    assert len([*make_index(str(site), processes=1)]) == 4
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


def test_a_table_without_its_database_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--table: expected database\.table, got 'orders'"):
        Searched.of((), ("orders",))
