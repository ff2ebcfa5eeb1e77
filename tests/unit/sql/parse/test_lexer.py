"""Which characters an unquoted name has: the servers take each of U+0080 to U+FFFF, not letters alone."""

from __future__ import annotations

import re

import pytest

from binlane.model import Flavor
from binlane.sql.accounts import ACCOUNT_PATTERN
from binlane.sql.parse.lexer import QUALIFIER, Dialect, Token, TokenKind, Unreadable, lex


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
