"""What stops an extraction: another log, a lost log, a source that cannot be read as it is. Nothing is taken then."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.errors import (
    MissingLogError,
    PrecheckError,
    ServerIdInUseError,
    SourceError,
    SourceIdentityError,
    SourceUnavailableError,
)
from binlane.model import Flavor, LogPosition
from binlane.source.archive import ArchiveSource
from binlane.source.end_position import UntilGtid, UntilLogEnd, UntilPosition
from binlane.source.identity import Start
from binlane.source.segments import extract
from binlane.source.start_position import begin
from binlane.work.files import WorkFolder
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.source.helpers import SERVER_ID, behind, fill, live, purge_to, registered, run, window

if TYPE_CHECKING:
    from collections.abc import Sequence


def reset(server: PrivateServer) -> None:
    """Delete the log and begin it anew at number 1."""
    run(server, "RESET MASTER" if server.flavor is Flavor.MARIADB else "RESET BINARY LOGS AND GTIDS")


def first_window(server: PrivateServer, folder: Path) -> Start:
    """Where the second window begins, in the middle of binlog.000002."""
    fill(server, 6, flush_every=4)
    return behind(window(live(server), begin(live(server), "oldest"), folder))


def test_a_purged_file_is_named_with_what_to_do(own_server: PrivateServer, tmp_path: Path) -> None:
    start = first_window(own_server, tmp_path / "first")
    purge_to(own_server, "binlog.000003")
    with pytest.raises(MissingLogError, match=r"expected binlog\.000002, the oldest is binlog\.000003.*newer backup"):
        window(live(own_server), start, tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_a_start_is_the_end_of_a_transaction_and_is_never_moved(own_server: PrivateServer) -> None:
    fill(own_server, 3)
    file = "binlog.000001"
    data = (own_server.datadir / file).read_bytes()
    reader = LogReader(data, file)
    ends = [transaction.end for transaction in transactions(reader)]
    offsets = {at + step for event in LogReader(data, file).events() for at in (event.offset,) for step in (0, 1)}
    first = begin(live(own_server), f"{file}:4").position.offset
    for offset in sorted(offsets | {77, len(data)}):
        asked = LogPosition(file, offset)
        if offset in ends:
            assert begin(live(own_server), str(asked)).position == asked
        elif 4 < offset < first or (first < offset < ends[-1] and offset > ends[0]):
            with pytest.raises(SourceError, match=rf"--start {file}:{offset}: expected the (beginning|end) of a trans"):
                begin(live(own_server), str(asked))


def forget(server: PrivateServer, file: str) -> None:
    """Remove a file and its line in the index, as people do by hand; the server is not running."""
    (server.datadir / file).unlink()
    [index] = server.datadir.glob("*.index")
    index.write_text("".join(line for line in index.read_text().splitlines(keepends=True) if file not in line))


@pytest.mark.parametrize("crash", [False, True], ids=["rotated", "crashed"])
def test_a_file_that_is_missing_between_two_others_stops_the_window(
    own_server: PrivateServer, tmp_path: Path, crash: bool
) -> None:
    fill(own_server, 3)
    start = begin(live(own_server), "oldest")
    if crash:
        own_server.kill()
        own_server.restart()
    else:
        run(own_server, "FLUSH BINARY LOGS")
    fill(own_server, 3)
    run(own_server, "FLUSH BINARY LOGS")
    fill(own_server, 3)
    own_server.stop()
    forget(own_server, "binlog.000002")
    own_server.restart()
    with pytest.raises(
        MissingLogError,
        match=r"000001 is not followed by its next file: expected binlog\.000002, found binlog\.000003",
    ):
        window(live(own_server), start, tmp_path / "window")


@requires_mysql
def test_numbers_that_the_server_itself_has_left_out_are_no_gap(tmp_path: Path) -> None:
    with private_server(tmp_path / "server", Flavor.MYSQL, durable=False) as server:
        fill(server, 3)
        start = begin(live(server), "oldest")
        # MySQL goes on behind the highest number in its folder, and its ROTATE says so
        (server.datadir / "binlog.000007").write_bytes(b"")
        run(server, "FLUSH BINARY LOGS")
        fill(server, 3)
        manifest = window(live(server), start, tmp_path / "window")
    assert [segment.source_file for segment in manifest.segments] == ["binlog.000001", "binlog.000008"]


def test_a_log_that_was_reset_is_another_log(own_server: PrivateServer, tmp_path: Path) -> None:
    start = first_window(own_server, tmp_path / "first")
    reset(own_server)
    with pytest.raises(SourceIdentityError, match="renumbered"):
        window(live(own_server), start, tmp_path / "second")
    fill(own_server, 60, flush_every=30)
    with pytest.raises(SourceIdentityError, match=r"FORMAT_DESCRIPTION changed|the events before it changed"):
        window(live(own_server), start, tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_a_log_whose_last_transaction_was_rewritten_is_another_log(own_server: PrivateServer, tmp_path: Path) -> None:
    fill(own_server, 6)
    folder = tmp_path / "archive"
    folder.mkdir()
    shutil.copy(own_server.datadir / "binlog.000001", folder)
    archive = ArchiveSource(str(folder))
    start = behind(window(archive, begin(archive, "oldest"), tmp_path / "first"))
    log = bytearray((folder / "binlog.000001").read_bytes())
    at = log.rindex(b"word 6!")
    log[at : at + 4] = b"lord"
    (folder / "binlog.000001").write_bytes(log)
    with pytest.raises(SourceIdentityError, match="the events before it changed"):
        window(archive, start, tmp_path / "second")
    # what stood there could be read; what stands there now has no event where one began
    at = int(start.fingerprint.split(" ")[1]) + 9
    (folder / "binlog.000001").write_bytes(log[:at] + bytes(4) + log[at + 4 :])
    with pytest.raises(SourceIdentityError, match="cannot be read"):
        window(archive, start, tmp_path / "second")


def test_a_log_that_is_shorter_than_the_watermark_is_another_log(own_server: PrivateServer, tmp_path: Path) -> None:
    start = first_window(own_server, tmp_path / "first")
    folder = tmp_path / "archive"
    shutil.copytree(own_server.datadir, folder, ignore=lambda _, names: [n for n in names if "binlog.0" not in n])
    archive = ArchiveSource(str(folder))
    read = behind(window(archive, begin(archive, "oldest"), tmp_path / "read"))
    log = (folder / "binlog.000002").read_bytes()
    (folder / "binlog.000002").write_bytes(log[: len(log) // 2])
    with pytest.raises(SourceIdentityError, match="expected at least"):
        window(archive, read, tmp_path / "second")
    assert start.position == read.position


def test_another_server_is_another_source(
    mariadb_source: PrivateServer, mariadb_target: PrivateServer, tmp_path: Path
) -> None:
    start = begin(live(mariadb_source), "now")
    with pytest.raises(SourceIdentityError, match=r"channel's source, mariadb server_id \d+, found mariadb server_id"):
        window(live(mariadb_target), start, tmp_path)


def test_a_stored_end_that_is_no_transactions_end_is_refused(server: PrivateServer, tmp_path: Path) -> None:
    start = begin(live(server), "now")
    fill(server, 4)
    end = LogPosition(start.position.file, start.position.offset + 1)
    with pytest.raises(SourceIdentityError, match="no transaction ends there"):
        window(live(server), start, tmp_path, UntilPosition(end))
    far = LogPosition(start.position.file, start.position.offset + 10_000_000)
    with pytest.raises(SourceError, match="the log ends before that"):
        window(live(server), start, tmp_path, UntilPosition(far))


def test_a_server_id_that_another_reader_has_is_refused(server: PrivateServer) -> None:
    with registered(live(server)), pytest.raises(ServerIdInUseError, match=f"server_id {SERVER_ID} is registered"):
        live(server).state()
    own = server.query("SELECT @@server_id")[0][0]
    source = live(server)
    with pytest.raises(PrecheckError, match="the source's own"):
        type(source)(source.name, source.arguments, own, "test").state()


def test_a_clock_that_is_ahead_is_told_whole_beside_the_one_that_ends_windows(
    server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = time.time() - 600
    monkeypatch.setattr("binlane.source.server.time", Mock(wraps=time, time=lambda: here))
    state = live(server).state()
    assert state.clock == here + 60
    assert state.own_clock is not None
    assert state.own_clock >= here + 600


def test_an_earlier_reader_of_the_channel_that_is_about_to_go_is_waited_for(server: PrivateServer) -> None:
    ended, is_there = threading.Event(), threading.Event()

    def read_a_little_longer() -> None:
        with registered(live(server)):
            is_there.set()
            ended.wait(0.5)

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read_a_little_longer)
        assert is_there.wait(30)
        live(server).state()
        reader.result()


GRANTS = {
    Flavor.MARIADB: ("REPLICATION SLAVE", "REPLICATION MASTER ADMIN", "BINLOG MONITOR", "SLAVE MONITOR"),
    Flavor.MYSQL: ("REPLICATION SLAVE", "REPLICATION CLIENT"),
}


def test_each_missing_privilege_is_named(server: PrivateServer, tmp_path: Path) -> None:
    privileges = GRANTS[server.flavor]
    start = begin(live(server), "now")
    run(server, "DROP USER IF EXISTS reader", "CREATE USER reader IDENTIFIED BY 'reader'")
    source = live(server, arguments={"user": "reader", "password": "reader"})
    run(server, f"GRANT {', '.join(privileges)} ON *.* TO reader")
    window(source, start, tmp_path / "allowed")
    for missing in privileges:
        run(server, f"REVOKE {missing} ON *.* FROM reader")
        with pytest.raises(PrecheckError, match=missing):
            window(source, start, tmp_path / "refused")
        run(server, f"GRANT {missing} ON *.* TO reader")
    wrong = live(server, arguments={"user": "reader", "password": "wrong"})
    with pytest.raises(PrecheckError, match=r"Access denied.*compare the connection's user and password") as refused:
        wrong.state()
    assert "GRANT" not in str(refused.value)
    run(server, "DROP USER reader")


def test_an_unreachable_server_can_be_tried_again(own_server: PrivateServer) -> None:
    own_server.stop()
    with pytest.raises(SourceUnavailableError, match=r"source: .*refused"):
        live(own_server).state()
    assert SourceUnavailableError.retryable


def test_a_connection_that_breaks_can_be_tried_again_and_leaves_no_segment(
    own_server: PrivateServer, tmp_path: Path
) -> None:
    fill(own_server, 1)
    run(own_server, "INSERT INTO filled.items (word) VALUES (REPEAT('x', 30000000))")
    start = begin(live(own_server), "oldest")
    calls = 0

    def break_it(*_: int) -> None:
        nonlocal calls
        calls += 1
        own_server.kill()

    place = WorkFolder(str(tmp_path / "out"))
    with pytest.raises(SourceUnavailableError, match="run the step again"):
        extract(live(own_server), start, UntilLogEnd(), place, channel="c", window="w", progress=break_it)
    assert calls >= 1
    assert [path for path in tmp_path.glob("out/**/*") if path.is_file()] == []


def test_a_gtid_set_that_the_log_does_not_hold_exactly_is_refused_with_what_it_holds(own_server: PrivateServer) -> None:
    fill(own_server, 2)
    if own_server.flavor is Flavor.MYSQL:
        asked = f"{own_server.query('SELECT @@server_uuid')[0][0]}:2-3"
        held = "no transaction before binlog.000001:"
    else:
        asked = f"0-{own_server.query('SELECT @@server_id')[0][0]}-999"
        held = r"0-\d+-\d+ before binlog.00000\d:"
    with pytest.raises(SourceError, match=rf"directly after {asked}; the log holds {held}"):
        begin(live(own_server), asked)


REFUSED_SETTINGS: Sequence[tuple[str, list[str], Sequence[str], str]] = (
    ("do_db", ["--binlog-do-db=shop"], (), "binlog_do_db is set"),
    ("ignore_db", ["--binlog-ignore-db=shop"], (), "binlog_ignore_db is set"),
    (
        "replica",
        ["--log-slave-updates=OFF"],
        ("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_USER='nobody'",),
        "log_slave_updates OFF",
    ),
)


@pytest.mark.parametrize(
    ("name", "options", "statements", "message"), REFUSED_SETTINGS, ids=lambda value: str(value)[:9]
)
def test_a_source_that_leaves_changes_out_of_its_log_is_refused_by_name(
    name: str, options: list[str], statements: Sequence[str], message: str, tmp_path: Path
) -> None:
    with private_server(tmp_path / name, options=options, durable=False) as server:
        run(server, *statements)
        with pytest.raises(PrecheckError, match=message):
            live(server).state()


def test_a_source_without_a_binary_log_is_refused(tmp_path: Path) -> None:
    with (
        private_server(tmp_path / "silent", log_bin=False) as server,
        pytest.raises(PrecheckError, match="log_bin = OFF: start the source with log_bin"),
    ):
        live(server).state()


def test_tls_is_used_where_it_is_asked_for_and_nothing_goes_in_clear(
    mariadb_source: PrivateServer, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    asked = {"ssl": {"ca": None, "verify_mode": False, "check_hostname": False}}
    with pytest.raises(SourceError, match="SSL"):
        live(mariadb_source, arguments=asked).state()
    mysql: PrivateServer = request.getfixturevalue("mysql_source")
    source = live(mysql, arguments=asked)
    start = begin(source, "now")
    fill(mysql, 3)
    assert window(source, start, tmp_path).transactions >= 3


def test_a_gtid_that_is_none_is_refused(server: PrivateServer, tmp_path: Path) -> None:
    start = begin(live(server), "now")
    with pytest.raises(SourceError, match="expected a GTID such as"):
        window(live(server), start, tmp_path, UntilGtid("yesterday"))
    with pytest.raises(SourceError, match="expected a GTID"):
        begin(live(server), "yesterday")


def test_a_gtid_set_whose_place_was_purged_is_refused(own_server: PrivateServer) -> None:
    fill(own_server, 4)
    early = begin(live(own_server), "now").gtid_set
    fill(own_server, 4)
    purge_to(own_server, "binlog.000002")
    with pytest.raises(SourceError, match="no file of the log"):
        begin(live(own_server), early)


BREAKAGES: Sequence[tuple[str, Callable[[Path], object], type[Exception], str]] = (
    (
        "gap",
        lambda folder: (folder / "binlog.000002").unlink(),
        MissingLogError,
        "expected number 2, found binlog.000003",
    ),
    ("begin", lambda folder: (folder / "binlog.000001").unlink(), MissingLogError, "the oldest is binlog.000002"),
    ("two logs", lambda folder: (folder / "other.000001").write_bytes(b""), SourceError, "the files of one log"),
    ("gone", shutil.rmtree, SourceError, "found no such folder"),
    (
        "index",
        lambda folder: (folder / "b.index").write_text("./binlog.000001\n./binlog.000009\n./binlog.000010\n"),
        MissingLogError,
        "the index names binlog.000009",
    ),
    (
        "two indexes",
        lambda folder: [(folder / f"{n}.index").write_text("") for n in "ab"],
        SourceError,
        "one index file, found 2",
    ),
)


@pytest.mark.parametrize(("name", "breakage", "error", "message"), BREAKAGES, ids=[row[0] for row in BREAKAGES])
def test_an_archive_with_a_hole_is_refused(
    name: str,
    breakage: Callable[[Path], object],
    error: type[Exception],
    message: str,
    archive_copy: Path,
    tmp_path: Path,
) -> None:
    archive = ArchiveSource(str(archive_copy))
    start = begin(archive, "oldest")
    breakage(archive_copy)
    with pytest.raises(error, match=message):
        window(archive, start, tmp_path / name)


def test_an_index_that_still_names_removed_files_is_no_hole(archive_copy: Path, tmp_path: Path) -> None:
    (archive_copy / "binlog.000001").unlink()
    (archive_copy / "binlog.index").write_text("./binlog.000001\n./binlog.000002\n./binlog.000003\n")
    archive = ArchiveSource(str(archive_copy))
    assert archive.state().files == ("binlog.000002", "binlog.000003")
    assert window(archive, begin(archive, "oldest"), tmp_path / "out").transactions > 0
