"""Statements that did not end well on the source: errors, rollbacks, tables that were missing."""

from __future__ import annotations

from typing import Final

from tests.conformance import proofs
from tests.conformance.rows import Row, refused, supported

_UNSUPPORTED: Final = "UnsupportedEventError"
_NOT_APPLIED: Final = f"{proofs.DISSECT}::test_events_that_cannot_be_applied_are_refused_with_file_and_offset"
_ON_MARIADB: Final = f"{proofs.OUTCOMES}::test_errors_and_rollbacks_leave_the_same_rows_on_mariadb"
_ON_MYSQL: Final = f"{proofs.OUTCOMES}::test_errors_and_rollbacks_leave_the_same_rows_on_mysql"

STATEMENT_OUTCOMES: Final[tuple[Row, ...]] = (
    supported(
        "Statements that ended with an error, having changed tables without transactions",
        "executed, and expected to end with that error; engines of one kind and the same keys on both servers, of "
        "all tables where a routine, trigger or view may have changed others than are named",
        _ON_MARIADB,
        _ON_MYSQL,
        f"{proofs.OUTCOMES}::test_what_a_failed_statement_changed_behind_a_function_or_trigger_stays_on_mariadb",
        f"{proofs.OUTCOMES}::test_what_a_failed_statement_changed_behind_a_function_or_trigger_stays_on_mysql",
        f"{proofs.OUTCOMES}::test_what_a_failed_statement_changed_behind_a_function_stays_on_a_target_with_gtids",
        f"{proofs.OUTCOMES}::test_another_outcome_of_a_failed_statement_stops_the_lane_and_names_both",
    ),
    supported(
        "The same on a table without an ENGINE in its CREATE that the window has made, and that the source does not "
        "have any more, or with another engine",
        "applied if the target's default has no transactions either: a failed statement that names no other table is "
        "in the log only because the source's has none; so is a window whose table was made behind the statement, or "
        "dropped before it",
        f"{proofs.XA_ENGINES}::test_a_table_that_is_gone_needs_the_kind_that_its_failed_statement_shows",
        f"{proofs.XA_ENGINES}::test_the_engine_that_the_source_has_now_is_not_that_of_a_failed_statement_before",
        "tests/unit/sql/test_told_engines.py::test_a_failed_statement_shows_that_its_only_table_has_no_transactions",
    ),
    refused(
        "The same on tables that have engines of two kinds, or other keys, on the two servers, that the source does "
        "not have any more, or that get their engine in the window, by an ALTER or by the servers' defaults, or from "
        "the source behind it; and all of an archive's, behind a routine, trigger or view",
        "named before the window begins: an error or a rollback would leave something else",
        "PrecheckError",
        f"{proofs.OUTCOMES}::test_another_kind_of_engine_on_the_target_is_named_before_anything_is_written",
        f"{proofs.OUTCOMES}::test_another_kind_of_engine_behind_a_function_or_trigger_is_named_before_anything_is_written",
        "tests/unit/precheck/test_engines.py::test_a_table_that_the_source_does_not_have_any_more_is_named_with_what_to_do",
        "tests/unit/precheck/test_engines.py::test_an_archive_does_not_tell_of_the_tables_behind_a_routine",
        f"{proofs.XA_ENGINES}::test_an_engine_that_the_window_gives_a_table_is_named",
        f"{proofs.XA_ENGINES}::test_an_engine_that_the_source_gives_a_table_behind_the_window_is_named",
    ),
    refused(
        "The same where the server chose the order of the rows (INSERT .. SELECT, UPDATE or DELETE without ORDER BY)",
        "refused unless `allow_unsafe` is set: the target would fail behind other rows",
        "PrecheckError",
        f"{proofs.OUTCOMES}::test_which_rows_a_failed_statement_took_first_is_the_source_s_own",
        "tests/unit/sql/parse/test_unsafe.py::test_the_order_of_rows_is_the_server_s_own_unless_the_text_says_it",
    ),
    refused(
        "Statements that changed an unknown part before they failed: interrupted (killed, shut down, timed out), lost "
        "a lock conflict, or ended with an error or a rollback unparsed; "
        "a rolled-back call of a routine on MySQL with GTIDs, which has made or dropped a temporary table",
        "refused: which rows or tables they changed cannot be told, and not repeated",
        _UNSUPPORTED,
        _NOT_APPLIED,
    ),
    supported(
        "Transactions that end with ROLLBACK and changed something",
        "executed after a savepoint and rolled back to it",
        _ON_MARIADB,
        _ON_MYSQL,
        f"{proofs.DISSECT}::test_a_rollback_is_undone_behind_a_savepoint_and_an_empty_one_is_nothing",
    ),
    supported(
        "DROP of several tables of which some were missing",
        "executed with IF EXISTS",
        f"{proofs.OUTCOMES}::test_a_drop_of_which_some_tables_were_missing_drops_the_others",
    ),
    supported(
        "DROP TABLE IF EXISTS in a default database that the target does not have (MariaDB)",
        "drops nothing, as on a replica",
        f"{proofs.OUTCOMES}::test_a_drop_in_a_default_database_that_the_target_does_not_have_drops_nothing",
    ),
)
