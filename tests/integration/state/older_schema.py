"""A made-up version of the schema before today's, with what a channel had in it, and the step from it to today's.

No version is older yet. So that the machinery of versions is tried all the same, today's is taken for version 2 here.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, NullPool, event, update

from binlane.model import LogPosition
from binlane.servers.engines import engine_at
from binlane.sessions.server_proof import identity_expression
from binlane.state import tables
from binlane.state.channels import Watermark
from binlane.state.json_columns import text_of
from binlane.state.migrations import check
from binlane.state.migrations import upgrade as run
from binlane.state.migrations.steps import VIEW, AddColumn, AddTable, Step
from binlane.state.migrations.upgrade import create
from binlane.state.tables import windows
from binlane.state.windows import OPEN
from lab.servers import PrivateServer
from tests.integration.window.conftest import run_on

VERSION: Final = 2
OLDER: Final = 1
CHANGES: Final = ("CREATE", "ALTER", "INSERT", "UPDATE")


def _reached(connection: Connection) -> None:
    """As if windows could not be stopped inside before."""
    for state_is, seqno in ((windows.c.state == OPEN, windows.c.first_seqno - 1),
                            (windows.c.state != OPEN, windows.c.last_seqno)):  # fmt: skip
        connection.execute(update(windows).where(windows.c.reached.is_(None), state_is).values(reached=seqno))


_NEW: Final = (tables.skips, tables.suspects)
"""Tables that the older version does not have; the second one has an index."""
_COLUMNS: Final = (
    AddColumn(windows.c.reached, _reached),
    AddColumn(tables.positions.c.begun),
    AddColumn(windows.c.facts),
)
_OLD: Final = tuple(each for each in tables.metadata.sorted_tables if each not in (*_NEW, tables.migrations))
STEPS: Final = (
    Step("the made-up first schema", tuple(map(AddTable, _OLD))),
    Step("skips, suspects and stops inside a window", (*_COLUMNS, *map(AddTable, _NEW), VIEW)),
)
START: Final = Watermark(10, LogPosition("log.1", 4), "0-1-10", 1732275000.1234567, "f10")
_START: Final = text_of(START)
_HERE: Final = "'here'"
"""Stands for the server on which the rows are."""
ROWS: Final = (
    "INSERT INTO binlane.channels (channel, uuid, target_identity, incarnation, source_identity, watermark_seqno, "
    "source_file, source_offset, gtid_set, source_time, fingerprint, windows, created_at, updated_at) VALUES ('c', "
    f"'a-uuid', {_HERE}, 'a-uuid', 'source', 10, 'log.1', 4, '0-1-10', 1732275000.1234567, 'f10', 2, NOW(6), NOW(6))",
    "INSERT INTO binlane.windows (channel, window_id, number, state, source_identity, start, first_seqno, last_seqno, "
    "end_file, end_offset, end_gtid_set, end_time, end_fingerprint, work, lanes, plan_digest, created_at) VALUES "
    f"('c', 'w0', 1, 'finished', 'source', '{_START}', 1, 10, 'log.1', 4, '0-1-10', 5, 'f10', '', 2, 'd0', NOW(6)), "
    f"('c', 'w1', 2, 'open', 'source', '{_START}', 11, 20, 'log.2', 900, '0-1-20', 9.5, 'f20', 'file:///srv/w1', 2, "
    "'d1', NOW(6))",
    "INSERT INTO binlane.positions (channel, lane, seqno, window_id, digest, inserts, updates, deletes, blocks, "
    "transactions, updated_at) VALUES ('c', 0, 10, 'w1', 'd1', 0, 0, 0, 0, 0, NOW(6)), "
    "('c', 1, 15, 'w1', 'd1', 3, 2, 1, 1, 5, NOW(6)), ('c', 2, 20, 'w1', 'd1', 0, 0, 0, 1, 5, NOW(6))",
)


def know_two_versions(change: Callable[[object, str, object], None]) -> None:
    """For this process, and those that have a copy of its memory. ``change``: as ``setattr``."""
    change(run, "STEPS", STEPS)
    for module in (run, check):
        change(module, "VERSION", VERSION)


def make_older(target: PrivateServer, *rows: str) -> None:
    """Give a schema of today the older version's tables, and these rows."""
    columns = [f"ALTER TABLE binlane.{of.column.table.name} DROP COLUMN {of.column.name}" for of in _COLUMNS]
    dropped = [f"DROP TABLE binlane.{table.name}" for table in _NEW]
    versions = "DELETE FROM binlane.migrations", "INSERT INTO binlane.migrations VALUES (1, 'the first one', NOW(6))"
    here = [row.replace(_HERE, identity_expression(target.flavor)) for row in rows]
    run_on(target, "DROP VIEW binlane.consistent", *columns, *dropped, *versions, *here, log=False)


def lay_older(target: PrivateServer, *rows: str) -> None:
    """In the place of the schema that is there."""
    target.query("DROP DATABASE IF EXISTS binlane")
    engine = engine_at(target.url(), poolclass=NullPool)
    create(engine)
    engine.dispose()
    make_older(target, *rows)


def create_until_killed(url: str, diary: Path) -> None:
    """Bring the schema up, and die by SIGKILL behind the first change that none has died behind: ``diary`` has them."""
    know_two_versions(setattr)
    engine = engine_at(url, poolclass=NullPool)
    before = set(diary.read_text("utf-8").splitlines())

    @event.listens_for(engine, "after_cursor_execute")
    def die(_: object, __: object, statement: str, parameters: object, *___: Any) -> None:
        name = " ".join(f"{statement} {parameters}".split())
        if name.startswith(CHANGES) and name not in before:
            with diary.open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")
            os.kill(os.getpid(), signal.SIGKILL)

    create(engine)
