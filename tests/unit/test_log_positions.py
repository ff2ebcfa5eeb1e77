"""Which of two places of a log is behind the other, also where the log has got another name in between."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from binlane.errors import PlanError
from binlane.model import Flavor, LogPosition, TableKey
from binlane.restore import log_scan
from binlane.restore.end import EndPosition
from binlane.restore.logged_transactions import LoggedTransaction, RowTransactions
from binlane.sessions.server_proof import ServerProof
from binlane.source.identity import Start
from binlane.source.protocol import EventSource, LogState
from binlane.source.session_end import SessionEnd
from binlane.sql.programs.known import KnownProgram, ProgramSet, digest_of
from binlane.state.records.verifications import DRIFT, PENDING, Suspect
from tests.unit.sql.programs.test_known import TARGET

FILES = ("old.000899", "old.000900", "new.000001", "new.000002")
"""A server was started with another log_bin and the former log_bin_index."""
OLD, NEW = LogPosition("old.000900", 4711), LogPosition("new.000001", 157)


@pytest.mark.parametrize(
    ("one", "other", "files", "expected"),
    [
        (LogPosition("b.000002", 4), LogPosition("b.000001", 900), (), True),
        (LogPosition("b.1000000", 4), LogPosition("b.999999", 4), (), True),
        (LogPosition("b.000001", 5), LogPosition("b.000001", 4), (), True),
        (LogPosition("b.000001", 4), LogPosition("b.000001", 4), FILES, False),
        (NEW, OLD, (), False),
        (OLD, NEW, (), False),
        (NEW, OLD, FILES, True),
        (OLD, NEW, FILES, False),
        (NEW, LogPosition("old.000001", 4), FILES, False),
        (LogPosition("b.²", 4), LogPosition("b.000001", 4), (), False),
    ],
)
def test_a_place_is_behind_another_one_by_numbers_of_one_name_or_by_the_logs_files(
    one: LogPosition, other: LogPosition, files: tuple[str, ...], expected: bool
) -> None:
    assert one.is_behind(other, files) is expected


def test_a_server_whose_log_got_another_name_may_have_reached_the_watermark() -> None:
    proof = ServerProof("mysql server_uuid 1", "", OLD)
    assert proof.refused_end(NEW) is None
    assert proof.refused_end(LogPosition(OLD.file, OLD.offset - 1)) is not None


@pytest.mark.parametrize(
    ("end", "reached", "state"),
    [
        (OLD, OLD, DRIFT),
        (OLD, LogPosition("old.000901", 4), DRIFT),
        # the watermark has not come to the log's new name, whose numbers are lower
        (NEW, OLD, PENDING),
        (OLD, NEW, PENDING),
    ],
)
def test_a_row_is_drift_where_the_watermark_is_known_to_have_passed_the_logs_end_of_then(
    end: LogPosition, reached: LogPosition, state: str
) -> None:
    row = Suspect(TableKey("shop", "t"), ("1",), PENDING, 5, (), ("a",), ("b",), "", log_end=str(end))
    assert replace(row, seqno=9, reached=str(reached)).settled_by(row).state == state


def test_a_session_that_ended_with_the_logs_former_name_is_none_of_the_new_one() -> None:
    ended = SessionEnd.of(f"7:11@{OLD}")
    assert [ended.is_before(each) for each in (LogPosition("old.000901", 4), OLD, NEW)] == [True, False, False]
    assert not SessionEnd.of(f"7:11@{NEW}").is_before(OLD)


def test_programs_that_were_read_under_another_name_of_the_log_are_not_known() -> None:
    known = ProgramSet(
        {("function", TableKey("shop", "f")): KnownProgram("function", TableKey("shop", "f"), digest_of(TARGET), NEW)}
    )
    held = [
        known.holds("function", TableKey("shop", "f"), TARGET, at) for at in (NEW, LogPosition("new.000010", 4), OLD)
    ]
    assert held == [True, True, False]


def test_a_restore_to_a_place_behind_a_rename_of_the_log_reads_up_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [LogPosition(FILES[0], 4), OLD, NEW, LogPosition(FILES[3], 300), LogPosition(FILES[3], 400)]
    logged = [
        LoggedTransaction(start, end, "", 100.0, (), (), concerns=False) for start, end in itertools.pairwise(places)
    ]

    class Log:
        name = "db"

        def state(self) -> LogState:
            return LogState("", Flavor.MYSQL, FILES, places[-1], 1000.0, closes_by_clock=True)

    monkeypatch.setattr(log_scan, "logged_transactions", lambda *_: (each for each in logged))
    source = cast("EventSource", Log())

    def scanned(end: LogPosition, begin: LogPosition = places[0]) -> LogPosition:
        start = Start(0, begin, "", 50.0, "", "")
        return log_scan.scan(source, start, frozenset(), EndPosition("there", end), finds_begin=False).end

    assert [scanned(end) for end in places[1:]] == places[1:]
    with pytest.raises(PlanError, match="expected a place behind the base"):
        scanned(OLD, NEW)
    with pytest.raises(PlanError, match="one inside the transaction from"):
        scanned(LogPosition(FILES[3], 200))


def test_a_run_of_another_file_is_in_front_of_a_place_by_the_logs_files() -> None:
    end = EndPosition("there", NEW, FILES)
    ends, none = np.array([200, 300]), np.zeros(2, np.int64)

    def passed(file: str) -> int:
        run = RowTransactions(file, ends, ends, ends * 1.0, none.astype(np.uint64), none, none > 0, [].__getitem__)
        return end.passes(run)

    assert [passed(file) for file in FILES] == [2, 2, 0, 0]
