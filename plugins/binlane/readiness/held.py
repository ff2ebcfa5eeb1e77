"""What the source holds, and a first copy makes on the target: may the account make it, and does the server take it?"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from binlane.bootstrap.broken_views import stand_ins
from binlane.bootstrap.copy_checks import EMPTY, NOT_EMPTY, check_functions, foreign_objects
from binlane.bootstrap.definition_copy import Definition, contents
from binlane.bootstrap.rehearsal import OLD_FORMAT, READ_ONLY, rehearse
from binlane.bootstrap.sessions import write_session
from binlane.bootstrap.spatial_references import lacking_references
from binlane.bootstrap.view_functions import ROUTINES, InvokerRoutine, changing_the_server, invoker_routines
from binlane.model import Flavor, plural
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.parser import StatementJudge
from binlane.precheck.situation.situation import Needs, TargetSituation
from binlane.precheck.tables.differences import parents_left_out
from binlane.precheck.target.definers import lacking_for_definers
from binlane.precheck.target.grants import lacking_for_grants, partial_revokes
from binlane.precheck.target.portability import OF_OTHERS, trust, unsupported, untrusted_account
from binlane.precheck.target.server import check_time_zones
from binlane.readiness.situation import Readiness
from binlane.schema.compare import Severity
from binlane.schema.normalize import collation_name
from binlane.servers.catalog import read_databases, read_foreign_keys
from binlane.servers.stored_bodies import asking
from binlane.sql.accounts import shown_accounts
from binlane.sql.charset import definition_context, tokens_in
from binlane.sql.parse.lexer import TokenKind, Unreadable
from binlane.sql.program_names import folded_name
from binlane.sql.requirements import TRUSTED_FUNCTION, TRUSTED_MAKER, requirements_of
from binlane.state.tables import SCHEMA

_SHOWN: Final = 3
"""How many objects a finding names."""
_FUNCTION: Final = "function"
_VIEW: Final = "VIEW"
_NO_ROUTINES: Final = frozenset({_VIEW, "TRIGGER", "EVENT"})
_READ_CLIENTS: Final = frozenset({"", "utf8mb4", "utf8mb3", "utf8", "latin1", "ascii"})
"""Character sets of clients in which a text's ASCII letters are bytes of their own."""
_REHEARSED: Final = ("CREATE", "DROP")
_NO_REFERENCE: Final = 3548
_WIDER_KEYS: Final = "SET GLOBAL innodb_default_row_format = DYNAMIC on the target, as on the source"
_LONGER_ROWS: Final = (
    "start the target with the source's innodb_page_size, or ALTER the table on the source so that its rows are shorter"
)
_OF_CODES: Final[Mapping[int, str]] = {
    READ_ONLY: "SET GLOBAL innodb_read_only_compressed = OFF on the target",
    OLD_FORMAT: "SET GLOBAL mysql56_temporal_format = ON on the target, as on the source",
    1071: _WIDER_KEYS,
    1709: _WIDER_KEYS,
    1173: "SET GLOBAL innodb_force_primary_key = OFF on the target, or give the table a key on the source",
    1005: _LONGER_ROWS,
    1118: _LONGER_ROWS,
    3510: (
        "CREATE TABLESPACE of this name on the target, as on the source, or ALTER TABLE ... TABLESPACE "
        "innodb_file_per_table on the source"
    ),
}
"""By the server's error."""
_TRUSTED: Final = frozenset({TRUSTED_FUNCTION, TRUSTED_MAKER})


def check_copied_databases(situation: Readiness) -> Iterator[Finding]:
    """No database to copy, or objects on the target in those that are copied. Where the channel may also begin without
    a copy, as over a restored backup, that is advice."""
    if situation.source is None or situation.finds_its_own or situation.exists:
        return
    severity = Severity.INFO if situation.asked.may_begin else Severity.FATAL
    if not situation.databases:
        yield Finding(severity, "source: databases", "one to copy", "none", "use `binlane init CHANNEL`")
        return
    with contextlib.closing(write_session(situation.endpoint)) as session:
        there = {*contents(session, situation.databases)} - stand_ins(session, situation.databases)
    if there:
        names = sorted(map(str, there))
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        found = f"{foreign_objects(there)}: {', '.join(names[:_SHOWN])}{more}"
        todo = f"{NOT_EMPTY}; over a restored backup `binlane init CHANNEL --start` with its place begins the channel"
        yield Finding(severity, situation.place, EMPTY, found, todo)


def check_invoker_routines(situation: Readiness) -> Iterator[Finding]:
    """Routines that MariaDB may call as the target's account to make a view. Raises PrecheckError, which names them."""
    source, target = situation.source, situation.target
    if source is not None and target.flavor is Flavor.MARIADB:
        others = frozenset(target.ask(read_databases)).difference(situation.databases)
        check_functions(situation.programs, others, situation.endpoint, source.flavor)
    yield from ()


def check_definers(situation: Readiness) -> Iterator[Finding]:
    """Views, routines, triggers and events whose definers the target's account may not set."""
    if situation.source is not None:
        made = [each for name, _ in situation.accounts.made for each in shown_accounts(name)]
        # of no transaction: seqno 0
        requirements = {requirement: 0 for asked in situation.requirements.values() for requirement in asked}
        yield from joined(lacking_for_definers(situation.target, requirements, made))


def check_accounts(situation: Readiness) -> Iterator[Finding]:
    """Accounts, roles and privileges of the source that the target's account may not create and grant, or that the
    target does not take."""
    source, target = situation.source, situation.target
    if source is None:
        return
    statements = situation.account_statements
    yield from lacking_for_grants(target, statements)
    yield from partial_revokes(target, lambda: source.is_on("partial_revokes"), statements)
    for statement in statements:
        for requirement in sorted(requirements_of(statement.sql, statement.facts, statement.dialect)):
            if requirement.feature not in OF_OTHERS:
                missing = unsupported(requirement, target, source.flavor, situation.collations)
                if missing is not None:
                    found, todo = missing
                    what = f"{requirement.feature} {requirement.detail}".rstrip()
                    yield Finding(Severity.FATAL, f"{statement.where}: {what}", "a target that has it", found, todo)


def check_programs(situation: Readiness) -> Iterator[Finding]:
    """Views, routines, triggers and events that the target does not take: its version, its settings."""
    if situation.source is not None:
        yield from joined(itertools.chain(_unsupported(situation), _unknown_defaults(situation)))


def check_program_texts(situation: Readiness) -> Iterator[Finding]:
    """Views, routines, triggers and events whose text the target's parser refuses, or that call a function which the
    target does not have."""
    source, target = situation.source, situation.target
    if source is None or source.flavor is not target.flavor or not situation.programs:
        return
    made = frozenset(folded_name(each.name) for each in situation.programs if each.kind not in _NO_ROUTINES)
    judge = StatementJudge.open(target.engine)
    try:
        for each in situation.programs:
            if each.client not in _READ_CLIENTS or each.broken:
                continue
            mode = "" if each.kind == _VIEW else each.sql_mode
            verdict = judge.judge_definition(each.database, mode, each.statement, made)
            if verdict is None and each.kind == _VIEW:
                # a table that is not there yet is named first
                verdict = judge.lacks_function(_called(each, source.flavor))
            if verdict is not None:
                todo = "change it on the source, upgrade the target, or leave its database out (--databases)"
                found = f"{verdict.message} ({verdict.code})"
                yield Finding(Severity.FATAL, str(each.schema_object), "a target that takes it", found, todo)
    finally:
        judge.close()


def _called(view: Definition, flavor: Flavor) -> tuple[str, ...]:
    """The functions of the server itself that a view calls: it shows their names unquoted, and those of others
    quoted."""
    try:
        tokens = tokens_in(view.statement, definition_context("", view.client), flavor)
    except Unreadable:
        return ()
    pairs = itertools.pairwise(tokens)
    found = (each.text.lower() for each, after in pairs if each.kind is TokenKind.WORD and after.text == "(")
    return tuple(dict.fromkeys(name for name in found if name.isascii() and name.isidentifier()))


def check_trust(situation: Readiness) -> Iterator[Finding]:
    """The target would not let the account make the triggers and functions of the log; advice while there are none."""
    target, asked = situation.target, situation.asked
    # a first copy looks at each of them
    if asked.copies or not situation.needs.ddl or target.trusts_account:
        return
    has_some = bool(target.triggers) or any(each.kind == _FUNCTION for each in target.programs)
    found, todo = untrusted_account(target)
    severity = Severity.FATAL if has_some else Severity.INFO
    expected = "a target that takes them from the account"
    todo += "; a restart forgets SET GLOBAL: write it into the option file, too, or SET PERSIST on MySQL"
    yield Finding(severity, "target: triggers and functions", expected, found, todo, mend=(trust(target),))


def check_view_functions(situation: Readiness) -> Iterator[Finding]:
    """Functions of a MariaDB server that a view may have called by whoever looks at it, with what a read-only
    transaction does not stop. Asked before anything looks at a view."""
    for place, server in (("source", situation.source), ("target", situation.target)):
        if server is None or server.flavor is not Flavor.MARIADB:
            continue
        for name, what in changing_the_server(server.ask(_invoker_routines, server.rows(ROUTINES))):
            expected = "no function with SQL SECURITY INVOKER that changes the server"
            todo = (
                "a view can have it called by this account, whenever a command looks at the view: make it SQL SECURITY "
                "DEFINER, or take the statement out of it, or drop it"
            )
            yield Finding(Severity.FATAL, f"{place}: function {name}", expected, what, todo)


def _invoker_routines(connection: Connection, rows: Sequence[Sequence[object]]) -> tuple[InvokerRoutine, ...]:
    return invoker_routines(rows, asking(connection))


def check_event_time_zones(situation: Readiness) -> Iterator[Finding]:
    """Time zones of the source's events that the target does not know."""
    if situation.source is not None:
        zones = frozenset(each.time_zone for each in situation.programs if each.time_zone)
        yield from check_time_zones(TargetSituation(situation.target, Needs(time_zones=zones)))


def check_filtered_parents(situation: Readiness) -> Iterator[Finding]:
    """Foreign keys with actions from a table that the filter takes to one that it leaves out."""
    selection, _ = situation.rules
    if situation.source is not None and selection.selects:
        keys = situation.source.ask(read_foreign_keys, situation.databases)
        yield from parents_left_out(selection, keys)


def check_spatial_references(situation: Readiness) -> Iterator[Finding]:
    """Spatial reference systems of the source's columns and values that the target lacks, or defines otherwise."""
    source = situation.source
    if source is None or source.flavor is not situation.target.flavor:
        return
    for each in lacking_references(source, situation.target, situation.schema.tables):
        found = "none" if each.is_missing else "another definition"
        where = f"{each.place}: spatial reference system {each.number}"
        todo = f"{each.statement} on the target"
        yield Finding(Severity.FATAL, where, "the source's definition", found, todo, mend=(each.statement,))


def check_table_definitions(situation: Readiness) -> Iterator[Finding]:
    """Tables that the target refuses: each is created once, empty, in binlane's own schema, and dropped again."""
    source, target = situation.source, situation.target
    if source is None or source.flavor is not target.flavor:
        return
    if lacking := target.grants.missing(_REHEARSED, SCHEMA):
        todo = f"GRANT {', '.join(lacking)} ON `{SCHEMA}`.* to the account: the target is asked with empty tables there"
        yield Finding(Severity.INFO, "target: tables of the source", "created once before the copy", "not asked", todo)
        return
    definitions = situation.table_definitions
    with contextlib.closing(write_session(situation.endpoint)) as writer:
        for refusal in rehearse(writer, definitions):
            if refusal.code == _NO_REFERENCE:
                continue  # the check before this one names it
            names = ", ".join(map(str, refusal.objects[:_SHOWN]))
            more = f" and {plural(len(refusal.objects) - _SHOWN, 'more')}" if len(refusal.objects) > _SHOWN else ""
            found = f"{refusal.text} ({refusal.code})"
            yield Finding(Severity.FATAL, names + more, "a target that takes it", found, _ways(refusal.code))


def _ways(code: int) -> str:
    known = _OF_CODES.get(code, "change the table on the source, or the target's settings, so that the target takes it")
    return f"{known}; or leave the table out ([filter] exclude_tables), or its database (--databases)"


def _unsupported(situation: Readiness) -> Iterator[Finding]:
    target, source = situation.target, situation.source
    assert source is not None
    for obj, requirements in situation.requirements.items():
        for requirement in sorted(requirements):
            if requirement.feature in OF_OTHERS:
                continue
            missing = unsupported(requirement, target, source.flavor, situation.collations)
            if missing is not None:
                found, todo = missing
                is_named = requirement.feature in _TRUSTED
                subject = str(obj) if is_named else f"{obj}: {requirement.feature} {requirement.detail}".rstrip()
                mend = (trust(target),) if is_named else ()
                yield Finding(Severity.FATAL, subject, "a target that takes it", found, todo, mend=mend)


def _unknown_defaults(situation: Readiness) -> Iterator[Finding]:
    """Programs from under a default collation of their database that the target lacks: under another one their texts
    compare in another way."""
    for program in situation.programs:
        default = program.database_collation
        if default and collation_name(default) not in situation.collations:
            where = f"{program.schema_object}: {default}, its database's collation when it was made"
            found = f"{situation.target.version}, which does not know it"
            todo = (
                "make it anew on the source under a default that both servers have (ALTER DATABASE .. COLLATE, and "
                "DROP and CREATE), or upgrade the target"
            )
            yield Finding(Severity.FATAL, where, "a target that has it", found, todo)


def joined(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings that the same statement mends as one, which names the first of their objects."""
    same: dict[tuple[str, str, str], list[Finding]] = {}
    for each in findings:
        same.setdefault((each.expected, each.found, each.todo), []).append(each)
    for found in same.values():
        where = "; ".join(each.where for each in found[:_SHOWN])
        more = f" and {plural(len(found) - _SHOWN, 'more object')}" if len(found) > _SHOWN else ""
        yield replace(found[0], where=where + more)
