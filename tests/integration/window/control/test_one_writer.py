"""Rows reach the target in one way, whoever writes them: a lane, the search for a transaction that the target refuses,
and the replay of a skipped one."""

from __future__ import annotations

import pytest

from binlane.errors import ApplyError, DriftError
from binlane.orchestration import steps
from binlane.orchestration.plan_file import read_plan
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, last_gtid, run_on
from tests.integration.window.control.test_stop import apply_all, planned

pytestmark = requires_mysql
_TABLES = (
    "CREATE DATABASE tenant_1 COLLATE utf8mb4_general_ci",
    "CREATE TABLE tenant_1.plain (id INT PRIMARY KEY, n INT, s TEXT)",
    "CREATE TABLE tenant_1.parts (id INT PRIMARY KEY, n INT) PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE TABLE tenant_1.docs (id INT PRIMARY KEY, n INT, doc JSON)",
    "INSERT INTO tenant_1.plain VALUES (1, 1, 'a'), (2, 2, NULL), (3, 3, 'c')",
    "INSERT INTO tenant_1.parts VALUES (1, 1), (2, 2), (3, 3)",
    """INSERT INTO tenant_1.docs VALUES (1, 1, '{"a": 1, "b": "xxxxxxxxxxxxxxxxxxxx"}'), (2, 2, NULL)""",
)
_PARTIAL = ("SET SESSION binlog_row_value_options = PARTIAL_JSON", "SET SESSION binlog_row_image = 'FULL'")
_UPDATES = (
    "UPDATE tenant_1.plain SET n = n + 1, s = CONCAT(s, s)",
    "UPDATE tenant_1.parts SET id = id + 10",
    "BEGIN",
    "UPDATE tenant_1.docs SET doc = JSON_SET(doc, '$.a', 2) WHERE id = 1",
    "UPDATE tenant_1.plain p JOIN tenant_1.docs d USING (id) SET p.n = 7, d.n = 8, d.doc = JSON_SET(d.doc, '$.a', 3)",
    "UPDATE tenant_1.docs SET n = 9",
    "COMMIT",
    "UPDATE tenant_1.plain SET id = id + 1 ORDER BY id DESC",
)


@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("writer", ["binlog", "sql"])
@pytest.mark.parametrize("target", ["mariadb", "mysql"])
def test_updates_of_a_session_with_partial_json_arrive(
    channel_of: ChannelOf, target: str, writer: str, image: str
) -> None:
    """Each update is logged as a partial one, also of a table without JSON."""
    channel = channel_of("mysql", target)
    channel.write_channel(f'writer = "{writer}"\n')
    run_on(channel.source, *_TABLES)
    updates = _UPDATES if image == "FULL" else (*_UPDATES[:2], _UPDATES[-1])
    run_on(channel.source, *_PARTIAL, f"SET SESSION binlog_row_image = '{image}'", *updates)
    assert channel.run() is not None
    assert channel.rows_of(channel.target) == channel.rows_of(channel.source)


@pytest.mark.parametrize("writer", ["binlog", "sql"])
@pytest.mark.parametrize("target", ["mariadb", "mysql"])
def test_the_search_blames_the_transaction_that_the_target_refuses(
    channel_of: ChannelOf, target: str, writer: str
) -> None:
    channel = channel_of("mysql", target)
    channel.write_channel(f'writer = "{writer}"\n')
    run_on(channel.source, *_TABLES)
    assert channel.run() is not None
    run_on(channel.target, "INSERT INTO tenant_1.plain VALUES (50, 50, 'mine')", log=False)
    _write_before(channel)
    run_on(channel.source, "INSERT INTO tenant_1.plain VALUES (49, 49, 'x'), (50, 50, 'theirs')")
    guilty = last_gtid(channel.source)
    run_on(channel.source, "INSERT INTO tenant_1.plain VALUES (51, 51, 'x')")
    with pytest.raises((ApplyError, DriftError)) as refused:
        channel.run()
    found = str(refused.value)
    assert guilty in found.replace("\n", ""), found
    assert "tenant_1.plain" in found
    assert "50" in found


@pytest.mark.parametrize("writer", ["binlog", "sql"])
@pytest.mark.parametrize("target", ["mariadb", "mysql"])
def test_a_skipped_transaction_is_replayed_as_a_lane_would_have_written_it(
    channel_of: ChannelOf, target: str, writer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of("mysql", target)
    channel.write_channel(f'writer = "{writer}"\n')
    run_on(channel.source, *_TABLES)
    assert channel.run() is not None
    _write_before(channel)
    adopted = planned(channel)
    plan = read_plan(adopted["plan"])
    seqnos = [str(seqno) for seqno in range(plan.first_seqno, plan.last_seqno + 1)]
    for seqno in seqnos:
        assert channel.cli("skip", CHANNEL, "--seqno", seqno, "--reason", "test") == 0
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    for seqno in seqnos:
        assert channel.cli("replay-skipped", CHANNEL, seqno) == 0, capsys.readouterr().err
    assert channel.rows_of(channel.target) == channel.rows_of(channel.source)


def _write_before(channel: Channel) -> None:
    """Transactions of one block of which MariaDB takes some only by statements, or in another form."""
    run_on(
        channel.source,
        """INSERT INTO tenant_1.docs VALUES (11, 1, '{"a": [1, 2, {"b": null}]}'), (12, 2, NULL)""",
        *_PARTIAL,
        *_UPDATES,
        "DELETE FROM tenant_1.docs WHERE id = 11",
    )
