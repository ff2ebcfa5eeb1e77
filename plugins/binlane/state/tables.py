"""The tables of the schema ``binlane`` on the target, in this build's version; ``migrations`` creates them.

Times are UTC by the target's clock; source times are seconds since the epoch. A BINLOG statement changes
``@@timestamp`` of its session, which UTC_TIMESTAMP follows, and in MariaDB a thread never goes back from there, whoever
uses it next: state rows have the time of SYSDATE.
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
from binlane.state.stored_values import checked_type

SCHEMA: Final = OWN_SCHEMA
VERSION: Final = 1
"""The version of these tables. A change of a table needs a step in ``migrations.STEPS`` and increments this number."""
UTC_NOW: Final = "TIMESTAMP'1970-01-01 00:00:00' + INTERVAL UNIX_TIMESTAMP(SYSDATE(6)) SECOND"
"""The server's clock, in whatever time zone a session is."""
NOW: Final = text(UTC_NOW)
_NAME = VARCHAR(64, charset="utf8mb4", collation="utf8mb4_bin")
_WINDOW_ID = VARCHAR(190, charset="utf8mb4", collation="utf8mb4_bin")
_SEQNO = BIGINT(unsigned=True)
_LONG = Text().with_variant(MEDIUMTEXT(), "mysql", "mariadb")
_BYTES = LargeBinary().with_variant(MEDIUMBLOB(), "mysql", "mariadb")
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


def _table(name: str, *columns: Column[Any]) -> Table:
    for column in columns:
        column.type = checked_type(name, column)
    return Table(name, metadata, *columns, **_OPTIONS)


migrations = _table(
    # one row for each migration step that has run; the highest version is the schema's
    "migrations",
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("name", String(190), nullable=False),
    Column("at", _TIME, nullable=False),
)

channels = _table(
    "channels",
    Column("channel", _NAME, primary_key=True),
    # random, so that a new channel never shares leases and GTIDs with an earlier one of the same name
    Column("uuid", String(36), nullable=False, unique=True),
    # the server whose rows this state speaks of: a replica, or a clone with an identity of its own, is another one
    Column("target_identity", String(190), nullable=False),
    # random, new with each `binlane adopt-target`: what the former target has is another state
    Column("incarnation", String(36), nullable=False),
    Column("source_identity", _LONG, nullable=False),
    Column("watermark_seqno", _SEQNO, nullable=False),
    Column("source_file", String(512), nullable=False),
    Column("source_offset", _SEQNO, nullable=False),
    Column("gtid_set", _LONG, nullable=False),
    Column("source_time", Double, nullable=False),
    Column("fingerprint", String(128), nullable=False),
    Column("windows", BigInteger, nullable=False),
    # who asked the channel to stop, when and where; NULL: it may run
    Column("stopped", _LONG),
    Column("stopped_at", _TIME),
    # when a run last found nothing to apply, and the source's time up to which nothing was missing then
    Column("complete_at", _TIME),
    Column("complete_through", Double),
    # the highest id of a source's connection that may be older than the channel; NULL and 0: there is none
    Column("older_sessions", BigInteger),
    # the source's connections that ended unseen with open temporary tables, by commas; NULL: there is none
    Column("lost_sessions", _LONG),
    # the filter of the newest window, as JSON: what another one takes anew begins behind it; NULL: there is no window
    Column("selection", _LONG),
    # the source's time since which each reading of its log has found sync_binlog = 1; NULL: the last one has not
    Column("synced_since", Double),
    Column("created_at", _TIME, nullable=False),
    Column("updated_at", _TIME, nullable=False),
)

windows = _table(
    "windows",
    Column("channel", _NAME, primary_key=True),
    Column("window_id", _WINDOW_ID, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("state", String(10), nullable=False),
    Column("source_identity", _LONG, nullable=False),
    # the watermark at the window's beginning, as JSON: a stop can move the channel's watermark into the window
    Column("start", _LONG, nullable=False),
    Column("first_seqno", _SEQNO, nullable=False),
    Column("last_seqno", _SEQNO, nullable=False),
    Column("end_file", String(512), nullable=False),
    Column("end_offset", _SEQNO, nullable=False),
    Column("end_gtid_set", _LONG, nullable=False),
    Column("end_time", Double, nullable=False),
    Column("end_fingerprint", String(128), nullable=False),
    # the watermark's seqno; smaller than first_seqno unless a stop has moved it into the window
    Column("reached", _SEQNO, nullable=False),
    Column("work", String(1024), nullable=False),
    # SHA-256 of the window's files that are read later, by their names, as JSON; NULL: they are not known
    Column("files", _LONG),
    Column("lanes", Integer),
    # the plan's block size, which a run may choose; kept in case the plan has to be made again
    Column("block_transactions", Integer),
    Column("plan_digest", String(128)),
    # row changes of the plan, as JSON; the sum of the positions' counters must be equal
    Column("totals", _LONG),
    # the plan's summary, as JSON; stays when the window's files are removed
    Column("facts", _LONG),
    # the last seqno that lanes may apply; 0 stops every lane at its position, NULL stops none
    Column("stop_at", _SEQNO),
    Column("summary", _LONG),
    Column("created_at", _TIME, nullable=False),
    Column("finished_at", _TIME),
)

kept_inputs = _table(
    # what the newest plan was made from besides the log, in compressed pieces (carried/kept_inputs.py)
    "kept_inputs",
    Column("channel", _NAME, primary_key=True),
    # window: manifest and settings; schema: the definitions of the target
    Column("part", String(10), primary_key=True),
    Column("chunk", Integer, primary_key=True, autoincrement=False),
    # the window's id, or the digest of the definitions
    Column("name", _WINDOW_ID, nullable=False),
    Column("data", _BYTES, nullable=False),
)

positions = _table(
    "positions",
    Column("channel", _NAME, primary_key=True),
    Column("lane", Integer, primary_key=True, autoincrement=False),
    Column("seqno", _SEQNO, nullable=False),
    # greater than seqno: the seqno of a running DDL, which commits implicitly and cannot be rolled back
    Column("begun", _SEQNO, nullable=False, server_default=text("0")),
    Column("window_id", _WINDOW_ID, nullable=False),
    Column("digest", String(128), nullable=False),
    Column("inserts", BigInteger, nullable=False),
    Column("updates", BigInteger, nullable=False),
    Column("deletes", BigInteger, nullable=False),
    Column("blocks", BigInteger, nullable=False),
    Column("transactions", BigInteger, nullable=False),
    Column("updated_at", _TIME, nullable=False),
)

epochs = _table(
    # ends of epochs at which all lanes have stood
    "epochs",
    Column("channel", _NAME, primary_key=True),
    Column("seqno", _SEQNO, primary_key=True, autoincrement=False),
    # 1, 2, 3 ... in the channel
    Column("number", BigInteger, nullable=False),
    Column("window_id", _WINDOW_ID, nullable=False),
    Column("source_identity", _LONG, nullable=False),
    # where the next transaction begins
    Column("source_file", String(512), nullable=False),
    Column("source_offset", _SEQNO, nullable=False),
    Column("gtid_set", _LONG, nullable=False),
    # commit time of the epoch's last transaction
    Column("source_time", Double, nullable=False),
    Column("at", _TIME, nullable=False),
)

databases = _table(
    # each database that windows have changed, stored with a window's plan
    "databases",
    Column("channel", _NAME, primary_key=True),
    # the name on the target
    Column("database_name", _NAME, primary_key=True),
    # the lane in the newest window; NULL: serialized or shared transactions only
    Column("lane", Integer),
    # the last transaction in the newest window
    Column("seqno", _SEQNO, nullable=False),
    # row changes of the windows in ``recent``
    Column("row_changes", BigInteger, nullable=False),
    # the newest windows that change it, newest first, as JSON: number, transactions, row changes, last seqno and time
    Column("recent", _LONG, nullable=False),
)

progress = _table(
    # the step of a run that comes before lanes work: reading the log, or the plan job; of a restore the load, too
    "progress",
    Column("channel", _NAME, primary_key=True),
    # of records.progress.RunStep
    Column("step", String(10), nullable=False),
    # the window's id, also before the window is open
    Column("window_id", _WINDOW_ID, nullable=False),
    # bytes of log or of a dump, or segments; the total is 0 where it is not known
    Column("done", BigInteger, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("begun_at", _TIME, nullable=False),
    Column("updated_at", _TIME, nullable=False),
)

splits = _table(
    # blocks applied transaction by transaction, because a stop is inside them or a transaction is skipped
    "splits",
    Column("channel", _NAME, primary_key=True),
    Column("window_id", _WINDOW_ID, primary_key=True),
    Column("lane", Integer, primary_key=True, autoincrement=False),
    Column("first_seqno", _SEQNO, primary_key=True, autoincrement=False),
    Column("last_seqno", _SEQNO, nullable=False),
    Column("transactions", BigInteger, nullable=False),
    # row changes: planned, written, skipped
    *(
        Column(f"{kind}_{what}", BigInteger, nullable=False)
        for kind in ("planned", "written", "skipped")
        for what in ("inserts", "updates", "deletes")
    ),
    # transactions done, skipped ones included
    Column("done", BigInteger, nullable=False),
)

skips = _table(
    "skips",
    Column("channel", _NAME, primary_key=True),
    Column("seqno", _SEQNO, primary_key=True, autoincrement=False),
    Column("window_id", _WINDOW_ID, nullable=False),
    Column("lane", Integer, nullable=False),
    Column("gtid", _LONG, nullable=False),
    Column("source_file", String(512), nullable=False),
    Column("source_offset", _SEQNO, nullable=False),
    Column("commit_time", Double, nullable=False),
    # a description of its changes
    Column("summary", _LONG, nullable=False),
    # SHA-256 of its events as a binlog file, which skipped_events holds in pieces
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("reason", _LONG, nullable=False),
    Column("by_whom", String(255), nullable=False),
    Column("at", _TIME, nullable=False),
    # requested, skipped or replayed
    Column("state", String(10), nullable=False),
    Column("state_at", _TIME, nullable=False),
)

skipped_events = _table(
    "skipped_events",
    Column("channel", _NAME, primary_key=True),
    Column("seqno", _SEQNO, primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("data", _BYTES, nullable=False),
)

heartbeats = _table(
    "heartbeats",
    Column("channel", _NAME, primary_key=True),
    Column("lane", Integer, primary_key=True, autoincrement=False),
    Column("holder", String(255), nullable=False),
    Column("connection_id", _SEQNO, nullable=False),
    Column("beat_at", _TIME, nullable=False),
)

ddl = _table(
    "ddl",
    Column("channel", _NAME, primary_key=True),
    Column("seqno", _SEQNO, primary_key=True, autoincrement=False),
    Column("lane", Integer, nullable=False),
    Column("statement", _LONG, nullable=False),
    # fingerprint of the definitions before the statement ran
    Column("fingerprint", String(128), nullable=False),
    Column("state", String(10), nullable=False),
    Column("at", _TIME, nullable=False),
)

temporary = _table(
    # copies of the source's temporary tables that are open at the serialized lane's position
    "temporary",
    Column("channel", _NAME, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    # the lane's position at the time of the copy
    Column("seqno", _SEQNO, nullable=False),
    # thread id of the source's connection
    Column("thread_id", _SEQNO, nullable=False),
    Column("database_name", _NAME, nullable=False),
    Column("table_name", _NAME, nullable=False),
    # the text of SHOW CREATE TABLE
    Column("definition", _LONG, nullable=False),
    # names of the copied columns, as JSON: all but generated ones
    Column("column_names", _LONG, nullable=False),
    # the table of this schema that holds the rows
    Column("copy", String(64), nullable=False),
    Column("copied_rows", BigInteger, nullable=False),
    Column("at", _TIME, nullable=False),
)

prepared = _table(
    "prepared",
    Column("channel", _NAME, primary_key=True),
    # as the source logs it; unique among prepared transactions
    Column("xid", VARCHAR(300, charset="utf8mb4", collation="utf8mb4_bin"), primary_key=True),
    # seqno of its XA PREPARE; 0 if an operator has recorded that the target has its changes
    Column("seqno", _SEQNO, nullable=False),
    Column("gtid", _LONG, nullable=False),
    Column("source_file", String(512), nullable=False),
    Column("source_offset", _SEQNO, nullable=False),
    Column("changes", BigInteger, nullable=False),
    # its manifest entry as a segment of its own, as JSON; prepared_chunks holds the bytes
    Column("segment", _LONG, nullable=False),
    Column("at", _TIME, nullable=False),
)

prepared_chunks = _table(
    "prepared_chunks",
    Column("channel", _NAME, primary_key=True),
    Column("seqno", _SEQNO, primary_key=True, autoincrement=False),
    Column("chunk", Integer, primary_key=True, autoincrement=False),
    Column("data", _BYTES, nullable=False),
)

conflicts = _table(
    # rows that differed from the log's before-image and were overwritten (on_conflict = "overwrite")
    "conflicts",
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("channel", _NAME, nullable=False, index=True),
    Column("window_id", _WINDOW_ID, nullable=False),
    Column("lane", Integer, nullable=False),
    # seqno of the transaction whose change found the conflict
    Column("seqno", _SEQNO, nullable=False),
    Column("database_name", _NAME, nullable=False),
    Column("table_name", _NAME, nullable=False),
    # the change: insert, update or delete
    Column("change_kind", String(10), nullable=False),
    # overwritten, different, extra or missing
    Column("kind", String(12), nullable=False),
    # the row's primary key, and the row found on the target (NULL: no row), as JSON with values as text
    Column("row_key", _LONG, nullable=False),
    Column("found", _LONG),
    Column("at", _TIME, nullable=False),
)

errors = _table(
    "errors",
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("channel", _NAME, nullable=False, index=True),
    Column("window_id", _WINDOW_ID, nullable=False),
    Column("lane", Integer, nullable=False),
    Column("seqno", _SEQNO, nullable=False),
    # where the lane stood, which no clock can tell later
    Column("reached", _SEQNO, nullable=False),
    Column("gtid", _LONG, nullable=False),
    Column("source_file", String(512), nullable=False),
    Column("source_offset", _SEQNO, nullable=False),
    Column("code", Integer, nullable=False),
    Column("text", _LONG, nullable=False),
    Column("at", _TIME, nullable=False),
)

verifications = _table(
    "verifications",
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("channel", _NAME, nullable=False, index=True),
    # full or window
    Column("kind", String(10), nullable=False),
    # the window's id for kind window; else empty
    Column("window_id", _WINDOW_ID, nullable=False),
    # the watermark when the verification began; it proves equality up to this seqno
    Column("through_seqno", _SEQNO, nullable=False),
    # running, clean, pending, drift or incomplete
    Column("state", String(10), nullable=False),
    # 1: the account did not see everything, whatever the state is; NULL: it has not ended
    Column("has_gap", BigInteger),
    Column("started_at", _TIME, nullable=False),
    Column("ended_at", _TIME),
    Column("tables", BigInteger, nullable=False),
    Column("chunks", BigInteger, nullable=False),
    Column("compared_rows", BigInteger, nullable=False),
    Column("drift", BigInteger, nullable=False),
    Column("pending", BigInteger, nullable=False),
    # progress of a full verification, as JSON: database, table, end of the last chunk (null: the whole table)
    Column("progress", _LONG),
    # the definition of that table's primary key, to which the end of its last chunk belongs
    Column("progress_key", _LONG),
    # the tables that were asked for, as JSON; NULL: all
    Column("scope", _LONG),
    # keys proved equal by the source's rows, and keys of which a column is proved by the log's image alone
    Column("equal_rows", BigInteger),
    Column("logged_rows", BigInteger),
    # of a full verification: approximate rows of all its tables, and the seconds that it has taken
    Column("expected_rows", BigInteger),
    Column("seconds", Double),
    # the digest of the channel's filter and renames; NULL: not known
    Column("rules", String(64)),
)

verified_tables = _table(
    # tables of which every row was compared
    "verified_tables",
    Column("channel", _NAME, primary_key=True),
    Column("table_schema", _NAME, primary_key=True),
    Column("table_name", _NAME, primary_key=True),
    # the verification's id, and the watermark at which the table's last rows were compared
    Column("verification", BigInteger, nullable=False),
    Column("through_seqno", _SEQNO, nullable=False),
    Column("at", _TIME, nullable=False),
)

verified = _table(
    # the changes of a channel that verifications have covered
    "verified",
    Column("channel", _NAME, primary_key=True),
    # the rows of all windows after the first seqno, through the second, were compared
    Column("rows_after", _SEQNO, nullable=False),
    Column("rows_through", _SEQNO, nullable=False),
    # all rows of all tables were compared, at this watermark or later ones, and when that ended; NULL: never
    Column("full_through", _SEQNO),
    Column("full_at", _TIME),
    # the digest of the channel's filter and renames then; NULL: not known
    Column("rules", String(64)),
    # the end of a window behind what is covered, and when it was applied: kept when the windows' rows are deleted
    Column("uncovered_seqno", _SEQNO),
    Column("uncovered_at", _TIME),
    # the last file in which the source has crashed so that its log may lack transactions, and when that was read; the
    # time is NULL when all rows have been compared since
    Column("crashed_file", String(512)),
    Column("crashed_at", _TIME),
)

suspects = _table(
    # rows and parts of definitions that differed when they were last compared
    "suspects",
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("channel", _NAME, nullable=False, index=True),
    Column("table_schema", _NAME, nullable=False),
    Column("table_name", _NAME, nullable=False),
    # the key's values as JSON; empty: a table without a key, or the table itself; for a definition: the kind of the
    # object that table_name names
    Column("row_key", _LONG, nullable=False),
    # pending: the source has changed the row since; drift: it has not
    Column("state", String(10), nullable=False),
    # the watermark when the row was compared
    Column("seqno", _SEQNO, nullable=False),
    # the first watermark at which it was drift, since it was last equal
    Column("drifted_seqno", _SEQNO),
    Column("column_names", _LONG, nullable=False),
    # the compared columns' values as JSON; NULL: no such row
    Column("source_row", _LONG),
    Column("target_row", _LONG),
    Column("note", _LONG, nullable=False),
    Column("at", _TIME, nullable=False),
    # when it was first found different, since it was last equal
    Column("since", _TIME),
    # the end of the source's log when it was compared: what is pending is settled at a watermark behind it
    Column("log_end", _LONG),
    # the primary key's definition then, as row_key belongs to it; NULL: a definition
    Column("key_shape", _LONG),
)

repairs = _table(
    # repairs of the target's rows by the plan of a verification
    "repairs",
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("channel", _NAME, nullable=False, index=True),
    # the plan's SHA-256 and its path
    Column("digest", String(64), nullable=False),
    Column("plan", _LONG, nullable=False),
    # the watermark at which the plan was made and applied
    Column("seqno", _SEQNO, nullable=False),
    Column("requested_by", String(255), nullable=False),
    # made: a plan that nobody has applied yet, whose file is compared with the digest; running or done; an interrupted
    # repair stays running, and a repeated one has a new row
    Column("state", String(10), nullable=False),
    Column("inserted", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
    Column("deleted", BigInteger, nullable=False),
    # rows of the plan that were equal already; rows left alone because the source has changed them since
    Column("equal_rows", BigInteger, nullable=False),
    Column("changed_rows", BigInteger, nullable=False),
    # parts of definitions that were corrected
    Column("definitions", BigInteger, nullable=False, server_default=text("0")),
    Column("started_at", _TIME, nullable=False),
    Column("ended_at", _TIME),
)

drills = _table(
    # restores of random databases to random moments, each compared with the live copy; newest id last
    "drills",
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("channel", _NAME, nullable=False, index=True),
    # what the random choice began with: the same seed chooses the same databases and moments again
    Column("seed", BigInteger, nullable=False),
    Column("base", _LONG, nullable=False),
    Column("log", _LONG, nullable=False),
    # bytes of log that were proved to be whole
    Column("log_bytes", BigInteger, nullable=False),
    # the state of records.drills
    Column("state", String(20), nullable=False),
    # the databases with their moments and results, as JSON
    Column("results", _LONG, nullable=False),
    # why nothing, or not all, was restored; NULL: everything was
    Column("error", _LONG),
    Column("requested_by", String(255), nullable=False),
    Column("started_at", _TIME, nullable=False),
    Column("ended_at", _TIME),
)

bootstraps = _table(
    # a channel's first copy; kept when finished, so that a retry of the same order gets its result and no refusal
    "bootstraps",
    Column("channel", _NAME, primary_key=True),
    # the chosen databases, as JSON
    Column("database_names", _LONG, nullable=False),
    Column("source_identity", _LONG, nullable=False),
    # the snapshot of the tables that are marked done
    Column("source_file", String(512), nullable=False),
    Column("source_offset", _SEQNO, nullable=False),
    Column("gtid_set", _LONG, nullable=False),
    Column("source_time", Double, nullable=False),
    Column("fingerprint", String(128), nullable=False),
    # the order (an Airflow run) that dropped these databases first; empty: they were not dropped
    Column("replaced_for", _LONG, nullable=False),
    # the result, as JSON, stored when only the channel's row is left to create
    Column("outcome", _LONG),
    # the order whose attempt created the channel (empty: the command line); NULL: not finished
    Column("finished_for", _LONG),
    # number of attempts
    Column("attempts", Integer, nullable=False),
    # when the last attempt began to copy rows, and the bytes of ``source_bytes`` that were copied before it
    Column("attempt_at", _TIME),
    Column("attempt_bytes", BigInteger),
    Column("updated_at", _TIME, nullable=False),
)

restores = _table(
    # a restore: a channel with a base, an end and names; kept when it is complete
    "restores",
    Column("channel", _NAME, primary_key=True),
    # what is restored, from where and up to where, as JSON
    Column("definition", _LONG, nullable=False),
    Column("stage", String(10), nullable=False),
    # the routines, views, triggers and events that are made under the final names, as JSON; NULL: not read yet
    Column("programs", _LONG),
    Column("created_at", _TIME, nullable=False),
    Column("updated_at", _TIME, nullable=False),
)

audit = _table(
    # commands that change data or decisions; a row is there before the command's first write, and outlives its channel
    "audit",
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    # the channel or the restore
    Column("channel", _NAME, nullable=False, index=True),
    Column("at", _TIME, nullable=False),
    Column("ended_at", _TIME),
    # account and machine of the command line, or the user of Airflow or its board
    Column("by_whom", String(255), nullable=False),
    # the target's account
    Column("account", String(255), nullable=False),
    Column("command", String(40), nullable=False),
    # its arguments, as JSON, without values of rows
    Column("arguments", _LONG, nullable=False),
    # SHA-256 of the plan that is carried out; empty: it has none
    Column("digest", String(64), nullable=False),
    # begun, done or failed; a killed command stays begun
    Column("result", String(10), nullable=False),
    # the kind of the error; empty: none
    Column("error", String(100), nullable=False),
)
bootstrap_objects = _table(
    # objects of a first copy, recorded before they are created: a copy drops only objects that are listed here
    "bootstrap_objects",
    Column("channel", _NAME, primary_key=True),
    # table, view, function, procedure ...
    Column("kind", String(20), primary_key=True),
    Column("object_schema", _NAME, primary_key=True),
    Column("object_name", _NAME, primary_key=True),
    # planned or done; done: a table with all of its rows
    Column("state", String(10), nullable=False),
    # the rows of the table that are committed; changed by the transactions that write them
    Column("copied_rows", BigInteger, nullable=False),
    # the key, as JSON, up to which every row is committed, and the number of these rows; NULL: no key yet
    Column("reached", _LONG),
    Column("reached_rows", BigInteger),
    # the source's estimates of the table's rows and bytes
    Column("source_rows", BigInteger),
    Column("source_bytes", BigInteger),
)

OF_CHANNELS: Final = tuple(table for table in metadata.sorted_tables if "channel" in table.c and table is not audit)
"""The tables whose rows go with their channel."""
