"""What a server shows of one account or role: SHOW CREATE USER and the lines of SHOW GRANTS, read to their last word.

MariaDB shows with a role the privileges of every role that it has been granted, and what poses as a server may show any
statement: whoever runs or compares a line asks first whom it is about.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import Final

from binlane.binlog.types.literals import identifier, quoted
from binlane.lazy_dataclass import dataclass
from binlane.model import OWN_SCHEMA, Flavor
from binlane.safe_text import shown
from binlane.schema.letter_case import lower
from binlane.sql.accounts import StatementAccounts
from binlane.sql.grant_scope import scope_of_statement
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex

_PREPOSITIONS: Final = {"GRANT": "TO", "REVOKE": "FROM"}
_OPTIONS: Final = frozenset({"IDENTIFIED", "REQUIRE", "WITH"})
"""What may follow the account of a GRANT."""
_PUBLIC: Final = "PUBLIC"
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_SHOWN: Final = re.compile(r"CREATE USER |GRANT [^'`]{1,4000} ON \*\.\* TO ")
_PASSWORD: Final = " IDENTIFIED BY PASSWORD '"
"""MariaDB ``append_auth`` and ``add_user_parameters`` (``sql/sql_acl.cc``) append the text behind it as it is, which
everybody may choose: 41 characters, or 16."""


class About(Enum):
    """Whom, or what, a line is about."""

    ACCOUNT = auto()
    """The account that was asked for."""
    ROLE = auto()
    """A role of the same server, whose lines it shows when it is asked for that role."""
    STATE = auto()
    """The account's privileges on the schema ``binlane``, which is each target's own."""
    UNREAD = auto()
    """The account that was asked for, with a password that MariaDB shows without escapes: whose statement stands behind
    it nobody knows, and nobody runs it."""


@dataclass(frozen=True, slots=True)
class ShownAccounts:
    """How a server's lines are read."""

    flavor: Flavor
    roles: Collection[str] = ()
    """The names of a MariaDB server's roles, which have no host."""

    def about(self, sql: str, user: str, host: str | None) -> About | None:
        """Whom a line is about that a server has shown of an account, or (``host`` is None) of a role. None if it is no
        line of SHOW CREATE USER or SHOW GRANTS, or about anybody else.

        The text is one of the usual ``sql_mode``, without ANSI_QUOTES.
        """
        found = self._read(sql, user, host)
        is_account = self.flavor is Flavor.MARIADB and host is not None
        return About.UNREAD if found is None and is_account and _ends_in_password(sql, user, host or "") else found

    def _read(self, sql: str, user: str, host: str | None) -> About | None:
        dialect, tokens, places = Dialect(self.flavor), list[Token](), list[tuple[int, int]]()
        try:
            lex(sql, dialect, tokens, places)
        except Unreadable:
            return None
        # a comment may be SQL to the one that runs it, and a list of literals has no tokens
        ends, begins = (0, *(end for _, end in places)), (*(begin for begin, _ in places), len(sql))
        if any(sql[end:begin].strip(" ") for end, begin in zip(ends, begins, strict=True)):
            return None
        accounts = StatementAccounts(sql, tokens, places, dialect)
        at = _place(accounts, [token.upper for token in tokens])
        named = None if at is None else accounts.account(at)
        if at is None or named is None or not _ends(tokens, named.end):
            return None
        is_quoted = tokens[at].kind in (TokenKind.NAME, TokenKind.STRING)
        if is_quoted and (named.name, named.has_host) == (f"{user}@{'%' if host is None else host}", host is not None):
            return _scope(tokens)
        if self.flavor is not Flavor.MARIADB or named.has_host or tokens[0].upper == "CREATE":
            return None
        role = named.name.removesuffix("@%")
        return About.ROLE if role == _PUBLIC or (is_quoted and role in self.roles) else None


def _ends_in_password(sql: str, user: str, host: str) -> bool:
    """Whether a line is one that MariaDB shows of the account, up to the password."""
    begins = _SHOWN.match(sql)
    names = (f"{spelled(user)}@{spelled(host)}" for spelled in (identifier, quoted))
    return begins is not None and any(sql.startswith(name + _PASSWORD, begins.end()) for name in names)


def unread_password(name: str) -> str:
    """What is said of an account that is ``About.UNREAD``. ``name``: as SQL names it."""
    return (
        f"account {name}: left out: its password is no hash, and the server shows it without escapes; set it again "
        f"there (SET PASSWORD FOR {name} = PASSWORD('..'))"
    )


def foreign_line(name: str, sql: str) -> str:
    """The error of a line that is about nobody who was asked for. ``name``: of the account that was."""
    return (
        f"account {name}: expected what makes this account, or gives it privileges, found another statement: "
        f"{shown(sql)}; another program answers in the server's place, or changes what it says: look at host, port and "
        "ssl_mode of the connection"
    )


def _place(accounts: StatementAccounts, words: Sequence[str]) -> int | None:
    """Where the account stands that the statement makes or changes; None if it is none that servers show."""
    if words[:2] == ["CREATE", "USER"]:
        return 2
    if words[:3] == ["SET", "DEFAULT", "ROLE"]:
        role = accounts.account(3)
        return role.end + 1 if role is not None and words[role.end : role.end + 1] == ["FOR"] else None
    preposition = _PREPOSITIONS.get(words[0] if words else "")
    found = next((at for at, word in enumerate(words) if word == preposition), None)
    return None if preposition is None or found is None else found + 1


def _ends(tokens: Sequence[Token], at: int) -> bool:
    """Whether no other account and no other statement stands behind the account that ends there."""
    verb, behind = tokens[0].upper, list(tokens[at:])
    if verb == "CREATE":
        words = [token.upper for token in behind]
        roles = next((place for place in range(len(words)) if words[place : place + 2] == ["DEFAULT", "ROLE"]), None)
        if roles is not None:
            last = next((place for place in range(roles + 2, len(words)) if words[place]), len(words))
            del behind[roles:last]
    elif (verb != "GRANT" and behind) or (behind and behind[0].upper not in _OPTIONS):
        return False
    # MariaDB shows MAX_USER_CONNECTIONS -1
    signed = {at for at, (sign, value) in enumerate(pairwise(behind)) if is_symbol(sign, "-") and _is_number(value)}
    return not any(token.kind is TokenKind.SYMBOL for at, token in enumerate(behind) if at not in signed)


def _is_number(token: Token) -> bool:
    return token.kind is TokenKind.NUMBER


def _scope(tokens: Sequence[Token]) -> About | None:
    """Of a line about the account that was asked for."""
    words = [token.upper for token in tokens]
    if words[0] not in _PREPOSITIONS or "ON" not in words or words[1] == "PROXY":
        return About.ACCOUNT
    found = scope_of_statement(tokens, None)
    if found is None:
        return None
    database = _ESCAPE.sub(r"\1", found[0].database)
    return About.STATE if lower(database) == OWN_SCHEMA else About.ACCOUNT
