"""Tables made from queries, routines, triggers, events and views: one window with all of them and calls of each."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from binlane.precheck.account.privileges import DDL, STATE, VISIBILITY, global_needs
from binlane.servers.variables import version_number
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

DEFINED: Final = b"DEFINER=`test_ann`@`127.0.0.1`"
BEGUN: Final = (
    b"CREATE DATABASE tenant_1 CHARACTER SET latin1",
    b"CREATE DATABASE tenant_2",
    b"CREATE USER 'test_ann'@'127.0.0.1' IDENTIFIED BY 'Ann-1234'",
    b"GRANT ALL ON tenant_1.* TO 'test_ann'@'127.0.0.1'",
    b"GRANT ALL ON tenant_2.* TO 'test_ann'@'127.0.0.1'",
    b"CREATE TABLE tenant_1.base (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(80) CHARACTER SET latin1, "
    b"d DECIMAL(9,2) UNSIGNED, at TIMESTAMP(3) NULL, b VARBINARY(9))",
    b"CREATE TABLE tenant_2.audit (id INT PRIMARY KEY AUTO_INCREMENT, said VARCHAR(200) CHARACTER SET utf8mb4)",
    b"USE tenant_1",
    b"SET NAMES latin1",
    b"INSERT INTO base (s, d, at, b) VALUES ('\xfc\xe4', 1.5, '2026-01-02 03:04:05.678', x'00ff')",
    b"INSERT INTO base (s, d, at, b) VALUES ('it''s', 0, NULL, '')",
)
SELECTED: Final = (
    b"CREATE TABLE made_%b SELECT * FROM base",
    b"CREATE TABLE keyed_%b (id INT PRIMARY KEY, extra INT DEFAULT 7, UNIQUE (s)) "
    b"SELECT id, s, '\xe9;' AS lit FROM base",
    b"CREATE TABLE none_%b AS SELECT id, UPPER(s) AS s FROM base WHERE id < 0",
    b"CREATE TABLE IF NOT EXISTS none_%b AS SELECT id, s FROM base",
    b"CREATE TABLE one_of_%b (n INT PRIMARY KEY) REPLACE SELECT 1 AS n, s FROM base ORDER BY id",
    b"CREATE TABLE of_options_%b (KEY (id)) ENGINE=InnoDB CHARSET=latin1 STATS_PERSISTENT=1 COMMENT='it''s \\\\ ; )' "
    b"PARTITION BY HASH (id) PARTITIONS 3 SELECT id, s FROM base",
    b"CREATE TABLE parted_%b PARTITION BY HASH (id) PARTITIONS 2 SELECT id FROM base",
    b"CREATE TABLE tenant_2.from_%b SELECT b.id, a.said FROM base b LEFT JOIN tenant_2.audit a ON a.id = b.id",
    b"UPDATE keyed_%b SET extra = extra + 1",
    b"DELETE FROM made_%b WHERE id = 1",
    b"INSERT INTO none_%b VALUES (1, '\xdf')",
)
DEFINITIONS: Final = (
    b"CREATE " + DEFINED + b" PROCEDURE add_one(IN n INT, OUT next_n INT) MODIFIES SQL DATA SQL SECURITY INVOKER\n"
    b"  COMMENT 'it''s \"quoted\" \\'too\\''\nBEGIN\n  -- DELIMITER $$ ; ' \" `\n"
    b"  /* a comment; DROP TABLE base */\n  # another ' one\n"
    b"  DECLARE EXIT HANDLER FOR 1062 SET next_n = NULL;\n"
    b"  INSERT INTO base (s, d) VALUES (CONCAT('it''s; ', \"DELIMITER //\", '\xe9', n), n);\n"
    b"  UPDATE base SET d = d + 1 WHERE id = n;\n  SET next_n = n + 1;\nEND",
    b"CREATE DEFINER=`no body`@`%` PROCEDURE orphan() SELECT 'of an account that is not there'",
    b"CREATE FUNCTION umlaut(s VARCHAR(20) CHARACTER SET latin1) RETURNS VARCHAR(40) CHARACTER SET latin1\n"
    b"DETERMINISTIC NO SQL RETURN CONCAT(s, '\xfc\\'\\\\;\\n--', _binary'\xff\x01')",
    b"CREATE FUNCTION logged(n INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN\n"
    b"  INSERT INTO tenant_2.audit (said) VALUES (CONCAT('f ', n)); RETURN n * 2; END",
    b"CREATE " + DEFINED + b" TRIGGER before_base BEFORE INSERT ON base FOR EACH ROW\n"
    b"  SET NEW.s = CONCAT(NEW.s, '\xdf/*'), NEW.d = IFNULL(NEW.d, 0) /* ; */",
    b"CREATE TRIGGER after_base AFTER UPDATE ON base FOR EACH ROW BEGIN\n"
    b"  INSERT INTO tenant_2.audit (said) VALUES (CONCAT(OLD.d, '->', NEW.d, ' \xfc \\\\')); END",
    b"CREATE TRIGGER second_base BEFORE INSERT ON base FOR EACH ROW FOLLOWS before_base SET NEW.s = REVERSE(NEW.s)",
    b"CREATE " + DEFINED + b" EVENT later ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 00:00:00' ON COMPLETION PRESERVE\n"
    b"  COMMENT 'ENABLE; it''s \xe4' DO BEGIN /* DISABLE */ CALL add_one(1, @x); UPDATE base SET s = 'ENABLE'; END",
    b"CREATE EVENT once ON SCHEDULE AT '2036-05-06 07:08:09' ON COMPLETION PRESERVE DISABLE DO SELECT '\xfc'",
    b"CREATE ALGORITHM=MERGE " + DEFINED + b" SQL SECURITY INVOKER VIEW seen AS\n"
    b"  SELECT id, s, d FROM base WHERE s <> '\xfc; \\'' AND d < 1000 WITH LOCAL CHECK OPTION",
    b"SET NAMES utf8mb4",
    b"CREATE VIEW `of \xc3\xa4 view` (n, `\xc3\xbc ``x`) AS SELECT id, CONCAT(s, '/*!99999 no */') FROM seen",
    b"CREATE PROCEDURE `p \xc3\xa4`() COMMENT '\xc3\xa4' SELECT '\xc3\xa4'",
    b"CREATE TABLE `t \xc3\xa4` COMMENT='\xc3\xa4' SELECT 1 AS `\xc3\xa4`",
    b"SET NAMES latin1",
)
OF_FAMILY: Final = {
    Flavor.MARIADB: (
        b"CREATE OR REPLACE TABLE made_%b (KEY (id)) SELECT id, s FROM base",
        b"CREATE OR REPLACE FUNCTION r_%b() RETURNS INT NO SQL RETURN 5",
        b"SET sql_mode = ORACLE",
        b"CREATE OR REPLACE PROCEDURE ora_%b(n IN INT) AS x INT := n;\n"
        b"BEGIN INSERT INTO base (s) VALUES (x || '\xe9'); END;",
        b"CALL ora_%b(4)",
        b"SET sql_mode = DEFAULT",
    ),
    Flavor.MYSQL: (
        b"CREATE PROCEDURE IF NOT EXISTS once_only() SELECT '%b'",
        b"CREATE TABLE atomic_%b (id INT PRIMARY KEY, g INT AS (id * 2) STORED, CHECK (id < 1000)) SELECT id FROM base",
    ),
}
"""What one family alone has."""
CALLS: Final = (
    b"CALL add_one(1, @a)",
    b"CALL add_one(@a, @b)",
    b"INSERT INTO base (s, d) SELECT umlaut('\xe9 %b'), 3",
    b"UPDATE base SET b = 'x' WHERE logged(id) > 2 AND id < 3",
    b"INSERT INTO seen (s, d) VALUES ('through \xfc', 999)",
    b"UPDATE `of \xe4 view` SET n = n + 100 WHERE n = 1",
    b"SET @b = 0, @c = logged(7)",
    b"DO logged(8)",
    b"DELETE FROM seen WHERE id = 2",
    b"INSERT INTO base (id, s) VALUES (2, 'again')",
    b"UPDATE base SET id = 1 WHERE id = 101",
)
CHANGED: Final = (
    b"SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'",
    b"CREATE PROCEDURE \"ansi\"() COMMENT 'a' INSERT INTO \"base\" (s) VALUES ('back\\' || 'slash' || CHAR(39))",
    b"CALL ansi()",
    b"SET sql_mode = DEFAULT",
    b"SET NAMES sjis",
    b"CREATE PROCEDURE p_sjis() INSERT INTO tenant_2.audit (said) VALUES ('\x83\x5c'), ('\x83\x60; -- ')",
    b"CALL p_sjis()",
    b"SET NAMES latin1",
    b"ALTER PROCEDURE add_one COMMENT 'changed' SQL SECURITY DEFINER",
    b"ALTER EVENT later ON SCHEDULE EVERY 2 DAY RENAME TO tenant_2.later_on",
    b"DROP TRIGGER second_base",
    b"CREATE OR REPLACE VIEW seen AS SELECT id, s, d, at FROM base",
    b"SET NAMES utf8mb4",
    b"ALTER " + DEFINED + b" VIEW `of \xc3\xa4 view` AS SELECT id AS n, s AS `\xc3\xbc` FROM base",
    b"SET NAMES latin1",
    b"DROP FUNCTION logged",
    b"DROP EVENT once",
    b"INSERT INTO seen (s, d) VALUES ('last', 1)",
)


KINDS: Final = (
    ("PROCEDURE", "routines", "routine_schema", "routine_name"),
    ("FUNCTION", "routines", "routine_schema", "routine_name"),
    ("TRIGGER", "triggers", "trigger_schema", "trigger_name"),
    ("EVENT", "events", "event_schema", "event_name"),
    ("VIEW", "views", "table_schema", "table_name"),
)
"""What SHOW CREATE takes, and where its names are."""


def statements(flavor: Flavor) -> Iterator[bytes]:
    """All of them: what the window has, in its order."""
    yield from BEGUN
    for statement in (*SELECTED, *OF_FAMILY[flavor]):
        yield statement.replace(b"%b", b"in_rows")
    yield from DEFINITIONS
    yield from (statement.replace(b"%b", b"in rows") for statement in CALLS)
    yield b"SET SESSION binlog_format = STATEMENT"
    for statement in (*SELECTED, *OF_FAMILY[flavor], *CALLS):
        yield statement.replace(b"%b", b"in_text")
    yield from CHANGED


def run_on_source(server: PrivateServer) -> None:
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in statements(server.flavor):
            cursor.execute(statement)  # type: ignore[call-overload]
            while cursor.nextset():
                pass


def definitions(server: PrivateServer) -> dict[str, Any]:
    """SHOW CREATE of everything, with the modes and character sets it was made in; events without their status."""
    found: dict[str, Any] = {}
    for kind, table, database_column, name_column in KINDS:
        named = f"SELECT {database_column}, {name_column} FROM information_schema.{table}"
        of_kind = f" AND routine_type = '{kind}'" if table == "routines" else ""
        for database, name in server.query(f"{named} WHERE {database_column} LIKE 'tenant%%'{of_kind}"):
            quoted = name.replace("`", "``")
            ((*row,),) = server.query(f"SHOW CREATE {kind} `{database}`.`{quoted}`")
            if kind == "TRIGGER":
                del row[6:]  # when it was made
            if kind == "EVENT":
                row[3] = re.sub(r" (ENABLE|DISABLE( ON (SLAVE|REPLICA))?) (?=COMMENT|DO)", " ", row[3])
            found[f"{kind} {database}.{name}"] = row
    return found


@pytest.mark.parametrize(
    ("family", "reduce"), [("mariadb", "off"), pytest.param("mysql", "block", marks=requires_mysql)]
)
def test_all_that_can_be_defined_is_the_same_on_the_target(family: str, reduce: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    source, target = channel.source, channel.target
    channel.write_channel("allow_unsafe = true\n", f'reduce = "{reduce}"\n')
    run_on_source(source)

    assert channel.run() is not None

    channel.assert_equal()
    assert definitions(target) == definitions(source)
    assert len(definitions(source)) > 10


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_function_that_the_target_would_not_make_is_named_before_anything_is_written(
    family: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(family, family)
    source, target = channel.source, channel.target
    source.query("SET GLOBAL log_bin_trust_function_creators = ON")
    try:
        source.query("CREATE DATABASE tenant_1")
        source.query("CREATE FUNCTION tenant_1.f() RETURNS INT RETURN 5")
    finally:
        source.query("SET GLOBAL log_bin_trust_function_creators = OFF")
    with pytest.raises(PrecheckError, match=r"tenant_1: function that is not DETERMINISTIC.*log_bin_trust_function"):
        channel.run()
    assert target.query("SHOW DATABASES LIKE 'tenant%%'") in ([], ())
    target.query("SET GLOBAL log_bin_trust_function_creators = ON")
    try:
        assert channel.run() is not None
        channel.assert_equal()
    finally:
        target.query("SET GLOBAL log_bin_trust_function_creators = OFF")


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_trigger_that_the_target_would_not_let_the_account_make_is_named_before_anything_is_written(
    family: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(family, family)
    source, target = channel.source, channel.target
    limited_account(target)
    channel.connect("target_server", target, user="test_limited")
    source.query("CREATE DATABASE tenant_1")
    source.query("CREATE TABLE tenant_1.t (id INT PRIMARY KEY, s INT)")
    source.query("CREATE TRIGGER tenant_1.g BEFORE INSERT ON tenant_1.t FOR EACH ROW SET NEW.s = 1")
    source.query("CREATE FUNCTION tenant_1.f() RETURNS INT DETERMINISTIC RETURN 5")
    source.query("INSERT INTO tenant_1.t (id) VALUES (1)")
    try:
        for privilege in DEFINERS[target.flavor]:
            # the definer of the source's trigger is an account of the system
            said = rf"trigger tenant_1\.g: definer .*: expected an account with .*GRANT {privilege}"
            with pytest.raises(PrecheckError, match=said):
                channel.run()
            run_on(target, f"GRANT {privilege} ON *.* TO test_limited@'%'", log=False)
        with pytest.raises(PrecheckError, match=r"tenant_1.*: trigger or function (TRIGGER|FUNCTION).*GRANT SUPER"):
            channel.run()
        assert target.query("SHOW DATABASES LIKE 'tenant%%'") in ([], ())
        target.query("SET GLOBAL log_bin_trust_function_creators = ON")
        assert channel.run() is not None
    finally:
        target.query("SET GLOBAL log_bin_trust_function_creators = OFF")
        run_on(target, "DROP USER test_limited@'%'", log=False)
    channel.assert_equal()
    assert definitions(target) == definitions(source)


DEFINERS: Final = {Flavor.MARIADB: ("SET USER",), Flavor.MYSQL: ("SET_ANY_DEFINER", "SYSTEM_USER")}
"""What setting another definer takes, one after the other."""


def limited_account(server: PrivateServer) -> None:
    """``test_limited``: everything that a channel's account needs, but SUPER and other definers."""
    version = version_number(str(server.query("SELECT VERSION()")[0][0]))
    names = [need.name for need in global_needs(server.flavor, version)]
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute("CREATE USER test_limited@'%%' IDENTIFIED BY %s", (server.password,))
        cursor.execute(f"GRANT {', '.join((*names, 'PROCESS', *VISIBILITY, *DDL, *STATE))} ON *.* TO test_limited@'%'")
