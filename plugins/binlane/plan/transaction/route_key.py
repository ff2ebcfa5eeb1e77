"""The facts that decide a transaction's route: plain rows of one database, or a class of equal transactions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from binlane.lazy_dataclass import dataclass
from binlane.model import FILTERED_SHARD, TableKey
from binlane.plan.transaction.parts import FilteredPart, MapPart, Part, RowsPart, StatementPart
from binlane.shards.event_filter import LoggedStatement


@dataclass(frozen=True)
class TransactionClass:
    """The input of ``EventMetadataFilter``: the databases of the rows and the facts of the statements, in order."""

    row_databases: frozenset[str]
    statements: tuple[LoggedStatement, ...]

    @property
    def plain_database(self) -> str | None:
        """The database, if the transaction holds rows of one database and nothing else."""
        if self.statements or len(self.row_databases) != 1:
            return None
        return next(iter(self.row_databases))

    @property
    def is_empty(self) -> bool:
        """Whether there are neither rows nor statements: nothing to apply, but the seqno counts."""
        return not self.statements and not self.row_databases

    @property
    def key(self) -> str:
        """The name of the class in context.json: equal classes have equal keys in every process."""
        return hashlib.sha256(json.dumps(_canonical(self), sort_keys=True).encode()).hexdigest()[:24]


def classify(parts: Sequence[Part]) -> TransactionClass:
    """The class of a decoded transaction. One that is filtered out completely has a shard of its own."""
    if parts and all(isinstance(part, FilteredPart) for part in parts):
        return TransactionClass(frozenset({FILTERED_SHARD}), ())
    databases: set[str] = set()
    statements: list[LoggedStatement] = []
    for part in parts:
        match part:
            case MapPart():
                databases.add(part.table.database)
            case RowsPart() | FilteredPart():
                pass
            case StatementPart():
                statements.append(
                    LoggedStatement(part.facts, part.query.updated_databases, part.query.too_many_databases)
                )
    return TransactionClass(frozenset(databases), tuple(statements))


_SINCE_KEYS = frozenset({"copies", "union"})
"""Fields that are younger than the first keys: left out if empty, so that old keys stay."""


def _canonical(value: Any) -> Any:
    if isinstance(value, TableKey):
        return [value.database, value.table]
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return {name: _canonical(each) for name, each in named.items() if each or name not in _SINCE_KEYS}
    if isinstance(value, frozenset):
        return sorted(map(_canonical, value))
    if isinstance(value, tuple | list):
        return [_canonical(each) for each in value]
    return value
