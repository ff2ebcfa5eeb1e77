"""The tables of the ``binlane`` schema on the target, as this build knows them; ``migrations`` makes them.

Times are UTC, by the target's clock; source times are seconds since the epoch. BINLOG leaks ``@@timestamp``, and
UTC_TIMESTAMP follows it: rows that a lane's own connection writes come after ``SET timestamp = DEFAULT``.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.mysql import BIGINT, DATETIME, MEDIUMBLOB, MEDIUMTEXT, VARCHAR

from binlane.model import OWN_SCHEMA

SCHEMA: Final = OWN_SCHEMA
VERSION: Final = 13
"""Of these tables. Whoever changes one adds a step to ``migrations.STEPS`` and one to this."""
NOW: Final = text("UTC_TIMESTAMP(6)")
_NAME = VARCHAR(64, charset="utf8mb4", collation="utf8mb4_bin")
_SEQNO = BIGINT(unsigned=True)
_LONG = Text().with_variant(MEDIUMTEXT(), "mysql", "mariadb")
_TIME = DateTime().with_variant(DATETIME(fsp=6), "mysql", "mariadb")
_OPTIONS: Final[dict[str, Any]] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}

metadata = MetaData(schema=SCHEMA)

migrations = Table(
    # a row for each step that has brought the schema up; the highest version is the schema's
    "migrations",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("name", String(190), nullable=False),
    Column("at", _TIME, nullable=False),
    **_OPTIONS,
)

channels = Table(
    "channels",
    metadata,
    Column("channel", _NAME, primary_key=True),
    # random, so that a channel created anew never meets the leases and GTIDs of its namesake
    Column("uuid", String(36), nullable=False, unique=True),
    Column("source_identity", _LONG, nullable=False),
    Column("watermark_seqno", _SEQNO, nullable=False),
    Column("source_file", String(512), nullable=False),
    Column("source_offset", _SEQNO, nullable=False),
    Column("gtid_set", _LONG, nullable=False),
    Column("source_time", Double, nullable=False),
    Column("fingerprint", String(128), nullable=False),
    Column("windows", BigInteger, nullable=False),
    # who has asked the channel to stop, when and where; NULL: it may run
    Column("stopped", _LONG),
    Column("stopped_at", _TIME),
    Column("created_at", _TIME, nullable=False),
    Column("updated_at", _TIME, nullable=False),
    **_OPTIONS,
)

windows = Table(
    "windows",
    metadata,
    Column("channel", _NAME, primary_key=True),
    Column("window_id", VARCHAR(190, charset="utf8mb4", collation="utf8mb4_bin"), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("state", String(10), nullable=False),
    Column("source_identity", _LONG, nullable=False),
    # the watermark that it begins at, as JSON: a stop can move the channel's into the window
    Column("start", _LONG, nullable=False),
    Column("first_seqno", _SEQNO, nullable=False),
    Column("last_seqno", _SEQNO, nullable=False),
    Column("end_file", String(512), nullable=False),
    Column("end_offset", _SEQNO, nullable=False),
    Column("end_gtid_set", _LONG, nullable=False),
    Column("end_time", Double, nullable=False),
    Column("end_fingerprint", String(128), nullable=False),
    # the watermark's seqno in the window; before first_seqno unless it was stopped
    Column("reached", _SEQNO, nullable=False),
    Column("work", String(1024), nullable=False),
    Column("lanes", Integer),
    # of the plan's settings, what a run may ask for by itself: for a plan that has to be made again
    Column("block_transactions", Integer),
    Column("plan_digest", String(128)),
    # row changes the plan writes, as JSON; the counters of the positions must give the same
    Column("totals", _LONG),
    # the plan's summary, as JSON: what is known of a window when its files are gone
    Column("facts", _LONG),
    # no lane goes behind it; 0 stops every lane where it stands, NULL none
    Column("stop_at", _SEQNO),
    Column("summary", _LONG),
    Column("created_at", _TIME, nullable=False),
    Column("finished_at", _TIME),
    **_OPTIONS,
)

positions = Table(
    "positions",
    metadata,
    Column("channel", _NAME, primary_key=True),
    Column("lane", Integer, primary_key=True, autoincrement=False),
    Column("seqno", _SEQNO, nullable=False),
    # the DDL under way, if it is greater than seqno: it commits by itself and cannot be called back
    Column("begun", _SEQNO, nullable=False, server_default=text("0")),
    Column("window_id", VARCHAR(190, charset="utf8mb4", collation="utf8mb4_bin"), nullable=False),
    Column("digest", String(128), nullable=False),
    Column("inserts", BigInteger, nullable=False),
    Column("updates", BigInteger, nullable=False),
    Column("deletes", BigInteger, nullable=False),
    Column("blocks", BigInteger, nullable=False),
    Column("transactions", BigInteger, nullable=False),
    Column("updated_at", _TIME, nullable=False),
    **_OPTIONS,
)

splits = Table(
    # blocks that were not applied as planned, but transaction by transaction: to end inside, or to leave some out
    "splits",
    metadata,
    Column("channel", _NAME, primary_key=True),
    Column("window_id", VARCHAR(190, charset="utf8mb4", collation="utf8mb4_bin"), primary_key=True),
    Column("lane", Integer, primary_key=True, autoincrement=False),
    Column("first_seqno", _SEQNO, primary_key=True, autoincrement=False),
    Column("last_seqno", _SEQNO, nullable=False),
    Column("transactions", BigInteger, nullable=False),
    # row changes: what the plan writes, what was written instead, what was left out
    *(
        Column(f"{kind}_{what}", BigInteger, nullable=False)
        for kind in ("planned", "written", "skipped")
        for what in ("inserts", "updates", "deletes")
    ),
    # transactions of it that are done, the skipped ones included
    Column("done", BigInteger, nullable=False),
    **_OPTIONS,
)

skips = Table(
    "skips",
    metadata,
    Column("channel", _NAME, primary_key=True),
    Column("seqno", _SEQNO, primary_key=True, autoincrement=False),
    Column("window_id", VARCHAR(190, charset="utf8mb4", collation="utf8mb4_bin"), nullable=False),
    Column("lane", Integer, nullable=False),
    Column("gtid", _LONG, nullable=False),
    Column("source_file", String(512), nullable=False),
    Column("source_offset", _SEQNO, nullable=False),
    Column("commit_time", Double, nullable=False),
    # what it changes, in words
    Column("summary", _LONG, nullable=False),
    # of its events, as a binlog file: in skipped_events, in pieces
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("reason", _LONG, nullable=False),
    Column("by_whom", String(255), nullable=False),
    Column("at", _TIME, nullable=False),
    # requested, skipped or replayed
    Column("state", String(10), nullable=False),
    Column("state_at", _TIME, nullable=False),
    **_OPTIONS,
)

skipped_events = Table(
    "skipped_events",
    metadata,
    Column("channel", _NAME, primary_key=True),
    Column("seqno", _SEQNO, primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary().with_variant(MEDIUMBLOB(), "mysql", "mariadb"), nullable=False),
    **_OPTIONS,
)

heartbeats = Table(
    "heartbeats",
    metadata,
    Column("channel", _NAME, primary_key=True),
    Column("lane", Integer, primary_key=True, autoincrement=False),
    Column("holder", String(255), nullable=False),
    Column("connection_id", _SEQNO, nullable=False),
    Column("beat_at", _TIME, nullable=False),
    **_OPTIONS,
)

ddl = Table(
    "ddl",
    metadata,
    Column("channel", _NAME, primary_key=True),
    Column("seqno", _SEQNO, primary_key=True, autoincrement=False),
    Column("lane", Integer, nullable=False),
    Column("statement", _LONG, nullable=False),
    # of the definitions before the statement ran
    Column("fingerprint", String(128), nullable=False),
    Column("state", String(10), nullable=False),
    Column("at", _TIME, nullable=False),
    **_OPTIONS,
)

temporary = Table(
    # copies of the source's temporary tables that are open where the serialized lane stands
    "temporary",
    metadata,
    Column("channel", _NAME, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    # the lane's position that they belong to
    Column("seqno", _SEQNO, nullable=False),
    # of the source's connection
    Column("thread_id", _SEQNO, nullable=False),
    Column("database_name", _NAME, nullable=False),
    Column("table_name", _NAME, nullable=False),
    # what SHOW CREATE TABLE says of it
    Column("definition", _LONG, nullable=False),
    # the names of the columns that are copied, as JSON: all but generated ones
    Column("column_names", _LONG, nullable=False),
    # the table of this schema that holds its rows
    Column("copy", String(64), nullable=False),
    Column("copied_rows", BigInteger, nullable=False),
    Column("at", _TIME, nullable=False),
    **_OPTIONS,
)

prepared = Table(
    "prepared",
    metadata,
    Column("channel", _NAME, primary_key=True),
    # as the source logs it; an XID is prepared once at a time
    Column("xid", VARCHAR(300, charset="utf8mb4", collation="utf8mb4_bin"), primary_key=True),
    # of its XA PREPARE; 0 if somebody has recorded that the target has its changes
    Column("seqno", _SEQNO, nullable=False),
    Column("gtid", _LONG, nullable=False),
    Column("source_file", String(512), nullable=False),
    Column("source_offset", _SEQNO, nullable=False),
    Column("changes", BigInteger, nullable=False),
    # a file of its own as an entry of a manifest, JSON; its bytes are in prepared_chunks
    Column("segment", _LONG, nullable=False),
    Column("at", _TIME, nullable=False),
    **_OPTIONS,
)

prepared_chunks = Table(
    "prepared_chunks",
    metadata,
    Column("channel", _NAME, primary_key=True),
    Column("seqno", _SEQNO, primary_key=True, autoincrement=False),
    Column("chunk", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary().with_variant(MEDIUMBLOB(), "mysql", "mariadb"), nullable=False),
    **_OPTIONS,
)

conflicts = Table(
    # rows that were not as the log expects and were set right (on_conflict = "overwrite")
    "conflicts",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("channel", _NAME, nullable=False, index=True),
    Column("window_id", VARCHAR(190, charset="utf8mb4", collation="utf8mb4_bin"), nullable=False),
    Column("lane", Integer, nullable=False),
    # of the transaction whose change met it
    Column("seqno", _SEQNO, nullable=False),
    Column("database_name", _NAME, nullable=False),
    Column("table_name", _NAME, nullable=False),
    # the change: insert, update or delete
    Column("change_kind", String(10), nullable=False),
    # overwritten, different, extra or missing
    Column("kind", String(12), nullable=False),
    # the row's primary key, and the row as it was found on the target (NULL: none was), as JSON: values as text
    Column("row_key", _LONG, nullable=False),
    Column("found", _LONG),
    Column("at", _TIME, nullable=False),
    **_OPTIONS,
)

errors = Table(
    "errors",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("channel", _NAME, nullable=False, index=True),
    Column("window_id", VARCHAR(190, charset="utf8mb4", collation="utf8mb4_bin"), nullable=False),
    Column("lane", Integer, nullable=False),
    Column("seqno", _SEQNO, nullable=False),
    Column("gtid", _LONG, nullable=False),
    Column("source_file", String(512), nullable=False),
    Column("source_offset", _SEQNO, nullable=False),
    Column("code", Integer, nullable=False),
    Column("text", _LONG, nullable=False),
    Column("at", _TIME, nullable=False),
    **_OPTIONS,
)

verifications = Table(
    "verifications",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("channel", _NAME, nullable=False, index=True),
    # full or window
    Column("kind", String(10), nullable=False),
    # of kind window: the window's id; else empty
    Column("window_id", VARCHAR(190, charset="utf8mb4", collation="utf8mb4_bin"), nullable=False),
    # the watermark when it began: what it proves goes no further
    Column("through_seqno", _SEQNO, nullable=False),
    # running, clean, pending or drift
    Column("state", String(10), nullable=False),
    Column("started_at", _TIME, nullable=False),
    Column("ended_at", _TIME),
    Column("tables", BigInteger, nullable=False),
    Column("chunks", BigInteger, nullable=False),
    Column("compared_rows", BigInteger, nullable=False),
    Column("drift", BigInteger, nullable=False),
    Column("pending", BigInteger, nullable=False),
    # how far a full one has come, as JSON: database, table and the last chunk's end, null for all of the table
    Column("progress", _LONG),
    **_OPTIONS,
)

suspects = Table(
    # rows and parts of definitions that differ, as they were when they were last looked at
    "suspects",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("channel", _NAME, nullable=False, index=True),
    Column("table_schema", _NAME, nullable=False),
    Column("table_name", _NAME, nullable=False),
    # the key's values as JSON; empty: of a table that is compared as a whole, or the table itself; of a definition the
    # kind of thing, whose name is table_name
    Column("row_key", _LONG, nullable=False),
    # pending: the source has changed it since; drift: it has not
    Column("state", String(10), nullable=False),
    # the watermark when it was looked at
    Column("seqno", _SEQNO, nullable=False),
    Column("column_names", _LONG, nullable=False),
    # the compared columns' values as JSON; NULL: no such row
    Column("source_row", _LONG),
    Column("target_row", _LONG),
    Column("note", _LONG, nullable=False),
    Column("at", _TIME, nullable=False),
    **_OPTIONS,
)

repairs = Table(
    # rows of the target set right after a verification's plan
    "repairs",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("channel", _NAME, nullable=False, index=True),
    # the plan's SHA-256, and where it is
    Column("digest", String(64), nullable=False),
    Column("plan", _LONG, nullable=False),
    # the watermark that it was made and applied at
    Column("seqno", _SEQNO, nullable=False),
    Column("requested_by", String(255), nullable=False),
    # running or done; running for ever: it was ended in the middle, and run again it has another row
    Column("state", String(10), nullable=False),
    Column("inserted", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
    Column("deleted", BigInteger, nullable=False),
    # of the plan's rows: already right; left alone, because the source has changed them since
    Column("equal_rows", BigInteger, nullable=False),
    Column("changed_rows", BigInteger, nullable=False),
    Column("started_at", _TIME, nullable=False),
    Column("ended_at", _TIME),
    **_OPTIONS,
)

bootstraps = Table(
    # a channel's first copy; finished, it is kept so that its own order is answered and not refused
    "bootstraps",
    metadata,
    Column("channel", _NAME, primary_key=True),
    # the chosen databases, as JSON
    Column("database_names", _LONG, nullable=False),
    Column("source_identity", _LONG, nullable=False),
    # the snapshot that the tables marked done are right for
    Column("source_file", String(512), nullable=False),
    Column("source_offset", _SEQNO, nullable=False),
    Column("gtid_set", _LONG, nullable=False),
    Column("source_time", Double, nullable=False),
    Column("fingerprint", String(128), nullable=False),
    # the order (a run of Airflow's) that has dropped these databases first; empty: nobody has
    Column("replaced_for", _LONG, nullable=False),
    # what it has copied, as JSON, from when nothing but the channel's row is left to make
    Column("outcome", _LONG),
    # the order whose attempt has made the channel and told so (empty: the command's); NULL: not finished
    Column("finished_for", _LONG),
    # how often it was begun
    Column("attempts", Integer, nullable=False),
    Column("updated_at", _TIME, nullable=False),
    **_OPTIONS,
)

bootstrap_objects = Table(
    # what a first copy makes on the target, written before it is made: nothing else is ever dropped
    "bootstrap_objects",
    metadata,
    Column("channel", _NAME, primary_key=True),
    # table, view, function, procedure ...
    Column("kind", String(20), primary_key=True),
    Column("object_schema", _NAME, primary_key=True),
    Column("object_name", _NAME, primary_key=True),
    # planned or done: a table with all of its rows
    Column("state", String(10), nullable=False),
    Column("copied_rows", BigInteger, nullable=False),
    **_OPTIONS,
)
