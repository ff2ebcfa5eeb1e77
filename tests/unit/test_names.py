"""Queries over a catalogue compare names of databases by bytes: ``servers.names`` alone spells these conditions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.parsing import parsed

BINLANE: Final = Path(__file__).parents[2] / "plugins" / "binlane"
_NAME: Final = (
    r"(?:\w+\.)?(?:(?:table|schema|routine|event|trigger|specific|constraint|event_object|referenced_table)_schema"
    r"|schema_name|event_object_table|referenced_table_name)"
)
COMPARED: Final = re.compile(
    rf"(?<!AS ){_NAME}\s*(?:=|<>|!=|(?:NOT\s+)?(?:IN|LIKE)\b)(?!\s*'(?:binlane|mysql|information_schema)')", re.I
)
"""The servers' own databases are looked up by literals."""
ONE_TABLE: Final = re.compile(r"(?:\w+\.)?table_schema = (\S+) AND (?:\w+\.)?table_name = (\S+)", re.I)
"""By its path: see ``servers.names``."""
JOINED: Final = re.compile(rf"{_NAME} = (?:\w+\.){_NAME}", re.I)
OWN: Final = {
    "state/channels.py": "binlane's own tables",
    "state/migrations/check.py": "binlane's own tables",
    "sessions/state_guard.py": "binlane's own tables",
    "sessions/view_guard.py": "the text of that query",
    "servers/names.py": "the conditions themselves",
}


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """Each string of a module, one in pieces as one, with a mark for each value."""
    for node in ast.walk(parsed(file.read_text())):
        if isinstance(node, ast.JoinedStr):
            parts = (str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def collated(text: str) -> str | None:
    """The beginning of a comparison of a name by the server's collation."""
    if not ("SELECT" in text or "WHERE" in text or "{}" in text):
        return None
    match = COMPARED.search(JOINED.sub("", ONE_TABLE.sub("", text)))
    return None if match is None else match[0]


def test_no_query_compares_the_names_of_databases_by_a_collation() -> None:
    files = (file for file in BINLANE.rglob("*.py") if str(file.relative_to(BINLANE)) not in OWN)

    found = ((file, line, collated(text)) for file in sorted(files) for line, text in texts(file))

    assert [f"{file.relative_to(BINLANE)}:{line}: {what}" for file, line, what in found if what is not None] == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 FROM information_schema.tables WHERE table_schema = %s",
        "SELECT 1 FROM information_schema.triggers WHERE event_object_schema IN ('a')",
        "SELECT 1 FROM information_schema.schemata AS s WHERE s.schema_name NOT IN :names",
        "SELECT 1 FROM information_schema.routines WHERE routine_schema LIKE :names",
        "SELECT 1 FROM information_schema.tables WHERE table_schema IN ({})",
    ],
)
def test_such_a_query_would_be_found(query: str) -> None:
    assert collated(query) is not None
