"""What a window's log tells of the tables that it makes and whose engine it does not name.

Whether an engine has transactions matters only while a statement fails or is rolled back, and a failed statement that
changes one table alone is in the log only because the table has none.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, ItemKind, LogPosition, TableKey
from binlane.schema.letter_case import LetterCase
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.facts import StatementKind

_SEQUENCES: Final = frozenset({"NEXTVAL", "NEXT"})


@dataclass(slots=True)
class ToldEngines:
    """By the tables' names, as ``letters`` has them."""

    occurrences: Mapping[tuple[str, str | None], Sequence[int]]
    """Seqnos of each text that commits by itself, with its default database."""
    named: Mapping[str, Sequence[int]]
    """Seqnos of such texts that name the table: its triggers, too."""
    made: Mapping[str, Sequence[int]]
    """Those that have certainly made it, with no other's definition."""
    ends: Mapping[str, Sequence[int]]
    """Those at which it is another table than before, or none."""
    moved: frozenset[str]
    """Tables that live on by another name."""
    copied: frozenset[str]
    """Tables whose engine lives on in another, by CREATE TABLE .. LIKE."""
    is_clear: bool
    """Without temporary tables, which hide others of their name."""
    letters: LetterCase
    undone: list[tuple[int, tuple[int, str] | None]] = field(default_factory=list)
    """Seqnos of statements that failed or were rolled back; with a table and where it was made, if nothing but that was
    changed."""
    failed: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Those of a failed statement that names this table alone."""

    @classmethod
    def of(
        cls,
        texts: Iterable[LoggedText],
        statements: Iterable[tuple[int, LogPosition, Item]],
        flavor: Flavor,
        letters: LetterCase,
        *,
        is_clear: bool,
    ) -> ToldEngines:
        """``texts``: those that commit by themselves. ``statements``: all of the window, with their transactions'
        seqnos. ``letters``: how names are compared; ``is_clear``: no routine or trigger makes temporary tables."""
        texts, statements = tuple(texts), tuple(statements)
        is_clear = is_clear and not any(b"TEMPORARY" in item.payload.upper() for _, _, item in statements)
        found = defaultdict[tuple[str, str | None], list[int]](list)
        named, made, ends = (defaultdict[str, list[int]](list) for _ in range(3))
        moved, copied = set[str](), set[str]()
        for text in texts:
            facts = letters.facts(text.facts)
            found[text.sql, text.context.database].append(text.seqno)
            moved.update(str(old) for old, _ in facts.moves)
            copied.update(str(old) for old, _ in facts.copies)
            for key in facts.tables:
                named[str(key)].append(text.seqno)
            new = letters.tables(_made(text))
            for key in new:
                made[str(key)].append(text.seqno)
            for key in new or (facts.tables if is_clear and _drops(text) else ()):
                ends[str(key)].append(text.seqno)
        told = cls(found, named, made, ends, frozenset(moved), frozenset(copied), is_clear, letters)
        for seqno, source, item in statements:
            told._add(seqno, source, item, flavor)
        told.undone.sort(key=lambda each: each[0])
        return told

    def _add(self, seqno: int, source: LogPosition, item: Item, flavor: Flavor) -> None:
        has_failed = item.context is not None and item.context.error_code != 0
        if not has_failed and item.payload[:8].upper() != b"ROLLBACK":
            return
        text = LoggedText.of(seqno, source, item, flavor) if has_failed and item.kind is ItemKind.STATEMENT else None
        only = None if text is None else self._only(text)
        if only is not None:
            self.failed[only].append(seqno)
        made = None if only is None else self._made_for(only, seqno)
        self.undone.append((seqno, None if only is None or made is None else (made, only)))

    def _made_for(self, name: str, seqno: int) -> int | None:
        """Where the window has made the table of that name, if nothing is behind it; else None."""
        before = [each for each in self.named.get(name, ()) if each < seqno]
        return before[-1] if self.is_clear and before and before[-1] in self.made.get(name, ()) else None

    def first_undone(self, statement: LoggedText, key: TableKey) -> int | None:
        """The first that failed or was rolled back while a table was there that the statement has made."""
        found = [self._undone_within(begin, key) for begin in self._seqnos(statement)]
        return min((seqno for seqno in found if seqno is not None), default=None)

    def is_ended(self, statement: LoggedText, key: TableKey) -> bool:
        """Whether one of the tables that the statement has made is perhaps not there at the window's end."""
        name = self._name(key)
        last = max(self.named.get(name, ()), default=0) if name in self.moved else 0
        return any(last > begin or self._end(begin, name) < math.inf for begin in self._seqnos(statement))

    def is_without_transactions(self, statement: LoggedText, key: TableKey) -> bool:
        """Whether each table that the statement has made, and that matters, has shown that it has none."""
        name, words = self._name(key), statement.words
        if not self.is_clear or "EXISTS" in words[:6] or _SEQUENCES & set(words):
            return False
        begins = [begin for begin in self._seqnos(statement) if self._undone_within(begin, key) is not None]
        return all(self._shown(begin, name) for begin in begins)

    def _shown(self, begin: int, name: str) -> bool:
        """Whether a statement on nothing but the table made there has failed before any DDL that names it."""
        then = next((seqno for seqno in self.named.get(name, ()) if seqno > begin), math.inf)
        return any(begin < seqno < then for seqno in self.failed.get(name, ()))

    def _seqnos(self, statement: LoggedText) -> Sequence[int]:
        return self.occurrences.get((statement.sql, statement.context.database), (statement.seqno,))

    def _undone_within(self, begin: int, key: TableKey) -> int | None:
        its = (None, (begin, self._name(key)))
        return self._within([seqno for seqno, only in self.undone if only in its], begin, key)

    def _within(self, seqnos: Sequence[int], begin: int, key: TableKey) -> int | None:
        at, name = bisect_left(seqnos, begin), self._name(key)
        # the likeness of a table that is gone has its engine
        end = math.inf if name in self.copied else self._end(begin, name)
        return seqnos[at] if at < len(seqnos) and seqnos[at] < end else None

    def _end(self, begin: int, name: str) -> float:
        ends = () if name in self.moved else self.ends.get(name, ())
        return next((seqno for seqno in ends if seqno > begin), math.inf)

    def _only(self, text: LoggedText) -> str | None:
        """The only table that a statement names, if it changes that."""
        facts = text.facts
        if facts.kind is not StatementKind.DML or facts.written != facts.tables or facts.routines_used:
            return None
        # DELAYED is logged with its error, whatever it has changed
        return None if len(facts.tables) != 1 or "DELAYED" in text.words else self._name(*facts.tables)

    def _name(self, key: TableKey) -> str:
        return str(self.letters.table(key))


def _made(text: LoggedText) -> frozenset[TableKey]:
    """The table that is certainly new behind a statement, which names no other."""
    facts, words = text.facts, text.words
    is_new = words[:1] == ("CREATE",) and "TABLE" in words[1:4] and not {"LIKE", "TEMPORARY"} & set(words)
    if not is_new or text.context.error_code or "EXISTS" in words[:7] or len(facts.tables) != 1:
        return frozenset()
    return facts.tables


def _drops(text: LoggedText) -> bool:
    """Whether none of its tables is there behind a statement."""
    is_drop = text.words[:1] == ("DROP",) and "TABLE" in text.words[1:4]
    return is_drop and not text.context.error_code and not text.facts.temporary
