"""A program is made under the default that its database had when it was made on the source."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, cast

import pymysql
import pytest

from binlane.bootstrap.definition_copy import Definition, make
from binlane.errors import TargetError
from binlane.model import Flavor

MADE: Final = "CREATE DEFINER=`a`@`%` FUNCTION `f`(a TEXT) RETURNS int(11) RETURN 1"
FULL_NAME: Final = "utf8mb4_uca1400_ai_ci"
"""MariaDB 11.5's own default, which SHOW COLLATION has as uca1400_ai_ci from 10.10 on."""


def sent(present: str, *, lacks: str = "") -> list[str]:
    """The statements behind the session's usual ones that make a function of ``FULL_NAME``; ``lacks``: a collation that
    the target does not have."""
    statements: list[str] = []

    def execute(statement: str | bytes) -> int:
        text = statement if isinstance(statement, str) else statement.decode()
        statements.append(text)
        if lacks and text.endswith(f"COLLATE {lacks}"):
            raise pymysql.err.OperationalError(1273, f"Unknown collation: '{lacks}'")
        return 0

    session = SimpleNamespace(
        flavor=Flavor.MARIADB, execute=execute, rows=lambda _: [], texts=lambda _: [(present,)], is_open=True
    )
    one = Definition("FUNCTION", "app", "f", MADE.encode(), "utf8mb4", FULL_NAME, "", "", FULL_NAME)
    try:
        make(cast(Any, session), one)
    except TargetError:
        assert lacks
        assert statements[-2] == "SET NAMES utf8mb4"
        raise
    return [each for each in statements if not each.startswith(("USE", "SET"))]


def test_the_default_is_given_and_taken_back() -> None:
    there, back = (f"ALTER DATABASE `app` COLLATE {name}" for name in (FULL_NAME, "utf8mb4_general_ci"))
    assert sent("utf8mb4_general_ci") == [there, MADE, back]
    assert sent(FULL_NAME) == [MADE]


def test_a_default_that_the_target_lacks_is_named_with_the_program() -> None:
    with pytest.raises(TargetError, match=rf"function app\.f: .*Unknown collation: '{FULL_NAME}'"):
        sent("utf8mb4_general_ci", lacks=FULL_NAME)
