"""Which one table a statement asks the catalogue for: a lane holds it first, and holds none by half of a name."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.sessions.view_guard import opens_views, table_asked_for

COLUMNS: Final = (
    "SELECT c.x FROM information_schema.columns c WHERE c.table_schema = {} AND c.table_name = {} ORDER BY 1"
)
ASKED: Final = {
    "SHOW CREATE TABLE `a`.`b``c`": "`a`.`b``c`",
    "SHOW FULL COLUMNS FROM `a`.`b`": "`a`.`b`",
    COLUMNS.format("'a'", "'b`c'"): "`a`.`b``c`",
    "SELECT 1 FROM information_schema.tables WHERE table_schema = 'a' AND table_name = 'b'": "`a`.`b`",
    COLUMNS.format(r"'a\'b'", "'c'"): "",
    COLUMNS.format("'a''b'", "'c'"): "",
    COLUMNS.format("'a'", r"'b\n'"): "",
    COLUMNS.format("'a'", "'b''c'"): "",
    "SELECT 1 FROM information_schema.tables WHERE table_schema = 'a' AND table_name = 'b' OR 1": "",
    "SELECT 1 FROM information_schema.key_column_usage WHERE referenced_table_name = 'b'": None,
}


@pytest.mark.parametrize("statement", ASKED)
def test_a_table_is_asked_for_by_its_whole_name(statement: str) -> None:
    assert opens_views(statement)
    assert table_asked_for(statement) == ASKED[statement]
