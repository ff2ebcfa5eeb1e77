"""The log's continuity: each file is read to where its server ended it, and the file behind it is the next of that log.

A server ends a file with ROTATE, which names the next one, or with STOP at a shutdown; only a crash leaves it without
an end, and so does a copy that was made while the server was writing. What is before a file is in its head: MySQL's
PREVIOUS_GTIDS, MariaDB's GTID list. So the head of the next file proves that a file without an end is complete, if all
its transactions have GTIDs. A live server's own files are believed to be complete after a crash; the transactions in
the next head are compared there, too.

Without GTIDs a file's number, its server id and its time tell whose it is: all servers of one set-up may have the same
names of files and the same id. The ROTATE of a file and the beginning of the next one are of one statement, and have
one time. Behind a stop or a crash no time binds the files: such a file is believed to be the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from itertools import pairwise
from typing import Final

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.gtids import Gtid, MariadbGtid, MariadbGtidList, PreviousGtids
from binlane.binlog.wire import FLAGS_AT, HEADER, IN_USE, EventType
from binlane.errors import MissingLogError, SourceIdentityError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.sessions.server_proof import mariadb_identity
from binlane.source.gtid_set import GtidSet, MariadbGtidSet, set_of_head
from binlane.source.identity import check_taken
from binlane.source.protocol import LogState, base_of, check_follows, file_number

_FIRST_WITH_LISTS: Final = (10, 0, 2)
"""MariaDB: from this version on every transaction has a GTID, and every file a list of them."""
_BOOKKEEPING: Final = frozenset(
    {
        EventType.PREVIOUS_GTIDS,
        EventType.MARIADB_GTID_LIST,
        EventType.BINLOG_CHECKPOINT,
        EventType.ROTATE,
        EventType.STOP,
    }
)
ROTATION_SECONDS: Final = 60
"""Between ROTATE and the beginning of the file that it names, at most. A server gives both the time of the
statement that it runs; a thread without a statement, at a signal, asks the clock twice."""
_SHOWN: Final = 200
"""Characters of a GTID set in a message."""


class End(Enum):
    """How a file ends."""

    ROTATE = "rotate"
    STOP = "stop"
    NONE = "none"
    """By a crash, or because it is a part of the file only."""


class Verdict(Enum):
    """What a file's end and the beginning of the file behind it say together."""

    WHOLE = "whole"
    BY_GTIDS = "by GTIDs"
    """Whole if the GTIDs say so."""
    NOT_NEXT = "not next"
    """The server wrote another file between them."""


VERDICTS: Final[Mapping[tuple[End, bool], Verdict]] = {
    (End.ROTATE, False): Verdict.WHOLE,
    # a crash between the ROTATE and the file that it names
    (End.ROTATE, True): Verdict.WHOLE,
    (End.STOP, True): Verdict.WHOLE,
    (End.STOP, False): Verdict.NOT_NEXT,
    (End.NONE, True): Verdict.BY_GTIDS,
    (End.NONE, False): Verdict.BY_GTIDS,
}
"""By a file's end, and by whether the next file was begun by a start of the server. For archives."""

FirstBytes = Callable[[str], bytes]
"""The first events of a file behind its FORMAT_DESCRIPTION."""


@dataclass(slots=True)
class _File:
    """A file that is read, as far as it is known."""

    name: str
    header: bytes
    """FORMAT_DESCRIPTION in the form that is equal for all readers."""
    server_id: int
    timestamp: int
    is_in_use: bool
    log_format: FormatDescription
    end: End = End.NONE
    ended: int = 0
    """When, by the event that ends it, in seconds since the epoch; 0 if that is not known."""
    rotates_to: str = ""
    has_head: bool = False
    gtids: int = 0
    anonymous: int = 0

    @property
    def all_have_gtids(self) -> bool:
        """Whether no transaction of the file can be without a GTID, as far as it was read. MySQL begins a new file
        whenever its gtid_mode changes."""
        if self.log_format.flavor is Flavor.MARIADB:
            return self.log_format.version >= _FIRST_WITH_LISTS
        return self.gtids > 0 and self.anonymous == 0


@dataclass(slots=True)
class Continuity:
    """Give it each file's beginning, its bookkeeping and its transactions, in the log's order.

    Raises MissingLogError for what is incomplete or missing, SourceIdentityError for a file of another log.
    """

    name: str
    state: LogState
    gtids: GtidSet
    """The transactions of the log up to the present place; ``take`` adds to it."""
    is_new: bool
    """The channel begins here: the first head is what came before it."""
    first_bytes: FirstBytes
    _file: _File | None = None
    _headers: dict[bytes, str] = field(default_factory=dict)
    _unproved: _File | None = None
    """A file without an end whose completeness the transactions of the next file decide."""
    _doubt: str = ""
    """Why the present file may not be the next one of the log, unless the GTIDs in its head say that it is."""
    _is_bound: bool = True

    @property
    def is_settled(self) -> bool:
        """Whether all files up to the present one are proved to be complete."""
        return self._unproved is None

    @property
    def is_believed(self) -> bool:
        """Whether nothing binds the present file to the one before it but its number, its server id and its time."""
        return not self._is_bound

    @property
    def _is_archive(self) -> bool:
        return not self.state.closes_by_clock

    def crashed(self, log_format: FormatDescription) -> str:
        """The present file, if its server has crashed in it, by the beginning of the file behind it; else empty."""
        file = self._file
        return file.name if file is not None and file.end is End.NONE and log_format.created else ""

    @property
    def rotates_to(self) -> str:
        """The next file by the present file's ROTATE event; empty until the event is read."""
        return "" if self._file is None else self._file.rotates_to

    def begin_file(self, file: str, event: bytes, canonical: bytes, log_format: FormatDescription) -> None:
        """A file's FORMAT_DESCRIPTION, as it was read and in the form that is equal for all readers."""
        timestamp, _, server_id, *_ = HEADER.unpack_from(event)
        found = _File(file, canonical, server_id, timestamp, bool(event[FLAGS_AT] & IN_USE), log_format)
        before, self._file = self._file, found
        if before is not None:
            self._check_own_number(before)
            if not self._is_renamed(before, found):
                # an archive may name its files otherwise than their server did; their numbers are proved
                rotates_to = "" if self._is_archive else before.rotates_to
                check_follows(self.name, before.name, rotates_to, file)
            if self._is_archive:
                self._check_next(before, found)
        self._headers[canonical] = file

    def rotate(self, file: str, time: int) -> None:
        """The file's ROTATE event names the next file. ``time``: the event's, seconds since the epoch."""
        assert self._file is not None
        self._file.end, self._file.rotates_to, self._file.ended = End.ROTATE, file, time

    def stop(self, time: int) -> None:
        """The file's STOP event. ``time``: its own, seconds since the epoch."""
        assert self._file is not None
        self._file.end, self._file.ended = End.STOP, time

    def head(self, head: PreviousGtids | MariadbGtidList) -> None:
        """The file's own list of what was logged before it."""
        assert self._file is not None
        if self._file.has_head:
            return
        file, self._file.has_head = self._file.name, True
        if self.is_new:
            if self._doubt and str(self.gtids):
                # the head has them, or not
                self._check_same_history(file, set_of_head(head))
            self._raise_doubt()
            self.is_new = False
            self.gtids.add_head(head)
            return
        before = set_of_head(head)
        if lost := str(before.without(self.gtids)):
            raise self._lost(file, lost)
        if self._is_archive and file not in self.state.trusted_files:
            self._check_same_history(file, before)
        if self._unproved is not None and self._unproved.all_have_gtids:
            self._unproved = None

    def take(self, first: Gtid | MariadbGtid, last: Gtid | MariadbGtid, server_id: int) -> None:
        """Consecutive transactions with GTIDs, and the server that logged them first."""
        if isinstance(first, Gtid) and not first.gno:
            self.take_anonymous()
            return
        file = self._before_transaction()
        if self.gtids.repeats(first, last):
            raise SourceIdentityError(
                f"{self.name}: {file.name}: expected transactions that are not in {_short(str(self.gtids))}, found "
                f"{first}: this file, or one before it, is an older one of the log or of another server; put the right "
                "file there"
            )
        file.gtids += 1
        if self.state.put_in and isinstance(first, MariadbGtid) and isinstance(self.gtids, MariadbGtidSet):
            begins = file.has_head and file.gtids == 1 and not file.anonymous
            positions = MariadbGtidSet.parse(self.state.put_in)
            is_own = self.state.identity == mariadb_identity(server_id)
            lost = self.gtids.passed_over(positions, first, server_id, is_own=is_own, begins_file=begins)
            check_taken(self.name, Flavor.MARIADB, lost, self.state.taken)
        self.gtids.add_through(first, last, server_id)
        # its server had GTIDs on when it wrote the file before: MySQL begins a new one when the mode changes
        self._unproved = None

    def take_anonymous(self) -> None:
        """Transactions without a GTID."""
        file = self._before_transaction()
        file.anonymous += 1
        if self._unproved is not None:
            raise self._not_proved(self._unproved, file.name)

    def finish(self) -> None:
        """The log ends, or the window ends in it."""
        if self._file is not None:
            self._check_own_number(self._file)

    def _before_transaction(self) -> _File:
        assert self._file is not None
        if not self._file.has_head:
            self._raise_doubt()
            if self._unproved is not None:
                raise self._not_proved(self._unproved, self._file.name)
        # a relay log has ROTATE events of its source in it, too
        self._file.end, self._file.rotates_to, self._file.ended = End.NONE, "", 0
        return self._file

    def _is_renamed(self, before: _File, found: _File) -> bool:
        """Whether the server was started with another name of its log, and its index has the files of both."""
        if before.rotates_to or not found.log_format.created or base_of(before.name) == base_of(found.name):
            return False
        return (before.name, found.name) in pairwise(self.state.files)

    def _check_own_number(self, file: _File) -> None:
        """In an archive a file's ROTATE shows its own number."""
        if not self._is_archive or not file.rotates_to:
            return
        own, number = file_number(file.name), file_number(file.rotates_to)
        if number != own + 1:
            raise SourceIdentityError(
                f"{self.name}: {file.name}: expected a file whose ROTATE names number {own + 1}, found "
                f"{file.rotates_to}: the file is {number - 1} of its log and has another one's name; put the right "
                "file there"
            )

    def _check_next(self, before: _File, found: _File) -> None:
        verdict = VERDICTS[before.end, found.log_format.created != 0]
        if verdict is Verdict.NOT_NEXT:
            raise SourceIdentityError(
                f"{self.name}: {before.name} ends with the shutdown of its server, and {found.name} was not begun by a "
                f"start of one: it is not the next file of this log; put the right {found.name} there"
            )
        self._check_not_a_copy(found)
        by_time, self._is_bound = _by_time(before, found)
        if found.name in self.state.trusted_files:
            self._doubt = ""
        elif before.server_id != found.server_id:
            self._doubt = (
                f"{found.name} is of server_id {found.server_id}, the file before it of another one, and no GTIDs show "
                f"that both have one history: put the right {found.name} there; or, if the server_id of the server was "
                f"changed, name {found.name} in source.trusted_files of the channel"
            )
        elif by_time and before.name not in self.state.trusted_files:
            self._doubt = (
                f"{found.name} {by_time}, by the times in both, and no GTIDs show that both have one history: a file "
                "of another server, or an older one, has its name, or the server's clock was set; put the right "
                f"{found.name} there, or, if it is the right one, name it in source.trusted_files of the channel"
            )
        if before.name in self.state.trusted_files:
            return
        if verdict is Verdict.BY_GTIDS and self._unproved is None:
            if before.anonymous:
                raise self._not_proved(before, found.name)
            self._unproved = before

    def _check_not_a_copy(self, found: _File) -> None:
        """Files that were begun in one second have equal headers; their first transactions differ."""
        other = self._headers.get(found.header)
        if other is None:
            return
        one, two = self.first_bytes(other), self.first_bytes(found.name)
        length = min(len(one), len(two))
        if one[:length] == two[:length] and _has_transaction(one[:length]):
            raise SourceIdentityError(
                f"{self.name}: {found.name} begins as {other} does: it is the same file twice; put the right "
                f"{found.name} there"
            )

    def _check_same_history(self, file: str, before: GtidSet) -> None:
        """The head lists what was read before it, not less."""
        surplus = self.gtids.without(before)
        if isinstance(surplus, MariadbGtidSet):
            assert isinstance(before, MariadbGtidSet)
            # FLUSH BINARY LOGS DELETE_DOMAIN_ID removes domains that no file has any more
            is_other = not surplus.domains().isdisjoint(before.domains()) or (
                bool(surplus.domains()) and not before.domains()
            )
        else:
            is_other = bool(str(surplus))
        if is_other:
            raise SourceIdentityError(
                f"{self.name}: {file}: expected a file that follows {_short(str(self.gtids))}, found one that follows "
                f"{_short(str(before)) or 'no transaction'}, without {_short(str(surplus))}: it is an older file, or "
                f"one of another server; put the right {file} there, or name {file} in source.trusted_files of the "
                "channel if it is the right one"
            )
        if not str(before):
            self._raise_doubt()
        else:
            self._doubt, self._is_bound = "", True

    def _raise_doubt(self) -> None:
        if self._doubt:
            raise SourceIdentityError(f"{self.name}: {self._doubt}")

    def _lost(self, file: str, lost: str) -> MissingLogError:
        """The error for transactions before a file that were not read."""
        if not self._is_archive:
            return MissingLogError(
                f"{self.name}: {file}: by its head, {_short(lost)} came before it, in no file of the log: they "
                "were logged in a file that is gone, or put in by a dump (gtid_purged); load a newer backup into "
                "the target"
            )
        before = self._unproved
        if before is not None:
            return MissingLogError(
                f"{self.name}: {before.name} is not complete: by its head, {file} comes behind {_short(lost)}, which "
                f"{before.name} does not have: it was copied while the server was writing it; copy it into the archive "
                "again"
            )
        return MissingLogError(
            f"{self.name}: {file}: by its head, {_short(lost)} came before it, in no file before it: a file is not "
            f"complete or is of another server; copy {file} and the file before it into the archive again"
        )

    def _not_proved(self, before: _File, after: str) -> MissingLogError:
        why = (
            "its server has not closed it: it was copied while the server was writing it"
            if before.is_in_use and before.log_format.flavor is Flavor.MYSQL
            else "its server crashed while it wrote the file, or the copy is not complete, and without GTIDs nothing "
            "in the log tells which"
        )
        return MissingLogError(
            f"{self.name}: {before.name} is not complete: {after} follows it, expected ROTATE or STOP at its end, "
            f"found none: {why}; copy it into the archive again; if it is as long as on its server (SHOW BINARY "
            f"LOGS), name {before.name} in source.trusted_files of the channel"
        )


def is_of_rotation(ended: int, begun: int) -> bool:
    """Whether the end of a file and the beginning of another one are of times that one rotation gives both; in seconds
    since the epoch."""
    return abs(begun - ended) <= ROTATION_SECONDS


def _by_time(before: _File, found: _File) -> tuple[str, bool]:
    """Why a file cannot be the next one, by the times in both; empty if it can be. And whether they show that it is."""
    is_rotation = before.end is End.ROTATE and not found.log_format.created and bool(before.ended)
    apart = found.timestamp - before.ended
    if is_rotation and apart == 0:
        # of one statement, whose session may have set any time
        return "", True
    if is_rotation and not is_of_rotation(before.ended, found.timestamp):
        return f"was begun {abs(apart):,} seconds {'behind' if apart > 0 else 'before'} the ROTATE that names it", False
    if found.timestamp < max(before.timestamp, before.ended - ROTATION_SECONDS):
        return f"was begun before {before.name}" + " ended" * (found.timestamp >= before.timestamp), False
    return "", is_rotation


def _has_transaction(events: bytes) -> bool:
    """Whether another event than a file's own bookkeeping is in the beginning of a file."""
    at = 0
    while at + HEADER.size <= len(events):
        _, code, _, size, *_ = HEADER.unpack_from(events, at)
        at += size
        if code not in _BOOKKEEPING and at <= len(events):
            return True
    return False


def _short(gtids: str) -> str:
    return gtids if len(gtids) <= _SHOWN else f"{gtids[:_SHOWN]}..."
