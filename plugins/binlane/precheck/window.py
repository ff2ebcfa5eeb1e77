"""Before the first write of a window: does the target fit the plan, and its tables the source's?"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from binlane.apply.refusals import driver_errors
from binlane.binlog.table_map import TableMap
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import BinlogError, SourceError
from binlane.model import Flavor, TableKey
from binlane.plan.row_accounting import ROWS_ONLY
from binlane.plan.transaction.altered_tables import Alterations, without_altered_parents
from binlane.plan.transaction.collations import Collations
from binlane.plan.transaction.rename import (
    name_of,
    namesakes,
    renamed_alterations,
    renamed_schema,
    without_own_name,
)
from binlane.plan.window.fold import EMPTY
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.database_defaults import check_defaults
from binlane.precheck.definers import check_definers
from binlane.precheck.finding import Finding
from binlane.precheck.packet_size import check_packets
from binlane.precheck.portability import check_demands, check_logged_types, read_target
from binlane.precheck.results import keep_definitions, keep_partitioned
from binlane.precheck.row_writer import chosen_writer, sql_findings, written_by_sql
from binlane.precheck.sequences import check_sequences
from binlane.precheck.server import Needs, check_tables, check_target, findings_of, raise_if_fatal
from binlane.precheck.statements import check_statements
from binlane.precheck.system_versioning import check_versioning
from binlane.schema.compare import Severity, compare_schemas, letter_case, not_reduced, rules_for
from binlane.schema.letter_case import lower
from binlane.schema.logged import compare_logged_key, compare_table_map
from binlane.schema.model import Schema
from binlane.servers.catalog import gtids_are_on, read_databases, read_partitioned, read_schema, version_number
from binlane.servers.engines import engine_of, in_background
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Extent, Selection
from binlane.source.ddl_after import altered_behind
from binlane.source.server import translated
from binlane.source.stream import ServerSource
from binlane.sql.parse.facts import StatementKind
from binlane.state.windows import read_window
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import Inputs

log = logging.getLogger(__name__)

_TABLE_ID: Final = bytes(6)
_WRITERS: Final = {"binlog": "BINLOG statements", "sql": "INSERT, UPDATE and DELETE"}
_LEAVING: Final = frozenset({"RESTRICT"})
"""What a foreign key does without changing the child."""
_TAIL_LIMIT: Final = 64 << 20
"""Bytes of log behind the window that are read only to know more of tables that it alters."""


def check_window(
    channel: ChannelConfig,
    endpoints: Endpoints,
    plan: WindowPlan,
    inputs: Inputs,
    plans: WorkFolder,
    selection: Selection,
) -> None:
    """Raises PrecheckError with everything that stands in the way; nothing has been written then.

    ``selection``: what the channel's file takes. Facts that the lanes need go into ``plans``, the plan's folder.
    """
    renaming = inputs.settings.renaming
    with (
        engine_of(endpoints.target).connect() as connection,
        in_background(partial(_source_schema, endpoints, _databases(plan), renaming)) as asked,
    ):
        target = read_schema(connection, _databases(plan))
        writer = chosen_writer(connection, channel.apply.writer)
        log.info("precheck: rows are written by %s", _WRITERS[writer])
        by_sql = written_by_sql(plan, target, writer)
        needs = replace(_needs(channel, plan, inputs, writer), row_statements=bool(by_sql))
        findings = [*check_target(connection, needs=needs)]
        number = version_number(target.version)
        findings += check_definers(connection, plan, target.flavor, number)
        knows = read_target(connection, target, number)
        # what is refused beside the position may run by itself, under a GTID (apply.nontransactional)
        by_gtid = channel.apply.allow_nontransactional and gtids_are_on(connection, target)
        window = read_window(connection, plan.channel, plan.window_id)
        if target.flavor is Flavor.MARIADB:  # which counts their rows twice
            keep_partitioned(plans, read_partitioned(connection, _databases(plan)) & plan.applied_tables)
        logged = asked()
    begun = window is not None and window.plan_digest is not None
    source = None if logged is None else renamed_schema(logged, partial(name_of, renaming))
    findings += _compared_tables(channel, endpoints, plan, (source, target), plans, renaming)
    findings += sql_findings(target, by_sql, channel.apply.allow_triggers)
    findings += check_packets(plan, by_sql, target, inputs.settings.packet)
    findings += _severed(selection, renamed_schema(target, renaming.source) if logged is None else logged)
    findings += _met(selection, renaming, logged)
    findings += _engines(plan, source, target, frozenset(by_sql) if by_gtid else None)
    findings += _written_by_statements(channel, plan, target)
    findings += _letter_case(plan, source, target)
    if not channel.apply.allow_unsafe:
        findings += _unsafe(plan)
    lenient = channel.apply.allow_nontransactional
    findings += check_demands(plan, knows, target, allow_nontransactional=lenient, by_sql=by_sql)
    if not begun:  # it was asked before, and some of it may have run
        refused = () if lenient else [key for key, table in target.tables.items() if not table.transactional]
        findings += check_statements(channel, endpoints.target, plan, plans, findings, by_sql, refused)
    findings += check_logged_types(plan, target.flavor)
    findings += check_sequences(plan, target, by_sql)
    findings += [] if begun else check_defaults(endpoints, plan, target, inputs.settings.rules)
    manifest = inputs.manifest
    findings += check_versioning(plan, target, {one.server_version for one in (*manifest.segments, *manifest.carried)})
    # an archive tells of no key but this one, and rows were folded by the target's
    other_key = Severity.FATAL if source is None or not plan.complete_images else Severity.NOT_REDUCED
    findings += _logged_tables(plan, target, other_key, begun=begun)
    if by_sql and not inputs.settings.measures_rows:
        log.warning(
            "precheck: the account could send BINLOG statements when the window was extracted: its rows were "
            "not measured for max_allowed_packet"
        )
    _log_others(findings)
    raise_if_fatal(findings)


def _log_others(findings: Iterable[Finding]) -> None:
    """Those that do not stop the window."""
    for finding in findings:
        if finding.severity is not Severity.FATAL:
            log.info("precheck: %s", finding)


def _compared_tables(
    channel: ChannelConfig,
    endpoints: Endpoints,
    plan: WindowPlan,
    schemas: tuple[Schema | None, Schema],
    plans: WorkFolder,
    renaming: Renaming,
) -> tuple[Finding, ...]:
    """Every touched table, source (None for an archive) against target, both in the target's names.

    The source's tables are seen as they are now, the rows are of the window. Whether a table was altered in between is
    looked up in the source's log, and only where it matters: if something differs, or if the window alters tables.
    """
    source, target = schemas
    touched = {*plan.applied_tables, *plan.undone, *(key for key in plan.loaded if key not in target.views)}
    altered = frozenset(key for key in touched if plan.altered.names(key))

    def compared(altered_since: Collection[TableKey], *alterations: Alterations) -> tuple[Finding, ...]:
        return check_tables(
            None if source is None else without_altered_parents(source, *alterations),
            without_altered_parents(target, *alterations),
            touched,
            created=altered,
            altered=altered | frozenset(altered_since),
            complete_images=plan.complete_images,
            allow_non_transactional=channel.apply.allow_nontransactional,
            collations=Collations(channel.collations).given,
        )

    findings = compared((), plan.altered)
    differ = any(finding.severity is Severity.FATAL for finding in findings)
    if source is None or not (differ or altered):
        return findings
    behind = _altered_behind(channel, endpoints, plan, limit=None if differ else _TAIL_LIMIT)
    if behind is None:
        return findings
    behind = renamed_alterations(behind, renaming)
    known = {key: table for key in altered if not behind.names(key) and (table := source.table(key)) is not None}
    keep_definitions(plans, replace(_bare(source), tables=known))
    since = [key for key in touched if behind.names(key)]
    return compared(since, plan.altered, behind) if differ else findings


def _bare(source: Schema) -> Schema:
    return Schema(source.flavor, source.version, source.settings)


def _altered_behind(
    channel: ChannelConfig, endpoints: Endpoints, plan: WindowPlan, limit: int | None
) -> Alterations | None:
    """What the source's log says of its tables behind the window; None if it cannot be told."""
    endpoint = endpoints.source
    assert endpoint is not None
    source = ServerSource(
        str(endpoint), endpoint.pymysql_arguments(), channel.source.server_id, channel.name,
        event_bytes=channel.source.event_bytes,
    )  # fmt: skip
    try:
        return altered_behind(source, plan.end, plan.end_gtid_set, limit)
    except (SourceError, BinlogError) as exc:
        log.warning("precheck: whether the source has altered tables since the window cannot be told: %s", exc)
        return None


def tables_with_other_keys(
    source: Schema | None, target: Schema, collations: Mapping[str, str] | None = None
) -> list[list[str]]:
    """Databases and tables whose keys are not the same on ``source``, in the target's names, and target: their changes
    are not folded."""
    if source is None:
        return []
    common = [key for key in target.tables if source.table(key) is not None]
    differences = compare_schemas(source, target, common, rules_for(source, target, collations=collations))
    return sorted([key.database, key.table] for key in not_reduced(differences))


def _needs(channel: ChannelConfig, plan: WindowPlan, inputs: Inputs, writer: str) -> Needs:
    statements = {StatementKind(kind) for kind in plan.kinds if kind != ROWS_ONLY}
    return Needs(
        databases=frozenset(
            key.database for key in (*plan.applied_tables, *plan.written, *plan.loaded, *plan.altered.tables)
        ),
        tables=len(plan.applied_tables),
        statements=bool(statements - {StatementKind.DDL, StatementKind.GLOBAL}),
        loads=StatementKind.LOAD_DATA in statements,
        ddl=StatementKind.DDL in statements,
        accounts=StatementKind.GLOBAL in statements,
        time_zones=plan.time_zones,
        biggest_item=inputs.settings.payload_bytes,
        connections=3 * (plan.lanes + 1),
        writer=writer,
        overwrite=channel.apply.on_conflict == "overwrite",
        copies=any(barrier.temporary is not None for barrier in plan.barriers),
    )


def _databases(plan: WindowPlan) -> frozenset[str]:
    """The databases that the window names; a server with thousands of others is not asked for their tables."""
    names = {key.database for key in (*plan.tables, *plan.loaded, *plan.undone, *plan.written, *plan.altered.tables)}
    return frozenset(names | set(map(lower, names)))


def _source_schema(endpoints: Endpoints, databases: frozenset[str], renaming: Renaming) -> Schema | None:
    """The source's schema as it is now, in its own names; None for an archive. ``databases``: the target's names."""
    if endpoints.source is None:
        return None
    with translated(str(endpoints.source)), driver_errors(), engine_of(endpoints.source).connect() as connection:
        # with those that stand under the new names: they would be one with the renamed
        named = namesakes(renaming, read_databases(connection), databases) if renaming else frozenset()
        return read_schema(connection, databases | named)


def _met(selection: Selection, renaming: Renaming, source: Schema | None) -> Iterator[Finding]:
    """Databases that keep their name, on which others are renamed, and those whose new names are one."""
    present = source.databases if source is not None else frozenset()
    taken = [name for name in present if selection.database(name)[0] is not Extent.NONE]
    for name, why in without_own_name(renaming, taken):
        todo = "rename it, too, or leave it out (filter.exclude_databases): docs/renames.md"
        yield Finding(Severity.FATAL, f"{name}: database", "a name of its own on the target", why, todo)


def _severed(selection: Selection, schema: Schema) -> Iterator[Finding]:
    """Foreign keys that change rows which are taken when rows change that are left out: no log tells of it.

    ``schema``: the source's, or for an archive the target's; in the source's names.
    """
    for child, table in sorted(schema.tables.items(), key=lambda found: str(found[0])):
        if selection.table(child) is not None:
            continue
        for key in table.foreign_keys:
            rule = selection.table(key.parent)
            if rule is not None and not {key.on_update, key.on_delete} <= _LEAVING:
                yield Finding(
                    Severity.FATAL,
                    f"{child}: foreign key {key.name}",
                    "a parent that the filter takes, since servers do not log what they change by a foreign key",
                    f"{key.parent}, left out ({rule}), ON DELETE {key.on_delete} ON UPDATE {key.on_update}",
                    "take both tables or none: docs/filters.md",
                )


def _letter_case(plan: WindowPlan, source: Schema | None, target: Schema) -> Iterator[Finding]:
    """Capital letters in names, where source and target do not agree on what they mean."""
    if source is not None:
        tables = (str(key) for key in (*plan.applied_tables, *plan.altered.tables, *plan.undone))
        shards = (name for shard in plan.shards for name in shard.split("+") if not name.startswith("#"))
        databases = (name for name in shards if name != EMPTY)
        for name, expected, found, todo in letter_case(source, target, [*tables, *databases]):
            yield Finding(Severity.FATAL, f"{name}: letters' case", f"{expected} as on the source", found, todo)


def _unsafe(plan: WindowPlan) -> Iterator[Finding]:
    """What the source itself flags as unsafe for statement format, and logs all the same."""
    for name, seqno in sorted(plan.unsafe.items()):
        todo = (
            "the target would write other values than the source did: log it as rows (binlog_format=MIXED), or set "
            "allow_unsafe in the channel's file and compare the rows afterwards"
        )
        yield Finding(Severity.FATAL, f"statement of seqno {seqno}", "what every server answers alike", name, todo)


def _written_by_statements(channel: ChannelConfig, plan: WindowPlan, target: Schema) -> Iterator[Finding]:
    """Tables without transactions that only statements write: their changes cannot commit with the position either."""
    judged = {*plan.applied_tables, *plan.undone, *plan.loaded}
    for key in sorted(plan.written - judged, key=str):
        table = target.table(key)
        if table is not None and not table.transactional and not channel.apply.allow_nontransactional:
            todo = "ALTER TABLE .. ENGINE=InnoDB on the target, or let the channel allow non-transactional tables"
            yield Finding(Severity.FATAL, f"{key}: engine", "a transactional one", table.engine, todo)


def _engines(
    plan: WindowPlan, source: Schema | None, target: Schema, by_sql: frozenset[TableKey] | None
) -> Iterator[Finding]:
    """What an error or a rollback leaves is what tables without transactions keep: they must be the same ones.

    ``by_sql``: tables whose rows statements write; None if every table without transactions stands in the way of a
    target that insists on GTIDs.
    """
    for key in sorted(plan.undone, key=str):
        theirs, ours = target.table(key), None if source is None else source.table(key)
        if theirs is None or (ours is not None and ours.transactional == theirs.transactional):
            continue
        expected = "unknown: an archive does not say it" if source is None else "unknown: no such table now"
        todo = (
            "the source's log holds a statement on it that ended with an error or was rolled back, after which each "
            "engine keeps something else: give both tables engines of one kind"
        )
        found = ours.engine if ours is not None else expected
        yield Finding(Severity.FATAL, f"{key}: engine", f"a kind as on the source ({found})", theirs.engine, todo)
    if target.settings.get("enforce_gtid_consistency", "OFF") != "ON":
        return
    for key in sorted({*plan.applied_tables, *plan.undone, *plan.written}, key=str):
        table = target.table(key)
        if table is not None and not table.transactional and (by_sql is None or key in by_sql):
            todo = (
                "such a target takes no change of it beside the lane's position (1785): ALTER TABLE .. ENGINE=InnoDB, "
                'or set apply.allow_nontransactional, with apply.writer = "binlog"'
            )
            expected = "a transactional one, with enforce_gtid_consistency=ON"
            yield Finding(Severity.FATAL, f"{key}: engine", expected, table.engine, todo)


def _logged_tables(plan: WindowPlan, target: Schema, other_key: Severity, *, begun: bool) -> Iterator[Finding]:
    """What the log itself says of its tables, against the target's as they are before the window.

    Of a table that the window alters, what was logged before it does; the rest is looked at when the lanes come to it
    (``apply.table_guard``). In a window that is ``begun`` such a table may be altered already, and was looked at.
    """
    for key, bodies in plan.table_maps.items():
        table = target.table(key)
        if begun and plan.altered.names(key):
            continue
        for body, seqno in bodies.items():
            if plan.altered.before(key, seqno) > 0:
                continue
            if table is not None:
                logged = TableMap.parse(memoryview(_TABLE_ID + bytes.fromhex(body)), flavor=plan.flavor)
                differences = compare_table_map(logged, plan.flavor, table)
                # names of other columns say enough
                yield from findings_of(differences or compare_logged_key(logged, table, other_key))
            elif plan.altered.names(key):
                todo = (
                    f"rows of seqno {seqno} come before any DDL of the window that names it: create it as it was then"
                )
                yield Finding(Severity.FATAL, f"{key}: table", "the table", "no such table", todo)
