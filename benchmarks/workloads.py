"""Workloads by name: schema, first rows and an endless row of transactions for each database, all from one seed.

Transactions are SQL for the source; what is measured is the log that they leave behind. Every key is chosen here, never
by the server, so a workload is the same on every server.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

Statements: TypeAlias = list[str]

_ENGINE: Final = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
_CUSTOMERS: Final = 200
_ITEMS: Final = 100
_SHARED: Final = "tenant_001"
_PRICE_ROWS: Final = 500
_HOT_ROWS: Final = 10_000
_UNIQUE_ROWS: Final = 1_000
_WIDE_ROWS: Final = 200
_DOCUMENT_ROWS: Final = 500
_WIDE_NUMBERS, _WIDE_WORDS = 18, 18
_FILL: Final = 500
"""Rows of one INSERT of the first rows."""
LARGE_ROWS: Final = 2_000_000
_OLTP_ROWS: Final = 10_000
_OLTP_HOT: Final = (0.75, 100)
"""Of sysbench's default distribution, "special": so many picks are among so many rows."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of traffic. ``fill`` and ``write`` get a database's name; ``write`` never ends."""

    about: str
    databases: int
    tables: tuple[str, ...]
    """CREATE TABLE statements; ``{db}`` stands for the database."""
    fill: Callable[[str], Iterator[str]]
    write: Callable[[str, random.Random], Iterator[Statements]]
    transactions: int | None = None
    """How many there are, whatever was asked for; None: as asked for."""
    shard_list: str = ""
    divided: str = "*"
    """The databases that a way divides, as in a shard list: none that is critical."""


def database_names(workload: Workload) -> list[str]:
    """The names of its databases."""
    return [f"tenant_{number:03}" for number in range(1, workload.databases + 1)]


_BUSINESS: Final = (
    f"""CREATE TABLE `{{db}}`.customers (id INT UNSIGNED NOT NULL PRIMARY KEY, name VARCHAR(80) NOT NULL,
    balance DECIMAL(14,2) NOT NULL, orders INT NOT NULL, seen DATETIME(6) NOT NULL) {_ENGINE}""",
    f"""CREATE TABLE `{{db}}`.items (id INT UNSIGNED NOT NULL PRIMARY KEY, sku CHAR(12) NOT NULL,
    title VARCHAR(80) NOT NULL, stock INT NOT NULL, price DECIMAL(10,2) NOT NULL) {_ENGINE}""",
    f"""CREATE TABLE `{{db}}`.orders (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, customer_id INT UNSIGNED NOT NULL,
    status VARCHAR(16) NOT NULL, total DECIMAL(12,2) NOT NULL, placed DATETIME(6) NOT NULL,
    address VARCHAR(120) NOT NULL, KEY customer (customer_id)) {_ENGINE}""",
    f"""CREATE TABLE `{{db}}`.order_lines (order_id BIGINT UNSIGNED NOT NULL, line SMALLINT NOT NULL,
    item_id INT NOT NULL, quantity INT NOT NULL, price DOUBLE NOT NULL,
    note VARCHAR(60) NULL, PRIMARY KEY (order_id, line)) {_ENGINE}""",
    f"""CREATE TABLE `{{db}}`.ledger (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, customer_id INT UNSIGNED NOT NULL,
    amount DECIMAL(12,2) NOT NULL, what VARCHAR(80) NOT NULL, booked DATETIME(6) NOT NULL) {_ENGINE}""",
)
_PRICES: Final = (
    f"""CREATE TABLE `{{db}}`.prices (id INT NOT NULL PRIMARY KEY, price DECIMAL(10,2) NOT NULL) {_ENGINE}"""
)


def _inserts(table: str, rows: Iterator[str]) -> Iterator[str]:
    while chunk := list(itertools.islice(rows, _FILL)):
        yield f"INSERT INTO {table} VALUES {','.join(chunk)}"


def _time(number: int) -> str:
    return (
        f"'2026-01-{1 + number // 86_400 % 28:02} {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.5'"
    )


def _fill_business(db: str) -> Iterator[str]:
    customers = (f"({key},'Customer number {key} of {db}',0,0,{_time(key)})" for key in range(_CUSTOMERS))
    items = (f"({key},'SKU{key:09}','A thing of kind {key}',1000000,{key}.5)" for key in range(_ITEMS))
    yield from _inserts(f"`{db}`.customers", customers)
    yield from _inserts(f"`{db}`.items", items)


class _Business:
    """One tenant: orders placed, paid and cancelled, as far as its writer has to remember them."""

    def __init__(self, db: str, dice: random.Random) -> None:
        self._db, self._dice = db, dice
        self._open: list[tuple[int, int, int]] = []
        """Order, customer, lines."""
        self._order = self._entry = self._clock = 0

    def write(self) -> Statements:
        """The next transaction: 5.9 row changes on average."""
        self._clock += 1
        choice = self._dice.random()
        if choice < 0.58 or not self._open:
            return self._place()
        if choice < 0.83:
            return self._pay()
        return self._see() if choice < 0.95 else self._cancel()

    def _place(self) -> Statements:
        dice, customer, lines = self._dice, self._dice.randrange(_CUSTOMERS), self._dice.randrange(1, 5)
        self._order += 1
        self._open.append((self._order, customer, lines))
        items = dice.sample(range(_ITEMS), lines)
        values = ",".join(
            f"({self._order},{line},{item},{1 + line},{dice.randrange(100, 9999) / 100},'as ordered at {line}')"
            for line, item in enumerate(items)
        )
        total = dice.randrange(100, 99999) / 100
        place = f"{self._order} Main Street, 2nd floor, town of {self._db}"
        return [
            f"INSERT INTO `{self._db}`.orders VALUES ({self._order},{customer},'open',{total},"
            f"{_time(self._clock)},'{place}')",
            f"INSERT INTO `{self._db}`.order_lines VALUES {values}",
            f"UPDATE `{self._db}`.items SET stock = stock - 1 WHERE id IN ({','.join(map(str, items))})",
            f"UPDATE `{self._db}`.customers SET orders = orders + 1, seen = {_time(self._clock)} WHERE id = {customer}",
        ]

    def _pay(self) -> Statements:
        order, customer, _ = self._dice.choice(self._open)
        amount, self._entry = self._dice.randrange(1, 9999) / 100, self._entry + 2
        table, booked = f"`{self._db}`.ledger", _time(self._clock)
        return [
            f"UPDATE `{self._db}`.orders SET status = 'paid', total = total + 0.01 WHERE id = {order}",
            f"UPDATE `{self._db}`.customers SET balance = balance + {amount} WHERE id = {customer}",
            f"INSERT INTO {table} VALUES ({self._entry},{customer},{amount},'paid for order {order}',{booked}),"
            f"({self._entry + 1},{customer},-{amount},'tax and fees of order {order}',{booked})",
            f"UPDATE `{self._db}`.items SET price = price + 0.01 WHERE id = {self._dice.randrange(_ITEMS)}",
        ]

    def _see(self) -> Statements:
        customer, self._entry = self._dice.randrange(_CUSTOMERS), self._entry + 2
        return [
            f"UPDATE `{self._db}`.customers SET balance = balance - 0.01 WHERE id = {customer}",
            f"INSERT INTO `{self._db}`.ledger VALUES ({self._entry},{customer},0,'a visit',{_time(self._clock)})",
        ]

    def _cancel(self) -> Statements:
        at = self._dice.randrange(len(self._open))
        self._open[at], self._open[-1] = self._open[-1], self._open[at]
        order, customer, lines = self._open.pop()
        items = ",".join(map(str, self._dice.sample(range(_ITEMS), lines)))
        return [
            f"DELETE FROM `{self._db}`.order_lines WHERE order_id = {order}",
            f"DELETE FROM `{self._db}`.orders WHERE id = {order}",
            f"UPDATE `{self._db}`.items SET stock = stock + 1 WHERE id IN ({items})",
            f"UPDATE `{self._db}`.customers SET orders = orders - 1, balance = balance + 0.01 WHERE id = {customer}",
        ]


def _write_business(db: str, dice: random.Random) -> Iterator[Statements]:
    business = _Business(db, dice)
    while True:
        yield business.write()


def _write_reference(db: str, dice: random.Random) -> Iterator[Statements]:
    """The first of 33 databases is shared: only its prices change, by 3 % of all transactions."""
    if db != _SHARED:
        yield from _write_business(db, dice)
    while True:
        yield [f"UPDATE `{db}`.prices SET price = price + 0.01 WHERE id = {dice.randrange(_PRICE_ROWS)}"]


def _fill_reference(db: str) -> Iterator[str]:
    yield from _fill_business(db)
    yield from _inserts(f"`{db}`.prices", (f"({key},1.5)" for key in range(_PRICE_ROWS)))


_COUNTERS: Final = f"""CREATE TABLE `{{db}}`.counters (id INT NOT NULL PRIMARY KEY, hits BIGINT NOT NULL,
    last VARCHAR(60) NOT NULL, pad CHAR(100) NOT NULL) {_ENGINE}"""


def _fill_hot(db: str) -> Iterator[str]:
    yield from _inserts(f"`{db}`.counters", (f"({key},0,'','padding {key}')" for key in range(_HOT_ROWS)))


def _write_hot(db: str, dice: random.Random) -> Iterator[Statements]:
    def key() -> int:
        return dice.randrange(_HOT_ROWS // 100 if dice.random() < 0.9 else _HOT_ROWS)

    for number in itertools.count(1):
        keys = sorted({key() for _ in range(3)})
        yield [f"UPDATE `{db}`.counters SET hits = hits + 1, last = 'hit {number}' WHERE id = {one}" for one in keys]


_MEASURES: Final = f"""CREATE TABLE `{{db}}`.measures (id BIGINT NOT NULL PRIMARY KEY, device INT NOT NULL,
    value DOUBLE NOT NULL, taken DATETIME(6) NOT NULL, what VARCHAR(60) NOT NULL, KEY device (device)) {_ENGINE}"""


def _no_rows(_db: str) -> Iterator[str]:
    yield from ()


def _write_inserts(db: str, dice: random.Random) -> Iterator[Statements]:
    for number in itertools.count():
        rows = ",".join(
            f"({6 * number + row},{dice.randrange(500)},{dice.random()},{_time(number)},'measured at place {row}')"
            for row in range(6)
        )
        yield [f"INSERT INTO `{db}`.measures VALUES {rows}"]


_SEATS: Final = f"""CREATE TABLE `{{db}}`.seats (id INT NOT NULL PRIMARY KEY, place VARCHAR(40) NULL,
    email VARCHAR(80) NOT NULL, changes INT NOT NULL, UNIQUE KEY place (place), UNIQUE KEY email (email)) {_ENGINE}"""


def _fill_unique(db: str) -> Iterator[str]:
    rows = (f"({key},'seat {key}','{key}@{db}.test',0)" for key in range(_UNIQUE_ROWS))
    yield from _inserts(f"`{db}`.seats", rows)


def _write_unique(db: str, dice: random.Random) -> Iterator[Statements]:
    """Hand-overs (one row frees a value, another takes it) and swaps, over two unique keys."""
    table, places = f"`{db}`.seats", [f"seat {key}" for key in range(_UNIQUE_ROWS)]
    for number in itertools.count():
        one, other = dice.sample(range(_UNIQUE_ROWS), 2)
        if dice.random() < 0.5:
            yield [
                f"UPDATE {table} SET place = NULL WHERE id = {one}",
                f"UPDATE {table} SET place = '{places[one]}' WHERE id = {other}",
                f"UPDATE {table} SET place = '{places[other]}', changes = changes + 1 WHERE id = {one}",
            ]
            places[one], places[other] = places[other], places[one]
        else:
            yield [
                f"DELETE FROM {table} WHERE id = {one}",
                f"UPDATE {table} SET email = '{number}@{db}.test2', changes = changes + 1 WHERE id = {other}",
                f"INSERT INTO {table} VALUES ({one},'{places[one]}','{number}b@{db}.test2',{number})",
            ]


_WIDE: Final = (
    "CREATE TABLE `{db}`.wide (id INT NOT NULL PRIMARY KEY, "
    + "".join(f"n{number} BIGINT NULL, " for number in range(_WIDE_NUMBERS))
    + "".join(f"w{number} VARCHAR(60) NULL, " for number in range(_WIDE_WORDS))
    + f"document JSON NULL, story TEXT NULL, body BLOB NULL) {_ENGINE}"
)


def _fill_wide(db: str) -> Iterator[str]:
    numbers = ",".join(map(str, range(_WIDE_NUMBERS)))
    words = ",".join(f"'word {number} of many'" for number in range(_WIDE_WORDS))
    rows = (f"({key},{numbers},{words},'{{\"a\": [1, 2, {key}]}}','',x'00')" for key in range(_WIDE_ROWS))
    yield from _inserts(f"`{db}`.wide", rows)


def _write_wide(db: str, dice: random.Random) -> Iterator[Statements]:
    for number in itertools.count():
        document = f'{{"number": {number}, "list": [1, 2.5, null, true], "name": "somebody {number % 97}"}}'
        story, body = "once upon a time " * dice.randrange(4, 40), dice.randbytes(dice.randrange(100, 1000)).hex()
        column = dice.randrange(_WIDE_NUMBERS)
        yield [
            f"UPDATE `{db}`.wide SET n{column} = {number}, w{column} = 'changed {number}', document = '{document}', "
            f"story = '{story}', body = x'{body}' WHERE id = {key}"
            for key in sorted(dice.sample(range(_WIDE_ROWS), 2))
        ]


_SBTEST: Final = f"""CREATE TABLE `{{db}}`.sbtest1 (id INT NOT NULL PRIMARY KEY, k INT NOT NULL DEFAULT 0,
    c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k)) {_ENGINE}"""


def _digits(dice: random.Random, groups: int) -> str:
    """Groups of 11 digits, joined by hyphens."""
    digits = f"{dice.randrange(10 ** (11 * groups)):0{11 * groups}}"
    return "-".join(digits[at : at + 11] for at in range(0, len(digits), 11))


def _fill_oltp(db: str) -> Iterator[str]:
    dice = random.Random(db)
    rows = (
        f"({key},{dice.randrange(_OLTP_ROWS)},'{_digits(dice, 10)}','{_digits(dice, 5)}')" for key in range(_OLTP_ROWS)
    )
    yield from _inserts(f"`{db}`.sbtest1", rows)


def _write_oltp(db: str, dice: random.Random) -> Iterator[Statements]:
    """The transactions of sysbench's oltp_write_only: two updates, and a row that is deleted and inserted again."""
    table, (hot, rows) = f"`{db}`.sbtest1", _OLTP_HOT

    def key() -> int:
        # the middle of the table
        return _OLTP_ROWS // 2 + dice.randrange(rows) if dice.random() < hot else dice.randrange(_OLTP_ROWS)

    while True:
        gone = key()
        yield [
            f"UPDATE {table} SET k = k + 1 WHERE id = {key()}",
            f"UPDATE {table} SET c = '{_digits(dice, 10)}' WHERE id = {key()}",
            f"DELETE FROM {table} WHERE id = {gone}",
            f"INSERT INTO {table} VALUES ({gone},{key()},'{_digits(dice, 10)}','{_digits(dice, 5)}')",
        ]


_DOCUMENTS: Final = f"""CREATE TABLE `{{db}}`.documents (id INT NOT NULL PRIMARY KEY, version INT NOT NULL,
    body TEXT NOT NULL) {_ENGINE}"""


def _fill_documents(db: str) -> Iterator[str]:
    yield from _fill_business(db)
    rows = (f"({key},0,REPEAT('word {key} of {db} ',{50 + key * 7 % 200}))" for key in range(_DOCUMENT_ROWS))
    yield from _inserts(f"`{db}`.documents", rows)


def _write_documents(db: str, dice: random.Random) -> Iterator[Statements]:
    """Small orders, each with a new version of a document: 9 KB of log a transaction."""
    business = _Business(db, dice)
    for number in itertools.count(1):
        body = f"REPEAT('word {number} ', {dice.randrange(100, 600)})"
        key = dice.randrange(_DOCUMENT_ROWS)
        yield [
            *business.write(),
            f"UPDATE `{db}`.documents SET version = version + 1, body = {body} WHERE id = {key}",
        ]


def _write_large(db: str, _dice: random.Random) -> Iterator[Statements]:
    """One INSERT of many rows, made by the server itself: digits joined with digits."""
    digits = "(" + " UNION ALL ".join(f"SELECT {digit} d" for digit in range(10)) + ")"
    places = [f"{digits} d{place}" for place in range(7)]
    key = " + ".join(f"d{place}.d * {10**place}" for place in range(7))
    yield [
        f"INSERT INTO `{db}`.measures SELECT k, k % 500, k / 7, '2026-01-01', CONCAT('row ', k) FROM "
        f"(SELECT {key} AS k FROM {', '.join(places)}) keyed WHERE k < {LARGE_ROWS}"
    ]


WORKLOADS: Final[dict[str, Workload]] = {
    "tenants": Workload("small orders over 32 databases", 32, _BUSINESS, _fill_business, _write_business),
    "fleet": Workload("the same over 2,000 databases, 10,000 tables", 2000, _BUSINESS, _fill_business, _write_business),
    "single": Workload("the same in one database", 1, _BUSINESS, _fill_business, _write_business),
    "reference": Workload(
        "tenants, and 3 % of the transactions in a shared database",
        33, (*_BUSINESS, _PRICES), _fill_reference, _write_reference, shard_list=f"(critical)={_SHARED}\n",
        divided="tenant_00[2-9], tenant_0[1-3]?",
    ),
    "hot": Workload("90 % of the updates on 1 % of the rows", 32, (_COUNTERS,), _fill_hot, _write_hot),
    "inserts": Workload("new rows only", 32, (_MEASURES,), _no_rows, _write_inserts),
    "unique": Workload("hand-overs and swaps under unique keys", 32, (_SEATS,), _fill_unique, _write_unique),
    "wide": Workload("updates of 40 columns, JSON, text, blobs", 32, (_WIDE,), _fill_wide, _write_wide),
    "oltp": Workload("sysbench's oltp_write_only in 16 databases", 16, (_SBTEST,), _fill_oltp, _write_oltp),
    "large": Workload("one transaction of 2 million rows", 1, (_MEASURES,), _no_rows, _write_large, transactions=1),
}  # fmt: skip
RESTORED: Final = Workload(
    "small orders with documents over 32 databases", 32, (*_BUSINESS, _DOCUMENTS), _fill_documents, _write_documents
)
"""Of ``benchmarks.restore``: a long log in few transactions."""
