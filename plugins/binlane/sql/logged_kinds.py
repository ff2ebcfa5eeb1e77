"""The kinds of statements that servers write into their binary logs. Any other kind was put into the log by hand.

Tried by running each kind in statement format on MariaDB 10.11 and 11.8 and on MySQL 9.7, and reading their logs; kinds
that these servers do not have are taken from the servers' sources (``mysql_execute_command`` in ``sql/sql_parse.cc``,
the calls of ``write_bin_log``). An archive's files can be edited: a statement that no server logs (SELECT ... INTO
OUTFILE, SET GLOBAL, CHANGE MASTER) could do more on the target than the source's accounts were allowed to. Such a
statement is refused, unless the channel allows its kind (``filter.allow_statements``).
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from binlane.model import Flavor, TableKey
from binlane.schema.letter_case import LetterCase, lower
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.facts import UNREAD, StatementFacts, StatementKind
from binlane.sql.parse.lexer import UNDECODED, Dialect, Token, TokenKind, Unreadable, lex
from binlane.sql.parse.set_statement import clause_of

_CALL: Final = "CALL"
_LAST_CALL: Final = (5, 0, 13)
"""MySQL servers before this version logged the CALL of a procedure."""
OTHER: Final = "OTHER"
"""The kind of a statement that has no name here."""
SELECT_INTO: Final = "SELECT INTO"
SYSTEM_TABLES: Final = "SYSTEM TABLES"
"""Definitions and statement-format changes in the server's own databases, whatever the statement's verb is. Servers log
them, but no application writes there, and the target keeps its accounts and libraries in these databases."""
VARIABLES: Final = "NAME_CONST"
"""Statements of programs over databases that only the text names: a server writes the names of local variables into it
as they are (``spliced_databases``)."""
_SPLICED: Final = b"NAME_CONST('"
"""As servers write it: MySQL ``subst_spvars`` (sql/sp_instr.cc), MariaDB ``Item_splocal::append_for_log``
(sql/sp_head.cc). Both append the variable's name without escaping anything, and so does MariaDB 12 the key of an
associative array."""

_OBJECTS: Final = (
    "DATABASE SCHEMA TABLE TABLES INDEX VIEW TRIGGER PROCEDURE FUNCTION EVENT PACKAGE LIBRARY SEQUENCE USER ROLE "
    "TABLESPACE"
)
LOGGED: Final[frozenset[str]] = frozenset(
    {
        # changes; servers log a call of a function as SELECT or DO, and a procedure's statements one by one
        *("INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "LOAD DATA", "LOAD XML", "SELECT", "DO"),
        # transactions
        *("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE SAVEPOINT", "XA"),
        # definitions
        *(f"{verb} {kind}" for verb in ("CREATE", "ALTER", "DROP") for kind in _OBJECTS.split()),
        *("RENAME TABLE", "RENAME TABLES", "RENAME USER", "TRUNCATE", "CREATE SPATIAL", "DROP SPATIAL"),
        "ALTER INSTANCE ROTATE INNODB",
        # accounts
        *("GRANT", "REVOKE", "SET PASSWORD", "SET DEFAULT ROLE"),
        # maintenance
        *("ANALYZE", "OPTIMIZE", "REPAIR"),
        "FLUSH",
        # a comment alone: a MariaDB server sends it in place of an event that the replica does not know
        "",
    }
)
"""The kinds that servers log, as ``_kind`` names them."""
NOT_LOGGED: Final = (
    *("ALTER INSTANCE", "ALTER LOGFILE", "ALTER RESOURCE", "ALTER SERVER", "ALTER UNDO", "BACKUP", "BEGIN NOT ATOMIC"),
    *(
        "BINLOG",
        _CALL,
        "CACHE INDEX",
        "CHANGE MASTER",
        "CHANGE REPLICATION",
        "CHECK",
        "CHECKSUM",
        "CLONE",
        "CREATE LOGFILE",
    ),
    *("CREATE RESOURCE", "CREATE SERVER", "CREATE UNDO", "DEALLOCATE", "DROP LOGFILE", "DROP RESOURCE", "DROP SERVER"),
    *("DROP UNDO", "EXECUTE", "EXPLAIN", "FLUSH BINARY", "FLUSH LOGS", "FLUSH MASTER", "FLUSH OTHER"),
    *("FLUSH SLAVE", "FLUSH TABLES WITH READ LOCK", "HANDLER"),
    *("IMPORT TABLE", "INSTALL", "KILL", "LOAD INDEX", "LOCK", "PREPARE", "PURGE", "RESET", "RESTART", SELECT_INTO),
    *("SET", "SET GLOBAL", "SHOW", "SHUTDOWN", "START", "STOP", SYSTEM_TABLES, "UNINSTALL", "UNLOCK", "USE", OTHER),
    VARIABLES,
)
"""Kinds that servers do not log, and those of which a server's log is no proof."""
ALLOWABLE: Final = (*NOT_LOGGED, UNREAD)
"""The values of ``filter.allow_statements``."""

_SECOND: Final[Mapping[str, frozenset[str]]] = {
    "ALTER": frozenset({*_OBJECTS.split(), "INSTANCE", "LOGFILE", "RESOURCE", "SERVER", "UNDO"}),
    "CREATE": frozenset({*_OBJECTS.split(), "LOGFILE", "RESOURCE", "SERVER", "SPATIAL", "UNDO"}),
    "DROP": frozenset({*_OBJECTS.split(), "LOGFILE", "RESOURCE", "SERVER", "SPATIAL", "UNDO"}),
}
"""The words that name the kind of object that a definition creates, alters or drops; clauses may precede them."""
_INDEXED: Final = frozenset({"UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"})
_GLOBAL: Final = re.compile(r"@@`?(?:global|persist|persist_only)\b", re.I)
_GLOBALS: Final = frozenset({"GLOBAL", "PERSIST", "PERSIST_ONLY"})
_SERVERS_OWN: Final = frozenset({"mysql", "performance_schema", "information_schema"})
_SERVERS_LOGS: Final = frozenset({TableKey("mysql", "general_log"), TableKey("mysql", "slow_log")})
"""Log tables, which administrators empty and rotate."""
_MAINTENANCE: Final = frozenset({"ANALYZE", "OPTIMIZE", "REPAIR"})
"""Table maintenance, which mysqlcheck and mariadb-check do in all databases."""
_CHANGE: Final = re.compile(r"\s*(?:INSERT|REPLACE|UPDATE|DELETE)\b", re.I)
_FILE: Final = re.compile(r"\b(?:OUT|DUMP)FILE\b", re.I)
_NAMES_OWN: Final = re.compile(r"\b(?:mysql|performance_schema)\b", re.I)
"""Occurs in each text that names one of these databases."""
_TABLES: Final = frozenset({"TABLE", "TABLES", "VIEW"})
_UNLOGGED: Final = frozenset({"NO_WRITE_TO_BINLOG", "LOCAL"})
_FLUSHED: Final = frozenset(
    {
        *("HOSTS", "STATUS", "GLOBAL", "SESSION", "USER_RESOURCES", "PRIVILEGES", "QUERY", "ERROR", "GENERAL", "SLOW"),
        *("ENGINE", "RELAY", "SSL", "THREADS", "OPTIMIZER_COSTS", "DES_KEY_FILE", "USER_STATISTICS", "USER_VARIABLES"),
        *("CLIENT_STATISTICS", "INDEX_STATISTICS", "TABLE_STATISTICS", "THREAD_STATISTICS", "QUERY_RESPONSE_TIME"),
        *(f"QUERY_RESPONSE_TIME_{kind}" for kind in ("READ", "WRITE", "READ_WRITE")),
    }
)
"""The first words of what FLUSH names, where servers log it. To a MariaDB server FLUSH MASTER is RESET MASTER, and
FLUSH SLAVE is RESET SLAVE: it logs neither."""
_RESETS: Final[Mapping[str, str]] = {
    "LOGS": "FLUSH LOGS",
    "BINARY": "FLUSH BINARY",
    "MASTER": "FLUSH MASTER",
    "SLAVE": "FLUSH SLAVE",
    "REPLICA": "FLUSH SLAVE",
}
_CACHED_LENGTH: Final = 4096


def not_logged(
    text: str, facts: StatementFacts, dialect: Dialect, version: tuple[int, int, int], database: str | None
) -> str | None:
    """The kind of a statement that servers of that ``version`` do not log, by its name in ``NOT_LOGGED``; None for a
    kind that they log. ``database``: the session's.

    A text that the lexer does not read to its end has no kind that servers log.
    """
    read = _kind_of if len(text) > _CACHED_LENGTH else _cached
    kind = read(text, dialect, facts.kind)
    if kind in LOGGED:
        # a loadable function is in no database, and a stored one of these databases is named with it
        default = None if kind == "DROP FUNCTION" else database
        is_read = facts.kind is not StatementKind.UNKNOWN
        is_own = not (kind in _MAINTENANCE and is_read) and _changes_servers_own(text, facts, default, dialect)
        return SYSTEM_TABLES if is_own else None
    if kind == _CALL and dialect.flavor is Flavor.MYSQL and version < _LAST_CALL:
        return None
    return kind if kind in NOT_LOGGED else OTHER


def unread_kind(kind: str | None) -> str:
    """By which name a channel's file allows a statement that is not read. ``kind``: of ``not_logged``, of which its
    tables alone are no kind of their own."""
    return UNREAD if kind is None or kind == SYSTEM_TABLES else kind


def _changes_servers_own(text: str, facts: StatementFacts, database: str | None, dialect: Dialect) -> bool:
    if facts.kind is StatementKind.UNKNOWN:
        # which tables it changes is not known
        return lower(database or "") in _SERVERS_OWN or _names_own(text, dialect)
    changed = {key.database for key in facts.written}
    # a definition of a database, or of a routine or event, has no table
    if facts.kind is StatementKind.DDL and not (facts.tables and facts.tables <= _SERVERS_LOGS):
        of_others = facts.tables if facts.views else {old for old, _ in facts.copies}
        changed |= facts.databases - {key.database for key in of_others}
        changed |= {key.database for key in (*facts.views, *(new for _, new in facts.copies))}
    return any(lower(name) in _SERVERS_OWN for name in changed)


def _names_own(text: str, dialect: Dialect) -> bool:
    if _NAMES_OWN.search(text) is None:
        return False
    tokens: list[Token] = []
    try:
        lex(text.replace(UNDECODED, "x"), dialect, tokens)
    except Unreadable:
        return True
    pairs = itertools.pairwise(tokens)
    return any(lower(token.text) in _SERVERS_OWN and is_symbol(behind, ".") for token, behind in pairs)


def _kind_of(text: str, dialect: Dialect, kind: StatementKind) -> str:
    plain = _CHANGE.match(text)
    if plain is not None and kind is not StatementKind.UNKNOWN and _FILE.search(text) is None:
        return plain.group().strip().upper()
    tokens: list[Token] = []
    try:
        # a name with bytes outside its character set is a name
        lex(text.replace(UNDECODED, "x"), dialect, tokens)
        return _kind(tokens[clause_of(tokens).body :], kind)
    except Unreadable:
        return OTHER


_cached = functools.lru_cache(maxsize=4096)(_kind_of)


def _kind(tokens: Sequence[Token], kind: StatementKind) -> str:
    """A statement's kind: its first words, as ``LOGGED`` and ``NOT_LOGGED`` spell them."""
    start = 0
    while start < len(tokens) and is_symbol(tokens[start], "("):
        start += 1
    words = [token.upper for token in tokens[start:]]
    if not words:
        return ""
    verb, second = words[0] or OTHER, words[1] if len(words) > 1 else ""
    if verb in ("SELECT", "WITH", "VALUES", "TABLE", "INSERT", "REPLACE") and _writes_a_file(words):
        return SELECT_INTO
    if verb in _SECOND:
        return _definition(verb, tokens[start:])
    if verb == "SET":
        return _setting(tokens[start:])
    if verb == "BEGIN":
        return verb if kind is StatementKind.TRANSACTION else "BEGIN NOT ATOMIC"
    if verb == "FLUSH":
        return _flush(tokens[start:])
    if verb in _MAINTENANCE:
        # MariaDB's ANALYZE executes an UPDATE, also one of a table called view
        is_of_tables = words[2 if second in _UNLOGGED else 1 :][:1] in ([name] for name in _TABLES)
        return verb if is_of_tables else "EXPLAIN" if verb == "ANALYZE" else OTHER
    if verb in ("RENAME", "LOAD", "CHANGE", "CACHE", "IMPORT", "RELEASE") or words[:2] == ["START", "TRANSACTION"]:
        return f"{verb} {second}"
    return "EXPLAIN" if verb in ("DESCRIBE", "DESC") else verb


def _writes_a_file(words: Sequence[str]) -> bool:
    """SELECT ... INTO a file or a variable. OUTFILE, DUMPFILE and INTO are reserved: they are no names."""
    if words[0] in ("INSERT", "REPLACE"):
        return "OUTFILE" in words or "DUMPFILE" in words
    return "INTO" in words


def _definition(verb: str, tokens: Sequence[Token]) -> str:
    """CREATE, ALTER or DROP with the kind of object: the first unquoted word of ``_OBJECTS``."""
    for token, behind in itertools.zip_longest(tokens[1:], tokens[2:]):
        if is_symbol(token, "(") and (behind is None or not is_symbol(behind, ")")):
            break  # not CURRENT_USER()
        if token.upper in _INDEXED and behind is not None and behind.upper in ("INDEX", "KEY"):
            return f"{verb} INDEX"
        if token.kind is TokenKind.WORD and token.upper in _SECOND[verb]:
            rotates = [one.upper for one in tokens[2:4]] == ["ROTATE", "INNODB"]
            return "ALTER INSTANCE ROTATE INNODB" if token.upper == "INSTANCE" and rotates else f"{verb} {token.upper}"
    return verb


def _setting(tokens: Sequence[Token]) -> str:
    words = [token.upper for token in tokens]
    if any(_GLOBAL.match(token.text) for token in tokens if token.kind is TokenKind.VARIABLE) or _GLOBALS & set(words):
        return "SET GLOBAL"
    if words[1:2] == ["PASSWORD"]:
        return "SET PASSWORD"
    if words[1:3] == ["DEFAULT", "ROLE"]:
        return "SET DEFAULT ROLE"
    return "SET"


def _flush(tokens: Sequence[Token]) -> str:
    words = [token.upper for token in tokens]
    if "LOCK" in words or "EXPORT" in words:
        return "FLUSH TABLES WITH READ LOCK"
    start = 2 if not _UNLOGGED.isdisjoint(words[1:2]) else 1
    if words[start : start + 1] in (["TABLE"], ["TABLES"]):
        # what follows are tables, unless a comma does
        start += 1
        if start == len(tokens) or not is_symbol(tokens[start], ","):
            return "FLUSH"
    places = (place for place in range(start, len(tokens)) if place == start or is_symbol(tokens[place - 1], ","))
    named = [words[place] for place in places if not is_symbol(tokens[place], ",")] or [""]
    refused = (_RESETS.get(word, "FLUSH OTHER") for word in named if word not in _FLUSHED)
    return next(refused, "FLUSH")


def spliced_databases(
    sql: bytes,
    facts: StatementFacts,
    database: str | None,
    listed: Collection[str] | None,
    letters: LetterCase,
) -> frozenset[str] | None:
    """The databases that a program's statement names, and that nothing but its text shows that it has reached; None if
    its text is not read, and may name any. ``listed``: those that MySQL has logged with it; None if there is no list.

    ``DECLARE `a',1), (SELECT s FROM other.secret), NAME_CONST('b` INT`` makes another statement of one that uses the
    variable. Who may not write to ``other`` on the source could so write to it on the target. What runs in a program
    has the program's database as its default one, so that one is his own; others are believed by MySQL's list.
    """
    if _SPLICED not in sql:
        return frozenset()
    if facts.kind is StatementKind.UNKNOWN:
        return None
    # with lower_case_table_names a server has such names in lower case, and the text has them as they were typed
    return letters.names(facts.databases) - letters.names(frozenset({database or "", *(listed or ())}))
