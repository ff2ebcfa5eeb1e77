"""Checks before a first copy writes anything. Each refusal names its objects."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from binlane.connections import Endpoint
from binlane.errors import ConfigError, PrecheckError
from binlane.model import SchemaObject, plural
from binlane.schema.model import Schema
from binlane.servers.catalog import SYSTEM_DATABASES

_SHOWN: Final = 20
_ENGINES: Final = frozenset({"innodb"})


def chosen_databases(present: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The matching databases. Raises ConfigError for a pattern that matches none, or system databases only."""
    names = sorted(name for name in present if name.lower() not in SYSTEM_DATABASES)
    for pattern in patterns:
        if not fnmatch.filter(names, pattern) and pattern != "*":
            raise ConfigError(
                f"--databases: {pattern!r} matches no database of the source; its databases are "
                f"{', '.join(names) or 'none'}"
            )
    return tuple(name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))


def check_tables(schema: Schema, endpoint: Endpoint) -> None:
    """Raises PrecheckError for tables whose engine has no snapshots."""
    wrong = []
    for table in schema.tables.values():
        if table.system_versioned:
            wrong.append(f"{table.key}: system-versioned: no statement can write the history unchanged")
        elif table.engine.lower() not in _ENGINES:
            wrong.append(f"{table.key}: engine {table.engine}, which has no snapshots")
    if wrong:
        raise PrecheckError(
            f"{endpoint}: {plural(len(wrong), 'table')} cannot be copied; leave their databases out with "
            f"--databases, or load a backup taken by the server's own tools, then `binlane init`:\n{_list(wrong)}"
        )


def check_empty(found: Collection[SchemaObject], own: Collection[SchemaObject], endpoint: Endpoint) -> None:
    """Raises PrecheckError if the databases on the target contain an object that no earlier attempt has created."""
    foreign = sorted(str(obj) for obj in set(found) - set(own))
    if foreign:
        raise PrecheckError(
            f"{endpoint}: expected the chosen databases to be empty, found {plural(len(foreign), 'object')} "
            "that no first copy of this channel has created; drop them yourself, or use --replace, which drops "
            f"these databases:\n{_list(foreign)}"
        )


def _list(lines: Sequence[str]) -> str:
    more = [f"  and {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []
    return "\n".join([*(f"  {line}" for line in lines[:_SHOWN]), *more])
