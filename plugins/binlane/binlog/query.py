"""QUERY and EXECUTE_LOAD_QUERY: a statement and its session.

Body: thread u32, seconds u32, length of the database u8, error u16, length of the status variables u16, then status
variables, database, NUL, statement. Status variables: a code byte and a value whose length depends on the code.
Sources: MySQL ``libs/mysql/binlog/event/statement_events.h``, MariaDB ``sql/log_event.h`` (codes 128 and above).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, Final

from binlane.binlog.fields import Fields, check_name
from binlane.binlog.format_description import BARE_FORMAT, FormatDescription
from binlane.binlog.payload import inflate
from binlane.binlog.wire import SUPPRESS_USE, EventHeader, EventType
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext, has_explicit_defaults

_POST_HEADER: Final = struct.Struct("<IIBHH")
_OLD_POST_HEADER: Final = struct.Struct("<IIBH")
"""Before MySQL 5.0 there were no status variables."""
_EXECUTE_LOAD: Final = struct.Struct("<IIIB")

_NAMELESS_ALTER: Final = re.compile(
    rb"ALTER\s+(?:DATABASE|SCHEMA)\s+(?:CHARACTER|CHARSET|DEFAULT|COLLATE|READ|ENCRYPTION|COMMENT)\b", re.I
)
"""ALTER DATABASE without a name means the default database, although its event has the flag SUPPRESS_USE, as every
statement about databases. The first word behind DATABASE may be an option instead of a name."""

_AUTO_IS_NULL: Final = 1 << 14
_NO_CHECK_CONSTRAINT_CHECKS: Final = 1 << 15
_EXPLICIT_DEFAULTS: Final = 1 << 24
_NO_FOREIGN_KEY_CHECKS: Final = 1 << 26
_RELAXED_UNIQUE_CHECKS: Final = 1 << 27
_IF_EXISTS: Final = 1 << 28
_INSERT_HISTORY: Final = 1 << 30

_SINCE_CASCADE_TRIGGERS: Final = (9, 7, 0)
_MAX_DATABASES: Final = 16
"""``MAX_DBS_IN_EVENT_MTS``: a larger count, 254 in practice, means that no names follow."""
_ALTER_ENDS: Final = 0x04 | 0x08
"""MariaDB's COMMIT_ALTER and ROLLBACK_ALTER: the sequence number of START ALTER follows the flags."""

Values = dict[str, Any]
Reader = Callable[[Fields, FormatDescription], Values]


def _flags2(fields: Fields, log_format: FormatDescription) -> Values:
    bits = fields.uint(4)
    values: Values = {
        "auto_is_null": bool(bits & _AUTO_IS_NULL),
        "foreign_key_checks": not bits & _NO_FOREIGN_KEY_CHECKS,
        "unique_checks": not bits & _RELAXED_UNIQUE_CHECKS,
    }
    if log_format.flavor is not Flavor.MARIADB:
        return values
    version = log_format.version
    values["check_constraint_checks"] = not bits & _NO_CHECK_CONSTRAINT_CHECKS
    if version >= (10, 5, 2):
        values["if_exists"] = bool(bits & _IF_EXISTS)
    if has_explicit_defaults(version):
        values["explicit_defaults_for_timestamp"] = bool(bits & _EXPLICIT_DEFAULTS)
    if version >= (10, 11, 0):
        values["system_versioning_insert_history"] = bool(bits & _INSERT_HISTORY)
    return values


def _catalog(fields: Fields, _format: FormatDescription) -> Values:
    fields.take(fields.uint(1) + 1)
    return {}


def _catalog_without_nul(fields: Fields, _format: FormatDescription) -> Values:
    fields.take(fields.uint(1))
    return {}


def _master_data_written(fields: Fields, _format: FormatDescription) -> Values:
    fields.take(4)
    return {}


def _cascade_triggers(fields: Fields, log_format: FormatDescription) -> Values:
    """MySQL's ``enable_cascade_triggers``, since 9.7. Before, the code is Percona Server's ``binlog_ddl_skip_rewrite``,
    which affects the text of a logged DROP TABLE, not its effect."""
    is_on = fields.uint(1) != 0
    return {"cascade_triggers": True} if is_on and log_format.version >= _SINCE_CASCADE_TRIGGERS else {}


def _invoker(fields: Fields, _format: FormatDescription) -> Values:
    return {"invoker": (fields.short_text(), fields.short_text())}


def _updated_databases(fields: Fields, _format: FormatDescription) -> Values:
    count = fields.uint(1)
    if count > _MAX_DATABASES:
        return {"too_many_databases": True}
    databases = tuple(fields.until_nul() for _ in range(count))
    for name in databases:
        check_name(name)
    return {"updated_databases": databases}


def _gtid_flags(fields: Fields, _format: FormatDescription) -> Values:
    flags = fields.uint(1)
    return {"gtid_extra_flags": flags, "start_seq_no": fields.uint(8) if flags & _ALTER_ENDS else None}


def _charset_collations(fields: Fields, _format: FormatDescription) -> Values:
    pairs = struct.iter_unpack("<HH", fields.take(fields.uint(1) * 4))
    return {"character_set_collations": tuple((charset, collation) for charset, collation in pairs)}


_CONTEXT_CODES: Final[Mapping[int, Reader]] = {
    0: _flags2,
    1: lambda fields, _: {"sql_mode": fields.uint(8)},
    3: lambda fields, _: {
        "auto_increment_increment": fields.uint(2),
        "auto_increment_offset": fields.uint(2),
    },
    4: lambda fields, _: {
        "charset_client": fields.uint(2),
        "collation_connection": fields.uint(2),
        "collation_server": fields.uint(2),
    },
    5: lambda fields, _: {"time_zone": fields.short_text()},
    7: lambda fields, _: {"lc_time_names": fields.uint(2)},
    8: lambda fields, _: {"collation_database": fields.uint(2)},
    16: lambda fields, _: {"explicit_defaults_for_timestamp": fields.uint(1) != 0},
    18: lambda fields, _: {"default_collation_for_utf8mb4": fields.uint(2)},
    19: lambda fields, _: {"sql_require_primary_key": fields.uint(1) != 0},
    20: lambda fields, _: {"default_table_encryption": fields.uint(1) != 0},
    21: _cascade_triggers,
    131: _charset_collations,
}
"""Status variables of the session, which the statement's effect depends on."""

_QUERY_CODES: Final[Mapping[int, Reader]] = {
    2: _catalog,
    6: _catalog_without_nul,
    9: lambda fields, _: {"table_map_for_update": fields.uint(8)},
    10: _master_data_written,
    11: _invoker,
    12: _updated_databases,
    13: lambda fields, _: {"microseconds": fields.uint(3)},
    17: lambda fields, _: {"ddl_xid": fields.uint(8)},
    128: lambda fields, _: {"microseconds": fields.uint(3)},
    129: lambda fields, _: {"ddl_xid": fields.uint(8)},
    130: _gtid_flags,
}
"""Status variables about the statement itself."""


@dataclass(frozen=True, slots=True)
class Query:
    """A statement, also BEGIN, COMMIT and the XA statements."""

    database: str
    """The session's default database; empty if it had none."""
    sql: bytes
    """The statement, in the character set of ``context.charset_client``."""
    context: SessionContext
    """The session without its timestamp and the variables of other events: see ``session`` and ``with_variables``."""
    thread_id: int = 0
    exec_time: int = 0
    """Seconds of execution on the source."""
    error_code: int = 0
    updated_databases: tuple[str, ...] | None = None
    """MySQL: the databases that the statement reads or writes. None: not logged, or ``too_many_databases``."""
    too_many_databases: bool = False
    microseconds: int | None = None
    invoker: tuple[str, str] | None = None
    """User and host of the definer."""
    table_map_for_update: int | None = None
    ddl_xid: int | None = None
    gtid_extra_flags: int | None = None
    """MariaDB's ``flags_extra`` of the group's GTID: two-phase ALTER."""
    start_seq_no: int | None = None
    unknown_status: int | None = None
    """The code of an unknown status variable, where reading ended; None if all were read."""

    @classmethod
    def parse(cls, body: memoryview, log_format: FormatDescription = BARE_FORMAT) -> Query:
        """Raises ValueError or struct.error for a body that contradicts itself."""
        return _parse_query(body, log_format, EventType.QUERY, compressed=False)

    @classmethod
    def parse_compressed(cls, body: memoryview, log_format: FormatDescription = BARE_FORMAT) -> Query:
        """MariaDB's QUERY_COMPRESSED: only the statement is compressed."""
        return _parse_query(body, log_format, EventType.QUERY_COMPRESSED, compressed=True)

    def session(self, header: EventHeader, statement: bytes | None = None) -> SessionContext:
        """The session with the statement's time, and without a default database if the event has SUPPRESS_USE.

        ``statement``: the text from its first word on (``sql.plain_statement``), if it may be an ALTER DATABASE.

        CREATE DATABASE is logged with the new database as default database and that flag.
        """
        timestamp = header.timestamp + (self.microseconds or 0) / 1_000_000
        suppressed = header.flags & SUPPRESS_USE and _NAMELESS_ALTER.match(statement or self.sql) is None
        needs_none = suppressed or self.database == ""
        return replace(self.context, timestamp=timestamp, database=None if needs_none else self.database)


class Duplicates(IntEnum):
    """LOAD DATA's treatment of rows whose key exists."""

    ERROR = 0
    IGNORE = 1
    REPLACE = 2


@dataclass(frozen=True, slots=True)
class ExecuteLoadQuery:
    """LOAD DATA INFILE; its file is in earlier BEGIN_LOAD_QUERY and APPEND_BLOCK events."""

    query: Query
    file_id: int
    file_name_start: int
    """Begin and end in ``query.sql`` of the part ``INFILE '...'`` that a replica replaces."""
    file_name_end: int
    duplicates: Duplicates

    @classmethod
    def parse(cls, body: memoryview, log_format: FormatDescription = BARE_FORMAT) -> ExecuteLoadQuery:
        """Raises ValueError or struct.error for a body that contradicts itself."""
        query = _parse_query(body, log_format, EventType.EXECUTE_LOAD_QUERY, compressed=False)
        file_id, start, end, duplicates = _EXECUTE_LOAD.unpack_from(body, _POST_HEADER.size)
        if not start <= end <= len(query.sql):
            raise ValueError(f"file name at {start}..{end} of a statement of {len(query.sql)} bytes")
        return cls(query, file_id, start, end, Duplicates(duplicates))


def statement(body: memoryview, post_header: int) -> memoryview:
    """Only the statement of a QUERY's body, without parsing the rest. Raises struct.error if the body is too short."""
    if post_header < _POST_HEADER.size:
        return body[post_header + _OLD_POST_HEADER.unpack_from(body)[2] + 1 :]
    _, _, database_length, _, status_length = _POST_HEADER.unpack_from(body)
    return body[post_header + status_length + database_length + 1 :]


def _parse_query(body: memoryview, log_format: FormatDescription, kind: EventType, *, compressed: bool) -> Query:
    fields = Fields(body)
    post_header = log_format.post_header_length(kind)
    fixed = fields.take(post_header)
    status_length = 0
    if post_header < _POST_HEADER.size:
        thread_id, exec_time, database_length, error_code = _OLD_POST_HEADER.unpack_from(fixed)
    else:
        thread_id, exec_time, database_length, error_code, status_length = _POST_HEADER.unpack_from(fixed)
    context, about = _status_variables(Fields(fields.take(status_length)), log_format)
    database = fields.name(database_length)
    if fields.uint(1) != 0:
        raise ValueError("no NUL behind the database")
    sql = inflate(fields.rest()) if compressed else bytes(fields.rest())
    session = SessionContext(
        database=database if database != "" else None, thread_id=thread_id, error_code=error_code, **context
    )
    return Query(database, sql, session, thread_id, exec_time, error_code, **about)


def _status_variables(fields: Fields, log_format: FormatDescription) -> tuple[Values, Values]:
    context: Values = {}
    about: Values = {}
    while fields.left > 0:
        code = fields.uint(1)
        if (read := _CONTEXT_CODES.get(code)) is not None:
            context |= read(fields, log_format)
        elif (read := _QUERY_CODES.get(code)) is not None:
            about |= read(fields, log_format)
        else:
            # the length of an unknown variable is not known, so reading ends here
            about["unknown_status"] = code
            break
    return context, about
