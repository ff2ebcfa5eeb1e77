"""The plan of a restore as JSON values."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from binlane.model import LogPosition
from binlane.orchestration.commands.copies.restore_plan import plan_object
from binlane.restore.log_scan import LogScan
from binlane.restore.logged_transactions import LoggedTransaction

_AT = LogPosition("binlog.000001", 4)


@pytest.mark.parametrize(
    "sql",
    [
        "GRANT SELECT ON shop.* TO x IDENTIFIED BY 'Aa-12345'",
        "CREATE TABLE shop.f (n INT) ENGINE=FEDERATED CONNECTION='mysql://u:Aa-12345@h/d/t'",
    ],
)
def test_no_password_of_the_log_is_in_it(sql: str) -> None:
    one = LoggedTransaction(_AT, _AT, "", 100.0, (), (sql, "INSERT INTO shop.t VALUES (1)"), concerns=True)
    definition = SimpleNamespace(databases=(), replaced=(), tables=(), base="", log="archive", begin=str(_AT))
    plan: Any = SimpleNamespace(
        name="r",
        digest="",
        scan=LogScan(_AT, _AT, before=[one], after=[one], culprit=one),
        definition=definition,
        dump=None,
        beliefs=(),
        is_extension=False,
        events="",
        grants="",
    )
    found = plan_object(plan)
    assert "Aa-12345" not in json.dumps(found)
    for shown in (found["first_behind"], *found["before"], *found["behind"]):
        assert [each[:12] for each in shown["statements"]] == [sql[:12], "INSERT INTO "]
