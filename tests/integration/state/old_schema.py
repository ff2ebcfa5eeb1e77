"""The schema as the first binlane made it, with what a channel had in it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, Final

from sqlalchemy import NullPool, event

from binlane.servers.engines import engine_at
from binlane.state.migrations.run import create
from lab.servers import PrivateServer

FIRST_SCHEMA: Final = Path(__file__).with_name("first_schema.sql")
CHANGES: Final = ("CREATE", "ALTER", "INSERT", "UPDATE")
ROWS: Final = (
    "INSERT INTO binlane.channels VALUES ('c', 'a-uuid', 'source', 10, 'log.1', 4, '0-1-10', 1732275000.1234567, "
    "'f10', 2, NOW(6), NOW(6))",
    "INSERT INTO binlane.windows (channel, window_id, number, state, source_identity, first_seqno, last_seqno, "
    "end_file, end_offset, end_gtid_set, end_time, end_fingerprint, work, lanes, plan_digest, created_at) VALUES "
    "('c', 'w0', 1, 'finished', 'source', 1, 10, 'log.1', 4, '0-1-10', 5, 'f10', '', 2, 'd0', NOW(6)), "
    "('c', 'w1', 2, 'open', 'source', 11, 20, 'log.2', 900, '0-1-20', 9.5, 'f20', 'file:///srv/w1', 2, 'd1', NOW(6))",
    "INSERT INTO binlane.positions (channel, lane, seqno, window_id, digest, inserts, updates, deletes, blocks, "
    "transactions, updated_at) VALUES ('c', 0, 10, 'w1', 'd1', 0, 0, 0, 0, 0, NOW(6)), "
    "('c', 1, 15, 'w1', 'd1', 3, 2, 1, 1, 5, NOW(6)), ('c', 2, 20, 'w1', 'd1', 0, 0, 0, 1, 5, NOW(6))",
)


def lay_first_schema(target: PrivateServer, *rows: str) -> None:
    """In the place of the schema that is there."""
    statements = FIRST_SCHEMA.read_text("utf-8").partition("\n")[2].split(";\n")
    with target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in ("DROP DATABASE IF EXISTS binlane", *filter(str.strip, statements), *rows):
            cursor.execute(statement)


def create_until_killed(url: str, diary: Path) -> None:
    """Bring the schema up, and die by SIGKILL behind the first change that none has died behind: ``diary`` has them."""
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
