"""What a source's list of connections is believed: nothing where it may lack one."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from binlane.source import server

OWN = 5
GRANTS = [{"Grants": "GRANT PROCESS ON *.* TO `b`@`%`"}]
SHOWN = [{"Id": OWN}, {"Id": 9}]
BY_SCHEMA = [{"Variable_name": "performance_schema_show_processlist", "Value": "ON"}]


def status(lost: int) -> list[dict[str, str]]:
    return [{"Variable_name": "Performance_schema_thread_instances_lost", "Value": str(lost)}]


ANSWERS: Mapping[str, list[dict[str, Any]]] = {"GRANTS": GRANTS, "PROCESSLIST": SHOWN, "STATUS": status(0)}
CASES = [
    pytest.param({}, {5, 9}, id="all"),
    pytest.param({"GRANTS": [{"Grants": "GRANT USAGE ON *.* TO `b`@`%`"}]}, None, id="its own alone"),
    pytest.param({"PROCESSLIST": [{"Id": 9}]}, None, id="without its own"),
    pytest.param({"STATUS": status(3)}, {5, 9}, id="lost by a schema that is not asked"),
    pytest.param({"VARIABLES": BY_SCHEMA}, {5, 9}, id="none lost"),
    pytest.param({"VARIABLES": BY_SCHEMA, "STATUS": status(3)}, None, id="lost"),
    pytest.param({"NUMBERS": [{"number": "77"}]}, {5, 9, 77}, id="set numbers"),
]


@pytest.mark.parametrize(("answers", "expected"), CASES)
def test_a_list_that_may_lack_a_connection_is_none(
    answers: Mapping[str, list[dict[str, Any]]], expected: set[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {**ANSWERS, **answers}

    def rows(_: object, statement: str) -> list[dict[str, Any]]:
        word = "NUMBERS" if "pseudo_thread_id" in statement else statement.partition(" LIKE ")[0].split()[-1]
        return known.get(word, [])

    monkeypatch.setattr(server, "_rows", rows)
    monkeypatch.setattr(server, "_value", lambda *_: 7)
    connection = SimpleNamespace(thread_id=lambda: OWN, get_server_info=lambda: "9.1.0")
    found = server.open_sessions(connection)
    assert found == (None if expected is None else {(7, number) for number in expected})
