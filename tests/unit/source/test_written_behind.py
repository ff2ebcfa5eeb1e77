"""Segments are written in a thread of their own, in order, never far behind, and no failure is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from binlane.binlog.format_description import FormatDescription
from binlane.plan.manifest import Segment
from binlane.source import segment_writer
from binlane.source.segment_writer import SegmentWriter, Stretch, WrittenBehind
from binlane.work.files import WorkFolder

HEADER = b"header"


def stretch(size: int) -> Stretch:
    return Stretch("binlog.000001", FormatDescription("10.11.6-MariaDB"), HEADER, 0, size, 1, 1)


class Slow:
    """A sink that waits for permission, and remembers what it got."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.has_begun, self.may = threading.Event(), threading.Event()
        self.threads: set[str] = set()
        self.segments: tuple[Segment, ...] = ()
        self.aborted: BaseException | None = None

    def write(self, data: bytes | memoryview, header: bytes) -> None:
        self.has_begun.set()
        assert self.may.wait(30)
        self.threads.add(threading.current_thread().name)
        if data == b"bad":
            raise OSError("no more")
        self.got.append(bytes(data).decode())

    def close(self, stretch: Stretch) -> None:
        self.got.append(f"closed {stretch.end}")

    def abort(self, exc: BaseException) -> None:
        self.aborted = exc


def test_the_files_are_those_that_a_writer_alone_makes(tmp_path: Path) -> None:
    alone, behind = (WorkFolder(str(tmp_path / name)) for name in ("alone", "behind"))
    with WrittenBehind(SegmentWriter(behind)) as passed:
        written = SegmentWriter(alone)
        for sink in (passed, written):
            for piece in (b"a" * 10, memoryview(b"xbcx")[1:3]):
                sink.write(piece, HEADER)
            sink.close(stretch(12))
            sink.write(b"d" * 5, HEADER)
            sink.close(stretch(5))
        assert passed.segments == written.segments
    for segment in written.segments:
        assert behind.read(segment.name) == alone.read(segment.name)


def test_the_caller_goes_on_until_a_few_bytes_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_writer, "_BEHIND", 10)
    slow = Slow()
    with WrittenBehind(slow) as sink:
        sink.write(b"12345", HEADER)
        sink.write(b"67890", HEADER)
        # nothing is written yet, and nobody waited; with the next bytes more than ten would be held
        assert slow.got == []
        threading.Timer(0.2, slow.may.set).start()
        sink.write(b"abc", HEADER)
        assert slow.got[:1] == ["12345"]
        # larger than all that may be held
        sink.write(b"x" * 20, HEADER)
        sink.close(stretch(7))
        assert sink.segments == ()
    assert slow.got == ["12345", "67890", "abc", "x" * 20, "closed 7"]
    assert slow.threads == {"binlane-write_0"}


def test_each_segment_is_told_once_in_the_callers_thread_when_its_file_is_complete(tmp_path: Path) -> None:
    folder, told = WorkFolder(str(tmp_path)), []

    def tell(segment: Segment) -> None:
        assert threading.current_thread() is threading.main_thread()
        assert folder.digest(segment.name) == segment.blake3
        told.append(segment)

    with WrittenBehind(SegmentWriter(folder), tell) as sink:
        for size in (3, 4, 5):
            sink.write(b"a" * size, HEADER)
            sink.close(stretch(size))
        segments = sink.segments
        assert sink.segments == segments
    assert tuple(told) == segments
    assert len(segments) == 3


def test_a_failure_is_raised_by_a_later_call_and_nothing_behind_it_is_written() -> None:
    slow = Slow()
    with WrittenBehind(slow) as sink:
        for piece in (b"good", b"bad", b"behind"):
            sink.write(piece, HEADER)
        sink.close(stretch(9))
        slow.may.set()
        with pytest.raises(OSError, match="no more") as raised:
            _ = sink.segments
        sink.abort(raised.value)
    assert slow.got == ["good"]
    assert slow.aborted is raised.value


def test_what_waits_is_dropped_when_reading_fails() -> None:
    slow, error = Slow(), ValueError("damaged")
    with WrittenBehind(slow) as sink:
        for piece in (b"1", b"2", b"3"):
            sink.write(piece, HEADER)
        assert slow.has_begun.wait(30)
        threading.Timer(0.2, slow.may.set).start()
        sink.abort(error)
        # the write that was at work has ended before the sink is told to remove its file
        assert slow.got == ["1"]
        assert slow.aborted is error


def test_a_failed_write_leaves_no_part_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append, left = SegmentWriter._append, list[Path]()

    def full(self: SegmentWriter, data: bytes | memoryview) -> None:
        if data == b"b":
            left.extend((tmp_path / "segments").iterdir())
            raise OSError(28, "No space left on device")
        append(self, data)

    monkeypatch.setattr(SegmentWriter, "_append", full)
    with WrittenBehind(SegmentWriter(WorkFolder(str(tmp_path)))) as sink:
        sink.write(b"a", HEADER)
        sink.write(b"b", HEADER)
        with pytest.raises(OSError, match="No space left") as raised:
            _ = sink.segments
        sink.abort(raised.value)
    assert len(left) == 1
    assert list((tmp_path / "segments").iterdir()) == []
