"""DROP FUNCTION without a database drops no function of a library of the target that the source may not have meant."""

from __future__ import annotations

from typing import Any

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.account.privileges import parse_grants
from binlane.precheck.situation.facts import Accounts, LoadableFunction
from binlane.schema.programs import Program
from binlane.sql.logged_statement import LoggedText
from tests.unit.precheck.situations import said, situation, target_of

_DROP = "DROP FUNCTION Lib_Crypt"
_MAKE = "CREATE FUNCTION lib_crypt RETURNS STRING SONAME 'lib.so'"


def _text(sql: str, database: str | None, seqno: int) -> LoggedText:
    item = Item(ItemKind.DDL, sql.encode(), context=SessionContext(database=database))
    text = LoggedText.of(seqno, LogPosition("binlog.000007", 4711), item, Flavor.MARIADB)
    assert text is not None
    return text


def _target(flavor: Flavor, *programs: Program) -> Any:
    return target_of(
        flavor,
        grants=parse_grants(["GRANT ALL PRIVILEGES ON *.* TO `x`@`%`"]),
        accounts=Accounts(),
        loadable_functions={"lib_crypt": LoadableFunction(0, "lib.so", False)},
        programs=programs,
    )


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    ("statements", "database", "is_refused"),
    [
        # the log has it because the source has dropped one
        ([_DROP], "app", False),
        (["DROP FUNCTION IF EXISTS `lib_crypt`"], "app", True),
        (["CREATE FUNCTION lib_crypt() RETURNS INT RETURN 1", _DROP], "app", True),
        (["DROP FUNCTION IF EXISTS lib_crypt", _MAKE], "app", True),
        (["CREATE FUNCTION other.lib_crypt() RETURNS INT RETURN 1", _DROP], "app", False),
        # in no database a stored one is meant by nobody
        ([_DROP], None, False),
        ([_MAKE, _DROP], "app", False),
        (["DROP FUNCTION app.lib_crypt"], "app", False),
        (["DROP FUNCTION other"], "app", False),
    ],
)
def test_a_function_of_a_library_is_not_dropped_in_place_of_a_stored_one(
    statements: list[str], database: str | None, is_refused: bool, flavor: Flavor
) -> None:
    texts = [_text(sql, database, 5 + at) for at, sql in enumerate(statements)]
    found = said(situation(_target(flavor), texts=texts), "dropped-functions")
    assert bool(found) is is_refused
    assert all("of a library, which would be dropped in place of app." in each for each in found)


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    ("database", "kind", "is_refused"),
    [("app", "function", True), ("app", "procedure", False), ("other", "function", False)],
)
def test_the_source_may_have_dropped_the_stored_function_that_the_target_has(
    flavor: Flavor, database: str, kind: str, is_refused: bool
) -> None:
    there = Program(TableKey(database, "LIB_crypt"), kind, "1", {})
    found = said(situation(_target(flavor, there), texts=[_text(_DROP, "app", 5)]), "dropped-functions")
    assert bool(found) is is_refused
