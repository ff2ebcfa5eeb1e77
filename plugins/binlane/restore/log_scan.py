"""Reads the log between a base and the end of a restore, before anything is written: how much there is to apply, where
exactly the restore ends, and what stands around that place.

The end is between two whole transactions. For a time it is before the first transaction of that time or later; where
older ones follow, one session's word is no end (SET TIMESTAMP logs any time), and both places are named instead.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import takewhile
from typing import Final

import numpy as np

from binlane.errors import AbsentDatabaseError, EndNotReachedError, PlanError, WindowOpenError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.restore.archive_index import IndexedFile, LogShape
from binlane.restore.end import End, EndPosition, EndStatement, EndTime, LogEnd
from binlane.restore.logged_transactions import LoggedTransaction, RowTransactions, logged_transactions
from binlane.restore.ruled_out import Passage, RuledOut
from binlane.source.end_position import first_of
from binlane.source.identity import Start
from binlane.source.protocol import EVERY_SESSION, EventSource, LogState
from binlane.work.lookup import moment

BEFORE: Final = 10
AFTER: Final = 3
"""Transactions of the databases that are shown around the end."""
_BEHIND: Final = 64 << 20
"""Bytes of the log behind the end that are searched for them."""


@dataclass(slots=True)
class LogScan:
    """What a scan has found."""

    begin: LogPosition
    """Where the databases begin: the base's place, or the place before their CREATE DATABASE."""
    end: LogPosition
    files: list[str] = field(default_factory=list)
    """Those between the two."""
    bytes: int = 0
    """Of the log between the two that was read, to the megabyte."""
    transactions: int = 0
    """Of the databases, from the one to the other, and their row changes."""
    rows: int = 0
    all_transactions: int = 0
    before: list[LoggedTransaction] = field(default_factory=list)
    after: list[LoggedTransaction] = field(default_factory=list)
    culprit: LoggedTransaction | None = None
    """The first transaction behind the end, of any database."""
    same_second: tuple[int, int] = (0, 0)
    """How many transactions of the second of the end are before it, and behind it."""
    ruled_out: list[str] = field(default_factory=list)
    """Those of the files that were not read, because the archive's index says that nothing of the databases is in
    them."""
    bytes_ruled_out: int = 0
    delay: float = 0.0
    """The longest of those of ``before``, ``after`` and ``culprit``."""
    digest: str = ""
    """Of every transaction between the two, of any database: its end, second and row changes of the databases."""


def scan(
    source: EventSource,
    start: Start,
    databases: frozenset[str],
    end: End,
    *,
    finds_begin: bool,
    was_absent: bool = False,
    ruled_out: RuledOut | None = None,
) -> LogScan:
    """Read from ``start`` to the end of the restore and a little behind it.

    ``ruled_out``: the files that need not be read; None: all are. ``finds_begin``: the databases begin with their
    CREATE DATABASE in the log. ``was_absent``: somebody has said that at ``start`` none of them was there. Raises
    PlanError for an end that the log does not have, WindowOpenError for one that it does not reach, and as ``proved``.
    """
    found = LogScan(start.position, start.position)
    if isinstance(end, EndTime) and start.time >= end.time:
        raise PlanError(f"--until {end.text}: expected a time behind the base, which is of {moment(start.time)}")
    # before the log is read: what the source writes from now on may not be read, so an end that comes only now has not
    # come
    state = source.state()
    if isinstance(end, EndPosition):
        if start.position.is_behind(end.position, state.files):
            raise PlanError(f"--until {end.text}: expected a place behind the base, which is at {start.position}")
        end = replace(end, files=state.files)
    lags = isinstance(end, EndTime) and state.closes_by_clock and source.newest_session() == EVERY_SESSION
    run = _Run(found, end, databases, _Begins(databases, was_absent) if finds_begin else None, may_lag=lags)
    at: Start | None = start
    while at is not None:
        at = _read(source, at, run, ruled_out)
    run.finish(source.name, state)
    return found


def _read(source: EventSource, start: Start, run: _Run, ruled_out: RuledOut | None) -> Start | None:
    """Read on from a place: to files that are passed over, of which the place behind them is returned, or as far as is
    needed; then None."""
    passed = {} if ruled_out is None else _by_first(ruled_out, start)
    logged = logged_transactions(source, start, run.databases, run.passes, run.add_bytes)
    with contextlib.closing(logged):
        for one in logged:
            file = one.file if isinstance(one, RowTransactions) else one.start.file
            if ruled_out is not None and (files := passed.pop(file, None)) is not None:
                passage = run.passage(files, ruled_out)
                if passage is not None:
                    return passage.behind
                # the files behind one that has to be read
                passed = _by_first(ruled_out, start, file)
            if run.take_rows(one) if isinstance(one, RowTransactions) else run.take(one):
                break
    return None


def _by_first(ruled_out: RuledOut, start: Start, read: str = "") -> dict[str, tuple[IndexedFile, ...]]:
    """The files that may be passed over together, by the first of them, which is not ``read``."""
    return {files[0].file: files for files in ruled_out.runs(start.position) if files[0].file != read}


@dataclass(slots=True)
class _Run:
    found: LogScan
    end: End
    databases: frozenset[str]
    begins: _Begins | None
    may_lag: bool = False
    """Whether transactions of before the source's clock may still come: a replica has those of its own source later,
    under the times of there."""
    _is_over: bool = False
    _second: int = 0
    """Transactions of the second of the last one, up to it."""
    _last: float = 0.0
    _doubt: tuple[LoggedTransaction, LoggedTransaction] | None = None
    """The first transaction of the end's time or later, and the first one behind it that is older than the end."""
    _matches: list[LoggedTransaction] = field(default_factory=list)
    _behind: int = 0
    _gone: dict[str, LoggedTransaction] = field(default_factory=dict)
    """The databases that are dropped at the place that is reached, each with its DROP."""
    _newest: deque[Callable[[], LoggedTransaction]] = field(default_factory=lambda: deque(maxlen=BEFORE))
    """The last transactions of the databases: most of them are not shown, and never read as a whole."""
    _bytes_behind: int = 0
    """Of the log, behind the chunk in which the restore ends."""
    _shape: LogShape = field(default_factory=LogShape)
    """Of the transactions in front of the end: the same ones, read from a server or from a copy of its files."""

    def add_bytes(self, count: int) -> None:
        """So many more have been read."""
        if self._is_over:
            self._bytes_behind += count
        else:
            self.found.bytes += count

    def passes(self, run: RowTransactions) -> int:
        """How many of a run's first transactions need not be looked at one by one."""
        if self._is_over:
            # the first one behind the end is shown, and so are some of the databases
            shown = self.found.culprit is None or len(self.found.after) < AFTER
            count = 0 if self.found.culprit is None else first_of(run.concerns) if shown else run.end.size
            return min(count, first_of(self.end.are_of_before(run.time))) if isinstance(self.end, EndTime) else count
        count = self.end.passes(run)
        if self.begins is not None and not self.begins.all_begun:
            count = min(count, first_of(run.concerns))
        return count

    def take_rows(self, run: RowTransactions) -> bool:
        """``take`` of transactions that pass together."""
        found, seconds = self.found, run.time.astype(np.int64)
        if self._is_over:
            assert found.culprit is not None
            self._behind += int(np.count_nonzero(seconds == int(found.culprit.time)))
            return self._ends_behind(int(seconds[-1]))
        alike = first_of((seconds != seconds[-1])[::-1])
        goes_on = alike == seconds.size and int(self._last) == seconds[-1]
        self._second = self._second + alike if goes_on else alike
        self._last = float(run.time[-1])
        found.all_transactions += seconds.size
        found.transactions += int(np.count_nonzero(run.concerns))
        found.rows += int(run.rows.sum())
        self._newest.extend(partial(run.read, int(entry)) for entry in np.flatnonzero(run.concerns)[-BEFORE:])
        self._shape.begin(run.file)
        self._shape.add(run.end, seconds, run.rows)
        self._reach(LogPosition(run.file, int(run.end[-1])))
        return False

    def passage(self, files: Sequence[IndexedFile], ruled_out: RuledOut) -> Passage | None:
        """Pass over as many of these files as are surely in front of the end; None: they have to be read."""
        ahead = tuple(takewhile(self.end.passes_file, files))
        if self._is_over or not ahead or (passage := ruled_out.passage(ahead)) is None:
            return None
        found = self.found
        for file in passage.files:
            if file.transactions == 0:
                continue
            goes_on = file.of_last_second == file.transactions and int(self._last) == int(file.last_time)
            self._second = self._second + file.of_last_second if goes_on else file.of_last_second
            self._last = file.last_time
            found.all_transactions += file.transactions
            self._shape.add_file(file.file, file.shape)
            self._reach(LogPosition(file.file, file.end))
            found.ruled_out.append(file.file)
            found.bytes_ruled_out += file.bytes
        return passage

    def _reach(self, end: LogPosition) -> None:
        self.found.end = end
        if end.file not in self.found.files:
            self.found.files.append(end.file)

    def take(self, one: LoggedTransaction) -> bool:
        """Whether no more is needed."""
        found = self.found
        is_match = self.end.is_before(one)
        if is_match and isinstance(self.end, EndStatement):
            self._matches.append(one)
        if not self._is_over and is_match:
            self._is_over = True
        if self._is_over:
            return self._beyond(one)
        self._second = self._second + 1 if int(one.time) == int(self._last) else 1
        self._last = one.time
        if self.begins is not None and one.concerns:
            place = self.begins.begun_at(one, found.end)
            if place is not None:
                self._restart(place)
        found.all_transactions += 1
        rows = sum(count for _, count in one.rows)
        self._shape.begin(one.end.file)
        self._shape.add_one(one.end.offset, int(one.time), rows)
        if one.concerns:
            found.transactions += 1
            found.rows += rows
            self._newest.append(lambda: one)
            self._drops(one)
        self._reach(one.end)
        self._is_over = self.end.is_behind(one)
        return False

    def _drops(self, one: LoggedTransaction) -> None:
        for change in one.changes:
            if change.is_made:
                self._gone.pop(change.database, None)
            else:
                self._gone[change.database] = one

    def _restart(self, place: LogPosition) -> None:
        found = self.found
        found.begin, found.transactions, found.rows, found.all_transactions, found.bytes = place, 0, 0, 0, 0
        self._newest.clear()
        self._shape = LogShape()
        found.files.clear()
        found.ruled_out.clear()
        found.bytes_ruled_out = 0

    def _beyond(self, one: LoggedTransaction) -> bool:
        found = self.found
        if found.culprit is None:
            found.culprit = one
        if isinstance(self.end, EndTime) and self.end.are_of_before(np.array([one.time])).any():
            # not where the time has come: the scan goes on, for the place that the error names
            self._doubt = self._doubt or (found.culprit, one)
            self._is_over, self._behind, self._bytes_behind, found.culprit = False, 0, 0, None
            found.after.clear()
            self._reach(one.end)
            return False
        self._behind += int(one.time) == int(found.culprit.time)
        if one.concerns and len(found.after) < AFTER:
            found.after.append(one)
        return self._ends_behind(int(one.time))

    def _ends_behind(self, second: int) -> bool:
        """Whether no more is needed behind the end. ``second``: of the last transaction."""
        found = self.found
        if isinstance(self.end, EndStatement):
            # every place in the log is needed
            return False
        assert found.culprit is not None
        if isinstance(self.end, EndTime):
            # one transaction's word is not enough
            return self._bytes_behind > _BEHIND
        is_shown = len(found.after) == AFTER and second != int(found.culprit.time)
        return is_shown or self._bytes_behind > _BEHIND

    def finish(self, log: str, state: LogState) -> None:
        """The log's end is reached, or no more is needed. ``state``: of the source, before its log was read."""
        end, found = self.end, self.found
        if self._doubt is not None:
            first, older = self._doubt
            raise PlanError(
                f"--until {end.text}: expected no transaction of before that time behind {first.start}, where the "
                f"first one of that time or later begins (of {moment(first.time)}), found one of "
                f"{moment(older.time)} at {older.start}: a session has set its own time (SET TIMESTAMP), or a "
                f"statement took long; say where to end: --until {first.start}, or --until {found.end}: in the "
                f"{_BEHIND >> 20} MiB of log behind it none is older"
            )
        found.before = [read() for read in self._newest]
        around = (*found.before, *found.after, *(() if found.culprit is None else (found.culprit,)))
        found.delay = max((each.delay for each in around), key=abs, default=0.0)
        found.digest = self._shape.digest()
        if found.culprit is not None:
            is_shared = int(self._last) == int(found.culprit.time)
            found.same_second = (self._second if is_shared else 0, self._behind)
        if self.begins is not None:
            self.begins.require_begun(log)
        if len(self._matches) > 1:
            places = ", ".join(f"{each.gtid or each.start} ({moment(each.time)})" for each in self._matches)
            raise PlanError(
                f"--before {end.text!r}: expected one such statement in {log}, found {len(self._matches)}: "
                f"{places}; take --before with one of these GTIDs, or --until with FILE:OFFSET"
            )
        is_here = isinstance(end, EndPosition) and end.position == found.end
        if self._is_over or is_here or isinstance(end, LogEnd):
            self._require_there()
            return
        reached = f"{log} reaches to {found.end}, {moment(self._last) if self._last else 'without a change'}"
        if isinstance(end, EndTime):
            has_come = state.closes_by_clock and state.clock > end.time
            if has_come and not self.may_lag:
                self._require_there()
                return
            if has_come:
                raise WindowOpenError(
                    f"--until {end.text}: {reached}: expected a transaction of that time or later, as the server is a "
                    "replica (or its account lacks the privilege to see that it is none: SLAVE MONITOR, on MySQL "
                    "REPLICATION CLIENT), which may still get older ones; take the command again when it has a later "
                    f"transaction, read the log of its own source, or restore up to {found.end}: --until {found.end}"
                )
            raise WindowOpenError(
                f"--until {end.text}: {reached}: the end is behind it; take an earlier one, or add files; or restore "
                f"up to {found.end}, and go on in the server's own log: --extend NAME --log CONNECTION"
            )
        if isinstance(end, EndPosition) and _is_in_front(end.position, state):
            self._require_there()
            return
        raise EndNotReachedError(
            f"{end.text!r}: expected a place between {found.begin} and the log's end, found none; {reached}"
        )

    def _require_there(self) -> None:
        """Raises AbsentDatabaseError for a database that is not there at the end."""
        for name in sorted(self.databases & self._gone.keys()):
            dropped = self._gone[name]
            raise AbsentDatabaseError(
                f"{self.end.text!r}: expected database {name} at the end of the restore, found it dropped before, by "
                f"{dropped.gtid or dropped.start} of {moment(dropped.time)}; end before that: --until {dropped.start}"
            )


@dataclass(slots=True)
class _Begins:
    """Finds where databases begin in the log itself."""

    databases: frozenset[str]
    was_absent: bool
    """Where the log is read from, none of the databases was there. The log itself does not say so: a server with data
    begins with file 1, too, where log_bin is set later, its logs are reset, or it was made from a copy."""
    _begun: dict[str, LogPosition] = field(default_factory=dict)
    _dropped: set[str] = field(default_factory=set)
    _older: dict[str, LogPosition] = field(default_factory=dict)

    @property
    def all_begun(self) -> bool:
        """Whether each database has begun, so that rows alone change nothing here."""
        return self.databases == self._begun.keys()

    def begun_at(self, one: LoggedTransaction, before: LogPosition) -> LogPosition | None:
        """The place before a transaction with which all databases begin that have begun; None if nothing changes."""
        for change in one.changes:
            name = change.database
            if change.is_dropped:
                self._begun.pop(name, None)
                self._older.pop(name, None)
                self._dropped.add(name)
            is_new = not change.is_only_if_missing or name in self._dropped or self.was_absent
            if change.is_made and name not in self._begun and name not in self._older and is_new:
                is_first = not self._begun
                self._begun[name] = before
                return before if is_first else None
        for name in self.databases - self._begun.keys():
            if any(table.partition(".")[0] == name for table, _ in one.rows):
                self._older.setdefault(name, one.start)
        return None

    def require_begun(self, log: str) -> None:
        """Raises PlanError for a database that does not begin in the log."""
        for name in sorted(self.databases - self._begun.keys()):
            raise PlanError(
                f"--from log: expected CREATE DATABASE {name} in {log}, found none before the end that makes it anew "
                "(CREATE DATABASE IF NOT EXISTS may have met an older one): take a dump as --from; or, if you know a "
                "place in the log at which no database of this name was there, name it: --at FILE:OFFSET"
            )
        if len(set(self._begun.values())) > 1 and self._dropped:
            raise PlanError(
                f"--from log: {', '.join(sorted(self._dropped))} was dropped in the log while another one of the "
                "databases was there; restore them one by one"
            )


def _is_in_front(place: LogPosition, state: LogState) -> bool:
    """Whether a log that has no transaction at a place or behind it was written beyond that place all the same."""
    return state.end is not None and (place == state.end or state.end.is_behind(place, state.files))
