"""Rows, values and statements: what a reader would not expect of them."""

from __future__ import annotations

from typing import Final

from tests.conformance import proofs
from tests.conformance.rows import Row, informational, refused, supported

CONTENT_CASES: Final[tuple[Row, ...]] = (
    supported(
        "Reused table ids",
        "the latest TABLE_MAP counts; forgotten at STMT_END, ROTATE and a new format",
        f"{proofs.ROWS}::test_tables_are_numbered_by_definition_and_forgotten_at_the_statement_end",
        f"{proofs.ROWS}::test_a_format_description_forgets_all_tables",
    ),
    supported(
        "Several TABLE_MAPs before several rows events",
        "a map by id, not the last one",
        f"{proofs.KERNELS}::test_many_tables_keep_their_numbers",
        f"{proofs.ROWS_PAYLOAD}::test_a_self_contained_payload_names_its_tables",
    ),
    supported(
        "Column names only with binlog_row_metadata=FULL",
        "not needed: images are replayed by position, which the precheck compares",
        f"{proofs.CATALOG}::test_full_metadata_alone_shows_silent_mismatches",
        f"{proofs.FORMATS}::test_rows_with_and_without_full_metadata_arrive",
    ),
    supported(
        "Signedness only in optional metadata",
        "read if present, otherwise both readings are shown; the precheck compares definitions",
        f"{proofs.VALUES}::test_a_log_without_metadata_gives_what_it_says_and_nothing_else",
        f"{proofs.TABLE_MAP}::test_optional_metadata_belongs_to_its_columns",
        f"{proofs.CATALOG}::test_a_silent_mismatch_on_a_real_server_is_fatal",
    ),
    informational(
        "Unknown fields of optional metadata",
        "skipped by their length",
        f"{proofs.TABLE_MAP}::test_optional_metadata_belongs_to_its_columns",
    ),
    supported(
        "Invisible columns",
        "part of the row images; compared by the precheck",
        f"{proofs.SCHEMA_COMPARE}::test_values_that_the_target_generates_are_fatal_only_with_partial_images",
        f"{proofs.REDUCED}::test_each_trap_leaves_the_rows_that_replay_leaves",
    ),
    supported(
        "Hidden columns of MariaDB (DB_ROW_HASH, row_start, row_end)",
        "counted as columns",
        f"{proofs.SCHEMA_WIRE}::test_columns_that_mariadb_logs_and_hides_are_counted",
        f"{proofs.CATALOG}::test_a_servers_own_table_maps_fit_its_own_tables",
    ),
    refused(
        "Rows that are longer than the target's max_allowed_packet as statements (SQL writer, JSON between families)",
        "named with the packet size that they need; rows that fit are written",
        "PrecheckError",
        f"{proofs.PACKETS}::test_a_json_document_that_is_too_long_as_text_is_named_before_anything_is_written",
        f"{proofs.PACKETS}::test_a_row_found_by_all_its_columns_needs_both_images_and_one_with_a_key_does_not",
    ),
    refused(
        "Generated invisible primary keys",
        "a difference of one column is named",
        "PrecheckError",
        f"{proofs.FORMATS}::test_a_generated_primary_key_on_one_side_alone_is_named",
    ),
    refused(
        "Hidden columns of functional indexes (MySQL up to 8.0.17)",
        "a different number of columns is named",
        "PrecheckError",
        f"{proofs.SCHEMA_WIRE}::test_another_number_of_columns_is_fatal",
    ),
    supported(
        "Generated columns",
        "part of the row images; BINLOG writes them unchanged, the SQL writer leaves them out",
        f"{proofs.FOLDED_WINDOWS}::test_reduced_windows_equal_the_source_on_mariadb",
        f"{proofs.FOLDED_WINDOWS}::test_reduced_windows_equal_the_source_on_mysql",
        f"{proofs.SQL_ROWS}::test_statements_have_the_effect_of_the_row_events",
    ),
    supported(
        "binlog_row_image MINIMAL and NOBLOB",
        "replayed; an absent column is not NULL; not folded",
        f"{proofs.FORMATS}::test_partial_row_images_arrive",
        f"{proofs.REDUCE}::test_a_block_with_a_partial_image_keeps_that_table_in_order",
    ),
    refused(
        "MariaDB's REPLACE, executed as an update, with binlog_row_image MINIMAL or NOBLOB: the log lacks the "
        "defaults of the columns that it does not name",
        "named before the window begins, unless `allow_unsafe` is set; in NOBLOB without binlog_annotate_row_events it "
        "looks like an UPDATE, and is applied as one",
        "PrecheckError",
        "tests/integration/window/rows/test_replaced_rows.py::test_a_replace_that_the_log_has_in_part_is_named",
    ),
    supported(
        "Wide rows (apply.row_images)",
        "the key before and the changed columns after, where the target's table takes them exactly; else whole images",
        f"{proofs.ROW_IMAGES}::test_short_images_have_the_effect_of_whole_ones",
        f"{proofs.ROW_IMAGES}::test_only_whole_images_write_columns_that_an_update_does_not_change",
        f"{proofs.NARROW}::test_machine_code_and_plain_python_give_the_same_bytes",
    ),
    supported(
        "Large BINLOG statements (MariaDB)",
        "the events are values of two user variables, which the server empties; with the effect of a literal",
        f"{proofs.EVENT_VARIABLES}::test_events_are_stored_and_executed",
        f"{proofs.EVENT_VARIABLES}::test_an_error_leaves_nothing_that_a_second_statement_would_execute",
        f"{proofs.EVENT_VARIABLES}::test_a_server_without_room_for_a_prepared_statement_gets_literals",
    ),
    supported(
        "Extra data of rows events version 2",
        "skipped by its length; a wrong tag is an error",
        f"{proofs.ROWS}::test_v2_extra_data_is_kept_and_stepped_over",
        f"{proofs.KERNELS}::test_the_guard_of_the_extra_data_refuses_what_is_none",
    ),
    supported(
        "PARTIAL_UPDATE_ROWS (JSON differences)",
        "replayed on MySQL, never folded; on MariaDB the whole document, made of the one before (refused where the log "
        "has none, binlog_row_image MINIMAL)",
        f"{proofs.FORMATS}::test_json_differences_arrive",
        f"{proofs.FORMATS}::test_json_differences_become_documents_on_mariadb",
        f"{proofs.FORMATS}::test_json_differences_without_their_documents_are_refused_for_mariadb",
        f"{proofs.ROWS}::test_a_partial_image_skips_one_bit_for_each_json_column_of_the_table",
    ),
    supported(
        "MariaDB's compressed events",
        "unpacked",
        f"{proofs.ROWS}::test_a_compressed_event_becomes_the_plain_one",
        f"{proofs.FORMATS}::test_compressed_transactions_and_events_arrive",
    ),
    refused(
        "MariaDB 12.3's fragments of a rows event (172)",
        "refused by name",
        "UnsupportedEventError",
        f"{proofs.CONFORMANCE}::test_each_refused_type_is_refused_with_its_error",
    ),
    supported(
        "Foreign key cascades that no log has: MariaDB, MySQL up to 9.5",
        "executed by the target's own keys, unless the events' flags turn them off; a key that only one server has is "
        "named where the window has rows of its parent alone, too",
        f"{proofs.FORMATS}::test_cascades_leave_what_they_left_on_the_source",
        "tests/integration/window/rows/test_foreign_keys.py"
        "::test_a_key_that_one_server_lacks_is_named_where_rows_of_the_parent_alone_are_deleted",
    ),
    refused(
        "Rows whose parent the filter leaves out, by a plain foreign key that the target has",
        "named before the window writes the child, if the parent has no row on the target; "
        "refused where rows are inserted whose key cannot be NULL",
        "PrecheckError",
        f"{proofs.FILTERS}::test_a_row_whose_parent_the_filter_leaves_out_is_refused_before_the_first_write",
    ),
    supported(
        "Foreign key cascades that the log has as rows: MySQL 9.6 and newer (USE_SQL_FOREIGN_KEY_F)",
        "each change once: updates and deletions are applied without the target's own keys, insertions stay checked",
        f"{proofs.CASCADES}::test_logged_cascades_happen_once",
        f"{proofs.CASCADES}::test_logged_cascades_happen_once_in_a_divided_shard",
        f"{proofs.CASCADES}::test_rows_that_are_inserted_beside_updates_stay_checked",
    ),
    supported(
        "NO_FOREIGN_KEY_CHECKS and RELAXED_UNIQUE_CHECKS on rows",
        "the events keep their flags",
        f"{proofs.FORMATS}::test_rows_written_without_checks_arrive",
        f"{proofs.REDUCE}::test_the_rows_events_written_are_of_the_version_that_was_read",
    ),
    supported(
        "Tables without primary key, with equal rows and floats",
        "the server finds the rows itself; exactly once because of the position",
        f"{proofs.FORMATS}::test_compressed_transactions_and_events_arrive",
        f"{proofs.SQL_ROWS}::test_statements_have_the_effect_of_the_row_events",
        f"{proofs.REDUCED}::test_each_trap_leaves_the_rows_that_replay_leaves",
    ),
    supported(
        "Columns added or dropped at once (INSTANT)",
        "a DDL like others; rows before and after it are compared with the table's definition at that place",
        f"{proofs.ALTERED}::test_rows_in_front_of_the_ddl_are_compared_before_the_window",
        f"{proofs.ALTERED}::test_a_table_that_a_ddl_makes_another_one_than_the_sources_stops_the_rows_behind_it",
    ),
    supported(
        "DROP TEMPORARY TABLE of sessions that end",
        "harmless: IF EXISTS",
        f"{proofs.DISSECT}::test_drop_temporary_if_exists_passes_as_the_server_writes_it_for_sessions_that_end",
    ),
    supported(
        "Every column type of both servers with its extremes, NULL, zero dates and other character sets",
        "inserted, changed from each value to the next and deleted, by BINLOG and by SQL, replayed and folded; those "
        "that both families have, from each to the other, too",
        f"{proofs.EVERY_TYPE}::test_every_type_arrives_through_a_window_as_it_was",
    ),
    supported(
        "ENUM, SET and long CHAR share a type code",
        "distinguished by metadata",
        f"{proofs.TABLE_MAP}::test_every_column_type_has_its_length",
        f"{proofs.VALUES}::test_every_type_has_the_value_that_the_server_selects",
    ),
    supported(
        "Zero dates, zero months and days, year 0",
        "byte for byte; printed as the server prints them",
        f"{proofs.VALUES}::test_every_type_has_the_value_that_the_server_selects",
    ),
    supported(
        "Negative times with fractions",
        "byte for byte; decoded with the borrow",
        f"{proofs.VALUES}::test_every_type_has_the_value_that_the_server_selects",
    ),
    supported(
        "TIMESTAMP is UTC; 0 is the zero date",
        "byte for byte; statements run with +00:00 or their own zone",
        f"{proofs.SESSION}::test_a_statement_runs_in_its_source_s_session",
        f"{proofs.VALUES}::test_every_type_has_the_value_that_the_server_selects",
    ),
    supported(
        "BINARY without its trailing zeros, CHAR without its spaces",
        "byte for byte",
        f"{proofs.VALUES}::test_every_type_has_the_value_that_the_server_selects",
        f"{proofs.REDUCED}::test_each_trap_leaves_the_rows_that_replay_leaves",
    ),
    supported(
        "Character sets, and bytes that are no text in them",
        "byte for byte; decoding loses nothing",
        f"{proofs.VALUES}::test_every_type_has_the_value_that_the_server_selects",
        f"{proofs.SESSION}::test_a_statement_s_bytes_are_sent_in_the_client_s_character_set",
    ),
    supported(
        "JSON of zero bytes",
        "read as JSON null",
        f"{proofs.FORMER_VALUES}::test_a_document_of_no_bytes_is_null",
    ),
    supported(
        "A geometry of zero bytes, which a server stores where a row has no value for it (LOAD XML .. IGNORE)",
        "written by BINLOG; where statements write rows (SQL writer, a block with drift under overwrite, a first copy) "
        "table and way out are named",
        "tests/integration/window/rows/test_never_by_statements.py::test_rows_without_a_value_for_a_geometry_are_written_by_binlog",
        "tests/integration/window/rows/test_never_by_statements.py::test_the_channel_says_so_and_writes_them_with_binlog",
    ),
    supported(
        "JSON with decimals, times, opaque values, doubles",
        "printed as the server prints them",
        f"{proofs.VALUES}::test_every_type_has_the_value_that_the_server_selects",
        f"{proofs.VALUES}::test_partial_updates_of_json_are_their_diffs",
    ),
    supported(
        "JSON with bytes, bits, TIMESTAMPs, unsigned numbers, written by statements (SQL writer)",
        "each value keeps its type",
        f"{proofs.EVERY_TYPE}::test_every_type_arrives_through_a_window_as_it_was",
        f"{proofs.SQL_ROWS}::test_every_type_arrives_as_it_was",
    ),
    refused(
        "JSON with values that no statement can produce (bytes of MySQL 5.7, a TIMESTAMP out of range at "
        "+00:00), SQL writer",
        "column and seqno are named",
        "PrecheckError",
        f"{proofs.JSON_ROWS}::test_a_plan_knows_what_a_document_asks_for",
        f"{proofs.JSON_ROWS}::test_the_precheck_names_what_statements_cannot_write",
    ),
    supported(
        "JSON with holes after partial updates",
        "read by the offsets",
        f"{proofs.FORMER_VALUES}::test_offsets_are_followed_wherever_they_lead",
    ),
    supported(
        "VECTOR",
        "byte for byte within a family; refused by name for the other family",
        f"{proofs.VALUES}::test_every_type_has_the_value_that_the_server_selects",
        f"{proofs.SQL_ROWS}::test_every_type_arrives_as_it_was",
        f"{proofs.FAMILIES}::test_statements_that_the_other_family_does_not_take_are_named_all_at_once",
    ),
    supported(
        "Fractions of seconds in statements: MySQL rounds, MariaDB cuts",
        "a statement of MySQL runs on MariaDB with TIME_ROUND_FRACTIONAL",
        f"{proofs.FORMATS}::test_fractions_of_statements_are_rounded_as_on_the_source",
    ),
    supported(
        "MariaDB's compressed columns",
        "byte for byte between MariaDB servers; decompressed for MySQL, whose CREATE and ALTER TABLE lose COMPRESSED",
        f"{proofs.VALUES}::test_every_type_has_the_value_that_the_server_selects",
        f"{proofs.SQL_ROWS}::test_every_type_arrives_as_it_was",
        f"{proofs.FAMILIES}::test_compressed_columns_arrive_decompressed",
    ),
    supported(
        "UUID, INET4, INET6",
        "byte for byte between MariaDB servers; refused by name for MySQL",
        f"{proofs.VALUES}::test_every_type_has_the_value_that_the_server_selects",
        f"{proofs.SQL_ROWS}::test_every_type_arrives_as_it_was",
        f"{proofs.FAMILIES}::test_statements_that_the_other_family_does_not_take_are_named_all_at_once",
    ),
    supported(
        "INTVAR, RAND and USER_VAR belong to the next statement",
        "set only for that statement",
        f"{proofs.DISSECT}::test_variables_belong_to_the_next_statement_alone",
        f"{proofs.SESSION}::test_a_statement_runs_in_its_source_s_session",
    ),
    supported(
        "USER_VAR with and without flags, signs and character sets",
        "type and bytes are kept",
        f"{proofs.REAL_LOGS}::test_the_server_reads_every_user_variable_back_to_the_same_bytes",
        f"{proofs.VARIABLES}::test_a_value_becomes_sql_of_the_same_type",
    ),
    supported(
        "LOAD DATA in blocks by file id",
        "streamed to the target; loads may interleave",
        f"{proofs.LOAD_DATA}::test_every_way_to_load_a_file_arrives_byte_for_byte",
    ),
    supported(
        "Status variables of statements",
        "each is set; a statement with an unknown one is refused (UnsupportedEventError)",
        f"{proofs.DISSECT}::test_events_that_cannot_be_applied_are_refused_with_file_and_offset",
        f"{proofs.EVENTS}::test_a_status_variable_reaches_the_session",
        f"{proofs.EVENTS}::test_an_unknown_status_variable_ends_their_reading_and_is_remembered",
    ),
    supported(
        "A statement that ended with an error on the source",
        "the same error is expected on the target",
        f"{proofs.OUTCOMES}::test_errors_and_rollbacks_leave_the_same_rows_on_mariadb",
        f"{proofs.SESSION}::test_an_error_that_the_source_had_is_the_expected_outcome",
    ),
    supported(
        "The time of a statement, with microseconds",
        "set before the statement",
        f"{proofs.EVENTS}::test_the_session_has_the_time_with_microseconds",
        f"{proofs.SESSION}::test_a_statement_runs_in_its_source_s_session",
    ),
    supported(
        "MySQL: NULL for a TIMESTAMP NOT NULL, in a statement of a session with explicit_defaults_for_timestamp = OFF "
        "(logged with definitions of TIMESTAMP columns, not with the statement)",
        "the current time, as on the source, where the target refuses it under ON (1048) and the session's last value "
        "before it, in the same window and file, is OFF; else, in XA transactions and while a temporary table is open, "
        "the lane stops (1048) unless the target's global value is OFF",
        f"{proofs.TIMESTAMP_NULL}::test_a_session_that_has_logged_off_makes_it_the_current_time",
        f"{proofs.TIMESTAMP_NULL}::test_a_session_that_the_log_last_shows_with_on_stops_the_window",
        f"{proofs.TIMESTAMP_NULL}::test_a_session_of_which_nothing_is_logged_is_applied_in_the_way_that_is_said",
        f"{proofs.TIMESTAMP_DEFAULTS}::test_the_last_value_of_a_session_holds_until_another_is_logged",
    ),
    supported(
        "MySQL: such a NULL where the session is not strict and ON stores 0 (INSERT of many rows, INSERT IGNORE, "
        "UPDATE)",
        "the lane stops and names the column, unless the target's global value is OFF (the current time) or "
        "`allow_unsafe` is set (0); what triggers and functions without strict mode store gives no warning and goes by "
        "the target's global value",
        f"{proofs.TIMESTAMP_NULL}::test_a_null_that_a_lax_session_has_stored_either_way_is_named",
        f"{proofs.TIMESTAMP_NULL}::test_other_nulls_of_a_lax_session_are_what_they_are_everywhere",
    ),
    supported(
        "MariaDB to MySQL: NULL for a TIMESTAMP NOT NULL, in statements",
        "the current time, as on the source, whatever explicit_defaults_for_timestamp is: lanes have OFF; a temporary "
        "table of a session with ON gets the NULL and the default that its columns have there",
        f"{proofs.TIMESTAMP_NULL}::test_of_mariadb_it_is_the_current_time_whatever_the_variable_says",
        f"{proofs.TIMESTAMP_NULL}::test_of_mariadb_a_temporary_table_has_the_columns_that_its_definition_means",
    ),
    refused(
        "MySQL to MariaDB: a value that may be NULL for a TIMESTAMP NOT NULL, in a statement of a session without "
        "strict mode, or with IGNORE, whose source has explicit_defaults_for_timestamp = ON",
        "MySQL has stored 0, MariaDB stores the current time: column and seqno are named; not what triggers and "
        "routines give, nor a session whose value is not its server's",
        "PrecheckError",
        f"{proofs.TIMESTAMP_NULL}::test_a_null_that_mysql_has_made_0_is_named_for_mariadb",
        f"{proofs.TIMESTAMP_NULL}::test_what_is_never_null_goes_to_mariadb",
    ),
    supported(
        "Accounts, grants, FLUSH",
        "`#GLOBAL`: serialized, exactly once",
        f"{proofs.STATEMENTS}::test_server_wide_operations_are_global",
        f"{proofs.MIXED}::test_a_mixed_window_makes_both_servers_equal_and_running_it_again_is_a_no_op",
    ),
    supported(
        "A source of the other family",
        "rows of common types are applied; everything that the target cannot accept is named before the window begins",
        f"{proofs.MIXED}::test_rows_of_types_that_both_families_have_go_from_one_to_the_other",
        f"{proofs.MIXED}::test_a_mixed_window_from_family_to_family_makes_both_servers_hold_the_same_rows",
    ),
    supported(
        "JSON from one family to the other",
        "by statements: MariaDB gets MySQL's own text, MySQL parses MariaDB's",
        f"{proofs.FAMILIES}::test_json_is_the_same_value_in_the_other_family",
        f"{proofs.FAMILIES}::test_json_of_mysql_arrives_as_mysql_spells_it",
    ),
    supported(
        "XA, temporary tables and LOAD DATA from one family to the other, and under the SQL writer",
        "as within one family",
        f"{proofs.FAMILY_STATEMENTS}::test_xa_transactions_in_one_window_and_over_two",
        f"{proofs.FAMILY_STATEMENTS}::test_temporary_tables_of_statement_logs",
        f"{proofs.FAMILY_STATEMENTS}::test_files_that_statements_load",
    ),
)
