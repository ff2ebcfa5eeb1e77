"""Temporary tables of statement logs that something commits beside: copies on the target, from server to server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from binlane.errors import BinlaneError, PositionError, StopRequestedError
from binlane.model import Flavor
from binlane.servers.engines import engine_of
from binlane.state.orders.skips import SkipRequest, request_skips
from binlane.state.orders.stops import clear_stop, request_stop
from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel, fresh_channel, run_on
from tests.waiting import wait_until

RENAMES = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'RENAME TABLE%'"
STATEMENT = "SET SESSION binlog_format = STATEMENT"


@pytest.fixture(params=list(Flavor))
def channel(request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]) -> Channel:
    """Between two servers of one family, with two tenants in lanes of their own."""
    servers = [request.getfixturevalue(f"{request.param}_{part}") for part in ("source", "target")]
    found = fresh_channel(servers[0], servers[1], tmp_path, clean_servers)
    lay(found)
    return found


def lay(channel: Channel) -> None:
    # the order of rows of a table that the window itself makes counts as unproven
    channel.write_channel("allow_unsafe = true\n")
    channel.write_shard_list("tenant_1=0\ntenant_2=1\n")
    for tenant in ("tenant_1", "tenant_2"):
        channel.on_both(
            f"CREATE DATABASE {tenant}",
            f"CREATE TABLE {tenant}.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200))",
            f"INSERT INTO {tenant}.t (v) VALUES ('one'), ('two'), ('three')",
        )


@contextlib.contextmanager
def session(channel: Channel, database: str = "tenant_1") -> Iterator[Callable[..., None]]:
    """A connection of the source that logs statements."""
    with contextlib.closing(channel.source.connect(autocommit=True, database=database)) as connection:

        def run(*statements: str) -> None:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)

        run(STATEMENT)
        yield run


def lives_with_commits(channel: Channel, word: str) -> None:
    """Two connections with a table of one name each, and all that commits beside them, of theirs and of others."""
    with session(channel) as one, session(channel) as two, session(channel, "tenant_2") as other:
        one(
            "CREATE TEMPORARY TABLE tmp (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200), "
            "twice INT AS (LENGTH(v) * 2) STORED, f DOUBLE, KEY (v)) AUTO_INCREMENT = 5",
            f"INSERT INTO tmp (v, f) SELECT CONCAT(v, ' {word}'), id / 3 FROM t ORDER BY id LIMIT 3",
            "INSERT INTO tmp (v) VALUES ('goes')",
            "DELETE FROM tmp WHERE v = 'goes'",
        )
        two("CREATE TEMPORARY TABLE tmp (only_here VARCHAR(200))", "INSERT INTO tmp SELECT v FROM t WHERE id < 3")
        other(f"CREATE TABLE {word} (id INT PRIMARY KEY)", f"INSERT INTO {word} VALUES (1), (2)")
        channel.source.query("UPDATE tenant_2.t SET v = CONCAT(v, '!') WHERE id = 1")
        one(
            "INSERT INTO tmp (v) VALUES ('behind')",
            "INSERT INTO t (v) SELECT CONCAT(id, ':', v, twice) FROM tmp ORDER BY id",
        )
        other(f"DROP TABLE {word}")
        # its own: read into a table, altered, emptied, renamed, and one that hides a permanent table
        one(
            f"CREATE TABLE filled_{word} (id INT PRIMARY KEY) SELECT id, v, twice, f FROM tmp",
            "ALTER TABLE tmp ADD COLUMN n DOUBLE NOT NULL DEFAULT 0.1",
            "INSERT INTO t (v) SELECT CONCAT(id, v, n) FROM tmp ORDER BY id",
            "CREATE INDEX more ON tmp (n)",
        )
        two("TRUNCATE TABLE tmp", "INSERT INTO tmp VALUES ('after TRUNCATE')")
        channel.source.query("ALTER TABLE tenant_1.t MODIFY v VARCHAR(300)")
        one("ALTER TABLE tmp RENAME renamed", "INSERT INTO t (v) SELECT MAX(id) FROM renamed")
        two(
            "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, v VARCHAR(200))",
            "INSERT INTO t SELECT 1, only_here FROM tmp",
        )
        channel.source.query(f"CREATE TABLE tenant_1.last_{word} (id INT)")
        two("UPDATE t SET v = CONCAT(v, ' hidden')", f"INSERT INTO filled_{word} (id, v) SELECT 0, v FROM t")
        one("DROP TABLE renamed")
        channel.source.query("INSERT INTO tenant_1.t (v) VALUES ('of another connection')")
        two("DROP TEMPORARY TABLE tmp, t")


def test_lives_with_commits_inside_arrive(channel: Channel) -> None:
    lives_with_commits(channel, "first")
    assert channel.run() is not None
    channel.assert_equal()
    assert copies(channel) == []
    lives_with_commits(channel, "second")
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.run() is None


def copies(channel: Channel) -> list[str]:
    """What is left in the schema of the state."""
    query = (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'binlane' AND table_name LIKE 'copies%%'"
    )
    assert channel.target.query("SELECT * FROM binlane.temporary") == []
    return [str(name) for (name,) in channel.target.query(query)]


def test_a_temporary_table_that_hides_another_is_renamed_without_it(
    mariadb_source: PrivateServer,
    mariadb_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    """MariaDB logs RENAME TABLE of a temporary table as it logs that of any other table, without the mark."""
    channel = fresh_channel(mariadb_source, mariadb_target, tmp_path, clean_servers)
    lay(channel)
    with session(channel) as one, session(channel, "tenant_2") as other:
        one(
            "CREATE TEMPORARY TABLE t (n INT)",
            "INSERT INTO t VALUES (5), (6)",
            "RENAME TABLE t TO away, away TO apart",
            "INSERT INTO t (v) SELECT n FROM apart ORDER BY 1",
        )
        other("RENAME TABLE t TO t_of_tenant_2")
        one("RENAME TABLE apart TO again", "INSERT INTO t (v) SELECT n + 1 FROM again ORDER BY 1", "DROP TABLE again")
        # its end is logged under the name that it has then
        one("CREATE TEMPORARY TABLE t (n INT)", "RENAME TABLE t TO last")
    channel.source.query("DO SLEEP(0.5)")
    assert channel.run() is not None
    assert channel.run() is None
    channel.assert_equal()


def renames_of_both(channel: Channel, word: str) -> None:
    """RENAME TABLE of a temporary table and of the permanent one that it hides, and of names that change hands."""
    with session(channel) as one, session(channel, "tenant_2") as other:
        one(
            "CREATE TEMPORARY TABLE t (n INT)",
            "INSERT INTO t VALUES (5), (6)",
            "CREATE TEMPORARY TABLE two (n INT)",
            # the second is the permanent one
            f"RENAME TABLE t TO away, t TO t_{word}",
            f"INSERT INTO t_{word} (v) SELECT n FROM away",
        )
        other(f"RENAME TABLE t TO other_{word}")
        # the permanent one passes through a temporary one's name, which stays
        one(
            f"RENAME TABLE t_{word} TO away, two TO u, away TO t, u TO last",
            "INSERT INTO t (v) SELECT n + 1 FROM away ORDER BY 1",
            "INSERT INTO last SELECT n FROM away",
            f"RENAME TABLE last TO tenant_2.t, tenant_2.t TO gone_{word}, tenant_2.other_{word} TO tenant_2.t",
            f"INSERT INTO tenant_2.t (v) SELECT n + 2 FROM gone_{word} ORDER BY 1",
            f"DROP TABLE gone_{word}, away",
        )


@pytest.mark.parametrize("family", list(Flavor))
def test_a_rename_of_temporary_tables_and_others_arrives(
    request: pytest.FixtureRequest,
    mariadb_source: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    family: Flavor,
) -> None:
    """MySQL's RENAME TABLE knows no temporary tables; its ALTER TABLE does."""
    target = request.getfixturevalue(f"{family}_target")
    channel = fresh_channel(mariadb_source, target, tmp_path, clean_servers)
    lay(channel)
    renames_of_both(channel, "first")
    assert channel.run() is not None
    if family is Flavor.MARIADB:
        channel.assert_equal()
    assert channel.rows_of(channel.source) == channel.rows_of(channel.target)
    assert copies(channel) == []
    assert channel.run() is None


@pytest.mark.parametrize("now", [False, True])
def test_a_rename_of_temporary_tables_and_others_that_runs_is_reached_for_every_order(
    mariadb_source: PrivateServer,
    mariadb_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    now: bool,
) -> None:
    """No stop may come to lie before it: it has committed in part."""
    channel = fresh_channel(mariadb_source, mariadb_target, tmp_path, clean_servers)
    lay(channel)
    seqno = channel.status.channel.watermark.seqno + 2
    with session(channel) as one:
        one("CREATE TEMPORARY TABLE t (n INT)", "RENAME TABLE t TO away, t TO u")
        one("INSERT INTO u (v) SELECT 1 FROM away ORDER BY 1", "DROP TABLE away")
    engine = engine_of(channel.endpoints.target)
    with contextlib.closing(channel.target.connect()) as reader, ThreadPoolExecutor(1) as pool:
        with reader.cursor() as cursor:
            cursor.execute("SELECT * FROM tenant_1.t")
        running = pool.submit(channel.run)
        try:
            wait_until(lambda: channel.target.query(RENAMES) == [(1,)] or running.done())
            with pytest.raises(PositionError):
                request_stop(engine, CHANNEL, at=seqno - 1)
            assert request_stop(engine, CHANNEL, now=now).seqno == seqno
        finally:
            reader.rollback()
        with pytest.raises(StopRequestedError) if now else contextlib.nullcontext():
            running.result()
    assert {lane.seqno for lane in channel.status.positions} == {seqno}
    clear_stop(engine, CHANNEL)
    assert channel.run() is not None
    channel.assert_equal()
    assert copies(channel) == []


def test_a_rename_of_temporary_tables_and_others_that_the_target_refuses_leaves_both_as_they_were(
    mariadb_source: PrivateServer,
    mariadb_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A stop may lie before it then, but it cannot be skipped: the tables of the later statements would be missing. No
    message offers it, and the command refuses it before an order is recorded."""
    channel = fresh_channel(mariadb_source, mariadb_target, tmp_path, clean_servers)
    lay(channel)
    with session(channel) as one:
        one("CREATE TEMPORARY TABLE t (n INT)", "INSERT INTO t VALUES (7)", "RENAME TABLE t TO away, t TO u")
        one("INSERT INTO u (v) SELECT n FROM away ORDER BY 1", "DROP TABLE away")
    seqno = channel.status.channel.watermark.seqno + 3
    run_on(channel.target, "CREATE TABLE tenant_1.u (in_the_way INT)", log=False)
    with pytest.raises(BinlaneError, match="1050") as failed:
        channel.run()
    why = f"temporary tables are open in seqno {seqno}, which can only be applied as a whole"
    assert "--reason" not in str(failed.value)
    assert f"`binlane skip {CHANNEL}` cannot help: {why}" in str(failed.value)
    for which in (("--seqno", str(seqno)), ("--range", f"{seqno - 2}-{seqno + 1}")):
        assert channel.cli("skip", CHANNEL, *which, "--reason", "try") == 1
        assert "temporary tables are open in seqno" in capsys.readouterr().err
    assert channel.cli("skip", CHANNEL, "--list") == 0
    assert "nothing was skipped" in capsys.readouterr().out
    run_on(channel.target, "DROP TABLE tenant_1.u", log=False)
    order_of_an_older_binlane(channel, seqno)
    with pytest.raises(BinlaneError, match=f"seqnos \\[{seqno}\\] are to be skipped, but temporary tables are open"):
        channel.run()
    assert channel.rows_of(channel.target).keys() == {"tenant_1.t", "tenant_2.t"}
    assert channel.cli("skip", CHANNEL, "--seqno", str(seqno), "--cancel") == 0
    assert channel.run() is not None
    channel.assert_equal()


def order_of_an_older_binlane(channel: Channel, seqno: int) -> None:
    """Which took it and refused it when the lane came to it."""
    window = channel.status.window
    assert window is not None
    place = window.bounds.end
    request = SkipRequest(seqno, 0, "", place, 0.0, "RENAME TABLE", b"", (0,), is_shared=False)
    assert request_skips(engine_of(channel.endpoints.target), window, [request], reason="try", by="me") == (seqno,)
