"""A cursor over a statement's tokens, and the facts that the readers collect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable

_RESERVED_WORDS: Final = """
ADD ALL ALTER AND AS ASC BETWEEN BY CALL CASE CHECK COLLATE COLUMN CONSTRAINT CREATE CROSS DEFAULT DELETE DESC
DISTINCT DROP ELSE EXISTS FOR FOREIGN FROM FULLTEXT GRANT GROUP HAVING IF IN INDEX INNER INSERT INTO IS JOIN KEY KEYS
LEFT LIKE LIMIT LOAD LOCK NATURAL NOT NULL ON OR ORDER PARTITION PRIMARY PROCEDURE REFERENCES RENAME REPLACE REQUIRE
REVOKE RIGHT SELECT SET SPATIAL STRAIGHT_JOIN TABLE THEN TO TRIGGER UNION UNIQUE UNLOCK UPDATE USING VALUES WHEN WHERE
WITH WRITE XOR
"""
RESERVED: Final = frozenset(_RESERVED_WORDS.split())
"""Reserved words of both families. One of them, unquoted, in place of a name shows that the grammar was misread."""
NAMES_NO_DATABASE: Final = "a name without a database, and no default database"
"""The reason of Unreadable: no server executes such a statement."""
END: Final = Token(TokenKind.SYMBOL, "")
"""The token that ``peek`` gives behind the last one."""


def is_symbol(token: Token, *texts: str) -> bool:
    """Whether the token is one of these symbols."""
    return token.kind is TokenKind.SYMBOL and token.text in texts


def is_name(token: Token) -> bool:
    """Whether the token can be an identifier."""
    return token.kind is TokenKind.NAME or (token.kind is TokenKind.WORD and token.upper not in RESERVED)


def called_name(tokens: Sequence[Token], at: int) -> str:
    """The name in capitals, if a parenthesis follows: a function that is no word of the grammar may be quoted. Else
    empty."""
    is_called = at + 1 < len(tokens) and is_symbol(tokens[at + 1], "(")
    return tokens[at].text.upper() if is_called and tokens[at].kind in (TokenKind.WORD, TokenKind.NAME) else ""


def account_end(tokens: Sequence[Token], at: int) -> int:
    """The index behind the account, the role or CURRENT_USER that begins at ``at``."""
    at += 1
    if at + 1 < len(tokens) and is_symbol(tokens[at], "(") and is_symbol(tokens[at + 1], ")"):
        at += 2
    if at < len(tokens) and tokens[at].kind is TokenKind.VARIABLE and not tokens[at].text.startswith("@@"):
        # no server takes a host behind a blank; were it one, what follows would be no keyword either
        is_empty, at = tokens[at].text == "@", at + 1
        at += is_empty and at < len(tokens) and tokens[at].kind in (TokenKind.NAME, TokenKind.STRING)
    return at


def group_end(tokens: Sequence[Token], at: int) -> int:
    """The index behind the parenthesis that closes the one at ``at``. Raises Unreadable if none does."""
    depth = 0
    for index in range(at, len(tokens)):
        if is_symbol(tokens[index], "("):
            depth += 1
        elif is_symbol(tokens[index], ")"):
            depth -= 1
            if depth == 0:
                return index + 1
    raise Unreadable("a parenthesis without an end")


def is_list_of_rows(tokens: Sequence[Token], at: int) -> bool:
    """Whether VALUES with rows begins here, and not the VALUES of a partition."""
    if tokens[at].upper != "VALUES" or at + 1 == len(tokens):
        return False
    return tokens[at + 1].upper == "ROW" or is_symbol(tokens[at + 1], "(")


def find_word(tokens: Sequence[Token], *words: str, start: int = 0) -> int:
    """The index of the first of these words outside parentheses; the number of tokens if there is none."""
    at = start
    while at < len(tokens):
        if tokens[at].upper in words:
            return at
        at = group_end(tokens, at) if is_symbol(tokens[at], "(") else at + 1
    return len(tokens)


@dataclass(slots=True)
class FactsBuilder:
    """The facts of a statement while it is being read."""

    dialect: Dialect
    default: str | None
    kind: StatementKind = StatementKind.DDL
    databases: set[str] = field(default_factory=set)
    tables: set[TableKey] = field(default_factory=set)
    written: set[TableKey] = field(default_factory=set)
    defines: set[TableKey] = field(default_factory=set)
    references: set[str] = field(default_factory=set)
    views: set[TableKey] = field(default_factory=set)
    triggered: set[TableKey] = field(default_factory=set)
    dropped_triggers: set[TableKey] = field(default_factory=set)
    dropped: set[TableKey] = field(default_factory=set)
    replaced: set[TableKey] = field(default_factory=set)
    dropped_in: set[str] = field(default_factory=set)
    renames: list[tuple[TableKey, TableKey]] = field(default_factory=list)
    exchanges: list[tuple[TableKey, TableKey]] = field(default_factory=list)
    copies: list[tuple[TableKey, TableKey]] = field(default_factory=list)
    union: set[TableKey] = field(default_factory=set)
    routine_databases: set[str] = field(default_factory=set)
    defines_programs: bool = False
    routines_used: bool = False
    functions: set[str] = field(default_factory=set)
    temporary: bool = False
    drops: bool = False
    first: TableKey | None = None
    """The first table in the statement."""
    create_select: bool = False
    rows_follow: bool = False
    commits_implicitly: bool = True
    ends_or_begins: bool = False
    drops_if_exists: bool = False
    reason: str | None = None

    def database(self, named: str | None) -> str:
        """Note and return the database of a name; the default database if the name has none."""
        found = self.default if named is None else named
        if found is None:
            raise Unreadable(NAMES_NO_DATABASE)
        self.databases.add(found)
        return found

    def table(self, key: tuple[str | None, str]) -> TableKey:
        """Note a table by its name, with or without a database."""
        table = TableKey(self.database(key[0]), key[1])
        self.tables.add(table)
        self.first = table if self.first is None else self.first
        return table

    def definition(self, key: tuple[str | None, str]) -> TableKey:
        """Note a table whose definition the statement may change."""
        table = self.table(key)
        self.defines.add(table)
        return table

    def call(self, database: str | None, function: str | None = None) -> None:
        """Note a call of a routine. Without a database, it is in the default database or a loadable function."""
        self.routines_used = True
        if function is not None:
            self.functions.add(function)
        if database is not None or self.default is not None:
            self.database(database)

    def facts(self) -> StatementFacts:
        """The facts collected so far."""
        return StatementFacts(
            kind=self.kind,
            databases=frozenset(self.databases),
            tables=frozenset(self.tables),
            first=self.first,
            written=frozenset(self.written),
            defines=frozenset(self.defines),
            references=frozenset(self.references),
            routines_used=self.routines_used,
            functions=frozenset(self.functions),
            temporary=self.temporary,
            created_temporary=self.first if self.temporary and not self.drops else None,
            create_select=self.create_select,
            rows_follow=self.rows_follow,
            commits_implicitly=self.commits_implicitly,
            views=frozenset(self.views),
            triggered=frozenset(self.triggered),
            dropped_triggers=frozenset(self.dropped_triggers),
            dropped=frozenset(self.dropped),
            replaced=frozenset(self.replaced),
            dropped_in=frozenset(self.dropped_in),
            routine_databases=frozenset(self.routine_databases),
            defines_programs=self.defines_programs,
            renames=tuple(self.renames),
            exchanges=tuple(self.exchanges),
            ends_or_begins=self.ends_or_begins,
            drops_if_exists=self.drops_if_exists,
            reason=self.reason,
            copies=tuple(self.copies),
            union=frozenset(self.union),
        )


@dataclass(slots=True)
class Cursor:
    """Reads tokens from left to right."""

    tokens: Sequence[Token]
    at: int = 0

    def peek(self, ahead: int = 0) -> Token:
        """The token ``ahead`` of the cursor without moving; END behind the last token."""
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else END

    def next(self) -> Token:
        """The token at the cursor; moves the cursor behind it."""
        token = self.peek()
        self.at += 1
        return token

    @property
    def rest(self) -> Sequence[Token]:
        """The tokens from the cursor on."""
        return self.tokens[self.at :]

    @property
    def done(self) -> bool:
        """Whether all tokens are read."""
        return self.at >= len(self.tokens)

    def words(self, *words: str) -> bool:
        """Step over these words if they all stand here, in this order."""
        tokens, at = self.tokens, self.at
        for word in words:
            if at >= len(tokens) or tokens[at].upper != word:
                return False
            at += 1
        self.at = at
        return True

    def any_word(self, *words: str) -> str | None:
        """Step over one of these words and return it; None if the next token is another."""
        found = self.peek().upper
        if found not in words:
            return None
        self.at += 1
        return found

    def skip_words(self, *words: str) -> None:
        """Step over any run of these words."""
        while self.any_word(*words) is not None:
            pass

    def symbol(self, text: str) -> bool:
        """Step over this symbol if it stands here."""
        if not is_symbol(self.peek(), text):
            return False
        self.at += 1
        return True

    def expect(self, what: str, *, found: bool) -> None:
        """Raise Unreadable unless ``found``."""
        if not found:
            raise Unreadable(f"expected {what}", self.peek().text)

    def name(self) -> str:
        """An identifier."""
        token = self.next()
        if not is_name(token):
            raise Unreadable("expected a name", token.text)
        return token.text

    def qualified(self) -> tuple[str | None, str]:
        """``name`` or ``database.name``."""
        first = self.name()
        if not self.symbol("."):
            return None, first
        token = self.next()
        if token.kind not in (TokenKind.NAME, TokenKind.WORD) or is_symbol(self.peek(), "."):
            raise Unreadable("expected a name of two parts at most", token.text)
        return first, token.text

    def finished(self) -> None:
        """Raise Unreadable if anything is left."""
        if not self.done:
            raise Unreadable("text behind the end of the statement as it is known", self.peek().text)
