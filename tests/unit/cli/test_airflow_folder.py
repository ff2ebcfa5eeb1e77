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
