"""Tables that statements write without naming them: another definition of the target stops the window."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

TABLES = (
    "CREATE DATABASE tenant_1",
    "CREATE DATABASE books",
    "CREATE TABLE tenant_1.orders (id INT PRIMARY KEY, total INT)",
    "CREATE TABLE books.audit (id INT PRIMARY KEY, note VARCHAR(50), total INT)",
    "CREATE TABLE tenant_1.noted (id INT PRIMARY KEY, note VARCHAR(50))",
    "CREATE TRIGGER tenant_1.keeping AFTER INSERT ON tenant_1.orders FOR EACH ROW"
    " INSERT INTO books.audit VALUES (NEW.id, 'inserted', NEW.total)",
    "CREATE VIEW tenant_1.shown AS SELECT id, note FROM tenant_1.noted",
)
STATEMENTS = {
    "a trigger, in another database": "INSERT INTO orders VALUES (1, 2)",
    "a view": "INSERT INTO shown VALUES (1, 'new')",
}
OTHERWISE = {
    "a trigger, in another database": "ALTER TABLE books.audit MODIFY note VARCHAR(5)",
    "a view": "ALTER TABLE tenant_1.noted ADD COLUMN more INT DEFAULT 1",
}
MENDED = {
    "a trigger, in another database": "ALTER TABLE books.audit MODIFY note VARCHAR(50)",
    "a view": "ALTER TABLE tenant_1.noted DROP COLUMN more",
}


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.parametrize("behind", STATEMENTS)
def test_another_definition_of_a_table_behind_a_statement_is_named_before_the_first_write(
    channel_of: ChannelOf, family: str, behind: str
) -> None:
    channel = channel_of(family, family)
    channel.on_both(*TABLES)
    run_on(channel.target, OTHERWISE[behind], log=False)
    run_on(channel.source, "USE tenant_1", "SET binlog_format = STATEMENT", STATEMENTS[behind])
    with pytest.raises(PrecheckError, match=r"expected a table behind it that both servers have alike.*tables-behind"):
        channel.run()
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.orders") == [(0,)]
    run_on(channel.target, MENDED[behind], log=False)
    assert channel.run() is not None
    for table in ("tenant_1.orders", "tenant_1.noted", "books.audit"):
        rows = f"SELECT * FROM {table}"
        assert channel.target.query(rows) == channel.source.query(rows)


def test_a_table_of_another_definition_behind_rows_is_none_of_a_statement_s(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mariadb")
    channel.on_both(*TABLES)
    run_on(channel.target, OTHERWISE["a view"], log=False)
    run_on(
        channel.source, "USE tenant_1", "SET binlog_format = STATEMENT", "INSERT INTO orders SELECT id, 1 FROM shown"
    )
    assert channel.run() is not None


NOTES = (
    "CREATE TABLE app.notes (id INT PRIMARY KEY) ENGINE=MyISAM",
    "CREATE TRIGGER app.third AFTER DELETE ON app.orders FOR EACH ROW INSERT INTO app.notes VALUES (OLD.id)",
)


@pytest.mark.parametrize(
    ("family", "engine", "more"),
    # MySQL takes no table without transactions there itself (gtid_mode)
    [("mariadb", "MyISAM", NOTES), pytest.param("mysql", "InnoDB", (), marks=requires_mysql)],
    ids=["mariadb", "mysql"],
)
def test_a_table_that_a_trigger_only_reads_may_be_any_and_one_that_it_fills_has_transactions(
    channel_of: ChannelOf, family: str, engine: str, more: tuple[str, ...]
) -> None:
    channel = channel_of(family, family)
    channel.on_both(
        "CREATE DATABASE app",
        "CREATE TABLE app.orders (id INT PRIMARY KEY)",
        "CREATE TABLE app.audit (id INT PRIMARY KEY, note VARCHAR(9))",
        f"CREATE TABLE app.words (id INT PRIMARY KEY, note VARCHAR(9)) ENGINE={engine}",
        "INSERT INTO app.audit VALUES (1, NULL), (2, NULL)",
        "INSERT INTO app.words VALUES (1, 'one'), (2, 'two')",
        "CREATE TRIGGER app.first AFTER INSERT ON app.orders FOR EACH ROW UPDATE app.audit AS a "
        "JOIN app.words AS w ON w.id = a.id SET a.note = w.note WHERE a.id = NEW.id",
        *more,
    )
    run_on(channel.target, "ALTER TABLE app.words MODIFY note VARCHAR(20)", log=False)
    run_on(channel.source, "SET binlog_format = STATEMENT", "INSERT INTO app.orders VALUES (1), (2)")
    assert channel.run() is not None
    assert channel.target.query("SELECT note FROM app.audit ORDER BY id") == [("one",), ("two",)]
    if more:
        run_on(channel.source, "SET binlog_format = STATEMENT", "DELETE FROM app.orders WHERE id = 1")
        with pytest.raises(PrecheckError, match=r"app\.notes .*its rows stay where the block is rolled back"):
            channel.run()
