"""Connections: Airflow's URIs and JSON as endpoints, and how what is wrong with one is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from binlane.connections import Tls, endpoint, environment_resolver, parse_connection, resolve_endpoints
from binlane.errors import ConfigError
from tests.unit.test_config import MINIMAL, channel

URIS = [
    pytest.param("mysql://u:p@h:3307/", ("h", 3307, "u", "p", Tls()), id="plain"),
    pytest.param("mysql+pymysql://u:p@h/db", ("h", 3306, "u", "p", Tls()), id="driver, no port"),
    pytest.param("mariadb://u%40x:p%2F%3A%25@h:1/", ("h", 1, "u@x", "p/:%", Tls()), id="quoted"),
    pytest.param("mysql://u:p@[::1]:3307/", ("::1", 3307, "u", "p", Tls()), id="IPv6"),
    pytest.param("mysql://u@h/", ("h", 3306, "u", "", Tls()), id="no password"),
    pytest.param(
        "mysql://u:p@h/?ssl_ca=ca.pem", ("h", 3306, "u", "p", Tls("verify_ca", "ca.pem")), id="a CA is verified"
    ),
    pytest.param("mysql://u:p@h/?ssl_mode=REQUIRED", ("h", 3306, "u", "p", Tls("required")), id="required"),
    pytest.param(
        "mysql://u:p@h/?__extra__=%7B%22ssl_mode%22%3A%20%22disabled%22%7D",
        ("h", 3306, "u", "p", Tls("disabled")),
        id="extra",
    ),
    pytest.param(
        json.dumps({"conn_type": "mysql", "host": "h", "login": "u", "password": "p", "port": 3307}),
        ("h", 3307, "u", "p", Tls()),
        id="JSON",
    ),
    pytest.param(
        json.dumps(
            {
                "conn_type": "mysql",
                "host": "h",
                "login": "u",
                "password": "p",
                "extra": json.dumps({"ssl": {"ca": "a", "cert": "b", "key": "c"}, "charset": "utf8"}),
            }
        ),
        ("h", 3306, "u", "p", Tls("verify_ca", "a", "b", "c")),
        id="Airflow's ssl object in JSON in JSON",
    ),
    pytest.param(
        "mysql://u:p@h/?server_public_key=k.pem&get_server_public_key=True&cursor=dictcursor",
        ("h", 3306, "u", "p", Tls(public_key="k.pem", get_public_key=True)),
        id="keys of the server",
    ),
]


@pytest.mark.parametrize(("value", "expected"), URIS)
def test_a_connection_is_read_as_airflow_reads_it(value: str, expected: tuple[Any, ...]) -> None:
    found = parse_connection("c", value)
    assert (found.host, found.port, found.user, found.password, found.tls) == expected


BAD_CONNECTIONS = [
    pytest.param("postgres://u:p@h/", "expected type mysql or mariadb, got 'postgres'", id="type"),
    pytest.param("mysql://u:secret@/", "expected a host, got none", id="host"),
    pytest.param("mysql://h/", "expected a login, got none", id="login"),
    pytest.param("mysql://u:sec/ret@h/", "cannot parse the value", id="unquoted password"),
    pytest.param("mysql://u:secret@h:0/", "expected a port 1..65535, got 0", id="port"),
    pytest.param('{"conn_type": "mysql", "password": "secret"', "expected JSON with conn_type", id="JSON"),
    pytest.param("mysql://u:secret@h/?ssl_mode=x", "extra ssl_mode: expected one of disabled, preferred", id="mode"),
    pytest.param("mysql://u:secret@h/?ssl_cca=x", "extra 'ssl_cca': unknown; known: ssl_mode, ssl_ca, ", id="typo"),
    pytest.param(
        "mysql://u:secret@h/?sslmode=require", "extra 'sslmode': unknown; known: ssl_mode", id="another tool's"
    ),
    pytest.param("mysql://u:secret@h/?unix_socket=%2Fs", "extra 'unix_socket': unknown; known: ssl_mode", id="socket"),
    pytest.param("mysql://u:secret@h/?ssl=%7B%22caa%22%3A1%7D", "extra ssl: unknown 'caa'; known: ca", id="ssl's"),
    pytest.param("mysql://u@h?se-secret", "extra something else: unknown; known: ssl_mode", id="a part of it"),
    pytest.param("mysql://u@h/?ssl_mode=1secret", "verify_identity, got something else", id="in the mode"),
    pytest.param('{"conn_type": "1secret"}', "expected type mysql or mariadb, got something else", id="in the type"),
    pytest.param(
        '{"conn_type": "mysql", "host": "h", "login": "u", "extra": {"ssl": {"1secret": "x"}}}',
        "extra ssl: unknown something else; known: ca, cert, key",
        id="in a key",
    ),
    pytest.param("mysql://u:secret@h/?__extra__=[1]", "__extra__: expected JSON such as", id="extra: a list"),
    pytest.param("{" + '"a":{' * 100_000, "expected JSON with conn_type", id="JSON without an end"),
    pytest.param('{"conn_type": "mysql", "port": 1e999}', "expected JSON with conn_type", id="an endless port"),
    pytest.param("mysql://u:secret@h/?ssl_ca=", "extra ssl_ca: expected the path of a PEM file", id="no file"),
    pytest.param(
        "mysql://u:secret@h/?get_server_public_key=maybe",
        "extra get_server_public_key: expected true or false",
        id="key",
    ),
    pytest.param("mysql://u:secret@h/?ssl=x", "extra ssl: expected an object", id="ssl"),
]


@pytest.mark.parametrize(("value", "message"), BAD_CONNECTIONS)
def test_a_bad_connection_is_named_and_its_password_is_not_shown(value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=r"^connection 'c': ") as caught:
        parse_connection("c", value)
    assert message in str(caught.value)
    assert "sec" not in str(caught.value)


def test_a_password_is_in_no_representation_of_an_endpoint() -> None:
    found = parse_connection("c", "mysql://u:secret@h/")
    assert "secret" not in f"{found!r} {found}"
    assert str(found) == "c (u@h:3306)"


def test_an_endpoint_becomes_arguments_for_both_drivers() -> None:
    found = endpoint(
        "c",
        conn_type="mysql",
        host="::1",
        port=1,
        user="u@",
        password="p/%",
        extra={"ssl_mode": "verify_identity", "ssl_ca": "f"},
    )
    assert found.sqlalchemy_url() == "mysql+pymysql://u%40:p%2F%25@[::1]:1/?charset=utf8mb4"
    tls = {"ca": "f", "verify_mode": True, "check_hostname": True}
    assert found.pymysql_arguments() == {
        "host": "::1", "port": 1, "user": "u@", "password": "p/%", "charset": "utf8mb4", "ssl": tls,
    }  # fmt: skip
    assert Tls("disabled").arguments() == {"ssl_disabled": True}
    assert Tls().arguments() == {}
    assert Tls("required").arguments()["ssl"]["verify_mode"] is False
    keys = {"public_key_file": "k.pem", "get_server_public_key": True}
    assert Tls("disabled", public_key="k.pem", get_public_key=True).arguments() == {"ssl_disabled": True, **keys}


def test_a_missing_variable_is_named_with_the_channels_file(tmp_path: Path) -> None:
    read = channel(tmp_path, MINIMAL)
    with pytest.raises(
        ConfigError, match=r"shop\.toml: connection 'b': expected the environment variable AIRFLOW_CONN_B"
    ):
        resolve_endpoints(read, environment_resolver({"AIRFLOW_CONN_A": "mysql://u@h/"}))


def test_an_archive_has_no_source_endpoint(tmp_path: Path) -> None:
    read = channel(tmp_path, '[source]\narchive = "logs"\n[target]\nconnection = "b"\n')
    found = resolve_endpoints(read, environment_resolver({"AIRFLOW_CONN_B": "mysql://u@h/"}))
    assert (found.source, found.target.host) == (None, "h")
