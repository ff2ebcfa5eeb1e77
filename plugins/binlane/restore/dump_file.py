"""Reads a dump of mariadb-dump or mysqldump: its statements, one by one, and the place in the log that it has recorded.

Statements are divided as the servers' client does it: a delimiter counts outside strings, quoted names and comments,
and DELIMITER, alone at a line's beginning, changes it. A dump is read as a stream, so its size does not matter:
patterns look at a part at a time (``MANY``), since the way back costs memory for each repetition, and a statement
has the servers' limit.
"""

from __future__ import annotations

import functools
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from pathlib import Path
from typing import IO, Final

import zstandard

from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.regular_files import open_regular
from binlane.restore.definers import GROUPED_NAME, definers_in
from binlane.restore.dump_contents import ContentsReader, DumpContents
from binlane.restore.dump_gtids import PROGRAM, LoneGtids
from binlane.restore.inexact_columns import InexactTable, inexact_table
from binlane.restore.lost_letters import Letters, names_of
from binlane.safe_text import shown
from binlane.source.compressed_pieces import UNPACKED
from binlane.source.copy_times import CopyTimes

_PIECE: Final = 1 << 20
_HEAD: Final = 64 << 10
_LARGEST: Final = 1 << 30
"""Bytes of a statement: the servers' limit for max_allowed_packet."""
_BEHIND: Final = len(b"DELIMITER ") + 100
"""Bytes behind blanks in which it is seen what begins there."""
MANY: Final = rb"{1,20000}"
"""Repetitions of a group at once: a long text takes no memory."""
_INSIDE: Final = {
    b"'": re.compile(rb"(?s:[^'\\]++|\\.)" + MANY),
    b'"': re.compile(rb'(?s:[^"\\]++|\\.)' + MANY),
}
"""What is inside of a string, by its quote."""
_BLANKS: Final = re.compile(
    rb"(?s:[\s\0]++|--(?=\s)[^\n]*+\n|#[^\n]*+\n|/\*(?![!M]).*?\*/|/\*M!999999\\-[^\n]*+\n)" + MANY
)
"""The last is the line by which mariadb-dump switches its client's commands off."""
_DELIMITER: Final = re.compile(rb"DELIMITER[ \t]++(\S++)[^\n]*+\n", re.IGNORECASE)
_LONGEST_DELIMITER: Final = 16
_DELIMITERS: Final = 8
"""Different ones of a dump: dump programs write two. A pattern is compiled for each."""
_SERVER: Final = re.compile(rb"^-- Server version[ \t]+(\d[\w.-]*)", re.MULTILINE)
_COMPLETED: Final = b"-- Dump completed"
_COMMENT: Final = re.compile(rb"(?s:--(?=\s)[^\n]*+|#[^\n]*+|/\*.*?\*/)")
_FILE: Final = re.compile(
    rb"(?:-- )?CHANGE (?:MASTER|REPLICATION SOURCE) TO (?:MASTER|SOURCE)_LOG_FILE='([^'\n]+)', "
    rb"(?:MASTER|SOURCE)_LOG_POS=(\d{1,20})\b"
)
_PURGED: Final = re.compile(rb"SET @@GLOBAL\.GTID_PURGED=(?:/\*!80000 '\+'\*/ )?'([^']*)'")
_SLAVE_POS: Final = re.compile(rb"(?:-- )?SET GLOBAL gtid_slave_pos='([^']*)'")
QUOTED: Final = rb"(?:" + GROUPED_NAME + rb"|(\w+))"
USE: Final = re.compile(rb"USE\s+" + QUOTED + rb"\s*", re.IGNORECASE)
_OPENS: Final = re.compile(rb"USE\s|CREATE\s+(?:DATABASE|SCHEMA)\b|/\*M?!\d+\s+DROP\s+DATABASE\b", re.IGNORECASE)
_AT_END: Final = re.compile(rb"(?:/\*M?!\d*\s*)?(?:SET|FLUSH|UNLOCK|COMMIT|CHANGE|START|STOP)\b", re.IGNORECASE)
"""What a dump program writes behind the last database."""
_SHOWN: Final = 400
_STATEMENT: Final = re.compile(
    rb"\s*(?:/\*M?!\d*\s*)?(?:ALTER|ANALYZE|BEGIN|BINLOG|CALL|CHANGE|CHECK|COMMIT|CREATE|DEALLOCATE|DELETE|DELIMITER|"
    rb"DO|DROP|EXECUTE|FLUSH|GRANT|HANDLER|INSERT|INSTALL|KILL|LOAD|LOCK|OPTIMIZE|PREPARE|PURGE|RENAME|REPAIR|REPLACE|"
    rb"RESET|REVOKE|ROLLBACK|SAVEPOINT|SELECT|SET|SHOW|SHUTDOWN|START|STOP|TRUNCATE|UNINSTALL|UNLOCK|UPDATE|USE|WITH|"
    rb"XA)(?=[\s`(@]|/\*|\Z)",
    re.IGNORECASE,
)
"""What begins as a statement of a server or its client."""
_ROWS: Final = re.compile(rb"(?:INSERT|REPLACE)\b", re.IGNORECASE)


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
    definers: frozenset[str] = frozenset()
    """``user@host`` of the accounts that it names as definers, also those of other databases; OWN_ACCOUNT, if it has
    programs without."""
    doubt: str = ""
    """Why the place is not known although it is recorded: what was expected, found, and is to be done."""
    unproved: str = ""
    """What nothing shows of the place, and is believed."""
    inexact: tuple[InexactTable, ...] = ()
    """Tables with values that its text does not preserve."""
    times: CopyTimes = CopyTimes()
    contents: DumpContents = DumpContents()
    beliefs: tuple[str, ...] = ()
    """What else it says of objects that it has left out or changed."""

    def begins(self, where: str, otherwise: str = "") -> str:
        """Where the rows are in the log: ``file:offset``, or a GTID set. ``otherwise``: what else can be done where
        nothing that the dump has recorded shows it, which raises ConfigError."""
        expected = f"{where}: expected the place in the log that belongs to the dump"
        if self.doubt:
            raise ConfigError(f"{expected} {self.doubt}{otherwise}")
        if not (place := self.position or self.gtid_set):
            raise ConfigError(
                f"{expected}, found none; dump with --source-data=2 --single-transaction (MariaDB: --master-data=2 "
                f"--gtid --single-transaction){otherwise}"
            )
        return place


@dataclass(frozen=True, slots=True)
class DumpFile:
    """A dump: plain, .gz or .zst."""

    path: Path

    def statements(self, usual_mode: str) -> Iterator[bytes]:
        """Every statement without its delimiter; ``usual_mode`` is not needed: the dump records each program's. Raises
        ConfigError for a file that ends too early."""
        return divided(self.pieces(), str(self.path))

    def pieces(self) -> Iterator[bytes]:
        """The dump's text. Raises ConfigError for a file that cannot be read."""
        try:
            with open_regular(self.path) as file:
                yield from UNPACKED.get(self.path.suffix, _plain)(file)
        except (OSError, EOFError, zlib.error, zstandard.ZstdError) as exc:
            raise ConfigError(
                f"--from {self.path}: cannot be read: {getattr(exc, 'strerror', None) or exc}; name a complete dump, "
                "plain, .gz or .zst"
            ) from exc

    def server(self) -> str:
        """The version of the server that was dumped, by the text's head; empty if that does not tell it. Raises
        ConfigError for a file that cannot be read."""
        found = _SERVER.search(next(self.pieces(), b"")[:_HEAD])
        return "" if found is None else found[1].decode("latin-1")

    def place(self) -> DumpPlace:
        """What the dump has recorded of itself. It is read as a whole, as a load divides it: mariadb-dump writes its
        GTIDs at the end, and what stands inside of a statement was written by whoever has made the object. Raises
        ConfigError for a dump that was not written to its end, and for one that names no database."""
        places, databases, definers, size = _Places(str(self.path)), set[str](), set[str](), 0
        inexact, current, letters, client = list[InexactTable](), "", Letters(), ""
        contents = ContentsReader()

        def counted() -> Iterator[bytes]:
            nonlocal size
            for piece in self.pieces():
                size += len(piece)
                yield piece

        last = b""
        for text, is_statement in texts(counted(), str(self.path)):
            parts = (text,) if is_statement else tuple(_COMMENT.findall(text))
            places.take(parts, is_statement=is_statement)
            if not is_statement:
                contents.comments(current, parts)
                last = text.rstrip() or last
                continue
            last = b""
            if (used := USE.fullmatch(text)) is not None:
                current = decoded((used[1] or used[2]).replace(b"``", b"`"), self.path)
                databases.add(current)
                continue
            contents.statement(current, text)
            if _ROWS.match(text) is None:
                definers |= definers_in(text)
                if (table := inexact_table(current, text)) is not None:
                    inexact.append(table)
                letters.define(current, text)
                client = names_of(text) or client
            elif (table := letters.lost(current, text, client)) is not None:
                inexact.append(table)
        line = last[last.rfind(b"\n") + 1 :]
        if _COMPLETED not in line:
            raise ConfigError(
                f"--from {self.path}: expected the last line `-- Dump completed`, found none: the dump was cut, or "
                "written with --skip-comments; take a whole one, or add that line to a dump that is known to be whole"
            )
        if not databases:
            raise ConfigError(
                f"--from {self.path}: expected USE of a database, found none: it was dumped without --databases, and "
                "does not say which database it is of, nor its character set; put its CREATE DATABASE and USE in front "
                "of a copy of it"
            )
        return replace(
            places.place(),
            databases=frozenset(databases),
            size=size,
            definers=frozenset(definers),
            inexact=tuple(inexact),
            times=CopyTimes.of("", line.decode("latin-1")),
            contents=contents.contents(databases),
        )

    @property
    def counted_in(self) -> str:
        """Where ``row_counts`` are recorded."""
        return "nothing"

    def row_counts(self) -> Mapping[tuple[str, str], int]:
        """None: such a dump has no number of rows."""
        return {}

    @property
    def digest(self) -> str:
        """Of the file's size, beginning and end."""
        try:
            with open_regular(self.path) as file:
                size = file.seek(0, 2)
                file.seek(0)
                head = file.read(_HEAD)
                file.seek(max(0, size - _HEAD))
                return hashlib.sha256(b"%d " % size + head + file.read(_HEAD)).hexdigest()
        except OSError as exc:
            raise ConfigError(f"--from {self.path}: cannot be read: {exc.strerror}; name a dump") from exc


@dataclass(slots=True)
class _Places:
    """The places in the log that a dump names outside of its statements, or that are statements: in front of its first
    database, or behind its last one."""

    name: str
    values: dict[re.Pattern[bytes], list[str]] = field(default_factory=dict)
    doubt: str = ""
    _has_begun: bool = False
    _behind: list[str] = field(default_factory=list)
    """Those that were read behind the last statement of a database."""
    _program: tuple[int, ...] = ()
    """The version of mysqldump that the head names."""

    def take(self, parts: Sequence[bytes], *, is_statement: bool) -> None:
        """The dump's next statement, or comments."""
        found = [
            (pattern, decoded(b":".join(match.groups()), self.name))
            for part in parts
            for pattern in (_FILE, _PURGED, _SLAVE_POS)
            if (match := pattern.match(part)) is not None
        ]
        for pattern, value in found:
            self._add(pattern, value)
        if not is_statement and not self._has_begun and not self._program:
            named = next(filter(None, map(PROGRAM.match, parts)), None)
            self._program = () if named is None else tuple(map(int, named.groups()))
        if found or not is_statement:
            return
        [text] = parts
        self._has_begun = self._has_begun or _OPENS.match(text) is not None
        if self._behind and _AT_END.match(text) is None:
            self.doubt = self.doubt or f"in front of its databases, or behind them, found {self._behind[0]} among them"

    def _add(self, pattern: re.Pattern[bytes], value: str) -> None:
        values = self.values.setdefault(pattern, [])
        if value not in values:
            values.append(value)
        if len(values) > 1:
            self.doubt = f"once, found {' and '.join(values)}"
        if self._has_begun:
            self._behind.append(value)

    def place(self) -> DumpPlace:
        """What is known of the place of the rows, and nothing else of the dump."""
        if self.doubt:
            doubt = f"{self.doubt}: the file is of several dumps, or was changed; take one dump"
            return DumpPlace("", "", frozenset(), 0, doubt=doubt)
        position, purged, slave = ("".join(self.values.get(each, ())) for each in (_FILE, _PURGED, _SLAVE_POS))
        is_late, gtids = purged in self._behind, "".join((purged or slave).split())
        if position or not purged:
            # behind all rows some programs read GTIDs, which are of another moment than the place
            return DumpPlace(position, "" if purged and is_late else gtids, frozenset(), 0)
        alone = LoneGtids(gtids, self._program, is_late)
        return DumpPlace("", gtids, frozenset(), 0, doubt=alone.doubt, unproved="" if alone.doubt else alone.belief)


def decoded(name: bytes, where: object) -> str:
    """A name of a dump. Raises ConfigError for one that is not UTF-8."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise ConfigError(
            f"--from {where}: expected names in UTF-8, found {name[:64]!r}; dump with --default-character-set=utf8mb4"
        ) from None


def shown_part(text: bytes) -> str:
    """The beginning of a dump's statement, for a message. Of what is no statement nothing: a link in place of a dump
    may lead to any file of this machine, and more people see an error than such a file."""
    if _STATEMENT.match(text) is None:
        return "(no word of SQL)"
    return repr(shown(text[:_SHOWN].decode("utf-8", "replace"))[:90])


def divided(pieces: Iterator[bytes], name: str, delimiter: bytes = b";") -> Iterator[bytes]:
    """A text's statements without their delimiter. Raises ConfigError if it ends inside of one, and for one that no
    server takes."""
    return (text for text, is_statement in texts(pieces, name, delimiter) if is_statement)


def texts(pieces: Iterator[bytes], name: str, delimiter: bytes = b";") -> Iterator[tuple[bytes, bool]]:
    """A text's statements without their delimiter, and what stands between them: blanks and whole comments, in one
    part or more; True: a statement. Raises as ``divided``."""
    # the last line may be a comment without an end
    return _Statements(chain(pieces, [b"\n"]), name, _delimiter=delimiter).all()


@dataclass(slots=True)
class _Statements:
    """Divides a stream of text into statements."""

    pieces: Iterator[bytes]
    name: str
    _text: bytes = b""
    _at: int = 0
    _delimiter: bytes = b";"
    _plain_backslashes: bool = False
    _used: set[bytes] = field(default_factory=set)

    def all(self) -> Iterator[tuple[bytes, bool]]:
        while True:
            for blanks in self._blanks():
                yield blanks, False
            if self._at == len(self._text):
                return
            changed = _DELIMITER.match(self._text, self._at)
            if changed is not None:
                self._use(changed[1])
                self._at = changed.end()
                continue
            yield self._next(), True

    def _use(self, delimiter: bytes) -> None:
        self._used.add(delimiter)
        if len(delimiter) > _LONGEST_DELIMITER or len(self._used) > _DELIMITERS:
            raise ConfigError(
                f"--from {self.name}: expected at most {_DELIMITERS} different delimiters of at most "
                f"{_LONGEST_DELIMITER} bytes, found one more: DELIMITER {shown(delimiter[:20].decode('latin-1'))}; "
                "take a dump of one of the server's programs, which write two (; and ;;)"
            )
        self._delimiter = delimiter

    def _blanks(self) -> Iterator[bytes]:
        while True:
            while (found := _BLANKS.match(self._text, self._at)) is not None:
                self._at = found.end()
                yield found[0]
            # a comment, or the word DELIMITER, may go on in the next piece
            if len(self._text) - self._at >= _BEHIND or not self._more():
                return

    def _next(self) -> bytes:
        while True:
            end = _end_of_statement(self._text, self._at, self._delimiter, self._plain_backslashes)
            if end is not None:
                statement = self._text[self._at : end]
                self._at = end + len(self._delimiter)
                mode = _MODE.match(statement[:200])
                if mode is not None:
                    self._plain_backslashes = b"NO_BACKSLASH_ESCAPES" in mode[1].upper()
                return statement
            # a long statement is not looked at again for every piece
            more = [self._more() for _ in range(max(1, (len(self._text) - self._at) // _PIECE))]
            head = shown_part(self._text[self._at :])
            if True not in more:
                raise ConfigError(
                    f"--from {self.name}: the dump ends inside the statement {head}: it was cut; take a whole one"
                )
            if len(self._text) - self._at > _LARGEST:
                raise ConfigError(
                    f"--from {self.name}: expected statements of at most {_LARGEST:,} bytes, as servers take them, "
                    f"found a longer one, {head}; dump with shorter rows (--net-buffer-length)"
                )

    def _more(self) -> bool:
        piece = next(self.pieces, None)
        if piece is None:
            return False
        self._text, self._at = self._text[self._at :] + piece, 0
        return True


_MODE: Final = re.compile(rb"(?:/\*!\d* )?SET (?:SESSION )?SQL_MODE *= *('[^']*'|@\w+)", re.IGNORECASE)


@functools.lru_cache(maxsize=4 * _DELIMITERS)
def _outside(delimiter: bytes, plain_backslashes: bool) -> re.Pattern[bytes]:
    """What is neither the delimiter nor a long string: as much as is looked at in one step."""
    end = re.escape(delimiter)
    first = re.escape(delimiter[:1])
    short = rb"[^%(quote)b]*+"
    if not plain_backslashes:
        short = rb"[^%(quote)b\\]*+(?:\\.[^%(quote)b\\]*+){0,200}"
    return re.compile(
        rb"(?s:"
        rb"[^'\"`#/\-" + first + rb"]++"
        rb"|'" + short % {b"quote": b"'"} + rb"'"
        rb'|"' + short % {b"quote": b'"'} + rb'"'
        rb"|`[^`]*+`"
        rb"|--(?=\s)[^\n]*+\n|#[^\n]*+\n|/\*(?![!M]).*?\*/"
        rb"|(?!" + end + rb"|--\s|/\*[^!M])[/\-" + first + rb"]"
        rb")" + MANY
    )


def _end_of_statement(text: bytes, at: int, delimiter: bytes, plain_backslashes: bool) -> int | None:
    """Where the delimiter begins behind the statement at ``at``, outside of strings, names and comments; None if the
    text ends before that."""
    outside = _outside(delimiter, plain_backslashes)
    while True:
        found = outside.match(text, at)
        if found is not None:
            at = found.end()
        elif text.startswith(delimiter, at):
            return at
        elif (end := end_of_string(text, at, plain_backslashes=plain_backslashes)) is not None:
            at = end
        else:
            return None


def end_of_string(text: bytes, at: int, *, plain_backslashes: bool) -> int | None:
    """The place behind the string in quotes that begins at ``at``; None if there is none, or it does not end."""
    quote = text[at : at + 1]
    if quote not in _INSIDE:
        return None
    if plain_backslashes:
        return text.find(quote, at + 1) + 1 or None
    at += 1
    while (found := _INSIDE[quote].match(text, at)) is not None:
        at = found.end()
    return at + 1 if text.startswith(quote, at) else None


def _plain(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece
