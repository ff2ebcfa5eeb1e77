"""DROPs behind a window's end of temporary tables that a connection of before the channel has used in it."""

from __future__ import annotations

from binlane.model import TableKey
from binlane.source.older_tables import OlderTables

SESSION = (7, 3)
SMALL, LARGE = TableKey("a", "orders"), TableKey("a", "Orders")


def behind(*used: TableKey) -> OlderTables:
    inside = OlderTables(9)
    inside.take_use(SESSION, used)
    return inside.behind()


def test_a_drop_is_told_as_it_was_logged_and_may_be_that_of_another_spelling() -> None:
    tables = behind(LARGE)
    tables.take_definition(SESSION, None, [SMALL])
    assert (tables.dropped, tables.waits) == ([(SESSION, SMALL)], False)


def test_of_two_spellings_the_drop_of_one_leaves_the_other() -> None:
    tables = behind(SMALL, LARGE)
    tables.take_definition(SESSION, None, [SMALL])
    assert (tables.dropped, tables.waits) == ([(SESSION, SMALL)], True)
    tables.take_definition(SESSION, None, [LARGE])
    assert (tables.dropped, tables.waits) == ([(SESSION, SMALL), (SESSION, LARGE)], False)


def test_a_table_that_is_made_behind_the_end_is_the_one_that_is_dropped() -> None:
    tables = behind(LARGE)
    tables.take_definition(SESSION, SMALL, [])
    tables.take_definition(SESSION, None, [SMALL])
    assert (tables.dropped, tables.waits) == ([], False)
