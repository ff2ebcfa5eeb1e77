"""MariaDB's REPLACE logs an update without the defaults that it gives, unless row images are whole."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from tests.integration.window.conftest import Channel, ChannelOf, run_on

TABLES = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, k INT UNIQUE, a INT DEFAULT 5, b TEXT)",
    "INSERT INTO tenant_1.t VALUES (1, 1, 1, 'x'), (2, 2, 2, 'y'), (3, 3, 3, 'z')",
    "CREATE PROCEDURE tenant_1.p() REPLACE INTO tenant_1.t (id, k) VALUES (9, 2)",
    "CREATE PROCEDURE tenant_1.q() UPDATE tenant_1.t SET a = a + 1, b = 'w' WHERE id = 1",
)
REPLACE = "REPLACE INTO tenant_1.t (id, k) VALUES (9, 2)"


def written(channel: Channel, image: str, *statements: str) -> None:
    for server in (channel.source, channel.target):
        run_on(server, *TABLES, log=False)
    run_on(channel.source, f"SET SESSION binlog_row_image = {image}", *statements)


@pytest.mark.parametrize(
    ("image", "statements"),
    [
        ("MINIMAL", (REPLACE,)),
        ("NOBLOB", (REPLACE,)),
        ("MINIMAL", (f"/* a comment */ {REPLACE.lower()}",)),
        ("MINIMAL", ("BEGIN", "UPDATE tenant_1.t SET a = 7 WHERE id = 3", REPLACE, "COMMIT")),
        ("MINIMAL", ("SET SESSION binlog_annotate_row_events = OFF", REPLACE)),
        ("MINIMAL", ("CALL tenant_1.p()",)),
    ],
)
def test_a_replace_that_the_log_has_in_part_is_named(channel: Channel, image: str, statements: tuple[str, ...]) -> None:
    written(channel, image, *statements)
    before = channel.rows_of(channel.target)
    with pytest.raises(
        PrecheckError, match=r"REPLACE of tenant_1.t with binlog_row_image MINIMAL or NOBLOB; the log lacks the def"
    ):
        channel.run()
    assert channel.rows_of(channel.target) == before
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB", "FULL"])
@pytest.mark.parametrize("annotates", ["ON", "OFF"])
@pytest.mark.paired
def test_other_changes_with_any_images_and_a_replace_with_whole_ones_arrive(
    channel: Channel, image: str, annotates: str
) -> None:
    written(
        channel,
        image,
        f"SET SESSION binlog_annotate_row_events = {annotates}",
        "UPDATE tenant_1.t SET a = 7, b = 'v' WHERE id = 3",
        "UPDATE tenant_1.t SET id = 40 WHERE id = 3",
        "INSERT INTO tenant_1.t VALUES (2, 2, 8, 'u') ON DUPLICATE KEY UPDATE a = 9, k = 20",
        "CALL tenant_1.q()",
        "REPLACE INTO tenant_1.t VALUES (9, 1, 4, 's')",
        "REPLACE INTO tenant_1.t (id) VALUES (9)",  # deletes and inserts: another unique key is the last one
        *((REPLACE,) if image == "FULL" else ()),
    )
    assert channel.run() is not None
    channel.assert_equal()


def test_mysql_logs_what_replace_gives(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    written(channel, "MINIMAL", REPLACE)
    assert channel.run() is not None
    channel.assert_equal()
