"""Lanes and loads that give way to a busy target: who waits, who does not, and what ends a wait."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pymysql
import pytest

from binlane.connections import Endpoint
from binlane.orchestration import target_load
from binlane.orchestration.target_load import TargetLoad, paced


class Server:
    """A target with these numbers of running threads, one for each question; None: the connection is lost."""

    def __init__(self, *running: int | None) -> None:
        self.running = [*running]
        self.opened = self.closed = 0

    def open(self, _: object) -> Server:
        self.opened += 1
        return self

    def texts(self, sql: str) -> list[tuple[str, str]]:
        if "IS_USED_LOCK" in sql:
            return [("7", "", "9", "7")]  # type: ignore[list-item]
        if "processlist" in sql:
            assert "id IN (7, 9)" in sql
            return [("2",)]  # type: ignore[list-item]
        assert "Threads_running" in sql
        found = self.running.pop(0)
        if found is None:
            raise pymysql.err.OperationalError(2013, "Lost connection")
        return [("Threads_running", str(found))]

    def close(self) -> None:
        self.closed += 1


class Ends(threading.Event):
    """An interruption: waits take no time, and it comes in the wait of that number; 0: never."""

    def __init__(self, at: int = 0) -> None:
        super().__init__()
        self.at, self.waits = at, 0

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        if self.waits == self.at:
            self.set()
        return self.is_set()


def load_of(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    told: list[str],
    ends: Ends | None = None,
    leases: Sequence[str] = (),
) -> TargetLoad:
    monkeypatch.setattr(target_load, "write_session", server.open)
    endpoint: Any = Endpoint
    return TargetLoad(endpoint, most, told.append, ends or Ends(), leases)


def test_a_statement_waits_until_the_target_is_not_busy_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    server, told, ends = Server(9, 7, 6), list[str](), Ends()
    statements = paced(load_of(server, monkeypatch, 5, told, ends), iter([b"a", b"b"]))
    assert next(statements) == b"a"
    assert (ends.waits, server.running) == (2, [])
    # without that of the question itself
    waited = "waits: {} threads running on the target besides this channel's, limit 5"
    assert told == [waited.format(count) for count in (8, 6)] + [""]
    # one question a second: the next statement is in the same one
    assert [*statements] == [b"b"]
    assert (server.opened, server.closed) == (1, 1)


def test_the_channel_s_own_lanes_are_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else lanes that wait for the one that gives way would keep the target busy."""
    leases, told = ("a", "b", "c", "d"), list[str]()
    assert not load_of(Server(8), monkeypatch, 5, told, leases=leases).wait()
    assert told == []
    assert load_of(Server(9, 8), monkeypatch, 5, told, leases=leases).wait()
    assert told == ["waits: 6 threads running on the target besides this channel's, limit 5", ""]


def test_without_a_limit_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    assert [*paced(load_of(server, monkeypatch, 0, []), iter([b"a", b"b"]))] == [b"a", b"b"]
    assert (server.opened, server.closed) == (0, 0)


def test_an_interruption_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    server, ends = Server(9, 9, 9), Ends(at=2)
    assert load_of(server, monkeypatch, 5, [], ends).wait()
    assert (ends.waits, server.running) == (2, [9])


def test_a_lane_keeps_its_session_once_a_second_of_its_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    server, ends, kept = Server(*[9] * 61, 5), Ends(), list[int]()
    load = load_of(server, monkeypatch, 5, [], ends)
    assert load.wait(lambda: kept.append(ends.waits))
    assert kept == [*range(61)]
    # the next block is in the same second
    assert not load.wait(lambda: kept.append(-1))
    assert len(kept) == 61


def test_a_session_that_is_lost_in_a_wait_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    server, ends = Server(9, 9), Ends()

    def lost() -> None:
        raise pymysql.err.OperationalError(2013, "Lost connection")

    with pytest.raises(pymysql.err.OperationalError):
        load_of(server, monkeypatch, 5, [], ends).wait(lost)
    assert (ends.waits, server.running, server.closed) == (0, [9], 1)


def test_behind_a_lost_connection_the_next_question_has_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(None, 5)
    load = load_of(server, monkeypatch, 5, [])
    with pytest.raises(pymysql.err.OperationalError):
        load.wait()
    load.wait()
    assert (server.opened, server.closed, server.running) == (2, 1, [])
