"""Whether files follow each other in one log: ``binlane inspect`` shows files that do not, and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from binlane.binlog.events import Rotate, parse_body
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.gtids import Gtid, MariadbGtid, MariadbGtidList, PreviousGtids
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Transaction
from binlane.binlog.wire import HEADER, LOG_BEGIN, EventFlag, EventType, RawEvent
from binlane.errors import SourceError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.source.continuity import Continuity
from binlane.source.gtid_set import GtidSet, gtids_in, parse_gtid_set
from binlane.source.identity import canonical_header
from binlane.source.protocol import LogState, base_of, file_number

FIRST_BYTES: Final = 64 << 10
"""Bytes of a file that ``FileSequence.begin`` takes."""
_HEADS: Final = frozenset({EventType.PREVIOUS_GTIDS, EventType.MARIADB_GTID_LIST})
_WITH_GTID: Final = frozenset({EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID})
_NAME: Final = "read as one log"


@dataclass(frozen=True, slots=True)
class _File:
    """The beginning of a file."""

    name: str
    event: bytes
    """FORMAT_DESCRIPTION."""
    log_format: FormatDescription


class FileSequence:
    """Give it the files in the order in which they are shown: ``begin``, then the events and transactions of each.

    ``warn`` gets what a window would refuse, once for each pair of files; what comes behind is judged anew. Relay logs
    and files without a number behind their name, as segments are, are not judged: nothing in them says what came
    before.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._continuity: Continuity | None = None
        self._file: _File | None = None
        self._gtids: GtidSet | None = None
        self._first_bytes: dict[str, bytes] = {}
        self._is_judged = False
        """Whether the rest of the present file can still say anything."""

    def begin(self, name: str, first_bytes: bytes, log_format: FormatDescription) -> None:
        """A file, by the name that its server gave it."""
        size = HEADER.unpack_from(first_bytes, LOG_BEGIN)[3]
        event = first_bytes[LOG_BEGIN : LOG_BEGIN + size]
        if HEADER.unpack_from(event)[-1] & EventFlag.RELAY_LOG or not _has_number(name):
            self.leave()
            return
        before, self._file = self._file, _File(name, event, log_format)
        self._first_bytes[name] = first_bytes[LOG_BEGIN + size :]
        self._is_judged = True
        if before is None or self._continuity is None:
            self._begin_anew(None)
        elif refusal := _other_log(before, self._file):
            self._refuse(refusal, None)
        else:
            try:
                self._begin_file(self._continuity)
            except SourceError as exc:
                # the GTIDs go on: the head of the file says which ones are missing
                self._refuse(str(exc), self._gtids)

    def event(self, event: RawEvent, reader: LogReader) -> None:
        """An event of the present file, outside of transactions."""
        if self._continuity is None:
            return
        kind = event.header.type_code
        if kind == EventType.STOP:
            self._continuity.stop(event.header.timestamp)
        elif kind == EventType.ROTATE:
            rotate = parse_body(event, reader.format, reader.name)
            assert isinstance(rotate, Rotate)
            self._continuity.rotate(rotate.file.rpartition("/")[2], event.header.timestamp)
        elif kind in _HEADS:
            head = gtids_in(event, reader.format, reader.name)
            assert isinstance(head, PreviousGtids | MariadbGtidList)
            try:
                self._continuity.head(head)
            except SourceError as exc:
                self._refuse(str(exc), None)
                self._continuity.head(head)

    def transaction(self, transaction: Transaction, reader: LogReader) -> None:
        """A transaction of the present file."""
        self.gtids(transaction.events[0], transaction.events[0], reader)

    def gtids(self, first: RawEvent, last: RawEvent, reader: LogReader) -> None:
        """Transactions of the present file whose GTIDs follow each other: the first event of the first and the last."""
        if self._continuity is None or not self._is_judged:
            return
        one, other = (
            gtids_in(each, reader.format, reader.name) if each.header.type_code in _WITH_GTID else None
            for each in (first, last)
        )
        try:
            if isinstance(one, Gtid | MariadbGtid) and isinstance(other, Gtid | MariadbGtid):
                self._continuity.take(one, other, last.header.server_id)
            else:
                self._continuity.take_anonymous()
        except SourceError as exc:
            self._refuse(str(exc), None)
            self._is_judged = False

    def leave(self) -> None:
        """What was read of the present file is not its whole, and so says nothing about the next one."""
        self._continuity = self._file = None

    def finish(self) -> None:
        """There is no further file."""
        if self._continuity is not None:
            try:
                self._continuity.finish()
            except SourceError as exc:
                self._warn(str(exc))

    def _refuse(self, refusal: str, gtids: GtidSet | None) -> None:
        self._warn(refusal)
        self._begin_anew(gtids)

    def _begin_anew(self, gtids: GtidSet | None) -> None:
        """A sequence that begins with the present file. ``gtids``: what came before it, if its head shall not say."""
        assert self._file is not None
        flavor = self._file.log_format.flavor
        self._gtids = parse_gtid_set(flavor, "") if gtids is None else gtids
        self._continuity = Continuity(
            _NAME, _any_archive(flavor), self._gtids, gtids is None, self._first_bytes.__getitem__
        )
        self._begin_file(self._continuity)

    def _begin_file(self, continuity: Continuity) -> None:
        assert self._file is not None
        file = self._file
        continuity.begin_file(file.name, file.event, canonical_header(file.event, file.name), file.log_format)


def _any_archive(flavor: Flavor) -> LogState:
    return LogState("", flavor, (), None, 0.0, closes_by_clock=False)


def _has_number(name: str) -> bool:
    try:
        file_number(name)
    except SourceError:
        return False
    return True


def _other_log(before: _File, found: _File) -> str:
    """Why two files cannot be of one log, by what is in no archive at all; empty if they can be."""
    one, other = before.log_format.flavor, found.log_format.flavor
    if one is not other:
        return f"{_NAME}: {before.name} is a file of {one.value}, {found.name} one of {other.value}"
    if base_of(before.name) != base_of(found.name):
        return f"{_NAME}: {before.name} and {found.name} are files of two logs, by their names"
    return ""
