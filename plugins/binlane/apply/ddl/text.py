"""The text of a DDL as the target has to get it, so that it can be run on it, and run again."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from binlane.binlog.types.literals import identifier
from binlane.model import Flavor, Item, SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.servers.names import is_named
from binlane.servers.variables import version_number
from binlane.sql.plain_statement import parted

if TYPE_CHECKING:
    from binlane.apply.rows.table_guard import TableGuard
    from binlane.apply.session.connection import LaneSession

_DROPS: Final = re.compile(
    rb"(?P<verb>\s*DROP\s+(?:TABLES?|VIEW|SEQUENCE|DATABASE|SCHEMA|TRIGGER|PROCEDURE|FUNCTION|EVENT)\s+)(?!IF\s+EXISTS\b)",
    re.I,
)
_DROPS_TRIGGER: Final = re.compile(rb"\s*DROP\s+TRIGGER\b(?P<condition>\s+IF\b)?", re.I)
_DROPS_IF_EXISTS: Final = re.compile(rb"\s*DROP\s+TABLES?\s+IF\s+EXISTS\b", re.I)
_LOADABLE: Final = re.compile(
    rb"(?P<head>\s*CREATE\s+(?:AGGREGATE\s+)?FUNCTION\s+)(?!IF\s)(?=(?:`[^`]+`|\"[^\"]+\"|[\w$\x80-\xff]+)\s+RETURNS\s+\w+\s+SONAME\b)",
    re.I,
)
_SINCE_CONDITION: Final = (8, 0, 29)
"""First MySQL version with CREATE FUNCTION IF NOT EXISTS."""
ACCOUNTS: Final = re.compile(rb"(?P<verb>\s*(?:CREATE|DROP)\s+(?:USER|ROLE)\s+)(?!IF\b)", re.I)


def in_parts(item: Item) -> tuple[bytes, bytes]:
    """MariaDB's variables of one statement in front of it, and the statement: it decides how a DDL is run, and whether
    it has run. No MySQL target gets such variables."""
    return parted(item.payload, item.context or SessionContext(), Flavor.MARIADB)


def repeatable(item: Item) -> Item:
    """The item; for a DROP, with IF EXISTS.

    A server that is killed during a DROP has dropped some of the objects. Its recovery logs that under a GTID of its
    own (MariaDB) or not at all, so the channel's GTID is unused and the same text would fail with 1051. The precheck
    has made sure that the objects exist before the window.
    """
    front, statement = in_parts(item)
    match = _DROPS.match(statement)
    if match is None:
        return item
    return replace(item, payload=front + match["verb"] + b"IF EXISTS " + statement[match.end() :])


def with_condition(session: LaneSession, item: Item) -> Item:
    """The item; for CREATE FUNCTION ... SONAME, with IF NOT EXISTS: the library may have been installed together with
    its function, which was compared before the window (``precheck.window_statements``)."""
    front, statement = in_parts(item)
    match = _LOADABLE.match(statement)
    if match is None:
        return item
    number = version_number(str(session.value("SELECT VERSION()")))
    if session.flavor is Flavor.MYSQL and number < _SINCE_CONDITION:
        return item
    return replace(item, payload=front + match["head"] + b"IF NOT EXISTS " + statement[match.end() :])


_HAS_DATABASE: Final = f"SELECT 1 FROM information_schema.schemata WHERE {is_named('schema_name', '%s')}"


def with_database(session: LaneSession, item: Item) -> Item:
    """The item; for DROP TABLE IF EXISTS in a default database that the target does not have, with qualified names.

    MariaDB logs it for the tables that a DROP DATABASE has dropped before it failed. A replica selects the missing
    database and drops nothing; a session cannot select it (1049).
    """
    database = None if item.context is None else item.context.database
    if session.flavor is not Flavor.MARIADB or database is None or _DROPS_IF_EXISTS.match(in_parts(item)[1]) is None:
        return item
    if session.rows(_HAS_DATABASE, 3 * (database,)):
        return item
    assert item.context is not None
    tables = statement_facts(item.payload, item.context, Flavor.MARIADB).tables
    names = ", ".join(f"{identifier(key.database)}.{identifier(key.table)}" for key in sorted(tables, key=str))
    if not names or not names.isascii():
        return item
    return replace(item, payload=f"DROP TABLE IF EXISTS {names}".encode())


_TRIGGER: Final = (
    "SELECT trigger_name, event_object_table FROM information_schema.triggers "
    f"WHERE {is_named('trigger_schema', '%s')} AND trigger_name = %s"
)


def drops_own_trigger(session: LaneSession, item: Item, guard: TableGuard) -> bool:
    """Whether the item is a DROP TRIGGER that would drop one of the target's own.

    The statement names no table: on the source it may have been a trigger on a table that is left out, and what has its
    name on the target is on another one. And servers log DROP TRIGGER IF EXISTS of an account without any privilege
    where they find no such trigger: MariaDB looks for a file of exactly that name, MySQL for one that
    utf8mb3_general_ci takes for it.
    """
    if item.context is None or (match := _DROPS_TRIGGER.match(in_parts(item)[1])) is None:
        return False
    is_exact = match["condition"] is not None and (guard.source, session.flavor) == (Flavor.MARIADB, Flavor.MYSQL)
    spelled = session.letters.name
    for name in statement_facts(item.payload, item.context, session.flavor).dropped_triggers:
        for trigger, table in session.rows(_TRIGGER, (*3 * (name.database,), name.table)):
            if is_exact and spelled(str(trigger)) != spelled(name.table):
                return True
            if guard.left_out is not None and guard.left_out(TableKey(name.database, str(table))) is not None:
                return True
    return False


def repeated(item: Item) -> Item:
    """The item; for accounts, with IF [NOT] EXISTS: some of them may have been created or dropped."""
    front, statement = in_parts(item)
    accounts = ACCOUNTS.match(statement)
    if accounts is None:
        return item
    condition = b"IF EXISTS " if accounts["verb"].strip()[:4].upper() == b"DROP" else b"IF NOT EXISTS "
    return replace(item, payload=front + accounts["verb"] + condition + statement[accounts.end() :])
