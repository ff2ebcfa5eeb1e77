"""A row for every event type code of both servers."""

from __future__ import annotations

from typing import Final

from binlane.binlog.wire import EventType as T
from tests.conformance.rows import Row, informational, refused, supported

EVENTS: Final = "tests/unit/binlog/test_events.py"
READER: Final = "tests/unit/binlog/test_reader.py"
SHAPES: Final = "tests/unit/binlog/test_transactions.py::test_a_shape_is_one_transaction"
MEANT: Final = f"{EVENTS}::test_an_event_says_what_the_server_meant"
WINDOW: Final = (
    "tests/integration/window/servers/test_mixed.py"
    "::test_a_mixed_window_makes_both_servers_equal_and_running_it_again_is_a_no_op"
)
NOT_PASSED: Final = f"{READER}::test_an_event_that_must_not_be_passed_stops_the_log"
TYPES: Final = "tests/conformance/test_conformance.py::test_each_refused_type_is_refused_with_its_error"
STATEMENT: Final = "tests/integration/apply/test_statements.py::test_a_statement_runs_in_its_source_s_session"
UNPACKED: Final = "tests/unit/binlog/test_rows.py::test_a_compressed_event_becomes_the_plain_one"
REAL_LOGS: Final = "tests/unit/binlog/test_real_logs.py::test_transactions_end_as_the_workload_ended_them"
LOADS: Final = (
    "tests/integration/window/statements/test_load_data.py::test_every_way_to_load_a_file_arrives_byte_for_byte"
)


def _named(*types: T) -> str:
    return ", ".join(f"{kind.name} ({kind.value})" for kind in types)


EVENT_TYPES: Final[tuple[Row, ...]] = (
    refused(_named(T.UNKNOWN), "no server writes it", "UnknownEventError", NOT_PASSED, TYPES),
    refused(_named(T.START_V3), "a log of MySQL 3.23 to 4.1", "UnsupportedEventError", NOT_PASSED, TYPES),
    supported(
        _named(T.QUERY), "executed in the session it ran in; DDL exactly once, alone in its block", STATEMENT, WINDOW
    ),
    informational(
        _named(T.STOP, T.ROTATE), "end of a file; the next file is found by the order of the index", SHAPES, MEANT
    ),
    supported(_named(T.INTVAR, T.RAND, T.USER_VAR), "set before the statement that they belong to", STATEMENT, MEANT),
    refused(
        _named(T.LOAD, T.CREATE_FILE, T.EXEC_LOAD, T.NEW_LOAD),
        "LOAD DATA of MySQL 3.23 to 4.1",
        "UnsupportedEventError",
        TYPES,
    ),
    refused(_named(T.SLAVE), "no server writes it", "UnknownEventError", NOT_PASSED, TYPES),
    supported(
        _named(T.BEGIN_LOAD_QUERY, T.APPEND_BLOCK, T.EXECUTE_LOAD_QUERY, T.DELETE_FILE),
        "LOAD DATA: streamed to the target as LOCAL data",
        LOADS,
        MEANT,
    ),
    supported(
        _named(T.FORMAT_DESCRIPTION),
        "read again at every file; lengths and checksums go by it",
        MEANT,
        f"{READER}::test_the_algorithm_is_read_again_at_every_format",
    ),
    supported(_named(T.XID), "end of a transaction", MEANT, SHAPES),
    supported(
        _named(T.TABLE_MAP),
        "replayed with its rows, in the same BINLOG statement",
        WINDOW,
        "tests/unit/binlog/test_table_map.py::test_a_full_mysql_table_map_is_read_whole",
    ),
    refused(
        _named(T.PRE_GA_WRITE_ROWS, T.PRE_GA_UPDATE_ROWS, T.PRE_GA_DELETE_ROWS),
        "rows of MySQL 5.1 before its release",
        "UnsupportedEventError",
        TYPES,
    ),
    supported(
        _named(T.WRITE_ROWS_V1, T.UPDATE_ROWS_V1, T.DELETE_ROWS_V1),
        "replayed byte for byte, or folded",
        WINDOW,
        REAL_LOGS,
    ),
    refused(
        _named(T.INCIDENT), "the source says that changes are missing in its log", "IncidentError", NOT_PASSED, TYPES
    ),
    informational(
        _named(T.HEARTBEAT, T.HEARTBEAT_V2),
        "only in a replication stream",
        "tests/unit/binlog/test_transactions.py::test_events_that_a_stream_inserts_belong_to_no_transaction",
        MEANT,
    ),
    informational(
        _named(T.IGNORABLE, T.ROWS_QUERY, T.ANNOTATE_ROWS), "the statement behind rows, as text", SHAPES, MEANT
    ),
    supported(
        _named(T.WRITE_ROWS_V2, T.UPDATE_ROWS_V2, T.DELETE_ROWS_V2),
        "replayed byte for byte, or folded",
        WINDOW,
        REAL_LOGS,
    ),
    supported(
        _named(T.GTID, T.ANONYMOUS_GTID, T.GTID_TAGGED, T.MARIADB_GTID),
        "beginning of a transaction; the tag is part of the GTID",
        MEANT,
        SHAPES,
        "tests/unit/binlog/test_transactions.py::test_a_tagged_gtid_keeps_its_tag",
    ),
    supported(
        _named(T.PREVIOUS_GTIDS, T.MARIADB_GTID_LIST),
        "the GTIDs of all earlier files",
        MEANT,
        "tests/unit/source/test_gtid_set.py::test_a_files_head_adds_what_is_before_the_file",
    ),
    informational(_named(T.TRANSACTION_CONTEXT, T.VIEW_CHANGE), "group replication's own", SHAPES),
    supported(
        _named(T.XA_PREPARE),
        "the group is kept until its XA COMMIT or XA ROLLBACK",
        "tests/integration/window/xa/test_xa.py::test_prepare_and_each_kind_of_end_of_an_xa_transaction_in_one_window",
    ),
    supported(
        _named(T.PARTIAL_UPDATE_ROWS),
        "replayed on MySQL, never folded; on MariaDB the whole document, made of the one before (refused where the log "
        "has none, binlog_row_image MINIMAL)",
        "tests/integration/window/rows/test_row_formats.py::test_json_differences_arrive",
        "tests/integration/window/rows/test_row_formats.py::test_json_differences_become_documents_on_mariadb",
        "tests/integration/window/rows/test_row_formats.py::test_json_differences_without_their_documents_are_refused_for_mariadb",
    ),
    supported(
        _named(T.TRANSACTION_PAYLOAD),
        "unpacked (zstd or plain), then as every transaction",
        "tests/unit/binlog/test_payload.py::test_the_inner_events_come_out_with_the_offset_of_the_outer_one",
        "tests/unit/binlog/test_transactions.py::test_a_payload_is_a_whole_transaction_and_shows_its_inner_events",
    ),
    refused(
        _named(T.START_ENCRYPTION, T.PERCONA_START_ENCRYPTION),
        "all following events are encrypted",
        "EncryptedLogError",
        NOT_PASSED,
        TYPES,
    ),
    informational(_named(T.BINLOG_CHECKPOINT), "for the server's own recovery", MEANT),
    supported(_named(T.QUERY_COMPRESSED), "unpacked, then as QUERY", MEANT, REAL_LOGS),
    supported(
        _named(
            T.WRITE_ROWS_COMPRESSED_V1,
            T.UPDATE_ROWS_COMPRESSED_V1,
            T.DELETE_ROWS_COMPRESSED_V1,
            T.WRITE_ROWS_COMPRESSED_V2,
            T.UPDATE_ROWS_COMPRESSED_V2,
            T.DELETE_ROWS_COMPRESSED_V2,
        ),
        "unpacked, then as the plain event",
        UNPACKED,
        REAL_LOGS,
    ),
    refused(_named(T.PARTIAL_ROW_DATA), "MariaDB 12.3's fragments of one rows event", "UnsupportedEventError", TYPES),
)
