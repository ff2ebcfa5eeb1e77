"""Settings of a target as a replica of its own that servers obey for the events of BINLOG statements, too.

No session has these: MariaDB ``Rows_log_event::do_apply_event`` and ``Table_map_log_event::do_apply_event``
(sql/log_event_server.cc), MySQL ``ignored_error_code`` (sql/log_event.cc) take the server's own. Settings that are for
replica threads alone (``replicate_do_db``) are not among them. The trials ``test_session_globals`` and
``test_start_options`` set every variable, and every option at the start.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import pymysql
from sqlalchemy import Engine

from binlane.apply.session.connection import LaneSession, SessionLimits
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.types.type_codes import ColumnType
from binlane.binlog.wire import EventType, build_event
from binlane.model import Flavor
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import TargetSituation
from binlane.schema.compare import Severity

_NOT_THERE: Final = "binlane_where_rows_go"
"""No table has this name: the server's error names the database in which it has looked."""
_NO_PRIVILEGE: Final = 1227
_NEVER_SET: Final = ("COMPILE-TIME", "CONFIG", "AUTO")
_ORIGIN: Final = (
    "SELECT global_value, global_value_origin FROM information_schema.system_variables"
    " WHERE variable_name = 'REPLICATE_REWRITE_DB'"
)


def check_passed_errors(situation: TargetSituation) -> Iterator[Finding]:
    """Errors that the target passes over in row events, with the rows that meet them: ``replica_skip_errors``,
    and on MariaDB ``slave_exec_mode = IDEMPOTENT``."""
    target = situation.target
    if situation.needs.by_statements:
        return
    name = next((each for each in ("replica_skip_errors", "slave_skip_errors") if target.is_on(each)), None)
    if name is not None:
        todo = (
            f'restart the target without {name.replace("_", "-")} in its option file, or set apply.writer = "sql" in '
            "the channel's file: row events pass over these errors in silence, and the rows with them"
        )
        yield Finding(Severity.FATAL, f"target: {name}", "OFF", target.variables[name], todo)
    # MySQL has rbr_exec_mode, which each session sets for itself
    if target.flavor is Flavor.MARIADB and target.value("slave_exec_mode") not in ("", "STRICT"):
        mend = (target.setting("slave_exec_mode", "STRICT"),)
        todo = f"{mend[0]} on the target: row events overwrite rows that are in the way, and pass over missing ones"
        found = target.variables["slave_exec_mode"]
        yield Finding(Severity.FATAL, "target: slave_exec_mode", "STRICT", found, todo, mend=mend)


def check_rewritten_rows(situation: TargetSituation) -> Iterator[Finding]:
    """Databases whose row events a MariaDB target writes into another one, since it was started with
    ``replicate_rewrite_db``. Before 10.11 it is asked by rows of ``binlane_where_rows_go``, a table that no database
    has: its error log has a line 1146 for each database."""
    target, needs = situation.target, situation.needs
    if needs.by_statements or target.flavor is not Flavor.MARIADB or not needs.databases:
        return
    told = target.rows(_ORIGIN)
    # the variable shows the rules of the default connection, which SET GLOBAL changes alone; 10.11 is the first with it
    if told and not told[0][0] and str(told[0][1]) in _NEVER_SET:
        return
    for database, other in rewritten_databases(target.engine, sorted(needs.databases), target.version):
        todo = (
            "restart the target without replicate-rewrite-db in its option file (its own replication can have the rule "
            'by SET GLOBAL replicate_rewrite_db, from 10.11 on), or set apply.writer = "sql" in the channel\'s file'
        )
        yield Finding(Severity.FATAL, f"target: rows of {database}", f"written into {database}", f"into {other}", todo)


def rewritten_databases(engine: Engine, databases: list[str], version: str) -> Iterator[tuple[str, str]]:
    """The databases of which a MariaDB server takes row events for those of another one, and that one: the server is
    asked for rows of a table that no database has, and says where it has looked. Nothing is written.

    ``version``: the server's. Raises the driver's errors.
    """
    session = LaneSession.open(engine, SessionLimits())
    try:
        for database in databases:
            try:
                session.use_format(FormatDescription(version).announcing_payloads())
                session.binlog(_a_row(database))
            except pymysql.err.MySQLError as exc:
                if error_code(exc) == _NO_PRIVILEGE:
                    return  # the check of privileges says so
                found = _looked_in(str(exc.args[-1]))
                if not found:
                    raise
                if session.letters.name(found) != session.letters.name(database):
                    yield database, found
    finally:
        session.close()


def _looked_in(message: str) -> str:
    """The database in the text of 1146 (``'database.table'``) or 1049 (``'database'``); empty: none is named."""
    _, quote, behind = message.partition("'")
    table, dot, _ = behind.partition(f".{_NOT_THERE}'")
    return table if dot else behind.rpartition("'")[0] if quote else ""


def _a_row(database: str) -> bytes:
    """A TABLE_MAP and a WRITE_ROWS event of a table with one INT column: MySQL's ``rows_event.h``."""
    names = b"".join(bytes([len(name)]) + name + b"\0" for name in (database.encode(), _NOT_THERE.encode()))
    table = struct.pack("<IHH", 1, 0, 1)
    table_map = table + names + bytes([1, ColumnType.LONG, 0, 1])
    row = table + bytes([1, 1, 0]) + struct.pack("<i", 1)
    return build_event(EventType.TABLE_MAP, table_map, server_id=1) + build_event(
        EventType.WRITE_ROWS_V1, row, server_id=1
    )
