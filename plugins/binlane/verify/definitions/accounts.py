"""Compares accounts and roles: options, password hashes and privileges. No hash is printed or stored.

Between versions and families accounts have other options and password plugins, and privileges other lists: there what
all of them have with one meaning is compared (``account_options``), and the roles.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Final

import pymysql

from binlane.binlog.types.literals import identifier, quoted
from binlane.errors import SourceError, TargetError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SchemaObject
from binlane.servers.account_fingerprints import SERVERS_OWN
from binlane.sql.account_lines import About, ShownAccounts, foreign_line, unread_password
from binlane.verify.definitions.account_options import (
    AccountOptions,
    differing_options,
    options_of_one,
    password_difference,
    password_not_compared,
)
from binlane.verify.definitions.mend import Mend, nothing
from binlane.verify.rows.sides import Side

KIND: Final = "account "
"""Begin of an account's kind; the rest is its name, as SQL gives it: longer than a name of a table may be."""
_HASH: Final = re.compile(r"\b(AS|USING|PASSWORD) ('(?:[^'\\]|''|\\.)*'|0x[0-9A-Fa-f]+)", re.DOTALL)
_IDENTIFIED: Final = re.compile(
    r"CREATE USER (?P<name>\S+) IDENTIFIED WITH '\w+' AS HASH (?P<rest>REQUIRE .*)", re.DOTALL
)
_GRANT: Final = re.compile(r"GRANT (?P<what>.*?)(?: ON (?P<on>.*))? TO (?P<to>.*?)(?P<option> WITH .*)?", re.DOTALL)
_SECRET: Final = "the statement holds a password hash, which is not printed: see SHOW CREATE USER on the source"
_OPERATORS: Final = "privileges are for an operator to decide"
_OPERATORS_OPTIONS: Final = "options of accounts are for an operator to decide"
_PLUGINS: Final = (
    "SELECT LOWER(plugin_name) FROM information_schema.plugins WHERE plugin_type = 'AUTHENTICATION' "
    "AND plugin_status = 'ACTIVE'"
)
_DEFAULT_ROLE: Final = re.compile(r"SET DEFAULT ROLE (`(?:[^`]|``)+`) FOR ")


@dataclass(frozen=True, slots=True)
class Account:
    """An account or a role, without its password hashes."""

    definition: str
    """SHOW CREATE USER; empty for a role of MariaDB."""
    hashes: tuple[str, ...]
    """For comparison only: never in a message."""
    grants: Mapping[str, tuple[str, ...]]
    """By object: the statements of SHOW GRANTS."""
    options: AccountOptions
    spelled: str = ""
    """As the server's own statements name it."""

    @property
    def default_roles(self) -> frozenset[str]:
        """Names of the roles that are active after a login."""
        texts = (self.options.options.get("DEFAULT ROLE", ""), *(_DEFAULT_ROLE.findall(" ".join(self.grants))))
        return frozenset(role.partition("@")[0] for text in texts for role in _ROLE.findall(text))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an account that differs."""

    account: SchemaObject
    what: str
    source: str | None
    target: str | None
    mend: Mend


@dataclass(frozen=True)
class Accounts:
    """Compares the accounts of source and target."""

    sides: tuple[Side, Side]
    flavors: tuple[Flavor, Flavor]
    exact: bool
    """Whether both servers have the same version, and no database is renamed."""
    same_names: bool = True
    """Whether no database is renamed: GRANT names them."""
    of_both: bool = False
    """Whether those that the source alone has are left out, too: the channel's filter ignores accounts."""
    unseen: set[str] = field(default_factory=set, kw_only=True)
    """Gets what was not compared, with the reason."""
    _unread: list[str] = field(default_factory=list, kw_only=True)
    _left_out: set[str] = field(default_factory=set, kw_only=True)
    """Accounts of either server whose password is shown without escapes."""

    @property
    def is_unread(self) -> bool:
        """Whether a server has not shown its accounts to ``differing``."""
        return bool(self._unread)

    def differing(self) -> Iterator[Part]:
        """The parts that differ. Accounts that only the target has are not compared."""
        read = [self._read(side, flavor) for side, flavor in zip(self.sides, self.flavors, strict=True)]
        ours, theirs = read
        if ours is None or theirs is None:
            return
        for name in self._left_out:
            self.unseen.add(unread_password(name))
            ours.pop(name, None)
            theirs.pop(name, None)
        if not self.exact:
            both = _roles_beside_accounts(ours) | _roles_beside_accounts(theirs)
            ours, theirs = _as_accounts(ours, both), _as_accounts(theirs, both)
        for name in sorted(theirs.keys() - ours.keys()):
            self.unseen.add(f"account {name}: only the target has it")
        for name, account in sorted(ours.items()):
            obj = SchemaObject(f"{KIND}{name}", "", "")
            if name not in theirs and self.of_both:
                self.unseen.add(f"account {name}: only the source has it, and the channel's filter ignores accounts")
            elif name not in theirs:
                yield Part(obj, "", "there", None, nothing(_SECRET))
            elif self.exact:
                yield from _parts(obj, name, account, theirs[name])
            else:
                yield from self._options(obj, name, account, theirs[name])
                if self.same_names:
                    yield from _shared_parts(obj, account, theirs[name])
                    self.unseen.update(_unshared(name, account, theirs[name]))
                else:
                    self.unseen.add(f"account {name}: privileges name the databases that are renamed")

    def _options(self, obj: SchemaObject, name: str, ours: Account, theirs: Account) -> Iterator[Part]:
        """Options and password, as far as both servers can tell them; what they cannot is named."""
        if not (ours.definition and theirs.definition):
            # a role of MariaDB, which has no options; MySQL's are accounts that are locked
            kinds = ["a role" if _is_role(each) else "an account that may log in" for each in (ours, theirs)]
            if kinds[0] != kinds[1]:
                yield Part(obj, "kind", kinds[0], kinds[1], nothing(_OPERATORS_OPTIONS))
            return
        same_family = self.flavors[0] is self.flavors[1]
        options = ours.options, theirs.options
        for one in differing_options(*options, theirs.spelled, same_family=same_family):
            mend = Mend((one.statement,) if one.statement else (), _OPERATORS_OPTIONS)
            yield Part(obj, one.what, one.source, one.target, mend)
        if not same_family:
            for side, each in zip(("source", "target"), options, strict=True):
                if given := options_of_one(each):
                    self.unseen.add(f"account {name}: {given} of the {side}: the other family has no such option")
        if (password := password_difference(*options)) is not None:
            yield Part(obj, password.what, password.source, password.target, nothing(_SECRET))
        if why := password_not_compared(*options, self._plugins_of_target):
            self.unseen.add(f"password of account {name}: {why}")
        if ours.default_roles != theirs.default_roles:
            yield _other_default_roles(obj, ours, theirs, self.flavors[1])

    @cached_property
    def _plugins_of_target(self) -> frozenset[str]:
        return frozenset(str(plugin) for (plugin,) in self.sides[1].texts(_PLUGINS))

    def _read(self, side: Side, flavor: Flavor) -> dict[str, Account] | None:
        try:
            return dict(_accounts(side, flavor, self._left_out))
        except (SourceError, pymysql.err.MySQLError) as exc:
            cause = exc.__cause__ if isinstance(exc, SourceError) else exc
            if cause is None or cause.args[0] not in _DENIED:
                raise
            server = "source" if side.is_source else "target"
            self.unseen.add(f"accounts: the {server}'s account may not read them: {cause.args[1]}")
            self._unread.append(server)
            return None


def _accounts(side: Side, flavor: Flavor, left_out: set[str]) -> Iterator[tuple[str, Account]]:
    """All accounts but the server's own and the session's. ``left_out`` gets those whose lines cannot be read."""
    if flavor is Flavor.MYSQL:
        side.execute("SET SESSION print_identified_with_as_hex = ON")
    [(own,)] = side.texts("SELECT CURRENT_USER()")
    is_role = "is_role = 'Y'" if flavor is Flavor.MARIADB else "0"
    rows = side.texts(f"SELECT user, host, {is_role} FROM mysql.user ORDER BY user, host")
    lines_of = ShownAccounts(flavor, {user or "" for user, _, role in rows if role == "1"})
    for user, host, role in rows:
        if user in SERVERS_OWN or f"{user}@{host}" == own:
            continue
        asked = user or "", None if role == "1" else host or ""
        name = quoted(user or "") if role == "1" else f"{quoted(user or '')}@{quoted(host or '')}"
        created = "" if role == "1" else side.texts(f"SHOW CREATE USER {name}")[0][0] or ""
        shown = identifier(user or "") if role == "1" else name
        lines = [line or "" for (line,) in side.texts(f"SHOW GRANTS FOR {shown}")]
        about = {line: lines_of.about(line, *asked) for line in (*([created] if created else []), *lines)}
        for line, whom in about.items():
            if whom is None:
                raise (SourceError if side.is_source else TargetError)(foreign_line(name, line))
        if About.UNREAD in about.values():
            left_out.add(name)
            continue
        grants: dict[str, list[str]] = defaultdict(list)
        # a role's privileges are compared with the role, and each target's own with nothing
        for line in (line for line in lines if about[line] is About.ACCOUNT):
            text = re.sub(r" IDENTIFIED .*?(?= WITH GRANT| REQUIRE|$)", "", _HASH.sub(r"\1 HASH", line))
            found = _GRANT.fullmatch(text)
            grants[(found["on"] or "roles") if found else text].append(text)
        hashes = tuple(match[2] for match in _HASH.finditer(created))
        by_object = {on: tuple(sorted(texts)) for on, texts in grants.items()}
        yield name, Account(_HASH.sub(r"\1 HASH", created), hashes, by_object, AccountOptions(created), shown)


def _is_role(account: Account) -> bool:
    return not account.definition or account.options.options.get("ACCOUNT") == "LOCK"


def _other_default_roles(obj: SchemaObject, ours: Account, theirs: Account, target: Flavor) -> Part:
    texts = (", ".join(sorted(each.default_roles)) or None for each in (ours, theirs))
    roles = ", ".join(sorted(ours.default_roles)) or "NONE"
    statement = f"SET DEFAULT ROLE {roles} {'FOR' if target is Flavor.MARIADB else 'TO'} {theirs.spelled}"
    return Part(obj, "default roles", next(texts), next(texts), Mend((statement,), _OPERATORS_OPTIONS))


def _parts(obj: SchemaObject, name: str, ours: Account, theirs: Account) -> Iterator[Part]:
    if ours.definition != theirs.definition:
        found = _IDENTIFIED.fullmatch(ours.definition)
        other = _IDENTIFIED.fullmatch(theirs.definition)
        alter = found and other and found[0].partition(" REQUIRE ")[0] == other[0].partition(" REQUIRE ")[0]
        mend = Mend((f"ALTER USER {name} {found['rest']}",), _OPERATORS) if alter and found else nothing(_SECRET)
        yield Part(obj, "options", ours.definition, theirs.definition, mend)
    elif ours.hashes != theirs.hashes:
        yield Part(obj, "password hash", "one", "another one", nothing(_SECRET))
    for on in sorted(ours.grants.keys() | theirs.grants.keys()):
        mine, others = ours.grants.get(on, ()), theirs.grants.get(on, ())
        if mine != others:
            statements = (*(each for line in others for each in _revoked(line)), *mine)
            texts = ("; ".join(lines) or None for lines in (mine, others))
            yield Part(obj, f"privileges on {on}", next(texts), next(texts), Mend(statements, _OPERATORS))


def _roles_beside_accounts(found: Mapping[str, Account]) -> frozenset[str]:
    """Roles of a MariaDB server that has an account of the same name with the host ``%``, too."""
    return frozenset(name for name, each in found.items() if not each.definition and f"{name}@'%'" in found)


def _as_accounts(found: Mapping[str, Account], both: Collection[str]) -> dict[str, Account]:
    """By names that both families have: a role of MariaDB has no host, one of MySQL ``%``. A role of ``both`` keeps its
    own, since a server of the other family can have only one of the two."""
    return {name if account.definition or name in both else f"{name}@'%'": account for name, account in found.items()}


def _shared_parts(obj: SchemaObject, ours: Account, theirs: Account) -> Iterator[Part]:
    """The privileges of every version and family that one of the accounts alone has, object by object."""
    mine, others = (_shared(account) for account in (ours, theirs))
    for on in sorted(mine.keys() | others.keys()):
        given, found = mine.get(on, frozenset()), others.get(on, frozenset())
        if given == found:
            continue
        statements = [*_changed("REVOKE", found - given, on, "FROM", theirs.spelled)]
        statements += _changed("GRANT", given - found, on, "TO", theirs.spelled)
        texts = (", ".join(sorted(names)) or None for names in (given, found))
        yield Part(obj, f"privileges on {on}", next(texts), next(texts), Mend(tuple(statements), _OPERATORS))


def _unshared(name: str, ours: Account, theirs: Account) -> Iterator[str]:
    """Privileges that one of the accounts has and that are not compared, since not every server has them, or means the
    same by them."""
    found = [
        {on: {each for line in lines for each in _privileges(line)} for on, lines in side.grants.items()}
        for side in (ours, theirs)
    ]
    for on in sorted(found[0].keys() | found[1].keys()):
        mine, others = (side.get(on, set[str]()) - _EVERYWHERE - {_OPTION} for side in found)
        parts = (("source", mine - others), ("target", others - mine))
        if told := [f"{side} {', '.join(sorted(names))}" for side, names in parts if names]:
            yield f"account {name}: privileges on {on} that not all versions and families have: {'; '.join(told)}"


def _privileges(line: str) -> Iterator[str]:
    grant = _GRANT.fullmatch(line)
    if grant is not None and grant["on"] is not None and not grant["what"].startswith(("ALL PRIVILEGES", "USAGE")):
        yield from (each.partition(" (")[0] for each in _ANY_PRIVILEGE.findall(grant["what"]) if each != "PROXY")


def _shared(account: Account) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for line in (line for lines in account.grants.values() for line in lines):
        grant = _GRANT.fullmatch(line)
        if grant is None:
            continue
        on, what = grant["on"] or _ROLES, grant["what"]
        if on == _ROLES:
            found[on] |= {role.partition("@")[0] for role in _ROLE.findall(what)}
        elif what == "PROXY":
            # MariaDB quotes accounts as strings
            found[on.replace("'", "`")].add(what)
        else:
            level = _LEVELS[1 if on.endswith(".*") else 2] if on != "*.*" else _LEVELS[0]
            level = _OF_ROUTINES if _ROUTINE.match(on) else level
            names = level if what.startswith("ALL PRIVILEGES") else set(_PRIVILEGE.findall(what))
            found[on] |= {name for name in names if name.partition(" (")[0] in level}
            found[on] |= {_OPTION} if _OPTION in (grant["option"] or "") else set()
    return {on: frozenset(names) for on, names in found.items() if names}


def _changed(verb: str, names: Collection[str], on: str, preposition: str, account: str) -> Iterator[str]:
    if not names:
        return
    where = "" if on == _ROLES else f" ON {on}"
    option = " WITH GRANT OPTION" if verb == "GRANT" and _OPTION in names else ""
    listed = sorted(name for name in names if not (verb == "GRANT" and name == _OPTION)) or ["USAGE"]
    yield f"{verb} {', '.join(listed)}{where} {preposition} {account}{option}"


def _revoked(grant: str) -> Sequence[str]:
    """The statements that take back a line of SHOW GRANTS; none for USAGE, which is no privilege."""
    found = _GRANT.fullmatch(grant)
    if found is None or found["what"] == "USAGE":
        return ()
    on = f" ON {found['on']}" if found["on"] else ""
    revoked = [f"REVOKE {found['what']}{on} FROM {found['to']}"]
    if on and "GRANT OPTION" in (found["option"] or ""):
        revoked.append(f"REVOKE GRANT OPTION{on} FROM {found['to']}")
    return revoked


_ROLES: Final = "roles"
_OPTION: Final = "GRANT OPTION"
_ROLE: Final = re.compile(r"`(?:[^`]|``)+`(?:@`(?:[^`]|``)+`)?")
_ROUTINE: Final = re.compile(r"(?:FUNCTION|PROCEDURE) ")
_PRIVILEGE: Final = re.compile(r"[A-Z][A-Z ]*[A-Z](?: \((?:`[^`]*`|[^`)])*\))?")
_ANY_PRIVILEGE: Final = re.compile(_PRIVILEGE.pattern.replace("A-Z ", "A-Z_ "))
_OF_TABLES: Final = frozenset(
    {
        *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "CREATE VIEW"),
        *("SHOW VIEW", "TRIGGER"),
    }
)
_OF_ROUTINES: Final = frozenset({"EXECUTE", "ALTER ROUTINE"})
_OF_DATABASES: Final = frozenset(
    {*_OF_TABLES, *_OF_ROUTINES, "CREATE TEMPORARY TABLES", "LOCK TABLES", "CREATE ROUTINE", "EVENT"}
)
_EVERYWHERE: Final = frozenset(
    {
        *(*_OF_DATABASES, "RELOAD", "SHUTDOWN", "PROCESS", "FILE", "SHOW DATABASES", "REPLICATION SLAVE"),
        *("CREATE USER", "CREATE TABLESPACE"),
    }
)
_LEVELS: Final = (_EVERYWHERE, _OF_DATABASES, _OF_TABLES)
"""What ALL PRIVILEGES means on all objects, a database, a table: the privileges of all versions of both families."""
_DENIED: Final[Collection[int]] = (1044, 1142, 1143, 1227, 1410)
