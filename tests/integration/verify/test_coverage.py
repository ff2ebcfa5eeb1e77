"""What verifications have covered: kept when rows of windows are deleted, and bound to the channel's rules."""

from __future__ import annotations

import json

import pytest

from binlane.orchestration.commands.verify import verify_channel
from binlane.servers.engines import engine_of
from binlane.state.records.history import read_snapshot
from binlane.verify.outcome import Options
from tests.integration.verify.scene import tables
from tests.integration.window.conftest import CHANNEL, Channel, channel, clean_servers, run_on

__all__ = ["channel", "clean_servers"]


def windows(channel: Channel, count: int) -> None:
    for _ in range(count):
        run_on(channel.source, "UPDATE app.a SET n = n + 1 WHERE id = 1")
        assert channel.run() is not None


def uncovered(channel: Channel) -> float | None:
    return read_snapshot(engine_of(channel.endpoints.target), CHANNEL).uncovered_since


def test_a_change_stays_unverified_since_then_when_its_window_s_row_is_deleted(channel: Channel) -> None:
    channel.write_channel("[work]\nkeep_windows = 1\nkeep_history = 2\n")
    tables(channel)
    since = uncovered(channel)
    assert since is not None
    windows(channel, 5)
    assert channel.run() is None
    assert channel.target.query("SELECT COUNT(*) FROM binlane.windows") == [(2,)]
    assert uncovered(channel) == since

    verify_channel(channel.config, channel.endpoints, Options(full=True))
    assert uncovered(channel) is None
    windows(channel, 1)
    later = uncovered(channel)
    assert later is not None
    assert later > since
    windows(channel, 4)
    assert uncovered(channel) == later


def test_other_rules_have_not_been_verified(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    left_out = '[filter]\nexclude_tables = ["app.c"]\n'
    channel.write_channel(left_out)
    tables(channel)

    def through() -> tuple[int, int | None]:
        capsys.readouterr()
        assert channel.cli("status", CHANNEL, "--json") == 0
        found = json.loads(capsys.readouterr().out)["verified"]
        return found["through"], found["full_through"]

    seqno = channel.status.channel.watermark.seqno
    verify_channel(channel.config, channel.endpoints, Options(full=True))
    assert through() == (seqno, seqno)
    channel.write_channel()
    assert through() == (0, None)
    # the rows of a window are not all rows
    verify_channel(channel.config, channel.endpoints, Options())
    assert through()[1] is None
    channel.write_channel(left_out)
    verify_channel(channel.config, channel.endpoints, Options(full=True))
    assert through() == (seqno, seqno)
