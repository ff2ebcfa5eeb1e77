"""Views that need what the copy does not have: a table or a column that is gone on the source, too, or one left out.

No server creates such a view, but each keeps one whose tables go. So the view is created over stand-ins, tables and
functions of the names that it needs, which are dropped again before the copy's own tables are created. Then the target
has the view, and it is broken there as on the source: later statements of the log find it (DROP, RENAME, GRANT), and
it works again when the log brings back what it needs.

A stand-in has a column for every name in the view's text, which servers show with all names quoted. It is marked by its
comment, so that those of a copy that was killed are found.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

import pymysql

from binlane.apply.refusals import target_errors
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.types.literals import identifier, quoted
from binlane.bootstrap.definition_copy import Definition, make
from binlane.bootstrap.definition_proof import session_modes
from binlane.bootstrap.sessions import Session
from binlane.errors import TargetError, TargetUnavailableError
from binlane.lazy_dataclass import dataclass
from binlane.model import SYSTEM_DATABASES, Flavor, SchemaObject, TableKey
from binlane.schema.letter_case import lower
from binlane.servers.names import among, literals, other_than
from binlane.sql.charset import decoded, definition_context, dialect_of
from binlane.sql.parse.analyze import analyze
from binlane.sql.parse.lexer import Token, TokenKind, Unreadable, lex

_MARK: Final = "binlane: stands in for what a view needs"
"""Behind it stands the channel: another one's copy may be using its own at the same time."""
_ALONE: Final = ", in a database that was not there"
"""The end of the comment of those in a database that was made for them: it goes with them."""
_NUMBERS: Final = re.compile(r"seq_\d+_to_\d+(?:_step_\d+)?")
"""Tables of MariaDB's engine SEQUENCE, which nobody makes."""
_NOT_LOCKED: Final = frozenset({1044, 1142, 1146})
"""Access denied, or no such table."""
_OPENS: Final = frozenset({"(", "{"})
_CLOSES: Final = frozenset({")", "}"})


@dataclass(frozen=True, slots=True)
class ViewText:
    """A view, and what its text names."""

    definition: Definition
    tables: frozenset[TableKey]
    """Tables and views."""
    columns: tuple[str, ...]
    """All quoted names, a superset."""
    functions: Mapping[tuple[str, str], int]
    """Numbers of arguments by database and name."""

    @classmethod
    def of(cls, definition: Definition, flavor: Flavor) -> ViewText:
        """Raises Unreadable."""
        context = definition_context(session_modes(definition, flavor), definition.client)
        sql, tokens = decoded(definition.statement, context), list[Token]()
        lex(sql, dialect_of(context, flavor), tokens)
        own = TableKey(definition.database, definition.name)
        facts = analyze(sql, database=definition.database, flavor=flavor)
        names = {each.text.lower(): each.text for each in tokens if each.kind is TokenKind.NAME}
        return cls(definition, facts.tables - {own}, tuple(names.values()), _functions(tokens, definition.database))

    @property
    def key(self) -> TableKey:
        """Its name."""
        return TableKey(self.definition.database, self.definition.name)


@dataclass(slots=True)
class StandIns:
    """Those that were made on the target."""

    session: Session
    channel: str
    columns: Collection[str]
    own: Collection[str]
    """The databases that the channel copies, in lower case."""
    databases: list[str] = field(default_factory=list)
    made: dict[tuple[str, str, str], None] = field(default_factory=dict)
    """Kind, database and name."""

    def make(self, view: ViewText, pending: Collection[TableKey]) -> None:
        """Everything that the view needs and the target lacks, except views that are still to come. Raises TargetError
        if that is in a database of the server's, of binlane's or of somebody else's: the view chooses the names."""
        databases = {each.database for each in view.tables} | {database for database, _ in view.functions}
        chosen = literals(sorted(databases))
        present = self._names("table_schema, table_name FROM information_schema.tables", "table_schema", chosen)
        routines = self._names(
            "routine_schema, routine_name FROM information_schema.routines", "routine_schema", chosen
        )
        there = {name for (name,) in self.session.texts("SELECT schema_name FROM information_schema.schemata")}
        lacks = {key.database for key in view.tables - {*pending} if (key.database, key.table) not in present}
        lacks |= {database for database, name in view.functions if (database, name) not in routines}
        others = {*SYSTEM_DATABASES, *map(lower, there)} - {*self.own}
        if foreign := sorted(database for database in lacks if lower(database) in others):
            raise TargetError(
                f"{view.definition.schema_object}: expected that the target has all that the view needs of database "
                f"{foreign[0]}, which this channel does not copy, found that something is not there"
            )
        for database in sorted(lacks - there):
            self.session.execute(f"CREATE DATABASE {identifier(database)}")
            self.databases.append(database)
        columns = ", ".join(f"{identifier(name)} VARCHAR(1)" for name in self.columns)
        for key in sorted(view.tables, key=str):
            if (key.database, key.table) not in present and key not in pending:
                name = f"{identifier(key.database)}.{identifier(key.table)}"
                self.session.execute(
                    f"CREATE TABLE {name} ({columns}) ENGINE=InnoDB COMMENT='{self._mark(key.database)}'"
                )
                self.made["TABLE", key.database, key.table] = None
        for (database, function), count in view.functions.items():
            if (database, function) not in routines:
                arguments = ", ".join(f"a{number} INT" for number in range(count))
                self.session.execute(
                    f"CREATE FUNCTION {identifier(database)}.{identifier(function)}({arguments}) RETURNS INT "
                    f"DETERMINISTIC NO SQL COMMENT '{self._mark(database)}' RETURN 1"
                )
                self.made["FUNCTION", database, function] = None

    def drop(self) -> None:
        """All of them, but not what somebody else has put in the place of one."""
        for kind, database, name in self.made:
            _drop(self.session, SchemaObject(kind.lower(), database, name), self._mark(database))
        for database in self.databases:
            _drop_if_empty(self.session, database)

    def _mark(self, database: str) -> str:
        return _mark(self.channel) + (_ALONE if database in self.databases else "")

    def _names(self, query: str, schema: str, chosen: str) -> set[tuple[str, ...]]:
        return set(self.session.texts(f"SELECT {query} WHERE {among(schema, chosen)}"))


def make_broken_views(
    session: Session, channel: str, views: Sequence[Definition], copied: Collection[TableKey]
) -> BrokenViews:
    """Create those of the views that need more than ``copied``, the copy's tables, before these are there."""
    left: list[ViewText] = []
    notes: list[str] = []
    whole: list[ViewText] = []
    for definition in views:
        try:
            view = ViewText.of(definition, session.flavor)
        except Unreadable:
            continue
        (left if definition.broken else whole).append(view)
    known = {*copied, *(view.key for view in whole)}
    if session.flavor is Flavor.MARIADB:
        # every server with the engine SEQUENCE has them, in every database
        known.update(key for view in whole for key in view.tables if _NUMBERS.fullmatch(key.table))
    while found := [view for view in whole if not view.tables <= known]:
        left += found
        whole = [view for view in whole if view not in found]
        known -= {view.key for view in found}
    if not left:
        return BrokenViews(frozenset(), ())
    drop_stand_ins(session, channel, (), {key.database for view in left for key in (*view.tables, view.key)})
    names = {name.lower(): name for view in left for name in view.columns}
    own = frozenset(name.lower() for name in (*(key.database for key in copied), *(view.database for view in views)))
    stand_ins, tried = StandIns(session, channel, names.values(), own), frozenset(view.key for view in left)
    try:
        while left:
            pending = {view.key for view in left}
            ready = [view for view in left if not view.tables & pending] or left
            for view in ready:
                try:
                    with target_errors(str(view.definition.schema_object)):
                        stand_ins.make(view, pending)
                    make(session, view.definition)
                except TargetUnavailableError:
                    raise
                except TargetError as exc:
                    notes.append(
                        f"{exc}; the view was not created: copy the database that it needs, too, "
                        "or CREATE OR REPLACE it on the source, or drop it"
                    )
            left = [view for view in left if view not in ready]
    finally:
        stand_ins.drop()
    return BrokenViews(tried, tuple(notes))


@dataclass(frozen=True, slots=True)
class BrokenViews:
    """What became of the views that need more than the copy has."""

    names: frozenset[TableKey]
    notes: tuple[str, ...]
    """Of those that could not be made."""


def drop_stand_ins(
    session: Session, channel: str, own: Collection[str], elsewhere: Collection[str] | None = ()
) -> None:
    """Drop what killed copies have left in the databases ``own``, which this channel copies, and what this channel's
    have left ``elsewhere``, None for anywhere; and the databases that they have made for that."""
    marks = (_mark(channel), _mark(channel) + _ALONE)
    found = {each: mark for each, mark in _stand_ins(session, elsewhere).items() if mark in marks}
    found |= _stand_ins(session, own)
    for each, mark in found.items():
        _drop(session, each, mark)
    for database in sorted({each.database for each, mark in found.items() if mark.endswith(_ALONE)}):
        _drop_if_empty(session, database)


def stand_ins(session: Session, databases: Collection[str]) -> frozenset[SchemaObject]:
    """What a killed copy has left in these databases: ``drop_stand_ins`` drops it."""
    return frozenset(_stand_ins(session, databases))


def _mark(channel: str) -> str:
    return f"{_MARK}, for channel {channel}"


def _stand_ins(session: Session, databases: Collection[str] | None) -> dict[SchemaObject, str]:
    """With their marks."""
    if databases is not None and not databases:
        return {}

    def of(schema: str) -> str:
        if databases is None:
            return other_than(schema, literals(sorted(SYSTEM_DATABASES)))
        return among(schema, literals(sorted(databases)))

    def is_marked(comment: str) -> str:
        return f"LEFT({comment}, {len(_MARK)}) = '{_MARK}'"

    tables = session.texts(
        "SELECT 'table', table_schema, table_name, table_comment FROM information_schema.tables "
        f"WHERE {of('table_schema')} AND {is_marked('table_comment')}"
    )
    functions = session.texts(
        "SELECT 'function', routine_schema, routine_name, routine_comment FROM information_schema.routines "
        f"WHERE {of('routine_schema')} AND {is_marked('routine_comment')}"
    )
    return {SchemaObject(kind, database, name): mark for kind, database, name, mark in (*tables, *functions)}


def _drop(session: Session, each: SchemaObject, mark: str) -> None:
    """Drop what still has the mark. A table is held meanwhile, where the account may lock it; nothing holds a
    function."""
    if not _has_mark(session, each, mark):
        return
    name = f"{identifier(each.database)}.{identifier(each.name)}"
    is_held = each.kind == "table" and _lock(session, name)
    try:
        if not is_held or _has_mark(session, each, mark):
            session.execute(f"DROP {each.kind.upper()} IF EXISTS {name}")
    finally:
        if is_held and session.is_open:
            session.execute("UNLOCK TABLES")


def _lock(session: Session, name: str) -> bool:
    """Lock a table; False if the account may not, or it is gone. Raises the driver's errors."""
    try:
        session.execute(f"LOCK TABLES {name} WRITE")
    except pymysql.err.MySQLError as exc:
        if error_code(exc) not in _NOT_LOCKED:
            raise
        return False
    return True


def _has_mark(session: Session, each: SchemaObject, mark: str) -> bool:
    """Whether the object has the mark, by its name alone: no other table is opened for that."""
    what, view = ("table", "tables") if each.kind == "table" else ("routine", "routines")
    kind = "" if each.kind == "table" else " AND routine_type = 'FUNCTION'"
    return session.texts(
        f"SELECT {what}_comment FROM information_schema.{view} WHERE {what}_schema = {quoted(each.database)} "
        f"AND {what}_name = {quoted(each.name)}{kind}"
    ) == [(mark,)]


def _drop_if_empty(session: Session, database: str) -> None:
    chosen = literals([database])
    if not session.texts(
        f"SELECT table_name FROM information_schema.tables WHERE {among('table_schema', chosen)} UNION ALL "
        f"SELECT routine_name FROM information_schema.routines WHERE {among('routine_schema', chosen)} UNION ALL "
        f"SELECT event_name FROM information_schema.events WHERE {among('event_schema', chosen)}"
    ):
        session.execute(f"DROP DATABASE {identifier(database)}")


def _functions(tokens: Sequence[Token], database: str) -> dict[tuple[str, str], int]:
    """Stored functions that a view calls: servers show their names quoted, those of their own functions not."""
    found: dict[tuple[str, str], int] = {}
    for at in range(1, len(tokens) - 1):
        if tokens[at].kind is not TokenKind.NAME or tokens[at + 1].text != "(" or tokens[at - 1].upper == "AS":
            continue
        is_qualified = tokens[at - 1].text == "." and tokens[at - 2].kind is TokenKind.NAME
        if any(each.upper == "VIEW" for each in tokens[at - 3 : at]):
            continue  # the list of its columns
        of = tokens[at - 2].text if is_qualified else database
        found[of, tokens[at].text] = sum(1 for _ in _arguments(tokens, at + 2))
    return found


def _arguments(tokens: Sequence[Token], at: int) -> Iterator[int]:
    """One for each argument of a call whose first token behind the bracket is at ``at``."""
    if tokens[at].text == ")":
        return
    yield at
    depth = 1
    while depth:
        text = tokens[at].text if tokens[at].kind is TokenKind.SYMBOL else ""
        depth += (text in _OPENS) - (text in _CLOSES)
        if text == "," and depth == 1:
            yield at
        at += 1
