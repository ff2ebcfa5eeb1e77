"""``binlane check``: one line, the exit code of a monitoring plugin, and UNKNOWN for whatever cannot be read."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from binlane.cli import main
from binlane.errors import TargetUnavailableError
from binlane.health import look
from binlane.health.channel_facts import Limits
from binlane.health.health import Severity, health_of, unknown
from binlane.orchestration.commands import check
from tests.unit.health.test_health import HEALTHY, of

CHANNEL = '[source]\nconnection = "source"\n[target]\nconnection = "target"\n'
PLUGIN = re.compile(r"BINLANE (OK|WARNING|CRITICAL|UNKNOWN): [^|\n]+(?: \|(?: \w+=\d+s?(?:;\d*){0,3})+)?")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    channels = tmp_path / "dags" / "channels"
    channels.mkdir(parents=True)
    (channels / "shop.toml").write_text(CHANNEL)
    monkeypatch.setenv("BINLANE_CHANNELS", str(channels))
    for name in ("SOURCE", "TARGET"):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", "mysql://u:p@127.0.0.1:1/")
    return channels


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["binlane", "check", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_a_channel_in_good_health_is_ok_with_its_performance_data() -> None:
    limits = Limits(7_200, 604_800)
    line = check.line_of(health_of(HEALTHY, limits), limits)
    assert line == (
        "BINLANE OK: shop: idle: everything up to seqno 131 is applied | lag=60s;;7200;0 unverified=86400s;604800;;0 "
        "drifted=0;;0;0 pending=0;;;0 seqno=131 verified=131"
    )
    assert PLUGIN.fullmatch(line)


def test_all_that_is_wrong_is_in_the_line_the_worst_first() -> None:
    line = check.line_of(of(drifted=2, stopped="now, by x", committed=1.0), Limits(0, 0))
    found = r"BINLANE CRITICAL: shop: drifted: 2 .*; behind: .*; stopped: now, by x \| lag=\d+s;;;0 .*"
    assert re.fullmatch(found, line)


def test_hostile_text_stays_in_its_place() -> None:
    hostile = "x|y\x1b[2J\u202e\nOK | lag=0s"
    for health in (of(stopped=hostile), unknown(hostile, hostile)):
        line = check.line_of(health, Limits(1, 1))
        assert PLUGIN.fullmatch(line)
        assert line.isprintable()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["shop"], "TargetUnavailableError"),
        (["other"], "ConfigError"),
        (["shop", "--max-lag", "soon"], "--max-lag: expected a duration"),
        (["shop", "--max-unverified", "-1d"], "--max-unverified: expected a duration"),
    ],
)
def test_a_channel_that_cannot_be_read_is_unknown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert command(monkeypatch, *arguments) == Severity.UNKNOWN
    out = capsys.readouterr().out
    assert out.startswith("BINLANE UNKNOWN: ")
    assert (said in out, out.count("\n")) == (True, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument"),
        (["shop", "--no-such\n|option"], "No such option: --no-such"),
        (["shop", "--max-lag"], "requires an argument"),
        (["a", "b"], "extra argument"),
    ],
)
def test_wrong_arguments_are_unknown_and_not_critical_and_one_line_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert command(monkeypatch, *arguments) == Severity.UNKNOWN
    line = capsys.readouterr().out
    assert (said in line, line.count("\n"), "|" in line) == (True, 1, False)
    assert line.startswith("BINLANE UNKNOWN: ")


@pytest.mark.parametrize("severity", Severity)
def test_the_exit_code_is_the_severity(monkeypatch: pytest.MonkeyPatch, severity: Severity) -> None:
    monkeypatch.setattr(check, "check", lambda *_: ("BINLANE", severity))
    assert command(monkeypatch, "shop") == severity


@pytest.mark.parametrize("error", [RuntimeError("a fault"), TargetUnavailableError("gone"), KeyError("x")])
def test_an_error_of_any_kind_is_unknown(folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(look, "target_state", fails)
    line, severity = check.check("shop", folder, None, None)
    assert (severity, line.startswith("BINLANE UNKNOWN: shop: unreachable: ")) == (Severity.UNKNOWN, True)


@pytest.mark.parametrize("error", [RuntimeError("a fault"), TargetUnavailableError("gone"), SystemExit(1), EOFError()])
def test_an_error_outside_the_look_is_unknown_and_no_warning(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(check, "check", fails)
    assert command(monkeypatch, "shop") == Severity.UNKNOWN


WARNS = """
import sys
from binlane.cli import main
from binlane.health.health import Severity
from binlane.orchestration.commands import check
check.check = lambda *_: ("BINLANE WARNING: shop: a \u2192 b", Severity.WARNING)
sys.argv = ["binlane", "check", "shop"]
main()
"""


def warns(output: int, locale: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    """A channel whose health is WARNING, in a process of its own."""
    environment = {**os.environ, "PYTHONIOENCODING": locale}
    return subprocess.run(
        [sys.executable, "-c", WARNS], stdout=output, stderr=subprocess.PIPE, env=environment, check=False
    )


def test_a_character_that_the_output_lacks_is_escaped() -> None:
    ended = warns(subprocess.PIPE, "latin-1")
    assert (ended.stdout, ended.returncode) == (b"BINLANE WARNING: shop: a \\u2192 b\n", Severity.WARNING)


def test_a_line_that_cannot_be_written_is_unknown() -> None:
    with Path("/dev/full").open("wb") as full:
        assert warns(full.fileno()).returncode == Severity.UNKNOWN
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        assert warns(closed.fileno()).returncode == Severity.UNKNOWN
