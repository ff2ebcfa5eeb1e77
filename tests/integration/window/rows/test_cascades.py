"""Foreign keys of MySQL 9.6 and newer, whose source logs the rows that they change: the target's must not change them
again. Two of the statements leave other rows behind where that happens, without an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.errors import ApplyError, PrecheckError
from binlane.orchestration.commands.verify import verify_channel
from binlane.verify.outcome import Options
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, fresh_channel, run_on

TABLES = (
    "CREATE DATABASE tenant_1 COLLATE utf8mb4_general_ci",
    "CREATE TABLE tenant_1.parent (id INT PRIMARY KEY, n INT UNIQUE)",
    "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES tenant_1.parent (id)"
    " ON UPDATE CASCADE ON DELETE CASCADE)",
    "CREATE TABLE tenant_1.numbered (id INT PRIMARY KEY, p INT UNIQUE, FOREIGN KEY (p) REFERENCES tenant_1.parent (n)"
    " ON UPDATE CASCADE ON DELETE SET NULL)",
    "CREATE TABLE tenant_1.grandchild (p INT, FOREIGN KEY (p) REFERENCES tenant_1.numbered (p) ON UPDATE CASCADE)",
    "CREATE TABLE tenant_1.tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tenant_1.tree (id)"
    " ON DELETE CASCADE)",
    "CREATE TABLE tenant_1.free (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE tenant_1.later (id INT PRIMARY KEY, n INT)",
    "INSERT INTO tenant_1.parent VALUES (1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60)",
    "INSERT INTO tenant_1.child VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (6, 6)",
    "INSERT INTO tenant_1.numbered VALUES (1, 10), (2, 20), (3, 30), (4, 40), (5, NULL), (6, 60)",
    "INSERT INTO tenant_1.grandchild VALUES (40), (40), (60), (NULL)",
    "INSERT INTO tenant_1.tree VALUES (1, NULL), (2, 1), (3, 2), (4, 1), (5, NULL), (6, 5)",
)
KEPT_BY_REPLACE = "REPLACE INTO tenant_1.parent VALUES (2, 21), (4, 50), (5, 60), (6, 70)"
"""The source deletes rows and inserts them again as they were, and leaves their children alone."""
CHANGES = (
    "UPDATE tenant_1.parent SET n = n + 10 WHERE n > 20 ORDER BY n DESC",
    "UPDATE tenant_1.parent SET n = 21 WHERE id = 2",
    KEPT_BY_REPLACE,
    "BEGIN",
    "DELETE FROM tenant_1.parent WHERE id IN (1, 3)",
    "INSERT INTO tenant_1.parent VALUES (3, 40), (1, 10)",
    "INSERT INTO tenant_1.child VALUES (31, 3), (11, 1)",
    "COMMIT",
    # one statement with rows that are inserted and rows that are updated
    "INSERT INTO tenant_1.parent VALUES (7, 80), (4, 50), (8, 90), (6, 70), (9, 100)"
    " ON DUPLICATE KEY UPDATE id = parent.id + 10, n = parent.n + 1000",
    "INSERT INTO tenant_1.parent VALUES (4, 51)",
    "INSERT INTO tenant_1.child VALUES (41, 4), (91, 9)",
    "DELETE FROM tenant_1.tree WHERE id = 1",
    "INSERT INTO tenant_1.free VALUES (1, 1), (2, 2), (3, 3)",
    "UPDATE tenant_1.free SET n = n + 1",
    "DELETE FROM tenant_1.free WHERE id = 2",
    # a table that gets its child in this window
    "INSERT INTO tenant_1.later VALUES (1, 1), (2, 2)",
    "CREATE TABLE tenant_1.its_child (p INT, FOREIGN KEY (p) REFERENCES tenant_1.later (id) ON DELETE CASCADE)",
    "INSERT INTO tenant_1.its_child VALUES (1), (2), (2)",
    "REPLACE INTO tenant_1.later VALUES (1, 1), (2, 2)",
)


def changed(channel: Channel, target: str) -> dict[str, set[tuple[object, ...]]]:
    """What a window with the changes leaves on the target, which is what the source has."""
    run_on(channel.source, *CHANGES)
    assert channel.run() is not None
    if target == "mysql":
        channel.assert_equal()
    found = channel.rows_of(channel.target)
    assert found == channel.rows_of(channel.source)
    return found


@requires_mysql
def test_rows_that_logged_cascades_change_are_compared_by_their_keys(channel_of: ChannelOf) -> None:
    """As the log of MySQL 9.6 and newer shows them, a verification reads no other row, and no row is pending."""
    channel = channel_of("mysql", "mysql")
    made = (
        "CREATE DATABASE tenant_1",
        "CREATE TABLE tenant_1.parent (id INT PRIMARY KEY)",
        "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT, "
        "FOREIGN KEY (p) REFERENCES tenant_1.parent (id) ON UPDATE CASCADE ON DELETE CASCADE)",
        "INSERT INTO tenant_1.parent VALUES (1), (2), (3), (4)",
        "INSERT INTO tenant_1.child VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (6, 4), (7, 4), (8, 4)",
    )
    run_on(channel.source, *made)
    assert channel.run() is not None
    assert verify_channel(channel.config, channel.endpoints, Options()).state == "clean"
    run_on(channel.source, "UPDATE tenant_1.parent SET id = 11 WHERE id = 1")
    assert channel.run() is not None
    outcome = verify_channel(channel.config, channel.endpoints, Options())
    assert (outcome.state, outcome.counts.rows) == ("clean", 3)

    run_on(channel.target, "DELETE FROM tenant_1.child WHERE id = 8", log=False)
    run_on(channel.source, "UPDATE tenant_1.parent SET id = 12 WHERE id = 2")
    outcome = verify_channel(channel.config, channel.endpoints, Options(full=True))
    assert [(one.table.table, one.key, one.state) for one in outcome.suspects] == [("child", ("8",), "drift")]


@requires_mysql
@pytest.mark.parametrize("reduce", ["off", "block", "window"])
@pytest.mark.parametrize("writer", ["binlog", "sql"])
@pytest.mark.parametrize("target", ["mysql", "mariadb"])
def test_logged_cascades_happen_once(channel_of: ChannelOf, target: str, writer: str, reduce: str) -> None:
    channel = channel_of("mysql", target)
    channel.write_channel(f'writer = "{writer}"\n', f'reduce = "{reduce}"\n')
    run_on(channel.source, *TABLES)
    assert channel.run() is not None
    found = changed(channel, target)
    assert {(2, 2), (6, 16)} <= found["tenant_1.child"]
    assert found["tenant_1.tree"] == {(5, None), (6, 5)}


@requires_mysql
@pytest.mark.parametrize(("writer", "divide"), [("binlog", "table"), ("binlog", "key"), ("sql", "key")])
@pytest.mark.parametrize("target", ["mysql", "mariadb"])
def test_logged_cascades_happen_once_in_a_divided_shard(
    channel_of: ChannelOf, target: str, writer: str, divide: str
) -> None:
    channel = channel_of("mysql", target)
    channel.write_channel(f'writer = "{writer}"\n')
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace("count = 3\n", f'count = 3\nallow_torn = true\ndivide = "{divide}"\n'))
    channel.write_shard_list("(divided)=tenant_1\n")
    run_on(channel.source, *TABLES)
    assert channel.run() is not None
    changed(channel, target)


@requires_mysql
@pytest.mark.parametrize("writer", ["binlog", "sql"])
@pytest.mark.parametrize("target", ["mysql", "mariadb"])
def test_rows_that_are_inserted_beside_updates_stay_checked(channel_of: ChannelOf, target: str, writer: str) -> None:
    channel = channel_of("mysql", target)
    channel.write_channel(f'writer = "{writer}"\n', 'reduce = "off"\n')
    run_on(channel.source, *TABLES)
    assert channel.run() is not None
    run_on(channel.target, "SET foreign_key_checks = 0", "DELETE FROM tenant_1.parent WHERE id = 5", log=False)
    channel.source.query("INSERT INTO tenant_1.child VALUES (1, 1), (50, 5) ON DUPLICATE KEY UPDATE p = 2")
    with pytest.raises(ApplyError, match="1452"):
        channel.run()


@requires_mysql
@pytest.mark.parametrize("usual", ["OFF", "ON"])
def test_triggers_fire_on_cascades_of_statements_where_they_have_on_the_source(
    channel_of: ChannelOf, usual: str
) -> None:
    """``usual``: the target's own enable_cascade_triggers, which decides nothing."""
    channel = channel_of("mysql", "mysql")
    if not channel.source.query("SHOW VARIABLES LIKE 'enable_cascade_triggers'"):
        pytest.skip("MySQL 9.7 and newer have cascades that fire triggers")
    logged = "INSERT INTO tenant_1.seen (what) VALUES (CONCAT(OLD.p, {}))"
    run_on(
        channel.source,
        *TABLES[:3],
        "CREATE TABLE tenant_1.seen (what VARCHAR(20), KEY (what))",
        f"CREATE TRIGGER tenant_1.gone AFTER DELETE ON tenant_1.child FOR EACH ROW {logged.format(repr(' gone'))}",
        f"CREATE TRIGGER tenant_1.moved AFTER UPDATE ON tenant_1.child FOR EACH ROW {logged.format('NEW.p')}",
        "INSERT INTO tenant_1.parent VALUES (1, 10), (2, 20), (3, 30), (4, 40)",
        "INSERT INTO tenant_1.child VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    )
    channel.target.query(f"SET GLOBAL enable_cascade_triggers = {usual}")
    try:
        run_on(
            channel.source,
            "SET SESSION binlog_format = STATEMENT",
            "SET SESSION enable_cascade_triggers = ON",
            "UPDATE tenant_1.parent SET id = 21 WHERE id = 2",
            "DELETE FROM tenant_1.parent WHERE id = 1",
            "SET SESSION enable_cascade_triggers = OFF",
            "UPDATE tenant_1.parent SET id = 31 WHERE id = 3",
            "DELETE FROM tenant_1.parent WHERE id = 4",
        )
        run_on(channel.source, "DELETE FROM tenant_1.parent WHERE id = 21")
        assert channel.run() is not None
    finally:
        channel.target.query("SET GLOBAL enable_cascade_triggers = DEFAULT")
    channel.assert_equal()
    assert channel.target.query("SELECT what FROM tenant_1.seen ORDER BY what") == [("1 gone",), ("221",)]


@requires_mysql
def test_triggers_on_cascades_are_named_where_the_target_has_none(
    mysql_source: PrivateServer,
    mariadb_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    channel = fresh_channel(mysql_source, mariadb_target, tmp_path, clean_servers)
    run_on(channel.source, *TABLES[:2])
    assert channel.run() is not None
    changes = ("SET SESSION enable_cascade_triggers = ON", "INSERT INTO tenant_1.parent VALUES (1, 10)")
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", *changes)
    with pytest.raises(
        PrecheckError, match=r"session: enable_cascade_triggers, in the statement of seqno \d+: expected"
    ):
        channel.run()
