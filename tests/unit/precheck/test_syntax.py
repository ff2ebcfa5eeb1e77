"""How the answers of a server's parser are read; what the servers answer is in integration/precheck/test_syntax.py."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

from binlane.model import Flavor
from binlane.precheck.situation.syntax import SyntaxParser

if TYPE_CHECKING:
    from collections.abc import Iterator

NEAR = "You have an error in your SQL syntax; check the manual to use near '{}' at line 1"


class Server:
    """A connection whose every question ends with this error; None: with none."""

    def __init__(self, error: pymysql.err.MySQLError | None) -> None:
        self.error, self.asked = error, list[bytes]()

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        yield SimpleNamespace(execute=lambda _: None)

    def _execute_command(self, _: int, text: bytes) -> None:
        self.asked.append(text)
        if self.error is not None:
            raise self.error

    def _read_packet(self) -> None:
        pass


@pytest.mark.parametrize(
    ("error", "is_statement"),
    [
        (pymysql.err.ProgrammingError(1064, NEAR.format(") binlane_end")), True),
        (pymysql.err.ProgrammingError(1064, NEAR.format("x\n) binlane_end")), False),
        (pymysql.err.ProgrammingError(1103, "Incorrect table name 'a '"), False),
        (pymysql.err.OperationalError(1142, "command denied"), True),
        (None, True),
    ],
)
def test_only_an_error_in_front_of_the_end_says_that_a_text_is_none(
    error: pymysql.err.MySQLError | None, is_statement: bool
) -> None:
    assert SyntaxParser(Server(error), Flavor.MYSQL, 1000).takes(b"UPDATE t SET n = 1", "gbk", 0) is is_statement


def test_each_question_ends_with_what_no_grammar_takes() -> None:
    server = Server(pymysql.err.ProgrammingError(1064, NEAR.format("x")))
    SyntaxParser(server, Flavor.MARIADB, 1000).takes(b"x -- y", "gbk", 4)
    assert {*server.asked} == {b"x -- y\n) binlane_end"}


def test_a_lost_connection_is_no_answer() -> None:
    server = Server(pymysql.err.OperationalError(2013, "Lost connection"))
    with pytest.raises(pymysql.err.OperationalError):
        SyntaxParser(server, Flavor.MYSQL, 1000).takes(b"x", "gbk", 0)


def test_a_text_that_is_too_long_for_the_server_may_be_a_statement_and_is_not_sent() -> None:
    server = Server(None)
    assert SyntaxParser(server, Flavor.MYSQL, 10).takes(b"x" * 11, "gbk", 0)
    assert server.asked == []
