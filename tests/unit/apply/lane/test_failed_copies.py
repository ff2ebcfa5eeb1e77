"""Copies of temporary tables that a failed attempt of a barrier has made are dropped if nobody can need them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

import pymysql
import pytest

from binlane.apply.lane.ways import barrier
from binlane.apply.session.connection import LaneSession
from binlane.apply.temporary_copies import CopyKeeper
from binlane.model import RowCounts
from binlane.state.orders.orders import Orders
from binlane.state.positions import Counted

LOCKED = pymysql.err.OperationalError(1205, "Lock wait timeout exceeded")
LOST = pymysql.err.OperationalError(2013, "Lost connection")


class _Barrier:
    """A barrier's passage over a target that answers nothing."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, writing: Exception | None, committing: Exception | None
    ) -> None:
        self.done, self.writing, self.committing = list[str](), writing, committing
        for name in ("settle", "forget_intent"):
            monkeypatch.setattr(barrier, name, lambda *_: None)
        monkeypatch.setattr(barrier, "move_position", lambda *_: True)
        monkeypatch.setattr(barrier, "read_orders", lambda *_, **__: Orders())
        monkeypatch.setattr(barrier._Passage, "_write", lambda *_: self.write())
        session: Any = SimpleNamespace(
            use_format=lambda _: None, begin=lambda: None, close=lambda: self.done.append("close"), commit=self.commit,
            cursor=None,
        )  # fmt: skip
        keeper: Any = SimpleNamespace(
            made=[], drop_made=lambda: self.done.append("drop"), sweep=lambda _: self.done.append("sweep")
        )
        place: Any = SimpleNamespace(
            key=SimpleNamespace(channel="c"), lanes=(), lane=0, expected=1, moved=lambda *_: None
        )
        which: Any = SimpleNamespace(first=2, last=3, together=True, temporary=SimpleNamespace(kept=((7, "d", "k"),)))
        anything: Any = None
        self.passage = barrier._Passage(session, anything, place, which, keeper, 1, None, False)

    def write(self) -> Counted:
        self.done.append("write")
        if self.writing is not None:
            raise self.writing
        return Counted(RowCounts(), 1, 1)

    def commit(self) -> None:
        self.done.append("commit")
        if self.committing is not None:
            raise self.committing

    def apply(self) -> None:
        blocks: Any = iter((SimpleNamespace(format=b""),))
        self.passage.apply(blocks)


@pytest.mark.parametrize(
    ("writing", "committing", "done"),
    [
        (None, None, ["write", "commit", "sweep"]),
        # the server gives up the locks of the tables with the session
        (LOCKED, None, ["write", "close", "drop"]),
        # they may be committed
        (None, LOST, ["write", "commit"]),
    ],
)
def test_only_what_no_commit_was_sent_for_is_dropped(
    writing: Exception | None, committing: Exception | None, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _Barrier(monkeypatch, writing, committing)
    if (error := writing or committing) is None:
        made.apply()
    else:
        with pytest.raises(type(error)):
            made.apply()
    assert made.done == done


def _never(*_: object) -> NoReturn:
    raise AssertionError


def test_nothing_made_is_nothing_to_connect_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LaneSession, "open", _never)
    anything: Any = None
    CopyKeeper(anything, anything, "c").drop_made()
