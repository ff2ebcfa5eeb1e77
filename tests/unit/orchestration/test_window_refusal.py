"""The error that refuses a window is raised as it is, whether or not the target can keep it."""

from __future__ import annotations

import pytest

from binlane.connections import Endpoint
from binlane.errors import PrecheckError
from binlane.orchestration.window_refusal import recorded_refusal


def test_an_error_that_the_target_cannot_keep_is_raised_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    with (
        pytest.raises(PrecheckError, match="nothing was written"),
        recorded_refusal(Endpoint("t", "127.0.0.1", 1, "u", "p"), "shop", "w"),
    ):
        raise PrecheckError("nothing was written")
    assert "the refusal of window w is not recorded" in caplog.text
