"""The rules of ``[collations]``: a collation of the source and its replacement on the target.

Imports no other package, so that a channel file can be checked without loading them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

Rule = tuple[str, str]
"""The source's collation and the target's."""
_NAME: Final = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")


def problem_of(rules: Sequence[Rule]) -> tuple[str, str] | None:
    """The source's side of the first invalid rule, and the expected value; None if all are valid."""
    replaced = {old for old, _ in rules}
    for old, new in rules:
        if not (_NAME.fullmatch(old) and _NAME.fullmatch(new)):
            return old, "two names of collations in lower case, with their character set in front (utf8mb4_bin)"
        if _charset(old) != _charset(new):
            return old, f"a collation of the character set {_charset(old)}: bytes are copied unchanged"
        if old == new or new in replaced:
            return old, "another collation, which no other rule replaces"
    return None


def _charset(collation: str) -> str:
    charset = collation.partition("_")[0]
    return "utf8mb3" if charset == "utf8" else charset
