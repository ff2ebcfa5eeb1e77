"""Generated columns, which MySQL's replicas compute in the sql_mode of each source session."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

KEYED = "(first DOUBLE, computed TIME(1) GENERATED ALWAYS AS (first) VIRTUAL, KEY k (computed))"
STORED = "(first DOUBLE, computed TIME(1) GENERATED ALWAYS AS (first) STORED)"


@requires_mysql
@pytest.mark.parametrize("together", [False, True], ids=["plain", "over-two-databases"])
@pytest.mark.parametrize("made_here", [False, True], ids=["there", "made-in-the-window"])
@pytest.mark.parametrize(
    ("table", "what"),
    [(KEYED, "key k over a generated column"), (STORED, "column computed, which is generated")],
    ids=["keyed", "stored"],
)
def test_what_a_sessions_mode_computes_is_named(
    channel_of: ChannelOf, table: str, what: str, made_here: bool, together: bool
) -> None:
    """In another mode the row has another value, in silence, and its DELETE may not find it."""
    channel = channel_of("mysql", "mysql")
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE DATABASE tenant_2", "CREATE TABLE tenant_2.t (id INT)")
    if not made_here:
        run_on(channel.source, f"CREATE TABLE tenant_1.t {table}")
    assert channel.run() is not None
    if made_here:
        run_on(channel.source, f"CREATE TABLE tenant_1.t {table}")
    run_on(channel.source, "INSERT INTO tenant_1.t (first) VALUES (1.15)")
    other = ("INSERT INTO tenant_2.t VALUES (1)",) if together else ()
    run_on(
        channel.source,
        "SET SESSION sql_mode = 'TIME_TRUNCATE_FRACTIONAL'",
        *("BEGIN", "INSERT INTO tenant_1.t (first) VALUES (1.55)", *other, "COMMIT"),
        "DELETE FROM tenant_1.t WHERE computed = '00:00:01.5'",
    )
    seqno = channel.status.channel.watermark.seqno + 2 + made_here
    said = rf"tenant_1\.t: {what}: .*TIME_TRUNCATE_FRACTIONAL in a transaction of seqno {seqno};"
    with pytest.raises(PrecheckError, match=said):
        channel.run()


@requires_mysql
def test_a_table_that_is_gone_from_the_source_is_known_by_its_definition_in_the_log(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(
        channel.source,
        *("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {KEYED}"),
        "SET SESSION sql_mode = 'TIME_TRUNCATE_FRACTIONAL'",
        "INSERT INTO tenant_1.t (first) VALUES (1.55)",
        "RENAME TABLE tenant_1.t TO tenant_1.u",
    )
    with pytest.raises(PrecheckError, match=r"tenant_1\.t: column that the window generates: .*FRACTIONAL in a trans"):
        channel.run()


@requires_mysql
def test_the_targets_own_mode_is_named_as_well(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    ((usual,),) = channel.target.query("SELECT @@GLOBAL.sql_mode")
    run_on(channel.source, "CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {STORED}")
    run_on(channel.source, "INSERT INTO tenant_1.t (first) VALUES (1.55)")
    channel.target.query(f"SET GLOBAL sql_mode = '{usual},TIME_TRUNCATE_FRACTIONAL'")
    try:
        with pytest.raises(PrecheckError, match=r"found sql_mode TIME_TRUNCATE_FRACTIONAL on the target alone"):
            channel.run()
    finally:
        channel.target.query(f"SET GLOBAL sql_mode = '{usual}'")
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
@pytest.mark.parametrize(
    ("mode", "column", "is_named"),
    [
        ("PAD_CHAR_TO_FULL_LENGTH", "c CHAR(9), g VARCHAR(20) AS (CONCAT(c, '!')) STORED", True),
        ("PAD_CHAR_TO_FULL_LENGTH", "c VARCHAR(9), g VARCHAR(20) AS (CONCAT(c, '!')) STORED", False),
        ("NO_UNSIGNED_SUBTRACTION", "c INT UNSIGNED, g BIGINT AS (c - 1) STORED", True),
        ("NO_UNSIGNED_SUBTRACTION", "c INT, g BIGINT AS (c - 1) STORED", False),
        ("ALLOW_INVALID_DATES", "c INT, g VARCHAR(20) AS (c * 2) STORED, KEY ((c + 1))", False),
        ("ALLOW_INVALID_DATES", "c VARCHAR(20), KEY ((CAST(c AS DATE)))", True),
    ],
)
def test_only_expressions_that_see_the_mode_are_named(
    channel_of: ChannelOf, mode: str, column: str, is_named: bool
) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(channel.source, "CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t (id INT PRIMARY KEY, {column})")
    assert channel.run() is not None
    run_on(channel.source, f"SET SESSION sql_mode = '{mode}'", "INSERT INTO tenant_1.t (id, c) VALUES (1, '2020')")
    if is_named:
        with pytest.raises(PrecheckError, match=f"found sql_mode {mode} in a transaction"):
            channel.run()
    else:
        assert channel.run() is not None
        channel.assert_equal()


@requires_mysql
def test_a_mode_that_source_and_target_have_is_taken_for_that_of_all_sessions(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    ((usual,),) = channel.target.query("SELECT @@GLOBAL.sql_mode")
    mode = f"{usual},TIME_TRUNCATE_FRACTIONAL"
    channel.target.query(f"SET GLOBAL sql_mode = '{mode}'")
    try:
        run_on(channel.source, "CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {STORED}")
        run_on(channel.source, f"SET SESSION sql_mode = '{mode}'", "INSERT INTO tenant_1.t (first) VALUES (1.55)")
        assert channel.run() is not None
    finally:
        channel.target.query(f"SET GLOBAL sql_mode = '{usual}'")
    channel.assert_equal()


@requires_mysql
def test_a_sessions_mode_decides_nothing_of_virtual_columns_without_a_key(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(
        channel.source,
        "CREATE DATABASE tenant_1",
        "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, f DOUBLE, v TIME(1) AS (f) VIRTUAL, KEY (f))",
        "SET SESSION sql_mode = 'TIME_TRUNCATE_FRACTIONAL,PAD_CHAR_TO_FULL_LENGTH'",
        "INSERT INTO tenant_1.t (id, f) VALUES (1, 1.55), (2, 2.55)",
        "UPDATE tenant_1.t SET f = 3.55 WHERE v = '00:00:02.5'",
        "DELETE FROM tenant_1.t WHERE v = '00:00:01.5'",
    )
    assert channel.run() is not None
    run_on(
        channel.source,
        "SET SESSION sql_mode = 'TIME_TRUNCATE_FRACTIONAL'",
        # statements run in their mode, whichever it is
        f"CREATE TABLE tenant_1.u {STORED}",
        "SET SESSION binlog_format = STATEMENT",
        "INSERT INTO tenant_1.u (first) VALUES (1.55)",
        "SET SESSION binlog_format = ROW",
        "SET SESSION sql_mode = ''",
        "INSERT INTO tenant_1.u (first) VALUES (1.55)",
    )
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT id, f FROM tenant_1.t") == [(2, 3.55)]
    found = channel.target.query("SELECT CAST(computed AS CHAR) FROM tenant_1.u ORDER BY 1")
    assert found == [("00:00:01.5",), ("00:00:01.6",)]
