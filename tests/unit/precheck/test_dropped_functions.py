"""DROP FUNCTION without a database drops no function of a library of the target that the source may not have meant."""

from __future__ import annotations

from typing import Any

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext
from binlane.precheck.account.privileges import parse_grants
from binlane.precheck.situation.facts import Accounts, LoadableFunction
from binlane.sql.logged_statement import LoggedText
from tests.unit.precheck.situations import said, situation, target_of

_DROP = "DROP FUNCTION Lib_Crypt"
_MAKE = "CREATE FUNCTION lib_crypt RETURNS STRING SONAME 'lib.so'"


def _text(sql: str, database: str | None, seqno: int) -> LoggedText:
    item = Item(ItemKind.DDL, sql.encode(), context=SessionContext(database=database))
    text = LoggedText.of(seqno, LogPosition("binlog.000007", 4711), item, Flavor.MARIADB)
    assert text is not None
    return text


def _target(flavor: Flavor) -> Any:
    return target_of(
        flavor,
        grants=parse_grants(["GRANT ALL PRIVILEGES ON *.* TO `x`@`%`"]),
        accounts=Accounts(),
        loadable_functions={"lib_crypt": LoadableFunction(0, "lib.so", False)},
    )


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    ("statements", "database", "is_refused"),
    [
        ([_DROP], "app", True),
        (["DROP FUNCTION IF EXISTS `lib_crypt`"], "app", True),
        (["CREATE FUNCTION lib_crypt() RETURNS INT RETURN 1", _DROP], "app", True),
        ([_DROP, _MAKE], "app", True),
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
