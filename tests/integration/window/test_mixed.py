"""A window of mixed traffic from server to server: both hold the same afterwards, whatever families they are of."""

from __future__ import annotations

import pytest

from tests.integration.window.conftest import Channel


def test_a_mixed_window_makes_both_servers_equal_and_running_it_again_is_a_no_op(channel: Channel) -> None:
    channel.traffic()
    done = channel.run()
    assert done is not None
    channel.assert_equal()
    before = channel.status
    assert before.channel.watermark.seqno == done["seqno"] > 400
    assert channel.run() is None
    assert channel.status == before
    channel.traffic(seed=2)
    again = channel.run()
    assert again is not None
    assert again["seqno"] > done["seqno"] + 400
    channel.assert_equal()
