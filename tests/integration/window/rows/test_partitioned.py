"""MariaDB counts the rows of partitioned tables twice: the lanes have to know which they are."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from binlane.apply.rows.binlog import BinlogRows
from binlane.errors import PlanError
from binlane.model import TableKey
from binlane.precheck import results
from binlane.precheck.results import checked_of
from binlane.work.files import PARTITIONED, WorkFolder
from tests.integration.window.conftest import Channel, ChannelOf, run_on

IN_PARTS = "PARTITION BY HASH (id) PARTITIONS 3"
SHOP = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.whole (id INT PRIMARY KEY, a INT)",
    f"CREATE TABLE tenant_1.parts (id INT PRIMARY KEY, a INT) {IN_PARTS}",
)
WHOLE, PARTS, MADE = (TableKey("tenant_1", name) for name in ("whole", "parts", "made"))
ROWS = (
    "INSERT INTO tenant_1.whole VALUES (1, 1), (2, 2)",
    "INSERT INTO tenant_1.parts VALUES (1, 1), (2, 2), (3, 3)",
    "UPDATE tenant_1.parts SET id = id + 10",
)


@pytest.fixture
def pair(channel_of: ChannelOf) -> Channel:
    found = channel_of("mariadb", "mariadb")
    for server in (found.source, found.target):
        run_on(server, *SHOP, log=False)
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[TableKey]:
    """The tables that lanes ask the target about."""
    found: list[TableKey] = []
    ask = BinlogRows._asked_whether_partitioned

    def noted(rows: BinlogRows, table: TableKey) -> bool:
        found.append(table)
        return ask(rows, table)

    monkeypatch.setattr(BinlogRows, "_asked_whether_partitioned", noted)
    return found


def test_the_lanes_go_by_what_the_precheck_saw_and_ask_about_what_the_window_makes(
    pair: Channel, asked: list[TableKey]
) -> None:
    run_on(pair.source, *ROWS, f"CREATE TABLE tenant_1.made (id INT PRIMARY KEY) {IN_PARTS}")
    run_on(pair.source, "INSERT INTO tenant_1.made VALUES (1), (2)", "INSERT INTO tenant_1.whole VALUES (3, 3)")

    assert pair.run() is not None

    pair.assert_equal()
    (kept,) = pair.work.glob(f"*/*/{PARTITIONED}")
    assert json.loads(kept.read_text()) == {"partitioned": [["tenant_1", "parts"]]}
    assert set(asked) == {MADE}


@pytest.mark.parametrize("seen", [(), (WHOLE, PARTS)], ids=["none-was", "all-were"])
def test_a_table_that_is_partitioned_otherwise_by_now_is_asked_about(
    pair: Channel, asked: list[TableKey], monkeypatch: pytest.MonkeyPatch, seen: Iterable[TableKey]
) -> None:
    """Somebody altered it between the check and the lane."""

    def before(*_: object) -> frozenset[TableKey]:
        return frozenset(seen)

    monkeypatch.setattr(results, "partitioned_as_it_is", before)
    run_on(pair.source, *ROWS)

    assert pair.run() is not None

    pair.assert_equal()
    assert {WHOLE, PARTS} & set(asked)


def test_a_damaged_list_is_refused(pair: Channel) -> None:
    folder = WorkFolder(str(pair.project))
    folder.write_once(PARTITIONED, b"{}")
    with pytest.raises(PlanError, match=r"partitioned\.json: .*is missing; remove the file and run the task again"):
        checked_of(folder, selects=False)
