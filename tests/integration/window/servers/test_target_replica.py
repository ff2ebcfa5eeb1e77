"""A replica of the target, in parallel, ends with the target's rows: what binlane logs keeps its order."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from lab.compare import compare
from lab.histories.native import place_of, replicate
from lab.servers import PrivateServer
from tests.conftest import Started
from tests.integration.window.conftest import ChannelOf, run_on

_ROWS = 100
_BIG = 30_000
_STATEMENTS = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.big (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, n VARCHAR(200))",
    f"INSERT INTO tenant_1.big VALUES {', '.join(f'({n}, {n})' for n in range(1, _BIG))}",
)
_WINDOW = (
    *(f"INSERT INTO tenant_1.u SELECT id + {n * 2000}, REPEAT('x', 200) FROM tenant_1.big WHERE id <= 2000"
      for n in range(10)),
    "TRUNCATE TABLE tenant_1.u",
    "INSERT INTO tenant_1.u VALUES (1, 'after')",
    "ALTER TABLE tenant_1.big FORCE",
    "ALTER TABLE tenant_1.t ADD COLUMN c VARCHAR(20) DEFAULT 'default'",
    *(f"INSERT INTO tenant_1.t VALUES ({n}, {n}, 'given')" for n in range(_ROWS)),
    "RENAME TABLE tenant_1.t TO tenant_1.x, tenant_1.u TO tenant_1.t, tenant_1.x TO tenant_1.u",
    "INSERT INTO tenant_1.t VALUES (2, 'renamed')",
    "DROP TABLE tenant_1.big",
)  # fmt: skip
_UNREPLICATED = ("--replicate-wild-ignore-table=binlane.%",)
"""The state was there before the replica."""
_OPTIONS = {
    "conservative": (Flavor.MARIADB, ("--slave-parallel-threads=4", "--slave-parallel-mode=conservative")),
    "optimistic": (Flavor.MARIADB, ("--slave-parallel-threads=4", "--slave-parallel-mode=optimistic")),
    "mysql": (Flavor.MYSQL, ("--replica-parallel-workers=4", "--replica-preserve-commit-order=OFF")),
}


@pytest.mark.parametrize("mode", list(_OPTIONS))
def test_a_parallel_replica_of_the_target_applies_ddl_and_rows_in_their_order(
    channel_of: ChannelOf, started: Started, mode: str
) -> None:
    flavor, options = _OPTIONS[mode]
    channel = channel_of(flavor, flavor)
    target, replica = channel.target, started(flavor, f"replica_{mode}", None, options + _UNREPLICATED)
    begin = [row[0] for row in target.query("SELECT @@gtid_binlog_pos")] if flavor is Flavor.MARIADB else []
    place = place_of(target)
    run_on(channel.source, *_STATEMENTS, *_WINDOW)
    assert channel.run() is not None
    channel.assert_equal()
    if flavor is Flavor.MYSQL:
        assert replicate(target, replica, place) is None
    else:
        _replicate_by_gtid(target, replica, str(begin[0]))
    assert compare(target, replica).differences == ()
    assert replica.query("SELECT COUNT(*) FROM tenant_1.u WHERE c = 'given'") == [(_ROWS,)]


def _replicate_by_gtid(target: PrivateServer, replica: PrivateServer, begin: str) -> None:
    """Only by GTIDs does MariaDB apply domains side by side."""
    ((end,),) = target.query("SELECT @@gtid_binlog_pos")
    replica.query("SET GLOBAL gtid_slave_pos = %s", (begin,))
    replica.query(
        f"CHANGE MASTER TO master_host = '{target.host}', master_port = {target.port}, master_user = '{target.user}', "
        f"master_password = '{target.password}', master_use_gtid = slave_pos"
    )
    replica.query("START SLAVE")
    try:
        assert replica.query("SELECT MASTER_GTID_WAIT(%s, 60)", (end,)) == [(0,)]
    finally:
        replica.query("STOP SLAVE")
        replica.query("RESET SLAVE ALL")
