"""Several channels at once, without a server: chosen by tag, listed with their errors, and acted on in turn."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from binlane.cli import main
from binlane.config import DeclaredChannel, declared_channels
from binlane.connections import Endpoint
from binlane.errors import ConfigError
from binlane.orchestration.commands import channel as loading
from binlane.orchestration.commands.find import find
from binlane.orchestration.commands.fleet import chosen, status_all
from binlane.orchestration.terminal import as_text
from binlane.regular_files import open_regular
from binlane.safe_text import printable
from binlane.state.records.databases import Search

CHANNEL = """tags = {tags}
[source]
connection = "a"
[target]
connection = "b"
"""
HOSTILE = "<b>x[/x]\u202e"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, tags in {"one": ["eu"], "two": ["eu", HOSTILE], "three": ["us"]}.items():
        (tmp_path / f"{name}.toml").write_text(CHANNEL.format(tags=json.dumps(tags)))
    return tmp_path


def run(folder: Path, *arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BINLANE_CHANNELS", str(folder))
        patch.setenv("AIRFLOW_CONN_A", "mysql://u:p@127.0.0.1:1/")
        patch.setenv("AIRFLOW_CONN_B", "mysql://u:p@127.0.0.1:1/")
        patch.setattr(sys, "argv", ["binlane", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)


def names(channel: str | None, tag: str | None, folder: Path) -> list[str]:
    return [each.name for each in chosen(channel, tag, folder)]


def test_a_tag_chooses_its_channels_and_those_whose_tags_cannot_be_read(folder: Path) -> None:
    assert names("one", None, folder) == ["one"]
    assert names(None, "eu", folder) == ["one", "two"]
    (folder / "broken.toml").write_text("tags = 3")
    assert names(None, "us", folder) == ["broken", "three"]


@pytest.mark.parametrize(("channel", "tag"), [(None, None), ("one", "eu")])
def test_a_channel_or_a_tag_and_not_both(folder: Path, channel: str | None, tag: str | None) -> None:
    with pytest.raises(ConfigError, match="expected a channel or --tag, got"):
        chosen(channel, tag, folder)


def test_a_tag_that_no_channel_has_is_an_error_that_lists_the_tags(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected the tag of a channel, got 'asia'; known: .*eu, us"):
        chosen(None, "asia", folder)


@pytest.mark.parametrize("command", [("find", "*"), ("status",), ("stop",), ("resume",), ("verify",)])
def test_a_tag_or_a_channel_that_does_not_exist_is_an_error_of_every_command(
    folder: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert run(folder, *command, "--tag", "asia") == 2
    assert "expected the tag of a channel, got 'asia'; known: " in capsys.readouterr().err
    assert run(folder, *command, *(("--channel",) if command[0] == "find" else ()), "typo") == 2
    assert "no channel 'typo'; known: one, three, two" in capsys.readouterr().err


def test_an_unexpected_error_of_one_channel_leaves_the_others_their_turn(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(one: DeclaredChannel, *rest: Any, **named: Any) -> Any:
        if one.name == "one":
            raise RuntimeError("no such thing")
        return loading.load(one, *rest, **named)

    monkeypatch.setattr("binlane.orchestration.commands.operate.load", load)
    assert run(folder, "resume", "--tag", "eu") == 1
    said = capsys.readouterr().err
    assert "one: RuntimeError: no such thing" in said
    assert "Traceback" in said
    assert "two: TargetUnavailableError: " in said


def test_an_unexpected_error_of_one_channel_is_shown_beside_what_the_others_have(folder: Path) -> None:
    def resolve(_: str) -> Endpoint:
        raise RuntimeError("no such thing")

    view, problems = find(declared_channels(folder), Search(), 10, as_json=True, resolve=resolve)
    assert (view, len(problems)) == ("[]", 3)
    assert problems[0] == "one: not asked: RuntimeError: no such thing"


def test_each_file_is_parsed_once_for_a_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = list[str]()

    def opened(file: Path) -> IO[bytes]:
        parsed.append(file.stem)
        return open_regular(file)

    monkeypatch.setattr("binlane.config.node.open_regular", opened)
    for arguments in (("resume", "--tag", "eu"), ("status", "--tag", "eu"), ("find", "x")):
        parsed.clear()
        run(folder, *arguments)
        assert parsed == ["one", "three", "two"], arguments


def test_an_error_of_one_channel_leaves_the_others_their_turn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.toml").write_text("tags = 3")
    assert run(folder, "resume", "--tag", "eu") == 2
    said = capsys.readouterr().err
    assert "broken: ConfigError: " in said
    assert "one: TargetUnavailableError: " in said
    assert "two: TargetUnavailableError: " in said
    assert "three" not in said


def test_every_channel_is_listed_with_the_reason_it_cannot_be_read(folder: Path) -> None:
    (folder / "broken.toml").write_text("tags = 3")
    text = as_text(status_all(folder, None, as_json=False, resolve=_nowhere))
    assert text.startswith("4 channels: 4 unreachable")
    assert text.index("broken") < text.index("one") < text.index("three") < text.index("two")
    found = json.loads(str(status_all(folder, "eu", as_json=True, resolve=_nowhere)))
    assert [(each["channel"], each["health"]["state"], each["tags"]) for each in found] == [
        ("broken", "unreachable", []), ("one", "unreachable", ["eu"]), ("two", "unreachable", ["eu", HOSTILE])
    ]  # fmt: skip
    assert "tags: expected a list of texts of at most 100" in found[0]["health"]["findings"][0]["text"]


def _nowhere(connection: str) -> Endpoint:
    raise ConfigError(f"connection {connection!r}: none of this name")


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "--all"), ("status", "--tag", HOSTILE), ("status", "--all", "--json"), ("stop", "--tag", HOSTILE),
        ("resume", "--tag", f"no{HOSTILE}"), ("verify", "--tag", HOSTILE), ("config", "two"), ("config", HOSTILE),
        ("status",), ("status", "one", "--all"), ("stop",), ("stop", "--tag", "eu", "--at-seqno", "3"),
        ("verify", "--tag", "eu", "--repair"),
    ],
)  # fmt: skip
def test_hostile_tags_and_wrong_arguments_are_printed_harmlessly(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert run(folder, *arguments) in (0, 1, 2)
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert text == printable(text)
    assert "Traceback" not in text
    assert "MarkupError" not in text
