"""Whether a definition that a server shows makes an object of its database, and nothing else.

What answers as the source may be another program, and this account would run its answer on the target. So every text is
read, by the lexer, before it runs: a database has options alone, a table or a sequence is read to its end
(``sql.parse.shown_table``), and behind the head of a program, which names its definer, stands a body, which no server
runs when it is made.
(Functions of a view, which MariaDB calls then: ``view_functions``.)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from binlane.binlog.types.charsets import decode_text
from binlane.binlog.types.collations import is_charset
from binlane.binlog.types.literals import identifier
from binlane.bootstrap.sessions import Session
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.safe_text import shown
from binlane.schema.letter_case import lower
from binlane.sessions.pins import WRITE_MODE
from binlane.sql.charset import definition_context, dialect_in, masked
from binlane.sql.parse.cursor import Cursor, is_name, is_symbol
from binlane.sql.parse.engines import engine_elsewhere
from binlane.sql.parse.lexer import Token, TokenKind, Unreadable, lex
from binlane.sql.parse.shown_table import hidden_part
from binlane.sql.parse.table_calls import called_elsewhere
from binlane.sql.shared_reading import has_condition
from binlane.sql.sql_modes import modes_there

if TYPE_CHECKING:
    from binlane.bootstrap.definition_copy import Definition

_WORD: Final = re.compile(r"\w*", re.ASCII)
_OF_ROWS: Final = frozenset({"TABLE", "SEQUENCE"})
_PROGRAMS: Final = frozenset({"VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE", "PACKAGE BODY"})
_CURRENT: Final = frozenset({"CURRENT_USER", "CURRENT_ROLE"})
_OWN_MODES: Final = _PROGRAMS - {"VIEW"}
"""Kinds of which a server keeps the ``sql_mode``; others are shown as they are read in any."""
_SONAME: Final = 3
"""Words between the name of a function of a library and its file, at most."""


def session_modes(definition: Definition, flavor: Flavor) -> str:
    """The ``sql_mode`` in which a session of the target makes the object, and by which its text is read: one value for
    both. Raises ValueError for one that no server shows."""
    return WRITE_MODE if definition.kind not in _OWN_MODES else modes_there(definition.sql_mode, flavor)


def foreign_part(definition: Definition, session: Session) -> str | None:
    """What a definition has that none of its object has, for messages; None if there is nothing. ``session``: on the
    server that has shown it, or will run it."""
    words = definition.client, definition.collation, definition.database_collation
    if not all(map(_WORD.fullmatch, words)):
        return f"the character set {' '.join(words)}"
    if definition.kind in _PROGRAMS and not (is_charset(definition.client.lower()) and definition.collation):
        # a number, which a server takes for a collation, and none at all are read in one set and sent in another
        return f"no character set of its client ({definition.client!r}, collation {definition.collation!r})"
    try:
        modes = session_modes(definition, session.flavor)
    except ValueError as strange:
        return str(strange)
    if definition.kind == "DATABASE":
        is_own = _Head.of(definition, session).is_of_database()
    elif definition.kind in _OF_ROWS:
        if (hidden := hidden_part(definition.statement.decode("latin-1"))) is not None:
            return hidden
        head = _Head.of(definition, session)
        if (elsewhere := engine_elsewhere(head.cursor.tokens)) is not None:
            return f"{elsewhere}, whose rows are elsewhere"
        if definition.kind == "TABLE" and (call := called_elsewhere(head.cursor.tokens, session.flavor)) is not None:
            return f"{call}, which is no function of the server's own"
        is_own = head.is_of_table()
    elif definition.kind in _PROGRAMS:
        context = definition_context(modes, definition.client)
        if has_condition(definition.statement, context, session.flavor):
            return "a comment that is SQL to servers of some versions alone"
        is_own = definition.statement == _removal(definition) or _Head.of(definition, session).is_of_program()
    else:
        return f"an object of the kind {definition.kind}"
    return None if is_own else f"another statement: {shown(definition.statement.decode('utf-8', 'replace'))!r}"


def shown_engine(definition: Definition, session: Session) -> str:
    """The engine of a table whose definition has no foreign part; empty if it names none."""
    cursor = _Head.of(definition, session).cursor
    while not cursor.done:
        if cursor.words("ENGINE"):
            cursor.symbol("=")
            return cursor.peek().text
        cursor.next()
    return ""


def _removal(definition: Definition) -> bytes:
    """What stands in front of a definition that replaces an object (``object_mends.replacing``)."""
    name = f"{identifier(definition.database)}.{identifier(definition.name)}"
    return f"DROP {definition.kind} IF EXISTS {name}".encode()


@dataclass(frozen=True, slots=True)
class _Head:
    """A statement up to where it cannot be read."""

    definition: Definition
    session: Session
    cursor: Cursor
    places: list[tuple[int, int]]
    """Of the tokens, in the statement's bytes."""
    ansi_quotes: bool

    @classmethod
    def of(cls, definition: Definition, session: Session) -> _Head:
        dialect = dialect_in(session_modes(definition, session.flavor), session.flavor)
        tokens, places = list[Token](), list[tuple[int, int]]()
        try:
            lex(masked(definition.statement, definition.client.lower()), dialect, tokens, places)
        except Unreadable:
            # what follows the head of a program is its body
            del tokens[len(places) if definition.kind in _PROGRAMS else 0 :]
        return cls(definition, session, Cursor(tokens), places, dialect.ansi_quotes)

    def is_of_database(self) -> bool:
        """Whether it is the database, with options alone, whichever of them a server takes for comments."""
        cursor = self.cursor
        if cursor.any_word("CREATE", "ALTER") is None or not cursor.words("DATABASE") or not is_name(cursor.next()):
            return False
        if not self._is_own(cursor.at - 1):
            return False
        while not cursor.done:
            cursor.words("DEFAULT")
            if not cursor.words("CHARACTER", "SET") and cursor.any_word("COLLATE", "ENCRYPTION", "COMMENT") is None:
                return False
            cursor.symbol("=")
            if cursor.next().kind not in (TokenKind.WORD, TokenKind.STRING):
                return False
        return True

    def is_of_table(self) -> bool:
        """Whether it is a list of columns, or a sequence, and its rows are in no table of another database."""
        cursor, kind = self.cursor, self.definition.kind
        if not (cursor.words("CREATE", kind) and self._is_own_name()):
            return False
        if is_symbol(cursor.peek(), "(") is not (kind == "TABLE"):
            return False
        while not cursor.done:
            if cursor.words("UNION"):
                cursor.symbol("=")
                while cursor.symbol("(") or cursor.symbol(","):
                    if not self._is_own_name():
                        return False
            else:
                cursor.next()
        return True

    def is_of_program(self) -> bool:
        """Whether it defines a routine, view, trigger or event of the database."""
        cursor, kind = self.cursor, self.definition.kind
        if not cursor.words("CREATE"):
            return False
        cursor.words("OR", "REPLACE")
        if cursor.words("ALGORITHM"):
            cursor.symbol("=")
            cursor.next()
        # a program without one is of the account that makes it, and runs with its privileges
        if not (cursor.words("DEFINER") and self._is_definer()):
            return False
        if cursor.words("SQL", "SECURITY"):
            cursor.next()
        cursor.words("AGGREGATE")
        if not cursor.words(*kind.split()) or (kind == "PACKAGE" and cursor.peek().upper == "BODY"):
            return False
        cursor.words("IF", "NOT", "EXISTS")
        if not self._is_own_name():
            return False
        if kind == "FUNCTION":
            return is_symbol(cursor.peek(), "(") or all(cursor.peek(at).upper != "SONAME" for at in range(_SONAME))
        return kind != "TRIGGER" or self._is_of_own_table()

    def _is_definer(self) -> bool:
        """Whether it is an account, or a role, by its name."""
        cursor = self.cursor
        if not cursor.symbol("=") or cursor.peek().upper in _CURRENT or not is_name(cursor.next()):
            return False
        host = cursor.peek()
        if host.kind is TokenKind.VARIABLE:
            # a string ends elsewhere in another mode
            return cursor.next().text[1] not in ("'", "" if self.ansi_quotes else '"')
        return True

    def _is_of_own_table(self) -> bool:
        cursor = self.cursor
        while not cursor.done and not cursor.words("ON"):
            cursor.next()
        return self._is_own_name()

    def _is_own_name(self) -> bool:
        """Step over a name, or over two of which the first is the database's."""
        at = self.cursor.at
        try:
            named, _ = self.cursor.qualified()
        except Unreadable:
            return False
        return named is None or self._is_own(at)

    def _is_own(self, at: int) -> bool:
        """Whether a token is the database's name."""
        begin, end = self.places[at]
        written = self.definition.statement[begin:end]
        quote = written[:1]
        if quote in (b"`", b'"'):
            written = written[1:-1].replace(quote * 2, quote)
        own = self.definition.database
        # servers write some names in UTF-8 themselves, and keep some as they were given
        found = {decode_text(written, each) for each in ("utf8mb4", self.definition.client.lower())} - {None}
        return own in found or (lower(own) in {lower(each) for each in found if each} and self._folds())

    def _folds(self) -> bool:
        """Whether the server finds a database by its name in other letters."""
        return self.session.texts("SELECT @@lower_case_table_names") != [("0",)]
