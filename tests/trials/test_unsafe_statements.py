"""The servers' own judgement of statements: what they log with a warning (1592), the precheck must name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pymysql
import pytest

from binlane.model import Flavor
from binlane.sql.parse.analyze import analyze
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.parse.row_order import order_felt
from binlane.sql.parse.unsafe import is_one_row, is_query_of_rows
from lab.servers import PrivateServer, private_server

_UNSAFE: Final = 1592
TABLES: Final = (
    "CREATE DATABASE d",
    "USE d",
    "CREATE TABLE p (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE k (id INT, v INT)",
    "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
    "CREATE TABLE u (id INT PRIMARY KEY, v INT UNIQUE, w INT)",
    "CREATE TABLE s (id INT, v LONGTEXT)",
    "INSERT INTO k VALUES (3, 3), (1, 1)",
)
QUERIES: Final = (
    *("SELECT id + {n}, v FROM k", "SELECT id + {n}, v FROM k ORDER BY id, v", "SELECT id + {n}, v FROM k LIMIT 1"),
    *("SELECT id + {n}, v FROM k ORDER BY id, v LIMIT 1", "SELECT {n}, 1", "(SELECT id + {n}, v FROM k)"),
    *("SELECT MAX(id) + {n}, 1 FROM k", "SELECT id + {n}, v FROM k UNION SELECT 900 + {n}, 1"),
    *("SELECT id + {n}, v FROM k FOR UPDATE", "SELECT id + {n}, v FROM k FOR UPDATE SKIP LOCKED"),
    "SELECT {n}, COUNT(*) FROM performance_schema.threads",
)
INTO: Final = (
    *("INSERT INTO p {}", "INSERT IGNORE INTO p {}", "INSERT LOW_PRIORITY IGNORE p {}", "REPLACE INTO p {}"),
    *("INSERT INTO p {} ON DUPLICATE KEY UPDATE v = 7", "INSERT INTO k {}", "REPLACE p (id, v) {}"),
    *(
        "CREATE TABLE m{n} {}",
        "CREATE TABLE m{n} (UNIQUE (id)) IGNORE {}",
        "CREATE TABLE m{n} (UNIQUE (id)) REPLACE {}",
    ),
    *("CREATE TABLE m{n} (i INT AUTO_INCREMENT PRIMARY KEY) {}", "INSERT INTO a {}", "INSERT IGNORE INTO a {}"),
)
CHANGES: Final = (
    *("UPDATE p SET v = v + 1", "UPDATE IGNORE p SET v = v + 1", "UPDATE p SET v = 1 LIMIT 1", "DELETE FROM p LIMIT 1"),
    *("DELETE FROM p WHERE id = 7777", "DELETE IGNORE FROM p WHERE id = 7777", "UPDATE p, k SET p.v = 1, k.v = 2"),
    *("UPDATE IGNORE p, k SET p.v = 1 WHERE p.id = k.id", "DELETE p FROM p JOIN k ON p.id = k.id"),
    *(
        "INSERT INTO p VALUES (7001, 1), (7002, 1)",
        "INSERT IGNORE INTO p VALUES (7001, 1)",
        "INSERT INTO a (v) VALUES (1), (2)",
    ),
    *("INSERT INTO u VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE w = 2", "REPLACE INTO u VALUES (1, 2, 3)"),
)
FUNCTIONS: Final = [
    "UUID()",
    "UUID_SHORT()",
    "USER()",
    "CURRENT_USER()",
    "SESSION_USER()",
    "SYSTEM_USER()",
    "VERSION()",
    "FOUND_ROWS()",
    "ROW_COUNT()",
    "SLEEP(0)",
    "SYSDATE()",
    "GET_LOCK('x',0)",
    "RELEASE_LOCK('x')",
    "IS_FREE_LOCK('x')",
    "IS_USED_LOCK('x')",
    "LOAD_FILE('/nowhere')",
    "RAND()",
    "CONNECTION_ID()",
    "LAST_INSERT_ID()",
    "NOW(6)",
    "UNIX_TIMESTAMP()",
    "DATABASE()",
    "CURRENT_ROLE()",
    "RANDOM_BYTES(4)",
    "BENCHMARK(1,1)",
    "PI()",
    "AES_ENCRYPT('a','b')",
    "PS_CURRENT_THREAD_ID()",
    "PS_THREAD_ID(1)",
    "ICU_VERSION()",
    "ROLES_GRAPHML()",
    "STATEMENT_DIGEST('SELECT_1')",
    "BINLOG_GTID_POS('x',4)",
    "MASTER_GTID_WAIT('',0)",
    "MASTER_POS_WAIT('x',4,0)",
    "@@hostname",
    "@@server_id",
    "@@timestamp",
    "@@sql_mode",
    "@@last_insert_id",
    "@@warning_count",
    "@@time_zone",
    "@@pseudo_thread_id",
    "@@auto_increment_increment",
    "@@version",
    "@@max_connections",
    "@@div_precision_increment",
    "@@lc_time_names",
    "@@foreign_key_checks",
    "@@insert_id",
    "@@collation_connection",
    "@@tx_read_only",
    "SYS_GUID()",
    "UUID_V4()",
    "UUID_V7()",
    "UTC_TIMESTAMP(6)",
    "CURDATE()",
    "CRC32('a')",
    "FORMAT_BYTES(1)",
    "WSREP_LAST_SEEN_GTID()",
]
EXACT: Final = {
    "RAND()": "the log has its seeds",
    "ORDER BY": "the order is in the text; whether a key settles it, test_row_order asks",
    "INSERT INTO u VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE w = 2": "one row, and keys are tried in the tables' order",
    "SELECT MAX(id) + {n}, 1 FROM k": "one row",
    "SELECT {n}, 1": "one row",
    "@@sql_mode": "the log has it",
    "@@lc_time_names": "the log has it",
}
"""What a server warns of and the target does exactly."""


def statements() -> Iterator[tuple[str, str | None]]:
    """Each statement, and why it is exact although a server warns of it."""
    number = 0
    for into in INTO:
        for query in QUERIES:
            number += 10
            kept = next((why for text, why in EXACT.items() if text in query), None)
            yield into.replace("{}", query).replace("{n}", str(number)), kept
    yield from ((text, EXACT.get(text)) for text in CHANGES)
    yield from ((f"INSERT INTO s VALUES (1, {text})", EXACT.get(text)) for text in FUNCTIONS)
    yield from ((f"UPDATE s SET v = {text} ORDER BY id", EXACT.get(text)) for text in FUNCTIONS)


@pytest.fixture(scope="module", params=list(Flavor))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    options = ["--binlog-format=STATEMENT", "--log-bin-trust-function-creators=1"]
    if request.param is Flavor.MYSQL:
        options += ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"]
    with private_server(tmp_path_factory.mktemp("unsafe") / "s", request.param, options) as found:
        yield found


def _feels_an_order(text: str, flavor: Flavor) -> bool:
    """Whether check `row-order` judges it, by the keys of its tables."""
    tokens: list[Token] = []
    lex(text, Dialect(flavor), tokens)
    return any(True for _ in order_felt(tokens, "d", full_group_by=False))


def _has_rows_of_a_query(text: str, flavor: Flavor) -> bool:
    tokens = list[Token]()
    lex(text, Dialect(flavor), tokens)
    return is_query_of_rows(tokens) and not is_one_row(tokens)


def test_what_the_servers_warn_of_is_named(server: PrivateServer, tmp_path: Path) -> None:
    missed, ran = list[str](), 0
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for text in TABLES:
            cursor.execute(text)
        for text, exact in statements():
            try:
                cursor.execute(text)
            except pymysql.err.Error:
                continue
            ran += 1
            cursor.execute("SHOW WARNINGS")
            is_warned = any(code == _UNSAFE for _, code, _ in cursor.fetchall())
            facts = analyze(text, database="d", flavor=server.flavor)
            numbers = any(key.table == "a" for key in facts.written) and _has_rows_of_a_query(text, server.flavor)
            if is_warned and not (facts.unsafe or numbers or exact or _feels_an_order(text, server.flavor)):
                missed.append(text)
    assert missed == []
    assert ran > 150


BARE: Final = ("ROWNUM", "SYSDATE", "q.nextval", "q.currval")


def test_what_oracle_calls_without_parentheses_is_a_column_elsewhere(server: PrivateServer) -> None:
    if server.flavor is Flavor.MYSQL:
        return
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for text in ("CREATE DATABASE o", "USE o", "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1), (2), (3)"):
            cursor.execute(text)
        cursor.execute("CREATE SEQUENCE q")
        cursor.execute("SET SESSION binlog_format = 'MIXED'")
        for bare in BARE:
            text = f"UPDATE t SET a = {bare} WHERE a > 0"
            cursor.execute("SET sql_mode = ''")
            with pytest.raises(pymysql.err.OperationalError, match="Unknown"):
                cursor.execute(text)
            assert analyze(text, database="o", flavor=server.flavor).unsafe is None
            cursor.execute("SET sql_mode = 'ORACLE'")
            cursor.execute(f"SELECT {bare} FROM t")
            facts = analyze(text, database="o", flavor=server.flavor, sql_mode_ansi_quotes=True, oracle=True)
            assert facts.unsafe is not None
        cursor.execute("DELETE FROM t WHERE ROWNUM <= 2")
        assert cursor.rowcount == 2
