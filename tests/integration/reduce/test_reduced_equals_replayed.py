"""A reduced window leaves on a real target what the ordered one leaves: the same rows, the same next ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pymysql
import pytest

from binlane.model import Flavor, RowCounts
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.emptied import drop_databases
from tests.integration.reduce import workload
from tests.integration.reduce.bench import (
    Filtered,
    Written,
    captured,
    end_of_log,
    filtered,
    fresh,
    run,
    schema_of,
    state_of,
    write,
)
from tests.integration.reduce.scenarios import BETWEEN, COUNTERS, SCENARIOS, Scenario

Servers = tuple[PrivateServer, PrivateServer]


@pytest.fixture(params=["mariadb", "mysql"])
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """Source and target of one family."""
    names = (f"{request.param}_source", f"{request.param}_target")
    source, target = (request.getfixturevalue(name) for name in names)
    yield source, target
    for server in (source, target):
        drop_databases(server)


def applied(
    servers: Servers, tables: Sequence[str], sessions: Iterable[Sequence[str]], before: Sequence[str] = (),
    by: str = "block", **changes: Any,
) -> tuple[Written, Written, Written, Filtered]:  # fmt: skip
    """Source, replayed target and target reduced ``by`` block or window after a window, and the reduced plan.

    The plain version of the filter has given the same blocks, and the target has counted what they say.
    """
    source, target = servers
    fresh(source, [*tables, *before])
    source_schema, start = schema_of(source), end_of_log(source)
    for session in sessions:
        run(source, session)
    log = captured(source, start)
    states, found = [state_of(source)], None
    for reduce in ("off", by):
        fresh(target, [*tables, *before])
        schemas = source_schema, schema_of(target)
        found = filtered(log, *schemas, reduce=reduce, **changes)
        assert found == filtered(log, *schemas, reduce=reduce, version="plain", **changes)
        assert write(target, found.blocks) == found.written
        assert sum((table.written for table in found.plan.tables.values()), RowCounts()) == found.written
        states.append(state_of(target))
    assert found is not None
    return states[0], states[1], states[2], found


def create(scenarios: dict[str, Scenario]) -> list[str]:
    """The tables of all scenarios; a scenario's other statements come first."""
    made = []
    for name, scenario in scenarios.items():
        made += [text for text in scenario.others if "CREATE" in text]
        made.append(f"CREATE TABLE {{t}} ({scenario.columns}){scenario.options}")
        made += [text for text in scenario.others if "CREATE" not in text]
        made = [text.replace("{t}", name) for text in made]
    return made


def of_family(scenarios: dict[str, Scenario], flavor: Flavor) -> dict[str, Scenario]:
    return {name: one for name, one in scenarios.items() if one.flavor in (None, flavor)}


def sessions_of(scenarios: dict[str, Scenario]) -> Iterator[list[str]]:
    for name, scenario in scenarios.items():
        yield [text.replace("{t}", name) for text in scenario.statements]


WAYS = pytest.mark.parametrize(
    ("by", "transactions", "window_bytes"),
    [("block", 3, 0), ("block", 100_000, 0), ("window", 3, 1 << 30), ("window", 2, 20_000)],
    ids=["small-blocks", "one-block", "window", "window-in-pieces"],
)


@WAYS
def test_each_trap_leaves_the_rows_that_replay_leaves(
    servers: Servers, by: str, transactions: int, window_bytes: int
) -> None:
    scenarios = of_family(SCENARIOS, servers[0].flavor)
    source, replayed, reduced, plan = applied(
        servers, create(scenarios), sessions_of(scenarios), by=by, block_transactions=transactions,
        block_bytes=1 << 30, window_bytes=window_bytes,
    )  # fmt: skip
    assert replayed.rows == source.rows
    assert reduced == replayed
    kept = {"cascades", "cascades_parent", "cascades_log"}
    if servers[0].flavor is Flavor.MARIADB:
        kept |= {"versions", "versions_overlaps"}
    assert set(plan.kept_in_order) == kept


@pytest.mark.parametrize("by", ["block", "window"])
def test_each_trap_for_rows_that_were_there_before(servers: Servers, by: str) -> None:
    """What a block inserts has no old values: here the first rows are there, and their values go from one to the other.

    Without what is never folded: rows of a versioned table have other times on each server.
    """
    known = of_family(SCENARIOS, servers[0].flavor)
    scenarios = {name: one for name, one in known.items() if name not in ("cascades", "versions")}
    said = list(sessions_of(scenarios))
    source, replayed, reduced, plan = applied(
        servers, create(scenarios), [session[1:] for session in said], [session[0] for session in said],
        by=by, block_transactions=100_000, block_bytes=1 << 30, window_bytes=1 << 30,
    )  # fmt: skip
    assert replayed.rows == source.rows
    assert reduced == replayed
    assert plan.kept_in_order == {}


@WAYS
def test_auto_increment_goes_on_where_the_source_s_does(
    servers: Servers, by: str, transactions: int, window_bytes: int
) -> None:
    source, replayed, reduced, plan = applied(
        servers, create(COUNTERS), sessions_of(COUNTERS), by=by, block_transactions=transactions,
        window_bytes=window_bytes,
    )  # fmt: skip
    assert reduced == replayed == source
    assert plan.kept_in_order == {}


@WAYS
def test_statements_and_ddl_between_rows_find_what_they_found_on_the_source(
    servers: Servers, by: str, transactions: int, window_bytes: int
) -> None:
    tables = [f"CREATE TABLE {name} (id INT AUTO_INCREMENT PRIMARY KEY, v INT)" for name in "abc"]
    before = ["INSERT INTO c VALUES (1, 1), (2, 2)"]
    source, replayed, reduced, plan = applied(
        servers, tables, [BETWEEN], before, by=by, block_transactions=transactions, window_bytes=window_bytes
    )
    assert reduced.rows == replayed.rows == source.rows
    assert plan.kept_in_order == dict.fromkeys(["b", "c"], "a DDL of the window names it")


@WAYS
def test_random_changes_leave_what_replay_leaves(
    servers: Servers, by: str, transactions: int, window_bytes: int
) -> None:
    flavor = servers[0].flavor
    changes = [list(workload.statements(transactions, 800, flavor))]
    source, replayed, reduced, plan = applied(
        servers, workload.tables(flavor), changes, by=by, block_transactions=transactions, window_bytes=window_bytes
    )
    assert replayed.rows == source.rows
    assert reduced == replayed
    assert sum(len(rows) for rows in source.rows.values()) > 20
    if transactions > 1000 or window_bytes > 1 << 20:
        read = sum(table.read.total for table in plan.plan.tables.values())
        assert plan.written.total < 0.6 * read


@requires_mysql
@pytest.mark.parametrize("by", ["block", "window"])
@pytest.mark.parametrize("way", [("mariadb", "mysql"), ("mysql", "mariadb")], ids=["to-mysql", "to-mariadb"])
def test_random_changes_cross_the_families(request: pytest.FixtureRequest, way: tuple[str, str], by: str) -> None:
    source: PrivateServer = request.getfixturevalue(f"{way[0]}_source")
    target: PrivateServer = request.getfixturevalue(f"{way[1]}_target")
    flavors = source.flavor, target.flavor
    _, replayed, reduced, _ = applied(
        (source, target), workload.tables(*flavors), [list(workload.statements(3, 600, *flavors))],
        by=by, block_transactions=200,
    )  # fmt: skip
    assert reduced == replayed
    for server in (source, target):
        drop_databases(server)


@pytest.mark.parametrize("target_key", ["", ", UNIQUE (a), UNIQUE (b)"], ids=["fewer", "more"])
def test_a_table_with_other_keys_on_the_target_keeps_its_order(servers: Servers, target_key: str) -> None:
    source, target = servers
    fresh(source, ["CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, UNIQUE (a))"])
    source_schema, start = schema_of(source), end_of_log(source)
    swap = [f"UPDATE t SET a = {value} WHERE id = {key}" for value, key in ((5, 1), (1, 2), (2, 1))]
    run(source, ["INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)", *swap])
    fresh(target, [f"CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT{target_key})"])
    found = filtered(captured(source, start), source_schema, schema_of(target), reduce="block")
    assert found.kept_in_order == {"t": "its keys differ between source and target"}
    assert write(target, found.blocks) == RowCounts(2, 3, 0)
    assert state_of(target).rows == state_of(source).rows


@pytest.mark.parametrize(
    ("drift", "error"),
    [
        ("DELETE FROM t WHERE id = 1", 1032),
        ("INSERT INTO t VALUES (9, 9)", 1062),
        ("INSERT INTO t VALUES (50, 8)", 1062),
    ],
    ids=["row-missing", "primary-key-taken", "unique-key-taken"],
)
def test_a_row_that_is_missing_or_in_the_way_stops_a_reduced_block(servers: Servers, drift: str, error: int) -> None:
    source, target = servers
    tables = ["CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE)", "INSERT INTO t VALUES (1, 1)"]
    fresh(source, tables)
    source_schema, start = schema_of(source), end_of_log(source)
    run(
        source,
        [
            "UPDATE t SET u = 3",
            "INSERT INTO t VALUES (9, 7)",
            "UPDATE t SET u = 8 WHERE id = 9",
            "DELETE FROM t WHERE id = 1",
        ],
    )
    fresh(target, [*tables, drift])
    found = filtered(captured(source, start), source_schema, schema_of(target), reduce="block")
    with pytest.raises(pymysql.MySQLError) as raised:
        write(target, found.blocks)
    assert raised.value.args[0] == error


def test_statements_with_and_without_checks_of_foreign_keys_share_a_block(servers: Servers) -> None:
    """The server goes by the flags of a BINLOG statement's first rows event: a child without its parent needs them."""
    tables = [
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
        "CREATE TABLE free (id INT PRIMARY KEY, v INT)",
    ]
    checked = [
        "INSERT INTO parent VALUES (1), (2)",
        "INSERT INTO child VALUES (1, 1), (2, 2)",
        "INSERT INTO free VALUES (1, 1)",
    ]
    unchecked = [
        "SET foreign_key_checks = 0",
        "INSERT INTO child VALUES (3, 77)",
        "DELETE FROM parent WHERE id = 2",
        "UPDATE free SET v = 2",
        "SET foreign_key_checks = 1",
    ]
    renumbered = ["FLUSH TABLES", "DELETE FROM parent WHERE id = 1", "INSERT INTO free VALUES (2, 2)"]
    source, replayed, reduced, _ = applied(
        servers, tables, [checked, unchecked, renumbered, [unchecked[0], "INSERT INTO child VALUES (4, 78)"]],
        block_transactions=100_000,
    )  # fmt: skip
    assert len(source.rows["child"]) == 3
    assert reduced.rows == replayed.rows == source.rows
