"""Gives restored databases their final names, when they are complete: the last step of a restore.

The servers rename tables, and nothing else, from one database to another. So all tables move in one statement, and
routines, views, triggers and events are made anew from definitions that were read, and recorded, before. Each statement
can be the last one before a kill: what is there already is passed over by the next attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.bootstrap.definition_copy import (
    Definition,
    contents,
    drop,
    drop_database,
    make_behind_rows,
    read_definition,
    read_programs,
)
from binlane.bootstrap.sessions import Session
from binlane.errors import PrecheckError
from binlane.model import SchemaObject, TableKey
from binlane.restore.dump_load import OBJECT, renamed
from binlane.state.records.restores import ProgramText
from binlane.state.stored_values import unexpected

_MOVED: Final = ("table", "sequence", "system versioned")


def read_final_programs(session: Session, databases: Mapping[str, str]) -> tuple[ProgramText, ...]:
    """The routines, views, triggers and events of the unfinished ``databases``, under their final names. Raises
    PlanError for one whose names cannot be changed."""
    tables = {TableKey(each.database, each.name) for each in contents(session, databases) if each.kind in _MOVED}
    return tuple(_final(session, each, databases) for each in read_programs(session, tuple(databases), tables))


def _final(session: Session, each: Definition, databases: Mapping[str, str]) -> ProgramText:
    where = f"target: {each.schema_object}"
    statement = renamed(each.statement, each.database, databases, session.flavor, where)
    session_state = (each.client, each.collation, each.sql_mode, each.time_zone)
    return ProgramText(each.kind, databases[each.database], each.name, statement.decode(), *session_state)


def require_free(session: Session, names: Mapping[str, str]) -> None:
    """Raises PrecheckError if the target has one of the final names."""
    there = {name for (name,) in session.texts("SELECT schema_name FROM information_schema.schemata")}
    if taken := sorted(there & {*names.values()}):
        raise PrecheckError(
            f"target: database {taken[0]}: expected no database of this name, found one; a restore never writes over a "
            "database that is there: take another name (--as), or rename or drop that one"
        )


def move(session: Session, databases: Mapping[str, str], programs: tuple[ProgramText, ...]) -> list[str]:
    """Move what is still in the unfinished ``databases``; messages about views that could not be made."""
    present = {name for (name,) in session.texts("SELECT schema_name FROM information_schema.schemata")}
    left = {old: new for old, new in databases.items() if old in present}
    if not left:
        # an attempt was killed behind its last statement
        return []
    for old, new in left.items():
        if new not in present:
            statement = read_definition(session, SchemaObject("database", old, "")).statement
            session.execute(statement.replace(identifier(old).encode(), identifier(new).encode(), 1))
    objects = contents(session, left)
    for database, trigger in _triggers(session, left):
        session.execute(f"DROP TRIGGER {identifier(database)}.{identifier(trigger)}")
    moved = sorted(each for each in objects if each.kind in _MOVED)
    if moved:
        # without it, foreign keys of other tables would keep the old name
        session.execute("SET foreign_key_checks = 1")
        session.execute("RENAME TABLE " + ", ".join(_moved(each, left[each.database]) for each in moved))
        session.execute("SET foreign_key_checks = 0")
    for program in programs:
        _require_program(program, {*databases.values()})
    definitions = [
        Definition(each.kind, each.database, each.name, each.statement.encode(), each.client, each.collation,
                   each.sql_mode, each.time_zone)
        for each in programs
    ]  # fmt: skip
    for made in reversed(definitions):
        drop(session, made.schema_object)
    notes = make_behind_rows(session, definitions)
    for old in left:
        drop_database(session, old)
    return notes


def _require_program(each: ProgramText, databases: set[str]) -> None:
    """Whoever can write to the schema ``binlane`` has no other statements run by this account."""
    made = OBJECT.match(each.statement.encode())
    kind = "" if made is None else made[1].decode().upper()
    if kind != each.kind.split()[0] or each.database not in databases:
        raise unexpected("binlane.restores.programs", f"CREATE {each.kind} in {', '.join(databases)}", each.statement)


def _triggers(session: Session, databases: Mapping[str, str]) -> list[tuple[str, ...]]:
    found = session.texts("SELECT trigger_schema, trigger_name FROM information_schema.triggers")
    return [each for each in found if each[0] in databases]


def _moved(each: SchemaObject, new: str) -> str:
    old = f"{identifier(each.database)}.{identifier(each.name)}"
    return f"{old} TO {identifier(new)}.{identifier(each.name)}"
