"""A target that asks for another file gets none, and half a file never ends as a whole one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from pymysql.protocol import MysqlPacket

from binlane.apply.rows.load_data import Loads, load
from binlane.errors import ApplyError, DriftError, PlanError
from binlane.model import Item, ItemKind

STATEMENT = b"LOAD DATA LOCAL INFILE 'binlane' INTO TABLE `t`"


@dataclass
class Server:
    """What a server answers, and what it was sent: a malicious one cannot be had otherwise."""

    answers: list[bytes]
    sent: list[bytes] = field(default_factory=list)
    turn: AbstractContextManager[None] = field(default_factory=nullcontext)

    def _execute_command(self, _command: int, statement: bytes) -> None:
        self.sent.append(statement)

    def _read_packet(self) -> MysqlPacket:
        return MysqlPacket(self.answers.pop(0), "utf8mb4")

    def write_packet(self, data: bytes) -> None:
        self.sent.append(data)


def session(server: Server, packet: int = 1 << 24) -> Any:
    found = SimpleNamespace(
        connection=server, closed=False, sending=lambda: None, committing=nullcontext, max_allowed_packet=packet
    )
    found.close = lambda: setattr(found, "closed", True)
    found.warned = lambda warnings: setattr(found, "warnings", warnings)
    found.shown_warnings = lambda: [("Warning", 1062, "Duplicate entry '2'")] * found.warnings
    return found


def done(text: bytes) -> bytes:
    return b"\0\1\0\2\0\0\0" + bytes([len(text)]) + text


@pytest.mark.parametrize("answer", [b"\xfb/etc/passwd", b"\xfbbinlane2", b"\xfb", done(b"Records: 0")])
def test_a_server_that_does_not_ask_for_the_one_file_gets_nothing(answer: bytes) -> None:
    server = Server([answer])
    lane = session(server)
    with pytest.raises(ApplyError, match="not 'binlane'"):
        load(lane, STATEMENT, iter([b"secret"]))
    assert server.sent == [STATEMENT]
    assert lane.closed


def test_a_statement_with_another_name_is_not_sent() -> None:
    server = Server([])
    with pytest.raises(PlanError):
        load(session(server), b"LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t", iter([]))
    assert server.sent == []


def test_a_file_that_breaks_off_closes_the_connection_instead_of_ending_the_file() -> None:
    def broken() -> Iterator[bytes]:
        yield b"1\n"
        raise OSError("the lane file is gone")

    server = Server([b"\xfbbinlane"])
    lane = session(server)
    with pytest.raises(OSError, match="gone"):
        load(lane, STATEMENT, broken())
    assert server.sent == [STATEMENT, b"1\n"]
    assert lane.closed


@pytest.mark.parametrize(
    ("statement", "said", "error"),
    [
        (STATEMENT, b"Records: 3  Deleted: 0  Skipped: 0  Warnings: 2", None),
        (STATEMENT, b"Records: 3  Deleted: 0  Skipped: 1  Warnings: 1", DriftError),
        (STATEMENT, "レコード数: 3  削除: 0  スキップ: 1  警告: 1".encode(), DriftError),
        (STATEMENT.replace(b" INTO", b" REPLACE INTO"), b"Records: 3  Deleted: 1  Skipped: 0  Warnings: 0", None),
        (STATEMENT.replace(b" INTO", b" IGNORE INTO"), b"Records: 3  Deleted: 0  Skipped: 1  Warnings: 1", None),
        (STATEMENT, b"fine", ApplyError),
    ],
)  # fmt: skip
def test_a_skipped_row_is_an_error_unless_the_source_skipped_it_too(
    statement: bytes, said: bytes, error: type[Exception] | None
) -> None:
    server = Server([b"\xfbbinlane", done(said)])
    lane = session(server)
    if error is None:
        load(lane, statement, iter([b"1\n2\n", b"3\n"]))
        assert lane.warnings == int(said[-1:])
    else:
        with pytest.raises(error, match="Duplicate entry '2'" if error is DriftError else None):
            load(lane, statement, iter([b"1\n2\n", b"3\n"]))
    assert server.sent == [statement, b"1\n2\n", b"3\n", b""]


def test_pieces_belong_to_the_statement_before_them() -> None:
    kinds = [ItemKind.LOAD, ItemKind.LOAD, ItemKind.FILE, ItemKind.FILE, ItemKind.LOAD, ItemKind.FILE]
    loads = Loads(iter([Item(kind, bytes([place])) for place, kind in enumerate(kinds)]))
    found = [(item.payload, list(loads.pieces())) for item in loads]
    assert found == [(b"\0", []), (b"\1", [b"\2", b"\3"]), (b"\4", [b"\5"])]
    with pytest.raises(PlanError):
        list(Loads(iter([Item(ItemKind.FILE, b"x")])))


@pytest.mark.parametrize(("packet", "most"), [(8192, 4096), (1 << 24, 64 << 10)])
def test_a_file_is_sent_in_packets_that_the_target_takes(packet: int, most: int) -> None:
    server, text = Server([b"\xfbbinlane", done(b"Records: 1  Deleted: 0  Skipped: 0  Warnings: 0")]), bytes(100_000)
    load(session(server, packet), STATEMENT, iter([text[:10], text[10:]]))
    assert b"".join(server.sent[1:]) == text
    assert max(map(len, server.sent[1:])) == most
