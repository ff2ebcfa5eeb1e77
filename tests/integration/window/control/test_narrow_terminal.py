"""Commands on a terminal of 80 columns print each long word as a wide one does: names, GTIDs and places are copied."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from binlane.servers.engines import engine_of
from binlane.state.records.journal import read_status
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]

BOTH: Final = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
DATABASE: Final = "tenant_of_the_northern_branch_of_a_company_with_a_long_name"
TABLE: Final = f"{DATABASE}.orders_of_the_last_forty_years_that_nobody_dared_to_delete"
FRAME: Final = str.maketrans(dict.fromkeys("┏┳┓┃┡╇┩│└┴┘━─├┼┤", " "))
LONG: Final = 16
"""Characters of a word that a table is likely to break; a time that has passed is shorter."""


def long_words(text: str) -> set[str]:
    words = text.translate(FRAME).split()
    # a lag grows from one look to the next
    return {word for word in words if len(word) >= LONG and not word.startswith("lag=")}


def shown(
    channel: Channel, capsys: pytest.CaptureFixture[str], columns: int, *arguments: str, codes: tuple[int, ...]
) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        capsys.readouterr()
        assert channel.cli(*arguments) in codes, capsys.readouterr()
    captured = capsys.readouterr()
    return captured.out + captured.err


@BOTH
def test_no_command_breaks_a_word_on_a_narrow_terminal(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    name = "channel_of_the_northern_branch_of_a_company_with_a_long_name"
    for folder, kind in ((channel.channels, "toml"), (channel.project / "shard_list", "list")):
        shutil.copy(folder / f"{CHANNEL}.{kind}", folder / f"{name}.{kind}")

    def compared(*arguments: str, codes: tuple[int, ...] = (0,)) -> set[str]:
        wide = long_words(shown(channel, capsys, 2000, *arguments, codes=codes))
        narrow = long_words(shown(channel, capsys, 80, *arguments, codes=codes))
        assert wide - narrow == set(), arguments
        return wide

    assert channel.cli("init", name, "--start", "now") == 0
    run_on(
        channel.source,
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {TABLE} VALUES (1, 1), (2, 2)",
    )
    # each plan has a window's name and a digest of its own
    assert TABLE in shown(channel, capsys, 80, "plan", name, codes=(0,))
    assert any(name in word for word in compared("doctor", name, codes=(0, 1)))
    assert channel.cli("run", name) == 0
    run_on(channel.target, f"UPDATE {TABLE} SET v = 3 WHERE id = 1", log=False)
    assert channel.cli("verify", name, "--full") == 1
    assert any(DATABASE in word for word in compared("find", "*"))
    run_on(channel.target, f"INSERT INTO {TABLE} VALUES (9, 9)", log=False)
    run_on(channel.source, f"INSERT INTO {TABLE} VALUES (9, 1)")
    assert channel.cli("run", name) == 1
    logs = [str(file) for file in sorted(Path(channel.source.datadir).glob("binlog.0*"))[-1:]]
    seqno = str(read_status(engine_of(channel.endpoints.target), name).low_water + 1)
    assert channel.cli("skip", name, "--seqno", seqno, "--reason", "a_reason_of_one_long_word_that_stands_alone") == 0
    for arguments in (
        ("status", name),
        ("status", "--all"),
        ("check", name),
        ("skip", name, "--list"),
        ("skip", name, "--show", seqno),
        ("show", name, seqno),
        ("conflicts", name),
        ("xa", name),
        ("inspect", *logs, "--rows"),
        ("advise", name),
        ("grants", name),
    ):
        compared(*arguments, codes=(0, 1, 2))
