"""The statements of a repair's plan that make an object anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from binlane.model import Flavor, SchemaObject
from binlane.verify.definitions.object_mends import Creation

TEXT: Final = 'CREATE FUNCTION "f"() RETURNS int RETURN 1'
LISTED: Final = "ANSI_QUOTES,NO_AUTO_CREATE_USER"
SHOWN: Final = ("f", LISTED, TEXT, "utf8mb4", "utf8mb4_bin", "utf8mb4_bin")
"""Made in a database of utf8mb4_bin."""


def statements(flavor: Flavor, default: str = "utf8mb4_bin") -> tuple[str, ...]:
    """``default``: the database's present one."""

    def texts(query: str) -> list[tuple[str, ...]]:
        if query.startswith("SHOW CREATE FUNCTION"):
            return [SHOWN]
        return [(default,)] if "schemata" in query else [("5.7.44",)]

    source = cast(Any, SimpleNamespace(texts=texts))
    return Creation(source, (flavor, flavor), ()).of([SchemaObject("function", "app", "f")]).statements


@pytest.mark.parametrize(("flavor", "sent"), [(Flavor.MYSQL, "ANSI_QUOTES"), (Flavor.MARIADB, LISTED)])
def test_a_program_s_modes_are_those_that_the_target_has(flavor: Flavor, sent: str) -> None:
    assert [each for each in statements(flavor) if each.startswith(f"SET SESSION sql_mode = '{sent}', ")]


def test_a_program_is_made_under_the_default_that_its_database_had_then() -> None:
    use, mode, *made = statements(Flavor.MARIADB, "latin1_swedish_ci")
    there, back = (f"ALTER DATABASE `app` COLLATE {name}" for name in ("utf8mb4_bin", "latin1_swedish_ci"))
    assert made == [there, TEXT.replace("CREATE ", "CREATE OR REPLACE ", 1), back]
    assert statements(Flavor.MARIADB) == (use, mode, made[1])
