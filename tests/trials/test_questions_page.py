"""docs/questions.md: its commands typed in their order between three servers, behind what each section asks about; what
they print is compared with the page."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from binlane.model import Flavor
from lab.dumps import dump_command
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.dist.test_quickstart import alike, commands_of, on

PAGE: Final = (Path(__file__).parents[2] / "docs" / "questions.md").read_text("utf-8")
SECTIONS: Final[Mapping[str, str]] = {
    part.partition("\n")[0]: part.partition("\n")[2] for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
}
RESTORED, UNDONE, WHO, DROPPED, MOVED = SECTIONS
pytestmark = pytest.mark.timeout(1800)
TENANT: Final = (
    "CREATE DATABASE tenant_042",
    "CREATE TABLE tenant_042.orders (id INT PRIMARY KEY AUTO_INCREMENT, customer INT NOT NULL, "
    "price DECIMAL(10, 2) NOT NULL, currency CHAR(3) NOT NULL) DEFAULT CHARSET = ascii",
)
ORDERS: Final = (
    "INSERT INTO tenant_042.orders VALUES (1, 1, 10, 'EUR')",
    "INSERT INTO tenant_042.orders VALUES (2, 1, 20, 'CHF'), (3, 2, 30, 'EUR'), (4, 2, 40, 'CHF')",
)
ZEROED: Final = "UPDATE tenant_042.orders SET price = 0"
_GTID: Final = "0-60103-26"
"""Of the UPDATE, on the page."""


@dataclass(slots=True)
class Site:
    """A folder with channels, between a source, its target, and the server that a tenant moves to."""

    folder: Path
    source: PrivateServer
    target: PrivateServer
    other: PrivateServer

    def type(self, command: str, *, fails: bool = False) -> str:
        """One command of the page; both of its outputs."""
        given = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]), "COLUMNS": "300"}
        for name, server in (
            ("SHOP_SOURCE", self.source), ("SHOP_TARGET", self.target),
            ("MOVE_SOURCE", self.source), ("MOVE_TARGET", self.other),
        ):  # fmt: skip
            account = f"{server.user}:{server.password}@{server.host}:{server.port}"
            given[f"AIRFLOW_CONN_{name}"] = f"mysql://{account}/?get_server_public_key=true"
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "BINLANE"))}
        done = subprocess.run(
            ["bash", "-c", f"set -eu -o pipefail\nexec 2>&1\n{self._here(command)}"],
            cwd=self.folder, env={**outer, **given}, stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode != 0) is fails, f"$ {command}\n{done.stdout}"
        return done.stdout

    def _here(self, command: str) -> str:
        """With the programs of the servers' family, and an end to what has none."""
        client = f"{self.source.tool('client')} --no-defaults"
        options = "" if self.source.flavor is Flavor.MYSQL else " --skip-ssl"
        if command.startswith("mysqlbinlog"):
            account = f"-P {self.source.port} -u {self.source.user} -p{self.source.password}"
            program = f"{self.source.tool('binlog')} --no-defaults{options}"
            command = command.replace("mysqlbinlog", program).replace("-h db1.example.com -u root -p", account)
            return command.replace("--raw", f"--raw -h {self.source.host}")
        if command.startswith("binlane follow"):
            return f"{command} --for 2s"
        return on(command, self.source, self.target).replace("mariadb --no-defaults --skip-ssl", f"{client}{options}")

    def typed(self, section: str, replaced: Mapping[str, str], fails: Sequence[str] = ()) -> dict[str, str]:
        """All commands of a section; what each printed."""
        printed = dict[str, str]()
        for command, lines in commands_of(SECTIONS[section]):
            here = command
            for text, by in replaced.items():
                here = here.replace(text, by)
            printed[command] = said = self.type(here, fails=command in fails)
            if self.source.flavor is Flavor.MARIADB:
                # another family has other GTIDs
                found = {alike(line) for line in said.splitlines()}
                assert [line for line in lines if alike(line) not in found] == [], (command, said)
        return printed

    def on_source(self, *statements: str) -> None:
        with self.source.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def dump(self) -> None:
        """The page's dump: of the tenant, with its place in the log."""
        is_mysql = self.source.flavor is Flavor.MYSQL
        place = ["--source-data=2"] if is_mysql else ["--master-data=2", "--gtid"]
        command = [*dump_command(self.source), *place, "--single-transaction", "--databases", "tenant_042"]
        text = subprocess.run(command, check=True, capture_output=True).stdout
        (self.folder / "dump.sql.gz").write_bytes(gzip.compress(text))


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    folder, flavor = tmp_path / "site", Flavor(request.param)
    folder.mkdir()
    with (
        private_server(tmp_path / "source", flavor, name="source", durable=False) as source,
        private_server(tmp_path / "target", flavor, name="target", durable=False) as target,
        private_server(tmp_path / "other", flavor, name="other", durable=False) as other,
    ):
        found = Site(folder, source, target, other)
        found.type("binlane new shop")
        found.on_source(*TENANT)
        found.type("binlane bootstrap shop")
        yield found


def test_each_question_is_answered_by_the_commands_of_the_page(site: Site) -> None:
    source, target, other = site.source, site.target, site.other
    log = {"binlog.000001": source.query("SHOW BINARY LOGS")[-1][0]}

    site.dump()
    site.on_source(*ORDERS, "DROP DATABASE tenant_042")
    site.typed(RESTORED, log)
    assert target.query("SELECT COUNT(*), SUM(price) FROM tenant_042_back.orders") == [(4, 100)]

    site.on_source(*TENANT)
    site.dump()
    site.on_source(*ORDERS, "UPDATE tenant_042.orders SET price = 12 WHERE id = 1")
    site.type("binlane run shop")
    before = _last_gtid(source)
    site.on_source(ZEROED)
    wrong = before[: before.rindex(":" if ":" in before else "-") + 1] + str(int(re.split(r"[:-]", before)[-1]) + 1)
    # what has been changed rightly since
    site.on_source("INSERT INTO tenant_042.orders VALUES (5, 3, 7, 'EUR')")
    site.typed(UNDONE, {**log, _GTID: wrong})
    assert source.query("SELECT GROUP_CONCAT(price ORDER BY id) FROM tenant_042.orders")[0][0] == (
        "12.00,20.00,30.00,40.00,7.00"
    )

    (line, *_) = site.typed(WHO, log).values()
    assert '"price":"12.00"' in line

    site.type("binlane run shop")
    with target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE tenant_042.orders")
    site.on_source("INSERT INTO tenant_042.orders VALUES (6, 3, 8, 'EUR')")
    site.typed(DROPPED, log, fails=["binlane run shop"])
    assert target.query("SELECT COUNT(*) FROM tenant_042.orders") == [(6,)]

    site.on_source("CREATE DATABASE stays", "CREATE TABLE stays.t (id INT PRIMARY KEY)")
    site.typed(MOVED, log)
    assert other.query("SELECT COUNT(*) FROM tenant_042.orders") == [(6,)]
    assert other.query("SELECT COUNT(*), SUM(price) FROM tenant_042_moved.orders") == [(6, 117)]
    assert other.query("SHOW DATABASES LIKE 'stays'") == []


def _last_gtid(source: PrivateServer) -> str:
    """Of the newest transaction."""
    if source.flavor is Flavor.MARIADB:
        return str(source.query("SELECT @@GLOBAL.gtid_binlog_pos")[0][0])
    name, _, numbers = str(source.query("SELECT @@GLOBAL.gtid_executed")[0][0]).rpartition(":")
    return f"{name}:{numbers.rpartition('-')[2]}"
