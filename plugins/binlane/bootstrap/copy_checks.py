"""Checks before a first copy writes anything. Each refusal names its objects."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from sqlalchemy import Connection

from binlane.binlog.types.literals import identifier, quoted
from binlane.bootstrap.definition_copy import Definition
from binlane.bootstrap.definition_proof import session_modes, shown_engine
from binlane.bootstrap.sessions import Session
from binlane.connections import Endpoint
from binlane.errors import ConfigError, PrecheckError
from binlane.model import Flavor, SchemaObject, TableKey, plural
from binlane.rename_rules import is_system
from binlane.schema.model import Schema, Table
from binlane.shards.left_out_parents import keys_left_out
from binlane.shards.selection import Selection
from binlane.sql.charset import definition_context, tokens_in
from binlane.sql.parse.lexer import Unreadable
from binlane.sql.programs.of_server import OF_INVOKER, LeftOut, described, kept_database
from binlane.state.records.databases import forgetting, writers_of

_SHOWN: Final = 20
_ENGINES: Final = frozenset({"innodb"})
VERSIONED: Final = "system-versioned: no statement can write the history unchanged"
"""Of a table: what neither a first copy nor the text of a dump can carry. A copy refuses it, a restore names it."""


def chosen_databases(present: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The matching databases. Raises ConfigError for a pattern that matches none, or system databases only."""
    names = sorted(name for name in present if not is_system(name))
    for pattern in patterns:
        if not fnmatch.filter(names, pattern) and pattern != "*":
            raise ConfigError(
                f"--databases: {pattern!r} matches no database of the source; its databases are "
                f"{', '.join(names) or 'none'}"
            )
    return tuple(name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))


def require_no_writer(
    connection: Connection, place: str, channel: str, databases: Iterable[str], others_rows: str, otherwise: str
) -> None:
    """Raises PrecheckError if another channel of the target than ``channel`` writes a database that is about to be
    dropped or replaced. ``others_rows``: what would become of its rows; ``otherwise``: what else can be done."""
    for database, other in writers_of(connection, channel, tuple(databases)):
        raise PrecheckError(
            f"{place}: database {database}: expected no channel that writes it, found channel {other}, whose rows "
            f"{others_rows}; if it does not write it any more: {forgetting(other, quoted(database))}, {otherwise}"
        )


def check_tables(schema: Schema, endpoint: Endpoint) -> None:
    """Raises PrecheckError for tables whose engine has no snapshots."""
    wrong = []
    for table in schema.tables.values():
        if table.system_versioned:
            wrong.append(f"{table.key}: {VERSIONED}")
        elif table.engine.lower() not in _ENGINES:
            wrong.append(f"{table.key}: engine {table.engine}, which has no snapshots")
    if wrong:
        raise PrecheckError(
            f"{endpoint}: {plural(len(wrong), 'table')} cannot be copied; leave their databases out with "
            f"--databases, or load a backup taken by the server's own tools, then "
            f"`binlane init CHANNEL --start FILE:OFFSET`:\n{_list(wrong)}"
        )


def check_engines(definitions: Sequence[Definition], schema: Schema, session: Session) -> None:
    """Raises PrecheckError for a table that its definition keeps in another engine than the catalogue tells: on other
    servers, in files, in other tables. ``session``: on the source."""
    for each in definitions:
        told = schema.tables[TableKey(each.database, each.name)].engine
        if (found := shown_engine(each, session)).lower() != told.lower():
            raise PrecheckError(
                f"{session.source}: {each.schema_object}: expected the engine {told} in its definition, as "
                f"information_schema has it, found {found or 'none'}: another program answers in the source's place, "
                "or changes what it says; look at host, port and ssl_mode of the connection"
            )


def check_functions(definitions: Sequence[Definition], others: Iterable[str], target: Endpoint, flavor: Flavor) -> None:
    """Raises PrecheckError for routines with their invoker's privileges that name a database which is not copied.

    MariaDB calls a function to make a view that has it in ROUND() and the like, as the account that makes the view:
    whoever can write routines of a copied database could change what is not copied. ``others``: the target's databases
    that are not copied; ``flavor``: the source's.
    """
    if not any(each.kind == "VIEW" for each in definitions):
        return
    left_out, wrong = LeftOut.of(others), []
    for each in definitions:
        if each.kind in ("VIEW", "TRIGGER", "EVENT"):
            continue
        try:
            tokens = tokens_in(each.statement, definition_context(session_modes(each, flavor), each.client), flavor)
        except Unreadable:
            found: str | None = "a text that binlane does not read"
        else:
            is_of_invoker = not OF_INVOKER.isdisjoint(token.upper for token in tokens)
            database = kept_database(tokens, left_out) if is_of_invoker else None
            found = None if database is None else f"it has {described(database)}, and its invoker's privileges"
        if found is not None:
            wrong.append(f"{each.schema_object}: {found}")
    if wrong:
        raise PrecheckError(
            f"{target}: MariaDB may call {plural(len(wrong), 'routine')} of the source as the target's account to make "
            "views: make them SQL SECURITY DEFINER on the source, or leave their databases out with --databases; "
            f"nothing was written:\n{_list(wrong)}"
        )


EMPTY: Final = "the chosen databases to be empty"
"""What a first copy expects of the target; ``foreign_objects`` is what was found, and ``NOT_EMPTY`` what to do then."""
NOT_EMPTY: Final = (
    "drop them yourself, or use --replace (in Airflow *Replace* in the form of the run), which drops these databases"
)


def foreign_objects(foreign: Collection[SchemaObject]) -> str:
    """How many objects are there that no earlier attempt has created."""
    return f"{plural(len(foreign), 'object')} that no first copy of this channel has created"


def check_empty(there: Collection[SchemaObject], own: Collection[SchemaObject], endpoint: Endpoint) -> None:
    """Raises PrecheckError if the databases on the target contain an object that no earlier attempt has created."""
    if foreign := set(there) - set(own):
        names = _list(sorted(map(str, foreign)))
        raise PrecheckError(f"{endpoint}: expected {EMPTY}, found {foreign_objects(foreign)}; {NOT_EMPTY}:\n{names}")


def _list(lines: Sequence[str]) -> str:
    more = [f"  and {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []
    return "\n".join([*(f"  {line}" for line in lines[:_SHOWN]), *more])


def parents_left_out(tables: Collection[Table], selection: Selection) -> Iterator[str]:
    """What a copy says of foreign keys whose parents the filter leaves out: a note for each parent."""
    children: dict[TableKey, list[str]] = {}
    for table in sorted(tables, key=lambda each: str(each.key)):
        for each in keys_left_out(table, selection):
            children.setdefault(each.parent, []).append(f"{table.key} (DROP FOREIGN KEY {identifier(each.name)})")
    for parent, keys in sorted(children.items(), key=lambda each: str(each[0])):
        more = f" and {len(keys) - _SHOWN:,} more" if len(keys) > _SHOWN else ""
        yield (
            f"{parent}: {plural(len(keys), 'foreign key')} of copied tables to it, and the channel's filter leaves it "
            "out: unless somebody else keeps its rows on the target, ALTER TABLE there before the first run, or take "
            f"both tables (docs/filters.md): {', '.join(keys[:_SHOWN])}{more}"
        )
