"""A row of a copy is no longer than any that a server sends.

Attacker: what poses as the source.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from binlane.bootstrap import row_stream
from binlane.bootstrap.row_stream import RowStream
from binlane.errors import SourceError

LONGEST = 0xFF_FFFF


class Endless:
    """A session whose server sends one row for ever, by packets of the largest size."""

    source = "source db:3306"

    def __init__(self) -> None:
        self.sent = 0
        self.connection = SimpleNamespace(open=True)

    def begin_stream(self, query: str) -> None:
        """Nothing."""

    def receive_into(self, buffer: memoryview) -> int:
        """The next bytes: heads of packets, and zeros."""
        place = self.sent % (LONGEST + 4)
        head = (LONGEST.to_bytes(3, "little") + b"\0")[place : place + 1]
        size = 1 if place < 4 else min(len(buffer), LONGEST + 4 - place)
        buffer[:size] = head if head else bytes(size)
        self.sent += size
        assert self.sent < 96 << 20, "the row is read on"
        return size

    def close(self) -> None:
        """As a session's."""
        self.connection.open = False


def test_a_row_without_an_end_is_an_error_at_the_largest_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_stream, "LARGEST_ANSWER", 32 << 20)
    session = Endless()
    with pytest.raises(
        SourceError, match=r"^source db:3306: expected a row of at most 33,554,432 bytes, found a longer"
    ):
        list(RowStream(cast(Any, session), [], False).statements("SELECT", b"INSERT ", 1 << 20))
    # the limit, and the packet in which it is passed
    assert session.sent < (32 << 20) + 2 * LONGEST
    assert not session.connection.open
