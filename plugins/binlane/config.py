"""A channel's file: ``dags/channels/<channel>.toml``, typed, validated, every key documented here.

The attribute docstrings below are the reference; docs/configuration.md is checked against them by a test.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from binlane import collation_rules
from binlane.errors import ConfigError
from binlane.rename_rules import problem_of
from binlane.toml_node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

MAX_LANES: Final = 256
MAX_BLOCK_TRANSACTIONS: Final = 1_000_000
ASSIGNERS: Final = ("database",)
REDUCE: Final = ("block", "window", "off")
WRITERS: Final = ("binlog", "sql", "auto")
ON_CONFLICT: Final = ("stop", "overwrite")
VERIFY: Final = ("none", "window", "full")
LAG_CALLBACK: Final = "binlane.orchestration.signals.lagging"
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)
_LINK: Final = re.compile(r"https?://[^\s/]+\S*|mailto:\S+")
DDL: Final = "ddl"
FILTER_DDL: Final = ("create", "alter", "rename", "drop", "drop_database", "truncate")
FILTER_KINDS: Final = (*FILTER_DDL, "delete", "accounts")
FILTER_POLICIES: Final = ("apply", "ignore", "refuse")
CONSISTENCY: Final = ("eventual", "any_time", "epoch")
WORK_VARIABLE: Final = "BINLANE_WORK"
"""Where the work folders of all channels are, unless a channel's file says so itself."""

_CHANNEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TABLE_PATTERN: Final = re.compile(r"[^.]+\.[^.]+")
_CRON_FIELD: Final = re.compile(r"[0-9A-Za-z*,/#?-]+")
_CRON_PRESETS: Final = ("@hourly", "@daily", "@weekly", "@monthly", "@yearly")
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """``[source]``: exactly one of ``connection`` and ``archive``."""

    connection: str | None
    """Airflow connection of the live source server, read by the replication protocol."""
    archive: str | None
    """fsspec URI (or folder) of binlog files, plain, .gz or .zst, with or without an index file."""
    server_id: int
    """Server id that extraction registers with, used by no replica; default: derived from the channel's name."""
    event_bytes: int
    """Bytes of one event at most, as logged and inflated: what declares more is refused before memory is taken."""


@dataclass(frozen=True, slots=True)
class TargetConfig:
    """``[target]``: the server that the channel writes to."""

    connection: str
    """Airflow connection of the target server."""


@dataclass(frozen=True, slots=True)
class WindowConfig:
    """``[window]``: when a window ends and a run starts."""

    schedule: str | None
    """Cron expression of the windows' ends; default: every full hour; "none" for runs by hand only."""
    timezone: str
    """IANA time zone of ``schedule``; default UTC."""
    start_date: dt.date
    """First day that has windows; default 2026-01-01. `airflow backfill create` reaches back to it."""


@dataclass(frozen=True, slots=True)
class LanesConfig:
    """``[lanes]``: what may run side by side."""

    count: int
    """Parallel lanes, 1..256, default 4; one more, the serialized lane, is always there."""
    shard_list: str
    """Path of the shard list in the project; default shard_list/<channel>.list; all by hash if it is absent."""
    assigner: str
    """What a shard is; "database" (default): the database that a transaction writes."""
    consistency: str
    """"eventual" (default): lanes meet at barriers and at the window's end; "any_time": the source's order, one lane;
    "epoch": lanes meet every ``epoch_seconds`` of source time."""
    epoch_seconds: int
    """Seconds of source time between the meetings of "epoch"; default 60."""
    fold_gap: int
    """Barriers with at most this many transactions between them, and about ``blocks.bytes`` of log, are applied as one
    serial stretch; default 500."""


@dataclass(frozen=True, slots=True)
class BlocksConfig:
    """``[blocks]``: how much one target transaction takes."""

    transactions: int
    """Source transactions a block, at most; default 1000."""
    bytes: int
    """Payload bytes a block, at most (one larger source transaction still is one block); default 8 MiB."""
    seconds: int
    """Seconds of source time between a block's first transaction and its last, at most; default 0: any."""
    reduce: str
    """"block" (default): each block is folded to its net effect; "window": all that a lane does between two barriers
    is; "off": row events are replayed as they are."""
    window_bytes: int
    """Payload bytes that "window" folds at once, and a block's at most; default 64 MiB."""


@dataclass(frozen=True, slots=True)
class FilterConfig:
    """``[filter]``: which databases and tables are taken; without it, all. Patterns have ``*``, ``?`` and ``[a-c]``."""

    include_databases: tuple[str, ...]
    """Patterns of databases: no other one is taken; default: all are."""
    exclude_databases: tuple[str, ...]
    """Patterns of databases that are left out, included or not."""
    include_tables: tuple[str, ...]
    """Patterns of tables, as database.table: no other one is taken; default: all are."""
    exclude_tables: tuple[str, ...]
    """Patterns of tables, as database.table, that are left out, included or not."""
    kinds: Mapping[str, str]
    """``[filter.kinds]``: what becomes of statements by what they do, "apply" (default), "ignore" or "refuse"; "ddl"
    stands for create, alter, rename, drop, drop_database and truncate where they are not named themselves."""
    allow_statements: tuple[str, ...]
    """Kinds of statements that no server logs, and that are applied all the same; default: none is."""


@dataclass(frozen=True, slots=True)
class SegmentsConfig:
    """``[segments]``: how a window is cut for the filter job."""

    bytes: int
    """A segment is closed at the first transaction end at or past this many bytes; default 64 MiB."""


@dataclass(frozen=True, slots=True)
class ApplyConfig:
    """``[apply]``: how lanes write, wait and try again."""

    barrier_timeout: int
    """Seconds that a lane waits at one barrier before its task fails and is tried again; default 3600."""
    lease_seconds: int
    """Seconds without heartbeat and progress after which a lane's holder is taken for dead; default 60."""
    retries: int
    """Times a block is tried again after a transient error of the target, with backoff; default 10."""
    task_retries: int
    """Times Airflow starts an apply task again, at least 4 (a restarted worker eats a try); default 5."""
    task_timeout: int
    """Seconds after which Airflow ends a try of a task and starts the next one, which goes on where a lane stood, and
    begins anew otherwise; not the verification's; default 86400; 0: never."""
    lock_wait_timeout: int
    """Seconds a block waits for a metadata or row lock on the target; default 30."""
    allow_nontransactional: bool
    """Write to tables of engines without transactions (MyISAM): a crash can apply rows twice; default false."""
    allow_unsafe: bool
    """Run statements that give other values on another server (UUID(), LIMIT without ORDER BY); default false."""
    writer: str
    """"binlog" (default): rows by BINLOG statements; "sql": by INSERT, UPDATE and DELETE, slower, for servers that
    allow no BINLOG; "auto": "binlog" if the account has its privileges, else "sql"."""
    allow_triggers: tuple[str, ...]
    """Tables with triggers, as database.table, that the "sql" writer may write: its statements fire them; default
    none."""
    on_conflict: str
    """"stop" (default): a row that is missing or in the way stops all lanes; "overwrite": it is set right, counted and
    listed, to rebuild a target that has drifted."""


@dataclass(frozen=True, slots=True)
class VerifyConfig:
    """``[verify]``: comparing source and target behind each window, as a task of the DAG."""

    after_window: str
    """"none" (default); "window": the rows that it touched; "full": every row of every table. A run's form can say
    otherwise."""
    rows_per_second: int
    """The target's rows are read no faster; default 0: as fast as they come."""


@dataclass(frozen=True, slots=True)
class AlertConfig:
    """``[alert]``: who is told when the target falls behind."""

    lag_seconds: int
    """Seconds from when Airflow queues a run to when it must have succeeded; default 0: no alert."""
    callback: str
    """Dotted path of what is called then, with the keywords channel, lag_seconds and context; default: one that writes
    an error to the callback's log and counts the metric binlane.lag_alerts."""


@dataclass(frozen=True, slots=True)
class WorkConfig:
    """``[work]``: where a window's segments, plan and blocks are."""

    uri: str
    """fsspec URI (or folder) of the work folders; default: $BINLANE_WORK, else .binlane/work in the project."""
    keep_windows: int
    """Finished windows whose work folders are kept; older ones are removed; default 24."""
    keep_history: int
    """Windows, errors and verifications whose rows the state on the target keeps; default 10,000."""


@dataclass(frozen=True, slots=True)
class SparkConfig:
    """``[spark]``: how the filter job is submitted."""

    connection: str
    """Airflow connection of the Spark master; default spark_default."""
    conf: Mapping[str, str]
    """``[spark.conf]``: Spark properties, handed to spark-submit in a file that only its account can read."""


@dataclass(frozen=True, slots=True)
class ChannelConfig:
    """One channel: one source, one target, one shard list, one watermark."""

    name: str
    """The file's name without .toml: the channel's name on the target, so renaming the file is a new channel."""
    file: str
    """Where this was read from; for messages."""
    root: Path
    """The project's folder: relative paths are relative to it."""
    owner: str
    """Owner of the DAG; default binlane."""
    owner_link: str | None
    """Where the owner's name leads to in the list of DAGs: https://... or mailto:...; default: nowhere."""
    tags: tuple[str, ...]
    """Tags of the DAG, besides "binlane"."""
    description: str
    """One line in the list of DAGs."""
    source: SourceConfig
    target: TargetConfig
    window: WindowConfig
    lanes: LanesConfig
    filter: FilterConfig
    rename: tuple[tuple[str, str], ...]
    """``[rename]``: the source's databases and their names on the target, by name or by pattern with one star on each
    side, in order; default: all keep theirs."""
    collations: tuple[tuple[str, str], ...]
    """``[collations]``: collations that the target lacks, and what stands for them there; default: none."""
    blocks: BlocksConfig
    segments: SegmentsConfig
    apply: ApplyConfig
    verify: VerifyConfig
    alert: AlertConfig
    work: WorkConfig
    spark: SparkConfig

    @property
    def shard_list_file(self) -> Path:
        """The shard list's file; it need not exist."""
        return self.root / self.lanes.shard_list


def channel_files(folder: Path) -> tuple[Path, ...]:
    """The channel files of a folder, by name."""
    return tuple(sorted(folder.glob("*.toml")))


def find_channel(name: str, folder: Path) -> Path:
    """The file of the channel ``name``; raises ConfigError that lists the known ones."""
    file = folder / f"{name}.toml"
    if not file.is_file():
        known = ", ".join(each.stem for each in channel_files(folder))
        raise ConfigError(
            f"{folder}: no channel {name!r}; known: {known or 'none: write one, see docs/configuration.md'}"
        )
    return file


def load_channel(file: Path, environment: Mapping[str, str] | None = None) -> ChannelConfig:
    """Read and validate one channel file of ``<project>/dags/channels``; raises ConfigError."""
    file = file.absolute()
    if _CHANNEL_NAME.fullmatch(file.stem) is None:
        raise ConfigError(
            f"{file}: the file's name is the channel's: expected up to 64 letters, digits, - and _, got {file.stem!r}"
        )
    return _channel(Node.read(file), file, os.environ if environment is None else environment)


def _channel(node: Node, file: Path, environment: Mapping[str, str]) -> ChannelConfig:
    tables = (
        *("source", "target", "window", "lanes", "filter", "rename", "collations", "blocks", "segments", "apply"),
        *("verify", "alert", "work", "spark"),
    )
    node.only("owner", "owner_link", "tags", "description", *tables)
    name, root = file.stem, file.parent.parent.parent
    return ChannelConfig(
        name=name,
        file=node.file,
        root=root,
        owner=node.text("owner", "binlane"),
        owner_link=_link(node, "owner_link"),
        tags=node.texts("tags"),
        description=node.text("description", f"Rolls the channel {name} forward"),
        source=_source(node.table("source"), name),
        target=_target(node.table("target")),
        window=_window(node.table("window")),
        lanes=_lanes(node.table("lanes"), name),
        filter=_filter(node.table("filter")),
        rename=_rules(node.table("rename"), problem_of),
        collations=_rules(node.table("collations"), collation_rules.problem_of),
        blocks=_blocks(node.table("blocks")),
        segments=_segments(node.table("segments")),
        apply=_apply(node.table("apply")),
        verify=_verify(node.table("verify"), node.table("source")),
        alert=_alert(node.table("alert")),
        work=_work(node.table("work"), root, environment),
        spark=_spark(node.table("spark")),
    )


def _source(node: Node, channel: str) -> SourceConfig:
    node.only("connection", "archive", "server_id", "event_bytes")
    connection, archive = node.optional_text("connection"), node.optional_text("archive")
    if (connection is None) == (archive is None):
        raise ConfigError(f"{node.file}: {node.path}: expected either connection or archive, got {_which(node)}")
    # high numbers, so that it is unlike the small ids that people give to servers; stable, so that it is seen again
    derived = 0x8000_0000 | zlib.crc32(f"binlane:{channel}".encode())
    event_bytes = node.integer("event_bytes", 16 << 20, 4 << 30, 1 << 30)
    return SourceConfig(connection, archive, node.integer("server_id", 1, 0xFFFF_FFFF, derived), event_bytes)


def _which(node: Node) -> str:
    return " and ".join(key for key in ("connection", "archive") if key in node.value) or "neither"


def _target(node: Node) -> TargetConfig:
    node.only("connection")
    return TargetConfig(node.text("connection"))


def _window(node: Node) -> WindowConfig:
    node.only("schedule", "timezone", "start_date")
    schedule = node.text("schedule", "0 * * * *")
    parts = schedule.split()
    is_cron = len(parts) == 5 and all(_CRON_FIELD.fullmatch(part) for part in parts)
    if schedule != "none" and schedule not in _CRON_PRESETS and not is_cron:
        node.wrong("schedule", f'a cron expression of five fields, {", ".join(_CRON_PRESETS)} or "none"')
    timezone = node.text("timezone", "UTC")
    try:
        ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        node.wrong("timezone", "the name of a time zone such as UTC or Europe/Berlin")
    start_date = node.day("start_date", dt.date(2026, 1, 1))
    return WindowConfig(None if schedule == "none" else schedule, timezone, start_date)


def _lanes(node: Node, channel: str) -> LanesConfig:
    node.only("count", "shard_list", "assigner", "consistency", "epoch_seconds", "fold_gap")
    consistency = node.choice("consistency", CONSISTENCY, "eventual")
    if "epoch_seconds" in node.value and consistency != "epoch":
        raise ConfigError(
            f'{node.file}: {node.at("epoch_seconds")}: expected only with consistency = "epoch", got {consistency!r}'
        )
    return LanesConfig(
        count=node.integer("count", 1, MAX_LANES, 4),
        shard_list=node.text("shard_list", f"shard_list/{channel}.list"),
        assigner=node.choice("assigner", ASSIGNERS, "database"),
        consistency=consistency,
        epoch_seconds=node.integer("epoch_seconds", 1, 86_400, 60),
        fold_gap=node.integer("fold_gap", 0, 1_000_000, 500),
    )


def _filter(node: Node) -> FilterConfig:
    node.only("include_databases", "exclude_databases", "include_tables", "exclude_tables", "kinds", "allow_statements")
    for key in ("include_tables", "exclude_tables"):
        if not all(_TABLE_PATTERN.fullmatch(pattern) for pattern in node.texts(key)):
            node.wrong(key, "a list of database.table, patterns with one dot each (? stands for a dot in a name)")
    return FilterConfig(
        include_databases=node.texts("include_databases"),
        exclude_databases=node.texts("exclude_databases"),
        include_tables=node.texts("include_tables"),
        exclude_tables=node.texts("exclude_tables"),
        kinds=_kinds(node.table("kinds")),
        allow_statements=node.texts("allow_statements"),
    )


def _kinds(node: Node) -> Mapping[str, str]:
    node.only(DDL, *FILTER_KINDS)
    given = {kind: node.choice(kind, FILTER_POLICIES, "apply") for kind in node.value}
    policy = given.pop(DDL, "apply")
    # what is named itself is wanted so: a database's DROP is applied then whatever tables are left out
    return given if policy == "apply" else dict.fromkeys(FILTER_DDL, policy) | given


def _rules(
    node: Node, problem_of: Callable[[tuple[tuple[str, str], ...]], tuple[str, str] | None]
) -> tuple[tuple[str, str], ...]:
    rules = tuple((old, node.text(old)) for old in node.value)
    if (problem := problem_of(rules)) is not None:
        node.wrong(*problem)
    return rules


def _blocks(node: Node) -> BlocksConfig:
    node.only("transactions", "bytes", "seconds", "reduce", "window_bytes")
    reduce, block_bytes = node.choice("reduce", REDUCE, "block"), node.integer("bytes", 64 << 10, 512 * _MIB, 8 * _MIB)
    for key, needed in (("window_bytes", reduce == "window"), ("seconds", reduce != "window")):
        if key in node.value and not needed:
            raise ConfigError(
                f"{node.file}: {node.at(key)}: expected only with{'' if key == 'window_bytes' else 'out'} "
                f'reduce = "window", got {reduce!r}'
            )
    return BlocksConfig(
        transactions=node.integer("transactions", 1, MAX_BLOCK_TRANSACTIONS, 1000),
        bytes=block_bytes,
        seconds=node.integer("seconds", 0, 86_400, 0),
        reduce=reduce,
        # a block must find room beside what is left of those before it
        window_bytes=node.integer("window_bytes", 2 * block_bytes, 1024 * _MIB, max(64 * _MIB, 2 * block_bytes)),
    )


def _segments(node: Node) -> SegmentsConfig:
    node.only("bytes")
    return SegmentsConfig(node.integer("bytes", 64 << 10, 4096 * _MIB, 64 * _MIB))


def _apply(node: Node) -> ApplyConfig:
    node.only(
        *("barrier_timeout", "lease_seconds", "retries", "task_retries", "task_timeout", "lock_wait_timeout"),
        *("allow_nontransactional", "allow_unsafe", "writer", "allow_triggers", "on_conflict"),
    )
    return ApplyConfig(
        barrier_timeout=node.integer("barrier_timeout", 1, 7 * 86_400, 3600),
        lease_seconds=node.integer("lease_seconds", 5, 86_400, 60),
        retries=node.integer("retries", 0, 1000, 10),
        task_retries=node.integer("task_retries", 4, 100, 5),
        task_timeout=node.integer("task_timeout", 0, 30 * 86_400, 86_400),
        lock_wait_timeout=node.integer("lock_wait_timeout", 1, 86_400, 30),
        allow_nontransactional=node.boolean("allow_nontransactional", default=False),
        allow_unsafe=node.boolean("allow_unsafe", default=False),
        writer=node.choice("writer", WRITERS, "binlog"),
        allow_triggers=node.texts("allow_triggers"),
        on_conflict=node.choice("on_conflict", ON_CONFLICT, "stop"),
    )


def _verify(node: Node, source: Node) -> VerifyConfig:
    node.only("after_window", "rows_per_second")
    after_window = node.choice("after_window", VERIFY, "none")
    if after_window != "none" and "archive" in source.value:
        node.wrong("after_window", '"none" for a channel that reads an archive: there is no server to compare with')
    return VerifyConfig(after_window, node.integer("rows_per_second", 0, 1_000_000_000, 0))


def _alert(node: Node) -> AlertConfig:
    node.only("lag_seconds", "callback")
    callback = node.text("callback", LAG_CALLBACK)
    if _DOTTED.fullmatch(callback) is None:
        node.wrong("callback", "the dotted path of a function, such as company.alerts.page")
    if "callback" in node.value and not node.value.get("lag_seconds"):
        node.wrong("lag_seconds", "a number of seconds with a callback")
    return AlertConfig(node.integer("lag_seconds", 0, 30 * 86_400, 0), callback)


def _link(node: Node, key: str) -> str | None:
    link = node.optional_text(key)
    if link is not None and _LINK.fullmatch(link) is None:
        node.wrong(key, "a link: https://host/..., http://host/... or mailto:name@host")
    return link


def _work(node: Node, root: Path, environment: Mapping[str, str]) -> WorkConfig:
    node.only("uri", "keep_windows", "keep_history")
    uri = node.text("uri", environment.get(WORK_VARIABLE) or ".binlane/work")
    return WorkConfig(
        uri=uri if "://" in uri else str(root / uri),
        keep_windows=node.integer("keep_windows", 1, 1_000_000, 24),
        keep_history=node.integer("keep_history", 1, 10_000_000, 10_000),
    )


def _spark(node: Node) -> SparkConfig:
    node.only("connection", "conf")
    conf = node.table("conf")
    return SparkConfig(
        connection=node.text("connection", "spark_default"),
        conf={key: conf.text(key) for key in conf.value},
    )
