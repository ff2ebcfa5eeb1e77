"""What a test leaves on a server that others use: nothing of it is there for the next module."""

from __future__ import annotations

import contextlib

import pytest

from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.emptied import Origin


@pytest.mark.parametrize("flavor", list(Flavor))
def test_databases_accounts_and_settings_of_a_test_are_removed(flavor: Flavor, request: pytest.FixtureRequest) -> None:
    server: PrivateServer = request.getfixturevalue(f"{flavor}_target")
    origin = Origin.of(server)
    for statement in (
        "CREATE DATABASE left_over",
        "CREATE TABLE left_over.p (id INT PRIMARY KEY)",
        "CREATE TABLE left_over.c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES left_over.p (id))",
        "CREATE USER 'it''s'@'127.0.0.%%' IDENTIFIED BY 'x'",
        "CREATE ROLE `a role`",
        "GRANT `a role` TO 'it''s'@'127.0.0.%%'",
        "SET GLOBAL local_infile = NOT @@GLOBAL.local_infile",
        "SET GLOBAL long_query_time = 3.25",
        "SET GLOBAL init_connect = 'SET @a = ''b'''",
        "SET GLOBAL max_allowed_packet = 2097152",
    ):
        server.query(statement, ())
    with contextlib.closing(server.connect()) as prepared, prepared.cursor() as cursor:
        for statement in ("XA START '''%',x'00ff'", "INSERT INTO left_over.p VALUES (1)", "XA END '''%',x'00ff'"):
            cursor.execute(statement)
        cursor.execute("XA PREPARE '''%',x'00ff'")
    with contextlib.closing(server.connect()) as forgotten, forgotten.cursor() as cursor:
        cursor.execute("INSERT INTO left_over.p VALUES (2)")

        origin.restore(server)

    assert Origin.of(server) == origin
    assert server.query("XA RECOVER") in ([], ())
    assert "left_over" not in {name for (name,) in server.query("SHOW DATABASES")}
