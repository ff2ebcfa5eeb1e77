"""Temporary tables of bodies, as words; and calls whose tables depend on earlier calls."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from binlane.model import Flavor, TableKey
from binlane.sql.parse.lexer import Token
from binlane.sql.temporary_routines import Act, Bodies, Body, Call, defined, doubts, tokens_of


def tokens(text: str) -> Sequence[Token]:
    found = tokens_of(text, Flavor.MYSQL)
    assert found is not None
    return found


ROUTINES = {
    "makes": "BEGIN CREATE TEMPORARY TABLE made (a INT); INSERT INTO made VALUES (1); RETURN 1; END",
    "missing": "BEGIN CREATE TEMPORARY TABLE IF NOT EXISTS `Made` (a INT); INSERT INTO made VALUES (1); RETURN 1; END",
    "emptied": "BEGIN CREATE TEMPORARY TABLE IF NOT EXISTS made (a INT); DELETE FROM made; RETURN 1; END",
    "thinned": "BEGIN CREATE TEMPORARY TABLE IF NOT EXISTS made (a INT); DELETE FROM made WHERE a = 1; RETURN 1; END",
    "renews": "BEGIN DROP TEMPORARY TABLE IF EXISTS made; CREATE TEMPORARY TABLE made (a INT); RETURN 1; END",
    "drops": "BEGIN DROP TEMPORARY TABLE shop.made, d.other; RETURN 1; END",
    "drops_leniently": "BEGIN DECLARE CONTINUE HANDLER FOR 1051 BEGIN END; DROP TEMPORARY TABLE made; RETURN 1; END",
    "drops_if_told": "BEGIN IF told THEN DROP TEMPORARY TABLE made; END IF; RETURN 1; END",
    "uses": "BEGIN RETURN (SELECT COUNT(*) FROM made); END",
    "uses_if_told": "BEGIN IF told THEN INSERT INTO made VALUES (1); END IF; RETURN 1; END",
    "hides": "BEGIN CREATE TEMPORARY TABLE t (a INT); RETURN 1; END",
    "reads": "BEGIN RETURN (SELECT COUNT(*) FROM t); END",
    "reads_a_column": "BEGIN RETURN (SELECT made FROM u); END",
    "balanced": "BEGIN CREATE TEMPORARY TABLE made (a INT); DROP TEMPORARY TABLE made; RETURN 1; END",
    "calls": "BEGIN RETURN makes() + 1; END",
    "calls_itself": "BEGIN RETURN calls_itself(); END",
    "clears_behind_errors": "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN DROP TEMPORARY TABLE made; END; "
    "CREATE TEMPORARY TABLE made (a INT); DROP TEMPORARY TABLE made; RETURN 1; END",
}


USES = (
    "INSERT t VALUES (1)",
    "INSERT IGNORE t VALUES (1)",
    "REPLACE t VALUES (1)",
    "REPLACE shop.t SELECT a FROM base",
    "SELECT COUNT(*) INTO n FROM base b, t",
    "SELECT COUNT(*) INTO n FROM base, (SELECT a FROM u, t) x",
    "SELECT COUNT(*) INTO n FROM (base b JOIN u ON u.a = b.a), shop.t",
    "SELECT COUNT(*) INTO n FROM (t JOIN base)",
    "SELECT COUNT(*) INTO n FROM base STRAIGHT_JOIN t",
    "SET n = (SELECT MAX(a) FROM base AS b, T AS x)",
    "UPDATE base, t SET base.a = 1",
    "UPDATE IGNORE t SET a = 1",
    "DELETE t FROM base JOIN t USING (a)",
    "DELETE FROM base USING base, t",
    "DELETE IGNORE FROM t WHERE a = 1",
    "TRUNCATE t",
)
"""Statements that name a table in each place."""


@pytest.mark.parametrize("statement", USES)
def test_a_table_is_used_wherever_its_name_stands(statement: str) -> None:
    known = bodies()
    known.add_routine("shop", "using", Body(0, "shop", tokens(f"BEGIN {statement}; RETURN 1; END")))
    deeds = [(each.table, each.act) for each in known.behind(tokens("DO using()"), "shop", 1)]
    assert deeds == [(TableKey("shop", "t"), Act.USES)]
    assert [each.table for each in known.own(tokens(statement), "shop")] == [TableKey("shop", "t")]


@pytest.mark.parametrize(
    ("statement", "certain"),
    [
        ("INSERT triggering VALUES (1)", [True]),
        ("REPLACE shop.triggering SELECT 1", [True]),
        ("UPDATE IGNORE triggering SET a = 1", [True]),
        ("DELETE FROM triggering", [True]),
        ("UPDATE u, triggering SET u.a = 1", [False]),
        ("DELETE triggering FROM u JOIN triggering", [False]),
        ("SELECT a FROM triggering", []),
        ("INSERT INTO u SELECT a FROM u, triggering", []),
    ],
)
def test_a_trigger_fires_wherever_its_table_may_be_written(statement: str, certain: list[bool]) -> None:
    made = [each for each in bodies().behind(tokens(statement), "shop", 1) if each.act is Act.MAKES]
    assert [each.is_certain for each in made] == certain


def bodies() -> Bodies:
    found = Bodies()
    for name, text in ROUTINES.items():
        found.add_routine("Shop", name, Body(0, "shop", tokens(text)))
    found.add_trigger("shop", "triggering", Body(0, "shop", tokens("SET NEW.a = makes()")))
    return found


def judged(*statements: tuple[str, int], session: int | None = 1) -> list[tuple[str, str | None, bool]]:
    """The statement, the one that has left the table, and whether it is sure to fail, of each doubt. With each
    statement the transaction of the target that it is in."""
    known, calls = bodies(), []
    for seqno, (sql, together) in enumerate(statements, 1):
        words = tokens(sql)
        if defined(words) in ("", "TABLE"):
            behind = tuple(known.behind(words, "shop", seqno))
            calls.append(Call(sql, session, together, tuple(known.own(words, "shop")), behind))
        else:
            known.add_statement(words, "shop", seqno)
    found = doubts(calls, lambda key: key == TableKey("shop", "t"), known.leaving)
    return [(each.place, each.before, each.fails) for each in found if each.table != TableKey("d", "other")]


@pytest.mark.parametrize(
    ("first", "second", "together", "fails"),
    [
        ("DO makes()", "DO drops()", False, True),
        ("DO makes()", "DO drops()", True, None),
        ("DO makes()", "DO uses()", False, True),
        ("DO makes()", "DO uses()", True, None),
        ("DO makes()", "DO makes()", True, True),
        ("DO makes()", "DO renews()", False, None),
        ("DO missing()", "DO missing()", True, False),
        ("DO missing()", "DO missing()", False, False),
        ("DO emptied()", "DO emptied()", False, None),
        ("DO thinned()", "DO thinned()", False, False),
        ("DO makes()", "DO drops_leniently()", False, None),
        ("DO makes()", "DO drops_if_told()", False, False),
        ("DO makes()", "DO uses_if_told()", False, False),
        ("DO makes()", "DO uses_if_told()", True, None),
        ("DO reads()", "DO reads()", False, None),
        ("DO hides()", "DO reads()", False, False),
        ("DO hides()", "DO reads()", True, None),
        ("DO hides()", "INSERT INTO t VALUES (1)", True, False),
        ("DO hides()", "SELECT x.t FROM u", False, None),
        ("DO makes()", "INSERT INTO made VALUES (1)", False, None),
        ("DO makes()", "DO reads_a_column()", False, None),
        ("DO balanced()", "DO balanced()", False, None),
        ("DO clears_behind_errors()", "DO clears_behind_errors()", False, None),
        ("DO calls()", "INSERT INTO t VALUES (shop.drops())", False, True),
        ("INSERT INTO triggering VALUES (1)", "DO drops()", False, True),
        ("INSERT INTO `other` SELECT a FROM triggering", "DO balanced()", False, None),
        ("DO calls_itself()", "DO balanced()", False, None),
        ("CREATE TABLE x SELECT makes()", "DO drops()", False, True),
        ("CREATE TEMPORARY TABLE made (a INT)", "DO drops()", False, None),
        ("CREATE TEMPORARY TABLE made (a INT)", "DO uses()", False, None),
    ],
)
def test_a_call_behind_another(first: str, second: str, together: bool, fails: bool | None) -> None:
    found = [each for each in judged((first, 1), (second, 1 if together else 2)) if each[1:] != (None, False)]
    assert found == ([] if fails is None else [(second, first, fails)])


def test_a_table_of_an_earlier_window_is_needed_or_not() -> None:
    assert judged(("DO drops()", 1)) == [("DO drops()", None, True)]
    assert judged(("DO uses()", 1)) == [("DO uses()", None, True)]
    for doubtful in ("missing", "thinned", "drops_if_told", "uses_if_told", "reads"):
        assert judged((f"DO {doubtful}()", 1)) == [(f"DO {doubtful}()", None, False)]
    for harmless in ("makes", "emptied", "renews", "drops_leniently", "balanced", "reads_a_column"):
        assert judged((f"DO {harmless}()", 1)) == []
    assert judged(("INSERT INTO t VALUES (1)", 1)) == [("INSERT INTO t VALUES (1)", None, False)]


def test_a_table_that_this_window_has_dropped_is_none_of_an_earlier_one() -> None:
    assert judged(("DO balanced()", 1), ("DO drops_if_told()", 2)) == []
    assert judged(("DROP TEMPORARY TABLE made", 1), ("DO drops_if_told()", 2)) == []
    assert judged(("DO drops_if_told()", 1), ("DO drops_if_told()", 2)) == [("DO drops_if_told()", None, False)] * 2


def test_the_functions_of_a_view_and_what_nobody_can_read() -> None:
    known = bodies()
    known.add_view("shop", "seen", Body(0, "shop", tokens("select `shop`.`makes`() AS `n` from `shop`.`u`")))
    known.add_statement(tokens("CREATE VIEW other AS SELECT hidden() AS n"), "shop", 4)
    known.add_statement(tokens("ALTER VIEW other AS SELECT 1 AS n"), "shop", 6)
    known.add_routine("shop", "hidden", Body(0, "shop", None))
    known.add_routine("shop", "broken", Body(0, "shop", tokens_of("BEGIN RETURN 'a", Flavor.MYSQL)))
    assert {"seen", "other", "hidden", "broken"} <= known.concerned

    def acts(sql: str, seqno: int = 5) -> list[tuple[str, Act]]:
        return [(each.table.table, each.act) for each in known.behind(tokens(sql), "shop", seqno)]

    assert acts("INSERT INTO u SELECT n FROM shop.seen")[0] == ("made", Act.MAKES)
    assert acts("INSERT INTO u SELECT n FROM other") == [("hidden", Act.UNREAD)]
    assert acts("INSERT INTO u SELECT n FROM other", 7) == []
    assert acts("DO broken()") == [("broken", Act.UNREAD)]


def test_a_procedure_is_called_without_call_in_oracle_mode() -> None:
    for calls_bare in (False, True):
        known = bodies()
        known.add_routine("shop", "stored", Body(0, "shop", tokens("BEGIN makes; END"), calls_bare))
        made = "CREATE FUNCTION made_now() RETURN INT AS BEGIN shop.makes; RETURN 1; END"
        known.add_statement(tokens(made), "shop", 1, calls_bare=calls_bare)
        for call in ("DO stored()", "DO made_now()"):
            assert any(each.act is Act.MAKES for each in known.behind(tokens(call), "shop", 2)) is calls_bare


def test_a_table_that_the_connection_has_dropped_by_a_call_is_made_again() -> None:
    assert judged(*((sql, 1) for sql in ("DO makes()", "DO drops()") * 2)) == []


def test_the_definition_in_front_of_a_call_counts() -> None:
    made = "CREATE FUNCTION uses() RETURNS INT BEGIN DROP TEMPORARY TABLE IF EXISTS made; RETURN 1; END"
    assert judged(("DO makes()", 1), (made, 2), ("DO uses()", 3)) == []
    assert judged(("DO makes()", 1), ("DO uses()", 2), (made, 3)) == [("DO uses()", "DO makes()", True)]
    trigger = "CREATE DEFINER=`a`@`%` TRIGGER shop.tr AFTER INSERT ON u FOR EACH ROW DO drops()"
    assert judged((trigger, 1), ("INSERT INTO u VALUES (1)", 2)) == [("INSERT INTO u VALUES (1)", None, True)]


def test_the_routines_and_tables_to_look_for() -> None:
    assert bodies().concerned == {*ROUTINES, "triggering"} - {"calls_itself", "reads_a_column"}
