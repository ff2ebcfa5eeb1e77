"""Reads the body of a routine or trigger, and the query of a view, to its end: each statement by its verb's reader.

Which statements a body has, and where each of them ends, is told by the grammar of stored programs (``sp_proc_stmt`` in
both servers' ``sql/sql_yacc.yy``). A statement that no reader knows makes the body Unreadable, whatever its words are:
PREPARE and EXECUTE, whose text the server builds when it runs, as well as the grammar of sql_mode=ORACLE.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.sql.parse.analyze import READERS, read_tokens
from binlane.sql.parse.cursor import Cursor, FactsBuilder, account_end, group_end, is_name, is_symbol
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable
from binlane.sql.parse.queries import read_expressions, read_query

_MAX_DEPTH: Final = 50
"""Blocks in each other; far less than Python's limit."""
_PROGRAMS: Final = ("FUNCTION", "PROCEDURE", "TRIGGER", "VIEW")
_SCOPES: Final = ("SESSION", "LOCAL", "GLOBAL", "PERSIST", "PERSIST_ONLY")
_TYPES_WORDS: Final = (
    *("UNSIGNED", "SIGNED", "ZEROFILL", "PRECISION", "VARYING", "BINARY", "ASCII", "UNICODE", "BYTE", "NATIONAL"),
    *("CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER", "VARBINARY", "TEXT", "LARGE", "OBJECT"),
)
_ON: Final = Token(TokenKind.NUMBER, "1")
"""ON, a reserved word, as the value of a variable."""
_QUERIES: Final = ("SELECT", "WITH", "VALUES", "TABLE")


def read_program(tokens: Sequence[Token], dialect: Dialect, database: str) -> None:
    """The tokens of a statement that makes a routine, trigger or view, of its body alone, or of a view's query.
    ``database``: of names without one. Raises Unreadable."""
    words = [token.upper for token in tokens]
    if "CREATE" in words[:1] or "ALTER" in words[:1]:
        tokens = tokens[_begin_of_body(tokens) :]
    while tokens and is_symbol(tokens[-1], ";"):
        tokens = tokens[:-1]
    body = _Body(Cursor(_without_check_option(tokens)), dialect, database)
    try:
        body.statement(0)
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    body.cursor.finished()


def _without_check_option(tokens: Sequence[Token]) -> Sequence[Token]:
    """The query of a view without WITH CHECK OPTION."""
    words = [token.upper for token in tokens[-4:]]
    if words[-2:] != ["CHECK", "OPTION"] or "WITH" not in words[:2]:
        return tokens
    return tokens[: -4 + words.index("WITH")] if len(words) == 4 else tokens


def _begin_of_body(tokens: Sequence[Token]) -> int:
    """The index of the first token of the body, or of a view's query."""
    cursor = Cursor(tokens, 1)
    while not cursor.done and cursor.peek().upper not in _PROGRAMS:
        if cursor.words("DEFINER") and cursor.symbol("="):
            cursor.at = account_end(tokens, cursor.at)
        elif not cursor.words("SQL", "SECURITY", "DEFINER"):
            cursor.next()
    kind = cursor.next().upper
    _ = cursor.words("IF", "NOT", "EXISTS")
    cursor.qualified()
    if kind == "VIEW":
        if is_symbol(cursor.peek(), "("):
            cursor.at = group_end(tokens, cursor.at)
        cursor.expect("AS", found=cursor.words("AS"))
    elif kind == "TRIGGER":
        while not cursor.words("FOR", "EACH", "ROW"):
            cursor.expect("FOR EACH ROW", found=not cursor.done)
            cursor.next()
        if cursor.any_word("FOLLOWS", "PRECEDES") is not None:
            cursor.name()
    else:
        cursor.expect("parameters", found=is_symbol(cursor.peek(), "("))
        cursor.at = group_end(tokens, cursor.at)
        if cursor.words("RETURNS"):
            _type(cursor)
        _characteristics(cursor)
    return cursor.at


def _type(cursor: Cursor) -> None:
    """A type with its attributes."""
    if cursor.words("TYPE", "OF") or cursor.words("ROW", "TYPE", "OF"):  # MariaDB: of a column, a table or a cursor
        while is_name(cursor.next()) and cursor.symbol("."):
            pass
        return
    cursor.any_word("NATIONAL")
    cursor.next()
    while not cursor.done:
        if is_symbol(cursor.peek(), "("):
            cursor.at = group_end(cursor.tokens, cursor.at)
        elif cursor.words("CHARACTER", "SET") or cursor.any_word("CHARSET", "COLLATE") is not None:
            cursor.next()
        elif cursor.any_word(*_TYPES_WORDS) is None:
            return


def _characteristics(cursor: Cursor) -> None:
    """What stands between the head of a routine and its body."""
    while True:
        if cursor.words("COMMENT"):
            cursor.next()
        elif cursor.words("LANGUAGE"):
            cursor.expect("SQL", found=cursor.words("SQL"))
        elif cursor.words("SQL", "SECURITY"):
            cursor.next()
        elif not any(cursor.words(*words) for words in _CHARACTERISTICS):
            return


_CHARACTERISTICS: Final = (
    ("NOT", "DETERMINISTIC"),
    ("DETERMINISTIC",),
    ("NO", "SQL"),
    ("CONTAINS", "SQL"),
    ("READS", "SQL", "DATA"),
    ("MODIFIES", "SQL", "DATA"),
)


@dataclass(slots=True)
class _Body:
    """A body that is being read, from left to right."""

    cursor: Cursor
    dialect: Dialect
    database: str

    def statement(self, depth: int) -> None:
        """One statement, without the semicolon behind it."""
        if depth > _MAX_DEPTH:
            raise Unreadable("nested too deeply")
        cursor = self.cursor
        if is_name(cursor.peek()) and is_symbol(cursor.peek(1), ":"):
            cursor.at += 2
        reader = _STATEMENTS.get(cursor.peek().upper)
        if reader is not None:
            cursor.next()
            reader(self, depth)
            return
        tokens = self.simple()
        first = tokens[0] if tokens else cursor.peek()
        if first.upper in _QUERIES or is_symbol(first, "("):
            read_query(_without_into(tokens), self.reading)
        elif first.upper in READERS:
            read_tokens(tokens, self.reading)
        else:
            raise Unreadable("a statement that bodies are not known to have", first.text)

    @property
    def reading(self) -> FactsBuilder:
        """For one statement; what it notes is not asked for."""
        return FactsBuilder(self.dialect, self.database)

    def simple(self) -> Sequence[Token]:
        """The tokens up to the semicolon; moves the cursor in front of it."""
        cursor = self.cursor
        start = cursor.at
        while not (cursor.done or is_symbol(cursor.peek(), ";")):
            cursor.at = group_end(cursor.tokens, cursor.at) if is_symbol(cursor.peek(), "(") else cursor.at + 1
        return cursor.tokens[start : cursor.at]

    def expression(self, *ends: str) -> None:
        """An expression, and one of the words behind it: those of CASE .. END inside of it are its own."""
        cursor, cases = self.cursor, 0
        start = cursor.at
        while cases or cursor.peek().upper not in ends:
            cursor.expect(" or ".join(ends), found=not (cursor.done or is_symbol(cursor.peek(), ";")))
            if is_symbol(cursor.peek(), "("):
                cursor.at = group_end(cursor.tokens, cursor.at)
            else:
                word = cursor.next().upper
                cases += (word == "CASE") - (word == "END")
        read_expressions(cursor.tokens[start : cursor.at], self.reading)
        cursor.next()

    def statements(self, depth: int, *ends: str) -> str:
        """Statements, each with its semicolon, and one of the words behind them, which is returned."""
        while True:
            if (word := self.cursor.any_word(*ends)) is not None:
                return word
            self.statement(depth + 1)
            self.semicolon()

    def semicolon(self) -> None:
        self.cursor.expect("a semicolon", found=self.cursor.symbol(";"))

    def end(self, *words: str) -> None:
        """The words behind END, and the label."""
        self.cursor.expect(" ".join(words), found=self.cursor.words(*words))
        self.label()

    def label(self) -> None:
        if is_name(self.cursor.peek()):
            self.cursor.next()

    def block(self, depth: int) -> None:
        self.cursor.words("NOT", "ATOMIC")
        self.statements(depth, "END")
        self.label()

    def if_(self, depth: int) -> None:
        word = "ELSEIF"
        while word == "ELSEIF":
            self.expression("THEN")
            word = self.statements(depth, "ELSEIF", "ELSE", "END")
        if word == "ELSE":
            self.statements(depth, "END")
        self.end("IF")

    def case(self, depth: int) -> None:
        if self.cursor.any_word("WHEN") is None:
            self.expression("WHEN")
        word = "WHEN"
        while word == "WHEN":
            self.expression("THEN")
            word = self.statements(depth, "WHEN", "ELSE", "END")
        if word == "ELSE":
            self.statements(depth, "END")
        self.end("CASE")

    def loop(self, depth: int) -> None:
        self.statements(depth, "END")
        self.end("LOOP")

    def while_(self, depth: int) -> None:
        self.expression("DO")
        self.statements(depth, "END")
        self.end("WHILE")

    def repeat(self, depth: int) -> None:
        self.statements(depth, "UNTIL")
        self.expression("END")
        self.end("REPEAT")

    def for_(self, depth: int) -> None:
        """MariaDB: over numbers, a cursor or a query."""
        cursor = self.cursor
        cursor.name()
        cursor.expect("IN", found=cursor.words("IN"))
        cursor.words("REVERSE")
        if is_symbol(cursor.peek(), "("):
            begin, cursor.at = cursor.at + 1, group_end(cursor.tokens, cursor.at)
            read_query(cursor.tokens[begin : cursor.at - 1], self.reading)
            cursor.expect("DO", found=cursor.words("DO"))
        else:
            begin = cursor.at
            while not cursor.words("DO"):
                cursor.expect("DO", found=not (cursor.done or is_symbol(cursor.peek(), ";")))
                cursor.at = group_end(cursor.tokens, cursor.at) if is_symbol(cursor.peek(), "(") else cursor.at + 1
            bounds = cursor.tokens[begin : cursor.at - 1]
            for part in _bounds(bounds):
                read_expressions(part, self.reading)
        self.statements(depth, "END")
        self.end("FOR")

    def declare(self, depth: int) -> None:
        cursor = self.cursor
        if cursor.any_word("CONTINUE", "EXIT", "UNDO") is not None:
            self.handler(depth)
            return
        cursor.name()
        if cursor.words("CURSOR"):
            if is_symbol(cursor.peek(), "("):
                cursor.at = group_end(cursor.tokens, cursor.at)
            cursor.expect("FOR", found=cursor.words("FOR"))
            read_query(self.simple(), self.reading)
        elif cursor.words("CONDITION"):
            cursor.expect("FOR", found=cursor.words("FOR"))
            self.condition()
        else:
            while cursor.symbol(","):
                cursor.name()
            _type(cursor)
            if cursor.words("DEFAULT") or cursor.symbol(":="):
                read_expressions(self.simple(), self.reading)

    def handler(self, depth: int) -> None:
        cursor = self.cursor
        cursor.expect("HANDLER FOR", found=cursor.words("HANDLER", "FOR"))
        self.condition()
        while cursor.symbol(","):
            self.condition()
        self.statement(depth + 1)

    def condition(self) -> None:
        cursor = self.cursor
        if cursor.words("SQLSTATE"):
            cursor.words("VALUE")
            cursor.next()
        elif not cursor.words("NOT", "FOUND"):
            token = cursor.next()
            cursor.expect("a condition", found=token.kind is TokenKind.NUMBER or is_name(token))

    def set(self, depth: int) -> None:
        """Assignments to variables and columns of rows; all else that SET may mean is none of them."""
        if self.cursor.peek().upper == "STATEMENT" and not is_symbol(self.cursor.peek(1), "=", ":="):
            self.cursor.at -= 1
            read_tokens(list(self.simple()), self.reading)
            return
        tokens = [_ON if token.upper == "ON" else token for token in self.simple() if token.upper not in _SCOPES]
        cursor = Cursor(tokens)
        # a variable of this name nobody can set
        cursor.expect("an assignment", found=cursor.peek().upper != "PASSWORD")
        while is_name(cursor.peek()) and is_symbol(cursor.peek(1), "."):
            cursor.at += 2
        target = cursor.next()
        is_target = is_name(target) or target.kind is TokenKind.VARIABLE
        cursor.expect("an assignment", found=is_target and is_symbol(cursor.peek(), "=", ":=", "."))
        read_expressions(tokens, self.reading)

    def returns(self, depth: int) -> None:
        read_expressions(self.simple(), self.reading)

    def named(self, depth: int) -> None:
        """LEAVE, ITERATE, CLOSE."""
        self.cursor.name()

    def open(self, depth: int) -> None:
        self.cursor.name()
        self.cursor.words("USING")
        read_expressions(self.simple(), self.reading)

    def fetch(self, depth: int) -> None:
        cursor = self.cursor
        if cursor.words("GROUP", "NEXT", "ROW"):  # of MariaDB's AGGREGATE FUNCTION
            return
        cursor.words("NEXT")
        cursor.words("FROM")
        cursor.name()
        cursor.expect("INTO", found=cursor.words("INTO"))
        cursor.at = _end_of_variables(cursor.tokens, cursor.at)

    def signal(self, depth: int) -> None:
        cursor = self.cursor
        if not (cursor.done or is_symbol(cursor.peek(), ";") or cursor.peek().upper == "SET"):
            self.condition()
        if cursor.words("SET"):
            read_expressions(self.simple(), self.reading)

    def diagnostics(self, depth: int) -> None:
        """GET DIAGNOSTICS: no expression but a number of a condition."""
        cursor = self.cursor
        cursor.any_word("CURRENT", "STACKED")
        cursor.expect("DIAGNOSTICS", found=cursor.words("DIAGNOSTICS"))
        for token in self.simple():
            cursor.expect("names", found=token.kind is not TokenKind.SYMBOL or is_symbol(token, ",", "=", "."))


def _bounds(tokens: Sequence[Token]) -> Sequence[Sequence[Token]]:
    """The parts of ``1..n``: a dot is a part of a number beside it."""
    for at, (one, two) in enumerate(itertools.pairwise(tokens)):
        if one.kind is TokenKind.NUMBER and two.kind is TokenKind.NUMBER:
            return tokens[: at + 1], tokens[at + 1 :]
        if is_symbol(two, ".") and (one.kind is TokenKind.NUMBER or is_symbol(Cursor(tokens, at + 2).peek(), ".")):
            behind = at + 1
            while behind < len(tokens) and is_symbol(tokens[behind], "."):
                behind += 1
            return tokens[: at + 1], tokens[behind:]
    return (tokens,)


def _without_into(tokens: Sequence[Token]) -> Sequence[Token]:
    """A query without its INTO of variables, of which it has one at most."""
    at = 0
    while at < len(tokens) and tokens[at].upper != "INTO":
        at = group_end(tokens, at) if is_symbol(tokens[at], "(") else at + 1
    if at == len(tokens):
        return tokens
    return [*tokens[:at], *tokens[_end_of_variables(tokens, at + 1) :]]


def _end_of_variables(tokens: Sequence[Token], at: int) -> int:
    """The index behind a list of variables. Raises Unreadable for anything else: a file."""
    cursor = Cursor(tokens, at)
    while True:
        token = cursor.next()
        while is_name(token) and cursor.symbol("."):
            token = cursor.next()
        cursor.expect("a variable", found=token.kind in (TokenKind.VARIABLE, TokenKind.WORD, TokenKind.NAME))
        cursor.expect("a variable", found=token.upper not in ("OUTFILE", "DUMPFILE"))
        if not cursor.symbol(","):
            return cursor.at


_STATEMENTS: Final[Mapping[str, Callable[[_Body, int], None]]] = {
    "BEGIN": _Body.block,
    "IF": _Body.if_,
    "CASE": _Body.case,
    "LOOP": _Body.loop,
    "WHILE": _Body.while_,
    "REPEAT": _Body.repeat,
    "FOR": _Body.for_,
    "DECLARE": _Body.declare,
    "SET": _Body.set,
    "RETURN": _Body.returns,
    "LEAVE": _Body.named,
    "ITERATE": _Body.named,
    "CLOSE": _Body.named,
    "OPEN": _Body.open,
    "FETCH": _Body.fetch,
    "SIGNAL": _Body.signal,
    "RESIGNAL": _Body.signal,
    "GET": _Body.diagnostics,
}
"""The reader of each first word that only bodies have, or that they have in another form."""
