"""What becomes of a session that holds a lock when its machine is lost, and while its machine has nothing to ask."""

from __future__ import annotations

import contextlib
import math
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pymysql
import pytest
from pymysql.constants import COMMAND

from binlane.bootstrap import first_copy, kept_sessions, snapshot
from binlane.bootstrap.kept_sessions import ALONE_SECONDS, take_lease
from binlane.bootstrap.sessions import Session
from binlane.connections import Endpoint
from binlane.driver.connection import Connection
from binlane.driver.kept import Keeper
from binlane.errors import WindowBusyError
from binlane.model import Flavor, TableKey
from binlane.repair.fence import writing
from binlane.state.leases import held_by

SNAPSHOT: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
OK: Final = b"\x07\0\0\x01\0\0\0\x02\0\0\0"
ENDED: Final = b"The client was disconnected by the server because of inactivity."


class Recorded:
    """A session's connection that records its statements, and how often it is kept."""

    def __init__(self, flavor: Flavor = Flavor.MYSQL) -> None:
        self.sent, self.stays, self.turns, self.flavor = list[str](), 0, 0, flavor
        self.stayed, self.lives = threading.Event(), True

    def take_turns(self) -> None:
        self.turns += 1

    def stay(self, idle: float = 0.0, longest: float = math.inf) -> bool:
        self.stays += 1
        self.stayed.set()
        return self.lives

    def use_as(self, _kind: object) -> None:
        pass

    def close(self) -> None:
        self.sent.append("closed")


def session_of(connection: Recorded, monkeypatch: pytest.MonkeyPatch) -> Session:
    def execute(session: Session, statement: str) -> int:
        session.connection.sent.append(statement)
        return 0

    monkeypatch.setattr(Session, "execute", execute)
    return Session(connection, connection.flavor, None)


def seconds_of(statements: list[str]) -> int:
    """The ``wait_timeout`` that these statements set last."""
    return int(re.findall(r"\bwait_timeout = (\d+)", " ".join(statements).replace("lock_wait_timeout", ""))[-1])


@pytest.mark.parametrize("flavor", Flavor)
def test_no_session_that_blocks_the_source_outlives_its_machine_for_long(
    flavor: Flavor, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, begun = list[Recorded](), list[list[str]]()

    def opening(_endpoint: object, **_: object) -> Session:
        opened.append(Recorded(flavor))
        return session_of(opened[-1], monkeypatch)

    monkeypatch.setattr(snapshot, "read_session", opening)
    monkeypatch.setattr(snapshot, "_position", lambda _: None)
    lock_all = snapshot._lock

    def lock_and_look(endpoint: Endpoint, session: Session, statements: Sequence[str]) -> None:
        lock_all(endpoint, session, statements)
        begun[:] = [each.sent.copy() for each in opened[1:-1]]

    monkeypatch.setattr(snapshot, "_lock", lock_and_look)
    monkeypatch.setattr(snapshot, "_refuse_prepared", lambda *_: None)
    endpoint = Endpoint(name="s", host="h", port=1, user="u", password="p")
    with snapshot.shared_snapshot(endpoint, 2, 30, lambda _: None):
        guard, *readers, lock = opened
        at = lock.sent.index("FLUSH TABLES WITH READ LOCK")
        assert seconds_of(lock.sent[:at]) <= 60
        # a reader's transaction keeps DDL away from the tables that it has read; but its stream may stand for hours
        assert seconds_of(guard.sent) == ALONE_SECONDS
        assert [seconds_of(each.sent) for each in readers] == [kept_sessions.STREAMING_SECONDS] * 2
        assert [each.turns for each in (guard, *readers)] == [1] * 3
        # while no session can commit, each reader sends one statement: 64 of them, far away, take their time
        assert [each.sent[len(before) :] for each, before in zip(readers, begun, strict=True)] == [[SNAPSHOT]] * 2


def test_the_transaction_that_holds_the_channel_s_row_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_sessions, "_PAUSE", 0.001)
    raw = Recorded()
    session_of(raw, monkeypatch)

    class Pooled:
        driver_connection = raw

    class Begun:
        connection = Pooled

    with writing(Begun, Flavor.MYSQL) as session:  # type: ignore[arg-type]
        assert session.connection is raw
        assert seconds_of(raw.sent) == ALONE_SECONDS
        assert raw.stayed.wait(5)
    stays = raw.stays
    raw.stayed.clear()
    assert not raw.stayed.wait(0.02)
    assert raw.stays == stays, "nobody asks behind the end"


def test_a_lease_that_is_refused_names_the_connection_and_how_it_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [[("0",)], [("4711",)]]
    monkeypatch.setattr(Session, "texts", lambda *_: answers.pop(0))
    with pytest.raises(WindowBusyError, match=r"^busy: connection 4711 of the target .*: KILL CONNECTION 4711$"):
        take_lease(Session(None, Flavor.MYSQL, None), "lease", 0, "busy")
    assert held_by(None) == "it has just ended; run again"


@pytest.mark.parametrize("held", ["4712", ""])
def test_a_copy_whose_lease_another_one_may_have_writes_no_more_rows(
    held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a machine that stood still in a long statement the session may live on behind the one with the lease."""
    asked, counted = ["4711", held], list[int]()
    monkeypatch.setattr("binlane.bootstrap.first_copy.bootstraps.count_rows", lambda *_, **__: counted.append(1))
    monkeypatch.setattr(Session, "texts", lambda *_: [(asked.pop(0),)])
    diary = first_copy._Diary("c", None, None, {}, 4711)  # type: ignore[arg-type]
    writer = Session(None, Flavor.MYSQL, None)
    diary.written(writer, TableKey("a", "t"), 1, None)
    with pytest.raises(WindowBusyError, match="lost the lease of its first copy"):
        diary.written(writer, TableKey("a", "t"), 1, None)
    assert counted == [1]


@contextlib.contextmanager
def connected() -> Iterator[tuple[Connection, socket.socket]]:
    """A connection behind its login, and the server's end of it."""
    ours, theirs = socket.socketpair()
    with contextlib.closing(theirs):
        connection = Connection(host="h", user="u", password="p", defer_connect=True)
        connection._sock, connection._rfile = ours, ours.makefile("rb")
        ours.settimeout(5)
        connection._read_timeout = 5
        connection._closed, connection._current_timeout = False, None
        connection.encoding = "utf8"
        connection.take_turns()
        yield connection, theirs
        connection._force_close()  # type: ignore[attr-defined]


def answering(server: socket.socket, answer: bytes) -> threading.Thread:
    def answers() -> None:
        assert server.recv(5) == b"\x01\0\0\0\x0e"
        server.sendall(answer)

    thread = threading.Thread(target=answers)
    thread.start()
    return thread


def test_an_idle_session_is_asked_and_keeps_what_its_last_statement_has_left() -> None:
    with connected() as (connection, server):
        left: Any = type("Result", (), {"unbuffered_active": False})()
        connection._result = left
        thread = answering(server, OK)
        assert connection.stay()
        thread.join()
        assert connection._result is left
        assert connection.open


def test_a_session_that_has_a_statement_or_rows_to_read_is_left_alone() -> None:
    with connected() as (connection, server):
        server.setblocking(False)
        connection._result = type("Result", (), {"unbuffered_active": True})()
        assert connection.stay()
        connection._result = None
        with connection.turn:
            found = list[bool]()
            thread = threading.Thread(target=lambda: found.append(connection.stay()))
            thread.start()
            thread.join()
        assert found == [True]
        with pytest.raises(BlockingIOError):
            server.recv(1)


def test_a_session_that_was_used_a_moment_ago_is_left_alone() -> None:
    """Nothing comes between a statement and the question for its warnings."""
    with connected() as (connection, server):
        server.setblocking(False)
        with connection.turn:
            time.sleep(0.02)
        assert connection.stay(5)
        with pytest.raises(BlockingIOError):
            server.recv(1)
        time.sleep(0.02)
        server.setblocking(True)
        thread = answering(server, OK)
        assert connection.stay(0.01)
        thread.join()


def test_a_statement_is_not_sent_where_another_question_could_come_in_front_of_its_answer() -> None:
    with connected() as (connection, server):
        server.setblocking(False)
        with pytest.raises(pymysql.err.ProgrammingError, match="expected the session's turn"):
            connection._execute_command(COMMAND.COM_QUERY, b"DO 0")
        with pytest.raises(BlockingIOError):
            server.recv(1)
        with connection.turn:
            connection._execute_command(COMMAND.COM_QUERY, b"DO 0")
        assert server.recv(9) == b"\x05\0\0\0\x03DO 0"


def test_a_session_is_kept_until_its_end_or_until_it_is_lost() -> None:
    kept, lost = Recorded(), Recorded()
    lost.lives = False
    played: Any = (kept, lost)
    keeper = Keeper(played, 0.001)
    assert kept.stayed.wait(5)
    kept.stayed.clear()
    assert kept.stayed.wait(5)
    keeper.end()
    stays = kept.stays
    time.sleep(0.02)
    assert (kept.stays, lost.stays) == (stays, 1)


def test_a_session_whose_own_thread_is_silent_for_too_long_is_left_to_its_server() -> None:
    with connected() as (connection, server):
        thread = answering(server, OK)
        assert connection.stay(longest=60)
        thread.join()
        server.setblocking(False)
        # asking does not count as a use
        assert connection._turn is not None
        connection._turn.used_at -= 61
        assert connection.stay(longest=60)
        with pytest.raises(BlockingIOError):
            server.recv(1)
        with connection.turn:
            pass
        server.setblocking(True)
        thread = answering(server, OK)
        assert connection.stay(longest=60)
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [pytest.param(b"", id="closed"), pytest.param(b"\xff\xbf\x0f#HY000" + ENDED, id="ended by the server")],
)
def test_a_session_that_was_lost_says_so_with_its_next_statement(answer: bytes) -> None:
    with connected() as (connection, server):
        if answer:
            thread = answering(server, len(answer).to_bytes(3, "little") + b"\x01" + answer)
        else:
            server.close()
        assert not connection.stay()
        if answer:
            thread.join()
        with pytest.raises(pymysql.err.OperationalError, match="lost while it had nothing to do"):
            connection.query("DO 0")
        assert not connection.stay()
