"""The names of restored databases: no one is what another one is called until its restore is complete."""

from __future__ import annotations

import pytest

from binlane.errors import ConfigError
from binlane.orchestration.commands.copies.restore_plan import EndRequest, RestoreRequest, _names


def names(final: str | None, *databases: str) -> tuple[tuple[str, str], ...]:
    request = RestoreRequest(None, "all.sql", "log", databases, (), final, EndRequest("now", None), None, "target")
    return _names(request, frozenset(databases))


@pytest.mark.parametrize("final", [None, "%", "back_%"])
def test_a_database_that_another_one_would_be_moved_from_is_refused(final: str | None) -> None:
    with pytest.raises(ConfigError, match=r"(?i)x_unfinished: expected another name: \w*x has it until its restore"):
        names(final, "x", "x_unfinished")
    with pytest.raises(ConfigError, match="with an ending such as --as '%_back'"):
        names(final, "x", "X_Unfinished")


def test_the_way_out_is_an_ending() -> None:
    assert dict(names("%_back", "x", "x_unfinished")) == {"x": "x_back", "x_unfinished": "x_unfinished_back"}
