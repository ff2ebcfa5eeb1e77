"""Statements about accounts are read to their end: what each family logs is read, and nothing may stand behind it."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.model import Flavor
from binlane.sql.parse.account_statements import is_about_accounts
from binlane.sql.parse.analyze import StatementKind, analyze, last_word
from binlane.sql.parse.lexer import Dialect

OF_BOTH: Final = r"""
CREATE USER joe
CREATE USER IF NOT EXISTS 'joe'@'%' IDENTIFIED BY 'Aa-12345', `o'brien`@`10.0.0.0/255.0.0.0` IDENTIFIED BY 'b'
CREATE USER joe@127.0.0.1 REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK
CREATE USER joe IDENTIFIED BY PASSWORD '*0000000000000000000000000000000000000000'
CREATE USER joe IDENTIFIED WITH mysql_native_password AS '*0000000000000000000000000000000000000000'
CREATE USER joe REQUIRE SUBJECT '/CN=a' AND ISSUER '/CN=b' AND CIPHER 'c' WITH MAX_QUERIES_PER_HOUR 1
CREATE USER joe REQUIRE SUBJECT '/CN=a' ISSUER '/CN=b'
ALTER USER IF EXISTS joe REQUIRE X509 WITH MAX_CONNECTIONS_PER_HOUR 3 MAX_UPDATES_PER_HOUR 4
ALTER USER joe PASSWORD EXPIRE
ALTER USER joe PASSWORD EXPIRE NEVER ACCOUNT LOCK
ALTER USER 'joe'@'%' PASSWORD EXPIRE INTERVAL 90 DAY
ALTER USER CURRENT_USER() IDENTIFIED BY 'x'
DROP USER joe, 'ann'@'localhost'
DROP USER IF EXISTS joe
RENAME USER 'a'@'h' TO 'b'@'h', c TO d
CREATE ROLE r, s
CREATE ROLE IF NOT EXISTS 'o r'
DROP ROLE IF EXISTS r, s
GRANT SELECT ON *.* TO joe
GRANT ALL PRIVILEGES ON `tenant\_1`.* TO 'joe'@'%' WITH GRANT OPTION
GRANT ALL ON * TO joe
GRANT SELECT (a, `b c`), INSERT, UPDATE (a) ON app.t TO joe, ann@localhost
GRANT CREATE TEMPORARY TABLES, LOCK TABLES, SHOW VIEW, GRANT OPTION ON app.* TO joe
GRANT INDEX, ALTER, REFERENCES, TRIGGER ON TABLE t TO joe
GRANT EXECUTE ON PROCEDURE app.p TO joe
GRANT EXECUTE, ALTER ROUTINE ON FUNCTION app.user TO joe
GRANT PROXY ON ''@'' TO 'root'@'localhost' WITH GRANT OPTION
GRANT r, 's'@'%', t@h TO joe, ann
GRANT r TO joe WITH ADMIN OPTION
REVOKE SELECT (a), DELETE ON app.t FROM joe, ann
REVOKE ALL PRIVILEGES, GRANT OPTION FROM joe
REVOKE PROXY ON joe FROM ann@localhost
REVOKE r, s FROM joe
FLUSH PRIVILEGES
FLUSH TABLES
FLUSH NO_WRITE_TO_BINLOG TABLES app.t, u
FLUSH TABLES t WITH READ LOCK
FLUSH TABLES WITH READ LOCK
FLUSH TABLES t FOR EXPORT
FLUSH LOCAL ERROR LOGS, GENERAL LOGS, STATUS, USER_RESOURCES
FLUSH BINARY LOGS
"""
OF_MYSQL: Final = r"""
CREATE USER 'joe'@'%' IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$\'a\\b'
CREATE USER 'joe'@'%' IDENTIFIED WITH 'caching_sha2_password' AS 0x244124 DEFAULT ROLE `r`@`%`,`s`@`%` REQUIRE SSL
CREATE USER joe IDENTIFIED BY RANDOM PASSWORD PASSWORD HISTORY 5 PASSWORD REUSE INTERVAL 10 DAY PASSWORD REQUIRE CURRENT
CREATE USER joe PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT DEFAULT COMMENT 'a''b'
CREATE USER joe FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME UNBOUNDED ATTRIBUTE '{"a": 1}'
CREATE USER joe IDENTIFIED BY 'a' AND IDENTIFIED WITH p AS 'b' AND IDENTIFIED WITH authentication_webauthn
CREATE USER joe IDENTIFIED WITH p INITIAL AUTHENTICATION IDENTIFIED BY RANDOM PASSWORD
ALTER USER joe IDENTIFIED BY 'a' REPLACE 'b' RETAIN CURRENT PASSWORD
ALTER USER joe DISCARD OLD PASSWORD
ALTER USER joe ADD 2 FACTOR IDENTIFIED WITH p AS 'x' ADD 3 FACTOR IDENTIFIED WITH q
ALTER USER joe MODIFY 2 FACTOR IDENTIFIED BY 'x'
ALTER USER joe DROP 3 FACTOR DROP 2 FACTOR
ALTER USER joe 2 FACTOR INITIATE REGISTRATION
ALTER USER joe 2 FACTOR FINISH REGISTRATION SET CHALLENGE_RESPONSE AS 'x'
ALTER USER joe 2 FACTOR UNREGISTER
ALTER USER joe DEFAULT ROLE NONE
ALTER USER joe DEFAULT ROLE ALL
ALTER USER joe PASSWORD_LOCK_TIME 2 PASSWORD REQUIRE CURRENT OPTIONAL
GRANT BACKUP_ADMIN, ROLE_ADMIN ON *.* TO `joe`@`%` WITH GRANT OPTION AS 'root'@'localhost' WITH ROLE ALL EXCEPT r, s
GRANT SELECT ON app.* TO joe AS root@localhost WITH ROLE NONE
GRANT SELECT ON *.* TO joe AS CURRENT_USER() WITH ROLE DEFAULT
GRANT EXECUTE ON LIBRARY app.l TO joe
REVOKE IF EXISTS SELECT ON app.t FROM joe IGNORE UNKNOWN USER
SET PASSWORD FOR joe = 'x' REPLACE 'y' RETAIN CURRENT PASSWORD
SET PASSWORD FOR joe TO RANDOM
SET DEFAULT ROLE r, 's'@'%' TO joe, ann
SET DEFAULT ROLE ALL TO joe
FLUSH RELAY LOGS FOR CHANNEL 'c'
FLUSH OPTIMIZER_COSTS
"""
OF_MARIADB: Final = """
CREATE OR REPLACE USER joe IDENTIFIED VIA unix_socket
CREATE USER joe IDENTIFIED VIA mysql_native_password USING 'invalid' OR ed25519 USING PASSWORD('x') OR unix_socket
CREATE USER joe IDENTIFIED WITH pam AS 'mariadb', ann IDENTIFIED VIA ed25519 BY 'x'
CREATE USER joe WITH MAX_STATEMENT_TIME 2.5 MAX_USER_CONNECTIONS -1 ACCOUNT LOCK PASSWORD EXPIRE
CREATE OR REPLACE ROLE r WITH ADMIN CURRENT_ROLE
CREATE ROLE r WITH ADMIN joe@localhost
GRANT USAGE ON *.* TO joe IDENTIFIED BY PASSWORD '*00' REQUIRE SSL WITH GRANT OPTION MAX_USER_CONNECTIONS 3
GRANT BINLOG REPLAY, DELETE VERSIONING ROWS, REPLICATION SLAVE ADMIN ON *.* TO PUBLIC
GRANT EXECUTE ON PACKAGE BODY app.p TO joe
GRANT SHOW CREATE ROUTINE ON app.* TO joe
GRANT r TO CURRENT_ROLE()
GRANT SELECT ON function TO joe
REVOKE ADMIN OPTION FOR r FROM joe
SET PASSWORD FOR 'joe'@'%'='*0000000000000000000000000000000000000000'
SET PASSWORD FOR joe = PASSWORD('x')
SET PASSWORD FOR 'joe'@'%'=''
SET DEFAULT ROLE 'r' FOR 'joe'@'%'
SET DEFAULT ROLE NONE FOR joe
SET STATEMENT max_statement_time = 1 FOR GRANT SELECT ON app.* TO joe
FLUSH BINARY LOGS DELETE_DOMAIN_ID=(1, 2)
FLUSH BINARY LOGS DELETE_DOMAIN_ID = ()
FLUSH RELAY LOGS 'c'
FLUSH QUERY_RESPONSE_TIME_READ
"""
LOGGED: Final = [
    *((flavor, sql) for sql in OF_BOTH.strip().splitlines() for flavor in Flavor),
    *((Flavor.MYSQL, sql) for sql in OF_MYSQL.strip().splitlines()),
    *((Flavor.MARIADB, sql) for sql in OF_MARIADB.strip().splitlines()),
]
BEHIND: Final = (
    ", PASSWORD FOR root@localhost = ''",
    ", @a = app.f(), @b = ''",
    ", sql_select_limit = 0",
    " app.f()",
    ", (SELECT 1 FROM mysql.user)",
    "; DROP TABLE t",
    " @a := 1",
    ") ON other.secret TO joe",
    " 'x' 'y'",
    " UNION SELECT 1",
)


@pytest.mark.parametrize(("flavor", "sql"), LOGGED)
def test_what_servers_log_about_accounts_is_read(flavor: Flavor, sql: str) -> None:
    facts = analyze(sql, database="d", flavor=flavor)
    assert (facts.kind, facts.reason, facts.commits_implicitly) == (StatementKind.GLOBAL, None, True)


@pytest.mark.parametrize(("flavor", "sql"), LOGGED)
def test_nothing_stands_behind_a_statement_about_an_account(flavor: Flavor, sql: str) -> None:
    for behind in BEHIND:
        if sql.startswith("FLUSH") and behind == " 'x' 'y'":
            continue  # the name of a connection, of which FLUSH may have one
        facts = analyze(sql + behind, database="d", flavor=flavor)
        assert facts.kind is StatementKind.UNKNOWN, sql + behind
        assert facts.commits_implicitly, sql + behind


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SET PASSWORD FOR 'joe'@'%'='', password for 'root'@'localhost'=''", ","),
        ("SET PASSWORD FOR joe = CONCAT('a', 'b')", "CONCAT"),
        ("SET PASSWORD FOR joe = (SELECT 1)", "("),
        ("SET PASSWORD FOR joe = @a", "@a"),
        ("SET PASSWORD FOR app.f() = 'x'", "."),
        ("GRANT SELECT (a) TO joe", "TO"),
        ("GRANT SELECT ON app.t.u TO joe", "."),
        ("GRANT SELECT ON app.f() TO joe", "("),
        ("GRANT SELECT ON a.b TO joe()", "("),
        ("CREATE USER joe IDENTIFIED BY app.f()", "app"),
        ("CREATE USER joe IDENTIFIED", ""),
        ("FLUSH TABLES app.f()", "("),
        ("RENAME USER a", ""),
    ],
)
def test_the_refusal_says_where_reading_stopped(sql: str, word: str) -> None:
    facts = analyze(sql, database="d", flavor=Flavor.MARIADB)
    assert facts.kind is StatementKind.UNKNOWN
    assert last_word(sql, database="d", dialect=Dialect(Flavor.MARIADB)) == word


def test_which_statements_are_about_accounts_is_told_by_their_first_words() -> None:
    for _, sql in LOGGED:
        if not sql.startswith("SET STATEMENT"):
            assert is_about_accounts(sql.upper().replace(",", " ").split()), sql
    for sql in ("SET GLOBAL X", "SET X", "CREATE TABLE USER", "DROP OR REPLACE TABLE", "INSERT INTO T", "", "CREATE"):
        assert not is_about_accounts(sql.split()), sql
