"""What a log continues and a copy of its source does not have, at every kind of a channel's beginning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, run_on
from tests.integration.window.source.test_beginnings import (
    OPENED,
    TABLES,
    assert_goes_on,
    beginning,
    first_copy,
    is_named,
    session,
)

__all__ = ["beginning"]


def log_end(server: PrivateServer) -> str:
    file, offset = server.query("SHOW BINARY LOGS")[-1][:2]
    return f"{file}:{offset}"


def gtids(server: PrivateServer) -> str:
    name = "gtid_current_pos" if server.flavor is Flavor.MARIADB else "gtid_executed"
    [(found,)] = server.query(f"SELECT @@GLOBAL.{name}")
    return str(found).replace("\n", "")


def copied(channel: Channel) -> None:
    run_on(channel.target, *TABLES)


def init_at(place: Callable[[PrivateServer], str]) -> Callable[[Channel], Callable[[], None]]:
    def begin(channel: Channel) -> Callable[[], None]:
        copied(channel)
        at = place(channel.source)
        return lambda: channel.init(at)

    return begin


def begun_again(channel: Channel) -> Callable[[], None]:
    copied(channel)
    channel.init("now")
    channel.target.query("DELETE FROM binlane.channels")
    return lambda: channel.init("now")


BEGINNINGS: Final[dict[str, Callable[[Channel], Callable[[], None]]]] = {
    "init now": init_at(lambda _: "now"),
    "init at the log's end": init_at(log_end),
    "init behind GTIDs": init_at(gtids),
    "begun again": begun_again,
}


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_temporary_table_is_open(beginning: Channel, begin: Callable[[Channel], Callable[[], None]]) -> None:
    with session(beginning, *OPENED) as run:
        begin(beginning)()
        assert_goes_on(beginning, run)


@pytest.mark.parametrize("begin", ["init at the log's end", "init behind GTIDs"])
def test_a_beginning_in_an_older_file_of_the_log(beginning: Channel, begin: str) -> None:
    with session(beginning, *OPENED) as run:
        init = BEGINNINGS[begin](beginning)
        beginning.source.query("FLUSH BINARY LOGS")
        run("UPDATE t SET v = 0 WHERE id = 1", "DELETE FROM t")
        init()
        assert_goes_on(beginning, run)


READS: Final = {
    "joined with another": "UPDATE p JOIN t USING (id) SET p.v = t.v, t.v = 3",
    "copied": "CREATE TABLE made SELECT id FROM t",
}
CHANGES_IT_ALONE: Final = {
    "deleted by another": "DELETE t FROM t JOIN p USING (id)",
    "with its connection": "INSERT INTO t VALUES (8, CONNECTION_ID())",
}


@pytest.mark.parametrize("statement", READS.values(), ids=READS)
def test_what_cannot_be_repeated_is_named(beginning: Channel, statement: str) -> None:
    is_named(beginning, statement)


@pytest.mark.parametrize("statement", CHANGES_IT_ALONE.values(), ids=CHANGES_IT_ALONE)
def test_what_changes_nothing_but_a_table_that_its_drop_proves_is_left_out(beginning: Channel, statement: str) -> None:
    with session(beginning, *OPENED) as run:
        first_copy(beginning)
        run(statement)
    run_on(beginning.source, "INSERT INTO tenant_1.t VALUES (6, 6)")
    assert beginning.run() is not None
    beginning.assert_equal()
