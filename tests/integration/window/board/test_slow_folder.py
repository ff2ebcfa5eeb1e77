"""A work folder whose file system hangs holds nobody who looks at the channel, or gives it an order."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from binlane.state import target_record
from binlane.work import slow_folders
from tests.integration.window.board.test_board import client_of, get
from tests.integration.window.conftest import CHANNEL, Channel


@pytest.fixture
def hanging(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Channel]:
    """Whose folder answers nobody for half a minute."""
    channel.traffic(10)
    assert channel.run() is not None
    end = threading.Event()

    def opened(*_: object) -> None:
        end.wait(30)
        raise OSError("the server of the mount is away")

    monkeypatch.setattr(target_record, "open_regular", opened)
    monkeypatch.setattr(slow_folders, "FOLDER_SECONDS", 0.2)
    timer = threading.Timer(20, end.set)
    timer.start()
    yield channel
    assert timer.is_alive(), "somebody has waited for the folder"
    timer.cancel()
    end.set()


def test_who_looks_or_orders_asks_the_target_alone(hanging: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    assert hanging.cli("check", CHANNEL) == 0, capsys.readouterr()
    client = client_of(hanging)
    assert [each["state"] for each in get(client, "/api/channels")] == ["idle"]
    assert f'binlane_up{{channel="{CHANNEL}"}} 1.0' in client.get("/metrics").text
    assert hanging.cli("stop", CHANNEL) == 0, capsys.readouterr()
    assert hanging.cli("status", CHANNEL) == 0, capsys.readouterr()
    assert "stopped" in capsys.readouterr().out
    assert hanging.cli("resume", CHANNEL) == 0, capsys.readouterr()
