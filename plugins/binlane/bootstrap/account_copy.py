"""Copies accounts and roles with their privileges, except the servers' own and those that the target already has.

What runs on the target is about a new account alone, and not about the channels' state there (``sql.account_lines``).
An account that an interrupted attempt has created may lack privileges, so the next attempt drops it first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import pymysql

from binlane.apply.refusals import target_errors
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.types.literals import identifier, quoted
from binlane.bootstrap.sessions import Session
from binlane.errors import SourceError, TargetError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.safe_text import shown
from binlane.servers.account_fingerprints import SERVERS_OWN
from binlane.shards.selection import OWN
from binlane.sql.account_lines import About, ShownAccounts, foreign_line, unread_password

_NOT_COPIED: Final = frozenset({1049, 1146, 1147, 1305, 1347})
"""Errors for a privilege on a table or routine that was not copied."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """Accounts and roles as the source had them at the snapshot."""

    made: tuple[tuple[str, bytes], ...]
    """Account or role, as SQL names it, and the statement that creates it; roles first."""
    grants: tuple[tuple[str, bytes], ...]
    on_state: tuple[tuple[str, bytes], ...] = ()
    """Privileges on the schema ``binlane``, which are not copied: the source's is that of its own channels."""
    unread: tuple[tuple[str, bytes], ...] = ()
    """Accounts that are not copied, since the source shows their password without escapes, and the line."""

    def without(self, present: Collection[str]) -> Accounts:
        """Those that are not ``present``, by their names in SQL."""
        lists = (self.made, self.grants, self.on_state, self.unread)
        return Accounts(*(tuple(one for one in each if one[0] not in present) for each in lists))


def no_accounts() -> Accounts:
    """No accounts, without ``--users``."""
    return Accounts((), ())


def read_accounts(session: Session) -> Accounts:
    """All accounts except the server's own."""
    if session.flavor is Flavor.MYSQL:
        session.execute("SET SESSION print_identified_with_as_hex = ON")
    roles = (
        "is_role = 'Y'" if session.flavor is Flavor.MARIADB else "account_locked = 'Y' AND authentication_string = ''"
    )
    rows = session.texts(f"SELECT user, host, {roles} FROM mysql.user ORDER BY 3 DESC, 1, 2")
    is_mariadb = session.flavor is Flavor.MARIADB
    lines = ShownAccounts(session.flavor, {user for user, _, is_role in rows if is_mariadb and is_role == "1"})
    made: list[tuple[str, bytes]] = []
    unread: list[tuple[str, bytes]] = []
    grants: dict[About, list[tuple[str, bytes]]] = {about: [] for about in About}
    for user, host, is_role in rows:
        if user in SERVERS_OWN:
            continue
        if is_mariadb and is_role == "1":
            name, its_host = quoted(user), None
            making, about = f"CREATE ROLE {identifier(user)}".encode(), About.ACCOUNT
        else:
            name, its_host = f"{quoted(user)}@{quoted(host)}", host
            [(making,)] = session.rows(f"SHOW CREATE USER {name}")
            about = _about(making, lines, name, user, its_host)
            if about not in (About.ACCOUNT, About.UNREAD):
                raise SourceError(foreign_line(name, making.decode(errors="replace")))
        given = [
            (_about(line, lines, name, user, its_host), line) for (line,) in session.rows(f"SHOW GRANTS FOR {name}")
        ]
        if About.UNREAD in (about, *(whom for whom, _ in given)):
            unread.append((name, making))
            continue
        made.append((name, making))
        for whom, line in given:
            grants[whom].append((name, line))
    # a role's privileges are read with the role
    return Accounts(tuple(made), tuple(grants[About.ACCOUNT]), tuple(grants[About.STATE]), tuple(unread))


def _about(statement: bytes, lines: ShownAccounts, name: str, user: str, host: str | None) -> About:
    sql = statement.decode(errors="replace")
    found = lines.about(sql, user, host) if sql.encode() == statement else None
    if found is None:
        raise SourceError(foreign_line(name, sql))
    return found


def make_accounts(
    session: Session, accounts: Accounts, planned: Callable[[Collection[str]], None] = lambda names: None
) -> tuple[str, ...]:
    """Create the accounts that the target lacks. Returns messages about privileges that could not be granted.

    ``planned`` is called with their names before the first one is created.
    """
    if not (accounts.made or accounts.unread):
        return ()  # reading those that are there takes a privilege
    notes: list[str] = []
    present = names_of(session.texts("SELECT user, host FROM mysql.user"))
    new = accounts.without(present)
    notes += [
        f"account {name}: exists on the target already and was not changed"
        for name, _ in accounts.made
        if name in present
    ]
    notes += [
        f"account {name}: {shown(line.decode(errors='replace'))}: left out: {OWN}, and its account may change what the "
        "channel writes there"
        for name, line in new.on_state
    ]
    notes += [unread_password(name) for name, _ in new.unread]
    planned([name for name, _ in new.made])
    _make(session, new.made)
    for name, statement in new.grants:
        try:
            with target_errors(f"account {name}: {shown(statement.decode(errors='replace'))}"):
                session.execute(statement)
        except TargetError as exc:
            cause = exc.__cause__
            if cause is None or error_code(cause) not in _NOT_COPIED:
                raise
            notes.append(f"account {name}: {shown(statement.decode(errors='replace'))}: {cause.args[1]}")
    return tuple(notes)


def drop_accounts(session: Session, is_own: Callable[[str], bool]) -> None:
    """Drop the accounts and roles that are the copy's own, by their names in SQL."""
    role = "is_role = 'Y'" if session.flavor is Flavor.MARIADB else "FALSE"
    for user, host, is_role in session.texts(f"SELECT user, host, {role} FROM mysql.user"):
        name = quoted(user) if is_role == "1" else f"{quoted(user)}@{quoted(host)}"
        if is_own(name):
            with target_errors(f"account {name}"):
                session.execute(f"DROP ROLE {identifier(user)}" if is_role == "1" else f"DROP USER {name}")


def _make(session: Session, left: Sequence[tuple[str, bytes]]) -> None:
    """Create accounts; an account whose default role does not exist yet is tried again after the others."""
    while left:
        waiting: list[tuple[str, bytes]] = []
        first: tuple[str, pymysql.err.MySQLError] | None = None
        for name, statement in left:
            try:
                session.execute(statement)
            except pymysql.err.MySQLError as exc:
                waiting.append((name, statement))
                first = first or (name, exc)
        if first is not None and len(waiting) == len(left):
            name, error = first
            with target_errors(f"account {name}"):
                raise error
        left = waiting


def names_of(rows: Iterable[Sequence[str]]) -> frozenset[str]:
    """How SQL names the accounts and roles of ``mysql.user``, by user and host."""
    names = set()
    for user, host in rows:
        names.add(f"{quoted(user)}@{quoted(host)}")
        if not host:
            names.add(quoted(user))
    return frozenset(names)
