"""Functions of a library in the text of a view, by what the target's parser says of their names."""

from __future__ import annotations

from typing import cast

import pymysql
import pytest

from binlane.bootstrap.library_calls import check_library_calls
from binlane.bootstrap.sessions import Session
from binlane.errors import TargetError
from binlane.model import Flavor, SchemaObject
from binlane.servers.function_answers import NOT_OWN
from binlane.sql.charset import definition_context

VIEW = SchemaObject("view", "app", "v")
_HEAD = b"CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW `v` AS "


class Target:
    """A session of a target that has ``sys_exec`` from a library, and no stored function in a neutral database."""

    def __init__(self, flavor: Flavor, code: int = 1123) -> None:
        self.flavor, self.code = flavor, code
        self.said = list[str]()

    def texts(self, query: str) -> list[tuple[str, ...]]:
        assert query == "SELECT DATABASE()"
        return [("it's",)]

    def execute(self, statement: str) -> int:
        self.said.append(statement)
        if statement.startswith("PREPARE"):
            call = bytes.fromhex(self.said[-2].rpartition("0x")[2]).decode()
            unknown = 1630 if call == "DO `against`()" else 1305
            raise pymysql.err.OperationalError(self.code if call == "DO `sys_exec`()" else unknown, call)
        return 0


def check(query: bytes, flavor: Flavor, modes: str = "", client: str = "utf8mb4", code: int = 1123) -> Target:
    target = Target(flavor, code)
    check_library_calls(cast(Session, target), VIEW, _HEAD + query, definition_context(modes, client))
    return target


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    ("query", "modes", "client"),
    [
        (b"SELECT ROUND(1.5, sys_exec('id > /tmp/x')) AS `x`", "", "utf8mb4"),
        (b"SELECT `Sys_Exec` ('id') AS `x` FROM `t` WHERE ((((((((1))))))))", "", "utf8mb4"),
        ("SELECT sýs_exec('id') AS `x`".encode(), "", "utf8mb4"),
        ("SELECT sýs_exec('id') AS `x`".encode("latin1"), "", "latin1"),
        (b"SELECT \"sys_exec\"('id') AS x", "ANSI_QUOTES", "utf8mb4"),
        (b"SELECT WEIGHT_STRING(a LEVEL 1), sys_exec('id') AS `x`", "", "utf8mb4"),
    ],
)
def test_a_view_that_calls_one_is_refused(query: bytes, modes: str, client: str, flavor: Flavor) -> None:
    with pytest.raises(TargetError, match=r"^view app\.v: expected calls .* found sys_exec\(\), which the target has"):
        check(query, flavor, modes, client)


@pytest.mark.parametrize("flavor", Flavor)
def test_stored_functions_and_the_server_s_own_are_none(flavor: Flavor) -> None:
    query = (
        b"SELECT `f`(1), `app`.`sys_exec`(2), 'sys_exec'('x'), t.sys_exec, cast(1 as decimal(10,2)),"
        b" (match s against ('x')) FROM t"
    )
    said = check(query, flavor).said
    asked = {bytes.fromhex(each.rpartition("0x")[2]).decode() for each in said if "0x" in each}
    assert "DO `f`()" in asked
    assert "DO `sys_exec`()" not in asked
    assert (said[0], said[-1]) == ("USE information_schema", "USE `it's`")
    assert check(b"SELECT COUNT(*), MAX(a), UUID() FROM t", flavor).said == []


def test_a_text_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(TargetError, match=r"^view app\.v: expected a view whose text can be split into words, found a"):
        check(b"SELECT sys_exec('id') /* x", Flavor.MARIADB)


def test_no_answer_of_the_parser_is_no_consent() -> None:
    with pytest.raises(pymysql.err.OperationalError):
        check(b"SELECT sys_exec('id')", Flavor.MARIADB, code=1461)


@pytest.mark.parametrize("code", sorted(NOT_OWN))
def test_a_name_that_the_account_may_call_nowhere_is_a_stored_function_s(code: int) -> None:
    """With ``binlane grants`` of a filtered channel the answer is 1044."""
    assert "DO `sys_exec`()" in {
        bytes.fromhex(each.rpartition("0x")[2]).decode()
        for each in check(b"SELECT sys_exec(1) AS x", Flavor.MYSQL, code=code).said
        if "0x" in each
    }
