"""The DAG that indexes an archive: by the file's section alone, and a run of it over files of a log."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import Asset
from airflow.serialization.serialized_objects import DagSerialization

from binlane.config import load_channel
from binlane.errors import ConfigError
from binlane.orchestration.airflow.archive_dag import TASK
from binlane.orchestration.airflow.replicate_dag import build_dags
from binlane.restore.archive_index import ArchiveIndex
from binlane.source.archive import ArchiveSource
from lab.site import DAG_FILE
from tests.dags.scene import CHANNEL, ROOT, last_note, write_channel
from tests.unit.source.archives import archive, log_file

KEYS = '[archive]\nuri = "/backup/binlog/"\n'


def test_a_channel_with_an_archive_has_the_dag(tmp_path: Path) -> None:
    folder = write_channel(tmp_path).parent
    assert "index_shop" not in build_dags(folder)
    write_channel(tmp_path, text=CHANNEL + KEYS)
    write_channel(tmp_path, "crm", CHANNEL + KEYS + 'schedule = "none"\n')
    write_channel(tmp_path, "erp", CHANNEL + KEYS + 'asset = "s3://backup/binlog"\n')
    dags = build_dags(folder)
    assert [dags[f"index_{name}"].timetable.can_be_scheduled for name in ("shop", "crm")] == [True, False]
    assert dags["index_erp"].schedule == [Asset(uri="s3://backup/binlog")]
    assert [task.task_id for task in dags["index_shop"].tasks] == [TASK]
    assert json.dumps(DagSerialization.to_dict(dags["index_erp"]))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('schedule = "@daily"\n', r"archive\.uri: expected the archive's folder or URI"),
        ('uri = "/backup/"\nschedule = "continuous"\n', r'archive\.schedule: expected a cron expression, or "none"'),
        ('uri = "s3://key:secret@backup/"\n', r"archive\.uri: expected a folder"),
    ],
)
def test_a_wrong_section_is_refused(tmp_path: Path, keys: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_channel(write_channel(tmp_path, text=f"{CHANNEL}[archive]\n{keys}"))


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_run_indexes_what_is_new_and_fails_by_the_name_of_a_damaged_file(
    engine: str,
    tmp_path: Path,
    metadata_database: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site = tmp_path / "binlog"
    files = [log_file(number, (number,), before=[(7, number - 1)], begun=5, closed=5) for number in (1, 2, 3)]
    archive(site, *files)
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("no java on PATH: no Spark to test with")
    keys = f'[archive]\nuri = "{site}"\nschedule = "none"\n[spark]\nconnection = "binlane_spark"\nengine = "{engine}"\n'
    folder = write_channel(tmp_path, text=f"{CHANNEL}{keys}").parents[1]
    monkeypatch.setenv("AIRFLOW_CONN_BINLANE_SPARK", '{"conn_type": "spark", "host": "local[2]"}')
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "plugins"))
    monkeypatch.setenv("PATH", f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    (folder / "binlane.py").write_text(DAG_FILE)
    monkeypatch.setenv("BINLANE_CHANNELS", str(folder / "channels"))
    local = "airflow.dag_processing.bundles.local.LocalDagBundle"
    bundle = {"name": "index", "classpath": local, "kwargs": {"path": str(folder)}}
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps([bundle]))

    def run() -> str:
        dag = DagBag(folder).dags["index_shop"]
        for task in dag.tasks:
            task.retry_delay = dt.timedelta(0)
        return str(dag.test().state)

    assert run() == "success", capsys.readouterr().out
    assert "binlane_index: 2 files new" in (last_note() or "")
    found = ArchiveIndex(ArchiveSource(str(site)))
    assert [found.of(each).facts is not None for each in found.files] == [True, True, False]
    archive(site, files[2][:-40] + b"x" * 40, log_file(4, (4,)), first=3)
    assert run() == "failed"
    assert "binlog.000003" in capsys.readouterr().out
