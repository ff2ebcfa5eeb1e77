"""Programs of clients with other character sets than UTF-8 come back with the bytes that their clients have sent."""

from __future__ import annotations

from typing import Any, Final

import pytest

from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]

_CLIENTS: Final = {"latin1": "né", "cp1251": "да", "gbk": "誠", "sjis": "ソ", "utf8mb4": "né誠"}
"""What each client writes; the last bytes of 誠 in GBK and of ソ in Shift JIS are a backslash."""
_OF_VIEWS: Final = ("latin1", "cp1251", "utf8mb4")
"""MySQL cannot read a view of its own with one of the others."""
_CODECS: Final = {"sjis": "shift_jis"}


def _make(server: PrivateServer, database: str) -> None:
    run_on(server, f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (v VARCHAR(20) CHARSET utf8mb4)")
    connection: Any = server.connect(autocommit=True)  # the stubs know no bytes
    with connection, connection.cursor() as cursor:
        cursor.execute(f"USE {database}")
        for client, said in _CLIENTS.items():
            literal = said.encode(_CODECS.get(client, client.replace("mb4", "")))
            cursor.execute(f"SET NAMES {client}")
            function = f"CREATE FUNCTION f_{client}() RETURNS VARCHAR(20) CHARSET utf8mb4 DETERMINISTIC RETURN '%s'"
            cursor.execute(function.encode() % literal)
            if client in _OF_VIEWS:
                cursor.execute(f"CREATE VIEW v_{client} AS SELECT '%s' AS v".encode() % literal)
            trigger = f"CREATE TRIGGER r_{client} BEFORE INSERT ON t FOR EACH ROW SET NEW.v = CONCAT(NEW.v, '%s')"
            cursor.execute(trigger.encode() % literal)


def _said(server: PrivateServer, database: str) -> list[str]:
    """What functions, views and triggers say."""
    found = [server.query(f"SELECT {database}.f_{client}()")[0][0] for client in _CLIENTS]
    found += [server.query(f"SELECT CONVERT(v USING utf8mb4) FROM {database}.v_{client}")[0][0] for client in _OF_VIEWS]
    run_on(server, f"INSERT INTO {database}.t VALUES ('')", log=False)
    [(row,)] = server.query(f"SELECT v FROM {database}.t")
    run_on(server, f"DELETE FROM {database}.t", log=False)
    return [*found, row]


_EXPECTED: Final = [*_CLIENTS.values(), *map(_CLIENTS.__getitem__, _OF_VIEWS), "".join(_CLIENTS.values())]


@pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])
def test_programs_of_any_client_are_restored_and_kept(flavor: Flavor, channel_of: ChannelOf) -> None:
    channel = channel_of(flavor, flavor)
    run_on(channel.source, "FLUSH BINARY LOGS")
    _make(channel.source, "store_1")
    _make(channel.target, "back")
    assert _said(channel.source, "store_1") == _said(channel.target, "back") == _EXPECTED
    run_on(channel.source, "DROP DATABASE store_1")
    asked = ("restore", "--from", "log", "--log", "source_server", "--database", "store_1", "--as", "back")
    end = ("--before", "DROP DATABASE store_1", "--onto", "target_server", "--replace", "--yes")
    assert channel.cli(*asked, *end) == 0
    assert _said(channel.target, "back") == _EXPECTED
    [(kept,)] = channel.target.query("SHOW DATABASES LIKE 'back\\_replaced%%'")
    assert _said(channel.target, kept) == _EXPECTED
