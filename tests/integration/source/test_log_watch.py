"""An idle source is asked for its log's end alone, by one connection, and whatever else happens counts as growth."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from binlane.source.archive import ArchiveSource
from binlane.source.log_watch import LogWatch
from tests.integration.source.helpers import fill, live, run

if TYPE_CHECKING:
    from lab.servers import PrivateServer


def logins(server: PrivateServer) -> list[int]:
    """The ids of the connections that the server has, without the asking one."""
    return [row[0] for row in server.query("SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()")]


def test_a_server_is_asked_by_a_connection_that_stays(own_server: PrivateServer) -> None:
    fill(own_server, 2)
    source = live(own_server)
    with contextlib.closing(LogWatch(source, source.state())) as watch:
        before = set(logins(own_server))
        assert not watch.has_grown()
        [number] = set(logins(own_server)) - before
        assert not watch.has_grown()
        assert set(logins(own_server)) - before == {number}
        run(own_server, f"KILL {number}")
        assert watch.has_grown(), "whoever reads the source says what has happened"
        assert not watch.has_grown(), "and the next look has a connection of its own"
        fill(own_server, 1)
        assert watch.has_grown()
        watch.state = source.state()
        run(own_server, "FLUSH BINARY LOGS")
        assert watch.has_grown()
    own_server.kill()
    assert watch.has_grown()


def test_files_of_an_archive_are_looked_at(mariadb_archive: Path, tmp_path: Path) -> None:
    *older, newest = sorted(mariadb_archive.iterdir())
    for file in older:
        shutil.copy(file, tmp_path)
    source = ArchiveSource(str(tmp_path))
    watch = LogWatch(source, source.state())
    assert not watch.has_grown()
    shutil.copy(newest, tmp_path)
    assert watch.has_grown()
