"""What an account may do, read from SHOW GRANTS, and what binlane needs it to do.

Without ``FOR``, SHOW GRANTS includes the privileges of the session's active roles on both families.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Connection, text

from binlane.binlog.types.literals import identifier, quoted
from binlane.model import Flavor

_GRANT: Final = re.compile(
    r"(?P<verb>GRANT|REVOKE) (?P<privileges>.+?) ON (?:TABLE )?"
    r"(?P<database>\*|`(?:[^`]|``)+`)\.(?P<table>\*|`(?:[^`]|``)+`) "
    r"(?:TO|FROM) .*?(?P<option>WITH GRANT OPTION.*)?",
    re.DOTALL,
)
_COLUMN: Final = re.compile(r"`((?:[^`]|``)+)`|([^`,\s]+)")
_COLUMNS: Final = re.compile(r"\((?:`(?:[^`]|``)+`|[^`)])*\)")
_OF_COLUMNS: Final = re.compile(rf"(?P<name>[A-Z][A-Z ]*[A-Z]) (?P<columns>{_COLUMNS.pattern})")
ALL: Final = "ALL PRIVILEGES"
EVERYWHERE: Final = "*.*"
_WILD: Final = re.compile("([_%])")
_ESCAPED: Final = r"\\\1"

VISIBILITY: Final = ("SELECT", "TRIGGER", "EVENT", "EXECUTE")
"""What makes tables, triggers, events and routines of a database visible to the precheck."""
ROWS: Final = ("INSERT", "UPDATE", "DELETE")
"""What writing rows by SQL takes; BINLOG statements bypass table privileges."""
STATEMENTS: Final = ("INSERT", "UPDATE", "DELETE", "CREATE TEMPORARY TABLES", "LOCK TABLES")
DDL: Final = (
    *("CREATE", "ALTER", "DROP", "INDEX", "REFERENCES", "CREATE VIEW", "CREATE ROUTINE", "ALTER ROUTINE"),
    *STATEMENTS,
)
STATE: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE")
"""On binlane's own schema."""
COPIES: Final = ("DROP",)
"""There, too, for a window that keeps copies of temporary tables."""
ACCOUNTS: Final = ("CREATE USER", "GRANT OPTION")


class Grant(NamedTuple):
    """One line of SHOW GRANTS."""

    database: str | None
    """A LIKE pattern; None is everywhere."""
    table: str | None
    privileges: frozenset[str]


@dataclass(frozen=True, slots=True)
class Grants:
    """Everything that an account was granted, and what was taken back (MySQL's partial revokes)."""

    granted: tuple[Grant, ...]
    revoked: tuple[Grant, ...] = ()

    def missing(self, needed: Iterable[str], database: str | None = None) -> tuple[str, ...]:
        """Which of ``needed`` the account lacks: on every database (None), or on one as a whole."""
        return tuple(name for name in needed if not self._holds(name, database))

    def _holds(self, name: str, database: str | None) -> bool:
        if any(_covers(one, name, database) for one in self.revoked):
            return False
        return any(_covers(one, name, database) for one in self.granted)


class Need(NamedTuple):
    """A privilege that an account needs, and others that stand in for it."""

    name: str
    substitutes: tuple[str, ...]
    why: str
    databases: frozenset[str] | None = None
    """On each of these; None: everywhere."""
    is_advice: bool = False
    """Useful, but not necessary."""

    def lacking(self, grants: Grants) -> tuple[str | None, ...]:
        """The databases on which an account with these grants does not hold it; None stands for everywhere."""
        names = (self.name, *self.substitutes)
        places = (None,) if self.databases is None else sorted(self.databases)
        return tuple(place for place in places if len(grants.missing(names, place)) == len(names))


TABLE_IDS: Final = Need("PROCESS", (), "table ids tell whether a DDL has run", is_advice=True)


def scope_of(database: str | None) -> str:
    """How a GRANT names a database, whose ``_`` and ``%`` would be wildcards; None: everywhere."""
    return EVERYWHERE if database is None else f"{identifier(_WILD.sub(_ESCAPED, database))}.*"


class Order(NamedTuple):
    """A GRANT statement that gives an account what it lacks."""

    names: tuple[str, ...]
    scope: str
    """Of ``scope_of``."""
    account: str
    """``user@host``, as CURRENT_USER() says."""
    with_option: bool = False

    def __str__(self) -> str:
        user, _, host = self.account.rpartition("@")
        option = " WITH GRANT OPTION" if self.with_option else ""
        return f"GRANT {', '.join(self.names)} ON {self.scope} TO {quoted(user)}@{quoted(host)}{option}"


def held_on(grants: Grants, name: str, database: str, table: str) -> bool:
    """Whether the account holds a privilege on a database (as a GRANT names it; "" for all) or a table."""
    unescaped = database.replace("\\_", "_").replace("\\%", "%")
    if database and any(_covers(one, name, unescaped) for one in grants.revoked):
        return False
    for grant in grants.granted:
        same = grant.database is not None and grant.database.lower() in (database.lower(), unescaped.lower())
        if grant.table is not None:
            if not (same and table and grant.table.lower() == table.lower()):
                continue
            grant = Grant(None, None, grant.privileges)
        elif same:
            grant = Grant(None, None, grant.privileges)
        if _covers(grant, name, database or None):
            return True
    return False


def on_column(name: str, column: str) -> str:
    """A privilege on one column of a table, as ``Grant.privileges`` has it and GRANT takes it."""
    return f"{name} ({identifier(column.lower())})"


def read_grants(connection: Connection) -> Grants:
    """The grants of the account that this connection uses."""
    return parse_grants([str(row[0]) for row in connection.execute(text("SHOW GRANTS"))])


def parse_grants(lines: Sequence[str]) -> Grants:
    """Read SHOW GRANTS. Lines that grant a role, a proxy or a routine give no privilege on databases."""
    found: dict[str, list[Grant]] = {"GRANT": [], "REVOKE": []}
    for line in lines:
        match = _GRANT.fullmatch(line)
        if match is None:
            continue
        # a privilege on some columns is none on the table
        names = (name.strip().upper() for name in _COLUMNS.sub("()", match["privileges"]).split(","))
        privileges = {name for name in names if not name.endswith("()")}
        privileges.update(
            on_column(each["name"], in_backticks.replace("``", "`") or bare)
            for each in _OF_COLUMNS.finditer(match["privileges"])
            for in_backticks, bare in _COLUMN.findall(each["columns"][1:-1])
        )
        if match["option"] is not None and "GRANT OPTION" in match["option"]:
            privileges.add("GRANT OPTION")
        scope = (None if match[part] == "*" else match[part][1:-1].replace("``", "`") for part in ("database", "table"))
        found[match["verb"]].append(Grant(next(scope), next(scope), frozenset(privileges)))
    return Grants(tuple(found["GRANT"]), tuple(found["REVOKE"]))


def global_needs(flavor: Flavor, version: tuple[int, int, int]) -> tuple[Need, ...]:
    """What sending row events and logged statements takes, by version (tried on MariaDB 10.11 and MySQL 9.7)."""
    if version < _NAMED_PRIVILEGES[flavor]:
        return (Need("SUPER", (), "BINLOG statements and session variables"),)
    if flavor is Flavor.MARIADB:
        # 11.0 took out of SUPER what has a privilege of its own
        substitutes = ("SUPER",) if version < (11, 0, 1) else ()
        return (
            Need("BINLOG REPLAY", substitutes, "BINLOG statements, gtid_seq_no and pseudo_thread_id"),
            Need("BINLOG ADMIN", substitutes, "binlog_annotate_row_events: the target's log would grow without bounds"),
        )
    session = "SESSION_VARIABLES_ADMIN" if version >= (8, 0, 14) else "SYSTEM_VARIABLES_ADMIN"
    needs = (
        Need("BINLOG_ADMIN", ("SUPER",), "BINLOG statements"),
        Need(session, ("SYSTEM_VARIABLES_ADMIN", "SUPER"), "the session context of statements"),
    )
    applier = Need("REPLICATION_APPLIER", ("SUPER",), "gtid_next and pseudo_replica_mode")
    return (*needs, applier) if version >= (8, 0, 18) else needs


def advisable(flavor: Flavor, version: tuple[int, int, int]) -> tuple[Need, ...]:
    """Useful, but not necessary: a lane's own account may end its own connections."""
    why = "ending the connection of a lane's holder that has stopped, if it uses another account"
    if version < _NAMED_PRIVILEGES[flavor]:
        return (Need("SUPER", (), why, is_advice=True),)
    name = "CONNECTION ADMIN" if flavor is Flavor.MARIADB else "CONNECTION_ADMIN"
    return (Need(name, ("SUPER",), why, is_advice=True),)


def read_only_exemptions(flavor: Flavor, version: tuple[int, int, int]) -> tuple[str, ...]:
    """Any of these lets an account write to a server with read_only."""
    if version < _NAMED_PRIVILEGES[flavor]:
        return ("SUPER",)
    if flavor is Flavor.MYSQL:
        return ("CONNECTION_ADMIN", "SUPER")
    return ("READ_ONLY ADMIN", "SUPER") if version < (10, 11, 0) else ("READ_ONLY ADMIN",)


_NAMED_PRIVILEGES: Final = {Flavor.MARIADB: (10, 5, 2), Flavor.MYSQL: (8, 0, 0)}
"""Before these, all of it was SUPER."""


def _covers(grant: Grant, name: str, database: str | None) -> bool:
    if grant.table is not None or (name not in grant.privileges and ALL not in grant.privileges):
        return False
    # ALL PRIVILEGES is printed apart from the right to pass them on
    if name == "GRANT OPTION" and name not in grant.privileges:
        return False
    if grant.database is None:
        return True
    return database is not None and _like(grant.database, database)


def _like(pattern: str, name: str) -> bool:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    expression = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(expression, name, re.DOTALL | re.IGNORECASE) is not None
