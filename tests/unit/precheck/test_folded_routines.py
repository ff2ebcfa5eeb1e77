"""Routines that a window makes, or that others own, are found by each spelling that servers take for their names."""

from __future__ import annotations

import pytest

from binlane.precheck.situation.facts import Accounts, _objects
from binlane.precheck.situation.parser import _made, _verdict
from binlane.precheck.target.definers import _is_owned
from binlane.sql.requirements import CHANGED, Requirement


@pytest.mark.parametrize("called", ["evil", "\u00c9VIL", "\u00e9vil"])
@pytest.mark.parametrize("named", ["\u00e9vil", "Evil"])
def test_a_routine_that_the_window_makes_is_missing_for_no_spelling_of_it(named: str, called: str) -> None:
    [made] = _made(f"CREATE FUNCTION `{named}`() RETURNS INT RETURN 1".encode())
    verdict = _verdict(1305, f"FUNCTION app.{called} does not exist")
    assert verdict is not None
    assert verdict.routine == made


@pytest.mark.parametrize(("altered", "is_owned"), [("\u00c9VIL", True), ("evil", True), ("good", False)])
def test_an_object_of_another_account_is_that_in_any_spelling(altered: str, is_owned: bool) -> None:
    there = Accounts(owners=_objects([("FUNCTION", "app", "\u00e9vil", "root@%")]))
    assert _is_owned(Requirement(CHANGED, f"function app.{altered}"), there) is is_owned
