"""An invented application with one database for each customer, and its transactions as SQL.

Every row and every choice depends only on the seed, so two servers with the same traffic have the same data. Each
tenant is written by one connection, in one order.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

REFERENCE: Final = "reference"

TENANT_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS `{db}`.customers (
        id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, email VARCHAR(120) NOT NULL, name VARCHAR(100) NOT NULL,
        balance DECIMAL(12,2) NOT NULL DEFAULT 0, tier ENUM('free','pro','enterprise') NOT NULL DEFAULT 'free',
        options SET('mail','phone','post') NOT NULL DEFAULT '', created DATETIME(6) NOT NULL, note TEXT NULL,
        UNIQUE KEY email (email), KEY tier (tier)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4""",
    """CREATE TABLE IF NOT EXISTS `{db}`.orders (
        id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, customer_id INT UNSIGNED NOT NULL,
        status VARCHAR(16) NOT NULL, total DECIMAL(12,2) NOT NULL,
        placed TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        KEY customer (customer_id)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4""",
    """CREATE TABLE IF NOT EXISTS `{db}`.order_lines (
        order_id BIGINT UNSIGNED NOT NULL, line SMALLINT NOT NULL, sku CHAR(12) NOT NULL, quantity INT NOT NULL,
        price DOUBLE NOT NULL, weight FLOAT NULL, PRIMARY KEY (order_id, line))
        ENGINE=InnoDB DEFAULT CHARSET=utf8mb4""",
    """CREATE TABLE IF NOT EXISTS `{db}`.events (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, kind VARCHAR(40) NOT NULL, payload JSON NULL, body BLOB NULL,
        bits BIT(10) NULL, day DATE NULL, took TIME(3) NULL, season YEAR NULL) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4""",
    """CREATE TABLE IF NOT EXISTS `{db}`.scratch (
        id INT NOT NULL PRIMARY KEY, word VARCHAR(40) NOT NULL) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4""",
)
REFERENCE_TABLES: Final = (
    f"""CREATE TABLE IF NOT EXISTS `{REFERENCE}`.prices (
        sku CHAR(12) NOT NULL PRIMARY KEY, price DECIMAL(10,2) NOT NULL, currency CHAR(3) NOT NULL,
        changes INT NOT NULL DEFAULT 0) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4""",
    f"""CREATE TABLE IF NOT EXISTS `{REFERENCE}`.runs (
        run INT NOT NULL AUTO_INCREMENT PRIMARY KEY, seed BIGINT NOT NULL) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4""",
)

_WORDS: Final = ("amber", "birch", "cobalt", "delta", "ember", "fjord", "grüße", "harbour", "日本", "naïve", "o''neil")
_STATUS: Final = ("open", "paid", "packed", "sent")


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction, as the log will contain it."""

    kind: str
    sql: tuple[str, ...]
    """Statements of one transaction, without BEGIN and COMMIT; for a DDL, the statement with the implicit commit."""
    rows: int
    """Logged row changes; 0 for statements."""
    commits_itself: bool = False


@dataclass(slots=True)
class Tenant:
    """One tenant database: the state that its writer needs."""

    name: str
    run: int
    customers: list[int] = field(default_factory=list)
    orders: list[tuple[int, int]] = field(default_factory=list)
    """Orders with their number of lines, newest last."""
    next_customer: int = 1
    next_order: int = 1
    next_event: int = 1
    next_scratch: int = 1
    addresses: int = 0
    changes: int = 0
    """Number of DDL statements so far, for their objects' names."""

    def write(self, dice: random.Random) -> Transaction:
        """The next small transaction: a few row changes in this database."""
        if len(self.customers) < 3:
            return self._new_customer(dice)
        choice = dice.random()
        if choice < 0.40 or not self.orders:
            return self._new_order(dice)
        if choice < 0.62:
            return self._pay(dice)
        if choice < 0.72:
            return self._new_customer(dice)
        if choice < 0.84:
            return self._event(dice)
        if choice < 0.94:
            return self._cancel(dice)
        return self._change_email(dice)

    def balance(self, dice: random.Random) -> str:
        """One row change, as a part of a transaction over several databases."""
        amount = dice.randrange(1, 10_000)
        customer = dice.choice(self.customers)
        return f"UPDATE `{self.name}`.customers SET balance = balance + {amount / 100:.2f} WHERE id = {customer}"

    def statement(self, dice: random.Random) -> Transaction:
        """A transaction that the source logs as a statement."""
        low = dice.choice(self.customers)
        sql = f"UPDATE `{self.name}`.customers SET note = CONCAT('note ', id % 7) WHERE id BETWEEN {low} AND {low + 20}"
        switch = "SET SESSION binlog_format = '{}'"
        return Transaction(
            "statement", (switch.format("STATEMENT"), "BEGIN", sql, "COMMIT", switch.format("ROW")), 0, True
        )

    def ddl(self) -> Transaction:
        """The next change of a definition, in turn: column, table, rename, truncate, index, drop."""
        self.changes += 1
        tag = f"{self.run}_{self.changes // 6}"
        sql = (
            f"ALTER TABLE `{self.name}`.customers ADD COLUMN extra_{tag} INT NOT NULL DEFAULT {self.changes}",
            f"CREATE TABLE `{self.name}`.archive_{tag} LIKE `{self.name}`.orders",
            f"RENAME TABLE `{self.name}`.archive_{tag} TO `{self.name}`.kept_{tag}",
            f"TRUNCATE TABLE `{self.name}`.scratch",
            f"ALTER TABLE `{self.name}`.events ADD INDEX kind_{tag} (kind)",
            f"DROP TABLE `{self.name}`.kept_{tag}",
        )[(self.changes - 1) % 6]
        return Transaction("ddl", (sql,), 0, commits_itself=True)

    def account(self) -> tuple[Transaction, Transaction]:
        """A new account and its privileges: server-wide statements."""
        self.changes += 6 - self.changes % 6
        user = f"'{self.name}_{self.run}_{self.changes}'@'localhost'"
        create = Transaction("account", (f"CREATE USER {user} IDENTIFIED BY 'Made-up-1'",), 0, commits_itself=True)
        grant = f"GRANT SELECT, INSERT ON `{self.name}`.* TO {user}"
        return create, Transaction("account", (grant,), 0, commits_itself=True)

    def _time(self) -> str:
        seconds = (self.next_customer + self.next_order + self.next_event) * 37 % 2_000_000
        day, rest = divmod(seconds, 86_400)
        date = f"2026-{1 + day // 28 % 12:02}-{1 + day % 28:02}"
        return f"{date} {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}.{seconds % 1_000_000:06}"

    def _new_customer(self, dice: random.Random) -> Transaction:
        count = dice.randrange(1, 4)
        values = []
        for customer in range(self.next_customer, self.next_customer + count):
            word, tier = dice.choice(_WORDS), dice.choice(("free", "pro", "enterprise"))
            options = dice.choice(("", "mail", "mail,post"))
            values.append(
                f"('c{customer}@{self.name}.test','{word} {customer}',0,'{tier}','{options}','{self._time()}',NULL)"
            )
            self.customers.append(customer)
        self.next_customer += count
        columns = "email,name,balance,tier,options,created,note"
        sql = f"INSERT INTO `{self.name}`.customers ({columns}) VALUES {','.join(values)}"
        return Transaction("new_customer", (sql,), count)

    def _new_order(self, dice: random.Random) -> Transaction:
        order, customer, lines = self.next_order, dice.choice(self.customers), dice.randrange(1, 4)
        self.next_order += 1
        self.orders.append((order, lines))
        total = dice.randrange(100, 100_000) / 100
        placed = self._time()
        values = ",".join(
            f"({order},{line},'SKU{dice.randrange(500):09}',{dice.randrange(1, 9)},"
            f"{dice.randrange(1, 99999) / 100},{line / 8})"
            for line in range(1, lines + 1)
        )
        return Transaction(
            "new_order",
            (
                f"INSERT INTO `{self.name}`.orders (customer_id,status,total,placed) "
                f"VALUES ({customer},'open',{total:.2f},'{placed}')",
                f"INSERT INTO `{self.name}`.order_lines VALUES {values}",
                f"UPDATE `{self.name}`.customers SET balance = balance - {total:.2f} WHERE id = {customer}",
            ),
            lines + 2,
        )

    def _pay(self, dice: random.Random) -> Transaction:
        order, _ = self.orders[dice.randrange(len(self.orders))]
        status, orders = dice.choice(_STATUS), f"`{self.name}`.orders"
        return Transaction(
            "pay",
            (
                f"UPDATE {orders} SET status = '{status}', total = total + 0.01 WHERE id = {order}",
                self.balance(dice),
            ),
            2,
        )

    def _event(self, dice: random.Random) -> Transaction:
        event, size = self.next_event, dice.randrange(20, 300)
        self.next_event += 1
        payload = f'{{"order": {self.next_order}, "word": "{dice.choice(_WORDS[:5])}", "list": [1, 2.5, null, true]}}'
        body = dice.randbytes(size).hex()
        day, took = f"2026-0{1 + event % 9}-1{event % 10}", f"-0{event % 9}:59:59.{event % 1000:03}"
        sql = (
            f"INSERT INTO `{self.name}`.events (kind,payload,body,bits,day,took,season) VALUES "
            f"('kind {event % 9}','{payload}',x'{body}',{event % 1024},'{day}','{took}',{2000 + event % 100})"
        )
        scratch = self.next_scratch
        self.next_scratch += 1
        word = dice.choice(_WORDS)
        return Transaction("event", (sql, f"INSERT INTO `{self.name}`.scratch VALUES ({scratch},'{word}')"), 2)

    def _cancel(self, dice: random.Random) -> Transaction:
        at = dice.randrange(len(self.orders))
        self.orders[at], self.orders[-1] = self.orders[-1], self.orders[at]
        order, lines = self.orders.pop()
        return Transaction(
            "cancel",
            (
                f"DELETE FROM `{self.name}`.order_lines WHERE order_id = {order}",
                f"DELETE FROM `{self.name}`.orders WHERE id = {order}",
            ),
            lines + 1,
        )

    def _change_email(self, dice: random.Random) -> Transaction:
        """Move an address from one customer to another: a value of a unique key changes its row."""
        one, other = dice.sample(self.customers, 2)
        self.addresses += 1
        table, address = f"`{self.name}`.customers", f"{self.run}.{self.addresses}@{self.name}.test"
        return Transaction(
            "change_email",
            (
                f"UPDATE {table} SET email = 'shared.{address}', tier = 'pro' WHERE id = {one}",
                f"UPDATE {table} SET email = 'former.{address}' WHERE id = {one}",
                f"UPDATE {table} SET email = 'shared.{address}', tier = 'free' WHERE id = {other}",
            ),
            3,
        )
