"""Replaces a database by the restored one, and keeps the former one under a name of its own.

Tables go and come in one RENAME TABLE: whoever asks by the name finds either the former tables or the restored ones.
Everything else is made anew, as in ``final_names``. Each statement can be the last one before a kill; whether the
tables have changed places is told by the unfinished databases, which are the restore's own and have no table from then
on. The kept name is free until then: what is there belongs to somebody else.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import count
from typing import Final

from binlane.apply.refusals import DENIED, target_errors
from binlane.apply.session.innodb_dictionary import stored_pattern
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.types.literals import identifier
from binlane.bootstrap.definition_copy import (
    Definition,
    contents,
    drop,
    make,
    make_again,
    make_behind_rows,
    read_as_it_is,
    read_definition,
)
from binlane.bootstrap.scheduled_events import stopped_events
from binlane.bootstrap.sessions import Session
from binlane.errors import PrecheckError, TargetError
from binlane.model import Flavor, SchemaObject
from binlane.restore.final_names import (
    drop_triggers,
    give_options,
    is_moved,
    moved,
    present_databases,
    require_programs,
    with_names,
)
from binlane.restore.moved_tables import set_names
from binlane.servers.names import among, literals, other_than
from binlane.servers.variables import version_number
from binlane.state.records.restores import ProgramText

_KEPT: Final = "_replaced"
_RENAMES_LOCKED: Final = (8, 0, 13)
"""From this version on MySQL renames tables that the session has locked (release notes of 8.0.13)."""
_WAITS: Final = frozenset({1205, 1213, 1317, 1969, 3024})
"""A wait for a lock that was too long, a deadlock, and statements that were ended, by their time or by somebody."""
_GIVES_BACK_SECONDS: Final = 3600
_SHOWN: Final = 10
"""Objects that a refusal names."""
_DROPPED_FIRST: Final = frozenset({"TRIGGER", "EVENT"})
"""Kinds of programs that go before the tables do."""


def kept_name(database: str, present: Collection[str]) -> str:
    """The name under which a database is kept that is replaced: the first that is free, so that a plan that is made
    again is the same."""
    return next(name for name in _kept_names(database) if name not in present)


def _kept_names(database: str) -> Iterator[str]:
    yield database + _KEPT
    yield from (f"{database}{_KEPT}_{number}" for number in count(2))


def require_replaceable(session: Session, databases: Collection[str], otherwise: str, if_empty: str) -> None:
    """Raises PrecheckError for a database that cannot be kept under another name. ``otherwise``: what else can be
    done; ``if_empty``: what can be done if nothing is to be kept."""
    tables = {each.database for each in contents(session, databases) if is_moved(each)}
    if lacks := sorted({*databases} - tables):
        raise PrecheckError(
            f"target: database {lacks[0]}: expected tables in a database that is replaced, found none; {if_empty}"
        )
    foreign = _foreign_keys(session, databases)
    if foreign:
        database, table, constraint, ours = foreign[0]
        raise PrecheckError(
            f"target: table {database}.{table}: expected no foreign key into {ours}, which is replaced, found "
            f"{constraint}: it would go on to the kept tables; ALTER TABLE {identifier(database)}.{identifier(table)} "
            f"DROP FOREIGN KEY {identifier(constraint)}, and add it again behind the restore, {otherwise}"
        )


def _foreign_keys(session: Session, databases: Collection[str]) -> list[tuple[str, ...]]:
    """Foreign keys of other databases into these: database, table, constraint, and the database that they refer to.
    Those that the account has a privilege on; if there is none, and it has PROCESS, all of InnoDB's, with names as
    InnoDB stores them."""
    chosen = literals(databases)
    found = session.texts(
        "SELECT table_schema, table_name, constraint_name, referenced_table_schema FROM "
        f"information_schema.key_column_usage WHERE {among('referenced_table_schema', chosen)} AND "
        f"{other_than('table_schema', chosen)} ORDER BY 1, 2, 3"
    )
    if found:
        return found
    ours = re.compile("|".join(map(stored_pattern, databases)))
    keys = stored_foreign_keys(session) or []
    stored = ((parent.partition("/"), child.partition("/"), key) for child, parent, key in keys)
    return sorted(
        (child[0], child[2], key.partition("/")[2], parent[0])
        for parent, child, key in stored
        if ours.fullmatch(parent[0]) and not ours.fullmatch(child[0])
    )


def stored_foreign_keys(session: Session) -> list[tuple[str, ...]] | None:
    """Child, parent and name of all foreign keys of InnoDB, as it stores them; None for an account without PROCESS."""
    view = "innodb_foreign" if session.flavor is Flavor.MYSQL else "innodb_sys_foreign"
    try:
        with target_errors("target"):
            return session.texts(f"SELECT for_name, ref_name, id FROM information_schema.{view}")
    except TargetError as exc:
        if exc.__cause__ is None or error_code(exc.__cause__) not in DENIED:
            raise
        return None


def have_changed_places(session: Session, unfinished: Mapping[str, str], kept: Mapping[str, str]) -> bool:
    """Whether the former tables have their kept names already. ``unfinished``: its databases have tables until then
    (``require_places``)."""
    return bool(_tables(session, kept.values())) and not _tables(session, _hidden(unfinished, kept))


def require_places(session: Session, unfinished: Mapping[str, str], kept: Mapping[str, str], on: str) -> None:
    """Raises PrecheckError unless tables can change places: there are restored ones, and the kept names are free.
    ``on``: how the restore goes on."""
    hidden = _hidden(unfinished, kept)
    restored = _tables(session, hidden)
    if not restored:
        raise PrecheckError(
            f"target: database {min(hidden)}: expected tables that come in place of those of {hidden[min(hidden)]}, "
            f"found none; {on}"
        )
    for database, name in sorted(kept.items()):
        if there := sorted(contents(session, [name])):
            shown = ", ".join(f"{each.kind} {each.name}" for each in there[:_SHOWN])
            raise PrecheckError(
                f"target: database {name}: expected nothing in it, because {database} is kept under this name when "
                f"the restored tables ({', '.join(each.name for each in restored[:_SHOWN])}) take its place, found "
                f"{shown}; nothing has changed places; move what is yours to a database of another name (a table that "
                f"is missing in {database} belongs there: a MariaDB server before 10.6 has crashed in RENAME TABLE), "
                f"drop {name}, {on}"
            )


def _hidden(unfinished: Mapping[str, str], kept: Mapping[str, str]) -> Mapping[str, str]:
    """Of the unfinished databases, those that replace one, with their final names."""
    return {old: new for old, new in unfinished.items() if new in kept}


def _tables(session: Session, databases: Collection[str]) -> list[SchemaObject]:
    """What RENAME TABLE moves from these databases."""
    return sorted(filter(is_moved, contents(session, databases)))


def _rename(
    session: Session,
    second: Session,
    hidden: Mapping[str, str],
    kept: Mapping[str, str],
    live: Collection[Definition],
) -> None:
    """All tables change places in one statement. What keeps RENAME TABLE waiting, such as a long report, is waited for
    while the former tables have their triggers, and if it fails, they have them again. ``live``: the former databases'
    triggers and events; where there is another trigger since, the server refuses."""
    tables, names = [*_tables(session, kept), *_tables(session, hidden)], {**kept, **hidden}
    drop_triggers(session, hidden)
    is_locked = _lock(session, tables)
    try:
        with target_errors(f"target: {', '.join(kept)}, which is replaced"):
            for each in live:
                # an event would go on, on the restored tables; with locked tables a session drops none
                drop(second if each.kind == "EVENT" else session, each.schema_object)
            if is_locked and not _renames_locked(session):
                session.execute("UNLOCK TABLES")
            # without it, foreign keys would keep the old name
            session.execute("SET foreign_key_checks = 1")
            session.execute("RENAME TABLE " + ", ".join(moved(each, names[each.database]) for each in tables))
    except TargetError as exc:
        if session.is_open:
            session.execute("UNLOCK TABLES")
            give_back(session, live, exc)
        raise
    session.execute("UNLOCK TABLES")
    session.execute("SET foreign_key_checks = 0")


def give_back(session: Session, live: Collection[Definition], error: TargetError) -> None:
    """Make the live databases' triggers and events again, behind the error with which their tables have not changed
    places. Raises TargetError that names those that are missing."""
    # what has kept the tables may keep their triggers waiting, too, and they are worth more time than the tables were
    session.execute(f"SET SESSION lock_wait_timeout = {_GIVES_BACK_SECONDS}")
    missing = []
    # an event waits for no table; a table's triggers fire in the order in which they were made
    for each in sorted(live, key=lambda one: one.kind != "EVENT"):
        is_there = True
        try:
            with target_errors(str(each.schema_object)):
                drop(session, each.schema_object)
                is_there = False
                make_again(session, each)
        except TargetError:
            missing += [] if is_there else [str(each.schema_object)]
    if missing:
        names = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else "")
        raise TargetError(
            f"{error}. The live databases lack what was dropped for that: {names}; `binlane restore --continue` or "
            "`--drop` with the restore's name makes them again"
        ) from error


def _lock(session: Session, tables: Collection[SchemaObject]) -> bool:
    """Lock the tables, which waits as long as RENAME TABLE would; False for one that cannot be locked, which RENAME
    TABLE need not read. Raises driver errors for a wait that was too long."""
    try:
        with target_errors("target: LOCK TABLES in front of RENAME TABLE"):
            session.execute("LOCK TABLES " + ", ".join(f"{_of(each)} WRITE" for each in tables))
    except TargetError as exc:
        if exc.__cause__ is None or error_code(exc.__cause__) in _WAITS or not session.is_open:
            raise
        return False
    return True


def _of(each: SchemaObject) -> str:
    return f"{identifier(each.database)}.{identifier(each.name)}"


def _renames_locked(session: Session) -> bool:
    """Whether RENAME TABLE runs in a session that has the tables locked."""
    if session.flavor is Flavor.MARIADB:
        return False
    [(version,)] = session.texts("SELECT VERSION()")
    return version_number(version) >= _RENAMES_LOCKED


def put_back(
    session: Session, kept: Mapping[str, str], recorded: tuple[ProgramText, ...], present: tuple[ProgramText, ...]
) -> list[str]:
    """Make the former databases' triggers and events anew that an attempt has dropped before it was killed; messages
    about those events that ran, and are disabled. ``present``: those that are there."""
    former = former_programs(recorded, present)
    kinds = {each.kind for each in former if each not in present}
    finals = {name: database for database, name in kept.items()}
    made = tuple(each for each in former if each.kind in kinds and (each.kind == "TRIGGER" or each not in present))
    definitions = require_programs(
        with_names(require_programs(made, finals, session.flavor), finals, session.flavor), kept, session.flavor
    )
    for each in definitions:
        # a table's triggers fire in the order in which they were made
        drop(session, each.schema_object)
    for each in definitions:
        make(session, each)
    events = {(each.database, each.name) for each in definitions if each.kind == "EVENT"}
    return [
        f"event {each}, which an attempt had dropped, is there again, disabled: {each.altered('ENABLE')}"
        for each in (stopped_events(session) if events else ())
        if (each.database, each.name) in events
    ]


def former_programs(recorded: tuple[ProgramText, ...], present: tuple[ProgramText, ...]) -> tuple[ProgramText, ...]:
    """The programs of a database whose tables are not moved yet: those that are there, and the recorded triggers and
    events that an attempt has dropped."""
    there = {(each.kind, each.database, each.name): each for each in present}
    dropped = [each for each in recorded if each.kind in _DROPPED_FIRST]
    if all((each.kind, each.database, each.name) in there for each in dropped):
        return present
    # in the order in which triggers were made, which is the one in which they fire
    found = [there.pop((each.kind, each.database, each.name), each) for each in dropped]
    return (*found, *there.values())


def change_places(
    session: Session,
    reader: Callable[[], Session],
    writer: Callable[[], Session],
    unfinished: Mapping[str, str],
    kept: Mapping[str, str],
    former: tuple[ProgramText, ...],
    on: str,
) -> list[str]:
    """Move the tables of each database of ``kept`` to its kept name, and the ``unfinished`` ones to their final names;
    then the former programs, all of which are there. Messages about views that could not be made. ``reader`` opens a
    session as ``definition_session``, ``writer`` a second one that writes; ``on``: how the restore goes on
    behind an error."""
    programs = require_programs(former, {*kept.values()}, session.flavor)
    present = present_databases(session)
    for database, name in kept.items():
        if name not in present:
            statement = read_definition(session, SchemaObject("database", database, "")).statement
            session.execute(statement.replace(identifier(database).encode(), identifier(name).encode(), 1))
    hidden = _hidden(unfinished, kept)
    if not have_changed_places(session, unfinished, kept):
        finals = {name: database for database, name in kept.items()}
        first = [each.schema_object for each in programs if each.kind in _DROPPED_FIRST]
        with contextlib.closing(reader()) as read:
            # as they are: not as a row of the state says
            live = [read_as_it_is(read, each._replace(database=finals[each.database])) for each in first]
        with contextlib.closing(writer()) as second:
            _rename(session, second, hidden, kept, live)
    set_names(session, kept, on)
    set_names(session, hidden, on)
    for old, new in hidden.items():
        give_options(session, old, new)
    for made in reversed(programs):
        drop(session, made.schema_object)
    notes = make_behind_rows(session, programs)
    finals = {name: database for database, name in kept.items()}
    for each in former:
        # what has been made since is in no kept database
        if each.kind not in _DROPPED_FIRST:
            drop(session, SchemaObject(each.kind.lower(), finals[each.database], each.name))
    return notes
