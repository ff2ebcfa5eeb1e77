"""Tables that a window's statements read or change and that the target has lost, or has with rows of a later moment.

A statement over such a table changes others wrongly, so that these are copied with it: by one command, which a window
over rows alone does not need.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity
from binlane.schema.shell_names import shell_name
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.facts import StatementKind
from binlane.sql.programs.reach import folded, names_in, naming, plain_name

_CHANGING: Final = frozenset({StatementKind.DML, StatementKind.LOAD_DATA, StatementKind.UNKNOWN})


@dataclass(frozen=True, slots=True)
class CopiedTogether:
    """What one recopy makes right."""

    lacking: frozenset[TableKey]
    """Tables that statements name, and the target lacks."""
    later: frozenset[TableKey]
    """Those that statements reach, and the target has with rows of a later moment."""
    changed: frozenset[TableKey]
    """Other tables that statements over these change, or over tables that they change."""

    @property
    def todo(self) -> str:
        """The command."""
        tables = " ".join(
            f"--table {shell_name(key)}" for key in sorted(self.lacking | self.later | self.changed, key=str)
        )
        also = "" if not self.changed else ", with those that statements over them change"
        return f"`binlane recopy CHANNEL {tables}` copies them{also}"


_NONE: Final = CopiedTogether(frozenset(), frozenset(), frozenset())


def copied_together(situation: Situation) -> CopiedTogether:
    """Of the window's statements. Nothing is read of them where the target lacks no table."""
    if situation.plan.complete_images:
        return _NONE
    copied = _copied_with(situation, situation.lacking_tables)
    if not copied.lacking or situation.begun or situation.source is None:
        return copied
    # the whole log behind the window is read, so that this comes last
    behind = situation.source.altered_behind(whole=True)
    if behind is None or not any(map(behind.names, copied.lacking)):
        return copied
    # the source may have made these since
    return _copied_with(situation, frozenset(key for key in situation.lacking_tables if not behind.names(key)))


def _copied_with(situation: Situation, lacking: frozenset[TableKey]) -> CopiedTogether:
    if not (lost := lacking | situation.later_tables):
        return _NONE
    reach = situation.reach
    wrong, named = set(lost), set[TableKey]()
    while True:
        leading = reach.leading_to({folded(key) for key in wrong})
        more = set[TableKey]()
        for logged, _ in situation.transactions_with(naming(map(plain_name, leading))):
            text = LoggedText.of(logged.header.first_seqno, logged.header.source, logged.item, situation.plan.flavor)
            if text is None or text.facts.kind not in _CHANGING:
                continue
            names = _objects_of(text)
            if leading.isdisjoint(names):
                continue
            reached = reach.of(names)
            named.update(key for key in lost if folded(key) in reached)
            more |= text.facts.written
            if reached != names:
                # a program may change whatever it names
                more.update(key for key in situation.tables.tables if folded(key) in reached)
        if more <= wrong:
            later = situation.later_tables & named
            return CopiedTogether(lacking & named, later, frozenset(wrong - lost)) if named else _NONE
        wrong |= more


def _objects_of(text: LoggedText) -> frozenset[TableKey]:
    """The tables, views and routines that a statement names."""
    names, facts = frozenset(names_in(text.every_token, text.context.database or "")), text.facts
    return frozenset(map(folded, facts.tables)).union(key for key in names if plain_name(key) != key.table)


def check_lost_tables(situation: Situation) -> Iterator[Finding]:
    """Tables without which, or with later rows of which, statements would fail or change others wrongly."""
    copied = copied_together(situation)
    for key in sorted(copied.lacking, key=str):
        yield Finding(Severity.FATAL, f"{key}: table", "the table", "no such table", copied.todo)
    if copied.later and copied.changed:
        for key in sorted(copied.later, key=str):
            found = "later ones, which statements of the window would read"
            yield Finding(Severity.FATAL, f"{key}: rows", "those of the window's moment", found, copied.todo)
