"""The kinds of the statements in the lane files, once more, by the target's reading.

The plan job has refused kinds that no server logs when it read the log. But it may run on another machine, and its
files lie in a folder or bucket that others may write to: until the target has the plan's digest, a lane file can be
replaced together with all digests above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from binlane.plan.transaction.decode import statement_facts
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.sql.charset import decoded, dialect_of, is_read
from binlane.sql.logged_kinds import not_logged
from binlane.work.logged_statements import LaneStatement, every_form

_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "no plan job of binlane writes it, so another program has changed the window's files: find out who can write to "
    "the work folder, remove the window's folder there, and run again: the same files are made from the log"
)
_UNREAD: Final = "a statement in a character set that is not read"


def check_kinds(situation: Situation) -> Iterator[Finding]:
    """Statements of the lane files that no server logs, and that the channel does not allow by their kind."""
    if situation.begun:
        return  # the target has the plan's digest
    found = (
        _finding(logged, kind)
        for logged in every_form(situation.plans, situation.plan)
        if (kind := _kind_of(situation, logged)) is not None and kind not in situation.selection.allowed
    )
    yield from islice(found, _MOST_FINDINGS)


def _kind_of(situation: Situation, logged: LaneStatement) -> str | None:
    sql, context = logged.item.payload, logged.item.context
    if context is None:
        return "a statement without its session"
    if not is_read(sql, context):
        return _UNREAD
    flavor = situation.target.flavor
    facts, oldest = statement_facts(sql, context, flavor), min(situation.logged_versions.values(), default=(0, 0, 0))
    return not_logged(decoded(sql, context), facts, dialect_of(context, flavor), oldest, context.database)


def _finding(logged: LaneStatement, kind: str) -> Finding:
    header, text = logged.header, shown(logged.beginning)
    return Finding(
        Severity.FATAL,
        f"{header.source}: statement of seqno {header.first_seqno}, GTID {header.gtid or '-'}, {text}",
        "a kind of statement that servers log",
        kind,
        _TODO,
        header.first_seqno,
    )
