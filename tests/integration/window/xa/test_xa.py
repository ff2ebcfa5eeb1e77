"""XA transactions from server to server: applied where they commit, whichever windows their halves stand in."""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest

from binlane.errors import PlanError
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.request import WindowRequest
from binlane.plan.window_plan import WindowPlan
from lab.servers import PrivateServer, private_server
from tests.integration.verify.test_which_target import copied
from tests.integration.window.conftest import CHANNEL, Channel, fresh_channel
from tests.integration.window.control.test_stop import planned

TABLE = "CREATE TABLE {}.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT, n INT)"


@pytest.fixture(params=list(Flavor))
def xa(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> Iterator[Channel]:
    """A channel between two servers of one family, with two tenants in lanes of their own."""
    servers = [request.getfixturevalue(f"{request.param}_{part}") for part in ("source", "target")]
    channel = fresh_channel(servers[0], servers[1], tmp_path, clean_servers)
    channel.write_shard_list("tenant_1=0\ntenant_2=1\n")
    for tenant in ("tenant_1", "tenant_2"):
        channel.source.query(f"CREATE DATABASE {tenant}")
        channel.source.query(TABLE.format(tenant))
    assert channel.run() is not None
    yield channel
    for server in servers:
        for row in server.query("XA RECOVER"):
            server.query(f"XA ROLLBACK '{row[3]}'")


def prepare(channel: Channel, xid: str, *statements: str, setting: str = "SET @nothing = 1") -> None:
    """Leave a prepared transaction behind, on no connection."""
    with contextlib.closing(channel.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in (setting, f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}"):
            cursor.execute(statement)


def end(channel: Channel, what: str) -> None:
    """XA COMMIT or XA ROLLBACK; the server may still be detaching the session that prepared it."""
    last = time.monotonic() + 60
    while True:
        try:
            channel.source.query(what)
            return
        except pymysql.err.OperationalError as exc:
            if exc.args[0] != 1397 or time.monotonic() > last:
                raise
            time.sleep(0.05)


def insert(tenant: int, value: str = "xa") -> str:
    return f"INSERT INTO tenant_{tenant}.t (v) VALUES ('{value}')"


def values(channel: Channel, tenant: int = 1) -> list[str]:
    return [value for (value,) in channel.target.query(f"SELECT v FROM tenant_{tenant}.t ORDER BY id")]


def plan_of(channel: Channel) -> WindowPlan:
    """The plan of the newest window."""
    ((work,),) = channel.target.query("SELECT work FROM binlane.windows ORDER BY number DESC LIMIT 1")
    return read_plan(str(next(Path(work).glob("*/plan.json")).parent))


def purge(channel: Channel) -> None:
    """Remove everything from the source's log that the watermark has passed, and all work folders."""
    channel.source.query("FLUSH BINARY LOGS")
    # the watermark stands in a file that is kept
    channel.source.query(f"PURGE BINARY LOGS TO '{channel.status.channel.watermark.source.file}'")
    shutil.rmtree(channel.work)


def test_prepare_and_each_kind_of_end_of_an_xa_transaction_in_one_window(xa: Channel) -> None:
    prepare(xa, "'a','b',7", insert(1, "committed"), insert(2, "committed"))
    xa.source.query(insert(1, "between"))
    end(xa, "XA COMMIT 'a','b',7")
    prepare(xa, "'a','b',7", insert(1, "the same xid again"), "UPDATE tenant_1.t SET n = 5 WHERE v = 'between'")
    end(xa, "XA COMMIT 'a','b',7")
    prepare(xa, "'it''s',x'00ff27'", insert(1, "rolled back"))
    end(xa, "XA ROLLBACK 'it''s',x'00ff27'")
    with contextlib.closing(xa.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in ("XA START 'one'", insert(2, "one phase"), "XA END 'one'", "XA COMMIT 'one' ONE PHASE"):
            cursor.execute(statement)
    prepare(xa, "'s'", insert(1, "statement"), setting="SET SESSION binlog_format = STATEMENT")
    end(xa, "XA COMMIT 's'")
    assert xa.run() is not None
    xa.assert_equal()
    assert values(xa) == ["committed", "between", "the same xid again", "statement"]
    assert xa.target.query("XA RECOVER") == []
    assert xa.run() is None


def test_the_halves_in_different_windows_with_the_log_purged_and_the_work_folder_lost_between(xa: Channel) -> None:
    # compressed, its halves can only be seen inside
    compressed = "SET SESSION binlog_transaction_compression = ON"
    setting = compressed if xa.source.flavor is Flavor.MYSQL else "SET @nothing = 1"
    long = "INSERT INTO tenant_2.t (v) VALUES (REPEAT('x', 700000))"
    prepare(xa, "'far','b',3", insert(1), insert(2), long)
    prepare(xa, "'lost'", insert(1, "never"), setting=setting)
    prepare(xa, "'packed'", insert(2, "packed"), setting=setting)
    xa.source.query(insert(2, "another"))
    assert xa.run() is not None
    out = {group.xid: group.rows for group in plan_of(xa).carried_out}
    assert out == {"X'666172',X'62',3": 3, "X'6c6f7374',X'',1": 1, "X'7061636b6564',X'',1": 1}
    assert values(xa) == []
    assert values(xa, 2) == ["another"]
    assert [each.rows for each in xa.status.prepared] == [3, 1, 1]
    purge(xa)

    xa.source.query(insert(1, "second window"))
    assert xa.run() is not None
    plan = plan_of(xa)
    assert (plan.carried_in, plan.carried_out, plan.rows.total) == ((), (), 1)
    purge(xa)

    end(xa, "XA COMMIT 'far','b',3")
    end(xa, "XA ROLLBACK 'lost'")
    end(xa, "XA COMMIT 'packed'")
    window = steps.extract(xa.config, xa.endpoints, WindowRequest("now"))
    # a worker's disk is lost with the window open: all of it is read again
    shutil.rmtree(window["work"])
    assert xa.run() is not None
    plan = plan_of(xa)
    assert sorted(group.xid for group in plan.carried_in) == sorted(out)
    assert (plan.carried_out, plan.rows.total, plan.barriers[0].causes) == ((), 4, {"several lanes": 1})
    xa.assert_equal()
    assert xa.status.prepared == ()
    assert xa.target.query("SELECT COUNT(*) FROM binlane.prepared_chunks") == [(0,)]
    assert xa.run() is None


def test_a_transaction_prepared_before_the_channel_began_stops_it_by_name_until_somebody_decides(
    xa: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(xa, "'before'", insert(1, "by hand"))
    prepare(xa, "'gone'", insert(2, "never"))
    xa.target.query("DROP DATABASE binlane")
    xa.init()
    end(xa, "XA ROLLBACK 'gone'")
    end(xa, "XA COMMIT 'before'")
    xa.source.query(insert(2, "behind"))
    for _ in range(2):
        capsys.readouterr()
        assert xa.cli("run", CHANNEL) == 1
        said = capsys.readouterr().err
        assert said.startswith("UnsupportedEventError: ")
        assert "XA COMMIT of X'6265666f7265',X'',1: its XA PREPARE is before" in said
    assert values(xa, 2) == []
    assert xa.cli("xa", CHANNEL, "--done", "X'6265',X'',one") == 2
    assert xa.cli("xa", CHANNEL, "--done", "X'6265666f7265',X'',1") == 0
    assert "as already on the target" in capsys.readouterr().out
    xa.target.query(insert(1, "by hand"))
    assert xa.run() is not None
    xa.assert_equal()
    assert xa.status.prepared == ()


def test_temporary_tables_inside_prepared_transactions_live_where_they_are_prepared(
    mariadb_source: PrivateServer,
    mariadb_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    channel = fresh_channel(mariadb_source, mariadb_target, tmp_path, clean_servers)
    channel.source.query("CREATE DATABASE tenant_1")
    channel.source.query(TABLE.format("tenant_1"))
    for xid, word in (("'a'", "kept"), ("'b'", "undone"), ("'c'", "last")):
        prepare(
            channel,
            xid,
            f"INSERT INTO tenant_1.t (v) VALUES ('{word}')",
            # the name of a table that is there
            "CREATE TEMPORARY TABLE tenant_1.t (id INT, v VARCHAR(20))",
            f"INSERT INTO tenant_1.t VALUES (1, '{word} by way of it'), (2, '{word} again')",
            "CREATE TEMPORARY TABLE tenant_1.u AS SELECT v FROM tenant_1.t",
            "DROP TEMPORARY TABLE tenant_1.t",
            "INSERT INTO tenant_1.t (v) SELECT v FROM tenant_1.u ORDER BY v",
            "DROP TEMPORARY TABLE tenant_1.u",
            setting="SET SESSION binlog_format = STATEMENT",
        )
        channel.source.query("INSERT INTO tenant_1.t (v) VALUES ('between')")
    for what in ("COMMIT 'c'", "ROLLBACK 'b'", "COMMIT 'a'"):
        end(channel, f"XA {what}")
    assert channel.run() is not None
    channel.assert_equal()
    assert [each for each in values(channel) if each.startswith("undone")] == []
    assert "last by way of it" in values(channel)


def test_a_stored_one_that_the_source_has_lost_can_be_forgotten(
    xa: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(xa, "'x'", insert(1))
    assert xa.run() is not None
    assert xa.cli("xa", CHANNEL, "--forget", "X'79',X'',1") == 1
    assert xa.cli("xa", CHANNEL) == 0
    assert "X'78',X'',1: seqno " in capsys.readouterr().out
    assert xa.cli("xa", CHANNEL, "--forget", "X'78',X'',1") == 0
    assert "0 prepared XA transactions" in capsys.readouterr().out
    assert xa.target.query("SELECT COUNT(*) FROM binlane.prepared_chunks") == [(0,)]
    end(xa, "XA COMMIT 'x'")
    assert xa.cli("run", CHANNEL) == 1
    assert "XA COMMIT of X'78',X'',1" in capsys.readouterr().err


def test_a_copy_on_the_target_that_was_changed_is_found_before_anything_is_written(xa: Channel) -> None:
    prepare(xa, "'x'", insert(1))
    assert xa.run() is not None
    xa.target.query("UPDATE binlane.prepared_chunks SET data = CONCAT(data, 'x') ORDER BY chunk DESC LIMIT 1")
    end(xa, "XA COMMIT 'x'")
    with pytest.raises(PlanError, match=r"binlane\.prepared_chunks, channel orders, .* is damaged"):
        xa.run()
    assert values(xa) == []
    xa.target.query(
        "UPDATE binlane.prepared_chunks SET data = LEFT(data, LENGTH(data) - 1) ORDER BY chunk DESC LIMIT 1"
    )
    assert xa.run() is not None
    xa.assert_equal()


@pytest.mark.trial
def test_runs_that_are_killed_between_the_halves_lose_and_double_nothing(xa: Channel) -> None:
    chance = random.Random(20261121)
    xa.source.query(insert(1, "undisturbed"))
    began = time.monotonic()
    xa.run()
    seconds = time.monotonic() - began
    for round_ in range(4):
        xid = f"'r{round_}'"
        prepare(xa, xid, insert(1, f"{round_}"), insert(2, f"{round_}"), insert(2, f"{round_} more"))
        xa.source.query(insert(1, f"{round_} between"))
        xa.run_and_kill(chance.uniform(0.0, 2 * seconds))
        if round_ % 2:
            xa.run()
        end(xa, f"XA {'ROLLBACK' if round_ == 2 else 'COMMIT'} {xid}")
        xa.source.query(insert(2, f"{round_} behind"))
        xa.run_and_kill(chance.uniform(0.0, 2 * seconds))
        xa.run()
        xa.run()
        xa.assert_equal()
        assert xa.status.prepared == ()


@contextlib.contextmanager
def compression(server: PrivateServer) -> Iterator[Callable[[bool], None]]:
    """Gives what turns compression of the sessions that begin afterwards on and off; off at the end."""
    names = ("binlog_transaction_compression",) if server.flavor is Flavor.MYSQL else ("log_bin_compress",)
    if server.flavor is Flavor.MARIADB:
        server.query("SET GLOBAL log_bin_compress_min_len = 10")

    def turn(on: bool) -> None:
        for name in names:
            server.query(f"SET GLOBAL {name} = {'ON' if on else 'OFF'}")

    try:
        yield turn
    finally:
        turn(False)
        if server.flavor is Flavor.MARIADB:
            server.query("SET GLOBAL log_bin_compress_min_len = DEFAULT")


@pytest.mark.parametrize("cut", [False, True], ids=["one segment", "many segments"])
def test_halves_among_compressed_transactions_are_found_whatever_is_opened_in_memory(xa: Channel, cut: bool) -> None:
    rows = "INSERT INTO tenant_{}.t (v) VALUES (REPEAT('{}', 300)), (REPEAT('{}', 200))"

    def step() -> None:
        # a file's end ends a segment
        if cut:
            xa.source.query("FLUSH BINARY LOGS")

    with compression(xa.source) as turn:
        for number, (packed_prepare, packed_around) in enumerate([(False, True), (True, True), (True, False)]):
            turn(packed_around)
            for tenant, letter in itertools.product((1, 2), "ab"):
                xa.source.query(rows.format(tenant, letter, letter))
            step()
            turn(packed_prepare)
            prepare(xa, f"'p{number}'", rows.format(1, "x", number), rows.format(2, number, "y"))
            prepare(xa, f"'r{number}'", rows.format(1, "never", "never"))
            turn(packed_around)
            step()
            xa.source.query("UPDATE tenant_1.t SET n = COALESCE(n, 0) + 1 WHERE id IN (1, 2)")
            xa.source.query("UPDATE tenant_2.t SET v = CONCAT(v, REPEAT('c', 400)) WHERE id IN (3, 4)")
            step()
            end(xa, f"XA COMMIT 'p{number}'")
            end(xa, f"XA ROLLBACK 'r{number}'")
            xa.source.query(rows.format(1, "d", "e"))
    folder = Path(steps.extract(xa.config, xa.endpoints, WindowRequest("now"))["work"])
    assert len(list(folder.glob("segments/*"))) == (10 if cut else 1)
    assert xa.run() is not None
    xa.assert_equal()
    assert sum(value.startswith("xxx") for value in values(xa)) == 3


@pytest.mark.parametrize("flavor", list(Flavor))
def test_behind_a_failover_another_channel_goes_on_with_what_is_prepared(
    flavor: Flavor, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    clean_servers: Callable[[PrivateServer], None],
) -> None:  # fmt: skip
    target: PrivateServer = request.getfixturevalue(f"{flavor.value}_target")
    with private_server(tmp_path / "old", flavor, name="source", durable=False) as source:
        channel = fresh_channel(
            source, target, tmp_path / "project", lambda server: clean_servers(server) if server is target else None
        )
        source.query("CREATE DATABASE tenant_1")
        source.query(TABLE.format("tenant_1"))
        prepare(channel, "'held'", insert(1, "held"))
        assert channel.run() is not None
        source.query(insert(1, "behind"))
        seqno = channel.status.channel.watermark.seqno
        (channel.channels / "shop2.toml").write_text((channel.channels / f"{CHANNEL}.toml").read_text())
        source.stop()
        shutil.copytree(tmp_path / "old", tmp_path / "new")
        with copied(source, tmp_path / "new", identity=False) as replica:
            channel = replace(channel, source=replica)
            channel.connect("source_server", replica)
            assert channel.cli("run", CHANNEL) == 1
            assert "SourceIdentityError" in capsys.readouterr().err
            assert channel.cli("init", "shop2", "--after", CHANNEL, "--start", "now") == 2
            assert channel.cli("init", "shop2", "--after", CHANNEL) == 0, capsys.readouterr().err
            assert f"channel shop2: watermark at seqno {seqno:,}" in capsys.readouterr().out
            # another attempt finds it done
            assert channel.cli("init", "shop2", "--after", CHANNEL) == 0
            assert target.query("SELECT channel FROM binlane.channels") == [("shop2",)]
            assert target.query("SELECT channel, xid FROM binlane.prepared") == [("shop2", "X'68656c64',X'',1")]
            end(channel, "XA COMMIT 'held'")
            assert channel.cli("run", "shop2") == 0, capsys.readouterr().err
            assert sorted(values(channel)) == ["behind", "held"]
            assert target.query("SELECT channel FROM binlane.prepared") == []


def test_a_channel_whose_window_has_begun_is_not_gone_on_for(xa: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    (xa.channels / "shop2.toml").write_text((xa.channels / f"{CHANNEL}.toml").read_text())
    xa.source.query(insert(1))
    planned(xa)
    assert xa.cli("init", "shop2", "--after", CHANNEL) == 1
    assert f"channel {CHANNEL}: expected no window that has begun" in " ".join(capsys.readouterr().err.split())
    assert xa.target.query("SELECT channel FROM binlane.channels") == [(CHANNEL,)]
    assert xa.cli("init", "shop2", "--after", "nobody") == 1
    assert "channel nobody: unknown on this target" in capsys.readouterr().err
