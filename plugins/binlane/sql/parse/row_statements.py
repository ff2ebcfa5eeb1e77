"""Reads INSERT, REPLACE, UPDATE, DELETE, LOAD DATA, CALL, DO: splits each into its tables and queries.

An UPDATE or DELETE is read as a SELECT of the same tables, because the changed tables are among the tables of its FROM:
``UPDATE refs SET list tail`` names the same tables as ``SELECT list FROM refs tail``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from binlane.model import Flavor, TableKey
from binlane.sql.parse.cursor import Cursor, FactsBuilder, find_word, group_end, is_name, is_symbol
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.lexer import Token, TokenKind, Unreadable
from binlane.sql.parse.queries import COMMA, read_expressions, read_query, word
from binlane.sql.parse.written_tables import assigned, deleted

_MODIFIERS: Final = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE")
_BEFORE_IGNORE: Final = frozenset({"INSERT", "UPDATE", "DELETE", *_MODIFIERS})
_QUERY: Final = ("SELECT", "WITH", "TABLE", "VALUES")


def ignores_errors(tokens: Sequence[Token]) -> bool:
    """Whether a statement leaves out the rows that a constraint refuses: IGNORE behind the verb that changes rows, or
    LOAD DATA's in front of INTO TABLE. IGNORE of an index, of lines and of NULLs is another one."""
    words = ["", *(each.upper for each in tokens), ""]
    return any(
        word == "IGNORE" and (words[at - 1] in _BEFORE_IGNORE or words[at + 1] == "INTO")
        for at, word in enumerate(words)
    )


def query(cursor: Cursor, reading: FactsBuilder) -> None:
    """SELECT, VALUES, TABLE or a parenthesis."""
    read_query(cursor.tokens[cursor.at - 1 :], reading)


def with_(cursor: Cursor, reading: FactsBuilder) -> None:
    """WITH ... SELECT, UPDATE or DELETE."""
    start = cursor.at - 1
    verb = find_word(cursor.tokens, "SELECT", "UPDATE", "DELETE", "INSERT", "REPLACE", "TABLE", "VALUES", start=start)
    changed = cursor.tokens[verb].upper if verb < len(cursor.tokens) else "SELECT"
    if changed in ("INSERT", "REPLACE"):
        raise Unreadable("WITH before an INSERT")
    if changed not in ("UPDATE", "DELETE"):
        return read_query(cursor.tokens[start:], reading)
    cursor_behind = Cursor(cursor.tokens, verb + 1)
    reader = _update if changed == "UPDATE" else _delete
    return reader(cursor_behind, reading, cursor.tokens[start:verb])


def insert(cursor: Cursor, reading: FactsBuilder) -> None:
    """INSERT or REPLACE, from values, assignments or a query."""
    cursor.skip_words(*_MODIFIERS)
    cursor.words("INTO")
    reading.written.add(reading.table(cursor.qualified()))
    if cursor.words("PARTITION"):
        cursor.at = group_end(cursor.tokens, cursor.at)
    _columns(cursor)
    if cursor.any_word("SET", "VALUES", "VALUE") is not None:
        source = _until_end_of_source(cursor)
        read_expressions(source, reading)
        if cursor.words("AS"):
            cursor.name()
            _columns(cursor)
    else:
        source = _until_end_of_source(cursor)
        cursor.expect("a query", found=any(token.upper in _QUERY for token in source))
        read_query(source, reading)
    if cursor.words("ON", "DUPLICATE", "KEY", "UPDATE"):
        end = _returning(cursor.tokens, reading, cursor.at)
        read_expressions(cursor.tokens[cursor.at : end], reading)
        cursor.at = end
    if cursor.words("RETURNING"):
        read_expressions(cursor.rest, reading)
        return
    cursor.finished()


def update(cursor: Cursor, reading: FactsBuilder) -> None:
    """UPDATE of one or more tables."""
    _update(cursor, reading, ())


def delete(cursor: Cursor, reading: FactsBuilder) -> None:
    """DELETE from one or more tables."""
    _delete(cursor, reading, ())


def load(cursor: Cursor, reading: FactsBuilder) -> None:
    """LOAD DATA or LOAD XML."""
    cursor.expect("LOAD DATA or LOAD XML", found=cursor.any_word("DATA", "XML") is not None)
    reading.kind = StatementKind.LOAD_DATA
    while not cursor.words("INTO", "TABLE"):
        cursor.expect("INTO TABLE", found=not cursor.done)
        cursor.next()
    reading.written.add(reading.table(cursor.qualified()))
    assignments = find_word(cursor.tokens, "SET", start=cursor.at)
    while assignments > 0 and cursor.tokens[assignments - 1].upper in ("CHARACTER", "CHAR"):
        assignments = find_word(cursor.tokens, "SET", start=assignments + 1)
    if any(token.upper == "SELECT" for token in cursor.tokens[cursor.at : assignments]):
        raise Unreadable("a query before the SET of a LOAD DATA")
    read_expressions(cursor.tokens[assignments + 1 :], reading)


def call(cursor: Cursor, reading: FactsBuilder) -> None:
    """CALL: the procedure's database is known, the tables that it changes are not."""
    reading.call(cursor.qualified()[0])
    read_expressions(cursor.rest, reading)


def do(cursor: Cursor, reading: FactsBuilder) -> None:
    """DO expressions."""
    read_expressions(cursor.rest, reading)


def _columns(cursor: Cursor) -> None:
    """Step over a list of columns, if one stands here."""
    if not is_symbol(cursor.peek(), "(") or is_symbol(cursor.peek(1), "(") or cursor.peek(1).upper in _QUERY:
        return
    end = group_end(cursor.tokens, cursor.at)
    inside = cursor.tokens[cursor.at + 1 : end - 1]
    plain = all(token.kind in (TokenKind.WORD, TokenKind.NAME) or is_symbol(token, ",", ".") for token in inside)
    cursor.expect("a list of columns", found=plain)
    cursor.at = end


def _until_end_of_source(cursor: Cursor) -> Sequence[Token]:
    """The rows, assignments or query of an INSERT: up to AS (behind rows), ON DUPLICATE KEY, RETURNING or the end."""
    tokens, start = cursor.tokens, cursor.at
    rows = start > 0 and tokens[start - 1].upper in ("SET", "VALUES", "VALUE")
    stops = ("ON", "AS", "RETURNING") if rows else ("ON", "RETURNING")
    end = find_word(tokens, *stops, start=start)
    while end < len(tokens) and not rows and not Cursor(tokens, end).words("ON", "DUPLICATE", "KEY", "UPDATE"):
        if tokens[end].upper == "RETURNING":
            break
        end = find_word(tokens, *stops, start=end + 1)
    cursor.at = end
    return tokens[start:end]


def _returning(tokens: Sequence[Token], reading: FactsBuilder, start: int) -> int:
    """The index of MariaDB's RETURNING; the number of tokens if there is none."""
    return find_word(tokens, "RETURNING", start=start) if reading.dialect.flavor is Flavor.MARIADB else len(tokens)


def _update(cursor: Cursor, reading: FactsBuilder, prefix: Sequence[Token]) -> None:
    cursor.skip_words(*_MODIFIERS)
    tokens = cursor.tokens
    assignments = find_word(tokens, "SET", start=cursor.at)
    cursor.expect("SET", found=assignments < len(tokens))
    end = _returning(tokens, reading, assignments)
    tail = min(find_word(tokens, "WHERE", "ORDER", "LIMIT", start=assignments), end)
    selected = [*tokens[assignments + 1 : tail], *([COMMA, *tokens[end + 1 :]] if end < len(tokens) else ())]
    tables = tokens[cursor.at : assignments]
    _as_query(prefix, selected, tables, tokens[tail:end], reading)
    _note_written(reading, lambda: assigned(tables, tokens[assignments + 1 : tail], reading))


def _delete(cursor: Cursor, reading: FactsBuilder, prefix: Sequence[Token]) -> None:
    tokens = cursor.tokens
    cursor.skip_words(*_MODIFIERS)
    start = find_word(tokens, "FROM", start=cursor.at)
    cursor.expect("FROM", found=start < len(tokens))
    end = _returning(tokens, reading, start)
    using, listed = find_word(tokens, "USING", start=start), tokens[cursor.at : start]
    if start == cursor.at and using < len(tokens):  # DELETE FROM targets USING tables; else a join's USING
        targets = all(is_name(token) or is_symbol(token, ",", ".", "*") for token in tokens[start + 1 : using])
        cursor.expect("a list of tables", found=targets)
        listed = tokens[start + 1 : using]
        start = using
    tail = min(find_word(tokens, "WHERE", "ORDER", "LIMIT", start=start), end)
    history = find_word(tokens[:tail], "BEFORE", start=start)
    selected = tokens[end + 1 :] if end < len(tokens) else [Token(TokenKind.NUMBER, "")]
    if history < tail and tokens[history + 1].upper == "SYSTEM_TIME":
        read_expressions([token for token in tokens[history + 2 : tail] if token.upper != "TRANSACTION"], reading)
        tail = history
    _as_query(prefix, selected, tokens[start + 1 : tail], tokens[tail:end], reading)
    _note_written(reading, lambda: deleted(listed, tokens[start + 1 : tail], reading))


def _note_written(reading: FactsBuilder, read: Callable[[], frozenset[TableKey]]) -> None:
    """Note the tables that a statement changes: all that it names, if none of them is found."""
    try:
        found = read() & reading.tables
    except Unreadable:
        found = frozenset()
    reading.written |= found or reading.tables


def _as_query(
    prefix: Sequence[Token],
    selected: Sequence[Token],
    tables: Sequence[Token],
    tail: Sequence[Token],
    reading: FactsBuilder,
) -> None:
    """Read ``SELECT selected FROM tables tail``, with MariaDB's FOR PORTION OF taken out."""
    portion = find_word(tables, "FOR")
    if portion + 1 < len(tables) and tables[portion + 1].upper == "PORTION":
        bounds = find_word(tables, "FROM", start=portion)
        until = find_word(tables, "TO", start=bounds)
        read_expressions(tables[bounds + 1 : until], reading)
        read_expressions(tables[until + 1 :], reading)
        tables = tables[:portion]
    if tail and tail[0].upper == "BEFORE":
        tail = ()
    read_query([*prefix, word("SELECT"), *selected, word("FROM"), *tables, *tail], reading)


READERS: Final[Mapping[str, Callable[[Cursor, FactsBuilder], None]]] = {
    "SELECT": query,
    "VALUES": query,
    "TABLE": query,
    "WITH": with_,
    "INSERT": insert,
    "REPLACE": insert,
    "UPDATE": update,
    "DELETE": delete,
    "LOAD": load,
    "CALL": call,
    "DO": do,
}
"""Readers by first word; the cursor stands behind that word."""
