"""``make sanitized``: the tests of damaged logs, with kernels that check every access to memory.

The package is copied and its kernels are compiled with the compiler's sanitizers of addresses and of undefined
behaviour. A wrong access ends the process, and prints the line of the kernel.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hatch_build import compile_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

PROJECT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = PROJECT / ".binlane" / "sanitized"
TESTS: Final = (
    *("tests/unit/binlog", "tests/unit/bootstrap/test_row_kernel.py", "tests/unit/plan/block"),
    *("tests/unit/plan/advice", "tests/unit/source", "tests/unit/verify/test_segment_keys.py"),
)
"""Every kernel is called in them, most of them with damaged input."""
_FLAGS: Final = (
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
)
_RUNTIMES: Final = ("libasan.so", "libubsan.so")
_SETTINGS: Final = {
    # every object of Python is an allocation of its own, so that an access beside it is seen
    "PYTHONMALLOC": "malloc",
    # Python frees little at its end
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def build() -> Path:
    """Compile the kernels of a copy of the package, as far as they have changed; the folder for PYTHONPATH."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(PROJECT / "plugins", FOLDER / "plugins", dirs_exist_ok=True, ignore=ignored)
    compile_kernels(FOLDER, _FLAGS)
    return FOLDER / "plugins"


def environment(plugins: Path) -> dict[str, str]:
    """That of a Python that takes the package of ``plugins``."""
    compiler = os.environ.get("CC", "cc")
    found = [subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip() for name in _RUNTIMES]
    return {**os.environ, **_SETTINGS, "LD_PRELOAD": " ".join(found), "PYTHONPATH": f"{plugins}:{PROJECT}"}


def run(tests: Sequence[str], plugins: Path) -> int:
    """pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-o", f"pythonpath={plugins} ."]
    return subprocess.run([*command, *tests], cwd=PROJECT, env=environment(plugins), check=False).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, then run the tests that are named, or ``TESTS``."""
    parser = argparse.ArgumentParser(prog="python -m lab.sanitized")
    parser.add_argument("tests", nargs=argparse.REMAINDER, help="files, folders and options of pytest")
    return run(parser.parse_args(arguments).tests or TESTS, build())


if __name__ == "__main__":
    sys.exit(main())
