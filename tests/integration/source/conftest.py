"""Servers of both families; tests of MySQL are skipped where this machine has none."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from binlane.model import Flavor
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.source.helpers import fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLAVORS = [
    pytest.param(Flavor.MARIADB, id="mariadb"),
    pytest.param(Flavor.MYSQL, id="mysql", marks=requires_mysql),
]


@pytest.fixture(scope="module", params=FLAVORS)
def server(request: pytest.FixtureRequest) -> PrivateServer:
    """A server with a binlog that tests only add to."""
    name = "mariadb_source" if request.param is Flavor.MARIADB else "mysql_source"
    found: PrivateServer = request.getfixturevalue(name)
    return found


@pytest.fixture(params=FLAVORS)
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PrivateServer]:
    """A server of the test's own, to be broken."""
    with private_server(tmp_path / "server", request.param, name="own", durable=False) as started:
        yield started


@pytest.fixture(scope="session")
def mariadb_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three closed binlog files of one MariaDB server, with checksums; copy them before you change them."""
    base = tmp_path_factory.mktemp("mariadb_archive")
    with private_server(base / "server", name="archived", durable=False) as started:
        fill(started, 9, flush_every=4)
    folder = base / "archive"
    folder.mkdir()
    for path in sorted((base / "server").glob("binlog.0*[0-9]")):
        shutil.copy(path, folder)
    return folder


@pytest.fixture
def archive_copy(mariadb_archive: Path, tmp_path: Path) -> Path:
    """The files of ``mariadb_archive`` in a folder of the test's own, to be broken."""
    folder = tmp_path / "archive"
    shutil.copytree(mariadb_archive, folder)
    return folder
