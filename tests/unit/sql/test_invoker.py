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
        (b"INSERT INTO t VALUES ('ALTER EVENT e')", b"INSERT INTO t VALUES ('ALTER EVENT e')"),
    ],
)
def test_the_account_of_the_source_is_written_out(sql: bytes, expected: bytes) -> None:
    assert as_invoked(sql, ANN, MARIADB, MARIADB) == expected


@pytest.mark.parametrize("sql", [b"ALTER EVENT e ENABLE", b"GRANT r TO CURRENT_USER()", b"CREATE ROLE r"])
def test_an_account_that_the_log_does_not_tell_is_refused(sql: bytes) -> None:
    with pytest.raises(ValueError, match="whose account the log does not name"):
        as_invoked(sql, None, MARIADB, MARIADB)


def test_a_role_of_mysql_has_no_administrator() -> None:
    assert as_invoked(b"create role r", None, MYSQL, MYSQL) == b"create role r"


def test_a_name_with_quotes_stays_a_name() -> None:
    assert as_invoked(b"GRANT r TO CURRENT_USER", ("a'b", "%"), MYSQL, MYSQL) == b"GRANT r TO 'a''b'@'%'"
