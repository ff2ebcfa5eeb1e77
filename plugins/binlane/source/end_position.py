"""Where a window ends: at the log's end, before a time, at a GTID, or exactly where it ended before."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.gtids import Gtid, MariadbGtid
from binlane.errors import SourceError, SourceIdentityError, WindowOpenError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.source.protocol import LogState


@dataclass(frozen=True, slots=True)
class UntilLogEnd:
    """Everything that is in the log when extraction begins."""


@dataclass(frozen=True, slots=True)
class UntilTime:
    """The window ends before the first transaction committed at or after ``time`` (seconds since the epoch)."""

    time: float
    if_early: Callable[[float], None] | None = None
    """Gets the newest commit time of an archive that does not reach ``time``; the window ends there then. None: that is
    an error."""


@dataclass(frozen=True, slots=True)
class UntilGtid:
    """``inclusive``: the window ends after the transaction with this GTID, otherwise before it."""

    gtid: str
    inclusive: bool = True


@dataclass(frozen=True, slots=True)
class UntilPosition:
    """The window ends where an earlier extraction of it ended: the same part of the log gives the same bytes."""

    position: LogPosition


Until = UntilLogEnd | UntilTime | UntilGtid | UntilPosition

_MYSQL: Final = re.compile(r"([0-9a-fA-F-]{36}):(?:([a-z_][a-z0-9_]{0,31}):)?(\d{1,20})")
_MARIADB: Final = re.compile(r"(\d{1,10})-(\d{1,10})-(\d{1,20})")


class Bound(Protocol):
    """Decides for every transaction whether the window ends before or after it."""

    def stops_before(self, gtid: Gtid | MariadbGtid | None, commit_time: float) -> bool:
        """Whether the window ends before the transaction that begins with ``gtid``."""

    def stops_after(self) -> bool:
        """Whether the window ends after the transaction of the last ``stops_before`` call."""

    def passes(self, commit_times: NDArray[np.float64]) -> int:
        """How many of these transactions, from the first on, belong to the window; 0 leaves the decision to
        ``stops_before``."""

    def check_log_end(self, newest: float) -> None:
        """Called at the log's end. Raises SourceError if the window cannot end there; ``newest`` is the newest
        commit time in the log."""


class AnyTransaction:
    """The end of the log. A subclass that ends windows earlier overrides ``passes``, too."""

    def stops_before(self, gtid: Gtid | MariadbGtid | None, commit_time: float) -> bool:
        """False."""
        return False

    def stops_after(self) -> bool:
        """False."""
        return False

    def passes(self, commit_times: NDArray[np.float64]) -> int:
        """All transactions."""
        return commit_times.size

    def check_log_end(self, newest: float) -> None:
        """The window may end anywhere."""


class BeforeTime(AnyTransaction):
    """The end by commit time."""

    def __init__(self, until: UntilTime, state: LogState, name: str) -> None:
        """Raises WindowOpenError if the source's clock has not passed the time."""
        self._time = time = until.time
        self._if_early = until.if_early
        self._state = state
        self._name = name
        if state.closes_by_clock and state.clock < time:
            raise WindowOpenError(
                f"{name}: the window ends at {_text(time)}, the earlier one of the source's and this machine's clock "
                f"says {_text(state.clock)}: the next transactions may belong to the window; run the step again later; "
                "if a clock is wrong (`binlane doctor CHANNEL` compares them), correct it, or take --until now"
            )

    def stops_before(self, gtid: Gtid | MariadbGtid | None, commit_time: float) -> bool:
        """At or past the time."""
        return commit_time >= self._time

    def passes(self, commit_times: NDArray[np.float64]) -> int:
        """Up to the first one at or past the time."""
        return first_of(commit_times >= self._time)

    def check_log_end(self, newest: float) -> None:
        """An archive proves that it is complete up to the end by containing a newer transaction."""
        if self._state.closes_by_clock or newest >= self._time:
            return
        if self._if_early is None:
            raise WindowOpenError(
                f"{self._name}: the window ends at {_text(self._time)}, the archive reaches to {_text(newest)}: "
                "files of the window may still be missing; run the step again when the archive has them"
            )
        self._if_early(newest)


class AtGtid(AnyTransaction):
    """The end by GTID. A higher number of the same server or domain also ends the window."""

    def __init__(self, until: UntilGtid, name: str) -> None:
        """Raises SourceError for a text that is no GTID."""
        self._until = until
        self._name = name
        mysql, mariadb = _MYSQL.fullmatch(until.gtid), _MARIADB.fullmatch(until.gtid)
        if mysql is not None:
            self._line: tuple[str, str] | int = (mysql[1].lower(), mysql[2] or "")
            self._number = int(mysql[3])
        elif mariadb is not None:
            self._line, self._number = int(mariadb[1]), int(mariadb[3])
        else:
            raise SourceError(f"{name}: expected a GTID such as 0-1-100 or uuid:100, got {until.gtid!r}")
        self._is_reached = False

    def stops_before(self, gtid: Gtid | MariadbGtid | None, commit_time: float) -> bool:
        """True at the GTID, unless it is inclusive, and at any later one."""
        number = self._number_of(gtid)
        if number is None or number < self._number:
            return False
        self._is_reached = number == self._number and self._until.inclusive
        return not self._is_reached

    def stops_after(self) -> bool:
        """True after the transaction with the GTID, if it is inclusive."""
        return self._is_reached

    def passes(self, commit_times: NDArray[np.float64]) -> int:
        """0: each transaction is decided by its GTID."""
        return 0

    def check_log_end(self, newest: float) -> None:
        """The log must reach the GTID."""
        raise WindowOpenError(
            f"{self._name}: the window ends at GTID {self._until.gtid}, which the log does not contain yet; "
            "check the GTID, or run the step again when the source has written it"
        )

    def _number_of(self, gtid: Gtid | MariadbGtid | None) -> int | None:
        """The number of ``gtid``, None if it is of another server, tag or domain."""
        if isinstance(gtid, MariadbGtid):
            return gtid.seq_no if gtid.domain_id == self._line else None
        if isinstance(gtid, Gtid):
            return gtid.gno if (gtid.sid, gtid.tag) == self._line else None
        return None


class AtPosition(AnyTransaction):
    """The end by position; the extraction itself stops there."""

    def __init__(self, position: LogPosition, name: str) -> None:
        self._position = position
        self._name = name

    def check_log_end(self, newest: float) -> None:
        """The log must reach the position."""
        raise SourceIdentityError(
            f"{self._name}: the window ends at {self._position} as stored on the target, but the log ends before "
            "that: this is not the log from which the window was read, or files of it are missing"
        )


def first_of(wanted: NDArray[np.bool_]) -> int:
    """Index of the first True; the length if there is none."""
    return int(wanted.argmax()) if wanted.any() else wanted.size


def bound_of(until: Until, state: LogState, name: str) -> Bound:
    """The bound that ``until`` means for a source in this state; raises WindowOpenError if it is too early."""
    match until:
        case UntilTime():
            return BeforeTime(until, state, name)
        case UntilGtid():
            return AtGtid(until, name)
        case UntilPosition(position):
            return AtPosition(position, name)
        case UntilLogEnd():
            return AnyTransaction()


def _text(time: float) -> str:
    return dt.datetime.fromtimestamp(time, dt.UTC).isoformat(timespec="seconds")
