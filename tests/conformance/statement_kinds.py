"""Statements by kind: what is executed, how, and what is not."""

from __future__ import annotations

from typing import Final

from tests.conformance import proofs
from tests.conformance.rows import Row, refused, supported
from tests.conformance.statement_programs import REPLACED_PROGRAMS

_UNSUPPORTED: Final = "UnsupportedEventError"
_ROW_ORDER: Final = (
    "tests/integration/window/rows/test_row_order.py::test_what_no_log_tells_is_refused_by_name_before_the_first_write"
)
_NOT_APPLIED: Final = f"{proofs.DISSECT}::test_events_that_cannot_be_applied_are_refused_with_file_and_offset"
_PROGRAMS: Final = "tests/integration/window/statements/test_stored_programs.py"
_FIRED: Final = "tests/integration/window/statements/test_fired_triggers.py"

STATEMENT_KINDS: Final[tuple[Row, ...]] = (
    supported(
        "INSERT, UPDATE, DELETE, REPLACE in statement format",
        "executed in their session",
        f"{proofs.SESSION}::test_a_statement_runs_in_its_source_s_session",
        f"{proofs.SESSION}::test_a_statements_session_variables_do_not_affect_the_next_statement",
    ),
    refused(
        "Statements that no server logs: SELECT ... INTO OUTFILE, SET GLOBAL, CHANGE MASTER, INSTALL PLUGIN, SHUTDOWN, "
        "KILL, EXECUTE IMMEDIATE, CREATE SERVER ...; definitions and changes of the server's own tables (mysql.*)",
        "refused by name; filter.allow_statements allows them by kind",
        _UNSUPPORTED,
        "tests/unit/sql/test_logged_kinds.py::test_a_statement_that_no_server_logs_is_refused_with_its_position_and_the_option_that_allows_it",
        "tests/integration/window/statements/test_logged_kinds.py::test_servers_log_the_kinds_of_the_list_and_no_others",
    ),
    refused(
        "Statements that name the source's own schema binlane together with other databases",
        "refused by name; statements that name only this schema are left out and counted",
        _UNSUPPORTED,
        "tests/unit/plan/transaction/test_own_schema.py::test_a_statement_over_it_and_another_is_refused_with_its_place",
        "tests/integration/window/servers/test_chains.py::test_a_statement_over_the_state_and_other_databases_is_refused",
    ),
    supported(
        "Statements on MariaDB's mysql.gtid_slave_pos alone, where each server keeps its own place as a replica",
        "left out and counted",
        "tests/unit/plan/transaction/test_replica_state.py::test_a_statement_on_these_tables_alone_is_left_out",
        "tests/integration/window/statements/test_logged_kinds.py"
        "::test_what_alters_a_mariadb_server_s_own_place_as_a_replica_is_left_out_and_counted",
    ),
    supported(
        "DDL",
        "exactly once, by the target's GTID and on MariaDB by the definitions before it, too; alone in its block",
        f"{proofs.DDL}::test_a_ddl_happens_once_through_a_crash",
        f"{proofs.DDL}::test_a_swap_of_equal_tables_happens_once_through_a_crash",
        f"{proofs.DDL_KILLED}::test_a_ddl_that_mariadb_s_recovery_has_finished_is_not_run_again",
        f"{proofs.DDL_KILLED}::test_a_ddl_that_mariadb_has_logged_and_lost_runs_again",
        "tests/chaos/test_killed_in_ddl.py::test_kill_9_of_the_target_at_a_file_operation_of_a_ddl",
    ),
    supported(
        "ALTER EVENT without DEFINER, GRANT ... TO CURRENT_USER(), MariaDB's CURRENT_ROLE and CREATE ROLE",
        "applied with the account or role that ran them on the source, from Q_INVOKER",
        f"{proofs.INVOKER}::test_definitions_and_grants_belong_to_who_made_them_on_the_source",
        f"{proofs.INVOKER}::test_the_source_s_role_is_not_the_role_of_the_applying_account",
    ),
    refused(
        "The same, if the log does not contain the account (MariaDB: GRANT role TO CURRENT_USER() or CURRENT_ROLE)",
        "refused by name",
        _UNSUPPORTED,
        "tests/unit/sql/test_invoker.py::test_an_account_that_the_log_does_not_tell_is_refused",
    ),
    supported(
        "CREATE TABLE ... SELECT, in rows or as a statement",
        "the DDL runs once; logged rows are written together with the position",
        f"{proofs.REAL_LOGS}::test_transactions_end_as_the_workload_ended_them",
        f"{proofs.DISSECT}::test_a_table_that_rows_fill_is_made_without_mysql_s_clause_for_it",
        f"{proofs.WRITERS}::test_a_ddl_and_the_rows_that_fill_its_table_share_a_block",
        f"{proofs.DEFINITIONS}::test_all_that_can_be_defined_is_the_same_on_the_target",
    ),
    supported(
        "Routines, triggers, events and views with definers, quotes, comments, other character sets and sql_modes",
        "SHOW CREATE and the results of calls are the same on both servers, for rows and for statements",
        f"{proofs.DEFINITIONS}::test_all_that_can_be_defined_is_the_same_on_the_target",
    ),
    refused(
        "A function without DETERMINISTIC, for a target with log_bin_trust_function_creators = OFF",
        "named before the window begins, instead of error 1418 within it",
        "PrecheckError",
        f"{proofs.DEFINITIONS}::test_a_function_that_the_target_would_not_make_is_named_before_anything_is_written",
    ),
    refused(
        "A trigger or function, for an account without SUPER of a target with log_bin_trust_function_creators = OFF",
        "named before the window begins, instead of error 1419 within it",
        "PrecheckError",
        f"{proofs.DEFINITIONS}"
        "::test_a_trigger_that_the_target_would_not_let_the_account_make_is_named_before_anything_is_written",
    ),
    refused(
        "Definitions that a server logs in two character sets at once, or with escapes that their sql_mode does not "
        "have: names and comments of the dictionary in a statement of a client that is not UTF-8; tables LIKE a "
        "temporary one and MySQL's CREATE USER, ALTER USER and SET PASSWORD are whole such texts",
        "the servers' own replicas misread them; refused by name, with what to do",
        "UnsupportedEventError",
        f"{proofs.SPELLING}::test_two_character_sets_in_one_statement_are_named",
        f"{proofs.SPELLING}::test_escapes_that_the_sql_mode_does_not_have_are_named",
        f"{proofs.DISSECT}::test_a_statement_in_two_character_sets_is_refused_before_anything_is_written",
    ),
    refused(
        "A password or a default role with a quote or other characters than a hash has, in SET PASSWORD and SET "
        "DEFAULT ROLE as MariaDB writes them, without escapes; a GRANT as MySQL writes it with a comment, which a "
        "column's name has begun",
        "whoever has any account of the source could write SQL there: refused by name, with what to do; left out where "
        "the channel ignores statements about accounts",
        "UnsupportedEventError",
        f"{proofs.DISSECT}::test_what_an_account_s_owner_has_chosen_is_no_sql",
        f"{proofs.DISSECT}::test_a_grant_of_mysql_that_a_column_s_name_ends_is_refused",
        "tests/security/test_composed_accounts.py::test_a_password_is_no_sql_of_its_owner_s",
        "tests/security/test_composed_accounts.py::test_every_rightful_password_and_role_reaches_the_target",
        "tests/unit/sql/parse/test_account_statements.py::test_nothing_stands_behind_a_statement_about_an_account",
    ),
    refused(
        "Syntax, functions, types, engines and collations that are newer than the target or foreign to it",
        "the target's own parser is asked about each statement, without running it, before the first write",
        "PrecheckError",
        "tests/integration/precheck/test_parser.py::test_a_prepared_statement_is_never_executed",
        "tests/integration/precheck/test_parser.py"
        "::test_each_family_refuses_what_it_does_not_know_and_nothing_that_its_objects_decide",
        "tests/integration/window/statements/test_judged.py"
        "::test_statements_that_the_targets_parser_refuses_stop_the_window_before_its_first_write",
    ),
    refused(
        "GRANT and REVOKE of privileges that the target's account does not hold or may not grant, on columns and "
        "routines too; roles of another administrator, PROXY, SET DEFAULT ROLE, tablespaces, resource groups",
        "named before the window begins, with the GRANT statement that is needed",
        "PrecheckError",
        "tests/integration/precheck/test_grants.py::test_the_check_of_grants_agrees_with_the_server",
        "tests/integration/precheck/test_grants.py::test_the_check_of_proxy_grants_agrees_with_the_server",
        "tests/integration/precheck/test_grants.py::test_a_role_is_its_administrator_s_to_grant_whoever_makes_it",
        "tests/integration/precheck/test_grants.py"
        "::test_the_creator_of_a_routine_needs_only_the_grant_option_to_grant_it",
        "tests/integration/window/statements/test_invoker.py"
        "::test_privileges_that_the_account_cannot_grant_stop_the_window_before_its_first_write",
        "tests/integration/precheck/test_grants.py"
        "::test_a_function_of_a_powerful_account_is_not_dropped_by_its_bare_name_either",
        "tests/integration/window/statements/test_judged.py"
        "::test_missing_privileges_and_settings_of_the_target_stop_the_window_before_its_first_write",
    ),
    refused(
        "Tables that settings of the target would refuse or alter (innodb_force_primary_key, "
        "enforce_storage_engine, disabled_storage_engines, default_storage_engine, innodb_read_only_compressed, "
        "innodb_strict_mode)",
        "named before the window begins, with the setting to change",
        "PrecheckError",
        "tests/integration/precheck/test_engines.py::test_the_check_of_table_settings_agrees_with_the_server",
    ),
    supported(
        "CREATE TABLE without a key on a target with sql_generate_invisible_primary_key",
        "the lanes switch the setting off: a source that creates such keys logs them",
        "tests/integration/window/statements/test_judged.py"
        "::test_a_target_that_gives_tables_an_invisible_key_gives_none_to_those_of_the_window",
    ),
    refused(
        "A table whose definition after the window's own DDL differs on the target from the one with which the "
        "following rows were written",
        "within the window, at the DDL's barrier, because only running the DDL shows its result: everything "
        "before the rows is applied, none of the rows, and the watermark does not move",
        "TableMismatchError",
        "tests/integration/window/ddl/test_altered_tables.py"
        "::test_a_table_that_a_ddl_makes_another_one_than_the_sources_stops_the_rows_behind_it",
    ),
    refused(
        "Triggers that the window creates on a table before rows of it that are written by statements (SQL writer)",
        "named before the window begins; apply.allow_triggers lets them fire",
        "PrecheckError",
        "tests/integration/window/statements/test_judged.py"
        "::test_a_trigger_that_would_fire_for_rows_of_the_same_window_is_named_before_its_first_write",
    ),
    refused(
        "CREATE FUNCTION .. SONAME of a library that the target is not known to have, or of another function's name",
        "named before the window begins; an identical function on the target is left as it is",
        "PrecheckError",
        "tests/integration/precheck/test_statements.py::test_a_library_is_known_by_the_functions_that_the_target_has_of_it",
        "tests/integration/window/statements/test_judged.py"
        "::test_a_loadable_function_waits_for_its_library_and_is_left_where_it_was_made_by_hand",
    ),
    refused(
        "A function of a library, plugin or component that the target does not have, in a statement or behind it",
        "named before the window begins, instead of error 1305 within it",
        "PrecheckError",
        "tests/integration/window/statements/test_keys_and_libraries.py"
        "::test_a_function_of_a_component_is_asked_for_wherever_a_statement_reaches_it",
    ),
    refused(
        "Tables, databases and tablespaces that are encrypted, and the target does not have the key",
        "named before the window begins, instead of error 3185 or 1005 within it",
        "PrecheckError",
        "tests/integration/window/statements/test_keys_and_libraries.py::test_a_database_that_encrypts_needs_a_keyring",
        "tests/integration/window/statements/test_keys_and_libraries.py"
        "::test_encrypted_tables_are_refused_by_a_target_without_keys",
    ),
    refused(
        "Definitions with a definer that the target's account may not set (SET USER, SET_ANY_DEFINER, SYSTEM_USER, "
        "ALLOW_NONEXISTENT_DEFINER); accounts and objects that it may not change",
        "named before the window begins, with the GRANT statement that is needed, instead of error 1227 within it",
        "PrecheckError",
        "tests/integration/precheck/test_definers.py::test_each_missing_privilege_of_a_definer_is_named_and_each_sufficient_one_accepted",
        f"{proofs.DEFINITIONS}"
        "::test_a_trigger_that_the_target_would_not_let_the_account_make_is_named_before_anything_is_written",
    ),
    refused(
        "INSERT, UPDATE, DELETE and LOAD DATA with IGNORE, of a table whose CHECKs or foreign keys one server alone "
        "has; upserts and others that meet a unique key, over an expression, too, that one server alone has",
        "named before the window begins: other rows would be left out, or met",
        "PrecheckError",
        "tests/integration/window/statements/test_ignored_errors.py::test_what_decides_which_rows_ignore_leaves_out_is_named_where_one_server_has_it_alone",
        "tests/integration/window/statements/test_ignored_errors.py::test_a_unique_key_over_an_expression_that_the_target_lacks_is_named_where_statements_meet_it",
    ),
    refused(
        "Statements that count, read or meet rows (INSERT .. SELECT, upserts, IGNORE, LIMIT, joins), where "
        "[filter.kinds] ignores what removes rows",
        "named before the window begins: they would find rows that the source does not have",
        "PrecheckError",
        f"{proofs.FILTERS}::test_a_statement_that_meets_rows_which_the_filter_keeps_is_refused",
    ),
    refused(
        "A partition that is emptied, dropped, moved, read or changed by its name (TRUNCATE PARTITION, DELETE FROM t "
        "PARTITION (p)), of a table that the target divides in another way: also by KEY over a DATE between the "
        "families, and by KEY or COLUMNS over a text of another collation",
        "named before the window begins: a partition of that name has other rows there; rows of the log find theirs in "
        "any partition",
        "PrecheckError",
        "tests/integration/window/ddl/test_partitions.py::test_partitions_of_other_rows_on_the_target_are_named_before_one_is_emptied",
        "tests/integration/window/ddl/test_partitions.py::test_partitions_have_the_same_rows_in_both_families_but_for_the_hash_of_a_date",
    ),
    supported(
        "Partitions exchanged, split, truncated and dropped; CHECKs, invisible columns and keys, functional and "
        "multi-valued keys, generated invisible primary keys, INSTANT columns; sequences, system versioning, periods",
        "SHOW CREATE, the rows and their history are the same on both servers, logged as rows and MIXED",
        "tests/integration/window/ddl/test_whole_server.py::test_all_that_statements_define_is_the_same_on_the_target",
        "tests/integration/window/ddl/test_partitions.py::test_partitions_that_come_and_go_each_month_are_applied",
    ),
    supported(
        "Accounts, roles and default roles: created, changed, renamed, locked, dropped; grants and revokes of "
        "databases, tables, columns, routines, roles",
        "the grant tables are the same on both servers",
        "tests/integration/window/ddl/test_whole_server.py::test_all_that_statements_define_is_the_same_on_the_target",
    ),
    supported(
        "Statements of a session whose default database is gone, or left out by the filter",
        "executed if every name is qualified",
        f"{proofs.OUTCOMES}::test_a_default_database_that_is_gone_or_left_out_is_none_where_every_name_is_whole",
    ),
    refused(
        "GRANT on a table, view or routine that the target does not have and the window does not make",
        "named before the window begins",
        "PrecheckError",
        "tests/unit/precheck/test_granted_objects.py::test_a_grant_needs_its_table_view_or_routine",
        "tests/integration/window/servers/test_filters.py::"
        "test_a_grant_on_a_view_that_the_target_lacks_is_named_before_the_window",
    ),
    refused(
        "DATABASE(), or a CALL, in a default database that the filter leaves out and the target does not have",
        "named before the window begins; the database may stay empty on the target",
        "PrecheckError",
        f"{proofs.OUTCOMES}::"
        "test_a_statement_that_asks_for_a_default_database_that_is_left_out_is_named_before_the_window",
    ),
    supported(
        "CREATE and ALTER EVENT",
        "executed with DISABLE ON SLAVE, or DISABLE if it says so: events run on the source alone",
        f"{proofs.SESSION}::test_an_event_statement_is_disabled_on_the_target",
        f"{proofs.SESSION}::test_the_server_shows_replicated_events_as_disabled",
    ),
    supported(
        "Statements of MariaDB that name a view, a routine or a table with triggers",
        "`#UNKNOWN`: serialized, because the log does not list what they touch",
        f"{proofs.EVENT_FILTER}::test_a_mariadb_statement_is_placed_by_its_text_or_not_at_all",
    ),
    refused(
        "A statement that binlane does not read to its end",
        "refused by name, with the word at which reading stopped; filter.allow_statements takes such statements by the "
        "name UNREAD in a channel without rules for databases, tables, kinds and names",
        _UNSUPPORTED,
        "tests/security/test_unread_texts.py::test_no_text_is_sent_that_is_not_read",
        "tests/security/test_unread_texts.py::test_the_refusal_says_where_reading_stopped_and_what_to_do",
        "tests/security/test_unread_texts.py::test_a_channel_that_promises_nothing_takes_them_by_name",
    ),
    supported(
        "Grammar of the servers' own: IF(VALUES(a) > a, ..), CAST(a AS UNSIGNED INT), GROUP BY a DESC, CREATE TABLE .. "
        "TABLE t, JSON DUALITY VIEW, MariaDB's IGNORE as a value, INET6, ROWS EXAMINED and CYCLE",
        "read by readers of their clauses",
        "tests/unit/sql/parse/test_statements.py::test_what_the_servers_take_and_sqlglot_does_not_is_read",
        "tests/unit/sql/parse/test_statements.py::test_what_mariadb_alone_takes_is_read",
        "tests/unit/sql/parse/test_statements.py::test_views_of_documents_are_read",
        "tests/unit/sql/parse/test_statements.py::test_a_name_that_is_a_word_of_a_clause_hides_no_table",
    ),
    supported(
        "LOAD DATA",
        "LOAD DATA LOCAL, its file streamed from the lane file; a row that the target would skip stops the window",
        f"{proofs.LOAD_DATA}::test_every_way_to_load_a_file_arrives_byte_for_byte",
        f"{proofs.LOAD_DATA}::test_a_row_that_the_target_would_skip_is_an_error_and_nothing_is_written",
    ),
    supported(
        "LOAD DATA of a session with NO_BACKSLASH_ESCAPES, or of a client that is not UTF-8",
        "the same rows; the servers' own replicas misread separators and values, or stop with 1083; refused like other "
        "definitions in two character sets if the log does not tell enough",
        f"{proofs.LOAD_DATA}::test_a_session_without_backslash_escapes_loads_the_same_rows",
        f"{proofs.LOAD_DATA}::test_values_of_a_session_in_another_character_set_arrive",
    ),
    supported(
        "LOAD DATA into a table without transactions whose trigger changes one with them: MySQL without GTIDs logs the "
        "file in an earlier transaction than the statement",
        "the statement loads its file; no segment and no window ends between the two",
        f"{proofs.MIXED_LOADS}::test_files_and_their_statements_in_transactions_of_their_own_arrive",
        f"{proofs.MIXED_LOADS}::test_a_stop_between_a_file_and_its_statement_goes_on_with_the_file",
    ),
    refused(
        "LOAD DATA whose statement is not logged yet at the log's end, but its file is",
        "the window ends before the file; one that would hold nothing else says so",
        "WindowOpenError",
        f"{proofs.MIXED_LOADS}::test_a_window_ends_before_a_file_whose_statement_is_not_logged",
    ),
    refused(
        "LOAD DATA whose file is in another file of the log than its statement, a whole segment before it, or outside "
        "the statement's XA transaction",
        "refused by name",
        _UNSUPPORTED,
        f"{proofs.MIXED_LOADS}::test_a_statement_in_another_file_of_the_log_is_refused_before_anything_is_written",
        "tests/unit/plan/transaction/test_load_data.py::test_a_file_without_its_statement_in_the_segment_is_refused",
    ),
    refused(
        "LOAD XML, which servers log as LOAD DATA",
        "refused by name",
        _UNSUPPORTED,
        f"{proofs.LOAD_DATA}::test_load_xml_which_servers_log_as_load_data_is_refused",
    ),
    refused(
        "Changes of a database that is READ ONLY on the target (ALTER SCHEMA .. READ ONLY = 1, MySQL)",
        "named before the window begins, with what to do; the option binds every session but the server's own replica "
        "threads, whatever it sends, and lifting it for a while would let every session write",
        "PrecheckError",
        "tests/integration/window/statements/test_judged.py::test_no_session_writes_a_read_only_database_whatever_it_sends",
        "tests/integration/window/statements/test_judged.py"
        "::test_every_change_of_a_database_that_the_log_makes_read_only_is_named",
        "tests/integration/window/statements/test_judged.py::test_a_database_that_is_read_only_is_named_before_anything_is_written",
        "tests/integration/window/statements/test_judged.py::test_a_database_that_was_read_only_for_a_while_is_applied",
    ),
    supported(
        "Stored generated columns, and keys over virtual ones or expressions, of rows from sessions with "
        "TIME_TRUNCATE_FRACTIONAL or another sql_mode that changes values (MySQL)",
        "computed in each session's mode, as by a replica; rows of different modes are not folded together",
        f"{proofs.GENERATED}::test_rows_are_computed_in_the_modes_of_their_sessions",
        f"{proofs.GENERATED}::test_a_row_is_found_by_what_its_session_has_computed",
        f"{proofs.GENERATED}::test_a_mode_that_the_target_has_as_well_is_not_that_of_all_sessions",
        f"{proofs.GENERATED}::test_prepared_rows_are_computed_in_the_mode_of_their_own_window",
        f"{proofs.GENERATED}::test_a_sessions_mode_decides_nothing_of_virtual_columns_without_a_key",
    ),
    refused(
        "The same under NO_UNSIGNED_SUBTRACTION, and under any such mode where rows are not written as row events of "
        'MySQL: the SQL writer, writers of a site, `on_conflict = "overwrite"`, MySQL to MariaDB',
        "named before the window begins: the target computes in one mode",
        "PrecheckError",
        f"{proofs.GENERATED}::test_what_a_server_decides_when_it_opens_the_table_is_named",
        f"{proofs.GENERATED}::test_modes_are_named_where_rows_are_written_in_one",
        f"{proofs.GENERATED}::test_modes_are_named_where_the_target_is_of_the_other_family",
    ),
    supported(
        "Stored generated columns, and keys over virtual ones or expressions, that read a TIMESTAMP, of rows from "
        "sessions with any time zone (MySQL)",
        "computed in the zone that the log has with BEGIN, as by a replica, else in the target's; MariaDB's row events "
        "have the values",
        f"{proofs.GENERATED}::test_rows_are_computed_in_the_time_zones_of_their_sessions",
    ),
    refused(
        "The same where BEGIN has no time zone and others have one of their own, and where rows are written as "
        "statements or for the other family, unless `allow_unsafe` is set",
        "named before the window begins: the target computes in one time zone",
        "PrecheckError",
        f"{proofs.GENERATED}::test_a_transaction_without_a_time_zone_is_named_where_others_have_one_of_their_own",
        f"{proofs.GENERATED}::test_time_zones_are_named_where_the_target_computes_in_one",
    ),
    supported(
        "Triggers that fire where a foreign key cascades (enable_cascade_triggers, MySQL 9.7) of a logged statement",
        "fire where they did on the source, whatever the target's setting is; a target without them is named",
        "tests/integration/window/rows/test_cascades.py"
        "::test_triggers_fire_on_cascades_of_statements_where_they_have_on_the_source",
        "tests/integration/window/rows/test_cascades.py::test_triggers_on_cascades_are_named_where_the_target_has_none",
    ),
    supported(
        "Triggers that logged statements fire, also behind views, functions and other triggers",
        "fire on the target as on the source, where both servers have them alike; what the log makes, drops and "
        "renames meanwhile is followed",
        f"{_FIRED}::test_triggers_that_are_alike_and_those_of_the_log_fire_on_both",
        f"{_FIRED}::test_triggers_that_the_source_has_made_and_dropped_behind_the_window_are_not_missed",
        f"{_FIRED}::test_triggers_of_the_other_family_and_of_renamed_databases_are_the_same",
        f"{_FIRED}::test_triggers_that_no_statement_fires_are_nobody_s_concern",
    ),
    refused(
        "The same where only one server has the trigger, or another body, sql_mode, collation, order, or, where it "
        "decides something, definer; or where the account may "
        "not see it on the source, or not read what stands in front of it",
        "named before the window begins, with the statement that fires it, unless `allow_unsafe` is set; an archive "
        "tells of no trigger",
        "PrecheckError",
        f"{_FIRED}::test_triggers_that_only_one_server_has_are_named",
        f"{_FIRED}::test_what_the_window_defines_hides_no_trigger_of_one_server",
        f"{_FIRED}::test_triggers_behind_a_query_that_makes_a_table_are_named",
        f"{_FIRED}::test_triggers_that_fire_on_cascades_and_behind_texts_that_nobody_reads_are_named",
        f"{_FIRED}::test_triggers_that_the_source_s_account_does_not_see_are_asked_for",
        f"{_PROGRAMS}::test_programs_that_do_something_else_on_the_target_are_named",
    ),
    supported(
        "Routines that logged statements call and views that they read or write through, also behind triggers, views "
        "and other routines",
        "do on the target what they did on the source, where both servers have them alike, whatever their comments, "
        "blanks and, where nobody asks for them, definers; what the log makes, drops and renames meanwhile is followed",
        f"{_PROGRAMS}::test_programs_that_are_alike_and_those_of_the_log_do_the_same_on_both",
        f"{_PROGRAMS}::test_programs_that_the_source_has_changed_behind_the_window_are_not_missed",
        f"{_PROGRAMS}::test_programs_of_other_versions_and_families_and_of_renamed_databases_are_the_same",
        f"{_PROGRAMS}::test_what_changes_no_row_is_nobody_s_concern",
        "tests/integration/window/statements/test_replaced_programs.py::test_programs_that_the_log_replaces_before_their_use_do_the_same",
    ),
    *REPLACED_PROGRAMS,
    refused(
        "The same where only one server has the routine or view, or another body, query, parameters, returned type, "
        "sql_mode, collation, DETERMINISTIC, CHECK OPTION, ALGORITHM or, where it decides something, definer; or where "
        "an account may not read it",
        "named before the window begins, with the statement that reaches it, unless `allow_unsafe` is set; an archive "
        "tells of none",
        "PrecheckError",
        f"{_PROGRAMS}::test_programs_that_do_something_else_on_the_target_are_named",
        f"{_PROGRAMS}::test_what_the_window_defines_hides_no_program_of_one_server",
        f"{_PROGRAMS}::test_texts_that_an_account_may_not_read_are_asked_for_where_statements_need_them",
        f"{_PROGRAMS}::test_what_the_source_s_account_does_not_see_is_asked_for",
    ),
    supported(
        "Options of tables, columns and keys that the target does not know (MariaDB)",
        "kept as text, as replicas keep them",
        "tests/integration/apply/test_ddl.py::test_an_option_that_mariadb_does_not_know_is_kept_as_its_replicas_keep_it",
    ),
    supported(
        "MariaDB's two-phase ALTER",
        "executed once, at the place of its commit",
        f"{proofs.OUTCOMES}::test_an_alter_in_two_phases_is_done_once_and_one_taken_back_is_not_done",
    ),
    refused(
        "Statements that change rows by what MySQL and MariaDB answer otherwise, from one family to the other: "
        "division, JSON documents, regular expressions, geometry, TIME_TO_SEC(), TIMEDIFF() and the like",
        "refused unless `allow_unsafe` is set, also behind routines, triggers and views; rows are applied",
        "PrecheckError",
        "tests/integration/window/statements/test_family_statements.py::"
        "test_statements_that_the_families_answer_otherwise_are_named_all_at_once",
        "tests/trials/test_other_answers.py::test_what_the_families_answer_otherwise_is_named",
        "tests/unit/sql/parse/test_other_answers.py::test_what_they_answer_otherwise_is_named",
    ),
    refused(
        "Generated columns that MySQL and MariaDB compute otherwise, from one family to the other (STORED ones of a "
        "MySQL source only where statements write the rows: BINLOG statements bring their values to MariaDB)",
        "refused unless `allow_unsafe` is set",
        "PrecheckError",
        "tests/integration/window/statements/test_family_statements.py::"
        "test_columns_that_the_families_compute_otherwise_are_named",
    ),
    refused(
        "ALTER TABLE that changes a column's type in a way that MySQL and MariaDB convert otherwise (DATETIME to DATE, "
        "VARCHAR to INT ...), from one family to the other",
        "refused unless `allow_unsafe` is set: each server converts the rows that it has",
        "PrecheckError",
        "tests/integration/window/statements/test_family_statements.py::"
        "test_columns_that_the_families_convert_otherwise_are_named",
        "tests/trials/test_other_answers.py::test_conversions_that_the_families_make_otherwise_are_named",
    ),
    refused(
        "UUID(), SLEEP(), @@server_id, FOUND_ROWS(), LIMIT without ORDER BY in a query and the like",
        "refused unless `allow_unsafe` is set (functions that wait for a replica's GTIDs or positions: always), also "
        "behind routines, triggers, views and defaults of columns",
        "PrecheckError",
        f"{proofs.OUTCOMES}::test_an_unsafe_statement_stops_the_window_unless_the_channel_allows_it",
        f"{proofs.UNSAFE}::test_unsafe_parts_of_statements_are_named",
        _ROW_ORDER,
    ),
    refused(
        "Statements whose result depends on the order of rows: LIMIT, IGNORE, REPLACE, AUTO_INCREMENT, variables and "
        "RAND() in turn, window functions, GROUP_CONCAT(), columns beside GROUP BY, one of several equal values, an "
        "UPDATE by a join; triggers and functions whose rows meet on a key, leave no sums, catch errors, or read, "
        "change or delete what rows before them have inserted or changed",
        "applied where a key of their tables settles the order, else refused unless `allow_unsafe` is set; by the way "
        "in which both servers read a table only where the source can be asked",
        "PrecheckError",
        _ROW_ORDER,
        "tests/integration/window/rows/test_row_order.py::test_what_a_key_or_the_text_settles_is_applied_as_it_is",
    ),
    refused(
        "Statements that take several numbers of AUTO_INCREMENT columns (statement format), of which the log has the "
        "first: for the rows of a query or file where `innodb_autoinc_lock_mode` is 2 or an archive does not tell, "
        "behind triggers and functions, and behind a higher number that a row gives",
        "applied where one number is taken, or all at once or under a lock, else refused unless `allow_unsafe` is set",
        "PrecheckError",
        "tests/integration/window/rows/test_numbers_between.py::test_numbers_behind_statements_are_named",
        "tests/integration/window/rows/test_numbers_between.py::test_numbers_that_follow_from_the_log_are_applied",
    ),
    refused(
        "UPDATE and ON DUPLICATE KEY UPDATE of a JSON column in a log of statements, between MariaDB and MySQL, which "
        "keeps a document that it takes for equal (1 and 1.0) and has read; also through views and behind routines and "
        "triggers",
        "applied where the document has no number, else refused unless `allow_unsafe` is set; INSERT, REPLACE and rows "
        "are applied",
        "PrecheckError",
        "tests/integration/window/rows/test_equal_documents.py::test_a_logged_update_to_a_document_with_numbers_is_named",
        "tests/integration/window/rows/test_equal_documents.py::test_a_logged_update_that_mysql_has_left_out_may_not_reach_mariadb",
        "tests/integration/window/rows/test_equal_documents.py::test_logged_statements_that_leave_the_document_are_applied",
        "tests/integration/window/rows/test_equal_documents.py::test_what_a_table_lets_mysql_read_counts_as_read",
    ),
    supported(
        "The same between two MySQL servers, where the target's log has rows: for them it would read every column",
        "with `binlog_row_image = MINIMAL` the target reads what the source has read; refused for a table without a "
        "primary key and behind routines and triggers, unless `allow_unsafe` is set",
        "tests/integration/window/rows/test_equal_documents.py::test_a_logged_update_between_two_mysql_servers_leaves_the_source_s_document",
        "tests/integration/window/rows/test_equal_documents.py::test_a_logged_update_for_which_a_mysql_target_reads_all_columns_is_named",
    ),
    refused(
        "Statements, bodies behind them and computed columns that MariaDB servers of two series answer otherwise: JSON "
        "paths with an index from the end or a range (10.9), Unix times behind 2038 (11.5), an IPv4 address for an "
        "INET6 and DATE_FORMAT() with a time zone (11.3)",
        "refused unless `allow_unsafe` is set, where a literal shows it; rows are applied",
        "PrecheckError",
        "tests/integration/window/servers/test_other_versions.py::test_what_another_series_answers_otherwise_is_named",
        "tests/integration/window/servers/test_other_versions.py::test_what_every_series_answers_alike_is_applied",
    ),
    refused(
        "Statements, bodies behind them and computed columns that two versions of MySQL answer otherwise: JSON texts "
        "with a key twice (8.0.3), geometry with an SRID (8.0), REGEXP (8.0.4), bit operations of binary columns "
        "(8.0.1), times with an offset (8.0.19), Unix times behind 2038 (8.0.28)",
        "refused unless `allow_unsafe` is set; rows are applied",
        "PrecheckError",
        "tests/unit/precheck/test_checks.py::test_what_an_older_mysql_has_answered_otherwise_is_named",
    ),
    refused(
        "A column that ALTER TABLE adds with UUID(), RAND(), NEXTVAL() and the like as its default (MariaDB, and MySQL "
        "with `binlog_format = STATEMENT`)",
        "refused unless `allow_unsafe` is set: each server fills the rows there are with other values; on a MySQL "
        "target with a binary log always, which refuses the statement itself (1674)",
        "PrecheckError",
        f"{proofs.OUTCOMES}::test_a_new_column_whose_default_differs_from_server_to_server_stops_the_window",
        f"{proofs.OUTCOMES}::test_a_new_column_that_a_mysql_target_refuses_is_named_whatever_the_channel_allows",
    ),
    refused(
        "A statement that commits implicitly in the middle of a transaction",
        "refused by name",
        _UNSUPPORTED,
        _NOT_APPLIED,
    ),
    refused(
        "Features that the other family lacks: types, sequences, versioning, plugins ...",
        "all are named at once, before the window begins",
        "PrecheckError",
        f"{proofs.FAMILIES}::test_statements_that_the_other_family_does_not_take_are_named_all_at_once",
        f"{proofs.FAMILIES}::test_json_for_a_column_that_is_none_is_named",
    ),
    supported(
        "Foreign keys to keys that are not unique, onto MySQL 8.4 and later",
        "made and altered whatever restrict_fk_on_non_standard_key is on the target",
        "tests/integration/window/rows/test_foreign_keys.py"
        "::test_a_window_makes_and_changes_tables_with_a_foreign_key_to_a_key_that_is_not_unique",
    ),
    refused(
        "A source that leaves changes out of its log: binlog_do_db, binlog_ignore_db, a replica with "
        "log_slave_updates OFF",
        "named when the log is opened, with the setting to change",
        "PrecheckError",
        "tests/integration/source/test_refusals.py"
        "::test_a_source_that_leaves_changes_out_of_its_log_is_refused_by_name",
    ),
    refused(
        "A rows event that is longer than the target's max_allowed_packet takes as a BINLOG statement",
        "named with the packet size that it needs",
        _UNSUPPORTED,
        "tests/integration/window/control/test_refusals.py"
        "::test_a_rows_event_larger_than_the_target_takes_is_refused_with_the_packet_that_it_needs",
    ),
    supported(
        "MariaDB's TIME, DATETIME and TIMESTAMP in the old format (mysql56_temporal_format = OFF), onto columns in "
        "today's",
        "the target converts them, as its own replica does",
        "tests/integration/window/ddl/test_temporal_formats.py::test_rows_of_tables_that_the_window_makes_are_converted",
        "tests/integration/window/ddl/test_temporal_formats.py"
        "::test_a_column_with_fractions_on_the_target_is_none_of_today_s_form",
    ),
    supported(
        "The same with fractions, as MariaDB 5.3 made them, onto columns of this format",
        "no log tells their length: counted if every length gives the same number of rows, never folded, and read by "
        "the target, as its own replica does",
        "tests/integration/window/ddl/test_temporal_formats.py"
        "::test_rows_with_fractions_in_the_old_format_are_read_by_a_target_with_that_format",
        "tests/integration/window/ddl/test_temporal_formats.py"
        "::test_another_precision_on_the_target_is_refused_before_anything_is_written",
    ),
    refused(
        "The same with fractions, as MariaDB 5.3 made them, for a target that makes today's format, or written by the "
        "SQL writer or under on_conflict = overwrite",
        "named with the table, and what to do",
        "PrecheckError",
        "tests/integration/window/ddl/test_temporal_formats.py"
        "::test_a_target_that_makes_the_format_of_today_is_named_before_anything_is_written",
        "tests/integration/window/ddl/test_temporal_formats.py"
        "::test_rows_with_fractions_that_binlane_would_have_to_read_are_refused",
    ),
    refused(
        "A rows event with such fractions that can be divided into different numbers of rows; for MySQL, every one",
        "named with the table, and what to do",
        "BinlogError",
        "tests/unit/binlog/test_unlogged_lengths.py::test_rows_that_can_be_divided_in_two_ways_are_refused",
    ),
    refused(
        "Rows of the server's own tables (mysql.*)",
        "the table is named; accounts change by statements alone",
        "PrecheckError",
        "tests/integration/window/control/test_refusals.py"
        "::test_rows_of_the_server_s_own_tables_are_named_before_anything_is_written",
    ),
    supported(
        "ALTER DATABASE without a name; DROP VIEW, TABLE or SEQUENCE of which one is missing; DDL of a utf16, ucs2 or "
        "utf32 session; the DROP of a failed CREATE OR REPLACE ... SELECT; DEFAULT '' of a TEXT that MySQL leaves out; "
        "user variables that hold a geometry; LIMIT 0; MySQL 8's GRANT ... ON with names that came in latin1 or gbk",
        "as on the source",
        "tests/integration/window/statements/test_odd_statements.py::test_a_window_of_them_is_applied",
        "tests/integration/window/statements/test_odd_statements.py"
        "::test_a_default_that_mysql_has_left_out_is_not_given_to_a_mariadb_column",
    ),
    supported(
        "A database's defaults, altered or made anew by another session than the one that makes tables in it",
        "a lane's session uses the changed defaults",
        "tests/integration/window/ddl/test_database_defaults.py"
        "::test_a_lane_that_is_in_the_database_sees_what_another_lane_has_altered",
        "tests/integration/apply/test_session_state.py::test_cached_session_state_is_read_again_after_a_change_by_another_session",
    ),
    supported(
        "Statements in autocommit mode with an XID and without BEGIN (MySQL 5.0 and 5.1)",
        "each statement is a transaction",
        "tests/integration/window/source/test_old_logs.py::test_statements_in_autocommit_mode_without_begin_are_transactions",
    ),
    supported(
        "A statement that commits implicitly while a temporary table exists",
        "the table's life becomes several transactions; copies of the open tables are kept between them",
        f"{proofs.TEMPORARY_COMMITS}::test_lives_with_commits_inside_arrive",
        f"{proofs.TEMPORARY_COPIES}::test_kill_9_of_lanes_whose_temporary_tables_live_on",
    ),
    supported(
        "RENAME TABLE of a temporary table, which MariaDB logs without the mark of its connection",
        "renames the table of that connection, also if it hides a permanent one",
        f"{proofs.TEMPORARY_COMMITS}::test_a_temporary_table_that_hides_another_is_renamed_without_it",
        f"{proofs.UNIT_TEMPORARY}::test_a_renamed_table_is_followed_to_its_end",
    ),
    supported(
        "RENAME TABLE of temporary tables and others at once (MariaDB)",
        "two statements: the permanent tables are renamed once, the temporary ones on each new connection",
        f"{proofs.TEMPORARY_COMMITS}::test_a_rename_of_temporary_tables_and_others_arrives",
        f"{proofs.TEMPORARY_COPIES}::test_kill_9_of_lanes_that_rename_temporary_tables_and_others",
        f"{proofs.UNIT_TEMPORARY}::test_the_last_rename_of_a_name_says_whose_it_is",
    ),
    supported(
        "LOAD DATA into a temporary table",
        "loads it; no definition of the target is asked for",
        f"{proofs.TEMPORARY}::test_a_file_is_loaded_into_a_temporary_table_that_the_target_does_not_have",
    ),
    refused(
        "The same with a temporary sequence or an engine without rows of its own; RENAME TABLE of temporary tables and "
        "others with IF EXISTS, or with names that are not ASCII",
        "refused by name",
        _UNSUPPORTED,
        f"{proofs.UNIT_TEMPORARY}::test_statements_that_cannot_be_applied_exactly_are_refused_with_their_position",
    ),
)
