"""A logged text as both servers read it: ``as_read_by_source`` gives what the source has executed, and nothing else.

Servers read one text differently. ``/*!80023 ... */`` is SQL to a MySQL server of that version or newer, and a comment
to older ones and to MariaDB, which also takes ``/*!50700`` to ``/*!99999`` for comments; ``/*M! ... */`` is SQL to
MariaDB and a comment to MySQL; ``/*+ ... */`` sets variables on a MySQL server that knows SET_VAR. Whoever may write
one table of a source could therefore have a target of the other family execute anything. So conditional comments are
resolved by the rules of the source, family and version: those that it has executed are unwrapped, those that it has
skipped are removed, and so are ordinary comments that are none to the target. What is left has no condition, and the
target's rules must give the very same pieces.

Rules: ``MYSQLlex`` in MySQL's ``sql/sql_lex.cc``, ``Lex_input_stream::lex_one_token`` in MariaDB's; tried on MySQL 9.7,
MariaDB 10.5, 10.11 and 11.8 (``tests/trials/test_readings.py``). Both look at bytes, by the client's character set:
inside quotes and names a character of several bytes is skipped as a whole, in comments it is not.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import field
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext
from binlane.sql.charset import client_charset, definition_context, dialect_of, has_eight_bits, multibyte_form
from binlane.sql.other_family import LOGGED, WITHOUT_EFFECT

Version = tuple[int, int, int]


class AmbiguousTextError(ValueError):
    """The target would read another statement than the source has executed. The message is a part of an error's."""


class UntakenTextError(AmbiguousTextError):
    """A text that no server takes: a quote or a comment has no end, or a backslash stands outside of quotes."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The rules by which one server splits texts into pieces."""

    flavor: Flavor
    version: Version

    @property
    def number(self) -> int:
        """The version as conditional comments have it."""
        major, minor, patch = self.version
        return major * 10_000 + minor * 100 + patch

    @property
    def knows_hints_that_set(self) -> bool:
        """Whether ``/*+ SET_VAR(...) */`` sets a variable."""
        return self.flavor is Flavor.MYSQL and self.version >= _SINCE_SET_VAR

    def executes(self, number: bytes, is_marked: bool) -> bool:
        """Whether it executes a comment for servers from version ``number`` on; ``is_marked``: with M."""
        if self.flavor is Flavor.MYSQL or is_marked:
            return int(number) <= self.number
        return int(number) <= self.number and not _MYSQL_S[0] <= int(number) <= _MYSQL_S[1]


_SINCE_SET_VAR: Final = (8, 0, 3)
_NO_SIX_DIGITS: Final = (8, 0, 0)
_SINCE_SIX_DIGITS: Final = (8, 1, 0)
"""MySQL 8.1 reads six digits in front of a blank (https://dev.mysql.com/blog-archive/are-you-ready-for-mysql-10/), and
5.7 five; from which patch of 8.0 on six were read as well is not known."""
_SINCE_DOLLAR_QUOTES: Final = (9, 0, 0)
_MYSQL_S: Final = (50_700, 99_999)
"""The versions that MariaDB leaves to MySQL."""
_SUSPECT: Final = re.compile(rb"/\*|--[\x80-\xff]|\\[\x80-\xff]")
"""Occurs in every text that needs a closer look."""
_LATER: Final = re.compile(rb"M? \d{5,6}(?!\d)")
"""The beginning of a comment that a server has skipped: in its log a blank stands in place of the exclamation mark."""
_SET_VAR: Final = re.compile(rb"\bSET_VAR\s*\(\s*(?P<name>[`\w]+)", re.I)
_LETTER: Final = b"\xff"
_LETTERS: Final = bytes(range(128)) + _LETTER * 128
_NO_LETTERS: Final = bytes(range(128)) + b" " * 128
"""In a character set of one byte any of these may be a blank."""
_HINTED: Final = re.compile(rb"(?:\A|[^\w$@.`\"'\x80-\xff])(?:SELECT|INSERT|REPLACE|UPDATE|DELETE)\Z", re.I)
"""Behind these verbs MySQL reads a hint, if nothing but blanks is in between."""
_BLANKS: Final = b" \t\n\r\f\v" + bytes(range(0x80, 0x100))
"""Bytes that may be a blank in a client's character set."""
_HINT_ENDS: Final = re.compile(rb"/\*\+(?:'[^']*'|\"[^\"]*\"|`[^`]*`|(?!\*/)[^'\"`])*\*/", re.S)
_UNENCRYPTED: Final = re.compile(rb"\s*+(?:DEFAULT\s++)?ENCRYPTION\s*+(?:=\s*+)?(['\"])N\1\s*+", re.I)
"""A clause of MySQL's dumps, which says what every server does."""
_WAY_ON: Final = (
    "(write it without that, or log such changes as rows: binlog_format=MIXED or ROW; for this one, skip it and run on "
    "the target what the source has executed)"
)
_WAY_ON_OF_HINT: Final = (
    "(let the source SET it in the session instead, or log such statements as rows: binlog_format=MIXED or ROW)"
)
_QUOTES: Final = b"'\"`"
_QUALIFIES: Final = re.compile(rb"[\s\x80-\xff]*(?:\.|/\*|#|--)")
"""What may follow a name of a database; any byte that is not ASCII may be a blank."""
_READ_BY_MODE: Final = re.compile(rb"[\\\"]|\|\|")
_DEFINES: Final = re.compile(rb"[^A-Za-z]*(?:CREATE|ALTER)\b", re.I)


def _quoted(charset: str, ansi_quotes: bool, no_backslash_escapes: bool) -> bytes:
    """The pattern of what stands in quotes."""
    form = multibyte_form(charset)
    whole = rb"(?!)" if form is None else form.pattern
    escape = rb"(?!)" if no_backslash_escapes else rb"\\."

    def quoted(quote: bytes, escapes: bytes) -> bytes:
        # each byte has one reading, so that nothing is read another way if the closing quote is missing
        one = rb"(?!" + escapes + rb"|" + whole + rb")[\\\x80-\xff]"
        several = rb"[^" + quote + rb"\\\x80-\xff]++"
        inside = rb"|".join((several, escapes, whole, quote * 2, one))
        return quote + rb"(?:" + inside + rb")*" + quote + rb"(?!" + quote + rb")"

    double = quoted(rb'"', rb"(?!)" if ansi_quotes else escape)
    return quoted(rb"'", escape) + rb"|" + double + rb"|" + quoted(rb"`", rb"(?!)")


def _word(charset: str) -> bytes:
    form = multibyte_form(charset)
    whole = rb"(?!)" if form is None else form.pattern
    return rb"(?:" + whole + rb"|[0-9A-Za-z_$\x80-\xff])+"


@functools.cache
def _pieces(charset: str, ansi_quotes: bool, no_backslash_escapes: bool, dollars: bool) -> re.Pattern[bytes]:
    dollar = rb"\$(?P<tag>\w*)\$.*?\$(?P=tag)\$" if dollars else rb"(?!)"
    return re.compile(
        rb"(?P<quoted>" + _quoted(charset, ansi_quotes, no_backslash_escapes) + rb"|" + dollar
        + rb")|(?P<line>(?:--(?=[\x00-\x20\x7f]|\Z)|\#)[^\n]*+)|(?P<unsure>--(?=[\x80-\xff]))"
        + rb"|(?P<open>/\*)|(?P<close>\*/)|(?P<lone>['\"`])|(?P<word>" + _word(charset) + rb")|(?P<end>\0)"
        + rb"|(?P<other>.)",
        re.S,
    )  # fmt: skip


@functools.cache
def _plain_pieces(charset: str, ansi_quotes: bool, no_backslash_escapes: bool) -> re.Pattern[bytes]:
    """The same without comments, which have the only group."""
    return re.compile(
        _quoted(charset, ansi_quotes, no_backslash_escapes) + rb"|(?=[\x80-\xff])" + _word(charset)
        + rb"|[^'\"`#/*\-\\\0$\x80-\xff]++|-(?!-)|/(?!\*)|(?P<other>.)",
        re.S,
    )  # fmt: skip


def as_read_by_source(sql: bytes, context: SessionContext, source: Reader, target: Flavor) -> bytes:
    """The text with every conditional comment resolved as ``source`` did it. Raises AmbiguousTextError."""
    if _SUSPECT.search(sql) is None:
        return sql
    if client_charset(context) == "":
        raise AmbiguousTextError("a text with comments, in a character set that this version does not read,")
    resolved = _Resolution(sql, context, source, target).text()
    # nothing that is left depends on a family or a version
    for reader in (*_all(target), source):
        if _Resolution(resolved, context, reader, target, keeps_hints=True).text() != resolved:
            raise AmbiguousTextError(f"a text that the target would read differently {_WAY_ON}")
    return resolved


def plain_parts(sql: bytes, context: SessionContext, flavor: Flavor) -> list[tuple[int, int]] | None:
    """The places of quoted parts, and of what stands between them; None if more than ``plain_pieces`` is needed: the
    quick way to see that two readings are equal."""
    dialect = dialect_of(context, flavor)
    pieces = _plain_pieces(client_charset(context), dialect.ansi_quotes, dialect.no_backslash_escapes)
    found = list[tuple[int, int]]()
    for match in pieces.finditer(sql):
        if match.lastindex is not None:
            return None
        found.append(match.span())
    return found


def parts_of(sql: bytes, context: SessionContext, source: Reader) -> tuple[str, Sequence[tuple[int, int]]]:
    """What ``source`` executes of a text that a client has sent, for the lexer: without comments, and with one letter
    for all that stands in quotes. And the places in ``sql`` of quoted parts, of comments and of words that are not
    ASCII: where these are equal in two readings, all tokens are. Raises AmbiguousTextError, also for a bracket that may
    begin a name (MSSQL, which comes with ANSI_QUOTES), and UntakenTextError for a text that no server takes."""
    resolution = _Resolution(sql, context, source, source.flavor, keeps_hints=True, is_sent=True)
    return resolution.text().decode("latin-1"), resolution.places


def with_qualifiers_alone(sql: bytes, context: SessionContext, source: Reader) -> bytes:
    """The text with nothing in its quotes, where ``source`` has them, but the names that a dot, or a comment and a dot,
    may follow; as it is if the quotes cannot be told."""
    try:
        _, places = parts_of(sql, context, source)
    except AmbiguousTextError:
        return sql
    names = b'`"' if dialect_of(context, source.flavor).ansi_quotes else b"`"
    kept, behind = list[bytes](), 0
    for begin, end in places:
        is_qualifier = sql[begin] in names and _QUALIFIES.match(sql, end) is not None
        if sql[begin] in _QUOTES and not is_qualifier:
            kept.append(sql[behind : begin + 1])
            behind = end - 1
    return b"".join((*kept, sql[behind:]))


def definition_as_read(text: str, sql_mode: str, source: Reader, target: Flavor) -> str:
    """The same for a definition that ``source`` shows in UTF-8, of an object made under ``sql_mode``. Raises
    AmbiguousTextError."""
    return as_read_by_source(text.encode(), definition_context(sql_mode), source, target).decode()


def has_condition(text: bytes, context: SessionContext, flavor: Flavor) -> bool:
    """Whether two versions of a family could read two statements in the text.

    A server resolves the conditional comments of a program before it stores the text, so none that it shows has one
    (tried on both families).
    """
    if _SUSPECT.search(text) is None:
        return False
    if client_charset(context) == "":
        return True
    try:
        return any(_Resolution(text, context, each, flavor, keeps_hints=True).text() != text for each in _all(flavor))
    except AmbiguousTextError:
        return True


def _all(flavor: Flavor) -> tuple[Reader, Reader]:
    """The rules of a family's first and last version."""
    return Reader(flavor, (0, 0, 0)), Reader(flavor, (99, 99, 99))


@dataclass(slots=True)
class _Resolution:
    sql: bytes
    context: SessionContext
    source: Reader
    target: Flavor
    keeps_hints: bool = False
    is_sent: bool = False
    """As for ``parts_of``."""
    places: list[tuple[int, int]] = field(default_factory=list)
    """Of quoted parts, comments and words that are not ASCII."""

    def text(self) -> bytes:
        dialect = dialect_of(self.context, self.source.flavor)
        charset = client_charset(self.context)
        dollars = self.source.flavor is Flavor.MYSQL and self.source.version >= _SINCE_DOLLAR_QUOTES
        pieces = _pieces(charset, dialect.ansi_quotes, dialect.no_backslash_escapes, dollars)
        found, at, unwrapped = bytearray(), 0, None
        while at < len(self.sql):
            match = pieces.match(self.sql, at)
            assert match is not None
            kind, at = match.lastgroup, match.end()
            if kind == "open":
                comment, at, opens = self._comment(match.start())
                if self.is_sent:
                    self.places.append((match.start(), at))
                    comment = b" "
                unwrapped = len(found) + len(comment) if opens else unwrapped
                found += comment
            elif kind == "close" and unwrapped is not None:
                self._leave_out(found, unwrapped)
                found += b" "
                unwrapped = None
            elif kind == "close":
                # two operators, and the second may begin a comment
                found += b"*"
                at -= 1
            elif kind == "lone":
                raise UntakenTextError(f"a text with comments and a quote without an end {_WAY_ON}")
            elif kind == "unsure" and has_eight_bits(charset):
                raise AmbiguousTextError('"--" in front of a character that is a blank in some character sets')
            elif kind == "end":
                raise AmbiguousTextError(f"a text with a byte 0, behind which servers read nothing {_WAY_ON}")
            elif self.is_sent:
                found += self._neutral(match, kind or "", charset)
            else:
                if kind == "quoted" and not dialect.no_backslash_escapes:
                    _check_escapes(match.group(), charset)
                found += match.group()
        if unwrapped is not None:
            raise UntakenTextError(f"a version comment without an end {_WAY_ON}")
        return bytes(found)

    def _neutral(self, match: re.Match[bytes], kind: str, charset: str) -> bytes:
        """A piece with nothing in its quotes, and no letter but those of ASCII and one other."""
        piece = match.group()
        if kind == "quoted":
            self.places.append(match.span())
            return piece[:1] + b"x" + piece[:1]
        if kind == "line":
            self.places.append(match.span())
            return b" "
        if kind == "word" and not piece.isascii():
            self.places.append(match.span())
            form = multibyte_form(charset)
            letters = piece if form is None else form.sub(_LETTER, piece)
            return letters.translate(_NO_LETTERS if has_eight_bits(charset) else _LETTERS)
        if piece == b"\\" and not self.sql.startswith(b"N", match.end()):
            raise UntakenTextError(f"a text with a backslash outside of quotes {_WAY_ON}")
        if piece == b"[" and self.source.flavor is Flavor.MARIADB and self._has_ansi_quotes:
            raise AmbiguousTextError(f"a bracket, in which the sql_mode MSSQL has a name, outside of quotes {_WAY_ON}")
        return piece

    @property
    def _has_ansi_quotes(self) -> bool:
        return dialect_of(self.context, self.source.flavor).ansi_quotes

    def _comment(self, start: int) -> tuple[bytes, int, bool]:
        """What to send of the comment at ``start``, where the text goes on, and whether its content is SQL."""
        marker = _MARKERS[self.source.flavor].match(self.sql, start)
        if marker is not None:
            number = self._number(marker.end())
            if not number or self.source.executes(number, marker["marked"] != b""):
                return b" ", marker.end() + len(number), True
            return b" ", self._end(marker.end(), nested=True), False
        end = self._end(start + 2, nested=False)
        comment = self.sql[start:end]
        if comment.startswith(b"/*+"):
            return self._hint(comment, start), end, False
        if b"/*" in comment[2:] and _LATER.match(comment, 2) is not None:
            raise AmbiguousTextError(
                f"a comment for later versions that the source has skipped, with another one inside {_WAY_ON}"
            )
        is_condition = _MARKERS[self.target].match(comment) is not None
        return b" " if is_condition else comment, end, False

    def _number(self, at: int) -> bytes:
        """The version at the beginning of a conditional comment: 5 or 6 digits; b"" if there is none."""
        digits = re.compile(rb"\d{0,6}").match(self.sql, at)
        found = b"" if digits is None else digits.group()
        if self.source.flavor is Flavor.MYSQL and len(found) == 6:
            has_blank, version = self.sql[at + 6 : at + 7].isspace(), self.source.version
            if has_blank and _NO_SIX_DIGITS <= version < _SINCE_SIX_DIGITS:
                raise AmbiguousTextError(f"a version comment of six digits, of which MySQL 8.0 may read five {_WAY_ON}")
            return found if has_blank and version >= _SINCE_SIX_DIGITS else found[:5]
        return found if len(found) >= 5 else b""

    def _end(self, at: int, *, nested: bool) -> int:
        """The index behind the comment whose content begins at ``at``. A skipped one may have comments inside."""
        while (match := _IN_COMMENT[nested].search(self.sql, at)) is not None:
            at = match.end()
            if match.group() == b"*/":
                return at
            at = self._end(at, nested=False)
        raise UntakenTextError(f"a comment without an end {_WAY_ON}")

    def _hint(self, comment: bytes, start: int) -> bytes:
        """The hint, if the target reads it as the source did; a blank, if it has no influence on what is changed."""
        if self.keeps_hints:
            return comment
        if not self.source.knows_hints_that_set or _HINTED.search(self.sql[:start].rstrip(_BLANKS)[-16:]) is None:
            return b" "
        whole = _HINT_ENDS.match(comment)
        if whole is None or whole.end() != len(comment):
            raise AmbiguousTextError(f"an optimizer hint with a quote that it does not close {_WAY_ON}")
        names = {match["name"].strip(b"`").decode().lower() for match in _SET_VAR.finditer(comment)}
        around = self.sql[:start] + self.sql[start + len(comment) :]
        if "sql_mode" in names and _READ_BY_MODE.search(around) is not None:
            # the log has the hint's mode, and the text was read in the session's
            raise AmbiguousTextError(f'a text with ", \\ or || and a hint that sets sql_mode {_WAY_ON_OF_HINT}')
        if self.target is Flavor.MYSQL:
            return comment
        without_effect = _OF_SPEED if _DEFINES.match(self.sql) is not None else _OF_SPEED | _LOGGED
        if decisive := sorted(names - without_effect):
            raise AmbiguousTextError(
                f"an optimizer hint that sets {decisive[0]}, which MariaDB does not do, {_WAY_ON_OF_HINT}"
            )
        return b" "

    def _leave_out(self, found: bytearray, start: int) -> None:
        """Remove the unwrapped content from ``start`` on, if it says what a target of the other family does anyway."""
        if self.target is not self.source.flavor and _UNENCRYPTED.fullmatch(found, start) is not None:
            del found[start:]


def _check_escapes(quoted: bytes, charset: str) -> None:
    """Raise AmbiguousTextError for a backslash in front of a character of several bytes: servers escape its first byte
    alone, and the second begins a character with what follows, or escapes it."""
    form = multibyte_form(charset)
    if form is None or b"\\" not in quoted:
        return
    for match in re.finditer(rb"\\(?P<character>" + form.pattern + rb")|\\.|" + form.pattern, quoted, re.S):
        if match["character"] is not None:
            raise AmbiguousTextError(f"a backslash in front of a {charset} character of several bytes {_WAY_ON}")


_IN_COMMENT: Final = {True: re.compile(rb"\*/|/\*"), False: re.compile(rb"\*/")}
_MARKERS: Final = {
    Flavor.MYSQL: re.compile(rb"/\*(?P<marked>)!"),
    Flavor.MARIADB: re.compile(rb"/\*(?P<marked>M?)!"),
}
"""The beginning of a conditional comment."""
_OF_SPEED: Final = WITHOUT_EFFECT | {
    *("optimizer_switch", "optimizer_prune_level", "optimizer_search_depth", "max_execution_time", "big_tables"),
    *("bulk_insert_buffer_size", "end_markers_in_json", "eq_range_index_dive_limit", "internal_tmp_mem_storage_engine"),
    *("max_seeks_for_key", "range_alloc_block_size", "range_optimizer_max_mem_size", "sql_buffer_result"),
    *("tmp_table_size", "use_secondary_engine", "secondary_engine_cost_threshold", "print_identified_with_as_hex"),
}
"""Variables that SET_VAR can set and that decide how fast a statement runs, not what it changes."""
_LOGGED: Final = LOGGED | {"sql_mode", "timestamp", "sql_auto_is_null"}
"""Variables that the log has with a statement, as its hint has set them (seen on 9.7)."""
