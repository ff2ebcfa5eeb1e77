"""The house's rules: imports run one way, and what computes does no I/O (docs/architecture.md)."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.parsing import parsed

ROOT: Final = Path(__file__).parents[2]
BINLANE: Final = ROOT / "plugins" / "binlane"

# A part is a package, or a module beside the packages. It may import itself and the parts of its row: a package's name
# stands for its own modules, not for the packages in it. Rows stand in an order without a step upwards.
BASE: Final = (
    "errors",
    "formats",
    "model",
    "rename_rules",
    "sessions",
    "answers",
    "choices",
    "extension",
    "json_codec",
)
CONFIG: Final = ("config", "connections")
LOG: Final = (*BASE, "binlog.types", "binlog", "kernels", "binlog.vector")
STATEMENTS: Final = ("sql.parse", "schema", "sql", "sql.programs")
TRANSACTIONS: Final = (*LOG, *STATEMENTS, "shards", "plan.transaction")
PLAN: Final = (*TRANSACTIONS, "plan.block", "plan", "plan.segment")
STATE: Final = ("state", "state.carried", "state.migrations", "state.orders", "state.records", "servers")
APPLY: Final = ("apply.session", "apply.rows", "apply.ddl", "apply")
PRECHECK: Final = (
    *("precheck.account", "precheck.definitions", "precheck.situation", "precheck.target", "precheck.statements"),
    *("precheck.bodies", "precheck.tables", "precheck"),
)
VERIFY: Final = ("verify.rows", "verify.definitions", "verify")
WINDOW: Final = (*PLAN, "plan.window", *CONFIG, "driver", "garbage", "work", *STATE, "source", *APPLY)
EVERYWHERE: Final = ("activity", "lazy_dataclass")
"""Parts that every other one may import, without a place in its row."""
MAY_IMPORT: Final[Mapping[str, tuple[str, ...]]] = {
    "": (),
    "activity": (),
    "lazy_dataclass": (),
    "blas_threads": (),
    "garbage": (),
    "safe_text": (),
    "regular_files": (),
    "safe_path": (),
    "errors": ("safe_text",),
    "formats": ("", "errors"),
    "model": ("errors",),
    "rename_rules": (),
    "sessions": ("errors", "model"),
    "answers": ("errors", "safe_text"),
    "choices": (),
    "extension": ("errors",),
    "json_codec": ("errors",),
    "arrow_compute": (),
    "database_pattern": ("arrow_compute",),
    "collation_rules": (),
    "config": ("errors", "choices", "extension", "rename_rules", "collation_rules", "regular_files"),
    "connections": ("errors", "config", "sessions"),
    "driver": ("errors", "model", "sessions", "answers"),
    "binlog.types": BASE,
    "binlog": (*BASE, "binlog.types"),
    "kernels": ("binlog",),
    "binlog.vector": (*BASE, "binlog.types", "binlog", "kernels"),
    "sql.parse": BASE,
    "schema": (*BASE, "binlog", "binlog.types", "sql.parse"),
    "sql": (*BASE, "safe_text", "binlog", "binlog.types", "sql.parse", "schema"),
    "sql.programs": (*BASE, "sql.parse", "schema", "sql"),
    "shards": (*BASE, "database_pattern", *STATEMENTS),
    "plan.transaction": (*LOG, *STATEMENTS, "safe_text", "shards"),
    "plan.block": (*LOG, *STATEMENTS),
    "plan": (*TRANSACTIONS, "plan.block"),
    "plan.segment": (*TRANSACTIONS, "plan.block", "plan"),
    "plan.window": PLAN,
    "plan.advice": (*PLAN, "plan.window"),
    "work": (*PLAN, "arrow_compute", "regular_files"),
    "work.plan_job": (*PLAN, "garbage", "blas_threads", "safe_path", "plan.window", "work"),
    "spark_daemon": ("blas_threads", "work.plan_job"),
    "spark_engine": ("errors", "work", "work.plan_job"),
    "state": (*BASE, "regular_files", "plan", "work"),
    "state.carried": (*BASE, "plan", "plan.transaction", "work", "state"),
    "state.migrations": (*BASE, "servers", "work", "state", "state.carried"),
    "state.orders": (*BASE, "state"),
    "state.records": (*BASE, "safe_text", "plan", "state", "state.carried", "state.orders"),
    "servers": (*BASE, "binlog.types", "connections", "driver", "sql.parse", "schema", "state"),
    "source": (*PLAN, *CONFIG, "regular_files", "driver", "work"),
    "apply.session": (*LOG, *STATEMENTS, "safe_text", "driver", "plan.transaction", "servers"),
    "apply.rows": (*LOG, *STATEMENTS, "garbage", "plan.transaction", "state.records", "apply.session"),
    "apply.ddl": (*PLAN, *STATE, "safe_text", "apply.session", "apply.rows"),
    "apply": (*PLAN, "connections", *STATE, "apply.session", "apply.rows", "apply.ddl"),
    "apply.lane.ways": (*PLAN, *STATE, *APPLY),
    "apply.lane": (*PLAN, "safe_text", *STATE, *APPLY, "apply.lane.ways"),
    "precheck.account": WINDOW,
    "precheck.definitions": (*WINDOW, "precheck.account"),
    "precheck.situation": (*WINDOW, "safe_text", *PRECHECK[:2]),
    "precheck.target": (*WINDOW, "safe_text", *PRECHECK[:3]),
    "precheck.statements": (*WINDOW, "safe_text", *PRECHECK[:4]),
    "precheck.bodies": (*WINDOW, "safe_text", *PRECHECK[:5]),
    "precheck.tables": (*WINDOW, "safe_text", *PRECHECK[:6], "verify.definitions"),
    "precheck": (*WINDOW, "safe_text", "apply.lane", *PRECHECK[:7], "verify.definitions"),
    "verify.rows": (*TRANSACTIONS, *STATE, "source"),
    "verify.definitions": (*TRANSACTIONS, *STATE, "verify.rows"),
    "verify": (*TRANSACTIONS, "garbage", "work", *STATE, "source", *VERIFY),
    "bootstrap": (
        *(*TRANSACTIONS, *CONFIG, "safe_text", "regular_files", "driver", "work", *STATE, "source", *APPLY, *PRECHECK),
        *VERIFY,
    ),
    "readiness": (
        *(*TRANSACTIONS, *CONFIG, "safe_text", "driver", "work", *STATE, "source", *APPLY, *PRECHECK, "bootstrap"),
    ),
    "repair": (*TRANSACTIONS, "work", *STATE, "source", "apply.session", "apply", *VERIFY, "bootstrap"),
    "restore": (
        *(*TRANSACTIONS, "plan", "work", "work.plan_job", *STATE, "regular_files", "source", "apply.session", "apply"),
        *("safe_text", "bootstrap"),
    ),
    "health": (
        *BASE,
        *CONFIG,
        "shards",
        "schema",
        "work",
        "work.plan_job",
        "state",
        "state.records",
        "apply",
        "bootstrap",
    ),
    "orchestration.extraction": WINDOW,
    "orchestration": (
        *(*WINDOW, "regular_files", "safe_text", "work.plan_job", "apply.lane", *PRECHECK, "bootstrap", "readiness"),
        "orchestration.extraction",
    ),
    "orchestration.plan_job": (
        *BASE,
        *CONFIG,
        "safe_path",
        "plan",
        "work",
        "work.plan_job",
        "readiness",
        "restore",
        "spark_engine",
    ),
    "orchestration.announcing": (
        *("errors", "config", "connections", "work", "state.records", "servers", "orchestration"),
        "orchestration.plan_job",
    ),
    "orchestration.commands": (
        *(*WINDOW, "plan.advice", "safe_text", "work.plan_job", "apply.lane", *PRECHECK, *VERIFY),
        *("bootstrap", "readiness", "repair", "health", "orchestration", "orchestration.announcing"),
        "orchestration.extraction",
        "orchestration.plan_job",
    ),
    "orchestration.commands.inspection": (
        *(*WINDOW, "regular_files", "safe_text", "restore", "orchestration", "orchestration.commands"),
        "orchestration.plan_job",
    ),
    "orchestration.commands.copies": (
        *(*WINDOW, "safe_text", *PRECHECK, *VERIFY, "bootstrap", "readiness", "repair", "restore"),
        *("health", "orchestration", "orchestration.announcing", "orchestration.extraction", "orchestration.commands"),
    ),
    "orchestration.airflow": (
        *(*BASE, *CONFIG, "safe_text", *STATE, "work", "apply", "bootstrap", "restore", "health"),
        *("orchestration", "orchestration.plan_job", "orchestration.announcing", "orchestration.commands"),
        *("orchestration.commands.copies", "orchestration.commands.inspection"),
    ),
    "orchestration.commands.setup": (
        *(
            *WINDOW,
            "safe_text",
            *PRECHECK,
            *VERIFY,
            "bootstrap",
            "readiness",
            "orchestration",
            "orchestration.extraction",
        ),
        *("orchestration.plan_job", "orchestration.announcing", "orchestration.commands"),
    ),
    "cli": (
        *(*BASE, *CONFIG, "garbage", "blas_threads", "safe_text", "verify", "bootstrap", "health", "state.records"),
        "orchestration",
        *(
            "orchestration.extraction",
            "orchestration.plan_job",
            "orchestration.commands",
            "orchestration.commands.setup",
        ),
        *("orchestration.commands.copies", "orchestration.commands.inspection", "orchestration.airflow"),
    ),
    "board": (
        *(*WINDOW, "safe_text", "health", "verify.rows"),
        *("orchestration", "orchestration.commands", "orchestration.commands.inspection", "orchestration.airflow"),
    ),
    "spark_jobs": ("errors", "work", "work.plan_job", "spark_engine", "restore"),
    "airflow_plugin": ("errors", "safe_text", "connections", "health", "orchestration.airflow", "board"),
}

_ASKS_SERVERS: Final = (
    *(*STATE, "source", *APPLY, "apply.lane.ways", "apply.lane"),
    *(*PRECHECK, *VERIFY, "bootstrap", "readiness", "repair"),
)
ONLY_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "airflow": ("orchestration.airflow", "airflow_plugin"),
    "pyspark": ("spark_jobs", "spark_daemon", "spark_engine"),
    "fastapi": ("board",),
    "pydantic": ("board",),
    "prometheus_client": ("board",),
    # the plugin asks Airflow's own metadata for the last run
    "sqlalchemy": (*_ASKS_SERVERS, "airflow_plugin"),
    "pymysql": ("driver", *_ASKS_SERVERS),
}
"""Third-party package to the parts of the product that may import it."""

PURE: Final = ("binlog", "sql", "schema", "shards", "plan")
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
    """The part of the house a file belongs to: its package, dotted, below binlane, or the folder or plugin outside."""
    if file.is_relative_to(BINLANE):
        *packages, name = file.relative_to(BINLANE).parts
        return ".".join(packages) or name.removesuffix(".py").removeprefix("__init__")
    first, *_ = file.relative_to(ROOT).parts
    return file.stem if first == "plugins" else first


def part_of_module(name: str) -> str:
    """The part that a module below binlane belongs to: ``plan.block`` of ``plan.block.builder``."""
    package = name if (BINLANE / name.replace(".", "/")).is_dir() else name.rpartition(".")[0]
    return package or name


def imports_of(file: Path) -> Iterator[Import]:
    for line, module in modules_of(file):
        yield Import(file, part_of(file), line, module)


def modules_of(file: Path) -> Iterator[tuple[int, str]]:
    """Every import, inside functions and under TYPE_CHECKING too: a type is a dependency as well."""
    for node in ast.walk(parsed(file.read_text())):
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
            imported = part_of_module(rest)
            if imported not in (each.part, *MAY_IMPORT[each.part], *EVERYWHERE):
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


def test_only_what_makes_text_safe_writes_to_terminals() -> None:
    """Nothing else may print, or have rich read a text as markup."""
    rich = {each.file.name for each in all_imports() if each.module.split(".")[0] == "rich"}
    assert rich == {"terminal.py"}
    markup = [str(each) for each in all_imports() if each.module == "rich.markup"]
    wrong = []
    for file in product_files():
        for node in ast.walk(parsed(file.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="print")) if file.parent.name != "spark_jobs":
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} prints")
                case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr") if file.name != "terminal.py":
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} writes to a stream")
                case ast.Attribute(attr="from_markup" | "render_str" | "echo" | "secho"):
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} reads markup, or prints")
    assert (markup, wrong) == ([], [])


@pytest.mark.parametrize("part", PURE)
def test_pure_packages_do_no_io(part: str) -> None:
    wrong = []
    for file in sorted((BINLANE / part).rglob("*.py")):
        wrong += [str(each) for each in imports_of(file) if each.module.split(".")[0] in IMPURE_MODULES]
        for node in ast.walk(parsed(file.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="open" | "input" | "print" as name)):
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} calls {name}()")
                case ast.Attribute(attr="now" | "utcnow" | "today" as name):
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} reads the clock: {name}")
    assert wrong == []


OPENS_LOGS: Final[Mapping[str, str]] = {
    "source/proved.py": "the door of all other readers",
    "source/identity.py": "behind the door, and what a window reads",
    "source/start_position.py": "a file's head; what it reads further is proved as a window's log is",
    "source/older_sessions.py": "a file's header",
    "source/protocol.py": "a file's first events, which are part of the proof",
}
"""Modules that open a source's log, and why they may."""


def test_a_log_is_opened_with_its_proofs() -> None:
    """Any other module would take what a cut or foreign file hides for what is not there."""
    found = {
        file.relative_to(BINLANE).as_posix()
        for file in BINLANE.rglob("*.py")
        for node in ast.walk(parsed(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "read_log"
    }
    assert found == OPENS_LOGS.keys()
    behind = {
        file.relative_to(BINLANE).as_posix()
        for file in BINLANE.rglob("*.py")
        if re.search(r"\b(continued|verified)\(", file.read_text())
    }
    assert behind == {"source/identity.py", "source/proved.py", "source/segments.py"}


def test_the_walk_finds_imports_in_functions_and_of_types_only(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("if TYPE_CHECKING:\n    import airflow.sdk\ndef f():\n    from binlane import config\n")
    assert [(line, module) for line, module in modules_of(file)] == [(2, "airflow.sdk"), (4, "binlane.config")]


def test_sql_on_the_state_is_in_its_own_folder() -> None:
    """The tables of the schema binlane are named in SQL by ``state`` alone."""
    sql = re.compile(r"\b(?:FROM|INTO|UPDATE|TABLE|EXISTS|JOIN) `?binlane`?\.")
    found = [
        f"{file.relative_to(BINLANE)}:{node.lineno}"
        for file in product_files()
        if file.is_relative_to(BINLANE) and file.relative_to(BINLANE).parts[0] != "state"
        for node in ast.walk(parsed(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and sql.search(node.value)
    ]
    assert found == []


def test_commands_that_read_no_log_start_without_what_reads_logs() -> None:
    """A monitoring system asks `check` each minute for each channel."""
    names = ("check", "conflicts", "find", "fleet", "operate", "read_at")
    imports = "; ".join(f"import binlane.orchestration.commands.{name}" for name in names)
    code = f"{imports}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pandas", "pyarrow", "pyspark", "airflow"} & set(done.stdout.split())
