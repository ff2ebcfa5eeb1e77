"""Bits of sql_mode from one family to the other: the same effect, or a name for what has none."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.sql_modes import (
    alike_modes,
    modes_there,
    settable,
    translated,
    untranslatable,
    with_unknown_options,
)

MARIADB, MYSQL = Flavor.MARIADB, Flavor.MYSQL
STRICT, ANSI_QUOTES, NO_AUTO_CREATE_USER, NO_TABLE_OPTIONS = 0x200000, 0x4, 0x10000000, 0x4000
TRUNCATE, ROUND = 1 << 32, 1 << 34
ORACLE, ITS_EFFECTS = 0x200, 0x2 | 0x4 | 0x8
NEW = {MARIADB: (11, 8, 2), MYSQL: (9, 7, 0)}


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
    assert translated(mode, source, NEW[source], target) == expected


@pytest.mark.parametrize(("bit", "name"), [(0x200, "ORACLE"), (1 << 32, "EMPTY_STRING_IS_NULL"), (1 << 33, "SIMUL")])
def test_a_mode_that_gives_statements_another_meaning_is_named(bit: int, name: str) -> None:
    assert str(untranslatable(STRICT | bit, MARIADB, NEW[MARIADB], MYSQL)).startswith(name)
    assert untranslatable(STRICT | bit, MARIADB, NEW[MARIADB], MARIADB) is None


def test_mysqls_own_bit_is_translatable() -> None:
    assert untranslatable(STRICT | TRUNCATE, MYSQL, NEW[MYSQL], MARIADB) is None


def test_options_that_a_server_does_not_know_are_kept_in_no_strict_mode() -> None:
    assert with_unknown_options(STRICT | 0x400000 | ANSI_QUOTES) == ANSI_QUOTES | 0x10


@pytest.mark.parametrize(
    ("source", "version", "target", "expected"),
    [
        (MYSQL, (5, 7, 44), MARIADB, ITS_EFFECTS | ROUND),
        (MARIADB, (10, 2, 44), MARIADB, ITS_EFFECTS),
        (MARIADB, (10, 2, 44), MYSQL, ITS_EFFECTS | TRUNCATE),
        (MARIADB, (10, 3, 0), MARIADB, ORACLE | ITS_EFFECTS),
        # a name that 8.0 does not show
        (MYSQL, (5, 7, 44), MYSQL, ITS_EFFECTS),
    ],
)
def test_oracle_of_servers_on_which_it_is_a_name_brings_no_oracle_mode_of_mariadb(
    source: Flavor, version: tuple[int, int, int], target: Flavor, expected: int
) -> None:
    """MySQL up to 5.7, and MariaDB up to 10.2."""
    mode = ORACLE | ITS_EFFECTS
    assert translated(mode, source, version, target) == expected
    assert untranslatable(mode, source, version, target) is None


def test_modes_that_both_families_have_are_compared_and_oracle_where_it_means_the_same() -> None:
    listed = "PIPES_AS_CONCAT,ORACLE,NO_AUTO_CREATE_USER,MSSQL,ANSI_QUOTES"
    assert alike_modes(listed, MYSQL) == ("PIPES_AS_CONCAT", "ANSI_QUOTES")
    assert alike_modes(listed, MARIADB) == ("PIPES_AS_CONCAT", "ORACLE", "ANSI_QUOTES")


def test_mysql_is_sent_no_mode_that_8_0_has_removed() -> None:
    listed = "ANSI_QUOTES,NO_AUTO_CREATE_USER,ORACLE"
    assert modes_there(listed, MYSQL) == "ANSI_QUOTES"
    assert modes_there(listed, MARIADB) == listed
    assert modes_there("", MYSQL) == ""


@pytest.mark.parametrize("name", ["DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL"])
def test_a_dump_for_another_database_has_its_names_in_double_quotes(name: str) -> None:
    """``mysqldump --compatible`` of 5.7 sets the name of a combination alone."""
    assert modes_there(f"NO_AUTO_VALUE_ON_ZERO,{name}", MYSQL) == "NO_AUTO_VALUE_ON_ZERO,ANSI_QUOTES"
    assert modes_there(name, MARIADB) == f"{name},ANSI_QUOTES"


@pytest.mark.parametrize("bit", [0x100, 0x400, 0x800, 0x1000, 0x1_0000, 0x2_0000, 0x4_0000, 1 << 27])
@pytest.mark.parametrize("target", [MARIADB, MYSQL])
def test_a_session_gets_no_mode_of_a_combination_that_was_not_logged(bit: int, target: Flavor) -> None:
    """A server makes more of the name alone (``integration/apply/test_sql_modes.py``)."""
    assert settable(bit, target) == 0
    assert settable(bit | STRICT, target) == STRICT


def test_a_combination_keeps_its_name_where_the_target_makes_the_same_of_it() -> None:
    assert settable(0x4002F, MYSQL) == 0x4002F
    # MySQL 5.6, and MariaDB: without ONLY_FULL_GROUP_BY
    assert settable(0x4000F, MYSQL) == 0xF
    assert settable(0x4000F, MARIADB) == 0x4000F


def test_a_mode_that_cannot_be_had_without_ansi_quotes_is_refused() -> None:
    with pytest.raises(ValueError, match="ORACLE without ANSI_QUOTES"):
        translated(ORACLE, MARIADB, NEW[MARIADB], MARIADB)
