"""docs/security.md names, for each boundary, the tests that hold it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]
_ROW: Final = re.compile(
    r"^\| (?P<party>[^|]+) \| (?P<not_reached>[^|]+) \| (?P<held_by>[^|]*::[^|]*) \|$", re.MULTILINE
)


def test_each_boundary_names_tests_that_are_there() -> None:
    text = (TESTS.parent / "docs" / "security.md").read_text("utf-8")
    rows = [*_ROW.finditer(text)]
    assert {"source, archive", "work folder", "Spark's executors", "the schema `binlane`", "Airflow: Viewer"} <= {
        row["party"] for row in rows
    }
    for row in rows:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", row["held_by"])
        assert named, row.group()
        for file, test in named:
            assert f"def {test}(" in (TESTS / file).read_text("utf-8"), (file, test)


def test_each_module_of_attacks_is_named_in_the_page() -> None:
    text = (TESTS.parent / "docs" / "security.md").read_text("utf-8")
    attacks = {path.name for path in Path(__file__).parent.glob("test_*.py")} - {Path(__file__).name}
    unnamed = {name for name in attacks if f"security/{name}" not in text}
    assert unnamed == set(), "add a line to the table of boundaries"
