"""Rows that are written by statements: triggers that would fire, histories, and rows that are too long for a packet."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.model import TableKey
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.precheck.target.server import PACKET_LIMIT
from binlane.schema.compare import Severity
from binlane.schema.letter_case import LetterCase, lower
from binlane.schema.model import Table
from binlane.sql.logged_statement import LoggedText, index_of

_OVERHEAD: Final = 1024
"""The statement's own words, its table's name, and the packet's header."""
_ADDED: Final = 64
"""More than is added to a logged statement: ``DISABLE ON SLAVE``, ``IF EXISTS``."""
_KEY: Final = 8 << 10
"""More than a condition on a primary key: 3,072 bytes as digits, and 16 names."""
_NAME: Final = 66
_SET, _SAME = 10, 110
"""More than stands around a name that is set, and around one that is compared."""


def check_sql_writer(situation: Situation) -> Iterator[Finding]:
    """Tables with triggers or system versioning whose rows are written by statements."""
    for key in sorted(situation.by_sql, key=str):
        table = situation.tables.table(key)
        if table is not None:
            yield from _of_table(table, situation.allow_triggers)


def _of_table(table: Table, with_triggers: Collection[str]) -> Iterator[Finding]:
    if table.triggers and str(table.key) not in with_triggers:
        names = ", ".join(trigger.name for trigger in table.triggers)
        todo = (
            "statements fire them and the log holds their effects already: drop them on the target, or name the table "
            "in apply.allow_triggers if they change nothing that is replicated"
        )
        yield Finding(Severity.FATAL, f"{table.key}: triggers", "none under the SQL writer", names, todo)
    if table.system_versioned:
        todo = 'its history cannot be written by statements: apply.writer = "binlog"'
        yield Finding(Severity.FATAL, f"{table.key}: versioning", "none under the SQL writer", "system versioned", todo)


def check_packets(situation: Situation) -> Iterator[Finding]:
    """Rows written by statements, and logged statements, that are longer than ``max_allowed_packet``.

    What the filter has not measured fits into two thirds of the packet that the window was planned for.
    """
    plan, target, planned = situation.plan, situation.tables, situation.settings.packet
    have = target.max_allowed_packet
    if have is None:
        return
    if have < planned * 3 // 4:
        todo = f"SET GLOBAL max_allowed_packet = {planned} on the target: the window was planned for that"
        yield Finding(Severity.FATAL, "target: max_allowed_packet", f"{planned} bytes, as before", str(have), todo)
    for key in sorted(situation.by_sql, key=str):
        widest = plan.widest.get(key)
        if widest is None:
            continue
        table = target.table(key)
        keyed = table is not None and table.primary_key is not None
        size, seqno = (widest.stored, widest.stored_seqno) if keyed else (widest.found, widest.found_seqno)
        needed = size + _around(plan, key, table, keyed=keyed)
        yield from _too_long(f"{key}: a row of seqno {seqno}, as a statement", needed, have)
    size, seqno = plan.longest_statement
    if size:
        yield from _too_long(f"statement of seqno {seqno}", size + _ADDED, have, seqno)


def _around(plan: WindowPlan, key: TableKey, table: Table | None, *, keyed: bool) -> int:
    """More than a row's statement has besides its values."""
    if table is None:
        names = [_NAME] * max((logged.width for logged, _ in plan.logged(key)), default=0)
    else:
        names = [len(identifier(column.name)) for column in table.columns]
    each = sum(2 * name + _SET for name in names)
    return _OVERHEAD + each + (_KEY if keyed else sum(name + _SAME for name in names))


def _too_long(where: str, needed: int, have: int, seqno: int | None = None) -> Iterator[Finding]:
    if needed > have:
        todo = f"SET GLOBAL max_allowed_packet = {-(-needed // 1024) * 1024} on the target and reconnect"
        if needed > PACKET_LIMIT:
            todo = "no server takes so long a statement: filter the table out and copy it another way"
        yield Finding(Severity.FATAL, where, f"max_allowed_packet of {needed} bytes or more", str(have), todo, seqno)


def check_new_triggers(situation: Situation) -> Iterator[Finding]:
    """Triggers that the window creates on tables whose rows are written by statements.

    Rows behind them would fire them on the target, and the log holds their effects already.
    """
    case, allowed = situation.tables.letter_case, situation.allow_triggers
    by_sql = {case.table(key): key for key in situation.by_sql}
    texts = situation.every_text if by_sql else ()
    named = [(each, name) for each in texts if (name := _trigger(each, case)) is not None]
    for statement, name in named:
        if statement.words[0] != "CREATE":
            continue
        ends = (each.seqno for each, other in named if other == name and each.words[0] == "DROP")
        end = next((seqno for seqno in ends if seqno > statement.seqno), situation.plan.last_seqno + 1)
        for typed in sorted(statement.facts.triggered, key=str):
            # a statement has names as they were typed, an event of rows as the source has them
            key = by_sql.get(case.table(typed))
            seqno = None if key is None or str(key) in allowed else situation.first_rows(key, statement.seqno)
            if seqno is not None and seqno < end:
                todo = (
                    "statements would fire it, and the log holds its effects already: let the channel write rows with "
                    'BINLOG (apply.writer = "binlog"), or name the table in apply.allow_triggers if the trigger '
                    "changes nothing that is replicated"
                )
                expected = f"no trigger on {key}, whose rows statements write"
                yield Finding(Severity.FATAL, statement.where, expected, f"rows of it at seqno {seqno}", todo)


def _trigger(statement: LoggedText, case: LetterCase) -> TableKey | None:
    """The database and the name, in lower case, of the trigger that a statement makes or drops."""
    words = statement.words[:12]
    at = index_of(words, "TRIGGER", "TABLE", "VIEW", "PROCEDURE", "FUNCTION", "EVENT", "DATABASE", "INDEX", "USER")
    if at is None or words[0] not in ("CREATE", "DROP") or words[at] != "TRIGGER":
        return None
    rest = [token for token in statement.tokens[at + 1 : at + 7] if token.upper not in ("IF", "NOT", "EXISTS")]
    if not rest:
        return None
    is_qualified = len(rest) > 2 and rest[1].text == "."
    database = rest[0].text if is_qualified else statement.context.database or ""
    return TableKey(case.name(database), lower(rest[2 if is_qualified else 0].text))
