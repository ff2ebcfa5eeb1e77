"""The board as a browser meets it: served by uvicorn below Airflow's prefix, channels in every state on real servers.

Airflow is stood for by a cookie that names its user; that the real one guards the board is tested in
tests/dags/test_board.py.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import uvicorn
from fastapi import FastAPI, HTTPException, Request

from binlane.board.api import build_app
from binlane.board.host import COOKIE, EDIT, Host, TriggeredRun
from binlane.config import ChannelConfig, load_channel
from binlane.connections import environment_resolver
from binlane.errors import DriftError
from binlane.health.airflow_runs import AirflowRuns, Run
from binlane.orchestration import steps
from binlane.orchestration.commands.verify import verify_channel
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.state.records.audit import begin_entry
from binlane.state.records.bootstraps import save_snapshot
from binlane.state.records.drills import FAILED as FAILED_DRILL
from binlane.state.records.drills import begin_drill, save_drill
from binlane.state.records.repairs import begin_repair, save_repair
from binlane.state.records.restores import RestoreDefinition, create_restore
from binlane.verify.outcome import Options
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import HOST, PrivateServer
from lab.traffic import Mix
from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.one_runner import apply_alone

EDITOR, READER, STRANGER = "editor", "reader", "stranger"
RESTORE: Final = "restore_tenant_001"
FRESH, UNPLANNED, RUNNING, FAILED, UNREACHABLE = "fresh", "unplanned", CHANNEL, "drifted", "far_away"
ROWS: Final = Mix(cross_database=0.04, reference=0.03, ddl=0.0, accounts=0.0, statements=0.04)
"""No DDL: what the channel in the middle of a window has applied stands in the way of the one that drifts."""
HOSTILE: Final = (
    "<img src=x onerror=alert(1)>\u202egnp.exe\u0007 & \"'</script><script>alert(2)</script>" + "long " * 400
)


@dataclass(frozen=True, slots=True)
class Page:
    """An address of the board: what is looked at, by whom, and a word that it has to show."""

    path: str
    word: str
    user: str = EDITOR


@dataclass(frozen=True, slots=True)
class Scene:
    """The served board."""

    url: str
    channel: Channel
    pages: dict[tuple[str, str], Page]
    """By view and state."""
    asked: list[tuple[str, dict[str, Any]]]
    """Runs that Airflow was asked for: DAG and what its form was to hold."""
    silent: list[float]
    """Seconds since the scheduler's last heartbeat; empty: it is alive."""


@contextlib.contextmanager
def scene_of(
    source: PrivateServer, target: PrivateServer, folder: Path, compared: Options | None = None
) -> Iterator[Scene]:
    """Make every state, then serve it. ``compared``: a second verification of the channel in the middle of a window."""
    channel = Channel(source, target, folder)
    channel.connect("far_away", target, port=1)
    channel.write_channel('[filter]\nexclude_databases = ["audit*"]\n')
    for name in (FRESH, UNPLANNED, FAILED, UNREACHABLE):
        _copy(channel, name)
    channel.init()
    assert channel.cli("init", FRESH) == 0
    channel.traffic(60, tenants=4, mix=ROWS)
    done = channel.run()
    assert done is not None
    verify_channel(channel.config, channel.endpoints, Options(full=False))
    if compared is not None:
        verify_channel(channel.config, channel.endpoints, compared)
    for name in (UNPLANNED, FAILED):
        assert channel.cli("init", name) == 0
    run_on(source, "CREATE TABLE tenant_001.hostile (id INT PRIMARY KEY, note LONGTEXT CHARACTER SET utf8mb4)")
    run_on(
        source,
        "CREATE DATABASE audit_1",
        "CREATE TABLE audit_1.t (id INT PRIMARY KEY)",
        "INSERT INTO audit_1.t VALUES (1)",
    )
    with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        # names, and which bytes are text
        cursor.execute("SET GLOBAL binlog_row_metadata = FULL")
        cursor.execute("INSERT INTO tenant_001.hostile VALUES (1, %s), (2, NULL)", (HOSTILE,))
        cursor.execute("SET GLOBAL binlog_row_metadata = DEFAULT")
    channel.traffic(60, tenants=4, seed=2, mix=ROWS)
    running = _planned(channel, channel.config)
    apply_alone(channel.config, channel.endpoints, running["plan"], 0)
    with _beside(target):
        failed = _planned(channel, _config(channel, FAILED))
    with pytest.raises(DriftError):
        apply_alone(_config(channel, FAILED), channel.endpoints, failed["plan"], 0)
    # its lanes are silent at once, not after their heartbeats' time
    run_on(target, f"DELETE FROM binlane.heartbeats WHERE channel = '{FAILED}'")
    _leave_records(channel)
    opened = steps.extract(_config(channel, UNPLANNED), channel.endpoints, WindowRequest("now"))
    asked: list[tuple[str, dict[str, Any]]] = []
    silent: list[float] = []
    with _served(channel, asked, silent) as url:
        yield Scene(url, channel, _pages(opened["window"], running["window"], failed["window"]), asked, silent)


@contextlib.contextmanager
def _beside(target: PrivateServer) -> Iterator[None]:
    """No channel is known to write any database: a second one in the same databases would be refused."""
    rows = target.query("SELECT * FROM binlane.`databases`")
    run_on(target, "DELETE FROM binlane.`databases`")
    yield
    with target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO binlane.`databases` VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)


def _leave_records(channel: Channel) -> None:
    """A repair, a first copy and a restore that have not ended, and a drill, with hostile names."""
    mark = channel.status.channel.watermark
    with engine_of(channel.endpoints.target).begin() as connection:
        repair = begin_repair(connection, RUNNING, "ab" * 32, f"/work/{HOSTILE[:60]}", mark.seqno, HOSTILE[:60])
        save_repair(connection, repair, {"inserted": 1, "updated": 2, "changed_rows": 4}, done=True)
        save_snapshot(connection, RUNNING, ["tenant_001", "<b>x\u202e"], "mariadb", mark)
        names = ("tenant_001", "<b>x\u202e"), (f"tenant_{'long' * 14}", f"back_{'long' * 14}")
        base, end = f"/dumps/{HOSTILE[:60]}", (mark.source.file, mark.source.offset)
        create_restore(connection, RESTORE, RestoreDefinition(
            base, "/log/", names, (), str(mark.source), *end, HOSTILE[:60], (), "ab" * 32, ()
        ))  # fmt: skip
        begin_entry(connection, RESTORE, "restore", {}, by=HOSTILE[:60])
        drill = begin_drill(connection, RUNNING, 5, base, "/log/", HOSTILE[:60])
        save_drill(connection, drill, 6 << 20, [], FAILED_DRILL, HOSTILE[:60])


def _pages(unplanned: str, running: str, failed: str) -> dict[tuple[str, str], Page]:
    pages = {
        ("channels", "empty"): Page("#/", "No channel", STRANGER),
        ("channels", "running"): Page("#/", RUNNING, READER),
        ("channels", "failed"): Page("#/", UNREACHABLE),
        ("channel", "empty"): Page(f"#/c/{FRESH}", "No window yet"),
        ("window", "empty"): Page(f"#/c/{UNPLANNED}/w/{unplanned}", "Not planned yet"),
        ("lane", "empty"): Page(f"#/c/{UNPLANNED}/w/{unplanned}/l/0", "Not found"),
        ("block", "empty"): Page(f"#/c/{UNPLANNED}/w/{unplanned}/l/0/b/1", "Not found"),
        ("databases", "empty"): Page(f"#/c/{FRESH}/d/*", "No database"),
        ("found", "empty"): Page("#/f/nobody*", "No database"),
        ("records", "empty"): Page(f"#/c/{FRESH}/r/all", "No first copy"),
        ("rows", "empty"): Page(f"#/c/{UNPLANNED}/w/{unplanned}/l/0/b/1/t/1", "Not found"),
    }
    for state, name, window in (("running", RUNNING, running), ("failed", FAILED, failed)):
        at = f"#/c/{name}/w/{window}"
        pages |= {
            ("channel", state): Page(f"#/c/{name}", "Next step" if state == "failed" else "Busiest shards"),
            ("window", state): Page(at, "Busiest tables"),
            ("lane", state): Page(f"{at}/l/0", "commit together"),
            ("databases", state): Page(f"#/c/{name}/d/*", "tenant_001"),
            ("found", state): Page("#/f/tenant_*", "not asked" if state == "failed" else "tenant_001"),
            ("records", state): Page(f"#/c/{name}/r/all", "unfinished" if name == RUNNING else "No repair"),
        }
    return pages


def _copy(channel: Channel, name: str) -> None:
    """A channel beside the first one, between the same servers unless it is the one whose target does not answer."""
    text = (channel.channels / f"{CHANNEL}.toml").read_text()
    if name == UNREACHABLE:
        text = text.replace('"target_server"', '"far_away"')
    if name in (FRESH, UNPLANNED):
        text = f'tags = ["pair", "<b>x\\u202e"]\n{text}'
    (channel.channels / f"{name}.toml").write_text(text)
    shards = channel.project / "shard_list"
    (shards / f"{name}.list").write_bytes((shards / f"{CHANNEL}.list").read_bytes())


def _config(channel: Channel, name: str) -> ChannelConfig:
    return load_channel(channel.channels / f"{name}.toml", {})


def _planned(channel: Channel, config: ChannelConfig) -> dict[str, Any]:
    window = steps.extract(config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    return {**window, **steps.adopt_plan(config, channel.endpoints, window["work"])}


def _user_of(request: Request) -> str:
    user = request.cookies.get(COOKIE, "")
    if user not in (EDITOR, READER, STRANGER):
        raise HTTPException(401, "Not authenticated")
    return user


def _runs(dag_id: str) -> AirflowRuns:
    started = 1_767_225_600.0
    failed = Run("manual__1", "failed", started, None, ("apply_lane",))
    runs = {
        RUNNING: AirflowRuns(active=Run("manual__1", "running", started, None)),
        FAILED: AirflowRuns(is_paused=True, ended=(failed,)),
    }
    return runs.get(dag_id.removeprefix("replicate_"), AirflowRuns())


@contextlib.contextmanager
def _served(channel: Channel, asked: list[tuple[str, dict[str, Any]]], silent: list[float]) -> Iterator[str]:
    def trigger(user: Any, dag_id: str, conf: Mapping[str, Any]) -> TriggeredRun:
        asked.append((dag_id, dict(conf)))
        return TriggeredRun("manual__2", is_paused=False)

    host = Host(
        get_user=_user_of,
        user_name=str,
        may=lambda user, method, dag_id: user != STRANGER and (method != EDIT or user == EDITOR),
        resolve=environment_resolver(channel.environment),
        channels=lambda: channel.channels,
        runs=_runs,
        scheduler_silent=lambda: next(iter(silent), None),
        trigger=trigger,
    )
    outer = FastAPI()
    outer.mount("/binlane", build_app(host))
    server = uvicorn.Server(uvicorn.Config(outer, host=HOST, port=0, log_level="warning"))
    sockets = [server.config.bind_socket()]
    thread = threading.Thread(target=server.run, args=(sockets,))
    thread.start()
    try:
        yield f"http://{HOST}:{sockets[0].getsockname()[1]}/binlane/"
    finally:
        server.should_exit = True
        thread.join()
