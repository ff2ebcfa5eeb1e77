"""Every option of a server's own replication and log that it takes at its start, with a hostile value, on the target:
rows and statements arrive, drift is found, or a refusal names the option.

SET GLOBAL takes only some of them, and of those some change another thing than the option at the start does (MariaDB's
``replicate_rewrite_db``), so ``test_session_globals`` does not meet them. The options are read from the server's own
``--help --verbose``. A group that fails is halved until one option is left.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import pytest
from pymysql.err import MySQLError

from binlane.errors import BinlaneError
from binlane.model import Flavor
from lab.programs import WITHOUT_MYSQL, LabError, has_mysql, server_binary
from lab.servers import PrivateServer, private_server
from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.trials.sampling import sampled

GROUP: Final = 12
"""Options that are hostile together."""
OPTIONS: Final = re.compile(
    r"(replicate|slave|replica|log-slave|log-replica|skip-slave|skip-replica|binlog|gtid|init|rpl|relay-log)-.*"
    r"|log-bin(-.*)?|.*sql-mode|old(-mode)?|.*read-only|autocommit|transaction-isolation|default-time-zone"
    r"|explicit-defaults-for-timestamp|character-set-server|collation-server|event-scheduler|lower-case-table-names"
)
"""Names of the options that are tried: those that may change what BINLOG, a statement or the target's log does."""
VALUES: Final[dict[str, str]] = {
    "replicate-do-db": "elsewhere",
    "replicate-do-table": "elsewhere.t",
    "replicate-events-marked-for-skip": "FILTER_ON_REPLICA",
    "replicate-ignore-db": "tenant_1",
    "replicate-ignore-table": "tenant_1.t",
    "replicate-rewrite-db": "tenant_1->tenant_2",
    "replicate-wild-do-table": "elsewhere.%",
    "replicate-wild-ignore-table": "tenant_1.%",
    **dict.fromkeys(("slave-skip-errors", "replica-skip-errors"), "all"),
    **dict.fromkeys(("slave-exec-mode", "replica-exec-mode"), "IDEMPOTENT"),
    **dict.fromkeys(("slave-type-conversions", "replica-type-conversions"), "ALL_LOSSY,ALL_NON_LOSSY"),
    **dict.fromkeys(("init-slave", "init-replica", "init-connect"), "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'"),
    "slave-ddl-exec-mode": "STRICT",
    "slave-parallel-mode": "optimistic",
    "slave-run-triggers-for-rbr": "ENFORCE",
    "slave-transaction-retry-errors": "1062",
    "gtid-pos-auto-engines": "InnoDB",
    "binlog-checksum": "NONE",
    "binlog-do-db": "elsewhere",
    "binlog-error-action": "IGNORE_ERROR",
    "binlog-format": "STATEMENT",
    "binlog-ignore-db": "tenant_1",
    "binlog-row-image": "MINIMAL",
    "binlog-row-metadata": "FULL",
    "binlog-row-value-options": "PARTIAL_JSON",
    "rpl-semi-sync-master-wait-point": "AFTER_SYNC",
    "init-rpl-role": "SLAVE",
    "sql-mode": "ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO",
    "old-mode": "NO_DUP_KEY_WARNINGS_WITH_IGNORE",
    "transaction-isolation": "READ-UNCOMMITTED",
    "default-time-zone": "+03:00",
    "character-set-server": "latin1",
    "collation-server": "utf8mb4_bin",
    "event-scheduler": "ON",
    "lower-case-table-names": "1",
}
"""Values of options that are neither switches nor numbers, and of those whose hostile value is a chosen one."""
LEFT_OUT: Final = re.compile(
    r"log-bin(-index)?|relay-log(-index|-info-file)?|.*-load-tmpdir|init-file|binlog-encryption"
    r"|binlog-rotate-encryption-master-key-at-startup|gtid-domain-id|gtid-mode|.*-parallel-type"
)
"""Files and folders, what a file's statements do, keys that the server does not have, and the identity of a server;
``gtid_mode`` has tests of its own."""
SAMPLE: Final = {
    *("replicate-do-db", "replicate-rewrite-db", "replicate-wild-ignore-table", "slave-skip-errors", "sql-mode"),
    *("slave-exec-mode", "slave-type-conversions", "binlog-ignore-db", "binlog-format", "read-only"),
}
_ALIASES: Final = (("slave", "replica"), ("replica", "slave"), ("transaction", "tx"))
_SWITCHES: Final = {"TRUE": "0", "FALSE": "1", "ON": "0", "OFF": "1"}
_TABLES: Final = tuple(
    statement
    for name in ("tenant_1", "tenant_2")
    for statement in (
        f"CREATE DATABASE {name} CHARACTER SET utf8mb4",
        f"CREATE TABLE {name}.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s VARCHAR(40), at TIMESTAMP NULL)",
        f"CREATE TABLE {name}.noted (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
    )
)
_TRIGGER: Final = (
    "CREATE TRIGGER tenant_1.fires AFTER DELETE ON tenant_1.t FOR EACH ROW "
    "INSERT INTO tenant_1.noted (n) VALUES (OLD.n)"
)
_CHANGES: Final = (
    "INSERT INTO tenant_1.t (n, s) VALUES (1, 'ä'), (2, 'two'), (3, NULL), (4, 'four'), (5, 'five')",
    "UPDATE tenant_1.t SET n = n + 10 WHERE id < 3",
    "DELETE FROM tenant_1.t WHERE id = 3",
    "INSERT INTO tenant_2.t (id, n) VALUES (1, 7)",
    "SET SESSION binlog_format = STATEMENT",
    "INSERT INTO tenant_1.t (n, s, at) VALUES (6, 'a\\\\b', NOW())",
    "UPDATE tenant_1.t SET s = CONCAT(s, '!') WHERE n > 4",
    "SET SESSION binlog_format = ROW",
    "ALTER TABLE tenant_1.t ADD COLUMN z INT NOT NULL DEFAULT 7",
    "CREATE TABLE tenant_1.made (a INT, b TIMESTAMP NULL)",
    "INSERT INTO tenant_1.made VALUES (1, '2024-01-01'), (2, NULL)",
)
_number = count()


@dataclass(frozen=True, slots=True)
class Option:
    """An option with a hostile value."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"--{self.name}={self.value}"

    def is_named(self, told: str) -> bool:
        """Whether a message names it, or the variable of another name."""
        name = self.name.replace("-", "_")
        both = {name, *(name.replace(*each) for each in _ALIASES)}
        return "expected" in told and re.search(rf"\b({'|'.join(both)})\b", told.replace("-", "_")) is not None


def options(flavor: Flavor) -> list[Option]:
    """All options of ``OPTIONS`` that the server's program takes; an option without a value fails."""
    given = [str(server_binary(flavor)), "--no-defaults", "--help", "--verbose"]
    told = subprocess.run(given, capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^ {2}(?:-\w, )?--([a-z][a-z0-9-]+)", told, re.MULTILINE)
    current = dict(re.findall(r"^([a-z][a-z0-9-]+) +(\S.*)$", told, re.MULTILINE))
    found = []
    for name in dict.fromkeys(name for name in (*names, *current) if OPTIONS.fullmatch(name)):
        if LEFT_OUT.fullmatch(name):
            continue
        now = current.get(name, "")
        value = VALUES.get(name) or _SWITCHES.get(now) or (("2" if now == "1" else "1") if now.isdigit() else None)
        assert value is not None, f"--{name}: an option without a hostile value; it is {now!r}"
        found.append(Option(name, value))
    return found


def play(source: PrivateServer, target: PrivateServer, folder: Path, group: Sequence[Option]) -> None:
    """A window of rows and statements, and two that meet drift, on a target that is started with these options behind
    `binlane init`.

    Raises AssertionError for a window that is not applied, for other data, and for drift that no window has found;
    LabError for a server that does not start.
    """
    channel = Channel(source, target, folder)
    for server in (source, target):
        names = ("tenant_1", "tenant_2", "binlane")
        run_on(server, *(f"DROP DATABASE IF EXISTS {name}" for name in names), *_TABLES, _TRIGGER, log=False)
    apply(channel, "init", CHANNEL, "--start", "now")
    usual = target.options
    try:
        target.restart((*usual, *map(str, group)))
        run_on(source, *_CHANGES)
        apply(channel, "run", CHANNEL)
        equal(channel)
        # a row in the way
        change(target, "INSERT INTO tenant_2.t (id, n) VALUES (100, 1)")
        run_on(source, "INSERT INTO tenant_2.t (id, n) VALUES (100, 2)")
        if channel.cli("run", CHANNEL) != 0:
            change(target, "DELETE FROM tenant_2.t WHERE id = 100")
            apply(channel, "run", CHANNEL)
        equal(channel)
        # with a missing row they are as many writes and updates as the log has
        change(target, "INSERT INTO tenant_2.t (id, n) VALUES (200, 1)", "DELETE FROM tenant_2.t WHERE id = 1")
        insert, update = "INSERT INTO tenant_2.t (id, n) VALUES (200, 2)", "UPDATE tenant_2.t SET n = 8 WHERE id = 1"
        run_on(source, "BEGIN", insert, update, "COMMIT")
        if channel.cli("run", CHANNEL) == 0:
            equal(channel)
    finally:
        target.restart(usual)


def change(target: PrivateServer, *statements: str) -> None:
    """Changes of the target's own, whatever its options say of transactions."""
    run_on(target, "SET SESSION TRANSACTION READ WRITE", *statements, log=False)


def apply(channel: Channel, *arguments: str) -> None:
    code = channel.cli(*arguments)
    assert code == 0, f"binlane {' '.join(arguments)} ended with {code}"


def equal(channel: Channel) -> None:
    assert rows(channel.source) == rows(channel.target)


def rows(server: PrivateServer) -> dict[str, list[tuple[object, ...]]]:
    """All rows by table, read in one time zone."""
    names = "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables WHERE table_schema LIKE "
    found = {}
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION time_zone = '+00:00'")
        cursor.execute(f"{names} 'tenant%' ORDER BY 1")
        for (name,) in cursor.fetchall():
            cursor.execute(f"SELECT * FROM {name}")
            found[str(name)] = sorted(cursor.fetchall(), key=repr)
    return found


def failing(
    servers: tuple[PrivateServer, PrivateServer],
    folder: Path,
    group: Sequence[Option],
    capsys: pytest.CaptureFixture[str],
) -> list[str]:
    """The options of a group that neither work nor are refused by name, each with what happened."""
    place = folder / str(next(_number))
    place.mkdir()
    try:
        play(*servers, place, group)
    except (AssertionError, BinlaneError, MySQLError, LabError) as exc:
        told = "".join(capsys.readouterr())
        named = [each for each in group if each.is_named(told)]
        others = [each for each in group if each not in named]
        if named:
            return failing(servers, folder, others, capsys) if others else []
        if len(group) == 1:
            if isinstance(exc, LabError):
                # the server does not start with it alone
                return []
            failed = f"{group[0]}: {str(exc)[:300]}: {told[-1500:]}"
            with capsys.disabled():
                sys.stdout.write(f"{failed}\n")
            return [failed]
        middle = len(group) // 2
        return [each for part in (group[:middle], group[middle:]) for each in failing(servers, folder, part, capsys)]
    capsys.readouterr()
    return []


@pytest.mark.parametrize("flavor", list(Flavor))
def test_every_option_of_a_target_s_own_replication_at_its_start(
    flavor: Flavor,
    request: pytest.FixtureRequest,
    clean_servers: Callable[[PrivateServer], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if flavor is Flavor.MYSQL and not has_mysql():
        pytest.skip(WITHOUT_MYSQL)
    every = options(flavor)
    assert len(every) > 40
    sample = [each for each in every if each.name in SAMPLE]
    chosen = sampled(every, sample)
    source = request.getfixturevalue(f"{flavor.value}_source")
    clean_servers(source)
    failed: list[str] = []
    with private_server(tmp_path / "target", flavor, durable=False) as target:
        for at in range(0, len(chosen), GROUP):
            failed += failing((source, target), tmp_path, chosen[at : at + GROUP], capsys)
    assert not failed, "\n".join(failed)
