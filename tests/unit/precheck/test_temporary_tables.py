"""The check ``temporary-tables``: tables that a routine leaves to another transaction."""

from __future__ import annotations

import pytest

from binlane.model import Barrier, Flavor
from binlane.precheck.checks import CHECKS, run_checks
from binlane.precheck.situation.situation import Situation
from tests.unit.precheck.situations import applying
from tests.unit.precheck.test_checks import plan, with_calls


@pytest.mark.parametrize(
    ("of", "seqnos"),
    [
        pytest.param(with_calls("SELECT makes()", "SELECT drops()", blocks=(5, 5)), [], id="in one block"),
        pytest.param(
            with_calls(
                "SELECT makes()", "SELECT drops()", blocks=(5, 5), channel=applying(allow_nontransactional=True)
            ),
            [6],
            id="in one block that may be applied transaction by transaction",
        ),
        pytest.param(
            with_calls(
                *("SELECT makes()", "SELECT drops()"),
                plan=plan(barriers=(Barrier(5, 6, 1, (0, 1), {}, together=True),)),
            ),
            [],
            id="in one stretch of open temporary tables",
        ),
        pytest.param(
            with_calls("SELECT makes()", "SELECT drops()", plan=plan(flavor=Flavor.MARIADB)),
            [],
            id="of MariaDB's log, where the lane stops",
        ),
        pytest.param(
            with_calls("SELECT missing()", plan=plan(flavor=Flavor.MARIADB)), [5], id="in doubt in MariaDB's log"
        ),
        pytest.param(with_calls("SELECT missing()", "SELECT missing()"), [5, 6], id="what it holds is in doubt"),
        pytest.param(with_calls("SELECT unread()", "SELECT unread()"), [5], id="what it does is not seen"),
        pytest.param(
            with_calls("SELECT unread()", channel=applying(allow_unsafe=True)), [], id="not seen, and that is allowed"
        ),
        pytest.param(
            with_calls("SELECT missing()", "SELECT missing()", channel=applying(allow_unsafe=True)),
            [],
            id="what it holds is in doubt, and that is allowed",
        ),
        pytest.param(
            with_calls("SELECT makes()", "SELECT drops()", channel=applying(allow_unsafe=True)),
            [6],
            id="that it is not there is never allowed",
        ),
        pytest.param(with_calls("CREATE FUNCTION f() RETURNS INT RETURN drops()"), [], id="a definition calls nothing"),
        pytest.param(with_calls("CREATE TEMPORARY TABLE made (a INT)", "SELECT drops()"), [], id="the plan follows it"),
    ],
)
def test_temporary_tables_that_routines_leave_to_another_transaction(of: Situation, seqnos: list[int]) -> None:
    assert [one.seqno for one in run_checks(of, {"temporary-tables": CHECKS["temporary-tables"]})] == seqnos
