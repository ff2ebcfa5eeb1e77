"""Bits of sql_mode from one family to the other: the same effect, or a name for what has none."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.sql_modes import translated, untranslatable, with_unknown_options

MARIADB, MYSQL = Flavor.MARIADB, Flavor.MYSQL
STRICT, ANSI_QUOTES, NO_AUTO_CREATE_USER, NO_TABLE_OPTIONS = 0x200000, 0x4, 0x10000000, 0x4000
TRUNCATE, ROUND = 1 << 32, 1 << 34


@pytest.mark.parametrize(
    ("mode", "source", "target", "expected"),
    [
        pytest.param(STRICT, MYSQL, MYSQL, STRICT, id="one family keeps its bits"),
        pytest.param(STRICT | 1 << 32, MARIADB, MARIADB, STRICT | 1 << 32, id="unknown ones, too"),
        pytest.param(STRICT, MYSQL, MARIADB, STRICT | ROUND, id="MySQL rounds"),
        pytest.param(STRICT | TRUNCATE, MYSQL, MARIADB, STRICT, id="unless it was asked not to"),
        pytest.param(STRICT, MARIADB, MYSQL, STRICT | TRUNCATE, id="MariaDB cuts"),
        pytest.param(STRICT | ROUND, MARIADB, MYSQL, STRICT, id="unless it was asked to round"),
        pytest.param(
            STRICT | ANSI_QUOTES, MARIADB, MYSQL, STRICT | ANSI_QUOTES | TRUNCATE, id="common bits stay"
        ),
        pytest.param(NO_AUTO_CREATE_USER, MARIADB, MYSQL, TRUNCATE, id="what MySQL 8 always does is left out"),
        pytest.param(NO_TABLE_OPTIONS | 0x10, MARIADB, MYSQL, TRUNCATE, id="what only shows is left out"),
    ],
)  # fmt: skip
def test_a_mode_has_the_same_effect_on_the_other_family(
    mode: int, source: Flavor, target: Flavor, expected: int
) -> None:
    assert translated(mode, source, target) == expected


@pytest.mark.parametrize(("bit", "name"), [(0x200, "ORACLE"), (1 << 32, "EMPTY_STRING_IS_NULL"), (1 << 33, "SIMUL")])
def test_a_mode_that_gives_statements_another_meaning_is_named(bit: int, name: str) -> None:
    assert str(untranslatable(STRICT | bit, MARIADB, MYSQL)).startswith(name)
    assert untranslatable(STRICT | bit, MARIADB, MARIADB) is None


def test_mysqls_own_bit_is_translatable() -> None:
    assert untranslatable(STRICT | TRUNCATE, MYSQL, MARIADB) is None


def test_options_that_a_server_does_not_know_are_kept_in_no_strict_mode() -> None:
    assert with_unknown_options(STRICT | 0x400000 | ANSI_QUOTES) == ANSI_QUOTES | 0x10
