"""Generated columns with names of days and months, which MySQL's replicas compute in the locale of each session."""

from __future__ import annotations

from itertools import cycle
from typing import Final

import pytest

from binlane.errors import PrecheckError
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, ChannelOf, run_on

NAMED: Final = (
    "(id INT PRIMARY KEY, n INT, at DATE, month VARCHAR(20) AS (DATE_FORMAT(at, '%M')) STORED, "
    "KEY ((CAST(DATE_FORMAT(at, '%W') AS CHAR(20)))))"
)
OPENED: Final = "(id INT PRIMARY KEY, n INT, at DATE, month VARCHAR(20) AS (MONTHNAME(at)) STORED)"
GERMAN: Final = "SET SESSION lc_time_names = 'de_DE'"
LOCALES: Final = ("de_DE", "en_US", "fr_FR")
INSERT: Final = "INSERT INTO {} (id, n, at) VALUES ({}, 0, '2024-03-01')"


def write(server: PrivateServer, rounds: int, *tables: str) -> None:
    """Rows of each table in all locales in turn, changed again in the same, some of them deleted."""
    for number, locale in zip(range(rounds), cycle(LOCALES), strict=False):
        statements = [f"SET SESSION lc_time_names = '{locale}'"]
        for table in tables:
            statements += [INSERT.format(table, number), f"UPDATE {table} SET n = n + 1 WHERE id = {number}"]
            if number % 5 == 4:
                statements.append(f"DELETE FROM {table} WHERE id = {number}")
        run_on(server, *statements)


@requires_mysql
@pytest.mark.parametrize("reduce", ["off", "block", "window"])
@pytest.mark.parametrize("own", ["en_US", "de_DE"])
def test_rows_are_computed_in_the_locales_of_their_sessions(channel_of: ChannelOf, reduce: str, own: str) -> None:
    """The first table is known when the window begins, the second is made by it; ``own``: the target's locale."""
    channel = channel_of("mysql", "mysql")
    channel.write_channel("", f'reduce = "{reduce}"\n')
    channel.on_both("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {NAMED}")
    channel.target.query(f"SET GLOBAL lc_time_names = '{own}'")
    try:
        run_on(channel.source, "CREATE DATABASE tenant_2", f"CREATE TABLE tenant_2.t {NAMED}")
        write(channel.source, 12, "tenant_1.t", "tenant_2.t")
        assert channel.run() is not None
        run_on(channel.source, GERMAN, "BEGIN", *(INSERT.format("tenant_1.t", n) for n in (20, 21)), "COMMIT")
        assert channel.run() is not None
    finally:
        channel.target.query("SET GLOBAL lc_time_names = DEFAULT")
    channel.assert_equal()
    found = channel.target.query("SELECT DISTINCT month FROM tenant_1.t")
    assert {month for (month,) in found} == {"mars", "March", "März"}


@requires_mysql
@pytest.mark.parametrize("divide", ["table", "key"])
def test_shares_of_divided_shards_keep_the_locales(channel_of: ChannelOf, divide: str) -> None:
    channel = channel_of("mysql", "mysql")
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace("count = 3\n", f'count = 3\nallow_torn = true\ndivide = "{divide}"\n'))
    channel.write_shard_list("(divided)=tenant_1\n")
    tables = [f"tenant_1.t_{n}" for n in range(3)]
    channel.on_both("CREATE DATABASE tenant_1", *(f"CREATE TABLE {table} {NAMED}" for table in tables))
    write(channel.source, 12, *tables)
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
def test_a_locale_that_decides_when_a_server_opens_the_table_is_named(channel_of: ChannelOf) -> None:
    """MySQL keeps the locale of MONTHNAME() with the opened table, for whatever session uses it next."""
    channel = channel_of("mysql", "mysql")
    run_on(channel.source, "CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {OPENED}")
    run_on(channel.source, INSERT.format("tenant_1.t", 1))
    assert channel.run() is not None
    channel.target.query("SET GLOBAL lc_time_names = 'de_DE'")
    try:
        run_on(channel.source, INSERT.format("tenant_1.t", 2))
        with pytest.raises(PrecheckError, match=r"tenant_1.t: column month.*lc_time_names = de_DE on the target"):
            channel.run()
    finally:
        channel.target.query("SET GLOBAL lc_time_names = DEFAULT")
    assert channel.run() is not None
    run_on(channel.source, GERMAN, INSERT.format("tenant_1.t", 3))
    with pytest.raises(PrecheckError, match=r"column month.*lc_time_names other than en_US in a transaction of seqno"):
        channel.run()
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.t") == [(2,)]


@requires_mysql
@pytest.mark.parametrize("text", ['writer = "sql"\n', 'on_conflict = "overwrite"\n'])
def test_locales_are_named_where_rows_are_written_in_one(channel_of: ChannelOf, text: str) -> None:
    channel = channel_of("mysql", "mysql")
    channel.on_both("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {NAMED}")
    channel.write_channel(text)
    run_on(channel.source, INSERT.format("tenant_1.t", 1))
    assert channel.run() is not None
    run_on(channel.source, GERMAN, INSERT.format("tenant_1.t", 2))
    with pytest.raises(PrecheckError, match=r"tenant_1.t: column month.*lc_time_names other than en_US"):
        channel.run()
    channel.write_channel(f"{text}allow_unsafe = true\n")
    assert channel.run() is not None
