"""Settings of a target that act on BINLOG statements, and that no session has."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.model import Flavor
from binlane.precheck.situation.situation import Needs
from binlane.precheck.target.row_events import rewritten_databases
from binlane.schema.compare import Severity
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.precheck.helpers import asked, run
from tests.integration.precheck.test_server import found

HERE = Needs(databases=frozenset({"here", "it's"}))


def said(server: PrivateServer, *checks: str, needs: Needs = HERE) -> list[tuple[str, str]]:
    with asked(server) as target:
        of_rows = [one for one in found(target, needs) if one.check in checks and one.severity is Severity.FATAL]
    return [(one.where.removeprefix("target: "), one.found) for one in of_rows]


def test_row_events_that_go_into_another_database_are_named(tmp_path: Path) -> None:
    """Also where SET GLOBAL has changed the variable, which shows the rules of another connection."""
    with private_server(tmp_path / "data", options=["--replicate-rewrite-db=here->there"]) as server:
        assert said(server, "rewritten-rows") == [("rows of here", "into there")]
        run(server, "CREATE DATABASE here", "CREATE DATABASE there", "SET GLOBAL replicate_rewrite_db = ''")
        assert said(server, "rewritten-rows") == [("rows of here", "into there")]
        assert said(server, "rewritten-rows", needs=Needs(databases=HERE.databases, by_statements=True)) == []


def test_errors_that_row_events_pass_over_are_named(tmp_path: Path) -> None:
    with private_server(tmp_path / "data", options=["--slave-skip-errors=1062"]) as server:
        run(server, "SET GLOBAL slave_exec_mode = IDEMPOTENT")
        assert said(server, "passed-errors") == [("slave_skip_errors", "1062"), ("slave_exec_mode", "IDEMPOTENT")]


def test_a_usual_server_writes_row_events_where_they_belong(server: PrivateServer) -> None:
    assert said(server, "passed-errors", "rewritten-rows") == []
    if server.flavor.value == "mariadb":
        with asked(server) as target:
            assert list(rewritten_databases(target.engine, sorted(HERE.databases), target.version)) == []


@requires_mysql
@pytest.mark.parametrize("value", ["1062", "ddl_exist_errors"])
def test_errors_that_mysql_passes_over_are_named(tmp_path: Path, value: str) -> None:
    with private_server(tmp_path / "data", Flavor.MYSQL, options=[f"--replica-skip-errors={value}"]) as server:
        [(name, shown)] = said(server, "passed-errors")
    assert name == "replica_skip_errors"
    assert value.startswith(shown.partition(",")[0]) or "1007" in shown
