"""A watermark is announced by a program of the channel's, without a shell and without passwords."""

import json
import sys
from pathlib import Path

import pytest

from binlane.config import load_channel
from binlane.errors import ConfigError
from binlane.orchestration import announce

DONE = {"window": "w1", "seqno": 1_234, "gtid": "0-1-1234", "time": 1.5, "note": "done", "rows": 7}
WRITES = "import sys, os, json; json.dump([sys.argv[1:], json.load(sys.stdin), sorted(os.environ)], open({!r}, 'w'))"


def told(tmp_path: Path, *command: str) -> None:
    channels = tmp_path / "dags" / "channels"
    channels.mkdir(parents=True, exist_ok=True)
    text = f'[source]\nconnection = "s"\n[target]\nconnection = "t"\n[announce]\ncommand = {json.dumps(command)}\n'
    (channels / "shop.toml").write_text(text)
    announce.announce(load_channel(channels / "shop.toml"), DONE)


def test_the_program_gets_the_watermark_and_its_arguments_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = ("AIRFLOW_CONN_SOURCE", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__CORE__FERNET_KEY")
    for name in secret:
        monkeypatch.setenv(name, "mysql://u:secret@h/")
    place = tmp_path / "told.json"
    told(tmp_path, sys.executable, "-c", WRITES.format(str(place)), "$(touch x); `y` | z")
    arguments, watermark, variables = json.loads(place.read_text())
    assert arguments == ["$(touch x); `y` | z"]
    assert watermark == {"channel": "shop", "seqno": 1_234, "gtid": "0-1-1234", "time": 1.5, "window": "w1"}
    assert "PATH" in variables
    assert not set(secret) & set(variables)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("/no/such/program",), "No such file"),
        (
            (sys.executable, "-c", "import sys; sys.exit('line 1\\nno topic')"),
            "exit code 1: no topic",
        ),
        ((sys.executable, "-c", "import time; time.sleep(60)"), "timed out"),
    ],
)
def test_a_program_that_fails_is_an_error_that_says_that_the_watermark_has_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], said: str
) -> None:
    monkeypatch.setattr(announce, "SECONDS", 2)
    with pytest.raises(ConfigError, match=r"shop.toml: announce.command: .*the watermark is at seqno 1,234") as error:
        told(tmp_path, *command)
    assert said in str(error.value)


def test_the_arguments_of_a_program_that_runs_too_long_are_in_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announce, "SECONDS", 1)
    with pytest.raises(ConfigError, match=r"python.*: timed out after 1 seconds") as error:
        told(tmp_path, sys.executable, "-c", "import time; time.sleep(60)", "--token", "Secret-4711")
    assert ("4711" in str(error.value), error.value.__suppress_context__) == (False, True)


def test_a_channel_without_a_program_announces_nothing(tmp_path: Path) -> None:
    told(tmp_path)
