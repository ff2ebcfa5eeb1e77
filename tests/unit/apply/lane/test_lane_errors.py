"""The text of an error that stops a lane."""

from __future__ import annotations

import pytest

from binlane.apply.lane.lane_errors import with_place
from binlane.model import BlockHeader, LogPosition, TableKey

HEADER = BlockHeader(17, 17, 1, LogPosition("b.000001", 4), "", 0.0)


@pytest.mark.parametrize("outside", ["", "free space on the target"])
def test_a_line_break_in_a_name_ends_no_line_of_a_lane_s_error(outside: str) -> None:
    key = TableKey("app", "x\nhealth: idle")

    text = with_place(
        f"{key}: rows of seqno 17 need a table that does not exist on the target", "lane 0", HEADER, "shop", None,
        may_overwrite=False, outside=outside,
    )  # fmt: skip

    assert text.splitlines() == [text]
    assert r": app.x\nhealth: idle: rows of seqno 17 need a table" in text
    assert text.endswith(outside or "or load the target anew")
