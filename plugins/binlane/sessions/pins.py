"""What sessions take from global variables: pinned by ``PINS``, or left alone for a reason by ``UNPINNED``.

A session begins with the server's global values, and for an account without administrator's privileges ``init_connect``
may then change them. So a value that somebody has set for other clients would decide what binlane reads and writes:
``sql_select_limit`` cuts every result, ``completion_type`` ends or chains transactions. ``driver.Connection`` sends the
pins of a session's kind as one statement at its login; nothing else opens a connection
(``tests/unit/test_sessions.py``). Both tables together name every variable that a session of the supported servers
inherits (``tests/integration/test_session_pins.py`` asks the servers for theirs).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import EXPLICIT_DEFAULTS_SINCE, Flavor, version_number


class SessionKind(StrEnum):
    """What a session is for."""

    STATE = "binlane's own tables, catalogues, and the log"
    LOOK = "binlane's own tables, which a page, `check`, `find` or `status` only reads"
    COMPARE = "rows of both servers, compared"
    READ = "the rows and definitions of a first copy, a repair or a recopy, as they are stored"
    WRITE = "the source's rows and definitions, written without a change"
    LANE = "the log's statements and rows, each with what the log says of its session"


@dataclass(frozen=True, slots=True)
class Pin:
    """A variable and its value in binlane's sessions, as SQL."""

    name: str
    value: str | Mapping[Flavor, str]
    reason: str
    flavors: frozenset[Flavor] = frozenset(Flavor)
    kinds: frozenset[SessionKind] = frozenset(SessionKind)
    by_kind: Mapping[SessionKind, str] = field(default_factory=dict)
    """The kinds with another value."""
    since: tuple[int, int, int] = (0, 0, 0)
    """The first version of its family that has it, or takes this value. An older server has no say by it."""
    of_series: Mapping[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    """Older series that got it in a later version."""
    until: tuple[int, int, int] = (1 << 15, 0, 0)
    """The first version that has it no more."""
    accepted: frozenset[str] = frozenset()
    """Other values, in capitals, that are as good where the account or the server does not let it be changed."""

    def value_of(self, flavor: Flavor, kind: SessionKind) -> str:
        """The value of a session."""
        usual = self.value if isinstance(self.value, str) else self.value[flavor]
        return self.by_kind.get(kind, usual)


_MARIADB: Final = frozenset({Flavor.MARIADB})
_MYSQL: Final = frozenset({Flavor.MYSQL})
_LATEST: Final = {SessionKind.COMPARE: "'READ-COMMITTED'"}
READ_ONLY: Final = frozenset({SessionKind.LOOK, SessionKind.COMPARE, SessionKind.READ})
"""A table may become a view between two statements, and a function in it runs with the privileges of who reads it."""
_NOT_LANES: Final = frozenset(SessionKind) - {SessionKind.LANE}
_WRITERS: Final = frozenset({SessionKind.WRITE, SessionKind.LANE})
_WRITE: Final = frozenset({SessionKind.WRITE})
_COPIES: Final = (SessionKind.READ, SessionKind.WRITE)
_NEWEST: Final = (1 << 14, 0, 0)
_DAY: Final = 86_400
_NO_LIMIT: Final = str((1 << 64) - 1)
_AS_ON_SOURCE: Final = "an expression of binlane's own, or a column that the server computes, would have another value"
_REFUSES: Final = "forbids statements that the source has run, or that binlane runs itself"
_ISOLATION: Final = "what a transaction sees of others"
_CHANGED: Final = "transactions would fail whose rows others have changed (1020)"
_READ_AS: Final = "how statements are read, and checksums made"
_BY_KEYS: Final = "reads by keys would read whole tables, and warn"
_NULL: Final = "what NULL is in a TIMESTAMP"
_AS_SHOWN: Final = "definitions are read as text, and compared"
_ENDS: Final = "ends the session, or a statement in its middle"

MOST_WARNINGS: Final = 65_535
"""The largest ``max_error_count``, and the largest number of warnings that an answer tells."""
WRITE_MODE: Final = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_DIR_IN_CREATE"
"""The source's values are stored unchanged; a value that the target would change causes a warning."""
READ_MODE: Final = "ALLOW_INVALID_DATES"
"""MySQL compares a column with 31 February only where such dates are allowed (1525)."""
USUAL_MODE: Final[Mapping[Flavor, str]] = {
    Flavor.MARIADB: "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
    Flavor.MYSQL: "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION",
}
"""The modes of a server that nobody has configured."""

PINS: Final = (
    Pin(
        "sql_mode",
        {flavor: f"'{mode}'" for flavor, mode in USUAL_MODE.items()},
        "decides how statements are read (ORACLE, ANSI_QUOTES), and which values are stored",
        by_kind={
            SessionKind.READ: f"'{READ_MODE}'",
            SessionKind.COMPARE: f"'{READ_MODE}'",
            SessionKind.WRITE: f"'{WRITE_MODE}'",
        },
    ),
    Pin("completion_type", "'NO_CHAIN'", "COMMIT would begin another transaction, or close the connection"),
    Pin("tx_isolation", "'REPEATABLE-READ'", _ISOLATION, _MARIADB, by_kind=_LATEST),
    Pin(
        "transaction_isolation",
        "'REPEATABLE-READ'",
        "what a transaction sees of others",
        _MYSQL,
        by_kind=_LATEST,
        since=(5, 7, 20),
    ),
    Pin("tx_read_only", "0", _REFUSES, _MARIADB, by_kind=dict.fromkeys(READ_ONLY, "1")),
    Pin("transaction_read_only", "0", _REFUSES, _MYSQL, by_kind=dict.fromkeys(READ_ONLY, "1"), since=(5, 7, 20)),
    Pin(
        "innodb_snapshot_isolation",
        "0",
        _CHANGED,
        _MARIADB,
        since=(10, 6, 18),
    ),
    Pin("sql_select_limit", _NO_LIMIT, "cuts every result"),
    Pin("max_join_size", _NO_LIMIT, _REFUSES),
    # behind max_join_size, which changes it
    Pin("sql_big_selects", "1", _REFUSES),
    Pin("sql_safe_updates", "0", _REFUSES),
    Pin("updatable_views_with_limit", "'YES'", _REFUSES),
    Pin("max_statement_time", "0", _ENDS, _MARIADB),
    Pin("max_execution_time", "0", _ENDS, _MYSQL),
    Pin("idle_transaction_timeout", "0", _ENDS, _MARIADB, since=(10, 3, 0)),
    Pin("idle_readonly_transaction_timeout", "0", _ENDS, _MARIADB, since=(10, 3, 0)),
    Pin("idle_write_transaction_timeout", "0", _ENDS, _MARIADB, since=(10, 3, 0)),
    Pin("wait_timeout", "28800", _ENDS, by_kind=dict.fromkeys(_COPIES, str(7 * _DAY))),
    # the server waits so long within a packet: with a longer time a partitioned lane would keep its lease
    Pin("net_read_timeout", "30", _ENDS, by_kind=dict.fromkeys(_COPIES, str(_DAY))),
    Pin("net_write_timeout", "60", _ENDS, by_kind=dict.fromkeys(_COPIES, str(_DAY))),
    # a step says who it waits for, instead of waiting for a day for the end of a LOCK TABLES
    Pin("lock_wait_timeout", str(_DAY), _ENDS, by_kind=dict.fromkeys((SessionKind.STATE, SessionKind.LOOK), "60")),
    Pin("innodb_lock_wait_timeout", "50", _ENDS),
    Pin("max_session_mem_used", str((1 << 63) - 1), _ENDS, _MARIADB),
    Pin("sort_buffer_size", {Flavor.MARIADB: "2097152", Flavor.MYSQL: "262144"}, _ENDS),
    Pin("tmp_disk_table_size", _NO_LIMIT, _ENDS, _MARIADB, since=(10, 2, 7)),
    Pin(
        "range_optimizer_max_mem_size",
        "8388608",
        _BY_KEYS,
        _MYSQL,
        since=(5, 7, 9),
    ),
    Pin("query_cache_type", "0", "an answer from a cache is not the server's", _MARIADB),
    Pin("wsrep_dirty_reads", "0", "a node without its cluster would answer with what it had", _MARIADB),
    Pin("sql_auto_is_null", "0", "IS NULL would find the last row that was inserted"),
    Pin("sql_buffer_result", "0", "the server would copy a table before it sends its first row"),
    Pin("system_versioning_asof", "DEFAULT", "tables would be read as they were", _MARIADB, since=(10, 3, 4)),
    Pin("system_versioning_alter_history", "'ERROR'", _AS_ON_SOURCE, _MARIADB, since=(10, 3, 4)),
    Pin("system_versioning_insert_history", "0", _AS_ON_SOURCE, _MARIADB, since=(10, 11, 0)),
    Pin("foreign_key_checks", "1", "what is checked, and cascades", by_kind={SessionKind.WRITE: "0"}),
    Pin("unique_checks", "1", "what is checked"),
    Pin("check_constraint_checks", "1", "what is checked", _MARIADB, by_kind={SessionKind.WRITE: "0"}),
    Pin("enable_cascade_triggers", "0", "the log has the effects of these triggers", _MYSQL, since=(9, 6, 0)),
    Pin("rbr_exec_mode", "'STRICT'", "rows of BINLOG that find no row, or another one, would be passed over", _MYSQL),
    Pin("sql_if_exists", "0", "a missing table would be no error", _MARIADB, since=(10, 5, 2)),
    Pin("alter_algorithm", "'DEFAULT'", _REFUSES, _MARIADB, since=(10, 3, 7)),
    Pin("auto_increment_increment", "1", "numbers that a server gives"),
    Pin("auto_increment_offset", "1", "numbers that a server gives"),
    Pin("sql_notes", "1", "a changed value is a note for some types"),
    Pin("note_verbosity", "'basic'", "a changed value is a note for some types", _MARIADB, since=(10, 6, 16)),
    Pin(
        "max_error_count",
        "1024",
        "warnings say which value the server has changed",
        kinds=_WRITERS,
        # each row with an ENUM's error value has a warning, and all of a statement are read
        by_kind={SessionKind.WRITE: str(MOST_WARNINGS)},
        accepted=frozenset({"1024", str(MOST_WARNINGS)}),
    ),
    Pin("lc_messages", "'en_US'", "errors are recognised by their texts"),
    Pin("lc_time_names", "'en_US'", _AS_ON_SOURCE),
    Pin("time_zone", "'+00:00'", _AS_ON_SOURCE, kinds=_NOT_LANES),
    Pin("character_set_results", "utf8mb4", "texts are read in it", by_kind={SessionKind.READ: "NULL"}),
    Pin("character_set_filesystem", "binary", "names of files", _MARIADB),
    Pin("character_set_collations", "''", "a character set without a collation", _MARIADB, since=(11, 2, 0)),
    Pin("old_mode", "''", _READ_AS, _MARIADB, _NOT_LANES, until=(10, 6, 0)),
    Pin(
        "old_mode",
        "'UTF8_IS_UTF8MB3'",
        _READ_AS,
        _MARIADB,
        _NOT_LANES,
        since=(10, 6, 0),
    ),
    Pin("sql_quote_show_create", "1", _AS_SHOWN),
    Pin("show_gipk_in_create_table_and_information_schema", "1", _AS_SHOWN, _MYSQL, since=(8, 0, 30)),
    Pin("show_create_table_verbosity", "0", _AS_SHOWN, _MYSQL, since=(8, 0, 11)),
    Pin("show_old_temporals", "0", _AS_SHOWN, _MYSQL, until=(8, 0, 0)),
    Pin("print_identified_with_as_hex", "0", _AS_SHOWN, _MYSQL, since=(8, 0, 17)),
    Pin("explain_format", "'TRADITIONAL'", "plans are read by their columns", _MYSQL, since=(8, 0, 32)),
    Pin("information_schema_stats_expiry", "0", "AUTO_INCREMENT would be one of yesterday", _MYSQL, since=(8, 0, 0)),
    Pin("explicit_defaults_for_timestamp", "1", _NULL, _MYSQL, _NOT_LANES),
    Pin(
        "explicit_defaults_for_timestamp",
        "1",
        _NULL,
        _MARIADB,
        _NOT_LANES,
        since=(10, 10, 0),
        of_series=EXPLICIT_DEFAULTS_SINCE,
    ),
    Pin("div_precision_increment", "4", _AS_ON_SOURCE, kinds=_NOT_LANES),
    Pin("default_week_format", "0", _AS_ON_SOURCE, kinds=_NOT_LANES),
    Pin("group_concat_max_len", "1048576", "cuts lists of names", kinds=_NOT_LANES),
    Pin("max_sort_length", "1024", "rows that are alike so far would come in any order", kinds=_NOT_LANES),
    Pin("block_encryption_mode", "'aes-128-ecb'", _AS_ON_SOURCE, _MYSQL, _NOT_LANES),
    Pin("block_encryption_mode", "'aes-128-ecb'", _AS_ON_SOURCE, _MARIADB, _NOT_LANES, since=(11, 2, 0)),
    Pin("default_regex_flags", "''", _AS_ON_SOURCE, _MARIADB, _NOT_LANES),
    Pin("windowing_use_high_precision", "1", _AS_ON_SOURCE, _MYSQL, _NOT_LANES, since=(8, 0, 2)),
    Pin("standard_compliant_cte", "1", _AS_ON_SOURCE, _MARIADB, since=(10, 2, 0)),
    Pin("cte_max_recursion_depth", "1000", "cuts what a query computes", _MYSQL, _NOT_LANES, since=(8, 0, 3)),
    Pin("max_recursive_iterations", "1000", "cuts what a query computes", _MARIADB, _NOT_LANES),
    Pin("default_storage_engine", "InnoDB", "tables of transactions", kinds=_NOT_LANES),
    Pin("default_tmp_storage_engine", "InnoDB", "tables of transactions", _MYSQL, _NOT_LANES),
    Pin("default_tmp_storage_engine", "NULL", "tables of transactions", _MARIADB, _NOT_LANES),
    Pin(
        "enforce_storage_engine",
        "NULL",
        "a table would be of another engine than the source's",
        _MARIADB,
        _WRITERS,
        accepted=frozenset({"INNODB"}),
    ),
    Pin(
        "sql_generate_invisible_primary_key",
        "0",
        "a table would have a column more than the source's",
        _MYSQL,
        _WRITERS,
        since=(8, 0, 30),
    ),
    Pin("sql_require_primary_key", "0", _REFUSES, _MYSQL, _WRITE, since=(8, 0, 13)),
    # where an account may not change it, the rehearsal of a first copy names the tables
    Pin(
        "innodb_strict_mode",
        "0",
        "refuses tables that the source has taken",
        kinds=_WRITE,
        accepted=frozenset({"1"}),
    ),
    Pin("restrict_fk_on_non_standard_key", "0", _REFUSES, _MYSQL, _WRITERS, since=(8, 4, 0)),
)
"""In the order in which they are sent. ``autocommit`` and the character set are sent with them.

Not of lanes: what the log says with each statement or the precheck has compared (``sql.session_variables``)."""


def _all(reason: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, reason)


UNPINNED: Final[Mapping[str, str]] = {
    **_all(
        "sent with the login, beside the pins",
        *("autocommit", "character_set_client", "character_set_connection", "collation_connection"),
    ),
    **_all(
        "set by the log for each statement, named by binlane's own definitions, or the default of what names none",
        *("character_set_database", "character_set_server", "collation_database", "collation_server"),
        *("default_collation_for_utf8mb4", "default_table_encryption"),
    ),
    **_all(
        "the plan of a query, not its result",
        *("eq_range_index_dive_limit", "expensive_subquery_limit", "in_predicate_conversion_threshold"),
        *("join_cache_level", "max_length_for_sort_data", "max_rowid_filter_size", "max_seeks_for_key", "new_mode"),
        *("optimizer_adjust_secondary_key_costs", "optimizer_disk_setup_cost", "optimizer_extra_pruning_depth"),
        *("optimizer_join_limit_pref_ratio", "optimizer_max_sel_arg_weight", "optimizer_max_sel_args"),
        *("optimizer_max_subgraph_pairs", "optimizer_prune_level", "optimizer_scan_setup_cost"),
        *("optimizer_search_depth", "optimizer_selectivity_sampling_limit", "optimizer_switch"),
        *("optimizer_use_condition_selectivity", "optimizer_where_cost", "secondary_engine_cost_threshold"),
        *("use_stat_tables", "mhnsw_ef_search", "enable_secondary_engine_statistics"),
    ),
    **_all(
        "statistics, and what ANALYZE makes of them",
        *("analyze_max_length", "analyze_sample_percentage", "aria_stats_method", "histogram_size", "histogram_type"),
        *("histogram_generation_max_mem_size", "myisam_stats_method"),
    ),
    **_all(
        "memory, and what is on disk without it",
        *("aria_repair_threads", "aria_sort_buffer_size", "big_tables", "bulk_insert_buffer_size"),
        *("connection_memory_chunk_size", "global_connection_memory_tracking", "innodb_ddl_buffer_size"),
        *("innodb_ddl_threads", "innodb_parallel_read_threads", "innodb_tmpdir", "internal_tmp_mem_storage_engine"),
        *("join_buffer_size", "join_buffer_space_limit", "max_heap_table_size", "mrr_buffer_size"),
        *("myisam_repair_threads", "myisam_sort_buffer_size", "net_buffer_length", "preload_buffer_size"),
        *("query_alloc_block_size", "query_prealloc_size", "range_alloc_block_size", "read_buffer_size"),
        *("read_rnd_buffer_size", "rowid_merge_buff_size", "select_into_buffer_size", "select_into_disk_sync"),
        *("select_into_disk_sync_delay", "set_operations_buffer_size", "tmp_memory_table_size"),
        *("tmp_table_size", "transaction_alloc_block_size", "transaction_prealloc_size", "tcp_nodelay"),
        *("innodb_alter_copy_bulk", "max_open_cursors"),
    ),
    **_all(
        "what a session may use; its error names it",
        *("connection_memory_limit", "max_allowed_packet", "max_points_in_geometry", "max_sp_recursion_depth"),
        *("max_tmp_tables", "max_user_connections", "max_tmp_session_space_usage", "parser_max_mem_size"),
    ),
    **_all(
        "how a table is stored, or an error that names it; not what it holds",
        *("column_compression_threshold", "column_compression_zlib_level", "column_compression_zlib_strategy"),
        *("column_compression_zlib_wrap", "innodb_compression_default", "innodb_default_encryption_key_id"),
        *("keep_files_on_create", "storage_engine", "external_table_storage_engine"),
        *("external_table_secondary_storage_engine", "old_alter_table", "mhnsw_default_distance"),
        *("mhnsw_default_m", "external_table_secondary_engine"),
    ),
    **_all(
        "compared by the precheck where a window's statements see it",
        *("innodb_ft_enable_stopword", "innodb_ft_user_stopword_table"),
    ),
    **_all(
        "the server's own log, whose readers are its replicas; the precheck refuses those that lanes cannot work with",
        *("binlog_alter_two_phase", "binlog_annotate_row_events", "binlog_direct_non_transactional_updates"),
        *("binlog_format", "binlog_row_image", "binlog_row_metadata", "binlog_row_value_options"),
        *("binlog_rows_query_log_events", "binlog_transaction_compression", "gtid_domain_id", "gtid_owned"),
        *("binlog_transaction_compression_level_zstd", "server_id", "sql_log_bin", "xa_detach_on_prepare"),
    ),
    **_all(
        "logs of the administrator",
        *("log_disabled_statements", "log_queries_not_using_indexes", "log_slow_admin_statements", "log_warnings"),
        *("log_slow_disabled_statements", "log_slow_filter", "log_slow_max_warnings", "log_slow_query"),
        *("log_slow_min_examined_row_limit", "log_slow_query_time", "log_slow_rate_limit", "log_slow_verbosity"),
        *("log_slow_slave_statements", "log_slow_always_query_time", "long_query_time", "min_examined_row_limit"),
        *("optimizer_trace", "optimizer_trace_features", "optimizer_trace_limit", "optimizer_trace_max_mem_size"),
        *("optimizer_trace_offset", "optimizer_record_context", "profiling", "profiling_history_size"),
        *("slow_query_log", "sql_log_off", "sql_warnings", "wsrep_slave_fk_checks"),
    ),
    **_all(
        "asked for by a client's handshake or by statements that binlane does not send",
        *("interactive_timeout", "session_track_gtids", "session_track_schema", "session_track_state_change"),
        *("session_track_system_variables", "session_track_transaction_info", "progress_report_time"),
        *("generated_random_password_length", "end_markers_in_json", "explain_json_format_version"),
        *("old_passwords", "query_cache_strip_comments", "query_cache_wlock_invalidate", "redirect_url"),
        *("terminology_use_previous", "max_delayed_threads", "max_insert_delayed_threads", "sql_slave_skip_counter"),
        *("max_relay_log_size", "net_retry_count", "thread_pool_priority", "thread_pool_high_priority_connection"),
    ),
    **_all(
        "the order of waiting sessions",
        *("deadlock_search_depth_long", "deadlock_search_depth_short", "deadlock_timeout_long"),
        *("deadlock_timeout_short", "innodb_table_locks", "low_priority_updates"),
    ),
    **_all(
        "a cluster's, whose nodes hold what the log says",
        *("group_replication_consistency", "wsrep_causal_reads", "wsrep_on", "wsrep_osu_method"),
        *("wsrep_retry_autocommit", "wsrep_sync_wait", "wsrep_trx_fragment_size", "wsrep_trx_fragment_unit"),
    ),
    "old": "read-only, the sum of other variables",
}
"""Variables that sessions inherit and that may have any value, with the reason."""


@dataclass(frozen=True, slots=True)
class Server:
    """What decides which pins a server has."""

    flavor: Flavor
    number: tuple[int, int, int]

    @classmethod
    def of(cls, version: str) -> Server:
        """By the version of its handshake."""
        return cls(Flavor.MARIADB if "mariadb" in version.lower() else Flavor.MYSQL, version_number(version))


@functools.lru_cache(maxsize=64)
def assignments(server: Server, kind: SessionKind, without: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The pins of a session as parts of a SET statement, without those of the names ``without``."""
    return tuple(_assigned(_values(server, kind), without))


@functools.lru_cache(maxsize=64)
def changes(
    server: Server, before: SessionKind, kind: SessionKind, without: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """The parts of a SET statement that makes a session one of another kind.

    What the other kind does not pin has the server's global value afterwards, as at the login.
    """
    had, wanted = _values(server, before), _values(server, kind)
    new = {name: f"@@GLOBAL.{name}" for name in had if name not in wanted} | wanted
    return tuple(_assigned({name: value for name, value in new.items() if value != had.get(name)}, without))


def pins_of(server: Server, kind: SessionKind) -> Iterator[Pin]:
    """The pins of a kind of session, in the order in which they are sent."""
    return (
        pin
        for pin in PINS
        if server.flavor in pin.flavors
        and kind in pin.kinds
        and pin.of_series.get(server.number[:2], pin.since) <= server.number < pin.until
    )


def pin_names(server: Server) -> tuple[str, ...]:
    """The variables of this server that a session of any kind pins."""
    return tuple(dict.fromkeys(pin.name for kind in SessionKind for pin in pins_of(server, kind)))


def _values(server: Server, kind: SessionKind) -> dict[str, str]:
    return {pin.name: pin.value_of(server.flavor, kind) for pin in pins_of(server, kind)}


def _assigned(values: Mapping[str, str], without: frozenset[str]) -> Iterator[str]:
    return (f"@@SESSION.{name} = {value}" for name, value in values.items() if name not in without)


@functools.cache
def pinned(name: str, flavor: Flavor, kind: SessionKind) -> str | None:
    """The pinned value of a variable on the newest servers, as SQL; None if it is not pinned."""
    return _values(Server(flavor, _NEWEST), kind).get(name)


def is_as_pinned(pin: Pin, flavor: Flavor, kind: SessionKind, shown: str) -> bool:
    """Whether the value that a server shows is the pinned one, or as good."""
    found = _plain(shown)
    return found == _plain(pin.value_of(flavor, kind)) or found in pin.accepted


def _plain(value: str) -> str:
    text = value.strip("'").upper().removesuffix(".000000")
    # servers show the words of a set in an order of their own
    return {"ON": "1", "OFF": "0", "NULL": ""}.get(text, ",".join(sorted(text.split(","))))
