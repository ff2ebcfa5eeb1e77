"""What the source holds, judged by the precheck's own rules."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, LogPosition, SessionContext
from binlane.precheck.account.privileges import parse_grants
from binlane.precheck.target.grants import lacking_for_grants
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.lexer import Dialect, Token, lex
from tests.unit.precheck.situations import target_of


def statement(sql: str, flavor: Flavor) -> LoggedText:
    tokens, places = list[Token](), list[tuple[int, int]]()
    lex(sql, Dialect(flavor), tokens, places)
    return LoggedText(0, LogPosition("", 0), sql, tokens, SessionContext(), flavor, places)


def asked_for(sql: str, flavor: Flavor, lines: tuple[str, ...] = ()) -> list[str]:
    """What mends that ``u@h``, who holds these grants, may not run the statement."""
    no_roles: frozenset[str] = frozenset()
    target = target_of(
        flavor, grant_lines=lines, grants=parse_grants(lines), account="u@h", roles=no_roles, granted_roles=no_roles
    )
    return [str(mend) for one in lacking_for_grants(target, [statement(sql, flavor)]) for mend in one.mend]


@pytest.mark.parametrize(
    ("granted", "held", "lacking"),
    [
        ("SLAVE MONITOR", "PROCESS", "SLAVE MONITOR"),
        ("REPLICA MONITOR", "PROCESS", "SLAVE MONITOR"),
        ("REPLICA MONITOR", "SLAVE MONITOR", ""),
        ("REPLICATION CLIENT", "BINLOG MONITOR", ""),
    ],
)
def test_both_names_of_a_privilege_of_mariadb_are_one(granted: str, held: str, lacking: str) -> None:
    lines = (f"GRANT {held} ON *.* TO `u`@`h` WITH GRANT OPTION",)
    found = asked_for(f"GRANT {granted} ON *.* TO x", Flavor.MARIADB, lines)

    expected = [f"GRANT {lacking} ON *.* TO 'u'@'h' WITH GRANT OPTION"] if lacking else []
    assert found == expected


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("SELECT ON `x``.* TO 'evil'@'%'; -- `.*", "SELECT ON `x``.* TO 'evil'@'%'; -- `.*"),
        ("SELECT ON `a`.`b``c`", "SELECT ON `a`.`b``c`"),
        (r"DROP ON `sh\_op%`.*", r"DROP ON `sh\_op%`.*"),
        ("SELECT (`a b`), INSERT (c) ON a.t", "SELECT (`a b`), INSERT (`c`) ON `a`.`t`"),
    ],
)
def test_names_are_quoted_in_what_mends(given: str, asked: str) -> None:
    for flavor in Flavor:
        assert asked_for(f"GRANT {given} TO x", flavor) == [f"GRANT {asked} TO 'u'@'h' WITH GRANT OPTION"]
