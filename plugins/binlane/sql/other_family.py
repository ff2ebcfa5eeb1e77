"""MariaDB's own syntax rewritten for MySQL, where MySQL has a form of exactly the same meaning.

MariaDB's PERSISTENT is the standard's STORED. COMPRESSED of a column says how its values are stored and is left out
(rows: ``apply.rows.cross_family``), but for the default that it brings: a compressed column that is NOT NULL and has
no DEFAULT gets the empty string (seen on 10.11). ``SET STATEMENT variable = value, ... FOR`` sets variables for one
statement. A variable is removed from it if it is in the QUERY event's session already, with the value that the
statement ran under (tried on 10.11: ``Query_log_event`` reads them while the statement runs), or has no influence on
the result: some of these cannot be set within a transaction, as lanes have one, and a time limit is the source's. The
precheck refuses what is left by name if MySQL is the target.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from binlane.model import Flavor, SessionContext
from binlane.sql.parse.cursor import FactsBuilder, group_end, is_symbol
from binlane.sql.parse.facts import StatementFacts
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable
from binlane.sql.parse.queries import read_expressions
from binlane.sql.parse.set_statement import Clause, clause_of, computed
from binlane.sql.plain_statement import parted
from binlane.sql.requirements import LONG_TYPES
from binlane.sql.session_variables import open_timestamps
from binlane.sql.words import StatementWords, words_of

_NO_ZERO_DATE: Final = 1 << 24
_EARLY: Final = b"'1970-01-02 00:00:00'"
"""A default that no row gets: every server takes it, in any time zone."""
_NO_COLUMNS: Final = frozenset({"AS", "SELECT", "LIKE", "WITH"})
"""What stands in front of the first parenthesis of a CREATE TABLE without a list of columns."""
_MODE: Final = re.compile(rb"\bsql_mode\b", re.I)
_READ_BY_MODE: Final = re.compile(rb"[\\\"]|\|\|")
LOGGED: Final = frozenset(
    {
        *("foreign_key_checks", "unique_checks", "check_constraint_checks", "auto_increment_increment"),
        *("auto_increment_offset", "lc_time_names", "time_zone"),
    }
)
"""Session variables that are logged with the statement and do not influence how its text is parsed.

``sql_mode``, collations and ``explicit_defaults_for_timestamp`` do, so they are not here: the server parses the text
under the session's values, which are not logged, and executes it under the values of SET STATEMENT.
"""
WITHOUT_EFFECT: Final = frozenset(
    {
        *("max_statement_time", "lock_wait_timeout", "innodb_lock_wait_timeout", "net_read_timeout"),
        *("net_write_timeout", "alter_algorithm", "sort_buffer_size", "join_buffer_size", "read_buffer_size"),
        *("read_rnd_buffer_size", "tmp_table_size", "tmp_memory_table_size", "max_heap_table_size", "slow_query_log"),
        *("long_query_time", "log_slow_verbosity", "profiling", "skip_parallel_replication", "binlog_format"),
        *("binlog_row_image", "binlog_annotate_row_events", "sql_log_bin", "binlog_direct_non_transactional_updates"),
        *("gtid_domain_id", "gtid_seq_no", "wsrep_on", "innodb_tmpdir"),
    }
)
"""Variables for the time limits, memory, monitoring or logging of a statement, without influence on its result."""


def as_in_family(sql: bytes, context: SessionContext, source: Flavor, target: Flavor) -> bytes:
    """A statement of a ``source`` server as the ``target`` takes it; unchanged where no rewrite applies."""
    if source is not Flavor.MARIADB:
        return sql
    rewrites, upper = _REWRITES[:1] if target is Flavor.MARIADB else _REWRITES, sql.upper()
    if not any(word in upper for word, _ in rewrites):
        return sql
    for word, rewrite in rewrites:
        if word in upper:
            try:
                sql = rewrite(words_of(sql, context, source))
            except Unreadable:
                return sql
    return sql


def null_as_in_mariadb(sql: bytes, context: SessionContext, facts: StatementFacts) -> tuple[bytes, SessionContext]:
    """A statement of a MariaDB server for a MySQL session with ``explicit_defaults_for_timestamp = OFF``, which cannot
    be changed in a transaction.

    With OFF, NULL for a TIMESTAMP that must not be NULL is the current time in MySQL. In MariaDB it is always: the
    server asks the variable about definitions alone (tried on 10.11 and 11.8). What commits by itself keeps its value;
    a temporary table, which is made inside of a transaction, has its columns' NULL and default in its text then.
    """
    if facts.commits_implicitly:
        return sql, context
    if context.explicit_defaults_for_timestamp and facts.created_temporary is not None and b"TIMESTAMP" in sql.upper():
        with contextlib.suppress(Unreadable):
            has_zero = not (context.sql_mode or 0) & _NO_ZERO_DATE
            sql = _with_said_defaults(words_of(sql, context, Flavor.MARIADB), b"0" if has_zero else _EARLY)
    return sql, replace(context, explicit_defaults_for_timestamp=None)


def _with_said_defaults(words: StatementWords, unused: bytes) -> bytes:
    """``unused``: the default of a column that must not be NULL."""
    tokens, edits = words.tokens, dict[int, bytes]()
    columns = next((at for at, token in enumerate(tokens) if is_symbol(token, "(") or token.upper in _NO_COLUMNS), None)
    if columns is None or not is_symbol(tokens[columns], "("):
        return words.sql
    behind, keys = group_end(tokens, columns), _primary_key(tokens)
    for at, is_not_null in open_timestamps(tokens):
        if not columns < at < behind:
            # an alias of a query
            continue
        end = group_end(tokens, at + 1) - 1 if is_symbol(tokens[at + 1], "(") else at
        first, last = words.places[end]
        is_key = tokens[at - 1].text.lower() in keys or _is_key(tokens[end + 1 : behind])
        # a row without the value has been taken, so it was 0; under a mode without 0 none has been
        said = b" DEFAULT " + unused if is_not_null or is_key else b" NULL"
        edits[end] = words.sql[first:last] + said
    return words.replaced(edits)


def _primary_key(tokens: Sequence[Token]) -> frozenset[str]:
    """The columns of PRIMARY KEY (..), in lower case: without a word they are NOT NULL."""
    for at, (one, other) in enumerate(pairwise(tokens)):
        if one.upper == "PRIMARY" and other.upper == "KEY":
            begin = next((index for index in range(at + 2, len(tokens)) if is_symbol(tokens[index], "(")), None)
            # PRIMARY KEY of a column has a comma or the list's end in front of the next parenthesis
            if begin is not None and not any(is_symbol(token, ",") for token in tokens[at + 2 : begin]):
                return frozenset(token.text.lower() for token in tokens[begin : group_end(tokens, begin)])
    return frozenset()


def _is_key(behind: Sequence[Token]) -> bool:
    """Whether a column's definition says PRIMARY KEY, or KEY alone, which is the same. ``behind``: its type."""
    before = ""
    for token in behind:
        if is_symbol(token, ",") or is_symbol(token, ")"):
            return False
        if token.upper == "KEY" and before != "UNIQUE":
            return True
        before = token.upper
    return False


def read_under_another_mode(sql: bytes, context: SessionContext, source: Flavor) -> bool:
    """Whether the source parsed quotes, backslashes or ``||`` of the statement under a sql_mode that is not logged.

    ``SET STATEMENT sql_mode = .. FOR`` is parsed under the session's own mode and logged with the mode that it sets.
    """
    if source is not Flavor.MARIADB or _MODE.search(sql) is None or _READ_BY_MODE.search(sql) is None:
        return False
    clause, _ = parted(sql, context, source)
    return _MODE.search(clause) is not None


def _without_set_statement(words: StatementWords) -> bytes:
    clause = clause_of(words.tokens)
    kept = [part for part in clause.assignments if not _is_removed(words.tokens[slice(*part)])]
    if len(kept) == len(clause.assignments):
        return words.sql
    parts = (words.sql[words.places[begin][0] : words.places[end - 1][1]] for begin, end in kept)
    statement = words.sql[words.places[clause.body][0] :]
    return b"SET STATEMENT " + b", ".join(parts) + b" FOR " + statement if kept else statement


def _is_removed(assignment: Sequence[Token]) -> bool:
    """Whether the variable is one to remove, and its value computed by nothing that may change data."""
    if not assignment or assignment[0].text.lower() not in LOGGED | WITHOUT_EFFECT:
        return False
    reading = FactsBuilder(Dialect(Flavor.MARIADB), None)
    read_expressions(computed(assignment, Clause(0, ((0, len(assignment)),))), reading)
    return not (reading.tables or reading.routines_used)


def _stored(words: StatementWords) -> bytes:
    verb, kind = words.verb_and_kind()
    if verb not in ("CREATE", "ALTER") or kind != "TABLE":
        return words.sql
    behind = enumerate(pairwise(words.tokens), 1)
    edits = {
        at: b"STORED"
        for at, (before, token) in behind
        if token.kind is TokenKind.WORD and token.upper == "PERSISTENT" and is_symbol(before, ")")
    }
    return words.replaced(edits)


def _uncompressed(words: StatementWords) -> bytes:
    verb, kind = words.verb_and_kind()
    if verb not in ("CREATE", "ALTER") or kind != "TABLE":
        return words.sql
    edits, depth = dict[int, bytes](), 0
    for at, token in enumerate(words.tokens):
        if token.upper == "SELECT":
            break  # behind it the word is an alias
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if token.upper != "COMPRESSED" or depth > 1 or (verb == "CREATE" and depth == 0):
            continue
        if _is_attribute(words.tokens, at):
            with_method = at + 2 < len(words.tokens) and is_symbol(words.tokens[at + 1], "=")
            edits |= dict.fromkeys(range(at, at + (3 if with_method else 1)), b"")
            edits[at] = _default(words.tokens, at)
    return words.replaced(edits)


def _default(tokens: Sequence[Token], at: int) -> bytes:
    """The default that MariaDB gives a compressed column that is NOT NULL and has none, unlike any other column."""
    before, behind = _until_comma(reversed(tokens[:at]), "("), _until_comma(tokens[at + 1 :], ")")
    if ("NOT", "NULL") not in pairwise([*reversed(before), *behind]) or "DEFAULT" in (*before, *behind):
        return b""
    return b"DEFAULT ''" if {"VARCHAR", "VARBINARY"}.intersection(before) else b"DEFAULT ('')"


def _until_comma(tokens: Iterable[Token], end: str) -> list[str]:
    """Words of one column's definition outside of parentheses: up to a comma, or ``end``, which closes the list."""
    found, depth = list[str](), 0
    for token in tokens:
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if (depth == 0 and is_symbol(token, ",")) or depth == (1 if end == "(" else -1):
            break
        if depth == 0:
            found.append(token.upper)
    return found


def _is_attribute(tokens: Sequence[Token], at: int) -> bool:
    """Whether the word stands behind a column's type, or behind another of its attributes; no name can stand there."""
    before, earlier = tokens[at - 1], tokens[at - 2]
    if before.upper in LONG_TYPES:
        return earlier.upper not in ("CHANGE", "COLUMN", "EXISTS")  # the type is a column's name there
    if is_symbol(before, ")") or before.kind is TokenKind.STRING or before.upper == "NULL":
        return True
    return earlier.upper in ("SET", "CHARSET", "COLLATE") and before.upper not in ("DEFAULT", "ROW_FORMAT")


_REWRITES: Final[tuple[tuple[bytes, Callable[[StatementWords], bytes]], ...]] = (
    (b"STATEMENT", _without_set_statement),
    (b"PERSISTENT", _stored),
    (b"COMPRESSED", _uncompressed),
)
"""A word of the statement and the rewrite that it asks for. SET STATEMENT comes first: the clause precedes the rest."""
