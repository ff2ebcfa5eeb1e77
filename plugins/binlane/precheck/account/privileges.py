"""What an account may do, read from SHOW GRANTS, and what binlane needs it to do.

Without ``FOR``, SHOW GRANTS includes the privileges of the session's active roles on both families.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

from sqlalchemy import Connection, text

from binlane.binlog.types.literals import identifier, quoted
from binlane.lazy_dataclass import dataclass
from binlane.model import SYSTEM_DATABASES, Flavor, TableKey
from binlane.schema.letter_case import LetterCase
from binlane.servers.variables import global_variables
from binlane.sql.accounts import ACCOUNT_PATTERN, spelled
from binlane.sql.program_names import folded_name

_GRANT: Final = re.compile(
    r"(?P<verb>GRANT|REVOKE) (?P<privileges>.+?) ON (?:TABLE )?"
    r"(?P<database>\*|`(?:[^`]|``)+`)\.(?P<table>\*|`(?:[^`]|``)+`) "
    r"(?:TO|FROM) (?P<account>(?:`(?:[^`]|``)*`|'(?:[^']|'')*'|[^\s`'])+).*?(?P<option>WITH GRANT OPTION.*)?",
    re.DOTALL,
)
_COLUMN: Final = re.compile(r"`((?:[^`]|``)+)`|([^`,\s]+)")
_COLUMNS: Final = re.compile(r"\((?:`[^`]*`|[^`)])*\)")
"""A name with a doubled quote is two parts, one behind the other: so each byte has one reading."""
_OF_COLUMNS: Final = re.compile(rf"(?P<name>[A-Z][A-Z ]*[A-Z]) (?P<columns>{_COLUMNS.pattern})")
_ROLE: Final = re.compile(r"GRANT (?P<roles>[^ ].*?) TO .*?(?P<admin> WITH ADMIN OPTION)?")
_ROLES: Final = re.compile(rf"{ACCOUNT_PATTERN}(?:,|\Z)")
_PROXY: Final = re.compile(rf"GRANT PROXY ON {ACCOUNT_PATTERN}")
_ROUTINE: Final = re.compile(
    r"GRANT (?P<names>.+?) ON (?:PROCEDURE|FUNCTION|PACKAGE|PACKAGE BODY|LIBRARY) "
    r"`(?P<database>(?:[^`]|``)+)`\.`(?P<routine>(?:[^`]|``)+)` TO .*?(?P<option>WITH GRANT OPTION)?"
)
_WITH_GRANT: Final = re.compile(r"WITH\s+GRANT\s+OPTION", re.I)
VARIABLES_OF_GRANTS: Final = ("lower_case_table_names", "partial_revokes")
"""The variables that say how a server reads the names in grants."""
ALL: Final = "ALL PRIVILEGES"
GRANT_OPTION: Final = "GRANT OPTION"
EVERYWHERE: Final = "*.*"
_WILDCARD: Final = re.compile("[_%]")
_SPECIAL: Final = re.compile(r"([_%\\])")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
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
STATE: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "TRIGGER")
"""On binlane's own schema. Triggers are shown only to who has the last one, and none may be there."""
COPIES: Final = ("DROP",)
"""There, too, for a window that keeps copies of temporary tables."""
ACCOUNTS: Final = ("CREATE USER", GRANT_OPTION)


class Grant(NamedTuple):
    """One line of SHOW GRANTS."""

    database: str | None
    """A LIKE pattern; None is everywhere."""
    table: str | None
    privileges: frozenset[str]
    account: str = ""
    """Who holds it: the account, or on MariaDB one of its roles."""


@dataclass(frozen=True)
class Grants:
    """Everything that an account was granted, and what was taken back (MySQL's partial revokes)."""

    granted: tuple[Grant, ...]
    revoked: tuple[Grant, ...] = ()
    has_wildcards: bool = True
    r"""``_``, ``%`` and ``\`` have a meaning in a database's name; not with partial_revokes (tried on MySQL 9.7)."""
    ignores_case: bool = True
    """Of names of databases and tables: not with ``lower_case_table_names = 0``."""

    def missing(self, needed: Iterable[str], database: str | None = None) -> tuple[str, ...]:
        """Which of ``needed`` the account lacks: on every database (None), or on one as a whole."""
        return tuple(name for name in needed if not self._holds(name, database))

    def _holds(self, name: str, database: str | None) -> bool:
        return not self.takes_back(name, database) and any(_gives(one, name) for one in self.on(database))

    def takes_back(self, name: str, database: str | None) -> bool:
        """Whether a privilege was taken back on a database, or (None) on any that is not the server's own."""
        return any(
            _gives(one, name)
            and (one.database not in SYSTEM_DATABASES if database is None else self.same(one.database, database))
            for one in self.revoked
        )

    def on(self, database: str | None) -> Iterator[Grant]:
        """The grants on all databases, and those on one as a whole.

        Of several that name a database, a server takes the most exact one of each account alone: GRANT SELECT on
        ``shop%`` gives nothing on ``shop_a`` beside GRANT INSERT on that.
        """
        named, patterns = self._places
        yield from named.get(None, ())
        if database is not None:
            exact = named.get(self.letter_case.name(database), ())
            yield from exact
            by_name = {grant.account for grant in exact}
            found = [grant for pattern, grant in patterns if pattern.fullmatch(self.letter_case.name(database))]
            for account in dict.fromkeys(grant.account for grant in found):
                if account not in by_name:
                    yield _deciding([grant for grant in found if grant.account == account])

    def shows(self, key: TableKey) -> bool:
        """Whether the account may read all columns of a table: a server shows nobody's others."""
        return not self.missing(("SELECT",), key.database) or any(
            _gives(grant, "SELECT") and self.same(grant.table, key.table) and self.same(grant.database, key.database)
            for grant in self.granted
            if grant.table is not None
        )

    def covers(self, scope: str) -> bool:
        """Whether SELECT was granted on a scope as it is spelled (``scope_of``), with its pattern, or on everything."""
        return not self.missing(("SELECT",)) or any(
            _gives(grant, "SELECT") and f"{identifier(grant.database or '')}.*" == scope
            for grant in self.granted
            if grant.table is None
        )

    def same(self, one: str | None, other: str | None) -> bool:
        """Whether two names of databases or tables are one."""
        return one is not None and other is not None and self.letter_case.name(one) == self.letter_case.name(other)

    def unescaped(self, database: str) -> str:
        """A database as GRANT names it, without the backslashes before what would be a wildcard."""
        return _ESCAPE.sub(r"\1", database) if self.has_wildcards else database

    @property
    def letter_case(self) -> LetterCase:
        """How the server compares names of databases and tables."""
        return LetterCase(self.ignores_case)

    @cached_property
    def _places(self) -> tuple[dict[str | None, list[Grant]], list[tuple[re.Pattern[str], Grant]]]:
        """By name, where there is no wildcard in it; and by pattern."""
        named: dict[str | None, list[Grant]] = {}
        patterns = []
        for grant in self.granted:
            if grant.table is not None:
                continue
            if grant.database is None:
                named.setdefault(None, []).append(grant)
            elif self.has_wildcards and _WILDCARD.search(_ESCAPE.sub("", grant.database)):
                patterns.append((_expression(self.letter_case.name(grant.database)), grant))
            else:
                named.setdefault(self.letter_case.name(self.unescaped(grant.database)), []).append(grant)
        return named, patterns


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


def scope_of(database: str | None, *, has_wildcards: bool = True) -> str:
    """How a GRANT names a database, whose ``_`` and ``%`` would be wildcards (``Grants.has_wildcards``); None:
    everywhere."""
    if database is None:
        return EVERYWHERE
    return f"{identifier(_SPECIAL.sub(_ESCAPED, database) if has_wildcards else database)}.*"


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


class Revocation(NamedTuple):
    """A REVOKE statement that takes a part of what was granted on all databases back (MySQL's partial revokes)."""

    names: tuple[str, ...]
    scope: str
    """Of ``scope_of``."""
    account: str
    """``user@host``."""

    def __str__(self) -> str:
        user, _, host = self.account.rpartition("@")
        return f"REVOKE {', '.join(self.names)} ON {self.scope} FROM {quoted(user)}@{quoted(host)}"


def held_on(grants: Grants, name: str, database: str, table: str) -> bool:
    """Whether the account holds a privilege on a database (as a GRANT names it; "" for all) or a table."""
    unescaped = grants.unescaped(database)
    if database and grants.takes_back(name, unescaped):
        return False
    if any(_gives(grant, name) for grant in grants.on(database or None)):
        return True
    return any(
        _gives(grant, name) and (grant.table is None or (table != "" and grants.same(grant.table, table)))
        for grant in grants.granted
        if grants.same(grant.database, database) or grants.same(grant.database, unescaped)
    )


def on_column(name: str, column: str) -> str:
    """A privilege on one column of a table, as ``Grant.privileges`` has it and GRANT takes it."""
    return f"{name} ({identifier(column.lower())})"


def read_grants(connection: Connection) -> Grants:
    """The grants of the account that this connection uses."""
    lines = [str(row[0]) for row in connection.execute(text("SHOW GRANTS"))]
    return parse_grants(lines, global_variables(connection, VARIABLES_OF_GRANTS))


def parse_grants(lines: Sequence[str], variables: Mapping[str, str] = MappingProxyType({})) -> Grants:
    """Read SHOW GRANTS. Lines that grant a role, a proxy or a routine give no privilege on databases.

    ``variables``: the server's; without them names are compared as most servers do.
    """
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
        if match["option"] is not None and GRANT_OPTION in match["option"]:
            privileges.add(GRANT_OPTION)
        scope = (None if match[part] == "*" else match[part][1:-1].replace("``", "`") for part in ("database", "table"))
        found[match["verb"]].append(Grant(next(scope), next(scope), frozenset(privileges), match["account"]))
    return Grants(
        tuple(found["GRANT"]), tuple(found["REVOKE"]),
        has_wildcards=variables.get("partial_revokes", "OFF") != "ON",
        ignores_case=variables.get("lower_case_table_names", "1") != "0",
    )  # fmt: skip


def roles_to_grant(lines: Iterable[str]) -> frozenset[str]:
    """``user@host``, in lower case, of MySQL's roles that SHOW GRANTS names with the ADMIN OPTION."""
    matches = (match for line in lines if (match := _ROLE.fullmatch(line)) is not None and " ON " not in line)
    return frozenset(
        spelled(each).lower()
        for match in matches
        if match["admin"] is not None
        for each in _ROLES.finditer(match["roles"])
    )


def proxies_to_grant(lines: Iterable[str]) -> tuple[str, ...]:
    """``user@host`` of each account that SHOW GRANTS names as a PROXY to pass on."""
    return tuple(
        spelled(match)
        for line in lines
        if (match := _PROXY.match(line)) is not None and _WITH_GRANT.search(line, match.end()) is not None
    )


def routine_grants(lines: Iterable[str], letters: LetterCase) -> dict[tuple[str, str], frozenset[str]]:
    """Database and name of each routine that SHOW GRANTS names, as the server compares them, with the privileges on
    it."""
    return {
        (letters.name(match["database"]), folded_name(match["routine"])): frozenset(
            {*match["names"].split(", "), *((GRANT_OPTION,) if match["option"] else ())}
        )
        for line in lines
        if (match := _ROUTINE.fullmatch(line)) is not None
    }


_WITHOUT_SUPER: Final = (9, 0, 0)


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
    # 9.7 takes SUPER for most variables of a session, and not for max_error_count and innodb_strict_mode
    supers = ("SUPER",) if version < _WITHOUT_SUPER else ()
    needs = (
        Need("BINLOG_ADMIN", ("SUPER",), "BINLOG statements"),
        Need(session, ("SYSTEM_VARIABLES_ADMIN", *supers), "the session context of statements"),
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


def _gives(grant: Grant, name: str) -> bool:
    # ALL PRIVILEGES is printed apart from the right to pass them on
    return name in grant.privileges or (ALL in grant.privileges and name != GRANT_OPTION)


def _deciding(grants: Sequence[Grant]) -> Grant:
    """The grant that a server takes of several patterns that match; what all have of those between which servers differ
    (tried on MariaDB 10.11 and MySQL 9.7)."""
    best = [one for one in grants if not any(_is_more_exact(other, one) for other in grants)]
    if len(best) == 1:
        return best[0]
    names = frozenset[str]().union(*(one.privileges for one in best))
    return best[0]._replace(privileges=frozenset(name for name in names if all(_gives(one, name) for one in best)))


def _is_more_exact(one: Grant, other: Grant) -> bool:
    """MySQL goes by the letters before the first wildcard; MariaDB first by whether there is a ``%``."""
    ours, theirs = (_ESCAPE.sub("x", each.database or "") for each in (one, other))
    before = [len(_WILDCARD.split(text)[0]) for text in (ours, theirs)]
    return before[0] > before[1] and ("%" in theirs or "%" not in ours)


def _expression(pattern: str) -> re.Pattern[str]:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    expression = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.compile(expression, re.DOTALL)
