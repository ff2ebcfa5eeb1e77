"""A restore, and the lanes of any channel, give way to a target that is busy."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from binlane.errors import StopRequestedError
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.commands.copies import restore as restoring
from binlane.orchestration.request import WindowRequest
from binlane.orchestration.target_load import TargetLoad
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer
from tests.integration.restore.scene import DATABASE, contents, scene_of
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, channel, channel_of, clean_servers
from tests.one_runner import apply_alone
from tests.waiting import wait_until

__all__ = ["channel", "channel_of", "clean_servers"]

_LIMIT = 8
"""More than binlane has running by itself."""


@contextlib.contextmanager
def busy(server: PrivateServer) -> Iterator[Callable[[], None]]:
    """More threads running on the server than the limit, until the yielded function is called."""
    connections = [server.connect(autocommit=True) for _ in range(_LIMIT + 1)]
    numbers = [int(each.thread_id()) for each in connections]  # type: ignore[no-untyped-call]

    def sleep(number: int) -> None:
        with contextlib.suppress(Exception), connections[number].cursor() as cursor:
            cursor.execute("SELECT SLEEP(600)")

    threads = [threading.Thread(target=sleep, args=(number,)) for number in range(len(connections))]
    for thread in threads:
        thread.start()

    def end() -> None:
        for number in numbers:
            with contextlib.suppress(Exception):
                server.query(f"KILL {number}")

    # the question's own does not count
    while int(server.query("SHOW GLOBAL STATUS LIKE 'Threads_running'")[0][1]) <= _LIMIT + 1:
        pass
    try:
        yield end
    finally:
        end()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("flavor", list(Flavor))
def test_the_load_of_a_restore_waits_and_goes_on(
    flavor: Flavor, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene, said = scene_of(channel_of(flavor.value, flavor.value)), list[str]()
    target = scene.channel.target
    with busy(target) as end:

        def tell(_: object, reason: str) -> None:
            said.append(reason)
            # nothing of the dump is there yet
            assert target.query("SELECT * FROM information_schema.tables WHERE table_schema = 'back_unfinished'") == []
            end()

        monkeypatch.setattr(restoring._Running, "tell", tell)
        assert scene.restore("r1", "--yes", "--max-threads-running", str(_LIMIT), base="one.sql") == 0, (
            capsys.readouterr().err
        )
    assert said[0].endswith(f"threads running on the target besides this channel's, limit {_LIMIT}")
    assert said[-1] == ""
    assert contents(target, "back") == scene.expected
    # what continues and extends it goes by the same number
    file, kept = scene.channel.channels.parent / "restores" / "r1.toml", f"[apply]\nmax_threads_running = {_LIMIT}\n"
    assert kept in file.read_text()
    later = ("restore", "--extend", "r1", "--before", f"DROP DATABASE {DATABASE}", "--yes")
    assert scene.channel.cli(*later) == 0, capsys.readouterr().err
    assert kept in file.read_text()


@pytest.mark.parametrize("flavor", list(Flavor))
def test_statements_of_the_channel_s_lanes_are_no_load(flavor: Flavor, channel_of: ChannelOf) -> None:
    channel, most = channel_of(flavor.value, flavor.value), 4
    target, told, interrupted = channel.target, list[str](), threading.Event()
    leases = [f"a lane {number}" for number in range(most + 2)]

    def tell(reason: str) -> None:
        told.append(reason)
        interrupted.set()

    def sleep(lease: str) -> None:
        with contextlib.suppress(Exception):
            target.query(f"SELECT GET_LOCK('{lease}', 10), SLEEP(600)")

    sleeping = [threading.Thread(target=sleep, args=(lease,)) for lease in leases]
    for thread in sleeping:
        thread.start()
    held = ", ".join(f"IS_USED_LOCK('{lease}')" for lease in leases)
    try:
        wait_until(lambda: None not in target.query(f"SELECT {held}")[0])
        with contextlib.closing(TargetLoad(channel.endpoints.target, most, tell, interrupted, leases)) as load:
            assert not load.wait()
        assert told == []
        # of another channel they are
        with contextlib.closing(TargetLoad(channel.endpoints.target, most, tell, interrupted)) as load:
            assert load.wait()
        assert "threads running on the target besides this channel's, limit 4" in told[0]
    finally:
        for number in target.query(f"SELECT {held}")[0]:
            target.query(f"KILL {number}")
        for thread in sleeping:
            thread.join()


class Told(logging.Handler):
    """Calls ``then`` when a lane says that it waits."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.then, self.said = then, list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("lane 0 "):
            self.said.append(record.getMessage())
            self.then()


def _planned(channel: Channel) -> dict[str, Any]:
    file = channel.channels / f"{CHANNEL}.toml"
    channel.write_channel()
    file.write_text(file.read_text().replace("[apply]\n", f"[apply]\nmax_threads_running = {_LIMIT}\n"))
    channel.init()
    channel.traffic(60)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    return {**window, **steps.adopt_plan(channel.config, channel.endpoints, window["work"])}


@contextlib.contextmanager
def _told(then: Callable[[], None]) -> Iterator[list[str]]:
    handler, logger = Told(then), logging.getLogger("binlane.orchestration.steps")
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield handler.said
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def test_a_lane_waits_in_front_of_a_block_and_goes_on(channel: Channel) -> None:
    window = _planned(channel)
    with busy(channel.target) as end, _told(end) as said:
        done = apply_alone(channel.config, channel.endpoints, window["plan"], 0)
    assert done["blocks"] > 1
    assert "threads running on the target" in said[0]
    assert said[-1] == "lane 0 goes on"
    assert channel.go_on(window) is not None


def test_a_lane_that_waits_ends_when_its_task_is_ended(channel: Channel) -> None:
    window, interrupted = _planned(channel), threading.Event()
    with busy(channel.target), _told(interrupted.set) as said, pytest.raises(StopRequestedError):
        steps.apply_lane(channel.config, channel.endpoints, window["plan"], 0, interrupted)
    assert "threads running on the target" in said[0]
