"""A window is stopped at a time only where that time divides its transactions: sessions say what time it is."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import cast

import pytest

from binlane.errors import PlanError
from binlane.work import lookup
from binlane.work.files import WorkFolder

FOLDER = cast("WorkFolder", SimpleNamespace(uri="file:///work/w"))


@pytest.mark.parametrize(
    ("times", "seqno"),
    [
        ((100, 200, 300, 400), 12),
        # clocks and threads differ a little
        ((100, 200, 300, 241, 400), 12),
        ((100, 200, 2**31), 12),
        ((100, 2**31, 200, 400), None),
        ((100, 200), None),
    ],
)
def test_a_time_that_one_transaction_says_is_no_stop_while_older_ones_follow(
    times: tuple[float, ...], seqno: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered = [(number, SimpleNamespace(commit_time=time)) for number, time in enumerate(times, 11)]
    monkeypatch.setattr(lookup, "read_manifest", lambda _: SimpleNamespace(segments=[None]))
    monkeypatch.setattr(lookup, "segment_bytes", lambda _folder, _segment: contextlib.nullcontext())
    monkeypatch.setattr(lookup, "_numbered", lambda _data, _segment: numbered)
    if seqno is None:
        with pytest.raises(PlanError):
            lookup.last_before(FOLDER, 300.0)
    else:
        assert lookup.last_before(FOLDER, 300.0) == seqno
