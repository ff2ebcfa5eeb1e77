"""The bytes of a logged statement -> text whose ASCII characters are exactly those that the source's lexer saw.

In sjis, cp932, big5, gbk, gb18030 and euckr the second byte of a character may look like a letter, a backslash or a
quote. The servers skip a character by the form of its bytes, whether it is assigned or not (``my_ismbchar``,
``strings/ctype-*.c``), and so does this module. A character without a certain Unicode code point becomes U+FFFD:
harmless in a literal; in a name, U+FFFD makes the statement UNKNOWN.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from binlane.binlog.types.charsets import eight_bit_characters, wide_codec
from binlane.binlog.types.collations import charset_id, charset_name, collation_name
from binlane.model import Flavor, SessionContext
from binlane.sql.parse.lexer import UNDECODED, Dialect, Token, Unreadable, lex

_HIDDEN: Final = "\ufffd"
_UTF8: Final = frozenset({"utf8mb3", "utf8mb4", "binary"})
"""Character sets read as UTF-8. In ``binary`` the bytes above 0x7f have no meaning; in names they are taken for
UTF-8."""
_GBK: Final = rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]"
_SJIS: Final = rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]"
_FORMS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "big5": re.compile(rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]"),
    "cp932": re.compile(_SJIS),
    "euckr": re.compile(rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]"),
    "gb18030": re.compile(_GBK + rb"|[\x81-\xfe][0-9][\x81-\xfe][0-9]"),
    "gbk": re.compile(_GBK),
    "sjis": re.compile(_SJIS),
}
"""The multi-byte characters of each character set whose second byte may be ASCII."""
_LETTER: Final = b"\xff"
_SWE7: Final = "swe7"
"""Swedish letters in place of some characters of ASCII. To a client of it ```a.`{vil`()``` calls ``ävil``, and a
backslash is a letter, which escapes a quote inside a literal (tried on both servers). Names are looked for in the bytes
of statements, too, so a text with one of these letters is read only if it stands in a literal or a comment."""
_SWE7_LETTERS: Final = str.maketrans("@[\\]^`{|}~", "ÉÄÖÅÜéäöåü")
_IN_NAME: Final = rf"[^@\[\\\]^`{{|}}~\x7f{_HIDDEN}\"]*"
_SWE7_PIECE: Final = re.compile(
    r"(?P<literal>'[^'\\]*')|/\*(?!M?!).*?\*/|(?:--(?=[\x00-\x20\x7f])|\#)[^\n]*"
    rf"|`{_IN_NAME}`(?!`)|\"{_IN_NAME}\"(?!\")|(?P<unread>/\*|[\[\\\]^`{{}}~\x7f{_HIDDEN}'\"])",
    re.S,
)
"""The at sign and the vertical bar remain what they are outside of quotes. A conditional comment is none to one of the
servers, and a text in double quotes is a name in some modes."""
_MASK: Final = bytes(range(128)) + _LETTER * 128
_FIRST_WORD: Final = re.compile(rb"[\s(]*[A-Za-z]*")


_ANSI_QUOTES: Final = 0x4
_NO_BACKSLASH_ESCAPES: Final = 0x100000
_ORACLE: Final = 0x200
"""Bits of the logged sql_mode, the same on both servers."""
MODES_OF_TEXT: Final = {"ANSI_QUOTES": _ANSI_QUOTES, "NO_BACKSLASH_ESCAPES": _NO_BACKSLASH_ESCAPES}
"""The modes that decide how a text is split into tokens."""
_ANSI: Final = frozenset({"ANSI_QUOTES", "ANSI", "ORACLE", "MSSQL", "DB2", "POSTGRESQL", "MAXDB"})
"""Modes in which a double quote begins a name, also by what a server makes of them."""


def has_plain_backslashes(context: SessionContext) -> bool:
    """Whether a backslash in a literal of that session stands for itself (sql_mode NO_BACKSLASH_ESCAPES)."""
    return bool((context.sql_mode or 0) & _NO_BACKSLASH_ESCAPES)


def is_utf8_client(context: SessionContext) -> bool:
    """Whether statements of that session are read as UTF-8."""
    return _charset(context.charset_client) in _UTF8


def dialect_of(context: SessionContext, flavor: Flavor) -> Dialect:
    """The lexer's rules for a statement of that session. Names of combinations (ANSI, MSSQL ...) decide nothing: a
    server logs the modes that it has made of one, and no session is sent another (``sql_modes.settable``)."""
    mode = context.sql_mode or 0
    is_oracle = flavor is Flavor.MARIADB and bool(mode & _ORACLE)
    return Dialect(flavor, bool(mode & _ANSI_QUOTES), has_plain_backslashes(context), is_oracle)


def dialect_in(sql_mode: str, flavor: Flavor) -> Dialect:
    """The same for a definition, of the sql_mode that a catalogue shows with it."""
    return dialect_of(definition_context(sql_mode), flavor)


def definition_context(sql_mode: str, client: str = "utf8mb4") -> SessionContext:
    """What decides how the text of a definition is read, of the sql_mode and the client's character set that a
    catalogue shows with it."""
    modes = sql_mode.upper().split(",")
    quotes = 0 if _ANSI.isdisjoint(modes) else _ANSI_QUOTES
    escapes = _NO_BACKSLASH_ESCAPES if "NO_BACKSLASH_ESCAPES" in modes else 0
    oracle = _ORACLE if "ORACLE" in modes else 0
    return SessionContext(sql_mode=quotes | escapes | oracle, charset_client=charset_id(client.lower()))


def client_charset(context: SessionContext) -> str:
    """The character set of that session's statements; empty if its number is not known."""
    return _charset(context.charset_client)


def multibyte_form(charset: str) -> re.Pattern[bytes] | None:
    """The characters of a client character set whose second byte may be ASCII; None if it has none."""
    return _FORMS.get(charset)


def has_eight_bits(charset: str) -> bool:
    """Whether each byte is a character, also those above 0x7f."""
    return eight_bit_characters(charset) is not None


def is_read(sql: bytes, context: SessionContext) -> bool:
    """Whether the lexer can read a statement in its client's character set."""
    name = _charset(context.charset_client)
    return name in _UTF8 or (name == _SWE7 and _is_read_in_swe7(sql)) or _decoder(name) is not None


def decoded(sql: bytes, context: SessionContext) -> str:
    """A statement's text; U+FFFD for bytes without a certain character.

    If it cannot be read (``is_read``): the first word, then U+FFFD in place of the rest.
    """
    name = _charset(context.charset_client)
    if name in _UTF8:
        return sql.decode("utf-8", "replace")
    if name == _SWE7 and _is_read_in_swe7(sql):
        return _SWE7_PIECE.sub(_with_letters, sql.decode("ascii", "replace"))
    decode = _decoder(name)
    if decode is not None:
        return sql.decode("ascii") if sql.isascii() else decode(sql)
    match = _FIRST_WORD.match(sql)
    return (b"" if match is None else match.group()).decode("ascii") + " " + _HIDDEN


def tokens_in(statement: bytes, context: SessionContext, flavor: Flavor) -> list[Token]:
    """The tokens of a definition's bytes, as a server splits them that runs it in this session: the one door for
    definitions of others. In another character set or sql_mode a name may end elsewhere, and code looks like a comment.

    A character that is not certain is an ``x`` (``UNDECODED`` in ``decoded``). Raises Unreadable.
    """
    if not is_read(statement, context):
        raise Unreadable("a client character set that is not read")
    tokens: list[Token] = []
    lex(decoded(statement, context).replace(UNDECODED, "x"), dialect_of(context, flavor), tokens)
    return tokens


def _is_read_in_swe7(sql: bytes) -> bool:
    return all(match["unread"] is None for match in _SWE7_PIECE.finditer(sql.decode("ascii", "replace")))


def _with_letters(match: re.Match[str]) -> str:
    text = match.group()
    return text if match["literal"] is None else text.translate(_SWE7_LETTERS)


def carried(sql: bytes, client: str) -> str | None:
    """A definition's text, of bytes in its client's character set; None if ``in_bytes`` would not give these back."""
    try:
        text = _every_byte(sql, client)
        return text if in_bytes(text, client) == sql else None
    except (UnicodeError, LookupError):
        return None


def _every_byte(sql: bytes, client: str) -> str:
    if (characters := eight_bit_characters(client)) is not None:
        return codecs.charmap_decode(sql, "strict", characters)[0]
    return sql.decode(_codec(client))


def in_bytes(text: str, client: str) -> bytes:
    """The text in a client's character set. Raises UnicodeError or LookupError where ``carried`` gives None."""
    if (characters := eight_bit_characters(client)) is not None:
        return codecs.charmap_encode(text, "strict", {ord(each): byte for byte, each in enumerate(characters)})[0]
    return text.encode(_codec(client))


def _codec(client: str) -> str:
    if client in _UTF8 or client in ("", "utf8"):
        return "utf-8"
    if (known := wide_codec(client)) is None:
        raise LookupError(client)
    return known[0]


def masked(sql: bytes, charset: str) -> str:
    """A text with one character for each byte of the statement, so that offsets in both are equal.

    ASCII characters stay; a letter replaces every other byte, and every byte of a multi-byte character that looks like
    a quote or a backslash.
    """
    form = _FORMS.get(charset)
    if form is not None:
        sql = form.sub(lambda match: _LETTER * len(match.group()), sql)
    return sql.translate(_MASK).decode("latin-1")


def placed(sql: bytes, context: SessionContext) -> tuple[str, Callable[[int], int], Callable[[str], bytes | None]]:
    """A text for the lexer; a function from an offset in it to the offset in ``sql``; and a function that encodes a
    name in the statement's character set (None where the character set does not tell how)."""
    name = _charset(context.charset_client)
    if not sql.isascii() and name not in _UTF8:
        return masked(sql, name), lambda at: at, lambda text: text.encode() if text.isascii() else None
    text = sql.decode("utf-8", "surrogateescape")
    starts = (
        [0, *accumulate(len(one.encode("utf-8", "surrogateescape")) for one in text)] if len(text) < len(sql) else None
    )
    spell = (lambda text: text.encode()) if name in _UTF8 else (lambda text: text.encode() if text.isascii() else None)
    return text, (lambda at: at) if starts is None else starts.__getitem__, spell


def _charset(collation_id: int | None) -> str:
    if not collation_id:  # not logged
        return "utf8mb4"
    name = collation_name(collation_id, Flavor.MYSQL)
    return "" if name is None else charset_name(name)


@functools.cache
def _decoder(charset: str) -> Callable[[bytes], str] | None:
    characters = eight_bit_characters(charset)
    if characters is not None:
        if not characters.startswith(bytes(range(128)).decode("ascii")):
            return None  # swe7, in which a letter has the byte of a backslash
        # armscii8 has a second comma, most others a second blank: the lexer does not take these bytes for separators
        table = "".join(
            _HIDDEN
            if byte > 0x7F and (character.isascii() or character.isspace() or character == "\ufffe")
            else character
            for byte, character in enumerate(characters)
        )
        return lambda sql: codecs.charmap_decode(sql, "strict", table)[0]
    known = wide_codec(charset)
    if known is None or codecs.lookup(known[0]).name.startswith(("utf-16", "utf-32")):
        return None  # no server takes one of these for its client's
    handler = _error_handler(charset)
    return functools.partial(_wide, codec=known[0], errors=handler, uncertain=known[1], form=_FORMS.get(charset))


def _wide(sql: bytes, codec: str, errors: str, uncertain: frozenset[str], form: re.Pattern[bytes] | None) -> str:
    text = sql.decode(codec, errors)
    if text.encode(codec, "replace") != sql:
        text = "".join(_respelled_hidden(sql, text, codec, form))
    return text if uncertain.isdisjoint(text) else "".join(_HIDDEN if one in uncertain else one for one in text)


def _respelled_hidden(sql: bytes, text: str, codec: str, form: re.Pattern[bytes] | None) -> Iterator[str]:
    """The characters, with U+FFFD for those that the character set encodes in more than one way."""
    at = 0
    for one in text:
        spelled = b"" if one == _HIDDEN else one.encode(codec, "replace")
        if spelled and sql.startswith(spelled, at):
            at += len(spelled)
            yield one
            continue
        match = None if form is None else form.match(sql, at)
        at = at + 1 if match is None else match.end()
        yield _HIDDEN


def _error_handler(charset: str) -> str:
    """The name of a codec error handler that skips characters unknown to Python by the servers' rules."""
    form, name = _FORMS.get(charset), f"binlane_{charset}"

    def handle(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        match = None if form is None else form.match(error.object, error.start)
        return _HIDDEN, error.start + 1 if match is None else match.end()

    codecs.register_error(name, handle)
    return name
