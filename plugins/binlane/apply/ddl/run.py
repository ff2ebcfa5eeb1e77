"""Runs a DDL unless it has run before. What a target shows of that is in the package's docstring."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.ddl.fingerprint import fingerprint, is_atomic
from binlane.apply.ddl.outcome import DdlPlace, after_crash, drops_several, is_revoked, keeps_definitions, left_to_run
from binlane.apply.ddl.text import drops_own_trigger, repeatable, repeated, with_condition, with_database
from binlane.apply.session.connection import AUTOMATIC
from binlane.apply.session.retry_verdicts import error_code
from binlane.errors import BinlaneError, UndecidableError
from binlane.model import Flavor, Item
from binlane.sql.sql_modes import with_unknown_options
from binlane.state.orders.orders import has_begun
from binlane.state.records.ddl_intents import (
    ASKED,
    BEGUN,
    DONE,
    INTENT,
    REFUSED,
    DdlIntent,
    forget_intent,
    read_intent,
    resume,
    write_intent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from binlane.apply.rows.writers import BlockWriter
    from binlane.apply.session.connection import LaneSession

__all__ = ["DdlPlace", "beginning", "gtid_uuid", "has_not_run", "run_ddl"]
_UNKNOWN_OPTION: Final = 1911
"""MariaDB's ER_UNKNOWN_OPTION."""
_CLIENT_ERRORS: Final = (2000, 3000)
_NOT_WRITTEN: Final = frozenset({3, 1026})
"""A file that could not be written. If it is the server's log, a DDL has run: nothing takes it back then. 3 is a number
of the servers' file library."""


def gtid_uuid(channel_uuid: str) -> str:
    """The UUID of the channel's own GTIDs on a MySQL target; the target's replicas see it."""
    return str(uuid.uuid5(uuid.UUID(channel_uuid), "ddl"))


@contextlib.contextmanager
def beginning(session: LaneSession, item: Item, place: DdlPlace) -> Iterator[None]:
    """Around the transaction that says that the DDL begins (``begin_ddl``): on MySQL it has a GTID of its own.

    A DDL's missing GTID proves that it has not run only as long as the server knows what it has executed. RESET BINARY
    LOGS AND GTIDS makes it forget that: then this GTID is missing, too, of a DDL that has begun, and a note without
    definitions lets ``run_ddl`` ask.
    """
    gtid = f"{uuid.uuid5(uuid.UUID(place.channel_uuid), 'begun')}:{int(place.seqno)}"
    is_needed = "SELECT @@gtid_mode = 'ON' AND NOT GTID_SUBSET(%s, @@global.gtid_executed)"
    if session.flavor is not Flavor.MYSQL or not session.value(is_needed, (gtid,)):
        yield
        return
    if has_begun(session.cursor, place.key, place.lane, place.seqno):
        # waits for another runner's transaction, whose rows are there before its GTID
        session.next_gtid(gtid)
        session.rollback()
        session.next_gtid(AUTOMATIC)
        if not session.value(is_needed, (gtid,)):
            yield
            return
        if read_intent(session.cursor, place.key.channel, place.seqno) is None:
            write_intent(session.cursor, place.key.channel, place.seqno, place.lane, item.payload, "", INTENT)
    session.next_gtid(gtid)
    try:
        yield
    except BaseException:
        # a transaction that has failed still owns the GTID
        with contextlib.suppress(Exception):
            session.rollback()
            session.next_gtid(AUTOMATIC)
        raise
    session.next_gtid(AUTOMATIC)


def run_ddl(session: LaneSession, writer: BlockWriter, item: Item, place: DdlPlace, lock_wait_timeout: int) -> None:
    """Run a DDL unless it has run before; the caller moves the position after it.

    Outside a transaction, on the connection that holds the lane's lease. Raises UndecidableError, the driver's errors,
    and ApplyError.
    """
    if writer.guard is not None and drops_own_trigger(session, item, writer.guard):
        return
    item = with_database(session, with_condition(session, item))
    # the source's session allowed it, and this variable is not in the log
    history = ", system_versioning_alter_history = KEEP" if session.flavor is Flavor.MARIADB else ""
    session.execute(f"SET SESSION lock_wait_timeout = {int(lock_wait_timeout)}{history}")
    try:
        try:
            _run_once(session, writer, item, place)
        except pymysql.err.MySQLError as exc:
            if error_code(exc) != _UNKNOWN_OPTION or item.context is None or item.context.sql_mode is None:
                raise
            # a server lets its own replica threads keep options that it does not know, of an engine that it lacks
            mode = with_unknown_options(item.context.sql_mode)
            _run_once(session, writer, replace(item, context=replace(item.context, sql_mode=mode)), place)
        writer.context.leave()
    except pymysql.err.MySQLError as exc:
        if error_code(exc) == 1205:
            raise _with_blockers(session, writer, exc) from exc
        if error_code(exc) in _NOT_WRITTEN:
            # who asks next whether it has run (``has_not_run``) would do so in the statement's session
            with contextlib.suppress(pymysql.err.MySQLError):
                writer.context.leave()
        raise
    finally:
        writer.forget_tables()
    session.execute(f"SET SESSION lock_wait_timeout = {int(session.limits.lock_wait_timeout)}")


def _run_once(session: LaneSession, writer: BlockWriter, item: Item, place: DdlPlace) -> None:
    if session.flavor is Flavor.MYSQL and session.value("SELECT @@gtid_mode") == "ON":
        _by_mysql_gtid(session, writer, item, place)
    elif session.flavor is Flavor.MARIADB and session.value("SELECT @@log_bin AND @@sql_log_bin"):
        _by_note(session, writer, repeatable(item), place)
    else:
        _by_intent(session, writer, repeatable(item), place)


def has_not_run(session: LaneSession, place: DdlPlace, error: Exception) -> bool:
    """Whether nothing of the DDL has run that has ended with this error, so that orders may stop in front of it: the
    target has refused it, or nothing was sent to it."""
    if isinstance(error, pymysql.err.MySQLError) and error_code(error) not in _NOT_WRITTEN:
        return _is_refusal(error)
    return not _may_have_run(session, place)


def _may_have_run(session: LaneSession, place: DdlPlace) -> bool:
    """Whether anything of the seqno may have run: there is a note of it, or the target has its GTID."""
    if read_intent(session.cursor, place.key.channel, place.seqno) is not None:
        return True
    return session.flavor is Flavor.MYSQL and _is_executed(session, _own_gtid(place))


def _own_gtid(place: DdlPlace) -> str:
    return f"{gtid_uuid(place.channel_uuid)}:{int(place.seqno)}"


def _is_executed(session: LaneSession, gtid: str) -> bool:
    return bool(session.value("SELECT GTID_SUBSET(%s, @@global.gtid_executed)", (gtid,)))


def _prepared(session: LaneSession, writer: BlockWriter, item: Item, place: DdlPlace, begun: DdlIntent | None) -> bytes:
    """The statement's text, in its session. If the target cannot have that, nothing was sent, and no new note stays."""
    try:
        return writer.prepare(item)
    except (BinlaneError, pymysql.err.MySQLError) as exc:
        if begun is None and _is_refusal(exc):
            writer.context.leave()
            forget_intent(session.cursor, place.key.channel, place.seqno)
        raise


def _by_mysql_gtid(session: LaneSession, writer: BlockWriter, item: Item, place: DdlPlace) -> None:
    gtid, own = _own_gtid(place), _own_gtid(place)
    is_noted = False
    begun = read_intent(session.cursor, place.key.channel, place.seqno)
    if begun is not None or not is_atomic(session, item):
        # MySQL changes other tables, and commits that, before it logs the statement with its GTID; so does 5.7 with all
        attempt = _noted(session, repeatable(item), place, begun, gtid)
        if attempt is None:
            return
        item, is_noted = attempt, True
        if _is_executed(session, own):
            # a part has run under it, and the server leaves out what comes under a GTID that it has
            gtid = AUTOMATIC
    # the context first: any query of its would consume the GTID
    text = _prepared(session, writer, item, place, begun)
    try:
        _run_under_gtid(session, writer, item, text, gtid)
    except pymysql.err.MySQLError as exc:
        if is_noted and _is_refusal(exc):
            writer.context.leave()
            if _is_executed(session, own):
                # MySQL 5.7, and later ones with tables of other engines, log the part that has run: DROP TABLE of
                # several
                _note_part(session, item, place)
            else:
                forget_intent(session.cursor, place.key.channel, place.seqno)
        raise


def _noted(session: LaneSession, item: Item, place: DdlPlace, begun: DdlIntent | None, gtid: str) -> Item | None:
    """What is left to run of a statement on MySQL that is not atomic; None if it has run. Raises UndecidableError."""
    if begun is not None:
        if begun.state == DONE:
            return None
        if begun.fingerprint == REFUSED:
            return repeated(item)
        if _is_executed(session, gtid):
            # this process may have ended between a server's error and its note
            return repeated(item) if drops_several(item) else None
    now = fingerprint(session, item, with_ids=True)
    if begun is not None:
        return _resumed(session, left_to_run(session, item, begun, now, place), begun, place)
    write_intent(session.cursor, place.key.channel, place.seqno, place.lane, item.payload, now.stored, INTENT)
    return item


def _run_under_gtid(session: LaneSession, writer: BlockWriter, item: Item, text: bytes, gtid: str) -> None:
    try:
        # waits while another session owns this GTID, and skips the statement if that session commits it
        session.next_gtid(gtid)
        writer.run(item, text)
    finally:
        # a failed statement still owns the GTID, and any SET would fail with 1790
        session.rollback()
        session.next_gtid(AUTOMATIC)


def _by_note(session: LaneSession, writer: BlockWriter, item: Item, place: DdlPlace) -> None:
    """MariaDB: the definitions before the statement decide, and of a statement that keeps them the tables' ids."""
    channel, seqno = place.key.channel, place.seqno
    begun = read_intent(session.cursor, channel, seqno)
    if begun is not None and begun.state == DONE:
        return
    # an intent may also be from before the target had a binlog
    asks = keeps_definitions(item) if begun is None else begun.state != BEGUN
    now = fingerprint(session, item, with_ids=asks)
    if begun is None:
        state = INTENT if asks else BEGUN
        write_intent(session.cursor, channel, seqno, place.lane, item.payload, now.stored, state)
    else:
        decide = left_to_run if asks else after_crash
        attempt = _resumed(session, decide(session, item, begun, now, place), begun, place)
        if attempt is None:
            return
        item = attempt
    text = _prepared(session, writer, item, place, begun)
    newest = _newest_gtid(session)
    try:
        writer.run(item, text)
    except pymysql.err.MySQLError as exc:
        if begun is not None and begun.fingerprint != REFUSED and is_revoked(item, error_code(exc)):
            return
        if _is_refusal(exc):
            writer.context.leave()
            if _newest_gtid(session) != newest:
                # with the part that has run before it failed: DROP TABLE of several
                _note_part(session, item, place)
            else:
                forget_intent(session.cursor, channel, seqno)
        raise


def _note_part(session: LaneSession, item: Item, place: DdlPlace) -> None:
    """The server has refused the statement, but has run and logged a part of it."""
    write_intent(session.cursor, place.key.channel, place.seqno, place.lane, item.payload, REFUSED, BEGUN)


def _resumed(session: LaneSession, attempt: Item | None, begun: DdlIntent, place: DdlPlace) -> Item | None:
    """What is left to run, for which nobody is asked any more. Raises UndecidableError if an answer has just come."""
    if attempt is not None and begun.state == ASKED and not resume(session.cursor, place.key.channel, place.seqno):
        raise UndecidableError(
            f"channel {place.key.channel}, lane {place.lane}, seqno {place.seqno}: the question whether the statement "
            "has run was answered while this run looked for the answer itself; run the lane again, which goes by it"
        )
    return attempt


def _newest_gtid(session: LaneSession) -> str:
    """The GTID of what this session has logged last."""
    return str(session.value("SELECT @@last_gtid"))


def _by_intent(session: LaneSession, writer: BlockWriter, item: Item, place: DdlPlace) -> None:
    channel, seqno = place.key.channel, place.seqno
    stored = read_intent(session.cursor, channel, seqno)
    # what was noted while the target had a binlog is without ids
    now = fingerprint(session, item, with_ids=stored is None or stored.state != BEGUN)
    if stored is None:
        if _may_have_run(session, place):
            # it has run by its GTID: gtid_mode was ON until then
            return
        write_intent(session.cursor, channel, seqno, place.lane, item.payload, now.stored, INTENT)
    else:
        if stored.state == DONE:
            return
        attempt = _resumed(session, left_to_run(session, item, stored, now, place), stored, place)
        if attempt is None:
            return
        item = attempt
    text = _prepared(session, writer, item, place, stored)
    try:
        writer.run(item, text)
    except pymysql.err.MySQLError as exc:
        _forget_refused(session, writer, place, exc)
        raise


def _forget_refused(session: LaneSession, writer: BlockWriter, place: DdlPlace, error: pymysql.err.MySQLError) -> None:
    """A server error means that the statement has not run; after a lost connection the outcome is unknown."""
    if _is_refusal(error):
        writer.context.leave()
        forget_intent(session.cursor, place.key.channel, place.seqno)


def _is_refusal(error: Exception) -> bool:
    """A server error that means that the statement, or what is left of it, has not run; no lost connection."""
    code = error_code(error)
    return code not in _NOT_WRITTEN and not _CLIENT_ERRORS[0] <= code < _CLIENT_ERRORS[1]


def _with_blockers(
    session: LaneSession, writer: BlockWriter, error: pymysql.err.MySQLError
) -> pymysql.err.OperationalError:
    """The lock wait timeout, with the connections that may hold the lock."""
    writer.context.leave()
    query = (
        "SELECT trx_mysql_thread_id, trx_started FROM information_schema.innodb_trx "
        "WHERE trx_mysql_thread_id <> %s ORDER BY trx_started LIMIT 5"
    )
    try:
        found = session.rows(query, (session.connection_id,))
    except pymysql.err.MySQLError:
        # no PROCESS privilege: the lock wait stays retryable without the list of connections
        return pymysql.err.OperationalError(
            1205, f"{error.args[-1]}; grant PROCESS to the account to see the session that holds the lock"
        )
    blockers = ", ".join(f"connection {number} since {started}" for number, started in found)
    who = blockers or "none (look for LOCK TABLES or a backup lock)"
    return pymysql.err.OperationalError(1205, f"{error.args[-1]}; open transactions, oldest first: {who}")
