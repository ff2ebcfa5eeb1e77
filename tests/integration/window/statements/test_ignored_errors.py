"""Constraints and keys that statements meet without an error: they decide which rows a statement changes."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

TABLES = (
    "CREATE DATABASE app",
    "CREATE TABLE app.parent (id INT PRIMARY KEY)",
    "CREATE TABLE app.child (id INT PRIMARY KEY, p INT, n INT, "
    "CONSTRAINT k FOREIGN KEY (p) REFERENCES app.parent (id), CONSTRAINT c CHECK (n > 0))",
    "INSERT INTO app.parent VALUES (1), (2)",
    "INSERT INTO app.child VALUES (1, 1, 1)",
)
MEND = (
    "ALTER TABLE app.child ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES app.parent (id)",
    "ALTER TABLE app.child ADD CONSTRAINT c CHECK (n > 0)",
)


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_what_decides_which_rows_ignore_leaves_out_is_named_where_one_server_has_it_alone(
    channel_of: ChannelOf, family: str
) -> None:
    channel = channel_of(family, family)
    channel.on_both(*TABLES)
    for name in ("FOREIGN KEY k", "CONSTRAINT c"):
        run_on(channel.target, f"ALTER TABLE app.child DROP {name}", log=False)
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "INSERT IGNORE INTO app.child VALUES (2, 99, 1)",
        "INSERT IGNORE INTO app.child VALUES (3, 1, -1), (4, 1, 1)",
        "DELETE IGNORE FROM app.parent WHERE id = 1",
    )
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    said = str(refused.value)
    assert said.count("[ignored-errors]") == 3
    assert "foreign keys of app.child: expected (p) to app.parent (id)" in said
    assert "checks of app.child: expected " in said
    assert "foreign keys of app.parent: expected app.child (p) to app.parent (id)" in said
    run_on(channel.target, *MEND, log=False)
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT id FROM app.child UNION ALL SELECT id FROM app.parent") == [
        (1,),
        (4,),
        (1,),
        (2,),
    ]


WITH_IGNORE = "INSERT IGNORE INTO app.child VALUES (NEW.id, 1, NEW.n)"
WITH_HANDLER = (
    "BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; INSERT INTO app.child VALUES (NEW.id, 1, NEW.n); END"
)


@pytest.mark.parametrize(
    ("family", "body"),
    [
        # a CHECK is an error in MariaDB's triggers, with IGNORE, too
        ("mariadb", WITH_HANDLER),
        pytest.param("mysql", WITH_HANDLER, marks=requires_mysql),
        pytest.param("mysql", WITH_IGNORE, marks=requires_mysql),
    ],
)
def test_what_decides_which_rows_a_trigger_leaves_out_is_named_too(
    channel_of: ChannelOf, family: str, body: str
) -> None:
    channel = channel_of(family, family)
    fires = f"CREATE TRIGGER app.fires AFTER INSERT ON app.orders FOR EACH ROW {body}"
    channel.on_both(*TABLES, "CREATE TABLE app.orders (id INT PRIMARY KEY, n INT)", fires)
    run_on(channel.target, "ALTER TABLE app.child DROP CONSTRAINT c", log=False)
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", "INSERT INTO app.orders VALUES (2, -1)")
    with pytest.raises(PrecheckError, match=r"trigger app\.fires: checks of app\.child: expected .*ignored-errors"):
        channel.run()
    run_on(channel.target, MEND[1], log=False)
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT id FROM app.child") == [(1,)]


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_key_that_the_target_lacks_by_the_filter_is_named_with_the_ways_on(
    channel_of: ChannelOf, family: str
) -> None:
    channel = channel_of(family, family)
    channel.on_both(*TABLES)
    run_on(channel.target, "ALTER TABLE app.child DROP FOREIGN KEY k", "DROP TABLE app.parent", log=False)
    channel.write_channel('[filter]\nexclude_tables = ["app.parent"]\n')
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "INSERT IGNORE INTO app.child VALUES (2, 1, 1), (2, 2, 2)",
        "UPDATE IGNORE app.child SET n = 5 WHERE id = 2",
    )
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    said = str(refused.value)
    assert "foreign keys of app.child: expected (p) to app.parent (id)" in said
    assert "for this window set allow_unsafe in the channel's file" in said
    assert "give the target's table" not in said
    channel.write_channel('allow_unsafe = true\n[filter]\nexclude_tables = ["app.parent"]\n')
    assert channel.run() is not None
    rows = "SELECT * FROM app.child ORDER BY id"
    assert channel.target.query(rows) == channel.source.query(rows)


@requires_mysql
def test_a_unique_key_over_an_expression_that_the_target_lacks_is_named_where_statements_meet_it(
    channel_of: ChannelOf,
) -> None:
    channel = channel_of("mysql", "mysql")
    channel.on_both(
        "CREATE DATABASE app",
        "CREATE TABLE app.users (id INT PRIMARY KEY, email VARCHAR(50), n INT, UNIQUE KEY u ((lower(email))))",
    )
    run_on(channel.target, "ALTER TABLE app.users DROP KEY u", log=False)
    upsert = "INSERT INTO app.users (id, email, n) VALUES ({}, 1) ON DUPLICATE KEY UPDATE n = n + 1"
    run_on(
        channel.source, "SET SESSION binlog_format = STATEMENT", upsert.format("1, 'A@x'"), upsert.format("2, 'a@x'")
    )
    with pytest.raises(
        PrecheckError, match=r"app\.users: unique keys: .*statements that meet a key would change other"
    ):
        channel.run()
    run_on(channel.target, "ALTER TABLE app.users ADD UNIQUE KEY u ((lower(email)))", log=False)
    assert channel.run() is not None
    channel.assert_equal()
