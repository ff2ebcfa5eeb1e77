"""Does the target fit, before the first write of a window? Privileges, settings and tables, each finding by name.

Every finding says where, what is expected, what was found and what to do. Reading only; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, text

from binlane.choices import Writer
from binlane.errors import PrecheckError
from binlane.model import Flavor, TableKey, plural
from binlane.precheck.finding import Finding
from binlane.precheck.packet_size import PACKET_LIMIT
from binlane.precheck.privileges import (
    ACCOUNTS,
    COPIES,
    DDL,
    ROWS,
    STATE,
    STATEMENTS,
    VISIBILITY,
    Grants,
    Need,
    advisable,
    global_needs,
    read_grants,
    read_only_exemptions,
)
from binlane.schema.compare import Difference, Severity, compare_schemas, rules_for
from binlane.schema.model import Schema
from binlane.servers.catalog import global_variables, server_version, version_number
from binlane.state.tables import SCHEMA

_OLDEST: Final = {Flavor.MARIADB: (10, 3, 0), Flavor.MYSQL: (5, 7, 0)}
_STATEMENT_OVERHEAD: Final = 1024
"""``BINLOG ''``, the TABLE_MAPs that a writer adds when it splits, the packet's own header."""
_SHOWN: Final = 3
"""How many databases a finding names."""
_VARIABLES: Final = (
    "binlog_format",
    "event_scheduler",
    "gtid_mode",
    "group_replication_group_name",
    "innodb_read_only",
    "innodb_strict_mode",
    "local_infile",
    "log_bin",
    "max_allowed_packet",
    "max_connections",
    "max_user_connections",
    "read_only",
    "replica_type_conversions",
    "secure_timestamp",
    "slave_type_conversions",
    "sql_require_primary_key",
    "super_read_only",
    "transaction_read_only",
    "table_definition_cache",
    "table_open_cache",
    "tx_read_only",
    "wsrep_on",
)


@dataclass(frozen=True, slots=True)
class Needs:
    """What the window asks of the target."""

    databases: frozenset[str] = frozenset()
    """Every database that the window writes."""
    tables: int = 0
    """How many tables it writes as rows."""
    statements: bool = False
    """It has statements apart from DDL."""
    loads: bool = False
    """It has LOAD DATA, whose files the apply tasks send."""
    ddl: bool = False
    accounts: bool = False
    """It has CREATE USER, GRANT and their like."""
    time_zones: frozenset[str] = frozenset()
    """The session time zones of its statements, as logged."""
    biggest_item: int = 0
    """Bytes of its longest usual BINLOG statement, before base64; longer ones the filter has refused already."""
    connections: int = 0
    """How many the apply tasks open at most."""
    writer: str = "binlog"
    """Which of ``writers.ROW_WRITERS`` writes rows."""
    overwrite: bool = False
    """Rows that met drift are written by statements, whichever writer has the others."""
    row_statements: bool = False
    """Some tables' rows are written by statements, whichever writer has the others."""
    copies: bool = False
    """It keeps copies of temporary tables."""
    allow_events: bool = False
    """The channel accepts that the target's own events write to replicated databases."""


@dataclass(frozen=True, slots=True)
class _Target:
    connection: Connection
    flavor: Flavor
    version: str
    number: tuple[int, int, int]
    variables: Mapping[str, str]
    grants: Grants

    def is_on(self, name: str) -> bool:
        return self.variables.get(name, "OFF").upper() not in ("OFF", "0", "")


def check_target(connection: Connection, *, needs: Needs) -> tuple[Finding, ...]:
    """Privileges of this connection's account and settings of its server. Ends the connection's transaction."""
    flavor, version = server_version(connection)
    number = version_number(version)
    variables = global_variables(connection, _VARIABLES)
    target = _Target(connection, flavor, version, number, variables, read_grants(connection))
    return tuple(finding for check in _CHECKS for finding in check(target, needs))


def check_tables(
    source: Schema | None,
    target: Schema,
    touched: Collection[TableKey],
    *,
    created: Collection[TableKey] = (),
    altered: Collection[TableKey] = (),
    complete_images: bool = True,
    allow_non_transactional: bool = False,
    collations: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """``schema_compare.compare_schemas`` as findings; the arguments are the same."""
    rules = rules_for(
        source,
        target,
        complete_images=complete_images,
        allow_non_transactional=allow_non_transactional,
        collations=collations,
    )
    return findings_of(compare_schemas(source, target, touched, rules, created=created, altered=altered))


def findings_of(differences: Iterable[Difference]) -> tuple[Finding, ...]:
    """Differences between tables, in the form that ``raise_if_fatal`` reads."""
    return tuple(
        Finding(one.severity, f"{one.where}: {one.what}", one.expected, one.found, one.hint) for one in differences
    )


def raise_if_fatal(findings: Iterable[Finding]) -> None:
    """Raise PrecheckError with every fatal finding, one a line; nothing has been written then."""
    fatal = [str(finding) for finding in findings if finding.severity is Severity.FATAL]
    if fatal:
        things = plural(len(fatal), "thing stands", "things stand")
        raise PrecheckError("\n".join((f"{things} in the way; nothing was written:", *fatal)))


def _check_version(target: _Target, needs: Needs) -> Iterator[Finding]:
    oldest = _OLDEST[target.flavor]
    if target.number < oldest:
        expected = f"{target.flavor} {'.'.join(map(str, oldest))} or newer"
        yield Finding(Severity.FATAL, "target: version", expected, target.version, "upgrade the target")


def _check_proxy(target: _Target, needs: Needs) -> Iterator[Finding]:
    # in an expression: proxies answer the bare call themselves
    query = text("SELECT 0 + CONNECTION_ID()")
    seen = [target.connection.execute(query).scalar_one() for _ in range(2)]
    target.connection.execute(text("COMMIT"))
    seen.append(target.connection.execute(query).scalar_one())
    if len(set(seen)) > 1:
        found = ", ".join(str(number) for number in seen)
        todo = "connect past the proxy: its multiplexing would move leases and transactions to other connections"
        yield Finding(Severity.FATAL, "target: CONNECTION_ID()", "one number over a COMMIT", found, todo)


def _check_privileges(target: _Target, needs: Needs) -> Iterator[Finding]:
    by_sql = needs.writer != Writer.BINLOG
    if not by_sql or needs.statements or needs.ddl or needs.accounts:
        for need in global_needs(target.flavor, target.number):
            yield from _global_need(target, need, Severity.FATAL)
    for need in advisable(target.flavor, target.number):
        yield from _global_need(target, need, Severity.INFO)
    if needs.accounts:
        for name in target.grants.missing(ACCOUNTS):
            yield _privilege(Severity.FATAL, name, "*.*", "the window creates or changes accounts")
        for name in target.grants.missing(("SELECT",), "mysql"):
            yield _privilege(Severity.FATAL, name, "mysql.*", "accounts are compared before one is created again")
    for name in target.grants.missing((*STATE, *(COPIES if needs.copies else ())), SCHEMA):
        yield _privilege(Severity.FATAL, name, f"`{SCHEMA}`.*", "positions and windows are kept there")
    wanted = (
        *VISIBILITY,
        *(ROWS if by_sql or needs.overwrite or needs.row_statements else ()),
        *(STATEMENTS if needs.statements else ()),
        *(DDL if needs.ddl else ()),
    )
    for name in dict.fromkeys(wanted):
        lacking = [database for database in sorted(needs.databases) if target.grants.missing((name,), database)]
        if lacking:
            why = "the precheck sees only what the account may use" if name in VISIBILITY else "the window's statements"
            yield _privilege(Severity.FATAL, name, _scopes(lacking), why)


def _scopes(databases: list[str]) -> str:
    shown = ", ".join(f"`{name}`.*" for name in databases[:_SHOWN])
    more = len(databases) - _SHOWN
    return shown if more <= 0 else f"{shown} and {plural(more, 'more database')}"


def _global_need(target: _Target, need: Need, severity: Severity) -> Iterator[Finding]:
    names = (need.name, *need.substitutes)
    if len(target.grants.missing(names)) == len(names):
        yield _privilege(severity, need.name, "*.*", need.why)


def _privilege(severity: Severity, name: str, scope: str, why: str) -> Finding:
    todo = f"GRANT {name} ON {scope} TO the account: {why}"
    return Finding(severity, f"target: privilege {name}", f"granted on {scope}", "not granted", todo)


def _check_packet(target: _Target, needs: Needs) -> Iterator[Finding]:
    if needs.writer != Writer.BINLOG:
        return  # statements are cut to what the target takes; single rows are looked at one by one (``packets``)
    wanted = (needs.biggest_item + 2) // 3 * 4 + _STATEMENT_OVERHEAD
    have = int(target.variables["max_allowed_packet"])
    if have < wanted:
        todo = f"SET GLOBAL max_allowed_packet = {-(-wanted // 1024) * 1024} on the target and reconnect"
        if wanted > PACKET_LIMIT:
            todo = "no server takes so long a statement: filter the table out and copy it another way"
        where = "target: max_allowed_packet"
        yield Finding(Severity.FATAL, where, f"{wanted} bytes for the biggest item", str(have), todo)


def _check_binlog_format(target: _Target, needs: Needs) -> Iterator[Finding]:
    if target.flavor is Flavor.MYSQL and target.is_on("log_bin") and _value(target, "binlog_format") == "STATEMENT":
        todo = "SET GLOBAL binlog_format = ROW on the target: it refuses row events otherwise (1666)"
        yield Finding(Severity.FATAL, "target: binlog_format", "ROW or MIXED", "STATEMENT", todo)


def _check_read_only(target: _Target, needs: Needs) -> Iterator[Finding]:
    for name in ("super_read_only", "innodb_read_only", "transaction_read_only", "tx_read_only"):
        if target.is_on(name):
            todo = f"SET GLOBAL {name} = OFF on the target, or take another server"
            yield Finding(Severity.FATAL, f"target: {name}", "OFF", target.variables[name], todo)
    if target.is_on("read_only"):
        exempt = read_only_exemptions(target.flavor, target.number)
        if len(target.grants.missing(exempt)) == len(exempt):
            todo = f"SET GLOBAL read_only = OFF on the target, or GRANT {exempt[0]} ON *.* TO the account"
            yield Finding(Severity.FATAL, "target: read_only", "OFF", target.variables["read_only"], todo)


def _check_events(target: _Target, needs: Needs) -> Iterator[Finding]:
    if needs.allow_events or not needs.databases or _value(target, "event_scheduler") not in ("ON", "1"):
        return
    query = text(
        "SELECT event_schema, event_name FROM information_schema.events"
        " WHERE status = 'ENABLED' AND event_schema IN :databases ORDER BY event_schema, event_name"
    ).bindparams(bindparam("databases", expanding=True))
    for database, name in target.connection.execute(query, {"databases": sorted(needs.databases)}):
        slave = "REPLICA" if target.flavor is Flavor.MYSQL and target.number >= (8, 0, 22) else "SLAVE"
        todo = (
            f"ALTER EVENT `{database}`.`{name}` DISABLE ON {slave} on the target: the source runs it, and its rows come"
            " with the log; or let the channel allow events"
        )
        yield Finding(Severity.FATAL, f"target: event {database}.{name}", "disabled", "enabled", todo)


def _check_time_zones(target: _Target, needs: Needs) -> Iterator[Finding]:
    for zone in sorted(needs.time_zones):
        query = text("SELECT CONVERT_TZ('2020-01-01', '+00:00', :zone)")
        if target.connection.execute(query, {"zone": zone}).scalar_one() is None:
            loader = "mariadb-tzinfo-to-sql" if target.flavor is Flavor.MARIADB else "mysql_tzinfo_to_sql"
            todo = f"load the time zone tables on the target with {loader}: statements need it (1298)"
            yield Finding(Severity.FATAL, f"target: time zone {zone}", "known", "unknown", todo)


def _check_timestamp(target: _Target, needs: Needs) -> Iterator[Finding]:
    mode = _value(target, "secure_timestamp")
    if (needs.statements or needs.ddl) and mode in ("YES", "REPLICATION"):
        todo = "restart the target with secure_timestamp = NO: statements could not keep the source's time"
        yield Finding(Severity.FATAL, "target: secure_timestamp", "NO or SUPER", mode, todo)


def _check_local_infile(target: _Target, needs: Needs) -> Iterator[Finding]:
    if needs.loads and not target.is_on("local_infile"):
        todo = "SET GLOBAL local_infile = ON on the target: the files of LOAD DATA are sent as LOCAL ones"
        yield Finding(Severity.FATAL, "target: local_infile", "ON", _value(target, "local_infile"), todo)


def _check_connections(target: _Target, needs: Needs) -> Iterator[Finding]:
    for name in ("max_connections", "max_user_connections"):
        limit = int(target.variables.get(name, "0"))
        if 0 < limit < needs.connections:
            todo = f"SET GLOBAL {name} higher on the target, or give the channel fewer lanes"
            yield Finding(Severity.FATAL, f"target: {name}", f"{needs.connections} or more", str(limit), todo)


def _check_table_caches(target: _Target, needs: Needs) -> Iterator[Finding]:
    for name in ("table_open_cache", "table_definition_cache"):
        limit = int(target.variables[name])
        if limit < needs.tables:
            todo = f"tables are opened again and again, which takes most of the time: SET GLOBAL {name} higher"
            yield Finding(Severity.INFO, f"target: {name}", f"{needs.tables} or more", str(limit), todo)


def _check_ddl(target: _Target, needs: Needs) -> Iterator[Finding]:
    if not needs.ddl:
        return
    for name, why in _DDL_SETTINGS:
        if target.is_on(name):
            yield Finding(Severity.INFO, f"target: {name}", "OFF", target.variables[name], why)
    once = "gtid_mode" if target.flavor is Flavor.MYSQL else "log_bin"
    if _value(target, once) not in ("ON", "1"):
        todo = "a DDL is exactly-once by the target's own GTID; without it, some stop and ask after a crash"
        yield Finding(Severity.INFO, f"target: {once}", "ON", target.variables.get(once, "none"), todo)
        for name in target.grants.missing(("PROCESS",)):
            yield _privilege(Severity.INFO, name, "*.*", "table ids tell whether a DDL has run")


def _check_surroundings(target: _Target, needs: Needs) -> Iterator[Finding]:
    for name in ("replica_type_conversions", "slave_type_conversions"):
        if target.variables.get(name):
            todo = "the server would convert types, which the table comparison refuses before: empty is clearer"
            yield Finding(Severity.INFO, f"target: {name}", "empty", target.variables[name], todo)
            break
    for name in ("wsrep_on", "group_replication_group_name"):
        if target.is_on(name):
            todo = "leases hold on one node only: let every lane connect to the same one"
            yield Finding(Severity.INFO, f"target: {name}", "a single server", target.variables[name], todo)


def _value(target: _Target, name: str) -> str:
    return target.variables.get(name, "").upper()


_DDL_SETTINGS: Final = (
    ("sql_require_primary_key", "the session switches it off for the source's DDL; tables without a key are slow here"),
    ("innodb_strict_mode", "the target may refuse a CREATE or ALTER of rows too long for a page that a source took"),
)
_CHECKS: Final[tuple[Callable[[_Target, Needs], Iterator[Finding]], ...]] = (
    _check_version,
    _check_proxy,
    _check_privileges,
    _check_packet,
    _check_binlog_format,
    _check_read_only,
    _check_events,
    _check_time_zones,
    _check_timestamp,
    _check_local_infile,
    _check_connections,
    _check_table_caches,
    _check_ddl,
    _check_surroundings,
)
