"""No step reads a file of a window's folder that is not the one that binlane has written for this window.

Attacker: whoever can write to the work folder, at any time, and knows how binlane writes its files.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from binlane.board import board_reader
from binlane.connections import environment_resolver
from binlane.errors import PlanError, PrecheckError
from binlane.formats import FORMATS_FILE
from binlane.orchestration import steps
from binlane.orchestration.commands.skip import Which, skip
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.state.positions import lane_positions
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import read_inputs
from binlane.work.plan_job.job import InProcess, run_plan_job
from binlane.work.plan_job.made import forget_made
from tests.conftest import requires_mysql
from tests.integration.window.board.test_board import API, EDIT, client_of, half_way
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.security.test_lane_files import replaced

NOW: Final = WindowRequest("now")
families = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])


def _longer(file: Path, _: Path) -> None:
    """Of JSON this is the same value."""
    file.write_bytes(file.read_bytes() + b"\n")


def _flipped(file: Path, _: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def _of_another_window(file: Path, other: Path) -> None:
    shutil.copyfile(other, file)


def _linked(file: Path, other: Path) -> None:
    file.unlink()
    file.symlink_to(other)


def _gone(file: Path, _: Path) -> None:
    file.unlink()


ATTACKS: Final = (_longer, _flipped, _of_another_window, _linked, _gone)
"""On one file; the second path is that of the same file of an earlier window. A line more is an attack on every
file."""
ADOPTION: Final = (
    "manifest.json", "channel.json", "schema.json", "definitions.json", "source_schema.json",
    "*/plan.json", "*/databases.json", "*/lanes/*/*.parquet",
)  # fmt: skip
"""What the adoption reads of a plan that nobody has adopted. A line more is a file more."""
LANES: Final = ("*/plan.json", "*/lanes/*/*.parquet", "*/variables.json")
OF_MARIADB: Final = ("*/partitioned.json",)
"""What lanes read, and what they read of targets of MariaDB."""
ORDERS: Final = ("manifest.json", "channel.json", "schema.json", "*/plan.json", "*/context.json", "segments/*")
"""What is read of an open window whose transactions are read again: to skip one, to stop at one, in parts of a
block."""


@contextmanager
def _attacked(attack: Callable[[Path, Path], None], file: Path, other: Path) -> Iterator[bool]:
    """The file is put back. Yields whether it was another one."""
    data = file.read_bytes()
    attack(file, other)
    try:
        yield not file.exists() or file.read_bytes() != data
    finally:
        file.unlink(missing_ok=True)
        file.write_bytes(data)


def _refused(window: Path, earlier: Path, patterns: Sequence[str], read: Callable[[], object]) -> None:
    for pattern in patterns:
        file, other = next(window.glob(pattern)), next(earlier.glob(pattern))
        for attack in ATTACKS:
            said = "nothing"
            with _attacked(attack, file, other) as is_another:
                # two windows may have equal files
                if not is_another:
                    continue
                try:
                    read()
                except PlanError as exc:
                    said = str(exc)
            # where, and what to do next
            assert file.name in said, (pattern, attack, said)
            assert "run" in said, (pattern, attack, said)


def _windows(channel: Channel) -> tuple[Path, dict[str, Any]]:
    """The folder of a finished window, and a second window, extracted."""
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, v INT)")
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (1, 1)")
    done = channel.run()
    assert done is not None
    run_on(channel.source, "UPDATE tenant_1.t SET v = 2", "INSERT INTO tenant_1.t VALUES (2, 2), (3, 3)")
    run_on(channel.source, "CREATE TABLE tenant_1.u (id INT PRIMARY KEY)")
    return channel.work / done["window"], steps.extract(channel.config, channel.endpoints, NOW)


def _positions(channel: Channel) -> tuple[Any, ...]:
    with engine_of(channel.endpoints.target).connect() as connection:
        return lane_positions(connection, CHANNEL)


@families
def test_no_file_is_read_that_is_not_the_windows_own(channel_of: ChannelOf, family: str) -> None:
    channel = channel_of(family, family)
    earlier, window = _windows(channel)
    folder = Path(window["work"])
    run_plan_job(WorkFolder(window["work"]), InProcess())

    def adopt() -> dict[str, Any]:
        return steps.adopt_plan(channel.config, channel.endpoints, window["work"])

    _refused(folder, earlier, ADOPTION, adopt)
    adopted = adopt()
    begun = _positions(channel)

    def applied() -> None:
        for lane in adopted["lanes"]:
            steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], lane["lane"])

    _refused(folder, earlier, (*LANES, *(OF_MARIADB if family == "mariadb" else ())), applied)
    first = begun[0].seqno + 1

    def skipped() -> None:
        skip(
            CHANNEL, channel.channels, Which(seqno=first), "attacked", resolve=environment_resolver(channel.environment)
        )

    _refused(folder, earlier, ORDERS, skipped)
    assert _positions(channel) == begun
    applied()
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    channel.assert_equal()


def _other_rules(window: Path) -> None:
    file = window / "channel.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "block_transactions": 7}))


def _other_schema(window: Path) -> None:
    file = window / "schema.json"
    file.write_text(file.read_text().replace('"tenant_1"', '"tenant_9"'))


INPUTS: Final = (_other_rules, _other_schema)
"""While the plan job reads them; they are put back before anybody else looks."""


@pytest.mark.parametrize("attack", INPUTS)
def test_a_plan_of_other_inputs_is_refused_by_the_inputs_name(channel: Channel, attack: Callable[[Path], None]) -> None:
    _, window = _windows(channel)
    folder = Path(window["work"])
    kept = {file: file.read_bytes() for file in folder.glob("*.json")}
    attack(folder)
    assert {file: file.read_bytes() for file in folder.glob("*.json")} != kept
    run_plan_job(WorkFolder(window["work"]), InProcess())
    [plans] = (each.parent for each in folder.glob("*/plan.json"))
    for file, data in kept.items():
        file.write_bytes(data)
    plans.rename(folder / read_inputs(WorkFolder(window["work"])).key)
    with pytest.raises(PlanError, match=r"found .* read by the plan job: another program has changed it"):
        steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    shutil.rmtree(folder)
    channel.run()
    channel.assert_equal()


CALLS: Final[list[object]] = []


def called(*arguments: object) -> None:
    CALLS.append(arguments)


@pytest.mark.parametrize("key", ["assigner", "consistency"])
def test_a_plan_job_calls_no_code_that_the_work_folder_names(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    """Behind the extraction, before any step compares what the plan job has read."""
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, v INT)")
    extract, folders = steps.extract, list[Path]()

    def attacked(*arguments: Any, **named: Any) -> dict[str, Any]:
        window = extract(*arguments, **named)
        file = Path(window["work"]) / "channel.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), key: f"{__name__}:called"}))
        folders.append(file.parent)
        return window

    monkeypatch.setattr(steps, "extract", attacked)
    # a dry run, of which the target knows nothing, and a window
    for command in ("plan", "run"):
        assert channel.cli(command, CHANNEL) == 1
        assert "channel.json: expected SHA-256" in " ".join(capsys.readouterr().err.split())
    monkeypatch.undo()
    assert not CALLS
    shutil.rmtree(folders[-1])
    channel.run()
    channel.assert_equal()


def test_a_plan_that_nobody_vouches_for_is_made_again_and_a_replaced_one_is_named(channel: Channel) -> None:
    _, window = _windows(channel)
    work = WorkFolder(window["work"])
    run_plan_job(work, InProcess())
    # the process that has made the plan is gone, and the target does not have its digests yet
    forget_made(work.uri)
    replaced(work, "UPDATE tenant_1.t SET v = 66", "statement")
    forget_made(work.uri)
    with pytest.raises(PlanError, match="run the plan job again"):
        steps.adopt_plan(channel.config, channel.endpoints, work.uri)
    again = steps.extract(channel.config, channel.endpoints, NOW)
    assert (again["work"], again["plan"]) == (work.uri, None)
    with pytest.raises(PlanError, match=r"plan\.json: exists with other content.*remove the folder"):
        run_plan_job(work, InProcess())
    shutil.rmtree(work.uri)
    channel.run()
    channel.assert_equal()


def test_a_replaced_plan_with_right_digests_is_refused_before_and_behind_a_refusal(channel: Channel) -> None:
    _, window = _windows(channel)
    work = WorkFolder(window["work"])
    run_plan_job(work, InProcess())
    run_on(channel.target, "ALTER TABLE tenant_1.t DROP COLUMN v")
    with pytest.raises(PrecheckError, match=r"tenant_1\.t"):
        steps.adopt_plan(channel.config, channel.endpoints, work.uri)
    # the next run takes the plan as it is: the target has its digests
    forget_made(work.uri)
    run_on(channel.target, "ALTER TABLE tenant_1.t ADD COLUMN v INT", "UPDATE tenant_1.t SET v = 1")
    again = steps.extract(channel.config, channel.endpoints, NOW)
    assert again["plan"] is not None
    replaced(work, "UPDATE tenant_1.t SET v = 66", "statement")
    forget_made(work.uri)
    with pytest.raises(PlanError, match=r"plan\.json: expected SHA-256 .* as the target has recorded"):
        steps.adopt_plan(channel.config, channel.endpoints, work.uri)
    shutil.rmtree(work.uri)
    channel.run()
    channel.assert_equal()


def test_an_older_folder_of_the_same_window_is_refused(channel: Channel, tmp_path: Path) -> None:
    _, window = _windows(channel)
    work = WorkFolder(window["work"])
    run_plan_job(work, InProcess())
    older = tmp_path / "older"
    shutil.copytree(work.uri, older)
    shutil.rmtree(work.uri)
    again = steps.extract(channel.config, channel.endpoints, WindowRequest("now", lanes=1))
    assert again["work"] != work.uri, "a window without a plan is read anew"
    work = WorkFolder(again["work"])
    shutil.rmtree(work.uri)
    shutil.copytree(older, work.uri)
    forget_made(work.uri)
    with pytest.raises(PlanError, match=r"as the target has recorded of the window's files"):
        steps.extract(channel.config, channel.endpoints, NOW)
    shutil.rmtree(work.uri)
    channel.run()
    channel.assert_equal()


def test_files_of_the_window_before_are_not_taken_if_they_have_changed(
    channel: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    earlier, window = _windows(channel)
    channel.go_on(window)
    for folder in (earlier, Path(window["work"])):
        for file in {*folder.glob("*.json")} - {folder / FORMATS_FILE}:
            _longer(file, file)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (9, 9)")
    with caplog.at_level(logging.WARNING):
        channel.run()
    assert "the definitions are read anew" in caplog.text
    assert "as the target has recorded" in caplog.text
    channel.assert_equal()


def test_the_board_reads_no_lane_file_that_is_another(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of one value takes no place in a file, and as much memory as there are rows."""
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (n INT PRIMARY KEY)")
    window = half_way(channel)["window"]
    client = client_of(channel)
    blocks = f"{API}/windows/{window}/lanes/0/blocks"
    shown = client.get(blocks, headers=EDIT).json()["blocks"]
    [file] = (channel.work / window).glob("*/lanes/0000/*.parquet")
    pq.write_table(pq.read_table(file), file, compression="none")
    # those of the plan's own file, which it remembers
    assert client.get(blocks, headers=EDIT).json()["blocks"] == shown != []
    monkeypatch.setattr(board_reader, "outlines_of", board_reader._Outlines().of)
    answer = client.get(blocks, headers=EDIT)
    assert answer.status_code == 409
    assert file.name in answer.json()["detail"]
