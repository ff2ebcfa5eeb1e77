"""Statements that are of another kind than their first word says."""

from __future__ import annotations

import pytest

from binlane.errors import UnsupportedEventError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on

CLAUSES = (
    "SET STATEMENT max_statement_time = (SELECT 60 FOR UPDATE) FOR {}",
    "SET STATEMENT max_statement_time = 60 FOR SET STATEMENT sort_buffer_size = 100000 FOR {}",
    "SET STATEMENT binlog_format = STATEMENT, binlog_direct_non_transactional_updates = 1 FOR {}",
    "SET STATEMENT gtid_domain_id = 0, wsrep_on = 0, sql_mode = '' FOR {}",
)
"""MariaDB's variables for one statement, in front of it. A line more is an attack more."""
ANALYZED = (
    "ANALYZE DELETE FROM app.t WHERE a = 1",
    "ANALYZE FORMAT=JSON DELETE FROM app.t WHERE a = 2",
    "SET STATEMENT max_statement_time = 60 FOR ANALYZE FORMAT = 'json' DELETE FROM app.t WHERE a = 3",
    "/* x */ analyze /* y */ format /* z */ = json delete from app.t where a = 4",
)


@pytest.mark.parametrize("statement", ANALYZED)
def test_a_delete_is_refused_behind_analyze(statement: str, channel: Channel) -> None:
    made(channel, '[filter.kinds]\ndelete = "refuse"\n')
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", statement)

    with pytest.raises(UnsupportedEventError, match="delete"):
        channel.run()

    assert channel.target.query("SELECT COUNT(*) FROM app.t") == [(5,)]


@pytest.mark.parametrize("target", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_what_analyze_executes_reaches_the_target_without_it(target: str, channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", target)
    made(channel, "")
    inserted = "ANALYZE INSERT INTO app.t VALUES (6)", "ANALYZE REPLACE INTO app.t SELECT 7"
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", *ANALYZED, *inserted)

    assert channel.run() is not None

    rows = [server.query("SELECT a FROM app.t ORDER BY a") for server in (channel.source, channel.target)]
    assert rows[0] == rows[1] == [(5,), (6,), (7,)]


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_delete_is_refused_behind_variables_of_its_own(clause: str, channel: Channel) -> None:
    made(channel, '[filter.kinds]\ndelete = "refuse"\n')
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", clause.format("DELETE FROM app.t"))

    with pytest.raises(UnsupportedEventError, match="delete"):
        channel.run()

    assert channel.target.query("SELECT COUNT(*) FROM app.t") == [(5,)]


def test_a_statement_with_variables_of_its_own_reaches_the_target(channel: Channel) -> None:
    """Also with those that no transaction can set."""
    made(channel, "")
    statements = [clause.format(f"INSERT INTO app.t VALUES (1{at})") for at, clause in enumerate(CLAUSES)]
    statements += [clause.format(f"DELETE FROM app.t WHERE a < {at}") for at, clause in enumerate(CLAUSES, 6)]
    statements += [clause.format(f"CREATE TABLE app.t{at} (a INT)") for at, clause in enumerate(CLAUSES)]
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", *statements)

    assert channel.run() is not None

    assert channel.target.query("SELECT a FROM app.t") == [(int(f"1{at}"),) for at in range(len(CLAUSES))]
    assert channel.target.query("SHOW TABLES FROM app LIKE 't_'") == [(f"t{at}",) for at in range(len(CLAUSES))]


def made(channel: Channel, settings: str) -> None:
    """A table with five rows on both servers."""
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (a INT PRIMARY KEY)")
    run_on(channel.source, "INSERT INTO app.t VALUES (1), (2), (3), (4), (5)")
    assert channel.run() is not None
    channel.write_channel(settings)
