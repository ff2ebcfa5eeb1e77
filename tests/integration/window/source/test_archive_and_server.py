"""A channel goes from an archive to the server that wrote it, and back: the log's fingerprint says that it is one."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import pytest

from binlane.errors import SourceIdentityError, WindowOpenError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf

FAMILIES = ("mariadb", pytest.param("mysql", marks=requires_mysql))
LIVE = 'connection = "source_server"'


def archived(channel: Channel, folder: Path) -> str:
    """All files of the source's log that are closed, as an archive; the line of the channel file that names it."""
    channel.source.query("FLUSH BINARY LOGS")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in sorted(channel.source.datadir.glob("binlog.0*[0-9]"))[:-1]:
        shutil.copy(path, folder)
    return f'archive = "{folder}"'


def read_from(channel: Channel, line: str) -> None:
    file = channel.channels / f"{CHANNEL}.toml"
    lines = [
        line if each.startswith(('connection = "source', "archive = ")) else each
        for each in file.read_text().splitlines()
    ]
    file.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_channel_goes_to_an_archive_of_its_log_and_back(family: str, channel_of: ChannelOf, tmp_path: Path) -> None:
    channel: Channel = channel_of(family, family)
    folder, applied = tmp_path / "archive", 0
    for seed, place in enumerate(("server", "archive", "archive", "server", "server", "archive")):
        channel.traffic(20, seed=seed)
        line = archived(channel, folder)
        read_from(channel, LIVE if place == "server" else line)
        assert channel.run() is not None, place
        channel.assert_equal()
        applied, before = channel.status.channel.watermark.seqno, applied
        assert applied > before
    read_from(channel, LIVE)
    assert channel.cli("verify", CHANNEL, "--full") == 0


def test_a_window_of_an_interval_ends_where_the_archive_ends(channel: Channel, tmp_path: Path) -> None:
    """Files of an archive come later than the schedule's runs, each of which takes what is there."""
    end = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    for seed in range(2):
        channel.traffic(20, seed=seed)
        read_from(channel, archived(channel, tmp_path / "archive"))
        assert channel.run(WindowRequest(interval_end=end)) is not None
        channel.assert_equal()
    assert channel.run(WindowRequest(interval_end=end)) is None
    # files of the interval may still come
    through = "SELECT COALESCE(complete_through, 0) < %s FROM binlane.channels"
    assert channel.target.query(through, (end.timestamp(),)) == [(1,)]
    with pytest.raises(WindowOpenError, match="the archive reaches to"):
        channel.run(WindowRequest(end.isoformat()))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_archive_of_another_server_is_refused(family: str, channel_of: ChannelOf, tmp_path: Path) -> None:
    channel: Channel = channel_of(family, family)
    channel.traffic(20)
    assert channel.run() is not None
    channel.source.query("RESET MASTER" if family == "mariadb" else "RESET BINARY LOGS AND GTIDS")
    for seed in range(8):
        channel.traffic(20, seed=seed)
        line = archived(channel, tmp_path / "archive")
    read_from(channel, line)
    with pytest.raises(SourceIdentityError, match=r"changed since the watermark|expected at least|was renumbered"):
        channel.run()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_window_that_was_begun_from_the_server_is_finished_from_the_archive(
    family: str, channel_of: ChannelOf, tmp_path: Path
) -> None:
    channel: Channel = channel_of(family, family)
    for seed, is_first_live in enumerate((True, False)):
        channel.traffic(20, seed=seed)
        line = archived(channel, tmp_path / "archive")
        read_from(channel, LIVE if is_first_live else line)
        window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
        line = archived(channel, tmp_path / "archive")
        shutil.rmtree(channel.work / window["window"])
        read_from(channel, line if is_first_live else LIVE)
        assert channel.run() is not None
        channel.assert_equal()
