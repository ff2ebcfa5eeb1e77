"""Statements that depend on the account that executes them; on the target that is the channel's account.

The log has the source's account beside the statement (Q_INVOKER), not in its text, for ALTER EVENT without DEFINER,
for account statements with CURRENT_USER, and for MariaDB's CREATE ROLE, which makes its invoker the administrator.
Tried with MariaDB 10.11 and MySQL 9.7, which write an explicit DEFINER into every other definition.
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
    """The statement with the account that executed it on the source written into its text.

    Raises ValueError, whose text is part of an error message, if the log does not have the account.
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
        raise ValueError(f"{what}, whose account the log does not name,")
    return b"@".join(
        quote + part.encode().replace(b"\\", b"\\\\").replace(quote, quote * 2) + quote for part in invoker
    )
