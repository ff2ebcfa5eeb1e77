"""Copies of the source's temporary tables on the target, and the tables made again from them.

A copy is the text of the table's definition, and its rows in a plain InnoDB table of the same column types, without
keys, generated columns or defaults: the server itself copies the values, so no literal is written. The lane's
transaction fills this table and moves the position; another connection creates it, since CREATE TABLE would commit.
See docs/decisions/0005.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Final

import pymysql
from sqlalchemy.exc import SQLAlchemyError

from binlane.apply.session.connection import LaneSession, SessionLimits
from binlane.apply.session.context import ContextSetter
from binlane.apply.session.retry_verdicts import error_code
from binlane.apply.stored_definition import BEGINNING, beside_columns, require_columns_alone
from binlane.errors import ApplyError, BinlaneError, PositionError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey, plural
from binlane.state.carried.temporary_tables import (
    Copy,
    add_copy,
    copy_name,
    drop_copy,
    fill_copy,
    forget_copies,
    make_copy,
    new_attempt,
    read_copies,
    read_copy,
    stale_copies,
)

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from binlane.model import Barrier

_GENERATED: Final = re.compile(r"\b(?:VIRTUAL|STORED|PERSISTENT)(?: GENERATED)?\b", re.IGNORECASE)
_COUNTER: Final = re.compile(r" AUTO_INCREMENT=\d+")
_UNKNOWN_DATABASE: Final = 1049
_Columns = tuple[tuple[str, str, str | None], ...]
"""Name, type and collation of each column."""


@dataclass(frozen=True, slots=True)
class CopyKeeper:
    """Makes, restores and drops a channel's copies."""

    engine: Engine
    limits: SessionLimits
    channel: str
    made: list[str] = field(default_factory=list)
    """The tables of the copies that the last ``keep`` has begun, until ``sweep`` or ``drop_made``."""

    def keep(
        self, session: LaneSession, context: ContextSetter, seqno: int, tables: tuple[tuple[int, str, str], ...]
    ) -> None:
        """Copy the session's open ``tables`` in its transaction; the new copies replace the old ones.

        Raises ApplyError for a table that could not be made again exactly, and the driver's errors.
        """
        # whether those of an attempt before were committed, its COMMIT's answer alone has told
        self.made.clear()
        with self._beside() as side, ContextSetter(side).definitions_as_shown():
            _set_up(side)
            forget_copies(session.cursor, self.channel)
            attempt = new_attempt()
            for number, (thread_id, database, table) in enumerate(tables):
                context.copying(thread_id)
                name = copy_name(self.channel, seqno, number, attempt)
                self.made.append(name)
                definition, columns, rows = _copied(session, side, name, TableKey(database, table))
                copy = Copy(number, seqno, thread_id, TableKey(database, table), definition, columns, name, rows)
                context.leave()
                add_copy(session.cursor, self.channel, copy)

    def bring_back(self, session: LaneSession, context: ContextSetter, since: int) -> None:
        """Make the tables again as they were after seqno ``since``; outside of a transaction.

        Raises PositionError if the copies are of another seqno, ApplyError for a table that differs from its copy.
        """
        session.act_as_replica()
        copies = read_copies(session.cursor, self.channel)
        if {copy.seqno for copy in copies} != {since}:
            found = ", ".join(sorted({str(copy.seqno) for copy in copies})) or "none"
            raise PositionError(
                f"channel {self.channel}: expected copies of temporary tables of seqno {since} in binlane.temporary, "
                f"found {found}; state was changed by hand"
            )
        with context.definitions_as_shown():
            for copy in copies:
                context.copying(copy.thread_id)
                _make_again(session, copy)
                context.leave()

    def open_tables(self, session: LaneSession) -> list[tuple[int, TableKey]]:
        """The tables that the copies show as open, by thread."""
        return [(copy.thread_id, copy.table) for copy in read_copies(session.cursor, self.channel)]

    def sweep(self, seqno: int) -> None:
        """Drop copies that are obsolete after ``seqno``, and those that killed attempts have left."""
        self.made.clear()
        with self._beside() as side:
            for name in list(stale_copies(side.cursor, self.channel, seqno)):
                drop_copy(side.cursor, name)

    def drop_made(self) -> None:
        """Drop the tables of an attempt that has failed before its COMMIT, behind the end of its session: no other
        attempt has their names. What cannot be dropped now stays for ``sweep``, which may be far: a lane that fails for
        days would leave them at each attempt."""
        names = (*self.made,)
        self.made.clear()
        if names:
            # the attempt's own error is the one to raise
            with contextlib.suppress(SQLAlchemyError, pymysql.err.Error, BinlaneError, OSError), self._beside() as side:
                # a server that has not noticed the end of the session keeps them locked
                side.execute("SET SESSION lock_wait_timeout = 1")
                for name in names:
                    drop_copy(side.cursor, name)

    @contextlib.contextmanager
    def _beside(self) -> Iterator[LaneSession]:
        side = LaneSession.open(self.engine, self.limits)
        try:
            yield side
        finally:
            side.close()


def _copied(session: LaneSession, side: LaneSession, name: str, table: TableKey) -> tuple[str, tuple[str, ...], int]:
    """Copy one table to the table ``name``; its definition, the names of the copied columns, and the rows."""
    definition, columns = _definition(session, table), _columns(session, table)
    _check_definition(side, table, definition)
    names = tuple(column for column, _, _ in columns)
    types = [kind if collation is None else f"{kind} COLLATE {collation}" for _, kind, collation in columns]
    make_copy(side.cursor, name, types)
    return definition, names, fill_copy(session.cursor, name, _quoted(table), _each_quoted(names))


def _set_up(side: LaneSession) -> None:
    """Accept any definition that the source accepted, and tables of any row format."""
    side.act_as_replica()
    keys = ", sql_require_primary_key = 0" if side.flavor is Flavor.MYSQL else ""
    side.execute(f"SET SESSION innodb_strict_mode = OFF, sql_mode = ''{keys}")


def _make_again(session: LaneSession, copy: Copy) -> None:
    require_columns_alone(copy.definition, session.flavor)
    try:
        session.execute(_whole(copy.definition, copy.table))
    except pymysql.err.MySQLError as exc:
        if error_code(exc) != _UNKNOWN_DATABASE:
            raise
        raise ApplyError(
            f"the temporary table {copy.table} has to be created again, but its database was dropped in the "
            f"meantime: CREATE DATABASE `{copy.table.database}` on the target, run the lane again, and drop the "
            "database when the window is finished"
        ) from exc
    rows = read_copy(session.cursor, copy.name, _quoted(copy.table), _each_quoted(copy.columns))
    found = _definition(session, copy.table)
    if rows != copy.rows or found != copy.definition:
        raise ApplyError(
            f"the temporary table {copy.table} was created again from its copy and differs: expected "
            f"{plural(copy.rows, 'row')} and {copy.definition!r}, found {rows} and {found!r}; report this error"
        )


def _check_definition(side: LaneSession, table: TableKey, definition: str) -> None:
    """Check now, and not after a crash, that the text makes the same table. Raises ApplyError."""
    if (found := beside_columns(definition, side.flavor)) is not None:
        raise ApplyError(
            f"no copy can hold the temporary table {table}: expected columns, keys and plain options, without "
            f"sequences and functions of libraries, found {found} in {definition}; leave out the statements of its "
            "session (binlane skip), and make their changes on the target by hand"
        )
    try:
        side.execute(_whole(definition, table))
    except pymysql.err.MySQLError as exc:
        if error_code(exc) == _UNKNOWN_DATABASE:
            return
        raise ApplyError(
            f"no copy can hold the temporary table {table}: the target does not accept its own definition of the "
            f"table ({error_code(exc)} {exc.args[-1]}): {definition}"
        ) from exc
    found = _definition(side, table)
    side.execute(f"DROP TEMPORARY TABLE {_quoted(table)}")
    if _COUNTER.sub("", found) != _COUNTER.sub("", definition):
        raise ApplyError(f"no copy can hold the temporary table {table}: {definition!r} creates {found!r}")


def _definition(session: LaneSession, table: TableKey) -> str:
    shown = str(session.rows(f"SHOW CREATE TABLE {_quoted(table)}")[0][1])
    if not shown.startswith(BEGINNING):
        raise ApplyError(f"expected the temporary table {table} to be open in the lane's session, found {shown!r}")
    return shown


def _whole(definition: str, table: TableKey) -> str:
    """The definition with the database, which the server's text omits: the session's default may be another one."""
    return f"{BEGINNING}`{_escaped(table.database)}`." + definition.removeprefix(BEGINNING)


def _columns(session: LaneSession, table: TableKey) -> _Columns:
    found = session.rows(f"SHOW FULL COLUMNS FROM {_quoted(table)}")
    return tuple(
        (str(name), str(kind), collation) for name, kind, collation, _, _, _, extra, *_ in found
        if _GENERATED.search(str(extra)) is None
    )  # fmt: skip


def _each_quoted(names: tuple[str, ...]) -> list[str]:
    return [f"`{_escaped(name)}`" for name in names]


def _quoted(table: TableKey) -> str:
    return f"`{_escaped(table.database)}`.`{_escaped(table.table)}`"


def _escaped(name: str) -> str:
    return name.replace("`", "``")


def as_a_whole(barrier: Barrier) -> str:
    """Why no transaction of an indivisible barrier can be skipped."""
    which = f"seqno {barrier.first}" if barrier.first == barrier.last else f"seqnos {barrier.first}..{barrier.last}"
    return (
        f"temporary tables are open in {which}, which can only be applied as a whole: without one of its statements "
        "the tables of the later ones would be others than on the source"
    )
