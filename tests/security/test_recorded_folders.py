"""``binlane.windows.work`` is a record: it decides neither what is removed nor what is read or fetched. Nor does the
answer of a step, which Airflow's XComs carry to the next one.

Attackers: whoever can UPDATE the schema ``binlane`` on the target; whoever may edit XComs.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.errors import PlanError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.state.tables import windows
from binlane.work.files import WorkFolder, digest_of
from binlane.work.plan_inputs import INPUTS
from lab.traffic import Mix
from tests.conftest import requires_mysql
from tests.integration.window.board.test_board import API, EDIT, client_of, half_way
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.security.witness import Witness

Place = Callable[[Channel, Witness], str]
PLACES: Final[tuple[Place, ...]] = (
    lambda _, witness: str(witness.folder),
    lambda _, witness: f"file://{witness.folder}",
    lambda _, witness: f"local://{witness.folder}",
    lambda _, witness: f"dir::file://{witness.folder}",
    lambda _, witness: f"reference::{witness.url}/x.json",
    lambda _, witness: f"{witness.url}/w1",
    lambda _, witness: f"simplecache::{witness.url}/w1",
    lambda _, witness: f"filecache::blockcache::{witness.url}/w1",
    lambda _, witness: f"zip://plan.json::{witness.url}/w1.zip",
    lambda _, witness: f"github://org:repo@main/{witness.url}",
    lambda channel, witness: f"{channel.work}/../../../{witness.folder.name}",
    lambda channel, _: f"{channel.work}/x/../../{CHANNEL}",
    lambda channel, _: str(channel.work),
    lambda channel, _: str(channel.work.parent),
    lambda channel, _: str(channel.project),
    lambda _, witness: f"{witness.folder}\n",
    lambda _, witness: f"\x00{witness.folder}",
    lambda _, witness: f"~/../..{witness.folder}",
    lambda _1, _2: "memory://w1",
    lambda _1, _2: "s3://bucket/w1",
    lambda _1, _2: "unknown://x",
    lambda _1, _2: "'; DROP DATABASE binlane; -- \\",
    lambda _1, _2: "x" * 1024,
    lambda _1, _2: ".",
    lambda _1, _2: "/",
)
"""A place to record, or to answer. A line more is an attack more."""
SMALL: Final = Mix(cross_database=0.0, reference=0.0, ddl=0.0, accounts=0.0, statements=0.0)

families = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])


def record(channel: Channel, window: str, place: str) -> None:
    """UPDATE by whoever can write to the schema."""
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        changed = cursor.execute(
            "UPDATE binlane.windows SET work = %s WHERE channel = %s AND window_id = %s", (place, CHANNEL, window)
        )
        assert changed == 1


def _another(channel: Channel, window: str, number: int) -> str:
    """A finished window before ``window``, as it, with files of its own."""
    name = f"{number + 1:012d}-{number:08x}"
    shutil.copytree(channel.work / window, channel.work / name)
    columns = ", ".join(column.name for column in windows.c if column.name not in ("window_id", "number"))
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO binlane.windows (window_id, number, {columns}) SELECT %s, %s, {columns} "
            "FROM binlane.windows WHERE window_id = %s",
            (name, number, window),
        )
    return name


@families
def test_retention_removes_the_windows_own_folders_alone(channel_of: ChannelOf, family: str, witness: Witness) -> None:
    channel = channel_of(family, family)
    channel.traffic(20, mix=SMALL)
    done = channel.run()
    assert done is not None
    for table, column in (("windows", "number"), ("channels", "windows")):
        run_on(channel.target, f"UPDATE binlane.{table} SET {column} = 1000", log=False)
    names = [_another(channel, done["window"], number) for number in range(len(PLACES))]
    for name, place in zip(names, PLACES, strict=True):
        record(channel, name, place(channel, witness))
    repairs = channel.work / "repairs" / "plan.json"
    repairs.parent.mkdir()
    repairs.write_text("{}")

    # what the board shows of windows whose folders are recorded elsewhere
    client = client_of(channel)
    for name in names:
        answer = client.get(f"{API}/windows/{name}/lanes/0/blocks", headers=EDIT)
        assert answer.status_code in (200, 404), answer.text
    channel.write_channel("[work]\nkeep_windows = 1\n")
    assert channel.cli("run", CHANNEL, "--until", "now") == 0

    witness.assert_untouched()
    assert repairs.exists()
    left = {path.name for path in channel.work.iterdir()}
    assert left == {"repairs", done["window"]}
    assert channel.target.query("SELECT COUNT(*) FROM binlane.windows WHERE work <> ''")[0][0] == 1


@families
def test_an_open_window_is_read_from_its_own_folder(
    channel_of: ChannelOf, family: str, witness: Witness, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    channel.traffic(30, mix=SMALL)
    window = half_way(channel)
    client = client_of(channel)
    for place in PLACES:
        record(channel, window["window"], place(channel, witness))
        assert channel.cli("show", CHANNEL, "1") == 0
        answer = client.get(f"{API}/windows/{window['window']}/lanes/0/blocks", headers=EDIT)
        assert answer.status_code == 200, answer.text
        witness.assert_untouched()

    # the files are lost, too: nothing is read at the recorded place, and the named statement leads out
    shutil.rmtree(channel.work / window["window"])
    record(channel, window["window"], f"{witness.url}/w1")
    capsys.readouterr()
    assert channel.cli("run", CHANNEL) == 1
    said = capsys.readouterr().err
    witness.assert_untouched()
    [statement] = re.findall(r"UPDATE binlane\.windows .*?window_id = '[^']+'", " ".join(said.split()))
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        assert cursor.execute(statement) == 1
    assert channel.cli("run", CHANNEL) == 0
    witness.assert_untouched()
    channel.assert_equal()


def test_a_work_folder_that_is_moved_between_windows_goes_on(channel: Channel) -> None:
    """The one legitimate reason for another place: work.uri was changed, with or without its files."""
    channel.traffic(30, mix=SMALL)
    done = channel.run()
    assert done is not None
    before = channel.work / done["window"]
    moved = channel.project / "moved"
    channel.write_channel(f'[work]\nuri = "{moved}"\nkeep_windows = 1\n')
    for seed in (2, 3):
        channel.traffic(30, seed=seed, mix=SMALL)
        assert channel.cli("run", CHANNEL) == 0
    assert before.exists(), "a folder that is not below work.uri is left to the operator"
    assert len(list((moved / CHANNEL).iterdir())) == 1
    channel.assert_equal()


def test_an_open_window_goes_on_in_a_work_folder_that_is_moved_with_its_files(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.traffic(30, mix=SMALL)
    window = half_way(channel)
    moved = channel.project / "moved"
    channel.write_channel(f'[work]\nuri = "{moved}"\n')
    assert channel.cli("run", CHANNEL) == 1
    assert "move the window's folder to the expected place" in " ".join(capsys.readouterr().err.split())
    # the command has left its record of the target there
    moved.mkdir(exist_ok=True)
    (channel.work).rename(moved / CHANNEL)
    assert channel.cli("run", CHANNEL) == 0
    assert WorkFolder(str(moved)).child(CHANNEL).children() == (window["window"],)
    channel.assert_equal()


def test_a_finished_window_is_known_by_its_name_alone_behind_a_change_of_the_work_folder(channel: Channel) -> None:
    """Its tasks may be cleared; they have the places of before."""
    channel.traffic(30, mix=SMALL)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    channel.go_on(window)
    [plans] = [one for one in Path(window["work"]).iterdir() if re.fullmatch("[0-9a-f]{16}", one.name)]
    channel.write_channel(f'[work]\nuri = "{channel.project / "moved"}"\n')
    done = steps.advance(channel.config, channel.endpoints, str(plans))
    assert (done["window"], done["seqno"] > 0) == (window["window"], True)
    assert steps.apply_lane(channel.config, channel.endpoints, str(plans), 1)["blocks"] == 0
    assert steps.lanes_behind(channel.config, channel.endpoints, str(plans)) == {}
    assert steps.adopt_plan(channel.config, channel.endpoints, window["work"]) == {"plan": None, "lanes": []}


def test_an_answer_of_before_an_upgrade_has_no_digests(channel: Channel) -> None:
    channel.traffic(30, mix=SMALL)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    folder = steps.inputs_folder(channel.config, channel.endpoints, {"work": window["work"]})
    assert folder.uri == window["work"]
    channel.go_on(window)
    channel.assert_equal()


STEPS: Final[tuple[Callable[[Channel, str], object], ...]] = (
    lambda channel, place: steps.inputs_folder(channel.config, channel.endpoints, {"work": place, "inputs": None}),
    lambda channel, place: steps.adopt_plan(channel.config, channel.endpoints, place),
    *(
        lambda channel, place, key=key: steps.apply_lane(channel.config, channel.endpoints, f"{place}{key}", 0)
        for key in ("", "/0123456789abcdef")
    ),
    lambda channel, place: steps.advance(channel.config, channel.endpoints, f"{place}/0123456789abcdef"),
    lambda channel, place: steps.lanes_behind(channel.config, channel.endpoints, f"{place}/0123456789abcdef"),
)
"""What goes by the answer of a step before it."""


def test_no_step_goes_to_a_place_that_an_answer_names(channel: Channel, witness: Witness) -> None:
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    for place in PLACES:
        for step in STEPS:
            with pytest.raises(
                PlanError, match=r"expected the folder of a (window|plan).* begin with extract_segments"
            ):
                step(channel, place(channel, witness))
    witness.assert_untouched()
    # its own folder, with a plan's of another name, or without its window on the target
    for name, said in (
        (f"{window['work']}/../{window['window']}/0123456789abcdef", "expected the folder of a window"),
        (f"{window['work']}/plan", "expected the folder of a plan"),
        (f"{channel.work}/000000000009-aaaaaaaa/0123456789abcdef", "expected the plan of a window of channel"),
    ):
        with pytest.raises(PlanError, match=said):
            steps.apply_lane(channel.config, channel.endpoints, name, 0)
    channel.go_on(window)
    channel.assert_equal()


ANSWERS: Final[tuple[Any, ...]] = (
    {"0123456789abcdef/x": 5},
    {"0123456789abcdef/x": "y"},
    {"0123456789abcdef/x": "A" * 64},
    {"../manifest.json": "a" * 64},
    {"0123456789abcdef/../x": "a" * 64},
    {"x\n": "a" * 64},
    {"x" * 300: "a" * 64},
    {7: "a" * 64},
    ["manifest.json"],
    "manifest.json",
)
"""What a plan job is said to have made. A line more is an attack more."""


def test_the_target_records_no_digests_of_another_form(channel: Channel) -> None:
    """Each reader of the window's row would refuse it, and nothing but an UPDATE by hand would lead out."""
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    recorded = channel.target.query("SELECT files FROM binlane.windows")
    for answer in ANSWERS:
        with pytest.raises(PlanError, match="expected the SHA-256 of files of the window"):
            steps.adopt_plan(channel.config, channel.endpoints, window["work"], made=answer)
    assert channel.target.query("SELECT files FROM binlane.windows") == recorded
    channel.go_on(window)
    channel.assert_equal()


def test_digests_of_an_answer_alone_let_no_file_name_code(channel: Channel) -> None:
    """With a folder in the work folder that the target does not know."""
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    other = channel.work / "000000000009-aaaaaaaa"
    shutil.copytree(window["work"], other)

    def answered() -> dict[str, Any]:
        return {"work": str(other), "inputs": {name: digest_of((other / name).read_bytes()) for name in INPUTS}}

    assert steps.inputs_folder(channel.config, channel.endpoints, answered()).uri == str(other)
    settings = json.loads((other / "channel.json").read_text())
    assert "assigner" in settings
    settings["assigner"] = "evil:Evil"
    (other / "channel.json").write_text(json.dumps(settings))
    with pytest.raises(
        PlanError, match=r"lanes\.assigner: expected one of binlane's own words.*found the code evil:Evil"
    ):
        steps.inputs_folder(channel.config, channel.endpoints, answered())
    with pytest.raises(PlanError, match="found the code evil:Evil"):
        steps.adopt_plan(channel.config, channel.endpoints, str(other), made=answered()["inputs"])
    shutil.rmtree(other)
    channel.go_on(window)
    channel.assert_equal()
