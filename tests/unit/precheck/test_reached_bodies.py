"""What must not run in a lane is found by whatever way a statement reaches it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import pytest

from binlane.model import BlockHeader, Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.bodies import body_parts
from binlane.precheck.situation.situation import Needs
from binlane.precheck.statements.account_programs import _of_text
from binlane.precheck.statements.window_statements import ReachingStatement
from binlane.schema.programs import Program
from binlane.sql.logged_statement import LoggedText
from binlane.sql.programs.reach import Reach
from binlane.sql.requirements import CASCADE_TRIGGERS, Requirement
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import PLAN, said, schema, situation, target_of

SET: Final = "SET SESSION sql_select_limit = 1"
ORACLE: Final = 0x200 | 0xE00E
STATEMENT: Final = b"INSERT INTO a.l VALUES (a.f())"


def made(sql: str, seqno: int = 1, sql_mode: int = 0) -> LoggedText:
    context = SessionContext(database="a", charset_client=45, sql_mode=sql_mode)
    found = LoggedText.of(
        seqno, LogPosition("log", seqno), Item(ItemKind.DDL, sql.encode(), context=context), Flavor.MARIADB
    )
    assert found is not None
    return found


def found_in(
    statement: bytes,
    *programs: Program,
    texts: Sequence[LoggedText] = (),
    cascades: Sequence[tuple[TableKey, TableKey]] = (),
    what: str = "SET SESSION sql_select_limit",
) -> bool:
    """Whether check `unsafe-bodies` refuses a statement for ``what``, in a window of these texts."""
    item = Item(ItemKind.STATEMENT, statement, context=SessionContext(database="a", charset_client=45, sql_mode=0))
    header = BlockHeader(9, 9, 1, LogPosition("log", 9), "", 0.0)

    def transactions_with(pattern: re.Pattern[bytes]) -> Iterator[tuple[LaneStatement, BlockHeader]]:
        if pattern.search(statement) is not None:
            yield LaneStatement(0, header, item), header

    flavor = Flavor.MARIADB
    needed = {Requirement(CASCADE_TRIGGERS, "the session"): 9} if cascades else {}
    plan, tables = (
        replace(PLAN, flavor=flavor, requirements=needed),
        schema(flavor=flavor, references=frozenset(cascades)),
    )
    window = situation(target_of(flavor), plan, tables, needs=Needs(statements=True), texts=texts)
    vars(window).update(
        stored_triggers=((), tuple(each for each in programs if each.kind == "trigger")),
        stored_programs=((), tuple(each for each in programs if each.kind != "trigger")),
        program_names=frozenset(each.key.table for each in programs if each.kind != "trigger"),
        transactions_with=transactions_with,
    )
    texts_of = said(window, "unsafe-bodies")
    assert all(f"found {what}" in each for each in texts_of), texts_of
    return bool(texts_of)


P: Final = TableKey("a", "p")
PROCEDURES: Final = {
    "of the window": ((), (made(f"CREATE DEFINER=`u`@`%` PROCEDURE `p` AS BEGIN {SET}; END", 1, ORACLE),)),
    "of before": ((Program(P, "procedure", f"AS BEGIN {SET}; END", {"sql_mode": "ORACLE,ANSI_QUOTES"}),), ()),
    "of a package": ((Program(P, "package body", f"AS PROCEDURE q AS BEGIN {SET}; END; END"),), ()),
}


@pytest.mark.parametrize("call", ["CALL p()", "p", "a.p", "p.q", "a.p.q"])
@pytest.mark.parametrize(("programs", "texts"), PROCEDURES.values(), ids=PROCEDURES)
def test_a_routine_of_the_window_calls_without_call_in_oracle_mode(
    programs: tuple[Program, ...], texts: tuple[LoggedText, ...], call: str
) -> None:
    function = f"CREATE DEFINER=`u`@`%` FUNCTION `f`() RETURN INT AS BEGIN {call}; RETURN 1; END"
    assert found_in(STATEMENT, *programs, texts=(*texts, made(function, 2, ORACLE)))


BARE: Final = {"ROWNUM": "ROWNUM()", "SYSDATE": "SYSDATE()", "s.currval": "LASTVAL()", "s.nextval": "NEXTVAL()"}


@pytest.mark.parametrize(("bare", "what"), BARE.items())
def test_what_oracle_calls_without_parentheses_gives_another_value(bare: str, what: str) -> None:
    body = f"AS BEGIN UPDATE a.t SET n = {bare}; RETURN 1; END"
    stored = [
        Program(TableKey("a", "f"), "function", body, {"sql_mode": mode})
        for mode in ("ANSI_QUOTES,ORACLE", "ANSI_QUOTES")
    ]
    assert [found_in(STATEMENT, each, what=what) for each in stored] == [True, False]
    text = made(f"CREATE FUNCTION `f`() RETURN INT {body}", 2, ORACLE)
    assert found_in(STATEMENT, texts=(text,), what=what)
    assert [each.found for each in _of_text(text, Flavor.MARIADB)] == [what]


def trigger(table: str, body: str, time: str) -> Program:
    return Program(TableKey("a", table), "trigger", body, name=f"{table}_{time}", time=time)


def view(query: str) -> Program:
    return Program(TableKey("a", "v"), "view", query)


def function(body: str) -> Program:
    return Program(TableKey("a", "f"), "function", f"BEGIN {body}; RETURN 1; END")


UPDATES: Final = "UPDATE a.t SET n = n + 1"
WAYS: Final = {
    "its own verb": (b"UPDATE t SET n = 2", (), ()),
    "a function": (STATEMENT, (function(UPDATES),), ()),
    "a function of the statement's table": (b"INSERT INTO a.t VALUES (a.f())", (function(UPDATES),), ()),
    "a function that is selected": (b"SELECT a.f()", (function(UPDATES),), ()),
    "a trigger": (b"INSERT INTO a.x VALUES (1)", (trigger("x", UPDATES, "AFTER INSERT"),), ()),
    "a trigger of a table that is the same folded": (
        b"INSERT INTO a.T VALUES (1)",
        (trigger("T", UPDATES, "AFTER INSERT"),),
        (),
    ),
    "a trigger of the same table": (
        b"INSERT INTO a.t VALUES (1)",
        (trigger("t", "DO a.f()", "AFTER INSERT"), function("DELETE FROM a.p")),
        ((TableKey("a", "t"), TableKey("a", "p")),),
    ),
    "a view": (b"UPDATE v SET n = 2", (view("select `a`.`t`.`n` from `a`.`t`"),), ()),
    "a function of a view": (
        b"INSERT INTO x SELECT n FROM v",
        (view("select `a`.`f`() AS `n`"), function(UPDATES)),
        (),
    ),
    "a view of documents": (
        b"INSERT INTO v VALUES ('{}')",
        (view("select json_duality_object('n':`a`.`t`.`n`) from `a`.`t`"),),
        (),
    ),
    "a cascade": (b"DELETE FROM a.p", (), ((TableKey("a", "t"), TableKey("a", "p")),)),
    "a cascade within the table": (b"DELETE FROM a.t", (), ((TableKey("a", "t"), TableKey("a", "t")),)),
    "a function of a function that only reads": (
        b"INSERT INTO x SELECT a.g()",
        (Program(TableKey("a", "g"), "function", "RETURN a.f()"), function(UPDATES)),
        (),
    ),
    "a view behind a function": (
        STATEMENT,
        (view("select `a`.`t`.`n` from `a`.`t`"), function("UPDATE a.v SET n = n + 1")),
        (),
    ),
    "a text that may run any other": (STATEMENT, (function("EXECUTE s; DO (TABLE a.t)"),), ()),
    "a key for a new row": (STATEMENT, (function("INSERT a.t VALUES (1) ON DUPLICATE KEY UPDATE n = 2"),), ()),
    "what nobody can read": (STATEMENT, (Program(TableKey("a", "f"), "function", None),), ()),
}


@pytest.mark.parametrize(("statement", "programs", "cascades"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("is_made", [False, True])
def test_a_trigger_is_found_by_each_way_that_fires_it(
    statement: bytes,
    programs: tuple[Program, ...],
    cascades: tuple[tuple[TableKey, TableKey], ...],
    *,
    is_made: bool,
) -> None:
    evil = (trigger("t", SET, "BEFORE UPDATE"),)
    texts = [made(f"CREATE TRIGGER a.insert BEFORE UPDATE ON a.t FOR EACH ROW {SET}")] if is_made else ()
    assert found_in(statement, *programs, *(() if is_made else evil), texts=texts, cascades=cascades)


@pytest.mark.parametrize(
    "statement",
    [b"INSERT INTO a.t VALUES (1)", b"INSERT INTO v VALUES (1)", b"DELETE FROM x WHERE n IN (SELECT n FROM v)"],
)
def test_a_trigger_of_another_event_does_not_fire(statement: bytes) -> None:
    evil, reads = trigger("t", f"BEGIN {SET}; SET @x = a.f(); END", "BEFORE UPDATE"), function("SET @x = 1")
    assert not found_in(statement, evil, reads, view("select `a`.`t`.`n` from `a`.`t`"))
    moved = made("RENAME TABLE a.t TO a.u, a.v TO a.w", 2)
    assert not found_in(statement, evil, reads, view("select `a`.`t`.`n` from `a`.`t`"), texts=[moved])


def test_a_reader_of_a_renamed_table_hides_no_trigger_of_its_other_name() -> None:
    evil, writes = trigger("t", SET, "BEFORE UPDATE"), function("UPDATE a.t2 SET n = 1")
    reads = trigger("t2", "SET NEW.n = (SELECT MAX(n) FROM a.t)", "BEFORE INSERT")
    assert found_in(STATEMENT, evil, writes, reads, texts=[made("RENAME TABLE a.t TO a.t2", 2)])


READS: Final = function("SELECT SUM(n) INTO @x FROM a.t")
APART: Final = {
    "a function that reads": (STATEMENT, (READS,)),
    "a function that reads a view": (STATEMENT, (view("select `a`.`t`.`n` from `a`.`t`"), function("DO (TABLE a.v)"))),
    "a function that is selected": (b"SELECT a.f()", (READS,)),
    "a trigger that reads": (
        b"INSERT INTO a.x VALUES (1)",
        (trigger("x", "SET NEW.n = (SELECT MAX(n) FROM a.t)", "BEFORE INSERT"),),
    ),
    "a trigger that inserts": (b"DELETE FROM a.x", (trigger("x", "INSERT a.t VALUES (1)", "AFTER DELETE"),)),
    "a trigger of what is read": (STATEMENT, (function("DO (TABLE a.x)"), trigger("x", UPDATES, "AFTER INSERT"))),
    "sums of the table": (
        b"INSERT INTO a.t VALUES (1)",
        (
            trigger("t", "UPDATE a.x SET n = 0 WHERE k = NEW.k", "AFTER INSERT"),
            trigger("x", "SET NEW.n = (SELECT SUM(n) FROM a.t)", "BEFORE UPDATE"),
        ),
    ),
    "sums of the table by a function": (
        b"INSERT INTO a.t VALUES (1)",
        (
            trigger("t", "UPDATE a.x SET n = 0 WHERE k = NEW.k", "AFTER INSERT"),
            trigger("x", "SET NEW.n = a.f()", "BEFORE UPDATE"),
            READS,
        ),
    ),
}


@pytest.mark.parametrize(("statement", "programs"), APART.values(), ids=APART)
def test_what_reads_a_table_or_writes_it_otherwise_fires_no_trigger(
    statement: bytes, programs: tuple[Program, ...]
) -> None:
    evil = trigger("t", SET, "BEFORE UPDATE")
    assert not found_in(statement, evil, *programs)


@pytest.mark.parametrize("time", ["BEFORE UPDATE", "BEFORE INSERT,UPDATE", "AFTER UPDATE, INSERT", "AFTER MERGE", ""])
def test_a_trigger_fires_for_each_of_its_events(time: str) -> None:
    assert found_in(b"UPDATE t SET n = 2", trigger("t", SET, time))


@pytest.mark.parametrize(
    ("events", "statement", "is_found"),
    [
        ("BEFORE INSERT OR UPDATE", b"UPDATE t SET n = 2", True),
        ("BEFORE INSERT OR UPDATE", b"DELETE FROM t", False),
        ("AFTER DELETE", b"REPLACE t VALUES (1)", True),
        ("AFTER DELETE", b"INSERT t VALUES (1)", False),
        ("AFTER INSERT", b"DELETE FROM t FOR PORTION OF p FROM 1 TO 2", True),
    ],
)
@pytest.mark.parametrize("name", ["tr", "a.update", "`on`", "IF NOT EXISTS before"])
def test_the_events_of_a_trigger_of_the_window_stand_behind_its_name(
    name: str, events: str, statement: bytes, *, is_found: bool
) -> None:
    text = made(f"CREATE DEFINER=trigger@h TRIGGER {name} {events} ON t FOR EACH ROW {SET}")
    assert found_in(statement, texts=[text]) is is_found


def test_a_statement_asks_for_the_bodies_that_it_reaches_and_for_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server has tens of thousands of triggers."""
    asked, running = list[TableKey](), body_parts.running

    def counted(reach: Reach) -> Callable[..., bool]:
        runs = running(reach)

        def counting(statement: ReachingStatement, body: body_parts.Body) -> bool:
            asked.append(body.difference.key)
            return runs(statement, body)

        return counting

    monkeypatch.setattr(body_parts, "running", counted)
    others = (trigger(f"other_{number}", SET, "BEFORE UPDATE") for number in range(99))
    assert found_in(b"UPDATE t SET n = 2", trigger("t", SET, "BEFORE UPDATE"), *others)
    assert asked == [TableKey("a", "t")]
