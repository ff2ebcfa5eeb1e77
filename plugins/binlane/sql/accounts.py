"""Accounts in definitions and account statements: the target checks their privileges before it executes the statement.

A server writes ``DEFINER=`user`@`host` `` into every definition that it logs, in front of the object's kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.facts import StatementFacts
from binlane.sql.parse.lexer import Token

_PART: Final = r"(?:'(?:[^'\\]|''|\\.)*'|`(?:[^`]|``)*`|\"(?:[^\"\\]|\"\"|\\.)*\"|[\w$.%-]+)"
_ACCOUNT: Final = rf"(?P<user>{_PART})@(?P<host>{_PART})"
ACCOUNT_PATTERN: Final = rf"(?P<user>{_PART})(?:\s*@\s*(?P<host>{_PART}))?"
"""An account in an account statement, for ``spelled``; without a host, its host is ``%``."""
_DEFINER: Final = re.compile(rf"\s*(?:CREATE|ALTER)\b[^`'\"(]*?\bDEFINER\s*=\s*{ACCOUNT_PATTERN}", re.I)
_CURRENT: Final = frozenset({"CURRENT_USER", "CURRENT_ROLE"})
_NAMED: Final = re.compile(_ACCOUNT)
_CHANGES: Final = re.compile(r"\s*(?:GRANT|REVOKE|SET\s+DEFAULT\s+ROLE|(?:ALTER|DROP|RENAME)\s+(?:USER|ROLE))\b", re.I)
_LIST: Final = re.compile(r"\b(?:TO|FROM|USER|DROP\s+ROLE)\b(?:\s+IF\s+EXISTS\b)?\s*", re.I)
_MEMBER: Final = re.compile(rf"{ACCOUNT_PATTERN}\s*(?:,\s*|(?=\s|;|\Z))")
_OWNED: Final = frozenset({"PROCEDURE", "FUNCTION", "EVENT", "VIEW"})
"""Kinds that only their definer, or an account with equal privileges, may alter or drop on MySQL. Not triggers."""
_SKIPPED: Final = frozenset({"IF", "NOT", "EXISTS"})


def definer(sql: str) -> str | None:
    """``user@host`` of a definition, a role's with any host; None if it names none."""
    match = _DEFINER.match(sql)
    return None if match is None or match["user"].upper() in _CURRENT else spelled(match)


def accounts(sql: str) -> Iterator[str]:
    """Each ``user@host`` that an account statement names."""
    return map(spelled, _NAMED.finditer(sql))


def without_host(sql: str) -> Iterator[str]:
    """``user@%`` of each account or role that an account statement changes and names without its host."""
    for head in _LIST.finditer(sql) if _CHANGES.match(sql) is not None else ():
        at = head.end()
        while (match := _MEMBER.match(sql, at)) is not None:
            at = match.end()
            if match["host"] is None:
                yield spelled(match)


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


def _plain(part: str) -> str:
    quote = part[0]
    if quote not in "'`\"":
        return part
    inner = part[1:-1].replace(quote * 2, quote)
    return inner if quote == "`" else re.sub(r"\\(.)", r"\1", inner)
