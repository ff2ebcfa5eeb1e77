"""Reads the definitions of a database's objects (SHOW CREATE) and creates the objects on the target.

Differences from a dump: triggers are created after the rows (they would fire), events are disabled as on a replica, and
each definition is sent as the source's bytes, in a session like the one that created it.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

import pymysql

from binlane.apply.refusals import target_errors
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.types.literals import identifier, quoted
from binlane.bootstrap.definition_proof import foreign_part, session_modes
from binlane.bootstrap.library_calls import check_library_calls, check_library_calls_behind
from binlane.bootstrap.sessions import Session
from binlane.bootstrap.view_functions import check_view
from binlane.errors import PrecheckError, SourceError, TargetError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SchemaObject, SessionContext, TableKey
from binlane.servers.names import among, literals
from binlane.servers.stored_bodies import is_gone
from binlane.sessions.pins import WRITE_MODE
from binlane.sql.charset import definition_context, dialect_in, in_bytes
from binlane.sql.parse.shown_table import ENDED_QUOTES, LINE_BREAK, hidden_part, with_quoted_names
from binlane.sql.scheduled_event import disabled
from binlane.state.records.bootstraps import TABLE

_NO_DATABASE: Final = 1049
_NO_SQL: Final = 1064
"""A server's answer for a view whose names or literals it has not put in quotes that it can read."""
_INVALID_VIEW: Final = "1356"
_SEQUENCE: Final = "SEQUENCE"
_SHOWN: Final = frozenset({"TABLE", _SEQUENCE})
_INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
_PLAIN_NAME: Final = (
    "rename it (ALTER TABLE ... RENAME COLUMN or RENAME KEY; drop a foreign key and add it under another name)"
)
_PLAIN_OPTION: Final = {
    Flavor.MYSQL: "ALTER TABLE ... SECONDARY_ENGINE = NULL",
    Flavor.MARIADB: "take the option off (of the table: SET SESSION sql_mode = 'IGNORE_BAD_TABLE_OPTIONS', then "
    "ALTER TABLE ... `option` = DEFAULT; of a column: ALTER TABLE ... MODIFY; of a key: ALTER TABLE ... DROP KEY, and "
    "another ALTER TABLE ... ADD KEY), or make a table with such a DATA DIRECTORY again (CREATE TABLE ... LIKE, "
    "INSERT ... SELECT, RENAME TABLE)",
}
"""What takes such an option off: of MariaDB's, ALTER TABLE changes a key's only if it is dropped before, a folder
never, and in another sql_mode it takes no option that the engine does not know, DEFAULT neither (1911)."""
LACKS_FOR_VIEW: Final = frozenset({_NO_DATABASE, 1146, 1305, 1356})
"""Errors for a database, a table, a function or a view that a view needs and that does not exist yet."""
_WITH_ACCOUNTS: Final = frozenset({1227, 1449, 1044, 1142, 1143, 1356, 1370})
"""Errors that the definers may have, or those behind a view, as long as they are not there, or not granted anything."""
_AUTO_INCREMENT: Final = re.compile(rb"^\) ENGINE=\w+ AUTO_INCREMENT=(\d+) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Definition:
    """One statement, and the state of the session that first ran it; empty: any."""

    kind: str
    database: str
    name: str
    statement: bytes
    client: str = ""
    collation: str = ""
    sql_mode: str = ""
    time_zone: str = ""
    database_collation: str = ""
    """The database's default when a program was made: the server keeps it, and reads parameters, variables and
    temporary tables without a character set by it for ever."""
    broken: bool = False
    """A view that the source says is broken: what it needs is gone."""

    @property
    def schema_object(self) -> SchemaObject:
        """The object, as the target names it."""
        return SchemaObject(self.kind.lower(), self.database, self.name)


@dataclass(frozen=True, slots=True)
class Definitions:
    """Definitions in the order in which they can be created."""

    databases: tuple[Definition, ...]
    sequences: tuple[Definition, ...]
    tables: tuple[Definition, ...]
    behind_rows: tuple[Definition, ...]
    """Routines, views, triggers, events."""

    @property
    def objects(self) -> frozenset[SchemaObject]:
        """All created objects except databases."""
        return frozenset(one.schema_object for one in (*self.sequences, *self.tables, *self.behind_rows))


def read_definitions(session: Session, databases: Collection[str], tables: Collection[TableKey]) -> Definitions:
    """The definitions of ``databases`` and of ``tables``. Raises PrecheckError for one that the account cannot see."""
    reader = _Reader(session, sorted(databases))
    made = read_tables(session, databases, tables)
    return Definitions(
        databases=tuple(reader.database(name) for name in sorted(databases)),
        sequences=tuple(each for each in made if each.kind == _SEQUENCE),
        tables=tuple(each for each in made if each.kind != _SEQUENCE),
        behind_rows=reader.programs(tables),
    )


def read_tables(
    session: Session, databases: Collection[str], tables: Collection[TableKey], *, may_go: bool = False
) -> tuple[Definition, ...]:
    """The definitions of ``tables``, and before them those of sequences, which are among them. ``may_go``: DDL goes on
    meanwhile; what has been dropped since ``tables`` was read is left out."""
    reader = _Reader(session, sorted(databases), may_go=may_go)
    found = [each for each in reader.sequences() if TableKey(*each) in tables] if tables else []
    others = (key for key in sorted(tables, key=str) if (key.database, key.table) not in found)
    return (
        *chain.from_iterable(reader.there(_SEQUENCE, database, name, column=1) for database, name in found),
        *chain.from_iterable(reader.there("TABLE", key.database, key.table, column=1) for key in others),
    )


def read_programs(
    session: Session, databases: Collection[str], tables: Collection[TableKey], *, may_go: bool = False
) -> tuple[Definition, ...]:
    """Routines, views, triggers of ``tables``, events. Raises PrecheckError for what the account may not see.
    ``may_go``: as for ``read_tables``."""
    return _Reader(session, sorted(databases), may_go=may_go).programs(tables) if databases else ()


def read_definition(session: Session, obj: SchemaObject) -> Definition:
    """The definition of one object. Raises PrecheckError if the account may not see it."""
    reader = _Reader(session, [obj.database])
    match obj.kind:
        case "database":
            return reader.database(obj.database)
        case "event":
            return reader.disabled_event(obj.database, obj.name)
        case "table" | "sequence":
            return reader.shown(obj.kind.upper(), obj.database, obj.name, column=1)
        case "view":
            return reader.shown("VIEW", obj.database, obj.name, column=1, client=2)
        case _:
            return reader.shown(obj.kind.upper(), obj.database, obj.name, column=2, mode=1, client=3)


def read_as_it_is(session: Session, obj: SchemaObject) -> Definition:
    """As ``read_definition``; an event in its own status, for ``make_again``."""
    return (
        _Reader(session, [obj.database]).event(obj.database, obj.name)
        if obj.kind == "event"
        else (read_definition(session, obj))
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    session: Session
    databases: list[str]
    may_go: bool = False
    """What is dropped between the list of names and its own definition is left out; without it, its error is raised."""

    def database(self, name: str) -> Definition:
        [row] = self.session.rows(f"SHOW CREATE DATABASE {identifier(name)}")
        return self._definition("DATABASE", name, "", row, column=1)

    def programs(self, tables: Collection[TableKey]) -> tuple[Definition, ...]:
        return (*self.routines(), *self.views(), *self.triggers(tables), *self.events())

    def sequences(self) -> list[tuple[str, ...]]:
        return self._names("table_schema, table_name FROM information_schema.tables", "table_type = 'SEQUENCE'")

    def routines(self) -> Iterator[Definition]:
        rows = self._names("routine_schema, routine_type, routine_name FROM information_schema.routines", "1 = 1")
        for database, kind, name in sorted(rows):  # FUNCTION before PROCEDURE, PACKAGE before PACKAGE BODY
            if kind == "LIBRARY":
                raise PrecheckError(
                    f"library {database}.{name}: binlane cannot copy it; leave its database out with --databases"
                )
            yield from self.there(kind, database, name, column=2, mode=1, client=3)

    def views(self) -> Iterator[Definition]:
        for database, name in self._names("table_schema, table_name FROM information_schema.views", "1 = 1"):
            yield from self._if_there(functools.partial(self._view, database, name))

    def _view(self, database: str, name: str) -> Definition:
        try:
            shown = self.shown("VIEW", database, name, column=1, client=2)
            said = {code for _, code, _ in self.session.texts("SHOW WARNINGS")}
            return replace(shown, broken=_INVALID_VIEW in said)
        except SourceError as exc:
            # MySQL, where a database that the view needs is gone; a view whose table is gone is shown by both families
            if exc.__cause__ is None or error_code(exc.__cause__) != _NO_DATABASE:
                raise
            if (found := self._view_of_no_database(database, name)) is None:
                raise
            return found

    def _view_of_no_database(self, database: str, name: str) -> Definition | None:
        """The view by the catalogue, which has it in parts; None if its own database is gone, or if its client's
        character set cannot spell it."""
        place = f"table_schema = {quoted(database)} AND table_name = {quoted(name)}"
        rows = self.session.rows(
            "SELECT view_definition, check_option, definer, security_type, character_set_client, collation_connection "
            f"FROM information_schema.views WHERE {place}"
        )
        if not rows:
            return None
        [row] = rows
        names = self.session.texts(
            f"SELECT column_name FROM information_schema.columns WHERE {place} ORDER BY ordinal_position"
        )
        body, option, definer, security, client, collation = ((each or b"").decode() for each in row)
        user, _, host = definer.rpartition("@")
        columns = f" ({', '.join(identifier(column) for (column,) in names)})" if names else ""
        check = "" if option == "NONE" else f" WITH {option} CHECK OPTION"
        statement = (
            f"CREATE DEFINER={identifier(user)}@{identifier(host)} SQL SECURITY {security} "
            f"VIEW {_name(database, name)}{columns} AS {body}{check}"
        )
        try:
            # the catalogue's text is UTF-8, whatever the view's client was
            sent = in_bytes(statement, client)
        except (UnicodeError, LookupError):
            return None
        return Definition("VIEW", database, name, sent, client, collation, broken=True)

    def triggers(self, tables: Collection[TableKey]) -> Iterator[Definition]:
        query = "trigger_schema, trigger_name, event_object_table FROM information_schema.triggers"
        order = "event_object_table, action_timing, event_manipulation, action_order"
        for database, name, table in self._names(query, "1 = 1", order):
            if TableKey(database, table) not in tables:
                continue
            yield from self.there("TRIGGER", database, name, column=2, mode=1, client=3)

    def events(self) -> Iterator[Definition]:
        for database, name in self._names("event_schema, event_name FROM information_schema.events", "1 = 1"):
            yield from self._if_there(functools.partial(self.disabled_event, database, name))

    def event(self, database: str, name: str) -> Definition:
        [row] = self.session.rows(f"SHOW CREATE EVENT {_name(database, name)}")
        event = self._definition("EVENT", database, name, row, column=3, mode=1, client=4)
        return replace(event, time_zone=row[2].decode())

    def disabled_event(self, database: str, name: str) -> Definition:
        event = self.event(database, name)
        return _disabled(event, self.session)

    def there(
        self, kind: str, database: str, name: str, *, column: int, mode: int | None = None, client: int | None = None
    ) -> Iterator[Definition]:
        """As ``shown``; nothing for what is gone, where it may go."""
        return self._if_there(lambda: self.shown(kind, database, name, column=column, mode=mode, client=client))

    def _if_there(self, read: Callable[[], Definition]) -> Iterator[Definition]:
        try:
            yield read()
        except SourceError as exc:
            if not (self.may_go and is_gone(exc)):
                raise

    def shown(
        self, kind: str, database: str, name: str, *, column: int, mode: int | None = None, client: int | None = None
    ) -> Definition:
        """SHOW CREATE. ``column``, ``mode`` and ``client`` are the columns of its row with the statement, the sql_mode
        and the character set, which the collation follows."""
        try:
            [row] = self.session.rows(f"SHOW CREATE {kind} {_name(database, name)}")
        except (SourceError, pymysql.err.MySQLError) as exc:
            cause = exc.__cause__ if isinstance(exc, SourceError) else exc
            if cause is None or error_code(cause) != _NO_SQL:
                raise
            raise PrecheckError(
                f"{kind.lower()} {database}.{name}: expected a definition that its own server can read, found: {exc}; "
                "drop it there, or leave its database out"
            ) from exc
        if kind == "TABLE" and row[column] is not None:
            quoted_names = with_quoted_names((row[column] or b"").decode("latin-1")).encode("latin-1")
            row = (*row[:column], quoted_names, *row[column + 1 :])
        return self._definition(kind, database, name, row, column=column, mode=mode, client=client)

    def _definition(
        self, kind: str, database: str, name: str, row: tuple[bytes | None, ...], *, column: int,
        mode: int | None = None, client: int | None = None,
    ) -> Definition:  # fmt: skip
        statement = row[column]
        if statement is None:
            raise PrecheckError(
                f"{kind.lower()} {database}.{name}: the source does not show its definition to this account; "
                "grant the privileges that docs/bootstrap.md lists"
            )
        if kind in _SHOWN and (hidden := hidden_part(statement.decode("latin-1"))) is not None:
            raise PrecheckError(
                f"{kind.lower()} {database}.{name}: expected columns, keys and options in its SHOW CREATE {kind}, "
                f"found {hidden}, which this account would run on the target; {self._way_out(hidden)} on the source, "
                "or leave its database out"
            )
        text = [(row[at] or b"").decode() if at is not None else "" for at in (client, mode)]
        collation = (row[client + 1] or b"").decode() if client is not None else ""
        definition = Definition(kind, database, name, statement, text[0], collation, text[1])
        if client is not None and mode is not None:
            definition = replace(definition, database_collation=(row[client + 2] or b"").decode())
        _require_own(definition, self.session)
        return definition

    def _way_out(self, hidden: str) -> str:
        return _PLAIN_NAME if hidden in (LINE_BREAK, ENDED_QUOTES) else _PLAIN_OPTION[self.session.flavor]

    def _names(self, query: str, condition: str, order: str = "") -> list[tuple[str, ...]]:
        """Names from a query of the catalogue; the first column is the database."""
        first = query.split(",")[0]
        chosen = literals(self.databases)
        rows = self.session.texts(
            f"SELECT {query} WHERE {condition} AND {among(first, chosen)} ORDER BY {first}, {order or '2, 3'[:1]}"
        )
        return [tuple(row) for row in rows]


def rehearse_programs(session: Session, definitions: Sequence[Definition]) -> None:
    """Create routines, views, triggers and events over the empty tables, and drop them again: a refusal comes before
    the rows, and not hours later. Each as it will be, of its own definer: whoever calls it meanwhile has no privileges
    of this account. What only accounts are missing for, which may come with the copy, is passed over. Raises as
    ``make``."""
    _make_behind_rows(session, definitions, _WITH_ACCOUNTS)
    # behind an error they stay, as the copy would make them: its next attempt drops what is recorded
    for each in reversed(definitions):
        drop(session, each.schema_object)


def _require_own(definition: Definition, session: Session) -> None:
    """Raises PrecheckError for a text that is not this definition alone."""
    if (found := foreign_part(definition, session)) is not None:
        name = f"{definition.database}.{definition.name}" if definition.name else definition.database
        raise PrecheckError(
            f"{definition.kind.lower()} {name}: expected its definition alone, found {found}; this account does not "
            "run it on the target. If SHOW CREATE on the source shows the same, make the object there again; "
            "otherwise another program answers in the source's place, or changes what it says: look at host, port and "
            "ssl_mode of the connection"
        )


def make(session: Session, definition: Definition) -> None:
    """Run a definition's statement on the target, in a session like that of the source: the one door for definitions.
    An event is disabled, whoever has written the text. Raises TargetError with the object's name, also for a view that
    calls a function of a library, PrecheckError for a text that is more than the definition."""
    # a text of a session that no server shows would be read in another one
    _require_own(definition, session)
    if definition.kind == "VIEW":
        for check in (check_library_calls, check_library_calls_behind):
            check(session, definition.schema_object, definition.statement, _context(definition, session))
    if definition.kind == "EVENT":
        # another text than the one that was proved
        make_again(session, _disabled(definition, session))
    else:
        _make_proved(session, definition)


def _disabled(event: Definition, session: Session) -> Definition:
    dialect = dialect_in(session_modes(event, session.flavor), session.flavor)
    return replace(event, statement=disabled(event.statement, event.client.lower(), dialect))


def make_again(session: Session, definition: Definition) -> None:
    """As ``make``, for what this server itself had a moment ago (``read_as_it_is``): an event keeps its status."""
    _require_own(definition, session)
    _make_proved(session, definition)


def _make_proved(session: Session, definition: Definition) -> None:
    if definition.kind == "VIEW":
        check_view(session, definition.schema_object, definition.statement, _context(definition, session))
    with target_errors(str(definition.schema_object)):
        _make(session, definition)


def _context(definition: Definition, session: Session) -> SessionContext:
    return definition_context(session_modes(definition, session.flavor), definition.client)


def _make(session: Session, definition: Definition) -> None:
    if definition.kind != "DATABASE":
        session.execute(f"USE {identifier(definition.database)}")
    changed = definition.client != ""
    if changed:
        session.execute(
            f"SET character_set_client = {definition.client}, collation_connection = {definition.collation}"
        )
        session.execute(f"SET sql_mode = {quoted(session_modes(definition, session.flavor))}")
        if definition.time_zone:
            session.execute(f"SET time_zone = {quoted(definition.time_zone)}")
    before = _default_before(session, definition)
    try:
        if before:
            session.execute(f"ALTER DATABASE {identifier(definition.database)} COLLATE {definition.database_collation}")
        session.execute(definition.statement)
    except pymysql.err.MySQLError:
        # a connection that is lost cannot be set back, and the error must be the one that it was lost with
        with contextlib.suppress(pymysql.err.MySQLError):
            _as_before(session, definition, before, changed=changed)
        raise
    _as_before(session, definition, before, changed=changed)


def _default_before(session: Session, definition: Definition) -> str:
    """The present default of the database, if a program needs the one of when it was made, as in a dump; else empty. No
    session variable decides it."""
    if not definition.database_collation:
        return ""
    [(present,)] = session.texts("SELECT @@collation_database")
    return "" if definition.database_collation == present else str(present)


def _as_before(session: Session, definition: Definition, default: str, *, changed: bool) -> None:
    if default:
        session.execute(f"ALTER DATABASE {identifier(definition.database)} COLLATE {default}")
    if changed:
        session.execute("SET NAMES utf8mb4")
        session.execute(f"SET sql_mode = '{WRITE_MODE}', time_zone = '+00:00'")


def make_database(session: Session, definition: Definition, present: Collection[str]) -> None:
    """Create the database, or give an existing empty one its character set."""
    statement = definition.statement
    if definition.database in present:
        statement = re.sub(rb"^CREATE DATABASE", b"ALTER DATABASE", statement)
    make(session, replace(definition, statement=statement))


def make_behind_rows(session: Session, definitions: Sequence[Definition]) -> list[str]:
    """Create routines, views, triggers and events. Returns messages about views that were not created.

    A view that needs another view waits until that exists. A view that still fails needs an object that was not copied.
    """
    return _make_behind_rows(session, definitions, frozenset())


def _make_behind_rows(session: Session, definitions: Sequence[Definition], passed: frozenset[int]) -> list[str]:
    """``passed``: errors of the server that end nothing."""
    notes: list[str] = []
    for each in definitions:
        if each.kind not in ("VIEW", "TRIGGER", "EVENT"):
            _lacking(session, each, passed)
    left = [each for each in definitions if each.kind == "VIEW"]
    while left:
        tried = [(each, _lacking(session, each, LACKS_FOR_VIEW | passed)) for each in left]
        waiting = [each for each, lacking in tried if lacking is not None]
        if len(waiting) == len(left):
            last = tried[-1][1]
            notes += [
                f"{each.schema_object}: was not created, because an object that it needs was not copied: {last}"
                for each in left
            ]
            break
        left = waiting
    for each in definitions:
        if each.kind in ("TRIGGER", "EVENT"):
            _lacking(session, each, passed)
    return notes


def _lacking(session: Session, definition: Definition, codes: Collection[int]) -> BaseException | None:
    """Make it; the server's error, one of ``codes``, if it lacks something for that."""
    try:
        make(session, definition)
    except TargetError as exc:
        if exc.__cause__ is None or error_code(exc.__cause__) not in codes:
            raise
        return exc.__cause__
    return None


def set_auto_increment(target: Session, definition: Definition) -> None:
    """Continue a table's AUTO_INCREMENT at the definition's value: rows may have come and gone since it was created."""
    found = _AUTO_INCREMENT.search(definition.statement)
    if found is not None:
        target.execute(f"ALTER TABLE {_name(definition.database, definition.name)} AUTO_INCREMENT = {int(found[1])}")


def set_sequence(source: Session, target: Session, definition: Definition) -> None:
    """Continue a sequence at the source's value; values that the source has used since are in the log, as its rows."""
    name = _name(definition.database, definition.name)
    [(following, cycle)] = source.texts(f"SELECT next_not_cached_value, cycle_count FROM {name}")
    for value in (following, cycle):
        if _INTEGER.fullmatch(value) is None:
            raise SourceError(
                f"{definition.schema_object}: expected integers in its row, found {value[:60]!r}: another program "
                "answers in the source's place, or changes what it says; look at host, port and ssl_mode of the "
                "connection"
            )
    target.rows(f"SELECT SETVAL({name}, {following}, 0, {cycle})")


def drop(session: Session, obj: SchemaObject) -> None:
    """Drop an object that a first copy has created."""
    kind = "SEQUENCE" if obj.kind == "sequence" else obj.kind.upper()
    is_package = kind.startswith("PACKAGE")
    if is_package:
        # in another mode MariaDB's parser does not know the word
        session.execute("SET sql_mode = 'ORACLE'")
    session.execute(f"DROP {kind} IF EXISTS {_name(obj.database, obj.name)}")
    if is_package:
        session.execute(f"SET sql_mode = '{WRITE_MODE}'")


def drop_database(session: Session, database: str) -> None:
    """Drop the database and everything in it."""
    session.execute(f"DROP DATABASE IF EXISTS {identifier(database)}")


def contents(session: Session, databases: Collection[str]) -> set[SchemaObject]:
    """All objects in these databases on a server; triggers belong to their tables."""
    if not databases:
        return set()
    chosen = literals(databases)
    return {
        SchemaObject(kind.lower().replace("base table", TABLE), database, name)
        for query, schema in _CONTENTS
        for kind, database, name in session.texts(f"{query} WHERE {among(schema, chosen)}")
    }


_CONTENTS: Final = (
    ("SELECT table_type, table_schema, table_name FROM information_schema.tables", "table_schema"),
    ("SELECT routine_type, routine_schema, routine_name FROM information_schema.routines", "routine_schema"),
    ("SELECT 'event', event_schema, event_name FROM information_schema.events", "event_schema"),
)


def _name(database: str, name: str) -> str:
    return f"{identifier(database)}.{identifier(name)}"
