"""The requirements of a suite's test on its server, read from the files that it includes: tests that the servers cannot
run are skipped without a call of the driver, which takes seconds for each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

_SOURCE: Final = re.compile(r"^\s*(?:--\s*)?source\s+([\w./-]+)\s*;?\s*(?:#.*)?$", re.IGNORECASE | re.MULTILINE)
_DEBUG: Final = re.compile(r"have_debug(_sync)?\.inc$")
_FORMATS: Final = re.compile(r"have_binlog_format_(?P<names>row|mixed|statement|\w+_or_\w+)\.inc$")


def unmet(file: Path, tests: Path, binlog_format: str) -> str | None:
    """Why a release build of the server that logs in ``binlog_format`` does not run the test ``file``; None if it may.

    ``tests``: the driver's folder. The texts are the drivers' own, so that they get the same kinds.
    """
    for name in _included(file, tests):
        if _DEBUG.search(name):
            return "Test needs a debug binary"
        found = _FORMATS.search(name)
        if found is not None and binlog_format not in found["names"].split("_or_"):
            return f"Doesn't support --binlog-format={binlog_format}"
    return None


@cache
def _included(file: Path, tests: Path) -> tuple[str, ...]:
    """The names of the files that a file includes, directly or indirectly."""
    seen: dict[str, None] = {}
    waiting = list(_sources(file))
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen[name] = None
        for place in (tests / name, file.parent / name, file.parent.parent / name):
            if place.is_file():
                waiting += _sources(place)
                break
    return tuple(seen)


def _sources(file: Path) -> Iterator[str]:
    yield from _SOURCE.findall(file.read_bytes().decode("latin-1"))
