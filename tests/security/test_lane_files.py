"""A lane file with a statement, or rows, of the attacker's, with the right digests above it, runs no kind of statement
that servers do not log, and reaches nothing that the channel leaves out.

Attacker: whoever runs the plan job, as Spark's driver does. (Who can only write to the work folder: see
``test_window_files``.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from blake3 import blake3

from binlane.config import load_channel
from binlane.errors import PlanError, PrecheckError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.plan.row_accounting import ROWS_ONLY
from binlane.plan.window_plan import WindowPlan
from binlane.work.files import CONTEXT, DATABASES, PLAN, WorkFolder
from binlane.work.plan_inputs import read_inputs
from binlane.work.plan_job.job import InProcess, run_plan_job
from binlane.work.plan_job.made import note_made
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

STATEMENTS: Final = (
    "SET GLOBAL long_query_time = 9",
    "SELECT 1 INTO OUTFILE '/tmp/x'",
    "SELECT 1 INTO @a",
    "SELECT LOAD_FILE('/etc/passwd') INTO DUMPFILE '/tmp/x'",
    "CHANGE MASTER TO MASTER_HOST = 'evil'",
    "INSTALL SONAME 'evil'",
    "KILL 1",
    "SHUTDOWN",
    "PREPARE s FROM 'SET GLOBAL long_query_time = 9'",
    "EXECUTE IMMEDIATE 'SET GLOBAL long_query_time = 9'",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h', DATABASE 'd', USER 'u')",
    "INSERT INTO mysql.user (host, user) VALUES ('%', 'evil')",
    "UPDATE mysql.user SET authentication_string = ''",
    "/* x */ SET /* y */ GLOBAL long_query_time = 9",
    "FLUSH TABLES WITH READ LOCK",
)
"""Statements in place of one of the window's. A line more is an attack more."""

LEFT_OUT: Final = (
    "INSERT INTO hidden_1.t VALUES (7, 7)",
    "DELETE FROM tenant_1.t WHERE id IN (SELECT id FROM hidden_1.t)",
    "DROP DATABASE hidden_1",
    "CREATE FUNCTION hidden_1.f() RETURNS INT RETURN 1",
    "ALTER TABLE tenant_1.secret ADD COLUMN c INT",
    "TRUNCATE TABLE tenant_1.t",
)
"""The same in a channel that leaves out ``hidden_1`` and ``tenant_1.secret``, and refuses TRUNCATE."""
FILTER: Final = """
[filter]
exclude_databases = ["hidden_*"]
exclude_tables = ["tenant_1.secret"]
[filter.kinds]
truncate = "refuse"
"""

families = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])


Edit = Callable[[list[Any], list[Any]], bool]
"""Changes kinds and payloads of a lane file's items; whether there was something to change."""


def replaced(folder: WorkFolder, statement: str, kind: str) -> None:
    """Put ``statement`` in place of the window's DDL, or of what is there since, and make all digests anew."""

    def edit(kinds: list[Any], payloads: list[Any]) -> bool:
        places = [at for at, each in enumerate(kinds) if each in ("ddl", "statement")]
        for at in places[:1]:
            kinds[at], payloads[at] = kind, statement.encode()
        return bool(places)

    edited(folder, edit, kinds={ROWS_ONLY: 1})


def edited(folder: WorkFolder, edit: Edit, **changes: Any) -> None:
    """Edit the lane files, and the plan, and make all digests anew."""
    plans = folder.plans(read_inputs(folder).key)
    plan = WindowPlan.from_json(plans.read(PLAN))
    files = [list(of_lane) for of_lane in plan.files]
    for of_lane in files:
        for at, file in enumerate(of_lane):
            path = Path(plans.path(file.name))
            if not _edit(path, edit):
                continue
            data = path.read_bytes()
            of_lane[at] = dataclasses.replace(file, bytes=len(data), blake3=blake3(data).hexdigest())
    data = dataclasses.replace(plan, files=tuple(map(tuple, files)), digest="", **changes).sealed()[1]
    Path(plans.path(PLAN)).write_bytes(data)
    made = {name: plans.read(name) for name in (CONTEXT, DATABASES)}
    note_made(folder, plans, read_inputs(folder).digests, {**made, PLAN: data})


def _edit(path: Path, edit: Edit) -> bool:
    table = pq.read_table(path)
    kinds, payloads = table["kind"].to_pylist(), table["payload"].to_pylist()
    if not edit(kinds, payloads):
        return False
    for name, values in (("kind", kinds), ("payload", payloads)):
        field = table.schema.field(name)
        table = table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))
    pq.write_table(table, path)
    return True


@families
def test_a_replaced_statement_is_refused_by_its_kind(channel_of: ChannelOf, family: str) -> None:
    channel: Channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    before = channel.target.query("SELECT @@GLOBAL.long_query_time")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    folder = WorkFolder(window["work"])
    run_plan_job(folder, InProcess())
    for number, statement in enumerate(STATEMENTS):
        replaced(folder, statement, ("ddl", "statement")[number % 2])
        with pytest.raises(PrecheckError, match=r"(?s)no plan job of binlane writes it.*\[statement-kinds\]"):
            steps.adopt_plan(channel.config, channel.endpoints, folder.uri)
    assert channel.target.query("SELECT @@GLOBAL.long_query_time") == before
    assert channel.status.window is not None
    assert channel.status.window.plan_digest is None


UNCOUNTED: Final = {
    "INSERT INTO tenant_1.t VALUES (tenant_1.f())": r"\[account-programs\]",
    "DO tenant_1.f()": r"\[account-programs\]",
    f"UPDATE tenant_1.t SET id = {'(' * 101}2{')' * 101}": r"reads to its end.*\[statement-kinds\]",
}
"""What is put into a window of which the plan says that it has rows alone, and the check that refuses it."""


@families
def test_what_the_checks_look_at_goes_by_the_lane_files_and_not_by_the_plans_own_counts(
    channel_of: ChannelOf, family: str
) -> None:
    channel: Channel = channel_of(family, family)
    channel.on_both(
        "SET GLOBAL log_bin_trust_function_creators = ON",
        "CREATE DATABASE tenant_1",
        "CREATE DATABASE hidden_1",
        "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)",
        "CREATE TABLE hidden_1.t (id INT PRIMARY KEY, v INT)",
        "CREATE FUNCTION tenant_1.f() RETURNS INT DETERMINISTIC SQL SECURITY INVOKER "
        "BEGIN UPDATE hidden_1.t SET v = 9; RETURN 1; END",
    )
    channel.write_channel(FILTER)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (1)", "CREATE TABLE tenant_1.u (id INT PRIMARY KEY)")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    folder = WorkFolder(window["work"])
    run_plan_job(folder, InProcess())
    for statement, refused in UNCOUNTED.items():
        replaced(folder, statement, "statement")
        with pytest.raises(PrecheckError, match=f"(?s){refused}"):
            steps.adopt_plan(channel.config, channel.endpoints, folder.uri)


@families
def test_what_the_channel_leaves_out_is_refused_by_its_own_rules(channel_of: ChannelOf, family: str) -> None:
    channel: Channel = channel_of(family, family)
    channel.write_channel(FILTER)
    channel.on_both(
        *(
            "CREATE DATABASE tenant_1",
            "CREATE DATABASE hidden_1",
            "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, v INT)",
        ),
        *("CREATE TABLE hidden_1.t (id INT PRIMARY KEY, v INT)", "CREATE TABLE tenant_1.secret (id INT PRIMARY KEY)"),
    )
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (1, 1)", "CREATE TABLE tenant_1.u (id INT PRIMARY KEY)")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    folder = WorkFolder(window["work"])
    run_plan_job(folder, InProcess())
    for number, statement in enumerate(LEFT_OUT):
        replaced(folder, statement, ("ddl", "statement")[number % 2])
        expected = r"(?s)a statement that the channel's filter takes, found (hidden_1|tenant_1\.secret|kinds\.truncate)"
        with pytest.raises(PrecheckError, match=expected):
            steps.adopt_plan(channel.config, channel.endpoints, folder.uri)

    def as_hidden(kinds: list[Any], payloads: list[Any]) -> bool:
        for at, kind in enumerate(kinds):
            if kind == "rows":
                payloads[at] = payloads[at].replace(b"tenant_1", b"hidden_1")
        return "rows" in kinds

    replaced(folder, "CREATE TABLE tenant_1.u (id INT PRIMARY KEY)", "ddl")
    edited(folder, as_hidden)
    adopted = steps.adopt_plan(channel.config, channel.endpoints, folder.uri)
    # the lane with these rows moves the barrier, too
    first = adopted["lanes"][0]["lane"]
    with pytest.raises(PlanError, match=r"found rows of hidden_1\.t, left out"):
        steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], first)
    assert channel.target.query("SELECT * FROM hidden_1.t") == []


@families
@pytest.mark.parametrize("is_adopted", [True, False], ids=["that has begun", "without a plan"])
def test_a_plan_of_another_channel_changes_nothing_of_that_one(
    channel_of: ChannelOf, family: str, is_adopted: bool
) -> None:
    """Both have one target, and one plan job's cluster reads the work folders of both."""
    channel: Channel = channel_of(family, family)
    (channel.channels / "other.toml").write_text((channel.channels / f"{CHANNEL}.toml").read_text())
    # the log has what other tests have done before
    assert channel.cli("init", "other", "--start", "now") == 0
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    other = load_channel(channel.channels / "other.toml", {})
    own_folder, its_folder = (
        WorkFolder.of_window(steps.extract(config, channel.endpoints, WindowRequest("now"))["work"])
        for config in (channel.config, other)
    )
    for folder in (own_folder, its_folder):
        run_plan_job(folder, InProcess())
    if is_adopted:
        steps.adopt_plan(other, channel.endpoints, its_folder.uri)
    its_state = [
        f"SELECT * FROM binlane.{table} WHERE channel = 'other'" for table in ("channels", "windows", "errors", "audit")
    ]
    before = list(map(channel.target.query, its_state))
    plans, its_plans = (folder.plans(read_inputs(folder).key) for folder in (own_folder, its_folder))
    made = {name: plans.read(name) for name in (CONTEXT, DATABASES)} | {PLAN: its_plans.read(PLAN)}
    Path(plans.path(PLAN)).write_bytes(made[PLAN])
    note_made(own_folder, plans, read_inputs(own_folder).digests, made)
    with pytest.raises(
        PlanError, match=r"plan\.json: expected a plan whose channel is .*, as of its window, found .other"
    ):
        steps.adopt_plan(channel.config, channel.endpoints, own_folder.uri, stop_at="highest")
    with pytest.raises(PlanError, match="expected a plan whose channel is"):
        steps.apply_lane(channel.config, channel.endpoints, plans.uri, 0)
    with pytest.raises(PlanError, match="expected a plan whose channel is"):
        steps.advance(channel.config, channel.endpoints, plans.uri)
    assert list(map(channel.target.query, its_state)) == before
