"""Creates the schema ``binlane`` on a target, and brings that of an older binlane up to this one's.

DDL commits by itself, so a step can end in the middle: each does only what is still missing, and its version is
written behind it. Nothing runs beside it: every lease of the target is held meanwhile (docs/decisions/0006).
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, Engine, insert, select, text
from sqlalchemy.exc import DBAPIError

from binlane.errors import PlanError, PrecheckError, StateSchemaError, TargetUnavailableError, WindowBusyError
from binlane.state import tables
from binlane.state.leases import bootstrap_lease, holder, lease_name
from binlane.state.migrations.check import (
    OWN,
    Found,
    problems,
    read_found,
    refuse_newer,
    refuse_other_program,
    refuse_problems,
    refuse_unless_current,
)
from binlane.state.migrations.steps import STEPS, Action, AddTable
from binlane.state.tables import NOW, SCHEMA, VERSION
from binlane.state.windows import OPEN
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import plan_digest

_FIRST: Final = 1
"""The version of a schema that was made before it had versions, at the least."""
_LOCK: Final = "binlane:migrations"
_LOCK_SECONDS: Final = 60
"""Somebody else's steps take this long at the most before this run gives up."""
_TABLE_SECONDS: Final = 30
"""How long a statement waits for transactions that use its table."""
_DENIED: Final = frozenset({1044, 1142, 1227})
_READ_ONLY: Final = frozenset({1290, 1792, 1836})
_LOCK_WAIT: Final = 1205


def create(engine: Engine) -> None:
    """Create the schema and its tables, or bring an older one up; one that is up to date stays as it is.

    Raises PrecheckError if the server sits behind a proxy that shares connections (leases would move from one client to
    another), and what ``bring_up`` raises.
    """
    with engine.connect() as connection:
        _refuse_proxy(connection)
        found = read_found(connection)
        if found.version == VERSION and not problems(found, connection.dialect):
            return
        if not found.engines:
            options = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
            with _explained("CREATE"):
                connection.execute(text(f"CREATE DATABASE IF NOT EXISTS {SCHEMA} {options}"))
    _migrate(engine)


def bring_up(engine: Engine) -> None:
    """Bring the schema of an older binlane up to this one's; nothing happens where it is.

    Raises StateSchemaError for a schema that is another program's, a newer binlane's or damaged, and for an account
    that may not change it; WindowBusyError while a lane or a first copy runs, whichever binlane it is of; the driver's
    error where there is no schema.
    """
    with engine.connect() as connection:
        found = read_found(connection)
        if not found.engines or found.version >= VERSION:
            refuse_unless_current(connection, found)
            return
    _migrate(engine)


def _migrate(engine: Engine) -> None:
    with engine.connect() as connection:
        # its locks and settings end with it
        connection.detach()
        _take_lock(connection)
        found = read_found(connection)
        refuse_other_program(found)
        refuse_newer(found.version)
        # what nobody has used can have lost nothing: its tables are made, too
        is_used = _is_used(connection, found)
        done = max(found.version, _FIRST) if is_used else 0
        coming = {name for step in STEPS[done:] for action in step.actions for name in action.names}
        refuse_problems(problems(found, connection.dialect, {*coming, tables.migrations.name}))
        if is_used:
            _take_leases(connection, found)
            _refuse_unreadable_windows(connection)
        connection.execute(text(f"SET SESSION lock_wait_timeout = {_TABLE_SECONDS}, sql_mode = 'TRADITIONAL'"))
        for table in (tables.migrations,) if is_used else OWN.values():
            _run(connection, AddTable(table), found)
        found = replace(read_found(connection), version=found.version)
        for version, step in enumerate(STEPS, 1):
            # each goes by what the one before has left
            ran = sum(_run(connection, action, found) for action in step.actions) if version > done else 0
            if ran:
                found = replace(read_found(connection), version=found.version)
            if version > found.version:
                connection.execute(insert(tables.migrations).values(version=version, name=step.name, at=NOW))
        connection.commit()
        refuse_unless_current(connection, read_found(connection))


def _run(connection: Connection, action: Action, found: Found) -> int:
    """Do what is missing; how many statements that took."""
    ran = 0
    with _explained("UPDATE"):
        for privilege, statement in action.statements(connection, found):
            with _explained(privilege):
                connection.execute(statement)
            ran += 1
    return ran


@contextlib.contextmanager
def _explained(privilege: str) -> Iterator[None]:
    """The server's refusals of a step, by name; its statement can run again."""
    again = "then run the same command again: it goes on from there"
    try:
        yield
    except DBAPIError as exc:
        code, said = getattr(exc.orig, "args", (0, ""))[:2]
        if code in _DENIED:
            raise StateSchemaError(
                f"target: bringing the schema {SCHEMA} up takes the privilege {privilege} on `{SCHEMA}`.*, which the "
                f"account lacks ({said}): GRANT {privilege} ON `{SCHEMA}`.* to it, {again}"
            ) from exc
        if code in _READ_ONLY:
            raise TargetUnavailableError(
                f"target: the schema {SCHEMA} cannot be brought up, the server is read-only ({said}): name the server "
                f"that is written to, or SET GLOBAL read_only = OFF, {again}"
            ) from exc
        if code == _LOCK_WAIT:
            raise WindowBusyError(
                f"target: a transaction has used a table of the schema {SCHEMA} for {_TABLE_SECONDS} s ({said}): look "
                f"at SHOW PROCESSLIST and end it, {again}"
            ) from exc
        raise


def _take_lock(connection: Connection) -> None:
    taken = connection.execute(text("SELECT GET_LOCK(:name, :seconds)"), {"name": _LOCK, "seconds": _LOCK_SECONDS})
    if taken.scalar_one() != 1:
        raise WindowBusyError(
            f"target: another run has been bringing the schema {SCHEMA} up for {_LOCK_SECONDS} s (connection "
            f"{holder(connection, _LOCK)}); run again when it has ended"
        )


def _take_leases(connection: Connection, found: Found) -> None:
    """Those of all lanes and first copies of the target, to the end of this connection. Raises WindowBusyError."""
    channels, positions = tables.channels, tables.positions
    query = select(channels.c.channel, channels.c.uuid, positions.c.lane).join(
        positions, positions.c.channel == channels.c.channel
    )
    leases = {lease_name(uid, lane): f"channel {name}, lane {lane}" for name, uid, lane in connection.execute(query)}
    if tables.bootstraps.name in found.engines:
        names = connection.execute(select(tables.bootstraps.c.channel)).scalars()
        leases |= {bootstrap_lease(name): f"channel {name}, its first copy" for name in names}
    for lease, what in leases.items():
        if connection.execute(text("SELECT GET_LOCK(:name, 0)"), {"name": lease}).scalar_one() != 1:
            raise WindowBusyError(
                f"target: the schema {SCHEMA} cannot be brought up while anything runs: {what} is held by connection "
                f"{holder(connection, lease)}; wait until its window has ended, or stop it with the binlane that runs "
                "it, then run again"
            )


def _refuse_unreadable_windows(connection: Connection) -> None:
    """Raises StateSchemaError for an open window whose files this build cannot read: it is the older one's to finish,
    which refuses the schema once it is brought up."""
    windows = tables.windows
    asked = select(windows.c.channel, windows.c.window_id, windows.c.work, windows.c.plan_digest)
    for channel, window, work, digest in connection.execute(asked.where(windows.c.state == OPEN)).all():
        try:
            if _is_out_of_sight(work) or plan_digest(work) == digest or digest is None:
                continue
            why = f"expected the plan {digest} in {work}, found another one or none"
        except PlanError as exc:
            why = str(exc)
        raise StateSchemaError(
            f"target: the schema {SCHEMA} cannot be brought up: channel {channel} has the open window {window} of an "
            f"older binlane, whose files this binlane cannot use ({why}); nothing was changed: "
            f"finish the window with the older binlane (`binlane run {channel}`), then run again"
        )


def _is_out_of_sight(work: str) -> bool:
    """Whether a window's files are not to be seen from here: lost, or another machine's."""
    try:
        return not WorkFolder(work).exists(files.MANIFEST)
    except Exception:  # no such protocol, no credentials: every file system has its own errors
        return True


def _is_used(connection: Connection, found: Found) -> bool:
    """Whether it holds a channel, or a first copy that is to become one."""
    known = [each.c.channel for each in (tables.channels, tables.bootstraps)]
    return any(
        connection.execute(select(column).limit(1)).first() is not None
        for column in known
        if (column.table.name, column.name) in found.columns
    )


def _refuse_proxy(connection: Connection) -> None:
    ids = []
    for _ in range(3):
        ids.append(connection.execute(select(text("CONNECTION_ID()"))).scalar_one())
        connection.commit()
    ids.append(connection.execute(select(text("CONNECTION_ID()"))).scalar_one())
    token = f"{SCHEMA}-{uuid.uuid4()}"
    if len(set(ids)) > 1:
        raise PrecheckError(
            f"target: the connection's id changes between statements ({ids}): a proxy shares server connections "
            "between "
            "clients, and leases (GET_LOCK) would move with them; name the server itself, or a proxy port without "
            "multiplexing"
        )
    if connection.execute(text("SELECT GET_LOCK(:name, 0)"), {"name": token}).scalar_one() != 1:
        raise PrecheckError("target: GET_LOCK of a fresh name failed: leases do not work on this server")
    connection.execute(text("SELECT RELEASE_LOCK(:name)"), {"name": token})
