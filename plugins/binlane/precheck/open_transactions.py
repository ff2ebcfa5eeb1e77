"""What was open where the channel begins: transactions with statements on tables without transactions, and temporary
tables of bodies.

In a log of statements such a table's change stands where its transaction has committed, if the transaction had changed
another table before; the table itself has the change at once. So a copy that was made in between has it, and the log
has it again behind the copy. (Servers log rows of such a table at once, in front of the transaction: those are right.)

A server marks the statements that use a temporary table of their connection. In the body of an event or a procedure it
marks each statement behind such a one, too, and the log does not say which statements are of a body. So where the
source may have run one, a statement that the plan leaves out (``plan.transaction.unseen_tables``) may be about the
permanent table of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, islice
from typing import Final

from sqlalchemy import Connection, text

from binlane.model import SessionContext, TableKey, plural
from binlane.plan.transaction.decode import statement_facts
from binlane.plan.transaction.unseen_tables import UNSEEN_RULE
from binlane.precheck.finding import Finding
from binlane.precheck.situation import Situation
from binlane.schema.compare import Severity
from binlane.servers.names import literals, other_than
from binlane.sql.logged_statement import shown
from binlane.state.channels import begun_at
from binlane.work.logged_statements import LaneStatement

_EVERY: Final = re.compile(b"")
_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "the copy of the source that the channel began at may have this change, and would get it twice: begin the channel "
    "at a copy that was made when no such transaction was open, or, if the copy does not have it, set allow_unsafe in "
    "the channel's file; a log of rows (binlog_format = ROW or MIXED) has no such statements"
)

_BODIES: Final = text(
    "SELECT 'event', event_schema, event_name, event_definition FROM information_schema.events UNION ALL "
    "SELECT 'procedure', routine_schema, routine_name, 'CALL' FROM information_schema.routines "
    f"WHERE routine_type = 'PROCEDURE' AND {other_than('routine_schema', literals(('mysql', 'sys')))}"
)
_MAKES: Final = re.compile(r"\b(?:TEMPORARY|CALL|EXECUTE)\b", re.IGNORECASE)
"""An event has a connection of its own, so its temporary tables are of its body, or of what that calls."""


def check_open_transactions(situation: Situation) -> Iterator[Finding]:
    """Statements on tables without transactions, in a transaction that may have been open where the channel began."""
    if (
        not situation.older_sessions or situation.begun or situation.source_tables is None
        or situation.channel.apply.allow_unsafe or not situation.needs.statements
    ):  # fmt: skip
        return
    tables = situation.source_tables.tables
    lasting = frozenset(
        key for key in situation.plan.written if (table := tables.get(key)) is not None and not table.transactional
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


def check_left_out_statements(situation: Situation) -> Iterator[Finding]:
    """Events and procedures whose statements the plan may have left out."""
    plan = situation.plan
    if UNSEEN_RULE not in plan.filtered or situation.begun or situation.channel.apply.allow_unsafe:
        return
    bodies = set(situation.target.ask(_bodies))
    if situation.source is not None:
        bodies.update(situation.source.ask(_bodies))
    if bodies:
        count, others = plan.filtered[UNSEEN_RULE].statements, len(bodies) - 1
        yield Finding(
            Severity.FATAL,
            f"{plural(count, 'statement')} of what may be a temporary table of before the channel's beginning",
            "statements that no event and no procedure has run, which the log would not show",
            f"{min(bodies)}, which may use temporary tables" + (f", and {others:,} more" if others else ""),
            "if a connection itself had the temporary tables, set allow_unsafe in the channel's file for this window; "
            "if an event or procedure ran the statements, they are of permanent tables: set it as well, and copy their "
            f"tables again behind the window (`binlane recopy {plan.channel} --table ...`), or begin the channel again "
            "while none of them runs",
        )


def _bodies(connection: Connection) -> list[str]:
    """What can run statements and make temporary tables, as far as the account sees it."""
    found = connection.execute(_BODIES)
    return [f"{kind} {schema}.{name}" for kind, schema, name, body in found if _MAKES.search(body or "")]
