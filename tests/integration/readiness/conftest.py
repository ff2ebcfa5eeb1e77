"""Channels between servers of one family whose source holds everything that asks for a privilege of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.bootstrap.conftest import clean_servers, either, fresh, mariadb
from tests.integration.bootstrap.test_bootstrap import make_objects
from tests.integration.window.conftest import Channel, run_on

__all__ = ["clean_servers", "either", "limited", "mariadb"]

SOURCE, TARGET = "test_source", "test_target"


@pytest.fixture
def mysql(request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]) -> Channel:
    """A channel between servers of MySQL, with accounts that may do everything."""
    return fresh(request, Flavor.MYSQL, tmp_path, clean_servers)


@pytest.fixture
def limited(either: Channel) -> Iterator[Channel]:
    """A channel whose two accounts hold nothing yet, and a source with objects, definers and accounts."""
    make_objects(either)
    run_on(
        either.source,
        "CREATE USER test_ann IDENTIFIED BY 'ann'",
        "CREATE ROLE shop_clerk",
        "GRANT SELECT, INSERT ON shop.* TO shop_clerk",
        "GRANT shop_clerk TO test_ann",
        "GRANT PROCESS ON *.* TO test_ann",
        "CREATE DEFINER = test_ann VIEW shop.of_ann AS SELECT id FROM shop.parent",
        "CREATE DEFINER = test_ann EVENT shop.ev_ann ON SCHEDULE EVERY 1 DAY DO DELETE FROM shop.bare WHERE a = 8",
    )
    for connection, server, user in (
        ("source_server", either.source, SOURCE),
        ("target_server", either.target, TARGET),
    ):
        run_on(server, f"CREATE USER {user} IDENTIFIED BY '{server.password}'", log=False)
        either.connect(connection, server, user)
    yield either
    for server in (either.source, either.target):
        run_on(server, "DROP ROLE IF EXISTS shop_clerk", log=False)
