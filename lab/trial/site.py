"""The servers of a trial: a source with many tenants and objects of every kind, an empty target, live traffic."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.model import Flavor
from lab.servers import PrivateServer, private_server
from lab.traffic import Mix, live_traffic, run_traffic
from lab.trial.shell import Shell

_ACCOUNT: Final = "binlane_shop"
_PASSWORD: Final = "Trial-1"
_OBJECTS: Final = (
    "CREATE USER 'app'@'%' IDENTIFIED BY 'App-1'",
    "GRANT SELECT, INSERT, UPDATE, DELETE, TRIGGER, EXECUTE, EVENT ON *.* TO 'app'@'%'",
    "CREATE DATABASE crm",
    # no primary key
    "CREATE TABLE crm.visits (at DATETIME(6) NOT NULL, visitor INT NOT NULL, page VARCHAR(40) NOT NULL)",
    "CREATE TABLE crm.articles (id INT PRIMARY KEY AUTO_INCREMENT, title VARCHAR(80) NOT NULL, "
    "stock INT NOT NULL DEFAULT 0, KEY by_title (title))",
    "CREATE TABLE crm.changes (id INT PRIMARY KEY AUTO_INCREMENT, article INT NOT NULL, stock INT NOT NULL)",
    "CREATE DEFINER = 'app'@'%' VIEW crm.in_stock AS SELECT id, title FROM crm.articles WHERE stock > 0",
    "CREATE DEFINER = 'app'@'%' FUNCTION crm.twice (n INT) RETURNS INT DETERMINISTIC RETURN n * 2",
    "CREATE DEFINER = 'app'@'%' TRIGGER crm.note_stock AFTER UPDATE ON crm.articles FOR EACH ROW "
    "INSERT INTO crm.changes (article, stock) VALUES (NEW.id, NEW.stock)",
    "CREATE DEFINER = 'app'@'%' EVENT crm.tidy ON SCHEDULE EVERY 1 DAY DO DELETE FROM crm.visits WHERE page = ''",
)
_BEFORE: Final = Mix(ddl=0.0005)
_MEANWHILE: Final = Mix(ddl=0.0, statements=0.0, accounts=0.0)
"""Rows of tables that statements change behind each watermark can be pending for windows: docs/comparison.md."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a trial is."""

    tenants: int = 12
    before: int = 3_000
    """Transactions before the first copy."""
    archived: int = 200_000
    """Rows of the largest table."""
    per_second: int = 200
    windows: int = 5


@dataclass(frozen=True, slots=True)
class Site:
    """The servers, and the shell of the user."""

    source: PrivateServer
    target: PrivateServer
    shell: Shell

    def on(self, part: str, *statements: str) -> None:
        """Run statements as an administrator of ``source`` or ``target``."""
        server = self.source if part == "source" else self.target
        with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def connect(self, name: str, server: PrivateServer) -> None:
        """Give the user's shell a connection to a server, by the user's own account."""
        place = f"{_ACCOUNT}:{_PASSWORD}@{server.host}:{server.port}"
        extra = "?ssl_mode=disabled&get_server_public_key=true"
        self.shell.environment[f"AIRFLOW_CONN_{name.upper()}"] = f"mysql://{place}/{extra}"

    def create_accounts(self) -> None:
        """The account of each connection, without privileges."""
        for part in ("source", "target"):
            self.on(part, f"CREATE USER '{_ACCOUNT}'@'%' IDENTIFIED BY '{_PASSWORD}'")


@contextlib.contextmanager
def new_site(flavor: Flavor, folder: Path, size: Size) -> Iterator[Site]:
    """A site whose source has written ``size.before`` transactions."""
    with (
        private_server(folder / "source", flavor, ["--server-id=11"], name="source", durable=False) as source,
        private_server(folder / "target", flavor, ["--server-id=12"], name="target", durable=False) as target,
    ):
        home = folder / "home"
        (home / "dags" / "channels").mkdir(parents=True)
        site = Site(source, target, Shell(home, family=flavor.value))
        site.connect("shop_source", source)
        site.connect("shop_target", target)
        run_traffic(source.connect, tenants=size.tenants, transactions=size.before, mix=_BEFORE)
        site.on("source", *_OBJECTS)
        _fill(source, size.archived)
        yield site


@contextlib.contextmanager
def busy(site: Site, size: Size) -> Iterator[None]:
    """While this lasts, the source goes on writing: tenants, a table without a key, and one with a trigger."""
    ended = threading.Event()

    def write() -> None:
        with site.source.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for number in itertools.count():
                cursor.execute("INSERT INTO crm.visits VALUES (NOW(6), %s, 'home')", (number,))
                cursor.execute("UPDATE crm.articles SET stock = stock + 1 WHERE id = %s", (number % 7 + 1,))
                if ended.wait(0.1):
                    return

    rate = {"tenants": size.tenants, "per_second": size.per_second}
    with live_traffic(site.source.connect, mix=_MEANWHILE, seed=2, **rate), ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            yield
        finally:
            ended.set()
        writer.result()


def _fill(source: PrivateServer, rows: int) -> None:
    """Articles, visits, and a table that a first copy takes a while for."""
    with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO crm.articles (title, stock) VALUES (%s, %s)", [(f"article {n}", n) for n in range(500)]
        )
        cursor.executemany("INSERT INTO crm.visits VALUES (NOW(6), %s, 'start')", [(n,) for n in range(300)])
        cursor.execute(
            "CREATE TABLE crm.archive (id INT PRIMARY KEY AUTO_INCREMENT, body VARCHAR(200) NOT NULL, KEY (body(9)))"
        )
        cursor.execute("INSERT INTO crm.archive (body) VALUES ('first line')")
        count = 1
        while count < rows:
            cursor.execute(
                f"INSERT INTO crm.archive (body) SELECT REPEAT(SHA2(id, 256), 3) FROM crm.archive LIMIT {rows - count}"
            )
            count = min(rows, 2 * count)
