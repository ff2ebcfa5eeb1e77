"""Windows with every kind of DROP, stopped behind each transaction and killed at any statement, end in equal data."""

from __future__ import annotations

import pytest

from tests.chaos.faults import Fault, When
from tests.chaos.worker import run_window, was_killed
from tests.integration.window.conftest import Channel, ChannelOf, run_on
from tests.integration.window.ddl.test_resumed_drops import (
    BEFORE,
    BEHIND,
    DROPS,
    FAMILIES,
    ROWS,
    stopped_everywhere,
)
from tests.trials.sampling import IS_WHOLE

PRODUCT = pytest.mark.parametrize(
    ("what", "format_"), [(what, each) for what in DROPS for each in ("ROW", "STATEMENT")]
)
STEP = 7 if IS_WHOLE else 40
"""Of the statements of a window, every so many-th is one at which it is killed."""


@FAMILIES
@PRODUCT
def test_a_window_that_is_stopped_behind_any_transaction_goes_on(
    channel_of: ChannelOf, family: str, what: str, format_: str
) -> None:
    channel = channel_of(family, family)
    stopped_everywhere(channel, what, format_)
    channel.assert_equal()


def killed_everywhere(channel: Channel, what: str, format_: str) -> int:
    """Kill runs of one window at ever later statements, each continued by the next; how many were killed."""
    run_on(channel.source, *BEFORE)
    assert channel.run() is not None
    run_on(channel.source, f"SET SESSION binlog_format = {format_}", *ROWS, *DROPS[what], *BEHIND)
    killed, at = 0, 20
    while was_killed(run_window, channel.config, channel.endpoints, Fault(at, When.SENT)):
        killed, at = killed + 1, at + STEP
    while channel.run() is not None:
        pass
    channel.assert_equal()
    return killed


@FAMILIES
@PRODUCT
def test_a_window_that_is_killed_at_any_statement_goes_on(
    channel_of: ChannelOf, family: str, what: str, format_: str
) -> None:
    assert killed_everywhere(channel_of(family, family), what, format_) > 0
