"""The payload of one BINLOG statement: TABLE_MAP and rows events without checksums, each with a 19-byte header.

The server opens a statement's tables by its TABLE_MAPs and closes them at the rows event with STMT_END_F. A rows event
without its TABLE_MAP in the same BINLOG statement is silently lost on MariaDB, and crashes MySQL 9.7.
``binlog.vector`` works on the same bytes as arrays.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeVar

import pybase64

from binlane.binlog.format_description import BARE_FORMAT, FormatDescription, own_checksum_length
from binlane.binlog.rows import ROWS_KINDS, RowsEvent, RowsFlag, RowsKind, checks_off
from binlane.binlog.table_map import FLAGS_IN_BODY, TABLE_ID_AND_FLAGS, TableMap, object_names
from binlane.binlog.wire import HEADER, EventType
from binlane.errors import BinlogError, PlanError
from binlane.model import Flavor, TableKey

PACKET_SHARE: Final = 0.74
"""The part of max_allowed_packet for the events of one BINLOG statement: base64 makes 4 bytes of 3."""
STATEMENT_OVERHEAD: Final = 1024
"""Bytes of a packet besides the base64 of its events, at most: ``BINLOG ''``, the TABLE_MAPs that a writer adds when it
splits, the packet's own header. Of a small packet that is more than ``PACKET_SHARE`` leaves."""
DEFINITION: Final = slice(HEADER.size + FLAGS_IN_BODY, None)
"""The parts of a TABLE_MAP event without its table id; they identify the table definition."""

_TYPE_AT: Final = 4
_BODY: Final = HEADER.size
_FLAGS_AT: Final = _BODY + FLAGS_IN_BODY
_TABLE_ID: Final = slice(_BODY, _FLAGS_AT)
_STMT_END: Final = int(RowsFlag.STMT_END)
_CASCADES_LOGGED: Final = int(RowsFlag.CASCADES_LOGGED)
_UNCHECKED: Final = int(RowsFlag.NO_FOREIGN_KEY_CHECKS)
_CASCADING_FLAGS: Final = _CASCADES_LOGGED | _UNCHECKED
_TABLE_MAP: Final = int(EventType.TABLE_MAP)
_ROWS_TYPES: Final = frozenset(map(int, ROWS_KINDS))
_CASCADING: Final = frozenset(code for code in _ROWS_TYPES if ROWS_KINDS[code] is not RowsKind.INSERT)
"""Types of events for which a server's foreign keys change other rows."""
_FIELDS: Final = struct.Struct("<4xB4xI6x6sH").unpack_from
"""Type and size of an event's header, then its table id and flags."""
_LEAST: Final = _BODY + TABLE_ID_AND_FLAGS

_Table = TypeVar("_Table")


def payload_limit(packet: int) -> int:
    """Most bytes of events in one BINLOG statement for a server with this ``max_allowed_packet``, in bytes; at least
    1."""
    return max(1, min(int(packet * PACKET_SHARE), (packet - STATEMENT_OVERHEAD) // 4 * 3))


def encoded(payload: bytes) -> bytes:
    """Events as a BINLOG statement takes them: base64."""
    return pybase64.b64encode(payload)


def statement_of(text: bytes) -> bytes:
    """The BINLOG statement that sends events which are ``encoded``."""
    return b"BINLOG '" + text + b"'"


def announced(format_event: bytes) -> bytes:
    """The FORMAT_DESCRIPTION to send before payloads, written anew from what is read in one of a lane file.

    So the server finds the names of a TABLE_MAP where ``check_self_contained`` has found them, whatever the event says.
    Raises PlanError for one that cannot be read.
    """
    try:
        body = memoryview(format_event)[_BODY:]
        return FormatDescription.parse(body[: len(body) - own_checksum_length(body)], BARE_FORMAT).announcing_payloads()
    except (struct.error, ValueError, BinlogError) as exc:
        raise PlanError(
            f"the FORMAT_DESCRIPTION of a lane file cannot be read ({exc}); it was not sent; run the plan job again, "
            "and report this error if it happens again"
        ) from exc


def events_of(payload: bytes) -> Iterator[bytes]:
    """The events of a payload, in order."""
    at = 0
    while at < len(payload):
        end = at + HEADER.unpack_from(payload, at)[3]
        yield payload[at:end]
        at = end


def table_maps_of(payload: bytes) -> Iterator[bytes]:
    """The bodies of a payload's TABLE_MAPs."""
    return (event[_BODY:] for event in events_of(payload) if is_table_map(event))


def rows_with_tables(payload: bytes, table_of: Callable[[bytes], _Table]) -> Iterator[tuple[_Table, bytes]]:
    """Each rows event of a self-contained payload, as (``table_of`` of its TABLE_MAP event, rows event)."""
    tables: dict[bytes, _Table] = {}
    for event in events_of(payload):
        if is_table_map(event):
            tables[event[_TABLE_ID]] = table_of(event)
        else:
            yield tables[event[_TABLE_ID]], event


def is_table_map(event: bytes) -> bool:
    """Whether the event is a TABLE_MAP and not a rows event."""
    return event[_TYPE_AT] == _TABLE_MAP


def parse_table_map(event: bytes, source: Flavor) -> TableMap:
    """A TABLE_MAP event of a ``source`` server. Raises as ``TableMap.parse``."""
    return TableMap.parse(memoryview(event)[_BODY:], flavor=source)


def parse_rows(event: bytes) -> RowsEvent:
    """A rows event. Raises as ``RowsEvent.parse``."""
    return RowsEvent.parse(event[_TYPE_AT], memoryview(event)[_BODY:])


def ends_statement(event: bytes) -> bool:
    """Whether a rows event has STMT_END_F, which ends the statement's TABLE_MAPs."""
    return bool(event[_FLAGS_AT] & _STMT_END)


def ending_statement(event: bytes) -> bytes:
    """The rows event with STMT_END_F."""
    return event[:_FLAGS_AT] + bytes([event[_FLAGS_AT] | _STMT_END]) + event[_FLAGS_AT + 1 :]


def without_second_cascades(payload: bytes) -> tuple[bytes, ...]:
    """A self-contained payload whose updates and deletions switch foreign keys off if their cascades are logged.

    A server takes the checks of a whole statement from its first rows event, so a statement ends where they change. The
    payload may get longer by that, and is then cut; no part is longer than it was. All other events stay as they are.
    """
    marks, is_mixed = _second_cascades(payload)
    if not is_mixed:
        marked = bytearray(payload)
        for at in marks:
            marked[at] |= _UNCHECKED
        return (bytes(marked) if marks else payload,)
    return _packed((piece for statement in _statements(payload) for piece in _with_one_check(statement)), len(payload))


def with_changes_apart(payload: bytes) -> tuple[bytes, ...]:
    """A self-contained payload in which the updates or deletions of a statement are of its first event's kind.

    A MariaDB server opens the children of foreign keys for the kind of a statement's first rows event, and ends (signal
    11 or 6) if another kind reaches a child that has a key on a virtual column (10.11.18). Insertions need no children.
    No part is longer than the payload was.
    """
    if not _changes_kind(payload):
        return (payload,)
    return _packed((piece for statement in _statements(payload) for piece in _of_one_kind(statement)), len(payload))


def in_runs(payload: bytes, is_apart: Callable[[bytes], bool]) -> Iterator[tuple[bool, bytes]]:
    """A self-contained payload as several, in its order, each with events only of tables that are apart, or of none;
    with whether they are. ``is_apart``: by the TABLE_MAP event."""
    for statement in _statements(payload):
        maps = {event[_TABLE_ID]: event for event in statement if is_table_map(event)}
        apart = {table: is_apart(event) for table, event in maps.items()}
        rows = [event for event in statement if not is_table_map(event)]
        for found, run in groupby(rows, key=lambda event: apart[event[_TABLE_ID]]):
            yield found, _closed(maps, list(run))


def _changes_kind(payload: bytes) -> bool:
    """Whether a statement has updates or deletions of another kind than its first event."""
    at, end, first = 0, len(payload), 0
    # called for every event of a window
    while at < end:
        type_code, size, _, flags = _FIELDS(payload, at)
        if type_code != _TABLE_MAP:
            first = first or type_code
            if type_code != first and type_code in _CASCADING and ROWS_KINDS[type_code] is not ROWS_KINDS[first]:
                return True
            if flags & _STMT_END:
                first = 0
        at += size
    return False


def _of_one_kind(statement: Sequence[bytes]) -> Iterator[bytes]:
    """A statement's events; in several statements where updates or deletions have another kind than the first event."""
    maps = {event[_TABLE_ID]: event for event in statement if is_table_map(event)}
    groups: list[list[bytes]] = []
    for event in statement:
        if is_table_map(event):
            continue
        kind = ROWS_KINDS[event[_TYPE_AT]]
        if groups and (kind is RowsKind.INSERT or kind is ROWS_KINDS[groups[-1][0][_TYPE_AT]]):
            groups[-1].append(event)
        else:
            groups.append([event])
    if len(groups) == 1:
        yield b"".join(statement)
        return
    yield from (_closed(maps, events) for events in groups)


def _closed(maps: Mapping[bytes, bytes], events: Sequence[bytes]) -> bytes:
    """A statement of these rows events, with the TABLE_MAPs that they need."""
    tables = dict.fromkeys(event[_TABLE_ID] for event in events)
    return b"".join((*(maps[table] for table in tables), *events[:-1], ending_statement(events[-1])))


def _packed(statements: Iterable[bytes], most: int) -> tuple[bytes, ...]:
    """Statements in payloads of ``most`` bytes; no statement is longer."""
    parts, held, size = [], list[bytes](), 0
    for piece in statements:
        if held and size + len(piece) > most:
            parts.append(b"".join(held))
            held, size = [], 0
        held.append(piece)
        size += len(piece)
    return (*parts, b"".join(held))


def _second_cascades(payload: bytes) -> tuple[list[int], bool]:
    """Where the flags of the events are that would cascade again; whether one of their statements has others, too."""
    at, end, marks, is_mixed = 0, len(payload), list[int](), False
    before: bool | None = None
    # called for every event of a window
    while at < end:
        type_code, size, _, flags = _FIELDS(payload, at)
        if type_code != _TABLE_MAP:
            cascades = flags & _CASCADING_FLAGS == _CASCADES_LOGGED and type_code in _CASCADING
            if cascades:
                marks.append(at + _FLAGS_AT)
            is_off = cascades or bool(flags & _UNCHECKED)
            is_mixed |= before is not None and is_off is not before
            before = None if flags & _STMT_END else is_off
        at += size
    return marks, is_mixed and bool(marks)


def _cascades_again(event: bytes) -> bool:
    return event[_TYPE_AT] in _CASCADING and event[_FLAGS_AT] & _CASCADING_FLAGS == _CASCADES_LOGGED


def cascading_tables(payload: bytes) -> frozenset[TableKey]:
    """The tables whose rows are updated or deleted by events for which the server that executes them follows its own
    foreign keys: their log has no other changes of children."""
    found, maps = set[TableKey](), dict[bytes, bytes]()
    for event in events_of(payload):
        if is_table_map(event):
            maps[event[_TABLE_ID]] = event
        elif event[_TYPE_AT] in _CASCADING and not event[_FLAGS_AT] & _CASCADING_FLAGS:
            found.add(TableKey(*object_names(maps[event[_TABLE_ID]][_BODY:])))
    return frozenset(found)


def _statements(payload: bytes) -> Iterator[list[bytes]]:
    """The events of each statement."""
    held: list[bytes] = []
    for event in events_of(payload):
        held.append(event)
        if not is_table_map(event) and ends_statement(event):
            yield held
            held = []


def _with_one_check(statement: Sequence[bytes]) -> Iterator[bytes]:
    """A statement's events; in several statements if some of them have to be checked, and others not."""
    if not any(map(_cascades_again, statement)):
        yield b"".join(statement)
        return
    maps = {event[_TABLE_ID]: event for event in statement if is_table_map(event)}
    marked = [_unchecked(event) for event in statement if not is_table_map(event)]
    for _, run in groupby(marked, key=lambda event: event[_FLAGS_AT] & _UNCHECKED):
        yield _closed(maps, list(run))


def _unchecked(event: bytes) -> bytes:
    flags = event[_FLAGS_AT]
    off = checks_off(ROWS_KINDS[event[_TYPE_AT]], flags)
    return event[:_FLAGS_AT] + bytes([flags | off]) + event[_FLAGS_AT + 1 :]


def with_body(event: bytes, body: bytes, type_code: int | None = None) -> bytes:
    """The event with a new body, a new type if one is given, and the matching event_size."""
    timestamp, code, server_id, _, log_pos, flags = HEADER.unpack_from(event)
    code = code if type_code is None else type_code
    return HEADER.pack(timestamp, code, server_id, _BODY + len(body), log_pos, flags) + body


def check_self_contained(payload: bytes) -> frozenset[TableKey]:
    """The tables that a payload changes. Raises PlanError if it is not self-contained.

    It must consist of whole TABLE_MAP and ROWS events without checksums; each rows event must follow its TABLE_MAP,
    with no STMT_END_F between them; the last rows event must have STMT_END_F.
    """
    at, left, ended = 0, len(payload), True
    mapped: set[bytes] = set()
    tables: set[TableKey] = set()
    # called for every event of a window: the most common kind is checked first, its fields are unpacked once
    while left:
        if left < _LEAST:
            raise _broken(at, f"{left} bytes are left, less than an event")
        type_code, size, table_id, flags = _FIELDS(payload, at)
        if not _LEAST <= size <= left:
            raise _broken(at, f"event_size {size} does not fit the {left} bytes left")
        if type_code in _ROWS_TYPES:
            if ended or table_id not in mapped:
                number = int.from_bytes(table_id, "little")
                raise _broken(at, f"a rows event of table id {number} without its TABLE_MAP")
            ended = flags & _STMT_END
        elif type_code == _TABLE_MAP:
            if ended:
                mapped.clear()
                ended = False
            mapped.add(table_id)
            try:
                tables.add(_table(payload[at + _BODY : at + size]))
            except BinlogError as exc:
                raise _broken(at, str(exc)) from exc
        else:
            raise _broken(at, f"event type {type_code} is neither TABLE_MAP nor a rows event")
        at += size
        left -= size
    if not ended:
        raise _broken(at, "the last rows event lacks STMT_END_F")
    return frozenset(tables)


def _broken(at: int, what: str) -> PlanError:
    return PlanError(
        f"BINLOG payload, byte {at}: {what}; it was not sent, because the target would silently lose rows or "
        "crash, or change another table; run the plan job again, and report this error if it happens again"
    )


@functools.lru_cache(maxsize=4096)
def _table(body: bytes) -> TableKey:
    return TableKey(*object_names(body))
