"""Which servers were tried, and which versions' files were read."""

from __future__ import annotations

from typing import Final

from tests.conformance.rows import Row, Verdict, refused, supported

MIXED: Final = "tests/integration/window/servers/test_mixed.py"
BETWEEN: Final = "tests/integration/window/servers/test_versions.py"
HISTORIES: Final = "tests/integration/window/rows/test_transaction_histories.py"
CORPORA: Final = "tests/unit/binlog/test_corpora.py"
TRIED: Final = {"mariadb": "10.11", "mysql": "9.7"}
"""By family: the series whose servers the tests ran against when the page was made."""
_READ: Final = (
    f"{CORPORA}::test_a_file_is_read_to_its_end_or_refused_for_its_checksum",
    f"{CORPORA}::test_events_are_those_that_the_manifest_counts",
)


def _read(version: str) -> Row:
    return Row(version, "the number of events equals the file's list", Verdict.READ, _READ)


VERSIONS: Final[tuple[Row, ...]] = (
    supported(
        f"MariaDB {TRIED['mariadb']}, as source and as target",
        "whole windows, both sides compared",
        f"{MIXED}::test_a_mixed_window_makes_both_servers_equal_and_running_it_again_is_a_no_op",
    ),
    supported(
        f"MySQL {TRIED['mysql']}, as source and as target",
        "whole windows, both sides compared",
        f"{MIXED}::test_a_mixed_window_from_mysql_to_mysql_makes_both_servers_equal",
    ),
    supported(
        "MariaDB 10.11 onto MySQL 9.7, MySQL 9.7 onto MariaDB 10.11",
        "rows of common types are applied; the rest is named before the window begins",
        f"{MIXED}::test_rows_of_types_that_both_families_have_go_from_one_to_the_other",
    ),
    supported(
        "MariaDB 10.5 onto 10.11 and 11.8, 10.11 onto 10.5 and 11.8, 11.8 onto 11.8, 10.11 and 10.5",
        "whole windows, both sides compared: definitions, statements (11.8 onto 10.5: of sessions with a collation "
        "that 10.5 has; its default is refused), rows replayed and folded",
        f"{BETWEEN}::test_windows_between_series_leave_the_same",
    ),
    refused(
        "Rows of system-versioned tables from a MariaDB before 11.5 onto a newer one, or back",
        "current rows end in 2038 on one server and in 2106 on the other, which would silently treat them as "
        "history; refused by name",
        "PrecheckError",
        f"{BETWEEN}::test_rows_that_are_current_on_one_side_and_history_on_the_other_are_named",
    ),
    refused(
        "MariaDB's tables with history by transaction ids (ROW START: BIGINT), in blocks of several transactions",
        "a server keeps one version of a row for each transaction of its own, and a block is one; refused by name "
        "unless `blocks.transactions = 1`",
        "PrecheckError",
        f"{HISTORIES}::test_a_window_whose_blocks_would_lose_versions_is_refused",
        f"{HISTORIES}::test_blocks_of_one_transaction_keep_every_version",
    ),
    refused(
        "Rows of sequences for a MariaDB not known to have the fix of MDEV-31779 (10.5.23, tried, ends with signal 11)",
        "refused by name",
        "PrecheckError",
        f"{BETWEEN}::test_a_sequence_that_would_end_the_target_is_named",
    ),
    refused(
        "Rows with a TIMESTAMP beyond 2038 (MariaDB 11.5) for an older MariaDB, and for MySQL",
        "column and seqno are named; 10.5.23 would show another year, 10.11.18 fails in the window",
        "PrecheckError",
        f"{BETWEEN}::test_a_time_that_the_target_does_not_have_is_named",
        "tests/unit/plan/block/test_row_size.py::test_a_target_s_timestamps_end_earlier",
    ),
    refused(
        "A database whose default collation differs on the target, and DDL that depends on it",
        "named, with the ALTER DATABASE that is needed; checked for a live source only",
        "PrecheckError",
        "tests/integration/window/ddl/test_database_defaults.py::test_a_table_that_would_get_another_character_set_is_named",
    ),
    supported(
        "A collation that the target lacks (utf8mb4_0900_ai_ci onto MariaDB), with a rule of [collations]",
        "tables, columns, databases, views, functions and sessions get the collation of the rule; columns in "
        "keys are reported",
        "tests/integration/window/statements/test_collations.py::"
        "test_a_plain_mysql_schema_is_applied_with_the_collation_that_the_channel_chose",
        "tests/unit/plan/transaction/test_collations.py::test_only_collations_and_bare_character_sets_change",
    ),
    supported(
        "MySQL's rows events of version 1 (up to 5.5, log_bin_use_v1_row_events) for MySQL 9",
        "converted to version 2",
        "tests/integration/apply/test_rows_version.py::test_rows_of_version_1_are_taken",
    ),
    refused(
        "Features of a newer MariaDB that an older target lacks: VECTOR, a character set without COLLATE (11.5)",
        "all are named at once, before the window begins",
        "PrecheckError",
        f"{BETWEEN}::test_features_that_an_older_target_lacks_are_named_in_one_error",
    ),
    _read("MySQL 8.0 (8.0.28 to 8.0.31)"),
    _read("MySQL 5.7 (5.7.12 to 5.7.40), Aurora's padding events too"),
    _read("MySQL 5.6; live, 5.6.24 was tried by hand as a source for MySQL 9.7, MariaDB 10.11 and 11.8"),
    _read("MySQL 5.5"),
    _read("MySQL 5.1.34"),
    _read("MariaDB 10.0"),
    refused(
        "MySQL 3.23 to 4.1",
        "their logs begin with START_V3",
        "UnsupportedEventError",
        "tests/unit/binlog/test_reader.py::test_an_event_that_must_not_be_passed_stops_the_log",
        "tests/integration/source/test_damage.py::test_a_first_file_of_another_kind_is_named_before_the_channel_has_a_place",
    ),
    refused(
        "Development versions 5.1.1 to 5.2.2 with event types of their own",
        "refused by name",
        "UnsupportedEventError",
        "tests/unit/binlog/test_events.py::test_pre_releases_with_permuted_types_are_refused",
    ),
    refused(
        "MariaDB 12.3's InnoDB-based log (.ibb)",
        "refused by name, with the way to convert it",
        "UnsupportedEventError",
        "tests/unit/binlog/test_reader.py::test_a_file_that_cannot_be_read_is_refused_by_name",
        "tests/integration/source/test_damage.py::test_a_log_that_goes_on_in_innodb_files_is_refused",
    ),
)
