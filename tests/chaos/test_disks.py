"""Full disks and damaged files: a clear error, nothing lost, and the same window can be run again.

Findings 12 and 13 of the design review; invariants 6, 7 and 10.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlane.apply.lane.runner import run_lane
from binlane.errors import ApplyError, PlanError, WorkError
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.state.windows import finish_window
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import private_server
from tests.chaos.rounds import survived
from tests.chaos.scene import PATIENT
from tests.integration.apply.capture import Window
from tests.integration.apply.conftest import fresh_pair, positions, start_window
from tests.integration.window.conftest import Channel

pytestmark = pytest.mark.trial

NOW = WindowRequest("now")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_work_folder_without_room_is_named_and_the_window_is_run_again(channel: Channel, small_disk: Path) -> None:
    channel.write_channel(f'[work]\nuri = "{small_disk}"\n')
    channel.traffic(60, tenants=4, creates=True)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * (240 << 10))
    with pytest.raises(WorkError, match="No space left on device; this step writes nothing"):
        steps.extract(channel.config, channel.endpoints, NOW)
    assert [path.name for path in (small_disk / "orders").glob("*")] == []
    assert channel.status.window is None
    ballast.unlink()
    window = steps.extract(channel.config, channel.endpoints, NOW)
    free = shutil.disk_usage(small_disk).free
    ballast.write_bytes(b"\0" * (free - (4 << 10)))
    with pytest.raises(WorkError, match="No space left"):
        run_plan_job(WorkFolder(window["work"]), InProcess())
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert list(Path(window["work"]).rglob("*.part")) == []
    channel.go_on(steps.extract(channel.config, channel.endpoints, NOW))
    channel.assert_equal()
    survived["work folder's disk full"] += 2


def torn(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("damage", [torn, flipped, Path.unlink])
def test_a_damaged_segment_is_refused_and_written_anew(channel: Channel, damage: Callable[[Path], None]) -> None:
    channel.traffic(60, tenants=4, creates=True)
    window = steps.extract(channel.config, channel.endpoints, NOW)
    damage(min(Path(window["work"]).glob("segments/*")))
    with pytest.raises(PlanError, match="remove ") as refused:
        run_plan_job(WorkFolder(window["work"]), InProcess())
    assert "segments/" in str(refused.value)
    shutil.rmtree(window["work"])
    again = steps.extract(channel.config, channel.endpoints, NOW)
    assert again["window"] != window["window"], "a window without a plan is read anew"
    channel.go_on(again)
    channel.assert_equal()
    survived["segment damaged"] += 1


@pytest.mark.parametrize("damage", [torn, flipped, Path.unlink])
def test_a_damaged_lane_file_is_refused_and_written_anew(channel: Channel, damage: Callable[[Path], None]) -> None:
    channel.traffic(60, tenants=4, creates=True)
    window = steps.extract(channel.config, channel.endpoints, NOW)
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    file = min(Path(adopted["plan"]).glob("lanes/*/*.parquet"))
    damage(file)
    with pytest.raises(PlanError, match="remove "):
        steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], int(file.parent.name))
    shutil.rmtree(adopted["plan"])
    channel.go_on(steps.extract(channel.config, channel.endpoints, NOW))
    channel.assert_equal()
    survived["lane file damaged"] += 1


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_a_full_target_rolls_the_block_back_and_goes_on_when_there_is_room(
    family: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source = request.getfixturevalue(f"{family}_source")
    # every table lives in this one file
    options = ["--innodb-file-per-table=0", "--innodb-data-file-path=ibdata1:12M:autoextend:max:24M"]
    with (
        private_server(tmp_path / "data", Flavor(family), options, name=f"full_{family}", durable=False) as target,
        fresh_pair(source, target) as pair,
    ):
        pair.both("CREATE TABLE big (id INT PRIMARY KEY, text LONGBLOB) ENGINE=InnoDB")
        recorder = pair.recorder()
        window = Window(recorder.format)
        for number in range(24):
            window.add(0, recorder.run(f"INSERT INTO big VALUES ({number}, REPEAT('x', 1000000))"))
        plan = window.plan
        start_window(pair.engine, plan)
        with pytest.raises(ApplyError, match=r"1114 .* is full"):
            run_lane(pair.engine, plan, 0, window.source, PATIENT)
        reached = positions(pair)[0]
        assert 0 < reached < 24
        assert pair.rows("SELECT COUNT(*) FROM shop.big") == [(reached,)]
        target.restart([option.replace("24M", "200M") for option in target.options])
        for lane in plan.all_lanes:
            run_lane(pair.engine, plan, lane, window.source, PATIENT)
        finish_window(pair.engine, plan.channel, plan.window_id, plan.digest)
        pair.assert_equal("big")
    survived[f"{family} target full"] += 1
