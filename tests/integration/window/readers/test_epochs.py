"""Windows with epochs: lanes meet at each, and the target keeps its place in the source's log."""

from __future__ import annotations

import pytest

from binlane.orchestration.extraction.window_reading import start_of
from binlane.plan.window_plan import WindowPlan
from binlane.servers.engines import engine_of
from binlane.source.position_at import place_of
from binlane.state.channels import read_channel
from binlane.work.files import WorkFolder
from binlane.work.lookup import read_manifest
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf

EPOCHS = 'consistency = "epoch"\nepoch_seconds = 3600\nepoch_transactions = 20\n'


def with_epochs(channel: Channel, lanes: str = EPOCHS, more: str = "") -> None:
    """More transactions between barriers than there are in the window: only epochs cut its serial stretch."""
    channel.write_channel(more)
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace("fold_gap = 4\n", f"fold_gap = 1000\n{lanes}"))


def planned(channel: Channel) -> WindowPlan:
    [plan] = channel.work.glob("*/*/plan.json")
    return WindowPlan.from_json(plan.read_bytes(), str(plan))


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
@pytest.mark.parametrize("kills", [0, 3])
def test_every_epoch_of_a_window_is_recorded_once_with_its_place(
    channel_of: ChannelOf, family: str, kills: int
) -> None:
    channel = channel_of(family, family)
    with_epochs(channel)
    with engine_of(channel.endpoints.target).connect() as connection:
        state = read_channel(connection, CHANNEL)
    channel.traffic(200)
    for number in range(kills):
        channel.run_and_kill(0.8 + 0.5 * number)
    channel.run()
    channel.assert_equal()
    plan = planned(channel)
    assert len(plan.epochs) >= (plan.last_seqno - plan.first_seqno) // 20
    columns = "number, seqno, source_file, source_offset, gtid_set, source_time"
    assert channel.target.query(f"SELECT {columns} FROM binlane.epochs ORDER BY number") == [
        (number, each.seqno, each.end.file, each.end.offset, each.gtid_set, each.time)
        for number, each in enumerate(plan.epochs, 1)
    ]
    [manifest] = channel.work.glob("*/manifest.json")
    folder = WorkFolder(str(manifest.parent))
    for epoch in plan.epochs[::5]:
        place = place_of(folder, read_manifest(folder), start_of(state.watermark, state.source_identity), epoch.seqno)
        assert (place.gtid_set, place.time) == (epoch.gtid_set, epoch.time)
    assert channel.target.query("SELECT seqno, gtid_set FROM binlane.consistent") == [
        (plan.last_seqno, plan.end_gtid_set)
    ]
