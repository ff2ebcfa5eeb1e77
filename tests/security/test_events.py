"""Events belong on the target to who has made them on the source, and do not run, whatever stands in front of them."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.errors import BinlaneError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf
from tests.security.test_text_programs import as_user, made

FRONTS: Final = (
    "SET STATEMENT max_sort_length = 100 FOR",
    "SET STATEMENT sort_buffer_size = 100000 FOR",
    "SET STATEMENT sql_mode = 'ANSI_QUOTES', max_sort_length = 100 FOR SET STATEMENT join_cache_level = 2 FOR",
    "/* a */ SET /* b */ STATEMENT max_sort_length=100 FOR -- c\n",
)
"""Variables of one statement, which MariaDB logs with it. A line more is an attack more."""
EVENT: Final = (
    "ON SCHEDULE EVERY 1 SECOND STARTS '2030-01-01' ENABLE DO INSERT INTO app.t SELECT COUNT(*) FROM other.victim"
)


def test_an_event_is_of_its_source_s_account_and_disabled_behind_set_statement(channel: Channel) -> None:
    made(channel, "SET @x = 1")
    channel.write_channel()
    for number, front in enumerate(FRONTS):
        as_user(
            channel,
            f"CREATE EVENT app.e{number} {EVENT.replace('ENABLE', 'DISABLE')}",
            f"{front} ALTER EVENT app.e{number} {EVENT}",
            f"{front} CREATE EVENT app.new{number} {EVENT}",
        )

    assert channel.run() is not None

    shown = "SELECT DISTINCT definer, status FROM information_schema.events"
    assert channel.source.query(shown) == [("test_u@%", "ENABLED")]
    assert channel.target.query(shown) == [("test_u@%", "SLAVESIDE_DISABLED")]


def test_computed_variables_in_front_of_an_event_are_refused(channel: Channel) -> None:
    made(channel, "SET @x = 1")
    channel.write_channel()
    as_user(
        channel,
        f"CREATE EVENT app.e {EVENT.replace('ENABLE', 'DISABLE')}",
        f"SET STATEMENT max_sort_length = (SELECT 100) FOR ALTER EVENT app.e {EVENT}",
    )

    with pytest.raises(BinlaneError, match="SET STATEMENT with a computed value in front"):
        channel.run()

    assert channel.target.query("SELECT * FROM information_schema.events") == []


GAPS: Final = ("/*M x */ ", "--\x01x\n", "--\x7fx\n", "# x\n", "/**/")
"""What the servers take for a blank. A line more is an attack more."""


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_an_event_is_of_its_source_s_account_behind_each_comment(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    made(channel, "SET @x = 1")
    channel.write_channel()
    for number, gap in enumerate(GAPS):
        event = f"app.e{number}"
        as_user(channel, f"CREATE EVENT {event} {EVENT.replace('ENABLE', 'DISABLE')}")
        as_user(channel, f"{gap}ALTER {gap} EVENT {gap} {event} {EVENT}")

    assert channel.run() is not None

    shown = "SELECT DISTINCT definer, status FROM information_schema.events WHERE event_schema = 'app'"
    assert channel.source.query(shown) == [("test_u@%", "ENABLED")]
    ((definer, status),) = channel.target.query(shown)
    assert (definer, "DISABLED" in str(status)) == ("test_u@%", True)


HIDING: Final = (
    "ALTER EVENT app.e ENABLE /*M DISABLE */",
    "ALTER EVENT app.e ENABLE --\x0bDISABLE\n COMMENT 'x'",
    "ALTER EVENT app.e /*M COMMENT */ ENABLE",
)
"""Words in what the servers take for comments. A line more is an attack more."""


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_comment_does_not_enable_an_event(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    made(channel, "SET @x = 1")
    channel.write_channel()
    for number, statement in enumerate(HIDING):
        as_user(channel, f"CREATE EVENT app.e{number} {EVENT.replace('ENABLE', 'DISABLE')}")
        as_user(channel, statement.replace("app.e", f"app.e{number}"))

    assert channel.run() is not None

    shown = "SELECT DISTINCT status FROM information_schema.events WHERE event_schema = 'app'"
    assert channel.source.query(shown) == [("ENABLED",)]
    assert channel.target.query(shown) in ([("SLAVESIDE_DISABLED",)], [("REPLICA_SIDE_DISABLED",)])


@pytest.mark.parametrize("host", ["", "/**/", "`%`"])
def test_an_event_of_an_account_with_an_empty_host_is_disabled(host: str, channel: Channel) -> None:
    """To MariaDB an empty host is any: the account is the user's own."""
    made(channel, "SET @x = 1")
    channel.write_channel()
    as_user(
        channel,
        f"CREATE EVENT app.e {EVENT.replace('ENABLE', 'DISABLE')}",
        f"ALTER DEFINER=test_u@{host} EVENT app.e {EVENT}",
    )

    assert channel.run() is not None

    shown = "SELECT DISTINCT definer, status FROM information_schema.events"
    assert channel.source.query(shown) == [("test_u@%", "ENABLED")]
    assert channel.target.query(shown) == [("test_u@%", "SLAVESIDE_DISABLED")]


def test_no_schedule_of_such_an_event_gives_up_a_lane_s_lease(channel: Channel) -> None:
    made(channel, "SET @x = 1")
    channel.write_channel("allow_unsafe = true\n")
    as_user(
        channel,
        f"CREATE EVENT app.e {EVENT.replace('ENABLE', 'DISABLE')}",
        "ALTER DEFINER=test_u@ EVENT app.e ON SCHEDULE AT NOW() + INTERVAL 1 + 0*RELEASE_ALL_LOCKS() DAY",
    )

    with pytest.raises(BinlaneError, match=r"an event whose schedule has RELEASE_ALL_LOCKS\(\)"):
        channel.run()
