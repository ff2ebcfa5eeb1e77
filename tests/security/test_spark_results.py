"""What executors of Spark send is data: it makes values of the declared types in the process that waits, and runs
nothing.

Attacker: whoever can run code on an executor of the cluster.
"""

from __future__ import annotations

import ast
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import zstandard

from binlane import errors
from binlane.errors import BinlaneError, PlanError
from binlane.plan.segment.map import MapSummary, ScanSummary
from binlane.restore.indexing import Made, made_in
from binlane.work.plan_job import tasks
from binlane.work.plan_job.errors import as_text, error_of_text
from binlane.work.plan_job.job import InProcess, run_plan_job
from binlane.work.plan_job.tasks import RESULTS
from binlane.work.plan_job.wire import from_wire, to_wire
from lab.stored_windows import stored, unpack
from tests.parsing import parsed

ROOT: Final = Path(__file__).parents[2]
_LOADERS: Final = frozenset({"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib"})


class Touched:
    """Unpickling it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.path,)


def _json(value: object) -> bytes:
    return zstandard.compress(json.dumps(value).encode())


RESULTS_OF_AN_ATTACKER: Final[tuple[Callable[[Path], bytes], ...]] = (
    lambda path: pickle.dumps(Touched(path)),
    lambda path: zstandard.compress(pickle.dumps(Touched(path))),
    lambda _: b"",
    lambda _: b"\x28\xb5\x2f\xfd",
    lambda _: zstandard.compress(b"[" * 1_000_000),
    lambda _: zstandard.compress(bytes(1 << 24)),
    lambda _: _json(None),
    lambda _: _json({}),
    lambda _: _json([]),
    lambda _: _json([[["binlane.errors", "BinlaneError"]]] * 13),
    lambda _: _json([[["db", True]], *[[] for _ in range(11)]]),
    lambda _: _json([[["db", 1e9]], *[[] for _ in range(11)]]),
)
"""Bytes in place of a task's result. A line more is an attack more."""


@pytest.mark.parametrize("kind", [*RESULTS.values(), Made])
@pytest.mark.parametrize("number", range(len(RESULTS_OF_AN_ATTACKER)))
def test_a_result_of_an_attacker_is_an_error_and_nothing_else(tmp_path: Path, kind: type, number: int) -> None:
    touched = tmp_path / "touched"
    with pytest.raises(PlanError, match="from an executor, got something else"):
        from_wire(kind, RESULTS_OF_AN_ATTACKER[number](touched))
    assert not touched.exists()


ERRORS_OF_AN_ATTACKER: Final = (
    '{"error": "annotations", "message": "x"}',
    '{"error": "printable", "message": "x"}',
    '{"error": "ClassVar", "message": "x"}',
    '{"error": "SystemExit", "message": "x"}',
    '{"error": "__import__", "message": "os"}',
    '{"error": 1, "message": "x"}',
    '{"error": "PlanError"}',
    "cbuiltins\nexec\n",
    "[" * 100_000,
    "",
)


@pytest.mark.parametrize("text", ERRORS_OF_AN_ATTACKER, ids=range(len(ERRORS_OF_AN_ATTACKER)))
def test_an_error_of_an_attacker_is_one_of_binlanes_own_classes(text: str) -> None:
    try:
        found: BinlaneError = error_of_text(text)
    except PlanError as exc:
        found = exc
    assert type(found) in {each for each in vars(errors).values() if isinstance(each, type)}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"file": 1}', "[" * 100_000, "cbuiltins\nexec\n"], ids=range(6))
def test_a_line_of_an_index_job_that_is_none_is_an_error(text: str) -> None:
    assert made_in(text) is None
    line = Made("binlog.000001", 5, 6, "a fault").as_line()
    assert made_in(f"{line}\n") == Made("binlog.000001", 5, 6, "a fault")
    with pytest.raises(PlanError, match="what the index job has printed"):
        made_in(line[: line.index("{")] + text)


def test_an_executors_error_comes_with_its_class_and_text() -> None:
    error = errors.UnsupportedEventError("binlog.000001:4: cannot be applied")
    found = error_of_text(as_text(error))
    assert (type(found), str(found)) == (type(error), str(error))


@pytest.mark.parametrize("window", stored(), ids=lambda path: path.stem)
def test_results_are_the_same_behind_the_wire(tmp_path: Path, window: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of windows of both families, in every way to fold."""
    compared: set[type] = set()

    def to_wire_and_back(kind: type, record: Any) -> bytes:
        row = to_wire(kind, record)
        if kind is MapSummary:
            # its meter is of use to the task alone
            record = replace(record, tally=replace(record.tally, meter=None))
        assert from_wire(kind, row) == record
        compared.add(kind)
        return row

    monkeypatch.setattr(tasks, "to_wire", to_wire_and_back)
    run_plan_job(unpack(window, tmp_path), InProcess())
    assert compared >= {ScanSummary, MapSummary}


def test_no_module_of_the_product_loads_pickled_values() -> None:
    found = {
        str(file.relative_to(ROOT))
        for folder in ("plugins", "spark_jobs", "dags")
        for file in (ROOT / folder).rglob("*.py")
        for node in ast.walk(parsed(file.read_text("utf-8")))
        if (isinstance(node, ast.Import) and any(each.name.partition(".")[0] in _LOADERS for each in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _LOADERS)
        or (isinstance(node, ast.Attribute) and node.attr in ("rdd", "pickleFile", "sparkContext.parallelize"))
    }
    assert found == set()
    assert {ScanSummary, MapSummary} < set(RESULTS.values())
