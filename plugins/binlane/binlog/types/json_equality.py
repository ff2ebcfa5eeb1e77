"""JSON of two families, by value: MySQL keeps a value and spells it itself, MariaDB keeps the text that was written."""

from __future__ import annotations

import hashlib
import json
from typing import Final

_FROM, _BELOW = -(1 << 63), 1 << 64
"""Integers in between keep their digits on MySQL; others become doubles."""
_INVALID: Final = "no JSON: "


def spelled_by_value(text: str) -> str:
    """What texts of the same value have in common, as length and SHA-256; a text that is no JSON has its own."""
    try:
        plain = json.dumps(json.loads(text, parse_int=_integer), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        plain = _INVALID + text
    data = plain.encode("utf-8", "surrogatepass")
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()}"


def _integer(digits: str) -> int | float:
    # a double is exact to the digit or not at all, and int() refuses thousands of digits
    number = float(digits)
    if abs(number) < 1 << 62:
        return int(digits)
    exact = int(digits) if len(digits) < 30 else None
    return exact if exact is not None and _FROM <= exact < _BELOW else number
