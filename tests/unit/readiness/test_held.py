"""What the source holds, judged by the precheck's own rules."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, LogPosition, SessionContext
from binlane.precheck.grants import lacking_for_grants
from binlane.precheck.privileges import parse_grants
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.lexer import Dialect, Token, lex
from tests.unit.precheck.situations import target_of


def statement(sql: str, flavor: Flavor) -> LoggedText:
    tokens, places = list[Token](), list[tuple[int, int]]()
    lex(sql, Dialect(flavor), tokens, places)
    return LoggedText(0, LogPosition("", 0), sql, tokens, SessionContext(), flavor, places)


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
    no_roles: frozenset[str] = frozenset()
    target = target_of(
        Flavor.MARIADB, grant_lines=lines, grants=parse_grants(lines), account="u@h",
        roles=no_roles, granted_roles=no_roles,
    )  # fmt: skip

    found = list(lacking_for_grants(target, [statement(f"GRANT {granted} ON *.* TO x", Flavor.MARIADB)]))

    expected = [f"GRANT {lacking} ON *.* TO 'u'@'h' WITH GRANT OPTION"] if lacking else []
    assert [str(mend) for one in found for mend in one.mend] == expected
