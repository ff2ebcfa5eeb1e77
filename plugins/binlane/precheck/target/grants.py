"""May the account pass on the privileges that the window's GRANTs name, and make what is the server's own?

Without the right to, the server refuses the statement when its turn has come (1044, 1045, 1142, 1227, 1698). What takes
which privilege: tried on MySQL 9.7 and MariaDB 10.11; since when: the release notes of MySQL 8.0 and MariaDB 10.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from sqlalchemy import Connection

from binlane.binlog.types.literals import quoted
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.precheck.account.privileges import (
    ALL,
    EVERYWHERE,
    GRANT_OPTION,
    Grants,
    Order,
    held_on,
    on_column,
    scope_of,
)
from binlane.precheck.situation.facts import Target
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.precheck.target.definers import setters
from binlane.schema.compare import Severity
from binlane.schema.letter_case import LetterCase
from binlane.servers.variables import global_variables
from binlane.sql.grant_scope import ROUTINES, GrantScope, scope_of_name
from binlane.sql.logged_statement import LoggedText, index_of, split
from binlane.sql.parse.lexer import Token
from binlane.sql.program_names import folded_name

_Version = tuple[int, int, int]
_DYNAMIC: Final = re.compile(r"[A-Z]+(?:_[A-Z]+)+")


_TODO_UNKNOWN: Final = (
    "REVOKE it from the account on the source, and grant what the target has in its place (for SET_USER_ID of MySQL "
    "before 8.4, SET_ANY_DEFINER and ALLOW_NONEXISTENT_DEFINER), or load the component there that has it; leave out a "
    "statement that is logged (docs/control.md)"
)
_WILDCARD: Final = re.compile(r"(?<!\\)[_%]")
"""A wildcard in the name of a database."""
_PARTIAL: Final = "partial_revokes"


@dataclass(frozen=True, slots=True)
class _Account:
    flavor: Flavor
    number: _Version
    own: str
    """``user@host``."""
    grants: Grants
    administered: set[str]
    """Roles that it may grant, as ``_role`` has them: at first, and behind the statements that have been looked at."""
    proxied: tuple[str, ...] = ()
    """``Target.granted_proxies``."""
    others: dict[str, str] = field(default_factory=dict)
    """Roles that the window gives to another administrator, in lower case, and the statement that does."""
    roles: set[str] = field(default_factory=set)
    """The roles that are there, in lower case; without the right to read them, those that the window makes."""
    routines: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    """``Target.routine_grants``."""
    dynamic: Callable[[], frozenset[str]] = frozenset
    """``Target.dynamic_privileges``."""
    made: set[tuple[str, str]] = field(default_factory=set)
    """Routines that the window makes: the server gives their maker its privileges on them, without GRANT OPTION."""

    @classmethod
    def of(cls, target: Target) -> _Account:
        """The account before the window's first statement."""
        return cls(
            target.flavor, target.number, target.account, target.grants, set(target.granted_roles),
            target.granted_proxies, roles=set(target.roles), routines=target.routine_grants,
            dynamic=lambda: target.dynamic_privileges,
        )  # fmt: skip


def check_grants(situation: Situation) -> Iterator[Finding]:
    """Account and server-wide statements that the target's account may not run, or that mean something else there."""
    yield from lacking_for_grants(situation.target, situation.asked.texts)
    if (source := situation.source) is not None:
        asked = situation.asked.texts
        yield from partial_revokes(situation.target, lambda: source.ask(_has_partial_revokes), asked)


def _has_partial_revokes(connection: Connection) -> bool:
    return global_variables(connection, (_PARTIAL,)).get(_PARTIAL) == "ON"


def partial_revokes(
    target: Target, is_on_source: Callable[[], bool], statements: Iterable[LoggedText]
) -> Iterator[Finding]:
    """Statements on a whole database between MySQL servers of which one has ``partial_revokes``: there a REVOKE takes a
    part of what an account has everywhere, and a name has no wildcards."""
    if target.flavor is not Flavor.MYSQL:
        return
    for statement, scope in _of_databases(statements):
        is_on = is_on_source()
        if is_on == target.is_on(_PARTIAL):
            return
        if (is_on and statement.words[0] == "REVOKE") or _WILDCARD.search(scope.database):
            value, other = ("ON", "OFF") if is_on else ("OFF", "ON")
            setting = target.setting(_PARTIAL, value)
            todo = f"{setting} on the target: what the statement does depends on it"
            where = f"{statement.where}: {_PARTIAL} of the target"
            yield Finding(Severity.FATAL, where, f"{value}, as on the source", other, todo, mend=(setting,))
            return


def _of_databases(statements: Iterable[LoggedText]) -> Iterator[tuple[LoggedText, GrantScope]]:
    """The statements that give or take privileges on a whole database."""
    for statement in statements:
        words = statement.words
        if not words or words[0] not in ("GRANT", "REVOKE") or (on := index_of(words, "ON")) is None:
            continue
        scope = scope_of_name(statement.tokens[on + 1 : index_of(words, "TO", "FROM")], statement.context.database)
        if scope is not None and scope.database and not scope.table:
            yield statement, scope


def lacking_for_grants(target: Target, statements: Iterable[LoggedText]) -> Iterator[Finding]:
    """The same for any statements, which run in this order."""
    account: _Account | None = None
    for statement in statements:
        check = _CHECKS.get(statement.words[0]) if statement.tokens else None
        if check is not None:
            account = _Account.of(target) if account is None else account
            yield from check(statement, account)


def _passed_on(statement: LoggedText, account: _Account) -> Iterator[Finding]:
    tokens, words = statement.tokens, (*statement.words, "", "")
    end = index_of(words, "TO", "FROM")
    on = index_of(words[:end], "ON")
    begin = 3 if words[1:3] == ("IF", "EXISTS") else 1
    if on is None:
        if end is not None and words[begin] != "ALL":  # REVOKE ALL takes CREATE USER, which is asked for anyway
            yield from _roles(statement, account, begin, end)
        return
    if words[begin] == "PROXY":
        yield from _proxy(statement, account, on + 1)
        return
    names = [name for each in split(tokens[begin:on]) for name in _names(each, account)]
    dynamic = {name for name in names if account.flavor is Flavor.MYSQL and _DYNAMIC.fullmatch(name)}
    if dynamic and (unknown := sorted(dynamic - account.dynamic())):
        named = ", ".join(unknown)
        yield Finding(
            Severity.FATAL, statement.where, f"{named}, a privilege of the target", "a server without it (1149)",
            _TODO_UNKNOWN,
        )  # fmt: skip
        names = [name for name in names if name not in unknown]
    if words[on + 1] in ROUTINES:
        scope = scope_of_name(tokens[on + 3 if words[on + 2] == "BODY" else on + 2 : end], statement.context.database)
        lacking = [] if scope is None else [name for name in names if not _may_pass_on_routine(name, scope, account)]
        if scope is not None and lacking:
            whole = scope_of(scope.database, has_wildcards=account.grants.has_wildcards)
            todo = (
                f"GRANT {', '.join(lacking)} ON {whole} TO the account WITH GRANT OPTION: an account can grant and "
                "revoke only the privileges that it has (1370)"
            )
            yield _not_passed_on(statement, account, lacking, f"{words[on + 1]} {scope}", todo, whole)
        return
    scope = scope_of_name(tokens[on + 2 if words[on + 1] == "TABLE" else on + 1 : end], statement.context.database)
    if scope is None:
        return
    lacking = [name for name in dict.fromkeys(names) if not _may_pass_on(name, scope, account)]
    if lacking:
        todo = (
            f"GRANT {', '.join(lacking)} ON {scope} TO the account WITH GRANT OPTION: an account can grant and revoke "
            "only the privileges that it has (1044, 1142, 1227)"
        )
        yield _not_passed_on(statement, account, lacking, str(scope), todo)


def _not_passed_on(
    statement: LoggedText, account: _Account, lacking: Sequence[str], scope: str, todo: str, on: str | None = None
) -> Finding:
    """``on``: where the GRANT gives it, if that is not the scope."""
    named = ", ".join(lacking)
    found = f"an account without {named} there, or without the GRANT OPTION"
    mend = (Order(tuple(lacking), scope if on is None else on, account.own, with_option=True),)
    return Finding(Severity.FATAL, statement.where, f"{named} on {scope}, to pass on", found, todo, mend=mend)


def _names(tokens: Sequence[Token], account: _Account) -> list[str]:
    """A privilege's name, as SHOW GRANTS spells it; for columns that of each (``on_column``)."""
    columns = index_of((token.text for token in tokens), "(")
    name = " ".join(token.text.upper() for token in tokens[:columns])
    if account.flavor is Flavor.MARIADB and account.number >= (10, 5, 2):
        name = _SYNONYMS.get(name, name)
    if columns is None:
        return [ALL if name == "ALL" else name]
    return [on_column(name, token.text) for token in tokens[columns + 1 :] if token.text not in (",", ")")]


def _may_pass_on(name: str, scope: GrantScope, account: _Account) -> bool:
    grants, everywhere = account.grants, [grant for grant in account.grants.granted if grant.database is None]
    if account.flavor is Flavor.MYSQL and _DYNAMIC.fullmatch(name):
        return any({name, GRANT_OPTION} <= grant.privileges for grant in everywhere)
    of_table = name.partition(" (")[0]
    if of_table != name:
        is_held = any(held_on(grants, each, scope.database, scope.table) for each in (of_table, name))
        return is_held and held_on(grants, GRANT_OPTION, scope.database, scope.table)
    if name == "USAGE" or name not in _KNOWN:
        return True  # the parser refuses it
    for each in _of_all(scope, account.flavor) if name == ALL else (name,):
        if not held_on(grants, each, scope.database, scope.table):
            return False
    return held_on(grants, GRANT_OPTION, scope.database, scope.table)


def _may_pass_on_routine(name: str, scope: GrantScope, account: _Account) -> bool:
    key = account.grants.letter_case.name(scope.database), folded_name(scope.table)
    own = account.routines.get(key, frozenset())

    def is_held(each: str) -> bool:
        return each in own or held_on(account.grants, each, scope.database, "")

    wanted = ("EXECUTE", "ALTER ROUTINE") if name == ALL else (name,)
    return is_held(GRANT_OPTION) and (key in account.made or name == GRANT_OPTION or all(map(is_held, wanted)))


def _of_all(scope: GrantScope, flavor: Flavor) -> Collection[str]:
    if scope.table:
        return _OF_TABLES
    return _OF_DATABASES if scope.database else _OF_SERVERS[flavor]


def _proxy(statement: LoggedText, account: _Account, at: int) -> Iterator[Finding]:
    proxied = statement.account(at)
    user = proxied.rpartition("@")[0]
    if proxied == account.own:
        return  # everybody makes others his own proxy
    for each in account.proxied:
        name, _, host = each.rpartition("@")
        if name in ("", user) and host in ("", "%"):
            return
    todo = f"GRANT PROXY ON {_quoted(proxied)} or ''@'%' TO the account WITH GRANT OPTION, as one that has it (1698)"
    found = "an account without it, or without the GRANT OPTION"
    mend = (f"GRANT PROXY ON {_quoted(proxied)} TO {_quoted(account.own)} WITH GRANT OPTION",)
    yield Finding(Severity.FATAL, statement.where, f"PROXY on {proxied}, to pass on", found, todo, mend=mend)


def _quoted(name: str) -> str:
    user, _, host = name.rpartition("@")
    return f"{quoted(user)}@{quoted(host or '%')}"


def _named_roles(statement: LoggedText, begin: int, end: int | None, flavor: Flavor) -> list[str]:
    """MariaDB's by their name, MySQL's as ``user@host``."""
    end = len(statement.tokens) if end is None else end
    commas = (at + 1 for at in range(begin, end) if statement.tokens[at].text == ",")
    accounts = [statement.account(at) for at in (begin, *commas)] if begin < end else []
    return [each.rpartition("@")[0] if flavor is Flavor.MARIADB else each for each in accounts]


def _roles(statement: LoggedText, account: _Account, begin: int, end: int) -> Iterator[Finding]:
    if statement.words[begin : begin + 3] == ("ADMIN", "OPTION", "FOR"):
        begin += 3
    names = _named_roles(statement, begin, end, account.flavor)
    able = ("ROLE_ADMIN", "SUPER")
    if account.flavor is Flavor.MYSQL and len(account.grants.missing(able)) < len(able):
        return
    # without a host it is any host's, and shorter to read
    lacking = [name.removesuffix("@%") for name in names if name.lower() not in account.administered]
    if lacking:
        other = "GRANT ROLE_ADMIN ON *.* TO the account, or " if account.flavor is Flavor.MYSQL else ""
        todo = f"{other}GRANT {', '.join(lacking)} TO the account WITH ADMIN OPTION: without it the server refuses that"
        found = "an account without the ADMIN OPTION"
        made = next((account.others[name.lower()] for name in lacking if name.lower() in account.others), None)
        if made is not None:
            found += f", since {made} makes another account its administrator"
            todo = (
                "end a window before that (--until with its GTID), make the role on the target by hand, with the "
                "account and that one as its administrators, and leave the statement out (binlane skip)"
            )
        mend = (Order(("ROLE_ADMIN",), EVERYWHERE, account.own),) if account.flavor is Flavor.MYSQL else ()
        yield Finding(Severity.FATAL, statement.where, f"{', '.join(lacking)}, to pass on", found, todo, mend=mend)
    elif statement.words[0] == "REVOKE" and account.own in statement.accounts:
        account.administered.difference_update(name.lower() for name in names)


def _made_roles(statement: LoggedText, account: _Account) -> Iterator[Finding]:
    """CREATE ROLE and DROP ROLE: on MariaDB whom WITH ADMIN names may grant it, and its maker if it names nobody."""
    words = statement.words
    begin = words.index("ROLE") + 1
    is_conditional = words[begin : begin + 1] == ("IF",)
    while begin < len(words) and words[begin] in ("IF", "NOT", "EXISTS"):
        begin += 1
    end = index_of(words, "WITH")
    names = [name.lower() for name in _named_roles(statement, begin, end, account.flavor)]
    if words[0] == "CREATE" and is_conditional:
        names = [name for name in names if name not in account.roles]
    account.administered.difference_update(names)
    account.roles.difference_update(names)
    for name in names:
        account.others.pop(name, None)
    if words[0] != "CREATE" or account.flavor is not Flavor.MARIADB:
        return
    account.roles.update(names)
    admin = None if end is None else statement.account(end + 2)
    if admin in (None, account.own):
        account.administered.update(names)
        return
    account.others.update(dict.fromkeys(names, f"seqno {statement.seqno}"))
    needed = setters(account.flavor, account.number)
    if len(account.grants.missing(needed)) == len(needed):
        todo = f"GRANT {needed[0]} ON *.* TO the account: without it the server refuses the statement (1227)"
        expected = f"an account with {' or '.join(needed)}, as the administrator of the role is {admin}"
        mend = (Order((needed[0],), EVERYWHERE, account.own),)
        yield Finding(Severity.FATAL, statement.where, expected, "an account without it", todo, mend=mend)


def _set(statement: LoggedText, account: _Account) -> Iterator[Finding]:
    """MariaDB's SET DEFAULT ROLE of another account, which it logs with the account's name."""
    if statement.words[1:3] != ("DEFAULT", "ROLE") or account.flavor is not Flavor.MARIADB:
        return
    at = index_of(statement.words, "FOR")
    if at is not None and statement.account(at + 1) != account.own:
        yield from _needed(statement, account, "UPDATE", "mysql")


def _made_routine(statement: LoggedText, letters: LetterCase) -> Iterator[tuple[str, str]]:
    words = statement.words[:12]
    at = index_of(words, *ROUTINES, "TABLE", "VIEW", "TRIGGER", "EVENT", "DATABASE", "USER", "ROLE", "SERVER")
    if words[0] != "CREATE" or at is None or words[at] not in ROUTINES or "SONAME" in statement.words:
        return
    rest = [token for token in statement.tokens[at + 1 : at + 8] if token.upper not in ("IF", "NOT", "EXISTS", "BODY")]
    scope = scope_of_name(rest[: 3 if len(rest) > 2 and rest[1].text == "." else 1], statement.context.database)
    if scope is not None:
        yield letters.name(scope.database), folded_name(scope.table)


def _made(statement: LoggedText, account: _Account) -> Iterator[Finding]:
    account.made.update(_made_routine(statement, account.grants.letter_case))
    words = statement.words[:8]
    if "ROLE" in (words[1:2] if words[1:3] != ("OR", "REPLACE") else words[3:4]):
        yield from _made_roles(statement, account)
        return
    at = index_of(words, *_SERVERS_OWN)
    if at is None or any(word in ("TABLE", "VIEW", "USER", "PROCEDURE", "EVENT", "TRIGGER") for word in words[:at]):
        return
    kind = words[at]
    if kind == "FUNCTION":
        if "SONAME" in statement.words:
            yield from _needed(statement, account, "INSERT", "mysql")
        return
    needed = _SERVERS_OWN[kind](account.flavor, account.number)
    if needed and len(account.grants.missing(needed)) == len(needed):
        todo = f"GRANT {needed[0]} ON *.* TO the account: without it the server refuses the statement (1227)"
        expected, found = f"an account with {' or '.join(needed)}", "an account without it"
        yield Finding(Severity.FATAL, statement.where, expected, found, todo)


def _needed(statement: LoggedText, account: _Account, name: str, database: str) -> Iterator[Finding]:
    if account.grants.missing((name,), database):
        todo = f"GRANT {name} ON `{database}`.* TO the account: without it the server refuses the statement (1044)"
        expected, found = f"an account with {name} on `{database}`.*", "an account without it"
        mend = (Order((name,), scope_of(database), account.own),)
        yield Finding(Severity.FATAL, statement.where, expected, found, todo, mend=mend)


def _federated(flavor: Flavor, number: _Version) -> tuple[str, ...]:
    if flavor is Flavor.MYSQL or number < (10, 5, 2):
        return ("SUPER",)
    return ("FEDERATED ADMIN", "SUPER") if number < (11, 0, 1) else ("FEDERATED ADMIN",)


def _of_mysql(*names: str) -> Callable[[Flavor, _Version], tuple[str, ...]]:
    return lambda flavor, _: names if flavor is Flavor.MYSQL else ()


_SERVERS_OWN: Final[Mapping[str, Callable[[Flavor, _Version], tuple[str, ...]]]] = {
    "SERVER": _federated,
    "TABLESPACE": _of_mysql("CREATE TABLESPACE"),
    "RESOURCE": _of_mysql("RESOURCE_GROUP_ADMIN"),
    "SPATIAL": _of_mysql("SUPER", "CREATE_SPATIAL_REFERENCE_SYSTEM"),
    "FUNCTION": _of_mysql(),
}
_CHECKS: Final[Mapping[str, Callable[[LoggedText, _Account], Iterator[Finding]]]] = {
    "GRANT": _passed_on,
    "REVOKE": _passed_on,
    "CREATE": _made,
    "ALTER": _made,
    "DROP": _made,
    "SET": _set,
}
_OF_TABLES: Final = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "CREATE VIEW"),
    *("SHOW VIEW", "TRIGGER"),
)
_OF_DATABASES: Final = (
    *_OF_TABLES,
    *("CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "CREATE ROUTINE", "ALTER ROUTINE", "EVENT"),
)
_OF_SERVERS: Final = {
    Flavor.MARIADB: (ALL,),
    Flavor.MYSQL: (
        *_OF_DATABASES,
        *("RELOAD", "SHUTDOWN", "PROCESS", "FILE", "SHOW DATABASES", "SUPER", "REPLICATION SLAVE"),
        *("REPLICATION CLIENT", "CREATE USER", "CREATE TABLESPACE", "CREATE ROLE", "DROP ROLE"),
    ),
}
_SYNONYMS: Final = {
    "REPLICATION CLIENT": "BINLOG MONITOR",
    "REPLICATION REPLICA": "REPLICATION SLAVE",
    "REPLICATION REPLICA ADMIN": "REPLICATION SLAVE ADMIN",
    "REPLICA MONITOR": "SLAVE MONITOR",
}
"""MariaDB's other names of a privilege, and the one that SHOW GRANTS prints since 10.5.2."""
_KNOWN: Final = frozenset(
    {
        *(ALL, GRANT_OPTION),
        *_OF_SERVERS[Flavor.MYSQL],
        *("DELETE HISTORY", "BINLOG ADMIN", "BINLOG MONITOR", "BINLOG REPLAY", "CONNECTION ADMIN", "FEDERATED ADMIN"),
        *("READ_ONLY ADMIN", "REPLICATION MASTER ADMIN", "REPLICATION SLAVE ADMIN", "SLAVE MONITOR", "SET USER"),
    }
)
