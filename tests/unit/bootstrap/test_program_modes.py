"""A program of MySQL 5.7 is made without the modes that 8.0 refuses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from binlane.bootstrap.definition_copy import Definition, make
from binlane.model import Flavor

LISTED = "ANSI_QUOTES,NO_AUTO_CREATE_USER"


@pytest.mark.parametrize(("flavor", "sent"), [(Flavor.MYSQL, "ANSI_QUOTES"), (Flavor.MARIADB, LISTED)])
def test_a_program_s_modes_are_those_that_the_target_has(flavor: Flavor, sent: str) -> None:
    statements: list[str | bytes] = []
    session = SimpleNamespace(flavor=flavor, execute=statements.append, rows=lambda _: [], texts=lambda _: [("",)])
    text = b'CREATE DEFINER="a"@"%" FUNCTION "f"() RETURNS int RETURN 1'
    make(cast(Any, session), Definition("FUNCTION", "app", "f", text, "utf8mb4", "utf8mb4_bin", LISTED))
    assert f"SET sql_mode = '{sent}'" in statements
    assert text in statements
