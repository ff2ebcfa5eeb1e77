"""Extraction: writes a part of the source's log as segments of complete, numbered transactions, with a manifest.

Transactions are numbered in the log's order. A transaction that is incomplete at the log's end is left for the next
window. Memory use does not grow with the window: a large open transaction spills to a temporary file.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from binlane.binlog.boundaries import Boundaries, Place, State
from binlane.binlog.events import Rotate, parse_body
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.gtids import Gtid, MariadbGtid, MariadbGtidList, PreviousGtids
from binlane.binlog.reader import check_type
from binlane.binlog.vector.decompress import largest_inflated
from binlane.binlog.vector.frames import Frames, frame
from binlane.binlog.vector.simple_transactions import IS_INSIDE, NumberedTransactions, numbered
from binlane.binlog.wire import HEADER, EventType, RawEvent, check_crc, type_name, where
from binlane.errors import BinlogError, SourceIdentityError
from binlane.kernels import framing
from binlane.lazy_dataclass import dataclass
from binlane.model import Epoch, LogPosition
from binlane.plan.consistency import EpochStarts, Eventual
from binlane.plan.manifest import Manifest
from binlane.sessions.server_proof import archive_identity
from binlane.source.continuity import Continuity, FirstBytes
from binlane.source.crashes import SourceCrashes
from binlane.source.end_position import Bound, Until, UntilPosition, bound_of, first_of
from binlane.source.gtid_set import gtids_in, parse_gtid_set
from binlane.source.identity import (
    WHOLE_TRANSACTION,
    Fingerprint,
    Start,
    canonical_header,
    check_family,
    described,
    digest,
    no_events,
    require_same_format,
    verified,
)
from binlane.source.load_files import LoadFileTracker
from binlane.source.protocol import (
    LARGEST_EVENT,
    LOG_START,
    EventSource,
    LogChunk,
    LogState,
    first_bytes,
    too_large,
)
from binlane.source.segment_writer import Progress, SegmentTold, SegmentWriter, Sink, Stretch, WrittenBehind
from binlane.source.temporary import TemporaryTracker
from binlane.source.xa import XaTracker
from binlane.work.files import WorkFolder

SEGMENT_BYTES: Final = 64 << 20
_FIRST_SEGMENTS: Final = (32 << 20, 32 << 20)
"""Limits of a window's first segments. Its length is unknown, and a process of the plan job takes a whole segment."""
_SPILL: Final = 8 << 20
"""Maximum bytes of an open transaction in memory."""
_GTIDS: Final = frozenset({EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID})
_FILE_ENDS: Final = frozenset({EventType.ROTATE, EventType.STOP})
_HEADS: Final = frozenset({EventType.PREVIOUS_GTIDS, EventType.MARIADB_GTID_LIST})


def extract(
    source: EventSource,
    start: Start,
    until: Until,
    folder: WorkFolder,
    *,
    channel: str,
    window: str,
    segment_bytes: int = SEGMENT_BYTES,
    progress: Progress | None = None,
    xa: XaTracker | None = None,
    temporary: TemporaryTracker | None = None,
    loads: LoadFileTracker | None = None,
    epochs: EpochStarts | None = None,
    told: SegmentTold | None = None,
    crashes: SourceCrashes | None = None,
) -> Manifest:
    """Write the segments from ``start`` up to ``until`` into ``folder``; the manifest is returned, not written.

    ``xa``, ``temporary``, ``loads`` and ``epochs`` see every transaction; ``told`` every segment that is complete;
    ``crashes`` what the source says of itself, and every start of it behind a crash.

    The same part of the log and the same ``segment_bytes`` give the same bytes. Raises SourceError (WindowOpenError:
    too early; SourceIdentityError: another log; MissingLogError: purged), PrecheckError, BinlogError for an unreadable
    log.
    """
    state = source.state()
    with WrittenBehind(SegmentWriter(folder), told) as sink, contextlib.closing(verified(source, state, start)) as log:
        run = Extraction(
            source.name, state, start, until, sink, segment_bytes, progress, None, xa, temporary, loads,
            source.event_bytes, epochs, partial(first_bytes, source), crashes,
        )  # fmt: skip
        try:
            for number, chunk in enumerate(log):
                if number == 0 and crashes is not None:
                    # a chunk comes from the channel's source alone: another server's answer is not kept
                    crashes.asked(state)
                if run.take(chunk):
                    break
            run.finish()
            return run.manifest(channel, window)
        except BaseException as exc:
            sink.abort(exc)
            raise


@dataclass(slots=True)
class _Open:
    """The transaction that is being read."""

    offset: int
    gtid: Gtid | MariadbGtid | None
    name: str
    server_id: int
    time: float


@dataclass(frozen=True, slots=True)
class FramedEvents:
    """The events of a chunk, whose sizes and checksums are verified, and the simple transactions among them."""

    frames: Frames
    simple: NumberedTransactions


class Extraction:
    """One pass over a log. Call ``take`` with every chunk until it returns True, then ``finish`` and ``manifest``."""

    def __init__(
        self,
        name: str,
        state: LogState,
        start: Start,
        until: Until,
        sink: Sink,
        segment_bytes: int = SEGMENT_BYTES,
        progress: Progress | None = None,
        bound: Bound | None = None,
        xa: XaTracker | None = None,
        temporary: TemporaryTracker | None = None,
        loads: LoadFileTracker | None = None,
        event_bytes: int = LARGEST_EVENT,
        epochs: EpochStarts | None = None,
        first_bytes: FirstBytes | None = None,
        crashes: SourceCrashes | None = None,
    ) -> None:
        """``first_bytes``: reads the log's files; None for a part of a log, whose files' ends are not in it."""
        self._event_bytes = event_bytes
        self._crashes = crashes
        self._epochs = EpochStarts(Eventual(0), None) if epochs is None else epochs
        self._ended: list[Epoch] = []
        self._xa, self._temporary, self._loads = xa, temporary, LoadFileTracker() if loads is None else loads
        others = (temporary, None if xa is None else xa.statements)
        self._trackers = (self._loads, *(each for each in others if each is not None))
        self.sink = sink
        self.seqno = start.seqno
        # of a clock that was ahead: transactions behind it are not later than they say
        self.time = start.time if start.time <= state.clock else 0.0
        self.gtids = parse_gtid_set(state.flavor, start.gtid_set)
        self._continuity = (
            None
            if first_bytes is None
            else Continuity(name, state, self.gtids, start.seqno == 0 and not start.gtid_set, first_bytes)
        )
        self._proved: tuple[LogPosition, str, str] | None = None
        """The end, the fingerprint and the identity of what is proved to be complete, if that is before ``end``."""
        self.end = self._before = self._behind_end = start.position
        self._name = name
        self._state = state
        self._start = start
        self._bound = bound_of(until, state, name) if bound is None else bound
        self._exact = isinstance(until, UntilPosition)
        self._stop = until.position if isinstance(until, UntilPosition) else state.end
        self._limits = (*(min(each, segment_bytes) for each in _FIRST_SEGMENTS), segment_bytes)
        self._progress = progress
        self._is_done = False
        self._restarted: int | None = None
        self._newest = 0.0
        self._bytes = 0
        self.framed: FramedEvents | None = None
        """The events of the last chunk, for who reads it, too."""
        self._begin_file("", b"", FormatDescription(""), start.position.offset)

    def take(self, chunk: LogChunk) -> bool:
        """Read one chunk; True if the window ends in it."""
        if chunk.offset == LOG_START:
            self._header_chunk(chunk)
        else:
            self._events_chunk(chunk)
        if self._progress is not None:
            whole = self._state.bytes_between(self._start.position, self._stop)
            self._progress(self.seqno - self._start.seqno, self._bytes, whole)
        return self._is_done

    def finish(self) -> None:
        """The log or the window ends here: close the last segment. Raises SourceError if the window must not end."""
        self._close_stretch()
        if self._continuity is not None:
            self._continuity.finish()
        if not self._is_done:
            # the log has ended, perhaps exactly at the stop
            if self._exact and self._stop in (self.end, self._behind_end):
                return
            self._bound.check_log_end(self._newest)

    def manifest(self, channel: str, window: str) -> Manifest:
        """The manifest of the extracted segments."""
        end, fingerprint, identity = self._reached() if self._proved is None else self._proved
        return Manifest(
            channel=channel,
            window=window,
            first_seqno=self._start.seqno + 1,
            last_seqno=self.seqno,
            start=self._start.position,
            end=end,
            gtid_set=str(self.gtids),
            end_time=self.time or self._start.time,
            identity=identity,
            fingerprint=fingerprint,
            segments=self.sink.segments,
            # the transaction that began the last epoch may have been left for the next window
            epochs=tuple(epoch for epoch in self._ended if epoch.seqno < self.seqno),
            restarts=() if self._temporary is None else tuple(self._temporary.restarts),
            restarted=self._restarted,
        )

    def _reached(self) -> tuple[LogPosition, str, str]:
        """``end`` with its fingerprint and the identity of the source there: an archive's is that of its file."""
        identity = self._state.identity
        if not self._state.closes_by_clock and self._header:
            identity = archive_identity(self._state.flavor, HEADER.unpack_from(self._header)[2])
        return self.end, self._fingerprint(), identity

    @property
    def is_believed(self) -> bool:
        """See ``Continuity``."""
        return self._continuity is not None and self._continuity.is_believed

    def _fingerprint(self) -> str:
        if self.end == self._start.position and self._start.fingerprint:
            return self._start.fingerprint
        for begin in self._last:
            if begin is not None and self.end.offset - begin <= WHOLE_TRANSACTION:
                events = self._before_end[begin - self.end.offset :]
                assert len(events) == self.end.offset - begin, f"{self._name}/{self.end}: events from {begin} on"
                return str(Fingerprint(digest(self._header), begin, digest(events)))
        return str(no_events(self._header, self.end))

    def _header_chunk(self, chunk: LogChunk) -> None:
        """Handle a FORMAT_DESCRIPTION: a new file, or the start of reading inside one."""
        if self._file != "" and self._stop is not None and self._is_behind(chunk.file, self._stop.file):
            self._past_stop(LogPosition(chunk.file, chunk.offset))
            return
        name = f"{self._name}/{chunk.file}"
        header = canonical_header(chunk.data, name)
        log_format = described(chunk.data, name)
        check_family(log_format, self._state.flavor, name)
        if self._continuity is not None:
            if self._crashes is not None and (crashed := self._continuity.crashed(log_format)):
                self._crashes.started_behind(crashed, log_format.created)
            reached = self._reached() if self._file != "" and self._proved is None else self._proved
            self._continuity.begin_file(chunk.file, chunk.data, header, log_format)
            self._proved = None if self._continuity.is_settled else reached
        if self._boundaries.state is not State.OUTSIDE and log_format.created == 0:
            at = where(self._boundaries.name, self._boundaries.open_since or 0)
            raise BinlogError(
                f"{at}the transaction that begins here does not end in its file, and the log continues in "
                f"{chunk.file}: the file is damaged; fetch it again"
            )
        if log_format.created != 0 and self._file != "":
            self._restarted = self.seqno + 1 if self._restarted is None else self._restarted
            if self._temporary is not None:
                self._temporary.restarted(self.seqno + 1)
        # after a restart, the server has rolled back the transaction that its crash interrupted
        self._loads.drop()
        self._close_stretch()
        after = LOG_START + len(chunk.data)
        if self._file == "":
            after = max(after, self._start.position.offset)
        self._begin_file(chunk.file, header, log_format, after)
        self.end = self._behind_end = LogPosition(chunk.file, after)

    def _is_behind(self, file: str, other: str) -> bool:
        """Whether one file of the log comes behind another one."""
        return LogPosition(file, 0).is_behind(LogPosition(other, 0), self._state.files)

    def _begin_file(self, file: str, header: bytes, log_format: FormatDescription, position: int) -> None:
        self._file, self._header, self._format = file, header, log_format
        self._boundaries = Boundaries(log_format, f"{self._name}/{file}", self._event_bytes)
        self._position = position
        self._stretch: Stretch | None = None
        self._written = position
        """Offset up to which all bytes were written to the sink or left out."""
        self._spill = tempfile.SpooledTemporaryFile(max_size=_SPILL)  # noqa: SIM115 - lives as long as a file is read
        self._open: _Open | None = None
        self._last: tuple[int | None, int | None] = (None, None)
        """Offset of the last whole transaction of this file, and of its last event."""
        self._recent = self._before_end = b""
        """The last bytes of this file that were read, and the last ones before ``end``: as many as are hashed."""

    def _events_chunk(self, chunk: LogChunk) -> None:
        if (chunk.file, chunk.offset - chunk.left_out) != (self._file, self._position):
            raise BinlogError(
                f"{self._name}/{chunk.file}:{chunk.offset}: expected events from {self._file}:{self._position} on"
            )
        if chunk.left_out:
            # at a file's beginning: what is read on begins behind it, as a file's first segment does behind its header
            self._close_stretch()
            self._spill.seek(0)
            self._spill.truncate()
            self._position = self._written = chunk.offset
            self._recent = b""
        end = self.end
        frames = self._frames(chunk)
        self._walk(frames, chunk)
        self._flush(chunk)
        if self.end != end:
            # at once: a transaction that is open behind it may have any length
            self._before_end = _last_bytes(self._recent, chunk.data, self.end.offset - chunk.offset)
        self._recent = _last_bytes(self._recent, chunk.data, len(chunk.data))
        self._bytes += len(chunk.data)
        self._position += len(chunk.data)
        self._spill.write(memoryview(chunk.data)[max(self._written - chunk.offset, 0) :])

    def _frames(self, chunk: LogChunk) -> Frames:
        """The chunk's events, their sizes and checksums verified."""
        name = self._boundaries.name
        frames = frame(chunk.data, 0, self._format.checksum.length)
        if frames.error != framing.OK:
            raise BinlogError(
                f"{where(name, chunk.offset + frames.end)}event_size is smaller than the smallest possible "
                "event; the log is damaged here: check the source's disk, or fetch the file again"
            )
        if frames.checksum_length:
            bad = framing.first_bad_crc(frames.data, frames.offset, frames.type_code, frames.size)
            if bad < frames.offset.size:
                at = int(frames.offset[bad])
                check_crc(frames.data.data[at : at + int(frames.size[bad])], name, chunk.offset + at)
        event, inflated = largest_inflated(frames)
        if inflated > self._event_bytes:
            place = f"{where(name, chunk.offset + frames.begin(event))}{type_name(int(frames.type_code[event]))}: "
            raise too_large(place, inflated, self._event_bytes, " inflated")
        return frames

    def _walk(self, frames: Frames, chunk: LogChunk) -> None:
        query_head = self._format.post_header_length(EventType.QUERY)
        # compressed transactions are opened only to find the XIDs of XA transactions
        simple = numbered(frames, query_head, looks_inside=self._xa is not None)
        self.framed = FramedEvents(frames, simple)
        events = frames.offset.size
        looked_at = np.append(np.flatnonzero(~IS_INSIDE[frames.type_code]), events)
        fed = 0
        while fed < events and not self._is_done:
            if self._boundaries.state is State.OUTSIDE:
                behind = self._simple_run(simple, fed, frames, chunk)
                if behind > fed:
                    fed = behind
                    continue
            if self._boundaries.state is State.OPEN:
                fed = int(looked_at[np.searchsorted(looked_at, fed)])
                if fed == events:
                    return
            self._event(frames, fed, chunk)
            fed += 1

    def _simple_run(self, simple: NumberedTransactions, event: int, frames: Frames, chunk: LogChunk) -> int:
        """Take the run of simple transactions that begins at an event as ``_event`` would; the event behind it.

        The run ends before a transaction that needs individual treatment, for example at the window's end.
        """
        entries = simple.run_at(event)
        first, last, times = simple.first[entries], simple.last[entries], simple.time[entries]
        begins = chunk.offset + frames.offset[first]
        count = first_of(times > self._state.clock)
        if self._stop is not None and self._file == self._stop.file:
            count = min(count, int(np.searchsorted(begins, self._stop.offset)))
        count = self._in_epoch(times[:count].tolist())
        count = self._bound.passes(times[:count])
        if count == 0:
            return event
        self._newest = max(self._newest, float(times[:count].max()))
        ends = chunk.offset + frames.offset[last[:count]] + frames.size[last[:count]]
        for line in simple.lines(slice(entries.start, entries.start + count)):
            one, other = (self._gtid(frames, int(simple.first[entry]), chunk) for entry in line)
            self._take_gtids(one, other)
        at = 0
        while at < count:
            since = self._loads.segment_from(self._written if self._stretch is None else self._stretch.start, 0)
            until = min(int(np.searchsorted(ends, since + self._limits[0])) + 1, count)
            self._number(
                replace(self._gtid(frames, int(first[at]), chunk), time=float(times[at])),
                replace(self._gtid(frames, int(first[until - 1]), chunk), time=float(times[until - 1])),
                until - at,
                int(ends[until - 1]),
                chunk,
            )
            at = until
        self._last = (int(begins[count - 1]), chunk.offset + int(frames.offset[last[count - 1]]))
        self.end = LogPosition(chunk.file, int(ends[count - 1]))
        return int(last[count - 1]) + 1

    def _in_epoch(self, times: Sequence[float]) -> int:
        """How many transactions from the next one on are of one epoch. Ends the one before if the next begins one."""
        if times and self._epochs.first_in(self.seqno + 1, times) == 0:
            self._epochs.begin(self.seqno + 1, times[0])
            if self.seqno > self._start.seqno:
                self._ended.append(Epoch(self.seqno, self.end, str(self.gtids), self.time))
        return self._epochs.first_in(self.seqno + 1, times)

    def _event(self, frames: Frames, index: int, chunk: LogChunk) -> None:
        """Pass one event to the boundaries and handle the begin or end of a transaction."""
        if self._is_done:
            return
        event = frames.raw(index, chunk.offset)
        was_outside = self._boundaries.state is State.OUTSIDE
        if was_outside and self._stop is not None and self._is_at_stop(event.offset):
            self._past_stop(LogPosition(chunk.file, event.offset))
            return
        place = self._boundaries.feed(event)
        if place is Place.OUTSIDE:
            self._bookkeeping(event)
        elif was_outside:
            self._begin(event)
            if self._is_done:
                return
        if place is not Place.OUTSIDE:
            for tracker in self._trackers:
                tracker.take(event, self._before, self._format, self._boundaries.name)
        if place is Place.END:
            self._commit(event, chunk)
        if self._boundaries.state is State.OUTSIDE:
            self._behind_end = LogPosition(chunk.file, event.offset + event.header.event_size)
            # the next window reads a file's end again: it proves that the file behind it is the next one
            if event.header.type_code not in _FILE_ENDS:
                self.end = self._behind_end

    def _is_at_stop(self, offset: int) -> bool:
        assert self._stop is not None
        return self._file == self._stop.file and offset >= self._stop.offset

    def _past_stop(self, position: LogPosition) -> None:
        """Handle a position between transactions, at or after the end of the window or the log."""
        if self._exact and self._stop not in (self.end, self._behind_end):
            raise SourceIdentityError(
                f"{self._name}: the window ends at {self._stop} as stored on the target, but no transaction ends "
                f"there ({position} comes after {self.end}): this is not the log from which the window was read"
            )
        if not self._exact:
            self._bound.check_log_end(self._newest)
        self._is_done = True

    def _bookkeeping(self, event: RawEvent) -> None:
        check_type(event, self._format, self._boundaries.name)
        self._newest = max(self._newest, min(float(event.header.timestamp), self._state.clock))
        if self._continuity is not None:
            if event.header.type_code == EventType.STOP:
                self._continuity.stop(event.header.timestamp)
            if event.header.type_code == EventType.ROTATE:
                rotate = parse_body(event, self._format, self._boundaries.name)
                assert isinstance(rotate, Rotate)
                self._continuity.rotate(rotate.file.rpartition("/")[2], event.header.timestamp)
        if event.header.type_code == EventType.FORMAT_DESCRIPTION:
            require_same_format(event, self._format, self._boundaries.name)
        if event.header.type_code in _HEADS:
            head = gtids_in(event, self._format, self._boundaries.name)
            assert isinstance(head, PreviousGtids | MariadbGtidList)
            if self._continuity is None:
                self.gtids.add_head(head)
            else:
                self._continuity.head(head)
                self._see_if_proved()

    def _take_gtids(self, first: _Open, last: _Open) -> None:
        """Consecutive transactions of one line are complete."""
        if self._continuity is None:
            if first.gtid is not None and last.gtid is not None:
                self.gtids.add_through(first.gtid, last.gtid, last.server_id)
        elif first.gtid is None or last.gtid is None:
            self._continuity.take_anonymous()
        else:
            self._continuity.take(first.gtid, last.gtid, last.server_id)
        self._see_if_proved()

    def _see_if_proved(self) -> None:
        if self._proved is not None and self._continuity is not None and self._continuity.is_settled:
            self._proved = None

    def _begin(self, event: RawEvent) -> None:
        """A transaction begins: take it, unless the window ends before it."""
        self._before = self.end
        opened = self._opened(event)
        time = opened.time
        if time > self._state.clock:
            # SET timestamp can log any time; a real commit time is never later than the source's clock
            time = self.time
        self._newest = max(self._newest, time)
        if self._bound.stops_before(opened.gtid, time):
            self._is_done = True
            return
        self._in_epoch((opened.time,))
        self._open = replace(opened, time=time)

    def _gtid(self, frames: Frames, index: int, chunk: LogChunk) -> _Open:
        return self._opened(frames.raw(index, chunk.offset))

    def _opened(self, event: RawEvent) -> _Open:
        """The facts in a transaction's first event."""
        header, time = event.header, float(event.header.timestamp)
        if header.type_code not in _GTIDS:
            return _Open(event.offset, None, "", header.server_id, time)
        gtid = gtids_in(event, self._format, self._boundaries.name)
        if isinstance(gtid, MariadbGtid):
            return _Open(event.offset, gtid, gtid.name(header.server_id), header.server_id, time)
        assert isinstance(gtid, Gtid)
        if gtid.immediate_commit_timestamp is not None:
            time = gtid.immediate_commit_timestamp / 1_000_000
        return _Open(event.offset, gtid, str(gtid) if gtid.gno else "", header.server_id, time)

    def _commit(self, event: RawEvent, chunk: LogChunk) -> None:
        """A transaction is complete: number it, and end the segment if it is large enough."""
        opened, end = self._open, event.offset + event.header.event_size
        assert opened is not None
        if self._xa is not None:
            self._xa.take(event, self._boundaries.ending, self._format, self._boundaries.name)
        self._open = None
        self._last = (opened.offset, event.offset)
        self._take_gtids(opened, opened)
        self._number(opened, opened, 1, end, chunk)
        self._is_done = self._bound.stops_after()

    def _number(self, first: _Open, last: _Open, count: int, end: int, chunk: LogChunk) -> None:
        """Give whole transactions up to offset ``end`` their seqnos, and end the segment if it is large enough."""
        self.seqno, self.time = self.seqno + count, last.time
        stretch = self._stretch
        if stretch is None:
            self._stretch = stretch = Stretch(
                file=chunk.file,
                log_format=self._format,
                header=self._header,
                start=self._written,
                end=end,
                first_seqno=self.seqno - count + 1,
                last_seqno=self.seqno,
                first_time=first.time,
                first_gtid=first.name,
            )
        stretch.end, stretch.last_seqno = end, self.seqno
        stretch.last_time, stretch.last_gtid = last.time, last.name
        if end - self._loads.segment_from(stretch.start, end) >= self._limits[0]:
            self._loads.drop()
            self._flush(chunk)
            self._close_stretch()

    def _flush(self, chunk: LogChunk) -> None:
        """Write the whole transactions of the chunk, with their spilled beginning, to the sink."""
        stretch = self._stretch
        if stretch is None or stretch.end <= self._written:
            return
        if self._spill.tell():
            self._spill.seek(0)
            while piece := self._spill.read(_SPILL):
                self.sink.write(piece, self._header)
            self._spill.seek(0)
            self._spill.truncate()
        begin = max(self._written, chunk.offset) - chunk.offset
        self.sink.write(memoryview(chunk.data)[begin : stretch.end - chunk.offset], self._header)
        self._written = stretch.end

    def _close_stretch(self) -> None:
        if self._stretch is not None:
            self.sink.close(self._stretch)
            self._limits = self._limits[1:] or self._limits
        self._stretch = None


def _last_bytes(before: bytes, data: bytes, end: int) -> bytes:
    return (before + data[max(end - WHOLE_TRANSACTION, 0) : end])[-WHOLE_TRANSACTION:]
