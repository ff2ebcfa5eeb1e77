"""The result of a verification as an operator reads it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from binlane.cli import app
from binlane.errors import PrecheckError
from binlane.model import Flavor, SchemaObject, TableKey
from binlane.orchestration.commands import repair
from binlane.orchestration.commands import verify as commands
from binlane.orchestration.commands.verify import outcome_text, verify_after
from binlane.schema.model import Schema
from binlane.state.records.verifications import CLEAN, DRIFT, INCOMPLETE, PENDING, RUNNING, Counts, Suspect
from binlane.verify.definitions.comparison import DefinitionDifference
from binlane.verify.definitions.mend import one
from binlane.verify.outcome import Outcome

OUTCOME = Outcome("shop", "full", CLEAN, 4711, Counts(2, 4, 20_000, 19_990), (), Schema(Flavor.MARIADB, ""), True)
VIEW = SchemaObject("view", "crm", "v")


def test_a_slice_says_what_is_compared_so_far_and_what_is_left() -> None:
    part = replace(OUTCOME, state=RUNNING, tables_left=3, rows_left=60_000, rate=2_000.0)

    assert outcome_text(OUTCOME).split("\n") == [
        "channel shop: all tables through seqno 4,711: 2 tables, 20,000 rows in 4 chunks: clean",
        "equal through seqno 4,711: 19,990 rows",
    ]
    assert outcome_text(part).split("\n") == [
        "channel shop: all tables through seqno 4,711 so far: 2 tables, 20,000 rows in 4 chunks: not finished",
        "equal through seqno 4,711 so far: 19,990 rows",
        "left: 3 tables, about 60,000 rows, 30 s at 2,000 rows a second; the next full verification continues",
    ]


def test_some_tables_are_named_as_they_were_asked_for() -> None:
    full = replace(OUTCOME, scope=("crm.orders", "shard tenant_003"))
    window = replace(full, kind="window", windows=2)

    assert outcome_text(full).startswith("channel shop: crm.orders, shard tenant_003 through seqno 4,711: 2 tables")
    assert outcome_text(window).startswith(
        "channel shop: the rows of 2 windows in crm.orders, shard tenant_003 through "
    )


def test_a_statement_that_mends_several_parts_of_an_object_is_printed_once() -> None:
    create, other = one("CREATE OR REPLACE VIEW crm.v AS SELECT 1"), one("ALTER TABLE crm.t COMMENT 'x'")
    differences = (
        DefinitionDifference(VIEW, "definition", "select 1", "select 2", create),
        DefinitionDifference(VIEW, "definer", "app@%", "root@%", create),
        DefinitionDifference(SchemaObject("table", "crm", "t"), "comment", "x", "y", other),
    )
    suspects = tuple(
        Suspect(TableKey("crm", "v"), ("view",), DRIFT, 7, (each.what,), None, None, str(each)) for each in differences
    )
    text = outcome_text(replace(OUTCOME, suspects=suspects, differences=differences))

    assert text.split("\n")[3:] == [
        "  view crm.v: definition: source select 1, target select 2",
        f"  view crm.v: definer: source app@%, target root@%; {create}",
        f"  table crm.t: comment: source x, target y; {other}",
    ]


def hidden(state: str) -> Outcome:
    """The outcome of this state, of which an account has not seen a database."""
    suspects = (Suspect(TableKey("crm", "t"), ("1",), state, 7, ("a",), None, None, ""),)
    unseen = ("database erp: the source's account lacks SELECT on `erp`.*",)
    return replace(OUTCOME, state=state, suspects=suspects, unseen=unseen, is_complete=False)


@pytest.mark.parametrize("state", [DRIFT, PENDING, RUNNING, INCOMPLETE])
def test_what_an_account_has_not_seen_is_named_whatever_was_found_in_the_rest(state: str) -> None:
    assert "name them in apply.allow_unseen\n1 not compared:\n  database erp: " in outcome_text(hidden(state))


def test_a_step_with_pending_rows_and_a_hidden_database_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    channel: Any = SimpleNamespace(
        name="shop", verify=SimpleNamespace(rows_per_second=0, max_threads_running=None, slice_seconds=None)
    )
    endpoints: Any = None
    monkeypatch.setattr(commands, "verify_channel", lambda *_: hidden(PENDING))
    with pytest.raises(PrecheckError, match="an account does not see everything"):
        verify_after(channel, endpoints, "window")


def test_a_repair_of_all_drift_beside_a_hidden_database_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = SimpleNamespace(is_needed=True, rows=(1,), definitions=(), left=())
    outcomes = {1: hidden(DRIFT), 0: replace(hidden(DRIFT), is_complete=True)}
    monkeypatch.setattr(repair, "plan_text", lambda _: "plan")
    monkeypatch.setattr(repair, "repaired_text", lambda *_: "1 row repaired")
    monkeypatch.setattr(repair, "apply_plan", lambda *_: SimpleNamespace(changed_rows=0))
    for code, outcome in outcomes.items():
        stored = (outcome, SimpleNamespace(plan=plan, place="file:///plan.json"))
        monkeypatch.setattr(repair, "make_plan", lambda *_, stored=stored: stored)
        assert CliRunner().invoke(app, ["verify", "shop", "--repair", "--yes"]).exit_code == code
