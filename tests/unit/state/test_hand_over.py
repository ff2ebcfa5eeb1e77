"""What a channel gets of the one that it goes on for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from sqlalchemy import Connection, Delete, Update

from binlane.errors import PositionError
from binlane.model import LogPosition
from binlane.state.channels import Channel, Watermark
from binlane.state.records import successor
from binlane.state.records.successor import COVERAGE, HANDED_OVER, LEFT_BEHIND, hand_over
from binlane.state.tables import OF_CHANNELS

MARK = Watermark(seqno=7, source=LogPosition("binlog.1", 4), gtid_set="", source_time=1.0, fingerprint="")
FORMER = Channel("shop", "uuid", "source", MARK, 5)


class Recorder:
    """A connection that notes the tables of statements."""

    def __init__(self) -> None:
        self.updated: dict[str, dict[str, Any]] = {}
        self.deleted: list[str] = []

    def execute(self, statement: Update | Delete) -> None:
        if isinstance(statement, Update):
            self.updated[statement.entity_description["name"]] = dict(statement.compile().params)
        else:
            self.deleted.append(statement.entity_description["name"])


Scene = Callable[..., Recorder]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    def handed_over(now: Channel = FORMER, *, unplanned: bool = False, begun: object = None) -> Recorder:
        monkeypatch.setattr(successor, "read_channel", lambda *_, **__: now)
        monkeypatch.setattr(successor, "forget_unplanned", lambda *_: unplanned)
        monkeypatch.setattr(successor, "read_open_window", lambda *_, **__: begun)
        monkeypatch.setattr(successor, "hand_over_coverage", lambda *_: None)
        recorder = Recorder()
        hand_over(cast(Connection, recorder), FORMER, "shop2")
        return recorder

    return handed_over


def test_each_table_of_channels_is_handed_over_or_has_a_reason_why_it_is_not() -> None:
    decided = [*HANDED_OVER, *COVERAGE, *LEFT_BEHIND]
    assert sorted(table.name for table in decided) == sorted(table.name for table in OF_CHANNELS)
    assert all(LEFT_BEHIND.values())


def test_what_is_known_of_the_target_goes_to_the_successor(scene: Scene) -> None:
    recorder = scene()
    assert recorder.updated.keys() == {table.name for table in HANDED_OVER} | {"channels"}
    named: dict[str, Any] = {"channel": "shop2", "channel_1": "shop"}
    changed: dict[str, dict[str, Any]] = {
        "skips": {"seqno_1": 7},
        "suspects": {"log_end": None},
        "bootstraps": {"finished_for": ""},
    }
    for table in HANDED_OVER:
        assert recorder.updated[table.name] == {**named, **changed.get(table.name, {})}
    assert recorder.updated["channels"] == {"windows": 5, "channel_1": "shop2"}
    assert recorder.deleted == ["channels"]


def test_a_window_without_a_plan_is_none_that_the_successor_counts(scene: Scene) -> None:
    assert scene(unplanned=True).updated["channels"]["windows"] == 4


@pytest.mark.parametrize(
    "state",
    [{"now": replace(FORMER, watermark=replace(MARK, seqno=8))}, {"begun": object()}],
    ids=["has moved the watermark", "is being applied"],
)
def test_a_channel_that_has_gone_on_is_left_alone(scene: Scene, state: dict[str, Any]) -> None:
    with pytest.raises(PositionError, match="is being applied or has moved the watermark"):
        scene(**state)
