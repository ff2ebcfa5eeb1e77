"""Hides secrets in what other programs answer: it becomes part of errors, notes and logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final
from urllib.parse import quote, quote_plus

HIDDEN: Final = "***"
_NAME: Final = r"authorization|secret|passw(?:or)?d|token|(?:api|access)[._-]?key|credential|signature"
_OPTION: Final = re.compile(rf"(?i)^-.*(?:{_NAME})[^=]*$|^-u$|^--user$")
"""An option whose value is the next argument."""
_USER: Final = re.compile(r"(?<=://)(?:[^/\s'\"]+|[^/\s'\"]*:[^\s'\"]{1,200})(?=@)")
"""Account and password of a URL; the password may have a slash."""
_NAMED: Final = re.compile(
    # a word is looked at once, whatever it is made of
    rf"(?i)((?<![\w.-])(?=[\w.-]*?(?:{_NAME}))[\w.-]++[\"']?\s*+[:=]\s*+[\"']?(?:(?:bearer|basic|token)\s++)?)"
    r"[^\s\"'&,;}]+"
)
"""A secret behind its name, as in headers, JSON, queries and options."""


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` without these secrets, as they are or as JSON and URLs spell them, without the accounts of URLs, and
    without values that stand behind names such as ``token``."""
    forms = {form for value in secrets if value for form in _forms(value)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return _NAMED.sub(rf"\1{HIDDEN}", _USER.sub(HIDDEN, text))


def _forms(value: str) -> tuple[str, ...]:
    return value, json.dumps(value)[1:-1], quote(value, safe=""), quote_plus(value)


def secret_arguments(command: Sequence[str]) -> list[str]:
    """Arguments of a command that are secret by the option before them."""
    return [value for option, value in pairwise(command) if _OPTION.search(option)]
