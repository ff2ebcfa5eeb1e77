"""Next steps name the channel: a command in a text of the program can be typed as it stands there."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.cli.commands import app, main
from binlane.errors import BinlaneError, ConfigError, naming, with_channel
from tests.parsing import parsed

SOURCES: Final = Path(__file__).parents[3] / "plugins" / "binlane"
COMMAND: Final = re.compile(r"`binlane ([a-z-]+)(?! (?:CHANNEL\b|\{|%s))[^`]*`?")
VARIABLE: Final = re.compile(r"\{[a-z_]+(?:\.[a-z_]+)+\}|`binlane [^`]*\{[a-z_]+\}")
"""Templates of SQL have names without dots."""
MENTIONED: Final = frozenset(
    {
        "another `binlane doctor`",
        "a new channel: `binlane init NEW",
        "another `binlane recopy`",
        "`binlane recopy` is applying windows",
        "error message and `binlane status`",
        "`binlane check --help`",
        "for `binlane run`",
        "How `binlane run`",
        "by `binlane bootstrap`",
        "`binlane verify --repair` writes such a plan",
    }
)
"""Commands that nobody is told to type."""


def of_channels() -> frozenset[str]:
    """The commands that need the name of one channel."""
    found = set()
    for command in app.registered_commands:
        assert command.callback is not None
        parameter = inspect.signature(command.callback).parameters.get("channel")
        if parameter is not None and parameter.default is inspect.Parameter.empty:
            found.add(command.name or command.callback.__name__.replace("_", "-"))
    return frozenset(found) | {"status", "stop", "resume"}


def texts(tree: ast.AST) -> Iterator[str]:
    """The literal texts of a module, values in them as {}; without docstrings."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def test_every_command_in_a_text_names_its_channel_or_leaves_a_place_for_it() -> None:
    commands, unnamed = of_channels(), []
    for file in sorted(SOURCES.rglob("*.py")):
        for text in texts(parsed(file.read_text("utf-8"))):
            found = [each for each in COMMAND.finditer(text) if each[1] in commands]
            unnamed += [(file.name, each[0]) for each in found if not any(mention in text for mention in MENTIONED)]
    assert unnamed == []


def test_no_text_shows_the_name_of_a_variable_for_its_value() -> None:
    """A part of an f-string that lacks its f."""
    found = []
    for file in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(parsed(file.read_text("utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else []
            literal = [each.value for each in parts if isinstance(each, ast.Constant)]
            found += [(file.name, each[0]) for part in literal for each in VARIABLE.finditer(str(part))]
    assert found == []


def test_a_place_for_the_name_is_filled_where_the_channel_is_known() -> None:
    with pytest.raises(BinlaneError, match=r"^`binlane run shop --until 7`, `binlane skip shop`$"), naming("shop"):
        raise BinlaneError("`binlane run CHANNEL --until 7`, `binlane skip CHANNEL`")
    assert (
        with_channel("the table CHANNEL, `binlane run` CHANNEL", "shop") == "the table CHANNEL, `binlane run` CHANNEL"
    )


def test_an_error_of_a_command_names_the_channel_that_the_command_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise ConfigError("`binlane init CHANNEL` first")

    monkeypatch.setattr("binlane.orchestration.commands.setup.doctor.doctor", refused)
    monkeypatch.setattr("sys.argv", ["binlane", "doctor", "shop"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err == "ConfigError: `binlane init shop` first\n"
