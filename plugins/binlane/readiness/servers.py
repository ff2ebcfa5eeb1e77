"""The two servers and their accounts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.bootstrap.copy_checks import check_tables
from binlane.connections import Endpoint
from binlane.model import Flavor, plural
from binlane.precheck.account.privileges import EVERYWHERE, Need
from binlane.precheck.situation.facts import Server
from binlane.precheck.situation.finding import Command, Finding
from binlane.precheck.target.server import missing_privilege
from binlane.readiness.channel_grants import scopes_of
from binlane.readiness.needs import account_privileges, source_privileges
from binlane.readiness.situation import Readiness
from binlane.rename_rules import names_a_file
from binlane.schema.compare import Severity
from binlane.servers.greeting import other_account
from binlane.servers.names import is_named
from binlane.shards.selection import Extent, split_pattern
from binlane.state.migrations.check import require_current
from binlane.state.tables import SCHEMA

_OLDEST: Final = {Flavor.MARIADB: (10, 4, 1), Flavor.MYSQL: (8, 0, 0)}
"""The first with a lock that makes DDL wait and nothing else."""
_PLACE: Final = ("hostname", "port", "datadir", "server_id")
"""Two servers differ in one of these."""
_BY_HAND: Final = "create the objects by hand, copy the rows by a dump, then `binlane init CHANNEL --start FILE:OFFSET`"
_EXECUTED: Final = (
    "SHOW GLOBAL STATUS WHERE variable_name IN ('Com_execute_immediate', 'Com_execute_sql', 'Com_stmt_execute')"
)
_SECONDS_APART: Final = 5.0
_WILD: Final = re.compile(r"[*?\[]")
_ALL_NAMES: Final = Need(
    "SHOW DATABASES",
    ("SELECT",),
    "the filter has a pattern, and databases that the account is not shown would be missing",
)


def check_source_connection(situation: Readiness) -> Iterator[Finding]:
    """The source can be reached, and lets the account in. Raises SourceError."""
    if situation.source is not None:
        situation.source.rows("SELECT 1")
        yield from _other_account("source", situation.source, situation.source.endpoint)


def check_target_connection(situation: Readiness) -> Iterator[Finding]:
    """The target can be reached, and lets the account in. Raises TargetError."""
    situation.target.rows("SELECT 1")
    yield from _other_account("target", situation.target, situation.endpoint)


def _other_account(place: str, server: Server, endpoint: Endpoint) -> Iterator[Finding]:
    """That the statements of other findings are about another account than the login's."""
    if (found := other_account(endpoint, server.account)) is not None:
        todo = "run no statement about it before you know which: look at host, port and ssl_mode of the connection"
        yield Finding(Severity.INFO, f"{place}: account", *found, todo)


def check_two_servers(situation: Readiness) -> Iterator[Finding]:
    """Source and target are one server: windows would apply its own changes to it, again and again, unless they end
    before what they write."""
    source, target = situation.source, situation.target
    if source is None or situation.asked.made:
        return
    ours, theirs = ([server.variables.get(name) for name in _PLACE] for server in (source, target))
    if ours == theirs:
        found = f"the same one, {ours[0]}:{ours[1]}, {ours[2]}"
        todo = "correct source.connection or target.connection of the channel"
        yield Finding(Severity.FATAL, "target: server", "another one than the source", found, todo)


def check_source(situation: Readiness) -> Iterator[Finding]:
    """The source's log is off or filtered, or another reader has the channel's server id. Raises those errors."""
    if situation.source is not None:
        situation.source.log.state()
    yield from ()


def check_database_names(situation: Readiness) -> Iterator[Finding]:
    """Databases of the source, with tables, whose rows no window takes, whatever the filter says: those of before
    MySQL 5.1, which are listed by their folder's name. A folder without tables is no database (``lost+found``)."""
    source = situation.source
    if source is None:
        return
    selection, _ = situation.rules
    query = f"SELECT 1 FROM information_schema.tables WHERE {is_named('table_schema', ':name')} LIMIT 1"
    for (name,) in source.rows("SELECT schema_name FROM information_schema.schemata"):
        if names_a_file(name) and source.rows(query, name=name):
            taken = selection.database(name)[0] is not Extent.NONE
            yield Finding(
                Severity.FATAL if taken else Severity.INFO,
                "source: databases",
                "plain names",
                f"{name} with tables: no first copy takes them, and each window with their rows is refused",
                f"give it a plain name before the channel begins: ALTER DATABASE {identifier(name)} UPGRADE DATA "
                "DIRECTORY NAME; on MySQL 8.0 and newer RENAME TABLE into another database",
            )


def check_source_privileges(situation: Readiness) -> Iterator[Finding]:
    """Privileges that the source's account lacks."""
    source, asked = situation.source, situation.asked
    if source is None:
        return
    # an account without any privilege sees no database
    databases = None if scopes_of(situation.channel) == (EVERYWHERE,) else frozenset(situation.databases)
    if databases is not None:
        # a name without a pattern is asked for whether the account sees the database or not
        databases |= {name for name in situation.channel.filter.include_databases if not _WILD.search(name)}
        databases -= {*situation.channel.apply.allow_unseen}
    if asked.copies and databases is not None and _may_hide_databases(situation):
        yield missing_privilege("source", source, _ALL_NAMES, (None,))
    needs = source_privileges(source.flavor, source.number, databases, copies=asked.copies, users=asked.users)
    selection, _ = situation.rules
    of_channel = (one for one in source.grants.revoked if selection.database(one.database or "")[0] is not Extent.NONE)
    grants = replace(source.grants, revoked=tuple(of_channel))
    named: set[tuple[str, tuple[str | None, ...]]] = set()
    for need in needs:
        # two reasons may ask for one privilege, or for one that stands in for another
        lacking = need.lacking(grants)
        if lacking and (need.name, lacking) not in named and named.isdisjoint(_standing_in(need)):
            named.add((need.name, lacking))
            yield missing_privilege("source", source, need, lacking)


def _standing_in(need: Need) -> set[tuple[str, tuple[str | None, ...]]]:
    """What meets a need when it is granted everywhere, as ``named`` has it."""
    return {(name, (None,)) for name in need.substitutes}


def _may_hide_databases(situation: Readiness) -> bool:
    """Whether a pattern of the filter may match databases whose names the account is not shown: a first copy would be
    without them."""
    assert situation.source is not None
    grants = situation.source.grants
    patterns = [each for each in situation.channel.filter.include_databases if _WILD.search(each)]
    patterns += [each for each in situation.channel.filter.include_tables if _WILD.search(split_pattern(each)[0])]
    if not patterns or any(not grants.missing((name,)) for name in (_ALL_NAMES.name, *_ALL_NAMES.substitutes)):
        return False
    scopes = scopes_of(situation.channel, has_patterns=grants.has_wildcards)
    return any(not grants.covers(scope) for scope in scopes)


def check_row_format(situation: Readiness) -> Iterator[Finding]:
    """The source logs statements, or parts of rows (advice)."""
    source = situation.source
    for name, value in (("binlog_format", "ROW"), ("binlog_row_image", "FULL")):
        if source is not None and source.value(name) != value:
            mend = (source.setting(name, value),)
            todo = f"{mend[0]} on the source, for the exact rows in its log"
            if name == "binlog_format" and (executed := _prepared_statements(source)):
                todo += (
                    f": it has executed {plural(executed, 'prepared statement')}, whose parameters lose their types "
                    "and character sets in a log of statements (docs/compatibility.md)"
                )
            yield Finding(Severity.INFO, f"source: {name}", value, source.value(name), todo, mend=mend)


def _prepared_statements(source: Server) -> int:
    """How many the server has executed since its start, of SQL and of clients."""
    return sum(int(value) for _, value in source.rows(_EXECUTED))


def check_log_sync(situation: Readiness) -> Iterator[Finding]:
    """The source does not write each transaction's events to its disk before it commits: behind a crash its log may
    lack transactions that it has (advice)."""
    source, name = situation.source, "sync_binlog"
    if source is not None and source.value(name) != "1":
        mend = (source.setting(name, 1),)
        todo = f"{mend[0]} on the source: behind a crash its log may lack transactions that it has"
        yield Finding(Severity.INFO, f"source: {name}", "1", source.value(name), todo, mend=mend)


def check_target_privileges(situation: Readiness) -> Iterator[Finding]:
    """Privileges that the target's account lacks."""
    target, needs = situation.target, situation.needs
    asked = situation.asked
    takes_all = (asked.copies or asked.windows) and scopes_of(situation.channel) == (EVERYWHERE,)
    named: set[tuple[str, tuple[str | None, ...]]] = set()
    for need in account_privileges(target.flavor, target.number, needs):
        lacking = need.lacking(target.grants)
        if takes_all and need.databases == needs.databases and len(lacking) == len(needs.databases):
            # one GRANT, not one a database; and some that the source's account does not see yet
            lacking = need._replace(databases=None).lacking(target.grants)
        if lacking and named.isdisjoint(_standing_in(need)):
            named.add((need.name, lacking))
            yield missing_privilege("target", target, need, lacking)


def check_state(situation: Readiness) -> Iterator[Finding]:
    """The schema ``binlane`` is of another version, or damaged. Raises StateSchemaError."""
    if situation.target.rows(
        f"SELECT 1 FROM information_schema.schemata WHERE {is_named('schema_name', ':name')}", name=SCHEMA
    ):
        situation.target.ask(require_current)
    yield from ()


def check_packets(situation: Readiness) -> Iterator[Finding]:
    """The target takes shorter statements than the source: its longest rows may not arrive (advice)."""
    if situation.source is None:
        return
    ours, theirs = (int(each.variables["max_allowed_packet"]) for each in (situation.source, situation.target))
    if theirs < ours:
        mend = (situation.target.setting("max_allowed_packet", ours),)
        todo = f"{mend[0]} on the target: a row that the source holds could be too long for it"
        yield Finding(
            Severity.INFO, "target: max_allowed_packet", f"{ours} as on the source", str(theirs), todo, mend=mend
        )


def check_clocks(situation: Readiness) -> Iterator[Finding]:
    """A server's clock differs from this machine's: windows end by the source's, lag counts by this one (advice)."""
    servers: tuple[tuple[str, Server | None], ...] = (("source", situation.source), ("target", situation.target))
    for name, server in servers:
        if server is None:
            continue
        before = time.time()
        theirs = float(server.rows("SELECT UNIX_TIMESTAMP(NOW(6))")[0][0])
        apart = theirs - (before + time.time()) / 2
        if abs(apart) > _SECONDS_APART:
            found, todo = f"{apart:+.0f} s", "synchronize the clocks (chronyc tracking shows the offset)"
            yield Finding(
                Severity.INFO, f"{name}: clock", "this machine's time", found, todo, mend=(Command("chronyc makestep"),)
            )


def check_family(situation: Readiness) -> Iterator[Finding]:
    """Source and target are of different families: binlane does not translate definitions."""
    source, target = situation.source, situation.target
    if source is not None and source.flavor is not target.flavor:
        expected = f"a {source.flavor.value} server, as the source is"
        found = f"{target.flavor.value} {target.version}"
        yield Finding(
            Severity.FATAL, "target: family", expected, found, f"binlane does not translate definitions: {_BY_HAND}"
        )


def check_source_version(situation: Readiness) -> Iterator[Finding]:
    """The source has no lock that makes DDL wait."""
    source = situation.source
    if source is not None and source.number < _OLDEST[source.flavor]:
        oldest = ".".join(map(str, _OLDEST[source.flavor]))
        todo = "no lock makes DDL wait there: load a dump or a backup, then `binlane init CHANNEL --start FILE:OFFSET`"
        yield Finding(
            Severity.FATAL, "source: version", f"{source.flavor.value} {oldest} or newer", source.version, todo
        )


def check_letter_case(situation: Readiness) -> Iterator[Finding]:
    """Source and target store names differently."""
    name, source, target = "lower_case_table_names", situation.source, situation.target
    if source is not None and source.value(name) != target.value(name):
        todo = (
            "names would refer to other objects: load a dump by hand, then `binlane init CHANNEL --start FILE:OFFSET`"
        )
        expected = f"{source.value(name)}, as on the source"
        yield Finding(Severity.FATAL, f"target: {name}", expected, target.value(name), todo)


def check_copied_tables(situation: Readiness) -> Iterator[Finding]:
    """Tables that no snapshot holds. Raises PrecheckError, which names them."""
    if situation.source is not None:
        check_tables(situation.schema, situation.source.endpoint)
    yield from ()


def check_prepared(situation: Readiness) -> Iterator[Finding]:
    """XA transactions are prepared on the source: their changes would be in neither the snapshot nor a window."""
    if situation.source is not None and (prepared := situation.source.rows("XA RECOVER")):
        found = f"{len(prepared)} XA transactions are prepared"
        todo = "XA COMMIT or XA ROLLBACK each of them on the source"
        yield Finding(Severity.FATAL, "source: XA RECOVER", "none", found, todo)
