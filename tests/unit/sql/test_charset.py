"""Statements in every client character set: quotes and backslashes are where the servers see them."""
# ruff: noqa: RUF001

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

import binlane
from binlane.binlog.types.collations import charset_name, collation_name
from binlane.model import Flavor, SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.sql.charset import decoded, is_read
from binlane.sql.parse.facts import StatementKind
from binlane.sql.program_names import folded_name
from binlane.sql.programs.reach import naming
from tests.parsing import parsed

NO_CLIENT_SETS = {"ucs2", "utf16", "utf16le", "utf32"}
"""The servers refuse SET NAMES with them."""
SWE7 = 10
ASCII_SECOND_BYTES = {"sjis": 13, "cp932": 95, "big5": 1, "gbk": 28, "gb18030": 248, "euckr": 19}
IDS = [number for number in (*range(1, 1200), 2048, 2304, 2560) if collation_name(number, Flavor.MARIADB) is not None]
FORMS = {
    "sjis": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "cp932": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "big5": rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "gbk": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "gb18030": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "euckr": rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]",
}


def session(collation: int) -> SessionContext:
    return SessionContext(database="shop", charset_client=collation)


@pytest.mark.parametrize("collation", IDS)
def test_each_collation_is_read_by_its_character_set_or_makes_a_statement_unknown(collation: int) -> None:
    charset = charset_name(str(collation_name(collation, Flavor.MARIADB)))
    sql = b"INSERT INTO t VALUES (1, 'x')"
    facts = statement_facts(sql, session(collation), Flavor.MARIADB)
    if charset in NO_CLIENT_SETS:
        assert not is_read(sql, session(collation))
        assert facts.kind is StatementKind.UNKNOWN
        assert facts.reason == "a character set that this version does not read"
        assert not facts.commits_implicitly
    else:
        assert decoded(sql, session(collation)) == sql.decode()
        assert facts.tables == {TableKey("shop", "t")}


def test_an_unread_character_set_keeps_whether_the_statement_commits() -> None:
    facts = statement_facts(b"CREATE TABLE t (a INT COMMENT 'a\\b')", session(SWE7), Flavor.MYSQL)
    assert facts.kind is StatementKind.UNKNOWN
    assert facts.commits_implicitly


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        (b"INSERT INTO t VALUES (1, 'a}@[b``') -- '{\n", "INSERT INTO t VALUES (1, 'aåÉÄbéé') -- '{\n"),
        (
            b"UPDATE /* ' { */ t SET b = `c` | @e || @`f`, f = 'it''s{' # '",
            "UPDATE /* ' { */ t SET b = `c` | @e || @`f`, f = 'it''sä' # '",
        ),
        (b'CREATE DEFINER=`a`@`b` VIEW t AS SELECT "a" AS a', 'CREATE DEFINER=`a`@`b` VIEW t AS SELECT "a" AS a'),
    ],
)
def test_a_letter_of_swe7_in_a_literal_is_no_sign_of_ascii(sql: bytes, read: str) -> None:
    facts = statement_facts(sql, session(SWE7), Flavor.MYSQL)
    assert is_read(sql, session(SWE7))
    assert decoded(sql, session(SWE7)) == read
    assert {key.table for key in facts.tables} == {"t"}


@pytest.mark.parametrize(
    "sql",
    [
        b"UPDATE a.`t|` SET b = 1",
        b"UPDATE a.t SET b = `c@d`",
        b"UPDATE a.t{ SET b = 1",
        b"UPDATE a.t SET b = 1 ^ 2",
        b"UPDATE a.`t\xe4` SET b = 1",
        b"UPDATE a.`t``` SET b = 1",
        b"UPDATE a.````t SET b = 1",
        b'UPDATE a."t{" SET b = 1',
        b'UPDATE a."t`" SET b = 1',
        b'UPDATE a."t""" SET b = 1',
        b"UPDATE a.`t\x7f` SET b = 1",
        b"UPDATE a.t SET b = 'a\\b'",
        b"UPDATE a.t SET b = /*!50000 `c{` */ 1",
        b"UPDATE a.t /*M! ' */ SET b = `c{` /* ' */",
        b"UPDATE a.t --\xe5'\n SET b = `c{` -- '",
        b"UPDATE a.t SET b = 'c",
    ],
)
def test_a_letter_of_swe7_outside_of_a_literal_makes_a_statement_unknown(sql: bytes) -> None:
    assert statement_facts(sql, session(SWE7), Flavor.MYSQL).kind is StatementKind.UNKNOWN
    assert not is_read(sql, session(SWE7))


@pytest.mark.parametrize(
    "collation", {charset_name(str(collation_name(each, Flavor.MARIADB))): each for each in IDS}.values()
)
@pytest.mark.parametrize("quote", [b"`", b'"', b""])
def test_a_routine_is_found_in_the_bytes_of_each_client(quote: bytes, collation: int) -> None:
    """Whatever byte is the first letter of its name, as the servers compare names."""
    context = session(collation)
    for byte in range(0x21, 0x100):
        sql = b"INSERT INTO a.l VALUES (a." + quote + bytes([byte]) + b"vil" + quote + b"())"
        if not is_read(sql, context) or statement_facts(sql, context, Flavor.MARIADB).kind is StatementKind.UNKNOWN:
            continue
        first = decoded(sql, context)[len("INSERT INTO a.l VALUES (a.") + len(quote)]
        for name in (f"{first}vil", f"{folded_name(first)}vil"):
            assert naming([name]).search(sql) is not None, (byte, name)


@pytest.mark.parametrize(("charset", "collation"), ASCII_SECOND_BYTES.items())
def test_two_bytes_are_one_character_by_their_form_alone(charset: str, collation: int) -> None:
    """All pairs that begin above ASCII, assigned or not, in front of a letter."""
    form = re.compile(FORMS[charset])
    wrong = []
    for first in range(0x80, 0x100):
        for second in range(0x80):
            pair = bytes([first, second])
            text = decoded(pair + b"a", session(collation))
            hidden = form.fullmatch(pair) is not None
            if text[1:] != ("a" if hidden else chr(second) + "a") or text[0].isascii():
                wrong.append(pair)
    assert wrong == []


@pytest.mark.parametrize("collation", [number for number in IDS if number not in ASCII_SECOND_BYTES.values()])
def test_no_other_character_set_hides_or_makes_an_ascii_character(collation: int) -> None:
    charset = charset_name(str(collation_name(collation, Flavor.MARIADB)))
    if charset in ASCII_SECOND_BYTES or not is_read(b"\\", session(collation)):
        return
    for first in range(0x80, 0x100):
        text = decoded(bytes([first]) + b"'\\`", session(collation))
        assert text[1:] == "'\\`"
        assert not text[0].isascii()
        assert not text[0].isspace()


@pytest.mark.parametrize(
    ("collation", "character"),
    [
        pytest.param(collation, bytes([first, second]), id=f"{charset}-{first:02x}{second:02x}")
        for charset, collation in ASCII_SECOND_BYTES.items()
        if charset != "euckr"
        for first in (0xA1, 0xE0, 0xF8) if charset != "sjis" or first != 0xA1
        for second in (0x5C, 0x60)
        if re.fullmatch(FORMS[charset], bytes([first, second]))
    ],
)  # fmt: skip
def test_a_literal_ends_where_the_server_ends_it(collation: int, character: bytes) -> None:
    sql = b"INSERT INTO t SELECT '" + character + b"', ' FROM other.a -- ', b FROM third.c WHERE d = '" + character
    facts = statement_facts(sql + b"'", session(collation), Flavor.MARIADB)
    assert facts.kind is StatementKind.DML
    assert facts.tables == {TableKey("shop", "t"), TableKey("third", "c")}


@pytest.mark.parametrize(
    ("collation", "name", "read"),
    [
        (88, b"`\x83\x5c`", "ソ"),
        (95, b"`\x83\x5c`", "ソ"),
        (84, b"`\xb3\x5c`", "許"),
        (87, b"`\xd5\x5c`", "誠"),
        (249, b"`\xd5\x5c`", "誠"),
        (85, b"`\xb0\xa1`", "가"),
        (91, b"\xa5\xbd", "ソ"),
        (25, b"\xe1\xe2", "αβ"),
        (51, b"\xe0", "а"),
        (74, b"\xc1", "а"),
    ],
)
def test_names_are_those_of_the_row_events(collation: int, name: bytes, read: str) -> None:
    facts = statement_facts(b"DELETE FROM " + name + b" WHERE a = 1", session(collation), Flavor.MYSQL)
    assert facts.tables == {TableKey("shop", read)}


def test_bytes_that_are_no_character_hide_no_other_name() -> None:
    sql = b"INSERT INTO `n\x83\x5c` VALUES ('\xfa\x60\x81\xad\xff', '\x85\x5c')"
    for collation in (13, 95):
        facts = statement_facts(sql, session(collation), Flavor.MARIADB)
        assert facts.tables == {TableKey("shop", "nソ")}


@pytest.mark.parametrize(
    ("collation", "name"),
    [
        pytest.param(88, b"`\x85\x40`", id="unassigned"),
        pytest.param(88, b"`\x81\x5f`", id="read-otherwise-by-the-servers"),
        pytest.param(92, b"`\x81`", id="no-character"),
        pytest.param(32, b"`\xa5`", id="a-second-bracket"),
    ],
)
def test_a_name_without_a_certain_character_is_unknown(collation: int, name: bytes) -> None:
    facts = statement_facts(b"DELETE FROM " + name + b" WHERE a = 1", session(collation), Flavor.MYSQL)
    assert facts.kind is StatementKind.UNKNOWN


AS_UTF8: Final = {
    "answers.py": "what a server said",
    "apply/change_notes.py": "a text for people",
    "apply/rows/target_row.py": "a value for people",
    "binlog/format_description.py": "a version",
    "binlog/types/sql_values.py": "a text for people",
    "board/board_reader.py": "a text for people",
    "bootstrap/account_copy.py": "a line about an account, which servers show in UTF-8",
    "bootstrap/definition_proof.py": "a text for people",
    "bootstrap/value_warnings.py": "what a server said",
    "bootstrap/view_functions.py": "answers in the connection's character set",
    "orchestration/announcing/asset_event.py": "what a program said",
    "repair/execution.py": "a JSON document of a row",
    "restore/definers.py": "an account, compared with accounts of the plan",
    "restore/dump_contents.py": "names in comments of a dump, for people, and an engine",
    "restore/dump_file.py": "a text for people",
    "restore/dump_load.py": "a value of SET, letters of ASCII",
    "restore/inexact_columns.py": "a name for people",
    "servers/stored_bodies.py": "what SHOW CREATE has converted into the connection's character set",
    "source/archive.py": "a list of files",
    "plan/transaction/temporary_tables.py": "a text for people",
    "sql/charset.py": "the door",
    "verify/rows/row_states.py": "a value of a row",
    "work/logged_statements.py": "the beginning of a statement without a session, for people",
}
"""Modules that decode bytes as UTF-8 whatever they are, and what these are."""


def test_a_statement_is_decoded_by_the_character_set_of_its_client_alone() -> None:
    """In UTF-8 a name of another client ends elsewhere, and code looks like a comment: ``tokens_in`` and ``decoded``
    know the session."""
    found = set()
    root = Path(*binlane.__path__)
    for file in sorted(root.rglob("*.py")):
        for node in ast.walk(parsed(file.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "decode"
                and any(
                    isinstance(each, ast.Constant) and each.value in ("replace", "surrogateescape", "ignore")
                    for each in (*node.args, *(one.value for one in node.keywords))
                )
            ):
                found.add((file.relative_to(root).as_posix(), ast.unparse(node.args[0]) if node.args else "'utf-8'"))
    in_utf8 = {file for file, codec in found if codec in ("'utf-8'", "'utf8'")}
    assert in_utf8 == AS_UTF8.keys()
