"""Statements whose result may depend on the order of rows, or on a server: each form that the two servers offer is
logged in STATEMENT format and applied to a target whose keyless tables have their rows in another order. Whatever the
precheck lets pass leaves both servers equal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import pymysql
import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor, Item, ItemKind, LogPosition, TableKey
from binlane.schema.order_proof import is_settled
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_of
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.row_order import fed, feeding
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, ChannelOf, run_on
from tests.trials.sampling import sampled

KEYLESS: Final = "CREATE TABLE {t} (v INT, w INT)"
KEYED: Final = "CREATE TABLE {t} (v INT, w INT, id INT AUTO_INCREMENT PRIMARY KEY)"
INDEXED: Final = "CREATE TABLE {t} (v INT, w INT, id INT AUTO_INCREMENT PRIMARY KEY, KEY (v))"
UNIQUE: Final = "CREATE TABLE {t} (v INT, w INT NOT NULL, UNIQUE (w))"
TABLES: Final = {"keyless": KEYLESS, "keyed": KEYED, "indexed": INDEXED, "unique": UNIQUE}
ROWS: Final = [f"({n % 3}, {n * 7 % 11})" for n in range(9)]
ORDERS: Final = ("", "ORDER BY v", "ORDER BY w", "ORDER BY v, w", "ORDER BY {key}")
"""``w`` has a value of its own in each row, and only a unique key tells."""
QUERIES: Final = (
    "SELECT v, w FROM s{t} {order}",
    "SELECT v, w FROM s{t} {order} LIMIT 3",
    "SELECT v, w FROM s{t} WHERE v > 0 {order} LIMIT 1 OFFSET 1",
    "SELECT v, (@r := @r + 1) FROM s{t} {order}",
    "SELECT w, ROW_NUMBER() OVER ({order}) FROM s{t}",
    "SELECT w, LAG(w) OVER ({order}) FROM s{t}",
    "SELECT w, SUM(w) OVER ({order} ROWS UNBOUNDED PRECEDING) FROM s{t}",
    "SELECT w, RANK() OVER ({order}) FROM s{t}",
    "SELECT v, LEFT(GROUP_CONCAT(w {order}), 1) FROM s{t} GROUP BY v",
    "SELECT v, w FROM s{t} GROUP BY v",
    "SELECT v, MAX(w) FROM s{t} GROUP BY v",
    "SELECT DISTINCT v, 1 FROM s{t} {order}",
    "SELECT 1, (SELECT w FROM s{t} {order} LIMIT 1)",
    "SELECT v, 1000 * RAND(3) FROM s{t} {order}",
    "SELECT a.v, b.w FROM s{t} a JOIN s{t} b ON a.v = b.v {order} LIMIT 2",
    "SELECT v, w FROM s{t} UNION SELECT v, w + 1 FROM s{t} {order} LIMIT 3",
)
INTO: Final = {
    "insert": ("INSERT INTO {t} (v, w)", KEYLESS),
    "ignore": ("INSERT IGNORE INTO {t} (v, w)", "CREATE TABLE {t} (v INT PRIMARY KEY, w INT)"),
    "replace": ("REPLACE INTO {t} (v, w)", "CREATE TABLE {t} (v INT PRIMARY KEY, w INT)"),
    "numbered": ("INSERT INTO {t} (v, w)", KEYED),
    "firing": ("INSERT INTO {t} (v, w)", KEYLESS),
}
CHANGES: Final = (
    "UPDATE s{t} SET w = w + 100 {order} LIMIT 3",
    "DELETE FROM s{t} {order} LIMIT 3",
    "DELETE FROM s{t} WHERE w = 3 {order} LIMIT 1",
    "UPDATE s{t} SET v = (@r := @r + 1) {order}",
    "UPDATE s{t} SET v = 1000 * RAND(7) {order}",
    "UPDATE s{t} SET v = 1000 * RAND(7) WHERE w = 3",
    "UPDATE {t} JOIN s{t} ON {t}.v = s{t}.v SET {t}.w = s{t}.w",
    "UPDATE {t} JOIN s{t} ON {t}.v = s{t}.w SET {t}.w = s{t}.v",
    "DELETE FROM s{t} WHERE RAND(5) < 0.5 {order}",
    "DELETE FROM s{t} WHERE v = 1",
)
FIRED: Final = (
    "CREATE TABLE l{t} (v INT, id INT AUTO_INCREMENT PRIMARY KEY)",
    "CREATE TRIGGER i{t} AFTER INSERT ON {t} FOR EACH ROW INSERT INTO l{t} (v) VALUES (NEW.w)",
)


class Case(NamedTuple):
    """A statement, and the tables that it takes."""

    target: str
    source: str
    statement: str
    fires: bool = False


def cases(source: str, into: str) -> Iterator[Case]:
    """All statements that take rows of one kind of table; with the name of an INTO, or ``change``."""
    key = "id" if "id INT" in TABLES[source] else "w + 0"
    for order in (each.replace("{key}", key) for each in ORDERS):
        if into == "change":
            yield from (Case(KEYLESS, TABLES[source], text.replace("{order}", order)) for text in CHANGES)
        else:
            head, target = INTO[into]
            for query in QUERIES:
                statement = f"{head} {query.replace('{order}', order)}"
                yield Case(target, TABLES[source], statement, fires=into == "firing")


PAIRS: Final = [(source, into) for source in TABLES for into in (*INTO, "change")]


@pytest.mark.parametrize("family", list(Flavor))
@pytest.mark.parametrize(
    ("source", "into"), sampled(PAIRS, [("keyless", "insert"), ("keyed", "change"), ("unique", "numbered")])
)
def test_what_passes_the_precheck_is_equal(channel_of: ChannelOf, family: Flavor, source: str, into: str) -> None:
    """Each statement in a window of its own; what is refused is applied with ``allow_unsafe``, to go on."""
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE tenant_1", log=False)
    run_on(channel.target, "CREATE DATABASE tenant_1", log=False)
    lost, refused, passed = list[str](), 0, 0
    for number, case in enumerate(dict.fromkeys(cases(source, into))):
        name = f"t{number}"
        for server, rows in ((channel.source, ROWS), (channel.target, ROWS[::-1])):
            run_on(server, "USE tenant_1", *_made(case, name, rows), log=False)
        if not _runs(channel.source, case.statement.replace("{t}", name)):
            continue
        channel.write_channel()
        if (refusal := _refusal(channel)) is not None:
            assert "[row-order]" in refusal or "[unsafe-statements]" in refusal
            refused += 1
            channel.write_channel("allow_unsafe = true\n")
            assert channel.run() is not None
            continue
        passed += 1
        if any(_rows(channel.source, each) != _rows(channel.target, each) for each in _named(name)):
            lost.append(case.statement)
    assert lost == []
    assert refused > 5
    assert passed > 2


KEYS: Final = ("KEY (v)", "KEY (w)", "KEY (v, w)", "KEY (w, v, x)", "KEY (c(3))", "UNIQUE (x)", "KEY (v), KEY (w, x)")
LISTS: Final = (
    *("v", "id", "1", "v, w", "*", "v AS w", "v * w", "s.x", "DISTINCT v", "DISTINCT v, w", "c", "LEFT(c, 2), v"),
    *("GROUP_CONCAT(v)", "GROUP_CONCAT(v) AS w", "GROUP_CONCAT(v, x)", "GROUP_CONCAT(w) , MAX(v)", "COUNT(*), MAX(w)"),
    *("JSON_ARRAYAGG(v)", "v, ROW_NUMBER() OVER ()", "x, ROW_NUMBER() OVER ()", "v IS NULL, -w", "COUNT(DISTINCT x)"),
    *("CASE v WHEN 1 THEN w END", "v + DEFAULT(w)", "CONVERT(v, CHAR), x", "IF(0, w, v)", "v, 0 * x"),
)


@pytest.mark.parametrize("family", list(Flavor))
def test_a_query_that_is_taken_for_a_scan_by_the_primary_key_is_one(channel_of: ChannelOf, family: Flavor) -> None:
    """By the servers' own EXPLAIN, for tables with secondary indexes of each kind."""
    channel, scans = channel_of(family, family), 0
    server, source = channel.source, channel.endpoints.source
    explain = "EXPLAIN" if family is Flavor.MARIADB else "EXPLAIN FORMAT=TRADITIONAL"
    assert source is not None
    for keys in KEYS:
        columns = "v INT, w INT DEFAULT 5, x INT, c VARCHAR(9)"
        values = ", ".join(f"({n}, {n % 3}, {n * 7 % 11}, {9 - n}, 'c{n}')" for n in range(9))
        create = f"CREATE TABLE s (id INT PRIMARY KEY, {columns}, {keys})"
        rows = f"INSERT INTO s VALUES {values}"
        run_on(server, "CREATE DATABASE IF NOT EXISTS a", "USE a", "DROP TABLE IF EXISTS s", create, rows)
        run_on(server, "ANALYZE TABLE a.s")
        with engine_of(source).connect() as connection:
            table = read_schema(connection, ["a"]).tables[TableKey("a", "s")]
        for chosen in LISTS:
            item = Item(ItemKind.STATEMENT, f"INSERT INTO t SELECT {chosen} FROM s".encode())
            text = LoggedText.of(1, LogPosition("log.000001", 4), item, family)
            assert text is not None
            [block] = feeding(text.tokens_with_places, "a")
            # every column is of use: no other proof than by the scan
            if not is_settled(replace(fed(block), used=None, needed=None, by_items=False), {table.key: table}.get):
                continue
            scans += 1
            [row] = server.query(f"{explain} SELECT {chosen} FROM a.s")
            assert "ALL" in row, (keys, chosen, row)
    assert scans > len(KEYS)


def _made(case: Case, name: str, rows: Sequence[str]) -> Iterator[str]:
    texts = [case.target, case.source.replace("{t}", "s{t}"), *(FIRED if case.fires else ())]
    yield from (text.replace("{t}", name) for text in texts)
    # the key of a numbered row is its place in the list, on both servers
    numbered = "AUTO_INCREMENT" in case.source
    for number, row in enumerate(rows if not numbered else ROWS):
        columns, values = ("v, w, id", f"{row[:-1]}, {number + 1})") if numbered else ("v, w", row)
        yield f"INSERT INTO s{name} ({columns}) VALUES {values}"


def _refusal(channel: Channel) -> str | None:
    try:
        assert channel.run() is not None
    except PrecheckError as exc:
        return str(exc)
    return None


def _runs(server: PrivateServer, statement: str) -> bool:
    connection = server.connect(autocommit=True, database="tenant_1")
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute("SET binlog_format = STATEMENT, @r = 0, sql_mode = ''")
        try:
            cursor.execute(statement)
        except pymysql.err.Error:
            return False
    return True


def _named(name: str) -> tuple[str, ...]:
    return name, f"s{name}", f"l{name}"


def _rows(server: PrivateServer, name: str) -> list[str]:
    query = "SELECT 1 FROM information_schema.tables WHERE table_schema = 'tenant_1' AND table_name = %s"
    return sorted(map(repr, server.query(f"SELECT * FROM tenant_1.{name}"))) if server.query(query, (name,)) else []
