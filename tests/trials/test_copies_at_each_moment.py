"""A channel that begins at a copy of each moment of a session: what the session goes on with is right, or named."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from binlane.errors import BinlaneError
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.emptied import empty_target
from tests.integration.source.helpers import purge_to
from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.integration.window.source.test_beginnings import TABLES, beginning
from tests.trials.test_beginnings import gtids, log_end

__all__ = ["beginning"]

_MARIADB, _BOTH = (Flavor.MARIADB,), (Flavor.MARIADB, Flavor.MYSQL)
_SEQUENCE: Final = (
    "CREATE SEQUENCE s",
    *2 * ("INSERT INTO t VALUES (NEXTVAL(s) + 40, 1)",),
    "DO SETVAL(s, 5000)",
    *2 * ("INSERT INTO t VALUES (NEXTVAL(s), 1)",),
)
_PREPARED: Final = ("XA START 'one'", "UPDATE t SET v = v + 1 WHERE id = 1", "XA END 'one'", "XA PREPARE 'one'")
_LASTING: Final = ("BEGIN", "UPDATE t SET v = v + 1 WHERE id = 1", "UPDATE lasting SET v = v + 1 WHERE id = 1")
_UNKNOWN_PREPARE: Final = r"its XA PREPARE is before the place where the channel begins|XA transactions are prepared"
_SERVERS_OWN: Final = r"\[unsafe-statements\]"


@dataclass(frozen=True, slots=True)
class State:
    """What a session does; a copy at a moment has a part of it only."""

    steps: Sequence[str]
    log_format: str = "STATEMENT"
    families: Sequence[Flavor] = _BOTH
    refused: str = ""
    """What may be said instead of going on right."""


STATES: Final[Mapping[str, State]] = {
    "a table without transactions in a transaction": State(
        (*_LASTING, "INSERT INTO lasting VALUES (3, 3)", "UPDATE lasting SET v = v * 10", "COMMIT",
         "UPDATE lasting SET v = v + 1000"),
        "STATEMENT", _MARIADB, r"\[open-transactions\]|tenant_1\.lasting",
    ),
    "the same by rows": State((*_LASTING, "COMMIT"), "ROW", _MARIADB, r"tenant_1\.lasting: .*InnoDB"),
    "the same, mixed": State((*_LASTING, "COMMIT"), "MIXED", _MARIADB, r"tenant_1\.lasting: .*InnoDB"),
    "the same, rolled back": State((*_LASTING, "ROLLBACK"), "STATEMENT", _MARIADB, r"tenant_1\.lasting"),
    "a prepared XA transaction": State(
        (*_PREPARED, "XA COMMIT 'one'", "UPDATE t SET v = v + 1"), "ROW", _BOTH, _UNKNOWN_PREPARE
    ),
    "one that is rolled back": State(
        (*_PREPARED, "XA ROLLBACK 'one'", "UPDATE t SET v = v + 1"), "ROW", _BOTH, _UNKNOWN_PREPARE
    ),
    "user variables": State(
        ("SET @a = 5", "INSERT INTO t VALUES (@a, @a)", "SET @a = @a + 1", "INSERT INTO t VALUES (@a, @a)")
    ),
    "the last id": State(
        2 * ("INSERT INTO numbered (v) VALUES (1)", "INSERT INTO p VALUES (LAST_INSERT_ID() + 10, 1)")
    ),
    "seeds": State(("INSERT INTO t VALUES (20, 1000 * RAND())", "INSERT INTO t VALUES (21, 1000 * RAND())")),
    "a named lock": State(
        ("DO GET_LOCK('mine', 1)", "INSERT INTO t VALUES (30, IS_FREE_LOCK('mine'))", "DO RELEASE_LOCK('mine')",
         "INSERT INTO t VALUES (31, IS_FREE_LOCK('mine'))"),
        refused=_SERVERS_OWN,
    ),
    # servers refuse NEXTVAL in a log of statements alone (1665)
    "a sequence's cache, mixed": State(_SEQUENCE, "MIXED", _MARIADB),
    "a sequence's cache, by rows": State(_SEQUENCE, "ROW", _MARIADB),
    "a temporary table": State(
        ("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 100)",
         "UPDATE t SET v = 0 WHERE id = 1", "DELETE FROM t", "DROP TEMPORARY TABLE t", "DELETE FROM t WHERE id = 1")
    ),
    "a temporary table that gets the name of another": State(
        ("CREATE TEMPORARY TABLE other (id INT PRIMARY KEY, v INT)", "ALTER TABLE other RENAME TO t",
         "INSERT INTO t VALUES (1, 100)", "DELETE FROM t", "DROP TEMPORARY TABLE t", "DELETE FROM t WHERE id = 1"),
        refused="temporary table of before the channel's beginning",
    ),
    "a definition in two phases": State(
        ("SET SESSION binlog_alter_two_phase = 1", "ALTER TABLE t ADD COLUMN w INT DEFAULT 3",
         "UPDATE t SET w = 4 WHERE id = 1"),
        "STATEMENT", _MARIADB,
    ),
    "a compound statement": State(
        ("BEGIN NOT ATOMIC DECLARE n INT DEFAULT 1; WHILE n < 4 DO UPDATE t SET v = v + n; "
         "SET n = n + 1; END WHILE; END", "UPDATE t SET v = v + 1"),
        "STATEMENT", _MARIADB,
    ),
    "a lock on tables": State(
        ("LOCK TABLES t WRITE, p WRITE", "UPDATE t SET v = v + 1", "UPDATE p SET v = v + 1", "UNLOCK TABLES",
         "UPDATE t SET v = v + 1")
    ),
}  # fmt: skip
CASES: Final = [
    pytest.param(family, state, id=f"{family}, {name}") for name, state in STATES.items() for family in state.families
]


@contextlib.contextmanager
def session(channel: Channel, state: State) -> Iterator[Callable[[str], object]]:
    """A connection that logs in the state's format."""
    # no first copy takes such a table
    lasting = (
        "CREATE TABLE tenant_1.lasting (id INT PRIMARY KEY, v INT) ENGINE=MyISAM",
        "INSERT INTO tenant_1.lasting VALUES (1, 1), (2, 2)",
    ) * any("lasting" in step for step in state.steps)
    run_on(channel.source, "CREATE TABLE tenant_1.numbered (id INT PRIMARY KEY AUTO_INCREMENT, v INT)", *lasting)
    with (
        contextlib.closing(channel.source.connect(autocommit=True, database=TABLES[0].split()[-1])) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"SET SESSION binlog_format = {state.log_format}")
        yield cursor.execute


def dumped(server: PrivateServer) -> bytes:
    """A copy of the database as it is; with InnoDB, which a target of binlane needs."""
    more = () if server.flavor is Flavor.MARIADB else ("--set-gtid-purged=OFF",)
    options = ("--skip-lock-tables", "--no-tablespaces", *more, "--databases", "tenant_1")
    return _client(server, server.tool("dump"), *options).replace(b"ENGINE=MyISAM", b"ENGINE=InnoDB")


def load(server: PrivateServer, dump: bytes) -> None:
    """Put a copy on a server that is empty."""
    _client(server, server.tool("dump").parent / server.flavor.value, data=dump)


def _client(server: PrivateServer, program: object, *options: str, data: bytes = b"") -> bytes:
    account = (f"--host={server.host}", f"--port={server.port}", f"--user={server.user}")
    command = [str(program), "--no-defaults", *account, f"--password={server.password}", *options]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def held(channel: Channel, server: PrivateServer) -> object:
    """Rows of tables and values of sequences."""
    names = server.query(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'tenant_1' AND table_type = 'SEQUENCE'"
    )
    values = {name: server.query(f"SELECT next_not_cached_value FROM tenant_1.{name}") for (name,) in names}
    return channel.rows_of(server), values


def goes_on(channel: Channel, state: State, case: str) -> None:
    """The window behind the beginning makes both servers equal, or is refused by name before its first write."""
    said = ""
    try:
        channel.run()
    except BinlaneError as exc:
        said = str(exc)
    if not said:
        assert held(channel, channel.source) == held(channel, channel.target), case
        return
    assert state.refused, f"{case}: {said}"
    assert re.search(state.refused, said), f"{case}: {said}"
    assert "nothing of the window was written" in said or "nothing was written" in said, f"{case}: {said}"


@pytest.mark.parametrize(("beginning", "state"), CASES, indirect=["beginning"])
def test_a_dump_of_each_moment(beginning: Channel, state: State) -> None:
    moments: list[tuple[str, str, bytes]] = []
    is_locked = False
    with session(beginning, state) as run:
        for step in state.steps:
            run(step)
            is_locked = step.startswith("LOCK TABLES") or (is_locked and step != "UNLOCK TABLES")
            # a dump waits for the lock's end
            if not is_locked:
                moments.append((step, (log_end, gtids)[len(moments) % 2](beginning.source), dumped(beginning.source)))
    for step, place, dump in moments:
        empty_target(beginning.target)
        load(beginning.target, dump)
        beginning.init(place)
        goes_on(beginning, state, f"behind {step}, at {place}")


def first_copy(channel: Channel) -> Callable[[], int]:
    ended = channel.cli("bootstrap", CHANNEL)
    return lambda: ended


def oldest(channel: Channel) -> Callable[[], int]:
    """Earlier files are purged."""
    load(channel.target, dumped(channel.source))
    channel.source.query("FLUSH BINARY LOGS")
    purge_to(channel.source, channel.source.query("SHOW BINARY LOGS")[-1][0])
    return lambda: channel.cli("init", CHANNEL, "--start", "oldest")


BEGINNINGS: Final = {"first copy": first_copy, "the oldest file": oldest}


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=BEGINNINGS)
@pytest.mark.parametrize(("beginning", "state"), CASES, indirect=["beginning"])
def test_a_beginning_in_the_middle(
    beginning: Channel, state: State, begin: Callable[[Channel], Callable[[], int]], capsys: pytest.CaptureFixture[str]
) -> None:
    middle = len(state.steps) // 2
    with session(beginning, state) as run:
        for step in state.steps[:middle]:
            run(step)
        if "LOCK TABLES" in state.steps[0]:
            run("UNLOCK TABLES")
        ended = begin(beginning)
        for step in state.steps[middle:]:
            run(step)
    if ended() != 0:
        said = capsys.readouterr().err
        # tables without snapshots are refused where a first copy begins
        assert "[copied-tables]" in said or (state.refused and re.search(state.refused, said)), said
        return
    goes_on(beginning, state, f"behind {state.steps[middle - 1]}")
