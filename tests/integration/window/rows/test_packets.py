"""Rows that are longer as statements than the target takes: named before the first write; those that fit pass."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlane.errors import PrecheckError
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, fresh_channel, run_on

PACKET = 2 << 20


@contextlib.contextmanager
def small_packets(server: PrivateServer) -> Iterator[None]:
    ((before,),) = server.query("SELECT @@GLOBAL.max_allowed_packet")
    server.query(f"SET GLOBAL max_allowed_packet = {PACKET}")
    try:
        yield
    finally:
        server.query(f"SET GLOBAL max_allowed_packet = {before}")


def refused(channel: Channel, table: str) -> int:
    """Run, expect the table's row to be named, and nothing written; the packet that is asked for."""
    before = channel.rows_of(channel.target)
    with pytest.raises(PrecheckError) as error:
        channel.run()
    assert channel.rows_of(channel.target) == before
    said = re.search(
        rf"^{re.escape(table)}: a row of seqno \d+, as a statement: expected max_allowed_packet of (\d+) bytes or more"
        rf", found {PACKET}; SET GLOBAL max_allowed_packet = (\d+) on the target",
        str(error.value), re.M,
    )  # fmt: skip
    assert said is not None, str(error.value)
    assert len(str(error.value).splitlines()) == 2
    return int(said[2])


@requires_mysql
@pytest.mark.parametrize(("target_name", "writer"), [("mariadb_target", "auto"), ("mysql_target", "sql")])
def test_a_json_document_that_is_too_long_as_text_is_named_before_anything_is_written(
    target_name: str,
    writer: str,
    mysql_source: PrivateServer,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    """A control character is 1 byte in the log, 6 as text, 12 in a statement."""
    target = request.getfixturevalue(target_name)
    channel = fresh_channel(mysql_source, target, tmp_path, clean_servers)
    channel.write_channel(f'writer = "{writer}"\n')
    for server in (mysql_source, target):
        run_on(server, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, j JSON)", log=False)
    insert = "INSERT INTO tenant_1.t VALUES ({0}, JSON_OBJECT('k', REPEAT(CHAR(1 USING utf8mb4), {1})))"
    with small_packets(target):
        mysql_source.query(insert.format(1, 150_000))
        assert channel.run() is not None
        assert channel.rows_of(target) == channel.rows_of(mysql_source)
        mysql_source.query(insert.format(2, 200_000))
        needed = refused(channel, "tenant_1.t")
        assert 2_400_000 < needed < 2_420_000
        target.query(f"SET GLOBAL max_allowed_packet = {needed}")
        assert channel.run() is not None
    assert channel.rows_of(target) == channel.rows_of(mysql_source)


def test_a_row_found_by_all_its_columns_needs_both_images_and_one_with_a_key_does_not(
    mariadb_source: PrivateServer, mariadb_target: PrivateServer, channel_of: ChannelOf
) -> None:
    channel = channel_of("mariadb", "mariadb")
    channel.write_channel('writer = "sql"\n', 'reduce = "off"\n')
    for server in (mariadb_source, mariadb_target):
        run_on(
            server,
            "CREATE DATABASE tenant_1",
            "CREATE TABLE tenant_1.k (id INT PRIMARY KEY, b LONGBLOB)",
            "CREATE TABLE tenant_1.u (id INT, b LONGBLOB)",
            *(f"INSERT INTO tenant_1.{name} VALUES (1, REPEAT('a', 700000)), (2, 'b')" for name in "ku"),
            log=False,
        )
    with small_packets(mariadb_target):
        mariadb_source.query("UPDATE tenant_1.k SET b = REPEAT('c', 700000) WHERE id = 1")
        mariadb_source.query("INSERT INTO tenant_1.u VALUES (3, REPEAT('c', 700000))")
        assert channel.run() is not None
        assert channel.rows_of(mariadb_target) == channel.rows_of(mariadb_source)
        mariadb_source.query("UPDATE tenant_1.u SET b = REPEAT('c', 700000) WHERE id = 1")
        needed = refused(channel, "tenant_1.u")
        assert 2_800_000 < needed < 2_820_000
        mariadb_target.query(f"SET GLOBAL max_allowed_packet = {needed}")
        assert channel.run() is not None
    assert channel.rows_of(mariadb_target) == channel.rows_of(mariadb_source)
