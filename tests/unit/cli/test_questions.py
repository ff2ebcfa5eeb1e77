"""What a command asks before it writes."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from binlane.cli.commands import app


def test_names_of_the_command_line_move_no_cursor_in_a_question(tmp_path: Path) -> None:
    name = "shop.orders\x1b[2K\rNothing is replaced"
    asked = CliRunner().invoke(app, ["recopy", "shop", "--table", name, "--channels", str(tmp_path)], input="n\n")
    assert asked.exit_code == 1
    assert "Replace all rows of shop.orders" in asked.output
    assert "\x1b" not in asked.output
    assert "\r" not in asked.output
