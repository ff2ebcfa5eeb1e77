"""What a password is sent over, and servers that lie, are frozen, or say too much."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from sqlalchemy import text

from binlane.connections import Endpoint, parse_connection
from binlane.driver import login, wire
from binlane.driver.connection import Connection
from binlane.errors import BinlaneError, ConfigError, SourceUnavailableError
from binlane.model import Flavor, LogPosition
from binlane.servers.engines import engine_of
from binlane.source.server import translated
from binlane.source.stream import ServerSource
from lab.servers import PrivateServer
from tests.conftest import requires_mysql

PASSWORD = "pässwörd-Ж密码😀"


@pytest.fixture(params=list(Flavor))
def server(request: pytest.FixtureRequest) -> PrivateServer:
    found: PrivateServer = request.getfixturevalue(f"{request.param}_source")
    return found


@pytest.fixture
def account(server: PrivateServer) -> Iterator[Callable[[str], Endpoint]]:
    """Makes the endpoint of an account whose password has other letters than latin-1."""
    server.query("CREATE USER test_secret@'%%' IDENTIFIED BY %s", (PASSWORD,))
    server.query("GRANT REPLICATION SLAVE ON *.* TO test_secret@'%'")

    def endpoint(extra: str) -> Endpoint:
        found = parse_connection("db", f"mysql://test_secret:x@{server.host}:{server.port}/?{extra}")
        return Endpoint(found.name, found.host, found.port, found.user, PASSWORD, found.tls)

    yield endpoint
    server.query("DROP USER test_secret@'%'")


def logs_in(endpoint: Endpoint) -> bool:
    with contextlib.closing(Connection(**endpoint.pymysql_arguments())) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 7")
        found = cursor.fetchone()
    with engine_of(endpoint).connect() as pooled:
        return bool(found == pooled.execute(text("SELECT 7")).one() == (7,))


def test_a_password_of_any_letters_logs_in(account: Callable[[str], Endpoint]) -> None:
    assert logs_in(account(""))


@requires_mysql
def test_without_tls_a_password_goes_by_the_servers_key_only_if_that_is_pinned_or_asked_for(
    mysql_source: PrivateServer, tmp_path: Path
) -> None:
    mysql_source.query("CREATE USER test_key@'%%' IDENTIFIED BY %s", (PASSWORD,))
    place = f"mysql://test_key:x@{mysql_source.host}:{mysql_source.port}/?ssl_mode=disabled"

    def attempt(extra: str) -> bool:
        # the server knows nobody any more, so that a hash does not do
        mysql_source.query("FLUSH PRIVILEGES")
        found = parse_connection("db", place + extra)
        return logs_in(Endpoint("db", found.host, found.port, found.user, PASSWORD, found.tls))

    try:
        with pytest.raises(ConfigError, match=r"test_key@127.0.0.1:\d+: the connection is not encrypted, .*TLS"):
            attempt("")
        assert attempt("&get_server_public_key=true")
        assert attempt(f"&server_public_key={mysql_source.datadir / 'public_key.pem'}")
        other = tmp_path / "other.pem"
        other.write_bytes(public_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048)))
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            attempt(f"&server_public_key={other}")
        with pytest.raises(ConfigError, match=r"extra server_public_key .*gone\.pem: No such file"):
            attempt(f"&server_public_key={tmp_path / 'gone.pem'}")
    finally:
        mysql_source.query("DROP USER test_key@'%'")


@requires_mysql
@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ("ssl_mode=verify_ca&ssl_ca={datadir}/ca.pem", None),
        ("ssl_ca={datadir}/server-cert.pem", "the server's certificate does not verify"),
        ("ssl_mode=verify_identity&ssl_ca={datadir}/ca.pem", "the server's certificate does not verify: .*127"),
        ("ssl_ca={datadir}/gone.pem", r"extra ssl_ca of the connection: .*gone\.pem: No such file"),
        ("ssl_cert={datadir}/gone.pem", r"extra ssl_cert of the connection: .*gone\.pem: No such file"),
        ("ssl_ca={datadir}/auto.cnf", r"ssl_ca .*auto\.cnf: expected PEM"),
        (
            "ssl_cert={datadir}/client-cert.pem&ssl_key={datadir}/server-key.pem",
            "ssl_key .*: expected PEM, and the key",
        ),
        ("ssl_cert={datadir}/client-cert.pem&ssl_key={datadir}/client-key.pem", None),
    ],
)
def test_a_certificate_that_does_not_match_and_files_that_are_not_there_are_named_and_no_reason_to_retry(
    mysql_source: PrivateServer, extra: str, expected: str | None
) -> None:
    place = f"mysql://{mysql_source.user}:{mysql_source.password}@{mysql_source.host}:{mysql_source.port}/?"
    endpoint = parse_connection("db", place + extra.format(datadir=mysql_source.datadir))
    if expected is None:
        assert logs_in(endpoint)
        return
    for connect in (
        lambda: Connection(**endpoint.pymysql_arguments()),
        lambda: engine_of(endpoint).connect(),
        lambda: ServerSource("db", endpoint.pymysql_arguments(), 9, "c").state(),
    ):
        with pytest.raises(ConfigError, match=expected):
            connect()


def test_the_machines_own_authorities_verify_the_host_name_too() -> None:
    arguments = parse_connection("db", "mysql://u:p@db.example.com/?ssl_mode=verify_identity").pymysql_arguments()
    assert vars(Connection(**arguments, defer_connect=True))["ctx"].check_hostname


def test_a_connection_in_clear_is_warned_of_once_unless_it_stays_on_the_machine(
    mariadb_source: PrivateServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    arguments = parse_connection(
        "db",
        f"mysql://{mariadb_source.user}:{mariadb_source.password}@{mariadb_source.host}:{mariadb_source.port}/"
        "?ssl_mode=disabled",
    ).pymysql_arguments()
    Connection(**arguments).close()
    assert caplog.messages == []
    # no second machine is there to be far away
    monkeypatch.setattr(login, "_is_loopback", lambda peer: False)
    for _ in range(2):
        Connection(**arguments).close()
    assert [message.partition(":3")[0].partition(":")[0] for message in caplog.messages] == [
        f"{mariadb_source.user}@{mariadb_source.host}"
    ]
    assert "is not encrypted" in caplog.text


# A server that is none: what it is told is kept.

CAPABILITIES = 0x0000_0001 | 0x0000_0200 | 0x0000_8000 | 0x0008_0000 | 0x0020_0000
"""Long passwords, protocol 4.1, SECURE_CONNECTION, PLUGIN_AUTH and its length: no TLS."""


IMPOSTORS_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@dataclass
class Impostor:
    """Listens, greets as MySQL with ``plugin``, then says ``answers`` in turn, whatever it is told."""

    plugin: bytes
    answers: list[bytes]
    told: bytes = b""
    hangs_up: bool = False
    """Behind the last answer; else it listens."""
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def greeting(self) -> bytes:
        salt = b"12345678" + b"\0" + struct.pack("<H", CAPABILITIES & 0xFFFF) + b"\x2d\2\0"
        salt += struct.pack("<H", CAPABILITIES >> 16) + bytes([21]) + bytes(10) + b"123456789012\0"
        return b"\x0a" + b"9.9.9\0" + struct.pack("<I", 1) + salt + self.plugin + b"\0"

    def __enter__(self) -> Impostor:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                with peer:
                    self._talk(peer)

    def _talk(self, peer: socket.socket) -> None:
        number = 0
        for answer in (self.greeting, *self.answers):
            for at in range(0, len(answer) + 1, 0xFF_FFFF):
                piece = answer[at : at + 0xFF_FFFF]
                peer.sendall(struct.pack("<I", len(piece))[:3] + bytes([number % 256]) + piece)
                number += 1
            if self.hangs_up and answer is self.answers[-1]:
                return
            self.told += peer.recv(1 << 16)
            # a command begins behind the login
            number = 1 if answer == OK else number + 1


A_KEY = b"\1" + public_pem(IMPOSTORS_KEY)
SWITCH = b"\xfe%s\0" + b"a" * 20 + b"\0"


@pytest.mark.parametrize(
    ("plugin", "answers", "expected"),
    [
        (b"mysql_native_password", [SWITCH % b"mysql_clear_password"], "in clear text .mysql_clear_password."),
        (b"mysql_native_password", [b"\xfedialog\0\x04Password: "], "in clear text .dialog."),
        (b"caching_sha2_password", [b"\1\4", A_KEY], "an RSA key that it has just sent"),
        (b"sha256_password", [A_KEY], "an RSA key that it has just sent"),
        (b"mysql_native_password", [SWITCH % b"mysql_old_password"], "by mysql_old_password"),
        (b"mysql_native_password", [SWITCH % b"sha256_password", A_KEY], "an RSA key"),
        (
            b"mysql_native_password",
            [SWITCH % b"caching_sha2_password", b"\1\4", A_KEY],
            "an RSA key",
        ),
    ],
)
def test_an_impostor_gets_no_password(plugin: bytes, answers: list[bytes], expected: str, tmp_path: Path) -> None:
    with Impostor(plugin, answers) as impostor:
        endpoint = parse_connection("db", f"mysql://u:secret@127.0.0.1:{impostor.port}/")
        with pytest.raises(ConfigError, match=expected):
            Connection(**endpoint.pymysql_arguments())
    assert b"secret" not in impostor.told
    if b"BEGIN" not in answers[-1]:
        return
    # a key that is pinned stays: what is sent is of no use to the owner of another one
    key = tmp_path / "key.pem"
    key.write_bytes(public_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048)))
    with Impostor(plugin, [*answers, b"\xff\x15\x04#28000no"]) as impostor:
        arguments = endpoint.pymysql_arguments() | {"port": impostor.port, "public_key_file": str(key)}
        with pytest.raises(pymysql.err.MySQLError):
            Connection(**arguments)
    encrypted = impostor.told[-IMPOSTORS_KEY.key_size // 8 :]
    with pytest.raises(ValueError, match="Decryption failed"):
        IMPOSTORS_KEY.decrypt(encrypted, padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None))
    assert impostor.told.endswith(b"\0\1\0" + impostor.told[-257:]), "a packet of 256 bytes"


UNREADABLE = (
    b"",
    b"\xfe",
    b"\xfe\xff\0",
    b"\1",
    b"\1\4\4",
    b"\xfb/etc/passwd",
    b"\xff",
    b"\xff\1",
    b"\0\xfe",
    b"\3abc",
    b"\xfc",
)
"""Answers to a login, or to a query, that no server gives. A line more is an attack more."""
PLUGINS = (b"mysql_native_password", b"caching_sha2_password", b"sha256_password", b"client_ed25519", b"x", b"\xff")
OK = b"\0\0\0\2\0\0\0"


@pytest.mark.parametrize("plugin", [*PLUGINS, b"mysql_old_password"])
def test_an_answer_that_cannot_be_read_is_an_error_of_the_driver_or_binlanes(plugin: bytes) -> None:
    for answer in (*UNREADABLE, SWITCH % b"mysql_old_password", SWITCH % b"", b"\xfemysql_old_password"):
        with Impostor(plugin, [answer], hangs_up=True) as impostor:
            endpoint = parse_connection("db", f"mysql://u:secret@127.0.0.1:{impostor.port}/?ssl_mode=disabled")
            with pytest.raises((pymysql.err.MySQLError, ConfigError)):
                Connection(**endpoint.pymysql_arguments())
        assert b"secret" not in impostor.told


@pytest.mark.parametrize("answer", UNREADABLE)
def test_an_answer_to_a_query_that_cannot_be_read_is_one_too_and_sends_no_file(answer: bytes) -> None:
    # the login, and two statements of PyMySQL's own
    with Impostor(b"mysql_native_password", [OK, OK, OK, answer], hangs_up=True) as impostor:
        endpoint = parse_connection("db", f"mysql://u:secret@127.0.0.1:{impostor.port}/?ssl_mode=disabled")
        with pytest.raises((pymysql.err.MySQLError, ConfigError)):
            Connection(**endpoint.pymysql_arguments()).query("SELECT 1")
    assert b"root:" not in impostor.told


def test_a_server_that_asks_for_a_file_is_named() -> None:
    """Whichever of the statements behind the login it answers so."""
    said = []
    for number in range(1, 5):
        with Impostor(b"mysql_native_password", [*(OK,) * number, b"\xfb/etc/passwd"], hangs_up=True) as impostor:
            endpoint = parse_connection("db", f"mysql://u:secret@127.0.0.1:{impostor.port}/?ssl_mode=disabled")
            with pytest.raises((ConfigError, pymysql.err.MySQLError)) as refused:
                Connection(**endpoint.pymysql_arguments()).query("SELECT 1")
        said.append(str(refused.value))
        assert b"root:" not in impostor.told
    assert [each for each in said if "asks for a file of this machine" in each and "Nothing was sent" in each]


def test_an_answer_of_more_bytes_than_any_server_sends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LARGEST_ANSWER", 40 << 20)
    endless = b"\1" + bytes(90 << 20)
    with Impostor(b"mysql_native_password", [endless]) as impostor:
        endpoint = parse_connection("db", f"mysql://u:secret@127.0.0.1:{impostor.port}/")
        with pytest.raises(pymysql.err.OperationalError, match="more than 41,943,040 bytes"):
            Connection(**endpoint.pymysql_arguments())


@pytest.mark.parametrize("behind", [0, 1, 2], ids=["greeting", "login", "statement"])
def test_an_error_of_a_megabyte_is_a_short_one(behind: int) -> None:
    """It comes into logs, notes and Airflow's database: its scheduler reads the note."""
    said = b"\xff\x15\x04#28000" + b"a" * (1 << 20)
    with Impostor(b"mysql_native_password", [*(OK,) * behind, said], hangs_up=True) as impostor:
        endpoint = parse_connection("db", f"mysql://u:secret@127.0.0.1:{impostor.port}/?ssl_mode=disabled")
        with pytest.raises(BinlaneError, match=r"aaa.*\(1045\)") as refused, translated("db"):
            Connection(**endpoint.pymysql_arguments()).query("SELECT 1")
    assert len(str(refused.value)) <= 3_000


def text_row(value: bytes) -> bytes:
    return bytes([len(value)]) + value


COLUMN = text_row(b"def") + text_row(b"") * 3 + text_row(b"a") + text_row(b"") + b"\x0c\x2d\0\0\1\0\0\xfd\0\0\0\0\0"

END = b"\xfe\0\0\2\0"


def packets(first: int, *contents: bytes) -> bytes:
    heads = (struct.pack("<I", len(content))[:3] + bytes([at % 256]) for at, content in enumerate(contents, first))
    return b"".join(head + content for head, content in zip(heads, contents, strict=True))


@dataclass
class Endless(Impostor):
    """Never ends: its greeting, or, if it has ``answers``, the result of the first query behind the login."""

    row: bytes = b"\0"
    rows: int = 1
    """At once; then it waits."""
    pause: float = 0.1
    columns: int = 1
    """Above 250: it says that they are 2^32, sends so many, and hangs up."""

    def _talk(self, peer: socket.socket) -> None:
        if not self.answers:
            peer.sendall(b"\xff\xff\x0f\0")
        number = 0
        for answer in (self.greeting, *self.answers) if self.answers else ():
            peer.sendall(packets(number, answer))
            self.told += peer.recv(1 << 16)
            number = 1 if answer == OK else number + 2
        if self.answers:
            peer.sendall(packets(1, b"\2", COLUMN, COLUMN, END, b"\0\0", END))
            self.told += peer.recv(1 << 16)
            count = bytes([self.columns]) if self.columns <= 250 else b"\xfe" + struct.pack("<Q", 1 << 32)
            peer.sendall(packets(1, count, *(COLUMN,) * self.columns))
            if self.columns > 250:
                peer.shutdown(socket.SHUT_WR)
                return
            peer.sendall(packets(2 + self.columns, END))
        number = 3 + self.columns
        while True:
            peer.sendall(packets(number, *[self.row] * self.rows) if self.answers else b"x")
            number += self.rows
            time.sleep(self.pause)


@pytest.mark.parametrize("limits", [{}, {"read_timeout": 1}], ids=["forever", "for-a-look"])
def test_a_login_of_a_byte_now_and_then_ends(limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "GREETING_SECONDS", 1)
    with Endless(b"mysql_native_password", []) as impostor:
        endpoint = parse_connection("db", f"mysql://u:secret@127.0.0.1:{impostor.port}/?ssl_mode=disabled")
        with pytest.raises(pymysql.err.OperationalError, match="has not answered the whole login within 2 s"):
            Connection(**endpoint.pymysql_arguments(), **limits)


def test_an_answer_of_a_row_now_and_then_ends_for_who_only_looks() -> None:
    with Endless(b"mysql_native_password", [OK, OK]) as impostor:
        endpoint = parse_connection("db", f"mysql://u:secret@127.0.0.1:{impostor.port}/?ssl_mode=disabled")
        connection = Connection(**endpoint.pymysql_arguments(), read_timeout=1)
        with pytest.raises(pymysql.err.OperationalError, match="not the whole answer in time") as told:
            connection.query("SELECT 1")
        assert told.value.args[0] == 2013


@pytest.mark.parametrize(("limits", "name"), [({}, "LARGEST_RESULT"), ({"read_timeout": 60}, "LARGEST_LOOK")])
def test_a_result_without_an_end_is_not_kept(
    limits: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, name, 1 << 20)
    with Endless(b"mysql_native_password", [OK, OK], row=text_row(b"x" * 200), rows=256, pause=0) as impostor:
        endpoint = parse_connection("db", f"mysql://u:secret@127.0.0.1:{impostor.port}/?ssl_mode=disabled")
        connection = Connection(**endpoint.pymysql_arguments(), **limits)
        with pytest.raises(pymysql.err.OperationalError, match="one statement has more than 1,048,576 bytes"):
            connection.query("SELECT 1")


@pytest.mark.parametrize(
    ("row", "columns"), [(b"\0", 1), (b"\2ab" * 200, 200)], ids=["rows-of-nothing", "rows-of-short-values"]
)
def test_a_result_is_kept_up_to_a_size_in_memory(row: bytes, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of some bytes takes some dozens there, and so does a row of nothing."""
    limit = 8 << 20
    monkeypatch.setattr(wire, "LARGEST_RESULT", limit)
    with Endless(b"mysql_native_password", [OK, OK], row=row, rows=256, pause=0, columns=columns) as impostor:
        endpoint = parse_connection("db", f"mysql://u:secret@127.0.0.1:{impostor.port}/?ssl_mode=disabled")
        connection = Connection(**endpoint.pymysql_arguments())
        tracemalloc.start()
        try:
            with pytest.raises(
                pymysql.err.OperationalError, match="one statement has more than 8,388,608 bytes in memory"
            ):
                connection.query("SELECT 1")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 1.5 * limit


@pytest.mark.parametrize("unbuffered", [False, True])
def test_a_result_of_more_columns_than_servers_have_is_not_read(unbuffered: bool) -> None:
    with Endless(b"mysql_native_password", [OK, OK], columns=5_000) as impostor:
        endpoint = parse_connection("db", f"mysql://u:secret@127.0.0.1:{impostor.port}/?ssl_mode=disabled")
        connection = Connection(**endpoint.pymysql_arguments())
        with pytest.raises(pymysql.err.OperationalError, match="more than 4,096 columns"):
            connection.query("SELECT 1", unbuffered=unbuffered)


# Frozen: the kernel still acknowledges everything, the server says nothing.


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GREETING_SECONDS", "SILENT_SECONDS"):
        monkeypatch.setattr(wire, name, 1)


@contextlib.contextmanager
def frozen(server: PrivateServer) -> Iterator[None]:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        # until its last thread has stopped it may answer
        while not all(_is_stopped(task) for task in Path(f"/proc/{server.pid}/task").iterdir()):
            time.sleep(0.01)
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def _is_stopped(task: Path) -> bool:
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except OSError:  # a thread that has ended
        return True


def arguments_of(server: PrivateServer, tls: str = "preferred") -> dict[str, Any]:
    place = f"mysql://{server.user}:{server.password}@{server.host}:{server.port}/"
    return parse_connection("db", f"{place}?ssl_mode={tls}&get_server_public_key=true").pymysql_arguments()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("tls", ["disabled", "preferred"])
def test_a_statement_takes_as_long_as_it_takes_and_a_frozen_server_is_given_up(server: PrivateServer, tls: str) -> None:
    with contextlib.closing(Connection(**arguments_of(server, tls))) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT SLEEP(3)")
        assert cursor.fetchone() == (0,)
        with frozen(server):
            with pytest.raises(
                pymysql.err.OperationalError, match="no answer for 1 s, and 2 new logins failed"
            ) as told:
                cursor.execute("SELECT 1")
            assert told.value.args[0] == 2013
            with pytest.raises(pymysql.err.OperationalError, match=r"sends nothing for 1 s|handshake .*timed out"):
                Connection(**arguments_of(server, tls))
    assert server.query("SELECT 1") == [(1,)]


@pytest.mark.usefixtures("impatient")
def test_a_server_that_lets_nobody_in_and_says_so_is_alive(server: PrivateServer) -> None:
    arguments = arguments_of(server, "disabled")
    with contextlib.closing(Connection(**arguments)) as connection, connection.cursor() as cursor:
        before = server.query("SELECT @@GLOBAL.max_connect_errors")
        connection._again["password"] = "another"
        cursor.execute("SELECT SLEEP(3)")
        assert cursor.fetchone() == (0,)
        assert server.query("SELECT @@GLOBAL.max_connect_errors") == before


@pytest.mark.usefixtures("impatient")
def test_a_log_that_stops_coming_is_given_up(server: PrivateServer) -> None:
    server.query("FLUSH BINARY LOGS")
    file = str(server.query("SHOW BINARY LOGS")[-1][0])
    server.query("CREATE DATABASE IF NOT EXISTS test_stream")
    server.query("CREATE TABLE test_stream.t (v LONGTEXT)")
    for _ in range(12):
        server.query("INSERT INTO test_stream.t VALUES (REPEAT('x', 3000000))")
    source = ServerSource("db", arguments_of(server), 99, "orders")
    with contextlib.closing(source.read_log(LogPosition(file, 4))) as chunks:
        next(chunks)
        next(chunks)
        with frozen(server), pytest.raises(SourceUnavailableError, match="the connection broke: no answer for 1 s"):
            list(chunks)
    server.query("DROP DATABASE test_stream")
