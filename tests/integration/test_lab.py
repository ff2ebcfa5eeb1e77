"""The lab itself: servers that end with what started them, and traffic that is the same wherever it runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql
import pytest

from binlane.model import Flavor
from binlane.plan.manifest import Manifest
from binlane.source.end_position import UntilLogEnd
from binlane.source.segments import extract
from binlane.source.start_position import begin
from binlane.source.stream import ServerSource
from binlane.work.files import WorkFolder
from lab import replica, servers, templates
from lab.airflow import find
from lab.compare import data_of
from lab.private_files import write_private
from lab.programs import LabError, has_mysql, server_binary
from lab.servers import PrivateServer, attach, free_port, private_server, start_server
from lab.templates import data_template
from lab.traffic import run_traffic
from tests.conftest import requires_mysql
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]

STARTER = """
import sys, time
from pathlib import Path
from lab.servers import start_server
server = start_server(Path(sys.argv[1]), keep=len(sys.argv) > 2)
print(server.pid, flush=True)
if len(sys.argv) == 2:
    time.sleep(600)
"""

AIRFLOW_STARTER = """
import sys, time
from pathlib import Path
from lab.airflow import new_airflow
airflow = new_airflow(Path(sys.argv[1]), {}, kept=len(sys.argv) > 2)
airflow.launch("600", program=("sleep",))
print(next(iter(airflow.leaders)), flush=True)
time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    """Whether the process runs."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_for_its_end(pid: int) -> None:
    """A server that was told to end takes its time on a busy machine."""
    end = time.monotonic() + 20
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_alive(pid)


def started_elsewhere(*arguments: str, starter: str = STARTER) -> tuple[subprocess.Popen[str], int]:
    """Another process that starts a server, and the server's pid."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "plugins"), str(ROOT)])}
    command = [sys.executable, "-c", starter, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_a_server_ends_with_the_killed_process_that_started_it(tmp_path: Path) -> None:
    process, pid = started_elsewhere(str(tmp_path / "data"))
    assert is_alive(pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_for_its_end(pid)


def test_a_kept_server_outlives_its_starter_and_is_found_again(tmp_path: Path) -> None:
    process, pid = started_elsewhere(str(tmp_path / "data"), "keep")
    process.communicate()
    found = attach(tmp_path / "data")
    assert found is not None
    try:
        assert found.pid == pid
        assert found.query("SELECT 1") == [(1,)]
    finally:
        found.stop()
    wait_for_its_end(pid)
    assert attach(tmp_path / "data") is None


def test_an_airflow_ends_with_the_killed_process_that_started_it_unless_it_is_kept(tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("kept", "guarded")]
    arguments = [[str(homes[0]), "keep"], [str(homes[1])]]
    (kept, of_kept), (guarded, of_guarded) = (started_elsewhere(*each, starter=AIRFLOW_STARTER) for each in arguments)
    try:
        assert (is_alive(of_kept), is_alive(of_guarded)) == (True, True)
        for process in (kept, guarded):
            process.send_signal(signal.SIGKILL)
            process.communicate()
        wait_until(lambda: not is_alive(of_guarded))
        assert is_alive(of_kept)
    finally:
        for home in homes:
            find(home).stop()
    assert not is_alive(of_kept)


def test_a_killed_server_comes_back_on_its_port_with_its_data(tmp_path: Path) -> None:
    with private_server(tmp_path / "data") as server:
        server.query("CREATE DATABASE kept")
        port = server.port
        server.kill()
        assert not server.is_running()
        server.restart()
        assert (server.port, server.query("SHOW DATABASES LIKE 'kept'")) == (port, [("kept",)])
    assert not server.is_running()


@pytest.mark.parametrize("flavor", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_server_whose_port_another_one_has_taken_is_started_on_another_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavor: str
) -> None:
    """The other one has the same account, and answers while this one still starts."""
    with private_server(tmp_path / "other" / "data") as other:
        ports = iter([other.port])
        monkeypatch.setattr(servers, "free_port", lambda: next(ports, None) or free_port())
        with private_server(tmp_path / "own" / "data", Flavor(flavor)) as server:
            assert server.port != other.port
            assert server.query("SELECT @@port, @@datadir") == [(server.port, f"{server.datadir}/")]


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no-such-option"):
        start_server(tmp_path / "data", options=["--no-such-option"])


def test_a_server_s_socket_is_short_wherever_its_data_and_temporary_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    template = data_template(Flavor.MARIADB, server_binary(Flavor.MARIADB))
    shutil.copytree(template, long / "data")
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with private_server(long / "data", durable=False) as server:
        assert server.query("SELECT 1") == [(1,)]
        assert server.socket.is_socket()


def test_processes_that_need_a_template_at_the_same_time_make_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = server_binary(Flavor.MARIADB)
    name = data_template(Flavor.MARIADB, program).name
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def make(program: Path, folder: Path, kept: tuple[str, ...]) -> None:
        (folder / "data").mkdir()
        time.sleep(0.1)
        (tmp_path / "made").open("a").write(".")

    monkeypatch.setitem(templates._INITIALIZERS, Flavor.MARIADB, make)
    with ThreadPoolExecutor(3) as pool:
        found = [pool.submit(data_template, Flavor.MARIADB, program) for _ in range(3)]
    assert {each.result().name for each in found} == {name}
    assert (tmp_path / "made").read_text() == "."


def test_a_template_is_made_beside_no_temporary_tables_of_others(tmp_path: Path) -> None:
    """A server that starts removes those of all servers with its tmpdir."""
    for name in ("mariadbd", "mariadb-install-db"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "$0" "$@" >> {tmp_path}/said\n')
        (tmp_path / name).chmod(0o755)
    building = tmp_path / "building"
    building.mkdir()
    templates._INITIALIZERS[Flavor.MARIADB](tmp_path / "mariadbd", building, ())
    said = (tmp_path / "said").read_text().splitlines()
    assert len(said) == 2
    assert [f"--tmpdir={building}/tmp " in line for line in said] == [True, True]
    assert (building / "tmp").is_dir()


def test_a_server_listens_on_this_machine_only_and_reads_no_option_file(mariadb_source: PrivateServer) -> None:
    command = Path(f"/proc/{mariadb_source.pid}/cmdline").read_bytes().split(b"\0")
    assert b"--no-defaults" in command
    assert mariadb_source.query("SELECT @@bind_address, @@skip_name_resolve") == [("127.0.0.1", 1)]


def test_mysql_is_named_by_an_environment_variable_or_found_where_the_script_unpacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BINLANE_MYSQLD", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("lab.programs._of_the_system", lambda flavor: None)
    with pytest.raises(LabError, match=r"run lab/server_programs\.sh mysql, or let BINLANE_MYSQLD name one"):
        start_server(tmp_path / "data", Flavor.MYSQL)
    assert not has_mysql()
    unpacked = tmp_path / ".cache/binlane/mysql/bin/mysqld"
    unpacked.parent.mkdir(parents=True)
    unpacked.touch()
    assert has_mysql()
    assert server_binary(Flavor.MYSQL) == unpacked
    monkeypatch.setenv("BINLANE_MYSQLD", str(tmp_path / "nothing"))
    with pytest.raises(LabError, match="does not exist"):
        start_server(tmp_path / "data", Flavor.MYSQL)


def test_the_server_s_own_replica_is_measured_on_what_was_logged_since_it_followed(tmp_path: Path) -> None:
    query = "SELECT id FROM shop.t ORDER BY id"
    with (
        private_server(tmp_path / "source", durable=False) as source,
        private_server(tmp_path / "replica", durable=False, options=replica.OPTIONS) as follower,
    ):
        for statement in ("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)"):
            source.query(statement)
        replica.follow(follower, source)
        source.query("INSERT INTO shop.t VALUES (1), (2)")
        assert follower.query(query) == []
        assert replica.catch_up(follower, source) > 0
        assert follower.query(query) == [(1,), (2,)]
        follower.query("DELETE FROM shop.t WHERE id = 2")
        source.query("DELETE FROM shop.t WHERE id = 2")
        with pytest.raises(LabError, match=r"the server's own replica stopped: .*HA_ERR_KEY_NOT_FOUND"):
            replica.catch_up(follower, source)


def traffic_and_window(server: PrivateServer, folder: Path, transactions: int) -> tuple[int, int, Manifest]:
    """Transactions, row changes and the log of one run of traffic, without what makes its databases."""
    arguments = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    source = ServerSource("source", arguments, 4_000_000_002, "lab")
    run_traffic(server.connect, tenants=6, transactions=60, seed=3, threads=2)
    start = begin(source, "now")
    done = run_traffic(server.connect, tenants=6, transactions=transactions, seed=3, threads=2)
    manifest = extract(source, start, UntilLogEnd(), WorkFolder(str(folder)), channel="lab", window="w")
    assert done.transactions == transactions == sum(done.kinds.values())
    return done.transactions, done.rows, manifest


def test_traffic_writes_what_it_says_and_the_same_everywhere(tmp_path: Path) -> None:
    checksums = []
    for name in ("one", "other"):
        with private_server(tmp_path / name, durable=False) as server:
            transactions, rows, manifest = traffic_and_window(server, tmp_path / f"{name}_log", 1_500)
            databases = [
                database
                for (database,) in server.query("SHOW DATABASES")
                if database.startswith("tenant") or database == "reference"
            ]
            assert len(databases) == 7
            checksums.append({database: data_of(server, database) for database in databases})
            # CREATE DATABASE IF NOT EXISTS and the like are logged, too, where they change nothing
            extra = manifest.transactions - transactions
            assert 0 <= extra < 60
            assert rows > 2 * transactions
    assert checksums[0] == checksums[1]


@pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])
def test_no_other_account_of_the_machine_gets_into_a_private_server(
    flavor: Flavor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every account reaches 127.0.0.1; the server writes files as this one."""
    place = tmp_path / "data"
    with private_server(place, flavor, durable=False) as server:
        for user, password in (("root", ""), (server.user, ""), (server.user, "binlane-lab"), ("", "")):
            with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
                server.connect(user=user, password=password)
        word = server.password.encode()
        told = {path for path in tmp_path.rglob("*") if path.is_file() and word in path.read_bytes()}
        assert {path.name for path in told} == {"binlane-password"}
        assert {path.stat().st_mode & 0o077 for path in told} == {0}
        server.stop()
    # the machine has removed its temporary files since
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    templates.private_password.cache_clear()
    with private_server(place, flavor, durable=False) as server:
        assert server.query("SELECT 1") == [(1,)]
    templates.private_password.cache_clear()


def test_a_file_with_a_password_is_its_account_s_alone_whatever_was_there(tmp_path: Path) -> None:
    file, before = tmp_path / "passwords.json", os.umask(0)
    try:
        for text in ("longer", "word"):
            write_private(file, text)
            assert (file.read_text(), file.stat().st_mode & 0o777) == (text, 0o600)
            file.chmod(0o644)
    finally:
        os.umask(before)
