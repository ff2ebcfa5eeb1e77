"""Statements that mean the account that runs them: the target runs them with the source's account in their text."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.invoker import as_invoked

ANN = ("ann", "10.0.0.%")
MARIADB, MYSQL = Flavor.MARIADB, Flavor.MYSQL


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"alter event e comment 'x'", b"alter DEFINER=`ann`@`10.0.0.%` event e comment 'x'"),
        (b"ALTER DEFINER=CURRENT_USER() EVENT e DISABLE", b"ALTER DEFINER=`ann`@`10.0.0.%` EVENT e DISABLE"),
        (b"ALTER DEFINER=`bob`@`%` EVENT e DISABLE", b"ALTER DEFINER=`bob`@`%` EVENT e DISABLE"),
        (b"grant select on d.* to current_user()", b"grant select on d.* to 'ann'@'10.0.0.%'"),
        (b"GRANT SELECT ON `current_user`.* TO CURRENT_USER", b"GRANT SELECT ON `current_user`.* TO 'ann'@'10.0.0.%'"),
        (b"RENAME USER current_user ( ) TO 'current_user'@'%'", b"RENAME USER 'ann'@'10.0.0.%' TO 'current_user'@'%'"),
        (b"create role r", b"create role r WITH ADMIN 'ann'@'10.0.0.%'"),
        (b"CREATE ROLE r WITH ADMIN CURRENT_USER", b"CREATE ROLE r WITH ADMIN 'ann'@'10.0.0.%'"),
        (b"CREATE ROLE r WITH ADMIN 'bob'@'%'", b"CREATE ROLE r WITH ADMIN 'bob'@'%'"),
        (
            b"CREATE DEFINER=`bob`@`%` VIEW v AS SELECT CURRENT_USER()",
            b"CREATE DEFINER=`bob`@`%` VIEW v AS SELECT CURRENT_USER()",
        ),
        (b"CREATE ROLE r -- and more", b"CREATE ROLE r WITH ADMIN 'ann'@'10.0.0.%'"),
        (b"CREATE ROLE `a;b` # WITH ADMIN x", b"CREATE ROLE `a;b` WITH ADMIN 'ann'@'10.0.0.%'"),
        (b"CREATE /* a */ ROLE r; -- c", b"CREATE /* a */ ROLE r WITH ADMIN 'ann'@'10.0.0.%'"),
        (b"CREATE ROLE r WITH /* x */ ADMIN bob /* y */", b"CREATE ROLE r WITH /* x */ ADMIN bob /* y */"),
        (
            b"/* app */ GRANT r TO CURRENT_USER -- CURRENT_USER",
            b"/* app */ GRANT r TO 'ann'@'10.0.0.%' -- CURRENT_USER",
        ),
        (b"-- app\nALTER /* a */ EVENT e ENABLE", b"ALTER /* a */ DEFINER=`ann`@`10.0.0.%` EVENT e ENABLE"),
        (b"--\nGRANT r TO CURRENT_USER (/* nobody */)", b"--\nGRANT r TO 'ann'@'10.0.0.%'"),
        (b"INSERT INTO t VALUES ('ALTER EVENT e')", b"INSERT INTO t VALUES ('ALTER EVENT e')"),
    ],
)
def test_the_account_of_the_source_is_written_out(sql: bytes, expected: bytes) -> None:
    assert as_invoked(sql, ANN, MARIADB, MARIADB) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"GRANT SELECT ON d.* TO CURRENT_ROLE", b"GRANT SELECT ON d.* TO 'boss'"),
        (b"CREATE ROLE r WITH ADMIN current_role()", b"CREATE ROLE r WITH ADMIN 'boss'"),
        (b"ALTER DEFINER = CURRENT_ROLE EVENT e ENABLE", b"ALTER DEFINER=`boss` EVENT e ENABLE"),
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
    assert as_invoked(b"GRANT r TO CURRENT_USER", ("a'b", "%"), MYSQL, MYSQL) == b"GRANT r TO 'a''b'@'%'"
