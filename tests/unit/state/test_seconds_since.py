"""How long ago a stored time is, by a clock that may have been set since."""

import pytest

from binlane.model import CLOCKS_DIFFER
from binlane.state.records.history import seconds_since

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("then", "seconds"),
    [
        (NOW - 7, 7.0),
        (NOW, 0.0),
        pytest.param(NOW + CLOCKS_DIFFER, 0.0, id="clocks that differ"),
        pytest.param(NOW + 3 * 3_600, 3 * 3_600.0, id="a clock that was set back"),
    ],
)
def test_a_time_of_the_future_is_not_a_moment_ago(then: float, seconds: float) -> None:
    assert seconds_since(then, NOW) == seconds
