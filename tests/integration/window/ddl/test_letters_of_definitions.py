"""Literals of definitions with quotes, signs and letters of each length: no literal is taken for a name."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.model import Flavor
from binlane.orchestration.commands.verify import verify_channel
from binlane.verify.outcome import Options
from tests.integration.window.conftest import ChannelOf, run_on

VALUES: Final = (
    "a%s",
    "b:c",
    "it''s",
    'd"q',
    "b`t",
    "\U0001f600",
    r"back\\slash",
    "\u00fc`\U0001f600",
    "x'' OR 1",
    r"z\n",
)
"""As SQL has them between two quotes. What stands between others' quotes looks like a name."""
LISTED: Final = ", ".join(f"'{value}'" for value in VALUES)
TABLES: Final = (
    f"CREATE TABLE listed (id INT PRIMARY KEY, e ENUM({LISTED}) DEFAULT '\U0001f600', "
    f"s SET({LISTED}) COMMENT 'd\"\U0001f600\"')",
    f"CREATE TABLE checked (id VARCHAR(30) DEFAULT 'd\"\U0001f600\"', CHECK (id IN ({LISTED}))) COMMENT '`\U0001f600`'",
    f"CREATE TABLE made (id VARCHAR(30), g VARCHAR(99) AS (CONCAT(id, {LISTED})), "
    f"d VARCHAR(99) DEFAULT (CONCAT({LISTED})))",
    f"CREATE TABLE parts (id VARCHAR(30)) PARTITION BY LIST COLUMNS (id) (PARTITION p VALUES IN ({LISTED}))",
    f"ALTER TABLE parts ADD e ENUM({LISTED}) DEFAULT 'd\"q'",
    f"CREATE VIEW seen AS SELECT id FROM listed WHERE e IN ({LISTED})",
    "INSERT INTO listed (id, e) VALUES (1, 'd\"q'), (2, '\U0001f600'), (3, 'b`t')",
)
PAIRS: Final = [(source, target) for source in Flavor for target in Flavor]


@pytest.mark.parametrize("families", PAIRS, ids="-".join)
def test_letters_and_quotes_of_literals_are_no_names(channel_of: ChannelOf, families: tuple[Flavor, Flavor]) -> None:
    channel = channel_of(*families)
    database = "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    run_on(channel.source, "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", database, "USE tenant_1", *TABLES)
    assert channel.run() is not None
    outcome = verify_channel(channel.config, channel.endpoints, Options(True))
    assert [one.note for one in outcome.suspects] == []
    rows = "SELECT id, HEX(e) FROM tenant_1.listed ORDER BY id"
    assert channel.target.query(rows) == channel.source.query(rows)
    shown = "SHOW COLUMNS FROM tenant_1.listed LIKE 's'"
    assert channel.target.query(shown)[0][1] == channel.source.query(shown)[0][1]


def test_a_name_that_a_server_holds_in_other_letters_is_found(channel_of: ChannelOf) -> None:
    """MySQL makes a question mark of a letter that its names cannot have."""
    channel = channel_of(Flavor.MYSQL, Flavor.MYSQL)
    run_on(channel.source, "CREATE DATABASE tenant_1", "USE tenant_1", "CREATE TABLE `a\U0001f600b` (n INT)")
    run_on(channel.source, "USE tenant_1", "ALTER TABLE `a\U0001f600b` ADD m INT")
    assert channel.run() is not None
    shown = "SHOW CREATE TABLE tenant_1.`a?b`"
    assert channel.target.query(shown) == channel.source.query(shown)
