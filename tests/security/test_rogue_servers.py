"""A server, or what stands between, that answers what no MySQL or MariaDB server answers: one error, no traceback.

Attacker: a server that is none, or a proxy. Each statement of a command that has rows gets an answer of a wrong form
once, the forms in turn, behind the real server's: NULL, words, negative numbers, bytes that are no UTF-8, no row, a row
twice, only the first column. A command more is an attack more.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from binlane.answers import answered, unusable
from binlane.driver import connection as driver
from binlane.driver import pinned
from binlane.plan.routing import first_appearance
from binlane.servers import catalog
from binlane.servers.variables import with_number
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, ChannelOf, run_on
from tests.security.test_replaced_state import attacked

Rows = tuple[tuple[Any, ...], ...]
FORMS: Final[Mapping[str, Callable[[Rows], Rows]]] = {
    "NULL": lambda rows: tuple((None,) * len(row) for row in rows),
    "a word": lambda rows: tuple(("rogue",) * len(row) for row in rows),
    "a number": lambda rows: tuple((-7,) * len(row) for row in rows),
    "bytes": lambda rows: tuple((b"\xff\x00",) * len(row) for row in rows),
    "no row": lambda _: (),
    "rows twice": lambda rows: rows + rows,
    "one column": lambda rows: tuple(row[:1] for row in rows),
}
COMMANDS: Final = (
    ("status", CHANNEL),
    ("doctor", CHANNEL),
    ("run", CHANNEL),
    ("verify", CHANNEL, "--full"),
    ("bootstrap", CHANNEL, "--databases", "app", "--replace"),
)
_STATUS, _DOCTOR, _RUN, _VERIFY, _BOOTSTRAP = COMMANDS
SHORT: Final = (
    # `status` reads no source
    *((_STATUS, "target", "mariadb"), (_DOCTOR, "source", "mariadb"), (_BOOTSTRAP, "target", "mariadb")),
    *((_DOCTOR, "target", "mysql"), (_RUN, "source", "mysql")),
)
LONG: Final = (
    *((_DOCTOR, "target", "mariadb"), (_RUN, "source", "mariadb"), (_RUN, "target", "mariadb")),
    *((_VERIFY, "source", "mariadb"), (_VERIFY, "target", "mariadb"), (_BOOTSTRAP, "source", "mariadb")),
    *((_DOCTOR, "source", "mysql"), (_VERIFY, "source", "mysql")),
)
CASES: Final = tuple(
    pytest.param(
        *case,
        marks=(*([requires_mysql] if "mysql" in case else []), *([pytest.mark.trial] if case in LONG else [])),
        id="-".join((case[0][0], *case[1:])),
    )
    for case in (*SHORT, *LONG)
)


class Rogue:
    """Answers one of a command's statements in one form."""

    def __init__(self, port: int, patch: pytest.MonkeyPatch) -> None:
        self.statements = dict[str, None]()
        """Those with rows, in their order, without their values."""
        self.wrong = ("", "")
        sends = driver.Connection._query

        def query(connection: Any, sql: str | bytes, unbuffered: bool = False) -> int:
            affected, result = sends(connection, sql, unbuffered), connection._result
            if connection.port != port or unbuffered or result is None or not result.description:
                return affected
            statement = _without_values(sql)
            self.statements[statement] = None
            if statement != self.wrong[0]:
                return affected
            result.rows = FORMS[self.wrong[1]](tuple(result.rows or ()))
            if self.wrong[1] == "one column":
                result.description, result.fields = result.description[:1], result.fields[:1]
            result.affected_rows = len(result.rows)
            return len(result.rows)

        patch.setattr(driver.Connection, "_query", query)


@pytest.mark.parametrize(("command", "side", "family"), CASES)
def test_a_strange_answer_is_one_error(
    command: tuple[str, ...],
    side: str,
    family: str,
    channel_of: ChannelOf,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    channel = attacked(channel_of, family)
    numbers, forms = itertools.count(), itertools.cycle(FORMS)

    def change() -> None:
        run_on(channel.source, f"INSERT INTO app.t VALUES ({next(numbers)})")

    change()
    with monkeypatch.context() as patch:
        # what a login has learnt of an account is asked for again
        patch.setattr(pinned, "_unset", {})
        rogue = Rogue(getattr(channel, side).port, patch)
        channel.cli(*command)
        statements, traced = tuple(rogue.statements), list[tuple[str, str, str]]()
        for statement in statements:
            rogue.wrong = (statement, next(forms))
            pinned._unset.clear()
            change()
            capsys.readouterr()
            channel.cli(*command)
            said = "".join(capsys.readouterr())
            if "Traceback" in said:
                traced.append((*rogue.wrong, said[-600:]))
    assert traced == []
    assert len(statements) > 5
    # nothing was believed: the channel goes on, and has each row once
    if command[0] != "bootstrap":
        assert channel.cli("run", CHANNEL) == 0
        assert channel.target.query("SELECT COUNT(*) FROM app.t") == [(next(numbers),)]


def test_the_error_names_server_statement_and_what_was_found() -> None:
    answered("binlane@db1:3306", "SELECT  VERSION()")
    with pytest.raises(ValueError, match="no version") as raised:
        with_number("rogue")
    error = unusable(raised.value, "shop_source (binlane@db1:3306)")
    assert error is not None
    assert str(error).startswith("shop_source (binlane@db1:3306): expected an answer of a MySQL or MariaDB server")
    assert "(ValueError: 'rogue' is no version of a MySQL or MariaDB server, in binlane.servers.variables:" in str(
        error
    )
    assert "'SELECT VERSION()'" in str(error)


def test_the_error_has_the_lines_through_which_it_came() -> None:
    """It may be a defect of binlane that only looks like an answer: the message alone must lead there."""
    answered("binlane@db1:3306", "SELECT 1")
    with pytest.raises(AttributeError) as raised:
        catalog._grouped([None])  # type: ignore[list-item]
    assert re.search(
        r", in binlane\.servers\.catalog:\d+ from binlane\.servers\.catalog:\d+\)", str(unusable(raised.value))
    )


def test_a_defect_of_what_reads_no_server_is_no_answer_s() -> None:
    answered("binlane@db1:3306", "SELECT 1")
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int("rogue")
    assert unusable(raised.value) is None
    with pytest.raises(TypeError) as raised_by_plan:
        first_appearance(None)  # type: ignore[arg-type]
    assert unusable(raised_by_plan.value) is None


def _without_values(sql: str | bytes) -> str:
    text = sql if isinstance(sql, str) else bytes(sql[:300]).decode("latin-1")
    return re.sub(r"\s+", " ", re.sub(r"'[^']*'|\d+", "?", text))[:160]
