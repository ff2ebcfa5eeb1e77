"""Statements that take rows by the name of a partition, of tables that the target divides otherwise than the source.

``ALTER TABLE .. TRUNCATE PARTITION p`` is one text in every log, and a log of statements has ``DELETE FROM t PARTITION
(p)``. Which rows these take is decided by each server's own definition of the table, and no event tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Final

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
    takes_partition,
)

_NAMED: Final = re.compile(rb"\bPARTITION\b(?!\s+BY\b)", re.IGNORECASE)
"""What every statement has that names a partition; without the PARTITION BY of a window function."""
_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "the target would take other rows than the source did: ALTER TABLE .. PARTITION BY .. on the target, as the source "
    "had it where the window begins, or set allow_unsafe in the channel's file, and copy the table again behind the "
    "window (`binlane recopy CHANNEL --table ...`)"
)


def check_partitions(situation: Situation) -> Iterator[Finding]:
    """Statements that take rows by the name of a partition, of tables that the target divides in another way than the
    source."""
    if not situation.channel.apply.allow_unsafe:
        named = _NamedPartitions(situation)
        yield from islice(chain(named.of_definitions(), named.of_statements(), named.behind()), _MOST_FINDINGS)


class _NamedPartitions:
    """The window's statements that name partitions, and what both servers say of their tables, each asked once."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self._known: dict[TableKey, tuple[str, str] | None] = {}

    def of_definitions(self) -> Iterator[Finding]:
        """ALTER TABLE, and CREATE TABLE .. SELECT from partitions."""
        for text in self.situation.every_text:
            first = text.facts.first if "PARTITION" in text.words else None
            if first is not None and takes_partition(text.tokens):
                yield from self._finding(text.where, first, text.seqno)
            elif text.facts.create_select:
                for key in tables_by_partition(text.tokens, text.context.database or ""):
                    yield from self._finding(text.where, key, text.seqno)

    def of_statements(self) -> Iterator[Finding]:
        """What a log of statements has; of each table the first one."""
        seen = set[TableKey]()
        for logged, _ in self.situation.transactions_with(_NAMED):
            header = logged.header
            text = LoggedText.of(header.first_seqno, header.source, logged.item, self.situation.plan.flavor)
            for key in () if text is None else tables_by_partition(text.tokens, text.context.database or ""):
                if text is not None and key not in seen:
                    seen.add(key)
                    yield from self._finding(text.where, key, text.seqno)

    def behind(self) -> Iterator[Finding]:
        """Routines, views and triggers behind statements."""
        needs, tables = self.situation.needs, dict[str, TableKey]()
        if not (needs.statements or needs.loads) or not may_have_behind(self.situation, "PARTITION"):
            return

        def find(body: Body) -> Iterator[BodyPart]:
            for key in tables_by_partition(body.tokens, body.database):
                if self.difference(key) is not None:
                    tables[str(key)] = key
                    yield BodyPart(str(key), needs_rows=False)

        seen = set[tuple[str, str]]()
        for _, logged, program, part in reaching(self.situation, find):
            if (program, part.what) not in seen:
                seen.add((program, part.what))
                header = logged.header
                where = (
                    f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}: {program}"
                )
                yield from self._finding(where, tables[part.what], header.first_seqno)

    def _finding(self, where: str, key: TableKey, seqno: int) -> Iterator[Finding]:
        found = self.difference(key)
        if found is not None:
            yield Finding(Severity.FATAL, f"{where}: partitions of {key}", *found, _TODO, seqno)

    def difference(self, key: TableKey) -> tuple[str, str] | None:
        """What both servers say of a table's partitions, the source first, if a name may mean other rows; None where it
        means the same ones, and for a table that the window or the log behind it makes. Raises SourceError."""
        name = self.situation.compared(key)
        if name not in self._known:
            self._known[name] = self._difference(key)
        return self._known[name]

    def _difference(self, key: TableKey) -> tuple[str, str] | None:
        situation = self.situation
        target, source = situation.target.ask(read_partitioning, key), situation.source
        if target is None:
            return None
        if source is None:
            # of an archive the families alone are known
            is_other = target.is_of_one_family and situation.plan.flavor is not situation.target.flavor
            return ("partitions that every server fills alike", f"{target} of {OTHER_HASH}") if is_other else None
        named = situation.on_source(key)
        theirs = source.ask(read_partitioning, named)
        if theirs is None or self._compared(theirs, target, NO_CHANGES) is None:
            return None
        changed = _changed(situation.every_text, key, situation.compared)
        found = None if changed is None else self._compared(theirs, target, changed)
        if found is None or changed is None or (texts := source.definitions_behind()) is None:
            return found
        behind = _changed(texts, named, ANY_CASE.table)
        return None if behind is None else self._compared(theirs, target, changed | behind)

    def _compared(
        self, source: Partitioning, target: Partitioning, changed: PartitionChanges
    ) -> tuple[str, str] | None:
        rules = rules_for(self.situation.source_tables, self.situation.tables)
        return differing_partitions(source, target, rules, changed)


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
