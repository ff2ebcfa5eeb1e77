"""An error that belongs to one channel leaves the board and the metrics their answers about all others."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from binlane.board import board_reader
from binlane.board.board_reader import BoardReader
from binlane.board.host import Host, TriggeredRun
from binlane.connections import Endpoint, endpoint
from binlane.errors import PlanError
from binlane.health.airflow_runs import AirflowRuns
from binlane.health.health import State
from binlane.model import BlockHeader, LogPosition, RowCounts
from binlane.plan.window_plan import LaneFile, WindowPlan
from binlane.work.files import WorkFolder
from binlane.work.lane_files import BlockOutline

CHANNEL = '[source]\nconnection = "{0}_source"\n[target]\nconnection = "{0}_target"\n'


class DatabaseError(Exception):
    """Stands for the error of Airflow's own database."""


def reading(folder: Path, resolve_error: Exception | None = None, database: Exception | None = None) -> BoardReader:
    """Of three channels: the target of one does not answer, another one's connections raise ``resolve_error``, and
    the file of the last is gone when it is read. ``database``: raised when Airflow is asked for runs."""
    for name in ("far", "secret"):
        (folder / f"{name}.toml").write_text(CHANNEL.format(name))
    (folder / "vanished.toml").symlink_to(folder / "nowhere")

    def resolve(connection_id: str) -> Endpoint:
        if resolve_error is not None and connection_id.startswith("secret"):
            raise resolve_error
        return endpoint(connection_id, conn_type="mysql", host="127.0.0.1", port=1, user="u", password="p", extra={})

    def runs(_: str) -> AirflowRuns:
        if database is not None:
            raise database
        return AirflowRuns()

    def trigger(user: Any, dag_id: str, conf: Mapping[str, Any]) -> TriggeredRun:
        raise AssertionError("nothing is started")

    return BoardReader(
        Host(
            get_user=lambda: None, user_name=str, may=lambda *_: True, resolve=resolve, channels=lambda: folder,
            runs=runs, scheduler_silent=lambda: None, trigger=trigger, database_error=DatabaseError,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    "error", [RuntimeError("the secrets backend is sealed"), StopIteration("no more"), KeyError("x")]
)
def test_a_channel_that_cannot_be_read_is_unreachable_and_the_others_are_as_they_are(
    tmp_path: Path, error: Exception
) -> None:
    board = reading(tmp_path, error)
    found = {health.channel: health.findings[0] for health in board.healths("someone")}
    cards = {card.name: card.findings[0] for card in board.channels("someone")}
    for findings in (found, cards):
        assert {name: finding.state for name, finding in findings.items()} == dict.fromkeys(
            ("far", "secret", "vanished"), State.UNREACHABLE
        )
    for text in (found["secret"].text, cards["secret"].text):
        assert text == f"{type(error).__name__}: {error}"
    assert "TargetUnavailableError" in found["far"].text
    assert "vanished.toml: cannot be read" in found["vanished"].text


def test_an_error_of_airflow_s_own_database_is_none_of_a_channel(tmp_path: Path) -> None:
    board = reading(tmp_path, database=DatabaseError("locked"))
    for read in (board.healths, board.channels):
        with pytest.raises(DatabaseError, match="locked"):
            read("someone")


@pytest.mark.parametrize("known", [True, False], ids=["digests of the files", "the plan's own"])
def test_no_other_plan_than_the_target_s_is_parsed(
    tmp_path: Path, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gigabyte of empty lists takes twenty in memory."""

    def parse(*_: object) -> None:
        raise AssertionError("the file was parsed")

    monkeypatch.setattr(WindowPlan, "from_json", parse)
    window = WorkFolder(str(tmp_path), {"key/plan.json": "0" * 64} if known else None)
    folder = window.plans("key")
    for data in (b"[[],[]]", b'{"digest": "%s"}' % (b"1" * 64)):
        folder.replace("plan.json", data)
        with pytest.raises(PlanError, match=r"key/plan\.json: expected (SHA-256 0000|the plan 1111)"):
            board_reader._cached_plan(folder, "1" * 64)


def test_a_folder_that_does_not_answer_keeps_no_other_page_waiting_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_reader, "_LONGEST_WAIT", 0.05)
    with board_reader._READING, pytest.raises(board_reader.BusyError, match="another window are still being read"):
        board_reader._plans(WorkFolder(str(tmp_path)))
    with board_reader._reading():
        pass


@pytest.mark.parametrize(("most", "reads"), [(2, 1), (1, 2)], ids=["few", "many"])
def test_the_blocks_of_a_lane_file_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, reads: int
) -> None:
    made = outlines_by(monkeypatch, 2)
    folder, remembered = WorkFolder(str(tmp_path)), board_reader._Outlines()
    monkeypatch.setattr(board_reader, "_MOST_OUTLINES", most)
    for _ in range(2):
        assert [each.items for each in remembered.of(folder, lane_file(1))] == [0, 1]
    assert len(made) == reads


def test_the_blocks_of_all_lane_files_have_one_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever turns the pages of a channel's lanes decides how many files are read."""
    outlines_by(monkeypatch, 1_000)
    folder, remembered = WorkFolder(str(tmp_path)), board_reader._Outlines()
    for number in range(100):
        assert len([*remembered.of(folder, lane_file(number))]) == 1_000
    assert sum(map(len, remembered._found.values())) <= board_reader._MOST_OUTLINES == 20_000


def test_a_page_that_needs_the_first_blocks_alone_keeps_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = outlines_by(monkeypatch, 5)
    folder, remembered = WorkFolder(str(tmp_path)), board_reader._Outlines()
    with contextlib.closing(remembered.of(folder, lane_file(1))) as page:
        next(page)
    assert len([*remembered.of(folder, lane_file(1))]) == 5
    assert len(made) == 1


def lane_file(number: int) -> LaneFile:
    return LaneFile(f"lanes/0000/{number}.parquet", 1, 1, 1, 1, 1, "0" * 64)


def outlines_by(monkeypatch: pytest.MonkeyPatch, blocks: int) -> list[int]:
    """A lane file of so many blocks, and how often one was read."""
    made, header = list[int](), BlockHeader(1, 1, 1, LogPosition("log", 1), "", 0.0)

    def read(*_: object) -> Generator[BlockOutline]:
        made.append(1)
        yield from (BlockOutline(header, number, frozenset(), RowCounts()) for number in range(blocks))

    monkeypatch.setattr(board_reader, "block_outlines", read)
    return made
