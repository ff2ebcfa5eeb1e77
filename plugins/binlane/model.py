"""The values that the parts of binlane hand to each other. No I/O, no behaviour beyond their own shape.

The words are those of docs/architecture.md: channel, window, segment, seqno, shard, lane, block, barrier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

GLOBAL_SHARD: Final = "#GLOBAL"
"""Server-wide operations: accounts, FLUSH, server settings."""
UNKNOWN_SHARD: Final = "#UNKNOWN"
"""The shard of a transaction whose databases cannot be determined; it is serialized."""
OWN_SCHEMA: Final = "binlane"
"""The database on each target that holds binlane's own state; a source may have one, too, as the target of another
channel."""
FILTERED_SHARD: Final = "#FILTERED"
"""Transactions of which the channel's filter leaves nothing: they only move a position."""


class Flavor(StrEnum):
    """The server family that wrote a log or holds a target."""

    MARIADB = "mariadb"
    MYSQL = "mysql"


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A position in the source's log. ``offset`` is 64 bits wide: counted, never read from ``log_pos``, which wraps."""

    file: str
    offset: int

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun. ``many``: the plural of a noun that does not end in s."""
    return f"{count:,} {one if count == 1 else f'{one}s' if many is None else many}"


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Row changes by kind: what the target's Handler counters must show."""

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
    """What a block's item holds."""

    ROWS = "rows"
    """TABLE_MAP and ROWS events without checksums: the payload of one BINLOG statement."""
    STATEMENT = "statement"
    """One statement that takes part in a transaction."""
    LOAD = "load"
    """A LOAD DATA LOCAL; the FILE items behind it are its file."""
    FILE = "file"
    """A piece of a file."""
    DDL = "ddl"
    """One statement that commits by itself; alone in its block."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The session that a statement was logged in, as far as it decides the statement's effect.

    ``None`` means that the log does not say, and the target's default stands. Status variable codes:
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
    """MariaDB 11.2 and newer: default collation id of a character set, and the one the session put in its place."""
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
    insert_id: int | None = None
    last_insert_id: int | None = None
    rand_seeds: tuple[int, int] | None = None
    user_variables: tuple[tuple[str, str], ...] = ()
    """Name and the SQL text of its value, ready to stand on the right of ``SET @`name` :=``."""
    thread_id: int | None = None
    error_code: int = 0
    """The error the statement ended with on the source; 0 if none."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to send to the target: a BINLOG payload or a statement."""

    kind: ItemKind
    payload: bytes
    """ROWS: events; STATEMENT and DDL: the statement's bytes in ``context.charset_client``."""
    rows: RowCounts = field(default_factory=RowCounts)
    """Row changes of a ROWS item; zero for statements, whose changes are unknown before they run."""
    context: SessionContext | None = None


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """A block's place in its lane and in the source's log; its items follow it."""

    first_seqno: int
    last_seqno: int
    transactions: int
    source: LogPosition
    """Where its first transaction begins."""
    gtid: str
    """GTID of its last transaction; empty where the source has none."""
    commit_time: float
    """Source commit time of its last transaction, seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class TemporaryCopies:
    """What a barrier inside the life of temporary tables takes up, and what it leaves for whoever goes on behind it."""

    since: int | None
    """The seqno behind which the copies were made that its tables are brought back from; None: none is open before."""
    kept: tuple[tuple[int, str, str], ...] | None
    """What is open behind it, by thread, database and name, and is copied with its position; empty: nothing is, and the
    copies go. None: it leaves the tables as they were, and the copies stay."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Transactions ``first`` .. ``last`` of the participants' shards are applied by ``owner``, nobody else meanwhile.

    Every participant stands at ``first - 1`` before the owner starts; the owner's blocks move all of them together.
    """

    first: int
    last: int
    owner: int
    participants: tuple[int, ...]
    """Lanes, ascending; the owner is one of them."""
    causes: Mapping[str, int]
    """How many transactions asked for this barrier, by cause."""
    together: bool = False
    """All of it is one transaction on the target: temporary tables are open inside."""
    leftovers: tuple[tuple[int, str, str], ...] = ()
    """Temporary tables to drop at its end, by thread, database and name: the source has lost them."""
    temporary: TemporaryCopies | None = None
    """Where a life of temporary tables is more than one transaction."""


@dataclass(frozen=True, slots=True)
class TableKey:
    """A table's place in its database."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"
