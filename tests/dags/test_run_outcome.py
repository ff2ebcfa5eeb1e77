"""When a run is a success: its window is finished, stopped inside on request, or there was nothing to do."""

from typing import Any

import pytest

from binlane.orchestration.airflow.run_outcome import RunOutcome

DONE = {
    **dict.fromkeys(("extract_segments", "event_metadata_filter", "adopt_plan"), "success"),
    **dict.fromkeys(("apply_lane_0", "apply_lane_1", "advance_watermark"), "success"),
    "verify_target": "skipped",
    "confirm_window": "running",
}
SKIPPED = {**dict.fromkeys(DONE, "skipped"), "extract_segments": "success", "confirm_window": "running"}
STOPPED = {**SKIPPED, "extract_segments": "skipped"}
LANES_SKIPPED = {**DONE, "apply_lane_0": "skipped", "apply_lane_1": "skipped", "advance_watermark": "skipped"}
WINDOW = {"window": "w1", "empty": False, "finished": False}
EMPTY = {**WINDOW, "empty": True}
AHEAD = {"window": "w1"}


def outcome(states: dict[str, Any], window: dict[str, Any] | None, advanced: Any = None, **more: Any) -> RunOutcome:
    wanted = {"dry_run": False, "verification": "none", "verifies_only": False, **more}
    return RunOutcome(states=states, window=window, advanced=advanced, **wanted)


@pytest.mark.parametrize(
    ("found", "problem", "undecided"),
    [
        pytest.param(outcome(DONE, WINDOW, AHEAD), None, None, id="applied"),
        pytest.param(outcome(SKIPPED, EMPTY), None, None, id="an empty window"),
        pytest.param(outcome(SKIPPED, {**WINDOW, "finished": True}), None, None, id="a window that is applied"),
        pytest.param(outcome(STOPPED, {}), None, None, id="a stopped channel"),
        pytest.param(outcome(STOPPED, {}, verification="full"), None, None, id="a stopped channel is not verified"),
        pytest.param(
            outcome({**STOPPED, "verify_target": "failed"}, {}), "failed or ended early: verify_target", None,
            id="a stopped channel, and a task that was marked",
        ),
        pytest.param(outcome(DONE, WINDOW, {"is_open": True}), None, None, id="stopped inside the window"),
        pytest.param(
            outcome(DONE, WINDOW, {"is_open": True}, verification="full"), None, None, id="not verified inside a window"
        ),
        pytest.param(
            outcome({**SKIPPED, "adopt_plan": "success"}, WINDOW, dry_run=True, verification="full"), None, None,
            id="a dry run",
        ),
        pytest.param(outcome(SKIPPED, EMPTY, verification="window"), None, None, id="no rows to verify"),
        pytest.param(
            outcome({**SKIPPED, "verify_target": "success"}, {}, verifies_only=True, verification="full"), None, None,
            id="verified alone",
        ),
        pytest.param(outcome(LANES_SKIPPED, WINDOW), None, "w1", id="skipped lanes"),
        pytest.param(outcome(LANES_SKIPPED, WINDOW, AHEAD), None, "w1", id="skipped lanes, an earlier try's answer"),
        pytest.param(
            outcome({**DONE, "apply_lane_1": "failed", "advance_watermark": "skipped"}, WINDOW),
            "failed or ended early: apply_lane", "w1", id="a lane was marked failed",
        ),
        pytest.param(
            outcome({**DONE, "advance_watermark": "upstream_failed"}, WINDOW),
            "failed or ended early: advance_watermark", "w1", id="what follows a failure",
        ),
        pytest.param(
            outcome({**DONE, "confirm_window": "failed"}, WINDOW, AHEAD), None, None, id="its own last try is no reason"
        ),
        pytest.param(
            outcome({**SKIPPED, "extract_segments": "skipped"}, None),
            "extract_segments ended before it had read the log", None, id="marked before it began",
        ),
        pytest.param(
            outcome(SKIPPED, None), "extract_segments ended before it had read the log", None,
            id="extraction marked a success",
        ),
        pytest.param(
            outcome(DONE, WINDOW, AHEAD, verification="window"), "verify_target was requested but was skipped", None,
            id="marked before it was verified",
        ),
        pytest.param(
            outcome(SKIPPED, EMPTY, verification="full"), "verify_target was requested but was skipped", None,
            id="a full verification needs no window",
        ),
        pytest.param(
            outcome(SKIPPED, {}, verifies_only=True, verification="window"),
            "verify_target was requested but was skipped", None, id="a verification alone that was skipped",
        ),
        pytest.param(
            outcome(SKIPPED, WINDOW, dry_run=True), "adopt_plan ended before it had shown the plan", None,
            id="a dry run without a plan",
        ),
    ],
)  # fmt: skip
def test_a_run_is_a_success_only_if_its_window_is_done_or_was_not_to_be(
    found: RunOutcome, problem: str | None, undecided: str | None
) -> None:
    assert (found.problem(), found.undecided) == (problem, undecided)
