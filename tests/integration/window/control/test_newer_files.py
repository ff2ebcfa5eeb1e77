"""A window whose files a newer release has written is refused by name before a lane moves."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.errors import PlanError
from binlane.formats import FORMATS, FORMATS_FILE
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf
from tests.one_runner import apply_alone

NEXT: Final = "9.9.9"


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
@pytest.mark.parametrize("of_plan", [False, True], ids=["window", "plan"])
def test_a_newer_binlanes_files_stop_every_step_before_a_lane_moves(
    channel_of: ChannelOf, capsys: pytest.CaptureFixture[str], family: str, of_plan: bool
) -> None:
    channel = channel_of(family, family)
    channel.traffic(transactions=80)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    lanes = [int(each["lane"]) for each in adopted["lanes"]]
    apply_alone(channel.config, channel.endpoints, adopted["plan"], lanes[0])
    before = state(channel)
    folder, name = Path(adopted["plan"] if of_plan else window["work"]), "lane files" if of_plan else "channel.json"
    said = f"binlane {NEXT} has written {name} in version {FORMATS[name].version + 1}"
    kept = (folder / FORMATS_FILE).read_bytes()
    newer = json.loads(kept) | {"binlane": NEXT}
    newer["formats"][name] += 1
    (folder / FORMATS_FILE).write_text(json.dumps(newer))
    tried: list[Callable[[], object]] = [
        lambda: steps.adopt_plan(channel.config, channel.endpoints, window["work"]),
        lambda: run_plan_job(WorkFolder(window["work"]), InProcess()),
    ]
    if of_plan:
        tried[1] = lambda: steps.advance(channel.config, channel.endpoints, adopted["plan"])
        tried += [partial(steps.apply_lane, channel.config, channel.endpoints, adopted["plan"], lane) for lane in lanes]
    for step in tried:
        with pytest.raises(PlanError, match=said) as refused:
            step()
        assert not refused.value.retryable
    assert channel.cli("run", CHANNEL) == 1
    assert said in capsys.readouterr().err
    assert state(channel) == before
    (folder / FORMATS_FILE).write_bytes(kept)
    assert channel.cli("run", CHANNEL) == 0
    channel.assert_equal()


def state(channel: Channel) -> list[Any]:
    """The lanes' positions, and the target's rows."""
    return [
        channel.target.query("SELECT lane, seqno FROM binlane.positions ORDER BY 1"),
        channel.rows_of(channel.target),
    ]
