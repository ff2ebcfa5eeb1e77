"""The target's names of a channel's databases: ``[rename]`` of its file; rules in order, the first match wins.

A rule has two names, or two patterns with one star each; the text that the star matches is kept. Two databases of the
source never become one: rules whose new names could collide are refused when the file is read (``rename_rules``), and a
database that keeps its name, although a rule gives such names to others, is refused when it occurs (``refusal``). So
each name on the target has at most one source, which ``source`` finds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.rename_rules import LONGEST, Rule, carried, is_system, lower, matches, text_of
from binlane.sql.parse.facts import StatementFacts

_ONE, _MANY = "one character", "any characters"
_WILDCARDS: Final = {"_": _ONE, "%": _MANY}
_STARS: Final = {"*": _MANY}


@dataclass(frozen=True)
class Renaming:
    """The rules of a channel; without rules, all names stay."""

    rules: tuple[Rule, ...] = ()
    folds_names: bool = False
    """``lower_case_table_names`` is set on the target: names and rules are compared in lower case."""

    def __bool__(self) -> bool:
        return bool(self.rules)

    def target(self, database: str) -> str:
        """The target's name of a database of the source."""
        rule = self._rule_of(database)
        return database if rule is None else carried(database, *rule)

    def source(self, database: str) -> str | None:
        """The source's name of a database of the target; None if no database of the source gets that name."""
        for old, new in self.rules:
            if matches(database, new, self.folds_names):
                found = carried(database, new, old)
                return found if self._rule_of(found) == (old, new) else None
        return database if self._rule_of(database) is None else None

    def changes(self, database: str) -> bool:
        """Whether the database has another name on the target."""
        return self._rule_of(database) is not None

    def refusal(self, database: str) -> str | None:
        """Why a database of the source cannot have its name on the target; None if it can."""
        if is_system(database):
            return None
        rule, new = self._rule_of(database), self.target(database)
        if rule is not None and (is_system(new) or not 0 < len(new) <= LONGEST):
            return f"the database {database} would become {new!r} by {text_of(rule)}, which is not a valid name"
        if rule is None:
            for other in self.rules:
                if matches(database, other[1], self.folds_names):
                    return (
                        f"the database {database} keeps its name, but {text_of(other)} gives such names to other "
                        "databases"
                    )
        return None

    def touched(self, pattern: str) -> str | None:
        """The first rule whose old or new name may match a privilege's ``pattern``; None if the privilege covers the
        same databases on both servers.

        In the name before ``.*`` of GRANT and REVOKE ``_`` matches any character and ``%`` any text, unless a backslash
        precedes it. Letter case is ignored.
        """
        like = _like(lower(pattern))
        for rule in self.rules:
            if any(_meet(like, tuple(_STARS.get(letter, letter) for letter in lower(side))) for side in rule):
                return text_of(rule)
        return None

    def table(self, key: TableKey) -> TableKey:
        """The target's name of a table of the source."""
        return TableKey(self.target(key.database), key.table) if self.rules else key

    def facts(self, facts: StatementFacts) -> StatementFacts:
        """A statement's facts with the target's names."""
        if not self.rules:
            return facts
        made = facts.created_temporary
        return replace(
            facts,
            databases=frozenset(map(self.target, facts.databases)),
            tables=frozenset(map(self.table, facts.tables)),
            written=frozenset(map(self.table, facts.written)),
            defines=frozenset(map(self.table, facts.defines)),
            references=frozenset(map(self.target, facts.references)),
            first=None if facts.first is None else self.table(facts.first),
            created_temporary=None if made is None else self.table(made),
            views=frozenset(map(self.table, facts.views)),
            triggered=frozenset(map(self.table, facts.triggered)),
            dropped_triggers=frozenset(map(self.table, facts.dropped_triggers)),
            dropped=frozenset(map(self.table, facts.dropped)),
            replaced=frozenset(map(self.table, facts.replaced)),
            dropped_in=frozenset(map(self.target, facts.dropped_in)),
            routine_databases=frozenset(map(self.target, facts.routine_databases)),
            default_database=None if facts.default_database is None else self.target(facts.default_database),
            renames=tuple((self.table(old), self.table(new)) for old, new in facts.renames),
            exchanges=tuple((self.table(old), self.table(new)) for old, new in facts.exchanges),
            copies=tuple((self.table(old), self.table(new)) for old, new in facts.copies),
            union=frozenset(map(self.table, facts.union)),
        )

    def _rule_of(self, database: str) -> Rule | None:
        if not self.rules or is_system(database):
            return None
        return next((rule for rule in self.rules if matches(database, rule[0], self.folds_names)), None)


def _like(pattern: str) -> tuple[str, ...]:
    """A pattern of GRANT as a sequence of characters and wildcards."""
    found, letters = [], iter(pattern)
    for letter in letters:
        found.append(next(letters, letter) if letter == "\\" else _WILDCARDS.get(letter, letter))
    return tuple(found)


def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether some name matches both patterns."""
    here = {(0, 0)}
    seen = set(here)
    while here:
        at, its = here.pop()
        if at == len(one) and its == len(other):
            return True
        left, right = one[at : at + 1], other[its : its + 1]
        nexts = set()
        if left == (_MANY,):
            nexts |= {(at + 1, its), *([(at, its + 1)] if right else [])}
        if right == (_MANY,):
            nexts |= {(at, its + 1), *([(at + 1, its)] if left else [])}
        if left and right and _MANY not in left + right and (left == right or _ONE in left + right):
            nexts.add((at + 1, its + 1))
        here |= nexts - seen
        seen |= nexts
    return False


AS_THEY_ARE: Final = Renaming()
"""For a channel without ``[rename]``."""
Names = Callable[[str], str | None]
"""A function from a database's name on one server to its name on the other; None if the other has no such database."""
