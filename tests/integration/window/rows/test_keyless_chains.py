"""Rows of a table without a key of which a later change of the same event meets what an earlier one has left."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

pytestmark = requires_mysql
_TABLES = range(12)


def _chains(seed: int) -> Iterator[str]:
    """Tables, each with a trigger whose updates are one event of the log."""
    chance = random.Random(seed)
    values = ("s", "NULL", "CONCAT(s, 1)", "'q'")
    for number in _TABLES:
        key = chance.choice(("", ", KEY (n)", ", KEY (s)", ", UNIQUE (u)"))
        yield f"CREATE TABLE tenant_1.t{number} (n INT, s VARCHAR(20), u INT{key})"
        yield f"CREATE TABLE tenant_1.g{number} (id INT PRIMARY KEY)"
        updates = "".join(
            f"UPDATE tenant_1.t{number} SET n = {chance.randint(1, 6)}, s = {chance.choice(values)} "
            f"WHERE n = {chance.randint(1, 6)} LIMIT {chance.randint(1, 3)}; "
            for _ in range(chance.randint(4, 12))
        )
        yield (
            f"CREATE TRIGGER tenant_1.each_{number} AFTER INSERT ON tenant_1.g{number} FOR EACH ROW BEGIN {updates} END"
        )
        rows = (f"({chance.randint(1, 6)}, '{chance.choice('ab')}')" for _ in range(chance.randint(2, 12)))
        yield f"INSERT INTO tenant_1.t{number} (n, s) VALUES {', '.join(rows)}"


@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("source", ["mysql", "mariadb"])
def test_a_chain_of_changes_in_one_event_ends_as_on_the_source(channel_of: ChannelOf, source: str, image: str) -> None:
    channel = channel_of(source, "mysql")
    channel.on_both("CREATE DATABASE tenant_1 COLLATE utf8mb4_general_ci", *_chains(5))
    inserts = (f"INSERT INTO tenant_1.g{number} VALUES ({row})" for row in (1, 2) for number in _TABLES)
    run_on(channel.source, f"SET SESSION binlog_row_image = '{image}'", *inserts)
    assert channel.run() is not None
    for number in _TABLES:
        query = f"SELECT n, s, u FROM tenant_1.t{number} ORDER BY 1, 2, 3"
        assert channel.target.query(query) == channel.source.query(query)
