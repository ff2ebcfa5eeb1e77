"""Whose privileges the views and programs of a dump run with: the plan names these accounts, and a load makes nothing
with another one.

A program without DEFINER becomes that of the account that makes it, which is binlane's own on the target.
"""

from __future__ import annotations

import re
from typing import Final

ROW_KINDS: Final = frozenset({b"TABLE", b"SEQUENCE"})
OWN_ACCOUNT: Final = "binlane's own account (where the dump names none)"
NAME: Final = rb"`(?:[^`]++|``){1,256}`(?!`)"
"""A quoted name. A round is a part between doubled quotes, so that a name of any length takes no memory; the longest,
an alias, has 256 characters."""
GROUPED_NAME: Final = rb"`((?:[^`]++|``){1,256})`(?!`)"
"""The same; what is between its quotes is a group."""
_DEFINER: Final = re.compile(rb"DEFINER=(`(?:[^`]|``){0,255}`(?:@`(?:[^`]|``){0,255}`)?)")
"""In the one spelling that dump programs have. A role has no host."""
OBJECT: Final = re.compile(
    rb"(?:CREATE|ALTER)\s+(?:OR\s+REPLACE\s+)?(?:ALGORITHM\s*=\s*\w+\s+)?"
    rb"(?:(?-i:" + _DEFINER.pattern.replace(b"(`", b"(?P<definer>`", 1) + rb")\s+)?"
    rb"(?:SQL\s+SECURITY\s+\w+\s+)?(?:AGGREGATE\s+)?"
    rb"(?P<kind>TABLE|VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT|SEQUENCE|PACKAGE)\b",
    re.IGNORECASE,
)
"""A definition, its definer and its kind."""
_STAND_IN: Final = re.compile(
    rb"CREATE\s+VIEW\s+" + NAME + rb"\s+AS\s+SELECT"
    rb"(?:\s+(?:1|NULL)\s+AS\s+" + NAME + rb",){0,4095}\s+(?:1|NULL)\s+AS\s+" + NAME + rb"\s*",
    re.IGNORECASE,
)
"""A view that reads nothing: dump programs make it, without DEFINER, until the view itself can be made."""
_CONDITIONS: Final = re.compile(rb"/\*M?!\d*|\*/")
_HEAD: Final = 4096
"""Bytes in which the kind of a definition stands: an account in front of it has 256 characters at most."""


def definer_of(statement: bytes) -> str | None:
    """The account, as a plan names it, with whose privileges runs what a statement without comments makes; None if it
    makes nothing that runs."""
    made = OBJECT.match(statement)
    if made is None or made["kind"].upper() in ROW_KINDS or _STAND_IN.fullmatch(statement) is not None:
        return None
    return OWN_ACCOUNT if made["definer"] is None else _account(made["definer"])


def definers_in(text: bytes) -> set[str]:
    """The accounts of a part of a dump, as it stands there, and those that it only mentions."""
    own = definer_of(_CONDITIONS.sub(b" ", text).strip())
    return {*map(_account, _DEFINER.findall(text)), *filter(None, [own])}


def made_kind(text: bytes) -> bytes:
    """The kind of object that a part of a dump makes or alters, in capital letters; empty: none."""
    made = OBJECT.match(_CONDITIONS.sub(b" ", text[:_HEAD]).strip())
    return b"" if made is None else made["kind"].upper()


def _account(quoted: bytes) -> str:
    return quoted.replace(b"`", b"").decode("utf-8", "replace")
