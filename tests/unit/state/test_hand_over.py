"""What a channel gets of the one that it goes on for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from sqlalchemy import Connection, Delete, Update

from binlane.errors import PositionError
from binlane.model import LogPosition
from binlane.state.carried import prepared
from binlane.state.channels import Channel, Watermark

MARK = Watermark(seqno=7, source=LogPosition("binlog.1", 4), gtid_set="", source_time=1.0, fingerprint="")
FORMER = Channel("shop", "uuid", "source", MARK, 1)


class Recorder:
    """A connection that notes the tables of statements."""

    def __init__(self) -> None:
        self.updated: list[tuple[str, dict[str, Any]]] = []
        self.deleted: list[str] = []

    def execute(self, statement: Update | Delete) -> None:
        if isinstance(statement, Update):
            self.updated.append((statement.entity_description["name"], dict(statement.compile().params)))
        else:
            self.deleted.append(statement.entity_description["name"])


def test_what_the_target_alone_has_of_a_channel_goes_to_its_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "read_channel", lambda *_, **__: FORMER)
    monkeypatch.setattr(prepared, "read_open_window", lambda *_: None)
    recorder = Recorder()
    prepared.hand_over(cast(Connection, recorder), FORMER, "shop2")
    names = {"prepared", "prepared_chunks", "skips", "skipped_events", "conflicts", "repairs"}
    assert {name for name, _ in recorder.updated} == names
    assert all(params == {"channel": "shop2", "channel_1": "shop", "seqno_1": 7} for _, params in recorder.updated)
    assert recorder.deleted == ["channels"]


def test_a_channel_that_has_gone_on_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = replace(FORMER, watermark=replace(MARK, seqno=8))
    monkeypatch.setattr(prepared, "read_channel", lambda *_, **__: moved)
    monkeypatch.setattr(prepared, "read_open_window", lambda *_: None)
    recorder = Recorder()
    with pytest.raises(PositionError, match="has moved the watermark"):
        prepared.hand_over(cast(Connection, recorder), FORMER, "shop2")
    assert (recorder.updated, recorder.deleted) == ([], [])
