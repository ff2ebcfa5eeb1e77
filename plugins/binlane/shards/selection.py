"""The part of the source's log that a channel takes: ``[filter]`` of its file, for tables, databases and statements.

A table is taken if its database passes the rules for databases and the table those for tables; exclusion wins. A
statement is taken or left out as a whole: one that names tables of both sorts, or whose tables are not known, is
refused (docs/filters.md).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any, Final

from binlane.choices import FilterKind, FilterPolicy
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.model import OWN_SCHEMA, TableKey
from binlane.rename_rules import lower
from binlane.sql.parse.facts import StatementFacts, StatementKind

NOT_INCLUDED_DATABASE: Final = "not in include_databases"
NOT_INCLUDED_TABLE: Final = "not in include_tables"
OWN: Final = f"the schema {OWN_SCHEMA} is each target's own"
"""A rule that no channel file can change: the source's schema ``binlane`` never overwrites the target's."""
_ANY: Final = "*"
_SPECIAL: Final = re.compile(r"[*?\[.]")
_CLASS: Final = r"\[!?(?:\][^\]]*|[^\]]+)\]"
_DIVIDED: Final = re.compile(rf"((?:{_CLASS}|(?!{_CLASS})[^.])*)\.(.*)", re.DOTALL)


class Undecided(Exception):  # noqa: N818 - not an error of binlane: the caller adds the statement's position
    """A statement that the filter can neither take nor leave out; the message says why."""


class Extent(Enum):
    """How much of a database is taken."""

    ALL = "all"
    SOME = "some"
    """A rule for tables matches some tables of the database."""
    NONE = "none"


@dataclass(frozen=True)
class Selection:
    """The rules of a channel; without rules, all is taken. Patterns have ``*``, ``?`` and ``[a-c]``, as ``fnmatch``."""

    include_databases: tuple[str, ...] = ()
    exclude_databases: tuple[str, ...] = ()
    include_tables: tuple[str, ...] = ()
    """``database.table``, each a pattern."""
    exclude_tables: tuple[str, ...] = ()
    folds_names: bool = False
    """``lower_case_table_names`` is set: names and patterns are compared in lower case."""
    kinds: tuple[tuple[str, str], ...] = ()
    """The policy for statements and deleted rows by kind (``statement_kinds``), ascending. Kinds that the channel's
    file does not name are applied."""
    allowed: tuple[str, ...] = ()
    """Kinds of ``logged_kinds.ALLOWABLE`` that are applied instead of refused."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Selection:
        """The inverse of ``to_values``. Raises PlanError for any other value."""
        return SELECTION.load(cls, values, "the filter's rules") if values else EVERYTHING

    def to_values(self) -> dict[str, Any]:
        """The rules as JSON values; empty for a channel that takes everything."""
        return SELECTION.dump(self) if self.selects or self.kinds or self.allowed else {}

    def takes_more_than(self, former: Selection) -> bool:
        """Whether anything may be taken that the former rules left out, as far as patterns tell without names."""
        lists = (
            (former.include_databases, self.include_databases),
            (former.include_tables, self.include_tables),
        )
        includes = any(before and (not now or set(now) - set(before)) for before, now in lists)
        excluded = {*former.exclude_databases, *former.exclude_tables}
        policies = dict(former.kinds)
        ignored = {kind for kind in policies if former.policy(kind) == FilterPolicy.IGNORE}
        return (
            includes
            or bool(excluded - {*self.exclude_databases, *self.exclude_tables})
            or any(self.policy(kind) != FilterPolicy.IGNORE for kind in ignored)
            or (former.selects and former.folds_names != self.folds_names)
        )

    @property
    def selects(self) -> bool:
        """Whether there is a rule for databases or tables."""
        return bool(self.include_databases or self.exclude_databases or self.include_tables or self.exclude_tables)

    @property
    def looks_at_rows(self) -> bool:
        """Whether any row event may be left out or refused."""
        return self.selects or self.policy(FilterKind.DELETE) != FilterPolicy.APPLY

    @property
    def looks_at_statements(self) -> bool:
        """Whether any statement may be left out or refused."""
        return self.selects or bool(self.kinds)

    def policy(self, kind: str) -> str:
        """``apply``, ``ignore`` or ``refuse``."""
        return dict(self.kinds).get(kind, FilterPolicy.APPLY)

    def rows(self, key: TableKey, *, is_delete: bool) -> str | None:
        """The rule that leaves row changes of a table out; None if they are taken. Raises Undecided if refused."""
        rule = self.table(key)
        return _by_kinds(self, frozenset({FilterKind.DELETE})) if rule is None and is_delete else rule

    def table(self, key: TableKey) -> str | None:
        """The rule that leaves the table out; None if it is taken."""
        if self.is_own(key.database):
            return OWN
        return _table(self, key) if self.selects else None

    def is_own(self, database: str) -> bool:
        """Whether the name is that of the schema ``binlane`` on the target."""
        return _matches(self, database, OWN_SCHEMA)

    def database(self, name: str) -> tuple[Extent, str | None]:
        """How much of a database is taken, and the rule that leaves out the rest."""
        if self.is_own(name):
            return Extent.NONE, OWN
        return _database(self, name) if self.selects else (Extent.ALL, None)

    def statement(self, facts: StatementFacts, listed: Iterable[str] | None, kinds: frozenset[str]) -> str | None:
        """The rule that leaves a statement out; None if it is taken. Raises Undecided.

        ``listed``: the databases that MySQL logged with it; None if the list is missing or incomplete. ``kinds``: of
        ``statement_kinds``.
        """
        try:
            rule = self._by_names(facts, listed, drops_database=FilterKind.DROP_DATABASE in kinds)
        except Undecided:
            if kinds and all(self.policy(kind) == FilterPolicy.IGNORE for kind in kinds):
                return _by_kinds(self, kinds)
            raise
        return _by_kinds(self, kinds) if rule is None else rule

    def _by_names(self, facts: StatementFacts, listed: Iterable[str] | None, *, drops_database: bool) -> str | None:
        if not self.selects or facts.kind in (StatementKind.TRANSACTION, StatementKind.GLOBAL):
            return None
        known = frozenset(listed or ()) - {""}
        if not facts.is_read:  # what is not left out is refused
            rules = [self.database(name) for name in sorted(known)]
            return rules[0][1] if rules and all(extent is Extent.NONE for extent, _ in rules) else None
        verdicts = {str(key): self.table(key) for key in facts.tables}
        covered = {key.database for key in facts.tables}
        # to make a view, MariaDB may call its functions
        changes = facts.kind is not StatementKind.DDL or facts.create_select
        calls = bool(facts.views) and facts.routines_used
        hidden = "it calls a routine" if changes and facts.routines_used else None
        for name in sorted(facts.databases | known):
            if name in covered and (hidden is None or name not in known):
                continue
            extent, rule = self.database(name)
            # named in the channel's file without a pattern
            wanted = drops_database and (FilterKind.DROP_DATABASE, FilterPolicy.APPLY) in self.kinds
            if extent is Extent.SOME and not wanted and (changes or calls or drops_database):
                raise Undecided(f"{_why(hidden, drops_database)} {name}, of which the filter takes some tables only")
            verdicts[name] = rule if extent is Extent.NONE else None
        if hidden is not None and not known:
            raise Undecided(f"a statement of which the filter cannot tell the tables ({hidden})")
        if not verdicts:
            raise Undecided("a statement that names no database")
        return _agreed(verdicts)


def _by_kinds(rules: Selection, kinds: frozenset[str]) -> str | None:
    """The rule for kinds that leaves a statement out; None if the statement is taken. Raises Undecided."""
    policies = {kind: rules.policy(kind) for kind in sorted(kinds)}
    for kind, policy in policies.items():
        if policy == FilterPolicy.REFUSE:
            raise Undecided(f'the filter refuses it (kinds.{kind} = "{FilterPolicy.REFUSE}")')
    ignored = [kind for kind, policy in policies.items() if policy == FilterPolicy.IGNORE]
    applied = [kind for kind, policy in policies.items() if policy == FilterPolicy.APPLY]
    if ignored and applied:
        raise Undecided(f"it is of two kinds: {applied[0]}, which the filter takes, and {ignored[0]}, which it ignores")
    return f'kinds.{ignored[0]} = "{FilterPolicy.IGNORE}"' if ignored else None


def _why(hidden: str | None, drops_database: bool) -> str:
    if drops_database:
        return "a DROP of the database"
    return f"a statement ({hidden or 'its tables are not all named'}) over the database"


def _agreed(verdicts: Mapping[str, str | None]) -> str | None:
    """The rule of a statement whose names are all left out, None if all are taken."""
    taken = sorted(name for name, rule in verdicts.items() if rule is None)
    left = sorted((name, rule) for name, rule in verdicts.items() if rule is not None)
    if taken and left:
        name, rule = left[0]
        raise Undecided(
            f"a statement over {taken[0]}, which the filter takes, and {name}, which it leaves out ({rule})"
        )
    return left[0][1] if left else None


@functools.lru_cache(maxsize=65_536)
def _table(rules: Selection, key: TableKey) -> str | None:
    rule = _of_databases(rules, key.database)
    if rule is not None:
        return rule
    for pattern in rules.exclude_tables:
        if _names(rules, pattern, key):
            return f'exclude_tables "{pattern}"'
    if rules.include_tables and not any(_names(rules, pattern, key) for pattern in rules.include_tables):
        return NOT_INCLUDED_TABLE
    return None


@functools.lru_cache(maxsize=65_536)
def _database(rules: Selection, name: str) -> tuple[Extent, str | None]:
    rule = _of_databases(rules, name)
    if rule is not None:
        return Extent.NONE, rule
    some: str | None = None
    for pattern in rules.exclude_tables:
        database, table = split_pattern(pattern)
        if _matches(rules, name, database):
            if table == _ANY:
                return Extent.NONE, f'exclude_tables "{pattern}"'
            some = some or f'exclude_tables "{pattern}"'
    if rules.include_tables:
        about = [split_pattern(pattern) for pattern in rules.include_tables]
        tables = [table for database, table in about if _matches(rules, name, database)]
        if not tables:
            return Extent.NONE, NOT_INCLUDED_TABLE
        if _ANY not in tables:
            some = some or NOT_INCLUDED_TABLE
    return (Extent.ALL, None) if some is None else (Extent.SOME, some)


def _of_databases(rules: Selection, name: str) -> str | None:
    for pattern in rules.exclude_databases:
        if _matches(rules, name, pattern):
            return f'exclude_databases "{pattern}"'
    included = rules.include_databases
    if included and not any(_matches(rules, name, pattern) for pattern in included):
        return NOT_INCLUDED_DATABASE
    return None


def split_pattern(pattern: str) -> tuple[str, str]:
    """The patterns of the database and of the table in ``database.table``, at the first dot that is in no ``[..]``."""
    divided = _DIVIDED.fullmatch(pattern)
    return (pattern, "") if divided is None else (divided[1], divided[2])


def pattern_of(key: TableKey) -> str:
    """The pattern that this table alone matches, whatever characters its names have."""
    return ".".join(_SPECIAL.sub(r"[\g<0>]", name) for name in (key.database, key.table))


def _names(rules: Selection, pattern: str, key: TableKey) -> bool:
    database, table = split_pattern(pattern)
    return _matches(rules, key.database, database) and _matches(rules, key.table, table)


def _matches(rules: Selection, name: str, pattern: str) -> bool:
    if rules.folds_names:
        name, pattern = lower(name), lower(pattern)
    return fnmatchcase(name, pattern)


SELECTION: Final = Codec("extract the window again")
EVERYTHING: Final = Selection()
"""For a channel without ``[filter]``."""
