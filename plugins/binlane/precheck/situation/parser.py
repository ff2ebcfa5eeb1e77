"""Would the target take a window's statements? Its own parser says so, by COM_STMT_PREPARE, which runs nothing.

The statement goes in the session and with the bytes that the lane would send, and is let go at once. What cannot be
prepared (1295) has been parsed all the same: a syntax error comes first. Tried with every kind of statement that a
window lets pass, on MariaDB 10.11 and MySQL 9.7 (``tests/integration/precheck/test_parser.py``): none has an effect.
To prepare a statement MariaDB calls a stored function that it has in ROUND, SUBSTR or ESCAPE, or that a view of its has
there, as the target's account; and a view may take a table's place at any moment. So a MariaDB session that asks holds
a table of binlane's own by LOCK TABLES: each other one is refused (1100) behind the syntax, before any is opened. What
reaches no table is not asked about. Whether the functions of both are there is asked by their names.
Errors of objects are no answer, since the window may make, drop or alter them first. Protocol: COM_STMT_PREPARE of
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase_ps.html.
"""

from __future__ import annotations

import logging
import re
import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pymysql
from pymysql.constants import COMMAND

from binlane.apply.session.connection import LaneSession, SessionLimits
from binlane.apply.session.context import ContextSetter
from binlane.apply.session.retry_verdicts import error_code, is_lost
from binlane.binlog.types.literals import identifier, quoted
from binlane.errors import ApplyError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, ItemKind, SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.situation.syntax import PACKET_HEADER
from binlane.rename_rules import is_system
from binlane.sql.charset import dialect_of
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.parse.lexer import Token, Unreadable
from binlane.sql.program_names import folded_name
from binlane.sql.programs.reach import folded
from binlane.sql.scheduled_event import disabled
from binlane.sql.words import words_of
from binlane.state.tables import SCHEMA, migrations
from binlane.work.files import WorkFolder
from binlane.work.logged_statements import MOST_FORMS, LaneStatement, distinct_statements

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger(__name__)

_LIMITS: Final = SessionLimits(wait_timeout=60, lock_wait_timeout=1, innodb_lock_wait_timeout=1)
"""On MySQL DML opens its tables to be prepared, and waits for nobody's ALTER."""
_MOST_WAITS: Final = 3
_COM_STMT_CLOSE: Final = COMMAND.COM_STMT_CLOSE
_PREPARED: Final = struct.Struct("<BIHH")
"""Of the answer: status 0, the statement's id, its columns and parameters."""
_HELD: Final = (f"{SCHEMA}.{migrations.name}", "mysql.help_topic")
"""Tables of which one is locked on MariaDB: nobody writes them but an upgrade; the second one is there before ``init``
has made the first."""
_ANOTHER: Final = b"SELECT 1 FROM mysql.func"
_MOST_BYTES: Final = 4 << 20
"""Of the statements that are kept, one of each form."""
_NOT_LOCKED: Final = 1100
"""ER_TABLE_NOT_LOCKED."""
_WRITES: Final = re.compile(rb"\s*(?:INSERT|REPLACE|UPDATE|DELETE|LOAD)\b", re.IGNORECASE)
_SETS: Final = re.compile(rb"\s*SET\s+(?:GLOBAL\b|@)", re.IGNORECASE)
_VIEW: Final = re.compile(rb"\bVIEW\b", re.IGNORECASE)
_THERE: Final = "mysql"
"""A database of every server."""
_NO_PRIVILEGE: Final = 1227
_UNKNOWN_DATABASE: Final = 1049
_LOCK_WAIT: Final = frozenset({1205, 1213})
_NO_ROUTINE: Final = 1305
_ROUTINE: Final = re.compile(r"(?:FUNCTION|PROCEDURE) (?:.*\.)?(?P<name>[^.]+?) does not exist")


class Verdict(NamedTuple):
    """Why the target does not take a statement."""

    code: int
    message: str
    """The target's own words."""
    what: str
    """What it is about, for people."""
    routine: str = ""
    """The routine that is not there: the window may make it."""


@dataclass(slots=True)
class ParserAnswers:
    """What came of asking the target's parser about a window's statements."""

    refused: list[tuple[LaneStatement, Verdict]] = field(default_factory=list)
    texts: list[LoggedText] = field(default_factory=list)
    """Of the statements that commit by themselves and that the parser takes, in their order."""
    made: set[str] = field(default_factory=set)
    """Routines that the window makes, in lower case."""
    forms: list[LaneStatement] | None = None
    """A statement of each form of the others; None if there are too many of them, or the parser was not asked."""


@dataclass(slots=True)
class StatementJudge:
    """A connection of its own, on which nothing is ever executed but SET, USE and LOCK TABLES."""

    session: LaneSession
    context: ContextSetter
    _opens_nothing: bool = False
    """MariaDB: whether it opens no table to prepare a statement."""
    _entered: SessionContext | None = field(default=None)
    _waits: int = 0
    _asked: dict[str, Verdict | None] = field(default_factory=dict)
    """Of ``lacks_function``."""

    @classmethod
    def open(cls, engine: Engine) -> StatementJudge:
        """Connect. Raises the driver's errors."""
        session = LaneSession.open(engine, _LIMITS)
        try:
            # not in a READ ONLY transaction: 1792 would be all that is said of DML
            session.act_as_replica()
        except pymysql.err.MySQLError as exc:
            if error_code(exc) != _NO_PRIVILEGE:  # that the precheck asks for: nothing can be judged without it
                session.close()
                raise
        judge = cls(session, ContextSetter(session))
        try:
            judge._opens_nothing = session.flavor is Flavor.MARIADB and any(map(judge._holds, _HELD))
        except pymysql.err.MySQLError:
            session.close()
            raise
        return judge

    def close(self) -> None:
        """End the connection."""
        self.session.close()

    @property
    def opens_tables(self) -> bool:
        """MariaDB: whether the server would open tables to prepare a statement, which is not asked about then."""
        return self.session.flavor is Flavor.MARIADB and not self._opens_nothing

    @property
    def is_blocked(self) -> bool:
        """Whether so many statements had to wait for another session's locks that asking further is of no use."""
        return self._waits >= _MOST_WAITS

    def judge(self, item: Item) -> Verdict | None:
        """What the target has against the statement; None for nothing, and for what only its objects can tell.

        Raises the driver's error if the connection is lost.
        """
        context = SessionContext() if item.context is None else item.context
        is_too_long = len(item.payload) + PACKET_HEADER > self.session.max_allowed_packet
        if is_too_long or not self._enter(context, item.payload):
            return None  # the packet, the collations and time zones have findings of their own
        if not self._is_asked_about(item.payload, context):
            return self._missing_function(item, context)
        text = disabled(item.payload, self.context.client_charset(context), dialect_of(context, self.session.flavor))
        try:
            self._prepare(text)
        except pymysql.err.MySQLError as exc:
            code = error_code(exc)
            self._waits += code in _LOCK_WAIT
            if is_lost(exc):
                raise  # not asked: a lost connection is no consent
            if code == context.error_code:
                return None
            return _verdict(code, str(exc.args[-1])) if code in REFUSING else self._missing_function(item, context)
        return None

    def judge_definition(self, database: str, sql_mode: str, statement: bytes, made: Collection[str]) -> Verdict | None:
        """What the target has against the statement of a definition, as ``judge``. ``made``: routines that come with
        it, by ``folded_name``. Raises the driver's error if the connection is lost."""
        context = SessionContext(database=database)
        item = Item(ItemKind.DDL, statement, context=context)
        if len(statement) + PACKET_HEADER > self.session.max_allowed_packet:
            return None
        # before the first copy the target may have neither its database nor binlane's
        if not any(self._enter(SessionContext(database=each), statement) for each in (database, _THERE)):
            return None
        self._entered = None
        try:
            self.session.execute(f"SET SESSION sql_mode = {quoted(sql_mode)}")
            if not self._is_asked_about(statement, context):
                return self._missing_function(item, context, made)
            self._prepare(statement)
        except pymysql.err.MySQLError as exc:
            if is_lost(exc):
                raise
            code = error_code(exc)
            found = _verdict(code, str(exc.args[-1])) if code in REFUSING else None
            if found is not None and found.routine not in made:
                return found
            return self._missing_function(item, context, made)
        return None

    def lacks_function(self, names: Collection[str]) -> Verdict | None:
        """What the target says of the first of these names, unquoted, that is no function of its own: what is a word of
        its grammar is refused otherwise."""
        for name in names:
            if name not in self._asked:
                self._asked[name] = None
                try:
                    self._prepare(f"DO {name}()".encode())
                except pymysql.err.MySQLError as exc:
                    if is_lost(exc):
                        raise
                    if error_code(exc) == _NO_ROUTINE:
                        self._asked[name] = _verdict(_NO_ROUTINE, str(exc.args[-1]))
            if (found := self._asked[name]) is not None:
                return found
        return None

    def _missing_function(self, item: Item, context: SessionContext, made: Collection[str] = ()) -> Verdict | None:
        """What the target says of the functions of a statement whose objects are not there yet, or not opened, which it
        names first; on MariaDB also of those that are called with their database. ``made``: those that the copy
        makes."""
        flavor = self.session.flavor
        facts = statement_facts(item.payload, context, flavor)
        called = [(name if name.isidentifier() else identifier(name), name) for name in sorted(facts.functions)]
        if flavor is Flavor.MARIADB and facts.routines_used:
            called += _qualified_calls(item.payload, context, facts.tables)
        for spelled, name in called:
            if not name.isascii() or folded_name(name) in made:
                continue
            try:
                self._prepare(f"DO {spelled}()".encode())
            except pymysql.err.MySQLError as exc:
                if is_lost(exc):
                    raise
                # every other error is one of a function that is there, or of a word of the grammar
                if error_code(exc) == _NO_ROUTINE:
                    return _verdict(_NO_ROUTINE, str(exc.args[-1]))
        return None

    def _holds(self, table: str) -> bool:
        """Lock a table, and see that the server opens no other one; False if it does not let the account, or has no
        such table."""
        try:
            self.session.execute(f"LOCK TABLES {table} READ")
            self._prepare(_ANOTHER)
        except pymysql.err.MySQLError as exc:
            if is_lost(exc):
                raise
            return error_code(exc) == _NOT_LOCKED
        return False

    def _is_asked_about(self, statement: bytes, context: SessionContext) -> bool:
        """Whether the server calls no function to prepare the statement: MySQL calls none, and MariaDB behind a table
        that it does not open."""
        if self.session.flavor is not Flavor.MARIADB:
            return True
        facts = statement_facts(statement, context, self.session.flavor)
        if _prepares_no_query(statement, facts):
            return True
        return self._opens_nothing and _reaches_a_table(statement, facts)

    def _enter(self, context: SessionContext, statement: bytes) -> bool:
        """Give the session what a parser asks for of the statement's; False if the target cannot have it."""
        wanted = SessionContext(
            # some database there must be; without one MySQL looks no further than to the first name
            database=context.database or SCHEMA,
            sql_mode=context.sql_mode,
            charset_client=context.charset_client,
            collation_connection=context.collation_connection,
            collation_server=context.collation_server,
            default_collation_for_utf8mb4=context.default_collation_for_utf8mb4,
            collation_database=context.collation_database,
        )
        if wanted == self._entered:
            return True
        self._entered = None
        try:
            try:
                self.context.enter(wanted, statement)
                entered = wanted
            except pymysql.err.MySQLError as exc:
                if error_code(exc) != _UNKNOWN_DATABASE:
                    raise
                entered = wanted  # the window may make it
                self.context.enter(replace(wanted, database=SCHEMA), statement)
        except (ApplyError, pymysql.err.MySQLError):
            if not self.session.connection.open:
                raise
            return False
        self._entered = entered
        return True

    def _prepare(self, text: bytes) -> None:
        connection: Any = self.session.connection
        with connection.turn:
            connection._execute_command(COMMAND.COM_STMT_PREPARE, text)
            _, number, columns, parameters = _PREPARED.unpack_from(connection._read_packet().get_all_data())
            for count in (parameters, columns):
                # each list has an end
                for _ in range(count + 1 if count else 0):
                    connection._read_packet()
            connection._execute_command(_COM_STMT_CLOSE, struct.pack("<I", number))


def ask_parser(engine: Engine, plan: WindowPlan, plans: WorkFolder) -> ParserAnswers:
    """Ask about each statement of a plan in its folder. Raises PlanError if the plan's files are not there."""
    asked, judge, judged, forms, size, kept = ParserAnswers(), None, 0, 0, 0, list[LaneStatement]()
    try:
        for logged in distinct_statements(plans, plan):
            judge = StatementJudge.open(engine) if judge is None else judge
            is_ddl = logged.item.kind is ItemKind.DDL
            if not is_ddl:
                size += len(logged.item.payload)
                kept.extend([logged] if size <= _MOST_BYTES else [])
            if not is_ddl and judge.is_blocked:
                continue
            judged, forms = judged + 1, forms + (not is_ddl)
            verdict = judge.judge(logged.item)
            if verdict is not None:
                asked.refused.append((logged, verdict))
            if is_ddl:
                header = logged.header
                text = LoggedText.of(header.first_seqno, header.source, logged.item, plan.flavor)
                asked.made.update(() if text is None else _made(text.tokens))
                asked.texts.extend([] if text is None or verdict is not None else [text])
    finally:
        if judge is not None:
            judge.close()
    asked.texts.sort(key=lambda each: each.seqno)
    if size <= _MOST_BYTES and len(kept) < MOST_FORMS:
        asked.forms = kept
    if judge is not None:
        log.info("precheck: the target's parser was asked about %d statements", judged)
        if forms >= MOST_FORMS:
            log.info("precheck: the window has more than %d forms of DML; the rest was not asked about", MOST_FORMS)
        if judge.opens_tables:
            log.warning("precheck: the account may not LOCK TABLES on %s: not all DML was asked about", SCHEMA)
        if judge.is_blocked:
            log.warning("precheck: tables of the target are locked by another session: not all DML was asked about")
    return asked


def _prepares_no_query(statement: bytes, facts: StatementFacts) -> bool:
    """Whether a server evaluates nothing of the statement to prepare it: of definitions their queries alone, and no
    body."""
    if facts.kind is StatementKind.GLOBAL:
        return not _SETS.match(statement)
    is_definition = facts.kind is StatementKind.DDL and not facts.create_select and not facts.views
    return is_definition or facts.kind is StatementKind.TRANSACTION


def _reaches_a_table(statement: bytes, facts: StatementFacts) -> bool:
    """Whether a server opens a table of a user, or the one that it makes, before anything else that is in the text."""
    if facts.kind is StatementKind.UNKNOWN:
        # of other definitions no query is prepared, and CREATE TABLE .. SELECT begins with its own table
        return (facts.commits_implicitly and not _VIEW.search(statement)) or bool(_WRITES.match(statement))
    if facts.views:
        return any(not is_system(key.database) for key in facts.tables - facts.views)
    return facts.create_select or bool(facts.written)


def _qualified_calls(
    statement: bytes, context: SessionContext, tables: Collection[TableKey]
) -> Iterator[tuple[str, str]]:
    """The functions that a statement calls by database and name: as they are spelled, and their name alone."""
    try:
        tokens = words_of(statement, context, Flavor.MARIADB).tokens
    except Unreadable:
        return
    # one table too many is not asked about
    named = {folded(each) for each in tables}
    for before, database, dot, name, opens in zip(
        (None, *tokens), tokens, tokens[1:], tokens[2:], tokens[3:], strict=False
    ):
        is_call = is_symbol(dot, ".") and is_symbol(opens, "(")
        # behind a dot it is the middle of a longer name, and behind CALL a procedure
        if is_call and (before is None or not (is_symbol(before, ".") or before.upper == "CALL")):
            is_table = folded(TableKey(database.text, name.text)) in named
            if not is_table and database.text.isascii():
                yield f"{identifier(database.text)}.{identifier(name.text)}", name.text


def _made(tokens: Sequence[Token]) -> Iterator[str]:
    if tokens and tokens[0].upper == "CREATE":
        # a package has several; what a body names is taken for made as well
        for at, token in enumerate(tokens):
            if token.upper in ("FUNCTION", "PROCEDURE"):
                named = [each for each in tokens[at + 1 : at + 7] if each.upper not in ("IF", "NOT", "EXISTS")]
                is_qualified = len(named) > 2 and is_symbol(named[1], ".")
                yield from (folded_name(each.text) for each in named[2 * is_qualified :][:1])


def _verdict(code: int, message: str) -> Verdict | None:
    if code != _NO_ROUTINE:
        return Verdict(code, message, REFUSING[code])
    match = _ROUTINE.search(message)
    return None if match is None else Verdict(code, message, REFUSING[code], folded_name(match["name"].strip("`")))


REFUSING: Final = {
    1059: "a name that is too long",
    1063: "a column's type",
    1064: "syntax",
    1101: "a default of a BLOB, TEXT, GEOMETRY or JSON column",
    1115: "a character set",
    1149: "syntax",
    1193: "a system variable",
    1235: "something that it does not support",
    1273: "a collation",
    1286: "a storage engine",
    1289: "a feature that is switched off",
    1300: "a name with a character that it does not know",
    _NO_ROUTINE: "a function or procedure",
    1313: "a routine's body",
    1314: "a routine's body",
    1415: "a routine's body",
    1422: "a routine's body",
    1425: "a column's length",
    1426: "a column's length",
    1439: "a column's length",
    1486: "a partition's expression",
    1564: "a partition's expression",
    1582: "a function's arguments",
    1583: "a function's arguments",
    1584: "a function's arguments",
    1901: "an expression",
    3770: "an expression",
    3771: "an expression",
    3772: "an expression",
    4161: "a column's type",
}
"""Errors that the statement's text alone is to blame for, and what of it. All others may be another story when the
statement's turn comes: tables, columns and databases that are not there yet, or no longer; their character sets, which
decide on lengths (1074) and collations (1253)."""
