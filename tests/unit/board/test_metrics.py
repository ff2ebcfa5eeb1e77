"""The metrics for Prometheus, read back by Prometheus's own parser."""

from prometheus_client.parser import text_string_to_metric_families

from binlane.board.metrics import FIGURES, exposition
from binlane.health.health import Health, State, unknown
from tests.unit.health.test_health import DAY, LEFT, NOW, of


def values(*channels: Health) -> dict[tuple[str, ...], float]:
    """By metric and labels."""
    text = exposition(channels).decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_channel_has_its_states_and_figures() -> None:
    found = values(of(drifted=3, stopped="now", window=LEFT, is_drilled=True, drilled="equal", drilled_at=NOW - DAY))
    assert (found["binlane_up", "shop"], found["binlane_health_severity", "shop"]) == (1, 2)
    held = {state for state in State if found["binlane_health_state", "shop", state.value]}
    assert held == {State.DRIFTED, State.STOPPED}
    assert (found["binlane_drifted", "shop"], found["binlane_lag_seconds", "shop"]) == (3, 60)
    assert (found["binlane_watermark_seqno", "shop"], found["binlane_open_window", "shop"]) == (131, 1)
    assert {name.removeprefix("binlane_") for name, *_ in found} >= set(FIGURES)


def test_a_channel_that_cannot_be_read_is_down_and_has_no_figures() -> None:
    found = values(of(), unknown("far", "the target does not answer"))
    assert (found["binlane_up", "shop"], found["binlane_up", "far"]) == (1, 0)
    assert found["binlane_health_severity", "far"] == 3
    assert found["binlane_health_state", "far", "unreachable"] == 1
    assert not [name for name, channel, *_ in found if channel == "far" and name.removeprefix("binlane_") in FIGURES]


def test_an_archive_is_not_unverified() -> None:
    assert ("binlane_unverified_seconds", "shop") not in values(of(is_comparable=False))


def test_a_hostile_name_stays_a_label() -> None:
    hostile = 'x"} 1\nbinlane_up{channel="y\\'
    assert {channel for _, channel, *_ in values(unknown(hostile, "gone"))} == {hostile}
