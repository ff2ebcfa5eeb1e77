"""Each privilege of the documented accounts is revoked by itself: what follows ends equal, or is refused by name.

Never "clean" while an account is blind, no drift forgotten, no rows in the order of other columns; and with the
privilege back everything goes on.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from binlane.errors import BinlaneError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.one_runner import apply_alone
from tests.trials.sampling import sampled

ACCOUNTS: Final = Path(__file__).parents[2] / "docs" / "accounts.md"
ACCOUNT: Final = "test_binlane@'%'"
ROLE: Final = "reading_role"
STATE: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "INDEX", "CREATE VIEW", "ALTER", "DROP", "TRIGGER")
"""What is in ALL PRIVILEGES on binlane's own schema, and used."""
TABLES: Final = ("tenant_1.t", "tenant_1.u", "tenant_1.swapped", "tenant_2.t")
NAMED: Final = re.compile(r"privilege|GRANT|denied|account|window \S+ is (unfinished|open)|expected .* found", re.I)
"""What a refusal says: the privilege, the window that is not finished, or what differs."""
_SECTION: Final = re.compile(r"## (Source|Target), (MariaDB|MySQL)\n\n```sql\n(.*?)```", re.S)
_STATEMENT: Final = re.compile(r"GRANT (.*?) ON (\S+) TO ", re.S)


@dataclass(frozen=True, slots=True)
class Case:
    """A privilege that an account lacks."""

    family: str
    side: str
    level: str
    """``*.*``, ``binlane.*``, or databases, tables or columns, on which all others are granted instead; ``role``: a
    role has it, which no session of the account activates; ``revoke``: it is granted on all databases, and taken back
    for one (MySQL's partial revokes)."""
    name: str

    def __str__(self) -> str:
        return f"{self.family}-{self.side}-{self.level}-{self.name}"


def documented(family: str, side: str) -> list[tuple[str, str]]:
    """Privilege and scope, by the page on accounts."""
    sections = {(name.lower(), place.lower()): body for place, name, body in _SECTION.findall(ACCOUNTS.read_text())}
    text, found = sections[family, side], []
    for names, scope in _STATEMENT.findall(text):
        each = STATE if names.startswith("ALL") else [" ".join(name.split()) for name in names.split(",")]
        found += [(name, scope) for name in each]
    if (family, side) == ("mysql", "target"):
        # the lab's account, which defines the views, holds it
        found.append(("SYSTEM_USER", "*.*"))
    return found


OF_DATABASES: Final = frozenset(
    {
        *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "INDEX", "REFERENCES", "TRIGGER", "EVENT"),
        *("EXECUTE", "CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE", "CREATE TEMPORARY TABLES"),
        "LOCK TABLES",
    }
)


def cases() -> Iterator[Case]:
    for family in ("mariadb", "mysql"):
        for side in ("source", "target"):
            held = documented(family, side)
            yield from (Case(family, side, scope, name) for name, scope in held)
            yield from (
                Case(family, side, "database", name) for name, scope in held if scope == "*.*" and name in OF_DATABASES
            )
            if (family, side) == ("mysql", "target"):
                # besides SELECT on the database that says who holds it
                yield Case(family, side, "database", "SYSTEM_USER")
            yield Case(family, side, "table", "SELECT")
            yield Case(family, side, "column", "SELECT")
            yield Case(family, side, "role", "SELECT")
            if family == "mysql":
                yield Case(family, side, "revoke", "SELECT")


CASES: Final = tuple(cases())
SAMPLE: Final = (
    Case("mariadb", "source", "*.*", "SELECT"),
    Case("mysql", "source", "column", "SELECT"),
    Case("mariadb", "target", "database", "SELECT"),
    Case("mysql", "target", "*.*", "SHOW VIEW"),
    Case("mysql", "source", "revoke", "SELECT"),
    Case("mariadb", "target", "role", "SELECT"),
)


def grants_of(case: Case, *, lacks: bool) -> list[str]:
    """The account's grants, with the privilege or without it."""
    held = documented(case.family, case.side)
    if case.level in _BESIDE:
        if not lacks:
            return [f"GRANT {name} ON {scope} TO {ACCOUNT}" for name, scope in held]
        return _BESIDE[case.level](case.name, held)
    if case.level in ("*.*", "binlane.*"):
        kept = [each for each in held if not lacks or each != (case.name, case.level)]
        return [f"GRANT {name} ON {scope} TO {ACCOUNT}" for name, scope in kept]
    # of databases, tables and columns instead of everything
    own = OF_DATABASES if case.level == "database" else {"SELECT"}
    gone = {case.name} if lacks and case.name not in own else set()
    found = [
        f"GRANT {name} ON {scope} TO {ACCOUNT}" for name, scope in held if scope != "*.*" or name not in own | gone
    ]
    names = [name for name, scope in held if scope == "*.*" and name in own]
    if case.level == "database":
        for database in ("tenant_1", "tenant_2"):
            left = [name for name in names if not (lacks and database == "tenant_1" and name == case.name)]
            found.append(f"GRANT {', '.join(left)} ON {database}.* TO {ACCOUNT}")
        return found
    if not lacks:
        return [*found, f"GRANT SELECT ON *.* TO {ACCOUNT}"]
    found += [f"GRANT SELECT ON {table} TO {ACCOUNT}" for table in TABLES if table != "tenant_1.t"]
    if case.level == "column":
        found.append(f"GRANT SELECT (id, a) ON tenant_1.t TO {ACCOUNT}")
    return found


def _by_role(name: str, held: list[tuple[str, str]]) -> list[str]:
    own = [f"GRANT {each} ON {scope} TO {ACCOUNT}" for each, scope in held if (each, scope) != (name, "*.*")]
    return [*own, f"CREATE ROLE {ROLE}", f"GRANT {name} ON *.* TO {ROLE}", f"GRANT {ROLE} TO {ACCOUNT}"]


def _revoked(name: str, held: list[tuple[str, str]]) -> list[str]:
    whole = [f"GRANT {each} ON {scope} TO {ACCOUNT}" for each, scope in held]
    return [*whole, "SET GLOBAL partial_revokes = ON", f"REVOKE {name} ON tenant_1.* FROM {ACCOUNT}"]


_BESIDE: Final[Mapping[str, Callable[[str, list[tuple[str, str]]], list[str]]]] = {
    "role": _by_role,
    "revoke": _revoked,
}


def give(server: PrivateServer, grants: list[str]) -> None:
    run_on(
        server,
        f"DROP USER IF EXISTS {ACCOUNT}",
        f"DROP ROLE IF EXISTS {ROLE}",
        f"CREATE USER {ACCOUNT} IDENTIFIED BY '{server.password}'",
        *grants,
        log=False,
    )


Rows: TypeAlias = dict[str, list[tuple[tuple[str, str], ...]]]


def rows(server: PrivateServer) -> Rows:
    """Each row as its values by column."""
    found: Rows = {}
    names = server.query(
        "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables "
        "WHERE table_schema LIKE 'tenant%' AND table_type = 'BASE TABLE'"
    )
    for (name,) in names:
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {name}")
            columns = [each[0] for each in cursor.description or ()]
            found[str(name)] = sorted(
                tuple(sorted((column, repr(value)) for column, value in zip(columns, row, strict=True)))
                for row in cursor.fetchall()
            )
    return found


def without_drift(found: Rows) -> Rows:
    return {name: [row for row in each if ("id", "3") not in row] for name, each in found.items()}


def differing(ours: Rows, theirs: Rows) -> list[object]:
    """The rows of one server alone, by table."""
    return [
        (name, [row for row in ours.get(name, []) if row not in theirs.get(name, [])], theirs.get(name))
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name)
    ]


def begin(channel: Channel) -> None:
    for server in (channel.source, channel.target):
        run_on(server, f"DROP USER IF EXISTS {ACCOUNT}", log=False)
    for name in ("tenant_1", "tenant_2"):
        run_on(
            channel.source,
            f"CREATE DATABASE {name}",
            f"CREATE TABLE {name}.t (id INT PRIMARY KEY, a INT, b INT)",
            f"INSERT INTO {name}.t VALUES (1, 10, 20), (2, 11, 21), (3, 12, 22)",
        )
    run_on(
        channel.source,
        "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, n INT)",
        "INSERT INTO tenant_1.u VALUES (1, 1)",
        "CREATE TABLE tenant_1.swapped (id INT PRIMARY KEY, a INT, b INT)",
        "CREATE VIEW tenant_1.v AS SELECT id, a FROM tenant_1.t",
        "CREATE TRIGGER tenant_1.g BEFORE INSERT ON tenant_1.u FOR EACH ROW SET NEW.n = NEW.n + 1",
        "CREATE PROCEDURE tenant_1.p () UPDATE tenant_1.u SET n = n + 1",
    )
    assert channel.run() is not None
    channel.assert_equal()


def changes(number: int) -> tuple[str, ...]:
    """Rows, statements and DDL."""
    return (
        f"INSERT INTO tenant_1.t VALUES ({100 + number}, {number}, -{number})",
        f"INSERT INTO tenant_2.t VALUES ({100 + number}, {number}, -{number})",
        f"INSERT INTO tenant_1.u VALUES ({100 + number}, 0)",
        "SET SESSION binlog_format = STATEMENT",
        "UPDATE tenant_1.t SET a = a + 1 WHERE id = 2",
        "UPDATE tenant_1.u SET n = n + 1 WHERE id = 1",
        "SET SESSION binlog_format = ROW",
        "ALTER TABLE tenant_1.u COMMENT 'changed'",
        "CREATE TABLE tenant_1.made (id INT PRIMARY KEY, n INT, KEY (n))",
        "INSERT INTO tenant_1.made VALUES (1, 1)",
        "CREATE OR REPLACE VIEW tenant_1.v AS SELECT id, b FROM tenant_1.t",
        "DROP TABLE tenant_1.made",
    )


def check_case(channel: Channel, case: Case, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Raises AssertionError for what is neither equal nor refused by name."""
    source, target = channel.source, channel.target
    server = source if case.side == "source" else target
    connection = f"{case.side}_server"

    def command(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        code = channel.cli(*arguments)
        said = capsys.readouterr()
        assert "Traceback" not in said.err, (arguments, said.err[-1500:])
        if code == 1 and "Error: " in said.err:
            assert NAMED.search(said.err), (arguments, said.err[-1500:])
        return code, said.err + said.out

    give(server, grants_of(case, lacks=False))
    channel.connect(connection, server, "test_binlane")
    run_on(target, "UPDATE tenant_1.t SET b = -1 WHERE id = 3", log=False)
    code, said = command("verify", CHANNEL, "--full")
    assert (code, target.query("SELECT COUNT(*) FROM binlane.suspects")) == (1, [(1,)]), said[-1500:]
    give(server, grants_of(case, lacks=True))
    run_on(source, *changes(number))
    code, said = command("run", CHANNEL)
    if code == 0:
        assert differing(without_drift(rows(source)), without_drift(rows(target))) == []
    for options in (("--full",), ()):
        code, said = command("verify", CHANNEL, *options)
        # also beside a statement of the log that no window has applied: the row was drift at this watermark
        assert code != 0, f"verify {options}: {said[-1500:]}"
    assert target.query("SELECT COUNT(*) FROM binlane.suspects") >= [(1,)], "drift was forgotten"
    code, said = command("check", CHANNEL, "--max-lag", "0")
    assert code != 0, said
    code, said = command("verify", CHANNEL, "--full", "--repair", "--yes")
    if code == 0:
        # what a refused window has not written yet is pending
        assert target.query("SELECT a, b FROM tenant_1.t WHERE id = 3") == [(12, 22)]
    code, said = command("recopy", CHANNEL, "--table", "tenant_1.t", "--yes")
    if code == 0:
        assert rows(source)["tenant_1.t"] == rows(target)["tenant_1.t"]
    # columns in another order, which nobody must miss
    run_on(target, "ALTER TABLE tenant_1.swapped MODIFY a INT AFTER b", log=False)
    run_on(source, f"INSERT INTO tenant_1.swapped (id, a, b) VALUES ({number}, 1, 2)")
    code, said = command("run", CHANNEL)
    assert code != 0, said
    assert target.query(f"SELECT * FROM tenant_1.swapped WHERE id = {number}") == []
    run_on(target, "ALTER TABLE tenant_1.swapped MODIFY a INT AFTER id", log=False)
    give(server, grants_of(case, lacks=False))
    # the window that was refused, and the one behind it
    for _ in range(2):
        code, said = command("run", CHANNEL)
        assert code == 0, said[-1500:]
    code, said = command("verify", CHANNEL, "--full", "--repair", "--yes")
    assert code == 0, said[-1500:]
    code, said = command("verify", CHANNEL, "--full")
    assert code == 0, said[-1500:]
    assert differing(rows(source), rows(target)) == []
    channel.connect(connection, server)
    if case.level == "revoke":
        run_on(server, "SET GLOBAL partial_revokes = OFF", log=False)


@pytest.mark.parametrize("case", sampled(CASES, SAMPLE), ids=str)
def test_each_privilege_that_is_revoked(channel_of: ChannelOf, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    channel = channel_of(case.family, case.family)
    begin(channel)
    check_case(channel, case, 1, capsys)


LOST: Final = (
    ("mariadb", "source", "SELECT", "*.*"),
    ("mariadb", "source", "REPLICATION SLAVE", "*.*"),
    ("mariadb", "target", "SELECT", "*.*"),
    ("mariadb", "target", "BINLOG REPLAY", "*.*"),
    ("mariadb", "target", "INSERT", "*.*"),
    ("mariadb", "target", "UPDATE", "binlane.*"),
    ("mysql", "source", "SELECT", "*.*"),
    ("mysql", "source", "REPLICATION SLAVE", "*.*"),
    ("mysql", "target", "SELECT", "*.*"),
    ("mysql", "target", "REPLICATION_APPLIER", "*.*"),
    ("mysql", "target", "INSERT", "*.*"),
    ("mysql", "target", "UPDATE", "binlane.*"),
)
"""Family, side, privilege and scope."""
STEPS: Final = ("plan", "adopt", "apply", "advance")


@pytest.mark.parametrize("before", STEPS)
@pytest.mark.parametrize("lost", LOST, ids="-".join)
def test_a_privilege_that_is_lost_between_two_steps(
    channel_of: ChannelOf, lost: tuple[str, str, str, str], before: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next step says so, or nobody needs it any more; with the privilege back the window is finished."""
    family, side, name, scope = lost
    channel = channel_of(family, family)
    begin(channel)
    server = channel.source if side == "source" else channel.target
    case = Case(family, side, scope, name)
    give(server, grants_of(case, lacks=False))
    channel.connect(f"{side}_server", server, "test_binlane")
    run_on(channel.source, *changes(1))
    config, endpoints = channel.config, channel.endpoints
    window = steps.extract(config, endpoints, WindowRequest("now"))

    def come(step: str) -> None:
        if step == before:
            give(server, grants_of(case, lacks=True))

    try:
        come("plan")
        run_plan_job(WorkFolder(window["work"]), InProcess())
        come("adopt")
        adopted = steps.adopt_plan(config, endpoints, window["work"])
        come("apply")
        for each in adopted["lanes"]:
            apply_alone(config, endpoints, adopted["plan"], each["lane"])
        come("advance")
        steps.advance(config, endpoints, adopted["plan"])
    except BinlaneError as exc:
        said = str(exc)
    else:
        said = ""
    assert not said or NAMED.search(said), said
    give(server, grants_of(case, lacks=False))
    assert channel.cli("run", CHANNEL) == 0, capsys.readouterr().err
    assert channel.cli("verify", CHANNEL, "--full") == 0, capsys.readouterr().out
    assert differing(rows(channel.source), rows(channel.target)) == []
    channel.connect(f"{side}_server", server)
