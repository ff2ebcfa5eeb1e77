"""Windows between MariaDB servers of different series: the same on both sides, or named before the first write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import PrecheckError
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, fresh_channel, run_on

WAYS: Final = [("10.5", "11.8"), ("10.11", "11.8"), ("11.8", "11.8"), ("10.5", "10.11"), ("11.8", "10.11")]
BARE: Final = (
    # what a character set without COLLATE means is another collation from 11.5 on
    "CREATE DATABASE tenant_2 CHARACTER SET utf8mb4",
    "CREATE TABLE tenant_1.bare (id INT PRIMARY KEY, s VARCHAR(20), UNIQUE (s)) CHARACTER SET utf8mb4",
    "CREATE TABLE tenant_1.columns (id INT PRIMARY KEY, s VARCHAR(9) CHARACTER SET utf8mb4, u TEXT CHARSET utf8)",
    "ALTER TABLE tenant_1.columns CONVERT TO CHARACTER SET utf8mb4",
    "CREATE FUNCTION tenant_1.f(a VARCHAR(9)) RETURNS VARCHAR(20) CHARSET utf8mb4 DETERMINISTIC RETURN CONCAT(a, 'x')",
    "CREATE TABLE tenant_2.plain (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(20))",
    "INSERT INTO tenant_1.bare VALUES (1, 'a'), (2, 'b'), (3, 'ß')",
    "INSERT INTO tenant_2.plain (s) VALUES ('a'), ('A '), ('ä')",
)
NAMED: Final = (
    "CREATE TABLE tenant_1.named (id INT PRIMARY KEY, s VARCHAR(20), b VARBINARY(9)) "
    "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
    "INSERT INTO tenant_1.named (id, s) VALUES (1, 'é'), (2, 'x')",
    "SET SESSION binlog_format = STATEMENT",
    "INSERT INTO tenant_1.named (id, s) VALUES (3, 'É'), (4, NULL)",
    "UPDATE tenant_1.named SET s = CONCAT(s, '!') WHERE s = 'e'",
    "SET SESSION binlog_format = ROW",
    "CREATE TABLE tenant_1.versioned (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING",
    "INSERT INTO tenant_1.versioned VALUES (1, 1), (2, 2)",
    "CREATE TABLE tenant_1.periods (id INT PRIMARY KEY, n INT, a TIMESTAMP(6) GENERATED ALWAYS AS ROW START, "
    "b TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (a, b)) WITH SYSTEM VERSIONING",
    "INSERT INTO tenant_1.periods (id, n) VALUES (1, 1), (2, 2)",
    "UPDATE tenant_1.periods SET n = 3 WHERE id = 1",
    "DELETE FROM tenant_1.periods WHERE id = 2",
    "CREATE SEQUENCE tenant_1.s",
)
"""What every series takes as it is."""
LATER: Final = (
    "UPDATE tenant_1.named SET s = CONCAT(s, '+'), b = 'y' WHERE id < 4",
    "DELETE FROM tenant_1.named WHERE id = 2",
    "INSERT INTO tenant_1.named VALUES (2, 'again', 'z'), (9, 'new', '')",
    "UPDATE tenant_1.named SET id = id + 10",
    "UPDATE tenant_1.versioned SET n = n + 1",
    "DELETE FROM tenant_1.versioned WHERE id = 2",
    "DO NEXTVAL(tenant_1.s)",
)


def opened(
    server_of: Callable[[str, str], PrivateServer], way: tuple[str, str], folder: Path, clean: Callable[..., None]
) -> Channel:
    source, target = (server_of(version, part) for version, part in zip(way, ("source", "target"), strict=True))
    return fresh_channel(source, target, folder, clean)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_windows_between_series_leave_the_same(
    way: tuple[str, str],
    server_of: Callable[[str, str], PrivateServer],
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    channel = opened(server_of, way, tmp_path, clean_servers)
    is_newer = way == ("11.8", "10.11")
    run_on(channel.source, "CREATE DATABASE tenant_1", *NAMED, *(() if is_newer else BARE))
    assert channel.run() is not None
    channel.assert_equal()
    # tables that were there before the window are folded
    channel.write_channel(blocks='reduce = "block"\n')
    run_on(channel.source, *LATER)
    assert channel.run() is not None
    channel.assert_equal()


def test_what_an_older_series_does_not_have_is_named_all_at_once(
    server_of: Callable[[str, str], PrivateServer], tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> None:
    channel = opened(server_of, ("11.8", "10.11"), tmp_path, clean_servers)
    run_on(channel.source, "CREATE DATABASE tenant_1", *BARE, "CREATE TABLE tenant_1.v (v VECTOR(3))")
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    for named in (
        "tenant_1.bare: character set without COLLATE utf8mb4 = utf8mb4_uca1400_ai_ci",
        "tenant_1.columns: character set without COLLATE utf8mb3 = utf8mb3_uca1400_ai_ci",
        "tenant_2: character set without COLLATE",
        "tenant_1.v.v: VECTOR column",
    ):
        assert named in str(refused.value)
    assert channel.target.query("SHOW DATABASES LIKE 'tenant%'") == []
