"""Gives restored databases their final names, when they are complete: the last step of a restore.

The servers rename tables, and nothing else, from one database to another. So all tables move in one statement, and
routines, views, triggers and events are made anew from definitions that were read, and recorded, before. Each statement
can be the last one before a kill: what is there already is passed over by the next attempt.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

from binlane.binlog.types.collations import is_charset
from binlane.binlog.types.literals import identifier
from binlane.bootstrap.definition_copy import (
    Definition,
    contents,
    drop,
    drop_database,
    make_behind_rows,
    make_database,
    read_definition,
    read_programs,
)
from binlane.bootstrap.sessions import Session
from binlane.errors import PlanError, PrecheckError
from binlane.model import Flavor, SchemaObject, SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.restore.definers import OBJECT
from binlane.restore.dump_load import renamed, require_own
from binlane.restore.moved_tables import set_names
from binlane.schema.letter_case import lower
from binlane.sql.charset import carried, definition_context, in_bytes
from binlane.sql.programs.of_server import SYSTEM_NAMES, LeftOut, kept_database
from binlane.sql.shared_reading import has_condition
from binlane.sql.sql_modes import modes_there
from binlane.sql.temporary_routines import tokens_of
from binlane.state.records.restores import ProgramText, RestorePrograms
from binlane.state.stored_values import unexpected

_MOVED: Final = ("table", "sequence", "system versioned")
_PROGRAMS: Final = frozenset({"VIEW", "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE", "PACKAGE BODY"})
_WORD: Final = re.compile(r"\w+", re.ASCII)


def read_final_programs(
    reader: Callable[[], Session], databases: Mapping[str, str], *, only_triggers: bool, todo: str = ""
) -> tuple[ProgramText, ...]:
    """The routines, views, triggers and events of the unfinished ``databases``, under their final names. Raises
    PlanError for one whose names cannot be changed; ``todo``: what to do then. ``reader`` opens a session as
    ``definition_session``: others get a text in UTF-8, which is not what its client has sent."""
    if not databases:
        return ()
    with contextlib.closing(reader()) as session:
        tables = {TableKey(each.database, each.name) for each in contents(session, databases) if is_moved(each)}
        programs = read_programs(session, tuple(databases), tables)
        flavor = session.flavor
    asked = [each for each in programs if not only_triggers or each.kind == "TRIGGER"]
    return with_names(asked, databases, flavor, todo)


def with_names(
    programs: Collection[Definition], databases: Mapping[str, str], flavor: Flavor, todo: str = ""
) -> tuple[ProgramText, ...]:
    """The programs under these names of their databases. Raises as ``read_final_programs``."""
    return tuple(_final(flavor, each, databases, todo) for each in programs)


def _final(flavor: Flavor, each: Definition, databases: Mapping[str, str], todo: str) -> ProgramText:
    where = f"target: {each.schema_object}"
    try:
        context = _context(each, flavor)
    except ValueError as strange:
        raise PlanError(f"{where}: expected names of modes as servers list them, found {strange}") from None
    statement = carried(renamed(each.statement, context, databases, flavor, where, todo), each.client)
    if statement is None:
        raise PlanError(
            f"{where}: expected a text in {each.client or 'UTF-8'}, the character set of its client, found bytes that "
            "are no character of it: make it anew behind SET NAMES utf8mb4"
        )
    session_state = (each.client, each.collation, each.sql_mode, each.time_zone, each.database_collation)
    return ProgramText(each.kind, databases[each.database], each.name, statement, *session_state)


ANOTHER_NAME: Final = "or give another name (--as)"
"""What else can be done about a plan."""


def later(restore: str) -> str:
    """How a restore that has begun goes on behind a mend: its names are fixed."""
    return (
        f"then `binlane restore --continue {restore}`; or `binlane restore --drop {restore}`, and begin it anew under "
        "another name"
    )


def require_free(
    session: Session, names: Mapping[str, str], todo: str = "give another name (--as), or add --replace"
) -> None:
    """Raises PrecheckError if the target has one of the final names, or keeps names in small letters and one has
    others: under what is asked for it would be found by some queries alone."""
    there = present_databases(session)
    [(folds,)] = session.texts("SELECT @@lower_case_table_names")
    if folds != "0" and (capitals := sorted(name for name in names.values() if name != lower(name))):
        raise PrecheckError(
            f"target: database {capitals[0]}: expected a name in small letters, as this server keeps names "
            f"(lower_case_table_names = {folds}), found one with capitals; give it in small letters: --as "
            f"{lower(capitals[0])}"
        )
    if taken := sorted(there & {*names.values()}):
        raise PrecheckError(
            f"target: database {taken[0]}: expected no database of this name, found one; a restore never writes over a "
            f"database that is there unless --replace keeps that one: {todo}"
        )


def present_databases(session: Session) -> frozenset[str]:
    """The server's databases."""
    return frozenset(name for (name,) in session.texts("SELECT schema_name FROM information_schema.schemata"))


def move(
    session: Session,
    reader: Callable[[], Session],
    databases: Mapping[str, str],
    replaced: Collection[str],
    programs: RestorePrograms,
    on: str,
) -> list[str]:
    """Move what is still in the unfinished ``databases``; messages about views that could not be made. ``replaced``:
    final names whose tables are there. ``reader`` opens a session as ``definition_session``; ``on``: how the restore
    goes on behind an error."""
    present = present_databases(session)
    left = {old: new for old, new in databases.items() if old in present}
    if not left:
        # an attempt was killed behind its last statement
        return []
    tables_of = {database for database, _ in programs.tables}
    if waits(session, left):
        own = moved_before(session, left, programs.tables)
        _require_empty(session, {*left.values()} - {*replaced}, own, on)
    elif bare := {*left.values()} - {*replaced} - tables_of:
        # no table tells whether an attempt has come further
        _require_empty(session, bare, (), on, _made_before(reader, bare, programs.texts))
    for old, new in left.items():
        if new not in present:
            statement = read_definition(session, SchemaObject("database", old, "")).statement
            session.execute(statement.replace(identifier(old).encode(), identifier(new).encode(), 1))
    objects = contents(session, left)
    drop_triggers(session, left)
    tables = sorted(filter(is_moved, objects))
    if tables:
        # without it, foreign keys of other tables would keep the old name
        session.execute("SET foreign_key_checks = 1")
        session.execute("RENAME TABLE " + ", ".join(moved(each, left[each.database]) for each in tables))
        session.execute("SET foreign_key_checks = 0")
    set_names(session, left, on)
    definitions = require_programs(programs.texts, {*databases.values()}, session.flavor)
    for made in reversed(definitions):
        drop(session, made.schema_object)
    notes = make_behind_rows(session, definitions)
    for old, new in left.items():
        # an attempt that was killed at a program has left the default under which that one was to be made
        give_options(session, old, new)
        drop_database(session, old)
    return notes


def programs_elsewhere(
    programs: Collection[ProgramText], databases: Collection[str], present: Collection[str], flavor: Flavor
) -> list[str]:
    """Messages about programs of the restored ``databases`` that name one of the target's others (``present``)."""
    others = LeftOut.of(each for each in present if lower(each) not in SYSTEM_NAMES and each not in databases)
    found = list[str]()
    for each in programs:
        tokens = tokens_of(each.statement, flavor, each.sql_mode) or ()
        name = kept_database(tokens, others, each.database, by_definer=True)
        if name is not None:
            found.append(
                f"{each.kind.lower()} {each.database}.{each.name} names {name}, which was not restored: it reads or "
                "changes that database of this server, as it is now"
            )
    return found


def give_options(session: Session, old: str, new: str) -> None:
    """Give a database that is there the options of another one."""
    options = read_definition(session, SchemaObject("database", old, ""))
    statement = options.statement.replace(identifier(old).encode(), identifier(new).encode(), 1)
    make_database(session, replace(options, database=new, statement=statement), {new})


def waits(session: Session, databases: Collection[str]) -> bool:
    """Whether the unfinished ``databases`` have tables: all of them move in one statement, so none has then, unless
    the server crashed in it (``moved_before``)."""
    return any(map(is_moved, contents(session, databases)))


def moved_before(
    session: Session, databases: Mapping[str, str], tables: Collection[tuple[str, str]]
) -> frozenset[tuple[str, str]]:
    """Those of the restore's ``tables`` that have their final names, and are in the unfinished ``databases`` no more.
    MariaDB before 10.6 renames only some tables of a statement if it crashes, and so do engines without transactions:
    https://mariadb.com/kb/en/atomic-ddl/."""
    left = {(databases[each.database], each.name) for each in contents(session, databases) if is_moved(each)}
    there = ((each.database, each.name) for each in contents(session, databases.values()) if is_moved(each))
    return frozenset(tables).difference(left).intersection(there)


def _made_before(
    reader: Callable[[], Session], databases: Collection[str], texts: Collection[ProgramText]
) -> frozenset[SchemaObject]:
    """What is in the ``databases`` and is, to the letter, what the restore makes there: an attempt that was killed has
    made it. Raises PrecheckError for what the account may not see."""
    with contextlib.closing(reader()) as session:
        found = read_programs(session, databases, ())
    there = {(each.kind, each.database, each.name, carried(each.statement, each.client)) for each in found}
    made = [each for each in texts if (each.kind, each.database, each.name, each.statement) in there]
    return frozenset(SchemaObject(each.kind.lower(), each.database, each.name) for each in made)


def _require_empty(
    session: Session,
    names: Collection[str],
    tables: Collection[tuple[str, str]],
    on: str,
    programs: Collection[SchemaObject] = (),
) -> None:
    """Raises PrecheckError if somebody has put something under a final name since the windows ended. ``tables`` and
    ``programs``: those of the restore that are there."""
    there = contents(session, names)
    own = {each for each in there if is_moved(each) and (each.database, each.name) in tables}
    if found := sorted(there - own - {*programs}, key=str):
        one = found[0]
        raise PrecheckError(
            f"target: database {one.database}: expected no database of this name, or an empty one, found {one.kind} "
            f"{one.database}.{one.name}: somebody has made it since this restore's windows ended, and a restore never "
            f"writes over it; drop or rename it, {on}"
        )


def require_programs(programs: tuple[ProgramText, ...], databases: Collection[str], flavor: Flavor) -> list[Definition]:
    """The programs as they are made. Raises as ``require_program``."""
    for program in programs:
        require_program(program, databases, flavor)
    return [
        Definition(
            kind=each.kind,
            database=each.database,
            name=each.name,
            statement=in_bytes(each.statement, each.client),
            client=each.client,
            collation=each.collation,
            sql_mode=each.sql_mode,
            time_zone=each.time_zone,
            database_collation=each.database_collation,
        )
        for each in programs
    ]


def require_program(each: ProgramText, databases: Collection[str], flavor: Flavor) -> None:
    """Raise StateSchemaError for a program that is none of these databases'. Whoever can write to the schema
    ``binlane`` has no other statements run by this account."""
    try:
        context, text = _context(each, flavor), in_bytes(each.statement, each.client)
    except (ValueError, LookupError):
        context, text = SessionContext(), b""
    made = OBJECT.match(text)
    kind = "" if made is None else made["kind"].decode().upper()
    is_known = each.kind in _PROGRAMS and kind == each.kind.split()[0] and each.database in databases
    words = [each.client, each.collation, *filter(None, [each.database_collation])]
    is_plain = not has_condition(text, context, flavor)
    try:
        require_own(text, statement_facts(text, context, flavor), databases, each.name)
    except PlanError:
        is_plain = False
    if not (is_known and is_plain and is_charset(each.client.lower()) and all(map(_WORD.fullmatch, words))):
        found = " ".join((each.kind, each.database, *words, each.statement))
        raise unexpected("binlane.restores.programs", f"CREATE {each.kind} in {', '.join(sorted(databases))}", found)


def _context(each: Definition | ProgramText, flavor: Flavor) -> SessionContext:
    """The session that makes a program. Raises ValueError for a sql_mode that no server lists."""
    modes = "" if each.kind == "VIEW" else modes_there(each.sql_mode, flavor)
    return replace(definition_context(modes, each.client), database=each.database)


def drop_triggers(session: Session, databases: Collection[str]) -> None:
    """No table with a trigger can be moved to another database."""
    for database, trigger in session.texts("SELECT trigger_schema, trigger_name FROM information_schema.triggers"):
        if database in databases:
            session.execute(f"DROP TRIGGER {identifier(database)}.{identifier(trigger)}")


def is_moved(each: SchemaObject) -> bool:
    """Whether RENAME TABLE moves the object."""
    return each.kind in _MOVED


def moved(each: SchemaObject, new: str) -> str:
    """The object's part of a RENAME TABLE to the database ``new``."""
    old = f"{identifier(each.database)}.{identifier(each.name)}"
    return f"{old} TO {identifier(new)}.{identifier(each.name)}"
