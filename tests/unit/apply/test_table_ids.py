"""The ids of InnoDB's tables that a DDL may name: the server sends those of its tables, and no others."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from binlane.apply.ddl.fingerprint import _innodb_ids
from binlane.apply.session.connection import LaneSession
from binlane.model import Flavor

STORED = ("app/t", "app/t#P#p1", "app/T#p#p2", "app/t_2", "app/caf@0p", "app@002dx/t", "other/t", "app/x")


@dataclass
class Server:
    flavor: Flavor
    version: tuple[int, int, int] = (5, 7, 44)
    sent: list[str] = field(default_factory=list)

    def rows(self, query: str, likes: tuple[str, ...]) -> list[tuple[Any, ...]]:
        assert query.count("LIKE %s") == len(likes)
        patterns = [re.escape(like).replace("%", ".*").replace("_", ".") for like in likes]
        wanted = re.compile("|".join(patterns), re.IGNORECASE)
        self.sent = [name for name in STORED if wanted.fullmatch(name)]
        return [(name, number) for number, name in enumerate(STORED) if name in self.sent]


@pytest.mark.parametrize(
    ("tables", "found", "sent"),
    [
        pytest.param({("app", "t")}, ["app/T#p#p2", "app/t", "app/t#P#p1"], 4, id="with its partitions"),
        pytest.param({("app", "caf\u00e9")}, ["app/caf@0p"], 1, id="a letter that is stored in other ones"),
        pytest.param({("app-x", "t")}, ["app@002dx/t"], 1, id="a database"),
        pytest.param({("app", f"t{n}") for n in range(99)} | {("app", "x")}, ["app/x"], 6, id="many of a database"),
        pytest.param(set(), [], 0, id="none"),
    ],
)
def test_the_ids_of_the_named_tables_are_sent_alone(tables: set[tuple[str, str]], found: list[str], sent: int) -> None:
    server = Server(Flavor.MYSQL)
    ids = _innodb_ids(cast(LaneSession, server), tables)
    assert ids is not None
    assert [name for name, _ in ids] == found
    assert len(server.sent) == sent
