"""Texts with comments, quotes and characters of every kind, asked of real servers of both families and four series."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.security.readings import sweep

TEXTS = int(os.environ.get("BINLANE_READINGS", "10000"))
SERVERS = ("mysql", "mariadb", "10.5", "11.8")


@requires_mysql
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("source", SERVERS)
def test_any_text_is_read_alike_or_refused(
    source: str, seed: int, request: pytest.FixtureRequest, server_of: Callable[[str, str], PrivateServer]
) -> None:
    def server(name: str) -> PrivateServer:
        found: PrivateServer = (
            request.getfixturevalue(f"{name}_source") if name in ("mysql", "mariadb") else server_of(name, "source")
        )
        return found

    tally = sweep(server(source), [server(name) for name in SERVERS if name != source], seed, TEXTS)
    assert tally.wrong == []
    assert tally.resolved > TEXTS / 20
