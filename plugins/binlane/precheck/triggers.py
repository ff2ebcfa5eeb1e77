"""Triggers that the window makes on tables whose rows statements write: behind them they would fire on the target.

The source's log holds their effects already. The triggers of before the window are ``precheck.row_writer``'s.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from binlane.model import TableKey
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.finding import Finding
from binlane.schema.compare import Severity
from binlane.sql.logged_statement import LoggedText, index_of
from binlane.work.files import WorkFolder
from binlane.work.logged_statements import first_rows


def check_new_triggers(
    plan: WindowPlan,
    plans: WorkFolder,
    by_sql: Collection[TableKey],
    allowed: Collection[str],
    statements: Sequence[LoggedText],
) -> Iterator[Finding]:
    """``by_sql``: tables whose rows statements write; ``allowed``: names of those that may have triggers."""
    named = [(each, name) for each in statements if by_sql and (name := _name(each)) is not None]
    for statement, name in named:
        if statement.words[0] != "CREATE":
            continue
        ends = (each.seqno for each, other in named if other == name and each.words[0] == "DROP")
        end = next((seqno for seqno in ends if seqno > statement.seqno), plan.last_seqno + 1)
        for key in sorted(statement.facts.triggered, key=str):
            seqno = None
            if key in by_sql and str(key) not in allowed:
                seqno = first_rows(plans, plan, key, statement.seqno)
            if seqno is not None and seqno < end:
                todo = (
                    "statements would fire it, and the log holds its effects already: let the channel write rows with "
                    'BINLOG (apply.writer = "binlog"), or name the table in apply.allow_triggers if the trigger '
                    "changes nothing that is replicated"
                )
                expected = f"no trigger on {key}, whose rows statements write"
                yield Finding(Severity.FATAL, statement.where, expected, f"rows of it at seqno {seqno}", todo)


def _name(statement: LoggedText) -> str | None:
    """Of the trigger that a statement makes or drops, in lower case and without its database."""
    words = statement.words[:12]
    at = index_of(words, "TRIGGER", "TABLE", "VIEW", "PROCEDURE", "FUNCTION", "EVENT", "DATABASE", "INDEX", "USER")
    if at is None or words[0] not in ("CREATE", "DROP") or words[at] != "TRIGGER":
        return None
    rest = [token for token in statement.tokens[at + 1 : at + 7] if token.upper not in ("IF", "NOT", "EXISTS")]
    if not rest:
        return None
    return (rest[2] if len(rest) > 2 and rest[1].text == "." else rest[0]).text.lower()
