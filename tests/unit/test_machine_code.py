"""The folder of compiled kernels: another one for other text of any module."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

import pytest

from binlane.machine_code import CACHE_VARIABLE, cache_folder, load_cached, one_blas_thread

PLUGINS = Path(__file__).parents[2] / "plugins"


KERNELS = [
    str(file.relative_to(PLUGINS / "binlane"))
    for file in sorted((PLUGINS / "binlane").rglob("*.py"))
    if re.search(r"^@(?:kernel|copying|inlined)\b", file.read_text(), re.M)
]


@pytest.mark.parametrize("module", KERNELS)
def test_a_change_of_any_module_gives_another_folder(module: str, tmp_path: Path) -> None:
    for name in KERNELS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("ONE = 1\n")
    first = cache_folder(tmp_path)
    assert first is not None
    assert first.is_dir()
    assert cache_folder(tmp_path) == first
    (tmp_path / module).write_text("ONE = 2\n")
    assert cache_folder(tmp_path) not in (first, None)


def test_a_package_that_cannot_be_written_to_has_its_folder_at_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    package = tmp_path / "package"
    package.mkdir()
    (package / "__pycache__").write_text("no folder can be made here")
    found = cache_folder(package)
    assert found is not None
    assert found.parent == tmp_path / "user" / "binlane"
    (tmp_path / "user" / "binlane").rename(tmp_path / "away")
    (tmp_path / "user" / "binlane").write_text("nor here")
    assert cache_folder(package) is None


def test_a_user_without_a_home_may_import_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert cache_folder(tmp_path) is not None
    (tmp_path / "package").write_text("no folder can be made here")
    assert cache_folder(tmp_path / "package") is None


@pytest.mark.parametrize(("own", "found"), [("", "machine-code-"), ("elsewhere", "elsewhere")])
def test_numba_is_told_unless_somebody_else_has_told_it(own: str, found: str, tmp_path: Path) -> None:
    program = "import binlane.binlog.vector.frame_kernels, numba; print(numba.config.CACHE_DIR)"
    environment = {"PYTHONPATH": str(PLUGINS), "HOME": str(tmp_path)} | ({CACHE_VARIABLE: own} if own else {})
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found in done.stdout


KERNEL = """
from numba import njit

@njit(cache=True)
def added(one, other):
    return one + other
"""
CALLED = "from kernel import added; print(added(1, 2), added(1.5, 2.0))"
LOADED = """
from kernel import added
from binlane.machine_code import load_cached
load_cached(added)
print(len(added.signatures), sum(added.stats.cache_hits.values()), sum(added.stats.cache_misses.values()))
"""


def run_beside_kernel(program: str, folder: Path, **other: str) -> str:
    environment = other | {
        "PYTHONPATH": f"{PLUGINS}:{folder}",
        CACHE_VARIABLE: str(folder / "cache"),
        "HOME": str(folder),
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_machine_code_that_is_cached_is_loaded_ahead_and_none_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    assert run_beside_kernel(LOADED, tmp_path) == "0 0 0"
    assert run_beside_kernel(CALLED, tmp_path) == "3 3.5"
    assert run_beside_kernel(LOADED, tmp_path) == "2 2 0"
    # nor for another processor
    assert run_beside_kernel(LOADED, tmp_path, NUMBA_CPU_NAME="generic") == "0 0 0"
    # of another text of the module nothing is cached
    (tmp_path / "kernel.py").write_text(KERNEL.replace("one + other", "one - other"))
    assert run_beside_kernel(LOADED, tmp_path) == "0 0 0"


def test_with_another_numba_nothing_is_loaded_ahead() -> None:
    load_cached(object())


LATE = """
import numpy
from binlane.binlog.vector.compiled import copying, inlined

@inlined
def doubled(value):
    return 2 * value

@copying
def doubles(values):
    found = numpy.empty(values.size, numpy.int64)
    for index in range(values.size):
        found[index] = doubled(values[index])
    return found
"""
TOLD = """
import sys, numpy
from kernel import doubles
numbers = numpy.arange(3) if len(sys.argv) == 1 else numpy.arange(3.0)
print(doubles(numbers).tolist(), "numba.np.linalg" in sys.modules)
"""


def test_a_kernel_of_the_cache_needs_no_compiler_and_another_gets_one(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(LATE)
    assert run_beside_kernel(TOLD, tmp_path) == "[0, 2, 4] True"
    # a module that only compilations import shows whether numba has prepared for one
    assert run_beside_kernel(TOLD, tmp_path) == "[0, 2, 4] False"
    assert run_beside_kernel(TOLD.replace("sys.argv", "[0, 1]"), tmp_path) == "[0, 2, 4] True"
    assert run_beside_kernel(TOLD.replace("sys.argv", "[0, 1]"), tmp_path) == "[0, 2, 4] False"


def test_without_a_compiler_a_kernel_is_a_function(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(LATE)
    assert run_beside_kernel(TOLD, tmp_path, NUMBA_DISABLE_JIT="1") == "[0, 2, 4] False"


COUNTED = """
import numpy
from binlane.binlog.vector import compiled

def first(values):
    return values[0]

def counted(decorator):
    inner = decorator(first)
    def outer(values, times):
        found = 0
        for _ in range(times):
            found += inner(values)
        return found
    made = decorator(outer)
    assert made(numpy.arange(3) + 1, 4) == 4
    return "NRT_incref" in "".join(made.inspect_llvm().values())

print(counted(compiled.kernel), counted(compiled.copying))
"""


def test_a_kernel_gives_arrays_to_another_without_counting_references(tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(COUNTED)
    assert run_beside_kernel("import counting", tmp_path) == "False True"


THREADS = """
import os
from pathlib import Path
from binlane.cli import windows
from binlane.errors import ConfigError
try:
    windows.run("none", channels=Path("nowhere"))
except ConfigError:
    print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not list a process's threads")
def test_a_command_starts_no_threads_for_linear_algebra(tmp_path: Path) -> None:
    """OpenBLAS has one besides for each further core."""
    found, told = run_beside_kernel(THREADS, tmp_path).split()
    least, _ = run_beside_kernel(THREADS, tmp_path, OPENBLAS_NUM_THREADS="1").split()
    assert (found, told) == (least, "None")


def test_the_number_of_threads_is_set_for_the_import_alone_and_kept_if_the_user_has_set_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with one_blas_thread():
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    with pytest.raises(ImportError), one_blas_thread():
        raise ImportError
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    with one_blas_thread():
        assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
