"""Regular expressions that mean the same to every Python that the product runs on, and whose time is bounded."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

from tests.parsing import parsed
from tests.unit.test_imports import product_files

POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")


def test_no_group_is_repeated_possessively() -> None:
    """Python before 3.11.5 (Debian 12 has 3.11.2) leaves such a repetition in the middle of its last, failed round:
    https://github.com/python/cpython/issues/106052. Repetitions of one character or class are right."""
    wrong = []
    for file in product_files():
        for node in ast.walk(parsed(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
                if POSSESSIVE_GROUP.search(text):
                    wrong.append(f"{file.name}:{node.lineno}: {text!r}")
    assert wrong == []


def test_quotes_have_one_reading_in_every_pattern() -> None:
    """A doubled quote that may also be the end of one quoted part and the beginning of the next doubles the time with
    each: for a repetition of quoted parts, `[^`]*` matches all of the text that `(?:[^`]|``)*` does."""
    command = [sys.executable, "-m", "tests.quoted_texts"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired as exc:
        read = (exc.stdout or b"").decode().splitlines()
        raise AssertionError(f"reads quotes without an end: {read[-1:]}") from exc
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 300
