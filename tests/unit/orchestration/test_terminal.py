"""Tables on a terminal and in a task's log."""

from __future__ import annotations

from binlane.orchestration.terminal import Grid, as_text


def test_a_title_is_one_line_however_narrow_its_table_is() -> None:
    grid = Grid("3 barriers over 2,628 seqnos, by cause").columns("cause")
    grid.row("several lanes")

    assert as_text(grid).split("\n")[0] == "3 barriers over 2,628 seqnos, by cause"
