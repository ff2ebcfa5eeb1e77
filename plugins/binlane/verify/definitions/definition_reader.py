"""Reads the definitions of databases, views, routines, triggers and events from a server's catalogue: facts by name,
one query per kind."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import pymysql

from binlane.binlog.types.literals import identifier
from binlane.errors import SourceError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SchemaObject, TableKey
from binlane.schema.normalize import charset_name, collation_name
from binlane.schema.programs import QUERY
from binlane.servers.names import among, literals
from binlane.servers.programs import COLUMNS, VIEW_COLUMNS
from binlane.servers.stored_bodies import CatalogBody, ProgramIsGone, program_error, stored_body
from binlane.sql.parse.view_columns import named_by
from binlane.verify.rows.sides import Side

Facts = Mapping[str, str | None]
"""The parts of a definition by name; None: absent, or not visible to the account."""
ORDER: Final = "order"
"""The fact of a trigger that says when it fires, among those of one table and event."""
_BODY: Final = "body"
_OF_CLIENT: Final = "character set of the client"
DATABASE, VIEW, TRIGGER, EVENT = "database", "view", "trigger", "event"
TABLE, SEQUENCE = "table", "sequence"
_PRIVILEGES: Final = {
    **dict.fromkeys((DATABASE, TABLE, SEQUENCE, VIEW), "SELECT"),
    TRIGGER: "TRIGGER",
    EVENT: "EVENT",
}
_DEFAULT: Final = "default collation"
_COLLATIONS: Final = frozenset({_OF_CLIENT, "collation of the client", "collation of the database", _DEFAULT})


@dataclass(frozen=True, slots=True)
class _Query:
    """A query of the catalogue: kind, database and name, then a column for each fact."""

    head: str
    facts: Mapping[str, str]
    view: str
    database: str


def read_objects(side: Side, flavor: Flavor, databases: Collection[str]) -> dict[SchemaObject, Facts]:
    """All objects in ``databases``, and the databases. Raises SourceError, and the target's driver errors."""
    found: dict[SchemaObject, Facts] = {}
    if not databases:
        return found
    chosen = literals(databases)
    for query in _queries(flavor):
        columns = ", ".join((query.head, *query.facts.values()))
        rows = side.texts(f"SELECT {columns} FROM {query.view} WHERE {among(query.database, chosen)}")
        for kind, database, name, *values in rows:
            obj = SchemaObject(str(kind).lower(), str(database), str(name))
            facts = _executed(side, flavor, obj, _named(dict(_spelled(zip(query.facts, values, strict=True)))))
            if facts is not None:
                found[obj] = facts
    parameters: dict[SchemaObject, list[str]] = {}
    for kind, database, name, text in side.texts(_PARAMETERS.format(databases=chosen)):
        parameters.setdefault(SchemaObject(str(kind).lower(), str(database), str(name)), []).append(str(text))
    for obj in parameters.keys() & found.keys():
        found[obj] = {**found[obj], "parameters": ", ".join(parameters[obj])}
    return found


def _named(facts: Facts) -> Facts:
    """Of a view, with its columns' names in its query."""
    columns, definition = facts.get(COLUMNS), facts.get(QUERY)
    found = {what: value for what, value in facts.items() if what != COLUMNS}
    return found if columns is None or not definition else {**found, QUERY: named_by(definition, columns)}


def _executed(side: Side, flavor: Flavor, obj: SchemaObject, facts: Facts) -> Facts | None:
    """With the text that the server executes: the catalogue's has lost escapes, by each family's own rules, and MySQL's
    ends at a NUL. None if somebody has dropped the object."""
    if (body := facts.get(_BODY)) is None:
        return facts

    def ask(statement: str) -> list[tuple[str | None, ...]]:
        try:
            return side.texts(statement)
        except (SourceError, pymysql.err.MySQLError) as exc:
            cause = exc.__cause__ if isinstance(exc, SourceError) else exc
            code = cause.args[0] if isinstance(cause, pymysql.err.MySQLError) and cause.args else 0
            if (found := program_error(code)) is not None:
                raise found from exc
            raise

    stored = CatalogBody(obj.kind, obj.database, obj.name, body, facts["sql_mode"] or "", facts[_OF_CLIENT] or "")
    try:
        return {**facts, _BODY: stored_body(stored, flavor, ask)}
    except ProgramIsGone:
        return None


def privilege_to_see(kind: str) -> str:
    """The privilege without which an account does not see that such an object exists, or not all of them."""
    return _PRIVILEGES.get(kind, "EXECUTE")


def table_statement(side: Side, key: TableKey, *, is_sequence: bool) -> str:
    """The SHOW CREATE text of a table or a sequence."""
    kind = "SEQUENCE" if is_sequence else "TABLE"
    [row] = side.texts(f"SHOW CREATE {kind} {identifier(key.database)}.{identifier(key.table)}")
    return row[1] or ""


def read_sequences(side: Side, flavor: Flavor) -> frozenset[TableKey]:
    """The server's sequences; MySQL has none."""
    rows = side.texts(_SEQUENCES) if flavor is Flavor.MARIADB else []
    return frozenset(TableKey(str(database), str(name)) for database, name in rows)


def read_table_collations(side: Side) -> dict[TableKey, str]:
    """Table -> default collation, which columns get that are added without one."""
    rows = side.texts(_TABLE_COLLATIONS)
    return {TableKey(str(database), str(name)): collation_name(found) or "" for database, name, found in rows}


def _spelled(facts: Iterator[tuple[str, str | None]]) -> Iterator[tuple[str, str | None]]:
    """``utf8`` and ``utf8mb3`` are one character set."""
    for name, value in facts:
        yield name, charset_name(collation_name(value)) if name in _COLLATIONS else value


def _queries(flavor: Flavor) -> Iterator[_Query]:
    mariadb = flavor is Flavor.MARIADB
    yield _Query(
        "'database', schema_name, ''",
        {_DEFAULT: "default_collation_name", **({"comment": "schema_comment"} if mariadb else {})},
        "information_schema.schemata",
        "schema_name",
    )
    yield _Query(
        "'view', table_schema, table_name",
        {
            QUERY: "view_definition",
            "CHECK OPTION": "check_option",
            "definer": "definer",
            "SQL SECURITY": "security_type",
            **({"algorithm": "algorithm"} if mariadb else {COLUMNS: VIEW_COLUMNS}),
            **_CLIENT,
        },
        "information_schema.views",
        "table_schema",
    )
    yield from _stored_programs()


def _stored_programs() -> Iterator[_Query]:
    yield _Query(
        "routine_type, routine_schema, routine_name",
        {
            _BODY: "routine_definition",
            "returned type": "dtd_identifier",
            "DETERMINISTIC": "is_deterministic",
            "data access": "sql_data_access",
            "SQL SECURITY": "security_type",
            "definer": "definer",
            "comment": "routine_comment",
            **_STORED,
        },
        "information_schema.routines",
        "routine_schema",
    )
    yield _Query(
        "'trigger', trigger_schema, trigger_name",
        {
            "table": "event_object_table",
            "time": "CONCAT(action_timing, ' ', event_manipulation)",
            ORDER: "action_order",
            _BODY: "action_statement",
            "definer": "definer",
            **_STORED,
        },
        "information_schema.triggers",
        "trigger_schema",
    )
    yield _Query(
        "'event', event_schema, event_name",
        {
            # not the status: on the target an event is disabled, as on any replica
            _BODY: "event_definition",
            "schedule": "CONCAT_WS(' ', execute_at, interval_value, interval_field, starts, ends)",
            "ON COMPLETION": "on_completion",
            "time zone": "time_zone",
            "definer": "definer",
            "comment": "event_comment",
            **_STORED,
        },
        "information_schema.events",
        "event_schema",
    )


_CLIENT: Final = {
    _OF_CLIENT: "character_set_client",
    "collation of the client": "collation_connection",
}
_STORED: Final = {"sql_mode": "sql_mode", **_CLIENT, "collation of the database": "database_collation"}
_PARAMETERS: Final = (
    "SELECT routine_type, specific_schema, specific_name, "
    "CONCAT_WS(' ', parameter_mode, parameter_name, dtd_identifier, character_set_name, collation_name) "
    f"FROM information_schema.parameters WHERE ordinal_position > 0 AND {among('specific_schema', '{databases}')} "
    "ORDER BY specific_schema, specific_name, routine_type, ordinal_position"
)
_SEQUENCES: Final = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'SEQUENCE'"
_TABLE_COLLATIONS: Final = (
    "SELECT table_schema, table_name, table_collation FROM information_schema.tables "
    "WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"
)
