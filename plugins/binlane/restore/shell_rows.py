r"""Rows of a MySQL Shell dump as statements: a line for each row, a tab between two values.

A file is one for LOAD DATA with FIELDS TERMINATED BY '\t' ESCAPED BY '\\' LINES TERMINATED BY '\n', in utf8mb4. A
value's escapes (\0 \b \n \r \t \Z \\) mean the same inside of quotes, so a value becomes a string by its quotes alone;
\N is NULL. Bytes are in hexadecimal digits or base64, and become literals of bytes.
(mysql/mysql-shell, 8.0.22 to 9.6: modules/util/dump/dialect_dump_writer.h.)
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from binlane.binlog.types.literals import identifier
from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass

Decoder: TypeAlias = Callable[[bytes], bytes]
"""Hexadecimal digits of a value's bytes. Raises ValueError."""
_STATEMENT: Final = 1 << 20
"""Bytes from which on a statement takes no more rows; dump programs write as many."""
_LARGEST: Final = 1 << 30
"""Bytes of a row: the servers' limit for max_allowed_packet."""
_PART: Final = 1 << 20
"""Bytes of a file that are divided into lines at once."""
_ESCAPE: Final = re.compile(rb"\\[0bnrtZ\\]")
_NULL: Final = rb"\N"
_DIGITS: Final = re.compile(rb"[0-9A-Fa-f]*")


def _of_digits(value: bytes) -> bytes:
    """HEX() of a BIT writes no leading zero."""
    if _DIGITS.fullmatch(value) is None:
        raise ValueError("expected hexadecimal digits")
    return value if len(value) % 2 == 0 else b"0" + value


def _of_base64(value: bytes) -> bytes:
    # TO_BASE64() breaks lines, and MySQL Shell takes these breaks out where it is sure of them
    return binascii.hexlify(binascii.a2b_base64(value.replace(rb"\n", b""), strict_mode=True))


DECODERS: Final[Mapping[str, Decoder]] = {"UNHEX": _of_digits, "FROM_BASE64": _of_base64}
"""By the function of the server that a load calls for the column."""


@dataclass(frozen=True, slots=True)
class RowsOfTable:
    """Where rows of a file belong."""

    table: str
    columns: Sequence[str]
    decoded: Sequence[tuple[int, Decoder]]
    """Columns of bytes, by their number from 0; the values of others are text."""

    def statements(self, pieces: Iterator[bytes], name: str, size: int) -> Iterator[bytes]:
        """INSERT of the rows of the file ``name``, ``size`` bytes without compression. Raises ConfigError for another
        size, and for rows that MySQL Shell does not write."""
        names = ",".join(map(identifier, self.columns))
        head = f"INSERT INTO {identifier(self.table)} ({names}) VALUES\n".encode()
        rows, length, frame = list[bytes](), 0, self._frame()
        for number, line in enumerate(_lines(pieces, name, size), 1):
            # most of a load's own time is spent here; a line of tabs alone would be twelve times as long in parts
            if (count := line.count(b"\t") + 1) != len(self.columns):
                raise ConfigError(
                    f"--from {name}: line {number:,}: expected {len(self.columns)} values, as the table's metadata has "
                    f"columns, found {count:,}; {_WHOLE}"
                )
            values = line.replace(b"'", rb"\'").split(b"\t")
            has_escapes = b"\\" in line
            if has_escapes and _ESCAPE.sub(b"", line).count(b"\\") != values.count(_NULL):
                raise ConfigError(
                    rf"--from {name}: line {number:,}: expected the escapes \0 \b \n \r \t \Z and \\ alone, and \N for "
                    f"NULL, found another one; {_WHOLE}"
                )
            for at, decode in self.decoded:
                if values[at] != _NULL:
                    values[at] = self._digits(values[at], at, decode, f"--from {name}: line {number:,}")
            frame[1::2] = values
            row = b"".join(frame)
            rows.append(_with_nulls(row) if has_escapes else row)
            length += len(row)
            if length >= _STATEMENT:
                yield head + b",".join(rows)
                rows, length = [], 0
        if rows:
            yield head + b",".join(rows)

    def _frame(self) -> list[bytes]:
        """What stands around the values of a row, with places for these."""
        opens = [b"X'" if at in dict(self.decoded) else b"'" for at in range(len(self.columns))]
        return [b"(" + opens[0], *(part for each in opens[1:] for part in (b"", b"'," + each)), b"", b"')"]

    def _digits(self, value: bytes, at: int, decode: Decoder, where: str) -> bytes:
        try:
            return decode(value)
        except ValueError as exc:  # binascii.Error is one
            raise ConfigError(
                f"{where}: column {self.columns[at][:64]!r}: expected bytes in hexadecimal digits or base64, found "
                f"something else; {_WHOLE}"
            ) from exc


def _with_nulls(row: bytes) -> bytes:
    """Outside of its strings, nothing of a row has a backslash behind a quote."""
    return row.replace(rb"X'\N'", b"NULL").replace(rb"'\N'", b"NULL")


_WHOLE: Final = "take a whole dump, with its files as MySQL Shell has written them"


def _lines(pieces: Iterator[bytes], name: str, size: int) -> Iterator[bytes]:
    read, begun, length = 0, list[bytes](), 0
    # a piece that was compressed well may be all lines
    parts = (piece[at : at + _PART] for piece in pieces for at in range(0, len(piece), _PART))
    for part in parts:
        read += len(part)
        if read > size:
            break
        first, *others = part.split(b"\n")
        begun.append(first)
        length += len(first)
        if length > _LARGEST:
            raise ConfigError(
                f"--from {name}: expected rows of at most {_LARGEST:,} bytes, as servers take them, found a longer "
                f"one; {_WHOLE}"
            )
        if others:
            yield b"".join(begun)
            yield from others[:-1]
            begun, length = [others[-1]], len(others[-1])
    if read != size or length:
        found = f"more than {size:,}" if read > size else f"{read:,} bytes" if read < size else "a row without an end"
        raise ConfigError(
            f"--from {name}: expected {size:,} bytes of rows, as chunkFileBytes of @.done.json says, found {found}: "
            f"the file was cut, or is of another dump; {_WHOLE}"
        )
