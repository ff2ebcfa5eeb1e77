"""Bodies that another server, or another account, may run in another way."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.parse.lexer import Dialect, Token, Unreadable, lex
from binlane.sql.programs.of_server import LeftOut, changed_data, kept_database, own_value, value_of_server

ASKING = [
    ("SET @x = `is_free_lock`('x')", "IS_FREE_LOCK()"),
    ("SET @x = `Version` ()", "VERSION()"),
    ("IF USER() = 'a' THEN SET @x = 1; END IF", "USER()"),
    ("IF TRIM('x' FROM USER()) = 'a' THEN SET @x = 1; END IF", "USER()"),
    ("SET @x = session_user ( )", "SESSION_USER()"),
    ("SET @x = SYSTEM_USER()", "SYSTEM_USER()"),
    ("SET @x = CURRENT_USER", "CURRENT_USER()"),
    ("SET @x = CURRENT_USER()", "CURRENT_USER()"),
    ("SET @x = CURRENT_ROLE()", "CURRENT_ROLE()"),
    ("SET @x = CONNECTION_ID()", "CONNECTION_ID()"),
    ("SET @x = @@hostname", "@@hostname"),
    ("SET @x = @@GLOBAL.server_id", "@@GLOBAL.server_id"),
    ("SET @x = @@port", "@@port"),
    ("SET @x = VERSION()", "VERSION()"),
    ("SET @x = UUID()", "UUID()"),
    ("SET @x = GET_LOCK('x', 0)", "GET_LOCK()"),
    ("SET @x = FOUND_ROWS()", "FOUND_ROWS()"),
    ("SET @x = SYSDATE()", "SYSDATE()"),
    ("SET @x = LOAD_FILE('x')", "LOAD_FILE()"),
    ("SELECT COUNT(*) INTO @x FROM information_schema.tables", "a table of information_schema"),
    ("SELECT COUNT(*) INTO @x FROM `mysql` . user", "a table of mysql"),
    ("SELECT COUNT(*) INTO @x FROM performance_schema.threads", "a table of performance_schema"),
    ("DECLARE CONTINUE HANDLER FOR 1142 BEGIN END", "HANDLER, which catches errors"),
    ("DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END", "HANDLER, which catches errors"),
    ("DECLARE EXIT HANDLER FOR NOT FOUND, 1142 BEGIN END", "HANDLER, which catches errors"),
    ("BEGIN NULL; EXCEPTION WHEN OTHERS THEN NULL; END", "EXCEPTION, which catches errors"),
]
ALIKE = (
    "SET @x = NOW(), @y = RAND(), @z = @@session.sql_mode, @a = @@time_zone",
    "DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1",
    "INSERT INTO user (version, `uuid`, hostname) VALUES (1, 2, 'USER() @@hostname')",
    "SELECT user, t.user FROM sys_user AS t WHERE mysql = 1",
    "DO SLEEP(1)",
    "CREATE TEMPORARY TABLE `user` (`uuid` INT, KEY `version` (`uuid`))",
    "INSERT INTO t (`uuid`) VALUES (1)",
    "CREATE INDEX i ON `user` (a)",
    "CREATE INDEX IF NOT EXISTS i ON user (a)",
)


def tokens(body: str) -> list[Token]:
    found: list[Token] = []
    lex(body, Dialect(Flavor.MARIADB), found)
    return found


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(("body", "found"), ASKING)
def test_what_is_a_server_s_or_an_account_s_own_is_named(body: str, found: str, flavor: Flavor) -> None:
    assert own_value(tokens(body), flavor, by_definer=False) == found
    is_definer_s = found == "CURRENT_USER()"
    assert (own_value(tokens(body), flavor, by_definer=True) is None) is is_definer_s


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize("body", ALIKE)
def test_what_the_log_has_or_is_alike_everywhere_is_not(body: str, flavor: Flavor) -> None:
    assert own_value(tokens(body), flavor, by_definer=False) is None


@pytest.mark.parametrize("value", ["ROWNUM", "SYSDATE", "s.currval", "app.s.nextval"])
def test_what_oracle_calls_without_parentheses_is_found_in_bodies(value: str) -> None:
    body = tokens(f"BEGIN UPDATE t SET a = {value}; END")
    for find in (own_value, value_of_server):
        assert find(body, Flavor.MARIADB, by_definer=True, oracle=True) is not None
        assert find(body, Flavor.MARIADB, by_definer=True) is None


@pytest.mark.parametrize("name", ["mysql", "`MySQL`", "performance_schema", "binlane", "`BINLANE` "])
def test_a_table_of_accounts_or_of_the_state_is_found_by_its_name(name: str) -> None:
    found = name.strip("` ").lower()
    assert kept_database(tokens(f"UPDATE {name}.t SET a = 1")) == found
    assert kept_database(tokens(f"SELECT a.{name}.b, 'mysql.user', mysql FROM app.mysql")) is None


@pytest.mark.parametrize(
    "body",
    [
        "SET GLOBAL init_connect = 'x'",
        "SET @x = 1, GLOBAL `init_connect` = 'x'",
        "SET @@GLOBAL.init_connect = 'x'",
        "IF 1 THEN SET @x = 1, @@global . init_connect := 'x'; END IF",
        "SET PERSIST max_connections = 1",
    ],
)
def test_a_global_variable_is_found_where_it_is_set(body: str) -> None:
    assert kept_database(tokens(body)) == "SET GLOBAL"
    assert kept_database(tokens("SET @x = @@global.init_connect, @y = global; SELECT a.kill, `kill` FROM t")) is None


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("IF 1 THEN KILL 5; END IF", "KILL"),
        ("BEGIN BINLOG 'AAAA'; END", "BINLOG"),
        ("BINLOG @a, @b", "BINLOG"),
        ("BEGIN PURGE BINARY LOGS TO 'x'; END", "PURGE BINARY"),
        ("BEGIN CHANGE MASTER TO MASTER_HOST = 'x'; END", "CHANGE MASTER"),
        ("BEGIN STOP ALL SLAVES; END", "STOP ALL"),
        ("SHUTDOWN", "SHUTDOWN"),
        ("IF 1 THEN SHUTDOWN WAIT FOR ALL SLAVES; END IF", "SHUTDOWN WAIT"),
        ("BEGIN RESTART; END", "RESTART"),
        ("BEGIN SELECT 1 INTO OUTFILE 'x'; END", "INTO OUTFILE"),
        ("BEGIN LOCK INSTANCE FOR BACKUP; END", "LOCK INSTANCE"),
    ],
)
def test_a_statement_that_changes_the_server_is_found(body: str, found: str) -> None:
    assert kept_database(tokens(body)) == found


def test_names_that_are_such_words_are_none() -> None:
    body = "SELECT binlog, t.purge, start, a.shutdown INTO x FROM restart AS change WHERE `binlog` = 'x' AND binlog > 1"
    assert kept_database(tokens(body)) is None


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("DELETE FROM other.victim", "other"),
        ("SELECT OTHER . `Victim` . n FROM other.public", "other"),
        ("DELETE FROM other.public", None),
        ("DELETE FROM audit", "app"),
        ("DELETE FROM app.audit", "app"),
        ("DELETE FROM victim", None),
        ("SELECT t.audit, 'audit' FROM app.t", None),
    ],
)
def test_a_table_that_is_left_out_is_found_by_its_name(body: str, found: str | None) -> None:
    left_out = LeftOut(tables=frozenset({("other", "victim"), ("app", "audit")}))
    assert kept_database(tokens(body), left_out, "app") == found


@pytest.mark.parametrize(("name", "database"), [("b\u0130nlane", "binlane"), ("m\u00fdsql", "mysql")])
def test_a_database_is_found_by_each_spelling_that_a_server_takes_for_it(name: str, database: str) -> None:
    """In lower case, which is i for that letter, and, of a routine's database, without accents."""
    assert kept_database(tokens(f"UPDATE {name}.t SET a = 1")) == database
    assert kept_database(tokens("UPDATE \u212aunden.t SET a = 1"), LeftOut(frozenset({"kunden"}))) == "kunden"


def test_a_name_that_is_a_file_s_is_not_read() -> None:
    with pytest.raises(Unreadable, match="begins with #mysql50#"):
        tokens("UPDATE `#MySQL50#binlane`.channels SET a = 1")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("SELECT MAX(n) INTO @x FROM t FOR UPDATE", None),
        ("SELECT n INTO @x FROM t FOR UPDATE NOWAIT; UPDATE t SET n = 1", "UPDATE"),
        ("DECLARE CONTINUE HANDLER FOR NOT FOUND UPDATE t SET n = 1", "UPDATE"),
    ],
)
def test_rows_that_a_query_locks_are_not_changed(body: str, found: str | None) -> None:
    assert changed_data(tokens(body)) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("CALL sys.ps_setup_disable_instrument('wait')", "sys"),
        ("CALL `SYS` . ps_setup_save(10)", "sys"),
        ("UPDATE sys.sys_config SET value = 1", "sys"),
        ("RETURN sys.version_major() + (SELECT COUNT(*) FROM sys.processlist)", None),
        ("CALL app.sys(sys)", None),
    ],
)
def test_what_changes_what_the_server_records_is_found(body: str, found: str | None) -> None:
    assert kept_database(tokens(body)) == found
    assert kept_database(tokens(body), by_definer=True) is None


@pytest.mark.parametrize("named", ["\u00c9vil", "\u00e9vil", "EVIL"])
def test_a_database_that_is_left_out_is_found_by_each_spelling_that_a_server_takes_for_it(named: str) -> None:
    left_out = LeftOut.of(["\u00c9vil"], [("Shop", "Audit")])
    assert kept_database(tokens(f"UPDATE `{named}`.t SET a = 1"), left_out) is not None
    assert kept_database(tokens("UPDATE SHOP.audit SET a = 1"), left_out) == "shop"
    assert kept_database(tokens("UPDATE shop.t SET a = 1"), left_out) is None
