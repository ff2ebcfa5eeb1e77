"""Tables on a terminal and in a task's log."""

from __future__ import annotations

import io

import pytest

from binlane.orchestration.terminal import Grid, Terminal, View, as_text


def test_a_title_is_one_line_however_narrow_its_table_is() -> None:
    grid = Grid("3 barriers over 2,628 seqnos, by cause").columns("cause")
    grid.row("several lanes")

    assert as_text(grid).split("\n")[0] == "3 barriers over 2,628 seqnos, by cause"


GTIDS = ",".join(f"3e11fa47-71ca-11e1-9e33-c80aa942956{server}:1-{server}2345:77777-99999" for server in range(3))
CHANNEL = "warehouse_of_the_northern_branch_" * 2
SENTENCE = "A sentence of many short words that stands in one cell and may be put into several lines, but only there."
NARROW = (20, 80, 110)


def shown(view: View, width: int) -> str:
    out = io.StringIO()
    Terminal(file=out, width=width).print(view)
    return out.getvalue()


def tables(*words: str) -> list[Grid]:
    """Every kind of table that commands print, with these words in a cell of each column."""
    facts = Grid.of_facts("channel x")
    for word in (*words, SENTENCE):
        facts.row("GTID set", word)
    framed = Grid("lanes", lines=True, caption="a caption").columns("lane", "position", justify="right", no_wrap=True)
    framed.columns("gap", "error")
    grids = [facts, framed]
    for word in words:
        framed.row("0", word, "1 to 3", f"{SENTENCE}\n{word}")
        grids.append(Grid("names").columns(word).columns("state", justify="right"))
        grids[-1].row("1", word)
    return grids


@pytest.mark.parametrize("width", NARROW)
def test_no_table_breaks_or_cuts_a_name_however_narrow_the_terminal_is(width: int) -> None:
    words = (GTIDS, CHANNEL, "`a database`.`a table`".replace(" ", "_"), "mysql-bin.000123:4567890", "名前" * 20)
    for grid in tables(*words):
        text = shown(grid, width)
        assert all(word in text for word in words if word in shown(grid, 10_000)), text
        assert set(SENTENCE.split()) <= set(text.split()) or SENTENCE not in shown(grid, 10_000), text


def test_words_are_wrapped_into_the_terminal_s_width_as_long_as_they_have_place() -> None:
    facts = Grid.of_facts("channel x")
    facts.row("GTID set", GTIDS)
    facts.row("verified", SENTENCE)
    framed = Grid("errors").columns("at", "error")
    framed.row("2026-11-28", SENTENCE * 3)
    lines = shown([facts, framed], 60).splitlines()
    assert [line for line in lines if len(line) > 60] == [f"GTID set  {GTIDS}"]


def test_a_name_keeps_its_column_where_sentences_give_way_and_the_frame_goes_before_the_columns_do() -> None:
    grid = Grid("tables").columns("table", "because").columns("left out", "written", justify="right", no_wrap=True)
    grid.row("warehouse_of_the_north.orders", SENTENCE, "1", "2")
    framed, plain = shown(grid, 70).splitlines(), shown(grid, 56).splitlines()
    assert max(map(len, framed)) <= 70
    assert [line.count("warehouse_of_the_north.orders") for line in framed].count(1) == 1
    assert framed[-1].startswith("└")
    assert max(map(len, plain)) <= 56
    assert plain[0] == "tables"
    assert [line.split() for line in plain[1:3]] == [["left"], ["table", "because", "out", "written"]]
    assert [line.split()[-2:] for line in plain if line.startswith("warehouse_of_the_north.orders  A")] == [["1", "2"]]


def test_rows_whose_words_have_no_place_beside_each_other_are_lines_of_heading_and_cell() -> None:
    grid = Grid("channels").columns("channel", "state", no_wrap=True).columns("what was found")
    grid.row(CHANNEL, "failed", "")
    grid.row("b", "idle", "nothing to do")
    assert shown(grid, 70).splitlines() == [
        "channels",
        f"channel  {CHANNEL}",
        "state    failed",
        "",
        "channel         b",
        "state           idle",
        "what was found  nothing to do",
    ]


def test_a_task_s_log_has_whole_names_as_well() -> None:
    for grid in tables(GTIDS):
        assert GTIDS in as_text(grid)
