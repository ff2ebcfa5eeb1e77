"""Restores: what each restores, how far it is, and the programs that its last step makes under the final names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, Row, delete, insert, null, select, update

from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.state.channels import is_named_in, is_table
from binlane.state.json_columns import optional_value_of, text_of, value_of
from binlane.state.tables import NOW, OF_CHANNELS, restores

LOADING: Final = "loading"
"""The base is being loaded; another attempt begins it again."""
ROLLING: Final = "rolling"
"""Windows bring the databases to the end."""
REPLACING: Final = "replacing"
"""The databases that are there change places with the restored ones."""
MOVING: Final = "moving"
"""The databases get their final names."""
EXTENDING: Final = "extending"
"""Windows bring the complete databases to a later end."""
COMPLETE: Final = "complete"
_UNFINISHED: Final = "_unfinished"


def unfinished(final: str) -> str:
    """A database's name until the restore is complete."""
    return final + _UNFINISHED


@dataclass(frozen=True, slots=True)
class RestoreDefinition:
    """What a restore was asked for, with the places of the log that its plan has found."""

    base: str
    """The dump's path; empty: the log alone."""
    log: str
    """The archive's folder or URI, or the connection of a live server."""
    databases: tuple[tuple[str, str], ...]
    """Names in the log, and final names on the target."""
    tables: tuple[str, ...]
    """Of the only database, the tables that are restored; empty: all that it has."""
    begin: str
    """The place of the log that belongs to the base, as ``file:offset``."""
    end_file: str
    end_offset: int
    asked: str
    """The end as it was asked for."""
    replaced: tuple[tuple[str, str], ...]
    """Databases that are there under their final names, and the names under which they are kept."""
    digest: str
    """Of the dump's size and ends: a load that begins again needs the same dump. Empty without a dump."""
    definers: tuple[str, ...]
    """The accounts that the plan names, with whose privileges views and programs of the dump run."""

    @property
    def end(self) -> LogPosition:
        """The place of the log at which the restore ends."""
        return LogPosition(self.end_file, self.end_offset)


def names_of(databases: tuple[tuple[str, str], ...], replaced: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """All names of a restore with these ``RestoreDefinition.databases`` and ``replaced``: of the databases until they
    are complete and behind that, and of what they replace."""
    finals = [final for _, final in databases]
    return frozenset((*finals, *map(unfinished, finals), *(kept for _, kept in replaced)))


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A routine, view, trigger or event with its final names, and the session that makes it."""

    kind: str
    database: str
    name: str
    statement: str
    client: str
    collation: str
    sql_mode: str
    time_zone: str
    database_collation: str
    """The default of its database when it was made."""


@dataclass(frozen=True, slots=True)
class RestorePrograms:
    """All of them, in the order in which they can be made."""

    texts: tuple[ProgramText, ...]
    former: tuple[ProgramText, ...]
    """Those of the databases that are replaced, with the names under which these are kept."""
    tables: tuple[tuple[str, str], ...]
    """Database and name of the tables that get a final name: a crashed server may have moved some of them."""
    grants: str = ""
    """What is said at the end of the grants that go with routines of databases that are replaced."""


@dataclass(frozen=True, slots=True)
class Restore:
    """A restore's row."""

    name: str
    definition: RestoreDefinition
    stage: str
    programs: RestorePrograms
    """Empty before they were read."""
    began_at: str
    """UTC, by the target's clock."""

    @property
    def names(self) -> frozenset[str]:
        """Those of the databases that it may still make, move, drop or go on in."""
        databases, replaced = self.definition.databases, self.definition.replaced
        if self.stage in (COMPLETE, EXTENDING):
            return frozenset((*dict(databases).values(), *dict(replaced).values()))
        return names_of(databases, replaced)


_NONE: Final = RestorePrograms((), (), ())


def has_restore(connection: Connection, name: str) -> bool:
    """Whether this target has the restore; it need not have the schema."""
    return is_named_in(restores, connection, name)


def restore_names(connection: Connection) -> Mapping[str, str]:
    """The names of all restores of this target (``Restore.names``), each with the restore; it need not have the
    schema."""
    if not is_table(restores, connection):
        return {}
    rows = connection.execute(select(restores).order_by(restores.c.channel)).all()
    return {name: found.name for found in map(_of, rows) for name in found.names}


def create_restore(connection: Connection, name: str, definition: RestoreDefinition) -> None:
    """Add the row. The databases of a restore with a row are its own."""
    values = {"definition": text_of(definition), "stage": LOADING, "created_at": NOW, "updated_at": NOW}
    connection.execute(insert(restores).values(channel=name, **values))


def read_restore(connection: Connection, name: str) -> Restore | None:
    """The restore; None if there is none."""
    row = connection.execute(select(restores).where(restores.c.channel == name)).one_or_none()
    return None if row is None else _of(row)


def newest_restores(connection: Connection, limit: int) -> tuple[Restore, ...]:
    """The restores of this target that began last, the newest first, without their programs; it need not have the
    schema."""
    if not is_table(restores, connection):
        return ()
    named = (restores.c.channel, restores.c.definition, restores.c.stage, restores.c.created_at)
    query = select(*named, null().label(restores.c.programs.name))
    rows = connection.execute(query.order_by(restores.c.created_at.desc(), restores.c.channel).limit(limit))
    return tuple(map(_of, rows))


def set_stage(connection: Connection, found: Restore, stage: str, programs: RestorePrograms | None = None) -> None:
    """Record a stage, and the programs with it; nothing if the restore is not at the stage any more at which it was
    ``found``: a process that was believed dead sets nothing back."""
    values = {} if programs is None else {"programs": text_of(programs)}
    stored = update(restores).where(restores.c.channel == found.name, restores.c.stage == found.stage)
    connection.execute(stored.values(stage=stage, updated_at=NOW, **values))


def extend_restore(connection: Connection, name: str, definition: RestoreDefinition) -> None:
    """Record another end of a complete restore."""
    stored = update(restores).where(restores.c.channel == name)
    connection.execute(stored.values(stage=EXTENDING, definition=text_of(definition), updated_at=NOW))


def forget_replaced(connection: Connection, found: Restore) -> None:
    """Record that what a complete restore has replaced is kept no longer."""
    definition = replace(found.definition, replaced=())
    stored = update(restores).where(restores.c.channel == found.name)
    connection.execute(stored.values(definition=text_of(definition), updated_at=NOW))


def forget_restore(connection: Connection, name: str) -> None:
    """Remove every row of the restore and of its channel, but those of the audit."""
    for table in OF_CHANNELS:
        connection.execute(delete(table).where(table.c.channel == name))


def _of(row: Row[tuple[object, ...]]) -> Restore:
    definition = value_of(RestoreDefinition, row.definition, restores.c.definition)
    programs = optional_value_of(RestorePrograms, row.programs, restores.c.programs)
    return Restore(row.channel, definition, row.stage, _NONE if programs is None else programs, str(row.created_at))
