"""MySQL takes JSON documents for equal that are not the same, as 1 and 1.0: an UPDATE from one to the other is none."""

from __future__ import annotations

import json
import re

import pytest

from binlane.binlog.types.literals import identifier
from binlane.errors import PrecheckError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

pytestmark = requires_mysql
BEFORE = ('{"a": 1.0}', "[0.0]", "1.50", '{"b": [2, {"c": 3.0}]}', "null", None, '{"a": "1"}')
BEHIND = ('{"a": 1}', "[-0.0]", "1.5", '{"b": [2, {"c": 3}]}', "0", "1", '{"a": "1"}')
MANY = 60
"""Rows of which the writer changes several by one statement."""


def documents(channel: Channel, texts: tuple[str | None, ...]) -> list[str]:
    table = (
        "CREATE TABLE app.t (id INT PRIMARY KEY, j JSON, k JSON, "
        "at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6))"
    )
    rows = (
        f"({number}, {'NULL' if text is None else repr(text)}, '[1]', '2024-01-01')"
        for number, text in enumerate(texts * (MANY // len(texts)))
    )
    return ["CREATE DATABASE app", table, f"INSERT INTO app.t VALUES {', '.join(rows)}"]


def stored(channel: Channel) -> list[list[tuple[object, ...]]]:
    query = "SELECT id, CAST(j AS CHAR), CAST(k AS CHAR), at FROM app.t ORDER BY id"
    return [server.query(query) for server in (channel.source, channel.target)]


@pytest.mark.parametrize("rows", ["id < 7", "TRUE"])
def test_a_net_change_to_an_equal_document_is_written(channel_of: ChannelOf, rows: str) -> None:
    channel = channel_of("mysql", "mysql")
    channel.write_channel('writer = "sql"\n', blocks='reduce = "window"\n')
    channel.on_both(*documents(channel, BEFORE))
    cases = " ".join(
        f"WHEN {number} THEN {'NULL' if text is None else f'CAST({text!r} AS JSON)'}"
        for number, text in enumerate(BEHIND)
    )
    run_on(
        channel.source,
        f"UPDATE app.t SET j = '\"between\"', at = '2024-02-02' WHERE {rows}",
        f"UPDATE app.t SET j = CASE id % {len(BEHIND)} {cases} END, at = '2024-01-01' WHERE {rows}",
    )
    assert channel.run() is not None
    ours, theirs = stored(channel)
    assert ours == theirs
    assert {row[1] for row in ours} >= {text for text in BEHIND if text is not None}


def test_a_repair_writes_a_document_that_equals_the_target_s(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(channel.source, *documents(channel, BEHIND), log=False)
    run_on(channel.target, *documents(channel, BEFORE), log=False)
    assert channel.cli("verify", CHANNEL, "--full") == 1
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    ours, theirs = stored(channel)
    assert ours == theirs
    assert channel.cli("verify", CHANNEL, "--full") == 0


RULES = (
    "CREATE DATABASE app",
    "CREATE TABLE app.t (id INT PRIMARY KEY, j JSON, n JSON, CHECK (JSON_TYPE(j) = 'OBJECT'), "
    "k INT AS (j->>'$.a') STORED UNIQUE, KEY (id, (CAST(n->'$' AS UNSIGNED ARRAY))))",
    "INSERT INTO app.t (id, j, n) VALUES (1, '{\"a\": %s}', '[%s]')",
)
"""A value between two documents meets them."""


@pytest.mark.parametrize("is_repaired", [False, True])
def test_rules_of_a_column_refuse_no_document_that_equals_another(channel_of: ChannelOf, is_repaired: bool) -> None:
    channel = channel_of("mysql", "mysql")
    channel.write_channel('writer = "sql"\n', blocks='reduce = "window"\n')
    for server, number in ((channel.source, "1.0"), (channel.target, "1.00")):
        *tables, row = RULES
        run_on(server, *tables, row % (number, number), log=False)
    if is_repaired:
        run_on(channel.source, """UPDATE app.t SET j = '{"a": 2}', n = '[2]'""", log=False)
        run_on(channel.source, """UPDATE app.t SET j = '{"a": 1}', n = '[1]'""", log=False)
        assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    else:
        run_on(channel.source, """UPDATE app.t SET j = '{"a": 2}', n = '[2]'""")
        run_on(channel.source, """UPDATE app.t SET j = '{"a": 1}', n = '[1]'""")
        assert channel.run() is not None
    ours, theirs = (
        server.query("SELECT CAST(j AS CHAR), CAST(n AS CHAR) FROM app.t")
        for server in (channel.source, channel.target)
    )
    assert ours == theirs == [('{"a": 1}', "[1]")]


CHECKED = {
    "IS NOT NULL": "j JSON, CHECK (j IS NOT NULL)",
    "a type": "j JSON NOT NULL, CHECK (JSON_TYPE(j) IN ('OBJECT', 'ARRAY', 'INTEGER', 'DOUBLE', 'DECIMAL'))",
    "a type or nothing": "j JSON, CHECK (j IS NOT NULL AND JSON_TYPE(j) <> 'STRING')",
}


@pytest.mark.parametrize("column", CHECKED.values(), ids=CHECKED)
@pytest.mark.parametrize("copies", [1, 20])
def test_a_check_of_the_column_lets_a_document_that_equals_another_pass(
    channel_of: ChannelOf, column: str, copies: int
) -> None:
    """Neither NULL nor a text may be between the two."""
    channel = channel_of("mysql", "mysql")
    channel.write_channel('writer = "sql"\n', blocks='reduce = "window"\n')
    texts = [('{"-": 1.0}', '{"-": 1}'), ("[0.0]", "[-0.0]"), ("1.50", "1.5"), ("0.0", "0")] * copies
    rows = ", ".join(f"({number}, '{before}')" for number, (before, _) in enumerate(texts))
    channel.on_both(
        "CREATE DATABASE app", f"CREATE TABLE app.t (id INT PRIMARY KEY, {column})", f"INSERT INTO app.t VALUES {rows}"
    )
    run_on(channel.source, "UPDATE app.t SET j = '[\"between\"]'")
    run_on(channel.source, *(f"UPDATE app.t SET j = '{text}' WHERE id = {at}" for at, (_, text) in enumerate(texts)))
    assert channel.run() is not None
    query = "SELECT id, CAST(j AS CHAR) FROM app.t ORDER BY id"
    assert channel.target.query(query) == channel.source.query(query)


def test_a_document_that_no_repair_can_reach_is_inserted_by_the_next(
    channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of("mysql", "mysql")
    for server, number in ((channel.source, "1"), (channel.target, "1.0")):
        table = "CREATE TABLE app.t (id INT PRIMARY KEY, j JSON NOT NULL, CHECK (j = 1))"
        child = "CREATE TABLE app.c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES app.t (id) ON DELETE CASCADE)"
        rows = f"INSERT INTO app.t VALUES (1, '{number}')", "INSERT INTO app.c VALUES (1)"
        run_on(server, "CREATE DATABASE app", table, child, *rows, log=False)
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1
    delete = re.search(
        r"Run `(SET foreign_key_checks = 0); (DELETE FROM .*?)` on the target, ", capsys.readouterr().err
    )
    assert delete is not None
    run_on(channel.target, *delete.groups(), log=False)
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    assert channel.target.query("SELECT CAST(j AS CHAR) FROM app.t") == [("1",)]
    assert channel.cli("verify", CHANNEL, "--full") == 0


def test_a_document_that_mariadb_has_as_another_text_is_written(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mysql")
    table = "CREATE TABLE app.t (id INT PRIMARY KEY, j JSON)"
    channel.on_both("CREATE DATABASE app", table, "INSERT INTO app.t VALUES (1, '1.0'), (2, '[0]')")
    run_on(channel.source, "UPDATE app.t SET j = '1' WHERE id = 1", "UPDATE app.t SET j = '[0.0]' WHERE id = 2")
    assert channel.run() is not None
    assert channel.target.query("SELECT id, CAST(j AS CHAR) FROM app.t ORDER BY id") == [(1, "1"), (2, "[0.0]")]


TABLE = "CREATE TABLE app.t (id INT PRIMARY KEY, n INT, j JSON)"
WRITTEN = (TABLE, """INSERT INTO app.t VALUES (1, 1, '1.0'), (2, 2, '[0]'), (3, 3, '{"a": 1}')""")
SET_BY = {
    "an UPDATE": ((), ("UPDATE app.t SET j = '1' WHERE id = 1",), "app.t.j"),
    "a join": ((), ("UPDATE app.t x JOIN app.t y USING (id) SET x.j = '1' WHERE x.id = 1",), "app.t.j"),
    "another column": ((), ("UPDATE app.t SET j = n WHERE id = 1",), "app.t.j"),
    "text with an escape": ((), (r"""UPDATE app.t SET j = '[0.0, \"a\"]' WHERE id = 2""",), "app.t.j"),
    "ON DUPLICATE KEY UPDATE": (
        (),
        ("INSERT INTO app.t VALUES (1, 1, '1') ON DUPLICATE KEY UPDATE j = VALUES(j)",),
        "app.t.j",
    ),
    "a view": (
        ("CREATE VIEW app.v (a, b) AS SELECT id, j FROM app.t",),
        ("UPDATE app.v SET b = '1' WHERE a = 1",),
        "app.t.j",
    ),
    "a trigger": (
        ("CREATE TRIGGER app.tr BEFORE UPDATE ON app.t FOR EACH ROW SET NEW.j = '1'",),
        ("UPDATE app.t SET n = n WHERE id = 1",),
        "app.t.j by trigger app.tr",
    ),
    "a function": (
        (
            "CREATE TABLE app.z (a INT PRIMARY KEY)",
            "CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC BEGIN UPDATE app.t SET j = '1'; RETURN 9; END",
        ),
        ("INSERT INTO app.z VALUES (app.f())",),
        "app.t.j by function app.f",
    ),
    "a new column": (
        ("CREATE TABLE app.m (id INT PRIMARY KEY)",),
        ("ALTER TABLE app.m ADD j JSON", "INSERT INTO app.m VALUES (1, '1.0')", "UPDATE app.m SET j = '1'"),
        "app.m.j",
    ),
    "a table like it, renamed": (
        (),
        ("CREATE TABLE app.m LIKE app.t", "RENAME TABLE app.m TO app.q", "UPDATE app.q SET j = '1'"),
        "app.q.j",
    ),
}


@pytest.mark.parametrize(("there", "logged", "named"), SET_BY.values(), ids=SET_BY)
def test_a_logged_update_to_a_document_with_numbers_is_named(
    channel_of: ChannelOf, there: tuple[str, ...], logged: tuple[str, ...], named: str
) -> None:
    """MySQL would keep the document that is there."""
    channel = channel_of("mariadb", "mysql")
    channel.on_both("CREATE DATABASE app", *WRITTEN, *there)
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", *logged)
    with pytest.raises(
        PrecheckError, match="expected a document without numbers, found an UPDATE that sets"
    ) as refused:
        channel.run()
    assert f"an UPDATE that sets {named}; " in str(refused.value)
    assert f"(`binlane verify {CHANNEL} --full`) [equal-documents]" in str(refused.value)


READ_BY_TABLE = {
    "a trigger that reads it": (TABLE, "CREATE TRIGGER app.tr AFTER UPDATE ON app.t FOR EACH ROW SET @seen = OLD.j"),
    "ON UPDATE CURRENT_TIMESTAMP": (
        "CREATE TABLE app.t (id INT PRIMARY KEY, n INT, j JSON, at TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP)",
    ),
    "a CHECK": ("CREATE TABLE app.t (id INT PRIMARY KEY, n INT, j JSON, CHECK (JSON_LENGTH(j) < 9))",),
    "MyISAM": (f"{TABLE} ENGINE = MyISAM",),
}
"""Why MySQL reads a column that an UPDATE sets: definitions."""


@pytest.mark.parametrize("case", READ_BY_TABLE)
def test_what_a_table_lets_mysql_read_counts_as_read(channel_of: ChannelOf, case: str) -> None:
    channel = channel_of("mysql", "mariadb")
    channel.on_both("CREATE DATABASE app", *READ_BY_TABLE[case], "INSERT INTO app.t (id, n, j) VALUES (1, 1, '1.0')")
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", "UPDATE app.t SET j = '1' WHERE id = 1")
    assert channel.source.query("SELECT j FROM app.t WHERE id = 1") == [("1.0",)]
    with pytest.raises(PrecheckError, match=r"an UPDATE that sets app\.t\.j; "):
        channel.run()


@pytest.mark.parametrize("name", ["it's", "a`b", "jä€", 'a\\"'])
def test_a_check_names_a_column_whatever_its_letters_are(channel_of: ChannelOf, name: str) -> None:
    channel = channel_of("mysql", "mariadb")
    column = identifier(name)
    table = f"CREATE TABLE app.t (id INT PRIMARY KEY, {column} JSON, CHECK (JSON_LENGTH({column}) < 9))"
    channel.on_both("CREATE DATABASE app", table, "INSERT INTO app.t VALUES (1, '1.0')")
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", f"UPDATE app.t SET {column} = '1' WHERE id = 1")
    assert channel.source.query(f"SELECT {column} FROM app.t") == [("1.0",)]
    with pytest.raises(PrecheckError, match=re.escape(f"an UPDATE that sets app.t.{name}; ")):
        channel.run()


def test_a_logged_update_between_two_mysql_servers_leaves_the_source_s_document(channel_of: ChannelOf) -> None:
    """The target's log has whole rows: for them it would read every column, and keep documents that are equal."""
    channel = channel_of("mysql", "mysql")
    definitions = (TABLE, *(table for name, (table, *_) in READ_BY_TABLE.items() if name != "MyISAM"))
    tables = {f"t{number}": table for number, table in enumerate(definitions)}
    channel.on_both(
        "CREATE DATABASE app",
        *(table.replace("app.t", f"app.{name}") for name, table in tables.items()),
        *(f"INSERT INTO app.{name} (id, n, j) VALUES (1, 1, '1.0'), (2, 2, '[0]')" for name in tables),
        "CREATE TRIGGER app.tr BEFORE UPDATE ON app.t1 FOR EACH ROW SET @seen = NEW.j",
        "CREATE VIEW app.v AS SELECT id AS a, j AS b FROM app.t0",
    )
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        *(f"UPDATE app.{name} SET j = '1' WHERE id = 1" for name in tables),
        *(f"INSERT INTO app.{name} (id, n, j) VALUES (3, 3, '3.0')" for name in tables),
        "UPDATE app.v SET b = '[0.0]' WHERE a = 2",
        "UPDATE app.t1 SET j = '[0.0]' WHERE j = CAST('[0]' AS JSON)",
        "SET SESSION binlog_format = MIXED",
        "WITH few AS (SELECT 3 AS id) UPDATE app.t0 SET j = '3' WHERE id IN (SELECT id FROM few)",
        "INSERT INTO app.t0 (id, j) VALUES (3, '9'), (4, '4') ON DUPLICATE KEY UPDATE j = '3.0'",
        "SET SESSION binlog_format = ROW",
        "UPDATE app.t0 SET n = 7 WHERE id = 1",
    )
    [(file, *_)] = channel.target.query("SHOW BINARY LOG STATUS")
    assert channel.run() is not None
    for name in tables:
        query = f"SELECT id, n, CAST(j AS CHAR) FROM app.{name} ORDER BY id"
        assert channel.target.query(query) == channel.source.query(query), name
    ours = channel.source.query("SELECT CAST(j AS CHAR) FROM app.t0 WHERE id < 3 ORDER BY id")
    assert ours == [("1",), ("[0.0]",)]
    events = [event for _, _, event, *_ in channel.target.query(f"SHOW BINLOG EVENTS IN '{file}'")]
    assert "Update_rows" in events


def test_an_update_that_sets_no_document_is_logged_with_whole_rows(channel_of: ChannelOf) -> None:
    """Of a target's own log its replicas and its restores take more than the changes."""
    channel = channel_of("mysql", "mysql")
    document = f"'[\"{'x' * 5000}\"]'"
    channel.on_both("CREATE DATABASE app", TABLE, f"INSERT INTO app.t (id, n, j) VALUES (1, 1, {document})")
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "UPDATE app.t SET n = 2 WHERE id = 1",
        "UPDATE app.t SET n = 3, J = '1.0' WHERE id = 1",
        "UPDATE app.t SET j = '1' WHERE id = 1",
    )
    # other windows have written to the log before
    channel.target.query("FLUSH BINARY LOGS")
    [(file, *_)] = channel.target.query("SHOW BINARY LOG STATUS")
    assert channel.run() is not None
    events = channel.target.query(f"SHOW BINLOG EVENTS IN '{file}'")
    # of one table each
    tables = [about for *_, event, _, _, about in events if event == "Table_map"]
    rows = [end - at for _, at, event, _, end, _ in events if event.endswith("_rows")]
    sizes = [size for size, table in zip(rows, tables, strict=True) if "(app.t)" in table]
    # those of the UPDATEs that set the document are small
    assert sum(size > 5000 for size in sizes) == 1
    assert channel.target.query("SELECT n, CAST(j AS CHAR) FROM app.t") == [(3, "1")]


WITH_ALL_COLUMNS = {
    "a table without a primary key": (
        ("CREATE TABLE app.k (n INT, j JSON)", "INSERT INTO app.k VALUES (1, '1.0')"),
        "UPDATE app.k SET j = '1'",
        "app.k.j",
    ),
    "a function": (*SET_BY["a function"][:1], *SET_BY["a function"][1], SET_BY["a function"][2]),
}


@pytest.mark.parametrize(("there", "logged", "named"), WITH_ALL_COLUMNS.values(), ids=WITH_ALL_COLUMNS)
def test_a_logged_update_for_which_a_mysql_target_reads_all_columns_is_named(
    channel_of: ChannelOf, there: tuple[str, ...], logged: str, named: str
) -> None:
    channel = channel_of("mysql", "mysql")
    channel.on_both("CREATE DATABASE app", *WRITTEN, *there)
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", logged)
    with pytest.raises(PrecheckError, match=f"an UPDATE that sets {named}; .*give the table a primary key"):
        channel.run()


KEPT_ON_MYSQL = ("the column itself", "a join", "ON DUPLICATE KEY UPDATE", "a trigger")


@pytest.mark.parametrize("case", KEPT_ON_MYSQL)
def test_a_logged_update_that_mysql_has_left_out_may_not_reach_mariadb(channel_of: ChannelOf, case: str) -> None:
    channel = channel_of("mysql", "mariadb")
    read = (), ("UPDATE app.t SET j = '1' WHERE j = 1",), "app.t.j"
    there, logged, named = SET_BY.get(case, read)
    channel.on_both("CREATE DATABASE app", *WRITTEN, *there)
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", *logged)
    assert channel.source.query("SELECT j FROM app.t WHERE id = 1") == [("1.0",)]
    with pytest.raises(PrecheckError, match=f"an UPDATE that sets {named}; "):
        channel.run()


def test_a_logged_update_that_mysql_has_written_is_applied_on_mariadb(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mariadb")
    channel.on_both("CREATE DATABASE app", *WRITTEN)
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", "UPDATE app.t SET j = '1' WHERE id = 1")
    assert channel.run() is not None
    for server in (channel.source, channel.target):
        assert server.query("SELECT j FROM app.t WHERE id = 1") == [("1",)]


def test_logged_statements_that_leave_the_document_are_applied(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mysql")
    channel.on_both("CREATE DATABASE app", *WRITTEN)
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "REPLACE INTO app.t VALUES (1, 1, '1')",
        """UPDATE app.t SET j = '{"name": "a1", "list": [true, null, {}]}' WHERE id = 2""",
        "UPDATE app.t SET n = n + 1, j = j",
        "INSERT INTO app.t VALUES (3, 3, '9') ON DUPLICATE KEY UPDATE n = 30",
        "INSERT INTO app.t VALUES (4, 4, '[1.0]'), (5, 5, '5')",
        "UPDATE app.t SET j = NULL WHERE id = 5",
    )
    assert channel.run() is not None
    ours, theirs = (
        [(key, n, json.dumps(json.loads(text or "null"), sort_keys=True)) for key, n, text in server.query(query)]
        for server in (channel.source, channel.target)
        for query in ("SELECT id, n, CAST(j AS CHAR) FROM app.t ORDER BY id",)
    )
    assert ours == theirs
    assert (1, 2, "1") in theirs
