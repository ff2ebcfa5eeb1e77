"""What stands against a window's statements: unsafe ones, those that the target's parser refuses, routines, views and
triggers behind them that the two servers do not have alike, temporary tables of routines.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from binlane.binlog.types.literals import identifier
from binlane.model import Flavor, ItemKind, TableKey
from binlane.plan.transaction.rename import name_of, sources_of
from binlane.plan.transaction.unseen_tables import LACKING, UNSEEN, UNSURE
from binlane.precheck.definitions.program_checks import read_log_end
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.parser import Verdict
from binlane.precheck.situation.situation import Situation, programs_made_by
from binlane.precheck.target.definers import check_definers, check_statement_privileges
from binlane.precheck.target.portability import check_features
from binlane.precheck.target.sql_writer import check_packets
from binlane.safe_text import hides_secrets, shown
from binlane.schema.compare import Severity
from binlane.schema.letter_case import ANY_CASE, LetterCase
from binlane.schema.programs import Program
from binlane.servers.variables import version_number
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.unsafe import (
    LOGGED_IN_PART,
    NEW_DEFAULT,
    NUMBERED,
    TABLESPACE,
    WAITING,
    is_refused_by_mysql,
)
from binlane.sql.programs.changes import (
    BEHIND,
    ProgramChange,
    Since,
    dropped_unmade,
    made_program,
    program_changes,
)
from binlane.sql.programs.comparison import Alike, Comparison, Difference
from binlane.sql.programs.equivalence import Equivalence
from binlane.sql.programs.known import KnownProgram, behind, found_alike
from binlane.sql.programs.marks import ProgramMark, SentText, account_of
from binlane.sql.programs.reach import Reach, folded, names_in, naming, plain_name, routine_key
from binlane.sql.sql_modes import calls_bare
from binlane.work.logged_statements import LaneStatement

if TYPE_CHECKING:
    from binlane.sql.temporary_routines import Bodies, Call

log = logging.getLogger(__name__)

_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "let the source do without it, or leave it out (docs/filters.md), or end a window before it (--until with its "
    "GTID), run a statement of the same effect on the target and begin the channel behind it"
)
_TODO_UNSAFE: Final = (
    "the target would write other values than the source did: log it as rows (binlog_format=ROW), or set "
    "allow_unsafe in the channel's file and compare the rows afterwards"
)
_TODO_DEFAULT: Final = (
    "each server fills the rows there are by itself, whatever binlog_format is: set allow_unsafe in the channel's "
    "file, and copy the table again behind the window (`binlane recopy CHANNEL --table ...`)"
)
_TODO_REFUSED: Final = (
    "a MySQL target with a binary log refuses it (1674), with allow_unsafe, too: end a window before it (--until with "
    "its GTID), run it on the target after SET SESSION binlog_format = STATEMENT, begin the channel behind it, and "
    "copy the table again (`binlane recopy CHANNEL --table ...`), which each server has filled by itself"
)
_TODO_IN_PART: Final = (
    "the log lacks the defaults that its rows have on the source: SET GLOBAL binlog_row_image = FULL there for those "
    "to come; for these, set allow_unsafe in the channel's file, and copy the table again behind the window "
    "(`binlane recopy CHANNEL --table ...`)"
)
_TODO_NUMBERED: Final = (
    "each server numbers the rows there are in an order of its own, whatever binlog_format is: set allow_unsafe in the "
    "channel's file, and copy the table again behind the window (`binlane recopy CHANNEL --table ...`)"
)
_TODO_TABLESPACE: Final = (
    "the target has no such file, and would throw its rows away: leave the table out for this window "
    "(filter.exclude_tables), then take it in again and copy it (`binlane recopy CHANNEL --table ...`)"
)
_TODO_WAITING: Final = (
    f"the target would wait for transactions that it never has under the source's GTIDs or positions: {_TODO}"
)
_TODO_UNSEEN: Final = (
    "the copy of the source does not have its rows: set allow_unsafe in the channel's file, which leaves this "
    "statement out, and copy the tables that it changes again behind the window (`binlane recopy CHANNEL "
    "--table ...`); or begin the channel again when that connection has ended"
)
_TODO_UNSURE: Final = (
    "nothing in the log proves whether they are tables of that connection: run again when it has dropped its temporary "
    "tables or has ended, whose DROPs prove it; or, if it has none of that name (the body of an event, a procedure or "
    "BEGIN NOT ATOMIC has run the statement), or if you copy the tables that it changes again behind the window "
    "(`binlane recopy CHANNEL --table ...`), set allow_unsafe in the channel's file, which applies this statement as "
    "it is logged; or begin the channel again when that connection has ended"
)
_TODO_LACKING: Final = (
    "if the source has a table of that name, the target has lost it: `binlane recopy CHANNEL --table ...` makes it "
    "again; else run again when that connection has dropped its temporary tables or has ended, whose DROPs prove what "
    "it was; or set allow_unsafe in the channel's file, which leaves this statement out, and copy the tables that it "
    "changes again behind the window"
)
_TODO_TEMPORARY: Final = (
    "the log does not show when that table ends, and the target's connection may be another one then: log such calls "
    f"as rows (binlog_format=ROW), or {_TODO}"
)
_TODO_TRIGGER: Final = (
    "make it on the target what it is on the source, with the target's names of databases (SET sql_log_bin = 0 in "
    "front), or log such statements as rows (binlog_format=ROW), or, if nothing that it writes is replicated, set "
    "allow_unsafe in the channel's file"
)
_TODO_PROGRAM: Final = (
    "make it on the target what it is on the source, with the target's names of databases (SET sql_log_bin = 0 in "
    "front), or log such statements as rows (binlog_format=MIXED or ROW), or, if both mean the same, set allow_unsafe "
    "in the channel's file"
)
_TODO_HIDDEN: Final = (
    "GRANT EXECUTE there TO the account, and to read texts SELECT ON *.* or SHOW_ROUTINE (MySQL), SELECT ON mysql.proc "
    "(MariaDB), for a view SHOW VIEW, or, if both servers have the same, set allow_unsafe in the channel's file"
)
_TODO_GONE: Final = (
    "no earlier window has compared or made it, or its files are gone: if the target has what the source had then, set "
    "allow_unsafe in the channel's file for this window; log such statements as rows (binlog_format=MIXED or ROW)"
)
_TODO_DROPPED: Final = (
    "compare the tables that it has written; make it on the target as it was (SET sql_log_bin = 0 in front), or set "
    "allow_unsafe in the channel's file"
)
_OR_UNSAFE: Final = "or set allow_unsafe in the channel's file if it has nothing to do with temporary tables"
_TODO_UNREAD: Final = {
    Flavor.MYSQL: "GRANT SHOW_ROUTINE ON *.* TO the account (before 8.0.20, SELECT ON *.*), for a view SHOW VIEW, "
    + _OR_UNSAFE,
    Flavor.MARIADB: f"GRANT SELECT ON mysql.proc TO the account, for a view SHOW VIEW, {_OR_UNSAFE}",
}


def check_unsafe(situation: Situation) -> Iterator[Finding]:
    """Statements whose result differs from server to server, such as UUID()."""
    for name, seqno in sorted(situation.plan.unsafe.items()):
        todo, is_always = _way_on(name, situation)
        if situation.channel.apply.allow_unsafe and not is_always:
            continue
        if name.startswith(NUMBERED) and _orders_rows(situation, name.removeprefix(NUMBERED), seqno):
            continue
        yield Finding(
            Severity.FATAL, f"statement of seqno {seqno}", "what every server answers alike", name, todo, seqno
        )


def _orders_rows(situation: Situation, name: str, seqno: int) -> bool:
    """Whether the rows of a table lie in the order of a primary key on both servers when a statement finds them."""
    # few windows need it
    from binlane.precheck.statements.read_order import is_in_key_order

    altered, compared = situation.plan.altered, situation.tables.letter_case.name
    for key, table in situation.tables.tables.items():
        if compared(str(key)) == compared(name):
            first = min(altered.tables.get(key, (seqno,)))
            return first >= seqno and is_in_key_order(situation, table)
    return False


def _way_on(name: str, situation: Situation) -> tuple[str, bool]:
    """What to do about an unsafe part, and whether it is refused with ``allow_unsafe``, too."""
    target = situation.target
    if name in WAITING:
        return _TODO_WAITING, True
    if name in TABLESPACE:
        return _TODO_TABLESPACE, True
    if name.startswith((NUMBERED, "ALTER IGNORE")):
        return _TODO_NUMBERED, False
    for beginning, todo in _TODO_OF_UNSEEN.items():
        if name.startswith(beginning):
            return todo, False
    if is_refused_by_mysql(name) and target.flavor is Flavor.MYSQL and target.is_on("log_bin"):
        return _TODO_REFUSED, True
    if name.endswith(NEW_DEFAULT):
        return _TODO_DEFAULT, False
    return (_TODO_IN_PART if name.endswith(LOGGED_IN_PART) else _TODO_UNSAFE), False


_TODO_OF_UNSEEN: Final = {UNSEEN: _TODO_UNSEEN, UNSURE: _TODO_UNSURE, LACKING: _TODO_LACKING}
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


def _refusal(situation: Situation, logged: LaneStatement, verdict: Verdict) -> Finding:
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


def check_temporary_tables(situation: Situation) -> Iterator[Finding]:
    """Temporary tables that a routine or trigger leaves to another transaction, or has left in an earlier window, in a
    log of statements; and texts that may do so and that the account may not read.

    MySQL's log has the calls alone, so the plan does not keep them together; MariaDB's has DROP TABLE, too. Statements
    of one block are one transaction of the target. Which tables a connection has from an earlier window nobody tells.
    """
    plan, target = situation.plan, situation.target
    if not (situation.needs.statements or situation.needs.ddl):
        return
    texts = situation.every_text
    if not target.makes_temporary_tables and not any("TEMPORARY" in each.words for each in texts):
        return
    # few windows need it
    from binlane.sql.temporary_routines import Act, Call, doubts

    bodies, is_allowed = _bodies(situation), situation.channel.apply.allow_unsafe
    made = {ANY_CASE.table(key) for key in plan.altered.tables}
    calls, unread = list[Call[LaneStatement]](), dict[TableKey, LaneStatement]()
    for call in _calls(situation, bodies):
        for deed in call.behind:
            if deed.act is Act.UNREAD:
                unread.setdefault(deed.table, call.place)
        calls.append(replace(call, behind=tuple(deed for deed in call.behind if deed.act is not Act.UNREAD)))
    for key, logged in () if is_allowed else islice(unread.items(), _MOST_FINDINGS):
        expected = "texts that the account may read, behind which no temporary table can be"
        yield _of_call(logged, expected, f"the text of {key}, which it may not", _TODO_UNREAD[target.flavor])
    found = doubts(calls, lambda key: key in made or target.has_table(key), bodies.leaving)
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


def _of_call(logged: LaneStatement, expected: str, found: str, todo: str) -> Finding:
    header = logged.header
    where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
    return Finding(Severity.FATAL, where, expected, found, todo, header.first_seqno)


def _bodies(situation: Situation) -> Bodies:
    from binlane.sql.temporary_routines import Bodies, Body, tokens_of

    bodies, target = Bodies(), situation.target
    for each in target.programs:
        add = bodies.add_view if each.kind == "view" else bodies.add_routine
        name = each.key
        tokens = tokens_of(each.text, target.flavor, each.sql_mode)
        add(name.database, name.table, Body(0, name.database, tokens, calls_bare(each.sql_mode)))
    for trigger in target.triggers:
        name = trigger.key
        tokens = tokens_of(trigger.text, target.flavor, trigger.sql_mode)
        bodies.add_trigger(name.database, name.table, Body(0, name.database, tokens, calls_bare(trigger.sql_mode)))
    for text in situation.every_text:
        is_bare = calls_bare(text.context.sql_mode)
        bodies.add_statement(text.every_token, text.context.database or "", text.seqno, calls_bare=is_bare)
    return bodies


def check_fired_triggers(situation: Situation) -> Iterator[Finding]:
    """Triggers that the window's statements fire and that the target does not have as the source, or the source not.

    Statements fire the triggers of the server that executes them, also behind views, routines and other triggers. For a
    window of rows alone, and for an archive, which tells of no trigger, there is nothing to compare.
    """
    if not _compares(situation):
        return
    severity = Severity.INFO if situation.channel.apply.allow_unsafe else Severity.FATAL
    yield from (replace(each, severity=severity) for each in _unseen_triggers(situation))
    for difference, seqno, where in _reached(situation, Comparison.triggers, situation.stored_triggers):
        todo = f"{where} fires it: {_TODO_GONE if difference.is_gone else _TODO_TRIGGER}"
        yield Finding(severity, difference.where, difference.expected, difference.found, todo, seqno)
    yield from (replace(each, severity=severity) for each in _dropped_triggers(situation))


def check_stored_programs(situation: Situation) -> Iterator[Finding]:
    """Routines that the window's statements call, and views that they name, that the two servers do not have alike.

    Also those behind triggers, views and other routines; for the same windows as triggers.
    """
    if not _compares(situation) or not situation.may_reach_programs:
        return
    severity = Severity.INFO if situation.channel.apply.allow_unsafe else Severity.FATAL
    for difference, seqno, where in _reached(situation, Comparison.programs, situation.stored_programs):
        todo = _TODO_HIDDEN if difference.is_hidden else _TODO_GONE if difference.is_gone else _TODO_PROGRAM
        todo = f"{where} needs it: {todo}"
        yield Finding(severity, difference.where, difference.expected, difference.found, todo, seqno)


def alike_behind(situation: Situation) -> tuple[KnownProgram, ...]:
    """The programs that both servers have alike behind the window, as far as its precheck or an earlier one has looked
    at them, or the log has made them. Raises SourceError."""
    changes = [change for text in situation.every_text for change in _changes(text)]
    compared: tuple[KnownProgram, ...] = ()
    if situation.source is not None and "stored_programs" in vars(situation):
        fold = LetterCase(_folds_names(situation)).table
        comparison = Comparison(Since(changes, fold), _alike(situation))
        sides = situation.stored_programs, situation.stored_triggers
        # the catalogues have been read before
        seen = situation.source.ask(read_log_end)
        compared = found_alike(chain.from_iterable(comparison.alike_now(*side) for side in sides), seen)
    return behind(situation.known_programs.programs, compared, changes)


def _compares(situation: Situation) -> bool:
    """Whether a statement of the window may run what both servers have for themselves, and both can be asked."""
    if situation.source is None:
        return False
    needs = situation.needs
    if needs.statements or needs.loads:
        return True
    return needs.ddl and any(each.facts.create_select for each in situation.every_text)


def _reached(
    situation: Situation,
    differences: Callable[[Comparison, Iterable[Program], Iterable[Program]], Iterable[Difference]],
    sides: tuple[Sequence[Program], Sequence[Program]],
) -> Iterator[tuple[Difference, int, str]]:
    """Differences that a statement of the window reaches, each with the first that does: its seqno, and what it is."""
    alike, changes = _alike(situation), [change for text in situation.every_text for change in _changes(text)]
    fold = LetterCase(_folds_names(situation)).table

    def differing(since: Sequence[ProgramChange]) -> list[Difference]:
        return list(differences(Comparison(Since(since, fold), alike, situation.known_programs), *sides))

    if not (found := differing(changes)):
        return
    reach = situation.reach

    def met(found: Iterable[Difference], first: Mapping[TableKey, tuple[int, str]]) -> list[Difference]:
        return [each for each in found if each.key in first and first[each.key][0] < each.until]

    def told(found: Iterable[Difference]) -> list[Difference]:
        return [each for each in found if not each.by_account or reach.asks_for_account(folded(each.key))]

    found = told(found)
    first = first_reached(situation, reach, found)
    # the log behind the window may be long
    if met(found, first) and (behind := _changes_behind(situation)) is not None:
        found = told(differing([*changes, *behind]))
        first = first_reached(situation, reach, found)
    yield from islice(((each, *first[each.key]) for each in met(found, first)), _MOST_FINDINGS)


def _folds_names(situation: Situation) -> bool:
    assert situation.source_tables is not None
    return situation.source_tables.folds_names or situation.tables.folds_names


def _alike(situation: Situation) -> Alike:
    source, target = situation.source_tables, situation.tables
    assert source is not None
    given = situation.settings.rules.collations.given
    same = source.flavor is target.flavor and version_number(source.version) == version_number(target.version)
    return Alike(Equivalence((source.flavor, target.flavor), target.collations, given), same and not given)


def _unseen_triggers(situation: Situation) -> Iterator[Finding]:
    """Databases of which the source's account does not see the triggers."""
    assert situation.source is not None
    grants, plan = situation.source.read_grants(), situation.plan
    named = sources_of(situation.renaming, {key.database for key in (*plan.written, *plan.loaded)})
    for name in sorted(name for name in named if grants.missing(("TRIGGER",), name)):
        todo = (
            "statements of the window write there, and the source's triggers could not be compared: "
            f"GRANT TRIGGER ON {identifier(name)}.* TO the source's account"
        )
        yield Finding(Severity.FATAL, f"source: privilege TRIGGER on {name}", "granted", "not granted", todo)


def _changes(text: LoggedText) -> Iterator[ProgramChange]:
    for change in program_changes(text.tokens, text.facts, text.context.database or ""):
        settles = change.settles and not text.context.error_code
        yield change._replace(settles=settles, seqno=text.seqno, at=text.source)


def changed_by_window(situation: Situation) -> Callable[[Program], bool]:
    """Whether the window's own statements make, change or drop a routine or view, or may."""
    names, databases = set[TableKey](), set[str]()
    for text in situation.every_text:
        if _changes_no_mark(text):
            continue
        names.update(key for key, _ in programs_made_by(text))
        for change in _changes(text):
            tables = [*change.replaced, *(each for pair in change.renames for each in pair)]
            names.update(folded(each) for each in tables)
            if change.name is not None and change.kind != "trigger":
                made = change.name
                names.add(folded(made) if change.kind == "view" else routine_key(made.database, made.table))
            databases.update(folded(each).database for each in tables if not each.table)

    def is_changed(program: Program) -> bool:
        key = folded(program.key)
        # a table of a routine's name is another object
        name = key if program.kind == "view" else routine_key(program.key.database, program.key.table)
        return name in names or key.database in databases

    return is_changed


def marks_of_window(situation: Situation) -> Sequence[ProgramMark]:
    """Of the routines and views that the window makes, or makes others of, the statements that do so; of none that
    another statement changes without saying all of it."""
    found, changed = dict[tuple[str, TableKey], ProgramMark](), set[TableKey]()
    for text in situation.every_text:
        changed.update(folded(each) for change in _changes(text) for pair in change.renames for each in pair)
        made, options = made_program(text.tokens, text.facts, text.context.database or ""), set(pairwise(text.words))
        security = "INVOKER" if ("SECURITY", "INVOKER") in options else "DEFINER"
        is_told = text.words[:1] == ("CREATE",) or ("SECURITY", security) in options
        if made is not None and text.definer is not None and is_told:
            mark = ProgramMark(*made)
            before = found.get((mark.kind, mark.name), mark).sent
            sent = SentText(text.sql, account_of(text.definer), security)
            found[mark.kind, mark.name] = replace(mark, sent=(*before, sent))
        elif not _changes_no_mark(text):
            changed.update(key for key, _ in programs_made_by(text))
    return [each for each in found.values() if each.name not in changed]


def _changes_no_mark(text: LoggedText) -> bool:
    """Whether a statement gives a routine another comment, or characteristics that its mark does not have."""
    return text.words[:2] in (("ALTER", "FUNCTION"), ("ALTER", "PROCEDURE")) and "SECURITY" not in text.words


def views_of_window(situation: Situation) -> frozenset[TableKey]:
    """The names, folded, of which the window itself makes views: also by RENAME of one, and by a text that is not read
    exactly."""
    names = set[TableKey]()
    views = {folded(each.key) for each in situation.target.programs if each.kind == "view"}
    for text in situation.every_text:
        made = {folded(each) for each in text.facts.views}
        for old, new in text.facts.renames:
            if folded(old) in names | views | made:
                made.add(folded(new))
        names |= made
    return frozenset(names)


def _changes_behind(situation: Situation) -> list[ProgramChange] | None:
    """What the source's log has done to programs since the window, with the target's names; None if that cannot be
    told."""
    texts = None if situation.source is None else situation.source.definitions_behind()
    if texts is None:
        return None

    def name(key: TableKey) -> TableKey:
        return key if (new := name_of(situation.renaming, key.database)) is None else replace(key, database=new)

    return [change.renamed(name)._replace(seqno=BEHIND) for text in texts for change in _changes(text)]


def first_reached(
    situation: Situation, reach: Reach, found: Sequence[Difference], *, by_definitions: bool = False
) -> dict[TableKey, tuple[int, str]]:
    """Of each program that the window's statements reach, or table whose triggers they fire, the first of these: its
    seqno, and what it is. ``by_definitions``: also definitions that name one: MariaDB calls a view's functions to make
    it, and to look at it."""
    first = dict[TableKey, tuple[int, str]]()
    for each in reaching_statements(situation, reach, found, by_definitions=by_definitions):
        header = each.logged.header
        seqno, source = header.first_seqno, header.source
        where = f"{source}: statement of seqno {seqno}, {shown(each.logged.beginning)},"
        for key in each.reached:
            if seqno < first.get(key, (seqno + 1, ""))[0]:
                first[key] = seqno, where
    has_table = situation.target.has_table
    gone = {each.key for each in found if each.is_trigger and each.key in first and not has_table(each.key)}
    return {key: each for key, each in first.items() if key not in gone}


class ReachingStatement(NamedTuple):
    """A statement of the window that reaches programs."""

    text: LoggedText | None
    """None if it cannot be read: then it reaches all."""
    logged: LaneStatement
    reached: Collection[TableKey]
    """The keys of the programs."""
    names: frozenset[TableKey]
    """Those of its names, folded, by which it reaches them."""


def reaching_statements(
    situation: Situation, reach: Reach, found: Sequence[Difference], *, by_definitions: bool = False
) -> Iterator[ReachingStatement]:
    """The statements of the window that reach programs of ``found``."""
    wanted = {folded(each.key): each.key for each in found}
    # what only the log names is not known to be called
    called = reach.called.union(folded(each.key) for each in found if not each.is_trigger)
    leading, plan = reach.leading_to(wanted), situation.plan
    known: dict[frozenset[TableKey], frozenset[TableKey]] = {}
    for logged, _ in situation.transactions_with(naming(map(plain_name, leading))) if wanted else ():
        text = LoggedText.of(logged.header.first_seqno, logged.header.source, logged.item, plan.flavor)
        opens = by_definitions and text is not None and _opens_views(text)
        if logged.item.kind is ItemKind.DDL and text is not None and _fires_none(text) and not opens:
            continue
        reached: Collection[TableKey] = wanted
        names = frozenset[TableKey]()
        if text is not None:
            names = leading.intersection(firing(text, called))
            if names not in known:
                known[names] = reach.of(names)
            reached = wanted if not reach.unread.isdisjoint(known[names]) else known[names]
        keys = [wanted[key] for key in wanted.keys() & reached]
        if keys:
            yield ReachingStatement(text, logged, keys, names)


def _opens_views(text: LoggedText) -> bool:
    """Whether a statement that commits by itself may look at the views that it names. A body is not looked at."""
    return not (text.facts.routine_databases or text.facts.triggered or text.words[:1] == ("DROP",))


def _fires_none(text: LoggedText) -> bool:
    """Whether a statement that commits by itself changes no rows. One that cannot be read may change any."""
    facts = text.facts
    return facts.kind in (StatementKind.DDL, StatementKind.GLOBAL) and not facts.create_select


def firing(text: LoggedText, called: Collection[TableKey]) -> Iterable[TableKey]:
    """The names in a statement whose triggers, or texts, it executes: not those of tables that it only reads."""
    names, facts = names_in(text.every_token, text.context.database or ""), text.facts
    if facts.kind not in (StatementKind.DML, StatementKind.LOAD_DATA):
        return names
    written = frozenset(map(folded, facts.written))
    return (name for name in names if name in written or name in called)


def _dropped_triggers(situation: Situation) -> Iterator[Finding]:
    """Triggers that the window drops and the target does not have, although statements in front may have fired them: a
    DROP TRIGGER does not tell the table."""
    there = {folded(TableKey(each.key.database, each.name)) for each in situation.stored_triggers[1]}
    for name, seqno in dropped_unmade(
        (each.seqno, change) for each in situation.every_text for change in _changes(each)
    ):
        is_it = partial(_is_folded, name.database)
        before = None if name in there else situation.first_written(is_it, 0)
        if before is not None and before < seqno:
            found = "no such trigger, and statements of its database in front that may have fired it on the source"
            expected = "one as the source had, which the window drops"
            yield Finding(Severity.FATAL, f"{name}: trigger of seqno {seqno}", expected, found, _TODO_DROPPED, seqno)


def _is_folded(wanted: str, database: str) -> bool:
    return folded(TableKey(database, "")).database == wanted


def _calls(situation: Situation, bodies: Bodies) -> Iterator[Call[LaneStatement]]:
    """The statements with temporary tables, in the log's order."""
    from binlane.sql.temporary_routines import Call, defined

    names = bodies.concerned
    if not names:
        return
    found = situation.transactions_with(naming({*names, *bodies.temporary, "TEMPORARY"}))
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
        behind = tuple(bodies.behind(text.every_token, database, header.last_seqno))
        yield Call(logged, text.context.thread_id, together, tuple(bodies.own(text.every_token, database)), behind)
