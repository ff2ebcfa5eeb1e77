"""SQL text -> tokens, by the rules of the servers' own lexers.

Comments are dropped; version comments (``/*!50001 ... */``, MariaDB's ``/*M!100100 ... */``) are unwrapped whatever
their number: a server that skips one writes it into its log as a plain comment (MySQL and MariaDB ``sql/sql_lex.cc``,
"to avoid it being propagated infinitely"). Rows of literals after VALUES and long lists of literals give no tokens:
they contain neither names nor calls, and a statement may have a million literals.

Rules: https://dev.mysql.com/doc/refman/8.4/en/language-structure.html
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from binlane.model import Flavor
from binlane.rename_rules import NAMES_A_FILE, names_a_file


class Unreadable(Exception):  # noqa: N818 - not an error of binlane: it becomes StatementFacts.reason
    """A statement or a part of it was not read exactly. The message is the reason, without names of the statement."""

    def __init__(self, reason: str, word: str = "") -> None:
        """``word``: where reading stopped, as the text has it; empty if that is not known."""
        super().__init__(reason)
        self.word = word


class TokenKind(IntEnum):
    """The kind of a token. Literals keep no text."""

    WORD = 1
    NAME = 2
    """A quoted identifier; its text is the name without quotes."""
    STRING = 3
    NUMBER = 4
    VARIABLE = 5
    """Also the host of an account, with its ``@``: that of ``u@`` alone is empty (MY_LEX_HOSTNAME in both servers'
    ``sql/sql_lex.cc``), and what stands behind a blank is the next word."""
    SYMBOL = 6


class Token(NamedTuple):
    """A token. ``upper`` is empty unless it is a WORD that may be a keyword: servers look none up behind a dot.
    ``gap`` says that a blank or a comment stands before it."""

    kind: TokenKind
    text: str
    upper: str = ""
    gap: bool = True
    omits: bool = False
    """Literals stand behind it that give no tokens: nobody can count rows or values by the tokens there."""
    literal: str = ""
    """A literal text as it is written, with its quotes, behind ``with_numbers`` alone; one with a backslash, which a
    ``sql_mode`` may take for a letter, with its place, so that no other one is equal."""


def is_floating(number: str) -> bool:
    """Whether a literal is a floating-point number: it has an exponent."""
    return "e" in number.lower() and not number.lower().startswith("0x")


class Dialect(NamedTuple):
    """The settings that decide how a text is split into tokens."""

    flavor: Flavor
    ansi_quotes: bool = False
    no_backslash_escapes: bool = False
    oracle: bool = False
    """MariaDB's sql_mode ORACLE, in which some functions are called without parentheses."""


WORD_CHARS: Final = r"0-9A-Za-z_$\x80-\U0010ffff"
"""What an unquoted name may consist of, inside of a pattern's brackets: Python's \\w lacks accents and symbols."""
_ESCAPES: Final = 1_000
_WINDOW: Final = 1 << 17
"""Characters that a repetition of groups is shown at once: ``re`` keeps up to 350 bytes for each round of one until the
match ends, and a statement may have hundreds of millions."""
_MOST_TOKENS: Final = 2_000_000
"""Of a statement; literal rows and long lists of literals have none. Some 200 bytes each."""
_QUOTED: Final = rf"{{q}}[^{{q}}\\]*+(?:(?:\\.|{{q}}{{q}})[^{{q}}\\]*+){{{{0,{_ESCAPES}}}}}{{q}}(?!{{q}})"
_QUOTED_PLAIN: Final = rf"{{q}}[^{{q}}]*+(?:{{q}}{{q}}[^{{q}}]*+){{{{0,{_ESCAPES}}}}}{{q}}(?!{{q}})"
"""A literal with more escapes and doubled quotes is read by ``_literal_end``; no server has a name with as many."""
_NUMBER: Final = rf"""(?:[0-9]++\.[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?
    | [0-9]++[eE][+-]?[0-9]++ | \\N
    | (?:0x[0-9a-fA-F]++|0b[01]++|[0-9]++)(?![{WORD_CHARS}])"""
"""As ``MYSQLlex`` in MySQL's ``sql/sql_lex.cc``, states MY_LEX_NUMBER_IDENT to MY_LEX_REAL: a number with a dot or with
an exponent, and ``\\N``, end with their last character, whatever follows (``1e0FROM t``); others are a part of the word
in which they stand."""
QUALIFIER: Final = re.compile(
    rf"`(?P<quoted>(?:[^`]|``){{1,64}})`\s*\.|(?<![{WORD_CHARS}.`])(?P<plain>(?![0-9])[{WORD_CHARS}]+)\."
)
"""The name of a database, or of a table, in front of another name."""
_SYMBOLS: Final = r"->>|->|:=|<=>|<<|>>|<=|>=|<>|!=|\|\||&&|[-+*/%^&|~!<>=(),.;:?{}]"
UNDECODED: Final = "\ufffd"
"""A decoder writes this in place of undecodable bytes; a name that contains it is not known."""
NO_END: Final = "a quote without an end"
"""The reason of Unreadable for a text that no server takes."""
TOO_MANY_TOKENS: Final = f"more than {_MOST_TOKENS:,} words and signs beside literal rows and long lists of literals"
"""The reason of Unreadable."""
UNREAD_NAME: Final = "a name with bytes that are no certain characters of its character set"
"""The reason of Unreadable for such a name: what stands behind it in a text is not known."""
GLUED_NUMBER: Final = "a number with a letter directly behind it, such as 1e0FROM or 1.e"
"""The reason of Unreadable. Servers take ``1e0FROM`` for a number and a word, which a reader of text does not;
``a 1.e.t`` is ``a.t`` to MySQL, and a syntax error to MariaDB (tried on 9.7 and 10.11)."""
BLANK_IN_NAME: Final = "a name with a no-break space, which is a blank in many character sets"
"""The reason of Unreadable: the catalogue shows a text in UTF-8, whatever its client's character set was."""
NO_SQL: Final = "a character that SQL does not have"
"""The reason of Unreadable for a text that no server takes."""
AMBIGUOUS: Final = frozenset({UNREAD_NAME, GLUED_NUMBER, BLANK_IN_NAME, TOO_MANY_TOKENS})
"""Reasons behind which nothing of a text is known: a server may read other names and verbs there."""
_BETWEEN_DOLLARS: Final = re.compile(r"(?P<string>\$(\w*)\$.*?\$\2\$)", re.DOTALL)
_LETTER: Final = re.compile(rf"[{WORD_CHARS}]")
_NO_BREAK: Final = "\u00a0"
_LINE: Final = r"(?:--(?=[\x00-\x20\x7f]|\Z)|\#)[^\n]*+"
_VERSIONS: Final = {Flavor.MARIADB: r"/\*M?!", Flavor.MYSQL: r"/\*!"}
"""The beginning of a conditional comment."""
_FRONTS: Final = {
    flavor: re.compile(rf"(?:[ \t\n\r\f\v]|(?!{version})/\*.*?\*/|{_LINE}){{1,{_ESCAPES}}}".encode(), re.DOTALL)
    for flavor, version in _VERSIONS.items()
}
_UPPER: Final = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
"""Keywords are ASCII: ``str.upper`` would make one of a long s, too."""
_COMMENTS: Final = frozenset({"comment", "line", "version"})
_KINDS: Final = {
    "word": TokenKind.WORD,
    "string": TokenKind.STRING,
    "number": TokenKind.NUMBER,
    "variable": TokenKind.VARIABLE,
    "symbol": TokenKind.SYMBOL,
}


class _Patterns(NamedTuple):
    token: re.Pattern[str]
    tail: re.Pattern[str]
    """A name directly behind a dot, which may begin with digits."""
    rows: re.Pattern[str]
    """Rows of literals only, each with its comma."""
    literals: re.Pattern[str]
    """64 or more literals, each with its comma."""
    inside: Mapping[str, re.Pattern[str]]
    """What stands in a literal, by its quote."""


@functools.cache
def _patterns(dialect: Dialect) -> _Patterns:
    quoted = _QUOTED_PLAIN if dialect.no_backslash_escapes else _QUOTED
    single, double = quoted.format(q="'"), quoted.format(q='"')
    text = single if dialect.ansi_quotes else f"{single} | {double}"
    names = _QUOTED_PLAIN.format(q="`")
    if dialect.ansi_quotes:
        names += " | " + _QUOTED_PLAIN.format(q='"')
    string = rf"[xXbB]'[0-9a-fA-F]*+' | [nN]{single} | {text}"
    long = "[nN]?'" if dialect.ansi_quotes else "[nN]?'|\""
    version = _VERSIONS[dialect.flavor]
    token = rf"""(?P<space>[ \t\n\r\f\v]++) | (?P<version>{version}(?:\d{{5,6}})?) | (?P<comment>/\*(?s:.*?)\*/)
        | (?P<line>{_LINE}) | (?P<open>/\*) | (?P<close>\*/) | (?P<string>{string}) | (?P<long>{long})
        | (?P<name>{names}) | (?P<variable>@@?(?:{names}|{text}|[{WORD_CHARS}.]++|(?!['"`]))) | (?P<number>{_NUMBER})
        | (?P<word>[{WORD_CHARS}]++) | (?P<symbol>{_SYMBOLS})"""
    calls = r"(?i:NOW|CURRENT_TIMESTAMP|UNIX_TIMESTAMP)\([0-6]?\)"  # no table behind them
    constant = rf"(?i:NULL|DEFAULT|TRUE|FALSE)(?![{WORD_CHARS}])|{calls}"
    literal = rf"(?:(?:_[0-9A-Za-z]+\s*+)?(?:{string})|[-+]?(?:{_NUMBER})|{constant})"
    # to servers, digits and blanks of other alphabets are letters
    compiled = functools.partial(re.compile, flags=re.VERBOSE | re.DOTALL | re.ASCII)
    return _Patterns(
        token=compiled(token),
        tail=compiled(rf"[{WORD_CHARS}]++"),
        rows=compiled(rf"(?:\s*+\(\s*+{literal}\s*+(?:,\s*+{literal}\s*+)*\)\s*+,)+"),
        literals=compiled(rf"(?:\s*+{literal}\s*+,){{64,}}"),
        inside={
            quote: compiled(rf"(?:[^{escape}]++|{quote}{quote}{escaped}){{1,{_ESCAPES}}}")
            for quote in "'\""
            for escape, escaped in [(quote, "") if dialect.no_backslash_escapes else (rf"{quote}\\", r"|\\.")]
        },
    )


def front_length(sql: bytes, flavor: Flavor) -> int:
    """Bytes in front of a statement's first word: blanks and comments, not conditional ones."""
    at = 0
    while (match := _FRONTS[flavor].match(sql, at)) is not None:
        at = match.end()
    return at


def lex(
    sql: str,
    dialect: Dialect,
    into: list[Token],
    places: list[tuple[int, int]] | None = None,
    comments: list[tuple[int, int]] | None = None,
) -> None:
    """Append the tokens of ``sql`` to ``into``; on Unreadable, ``into`` has the tokens before the fault.

    ``places`` gets begin and end of each token in ``sql``, ``comments`` those of each comment, and of the beginning and
    the end of each conditional comment.

    Raises Unreadable for text that is not SQL: an unterminated string or comment, a control character, a name with
    undecodable bytes.
    """
    patterns, at, gap, in_version = _patterns(dialect), 0, True, False
    while at < len(sql):
        if not gap and (tail := _tail(sql, at, into, patterns)) is not None:
            into.append(_named(TokenKind.WORD, tail, gap=False)._replace(upper=""))
            if places is not None:
                places.append((at, at + len(tail)))
            at += len(tail)
            continue
        match = _code_at(sql, at, into, dialect) or patterns.token.match(sql, at)
        group = None if match is None else match.lastgroup
        if match is None or group is None or group == "open":
            raise Unreadable(_fault(sql[at]))
        at = match.end()
        if comments is not None and (group in _COMMENTS or (group == "close" and in_version)):
            comments.append(match.span())
        if group in ("space", "comment", "line"):
            gap = True
        elif group == "version" or (group == "close" and in_version):
            if group == "version" and in_version:
                raise Unreadable("a version comment inside a version comment")
            in_version, gap = group == "version", True
        else:
            at = _append(match, group, gap, into, patterns)
            if places is not None:
                places.append((match.start(), at if group == "long" else match.end()))
            gap = False
    if in_version:
        raise Unreadable("a version comment without an end")


def with_numbers(sql: str, tokens: Sequence[Token], places: Sequence[tuple[int, int]]) -> list[Token]:
    """The tokens of a text, with the text of all numbers, and that of literal texts as ``literal``: a text of SQL is
    no word to whoever reads words."""
    found = list(tokens)
    for at, (token, (begin, end)) in enumerate(zip(tokens, places, strict=True)):
        if token.kind is TokenKind.NUMBER:
            found[at] = token._replace(text=sql[begin:end])
        elif token.kind is TokenKind.STRING:
            text = sql[begin:end]
            found[at] = token._replace(literal=f"{text}{begin}" if "\\" in text else text)
    return found


def _code_at(sql: str, at: int, into: Sequence[Token], dialect: Dialect) -> re.Match[str] | None:
    """The code of a MySQL library or routine in another language, between dollars: ``LANGUAGE JAVASCRIPT AS $js$``.

    Servers before 9.0 have names of dollars, but no statement with these words in front of one.
    """
    if sql[at] != "$" or dialect.flavor is not Flavor.MYSQL:
        return None
    words = [token.upper for token in into[-3:]]
    is_code = words[:1] + words[2:] == ["LANGUAGE", "AS"] and into[0].upper == "CREATE"
    return _BETWEEN_DOLLARS.match(sql, at) if is_code else None


def _tail(sql: str, at: int, into: list[Token], patterns: _Patterns) -> str | None:
    """The word behind ``name.``, which may look like a number (``db.1st``, ``t.1e5``)."""
    if len(into) < 2 or into[-1].text != "." or into[-1].kind is not TokenKind.SYMBOL or into[-1].gap:
        return None
    match = patterns.tail.match(sql, at) if into[-2].kind in (TokenKind.WORD, TokenKind.NAME) else None
    return None if match is None else match.group()


def _is_behind_dot(into: Sequence[Token]) -> bool:
    """Whether a name's dot stands before the next token, and not MariaDB's ``1..2`` of FOR loops, where keywords are.

    As MY_LEX_IDENT_SEP and MY_LEX_IDENT_START in both servers' ``sql/sql_lex.cc``; behind a dot and a blank they look
    keywords up, but their grammar has only names there.
    """
    if not into or into[-1].text != "." or into[-1].kind is not TokenKind.SYMBOL:
        return False
    return len(into) < 2 or not (
        into[-2].kind is TokenKind.NUMBER or (into[-2].kind is TokenKind.SYMBOL and into[-2].text == ".")
    )


def _literal_end(begun: re.Match[str], patterns: _Patterns) -> int:
    """Where a literal ends that has begun with this match. Raises Unreadable."""
    sql, at, quote = begun.string, begun.end(), begun[0][-1]
    while (match := patterns.inside[quote].match(sql, at)) is not None:
        at = match.end()
    if not sql.startswith(quote, at):
        raise Unreadable(NO_END)
    return at + 1


def every_token(sql: str, dialect: Dialect, begin: int) -> Iterator[str]:
    """The text of each token from ``begin`` on, those of literal rows, too; ends where the text is not plain SQL."""
    patterns, at = _patterns(dialect), begin
    while (match := patterns.token.match(sql, at)) is not None:
        if match.lastgroup in ("version", "open", "close"):
            return
        begin, at = at, _literal_end(match, patterns) if match.lastgroup == "long" else match.end()
        if match.lastgroup not in ("space", "comment", "line"):
            yield sql[begin:at]


def every_string(sql: str, dialect: Dialect) -> Iterator[str]:
    """Each literal text as it is written, with its quotes, those of literal rows and in conditional comments, too; of a
    text that ``lex`` reads."""
    patterns, at, in_version = _patterns(dialect), 0, False
    while (match := patterns.token.match(sql, at)) is not None:
        begin, group = at, match.lastgroup
        at = _literal_end(match, patterns) if group == "long" else match.end()
        if group in ("string", "long"):
            yield sql[begin:at]
        elif group == "close" and not in_version:
            # two operators; a comment may begin with the second one
            at -= 1
        elif group in ("version", "close"):
            in_version = group == "version"


def _append(match: re.Match[str], group: str, gap: bool, into: list[Token], patterns: _Patterns) -> int:
    """Append the token of a match; the index where the next token begins."""
    sql, text, at = match.string, match.group(), match.end()
    if len(into) >= _MOST_TOKENS:
        raise Unreadable(TOO_MANY_TOKENS)
    if group == "long":
        at = _literal_end(match, patterns)
        into.append(Token(TokenKind.STRING, "", gap=gap))
        return at
    if group == "close":  # outside a version comment these are two operators
        into.append(Token(TokenKind.SYMBOL, "*", gap=gap))
        return at - 1
    if group == "name":
        quote = text[0]
        into.append(_named(TokenKind.NAME, text[1:-1].replace(quote * 2, quote), gap=gap))
        return at
    if group == "variable":
        _check_name(text)
    if group == "number" and text[0] == "." and not gap and into and into[-1].kind in (TokenKind.WORD, TokenKind.NAME):
        into.append(Token(TokenKind.SYMBOL, ".", gap=False))
        return match.start() + 1
    if group == "number" and _LETTER.match(sql, at) is not None:
        raise Unreadable(GLUED_NUMBER)
    kind = _KINDS[group]
    if kind is TokenKind.WORD:
        word = _named(kind, text, gap=gap)
        if _is_behind_dot(into):
            into.append(word._replace(upper=""))
            return at
        end = _behind_all(patterns.rows, sql, at) if word.upper in ("VALUES", "VALUE") else at
        into.append(word if end == at else word._replace(omits=True))
        return end
    end = at
    if text == "(":
        end = _behind_all(patterns.literals, sql, at)
    elif text == "," and into and into[-1].text == ")":
        end = _behind_all(patterns.rows, sql, at)
    kept = kind in (TokenKind.SYMBOL, TokenKind.VARIABLE) or text == "0"  # LIMIT 0 is safe: no row
    into.append(Token(kind, text if kept else "", gap=gap, omits=end > at))
    return end


def _behind_all(pattern: re.Pattern[str], sql: str, at: int) -> int:
    """The index behind all that a pattern takes from ``at`` on, window by window; each of its rounds ends with a comma,
    so that one that a window cuts is not taken."""
    while (match := pattern.match(sql, at, at + _WINDOW)) is not None:
        at = match.end()
    return at


def _named(kind: TokenKind, text: str, *, gap: bool) -> Token:
    if kind is TokenKind.NAME:
        if UNDECODED in text:
            raise Unreadable(UNREAD_NAME)
    else:
        _check_name(text)
    if names_a_file(text):
        raise Unreadable(NAMES_A_FILE)
    return Token(kind, text, text.translate(_UPPER) if kind is TokenKind.WORD else "", gap)


def _check_name(text: str) -> None:
    if text.isascii():
        return
    if UNDECODED in text:
        raise Unreadable(UNREAD_NAME)
    if _NO_BREAK in text:
        raise Unreadable(BLANK_IN_NAME)


def _fault(char: str) -> str:
    if char in "'\"`":
        return NO_END
    return "a comment without an end" if char == "/" else NO_SQL
