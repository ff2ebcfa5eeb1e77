"""Routines that a window makes, or that others own, are found by each spelling that servers take for their names."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.precheck.situation.facts import Accounts, _objects
from binlane.precheck.situation.parser import _made, _verdict
from binlane.precheck.target.definers import _is_owned
from binlane.sql.charset import definition_context, tokens_in
from binlane.sql.requirements import CHANGED, Requirement


@pytest.mark.parametrize("called", ["evil", "\u00c9VIL", "\u00e9vil"])
@pytest.mark.parametrize("named", ["\u00e9vil", "Evil"])
def test_a_routine_that_the_window_makes_is_missing_for_no_spelling_of_it(named: str, called: str) -> None:
    for head in ("FUNCTION", "FUNCTION IF NOT EXISTS", "FUNCTION app .", "FUNCTION IF NOT EXISTS `app`."):
        made = _of(f"CREATE {head} `{named}`() RETURNS INT RETURN 1")
        verdict = _verdict(1305, f"FUNCTION app.{called} does not exist")
        assert verdict is not None
        assert [verdict.routine] == made


def test_a_package_makes_several_and_other_statements_none() -> None:
    assert _of("CREATE PACKAGE BODY app.p AS FUNCTION f RETURN INT AS BEGIN RETURN 1; END; PROCEDURE `Q` AS") == [
        "f",
        "q",
    ]
    assert _of("DROP FUNCTION f") == []
    assert _of("CREATE FUNCTION") == []


def _of(statement: str) -> list[str]:
    return [*_made(tokens_in(statement.encode(), definition_context(""), Flavor.MARIADB))]


@pytest.mark.parametrize(("altered", "is_owned"), [("\u00c9VIL", True), ("evil", True), ("good", False)])
def test_an_object_of_another_account_is_that_in_any_spelling(altered: str, is_owned: bool) -> None:
    there = Accounts(owners=_objects([("FUNCTION", "app", "\u00e9vil", "root@%")]))
    assert _is_owned(Requirement(CHANGED, f"function app.{altered}"), there) is is_owned
