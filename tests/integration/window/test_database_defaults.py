"""A database's default collation on the target that is not the source's, and statements that depend on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.errors import PrecheckError
from lab.servers import PrivateServer
from tests.integration.window.conftest import fresh_channel, run_on

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
    todo = str(refused.value).split("ALTER DATABASE ")[1].split(" on the target")[0]
    run_on(target, f"ALTER DATABASE {todo}", log=False)
    assert channel.run() is not None
    assert source.query(TABLES) == target.query(TABLES)
    assert ("t", "latin1_swedish_ci") in target.query(TABLES)
    channel.assert_equal()
