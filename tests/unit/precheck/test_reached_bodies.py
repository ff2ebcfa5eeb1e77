"""What must not run in a lane is found by whatever way a statement reaches it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import pytest

from binlane.model import BlockHeader, Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.situation.situation import Needs
from binlane.schema.programs import Program
from binlane.sql.logged_statement import LoggedText
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
    flavor: Flavor = Flavor.MARIADB,
) -> bool:
    """Whether check `unsafe-bodies` refuses a statement for SET SESSION, in a window of these texts."""
    item = Item(ItemKind.STATEMENT, statement, context=SessionContext(database="a", charset_client=45, sql_mode=0))
    header = BlockHeader(9, 9, 1, LogPosition("log", 9), "", 0.0)

    def transactions_with(pattern: re.Pattern[bytes]) -> Iterator[tuple[LaneStatement, BlockHeader]]:
        if pattern.search(statement) is not None:
            yield LaneStatement(0, header, item), header

    window = situation(
        target_of(flavor),
        replace(PLAN, flavor=flavor),
        schema(flavor=flavor),
        needs=Needs(statements=True),
        texts=texts,
    )
    vars(window).update(
        stored_triggers=((), tuple(each for each in programs if each.kind == "trigger")),
        stored_programs=((), tuple(each for each in programs if each.kind != "trigger")),
        program_names=frozenset(each.key.table for each in programs if each.kind != "trigger"),
        transactions_with=transactions_with,
    )
    texts_of = said(window, "unsafe-bodies")
    assert all("found SET SESSION sql_select_limit" in each for each in texts_of), texts_of
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
