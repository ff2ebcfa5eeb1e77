"""``binlane advise`` of live channels, and windows whose shards are placed by load, of both families."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.plan.window_plan import WindowPlan
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import plan_digest
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on
from tests.one_runner import apply_alone

FAMILIES = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
TABLES = (
    "CREATE DATABASE tenant_{n}",
    "CREATE TABLE tenant_{n}.parent (id INT PRIMARY KEY, code VARCHAR(9) NULL, v INT NOT NULL, UNIQUE KEY (code))",
    "CREATE TABLE tenant_{n}.child (id INT PRIMARY KEY, parent INT NULL, FOREIGN KEY (parent) REFERENCES parent (id))",
)


def made(channel: Channel, *numbers: int) -> None:
    """Databases that are on both servers before the window."""
    for server in (channel.source, channel.target):
        run_on(server, *(each.format(n=n) for n in numbers for each in TABLES), log=False)


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@FAMILIES
def test_the_next_window_and_a_kept_one_are_counted_alike(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    made(channel, 1, 2)
    log = [f"INSERT INTO tenant_1.parent VALUES ({n}, 'c{n}', 0)" for n in range(5)]
    log += ["INSERT INTO tenant_1.child VALUES (1, 3)", "UPDATE tenant_1.parent SET v = 1 WHERE id = 3"]
    log += [f"INSERT INTO tenant_2.parent VALUES ({n}, NULL, 0)" for n in range(3)]
    log += [f"UPDATE tenant_2.parent SET v = {n + 1} WHERE id = 2" for n in range(9)]
    log += ["UPDATE tenant_1.parent SET code = 'd4' WHERE id = 4"]
    channel.init()
    before = len(channel.target.query("SELECT * FROM binlane.channels"))
    run_on(channel.source, *log)

    capsys.readouterr()
    assert channel.cli("advise", "orders", "--json") == 0
    found = printed(capsys)
    assert (found["source"], found["keys"], found["transactions"], found["rows"]) == (
        "the next window of orders", "target", 20, 20,
    )  # fmt: skip
    assert {each["name"]: (each["transactions"], each["rows"]) for each in found["shards"]} == {
        "tenant_1": (8, 8), "tenant_2": (12, 12),
    }  # fmt: skip
    ten = found["blocks_in_a_row"][0]
    # the first block has a child, its parent before it, and a change of that parent behind it
    assert (ten["free"], ten["shared"], ten["unknown"], ten["chains"]) == (0, 2, 0, 3 + 9)
    assert found["hot_keys"][0] == {"table": "tenant_2.parent", "key": "2", "changes": 10}
    assert channel.work.exists() is False or WorkFolder(str(channel.work)).children() == ()
    assert channel.status.window is None
    assert len(channel.target.query("SELECT * FROM binlane.channels")) == before

    assert channel.run() is not None
    capsys.readouterr()
    assert channel.cli("advise", "orders", "--window", "last", "--json") == 0
    kept = printed(capsys)
    assert kept["source"].startswith("window 0000")
    assert {**kept, "source": ""} == {**found, "source": ""}
    assert channel.cli("advise", "orders", "--window", "gone") == 2
    assert "it keeps 0000" in capsys.readouterr().err
    assert channel.cli("advise", "orders") == 0
    assert "nothing to count" in capsys.readouterr().out


def lanes(channel: Channel, work: str) -> dict[str, int]:
    """The lane of each shard in a window's plan, which ``binlane plan`` would show."""
    digest, plans = plan_digest(work), WorkFolder(work)
    [key] = [name for name in plans.children() if plans.child(name).exists("plan.json")]
    plan = WindowPlan.from_json(plans.child(key).read("plan.json"), work)
    assert plan.digest == digest
    return {name: counts.lane for name, counts in plan.shards.items() if name.startswith("tenant")}


def written(channel: Channel, first: int, *rows: int) -> None:
    """Inserts so many rows into each database, and changes a row of the window before."""
    for n, count in enumerate(rows, 1):
        values = ", ".join(f"({first + number}, NULL, {n})" for number in range(count))
        insert = f"INSERT INTO tenant_{n}.parent VALUES {values}"
        run_on(channel.source, insert, f"UPDATE tenant_{n}.parent SET v = v + 1 WHERE id IN (1000, {first})")


@FAMILIES
def test_a_half_applied_window_by_load_is_planned_again_with_the_same_lanes_and_the_next_one_moves_its_shards(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    channel.write_shard_list("(hash-method)=load\n")
    made(channel, 1, 2, 3, 4)
    channel.init()
    written(channel, 1000, 900, 500, 300, 50)
    capsys.readouterr()
    assert channel.cli("plan", "orders") == 0
    assert "by load: those without an entry, the biggest first" in " ".join(capsys.readouterr().out.split())
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    first, digest = lanes(channel, window["work"]), plan_digest(window["work"])
    assert first == {"tenant_1": 0, "tenant_2": 1, "tenant_3": 2, "tenant_4": 2}
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    apply_alone(channel.config, channel.endpoints, adopted["plan"], 1)

    shutil.rmtree(window["work"])
    again = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(again["work"]), InProcess())
    assert (lanes(channel, again["work"]), plan_digest(again["work"])) == (first, digest)
    channel.go_on(steps.extract(channel.config, channel.endpoints, WindowRequest("now")))
    channel.assert_equal()

    written(channel, 2000, 50, 300, 500, 900)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    assert lanes(channel, window["work"]) == {"tenant_4": 0, "tenant_3": 1, "tenant_2": 2, "tenant_1": 2}
    channel.go_on(steps.extract(channel.config, channel.endpoints, WindowRequest("now")))
    channel.assert_equal()
    assert len({each.seqno for each in channel.status.positions}) == 1
