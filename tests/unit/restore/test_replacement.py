"""Foreign keys of other databases into one that is replaced, also those that the catalogue does not show."""

from __future__ import annotations

from typing import Any, cast

import pytest

from binlane.bootstrap.sessions import Session
from binlane.model import Flavor
from binlane.restore.replacement import _foreign_keys

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
