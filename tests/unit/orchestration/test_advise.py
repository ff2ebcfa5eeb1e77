"""``binlane advise --archive``: binlog files without any server."""

from __future__ import annotations

import gzip
import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from binlane.binlog.wire import EventType, build_event
from binlane.cli.commands import main
from binlane.errors import ConfigError, SourceError
from binlane.orchestration.commands.advise import AdviceRequest, advise
from tests.unit.binlog.cases import crc
from tests.unit.plan.logs import HEAD, rows

LOG = [rows(number, "abaaaaaaaa"[number % 10]) for number in range(1, 1201)]


def archive(folder: Path) -> Path:
    """Two binlog files, the first compressed."""
    folder.mkdir()
    parts = [HEAD + b"".join(crc(event) for events in part for event in events) for part in (LOG[:700], LOG[700:])]
    # a server's last event of a file that it has ended: what follows in the next file is proved by it
    # at the time of that file's head
    rotate = crc(build_event(EventType.ROTATE, struct.pack("<Q", 4) + b"binlog.000002", timestamp=0, server_id=7))
    (folder / "binlog.000001.gz").write_bytes(gzip.compress(parts[0] + rotate))
    (folder / "binlog.000002").write_bytes(parts[1])
    return folder


def run(*arguments: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["binlane", "advise", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_an_archive_is_counted_without_a_server_and_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    channels, uri = tmp_path / "dags" / "channels", str(archive(tmp_path / "logs"))
    code, out, _ = run(
        "--archive", uri, "--channels", str(channels), "--lanes", "2", "--json", capsys=capsys, monkeypatch=monkeypatch
    )
    found: dict[str, Any] = json.loads(out)
    assert code == 0
    assert (found["source"], found["keys"], found["transactions"], found["rows"]) == (
        f"the archive {uri}", "log", 1200, 1200,
    )  # fmt: skip
    assert [(each["name"], each["transactions"]) for each in found["shards"]] == [("a", 1080), ("b", 120)]
    assert [each["size"] for each in found["blocks_in_a_row"]] == [10, 100, 1000]
    assert found["blocks_in_a_row"][2]["shared"] == 1
    assert [each["line"] for each in found["settings"]][:2] == ["(hash-method)=string-hash", "lanes.count = 2"]
    assert list((tmp_path / ".binlane").rglob("*.binlog")) == []
    code, out, _ = run("--archive", uri, "--channels", str(channels), capsys=capsys, monkeypatch=monkeypatch)
    assert code == 0
    assert "fewer blocks share no key than told below" in " ".join(out.split())
    assert "1,080" in out


def test_a_channels_settings_are_taken_with_an_archive(tmp_path: Path) -> None:
    channels = tmp_path / "dags" / "channels"
    channels.mkdir(parents=True)
    (channels / "shop.toml").write_text(
        'source.archive = "/nowhere"\ntarget.connection = "none"\nfilter.exclude_databases = ["b"]\n'
    )
    found = advise(AdviceRequest("shop", channels, str(archive(tmp_path / "logs"))), as_json=True)
    assert isinstance(found, str)
    assert [(each["name"], each["transactions"]) for each in json.loads(found)["shards"]] == [("a", 1080)]


def test_an_archive_with_damage_or_without_files_is_an_error_with_its_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    code, _, err = run("--archive", str(tmp_path / "empty"), capsys=capsys, monkeypatch=monkeypatch)
    assert code == SourceError.exit_code
    assert "expected binlog files" in err
    code, _, err = run(capsys=capsys, monkeypatch=monkeypatch)
    assert (code, "expected a channel, or --archive" in err) == (ConfigError.exit_code, True)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="expected --archive without --until"):
        AdviceRequest(None, Path(), "logs", until="now")
    with pytest.raises(ConfigError, match="expected one of --window and --until"):
        AdviceRequest("shop", Path(), window="last", until="now")
