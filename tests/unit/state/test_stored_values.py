"""Every column of the schema ``binlane`` has a list of the values that it may hold."""

from __future__ import annotations

import ast
import contextlib
import tracemalloc
from pathlib import Path
from unittest.mock import Mock

import pytest

from binlane.errors import StateSchemaError
from binlane.state.carried.temporary_tables import copy_name, read_copies
from binlane.state.json_columns import text_of, value_of
from binlane.state.records.bootstraps import bounded_notes
from binlane.state.records.drills import DrillResults, TenantResult, save_drill
from binlane.state.stored_values import VALUES, CheckedColumn, checked, unexpected
from binlane.state.tables import bootstraps, channels, databases, ddl, drills, metadata, suspects, temporary, windows
from tests.parsing import parsed

BINLANE = Path(__file__).parents[3] / "plugins" / "binlane"


def test_every_column_has_values_and_no_others_are_listed() -> None:
    found = {table.name: {column.name for column in table.c} for table in metadata.sorted_tables}
    assert {name: {*columns} for name, columns in VALUES.items()} == found
    assert all(isinstance(column.type, CheckedColumn) for table in metadata.sorted_tables for column in table.c)


REFUSED = [
    pytest.param(windows.c.window_id, "../../etc", id="a window's name is no path"),
    pytest.param(windows.c.window_id, "", id="nor is it empty"),
    pytest.param(windows.c.state, "closed", id="a word that is not one of the column's"),
    pytest.param(
        windows.c.facts, '{"shards":[' + '["a",0,0,0],' * 400_000 + "]}", id="facts are of a window, not of a fleet"
    ),
    pytest.param(windows.c.files, "{" + '"":"",' * 20_000 + "}", id="a window has some files"),
    pytest.param(windows.c.totals, "[" * 5_000, id="three numbers are short"),
    pytest.param(databases.c.recent, "[" + "[]," * 2_000 + "]", id="and so are those of eight windows"),
    pytest.param(windows.c.lanes, 2**31 - 1, id="a number that is the size of a list"),
    pytest.param(windows.c.number, -1, id="a negative number"),
    pytest.param(windows.c.end_time, 1e300, id="seconds that no date has"),
    pytest.param(windows.c.end_time, float("nan"), id="no number"),
    pytest.param(windows.c.created_at, "0000-00-00 00:00:00", id="a date that no calendar has"),
    pytest.param(channels.c.source_file, "../binlog.000001", id="a log file is no path"),
    pytest.param(channels.c.channel, "a/b", id="nor is a channel's name"),
    pytest.param(channels.c.gtid_set, "0-1-2'; DROP TABLE t", id="GTIDs are no SQL"),
    pytest.param(suspects.c.log_end, "binlog.x:4", id="a place in a log has the file's number"),
    pytest.param(suspects.c.log_end, "binlog.000001:" + "9" * 5_000, id="and an offset"),
    pytest.param(ddl.c.fingerprint, "kept:1:2", id="a note of changes has a server"),
    pytest.param(ddl.c.fingerprint, "kept:x:1:ab", id="and the change's number"),
    pytest.param(ddl.c.fingerprint, "ab12:x", id="a fingerprint has a number of tables"),
    pytest.param(temporary.c.copy, "windows", id="a copy is none of binlane's own tables"),
    pytest.param(temporary.c.copy, "copies_00000000_1_1` -- ", id="nor a statement"),
]


@pytest.mark.parametrize(("column", "value"), REFUSED)
def test_an_unexpected_value_is_named_with_its_column(column: object, value: object) -> None:
    with pytest.raises(StateSchemaError, match=rf"target: binlane\.{column}: expected .*, found "):
        checked(column, value)  # type: ignore[arg-type]


def test_a_text_that_could_not_be_read_again_is_not_written() -> None:
    known = bootstraps.c.outcome.type
    assert isinstance(known, CheckedColumn)
    most = 1 << 23
    assert known.process_bind_param("x" * most, Mock()) == "x" * most
    with pytest.raises(StateSchemaError, match=r"binlane.bootstraps.outcome: .* found 8,388,609: nothing was written"):
        known.process_bind_param("x" * (most + 1), Mock())
    assert known.process_bind_param(None, Mock()) is None


def test_the_notes_of_a_copy_have_room_in_its_record() -> None:
    notes = bounded_notes(["\U0001f600" * 5_000] * 40_000)
    assert VALUES["bootstraps"]["outcome"].has(text_of(notes))
    assert notes[-1] == "and 39,600 more notes"
    assert bounded_notes(["a", "b"]) == ("a", "b")


@pytest.mark.parametrize("number", [17, 400])
def test_the_results_of_a_drill_have_room_in_its_record(number: int) -> None:
    few = [TenantResult("a", "b", "", "", "", 0, 0, 0, 0.0, "failed", ("x",), "y")]
    long = TenantResult(*("n" * 64,) * 2, "", "", "", 0, 0, 0, 0.0, "failed", ("\U0001f600" * 900,) * 5, "e" * 262_144)
    saved = list[str]()
    for tenants in (few, [long] * number):
        save_drill(Mock(execute=lambda sent: saved.append(sent.compile().params["results"])), 1, 0, tenants)
    assert saved[0] == text_of(DrillResults(tuple(few)))
    assert VALUES["drills"]["results"].has(saved[1])
    assert all(one.error for one in value_of(DrillResults, saved[1], drills.c.results).tenants)


@pytest.mark.parametrize(("attempt", "is_read"), [("0a0a0a0a", True), ("0a0a0a0a` -- ", False), ("x", False)])
def test_a_copy_of_an_attempt_is_that_of_its_row(attempt: str, is_read: bool) -> None:
    name = copy_name("shop", 7, 1, attempt)
    row = (1, 7, 40, "d", "t", "CREATE TEMPORARY TABLE `t` (n INT)", '["n"]', name, 3)
    with contextlib.nullcontext() if is_read else pytest.raises(StateSchemaError, match="hexadecimal"):
        [found] = read_copies(Mock(fetchall=lambda: [row]), "shop")
        assert found.name == name


@pytest.mark.parametrize(
    "value", ["half", "refused", "kept:-1:0:" + "a" * 32, "kept:3:1:", "ab12:0", "ab12:3:7,8 9", "x"]
)
def test_what_is_kept_beside_a_statement_is_read(value: str) -> None:
    assert checked(ddl.c.fingerprint, value) == value


def test_the_place_of_a_windows_files_is_not_taken_from_the_state() -> None:
    """``FolderRecord.uri`` is read where it is compared, written or shown, and given to no file system."""
    # a TargetProof has the work folder of the channel's file
    allowed = {
        "channel.work.uri",
        "self.channel.work.uri",
        "situation.channel.work.uri",
        "arguments.work",
        "proof.work",
    }
    found = [
        f"{file.relative_to(BINLANE)}:{node.lineno}: {ast.unparse(node)}"
        for file in BINLANE.rglob("*.py")
        for node in ast.walk(parsed(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "WorkFolder"
        for text in map(ast.unparse, node.args)
        if (".work" in text or "record" in text) and text not in allowed
    ]
    assert found == []


@pytest.mark.parametrize("whole", [b"\x00" * (64 << 20), "\u202e" * (16 << 20)], ids=["bytes", "text"])
def test_an_error_spells_only_what_it_quotes(whole: bytes | str) -> None:
    tracemalloc.start()
    try:
        error = str(unexpected("binlane.kept_inputs.data", "a plan's inputs", whole))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "(" in error
    assert len(error) < 500
    assert peak < 1 << 20
