"""Before the first write of a window: each of its statements before the target's own parser, and what DDL asks for."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from binlane.config import ChannelConfig
from binlane.connections import Endpoint
from binlane.model import BlockHeader, ItemKind, TableKey
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.definers import check_owned
from binlane.precheck.finding import Finding
from binlane.precheck.grants import check_rights
from binlane.precheck.loadable_functions import check_libraries
from binlane.precheck.parser_probe import StatementJudge, Verdict
from binlane.precheck.table_engines import check_engines
from binlane.precheck.table_settings import check_settings
from binlane.precheck.triggers import check_new_triggers
from binlane.schema.compare import Severity
from binlane.servers.catalog import server_version, version_number
from binlane.servers.engines import engine_of
from binlane.sql.charset import decoded
from binlane.sql.logged_statement import LoggedText, hides_secrets, shown
from binlane.work.files import WorkFolder
from binlane.work.logged_statements import MOST_FORMS, Logged, distinct_statements
from binlane.work.planned import PlannedLanes

log = logging.getLogger(__name__)

_MOST_FINDINGS: Final = 20
_SEQNO: Final = re.compile(r"\bseqno (\d+)$")
_NAME: Final = rb"(?:`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|[\w$\x80-\xff]+)"
_MADE: Final = re.compile(
    rb"\b(?:FUNCTION|PROCEDURE)\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:" + _NAME + rb"\s*\.\s*)?(?P<name>" + _NAME + rb")", re.I
)
_TODO: Final = (
    "let the source do without it, or leave it out (docs/filters.md), or end a window before it (--until with its "
    "GTID), run a statement of the same effect on the target and begin the channel behind it"
)


@dataclass(slots=True)
class _Asked:
    """What came of asking the target's parser."""

    refused: list[tuple[Logged, Verdict]] = field(default_factory=list)
    texts: list[LoggedText] = field(default_factory=list)
    """Of the statements that commit by themselves and that the parser takes."""
    made: set[str] = field(default_factory=set)
    """Routines that the window makes, in lower case."""


def check_statements(
    channel: ChannelConfig,
    target: Endpoint,
    plan: WindowPlan,
    plans: WorkFolder,
    named: Iterable[Finding],
    by_sql: Collection[TableKey] = (),
    without_transactions: Collection[TableKey] = (),
) -> list[Finding]:
    """What the target's parser refuses of the window's statements, and what its account and settings lack for them.

    ``named``: findings that name some of them already; ``by_sql``: tables whose rows statements write;
    ``without_transactions``: the target's tables that the channel does not allow. Raises PlanError if the plan's files
    are not there.
    """
    known = {int(match[1]) for each in named if (match := _SEQNO.search(each.where)) is not None}
    asked = _ask(target, plan, plans)
    found = [
        (logged, verdict)
        for logged, verdict in asked.refused
        if verdict.routine not in asked.made and known.isdisjoint(logged.seqnos)
    ]
    found.sort(key=lambda each: each[0].header.first_seqno)
    if len(found) > _MOST_FINDINGS:
        more = len(found) - _MOST_FINDINGS
        log.warning("precheck: the target refuses %d more statements, which are not shown", more)
    findings = [_refusal(plans, plan, *each) for each in found[:_MOST_FINDINGS]]
    asked.texts.sort(key=lambda each: each.seqno)
    findings += check_new_triggers(plan, plans, by_sql, channel.apply.allow_triggers, asked.texts)
    findings += check_engines(plan, asked.texts, without_transactions)
    return [*findings, *_asked_for(channel, target, asked.texts)]


def _ask(target: Endpoint, plan: WindowPlan, plans: WorkFolder) -> _Asked:
    asked, judge, judged, forms = _Asked(), None, 0, 0
    try:
        for logged in distinct_statements(plans, plan):
            judge = StatementJudge.open(engine_of(target)) if judge is None else judge
            is_ddl = logged.item.kind is ItemKind.DDL
            if not is_ddl and judge.is_blocked:
                continue
            judged, forms = judged + 1, forms + (not is_ddl)
            verdict = judge.judge(logged.item)
            if verdict is not None:
                asked.refused.append((logged, verdict))
            if is_ddl:
                asked.made.update(_made(logged.item.payload))
                header = logged.header
                text = LoggedText.of(header.first_seqno, header.source, logged.item, plan.flavor)
                asked.texts.extend([] if text is None or verdict is not None else [text])
    finally:
        if judge is not None:
            judge.close()
    if judge is not None:
        log.info("precheck: the target's parser was asked about %d statements", judged)
        if forms >= MOST_FORMS:
            log.info("precheck: the window has more than %d forms of DML; the rest was not asked about", MOST_FORMS)
        if judge.is_blocked:
            log.warning("precheck: tables of the target are locked by another session: not all DML was asked about")
    return asked


def _asked_for(channel: ChannelConfig, target: Endpoint, texts: Sequence[LoggedText]) -> Iterator[Finding]:
    """What the statements that commit by themselves ask for beside their grammar."""
    if not texts:
        return
    with engine_of(target).connect() as connection:
        flavor, version = server_version(connection)
        number = version_number(version)
        yield from check_rights(connection, flavor, number, texts)
        yield from check_owned(connection, flavor, number, texts)
        yield from check_libraries(connection, flavor, number, texts)
        lenient = channel.apply.allow_nontransactional
        yield from check_settings(connection, texts, allow_nontransactional=lenient)


def _made(statement: bytes) -> Iterator[str]:
    if re.match(rb"\s*(?:/\*.*?\*/\s*)*CREATE\b", statement, re.I | re.S):
        # a package has several; what a body names is taken for made as well
        for match in _MADE.finditer(statement):
            yield match["name"].strip(b'`"').decode("utf-8", "replace").lower()


def _refusal(plans: WorkFolder, plan: WindowPlan, logged: Logged, verdict: Verdict) -> Finding:
    header = _place(plans, plan, logged)
    context, message, statement = logged.item.context, verdict.message, logged.item.payload[:1000]
    text = statement.decode("utf-8", "replace") if context is None else decoded(statement, context)
    message = message.split(" near ")[0] if hides_secrets(text) else message
    return Finding(
        Severity.FATAL,
        f"{header.source}: statement of seqno {header.first_seqno}, GTID {header.gtid or '-'}, {shown(text)}",
        "what the target's parser takes",
        f"{verdict.what} that it refuses ({verdict.code}: {' '.join(message.split())})",
        _TODO,
    )


def _place(plans: WorkFolder, plan: WindowPlan, logged: Logged) -> BlockHeader:
    """Of the transaction that holds the statement, which its block may have beside others."""
    header = logged.header
    for piece in PlannedLanes(plans, plan).pieces(logged.lane, header) if header.transactions > 1 else ():
        if any(item.payload == logged.item.payload for item in piece.items):
            return piece.header
    return header
