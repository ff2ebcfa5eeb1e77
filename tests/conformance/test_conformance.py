"""The pages are what the table says, and the table is whole: every claim has proofs that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from binlane import errors
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.binlog.wire import EventType
from binlane.errors import BinlogError
from binlane.model import Flavor
from binlane.plan.transaction.decode import LogFormat, dissect
from lab.servers import PrivateServer
from tests.conformance.content_cases import CONTENT_CASES
from tests.conformance.event_types import EVENT_TYPES
from tests.conformance.framing_cases import FRAMING_CASES
from tests.conformance.rows import Row, Verdict
from tests.conformance.table import pages, rows
from tests.conformance.versions import TRIED, VERSIONS
from tests.parsing import parsed
from tests.unit.binlog.cases import mariadb_gtid, wire
from tests.unit.binlog.test_corpora import FILES
from tests.unit.plan.logs import IN_TRANSACTION, XID, segment_of

ROOT = Path(__file__).parents[2]


@cache
def functions(path: str) -> frozenset[str]:
    """The test functions of a file."""
    tree = parsed((ROOT / path).read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def codes(row: Row) -> list[EventType]:
    return [EventType(int(code)) for code in re.findall(r"\((\d+)\)", row.what)]


def refused_types() -> Iterator[tuple[EventType, str]]:
    for row in EVENT_TYPES:
        if row.verdict is Verdict.REFUSED:
            assert row.error is not None
            yield from ((code, row.error) for code in codes(row))


def take_apart(data: bytes, name: str) -> None:
    reader = LogReader(data, name)
    for transaction in transactions(reader):
        dissect(transaction, LogFormat(reader.format, name, 0, Flavor.MARIADB))


@pytest.mark.parametrize("name", pages())
def test_a_page_is_what_the_table_says(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == pages()[name], "run `make conformance`"


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row.what[:60])
def test_every_proof_of_a_row_exists(row: Row) -> None:
    assert row.tests
    for test in row.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), path
        assert name in functions(path), f"{path} has no {name}"


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row.what[:60])
def test_every_refusal_names_an_error_of_the_project(row: Row) -> None:
    assert (row.error is not None) == (row.verdict is Verdict.REFUSED)
    if row.error is not None:
        assert issubclass(getattr(errors, row.error), errors.BinlaneError)


def test_every_event_type_has_one_row() -> None:
    assert sorted(code for row in EVENT_TYPES for code in codes(row)) == sorted(EventType)


def test_no_edge_case_is_told_twice() -> None:
    cases = (*FRAMING_CASES, *CONTENT_CASES)
    assert len({row.what for row in cases}) == len(cases) >= 95


@pytest.mark.parametrize(("code", "error"), list(refused_types()), ids=lambda value: str(value))
def test_each_refused_type_is_refused_with_its_error(code: EventType, error: str) -> None:
    """With the ignorable flag, too: what a known type says is not passed over because somebody allows it."""
    event = wire(code, b"\1\0\4gone" if code is EventType.INCIDENT else bytes(60))
    data, segment = segment_of([(mariadb_gtid(1, IN_TRANSACTION), event, XID)])
    with pytest.raises(BinlogError, match=rf"^{re.escape(segment.source_file)}:\d+: ") as refused:
        take_apart(data, segment.source_file)
    assert type(refused.value).__name__ == error


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_the_servers_tried_are_those_of_the_page(request: pytest.FixtureRequest, family: str) -> None:
    server: PrivateServer = request.getfixturevalue(f"{family}_source")
    found = str(server.query("SELECT @@version")[0][0])
    if not found.startswith(TRIED[family]):
        pytest.skip(f"the page was made with {family} {TRIED[family]}; here is {found}")
    assert any(re.match(rf"\w+ {re.escape(TRIED[family])}, as source and as target$", row.what) for row in VERSIONS)


def test_every_version_whose_files_are_read_has_a_row() -> None:
    """Of the corpora, where they are."""
    named = " ".join(row.what for row in VERSIONS)
    for entry in FILES:
        series = re.match(r"\d+\.\d+", entry.version)
        assert series is not None
        family = "MariaDB" if "MariaDB" in entry.version else "MySQL"
        assert f"{family} {series[0]}" in named, entry.version
