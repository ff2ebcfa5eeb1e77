"""Channels between empty targets and sources that hold something, before `binlane init`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, clean_servers, undone

__all__ = ["clean_servers", "either", "mariadb", "undone"]


def fresh(
    request: pytest.FixtureRequest, flavor: Flavor, folder: Path, clean: Callable[[PrivateServer], None]
) -> Channel:
    source, target = (request.getfixturevalue(f"{flavor}_{part}") for part in ("source", "target"))
    clean(source)
    clean(target)
    return Channel(source, target, folder)


@pytest.fixture(params=list(Flavor))
def either(request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]) -> Channel:
    """Of each family in turn."""
    return fresh(request, request.param, tmp_path, clean_servers)


@pytest.fixture
def mariadb(request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]) -> Channel:
    """Of MariaDB."""
    return fresh(request, Flavor.MARIADB, tmp_path, clean_servers)
