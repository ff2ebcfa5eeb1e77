"""What a worker of the plan job loads before it is at work: nothing that only the driver or other parts need."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from binlane.work.plan_job import tasks

HEAVY: Final = (
    "airflow",
    "fastapi",
    "pandas",
    "pydantic",
    "pymysql",
    "pyspark",
    "rich",
    "sqlalchemy",
    "sqlglot",
    "typer",
)
DRIVERS: Final = ("binlane.plan.window.merge", "binlane.work.plan_job.job", "binlane.orchestration")
TASKS: Final = (tasks.scan_task, tasks.map_task, tasks.fold_task)

UNPICKLED: Final = """
import pickle, sys
pickle.loads(bytes.fromhex(sys.argv[1]))
"""
ROWS_ONLY: Final = """
from binlane.plan.segment.map import scan_segment
from tests.unit.plan.logs import rows, segment_of, settings
assert scan_segment(*segment_of([rows(1, "a"), rows(2, "b")]), settings(), lambda name: False).databases
"""
WRITTEN: Final = """
import sys
from binlane.model import BlockHeader, Item, ItemKind, LogPosition
from binlane.work.files import WorkFolder
from binlane.work.lane_files import LaneFileWriter, read_blocks
folder = WorkFolder(sys.argv[1])
writer = LaneFileWriter(folder, "lane", b"format")
writer.add(BlockHeader(1, 1, 1, LogPosition("binlog.000001", 4), "0-1-1", 1.0), [Item(ItemKind.ROWS, b"rows")])
writer.close()
assert [list(block.items) for block in read_blocks(folder, "lane")] == [[Item(ItemKind.ROWS, b"rows")]]
"""
STATEMENT: Final = """
from binlane.model import Flavor
from binlane.sql.parse.analyze import analyze
analyze("INSERT INTO t SELECT * FROM u", database="a", flavor=Flavor.MYSQL)
"""


def loaded(code: str, *arguments: str) -> set[str]:
    """The modules that a new interpreter has loaded when it has run ``code``."""
    told = f"{code}\nimport sys\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", told, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("task", TASKS, ids=lambda task: str(task.__name__))
def test_a_worker_that_is_sent_a_task_loads_nothing_heavy_for_it(task: Callable[..., bytes]) -> None:
    found = loaded(UNPICKLED, pickle.dumps(partial(task, "uri", "key")).hex())
    assert "binlane.work.plan_job.tasks" in found
    assert found.isdisjoint((*HEAVY, *DRIVERS))


def test_lane_files_are_written_and_read_without_pandas(tmp_path: Path) -> None:
    assert "pandas" not in loaded(WRITTEN, str(tmp_path))


def test_rows_are_scanned_without_the_parser_of_statements() -> None:
    assert "sqlglot" not in loaded(ROWS_ONLY)
    assert "sqlglot" in loaded(STATEMENT)
