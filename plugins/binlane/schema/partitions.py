"""How the rows of a table are divided over its partitions, and whether a partition's name means the same rows on two
servers.

Row events find their rows in any partition, so a table may be divided otherwise on the target. A statement that names a
partition (``TRUNCATE PARTITION p``, ``DELETE FROM t PARTITION (p)``) takes the rows that the server has put there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.schema.compare import Rules
from binlane.schema.letter_case import lower
from binlane.schema.model import Column, Table
from binlane.schema.normalize import across_families, comparable

_Rule: TypeAlias = tuple[str, ...]
_KEY: Final = "KEY"
_RANGE: Final = "RANGE"
_LIST: Final = "LIST"
_OF_NO_OTHER: Final = "default"
_LOWEST: Final = "the lowest value"
_COLUMNS: Final = "COLUMNS"
_OF_HISTORY: Final = "SYSTEM_TIME"
_HASHED_OTHERWISE: Final = frozenset({"date"})
"""Types of which the families have other hashes (tried: 17 types and 20 collations on MySQL 9.7, MariaDB 10.5, 10.11
and 11.8)."""
_MODULO: Final = re.compile(r"\bMOD\b(?!\s*\()", re.IGNORECASE)
"""MariaDB's word for MySQL's sign: all that the two print otherwise of the functions that they take here."""
OTHER_HASH: Final = "a DATE, which each family hashes in its own way"


class Partition(NamedTuple):
    """A partition, or one of its subpartitions, as ``information_schema.partitions`` has it; "" for NULL."""

    method: str
    sub_method: str
    name: str
    sub_name: str
    expression: str
    description: str
    """The bound of RANGE, the values of LIST."""
    sub_expression: str

    @property
    def names(self) -> tuple[str, ...]:
        """Both methods and both names, as servers of all versions spell them."""
        return tuple(map(comparable, self[:4]))

    @property
    def rule_of_values(self) -> tuple[str, ...]:
        """What says which rows it has, but for the columns, as servers of all versions spell it."""
        return *self.names, comparable(self.description)

    @property
    def rule(self) -> tuple[str, ...]:
        """All that says which rows it has, as servers of all versions spell it."""
        expressions = (_MODULO.sub("%", each) for each in (self.expression, self.sub_expression))
        return *self.rule_of_values, *map(comparable, expressions)

    @property
    def place(self) -> str:
        """Its name, and its bound or values."""
        bound = f" of {self.description}" if self.description else ""
        return f"{self.sub_name or self.name}{bound}"

    def __str__(self) -> str:
        return " ".join(filter(None, self))


class PartitionChanges(NamedTuple):
    """What statements between two definitions of a table have changed of its partitions."""

    names: frozenset[str] = frozenset()
    """In lower case, of the partitions that they have made or dropped."""
    has_columns: bool = False
    """Whether they may have changed names, types or collations of the columns that divide the rows."""

    def rule_of(self, partition: Partition) -> tuple[str, ...]:
        """What is compared of a partition."""
        return partition.rule_of_values if self.has_columns else partition.rule

    def __or__(self, other: PartitionChanges) -> PartitionChanges:
        return PartitionChanges(self.names | other.names, self.has_columns or other.has_columns)


NO_CHANGES: Final = PartitionChanges()


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partitions of a table, in the server's order; none of a table that is not partitioned."""

    partitions: tuple[Partition, ...] = ()
    hashed: tuple[Column, ...] = ()
    """Those whose hash decides the partition: of KEY."""
    compared: tuple[Column, ...] = ()
    """Those that are compared with bounds or values: of RANGE COLUMNS and LIST COLUMNS."""
    algorithm: str = ""
    """Of KEY, if the table does not have the server's default."""

    @classmethod
    def of(cls, table: Table, partitions: Sequence[Partition], algorithm: str = "") -> Partitioning:
        """The partitioning of a table with this definition."""
        hashed, compared = (_columns(table, partitions, word) for word in (_KEY, _COLUMNS))
        return cls(tuple(partitions), hashed, compared, algorithm)

    @property
    def is_of_history(self) -> bool:
        """MariaDB's ``SYSTEM_TIME``: each server adds partitions at its own time."""
        return any(each.method == _OF_HISTORY for each in self.partitions)

    @property
    def is_of_one_family(self) -> bool:
        """Whether servers of the other family put rows into other partitions."""
        return any(each.data_type in _HASHED_OTHERWISE for each in self.hashed)

    @property
    def names(self) -> frozenset[str]:
        """Those of the partitions, in lower case."""
        return frozenset(lower(each.name) for each in self.partitions)

    def named(self, names: Collection[str], changed: PartitionChanges) -> frozenset[str] | None:
        """The partitions of these names, or with subpartitions of these names, in lower case, if their own bounds or
        values say which rows they have; None of HASH and KEY, of what has the values that no other partition has
        (DEFAULT), of no names, and if one is not there or has been changed."""
        known = dict[str, str]()
        for each in self.partitions:
            is_by_values = each.method.startswith((_RANGE, _LIST)) and comparable(each.description) != _OF_NO_OTHER
            if is_by_values and lower(each.name) not in changed.names:
                known |= dict.fromkeys(map(lower, (each.name, each.sub_name)), lower(each.name))
        return frozenset(known[name] for name in names) if names and known.keys() >= set(names) else None

    def rules_of(self, names: Collection[str] | None, changed: PartitionChanges) -> Sequence[tuple[_Rule, str]]:
        """What says which rows these partitions have, in their order, each with the place to show; for None of all
        partitions. Without those that a change names."""
        found, before, last = list[tuple[_Rule, str]](), _LOWEST, ("", _LOWEST)
        for each in self.partitions:
            if lower(each.name) in changed.names:
                continue
            if each.name != last[0]:
                before, last = last[1], (each.name, each.description)
            if names is None:
                found.append((changed.rule_of(each), each.place))
            elif lower(each.name) in names:
                begin = before if each.method.startswith(_RANGE) else _LOWEST
                place = f"{each.place} from {begin} on" if each.method.startswith(_RANGE) else each.place
                found.append(((comparable(begin), *changed.rule_of(each)), place))
        return found

    def __str__(self) -> str:
        if not self.partitions:
            return "no partitions"
        first = self.partitions[0]
        method = f"{first.method} {self.algorithm}".strip()
        return f"{plural(len(self.partitions), 'partition')} by {method} ({first.expression})"


def differing_partitions(
    source: Partitioning,
    target: Partitioning,
    rules: Rules,
    changed: PartitionChanges = NO_CHANGES,
    names: Collection[str] = (),
) -> tuple[str, str] | None:
    """What says that the name of a partition means other rows on the target: the source's and the target's; None if
    nothing does.

    ``changed``: by statements between the two definitions. ``names``: those that a statement takes, in lower case;
    where bounds or values say which rows these have, other partitions need not be alike: the target may keep some that
    the source has dropped. None: all are compared.
    """
    if source.is_of_history and target.is_of_history:
        return None
    compared = source.named(names, changed)
    theirs, ours = (each.rules_of(compared, changed) for each in (source, target))
    if [rule for rule, _ in theirs] != [rule for rule, _ in ours] or source.algorithm != target.algorithm:
        return _shown(source, theirs, ours), _shown(target, ours, theirs)
    if changed.has_columns:
        return None
    if not rules.same_flavor and target.is_of_one_family:
        return str(source), f"{target} of {OTHER_HASH}"
    collations = {lower(each.name): each.collation for each in (*target.hashed, *target.compared)}
    for column in (*source.hashed, *source.compared):
        found, name = collations.get(lower(column.name)), column.collation
        if found is None or name is None:
            continue
        # also of utf8mb4_0900_bin and utf8mb4_nopad_bin, which compare alike and have other hashes
        if (name if rules.same_flavor else across_families(name, rules.target_collations)) != found:
            return f"{source}, in {name}", f"{target}, in {found}"
    return None


def _shown(partitioning: Partitioning, own: Iterable[tuple[_Rule, str]], others: Iterable[tuple[_Rule, str]]) -> str:
    """With the first partition that the other server does not have."""
    known = {rule for rule, _ in others}
    first = next((place for rule, place in own if rule not in known), None)
    return str(partitioning) if first is None else f"{partitioning}, {first}"


def _columns(table: Table, partitions: Sequence[Partition], word: str) -> tuple[Column, ...]:
    """The columns of a table that a method with this word takes, of both levels."""
    names = set[str]()
    for each in partitions[:1]:
        for method, expression in ((each.method, each.expression), (each.sub_method, each.sub_expression)):
            if word in method.split():
                listed = (name.strip("` ").replace("``", "`") for name in expression.split(","))
                names.update(map(lower, listed) if expression else _of_key(table))
    return tuple(each for each in table.columns if lower(each.name) in names)


def _of_key(table: Table) -> Iterator[str]:
    """What ``KEY ()`` means: the primary key's columns, or those of a unique key, of which all are taken here."""
    keys = [each for each in table.keys if each.unique] if table.primary_key is None else [table.primary_key]
    return (lower(part.name) for key in keys for part in key.columns if part.name is not None)
