"""What an account does not see is not taken for what is not there: by windows, verifications and repairs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from binlane.errors import PrecheckError
from binlane.orchestration.commands.verify import outcome_text, verify_after, verify_channel
from binlane.verify.outcome import Options, Outcome
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

FAMILIES = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
LOG = {
    "mariadb": "REPLICATION SLAVE, REPLICATION MASTER ADMIN, BINLOG MONITOR, SLAVE MONITOR",
    "mysql": "REPLICATION SLAVE, REPLICATION CLIENT",
}
SEES = "SELECT, SHOW VIEW, TRIGGER, EVENT, EXECUTE"


def granted(server: PrivateServer, *grants: str) -> None:
    """``test_reader`` holds these grants and no others."""
    run_on(
        server,
        "DROP USER IF EXISTS test_reader@'%'",
        f"CREATE USER test_reader@'%' IDENTIFIED BY '{server.password}'",
        *(f"GRANT {each} TO test_reader@'%'" for each in grants),
        log=False,
    )


def reading(channel: Channel, family: str, *grants: str) -> None:
    """The source is read by an account that may read the log, ``tenant_2``, and what ``grants`` say."""
    granted(channel.source, f"{LOG[family]}, PROCESS ON *.*", f"{SEES} ON tenant_2.*", *grants)
    channel.connect("source_server", channel.source, "test_reader")


def alike(channel: Channel) -> None:
    for name in ("tenant_1", "tenant_2"):
        made = (f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, a INT, b INT, KEY of_b (b))")
        run_on(channel.source, *made, f"INSERT INTO {name}.t VALUES (1, 10, 20)")
    assert channel.run() is not None


def swapped(channel: Channel) -> None:
    """The target's columns are in another order than the source's."""
    run_on(channel.target, "ALTER TABLE tenant_1.t MODIFY a INT AFTER b", log=False)


def full(channel: Channel) -> Outcome:
    return verify_channel(channel.config, channel.endpoints, Options(full=True))


@FAMILIES
@pytest.mark.parametrize(
    "grants",
    [
        pytest.param((), id="nothing"),
        pytest.param((r"SELECT ON `tenant%`.*", r"INSERT ON `tenant\_1`.*"), id="a pattern behind the name"),
    ],
)
def test_a_window_refuses_tables_that_the_source_s_account_does_not_see(
    channel_of: ChannelOf, family: str, grants: tuple[str, ...]
) -> None:
    channel = channel_of(family, family)
    alike(channel)
    reading(channel, family, *grants)
    swapped(channel)
    run_on(channel.source, "INSERT INTO tenant_1.t (id, a, b) VALUES (2, 10, 20)")
    with pytest.raises(PrecheckError, match=r"privilege SELECT on tenant_1\.t: .*apply\.allow_unseen = \['tenant_1'\]"):
        channel.run()
    assert channel.target.query("SELECT id, a, b FROM tenant_1.t") == [(1, 10, 20)]
    run_on(channel.source, rf"GRANT {SEES} ON `tenant\_1`.* TO test_reader@'%'", log=False)
    with pytest.raises(PrecheckError, match=r"tenant_1\.t.*column"):
        channel.run()
    run_on(channel.target, "ALTER TABLE tenant_1.t MODIFY a INT AFTER id", log=False)
    assert channel.run() is not None
    assert channel.target.query("SELECT id, a, b FROM tenant_1.t") == [(1, 10, 20), (2, 10, 20)]


def test_a_name_with_a_percent_sign_is_asked_for_as_it_is(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mariadb")
    alike(channel)
    run_on(channel.source, "CREATE TABLE tenant_1.`t%s` (id INT PRIMARY KEY)")
    assert channel.run() is not None
    reading(channel, "mariadb")
    run_on(channel.source, "INSERT INTO tenant_1.`t%s` VALUES (1)")
    with pytest.raises(PrecheckError, match=r"privilege SELECT on tenant_1\.t%s: "):
        channel.run()


@FAMILIES
def test_a_table_that_may_be_read_as_a_whole_needs_no_more(channel_of: ChannelOf, family: str) -> None:
    channel = channel_of(family, family)
    alike(channel)
    reading(channel, family, "SELECT, TRIGGER ON tenant_1.t")
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 10, 20)")
    assert channel.run() is not None
    swapped(channel)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (3, 10, 20)")
    with pytest.raises(PrecheckError, match=r"tenant_1\.t.*column"):
        channel.run()


@FAMILIES
def test_a_privilege_of_another_row_of_the_account_s_name_counts_as_the_server_counts_it(
    channel_of: ChannelOf, family: str
) -> None:
    """SHOW GRANTS leaves it out: the account is the row with the most exact host."""
    channel = channel_of(family, family)
    alike(channel)
    reading(channel, family, "SELECT, TRIGGER ON tenant_1.*")
    run_on(
        channel.source,
        "DROP USER IF EXISTS test_reader@'127.%'",
        f"CREATE USER test_reader@'127.%' IDENTIFIED BY '{channel.source.password}'",
        f"GRANT {LOG[family]} ON *.* TO test_reader@'127.%'",
        log=False,
    )
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 10, 20)")
    assert channel.run() is not None
    swapped(channel)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (3, 10, 20)")
    with pytest.raises(PrecheckError, match=r"tenant_1\.t.*column"):
        channel.run()
    run_on(channel.source, "GRANT INSERT ON tenant_1.* TO test_reader@'127.%'", log=False)
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    [grant] = re.findall(r"GRANT SELECT ON .*? TO 'test_reader'@'127.%'", str(refused.value))
    run_on(channel.source, grant, log=False)
    run_on(channel.target, "ALTER TABLE tenant_1.t MODIFY a INT AFTER id", log=False)
    assert channel.run() is not None
    assert channel.target.query("SELECT * FROM tenant_1.t WHERE id = 3") == [(3, 10, 20)]


@FAMILIES
@pytest.mark.parametrize("seen", [True, False])
def test_a_view_that_another_row_of_the_account_s_name_may_read_is_seen(
    channel_of: ChannelOf, family: str, seen: bool
) -> None:
    channel = channel_of(family, family)
    alike(channel)
    run_on(channel.source, "CREATE VIEW tenant_1.v AS SELECT id, a FROM tenant_1.t")
    assert channel.run() is not None
    reading(channel, family, *([f"{SEES} ON tenant_1.*"] if seen else ["SELECT, TRIGGER ON tenant_1.t"]))
    exact = f"CREATE USER test_reader@'127.%' IDENTIFIED BY '{channel.source.password}'"
    log = f"GRANT {LOG[family]}, TRIGGER, SHOW VIEW, EXECUTE ON *.* TO test_reader@'127.%'"
    run_on(channel.source, "DROP USER IF EXISTS test_reader@'127.%'", exact, log, log=False)
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", "UPDATE tenant_1.v SET a = 11")
    if seen:
        assert channel.run() is not None
        assert channel.target.query("SELECT a FROM tenant_1.t") == [(11,)]
    else:
        with pytest.raises(PrecheckError, match=r"privilege SELECT on tenant_1\.v: "):
            channel.run()


@FAMILIES
def test_the_channel_s_file_accepts_databases_by_name(channel_of: ChannelOf, family: str) -> None:
    channel = channel_of(family, family)
    alike(channel)
    reading(channel, family)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 10, 20)")
    channel.write_channel('allow_unseen = ["tenant_2"]\n')
    with pytest.raises(PrecheckError, match=r"tenant_1\.t"):
        channel.run()
    channel.write_channel('allow_unseen = ["tenant_1"]\n')
    assert channel.run() is not None
    outcome = full(channel)
    assert (outcome.state, outcome.counts.tables) == ("clean", 1)
    assert "database tenant_1: the source's account lacks SELECT on `tenant_1`.*" in outcome_text(outcome)
    # what was left out counts as compared as long as it is accepted
    assert outcome.covered.full_through == outcome.through_seqno
    run_on(channel.source, f"GRANT {SEES} ON tenant_1.* TO test_reader@'%'", log=False)
    channel.write_channel("")
    assert verify_channel(channel.config, channel.endpoints, Options()).covered.full_through is None
    assert full(channel).covered.full_through == outcome.through_seqno


@FAMILIES
def test_a_database_whose_drop_is_logged_needs_no_privilege(channel_of: ChannelOf, family: str) -> None:
    channel = channel_of(family, family)
    alike(channel)
    reading(channel, family)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 10, 20)", "DROP DATABASE tenant_1")
    run_on(channel.source, "CREATE DATABASE tenant_3", "CREATE TABLE tenant_3.t (id INT PRIMARY KEY)")
    run_on(channel.source, "INSERT INTO tenant_3.t VALUES (1)")
    with pytest.raises(PrecheckError, match=r"1 finding.*\n.*privilege SELECT on tenant_3\.t"):
        channel.run()
    run_on(channel.source, f"GRANT {SEES} ON tenant_3.* TO test_reader@'%'", log=False)
    assert channel.run() is not None
    assert channel.target.query("SHOW DATABASES LIKE 'tenant%'") == [("tenant_2",), ("tenant_3",)]


def on_both(channel: Channel, family: str) -> dict[str, tuple[str, PrivateServer]]:
    return {"source": ("source_server", channel.source), "target": ("target_server", channel.target)}


@FAMILIES
@pytest.mark.parametrize(("side", "kept"), [("source", ()), ("target", ("SELECT (id) ON tenant_1.t",))])
def test_what_a_verification_does_not_see_is_neither_equal_nor_forgotten(
    channel_of: ChannelOf, family: str, side: str, kept: tuple[str, ...]
) -> None:
    channel = channel_of(family, family)
    alike(channel)
    run_on(channel.source, "CREATE VIEW tenant_1.v AS SELECT id FROM tenant_1.t")
    assert channel.run() is not None
    full(channel)
    run_on(
        channel.target,
        "UPDATE tenant_1.t SET a = 11 WHERE id = 1",
        "INSERT INTO tenant_1.t VALUES (9, 9, 9)",
        "DROP VIEW tenant_1.v",
        "ALTER TABLE tenant_1.t DROP KEY of_b",
        log=False,
    )
    drifted = full(channel)
    assert (drifted.state, len(drifted.suspects)) == ("drift", 4)
    through = drifted.covered.full_through
    run_on(channel.source, "INSERT INTO tenant_2.t VALUES (2, 0, 0)")
    assert channel.run() is not None
    connection, server = on_both(channel, family)[side]
    everything = "ALL" if side == "target" else f"{LOG[family]}, PROCESS"
    granted(server, f"{everything} ON {'binlane.*' if side == 'target' else '*.*'}", f"{SEES} ON tenant_2.*", *kept)
    channel.connect(connection, server, "test_reader")
    for options in (Options(full=True), Options()):
        outcome = verify_channel(channel.config, channel.endpoints, options)
        assert (outcome.state, len(outcome.suspects), outcome.is_complete) == ("drift", 4, False)
        assert outcome.covered.full_through == through
        assert f"database tenant_1: the {side}'s account lacks SELECT on `tenant_1`.*" in outcome_text(outcome)
    assert channel.cli("verify", CHANNEL, "--full") == 1
    channel.connect(connection, server)
    assert len(full(channel).suspects) == 4
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    assert full(channel).state == "clean"
    channel.connect(connection, server, "test_reader")
    outcome = full(channel)
    assert (outcome.state, outcome.suspects) == ("incomplete", ())
    assert channel.cli("verify", CHANNEL, "--full") == 1
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1
    if side == "source":
        # drift of what is seen is repaired, and what is hidden is not green behind it
        run_on(channel.target, "UPDATE tenant_2.t SET a = 11 WHERE id = 1", log=False)
        assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1
        assert channel.target.query("SELECT a FROM tenant_2.t WHERE id = 1") == [(10,)]
    # the slice behind it is not finished
    run_on(channel.source, *(f"CREATE TABLE tenant_2.t{n} (id INT PRIMARY KEY)" for n in range(3)))
    channel.connect(connection, server)
    assert channel.run() is not None
    channel.connect(connection, server, "test_reader")
    config = replace(channel.config, verify=replace(channel.config.verify, slice_seconds=0))
    with pytest.raises(PrecheckError, match="an account does not see everything"):
        verify_after(config, channel.endpoints, "slice")


@FAMILIES
def test_a_text_that_is_hidden_now_is_as_it_was_found(channel_of: ChannelOf, family: str) -> None:
    channel = channel_of(family, family)
    alike(channel)
    for server, text in ((channel.source, "a"), (channel.target, "b")):
        run_on(
            server,
            f"CREATE VIEW tenant_1.v AS SELECT {text} AS x FROM tenant_1.t",
            f"CREATE TRIGGER tenant_1.g BEFORE INSERT ON tenant_1.t FOR EACH ROW SET NEW.{text} = 1",
            f"CREATE PROCEDURE tenant_1.p () SELECT {text} FROM tenant_1.t",
            f"CREATE EVENT tenant_1.e ON SCHEDULE EVERY 9 YEAR DISABLE DO SELECT {text} FROM tenant_1.t",
            log=False,
        )
    found = {each.key[0] for each in full(channel).suspects}
    assert found == {"view", "trigger", "procedure", "event"}
    reading(channel, family, "SELECT ON tenant_1.*", "SELECT ON tenant_2.*", "INDEX ON tenant_1.*")
    outcome = full(channel)
    assert {each.key[0] for each in outcome.suspects} == found
    assert len(outcome.unseen) >= 4


@FAMILIES
def test_a_view_that_a_statement_writes_through_answers_for_its_table(channel_of: ChannelOf, family: str) -> None:
    channel = channel_of(family, family)
    alike(channel)
    # its definer may not read the table, and so nobody may read the view
    for server in (channel.source, channel.target):
        run_on(
            server,
            "DROP USER IF EXISTS test_definer@'%'",
            f"CREATE USER test_definer@'%' IDENTIFIED BY '{server.password}'",
            "GRANT SELECT, INSERT ON tenant_1.t TO test_definer@'%'",
            "CREATE DEFINER = test_definer@'%' SQL SECURITY DEFINER VIEW tenant_1.v AS SELECT id, a, b FROM tenant_1.t",
            log=False,
        )
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", "INSERT INTO tenant_1.v VALUES (2, 10, 20)")
    reading(channel, family, "SELECT, TRIGGER ON tenant_1.t", "SELECT (id, a) ON tenant_1.v")
    run_on(channel.source, "REVOKE SELECT ON tenant_1.t FROM test_definer@'%'", log=False)
    # a view is not opened, so it is its text that tells
    with pytest.raises(PrecheckError, match=r"view tenant_1\.v: expected the source's, found one whose text"):
        channel.run()
