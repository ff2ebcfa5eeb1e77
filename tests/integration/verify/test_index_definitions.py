"""Indexes between servers of other versions or families: their order, and whether statements use them."""

from __future__ import annotations

from typing import Final

import pytest

from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.verify.test_definitions import drift, mend, verify
from tests.integration.window.conftest import ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]

_TABLE: Final = "tenant_1.kept"
_UNLIKE: Final = [("mariadb", "mysql"), ("mysql", "mariadb"), ("10.11", "11.8")]
_MADE: Final = (
    "CREATE DATABASE tenant_1",
    f"CREATE TABLE {_TABLE} (id INT PRIMARY KEY, a INT, b INT, c INT, "
    "KEY down (a, b DESC), KEY up (b), KEY unused (c))",
)


def hide(server: PrivateServer, index: str, *, hidden: bool = True) -> None:
    """By the words of the server's family."""
    shown, kept = ("NOT IGNORED", "IGNORED") if server.flavor == "mariadb" else ("VISIBLE", "INVISIBLE")
    run_on(server, f"ALTER TABLE {_TABLE} ALTER INDEX {index} {kept if hidden else shown}", log=False)


@requires_mysql
@pytest.mark.parametrize("servers", _UNLIKE, ids="-".join)
def test_order_and_visibility_are_compared_where_both_servers_can_tell(
    servers: tuple[str, str],
    channel_of: ChannelOf,
) -> None:
    channel = channel_of(*servers)
    run_on(channel.source, *_MADE)
    assert channel.run() is not None
    for server in (channel.source, channel.target):
        hide(server, "unused")
    outcome = verify(channel)
    assert (drift(outcome), outcome.unseen) == ({}, ())
    hide(channel.target, "unused", hidden=False)
    hide(channel.target, "up")
    run_on(channel.target, f"ALTER TABLE {_TABLE} DROP KEY down, ADD KEY ascending (a, b)", log=False)
    outcome = verify(channel)
    assert drift(outcome).keys() == {
        (f"table {_TABLE}", what)
        for what in ("index `down`", "index `ascending`", "visibility of index `up`", "visibility of index `unused`")
    }
    [order] = [one for one in outcome.differences if one.what == "index `down`"]
    assert order.source == "KEY `down` (`a`, `b` DESC)"
    mend(channel, outcome)
    outcome = verify(channel)
    assert (drift(outcome), outcome.unseen) == ({}, ())


@pytest.mark.parametrize("versions", [("10.5", "10.11"), ("10.11", "10.5")], ids="-".join)
def test_what_a_version_cannot_have_is_named_as_not_compared(
    versions: tuple[str, str],
    channel_of: ChannelOf,
) -> None:
    """10.5 takes DESC and keeps an ascending index, and has no ignored ones."""
    channel = channel_of(*versions)
    run_on(channel.source, *_MADE)
    assert channel.run() is not None
    newer = (channel.source, channel.target)[versions.index("10.11")]
    hide(newer, "unused")
    lacking = ("source", "target")[versions.index("10.5")]
    outcome = verify(channel)
    assert drift(outcome) == {}
    assert outcome.unseen == (
        f"table {_TABLE}: order of index `down`: the {lacking}'s version keeps no DESC",
        f"table {_TABLE}: visibility of index `unused`: the {lacking}'s version has visible indexes only",
    )
