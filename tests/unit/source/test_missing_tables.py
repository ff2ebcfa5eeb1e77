"""Which tables a source says that it does not have, without opening a view that has the name of one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace

import pymysql
import pytest

from binlane.model import TableKey
from binlane.source.server import missing_tables

ERRORS = {
    "gone": (1146, "Table 'a.gone' doesn't exist"),
    "view": (1176, "Key '' doesn't exist in table 'view'"),
    "hidden": (1142, "SELECT command denied"),
    "altered": (1205, "Lock wait timeout exceeded"),
    "lost": (2013, "Lost connection"),
}


def missing(sent: list[str], *names: str) -> set[str]:
    def execute(statement: str) -> None:
        sent.append(statement)
        for name, (number, message) in ERRORS.items():
            if f".`{name}`" in statement:
                raise pymysql.err.OperationalError(number, message)

    @contextlib.contextmanager
    def cursor() -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(execute=execute)

    found = missing_tables(SimpleNamespace(cursor=cursor), [TableKey("a", name) for name in names])
    return {key.table for key in found}


def test_a_table_is_missing_only_if_the_server_says_so() -> None:
    assert missing([], "gone", "view", "hidden", "altered", "there") == {"gone"}
    with pytest.raises(pymysql.err.OperationalError, match="Lost"):
        missing([], "lost")


def test_no_view_is_opened_and_nothing_is_written() -> None:
    sent = list[str]()
    missing(sent, "there")
    assert "SET SESSION TRANSACTION READ ONLY" in sent
    assert sent[-1] == "SELECT 1 FROM `a`.`there` USE INDEX () LIMIT 0"
