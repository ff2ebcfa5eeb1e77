"""A history's channel and its windows: complete, killed, or with cut connections."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import pymysql
from sqlalchemy import delete

from binlane.choices import Consistency
from binlane.config import ChannelConfig, load_channel
from binlane.config.keys import SegmentsConfig
from binlane.connections import Endpoint, Endpoints, Tls
from binlane.errors import BinlaneError, WindowOpenError
from binlane.orchestration import steps
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.request import NOW, WindowRequest
from binlane.servers.engines import engine_of
from binlane.source.start_position import begin
from binlane.state.channels import Watermark, create_channel
from binlane.state.migrations.upgrade import create
from binlane.state.tables import databases
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.histories.history import Settings
from lab.histories.servers import SESSIONS
from lab.servers import PrivateServer

Submit: TypeAlias = Callable[[ChannelConfig, WorkFolder], None]
"""Runs the plan job of the window in a folder."""

_EPOCH: Final = 7
"""Transactions of an epoch: histories are short."""
_OTHERS: Final = "SELECT id FROM ({sessions}) AS sessions WHERE id <> CONNECTION_ID() AND user = %s"


class StoppedError(Exception):
    """A window failed; ``wrote``: whether it may have written to the target before."""

    def __init__(self, step: str, cause: BaseException) -> None:
        super().__init__(f"{step}: {type(cause).__name__}: {cause}")
        self.step, self.cause, self.wrote = step, cause, step in ("apply", "advance")


@dataclass(slots=True)
class Channel:
    """A channel from a source to a target that begins at the end of the source's log."""

    source: PrivateServer
    target: PrivateServer
    config: ChannelConfig
    endpoints: Endpoints
    settings: Settings
    submit: Submit | None = None
    """Runs the first window's plan job; None: in this process, as for the other windows."""
    windows: int = 0

    @classmethod
    def begin(
        cls,
        name: str,
        source: PrivateServer,
        target: PrivateServer,
        folder: Path,
        settings: Settings,
        submit: Submit | None = None,
    ) -> Channel:
        """Write the channel's file below ``folder``, and its row on the target, at the end of the source's log."""
        file = folder / "dags" / "channels" / f"{name}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            '[source]\nconnection = "source"\n[target]\nconnection = "target"\n[window]\nschedule = "none"\n'
            f"[lanes]\n{_lanes(settings)}"
            f'[blocks]\ntransactions = {settings.block}\nreduce = "{settings.reduce}"\n'
            f'[apply]\nwriter = "{settings.writer}"\non_conflict = "{settings.on_conflict}"\n'
            f'row_images = "{settings.row_images}"\nlease_seconds = 5\nretries = 5\nbarrier_timeout = 60\n'
            f'lock_wait_timeout = 5\n[work]\nuri = "{folder / "work"}"\n'
        )
        config = load_channel(file, {})
        config.shard_list_file.parent.mkdir(parents=True, exist_ok=True)
        config.shard_list_file.write_text("(divided)=*\n" if settings.divide else "")
        # smaller segments than a channel file allows, so that a short log has several
        config = dataclasses.replace(config, segments=SegmentsConfig(settings.segment_bytes))
        endpoints = Endpoints(_endpoint("source", source), _endpoint("target", target))
        engine = engine_of(endpoints.target)
        create(engine)
        with engine.begin() as connection:
            # the histories before have ended, and their databases are gone
            connection.execute(delete(databases))
        found = begin(source_of(config, endpoints), "now")
        mark = Watermark(found.seqno, found.position, found.gtid_set, found.time, found.fingerprint)
        create_channel(engine, config.name, found.identity, mark)
        return cls(source, target, config, endpoints, settings, submit)

    def window(self, how: str, dice: random.Random) -> bool:
        """Apply one window; False if there is none. Raises StoppedError. After a WindowOpenError a later call applies
        it."""
        self.windows += 1
        if how == "killed":
            self._run_and_kill(dice.uniform(0.02, 0.6))
            how = "window"
        with self._cutting(dice) if how == "cut connections" else contextlib.nullcontext():
            return run_window(self.config, self.endpoints, self.submit if self.windows == 1 else None)

    def _run_and_kill(self, seconds: float) -> None:
        """Run the window in a process of its own, and kill the process after some seconds."""
        child = multiprocessing.get_context("fork").Process(target=_quiet_window, args=(self.config, self.endpoints))
        child.start()
        child.join(seconds)
        if child.is_alive() and child.pid is not None:
            os.kill(child.pid, signal.SIGKILL)
        child.join()

    @contextlib.contextmanager
    def _cutting(self, dice: random.Random) -> Iterator[None]:
        """Kill some of the target's connections while the window runs."""
        ended, pauses = threading.Event(), [dice.uniform(0.01, 0.3) for _ in range(3)]
        thread = threading.Thread(target=_cut, args=(self.target, pauses, ended))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def run_window(config: ChannelConfig, endpoints: Endpoints, submit: Submit | None = None) -> bool:
    """All steps of one window, lanes as threads. False: there was nothing to apply."""
    with _step("extract"):
        window = _tried_again(lambda: steps.extract(config, endpoints, WindowRequest(NOW)))
    if window["work"] is None:
        return False
    with _step("plan"):
        if window["plan"] is None and submit is not None:
            submit(config, WorkFolder(window["work"]))
        elif window["plan"] is None:
            run_plan_job(WorkFolder(window["work"]), InProcess())
    with _step("check"):
        adopted = _tried_again(lambda: steps.adopt_plan(config, endpoints, window["work"]))
    lanes = [each["lane"] for each in adopted["lanes"]]

    def apply(lane: int) -> None:
        _tried_again(lambda: steps.apply_lane(config, endpoints, adopted["plan"], lane))

    with _step("apply"), ThreadPoolExecutor(len(lanes)) as pool:
        running = [pool.submit(apply, lane) for lane in lanes]
        errors = [error for each in running if (error := each.exception()) is not None]
        if errors:
            # the other lanes report the first lane's error as well
            raise next((error for error in errors if not getattr(error, "retryable", False)), errors[0])
    with _step("advance"):
        _tried_again(lambda: steps.advance(config, endpoints, adopted["plan"]))
    return True


def _lanes(settings: Settings) -> str:
    """The keys of ``[lanes]``."""
    is_torn = settings.divide and settings.commit == "alone" and settings.consistency != Consistency.EPOCH
    return "".join(
        (
            f"count = {settings.lanes}\n",
            _given("fold_gap", settings.fold_gap),
            _given("consistency", settings.consistency),
            f"epoch_transactions = {_EPOCH}\n" if settings.consistency == Consistency.EPOCH else "",
            _given("divide", settings.divide or None),
            _given("commit", settings.commit if settings.commit != "alone" else None),
            "allow_torn = true\n" if is_torn else "",
        )
    )


def _given(name: str, value: str | int | None) -> str:
    """A key of the channel's file; empty for the product's default."""
    return "" if value is None else f"{name} = {json.dumps(value)}\n"


@contextlib.contextmanager
def _step(name: str) -> Iterator[None]:
    try:
        yield
    except WindowOpenError:
        raise
    except Exception as exc:
        raise StoppedError(name, exc) from exc


def _tried_again(step: Any) -> Any:
    """Retry a step as Airflow does for retryable errors."""
    for _ in range(3):
        try:
            return step()
        except WindowOpenError:
            raise
        except BinlaneError as exc:
            if not exc.retryable:
                raise
            time.sleep(0.2)
    return step()


def _quiet_window(config: ChannelConfig, endpoints: Endpoints) -> None:
    with contextlib.suppress(Exception), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        run_window(config, endpoints)


def _cut(server: PrivateServer, pauses: list[float], ended: threading.Event) -> None:
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for pause in pauses:
            if ended.wait(pause):
                return
            cursor.execute(_OTHERS.format(sessions=SESSIONS[server.flavor]), (server.user,))
            for (number,) in cursor.fetchall():
                with contextlib.suppress(pymysql.err.MySQLError):
                    cursor.execute(f"KILL CONNECTION {number}")


def _endpoint(name: str, server: PrivateServer) -> Endpoint:
    return Endpoint(name, server.host, server.port, server.user, server.password, Tls("disabled", get_public_key=True))
