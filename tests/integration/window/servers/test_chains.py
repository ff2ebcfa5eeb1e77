"""A to B to C: the target of one channel is the source of the next, and each target keeps its own state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.errors import UnsupportedEventError
from binlane.model import Flavor
from binlane.shards.selection import OWN
from lab.compare import compare
from lab.servers import PrivateServer
from tests.conftest import Started, requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def chain(
    request: pytest.FixtureRequest,
    channel_of: ChannelOf,
    started: Started,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> tuple[Channel, Channel]:
    """Two channels: A to B, and B to C, which begins where B holds nothing but its own state."""
    first = channel_of(request.param, request.param)
    third = started(Flavor(request.param), f"{request.param}_third")
    clean_servers(third)
    second = Channel(first.target, third, tmp_path / "second")
    second.init()
    return first, second


def states(server: PrivateServer) -> list[tuple[object, ...]]:
    return server.query("SELECT channel, uuid, watermark_seqno FROM binlane.channels ORDER BY channel")


def test_a_chain_passes_rows_on_and_keeps_the_state_of_its_middle_server(
    chain: tuple[Channel, Channel], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = chain
    own, last = states(second.target), 0
    for seed in (1, 2):
        first.traffic(transactions=40, seed=seed, creates=True)
        assert first.run() is not None
        capsys.readouterr()
        assert second.cli("plan", CHANNEL) == 0
        assert OWN in " ".join(capsys.readouterr().out.split())
        done = second.run()
        assert done is not None
        last = done["seqno"]
        first.assert_equal()
        second.assert_equal()
        assert compare(first.source, second.target).differences == ()
    [(name, uuid, seqno)] = states(second.target)
    assert [(name, uuid)] == [each[:2] for each in own]
    assert seqno == last
    assert states(first.target)[0][1] != uuid


def test_statements_about_the_state_of_b_do_not_reach_c(chain: tuple[Channel, Channel]) -> None:
    first, second = chain
    statement_format = ["SET SESSION binlog_format = 'STATEMENT'"]
    run_on(
        first.target,
        *statement_format,
        "CREATE DATABASE tenant_1",
        "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)",
        "CREATE USER test_reader@localhost",
        "UPDATE binlane.channels SET watermark_seqno = 0",
        "USE binlane",
        "DELETE FROM positions",
        "CREATE TABLE kept (id INT)",
        "INSERT INTO tenant_1.t VALUES (1)",
        "GRANT SELECT ON binlane.* TO test_reader@localhost",
        "DROP DATABASE binlane",
    )
    before = states(second.target)
    done = second.run()
    assert done is not None
    [(_, uuid, seqno)] = states(second.target)
    assert uuid == before[0][1]
    assert seqno == done["seqno"]
    assert second.target.query("SELECT * FROM tenant_1.t") == [(1,)]
    assert second.target.query("SHOW TABLES FROM binlane LIKE 'kept'") == []
    assert second.run() is None


def test_a_statement_over_the_state_and_other_databases_is_refused(channel: Channel) -> None:
    run_on(
        channel.source,
        "CREATE DATABASE tenant_1",
        "CREATE DATABASE binlane",
        "CREATE TABLE binlane.t (id INT PRIMARY KEY)",
        "RENAME TABLE binlane.t TO tenant_1.t",
    )
    with pytest.raises(UnsupportedEventError, match=r"a statement over tenant_1 and binlane .*RENAME TABLE"):
        channel.run()
    assert channel.target.query("SHOW DATABASES LIKE 'tenant%%'") == []
