"""The house's rules: imports run one way, and what computes does no I/O (docs/architecture.md)."""

import ast
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
BINLANE: Final = ROOT / "plugins" / "binlane"

# A part may import itself and the parts of its row.
BASE: Final = ("errors", "model", "choices")
CONFIG: Final = ("config", "connections")
VALUES: Final = (*BASE, "binlog", "shards", "plan")
SERVERS: Final = (*VALUES, *CONFIG, "driver", "work")
TOP: Final = (*SERVERS, "source", "state", "apply", "precheck", "verify", "bootstrap", "repair")
MAY_IMPORT: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("machine_code",),
    "machine_code": (),
    "safe_text": (),
    "errors": ("safe_text",),
    "model": ("errors",),
    "choices": (),
    "rename_rules": (),
    "collation_rules": (),
    "config": ("errors", "choices", "rename_rules", "collation_rules"),
    "connections": ("errors", "config"),
    "driver": ("errors",),
    "binlog": BASE,
    "shards": (*BASE, "binlog", "rename_rules"),
    "plan": (*BASE, "binlog", "shards"),
    "work": VALUES,
    "spark_daemon": ("work",),
    "source": SERVERS,
    "state": SERVERS,
    "apply": (*SERVERS, "state"),
    "precheck": (*SERVERS, "source", "state", "apply"),
    "verify": (*SERVERS, "source", "state"),
    "bootstrap": (*SERVERS, "source", "state", "apply", "precheck", "verify"),
    "repair": (*SERVERS, "source", "state", "apply", "precheck", "verify", "bootstrap"),
    "orchestration": (*TOP, "safe_text"),
    "cli": (*TOP, "orchestration"),
    "board": (*TOP, "orchestration"),
}

ONLY_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "airflow": ("orchestration", "binlane_plugin"),
    "pyspark": ("spark_jobs", "spark_daemon"),
    "fastapi": ("board",),
    "pydantic": ("board",),
    # the plugin asks Airflow's own metadata for the last run
    "sqlalchemy": ("state", "source", "apply", "precheck", "verify", "bootstrap", "repair", "binlane_plugin"),
    "pymysql": ("driver", "state", "source", "apply", "precheck", "verify", "bootstrap", "repair"),
}
"""Third-party package to the parts of the product that may import it."""

PURE: Final = ("binlog", "shards", "plan")
IMPURE_MODULES: Final = frozenset(
    (
        "os",
        "pathlib",
        "socket",
        "subprocess",
        "tempfile",
        "shutil",
        "glob",
        "time",
        "random",
        "secrets",
        "urllib",
        "http",
        "threading",
        "asyncio",
        "multiprocessing",
        "fsspec",
        "pyarrow",
        "logging",
    )
)


@dataclass(frozen=True, slots=True)
class Import:
    file: Path
    part: str
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.module}"


def product_files() -> list[Path]:
    folders = ("plugins", "spark_jobs", "dags")
    return [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]


def part_of(file: Path) -> str:
    """The part of the house a file belongs to: binlane's first name, or the folder or plugin outside of it."""
    if file.is_relative_to(BINLANE):
        first = file.relative_to(BINLANE).parts[0]
        return first.removesuffix(".py").removeprefix("__init__")
    first, *_ = file.relative_to(ROOT).parts
    return file.stem if first == "plugins" else first


def imports_of(file: Path) -> Iterator[Import]:
    for line, module in modules_of(file):
        yield Import(file, part_of(file), line, module)


def modules_of(file: Path) -> Iterator[tuple[int, str]]:
    """Every import, inside functions and under TYPE_CHECKING too: a type is a dependency as well."""
    for node in ast.walk(ast.parse(file.read_text(), str(file))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # "from binlane import errors" imports binlane.errors
            assert node.level == 0, f"{file}:{node.lineno}: a relative import"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "binlane" else [module]
        else:
            continue
        for name in names:
            yield node.lineno, name


@functools.cache
def all_imports() -> list[Import]:
    return [each for file in product_files() for each in imports_of(file)]


def test_every_part_is_in_the_table() -> None:
    parts = {part_of(file) for file in product_files() if file.is_relative_to(BINLANE)}
    assert parts <= set(MAY_IMPORT)


def test_parts_import_only_what_stands_before_them() -> None:
    wrong = []
    for each in all_imports():
        first, _, rest = each.module.partition(".")
        if first == "binlane" and each.file.is_relative_to(BINLANE):
            imported = rest.split(".")[0]
            if imported != each.part and imported not in MAY_IMPORT[each.part]:
                wrong.append(str(each))
    assert wrong == []


def test_the_table_itself_has_no_circle() -> None:
    done: set[str] = set()
    left = dict(MAY_IMPORT)
    while ready := [part for part, before in left.items() if set(before) <= done | {part}]:
        for part in ready:
            done.add(part)
            del left[part]
    assert set(left) == set()


@pytest.mark.parametrize("package", ONLY_IN)
def test_a_driver_is_imported_by_its_own_parts_alone(package: str) -> None:
    users = [each for each in all_imports() if each.module.split(".")[0] == package]
    assert [str(each) for each in users if each.part not in ONLY_IN[package]] == []


def test_only_what_makes_the_dags_imports_airflow_in_orchestration() -> None:
    users = {each.file.name for each in all_imports() if each.module.split(".")[0] == "airflow"}
    assert users <= {
        *("airflow_side.py", "bootstrap_dag.py", "dag_factory.py", "signals.py", "binlane_plugin.py"),
        *("spark_operator.py", "task_watch.py"),
    }


def test_only_what_makes_text_safe_writes_to_terminals() -> None:
    """Nothing else may print, or have rich read a text as markup."""
    rich = {each.file.name for each in all_imports() if each.module.split(".")[0] == "rich"}
    assert rich == {"terminal.py"}
    markup = [str(each) for each in all_imports() if each.module == "rich.markup"]
    wrong = []
    for file in product_files():
        for node in ast.walk(ast.parse(file.read_text(), str(file))):
            match node:
                case ast.Call(func=ast.Name(id="print")) if file.is_relative_to(BINLANE):
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} prints")
                case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr") if file.name != "terminal.py":
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} writes to a stream")
                case ast.Attribute(attr="from_markup" | "render_str" | "echo" | "secho"):
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} reads markup, or prints")
    assert (markup, wrong) == ([], [])


@pytest.mark.parametrize("part", PURE)
def test_what_computes_does_no_io(part: str) -> None:
    wrong = []
    for file in sorted((BINLANE / part).rglob("*.py")):
        wrong += [str(each) for each in imports_of(file) if each.module.split(".")[0] in IMPURE_MODULES]
        for node in ast.walk(ast.parse(file.read_text(), str(file))):
            match node:
                case ast.Call(func=ast.Name(id="open" | "input" | "print" as name)):
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} calls {name}()")
                case ast.Attribute(attr="now" | "utcnow" | "today" as name):
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} reads the clock: {name}")
    assert wrong == []


def test_the_walk_finds_imports_in_functions_and_of_types_only(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("if TYPE_CHECKING:\n    import airflow.sdk\ndef f():\n    from binlane import config\n")
    assert [(line, module) for line, module in modules_of(file)] == [(2, "airflow.sdk"), (4, "binlane.config")]
