"""Where a log lies and what its files are called: read as its server wrote it, or refused by name."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import MissingLogError, SourceError, SourceIdentityError, UnsupportedEventError
from binlane.model import Flavor
from binlane.source.archive import ArchiveSource
from binlane.source.identity import Start
from binlane.source.proved import proved
from binlane.source.start_position import begin
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.source.helpers import behind, fill, live, purge_to, run, window
from tests.waiting import wait_until

FAMILIES = pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])


def files_of(server: PrivateServer) -> list[Path]:
    return [server.datadir / row[0] for row in server.query("SHOW BINARY LOGS")]


def archived(server: PrivateServer, folder: Path, name: Callable[[str], str] = str) -> ArchiveSource:
    """A copy of the server's log, whose files have other names."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in files_of(server):
        shutil.copy(path, folder / name(path.name))
    return ArchiveSource(str(folder))


NAMES: Final[Mapping[str, Callable[[str], str]]] = {
    "another base": lambda name: name.replace("binlog", "mysql-bin"),
    "another width": lambda name: f"binlog.{int(name[-6:]):04d}",
    "a width of its own": lambda name: f"binlog.{int(name[-6:]):04d}" if name.endswith("2") else name,
    "dots, blanks and letters": lambda name: f"srv one.бин.#?%20*[b]'{name}",
}


@FAMILIES
def test_an_archive_may_name_its_files_otherwise_as_long_as_their_numbers_are_right(
    flavor: Flavor, tmp_path: Path
) -> None:
    with private_server(tmp_path / "server", flavor, durable=False) as server:
        fill(server, 6, flush_every=2)
        source = archived(server, tmp_path / "archive")
        expected = window(source, begin(source, "oldest"), tmp_path / "as it is")
        for what, name in NAMES.items():
            source = archived(server, tmp_path / "archive", name)
            found = window(source, begin(source, "oldest"), tmp_path / what)
            assert [each.blake3 for each in found.segments] == [each.blake3 for each in expected.segments], what
            assert found.gtid_set == expected.gtid_set
        source = archived(server, tmp_path / "archive", lambda name: f"binlog.{int(name[-6:]) + 1:06d}")
        with pytest.raises(SourceIdentityError, match=r"binlog\.000002: expected a file whose ROTATE names number 3"):
            window(source, begin(source, "oldest"), tmp_path / "refused")


@FAMILIES
def test_a_log_with_any_name_is_read_live_and_as_an_archive(flavor: Flavor, tmp_path: Path) -> None:
    base = "бин one"
    with private_server(tmp_path / "server", flavor, (f"--log-bin={base}",), durable=False) as server:
        oldest = begin(live(server), "oldest")
        fill(server, 4, flush_every=2)
        first = window(live(server), oldest, tmp_path / "first")
        fill(server, 4, flush_every=2)
        second = window(live(server), behind(first), tmp_path / "second")
        assert begin(live(server), str(second.end)).position == second.end
        source = archived(server, tmp_path / "archive")
        whole = window(source, begin(source, "oldest"), tmp_path / "whole")
        assert whole.transactions == first.transactions + second.transactions
        assert {each.source_file.rpartition(".")[0] for each in whole.segments} == {base}


@requires_mysql
def test_a_log_that_its_server_writes_over_itself_is_refused_at_once(tmp_path: Path) -> None:
    """MySQL gives no numbers to the files of a log whose name has dots, and begins the same file each time."""
    with private_server(tmp_path / "server", Flavor.MYSQL, ("--log-bin=my.log.v1",), durable=False) as server:
        fill(server, 2)
        with pytest.raises(SourceError, match=r"my\.log: expected .* a number .* set log_bin .* without dots"):
            begin(live(server), "oldest")


@FAMILIES
@pytest.mark.trial
def test_relay_logs_as_an_archive_are_named(flavor: Flavor, tmp_path: Path) -> None:
    with (
        private_server(tmp_path / "source", flavor, name="source", durable=False) as source,
        private_server(tmp_path / "replica", flavor, ("--relay-log=relay",), name="replica", durable=False) as replica,
    ):
        fill(source, 2)
        place = f"HOST='127.0.0.1', {{0}}PORT={source.port}, {{0}}USER='{source.user}', {{0}}PASSWORD"
        place = f"{{0}}{place}='{source.password}'"
        if flavor is Flavor.MARIADB:
            run(replica, f"CHANGE MASTER TO {place.format('MASTER_')}", "START SLAVE IO_THREAD")
        else:
            to = f"CHANGE REPLICATION SOURCE TO {place.format('SOURCE_')}, GET_SOURCE_PUBLIC_KEY=1"
            run(replica, to, "START REPLICA IO_THREAD")
        wait_until(lambda: any(b"filled" in path.read_bytes() for path in replica.datadir.glob("relay.0*")))
        folder = tmp_path / "archive"
        folder.mkdir()
        for path in replica.datadir.glob("relay.0*"):
            shutil.copy(path, folder)
    with pytest.raises(UnsupportedEventError, match=r"relay\.\d+:4: .*a relay log.*archive the binary logs"):
        begin(ArchiveSource(str(folder)), "oldest")


@FAMILIES
def test_a_live_log_behind_an_archive_is_read_on_or_its_gap_is_named(flavor: Flavor, tmp_path: Path) -> None:
    with private_server(tmp_path / "server", flavor, durable=False) as server:
        fill(server, 4, flush_every=2)
        source = archived(server, tmp_path / "archive")
        at = behind(window(source, begin(source, "oldest"), tmp_path / "archived"))
        fill(server, 4, flush_every=2)
        assert window(live(server), at, tmp_path / "live").transactions >= 4
        purge_to(server, files_of(server)[-2].name)
        with pytest.raises(MissingLogError, match=r"was purged before it was read; put it back, read it as an archive"):
            window(live(server), at, tmp_path / "gap")
        with pytest.raises(SourceError, match=r"the transactions after it were purged; load a newer backup"):
            begin(live(server), at.gtid_set)


def read(server: PrivateServer, at: Start, purge_at: int) -> int:
    """Bytes behind a place of the log up to its end; the log is purged when so many chunks are read."""
    found = 0
    with contextlib.closing(proved(live(server), at)) as chunks:
        for number, chunk in enumerate(chunks):
            found += len(chunk.data)
            if number == purge_at:
                run(server, f"PURGE BINARY LOGS TO '{files_of(server)[-1].name}'")
    return found


def outcome(server: PrivateServer, at: Start, purge_at: int, whole: int) -> str:
    try:
        found = read(server, at, purge_at)
    except MissingLogError:
        return "refused"
    # MariaDB adds a checkpoint when it has the time for it
    return "equal" if found >= whole else f"{found} bytes of {whole}"


@FAMILIES
@pytest.mark.trial
def test_a_purge_during_a_read_loses_nothing_in_silence(flavor: Flavor, tmp_path: Path) -> None:
    """A server keeps the file that it sends; those behind it may go."""
    with private_server(tmp_path / "server", flavor, durable=False) as server:
        run(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, word LONGTEXT)")
        outcomes = set()
        for purge_at in range(12):
            at = begin(live(server), "now")
            for number in range(12):
                run(server, f"REPLACE INTO d.t VALUES ({number}, REPEAT('x', 600000))")
                if number % 4 == 3:
                    run(server, "FLUSH BINARY LOGS")
            time.sleep(0.3)
            whole = read(server, at, -1)
            outcomes.add(outcome(server, at, purge_at, whole))
        assert outcomes <= {"equal", "refused"}
        assert "equal" in outcomes


@FAMILIES
@pytest.mark.trial
def test_a_source_that_was_restored_from_a_backup_is_another_log(flavor: Flavor, tmp_path: Path) -> None:
    """It has its ids, and its log up to the backup."""
    with private_server(tmp_path / "server", flavor, durable=False) as server:
        fill(server, 4, flush_every=2)
        server.stop()
        shutil.copytree(server.datadir, tmp_path / "backup")
        server.restart()
        before = behind(window(live(server), begin(live(server), "oldest"), tmp_path / "before"))
        fill(server, 3)
        later = behind(window(live(server), before, tmp_path / "later"))
        server.stop()
        shutil.rmtree(server.datadir)
        shutil.copytree(tmp_path / "backup", server.datadir)
        # a file's header has its second: within the same one the log up to ``before`` is the same, and rightly read on
        time.sleep(1.1)
        server.restart()
        for written in (0, 9):
            fill(server, written)
            for number, start in enumerate((before, later)):
                with pytest.raises(SourceIdentityError, match=r"was reset.* restored"):
                    window(live(server), start, tmp_path / f"refused {written} {number}")
