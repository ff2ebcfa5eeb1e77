"""The beginning of a channel's first window: the oldest file, the log's end, a position, or the end of a GTID set.

The position's file is read from its beginning, so that the start has a GTID set and a fingerprint like any window's
end, and so that the same function serves servers and archives.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.gtids import Gtid, MariadbGtid, MariadbGtidList, PreviousGtids
from binlane.binlog.vector.frames import frame
from binlane.binlog.wire import EventType
from binlane.errors import SourceError, SourceIdentityError
from binlane.model import Flavor, LogPosition
from binlane.source.end_position import AnyTransaction, Until, UntilLogEnd, UntilPosition
from binlane.source.gtid_set import GtidSet, MariadbGtidSet, gtids_in, is_at, joined, parse_gtid_set, set_of_head
from binlane.source.identity import Start, check_unlogged, described
from binlane.source.protocol import LOG_START, EventSource, LogState, first_bytes, missing_file
from binlane.source.segment_writer import Nowhere
from binlane.source.segments import Extraction

OLDEST: Final = "oldest"
NOW: Final = "now"
_POSITION: Final = re.compile(r"([^:]+\.\d{4,}):(\d{1,18})")


def begin(source: EventSource, at: str, unlogged: str | None = "") -> Start:
    """The start of a channel's first window; ``at`` is "oldest", "now", ``file:offset`` or a GTID set.

    ``unlogged``: GTIDs that the target has besides those of the log in front of the place; None: all that the source
    has now, as at "now". Raises SourceError if there is no such place, MissingLogError if it has been purged, or if the
    source has got transactions without its log that a target of that place may lack.
    """
    state = source.state()
    found = logged_start(source, state, at)
    if not state.unlogged:
        return found
    if at != NOW and unlogged is not None:
        # what was put in behind the place is in none of its heads, and no window would read it
        check_unlogged(source.name, state, joined(state.flavor, found.gtid_set, unlogged))
    return replace(found, gtid_set=joined(state.flavor, found.gtid_set, state.unlogged))


def logged_start(source: EventSource, state: LogState, at: str) -> Start:
    """As ``begin``, with the log's transactions alone, and those of a GTID set ``at``."""
    if at == OLDEST:
        return _scan(
            source, state, LogPosition(state.files[0], LOG_START), UntilPosition(_head_end(source, state.files[0]))
        )
    if at == NOW:
        return _scan(source, state, LogPosition(state.files[-1], LOG_START), UntilLogEnd())
    if match := _POSITION.fullmatch(at):
        return _at(source, state, LogPosition(match[1], int(match[2])))
    return _behind(source, state, at)


def _at(source: EventSource, state: LogState, asked: LogPosition) -> Start:
    """The start at a position that a backup has recorded. The file's first byte stands for the end of its header."""
    head = _head_end_of(source, state, asked.file)
    position = head if asked.offset in (0, LOG_START) else asked
    if position.offset < head.offset:
        raise SourceError(
            f"{source.name}: --start {asked}: expected the beginning of a transaction, found a place inside the "
            f"file's header, which ends at {head}; begin at {head}, or at the position that the backup has "
            "recorded"
        )
    try:
        return _scan(source, state, LogPosition(position.file, LOG_START), UntilPosition(position))
    except SourceIdentityError as exc:
        raise SourceError(
            f"{source.name}: --start {asked}: expected the end of a transaction, found a place inside a "
            "transaction or an event, or after the log's end; begin at the position that the backup has "
            "recorded, or at a transaction's end that `binlane inspect` shows"
        ) from exc


def _behind(source: EventSource, state: LogState, text: str) -> Start:
    """The start after all transactions of a GTID set, in the newest file whose earlier transactions are in the set."""
    wanted = parse_gtid_set(state.flavor, text)
    for file in reversed(state.files):
        head = head_of(source, file)
        if head is not None and wanted.holds_head(head):
            start = _scan(source, state, LogPosition(file, LOG_START), UntilLogEnd(), _NotIn(wanted))
            check_unlogged(source.name, state, str(wanted))
            reached = joined(state.flavor, start.gtid_set, state.unlogged)
            if not is_at(state.flavor, str(wanted), reached):
                raise SourceError(
                    f"{source.name}: expected a place in the log directly after {wanted}; the log holds "
                    f"{start.gtid_set or 'no transaction'} before {start.position}, where the first other "
                    f"transaction begins; {_way_on(wanted, reached)}"
                )
            return replace(start, gtid_set=reached)
    raise SourceError(
        f"{source.name}: no file of the log ({state.files[0]} is the oldest) begins inside the GTID set "
        f"{wanted}: the transactions after it were purged; load a newer backup into the target"
    )


def _way_on(wanted: GtidSet, reached: str) -> str:
    if not isinstance(wanted, MariadbGtidSet) or not is_at(Flavor.MARIADB, str(wanted.logged()), reached):
        return "begin at a file:offset instead"
    return (
        f"another source had got {wanted.ahead_of(wanted.logged())} without its log, and nothing shows that this one "
        f"has it; if it has those rows, begin with `--start {wanted.logged()}`"
    )


class _NotIn(AnyTransaction):
    """Ends before the first transaction that is not in a set."""

    def __init__(self, wanted: GtidSet) -> None:
        self._wanted = wanted

    def stops_before(self, gtid: Gtid | MariadbGtid | None, commit_time: float) -> bool:
        """True for a transaction that is not in the set, or has no GTID."""
        return gtid is None or not self._wanted.holds(gtid)

    def passes(self, commit_times: NDArray[np.float64]) -> int:
        """0: each transaction is decided by its GTID."""
        return 0


def _scan(
    source: EventSource, state: LogState, first: LogPosition, until: Until, bound: AnyTransaction | None = None
) -> Start:
    """Read from the beginning of a file and return only the position that is reached."""
    from_head = Start(0, first, "", 0.0, state.identity, "")
    # a copy of the place has what was put in before it
    state = replace(state, put_in="")
    run = Extraction(
        source.name, state, from_head, until, Nowhere(), bound=bound, event_bytes=source.event_bytes,
        first_bytes=partial(first_bytes, source),
    )  # fmt: skip
    with contextlib.closing(source.read_log(first)) as chunks:
        for chunk in chunks:
            if run.take(chunk):
                break
        run.finish()
    found = run.manifest("", "")
    # a start at the end of FORMAT_DESCRIPTION has not read what the file lists behind it
    head = None if found.gtid_set else head_of(source, found.end.file)
    logged = (
        str(set_of_head(head)) if head is not None and found.end == _head_end(source, first.file) else found.gtid_set
    )
    return Start(0, found.end, logged, found.end_time, found.identity, found.fingerprint)


def _head_end_of(source: EventSource, state: LogState, file: str) -> LogPosition:
    if file not in state.files:
        raise missing_file(source.name, file, state.files)
    return _head_end(source, file)


def _head_end(source: EventSource, file: str) -> LogPosition:
    with contextlib.closing(source.read_log(LogPosition(file, LOG_START))) as chunks:
        return LogPosition(file, LOG_START + len(next(chunks).data))


def head_of(source: EventSource, file: str) -> PreviousGtids | MariadbGtidList | None:
    """The GTID set of all earlier files, from a file's header; None: it has none."""
    with contextlib.closing(source.read_log(LogPosition(file, LOG_START))) as chunks:
        log_format = described(next(chunks).data, f"{source.name}/{file}")
        chunk = next(chunks, None)
        if chunk is None or chunk.file != file:
            return None
        frames = frame(chunk.data, 0, log_format.checksum.length)
        for index, code in enumerate(frames.type_code[:4].tolist()):
            if code in (EventType.PREVIOUS_GTIDS, EventType.MARIADB_GTID_LIST):
                head = gtids_in(frames.raw(index, chunk.offset), log_format, f"{source.name}/{file}")
                assert isinstance(head, PreviousGtids | MariadbGtidList)
                return head
    return None
