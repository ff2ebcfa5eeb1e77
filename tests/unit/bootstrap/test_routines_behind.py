"""Of which routines the bodies are read for a view: servers have thousands of them, and copies thousands of views."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

import pytest

from binlane.bootstrap.sessions import Session
from binlane.bootstrap.view_functions import routines_behind
from binlane.model import Flavor
from binlane.sql.charset import definition_context

BODIES = {"f": "RETURN g() + 1", "g": "RETURN 1", "status": "RETURN sys_exec('x')", "p": "SELECT 1"}


class _Server:
    """Has a function of each body, and a procedure ``p``; knows what it was asked for."""

    def __init__(self, flavor: Flavor) -> None:
        self.flavor, self.asked = flavor, list[frozenset[str]]()

    def rows(self, query: str) -> Sequence[Sequence[object]]:
        if "'DEFINER'" in query:
            return ()
        named = re.search(r"routine_name IN \(([^)]*)\)", query)
        assert named is not None, query
        names = frozenset(each for each in re.findall(r"'(\w*)'", named[1]) if each)
        self.asked.append(names)
        kinds = {name: "procedure" if name == "p" else "function" for name in BODIES}
        return [("app", name, kinds[name], BODIES[name], "", "utf8mb4") for name in sorted(names & BODIES.keys())]


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    ("query", "reached", "first"),
    [
        ("SELECT `o`.`status` AS `status`, count(*) AS `n` FROM `app`.`o`", [], None),
        ("SELECT `app`.`f`(1) AS `x`, `o`.`status` FROM `app`.`o`", ["app.f", "app.g"], {"f"}),
        ("SELECT p (1) AS x", [], {"p"}),
        ("SELECT app.count(1) AS x", [], {"count"}),
    ],
)
def test_only_what_a_view_calls_is_read(query: str, reached: list[str], first: set[str] | None, flavor: Flavor) -> None:
    server, context = _Server(flavor), definition_context("", "utf8mb4")
    found = routines_behind(cast(Session, server), b"CREATE VIEW `v` AS " + query.encode(), context)
    assert [each.name for each in found] == reached
    assert server.asked[:1] == ([] if first is None else [first])
