"""Compares JSON of the two families by value: MySQL stores values and prints its own text, MariaDB stores the text."""

from __future__ import annotations

import hashlib
import json
from typing import Final

_FROM, _BELOW = -(1 << 63), 1 << 64
"""Integers of this range stay exact on MySQL; others become doubles."""
_INVALID: Final = "no JSON: "


def spelled_by_value(text: str) -> str:
    """Length and SHA-256 of a canonical form, equal for texts of the same value; of the text itself if it is no
    JSON."""
    try:
        plain = json.dumps(json.loads(text, parse_int=_integer), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        plain = _INVALID + text
    data = plain.encode("utf-8", "surrogatepass")
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()}"


def _integer(digits: str) -> int | float:
    # int() refuses thousands of digits; larger integers are doubles anyway
    number = float(digits)
    if abs(number) < 1 << 62:
        return int(digits)
    exact = int(digits) if len(digits) < 30 else None
    return exact if exact is not None and _FROM <= exact < _BELOW else number
