"""What is handed to a real spark-submit, and who else can see it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from binlane.config import load_channel
from binlane.errors import PlanError
from binlane.orchestration.plan_job.engines import submit
from binlane.orchestration.plan_job.spark_submit import properties_file, without_airflow, without_secrets
from binlane.work.files import WorkFolder
from tests.spark.open_to_all import Onlooker
from tests.spark.test_event_metadata_filter import PROJECT, fill

SECRET = "made-up-7Qx9"
ODD = "a b = c: d\\e # f! \u00e9\t\\u0041"
CHANNEL = f"""
[source]
connection = "source"
[target]
connection = "target"
[spark.conf]
"spark.master" = "local[2]"
"spark.eventLog.enabled" = "true"
"spark.eventLog.compress" = "false"
"spark.eventLog.dir" = "{{events}}"
"spark.hadoop.fs.s3a.secret.key" = "{SECRET}"
"spark.binlane.odd" = {json.dumps(ODD)}
"""


@pytest.mark.skipif(shutil.which("java") is None, reason="no java on PATH: no Spark to test with")
@pytest.mark.trial
def test_properties_come_to_spark_and_nobody_else_sees_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_TARGET", "mysql://writer:target-pw-3Zk@127.0.0.1/")
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "sqlite:////tmp/db-3Zk")
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "plugins"))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.parent.mkdir()
    defaults.write_text("spark.binlane.of.this.cluster yes\n")
    shutil.copy(PROJECT / "config" / "log4j2.properties", defaults.parent)
    monkeypatch.setenv("SPARK_CONF_DIR", str(defaults.parent))
    (tmp_path / "dags" / "channels").mkdir(parents=True)
    (tmp_path / "events").mkdir()
    file = tmp_path / "dags" / "channels" / "shop.toml"
    file.write_text(CHANNEL.format(events=tmp_path / "events"))
    work = WorkFolder(str(tmp_path / "w1"))
    fill(work)
    with Onlooker() as onlooker:
        submit(load_channel(file), work)
    assert onlooker.shows("org.apache.spark.deploy.SparkSubmit")
    assert onlooker.shows("pyspark")
    assert [text for text in (SECRET, "3Zk", "AIRFLOW_", "c: d") if onlooker.shows(text)] == []
    assert set(onlooker.files.values()) == {0o600}
    assert [path for path in onlooker.files if Path(path).exists()] == []
    properties = spark_s_own(tmp_path / "events")
    assert properties["spark.binlane.odd"] == ODD
    assert properties["spark.binlane.of.this.cluster"] == "yes"
    assert "redacted" in properties["spark.hadoop.fs.s3a.secret.key"]
    # what the job says when it fails
    work.child("w2").write_once("nothing", b"")
    with pytest.raises(PlanError, match="this file of the window is missing") as failed:
        submit(load_channel(file), WorkFolder(str(tmp_path / "w3")))
    assert SECRET not in str(failed.value)


def spark_s_own(events: Path) -> dict[str, str]:
    """The properties that Spark has written into its event log."""
    texts = [path.read_text(errors="replace") for path in events.rglob("*") if path.is_file()]
    entries = [json.loads(line) for text in texts for line in text.splitlines() if line.startswith("{")]
    (found,) = (entry for entry in entries if "Spark Properties" in entry)
    return dict(found["Spark Properties"])


def test_the_file_is_gone_whatever_the_job_came_to() -> None:
    paths: list[Path] = []

    def job() -> None:
        with properties_file({"spark.a": "b"}) as name:
            paths.append(Path(name))
            assert (paths[0].read_text(), paths[0].stat().st_mode & 0o777) == ("spark.a=b\n", 0o600)
            raise ValueError("the job")

    with pytest.raises(ValueError, match="the job"):
        job()
    assert not paths[0].exists()


def test_an_environment_is_the_same_without_airflow_s_variables() -> None:
    kept = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "k", "PYTHONPATH": "plugins", "MY_AIRFLOW_HOME": "/a"}
    gone = dict.fromkeys(
        ("AIRFLOW_CONN_TARGET", "AIRFLOW__API__SECRET_KEY", "AIRFLOW_VAR_A", "__AIRFLOW_SUPERVISOR_FD"), "v"
    )
    assert without_airflow({**kept, **gone}) == kept


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        *(("spark.hadoop.fs.s3a.secret.key", "***"), ("spark.ssl.keyPassword", "***"), ("spark.my.TOKEN", "***")),
        *(("spark.hadoop.fs.s3a.access.key", "***"), ("spark.executor.memory", "abc")),
    ],
)
def test_values_of_secrets_are_not_shown_in_what_spark_says(name: str, shown: str) -> None:
    assert without_secrets("cannot use 'abc'", {name: "abc", "spark.password.of.nobody": ""}) == f"cannot use '{shown}'"
