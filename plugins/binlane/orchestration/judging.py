"""Before the first write of a window: each of its statements before the target's own parser."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from typing import Final

from binlane.apply.finding import Finding
from binlane.apply.statement_judge import StatementJudge, Verdict
from binlane.connections import Endpoint
from binlane.model import ItemKind, LogPosition
from binlane.plan.schema_compare import Severity
from binlane.plan.statement_text import decoded
from binlane.plan.window_plan import WindowPlan
from binlane.state.engines import engine_of
from binlane.work.files import WorkFolder
from binlane.work.logged_statements import MOST_FORMS, Logged, distinct_statements
from binlane.work.planned import PlannedLanes

log = logging.getLogger(__name__)

_MOST_FINDINGS: Final = 20
_SHOWN: Final = 120
"""Characters of a statement."""
_SEQNO: Final = re.compile(r"\bseqno (\d+)$")
_NAME: Final = rb"(?:`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|[\w$\x80-\xff]+)"
_MADE: Final = re.compile(
    rb"\b(?:FUNCTION|PROCEDURE)\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:" + _NAME + rb"\s*\.\s*)?(?P<name>" + _NAME + rb")", re.I
)
_SECRET: Final = re.compile(r"\b(?:IDENTIFIED|PASSWORD|SERVER)\b", re.I)
_LITERAL: Final = re.compile(r"'(?:[^'\\]|\\.|'')*(?:'|\Z)", re.S)
_TODO: Final = (
    "let the source do without it, or leave it out (docs/filters.md), or run a statement of the same effect on the "
    "target and begin the channel behind it"
)


def check_statements(
    target: Endpoint, plan: WindowPlan, plans: WorkFolder, named: Iterable[Finding]
) -> Iterator[Finding]:
    """What the target's parser refuses of the window's statements. ``named``: findings that say so of some already.

    Raises PlanError if the plan's files are not there.
    """
    known = {int(match[1]) for each in named if (match := _SEQNO.search(each.where)) is not None}
    made: set[str] = set()
    refused: list[tuple[Logged, Verdict]] = []
    judged = forms = 0
    judge: StatementJudge | None = None
    try:
        for logged in distinct_statements(plans, plan):
            judge = StatementJudge.open(engine_of(target)) if judge is None else judge
            if logged.item.kind is ItemKind.DDL:
                made.update(_made(logged.item.payload))
            elif judge.is_blocked:
                continue
            judged, forms = judged + 1, forms + (logged.item.kind is not ItemKind.DDL)
            verdict = judge.judge(logged.item)
            if verdict is not None:
                refused.append((logged, verdict))
    finally:
        if judge is not None:
            judge.close()
    if judge is not None:
        _tell(judged, forms, is_blocked=judge.is_blocked)
    findings = [each for each in refused if each[1].routine not in made or not each[1].routine]
    findings = [each for each in findings if known.isdisjoint(each[0].seqnos)]
    findings.sort(key=lambda each: each[0].header.first_seqno)
    for logged, verdict in findings[:_MOST_FINDINGS]:
        yield _finding(plans, plan, logged, verdict)
    if len(findings) > _MOST_FINDINGS:
        more = len(findings) - _MOST_FINDINGS
        log.warning("precheck: the target refuses %d more statements, which are not shown", more)


def _tell(judged: int, forms: int, *, is_blocked: bool) -> None:
    log.info("precheck: the target's parser was asked about %d statements", judged)
    if forms >= MOST_FORMS:
        log.info("precheck: the window has more than %d forms of DML; the rest was not asked about", MOST_FORMS)
    if is_blocked:
        log.warning("precheck: tables of the target are locked by another session: not all DML was asked about")


def _made(statement: bytes) -> Iterator[str]:
    if re.match(rb"\s*(?:/\*.*?\*/\s*)*CREATE\b", statement, re.I | re.S):
        match = _MADE.search(statement)
        if match is not None:
            yield match["name"].strip(b'`"').decode("utf-8", "replace").lower()


def _finding(plans: WorkFolder, plan: WindowPlan, logged: Logged, verdict: Verdict) -> Finding:
    seqno, source = _place(plans, plan, logged)
    context, message = logged.item.context, verdict.message
    statement = logged.item.payload[: 4 * _SHOWN]
    text = " ".join((statement.decode("utf-8", "replace") if context is None else decoded(statement, context)).split())
    if _SECRET.search(text):
        text, message = _LITERAL.sub("'...'", text), message.split(" near ")[0]
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return Finding(
        Severity.FATAL,
        f"{source}: statement of seqno {seqno}, {shown}",
        "what the target's parser takes",
        f"{verdict.what} that it refuses ({verdict.code}: {' '.join(message.split())})",
        _TODO,
    )


def _place(plans: WorkFolder, plan: WindowPlan, logged: Logged) -> tuple[int, LogPosition]:
    """The transaction that holds the statement, which its block may have beside others."""
    header = logged.header
    for piece in PlannedLanes(plans, plan).pieces(logged.lane, header) if header.transactions > 1 else ():
        if any(item.payload == logged.item.payload for item in piece.items):
            return piece.header.first_seqno, piece.header.source
    return header.first_seqno, header.source
