"""A place without GTIDs is one of a log if the times of both do not speak against it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from binlane.orchestration.commands.copies.restore_plan import EndRequest, RestoreRequest, _belief, _start
from binlane.restore.dump_file import DumpPlace
from binlane.source.copy_times import CopyTimes, contradiction
from binlane.source.start_position import begin
from tests.unit.binlog.cases import crc, mysql_gtid, query
from tests.unit.source.archives import BEGUN, archive, log_file

DAY, PLACE = 86_400, "binlog.000002:4"
GTIDS = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"


def written(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("begun", "ended", "said"),
    [
        pytest.param(None, 3600, "", id="of that day"),
        pytest.param(None, -DAY // 2, "", id="of another time zone"),
        pytest.param(None, 6 * DAY, "", id="of many days"),
        pytest.param(
            None, -2 * DAY, r"binlog\.000002 was begun at 2023-11-14 22:13, and the copy was complete", id="before"
        ),
        pytest.param(
            None, 9 * DAY, "what follows in the log is of 2023-11-14 22:13, and the copy was complete", id="behind"
        ),
        pytest.param(
            5 * DAY, 6 * DAY, "what follows in the log .* and the copy was begun at 2023-11-19 22:13", id="begun behind"
        ),
        pytest.param(DAY // 2, 30 * DAY, "", id="of a month"),
        pytest.param(None, None, "", id="unknown"),
    ],
)
@pytest.mark.parametrize("transactions", [(3,), ()], ids=["a transaction", "the next file"])
def test_a_dump_without_gtids_is_of_the_time_of_its_place(
    begun: int | None, ended: int | None, said: str, transactions: tuple[int, ...], tmp_path: Path
) -> None:
    """``begun`` and ``ended``: of the dump, from the beginning of the place's file on."""
    files = [log_file(number, each, Flavor.MYSQL) for number, each in ((1, (1, 2)), (2, transactions), (3, (4,)))]
    source = archive(tmp_path, *files)
    texts = ["" if each is None else f"at {written(BEGUN + each)}" for each in (begun, ended)]
    place = DumpPlace(PLACE, "", frozenset({"shop"}), 1, times=CopyTimes.of(*texts))
    request = RestoreRequest(None, "d.sql", "log", ("shop",), (), None, EndRequest("now", None), None, "target")
    if said:
        with pytest.raises(PrecheckError, match=rf"dump's place, binlog\.000002:4, .*{said}.*--at FILE:OFFSET"):
            _start(source, request, place)
        return
    start = _start(source, request, place)
    assert start.position.file == "binlog.000002"
    [believed] = _belief(request, place, start)
    assert "the dump has no GTIDs that show it" in believed


def test_a_place_that_was_asked_for_and_one_with_gtids_are_not_judged_by_their_times(tmp_path: Path) -> None:
    source = archive(tmp_path, log_file(1, (1,), Flavor.MYSQL), log_file(2, (3,), Flavor.MYSQL))
    times = CopyTimes.of("", written(BEGUN - 30 * DAY))
    asked = RestoreRequest(None, "d.sql", "log", ("shop",), (), None, EndRequest("now", None), PLACE, "target")
    place = DumpPlace(PLACE, "", frozenset({"shop"}), 1, times=times)
    assert _belief(asked, place, _start(source, asked, place)) == ()
    with_gtids = DumpPlace(PLACE, GTIDS, frozenset({"shop"}), 1, times=times)
    unasked = RestoreRequest(None, "d.sql", "log", ("shop",), (), None, EndRequest("now", None), None, "target")
    assert _belief(unasked, with_gtids, _start(source, unasked, with_gtids)) == ()


def test_a_transaction_has_the_time_at_which_this_server_has_committed_it(tmp_path: Path) -> None:
    """A delayed replica's log has the times of its source, and its own in the GTID."""
    late = BEGUN + 20 * DAY
    source = archive(tmp_path, log_file(1, (), Flavor.MYSQL, end=None))
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes() + crc(mysql_gtid(1, late * 1_000_000)) + crc(query(b"CREATE TABLE t (id INT)")))
    start = begin(source, "binlog.000001:4")
    assert contradiction(source, start, CopyTimes.of("", written(late))) == ""
    assert "what follows in the log is of" in contradiction(source, start, CopyTimes.of("", written(late + 9 * DAY)))


@pytest.mark.parametrize(
    "text", ["", "-- Dump completed", "2026-99-99 10:00:00", "2026-01-01", "2026-01-01 99:00:00", "x" * 100]
)
def test_a_text_without_a_time_says_nothing(text: str) -> None:
    assert CopyTimes.of(text, text) == CopyTimes()


def test_an_hour_may_have_one_digit() -> None:
    assert CopyTimes.of("", "-- Dump completed on 2023-11-14  2:13:20").ended == BEGUN - 20 * 3600
