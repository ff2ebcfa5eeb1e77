"""The DAGs: their shape, what the project's folder gives, and what a run does with the answers of its steps."""

import contextlib
import datetime as dt
import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.serialization.serialized_objects import DagSerialization

from binlane import orchestration
from binlane.bootstrap.run import Options, Outcome
from binlane.cli import bootstrap
from binlane.config import LAG_CALLBACK, channel_files, load_channel
from binlane.errors import (
    BinlaneError,
    ConfigError,
    DriftError,
    PlanError,
    PrecheckError,
    StopRequestedError,
    TargetUnavailableError,
    WindowBusyError,
)
from binlane.model import LogPosition
from binlane.orchestration import bootstrapping, dag_factory
from binlane.orchestration.airflow_side import airflow_errors
from binlane.orchestration.dag_factory import build_dag, build_dags
from binlane.orchestration.dag_shape import Kind, describe
from binlane.orchestration.request import WindowRequest
from binlane.state.channels import Watermark
from lab import demo_view

ROOT = Path(__file__).parents[2]
CHANNEL = '[source]\nconnection = "source"\n[target]\nconnection = "target"\n'


def write_channel(folder: Path, name: str = "shop", text: str = CHANNEL) -> Path:
    file = folder / "dags" / "channels" / f"{name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def shop(folder: Path, text: str = CHANNEL) -> DAG:
    return build_dag(load_channel(write_channel(folder, text=text)))


def test_the_shape_of_a_window_is_one_line(tmp_path: Path) -> None:
    steps = describe(load_channel(write_channel(tmp_path)))
    assert [(step.kind, step.after) for step in steps] == [
        (Kind.EXTRACT, ()),
        (Kind.FILTER, (Kind.EXTRACT,)),
        (Kind.ADOPT, (Kind.FILTER,)),
        (Kind.APPLY, (Kind.ADOPT,)),
        (Kind.ADVANCE, (Kind.APPLY,)),
        (Kind.VERIFY, (Kind.ADVANCE,)),
    ]


def test_the_dag_is_built_as_it_is_described(tmp_path: Path) -> None:
    dag = shop(tmp_path, CHANNEL + "[apply]\ntask_retries = 9\n")
    described = {step.task_id: set(step.after) for step in describe(load_channel(write_channel(tmp_path)))}
    assert {task.task_id: set(task.upstream_task_ids) for task in dag.tasks} == described
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert dag.get_task("apply_lane").is_mapped
    assert dag.get_task("apply_lane").retries == 9
    assert dag.get_task("adopt_plan").trigger_rule == "none_failed"


def test_every_task_has_its_place_in_the_demo(tmp_path: Path) -> None:
    """The demo asks it of every task that Airflow has, in the order in which they run."""
    dag: Any = shop(tmp_path)
    tasks = [{"task_id": task.task_id, "map_index": -1} for task in dag.topological_sort()]
    assert len(tasks) > 5
    assert sorted(tasks, key=demo_view._order) == tasks


def test_the_default_of_apply_outlives_restarted_workers(tmp_path: Path) -> None:
    assert (shop(tmp_path).get_task("apply_lane").retries or 0) >= 4


def test_a_window_is_an_interval_of_the_channels_schedule(tmp_path: Path) -> None:
    dag = shop(tmp_path, CHANNEL + '[window]\nschedule = "*/5 * * * *"\ntimezone = "Europe/Berlin"\n')
    assert dag.timetable == CronDataIntervalTimetable("*/5 * * * *", timezone="Europe/Berlin")
    assert dag.start_date == dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    assert not shop(tmp_path, CHANNEL + '[window]\nschedule = "none"\n').timetable.can_be_scheduled


def test_a_schedule_that_airflow_cannot_read_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"shop\.toml: window\.schedule: expected a cron expression"):
        shop(tmp_path, CHANNEL + '[window]\nschedule = "99 * * * *"\n')


def test_the_form_explains_and_bounds_its_fields(tmp_path: Path) -> None:
    params = shop(tmp_path).params
    form = {name: params.get_param(name).schema for name in params}
    assert {name: schema["type"] for name, schema in form.items()} == {
        "until": ["null", "string"],
        "stop_at": ["null", "string"],
        "resume": "boolean",
        "dry_run": "boolean",
        "verify": "string",
        "verify_only": "boolean",
        "lanes": ["null", "integer"],
        "block_size": ["null", "integer"],
    }
    assert form["verify"]["enum"] == ["none", "window", "full"]
    assert shop(tmp_path, CHANNEL + '[verify]\nafter_window = "window"\n').params["verify"] == "window"
    assert all("title" in schema for schema in form.values())
    assert (form["lanes"]["minimum"], form["lanes"]["maximum"]) == (1, 256)


def test_owner_and_deadline_are_as_the_file_says_and_outlive_the_metadata_database(tmp_path: Path) -> None:
    plain = shop(tmp_path)
    assert (plain.deadline, plain.owner_links) == (None, {})
    text = 'owner = "team"\nowner_link = "https://example.com/team"\n' + CHANNEL + "[alert]\nlag_seconds = 1800\n"
    dag = shop(tmp_path, text)
    assert dag.owner_links == {"team": "https://example.com/team"}
    alerts: Any = dag.deadline
    [deadline] = alerts
    assert isinstance(deadline, DeadlineAlert)
    assert deadline.interval == dt.timedelta(minutes=30)
    assert deadline.reference == DeadlineReference.DAGRUN_QUEUED_AT
    stored = DagSerialization.to_dict(dag)["dag"]
    assert stored["owner_links"] == dag.owner_links
    assert '"path": "binlane.orchestration.signals.lagging"' in json.dumps(stored["deadline"])


def test_the_callback_that_comes_with_it_names_the_run_and_counts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    counted: list[str] = []
    monkeypatch.setattr("airflow.sdk.observability.stats.incr", lambda name, *_, **__: counted.append(name))
    module, _, name = LAG_CALLBACK.rpartition(".")
    lagging = getattr(importlib.import_module(module), name)
    lagging(channel="shop", lag_seconds=60, context={"dag_run": {"dag_run_id": "r1", "queued_at": "12:00"}})
    assert "channel shop: run r1 was queued at 12:00 and had not succeeded 60 seconds later" in caplog.text
    assert counted == ["binlane.lag_alerts", "binlane.lag_alerts.shop"]


def test_the_projects_dags_load_two_a_channel() -> None:
    bag = DagBag(ROOT / "dags")
    assert bag.import_errors == {}
    channels = [file.stem for file in channel_files(ROOT / "dags" / "channels")]
    assert set(bag.dags) == {f"{kind}_{name}" for kind in ("replicate", "bootstrap") for name in channels}


def test_a_first_copy_is_from_a_live_source_by_hand_and_its_form_has_the_command_lines_options(tmp_path: Path) -> None:
    archive = write_channel(tmp_path, "old", CHANNEL.replace('connection = "source"', 'archive = "/logs"'))
    text = 'owner = "team"\nowner_link = "https://example.com/team"\ntags = ["eu"]\n' + CHANNEL
    write_channel(tmp_path, text=text)
    dags = build_dags(archive.parent)
    assert set(dags) == {"replicate_old", "replicate_shop", "bootstrap_shop"}
    dag = dags["bootstrap_shop"]
    assert not dag.timetable.can_be_scheduled
    assert (dag.max_active_runs, dag.is_paused_upon_creation) == (1, False)
    assert (dag.tags, dag.owner_links) == ({"binlane", "bootstrap", "eu"}, {"team": "https://example.com/team"})
    assert "`source` to `target`" in str(dag.doc_md)
    assert dag.get_task("copy_databases").retries == 3
    hints = get_type_hints(bootstrap, include_extras=True)
    defaults = {name: one.default for name, one in inspect.signature(bootstrap).parameters.items()}
    form = {name: dag.params.get_param(name) for name in dag.params}
    assert set(form) == set(defaults) - {"channel", "channels"}
    for name, param in form.items():
        (option,) = get_args(hints[name])[1:]
        assert param.value == defaults[name]
        assert (param.schema.get("minimum"), param.schema.get("maximum")) == (option.min, option.max), name


def test_a_wrong_channel_is_an_import_error_and_harms_no_other(tmp_path: Path) -> None:
    write_channel(tmp_path)
    write_channel(tmp_path, "bad", CHANNEL + "[lanes]\ncount = 0\n")
    (tmp_path / "dags" / "replicate.py").write_text((ROOT / "dags" / "replicate.py").read_text())
    bag = DagBag(tmp_path / "dags")
    assert set(bag.dags) == {"replicate_shop", "bootstrap_shop"}
    (error,) = bag.import_errors.values()
    assert "bad.toml: lanes.count: expected an integer 1..256, got 0" in error


def test_parsing_loads_no_driver_and_no_parser(tmp_path: Path) -> None:
    """Every task process parses the file: what the steps need is theirs to load."""
    heavy = ("pymysql", "pyarrow", "numba", "numpy", "sqlglot", "fsspec", "pyspark", "binlane.orchestration.steps")
    code = (
        "import sys, airflow.sdk, airflow.providers.apache.spark.operators.spark_submit\n"
        "before = set(sys.modules)\n"
        f"exec(compile(open({str(ROOT / 'dags' / 'replicate.py')!r}).read(), "
        f"{str(ROOT / 'dags' / 'replicate.py')!r}, 'exec'), "
        f"{{'__file__': {str(ROOT / 'dags' / 'replicate.py')!r}, '__name__': 'x'}})\n"
        f"print([name for name in {heavy!r} if name in set(sys.modules) - before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_airflow_leaves_the_package_under_plugins_alone() -> None:
    """It would run every file of it by its bare name: `errors`, `config`."""
    from airflow._shared.module_loading import find_path_from_directory

    found = list(find_path_from_directory(ROOT / "plugins", ".airflowignore", "glob"))
    assert [path for path in map(Path, found) if "binlane" in path.parts] == []


@pytest.mark.parametrize(
    ("error", "becomes"), [(WindowBusyError("w"), WindowBusyError), (PlanError("p"), AirflowFailException)]
)
def test_only_an_error_that_can_pass_is_tried_again(error: BinlaneError, becomes: type[Exception]) -> None:
    with pytest.raises(becomes, match=str(error)), airflow_errors():
        raise error


INTERVAL_END = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("run_type", "params", "expected"),
    [
        pytest.param("scheduled", {}, WindowRequest(interval_end=INTERVAL_END), id="scheduled"),
        pytest.param("backfill", {}, WindowRequest(interval_end=INTERVAL_END), id="backfill"),
        pytest.param("manual", {}, WindowRequest(), id="an interval made up for a run by hand is not used"),
        pytest.param("manual", {"until": "0-1-9", "lanes": 2}, WindowRequest("0-1-9", lanes=2), id="a form"),
        pytest.param("manual", {"resume": True}, WindowRequest(resume_before=INTERVAL_END), id="what was before it"),
    ],
)
def test_a_run_asks_for_its_interval_or_for_what_its_form_says(
    run_type: str, params: dict[str, Any], expected: WindowRequest
) -> None:
    run = SimpleNamespace(run_type=run_type, data_interval_end=INTERVAL_END, run_after=INTERVAL_END)
    context: Any = {"dag_run": run, "params": {"until": None, **params}}
    assert dag_factory._request(context) == expected


class Steps(ModuleType):
    """Stands for the steps: answers as told and writes down what it was asked. The work itself has its own tests."""

    def __init__(self, window: dict[str, Any], lanes: int = 3) -> None:
        super().__init__("binlane.orchestration.steps")
        self.calls: list[tuple[Any, ...]] = []
        self.window, self.lanes = (
            {
                "window": "w1",
                "work": "/w/w1",
                "watermark": 1234,
                "empty": False,
                "finished": False,
                "plan": None,
                **window,
            },
            lanes,
        )

    def extract(self, channel: Any, endpoints: Any, request: WindowRequest) -> dict[str, Any]:
        self.calls.append(("extract", endpoints.source.password, endpoints.target.tls.mode, request))
        return self.window

    def adopt_plan(self, channel: Any, endpoints: Any, work: str, stop_at: str | None) -> dict[str, Any]:
        self.calls.append(("adopt_plan", work))
        return {
            "plan": f"{work}/plan.json",
            "lanes": [{"lane": n, "name": f"lane {n}: a{n}"} for n in range(self.lanes)],
        }

    def apply_lane(self, channel: Any, endpoints: Any, plan: str, lane: int, interrupted: Any) -> dict[str, Any]:
        self.calls.append(("apply_lane", plan, lane))
        return {"lane": lane}

    def advance(self, channel: Any, endpoints: Any, plan: str) -> dict[str, Any]:
        self.calls.append(("advance", plan))
        return {"note": "done"}


Run = Callable[..., tuple[str, dict[str, str]]]
"""Steps, and whether the filter runs for real; the run's state and its tasks' states by task and name of the lane."""


@pytest.fixture
def run_window(metadata_database: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(steps: Steps, filter_runs: bool = False, **conf: Any) -> tuple[str, dict[str, str]]:
        monkeypatch.setitem(sys.modules, steps.__name__, steps)
        monkeypatch.setattr(orchestration, "steps", steps, raising=False)
        dag = DagBag(ROOT / "dags").dags["replicate_demo"]
        # the Spark job has tests of its own
        result = dag.test(
            run_conf={"until": "now", **conf}, mark_success_pattern=None if filter_runs else "event_metadata_filter"
        )
        tasks = {
            f"{ti.task_id} {ti.rendered_map_index or ''}".strip(): str(ti.state) for ti in result.get_task_instances()
        }
        return str(result.state), tasks

    return run


def test_a_window_goes_from_the_log_to_the_watermark(run_window: Run) -> None:
    steps = Steps({})
    state, tasks = run_window(steps)
    assert (state, tasks.pop("verify_target"), set(tasks.values())) == ("success", "skipped", {"success"})
    assert {"apply_lane lane 0: a0", "apply_lane lane 1: a1", "apply_lane lane 2: a2"} < set(tasks)
    assert steps.calls[:2] == [("extract", "source-pw", "disabled", WindowRequest("now")), ("adopt_plan", "/w/w1")]
    assert sorted(steps.calls[2:5]) == [("apply_lane", "/w/w1/plan.json", lane) for lane in range(3)]
    assert steps.calls[5:] == [("advance", "/w/w1/plan.json")]


@pytest.mark.parametrize("answer", [{"empty": True}, {"finished": True}])
def test_a_window_with_nothing_to_do_is_a_success_that_skips_the_rest(run_window: Run, answer: dict[str, Any]) -> None:
    steps = Steps(answer)
    state, tasks = run_window(steps)
    assert (state, len(steps.calls)) == ("success", 1)
    assert tasks.pop("extract_segments") == "success"
    assert set(tasks.values()) == {"skipped"}


def test_a_dry_run_ends_after_the_plan(run_window: Run) -> None:
    steps = Steps({}, lanes=0)
    state, tasks = run_window(steps)
    assert (state, tasks["adopt_plan"], tasks["advance_watermark"]) == ("success", "success", "skipped")
    assert [call[0] for call in steps.calls] == ["extract", "adopt_plan"]


class Verified(ModuleType):
    """Stands for the verification, which has tests of its own."""

    def __init__(self, drift: str = "") -> None:
        super().__init__("binlane.orchestration.verification")
        self.drift, self.asked = drift, list[str]()

    def verify_after(self, channel: Any, endpoints: Any, kind: str) -> dict[str, Any]:
        self.asked.append(kind)
        if self.drift:
            raise DriftError(self.drift)
        return {"state": "clean", "note": "all clean"}


@pytest.mark.parametrize(
    ("window", "kind", "drift", "expected"),
    [
        pytest.param({}, "window", "2 drift", ("failed", "failed", ["window"]), id="drift"),
        pytest.param({"empty": True}, "full", "", ("success", "success", ["full"]), id="nothing to apply"),
        pytest.param(None, "full", "", ("success", "skipped", []), id="stopped"),
    ],
)
def test_a_window_is_verified_as_the_form_says_and_drift_fails_the_run_behind_its_watermark(
    run_window: Run,
    monkeypatch: pytest.MonkeyPatch,
    window: dict[str, Any] | None,
    kind: str,
    drift: str,
    expected: tuple[str, str, list[str]],
) -> None:
    verified, steps = stand_in(monkeypatch, drift), Steps(window or {})
    if window is None:
        monkeypatch.setattr(steps, "extract", stopped)
    state, tasks = run_window(steps, verify=kind)
    assert (state, tasks["verify_target"], verified.asked) == expected
    assert tasks["advance_watermark"] == ("success" if drift else "skipped")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("window", ("success", "success", ["window"])), ("none", ("failed", "upstream_failed", []))],
)
def test_a_run_can_verify_alone_a_stopped_channel_too(
    run_window: Run, monkeypatch: pytest.MonkeyPatch, kind: str, expected: tuple[str, str, list[str]]
) -> None:
    verified, steps = stand_in(monkeypatch), Steps({})
    monkeypatch.setattr(steps, "extract", stopped)
    state, tasks = run_window(steps, verify=kind, verify_only=True, dry_run=True)
    assert (state, tasks["verify_target"], verified.asked) == expected
    assert steps.calls == []


@pytest.mark.parametrize(
    ("params", "advanced", "asked"),
    [
        ({"verify": "window"}, {"note": "done"}, ["window"]),
        ({"verify": "full"}, None, ["full"]),
        ({"verify": "none"}, {"note": "done"}, []),
        ({}, {"note": "done"}, []),
        ({"verify": "full", "dry_run": True}, None, []),
        ({"verify": "full"}, {"note": "stopped on request", "is_open": True}, []),
    ],
)
def test_the_target_is_verified_only_when_asked_and_only_behind_a_whole_window(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    params: dict[str, Any],
    advanced: dict[str, Any] | None,
    asked: list[str],
) -> None:
    verified = stand_in(monkeypatch)
    context = {"params": params, "ti": SimpleNamespace(xcom_pull=lambda **_: advanced, xcom_push=lambda *_: None)}
    monkeypatch.setattr(dag_factory, "get_current_context", lambda: context)
    monkeypatch.setattr(dag_factory, "endpoints_of", lambda _: None)
    task: Any = shop(tmp_path).get_task("verify_target")
    with contextlib.nullcontext() if asked else pytest.raises(AirflowSkipException):
        task.python_callable()
    assert verified.asked == asked


def stand_in(monkeypatch: pytest.MonkeyPatch, drift: str = "") -> Verified:
    verified = Verified(drift)
    monkeypatch.setitem(sys.modules, verified.__name__, verified)
    monkeypatch.setattr(orchestration, "verification", verified, raising=False)
    return verified


def stopped(*_: Any) -> dict[str, Any]:
    raise StopRequestedError("was asked to stop")


@pytest.mark.parametrize(
    ("error", "tries", "state"), [(None, 1, "success"), (TargetUnavailableError("gone"), 2, "success"),
                                  (PrecheckError("not empty"), 1, "failed")],
)  # fmt: skip
def test_a_first_copy_is_one_order_that_is_tried_again_where_that_can_help(
    metadata_database: None,
    monkeypatch: pytest.MonkeyPatch,
    error: BinlaneError | None,
    tries: int,
    state: str,
) -> None:
    asked: list[Options] = []
    mark = Watermark(0, LogPosition("b.000001", 4), "0-1-7", 1.5, "f")

    def first_copy(channel: Any, endpoints: Any, options: Options, told: bootstrapping.LogLines) -> Outcome:
        asked.append(options)
        told.begins(2, 10)
        if error is not None and len(asked) == 1:
            raise error
        return Outcome("demo", 1, 2, 0, 10, 0, 0, (), len(asked), mark)

    monkeypatch.setattr(bootstrapping, "first_copy", first_copy)
    dag = DagBag(ROOT / "dags").dags["bootstrap_demo"]
    for task in dag.tasks:
        task.retry_delay = dt.timedelta(0)
    conf = {"databases": "tenant_*, shop", "users": True, "replace": True, "jobs": 2}
    run = dag.test(run_conf=conf)
    assert (str(run.state), len(asked)) == (state, tries)
    order = f"bootstrap_demo {run.run_id}"
    expected = Options(("tenant_*", "shop"), users=True, replace=True, jobs=2, order=order)
    assert asked == [expected] * tries
    if state == "success":
        assert last_event().extra == {"seqno": 0, "gtid": "0-1-7", "time": 1.5, "window": None}


def last_event() -> Any:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        return session.scalars(select(AssetEvent).order_by(AssetEvent.id.desc()).limit(1)).one()


def test_a_committed_watermark_is_an_asset_event_that_others_can_wait_for(
    run_window: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, float]] = []
    monkeypatch.setattr("airflow.sdk.observability.stats.gauge", lambda name, value, **_: sent.append((name, value)))
    monkeypatch.setattr("airflow.sdk.observability.stats.incr", lambda name, count, **_: sent.append((name, count)))
    steps = Steps({})
    mark = {"note": "done", "seqno": 7, "gtid": "0-1-7", "time": 1.5, "transactions": 7, "read": 12, "rows": 4}
    monkeypatch.setattr(steps, "advance", lambda *_: {**mark, "window": "w1"})
    state, _ = run_window(steps)
    assert state == "success"
    event = last_event()
    assert event.extra == {"seqno": 7, "gtid": "0-1-7", "time": 1.5, "window": "w1"}
    assert (event.source_dag_id, event.source_task_id) == ("replicate_demo", "advance_watermark")
    assert ("binlane.reduction_ratio.demo", 3.0) in sent
    assert ("binlane.transactions", 7) in sent
    assert ("binlane.row_changes.demo", 12) in sent
    assert {name for name, _ in sent} >= {
        *("binlane.lag_seconds", "binlane.lag_seconds.demo", "binlane.rows.demo", "binlane.window_seconds.demo"),
    }


def test_a_window_that_has_a_plan_keeps_it(run_window: Run) -> None:
    steps = Steps({"plan": "/w/w1/plan.json"})
    state, tasks = run_window(steps, filter_runs=True)
    assert (state, tasks["event_metadata_filter"], tasks["adopt_plan"]) == ("success", "skipped", "success")
    assert steps.calls[-1] == ("advance", "/w/w1/plan.json")


@pytest.mark.parametrize(
    ("answer", "conf", "drift", "expected"),
    [
        pytest.param({}, {"verify": "window"}, "", "all that was done\n\nall clean", id="applied and verified"),
        pytest.param({}, {"verify": "full"}, "2 drift\nt.a\nt.b", "all that was done\n\n2 drift\nt.a", id="drift"),
        pytest.param({"empty": True}, {}, "", "nothing to apply: the watermark is at seqno 1,234", id="nothing"),
        pytest.param({}, {"verify": "full", "verify_only": True}, "", "all clean", id="verified alone"),
    ],
)
def test_what_came_of_a_run_is_its_note(
    run_window: Run,
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, Any],
    conf: dict[str, Any],
    drift: str,
    expected: str,
) -> None:
    stand_in(monkeypatch, drift)
    steps = Steps(answer)
    monkeypatch.setattr(steps, "advance", lambda *_: {"note": "all that was done"})
    run_window(steps, **conf)
    assert last_note() == expected


def test_the_note_of_a_run_that_failed_says_what_ended_its_lane(
    run_window: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apply_lane(*_: Any) -> dict[str, Any]:
        raise DriftError("lane 0, seqno 7: a row is missing\nwhat to do\nand more")

    steps = Steps({})
    monkeypatch.setattr(steps, "apply_lane", apply_lane)
    state, _ = run_window(steps)
    assert (state, last_note()) == ("failed", "lane 0, seqno 7: a row is missing\nwhat to do")


def test_a_note_keeps_what_a_person_has_written_and_airflows_length(
    run_window: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    steps = Steps({})

    def advance(*_: Any) -> dict[str, Any]:
        with create_session() as session:
            session.scalars(select(DagRun).order_by(DagRun.id.desc()).limit(1)).one().note = "mine"
        return {"note": "x" * 2_000}

    monkeypatch.setattr(steps, "advance", advance)
    run_window(steps)
    note = last_note()
    assert note is not None
    assert (note[:7], len(note)) == ("mine\n\nx", 1_000)


def last_note() -> str | None:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        note: str | None = session.scalars(select(DagRun).order_by(DagRun.id.desc()).limit(1)).one().note
    return note
