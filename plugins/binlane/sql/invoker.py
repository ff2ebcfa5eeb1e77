"""Statements that depend on the account, or its role, that executes them; on the target that is the channel's account.

The log has the source's account beside the statement (Q_INVOKER: an account, or a role, whose host is empty), not in
its text, for ALTER EVENT without DEFINER, for account statements with CURRENT_USER or CURRENT_ROLE, and for MariaDB's
CREATE ROLE, which makes its invoker the administrator. Tried with MariaDB 10.11 and MySQL 9.7, which write an explicit
DEFINER into every other definition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, Unreadable
from binlane.sql.parse.set_statement import clause_of, computed
from binlane.sql.words import StatementWords, words_of

Account = tuple[str, str]
"""User and host; the host of a role is empty."""

_MAY_BE: Final = re.compile(rb"(?:SET|GRANT|REVOKE|CREATE|ALTER|DROP|RENAME)\b", re.I)
_NAMES: Final = re.compile(rb"\b(?:EVENT|GRANT|REVOKE|USER|ROLE|PASSWORD)\b", re.I)
_CURRENT: Final = frozenset({"CURRENT_USER", "CURRENT_ROLE"})
_CALLED: Final = frozenset({"USER", "SESSION_USER", "SYSTEM_USER"})
"""With parentheses, the account of the session, which servers write out in their logs."""
_OF_INVOKER: Final = frozenset({"EVENT", "USER", "ROLE"})
_OBJECTS: Final = _OF_INVOKER | frozenset(
    {
        *("TABLE", "TABLES", "VIEW", "TRIGGER", "FUNCTION", "PROCEDURE", "PACKAGE", "DATABASE", "SCHEMA", "INDEX"),
        *("SEQUENCE", "SERVER"),
    }
)
_BEFORE_OBJECT: Final = 20
"""CREATE OR REPLACE DEFINER = `u` @ `h` are 8 tokens."""


def as_invoked(sql: bytes, context: SessionContext, invoker: Account | None, source: Flavor, target: Flavor) -> bytes:
    """A plain statement with the account or role that executed it on the source written into its text, and without SET
    STATEMENT in front: what the variables decide about it, its sql_mode and its character set, is logged beside it.

    Raises ValueError, whose text is part of an error message, if the log does not have the account, and for variables
    whose values are computed.
    """
    if _MAY_BE.match(sql) is None or _NAMES.search(sql) is None:
        return sql
    try:
        words = words_of(sql, context, source)
        clause = clause_of(words.tokens)
    except Unreadable as unreadable:
        if any(name.encode() in sql.upper() for name in _CURRENT):
            raise ValueError(f"a text with CURRENT_USER and {unreadable},") from None
        return sql
    tokens = words.tokens[clause.body :]
    if not _is_of_invoker(tokens):
        return sql
    if computed(words.tokens, clause):
        raise ValueError("SET STATEMENT with a computed value in front of a statement about an event or an account,")
    if clause.body:
        words = words_of(sql[words.places[clause.body][0] :], context, source)
    writer = _Writer(words, invoker, source)
    if _object(tokens) == "EVENT":
        return writer.event() if tokens[0].upper == "ALTER" else words.sql
    return writer.accounts(has_admin=source is not target or source is not Flavor.MARIADB)


def _is_of_invoker(tokens: Sequence[Token]) -> bool:
    verb, first = tokens[0].upper, tokens[1].upper if len(tokens) > 1 else ""
    if verb in ("GRANT", "REVOKE") or (verb == "SET" and first in ("DEFAULT", "PASSWORD", "ROLE")):
        return True
    return verb in ("CREATE", "ALTER", "DROP", "RENAME") and _object(tokens) in _OF_INVOKER


def _object(tokens: Sequence[Token]) -> str:
    """The kind of object that a definition is about; an account's part may be called so."""
    head = list(tokens[:_BEFORE_OBJECT])
    is_kind = (each.upper in _OBJECTS and not is_symbol(before, "=") for before, each in pairwise(head))
    return next((each.upper for each, found in zip(head[1:], is_kind, strict=True) if found), "")


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the account into a statement that begins with the first token."""

    words: StatementWords
    invoker: Account | None
    source: Flavor

    def event(self) -> bytes:
        """ALTER EVENT, with a DEFINER that is no CURRENT_USER."""
        tokens = self.words.tokens
        if tokens[1].upper == "DEFINER":
            if len(tokens) < 4 or not self._is_current(3):
                return self.words.sql
            return self._replaced({3: self._spelled(tokens[3].upper, "ALTER EVENT")}, end_of={3: self._end(3)})
        definer = b"DEFINER=" + self._spelled("CURRENT_USER", "ALTER EVENT") + b" "
        return self.words.replaced({1: definer + self.words.bytes_of(1)})

    def accounts(self, *, has_admin: bool) -> bytes:
        """An account statement. ``has_admin``: a role that it makes needs no administrator written behind it."""
        tokens, edits, ends = self.words.tokens, dict[int, bytes](), dict[int, int]()
        if (own := self._of_session()) is not None:
            raise ValueError(f"{own}, which means the account that runs it, and no server logs,")
        for at, token in enumerate(tokens):
            if self._is_current(at):
                edits[at] = self._spelled(token.upper, f"an account statement with {token.upper}")
                ends[at] = self._end(at)
        upper = [token.upper for token in tokens]
        creates_role = upper[0] == "CREATE" and "ROLE" in (upper[1:2] if upper[1:2] != ["OR"] else upper[3:4])
        if creates_role and not has_admin and ("WITH", "ADMIN") not in pairwise(upper):
            last = len(tokens) - 1
            while is_symbol(tokens[last], ";"):
                last -= 1
            admin = b" WITH ADMIN " + self._spelled("CURRENT_USER", "CREATE ROLE")
            # a last comment would swallow it
            end = self.words.places[last][1]
            return self.words.sql[:end] + admin
        return self._replaced(edits, end_of=ends)

    def _of_session(self) -> str | None:
        """What means the session's own account without CURRENT_USER; None if nothing does."""
        tokens, upper = self.words.tokens, [token.upper for token in self.words.tokens]
        if upper[:2] == ["SET", "PASSWORD"] and upper[2:3] != ["FOR"]:
            return "SET PASSWORD without an account"
        if upper[:3] == ["SET", "DEFAULT", "ROLE"] and not {"FOR", "TO"}.intersection(upper[3:]):
            return "SET DEFAULT ROLE without an account"
        for at, word in enumerate(upper[:-2]):
            is_call = is_symbol(tokens[at + 1], "(") and is_symbol(tokens[at + 2], ")")
            if word in _CALLED and is_call:
                return f"an account statement with {word}()"
        return None

    def _is_current(self, at: int) -> bool:
        """Whether the token is CURRENT_USER, or MariaDB's CURRENT_ROLE, and no name."""
        word = self.words.tokens[at].upper
        return word in _CURRENT and (word != "CURRENT_ROLE" or self.source is Flavor.MARIADB)

    def _end(self, at: int) -> int:
        """The index behind the last token of CURRENT_USER or CURRENT_USER()."""
        behind = self.words.tokens[at + 1 : at + 3]
        return at + 3 if len(behind) == 2 and is_symbol(behind[0], "(") and is_symbol(behind[1], ")") else at + 1

    def _replaced(self, edits: Mapping[int, bytes], *, end_of: Mapping[int, int]) -> bytes:
        found, at = bytearray(), 0
        for number in sorted(edits):
            found += self.words.sql[at : self.words.places[number][0]] + edits[number]
            at = self.words.places[end_of[number] - 1][1]
        return bytes(found + self.words.sql[at:])

    def _spelled(self, current: str, what: str) -> bytes:
        """The account in place of ``current``, CURRENT_USER or CURRENT_ROLE, as names: no sql_mode changes how they are
        read."""
        is_role = current == "CURRENT_ROLE"
        if self.invoker is None or is_role != (self.invoker[1] == ""):
            raise ValueError(f"{what}, whose account the log does not name,")
        names = [self.words.encode(part) for part in (self.invoker[:1] if is_role else self.invoker)]
        spelled = [b"`" + name.replace(b"`", b"``") + b"`" for name in names if name is not None]
        if len(spelled) < len(names):
            raise ValueError(f"{what}, whose account has a name that its session's character set cannot spell,")
        return b"@".join(spelled)
