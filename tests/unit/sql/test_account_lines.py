"""Whom a line is about that a server shows of an account."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.model import Flavor
from binlane.sql.account_lines import About, ShownAccounts

MARIADB: Final = ShownAccounts(Flavor.MARIADB, {"outer_r", "inner_r"})
MYSQL: Final = ShownAccounts(Flavor.MYSQL)
OWN: Final = (
    (
        MARIADB,
        "CREATE USER `u`@`h` IDENTIFIED BY PASSWORD '*6BB4' REQUIRE SSL WITH MAX_STATEMENT_TIME 1.5",
    ),
    (MARIADB, "CREATE USER 'u'@'h' IDENTIFIED VIA ed25519 USING 'a, b' OR unix_socket"),
    (
        MYSQL,
        "CREATE USER `u`@`h` IDENTIFIED WITH 'caching_sha2_password' AS 0x2441 DEFAULT ROLE `r`@`%`,`s`@`10.%` REQUIRE "
        """NONE PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK PASSWORD HISTORY 3 ATTRIBUTE '{"a": [1, 2]}'""",
    ),
    (MYSQL, "CREATE USER `u`@`h` IDENTIFIED WITH 'sha' AS 'x' AND IDENTIFIED WITH 'y' DEFAULT ROLE `r`@`%`"),
    (MYSQL, "GRANT SELECT, INSERT (`to`, `from`) ON `a`.`to` TO `u`@`h` WITH GRANT OPTION"),
    (MYSQL, "GRANT `r`@`%`,`s`@`%` TO `u`@`h` WITH ADMIN OPTION"),
    (MYSQL, "GRANT PROXY ON ``@`` TO `u`@`h` WITH GRANT OPTION"),
    (MYSQL, "REVOKE SELECT ON `mysql`.* FROM `u`@`h`"),
    (MYSQL, "GRANT EXECUTE ON PROCEDURE `a`.`p` TO `u`@`h`"),
    (MARIADB, "GRANT SELECT ON *.* TO `u`@`h` IDENTIFIED BY PASSWORD '*6BB4' REQUIRE SSL WITH MAX_USER_CONNECTIONS 3"),
    (MARIADB, "CREATE USER `u`@`h` WITH MAX_USER_CONNECTIONS -1"),
    (MARIADB, "GRANT USAGE ON *.* TO `u`@`h` IDENTIFIED BY PASSWORD '*6' WITH MAX_USER_CONNECTIONS -1 GRANT OPTION"),
    (MARIADB, "GRANT USAGE ON *.* TO 'u'@'h'"),
    (MARIADB, "GRANT `inner_r` TO `u`@`h`"),
    (MARIADB, "SET DEFAULT ROLE `inner_r` FOR `u`@`h`"),
    (MARIADB, "GRANT EXECUTE ON PACKAGE BODY `a`.`p` TO `u`@`h`"),
    (MARIADB, r"GRANT SELECT ON `bin\_lane`.* TO `u`@`h`"),
    (MARIADB, "GRANT SELECT ON `bin%`.* TO `u`@`h`"),
)
OTHERS: Final = (
    "",
    "GRANT ALL",
    "DROP DATABASE a",
    "SET GLOBAL max_connections = 77",
    "GRANT USAGE ON *.* TO `admin`@`%` IDENTIFIED BY 'mine'",
    "GRANT USAGE ON *.* TO `u`@`%`",
    "GRANT USAGE ON *.* TO `u`",
    "GRANT USAGE ON *.* TO u@h",
    "GRANT USAGE ON *.* TO `u`@`h`, `admin`@`%` IDENTIFIED BY 'mine'",
    "GRANT USAGE ON *.* TO `u`@`h` IDENTIFIED BY 'a', `admin`@`%` IDENTIFIED BY 'mine'",
    "GRANT USAGE ON *.* TO `u`@`h` WITH MAX_USER_CONNECTIONS -1, `admin`@`%` IDENTIFIED BY 'mine'",
    "GRANT USAGE ON *.* TO `admin`@`%`, `u`@`h`",
    "GRANT USAGE ON *.* TO CURRENT_USER",
    "GRANT USAGE ON * TO `u`@`h`",
    "GRANT ALL ON a.to TO `admin`@`%`",
    "GRANT ALL ON *.* TO /*!99999 `u`@`h` REQUIRE SUBJECT */ `admin`@`%`",
    "GRANT ALL ON *.* TO `u`@`h` -- x",
    "GRANT ALL ON *.* TO `u`@`h`; DROP DATABASE a",
    "GRANT ALL ON *.* TO `u`@`h` AS `admin`@`%` WITH ROLE ALL",
    "GRANT `r`@`%` TO `admin`@`%`",
    "REVOKE ALL ON *.* FROM `dba`@`%`",
    "REVOKE ALL ON *.* FROM `u`@`h`, `dba`@`%`",
    "SET DEFAULT ROLE NONE FOR `dba`@`%`",
    "SET DEFAULT ROLE `r` FOR `u`@`h`, GLOBAL max_connections = 77",
    "SET DEFAULT ROLE `r` TO `u`@`h`",
    "CREATE OR REPLACE USER `u`@`h`",
    "CREATE USER IF NOT EXISTS `u`@`h`",
    "CREATE USER `v`@`h`",
    "CREATE USER `u`@`h` IDENTIFIED BY 'a', `v`@`h`",
    "CREATE USER `u`@`h` DEFAULT ROLE `r`@`%` REQUIRE NONE, `v`@`h`",
    "CREATE ROLE `r`",
    "ALTER USER `u`@`h` IDENTIFIED BY 'x'",
    "GRANT SELECT ON `a`.* TO `u`@`h",
)


@pytest.mark.parametrize(("lines", "sql"), OWN)
def test_a_line_of_the_account_itself(lines: ShownAccounts, sql: str) -> None:
    assert lines.about(sql, "u", "h") is About.ACCOUNT


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("sql", OTHERS)
def test_a_line_of_anybody_else(flavor: Flavor, sql: str) -> None:
    assert ShownAccounts(flavor, {"inner_r"}).about(sql, "u", "h") is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("GRANT ALL PRIVILEGES ON `hr`.* TO `outer_r`", About.ACCOUNT),
        ("GRANT `inner_r` TO `outer_r` WITH ADMIN OPTION", About.ACCOUNT),
        ("GRANT ALL PRIVILEGES ON `hr`.* TO `inner_r`", About.ROLE),
        ("GRANT SELECT ON `hr`.* TO PUBLIC", About.ROLE),
        ("GRANT SELECT ON `hr`.* TO `PUBLIC`", About.ROLE),
        ("GRANT SELECT ON `hr`.* TO inner_r", None),
        ("GRANT SELECT ON `hr`.* TO `boss_r`", None),
        ("GRANT SELECT ON `hr`.* TO `outer_r`@`%`", None),
    ],
)
def test_a_line_of_a_role(sql: str, expected: About | None) -> None:
    assert MARIADB.about(sql, "outer_r", None) is expected
    assert MYSQL.about("GRANT SELECT ON `hr`.* TO `inner_r`@`%`", "outer_r", "%") is None


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    "on",
    ["`binlane`.*", "`BinLane`.*", "`binlane`.`channels`", r"`bin\lane`.*", "PROCEDURE `binlane`.`p`"],
)
def test_a_line_about_the_state(flavor: Flavor, on: str) -> None:
    assert ShownAccounts(flavor).about(f"GRANT SELECT ON {on} TO `u`@`h`", "u", "h") is About.STATE
    assert ShownAccounts(flavor).about(f"REVOKE SELECT ON {on} FROM `u`@`h`", "u", "h") is About.STATE


def test_names_are_read_by_their_quotes() -> None:
    assert MARIADB.about("GRANT USAGE ON *.* TO `o'x`@`10.%`", "o'x", "10.%") is About.ACCOUNT
    assert MARIADB.about("GRANT USAGE ON *.* TO 'o\\'x'@'10.%'", "o'x", "10.%") is About.ACCOUNT
    assert MYSQL.about("GRANT USAGE ON *.* TO `a``b`@``", "a`b", "") is About.ACCOUNT


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE USER `u`@`h` IDENTIFIED BY PASSWORD '{}'",
        "CREATE USER 'u'@'h' IDENTIFIED BY PASSWORD '{}' REQUIRE SSL",
        "GRANT USAGE ON *.* TO `u`@`h` IDENTIFIED BY PASSWORD '{}'",
        "GRANT SELECT, INSERT ON *.* TO `u`@`h` IDENTIFIED BY PASSWORD '{}' WITH GRANT OPTION",
    ],
)
@pytest.mark.parametrize("password", ["',password for 'root'@'localhost'='", "' -- ", "\\", "'", "',`v`@`h"])
def test_a_password_without_escapes_is_its_account_s_alone(sql: str, password: str) -> None:
    text = sql.format(password)
    assert MARIADB.about(text, "u", "h") is About.UNREAD
    assert MARIADB.about(text, "v", "h") is None
    assert MARIADB.about(text, "u", None) is None
    assert MYSQL.about(text, "u", "h") is None
