"""Foreign keys to keys that are not unique: MySQL 8.4 and later refuse them unless the session takes them."""

from __future__ import annotations

import pytest

from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

MADE = (
    "SET SESSION restrict_fk_on_non_standard_key = OFF",
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.parent (id INT, more INT, KEY (id), PRIMARY KEY (more, id))",
    "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES tenant_1.parent (id))",
)
CHANGED = (
    "SET SESSION restrict_fk_on_non_standard_key = OFF",
    "ALTER TABLE tenant_1.parent ADD COLUMN name VARCHAR(9), ALGORITHM = COPY",
    "RENAME TABLE tenant_1.parent TO tenant_1.elder",
    "INSERT INTO tenant_1.elder VALUES (1, 1, 'one')",
    "INSERT INTO tenant_1.child VALUES (1, 1)",
)


@pytest.fixture
def channel(channel_of: ChannelOf) -> Channel:
    """Between two MySQL servers, which refuse such keys by default."""
    return channel_of("mysql", "mysql")


@requires_mysql
def test_a_window_makes_and_changes_tables_with_a_foreign_key_to_a_key_that_is_not_unique(channel: Channel) -> None:
    run_on(channel.source, *MADE, *CHANGED)
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
def test_a_first_copy_makes_them_as_well(channel: Channel) -> None:
    run_on(channel.source, *MADE)
    run_on(channel.target, "DROP DATABASE binlane")
    assert channel.cli("bootstrap", CHANNEL, "--lock-seconds", "60") == 0
    run_on(channel.source, *CHANGED)
    assert channel.run() is not None
    channel.assert_equal()
