"""kill -9 of the target at a file operation of a change that no rollback undoes: known exactly, or a question.

Invariant 2. MyISAM writes a statement's rows one by one, and before the server logs the statement; what makes them
count, the number of rows in its index file, comes behind that. So rows may be there without the GTID, and the GTID
without the rows. Here the operator looks, gives the tables the rows of one side of the change, and says which.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.errors import UndecidableError
from binlane.model import Flavor
from binlane.state.migrations.upgrade import create
from binlane.state.records.ddl_intents import decide_ddl
from binlane.state.records.journal import read_status
from lab.servers import PrivateServer, private_server
from tests.chaos.faults import plain_engine
from tests.chaos.rounds import dice, some, survived
from tests.chaos.scene import CHANNEL, PATIENT
from tests.chaos.server_kill import run, run_and_kill
from tests.emptied import empty_target
from tests.integration.apply.capture import Recorder, Window
from tests.integration.apply.conftest import DATABASE

pytestmark = pytest.mark.trial

_OPTIONS: Final = replace(PATIENT, allow_nontransactional=True)
_SETUP: Final = (
    f"DROP DATABASE IF EXISTS {DATABASE}",
    f"CREATE DATABASE {DATABASE}",
    f"USE {DATABASE}",
    "CREATE TABLE journal (s VARCHAR(60), n INT) ENGINE=MyISAM",
    "CREATE TABLE counted (id INT PRIMARY KEY, n INT) ENGINE=MyISAM",
    "CREATE TABLE i (id INT PRIMARY KEY, n INT) ENGINE=InnoDB",
    "INSERT INTO counted VALUES (1, 0), (2, 0), (3, 0)",
)
_OPERATIONS: Final = ("pwrite64", "write", "fsync,fdatasync")
"""Each by itself: a number is reached first by the most frequent one."""
_TABLES: Final = ("journal", "counted", "i")
_ROWS: Final = ("SET SESSION binlog_format = 'ROW'",)
_STATEMENTS: Final = ("SET SESSION binlog_format = 'STATEMENT'",)
_Change = tuple[tuple[str, ...], str]
_CHANGES: Final[Mapping[str, tuple[_Change, ...]]] = {
    "rows": ((_ROWS, "INSERT INTO journal VALUES ('a', 1), ('b', 2)"),),
    "an update": ((_STATEMENTS, "UPDATE counted SET n = n + 1"),),
    "a block": (
        (_ROWS, "INSERT INTO i VALUES (1, 1)"),
        (_ROWS, "INSERT INTO journal VALUES ('a', 1), ('b', 2)"),
        (_STATEMENTS, "INSERT INTO journal SELECT s, n + 2 FROM journal"),
        (_ROWS, "UPDATE i SET n = n + 1"),
    ),
}
_Contents = dict[str, list[tuple[Any, ...]]]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed: apt install strace")
@pytest.mark.parametrize(
    ("family", "log_bin", "last"),
    [
        pytest.param("mariadb", True, 12, id="mariadb"),
        pytest.param("mariadb", False, 12, id="mariadb without a log"),
        pytest.param("mysql", True, 18, id="mysql"),
        pytest.param("mysql", False, 12, id="mysql without GTIDs"),
    ],
)
def test_kill_9_of_the_target_at_a_file_operation_of_a_change_that_stays(
    family: str, log_bin: bool, last: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source = request.getfixturevalue(f"{family}_source")
    points = list(product(_CHANGES, _OPERATIONS, range(1, last)))
    chance = dice(request.node.name)
    with private_server(tmp_path / "data", Flavor(family), name="kept", log_bin=log_bin) as target:
        recorded = dict[str, tuple[Window, list[_Contents]]]()
        for name, operations, number in some(points, request.node.name, sample=14, share=0.1):
            if name not in recorded:
                recorded[name] = _record(source, _CHANGES[name])
            window, states = recorded[name]
            if not empty_target(target):
                create(plain_engine(target.url()))
            _run(target, _SETUP)
            try:
                killed = run_and_kill(target, window, number, _OPTIONS, operations)
            except UndecidableError:
                killed = True
                _decide(target, states, ran=chance.random() < 0.5)
                engine = plain_engine(target.url())
                run(engine, window, _OPTIONS)
                engine.dispose()
            assert _contents(target) == states[-1], f"{name}: killed at {operations} {number}"
            assert target.query("SELECT * FROM binlane.ddl") == []
            survived[f"{family} killed inside a change without a transaction"] += killed


def _record(source: PrivateServer, changes: Sequence[_Change]) -> tuple[Window, list[_Contents]]:
    """The window, and the contents before it and behind each of its transactions."""
    _run(source, _SETUP)
    window, states = None, [_contents(source)]
    captured = []
    for setup, statement in changes:
        recorder = Recorder(source, DATABASE, setup=setup)
        window = window or Window(recorder.format)
        captured.append(recorder.run(statement))
        states.append(_contents(source))
    assert window is not None
    window.add(0, *captured)
    return window, states


def _decide(target: PrivateServer, states: Sequence[_Contents], *, ran: bool) -> None:
    """Give the tables the rows before or behind the transaction that the lane asks about, and say which."""
    engine = plain_engine(target.url())
    [asked] = read_status(engine, CHANNEL).undecided
    rows = states[asked.seqno if ran else asked.seqno - 1]
    _run(target, (f"USE {DATABASE}", "REPAIR TABLE journal, counted", *(f"DELETE FROM {each}" for each in _TABLES)))
    for table, values in rows.items():
        _run(target, [f"INSERT INTO {DATABASE}.{table} VALUES {', '.join(map(repr, values))}"] if values else [])
    decide_ddl(engine, CHANNEL, asked.seqno, ran=ran)
    engine.dispose()


def _contents(server: PrivateServer) -> _Contents:
    return {table: sorted(server.query(f"SELECT * FROM {DATABASE}.{table}")) for table in _TABLES}


def _run(server: PrivateServer, statements: Sequence[str]) -> None:
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            cursor.fetchall()
