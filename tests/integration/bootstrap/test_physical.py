"""A channel begins at a copy by MySQL's CLONE or mariadb-backup of a live source; another target is refused."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlane.errors import UnsupportedEventError
from binlane.model import Flavor
from binlane.servers.engines import engine_of
from binlane.state.leases import beginning
from lab.physical import back_up, clone, has_backup_tool, prepare, restore
from lab.servers import PrivateServer, private_server
from tests.integration.window.conftest import CHANNEL, Channel, run_on

pytestmark = pytest.mark.trial

EVENT = "CREATE EVENT {}.daily ON SCHEDULE EVERY 1 DAY DO SET @nothing = 1"


@contextlib.contextmanager
def traffic(channel: Channel) -> Iterator[None]:
    """Transactions on the source during the with block."""
    failures: list[BaseException] = []
    ended = threading.Event()

    def write() -> None:
        seed = 2
        try:
            while not ended.is_set():
                channel.traffic(transactions=40, seed=(seed := seed + 1), creates=True)
        except BaseException as exc:
            failures.append(exc)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
    assert failures == []


def begin(channel: Channel, *options: str) -> int:
    return channel.cli("bootstrap", CHANNEL, *options)


def ends_equal(channel: Channel) -> None:
    channel.run()
    channel.assert_equal()
    assert channel.cli("verify", CHANNEL, "--full") == 0


@pytest.fixture
def mysql(
    tmp_path: Path, mysql_source: PrivateServer, clean_servers: Callable[[PrivateServer], None]
) -> Iterator[Channel]:
    """Of MySQL, with a target that may be cloned over."""
    clean_servers(mysql_source)
    with private_server(tmp_path / "clone", Flavor.MYSQL, mysql_source.options, name="clone") as target:
        yield Channel(mysql_source, target, tmp_path)


def test_a_clone_of_a_live_source(mysql: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    mysql.traffic(transactions=100, creates=True)
    assert begin(mysql, "--from-clone", "--users") == 2
    assert "expected one of them alone" in capsys.readouterr().err
    assert begin(mysql, "--from-clone") == 1
    assert "found no clone in performance_schema.clone_status" in capsys.readouterr().err
    with traffic(mysql):
        clone(mysql.source, mysql.target)
        assert begin(mysql, "--from-clone") == 0
    assert "begins at the target's clone of" in capsys.readouterr().out
    ends_equal(mysql)
    assert begin(mysql, "--from-clone") == 1
    assert "expected a target without it" in capsys.readouterr().err


def test_a_clone_that_does_not_fit_is_refused_by_name(
    mysql: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mysql.traffic(transactions=20, creates=True)
    [(database,)] = mysql.source.query(
        "SELECT MIN(table_schema) FROM information_schema.tables WHERE table_type = "
        "'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', 'performance_schema')"
    )
    run_on(mysql.source, EVENT.format(database))
    clone(mysql.source, mysql.target)
    assert begin(mysql, "--from-clone") == 1
    # without the definer, whoever runs the statement would become it
    disable = f"ALTER DEFINER = '{mysql.source.user}'@'%' EVENT `{database}`.`daily` DISABLE ON SLAVE"
    assert disable in capsys.readouterr().err
    run_on(mysql.target, disable)
    other = "11111111-1111-1111-1111-111111111111:1"
    run_on(mysql.target, f"SET gtid_next = '{other}'", "BEGIN", "COMMIT", "SET gtid_next = AUTOMATIC")
    assert begin(mysql, "--from-clone") == 1
    assert f"expected no later transaction of another server, found {other}" in capsys.readouterr().err
    # a log without GTIDs records none; those that the source has are known all the same
    [place] = mysql.target.query("SELECT binlog_file, binlog_position FROM performance_schema.clone_status")
    (tmp_path / "xtrabackup_binlog_info").write_text("{}\t{}\n".format(*place))
    assert begin(mysql, "--from-backup", str(tmp_path)) == 1
    said = capsys.readouterr().err
    assert f"expected no later transaction of another server, found {other}; copy again" in said
    assert "lacks" not in said
    # without GTIDs the redo log alone tells this backup from an older one
    assert "found that it has recorded neither: copy mariadb_backup_checkpoints or xtrabackup_checkpoints" in said
    for lsn, is_refused in ((2**50, True), (1, False)):
        (tmp_path / "xtrabackup_checkpoints").write_text(f"backup_type = full-prepared\nto_lsn = {lsn}\n")
        assert begin(mysql, "--from-backup", str(tmp_path)) == 1
        said = capsys.readouterr().err
        assert (f"expected a redo log at {lsn} or later, found " in said) is is_refused
        assert "neither" not in said
    replicate = "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'db0', SOURCE_PORT = 3311 FOR CHANNEL 'old'"
    run_on(mysql.target, replicate)
    assert begin(mysql, "--from-clone") == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "found a replica of db0:3311" in said
    assert "STOP REPLICA and RESET REPLICA ALL FOR CHANNEL 'old'" in said
    run_on(mysql.target, "RESET REPLICA ALL FOR CHANNEL 'old'")
    mysql.connect("target_server", mysql.source)
    assert begin(mysql, "--from-clone") == 1
    assert mysql.source.query("SHOW DATABASES LIKE 'binlane'") == []


@pytest.fixture
def mariadb(
    tmp_path: Path, mariadb_source: PrivateServer, clean_servers: Callable[[PrivateServer], None]
) -> Iterator[Channel]:
    """Of MariaDB, with a target that may be restored over."""
    if not has_backup_tool():
        pytest.skip("mariadb-backup is not installed: apt install mariadb-backup")
    clean_servers(mariadb_source)
    with private_server(tmp_path / "restored", Flavor.MARIADB, mariadb_source.options, name="restored") as target:
        yield Channel(mariadb_source, target, tmp_path)


def test_a_backup_of_a_live_source(mariadb: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "backup"
    mariadb.traffic(transactions=100, creates=True)
    with traffic(mariadb):
        back_up(mariadb.source, folder)
        assert begin(mariadb, "--from-backup", str(folder)) == 2
        assert "expected a prepared backup" in capsys.readouterr().err
        prepare(folder)
        assert begin(mariadb, "--from-backup", str(folder)) == 1, "the target is another server yet"
        assert "expected the backup's tables, found no " in capsys.readouterr().err
        restore(folder, mariadb.target)
        with beginning(engine_of(mariadb.endpoints.target), CHANNEL):
            assert begin(mariadb, "--from-backup", str(folder)) == 1
        assert "expected no first copy of this channel" in capsys.readouterr().err
        assert begin(mariadb, "--from-backup", str(folder)) == 0
    assert f"begins at {folder}" in capsys.readouterr().out
    ends_equal(mariadb)


def test_a_prepared_xa_transaction_in_a_copy_is_named_with_the_way_on(
    mariadb: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target, folder = mariadb.source, mariadb.target, tmp_path / "backup"
    run_on(source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, v INT)")
    run_on(source, "INSERT INTO tenant_1.t VALUES (1, 1), (2, 2)")
    run_on(source, "XA START 'one'", "UPDATE tenant_1.t SET v = 7 WHERE id = 1", "XA END 'one'", "XA PREPARE 'one'")
    back_up(source, folder)
    prepare(folder)
    restore(folder, target)
    assert begin(mariadb, "--from-backup", str(folder)) == 1
    assert "expected no prepared XA transaction, found 1" in capsys.readouterr().err
    run_on(source, "XA COMMIT 'one'", "UPDATE tenant_1.t SET v = v + 1")
    run_on(target, "XA COMMIT 'one'")
    assert begin(mariadb, "--from-backup", str(folder)) == 0
    with pytest.raises(UnsupportedEventError, match="`binlane xa CHANNEL --done") as said:
        mariadb.run()
    [xid] = re.findall(r'--done "(.+)"`', str(said.value))
    assert mariadb.cli("xa", CHANNEL, "--done", xid) == 0
    ends_equal(mariadb)


def test_a_backup_that_does_not_fit_is_refused_by_name(
    mariadb: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "backup"
    mariadb.traffic(transactions=20, creates=True)
    back_up(mariadb.source, folder)
    prepare(folder)
    restore(folder, mariadb.target)
    [info] = [each for each in folder.iterdir() if each.name.endswith("binlog_info")]
    recorded = info.read_text()
    file, offset, gtids = recorded.split()
    for text, said in (
        (f"{file}\t{int(offset) - 1}\t{gtids}\n", "expected the end of a transaction"),
        (f"{file}\t{offset}\t0-77-1\n", "the copy is of another server"),
        (f"binlog.999999\t{offset}\t{gtids}\n", "binlog.999999"),
        ("", "expected the source's log file, offset and GTID set"),
    ):
        info.write_text(text)
        assert begin(mariadb, "--from-backup", str(folder)) in (1, 2)
        assert said in capsys.readouterr().err
    info.write_text(recorded)
    domain, server, number = gtids.split("-")
    for wrong, mended, said in (
        (
            "CHANGE MASTER 'old' TO master_host = 'db0', master_port = 3311", "RESET SLAVE 'old' ALL",
            "found a replica of db0:3311: copy again if it has replicated since the copy; if it has not (the copied "
            "server is a replica itself), STOP REPLICA and RESET SLAVE 'old' ALL",
        ),
        (
            f"SET GLOBAL gtid_slave_pos = '{domain}-{server}-{int(number) + 1}'", "SET GLOBAL gtid_slave_pos = ''",
            f"behind {gtids}, found {domain}-{server}-{int(number) + 1} in gtid_slave_pos",
        ),
        ("SET GLOBAL gtid_slave_pos = '7-1-1'", f"SET GLOBAL gtid_slave_pos = '{gtids}'", "found 7-1-1"),
    ):  # fmt: skip
        run_on(mariadb.target, wrong)
        assert begin(mariadb, "--from-backup", str(folder)) == 1
        assert said in " ".join(capsys.readouterr().err.split())
        run_on(mariadb.target, mended)
    assert mariadb.target.query("SHOW DATABASES LIKE 'binlane'") == []
    assert begin(mariadb, "--from-backup", str(folder)) == 0
    ends_equal(mariadb)


def test_a_copy_that_an_earlier_channel_has_brought_on_is_refused(
    mariadb: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target, folder = mariadb.source, mariadb.target, tmp_path / "backup"
    run_on(source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (v INT)")
    back_up(source, folder)
    prepare(folder)
    restore(folder, target)
    assert begin(mariadb, "--from-backup", str(folder)) == 0
    forget = f"DELETE FROM binlane.channels WHERE channel = '{CHANNEL}'"
    run_on(target, forget)
    # no window has changed the copy
    assert begin(mariadb, "--from-backup", str(folder)) == 0
    run_on(source, "INSERT INTO tenant_1.t VALUES (1)")
    mariadb.run()
    run_on(target, forget)
    assert begin(mariadb, "--from-backup", str(folder)) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert f"found the windows of an earlier channel there ({CHANNEL})" in said
    [keep] = re.findall(r"on the target: (DELETE FROM .+?\))", said)
    assert target.query("SELECT * FROM tenant_1.t") == [(1,)]
    # as if the copy had brought them along
    run_on(target, keep, "DELETE FROM tenant_1.t")
    assert begin(mariadb, "--from-backup", str(folder)) == 0
    ends_equal(mariadb)
