"""What cannot go on: one clear error each, with the exit code of its kind, and nothing written."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
import zstandard

from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from lab.refusals import refusal_of
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, drop_accounts, run_on


def shop(channel: Channel, *statements: str) -> None:
    """One table with one logged row, on both servers before the window."""
    for server in (channel.source, channel.target):
        with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")
            cursor.execute("CREATE DATABASE tenant_1")
            cursor.execute("CREATE TABLE tenant_1.t (id INT PRIMARY KEY, one INT, other INT, body LONGBLOB)")
            for statement in statements if server is channel.target else ():
                cursor.execute(statement)
    channel.source.query("INSERT INTO tenant_1.t VALUES (1, 10, 20, NULL)")


def refused(channel: Channel, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    """Run, expect the exit code and one error in one line; nothing of the window is on the target."""
    capsys.readouterr()
    assert channel.cli(*(arguments or ("run", CHANNEL))) == code
    said = capsys.readouterr().err.strip()
    assert "Traceback" not in said
    assert re.match(r"\w+Error: ", said)
    return said


def test_an_unreachable_target_is_one_error(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    channel.connect("target_server", channel.target, port=1)
    for command in (("run", CHANNEL), ("status", CHANNEL), ("init", CHANNEL)):
        said = refused(channel, capsys, *command)
        assert said.startswith("TargetUnavailableError: target_server (")
        assert "check host and port" in said


def test_a_wrong_account_of_the_target_is_one_error(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    channel.connect("target_server", channel.target, user="nobody")
    for command in (("run", CHANNEL), ("status", CHANNEL), ("plan", CHANNEL)):
        said = refused(channel, capsys, *command)
        assert said.startswith("TargetError: target_server (nobody@")
        assert "(1045); check user and password" in said


def test_an_unreachable_source_and_a_wrong_account_are_one_error_each(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.connect("source_server", channel.source, port=1)
    assert refused(channel, capsys).startswith("SourceUnavailableError: source_server (")
    channel.connect("source_server", channel.source, user="nobody")
    said = refused(channel, capsys)
    assert said.startswith("PrecheckError: source_server (nobody@")
    # no privilege helps an account whose login is refused
    assert "compare the connection's user and password with the account on the server" in said
    assert "GRANT" not in said


def test_a_channel_that_was_never_initialised_says_so(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    channel.target.query("DELETE FROM binlane.channels")
    assert f"`binlane bootstrap {CHANNEL}` or `binlane init {CHANNEL}` begins it" in refused(channel, capsys)
    channel.target.query("DROP DATABASE binlane")
    assert f"`binlane bootstrap {CHANNEL}` copies the data" in refused(channel, capsys)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "nothing"), "no channel 'nothing'; known: orders"),
        (("run", CHANNEL, "--until", "yesterday"), "until: expected"),
        (
            ("run", CHANNEL, "--engine", "flink"),
            "--engine: expected one of local, spark, or package.module:Class; got 'flink'",
        ),
        (("inspect", "no-such-file"), "no-such-file: cannot be read: No such file or directory"),
    ],
)
def test_bad_arguments_are_exit_code_2(
    arguments: tuple[str, ...], said: str, channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(channel, capsys, *arguments, code=2)


def test_a_bad_shard_list_and_a_missing_connection_are_exit_code_2(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    shop(channel)
    channel.write_shard_list("tenant_1=7\n")
    assert "shard_list/orders.list:1: 'tenant_1': expected a lane 0..2, got 7" in refused(channel, capsys, code=2)
    (channel.project / "shard_list" / f"{CHANNEL}.list").write_bytes(b"tenant_\xfc=1\n")
    assert "expected UTF-8, found byte 0xfc at offset 7" in refused(channel, capsys, code=2)
    for server in (channel.source, channel.target):
        with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")
            cursor.execute("CREATE DATABASE tenant_2")
            cursor.execute("CREATE TABLE tenant_2.t (id INT PRIMARY KEY REFERENCES tenant_1.t (id))")
    channel.write_shard_list("tenant_1=0\ntenant_2=1\n")
    assert "tenant_2" in refused(channel, capsys, code=2)
    # no window has begun with a wrong list, so the right one is all that it takes
    channel.write_shard_list("tenant_1=0\ntenant_2=0\n")
    assert channel.run() is not None
    channel.assert_equal()
    del channel.environment["AIRFLOW_CONN_TARGET_SERVER"]
    assert "AIRFLOW_CONN_TARGET_SERVER" in refused(channel, capsys, code=2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DROP TABLE tenant_1.t", r"tenant_1\.t"),
        ("ALTER TABLE tenant_1.t MODIFY COLUMN other INT AFTER id", r"tenant_1\.t.*(one|other)"),
        ("ALTER TABLE tenant_1.t MODIFY COLUMN one INT UNSIGNED", r"tenant_1\.t.*one"),
    ],
    ids=["table-missing", "columns-swapped", "unsigned"],
)
def test_a_table_that_is_another_one_on_the_target_stops_the_window_before_it_begins(
    change: str, said: str, channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    shop(channel, change)
    error = refused(channel, capsys)
    assert error.startswith("PrecheckError: ")
    assert re.search(said, error)
    assert channel.status.positions == ()
    channel.target.query("DROP DATABASE tenant_1")
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE tenant_1")
        cursor.execute("CREATE TABLE tenant_1.t (id INT PRIMARY KEY, one INT, other INT, body LONGBLOB)")
    channel.run()
    channel.assert_equal()


def test_rows_of_the_server_s_own_tables_are_named_before_anything_is_written(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.source.query("INSERT INTO mysql.time_zone_leap_second VALUES (4711, 1)")
    run_on(channel.source, "DELETE FROM mysql.time_zone_leap_second WHERE Transition_time = 4711", log=False)
    said = refused(channel, capsys)
    assert said.startswith("PrecheckError: ")
    assert "mysql.time_zone_leap_second: table: " in said
    assert refusal_of(said) is not None


def test_a_missing_privilege_is_named_before_anything_is_written(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    shop(channel)
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute("CREATE USER test_limited@'%%' IDENTIFIED BY %s", (channel.target.password,))
        for rights in ("SELECT, SHOW VIEW, TRIGGER, EVENT, EXECUTE ON *.*", "ALL ON binlane.*"):
            cursor.execute(f"GRANT {rights} TO test_limited@'%'")
    channel.connect("target_server", channel.target, user="test_limited")
    said = refused(channel, capsys)
    assert said.startswith("PrecheckError: ")
    assert "BINLOG REPLAY" in said
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.t") == [(0,)]
    drop_accounts(channel.target)


@pytest.mark.parametrize("reduce", ["off", "block"])
def test_a_rows_event_larger_than_the_target_takes_is_refused_with_the_packet_that_it_needs(
    reduce: str, channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.write_channel(blocks=f'reduce = "{reduce}"\n')
    shop(channel)
    channel.source.query("INSERT INTO tenant_1.t VALUES (2, 1, 1, REPEAT('x', 3000000))")
    ((before,),) = channel.target.query("SELECT @@GLOBAL.max_allowed_packet")
    channel.target.query("SET GLOBAL max_allowed_packet = 2097152")
    try:
        said = refused(channel, capsys)
    finally:
        channel.target.query(f"SET GLOBAL max_allowed_packet = {before}")
    assert said.startswith("UnsupportedEventError: binlog.")
    needed = int(said.split("SET GLOBAL max_allowed_packet = ")[1].split()[0])
    assert 4_000_000 < needed < 4_100_000
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.t") == [(0,)]


@pytest.mark.parametrize("reduce", ["off", "block"])
def test_a_rows_event_longer_than_a_usual_statement_is_applied_if_the_target_takes_it(
    reduce: str, channel: Channel
) -> None:
    channel.write_channel(blocks=f'reduce = "{reduce}"\n')
    shop(channel)
    channel.source.query("INSERT INTO tenant_1.t VALUES (2, 1, 1, REPEAT('x', 3000000))")
    assert channel.target.query("SELECT @@GLOBAL.max_allowed_packet >= 16777216") == [(1,)]
    channel.run()
    channel.assert_equal()


def test_inspect_json_is_one_object_a_line_and_nothing_else(
    channel: Channel, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shop(channel)
    channel.source.query("CREATE TABLE tenant_1.n (a INT)")
    file = channel.source.datadir / channel.source.query("SHOW MASTER STATUS")[0][0]
    # cut inside its last event: what is told about that is no part of the output
    (tmp_path / "binlog.000001").write_bytes(file.read_bytes()[:-7])
    capsys.readouterr()
    assert channel.cli("inspect", "--json", str(tmp_path / "binlog.000001")) == 0
    printed = capsys.readouterr()
    lines = [json.loads(line) for line in printed.out.splitlines()]
    assert [line["seqno"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["rows"] == {"tenant_1.t": 1}
    assert lines[-1]["databases"] == ["tenant_1"]
    assert "the file was cut" in printed.err or "still writing" in printed.err


@pytest.mark.parametrize("name", ["cut.gz", "cut.zst"])
def test_inspect_of_a_packed_file_that_was_cut_is_bad_input(
    name: str, channel: Channel, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = b"\xfebin" + bytes(range(256)) * 40
    packed = gzip.compress(data) if name.endswith("gz") else zstandard.compress(data)
    (tmp_path / name).write_bytes(packed[: len(packed) // 2])
    said = refused(channel, capsys, "inspect", str(tmp_path / name), code=2)
    assert f"{name}: cannot be read: " in said


def test_status_shows_an_unfinished_window_with_its_lanes(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    shop(channel)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    capsys.readouterr()
    assert channel.cli("status", CHANNEL) == 0
    said = capsys.readouterr().out
    assert window["window"] in said
    assert "none yet: run the channel again" in said
    channel.go_on(window)
    assert channel.cli("status", CHANNEL) == 0
    assert "none open" in capsys.readouterr().out


def test_a_database_that_another_channel_writes_is_refused_by_name(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(channel.source, "CREATE DATABASE both_1", "CREATE TABLE both_1.t (id INT PRIMARY KEY)")
    channel.run()
    columns = [row[0] for row in channel.target.query("SHOW COLUMNS FROM binlane.channels")]
    values = ["'crm'", "'another'", *columns[2:]]
    channel.target.query(f"INSERT INTO binlane.channels SELECT {', '.join(values)} FROM binlane.channels")
    run_on(channel.source, "INSERT INTO both_1.t VALUES (1)")
    channel.run()
    channel.target.query("UPDATE binlane.`databases` SET channel = 'crm'")
    run_on(channel.source, "INSERT INTO both_1.t VALUES (2)")
    said = refused(channel, capsys)
    assert "target: database both_1: expected orders as the only channel that writes it, found channel crm" in said
    assert channel.target.query("SELECT id FROM both_1.t") == [(1,)]
    [mend] = re.findall(r"DELETE FROM binlane.*database_name = '\w+'", said)
    channel.target.query(mend)
    channel.run()
    channel.assert_equal()


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_spent_limit_of_the_account_is_one_error_without_a_traceback(
    channel_of: ChannelOf, family: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The server refuses the ROLLBACK behind the refused statement, too."""
    channel = channel_of(family, family)
    account = f"test_limited@'%' IDENTIFIED BY '{channel.target.password}' WITH MAX_QUERIES_PER_HOUR 60"
    run_on(channel.target, f"CREATE USER {account}", "GRANT ALL PRIVILEGES ON *.* TO test_limited@'%'", log=False)
    channel.connect("target_server", channel.target, user="test_limited")
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    capfd.readouterr()
    assert channel.cli("run", CHANNEL) == 1
    said = "".join(capfd.readouterr())
    assert "'test_limited' has exceeded the 'max_que" in said
    assert "Traceback" not in said + caplog.text
    run_on(channel.target, "ALTER USER test_limited@'%' WITH MAX_QUERIES_PER_HOUR 0", log=False)
    assert channel.cli("run", CHANNEL) == 0
