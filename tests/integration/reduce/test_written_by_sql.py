"""Rows that are written by SQL, many a statement, are the rows that a replay in the source's order leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.compare import data_of
from lab.servers import PrivateServer
from tests.integration.reduce import workload
from tests.integration.reduce.bench import (
    DATABASE,
    captured,
    end_of_log,
    filtered,
    fresh,
    run,
    schema_of,
    state_of,
    write,
)
from tests.integration.reduce.scenarios import COUNTERS, SCENARIOS, Scenario
from tests.integration.reduce.test_generated_schemas import EXAMPLES, Session, tables, usual
from tests.integration.reduce.test_reduced_equals_replayed import create, of_family, sessions_of
from tests.integration.reduce.test_reduced_equals_replayed import servers as servers  # a fixture
from tests.integration.values.test_values import SESSION
from tests.integration.values.types import OPAQUE, SCHEMA_TYPES, TYPES

Servers = tuple[PrivateServer, PrivateServer]
WAYS = pytest.mark.parametrize(
    ("reduce", "transactions"),
    [("off", 1), ("off", 7), ("off", 100_000), ("block", 100_000), ("window", 3)],
    ids=["one-transaction", "small-blocks", "one-block", "reduced", "window"],
)
STATEMENTS = "Com_insert", "Com_update", "Com_update_multi", "Com_delete", "Com_delete_multi"
VERSIONED = "versions"
"""Its rows have the target's own times."""


def assert_written(
    servers: Servers, made: Sequence[str], sessions: Iterable[Sequence[str]], before: Sequence[str] = (),
    reduce: str = "off", **changes: Any,
) -> None:  # fmt: skip
    """The log, written by SQL, leaves the source's bytes, and the AUTO_INCREMENT values of a replay."""
    source, target = servers
    fresh(source, [*made, *before])
    source_schema, start = schema_of(source), end_of_log(source)
    for session in sessions:
        run(source, session)
    log = captured(source, start)
    fresh(target, [*made, *before])
    replayed = filtered(log, source_schema, schema_of(target), reduce=reduce, **changes)
    write(target, replayed.blocks)
    expected = state_of(target)
    fresh(target, [*made, *before])
    repeated = status_of(target, "Com_rollback_to_savepoint")
    assert write(target, replayed.blocks, "sql") == replayed.written
    assert status_of(target, "Com_rollback_to_savepoint") == repeated  # no statement found other rows than it must
    assert state_of(target) == expected
    ours, theirs = data_of(source, DATABASE), data_of(target, DATABASE)
    assert ours == theirs


@WAYS
def test_each_trap(servers: Servers, reduce: str, transactions: int) -> None:
    known = of_family(SCENARIOS, servers[0].flavor)
    scenarios = {name: one for name, one in known.items() if name != VERSIONED and not has_trigger(one)}
    assert_written(
        servers, create(scenarios), sessions_of(scenarios), reduce=reduce, block_transactions=transactions,
        block_bytes=1 << 30, window_bytes=1 << 30,
    )  # fmt: skip


@WAYS
def test_auto_increment_goes_on_where_it_does_in_a_replay(servers: Servers, reduce: str, transactions: int) -> None:
    assert_written(
        servers, create(COUNTERS), sessions_of(COUNTERS), reduce=reduce, block_transactions=transactions,
        window_bytes=1 << 30,
    )  # fmt: skip


@WAYS
def test_random_changes(servers: Servers, reduce: str, transactions: int) -> None:
    flavor = servers[0].flavor
    changes = [list(workload.statements(transactions, 800, flavor))]
    assert_written(
        servers, workload.tables(flavor), changes, reduce=reduce, block_transactions=transactions, window_bytes=1 << 30
    )


@usual(EXAMPLES)
@given(
    data=st.data(),
    seed=st.integers(0, 2**32),
    way=st.sampled_from([("off", 9999), ("off", 5), ("block", 9999)]),
)
def test_generated_schemas(servers: Servers, data: st.DataObject, seed: int, way: tuple[str, int]) -> None:
    known = [data.draw(tables(f"t{number}", servers[0].flavor)) for number in range(3)]
    session = Session(known, seed)
    assert_written(
        servers,
        [table.create() for table in known],
        [list(session.transactions(80))],
        list(session.rows(8)),
        reduce=way[0],
        block_transactions=way[1],
    )


@pytest.mark.parametrize("reduce", ["off", "block"])
def test_every_type_in_rows_that_share_statements(servers: Servers, reduce: str) -> None:
    """As a value beside others, and as the key that finds the rows."""
    types = [one for one in (*TYPES, *SCHEMA_TYPES) if servers[0].flavor in one.servers]
    types = [one for one in types if one.values != OPAQUE]  # no list of rows takes all of these documents
    made, said = [], [SESSION]
    for number, one in enumerate(types):
        made.append(f"CREATE TABLE v{number} (id INT PRIMARY KEY AUTO_INCREMENT, n INT, c {one.definition})")
        # the server compares a SET's number as a signed one, and takes no invalid date for a key's value
        if not one.definition.startswith("SET(") and "2024-02-31" not in str(one.values):
            made.append(f"-CREATE TABLE p{number} (c {one.definition} PRIMARY KEY, n INT)")
        said += [f"-INSERT INTO {kind}{number} (c) VALUES ({value})" for value in one.values for kind in "vp"]
        said += [f"-UPDATE {kind}{number} SET n = {value}" for value in (1, 2) for kind in "vp"]
        said += [f"-UPDATE v{number} SET c = NULL WHERE id = 1", f"-DELETE FROM v{number} WHERE id = 2"]
        said.append(f"-DELETE FROM p{number} ORDER BY c DESC LIMIT 2")
    assert_written(servers, made, [said], reduce=reduce, block_transactions=100_000, block_bytes=1 << 30)


def test_a_busy_block_takes_few_statements(servers: Servers) -> None:
    target = servers[1]
    made = ["CREATE TABLE t (id INT PRIMARY KEY, v INT)"]
    said = [f"INSERT INTO t VALUES ({key}, 0)" for key in range(100)]
    said += [f"UPDATE t SET v = v + 1 WHERE id = {key}" for _ in range(3) for key in range(100)]
    said += [f"DELETE FROM t WHERE id = {key}" for key in range(50)]
    before = status_of(target, *STATEMENTS)
    assert_written(servers, made, [said], block_transactions=100_000)
    assert status_of(target, *STATEMENTS) - before < 40


def status_of(server: PrivateServer, *names: str) -> int:
    """The sum of some counters of the server."""
    listed = ", ".join(map(repr, names))
    return sum(int(str(value)) for _, value in server.query(f"SHOW GLOBAL STATUS WHERE variable_name IN ({listed})"))


def has_trigger(scenario: Scenario) -> bool:
    """The precheck refuses tables with triggers."""
    return any("TRIGGER" in text for text in scenario.others)
