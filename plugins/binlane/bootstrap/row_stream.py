"""Rows of a query as the texts of multi-row INSERT statements, without a Python object for any row or value."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import field
from typing import Final

import numpy as np

from binlane.binlog.types.sql_values import Literal
from binlane.binlog.vector.arrays import Bytes, Ints
from binlane.bootstrap.sessions import Session
from binlane.bootstrap.values import FAITHFUL, UNFAITHFUL
from binlane.driver.wire import LARGEST_ANSWER
from binlane.errors import SourceError
from binlane.kernels import result_sets as kernel
from binlane.lazy_dataclass import dataclass

_BUFFER: Final = 1 << 20
_DRAINED: Final = 256 << 20
"""Bytes of an abandoned result set that are received, so that the session keeps its snapshot."""
_HEAD: Final = 4
_LONGEST: Final = 0xFF_FFFF
_LENGTHS: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}
_NULL: Final = 0xFB


class UnfaithfulRowError(Exception):
    """The first value of a row is ``UNFAITHFUL``."""


def arrays_of(literals: Sequence[Literal]) -> tuple[Bytes, Ints, Ints]:
    """The arguments ``around``, ``places`` and ``flags`` of the kernel."""
    texts = [text for one in literals for text in (one.before, one.after)]
    places = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    flags = [kernel.ESCAPES * one.escapes | kernel.EXPONENT * one.exponent for one in literals]
    return np.frombuffer(b"".join(texts) + b" ", np.uint8), places, np.array(flags, np.int64)


@dataclass(slots=True)
class RowStream:
    """The result of one query. ``literals``: one a column, without the first one if it is a check (``checked``)."""

    session: Session
    literals: Sequence[Literal]
    checked: bool
    _data: Bytes = field(default_factory=lambda: np.empty(_BUFFER, np.uint8))
    _at: int = 0
    _end: int = 0
    _is_over: bool = False

    def statements(self, query: str, head: bytes, limit: int) -> Generator[tuple[memoryview, int], None, None]:
        """Run the query; INSERT statements of at most ``limit`` bytes, or of one row, with their number of rows. A
        statement is valid until the next one. Raises UnfaithfulRowError, and the driver's errors."""
        around, places, flags = arrays_of(self.literals)
        out = np.empty(limit + _BUFFER, np.uint8)
        out[: len(head)] = np.frombuffer(head, np.uint8)
        filled, rows = len(head), 0
        self.session.begin_stream(query)
        self._is_over = False
        try:
            while True:
                self._at, filled, found, code = kernel.spell_rows(
                    self._data, self._at, self._end, around, places, flags, self.checked, out, filled, rows, limit
                )
                rows += found
                if code == kernel.MORE:
                    self._fill()
                elif code == kernel.NO_ROOM:
                    out = _larger(out, filled, 2 * (self._end - self._at) + len(around) + _BUFFER)
                elif code in (kernel.LONG, kernel.UNFAITHFUL):
                    text = self._row()
                    if rows and filled + 1 + len(text) > limit:
                        yield out.data[:filled], rows
                        filled, rows = len(head), 0
                    out, filled = _with(out, filled, b"," * (rows > 0) + text)
                    rows += 1
                elif code in (kernel.FULL, kernel.END):
                    if rows:
                        yield out.data[:filled], rows
                    filled, rows = len(head), 0
                    if code == kernel.END:
                        return
                elif code == kernel.ERROR:
                    self._is_over = True
                    self.session.end_stream(self._packet())
                else:
                    raise SourceError(
                        f"{self.session.source}: expected a row of {len(self.literals)} values, with numbers in its "
                        "columns of numbers, found another packet: another program answers in the source's place, or "
                        "changes the stream; look at host, port and ssl_mode of the connection"
                    )
        finally:
            self._close()

    def _fill(self) -> None:
        """Receive at least one byte more."""
        left = self._end - self._at
        if self._at and (self._end == len(self._data) or left == 0):
            self._data[:left] = self._data[self._at : self._end].copy()
            self._at, self._end = 0, left
        if self._end == len(self._data):
            self._data = _larger(self._data, self._end, self._end)
        self._end += self.session.receive_into(self._data.data[self._end :])

    def _packet(self) -> bytes:
        """Consume one whole packet of the protocol."""
        while self._end - self._at < _HEAD or self._end - self._at - _HEAD < self._length():
            self._fill()
        at, length = self._at + _HEAD, self._length()
        self._at = at + length
        return self._data[at : at + length].tobytes()

    def _length(self) -> int:
        return int.from_bytes(self._data[self._at : self._at + 3].tobytes(), "little")

    def _row(self) -> bytes:
        """The constructor of the next row, which may have more than one packet. Raises SourceError for a row that no
        server sends."""
        pieces = [self._packet()]
        while len(pieces[-1]) == _LONGEST:
            if len(pieces) * _LONGEST > LARGEST_ANSWER:
                self.session.close()
                raise SourceError(
                    f"{self.session.source}: expected a row of at most {LARGEST_ANSWER:,} bytes, found a longer one: "
                    "another program answers in the source's place, or changes the stream; look at host, port and "
                    "ssl_mode of the connection"
                )
            pieces.append(self._packet())
        values = _values(b"".join(pieces))
        kept = next(values) if self.checked else FAITHFUL
        if kept in (None, UNFAITHFUL):
            raise UnfaithfulRowError
        spellers = [each if kept == FAITHFUL else each.with_number_types for each in self.literals]
        spelled = (b"NULL" if each is None else spell(each) for spell, each in zip(spellers, values, strict=True))
        return b"(" + b",".join(spelled) + b")"

    def _close(self) -> None:
        """Read to the end of the result set, so that the session can be used again; if much is left, close it."""
        received = 0
        while not self._is_over and self.session.connection.open:
            packet = self._packet()
            received += len(packet)
            if received > _DRAINED:
                self.session.close()
            elif packet[:1] == b"\xff" or (packet[:1] == b"\xfe" and len(packet) < 9):
                self._is_over = True
                self.session.end_stream()


def _larger(buffer: Bytes, used: int, more: int) -> Bytes:
    found = np.empty(len(buffer) + more, np.uint8)
    found[:used] = buffer[:used]
    return found


def _with(buffer: Bytes, used: int, text: bytes) -> tuple[Bytes, int]:
    """A buffer with a text behind what is used of it, and how much of it is used then."""
    end = used + len(text)
    buffer = _larger(buffer, used, len(text)) if end > len(buffer) else buffer
    buffer[used:end] = np.frombuffer(text, np.uint8)
    return buffer, end


def _values(row: bytes) -> Iterator[bytes | None]:
    at = 0
    while at < len(row):
        size, at = row[at], at + 1
        if size == _NULL:
            yield None
            continue
        if wide := _LENGTHS.get(size, 0):
            size, at = int.from_bytes(row[at : at + wide], "little"), at + wide
        yield row[at : at + size]
        at += size
