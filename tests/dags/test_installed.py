"""What Airflow finds of an installed binlane: plugin, provider, and the DAGs of the channels folder that it names."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

from binlane.errors import ConfigError
from binlane.orchestration.airflow import releases
from lab.site import AIRFLOW, CHANNEL, COMMAND_LINE, DAG_FILE, WRONG_CHANNELS_FILE
from tests.dags.scene import CHANNEL as SHOP
from tests.dags.scene import ROOT, shop, write_channel

PLUGINS = """
import json
from airflow import plugins_manager
from airflow.providers_manager import ProvidersManager
plugins, errors = plugins_manager._get_plugins()
found = ProvidersManager().providers["binlane"]
print(json.dumps({
    "plugins": [[plugin.name, str(plugin.source)] for plugin in plugins if plugin.name == "binlane"],
    "errors": errors,
    "provider": [found.version, found.data["name"], list(found.data["config"])],
}))
"""


def test_two_lines_of_a_dag_file_build_the_dags_of_the_configured_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels = write_channel(tmp_path).parent
    dags = tmp_path / "site" / "dags"
    dags.mkdir(parents=True)
    (dags / "binlane.py").write_text(DAG_FILE)
    (dags / "wrong_channels.py").write_text(WRONG_CHANNELS_FILE)
    monkeypatch.delenv("BINLANE_CHANNELS", raising=False)
    monkeypatch.setenv("AIRFLOW__BINLANE__CHANNELS", str(channels))
    bag = DagBag(dags)
    assert (set(bag.dags), bag.import_errors) == ({"replicate_shop", "bootstrap_shop"}, {})
    monkeypatch.setenv("BINLANE_CHANNELS", str(tmp_path / "empty"))
    assert DagBag(dags).dags == {}


def test_the_page_has_the_files_and_commands_that_make_dist_runs() -> None:
    page = "".join(line.strip() + "\n" for line in (ROOT / "docs" / "install.md").read_text("utf-8").splitlines())
    assert DAG_FILE in page
    assert WRONG_CHANNELS_FILE in page
    assert CHANNEL in page
    commands = {*COMMAND_LINE, *AIRFLOW} - {"airflow db migrate"}
    assert [command for command in commands if f"$ {command}\n" not in page] == []


def test_without_a_name_the_channels_are_in_the_dags_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    channels = write_channel(tmp_path).parent
    (channels.parent / "binlane.py").write_text(DAG_FILE)
    monkeypatch.delenv("BINLANE_CHANNELS", raising=False)
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(channels.parent))
    assert set(DagBag(channels.parent).dags) == {"replicate_shop", "bootstrap_shop"}


def test_a_lag_alert_is_refused_where_airflow_has_no_callbacks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "RELEASE", (3, 1))
    with pytest.raises(ConfigError, match=r"shop\.toml: alert\.lag_seconds: expected Airflow 3\.2 or newer, found 3\."):
        shop(tmp_path, SHOP + "[alert]\nlag_seconds = 60\n")


@pytest.mark.parametrize("folder", ["plugins", "none"])
def test_airflow_finds_one_plugin_and_one_provider(tmp_path: Path, folder: str) -> None:
    """With the plugins folder of a checkout, too."""
    environment = {**os.environ, "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / folder), "AIRFLOW_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PLUGINS], env=environment, capture_output=True, text=True, check=True, timeout=240
    )
    found = json.loads(done.stdout.splitlines()[-1])
    ((name, source),) = found["plugins"]
    assert (name, "airflow_plugin:BinlanePlugin" in source) == ("binlane", True)
    assert found["errors"] == {}
    assert found["provider"] == ["0.1.0", "binlane", ["binlane"]]
