"""Routines, views and triggers of two servers, compared: which of them do something else on the target.

A logged statement runs those of the server that executes it, so the source's have to be there as they were at the
window's beginning. The catalogue tells what they are now; what has changed them since is in the log.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.programs import (
    BODY,
    CLIENT,
    CONNECTION,
    DATABASE,
    DEFINER,
    MODE,
    PARAMETERS,
    QUERY,
    RETURNED,
    SECURITY,
    Program,
)
from binlane.sql.program_names import folded_name
from binlane.sql.programs.changes import BEHIND, Since, Then
from binlane.sql.programs.equivalence import Equivalence
from binlane.sql.programs.known import NOTHING, ProgramSet
from binlane.sql.programs.reach import folded, routine_key
from binlane.sql.programs.spelling import bare

_COLLATED: Final = re.compile(r"['\"]|\|\||@@|\w\s*\(")
"""Literals, calls and the like, without which no character set or collation of a session decides anything."""
_LISTS: Final = re.compile(r"\b(?:INTO\s+[\w$.`]+|VALUES?)\s*\(", re.I)
_COMPARED: Final = re.compile(
    r"[=<>]|@@|\|\||[\w`]\s*\(|\b(?:LIKE|IN|BETWEEN|CASE|REGEXP|RLIKE|SOUNDS|DISTINCT|DISTINCTROW|GROUP|ORDER|UNION|EXCEPT"
    r"|INTERSECT|MINUS)\b",
    re.I,
)
"""Without these, and calls, values are only stored: another collation of the same character set decides nothing."""
_OF_DATABASE: Final = re.compile(r"\b(?:DECLARE|TEMPORARY)\b", re.I)
"""What has the collation of its database unless it names one."""
_TEXTS: Final = re.compile(r"char|text|enum|set", re.I)
_INVOKER: Final = "INVOKER"
_SHOWN: Final = 60
"""Characters of a fact in a message."""


class Difference(NamedTuple):
    """A routine, view or trigger that one server has and the other does not, or not alike."""

    key: TableKey
    """What statements reach it by (``Reach``): a trigger by its table, at the window's beginning, with the target's
    names."""
    where: str
    expected: str
    found: str
    by_account: bool = False
    """It matters only where it, or what is behind it, asks for the account that runs it."""
    is_hidden: bool = False
    """An account may not read it, or may not see it."""
    is_trigger: bool = False
    until: int = BEHIND
    """Only statements before this seqno find the difference."""
    is_gone: bool = False
    """No catalogue has the source's text of then."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Whether two servers' programs do the same."""

    equivalence: Equivalence
    is_exact: bool
    """Both servers are of one version, and print queries alike."""

    def differing(self, source: Program, target: Program) -> Iterator[tuple[str, bool]]:
        """What of the target's is another, and whether only the account that runs it can tell."""
        if source.time != target.time:
            yield f"time, {target.time}", False
        if not self._same_text(source, target):
            yield "query" if source.kind == "view" else "body", False
        yield from ((self._shown(what, target), False) for what in self._other_facts(source, target))
        if source.facts.get(SECURITY) != target.facts.get(SECURITY):
            yield self._shown(SECURITY, target), True
        elif source.facts.get(SECURITY) != _INVOKER and source.facts.get(DEFINER) != target.facts.get(DEFINER):
            yield self._shown(DEFINER, target), True

    def _same_text(self, source: Program, target: Program) -> bool:
        ours, theirs = source.text or "", target.text or ""
        if source.kind == "view":
            return ours == theirs if self.is_exact else not self.equivalence.differs(QUERY, ours, theirs)
        ours, theirs = (
            bare(text, flavor, each.sql_mode)
            for text, flavor, each in zip((ours, theirs), self.equivalence.flavors, (source, target), strict=True)
        )
        return not self.equivalence.differs(BODY, ours, theirs)

    def _other_facts(self, source: Program, target: Program) -> Iterator[str]:
        for what in source.facts:
            ours, theirs = source.facts[what], target.facts.get(what)
            if what in (SECURITY, DEFINER) or theirs is None or ours == theirs:
                continue
            if not _matters(what, ours, theirs, source):
                continue
            if not self._same(what, ours, theirs):
                yield what

    def _same(self, what: str, ours: str, theirs: str) -> bool:
        one, other = self.equivalence.flavors
        if what == MODE and one is other:
            return frozenset(ours.split(",")) == frozenset(theirs.split(","))
        if what in (PARAMETERS, RETURNED) and self.is_exact:
            return False
        if what in (CONNECTION, DATABASE) and self.equivalence.undecided(what, ours, theirs):
            return True  # the target does not have it, and its nearest one is the channel's choice
        return not self.equivalence.differs(what, ours, theirs)

    def _shown(self, what: str, target: Program) -> str:
        found = " ".join(target.facts.get(what, "").split())
        return f"{what}, {found if len(found) <= _SHOWN else f'{found[:_SHOWN]}...'}"


def as_difference(program: Program) -> Difference:
    """A program in the form in which the search for the first statement that reaches it looks for it."""
    key, is_trigger = program.key, program.kind == "trigger"
    name = key if is_trigger or program.kind == "view" else routine_key(key.database, key.table)
    where = f"{program.kind} {key.database}.{program.name}" if is_trigger else f"{program.kind} {key}"
    return Difference(name, where, "", "", is_trigger=is_trigger)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares programs; all names are the target's, in texts, too."""

    since: Since
    alike: Alike
    known: ProgramSet = NOTHING
    """What was alike before, whatever the log does to it since."""

    def triggers(self, source: Iterable[Program], target: Iterable[Program]) -> Iterator[Difference]:
        """By table, as far as the log does not explain them."""
        ours, theirs = self._by_table(source, self.since.name_then), self._by_table(target, lambda key: key)
        for table in sorted(ours.keys() | theirs.keys(), key=str):
            for each in self._of_table(table, ours.get(table, {}), theirs.get(table, {})):
                yield each._replace(is_trigger=True)

    def programs(self, source: Iterable[Program], target: Iterable[Program]) -> Iterator[Difference]:
        """Of routines and views, by name, as far as the log does not explain them."""
        ours, theirs = self._by_name(source, self.since.name_then), self._by_name(target, lambda key: key)
        for kind, key in sorted(self._named((*ours, *theirs)), key=str):
            one, other = ours.get((kind, key)), theirs.get((kind, key))
            reached = key if kind == "view" else routine_key(key.database, key.table)
            # no table that the log drops, or renames, is a routine of that name
            renamed = key if kind == "view" else TableKey(key.database, "")
            where, then = f"{kind} {key}", self.since.then(kind, key, renamed)
            if other is not None and then in (Then.UNKNOWN, Then.THERE):
                yield from self._unknown(reached, where, other, (kind, key, renamed))
            elif then is Then.UNKNOWN:
                # statements that need one that the target does not have end with an error
                continue
            elif then is not Then.AS_NOW or one is None or other is None:
                found = self._missing(reached, where, then, one, other)
                if found is not None:
                    yield found
            elif one.text is None or other.text is None:
                side = "source" if one.text is None else "target"
                found_text = f"one whose text the {side}'s account may not read"
                yield Difference(reached, where, "the source's", found_text, is_hidden=True)
            else:
                yield from self._differing(reached, where, "the source's", one, other)

    def _named(self, there: Collection[tuple[str, TableKey]]) -> set[tuple[str, TableKey]]:
        """Kinds and names of those that are there, and of those that only the log names, by their first names."""
        known = {(kind, folded(key)) for kind, key in there}
        found = set(there)
        for at, change in enumerate(self.since.changes):
            if change.name is None or change.kind == "trigger":
                continue
            before = Since(self.since.changes[:at], self.since.fold)
            name = change.name if change.kind != "view" else before.name_then(change.name)
            if name is not None and (change.kind, folded(name)) not in known:
                found.add((change.kind, name))
        return found

    def _of_table(
        self, table: TableKey, ours: Mapping[str, Program], theirs: Mapping[str, Program]
    ) -> Iterator[Difference]:
        unchanged = True
        for name in sorted(ours.keys() | theirs.keys()):
            own = TableKey(table.database, name)
            then = self.since.then("trigger", own, table)
            one, other = ours.get(name), theirs.get(name)
            unchanged = unchanged and then is Then.AS_NOW and one is not None and other is not None
            where = f"{table}: trigger {name}"
            if then is Then.UNKNOWN or (then is Then.THERE and other is not None):
                yield from self._unknown(table, where, other, ("trigger", own, table))
            elif then is not Then.AS_NOW or one is None or other is None:
                found = self._missing(table, where, then, one, other)
                if found is not None:
                    yield found
            else:
                yield from self._differing(table, where, f"the source's, {one.time}", one, other)
        if unchanged and (orders := _order(ours.values(), theirs.values())) is not None:
            first, expected, there = orders
            yield Difference(table, f"{table}: trigger {first}", f"the source's order, {expected}", there)

    def _unknown(
        self, key: TableKey, where: str, target: Program | None, of: tuple[str, TableKey, TableKey]
    ) -> Iterator[Difference]:
        """Of a program whose text of then no catalogue of the source has."""
        if not self.known.holds(of[0], of[1], target, self.since.first_at(*of)):
            there = "none" if target is None else "one"
            found = f"{there} that may be another: the source's log replaces or drops it behind its use"
            yield Difference(key, where, "the source's of then", found, until=self.since.until(*of), is_gone=True)

    def alike_now(
        self, source: Iterable[Program], target: Iterable[Program]
    ) -> Iterator[tuple[str, TableKey, Program]]:
        """Kind, name and the target's program of those that both have alike, and that the log does nothing to."""
        ours, target = {self._own_name(each): each for each in source}, tuple(target)
        # the order of several triggers of one time is a thing of its own
        several = Counter((each.key, each.time) for each in target if each.kind == "trigger")
        for each in target:
            kind, name = own = self._own_name(each)
            table = self.since.fold(each.key) if kind in ("trigger", "view") else TableKey(name.database, "")
            one = ours.get(own)
            if one is None or one.text is None or each.text is None or one.key != each.key:
                continue
            if several[each.key, each.time] > 1:
                continue
            if self.since.then(kind, name, table) is Then.AS_NOW and not any(self.alike.differing(one, each)):
                yield kind, name, each

    def _own_name(self, program: Program) -> tuple[str, TableKey]:
        key = self.since.fold(program.key)
        return program.kind, folded(TableKey(key.database, program.name) if program.kind == "trigger" else key)

    def _missing(
        self, key: TableKey, where: str, then: Then, source: Program | None, target: Program | None
    ) -> Difference | None:
        """Of a program that one server does not have, or of which the log tells whether the source had it."""
        there = "none" if target is None else target.time or "one"
        if then is not Then.AS_NOW:
            if (then is Then.THERE) == (target is not None):
                return None
            expected = "none, as on the source then" if target is not None else "one, as on the source then"
            return Difference(key, where, expected, there)
        if source is None and target is not None and target.kind not in ("view", "trigger"):
            # a routine that the account may not execute is not there for it
            return Difference(key, where, "none, as far as the source's account sees", there, is_hidden=True)
        now = "none" if source is None else source.time or "one"
        return Difference(key, where, f"{now}, as on the source", there)

    def _differing(
        self, key: TableKey, where: str, expected: str, source: Program, target: Program
    ) -> Iterator[Difference]:
        """The first that matters, and behind it nothing, unless it matters only to some."""
        for what, by_account in self.alike.differing(source, target):
            yield Difference(key, where, expected, f"another {what}", by_account)
            return

    def _by_table(
        self, triggers: Iterable[Program], named: Callable[[TableKey], TableKey | None]
    ) -> dict[TableKey, dict[str, Program]]:
        found: dict[TableKey, dict[str, Program]] = defaultdict(dict)
        for each in triggers:
            table = named(self.since.fold(each.key))
            if table is not None:
                found[table][folded_name(each.name)] = each
        return found

    def _by_name(
        self, programs: Iterable[Program], named: Callable[[TableKey], TableKey | None]
    ) -> dict[tuple[str, TableKey], Program]:
        found: dict[tuple[str, TableKey], Program] = {}
        for each in programs:
            key = self.since.fold(each.key)
            if each.kind != "view":
                found[each.kind, TableKey(key.database, folded_name(key.table))] = each
            elif (view := named(key)) is not None:
                found[each.kind, view] = each
        return found


def _matters(what: str, ours: str, theirs: str, program: Program) -> bool:
    """Whether another value of a fact can decide what a program does."""
    text = program.text or ""
    if what == CLIENT:
        return not text.isascii()
    if what == CONNECTION:
        is_one_charset = ours.partition("_")[0] == theirs.partition("_")[0]
        found = _COMPARED.search(_LISTS.sub(" ", text)) if is_one_charset else _COLLATED.search(text)
        return found is not None and _COLLATED.search(text) is not None
    if what == DATABASE:
        types = " ".join(program.facts.get(each, "") for each in (PARAMETERS, RETURNED))
        return _OF_DATABASE.search(text) is not None or _TEXTS.search(types) is not None
    return True


def _order(ours: Collection[Program], theirs: Collection[Program]) -> tuple[str, str, str] | None:
    """The first trigger of a time at which the two servers fire them in another order, and both orders."""
    for time in sorted({each.time for each in ours}):
        found = []
        for side in (ours, theirs):
            of_time = sorted((each for each in side if each.time == time), key=lambda each: each.order)
            if len({each.order for each in of_time}) < len(of_time):
                break  # an old server does not tell it
            found.append([folded_name(each.name) for each in of_time])
        if len(found) == 2 and found[0] != found[1]:
            return found[0][0], ", ".join(found[0]), ", ".join(found[1])
    return None
