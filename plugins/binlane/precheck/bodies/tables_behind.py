"""Tables that statements write without naming them: through views, and by the triggers and routines behind them.

No TABLE_MAP and no text of the window tells their columns. Where source and target have other ones, or another order of
them, another length, collation, default or unique key, the same body leaves other rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from binlane.model import TableKey
from binlane.precheck.bodies.body_parts import Body, BodyPart, reaching
from binlane.precheck.bodies.row_order import RowOrder
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Difference, Severity
from binlane.schema.letter_case import ANY_CASE
from binlane.sql.parse.row_effects import writes
from binlane.work.logged_statements import LaneStatement

_MOST_FINDINGS: Final = 20
_EXPECTED: Final = "a table behind it that both servers have alike"
_OR_UNSAFE: Final = "; or, if the rows are the same all the same, set allow_unsafe in the channel's file"


def check_tables_behind(situation: Situation) -> Iterator[Finding]:
    """Tables that statements write through views, or by triggers and routines, whose definitions differ between source
    and target."""
    if situation.source is None or not situation.needs.statements or situation.channel.apply.allow_unsafe:
        return
    yield from islice(_findings(situation), _MOST_FINDINGS)


def _findings(situation: Situation) -> Iterator[Finding]:
    rows, written = RowOrder(situation), dict[tuple[TableKey, str], LaneStatement]()
    keys = dict[str, TableKey]()

    def of_body(body: Body) -> Iterator[BodyPart]:
        name, is_view = body.difference.key, rows.view_of(body.difference.key) is not None and not body.events
        named: Iterable[TableKey] = (name,) if is_view else writes(body.tokens, body.database)
        # a statement that only reads a view writes nothing
        changed = frozenset({ANY_CASE.table(name)}) if is_view else None
        for key in sorted(
            {situation.compared(base) for each in named for base in rows.bases_of(each, changed=True)}, key=str
        ):
            keys[str(key)] = key
            yield BodyPart(str(key), needs_rows=False, reads=changed)

    for text, logged, program, part in reaching(situation, of_body, every=rows.every_body):
        if part.reads is None or (
            text is not None and not part.reads.isdisjoint(map(ANY_CASE.table, text.facts.written))
        ):
            written.setdefault((keys[part.what], program), logged)
    differences = situation.differences_of({key for key, _ in written})
    for (key, program), logged in written.items():
        for each in differences:
            if each.severity is Severity.FATAL and situation.compared(each.table) == key:
                yield _finding(each, logged, program)


def _finding(difference: Difference, logged: LaneStatement, program: str) -> Finding:
    header = logged.header
    where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
    found = f"{difference.where} with {difference.what} {difference.found} in place of {difference.expected}"
    if difference.what == "engine":
        # also where both servers have the same one
        found, todo = f"{found}, behind {program}: its rows stay where the block is rolled back", difference.hint
        return Finding(Severity.FATAL, where, "a table with transactions behind it", found, todo, header.first_seqno)
    found, todo = f"{found}, behind {program}", f"{difference.hint}{_OR_UNSAFE}"
    return Finding(Severity.FATAL, where, _EXPECTED, found, todo, header.first_seqno)
