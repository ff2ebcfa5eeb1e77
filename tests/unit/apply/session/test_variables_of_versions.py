"""Which variables a lane sets with a statement, by the target's version: an unknown one stops it with 1193."""

from __future__ import annotations

from typing import Any, cast

import pytest

from binlane.apply.session.connection import LaneSession
from binlane.apply.session.context import ContextSetter
from binlane.model import Flavor, SessionContext
from binlane.sessions.pins import PINS


class Session:
    """A target of a version, which has no newer variables."""

    def __init__(self, flavor: Flavor, version: tuple[int, int, int]) -> None:
        self.flavor, self.version = flavor, version
        self.connection_id = 7

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The session's and the global ``explicit_defaults_for_timestamp``; no variable that SHOW VARIABLES lists."""
        return [(1, 1)] if "explicit" in query else []


def set_on(flavor: Flavor, version: tuple[int, int, int]) -> set[str]:
    setter = ContextSetter(cast(LaneSession, Session(flavor, version)))
    return {each.partition(" = ")[0] for each in setter._assignments(SessionContext(thread_id=7))}


@pytest.mark.parametrize(
    ("flavor", "oldest"), [(Flavor.MARIADB, (10, 3, 0)), (Flavor.MYSQL, (8, 0, 26))], ids=["mariadb", "mysql"]
)
def test_the_oldest_target_has_every_variable_that_is_set(flavor: Flavor, oldest: tuple[int, int, int]) -> None:
    newer = {pin.name for pin in PINS if flavor in pin.flavors and pin.since > oldest}
    assert set_on(flavor, oldest) & newer == set()


@pytest.mark.parametrize(
    ("version", "is_set"), [((10, 5, 16), False), ((10, 5, 17), True), ((10, 6, 8), False), ((10, 11, 0), True)]
)
def test_a_variable_of_the_whole_server_is_not_set(version: tuple[int, int, int], is_set: bool) -> None:
    """1238: before, no session of MariaDB has a value of its own."""
    setter = ContextSetter(cast(LaneSession, Session(Flavor.MARIADB, version)))
    wanted = SessionContext(thread_id=7, explicit_defaults_for_timestamp=False)
    assert ("explicit_defaults_for_timestamp = 0" in setter._assignments(wanted)) == is_set


def test_sql_if_exists_is_set_where_it_is() -> None:
    assert "sql_if_exists" in set_on(Flavor.MARIADB, (10, 5, 2))
    assert "sql_if_exists" not in set_on(Flavor.MARIADB, (10, 5, 1))
