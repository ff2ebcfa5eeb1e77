"""Where transactions begin and end: a state machine over the events of a log, with its rules in one table.

Both families, with and without GTIDs. The kinds of events and where a transaction ends follow MySQL's
``Transaction_boundary_parser`` (``sql/rpl_trx_boundary_parser.cc``) and MariaDB's ``Log_event::is_part_of_group``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum, StrEnum
from typing import Final, NamedTuple

from binlane.binlog.events import parse_body
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.gtids import MariadbGtidFlag
from binlane.binlog.payload import MAX_EVENT, inflate
from binlane.binlog.query import statement
from binlane.binlog.reader import check_type
from binlane.binlog.wire import BufferOffset, EventType, RawEvent, type_name, where
from binlane.errors import BinlogError
from binlane.model import Flavor


class Place(Enum):
    """The place of an event relative to transactions."""

    OUTSIDE = "outside"
    """Outside every transaction: the log's own bookkeeping."""
    BEGIN = "begin"
    """The first event of a transaction of several events."""
    INSIDE = "inside"
    END = "end"
    """The last event of its transaction; also its first if no transaction was open."""


class Ending(StrEnum):
    """How a transaction ended."""

    XID = "xid"
    """Commit on a transactional engine."""
    COMMIT = "commit"
    """COMMIT as a statement: non-transactional engines took part."""
    ROLLBACK = "rollback"
    STANDALONE = "standalone"
    """One statement with an implicit commit, such as DDL, or one statement's rows without BEGIN and COMMIT."""
    XA_PREPARE = "xa_prepare"
    """XA PREPARE: the first half of an XA transaction, not committed yet."""
    XA_COMMIT = "xa_commit"
    """XA COMMIT: the changes are in the group that ended with XA_PREPARE."""
    XA_ROLLBACK = "xa_rollback"
    ONE_PHASE = "one_phase"
    """XA COMMIT ... ONE PHASE: the whole XA transaction in one group."""


class State(IntEnum):
    """The states between two events."""

    OUTSIDE = 0
    HEAD = 1
    """A GTID event or variables for a statement were read: the next event decides."""
    OPEN = 2
    """After BEGIN, until an event ends the transaction."""
    ROWS = 3
    """Rows without BEGIN, until the statement's last rows event."""


class Kind(IntEnum):
    """The kinds of events that the grouping distinguishes."""

    GTID = 0
    """MySQL's GTID event, or MariaDB's for a standalone event."""
    GTID_BEGIN = 1
    """MariaDB's GTID event in place of BEGIN."""
    BEGIN = 2
    COMMIT = 3
    ROLLBACK = 4
    XID = 5
    XA_PREPARE = 6
    ONE_PHASE = 7
    XA_COMMIT = 8
    XA_ROLLBACK = 9
    STATEMENT = 10
    FOR_NEXT = 11
    """An event that belongs to the next one."""
    ROWS = 12
    LAST_ROWS = 13
    """A rows event with STMT_END_F."""
    PAYLOAD = 14
    FILE = 15
    """Bookkeeping that a server writes between transactions only."""
    STREAM = 16
    """Bookkeeping that may come anywhere and belongs to no transaction."""
    IGNORABLE = 17


class Rule(NamedTuple):
    """The next state and the event's place, for a kind of event in a state."""

    state: State
    place: Place
    ending: Ending | None = None


_BEGIN_HEAD: Final = Rule(State.HEAD, Place.BEGIN)
_BEGIN_OPEN: Final = Rule(State.OPEN, Place.BEGIN)
_BEGIN_ROWS: Final = Rule(State.ROWS, Place.BEGIN)
_STAY_HEAD: Final = Rule(State.HEAD, Place.INSIDE)
_STAY_OPEN: Final = Rule(State.OPEN, Place.INSIDE)
_STAY_ROWS: Final = Rule(State.ROWS, Place.INSIDE)
_BETWEEN: Final = Rule(State.OUTSIDE, Place.OUTSIDE)
_ENDS: Final[Mapping[Ending, Rule]] = {ending: Rule(State.OUTSIDE, Place.END, ending) for ending in Ending}

RULES: Final[Mapping[State, Mapping[Kind, Rule]]] = {
    State.OUTSIDE: {
        Kind.GTID: _BEGIN_HEAD,
        Kind.GTID_BEGIN: _BEGIN_OPEN,
        Kind.BEGIN: _BEGIN_OPEN,
        Kind.COMMIT: _ENDS[Ending.COMMIT],
        Kind.ROLLBACK: _ENDS[Ending.ROLLBACK],
        Kind.XA_COMMIT: _ENDS[Ending.XA_COMMIT],
        Kind.XA_ROLLBACK: _ENDS[Ending.XA_ROLLBACK],
        Kind.STATEMENT: _ENDS[Ending.STANDALONE],
        Kind.FOR_NEXT: _BEGIN_HEAD,
        Kind.ROWS: _BEGIN_ROWS,
        Kind.LAST_ROWS: _ENDS[Ending.STANDALONE],
        Kind.PAYLOAD: _ENDS[Ending.XID],
        Kind.FILE: _BETWEEN,
        Kind.STREAM: _BETWEEN,
        Kind.IGNORABLE: _BETWEEN,
    },
    State.HEAD: {
        Kind.BEGIN: _STAY_OPEN,
        Kind.COMMIT: _ENDS[Ending.COMMIT],
        Kind.ROLLBACK: _ENDS[Ending.ROLLBACK],
        Kind.XA_COMMIT: _ENDS[Ending.XA_COMMIT],
        Kind.XA_ROLLBACK: _ENDS[Ending.XA_ROLLBACK],
        Kind.STATEMENT: _ENDS[Ending.STANDALONE],
        Kind.FOR_NEXT: _STAY_HEAD,
        Kind.ROWS: _STAY_ROWS,
        Kind.LAST_ROWS: _ENDS[Ending.STANDALONE],
        Kind.PAYLOAD: _ENDS[Ending.XID],
        Kind.STREAM: Rule(State.HEAD, Place.OUTSIDE),
        Kind.IGNORABLE: _STAY_HEAD,
    },
    State.OPEN: {
        Kind.COMMIT: _ENDS[Ending.COMMIT],
        Kind.ROLLBACK: _ENDS[Ending.ROLLBACK],
        Kind.XID: _ENDS[Ending.XID],
        Kind.XA_PREPARE: _ENDS[Ending.XA_PREPARE],
        Kind.ONE_PHASE: _ENDS[Ending.ONE_PHASE],
        Kind.XA_COMMIT: _ENDS[Ending.XA_COMMIT],
        Kind.XA_ROLLBACK: _ENDS[Ending.XA_ROLLBACK],
        Kind.STATEMENT: _STAY_OPEN,
        Kind.FOR_NEXT: _STAY_OPEN,
        Kind.ROWS: _STAY_OPEN,
        Kind.LAST_ROWS: _STAY_OPEN,
        Kind.STREAM: Rule(State.OPEN, Place.OUTSIDE),
        Kind.IGNORABLE: _STAY_OPEN,
    },
    State.ROWS: {
        Kind.FOR_NEXT: _STAY_ROWS,
        Kind.ROWS: _STAY_ROWS,
        Kind.LAST_ROWS: _ENDS[Ending.STANDALONE],
        Kind.STREAM: Rule(State.ROWS, Place.OUTSIDE),
        Kind.IGNORABLE: _STAY_ROWS,
    },
}
"""A missing pair means a damaged log, or that reading began inside a transaction."""

_T = EventType
_ROWS_TYPES: Final = frozenset(
    {
        *range(_T.PRE_GA_WRITE_ROWS, _T.DELETE_ROWS_V1 + 1),
        *range(_T.WRITE_ROWS_V2, _T.DELETE_ROWS_V2 + 1),
        _T.PARTIAL_UPDATE_ROWS,
        *range(_T.WRITE_ROWS_COMPRESSED_V1, _T.DELETE_ROWS_COMPRESSED_V2 + 1),
    }
)
KINDS: Final[Mapping[int, Kind]] = {
    _T.STOP: Kind.FILE,
    _T.ROTATE: Kind.FILE,
    _T.FORMAT_DESCRIPTION: Kind.FILE,
    _T.PREVIOUS_GTIDS: Kind.FILE,
    _T.MARIADB_GTID_LIST: Kind.FILE,
    _T.START_ENCRYPTION: Kind.FILE,
    _T.PERCONA_START_ENCRYPTION: Kind.FILE,
    # MariaDB writes it from a thread of its own, so it may stand inside a transaction
    _T.BINLOG_CHECKPOINT: Kind.STREAM,
    _T.HEARTBEAT: Kind.STREAM,
    _T.HEARTBEAT_V2: Kind.STREAM,
    _T.IGNORABLE: Kind.IGNORABLE,
    _T.TRANSACTION_CONTEXT: Kind.IGNORABLE,
    _T.INTVAR: Kind.FOR_NEXT,
    _T.RAND: Kind.FOR_NEXT,
    _T.USER_VAR: Kind.FOR_NEXT,
    _T.BEGIN_LOAD_QUERY: Kind.FOR_NEXT,
    _T.CREATE_FILE: Kind.FOR_NEXT,
    _T.APPEND_BLOCK: Kind.FOR_NEXT,
    _T.ROWS_QUERY: Kind.FOR_NEXT,
    _T.ANNOTATE_ROWS: Kind.FOR_NEXT,
    _T.LOAD: Kind.STATEMENT,
    _T.NEW_LOAD: Kind.STATEMENT,
    _T.EXEC_LOAD: Kind.STATEMENT,
    _T.EXECUTE_LOAD_QUERY: Kind.STATEMENT,
    # the LOAD DATA failed: its blocks belong to no transaction
    _T.DELETE_FILE: Kind.STATEMENT,
    _T.VIEW_CHANGE: Kind.STATEMENT,
    _T.XID: Kind.XID,
    _T.GTID: Kind.GTID,
    _T.ANONYMOUS_GTID: Kind.GTID,
    _T.GTID_TAGGED: Kind.GTID,
    _T.TRANSACTION_PAYLOAD: Kind.PAYLOAD,
    _T.TABLE_MAP: Kind.ROWS,
    _T.PARTIAL_ROW_DATA: Kind.ROWS,
}
"""Event types whose kind does not depend on the body."""

_CONTROL: Final = re.compile(
    rb"(?i:(?P<BEGIN>BEGIN\b|XA\s+(?:START|BEGIN)\b)|(?P<COMMIT>COMMIT\b)"
    rb"|(?P<ROLLBACK>ROLLBACK\b(?!\s+(?:WORK\s+)?TO\b))"
    rb"|(?P<ONE_PHASE>XA\s+COMMIT\b.*\bONE\s+PHASE\s*$)|(?P<XA_COMMIT>XA\s+COMMIT\b)|(?P<XA_ROLLBACK>XA\s+ROLLBACK\b))",
    re.DOTALL,
)
_CONTROL_LETTERS: Final = frozenset(b"BCRXbcrx")
_STANDALONE: Final = int(MariadbGtidFlag.STANDALONE)
_MARIADB_FLAGS_AT: Final = 12
_STMT_END: Final = 1
_KIND_OR_NONE: Final = tuple(KINDS.get(code) for code in range(256))
_STATE_RULES: Final = tuple(tuple(RULES[state].get(kind) for kind in Kind) for state in State)


class Boundaries:
    """Gives the place of each event. Feed it every event of one file, in order.

    ``state`` and ``ending`` (of the last complete transaction) may be read between events.
    """

    __slots__ = ("_event_bytes", "_format", "_looks", "ending", "name", "open_since", "state")

    def __init__(self, log_format: FormatDescription, name: str, event_bytes: int = MAX_EVENT) -> None:
        """``event_bytes``: the limit for a decompressed statement."""
        self.name = name
        self._event_bytes = event_bytes
        self.state = State.OUTSIDE
        self.ending: Ending | None = None
        self.open_since: BufferOffset | None = None
        """Offset of the first event of the open transaction; None between transactions."""
        self._format = log_format
        self._looks: Mapping[int, Callable[[memoryview], Kind]] = {
            _T.QUERY: self._query,
            _T.QUERY_COMPRESSED: self._compressed_query,
            _T.MARIADB_GTID: _mariadb_gtid,
            _T.XA_PREPARE: _xa_prepare,
            **dict.fromkeys(_ROWS_TYPES, self._rows),
        }

    def feed(self, event: RawEvent) -> Place:
        """The event's place. Raises BinlogError for an event that cannot follow: the log is damaged, or reading began
        inside a transaction."""
        code = event.header.type_code
        kind = _KIND_OR_NONE[code]
        if kind is None:
            kind = self._kind(event)
        elif code == _T.FORMAT_DESCRIPTION:
            described = parse_body(event, self._format, self.name)
            assert isinstance(described, FormatDescription)
            self._format = described
        before = self.state
        rule = _STATE_RULES[before][kind]
        if rule is None:
            if code == _T.XID and self._has_committed():
                self.ending = Ending.XID
                return Place.OUTSIDE
            raise BinlogError(self._misplaced(event))
        self.state = rule.state
        if before == State.OUTSIDE:
            if rule.state != State.OUTSIDE:
                self.open_since = event.offset
        elif rule.state == State.OUTSIDE:
            self.open_since = None
        if rule.ending is not None:
            self.ending = rule.ending
        return rule.place

    def _has_committed(self) -> bool:
        """Whether an XID follows a statement in autocommit mode, which MySQL 5.0 and 5.1 log without BEGIN.

        At the statement's end it is not known whether an XID follows, and non-transactional engines write none. So the
        statement counts as a whole transaction and its XID as bookkeeping, which may be the first event of a segment.
        """
        is_old = self._format.flavor is Flavor.MYSQL and self._format.version < _ALWAYS_BEGINS
        return is_old and self.state is State.OUTSIDE and self.ending in (None, Ending.STANDALONE)

    def _kind(self, event: RawEvent) -> Kind:
        code = event.header.type_code
        look = self._looks.get(code)
        if look is None:
            check_type(event, self._format, self.name)
            return Kind.IGNORABLE
        try:
            return look(event.body)
        except (struct.error, ValueError, IndexError) as exc:
            raise BinlogError(f"{where(self.name, event.offset)}{type_name(code)}: {exc}") from exc

    def _query(self, body: memoryview) -> Kind:
        return _statement_kind(statement(body, self._format.post_header_length(_T.QUERY)))

    def _compressed_query(self, body: memoryview) -> Kind:
        sql = statement(body, self._format.post_header_length(_T.QUERY_COMPRESSED))
        return _statement_kind(memoryview(inflate(sql, self._event_bytes)))

    def _rows(self, body: memoryview) -> Kind:
        # inside BEGIN the flag decides nothing
        if self.state == State.OPEN:
            return Kind.ROWS
        table_id_bytes = 4 if self._format.post_header_length(_T.TABLE_MAP) == _OLD_TABLE_MAP else 6
        return Kind.LAST_ROWS if body[table_id_bytes] & _STMT_END else Kind.ROWS

    def _misplaced(self, event: RawEvent) -> str:
        found = type_name(event.header.type_code)
        at = where(self.name, event.offset)
        if self.state is State.OUTSIDE:
            return f"{at}{found} outside a transaction: reading began in the middle of one; begin at an earlier event"
        return (
            f"{at}{found} inside the transaction that begins at offset {self.open_since} and has not ended: "
            "the source crashed while it wrote it, or the file is damaged"
        )


_ALWAYS_BEGINS: Final = (5, 2, 0)
"""Versions after 5.1 always log BEGIN, so there an XID without BEGIN means that reading began inside a transaction."""
_OLD_TABLE_MAP: Final = 6
"""Post-header length of TABLE_MAP in MySQL 5.1 pre-releases: table ids have 4 bytes."""


def _statement_kind(sql: memoryview) -> Kind:
    if len(sql) == 0 or sql[0] not in _CONTROL_LETTERS:
        return Kind.STATEMENT
    match = _CONTROL.match(sql)
    if match is None or match.lastgroup is None:
        return Kind.STATEMENT
    return Kind[match.lastgroup]


def _mariadb_gtid(body: memoryview) -> Kind:
    return Kind.GTID if body[_MARIADB_FLAGS_AT] & _STANDALONE else Kind.GTID_BEGIN


def _xa_prepare(body: memoryview) -> Kind:
    return Kind.ONE_PHASE if body[0] != 0 else Kind.XA_PREPARE
