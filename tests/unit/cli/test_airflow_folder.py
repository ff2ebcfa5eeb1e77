"""The command line finds the channels folder that Airflow's configuration names."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.cli.airflow_folder import IN_CHECKOUT, default_channels


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[binlane]\nchannels = /etc/binlane/channels\n", Path("/etc/binlane/channels")),
        ("[core]\na = %(b)s\n[binlane]\nchannels = ~/channels\n", Path("~/channels").expanduser()),
        ("[binlane]\nchannels =\n", IN_CHECKOUT),
        ("[core]\ndags_folder = /dags\n", IN_CHECKOUT),
        ("[core\nno configuration", IN_CHECKOUT),
    ],
)
def test_the_folder_of_airflow_s_file(tmp_path: Path, text: str, found: Path) -> None:
    (tmp_path / "airflow.cfg").write_text(text)

    assert default_channels({"AIRFLOW_HOME": str(tmp_path)}) == found
    assert default_channels({"AIRFLOW_CONFIG": str(tmp_path / "airflow.cfg"), "AIRFLOW_HOME": "/nowhere"}) == found


def test_a_variable_comes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "airflow.cfg").write_text("[binlane]\nchannels = /etc/binlane/channels\n")
    variables = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__BINLANE__CHANNELS": "/srv/channels"}

    assert default_channels(variables) == Path("/srv/channels")


def test_without_airflow_it_is_the_folder_of_a_checkout(tmp_path: Path) -> None:
    assert default_channels({"AIRFLOW_HOME": str(tmp_path)}) == IN_CHECKOUT


def test_outside_a_checkout_the_channels_are_those_of_the_dags_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags = tmp_path / "site" / "dags"
    (dags / "channels").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "airflow.cfg").write_text(f"[core]\ndags_folder = {dags}\n")
    assert default_channels({"AIRFLOW_HOME": str(tmp_path)}) == dags / "channels"
    assert default_channels({"AIRFLOW__CORE__DAGS_FOLDER": str(dags)}) == dags / "channels"
    IN_CHECKOUT.mkdir(parents=True)
    assert default_channels({"AIRFLOW_HOME": str(tmp_path)}) == IN_CHECKOUT
