"""MariaDB's system-versioned tables with transaction ids: a version of a row for each transaction of the target.

A server logs their changes as statements, whatever binlog_format says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from binlane.errors import PrecheckError
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, run_on

_COLUMNS: Final = (
    "(id INT PRIMARY KEY, v INT, began {0} GENERATED ALWAYS AS ROW START, ended {0} GENERATED ALWAYS AS ROW END, "
    "PERIOD FOR SYSTEM_TIME (began, ended)) WITH SYSTEM VERSIONING"
)
_BY_ID: Final = _COLUMNS.format("BIGINT UNSIGNED")
_BY_TIME: Final = _COLUMNS.format("TIMESTAMP(6)")
_REFUSED: Final = r"tenant_1.kept: history by transaction ids: .*set \[blocks\] transactions = 1 and reduce = "


def changes(table: str) -> Sequence[str]:
    """Several versions of the rows, in transactions that one block would hold together."""
    updates = (f"UPDATE tenant_1.{table} SET v = v + {n}" for n in range(4))
    return (f"INSERT INTO tenant_1.{table} (id, v) VALUES (1, 1), (2, 2)", *updates)


def versions(server: PrivateServer, table: str) -> tuple[tuple[Any, ...], ...]:
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, v FROM tenant_1.{table} FOR SYSTEM_TIME ALL ORDER BY id, v")
        return tuple(cursor.fetchall())


@pytest.mark.parametrize("made", ["before", "in the window", "altered", "like", "renamed"])
def test_a_window_whose_blocks_would_lose_versions_is_refused(channel: Channel, made: str) -> None:
    first = {
        "before": f"CREATE TABLE tenant_1.kept {_BY_ID}",
        "in the window": "DO 0",
        "altered": "CREATE TABLE tenant_1.kept (id INT PRIMARY KEY, v INT)",
    }.get(made, f"CREATE TABLE tenant_1.other {_BY_ID}")
    then = {
        "before": "DO 0",
        "in the window": f"CREATE TABLE tenant_1.kept {_BY_ID}",
        "altered": "ALTER TABLE tenant_1.kept ADD COLUMN began BIGINT(20) UNSIGNED GENERATED ALWAYS AS ROW START, "
        "ADD COLUMN ended BIGINT UNSIGNED AS ROW END, ADD PERIOD FOR SYSTEM_TIME (began, ended), "
        "ADD SYSTEM VERSIONING",
        "like": "CREATE TABLE tenant_1.kept LIKE tenant_1.other",
        "renamed": "RENAME TABLE tenant_1.other TO tenant_1.kept",
    }[made]
    channel.on_both("CREATE DATABASE tenant_1", first)
    run_on(channel.source, then, *changes("kept"))
    with pytest.raises(PrecheckError, match=_REFUSED):
        channel.run()


def test_blocks_of_one_transaction_keep_every_version(channel: Channel) -> None:
    channel.write_channel(blocks='reduce = "off"\n', transactions=1)
    run_on(channel.source, "CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.kept {_BY_ID}", *changes("kept"))
    assert channel.run() is not None
    found = versions(channel.source, "kept")
    assert len(found) == 10
    assert versions(channel.target, "kept") == found


def test_versions_by_time_are_kept_in_blocks_of_any_size(channel: Channel) -> None:
    run_on(channel.source, "CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.timed {_BY_TIME}", *changes("timed"))
    assert channel.run() is not None
    found = versions(channel.source, "timed")
    assert len(found) == 10
    assert versions(channel.target, "timed") == found
