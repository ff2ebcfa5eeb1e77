"""Before the first write of a window: does the target fit the plan, and its tables the source's?"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from binlane.apply.precheck import Finding, Needs, check_tables, check_target, findings_of, raise_if_fatal
from binlane.apply.refusals import driver_errors
from binlane.binlog.table_map import TableMap
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.model import TableKey
from binlane.plan.schema import Schema
from binlane.plan.schema_compare import Severity, compare_schemas, not_reduced, rules_for
from binlane.plan.schema_wire import compare_table_map
from binlane.plan.tally import ROWS_ONLY
from binlane.plan.window_plan import WindowPlan
from binlane.shards.facts import StatementKind
from binlane.source.server import translated
from binlane.state.catalog import read_schema, tables_altered_since
from binlane.state.engines import engine_of
from binlane.state.windows import read_window
from binlane.work.filter_job import Inputs

log = logging.getLogger(__name__)

_TABLE_ID: Final = bytes(6)


def check_window(channel: ChannelConfig, endpoints: Endpoints, plan: WindowPlan, inputs: Inputs) -> None:
    """Raises PrecheckError with everything that stands in the way; nothing has been written then."""
    with engine_of(endpoints.target).connect() as connection:
        target = read_schema(connection)
        findings = [*check_target(connection, needs=_needs(channel, plan, inputs))]
        window = read_window(connection, plan.channel, plan.window_id)
    source, altered_since = _source_schema(endpoints, plan)
    touched = {*plan.tables, *plan.undone}
    altered = frozenset(key for key in touched if plan.altered.names(key))
    findings += check_tables(
        source,
        target,
        touched,
        created=altered,
        altered=altered | altered_since,
        complete_images=set(plan.kinds) <= {ROWS_ONLY},
        allow_non_transactional=channel.apply.allow_nontransactional,
    )
    findings += _engines(plan, source, target)
    findings += _logged_tables(plan, target, begun=window is not None and window.plan_digest is not None)
    for finding in findings:
        if finding.severity is not Severity.FATAL:
            log.info("precheck: %s", finding)
    raise_if_fatal(findings)


def tables_with_other_keys(endpoints: Endpoints, target: Schema) -> list[list[str]]:
    """Databases and tables whose keys are not the same on source and target: their changes are not folded.

    An archive says nothing of keys: there the target's own are taken for the source's.
    """
    if endpoints.source is None:
        return []
    with engine_of(endpoints.source).connect() as connection:
        source = read_schema(connection, target.databases)
    common = [key for key in target.tables if source.table(key) is not None]
    differences = compare_schemas(source, target, common, rules_for(source, target))
    return sorted([key.database, key.table] for key in not_reduced(differences))


def _needs(channel: ChannelConfig, plan: WindowPlan, inputs: Inputs) -> Needs:
    statements = {StatementKind(kind) for kind in plan.kinds if kind != ROWS_ONLY}
    return Needs(
        databases=frozenset(key.database for key in plan.tables),
        statements=bool(statements - {StatementKind.DDL, StatementKind.GLOBAL}),
        ddl=StatementKind.DDL in statements,
        accounts=StatementKind.GLOBAL in statements,
        time_zones=plan.time_zones,
        biggest_item=inputs.settings.payload_bytes,
        connections=3 * (plan.lanes + 1),
    )


def _source_schema(endpoints: Endpoints, plan: WindowPlan) -> tuple[Schema | None, frozenset[TableKey]]:
    """The source's schema as it is now, and the tables altered after the window: theirs is not the window's."""
    if endpoints.source is None:
        return None, frozenset()
    name = str(endpoints.source)
    with translated(name), driver_errors(), engine_of(endpoints.source).connect() as connection:
        return read_schema(connection), tables_altered_since(connection, plan.end_time)


def _engines(plan: WindowPlan, source: Schema | None, target: Schema) -> Iterator[Finding]:
    """What an error or a rollback leaves is what tables without transactions keep: they must be the same ones."""
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
    for key in sorted({*plan.tables, *plan.undone}, key=str):
        table = target.table(key)
        if table is not None and not table.transactional:
            todo = "such a target takes no change of it beside the lane's position (1785): ALTER TABLE .. ENGINE=InnoDB"
            expected = "a transactional one, with enforce_gtid_consistency=ON"
            yield Finding(Severity.FATAL, f"{key}: engine", expected, table.engine, todo)


def _logged_tables(plan: WindowPlan, target: Schema, *, begun: bool) -> Iterator[Finding]:
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
                yield from findings_of(compare_table_map(logged, plan.flavor, table))
            elif plan.altered.names(key):
                todo = (
                    f"rows of seqno {seqno} come before any DDL of the window that names it: create it as it was then"
                )
                yield Finding(Severity.FATAL, f"{key}: table", "the table", "no such table", todo)
