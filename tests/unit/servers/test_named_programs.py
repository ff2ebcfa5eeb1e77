"""Some routines and views are asked for by their names: a server reads no others for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from sqlalchemy.dialects.mysql.pymysql import MySQLDialect_pymysql

from binlane.model import Flavor, TableKey
from binlane.servers.programs import read_named_programs
from tests.unit.precheck.situations import VERSIONS

A, B, C = (TableKey(f"tenant{at}", f"f{at}") for at in range(3))


class _Connection:
    """A server without any of them, which keeps what it was asked."""

    def __init__(self, flavor: Flavor) -> None:
        self.flavor, self.asked = flavor, list[tuple[str, Mapping[str, Any]]]()

    def execute(self, statement: Any, values: Mapping[str, Any] | None = None) -> Any:
        sql = str(statement.compile(dialect=MySQLDialect_pymysql()))
        if "VERSION()" in sql:
            return _Scalar(VERSIONS[self.flavor])
        self.asked.append((re.findall(r"information_schema\.(\w+)\s+WHERE", sql)[-1], values or {}))
        return iter(())


class _Scalar:
    def __init__(self, value: str) -> None:
        self.value = value

    def scalar_one(self) -> str:
        return self.value

    def __iter__(self) -> Iterator[Any]:
        return iter(())


@pytest.mark.parametrize(
    ("flavor", "asked"),
    [
        (
            Flavor.MYSQL,
            [
                ("routines", {"names0": ["tenant0", "tenant1", ""], "tables0": ["f0", "f1"]}),
                ("views", {"names0": ["tenant2"], "tables0": ["f2"]}),
            ],
        ),
        (
            # each by itself, in one query
            Flavor.MARIADB,
            [
                (
                    "routines",
                    {"names0": ["tenant0"], "tables0": ["f0"], "names1": ["tenant1"], "tables1": ["f1"]},
                ),
                ("views", {"names0": ["tenant2"], "tables0": ["f2"]}),
            ],
        ),
    ],
)
def test_both_families_are_asked_by_database_and_name(flavor: Flavor, asked: list[Any]) -> None:
    connection = _Connection(flavor)
    many = [TableKey("tenant0", f"f{at}") for at in range(201)]
    assert read_named_programs(connection, {False: many, True: []}) == []  # type: ignore[arg-type]
    assert len(connection.asked) == (1 if flavor is Flavor.MYSQL else 3)
    connection.asked.clear()
    assert read_named_programs(connection, {False: [A, B], True: [C]}) == []  # type: ignore[arg-type]
    assert connection.asked == asked
    assert read_named_programs(connection, {False: [], True: []}) == []  # type: ignore[arg-type]
    assert connection.asked == asked
