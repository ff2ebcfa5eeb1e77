"""Every session begins at one door, ``driver.Connection``, which gives it the settings of its kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.sessions.pins import PINS, UNPINNED, SessionKind
from tests.parsing import parsed

ROOTS: Final = ("plugins", "spark_jobs", "dags")
OPENING: Final = frozenset({"connect", "Connect", "Connection", "create_engine", "engine_from_config", "create_pool"})
"""Names of PyMySQL and SQLAlchemy that open connections, or make what opens them."""
DOORS: Final = {
    "plugins/binlane/driver/wire.py": {"pymysql.connections.Connection"},
    "plugins/binlane/servers/engines.py": {"sqlalchemy.create_engine"},
}
"""The modules that may name them: the door, and the one that gives SQLAlchemy its connections."""


def sources() -> Iterator[tuple[str, str]]:
    for root in ROOTS:
        for path in sorted(Path(root).rglob("*.py")):
            yield path.as_posix(), path.read_text()


def openers(text: str) -> set[str]:
    """What a module names of the two libraries that opens connections, outside of annotations."""
    tree = parsed(text)
    imported: dict[str, str] = {}
    typed = {id(each) for node in ast.walk(tree) if _is_typing(node) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {(each.asname or each.name.partition(".")[0]): each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and id(node) not in typed:
            imported |= {(each.asname or each.name): f"{node.module}.{each.name}" for each in node.names}
    called = {
        name for node in ast.walk(tree) for name in (_name(node, imported),) if name is not None and _is_used(node)
    }
    return {
        name
        for name in called
        if name.startswith(("pymysql", "sqlalchemy", "MySQLdb", "mysql.")) and name.rpartition(".")[2] in OPENING
    }


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_used(node: ast.AST) -> bool:
    """Called, or derived from."""
    return isinstance(node, ast.Call | ast.ClassDef | ast.Attribute)


def _name(node: ast.AST, imported: dict[str, str]) -> str | None:
    if isinstance(node, ast.Call):
        return _name(node.func, imported) if isinstance(node.func, ast.Attribute) else _dotted(node.func, imported)
    if isinstance(node, ast.ClassDef):
        return next((name for base in node.bases if (name := _dotted(base, imported)) is not None), None)
    return _dotted(node, imported) if isinstance(node, ast.Attribute) else None


def _dotted(node: ast.AST, imported: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return imported.get(node.id)
    if isinstance(node, ast.Attribute):
        above = _dotted(node.value, imported)
        return None if above is None else f"{above}.{node.attr}"
    return None


def test_nothing_opens_a_connection_but_the_door() -> None:
    found = {path: opened for path, text in sources() if (opened := openers(text))}
    assert found == DOORS


@pytest.mark.parametrize(
    "text",
    [
        "import pymysql\npymysql.connect(host='h')",
        "from pymysql import connect\nconnect(host='h')",
        "from pymysql.connections import Connection\nclass C(Connection): pass",
        "import pymysql.connections as c\nmake = c.Connection",
        "import sqlalchemy\nsqlalchemy.create_engine('mysql://')",
        "from sqlalchemy import create_engine as make\nmake('mysql://')",
    ],
)
def test_a_second_door_would_be_seen(text: str) -> None:
    assert openers(text)


def test_each_pin_and_each_exception_has_a_reason() -> None:
    assert all(pin.reason and pin.kinds <= {*SessionKind} for pin in PINS)
    assert all(UNPINNED.values())
