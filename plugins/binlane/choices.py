"""The words of a channel's choices, each with its meaning, and a limit. Imports nothing, so all packages may import it.

The classes behind the words are in their packages (``shards.assigners``, ``apply.rows.writers``, ...); a test compares
the words with those tables. docs/configuration.md takes words and meanings from here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Self

MOST_LANES: Final = 256
"""How many parallel lanes a channel can have. The serialized lane's number follows theirs."""
FROM_LOG: Final = "log"
"""The base of a restore that begins at the databases' CREATE DATABASE, in place of a dump's path."""


class Word(StrEnum):
    """One word of a choice and its meaning, as docs/configuration.md prints it."""

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Self:
        """``meaning`` has a default so that a member can be looked up by its word."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member

    def __repr__(self) -> str:
        """The word as in the channel file, for errors."""
        return repr(self.value)


class Assigner(Word):
    """``lanes.assigner``: what a shard is (``shards.assigners.ASSIGNERS``)."""

    DATABASE = "database", "a shard is a database, or a group of databases joined by foreign keys"
    PATTERN = (
        "pattern",
        "a shard is the text that [`(pattern)`](../shard_list/README.md#tenants-with-several-databases) of the shard "
        "list finds in the names of its databases",
    )


class Consistency(Word):
    """``lanes.consistency``: when the lanes meet (``plan.consistency.LEVELS``)."""

    EVENTUAL = "eventual", "lanes meet at barriers and at the window's end"
    ANY_TIME = "any_time", "one lane applies everything in the source's order"
    EPOCH = "epoch", "lanes meet also every `lanes.epoch_seconds` of source time or `lanes.epoch_transactions`"


class Divide(Word):
    """``lanes.divide``: how the lanes share the tables of a divided shard (``plan.window.placement``)."""

    KEY = (
        "key",
        "each row goes by its primary key, if equal keys are equal bytes and the table has no other unique key; other "
        "tables go as a whole",
    )
    TABLE = "table", "each table goes as a whole"


class Commit(Word):
    """``lanes.commit``: when the shares of a block of divided shards are committed (``apply.lane.together``)."""

    ALONE = "alone", "each lane commits its share when it has executed it"
    TOGETHER = (
        "together",
        "the lanes commit their shares when all of them have executed theirs: readers can see a part of a transaction "
        "for milliseconds",
    )


class Reduce(Word):
    """``blocks.reduce``: what is folded to its net effect before it is applied."""

    BLOCK = "block", "each block is folded to its net effect"
    WINDOW = (
        "window",
        "everything that a lane applies between two barriers is folded, "
        "[over blocks and segments](reduction.md#a-window-as-one-block)",
    )
    OFF = "off", "row events are replayed as they are"
    AUTO = (
        "auto",
        '"window" or "block", chosen for [each window](reduction.md#the-size-of-blocks) by its changes',
    )


class Writer(Word):
    """``apply.writer``: how rows reach the target (``apply.rows.writers.ROW_WRITERS``, and AUTO)."""

    BINLOG = "binlog", "by BINLOG statements"
    SQL = "sql", "by INSERT, UPDATE and DELETE: slower, for servers that do not allow BINLOG"
    AUTO = "auto", '"binlog" if the account has the privileges for it, else "sql"'


class RowImages(Word):
    """``apply.row_images``: the row images in BINLOG statements (``apply.rows.row_images``)."""

    AUTO = (
        "auto",
        "wide rows are updated and deleted by their primary key, and updates send the changed columns only",
    )
    FULL = "full", "every image is sent as the source logged it, so an update also overwrites columns that have drifted"


class OnConflict(Word):
    """``apply.on_conflict``: a row on the target is not as the log expects it
    (``apply.lane.conflict_policies.CONFLICT_POLICIES``)."""

    STOP = "stop", "a row that is missing or in the way stops all lanes"
    OVERWRITE = (
        "overwrite",
        "the row is corrected. Every row is compared with its values in the log before the change; each row that "
        "differs is counted and listed, to [rebuild a target that has drifted](drift.md#rebuild-a-drifted-target)",
    )

    @property
    def overwrites(self) -> bool:
        """The row on the target is corrected."""
        return self is OnConflict.OVERWRITE


class VerifyScope(Word):
    """``verify.after_window``: what is compared between source and target after each window."""

    NONE = "none", "nothing"
    WINDOW = "window", "the rows that the window changed"
    SLICE = (
        "slice",
        "the rows that the window changed, then a slice of `verify.slice_seconds` of every row of every table; the "
        "next slice continues",
    )
    FULL = "full", "every row of every table, and all definitions"


class Part(Word):
    """``grants --on``: one of a channel's two servers."""

    SOURCE = "source", "the server whose log is read"
    TARGET = "target", "the server that windows write to"


class ArchiveAction(Word):
    """What ``archive`` does with an archive."""

    CHECK = "check", "read all of it, and say what is wrong with it"
    INDEX = "index", "write beside it what each file holds, so that a restore reads fewer of them"


class Compressed(Word):
    """``--compress`` of a first copy: the connections whose packets are compressed by zlib."""

    NONE = "none", "no connection"
    SOURCE = "source", "the connections to the source"
    TARGET = "target", "the connections to the target"
    BOTH = "both", "the connections to source and target"

    def includes(self, part: Compressed) -> bool:
        """Whether connections to ``part``, SOURCE or TARGET, are compressed."""
        return self in (part, Compressed.BOTH)


class FilterKind(Word):
    """``filter.kinds``: what a statement does (``sql.statement_kinds`` reads it from the text)."""

    CREATE = "create", "CREATE of anything in a database"
    ALTER = "alter", "ALTER of anything in a database"
    RENAME = "rename", "RENAME of anything in a database; ALTER TABLE ... RENAME is also `alter`"
    DROP = "drop", "DROP of anything but a database; CREATE OR REPLACE; ALTER TABLE ... DROP PARTITION"
    DROP_DATABASE = "drop_database", "DROP DATABASE; CREATE OR REPLACE DATABASE"
    TRUNCATE = "truncate", "TRUNCATE; ALTER TABLE ... TRUNCATE PARTITION"
    DELETE = "delete", "deleted rows, and DELETE statements"
    ACCOUNTS = "accounts", "CREATE USER, GRANT and other server-wide statements: FLUSH, tablespaces"


DDL: Final = "ddl"
"""A key of ``filter.kinds`` for all ``DDL_KINDS`` that have no key of their own."""
DDL_KINDS: Final = (
    FilterKind.CREATE,
    FilterKind.ALTER,
    FilterKind.RENAME,
    FilterKind.DROP,
    FilterKind.DROP_DATABASE,
    FilterKind.TRUNCATE,
)


class FilterPolicy(Word):
    """``filter.kinds``: what happens to a statement of a kind."""

    APPLY = "apply", "the statement is applied"
    IGNORE = "ignore", "the statement is left out"
    REFUSE = "refuse", "the statement stops the window in the precheck"


class PlanEngine(Word):
    """``spark.engine`` and ``--engine``: what runs the plan job (``orchestration.plan_job.engines``)."""

    LOCAL = "local", "processes of the machine that runs the step, without Java"
    SPARK = (
        "spark",
        "Spark: a spark-submit, or a [Spark Connect server](deployment.md#a-spark-session-that-stays)",
    )
    AUTO = "auto", '"local" for a window of fewer than `spark.min_segments` segments, "spark" for all others'
