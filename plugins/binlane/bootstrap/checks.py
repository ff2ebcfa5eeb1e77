"""Checks before a first copy writes anything. Each refusal names its objects."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from binlane.connections import Endpoint
from binlane.errors import ConfigError, PrecheckError
from binlane.model import Flavor, plural
from binlane.precheck.checks import TARGET_CHECKS, run_checks
from binlane.precheck.facts import Target
from binlane.precheck.finding import raise_if_fatal
from binlane.precheck.privileges import Grants, read_grants
from binlane.precheck.situation import Needs, TargetSituation
from binlane.schema.model import Schema
from binlane.servers.catalog import SYSTEM_DATABASES
from binlane.servers.variables import global_variables, server_version, version_number
from binlane.state.records.bootstraps import Thing

_SHOWN: Final = 20
_OLDEST: Final = {Flavor.MARIADB: (10, 4, 1), Flavor.MYSQL: (8, 0, 0)}
"""The first versions with a lock that blocks DDL only."""
_SOURCE: Final = ("SELECT", "SHOW VIEW", "TRIGGER", "EVENT", "RELOAD")
_SOURCE_MORE: Final = {Flavor.MARIADB: (), Flavor.MYSQL: ("BACKUP_ADMIN", "XA_RECOVER_ADMIN")}
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


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Facts about the source."""

    flavor: Flavor
    version: str
    folding: str
    """The source's lower_case_table_names."""
    grants: Grants


def read_source(connection: Connection) -> SourceFacts:
    """Read the facts. Raises SQLAlchemy's errors."""
    flavor, version = server_version(connection)
    folding = global_variables(connection, ("lower_case_table_names",))
    return SourceFacts(flavor, version, folding.get("lower_case_table_names", "0"), read_grants(connection))


def check_servers(source: SourceFacts, target: Target, endpoints: tuple[Endpoint, Endpoint], needs: Needs) -> None:
    """Raises PrecheckError for unsuitable versions, settings and privileges."""
    ours, theirs = source.flavor, target.flavor
    if ours is not theirs:
        raise PrecheckError(
            f"{endpoints[1]}: expected a {ours.value} server, as the source is, found {theirs.value} "
            f"{target.version}: binlane does not translate definitions; create the objects by hand, copy the rows "
            "by a dump, then `binlane init`"
        )
    if version_number(source.version) < _OLDEST[ours]:
        oldest = ".".join(map(str, _OLDEST[ours]))
        raise PrecheckError(
            f"{endpoints[0]}: expected {ours.value} {oldest} or newer, found {source.version}: this version has "
            "no lock that makes DDL wait; load a dump or a backup, then `binlane init`"
        )
    folding = target.variables.get("lower_case_table_names", "0")
    if source.folding != folding:
        raise PrecheckError(
            f"{endpoints[1]}: lower_case_table_names: expected {source.folding}, as on the source, found "
            f"{folding}: names would refer to other objects; load a dump by hand, then `binlane init`"
        )
    lacking = missing_on_source(source.grants, ours)
    if lacking:
        raise PrecheckError(
            f"{endpoints[0]}: the account lacks {', '.join(lacking)} ON *.*: GRANT {', '.join(lacking)} ON *.* "
            "TO the account"
        )
    raise_if_fatal(run_checks(TargetSituation(target, needs), TARGET_CHECKS))


def missing_on_source(grants: Grants, flavor: Flavor) -> tuple[str, ...]:
    """The missing ones of the privileges for the rows, the definitions and the two locks."""
    return grants.missing((*_SOURCE, *_SOURCE_MORE[flavor]))


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


def check_empty(found: Collection[Thing], own: Collection[Thing], endpoint: Endpoint) -> None:
    """Raises PrecheckError if the databases on the target contain an object that no earlier attempt has created."""
    foreign = sorted(str(thing) for thing in set(found) - set(own))
    if foreign:
        raise PrecheckError(
            f"{endpoint}: expected the chosen databases to be empty, found {plural(len(foreign), 'object')} "
            "that no first copy of this channel has created; drop them yourself, or use --replace, which drops "
            f"these databases:\n{_list(foreign)}"
        )


def _list(lines: Sequence[str]) -> str:
    more = [f"  and {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []
    return "\n".join([*(f"  {line}" for line in lines[:_SHOWN]), *more])
