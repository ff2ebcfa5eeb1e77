"""XA transactions: what is applied at which of their halves, and what is not."""

from __future__ import annotations

from typing import Final

from tests.conformance import proofs
from tests.conformance.rows import Row, refused, supported

_UNSUPPORTED: Final = "UnsupportedEventError"
_NOT_APPLIED: Final = f"{proofs.DISSECT}::test_events_that_cannot_be_applied_are_refused_with_file_and_offset"

STATEMENT_XA: Final[tuple[Row, ...]] = (
    supported(
        "XA transactions, in one window or several; ONE PHASE",
        "rows are applied at the place of the XA COMMIT, a transaction with statements at its XA PREPARE, by what its "
        "end says; the target never has a prepared transaction of binlane",
        f"{proofs.XA}::test_prepare_and_each_kind_of_end_of_an_xa_transaction_in_one_window",
        f"{proofs.XA}::test_runs_that_are_killed_between_the_halves_lose_and_double_nothing",
    ),
    supported(
        "Other transactions that change, between the halves of an XA transaction with statements (statement and mixed "
        "format), what it has read, a trigger or routine of its tables, or tables without transactions",
        "it is applied at its XA PREPARE, before them",
        f"{proofs.XA_STATEMENTS}::test_others_change_what_a_prepared_transaction_has_read",
        f"{proofs.XA_ENGINES}::test_others_may_change_what_a_trigger_has_changed_without_transactions",
        f"{proofs.XA_ENDS}::test_others_may_change_what_a_statement_has_read_or_written_before_its_end",
    ),
    supported(
        "An XA transaction with statements that has not ended at the end of the log",
        "the window ends before it: both halves are in one window",
        f"{proofs.XA_STATEMENTS}::test_a_window_ends_before_a_transaction_with_statements_that_has_not_ended",
        f"{proofs.XA_STATEMENTS}::test_what_the_filter_leaves_out_and_what_ends_at_once_hold_no_window",
        f"{proofs.XA_ENDS}::test_a_transaction_with_statements_whose_halves_are_in_two_windows_is_refused",
    ),
    supported(
        "A prepared XA transaction that makes, uses or drops temporary tables (statement format)",
        "it uses them at its XA PREPARE, also if its connection ends before it does; no window ends between the halves",
        f"{proofs.XA}::test_temporary_tables_inside_prepared_transactions_live_where_they_are_prepared",
        f"{proofs.XA_STATEMENTS}::test_a_transaction_may_outlive_its_connection_and_its_temporary_tables",
        f"{proofs.XA_STATEMENTS}::test_other_transactions_stand_between_the_halves_of_those_with_temporary_tables",
        f"{proofs.XA_STATEMENTS}::test_temporary_tables_in_xa_transactions_that_mysql_does_not_detach",
        f"{proofs.XA_STATEMENTS}::test_runs_that_are_killed_lose_and_double_nothing",
        f"{proofs.UNIT_TEMPORARY}::test_a_prepared_transaction_uses_tables_of_its_connection",
    ),
    supported(
        "XA ROLLBACK of statements that changed tables without transactions (statement format)",
        "the statements run and are rolled back, which leaves what the source's engines left",
        f"{proofs.XA_STATEMENTS}::test_rollbacks_with_and_without_prepare_leave_what_tables_without_transactions_keep",
        f"{proofs.XA_ENDS}::test_a_rollback_leaves_what_tables_without_transactions_keep",
        f"{proofs.DISSECT}::test_an_xa_transaction_that_is_rolled_back_without_a_prepare_is_undone",
    ),
    refused(
        "XA ROLLBACK of statements whose tables have transactions on one server only; of an archive, unless its log "
        "tells that they had transactions on the source",
        "named before the window begins: the source has kept what the target would not",
        "PrecheckError",
        f"{proofs.XA_ENGINES}::test_what_only_the_source_keeps_at_a_rollback_is_named_before_anything_is_written",
        f"{proofs.XA_ENGINES}::test_a_rollback_that_only_the_target_would_not_undo_is_named",
        f"{proofs.XA_ENGINES}::test_an_archive_of_mariadb_tells_which_transactions_can_be_rolled_back",
        f"{proofs.XA_ENDS}::test_tables_whose_engine_on_the_source_decides_what_a_rollback_leaves_are_named",
    ),
    supported(
        "The same, if it is committed, or if the log tells that the statements changed tables with transactions alone "
        "(MySQL with GTIDs; MariaDB's mark, for statements that touch one table)",
        "applied whatever the engines",
        f"{proofs.XA_ENGINES}::test_a_commit_is_exact_whatever_the_engines",
        f"{proofs.XA_ENGINES}::test_rows_and_what_the_log_proves_to_be_transactional_need_no_equal_engines",
        f"{proofs.PREPARED}::test_the_log_tells_whether_a_prepared_transaction_may_have_changed_tables_without_transactions",
    ),
    refused(
        "Rows of an XA transaction whose table another one renames, drops or exchanges before its end, as MariaDB "
        "before 10.6.9 lets it when the connection has ended",
        "refused by name: the rows are in the table that has another name by then",
        _UNSUPPORTED,
        f"{proofs.XA_ENDS}::test_rows_of_a_table_that_has_another_name_at_the_commit_are_refused",
    ),
    refused(
        "XA COMMIT with changes of its own; XA ROLLBACK with changes of another XA transaction than its own",
        "refused by name: no server logs it",
        _UNSUPPORTED,
        _NOT_APPLIED,
    ),
    refused(
        "XA COMMIT of what was prepared before the channel began; an XID prepared twice",
        "refused until a person decides (`binlane xa`)",
        _UNSUPPORTED,
        f"{proofs.XA}::test_a_transaction_prepared_before_the_channel_began_stops_it_by_name_until_somebody_decides",
        f"{proofs.PREPARED}::test_an_xid_that_is_prepared_twice_is_refused_by_name",
    ),
)
