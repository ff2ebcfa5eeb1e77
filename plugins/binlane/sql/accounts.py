"""Accounts in definitions and account statements: the target checks their privileges before it executes the statement.

A server writes ``DEFINER=`user`@`host` `` into every definition that it logs, in front of the object's kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.sql.parse.cursor import account_end, is_symbol
from binlane.sql.parse.facts import StatementFacts
from binlane.sql.parse.lexer import WORD_CHARS, Dialect, Token, TokenKind

_PART: Final = rf"(?:'(?:[^'\\]|''|\\.)*'|`(?:[^`]|``)*`|\"(?:[^\"\\]|\"\"|\\.)*\"|[{WORD_CHARS}.%-]+)"
ACCOUNT_PATTERN: Final = rf"(?P<user>{_PART})(?:\s*@\s*(?P<host>{_PART}))?"
"""An account as a server shows it, for ``spelled``; without a host, its host is ``%``."""
_SHOWN: Final = re.compile(rf"(?P<user>{_PART})@(?P<host>{_PART})")
_CURRENT: Final = frozenset({"CURRENT_USER", "CURRENT_ROLE"})
_DEFINES: Final = ("CREATE", "ALTER")
_BEFORE_DEFINER: Final = 12
"""CREATE OR REPLACE AGGREGATE ALGORITHM = MERGE are 6 tokens."""
_CHANGES: Final = ("ALTER", "DROP", "RENAME")
_KINDS: Final = ("USER", "ROLE")
_PARTS: Final = (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING)
_OWNED: Final = frozenset({"PROCEDURE", "FUNCTION", "EVENT", "VIEW"})
"""Kinds that only their definer, or an account with equal privileges, may alter or drop on MySQL. Not triggers."""
_SKIPPED: Final = frozenset({"IF", "NOT", "EXISTS"})


def definer(text: StatementAccounts) -> str | None:
    """``user@host`` of a definition, a role's with any host; None if it names none."""
    head = [token.upper for token in text.tokens[:_BEFORE_DEFINER]]
    if head[:1] == [] or head[0] not in _DEFINES or "DEFINER" not in head:
        return None
    at = head.index("DEFINER") + 1
    if at + 1 >= len(text.tokens) or not is_symbol(text.tokens[at], "="):
        return None
    found = text.account(at + 1)
    return None if found is None or text.tokens[at + 1].upper in _CURRENT else found.name


def shown_accounts(text: str) -> Iterator[str]:
    """Each ``user@host`` in a text of binlane's own, or as a server shows it."""
    return map(spelled, _SHOWN.finditer(text))


@dataclass(frozen=True, slots=True)
class NamedAccount:
    """An account of a statement."""

    name: str
    """``user@host``; with the host ``%`` if it has none."""
    has_host: bool
    end: int
    """The index of the token behind it."""


@dataclass(frozen=True, slots=True)
class StatementAccounts:
    """The accounts of a statement, by its tokens: strings have their text in the statement alone."""

    sql: str
    tokens: Sequence[Token]
    places: Sequence[tuple[int, int]]
    dialect: Dialect

    def account(self, at: int) -> NamedAccount | None:
        """The account, or the role, that begins with a token; None if none does."""
        if at >= len(self.tokens) or self.tokens[at].kind not in _PARTS:
            return None
        user, behind = self._part(at), self.tokens[at + 1 : at + 2]
        if behind and behind[0].kind is TokenKind.VARIABLE and not behind[0].text.startswith("@@"):
            end = account_end(self.tokens, at)
            host = self._part(at + 2) if end > at + 2 else self._plain(self.sql[slice(*self.places[at + 1])][1:])
            # to MariaDB an empty host is any
            any_host = "%" if self.dialect.flavor is Flavor.MARIADB else ""
            return NamedAccount(f"{user}@{host or any_host}", True, end)
        return NamedAccount(f"{user}@%", False, at + 1)

    def with_host(self) -> Iterator[str]:
        """Each ``user@host`` that an account statement names."""
        at = 0
        while at < len(self.tokens):
            found = self.account(at)
            if found is not None and found.has_host:
                yield found.name
            at = at + 1 if found is None else found.end

    def without_host(self) -> Iterator[str]:
        """``user@%`` of each account or role that an account statement changes and names without its host."""
        for at in self._lists():
            found = self.account(at)
            while found is not None:
                if not found.has_host:
                    yield found.name
                is_more = found.end < len(self.tokens) and is_symbol(self.tokens[found.end], ",")
                found = self.account(found.end + 1) if is_more else None

    def _lists(self) -> Iterator[int]:
        """The beginnings of lists of accounts."""
        words = [token.upper for token in self.tokens]
        if words[:2] in ([verb, kind] for verb in _CHANGES for kind in _KINDS):
            if words[1] == "USER" or words[0] == "DROP":
                yield 4 if words[2:4] == ["IF", "EXISTS"] else 2
        elif words[:1] not in (["GRANT"], ["REVOKE"]) and words[:3] != ["SET", "DEFAULT", "ROLE"]:
            return
        for at, word in enumerate(words):
            if word in ("TO", "FROM") and at:
                yield at + 1

    def _part(self, at: int) -> str:
        return self._plain(self.sql[slice(*self.places[at])])

    def _plain(self, part: str) -> str:
        return _plain(part, escapes=not self.dialect.no_backslash_escapes, ansi_quotes=self.dialect.ansi_quotes)


def defined(verb: str, kind: str, tokens: Sequence[Token], facts: StatementFacts) -> Iterator[str]:
    """Kind and name of each view, trigger, routine or event that a statement defines, alters or drops."""
    if kind == "VIEW":
        keys = facts.tables if verb == "DROP" else facts.views
        yield from sorted(f"view {key}" for key in keys)
        return
    at = next((place for place, token in enumerate(tokens) if token.upper == kind), None)
    rest = [] if at is None else [token for token in tokens[at + 1 : at + 7] if token.upper not in _SKIPPED]
    if not rest:
        return
    if len(rest) > 2 and is_symbol(rest[1], "."):
        database, name = rest[0].text, rest[2].text
    else:
        database, name = ", ".join(sorted(facts.databases)), rest[0].text
    if database:  # without a database, DROP FUNCTION may mean a loadable function
        yield f"{kind.lower()} {database}.{name}"


def is_owned(verb: str, kind: str, head: Sequence[str]) -> bool:
    """Whether a statement changes an existing object whose definer MySQL protects, whatever the new definer is."""
    return kind in _OWNED and (verb in ("ALTER", "DROP") or "REPLACE" in head)


def spelled(match: re.Match[str]) -> str:
    """``user@host`` of a match, without quotes."""
    return f"{_plain(match['user'])}@{'%' if match['host'] is None else _plain(match['host'])}"


def _plain(part: str, *, escapes: bool = True, ansi_quotes: bool = False) -> str:
    quote = part[:1]
    if quote not in ("'", "`", '"'):
        return part
    inner = part[1:-1]
    if not escapes or quote == "`" or (quote == '"' and ansi_quotes):
        return inner.replace(quote * 2, quote)
    # one pass: an escaped quote does not double the one behind it
    return re.sub(rf"\\(.)|{quote}({quote})", lambda match: match[1] or match[2], inner, flags=re.S)
