"""The target's own values of variables that no log holds: those of the check, in each lane's connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from binlane.apply.session.cached_state import UNLOGGED_VARIABLES, unlogged_value
from binlane.apply.session.context import ContextSetter
from binlane.apply.session.own_variables import require_own_values
from binlane.errors import ApplyError
from binlane.model import Flavor, SessionContext
from binlane.sql.session_variables import own_values

CHECKED = {
    "div_precision_increment": "8", "max_allowed_packet": "1000", "old_mode": "UTF8_IS_UTF8MB3,NO_DUP_KEY_WARNINGS",
    "time_zone": "SYSTEM", "default_storage_engine": "InnoDB", "group_concat_max_len": "1024",
}  # fmt: skip


class Session:
    def __init__(self, flavor: Flavor, values: Mapping[str, str]) -> None:
        self.flavor, self.values, self.asked = flavor, values, ""
        self.database = ""

    def rows(self, query: str) -> list[tuple[str, str]]:
        self.asked = query
        found = [(name, value) for name, value in self.values.items() if f"'{name}'" in query]
        return found if "SESSION" in query else [(name.upper(), value) for name, value in found]

    def select_database(self, database: str) -> None:
        self.database = database


@pytest.mark.parametrize(
    ("now", "named"),
    [
        ({}, ""),
        ({"div_precision_increment": "4"}, "div_precision_increment: expected 8, .* found 4:"),
        ({"max_allowed_packet": "999"}, "max_allowed_packet: expected 1000, .* found 999:"),
        ({"max_allowed_packet": "1001"}, ""),
        ({"old_mode": "UTF8_IS_UTF8MB3"}, ""),
        ({"old_mode": ""}, "old_mode: expected UTF8_IS_UTF8MB3,.* found nothing:"),
        ({"default_storage_engine": "MyISAM"}, "default_storage_engine: "),
        # rollback keeps nothing of either
        ({"default_storage_engine": "XtraDB"}, "default_storage_engine: "),
        ({"time_zone": "+01:00"}, "time_zone: "),
    ],
)
def test_a_server_that_was_started_again_has_the_values_of_the_check(now: dict[str, str], named: str) -> None:
    session = Session(Flavor.MARIADB, {**CHECKED, **now})
    if not named:
        require_own_values(cast(Any, session), CHECKED)
        return
    with pytest.raises(ApplyError, match=named) as refused:
        require_own_values(cast(Any, session), CHECKED)
    assert "SET GLOBAL it on the target" in str(refused.value)
    is_held = "no statement of this window has run with it" in str(refused.value)
    assert is_held == (named.split(":")[0] in UNLOGGED_VARIABLES)
    # as for ft_min_word_len
    assert "start the target with the option where no SET changes it" in str(refused.value)


def test_a_variable_that_there_is_no_more_is_named() -> None:
    session = Session(Flavor.MYSQL, {})
    with pytest.raises(ApplyError, match=r"div_precision_increment: expected 8, .* found nothing:"):
        require_own_values(cast(Any, session), CHECKED)


def test_nothing_is_asked_of_a_window_that_sees_none_and_no_name_comes_from_a_file() -> None:
    session = Session(Flavor.MYSQL, {})
    require_own_values(cast(Any, session), {})
    require_own_values(cast(Any, session), {"x') OR ('1": "1"})
    assert session.asked == ""


def test_a_family_has_its_own() -> None:
    values = {"explicit_defaults_for_timestamp": "ON", "time_zone": "SYSTEM", "sort_buffer_size": "1"}
    assert own_values(values, Flavor.MYSQL) == {"time_zone": "SYSTEM"}
    assert own_values(values, Flavor.MARIADB) == {
        "time_zone": "SYSTEM", "explicit_defaults_for_timestamp": "ON",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("checked", "expected"),
    [
        (
            {"div_precision_increment": "8", "old_mode": "", "default_storage_engine": "InnoDB", "time_zone": "SYSTEM"},
            ("div_precision_increment = 8", "old_mode = _ascii''", "default_storage_engine = _ascii'InnoDB'"),
        ),
        (
            {"div_precision_increment": "4"},
            ("div_precision_increment = 4", "old_mode = DEFAULT", "default_storage_engine = DEFAULT"),
        ),
        ({}, ("div_precision_increment = DEFAULT", "old_mode = DEFAULT", "default_storage_engine = DEFAULT")),
    ],
)
def test_a_statement_has_the_value_of_the_check_whatever_somebody_has_set_since(
    checked: dict[str, str], expected: tuple[str, ...]
) -> None:
    there = {"div_precision_increment": "30", "old_mode": "", "default_storage_engine": "MyISAM", "time_zone": "SYSTEM"}
    setter = ContextSetter(cast(Any, Session(Flavor.MARIADB, there)), checked)

    for _ in range(2):
        setter.expire()
        assert setter._renew(SessionContext(), b"UPDATE t SET n = 1 / 3") == expected


def test_the_engine_of_temporary_tables_that_mariadb_does_not_have_is_none() -> None:
    assert unlogged_value("default_tmp_storage_engine", {"default_tmp_storage_engine": ""}) == "NULL"


def test_no_statement_is_made_of_a_file() -> None:
    with pytest.raises(ApplyError, match="expected a value of a server's variable"):
        unlogged_value("old_mode", {"old_mode": "', sql_log_bin = 0, x = '"})
