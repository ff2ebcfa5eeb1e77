"""The compiled kernels: their types are those that mypy reads, and their arrays are checked where they enter."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np
import pytest

import binlane.kernels
from binlane.kernels import copying, framing
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
