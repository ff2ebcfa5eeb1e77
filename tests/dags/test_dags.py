"""The DAGs: their shape, and what the project's folder gives."""

import datetime as dt
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import CronDataIntervalTimetable
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference
from airflow.sdk.exceptions import AirflowFailException
from airflow.serialization.serialized_objects import DagSerialization

from binlane.cli.commands import bootstrap
from binlane.config import LAG_CALLBACK, ChannelConfig, declared_channels, load_channel
from binlane.errors import (
    BinlaneError,
    ConfigError,
    PlanError,
    WindowBusyError,
)
from binlane.orchestration.airflow import replicate_dag
from binlane.orchestration.airflow.dag_shape import Kind, describe
from binlane.orchestration.airflow.replicate_dag import build_dags, require_right_channels
from binlane.orchestration.airflow.task_errors import airflow_errors
from binlane.orchestration.request import WindowRequest
from lab import demo_view
from tests.dags.scene import CHANNEL, ROOT, shop, write_channel


def test_the_shape_of_a_window_is_one_line(tmp_path: Path) -> None:
    steps = describe(load_channel(write_channel(tmp_path)))
    assert [(step.kind, step.after) for step in steps] == [
        (Kind.EXTRACT, ()),
        (Kind.FILTER, (Kind.EXTRACT,)),
        (Kind.ADOPT, (Kind.FILTER,)),
        (Kind.APPLY, (Kind.ADOPT,)),
        (Kind.ADVANCE, (Kind.APPLY,)),
        (Kind.VERIFY, (Kind.ADVANCE,)),
        (Kind.CONFIRM, (Kind.APPLY, Kind.VERIFY)),
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


def test_a_task_has_a_time_but_not_what_could_not_go_on_after_it(tmp_path: Path) -> None:
    dag = shop(tmp_path, CHANNEL + "[apply]\ntask_timeout = 7200\n")
    timeouts = {task.task_id: task.execution_timeout for task in dag.tasks}
    assert timeouts.pop("verify_target") is None
    assert set(timeouts.values()) == {dt.timedelta(hours=2)}
    assert shop(tmp_path).get_task("apply_lane").execution_timeout == dt.timedelta(days=1)
    assert shop(tmp_path, CHANNEL + "[apply]\ntask_timeout = 0\n").get_task("apply_lane").execution_timeout is None


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
        "verify_accounts": "boolean",
        "lanes": ["null", "integer"],
        "block_size": ["null", "integer"],
        "engine": "string",
    }
    assert form["engine"]["enum"] == ["local", "spark", "auto"]
    assert shop(tmp_path, CHANNEL + '[spark]\nengine = "auto"\n').params["engine"] == "auto"
    assert form["verify"]["enum"] == ["none", "window", "slice", "full"]
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
    assert '"path": "binlane.orchestration.airflow.notify.lagging"' in json.dumps(stored["deadline"])


def test_the_callback_that_comes_with_it_names_the_run_and_counts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    counted: list[str] = []
    monkeypatch.setattr("airflow.sdk.observability.stats.Stats.incr", lambda name, *_, **__: counted.append(name))
    module, _, name = LAG_CALLBACK.rpartition(".")
    lagging = getattr(importlib.import_module(module), name)
    lagging(channel="shop", lag_seconds=60, context={"dag_run": {"dag_run_id": "r1", "queued_at": "12:00"}})
    assert "channel shop: run r1 was queued at 12:00 and had not succeeded 60 seconds later" in caplog.text
    assert counted == ["binlane.lag_alerts", "binlane.lag_alerts.shop"]


def test_the_projects_dags_load_two_a_channel() -> None:
    bag = DagBag(ROOT / "dags")
    assert bag.import_errors == {}
    channels = [each.name for each in declared_channels(ROOT / "dags" / "channels")]
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
    # a physical copy is begun at by hand, where its folder is
    assert set(form) == set(defaults) - {"channel", "channels", "from_clone", "from_backup"}
    for name, param in form.items():
        (option,) = get_args(hints[name])[1:]
        assert param.value == defaults[name]
        assert (param.schema.get("minimum"), param.schema.get("maximum")) == (option.min, option.max), name


WRONG = {
    "bad": (CHANNEL + "[lanes]\ncount = 0\n", "bad.toml: lanes.count: expected an integer 1..256, got 0"),
    "a b": (
        CHANNEL,
        "a b.toml: the file's name is the channel's: expected up to 64 letters, digits, - and _, got 'a b'",
    ),
    "<b>\u202e": (CHANNEL, ".toml: the file's name is the channel's"),
    "tagged": (
        f'tags = ["{101 * "x"}"]\n' + CHANNEL,
        "tagged.toml: tags: expected a list of texts of at most 100 char",
    ),
    "owned": (f'owner = "{501 * "x"}"\n' + CHANNEL, "owned.toml: owner: expected text of at most 500 characters"),
    "cron": (CHANNEL + '[window]\nschedule = "99 * * * *"\n', "cron.toml: window.schedule: expected a cron expression"),
    "nested": (f"a = {10_000 * '['}", "nested.toml: expected TOML: "),
    "long": (f"a = {5_000 * '9'}", "long.toml: expected TOML: "),
}


def site(folder: Path) -> DagBag:
    """A DAGs folder with the project's files, as Airflow reads it."""
    for name in ("replicate.py", "wrong_channels.py"):
        (folder / "dags" / name).write_text((ROOT / "dags" / name).read_text())
    return DagBag(folder / "dags", bundle_path=folder / "dags", bundle_name="site")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_channel_is_one_import_error_and_costs_no_other_its_dag(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    text, problem = WRONG[name]
    write_channel(tmp_path)
    write_channel(tmp_path, name, text)
    bag = site(tmp_path)
    assert set(bag.dags) == {"replicate_shop", "bootstrap_shop"}
    assert list(bag.import_errors) == ["wrong_channels.py"]
    assert problem in bag.import_errors["wrong_channels.py"]
    assert problem in caplog.text


def test_what_airflow_refuses_of_one_channel_costs_no_other_its_dag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(channel: ChannelConfig) -> str:
        if channel.name == "bad":
            raise ValueError("not such a DAG")
        return "text"

    monkeypatch.setattr(replicate_dag, "_doc", refused)
    write_channel(tmp_path, "bad")
    folder = write_channel(tmp_path).parent
    assert set(build_dags(folder)) == {"replicate_shop", "bootstrap_shop"}
    with pytest.raises(
        ConfigError, match=r"(?s)1 channel without a DAG:.*bad\.toml: channel bad: ValueError: not such"
    ):
        require_right_channels(folder)


@pytest.mark.usefixtures("metadata_database")
def test_a_wrong_channel_leaves_the_schedules_of_the_others(tmp_path: Path) -> None:
    """Airflow marks every DAG of a file with an import error as stale, and begins none of its scheduled runs."""
    from airflow.dag_processing.dagbag import sync_bag_to_db
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.errors import ParseImportError
    from airflow.utils.session import create_session

    write_channel(tmp_path)
    for name, (text, _) in WRONG.items():
        write_channel(tmp_path, name, text)
    with create_session() as session:
        session.merge(DagBundleModel(name="site"))
        session.flush()
        sync_bag_to_db(site(tmp_path), "site", None, session=session)
        shop = session.get_one(DagModel, "replicate_shop")
        assert (shop.is_stale, shop.has_import_errors) == (False, False)
        (error,) = session.query(ParseImportError).filter_by(bundle_name="site")
        assert error.filename == "wrong_channels.py"
        assert f"{len(WRONG)} channels without a DAG:" in str(error.stacktrace)
        session.rollback()


def test_parsing_loads_no_driver_and_no_parser(tmp_path: Path) -> None:
    """Every task process parses the file: what the steps need is theirs to load."""
    heavy = ("pymysql", "pyarrow", "numpy", "sqlglot", "fsspec", "pyspark", "binlane.orchestration.steps")
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

    plugins = ROOT / "plugins"
    found = map(Path, find_path_from_directory(plugins, ".airflowignore", "glob"))
    # a checkout may have the package's name itself
    assert [path for path in found if path.is_relative_to(plugins / "binlane")] == []


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
        pytest.param("operator_triggered", {}, WindowRequest(), id="nor for one that another DAG triggers"),
        pytest.param("asset_materialization", {}, WindowRequest(), id="nor for one that materializes the asset"),
        pytest.param("manual", {"until": "0-1-9", "lanes": 2}, WindowRequest("0-1-9", lanes=2), id="a form"),
        pytest.param("manual", {"resume": True}, WindowRequest(resume_before=INTERVAL_END), id="what was before it"),
    ],
)
def test_a_run_asks_for_its_interval_or_for_what_its_form_says(
    run_type: str, params: dict[str, Any], expected: WindowRequest
) -> None:
    run = SimpleNamespace(run_type=run_type, data_interval_end=INTERVAL_END, run_after=INTERVAL_END, conf=params)
    run.logical_date = run.start_date = None
    form = {"until": None, "lanes": None, "resume": False}
    context: Any = {"dag": SimpleNamespace(params=form), "dag_run": run, "params": {**form, **params}}
    assert replicate_dag._request(context) == expected


HOUR = dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("run_after", "logical_date", "start_date", "expected"),
    [
        pytest.param(0, None, 1, 0, id="a run that waits for a slot, or is cleared"),
        pytest.param(-1, 0, 1, 0, id="Airflow 3.1, with a logical date"),
        pytest.param(9, 9, 0, 0, id="times of the future"),
        pytest.param(0, -9, 1, 0, id="a logical date of the past"),
    ],
)
def test_a_run_cancels_no_stop_that_may_be_younger_than_its_trigger(
    run_after: int, logical_date: int | None, start_date: int, expected: int
) -> None:
    run = SimpleNamespace(
        run_type="manual",
        run_after=INTERVAL_END + run_after * HOUR,
        logical_date=None if logical_date is None else INTERVAL_END + logical_date * HOUR,
        start_date=INTERVAL_END + start_date * HOUR,
        conf={"resume": True},
    )
    context: Any = {"dag": SimpleNamespace(params=run.conf), "dag_run": run, "params": run.conf}
    assert replicate_dag._request(context).resume_before == INTERVAL_END + expected * HOUR


def test_a_template_gives_each_of_its_channels_dags_and_a_wrong_one_costs_no_other(tmp_path: Path) -> None:
    (tmp_path / "shops.toml").write_text(
        'tags = ["${region}"]\n[instances]\nshop_eu = { region = "eu" }\nshop_us = { region = "us" }\nshop_x = {}\n'
        '[source]\nconnection = "${channel}_source"\n[target]\nconnection = "t"\n'
    )
    dags = build_dags(tmp_path)
    assert {name for name in dags if name.startswith("replicate")} == {"replicate_shop_eu", "replicate_shop_us"}
    assert dags["replicate_shop_eu"].tags >= {"binlane", "eu"}
    assert dags["bootstrap_shop_us"].tags >= {"binlane", "us"}
    with pytest.raises(ConfigError, match="channel shop_x: tags: expected variable region"):
        require_right_channels(tmp_path)
