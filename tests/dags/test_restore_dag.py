"""The DAG of a channel's restores: its form, and runs of it on real servers. A person's answer is in
``tests/trials/test_approvals.py``."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.execution_time.xcom import XCom
from airflow.serialization.serialized_objects import DagSerialization

from binlane.config import load_channel
from binlane.connections import environment_resolver
from binlane.errors import ConfigError, TargetUnavailableError
from binlane.orchestration.airflow.replicate_dag import build_dags
from binlane.orchestration.airflow.restore_dag import APPROVE, PLAN, RESTORE, require_approved
from binlane.orchestration.commands.copies import restore as restoring
from binlane.orchestration.commands.copies.restore_form import RestoreForm
from binlane.orchestration.commands.copies.restore_plan import (
    EndRequest,
    RestorePlan,
    RestoreRequest,
    plan_restore,
)
from lab.site import DAG_FILE
from tests.dags.scene import CHANNEL as SHOP
from tests.dags.scene import last_note, write_channel
from tests.integration.restore.scene import DATABASE, OTHER, Scene, contents, scene_of
from tests.integration.window.conftest import CHANNEL, Channel, channel, channel_of, clean_servers, run_on

__all__ = ["channel", "channel_of", "clean_servers"]

DAG_ID = f"restore_{CHANNEL}"
FORM = {"databases": DATABASE, "base": "one.sql", "before": f"DROP DATABASE {DATABASE}", "restore_as": "back"}


def test_only_a_channel_whose_file_allows_it_has_the_dag(tmp_path: Path) -> None:
    folder = write_channel(tmp_path).parent
    write_channel(tmp_path, "old", SHOP.replace('connection = "source"', 'archive = "/logs"'))
    assert [name for name in build_dags(folder) if name.startswith("restore")] == []
    write_channel(tmp_path, text=SHOP + '[restore]\nbases = ["/dumps", "/more"]\n')
    logs = 'logs = ["s3://logs/shop/", "source"]\ntargets = ["spare", "target"]\n'
    write_channel(tmp_path, "crm", 'owner = "team"\ntags = ["eu"]\n' + SHOP + f"[restore]\n{logs}")
    dags = build_dags(folder)
    assert {name for name in dags if name.startswith("restore")} == {"restore_shop", "restore_crm"}
    dag: Any = dags["restore_shop"]
    assert (dag.timetable.can_be_scheduled, dag.is_paused_upon_creation) == (False, False)
    assert [task.task_id for task in dag.topological_sort()] == [PLAN, APPROVE, RESTORE]
    assert dags["restore_crm"].tags == {"binlane", "restore", "eu"}
    params = {name: dag.params.get_param(name) for name in dag.params}
    assert all(param.schema["title"] and param.description for param in params.values())
    form = {name: param.schema for name, param in params.items()}
    assert (form["log"]["enum"], form["onto"]["enum"]) == (["source"], ["target"])
    assert str(params["base"].description).endswith("Folders: /dumps, /more.")
    assert (form["replace"]["type"], params["extend"].value, params["drop"].value) == ("boolean", None, None)
    form = {name: (param := dags["restore_crm"].params.get_param(name)).schema | {"v": param.value} for name in form}
    assert (form["log"]["enum"], form["log"]["v"]) == (["s3://logs/shop/", "source"], "s3://logs/shop/")
    assert (form["onto"]["enum"], form["onto"]["v"]) == (["spare", "target"], "spare")
    # as the api-server and the scheduler read it
    assert json.dumps(DagSerialization.to_dict(dag))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "databases, extend, drop: expected one of the three, found none"),
        (
            {"databases": "a", "drop": "r"},
            "databases, extend, drop: expected one of the three, found databases and drop",
        ),
        ({"databases": "a"}, "until, before: expected one of the two"),
        ({"extend": "r"}, "until, before: expected one of the two"),
        ({"drop": "r", "until": "now"}, "until, before: expected neither with drop"),
        ({"drop": "r", "base": "a.sql"}, "base: expected it only with databases, found it with drop"),
        ({"extend": "r", "until": "now", "replace": True}, "replace: expected it only with databases, found it with"),
        (
            {"extend": "r", "until": "now", "tables": "t"},
            "tables: expected it only with databases, found it with extend",
        ),
        ({"databases": "a", "until": "now", "before": "0-1-1"}, "until, before: expected one of the two"),
        ({"databases": "a", "until": "now", "base": " "}, "base: expected text, got ' '"),
    ],
)
def test_a_form_without_one_order_or_one_end_is_refused_by_its_field(params: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=f"^{said}.*; trigger the run again"):
        RestoreForm.of(params)


def test_a_relative_folder_of_dumps_is_refused(tmp_path: Path) -> None:
    for folder in ("dumps", "/dumps/../etc"):
        file = write_channel(tmp_path, text=SHOP + f'[restore]\nbases = ["{folder}"]\n')
        with pytest.raises(ConfigError, match=r"restore\.bases: expected whole paths of folders, without \.\."):
            load_channel(file)


ANSWER: Final = {
    "chosen_options": ["Approve"],
    "params_input": {},
    "responded_by_user": {"id": "1", "name": "anna"},
}
"""What the task of an approval leaves, but for the time."""
Runs = Callable[..., tuple[str, dict[str, str], str]]
"""The form's values; the run's state, its tasks' states, and what its tasks have printed."""


@pytest.fixture
def run_dag(
    metadata_database: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Channel], Runs]:
    def of(channel: Channel) -> Runs:
        folder = channel.project / "dags"
        channel.write_channel(f'[restore]\nbases = ["{channel.project}"]\n')
        (folder / "binlane.py").write_text(DAG_FILE)
        local = "airflow.dag_processing.bundles.local.LocalDagBundle"
        bundle = {"name": CHANNEL, "classpath": local, "kwargs": {"path": str(folder)}}
        monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps([bundle]))
        monkeypatch.setenv("BINLANE_CHANNELS", str(channel.channels))
        for name, value in channel.environment.items():
            monkeypatch.setenv(name, value)

        def run(*, marks: bool = False, approves: Any = None, **form: Any) -> tuple[str, dict[str, str], str]:
            dag = DagBag(folder).dags[DAG_ID]
            for task in dag.tasks:
                task.retry_delay = dt.timedelta(0)
            capsys.readouterr()
            with pytest.MonkeyPatch.context() as patch:
                if not marks:
                    # a person approves
                    patch.setattr(ApprovalOperator, "execute", approves or (lambda *_, **__: ANSWER))
                done = dag.test(run_conf={**FORM, **form}, mark_success_pattern=APPROVE if marks else None)
            tasks = {ti.task_id: str(ti.state) for ti in done.get_task_instances()}
            return str(done.state), tasks, capsys.readouterr().out

        return run

    return of


def test_an_approval_that_somebody_has_marked_as_a_success_is_none(
    channel: Channel, run_dag: Callable[[Channel], Runs]
) -> None:
    scene = scene_of(channel)
    state, tasks, said = run_dag(channel)(marks=True)
    assert (state, tasks[APPROVE], tasks[RESTORE]) == ("failed", "success", "failed")
    assert "expected the answer Approve of a person, found none" in said
    assert scene.databases() == set()


@pytest.mark.parametrize("answer", [None, {"chosen_options": ["Reject"]}, {"chosen_options": []}, "Approve"])
def test_no_other_answer_approves(answer: Any) -> None:
    shown: dict[str, Any] = {"facts": {}}
    assert require_approved(ANSWER, shown) is shown
    with pytest.raises(ConfigError, match="expected the answer Approve of a person"):
        require_approved(answer, shown)
    with pytest.raises(ConfigError, match="expected the answer Approve of a person"):
        require_approved(ANSWER, None)


def test_a_restore_is_planned_and_carried_out_and_a_retry_goes_on_with_it(
    channel: Channel, run_dag: Callable[[Channel], Runs], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scene_of(channel)
    run = run_dag(channel)
    to_the_end, tries = restoring._to_the_end, 0

    def lost_once(*arguments: Any, **options: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise TargetUnavailableError("gone")
        return to_the_end(*arguments, **options)

    monkeypatch.setattr(restoring, "_to_the_end", lost_once)
    state, tasks, said = run()
    assert (state, set(tasks.values()), tries) == ("success", {"success"}, 2), said
    assert contents(channel.target, "back") == scene.expected
    assert scene.databases() == {"back"}
    # a retry on another worker has the same work folder
    file = channel.channels.parent / "restores" / "restore_back.toml"
    assert f'[work]\nuri = "{channel.config.work.uri}"\n' in file.read_text()
    assert f"complete: back (from {DATABASE})" in (last_note() or "").replace("\\", "")


def _log_has_changed(scene: Scene) -> None:
    run_on(scene.source, f"CREATE DATABASE {DATABASE}", f"DROP DATABASE {DATABASE}")


def _name_is_taken(scene: Scene) -> None:
    run_on(scene.channel.target, "CREATE DATABASE back", log=False)


def _dump_is_another(scene: Scene) -> None:
    dump = scene.dump("one.sql")
    dump.write_bytes(dump.read_bytes().replace(b"-- Dump completed", b"-- \n-- Dump completed"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_log_has_changed, "expected one such statement in"),
        (_name_is_taken, "database back"),
        (_dump_is_another, "expected the plan that was approved"),
    ],
)
def test_a_plan_that_is_another_one_by_then_is_not_carried_out(
    change: Callable[[Scene], None],
    expected: str,
    channel: Channel,
    run_dag: Callable[[Channel], Runs],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = scene_of(channel)

    def behind_the_approval(*arguments: Any) -> Any:
        change(scene)
        return plan_restore(*arguments)

    monkeypatch.setattr(restoring, "plan_restore", behind_the_approval)
    state, tasks, said = run_dag(channel)()
    assert (state, tasks[PLAN], tasks[RESTORE]) == ("failed", "success", "failed")
    assert expected in said
    assert scene.databases() <= {"back"}
    assert list((channel.channels.parent / "restores").glob("*")) == []


def test_a_plan_that_is_made_behind_the_approval_is_not_approved(
    channel: Channel, run_dag: Callable[[Channel], Runs], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may edit runs clears the plan's task alone."""
    scene = scene_of(channel)

    def of_the_plan_before(_: Any, context: Any) -> Any:
        _dump_is_another(scene)
        again = context["task"].dag.get_task(PLAN).python_callable()
        ti = context["ti"]
        XCom.set("return_value", again, dag_id=ti.dag_id, task_id=PLAN, run_id=ti.run_id)
        return ANSWER

    state, tasks, said = run_dag(channel)(approves=of_the_plan_before)
    assert (state, tasks[APPROVE], tasks[RESTORE]) == ("failed", "success", "failed"), said
    assert "expected the plan that was approved" in said
    assert scene.databases() == set()
    assert list((channel.channels.parent / "restores").glob("*")) == []


def test_what_the_channel_leaves_out_is_not_planned_by_a_pattern_either(
    channel: Channel, run_dag: Callable[[Channel], Runs]
) -> None:
    scene = scene_of(channel, ("all.sql",))
    run = run_dag(channel)
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text() + f'[filter]\nexclude_databases = ["{OTHER}"]\n')
    for databases in (OTHER, "store_*"):
        state, tasks, said = run(databases=databases, base="all.sql", restore_as="%_back")
        assert (state, tasks[PLAN], tasks[APPROVE]) == ("failed", "failed", "upstream_failed")
        assert f"copies as a whole, found {OTHER} (exclude_databases" in said
        assert "around the end" not in said
    assert scene.databases() == set()


@pytest.mark.parametrize("has_begun", [False, True])
def test_what_the_channel_leaves_out_since_its_plan_was_approved_is_not_restored(
    has_begun: bool, channel: Channel, run_dag: Callable[[Channel], Runs], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an attempt has begun with it. Names of a pattern are in the dump, and not in the form."""
    scene = scene_of(channel, ("all.sql",))
    run = run_dag(channel)
    file = channel.channels / f"{CHANNEL}.toml"
    to_the_end = restoring._to_the_end

    def leave_out(dag: Any) -> None:
        file.write_text(file.read_text() + f'[filter]\nexclude_databases = ["{OTHER}"]\n')
        # each task reads the channel's file anew
        read: Any = DagBag(channel.project / "dags").dags[DAG_ID].get_task(RESTORE)
        dag.get_task(RESTORE).python_callable = read.python_callable

    def approve(_: Any, context: Any) -> Any:
        if has_begun:
            monkeypatch.setattr(restoring, "_to_the_end", lambda *_, **__: begun(context["task"].dag))
        else:
            leave_out(context["task"].dag)
        return ANSWER

    def begun(dag: Any) -> Any:
        monkeypatch.setattr(restoring, "_to_the_end", to_the_end)
        leave_out(dag)
        raise TargetUnavailableError("gone")

    state, tasks, said = run(approves=approve, databases="store_*", base="all.sql", restore_as="%_back")
    assert (state, tasks[APPROVE], tasks[RESTORE]) == ("failed", "success", "failed"), said
    assert f"copies as a whole, found {OTHER} (exclude_databases" in said
    assert not any(name.endswith("_back") for name in scene.databases())


OTHERS: Final = {"databases": None, "base": "log", "before": None, "restore_as": None}
"""Of the form, where no new restore is ordered."""


def _audited(channel: Channel) -> list[tuple[str, str, str]]:
    """Commands of restores, with the digest of their plan and their result."""
    return list(channel.target.query("SELECT command, digest, result FROM binlane.audit ORDER BY id"))


def plan_of(scene: Scene) -> RestorePlan:
    ends = EndRequest(None, f"DROP DATABASE {DATABASE}")
    request = RestoreRequest(
        None, str(scene.dump("one.sql")), "source_server", (DATABASE,), (), "back", ends, None, "target_server"
    )
    return plan_restore(request, scene.channel.channels, environment_resolver(scene.channel.environment))


def test_a_restore_is_extended_and_dropped_by_the_form_and_what_it_does_is_in_the_audit(
    channel: Channel, run_dag: Callable[[Channel], Runs], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, run = scene_of(channel), run_dag(channel)
    early = str(plan_of(scene).scan.before[3].start)
    state, tasks, said = run(before=None, until=early)
    assert (state, set(tasks.values())) == ("success", {"success"}), said
    assert contents(channel.target, "back") != scene.expected

    # killed once behind its beginning: the retry goes on with it
    to_the_end, tries = restoring._to_the_end, 0

    def lost_once(*arguments: Any, **options: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise TargetUnavailableError("gone")
        return to_the_end(*arguments, **options)

    monkeypatch.setattr(restoring, "_to_the_end", lost_once)
    later = {**OTHERS, "extend": "restore_back", "before": f"DROP DATABASE {DATABASE}"}
    state, tasks, said = run(**later)
    assert (state, set(tasks.values()), tries) == ("success", {"success"}, 2), said
    assert contents(channel.target, "back") == scene.expected
    [*_, (command, digest, result), (again, _, ended)] = _audited(channel)
    assert (command, len(digest), result) == ("restore --extend", 64, "failed")
    assert (again, ended) == ("restore --continue", "done")

    state, tasks, said = run(**OTHERS, drop="restore_back")
    assert (state, set(tasks.values())) == ("success", {"success"}), said
    assert "its databases stay" in said
    assert scene.databases() == {"back"}
    assert channel.target.query("SELECT * FROM binlane.restores") == []
    [*_, (command, digest, result)] = _audited(channel)
    assert (command, len(digest), result) == ("restore --drop", 64, "done")
    # the plan is cleared
    state, tasks, said = run(**OTHERS, drop="restore_back")
    assert (state, tasks[PLAN]) == ("failed", "failed")
    assert "expected the name of a restore, found no file of it" in said


def test_an_unfinished_restore_is_dropped_as_it_was_approved_or_not_at_all(
    channel: Channel, run_dag: Callable[[Channel], Runs], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, run = scene_of(channel), run_dag(channel)
    with monkeypatch.context() as patch:
        patch.setitem(restoring._STAGES, "rolling", Mock(side_effect=ConfigError("killed")))
        assert scene.restore("restore_back", "--yes", base="one.sql") != 0
    assert scene.databases() == {"back_unfinished"}

    def somebody_ends_it(*_: Any, **__: Any) -> Any:
        assert scene.channel.cli("restore", "--continue", "restore_back") == 0
        return ANSWER

    given = {**OTHERS, "drop": "restore_back"}
    state, tasks, said = run(approves=somebody_ends_it, **given)
    assert (state, tasks[APPROVE], tasks[RESTORE]) == ("failed", "success", "failed"), said
    assert "stage: 'rolling', now 'complete'" in said
    assert scene.databases() == {"back"}
    assert contents(channel.target, "back") == scene.expected
    assert scene.channel.cli("restore", "--drop", "restore_back") == 0
    run_on(channel.target, "DROP DATABASE back")

    with monkeypatch.context() as patch:
        patch.setitem(restoring._STAGES, "rolling", Mock(side_effect=ConfigError("killed")))
        assert scene.restore("restore_back", "--yes", base="one.sql") != 0
    state, tasks, said = run(**given)
    assert (state, set(tasks.values())) == ("success", {"success"}), said
    assert scene.databases() == set()
    assert list((channel.channels.parent / "restores").glob("*")) == []


def test_a_database_is_replaced_by_the_form_and_only_if_it_says_so(
    channel: Channel, run_dag: Callable[[Channel], Runs]
) -> None:
    scene, run = scene_of(channel), run_dag(channel)
    run_on(channel.target, "CREATE DATABASE back", "CREATE TABLE back.former (id INT PRIMARY KEY)", log=False)
    state, tasks, said = run()
    assert (state, tasks[PLAN]) == ("failed", "failed")
    assert "database back" in said
    file = channel.channels / f"{CHANNEL}.toml"
    text = file.read_text()
    file.write_text(text + '[filter]\nexclude_databases = ["back"]\n')
    state, tasks, said = run(replace=True)
    assert (state, tasks[PLAN]) == ("failed", "failed")
    assert "copies as a whole, found back (exclude_databases" in said
    assert channel.target.query("SHOW TABLES FROM back") == [("former",)]
    file.write_text(text)
    state, tasks, said = run(replace=True)
    assert (state, set(tasks.values())) == ("success", {"success"}), said
    assert contents(channel.target, "back") == scene.expected
    assert channel.target.query("SHOW TABLES FROM back_replaced") == [("former",)]
