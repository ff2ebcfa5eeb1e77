"""The values that binlane's packages exchange. No I/O.

The words are those of docs/architecture.md: channel, window, segment, seqno, shard, lane, block, barrier.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final, NamedTuple

from binlane.lazy_dataclass import dataclass

GLOBAL_SHARD: Final = "#GLOBAL"
"""Server-wide operations: accounts, FLUSH, server settings."""
UNKNOWN_SHARD: Final = "#UNKNOWN"
"""The shard of a transaction whose databases cannot be determined; it is serialized."""
OWN_SCHEMA: Final = "binlane"
"""The database of binlane's own state on each target. A source has one, too, if it is the target of another channel."""
SYSTEM_DATABASES: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys", OWN_SCHEMA})
"""Databases of the servers, and of binlane, in lower case."""
FILTERED_SHARD: Final = "#FILTERED "
"""The shard of transactions that the channel's filter leaves out as a whole: they only move a position. It stands among
the names of databases, and no server takes one with a space at its end."""
SPECIAL_SHARDS: Final = frozenset({GLOBAL_SHARD, UNKNOWN_SHARD, FILTERED_SHARD})
"""Shards that are no databases."""

_UNITS: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


class Flavor(StrEnum):
    """The server family that wrote a log or holds a target."""

    MARIADB = "mariadb"
    MYSQL = "mysql"


def number_of(digits: str) -> int:
    """The number of a literal's digits: servers take any number of zeros in front, Python no more than 4,300 digits. Of
    a longer one than 40 digits the beginning stands for it, which is larger than whatever a server counts."""
    return int(digits.lstrip("0")[:40] or 0)


EXPLICIT_DEFAULTS_SINCE: Final = {
    (10, 5): (10, 5, 17),
    (10, 6): (10, 6, 9),
    (10, 7): (10, 7, 5),
    (10, 8): (10, 8, 4),
    (10, 9): (10, 9, 2),
}
"""First version of each series of MariaDB before 10.10 in which a session has ``explicit_defaults_for_timestamp`` of
its own, and the log its bit (``deduct_options_written_to_bin_log``)."""


def has_explicit_defaults(version: tuple[int, int, int]) -> bool:
    """Whether ``explicit_defaults_for_timestamp`` is a variable of sessions, which is logged, in a MariaDB server;
    before, it is an option of the whole server."""
    return version >= EXPLICIT_DEFAULTS_SINCE.get(version[:2], (10, 10, 0))


def version_number(version: str) -> tuple[int, int, int]:
    """``10.11.6-MariaDB-log`` -> (10, 11, 6); a prefix ``5.5.5-`` (some proxies, old MariaDB servers) is ignored."""
    match = re.search(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", version.removeprefix("5.5.5-"))
    return (0, 0, 0) if match is None else (int(match[1]), int(match[2]), int(match[3]))


LOG_FILE_NAME: Final = r"(?!\.\.?$)[^/\\\0-\x1f\x7f]{0,512}"
"""A pattern of the names of a log's files: no folder, and nothing that only a made name has."""


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A position in the source's log. ``offset`` is 64 bits wide: counted, never read from ``log_pos``, which wraps."""

    file: str
    offset: int

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"

    def is_behind(self, other: LogPosition, files: Collection[str] = ()) -> bool:
        """Whether this place is known to be behind another one of the same log. ``files``: the log's, oldest first.

        The numbers of two files tell it if the names in front of them are equal. A server that is started with another
        name of its log and the former index goes on with the same log, whose numbers begin again: there only the
        log's files tell it, and without them neither place is known to be behind the other.
        """
        if self.file == other.file:
            return self.offset > other.offset
        one, two = _NUMBERED.fullmatch(self.file), _NUMBERED.fullmatch(other.file)
        if one is not None and two is not None and one[1] == two[1]:
            return int(one[2]) > int(two[2])
        order = {file: number for number, file in enumerate(files)}
        return self.file in order and other.file in order and order[self.file] > order[other.file]


_NUMBERED: Final = re.compile(r"(.*)\.([0-9]{1,18})", re.DOTALL)
"""The name of a log, and the number of a file of it."""
CLOCKS_DIFFER: Final = 60.0
"""Seconds by which the clocks of source, target and workers may differ without being wrong. A stored time that is
farther ahead of the clock was taken from a clock that was wrong, and counts for nothing."""


def plural(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun. ``many``: the plural of a noun that does not end in s."""
    return f"{count:,} {one if count == 1 else f'{one}s' if many is None else many}"


def size_text(count: float) -> str:
    """A number of bytes in the largest unit that fits."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count:,.0f} B"


@dataclass(frozen=True, slots=True)
class FolderRecord:
    """The place of a window's folder, as the state on the target records it: a text that names no folder by itself,
    because ``state.window_folders`` says where a window's files are."""

    uri: str
    digests: Mapping[str, str] | None = None
    """SHA-256 of the window's files, by their names there; None: they are not recorded."""

    @property
    def is_removed(self) -> bool:
        """Whether the window's files were removed."""
        return self.uri == ""

    def __str__(self) -> str:
        return self.uri


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Row changes by kind; the target's Handler counters must show the same numbers."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(self.inserts + other.inserts, self.updates + other.updates, self.deletes + other.deletes)

    def __str__(self) -> str:
        kinds = ((self.inserts, "insert"), (self.updates, "update"), (self.deletes, "delete"))
        return ", ".join(plural(count, kind) for count, kind in kinds)

    @property
    def total(self) -> int:
        """Inserts, updates and deletes together."""
        return self.inserts + self.updates + self.deletes


class ItemKind(StrEnum):
    """The kinds of a block's items."""

    ROWS = "rows"
    """TABLE_MAP and ROWS events without checksums: the payload of one BINLOG statement."""
    STATEMENT = "statement"
    """One statement inside a transaction."""
    LOAD = "load"
    """A LOAD DATA LOCAL; the FILE items after it are its file."""
    FILE = "file"
    """A part of a file for LOAD DATA."""
    DDL = "ddl"
    """One statement with an implicit commit; alone in its block."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The session variables of a logged statement that influence its effect.

    ``None``: not logged, the target's default applies. Status variable codes:
    MySQL ``libs/mysql/binlog/event/statement_events.h`` (Query_event), MariaDB ``sql/log_event.h``.
    """

    database: str | None = None
    timestamp: float | None = None
    """Seconds since the epoch, with microseconds where the log has them."""
    sql_mode: int | None = None
    charset_client: int | None = None
    """Collation ids, as the server logs them."""
    collation_connection: int | None = None
    collation_server: int | None = None
    default_collation_for_utf8mb4: int | None = None
    collation_database: int | None = None
    character_set_collations: tuple[tuple[int, int], ...] = ()
    """MariaDB 11.2 and newer: default collation id of a character set, and the session's replacement."""
    time_zone: str | None = None
    lc_time_names: int | None = None
    auto_increment_increment: int | None = None
    auto_increment_offset: int | None = None
    foreign_key_checks: bool | None = None
    unique_checks: bool | None = None
    auto_is_null: bool | None = None
    check_constraint_checks: bool | None = None
    if_exists: bool | None = None
    system_versioning_insert_history: bool | None = None
    """MariaDB 10.11 and newer."""
    explicit_defaults_for_timestamp: bool | None = None
    sql_require_primary_key: bool | None = None
    default_table_encryption: bool | None = None
    cascade_triggers: bool | None = None
    """MySQL 9.7 and newer: triggers of child tables fire where a foreign key cascades; None: they do not."""
    insert_id: int | None = None
    last_insert_id: int | None = None
    rand_seeds: tuple[int, int] | None = None
    user_variables: tuple[tuple[str, str], ...] = ()
    """Name, and SQL text of the value for ``SET @`name` := ...``."""
    thread_id: int | None = None
    error_code: int = 0
    """The error the statement ended with on the source; 0 if none."""
    logged_text: str | None = None
    """The text as it was logged, in base64, of a statement with ``other_readings``; None without them."""
    other_readings: tuple[tuple[int, int], ...] = ()
    """Collation ids of client character sets, and bits of ``sql_mode``, in which the text may be another statement: the
    precheck asks a parser."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to send to the target: a BINLOG payload or a statement."""

    kind: ItemKind
    payload: bytes
    """ROWS: events; STATEMENT and DDL: the statement's bytes in ``context.charset_client``."""
    rows: RowCounts = field(default_factory=RowCounts)
    """Row changes of a ROWS item; zero for statements, whose changes are unknown before they run."""
    context: SessionContext | None = None
    """ROWS: None, or what the target computes columns in: of the ``sql_mode`` the bits that change a value
    (``sql.sql_modes.EVALUATED``), the time zone and the locale."""


@dataclass(frozen=True, slots=True)
class DealtItem(Item):
    """An item of a block whose changes are dealt to several lanes. Each lane's file has plain items."""

    lane: int = 0
    """The lane that gets it."""

    @classmethod
    def of(cls, item: Item, lane: int) -> DealtItem:
        """The item, for a lane."""
        return cls(item.kind, item.payload, item.rows, item.context, lane)


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """A block's position in its lane and in the source's log; the block's items follow it."""

    first_seqno: int
    last_seqno: int
    transactions: int
    source: LogPosition
    """Position of the block's first transaction."""
    gtid: str
    """GTID of its last transaction; empty where the source has none."""
    commit_time: float
    """Source commit time of its last transaction, seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class TemporaryCopies:
    """The copies of temporary tables that a barrier restores at its beginning, and those that it leaves at its end."""

    since: int | None
    """The seqno of the copies to restore; None: no table is open at the beginning."""
    kept: tuple[tuple[int, str, str], ...] | None
    """The tables to copy together with the barrier's position, by thread, database and name. Empty: no table is open at
    the end, and the copies are dropped. None: the barrier changes no temporary table, and the copies stay."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Only ``owner`` applies the transactions ``first`` .. ``last`` of the participants' shards.

    Every participant is at ``first - 1`` before the owner starts; the owner's blocks move all participants together.
    """

    first: int
    last: int
    owner: int
    participants: tuple[int, ...]
    """Lanes, ascending; the owner is one of them."""
    causes: Mapping[str, int]
    """Number of transactions that need this barrier, by cause."""
    together: bool = False
    """Whether the whole stretch is one transaction on the target, because temporary tables are open in it."""
    leftovers: tuple[tuple[int, str, str], ...] = ()
    """Temporary tables to drop at its end, by thread, database and name: the source lost them in a crash."""
    temporary: TemporaryCopies | None = None
    """Set if a life of temporary tables is split into several transactions."""

    @property
    def is_indivisible(self) -> bool:
        """Whether it is applied as a whole, because temporary tables are open or change in it: none of its transactions
        can be skipped."""
        return self.together or (self.temporary is not None and self.temporary.kept is not None)


@dataclass(frozen=True, slots=True)
class Epoch:
    """The end of an epoch: a seqno at which all lanes meet, and its place in the source's log."""

    seqno: int
    end: LogPosition
    """Where the next transaction begins."""
    gtid_set: str
    """All GTIDs up to ``end``, in the source's notation; empty if the source has no GTIDs."""
    time: float
    """Commit time of the epoch's last transaction, Unix seconds."""


@dataclass(frozen=True, slots=True)
class TableKey:
    """A table's database and name."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


ANY_TABLE: Final = TableKey("*", "*")
"""Tables that are not known: any, of any database."""


class SchemaObject(NamedTuple):
    """A database, or a table, view, routine, trigger, event or sequence in it."""

    kind: str
    """The word of CREATE, in lower case."""
    database: str
    name: str
    """Empty for a database."""

    @property
    def key(self) -> TableKey:
        """Its name, as statements give it."""
        return TableKey(self.database, self.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.database}" + (f".{self.name}" if self.name else "")
