"""The compiled kernels: their types are those that mypy reads, and their arrays are checked where they enter."""

from __future__ import annotations

import ast
import inspect
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np
import pytest

import binlane.kernels
from binlane.binlog.vector.arrays import Ints
from binlane.kernels import copying, folding, framing
from tests.parsing import parsed

FOLDER: Final = Path(binlane.kernels.__file__).parent
KERNEL: Final = "cython_function_or_method"
NAMES: Final = sorted(file.stem for file in FOLDER.glob("*.pyx"))


def kernels_of(module: ModuleType) -> dict[str, list[str]]:
    """Each kernel's parameters."""
    return {
        name: [*inspect.signature(each).parameters]
        for name, each in vars(module).items()
        if not name.startswith("_") and type(each).__name__ == KERNEL
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_declared_types_have_the_kernels_and_the_numbers_of_the_module(name: str) -> None:
    module, declared = import_module(f"binlane.kernels.{name}"), parsed((FOLDER / f"{name}.pyi").read_text("utf-8"))
    functions = [node for node in declared.body if isinstance(node, ast.FunctionDef)]
    assert {each.name: [one.arg for one in each.args.args] for each in functions} == kernels_of(module)
    numbers = [ast.unparse(node.target) for node in declared.body if isinstance(node, ast.AnnAssign)]
    assert [name for name in numbers if type(getattr(module, name, None)) is not int] == []


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(3, np.int32), np.zeros((3, 1), np.int64), np.zeros(6, np.int64)[::2], [0, 0, 0]],
    ids=["type", "dimensions", "gaps", "list"],
)
def test_an_array_of_another_kind_is_refused(wrong: object) -> None:
    lengths, data = np.zeros(3, np.int64), np.zeros(8, np.uint8)
    with pytest.raises((ValueError, TypeError)):
        copying.gather(data, wrong, lengths, np.empty(0, np.uint8))  # type: ignore[arg-type]


def test_a_log_that_may_not_be_written_to_is_read_and_never_filled() -> None:
    data = np.frombuffer(bytes(64), np.uint8)
    assert framing.whole_events(data, 19) == (0, framing.SMALL_SIZE)
    with pytest.raises(ValueError, match="read-only"):
        copying.gather(data, np.zeros(1, np.int64), np.ones(1, np.int64), data)


def test_kernels_need_no_compiler_and_no_library_of_python() -> None:
    """Each is one file for every Python from 3.11 on."""
    files = {file.name for file in FOLDER.glob("*.so")}
    assert {f"{name}.abi3.so" for name in NAMES} <= files
    assert all(name.endswith(".abi3.so") for name in files)


def _seconds_to_fold(keys: Ints) -> float:
    """Of inserts into a table whose primary key is an integer of eight bytes."""
    count, taken = keys.size, []
    data = np.zeros((count, 9), np.uint8)
    data[:, 1:] = keys.astype("<i8").view(np.uint8).reshape(count, 8)
    begin = np.arange(0, 9 * count, 9)
    images = np.stack((np.full(count, -1), np.full(count, -1), begin, begin + 9), axis=1)
    for _ in range(3):
        entries = 2 * count
        before, now = np.zeros((entries, 2), np.int64), np.zeros((entries, 2), np.int64)
        begun = time.perf_counter()
        found = folding.fold(
            data.reshape(-1), images, np.zeros(count, np.int64), np.array([[0, 1, 0, 1, 0]]),
            np.zeros(1, np.uint8), np.full(1, 8), np.full(1, folding.PRIMARY, np.uint8), np.array([[-1, 0]]),
            np.full(1 << (2 * entries + 1).bit_length(), -1, np.int32), np.zeros(entries, np.uint64),
            np.zeros(entries, np.int64), np.zeros(entries, np.int64),
            before, now, np.zeros((1, 3), np.int64), np.zeros((1, 2), np.uint64), np.zeros(entries, np.uint8),
            np.zeros(1, np.uint8),
        )  # fmt: skip
        taken.append(time.perf_counter() - begun)
        assert found == count
    return min(taken)


def test_no_keys_of_rows_make_their_folding_quadratic() -> None:
    """Of a hash that is known, keys that share a slot can be found: here those of the hash without its secret."""
    count, mask = 2_000, np.uint64((1 << 13) - 1)
    keys = np.arange(count << 13, dtype=np.int64)
    prime = np.uint64(1099511628211)
    value = np.full(keys.size, 14695981039346656037, np.uint64) * prime
    for shift in range(0, 64, 8):
        value = (value ^ ((keys >> shift) & 0xFF).astype(np.uint64)) * prime
    chosen = keys[(value ^ (value >> np.uint64(29))) & mask == 0]
    assert _seconds_to_fold(chosen) < 10 * _seconds_to_fold(np.arange(chosen.size))
