"""Statements that mean the account that runs them: the target runs them with the source's account in their text."""

from __future__ import annotations

import pytest

from binlane.binlog.types.collations import collation_id
from binlane.model import Flavor, SessionContext
from binlane.sql.invoker import Account
from binlane.sql.invoker import as_invoked as written_out
from binlane.sql.plain_statement import plain

ANN = ("ann", "10.0.0.%")
MARIADB, MYSQL = Flavor.MARIADB, Flavor.MYSQL
PLAIN_BACKSLASHES = SessionContext(sql_mode=0x100000)
ANSI = SessionContext(sql_mode=0x4)


def as_invoked(
    sql: bytes, invoker: Account | None, source: Flavor, target: Flavor, context: SessionContext | None = None
) -> bytes:
    """As the log's decoder does it, behind one reading of the text."""
    context = SessionContext() if context is None else context
    return written_out(plain(sql, context, source), context, invoker, source, target)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"alter event e comment 'x'", b"alter DEFINER=`ann`@`10.0.0.%` event e comment 'x'"),
        (b"ALTER DEFINER=CURRENT_USER() EVENT e DISABLE", b"ALTER DEFINER=`ann`@`10.0.0.%` EVENT e DISABLE"),
        (b"ALTER DEFINER=`bob`@`%` EVENT e DISABLE", b"ALTER DEFINER=`bob`@`%` EVENT e DISABLE"),
        (b"grant select on d.* to current_user()", b"grant select on d.* to `ann`@`10.0.0.%`"),
        (b"GRANT SELECT ON `current_user`.* TO CURRENT_USER", b"GRANT SELECT ON `current_user`.* TO `ann`@`10.0.0.%`"),
        (b"RENAME USER current_user ( ) TO 'current_user'@'%'", b"RENAME USER `ann`@`10.0.0.%` TO 'current_user'@'%'"),
        (b"create role r", b"create role r WITH ADMIN `ann`@`10.0.0.%`"),
        (b"CREATE ROLE r WITH ADMIN CURRENT_USER", b"CREATE ROLE r WITH ADMIN `ann`@`10.0.0.%`"),
        (b"CREATE ROLE r WITH ADMIN 'bob'@'%'", b"CREATE ROLE r WITH ADMIN 'bob'@'%'"),
        (
            b"CREATE DEFINER=`bob`@`%` VIEW v AS SELECT CURRENT_USER()",
            b"CREATE DEFINER=`bob`@`%` VIEW v AS SELECT CURRENT_USER()",
        ),
        (b"CREATE ROLE r -- and more", b"CREATE ROLE r WITH ADMIN `ann`@`10.0.0.%`"),
        (b"CREATE ROLE `a;b` # WITH ADMIN x", b"CREATE ROLE `a;b` WITH ADMIN `ann`@`10.0.0.%`"),
        (b"CREATE /* a */ ROLE r; -- c", b"CREATE   ROLE r WITH ADMIN `ann`@`10.0.0.%`"),
        (b"CREATE ROLE r WITH /* x */ ADMIN bob /* y */", b"CREATE ROLE r WITH   ADMIN bob /* y */"),
        (
            b"/* app */ GRANT r TO CURRENT_USER -- CURRENT_USER",
            b"GRANT r TO `ann`@`10.0.0.%` -- CURRENT_USER",
        ),
        (b"-- app\nALTER /* a */ EVENT e ENABLE", b"ALTER   DEFINER=`ann`@`10.0.0.%` EVENT e ENABLE"),
        (b"--\nGRANT r TO CURRENT_USER (/* nobody */)", b"GRANT r TO `ann`@`10.0.0.%`"),
        (b"INSERT INTO t VALUES ('ALTER EVENT e')", b"INSERT INTO t VALUES ('ALTER EVENT e')"),
    ],
)
def test_the_account_of_the_source_is_written_out(sql: bytes, expected: bytes) -> None:
    assert as_invoked(sql, ANN, MARIADB, MARIADB) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"GRANT SELECT ON d.* TO CURRENT_ROLE", b"GRANT SELECT ON d.* TO `boss`"),
        (b"CREATE ROLE r WITH ADMIN current_role()", b"CREATE ROLE r WITH ADMIN `boss`"),
        (b"ALTER DEFINER = CURRENT_ROLE EVENT e ENABLE", b"ALTER DEFINER = `boss` EVENT e ENABLE"),
        (b"GRANT SELECT ON `current_role`.* TO u", b"GRANT SELECT ON `current_role`.* TO u"),
    ],
)
def test_the_role_of_the_source_is_written_out(sql: bytes, expected: bytes) -> None:
    assert as_invoked(sql, ("boss", ""), MARIADB, MARIADB) == expected


def test_a_role_is_no_account_and_an_account_no_role() -> None:
    for sql, invoker in ((b"GRANT r TO CURRENT_ROLE", ANN), (b"GRANT r TO CURRENT_USER", ("boss", ""))):
        with pytest.raises(ValueError, match="whose account the log does not name"):
            as_invoked(sql, invoker, MARIADB, MARIADB)
    # on MySQL it is an account's name
    assert as_invoked(b"GRANT r TO current_role", ANN, MYSQL, MYSQL) == b"GRANT r TO current_role"


@pytest.mark.parametrize(
    "sql", [b"GRANT r TO CURRENT_ROLE", b"ALTER EVENT e ENABLE", b"GRANT r TO CURRENT_USER()", b"CREATE ROLE r"]
)
def test_an_account_that_the_log_does_not_tell_is_refused(sql: bytes) -> None:
    with pytest.raises(ValueError, match="whose account the log does not name"):
        as_invoked(sql, None, MARIADB, MARIADB)


def test_a_role_of_mysql_has_no_administrator() -> None:
    assert as_invoked(b"create role r", None, MYSQL, MYSQL) == b"create role r"


def test_a_name_with_quotes_stays_a_name() -> None:
    assert as_invoked(b"GRANT r TO CURRENT_USER", ("a'b`c", "%"), MYSQL, MYSQL) == b"GRANT r TO `a'b``c`@`%`"


@pytest.mark.parametrize(
    ("sql", "expected", "context"),
    [
        (rb"REVOKE r FROM 'a\'@'%', CURRENT_USER", rb"REVOKE r FROM 'a\'@'%', `ann`@`10.0.0.%`", PLAIN_BACKSLASHES),
        (rb"REVOKE r FROM 'a\'@%, CURRENT_USER'", rb"REVOKE r FROM 'a\'@%, CURRENT_USER'", SessionContext()),
        (b'GRANT r TO "CURRENT_USER", current_user()', b'GRANT r TO "CURRENT_USER", `ann`@`10.0.0.%`', ANSI),
        (b'GRANT r TO "a""b", CURRENT_USER', b'GRANT r TO "a""b", `ann`@`10.0.0.%`', SessionContext()),
        (b"SET PASSWORD FOR CURRENT_USER() = 'x'", b"SET PASSWORD FOR `ann`@`10.0.0.%` = 'x'", SessionContext()),
        (b"SET DEFAULT ROLE r FOR current_user", b"SET DEFAULT ROLE r FOR `ann`@`10.0.0.%`", SessionContext()),
        (b"ALTER USER CURRENT_USER IDENTIFIED BY 'CURRENT_USER'", b"ALTER USER `ann`@`10.0.0.%` IDENTIFIED BY "
         b"'CURRENT_USER'", SessionContext()),
        (b"CREATE USER u COMMENT 'CURRENT_USER'", b"CREATE USER u COMMENT 'CURRENT_USER'", SessionContext()),
        (b"GRANT SELECT ON d.current_user TO u", b"GRANT SELECT ON d.current_user TO u", SessionContext()),
        (b"GRANT r TO u@current_user", b"GRANT r TO u@current_user", SessionContext()),
        (b"ALTER TABLE user ADD current_role INT", b"ALTER TABLE user ADD current_role INT", SessionContext()),
        (b"SET STATEMENT a=1 FOR ALTER DEFINER=CURRENT_USER EVENT e ENABLE",
         b"ALTER DEFINER=`ann`@`10.0.0.%` EVENT e ENABLE", SessionContext()),
        (b"set statement a=1 for set statement b=2 for GRANT r TO CURRENT_USER", b"GRANT r TO `ann`@`10.0.0.%`",
         SessionContext()),
        (b"SET STATEMENT a=1 FOR ALTER TABLE user ADD event INT",
         b"SET STATEMENT a=1 FOR ALTER TABLE user ADD event INT", SessionContext()),
    ],
)  # fmt: skip
def test_quotes_and_names_are_those_of_the_session(sql: bytes, expected: bytes, context: SessionContext) -> None:
    assert as_invoked(sql, ANN, MARIADB, MARIADB, context) == expected


def test_a_backslash_in_an_account_s_name_stays_one_in_every_mode() -> None:
    for context in (SessionContext(), PLAIN_BACKSLASHES):
        found = as_invoked(b"ALTER EVENT e ENABLE", ("a\\b", "%"), MYSQL, MYSQL, context)
        assert found == b"ALTER DEFINER=`a\\b`@`%` EVENT e ENABLE"


def test_a_name_that_the_session_cannot_spell_is_refused() -> None:
    sql = "GRANT r TO CURRENT_USER, 'ä'".encode("latin-1")
    latin1 = SessionContext(charset_client=collation_id("latin1_swedish_ci", Flavor.MYSQL))
    assert as_invoked(sql, ANN, MYSQL, MYSQL, latin1) == sql.replace(b"CURRENT_USER", b"`ann`@`10.0.0.%`")
    with pytest.raises(ValueError, match="cannot spell"):
        as_invoked(sql, ("ä", "%"), MYSQL, MYSQL, latin1)


def test_values_in_front_of_an_event_that_are_computed_are_refused() -> None:
    with pytest.raises(ValueError, match="SET STATEMENT with a computed value"):
        as_invoked(b"SET STATEMENT a = app.f() FOR ALTER EVENT e ENABLE", ANN, MARIADB, MARIADB)


def test_a_text_with_an_account_that_is_not_read_is_refused() -> None:
    with pytest.raises(ValueError, match="a quote without an end"):
        as_invoked(b"GRANT r TO CURRENT_USER, 'a", ANN, MARIADB, MARIADB)


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    "sql",
    [
        b"SET PASSWORD = '*00'",
        b"set /* x */ password := password('x')",
        b"SET PASSWORD TO RANDOM",
        b"SET DEFAULT ROLE NONE",
        b"SET DEFAULT ROLE `for`",
        b"ALTER USER USER() IDENTIFIED BY 'x'",
        b"ALTER USER IF EXISTS user ( ) ACCOUNT LOCK",
        b"GRANT ALL ON *.* TO a@b, session_user()",
        b"DROP USER system_user()",
    ],
)
def test_an_account_statement_means_no_account_of_the_target_s_session(sql: bytes, flavor: Flavor) -> None:
    """An archive could change the password of the channel's own account."""
    with pytest.raises(ValueError, match="which means the account that runs it, and no server logs"):
        as_invoked(sql, ANN, flavor, flavor)


@pytest.mark.parametrize(
    "sql",
    [
        b"SET PASSWORD FOR 'a'@'b'='*00'",
        b"SET DEFAULT ROLE `r` FOR 'a'@'b'",
        b"SET DEFAULT ROLE ALL TO `a`@`b`",
        b"GRANT EXECUTE ON FUNCTION d.user TO `user`@`b`",
        b"CREATE USER user@b IDENTIFIED BY 'USER()'",
    ],
)
def test_an_account_statement_with_its_account_stays_as_it_is(sql: bytes) -> None:
    assert as_invoked(sql, ANN, MYSQL, MYSQL) == sql
