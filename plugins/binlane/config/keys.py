"""A channel's file, ``dags/channels/<channel>.toml``: every key declared once, with type, default, range and meaning.

Each dataclass is a table of the file, its docstring the section's text in docs/configuration.md. ``make configuration``
writes the keys into that page.
"""

from __future__ import annotations

import datetime as dt
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from binlane import collation_rules, rename_rules
from binlane.choices import (
    MOST_LANES,
    Assigner,
    Commit,
    Consistency,
    Divide,
    OnConflict,
    PlanEngine,
    Reduce,
    RowImages,
    VerifyScope,
    Writer,
)
from binlane.config.declaration import REQUIRED, Only, PerChannel, key
from binlane.config.kinds import (
    ASSET,
    AUTO,
    BOOLEAN,
    CALLABLE,
    CONNECTION,
    CONNECTIONS,
    CONTINUOUS,
    DAY,
    FILTER_KINDS,
    FOLDER,
    LINK,
    OWNER,
    PLACE,
    PLACES,
    SCHEDULE,
    SESSIONS,
    TABLE,
    TABLE_PATTERNS,
    TAGS,
    TEXT,
    TEXTS,
    TIME_ZONE,
    automatic,
    choice,
    choice_or_class,
    integer,
    rules,
    size,
)
from binlane.lazy_dataclass import dataclass

SECONDS_A_DAY: Final = 86_400
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
LAG_CALLBACK: Final = "binlane.orchestration.airflow.notify.lagging"


def _server_id(channel: str) -> int:
    """High, because people give servers small ids; stable, so that the source recognises the channel's reader."""
    return 0x8000_0000 | zlib.crc32(f"binlane:{channel}".encode())


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """Exactly one of `connection` and `archive`."""

    connection: str | None = key(
        CONNECTION, None, "Airflow connection of the live source server, read by the replication protocol."
    )
    archive: str | None = key(
        FOLDER,
        None,
        "fsspec URI (or folder) of binlog files, plain, .gz or .zst (these may hold 5 GiB each, as much as the largest "
        "file of a server; a plain one has no limit), with or without the server's index file: older files that the "
        "server has purged may be there, too. Name a folder by its whole path: a relative path would start where the "
        "task or command runs.",
    )
    server_id: int = key(
        integer(1, 0xFFFF_FFFF),
        PerChannel(_server_id, "made from the channel's name"),
        "Server id that extraction registers with. No replica of the source may use the same id.",
    )
    event_bytes: int = key(
        size(16 * MIB, 4 * GIB),
        1 * GIB,
        "Largest event that is accepted, as logged and as decompressed. An event that declares more is refused "
        "before memory is allocated. The default is the servers' own limit.",
    )
    trusted_files: tuple[str, ...] = key(
        TEXTS,
        (),
        "Files of the archive (`binlog.000123`) that are taken as they are where a window is refused because nothing "
        "proves that a file is complete, or that it is the next one of its log. Compare it with its server's first.",
    )
    unlogged_gtids: str | None = key(
        TEXT,
        None,
        "Transactions that the source has and no file of its log, because they came with a dump that set gtid_purged "
        "(MySQL: a GTID set) or gtid_slave_pos (MariaDB: a GTID position). Load the dump into the target, too, before "
        "you name them here.",
    )
    ended_sessions: tuple[str, ...] = key(
        SESSIONS,
        (),
        "Connections of the source that have ended without a DROP of their temporary tables in the log "
        "(`17:4711@binlog.000123:4`: server id, connection, and where its first open table was created). A window that "
        "a temporary table holds names the entry. Needed where nobody can be asked: for an archive, an account without "
        "PROCESS, connections of the source's own source.",
    )


@dataclass(frozen=True, slots=True)
class TargetConfig:
    """The server that the channel writes to."""

    connection: str = key(CONNECTION, REQUIRED, "Airflow connection of the target server.")


@dataclass(frozen=True, slots=True)
class WindowConfig:
    """When windows end and runs start."""

    schedule: str | None = key(
        SCHEDULE,
        "0 * * * *",
        "Cron expression of the windows' ends: five fields, or @hourly, @daily, @weekly, @monthly, @yearly. "
        '"continuous": [windows back to back](operations.md#windows-back-to-back). "none": runs are started by hand '
        "only.",
    )
    follow_seconds: int = key(
        integer(60, 7 * SECONDS_A_DAY),
        3600,
        'Seconds that a run takes windows, with `schedule` "continuous"; the next run begins behind it.',
    )
    timezone: str = key(TIME_ZONE, "UTC", "IANA time zone of `window.schedule`.")
    start_date: dt.date = key(
        DAY, dt.date(2026, 1, 1), "First day that has windows. `airflow backfill create` reaches back to it."
    )

    @property
    def is_continuous(self) -> bool:
        """A run takes windows back to back."""
        return self.schedule == CONTINUOUS


@dataclass(frozen=True, slots=True)
class LanesConfig:
    """How transactions are distributed over parallel lanes."""

    count: int = key(
        integer(1, MOST_LANES), 4, "Parallel lanes. The serialized lane is always there, in addition.", form="lanes"
    )
    shard_list: str = key(
        TEXT,
        PerChannel(lambda channel: f"shard_list/{channel}.list", "`shard_list/<channel>.list`"),
        "Path of the shard list in the project. Without that file, shards are placed on lanes by hash.",
    )
    assigner: str = key(choice_or_class(Assigner), Assigner.DATABASE, "What a shard is.")
    consistency: str = key(choice_or_class(Consistency), Consistency.EVENTUAL, "When the lanes meet.")
    epoch_seconds: int = key(
        integer(1, SECONDS_A_DAY),
        60,
        "Seconds of source time between two meetings of the lanes.",
        only=Only("consistency", (Consistency.EPOCH,)),
    )
    epoch_transactions: int = key(
        integer(0, 1_000_000),
        0,
        "Lanes meet also after this number of transactions. 0: after any number.",
        only=Only("consistency", (Consistency.EPOCH,)),
    )
    reader_wait: int = key(
        integer(0, 60),
        2,
        "Seconds that lanes wait at the end of an epoch, at most, for [readers that wait for it]"
        "(consistency.md#wait-for-an-epoch).",
        only=Only("consistency", (Consistency.EPOCH,)),
    )
    fold_gap: int = key(
        integer(0, 1_000_000),
        500,
        "Barriers with at most this many transactions between them, and about `blocks.bytes` of log, are applied"
        " as one serial stretch. A barrier costs every lane a commit and a wait, about 20 ms on a durable "
        "target; in that time one lane applies some hundred transactions. 0: each barrier stands alone.",
    )
    divide: Divide = key(
        choice(Divide),
        Divide.KEY,
        "How the lanes share the tables of [divided shards](../shard_list/README.md#divided-shards).",
    )
    commit: Commit = key(
        choice(Commit),
        Commit.ALONE,
        "When the shares of a block of [divided shards](../shard_list/README.md#divided-shards) are committed.",
    )
    allow_torn: bool = key(
        BOOLEAN,
        False,
        "Divide the [divided shards](../shard_list/README.md#divided-shards) of the shard list although readers of the "
        'target can see a part of a transaction until the lanes meet. `consistency = "epoch"` and `commit = "together"`'
        " need no permission.",
    )


@dataclass(frozen=True, slots=True)
class FilterConfig:
    """Which databases, tables and kinds of statements the channel applies; default: all. Patterns have `*`, `?` and
    `[a-c]`. [filters.md](filters.md) explains the treatment of statements and lists what is refused."""

    include_databases: tuple[str, ...] = key(
        TEXTS, (), "Patterns of databases: only these are taken. Without the key, all are."
    )
    exclude_databases: tuple[str, ...] = key(
        TEXTS, (), "Patterns of databases that are left out, even if they are included."
    )
    include_tables: tuple[str, ...] = key(
        TABLE_PATTERNS,
        (),
        "Patterns of tables, as database.table with one dot: only these are taken. Without the key, all are.",
    )
    exclude_tables: tuple[str, ...] = key(
        TABLE_PATTERNS, (), "Patterns of tables, as database.table, that are left out, even if they are included."
    )
    kinds: Mapping[str, str] = key(
        FILTER_KINDS,
        {},
        '`[filter.kinds]`: "apply" (default), "ignore" or "refuse" for statements by what they do: `create`, '
        "`alter`, `rename`, `drop`, `drop_database`, `truncate`, `delete`, `accounts`. `ddl` stands for the "
        "first six where they are not named themselves. [What each kind is](filters.md#kinds-of-statements).",
    )
    allow_statements: tuple[str, ...] = key(
        TEXTS,
        (),
        "Kinds of statements that are applied although no server logs them, or although [a variable's name may have "
        "made them](security.md#names-of-variables). [The kinds](security.md#statements-that-no-server-logs). "
        '"UNREAD": statements that binlane [does not read to their end](security.md#statements-that-are-not-read).',
    )


@dataclass(frozen=True, slots=True)
class BlocksConfig:
    """The size of one transaction on the target."""

    transactions: int | str = key(
        automatic(integer(1, 1_000_000)),
        AUTO,
        'Source transactions in a block, at most. "auto": [chosen for each window](reduction.md#the-size-of-blocks), '
        "1,000 unless blocks would open tables for a few row changes each.",
        form="block_size",
    )
    bytes: int = key(
        size(64 * KIB, 512 * MIB),
        8 * MIB,
        "Payload bytes of a block, at most. One source transaction that is larger is still one block.",
    )
    seconds: int = key(
        integer(0, SECONDS_A_DAY),
        0,
        "Seconds of source time between a block's first and last transaction, at most. 0: any. With `reduce = "
        '"window"`, [`lanes.consistency = "epoch"`](#lanes) bounds the age instead.',
        only=Only("reduce", (Reduce.WINDOW,), without=True),
    )
    reduce: Reduce = key(choice(Reduce), Reduce.AUTO, "What is folded to its net effect.")
    window_bytes: int = key(
        size(2 * 64 * KIB, 1 * GIB),
        64 * MIB,
        'Payload bytes that `reduce = "window"` folds at once, and those of a block, at most. At least twice '
        "`blocks.bytes`, which is also the default where it is more.",
        only=Only("reduce", (Reduce.AUTO, Reduce.WINDOW)),
    )


@dataclass(frozen=True, slots=True)
class SegmentsConfig:
    """How a window is divided for the plan job."""

    bytes: int = key(
        size(64 * KIB, 4 * GIB),
        64 * MIB,
        "A segment is closed at the first end of a transaction at or past this many bytes; a window's first two at "
        "32 MiB, if this is more.",
    )


@dataclass(frozen=True, slots=True)
class ApplyConfig:
    """How lanes write, wait and retry."""

    barrier_timeout: int = key(
        integer(1, 7 * SECONDS_A_DAY),
        3600,
        "Seconds that a lane waits at one barrier for lanes without a sign of life, and for any lane's share of a "
        "common commit, before its task fails and is retried.",
    )
    lease_seconds: int = key(
        integer(5, SECONDS_A_DAY),
        60,
        "Seconds without heartbeat and progress after which the holder of a lane is considered dead.",
    )
    retries: int = key(
        integer(0, 1000),
        10,
        "How often a block is retried after a transient error of the target, with increasing pauses.",
    )
    task_retries: int = key(
        integer(4, 100), 5, "How often Airflow retries an apply task. A restarted worker uses up one retry."
    )
    task_timeout: int = key(
        integer(0, 30 * SECONDS_A_DAY),
        SECONDS_A_DAY,
        "Seconds after which Airflow ends a try of a task and starts the next one: a lane resumes where it "
        "stood, other tasks start again. `verify_target` and the first copy have no such limit, since they "
        "cannot resume. 0: no limit.",
    )
    lock_wait_timeout: int = key(
        integer(1, SECONDS_A_DAY), 30, "Seconds that a block waits for a metadata or row lock on the target."
    )
    max_threads_running: int = key(
        integer(0, 100_000),
        0,
        "A lane waits in front of a block, and [the load of a restore](restore.md#a-busy-target) in front of a "
        "statement, while the target has more threads running (`Threads_running` without those of this channel's "
        "lanes). 0: never.",
    )
    allow_nontransactional: bool = key(
        BOOLEAN,
        False,
        "Write to tables of engines without transactions (MyISAM). A transaction of them that is interrupted becomes a "
        "question to you: [the cost](compatibility.md#non-transactional-engines).",
    )
    allow_unsafe: bool = key(
        BOOLEAN,
        False,
        "Run statements that give other values on another server (UUID(), LIMIT without ORDER BY, errors behind rows "
        "in no order, other triggers, routines or views, temporary tables of which nothing is known), and on MySQL "
        "those that may store 0 for a NULL which the source has made the current time.",
    )
    allow_unseen: tuple[str, ...] = key(
        TEXTS,
        (),
        "Databases, by the source's names, that are written although the source's account may not read them: their "
        "tables are not compared with the target's before a window, and by no verification.",
    )
    writer: str = key(choice_or_class(Writer), Writer.BINLOG, "How rows are written.")
    allow_triggers: tuple[str, ...] = key(
        TEXTS,
        (),
        'Tables with triggers, as database.table, that the "sql" writer may write. Its statements fire the triggers.',
    )
    on_conflict: OnConflict = key(
        choice(OnConflict),
        OnConflict.STOP,
        "What happens to a row that is not as the log expects it. It may be changed while a window is unfinished.",
    )
    row_images: RowImages = key(
        choice(RowImages),
        RowImages.AUTO,
        'What BINLOG statements hold of rows. "auto" is "full" for rows and tables where short images are [not exact '
        'or not faster](compatibility.md#short-row-images), and with `on_conflict = "overwrite"`.',
    )


@dataclass(frozen=True, slots=True)
class VerifyConfig:
    """Comparison of source and target after each window, in the DAG's last task,
    [`verify_target`](verify.md#verify-from-the-dag)."""

    after_window: VerifyScope = key(
        choice(VerifyScope), VerifyScope.NONE, "What is compared. Only with `source.connection`.", form="verify"
    )
    rows_per_second: int = key(
        integer(0, 1_000_000_000), 0, "Rows of the target that are read in a second, at most. 0: no limit."
    )
    max_threads_running: int = key(
        integer(0, 100_000),
        0,
        "A verification waits while source or target has more threads running (`Threads_running`). 0: never.",
    )
    slice_seconds: int = key(
        integer(1, 366 * SECONDS_A_DAY), 600, 'Seconds of a slice, pauses included, with `after_window` "slice".'
    )


@dataclass(frozen=True, slots=True)
class DrillConfig:
    """What [`binlane drill`](restore.md#drill) restores from, unless its options say otherwise."""

    base: str | None = key(
        PLACE,
        None,
        "A dump, as `binlane restore --from` takes it. A symbolic link to the newest one needs no change of this file.",
    )
    log: str | None = key(
        PLACE, None, "Folder or URI of the archived binlog files (with a slash), or the connection of a live server."
    )
    tenants: int = key(integer(1, 1_000_000), 3, "Random databases that are restored.")
    schedule: str | None = key(
        SCHEDULE,
        "@daily",
        "When the DAG `drill_<channel>` runs, which a channel with `base` and `log` has: five fields, or @hourly, "
        '@daily, @weekly, @monthly, @yearly; in `window.timezone`. "none": drills are started by hand only.',
    )


@dataclass(frozen=True, slots=True)
class ArchiveConfig:
    """The archive whose [index](restore.md#the-index-of-an-archive) the DAG `index_<channel>` makes. A channel without
    `uri` has no such DAG; an index that is there is used without this section."""

    uri: str | None = key(FOLDER, None, "Folder or URI of the archived binlog files.")
    asset: str | None = key(
        ASSET,
        None,
        "URI of the Airflow asset that the uploader of the log updates: the DAG runs behind each update, and not by "
        "`archive.schedule`.",
    )
    schedule: str | None = key(
        SCHEDULE,
        "@hourly",
        "When the DAG runs: five fields, or @hourly, @daily, @weekly, @monthly, @yearly; in `window.timezone`. "
        '"none": by hand only.',
    )


@dataclass(frozen=True, slots=True)
class AlertConfig:
    """What counts as [behind and unverified](monitoring.md#health), and notification of late runs: [lag
    alerts](monitoring.md#lag-alerts)."""

    max_age: int = key(
        integer(0, 366 * SECONDS_A_DAY),
        SECONDS_A_DAY,
        "Seconds since the source committed the last applied transaction, or since the end of a later window that was "
        "empty, beyond which the channel is `behind`. 0: never.",
    )
    max_unverified: int = key(
        integer(0, 366 * SECONDS_A_DAY),
        7 * SECONDS_A_DAY,
        "Seconds for which a change may be on the target without having been verified; beyond, the channel is "
        "`unverified`. 0: any time, as for a channel that reads an archive.",
    )
    max_pending: int = key(
        integer(0, 366 * SECONDS_A_DAY),
        SECONDS_A_DAY,
        "Seconds for which a row or a definition may differ because the source may have changed it since the "
        "watermark; beyond, the channel is `unverified`. 0: any time.",
    )
    max_full_age: int = key(
        integer(0, 366 * SECONDS_A_DAY),
        31 * SECONDS_A_DAY,
        "Seconds since a full verification has compared all rows of all tables (before the first: since the channel "
        "was created), beyond which the channel is `unverified`. 0: any time.",
    )
    max_drill_age: int = key(
        integer(0, 366 * SECONDS_A_DAY),
        7 * SECONDS_A_DAY,
        "Seconds since a drill has found everything equal (before the first: since the channel was created), beyond "
        "which a channel with `drill.base` is `undrilled`. 0: never.",
    )
    lag_seconds: int = key(
        integer(0, 30 * SECONDS_A_DAY),
        0,
        "Seconds from when Airflow queues a run to when it must have succeeded. 0: no alert.",
    )
    callback: str = key(
        CALLABLE,
        LAG_CALLBACK,
        "Dotted path of the function that is called then, with the keywords channel, lag_seconds and context. "
        "The default writes an error to the callback's log and counts the metric binlane.lag_alerts. Only with "
        "`alert.lag_seconds`.",
    )


@dataclass(frozen=True, slots=True)
class AnnounceConfig:
    """How `binlane run`, outside Airflow, [tells of a watermark](monitoring.md#announce); Airflow has asset events."""

    command: tuple[str, ...] = key(
        TEXTS,
        (),
        "Program and arguments, run without a shell after each window, with the watermark as JSON on standard input.",
    )
    airflow: str | None = key(
        CONNECTION,
        None,
        "Connection of an Airflow, which gets each watermark as an [asset event](monitoring.md#announce) by its REST "
        "API.",
    )


@dataclass(frozen=True, slots=True)
class RestoreConfig:
    """What the form of the DAG `restore_<channel>` may name ([restore](restore.md#in-airflow)). A channel without
    `bases` and `logs` has no such DAG; `binlane restore` does not read this section."""

    bases: tuple[str, ...] = key(
        PLACES,
        (),
        "Folders of dumps, by their whole paths: the form takes the dumps in them, and the log alone.",
    )
    logs: tuple[str, ...] = key(
        PLACES,
        (),
        "Folders or URIs of binlog files, with a slash, and connections of live servers, of which the form offers one. "
        "Without the key: the channel's own source.",
    )
    targets: tuple[str, ...] = key(
        CONNECTIONS,
        (),
        "Connections of the servers onto which the form restores. Without the key: the channel's own target.",
    )


@dataclass(frozen=True, slots=True)
class WorkConfig:
    """Where a window's segments, plan and blocks are stored."""

    uri: str = key(FOLDER, ".binlane/work", "fsspec URI (or folder) of the work folders.", variable="BINLANE_WORK")
    keep_windows: int = key(
        integer(1, 1_000_000), 24, "Finished windows whose work folders are kept; older ones are removed."
    )
    keep_history: int = key(
        integer(1, 10_000_000),
        10_000,
        "Windows, errors, verifications, drills and plans of repairs that nobody has applied, whose rows the schema "
        "`binlane` on the target keeps. Never removed: "
        "windows that are open, that have their folder, or that a skip, a conflict or a kept verification names.",
    )


@dataclass(frozen=True, slots=True)
class SparkConfig:
    """What runs the plan job, and how it is submitted."""

    engine: PlanEngine = key(choice(PlanEngine), PlanEngine.SPARK, "What runs the plan job in the DAG.", form="engine")
    min_segments: int = key(integer(1, 1_000_000), 8, 'Segments from which on `engine` "auto" takes Spark.')
    connection: str = key(
        CONNECTION,
        "spark_default",
        "Airflow connection of the Spark master, or of a Spark Connect server (`spark_connect`).",
    )
    conf: Mapping[str, str] = key(
        TABLE,
        {},
        "`[spark.conf]`: Spark properties, handed to spark-submit in a file that only its account can read; not used "
        "with a Spark Connect server. `spark.driver.extraJavaOptions` and the like become arguments of the JVM: no "
        "secrets there.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelConfig:
    """One channel: one source, one target, one shard list, one watermark."""

    name: str
    """The file's name without .toml, and the channel's name on the target: a renamed file is a new channel."""
    file: str
    """The channel file, for messages."""
    root: Path
    """The project's folder: relative paths are relative to it."""
    owner: str = key(OWNER, "binlane", "Owner of the DAG.")
    owner_link: str | None = key(
        LINK, None, "Where the owner's name leads to in the list of DAGs: https://..., http://... or mailto:..."
    )
    tags: tuple[str, ...] = key(TAGS, (), 'Tags of the DAG, besides "binlane".')
    description: str = key(
        TEXT,
        PerChannel(lambda channel: f"Rolls the channel {channel} forward", "`Rolls the channel <channel> forward`"),
        "One line in the list of DAGs.",
    )
    source: SourceConfig
    target: TargetConfig
    window: WindowConfig
    lanes: LanesConfig
    filter: FilterConfig
    rename: tuple[tuple[str, str], ...] = key(
        rules(rename_rules.problem_of),
        (),
        '`[rename]`: `"prod_*" = "dr_*"`: the source\'s databases and their names on the target, by name or by '
        "pattern with one star on each side, in order; the first that matches counts. Other databases keep their"
        " names.",
    )
    collations: tuple[tuple[str, str], ...] = key(
        rules(collation_rules.problem_of),
        (),
        '`[collations]`: `utf8mb4_0900_ai_ci = "utf8mb4_uca1400_nopad_ai_ci"`: a collation of the source and the'
        " one that the target gets, of the same character set.",
    )
    blocks: BlocksConfig
    segments: SegmentsConfig
    apply: ApplyConfig
    verify: VerifyConfig
    drill: DrillConfig
    archive: ArchiveConfig
    alert: AlertConfig
    announce: AnnounceConfig
    restore: RestoreConfig
    work: WorkConfig
    spark: SparkConfig

    @property
    def shard_list_file(self) -> Path:
        """The shard list's file; it need not exist."""
        return self.root / self.lanes.shard_list
