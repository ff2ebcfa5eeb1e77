"""A view of many channels checks the schema of each server once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from binlane.apply import target_state
from binlane.apply.target_state import SchemaChecks
from binlane.connections import endpoint
from binlane.errors import StateSchemaError


def test_each_server_is_checked_once_unless_the_check_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = (
        endpoint("t", conn_type="mysql", host=host, port=3306, user="u", password="p", extra={}) for host in ("a", "b")
    )
    asked: list[Any] = []

    def require_current(connection: Any) -> None:
        asked.append(connection)
        if connection == "old":
            raise StateSchemaError("another version")

    monkeypatch.setattr(target_state, "require_current", require_current)
    checks = SchemaChecks()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: checks.require_current(near, number), range(40)))
    assert len(asked) == 1
    for _ in range(2):
        with pytest.raises(StateSchemaError):
            checks.require_current(far, "old")  # type: ignore[arg-type]
    checks.require_current(far, "new")  # type: ignore[arg-type]
    checks.require_current(far, "new")  # type: ignore[arg-type]
    assert asked[1:] == ["old", "old", "new"]
