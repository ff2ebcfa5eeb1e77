"""LOAD DATA in statement format: the blocks of its file, and its statement as LOAD DATA LOCAL.

A server logs the file as BEGIN_LOAD_QUERY and APPEND_BLOCK events of one file id, and behind them the statement as
EXECUTE_LOAD_QUERY, or DELETE_FILE if nothing was loaded. If the table has no transactions and one of its triggers
changes a table with them, the file is a transaction of its own, and the statement is logged when the session commits:
``LaterLoads`` finds the file in the statement's segment, and ``source.load_files`` keeps both in one segment.

A replica writes the file to disk and puts its path into the statement, at the offsets that the event names (MySQL
``Execute_load_query_log_event::do_apply_event``, ``sql/log_event.cc``). binlane puts a LOCAL file name there, for which
``apply.rows.load_data`` serves the blocks.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from binlane.binlog.events import ExecuteLoadQuery, FileBlock, FileDeletion, Query, parse_body
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.query import Duplicates
from binlane.binlog.reader import LogReader
from binlane.binlog.types.collations import UTF8MB4_GENERAL_CI
from binlane.binlog.wire import BufferOffset, EventType, RawEvent
from binlane.errors import TruncatedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext
from binlane.sql.charset import has_plain_backslashes, is_utf8_client
from binlane.sql.server_composed import QUOTED_PART

FILE_NAME: Final = "binlane"
"""The file name that the target asks for; no such file exists."""
_WORDS: Final[Mapping[Duplicates, bytes]] = {
    Duplicates.ERROR: b"",
    Duplicates.IGNORE: b" IGNORE",
    Duplicates.REPLACE: b" REPLACE",
}
_XML: Final = re.compile(rb"\sLINES TERMINATED BY '<[^']*>'")
_LITERAL: Final = rb"'(?:[^'\\]|\\.)*'"
_SEPARATORS: Final = re.compile(
    rb" FIELDS TERMINATED BY %b(?: OPTIONALLY)? +ENCLOSED BY %b ESCAPED BY (?P<escape>%b)"
    rb" LINES(?: STARTING BY %b)? TERMINATED BY %b" % ((_LITERAL,) * 5),
    re.DOTALL,
)
"""The clauses that the server composes, whatever the client's text was: with all separators, and with backslashes,
whatever the session's sql_mode is. The rest of the statement is the client's text, or has no literals."""
_NAMES: Final = re.compile(rb"(?:" + QUOTED_PART + rb"|[^`\"])*?(?: SET (?=\S)|\Z)", re.DOTALL)
"""Columns and variables behind those clauses, quoted, under ANSI_QUOTES in double quotes, or not at all."""
_ESCAPED: Final[Mapping[bytes, bytes]] = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
"""What the servers write behind a backslash (``pretty_print_str``); other bytes stand for themselves."""

_WITH_CHARSET: Final = re.compile(rb"\b_\w+\s*(?:'[^']*[\x80-\xff]|\"[^\"]*[\x80-\xff])")
"""A literal with a character set of its own: _latin1'...'."""
_LOAD_ENDS: Final = (EventType.EXECUTE_LOAD_QUERY, EventType.DELETE_FILE)
_LOAD_EVENTS: Final = frozenset({EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK, *_LOAD_ENDS})


class LaterLoads:
    """The files of a log, or of a segment, whose statement may be in a later transaction than their blocks.

    Found by reading all the log's events at the first question; a log without such files is not read.
    """

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._events: dict[int, list[RawEvent]] | None = None
        """By file id, in the log's order."""

    def begun(self, file_id: int, offset: BufferOffset) -> tuple[memoryview, ...] | None:
        """The blocks before ``offset`` of a file that is open there; None if none is."""
        pieces: list[memoryview] | None = None
        for event in self._of(file_id):
            if event.offset >= offset:
                break
            code = event.header.type_code
            if code == EventType.BEGIN_LOAD_QUERY:
                pieces = [_block(event, self._reader).data]
            elif code == EventType.APPEND_BLOCK and pieces is not None:
                pieces.append(_block(event, self._reader).data)
            elif code in _LOAD_ENDS:
                pieces = None
        return None if pieces is None else tuple(pieces)

    def is_ended_after(self, file_id: int, offset: BufferOffset) -> bool:
        """Whether a file that is open at ``offset`` is loaded or dropped behind it."""
        codes = (event.header.type_code for event in self._of(file_id) if event.offset > offset)
        return next((code for code in codes if code != EventType.APPEND_BLOCK), None) in _LOAD_ENDS

    def _of(self, file_id: int) -> Sequence[RawEvent]:
        if self._events is None:
            self._events = {}
            # of a log that is still being written, everything before its incomplete end
            with contextlib.suppress(TruncatedEventError):
                for event in self._reader.events():
                    found = file_of(event, self._reader.format, self._reader.name)
                    if found is not None:
                        self._events.setdefault(found, []).append(event)
        return self._events.get(file_id, ())


def file_of(event: RawEvent, log_format: FormatDescription, name: str) -> int | None:
    """The file id that an event of a LOAD DATA names; None for every other event. Raises BinlogError."""
    if event.header.type_code not in _LOAD_EVENTS:
        return None
    said = parse_body(event, log_format, name)
    assert isinstance(said, FileBlock | FileDeletion | ExecuteLoadQuery)
    return said.file_id


def _block(event: RawEvent, reader: LogReader) -> FileBlock:
    block = parse_body(event, reader.format, reader.name)
    assert isinstance(block, FileBlock)
    return block


@dataclass(slots=True)
class LoadedFiles:
    """The open files of one transaction, by file id, until their statement follows."""

    later: LaterLoads | None = None
    """The files of the whole log; None: a file's blocks and its statement must be in one transaction."""
    _pieces: dict[int, list[memoryview]] = field(default_factory=dict)

    def waiting(self, end: BufferOffset) -> Iterator[int]:
        """Ids of files that have no statement, neither so far nor behind ``end``, the offset of the last event."""
        return (each for each in self._pieces if self.later is None or not self.later.is_ended_after(each, end))

    def begin(self, file_id: int, data: memoryview) -> None:
        """Begin a file. Raises ValueError if it has begun before."""
        if file_id in self._pieces:
            raise ValueError(f"file {file_id} of a LOAD DATA, which begins twice in this transaction,")
        self._pieces[file_id] = [data]

    def append(self, file_id: int, data: memoryview, offset: BufferOffset) -> None:
        """Add the block at ``offset``. Raises ValueError if the file does not begin before it."""
        self._known(file_id, offset).append(data)

    def take(self, file_id: int, offset: BufferOffset) -> tuple[memoryview, ...]:
        """Remove the whole file: for its statement at ``offset``, or to drop it. Raises ValueError as ``append``."""
        self._known(file_id, offset)
        return tuple(self._pieces.pop(file_id))

    def _known(self, file_id: int, offset: BufferOffset) -> list[memoryview]:
        if file_id not in self._pieces:
            begun = None if self.later is None else self.later.begun(file_id, offset)
            if begun is None:
                where = "this transaction" if self.later is None else "this segment of the log"
                raise ValueError(
                    f"file {file_id} of a LOAD DATA that does not begin in {where} (a file's blocks may be logged "
                    "before its statement if a trigger of a table without transactions changes one with them)"
                )
            self._pieces[file_id] = list(begun)
        return self._pieces[file_id]


def local_query(event: ExecuteLoadQuery, pieces: Iterable[memoryview], flavor: Flavor) -> Query:
    """The statement with LOCAL and the served file name, in one character set and for its session's sql_mode.

    Raises ValueError if the log does not allow an exact one. ``pieces``: of its file.
    """
    sql, start, end = event.query.sql, event.file_name_start, event.file_name_end
    if not re.fullmatch(rb" (?:LOCAL )?INFILE '.*'(?: IGNORE| REPLACE)? INTO", sql[start:end], re.DOTALL):
        raise ValueError(f"a LOAD DATA without a file name at bytes {start}..{end} of its statement")
    if _XML.search(sql, end):
        # both servers log LOAD XML as LOAD DATA with the tag, and their replicas load the tags as text
        raise ValueError("LOAD XML, which servers log as LOAD DATA with LINES TERMINATED BY a tag,")
    context = event.query.context
    plain = has_plain_backslashes(context)
    if plain and (found := _SEPARATORS.search(sql, end)) is not None and found["escape"] == rb"'\\'":
        _check_escapes(pieces)
    spelled = functools.partial(_in_hexadecimal, plain_backslashes=plain)
    tail = _SEPARATORS.sub(lambda clauses: re.sub(_LITERAL, spelled, clauses[0], flags=re.DOTALL), sql[end:], count=1)
    name = b" LOCAL INFILE '" + FILE_NAME.encode() + b"'"
    whole = sql[:start] + name + _WORDS[event.duplicates] + b" INTO" + tail
    expressions = _expressions(sql, end)
    composed = tail[: len(tail) - len(expressions)]
    return replace(event.query, sql=whole, context=_in_one_charset(composed, expressions, context, flavor))


def _check_escapes(pieces: Iterable[memoryview]) -> None:
    """Raises ValueError for a file with backslashes: the server logs ESCAPED BY a backslash also where the client gave
    no escape character, and under NO_BACKSLASH_ESCAPES only a given one is used."""
    if any(b"\\" in bytes(piece) for piece in pieces):
        raise ValueError(
            "a LOAD DATA of a file with backslashes, which the source logged with escapes that its sql_mode does not "
            "have (load it with FIELDS ESCAPED BY '' or without NO_BACKSLASH_ESCAPES)"
        )


def _expressions(sql: bytes, end: int) -> bytes:
    """What stands behind SET, in a statement whose INTO ends at ``end``."""
    clauses = _SEPARATORS.search(sql, end)
    names = _NAMES.match(sql, end if clauses is None else clauses.end())
    return b"" if names is None else sql[names.end() :]


def _in_one_charset(composed: bytes, expressions: bytes, context: SessionContext, flavor: Flavor) -> SessionContext:
    """The context with the character set of the text behind INTO: names are logged in UTF-8, and on MariaDB the
    expressions behind SET as well; on MySQL these are logged in the session's character set. Raises ValueError for a
    text in both."""
    if is_utf8_client(context) or (composed + expressions).isascii():
        return context
    if flavor is Flavor.MYSQL and composed.isascii():
        return context
    # the bytes of a literal with a character set are not converted
    is_whole = expressions.isascii() if flavor is Flavor.MYSQL else _WITH_CHARSET.search(expressions) is None
    try:
        (composed + expressions).decode()
    except UnicodeDecodeError:
        is_whole = False
    if not is_whole:
        raise ValueError(
            "a LOAD DATA, which the source logged in another character set than the rest (load it with SET NAMES "
            "utf8mb4)"
        )
    return replace(context, charset_client=UTF8MB4_GENERAL_CI)


def _in_hexadecimal(literal: re.Match[bytes], *, plain_backslashes: bool) -> bytes:
    """A separator as a literal that is read alike in every sql_mode and character set."""
    if literal[0].isascii() and not (plain_backslashes and b"\\" in literal[0]):
        return literal[0]
    text = re.sub(rb"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), literal[0][1:-1], flags=re.DOTALL)
    return b"X'" + text.hex().encode() + b"'"
