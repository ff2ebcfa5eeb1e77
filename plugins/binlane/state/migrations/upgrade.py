"""Creates the schema ``binlane`` on a target, or upgrades the schema of an older binlane.

DDL commits implicitly, so a step can be interrupted: each step executes only what is still missing, and its version is
written at its end. Lanes and first copies cannot run meanwhile: the upgrade holds every lease of the target
(docs/decisions/0006).
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Engine, func, insert, select, text
from sqlalchemy.exc import DBAPIError

from binlane.errors import PlanError, PrecheckError, StateSchemaError, TargetUnavailableError, WindowBusyError
from binlane.sessions.pins import SessionKind
from binlane.state import tables
from binlane.state.leases import bootstrap_lease, holder, lease_name
from binlane.state.migrations.check import (
    OWN,
    StoredSchema,
    problems,
    read_found,
    refuse_newer,
    refuse_other_program,
    refuse_problems,
    refuse_unless_current,
)
from binlane.state.migrations.steps import STEPS, VIEW, Action, AddTable
from binlane.state.tables import NOW, SCHEMA, VERSION
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import OPEN
from binlane.work import files
from binlane.work.files import WorkFolder

_LOCK: Final = "binlane:migrations"
_LOCK_SECONDS: Final = 60
"""How long this run waits for another run's migration."""
_TABLE_SECONDS: Final = 30
"""How long a statement waits for transactions that use its table."""
_DENIED: Final = frozenset({1044, 1142, 1227})
_READ_ONLY: Final = frozenset({1290, 1792, 1836})
_LOCK_WAIT: Final = 1205


def create(engine: Engine, work: str = "") -> None:
    """Create the schema and its tables, or upgrade an older one; a no-op for a current one. ``work``: as for
    ``bring_up``.

    Raises PrecheckError if the server is behind a proxy that multiplexes connections (leases would move between
    clients), and the errors of ``bring_up``.
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
    _migrate(engine, work)


def bring_up(engine: Engine, work: str = "") -> None:
    """Upgrade the schema of an older binlane to this build's version; a no-op for a current one. ``work``: the work
    folder in whose windows this build may look; empty: none.

    Raises StateSchemaError for a schema of another program or a newer binlane, for a damaged one, and for an account
    without the privileges; WindowBusyError while a lane or a first copy of any binlane runs; the driver's error if
    there is no schema.
    """
    with engine.connect() as connection:
        found = read_found(connection)
        if not found.engines or found.version >= VERSION:
            refuse_unless_current(connection, found)
            return
    _migrate(engine, work)


def _migrate(engine: Engine, work: str) -> None:
    with engine.connect() as connection:
        # a connection of its own: its locks and settings end with it
        connection.detach()
        _take_lock(connection)
        found = read_found(connection)
        refuse_other_program(found)
        refuse_newer(found.version)
        # an unused schema cannot have lost data: its missing tables are created, too
        is_used = _is_used(connection, found)
        done = found.version if is_used else 0
        # a used schema without a version has lost it: no step brings back what else is missing
        steps = () if is_used and done == 0 else STEPS[done:]
        coming = {name for step in steps for action in step.actions for name in action.names}
        refuse_problems(problems(found, connection.dialect, {*coming, *VIEW.names, tables.migrations.name}))
        if is_used:
            _take_leases(connection, found)
            _refuse_unreadable_windows(connection, work)
        driver: Any = connection.connection.dbapi_connection
        # tables of binlane's own definition, whatever the server makes of others' (enforce_storage_engine)
        driver.use_as(SessionKind.WRITE)
        connection.execute(text(f"SET SESSION lock_wait_timeout = {_TABLE_SECONDS}, sql_mode = 'TRADITIONAL'"))
        for table in (tables.migrations,) if is_used else OWN.values():
            _run(connection, AddTable(table), found)
        found = replace(read_found(connection), version=found.version)
        for version, step in enumerate(STEPS, 1):
            # each action reads the result of the one before
            ran = sum(_run(connection, action, found) for action in step.actions) if version > done else 0
            if ran:
                found = replace(read_found(connection), version=found.version)
            if version > found.version:
                connection.execute(insert(tables.migrations).values(version=version, name=step.name, at=NOW))
        _run(connection, VIEW, found)
        connection.commit()
        refuse_unless_current(connection, read_found(connection))


def _run(connection: Connection, action: Action, found: StoredSchema) -> int:
    """Execute the statements of an action that are still needed; their number."""
    ran = 0
    with _explained("UPDATE"):
        for privilege, statement in action.statements(connection, found):
            with _explained(privilege):
                connection.execute(statement)
            ran += 1
    return ran


@contextlib.contextmanager
def _explained(privilege: str) -> Iterator[None]:
    """Turn the server's refusals of a step into binlane's errors. Every statement of a step can be repeated."""
    again = "then run the same command again: it resumes the upgrade"
    try:
        yield
    except DBAPIError as exc:
        code, said = getattr(exc.orig, "args", (0, ""))[:2]
        if code in _DENIED:
            raise StateSchemaError(
                f"target: an upgrade of the schema {SCHEMA} needs the privilege {privilege} on `{SCHEMA}`.*, which the "
                f"account does not have ({said}): GRANT {privilege} ON `{SCHEMA}`.* to the account, {again}"
            ) from exc
        if code in _READ_ONLY:
            raise TargetUnavailableError(
                f"target: the schema {SCHEMA} cannot be upgraded, the server is read-only ({said}): name the writable "
                f"server in the connection, or SET GLOBAL read_only = OFF, {again}"
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
            f"target: another run has been upgrading the schema {SCHEMA} for {_LOCK_SECONDS} s (connection "
            f"{holder(connection, _LOCK)}); run again when it has ended"
        )


def _take_leases(connection: Connection, found: StoredSchema) -> None:
    """Take the leases of all lanes and first copies, until this connection ends. Raises WindowBusyError.

    Lanes without work in the last window have no position, and may have work in one that opens meanwhile.
    """
    channels = tables.channels
    uuids = connection.execute(select(channels.c.channel, channels.c.uuid)).all()
    # a window's number of parallel lanes is the number of its serialized lane
    highest = {name: -1 for name, _ in uuids}
    for column in (tables.positions.c.lane, tables.windows.c.lanes):
        query = select(column.table.c.channel, func.max(column)).group_by(column.table.c.channel)
        for name, lane in connection.execute(query):
            highest[name] = max(highest.get(name, -1), -1 if lane is None else int(lane))
    leases = {
        lease_name(uid, lane): f"channel {name}, lane {lane}"
        for name, uid in uuids
        for lane in range(highest[name] + 1)
    }
    if tables.bootstraps.name in found.engines:
        names = connection.execute(select(tables.bootstraps.c.channel)).scalars()
        leases |= {bootstrap_lease(name): f"channel {name}, its first copy" for name in names}
    for lease, what in leases.items():
        if connection.execute(text("SELECT GET_LOCK(:name, 0)"), {"name": lease}).scalar_one() != 1:
            raise WindowBusyError(
                f"target: the schema {SCHEMA} cannot be upgraded while anything runs: {what} is held by connection "
                f"{holder(connection, lease)}; wait until its window has ended, or stop it with the binlane that runs "
                "it, then run again"
            )


def _refuse_unreadable_windows(connection: Connection, uri: str) -> None:
    """Raises StateSchemaError for an open window whose files this build cannot read. Only the older binlane can finish
    it, and that one refuses an upgraded schema. Windows that are not recorded below ``uri`` are out of sight."""
    # imported only for an upgrade: with it comes machine code that no command waits for which only reads the state
    from binlane.work.plan_inputs import plan_digest

    windows = tables.windows
    asked = select(windows.c.channel, windows.c.window_id, windows.c.work, windows.c.plan_digest)
    for channel, window, work, digest in connection.execute(asked.where(windows.c.state == OPEN)).all():
        try:
            expected = WindowFolders(uri, channel).named(window)
            if work != expected.uri or _is_out_of_sight(expected) or plan_digest(work) == digest or digest is None:
                continue
            why = f"expected the plan {digest} in {work}, found a different plan or none"
        except PlanError as exc:
            why = str(exc)
        raise StateSchemaError(
            f"target: the schema {SCHEMA} cannot be upgraded: channel {channel} has the open window {window} of an "
            f"older binlane, whose files this binlane cannot use ({why}); nothing was changed: "
            f"finish the window with the older binlane (`binlane run {channel}`), then run again"
        )


def _is_out_of_sight(folder: WorkFolder) -> bool:
    """Whether a window's files cannot be read here: lost, or on another machine."""
    try:
        return not folder.exists(files.MANIFEST)
    except Exception:  # no such protocol, no credentials: every file system has its own errors
        return True


def _is_used(connection: Connection, found: StoredSchema) -> bool:
    """Whether the schema has a channel or a first copy."""
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
