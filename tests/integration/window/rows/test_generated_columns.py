"""Generated columns, which MySQL's replicas compute in the sql_mode of each source session."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Final

import pytest

from binlane.apply.lane.replay_skipped import replay_skipped
from binlane.errors import DriftError, PrecheckError, TableMismatchError
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.compare import compare
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, database_of, run_on
from tests.integration.window.xa.test_xa import end, prepare

KEYED: Final = "(first DOUBLE, computed TIME(1) GENERATED ALWAYS AS (first) VIRTUAL, KEY k (computed))"
STORED: Final = "(first DOUBLE, computed TIME(1) GENERATED ALWAYS AS (first) STORED)"
CUT: Final = "SET SESSION sql_mode = 'TIME_TRUNCATE_FRACTIONAL'"
NONE: Final = "SET SESSION sql_mode = ''"
COMPUTED: Final = (
    "(id INT PRIMARY KEY, n INT, f DOUBLE, s VARCHAR(20), c CHAR(5), at TIME(1) AS (f) STORED, "
    "d DATE AS (CAST(s AS DATE)) STORED, l INT AS (LENGTH(c)) STORED, "
    "KEY ((CAST(f AS TIME(1)))))"
)
MODES: Final = (
    "TIME_TRUNCATE_FRACTIONAL",
    "",
    "PAD_CHAR_TO_FULL_LENGTH",
    "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
    "ALLOW_INVALID_DATES",
)
VALUES: Final = "{0}, {0}, 1.55, '{1}', 'ab'"
DATES: Final = ("2020-02-00", "0000-00-00", "2020-02-31", "2020-02-03")


def spread(channel: Channel, lanes: int, reduce: str, text: str = "") -> None:
    channel.write_channel(text, f'reduce = "{reduce}"\n')
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace("count = 3\n", f"count = {lanes}\n"))


def write(server: PrivateServer, tables: tuple[str, ...], rounds: int) -> None:
    """Rows of each table in all modes in turn, changed again in the mode of their insert, some of them deleted."""
    dates = cycle(DATES)
    for number in range(rounds):
        mode = MODES[number % len(MODES)]
        packs = f"SET SESSION binlog_transaction_compression = {number % 4 == 3:d}"
        statements = [f"SET SESSION sql_mode = '{mode}'", packs]
        for table in tables:
            date = DATES[3] if mode.startswith("STRICT") else next(dates)
            values = VALUES.format(number, date)
            statements.append(f"INSERT INTO {table} (id, n, f, s, c) VALUES ({values})")
            statements.append(f"UPDATE {table} SET n = n + 1 WHERE id = {number}")
            if number % 5 == 4:
                statements.append(f"DELETE FROM {table} WHERE id = {number}")
        run_on(server, *statements)


@requires_mysql
@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("reduce", ["off", "block", "window"])
def test_rows_are_computed_in_the_modes_of_their_sessions(channel_of: ChannelOf, reduce: str, lanes: int) -> None:
    """The first tables are known when the window begins, the last is made by it."""
    channel = channel_of("mysql", "mysql")
    spread(channel, lanes, reduce)
    tables = tuple(f"tenant_{n}.t" for n in (1, 2))
    channel.on_both(
        *(f"CREATE DATABASE tenant_{n}" for n in (1, 2, 3)),
        "CREATE TABLE tenant_1.plain (id INT PRIMARY KEY)",
        *(f"CREATE TABLE {table} {COMPUTED}" for table in tables),
    )
    run_on(channel.source, f"CREATE TABLE tenant_3.t {COMPUTED}")
    write(channel.source, (*tables, "tenant_3.t"), 40)
    assert channel.run() is not None
    channel.assert_equal()
    for table in tables:
        # each value is there, as rounded and as cut, short and padded
        found = channel.target.query(f"SELECT DISTINCT CAST(at AS CHAR), l FROM {table} ORDER BY 1, 2")
        assert found == [("00:00:01.5", 2), ("00:00:01.6", 2), ("00:00:01.6", 5)]
        for server in (channel.source, channel.target):
            ((by_key,),) = server.query(f"SELECT COUNT(*) FROM {table} WHERE CAST(f AS TIME(1)) = '00:00:01.5'")
            assert by_key == 8


FOUND: Final = {
    f"{name} {place} {scope}": (table, made_here, together)
    for name, table in (("keyed", KEYED), ("stored", STORED))
    for place, made_here in (("there", False), ("made-in-the-window", True))
    for scope, together in (("plain", False), ("over-two-databases", True))
}
COUNTS: Final = {"1.2": 0, "1.4": 1, "1.7": 1, "1.8": 0}


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows have a value on each server, and what differs, by the case's database."""

    counts: Mapping[str, Sequence[Mapping[str, int]]]
    differences: Sequence[str]


@pytest.fixture(scope="module")
def rows_found(shared_channel_of: ChannelOf) -> Callable[[str], Rows]:
    """One window of all cases, by the way to reduce it."""

    @functools.cache
    def window(reduce: str) -> Rows:
        channel = shared_channel_of("mysql", "mysql")
        spread(channel, 3, reduce)
        for case, (table, made_here, _) in FOUND.items():
            name = database_of(case)
            channel.on_both(
                *(f"CREATE DATABASE {name}", f"CREATE DATABASE {name}_2", f"CREATE TABLE {name}_2.t (id INT)"),
                *(() if made_here else (f"CREATE TABLE {name}.t {table}",)),
            )
        for case, (table, made_here, together) in FOUND.items():
            name = database_of(case)
            if made_here:
                run_on(channel.source, f"CREATE TABLE {name}.t {table}")
            run_on(channel.source, f"INSERT INTO {name}.t (first) VALUES (1.35)")
            other = (f"INSERT INTO {name}_2.t VALUES (1)",) if together else ()
            run_on(
                channel.source,
                *(CUT, "BEGIN", f"INSERT INTO {name}.t (first) VALUES (1.25), (1.75)", *other, "COMMIT"),
                f"DELETE FROM {name}.t WHERE computed = '00:00:01.2'",
            )
        assert channel.run() is not None
        counts = {
            name: [
                {
                    value: server.query(f"SELECT COUNT(*) FROM {name}.t WHERE computed = '00:00:0{value}'")[0][0]
                    for value in COUNTS
                }
                for server in (channel.source, channel.target)
            ]
            for name in map(database_of, FOUND)
        }
        return Rows(counts, compare(channel.source, channel.target).differences)

    return window


@requires_mysql
@pytest.mark.parametrize("reduce", ["off", "block", "window"])
@pytest.mark.parametrize("case", FOUND)
def test_a_row_is_found_by_what_its_session_has_computed(
    rows_found: Callable[[str], Rows], case: str, reduce: str
) -> None:
    """In another mode the row has another value, in silence, and its DELETE does not find it by the key."""
    found = rows_found(reduce)
    assert found.counts[database_of(case)] == [COUNTS, COUNTS]
    assert found.differences == ()


@requires_mysql
@pytest.mark.parametrize("reduce", ["off", "block", "window"])
def test_a_mode_that_the_target_has_as_well_is_not_that_of_all_sessions(channel_of: ChannelOf, reduce: str) -> None:
    channel = channel_of("mysql", "mysql")
    spread(channel, 3, reduce)
    channel.on_both("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {STORED}")
    ((usual,),) = channel.target.query("SELECT @@GLOBAL.sql_mode")
    channel.target.query(f"SET GLOBAL sql_mode = '{usual},TIME_TRUNCATE_FRACTIONAL'")
    try:
        for setting in (CUT, NONE, CUT, NONE):
            run_on(channel.source, setting, "INSERT INTO tenant_1.t (first) VALUES (1.55)")
        run_on(
            channel.source, NONE, f"CREATE TABLE tenant_1.u {STORED}", "INSERT INTO tenant_1.u (first) VALUES (1.55)"
        )
        assert channel.run() is not None
    finally:
        channel.target.query(f"SET GLOBAL sql_mode = '{usual}'")
    channel.assert_equal()


@requires_mysql
@pytest.mark.parametrize(("divide", "reduce"), [("table", "block"), ("key", "block"), ("key", "window")])
def test_shares_of_divided_shards_keep_the_modes(channel_of: ChannelOf, divide: str, reduce: str) -> None:
    channel = channel_of("mysql", "mysql")
    spread(channel, 3, reduce)
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace("count = 3\n", f'count = 3\nallow_torn = true\ndivide = "{divide}"\n'))
    channel.write_shard_list("(divided)=tenant_1\n")
    tables = tuple(f"tenant_1.t_{n}" for n in range(3))
    channel.on_both("CREATE DATABASE tenant_1", *(f"CREATE TABLE {table} {COMPUTED}" for table in tables))
    write(channel.source, tables, 30)
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
def test_prepared_rows_are_computed_in_the_mode_of_their_own_window(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(channel.source, "CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {STORED}")
    insert = "INSERT INTO tenant_1.t (first) VALUES (1.55)"
    prepare(channel, "'cut'", insert, setting=CUT)
    prepare(channel, "'rounded'", insert, setting=NONE)
    run_on(channel.source, "CREATE DATABASE tenant_2")
    assert channel.run() is not None
    end(channel, "XA COMMIT 'rounded'")
    prepare(channel, "'here'", insert, setting=CUT)
    end(channel, "XA COMMIT 'here'")
    end(channel, "XA COMMIT 'cut'")
    run_on(channel.source, NONE, insert)
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
def test_a_mode_that_a_session_sets_inside_a_transaction_holds_from_its_next_statement_on(
    channel_of: ChannelOf,
) -> None:
    """A row event has no mode: a replica, which has been tried with these transactions, has it from BEGIN or SAVEPOINT,
    also where the source's session has another one meanwhile."""
    channel = channel_of("mysql", "mysql")
    channel.on_both(
        "CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {STORED}", f"CREATE TABLE tenant_1.u {STORED}"
    )
    insert = "INSERT INTO tenant_1.{} (first) VALUES ({}.55)"
    into_t = [insert.format("t", number) for number in range(1, 5)]
    run_on(
        channel.source,
        NONE,
        "BEGIN",
        into_t[0],
        CUT,
        "SAVEPOINT s",
        into_t[1],
        NONE,
        "SAVEPOINT r",
        into_t[2],
        "COMMIT",
    )
    run_on(channel.source, CUT, "BEGIN", into_t[3], NONE, "SAVEPOINT s", insert.format("t", 5), "COMMIT")
    assert channel.run() is not None
    channel.assert_equal()
    into_u = [insert.format("u", number) for number in range(1, 5)]
    run_on(channel.source, NONE, "BEGIN", into_u[0], CUT, into_u[1], "COMMIT")
    run_on(channel.source, CUT, "BEGIN", NONE, into_u[2], CUT, "SAVEPOINT s", NONE, into_u[3], "COMMIT")
    assert channel.run() is not None
    found = channel.target.query("SELECT CAST(computed AS CHAR) FROM tenant_1.u ORDER BY first")
    assert found == [("00:00:01.6",), ("00:00:02.6",), ("00:00:03.6",), ("00:00:04.5",)]


@requires_mysql
def test_rows_that_commit_by_themselves_keep_the_modes(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    channel.write_channel("allow_nontransactional = true\n")
    channel.on_both("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {STORED} ENGINE=MyISAM")
    for setting in (CUT, NONE, CUT):
        run_on(channel.source, setting, "INSERT INTO tenant_1.t (first) VALUES (1.55), (1.75)")
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
@pytest.mark.parametrize("reduce", ["off", "block"])
def test_large_transactions_keep_the_modes(channel_of: ChannelOf, reduce: str) -> None:
    channel = channel_of("mysql", "mysql")
    channel.write_channel("", f'reduce = "{reduce}"\nbytes = 65536\n')
    channel.on_both("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {STORED}")
    values = ", ".join(["(1.55)"] * 9000)
    for setting in (CUT, NONE, CUT):
        run_on(channel.source, setting, f"INSERT INTO tenant_1.t (first) VALUES {values}")
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
def test_a_skipped_transaction_is_replayed_in_its_mode(channel_of: ChannelOf) -> None:
    """What is applied one by one keeps the modes as well."""
    channel = channel_of("mysql", "mysql")
    channel.on_both("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {STORED}")
    insert = "INSERT INTO tenant_1.t (first) VALUES (1.55)"
    for setting in (CUT, NONE, CUT):
        run_on(channel.source, setting, insert)
    first = channel.status.channel.watermark.seqno + 1
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    assert channel.cli("skip", CHANNEL, "--seqno", str(first + 2), "--reason", "a test") == 0
    channel.go_on(window)
    assert len(channel.target.query("SELECT * FROM tenant_1.t")) == 2
    replay_skipped(engine_of(channel.endpoints.target), CHANNEL, first + 2, is_confirmed=True)
    channel.assert_equal()


def refusal_of(channel: Channel, text: str, table: str = STORED) -> tuple[str, int]:
    """What a window of two sessions' modes is refused with, and the seqno in front of it."""
    channel.write_channel(text)
    channel.on_both("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {table}")
    for setting in (CUT, NONE):
        run_on(channel.source, setting, "INSERT INTO tenant_1.t (first) VALUES (1.55)")
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    return str(refused.value), channel.status.channel.watermark.seqno


NAMED: Final = r"tenant_1\.t: column computed, which is generated: .*"


@requires_mysql
@pytest.mark.parametrize("text", ['writer = "sql"\n', 'on_conflict = "overwrite"\n'], ids=["sql", "overwrite"])
def test_modes_are_named_where_rows_are_written_in_one(channel_of: ChannelOf, text: str) -> None:
    said, before = refusal_of(channel_of("mysql", "mysql"), text)
    found = f"found sql_mode TIME_TRUNCATE_FRACTIONAL in a transaction of seqno {before + 1};"
    assert re.search(f"{NAMED}{found}", said), said


@requires_mysql
@pytest.mark.parametrize("text", ['writer = "sql"\n', 'on_conflict = "overwrite"\n'], ids=["sql", "overwrite"])
def test_rows_that_are_written_in_one_mode_do_not_have_the_target_s(channel_of: ChannelOf, text: str) -> None:
    channel = channel_of("mysql", "mysql")
    ((usual,),) = channel.target.query("SELECT @@GLOBAL.sql_mode")
    channel.target.query(f"SET GLOBAL sql_mode = '{usual},TIME_TRUNCATE_FRACTIONAL'")
    try:
        channel.on_both("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {STORED}")
        channel.write_channel(text)
        run_on(channel.source, NONE, "INSERT INTO tenant_1.t (first) VALUES (1.55)")
        assert channel.run() is not None
        channel.assert_equal()
        before = channel.status.channel.watermark.seqno
        run_on(channel.source, CUT, "INSERT INTO tenant_1.t (first) VALUES (1.55)")
        found = f"found sql_mode TIME_TRUNCATE_FRACTIONAL in a transaction of seqno {before + 1};"
        with pytest.raises(PrecheckError, match=NAMED + found):
            channel.run()
    finally:
        channel.target.query(f"SET GLOBAL sql_mode = '{usual}'")


@requires_mysql
def test_modes_are_named_where_the_target_is_of_the_other_family(channel_of: ChannelOf) -> None:
    # MariaDB takes no expression that a conversion of its own may change
    table = "(first DOUBLE, computed INT GENERATED ALWAYS AS (HOUR(SEC_TO_TIME(first))) STORED)"
    said, before = refusal_of(channel_of("mysql", "mariadb"), "", table)
    found = f"found sql_mode TIME_TRUNCATE_FRACTIONAL in a transaction of seqno {before + 1};"
    assert re.search(f"{NAMED}{found}", said), said


@requires_mysql
@pytest.mark.parametrize("has_it", ["source", "target"])
def test_what_a_server_decides_when_it_opens_the_table_is_named(channel_of: ChannelOf, has_it: str) -> None:
    channel = channel_of("mysql", "mysql")
    table = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, c INT UNSIGNED, g BIGINT AS (c - 1) STORED)"
    channel.on_both("CREATE DATABASE tenant_1", table)
    ((usual,),) = channel.target.query("SELECT @@GLOBAL.sql_mode")
    mode = "NO_UNSIGNED_SUBTRACTION"
    channel.target.query(f"SET GLOBAL sql_mode = '{f'{usual},{mode}' if has_it == 'target' else usual}'")
    run_on(
        channel.source,
        f"SET SESSION sql_mode = '{mode if has_it == 'source' else ''}'",
        "INSERT INTO tenant_1.t (id, c) VALUES (1, 2)",
    )
    try:
        with pytest.raises(PrecheckError, match=rf"column g, which is generated: .*found sql_mode {mode} "):
            channel.run()
    finally:
        channel.target.query(f"SET GLOBAL sql_mode = '{usual}'")


@requires_mysql
def test_a_table_that_is_gone_from_the_source_is_known_by_its_definition_in_the_log(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    channel.write_channel('writer = "sql"\n')
    run_on(
        channel.source,
        *("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {KEYED}"),
        *(CUT, "INSERT INTO tenant_1.t (first) VALUES (1.55)"),
        "RENAME TABLE tenant_1.t TO tenant_1.u",
    )
    with pytest.raises(PrecheckError, match=r"tenant_1\.t: column that the window generates: .*FRACTIONAL in a trans"):
        channel.run()


SEEN: Final = {
    "padding": ("PAD_CHAR_TO_FULL_LENGTH", "c CHAR(9), g VARCHAR(20) AS (CONCAT(c, '!')) STORED"),
    "padding behind a column": (
        "PAD_CHAR_TO_FULL_LENGTH",
        "c CHAR(9), v VARCHAR(20) AS (c), g VARCHAR(20) AS (CONCAT(v, '!')) STORED",
    ),
    "subtraction": ("NO_UNSIGNED_SUBTRACTION", "c INT UNSIGNED, g BIGINT AS (c - 1) STORED"),
    "cut times": ("TIME_TRUNCATE_FRACTIONAL", "c VARCHAR(20), KEY ((CAST(c AS TIME(1))))"),
    "cut times behind a column": (
        "TIME_TRUNCATE_FRACTIONAL",
        "c VARCHAR(20), v VARCHAR(20) AS (c + INTERVAL 1 DAY), KEY ((CONCAT(v, 1)))",
    ),
}
UNSEEN: Final = {
    "nothing to pad": ("PAD_CHAR_TO_FULL_LENGTH", "c VARCHAR(9), g VARCHAR(20) AS (CONCAT(c, '!')) STORED"),
    "no subtraction": ("NO_UNSIGNED_SUBTRACTION", "c INT, g BIGINT AS (c + 1) STORED"),
    "no date": ("ALLOW_INVALID_DATES", "c INT, g VARCHAR(20) AS (c * 2) STORED, KEY ((c + 1))"),
}


def computed_in(channel: Channel, cases: Mapping[str, tuple[str, str]]) -> None:
    """A row of each case, in its mode, in a table of its own that both servers have."""
    channel.write_channel('writer = "sql"\n')
    for case, (mode, column) in cases.items():
        name = database_of(case)
        channel.on_both(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, {column})")
        run_on(channel.source, f"SET SESSION sql_mode = '{mode}'", f"INSERT INTO {name}.t (id, c) VALUES (1, '2020')")


@pytest.fixture(scope="module")
def modes_named(shared_channel_of: ChannelOf) -> list[str]:
    """The lines of the refusal of a window that has all cases."""
    channel = shared_channel_of("mysql", "mysql")
    computed_in(channel, SEEN)
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    return str(refused.value).splitlines()


@requires_mysql
@pytest.mark.parametrize("case", SEEN)
def test_expressions_that_see_the_mode_are_named(modes_named: list[str], case: str) -> None:
    said = rf"{database_of(case)}\.t: .*found sql_mode {SEEN[case][0]} in a transaction"
    assert [line for line in modes_named if re.search(said, line)], "\n".join(modes_named)


OF_DATES: Final = (
    "(id INT PRIMARY KEY, s VARCHAR(20), e DATE, d DATE AS (CAST(s AS DATE)) STORED, m INT AS (MONTH(e)) STORED)"
)
INVALID: Final = "ALLOW_INVALID_DATES"


@requires_mysql
@pytest.mark.parametrize(("source", "target"), [("mysql", "mysql"), ("mariadb", "mariadb"), ("mariadb", "mysql")])
def test_statements_that_write_rows_allow_the_dates_that_the_sessions_did(
    channel_of: ChannelOf, source: str, target: str
) -> None:
    """MariaDB logs no mode with rows: there, usual ones are taken."""
    channel = channel_of(source, target)
    # the families read dates of texts by rules of their own
    channel.write_channel(f'writer = "sql"\nallow_unsafe = {str(source != target).lower()}\n')
    channel.on_both("CREATE DATABASE tenant_1 COLLATE utf8mb4_general_ci", f"CREATE TABLE tenant_1.t {OF_DATES}")
    usual = "SET SESSION sql_mode = ''"
    texts = "'2020-02-31', NULL), ({}, '2020-02-03', '2020-02-29'), ({}, 'x', '0000-00-00'"
    statements = [usual, f"INSERT INTO tenant_1.t (id, s, e) VALUES (1, {texts.format(2, 3)})"]
    if source == "mysql":
        statements += [
            f"SET SESSION sql_mode = '{INVALID}'",
            f"INSERT INTO tenant_1.t (id, s, e) VALUES (4, {texts.format(5, 6)})",
        ]
    statements += [
        f"SET SESSION sql_mode = '{INVALID}'",
        "INSERT INTO tenant_1.t (id, e) VALUES (7, '2020-02-31'), (8, '2021-02-29')",
        usual,
        "UPDATE tenant_1.t SET s = '2020-04-31' WHERE id = 2",
    ]
    run_on(channel.source, *statements)
    assert channel.run() is not None
    query = "SELECT id, s, CAST(e AS CHAR), CAST(d AS CHAR), m FROM tenant_1.t ORDER BY id"
    assert channel.target.query(query) == channel.source.query(query)
    assert channel.target.query("SELECT d FROM tenant_1.t WHERE id < 3") == [(None,), (None,)]


@requires_mysql
def test_expressions_that_do_not_see_the_mode_are_not_named(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    computed_in(channel, UNSEEN)
    assert channel.run() is not None
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


ZONED: Final = (
    "(id INT PRIMARY KEY, n INT, ts TIMESTAMP NULL, shown VARCHAR(40) AS (CAST(ts AS CHAR)) STORED, "
    "day DATE AS (DATE(ts)) STORED)"
)
ZONES: Final = ("+05:00", "-11:00", "SYSTEM", "+00:00")


def write_in_zones(server: PrivateServer, rounds: int, *tables: str) -> None:
    """Rows in all zones in turn; each statement uses its zone, so that the log has it."""
    for number in range(rounds):
        packs = f"SET SESSION binlog_transaction_compression = {number % 5 == 4:d}"
        for table in tables:
            run_on(
                server,
                f"SET SESSION time_zone = '{ZONES[number % len(ZONES)]}'",
                *(() if server.flavor is Flavor.MARIADB else (packs,)),
                f"INSERT INTO {table} (id, ts) VALUES ({number}, '2020-01-01 12:00:00')",
                f"UPDATE {table} SET n = 7 WHERE id = {number}",
                f"UPDATE {table} SET ts = '2020-07-01 23:30:00' WHERE id = {number // 2}",
            )


@requires_mysql
@pytest.mark.parametrize("reduce", ["off", "block", "window"])
def test_rows_are_computed_in_the_time_zones_of_their_sessions(channel_of: ChannelOf, reduce: str) -> None:
    """The first table is known when the window begins, the second is made by it."""
    channel = channel_of("mysql", "mysql")
    spread(channel, 3, reduce)
    channel.on_both("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {ZONED}")
    run_on(channel.source, "CREATE DATABASE tenant_2", f"CREATE TABLE tenant_2.t {ZONED}")
    write_in_zones(channel.source, 12, "tenant_1.t", "tenant_2.t")
    assert channel.run() is not None
    channel.assert_equal()
    found = channel.target.query("SELECT COUNT(DISTINCT day), COUNT(DISTINCT shown) FROM tenant_1.t")
    assert min(found[0]) > 1


@requires_mysql
def test_a_transaction_without_a_time_zone_is_named_where_others_have_one_of_their_own(channel_of: ChannelOf) -> None:
    """BEGIN has the zone only if the transaction's first statement has used it."""
    channel = channel_of("mysql", "mysql")
    channel.on_both(
        "CREATE DATABASE tenant_1",
        f"CREATE TABLE tenant_1.t {ZONED}",
        "CREATE TABLE tenant_1.u (id INT)",
    )
    insert = "INSERT INTO tenant_1.t (id, ts) VALUES ({}, '2020-01-01 12:00:00')"
    zone = "SET SESSION time_zone = '+05:00'"
    run_on(channel.source, "BEGIN", "INSERT INTO tenant_1.u VALUES (1)", insert.format(1), "COMMIT")
    assert channel.run() is not None
    channel.assert_equal()
    run_on(channel.source, zone, insert.format(2))
    run_on(channel.source, zone, "BEGIN", "INSERT INTO tenant_1.u VALUES (1)", insert.format(3), "COMMIT")
    with pytest.raises(PrecheckError, match=r"no time zone in a transaction of seqno \d+, and \+05:00 in others"):
        channel.run()
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        pytest.param("mysql", "mysql", 'writer = "sql"\n', marks=requires_mysql),
        pytest.param("mysql", "mysql", 'on_conflict = "overwrite"\n', marks=requires_mysql),
        pytest.param("mysql", "mariadb", "", marks=requires_mysql),
        pytest.param("mariadb", "mysql", "", marks=requires_mysql),
        ("mariadb", "mariadb", 'writer = "sql"\n'),
        ("mariadb", "mariadb", 'on_conflict = "overwrite"\n'),
        ("mariadb", "mariadb", ""),
    ],
)
def test_time_zones_are_named_where_the_target_computes_in_one(
    channel_of: ChannelOf, source: str, target: str, text: str
) -> None:
    channel = channel_of(source, target)
    channel.write_channel(text)
    table = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT, ts TIMESTAMP NULL, day DATE AS (DATE(ts)) STORED)"
    for server in (channel.source, channel.target):
        run_on(server, "CREATE DATABASE tenant_1", table, log=False)
    zone = "SET SESSION time_zone = '+05:00'"
    run_on(channel.source, zone, "INSERT INTO tenant_1.t (id, ts) VALUES (1, '2020-01-01 02:00:00')")
    if text or source != target:
        with pytest.raises(PrecheckError, match=r"tenant_1.t: column day, which is generated.* time zone"):
            channel.run()
        assert not channel.target.query("SELECT * FROM tenant_1.t")
    else:  # row events of MariaDB have the values
        assert channel.run() is not None
        channel.assert_equal()


DRIFTED: Final = (
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT, ts TIMESTAMP NULL, day DATE AS (DATE(ts)) STORED)",
    "CREATE TABLE tenant_1.p (id INT PRIMARY KEY, n INT)",
)


@pytest.mark.parametrize("server", [pytest.param("mysql", marks=requires_mysql), "mariadb"])
def test_a_window_that_overwrites_from_its_middle_on_computes_as_it_did_before(
    channel_of: ChannelOf, server: str
) -> None:
    """The precheck has seen a channel that stops at drift. Row events keep the zones, and rows that statements would
    have to write are named."""
    channel = channel_of(server, server)
    channel.write_channel("", transactions=1)
    channel.on_both("CREATE DATABASE tenant_1", *DRIFTED)
    run_on(channel.target, "INSERT INTO tenant_1.p VALUES (1, 7)", log=False)
    zone = "SET SESSION time_zone = '+09:00'"
    insert = "INSERT INTO tenant_1.t (id, ts) VALUES ({}, '2026-01-02 03:00:00')"
    run_on(channel.source, "INSERT INTO tenant_1.p VALUES (1, 1)")
    run_on(channel.source, zone, insert.format(1), insert.format(2), "UPDATE tenant_1.t SET n = 1 WHERE id = 2")
    with pytest.raises(DriftError):
        channel.run()
    channel.write_channel('on_conflict = "overwrite"\n', transactions=1)
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT CAST(day AS CHAR) FROM tenant_1.t") == [("2026-01-02",)] * 2

    run_on(channel.target, "INSERT INTO tenant_1.t (id) VALUES (3)", log=False)
    run_on(channel.source, zone, insert.format(3))
    channel.write_channel("", transactions=1)
    with pytest.raises(DriftError):
        channel.run()
    channel.write_channel('on_conflict = "overwrite"\n', transactions=1)
    with pytest.raises(TableMismatchError, match=r"tenant_1\.t: statements would .* column day, which is generated"):
        channel.run()
    run_on(channel.target, "DELETE FROM tenant_1.t WHERE id = 3", log=False)
    channel.write_channel("", transactions=1)
    assert channel.run() is not None
    channel.assert_equal()
