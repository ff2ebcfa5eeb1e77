"""The target's own values of variables that no log holds: those of the check, in each lane's connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from binlane.apply.session.own_variables import require_own_values
from binlane.errors import ApplyError
from binlane.model import Flavor
from binlane.sql.session_variables import own_values

CHECKED = {
    "div_precision_increment": "8", "max_allowed_packet": "1000", "old_mode": "UTF8_IS_UTF8MB3,NO_DUP_KEY_WARNINGS",
    "time_zone": "SYSTEM", "default_storage_engine": "InnoDB", "group_concat_max_len": "1024",
}  # fmt: skip


class Session:
    def __init__(self, flavor: Flavor, values: Mapping[str, str]) -> None:
        self.flavor, self.values, self.asked = flavor, values, ""

    def rows(self, query: str) -> list[tuple[str, str]]:
        self.asked = query
        return [(name.upper(), value) for name, value in self.values.items() if f"'{name}'" in query]


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
