"""Tables whose names stand for other rows behind a window: its DDL has renamed, exchanged, emptied, dropped or created
them. A full verification that has compared some of their rows begins them again."""

from __future__ import annotations

from typing import Final

from binlane.errors import PlanError
from binlane.model import ItemKind, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.window_plan import WindowPlan
from binlane.sql.logged_statement import LoggedText, index_of
from binlane.sql.parse.facts import StatementKind
from binlane.work.files import WorkFolder
from binlane.work.logged_statements import distinct_statements

_REPLACING: Final = frozenset({StatementKind.DDL, StatementKind.UNKNOWN})


def replaced_tables(folder: WorkFolder, plan: WindowPlan) -> Alterations:
    """The tables, by the target's names; any table if the window's lane files cannot be read.

    ``folder``: the plan's.
    """
    if plan.kinds.keys().isdisjoint(_REPLACING):
        return Alterations()
    tables, unread = dict[TableKey, tuple[int, ...]](), set(plan.altered.unread)
    try:
        for logged in distinct_statements(folder, plan):
            if logged.item.kind is not ItemKind.DDL:
                continue
            header = logged.header
            text = LoggedText.of(header.first_seqno, header.source, logged.item, plan.flavor)
            if text is None:
                unread.add(header.first_seqno)
            else:
                tables |= dict.fromkeys(_replaced(text), (header.first_seqno,))
    except PlanError:
        return Alterations(unread=(plan.last_seqno,))
    return Alterations(tables, tuple(sorted(unread)))


def _replaced(statement: LoggedText) -> set[TableKey]:
    words, facts = statement.words, statement.facts
    found = {name for pair in facts.moves for name in pair}
    if words[:1] == ("TRUNCATE",):
        return found | facts.tables
    makes = words[:1] in (("CREATE",), ("DROP",)) and index_of(words[1:6], "TABLE", "TABLES") is not None
    return found | facts.defines if makes else found
