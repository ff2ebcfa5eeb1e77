"""What ``run_ddl`` leaves behind an error: whoever judges it asks in a session of binlane's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

import pymysql
import pytest

from binlane.apply.ddl import run
from binlane.model import Flavor, Item, ItemKind


@pytest.mark.parametrize(
    ("code", "is_left"),
    [
        (1026, True),
        (3, True),
        # the connection is lost, and whatever is sent there would hide why
        (2013, False),
    ],
)
def test_behind_an_error_of_writing_the_log_the_statement_s_session_is_left(
    code: int, is_left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = list[str]()

    def fail(*_: Any) -> NoReturn:
        done.append("run")
        raise pymysql.err.OperationalError(code, "said")

    monkeypatch.setattr(run, "_run_once", fail)
    for name in ("with_condition", "with_database"):
        monkeypatch.setattr(run, name, lambda _, item: item)
    session: Any = SimpleNamespace(flavor=Flavor.MYSQL, execute=lambda _: None)
    context = SimpleNamespace(leave=lambda: done.append("left"))
    writer: Any = SimpleNamespace(guard=None, context=context, forget_tables=lambda: done.append("forgot"))
    place: Any = None
    with pytest.raises(pymysql.err.OperationalError) as raised:
        run.run_ddl(session, writer, Item(ItemKind.DDL, b"ALTER TABLE t FORCE"), place, 1)
    assert raised.value.args[0] == code
    assert done == ["run", *(["left"] if is_left else []), "forgot"]


def test_a_connection_that_is_lost_behind_such_an_error_does_not_hide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(code: int) -> NoReturn:
        raise pymysql.err.OperationalError(code, "said")

    monkeypatch.setattr(run, "_run_once", lambda *_: fail(1026))
    for name in ("with_condition", "with_database"):
        monkeypatch.setattr(run, name, lambda _, item: item)
    session: Any = SimpleNamespace(flavor=Flavor.MYSQL, execute=lambda _: None)
    context = SimpleNamespace(leave=lambda: fail(2013))
    writer: Any = SimpleNamespace(guard=None, context=context, forget_tables=lambda: None)
    place: Any = None
    with pytest.raises(pymysql.err.OperationalError) as raised:
        run.run_ddl(session, writer, Item(ItemKind.DDL, b"ALTER TABLE t FORCE"), place, 1)
    assert raised.value.args[0] == 1026
