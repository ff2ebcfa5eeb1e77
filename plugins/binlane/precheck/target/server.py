"""The target server and the privileges of its account: what stands in the way of a window, or of a first copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from binlane.binlog.rows_payload import STATEMENT_OVERHEAD
from binlane.binlog.types.literals import identifier
from binlane.model import Flavor, plural
from binlane.precheck.account.privileges import (
    ACCOUNTS,
    COPIES,
    DDL,
    EVERYWHERE,
    ROWS,
    STATE,
    STATEMENTS,
    TABLE_IDS,
    VISIBILITY,
    Need,
    Order,
    advisable,
    global_needs,
    read_only_exemptions,
    scope_of,
)
from binlane.precheck.situation.facts import Server
from binlane.precheck.situation.finding import Command, Finding
from binlane.precheck.situation.situation import Needs, TargetSituation
from binlane.schema.compare import Severity
from binlane.sql.scheduled_event import DISABLED
from binlane.state.tables import SCHEMA

_OLDEST: Final = {Flavor.MARIADB: (10, 3, 0), Flavor.MYSQL: (8, 0, 26)}
"""MySQL: the first with pseudo_replica_mode, in which lanes apply older servers' events."""
_ZONE_LOADERS: Final = {
    Flavor.MARIADB: ("mariadb-tzinfo-to-sql", "mariadb"),
    Flavor.MYSQL: ("mysql_tzinfo_to_sql", "mysql"),
}
"""The program that prints the time zone tables' statements, and the client that runs them."""
PACKET_LIMIT: Final = 1 << 30
"""The highest ``max_allowed_packet`` that either family takes."""
_SHOWN: Final = 3
"""How many databases a finding names."""


def check_version(situation: TargetSituation) -> Iterator[Finding]:
    """The target's version is older than MySQL 8.0.26 or MariaDB 10.3."""
    target = situation.target
    oldest = _OLDEST[target.flavor]
    if target.number < oldest:
        expected = f"{target.flavor} {'.'.join(map(str, oldest))} or newer"
        yield Finding(Severity.FATAL, "target: version", expected, target.version, "upgrade the target")


def check_proxy(situation: TargetSituation) -> Iterator[Finding]:
    """A proxy before the target shares connections: CONNECTION_ID() changes."""
    target = situation.target
    seen = target.connection_numbers
    if len(set(seen)) > 1:
        found = ", ".join(str(number) for number in seen)
        todo = "connect past the proxy: its multiplexing would move leases and transactions to other connections"
        yield Finding(Severity.FATAL, "target: CONNECTION_ID()", "one number over a COMMIT", found, todo)


def check_privileges(situation: TargetSituation) -> Iterator[Finding]:
    """Privileges that the target's account lacks."""
    target, needs = situation.target, situation.needs
    for need in target_privileges(target.flavor, target.number, needs):
        if lacking := need.lacking(target.grants):
            yield missing_privilege("target", target, need, lacking)


def target_privileges(flavor: Flavor, number: tuple[int, int, int], needs: Needs) -> Iterator[Need]:
    """The privileges that a target's account needs for a window, or a first copy."""
    if not needs.by_statements or needs.statements or needs.ddl or needs.accounts:
        yield from global_needs(flavor, number)
    yield from advisable(flavor, number)
    if needs.accounts:
        for name in ACCOUNTS:
            yield Need(name, (), "the window creates or changes accounts")
        yield Need("SELECT", (), "accounts are compared before one is created again", frozenset({"mysql"}))
    for name in (*STATE, *(COPIES if needs.copies else ())):
        yield Need(name, (), "positions and windows are kept there", frozenset({SCHEMA}))
    wanted = (
        *VISIBILITY,
        *(ROWS if needs.by_statements or needs.overwrite or needs.row_statements else ()),
        *(STATEMENTS if needs.statements else ()),
        *(DDL if needs.ddl else ()),
    )
    for name in dict.fromkeys(wanted):
        why = "the precheck sees only what the account may use" if name in VISIBILITY else "the window's statements"
        yield Need(name, (), why, needs.databases)


def missing_privilege(place: str, server: Server, need: Need, lacking: Sequence[str | None]) -> Finding:
    """``place``: source or target; ``lacking``: of ``Need.lacking``."""
    scopes = [scope_of(database, has_wildcards=server.grants.has_wildcards) for database in lacking]
    grants = "; ".join(f"GRANT {need.name} ON {scope} TO the account" for scope in scopes[:_SHOWN])
    if len(scopes) > _SHOWN:
        grants += f" and so on, for {plural(len(scopes) - _SHOWN, 'more database')}"
    shown = ", ".join(EVERYWHERE if name is None else f"{identifier(name)}.*" for name in lacking[:_SHOWN])
    if len(scopes) > _SHOWN:
        shown += f" and {plural(len(scopes) - _SHOWN, 'more database')}"
    return Finding(
        Severity.INFO if need.is_advice else Severity.FATAL,
        f"{place}: privilege {need.name}",
        f"granted on {shown}",
        "not granted",
        f"{grants}: {need.why}",
        mend=tuple(Order((need.name,), scope, server.account) for scope in scopes),
    )


def check_packet(situation: TargetSituation) -> Iterator[Finding]:
    """``max_allowed_packet`` of the target is too small for a usual BINLOG statement."""
    target, needs = situation.target, situation.needs
    if needs.by_statements:
        return  # statements are cut to what the target takes; single rows are looked at one by one (``sql_writer``)
    wanted = (needs.biggest_item + 2) // 3 * 4 + STATEMENT_OVERHEAD
    have = int(target.variables["max_allowed_packet"])
    if have < wanted:
        todo = f"SET GLOBAL max_allowed_packet = {-(-wanted // 1024) * 1024} on the target and reconnect"
        if wanted > PACKET_LIMIT:
            todo = "no server takes so long a statement: filter the table out and copy it another way"
        where = "target: max_allowed_packet"
        yield Finding(Severity.FATAL, where, f"{wanted} bytes for the biggest item", str(have), todo)


def check_binlog_format(situation: TargetSituation) -> Iterator[Finding]:
    """``binlog_format = STATEMENT`` on a MySQL target, which refuses row events then."""
    target = situation.target
    if target.flavor is Flavor.MYSQL and target.is_on("log_bin") and target.value("binlog_format") == "STATEMENT":
        todo = "SET GLOBAL binlog_format = ROW on the target: it refuses row events otherwise (1666)"
        yield Finding(Severity.FATAL, "target: binlog_format", "ROW or MIXED", "STATEMENT", todo)


def check_read_only(situation: TargetSituation) -> Iterator[Finding]:
    """The target is read-only for this account."""
    target = situation.target
    for name in ("super_read_only", "innodb_read_only", "transaction_read_only", "tx_read_only"):
        if target.is_on(name):
            todo = f"SET GLOBAL {name} = OFF on the target, or take another server"
            yield Finding(Severity.FATAL, f"target: {name}", "OFF", target.variables[name], todo)
    if target.is_on("read_only"):
        exempt = read_only_exemptions(target.flavor, target.number)
        if len(target.grants.missing(exempt)) == len(exempt):
            todo = f"SET GLOBAL read_only = OFF on the target, or GRANT {exempt[0]} ON *.* TO the account"
            yield Finding(Severity.FATAL, "target: read_only", "OFF", target.variables["read_only"], todo)


def check_events(situation: TargetSituation) -> Iterator[Finding]:
    """Enabled scheduled events on the target in databases that the window writes."""
    target, needs = situation.target, situation.needs
    if needs.allow_events or not needs.databases or target.value("event_scheduler") not in ("ON", "1"):
        return
    for database, name in target.enabled_events(needs.databases):
        todo = (
            f"ALTER EVENT {identifier(database)}.{identifier(name)} {DISABLED} on the target: the source runs it, and "
            "its rows come with the log"
        )
        yield Finding(Severity.FATAL, f"target: event {database}.{name}", "disabled", "enabled", todo)


def check_time_zones(situation: TargetSituation) -> Iterator[Finding]:
    """Time zones of logged statements that the target does not know."""
    target, needs = situation.target, situation.needs
    for zone in sorted(needs.time_zones):
        if not target.knows_time_zone(zone):
            loader, client = _ZONE_LOADERS[target.flavor]
            todo = f"load the time zone tables on the target with {loader}: statements need it (1298)"
            mend = (Command(f"{loader} /usr/share/zoneinfo | {client} --user=root --password mysql"),)
            yield Finding(Severity.FATAL, f"target: time zone {zone}", "known", "unknown", todo, mend=mend)


def check_timestamp(situation: TargetSituation) -> Iterator[Finding]:
    """``secure_timestamp`` on the target: statements could not run at the source's time."""
    target, needs = situation.target, situation.needs
    mode = target.value("secure_timestamp")
    if (needs.statements or needs.ddl) and mode in ("YES", "REPLICATION"):
        todo = "restart the target with secure_timestamp = NO: statements could not keep the source's time"
        yield Finding(Severity.FATAL, "target: secure_timestamp", "NO or SUPER", mode, todo)


def check_local_infile(situation: TargetSituation) -> Iterator[Finding]:
    """``local_infile = OFF`` on the target, for a window with LOAD DATA."""
    target, needs = situation.target, situation.needs
    if needs.loads and not target.is_on("local_infile"):
        todo = "SET GLOBAL local_infile = ON on the target: the files of LOAD DATA are sent as LOCAL ones"
        yield Finding(Severity.FATAL, "target: local_infile", "ON", target.value("local_infile"), todo)


def check_connections(situation: TargetSituation) -> Iterator[Finding]:
    """The target allows fewer connections than the apply tasks open."""
    target, needs = situation.target, situation.needs
    for name in ("max_connections", "max_user_connections"):
        limit = int(target.variables.get(name, "0"))
        if 0 < limit < needs.connections:
            # beside the sessions that use the limit now
            mend = (target.setting(name, limit + needs.connections),)
            todo = f"{mend[0]} on the target, or give the channel fewer lanes"
            yield Finding(
                Severity.FATAL, f"target: {name}", f"{needs.connections} or more", str(limit), todo, mend=mend
            )
    # the account's own limit stands before the server's
    own = target.own_connections
    if 0 < own < needs.connections and own != int(target.variables.get("max_user_connections", "0")):
        user, _, host = target.account.rpartition("@")
        mend = (f"ALTER USER '{user}'@'{host}' WITH MAX_USER_CONNECTIONS {own + needs.connections}",)
        todo = f"{mend[0]} on the target, or give the channel fewer lanes"
        where = f"target: MAX_USER_CONNECTIONS of {target.account}"
        yield Finding(Severity.FATAL, where, f"{needs.connections} or more", str(own), todo, mend=mend)


def check_table_caches(situation: TargetSituation) -> Iterator[Finding]:
    """The target's table caches are smaller than the number of tables in the window (advice)."""
    target, needs = situation.target, situation.needs
    for name in ("table_open_cache", "table_definition_cache"):
        limit = int(target.variables[name])
        if limit < needs.tables:
            todo = f"tables are opened again and again, which takes most of the time: SET GLOBAL {name} higher"
            yield Finding(Severity.INFO, f"target: {name}", f"{needs.tables} or more", str(limit), todo)


def check_ddl(situation: TargetSituation) -> Iterator[Finding]:
    """Settings of the target that matter for DDL: strict mode, required primary keys, no GTIDs (advice)."""
    target, needs = situation.target, situation.needs
    if not needs.ddl:
        return
    for name, why in _DDL_SETTINGS:
        if target.is_on(name):
            yield Finding(Severity.INFO, f"target: {name}", "OFF", target.variables[name], why)
    once = "gtid_mode" if target.flavor is Flavor.MYSQL else "log_bin"
    if target.value(once) not in ("ON", "1"):
        todo = "a DDL is exactly-once by the target's own GTID; without it, some stop and ask after a crash"
        yield Finding(Severity.INFO, f"target: {once}", "ON", target.variables.get(once, "none"), todo)
    elif target.flavor is Flavor.MYSQL:
        return
    if lacking := TABLE_IDS.lacking(target.grants):
        yield missing_privilege("target", target, TABLE_IDS, lacking)


def check_type_conversions(situation: TargetSituation) -> Iterator[Finding]:
    """``replica_type_conversions`` is set on the target (advice)."""
    target = situation.target
    for name in ("replica_type_conversions", "slave_type_conversions"):
        if target.variables.get(name):
            todo = "the server would convert types, which the table comparison refuses before: empty is clearer"
            yield Finding(Severity.INFO, f"target: {name}", "empty", target.variables[name], todo)
            break


def check_cluster(situation: TargetSituation) -> Iterator[Finding]:
    """The target is a node of a cluster, where leases, which alone keep a DDL on MariaDB from running twice, hold on
    one node only (advice)."""
    target = situation.target
    for name in ("wsrep_on", "group_replication_group_name"):
        if target.is_on(name):
            todo = (
                "leases hold on one node only, and on MariaDB they alone keep a DDL from running twice: let every lane "
                "connect to the same node, not to a balancer or a list of nodes"
            )
            yield Finding(Severity.INFO, f"target: {name}", "a single server", target.variables[name], todo)


_DDL_SETTINGS: Final = (
    ("sql_require_primary_key", "the session switches it off for the source's DDL; tables without a key are slow here"),
    ("innodb_strict_mode", "the target may refuse a CREATE or ALTER of rows too long for a page that a source took"),
)
