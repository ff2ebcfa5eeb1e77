"""What ``binlane.conflicts`` keeps of an ENUM: its error value, which is no member, prints as the member ''."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.binlog.types.sql_types import sql_type
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.emptied import empty_target

MEMBERS: Final = (0, "''", "'0'", "'é'", "NULL")
SHOWN: Final = ("0 (error value)", "", "0", "é", None)


@pytest.mark.parametrize("charset", ["latin1", "utf8mb4", "ucs2"])
@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_an_enum_is_kept_by_its_member_and_its_error_value_by_its_number(
    family: str, charset: str, request: pytest.FixtureRequest
) -> None:
    server: PrivateServer = request.getfixturevalue(f"{family}_target")
    empty_target(server)
    server.query("CREATE DATABASE own")
    server.query(f"CREATE TABLE own.t (id INT PRIMARY KEY, e ENUM('', '0', 'é') CHARACTER SET {charset})")
    rows = ", ".join(f"({number}, {member})" for number, member in enumerate(MEMBERS))
    server.query(f"INSERT IGNORE INTO own.t VALUES {rows}")
    asked = sql_type("enum").shown.format(name="`e`", length=100)
    found = [row for [row] in server.query(f"SELECT {asked} FROM own.t ORDER BY id")]
    assert tuple(None if text is None else bytes.fromhex(str(text)).decode() for text in found) == SHOWN
    server.query("DROP DATABASE own")
