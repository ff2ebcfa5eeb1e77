"""Windows between MariaDB servers of different series: the same on both sides, or named before the first write."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.errors import PrecheckError
from tests.integration.window.conftest import ChannelOf, run_on

WAYS: Final = [
    *(("10.5", newer) for newer in ("10.11", "11.8")),
    *(("10.11", other) for other in ("10.5", "11.8")),
    *(("11.8", older) for older in ("10.5", "10.11", "11.8")),
]
BARE: Final = (
    # what a character set without COLLATE means is another collation from 11.5 on
    "CREATE DATABASE tenant_2 CHARACTER SET utf8mb4",
    "CREATE TABLE tenant_1.bare (id INT PRIMARY KEY, s VARCHAR(20), UNIQUE (s)) CHARACTER SET utf8mb4",
    "CREATE TABLE tenant_1.columns (id INT PRIMARY KEY, s VARCHAR(9) CHARACTER SET utf8mb4, u TEXT CHARSET utf8)",
    "ALTER TABLE tenant_1.columns CONVERT TO CHARACTER SET utf8mb4",
    "CREATE FUNCTION tenant_1.f(a VARCHAR(9)) RETURNS VARCHAR(20) CHARSET utf8mb4 DETERMINISTIC RETURN CONCAT(a, 'x')",
    "CREATE TABLE tenant_2.plain (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(20))",
    "INSERT INTO tenant_1.bare VALUES (1, 'a'), (2, 'b'), (3, 'ß')",
    "INSERT INTO tenant_2.plain (s) VALUES ('a'), ('A '), ('ä')",
)
NAMED: Final = (
    "CREATE TABLE tenant_1.named (id INT PRIMARY KEY, s VARCHAR(20), b VARBINARY(9)) "
    "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
    "INSERT INTO tenant_1.named (id, s) VALUES (1, 'é'), (2, 'x')",
    "SET SESSION binlog_format = STATEMENT",
    "INSERT INTO tenant_1.named (id, s) VALUES (3, 'É'), (4, NULL)",
    "UPDATE tenant_1.named SET s = CONCAT(s, '!') WHERE s = 'e'",
    "SET SESSION binlog_format = ROW",
)
"""What every series takes as it is."""
VERSIONED: Final = (
    "CREATE TABLE tenant_1.versioned (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING",
    "INSERT INTO tenant_1.versioned VALUES (1, 1), (2, 2)",
    "CREATE TABLE tenant_1.periods (id INT PRIMARY KEY, n INT, a TIMESTAMP(6) GENERATED ALWAYS AS ROW START, "
    "b TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (a, b)) WITH SYSTEM VERSIONING",
    "INSERT INTO tenant_1.periods (id, n) VALUES (1, 1), (2, 2)",
    "UPDATE tenant_1.periods SET n = 3 WHERE id = 1",
    "DELETE FROM tenant_1.periods WHERE id = 2",
)
"""Between servers that keep the end of current rows at one time."""
SEQUENCE: Final = ("CREATE SEQUENCE tenant_1.s", "DO NEXTVAL(tenant_1.s)")
VERSIONED_LATER: Final = ("UPDATE tenant_1.versioned SET n = n + 1", "DELETE FROM tenant_1.versioned WHERE id = 2")
NEWEST: Final = (
    "CREATE TABLE tenant_1.vectors (id INT PRIMARY KEY, v VECTOR(3) NOT NULL, VECTOR INDEX (v))",
    "CREATE TABLE tenant_1.far (id INT PRIMARY KEY, at TIMESTAMP(6) NULL)",
    "INSERT INTO tenant_1.far VALUES (1, '2105-12-31 23:59:59.5'), (2, NULL)",
    "INSERT INTO tenant_1.vectors VALUES (1, VEC_FromText('[1,2,3]')), (2, VEC_FromText('[0.1,-2e10,0]'))",
    "SET SESSION character_set_collations = 'utf8mb4=utf8mb4_bin'",
    "CREATE TABLE tenant_1.own (s CHAR(3) PRIMARY KEY) CHARACTER SET utf8mb4",
    "SET SESSION character_set_collations = DEFAULT",
    "SET SESSION system_versioning_insert_history = 1, binlog_format = STATEMENT",
    "INSERT INTO tenant_1.periods (id, n, a, b) VALUES (9, 9, '2001-01-01', '2002-01-01')",
    "SET SESSION system_versioning_insert_history = 0, binlog_format = ROW",
)
"""What came with 11.8, and sessions that set what others have by default."""
NEWEST_LATER: Final = (
    "INSERT INTO tenant_1.vectors VALUES (3, VEC_FromText('[3,3,3]')), (4, VEC_FromText('[4,4,4]'))",
    "UPDATE tenant_1.vectors SET v = VEC_FromText('[3,2,1]') WHERE id < 3",
    "DELETE FROM tenant_1.vectors WHERE id = 2",
    "UPDATE tenant_1.far SET at = '2106-02-07 06:28:15.999999'",
    "INSERT INTO tenant_1.own VALUES ('a'), ('A'), ('ä')",
)
LATER: Final = (
    "UPDATE tenant_1.named SET s = CONCAT(s, '+'), b = 'y' WHERE id < 4",
    "DELETE FROM tenant_1.named WHERE id = 2",
    "INSERT INTO tenant_1.named VALUES (2, 'again', 'z'), (9, 'new', '')",
    "UPDATE tenant_1.named SET id = id + 10",
)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_windows_between_series_leave_the_same(
    way: tuple[str, str],
    channel_of: ChannelOf,
) -> None:
    channel = channel_of(*way)
    first, later = list(NAMED), list(LATER)
    if way[0] != "11.8" or way[1] == "11.8":
        first += BARE
    if way[1] != "10.5":
        first += SEQUENCE
        later.append(SEQUENCE[1])
    if way in (("11.8", "11.8"), ("10.5", "10.11")):
        first += VERSIONED
        later += VERSIONED_LATER
    if way == ("11.8", "11.8"):
        first += NEWEST
        later += NEWEST_LATER
    # 10.5 does not have 11.8's default of sessions and refuses their statements by name
    opening = ["SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"] if way == ("11.8", "10.5") else []
    run_on(channel.source, *opening, "CREATE DATABASE tenant_1", *first)
    assert channel.run() is not None
    channel.assert_equal()
    # tables that were there before the window are folded
    channel.write_channel(blocks='reduce = "block"\n')
    run_on(channel.source, *later)
    assert channel.run() is not None
    channel.assert_equal()


@pytest.mark.parametrize("way", [("10.11", "11.8"), ("11.8", "10.11")], ids="-".join)
def test_rows_that_are_current_on_one_side_and_history_on_the_other_are_named(
    way: tuple[str, str],
    channel_of: ChannelOf,
) -> None:
    """The greatest TIMESTAMP is in 2038 up to 11.4 and in 2106 from 11.5 on, and row_end of a current row is that."""
    channel = channel_of(*way)
    run_on(channel.source, "CREATE DATABASE tenant_1", *VERSIONED)
    with pytest.raises(PrecheckError, match=r"tenant_1.versioned: end of current rows: expected 2\d+-") as refused:
        channel.run()
    assert "tenant_1.periods: end of current rows" in str(refused.value)
    assert channel.target.query("SHOW DATABASES LIKE 'tenant%'") == []


@pytest.mark.parametrize("older", ["10.5", "10.11"])
def test_a_time_that_the_target_does_not_have_is_named(
    older: str,
    channel_of: ChannelOf,
) -> None:
    """10.5.23 shows 2105 as 2005, 10.11.18 fails with 1030."""
    channel = channel_of("11.8", older)
    for server in (channel.source, channel.target):
        run_on(
            server,
            "CREATE DATABASE tenant_1",
            "CREATE TABLE tenant_1.far (id INT PRIMARY KEY, n DATETIME, at TIMESTAMP(6) NULL)",
            log=False,
        )
    run_on(
        channel.source,
        "INSERT INTO tenant_1.far VALUES (1, '2105-01-01', FROM_UNIXTIME(2147483647.999999)), (2, NULL, NULL)",
    )
    assert channel.run() is not None
    channel.assert_equal()
    run_on(channel.source, "UPDATE tenant_1.far SET at = FROM_UNIXTIME(2147483648) WHERE id = 2")
    with pytest.raises(PrecheckError, match=r"tenant_1\.far\.at: TIMESTAMP beyond 2038.* in the rows of seqno \d+"):
        channel.run()


def test_a_sequence_that_would_end_the_target_is_named(
    channel_of: ChannelOf,
) -> None:
    """10.5.23 ends with signal 11 at a sequence's rows in a BINLOG statement."""
    channel = channel_of("10.11", "10.5")
    run_on(channel.source, "CREATE DATABASE tenant_1", *SEQUENCE)
    with pytest.raises(PrecheckError, match=r"tenant_1\.s: sequence"):
        channel.run()
    for server in (channel.source, channel.target):
        run_on(server, "CREATE OR REPLACE DATABASE tenant_1", SEQUENCE[0], log=False)
    run_on(channel.source, SEQUENCE[1])
    with pytest.raises(PrecheckError, match=r"tenant_1\.s: sequence"):
        channel.run()


def test_features_that_an_older_target_lacks_are_named_in_one_error(
    channel_of: ChannelOf,
) -> None:
    channel = channel_of("11.8", "10.11")
    run_on(channel.source, "CREATE DATABASE tenant_1", *BARE, "CREATE TABLE tenant_1.v (v VECTOR(3))")
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    for named in (
        "tenant_1.bare: character set without COLLATE utf8mb4 = utf8mb4_uca1400_ai_ci",
        "tenant_1.columns: character set without COLLATE utf8mb3 = utf8mb3_uca1400_ai_ci",
        "tenant_2: character set without COLLATE",
        "tenant_1.v.v: VECTOR column",
    ):
        assert named in str(refused.value)
    assert channel.target.query("SHOW DATABASES LIKE 'tenant%'") == []


COMPARED = (
    "CONVERT('ss' USING utf8mb4) = 'ß'",
    "CAST('ss' AS CHAR CHARACTER SET utf8mb4) = CAST('ß' AS CHAR CHARACTER SET utf8mb4)",
    "CHAR(115, 115 USING utf8mb4) = CONVERT('ß' USING utf8mb4)",
    "_utf8mb4'ss' = _utf8mb4'ß'",
)
"""What 11.8 compares by its own default collation, and says so in its log."""


@pytest.mark.parametrize("older", ["10.5", "10.11"])
def test_what_a_statement_converts_is_compared_as_on_the_source_or_named(older: str, channel_of: ChannelOf) -> None:
    channel = channel_of("11.8", older)
    channel.on_both("CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, same INT)")
    general = ("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", "SET SESSION binlog_format = STATEMENT")
    rows = [f"INSERT INTO tenant_1.t VALUES ({number}, {each})" for number, each in enumerate(COMPARED)]
    # what the refusal says to do
    run_on(channel.source, *general, "SET SESSION character_set_collations = ''", *rows)
    assert channel.run() is not None
    channel.assert_equal()
    for row in rows:
        run_on(channel.source, *general, "DELETE FROM tenant_1.t", row)
    with pytest.raises(PrecheckError, match="set character_set_collations = '' there") as refused:
        channel.run()
    named = "tenant_1.t: conversion without COLLATE utf8mb4 = utf8mb4_uca1400_ai_ci, in the statement of seqno "
    assert named in str(refused.value)


@pytest.mark.parametrize("target", ["10.5", "10.11", "mysql"])
def test_a_conversion_with_its_collation_is_applied_where_the_source_s_default_is_unknown(
    target: str, channel_of: ChannelOf
) -> None:
    """The log says for such a statement what each character set means to its session, also if it does not ask."""
    channel = channel_of("11.8", target)
    column = "s VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    channel.on_both(
        "CREATE DATABASE tenant_1",
        f"CREATE TABLE tenant_1.t (id INT PRIMARY KEY, {column}, same INT)",
        "INSERT INTO tenant_1.t VALUES (1, 'ss', 7), (2, 'ß', 7)",
    )
    run_on(
        channel.source,
        "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci",
        "SET SESSION binlog_format = STATEMENT",
        "UPDATE tenant_1.t SET same = (CONVERT(s USING utf8mb4) COLLATE utf8mb4_bin) = 'ß'",
    )
    assert channel.run() is not None
    assert channel.rows_of(channel.target) == channel.rows_of(channel.source)
    assert channel.target.query("SELECT same FROM tenant_1.t ORDER BY id") == [(0,), (1,)]


@pytest.mark.parametrize("older", ["10.5", "10.11"])
def test_what_mysql_converts_is_named_where_the_target_compares_by_its_own_default(
    older: str, channel_of: ChannelOf
) -> None:
    channel = channel_of("mysql", older)
    table = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, same INT) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci"
    channel.on_both("CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", table)
    general = ("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", "SET SESSION collation_server = utf8mb4_general_ci")
    statement = "SET SESSION binlog_format = STATEMENT"
    for number, each in enumerate(COMPARED):
        run_on(channel.source, *general, statement, f"INSERT INTO tenant_1.t VALUES ({number}, {each})")
    with pytest.raises(PrecheckError, match="or log such statements as rows") as refused:
        channel.run()
    named = "tenant_1.t: conversion without COLLATE utf8mb4 = utf8mb4_0900_ai_ci, in the statement of seqno "
    assert named in str(refused.value)
