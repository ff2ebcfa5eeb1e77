"""``binlane --help`` lists every command once, by purpose, with its whole first sentence."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from binlane.cli.commands import PURPOSES, _name_of, app


def test_every_command_has_one_purpose() -> None:
    listed = [name for names in PURPOSES.values() for name in names]
    assert sorted(listed) == sorted(_name_of(command) for command in app.registered_commands)


@pytest.mark.parametrize("width", ["80", "200"])
def test_the_help_cuts_no_sentence_and_begins_with_what_a_newcomer_needs(width: str) -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": width, "TERMINAL_WIDTH": width}).output
    words = " ".join(shown.split())
    assert "..." not in words.replace("[ARGS]...", "")
    assert words.index(" new Write the file of a new channel") < words.index(" run Apply one window")
    for command in app.registered_commands:
        assert command.callback is not None
        sentence = " ".join((command.callback.__doc__ or "").split()).partition(". ")[0]
        assert f" {_name_of(command)} {sentence}" in words
