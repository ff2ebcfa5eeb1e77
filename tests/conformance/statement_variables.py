"""Statements and rows whose effect depends on variables that the log does not hold, or that it holds in part."""

from __future__ import annotations

from typing import Final

from tests.conformance import proofs
from tests.conformance.rows import refused, supported

STATEMENT_VARIABLES: Final = (
    supported(
        "Stored generated columns, and keys over virtual ones or expressions, with DATE_FORMAT(), of rows from "
        "sessions "
        "with any lc_time_names (MySQL)",
        "computed in the locale that the log has with BEGIN, as by a replica; rows of different locales are not "
        "folded "
        "together",
        f"{proofs.LOCALES}::test_rows_are_computed_in_the_locales_of_their_sessions",
        f"{proofs.LOCALES}::test_shares_of_divided_shards_keep_the_locales",
    ),
    refused(
        "The same with MONTHNAME() or DAYNAME(), of which the session decides that opens the table, and under any "
        "locale "
        "but en_US where rows are not written as row events of MySQL, unless `allow_unsafe` is set",
        "named before the window begins",
        "PrecheckError",
        f"{proofs.LOCALES}::test_a_locale_that_decides_when_a_server_opens_the_table_is_named",
        f"{proofs.LOCALES}::test_locales_are_named_where_rows_are_written_in_one",
    ),
    supported(
        "Statements of sessions with a time_zone, lc_time_names, foreign_key_checks, unique_checks, "
        "check_constraint_checks, sql_if_exists, explicit_defaults_for_timestamp, character_set_collations, "
        "default_collation_for_utf8mb4, sql_require_primary_key or system_versioning_insert_history of their own; "
        "with "
        "optimizer_switch, sql_select_limit, alter_algorithm, note_verbosity, system_versioning_asof",
        "the log has the first with each statement; the others change nothing of a logged statement. On a MySQL "
        "target, which has neither, IF EXISTS is added to a DROP of a session with sql_if_exists, and a row of a "
        "session without check_constraint_checks that one of the target's CHECKs refuses stops the lane with the "
        "statement that lets it in",
        f"{proofs.SESSION_VARIABLES}::test_a_session_s_own_value_arrives_or_makes_no_difference",
        f"{proofs.DISSECT}::test_a_drop_of_a_session_that_takes_missing_objects_takes_them_on_mysql",
        f"{proofs.SESSION_ZONES}::test_two_zones_in_one_transaction_are_those_of_their_statements_and_no_row_s",
        f"{proofs.SESSION_VARIABLES}::test_each_variable_has_a_case",
    ),
    refused(
        "RENAME TABLE of a session with sql_if_exists, for a MySQL target",
        "MariaDB leaves out tables that do not exist and renames the others, which no statement of MySQL does",
        "PrecheckError",
        "tests/unit/sql/test_requirements.py::test_a_session_that_leaves_out_what_is_missing_asks_for_that",
    ),
    refused(
        "Statements, programs behind them, and expressions of tables that see a variable which no log holds and "
        "the two "
        "servers do not have alike, unless `allow_unsafe` is set: default_week_format, div_precision_increment, "
        "group_concat_max_len, max_sort_length, block_encryption_mode, default_regex_flags, old_mode, "
        "default_tmp_storage_engine, windowing_use_high_precision, limits of recursion, FULLTEXT settings, "
        "max_allowed_packet without strict modes",
        "named before the window begins, by the servers' global values: the target would do something else, as a "
        "replica "
        "does. A value that a session of the source alone has had is in no log, and is not noticed, as on a replica",
        "PrecheckError",
        f"{proofs.SESSION_VARIABLES}::test_another_value_of_the_source_stops_a_window_that_sees_it",
        f"{proofs.SESSION_VARIABLES}::test_an_expression_behind_a_table_or_a_statement_sees_it_too",
        f"{proofs.SESSION_VARIABLES}::test_a_channel_that_allows_unsafe_statements_takes_the_difference",
        f"{proofs.SESSION_VARIABLES}::test_a_smaller_packet_cuts_nothing_off_in_silence_under_strict_modes",
        f"{proofs.SESSION_VARIABLES}::test_a_week_whose_mode_is_in_the_text_depends_on_nothing",
        "tests/unit/sql/test_session_variables.py::test_a_text_sees_what_decides_about_it",
    ),
    supported(
        "Tables made without ENGINE, ROW_FORMAT or compression where default_storage_engine, "
        "innodb_default_row_format, "
        "innodb_file_per_table, innodb_compression_default or mysql56_temporal_format differ",
        "made as the target's own settings say, as on a replica, and the difference is told: how a table is "
        "stored, not "
        "what it holds",
        f"{proofs.SESSION_VARIABLES}::test_another_value_of_the_source_is_told_where_it_decides_how_tables_are_stored",
    ),
    refused(
        "Statements in the time zone SYSTEM that depend on it, and columns computed of rows without a logged "
        "zone, where "
        "the target's own zone is another one, unless `allow_unsafe` is set",
        "named before the window begins: both servers are asked for the same times; a replica takes its own zone",
        "PrecheckError",
        f"{proofs.SESSION_ZONES}::test_the_zone_system_of_another_machine_is_named",
        f"{proofs.SESSION_ZONES}::test_each_way_to_ask_for_a_time_in_the_zone_system_is_named",
        f"{proofs.SESSION_ZONES}::test_rows_that_the_target_would_compute_in_its_own_zone_system_are_named",
        f"{proofs.SESSION_ZONES}::test_columns_of_rows_without_a_logged_zone_are_computed_in_the_target_s_own",
    ),
    refused(
        "Named time zones, of a session or in CONVERT_TZ() (in statements, programs behind them, and expressions of "
        "tables), that the target has not loaded or has in another edition, unless `allow_unsafe` is set",
        "named before the window begins: both servers are asked for the same times; CONVERT_TZ() would be NULL or "
        "another time, without an error, as on a replica. Of an archive, names that the target does not know",
        "PrecheckError",
        f"{proofs.SESSION_ZONES}::test_a_zone_that_the_target_has_not_loaded_or_has_in_another_edition_is_named",
        f"{proofs.SESSION_ZONES}::test_a_generated_column_that_converts_to_another_edition_of_a_zone_is_named",
        f"{proofs.SESSION_ZONES}::test_zones_that_the_target_has_like_the_source_or_no_text_names_stop_nothing",
    ),
    supported(
        "Statements with MATCH .. AGAINST on rows of the transactions before them (InnoDB)",
        "the transactions before are committed first: a FULLTEXT index has no row of a transaction before it commits",
        f"{proofs.SESSION_VARIABLES}::test_a_fulltext_index_is_asked_when_the_rows_before_are_committed",
    ),
    refused(
        "The same in the body of a routine, view or trigger behind a statement, where blocks hold several "
        "transactions, unless `allow_unsafe` is set",
        "named before the window begins",
        "PrecheckError",
        f"{proofs.SESSION_VARIABLES}::test_a_fulltext_index_behind_a_trigger_is_named",
    ),
)
