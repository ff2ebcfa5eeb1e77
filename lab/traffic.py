"""Writes multi-tenant traffic to a server: deterministic by seed, over several connections, in batches."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from pymysql.constants import CLIENT

from lab.tenants import REFERENCE, REFERENCE_TABLES, TENANT_TABLES, Tenant, Transaction

_BATCH: Final = 25
"""Transactions in one round trip."""
_LIVE_BATCH: Final = 5
_SKUS: Final = 500


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of transactions other than small ones of a single tenant."""

    cross_database: float = 0.01
    reference: float = 0.004
    ddl: float = 0.001
    accounts: float = 0.0004
    statements: float = 0.004


@dataclass(frozen=True, slots=True)
class TrafficSummary:
    """Numbers of the written traffic."""

    databases: tuple[str, ...]
    transactions: int
    """Transactions in the log, each DDL and account statement counted as one; without the creation of the databases."""
    rows: int
    """Row changes of row events."""
    kinds: Mapping[str, int]
    seconds: float


@dataclass(slots=True)
class _Writer:
    """One connection's share: its tenants, its random generator, its rows of the reference table."""

    number: int
    tenants: list[Tenant]
    dice: random.Random
    mix: Mix
    counts: Counter[str] = field(default_factory=Counter)
    rows: int = 0

    def transactions(self, count: int) -> Iterator[Transaction]:
        """Exactly ``count`` transactions."""
        left = count
        while left:
            for transaction in self._next()[:left]:
                self.counts[transaction.kind] += 1
                self.rows += transaction.rows
                left -= 1
                yield transaction

    def _next(self) -> Sequence[Transaction]:
        tenant, mix, choice = self.dice.choice(self.tenants), self.mix, self.dice.random()
        if not tenant.customers:
            return [tenant.write(self.dice)]
        for share, make in (
            (mix.cross_database, self._across),
            (mix.reference, self._reference),
            (mix.ddl, lambda one: [one.ddl()]),
            (mix.accounts, lambda one: list(one.account())),
            (mix.statements, lambda one: [one.statement(self.dice)]),
        ):
            if choice < share:
                return make(tenant)
            choice -= share
        return [tenant.write(self.dice)]

    def _across(self, tenant: Tenant) -> list[Transaction]:
        others = [one for one in self.tenants if one is not tenant and one.customers]
        if not others:
            return [tenant.write(self.dice)]
        other = self.dice.choice(others)
        return [Transaction("cross_database", (tenant.balance(self.dice), other.balance(self.dice)), 2)]

    def _reference(self, _tenant: Tenant) -> list[Transaction]:
        # each writer updates its own prices, so that writers never wait for each other
        sku = self.number + self.dice.randrange(_SKUS // 16) * 16
        sql = f"UPDATE `{REFERENCE}`.prices SET price = price + 0.05, changes = changes + 1 WHERE sku = 'SKU{sku:09}'"
        return [Transaction("reference", (sql,), 1)]


def run_traffic(
    connection_factory: Callable[..., Any],
    *,
    tenants: int = 24,
    transactions: int = 5_000,
    seed: int = 1,
    threads: int = 4,
    mix: Mix | None = None,
) -> TrafficSummary:
    """Write ``transactions`` over ``tenants`` databases ``tenant_001`` ... and ``reference``; creates missing
    databases.

    ``connection_factory`` takes PyMySQL's keyword arguments. A repeated call continues with the existing data. At most
    16 threads, and at most as many as tenants.
    """
    started = time.monotonic()
    names, writers = _writers(connection_factory, tenants, seed, threads, mix or Mix())
    shares = [transactions // threads + (number < transactions % threads) for number in range(threads)]

    def work(writer: _Writer, share: int) -> None:
        with _session(connection_factory) as cursor:
            _write(cursor, writer.transactions(share))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, writers, shares))
    kinds = Counter[str]()
    for writer in writers:
        kinds.update(writer.counts)
    return TrafficSummary(
        databases=(*names, REFERENCE),
        transactions=kinds.total(),
        rows=sum(writer.rows for writer in writers),
        kinds=dict(sorted(kinds.items())),
        seconds=time.monotonic() - started,
    )


@contextlib.contextmanager
def live_traffic(
    connection_factory: Callable[..., Any], *, tenants: int, per_second: int, seed: int = 1, mix: Mix | None = None
) -> Iterator[None]:
    """The same traffic by two connections, at about this rate, for as long as the block lasts."""
    ended = threading.Event()
    _, writers = _writers(connection_factory, tenants, seed, 2, mix or Mix())

    def work(writer: _Writer) -> None:
        with _session(connection_factory) as cursor:
            while not ended.is_set():
                next_at = time.monotonic() + 2 * _LIVE_BATCH / per_second
                _write(cursor, writer.transactions(_LIVE_BATCH))
                ended.wait(next_at - time.monotonic())

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(work, writer) for writer in writers]
        try:
            yield
        finally:
            ended.set()
        for each in running:
            each.result()


def _writers(
    connection_factory: Callable[..., Any], tenants: int, seed: int, threads: int, mix: Mix
) -> tuple[list[str], list[_Writer]]:
    """The tenants' databases, and one writer a thread."""
    if not 1 <= threads <= min(16, tenants):
        raise ValueError(f"threads: expected 1..{min(16, tenants)}, got {threads}")
    names = _names(tenants)
    with _session(connection_factory) as cursor:
        found = _prepare(cursor, names, seed)
    # a string seeds the generator equally in every process, unlike hash()
    dice = (random.Random(f"{seed}/{found[0].run}/{number}") for number in range(threads))
    return names, [_Writer(number, found[number::threads], each, mix) for number, each in enumerate(dice)]


@contextlib.contextmanager
def _session(connection_factory: Callable[..., Any]) -> Iterator[Any]:
    connection = connection_factory(client_flag=CLIENT.MULTI_STATEMENTS, autocommit=True)
    with contextlib.closing(connection), connection.cursor() as cursor:
        # the literals need these settings; in UTC no hour is missing
        cursor.execute("SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_TRANS_TABLES'")
        yield cursor


def _prepare(cursor: Any, names: Sequence[str], seed: int) -> list[Tenant]:
    """Create missing objects and read the existing ones.

    Existing objects are not created again: CREATE ... IF NOT EXISTS would be logged, and a table that a DDL of the
    window names is not reduced.
    """
    cursor.execute("SELECT table_schema, COUNT(*) FROM information_schema.tables GROUP BY table_schema")
    tables = dict(cursor.fetchall())
    for name, wanted in _databases(names).items():
        if tables.get(name, 0) < len(wanted):
            for statement in _creations(name, wanted):
                cursor.execute(statement)
    prices = ",".join(f"('SKU{sku:09}',{sku % 97 + 0.5},'EUR',0)" for sku in range(_SKUS))
    cursor.execute(f"INSERT IGNORE INTO `{REFERENCE}`.prices VALUES {prices}")
    cursor.execute(f"INSERT INTO `{REFERENCE}`.runs (seed) VALUES ({seed})")
    run = cursor.lastrowid
    return [_look(cursor, name, run) for name in names]


def creations(tenants: int) -> Iterator[str]:
    """The statements that create what ``run_traffic`` would create for so many tenants."""
    for name, tables in _databases(_names(tenants)).items():
        yield from _creations(name, tables)


def _names(tenants: int) -> list[str]:
    return [f"tenant_{number:03}" for number in range(1, tenants + 1)]


def _databases(names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The databases, each with the statements of its tables."""
    return {REFERENCE: REFERENCE_TABLES, **dict.fromkeys(names, TENANT_TABLES)}


def _creations(name: str, tables: Sequence[str]) -> Iterator[str]:
    yield f"CREATE DATABASE IF NOT EXISTS `{name}` CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    for table in tables:
        yield table.format(db=name)


def _look(cursor: Any, name: str, run: int) -> Tenant:
    tenant = Tenant(name, run)
    cursor.execute("SELECT @@version")
    if "mariadb" not in cursor.fetchone()[0].lower():
        # MySQL's information_schema caches counters for up to a day
        cursor.execute("SET SESSION information_schema_stats_expiry = 0")
    cursor.execute(f"SELECT id FROM `{name}`.customers ORDER BY id")
    tenant.customers = [row[0] for row in cursor.fetchall()]
    cursor.execute(f"SELECT order_id, COUNT(*) FROM `{name}`.order_lines GROUP BY order_id ORDER BY order_id")
    tenant.orders = [(row[0], row[1]) for row in cursor.fetchall()]
    # AUTO_INCREMENT counters and not the highest ids, which TRUNCATE and DELETE may have lowered
    for table in ("customers", "orders", "events"):
        # a restarted MySQL server shows a table's counter only after the table was opened
        cursor.execute(f"SELECT MAX(id) FROM `{name}`.{table}")
        cursor.execute(
            "SELECT auto_increment FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
            (name, table),
        )
        setattr(tenant, f"next_{table[:-1]}", cursor.fetchone()[0] or 1)
    cursor.execute(f"SELECT COALESCE(MAX(id), 0) + 1 FROM `{name}`.scratch")
    tenant.next_scratch = cursor.fetchone()[0]
    return tenant


def _write(cursor: Any, transactions: Iterator[Transaction]) -> None:
    batch: list[str] = []
    for number, transaction in enumerate(transactions, 1):
        batch.extend(transaction.sql if transaction.commits_itself else ("BEGIN", *transaction.sql, "COMMIT"))
        if number % _BATCH == 0:
            _send(cursor, batch)
            batch = []
    _send(cursor, batch)


def _send(cursor: Any, statements: Sequence[str]) -> None:
    if not statements:
        return
    cursor.execute(";".join(statements))
    while cursor.nextset():
        pass
