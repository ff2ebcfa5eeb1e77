"""What a run tells of itself: its note, and the asset event of a watermark."""

import re
from typing import Any

import pytest

from binlane import airflow_plugin
from binlane.errors import DriftError, TargetError
from binlane.safe_text import markdown
from tests.dags.scene import HEALTH, Run, Steps, last_event, last_note, run_window, stand_in

__all__ = ["run_window"]

STATS = "airflow.sdk.observability.stats.Stats"


def test_a_committed_watermark_is_an_asset_event(run_window: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, float]] = []
    monkeypatch.setattr(f"{STATS}.gauge", lambda name, value, **_: sent.append((name, value)))
    monkeypatch.setattr(f"{STATS}.incr", lambda name, count, **_: sent.append((name, count)))
    steps = Steps({})
    mark = {"note": "done", "seqno": 7, "gtid": "0-1-7", "time": 1.5, "transactions": 7, "read": 12, "rows": 4}
    monkeypatch.setattr(steps, "advance", lambda *_: {**mark, "window": "w1"})
    state, _ = run_window(steps)
    assert state == "success"
    event = last_event()
    assert event.extra == {"seqno": 7, "gtid": "0-1-7", "time": 1.5, "window": "w1"}
    assert (event.source_dag_id, event.source_task_id) == ("replicate_demo", "advance_watermark")
    assert ("binlane.reduction_ratio.demo", 3.0) in sent
    assert ("binlane.transactions", 7) in sent
    assert ("binlane.row_changes.demo", 12) in sent
    assert ("binlane.health.demo", 2) in sent
    assert ("binlane.drifted", 3) in sent
    assert {name for name, _ in sent} >= {
        *("binlane.lag_seconds", "binlane.lag_seconds.demo", "binlane.rows.demo", "binlane.window_seconds.demo"),
    }


@pytest.mark.parametrize(
    ("answer", "conf", "drift", "expected"),
    [
        pytest.param({}, {"verify": "window"}, "", "all that was done\n\nall clean", id="applied and verified"),
        pytest.param({}, {"verify": "full"}, "2 drift\nt.a\nt.b", "2 drift\nt.a\n\nall that was done", id="drift"),
        pytest.param({"empty": True}, {}, "", "nothing to apply: the watermark is at seqno 1,234", id="nothing"),
        pytest.param({}, {"verify": "full", "verify_only": True}, "", "all clean", id="verified alone"),
    ],
)
def test_a_runs_note_shows_its_result(
    run_window: Run,
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, Any],
    conf: dict[str, Any],
    drift: str,
    expected: str,
) -> None:
    stand_in(monkeypatch, drift)
    steps = Steps(answer)
    monkeypatch.setattr(steps, "advance", lambda *_: {"note": "all that was done"})
    run_window(steps, **conf)
    assert last_note() == f"{expected}\n\n{HEALTH}"


def test_the_note_of_a_run_that_failed_says_what_ended_its_lane(
    run_window: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apply_lane(*_: Any) -> dict[str, Any]:
        raise DriftError("lane 0, seqno 7: a row is missing\nwhat to do\nand more")

    steps = Steps({})
    monkeypatch.setattr(steps, "apply_lane", apply_lane)
    state, _ = run_window(steps)
    note, health = (last_note() or "").split("\n\nhealth: ")
    assert (state, note) == ("failed", "lane 0, seqno 7: a row is missing\nwhat to do")
    # the run has not ended, but it will not be a success
    assert re.match(r"failed: the last run in Airflow, \S+, failed at .*apply_lane.*; drifted: ", health), health


def test_an_error_of_a_megabyte_is_a_short_note(run_window: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's scheduler writes it."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from binlane.orchestration.airflow.dag_shape import ERROR_KEY, LONGEST_NOTE

    said = f"lane 0: the target says: {'a' * (1 << 20)} (1045); look at the target"

    def apply_lane(*_: Any) -> dict[str, Any]:
        raise TargetError(said)

    steps = Steps({})
    monkeypatch.setattr(steps, "apply_lane", apply_lane)
    state, _ = run_window(steps)
    with create_session() as session:
        newest = select(XComModel.value).where(XComModel.key == ERROR_KEY).order_by(XComModel.timestamp.desc())
        stored = session.scalars(newest.limit(1)).one()
    assert state == "failed"
    assert str(stored).startswith("lane 0: the target says: aaa")
    assert str(stored).endswith("(1045); look at the target")
    assert len(stored) < LONGEST_NOTE + 100
    assert len(last_note() or "") <= airflow_plugin.NOTE_LENGTH


def test_a_metric_that_cannot_be_sent_fails_no_run(run_window: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AttributeError("no such client")

    monkeypatch.setattr(f"{STATS}.gauge", refuse)
    monkeypatch.setattr(f"{STATS}.incr", refuse)
    steps = Steps({})
    mark = {"note": "done", "seqno": 7, "gtid": "0-1-7", "time": 1.5, "transactions": 7, "read": 12, "rows": 4}
    monkeypatch.setattr(steps, "advance", lambda *_: {**mark, "window": "w1"})
    state, _ = run_window(steps)
    assert (state, last_note()) == ("success", f"done\n\n{HEALTH}")


def test_the_note_of_a_run_that_failed_behind_its_watermark_has_the_error_before_the_result(
    run_window: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise LookupError("an asset that is none")

    steps = Steps({})
    monkeypatch.setattr(steps, "advance", lambda *_: {"note": "all that was done"})
    monkeypatch.setattr("binlane.orchestration.airflow.replicate_dag.announce", fail)
    state, _ = run_window(steps)
    note, _ = (last_note() or "").split("\n\nhealth: ")
    assert (state, note) == ("failed", "LookupError: an asset that is none\n\nall that was done")


def test_a_note_keeps_what_a_person_has_written_and_airflows_length(
    run_window: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    steps = Steps({})

    def advance(*_: Any) -> dict[str, Any]:
        with create_session() as session:
            session.scalars(select(DagRun).order_by(DagRun.id.desc()).limit(1)).one().note = "mine"
        return {"note": "x" * 2_000}

    monkeypatch.setattr(steps, "advance", advance)
    run_window(steps)
    note = last_note()
    assert note is not None
    assert (note[:7], len(note), note.endswith(f"x\n\n{HEALTH}")) == ("mine\n\nx", 1_000, True)


GOOD, BAD = "idle: everything up to seqno 7 is applied", "failed: lane 0 stopped"
IDLE, FAILED = f"health: {GOOD}", f"health: {BAD}"


@pytest.mark.parametrize(
    ("before", "texts", "health", "expected"),
    [
        pytest.param(f"mine\n\n{FAILED}", ["done"], GOOD, f"mine\n\ndone\n\n{IDLE}", id="ended again"),
        pytest.param(f"mine\n\n{IDLE}\n\nhis", [], BAD, f"mine\n\nhis\n\n{FAILED}", id="a person wrote below it"),
        pytest.param(f"{FAILED}\n\n{IDLE}", ["done"], BAD, f"done\n\n{FAILED}", id="two from before"),
        pytest.param("", ["w1 is unfinished"], BAD, f"w1 is unfinished\n\n{FAILED}", id="a reason before it"),
        pytest.param(f"done\n\n{IDLE}", ["done"], GOOD, f"done\n\n{IDLE}", id="nothing new"),
        pytest.param(f"mine\n\n{IDLE}", ["done"], "", f"mine\n\n{IDLE}\n\ndone", id="the last task never ran"),
        pytest.param("x" * 990, ["done"], GOOD, f"{'x' * (998 - len(IDLE))}\n\n{IDLE}", id="a full note"),
        pytest.param("mine", [], "x" * 2_000, "health: " + "x" * 992, id="nothing else has room"),
    ],
)  # fmt: skip
def test_a_note_ends_with_the_newest_health_alone(before: str, texts: list[str], health: str, expected: str) -> None:
    assert airflow_plugin._note(before, texts, health) == expected


@pytest.mark.parametrize("line", [IDLE, f"  {IDLE}", IDLE.title(), "**health**: idle", "> health: idle"])
def test_no_name_with_a_line_break_is_the_note_s_health(line: str) -> None:
    """Of a table that a user of the source has named so, in an error or a result."""
    for text in (f"channel shop: app.x\n{line}: rows of seqno 17 need a table", line):
        for health in ("", BAD):
            note = airflow_plugin._note("", [markdown(text)], health)
            own = [each for each in note.splitlines() if re.match(r"[^\w.]*health", each, re.I)]
            assert own == ([FAILED] if health else [])
            assert "idle" in note.lower()
