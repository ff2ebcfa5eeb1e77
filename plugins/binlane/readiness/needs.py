"""The privileges that a channel's two accounts need, and what the channel will ask of its target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.apply.rows.writers import sends_row_events
from binlane.choices import DDL_KINDS, FilterKind, FilterPolicy
from binlane.config import ChannelConfig
from binlane.model import Flavor
from binlane.precheck.account.privileges import TABLE_IDS, VISIBILITY, Need
from binlane.precheck.situation.situation import Needs
from binlane.precheck.target.definers import setters
from binlane.precheck.target.server import target_privileges
from binlane.source.server import LOG_PRIVILEGES
from binlane.state.tables import SCHEMA

COMPARED_ACCOUNTS: Final = Need(
    "SELECT", (), "accounts are compared by `verify --full --accounts`", frozenset({"mysql"}), is_advice=True
)
"""Of both accounts."""
_Version = tuple[int, int, int]
_MYSQL: Final = frozenset({"mysql"})
_LATER: Final = ("ALTER", "DROP")
"""On binlane's own schema, for newer versions of it, and for copies of temporary tables."""
_NAMED_PRIVILEGES: Final = (10, 5, 2)
"""Before this version of MariaDB, SUPER and REPLICATION CLIENT stood for what has a name of its own since."""
_ROUTINES_OF_OTHERS: Final = "definitions of routines that another account has made"


def channel_needs(
    channel: ChannelConfig,
    databases: frozenset[str],
    *,
    copies: bool,
    windows: bool = True,
    users: bool = False,
    connections: int = 0,
) -> Needs:
    """What the channel asks of the target: its first copy if it ``copies``, and everything that may be in its
    ``windows``; else what every window asks for.

    ``users``: accounts are copied, or created by the log.
    """
    policies = dict(channel.filter.kinds)
    applied = {kind for kind in FilterKind if policies.get(kind, FilterPolicy.APPLY) == FilterPolicy.APPLY}
    return Needs(
        databases=databases,
        statements=copies or windows,
        ddl=copies or (windows and not applied.isdisjoint(DDL_KINDS)),
        accounts=users,
        connections=max(connections, 3 * (channel.lanes.count + 1)),
        by_statements=not sends_row_events(channel.apply.writer),
        overwrite=channel.apply.on_conflict.overwrites,
    )


def applies_accounts(channel: ChannelConfig) -> bool:
    """Whether the channel applies CREATE USER, GRANT and other server-wide statements."""
    return dict(channel.filter.kinds).get(FilterKind.ACCOUNTS, FilterPolicy.APPLY) == FilterPolicy.APPLY


def source_privileges(
    flavor: Flavor, number: _Version, databases: frozenset[str] | None, *, copies: bool, users: bool
) -> Iterator[Need]:
    """Of the source's account. ``databases``: those that the channel takes; None: all, whatever their names."""
    for name in _log_privileges(flavor, number):
        yield Need(name, (), "the binary log is read")
    for name in VISIBILITY:
        why = "definitions are compared with the log, rows are verified and copied"
        yield Need(name, (), why, databases, is_advice=not copies)
    yield Need("PROCESS", (), "definitions are kept from one window to the next", is_advice=True)
    if not copies:
        yield Need("SHOW VIEW", (), "views that statements name are compared", databases, is_advice=True)
        yield _routines(flavor, number)._replace(is_advice=True)
        return
    yield Need("SHOW VIEW", (), "the first copy reads definitions", databases)
    yield Need("RELOAD", (), "the first copy locks the source for a moment")
    if flavor is Flavor.MYSQL:
        yield Need("BACKUP_ADMIN", (), "DDL waits during the first copy")
        yield Need("XA_RECOVER_ADMIN", (), "prepared XA transactions would be missing from the first copy")
    if users:
        yield Need("SELECT", (), "accounts are copied", _MYSQL)
    yield _routines(flavor, number)


def account_privileges(flavor: Flavor, number: _Version, needs: Needs) -> Iterator[Need]:
    """Of the target's account: what the precheck of a window asks for, and what only some statements need."""
    yield from target_privileges(flavor, number, needs)
    own = frozenset({SCHEMA})
    yield Need("INDEX", (), "positions and windows are kept there", own)
    yield Need("CREATE VIEW", (), "readers of the target ask the view binlane.consistent", own)
    for name in _LATER:
        yield Need(name, (), "binlane's own tables are changed", own, is_advice=True)
    yield Need("SHOW VIEW", (), "views are compared by verifications", needs.databases, is_advice=True)
    if needs.ddl:
        first, *others = setters(flavor, number)
        why = "views, routines, triggers and events keep their definers"
        yield Need(first, tuple(others), why, is_advice=True)
        yield TABLE_IDS
        if flavor is Flavor.MYSQL:
            yield Need("SELECT", (), "which definers hold SYSTEM_USER", _MYSQL, is_advice=True)
    elif needs.overwrite:
        why = "tables of other databases, which refer to a corrected row by a foreign key, are seen"
        yield Need("PROCESS", (), why, is_advice=True)
    if needs.accounts:
        yield Need("RELOAD", (), "FLUSH statements of the log", is_advice=True)
    yield _routines(flavor, number)._replace(is_advice=True)


def _log_privileges(flavor: Flavor, number: _Version) -> tuple[str, ...]:
    if flavor is Flavor.MARIADB and number < _NAMED_PRIVILEGES:
        return LOG_PRIVILEGES[Flavor.MYSQL]
    return LOG_PRIVILEGES[flavor]


def _routines(flavor: Flavor, number: _Version) -> Need:
    """Whoever may read all databases sees every routine's text."""
    if flavor is Flavor.MYSQL and number >= (8, 0, 20):
        return Need("SHOW_ROUTINE", ("SELECT",), _ROUTINES_OF_OTHERS)
    return Need("SELECT", (), _ROUTINES_OF_OTHERS, _MYSQL)
