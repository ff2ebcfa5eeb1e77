"""Statements that mean "the account that runs this": on the target another account runs them.

The log tells who it was (Q_INVOKER) and leaves the text as it was written for ALTER EVENT without DEFINER, for account
statements with CURRENT_USER, and for MariaDB's CREATE ROLE, whose administrator is who creates it. Tried with MariaDB
10.11 and MySQL 9.7, which write an explicit DEFINER into every other definition.
"""

from __future__ import annotations

import re
from typing import Final

from binlane.model import Flavor

Account = tuple[str, str]
"""User and host."""

_ACCOUNTS: Final = re.compile(
    rb"\s*(?:GRANT|REVOKE|(?:ALTER|DROP|RENAME)\s+USER|CREATE\s+ROLE|SET\s+DEFAULT\s+ROLE)\b", re.I
)
_ALTER_EVENT: Final = re.compile(
    rb"(?P<verb>\s*ALTER\s+)(?:DEFINER\s*=\s*CURRENT_USER(?:\s*\(\s*\))?\s+)?(?P<event>EVENT\b)", re.I
)
_CREATE_ROLE: Final = re.compile(rb"\s*CREATE\s+(?:OR\s+REPLACE\s+)?ROLE\b", re.I)
_WITH_ADMIN: Final = re.compile(rb"\bWITH\s+ADMIN\b", re.I)
_CURRENT_USER: Final = re.compile(
    rb"""(?P<other>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|/\*.*?\*/|--[ \t][^\n]*|\#[^\n]*)
       | \bCURRENT_USER\b(?:\s*\(\s*\))?""",
    re.I | re.X | re.S,
)


def as_invoked(sql: bytes, invoker: Account | None, source: Flavor, target: Flavor) -> bytes:
    """The statement with the account that ran it on the source in its text.

    Raises ValueError, with words for a message, if the statement needs an account that the log does not tell.
    """
    if _ALTER_EVENT.match(sql) is not None:
        account = _account(invoker, b"`", "ALTER EVENT")
        return _ALTER_EVENT.sub(
            lambda match: match["verb"] + b"DEFINER=" + account + b" " + match["event"], sql, count=1
        )
    if _ACCOUNTS.match(sql) is None:
        return sql
    explicit = _CURRENT_USER.sub(
        lambda match: match["other"] or _account(invoker, b"'", "an account statement with CURRENT_USER"), sql
    )
    creates_role = source is target is Flavor.MARIADB and _CREATE_ROLE.match(sql) is not None
    if creates_role and _WITH_ADMIN.search(_CURRENT_USER.sub(b" ", sql)) is None:
        return explicit + b" WITH ADMIN " + _account(invoker, b"'", "CREATE ROLE")
    return explicit


def _account(invoker: Account | None, quote: bytes, what: str) -> bytes:
    if invoker is None:
        raise ValueError(f"{what}, of which the log does not tell whose account is meant,")
    return b"@".join(
        quote + part.encode().replace(b"\\", b"\\\\").replace(quote, quote * 2) + quote for part in invoker
    )
