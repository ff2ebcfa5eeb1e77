"""Foreign keys to keys that are not unique: MySQL 8.4 and later refuse them unless the session takes them."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
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


FOLLOWED = (
    "CREATE DATABASE tenant_1",
    "CREATE DATABASE tenant_2",
    "CREATE TABLE tenant_1.parent (id INT PRIMARY KEY)",
    "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT, CONSTRAINT of_parent"
    " FOREIGN KEY (p) REFERENCES tenant_1.parent (id) ON DELETE CASCADE)",
    "CREATE TABLE tenant_2.grandchild (id INT PRIMARY KEY, c INT, CONSTRAINT of_child"
    " FOREIGN KEY (c) REFERENCES tenant_1.child (id) ON DELETE CASCADE)",
    "INSERT INTO tenant_1.parent VALUES (1), (2)",
    "INSERT INTO tenant_1.child VALUES (1, 1)",
    "INSERT INTO tenant_2.grandchild VALUES (1, 1)",
)
DROPPED = {
    "of the child": "ALTER TABLE tenant_1.child DROP FOREIGN KEY of_parent",
    "of a child of the child, in another database": "ALTER TABLE tenant_2.grandchild DROP FOREIGN KEY of_child",
}


@pytest.mark.parametrize("dropped", DROPPED.values(), ids=DROPPED)
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("binlog_format", ["ROW", "STATEMENT"])
def test_a_key_that_one_server_lacks_is_named_where_rows_of_the_parent_alone_are_deleted(
    channel_of: ChannelOf, dropped: str, side: str, binlog_format: str
) -> None:
    channel = channel_of("mariadb", "mariadb")
    channel.on_both(*FOLLOWED)
    run_on(getattr(channel, side), dropped, log=False)
    run_on(channel.source, "INSERT INTO tenant_1.parent VALUES (3)")
    assert channel.run() is not None
    run_on(channel.source, f"SET binlog_format = {binlog_format}", "DELETE FROM tenant_1.parent WHERE id = 1")
    with pytest.raises(PrecheckError, match=r"(?:tenant_1\.child|tenant_2\.grandchild): foreign key"):
        channel.run()
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.parent") == [(3,)]


@requires_mysql
def test_rows_that_mysql_has_logged_follow_no_key_of_the_target(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    channel.on_both(*FOLLOWED[:4])
    run_on(channel.target, DROPPED["of the child"], log=False)
    run_on(channel.source, "INSERT INTO tenant_1.parent VALUES (1)", "DELETE FROM tenant_1.parent WHERE id = 1")
    assert channel.run() is not None
