"""A lane compares the routines and views that a block's statements reach, and no others: each costs it queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
from binlane.sql.programs.reach import folded

V = Program(TableKey("tenant0", "v"), "view", "select 1 AS `n`")
F, G, H = (Program(TableKey(f"tenant{at}", "f"), "function", "RETURN 1") for at in range(3))
OWN = replace(mark_of(H), digest="")
CONTEXT = SessionContext(database="tenant0")


class _Lane:
    """A lane of a target that shows these programs now."""

    def __init__(self, *programs: Program, behind: Mapping[TableKey, frozenset[TableKey]] | None = None) -> None:
        self.now, self.asked = programs, list[list[str]]()
        self.views, self.missing = [V.key], set[str]()
        marks, views = (mark_of(F), mark_of(G), OWN, mark_of(V)), frozenset({TableKey("tenant0", "own")})
        reached = ReachedPrograms(marks, behind or {}, views=views)
        self.named = NamedObjects(self.read, reached, self.read_views, "reached.json")

    def read_views(self, is_wanted: Callable[[str], bool], names: Collection[str] | None) -> list[TableKey]:
        return [key for key in self.views if is_wanted(key.database) and (names is None or folded(key).table in names)]

    def read(self, names: Mapping[bool, Sequence[TableKey]]) -> Iterable[Program]:
        self.asked.append([str(each) for each in (*names[False], *names[True])])
        return self.now

    def block(self, *statements: str, meanwhile: str | None = None) -> list[list[str]]:
        """What is asked for around them. ``meanwhile``: a view that is made behind the last statement."""
        self.asked.clear()
        self.named.begin()
        for sql in statements:
            item = Item(ItemKind.STATEMENT, sql.encode("utf-8", "surrogateescape"), context=CONTEXT)
            facts = statement_facts(item.payload, CONTEXT, Flavor.MYSQL)
            self.named.hold(self._hold, facts, lambda item=item: _names_in(item, Flavor.MYSQL))  # type: ignore[misc]
        self.views += [] if meanwhile is None else [TableKey("tenant0", meanwhile)]
        self.named.end()
        return self.asked

    def _hold(self, statement: str) -> None:
        name = statement.partition(".`")[2].partition("`")[0]
        if name in self.missing:
            raise pymysql.err.ProgrammingError(1146, f"Table '{name}' doesn't exist")
        if name in {key.table for key in self.views}:
            raise pymysql.err.OperationalError(NO_SUCH_KEY, f"Key '' doesn't exist in table '{name}'")


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


BEHIND = {
    TableKey("tenant0", "v"): frozenset({TableKey("tenant0", "b")}),
    TableKey("tenant0", "f()"): frozenset({TableKey("tenant0", "b"), TableKey("tenant0", "never there")}),
}


@pytest.mark.parametrize("at", ["in front", "behind"])
@pytest.mark.parametrize(
    ("sql", "view"),
    [
        ("UPDATE b SET n = 1", "b"),
        ("UPDATE v SET n = 1", "b"),
        ("INSERT INTO t VALUES (f())", "b"),
        ("INSERT INTO t VALUES (f())", "never there"),
        # there is no table to hold when the lane looks
        ("UPDATE missing SET n = 1", "missing"),
    ],
)
def test_no_view_takes_the_place_of_a_name_that_a_statement_uses_or_that_is_behind_it(
    sql: str, view: str, at: str
) -> None:
    lane = _Lane(F, G, H, behind=BEHIND)
    lane.missing = {"missing"}
    lane.block(sql)
    if at == "in front":
        lane.views.append(TableKey("tenant0", view))
        lane.missing.clear()
        with pytest.raises(TableMismatchError, match=r"found a view|found one, .* nothing of it was written"):
            lane.block(sql)
    elif sql != "UPDATE b SET n = 1":  # its table is held
        with pytest.raises(TableMismatchError, match=rf"{view}: expected no view.* its transaction was rolled back"):
            lane.block(sql, meanwhile=view)


def test_a_view_that_the_window_makes_is_its_own() -> None:
    lane = _Lane(F, G, H)
    lane.views.append(TableKey("tenant0", "own"))
    lane.block("UPDATE own SET n = 1")
    lane.views.append(TableKey("tenant0", "other"))
    with pytest.raises(TableMismatchError, match=r"tenant0\.other: expected a table, found a view"):
        lane.block("UPDATE other SET n = 1")
