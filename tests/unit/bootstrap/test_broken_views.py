"""Stand-ins for what a broken view needs: whose databases they may be in, and the character set of the view's text."""

from __future__ import annotations

from typing import cast

import pytest

from binlane.bootstrap.broken_views import ViewText, make_broken_views
from binlane.bootstrap.definition_copy import Definition
from binlane.bootstrap.sessions import Session
from binlane.model import Flavor, TableKey
from binlane.sql.parse.lexer import Unreadable

_HEAD = b"CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW `app`.`v` AS select "


class Target:
    """A session of a target that has some databases, and nothing in them."""

    def __init__(self, flavor: Flavor) -> None:
        self.flavor, self.said = flavor, list[str]()

    def texts(self, query: str) -> list[tuple[str, ...]]:
        return [("app",), ("Other",), ("binlane",), ("mysql",)] if "schemata" in query else []

    def execute(self, statement: str) -> int:
        self.said.append(statement)
        return 0


def _view(text: bytes, client: str = "utf8mb4", collation: str = "utf8mb4_general_ci") -> Definition:
    return Definition("VIEW", "app", "v", _HEAD + text, client, collation, broken=True)


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    ("text", "database"),
    [
        (b"`binlane`.`x`.`a` AS `a` from `binlane`.`x`", "binlane"),
        (b"`a` AS `a` from `mysql`.`fresh`", "mysql"),
        (b"`a` AS `a` from `new`.`t` join `MySQL`.`fresh`", "MySQL"),
        (b"`a` AS `a` from `Other`.`t`", "Other"),
        (b"`a` AS `a` from `other`.`t`", "other"),
        (b"`Other`.`is_admin`(1) AS `a`", "Other"),
    ],
)
def test_a_view_chooses_no_name_in_the_database_of_somebody_else(text: bytes, database: str, flavor: Flavor) -> None:
    """A function of that name would have been called by programs of that database, with binlane's privileges."""
    target = Target(flavor)
    made = make_broken_views(cast(Session, target), "orders", [_view(text)], ())
    [note] = made.notes
    assert note.startswith(f"view app.v: expected that the target has all that the view needs of database {database},")
    assert "the view was not created: copy the database that it needs, too" in note
    assert target.said == []


def test_a_view_is_read_in_its_own_client_s_character_set() -> None:
    r"""In UTF-8 the name ends at the letter's second byte, and what follows is a comment."""
    text = b"1 AS `\x81` #`,`app`.`f`(1) AS `x` from `app`.`t`"
    found = ViewText.of(_view(text, "gbk", "gbk_chinese_ci"), Flavor.MYSQL)
    assert found.tables == {TableKey("app", "t")}
    assert dict(found.functions) == {("app", "f"): 1}
    with pytest.raises(Unreadable):
        ViewText.of(_view(text, "utf16", "utf16_bin"), Flavor.MYSQL)
