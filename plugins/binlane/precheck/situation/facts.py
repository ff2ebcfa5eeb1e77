"""The facts that checks ask source and target for, each read once, when it is first asked for. Nothing is written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from functools import cached_property
from types import TracebackType
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, Self, TypeVar

from sqlalchemy import Connection, Engine, bindparam, text
from sqlalchemy.exc import DBAPIError, OperationalError

from binlane.apply.refusals import driver_errors
from binlane.apply.session.context import SUBSTITUTES
from binlane.apply.session.retry_verdicts import error_code, is_lost
from binlane.binlog.types.collations import collation_name as collation_name_of
from binlane.binlog.types.literals import identifier
from binlane.config import ChannelConfig
from binlane.connections import Endpoint
from binlane.errors import BinlogError, SourceError, TableMismatchError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.account.privileges import (
    VARIABLES_OF_GRANTS,
    Grants,
    parse_grants,
    proxies_to_grant,
    roles_to_grant,
    routine_grants,
)
from binlane.precheck.situation.syntax import SyntaxParser, syntax_parser
from binlane.schema.letter_case import lower
from binlane.schema.model import Schema
from binlane.schema.normalize import charset_name, collation_name
from binlane.schema.programs import Program
from binlane.servers.catalog import read_default_collations, read_schema
from binlane.servers.engines import engine_of
from binlane.servers.names import among, folded_values, other_than, values_of
from binlane.servers.programs import read_programs, read_triggers
from binlane.servers.variables import all_global_variables, global_variables, server_version, version_number
from binlane.source.ddl_after import altered_behind, definitions_behind
from binlane.source.identity import Start
from binlane.source.server import translated
from binlane.source.stream import ServerSource
from binlane.sql.logged_statement import LoggedText
from binlane.sql.program_names import folded_name
from binlane.sql.requirements import CHARSET, COLLATION, ENGINE, PLUGIN, SESSION_COLLATION, Requirement

log = logging.getLogger(__name__)

_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")
_TAIL_LIMIT: Final = 64 << 20
"""Bytes of log behind the window that are read only to know more of tables that it alters."""
_ENGINE_ALIASES: Final = {"heap": "memory", "merge": "mrg_myisam", "ndb": "ndbcluster"}
SYSTEM_USER: Final = ("SYSTEM_USER",)
SINCE_SYSTEM_USER: Final = (8, 0, 16)
_SINCE_PERSIST: Final = (8, 0, 0)
_SINCE_READ_ONLY: Final = (8, 0, 22)
_SINCE_DEFAULT_ENCRYPTION: Final = (8, 0, 16)
_DEFINERS: Final = (
    "SELECT routine_type, routine_schema, routine_name, definer FROM information_schema.routines"
    " UNION ALL SELECT 'VIEW', table_schema, table_name, definer FROM information_schema.views"
    " UNION ALL SELECT 'EVENT', event_schema, event_name, definer FROM information_schema.events"
)
_OWN: Final = "('mysql', 'sys')"
_SINCE_FUNCTIONS: Final = (8, 0, 0)
_FUNCTIONS: Final = "SELECT udf_name FROM performance_schema.user_defined_functions"
_FUNCTIONS_BEFORE: Final = (
    "SELECT name FROM mysql.func"
    " UNION SELECT plugin_name FROM information_schema.plugins"
    " WHERE plugin_type = 'FUNCTION' AND plugin_status = 'ACTIVE'"
)
_BODIES: Final = (
    f"SELECT routine_definition AS body FROM information_schema.routines WHERE {other_than('routine_schema', _OWN)}",
    f"SELECT action_statement AS body FROM information_schema.triggers WHERE {other_than('event_object_schema', _OWN)}",
)
_TEMPORARY: Final = "body IS NULL OR LOWER(body) LIKE '%temporary%'"


@dataclass(frozen=True, slots=True)
class Accounts:
    """Of a MySQL target; all of it is empty where it does not matter."""

    known: frozenset[str] | None = None
    """``user@host`` of all."""
    system: frozenset[str] = frozenset()
    """Who holds SYSTEM_USER, itself or by a role."""
    owners: frozenset[str] = frozenset()
    """Objects whose definer is one of them, as ``accounts_named.defined`` spells them, folded as names of
    routines."""
    are_unseen: bool = False
    """Nobody can tell who holds SYSTEM_USER, and it matters: the account may neither read ``mysql`` nor holds it. Then
    ``owners`` are the objects of all other accounts."""


class LoadableFunction(NamedTuple):
    """A function of a shared library, as ``mysql.func`` has it."""

    returns: int | None
    """Item_result."""
    library: str
    is_aggregate: bool


class Server:
    """A server, asked by one connection, which is there from the first question to ``release`` or the end.

    Raises the driver's errors through SQLAlchemy, as any reading does.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Give the connection back: what comes may take longer than the server lets an idle one live."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(
        self,
        question: Callable[Concatenate[Connection, _Asked], _Answer],
        *arguments: _Asked.args,
        **named: _Asked.kwargs,
    ) -> _Answer:
        """The answer of a function that reads by a connection."""
        if self._connection is None:
            self._connection = self.engine.connect()
        return question(self._connection, *arguments, **named)

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query; a value that is a list stands for an expanding ``IN``."""
        lists = tuple(name for name, value in values.items() if isinstance(value, list))
        statement = text(query).bindparams(*(bindparam(name, expanding=True) for name in lists))
        return self.ask(lambda connection: [tuple(row) for row in connection.execute(statement, values)])

    def syntax_parser(self) -> AbstractContextManager[SyntaxParser]:
        """The server's parser, by a connection of its own."""
        return syntax_parser(self.engine)

    @cached_property
    def _version(self) -> tuple[Flavor, str]:
        return self.ask(server_version)

    @property
    def flavor(self) -> Flavor:
        """The server's family."""
        return self._version[0]

    @property
    def version(self) -> str:
        """As ``VERSION()`` spells it."""
        return self._version[1]

    @property
    def number(self) -> tuple[int, int, int]:
        """The version's numbers."""
        return version_number(self.version)

    @cached_property
    def variables(self) -> Mapping[str, str]:
        """The global variables, by name in lower case."""
        return self.ask(all_global_variables)

    def is_on(self, name: str) -> bool:
        """Whether a global variable is there and says neither OFF nor 0 nor nothing."""
        return self.variables.get(name, "OFF").upper() not in ("OFF", "0", "")

    def value(self, name: str) -> str:
        """A global variable in capitals; nothing if the server does not know it."""
        return self.variables.get(name, "").upper()

    def setting(self, name: str, value: object) -> str:
        """The statement that gives a global variable another value, on MySQL 8 or newer past a restart, too."""
        word = "PERSIST" if self.flavor is Flavor.MYSQL and self.number >= _SINCE_PERSIST else "GLOBAL"
        return f"SET {word} {name} = {value}"

    @cached_property
    def grant_lines(self) -> tuple[str, ...]:
        """SHOW GRANTS of the account that the connection uses."""
        return tuple(str(row[0]) for row in self.rows("SHOW GRANTS"))

    @cached_property
    def grants(self) -> Grants:
        """The account's privileges on databases and tables."""
        # extraction asks for no other variables, and all of them take 10 ms
        known = vars(self).get("variables")
        variables = self.ask(global_variables, VARIABLES_OF_GRANTS) if known is None else known
        return parse_grants(self.grant_lines, variables)

    @cached_property
    def account(self) -> str:
        """``user@host`` of the account that the connection uses."""
        return str(self.rows("SELECT CURRENT_USER()")[0][0])

    @cached_property
    def own_connections(self) -> int:
        """How many connections the account may have; 0: as many as the server allows."""
        return int(self.rows("SELECT @@session.max_user_connections")[0][0])


class Target(Server):
    """A target, and the facts that decide whether windows can be applied there."""

    def holding(self, grant_lines: Sequence[str]) -> Target:
        """The same server, asked by the same account as if SHOW GRANTS had said this of it."""
        other = Target(self.engine)
        # where functools.cached_property keeps what was read
        vars(other).update(grant_lines=tuple(grant_lines))
        return other

    @cached_property
    def connection_numbers(self) -> tuple[int, ...]:
        """CONNECTION_ID() twice in a transaction and once behind it: three numbers alike, but for some proxies."""
        # in an expression: proxies answer the bare call themselves
        query = "SELECT 0 + CONNECTION_ID()"
        within = [self.rows(query), self.rows(query)]
        self.ask(lambda connection: connection.execute(text("COMMIT")))
        return tuple(int(found[0][0]) for found in (*within, self.rows(query)))

    @cached_property
    def engines(self) -> frozenset[str]:
        """The storage engines that are switched on, in lower case."""
        found = self.rows("SELECT engine FROM information_schema.engines WHERE support IN ('YES','DEFAULT')")
        return frozenset(str(row[0]).lower() for row in found)

    @cached_property
    def authentication_plugins(self) -> frozenset[str]:
        """What accounts may be identified with, in lower case."""
        query = "SELECT plugin_name FROM information_schema.plugins WHERE plugin_type = 'AUTHENTICATION'"
        return frozenset(str(row[0]).lower() for row in self.rows(query))

    @cached_property
    def dynamic_privileges(self) -> frozenset[str]:
        """The dynamic privileges that MySQL has: those of its version, and of the components that are loaded."""
        names = (str(row[0]).upper() for row in self.rows("SHOW PRIVILEGES"))
        return frozenset(name for name in names if "_" in name)

    def knows(self, requirement: Requirement, collations: Collection[str]) -> bool | None:
        """Whether the server has the engine, plugin, collation or character set that a statement names; None for any
        other requirement. ``collations``: the server's."""
        name = requirement.detail.strip("'\"")
        if requirement.feature == ENGINE:
            return _ENGINE_ALIASES.get(name, name) in self.engines
        if requirement.feature == PLUGIN:
            return name in self.authentication_plugins
        if requirement.feature == COLLATION:
            full = collation_name(name) or name
            # from 10.10 on, uca1400_ai_ci stands for one collation of each Unicode character set
            return full in collations or any(one.endswith(f"_{full}") for one in collations)
        if requirement.feature == SESSION_COLLATION:
            collation = collation_name_of(int(name), self.flavor)
            return not {collation, SUBSTITUTES.get(collation or "")}.isdisjoint(collations)
        if requirement.feature == CHARSET:
            charset = charset_name(name) or name
            return any(one == charset or one.startswith(f"{charset}_") for one in collations)
        return None

    @property
    def trusts_functions(self) -> bool:
        """Whether it makes functions that say neither DETERMINISTIC nor what they read: with a binlog it need not."""
        return not self.is_on("log_bin") or self.is_on("log_bin_trust_function_creators")

    @property
    def trusts_account(self) -> bool:
        """Whether it lets this account make triggers and functions: with a binlog it need not."""
        return self.trusts_functions or not self.grants.missing(("SUPER",))

    def knows_time_zone(self, name: str) -> bool:
        """Whether times can be converted to a time zone."""
        found = self.rows("SELECT CONVERT_TZ('2020-01-01', '+00:00', :zone)", zone=name)
        return found[0][0] is not None

    def enabled_events(self, databases: Collection[str]) -> list[tuple[str, str]]:
        """Database and name of the events that the server runs in these databases."""
        found = self.rows(
            "SELECT event_schema, event_name FROM information_schema.events"
            f" WHERE status = 'ENABLED' AND {among('event_schema', ':databases', ':folded')}"
            " ORDER BY event_schema, event_name",
            databases=values_of(databases),
            folded=folded_values(databases),
        )
        return [(database, name) for database, name in found]

    @cached_property
    def roles(self) -> frozenset[str]:
        """MariaDB's roles, in lower case; none where the account may not read them."""
        if self.flavor is not Flavor.MARIADB:
            return frozenset()
        try:
            found = self.rows("SELECT user FROM mysql.user WHERE is_role = 'Y'")
        except OperationalError as exc:
            if is_lost(exc):
                raise
            return frozenset()
        return frozenset(str(row[0]).lower() for row in found)

    @cached_property
    def granted_roles(self) -> frozenset[str]:
        """The roles that the account may grant, in lower case; MariaDB's also by another role that it has, MySQL's as
        ``user@host``."""
        if self.flavor is not Flavor.MARIADB:
            return roles_to_grant(self.grant_lines)
        found = self.rows("SELECT role_name FROM information_schema.applicable_roles WHERE is_grantable = 'YES'")
        return frozenset(str(row[0]).lower() for row in found)

    @property
    def granted_proxies(self) -> tuple[str, ...]:
        """``user@host`` of the accounts whose proxy the account may make others; an empty user, or host, is any."""
        return proxies_to_grant(self.grant_lines)

    @property
    def routine_grants(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """Privileges on single routines, GRANT OPTION among them, by database and name in lower case."""
        return routine_grants(self.grant_lines, self.grants.letter_case)

    @cached_property
    def accounts(self) -> Accounts:
        """MySQL's accounts, and who of them only SYSTEM_USER may touch."""
        if self.flavor is not Flavor.MYSQL or self.number < SINCE_SYSTEM_USER:
            return Accounts()
        if self.grants.missing(("SELECT",), "mysql"):
            if not self.grants.missing(SYSTEM_USER):
                return Accounts()
            return Accounts(
                owners=_objects(row for row in self.rows(_DEFINERS) if row[3] != self.account), are_unseen=True
            )
        known = frozenset(self._pairs("SELECT user, host FROM mysql.user"))
        if not self.grants.missing(SYSTEM_USER):
            return Accounts(known)
        system = set(self._pairs("SELECT user, host FROM mysql.global_grants WHERE priv = 'SYSTEM_USER'"))
        edges = self.rows("SELECT from_user, from_host, to_user, to_host FROM mysql.role_edges")
        roles = [(f"{row[0]}@{row[1]}", f"{row[2]}@{row[3]}") for row in edges]
        while more := {member for role, member in roles if role in system} - system:
            system |= more
        owners = _objects(row for row in self.rows(_DEFINERS) if row[3] in system)
        return Accounts(known, frozenset(system), owners)

    def _pairs(self, query: str) -> Iterator[str]:
        return (f"{user}@{host}" for user, host in self.rows(query))

    @cached_property
    def called_from_libraries(self) -> frozenset[str] | None:
        """The names of all functions of libraries, plugins and components, in lower case; None if the account may not
        read them."""
        return self.ask(called_from_libraries)

    @cached_property
    def loadable_functions(self) -> Mapping[str, LoadableFunction]:
        """By name in lower case. Needs SELECT on ``mysql``."""
        found = self.rows("SELECT name, ret, dl, type FROM mysql.func")
        return {
            str(name).lower(): LoadableFunction(int(ret), str(dl), str(kind) == "aggregate")
            for name, ret, dl, kind in found
        }

    @cached_property
    def read_only_databases(self) -> frozenset[str]:
        """Databases with the option READ ONLY, which MySQL has since 8.0.22."""
        if self.flavor is not Flavor.MYSQL or self.number < _SINCE_READ_ONLY:
            return frozenset()
        query = "SELECT schema_name FROM information_schema.schemata_extensions WHERE options LIKE '%READ ONLY=1%'"
        return frozenset(str(name) for (name,) in self.rows(query))

    @cached_property
    def encrypting_databases(self) -> frozenset[str]:
        """Databases of MySQL whose tables are encrypted unless they say otherwise."""
        if self.flavor is not Flavor.MYSQL or self.number < _SINCE_DEFAULT_ENCRYPTION:
            return frozenset()
        query = "SELECT schema_name FROM information_schema.schemata WHERE default_encryption = 'YES'"
        return frozenset(str(name) for (name,) in self.rows(query))

    @cached_property
    def makes_temporary_tables(self) -> bool:
        """Whether the text of a routine or trigger has the word TEMPORARY, or is one that the account may not read."""
        counts = (f"SELECT COUNT(*) FROM ({query}) AS bodies WHERE {_TEMPORARY}" for query in _BODIES)
        return any(self.rows(query)[0][0] for query in counts)

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The routines and views."""
        return self.ask(read_programs, self.flavor)

    @cached_property
    def triggers(self) -> tuple[Program, ...]:
        """The triggers that the account sees."""
        return self.ask(read_triggers)

    def has_table(self, key: TableKey) -> bool:
        """Whether there is a table or view of that name, whatever its letters' case."""
        return lower(key.table) in self._names("table", key.database, lower)

    def has_routine(self, key: TableKey) -> bool:
        """Whether there is a function or procedure of that name, as servers compare them."""
        return folded_name(key.table) in self._names("routine", key.database, folded_name)

    def _names(self, kind: str, database: str, spelled: Callable[[str], str]) -> Collection[str]:
        """The names of a database's objects of a kind. They are compared here: to fold them neither LOWER() nor
        ``str.lower`` is what servers do."""
        place = kind, lower(database)
        if place not in self._named:
            every = (str(name) for (name,) in self.rows("SELECT schema_name FROM information_schema.schemata"))
            names = values_of(name for name in every if lower(name) == place[1])
            query = f"SELECT {kind}_name FROM information_schema.{kind}s WHERE {among(f'{kind}_schema', ':names')}"
            self._named[place] = frozenset(spelled(str(name)) for (name,) in self.rows(query, names=names))
        return self._named[place]

    @cached_property
    def _named(self) -> dict[tuple[str, str], frozenset[str]]:
        return {}

    def default_collations(self, databases: Collection[str]) -> Mapping[str, str]:
        """What tables of these databases get without a collation of their own."""
        return self.ask(read_default_collations, databases)


def called_from_libraries(connection: Connection) -> frozenset[str] | None:
    """The names of all functions of libraries, plugins and components, in lower case; None if the account may not read
    them."""
    flavor, version = server_version(connection)
    is_in_schema = flavor is Flavor.MYSQL and version_number(version) >= _SINCE_FUNCTIONS
    try:
        found = connection.execute(text(_FUNCTIONS if is_in_schema else _FUNCTIONS_BEFORE)).fetchall()
    except DBAPIError as exc:
        if is_lost(exc):
            raise
        return None
    return frozenset(str(name).lower() for (name,) in found)


@dataclass(frozen=True, slots=True)
class Source:
    """A live source, whose definitions were asked for while the target's were."""

    channel: ChannelConfig
    endpoint: Endpoint
    plan: WindowPlan
    read_schema: Callable[[], Schema]
    """Waits for the definitions of the plan's databases, in the source's own names. Raises SourceError."""
    read_grants: Callable[[], Grants]
    """Waits for the privileges of the source's account. Raises SourceError."""
    _behind: dict[bool, Alterations | None] = field(default_factory=dict)
    _defined: list[tuple[LoggedText, ...] | None] = field(default_factory=list)
    _engines: list[Alterations | None] = field(default_factory=list)

    def ask(
        self,
        question: Callable[Concatenate[Connection, _Asked], _Answer],
        *arguments: _Asked.args,
        **named: _Asked.kwargs,
    ) -> _Answer:
        """The answer of a function that reads by a connection of its own. Raises SourceError."""
        with translated(str(self.endpoint)), driver_errors(), engine_of(self.endpoint).connect() as connection:
            return question(connection, *arguments, **named)

    @contextmanager
    def syntax_parser(self) -> Iterator[SyntaxParser]:
        """The server's parser, by a connection of its own. Raises SourceError."""
        with translated(str(self.endpoint)), driver_errors(), syntax_parser(engine_of(self.endpoint)) as parser:
            yield parser

    def default_collations(self, databases: Collection[str]) -> Mapping[str, str]:
        """What tables of these databases get without a collation of their own. Raises SourceError."""
        return self.ask(read_default_collations, databases)

    def unreadable(self, keys: Collection[TableKey]) -> tuple[TableKey, ...]:
        """The tables of which the server does not let the account read all columns, also by a privilege of another row
        of the account's name (``binlane@'%'`` beside ``binlane@'10.%'``), which SHOW GRANTS leaves out. Raises
        SourceError."""
        return self.ask(unreadable, keys) if keys else ()

    @property
    def account(self) -> str:
        """``user@host`` of the row of the account that the server goes by. Raises SourceError."""
        return self.ask(lambda connection: str(connection.execute(text("SELECT CURRENT_USER()")).scalar_one()))

    def read_everything(self) -> Schema:
        """The definitions of all its databases, in its own names. Raises SourceError."""
        return self.ask(read_schema)

    def definitions_behind(self) -> tuple[LoggedText, ...] | None:
        """The statements behind the window that define, drop or rename something, with the source's names; None if they
        cannot be told. The whole log is read, once."""
        if not self._defined:
            self._defined.append(self._definitions_behind())
        return self._defined[0]

    def _definitions_behind(self) -> tuple[LoggedText, ...] | None:
        try:
            return tuple(definitions_behind(self._log, self._end))
        except (SourceError, BinlogError) as exc:
            log.warning("precheck: what the source has defined since the window cannot be told: %s", exc)
            return None

    def altered_behind(self, *, whole: bool) -> Alterations | None:
        """What the log says of alterations behind the window, in the source's names; None if it cannot be told.

        Unless ``whole``, that is so behind 64 MiB; the whole log is read at most once.
        """
        if True in self._behind:
            return self._behind[True]
        if whole not in self._behind:
            self._behind[whole] = self._altered_behind(None if whole else _TAIL_LIMIT)
        return self._behind[whole]

    def engines_behind(self) -> Alterations | None:
        """The tables that may have got another engine behind the window, in the source's names; None if it cannot be
        told. The whole log is read, once."""
        if not self._engines:
            self._engines.append(self._altered_behind(None, engines=True))
        return self._engines[0]

    def _altered_behind(self, limit: int | None, *, engines: bool = False) -> Alterations | None:
        try:
            return altered_behind(self._log, self._end, limit, engines=engines)
        except (SourceError, BinlogError) as exc:
            log.warning("precheck: whether the source has altered tables since the window cannot be told: %s", exc)
            return None

    @property
    def _end(self) -> Start:
        """The window's end; the window was read from this log, and its files were proved."""
        plan = self.plan
        return Start(plan.last_seqno, plan.end, plan.end_gtid_set, plan.end_time, plan.source, "")

    @property
    def _log(self) -> ServerSource:
        return ServerSource(
            str(self.endpoint), self.endpoint.pymysql_arguments(), self.channel.source.server_id, self.channel.name,
            event_bytes=self.channel.source.event_bytes, unlogged_gtids=self.channel.source.unlogged_gtids or "",
        )  # fmt: skip


def _objects(rows: Iterable[Sequence[Any]]) -> frozenset[str]:
    """Rows of ``_DEFINERS`` as ``Accounts.owners``."""
    return frozenset(folded_name(f"{row[0]} {row[1]}.{row[2]}") for row in rows)


def unreadable(connection: Connection, keys: Iterable[TableKey]) -> tuple[TableKey, ...]:
    """Those of which the account may not read all columns."""
    return tuple(key for key in keys if not _may_read(connection, key))


def _may_read(connection: Connection, key: TableKey) -> bool:
    """``*`` stands for all columns: a server refuses it where one of them may not be read."""
    try:
        statement = f"SELECT * FROM {identifier(key.database)}.{identifier(key.table)} LIMIT 0"
        connection.exec_driver_sql(statement.replace("%", "%%"))
    except DBAPIError as exc:
        if error_code(exc) in _NOT_READABLE:
            return False
        if error_code(exc) == _NO_SUCH_TABLE:
            return True
        raise
    except TableMismatchError:
        # a view is not opened: the server has said so behind its look at the privilege, and no row is read by it
        return True
    return True


_NOT_READABLE: Final = frozenset({1044, 1142, 1143, 1356})
"""Denied on the database, the table, a column; a view that lacks what it reads."""
_NO_SUCH_TABLE: Final = 1146
"""The answer to an account that could read it."""
