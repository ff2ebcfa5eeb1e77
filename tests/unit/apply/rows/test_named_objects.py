"""A lane compares the routines and views that a block's statements reach, and no others: each costs it queries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pymysql
import pytest

from binlane.apply.rows.named_objects import NamedObjects
from binlane.apply.rows.writers import _names_in
from binlane.errors import TableMismatchError
from binlane.model import Flavor, Item, ItemKind, SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.schema.programs import Program
from binlane.sessions.state_guard import NO_SUCH_KEY
from binlane.sql.programs.marks import ReachedPrograms, mark_of

V = Program(TableKey("tenant0", "v"), "view", "select 1 AS `n`")
F, G, H = (Program(TableKey(f"tenant{at}", "f"), "function", "RETURN 1") for at in range(3))
OWN = replace(mark_of(H), digest="")
CONTEXT = SessionContext(database="tenant0")


class _Lane:
    """A lane of a target that shows these programs now."""

    def __init__(self, *programs: Program) -> None:
        self.now, self.asked = programs, list[list[str]]()
        reached = ReachedPrograms((mark_of(F), mark_of(G), OWN, mark_of(V)))
        self.named = NamedObjects(self.read, reached, lambda _: False, "reached.json")

    def read(self, names: Mapping[bool, Sequence[TableKey]]) -> Iterable[Program]:
        self.asked.append([str(each) for each in (*names[False], *names[True])])
        return self.now

    def block(self, *statements: str) -> list[list[str]]:
        """What is asked for around them."""
        self.asked.clear()
        self.named.begin()
        for sql in statements:
            item = Item(ItemKind.STATEMENT, sql.encode("utf-8", "surrogateescape"), context=CONTEXT)
            facts = statement_facts(item.payload, CONTEXT, Flavor.MYSQL)
            self.named.hold(_hold, facts, lambda item=item: _names_in(item, Flavor.MYSQL))  # type: ignore[misc]
        self.named.end()
        return self.asked


def _hold(statement: str) -> None:
    if "`v`" in statement:
        raise pymysql.err.OperationalError(NO_SUCH_KEY, "Key '' doesn't exist in table 'v'")


@pytest.mark.parametrize(
    ("statements", "asked"),
    [
        (["INSERT INTO t VALUES (f())"], [["tenant0.f"]] * 2),
        (["INSERT INTO t VALUES (tenant1.f())"] * 3, [["tenant1.f"]] * 2),
        (
            ["INSERT INTO t VALUES (f())", "INSERT INTO t VALUES (tenant1.F())"],
            [["tenant0.f"], ["tenant1.f"], ["tenant0.f", "tenant1.f"]],
        ),
        (["INSERT INTO t SELECT n FROM v"], [["tenant0.v"]] * 2),
        (["UPDATE tenant0.V SET n = f()"], [["tenant0.f", "tenant0.v"]] * 2),
        (["INSERT INTO t VALUES (1)"], []),
        # the window's own, and one of which nobody knows whether it is stored
        (["INSERT INTO t VALUES (tenant2.f())"], []),
        (["INSERT INTO t VALUES (loadable(1))"], []),
        # a literal that is no text
        (["INSERT INTO t VALUES (f(), '\udcff')"], [["tenant0.f"]] * 2),
        # what nobody can read may call any
        (["INSERT INTO t VALUES (f(), 'open)"], [["tenant0.f", "tenant1.f", "tenant0.v"]] * 2),
        (["INSERT INTO `\udcff` VALUES (f())"], [["tenant0.f", "tenant1.f", "tenant0.v"]] * 2),
    ],
)
def test_only_what_the_statements_reach_is_compared(statements: list[str], asked: list[list[str]]) -> None:
    assert _Lane(F, G, H).block(*statements) == asked


@pytest.mark.parametrize("changed_first", [True, False])
def test_another_function_is_refused_by_the_statement_that_calls_it(changed_first: bool) -> None:
    lane = _Lane(*((F, replace(G, text="RETURN 2")) if changed_first else (replace(F, text="RETURN 2"), G)))
    # read but not asked for: the tenant's own block goes on
    assert lane.block(*(["INSERT INTO t VALUES (f())"] if changed_first else ["INSERT INTO t VALUES (tenant1.f())"]))
    with pytest.raises(TableMismatchError, match=r"expected what the precheck .* nothing of it was written"):
        lane.block("INSERT INTO t VALUES (f(), tenant1.f())")


@pytest.mark.parametrize(
    ("sql", "held"),
    [
        ("CREATE TEMPORARY TABLE tmp.x (n INT)", []),
        ("CREATE TEMPORARY TABLE IF NOT EXISTS tmp.x SELECT * FROM t", ["`tenant0`.`t`"]),
        ("DROP TEMPORARY TABLE IF EXISTS tmp.x, tmp.y", []),
        ("INSERT INTO tmp.x SELECT * FROM t", ["`tenant0`.`t`", "`tmp`.`x`"]),
        ("DELETE FROM t", ["`tenant0`.`t`"]),
    ],
)
def test_a_temporary_table_that_a_statement_makes_or_drops_is_not_looked_at(sql: str, held: list[str]) -> None:
    """An account that may only make temporary tables there is refused whatever it reads (1142)."""
    seen, lane = list[str](), _Lane()
    facts = statement_facts(sql.encode(), CONTEXT, Flavor.MYSQL)
    lane.named.hold(seen.append, facts, lambda: ())
    assert [name for each in seen for name in re.findall(r"FROM (\S+)", each)] == held
