"""A password leaves a connection to nowhere, in no spelling of ``canary.spellings``."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.cli import main
from binlane.config import load_channel
from binlane.config.by_name import all_keys
from binlane.config.kinds import Table
from binlane.errors import ConfigError, SparkServerError, has_secret
from binlane.orchestration.commands.copies.drill import DrillRequest, drill
from binlane.orchestration.terminal import Terminal
from binlane.source.archive import ArchiveSource
from binlane.spark_engine import plan_on_server
from binlane.work.files import WorkFolder
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.security.canary import USER, address, files, leaks, make_account, spellings
from tests.spark.open_to_all import descendants
from tests.waiting import wait_until

SECRET: Final = "c4naryOfAFolder"
COMMANDS: Final = (("status",), ("doctor",), ("check",), ("verify",), ("grants",), ("show", "1"), ("run",))
"""Of a channel whose last window was refused. A command more is an attack more."""
DENIED: Final = (("doctor",), ("status",), ("run",))
"""The same where the accounts have another password by now."""

FOLDERS: Final = (
    f"ftp://user:{SECRET}@127.0.0.1:1/logs",
    f"http://user:{SECRET}@127.0.0.1:1/logs",
    f"s3://AKIAIOSFODNN7:{SECRET}@bucket/logs",
    f"simplecache::sftp://user:{SECRET}@127.0.0.1:1/logs",
    f"http://:{SECRET}@127.0.0.1:1/logs",
    f"https://127.0.0.1:1/logs?sv=1&sig={SECRET}",
    f"https://127.0.0.1:1/logs?X-Amz-Credential={SECRET}&X-Amz-Signature={SECRET}",
    f"simplecache::https://127.0.0.1:1/logs?access_token={SECRET}#x",
    f"https://127.0.0.1:1/logs?code={SECRET}",
    f"https://127.0.0.1:1/logs#code={SECRET}",
    f"ftp://user:p/{SECRET}@127.0.0.1:1/logs",
    f"ftp://user:p {SECRET}@127.0.0.1:1/logs",
    f"ftp://user:?{SECRET}@127.0.0.1:1/logs",
    f"https://{SECRET}@127.0.0.1:1/logs",
    f"s3://{SECRET}@bucket/logs",
    f"hdfs://user:8020,{SECRET}@127.0.0.1:1/logs",
    f"ftp://user:8020,{SECRET}/x@127.0.0.1:1/logs",
)
"""URIs of folders that name a secret: errors, notes and the state begin with a folder's URI. A line more is an attack
more."""
SPARK_URLS: Final = (
    "sc://127.0.0.1:1/;token={}",
    "sc://127.0.0.1:1/;token={}==",
    "sc://127.0.0.1:1/;token=a;{}",
    "sc://127.0.0.1:1;token={}",
    "sc://127.0.0.1:{}/",
    "sc://127.0.0.1:1/{}",
    "sc://127.0.0.1:1/?token={}",
    "sc://user:{}@127.0.0.1:1/",
    "sc:///;token={}",
    "http://127.0.0.1:1/;token={}",
    "sc://127.0.0.1:1/;X-Token={}",
    "sc://127.0.0.1:1/;x-token={}%0A",
)
"""Of a server that is not there."""
WITHOUT: Final = (
    "s3://bucket/a:b@c",
    "hdfs://user@name:8020/a@b",
    "hdfs://nn1:8020,nn2:8020/user@realm/x",
    "hdfs://nn1,nn2:8020/user@realm/x",
    "hdfs://[::1]:9000/a@b",
    "hdfs://[fe80::1]/a@b",
    "wasbs://container@account.blob.core.windows.net/x",
    "s3://bucket/#recycle/x",
    "abfs://container@account.dfs.core.windows.net/x",
    "sftp://user@host/x",
    "/a:b@c",
    "/logs?token=x",
    "s3://bucket/logs?versionId=7",
)


def test_each_spelling_is_found() -> None:
    texts = {how: b"x" + spelled + b"y" for how, spelled in spellings().items()}
    assert {name for name, _ in leaks(texts)} == set(spellings())


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=[requires_mysql, pytest.mark.trial])])
def test_no_command_tells_a_password(family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]) -> None:
    channel = channel_of(family, family)
    for name, server in (("SOURCE", channel.source), ("TARGET", channel.target)):
        make_account(server)
        channel.environment[f"AIRFLOW_CONN_{name}_SERVER"] = address(server)
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, v VARCHAR(99))")
    texts = dict(_followed(channel))
    for command, *arguments in COMMANDS:
        channel.cli(command, CHANNEL, *arguments)
    for server in (channel.source, channel.target):
        run_on(server, f"ALTER USER {USER}@'%' IDENTIFIED BY 'another'", log=False)
    for (command,) in DENIED:
        assert channel.cli(command, CHANNEL) != 0
    said = capsys.readouterr()
    assert USER in said.out + said.err
    texts |= {"said": said.out.encode(), "errors": said.err.encode(), "state": _state(channel.target)}
    texts |= dict(files(channel.project))

    assert leaks(texts) == []


@pytest.mark.parametrize("uri", FOLDERS)
def test_no_error_tells_the_secret_of_a_folder_s_uri(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "orders.toml"
    for table in (f'[source]\narchive = "{uri}"', f'[source]\nconnection = "s"\n[work]\nuri = "{uri}"'):
        file.write_text(f'{table}\n[target]\nconnection = "t"\n')
        with pytest.raises(ConfigError, match="without a password") as refused:
            load_channel(file, {})
        assert SECRET not in str(refused.value)
    for open_it in (lambda: ArchiveSource(uri).state(), lambda: WorkFolder(uri).is_local):
        with pytest.raises(ConfigError, match="without a password") as refused:
            open_it()
        assert SECRET not in str(refused.value)
    monkeypatch.setattr(sys, "argv", ["binlane", "archive", "check", uri])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr()
    assert "without a password" in said.err
    assert SECRET not in said.out + said.err


PLACES: Final = (
    '[drill]\nbase = "{}"',
    '[drill]\nlog = "{}"',
    '[restore]\nbases = ["/dumps", "{}"]',
    '[restore]\nlogs = ["source", "{}"]',
    '[restore]\ntargets = ["target", "{}"]',
)


@pytest.mark.parametrize("table", PLACES)
@pytest.mark.parametrize("uri", [*FOLDERS, f"mysql://root:{SECRET}@db/"])
def test_no_page_shows_the_secret_of_a_place(table: str, uri: str, tmp_path: Path) -> None:
    """Forms and descriptions of DAGs have these, for whoever may read them."""
    file = tmp_path / "orders.toml"
    file.write_text(f'[source]\nconnection = "s"\n[target]\nconnection = "t"\n{table.format(uri)}\n')
    with pytest.raises(ConfigError, match=r"expected a (list of|folder)") as refused:
        load_channel(file, {})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("url", SPARK_URLS)
def test_no_error_tells_the_token_of_a_spark_server_s_url(url: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, SparkServerError)) as failed:
        plan_on_server(url.format(SECRET), WorkFolder(str(tmp_path)), CHANNEL)
    said = "".join(traceback.format_exception(failed.value))
    assert SECRET not in said
    assert "Spark Connect" in str(failed.value)


def test_an_owner_s_link_has_no_account(tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    text = 'owner_link = "{}"\n[source]\nconnection = "s"\n[target]\nconnection = "t"\n'
    file.write_text(text.format(f"https://user:{SECRET}@host/x"))
    with pytest.raises(ConfigError, match="without an account") as refused:
        load_channel(file, {})
    assert SECRET not in str(refused.value)
    file.write_text(text.format("https://chat.example/@team?thread=7"))
    assert load_channel(file, {}).owner_link == "https://chat.example/@team?thread=7"


def test_each_key_that_names_a_place_is_asked_for_its_secret() -> None:
    words = re.compile(r"\b(?:folder|uri|connection)s?\b", re.IGNORECASE)
    asking = [name for name, each in all_keys().items() if not isinstance(each.kind, Table) and words.search(each.help)]
    taking = [name for name in asking if _takes(name, f"ftp://user:{SECRET}@host/x")]
    assert taking == []
    assert {"restore.logs", "drill.log", "source.archive", "work.uri"} <= {*asking}


def _takes(key: str, value: str) -> bool:
    accepts = all_keys()[key].kind.accepts
    return bool(accepts(value) or accepts([value]))


@pytest.mark.parametrize("uri", FOLDERS)
@pytest.mark.parametrize("option", ["base", "log"])
def test_a_drill_stores_no_secret_of_a_place(
    option: str, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "channels").mkdir()
    (tmp_path / "channels" / "orders.toml").write_text('[source]\nconnection = "s"\n[target]\nconnection = "t"\n')
    for name in ("S", "T"):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", "mysql://user@127.0.0.1:1/")
    given: dict[str, Any] = {"base": "/dumps/a.sql", "log": "/logs/"}
    request = DrillRequest(**given | {option: uri})
    with pytest.raises(ConfigError, match="without a password") as refused:
        drill("orders", request, tmp_path / "channels", Terminal(stderr=True), as_json=False)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "table",
    [
        '[source]\nconnection = "{}"\n[target]\nconnection = "t"',
        '[source]\nconnection = "s"\n[target]\nconnection = "{}"',
        '[source]\nconnection = "s"\n[target]\nconnection = "t"\n[announce]\nairflow = "{}"',
    ],
    ids=("source", "target", "announce"),
)
def test_a_url_in_place_of_a_connection_s_id_is_refused_without_its_account(table: str, tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(table.format(f"mysql://user:{SECRET}@host/") + "\n")
    with pytest.raises(ConfigError, match="the id of a connection, not its URL") as refused:
        load_channel(file, {})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("uri", WITHOUT)
def test_a_folder_s_uri_without_a_secret_is_taken(uri: str) -> None:
    assert not has_secret(uri)


def _followed(channel: Channel) -> dict[str, bytes]:
    """What ``binlane follow`` says, and its processes' arguments, over a window and one that is refused."""
    seen = set[bytes]()
    running = channel.start("follow", CHANNEL, "--pause", "0.2")
    try:

        def has_row() -> bool:
            for pid in (running.pid, *descendants(running.pid)):
                with contextlib.suppress(OSError):
                    seen.add(Path(f"/proc/{pid}/cmdline").read_bytes())
            return _rows(channel.target) == [(1,)]

        run_on(channel.source, "INSERT INTO app.t VALUES (1, 'x')")
        wait_until(has_row)
        run_on(channel.source, "SET binlog_format = STATEMENT", "INSERT INTO app.t VALUES (2, UUID())")
        said, errors = running.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        raise
    assert "UUID()" in said + errors
    assert any(b"follow" in each for each in seen)
    return {"follow": said.encode(), "errors of follow": errors.encode(), "arguments": b"\n".join(seen)}


def _rows(server: PrivateServer) -> list[tuple[int, ...]]:
    found = server.query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'app'")
    return server.query("SELECT id FROM app.t") if found else []


def _state(server: PrivateServer) -> bytes:
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'binlane' ORDER BY 1"
    rows = [row for (name,) in server.query(query) for row in server.query(f"SELECT * FROM binlane.{name}")]
    return "\n".join(str(value) for row in rows for value in row).encode()
