"""Epochs begin at the same transactions, however the log is cut into runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from binlane.plan.consistency import EpochStarts, level_of

TIMES = st.lists(st.integers(0, 400).map(float), min_size=1, max_size=60)


def starts_of(times: list[float], transactions: int | None, cuts: list[int], consistency: str = "epoch") -> list[int]:
    """The seqnos that begin epochs, of transactions from seqno 11 on, given in runs."""
    starts, found, at = EpochStarts(level_of(consistency, 60), transactions), list[int](), 0
    edges = sorted({*cuts, len(times)})
    while at < len(times):
        end = next(edge for edge in edges if edge > at)
        first = at + starts.first_in(11 + at, times[at:end])
        if first < end:
            starts.begin(11 + first, times[first])
            found.append(11 + first)
            assert starts.first_in(11 + first, times[first:end]) > 0
        at = first
    return found


@given(TIMES, st.none() | st.integers(1, 20), st.lists(st.integers(1, 60)))
def test_runs_of_any_length_give_the_epochs_of_single_transactions(
    times: list[float], transactions: int | None, cuts: list[int]
) -> None:
    minutes = [int(time // 60) for time in times]
    expected = [
        11 + place
        for place, minute in enumerate(minutes)
        if minute not in minutes[:place] or (transactions is not None and (10 + place) % transactions == 0)
    ]
    cuts = [cut for cut in cuts if cut < len(times)]
    assert starts_of(times, transactions, cuts) == expected
    assert starts_of(times, transactions, list(range(1, len(times)))) == expected


@given(TIMES)
def test_levels_without_epochs_have_none(times: list[float]) -> None:
    assert starts_of(times, 2, [], "eventual") == starts_of(times, 2, [], "any_time") == []
