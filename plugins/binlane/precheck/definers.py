"""May the account make the window's views, routines, triggers and events in their definers' names, and change accounts?

Without the right to, the server refuses the statement when its turn has come (1227). Which privilege is for what: tried
on MySQL 9.7 and MariaDB 10.11; since when: the release notes of MySQL 8.0.16, 8.2 and 8.4, MariaDB 10.5.2 and 11.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, text

from binlane.model import Flavor
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.finding import Finding
from binlane.precheck.privileges import Grants, read_grants
from binlane.schema.compare import Severity
from binlane.sql.logged_statement import LoggedText
from binlane.sql.requirements import CHANGED, DEFINER, PRIVILEGE, Demand

_Version = tuple[int, int, int]
_SYSTEM: Final = ("SYSTEM_USER",)
_SINCE_SYSTEM: Final = (8, 0, 16)
_SINCE_ABSENT: Final = (8, 2, 0)
_ACCOUNT: Final = "account "


@dataclass(frozen=True, slots=True)
class _Accounts:
    """Of a MySQL target; all of it is empty where it does not matter, or the account may not read ``mysql``."""

    known: frozenset[str] | None = None
    system: frozenset[str] = frozenset()
    """Who holds SYSTEM_USER, itself or by a role."""
    owners: frozenset[str] = frozenset()
    """Objects whose definer is one of them, as ``accounts_named.defined`` spells them, in lower case."""


def check_definers(connection: Connection, plan: WindowPlan, flavor: Flavor, number: _Version) -> Iterator[Finding]:
    """What the account lacks for the window's definitions and account statements. Only reads."""
    yield from _privileges(connection, plan)
    asked = [(demand, seqno) for demand, seqno in plan.demands.items() if demand.feature in (DEFINER, CHANGED)]
    if not asked:
        return
    grants, own = read_grants(connection), str(connection.execute(text("SELECT CURRENT_USER()")).scalar_one())
    there = _read_accounts(connection, grants) if flavor is Flavor.MYSQL and number >= _SINCE_SYSTEM else _Accounts()
    named = {demand.subject.removeprefix(_ACCOUNT): seqno for demand, seqno in asked if demand.feature == CHANGED}
    for demand, seqno in asked:
        who = demand.detail
        needed: tuple[str, ...] = ()
        if demand.feature == DEFINER and who != own:
            needed = _lacking(grants, setters(flavor, number))
            is_made = named.get(who, seqno) < seqno
            if not needed and number >= _SINCE_ABSENT and there.known is not None and who not in there.known | {own}:
                needed = () if is_made else _lacking(grants, ("ALLOW_NONEXISTENT_DEFINER", "SUPER"))
        if not needed and (who in there.system or _is_owned(demand, there)):
            needed = _lacking(grants, _SYSTEM)
        if needed:
            yield _finding(demand, seqno, needed)


def check_owned(
    connection: Connection, flavor: Flavor, number: _Version, statements: Iterable[LoggedText]
) -> Iterator[Finding]:
    """DROP FUNCTION without a database, which the session's own stands for: the function of somebody with SYSTEM_USER.

    A loadable function of that name is nobody's, and goes first.
    """
    if flavor is not Flavor.MYSQL or number < _SINCE_SYSTEM:
        return
    dropped = [(each, name) for each in statements if (name := _dropped(each)) is not None]
    grants = read_grants(connection) if dropped else Grants(())
    there = _read_accounts(connection, grants) if dropped else _Accounts()
    for each, name in dropped:
        demand = Demand(CHANGED, f"function {each.context.database}.{name}")
        if each.context.database and _is_owned(demand, there) and (needed := _lacking(grants, _SYSTEM)):
            loadable = connection.execute(text("SELECT 1 FROM mysql.func WHERE name = :name"), {"name": name})
            if loadable.first() is None:
                yield _finding(demand, each.seqno, needed)


def _dropped(statement: LoggedText) -> str | None:
    if statement.words[:2] != ("DROP", "FUNCTION"):
        return None
    rest = statement.tokens[4 if statement.words[2:4] == ("IF", "EXISTS") else 2 :]
    return rest[0].text if len(rest) == 1 else None


def _privileges(connection: Connection, plan: WindowPlan) -> Iterator[Finding]:
    asked = {demand: seqno for demand, seqno in plan.demands.items() if demand.feature == PRIVILEGE}
    grants = read_grants(connection) if asked else None
    for demand, seqno in asked.items():
        if grants is not None and grants.missing((demand.detail,), demand.subject or None):
            scope = f"`{demand.subject}`.*" if demand.subject else "*.*"
            where = f"target: privilege {demand.detail} for the statement of seqno {seqno}"
            todo = f"GRANT {demand.detail} ON {scope} TO the account: without it the server refuses the statement"
            yield Finding(Severity.FATAL, where, f"granted on {scope}", "not granted", todo)


def _finding(demand: Demand, seqno: int, needed: tuple[str, ...]) -> Finding:
    of = f": definer {demand.detail}" if demand.feature == DEFINER else ""
    todo = f"GRANT {needed[0]} ON *.* TO the account: without it the server refuses the statement (1227)"
    where = f"{demand.subject}{of}, in the statement of seqno {seqno}"
    return Finding(Severity.FATAL, where, f"an account with {' or '.join(needed)}", "an account without it", todo)


def _lacking(grants: Grants, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names if the account holds none of them."""
    return names if len(grants.missing(names)) == len(names) else ()


def setters(flavor: Flavor, number: _Version) -> tuple[str, ...]:
    """Any of these lets an account set another one as definer."""
    if flavor is Flavor.MARIADB:
        if number < (10, 5, 2):
            return ("SUPER",)
        return ("SET USER", "SUPER") if number < (11, 0, 1) else ("SET USER",)
    if number < (8, 0, 0):
        return ("SUPER",)
    if number < _SINCE_ABSENT:
        return ("SET_USER_ID", "SUPER")
    return ("SET_ANY_DEFINER", "SUPER") if number >= (8, 4, 0) else ("SET_ANY_DEFINER", "SET_USER_ID", "SUPER")


def _is_owned(demand: Demand, there: _Accounts) -> bool:
    if demand.feature != CHANGED:
        return False
    return demand.subject.removeprefix(_ACCOUNT) in there.system or demand.subject.lower() in there.owners


def _read_accounts(connection: Connection, grants: Grants) -> _Accounts:
    if grants.missing(("SELECT",), "mysql"):
        return _Accounts()
    known = frozenset(_pairs(connection, "SELECT user, host FROM mysql.user"))
    if not grants.missing(_SYSTEM):
        return _Accounts(known)
    system = set(_pairs(connection, "SELECT user, host FROM mysql.global_grants WHERE priv = 'SYSTEM_USER'"))
    edges = connection.execute(text("SELECT from_user, from_host, to_user, to_host FROM mysql.role_edges"))
    roles = [(f"{row[0]}@{row[1]}", f"{row[2]}@{row[3]}") for row in edges]
    while more := {member for role, member in roles if role in system} - system:
        system |= more
    owned = [row for row in connection.execute(text(_DEFINERS)) if row[3] in system]
    owners = frozenset(f"{row[0]} {row[1]}.{row[2]}".lower() for row in owned)
    return _Accounts(known, frozenset(system), owners)


def _pairs(connection: Connection, query: str) -> Iterator[str]:
    return (f"{user}@{host}" for user, host in connection.execute(text(query)))


_DEFINERS: Final = (
    "SELECT routine_type, routine_schema, routine_name, definer FROM information_schema.routines"
    " UNION ALL SELECT 'VIEW', table_schema, table_name, definer FROM information_schema.views"
    " UNION ALL SELECT 'EVENT', event_schema, event_name, definer FROM information_schema.events"
)
