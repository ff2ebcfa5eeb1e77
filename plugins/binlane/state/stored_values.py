"""The values that each column of the schema ``binlane`` may hold, checked wherever one is read.

Whoever can write to the schema is not this program: an administrator who repairs it by hand, a restore of a part of it,
an account that has more privileges than it should. So what is read is input: a name may become a part of a path or of a
statement, a number the size of a list, a word the key of a table. ``CheckedColumn`` is the type of every column of
``state.tables``, so a query cannot read around it; those who read by a cursor of their own call ``checked``.

JSON is checked for its shape by ``state.json_columns``; where a window's files are, by ``state.window_folders``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Column, Dialect, String
from sqlalchemy.types import TypeDecorator, TypeEngine

from binlane.choices import MOST_LANES, VerifyScope
from binlane.errors import StateSchemaError
from binlane.lazy_dataclass import dataclass
from binlane.model import LOG_FILE_NAME

_SHOWN: Final = 60
"""Characters of an unexpected value that an error quotes."""
_LAST_SECOND: Final = 253_402_300_799
"""The last second of the year 9999, the last that has a date."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a column. ``expected``: for people."""

    expected: str
    has: Callable[[Any], bool]
    most: int = 0
    """Characters that are written at most; 0: as many as the server takes."""


def _integer(low: int, high: int) -> Values:
    # a sum of integers is a decimal number
    return Values(f"a whole number from {low:,} to {high:,}", lambda value: _is_whole(value) and low <= value <= high)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | Decimal) and value == int(value)


def _pattern(expected: str, pattern: str) -> Values:
    compiled = re.compile(pattern)
    return Values(expected, lambda value: type(value) is str and compiled.fullmatch(value) is not None)


def _text(most: int) -> Values:
    """What JSON makes of a text takes up to twenty times its bytes, and a page of the board reads many rows."""
    expected = f"a text of at most {most:,} characters"
    return Values(expected, lambda value: type(value) is str and len(value) <= most, most)


def _words(*words: str) -> Values:
    return Values(f"one of {', '.join(words)}", lambda value: value in words)


def _is_time(value: Any) -> bool:
    if isinstance(value, datetime):
        return True
    # the driver leaves a date that no calendar has as it is
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


_COUNT = _integer(0, 2**63 - 1)
_ID = _integer(1, 2**63 - 1)
_SEQNO = _integer(0, 2**63 - 1)
_LANE = _integer(0, MOST_LANES)
_LANE_OR_ALL = _integer(-1, MOST_LANES)
_CHANGE = Values("a whole number", lambda value: _is_whole(value) and abs(value) < 2**63)
_SECONDS = Values("a number of seconds", lambda value: isinstance(value, float | int) and 0 <= value <= _LAST_SECOND)
_TIME = Values("a date and time", _is_time)
_CHANNEL = _pattern("a channel's name", r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_WINDOW = _pattern("a window's name", r"[A-Za-z0-9][A-Za-z0-9_.-]{0,189}")
_ANY_WINDOW = _pattern("a window's name, or nothing", r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,189})?")
_NAME = _pattern("a name of at most 64 characters", r"[^\0]{0,64}")
_LOG_FILE = _pattern("the name of a log file, without a folder", LOG_FILE_NAME)
_GTID = _pattern("GTIDs", r"[0-9A-Za-z_:,.\-\s]*")
_PRINTABLE = _pattern("a text without control characters", r"[^\0-\x1f\x7f]*")
_UUID = _pattern("a UUID", r"[0-9A-Za-z-]{1,36}")
_SHA256 = _pattern("a SHA-256 in hexadecimal", r"[0-9a-f]{64}")
_SHA256_OR_NONE = _pattern("a SHA-256 in hexadecimal, or nothing", r"(?:[0-9a-f]{64})?")
_COMMAND = _pattern("a command's name and option", r"[a-z][a-z -]{0,39}")
_ERROR = _pattern("the kind of an error, or nothing", r"\w{0,100}")
_COPY = _pattern(
    "the name of a copy, copies_<channel>_<seqno>_<number>_<attempt>",
    r"copies_[0-9a-f]{8}_\d{1,20}_\d{1,10}_[0-9a-f]{8}",
)
_PLACE = _pattern("a place in a log, file.number:offset", r"[^/\\\0-\x1f\x7f]{1,512}\.\d{1,18}:\d{1,19}")
_END = r"\d{1,10}:\d{1,20}@[^/\\\0-\x1f\x7f,@]{1,512}\.\d{1,18}:\d{1,19}"
_SESSIONS = _pattern("ends of connections, server:connection@file.number:offset, by commas", rf"{_END}(?:,{_END})*")
_BEFORE = _pattern(
    "a word, kept:change:attempt:server, or digest:tables:ids:server:version",
    r"kept:-?\d{1,18}:\d{1,18}:[^\0-\x1f\x7f:]*|(?!kept:)[^\0-\x1f\x7f:]*(?::\d{1,18}(?::[^\0-\x1f\x7f]*)?)?",
)
_TEXT = Values("a text", lambda value: type(value) is str)
_RECORD, _LIST, _LISTS = _text(1 << 12), _text(1 << 16), _text(1 << 20)
"""JSON of some numbers, of some dozen names, of the columns of a table."""
_LONG, _LONGEST = _text(1 << 22), _text(1 << 23)
"""JSON of what fits on a command line, or of names in some hundred places; of all databases of a server, or of the
longest filter of a channel file."""
_BYTES = Values("bytes", lambda value: isinstance(value, bytes | bytearray | memoryview))
_VERIFICATION = _words("running", "clean", "pending", "drift", "incomplete")

VALUES: Final[Mapping[str, Mapping[str, Values]]] = {
    "migrations": {"version": _integer(0, 1_000_000), "name": _TEXT, "at": _TIME},
    "channels": {
        "channel": _CHANNEL, "uuid": _UUID, "target_identity": _PRINTABLE, "incarnation": _UUID,
        "source_identity": _PRINTABLE, "watermark_seqno": _SEQNO,
        "source_file": _LOG_FILE, "source_offset": _COUNT, "gtid_set": _GTID, "source_time": _SECONDS,
        "fingerprint": _PRINTABLE, "windows": _COUNT, "stopped": _TEXT, "stopped_at": _TIME, "complete_at": _TIME,
        "complete_through": _SECONDS, "older_sessions": _COUNT, "lost_sessions": _SESSIONS, "selection": _LONGEST,
        "synced_since": _SECONDS,
        "created_at": _TIME, "updated_at": _TIME,
    },
    "windows": {
        "channel": _CHANNEL, "window_id": _WINDOW, "number": _COUNT, "state": _words("open", "finished"),
        "source_identity": _PRINTABLE, "start": _LONGEST, "first_seqno": _SEQNO, "last_seqno": _SEQNO,
        "end_file": _LOG_FILE, "end_offset": _COUNT, "end_gtid_set": _GTID, "end_time": _SECONDS,
        "end_fingerprint": _PRINTABLE, "reached": _SEQNO, "work": _text(1024), "files": _LIST,
        "lanes": _integer(1, MOST_LANES),
        "block_transactions": _integer(1, 2**31 - 1), "plan_digest": _PRINTABLE, "totals": _RECORD, "facts": _LONG,
        "stop_at": _SEQNO, "summary": _LIST, "created_at": _TIME, "finished_at": _TIME,
    },
    "kept_inputs": {
        "channel": _CHANNEL, "part": _words("window", "schema"), "chunk": _integer(0, 2**31 - 1), "name": _WINDOW,
        "data": _BYTES,
    },
    "positions": {
        "channel": _CHANNEL, "lane": _LANE, "seqno": _SEQNO, "begun": _SEQNO, "window_id": _WINDOW,
        "digest": _PRINTABLE, "inserts": _COUNT, "updates": _COUNT, "deletes": _COUNT, "blocks": _COUNT,
        "transactions": _COUNT, "updated_at": _TIME,
    },
    "epochs": {
        "channel": _CHANNEL, "seqno": _SEQNO, "number": _COUNT, "window_id": _WINDOW, "source_identity": _PRINTABLE,
        "source_file": _LOG_FILE, "source_offset": _COUNT, "gtid_set": _GTID, "source_time": _SECONDS, "at": _TIME,
    },
    "databases": {
        "channel": _CHANNEL, "database_name": _NAME, "lane": _LANE, "seqno": _SEQNO, "row_changes": _COUNT,
        "recent": _RECORD,
    },
    "progress": {
        "channel": _CHANNEL, "step": _words("extract", "plan", "apply", "load"), "window_id": _WINDOW, "done": _COUNT,
        "total": _COUNT, "begun_at": _TIME, "updated_at": _TIME,
    },
    "splits": {
        "channel": _CHANNEL, "window_id": _WINDOW, "lane": _LANE, "first_seqno": _SEQNO, "last_seqno": _SEQNO,
        "transactions": _COUNT, "done": _COUNT,
        # the differences between rows that are planned and written may be on either side
        **{f"{kind}_{what}": _CHANGE for kind in ("planned", "written", "skipped")
           for what in ("inserts", "updates", "deletes")},
    },
    "skips": {
        "channel": _CHANNEL, "seqno": _SEQNO, "window_id": _WINDOW, "lane": _LANE_OR_ALL, "gtid": _GTID,
        "source_file": _LOG_FILE, "source_offset": _COUNT, "commit_time": _SECONDS, "summary": _TEXT, "bytes": _COUNT,
        "sha256": _SHA256, "reason": _TEXT, "by_whom": _TEXT, "at": _TIME,
        "state": _words("requested", "skipped", "replayed"), "state_at": _TIME,
    },
    "skipped_events": {"channel": _CHANNEL, "seqno": _SEQNO, "part": _integer(0, 2**31 - 1), "data": _BYTES},
    "heartbeats": {
        "channel": _CHANNEL, "lane": _LANE, "holder": _TEXT, "connection_id": _COUNT, "beat_at": _TIME,
    },
    "ddl": {
        "channel": _CHANNEL, "seqno": _SEQNO, "lane": _LANE, "statement": _TEXT, "fingerprint": _BEFORE,
        "state": _words("intent", "begun", "asked", "done", "again"), "at": _TIME,
    },
    "temporary": {
        "channel": _CHANNEL, "number": _integer(0, 2**31 - 1), "seqno": _SEQNO, "thread_id": _COUNT,
        "database_name": _NAME, "table_name": _NAME, "definition": _TEXT, "column_names": _TEXT, "copy": _COPY,
        "copied_rows": _COUNT, "at": _TIME,
    },
    "prepared": {
        "channel": _CHANNEL, "xid": _PRINTABLE, "seqno": _SEQNO, "gtid": _GTID, "source_file": _LOG_FILE,
        "source_offset": _COUNT, "changes": _COUNT, "segment": _TEXT, "at": _TIME,
    },
    "prepared_chunks": {"channel": _CHANNEL, "seqno": _SEQNO, "chunk": _integer(0, 2**31 - 1), "data": _BYTES},
    "conflicts": {
        "id": _ID, "channel": _CHANNEL, "window_id": _WINDOW, "lane": _LANE, "seqno": _SEQNO, "database_name": _NAME,
        "table_name": _NAME, "change_kind": _words("insert", "update", "delete"),
        "kind": _words("overwritten", "different", "extra", "missing"), "row_key": _TEXT, "found": _TEXT, "at": _TIME,
    },
    "errors": {
        "id": _ID, "channel": _CHANNEL, "window_id": _WINDOW, "lane": _LANE_OR_ALL, "seqno": _SEQNO, "reached": _SEQNO,
        "gtid": _GTID, "source_file": _LOG_FILE, "source_offset": _COUNT, "code": _integer(0, 2**31 - 1),
        "text": _TEXT, "at": _TIME,
    },
    "verifications": {
        "id": _ID, "channel": _CHANNEL, "kind": _words(*VerifyScope), "window_id": _ANY_WINDOW,
        "through_seqno": _SEQNO, "state": _VERIFICATION, "has_gap": _integer(0, 1), "started_at": _TIME,
        "ended_at": _TIME, "tables": _COUNT, "chunks": _COUNT, "compared_rows": _COUNT, "drift": _COUNT,
        "pending": _COUNT, "progress": _LISTS,
        "progress_key": _LISTS, "scope": _LONG, "equal_rows": _COUNT, "logged_rows": _COUNT, "expected_rows": _COUNT,
        "seconds": _SECONDS, "rules": _SHA256,
    },
    "verified_tables": {
        "channel": _CHANNEL, "table_schema": _NAME, "table_name": _NAME, "verification": _COUNT,
        "through_seqno": _SEQNO, "at": _TIME,
    },
    "verified": {
        "channel": _CHANNEL, "rows_after": _SEQNO, "rows_through": _SEQNO, "full_through": _SEQNO, "full_at": _TIME,
        "rules": _SHA256, "uncovered_seqno": _SEQNO, "uncovered_at": _TIME, "crashed_file": _LOG_FILE,
        "crashed_at": _TIME,
    },
    "suspects": {
        "id": _ID, "channel": _CHANNEL, "table_schema": _NAME, "table_name": _NAME, "row_key": _TEXT,
        "state": _words("pending", "drift"), "seqno": _SEQNO, "drifted_seqno": _SEQNO, "column_names": _LISTS,
        "source_row": _TEXT, "target_row": _TEXT, "note": _TEXT, "at": _TIME, "since": _TIME, "log_end": _PLACE,
        "key_shape": _TEXT,
    },
    "repairs": {
        "id": _ID, "channel": _CHANNEL, "digest": _SHA256, "plan": _TEXT, "seqno": _SEQNO, "requested_by": _TEXT,
        "state": _words("made", "running", "done"), "inserted": _COUNT, "updated": _COUNT, "deleted": _COUNT,
        "equal_rows": _COUNT, "changed_rows": _COUNT, "definitions": _COUNT, "started_at": _TIME, "ended_at": _TIME,
    },
    "drills": {
        "id": _ID, "channel": _CHANNEL, "seed": _COUNT, "base": _TEXT, "log": _TEXT, "log_bytes": _COUNT,
        "state": _words("running", "equal", "different", "incomplete", "failed", "interrupted"),
        "results": _LONG, "error": _TEXT, "requested_by": _TEXT, "started_at": _TIME, "ended_at": _TIME,
    },
    "bootstraps": {
        "channel": _CHANNEL, "database_names": _LONGEST, "source_identity": _PRINTABLE, "source_file": _LOG_FILE,
        "source_offset": _COUNT, "gtid_set": _GTID, "source_time": _SECONDS, "fingerprint": _PRINTABLE,
        "replaced_for": _TEXT, "outcome": _LONGEST, "finished_for": _TEXT, "attempts": _integer(0, 2**31 - 1),
        "attempt_at": _TIME, "attempt_bytes": _COUNT, "updated_at": _TIME,
    },
    "restores": {
        "channel": _CHANNEL, "definition": _TEXT,
        "stage": _words("loading", "rolling", "replacing", "moving", "extending", "complete"),
        "programs": _TEXT, "created_at": _TIME, "updated_at": _TIME,
    },
    "audit": {
        "id": _ID, "channel": _CHANNEL, "at": _TIME, "ended_at": _TIME, "by_whom": _TEXT, "account": _TEXT,
        "command": _COMMAND, "arguments": _LONG, "digest": _SHA256_OR_NONE, "result": _words("begun", "done", "failed"),
        "error": _ERROR,
    },
    "bootstrap_objects": {
        "channel": _CHANNEL, "kind": _words(
            *("table", "view", "function", "procedure", "package", "package body", "trigger", "event", "sequence"),
            "account",
        ), "object_schema": _NAME,
        "object_name": _NAME, "state": _words("planned", "done"), "copied_rows": _CHANGE, "reached": _TEXT,
        "reached_rows": _CHANGE, "source_rows": _COUNT, "source_bytes": _COUNT,
    },
}  # fmt: skip
"""By table and column. NULL is the server's business: the schema's check compares NOT NULL."""


class CheckedColumn(TypeDecorator[Any]):
    """The type of a column as the server has it; a value that the column may not hold is an error when it is read, and
    a text that is too long already when it is written."""

    impl: TypeEngine[Any] = String()
    cache_ok = True

    def __init__(self, kind: TypeEngine[Any], where: str, values: Values) -> None:
        super().__init__()
        self.impl = kind
        self.where = where
        self._values = values

    @property
    def python_type(self) -> type[Any]:
        """The server's own type's."""
        return self.impl_instance.python_type

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The server's own type."""
        return self.impl_instance

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """A value as it is written. Raises StateSchemaError for a text that no command would read again."""
        most = self._values.most
        if most and isinstance(value, str) and len(value) > most:
            raise StateSchemaError(
                f"target: {self.where}: expected {self._values.expected} to write, found {len(value):,}: nothing was "
                "written. Name fewer databases in one command or window, and report it to binlane's developers"
            )
        return value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """A value as it is read. Raises StateSchemaError."""
        if value is None or self._values.has(value):
            return value
        raise unexpected(self.where, self._values.expected, value)


def unexpected(where: str, expected: str, found: object) -> StateSchemaError:
    """The error of a column that does not hold what it may hold."""
    # a column of bytes may have a gigabyte, and its text four times as many
    head = found[:_SHOWN] if isinstance(found, bytes | str) else found
    shown, left = repr(head), len(found) - _SHOWN if isinstance(found, bytes | str) else 0
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]} ... ({len(shown) + max(left, 0):,} characters)"
    return StateSchemaError(
        f"target: {where}: expected {expected}, found {shown}: another program has changed it. Nothing was done with "
        "it: put the value back by UPDATE, or restore the schema binlane from a backup of the target (`The schema "
        "binlane is lost` in docs/recovery.md), then run again"
    )


def checked_type(table: str, column: Column[Any]) -> CheckedColumn:
    """The type for ``column`` of ``table``, which must have a row in ``VALUES``."""
    return CheckedColumn(column.type, f"binlane.{table}.{column.name}", VALUES[table][column.name])


def checked(column: Column[Any], value: Any) -> Any:
    """A value of ``column`` that was read by a cursor of the driver's. Raises StateSchemaError."""
    known = column.type
    assert isinstance(known, CheckedColumn), "every column of the state has this type"
    return known.process_result_value(value, None)  # type: ignore[arg-type]
