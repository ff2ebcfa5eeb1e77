"""Transactions with statements on tables without transactions that were open where the channel began.

In a log of statements such a table's change stands where its transaction has committed, if the transaction had changed
another table before; the table itself has the change at once. So a copy that was made in between has it, and the log
has it again behind the copy. (Servers log rows of such a table at once, in front of the transaction: those are right.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, islice
from typing import Final

from binlane.model import SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.state.channels import begun_at
from binlane.work.logged_statements import LaneStatement

_EVERY: Final = re.compile(b"")
_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "the copy of the source that the channel began at may have this change, and would get it twice: begin the channel "
    "at a copy that was made when no such transaction was open, or, if the copy does not have it, set allow_unsafe in "
    "the channel's file; a log of rows (binlog_format = ROW or MIXED) has no such statements"
)


def check_open_transactions(situation: Situation) -> Iterator[Finding]:
    """Statements on tables without transactions, in a transaction that may have been open where the channel began."""
    if (
        not situation.older_sessions or situation.source_tables is None
        or situation.channel.apply.allow_unsafe or not situation.needs.statements
    ):  # fmt: skip
        return
    tables = situation.source_tables
    lasting = frozenset(
        key for key in situation.plan.written if (table := tables.table(key)) is not None and not table.transactional
    )
    if lasting:
        yield from islice(_findings(situation, lasting), _MOST_FINDINGS)


def _findings(situation: Situation, lasting: frozenset[TableKey]) -> Iterator[Finding]:
    begun = situation.target.ask(begun_at, situation.plan.channel)
    statements = (logged for logged, _ in situation.transactions_with(_EVERY))
    for _, group in groupby(statements, lambda logged: (logged.lane, logged.header.first_seqno)):
        # the first one of a transaction is logged at once
        for logged in islice(group, 1, None):
            tables = _of_before(situation, logged, begun) & lasting
            if tables:
                header = logged.header
                yield Finding(
                    Severity.FATAL,
                    f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}",
                    "a transaction that was not open where the channel began",
                    f"a change of {min(map(str, tables))}, which has no transactions, from before",
                    _TODO,
                    header.first_seqno,
                )


def _of_before(situation: Situation, logged: LaneStatement, begun: float) -> frozenset[TableKey]:
    """What a statement has written, if it may have run before the channel began."""
    context = logged.item.context or SessionContext()
    if (context.thread_id or 0) > situation.older_sessions or (context.timestamp or 0) > begun:
        return frozenset()
    return statement_facts(logged.item.payload, context, situation.plan.flavor).written
