"""One window that holds everything an apply task can send, on a source and any number of targets.

It is recorded from the source once. ``lay`` puts a target back to where the window begins, as often as asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import Engine

from binlane.apply.lane.options import ApplyOptions
from binlane.apply.lane.runner import run_lane
from binlane.errors import UndecidableError
from binlane.plan.window_plan import WindowPlan
from binlane.state.migrations.upgrade import create
from binlane.state.records.ddl_intents import decide_ddl
from binlane.state.records.journal import read_status
from binlane.state.tables import SCHEMA, metadata, migrations
from binlane.state.windows import finish_window
from lab.servers import PrivateServer
from tests.integration.apply.capture import Captured, MemorySource, Recorder, Window
from tests.integration.apply.conftest import DATABASE, QUICK, start_window

CHANNEL: Final = "orders"
STEADY: Final = replace(QUICK, poll_interval=0.0, grace=0.0, heartbeat_interval=0.5)
"""Never waits by the clock, so that every run sends the same statements."""
PATIENT: Final = replace(QUICK, poll_interval=0.01, grace=0.0, heartbeat_interval=0.5, retries=40, backoff_limit=0.5)
_TABLES: Final = (
    # neither a doubled nor a lost row can hide in these two
    "CREATE TABLE journal (lane INT, note VARCHAR(40)) ENGINE=InnoDB",
    "CREATE TABLE totals (lane INT PRIMARY KEY, amount INT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO totals VALUES (0, 0), (1, 0), (2, 0)",
    "CREATE TABLE a (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE b (id INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO a VALUES (1)",
    "INSERT INTO b VALUES (2)",
    "CREATE TABLE parts (id INT PRIMARY KEY) ENGINE=InnoDB PARTITION BY HASH (id) PARTITIONS 2",
    "CREATE TABLE part (id INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO parts VALUES (2), (3)",
    "INSERT INTO part VALUES (4), (6)",
    "CREATE TABLE old_1 (id INT) ENGINE=InnoDB",
    "CREATE TABLE old_2 (id INT) ENGINE=InnoDB",
    "CREATE TABLE scratch (id INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO scratch VALUES (1), (2)",
    "CREATE TABLE wide (id INT PRIMARY KEY, note VARCHAR(10)) ENGINE=InnoDB",
    "INSERT INTO wide VALUES (1, 'x'), (2, 'y')",
)
DDL: Final = (
    "RENAME TABLE a TO x, b TO a, x TO b",
    "ALTER TABLE parts EXCHANGE PARTITION p0 WITH TABLE part",
    "DROP TABLE old_1, old_2",
    "TRUNCATE TABLE scratch",
    # copies the table
    "ALTER TABLE wide MODIFY note VARCHAR(300) NOT NULL, ADD KEY (note), ALGORITHM=COPY",
)
STATEMENT_FORMAT: Final = ("SET SESSION binlog_format = 'STATEMENT'",)


@dataclass(frozen=True, slots=True)
class Scene:
    """The window, and what a target holds behind it."""

    window: Window
    contents: dict[str, Any]
    notes: tuple[tuple[int, int, str], ...]
    """Lane, the last seqno of its block, and the row in ``journal``."""

    @property
    def plan(self) -> WindowPlan:
        return self.window.plan

    @property
    def source(self) -> MemorySource:
        return self.window.source


@dataclass(slots=True)
class _Script:
    """Runs the window on the source and takes it down."""

    source: PrivateServer
    rows: Recorder = field(init=False)
    statements: Recorder = field(init=False)
    window: Window = field(init=False)
    notes: list[tuple[int, int, str]] = field(default_factory=list)
    _pending: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows = Recorder(self.source, DATABASE)
        self.statements = Recorder(self.source, DATABASE, setup=STATEMENT_FORMAT)
        self.window = Window(self.rows.format, channel=CHANNEL)

    def work(self, name: str) -> Captured:
        """A row in the table without a key, and one more on the lane's total."""
        self._pending.append(name)
        lane = int(name[0])
        return self.rows.run(
            f"INSERT INTO journal VALUES ({lane}, '{name}')",
            f"UPDATE totals SET amount = amount + 1 WHERE lane = {lane}",
        )

    def count(self, lane: int) -> Captured:
        """The same in statement format: applied twice it would count twice."""
        return self.statements.run(f"UPDATE totals SET amount = amount + 1 WHERE lane = {lane}")

    def add(self, lane: int, *captured: Captured) -> None:
        block = self.window.add(lane, *captured)
        self._note(lane, block.header.last_seqno)

    def meet(self, owner: int, participants: Sequence[int], *captured: Captured) -> None:
        """A barrier; its blocks are of one transaction each, and its first one may leave a note."""
        barrier = self.window.meet(owner, participants, *captured)
        self._note(owner, barrier.first)

    def _note(self, lane: int, seqno: int) -> None:
        self.notes += [(lane, seqno, name) for name in self._pending]
        self._pending = []


def record(source: PrivateServer, more: int = 0, ddl: Sequence[str] = DDL) -> Scene:
    """Run everything on the source: rows, statements, DDL, barriers; ``more`` blocks a lane on top."""
    lay_tables(source)
    script = _Script(source)
    add, meet, work, count = script.add, script.meet, script.work, script.count
    add(0, work("0a"), work("0b"))
    add(1, work("1a"))
    add(0, count(0), count(0))
    add(1, work("1b"), count(1), work("1c"))
    meet(2, (0, 1, 2), work("2d"), count(2))
    for number in range(more):
        add(number % 2, work(f"{number % 2}m{number}"), count(number % 2))
    # some one behind another, the others between blocks of a lane
    meet(2, (0, 1, 2), *(script.rows.ddl(statement) for statement in ddl[:3]))
    add(0, work("0e"))
    for statement in ddl[3:]:
        add(1, script.rows.ddl(statement))
    add(1, script.rows.run("INSERT INTO scratch VALUES (7)", "UPDATE wide SET note = 'z' WHERE id = 2"))
    script.window.skip()
    meet(0, (0, 1), work("0f"))
    for number in range(more):
        add(number % 2, work(f"{number % 2}n{number}"))
    script.window.skip()
    return Scene(script.window, contents(source), tuple(script.notes))


def record_meetings(source: PrivateServer) -> Scene:
    """Rows of two lanes with the ends of epochs between them: the serialized lane comes last there, and once the
    barrier before has brought all lanes."""
    lay_tables(source)
    script = _Script(source)
    add, meet, work = script.add, script.meet, script.work
    for number in range(3):
        add(0, work(f"0a{number}"))
        add(1, work(f"1a{number}"))
        script.window.end_epoch()
        meet(2, (0, 1, 2), work(f"2a{number}"))
    script.window.end_epoch()
    meet(2, (0, 1, 2), work("2b"))
    add(1, work("1c"))
    return Scene(script.window, contents(source), tuple(script.notes))


def lay_tables(server: PrivateServer) -> None:
    """The database as it is before the window, without a trace in the binlog."""
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        cursor.execute(f"USE {DATABASE}")
        for statement in _TABLES:
            cursor.execute(statement)


def lay(target: PrivateServer, engine: Engine, scene: Scene) -> None:
    """The target as it is before the window: its tables, an open window with a plan, every lane at 0."""
    lay_tables(target)
    if not target.query("SHOW DATABASES LIKE 'binlane'"):
        create(engine)
    with target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        for table in metadata.sorted_tables:
            if table is not migrations:
                cursor.execute(f"DELETE FROM {table}")
    start_window(engine, scene.plan)


def run_all(engine: Engine, scene: Scene, options: ApplyOptions) -> None:
    """The window from here to its end: every lane, one after another, then the watermark."""
    plan = scene.plan
    for lane in plan.all_lanes:
        run_lane(engine, plan, lane, scene.source, options)
    finish_window(engine, CHANNEL, plan.window_id, plan.digest)


def run_together(engine: Engine, scene: Scene, options: ApplyOptions, through: Engine | None = None) -> None:
    """The same with all lanes at once, ``through`` another engine, whose faults the lanes survive by themselves."""
    plan = scene.plan

    def run(lane: int) -> None:
        run_lane(engine if through is None else through, plan, lane, scene.source, options)

    with ThreadPoolExecutor(plan.lanes + 1) as pool:
        list(pool.map(run, plan.all_lanes))
    finish_window(engine, CHANNEL, plan.window_id, plan.digest)


def run_on(target: PrivateServer, engine: Engine, scene: Scene) -> int:
    """Run it again as the next task does, and answer what a person is asked; how often one was."""
    for asked in range(10):
        try:
            run_all(engine, scene, PATIENT)
        except UndecidableError:
            [question] = read_status(engine, CHANNEL).undecided
            decide_ddl(engine, CHANNEL, question.seqno, ran=_has_run(target, question.statement))
        else:
            return asked
    raise AssertionError("asked ten times")


def _has_run(target: PrivateServer, statement: str) -> bool:
    """What a person finds out: the only statement here that may ask is the DROP of two tables."""
    assert statement.startswith("DROP TABLE"), statement
    query = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = %s AND table_name LIKE 'old%%'"
    [(left,)] = target.query(query, (DATABASE,))
    assert left in (0, 2), f"{left} of two tables are left"
    return bool(left == 0)


def contents(server: PrivateServer) -> dict[str, Any]:
    """Every table's definition and rows."""
    found = {}
    with server.connect(autocommit=True, database=DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW TABLES")
        for (name,) in cursor.fetchall():
            cursor.execute(f"SHOW CREATE TABLE {name}")
            [(_, definition)] = cursor.fetchall()
            cursor.execute(f"SELECT * FROM {name}")
            found[name] = (re.sub(r" AUTO_INCREMENT=\d+", "", definition), sorted(cursor.fetchall()))
    return found


def state(target: PrivateServer, *, errors: bool = True) -> dict[str, Any]:
    """What the schema ``binlane`` says, without times and random names. A question to a person is an error, too."""
    queries = {
        "channels": "SELECT channel, watermark_seqno, source_file, source_offset, gtid_set, windows",
        "windows": "SELECT window_id, number, state, first_seqno, last_seqno, lanes, plan_digest, totals, stop_at",
        "positions": "SELECT lane, seqno, window_id, digest, inserts, updates, deletes, blocks, transactions",
        "ddl": "SELECT seqno, state",
        "errors": "SELECT lane, seqno, code, text",
    }
    found = {table: sorted(target.query(f"{query} FROM {SCHEMA}.{table}")) for table, query in queries.items()}
    return found if errors else {**found, "errors": []}


def assert_positions_tell_the_truth(target: PrivateServer, scene: Scene) -> None:
    """Invariant 2, at any moment: the rows that are there are those up to the positions, none more and none less."""
    with target.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute(f"SELECT lane, seqno FROM {SCHEMA}.positions ORDER BY lane")
        at = dict(cursor.fetchall())
        cursor.execute(f"SELECT note FROM {DATABASE}.journal")
        notes = sorted(note for (note,) in cursor.fetchall())
    expected = sorted(note for lane, last, note in scene.notes if last <= at[lane])
    assert notes == expected, f"positions {at}"
