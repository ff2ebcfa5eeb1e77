"""The trial by the servers' own suites: what it changes in a test, takes from a command line, and concludes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.suites import driver, report
from lab.suites.kinds import kind_of
from lab.suites.options import beside, started_with
from lab.suites.requirements import unmet
from lab.suites.results import Result, Results
from lab.suites.rewriting import with_kept_tables, with_question, with_verdict
from lab.suites.verdict import Outcome, Run, judged, worse

AT_END, STOPPED, REFUSED = Run(), Run("ApplyError: 1032"), Run("PrecheckError: no", refused=True)
OTHER = Run(different={"table a.t": "x | y"})


@pytest.mark.parametrize(
    ("drop", "renames"),
    [
        ("DROP TABLE t1;\n", ["t1 TO keep.k_1_0_t1"]),
        (
            "  drop tables if exists a.t1, `odd name` ; # gone\n",
            ["a.t1 TO keep.k_1_0_a_t1", "`odd name` TO keep.k_1_1_odd_name"],
        ),
        ("CREATE TABLE t1 (a INT);\nDROP TABLE t1;\n", ["t1 TO keep.k_1_0_t1"]),
        ("--echo hello\nDROP TABLE t1;\n", ["t1 TO keep.k_1_0_t1"]),
        ("--delimiter |\nBEGIN|\n--delimiter ;\nDROP TABLE t1;\n", ["t1 TO keep.k_1_0_t1"]),
        ("if ($x)\n{\n  DROP TABLE t1;\n}\n", ["t1 TO keep.k_1_0_t1"]),
    ],
)
def test_a_dropped_table_is_kept(drop: str, renames: list[str]) -> None:
    changed = with_kept_tables(drop, "k_")
    assert [line[13:-1] for line in changed.splitlines() if line.startswith("RENAME TABLE")] == renames
    assert "IF EXISTS" in changed
    assert f"if (!$BINLANE_KEEPS)\n{{\n{drop.splitlines(keepends=True)[-1 if '}' not in drop else -2]}}}\n" in changed
    assert (
        changed.index("disable_abort_on_error") < changed.index("RENAME") < changed.index("enable_abort_on_error", 20)
    )


@pytest.mark.parametrize(
    "text",
    [
        "DROP TEMPORARY TABLE t1;\n",
        "--error ER_BAD_TABLE_ERROR\nDROP TABLE t1;\n",
        "error 1051;\nDROP TABLE t1;\n",
        "--send\nDROP TABLE t1;\n",
        "send drop table t1;\n",
        "CREATE TEMPORARY TABLE t1 (a INT);\nDROP TABLE T1;\n",
        "eval DROP TABLE $name;\n",
        "delimiter |;\nCREATE PROCEDURE p() BEGIN\nDROP TABLE t1;\nEND|\ndelimiter ;|\n",
        "delimiter |;\nDROP TABLE t1;\nSELECT 1|\ndelimiter ;|\n",
        "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO\nDROP TABLE t1;\n",
        "--write_file $file END\nDROP TABLE t1;\nEND\n",
        "perl;\nDROP TABLE t1;\nEOF\n",
        "# DROP TABLE t1;\n",
        "--disable_abort_on_error\nDROP TABLE t1;\n--enable_abort_on_error\n",
    ],
)
def test_another_drop_stays_as_it_is(text: str) -> None:
    assert with_kept_tables(text, "k_") == text


def test_behind_a_stored_program_and_a_script_tables_are_kept_again() -> None:
    text = "delimiter |;\nCREATE PROCEDURE p() DROP TABLE t1|\ndelimiter ;|\nperl;\nx\nEOF\nDROP TABLE t2;\n"
    assert "RENAME TABLE t2 TO keep." in with_kept_tables(text, "k_")


def test_every_byte_of_a_test_is_kept() -> None:
    text = bytes(range(1, 256)).decode("latin-1").replace("\r", "") + "\n"
    assert with_kept_tables(text, "k_") == text


def test_a_test_asks_once_at_its_end_or_where_replication_ends() -> None:
    alone = with_verdict("SELECT 1;", "binlog.a", ends_by_itself=False)
    assert alone.count("$BINLANE_ASK start") == 1
    assert alone.count("$BINLANE_ASK judge") == 1
    assert alone.index("start") < alone.index("SELECT 1;") < alone.index("judge")
    assert "judge" not in with_verdict("--source include/rpl_end.inc\n", "rpl.a", ends_by_itself=True)
    assert with_question("--echo end\n").index("judge") < with_question("--echo end\n").index("--echo end")


SOURCE = [
    *(
        "/lib/ld.so",
        "--library-path",
        "/lib",
        "/usr/sbin/mysqld",
        "--defaults-group-suffix=.1",
        "--defaults-file=/v/my.cnf",
    ),
    *(
        "--plugin-dir=/p",
        "--log-bin=master-bin",
        "--binlog-format=STATEMENT",
        "--binlog_row_image=minimal",
        "--core-file",
    ),
    *(
        "--replicate-do-db=x",
        "--binlog-do-db=x",
        "--skip-slave-start",
        "--sql-mode=ANSI",
        "--read_only",
        "--loose-mysqlx=0",
    ),
]


def test_a_target_has_the_source_s_options_and_a_place_of_its_own() -> None:
    started = started_with(SOURCE)
    assert started.defaults == ("--defaults-group-suffix=.1", "--defaults-file=/v/my.cnf")
    assert beside(started, "STATEMENT") == ["--binlog_row_image=minimal", "--sql-mode=ANSI"]
    assert "--binlog-format=STATEMENT" in beside(started, "ROW")


@pytest.mark.parametrize(
    ("binlane", "native", "outcome"),
    [
        (AT_END, None, Outcome.EQUAL),
        (REFUSED, AT_END, Outcome.REFUSED),
        (STOPPED, AT_END, Outcome.FAILED),
        (OTHER, AT_END, Outcome.DIFFERS),
        (REFUSED, STOPPED, Outcome.NATIVE),
        (STOPPED, OTHER, Outcome.NATIVE),
        (REFUSED, OTHER, Outcome.NATIVE),
        (OTHER, STOPPED, Outcome.NATIVE),
        (OTHER, OTHER, Outcome.NATIVE),
        (Run("no connection", ended=True), STOPPED, Outcome.FAILED),
        (OTHER, Run(different={"table a.other": "x | y"}), Outcome.DIFFERS),
    ],
)
def test_the_server_s_own_replica_decides(binlane: Run, native: Run | None, outcome: Outcome) -> None:
    assert judged(binlane, native) is outcome


def test_the_worst_of_several_runs_of_a_test_counts() -> None:
    assert worse(Outcome.FAILED, Outcome.EQUAL)
    assert worse(Outcome.EQUAL, Outcome.SKIPPED)
    assert not worse(Outcome.EQUAL, Outcome.DIFFERS)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rpl.rpl_ddl 'row'                        [ pass ]   1221", driver.Said("rpl.rpl_ddl", "pass", "1221")),
        ("[ 25%] rpl.rpl_alter      [ pass ]   1200", driver.Said("rpl.rpl_alter", "pass", "1200")),
        ("rpl.a 'innodb,mix' w2 [ skipped ]  Not ROW", driver.Said("rpl.a", "skipped", "Not ROW")),
        ("[100%] shutdown_report                           [ pass ]       ", None),
        ("worker[01] Using MTR_BUILD_THREAD 300, with reserved ports 19000..19029", None),
    ],
)
def test_lines_of_the_test_driver_are_read(line: str, said: driver.Said | None) -> None:
    assert driver.said(line) == said


def test_tests_with_replication_are_not_run_with_the_options_of_those_without() -> None:
    tests = ["rpl.a", "binlog.b", "rpl_gtid.c", "binlog_gtid.d", "rpl.e"]
    assert list(driver.batches(tests, 2)) == [["rpl.a", "rpl_gtid.c"], ["rpl.e"], ["binlog.b", "binlog_gtid.d"]]


def result(test: str, outcome: Outcome, kind: str = "", binlog_format: str = "row") -> Result:
    return Result("mariadb", "10.11", binlog_format, test, outcome, kind)


def test_a_run_continues_where_it_was_ended(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    Results(file).add(result("rpl.a", Outcome.EQUAL))
    Results(file).add(result("rpl.b", Outcome.FAILED))
    with file.open("a") as torn:
        torn.write('{"family":"mariadb","version":"10.11","for')
    again = Results(file)
    assert again.left("mariadb", "row", ["rpl.a", "rpl.b", "rpl.c"]) == ["rpl.c"]
    assert again.left("mariadb", "mixed", ["rpl.a"]) == ["rpl.a"]
    assert again.left("mysql", "row", ["rpl.a"]) == ["rpl.a"]
    assert again.left("mariadb", "row", ["rpl.a", "rpl.b"], [Outcome.FAILED]) == ["rpl.b"]
    again.compact()
    assert len(file.read_text().splitlines()) == 2


def test_behind_a_line_that_was_not_written_whole_results_are_added(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text('{"family":"mar')
    Results(file).add(result("rpl.a", Outcome.EQUAL))
    assert Results(file).left("mariadb", "row", ["rpl.a"]) == []


def test_the_last_result_of_a_test_counts(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.add(result("rpl.a", Outcome.FAILED))
    results.add(result("rpl.a", Outcome.EQUAL))
    assert [each.outcome for each in Results(tmp_path / "results.jsonl").all()] == [Outcome.EQUAL]


def test_a_reason_without_an_entry_is_its_error_and_the_server_s_number() -> None:
    said = "ApplyError: channel suite, lane 1, seqno 4..4: 1032 Can't find record"
    assert kind_of(Outcome.FAILED, said) == "ApplyError 1032"
    assert kind_of(Outcome.EQUAL, "") == ""


@pytest.mark.parametrize(
    ("outcome", "reason", "kind"),
    [
        (Outcome.SKIPPED, "Test needs debug binaries.", "needs a server built for debugging"),
        (Outcome.SKIPPED, "Not ROW format", "not in this binlog format"),
        (Outcome.DIFFERS, "table a.t: x | y; data of a.t: 1 row; data of a.u: 2 rows", "data of, table"),
    ],
)
def test_reasons_are_grouped(outcome: Outcome, reason: str, kind: str) -> None:
    assert kind_of(outcome, reason) == kind


def test_a_changed_table_of_kinds_is_read_by_results_that_are_there(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.add(result("rpl.a", Outcome.SKIPPED, "other"))
    results.add(result("rpl.b", Outcome.SKIPPED, "other"))
    results.name_kinds({("mariadb", "row", "rpl.a"): "Not ROW format"})
    assert [each.kind for each in results.all()] == ["not in this binlog format", "other"]


def test_the_page_counts_and_names() -> None:
    page = report.document(
        [
            result("rpl.a", Outcome.EQUAL),
            result("rpl.b", Outcome.REFUSED, "temporary tables"),
            result("binlog.c", Outcome.EQUAL, binlog_format="mixed"),
        ]
    )
    assert "| mariadb 10.11 | row | rpl | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 0 |" in page
    assert "| mariadb 10.11 | mixed | binlog | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |" in page
    assert "| temporary tables | 1 | mariadb row rpl.b |" in page


@pytest.mark.parametrize(
    ("test", "binlog_format", "kind"),
    [
        ("--source include/master-slave.inc\n", "row", None),
        ("source include/have_debug.inc;\n", "row", "needs a server built for debugging"),
        ("--source include/deep.inc\n", "mixed", "needs a server built for debugging"),
        ("-- source include/have_binlog_format_row.inc # rows\n", "row", None),
        ("-- source include/have_binlog_format_row.inc # rows\n", "mixed", "not in this binlog format"),
        ("--source include/have_binlog_format_mixed_or_statement.inc\n", "statement", None),
        ("--source include/have_binlog_format_mixed_or_statement.inc\n", "row", "not in this binlog format"),
        ("# --source include/have_debug.inc\n--echo source include/have_debug.inc;\n", "row", None),
    ],
)
def test_a_test_that_these_servers_cannot_run_is_known_by_what_it_includes(
    tmp_path: Path, test: str, binlog_format: str, kind: str | None
) -> None:
    for name, text in (("include/deep.inc", "--source extra/a.inc\n"), ("extra/a.inc", "--source include/deep.inc\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "--source include/have_debug_sync.inc\n" * (name == "extra/a.inc"))
    file = tmp_path / "suite" / "rpl" / "t" / "a.test"
    file.parent.mkdir(parents=True)
    file.write_text(test)
    reason = unmet(file, tmp_path, binlog_format)
    assert (None if reason is None else kind_of(Outcome.SKIPPED, reason)) == kind
