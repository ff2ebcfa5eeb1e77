"""The DAG of a channel's drills: by the file's base and log alone, and a run of it on real servers."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

from binlane.config import load_channel
from binlane.errors import ConfigError
from binlane.orchestration.airflow.drill_dag import TASK
from binlane.orchestration.airflow.replicate_dag import build_dags
from binlane.orchestration.commands.copies import drill
from lab.site import DAG_FILE
from tests.dags.scene import CHANNEL as SHOP
from tests.dags.scene import last_note, write_channel
from tests.integration.restore.test_drill import NOTHING, Site
from tests.integration.window.conftest import CHANNEL, Channel, channel, channel_of, clean_servers

__all__ = ["channel", "channel_of", "clean_servers"]

BOTH = '[drill]\nbase = "/backup/all.sql"\nlog = "/backup/binlog/"\n'


def test_a_channel_with_a_base_and_a_log_has_the_dag(tmp_path: Path) -> None:
    folder = write_channel(tmp_path).parent
    assert "drill_shop" not in build_dags(folder)
    write_channel(tmp_path, text=SHOP + BOTH + "tenants = 5\n")
    write_channel(tmp_path, "crm", SHOP + BOTH + 'schedule = "none"\n')
    dags = build_dags(folder)
    assert (dags["drill_shop"].timetable.can_be_scheduled, dags["drill_crm"].timetable.can_be_scheduled) == (
        True,
        False,
    )
    form = dags["drill_shop"].params
    assert set(form) == {"tenants", "seed"}
    assert (form["tenants"], form["seed"]) == (5, None)
    assert [task.task_id for task in dags["drill_shop"].tasks] == [TASK]
    assert json.dumps(DagSerialization.to_dict(dags["drill_shop"]))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('base = "/backup/all.sql"\n', r"drill\.log: expected a value, as base and log go together"),
        ('log = "/backup/"\n', r"drill\.base: expected a value, as base and log go together"),
        ('schedule = "continuous"\n', r'drill\.schedule: expected a cron expression, or "none"'),
    ],
)
def test_a_half_of_a_drill_is_refused(tmp_path: Path, keys: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_channel(write_channel(tmp_path, text=f"{SHOP}[drill]\n{keys}"))


def test_a_run_fails_where_a_drill_is_not_good(
    channel: Channel, metadata_database: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site(channel)
    folder = channel.project / "dags"
    channel.write_channel(f'[drill]\nbase = "{site.dump}"\nlog = "{site.archive}"\ntenants = 1\n')
    (folder / "binlane.py").write_text(DAG_FILE)
    local = "airflow.dag_processing.bundles.local.LocalDagBundle"
    bundle = {"name": CHANNEL, "classpath": local, "kwargs": {"path": str(folder)}}
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps([bundle]))
    monkeypatch.setenv("BINLANE_CHANNELS", str(channel.channels))
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)

    def run(**form: Any) -> str:
        dag = DagBag(folder).dags[f"drill_{CHANNEL}"]
        for task in dag.tasks:
            task.retry_delay = dt.timedelta(0)
        return str(dag.test(run_conf=form).state)

    assert run(seed=7) == "success", capsys.readouterr().out
    assert "equal: 1 of 1 restored database" in (last_note() or "")
    assert site.left() == NOTHING
    # what a drill finds has tests of its own
    monkeypatch.setattr(drill, "drill", lambda *_, **__: ("different: 0 of 1 restored database", False))
    assert run(seed=7) == "failed"
    assert "different: 0 of 1 restored database" in capsys.readouterr().out
