"""Reads queries: the tables that they name, by sqlglot, and the functions that they call, by the tokens.

sqlglot gets a canonical text: names in backticks, literals replaced, clauses that name no table (index hints, locks,
modifiers) left out. Statements that differ only in literals have one canonical text, which is parsed once. A second
reading searches the tokens for names behind FROM and JOIN: a table that sqlglot missed makes the query Unreadable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from binlane.model import Flavor
from binlane.sql.parse.cursor import END, Cursor, FactsBuilder, find_word, group_end, is_name, is_symbol
from binlane.sql.parse.functions import ADJACENT_ONLY, BEFORE_PARENTHESIS, BUILTIN
from binlane.sql.parse.lexer import Token, TokenKind, Unreadable

_MOST_TOKENS: Final = 200_000
"""Of a query. sqlglot takes some 6 seconds and 250 MB for so many (measured: lists of OR, CASE, UNION ALL)."""
_MOST_BESIDE_WITH: Final = 50_000
"""Of a query with WITH: whether a table's name is that of a common table expression is asked for each table, at each
node around it, so the time grows with the square of the length."""


def _too_long(most: int) -> str:
    return f"a query of more than {most:,} words and signs beside literal rows and long lists of literals"


TOO_LONG: Final = frozenset({_too_long(_MOST_TOKENS), _too_long(_MOST_BESIDE_WITH)})
"""The reasons of Unreadable for a query that is only too long."""
_MAX_DEPTH: Final = 100
"""Nested parentheses. Fixed, so that every process reads a statement alike; sqlglot uses some 25 frames for each."""
_SELECT_MODIFIERS: Final = (
    "ALL", "DISTINCT", "DISTINCTROW", "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_SMALL_RESULT", "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT", "SQL_NO_CACHE", "SQL_CACHE", "SQL_CALC_FOUND_ROWS",
)  # fmt: skip
_LOCKS: Final = (("FOR", "UPDATE"), ("FOR", "SHARE"), ("LOCK", "IN", "SHARE", "MODE"))
_SET_OPERATORS: Final = ("UNION", "EXCEPT", "INTERSECT", "MINUS")
_SEQUENCE_FUNCTIONS: Final = ("NEXTVAL", "LASTVAL", "SETVAL")
_SEQUENCE_WORDS: Final = frozenset({"NEXT", "PREVIOUS", "CURRVAL", *_SEQUENCE_FUNCTIONS})
_SKIPPED: Final = frozenset(
    (
        *("NEXT", "PREVIOUS", "FOR", "LOCK", "USE", "FORCE", "IGNORE", "PARTITION", "FROM", "RESPECT", "ROWS", "CYCLE"),
        *("ASC", "DESC", "BINARY", "COLLATE"),
    )
)
"""First words of clauses, and words behind a column, that name no table."""
_OPTIONAL: Final[Mapping[str, Callable[[Token, Token], bool]]] = {
    # behind a column of GROUP BY, too
    "ASC": lambda before, after: True,
    "DESC": lambda before, after: True,
    # the operator in front of another one
    "BINARY": lambda before, after: is_symbol(after, "!", "~", "-", "+"),
}
"""Words that change no meaning for a reader of tables, by the tokens in front of them and behind them: sqlglot does not
take them everywhere that the servers do."""
_TYPED: Final = frozenset({"CAST", "CONVERT", "JSON_VALUE", "COLUMN_GET", "COLUMN_CREATE", "COLUMN_ADD"})
"""Functions with types among their arguments."""
_TYPE_WORDS: Final = frozenset(
    (
        *("BINARY", "BYTE", "VARBINARY", "CHAR", "CHARACTER", "VARCHAR", "NCHAR", "NATIONAL", "ASCII", "UNICODE"),
        *("SIGNED", "UNSIGNED", "INT", "INTEGER", "DECIMAL", "DEC", "FLOAT", "DOUBLE", "PRECISION", "REAL", "YEAR"),
        *("DATE", "TIME", "DATETIME", "TIMESTAMP", "INTERVAL", "DAY_SECOND", "JSON", "UUID", "INET4", "INET6", "ARRAY"),
        *("POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"),
    )
)
"""The words of a type in a call (sql_yacc.yy of both families, ``cast_type``)."""
FROM_IN_CALLS: Final = ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "MID", "TRIM_ORACLE")
"""Functions with a FROM of their own between their parentheses."""
_MATCH_OPTIONS: Final = (
    ("WITH", "QUERY", "EXPANSION"),
    ("IN", "NATURAL", "LANGUAGE", "MODE"),
    ("IN", "BOOLEAN", "MODE"),
)
"""What may stand behind the expression of AGAINST: the first one also behind the second."""
_OTHER_ARGUMENTS: Final = frozenset({"VALUES", "ENCRYPT"})
"""Functions that sqlglot knows with other arguments than the servers do."""
_CALLED: Final = "`called`"
"""Stands for a function: sqlglot knows functions of many servers, each with a number of arguments, also in quotes."""
_COMPARISONS: Final = ("=", "<", ">", "<=", ">=", "<>", "!=")
_SYMBOLS: Final = {":=": "=", "->": "+", "->>": "+", "{": "(", "}": ")", ":": ","}
_NO_TABLE: Final = ("SELECT", "WITH", "VALUES", "TABLE", "LATERAL", "DUAL", "JSON_TABLE")

Name = tuple[str | None, str]


def read_query(tokens: Sequence[Token], reading: FactsBuilder) -> None:
    """A query: SELECT, WITH, VALUES, TABLE, parenthesised or not."""
    _read(tokens, reading, prefix="")


def read_expressions(tokens: Sequence[Token], reading: FactsBuilder) -> None:
    """Expressions, assignments or rows, separated by commas. Repeated ones are read once."""
    at, seen = 0, set[tuple[Token, ...]]()
    kept: list[Token] = []
    while at < len(tokens):
        end = at
        while end < len(tokens) and not is_symbol(tokens[end], ","):
            end = group_end(tokens, end) if is_symbol(tokens[end], "(") else end + 1
        part = tuple(tokens[at:end])
        if part and part not in seen:
            seen.add(part)
            kept += [*([COMMA] if kept else []), *part]
        at = end + 1
    if kept:
        _read(kept, reading, prefix="SELECT")


COMMA: Final = Token(TokenKind.SYMBOL, ",")
_OPEN: Final = Token(TokenKind.SYMBOL, "(")
_CLOSE: Final = Token(TokenKind.SYMBOL, ")")
_PLUS: Final = Token(TokenKind.SYMBOL, "+")


def word(text: str) -> Token:
    """A word that is not in the statement's text, for composing queries."""
    return Token(TokenKind.WORD, text, text)


_ONE_COLUMN: Final = (_OPEN, word("X"), word("INT"), word("PATH"), Token(TokenKind.STRING, "x"), _CLOSE)


def read_sequences(tokens: Sequence[Token], reading: FactsBuilder) -> None:
    """MariaDB's sequences: NEXT or PREVIOUS VALUE FOR name, NEXTVAL(name), LASTVAL(name), SETVAL(name, ...)."""
    if reading.dialect.flavor is not Flavor.MARIADB:
        return
    if _SEQUENCE_WORDS.isdisjoint(token.text.upper() for token in tokens):
        return
    cursor = Cursor(tokens)
    while not cursor.done:
        if cursor.words("NEXT", "VALUE", "FOR") or cursor.words("PREVIOUS", "VALUE", "FOR"):
            reading.table(cursor.qualified())
        elif cursor.peek().upper in _SEQUENCE_FUNCTIONS and is_symbol(cursor.peek(1), "("):
            cursor.at += 2
            reading.table(cursor.qualified())
        elif is_symbol(cursor.next(), ".") and cursor.peek().text.upper() in ("NEXTVAL", "CURRVAL"):
            raise Unreadable("a sequence in the syntax of sql_mode=ORACLE")


def _read(tokens: Sequence[Token], reading: FactsBuilder, prefix: str) -> None:
    most = _MOST_BESIDE_WITH if any(token.upper == "WITH" for token in tokens) else _MOST_TOKENS
    if len(tokens) > most:
        raise Unreadable(_too_long(most))
    if _depth(tokens) > _MAX_DEPTH:
        raise Unreadable("a query nested too deeply")
    read_sequences(tokens, reading)
    plain = _without_own_grammar(tokens)
    text = " ".join(filter(None, (prefix, *_Canonical(plain, reading, query=prefix == "").pieces())))
    named = _named_tables(text)
    known = {name for name, _ in named}
    for name, is_table in named:
        if is_table:
            reading.table(name)
    for name in _second_reading(tokens):
        if name not in known:
            raise Unreadable("a table that only one of two readings found")


def _without_own_grammar(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens with MATCH .. AGAINST as an expression, with one column for those of a JSON_TABLE, and without types
    in calls, the LIMIT of a GROUP_CONCAT and the annotations of a JSON_DUALITY_OBJECT, which name no table: sqlglot
    does not know all forms of them."""
    found = list(tokens)
    for at in range(len(tokens) - 1, -1, -1):
        if at > 0 and is_symbol(tokens[at - 1], "."):
            continue
        if tokens[at].upper == "MATCH":
            _without_match(found, at)
        elif tokens[at].upper == "JSON_DUALITY_OBJECT":
            _without_annotations(found, at + 1)
        elif tokens[at].upper in _TYPED and at + 1 < len(found) and is_symbol(found[at + 1], "("):
            _without_types(found, at)
        elif tokens[at].upper == "GROUP_CONCAT" and at + 1 < len(found) and is_symbol(found[at + 1], "("):
            _without_limit(found, at + 1)
        elif tokens[at].upper == "JSON_TABLE" and at + 1 < len(found) and is_symbol(found[at + 1], "("):
            columns = find_word(found[: group_end(found, at + 1) - 1], "COLUMNS", start=at + 2) + 1
            # behind the path, which is a literal: elsewhere it is a function's name
            if found[columns - 2].kind is TokenKind.STRING and is_symbol(found[columns], "("):
                found[columns : group_end(found, columns)] = _ONE_COLUMN
    return found


def _without_annotations(tokens: list[Token], at: int) -> None:
    """What may be done through a view: ``(WITH (INSERT, NO DELETE) ..``, or one of the words without parentheses."""
    inside = Cursor(tokens, at)
    if not (inside.symbol("(") and inside.words("WITH")):
        return
    is_list = inside.symbol("(")
    while inside.any_word("NO", "INSERT", "UPDATE", "DELETE") is not None:
        if is_list:
            inside.symbol(",")
    if not is_list or inside.symbol(")"):
        del tokens[at + 1 : inside.at]


def _without_types(tokens: list[Token], at: int) -> None:
    """``CAST(a AS UNSIGNED INT)`` becomes ``CAST(a AS CHAR)``; a type of any other call is left out."""
    name, end = tokens[at].upper, group_end(tokens, at + 1) - 1
    front = {"CONVERT": ",", "JSON_VALUE": "RETURNING"}.get(name, "AS")
    for index in reversed([index for index in _outside(tokens, at + 2, end) if tokens[index].text.upper() == front]):
        behind = _type_end(tokens, index + 1)
        if name in ("CAST", "CONVERT"):
            if behind == end:
                tokens[index + 1 : end] = [word("CHAR")]
            return
        if behind > index + 1 and (name == "JSON_VALUE" or is_symbol(tokens[behind], ",", ")")):
            del tokens[index:behind]


def _outside(tokens: Sequence[Token], at: int, end: int) -> Iterator[int]:
    """The indexes of the tokens from ``at`` to ``end`` that stand outside of inner parentheses."""
    while at < end:
        yield at
        at = group_end(tokens, at) if is_symbol(tokens[at], "(") else at + 1


def _type_end(tokens: Sequence[Token], at: int) -> int:
    """The index behind the type that begins at ``at``; ``at`` if there is none."""
    cursor = Cursor(tokens, at)
    while True:
        if cursor.words("CHARACTER", "SET") or cursor.any_word("CHARSET", "COLLATE") is not None:
            cursor.next()
        elif cursor.peek().upper in _TYPE_WORDS:
            cursor.next()
            _skip_size(cursor)
        else:
            return cursor.at


def _skip_size(cursor: Cursor) -> None:
    """Step over ``(10)`` or ``(10, 2)``."""
    size = Cursor(cursor.tokens, cursor.at)
    if not (size.symbol("(") and size.next().kind is TokenKind.NUMBER):
        return
    if size.symbol(",") and size.next().kind is not TokenKind.NUMBER:
        return
    if size.symbol(")"):
        cursor.at = size.at


def _without_limit(tokens: list[Token], at: int) -> None:
    """MariaDB's ``GROUP_CONCAT(a ORDER BY b LIMIT 1)``, with an offset as that of a query."""
    end = group_end(tokens, at) - 1
    for back in (2, 4):
        size = Cursor(tokens, end - back)
        if back < end - at and size.words("LIMIT") and size.next().kind is TokenKind.NUMBER:
            has_offset = size.symbol(",") or size.words("OFFSET")
            if size.at == end or (has_offset and size.next().kind is TokenKind.NUMBER and size.at == end):
                del tokens[end - back : end]
                return


def _without_match(tokens: list[Token], at: int) -> None:
    """``MATCH (a, b) AGAINST (c IN BOOLEAN MODE)`` becomes ``COALESCE(a, b) + (c)``. The server takes the columns
    without parentheses, too."""
    against = find_word(tokens, "AGAINST", start=at)
    if not (against + 1 < len(tokens) and is_symbol(tokens[against + 1], "(")):
        return
    end = group_end(tokens, against + 1) - 1
    for words in _MATCH_OPTIONS:
        if tuple(token.upper for token in tokens[end - len(words) : end]) == words:
            end -= len(words)
            del tokens[end : end + len(words)]
    opens, closes = ((), ()) if is_symbol(tokens[at + 1], "(") else ((_OPEN,), (_CLOSE,))
    tokens[against : against + 1] = [*closes, _PLUS]
    tokens[at : at + 1] = [word("COALESCE"), *opens]


def _depth(tokens: Sequence[Token]) -> int:
    depth = deepest = 0
    for token in tokens:
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text == "(") - (token.text == ")")
            deepest = max(deepest, depth)
    return deepest


class _Canonical:
    """Writes a query's canonical text and notes the functions that it calls."""

    def __init__(self, tokens: Sequence[Token], reading: FactsBuilder, *, query: bool) -> None:
        self.cursor = Cursor(tokens)
        self.reading = reading
        self.query = query
        self.builtin = BUILTIN[reading.dialect.flavor]

    def pieces(self) -> Iterator[str]:
        """The words of the canonical text; the caller leaves out empty ones."""
        cursor = self.cursor
        while not cursor.done:
            token = cursor.peek()
            if token.kind is TokenKind.WORD:
                yield from self._word(token)
                continue
            cursor.next()
            if token.kind is TokenKind.SYMBOL:
                if token.text in (";", "?"):
                    raise Unreadable("more than one statement, or a placeholder")
                if token.text == "{":  # {OJ ...}, {d '...'}: ODBC
                    cursor.next()
                yield _SYMBOLS.get(token.text, token.text)
            elif token.kind is TokenKind.NAME:
                yield self._call(token) if is_symbol(cursor.peek(), "(") else _quoted(token.text)
            elif token.kind is not TokenKind.STRING or self._before(1).kind is not TokenKind.STRING:
                yield "'x'" if token.kind is TokenKind.STRING else "1"

    def _before(self, back: int) -> Token:
        """The token ``back`` places before the one just read."""
        index = self.cursor.at - 1 - back
        return self.cursor.tokens[index] if index >= 0 else END

    def _word(self, token: Token) -> Iterator[str]:
        if (token.upper in _SKIPPED or token.text.startswith("_")) and self._skipped():
            return
        cursor = self.cursor
        cursor.next()
        before, after = self._before(1), cursor.peek()
        if is_symbol(before, "."):
            yield self._call(token) if is_symbol(after, "(") else _quoted(token.text)
        elif token.upper == "VALUES" and self._is_value_of_column():
            yield _CALLED
        elif token.upper == "ESCAPE" and self._is_behind_operand(before, after):
            yield "+"  # of LIKE: sqlglot takes a literal alone
        elif token.upper in ("SELECT", "TABLE", "VALUES") and (token.upper == "SELECT" or self._at_query(before)):
            cursor.skip_words(*_SELECT_MODIFIERS)
            yield "SELECT 1 FROM" if token.upper == "TABLE" else "SELECT"
        elif token.upper == "DEFAULT" and is_symbol(after, "("):
            # that of a column, which the parentheses name
            return
        elif token.upper == "BINARY" and is_symbol(after, "(") and not self._is_length():
            # an operator, for which sqlglot tries a type first: each level of nested ones would triple its time
            return
        elif is_symbol(after, "(") and token.upper not in BEFORE_PARENTHESIS:
            yield self._call(token)
        else:
            yield self._plain_word(token, after)

    def _plain_word(self, token: Token, after: Token) -> str:
        """A word in the spelling of sqlglot."""
        if token.upper == "IGNORE" or (token.upper == "DEFAULT" and after.kind is not TokenKind.STRING):
            return "NULL"  # IGNORE: MariaDB's value of a column that stays as it is
        if token.upper == "INTO":
            raise Unreadable("SELECT ... INTO", "INTO")
        if token.text.isascii() and not token.text[0].isdigit() and "$" not in token.text:
            return "JOIN" if token.upper == "STRAIGHT_JOIN" else token.text
        return _quoted(token.text)

    def _is_value_of_column(self) -> bool:
        """Whether VALUES stands before a column's name in parentheses: the value that a row would have got. As a list
        of rows it would name no table, either."""
        column = Cursor(self.cursor.tokens, self.cursor.at)
        if not column.symbol("(") or not is_name(column.peek()):
            return False
        while is_name(column.next()) and column.symbol("."):
            pass
        return column.symbol(")")

    def _is_behind_operand(self, before: Token, after: Token) -> bool:
        """Whether ESCAPE is no name, and an expression follows: of a call it would be the first word."""
        is_operand = is_symbol(before, ")") or before.kind in (TokenKind.STRING, TokenKind.NUMBER, TokenKind.VARIABLE)
        return after.kind in (TokenKind.NUMBER, TokenKind.VARIABLE) or (is_operand and is_symbol(after, "("))

    def _is_length(self) -> bool:
        """Whether the parenthesis at the cursor holds the length of a type."""
        return self.cursor.peek(1).kind is TokenKind.NUMBER and is_symbol(self.cursor.peek(2), ")")

    def _skipped(self) -> bool:
        """Step over a clause that names no table, if one stands here."""
        cursor = self.cursor
        start, before = cursor.at, cursor.tokens[cursor.at - 1] if cursor.at > 0 else END
        is_optional = _OPTIONAL.get(cursor.peek().upper)
        if is_symbol(before, "."):
            return False  # a name
        if is_optional is not None and is_optional(before, cursor.peek(1)):
            cursor.next()
        elif cursor.words("NEXT", "VALUE", "FOR") or cursor.words("PREVIOUS", "VALUE", "FOR"):
            pass  # the name behind it is read as a column
        elif any(cursor.words(*words) for words in _LOCKS):
            self._lock_options()
        elif cursor.any_word("USE", "FORCE", "IGNORE") is not None and cursor.any_word("INDEX", "KEY") is not None:
            while not is_symbol(cursor.peek(), "("):
                cursor.expect("(", found=not cursor.done)
                cursor.next()
            cursor.at = group_end(cursor.tokens, cursor.at)
        else:
            cursor.at = start
            self._skip_small(before)
        return cursor.at != start

    def _skip_small(self, before: Token) -> None:
        cursor = self.cursor
        start = cursor.at
        if cursor.words("PARTITION") and is_symbol(cursor.peek(), "("):
            cursor.at = group_end(cursor.tokens, cursor.at)
        elif is_symbol(before, ")") and (cursor.at == start) and self._null_treatment():
            pass
        elif cursor.words("ROWS", "EXAMINED") and cursor.peek().kind is TokenKind.NUMBER:
            # MariaDB's LIMIT ROWS EXAMINED n, whose number stays, and LIMIT n ROWS EXAMINED n
            cursor.at += before.kind is TokenKind.NUMBER
        elif is_symbol(before, ")") and self._cycle():
            pass
        elif cursor.words("COLLATE"):  # in a type, too
            cursor.next()
        elif cursor.peek().text.startswith("_") and cursor.peek(1).kind in (TokenKind.STRING, TokenKind.NUMBER):
            cursor.next()  # a character set before a literal
        else:
            cursor.at = start

    def _null_treatment(self) -> bool:
        """NTH_VALUE(...) FROM FIRST, ... RESPECT NULLS."""
        cursor = self.cursor
        return (
            cursor.words("FROM", "FIRST") or cursor.words("RESPECT", "NULLS") or cursor.words("IGNORE", "NULLS")
        ) and cursor.peek().upper in ("OVER", "RESPECT", "IGNORE")

    def _cycle(self) -> bool:
        """MariaDB's CYCLE column, ... RESTRICT behind a common table expression."""
        cursor = self.cursor
        if not cursor.words("CYCLE"):
            return False
        while is_name(cursor.next()) and cursor.symbol(","):
            pass
        return cursor.words("RESTRICT")

    def _lock_options(self) -> None:
        cursor = self.cursor
        if cursor.words("OF"):
            cursor.qualified()
            while cursor.symbol(","):
                cursor.qualified()
        if cursor.words("WAIT"):
            cursor.next()
        elif not cursor.words("NOWAIT"):
            cursor.words("SKIP", "LOCKED")

    def _at_query(self, before: Token) -> bool:
        """Whether a query (SELECT, VALUES or TABLE) can begin behind this token."""
        if before is END:
            return self.query
        if before.upper in ("ALL", "DISTINCT"):
            before = self._before(2)
        return is_symbol(before, "(") or before.upper in _SET_OPERATORS

    def _call(self, token: Token) -> str:
        """Note a call of ``token``, which stands before a parenthesis. What to write in its place."""
        cursor = self.cursor
        before, gap = self._before(1), cursor.peek().gap
        if is_symbol(before, "."):
            self.reading.call(self._before(2).text)
            return _CALLED
        own = token.kind is TokenKind.WORD and token.upper in self.builtin
        if own and not (gap and token.upper in ADJACENT_ONLY):
            return _CALLED if token.upper in _OTHER_ARGUMENTS else token.text
        if token.upper in ("ANY", "SOME") and is_symbol(before, *_COMPARISONS):
            return token.text
        end = Cursor(cursor.tokens, group_end(cursor.tokens, cursor.at))
        columns = before.upper == "AS" or is_symbol(before, ")") or before.kind is TokenKind.STRING
        if columns or (token.upper == "OF" and before.upper == "MEMBER"):
            return token.text if token.kind is TokenKind.WORD else _quoted(token.text)
        if end.words("AS") and is_symbol(end.peek(), "("):  # WITH name (columns) AS (
            return _quoted(token.text)
        self.reading.call(None, token.text)
        return _CALLED


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _named_tables(text: str) -> tuple[tuple[Name, bool], ...]:
    # importing sqlglot takes a tenth of a second: a worker that reads only row events never needs it
    from binlane.sql.parse.trees import named_tables

    return named_tables(text)


def _second_reading(tokens: Sequence[Token]) -> Iterator[Name]:
    """The name behind each FROM and JOIN, found by the tokens alone."""
    calls: list[str] = []
    for at, token in enumerate(tokens):
        if is_symbol(token, "("):
            calls.append(tokens[at - 1].upper if at > 0 else "")
        elif is_symbol(token, ")") and calls:
            calls.pop()
        elif token.upper in ("FROM", "JOIN") and not _is_no_clause(tokens, at, calls):
            cursor = Cursor(tokens, at + 1)
            while cursor.symbol("("):
                pass
            follows = cursor.peek()
            if is_name(follows) and follows.upper not in _NO_TABLE:
                yield cursor.qualified()


def _is_no_clause(tokens: Sequence[Token], at: int, calls: Sequence[str]) -> bool:
    """Whether this FROM or JOIN belongs to a call, an index hint, a window function or FOR SYSTEM_TIME."""
    before = tokens[at - 1] if at > 0 else END
    if tokens[at].upper == "JOIN":
        return before.upper == "FOR"
    window = is_symbol(before, ")") and at + 1 < len(tokens) and tokens[at + 1].upper in ("FIRST", "LAST")
    return window or before.upper == "SYSTEM_TIME" or (bool(calls) and calls[-1] in FROM_IN_CALLS)
