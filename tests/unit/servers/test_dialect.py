"""Dialects that are equal where the server gets the same text, so that a process compiles a statement once."""

from __future__ import annotations

from typing import Any

import pytest

from binlane.servers.dialect import ServerDialect
from binlane.state.migrations.check import _expected
from binlane.state.tables import windows

_KNOWN: dict[str, Any] = {"server_version_info": (9, 7, 0), "_sql_mode": "", "_casing": 0}


def dialect_of(**facts: Any) -> ServerDialect:
    made = ServerDialect()
    vars(made).update(_KNOWN | facts)
    return made


def test_dialects_of_servers_that_are_alike_are_one_key() -> None:
    assert len({dialect_of(), dialect_of()}) == 1
    assert _expected(windows, dialect_of()) is _expected(windows, dialect_of())


@pytest.mark.parametrize(
    "facts",
    [
        {"server_version_info": (8, 0, 12)},
        {"is_mariadb": True},
        {"_sql_mode": "ANSI_QUOTES"},
        {"_sql_mode": "NO_BACKSLASH_ESCAPES"},
        {"_casing": 1},
    ],
)
def test_dialects_of_other_servers_are_others(facts: dict[str, Any]) -> None:
    assert len({dialect_of(), dialect_of(**facts)}) == 2


def test_a_dialect_that_knows_no_server_yet_is_none_of_one() -> None:
    assert len({ServerDialect(), dialect_of()}) == 2
