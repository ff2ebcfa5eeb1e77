"""Every call that changes data or decisions on a target is made in a command that has a row in the audit."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.orchestration.audited import whoami
from tests.parsing import parsed

COMMANDS: Final = Path(__file__).parents[2] / "plugins" / "binlane" / "orchestration"
CHANGES: Final = frozenset(
    {
        *("request_stop", "clear_stop", "decide_ddl", "decide_xa", "request_skips", "cancel_skip", "replay_skipped"),
        *("Repairer", "Recopier", "FirstCopy", "make_missing", "note_missing", "fill_empty"),
        *("adopt", "create_channel", "create_restore", "extend_restore", "forget_restore", "set_stage"),
        *("drop_database", "move", "DumpLoad"),
    }
)
"""The functions and classes that change something for a command; windows have records of their own."""


class Module:
    """The uses of names in a module, and which of them are inside ``with audited(...)``."""

    def __init__(self, tree: ast.Module) -> None:
        self.parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
        self.names = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)]

    def chain(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node

    def is_audited(self, node: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
        """Whether the node, or each use of the function or table that it is in, is inside the door."""
        outer: str | None = None
        for parent in self.chain(node):
            if isinstance(parent, ast.With) and any(_opens(item.context_expr) for item in parent.items):
                return True
            if isinstance(parent, ast.FunctionDef):
                outer = parent.name
            if isinstance(parent, ast.AnnAssign) and isinstance(parent.target, ast.Name) and outer is None:
                outer = parent.target.id
        if outer is None or outer in seen:
            return False
        uses = [use for use in self.names if _name_of(use) == outer and isinstance(use.ctx, ast.Load)]
        return bool(uses) and all(self.is_audited(use, seen | {outer}) for use in uses)


def _name_of(node: ast.AST) -> str:
    """Of a name, or of a method."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _opens(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "audited"


def unaudited(text: str) -> list[str]:
    """The calls of ``CHANGES`` that a command can make without a row."""
    module = Module(parsed(text))
    calls = [node.func for node in module.parents if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [f"{name.id}, line {name.lineno}" for name in calls if name.id in CHANGES and not module.is_audited(name)]


def test_every_change_goes_through_the_door() -> None:
    found = {
        str(file.relative_to(COMMANDS)): calls
        for file in COMMANDS.rglob("*.py")
        if (calls := unaudited(file.read_text("utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def stop():\n    request_stop()\n", ["request_stop, line 2"]),
        ("def stop():\n    with audited():\n        request_stop()\n", []),
        ("def stop():\n    with audited():\n        _stop()\ndef _stop():\n    request_stop()\n", []),
        ("def a():\n    with audited():\n        b()\ndef c():\n    b()\ndef b():\n    move()\n", ["move, line 7"]),
        ("T: int = {1: b}\ndef a():\n    with audited():\n        T[1]()\ndef b():\n    move()\n", []),
        ("T: int = {1: b}\ndef a():\n    T[1]()\ndef b():\n    move()\n", ["move, line 5"]),
    ],
)
def test_the_search_finds_what_goes_round_the_door(text: str, found: list[str]) -> None:
    assert unaudited(text) == found


@pytest.mark.parametrize("error", [KeyError, OSError])
def test_a_process_without_an_account_is_named_by_its_number(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> str:
        raise error("getpwuid(): uid not found: 10001")

    monkeypatch.setattr("getpass.getuser", unknown)

    assert whoami().startswith(f"uid {os.getuid()}@")
