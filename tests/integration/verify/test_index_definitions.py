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


_LATIN: Final = "CREATE DATABASE tenant_1 CHARACTER SET latin1"
"""Whose default collation both families have."""
_COMMENTED: Final = (
    _LATIN,
    f"CREATE TABLE {_TABLE} (id INT, a INT, b INT, c TEXT, PRIMARY KEY (id) COMMENT 'of all', "
    "KEY by_a (a) COMMENT 'it''s', KEY by_b (b), FULLTEXT KEY words (c) COMMENT 'slow')",
)


@requires_mysql
@pytest.mark.parametrize("servers", _UNLIKE, ids="-".join)
def test_comments_of_indexes_are_compared(servers: tuple[str, str], channel_of: ChannelOf) -> None:
    channel = channel_of(*servers)
    run_on(channel.source, *_COMMENTED)
    assert channel.run() is not None
    for server in (channel.source, channel.target):
        hide(server, "by_a")
    assert drift(verify(channel)) == {}
    run_on(
        channel.target,
        f"ALTER TABLE {_TABLE} DROP PRIMARY KEY, ADD PRIMARY KEY (id), DROP KEY by_a, ADD KEY by_a (a) COMMENT 'its', "
        "DROP KEY by_b, ADD KEY by_b (b) COMMENT 'mine'",
        f"ALTER TABLE {_TABLE} DROP KEY words",
        log=False,
    )
    hide(channel.target, "by_a")
    outcome = verify(channel)
    found = drift(outcome)
    parts = ("primary key", "index `by_a`", "index `by_b`", "index `words`")
    assert found.keys() == {(f"table {_TABLE}", what) for what in parts}
    [one] = [each for each in outcome.differences if each.what == "index `by_a`"]
    assert (one.source, one.target) == ("KEY `by_a` (`a`) COMMENT 'it''s'", "KEY `by_a` (`a`) COMMENT 'its'")
    mend(channel, outcome)
    outcome = verify(channel)
    assert (drift(outcome), outcome.unseen) == ({}, ())


@requires_mysql
@pytest.mark.parametrize("more", ["", '[collations]\nlatin1_danish_ci = "latin1_swedish_ci"\n'], ids=["same", "unlike"])
def test_parsers_of_fulltext_indexes_are_compared_where_both_servers_have_them(
    more: str, channel_of: ChannelOf
) -> None:
    """Servers whose collations differ are compared as those of other versions are."""
    channel = channel_of("mysql", "mysql")
    channel.write_channel(more)
    made = "a TEXT, b TEXT, FULLTEXT KEY plain (a) COMMENT 'x', FULLTEXT KEY grams (b) WITH PARSER ngram"
    run_on(channel.source, _LATIN, f"CREATE TABLE {_TABLE} (id INT PRIMARY KEY, {made})")
    assert channel.run() is not None
    assert drift(verify(channel)) == {}
    run_on(
        channel.target,
        f"ALTER TABLE {_TABLE} DROP KEY plain, DROP KEY grams",
        f"ALTER TABLE {_TABLE} ADD FULLTEXT KEY plain (a) WITH PARSER ngram COMMENT 'x'",
        f"ALTER TABLE {_TABLE} ADD FULLTEXT KEY grams (b)",
        log=False,
    )
    outcome = verify(channel)
    assert outcome.unseen == ()
    assert drift(outcome).keys() == {(f"table {_TABLE}", what) for what in ("index `plain`", "index `grams`")}
    [one] = [each for each in outcome.differences if each.what == "index `grams`"]
    assert (" WITH PARSER `ngram`" in str(one.source), one.target) == (True, "FULLTEXT KEY `grams` (`b`)")
    mend(channel, outcome)
    assert drift(verify(channel)) == {}


@requires_mysql
@pytest.mark.parametrize("servers", [("mariadb", "mysql"), ("mysql", "mariadb")], ids="-".join)
def test_a_parser_that_the_other_server_lacks_is_named_as_not_compared(
    servers: tuple[str, str], channel_of: ChannelOf
) -> None:
    channel = channel_of(*servers)
    for server in (channel.source, channel.target):
        parser = " WITH PARSER ngram" if server.flavor == "mysql" else ""
        made = f"CREATE TABLE {_TABLE} (id INT PRIMARY KEY, a TEXT, FULLTEXT KEY grams (a){parser})"
        run_on(server, _LATIN, made, log=False)
    outcome = verify(channel)
    lacking = ("source", "target")[servers.index("mariadb")]
    assert drift(outcome) == {}
    assert outcome.unseen == (f"table {_TABLE}: parser of index `grams`: the {lacking} has no parser ngram",)
