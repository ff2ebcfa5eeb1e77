"""Clocks of source, target and worker that are hours wrong, and are set in the middle of a window: both servers end
equal, no time says that more is applied than is, and health names what it cannot know."""

from __future__ import annotations

import contextlib
import json
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from binlane.errors import WindowOpenError
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.emptied import empty_target
from tests.integration.window.conftest import CHANNEL, Channel, drop_accounts, run_on
from tests.integration.window.control.test_stop import apply_all, planned

HOURS: Final = 3 * 3600
STEPS: Final = [(0, HOURS), (0, -HOURS), (HOURS, 0), (-HOURS, 0), (HOURS, -HOURS)]
WHO: Final = ("source", "target", "worker", "source and target")
CASES: Final = [
    *(("target", *each) for each in STEPS),
    *(("source", *each) for each in (STEPS[1], STEPS[4])),
    *(("worker", *each) for each in STEPS[:2]),
    *(("source and target", *each) for each in (STEPS[2], STEPS[4])),
]
"""The target's clock is the one that most times are of."""
RIGHT: Final = time.time


class Clocks:
    """How many seconds each clock is ahead."""

    def __init__(self, folder: Path) -> None:
        self.files = {name: folder / f"{name}.clock" for name in ("source", "target")}
        self.worker = 0
        for file in self.files.values():
            file.write_bytes(struct.pack("l", 0))

    def set(self, who: str, seconds: int) -> None:
        for name in who.split(" and "):
            if name == "worker":
                self.worker = seconds
            else:
                with self.files[name].open("r+b") as file:
                    file.write(struct.pack("l", seconds))


class Servers(NamedTuple):
    """A source and a target with clocks of their own."""

    source: PrivateServer
    target: PrivateServer
    clocks: Clocks


@pytest.fixture(scope="module", params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Of one family."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("the servers' clocks are shifted by a library that needs a C compiler (apt-get install gcc)")
    folder = tmp_path_factory.mktemp("clocks")
    library, code = folder / "shifted_clock.so", Path(__file__).parents[1] / "shifted_clock.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, code, "-ldl"], check=True)
    clocks, found = Clocks(folder), list[PrivateServer]()
    with contextlib.ExitStack() as stack:
        for name, file in clocks.files.items():
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("LD_PRELOAD", str(library))
                patch.setenv("SHIFTED_CLOCK", str(file))
                server = private_server(folder / name, Flavor(request.param), name=name, durable=False)
                found.append(stack.enter_context(server))
        yield Servers(found[0], found[1], clocks)


@pytest.fixture
def shifted(
    servers: Servers, tmp_path: Path, clean_servers: Callable[[PrivateServer], None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Channel, Clocks]]:
    """A channel that has not begun, and the clocks, which are right."""
    clean_servers(servers.source)
    empty_target(servers.target)
    drop_accounts(servers.target)
    monkeypatch.setattr(time, "time", lambda: RIGHT() + servers.clocks.worker)
    yield Channel(servers.source, servers.target, tmp_path), servers.clocks
    for who in ("source", "target", "worker"):
        servers.clocks.set(who, 0)


def checked(channel: Channel, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = channel.cli("check", CHANNEL, "--max-lag", "2s")
    return code, capsys.readouterr().out


def told(channel: Channel, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert channel.cli("status", CHANNEL, "--json") == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["health"]["findings"]
    return found


@pytest.mark.parametrize(("who", "before", "after"), CASES)
def test_a_clock_is_set_in_the_middle_of_a_window(
    shifted: tuple[Channel, Clocks], who: str, before: int, after: int, capsys: pytest.CaptureFixture[str]
) -> None:
    channel, clocks = shifted
    clocks.set(who, before)
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, a INT)")
    run_on(channel.target, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, a INT)")
    channel.init()
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (1, 1)")
    assert channel.run() is not None
    assert channel.cli("verify", CHANNEL, "--full") == 0

    # in the middle of a window whose worker dies
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 2)")
    adopted = planned(channel)
    clocks.set(who, after)
    if "target" in who and after < before:
        # when the worker was alive is in the future
        assert [each["state"] for each in told(channel, capsys)] != ["running"]
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    channel.assert_equal()

    # what is not applied shows within seconds, whatever a clock says
    assert channel.run() is None
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (3, 3)", "UPDATE tenant_1.t SET a = 9 WHERE id = 1")
    time.sleep(3)
    code, text = checked(channel, capsys)
    assert code != 0, text

    # a window up to a moment has what was committed before it by the right clock, or does not open
    request = WindowRequest(datetime.fromtimestamp(RIGHT() - 1, UTC).isoformat(timespec="seconds"))
    with contextlib.suppress(WindowOpenError):
        channel.run(request)
        channel.assert_equal()
    channel.run()
    channel.assert_equal()

    # drift is named, and repaired
    run_on(channel.target, "UPDATE tenant_1.t SET a = 7 WHERE id = 2")
    assert channel.cli("verify", CHANNEL, "--full") == 1
    assert "drifted" in [each["state"] for each in told(channel, capsys)]
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    channel.assert_equal()

    # what a finding of the clock advises leads out of it
    for server in WHO:
        clocks.set(server, 0)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (4, 4)")
    assert channel.run() is not None
    assert channel.run() is None
    assert channel.cli("verify", CHANNEL, "--full") == 0
    assert [each["state"] for each in told(channel, capsys)] == ["idle"]
