"""The Spark session of a trial of histories: one window after another, as the job's own process plans them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from binlane.config import load_channel
from binlane.errors import PlanError
from binlane.work.files import PLAN
from lab.histories.spark import SparkJobs
from lab.stored_windows import DIGESTS, plans_of, stored, unpack


@pytest.mark.trial
def test_windows_are_planned_in_one_session_and_an_error_ends_none_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a path is longer than a socket's may be."""
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    file = tmp_path / "dags" / "channels" / "c.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[source]\nconnection = "source"\n[target]\nconnection = "target"\n[window]\nschedule = "none"\n')
    config, expected = load_channel(file, {}), json.loads(DIGESTS.read_text())
    with contextlib.closing(SparkJobs(long, submitted=True)) as jobs:
        for at, window in enumerate(stored()[:3]):
            work = unpack(window, tmp_path / window.stem)
            if at == 1:
                segment = next((tmp_path / window.stem / "segments").iterdir())
                segment.write_bytes(segment.read_bytes()[:-1])
                with pytest.raises(PlanError, match="the manifest, found"):
                    jobs.run(config, work)
                continue
            jobs.run(config, work)
            assert json.loads(plans_of(work).read(PLAN))["digest"] == expected[window.stem]["plan"]
