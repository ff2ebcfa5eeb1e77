"""A tree is made whole, whatever garbage there is."""

from __future__ import annotations

import ast
import gc
from pathlib import Path

from tests.parsing import parsed


class _Garbage:
    """What parses when it is collected, as a traceback's format does."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        ast.parse("(a + b)")


def test_garbage_that_parses_does_not_end_a_parse() -> None:
    text = Path(__file__).read_text("utf-8") * 20
    gc.disable()
    for _ in range(100):
        _Garbage()
    gc.enable()
    assert len(parsed(text).body) == 20 * len(parsed(Path(__file__).read_text("utf-8")).body)


def test_tests_parse_by_that_door_alone() -> None:
    tests = Path(__file__).parents[1]
    users = {file.name for file in tests.rglob("*.py") if "ast.parse(" in file.read_text("utf-8")}
    assert users == {"parsing.py", Path(__file__).name}
