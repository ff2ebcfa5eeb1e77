"""Statements of a log that a server's client would run itself, in a part or as a whole."""

from __future__ import annotations

import time
import tracemalloc
from typing import Final

import pytest

from binlane.orchestration.commands.inspection.rows import LoggedStatement
from binlane.orchestration.commands.inspection.statements import row_sql

STATEMENTS: Final = (
    ("INSERT INTO t VALUES ('a;b', \"it's\", `c`, 'a\\'b', '', 'a''b')", True),
    ("-- a\n# b\n/* c */ (SELECT 1) -- d", True),
    ("/**//**/ SELECT 1 /* ' */ - 1 / 2 * 3", True),
    ("SELECT \\N, 1 --1", True),
    ("SELECT '" + "a" * 5_000 + "\\'', `" + "b" * 5_000 + "`", True),
    ("system id", False),
    ("--\nsystem id", False),
    ("-- a\n/* b */ SYSTEM id", False),
    ("SELECT 1 \\! id", False),
    ("SELECT 'a\\' \\! id", False),
    ("SELECT 'a", False),
    ("SELECT `a", False),
    ("/*M!100000 \\! id */ SELECT 1", False),
    ("SELECT 1 /* a", False),
    ("/**//**/ /*! SELECT 1 */", False),
    ("DO 1;;\nsystem id", False),
)
LONG: Final = ("/**/" * 200_000 + "/*! x */", "SELECT '" + "\\'" * 1_000_000 + "'", "SELECT " + "'a'," * 500_000 + "1")


@pytest.mark.parametrize(("sql", "is_sent"), STATEMENTS)
def test_a_client_sends_what_has_no_command_of_its_own(sql: str, is_sent: bool) -> None:
    shown = row_sql(LoggedStatement("app", sql), for_client=True)
    assert (not shown.startswith("-- a client would find commands of its own in it")) == is_sent


@pytest.mark.parametrize("sql", LONG, ids=["comments", "escapes", "strings"])
def test_a_long_statement_takes_neither_time_nor_memory(sql: str) -> None:
    begun = time.process_time()
    row_sql(LoggedStatement("app", sql), for_client=True)
    assert time.process_time() - begun < 2
    tracemalloc.start()
    try:
        row_sql(LoggedStatement("app", sql[:400_000]), for_client=True)
        # the texts themselves, and twenty thousand repetitions
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()
