"""What stands against a window's statements: unsafe ones, those that the target's parser refuses, missing libraries,
temporary tables of routines.

A server tells of its libraries only by the functions that it has of them (``mysql.func``); no log holds a library. What
is there as it is logged, the lanes leave as it is (``apply.ddl``).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from binlane.binlog.types.literals import identifier
from binlane.model import Flavor, ItemKind, TableKey
from binlane.plan.transaction.rename import name_of, sources_of
from binlane.precheck.account.privileges import read_grants
from binlane.precheck.definers import check_definers, check_statement_privileges
from binlane.precheck.facts import LoadableFunction
from binlane.precheck.finding import Finding
from binlane.precheck.parser import Verdict
from binlane.precheck.portability import check_features
from binlane.precheck.situation import Situation
from binlane.precheck.sql_writer import check_packets
from binlane.schema.compare import Severity
from binlane.schema.letter_case import LetterCase
from binlane.sql.fired_triggers import (
    Reach,
    Text,
    TriggerChange,
    TriggerComparison,
    TriggerDifference,
    defined_names,
    dropped_unmade,
    folded,
    names_in,
    reach_of,
    trigger_changes,
)
from binlane.sql.logged_statement import LoggedText, hides_secrets, shown
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.unsafe import WAITING
from binlane.sql.requirements import CASCADE_TRIGGERS
from binlane.sql.sql_modes import alike_modes
from binlane.work.logged_statements import Logged

if TYPE_CHECKING:
    from binlane.sql.temporary_routines import Bodies, Call

log = logging.getLogger(__name__)

_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "let the source do without it, or leave it out (docs/filters.md), or end a window before it (--until with its "
    "GTID), run a statement of the same effect on the target and begin the channel behind it"
)
_TODO_UNSAFE: Final = (
    "the target would write other values than the source did: log it as rows (binlog_format=MIXED), or set "
    "allow_unsafe in the channel's file and compare the rows afterwards"
)
_TODO_WAITING: Final = (
    f"the target would wait for transactions that it never has under the source's GTIDs or positions: {_TODO}"
)
_TODO_TEMPORARY: Final = (
    "the log does not show when that table ends, and the target's connection may be another one then: log such calls "
    f"as rows (binlog_format=MIXED), or {_TODO}"
)
_TODO_TRIGGER: Final = (
    "make it on the target what it is on the source (SET sql_log_bin = 0 in front), or log such statements as rows "
    "(binlog_format=MIXED), or, if nothing that it writes is replicated, set allow_unsafe in the channel's file"
)
_TODO_DROPPED: Final = (
    "compare the tables that it has written; make it on the target as it was (SET sql_log_bin = 0 in front), or set "
    "allow_unsafe in the channel's file"
)
_QUOTES: Final = frozenset('`"')
_OR_UNSAFE: Final = "or set allow_unsafe in the channel's file if it has nothing to do with temporary tables"
_TODO_UNREAD: Final = {
    Flavor.MYSQL: "GRANT SHOW_ROUTINE ON *.* TO the account (before 8.0.20, SELECT ON *.*), for a view SHOW VIEW, "
    + _OR_UNSAFE,
    Flavor.MARIADB: f"GRANT SELECT ON mysql.proc TO the account, for a view SHOW VIEW, {_OR_UNSAFE}",
}
_SONAME: Final = re.compile(
    r"\bRETURNS\s+(?P<returns>\w+)\s+SONAME\s+(?P<quote>['\"])(?P<library>[^'\"]+)(?P=quote)", re.I
)
_RETURNS: Final = {"STRING": 0, "REAL": 1, "INT": 2, "INTEGER": 2, "DECIMAL": 4}
"""``mysql.func.ret``: Item_result."""
_SINCE_IF_NOT_EXISTS: Final = {Flavor.MARIADB: (10, 1, 3), Flavor.MYSQL: (8, 0, 29)}
_CONDITION: Final = frozenset({"IF", "NOT", "EXISTS"})


def check_unsafe(situation: Situation) -> Iterator[Finding]:
    """Statements whose result differs from server to server, such as UUID()."""
    for name, seqno in sorted(situation.plan.unsafe.items()):
        waits = name in WAITING
        if situation.channel.apply.allow_unsafe and not waits:
            continue
        todo = _TODO_WAITING if waits else _TODO_UNSAFE
        yield Finding(
            Severity.FATAL, f"statement of seqno {seqno}", "what every server answers alike", name, todo, seqno
        )


_NAMING: Final = (check_statement_privileges, check_definers, check_packets, check_unsafe, check_features)
"""Checks that name statements with a better reason than the parser's."""


def check_syntax(situation: Situation) -> Iterator[Finding]:
    """Statements that the target's parser refuses and that no other check names."""
    asked = situation.asked
    if not asked.refused:
        return
    named = {finding.seqno for check in _NAMING for finding in check(situation)}
    found = [
        (logged, verdict)
        for logged, verdict in asked.refused
        if verdict.routine not in asked.made and named.isdisjoint(logged.seqnos)
    ]
    found.sort(key=lambda each: each[0].header.first_seqno)
    if len(found) > _MOST_FINDINGS:
        more = len(found) - _MOST_FINDINGS
        log.warning("precheck: the target refuses %d more statements, which are not shown", more)
    for logged, verdict in found[:_MOST_FINDINGS]:
        yield _refusal(situation, logged, verdict)


def _refusal(situation: Situation, logged: Logged, verdict: Verdict) -> Finding:
    header = situation.transaction_of(logged)
    text, message = logged.beginning, verdict.message
    message = message.split(" near ")[0] if hides_secrets(text) else message
    return Finding(
        Severity.FATAL,
        f"{header.source}: statement of seqno {header.first_seqno}, GTID {header.gtid or '-'}, {shown(text)}",
        "what the target's parser takes",
        f"{verdict.what} that it refuses ({verdict.code}: {' '.join(message.split())})",
        _TODO,
        header.first_seqno,
    )


def check_libraries(situation: Situation) -> Iterator[Finding]:
    """Loadable functions whose library the target does not have, or whose name is taken there."""
    target = situation.target
    made: list[tuple[LoggedText, str, LoadableFunction]] = []
    dropped: dict[str, int] = {}
    for statement in situation.asked.texts:
        name = _name(statement)
        if name is not None and statement.words[0] == "DROP":
            dropped.setdefault(name, statement.seqno)
        elif name is not None and (match := _SONAME.search(statement.sql)) is not None:
            returns, is_aggregate = _RETURNS.get(match["returns"].upper()), "AGGREGATE" in statement.words[:4]
            made.append((statement, name, LoadableFunction(returns, match["library"], is_aggregate)))
    if not made or target.grants.missing(("SELECT",), "mysql"):
        return  # which has a finding of its own
    there = target.loadable_functions
    libraries = {each.library for each in there.values()}
    for statement, name, function in made:
        found = there.get(name) if dropped.get(name, statement.seqno) >= statement.seqno else None
        if function.library not in libraries:
            todo = (
                f"copy the library into {target.variables['plugin_dir']} of the target and make the function there by "
                "hand, out of its binlog: where it is, the window leaves it"
            )
            yield Finding(Severity.FATAL, statement.where, f"the library {function.library}", "no function of it", todo)
        elif found is not None and (found != function or target.number < _SINCE_IF_NOT_EXISTS[target.flavor]):
            what = f"one of {found.library}, which returns another type" if found != function else "the same"
            todo = f"DROP FUNCTION {name} on the target, out of its binlog: the server refuses the statement (1125)"
            yield Finding(Severity.FATAL, statement.where, f"no other loadable function {name}", what, todo)


def check_temporary_tables(situation: Situation) -> Iterator[Finding]:
    """Temporary tables that a routine or trigger leaves to another transaction, or has left in an earlier window, in a
    log of statements; and texts that may do so and that the account may not read.

    MySQL's log has the calls alone, so the plan does not keep them together; MariaDB's has DROP TABLE, too. Statements
    of one block are one transaction of the target. Which tables a connection has from an earlier window nobody tells.
    """
    plan, target = situation.plan, situation.target
    if situation.begun or not (situation.needs.statements or situation.needs.ddl):
        return
    texts = situation.every_text
    if not target.makes_temporary_tables and not any("TEMPORARY" in each.words for each in texts):
        return
    # few windows need it
    from binlane.sql.temporary_routines import Act, Call, doubts

    bodies, is_allowed = _bodies(situation), situation.channel.apply.allow_unsafe
    made = {str(key).casefold() for key in plan.altered.tables}
    calls, unread = list[Call[Logged]](), dict[TableKey, Logged]()
    for call in _calls(situation, bodies):
        for deed in call.behind:
            if deed.act is Act.UNREAD:
                unread.setdefault(deed.table, call.place)
        calls.append(replace(call, behind=tuple(deed for deed in call.behind if deed.act is not Act.UNREAD)))
    for key, logged in () if is_allowed else islice(unread.items(), _MOST_FINDINGS):
        expected = "texts that the account may read, behind which no temporary table can be"
        yield _of_call(logged, expected, f"the text of {key}, which it may not", _TODO_UNREAD[target.flavor])
    found = doubts(calls, lambda key: str(key) in made or target.has_table(key), bodies.leaving)
    # MariaDB's log may tell of the table's end in a later window: without the table the lane stops by itself
    stops = plan.flavor is not Flavor.MYSQL
    refused = (each for each in found if (not stops if each.fails else not is_allowed))
    for doubt in islice(refused, _MOST_FINDINGS):
        expected = "no temporary table behind a routine or trigger but those of its own transaction"
        before = "has made before this window"
        if doubt.before is not None:
            before = f"has made in seqno {doubt.before.header.first_seqno}"
        elif not doubt.fails:
            before = "may have made before this window"
        yield _of_call(doubt.place, expected, f"{doubt.table}, which a routine or trigger {before}", _TODO_TEMPORARY)


def _of_call(logged: Logged, expected: str, found: str, todo: str) -> Finding:
    header = logged.header
    where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
    return Finding(Severity.FATAL, where, expected, found, todo, header.first_seqno)


def _bodies(situation: Situation) -> Bodies:
    from binlane.sql.temporary_routines import Bodies, Body, tokens_of

    bodies, target = Bodies(), situation.target
    for each in target.programs:
        add = bodies.add_routine if each.kind == "routine" else bodies.add_view
        name = each.key
        add(name.database, name.table, Body(0, name.database, tokens_of(each.text, target.flavor, each.sql_mode)))
    for trigger in target.triggers:
        name = trigger.table
        tokens = tokens_of(trigger.body, target.flavor, trigger.sql_mode)
        bodies.add_trigger(name.database, name.table, Body(0, name.database, tokens))
    for text in situation.every_text:
        bodies.add_statement(text.tokens, text.context.database or "", text.seqno)
    return bodies


def check_fired_triggers(situation: Situation) -> Iterator[Finding]:
    """Triggers that the window's statements fire and that the target does not have as the source, or the source not.

    Statements fire the triggers of the server that executes them, also behind views, routines and other triggers. For a
    window of rows alone, and for an archive, which tells of no trigger, there is nothing to compare.
    """
    if situation.begun or situation.source is None or not _computes(situation):
        return
    severity = Severity.INFO if situation.channel.apply.allow_unsafe else Severity.FATAL
    yield from (replace(each, severity=severity) for each in _unseen_triggers(situation))
    changes = [(each.seqno, change) for each in situation.every_text for change in _changes(each)]
    found = tuple(_compared_triggers(situation, [change for _, change in changes]))
    if found and (behind := _changes_behind(situation)) is not None:
        found = tuple(_compared_triggers(situation, [*(change for _, change in changes), *behind]))
    fired = _first_fired(situation, {each.table for each in found}) if found else {}
    there = (each for each in found if each.table in fired and situation.target.has_table(each.table))
    for difference in islice(there, _MOST_FINDINGS):
        seqno, where = fired[difference.table]
        todo = f"{where} fires it: {_TODO_TRIGGER}"
        place = f"{difference.table}: trigger {difference.name}"
        yield Finding(severity, place, difference.expected, difference.found, todo, seqno)
    yield from (replace(each, severity=severity) for each in _dropped_triggers(situation, changes))


def _computes(situation: Situation) -> bool:
    """Whether a statement of the window may fire a trigger."""
    needs = situation.needs
    if needs.statements or needs.loads:
        return True
    return needs.ddl and any(each.facts.create_select for each in situation.every_text if "SELECT" in each.words)


def _unseen_triggers(situation: Situation) -> Iterator[Finding]:
    """Databases of which the source's account does not see the triggers."""
    assert situation.source is not None
    grants, plan = situation.source.ask(read_grants), situation.plan
    named = sources_of(situation.renaming, {key.database for key in (*plan.written, *plan.loaded)})
    for name in sorted(name for name in named if grants.missing(("TRIGGER",), name)):
        todo = (
            "statements of the window write there, and the source's triggers could not be compared: "
            f"GRANT TRIGGER ON {identifier(name)}.* TO the source's account"
        )
        yield Finding(Severity.FATAL, f"source: privilege TRIGGER on {name}", "granted", "not granted", todo)


def _changes(text: LoggedText) -> Iterator[TriggerChange]:
    return trigger_changes(text.tokens, text.facts, text.context.database or "")


def _changes_behind(situation: Situation) -> list[TriggerChange] | None:
    """What the source's log has done to triggers since the window, with the target's names; None if that cannot be
    told."""
    texts = None if situation.source is None else situation.source.definitions_behind()
    if texts is None:
        return None

    def name(key: TableKey) -> TableKey:
        return key if (new := name_of(situation.renaming, key.database)) is None else replace(key, database=new)

    return [change.renamed(name) for text in texts for change in _changes(text)]


def _compared_triggers(situation: Situation, changes: Sequence[TriggerChange]) -> Iterator[TriggerDifference]:
    source, target = situation.source_tables, situation.target
    assert source is not None
    folds, same_family = source.folds_names or situation.tables.folds_names, source.flavor is target.flavor
    given = situation.settings.rules.collations.given

    def same_body(ours: str, theirs: str) -> bool:
        ours, theirs = (situation.renamed_text(text) or "" for text in (ours, theirs))
        for old, new in given.items():
            ours = re.sub(rf"\b{re.escape(old)}\b", new, ours)
        return ours.strip() == theirs.strip()

    def same_modes(ours: str, theirs: str) -> bool:
        modes = frozenset(ours.split(",")), frozenset(theirs.split(","))
        return modes[0] == modes[1] if same_family else alike_modes(ours) == alike_modes(theirs)

    fold = LetterCase(folds).table
    return TriggerComparison(changes, same_body, same_modes, fold).differences(*situation.stored_triggers)


def _first_fired(situation: Situation, tables: Collection[TableKey]) -> dict[TableKey, tuple[int, str]]:
    """Of each table whose triggers the window's statements fire, the first of these: its seqno, and what it is."""
    reach, first = _reach(situation), dict[TableKey, tuple[int, str]]()
    wanted = {folded(key): key for key in tables}
    leading, plan = reach.leading_to(wanted), situation.plan
    known: dict[frozenset[TableKey], frozenset[TableKey]] = {}
    for logged, _ in situation.transactions_with(_naming(key.table for key in leading)):
        seqno, source = logged.header.first_seqno, logged.header.source
        text = LoggedText.of(seqno, source, logged.item, plan.flavor)
        if logged.item.kind is ItemKind.DDL and text is not None and _fires_none(text):
            continue
        reached: Collection[TableKey] = wanted  # by a statement that cannot be read
        if text is not None:
            names = leading.intersection(_firing(text, reach))
            if names not in known:
                known[names] = reach.of(names)
            reached = wanted if not reach.unread.isdisjoint(known[names]) else known[names]
        where = f"{source}: statement of seqno {seqno}, {shown(logged.beginning)},"
        for key in wanted.keys() & reached:
            if seqno < first.get(wanted[key], (seqno + 1, ""))[0]:
                first[wanted[key]] = seqno, where
    return first


def _fires_none(text: LoggedText) -> bool:
    """Whether a statement that commits by itself changes no rows. One that cannot be read may change any."""
    facts = text.facts
    return facts.kind in (StatementKind.DDL, StatementKind.GLOBAL) and not facts.create_select


def _firing(text: LoggedText, reach: Reach) -> Iterable[TableKey]:
    """The names in a statement whose triggers, or texts, it executes: not those of tables that it only reads."""
    names, facts = names_in(text.tokens, text.context.database or ""), text.facts
    if facts.kind not in (StatementKind.DML, StatementKind.LOAD_DATA):
        return names
    written = frozenset(map(folded, facts.written))
    return (name for name in names if name in written or name in reach.called)


def _reach(situation: Situation) -> Reach:
    from binlane.sql.temporary_routines import tokens_of

    triggers, called = list[Text](), list[Text]()
    for trigger in (*situation.stored_triggers[0], *situation.stored_triggers[1]):
        tokens = tokens_of(trigger.body, situation.plan.flavor, trigger.sql_mode)
        triggers.append((trigger.table, trigger.table.database, tokens))
    for each in situation.programs:
        called.append((each.key, each.key.database, tokens_of(each.text, situation.plan.flavor, each.sql_mode)))
    for text in situation.every_text:
        facts, database = text.facts, text.context.database or ""
        for key in defined_names(text.tokens, facts, database):
            kind = triggers if key in facts.triggered else called
            kind.append((key, database if key in facts.views else key.database, text.tokens))
    cascades: Iterable[tuple[TableKey, TableKey]] = ()
    if any(each.feature == CASCADE_TRIGGERS for each in situation.plan.requirements):
        cascades = situation.tables.references
    return reach_of(triggers, called, cascades)


def _dropped_triggers(situation: Situation, changes: Sequence[tuple[int, TriggerChange]]) -> Iterator[Finding]:
    """Triggers that the window drops and the target does not have, although statements in front may have fired them: a
    DROP TRIGGER does not tell the table."""
    there = {folded(TableKey(each.table.database, each.name)) for each in situation.stored_triggers[1]}
    for name, seqno in dropped_unmade(changes):
        before = None if name in there else situation.first_written(name.database, 0)
        if before is not None and before < seqno:
            found = "no such trigger, and statements of its database in front that may have fired it on the source"
            expected = "one as the source had, which the window drops"
            yield Finding(Severity.FATAL, f"{name}: trigger of seqno {seqno}", expected, found, _TODO_DROPPED, seqno)


def _naming(names: Iterable[str]) -> re.Pattern[bytes]:
    """Finds texts that may have one of the names, in whatever character set and quotes."""
    wanted = sorted(set(names))
    plain = [re.escape(name.encode()) for name in wanted if name.isascii() and not _QUOTES.intersection(name)]
    others = rb"[\x80-\xff]|[`\x22]{2}"
    return re.compile(b"|".join([*plain, others] if len(plain) < len(wanted) else plain or [rb"(?!)"]), re.I)


def _calls(situation: Situation, bodies: Bodies) -> Iterator[Call[Logged]]:
    """The statements with temporary tables, in the log's order."""
    from binlane.sql.temporary_routines import Call, defined

    names = bodies.concerned
    if not names:
        return
    found = situation.transactions_with(_naming({*names, *bodies.temporary, "TEMPORARY"}))
    for logged, block in sorted(found, key=lambda each: each[0].header.first_seqno):
        header, plan = logged.header, situation.plan
        text = LoggedText.of(header.first_seqno, header.source, logged.item, plan.flavor)
        if text is None or defined(text.tokens) not in ("", "TABLE"):
            continue
        whole = plan.indivisible(header.first_seqno, header.last_seqno)
        # a block that changes a table without transactions is applied transaction by transaction
        first = header.first_seqno if situation.allow_nontransactional else block.first_seqno
        together = (logged.lane, whole.first if whole is not None and whole.together else first)
        database = text.context.database or ""
        behind = tuple(bodies.behind(text.tokens, database, header.last_seqno))
        yield Call(logged, text.context.thread_id, together, tuple(bodies.own(text.tokens, database)), behind)


def _name(statement: LoggedText) -> str | None:
    """Of a function that is made or dropped without a database, in lower case."""
    words = statement.words[:8]
    if not words or words[0] not in ("CREATE", "DROP") or "FUNCTION" not in words:
        return None
    rest = [token for token in statement.tokens[words.index("FUNCTION") + 1 :][:4] if token.upper not in _CONDITION]
    if not rest or (len(rest) > 1 and rest[1].text == "."):
        return None
    return rest[0].text.lower()
