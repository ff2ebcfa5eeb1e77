"""A repair runs the statements that it may run, and no other, whatever its plan lists."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest

from binlane.model import SchemaObject
from binlane.repair.definitions import DefinitionRepairer
from binlane.repair.plan import DefinitionRepair
from binlane.verify.definitions.comparison import DefinitionDifference
from binlane.verify.definitions.mend import Mend, nothing, one

TABLE = SchemaObject("table", "shop", "orders")
STATEMENT = "ALTER TABLE `shop`.`orders` DROP COLUMN `memo`"


@pytest.mark.parametrize(
    ("mend", "listed", "expected"),
    [
        (one(STATEMENT), (STATEMENT,), ["definitions", STATEMENT]),
        (one(STATEMENT, "it removes the column's values"), (STATEMENT,), ["changed_rows"]),
        (one(STATEMENT), ("ALTER TABLE t COMMENT ''",), ["changed_rows"]),
        (nothing("only the target has it"), (), ["changed_rows"]),
    ],
    ids=["may run", "is left to an operator", "is another one", "has none"],
)
def test_a_statement_runs_only_if_a_repair_may_run_it_now(
    mend: Mend, listed: tuple[str, ...], expected: list[str]
) -> None:
    done = list[str]()
    session = SimpleNamespace(execute=lambda statement: done.append(statement.decode()))
    found = DefinitionDifference(TABLE, "column `memo`", None, "text", mend)
    definitions = SimpleNamespace(differences=lambda _: [found])
    repairer = DefinitionRepairer(cast(Any, definitions), cast(Any, session), cast(Any, session))
    repair = DefinitionRepair("table", "shop", "orders", ("column `memo`",), listed)

    repairer.run((repair,), cast(Any, contextlib.nullcontext), lambda _, __, result: done.insert(0, result))

    assert done == expected
