"""Patterns over the bytes of statements choose those that a check reads: none is passed over for its comments."""

from __future__ import annotations

import re

import pytest

from binlane.apply.session.context import needs_no_database
from binlane.model import Flavor, SessionContext
from binlane.precheck.bodies.row_order import _FELT
from binlane.precheck.statements.default_databases import _MAY_NEED

CONTEXT = SessionContext(database="a", charset_client=45, sql_mode=0)


@pytest.mark.parametrize(
    ("pattern", "statement"),
    [
        (_MAY_NEED, b"INSERT INTO b.t VALUES (DATABASE/* x */())"),
        (_MAY_NEED, b"INSERT INTO b.t VALUES (schema -- x\n ())"),
        (_FELT, b"UPDATE b.t /* = */, b.u SET t.n = 1"),
        (_FELT, b"UPDATE b.t -- a = b\n , b.u SET t.n = 1"),
        (_FELT, b"UPDATE b.t # a = b\n , b.u SET t.n = 1"),
    ],
)
def test_a_comment_hides_no_statement(pattern: re.Pattern[bytes], statement: bytes) -> None:
    assert pattern.search(statement) is not None


def test_an_update_of_one_table_is_not_read_for_the_order_of_its_rows() -> None:
    assert _FELT.search(b"UPDATE `b`.`t` SET n = 1, m = '-- ,' WHERE id = 1 /* x, y */") is None


@pytest.mark.parametrize(
    ("statement", "needs_none"),
    [
        (b"INSERT INTO b.t VALUES (DATABASE())", False),
        (b"INSERT INTO b.t VALUES (DATABASE/* x */())", False),
        (b"INSERT INTO b.t VALUES (SCHEMA -- x\n ( ))", False),
        (b"INSERT INTO b.t VALUES ('DATABASE()')", True),
        (b"INSERT INTO b.t (`database`) VALUES (1)", True),
    ],
)
def test_a_statement_with_database_runs_in_no_other_one(statement: bytes, *, needs_none: bool) -> None:
    assert needs_no_database(CONTEXT, statement, Flavor.MARIADB) is needs_none
