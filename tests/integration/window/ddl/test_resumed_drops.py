"""A window that was stopped or killed behind its own DROP goes on: what it has dropped is not asked for."""

from __future__ import annotations

import shutil

import pytest

from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.one_runner import apply_alone

FAMILIES = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
BEFORE = (
    "CREATE DATABASE tenant_1",
    "CREATE DATABASE tenant_2",
    *(f"CREATE TABLE tenant_{n}.{name} (id INT PRIMARY KEY, v INT)" for n in (1, 2) for name in ("t", "u", "gone")),
    "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES tenant_1.t (id) ON DELETE CASCADE)",
    "CREATE VIEW tenant_2.v AS SELECT id FROM tenant_2.t",
    "CREATE PROCEDURE tenant_2.p () SELECT 1",
    "CREATE TRIGGER tenant_2.g BEFORE INSERT ON tenant_2.u FOR EACH ROW SET NEW.v = 1",
)
ROWS = tuple(f"INSERT INTO tenant_{n}.{name} VALUES (1, 1)" for n in (1, 2) for name in ("t", "u", "gone"))
DROPS = {
    "database": ("DROP DATABASE tenant_1",),
    "default database": ("USE tenant_1", "UPDATE t SET v = 5", "CREATE TABLE other (id INT)", "DROP DATABASE tenant_1"),
    "database made again": (
        *("DROP DATABASE tenant_1", "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (v VARCHAR(9), id INT)"),
        "INSERT INTO tenant_1.t VALUES ('one', 2)",
    ),
    "objects": (
        *("DROP VIEW tenant_2.v", "DROP PROCEDURE tenant_2.p", "DROP TRIGGER tenant_2.g"),
        *("DROP TABLE tenant_2.gone", "RENAME TABLE tenant_2.u TO tenant_1.moved", "DROP TABLE tenant_1.child"),
    ),
}
BEHIND = ("INSERT INTO tenant_2.t VALUES (2, 2)", "CREATE TABLE tenant_2.last (id INT)")


def began(channel: Channel, format_: str, drops: tuple[str, ...]) -> tuple[dict[str, object], int]:
    """A window with the drops, adopted; its answer and its number of transactions."""
    run_on(channel.source, *BEFORE)
    assert channel.run() is not None
    run_on(channel.source, f"SET SESSION binlog_format = {format_}", *ROWS, *drops, *BEHIND)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    return window, window["transactions"]


def stopped_everywhere(channel: Channel, what: str, format_: str) -> None:
    """Apply a window with these drops, stopped behind each transaction in turn and resumed."""
    window, count = began(channel, format_, DROPS[what])
    first = channel.status.channel.watermark.seqno
    for at in range(len(ROWS), int(str(count))):
        adopted = steps.adopt_plan(channel.config, channel.endpoints, str(window["work"]), stop_at=str(first + at))
        for each in adopted["lanes"]:
            apply_alone(channel.config, channel.endpoints, adopted["plan"], each["lane"])
        steps.advance(channel.config, channel.endpoints, adopted["plan"])
        assert channel.cli("resume", CHANNEL) == 0
        if at % 2 and what == "database":
            shutil.rmtree(channel.work)
        window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
        if window["plan"] is None:
            run_plan_job(WorkFolder(str(window["work"])), InProcess())
    assert channel.run() is not None


@FAMILIES
@pytest.mark.parametrize("what", ["database", "default database"])
def test_a_window_goes_on_behind_the_database_that_it_has_dropped(
    channel_of: ChannelOf, family: str, what: str
) -> None:
    channel = channel_of(family, family)
    stopped_everywhere(channel, what, "ROW")
    channel.assert_equal()
