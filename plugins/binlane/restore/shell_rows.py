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
from typing import Final, NoReturn, TypeAlias

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
    decoders: Sequence[Decoder | None]
    """For each column; None: the value is text."""

    def statements(self, pieces: Iterator[bytes], name: str, size: int) -> Iterator[bytes]:
        """INSERT of the rows of the file ``name``, ``size`` bytes without compression. Raises ConfigError for another
        size, and for rows that MySQL Shell does not write."""
        names = ",".join(map(identifier, self.columns))
        head = f"INSERT INTO {identifier(self.table)} ({names}) VALUES\n".encode()
        rows, length = list[bytes](), 0
        for number, line in enumerate(_lines(pieces, name, size), 1):
            rows.append(self._row(line, f"--from {name}: line {number:,}"))
            length += len(rows[-1])
            if length >= _STATEMENT:
                yield head + b",".join(rows)
                rows, length = [], 0
        if rows:
            yield head + b",".join(rows)

    def _row(self, line: bytes, where: str) -> bytes:
        values = line.split(b"\t")
        if len(values) != len(self.columns):
            raise ConfigError(
                f"{where}: expected {len(self.columns)} values, as the table's metadata has columns, found "
                f"{len(values)}; {_WHOLE}"
            )
        found = list[bytes]()
        for value, decode, column in zip(values, self.decoders, self.columns, strict=True):
            if value == _NULL:
                found.append(b"NULL")
            elif decode is not None:
                try:
                    found.append(b"X'" + decode(value) + b"'")
                except ValueError:  # binascii.Error is one
                    _refuse_value(where, column, "bytes in hexadecimal digits or base64")
            else:
                if b"\\" in value and b"\\" in _ESCAPE.sub(b"", value):
                    _refuse_value(where, column, r"the escapes \0 \b \n \r \t \Z and \\ alone")
                found.append(b"'" + value.replace(b"'", rb"\'") + b"'")
        return b"(" + b",".join(found) + b")"


_WHOLE: Final = "take a whole dump, with its files as MySQL Shell has written them"


def _refuse_value(where: str, column: str, expected: str) -> NoReturn:
    raise ConfigError(f"{where}: column {column[:64]!r}: expected {expected}, found something else; {_WHOLE}")


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
