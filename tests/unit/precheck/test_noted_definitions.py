"""What a window's folder has of the servers' definitions is read once in a precheck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import Connection

from binlane.model import Flavor, TableKey
from binlane.precheck.definitions import noted
from binlane.precheck.definitions.noted import (
    NotedDefinitions,
    ReadDefinitions,
    foreign_keys_as_they_are,
    note_definitions,
    source_as_it_is,
)
from binlane.schema.model import ForeignKey, Table
from binlane.schema.statement_counts import StatementCounts
from binlane.shards.selection import Selection
from binlane.work.files import WorkFolder
from tests.unit.precheck.situations import schema

PARENT, CHILD = TableKey("a", "parent"), TableKey("a", "child")
KEY = ForeignKey("fk", ("p",), PARENT, ("id",), "RESTRICT", "CASCADE")
THEN = StatementCounts("s", at=9, since=1, session=1, counts={"alter_table": 1})


def test_the_source_s_definitions_and_their_foreign_keys_are_of_one_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Counter[str]()

    class Folder(WorkFolder):
        def read(self, name: str, most: int | None = None) -> bytes:
            read[name] += 1
            return super().read(name, most)

    source = schema(
        Table(PARENT, "InnoDB", ()),
        Table(CHILD, "InnoDB", (), foreign_keys=(KEY,)),
        flavor=Flavor.MARIADB,
        databases=frozenset({"a"}),
    )
    settings: Mapping[str, str] = {"lower_case_table_names": "0"}
    folder = Folder(str(tmp_path))
    found = ReadDefinitions(source=THEN, asked=frozenset({"a"}))
    note_definitions(folder, found, schema(), source)
    monkeypatch.setattr(noted, "read_statement_counts", lambda _: THEN)
    monkeypatch.setattr(noted, "read_databases", lambda _: frozenset({"a"}))
    monkeypatch.setattr(noted, "read_settings", lambda _: settings)
    connection, definitions = cast("Connection", cast("Any", None)), NotedDefinitions(folder)
    assert source_as_it_is(connection, frozenset({"a"}), definitions).tables == source.tables
    assert foreign_keys_as_they_are(connection, Selection(), definitions) == {CHILD: (KEY,)}
    assert sorted(read.values()) == [1, 1]
