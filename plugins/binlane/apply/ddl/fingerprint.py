"""What a target shows of the objects that a DDL may name: compared before and after, it tells whether the DDL has run.

Only databases that the statement itself names are looked at. Other lanes run DDL at the same time, in databases of
other shards, often the same one on tables of the same names: a migration of a fleet's tenants.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pymysql

from binlane.apply.session.innodb_dictionary import stored_like, stored_pattern
from binlane.apply.session.retry_verdicts import Verdict, error_code, judge
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, SessionContext
from binlane.plan.transaction.decode import statement_facts
from binlane.servers.names import among, folded_values, other_than, values_of
from binlane.servers.variables import version_number
from binlane.sessions.view_guard import REFUSED
from binlane.sql.charset import decoded
from binlane.sql.parse.lexer import WORD_CHARS

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_NAMES: Final = tuple(re.compile(each) for each in (r"`((?:[^`]|``)+)`", r'"((?:[^"]|"")+)"', f"([{WORD_CHARS}]+)"))
"""Each is looked for by itself: a quote in a comment or string must not hide a name from the others."""
_NOT_IN_UTF8MB3: Final = re.compile("[\U00010000-\U0010ffff]")
_DENIED: Final = 1227
"""ER_SPECIFIC_ACCESS_DENIED_ERROR."""
_NO_VIEW: Final = 1109
"""MariaDB with innodb_sys_tables = OFF."""
_INNODB: Final = "innodb"
_MOST_LIKES: Final = 64
_ATOMIC_DDL: Final = (8, 0, 0)
_ENGINE: Final = re.compile(r"\bENGINE\s*+(?:=\s*+)?['\"`]?(\w+)", re.I)
"""An engine that a statement names; any other word behind ENGINE counts as one, too."""
_MAKES_TABLE: Final = re.compile(r"\bCREATE\s+TABLE\b(?!.*\bENGINE\b)", re.I | re.S)
_DROPS_DATABASE: Final = re.compile(r"\bDROP\s+(?:DATABASE|SCHEMA)\b", re.I)
_STORED: Final = re.compile(r"([0-9a-f]{32}):([0-9]{1,9}):([0-9a-f]{16}|):([0-9a-f]{12}):(.*)")
_SHOWN: Final = "VERSION()"
_MARIADB_SHOWN: Final = "CONCAT_WS(' ', VERSION(), NULLIF(@@old_mode, ''))"
"""With UTF8_IS_UTF8MB3 the same character set has another name."""
_SERVER: Final = {Flavor.MYSQL: "@@server_uuid", Flavor.MARIADB: "CONCAT_WS(' ', @@hostname, @@port, @@server_id)"}
_LONGEST_VERSION: Final = 50
"""Characters that the column has room for."""
_SYSTEM: Final = ("information_schema", "performance_schema", "sys")


@dataclass(frozen=True, slots=True)
class _View:
    """A view of information_schema, and which of its columns are read."""

    name: str
    database: str
    object: str
    columns: str
    order: str

    def rows(self, session: LaneSession, names: tuple[str, ...], databases: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """The objects with one of the names, in one of the databases or, if there are none, in any."""
        marks = ", ".join(["%s"] * (len(names) + 1))
        lists = (values_of(databases), folded_values(databases)) if databases else (list(_SYSTEM),)
        within = [f"({', '.join(['%s'] * len(each))})" for each in lists]
        condition = among(self.database, *within) if databases else other_than(self.database, *within)
        return session.rows(
            f"SELECT {self.columns} FROM information_schema.{self.name} WHERE {self.object} IN ({marks}) "
            f"AND {condition} ORDER BY {self.order}",
            # the names of programs are compared without regard to case; "": see ``values_of``
            (*names, "", *(lists[0] if databases else ()), *itertools.chain.from_iterable(lists)),
        )


_TABLES: Final = _View(
    "tables", "table_schema", "table_name", "table_schema, table_name, table_type, engine", "table_schema, table_name"
)
_OTHERS: Final = (
    _View("schemata", "schema_name", "schema_name", "*", "schema_name"),
    _View(
        "routines",
        "routine_schema",
        "routine_name",
        "routine_schema, routine_name, routine_type, routine_definition, created, last_altered",
        "1, 2, 3",
    ),
    _View(
        "triggers",
        "trigger_schema",
        "trigger_name",
        "trigger_schema, trigger_name, event_manipulation, action_timing, action_statement, created",
        "1, 2",
    ),
    _View(
        "events",
        "event_schema",
        "event_name",
        "event_schema, event_name, event_definition, status, created, last_altered",
        "1, 2",
    ),
)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The target's state of everything that a statement may name."""

    digest: str
    tables: int
    """Number of tables and views."""
    ids: str | None
    """Digest of the ids of its tables, which a swap of two tables changes; None if they are not known."""
    server: str
    """Digest of the server: InnoDB's ids are its own, a replica's tables have others."""
    version: str
    """The server's version, and its modes in which definitions are shown: another one may spell the same definition in
    other words."""
    is_whole: bool
    """All its tables are InnoDB's, which alone have ids, and are found by their names."""
    unreadable: bool
    """The server cannot open one of the tables: a crash in the middle of a DDL may leave one that its engine has
    lost."""

    @property
    def stored(self) -> str:
        """As it is kept beside the statement."""
        return ":".join((self.digest, str(self.tables), self.ids or "", self.server, self.version))

    def has_changed(self, stored: str) -> bool | None:
        """Whether anything that both have is another than in what was kept; None if they cannot be compared: it is no
        fingerprint, one that a server of another version has shown, or one of another server with other definitions,
        which may have differed before the statement."""
        noted = _Noted.parse(stored)
        if noted is None or noted.version != self.version:
            return None
        if noted.server != self.server:
            return None if noted.digest != self.digest else False
        return noted.digest != self.digest or bool(noted.ids and self.ids is not None and noted.ids != self.ids)

    def shows_swaps(self, stored: str) -> bool:
        """Whether a swap of two tables has changed it."""
        noted = _Noted.parse(stored)
        has_ids = noted is not None and noted.ids != "" and noted.server == self.server
        return self.is_whole and self.ids is not None and has_ids

    def has_fewer_tables(self, stored: str) -> bool:
        """Whether there were more tables in what this server has shown before."""
        noted = _Noted.parse(stored)
        return noted is not None and noted.server == self.server and self.tables < noted.tables

    def has_more_tables(self, stored: str) -> bool:
        """Whether there were fewer tables in what this server has shown before."""
        noted = _Noted.parse(stored)
        return noted is not None and noted.server == self.server and self.tables > noted.tables


class _Noted(NamedTuple):
    """What was kept of a fingerprint."""

    digest: str
    tables: int
    ids: str
    server: str
    version: str

    @classmethod
    def parse(cls, stored: str) -> _Noted | None:
        match = _STORED.fullmatch(stored)
        return None if match is None else cls(match[1], int(match[2]), *match.groups()[2:])


def why_incomparable(stored: str, now: Fingerprint) -> str:
    """What is wrong with a fingerprint that was kept and that ``has_changed`` cannot compare."""
    noted = _Noted.parse(stored)
    if noted is None:
        return "were not noted"
    if noted.version != now.version:
        return f"were noted on a server of version {noted.version}, and this one is {now.version}"
    return "were noted on another server, and differ from this one's"


_VIEW: Final = (
    "SELECT view_definition, check_option, definer, security_type, algorithm, character_set_client, "
    "collation_connection FROM information_schema.views WHERE table_schema = %s AND table_name = %s"
)
"""MariaDB's view that is not opened."""


def fingerprint(session: LaneSession, item: Item, *, with_ids: bool) -> Fingerprint:
    """Definitions, and InnoDB's table ids if asked for, of all tables, views, routines, triggers and events that the
    statement may name.

    Every word of the statement counts as a name, in the databases that it names: too many objects do no harm, a missing
    one would. A statement whose databases cannot be read is applied while no other lane moves, so that all databases
    are looked at.
    """
    # literals of TIMESTAMP, and times of programs, are shown in the session's
    session.execute("SET SESSION time_zone = '+00:00'")
    try:
        return _fingerprint(session, item, with_ids=with_ids)
    finally:
        if session.connection.open:
            session.execute("SET SESSION time_zone = DEFAULT")


def _fingerprint(session: LaneSession, item: Item, *, with_ids: bool) -> Fingerprint:
    text = decoded(item.payload, item.context or SessionContext())
    names, databases = _named(session, item)
    digest = hashlib.sha256()
    tables = _TABLES.rows(session, names, databases)
    unreadable = False
    for schema, name, kind, engine in tables:
        definition = _definition(session, str(schema), str(name))
        unreadable |= isinstance(definition, int) and "VIEW" not in str(kind)
        digest.update(repr((schema, name, kind, engine, str(definition))).encode())
    for view in _OTHERS:
        digest.update(repr(view.rows(session, names, databases)).encode())
    ids = None
    if with_ids:
        found = _innodb_ids(session, {(str(schema), str(name)) for schema, name, _, _ in tables})
        ids = None if found is None else hashlib.sha256(repr(found).encode()).hexdigest()[:16]
    # a name in a character set that is not read would be missing
    is_whole = "\ufffd" not in text and all(
        str(engine).lower() == _INNODB for _, _, kind, engine in tables if "VIEW" not in str(kind)
    )
    server = hashlib.sha256(str(session.value(f"SELECT {_SERVER[session.flavor]}")).encode()).hexdigest()[:12]
    return Fingerprint(digest.hexdigest()[:32], len(tables), ids, server, _version(session), is_whole, unreadable)


def _version(session: LaneSession) -> str:
    shown = _MARIADB_SHOWN if session.flavor is Flavor.MARIADB else _SHOWN
    # a server with a log says so in its version
    return str(session.value(f"SELECT {shown}")).replace("-log", "")[:_LONGEST_VERSION]


def is_atomic(session: LaneSession, item: Item) -> bool:
    """Whether MySQL commits the statement and its GTID together: it does so since 8.0, where all tables that the
    statement may name, makes or drops with a database are InnoDB's."""
    [(version, default)] = session.rows("SELECT VERSION(), @@default_storage_engine")
    if version_number(str(version)) < _ATOMIC_DDL:
        return False
    text = decoded(item.payload, item.context or SessionContext())
    made = {name.lower() for name in _ENGINE.findall(text)}
    if _MAKES_TABLE.search(text) is not None:
        made.add(str(default).lower())
    names, databases = _named(session, item)
    tables = _TABLES.rows(session, names, databases)
    if _DROPS_DATABASE.search(text) is not None:
        marks = [f"({', '.join(['%s'] * len(each))})" for each in (values_of(databases), folded_values(databases))]
        tables += session.rows(
            f"SELECT table_schema, table_name, table_type, engine FROM information_schema.tables "
            f"WHERE {among('table_schema', *marks)}",
            (*values_of(databases), *values_of(databases), *folded_values(databases)),
        )
    made |= {str(engine).lower() for _, _, kind, engine in tables if "VIEW" not in str(kind)}
    return made <= {_INNODB}


def _named(session: LaneSession, item: Item) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names and the databases of a statement."""
    context = item.context or SessionContext()
    names = set(_names(decoded(item.payload, context)))
    databases = statement_facts(item.payload, context, session.flavor).databases
    return tuple(sorted(set(map(_held, names)))), tuple(sorted(set(map(_held, databases))))


def _held(name: str) -> str:
    """As a server holds it: MySQL has a question mark for a letter that utf8mb3 lacks, MariaDB takes no such name, and
    both refuse to compare one (3854, 1271). A literal may have one among its quotes."""
    return _NOT_IN_UTF8MB3.sub("?", name)


def _names(statement: str) -> Iterator[str]:
    for pattern in _NAMES:
        for found in pattern.findall(statement):
            yield from (found, found.replace("``", "`").replace('""', '"'))


def _definition(session: LaneSession, schema: str, name: str) -> str | int:
    """The statement that would make the table; the error's code if the server cannot tell."""
    try:
        shown = str(session.rows(f"SHOW CREATE TABLE `{_escaped(schema)}`.`{_escaped(name)}`")[0][1])
    except pymysql.err.MySQLError as exc:
        if error_code(exc) == REFUSED:
            return repr(session.rows(_VIEW, (schema, name)))
        if judge(exc) is Verdict.RETRY:
            # another session holds the table, or has ended the query: that says nothing about the table
            raise
        # a view whose tables do not exist, among others
        return error_code(exc)
    # other lanes insert rows at the same time
    return re.sub(r" AUTO_INCREMENT=\d+", "", shown)


def _innodb_ids(session: LaneSession, tables: set[tuple[str, str]]) -> list[tuple[str, int]] | None:
    """Name and id of each table and partition; None without PROCESS, or on a server without the view."""
    is_new = session.flavor is Flavor.MYSQL and session.version >= _ATOMIC_DDL
    view = "innodb_tables" if is_new else "innodb_sys_tables"
    names = (f"{stored_pattern(schema)}/{stored_pattern(name)}" for schema, name in tables)
    # partitions are tables of their own: name#P#partition
    wanted = re.compile(f"(?:{'|'.join(names)})(?:#p#.*)?", re.IGNORECASE)
    likes = sorted({f"{stored_like(schema)}/{stored_like(name)}%" for schema, name in tables})
    if len(likes) > _MOST_LIKES:
        likes = sorted({f"{stored_like(schema)}/%" for schema, _ in tables})
    where = " OR ".join(["name LIKE %s"] * len(likes))
    query = f"SELECT name, table_id FROM information_schema.{view} WHERE {where}"
    try:
        # a server with ten thousand tables sends no others
        found = session.rows(query, (*likes,)) if tables else []
    except pymysql.err.MySQLError as exc:
        if error_code(exc) not in (_DENIED, _NO_VIEW):
            raise
        return None
    return sorted((str(name), int(number)) for name, number in found if wanted.fullmatch(str(name)))


def _escaped(name: object) -> str:
    return str(name).replace("`", "``")
