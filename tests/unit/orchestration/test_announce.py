"""A watermark is announced by a program of the channel's, without a shell and without passwords."""

import contextlib
import http.server
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from binlane.config import load_channel
from binlane.errors import ConfigError
from binlane.orchestration.announcing import announce, asset_event
from binlane.orchestration.announcing.redaction import redacted

DONE = {"window": "w1", "seqno": 1_234, "gtid": "0-1-1234", "time": 1.5, "note": "done", "rows": 7}
WRITES = (
    "import sys, os, json; "
    "json.dump([sys.argv[1:], json.loads(sys.stdin.read()[:-1]), sorted(os.environ)], open({!r}, 'w'))"
)


def shown_of(error: BaseException | None) -> str:
    """What a traceback shows of an error and of those behind it."""
    if error is None:
        return ""
    return str(error) + shown_of(error.__cause__ or (None if error.__suppress_context__ else error.__context__))


def told(tmp_path: Path, *command: str) -> None:
    channels = tmp_path / "dags" / "channels"
    channels.mkdir(parents=True, exist_ok=True)
    text = f'[source]\nconnection = "s"\n[target]\nconnection = "t"\n[announce]\ncommand = {json.dumps(command)}\n'
    (channels / "shop.toml").write_text(text)
    announce.announce(load_channel(channels / "shop.toml"), DONE)


def test_the_program_gets_the_watermark_and_its_arguments_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = ("AIRFLOW_CONN_SOURCE", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__CORE__FERNET_KEY")
    for name in secret:
        monkeypatch.setenv(name, "mysql://u:secret@h/")
    place = tmp_path / "told.json"
    told(tmp_path, sys.executable, "-c", WRITES.format(str(place)), "$(touch x); `y` | z")
    arguments, watermark, variables = json.loads(place.read_text())
    assert arguments == ["$(touch x); `y` | z"]
    assert watermark == {"channel": "shop", "seqno": 1_234, "gtid": "0-1-1234", "time": 1.5, "window": "w1"}
    assert "PATH" in variables
    assert not set(secret) & set(variables)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("/no/such/program",), "No such file"),
        (
            (sys.executable, "-c", "import sys; sys.exit('line 1\\nno topic')"),
            "exit code 1: no topic",
        ),
        ((sys.executable, "-c", "import time; time.sleep(60)"), "timed out"),
    ],
)
def test_a_program_that_fails_is_an_error_that_says_that_the_watermark_has_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], said: str
) -> None:
    monkeypatch.setattr(announce, "SECONDS", 2)
    with pytest.raises(ConfigError, match=r"shop.toml: announce.command: .*the watermark is at seqno 1,234") as error:
        told(tmp_path, *command)
    assert said in str(error.value)


def test_the_arguments_of_a_program_that_runs_too_long_are_in_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announce, "SECONDS", 1)
    with pytest.raises(ConfigError, match=r"python.*: timed out after 1 seconds") as error:
        told(tmp_path, sys.executable, "-c", "import time; time.sleep(60)", "--token", "Secret-wxyz")
    assert "wxyz" not in shown_of(error.value)


@pytest.mark.parametrize(
    "said",
    [
        "cannot reach https://anna:Secret@-wxyz@host/x",
        "cannot reach https://anna:Secret/-wxyz@host/x",
        "401 for Authorization: Bearer Secret-wxyz",
        '{"token": "Secret-wxyz", "topic": "shop"}',
        "GET /hook?access_key=Secret-wxyz&topic=shop",
        "no such account: o'x\nSecret-wxyz",
        "bad value o%27x%0ASecret-wxyz",
    ],
)
def test_secrets_in_what_a_program_says_are_hidden(tmp_path: Path, said: str) -> None:
    code = f"import sys; sys.exit({said!r})"
    with pytest.raises(ConfigError) as error:
        told(tmp_path, sys.executable, "-c", code, "--token", "o'x\nSecret-wxyz")
    assert "exit code 1: " in str(error.value)
    assert "wxyz" not in shown_of(error.value)


@pytest.mark.parametrize("named", [(), ("true",)], ids=["nobody", "a program"])
def test_who_is_not_named_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: tuple[str, ...]) -> None:
    """No process is begun and no Airflow is asked for a channel without them; for one with a program, the program."""
    begun, sent = list[object](), list[object]()
    run = subprocess.run

    def counted(command: tuple[str, ...], **options: Any) -> object:
        begun.append(command)
        return run(command, **options)

    monkeypatch.setattr("binlane.orchestration.announcing.announce.subprocess.run", counted)
    monkeypatch.setattr(asset_event, "send_event", lambda *told: sent.append(told))
    monkeypatch.setattr(asset_event, "site_of", str)
    told(tmp_path, *named)
    assert (begun, sent) == ([named] if named else [], [])


def test_the_end_of_a_window_is_announced_behind_a_stop_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "told.json"
    told(tmp_path, sys.executable, "-c", WRITES.format(str(place)))
    channel = load_channel(tmp_path / "dags" / "channels" / "shop.toml")
    monkeypatch.setattr("binlane.servers.engines.engine_of", MagicMock())
    endpoints = MagicMock()
    for last, expected in ((1_234, []), (1_300, [1_300]), (1_300, [])):
        place.unlink(missing_ok=True)
        window = Mock(window_id="w1", last_seqno=last, end_gtid_set="0-1-9", end_time=2.5, finished_at="now")
        monkeypatch.setattr("binlane.state.records.history.read_history", Mock(return_value=[window]))
        announce.announce_missed(channel, endpoints)
        sent = [json.loads(place.read_text())[1]["seqno"]] if place.exists() else []
        assert sent == expected


class Site:
    """An Airflow as its REST API is: what it was asked, and how it answers."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.asked: list[tuple[str, str, str, Any]] = []
        self.left = list(answers)

    @contextlib.contextmanager
    def served(self) -> Iterator[int]:
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                token = self.headers["Authorization"] or ""
                site.asked.append((self.command, self.path, token, json.loads(body) if body else None))
                status, said = site.left.pop(0)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", said)
                self.end_headers()
                self.wfile.write(said.encode() if isinstance(said, str) else json.dumps(said).encode())

            def do_GET(self) -> None:
                self.answer()

            def do_POST(self) -> None:
                self.answer()

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield server.server_port
            server.shutdown()


LOGIN = (201, {"access_token": "t0ken"})
ASSETS = (200, {"assets": [{"id": 4, "name": "binlane_shop_2"}, {"id": 7, "name": "binlane_shop"}]})


def told_airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connection: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SITE", connection)
    text = '[source]\nconnection = "s"\n[target]\nconnection = "t"\n[announce]\nairflow = "site"\n'
    (tmp_path / "shop.toml").write_text(text)
    announce.announce(load_channel(tmp_path / "shop.toml"), DONE)


def test_an_airflow_gets_the_event_of_exactly_this_asset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(LOGIN, ASSETS, (200, {}))
    with site.served() as port:
        told_airflow(tmp_path, monkeypatch, f"http://anna:p%2Fw@127.0.0.1:{port}/inner/")
    login, assets, event = site.asked
    assert login == ("POST", "/inner/auth/token", "", {"username": "anna", "password": "p/w"})
    assert assets[:3] == ("GET", "/inner/api/v2/assets?limit=1000&name_pattern=binlane_shop", "Bearer t0ken")
    extra = {"seqno": 1_234, "gtid": "0-1-1234", "time": 1.5, "window": "w1"}
    assert event == ("POST", "/inner/api/v2/assets/events", "Bearer t0ken", {"asset_id": 7, "extra": extra})


def test_a_token_needs_no_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(ASSETS, (200, {}))
    with site.served() as port:
        fields = {"conn_type": "http", "host": "127.0.0.1", "port": port, "extra": {"token": "own"}}
        told_airflow(tmp_path, monkeypatch, json.dumps(fields))
    assert [asked[2] for asked in site.asked] == ["Bearer own", "Bearer own"]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([(401, "no")], "POST /auth/token: Airflow answers 401: no"),
        ([LOGIN, (200, {"assets": 4})], "GET /api/v2/assets: expected an answer of Airflow, got another one"),
        ([LOGIN, (200, {"assets": [4]})], "GET /api/v2/assets: expected an answer of Airflow, got another one"),
        ([LOGIN, (200, {"assets": [{"name": "binlane_shop"}]})], "GET /api/v2/assets: expected an answer of Airflow"),
        ([(200, "[" * 100_000)], "POST /auth/token: expected an answer of Airflow"),
        ([LOGIN, (200, {"assets": [{"id": 4, "name": "binlane_shop_2"}]})], "expected the asset binlane_shop, found"),
        ([LOGIN, ASSETS, (403, "Forbidden")], "POST /api/v2/assets/events: Airflow answers 403: Forbidden"),
        ([(302, "http://127.0.0.1:1/elsewhere")], "POST /auth/token: Airflow answers 302"),
        ([(200, "<html>")], "POST /auth/token: expected an answer of Airflow"),
        ([(200, {})], "POST /auth/token: expected an answer of Airflow"),
        ([(422, {"detail": [{"input": {"username": "anna", "password": "Secret-wxyz"}}]})], "POST /auth/token: A"),
        ([(422, f"{490 * 'x'} Secret-wxyz")], "POST /auth/token: Airflow answers 422: xxx"),
        ([LOGIN, (403, "Bearer Secret-wxyzt0ken is not valid")], "GET /api/v2/assets: Airflow answers 403: Bearer"),
    ],
)  # fmt: skip
def test_an_airflow_that_refuses_is_an_error_without_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[tuple[int, Any]], said: str
) -> None:
    with Site(*answers).served() as port:
        connection = f"http://anna:Secret-wxyz@127.0.0.1:{port}"
        with pytest.raises(ConfigError) as error:
            told_airflow(tmp_path, monkeypatch, connection)
    assert f"announce.airflow: http://127.0.0.1:{port}: {said}" in str(error.value)
    assert "the watermark is at seqno 1,234" in str(error.value)
    assert "wxyz" not in shown_of(error.value)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 Broken\r\nContent-Length: 100\r\n\r\nhalf of an answer",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"HTTP/1.1 500 Broken\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"HTTP/1.1 ",
        b"",
    ],
)
def test_an_airflow_that_breaks_off_is_an_error(answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with broken_off(answer) as port, pytest.raises(ConfigError, match=r"announce\.airflow: .*the watermark is at"):
        told_airflow(tmp_path, monkeypatch, f"http://anna:Secret@127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("scheme", "head"),
    [
        ("http", b"HTTP/1.1 500 Broken\r\nContent-Length: 9999\r\n\r\n"),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"),
        ("http", b"HTTP/1.1 200 OK\r\nA: "),
        # a record of a handshake of 16 KiB
        ("https", b"\x16\x03\x03\x40\x00"),
    ],
)
def test_an_airflow_that_drips_is_an_error_in_time(
    scheme: str, head: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte of it comes in time."""
    monkeypatch.setattr(asset_event, "SECONDS", 0.5)
    begun = time.monotonic()
    with broken_off(head, drips=True) as port, pytest.raises(ConfigError, match=r"POST /auth/token: .*(500|in 0 sec)"):
        told_airflow(tmp_path, monkeypatch, f"{scheme}://anna:Secret@127.0.0.1:{port}")
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("body", [b"token" * (1 << 18), b"://" + b":" * (1 << 20), b"a.token-" * (1 << 17)])
def test_an_airflow_that_answers_a_megabyte_is_an_error_in_time(
    body: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says is looked through for secrets."""
    answer, begun = b"HTTP/1.1 401 No\r\nContent-Length: %d\r\n\r\n" % len(body) + body, time.process_time()
    with broken_off(answer) as port, pytest.raises(ConfigError, match=r"POST /auth/token: Airflow answers 401: "):
        told_airflow(tmp_path, monkeypatch, f"http://anna:Secret@127.0.0.1:{port}")
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("token" * 200_000, "token" * 200_000),
        ("token" + " " * 200_000, "token" + " " * 200_000),
        ("my-token.x: a b", "my-token.x: *** b"),
        ("X-Auth-Token: bearer  abc, Authorization=basic x&y", "X-Auth-Token: bearer  ***, Authorization=basic ***&y"),
        ('{"api_key": "k", "apikeys": 1}', '{"api_key": "***", "apikeys": ***}'),
    ],
    ids=["a long word", "blanks", "a part of a word", "headers", "JSON"],
)
def test_a_secret_is_hidden_behind_its_name_in_a_time_that_grows_with_the_text(text: str, shown: str) -> None:
    begun = time.process_time()
    assert redacted(text) == shown
    assert time.process_time() - begun < 1


@contextlib.contextmanager
def broken_off(answer: bytes, *, drips: bool = False) -> Iterator[int]:
    """A server that answers with these bytes, and ends the connection, or goes on with a byte now and then."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(1 << 16)
                    connection.sendall(answer)
                    while drips:
                        time.sleep(0.05)
                        connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def test_a_password_in_the_clear_is_warned_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asset_event, "_call", lambda *_, **__: {"assets": [{"id": 1, "name": "x"}]})
    asset_event._warn_in_clear.cache_clear()
    for url in ("https://airflow.example", "http://127.0.0.1:1", "http://airflow.example", "http://airflow.example"):
        asset_event.send_event(asset_event.AirflowSite(url, "", "", "t0ken"), "x", {})
    assert [each.args for each in caplog.records] == [("http://airflow.example",)]


def test_a_token_that_is_no_header_s_value_is_in_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"conn_type": "http", "host": "127.0.0.1", "port": 1, "extra": {"token": "Secret\n-wxyz"}}
    with pytest.raises(ConfigError, match="expected an answer of Airflow, got Invalid header value") as error:
        told_airflow(tmp_path, monkeypatch, json.dumps(fields))
    assert "wxyz" not in shown_of(error.value)


@pytest.mark.parametrize(
    "connection",
    [
        '{"conn_type": "http", "host": "anna:Secret-wxyz@host", "login": "a", "password": "b"}',
        "", "ftp://anna:Secret-wxyz@host/", "http://host/", "http://anna:Secret-wxyz@host:x/", "{Secret-wxyz",
    ],
)  # fmt: skip
def test_a_connection_that_is_no_airflow_is_an_error_without_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connection: str
) -> None:
    with pytest.raises(
        ConfigError, match=r"announce.airflow: connection 'site' \(AIRFLOW_CONN_SITE\): expected"
    ) as error:
        told_airflow(tmp_path, monkeypatch, connection)
    assert "wxyz" not in shown_of(error.value)


@pytest.mark.parametrize(
    "connection",
    [
        '{"conn_type": "http", "host": "h", "port": 1e999, "password": "Secret-wxyz"}',
        f'{{"conn_type": "http", "password": "Secret-wxyz", "extra": {"[" * 100_000}',
        '{"conn_type": "http", "host": "h", "password": "Secret-wxyz", "extra": "[1]"}',
        "http://anna:Secret-wxyz@h:99999999/",
    ],
)
def test_a_connection_that_cannot_be_read_is_an_error_without_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connection: str
) -> None:
    with pytest.raises(ConfigError, match="cannot parse the value") as error:
        told_airflow(tmp_path, monkeypatch, connection)
    assert "wxyz" not in shown_of(error.value)
