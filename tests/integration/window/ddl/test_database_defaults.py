"""A database's default collation on the target that is not the source's, and statements that depend on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.errors import PrecheckError
from binlane.model import LogPosition
from binlane.orchestration.request import WindowRequest
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, fresh_channel, run_on

TABLES = "SELECT table_name, table_collation FROM information_schema.tables WHERE table_schema = 'tenant_1' ORDER BY 1"


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_a_table_that_would_get_another_character_set_is_named(
    family: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source: PrivateServer = request.getfixturevalue(f"{family}_source")
    target: PrivateServer = request.getfixturevalue(f"{family}_target")
    channel = fresh_channel(source, target, tmp_path, request.getfixturevalue("clean_servers"))
    run_on(source, "CREATE DATABASE tenant_1 CHARACTER SET latin1", log=False)
    run_on(target, "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4", log=False)
    # what says its own does not depend on it, nor does what the window makes
    run_on(
        source,
        "CREATE TABLE tenant_1.own (s VARCHAR(9)) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "CREATE TABLE tenant_1.alike LIKE tenant_1.own",
        "CREATE DATABASE tenant_2 CHARACTER SET latin1",
        "CREATE TABLE tenant_2.t (s VARCHAR(9))",
    )
    assert channel.run() is not None
    run_on(source, "CREATE TABLE tenant_1.t (s VARCHAR(9))", "INSERT INTO tenant_1.t VALUES ('ä')")
    with pytest.raises(PrecheckError, match="tenant_1: default collation: expected latin1_swedish_ci") as refused:
        channel.run()
    assert str(refused.value).endswith(" [default-collations]")
    todo = str(refused.value).split("ALTER DATABASE ")[1].split(" on the target")[0]
    run_on(target, f"ALTER DATABASE {todo}", log=False)
    assert channel.run() is not None
    assert source.query(TABLES) == target.query(TABLES)
    assert ("t", "latin1_swedish_ci") in target.query(TABLES)
    channel.assert_equal()
    # what the source alters behind the window is none of the window's
    run_on(source, "CREATE TABLE tenant_1.then (s VARCHAR(9))", "INSERT INTO tenant_1.then VALUES ('ä')")
    file, size, *_ = source.query("SHOW BINARY LOGS")[-1]
    run_on(source, "ALTER DATABASE tenant_1 CHARACTER SET utf8mb4", "CREATE TABLE tenant_1.now (s VARCHAR(9))")
    assert channel.run(WindowRequest(until_position=LogPosition(file, size))) is not None
    assert ("then", "latin1_swedish_ci") in target.query(TABLES)
    assert channel.run() is not None
    assert source.query(TABLES) == target.query(TABLES)
    channel.assert_equal()


def test_a_lane_that_is_in_the_database_sees_what_another_lane_has_altered(channel: Channel) -> None:
    """What touches both databases is the first one's lane's; the second one's own lane alters it between two visits."""
    between = ("INSERT INTO tenant_2.t VALUES ('between')",) * 6  # or all of it would be one barrier
    run_on(
        channel.source,
        "CREATE DATABASE tenant_2",
        "CREATE TABLE tenant_2.t (s VARCHAR(9))",
        "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4",
        "SET SESSION binlog_format = STATEMENT",
        "USE tenant_1",
        "CREATE VIEW visited AS SELECT s FROM tenant_2.t",
        *between,
        "ALTER DATABASE tenant_1 CHARACTER SET latin1",
        *between,
        "CREATE TABLE behind_it (s TEXT) AS SELECT 1 AS id FROM tenant_2.t",
        "CREATE TABLE of_its_own_lane (s TEXT)",
    )
    assert channel.run() is not None
    latin1 = "latin1_swedish_ci"
    assert set(channel.source.query(TABLES)) >= {("behind_it", latin1), ("of_its_own_lane", latin1)}
    assert channel.target.query(TABLES) == channel.source.query(TABLES)
    channel.assert_equal()
