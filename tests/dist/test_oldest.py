"""Names that the oldest Airflow has elsewhere, or lacks, are asked for in one module, which knows both."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final
from tests.parsing import parsed

PACKAGE: Final = Path(__file__).parents[2] / "plugins" / "binlane"
KNOWS: Final = PACKAGE / "orchestration" / "airflow" / "releases.py"
LACKING: Final = {
    "airflow.sdk": {"CronDataIntervalTimetable"},
    "airflow.sdk.definitions.callback": {"SyncCallback"},
    "airflow.sdk.exceptions": {"AirflowFailException", "AirflowNotFoundException", "AirflowSkipException"},
    "airflow.sdk.observability.stats": {"Stats"},
}
"""What Airflow 3.1.1 does not have, by module."""


def imported(file: Path) -> set[tuple[str, str]]:
    """Pairs of a module and a name that a file imports."""
    found = ast.walk(parsed(file.read_text("utf-8")))
    return {(node.module or "", each.name) for node in found if isinstance(node, ast.ImportFrom) for each in node.names}


def test_one_module_alone_asks_for_what_the_oldest_airflow_lacks() -> None:
    lacking = {(module, name) for module, names in LACKING.items() for name in names}
    assert imported(KNOWS) >= lacking
    others = {file: imported(file) & lacking for file in PACKAGE.rglob("*.py") if file != KNOWS}
    assert {file.name: names for file, names in others.items() if names} == {}
