"""Names of a statement in other client character sets than its own."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, SessionContext
from binlane.precheck.statements.other_modes import read_in_another_set
from binlane.sql.other_readings import SETS

KNOWN = frozenset({"of ä view", "of ã¤ view", "中", "t\u00e3"})


@pytest.mark.parametrize(
    ("sql", "charset", "is_found"),
    [
        ("UPDATE `of ä view` SET n = 1", "utf8mb4", True),
        ("UPDATE `of ä view` SET n = 1".encode(), "latin1", True),
        ("UPDATE t SET `ä` = 'ä'", "utf8mb4", False),
        # the letter's second byte is a blank in latin1
        ("UPDATE tà SET n = 1", "utf8mb4", True),
    ],
)
def test_a_name_is_another_table_s_in_another_set(sql: str | bytes, charset: str, is_found: bool) -> None:
    text = sql if isinstance(sql, bytes) else sql.encode()
    for flavor in Flavor:
        found = read_in_another_set(text, SessionContext(charset_client=SETS[charset]), flavor, KNOWN)
        assert (found is not None) is is_found


@pytest.mark.parametrize("charset", SETS)
def test_a_name_of_its_own_set_is_no_other(charset: str) -> None:
    text = "UPDATE `of ä view` SET n = 1".encode("utf-8" if charset == "utf8mb4" else "latin-1")
    context = SessionContext(charset_client=SETS["utf8mb4" if charset == "utf8mb4" else "latin1"])
    for flavor in Flavor:
        assert read_in_another_set(text, context, flavor, {"of ä view"}) is None
