"""What the tests of verification share: the pairs of servers, and three tables that the source goes on changing."""

from __future__ import annotations

import pytest

from binlane.verify.outcome import Outcome
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, run_on

FAMILIES = [
    pytest.param(("mariadb", "mariadb"), id="mariadb-mariadb"),
    pytest.param(("mysql", "mysql"), id="mysql-mysql", marks=requires_mysql),
    pytest.param(("mariadb", "mysql"), id="mariadb-mysql", marks=requires_mysql),
    pytest.param(("mysql", "mariadb"), id="mysql-mariadb", marks=requires_mysql),
]
ONE_OF_EACH = FAMILIES[:2]


def found(outcome: Outcome) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(one.state, one.table.table, one.key) for one in outcome.suspects}


def tables(channel: Channel, rows: int = 30) -> None:
    """Three tables of which the source goes on changing rows."""
    names = ("a", "b", "c")
    for server in (channel.source, channel.target):
        run_on(server, "CREATE DATABASE app", log=False)
        for name in names:
            run_on(server, f"CREATE TABLE app.{name} (id INT PRIMARY KEY, n INT, note VARCHAR(20))", log=False)
    for name in names:
        values = ", ".join(f"({n}, 0, 'note {n}')" for n in range(1, rows + 1))
        run_on(channel.source, f"INSERT INTO app.{name} VALUES {values}")
    assert channel.run() is not None
