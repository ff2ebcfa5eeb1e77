"""Statements that take rows by the name of a partition, of tables that the target divides otherwise than the source.

``ALTER TABLE .. TRUNCATE PARTITION p`` is one text in every log, and a log of statements has ``DELETE FROM t PARTITION
(p)``. Which rows these take is decided by each server's own definition of the table, and no event tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Final, NamedTuple

from binlane.model import TableKey
from binlane.precheck.bodies.body_parts import Body, BodyPart, may_have_behind, reaching
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity, rules_for
from binlane.schema.letter_case import ANY_CASE
from binlane.schema.partitions import NO_CHANGES, OTHER_HASH, PartitionChanges, Partitioning, differing_partitions
from binlane.servers.partitions import read_partitioning
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.partitions import (
    changed_partitions,
    changes_columns,
    divides_anew,
    tables_by_partition,
    taken_partitions,
)

_NAMED: Final = re.compile(rb"\bPARTITION\b(?!\s+BY\b)", re.IGNORECASE)
"""What every statement has that names a partition; without the PARTITION BY of a window function."""
_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "the target would take other rows than the source did: give these partitions of the target the bounds or values "
    "that the source's had where the window begins, and those in front the same bounds (ALTER TABLE .. REORGANIZE "
    "PARTITION, or .. PARTITION BY ..), or set allow_unsafe in the channel's file, and copy the table again behind the "
    "window (`binlane recopy CHANNEL --table ...`)"
)
_TODO_BELIEF: Final = (
    "they are taken for the same: compare SHOW CREATE TABLE of both servers, if the target was not copied from the "
    "source"
)


def check_partitions(situation: Situation) -> Iterator[Finding]:
    """Statements that take rows by the name of a partition that has other rows on the target than on the source: of
    RANGE and LIST by its own bounds or values, of HASH and KEY by all partitions. Named for an archive."""
    if not situation.channel.apply.allow_unsafe:
        named = _NamedPartitions(situation)
        yield from islice(chain(named.of_definitions(), named.of_statements(), named.behind()), _MOST_FINDINGS)


class _Differing(NamedTuple):
    """What the servers say of a table's partitions."""

    source: str
    target: str
    is_belief: bool = False
    """Nothing tells the source's."""

    def finding(self, where: str, seqno: int) -> Finding:
        """What is said of a statement."""
        severity, todo = (Severity.INFO, _TODO_BELIEF) if self.is_belief else (Severity.FATAL, _TODO)
        return Finding(severity, where, self.source, self.target, todo, seqno)


class _Sides(NamedTuple):
    """How both servers divide a table, and what the window changes of that."""

    source: Partitioning
    """The target's for an archive."""
    target: Partitioning
    changed: PartitionChanges | None
    """None: the window may make another table of it, or divide it anew."""

    @classmethod
    def of(cls, situation: Situation, key: TableKey) -> _Sides | None:
        """None for a table that a server does not have. Raises SourceError."""
        target, source = situation.target.ask(read_partitioning, key), situation.source
        if target is None:
            return None
        theirs = target if source is None else source.ask(read_partitioning, situation.on_source(key))
        changed = _changed(situation.every_text, key, situation.compared)
        return None if theirs is None else cls(theirs, target, changed)


class _NamedPartitions:
    """The window's statements that name partitions, and what both servers say of their tables, each asked once."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self._known: dict[TableKey, _Sides | None] = {}

    def of_definitions(self) -> Iterator[Finding]:
        """ALTER TABLE, and CREATE TABLE .. SELECT from partitions."""
        for text in self.situation.every_text:
            first = text.facts.first if "PARTITION" in text.words else None
            if first is not None and (names := taken_partitions(text.tokens)) is not None:
                yield from self._findings(text.where, first, names, text.seqno)
            elif text.facts.create_select:
                for key, names in tables_by_partition(text.tokens, text.context.database or ""):
                    yield from self._findings(text.where, key, names, text.seqno)

    def of_statements(self) -> Iterator[Finding]:
        """What a log of statements has; of the same partitions the first one."""
        seen = set[tuple[TableKey, frozenset[str]]]()
        for logged, _ in self.situation.transactions_with(_NAMED):
            header = logged.header
            text = LoggedText.of(header.first_seqno, header.source, logged.item, self.situation.plan.flavor)
            for taken in () if text is None else tables_by_partition(text.tokens, text.context.database or ""):
                if text is not None and taken not in seen:
                    seen.add(taken)
                    yield from self._findings(text.where, *taken, text.seqno)

    def behind(self) -> Iterator[Finding]:
        """Routines, views and triggers behind statements."""
        needs, found = self.situation.needs, dict[str, _Differing]()
        if not (needs.statements or needs.loads) or not may_have_behind(self.situation, "PARTITION"):
            return

        def find(body: Body) -> Iterator[BodyPart]:
            for key, names in tables_by_partition(body.tokens, body.database):
                if (differing := self._differing(key, names)) is not None:
                    what = f"partitions {', '.join(sorted(names))} of {key}"
                    found[what] = differing
                    yield BodyPart(what, needs_rows=False)

        seen = set[tuple[str, str]]()
        for _, logged, program, part in reaching(self.situation, find):
            if (program, part.what) not in seen:
                seen.add((program, part.what))
                header = logged.header
                where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
                yield found[part.what].finding(f"{where}: {program}: {part.what}", header.first_seqno)

    def _findings(self, where: str, key: TableKey, names: frozenset[str], seqno: int) -> Iterator[Finding]:
        if (found := self._differing(key, names)) is not None:
            yield found.finding(f"{where}: partitions of {key}", seqno)

    def _differing(self, key: TableKey, names: frozenset[str]) -> _Differing | None:
        """What both servers say of these partitions of a table, if a name may mean other rows; None where it means the
        same ones, and for a table that the window or the log behind it makes. Raises SourceError."""
        situation, name = self.situation, self.situation.compared(key)
        if name not in self._known:
            self._known[name] = _Sides.of(situation, key)
        sides = self._known[name]
        if sides is None:
            return None
        if situation.source is None:
            return self._of_archive(sides)
        found = None if sides.changed is None else self._compared(sides, sides.changed, names)
        if found is None or sides.changed is None or (texts := situation.source.definitions_behind()) is None:
            return found
        behind = _changed(texts, situation.on_source(key), ANY_CASE.table)
        return None if behind is None else self._compared(sides, sides.changed | behind, names)

    def _of_archive(self, sides: _Sides) -> _Differing | None:
        """Of an archive the families are known, and what the window itself says."""
        target = sides.target
        if target.is_of_one_family and self.situation.plan.flavor is not self.situation.target.flavor:
            return _Differing("partitions that every server fills alike", f"{target} of {OTHER_HASH}")
        if sides.changed is None or not target.partitions:
            return None
        return _Differing("the source's partitions, of which an archive tells nothing", f"{target}", is_belief=True)

    def _compared(self, sides: _Sides, changed: PartitionChanges, names: frozenset[str]) -> _Differing | None:
        rules = rules_for(self.situation.source_tables, self.situation.tables)
        found = differing_partitions(sides.source, sides.target, rules, changed, names)
        return None if found is None else _Differing(*found)


def _changed(
    texts: Iterable[LoggedText], key: TableKey, compared: Callable[[TableKey], TableKey]
) -> PartitionChanges | None:
    """What these statements change of a table's partitions; None if one of them may make another table of it, or divide
    all of its rows anew. ``compared``: a name as the server compares it."""

    def is_it(other: TableKey | None) -> bool:
        return other is not None and compared(other) == compared(key)

    found = NO_CHANGES
    for text in texts:
        facts = text.facts
        if facts.may_define_any or any(is_it(TableKey(name, key.table)) for name in text.dropped_databases):
            return None
        if is_it(text.made_if_missing) or not any(map(is_it, facts.defines)):
            continue
        is_first = is_it(facts.first)
        is_made = is_first and (text.is_of_new_table or divides_anew(text.tokens))
        if is_made or any(map(is_it, chain(facts.dropped, facts.replaced, *facts.renames))):
            return None
        if is_first:
            found |= PartitionChanges(changed_partitions(text.tokens), changes_columns(text.tokens))
    return found
