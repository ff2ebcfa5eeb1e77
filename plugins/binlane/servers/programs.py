"""Reads what stands behind statements: routines, views and triggers, with what decides what they do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from sqlalchemy import Connection, bindparam, text

from binlane.model import Flavor, TableKey
from binlane.schema.normalize import charset_name, collation_name
from binlane.schema.programs import (
    CLIENT,
    CONNECTION,
    DATABASE,
    DEFINER,
    MODE,
    PARAMETERS,
    RETURNED,
    SECURITY,
    Program,
)
from binlane.servers.names import among, other_than, values_of
from binlane.servers.stored_bodies import CatalogBody, ProgramIsGone, asking, stored_body
from binlane.servers.variables import server_version
from binlane.sql.parse.lexer import UNDECODED
from binlane.sql.parse.view_columns import named_by

COLUMNS: Final = "columns"
"""A fact of MySQL's views, which ``named_by`` puts into their queries."""
VIEW_COLUMNS: Final = (
    "COALESCE(NULL/*!80000 , "
    "(SELECT JSON_OBJECTAGG(named.ordinal_position, named.column_name) FROM information_schema.columns AS named "
    "WHERE named.table_schema = views.table_schema AND named.table_name = views.table_name) */)"
)
"""Of ``information_schema.views``: a JSON object by the columns' places; no limit of a list's length cuts it. NULL
before MySQL 8.0, which writes the names into the query itself, has the function from 5.7.22 on alone, and would open
every table for each view."""
_OWN: Final = "('mysql', 'sys', 'information_schema', 'performance_schema')"
_COLLATIONS: Final = frozenset({CLIENT, CONNECTION, DATABASE})
_CLIENT: Final = {CLIENT: "character_set_client", CONNECTION: "collation_connection"}
_STORED: Final = {MODE: "sql_mode", **_CLIENT, DATABASE: "database_collation", DEFINER: "definer"}
_TRIGGER_FACTS: Final = _STORED
_ROUTINE_FACTS: Final = {
    **_STORED,
    SECURITY: "security_type",
    "DETERMINISTIC": "is_deterministic",
    RETURNED: "NULLIF(CONCAT_WS(' ', dtd_identifier, character_set_name, collation_name), '')",
}
_VIEW_FACTS: Final[Mapping[Flavor, Mapping[str, str]]] = {
    # MySQL tells the algorithm only in SHOW CREATE VIEW; whoever is TEMPTABLE cannot be updated
    Flavor.MYSQL: {"CHECK OPTION": "check_option", "updatability": "is_updatable", COLUMNS: VIEW_COLUMNS},
    Flavor.MARIADB: {"CHECK OPTION": "check_option", "updatability": "is_updatable", "ALGORITHM": "algorithm"},
}
_EVERY_VIEW: Final = {DEFINER: "definer", SECURITY: "security_type", **_CLIENT}
_READABLE_BODY: Final = f"IF(routine_body = 'SQL', routine_definition, CONCAT('{UNDECODED} ', routine_definition))"
"""MySQL's JavaScript is no SQL, and runs SQL that stands in no text."""
_PARAMETERS: Final = (
    "SELECT specific_schema, specific_name, LOWER(routine_type), "
    "CONCAT_WS(' ', parameter_mode, parameter_name, dtd_identifier, character_set_name, collation_name) "
    f"FROM information_schema.parameters WHERE ordinal_position > 0 AND {other_than('specific_schema', _OWN)} "
    "ORDER BY specific_schema, specific_name, routine_type, ordinal_position"
)


PROGRAM_NAMES: Final = (
    "SELECT routine_schema, routine_name FROM information_schema.routines "
    f"WHERE {other_than('routine_schema', _OWN)} UNION "
    "SELECT table_schema, table_name FROM information_schema.tables "
    f"WHERE table_type = 'VIEW' AND {other_than('table_schema', _OWN)}"
)


_SCHEMAS: Final = f"SELECT schema_name FROM information_schema.schemata WHERE {other_than('schema_name', _OWN)}"
_VIEWS: Final = (
    "SELECT table_schema, table_name FROM information_schema.tables "
    f"WHERE table_type = 'VIEW' AND {among('table_schema', ':names')}"
)
_OF_THESE_NAMES: Final = " AND (LOWER(table_name) IN :tables OR LENGTH(table_name) <> CHAR_LENGTH(table_name))"
"""A condition over the name alone, in front of which MariaDB opens no table; a name that is not ASCII may be any."""
_MOST_NAMES: Final = 500
"""For more all views of the databases are asked for."""
_MOST_PARTS: Final = 100
"""Of a query: each is a look-up by a database and a name."""
_WITH_PROGRAMS: Final = (
    "SELECT table_schema, table_name FROM information_schema.tables "
    f"WHERE table_type = 'VIEW' AND {among('table_schema', ':names')} UNION "
    "SELECT event_object_schema, event_object_table FROM information_schema.triggers "
    f"WHERE {among('event_object_schema', ':names')}"
)


def read_tables_with_programs(connection: Connection, databases: Iterable[str]) -> frozenset[TableKey]:
    """The views of these databases, and their tables that have triggers."""
    query = text(_WITH_PROGRAMS).bindparams(bindparam("names", expanding=True))
    found = connection.execute(query, {"names": values_of(databases)})
    return frozenset(TableKey(str(database), str(name)) for database, name in found)


def read_program_names(connection: Connection) -> frozenset[TableKey]:
    """Database and name of the same routines and views as ``read_programs``: in a fifth of the time."""
    return frozenset(TableKey(str(database), str(name)) for database, name in connection.execute(text(PROGRAM_NAMES)))


def read_triggers(connection: Connection) -> tuple[Program, ...]:
    """The triggers of all databases but the server's own."""
    head = (
        "event_object_schema, event_object_table, 'trigger', action_statement, trigger_name, "
        "CONCAT(action_timing, ' ', event_manipulation), action_order"
    )
    query = f"SELECT {{columns}} FROM information_schema.triggers WHERE {other_than('event_object_schema', _OWN)}"
    return tuple(_executed(connection, _read(connection, query, head, _TRIGGER_FACTS)))


def read_programs(connection: Connection, flavor: Flavor | None = None) -> tuple[Program, ...]:
    """The routines and views of all databases but the server's own, as far as the account sees them. ``flavor``: the
    server's; None: it is asked."""
    if flavor is None:
        flavor, _ = server_version(connection)
    head = f"routine_schema, routine_name, LOWER(routine_type), {_READABLE_BODY}, '', '', 0"
    query = f"SELECT {{columns}} FROM information_schema.routines WHERE {other_than('routine_schema', _OWN)}"
    routines = list(_executed(connection, _read(connection, query, head, _ROUTINE_FACTS)))
    parameters: dict[tuple[TableKey, str], list[str]] = {}
    for database, name, kind, parameter in connection.execute(text(_PARAMETERS)) if routines else ():
        parameters.setdefault((TableKey(str(database), str(name)), str(kind)), []).append(str(parameter))
    head = "table_schema, table_name, 'view', NULLIF(view_definition, ''), '', '', 0"
    query = f"SELECT {{columns}} FROM information_schema.views WHERE {other_than('table_schema', _OWN)}"
    views = _read(connection, query, head, {**_EVERY_VIEW, **_VIEW_FACTS[flavor]})
    return (*(_with(each, parameters.get((each.key, each.kind), ())) for each in routines), *map(_named, views))


def read_views(
    connection: Connection, is_wanted: Callable[[str], bool], names: Collection[str] | None = None
) -> list[TableKey]:
    """The views of the databases whose names are wanted. ``names``: those of views in lower case; all that have one of
    them are among the found, and each whose name is not ASCII. None: of any name."""
    databases = values_of([str(name) for (name,) in connection.execute(text(_SCHEMAS)) if is_wanted(str(name))])
    if not databases:
        return []
    query, values = _VIEWS, {"names": databases}
    if names is not None and len(names) <= _MOST_NAMES:
        query += _OF_THESE_NAMES
        values["tables"] = values_of(name for name in names if name.isascii())
    statement = text(query).bindparams(*(bindparam(name, expanding=True) for name in values))
    return [TableKey(str(database), str(name)) for database, name in connection.execute(statement, values)]


def read_named_programs(connection: Connection, names: Mapping[bool, Sequence[TableKey]]) -> list[Program]:
    """Some of the same, without their parameters. ``names``: those of views (True), and of routines."""
    flavor, _ = server_version(connection)
    head = f"routine_schema, routine_name, LOWER(routine_type), {_READABLE_BODY}, '', '', 0"
    shown = _read_some(connection, flavor, "routine", head, _ROUTINE_FACTS, names[False])
    found = list(_executed(connection, shown))
    facts = {**_EVERY_VIEW, **_VIEW_FACTS[flavor]}
    head = "table_schema, table_name, 'view', NULLIF(view_definition, ''), '', '', 0"
    return [*found, *map(_named, _read_some(connection, flavor, "table", head, facts, names[True]))]


def _read_some(
    connection: Connection,
    flavor: Flavor,
    what: str,
    head: str,
    facts: Mapping[str, str],
    keys: Sequence[TableKey],
) -> Iterator[Program]:
    """``what``: how their names' columns begin."""
    query = (
        f"SELECT {{columns}} FROM information_schema.{_VIEW_OF[what]} "
        f"WHERE {among(f'{what}_schema', ':names%d')} AND {what}_name IN :tables%d"
    )
    wanted = frozenset(keys)
    # what is looked up by one database and one name MariaDB need not open, or parse, all of
    groups = [keys] if flavor is Flavor.MYSQL and keys else [[key] for key in keys]
    for begin in range(0, len(groups), _MOST_PARTS):
        parts, values = list[str](), dict[str, list[str]]()
        for at, some in enumerate(groups[begin : begin + _MOST_PARTS]):
            parts.append(query.replace("%d", str(at)))
            values[f"names{at}"] = values_of({key.database for key in some})
            values[f"tables{at}"] = sorted({key.table for key in some})
        found = _read(connection, " UNION ALL ".join(parts), head, facts, values)
        yield from (each for each in found if each.key in wanted)


_VIEW_OF: Final = {"routine": "routines", "table": "views"}


def _named(view: Program) -> Program:
    """With its columns' names in its query."""
    facts = dict(view.facts)
    columns = facts.pop(COLUMNS, None)
    if columns is None or view.text is None:
        return view
    return replace(view, text=named_by(view.text, columns), facts=facts, printed=view.text)


def _executed(connection: Connection, programs: Iterator[Program]) -> Iterator[Program]:
    """With the texts that the server executes."""
    found, ask = list(programs), asking(connection)
    flavor = server_version(connection)[0] if found else Flavor.MYSQL
    for each in found:
        if each.text is None:
            yield each
            continue
        name = each.name or each.key.table
        body = CatalogBody(each.kind, each.key.database, name, each.text, each.sql_mode, each.facts.get(CLIENT, ""))
        try:
            executed = stored_body(body, flavor, ask)
        except ProgramIsGone:
            continue
        yield replace(each, text=executed)


def _with(routine: Program, parameters: Iterable[str]) -> Program:
    facts = {**routine.facts, PARAMETERS: ", ".join(parameters)}
    return Program(routine.key, routine.kind, routine.text, facts)


def _read(
    connection: Connection,
    query: str,
    head: str,
    facts: Mapping[str, str],
    values_by_name: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[Program]:
    columns = ", ".join((head, *facts.values()))
    statement = text(query.format(columns=columns))
    statement = statement.bindparams(*(bindparam(name, expanding=True) for name in values_by_name))
    for database, owner, kind, body, name, time, order, *values in connection.execute(statement, values_by_name):
        yield Program(
            TableKey(str(database), str(owner)),
            str(kind),
            None if body is None else str(body),
            {what: _spelled(what, str(value)) for what, value in zip(facts, values, strict=True) if value is not None},
            str(name),
            str(time),
            int(order or 0),
        )


def _spelled(what: str, value: str) -> str:
    """``utf8`` and ``utf8mb3`` are one character set."""
    return (charset_name(collation_name(value)) or "") if what in _COLLATIONS else value
