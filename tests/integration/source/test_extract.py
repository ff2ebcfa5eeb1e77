"""Extraction from real servers: what a window holds, where it ends, and that the next one goes on there."""

from __future__ import annotations

import contextlib
import gzip
import shutil
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from binlane.binlog.wire import SegmentOffset
from binlane.errors import WindowOpenError
from binlane.model import Epoch, Flavor, LogPosition
from binlane.plan.consistency import EpochStarts, level_of
from binlane.plan.manifest import Manifest
from binlane.source.archive import ArchiveSource
from binlane.source.end_position import UntilGtid, UntilPosition, UntilTime
from binlane.source.position_at import place_of
from binlane.source.protocol import LogChunk
from binlane.source.start_position import begin
from binlane.work.files import WorkFolder
from tests.integration.source.helpers import (
    behind,
    counted_by_server,
    fill,
    live,
    log_bytes,
    purge_to,
    run,
    wait_for_checkpoint,
    window,
)

if TYPE_CHECKING:
    from lab.servers import PrivateServer


def test_the_stream_and_every_kind_of_archive_give_the_same_segments(own_server: PrivateServer, tmp_path: Path) -> None:
    fill(own_server, 60, flush_every=20)
    files = {path.name: path for path in own_server.datadir.glob("binlog.0*[0-9]")}
    streamed = window(live(own_server), begin(live(own_server), "oldest"), tmp_path / "stream", segment_bytes=4096)
    assert len({segment.source_file for segment in streamed.segments}) == 3
    for packing in ("plain", "gz", "zst"):
        folder = tmp_path / packing
        folder.mkdir()
        for name, path in files.items():
            data = path.read_bytes()
            if packing == "gz":
                (folder / f"{name}.gz").write_bytes(gzip.compress(data))
            elif packing == "zst":
                (folder / f"{name}.zst").write_bytes(zstandard.compress(data))
            else:
                (folder / name).write_bytes(data)
        archive = ArchiveSource(str(folder))
        read = window(archive, begin(archive, "oldest"), tmp_path / f"out_{packing}", segment_bytes=4096)
        assert read.segments == streamed.segments
        assert (read.end, read.gtid_set, read.fingerprint) == (streamed.end, streamed.gtid_set, streamed.fingerprint)
        for segment in read.segments:
            assert (tmp_path / f"out_{packing}" / segment.name).read_bytes() == (
                tmp_path / "stream" / segment.name
            ).read_bytes()


def test_the_servers_own_tool_reads_every_segment_and_counts_the_same(server: PrivateServer, tmp_path: Path) -> None:
    start = begin(live(server), "now")
    fill(server, 100, flush_every=40)
    run(server, "CREATE TABLE IF NOT EXISTS filled.other (id INT)", "DROP TABLE filled.other")
    manifest = window(live(server), start, tmp_path, segment_bytes=8192)
    assert len(manifest.segments) > 4
    for segment in manifest.segments:
        assert counted_by_server(server, tmp_path / segment.name) == segment.transactions
    assert sum(segment.transactions for segment in manifest.segments) == manifest.transactions >= 102


def test_segments_are_cut_at_the_first_transaction_end_past_the_size_and_at_files(
    server: PrivateServer, tmp_path: Path
) -> None:
    start = begin(live(server), "now")
    fill(server, 90, flush_every=45)
    manifest = window(live(server), start, tmp_path, segment_bytes=10_000)
    lasts = {segment.source_file: segment for segment in manifest.segments}
    for segment in manifest.segments:
        assert (tmp_path / segment.name).stat().st_size == segment.bytes
        length = segment.end_offset - segment.start_offset
        assert length < 12_000
        assert length >= 10_000 or segment is lasts[segment.source_file]
    assert Manifest.from_json(manifest.to_json(), "manifest.json") == manifest


def test_the_source_holds_a_segments_bytes_at_its_offsets(own_server: PrivateServer, tmp_path: Path) -> None:
    fill(own_server, 30)
    manifest = window(live(own_server), begin(live(own_server), "oldest"), tmp_path, segment_bytes=4096)
    source = (own_server.datadir / "binlog.000001").read_bytes()
    for segment in manifest.segments:
        stretch = (tmp_path / segment.name).read_bytes()[segment.header_length :]
        assert stretch == source[segment.start_offset : segment.end_offset]
        first = SegmentOffset(segment.header_length)
        assert segment.source_position(first) == LogPosition("binlog.000001", segment.start_offset)


def test_an_epochs_end_is_where_a_window_that_ends_there_ends(server: PrivateServer, tmp_path: Path) -> None:
    start = begin(live(server), "now")
    fill(server, 40, flush_every=11)
    # of these no two are read in one run
    run(server, *(f"CREATE DATABASE filled_{number}" for number in range(7)))
    run(server, *(f"DROP DATABASE filled_{number}" for number in range(7)))
    epochs = EpochStarts(level_of("epoch", 86_400), 3)
    manifest = window(live(server), start, tmp_path, segment_bytes=5000, epochs=epochs)
    every_third = [seqno for seqno in range(start.seqno + 1, manifest.last_seqno) if seqno % 3 == 0]
    assert [epoch.seqno for epoch in manifest.epochs if epoch.seqno % 3 == 0] == every_third
    assert len(every_third) >= 17
    for epoch in manifest.epochs:
        place = place_of(WorkFolder(str(tmp_path)), manifest, start, epoch.seqno)
        found = Epoch(epoch.seqno, place.position, place.gtid_set, place.time)
        # bookkeeping events, such as a new file's head, may stand between the two transactions
        assert replace(epoch, end=found.end) == found
        assert (epoch.end.file, epoch.end.offset) >= (found.end.file, found.end.offset)
    assert Manifest.from_json(manifest.to_json(), "manifest.json") == manifest
    plain = window(live(server), start, tmp_path / "plain", UntilPosition(manifest.end), segment_bytes=5000)
    assert replace(manifest, epochs=()) == plain


def test_windows_go_on_exactly_at_the_next_transaction(server: PrivateServer, tmp_path: Path) -> None:
    start = begin(live(server), "now")
    parts = []
    at = start
    for number in range(4):
        fill(server, 13, flush_every=5 if number == 2 else 0)
        part = window(live(server), at, tmp_path / f"part{number}")
        assert part.first_seqno == at.seqno + 1
        parts.append(log_bytes(tmp_path / f"part{number}", part.segments))
        at = behind(part)
    # not up to the log's end: MariaDB writes the checkpoint of a new file when it has the time for it
    whole = window(live(server), start, tmp_path / "whole", UntilPosition(at.position))
    assert (whole.last_seqno, whole.end, whole.gtid_set, whole.fingerprint) == (
        at.seqno,
        at.position,
        at.gtid_set,
        at.fingerprint,
    )
    assert sum(map(len, parts)) <= len(log_bytes(tmp_path / "whole", whole.segments))
    assert window(live(server), at, tmp_path / "nothing").segments == ()


def test_a_window_can_be_read_again_by_its_position_to_the_same_bytes(server: PrivateServer, tmp_path: Path) -> None:
    start = begin(live(server), "now")
    fill(server, 40, flush_every=15)
    first = window(live(server), start, tmp_path / "first", segment_bytes=5000)
    fill(server, 10)
    again = window(live(server), start, tmp_path / "again", UntilPosition(first.end), segment_bytes=5000)
    assert again.to_json() == first.to_json()
    assert again.digest == first.digest
    for segment in first.segments:
        assert (tmp_path / "first" / segment.name).read_bytes() == (tmp_path / "again" / segment.name).read_bytes()


def test_a_dump_that_has_to_begin_beyond_the_protocols_offset_gives_the_same(
    server: PrivateServer, tmp_path: Path
) -> None:
    start = begin(live(server), "now")
    fill(server, 5)
    middle = behind(window(live(server), start, tmp_path / "before"))
    fill(server, 20)
    near = window(live(server), middle, tmp_path / "near")
    far = window(live(server, offset_limit=100), middle, tmp_path / "far")
    assert far == near
    assert near.transactions >= 20


def test_the_first_transaction_at_or_past_the_time_is_not_taken(server: PrivateServer, tmp_path: Path) -> None:
    start = begin(live(server), "now")
    fill(server, 3)
    time.sleep(1.1)
    (clock,) = server.query("SELECT CEILING(UNIX_TIMESTAMP(NOW(6)))")[0]
    time.sleep(1.1)
    fill(server, 4)
    time.sleep(1.1)
    until = UntilTime(float(clock))
    manifest = window(live(server), start, tmp_path / "first", until)
    taken = manifest.transactions
    assert 3 <= taken <= 5
    assert all(segment.last_time < clock for segment in manifest.segments)
    rest = window(live(server), behind(manifest), tmp_path / "rest")
    assert rest.segments[0].first_time >= clock
    assert window(live(server), start, tmp_path / "again", UntilPosition(manifest.end)) == manifest


def test_a_window_is_not_closed_before_the_sources_clock_has_passed_its_end(
    server: PrivateServer, tmp_path: Path
) -> None:
    start = begin(live(server), "now")
    with pytest.raises(WindowOpenError, match=r"ends at 2\d{3}-.*clock says 2\d{3}-"):
        window(live(server), start, tmp_path, UntilTime(time.time() + 3600))
    assert not list(tmp_path.iterdir())


def test_a_time_from_the_future_ends_no_window_and_one_from_the_past_neither(
    mariadb_source: PrivateServer, tmp_path: Path
) -> None:
    start = begin(live(mariadb_source), "now")
    insert = "INSERT INTO filled.items (word) VALUES ('stamped')"
    run(mariadb_source, "CREATE DATABASE IF NOT EXISTS filled")
    fill(mariadb_source, 1)
    with contextlib.closing(mariadb_source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for stamp in ("2147483000", "1000000000", "DEFAULT"):
            cursor.execute(f"SET timestamp = {stamp}")
            cursor.execute(insert)
    time.sleep(1.1)
    manifest = window(live(mariadb_source), start, tmp_path, UntilTime(time.time()))
    assert window(live(mariadb_source), behind(manifest), tmp_path / "rest").transactions == 0
    assert max(segment.last_time for segment in manifest.segments) <= time.time()


def test_an_archive_closes_a_window_by_something_newer_only(own_server: PrivateServer, tmp_path: Path) -> None:
    fill(own_server, 5)
    time.sleep(1.1)
    noon = time.time()
    archive = ArchiveSource(str(own_server.datadir))
    start = begin(archive, "oldest")
    with pytest.raises(WindowOpenError, match="files of the window may still be missing"):
        window(archive, start, tmp_path / "open", UntilTime(noon))
    time.sleep(1.1)
    run(own_server, "FLUSH BINARY LOGS")
    closed = window(archive, start, tmp_path / "closed", UntilTime(noon))
    assert closed.transactions == 7


def test_a_gtid_is_the_last_transaction_taken_or_the_first_one_left(server: PrivateServer, tmp_path: Path) -> None:
    start = begin(live(server), "now")
    fill(server, 9)
    whole = window(live(server), start, tmp_path / "whole", segment_bytes=1)
    gtid = whole.segments[5].first_gtid
    taken = window(live(server), start, tmp_path / "taken", UntilGtid(gtid))
    left = window(live(server), start, tmp_path / "left", UntilGtid(gtid, inclusive=False))
    assert (taken.transactions, left.transactions) == (6, 5)
    assert taken.segments[-1].last_gtid == gtid
    assert taken.end.offset == whole.segments[5].end_offset
    assert left.end.offset == whole.segments[5].start_offset
    newest = window(live(server), start, tmp_path / "newest", UntilGtid(whole.segments[-1].last_gtid))
    assert newest.last_seqno == whole.last_seqno
    stem, _, number = gtid.rpartition(":" if server.flavor is Flavor.MYSQL else "-")
    beyond = f"{stem}{':' if server.flavor is Flavor.MYSQL else '-'}{int(number) + 100_000}"
    with pytest.raises(WindowOpenError, match="which the log does not contain yet"):
        window(live(server), start, tmp_path / "beyond", UntilGtid(beyond))


def test_a_channel_can_begin_at_a_position_behind_a_gtid_set_and_at_the_logs_end(
    server: PrivateServer, tmp_path: Path
) -> None:
    start = begin(live(server), "now")
    fill(server, 12, flush_every=5)
    middle = window(live(server), start, tmp_path / "middle", UntilPosition(start.position))
    assert middle.transactions == 0
    first = window(live(server), start, tmp_path / "first")
    fill(server, 3, flush_every=2)
    assert begin(live(server), str(first.end)).position == first.end
    assert begin(live(server), str(first.end)).gtid_set == first.gtid_set
    by_gtid = begin(live(server), first.gtid_set)
    rest, same = (
        window(live(server), at, tmp_path / name) for at, name in ((behind(first), "rest"), (by_gtid, "same"))
    )
    assert rest.transactions == same.transactions >= 3
    assert log_bytes(tmp_path / "rest", rest.segments) == log_bytes(tmp_path / "same", same.segments)
    # not simply rest.end: MariaDB writes the checkpoint of a new file when it has the time for it
    now = begin(live(server), "now")
    assert (now.position.file, now.position.offset) >= (rest.end.file, rest.end.offset)
    assert now.gtid_set == rest.gtid_set
    run(server, "INSERT INTO filled.items (word) VALUES ('one more')")
    assert window(live(server), now, tmp_path / "newest").transactions == 1


def test_a_row_larger_than_any_packet_and_buffer_arrives_whole(server: PrivateServer, tmp_path: Path) -> None:
    fill(server, 1)
    start = begin(live(server), "now")
    # one below, at and above the 16 MiB where a packet goes on in the next one
    sizes = ((1 << 24) - 200, (1 << 24) - 1, 20_000_000)
    run(server, *(f"INSERT INTO filled.items (word) VALUES (REPEAT('x', {size}))" for size in sizes))
    manifest = window(live(server), start, tmp_path, segment_bytes=1 << 20)
    assert [segment.transactions for segment in manifest.segments] == [1, 1, 1]
    assert all(segment.bytes > size for segment, size in zip(manifest.segments, sizes, strict=True))
    assert counted_by_server(server, tmp_path / manifest.segments[2].name) == 1


def test_a_reader_that_is_busy_for_longer_than_the_server_waits_to_write_reads_on(server: PrivateServer) -> None:
    start = begin(live(server), "now").position
    rows = ["INSERT INTO filled.wide VALUES (REPEAT('x', 4000000))"] * 8
    ((before,),) = server.query("SELECT @@GLOBAL.net_write_timeout")
    server.query("SET GLOBAL net_write_timeout = 1")
    try:
        run(server, "CREATE DATABASE IF NOT EXISTS filled", "CREATE TABLE filled.wide (b LONGBLOB)", *rows)
        chunks = live(server).read_log(start)
        next(chunks)
        time.sleep(4)
        read = sum(len(chunk.data) for chunk in chunks)
    finally:
        server.query(f"SET GLOBAL net_write_timeout = {before}")
        run(server, "DROP TABLE filled.wide")
    assert read > 8 * 4_000_000 - (8 << 20)


def test_a_log_whose_dump_is_killed_is_read_to_its_end(server: PrivateServer) -> None:
    """The server ends a dump that is killed as it does one that has reached the log's end."""
    start = begin(live(server), "now").position
    rows = ["INSERT INTO filled.wide VALUES (REPEAT('x', 4000000))"] * 8
    run(server, "CREATE DATABASE IF NOT EXISTS filled", "CREATE TABLE filled.wide (b LONGBLOB)", *rows)
    run(server, "FLUSH BINARY LOGS", *rows)
    if server.flavor is Flavor.MARIADB:
        wait_for_checkpoint(server)
    try:
        whole = events_of(live(server).read_log(start))
        chunks, found, kills = live(server).read_log(start), b"", 0
        for chunk in chunks:
            found += chunk.data
            for number, command in server.query("SELECT id, command FROM information_schema.processlist"):
                if command.startswith("Binlog Dump") and kills < 12:
                    run(server, f"KILL QUERY {number}")
                    kills += 1
    finally:
        run(server, "DROP TABLE filled.wide")
    assert kills > 3
    assert found == whole


def events_of(chunks: Iterable[LogChunk]) -> bytes:
    """All that was read."""
    return b"".join(chunk.data for chunk in chunks)


def test_the_end_follows_an_idle_source_into_its_newest_file(own_server: PrivateServer, tmp_path: Path) -> None:
    fill(own_server, 2)
    first = window(live(own_server), begin(live(own_server), "oldest"), tmp_path / "first")
    run(own_server, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    idle = window(live(own_server), behind(first), tmp_path / "idle")
    assert (idle.transactions, idle.end.file) == (0, "binlog.000003")
    purge_to(own_server, "binlog.000003")
    fill(own_server, 2)
    assert window(live(own_server), behind(idle), tmp_path / "next").transactions >= 2


def test_a_transaction_that_the_logs_end_cuts_off_is_left_for_the_next_window(
    own_server: PrivateServer, tmp_path: Path
) -> None:
    fill(own_server, 8)
    log = (own_server.datadir / "binlog.000001").read_bytes()
    folder = tmp_path / "archive"
    folder.mkdir()
    archive = ArchiveSource(str(folder))
    (folder / "binlog.000001").write_bytes(log)
    start = begin(archive, "oldest")
    whole = window(archive, start, tmp_path / "whole", segment_bytes=1)
    ends = [segment.end_offset for segment in whole.segments]
    for cut in range(ends[-3] + 1, len(log), 23):
        (folder / "binlog.000001").write_bytes(log[:cut])
        first = window(archive, start, tmp_path / f"cut{cut}")
        assert first.end.offset == max(end for end in ends if end <= cut)
        (folder / "binlog.000001").write_bytes(log)
        rest = window(archive, behind(first), tmp_path / f"rest{cut}")
        assert (rest.last_seqno, rest.gtid_set) == (whole.last_seqno, whole.gtid_set)
        shutil.rmtree(tmp_path / f"cut{cut}", ignore_errors=True)


def test_a_server_that_crashed_is_read_on_in_its_next_file(own_server: PrivateServer, tmp_path: Path) -> None:
    fill(own_server, 5)
    start = begin(live(own_server), "oldest")
    own_server.kill()
    own_server.restart()
    fill(own_server, 5)
    manifest = window(live(own_server), start, tmp_path)
    assert {segment.source_file for segment in manifest.segments} == {"binlog.000001", "binlog.000002"}
    assert manifest.transactions >= 12
