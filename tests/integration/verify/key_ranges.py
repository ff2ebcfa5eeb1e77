"""A first copy in small ranges, a full verification, and the repair of a drifted copy: no row of a table is missed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Final

from binlane.bootstrap.first_copy import Options as CopyOptions
from binlane.orchestration.commands.copies.bootstrap import LogLines, first_copy
from binlane.orchestration.commands.verify import verify_channel
from binlane.verify.outcome import Options
from tests.integration.window.conftest import CHANNEL, Channel, run_on

ROWS: Final = 37
"""In a range."""
OPTIONS: Final = Options(full=True, chunk_rows=ROWS)
WORDS: Final = ("ch", "c", "h", "ß", "ss", "SS", "Ä", "ae", "ij", "ll", "ﬁ", "fi")
ENDS: Final = ("", "3", "ß", "s")
LETTERS: Final = ["".join(each) for each in itertools.product(WORDS, WORDS, ENDS)]
"""Texts with letters that some collations compare as several, or several of them as one."""


def inserted(table: str, values: Sequence[Sequence[str]]) -> list[str]:
    """Statements that insert rows of literals."""
    texts = [f"({', '.join(each)})" for each in values]
    return [f"INSERT INTO {table} VALUES {', '.join(texts[at : at + 500])}" for at in range(0, len(texts), 500)]


def check(channel: Channel, tables: dict[str, str], *, outside: tuple[str, ...] = ()) -> None:
    """Copy, verify, and repair. ``outside``: tables with rows that no key finds, which are repaired by a new copy."""
    copy_and_verify(channel, tables)
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == (1 if outside else 0)
    for name in outside:
        assert channel.cli("recopy", CHANNEL, "--table", f"app.{name}", "--yes") == 0
    channel.assert_equal()
    assert verify_channel(channel.config, channel.endpoints, OPTIONS).suspects == ()


def copy_and_verify(channel: Channel, tables: dict[str, str]) -> None:
    """Copy, and verify as it is and with rows missing. ``tables``: by name, a condition for rows that drift."""
    first_copy(channel.config, channel.endpoints, CopyOptions(chunk_rows=ROWS, jobs=2), LogLines())
    channel.assert_equal()
    assert verify_channel(channel.config, channel.endpoints, OPTIONS).suspects == ()

    gone = Counter[str]()
    for name, drifting in tables.items():
        before = count(channel, name)
        run_on(channel.target, f"DELETE FROM app.{name} WHERE {drifting}", log=False)
        gone[name] = before - count(channel, name)
    assert all(gone.values())
    outcome = verify_channel(channel.config, channel.endpoints, OPTIONS)
    assert Counter(one.table.table for one in outcome.suspects) == gone


def count(channel: Channel, name: str) -> int:
    """The number of the target's rows."""
    return int(channel.target.query(f"SELECT COUNT(*) FROM app.{name}")[0][0])
