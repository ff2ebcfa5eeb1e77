"""A query of binlane's own has a hint behind the user's table that it reads, and nothing else of it changes."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.sessions.table_hint import hinted_table

HINT: Final = " USE INDEX FOR GROUP BY ()"
QUERIES: Final = {
    "SELECT COUNT(*) FROM `a`.`t`": ("SELECT COUNT(*) FROM `a`.`t`{}", "`a`.`t`"),
    "SELECT COALESCE(`x FROM ``a``.``t```, 'FROM `a`.`t`', \"FROM `a`.`t`\") FROM `a``b`.`c` WHERE 1": (
        "SELECT COALESCE(`x FROM ``a``.``t```, 'FROM `a`.`t`', \"FROM `a`.`t`\") FROM `a``b`.`c`{} WHERE 1",
        "`a``b`.`c`",
    ),
    # a value, whatever the sql_mode says of its backslash
    "(SELECT 1 FROM `a`.`t` WHERE c = '\\' AND d = ' FROM `a`.`u`'": (
        "(SELECT 1 FROM `a`.`t`{} WHERE c = '\\' AND d = ' FROM `a`.`u`'",
        "`a`.`t`",
    ),
    "SELECT 1 FROM `a`.`t` FOR SYSTEM_TIME ALL": ("SELECT 1 FROM `a`.`t` FOR SYSTEM_TIME ALL{}", "`a`.`t`"),
    "SELECT 1 FROM `a`.`b``c` USE INDEX () LIMIT 0": None,
    "SELECT 1 FROM `a`.`t` FORCE INDEX (PRIMARY) WHERE 1 FOR UPDATE": None,
    "SELECT 1 FROM binlane.`databases`": None,
    "SELECT `t`.`c` FROM information_schema.tables AS t": None,
    "DELETE FROM `a`.`t`": None,
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_table_of_a_user_is_read_as_a_table_alone(query: str) -> None:
    expected = QUERIES[query]
    found = (query, "") if expected is None else (expected[0].format(HINT), expected[1])
    assert hinted_table(query) == found
