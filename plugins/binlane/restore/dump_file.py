"""Reads a dump of mariadb-dump or mysqldump: its statements, one by one, and the place in the log that it has recorded.

Statements are divided as the servers' client does it: a delimiter counts outside strings, quoted names and comments,
and DELIMITER, alone at a line's beginning, changes it. A dump is read as a stream, so its size does not matter.
"""

from __future__ import annotations

import functools
import hashlib
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import zstandard

from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.source.compressed_pieces import UNPACKED

_PIECE: Final = 1 << 20
_HEAD: Final = 64 << 10
_BLANKS: Final = re.compile(
    rb"(?:[\s\0]++|--(?=[\s]|$)[^\n]*+(?:\n|$)|#[^\n]*+(?:\n|$)|/\*(?![!M])(?:[^*]++|\*(?!/))*\*/|/\*M!999999\\-[^\n]*+(?:\n|$))*"
)
"""The last is the line by which mariadb-dump switches its client's commands off."""
_DELIMITER: Final = re.compile(rb"DELIMITER[ \t]+(\S+)[^\n]*\n", re.IGNORECASE)
_COMPLETED: Final = b"-- Dump completed"
_FILE: Final = re.compile(
    rb"(?m)^(?:-- )?CHANGE (?:MASTER|REPLICATION SOURCE) TO (?:MASTER|SOURCE)_LOG_FILE='([^'\n]+)', "
    rb"(?:MASTER|SOURCE)_LOG_POS=(\d+)"
)
_PURGED: Final = re.compile(rb"(?m)^SET @@GLOBAL\.GTID_PURGED=(?:/\*!80000 '\+'\*/ )?'([^']*)'")
_USED: Final = re.compile(rb"(?m)^USE `((?:[^`\n]|``)+)`;")
_SLAVE_POS: Final = re.compile(rb"(?m)^(?:-- )?SET GLOBAL gtid_slave_pos='([^']*)'")


@dataclass(frozen=True, slots=True)
class DumpPlace:
    """The place in the log that a dump has recorded; what it has not recorded is empty."""

    position: str
    """``file:offset``."""
    gtid_set: str
    databases: frozenset[str]
    """The databases that the dump has."""
    size: int
    """Of its text."""


@dataclass(frozen=True, slots=True)
class DumpFile:
    """A dump: plain, .gz or .zst."""

    path: Path

    def statements(self) -> Iterator[bytes]:
        """Every statement without its delimiter. Raises ConfigError for a file that ends too early."""
        return _Statements(self.pieces(), str(self.path)).all()

    def pieces(self) -> Iterator[bytes]:
        """The dump's text. Raises ConfigError for a file that cannot be read."""
        try:
            with self.path.open("rb") as file:
                yield from UNPACKED.get(self.path.suffix, _plain)(file)
        except (OSError, EOFError, zlib.error, zstandard.ZstdError) as exc:
            raise ConfigError(
                f"--from {self.path}: cannot be read: {getattr(exc, 'strerror', None) or exc}; name a complete dump, "
                "plain, .gz or .zst"
            ) from exc

    def place(self) -> DumpPlace:
        """What the dump has recorded of itself. It is read as a whole: mariadb-dump writes its GTIDs at the end. Raises
        ConfigError for a dump that was not written to its end, and for one that names no database."""
        found: dict[re.Pattern[bytes], str] = {}
        databases: set[str] = set()
        tail, size = b"", 0
        for piece in self.pieces():
            text = tail + piece
            size += len(piece)
            databases |= {each.replace(b"``", b"`").decode() for each in _USED.findall(text)}
            for pattern in (_FILE, _PURGED, _SLAVE_POS):
                if pattern not in found and (match := pattern.search(text)) is not None:
                    found[pattern] = b":".join(each for each in match.groups()).decode()
            # of a line that two pieces share
            tail = text[-_HEAD:]
        if _COMPLETED not in tail[tail.rstrip().rfind(b"\n") :]:
            raise ConfigError(
                f"--from {self.path}: expected the last line `-- Dump completed`, found none: the dump was cut, or "
                "written with --skip-comments; take a whole one, or add that line to a dump that is known to be whole"
            )
        gtids = "".join((found.get(_PURGED) or found.get(_SLAVE_POS) or "").split())
        if not databases:
            raise ConfigError(
                f"--from {self.path}: expected USE of a database, found none: it was dumped without --databases, and "
                "does not say which database it is of, nor its character set; put its CREATE DATABASE and USE in front "
                "of a copy of it"
            )
        return DumpPlace(found.get(_FILE, ""), gtids, frozenset(databases), size)

    @property
    def digest(self) -> str:
        """Of the file's size, beginning and end."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(0)
                head = file.read(_HEAD)
                file.seek(max(0, size - _HEAD))
                return hashlib.sha256(b"%d " % size + head + file.read(_HEAD)).hexdigest()
        except OSError as exc:
            raise ConfigError(f"--from {self.path}: cannot be read: {exc.strerror}; name a dump") from exc


@dataclass(slots=True)
class _Statements:
    """Divides a stream of text into statements."""

    pieces: Iterator[bytes]
    name: str
    _text: bytes = b""
    _at: int = 0
    _delimiter: bytes = b";"
    _plain_backslashes: bool = False

    def all(self) -> Iterator[bytes]:
        while True:
            self._skip_blanks()
            if self._at == len(self._text):
                return
            changed = _DELIMITER.match(self._text, self._at)
            if changed is not None:
                self._delimiter, self._at = changed[1], changed.end()
                continue
            yield self._next()

    def _skip_blanks(self) -> None:
        while True:
            found = _BLANKS.match(self._text, self._at)
            assert found is not None
            # a comment, or the word DELIMITER, may go on in the next piece
            if len(self._text) - found.end() >= len(b"DELIMITER ") + 100 or not self._more():
                self._at = found.end()
                return

    def _next(self) -> bytes:
        while True:
            found = _statement(self._delimiter, self._plain_backslashes).match(self._text, self._at)
            if found is not None:
                self._at = found.end()
                statement = found[1]
                mode = _MODE.match(statement[:200])
                if mode is not None:
                    self._plain_backslashes = b"NO_BACKSLASH_ESCAPES" in mode[1].upper()
                return statement
            # a long statement is not looked at again for every piece
            more = [self._more() for _ in range(max(1, (len(self._text) - self._at) // _PIECE))]
            if True not in more:
                shown = self._text[self._at : self._at + 60].decode("utf-8", "replace")
                raise ConfigError(f"--from {self.name}: the dump ends inside the statement {shown!r}: it was cut")

    def _more(self) -> bool:
        piece = next(self.pieces, None)
        if piece is None:
            return False
        self._text, self._at = self._text[self._at :] + piece, 0
        return True


_MODE: Final = re.compile(rb"(?:/\*!\d* )?SET (?:SESSION )?SQL_MODE *= *('[^']*'|@\w+)", re.IGNORECASE)


@functools.cache
def _statement(delimiter: bytes, plain_backslashes: bool) -> re.Pattern[bytes]:
    """A statement up to its delimiter, which is outside of strings, names and comments."""
    end = re.escape(delimiter)
    first = re.escape(delimiter[:1])
    inside = rb"" if plain_backslashes else rb"\\"
    escape = rb"" if plain_backslashes else rb"|\\."
    return re.compile(
        rb"((?s:"
        rb"[^'\"`#/\-" + first + rb"]++"
        rb"|'(?:[^'" + inside + rb"]++" + escape + rb")*'"
        rb'|"(?:[^"' + inside + rb"]++" + escape + rb')*"'
        rb"|`[^`]*+`"
        rb"|--(?=\s)[^\n]*+\n|#[^\n]*+\n|/\*(?![!M])(?:[^*]++|\*(?!/))*\*/"
        rb"|(?!" + end + rb"|--\s|/\*[^!M])[/\-" + first + rb"]"
        rb")*)" + end
    )


def _plain(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


"""By the end of the file's name."""
