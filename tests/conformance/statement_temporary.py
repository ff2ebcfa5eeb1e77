"""Temporary tables in logs of statements, of the statements themselves and of what they call."""

from __future__ import annotations

from typing import Final

from tests.conformance import proofs
from tests.conformance.rows import Row, refused, supported

_LOST: Final = "tests/integration/window/statements/test_lost_temporary.py"
_LEFT: Final = "tests/integration/window/statements/test_temporary_routines.py"
STATEMENT_TEMPORARY: Final[tuple[Row, ...]] = (
    supported(
        "Temporary tables in statement format",
        "a life, from CREATE to DROP, is one transaction of the serialized lane; no window ends inside one",
        f"{proofs.TEMPORARY}::test_lives_of_several_connections_with_one_name_and_everything_between_them",
        f"{proofs.TEMPORARY}::test_a_window_ends_before_a_table_that_is_still_there_and_the_next_one_takes_all_of_it",
        f"{proofs.TEMPORARY}::test_runs_that_are_killed_inside_a_life_lose_and_double_nothing",
    ),
    refused(
        "A temporary table that is still open at the log's end (statement format)",
        "the window ends before it; one that would hold nothing else names the table and its connection",
        "WindowOpenError",
        f"{proofs.TEMPORARY}::test_a_window_ends_before_a_table_that_is_still_there_and_the_next_one_takes_all_of_it",
        f"{proofs.TEMPORARY}::test_a_window_that_would_hold_nothing_but_the_head_of_a_file_before_a_table_that_is_still_"
        "there_says_so",
    ),
    supported(
        "A temporary table of a connection that has ended without a DROP in the log (sql_log_bin = 0)",
        "ends with the window: a live source is asked for its connections, those that nobody can be asked for are "
        "named in `source.ended_sessions`; a statement behind the window's end that uses the table holds it, "
        "and a later one of a connection that was taken for ended is refused",
        f"{_LOST}::test_a_table_whose_drop_no_log_has_ends_with_its_connection",
        f"{_LOST}::test_an_archive_is_told_by_name_of_a_connection_that_has_ended",
        f"{_LOST}::test_a_table_that_is_used_behind_the_windows_end_does_not_end_with_the_window",
        f"{_LOST}::test_one_that_was_taken_for_ended_and_goes_on_is_refused",
    ),
    supported(
        "A temporary table that a stored function makes, of which the log holds the DROP alone (MariaDB)",
        "a life from the connection's first call of a routine in the window to the DROP",
        f"{proofs.TEMPORARY}::test_a_table_that_a_function_makes_is_there_until_it_is_dropped",
    ),
    supported(
        "The same in MySQL's log, which holds the calls alone, where the table is dropped by the routine that makes "
        "it, or made and dropped in statements of one block",
        "in one transaction of the target, on one connection",
        f"{proofs.TEMPORARY}::"
        "test_a_table_that_a_function_leaves_to_another_transaction_is_refused_before_the_first_write",
    ),
    refused(
        "A temporary table that a stored routine or trigger leaves to another transaction (MySQL, statement format): "
        "one that a routine of another block, or of a later window, drops or uses; one that is made again; with "
        "IF NOT EXISTS, unless `allow_unsafe` is set; behind views, too",
        "named before the window begins: the log shows neither the table nor when the connection has dropped it",
        "PrecheckError",
        f"{proofs.TEMPORARY}::"
        "test_a_table_that_a_function_leaves_to_another_transaction_is_refused_before_the_first_write",
        f"{proofs.TEMPORARY}::"
        "test_a_table_that_a_function_has_made_in_an_earlier_window_is_refused_when_another_drops_it",
        "tests/unit/sql/test_temporary_routines.py::test_a_call_behind_another",
        "tests/unit/precheck/test_temporary_tables.py::test_temporary_tables_that_routines_leave_to_another_transaction",
        f"{_LEFT}::test_a_view_that_calls_a_function_is_looked_into",
    ),
    refused(
        "A call that takes over, or may read, a temporary table that a routine may have left in an earlier window "
        "(CREATE .. IF NOT EXISTS without a DELETE behind it, a name that a permanent table has, too): no log tells "
        "whether the connection still has it",
        "named before the window begins, unless `allow_unsafe` is set",
        "PrecheckError",
        f"{_LEFT}::test_a_table_that_an_earlier_window_has_left_is_not_made_anew_in_silence",
        f"{_LEFT}::test_a_table_that_a_name_means_no_more_is_not_read_in_silence",
        f"{_LEFT}::test_tables_that_no_call_takes_over_need_nothing_of_an_earlier_window",
    ),
    refused(
        "A logged statement with a function or view whose text the target's account may not read: it may use temporary "
        "tables",
        "named before the window begins, with the privilege, unless `allow_unsafe` is set",
        "PrecheckError",
        f"{_LEFT}::test_a_body_that_the_account_may_not_read_is_named",
    ),
    supported(
        "Changes of tables without transactions that are interrupted: a killed worker or target, a lost connection, an "
        "error",
        "known exactly by the target's GTIDs while it keeps running (MySQL with a binlog), else a question to the "
        "operator before the lane goes on, with what to look at; needs `apply.allow_nontransactional`",
        "tests/integration/window/statements/test_nontransactional.py::"
        "test_a_transaction_that_the_target_keeps_a_part_of_is_a_question",
        "tests/chaos/test_killed_in_kept_changes.py::"
        "test_kill_9_of_the_target_at_a_file_operation_of_a_change_that_stays",
        "tests/integration/window/statements/test_nontransactional.py::"
        "test_runs_that_are_killed_between_the_changes_lose_and_double_nothing",
    ),
    supported(
        "A statement on a table without transactions whose routine or trigger makes a temporary table (MySQL)",
        "runs once, between BEGIN and COMMIT under its GTID, with `apply.allow_nontransactional`",
        "tests/integration/window/statements/test_nontransactional.py::"
        "test_runs_that_are_killed_between_statements_that_make_temporary_tables_lose_and_double_nothing",
    ),
    supported(
        "CREATE OR REPLACE TEMPORARY TABLE that failed behind its DROP (MariaDB logs it with its error)",
        "the table is gone, as on the source",
        f"{proofs.TEMPORARY}::test_a_create_or_replace_that_fails_behind_its_drop_ends_the_life",
    ),
)
