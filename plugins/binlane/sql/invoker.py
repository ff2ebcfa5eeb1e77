"""Statements that depend on the account, or its role, that executes them; on the target that is the channel's account.

The log has the source's account beside the statement (Q_INVOKER: an account, or a role, whose host is empty), not in
its text, for ALTER EVENT without DEFINER, for account statements with CURRENT_USER or CURRENT_ROLE, and for MariaDB's
CREATE ROLE, which makes its invoker the administrator. Tried with MariaDB 10.11 and MySQL 9.7, which write an explicit
DEFINER into every other definition.
"""

from __future__ import annotations

import re
from typing import Final

from binlane.model import Flavor

Account = tuple[str, str]
"""User and host; the host of a role is empty."""

_QUOTED: Final = rb"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`"""
_COMMENT: Final = rb"/\*(?!M?!).*?\*/|--(?=\s|\Z)[^\n]*|\#[^\n]*"
_GAP: Final = rb"(?:\s|" + _COMMENT + rb")"


def _beginning(pattern: bytes) -> re.Pattern[bytes]:
    """The beginning of a statement, with comments wherever blanks may stand."""
    return re.compile(_GAP + rb"*" + pattern.replace(b" ", _GAP + rb"+"), re.I | re.S)


_ACCOUNTS: Final = _beginning(
    rb"(?:GRANT|REVOKE|(?:ALTER|DROP|RENAME) USER|CREATE (?:OR REPLACE )?ROLE|SET DEFAULT ROLE)\b"
)
_CREATE_ROLE: Final = _beginning(rb"CREATE (?:OR REPLACE )?ROLE\b")
_CURRENT: Final = rb"CURRENT_(?:USER|ROLE)\b(?:" + _GAP + rb"*\(" + _GAP + rb"*\))?"
_ALTER_EVENT: Final = _beginning(
    rb"(?P<verb>ALTER )(?:DEFINER" + _GAP + rb"*=" + _GAP + rb"*(?P<current>" + _CURRENT + rb") )?(?P<event>EVENT\b)"
)
_WITH_ADMIN: Final = re.compile(rb"\bWITH\s+ADMIN\b", re.I)
_INVOKER: Final = re.compile(
    rb"(?P<other>" + _QUOTED + rb"|" + _COMMENT + rb")|\b(?P<current>" + _CURRENT + rb")", re.I | re.S
)
_PIECE: Final = re.compile(_GAP + rb"|;|(?P<word>" + _QUOTED + rb"|.)", re.S)


def as_invoked(sql: bytes, invoker: Account | None, source: Flavor, target: Flavor) -> bytes:
    """The statement with the account or role that executed it on the source written into its text.

    Raises ValueError, whose text is part of an error message, if the log does not have the account.
    """
    if (event := _ALTER_EVENT.match(sql)) is not None:
        definer = _invoker(event["current"] or b"CURRENT_USER", invoker, b"`", "ALTER EVENT")
        return event["verb"] + b"DEFINER=" + definer + b" " + sql[event.start("event") :]
    if _ACCOUNTS.match(sql) is None:
        return sql

    def written_out(match: re.Match[bytes]) -> bytes:
        current = match["current"]
        if current is None or (_is_role(current) and source is not Flavor.MARIADB):
            return match[0]
        name = current[: len(b"CURRENT_USER")].decode().upper()
        return _invoker(current, invoker, b"'", f"an account statement with {name}")

    explicit = _INVOKER.sub(written_out, sql)
    creates_role = source is target is Flavor.MARIADB and _CREATE_ROLE.match(sql) is not None
    if creates_role and _WITH_ADMIN.search(_INVOKER.sub(b" ", sql)) is None:
        # in front of a last comment, which would swallow it
        end = max((piece.end() for piece in _PIECE.finditer(explicit) if piece["word"] is not None), default=0)
        return explicit[:end] + b" WITH ADMIN " + _invoker(b"CURRENT_USER", invoker, b"'", "CREATE ROLE")
    return explicit


def _is_role(current: bytes) -> bool:
    return current[: len(b"CURRENT_ROLE")].upper() == b"CURRENT_ROLE"


def _invoker(current: bytes, invoker: Account | None, quote: bytes, what: str) -> bytes:
    """``current``: CURRENT_USER or CURRENT_ROLE, as the statement has it."""
    if invoker is None or _is_role(current) != (invoker[1] == ""):
        raise ValueError(f"{what}, whose account the log does not name,")
    parts = invoker[:1] if _is_role(current) else invoker
    return b"@".join(quote + part.encode().replace(b"\\", b"\\\\").replace(quote, quote * 2) + quote for part in parts)
