"""Tables that statements alone change are compared as those with rows: they leave other rows in another table."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from binlane.errors import SourceError
from binlane.model import TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.schema.compare import Severity
from binlane.schema.model import Column, Key, KeyColumn, Schema, Table, Trigger
from tests.unit.precheck.situations import PLAN, findings, schema, situation

KEY = TableKey("shop", "t")
COLUMNS = (Column("a", 1, "int"), Column("b", 2, "varchar", length=9, charset="utf8mb4", collation="utf8mb4_bin"))
PRIMARY = Key("PRIMARY", unique=True, primary=True, columns=(KeyColumn("a"),))
UNIQUE = Key("u", unique=True, primary=False, columns=(KeyColumn("b"),))
TABLE = Table(KEY, "InnoDB", COLUMNS, (PRIMARY, UNIQUE))
DIFFERENT = {
    "order of columns": replace(TABLE, columns=(replace(COLUMNS[1], ordinal=1), replace(COLUMNS[0], ordinal=2))),
    "type": replace(TABLE, columns=(replace(COLUMNS[0], data_type="bigint"), COLUMNS[1])),
    "default": replace(TABLE, columns=(replace(COLUMNS[0], default="7"), COLUMNS[1])),
    "ON UPDATE": replace(TABLE, columns=(replace(COLUMNS[0], on_update=True), COLUMNS[1])),
    "collation": replace(TABLE, columns=(COLUMNS[0], replace(COLUMNS[1], collation="utf8mb4_general_ci"))),
    "primary key": replace(TABLE, keys=(replace(PRIMARY, columns=(KeyColumn("b"),)), UNIQUE)),
    "unique key": replace(TABLE, keys=(PRIMARY,)),
    "engine": replace(TABLE, engine="MyISAM"),
}
STATEMENTS = replace(PLAN, written=frozenset({KEY}), kinds={"dml": 1})


def _unanswered(*_: object) -> None:
    raise SourceError("no answer")


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_table_that_statements_change_is_the_sources(what: str) -> None:
    made = situation(plan=STATEMENTS, tables=schema(DIFFERENT[what]), source=schema(TABLE))
    vars(made).update(source=SimpleNamespace(altered_behind=lambda **_: Alterations(), ask=_unanswered))

    found = findings(made, "table-definitions")

    assert [each.severity for each in found if each.severity is not Severity.INFO][:1] == [Severity.FATAL]


def test_triggers_are_left_to_the_check_that_knows_which_a_statement_fires() -> None:
    table = replace(TABLE, triggers=(Trigger("x", "BEFORE", "INSERT"),))
    made = situation(plan=STATEMENTS, tables=schema(table), source=schema(TABLE))
    assert findings(made, "table-definitions") == ()


@pytest.mark.parametrize("tables", [schema(TABLE), schema()])
def test_an_equal_table_and_one_that_a_session_may_have_made_are_passed(tables: Schema) -> None:
    assert findings(situation(plan=STATEMENTS, tables=tables, source=schema(TABLE)), "table-definitions") == ()
