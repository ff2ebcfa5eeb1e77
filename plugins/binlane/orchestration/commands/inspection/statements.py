"""The output of ``binlane inspect --sql``: statements to read, which a server of the same family can run.

Exact if the log has names (``binlog_row_metadata = FULL``), in a session with ``NAMES utf8mb4`` and ``time_zone =
'+00:00'``, without strict mode and NO_BACKSLASH_ESCAPES. Text is printed as text if the server converts it back to the
same bytes, else as bytes. The log does not tell which columns the server computes: generated columns, row versions.
"""

from __future__ import annotations

import re
from typing import Final

from binlane.binlog.row_values import Change
from binlane.binlog.rows import RowsKind
from binlane.binlog.types.charsets import BINARY, decode_text, eight_bit_characters, guessed_text
from binlane.binlog.types.column_types import AS_DIGITS, LOGGED_TYPES
from binlane.binlog.types.columns import Column
from binlane.binlog.types.json_binary import Json, JsonDiffs, JsonDocument, json_text
from binlane.binlog.types.json_sql import expression, is_more_than_text
from binlane.binlog.types.literals import changed_document, identifier, literal, quoted
from binlane.binlog.types.readers import Value
from binlane.binlog.types.type_codes import ColumnType
from binlane.orchestration.commands.inspection.rows import LoggedStatement, LoggedTable, Shown, present
from binlane.safe_text import one_line

_UTF: Final = frozenset({"ucs2", "utf16", "utf16le", "utf32", "utf8mb3", "utf8mb4"})
"""Character sets with only one encoding for each character."""


_COMMANDS: Final = frozenset(
    {"charset", "clear", "connect", "costs", "delimiter", "edit", "ego", "exit", "go", "help", "nopager", "notee"}
    | {"nowarning", "pager", "print", "prompt", "query_attributes", "quit", "rehash", "resetconnection", "sandbox"}
    | {"source", "ssl_session_data_print", "status", "system", "tee", "use", "warnings"}
)
"""What the servers' clients take for a command of their own at a statement's beginning: ``system`` runs programs."""
_MANY: Final = "{1,20000}"
"""Repetitions of a group at once: the way back costs memory for each, and a statement may have a gigabyte."""
_SPACE: Final = re.compile(rf"(?:\s++|--(?=\s|\Z)[^\n]*+|\#[^\n]*+|/\*.*?\*/){_MANY}", re.DOTALL)
_FIRST: Final = re.compile(r"\w++|\(")
_WITHOUT_COMMANDS: Final = re.compile(
    rf"""(?: [^'"`\\/\#-]++ | \\N | \#[^\n]*+ | --(?=\s|\Z)[^\n]*+ | -(?!-(?:\s|\Z))
        | /\*! | /\*(?![M!]).*?\*/ | /(?!\*)
        | '[^'\\]{{0,1000}}+' | "[^"\\]{{0,1000}}+" | `[^`]{{0,1000}}+` ){_MANY}""",
    re.DOTALL | re.VERBOSE,
)
"""Clients take a backslash outside of quotes and comments for a command, too. They read these by rules of their own:
they know no sql_mode of the log."""
_INSIDE: Final = {
    "'": re.compile(rf"(?:[^'\\]++|\\.){_MANY}", re.DOTALL),
    '"': re.compile(rf'(?:[^"\\]++|\\.){_MANY}', re.DOTALL),
    "`": re.compile("[^`]++"),
}
"""What is inside of a long string, or one with escapes, by its quote."""


def _is_for_client(statement: LoggedStatement) -> bool:
    """Whether a client sends the statement as it is, and runs nothing itself."""
    sql = statement.sql
    first = _FIRST.match(sql, _behind(_SPACE, sql, 0))
    return (
        first is not None
        and first[0].lower() not in _COMMANDS
        and ";;" not in sql
        and _has_no_commands(sql)
        and statement.database.isprintable()
    )


def _has_no_commands(sql: str) -> bool:
    at = 0
    while at < len(sql):
        quote = sql[at]
        if quote in _INSIDE:
            end = _behind(_INSIDE[quote], sql, at + 1)
            if sql[end : end + 1] != quote:
                return False
            end += 1
        else:
            end = _behind(_WITHOUT_COMMANDS, sql, at)
        if end == at:
            return False
        at = end
    return True


def _behind(pattern: re.Pattern[str], sql: str, at: int) -> int:
    """Where the repetitions of a pattern end."""
    while (found := pattern.match(sql, at)) is not None:
        at = found.end()
    return at


def row_sql(shown: Shown, *, for_client: bool = False) -> str:
    """One statement with its semicolon. ``shown``: from ``Contents`` with ``text=False``.

    Rows are found by the primary key if it is logged, else by all their values. ``for_client``: with DELIMITER around
    statements that contain semicolons, for clients that split at semicolons; a statement in which a client would find
    a command of its own is a comment.
    """
    if isinstance(shown, LoggedStatement):
        if not shown.runs:
            return f"-- its file is in the log, and no statement of it: {one_line(shown.sql)}"
        if for_client and not _is_for_client(shown):
            return f"-- a client would find commands of its own in it, and run them: {one_line(shown.sql)}"
        use = f"USE {identifier(shown.database)};\n" if shown.database else ""
        last = shown.sql.rpartition("\n")[2]
        sql = shown.sql + ("\n" if "--" in last or "#" in last else "")  # or the semicolon would be part of the comment
        return f"{use}DELIMITER ;;\n{sql};;\nDELIMITER ;" if for_client and ";" in sql else f"{use}{sql};"
    table, change = shown
    return f"{_STATEMENTS[change.kind](table, change)};"


def value_sql(column: Column, value: Value) -> str:
    """A value, decoded with ``text=False``, as a readable and executable SQL expression."""
    match value:
        case bytes() if column.charset is None and not _is_by_digits(column):
            text = guessed_text(value)
            return literal(column, value) if text is None else quoted(text)
        case bytes() if column.charset not in (None, BINARY):
            return _text(column, value)
        case JsonDocument():
            return _json(value.root)
        case JsonDiffs():
            return changed_document(_name(column), value, _json)
        case int() if column.type_code in (ColumnType.ENUM, ColumnType.SET):
            text = _members(column, value)
            return str(value) if text is None else quoted(text)
    return literal(column, value)


def _text(column: Column, data: bytes) -> str:
    text = decode_text(data, column.charset)
    if text is None:
        return literal(column, data)
    if column.charset in _UTF or _is_spelled_once(column.charset or "", text):
        return quoted(text)
    comment = quoted(text).replace("*/", "* /")
    return f"{literal(column, data)} /* {comment} */"


def _is_spelled_once(charset: str, text: str) -> bool:
    characters = eight_bit_characters(charset)
    return characters is not None and all(characters.count(one) == 1 for one in set(text))


def _members(column: Column, value: int) -> str | None:
    """The members' names; None for ENUM's error value 0, and if names are not logged or not decodable."""
    texts = column.member_texts()
    is_set = column.type_code == ColumnType.SET
    if texts is None or (value >> len(texts) if is_set else not 0 < value <= len(texts)):
        return None
    if column.charset not in _UTF and not all(_is_spelled_once(column.charset or "", text) for text in texts):
        return None
    return ",".join(text for number, text in enumerate(texts) if value >> number & 1) if is_set else texts[value - 1]


def _json(document: Json) -> str:
    plain = f"CAST({quoted(json_text(document))} AS JSON)"
    try:
        return expression(document) if is_more_than_text(document) else plain
    except ValueError as exc:
        return f"{plain} /* not the same value: {exc} */"


def _insert(table: LoggedTable, change: Change) -> str:
    assert change.after is not None
    pairs = present(table, change.after)
    names = ", ".join(_name(column) for column, _ in pairs)
    values = ", ".join(value_sql(column, value) for column, value in pairs)
    return f"INSERT INTO {table.quoted_name} ({names}) VALUES ({values})"


def _update(table: LoggedTable, change: Change) -> str:
    assert change.after is not None
    pairs = present(table, change.after)
    changes = ", ".join(f"{_name(column)} = {value_sql(column, value)}" for column, value in pairs)
    return f"UPDATE {table.quoted_name} SET {changes}{_where(table, change)}"


def _delete(table: LoggedTable, change: Change) -> str:
    return f"DELETE FROM {table.quoted_name}{_where(table, change)}"


def _where(table: LoggedTable, change: Change) -> str:
    assert change.before is not None
    key = {number for number, _ in table.table.optional.primary_key or ()}
    pairs = present(table, change.before)
    by_key = [(column, value) for column, value in pairs if column.number - 1 in key]
    chosen, same = (by_key, _equal) if key and len(by_key) == len(key) else (pairs, _identical)
    return f" WHERE {' AND '.join(same(column, value) for column, value in chosen)} LIMIT 1"


def _equal(column: Column, value: Value) -> str:
    if column.type_code == ColumnType.ENUM and isinstance(value, int) and value_sql(column, value) in ("0", "''"):
        return f"CAST({_name(column)} AS UNSIGNED) = {value}"  # the member '' and the error value 0 are equal as text
    return f"{_name(column)} = {value_sql(column, value)}"


def _identical(column: Column, value: Value) -> str:
    """A condition for exactly this value: collations treat different strings as equal, and JSON numbers of two
    types."""
    name = _name(column)
    match value:
        case None:
            return f"{name} IS NULL"
        case JsonDocument():
            return f"CAST(CAST({name} AS CHAR) AS BINARY) = {quoted(json_text(value.root))}"
        case bytes() if _is_by_digits(column):
            return f"HEX({name}) = '{value.hex().upper()}'"
        case bytes() if column.is_text and (text := decode_text(value, column.charset)) is not None:
            if value == text.encode():
                return f"CAST({name} AS BINARY) = {quoted(text)}"
            return f"{name} = {value_sql(column, value)} AND CAST({name} AS BINARY) = X'{value.hex()}'"
        case bytes() if column.is_text:
            return f"CAST({name} AS BINARY) = X'{value.hex()}'"
    return _equal(column, value)


_STATEMENTS: Final = {RowsKind.INSERT: _insert, RowsKind.UPDATE: _update, RowsKind.DELETE: _delete}


def _is_by_digits(column: Column) -> bool:
    return LOGGED_TYPES[column.type_code].compared == AS_DIGITS


def _name(column: Column) -> str:
    return column.label if column.name is None else identifier(column.name)
