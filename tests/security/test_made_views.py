"""A view that binlane makes on a MariaDB target calls no function that changes the server, as binlane's account.

Attacker: whoever may write functions of one database of the target, or of the source. A body more is an attack more.
"""

from __future__ import annotations

import contextlib
from typing import Final

import pytest

from binlane.bootstrap.definition_copy import Definition, make
from binlane.bootstrap.sessions import write_session
from binlane.errors import TargetError
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, run_on

BODIES: Final = (
    "SET GLOBAL max_connections = 77",
    "KILL 4711",
    "INSERT INTO mysql.servers VALUES ('a', '', '', '', '', 0, '', '', '')",
    "UPDATE /* x */ `binlane` . channels SET windows = 99",
    "CALL app.p()",
)


def _made(server: PrivateServer, body: str) -> None:
    head = "CREATE FUNCTION app.éVil() RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER"
    run_on(
        server,
        "SET NAMES utf8mb4",
        "SET GLOBAL log_bin_trust_function_creators = ON",
        "CREATE DATABASE app",
        "CREATE TABLE app.t (n INT PRIMARY KEY)",
        "CREATE PROCEDURE app.p() SQL SECURITY INVOKER SET GLOBAL max_connections = 77",
        f"{head} BEGIN {body}; RETURN 1; END",
        log=False,
    )


@pytest.mark.parametrize("body", BODIES)
def test_no_view_is_made_that_has_such_a_function_called(channel: Channel, body: str) -> None:
    server = channel.target
    _made(server, body)
    before = server.query("SELECT @@global.max_connections")
    view = b"CREATE SQL SECURITY INVOKER VIEW `app`.`v` AS SELECT ROUND(1.5, app.evil()) AS x FROM app.t"
    with contextlib.closing(write_session(channel.endpoints.target)) as session:
        with pytest.raises(TargetError, match=r"view app\.v: MariaDB may call app\.\w+ as this account"):
            make(session, Definition("VIEW", "app", "v", view, "utf8mb4", "utf8mb4_general_ci"))
        run_on(server, "DROP FUNCTION app.éVil", "CREATE FUNCTION app.evil() RETURNS INT SQL SECURITY INVOKER RETURN 1")
        make(session, Definition("VIEW", "app", "v", view, "utf8mb4", "utf8mb4_general_ci"))
    assert server.query("SELECT @@global.max_connections") == before
    assert server.query("SELECT x FROM app.v") == []
