"""Runs the product's patterns over texts of many quotes, behind whatever each of their repetitions may follow.

Each pattern is named before it runs: Python cannot interrupt one, so the caller ends the process, and reads the last
name. Airflow's modules are left out.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import binlane

_PARSER: Final = importlib.import_module("re._parser")
_MANY: Final = 150
"""Some 30 suffice where each doubles the time."""
_LEFT_OUT: Final = re.compile(r"binlane\.(?:board|airflow_plugin|orchestration\.airflow)\b")
_REPEATED: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CATEGORIES: Final = {"SPACE": r"\s", "WORD": r"\w", "DIGIT": r"\d"}


def patterns() -> Mapping[str, re.Pattern[Any]]:
    """Each pattern of the product's modules, also in their tuples and mappings, by the place where it stands."""
    found = dict[str, re.Pattern[Any]]()
    for module in pkgutil.walk_packages(binlane.__path__, "binlane."):
        if _LEFT_OUT.match(module.name) is None:
            for name, value in vars(importlib.import_module(module.name)).items():
                inside = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value]
                compiled = [each for each in inside if isinstance(each, re.Pattern)]
                found |= {f"{module.name}.{name} {at}": each for at, each in enumerate(compiled)}
    return found


def texts(pattern: re.Pattern[Any]) -> Iterator[str]:
    """Doubled, unclosed and escaped quotes of each kind."""
    beginnings = {""}
    _matching(_PARSER.parse(pattern.pattern, pattern.flags), "", beginnings)
    for begin in beginnings:
        for quote in "`\"'":
            doubled = begin + quote + ("a" + quote * 2) * _MANY
            yield doubled
            yield doubled + quote
            yield begin + (quote + "a" + quote) * _MANY
            yield begin + ("a\\" + quote) * _MANY


def _matching(parsed: Iterable[tuple[Any, Any]], text: str, beginnings: set[str]) -> str:
    """``text`` with one that the pattern matches behind it; adds what stands in front of each repetition."""
    for code, value in parsed:
        kind = str(code)
        if kind in _REPEATED:
            least, most, inside = value
            if most > 1:
                beginnings.add(text)
            text += _matching(inside, text, beginnings)[len(text) :] * least
        elif kind == "LITERAL":
            text += chr(value)
        elif kind in ("NOT_LITERAL", "ANY"):
            text += "b" if value == ord("a") else "a"
        elif kind == "IN":
            text += next(each for each in map(chr, range(1, sys.maxunicode)) if _is_in(each, value))
        elif kind == "BRANCH":
            text, *_ = [_matching(each, text, beginnings) for each in value[1]]
        elif kind == "SUBPATTERN":
            text = _matching(value[-1], text, beginnings)
        elif kind == "ATOMIC_GROUP":
            text = _matching(value, text, beginnings)
        else:
            # they take nothing, or, in a few patterns, what a group has taken
            assert kind in ("AT", "ASSERT", "ASSERT_NOT", "GROUPREF", "GROUPREF_EXISTS"), kind
    return text


def _is_in(letter: str, members: Iterable[tuple[Any, Any]]) -> bool:
    is_in, negated = False, False
    for code, value in members:
        kind = str(code)
        if kind == "NEGATE":
            negated = True
        elif kind == "LITERAL":
            is_in |= ord(letter) == value
        elif kind == "RANGE":
            is_in |= value[0] <= ord(letter) <= value[1]
        else:
            name = str(value).removeprefix("CATEGORY_")
            matches = re.match(_CATEGORIES[name.removeprefix("NOT_")], letter) is not None
            is_in |= matches != name.startswith("NOT_")
    return is_in != negated


def main() -> None:
    for place, pattern in patterns().items():
        sys.stdout.write(f"{place}\n")
        sys.stdout.flush()
        for text in texts(pattern):
            read = text.encode("latin-1") if isinstance(pattern.pattern, bytes) else text
            pattern.search(read)
            pattern.fullmatch(read)


if __name__ == "__main__":
    main()
