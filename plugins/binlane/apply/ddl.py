"""DDL exactly once: a statement that commits implicitly cannot share a transaction with its position.

So the target itself must show whether the statement has run:

- MySQL with GTIDs: ``gtid_next = '<channel uuid>:<seqno>'``; the server silently skips a GTID that it has. DDL on
  tables that are not InnoDB's is committed before its GTID: there a note decides as well, as on a target with neither.
- MariaDB with a binlog: ``gtid_domain_id`` of the channel and lane, ``gtid_seq_no`` the seqno; ``@@gtid_binlog_state``
  is read before every attempt. Each lane has its domain, because lanes run their DDL out of seqno order. A server that
  is killed during a DDL can finish it when it starts again, and logs it under a GTID of its own; or it has logged a
  statement that it then loses (CREATE and DROP of routines, GRANT, CREATE TABLE ... SELECT). So the definitions of
  everything that the statement may name are noted before it, and decide after a crash. And a statement that fails may
  have been logged with a part that has run.
- neither: the note has *InnoDB's table ids* as well. A RENAME swap or EXCHANGE PARTITION keeps the definitions but
  moves the ids. If the outcome stays unknown, the operator decides.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.ddl_fingerprint import Fingerprint, fingerprint, has_only_innodb
from binlane.apply.session.connection import AUTOMATIC
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.types.literals import identifier
from binlane.errors import UndecidableError
from binlane.model import Flavor, Item, SessionContext
from binlane.plan.transaction.decode import statement_facts
from binlane.servers.variables import version_number
from binlane.sql.sql_modes import with_unknown_options
from binlane.state.gtid_domains import gtid_domain, sequence_in
from binlane.state.records.ddl_intents import (
    BEGUN,
    DONE,
    INTENT,
    REFUSED,
    DdlIntent,
    forget_intent,
    read_intent,
    write_intent,
)

if TYPE_CHECKING:
    from binlane.apply.rows.writers import BlockWriter
    from binlane.apply.session.connection import LaneSession
from binlane.state.positions import PlanKey

_ALREADY_IN_BINLOG: Final = 1950
"""ER_GTID_STRICT_OUT_OF_ORDER: in strict mode, a sequence number at or below one that was used. The DDL is not run
then."""
_UNKNOWN_OPTION: Final = 1911
"""MariaDB's ER_UNKNOWN_OPTION."""
_CLIENT_ERRORS: Final = (2000, 3000)
_VISIBLE: Final = re.compile(
    rb"\s*(?:CREATE|ALTER|DROP|RENAME|TRUNCATE)\s+(?:OR\s+REPLACE\s+)?(?:ONLINE\s+|OFFLINE\s+|UNIQUE\s+|FULLTEXT\s+|SPATIAL\s+)*"
    rb"(?:IGNORE\s+)?(?:TABLE|INDEX|DATABASE|SCHEMA)\b|\s*TRUNCATE\s+\w"
    rb"|\s*(?:CREATE|ALTER|DROP)\s+(?!USER|ROLE)(?:\S+\s+){0,6}?(?:VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT)\b",
    re.I,
)
"""Statements whose effect shows in definitions or table ids: an unchanged fingerprint means that they have not
run."""
_HARMLESS: Final = re.compile(
    rb"\s*(?:GRANT\b|SET\s+PASSWORD\b|ALTER\s+USER\b(?![^;]*\bRETAIN\b)|ALTER\s+(?:DATABASE|SCHEMA)\b|FLUSH\b|ANALYZE\b|OPTIMIZE\b|TRUNCATE\b|CREATE\s+OR\s+REPLACE\b"
    rb"|(?:CREATE|DROP)\s(?:(?!\bDO\b)[^;(])*?\b(?:TABLES?|VIEW|SEQUENCE|INDEX|DATABASE|SCHEMA|TRIGGER|PROCEDURE|FUNCTION"
    rb"|PACKAGE|BODY|EVENT|USER|ROLE|SERVER)\s+IF\s+(?:NOT\s+)?EXISTS\b)",
    re.I,
)
"""Statements that may run twice without harm. ALTER ... IF EXISTS is none: a key without a name would be there
twice."""
_SEVERAL: Final = re.compile(rb"\s*DROP\s+(?:TEMPORARY\s+)?(?:TABLE|VIEW|USER|ROLE)\b[^;]*,", re.I)
"""Statements that are not atomic on every server: a changed fingerprint may mean that they have run in part."""
_RENAMES_SEVERAL: Final = re.compile(rb"\s*RENAME\s+TABLES?\b[^;]*,", re.I)
"""As ``_SEVERAL``, on MySQL, if a table is not InnoDB's."""
_FILLS: Final = re.compile(rb"\s*CREATE\s+TABLE\b.*\bSELECT\b", re.I | re.S)
"""As ``_RENAMES_SEVERAL``; with IF NOT EXISTS it would pass over a table without its rows."""
_DROPS: Final = re.compile(
    rb"(?P<verb>\s*DROP\s+(?:TABLES?|VIEW|SEQUENCE|DATABASE|SCHEMA|TRIGGER|PROCEDURE|FUNCTION|EVENT)\s+)(?!IF\s+EXISTS\b)",
    re.I,
)
_DROPS_IF_EXISTS: Final = re.compile(rb"\s*DROP\s+TABLES?\s+IF\s+EXISTS\b", re.I)
_LOADABLE: Final = re.compile(
    rb"(?P<head>\s*CREATE\s+(?:AGGREGATE\s+)?FUNCTION\s+)(?!IF\s)(?=(?:`[^`]+`|\"[^\"]+\"|[\w$]+)\s+RETURNS\s+\w+\s+SONAME\b)",
    re.I,
)
_SINCE_CONDITION: Final = (8, 0, 29)
"""First MySQL version with CREATE FUNCTION IF NOT EXISTS."""


_ALTERS_TABLE: Final = re.compile(
    rb"\s*ALTER\s+(?:ONLINE\s+|OFFLINE\s+|IGNORE\s+)*TABLE\b(?![^;]*\bCONVERT\s+TABLE\b)", re.I
)
"""ALTER TABLE, but for the one that makes a table a partition of another."""
_MOVES_COLUMNS: Final = re.compile(
    rb"\s*ALTER\b[^;]*?\bTABLE\b(?=.*\b(?:FIRST|AFTER)\b)(?:.*\b(?:CHANGE|RENAME)\b){2}", re.I | re.S
)
"""ALTER TABLE that may give two columns each other's name and place: nothing shows it, not even a table's id."""
_LOGGED_FIRST: Final = re.compile(
    rb"\s*(?:CREATE|DROP)\b(?!\s+(?:USER|ROLE)\b)(?:[^;]*?\b(?:PROCEDURE|FUNCTION|PACKAGE|EVENT)\b|\s+TABLE\b)", re.I
)
"""Statements that MariaDB logs before they are durable (in system tables of Aria, or with rows), and whose effect shows
in definitions."""
_ACCOUNTS: Final = re.compile(rb"(?P<verb>\s*(?:CREATE|DROP)\s+(?:USER|ROLE)\s+)(?!IF\b)", re.I)
_CREATES_DATABASE: Final = re.compile(rb"\s*CREATE\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+NOT\s+EXISTS\s+)?", re.I)


@dataclass(frozen=True, slots=True)
class DdlPlace:
    """Identifies a DDL: the plan, the lane and the seqno of its transaction."""

    key: PlanKey
    channel_uuid: str
    lane: int
    seqno: int


def gtid_uuid(channel_uuid: str) -> str:
    """The UUID of the channel's own GTIDs on a MySQL target; the target's replicas see it."""
    return str(uuid.uuid5(uuid.UUID(channel_uuid), "ddl"))


def run_ddl(session: LaneSession, writer: BlockWriter, item: Item, place: DdlPlace, lock_wait_timeout: int) -> None:
    """Run a DDL unless it has run before; the caller moves the position after it.

    Outside a transaction, on the connection that holds the lane's lease. Raises UndecidableError, the driver's errors,
    and ApplyError.
    """
    item = _with_database(session, _with_condition(session, item))
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
        raise
    finally:
        writer.forget_tables()
    session.execute(f"SET SESSION lock_wait_timeout = {int(session.limits.lock_wait_timeout)}")


def _run_once(session: LaneSession, writer: BlockWriter, item: Item, place: DdlPlace) -> None:
    if session.flavor is Flavor.MYSQL and session.value("SELECT @@gtid_mode") == "ON":
        _by_mysql_gtid(session, writer, item, place)
    elif session.flavor is Flavor.MARIADB and session.value("SELECT @@log_bin AND @@sql_log_bin"):
        _by_mariadb_gtid(session, writer, _repeatable(item), place)
    else:
        _by_intent(session, writer, _repeatable(item), place)


def _repeatable(item: Item) -> Item:
    """The item; for a DROP, with IF EXISTS.

    A server that is killed during a DROP has dropped some of the objects. Its recovery logs that under a GTID of its
    own (MariaDB) or not at all, so the channel's GTID is unused and the same text would fail with 1051. The precheck
    has made sure that the objects exist before the window.
    """
    match = _DROPS.match(item.payload)
    if match is None:
        return item
    return replace(item, payload=match["verb"] + b"IF EXISTS " + item.payload[match.end() :])


def _with_condition(session: LaneSession, item: Item) -> Item:
    """The item; for CREATE FUNCTION ... SONAME, with IF NOT EXISTS: the library may have been installed together with
    its function, which was compared before the window (``precheck.statements``)."""
    match = _LOADABLE.match(item.payload)
    if match is None:
        return item
    number = version_number(str(session.value("SELECT VERSION()")))
    if session.flavor is Flavor.MYSQL and number < _SINCE_CONDITION:
        return item
    return replace(item, payload=match["head"] + b"IF NOT EXISTS " + item.payload[match.end() :])


def _with_database(session: LaneSession, item: Item) -> Item:
    """The item; for DROP TABLE IF EXISTS in a default database that the target does not have, with qualified names.

    MariaDB logs it for the tables that a DROP DATABASE has dropped before it failed. A replica selects the missing
    database and drops nothing; a session cannot select it (1049).
    """
    database = None if item.context is None else item.context.database
    if session.flavor is not Flavor.MARIADB or database is None or _DROPS_IF_EXISTS.match(item.payload) is None:
        return item
    if session.rows("SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", (database,)):
        return item
    assert item.context is not None
    tables = statement_facts(item.payload, item.context, Flavor.MARIADB).tables
    names = ", ".join(f"{identifier(key.database)}.{identifier(key.table)}" for key in sorted(tables, key=str))
    if not names or not names.isascii():
        return item
    return replace(item, payload=f"DROP TABLE IF EXISTS {names}".encode())


def _by_mysql_gtid(session: LaneSession, writer: BlockWriter, item: Item, place: DdlPlace) -> None:
    gtid = f"{gtid_uuid(place.channel_uuid)}:{int(place.seqno)}"
    is_noted = False
    begun = read_intent(session.cursor, place.key.channel, place.seqno)
    if begun is not None or not has_only_innodb(session, item):
        # MySQL changes other tables, and commits that, before it logs the statement with its GTID
        attempt = _noted(session, _repeatable(item), place, begun, gtid)
        if attempt is None:
            return
        item, is_noted = attempt, True
    try:
        _run_under_gtid(session, writer, item, gtid)
    except pymysql.err.MySQLError as exc:
        if is_noted:
            _forget_refused(session, writer, place, exc)
        raise


def _noted(session: LaneSession, item: Item, place: DdlPlace, begun: DdlIntent | None, gtid: str) -> Item | None:
    """What is left to run of a statement on MySQL that is not atomic; None if it has run. Raises UndecidableError."""
    if begun is not None:
        is_logged = session.value("SELECT GTID_SUBSET(%s, @@global.gtid_executed)", (gtid,))
        if begun.state == DONE or is_logged:
            return None
    now = fingerprint(session, item, with_ids=False)
    if begun is not None:
        return _left_to_run(session, item, begun, now, place)
    write_intent(session.cursor, place.key.channel, place.seqno, place.lane, item.payload, now.stored, INTENT)
    return item


def _run_under_gtid(session: LaneSession, writer: BlockWriter, item: Item, gtid: str) -> None:
    # the context first: any query of its would consume the GTID
    text = writer.prepare(item)
    try:
        # waits while another session owns this GTID, and skips the statement if that session commits it
        session.next_gtid(gtid)
        writer.run(item, text)
    finally:
        # a failed statement still owns the GTID, and any SET would fail with 1790
        session.rollback()
        session.next_gtid(AUTOMATIC)


def _by_mariadb_gtid(session: LaneSession, writer: BlockWriter, item: Item, place: DdlPlace) -> None:
    domain = gtid_domain(place.channel_uuid, place.lane)
    is_logged = _is_logged(session, domain, place.seqno)
    channel, seqno = place.key.channel, place.seqno
    begun = read_intent(session.cursor, channel, seqno)
    if (begun is None and is_logged) or (begun is not None and begun.state == DONE):
        return
    # an intent may also be from before the target had a binlog
    asks = _MOVES_COLUMNS.match(item.payload) is not None if begun is None else begun.state == INTENT
    now = fingerprint(session, item, with_ids=asks)
    if begun is None:
        state = INTENT if asks else BEGUN
        write_intent(session.cursor, channel, seqno, place.lane, item.payload, now.stored, state)
    else:
        if asks and not is_logged:
            attempt = _left_to_run(session, item, begun, now, place)
        else:
            attempt = _after_crash(session, item, begun, now, is_logged=is_logged)
        if attempt is None:
            return
        item = attempt
    try:
        _run_in_domain(session, writer, item, None if is_logged else (domain, seqno))
    except pymysql.err.MySQLError as exc:
        if not is_logged and _is_refusal(exc):
            writer.context.leave()
            if _is_logged(session, domain, seqno):
                # with the part that has run before it failed: DROP TABLE of several
                write_intent(session.cursor, channel, seqno, place.lane, item.payload, REFUSED, BEGUN)
            else:
                forget_intent(session.cursor, channel, seqno)
        raise


def _is_logged(session: LaneSession, domain: int, seqno: int) -> bool:
    return sequence_in(str(session.value("SELECT @@global.gtid_binlog_state")), domain) >= seqno


def _run_in_domain(session: LaneSession, writer: BlockWriter, item: Item, number: tuple[int, int] | None) -> None:
    """Run the statement under the GTID of a domain and sequence number; None: under one of the server's choice."""
    usual = int(session.value("SELECT @@gtid_domain_id"))
    text = writer.prepare(item)
    try:
        if number is not None:
            session.execute(f"SET SESSION gtid_domain_id = {number[0]}")
            try:
                session.execute(f"SET SESSION gtid_seq_no = {number[1]}")
            except pymysql.err.MySQLError as exc:
                if error_code(exc) == _ALREADY_IN_BINLOG:
                    return
                raise
        writer.run(item, text)
    finally:
        # if the statement wrote no event, the next transaction would get the number
        session.execute("SET SESSION gtid_seq_no = 0")
        session.execute(f"SET SESSION gtid_domain_id = {usual}")


def _after_crash(
    session: LaneSession, item: Item, begun: DdlIntent, now: Fingerprint, *, is_logged: bool
) -> Item | None:
    """What is left to run of a statement that MariaDB was executing when its connection was lost; None if it has run.

    Found by killing the server at each of its file operations (``tests/chaos/test_killed_in_ddl.py``). Without the
    channel's GTID, ALTER, its like and CREATE DATABASE may have run, and a DROP in part. With it, all have run but
    those that the server logs before they are durable.
    """
    if begun.fingerprint == REFUSED:
        return _repeated(item)
    statement, unchanged = item.payload, begun.fingerprint == now.stored
    if is_logged:
        repeats = _HARMLESS.match(statement) or _ACCOUNTS.match(statement)
        return _repeated(item) if repeats or (unchanged and _LOGGED_FIRST.match(statement)) else None
    if _CREATES_DATABASE.match(statement) is not None and not unchanged:
        return _replacing_database(session, item)
    again = unchanged or _HARMLESS.match(statement) or _is_damaged(statement, begun, now)
    return _repeated(item) if again else None


def _replacing_database(session: LaneSession, item: Item) -> Item | None:
    """What is left to run of a CREATE DATABASE that has made the database; None if that is whole.

    What a killed MariaDB leaves may be a folder without its character set.
    """
    created = _CREATES_DATABASE.match(item.payload)
    if created is None or session.flavor is not Flavor.MARIADB or not _is_empty(session, item):
        return None
    return replace(item, payload=b"CREATE OR REPLACE DATABASE " + item.payload[created.end() :])


def _is_damaged(statement: bytes, begun: DdlIntent, now: Fingerprint) -> bool:
    """Whether a table is missing or cannot be opened that ALTER TABLE leaves: then the server says so if it is run
    again."""
    if _ALTERS_TABLE.match(statement) is None:
        return False
    return now.unreadable or now.tables < int(begun.fingerprint.partition(":")[2])


def _repeated(item: Item) -> Item:
    """The item; for accounts, with IF [NOT] EXISTS: some of them may have been created or dropped."""
    accounts = _ACCOUNTS.match(item.payload)
    if accounts is None:
        return item
    condition = b"IF EXISTS " if accounts["verb"].strip()[:4].upper() == b"DROP" else b"IF NOT EXISTS "
    return replace(item, payload=accounts["verb"] + condition + item.payload[accounts.end() :])


def _is_empty(session: LaneSession, item: Item) -> bool:
    """Whether the databases that the statement names have no objects."""
    databases = tuple(statement_facts(item.payload, item.context or SessionContext(), session.flavor).databases)
    marks = ", ".join(["%s"] * len(databases))
    kinds = (("tables", "table"), ("routines", "routine"), ("events", "event"))
    return bool(databases) and not any(
        session.rows(f"SELECT 1 FROM information_schema.{view} WHERE {kind}_schema IN ({marks}) LIMIT 1", databases)
        for view, kind in kinds
    )


def _by_intent(session: LaneSession, writer: BlockWriter, item: Item, place: DdlPlace) -> None:
    channel, seqno = place.key.channel, place.seqno
    stored = read_intent(session.cursor, channel, seqno)
    # what was noted while the target had a binlog is without ids
    now = fingerprint(session, item, with_ids=stored is None or stored.state != BEGUN)
    if stored is None:
        write_intent(session.cursor, channel, seqno, place.lane, item.payload, now.stored, INTENT)
    else:
        attempt = None if stored.state == DONE else _left_to_run(session, item, stored, now, place)
        if attempt is None:
            return
        item = attempt
    try:
        writer.run(item, writer.prepare(item))
    except pymysql.err.MySQLError as exc:
        _forget_refused(session, writer, place, exc)
        raise


def _forget_refused(session: LaneSession, writer: BlockWriter, place: DdlPlace, error: pymysql.err.MySQLError) -> None:
    """A server error means that the statement has not run; after a lost connection the outcome is unknown."""
    if _is_refusal(error):
        writer.context.leave()
        forget_intent(session.cursor, place.key.channel, place.seqno)


def _is_refusal(error: pymysql.err.MySQLError) -> bool:
    """A server error, and no lost connection."""
    return not _CLIENT_ERRORS[0] <= error_code(error) < _CLIENT_ERRORS[1]


def _left_to_run(session: LaneSession, item: Item, stored: DdlIntent, now: Fingerprint, place: DdlPlace) -> Item | None:
    """What is left to run of a statement with an intent row; None if it has run. Raises UndecidableError if the outcome
    is unknown."""
    statement = item.payload
    changed = now.stored != stored.fingerprint
    # an earlier build looked at other databases, too
    comparable = ":" in stored.fingerprint
    if comparable and changed and _CREATES_DATABASE.match(statement) is not None:
        return _replacing_database(session, item)
    divides = session.flavor is Flavor.MYSQL and not now.has_ids
    fills_in_part = divides and changed and _FILLS.match(statement) is not None
    if _HARMLESS.match(statement) and not fills_in_part:
        return item
    in_part = fills_in_part or _SEVERAL.match(statement) or (divides and _RENAMES_SEVERAL.match(statement))
    if comparable and changed and not in_part:
        return item if _is_damaged(statement, stored, now) else None
    if not changed and now.has_ids and _VISIBLE.match(statement) and not _MOVES_COLUMNS.match(statement):
        return item
    raise UndecidableError(
        f"channel {place.key.channel}, lane {place.lane}, seqno {place.seqno}: the statement below was started "
        "and its outcome is unknown; the definitions on the target have "
        f"{'changed' if changed else 'not changed'} since, which proves neither outcome. Look at the target, "
        "record whether the statement has run (`binlane decide`), and run the lane again (a target with a "
        "binlog, on MySQL with GTIDs and of tables of InnoDB, shows the outcome by itself):\n"
        + statement[:1000].decode("utf-8", "backslashreplace")
    )


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
