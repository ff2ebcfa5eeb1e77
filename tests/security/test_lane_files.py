"""A lane file with a statement of the attacker's, with the right digests above it, runs no kind of statement that
servers do not log.

Attacker: whoever runs the plan job, as Spark's driver does. (Who can only write to the work folder: see
``test_window_files``.)
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from blake3 import blake3

from binlane.errors import PrecheckError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.plan.row_accounting import ROWS_ONLY
from binlane.plan.window_plan import WindowPlan
from binlane.work.files import CONTEXT, DATABASES, PLAN, WorkFolder
from binlane.work.plan_inputs import read_inputs
from binlane.work.plan_job.job import InProcess, run_plan_job
from binlane.work.plan_job.made import note_made
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on

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

families = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])


def replaced(folder: WorkFolder, statement: str, kind: str) -> None:
    """Put ``statement`` in place of the window's DDL, and make all digests anew."""
    plans = folder.plans(read_inputs(folder).key)
    plan = WindowPlan.from_json(plans.read(PLAN))
    files = [list(of_lane) for of_lane in plan.files]
    for of_lane in files:
        for at, file in enumerate(of_lane):
            path = Path(plans.path(file.name))
            if not _edit(path, statement, kind):
                continue
            data = path.read_bytes()
            of_lane[at] = dataclasses.replace(file, bytes=len(data), blake3=blake3(data).hexdigest())
    edited = dataclasses.replace(plan, files=tuple(map(tuple, files)), kinds={ROWS_ONLY: 1}, digest="")
    data = edited.sealed()[1]
    Path(plans.path(PLAN)).write_bytes(data)
    made = {name: plans.read(name) for name in (CONTEXT, DATABASES)}
    note_made(folder, plans, read_inputs(folder).digests, {**made, PLAN: data})


def _edit(path: Path, statement: str, kind: str) -> bool:
    table = pq.read_table(path)
    kinds: list[Any] = table["kind"].to_pylist()
    if "ddl" not in kinds:
        return False
    at = kinds.index("ddl")
    payloads = table["payload"].to_pylist()
    kinds[at], payloads[at] = kind, statement.encode()
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
