"""Reads the log between a base and the end of a restore, before anything is written: how much there is to apply, where
exactly the restore ends, and what stands around that place.

The end is between two whole transactions. For a time it is before the first transaction of that time or later.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections import Counter, deque
from collections.abc import Generator
from dataclasses import field
from typing import Final, Protocol

from binlane.binlog.boundaries import Boundaries, Place
from binlane.binlog.events import FormatDescription, parse_body
from binlane.binlog.gtids import Gtid, MariadbGtid
from binlane.binlog.payload import unpack
from binlane.binlog.query import ExecuteLoadQuery, Query
from binlane.binlog.rows import ROWS_KINDS, RowsEvent, count_rows
from binlane.binlog.table_map import TableMap
from binlane.binlog.vector.frames import frame
from binlane.binlog.wire import EventType, RawEvent
from binlane.errors import PlanError, WindowOpenError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.plan.transaction.decode import statement_facts
from binlane.source.identity import Start, described
from binlane.source.protocol import LOG_START, EventSource, file_number
from binlane.source.proved import proved
from binlane.sql.charset import decoded

BEFORE: Final = 10
AFTER: Final = 3
"""Transactions of the databases that are shown around the end."""
_T = EventType
_GTIDS: Final = frozenset({_T.GTID, _T.ANONYMOUS_GTID, _T.GTID_TAGGED, _T.MARIADB_GTID})
_QUERIES: Final = frozenset({_T.QUERY, _T.QUERY_COMPRESSED, _T.EXECUTE_LOAD_QUERY})
_FRAMES: Final = (b"BEGIN", b"COMMIT", b"ROLLBACK", b"XA", b"SAVEPOINT")
_COMMENT: Final = re.compile(r"/\*.*?\*/|--\s[^\n]*|#[^\n]*", re.DOTALL)
_NAME: Final = r"(?:`((?:[^`]|``)+)`|(\S+))"
_DROPS: Final = re.compile(rf"drop (?:database|schema) (?:if exists )?{_NAME}", re.IGNORECASE)
_CREATES: Final = re.compile(
    rf"create (?:or replace )?(?:database|schema) (?P<unless>if not exists )?{_NAME}", re.IGNORECASE
)
_SCHEMA: Final = re.compile(r"^((?:create|drop) )schema\b")


@dataclass(frozen=True, slots=True)
class LoggedTransaction:
    """A transaction in the log."""

    start: LogPosition
    end: LogPosition
    gtid: str
    time: float
    rows: tuple[tuple[str, int], ...]
    """Row changes of the databases, by table."""
    statements: tuple[str, ...]
    """Statements that concern the databases."""
    concerns: bool
    """Whether it concerns one of the databases."""


class End(Protocol):
    """Where a restore ends. ``text``: as it was asked for."""

    @property
    def text(self) -> str:
        """As it was asked for."""

    def is_before(self, one: LoggedTransaction) -> bool:
        """Whether the end is before this transaction."""

    def is_behind(self, one: LoggedTransaction) -> bool:
        """Whether the end is directly behind this transaction."""


@dataclass(frozen=True, slots=True)
class EndTime:
    """Before the first transaction of the time (seconds since the epoch) or later."""

    text: str
    time: float

    def is_before(self, one: LoggedTransaction) -> bool:
        """By the commit's time."""
        return one.time >= self.time

    def is_behind(self, one: LoggedTransaction) -> bool:
        """Never: the next one decides."""
        return False


@dataclass(frozen=True, slots=True)
class EndGtid:
    """At a transaction. ``inclusive``: behind it, otherwise before it."""

    text: str
    gtid: str
    inclusive: bool

    def is_before(self, one: LoggedTransaction) -> bool:
        """At the transaction, unless it belongs to the restore."""
        return not self.inclusive and one.gtid == self.gtid

    def is_behind(self, one: LoggedTransaction) -> bool:
        """At the transaction, if it belongs to the restore."""
        return self.inclusive and one.gtid == self.gtid


@dataclass(frozen=True, slots=True)
class EndPosition:
    """At a place between two transactions."""

    text: str
    position: LogPosition

    def is_before(self, one: LoggedTransaction) -> bool:
        """From the place on. Raises PlanError for a place inside a transaction."""
        if _order(one.start) < _order(self.position) < _order(one.end):
            raise PlanError(
                f"--until {self.text}: expected a place between two transactions, found one inside the transaction "
                f"from {one.start} to {one.end}; take one of these two"
            )
        return _order(one.start) >= _order(self.position)

    def is_behind(self, one: LoggedTransaction) -> bool:
        """Where it ends at the place."""
        return one.end == self.position


@dataclass(frozen=True, slots=True)
class EndStatement:
    """Before the only transaction with this statement."""

    text: str

    def is_before(self, one: LoggedTransaction) -> bool:
        """The same words, without comments, quotes and IF EXISTS."""
        return spelled(self.text) in map(spelled, one.statements)

    def is_behind(self, one: LoggedTransaction) -> bool:
        """Never."""
        return False


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Everything that the log has now."""

    text: str = "now"

    def is_before(self, one: LoggedTransaction) -> bool:
        """Never."""
        return False

    def is_behind(self, one: LoggedTransaction) -> bool:
        """Never."""
        return False


@dataclass(slots=True)
class LogScan:
    """What a scan has found."""

    begin: LogPosition
    """Where the databases begin: the base's place, or the place before their CREATE DATABASE."""
    end: LogPosition
    files: list[str] = field(default_factory=list)
    """Those between the two."""
    bytes: int = 0
    transactions: int = 0
    """Of the databases, from the one to the other, and their row changes."""
    rows: int = 0
    all_transactions: int = 0
    before: deque[LoggedTransaction] = field(default_factory=lambda: deque(maxlen=BEFORE))
    after: list[LoggedTransaction] = field(default_factory=list)
    culprit: LoggedTransaction | None = None
    """The first transaction behind the end, of any database."""
    same_second: tuple[int, int] = (0, 0)
    """How many transactions of the second of the end are before it, and behind it."""


def spelled(statement: str) -> str:
    """A statement in one spelling, to be compared."""
    words = _words(statement.replace("`", "")).casefold()
    return _SCHEMA.sub(r"\1database", words).replace(" if exists", "")


def _words(statement: str) -> str:
    """Without comments, and with single blanks."""
    return " ".join(_COMMENT.sub(" ", statement).replace(";", " ").split())


def _named(found: re.Match[str]) -> str:
    """The database of ``_DROPS`` or ``_CREATES``."""
    quoted, plain = found.groups()[-2:]
    return str(plain) if quoted is None else str(quoted).replace("``", "`")


def scan(source: EventSource, start: Start, databases: frozenset[str], end: End, *, finds_begin: bool) -> LogScan:
    """Read from ``start`` to the end of the restore and a little behind it.

    ``finds_begin``: the databases begin with their CREATE DATABASE in the log. Raises PlanError for an end that the log
    does not have, WindowOpenError for one that it does not reach, and as ``proved``.
    """
    found = LogScan(start.position, start.position)
    if isinstance(end, EndTime) and start.time >= end.time:
        raise PlanError(f"--until {end.text}: expected a time behind the base, which is of {_moment(start.time)}")
    if isinstance(end, EndPosition) and _order(end.position) < _order(start.position):
        raise PlanError(f"--until {end.text}: expected a place behind the base, which is at {start.position}")
    run = _Run(
        found, end, databases, _Begins(databases, file_number(start.position.file) == 1) if finds_begin else None
    )
    with contextlib.closing(_transactions(source, start, databases, found)) as logged:
        for one in logged:
            if run.take(one):
                break
    run.finish(source)
    return found


@dataclass(slots=True)
class _Run:
    found: LogScan
    end: End
    databases: frozenset[str]
    begins: _Begins | None
    _is_over: bool = False
    _second: int = 0
    """Transactions of the second of the last one, up to it."""
    _last: float = 0.0
    _matches: list[LoggedTransaction] = field(default_factory=list)
    _behind: int = 0
    _gone: dict[str, LoggedTransaction] = field(default_factory=dict)
    """The databases that are dropped at the place that is reached, each with its DROP."""

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
        if one.concerns:
            found.transactions += 1
            found.rows += sum(count for _, count in one.rows)
            found.before.append(one)
            self._drops(one)
        found.end = one.end
        if one.end.file not in found.files:
            found.files.append(one.end.file)
        self._is_over = self.end.is_behind(one)
        return False

    def _drops(self, one: LoggedTransaction) -> None:
        for statement in map(_words, one.statements):
            if (dropped := _DROPS.match(statement)) is not None:
                self._gone[_named(dropped)] = one
            elif (created := _CREATES.match(statement)) is not None:
                self._gone.pop(_named(created), None)

    def _restart(self, place: LogPosition) -> None:
        found = self.found
        found.begin, found.transactions, found.rows, found.all_transactions = place, 0, 0, 0
        found.before.clear()
        found.files.clear()

    def _beyond(self, one: LoggedTransaction) -> bool:
        found = self.found
        if found.culprit is None:
            found.culprit = one
        second = int(found.culprit.time)
        self._behind += int(one.time) == second
        found.same_second = (self._second if int(self._last) == second else 0, self._behind)
        if one.concerns and len(found.after) < AFTER:
            found.after.append(one)
        # of a statement every place in the log is needed
        return not isinstance(self.end, EndStatement) and len(found.after) == AFTER and int(one.time) != second

    def finish(self, source: EventSource) -> None:
        """The log's end is reached, or no more is needed."""
        end, found = self.end, self.found
        if self.begins is not None:
            self.begins.require_begun(source.name)
        if len(self._matches) > 1:
            places = ", ".join(f"{each.gtid or each.start} ({_moment(each.time)})" for each in self._matches)
            raise PlanError(
                f"--before {end.text!r}: expected one such statement in {source.name}, found {len(self._matches)}: "
                f"{places}; take --before with one of these GTIDs, or --until with FILE:OFFSET"
            )
        if self._is_over or isinstance(end, LogEnd):
            self._require_there()
            return
        reached = f"{source.name} reaches to {found.end}, {_moment(self._last) if self._last else 'without a change'}"
        if isinstance(end, EndTime):
            state = source.state()
            if state.closes_by_clock and state.clock > end.time:
                self._require_there()
                return
            raise WindowOpenError(
                f"--until {end.text}: {reached}: the end is behind it; take an earlier one, or add files"
            )
        raise PlanError(
            f"{end.text!r}: expected a place between {found.begin} and the log's end, found none; {reached}"
        )

    def _require_there(self) -> None:
        """Raises PlanError for a database that is not there at the end."""
        for name in sorted(self.databases & self._gone.keys()):
            dropped = self._gone[name]
            raise PlanError(
                f"{self.end.text!r}: expected database {name} at the end of the restore, found it dropped before, by "
                f"{dropped.gtid or dropped.start} of {_moment(dropped.time)}; end before that: --until {dropped.start}"
            )


@dataclass(slots=True)
class _Begins:
    """Finds where databases begin in the log itself."""

    databases: frozenset[str]
    is_whole: bool
    """The log begins with the server's first file."""
    _begun: dict[str, LogPosition] = field(default_factory=dict)
    _dropped: set[str] = field(default_factory=set)
    _older: dict[str, LogPosition] = field(default_factory=dict)

    def begun_at(self, one: LoggedTransaction, before: LogPosition) -> LogPosition | None:
        """The place before a transaction with which all databases begin that have begun; None if nothing changes."""
        for statement in map(_words, one.statements):
            if (dropped := _DROPS.match(statement)) is not None and (name := _named(dropped)) in self.databases:
                self._begun.pop(name, None)
                self._older.pop(name, None)
                self._dropped.add(name)
                return None
            if (created := _CREATES.match(statement)) is not None and (name := _named(created)) in self.databases:
                is_new = created["unless"] is None or name in self._dropped or self.is_whole
                if name not in self._begun and name not in self._older and is_new:
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
                f"--from log: expected CREATE DATABASE {name} in {log}, found none before the end that makes it anew: "
                "the log begins behind it; take a dump as --from"
            )
        if len(set(self._begun.values())) > 1 and self._dropped:
            raise PlanError(
                f"--from log: {', '.join(sorted(self._dropped))} was dropped in the log while another one of the "
                "databases was there; restore them one by one"
            )


def _transactions(
    source: EventSource, start: Start, databases: frozenset[str], found: LogScan
) -> Generator[LoggedTransaction, None, None]:
    """Every transaction behind ``start``."""
    log_format, name = FormatDescription(""), ""
    boundaries = Boundaries(log_format, name)
    reading: _Reading | None = None
    with contextlib.closing(proved(source, start)) as chunks:
        for chunk in chunks:
            name = f"{source.name}/{chunk.file}"
            if chunk.offset == LOG_START:
                log_format = described(chunk.data, name)
                boundaries = Boundaries(log_format, name)
                continue
            found.bytes += len(chunk.data)
            frames = frame(chunk.data, 0, log_format.checksum.length, log_format.header_length)
            frames.check(name)
            for index in range(frames.offset.size):
                event = frames.raw(index, chunk.offset)
                place = boundaries.feed(event)
                if place is Place.OUTSIDE:
                    continue
                if reading is None:
                    reading = _Reading.of(event, log_format, name, databases, chunk.file)
                reading.take(event)
                if place is Place.END:
                    yield reading.transaction(event)
                    reading = None


@dataclass(slots=True)
class _Reading:
    """The transaction that is being read."""

    log_format: FormatDescription
    name: str
    databases: frozenset[str]
    file: str
    offset: int
    gtid: str
    time: float
    _maps: dict[int, TableMap | None] = field(default_factory=dict)
    _rows: Counter[str] = field(default_factory=Counter)
    _statements: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, event: RawEvent, log_format: FormatDescription, name: str, databases: frozenset[str], file: str
    ) -> _Reading:
        gtid, time = "", float(event.header.timestamp)
        if event.header.type_code in _GTIDS:
            parsed = parse_body(event, log_format, name)
            if isinstance(parsed, MariadbGtid):
                gtid = parsed.name(event.header.server_id)
            elif isinstance(parsed, Gtid):
                gtid = "" if event.header.type_code == _T.ANONYMOUS_GTID else str(parsed)
                if parsed.immediate_commit_timestamp is not None:
                    time = parsed.immediate_commit_timestamp / 1_000_000
        return cls(log_format, name, databases, file, int(event.offset), gtid, time)

    def take(self, event: RawEvent) -> None:
        code = event.header.type_code
        if code == _T.TABLE_MAP:
            table = TableMap.parse(event.body, self.name, self.log_format.flavor)
            self._maps[table.table_id] = table if table.database in self.databases else None
        elif code in ROWS_KINDS:
            if any(table is not None for table in self._maps.values()):
                rows = RowsEvent.parse(code, event.body, self.name)
                table_of = self._maps.get(rows.table_id)
                if table_of is not None:
                    self._rows[f"{table_of.database}.{table_of.table}"] += count_rows(rows, table_of, self.name)
        elif code in _QUERIES:
            self._query(event)
        elif code == _T.TRANSACTION_PAYLOAD:
            for inner in unpack(event, self.name):
                self.take(inner)

    def _query(self, event: RawEvent) -> None:
        parsed = parse_body(event, self.log_format, self.name)
        query = parsed.query if isinstance(parsed, ExecuteLoadQuery) else parsed
        assert isinstance(query, Query)
        if query.sql.startswith(_FRAMES):
            return
        session = query.session(event.header)
        # most statements are of other databases
        if session.database not in self.databases and not any(each.encode() in query.sql for each in self.databases):
            return
        facts = statement_facts(query.sql, session, self.log_format.flavor)
        listed = frozenset(query.updated_databases or ())
        is_unknown = not facts.databases and session.database in self.databases
        if is_unknown or not self.databases.isdisjoint(facts.databases | listed):
            self._statements.append(decoded(query.sql, session))

    def transaction(self, last: RawEvent) -> LoggedTransaction:
        """Called with the last event."""
        end = int(last.offset) + last.header.event_size
        start, behind = LogPosition(self.file, self.offset), LogPosition(self.file, end)
        concerns = bool(self._rows or self._statements)
        rows = tuple(sorted(self._rows.items()))
        return LoggedTransaction(start, behind, self.gtid, self.time, rows, tuple(self._statements), concerns)


def _order(position: LogPosition) -> tuple[int, int]:
    return file_number(position.file), position.offset


def _moment(time: float) -> str:
    return dt.datetime.fromtimestamp(time, dt.UTC).isoformat(timespec="seconds")
