"""Regular expressions that mean the same to every Python that the product runs on, and whose time is bounded."""

from __future__ import annotations

import ast
import re
import signal
import subprocess
import sys

import pytest

from tests import pattern_texts
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


def test_each_pattern_takes_a_time_that_grows_with_its_text() -> None:
    """Whatever the text is. A doubled quote that may also be the end of one quoted part and the beginning of the next
    doubles the time with each: for a repetition of quoted parts, `[^`]*` matches all of the text that `(?:[^`]|``)*`
    does. A repetition that begins at each letter of a word, or may give blanks to the next one, takes the square."""
    command = [sys.executable, "-m", "tests.pattern_texts"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    count, *slow = done.stdout.splitlines()
    assert slow == []
    assert int(count.partition(" ")[0]) > 400


def test_no_pattern_over_a_text_of_any_length_takes_memory_for_each_of_its_parts() -> None:
    """A dump of 16 kB, packed, has a name of 16 MiB, for which a group for each of its letters took 2.2 GiB."""
    places = {
        place.partition(" ")[0]
        for place, (pattern, _) in pattern_texts.patterns().items()
        if place.startswith(("binlane.restore.", "binlane.sql.parse.")) and pattern_texts.takes_memory(pattern)
    }
    assert places == pattern_texts.MEMORY_LEFT.keys()


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        pytest.param(
            r"(?i)(?:[a-z][a-z0-9+.-]*://|www\.|[\w.+-]+@[\w-]+\.(?=\w))[^\s`<>\[\]()]*", "finditer", id="addresses"
        ),
        pytest.param(r"(?i)((?:secret|token)[\w-]*[\"']?\s*[:=]\s*[\"']?)[^\s\"'&,;}]+", "sub", id="names of secrets"),
        pytest.param(r"(?s)(?:\s|--\s[^\n]*|#[^\n]*|/\*.*?\*/)*(\w+|\()", "match", id="comments"),
        pytest.param(r"([!-~]{1,512})\s+(\d{1,19})(?:\s+([!-~\s]*))?\s*", "fullmatch", id="blanks"),
        pytest.param(r"\bENGINE\s*=?\s*['\"`]?(\w+)", "findall", id="blanks around a sign"),
        pytest.param(r"(?:`(?:[^`]|``)*`)*x", "match", id="doubled quotes"),
    ],
)
def test_a_pattern_that_takes_longer_is_found(pattern: str, method: str) -> None:
    before = signal.signal(signal.SIGVTALRM, pattern_texts.late)
    try:
        assert pattern_texts.slow_text(re.compile(pattern), [method])
    finally:
        signal.signal(signal.SIGVTALRM, before)
