"""Which characters an unquoted name has: the servers take each of U+0080 to U+FFFF, not letters alone."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

import pytest

from binlane.model import Flavor
from binlane.sql.accounts import ACCOUNT_PATTERN
from binlane.sql.parse import lexer
from binlane.sql.parse.lexer import (
    NO_END,
    QUALIFIER,
    TOO_MANY_TOKENS,
    Dialect,
    Token,
    TokenKind,
    Unreadable,
    every_string,
    every_token,
    lex,
)


def test_every_character_of_a_name_is_read_by_all_who_read_names() -> None:
    # 0xA0 is a blank in many character sets, and read by nobody
    for number in (*range(0x80, 0xA0), *range(0xA1, 0xD800), *range(0xE000, 0xFFFD)):
        name = f"a{chr(number)}"
        tokens: list[Token] = []
        lex(f"{name}.t", Dialect(Flavor.MARIADB), tokens)
        assert [token.text for token in tokens] == [name, ".", "t"]
        qualifier = QUALIFIER.match(f"{name}.t")
        assert qualifier is not None
        assert qualifier["plain"] == name


def test_a_number_is_no_qualifier() -> None:
    assert QUALIFIER.search("SELECT 1.5") is None


def test_an_account_may_have_any_name() -> None:
    match = re.fullmatch(ACCOUNT_PATTERN, "preis€@localhost")
    assert match is not None
    assert (match["user"], match["host"]) == ("preis€", "localhost")


@pytest.mark.parametrize("name", ["1e_t", "1e5", "5e", "1st", "1", "1e5x"])
def test_a_name_behind_a_dot_may_begin_with_digits(name: str) -> None:
    tokens: list[Token] = []
    lex(f"app.{name}", Dialect(Flavor.MYSQL), tokens)
    assert [token.text for token in tokens] == ["app", ".", name]


@pytest.mark.parametrize("text", ["1e0FROM", "1.0LIMIT", ".5e3x", "1.e", "1.5e(", "\\NFROM", "1.é", "1e5_"])
def test_a_number_with_a_letter_behind_it_is_not_read(text: str) -> None:
    with pytest.raises(Unreadable, match="a letter directly behind it"):
        lex(f"SELECT {text}", Dialect(Flavor.MARIADB), [])


@pytest.mark.parametrize("text", ["SELECT a FROM\u00a0secret.t", "SELECT @a\u00a0FROM t"])
def test_a_word_with_a_no_break_space_is_not_read(text: str) -> None:
    with pytest.raises(Unreadable, match="no-break space"):
        lex(text, Dialect(Flavor.MYSQL), [])
    tokens: list[Token] = []
    lex("SELECT `a\u00a0b`", Dialect(Flavor.MYSQL), tokens)
    assert tokens[-1].text == "a\u00a0b"


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    ("text", "upper"),
    [
        ("app.do DO", ["APP", "", "", "DO"]),
        ("app . do", ["APP", "", ""]),
        ("app./* x */comment", ["APP", "", ""]),
        ("`app`.for", ["", "", ""]),
        ("FROM .set", ["FROM", "", ""]),
        ("a.b.select", ["A", "", "", "", ""]),
        ("'.' do", ["", "DO"]),
        ("`.` do", ["", "DO"]),
        # two dots are one symbol of MariaDB's FOR loops
        ("IN 1..SLEEP(1)", ["IN", "", "", "SLEEP", "", "", ""]),
        ("IN a..SLEEP(1)", ["IN", "A", "", "", "SLEEP", "", "", ""]),
    ],
)
def test_a_word_behind_a_dot_is_a_name(text: str, upper: list[str], flavor: Flavor) -> None:
    tokens: list[Token] = []
    lex(text, Dialect(flavor), tokens)
    assert [token.upper for token in tokens] == upper


@pytest.mark.parametrize("flavor", Flavor)
def test_the_host_of_an_account_is_what_stands_directly_behind_the_sign(flavor: Flavor) -> None:
    tokens: list[Token] = []
    lex("u@ EVENT v@h w@'x' y@/**/z", Dialect(flavor), tokens)
    assert [token.text for token in tokens] == ["u", "@", "EVENT", "v", "@h", "w", "@'x'", "y", "@", "z"]
    assert [each.text for each in tokens if each.kind is TokenKind.VARIABLE] == ["@", "@h", "@'x'", "@"]


def test_a_function_of_a_database_that_is_called_values_keeps_its_parenthesis() -> None:
    tokens: list[Token] = []
    lex("SELECT app.value(1), 2", Dialect(Flavor.MARIADB), tokens)
    assert [token.text for token in tokens[:5]] == ["SELECT", "app", ".", "value", "("]


ESCAPES: Final = ("\\n", "\\\\", "\\'", "''", "a''\\'b")


@pytest.mark.parametrize("inside", ESCAPES)
@pytest.mark.parametrize("begin", ["'", "n'"])
def test_a_literal_has_any_number_of_escapes(inside: str, begin: str) -> None:
    dialect = Dialect(Flavor.MYSQL)
    for count in (1, 999, 1_000, 1_001, 2_000, 5_003):
        literal = f"{begin}{inside * count}'"
        sql = f"SET a = {literal} , b = 2"
        tokens, places = list[Token](), list[tuple[int, int]]()
        lex(sql, dialect, tokens, places)
        assert [token.text for token in tokens] == ["SET", "a", "=", "", ",", "b", "=", ""]
        assert tokens[3].kind is TokenKind.STRING
        assert sql[slice(*places[3])] == literal
        assert list(every_string(sql, dialect)) == [literal]
        assert list(every_token(sql, dialect, 0))[3] == literal
        with pytest.raises(Unreadable, match=NO_END):
            lex(sql.replace("' ,", " ,"), dialect, [])


def test_a_doubled_quote_is_one_letter_where_a_backslash_is_another() -> None:
    dialect = Dialect(Flavor.MYSQL, ansi_quotes=True, no_backslash_escapes=True)
    for count in (1, 1_000, 3_001):
        sql = "SELECT '" + "''\\" * count + '\' , "a"'
        tokens: list[Token] = []
        lex(sql, dialect, tokens)
        assert [token.kind for token in tokens][1:] == [TokenKind.STRING, TokenKind.SYMBOL, TokenKind.NAME]


def test_rows_of_every_length_are_read_alike() -> None:
    """Also where a window of the lexer ends inside of a row, in each of its letters."""
    row = "(1, 'it''s \\' a', NULL, x'0f', n'b', -2.5e3),"
    for shift in range(len(row) + 1):
        rows = " " * shift + row * (3 * lexer._WINDOW // len(row))
        tokens: list[Token] = []
        lex(f"INSERT INTO t VALUES {rows}(f(1))", Dialect(Flavor.MARIADB), tokens)
        assert [token.text for token in tokens] == ["INSERT", "INTO", "t", "VALUES", "(", "f", "(", "", ")", ")"]
        tokens.clear()
        lex(f"DELETE FROM t WHERE a IN ({rows[:-1].strip('()')})", Dialect(Flavor.MARIADB), tokens)


_MEASURED: Final = """
import resource, sys
from binlane.model import Flavor
from binlane.sql.parse.lexer import Dialect, Unreadable, front_length, lex
size, flavor = 4 << 20, Flavor.MARIADB
sql = {text}
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
front_length(sql.encode(), flavor)
try:
    lex(sql, Dialect(flavor), [])
except Unreadable:
    pass
print((peak() - before) >> 10)
"""
LONG: Final = {
    "escapes": r"""'SET @a = "' + chr(92) * size + '"'""",
    "doubled quotes": """'SET @a = "' + '"' * size + '"'""",
    "rows": """'INSERT INTO t VALUES ' + '(1),' * (size // 4)""",
    "values": """'INSERT INTO t VALUES (' + '1,' * (size // 2)""",
    "empty texts": "'SELECT a IN (' + (chr(39) * 2 + ',') * (size // 3)",
    "a name": "'DELETE FROM `' + '`' * size + '`'",
    "a variable": "'SET @`' + '`' * size + '`'",
    "comments in front": "'/**/' * (size // 4)",
    "lines in front": "'#' + chr(10) * size",
}
"""Texts whose memory was 80 to 330 times their length. A line more is an attack more."""


@pytest.mark.parametrize("text", LONG)
def test_a_statement_takes_no_memory_for_each_of_its_parts(text: str) -> None:
    """MiB of a process that reads 4 MiB of text."""
    done = subprocess.run([sys.executable, "-c", _MEASURED.format(text=LONG[text])], capture_output=True, check=True)
    assert int(done.stdout) < 72


def test_a_statement_with_millions_of_signs_is_refused_by_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexer, "_MOST_TOKENS", 100)
    with pytest.raises(Unreadable, match=TOO_MANY_TOKENS):
        lex("SELECT " + "a, " * 100, Dialect(Flavor.MYSQL), [])
    lex("SELECT a IN (" + "1, " * 1_000 + "1)", Dialect(Flavor.MYSQL), [])
