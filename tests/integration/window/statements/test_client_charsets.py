"""Statements of clients with character sets in which a byte of a character looks like a backslash or a quote."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.integration.window.conftest import Channel

CHARACTERS = {
    "sjis": (b"\x83\x5c", b"\x83\x60"),
    "cp932": (b"\x83\x5c", b"\xfa\x60"),
    "big5": (b"\xb3\x5c", b"\xa4\x60"),
    "gbk": (b"\xd5\x5c", b"\x81\x60"),
    "ujis": (b"\xa5\xbd", b"\x8f\xb0\xa1"),
    "swe7": (b"}", b"{"),
}


@pytest.mark.parametrize(("charset", "characters"), CHARACTERS.items())
def test_statements_in_that_character_set_reach_the_target(
    charset: str, characters: tuple[bytes, bytes], channel: Channel, tmp_path: Path
) -> None:
    one, two = characters
    name = b"" if charset == "swe7" else one
    with channel.source.connect(autocommit=True) as connection:
        for sql in (
            b"CREATE DATABASE tenant_1",
            b"CREATE DATABASE tenant_2",
            b"CREATE TABLE tenant_2.t (id INT PRIMARY KEY, s VARCHAR(80) CHARACTER SET utf8mb4)",
            b"SET NAMES " + charset.encode(),
            b"SET SESSION binlog_format = STATEMENT",
            b"CREATE TABLE tenant_1.`n" + name + b"` (id INT PRIMARY KEY, s VARCHAR(80) CHARACTER SET utf8mb4)",
        ):
            connection.query(sql)
        assert channel.run() is not None
        for sql in (
            # a lexer that takes the second byte for a backslash sees a table of tenant_1 in neither
            b"INSERT INTO tenant_2.t VALUES (1, '" + one + b"'), (2, ' FROM tenant_9.a -- ')",
            b"INSERT INTO tenant_1.`n" + name + b"` VALUES (1, '" + two + one + b"')",
            b"UPDATE tenant_2.t SET s = '" + one + b"' WHERE id = 2 AND s <> ', '",
        ):
            connection.query(sql)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    shards = run_plan_job(WorkFolder(window["work"]), InProcess()).shards
    assert set(shards) == {"tenant_1", "tenant_2"}
    channel.go_on(window)
    assert channel.rows_of(channel.source) == channel.rows_of(channel.target)
    assert channel.target.query("SELECT COUNT(*) FROM tenant_2.t") == [(2,)]
