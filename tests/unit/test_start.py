"""What the start of `binlane run` imports: a window of some seconds waits for each module."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
STARTED: Final = """
import json, sys
from binlane.cli import app, program
from importlib import import_module
from typer.main import get_command
get_command(app).commands["run"].make_context("run", ["shop"])
from binlane.orchestration.commands import run
from binlane.work.plan_job.fork_server import LANES, PLANNING
for module in (*PLANNING, *LANES):
    import_module(module)
"""
"""Arguments, and all up to the moment when the command forks its workers' server and begins to read the log."""
NEEDED: Final = {
    *("blake3", "cryptography", "fsspec", "numpy", "pyarrow", "pymysql", "rich", "sqlalchemy", "typer"),
    "pybase64",
    "zstandard",
}
"""The packages of pyproject.toml that a window of rows needs; theirs come with them."""
THEIRS: Final = {
    *("annotated_doc", "annotated_types", "click", "markdown_it", "mdurl", "pygments", "shellingham"),
    *("cffi", "greenlet", "pycparser", "typing_extensions", "yaml"),
    *("_cffi_backend", "_yaml", "colorama"),
}
"""Packages that those import."""
PARTS: Final = {
    *("", "apply", "apply.ddl", "apply.lane", "apply.lane.ways", "apply.rows", "apply.session"),
    *("binlog", "binlog.types", "binlog.vector"),
    *("cli", "config", "driver", "json_codec", "kernels", "orchestration", "orchestration.announcing"),
    *("orchestration.commands", "orchestration.extraction", "orchestration.plan_job", "plan", "plan.block"),
    *("plan.segment", "plan.transaction", "plan.window", "precheck", "precheck.account", "precheck.definitions"),
    *("precheck.bodies", "precheck.situation", "precheck.statements", "precheck.target"),
    *("schema", "servers", "sessions", "shards", "source", "sql", "sql.parse", "sql.programs", "state"),
    *("state.carried", "state.migrations", "state.orders", "state.records", "work", "work.plan_job"),
}
"""The packages of binlane with a part in a window."""
NOT_ALWAYS: Final = (
    # tables of statements, an asset event, and what typer has for another command
    *("pyarrow.compute", "pyarrow.dataset", "pandas", "urllib.request", "http.client", "xml.etree", "unittest"),
    # NumPy loads its masked arrays with some of its functions
    "numpy.ma",
    *("sqlite3", "psutil", "airflow", "pyspark", "hypothesis", "jinja2", "alembic"),
)
MOST_MODULES: Final = 477
"""Of binlane; 431 when this was written, of which a window of rows calls two thirds."""
MOST_COMPILED: Final = 50
"""Classes with compiled methods, because values of them are made at the import; 43 of 410 when this was written."""


LOADED: Final = "import json, sys; print(json.dumps(sorted(sys.modules)))"
"""What an interpreter has loaded before its first line: a distribution may add to it (Debian: sitecustomize)."""


COMPILED: Final = """
from dataclasses import is_dataclass
classes = {each for module in [*sys.modules.values()] for each in [*vars(module).values()]
           if isinstance(each, type) and str(each.__module__).startswith("binlane.") and is_dataclass(each)}
# text that was compiled has no file
print(json.dumps([each.__qualname__ for each in classes
                  if getattr(each.__init__, "__code__", json.dumps.__code__).co_filename == "<string>"]))
"""
"""Names of classes with a compiled method."""


def _modules_after(program: str) -> list[str]:
    path = {**os.environ, "PYTHONPATH": str(ROOT / "plugins")}
    done = subprocess.run([sys.executable, "-c", program], env=path, capture_output=True, text=True, check=True)
    modules: list[str] = json.loads(done.stdout)
    return modules


@pytest.fixture(scope="module")
def imported() -> list[str]:
    return sorted({*_modules_after(f"{STARTED}\n{LOADED}")} - {*_modules_after(LOADED)})


def test_no_package_is_imported_that_a_window_does_not_need(imported: list[str]) -> None:
    known = {*sys.stdlib_module_names, *NEEDED, *THEIRS, "binlane"}
    found = {name.partition(".")[0] for name in imported}
    # made by compilers, or by the interpreter itself
    made = {name for name in found if name.startswith(("__", "_cython", "_sysconfigdata", "cython_", "_openssl"))}
    assert found - known - made == set()
    assert set(NEEDED) <= found


def test_no_part_of_binlane_is_imported_that_has_none_in_a_window(imported: list[str]) -> None:
    modules = [name.removeprefix("binlane.") for name in imported if name.startswith("binlane.")]
    packages = {name for name in modules if (ROOT / "plugins" / "binlane" / name.replace(".", "/")).is_dir()}
    found = {name if name in packages else name.rpartition(".")[0] for name in modules}
    assert found == PARTS
    assert len(modules) <= MOST_MODULES, "does a window need them all? Then raise the number"


def test_most_classes_have_no_method_compiled_before_a_value_of_them_is_made() -> None:
    """The standard decorator compiles those of all classes: 0.4 ms each."""
    compiled = _modules_after(f"{STARTED}\n{COMPILED}")
    assert "TableKey" in compiled
    assert len(compiled) <= MOST_COMPILED, compiled


@pytest.mark.parametrize("module", NOT_ALWAYS)
def test_what_few_windows_need_is_imported_when_it_is_needed(imported: list[str], module: str) -> None:
    assert [name for name in imported if name == module or name.startswith(f"{module}.")] == []
