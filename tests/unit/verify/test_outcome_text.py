"""The result of a verification as an operator reads it."""

from __future__ import annotations

from dataclasses import replace

from binlane.model import Flavor, SchemaObject, TableKey
from binlane.orchestration.commands.verify import outcome_text
from binlane.schema.model import Schema
from binlane.state.records.verifications import CLEAN, DRIFT, RUNNING, Counts, Suspect
from binlane.verify.definitions.comparison import DefinitionDifference
from binlane.verify.definitions.mend import one
from binlane.verify.outcome import Outcome

OUTCOME = Outcome("shop", "full", CLEAN, 4711, Counts(2, 4, 20_000, 19_990), (), Schema(Flavor.MARIADB, ""))
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
