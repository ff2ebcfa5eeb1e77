"""Grants on single routines are named, or it is said that nobody can name them."""

from __future__ import annotations

from typing import Any, cast

import pymysql
import pytest

from binlane.bootstrap.sessions import Session
from binlane.errors import TargetError
from binlane.model import Flavor
from binlane.restore.routine_grants import lost_grants

ROUTINES = [("PROCEDURE", "shop", "pay"), ("FUNCTION", "shop", "tax")]


class Answers:
    """A session that has these routines and rows of mysql.procs_priv."""

    flavor = Flavor.MARIADB

    def __init__(
        self, routines: list[tuple[str, ...]], grants: list[tuple[str, ...]] | BaseException, keeps: str = "0"
    ) -> None:
        self.routines, self.grants, self.keeps = routines, grants, keeps

    def texts(self, statement: str) -> list[tuple[str, ...]]:
        if "procs_priv" not in statement:
            return [(self.keeps,)] if "@@" in statement else self.routines * ("routines" in statement)
        if isinstance(self.grants, BaseException):
            raise self.grants
        return self.grants


def said(*given: Any) -> str:
    return lost_grants(cast(Session, Answers(*given)), ["shop"])


def test_each_grant_is_a_statement() -> None:
    rows = [
        ("shop", "pay", "PROCEDURE", "app", "10.%", "Execute,Alter Routine,Grant"),
        ("shop", "t`x", "FUNCTION", "role", "", "Grant"),
    ]
    text = said(ROUTINES, rows)
    assert text.startswith("2 grants on single routines: ")
    assert text.endswith(
        "GRANT EXECUTE, ALTER ROUTINE ON PROCEDURE `shop`.`pay` TO `app`@`10.%` WITH GRANT OPTION; "
        "GRANT USAGE ON FUNCTION `shop`.`t``x` TO `role` WITH GRANT OPTION"
    )
    many = said(ROUTINES, rows * 30)
    assert many.endswith("; GRANT USAGE ON FUNCTION `shop`.`t``x` TO `role` WITH GRANT OPTION and 10 more "
                         "(mysql.procs_priv)")  # fmt: skip


def test_a_statement_of_long_names_is_whole() -> None:
    long, option = "p" * 64, "Execute,Alter Routine,Grant"
    text = said(ROUTINES, [(long, "server password", "PROCEDURE", long, f"{long}.example.net", option)])
    assert text.endswith(
        f"ON PROCEDURE `{long}`.`server password` TO `{long}`@`{long}.example.net` WITH GRANT OPTION"
    ), "to be sent as it is"


def test_nothing_is_said_where_no_grant_goes() -> None:
    rows = [("shop", "pay", "PROCEDURE", "app", "%", "Execute")]
    assert said(ROUTINES, []) == ""
    assert said([], rows) == ""
    assert said(ROUTINES, rows, "1") == "", "automatic_sp_privileges = OFF: DROP takes none"
    assert said(ROUTINES, rows) != ""


def test_an_account_that_may_not_read_them_is_told_so() -> None:
    text = said(ROUTINES, pymysql.err.OperationalError(1142, "SELECT command denied"))
    assert "one of the 2 routines of shop alone" in text
    assert "GRANT SELECT ON mysql.procs_priv" in text
    with pytest.raises(TargetError):
        said(ROUTINES, pymysql.err.OperationalError(1053, "shutdown"))
