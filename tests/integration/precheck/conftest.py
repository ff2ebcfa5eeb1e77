"""One server a family, with nothing in it but what a test makes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from binlane.model import Flavor
from lab.servers import PrivateServer


@pytest.fixture(params=[Flavor.MARIADB, Flavor.MYSQL])
def server(request: pytest.FixtureRequest, clean_databases: Callable[[PrivateServer], None]) -> PrivateServer:
    """Each family in turn; MySQL is skipped where there is none."""
    found: PrivateServer = request.getfixturevalue(f"{request.param}_target")
    clean_databases(found)
    return found
