"""Foreign keys of other databases into one that is replaced, also those that the catalogue does not show, and the way
back where tables cannot change places."""

from __future__ import annotations

from typing import Any, cast

import pymysql
import pytest

from binlane.bootstrap.definition_copy import Definition
from binlane.bootstrap.sessions import Session
from binlane.errors import TargetError
from binlane.model import Flavor
from binlane.restore import replacement
from binlane.restore.replacement import _foreign_keys, give_back

STORED = [
    ("shop/child", "shop/parent", "shop/own"),
    ("crm/orders", "shop/parent", "crm/f"),
    ("crm/lines", "crm/orders", "crm/g"),
    ("shop@002dx/t", "shop@002dx/u", "shop@002dx/h"),
    ("Shop/t", "Shop/u", "Shop/i"),
]


class Catalogue:
    """A server whose catalogue shows the account nothing of another database."""

    def __init__(self, flavor: Flavor) -> None:
        self.flavor = flavor

    def texts(self, query: str) -> list[tuple[Any, ...]]:
        view = "innodb_foreign" if self.flavor is Flavor.MYSQL else "innodb_sys_foreign"
        return STORED if query.endswith(f"FROM information_schema.{view}") else []


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    ("databases", "expected"),
    [
        (["shop"], [("crm", "orders", "f", "shop")]),
        (["shop", "crm"], []),
        (["crm"], []),
        (["shop-x"], []),
    ],
)
def test_a_foreign_key_that_only_innodb_shows_is_one(
    flavor: Flavor, databases: list[str], expected: list[tuple[str, ...]]
) -> None:
    assert _foreign_keys(cast(Session, Catalogue(flavor)), databases) == expected


class Waiting:
    """A server on which a report keeps one table."""

    flavor = Flavor.MARIADB

    def __init__(self, kept: str) -> None:
        self.kept, self.there = kept, list[str]()

    def execute(self, statement: str | bytes) -> int:
        text = statement.decode() if isinstance(statement, bytes) else statement
        words = text.split()
        if words[0] == "CREATE":
            if self.kept in text:
                raise pymysql.err.OperationalError(1205, "Lock wait timeout exceeded; try restarting transaction")
            self.there.append(words[2])
        return 0


def test_what_was_dropped_is_made_again_behind_what_has_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "make_again", lambda session, each: session.execute(each.statement))
    live = [
        Definition("TRIGGER", "app", "first", b"CREATE TRIGGER first ON busy"),
        Definition("TRIGGER", "app", "second", b"CREATE TRIGGER second ON idle"),
        Definition("EVENT", "app", "nightly", b"CREATE EVENT nightly"),
    ]
    server = Waiting("busy")
    with pytest.raises(TargetError, match=r"^no RENAME\. The live databases lack .*: trigger app\.first; `binlane res"):
        give_back(cast(Session, server), live, TargetError("no RENAME"))
    assert server.there == ["nightly", "second"]
    server = Waiting("nothing")
    give_back(cast(Session, server), live, TargetError("no RENAME"))
    assert server.there == ["nightly", "first", "second"]
