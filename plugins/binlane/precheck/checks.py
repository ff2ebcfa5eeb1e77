"""All that is looked at before a window's first write, by name: ``CHECKS``; and ``check_window``, which runs it.

A check is a function of the situation that gives its findings, in their order, and writes nothing. To add one: a
function in the module of its subject, a line here, and a test that has its name in it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from binlane.activity import doing
from binlane.binlog.types.literals import quoted
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import with_channel
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.bodies import (
    equal_documents,
    function_names,
    kept_rows,
    loadable_functions,
    numbers_between,
    other_versions,
    row_order,
    tables_behind,
    unread_bodies,
    unsafe_bodies,
)
from binlane.precheck.results import has_left_programs, keep_for_lanes, keep_for_next_window
from binlane.precheck.situation.finding import Finding, raise_if_fatal
from binlane.precheck.situation.situation import Situation, TargetSituation, situation_of
from binlane.precheck.statements import (
    account_programs,
    literal_characters,
    other_modes,
    session_variables,
    statement_kinds,
    time_zones,
)
from binlane.precheck.statements import window_statements as statements
from binlane.precheck.statements.default_databases import check_default_databases
from binlane.precheck.tables import (
    converted_columns,
    differences,
    generated_columns,
    ignored_errors,
    left_out_parents,
    lost_tables,
    partitions,
    renamed_columns,
    visibility,
)
from binlane.precheck.tables import storage_engines as engines
from binlane.precheck.tables.default_collations import check_default_collations
from binlane.precheck.target import (
    definers,
    encryption,
    grants,
    open_transactions,
    portability,
    row_events,
    server,
    sql_writer,
)
from binlane.precheck.target.granted_objects import check_granted_objects
from binlane.schema.compare import Severity
from binlane.shards.selection import Selection
from binlane.sql.parse.lexer import Unreadable
from binlane.work.files import Digests, WorkFolder
from binlane.work.plan_inputs import Inputs

log = logging.getLogger(__name__)

_Looked = TypeVar("_Looked", bound=TargetSituation)
_ACCOUNT: Final = " TO the account"
_TEXTS: Final = "the window's statements, and the definitions behind them"
_UNREAD: Final = (
    "if it is a statement that the target does not take, another finding names it; else leave its table out, or bring "
    "its change over by hand: docs/filters.md#what-is-refused"
)
_WRITTEN_BY: Final = {False: "BINLOG statements", True: "INSERT, UPDATE and DELETE"}

TARGET_CHECKS: Final[Mapping[str, Callable[[TargetSituation], Iterable[Finding]]]] = {
    "target-version": server.check_version,
    "proxy": server.check_proxy,
    "privileges": server.check_privileges,
    "max-allowed-packet": server.check_packet,
    "binlog-format": server.check_binlog_format,
    "read-only": server.check_read_only,
    "events": server.check_events,
    "time-zones": server.check_time_zones,
    "secure-timestamp": server.check_timestamp,
    "local-infile": server.check_local_infile,
    "connections": server.check_connections,
    "table-caches": server.check_table_caches,
    "ddl-settings": server.check_ddl,
    "type-conversions": server.check_type_conversions,
    "cluster": server.check_cluster,
    "passed-errors": row_events.check_passed_errors,
    "rewritten-rows": row_events.check_rewritten_rows,
}
"""The server and the account alone: before a first copy, too. In the order of their findings."""
CHECKS: Final[Mapping[str, Callable[[Situation], Iterable[Finding]]]] = {
    **TARGET_CHECKS,
    "statement-privileges": definers.check_statement_privileges,
    "definers": definers.check_definers,
    "unseen-tables": visibility.check_visibility,
    "table-definitions": differences.check_definitions,
    "sql-writer": sql_writer.check_sql_writer,
    "long-statements": sql_writer.check_packets,
    "filtered-parents": differences.check_filtered_parents,
    "left-out-parents": left_out_parents.check_left_out_parents,
    "renamed-databases": differences.check_renamed_databases,
    "other-channels": differences.check_other_channels,
    "rolled-back-engines": engines.check_rolled_back_engines,
    "gtid-consistency": engines.check_gtid_consistency,
    "lost-notes": engines.check_lost_notes,
    "letter-case": differences.check_letter_case,
    "statement-kinds": statement_kinds.check_kinds,
    "other-modes": other_modes.check_other_modes,
    "other-versions": other_versions.check_other_versions,
    "unsafe-statements": statements.check_unsafe,
    "literal-characters": literal_characters.check_literal_characters,
    "unsafe-bodies": unsafe_bodies.check_unsafe_bodies,
    "unread-bodies": unread_bodies.check_unread_bodies,
    "row-order": row_order.check_row_order,
    "numbers-between": numbers_between.check_numbers,
    "equal-documents": equal_documents.check_equal_documents,
    "open-transactions": open_transactions.check_open_transactions,
    "features": portability.check_features,
    "encryption": encryption.check_encryption,
    "syntax": statements.check_syntax,
    "new-triggers": sql_writer.check_new_triggers,
    "copied-engines": engines.check_copied_engines,
    "grants": grants.check_grants,
    "granted-objects": check_granted_objects,
    "dropped-functions": definers.check_owned,
    "libraries": portability.check_libraries,
    "loadable-functions": loadable_functions.check_called,
    "function-names": function_names.check_function_names,
    "renamed-columns": renamed_columns.check_renamed_columns,
    "converted-columns": converted_columns.check_converted_columns,
    "partitions": partitions.check_partitions,
    "kept-rows": kept_rows.check_kept_rows,
    "ignored-errors": ignored_errors.check_ignored_errors,
    "tables-behind": tables_behind.check_tables_behind,
    "fired-triggers": statements.check_fired_triggers,
    "stored-programs": statements.check_stored_programs,
    "account-programs": account_programs.check_account_programs,
    "fulltext-programs": engines.check_fulltext_programs,
    "temporary-tables": statements.check_temporary_tables,
    "table-settings": engines.check_table_settings,
    "logged-types": portability.check_logged_types,
    "sequences": differences.check_sequences,
    "default-collations": check_default_collations,
    "system-versioning": differences.check_versioning,
    "transaction-histories": differences.check_transaction_histories,
    "lost-tables": lost_tables.check_lost_tables,
    "logged-tables": differences.check_logged_tables,
    "generated-columns": generated_columns.check_generated_columns,
    "zones": time_zones.check_zones,
    "session-variables": session_variables.check_session_variables,
    "unlogged-lengths": differences.check_unlogged_lengths,
    "read-only-databases": differences.check_read_only_databases,
    "default-databases": check_default_databases,
}


ASKED_AGAIN: Final = frozenset(
    {
        *TARGET_CHECKS,
        "statement-privileges",
        "table-definitions",
        "long-statements",
        "lost-tables",
        "logged-tables",
    }
)
"""The checks of a window that has begun: those that look at what somebody may have changed on the target since. The
others have passed, and would look at what its own statements have done, or at a source that has gone on."""


OF_OVERWRITING: Final = frozenset({"unlogged-lengths"})
"""What has to hold of the rows of a window that overwrites: apply.on_conflict may be another one than when it began.
Lanes look at the rest themselves (``apply.rows.computed_values``, ``apply.rows.conflict_overwrite``)."""


OF_PROGRAMS: Final = frozenset({"account-programs", "function-names", "unread-bodies", "unsafe-bodies"})
"""What has been looked at of routines and views that statements reach, when ``reached.json`` is written."""


def checks_of(situation: Situation) -> Mapping[str, Callable[[Situation], Iterable[Finding]]]:
    """The checks that a window is asked for. One that has begun, and whose ``reached.json`` is gone, takes the target's
    programs as they are now, so they are looked at again."""
    if not situation.begun:
        return CHECKS
    asked = ASKED_AGAIN if has_left_programs(situation) else ASKED_AGAIN | OF_PROGRAMS
    if situation.channel.apply.on_conflict.overwrites:
        asked |= OF_OVERWRITING
    return {name: check for name, check in CHECKS.items() if name in asked}


def check_window(
    channel: ChannelConfig,
    endpoints: Endpoints,
    plan: WindowPlan,
    inputs: Inputs,
    plans: WorkFolder,
    selection: Selection,
) -> Digests:
    """Raises PrecheckError with everything that stands in the way. The check itself writes nothing to the target.

    ``selection``: what the channel's file takes. Facts that the lanes and the next window need go into ``plans``, the
    plan's folder, and the one above it; returns the digests of these files.
    """
    asked = situation_of(channel, endpoints, plan, inputs, plans, selection)
    with doing("check: the definitions of both servers"), asked as situation:
        log.info("precheck: rows are written by %s", _WRITTEN_BY[situation.needs.by_statements])
        findings = tuple(_to_be_typed(each, situation) for each in run_checks(situation, checks_of(situation)))
        if situation.by_sql and not situation.settings.measures_rows:
            log.warning(
                "precheck: the account could send BINLOG statements when the window was extracted: its rows were "
                "not measured for max_allowed_packet"
            )
        for finding in findings:
            if finding.severity is not Severity.FATAL:
                log.info("precheck: %s", finding)
        raise_if_fatal(findings, begun=situation.begun)
        return {**keep_for_lanes(situation), **keep_for_next_window(situation)}


def _to_be_typed(finding: Finding, situation: Situation) -> Finding:
    """The finding, with the channel's name in the commands of its next step, and the account's in its statements."""
    todo = with_channel(finding.todo, situation.channel.name)
    if _ACCOUNT in todo and not finding.where.startswith("source"):
        user, _, host = situation.target.account.rpartition("@")
        todo = todo.replace(_ACCOUNT, f" TO {quoted(user)}@{quoted(host)}")
    return replace(finding, todo=todo)


def run_checks(situation: _Looked, checks: Mapping[str, Callable[[_Looked], Iterable[Finding]]]) -> tuple[Finding, ...]:
    """What the checks find, in the table's order, each finding with its check's name."""
    found: list[Finding] = []
    for name, check in checks.items():
        with doing(f"check {name}"):
            try:
                found += (replace(finding, check=name) for finding in check(situation))
            except Unreadable as unreadable:
                found.append(
                    Finding(Severity.FATAL, _TEXTS, "texts that binlane reads", str(unreadable), _UNREAD, check=name)
                )
    return tuple(found)
