"""The kinds of the statements in the lane files, and the channel's filter over them, once more, by the target's
reading.

The plan job has refused kinds that no server logs when it read the log, and left out what the filter leaves out. But it
may run on another machine, and its files lie in a folder or bucket that others may write to: until the target has the
plan's digest, a lane file can be replaced together with all digests above it. The filter's rules are those with which
the window was extracted, whose digest the target has since then.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from binlane.choices import FilterPolicy
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.decode import statement_facts
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.sql.charset import decoded, dialect_of, is_read
from binlane.sql.logged_kinds import not_logged, unread_kind
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.statement_kinds import kinds_of
from binlane.work.logged_statements import LaneStatement, every_form

_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "no plan job of binlane writes it, so another program has changed the window's files: find out who can write to "
    "the work folder, remove the window's folder there, and run again: the same files are made from the log"
)
_TODO_READ: Final = (
    "of a source of the other family: write it there in another form, or log such changes as rows (binlog_format=MIXED "
    f"or ROW); otherwise {_TODO}"
)
_LOGGED: Final = "a kind of statement that servers log"
_READ: Final = "a statement that binlane reads to its end, by the rules of the target's family"
_UNREAD: Final = "a statement in a character set that is not read"


def check_kinds(situation: Situation) -> Iterator[Finding]:
    """Statements of the lane files that no server logs, and that the channel does not allow by their kind; and those
    that its filter leaves out."""
    found = (
        _finding(logged, *refused)
        for logged in every_form(situation.plans, situation.plan)
        if (refused := _refused(situation, logged)) is not None
    )
    yield from islice(found, _MOST_FINDINGS)


def _refused(situation: Situation, logged: LaneStatement) -> tuple[str, str] | None:
    """What was expected of a statement, and what it is; None if nothing is amiss."""
    sql, context = logged.item.payload, logged.item.context
    if context is None:
        return _LOGGED, "a statement without its session"
    if not is_read(sql, context):
        return _LOGGED, _UNREAD
    flavor = situation.target.flavor
    facts, oldest = statement_facts(sql, context, flavor), min(situation.logged_versions.values(), default=(0, 0, 0))
    text, dialect = decoded(sql, context), dialect_of(context, flavor)
    kind = not_logged(text, facts, dialect, oldest, context.database)
    if kind is not None and kind not in situation.selection.allowed:
        return _LOGGED, kind
    rules = ChannelRules(situation.selection, situation.renaming)
    if not (facts.is_read or rules.takes_unread(unread_kind(kind))):
        return _READ, facts.reason or "another one"
    rule = _left_out(situation.settings.rules, facts, kinds_of(text, facts, dialect))
    return None if rule is None else ("a statement that the channel's filter takes", rule)


def _left_out(rules: ChannelRules, facts: StatementFacts, kinds: frozenset[str]) -> str | None:
    """The first rule that leaves out what a statement names, or its kind, by the names of the target."""
    if rules.selects and facts.kind not in (StatementKind.TRANSACTION, StatementKind.GLOBAL):
        for key in sorted(facts.tables, key=str):
            if key.database and (rule := rules.left_out(key)) is not None:
                return f"{key}, left out ({rule})"
        for name in sorted(facts.databases - {""}):
            if (rule := rules.left_out_whole(name)) is not None:
                return f"{name}, left out ({rule})"
    for kind in sorted(kinds):
        if (policy := rules.selection.policy(kind)) != FilterPolicy.APPLY:
            return f'kinds.{kind} = "{policy}"'
    return None


def _finding(logged: LaneStatement, expected: str, found: str) -> Finding:
    header, text = logged.header, shown(logged.beginning)
    return Finding(
        Severity.FATAL,
        f"{header.source}: statement of seqno {header.first_seqno}, GTID {header.gtid or '-'}, {text}",
        expected,
        found,
        _TODO_READ if expected == _READ else _TODO,
        header.first_seqno,
    )
